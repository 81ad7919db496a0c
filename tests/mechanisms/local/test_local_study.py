"""The parts of benchmarks/local.py that could be wrong without anybody seeing it in the tables."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from baselines.central_grids import CentralAdaptiveGrid, CentralUniformGrid
from baselines.range_queries import query_workload

from dpppsynth.grids import first_side

STUDY = Path(__file__).parents[3] / "benchmarks"
UNIT = (0.0, 0.0, 1.0, 1.0)


@pytest.fixture(scope="module")
def study():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(STUDY))
        yield {name: importlib.import_module(name) for name in ("local_data", "local_ranges", "local_tables")}


@pytest.mark.parametrize("kind", [CentralUniformGrid, CentralAdaptiveGrid])
def test_quick_answers_are_those_of_the_grid(study, kind):
    xy = np.random.default_rng(1).beta(2, 5, (3000, 2))
    found = kind(UNIT, epsilon=2.0, expected_n=3000).release_counts(xy, rng=1)
    parts = [query_workload(UNIT, rho, 30, rng=2) for rho in (1e-5, 1e-2, 0.3)]
    queries = np.vstack([*parts, [UNIT, (0, 0, 0.5, 0.5), (0.5, 0.5, 1, 1), (0.2, 0.3, 0.2, 0.9)]])
    quick = study["local_ranges"].quick_answers(found.rectangles, found.masses, queries)
    assert np.allclose(quick, found.query(queries), rtol=1e-9, atol=1e-7)


def test_first_levels_are_the_published_ones(study):
    sizes = {name: stand_in[1] for name, stand_in in study["local_data"].STAND_INS.items()}
    published = study["local_tables"].published()
    cells = {key[1:3]: value for key, value in published.items() if key[3] == "first level"}
    assert len(cells) == 12
    for (name, epsilon), number in cells.items():
        assert first_side(float(epsilon.removeprefix("eps ")), sizes[name]) ** 2 == number


def test_best_side_is_chosen_for_each_area_by_its_mean(study):
    ranges, tables = study["local_ranges"], study["local_tables"]
    rows = []
    for k, side in enumerate(ranges.SIDES):
        # The larger the area, the larger the best side; single runs point to others.
        errors = 1 + np.abs(k - np.arange(len(ranges.RHOS)))
        for run, shift in enumerate((-0.4, 0.4) if k % 2 else (0.3, -0.3)):
            rows.append(["here", "1", f"UG {side}", str(run), str(side**2), *map(str, errors + shift)])
    _, means, _ = tables.range_means(rows)["here", 1.0, tables.BEST]
    assert np.allclose(means, 1)


def test_signs_need_twice_the_standard_error(study):
    sign = study["local_tables"].sign
    assert [sign((1.0, 0.1), (other, 0.1)) for other in (1.27, 1.29, 0.73, 0.71)] == ["=", "+", "=", "-"]

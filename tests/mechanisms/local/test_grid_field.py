"""A field behind the reports of grids: shares of areas, persons in cells, nearness to the truth, and releases.

Statistical thresholds have a false-alarm rate below 1e-6; seeds are fixed.
"""

import numpy as np
import pytest
import shapely
from baselines.range_queries import query_workload, true_answers

from dpppsynth import PointPattern, Window, load_release, local
from dpppsynth.core.errors import InformationWarning, QualityError
from dpppsynth.grids import adaptive_cells, uniform_grid
from dpppsynth.mechanisms.local import grid_field
from dpppsynth.mechanisms.local.grid_field import area_shares, even_pieces, own_masses
from dpppsynth.mechanisms.local.grid_statistic import GridLevel

WINDOW = Window.rectangle(-100, 50, 900, 850)
HOLED = Window(WINDOW.geometry.difference(shapely.box(-100, 50, 300, 400)).difference(shapely.box(500, 600, 700, 800)))


def hills(n, seed=1, window=WINDOW):
    """Points on three hills some 150 wide, those within the window."""
    rng = np.random.default_rng(seed)
    middle = np.array([[200.0, 500.0], [600.0, 300.0], [650.0, 650.0]])
    found = middle[rng.choice(3, 20 * n, p=[0.5, 0.3, 0.2])] + 130 * rng.standard_normal((20 * n, 2))
    return PointPattern(found[window.contains(found)][:n], window)


def off(intensity, xy):
    """Total variation distance to the points on 20 x 20 cells."""
    grid = uniform_grid(WINDOW.bounds, 20, 20)
    middle = (grid.cells[:, None, :2] + (grid.cells[:, None, 2:] - grid.cells[:, None, :2]) * MIDDLES).reshape(-1, 2)
    masses = intensity(middle).reshape(len(grid), -1).mean(axis=1)
    return 0.5 * np.abs(masses / masses.sum() - grid.count(xy) / len(xy)).sum()


MIDDLES = (np.stack(np.meshgrid(*2 * [np.arange(6)]), axis=-1).reshape(-1, 2) + 0.5) / 6


class TestShares:
    def test_pieces_lie_wholly_in_cells_of_any_width(self):
        rng = np.random.default_rng(2)
        coarse = uniform_grid(WINDOW.bounds, 4, 5)
        grid = adaptive_cells(coarse, rng.random(20), rng.integers(1, 5, 20))
        pieces = uniform_grid(WINDOW.bounds, 7, 9)
        shares = area_shares(grid, pieces).toarray()
        np.testing.assert_allclose(shares.sum(axis=0), 1.0, atol=1e-12)
        cells, parts = shapely.box(*grid.cells.T), shapely.box(*pieces.cells.T)
        exact = shapely.area(shapely.intersection(cells[:, None], parts)) / shapely.area(parts)
        np.testing.assert_allclose(shares, exact, atol=1e-12)

    @pytest.mark.parametrize(("cells", "side"), [(1, 16), (100, 30), (10_000, 64)])
    def test_number_of_pieces(self, cells, side):
        assert len(even_pieces(WINDOW, cells)) == side**2


class Exactly:
    """A frequency oracle whose reports are known to be so noisy."""

    def __init__(self, shares, variance):
        self._shares, self._variance = np.asarray(shares, dtype=float), variance

    def frequencies(self, counts, n):
        return self._shares

    def variance(self, counts, n):
        return np.full(len(counts), self._variance)


class TestPersons:
    def test_of_two_levels_against_the_normal_law(self):
        """Conditional means by a dense matrix; the sum of the upper level counts once."""
        grid = adaptive_cells(uniform_grid((0, 0, 2, 1), 2, 1), [1.0, 2.0], [2, 1])
        n, m = 1000, np.array([100.0, 50.0, 200.0, 150.0, 500.0])
        lower, upper = np.array([0.12, 0.03, 0.2, 0.14, 0.51]), np.array([0.56, 0.44])
        levels = [
            GridLevel(grid.first, Exactly(upper, 900.0), np.empty(0), 500),
            GridLevel(grid, Exactly(lower, 400.0), np.empty(0), 500),
        ]
        above = np.array([[1, 1, 1, 1, 0], [0, 0, 0, 0, 1]], dtype=float)
        expected = above @ m
        noise = np.concatenate([level.variances(e, n) for level, e in zip(levels, (expected, m), strict=True)])
        design, values = np.vstack([above, np.eye(5)]), n * np.concatenate([upper, lower])
        precision = np.diag(1 / (noise + 0.01))
        exact = np.linalg.solve(np.diag(1 / m) + design.T @ precision @ design, 1 + design.T @ precision @ values)
        np.testing.assert_allclose(own_masses(levels, [expected, m], n), exact, rtol=1e-9)

    def test_reports_that_hide_nothing_are_kept(self):
        """Without the step towards the persons cells would be smoothed."""
        pattern = hills(3000)
        grid = local.UniformGrid(WINDOW, epsilon=12.0, cells=6, oracle="randomized-response")
        release = grid.release(pattern, rng=1)
        cells = release.fitted.grid
        assert np.abs(release.query(cells.cells, unbiased=False) - cells.count(pattern.xy)).sum() < 0.01 * 3000


class TestTruth:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("make", [local.UniformGrid.sized, local.PrivAG, local.AdvancedAdaptiveGrid])
    def test_nearer_than_the_cells_alone(self, make):
        sizes = {"n": 30_000} if make == local.UniformGrid.sized else {}
        pattern = hills(30_000)
        queries = query_workload(WINDOW.bounds, 0.01, 200, rng=3)
        truth = true_answers(pattern.xy, queries, WINDOW.bounds)
        found = []
        for seed in (1, 2, 3):
            counts = make(WINDOW, epsilon=2.0, **sizes).simulate(pattern, rng=np.random.default_rng(seed), fast=True)
            field = counts.release()
            plain = type(field)(**vars(field) | {"estimator": type(field.estimator)("norm-sub", True)})
            errors = (np.abs(r.query(queries, unbiased=False) - truth).sum() for r in (field, plain))
            found.append((off(field.intensity, pattern.xy) / off(plain.intensity, pattern.xy), np.divide(*errors)))
        assert np.mean(found, axis=0).max() < 0.85

    def test_nothing_lies_in_holes(self):
        pattern = hills(5000, window=HOLED)
        release = local.PrivAG(HOLED, epsilon=3.0).release(pattern, rng=1)
        assert release.intensity.total == pytest.approx(5000)
        assert HOLED.contains(release.sample(1, rng=1)[0].xy).all()
        assert release.query([HOLED.bounds], unbiased=False)[0] == pytest.approx(5000)

    @pytest.mark.parametrize("post", ["field", "clip"])
    def test_answers_are_integrals_of_the_intensity(self, post):
        """Spread over whole cells, the mass of those that the border cuts would lie in the hole."""
        release = local.UniformGrid(HOLED, epsilon=3.0, cells=7, post=post).release(hills(2000, window=HOLED), rng=1)
        hole = HOLED.geometry.interiors[0].bounds
        wide = [*HOLED.bounds[:2], hole[0] + 0.3 * (hole[2] - hole[0]), hole[1] + 0.7 * (hole[3] - hole[1])]
        x, y = (
            low + (np.arange(1000) + 0.5) / 1000 * (high - low) for low, high in zip(wide[:2], wide[2:], strict=True)
        )
        grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        grid, area = grid[HOLED.contains(grid)], (wide[2] - wide[0]) * (wide[3] - wide[1]) / 1e6
        nothing, some, all_ = release.query([hole, wide, HOLED.bounds], unbiased=False)
        assert nothing == pytest.approx(0, abs=1e-6)
        assert some == pytest.approx(release.intensity(grid).sum() * area, rel=5e-3)
        assert all_ == pytest.approx(release.intensity.total)


class TestReleases:
    def test_it_is_the_default_and_comes_back(self, tmp_path):
        release = local.UniformGrid(WINDOW, epsilon=1.0, cells=6).release(hills(500), rng=1)
        assert release.estimator.to_dict() == {"kind": "grid", "post": "field", "consistent": False}
        release.save(tmp_path / "out")
        again = load_release(tmp_path / "out")
        np.testing.assert_array_equal(again.intensity.values, release.intensity.values)

    def test_where_none_is_found_it_is_the_nearest(self, monkeypatch):
        def none(*_):
            msg = "no mode"
            raise QualityError(msg)

        release = local.UniformGrid(WINDOW, epsilon=1.0, cells=6).release(hills(500), rng=1)
        monkeypatch.setattr(grid_field, "log_intensity", none)
        with pytest.warns(InformationWarning, match=r"^post: a field was not found"):
            found = release.estimator.intensity(release.statistic)
        plain = type(release.estimator)("norm-sub").intensity(release.statistic)
        np.testing.assert_array_equal(found.values, plain.values)

    def test_one_cell_is_exact(self):
        release = local.PrivAG(WINDOW, epsilon=0.1).release(hills(20), rng=1)
        assert len(release.fitted.grid) == 1
        assert release.intensity.total == pytest.approx(20)

"""Plans that `check` has made are what `release` spends; other public parameters make other plans."""

import json
import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from support.command_line import run

import dpppsynth as dps
from dpppsynth.core.single_entry_cache import SingleEntryCache
from dpppsynth.linear_network import LinearNetwork, heat_kernels
from dpppsynth.mechanisms.kernel import synthesizer as kernel_module
from dpppsynth.spatial.sampling import MOST_POINTS

WINDOW = dps.Window.rectangle(0, 0, 1000, 1000)
RNG = np.random.default_rng(1)
POINTS = dps.PointPattern(RNG.uniform(0, 1000, (40, 2)), WINDOW)
CROSS = LinearNetwork([[0, 0], [400, 0], [400, 300], [800, 0]], [[0, 1], [1, 2], [1, 3]])


@pytest.fixture
def made(monkeypatch):
    """Counts of plans by n."""
    counts, plan = Counter(), dps.LaplaceSynthesizer.plan

    def counted(self, domain, *, n=None, **options):
        counts[n] += 1
        return plan(self, domain, n=n, **options)

    monkeypatch.setattr(dps.LaplaceSynthesizer, "plan", counted)
    return counts


def laplace():
    return dps.LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain")


def test_release_spends_what_check_has_planned(made):
    synthesizer = laplace()
    stated = synthesizer.check(WINDOW, n=40)
    release = synthesizer.release(POINTS, 1)
    assert made == {40: 1}
    assert release.guarantee == stated


def test_equal_domains_share_a_plan(made):
    synthesizer = laplace()
    synthesizer.check(dps.Window.rectangle(0, 0, 1000, 1000), n=40)
    synthesizer.check(WINDOW, n=40)
    assert made == {40: 1}


@pytest.mark.parametrize(
    "other",
    [
        lambda s: s.check(WINDOW, n=41),
        lambda s: s.check(dps.Window.rectangle(0, 0, 1000, 1001), n=40),
        lambda s: s.check(dps.Window.rectangle(0, 0, 1000, 1000, "EPSG:27700"), n=40),
        lambda s: replace(s, alpha=26.0).check(WINDOW, n=40),
        lambda s: object.__setattr__(s, "alpha", 26.0) or s.check(WINDOW, n=40),
        lambda s: laplace().check(WINDOW, n=40),
    ],
    ids=["n", "domain", "coordinate system", "setting", "setting in place", "another synthesizer"],
)
def test_whatever_differs_is_planned_anew(made, other):
    synthesizer = laplace()
    before = synthesizer.check(WINDOW, n=40)
    after = other(synthesizer)
    assert made.total() == 2
    assert after is not before


def test_one_plan_is_kept_and_none_after_a_refusal(made):
    synthesizer = laplace()
    for n in (40, 41, 40):
        synthesizer.check(WINDOW, n=n)
    assert made == {40: 2, 41: 1}
    for _ in range(2):
        with pytest.raises(dps.InputError, match="n: the public number"):
            synthesizer.check(WINDOW, n=0)
    assert made[0] == 2
    # True is 1, and no number of points.
    synthesizer.check(WINDOW, n=1)
    with pytest.raises(dps.InputError, match="n: the public number"):
        synthesizer.check(WINDOW, n=True)


def test_a_domain_without_a_known_scale_is_refused_after_its_like():
    synthesizer = laplace()
    synthesizer.check(WINDOW, n=40)
    with pytest.raises(dps.InputError, match="domain: it comes from a release"):
        synthesizer.check(WINDOW.as_stated(None, 2.0), n=40)


def test_pickles_carry_no_plan(made):
    synthesizer = laplace()
    empty = len(pickle.dumps(synthesizer))
    synthesizer.check(WINDOW, n=40)
    packed = pickle.dumps(synthesizer)
    assert len(packed) < empty + 500
    pickle.loads(packed).check(WINDOW, n=40)
    assert made == {40: 2}


def test_a_failed_computation_leaves_nothing_behind():
    last = SingleEntryCache()
    with pytest.raises(ZeroDivisionError):
        last.get("a", lambda: 1 / 0)
    assert last.get("a", lambda: 5) == 5


class TestStreets:
    @pytest.fixture
    def work(self, monkeypatch):
        """Counts of searches for a bandwidth, and of matrices by bandwidth."""
        counts = Counter()
        search, matrix = kernel_module.smallest_diffusion_bandwidth, heat_kernels.diffusion_matrix

        def searched(*args, **options):
            counts["search"] += 1
            return search(*args, **options)

        def made(mesh, bandwidth):
            counts[bandwidth] += 1
            return matrix(mesh, bandwidth)

        monkeypatch.setattr(kernel_module, "smallest_diffusion_bandwidth", searched)
        monkeypatch.setattr(heat_kernels, "diffusion_matrix", made)
        return counts

    def test_no_search_where_the_bandwidth_will_do(self, work):
        kernel = dps.KernelSynthesizer(5.0, delta=1e-6, alpha=20.0, bandwidth=300.0)
        plan = kernel.plan(CROSS, n=30)
        assert work[300.0] == 1
        assert kernel.plan(CROSS, n=31).statistic.matrix is plan.statistic.matrix
        assert work[300.0] == 1
        assert work["search"] == 0

    def test_one_guarantee_whatever_the_number_of_points(self):
        kernel = dps.KernelSynthesizer(5.0, delta=1e-6, alpha=20.0, bandwidth=300.0)
        plan = kernel.plan(CROSS, n=30)
        other, new = kernel.plan(CROSS, n=31), replace(kernel).plan(CROSS, n=31)
        assert other.statistic.guarantee is plan.statistic.guarantee
        assert (plan.statistic.n, other.statistic.n) == (30, 31)
        assert other.statistic.parameters() == new.statistic.parameters()
        assert other.guarantee.to_dict() == new.guarantee.to_dict()
        tiny = replace(kernel, delta=1e-9)
        tiny.plan(CROSS, n=30)
        with pytest.raises(dps.InputError, match="patterns"):
            tiny.plan(CROSS, n=2 * MOST_POINTS)
        wider = replace(kernel, bandwidth=301.0).plan(CROSS, n=30)
        assert wider.guarantee.to_dict() != plan.guarantee.to_dict()
        assert kernel.plan(CROSS, n=30, patterns=2).guarantee.to_dict() != plan.guarantee.to_dict()

    def test_one_search_whatever_the_number_of_points(self, work):
        """The rule's bandwidth of so many points is too narrow."""
        kernel = dps.KernelSynthesizer(5.0, delta=1e-6, alpha=20.0)
        plan = kernel.plan(CROSS, n=900_000)
        assert work["search"] == 1
        assert kernel.plan(CROSS, n=800_000).statistic.bandwidth == plan.statistic.bandwidth
        assert work["search"] == 1
        replace(kernel, spacing=50.0).plan(CROSS, n=900_000)
        kernel.plan(CROSS, n=900_000, patterns=2)
        assert work["search"] == 3

    def test_the_command_line_searches_once_at_most(self, work, tmp_path):
        (tmp_path / "streets.geojson").write_text(json.dumps(CROSS.to_geojson()))
        (tmp_path / "points.csv").write_text("x,y\n10,0\n200,0\n400,100\n600,150\n")
        method = ["--method", "kernel", "--epsilon", 5, "--delta", 1e-6, "--alpha", 20]
        place = ["--network", tmp_path / "streets.geojson", "--snap", 1000]
        run("synthesize", tmp_path / "points.csv", *method, *place, "--out", tmp_path / "public")
        assert work["search"] <= 1

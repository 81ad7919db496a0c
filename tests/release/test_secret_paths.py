"""The secret path of every mechanism, `rng=None`: what reaches the sampler there is what the guarantee needs.

Spies stand at the two doors of secret randomness: the samplers of OpenDP, whose scales are compared with the formulas
of docs/theory.md, and ChaCha20, whose keys are written down. Where a key protects, the release is either tested against
the stated law, or drawn again from the same key by the path that seeds take, so that every test of that path holds for
the secret one. Exact tests, some fifty, are two-sided with a false alarm of 1e-9 each.
"""

import functools
import importlib
import math
import os
from types import SimpleNamespace

import numpy as np
import opendp.prelude as dp
import pytest
import randomgen
import shapely
from baselines.central_grids import CentralAdaptiveGrid
from scipy import optimize, stats
from scipy.special import gammaln, ndtr
from support.chance import Chance
from support.seams import chance_for_nuts

from dpppsynth import local
from dpppsynth.core.errors import PrivacyCheckError
from dpppsynth.core.randomness import generator
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.mechanisms.local.trajectories.protocol import TraceCounts
from dpppsynth.models import regular_triangulation
from dpppsynth.models.covariances import PoweredExponential
from dpppsynth.models.nuts import CHAINS
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import (
    BoundedErrorSynthesizer,
    HeatmapSynthesizer,
    KernelSynthesizer,
    LaplaceSynthesizer,
    LGCPSynthesizer,
    PairSums,
    PlanarLaplaceSynthesizer,
)

ALARM = 1e-9
SQUARE = Window.rectangle(0, 0, 1000, 1000)
GRID = regular_triangulation(SQUARE, shape=(5, 5))
# Legs of 250: the altitude on the hypotenuse is the smallest.
ALTITUDE = 250 / math.sqrt(2)
STREET = LinearNetwork([[0, 0], [4000, 0]], [[0, 1]])
N = 30
SCATTERED = PointPattern(np.random.default_rng(1).uniform(0, 1000, (N, 2)), SQUARE)
UNIT = 2**20


class Door:
    """A sampler of OpenDP whose calls are written down: scale, values and what they became."""

    def __init__(self, make):
        self.make, self.calls = make, []

    def __call__(self, *space, scale):
        measurement = self.make(*space, scale=scale)
        return _Spied(measurement, scale, self.calls)

    @property
    def scales(self):
        return [(scale, len(values)) for scale, values, _ in self.calls]

    @property
    def noise(self):
        return [np.array(noised) - np.array(values) for _, values, noised in self.calls]


class _Spied:
    def __init__(self, measurement, scale, calls):
        self.map, self._measurement, self._scale, self._calls = measurement.map, measurement, scale, calls

    def __call__(self, values):
        noised = self._measurement(values)
        self._calls.append((self._scale, list(values), list(noised)))
        return noised


class Doors:
    """Both samplers, the numbers of bytes asked of the operating system, and the keys made of them."""

    def __init__(self, patch):
        self.laplace, self.gaussian = Door(dp.m.make_laplace), Door(dp.m.make_gaussian)
        patch.setattr(dp.m, "make_laplace", self.laplace)
        patch.setattr(dp.m, "make_gaussian", self.gaussian)
        self.secrets, self.keys, self.script = [], [], []
        cipher = randomgen.ChaCha

        def urandom(size):
            self.secrets.append(self.script.pop(0) if self.script else os.urandom(size))
            return self.secrets[-1]

        def keyed(**settings):
            self.keys.append(settings)
            return cipher(**settings)

        patch.setattr("dpppsynth.core.randomness.os", SimpleNamespace(urandom=urandom))
        patch.setattr(randomgen, "ChaCha", keyed)
        self._cipher = cipher

    def replay(self, k=0):
        """The stream of the k-th key, from its start."""
        return np.random.Generator(self._cipher(**self.keys[k]))


@pytest.fixture
def doors(monkeypatch):
    return Doors(monkeypatch)


def not_rare(probability_below, probability_above):
    """Neither tail of an exact law is too small."""
    assert min(probability_below, probability_above) > ALARM / 2


def binomial(count, n, p):
    """A count of n independent trials has this probability of success."""
    not_rare(stats.binom.cdf(count, n, p), stats.binom.sf(count - 1, n, p))


def poisson(count, mean):
    not_rare(stats.poisson.cdf(count, mean), stats.poisson.sf(count - 1, mean))


def gaussian_mu(epsilon, delta):
    """Largest mu whose profile `Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)` stays below delta at epsilon."""
    return optimize.brentq(
        lambda mu: ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu) - delta, 1e-3, 20
    )


class TestKey:
    def test_is_32_bytes_of_the_operating_system_and_all_of_them(self, doors):
        for k in range(20):
            state = generator().bit_generator.state["state"]
            assert len(doors.secrets[k]) == 32
            assert state["keysetup"].tobytes() == doors.secrets[k]
            assert state["rounds"] == 20
            assert doors.keys[k].keys() == {"key"}
        assert len(set(doors.secrets)) == len(doors.secrets) == 20

    def test_every_byte_bears_on_the_stream(self):
        """The generator's output changes with each of the 32 bytes: the cipher uses the key whole."""
        streams = {np.random.Generator(randomgen.ChaCha(key=1 << bit)).bytes(16) for bit in range(0, 256, 8)}
        assert len(streams) == 32


# --- Additive noise -----------------------------------------------------------------------------------------------


def released(synthesizer, pattern=SCATTERED, **options):
    relation = synthesizer.neighbouring()
    public = {} if relation.n_is_public else {"expected_n": float(N)}
    return synthesizer.release(pattern, **public, **options)


def tent_units(reach, cap=1):
    """L1 sensitivity of tent masses in lattice units: `floor(2^20 slope alpha) + 4`, at most two whole points."""
    return cap * min(2 * UNIT, math.floor(UNIT * 2 / ALTITUDE * reach) + 4)


RELATIONS = {
    "alpha": (AlphaNeighbours(25.0), 2, tent_units(25.0)),
    "alpha, three points": (AlphaNeighbours(25.0, max_points_per_person=3), 6, tent_units(25.0, 3)),
    "far": (AlphaNeighbours(900.0), 2, 2 * UNIT),
    "anywhere, two points": (ReplaceOne(2), 4, 4 * UNIT),
    "come and go": (AddRemove(), 1, UNIT),
    "come and go, four points": (AddRemove(4), 4, 4 * UNIT),
}


@pytest.fixture(params=RELATIONS)
def case(request):
    """A relation, and L1 sensitivities of counts and of tent masses under it."""
    return RELATIONS[request.param]


class TestLaplace:
    @pytest.mark.parametrize("epsilon", [0.1, 2.0])
    def test_counts_of_cells(self, doors, case, epsilon):
        relation, sensitivity, _ = case
        release = released(LaplaceSynthesizer(epsilon, relation=relation, spacing=250.0, postprocess="plain"))
        assert doors.laplace.scales == [(pytest.approx(sensitivity / epsilon, rel=1e-12), 16)]
        assert not doors.gaussian.calls
        assert_published(release.statistic, doors.laplace)
        assert sum(doors.laplace.calls[0][1]) == N

    @pytest.mark.parametrize("mechanism", ["laplace-tents", "lgcp-tents"])
    def test_tent_masses(self, doors, case, mechanism):
        relation, _, sensitivity = case
        if mechanism == "laplace-tents":
            synthesizer = LaplaceSynthesizer(0.5, relation=relation, basis="tents", mesh=GRID, postprocess="plain")
        else:
            synthesizer = LGCPSynthesizer(0.5, relation=relation, mesh=GRID, length_scale=500.0, inference="laplace")
        statistic = synthesizer.plan(SQUARE, **size(relation)).statistic.measure(SCATTERED)
        assert doors.laplace.scales == [(pytest.approx(sensitivity / 0.5, rel=1e-12), 25)]
        assert_published(statistic, doors.laplace)
        assert sum(doors.laplace.calls[0][1]) == N * UNIT

    def test_points_are_rounded_one_by_one(self, doors):
        """Masses of all are the sum of everybody's own, to the last unit: no sum of floats has seen the points."""
        synthesizer = LaplaceSynthesizer(0.5, alpha=25.0, basis="tents", mesh=GRID, postprocess="plain")
        synthesizer.release(SCATTERED)
        for at in SCATTERED.xy:
            synthesizer.release(PointPattern(at[None], SQUARE))
        together, *alone = [np.array(values) for _, values, _ in doors.laplace.calls]
        assert np.array_equal(together, np.sum(alone, axis=0))

    def test_a_whole_release_uses_nothing_else(self, doors):
        synthesizer = LGCPSynthesizer(0.5, alpha=25.0, mesh=GRID, length_scale=500.0, inference="laplace")
        release = synthesizer.release(SCATTERED)
        assert len(doors.laplace.calls) == 1
        assert_published(release.statistic, doors.laplace)

    def test_the_steepest_move_attains_the_sensitivity(self, doors):
        """Towards the hypotenuse tent masses change by as much as the scale is made for, and 8 units less at most."""
        synthesizer = LaplaceSynthesizer(1.0, alpha=25.0, basis="tents", mesh=GRID, postprocess="plain")
        here = np.array([100.0, 20.0])
        for at in (
            here,
            here + 25.0 * np.array([1, -1]) / math.sqrt(2),
            here + 25.0 * np.array([-1, 1]) / math.sqrt(2),
        ):
            synthesizer.release(PointPattern(np.clip(at, 0, 1000)[None], SQUARE))
        first, *others = [np.array(values) for _, values, _ in doors.laplace.calls]
        scale = doors.laplace.calls[0][0]
        assert max(np.abs(first - other).sum() for other in others) == pytest.approx(scale, abs=8)

    @pytest.mark.parametrize("relation", [ReplaceOne(), AddRemove(3)], ids=["moves", "three come and go"])
    def test_counts_with_bounded_error(self, doors, relation):
        sensitivity = 2 if relation.n_is_public else 3
        release = released(BoundedErrorSynthesizer(epsilon=1.0, delta=1e-6, relation=relation, spacing=250.0))
        assert [scale for scale, _ in doors.laplace.scales] == pytest.approx([sensitivity] * len(doors.laplace.calls))
        assert doors.laplace.scales[0][1] == 16
        assert all(not any(values) for _, values, _ in doors.laplace.calls)
        # What exceeds the bound is drawn again; the last draw of each cell counts.
        exact = np.histogram2d(*SCATTERED.xy.T, bins=4, range=[[0, 1000]] * 2)[0]
        error = release.statistic.lattice - _in_cells(release.statistic.definition.mesh, exact)
        assert np.abs(error).max() <= release.statistic.definition.max_error
        drawn = np.concatenate(doors.laplace.noise)
        assert set(error.tolist()) <= set(drawn.tolist())
        assert (np.abs(drawn) > release.statistic.definition.max_error).sum() == len(drawn) - 16


def size(relation):
    return {"n": N} if relation.n_is_public else {"expected_n": float(N)}


def assert_published(statistic, door):
    """Require that the released values are the sampler's, to the last unit."""
    assert np.array_equal(statistic.lattice, np.concatenate([noised for _, _, noised in door.calls]))
    assert statistic.seeded is False


def _in_cells(mesh, histogram):
    i, j = (mesh.vertices[mesh.elements].mean(axis=1) // 250).astype(int).T
    return histogram[i, j].astype(int)


class TestGaussian:
    @pytest.mark.parametrize("relation", [AlphaNeighbours(100.0), AddRemove(2)], ids=["moves", "two come and go"])
    @pytest.mark.parametrize("epsilon", [0.3, 3.0])
    def test_neighbours_are_mu_apart_in_units_of_the_noise(self, doors, relation, epsilon):
        """No pair tried exceeds the mu of (epsilon, delta), and some come close: the covariance reaches the values."""
        settings = {"mechanism": "field", "delta": 1e-6, "length_scale": 300.0, "mesh": GRID, "inference": "laplace"}
        plan = LGCPSynthesizer(epsilon, relation=relation, **settings).plan(SQUARE, **size(relation)).statistic
        statistic = plan.measure(SCATTERED)
        assert [scale for scale, _ in doors.gaussian.scales] == [UNIT]
        assert_published(statistic, doors.gaussian)
        assert not doors.laplace.calls
        apart = max(_apart(doors, plan, pair) for pair in _pairs(relation))
        mu = gaussian_mu(epsilon, 1e-6)
        assert 0.7 * mu < apart <= mu


def _pairs(relation):
    """Neighbours: a point at a vertex moves along a side, or two points come to a vertex."""
    rest = SCATTERED.xy[2:]
    for vertex in ([500.0, 500.0], [0.0, 0.0], [250.0, 750.0]):
        if relation.n_is_public:
            moved = np.minimum(np.add(vertex, [relation.alpha, 0]), 1000)
            yield [np.vstack([rest, [at, vertex]]) for at in (vertex, moved)]
        else:
            yield [rest, np.vstack([rest, [vertex, vertex]])]


def _apart(doors, plan, pair):
    for xy in pair:
        plan.measure(PointPattern(xy, SQUARE))
    (scale, first, _), (_, second, _) = doors.gaussian.calls[-2:]
    return float(np.linalg.norm(np.subtract(first, second, dtype=float))) / scale


class TestLevels:
    """Every level's noise has its own share of a split budget."""

    PERSONS = PointPattern(np.random.default_rng(2).uniform(0, 1000, (90, 2)), SQUARE, {"user": np.arange(90) // 3})

    @pytest.mark.parametrize(
        ("w", "variant", "decay"), [(20, "practical", None), (5, "theory", None), (5, "theory", 0.6)]
    )
    def test_of_a_heat_map(self, doors, w, variant, decay):
        settings = {"shape": (32, 32), "w": w, "variant": variant, "decay": decay}
        statistic = HeatmapSynthesizer(2.0, **settings).release(self.PERSONS).statistic
        start = max(level for level in range(6) if 4**level <= w)
        rate = decay or {"practical": math.sqrt(0.5), "theory": 0.8}[variant]
        levels = range(0 if variant == "theory" else start, 6)
        weights = [rate ** abs(level - start) for level in levels]
        expected = [UNIT * sum(weights) / (2.0 * weight) for weight in weights]
        assert [scale for scale, _ in doors.laplace.scales] == pytest.approx(expected, rel=1e-11)
        assert math.fsum(UNIT / scale for scale, _ in doors.laplace.scales) <= 2.0
        # The levels one after the other, each once.
        looked_at = [4 ** levels[0]]
        for _ in levels[1:]:
            looked_at.append(4 * (looked_at[0] if len(looked_at) == 1 else min(w, looked_at[-1])))
        assert [count for _, count in doors.laplace.scales] == looked_at
        assert_published(statistic, doors.laplace)
        # A person weighs one, however many points they have; the first level has all of them.
        assert sum(doors.laplace.calls[0][1]) == 30 * UNIT

    @pytest.mark.parametrize("user", [None, "user"])
    def test_of_pair_sums(self, doors, user):
        """Scale `2 theta 2^m / epsilon` for each radius, on twice the sum of all pairs that no cap keeps out."""
        clump = np.repeat([[500.0, 500.0]], 30, axis=0)
        persons = np.arange(30) // (1 if user is None else 3)
        pattern = PointPattern(clump, SQUARE, None if user is None else {user: persons})
        settings = {"user": user} if user else {"relation": AddRemove(2)}
        statistic = (
            PairSums(2.0, radii=[20.0, 50.0], cap=[4, 40], shares=[0.25, 0.75], **settings).release(pattern).statistic
        )
        # Caps of 40 take 14 digits to stay below 2^20.
        unit = 2**14
        each = 1 if user else 2
        expected = [2 * 4 * unit * each / 0.5, 2 * 40 * unit * each / 1.5]
        assert [scale for scale, _ in doors.laplace.scales] == pytest.approx(expected, rel=1e-11)
        assert [count for _, count in doors.laplace.scales] == [1, 1]
        held = 30 if user is None else 10
        full = [held * 4 * unit, min(held * 40, 30 * 29) * unit]
        assert [values for _, values, _ in doors.laplace.calls] == [[value] for value in full]
        assert_published(statistic, doors.laplace)

    def test_of_a_central_adaptive_grid(self, doors):
        grid = CentralAdaptiveGrid((0, 0, 1000, 1000), epsilon=1.0, expected_n=N, share=0.25)
        grid.release_counts(SCATTERED.xy)
        assert [scale for scale, _ in doors.laplace.scales] == pytest.approx([4.0, 4 / 3], rel=1e-12)
        assert sum(doors.laplace.calls[0][1]) == sum(doors.laplace.calls[1][1]) == N

    def test_of_strata(self, doors):
        """Levels of a mark do not share people: each has all of the budget, and noise of its own."""
        marked = PointPattern(np.tile(SCATTERED.xy, (3, 1)), SQUARE, {"year": np.repeat([1, 2, 3], N)})
        synthesizer = LaplaceSynthesizer(0.5, alpha=25.0, spacing=100.0, postprocess="plain")
        release = synthesizer.release_by(marked, by="year", levels=[1, 2, 3])
        assert doors.laplace.scales == [(pytest.approx(4.0, rel=1e-12), 100)] * 3
        for part, (_, values, noised) in zip(release.releases.values(), doors.laplace.calls, strict=True):
            assert part.statistic.lattice.tolist() == noised
            assert sum(values) == N
        # A hundred variables that agree with probability below 1/4 each.
        assert len({tuple(noise.tolist()) for noise in doors.laplace.noise}) == 3

    def test_of_strata_with_keys(self, doors):
        marked = PointPattern(np.tile(SCATTERED.xy, (3, 1)), SQUARE, {"year": np.repeat([1, 2, 3], N)})
        KernelSynthesizer(5.0, delta=1e-6, alpha=25.0).release_by(marked, by="year", levels=[1, 2, 3])
        assert len(set(doors.secrets)) == len(doors.secrets) == len(doors.keys) == 3
        assert {len(secret) for secret in doors.secrets} == {32}


# --- Keys ---------------------------------------------------------------------------------------------------------

WALKS = PointPattern(np.random.default_rng(3).uniform(0, 1000, (60, 2)), SQUARE, {"trajectory": np.arange(60) // 4})
ALONG = PointPattern(np.column_stack([np.linspace(100, 3900, N), np.zeros(N)]), STREET)
FIELD = {"mesh": GRID, "length_scale": 500.0}
KEYED = {
    "kernel": (KernelSynthesizer(5.0, delta=1e-6, alpha=25.0), SCATTERED),
    "kernel-diffusion": (KernelSynthesizer(5.0, delta=1e-6, alpha=25.0, spacing=100.0), ALONG),
    "planar-laplace": (PlanarLaplaceSynthesizer(1.0, alpha=25.0), SCATTERED),
    "lgcp-posterior-draw, proximal": (
        LGCPSynthesizer(1.0, alpha=100.0, mechanism="posterior-draw", delta=1e-6, sampler="proximal", **FIELD),
        SCATTERED,
    ),
    "lgcp-posterior-draw, exact": (
        LGCPSynthesizer(0.5, alpha=100.0, mechanism="posterior-draw", delta=1e-6, sampler="exact", **FIELD),
        SCATTERED,
    ),
    "lgcp-posterior-draw, nuts": (
        LGCPSynthesizer(1.0, alpha=100.0, mechanism="posterior-draw", delta=1e-6, sampler="nuts", **FIELD),
        SCATTERED,
    ),
    "lgcp-lipschitz": (LGCPSynthesizer(1.0, alpha=100.0, mechanism="lipschitz", sampler="exact", **FIELD), SCATTERED),
    "lgcp-kim-lim-3.8": (LGCPSynthesizer(1.0, alpha=100.0, mechanism="kim-lim-3.8", delta=1e-3, **FIELD), SCATTERED),
    "disk-area": (local.DiskAreaMechanism(epsilon=1.0, cells=4), SCATTERED),
    "hybrid-area": (local.HybridUniformExponential(epsilon=1.0, cells=4), SCATTERED),
    "square-wave": (local.MultidimensionalSquareWave(epsilon=1.0, cells=4), SCATTERED),
    "subset-exponential": (local.SEMGeoI(epsilon=1.0, cells=4), SCATTERED),
    "uniform-grid": (local.UniformGrid(SQUARE, epsilon=1.0, cells=4), SCATTERED),
    "adaptive-grid": (local.AdvancedAdaptiveGrid(SQUARE, epsilon=1.0), SCATTERED),
    "range-hierarchy": (local.RangeHierarchy(epsilon=1.0, cells=8), SCATTERED),
    "trajectories": (local.LDPTrace(epsilon=2.0, cells=3, max_length=8), WALKS),
    "displacements": (local.LineTrace(epsilon=2.0, cells=3), WALKS),
}


def published(release):
    """Every number that a release publishes."""
    statistic = release.statistic
    numbers = [each.xy for each in statistic.patterns] if hasattr(statistic, "patterns") else [statistic.lattice]
    return np.concatenate([np.ravel(each) for each in numbers])


@functools.cache
def planned(name):
    synthesizer, pattern = KEYED[name]
    return synthesizer.plan(pattern.domain, n=15 if name in ("trajectories", "displacements") else len(pattern))


@pytest.mark.filterwarnings("ignore:mechanism. under Kim:dpppsynth.core.errors.InformationWarning")
@pytest.mark.parametrize("name", KEYED)
class TestStream:
    @pytest.fixture(autouse=True)
    def quick(self):
        """NUTS is not the question here: its chains are as good as their seed."""
        with chance_for_nuts():
            yield

    @pytest.mark.exhaustive
    def test_is_all_the_randomness_there_is(self, doors, name):
        """Drawn again from the same keys the release is the same to the last bit; no two releases share one."""
        plan, pattern, rounds = planned(name), KEYED[name][1], 2 if name == "trajectories" else 1
        first, second = (plan.release(pattern) for _ in range(2))
        assert [len(secret) for secret in doors.secrets] == [32] * 2 * rounds
        assert len(set(doors.secrets)) == 2 * rounds
        assert not doors.laplace.calls
        assert not doors.gaussian.calls
        assert not first.seeded
        doors.script = doors.secrets[rounds:]
        assert np.array_equal(published(second), published(plan.release(pattern)))

    def test_is_read_as_that_of_a_seed_is(self, doors, name):
        """Tests of seeded runs hold for secret streams as well: both are read alike."""
        plan, pattern = planned(name), KEYED[name][1]
        release = plan.release(pattern)
        if name == "trajectories":
            # Each round has a key, where a seed serves both.
            rounds = doors.replay(0), doors.replay(1)
            walks, protocol = plan.statistic.walks(pattern), plan.statistic.protocol
            lengths = protocol.first.tally_about(protocol.first.about(walks), rounds[0])
            second = protocol.announced(TraceCounts(protocol.first, lengths, len(walks)))
            again = np.concatenate([lengths, second.tally_about(second.about(walks), rounds[1])])
        else:
            again = plan.release(pattern, doors.replay(0))
            assert again.seeded is True
            assert again.noise.startswith("seeded-")
            again = published(again)
        assert np.array_equal(published(release), again)

    def test_is_apart_from_the_one_of_released_patterns(self, doors, name):
        release = planned(name).release(KEYED[name][1])
        if not hasattr(release, "patterns"):
            release.sample(1)
            assert len(set(doors.secrets)) == len(doors.secrets) >= 2
            assert {len(secret) for secret in doors.secrets} == {32}
        else:
            # These patterns are the mechanism's own.
            assert len(release.patterns) == len(doors.secrets) == 1


def test_chains_are_seeded_with_63_bits_of_the_secret_stream(doors):
    seeds = []

    class Seeded(Chance):
        def sample(self, *, seed, **settings):
            seeds.append(seed)
            return super().sample(seed=seed, **settings)

    name = "lgcp-posterior-draw, nuts"
    for k in range(2):
        with chance_for_nuts(Seeded):
            planned(name).release(KEYED[name][1])
        assert seeds[k] == int(doors.replay(k).integers(2**63))
    assert CHAINS == 4
    assert seeds[0] != seeds[1]


# --- Laws ---------------------------------------------------------------------------------------------------------


class TestKernel:
    """Children around points so far inside that nothing is cut: normal steps, one child on average."""

    MANY = PointPattern(np.full((2000, 2), 500.0), SQUARE)

    def test_bandwidth(self):
        """The bandwidth is the smallest that the guarantee allows, by the profile summed here."""
        release = KernelSynthesizer(1.0, delta=1e-6, alpha=2.0, bandwidth=40.0).release(self.MANY, patterns=2)
        children = np.vstack([each.xy for each in release.patterns])
        poisson(len(children), 2 * len(self.MANY))
        steps = ((children - 500.0) ** 2).sum() / 40.0**2
        not_rare(stats.chi2.cdf(steps, 2 * len(children)), stats.chi2.sf(steps, 2 * len(children)))
        for step in (children - 500.0).T / 40.0:
            assert stats.kstest(step, "norm").pvalue > ALARM

    def test_numbers_of_children_are_poisson(self):
        """A share 1/e of a point's patterns is empty."""
        one = PointPattern([[500.0, 500.0]], SQUARE)
        release = KernelSynthesizer(1.0, delta=1e-6, alpha=2.0, bandwidth=400.0).release(one, patterns=400)
        binomial(sum(len(each) == 0 for each in release.patterns), 400, math.exp(-1))

    def test_the_smallest_is_that_of_the_profile_summed_here(self):
        """A Poisson number, of mean patterns times a person's points, of Gaussian ones of alpha over bandwidth."""
        relation, k = AlphaNeighbours(2.0, max_points_per_person=2), np.arange(1, 200)
        chance = np.exp(k * math.log(6) - 6 - gammaln(k + 1))

        def delta(bandwidth):
            mu = np.sqrt(k) * 2.0 / bandwidth
            return float(chance @ (ndtr(mu / 2 - 1 / mu) - math.e * ndtr(-mu / 2 - 1 / mu)))

        smallest = optimize.brentq(lambda bandwidth: delta(bandwidth) / 1e-6 - 1, 1, 100)
        settings = {"relation": relation, "bandwidth": smallest * (1 - 1e-6)}
        with pytest.raises(PrivacyCheckError, match="smallest admissible"):
            KernelSynthesizer(1.0, delta=1e-6, **settings).plan(SQUARE, n=2000, patterns=3)
        settings["bandwidth"] = smallest * (1 + 1e-6)
        release = KernelSynthesizer(1.0, delta=1e-6, **settings).release(self.MANY, patterns=3)
        children = np.vstack([each.xy for each in release.patterns])
        steps = ((children - 500.0) ** 2).sum() / smallest**2
        not_rare(stats.chi2.cdf(steps * (1 + 1e-5), 2 * len(children)), stats.chi2.sf(steps, 2 * len(children)))

    def test_children_in_a_notch_are_dropped_and_not_drawn_again(self):
        """A point in a narrow arm leaves half a child in the window where its kernel has half its mass."""
        notched = Window.polygon(shapely.box(0, 0, 1000, 1000).difference(shapely.box(0, 501, 999, 1000)))
        release = KernelSynthesizer(1.0, delta=1e-6, alpha=2.0, bandwidth=50.0).release(
            PointPattern(self.MANY.xy, notched)
        )
        poisson(len(release.patterns[0]), 2000 * float(ndtr(1.0 / 50.0)))

    def test_on_a_street(self):
        pattern = PointPattern(np.tile([[2010.0, 0.0]], (2000, 1)), STREET)
        synthesizer = KernelSynthesizer(1.0, delta=1e-6, alpha=2.0, bandwidth=200.0, spacing=20.0)
        x = synthesizer.release(pattern).patterns[0].xy[:, 0]
        poisson(len(x), 2000)
        # A walk along segments of 20 m has the variance h^2, and a child is uniform in its segment.
        steps = ((x - 2010.0) ** 2).sum() / (200.0**2 + 20.0**2 / 12)
        # The walk's fourth moment exceeds the normal one by a hundredth.
        not_rare(stats.chi2.cdf(1.02 * steps, len(x)), stats.chi2.sf(steps / 1.02, len(x)))


class TestMovedPoints:
    @pytest.mark.parametrize(("cap", "track"), [(1, False), (2000, True)], ids=["points", "a track"])
    def test_lengths_follow_the_gamma_law(self, cap, track):
        """`r exp(-rate r)`, the rate epsilon over alpha and the points of a person."""
        relation = AlphaNeighbours(5.0 if cap == 1 else 0.005, max_points_per_person=cap)
        synthesizer = PlanarLaplaceSynthesizer(1.0, relation=relation, track=track)
        release = synthesizer.release(PointPattern(np.full((2000, 2), 500.0), SQUARE))
        length = np.hypot(*(release.raw - 500.0).T)
        rate = 1.0 / (relation.alpha * cap)
        not_rare(stats.gamma.cdf(length.sum() * rate, 4000), stats.gamma.sf(length.sum() * rate, 4000))
        assert stats.kstest(length * rate, "gamma", args=(2,)).pvalue > ALARM

    def test_bounded_moves_keep_to_the_law_within_the_bound(self):
        release = PlanarLaplaceSynthesizer(1.0, alpha=5.0, max_error=60.0, delta=1e-2).release(
            PointPattern(np.full((90, 2), 500.0), SQUARE)
        )
        length = np.hypot(*(release.raw - 500.0).T)
        assert length.max() <= 60.0
        law = stats.gamma(2, scale=5.0)
        assert stats.kstest(law.cdf(length) / law.cdf(60.0), "uniform").pvalue > ALARM


class TestPosteriorDraw:
    """The sampler receives the prior that the theorem speaks of, whatever the data."""

    @pytest.mark.parametrize(("sampler", "door"), [("exact", "NestedBoxes"), ("proximal", "proximal_draw")])
    @pytest.mark.parametrize("relation", [AlphaNeighbours(100.0), AddRemove()], ids=["moves", "come and go"])
    def test_prior(self, monkeypatch, sampler, door, relation):
        seen, module = [], "dpppsynth.mechanisms.lgcp.draw_statistic"
        sample = getattr(importlib.import_module(module), door)

        def spied(posterior, *rest):
            seen.append(posterior)
            return sample(posterior, *rest)

        monkeypatch.setattr(f"{module}.{door}", spied)
        settings = {"mechanism": "posterior-draw", "delta": 1e-6, "sampler": sampler, "mesh": GRID}
        synthesizer = LGCPSynthesizer(0.5, relation=relation, length_scale=300.0, **settings)
        statistic = synthesizer.plan(SQUARE, **size(relation)).statistic.measure(SCATTERED)
        prior = seen[-1].prior
        covariance = prior.basis @ prior.basis.T
        mu = gaussian_mu(0.5, 1e-6) / (_proximal_factor() if sampler == "proximal" else 1.0)
        if relation.n_is_public:
            own, x = np.diag(covariance), GRID.vertices
            apart = np.hypot(*(x[:, None] - x).transpose(2, 0, 1))
            sd = np.sqrt(np.maximum(own[:, None] + own - 2 * covariance, 0))
            # Along a side of 250 the field is linear: a move by 100 changes it by two fifths.
            assert 0.4 * sd[(apart > 0) & (apart < 251)].max() <= mu
            field = PoweredExponential(statistic.definition.covariance.sigma, 300.0).matrix(GRID)
            assert np.allclose(covariance - field, 9.0, atol=1e-6)
        else:
            assert math.sqrt(np.diag(covariance).max()) <= mu


def _proximal_factor(eta=0.1, steps=41):
    kept = (1 + eta) ** -steps
    return math.sqrt((1 + eta / 2) * (1 - kept) / (1 + kept))


def test_fields_of_bounded_slope_are_no_steeper_than_half_the_budget_per_radius():
    synthesizer = LGCPSynthesizer(1.0, alpha=100.0, mechanism="lipschitz", sampler="exact", sigma=0.3, **FIELD)
    pushed = PointPattern(np.random.default_rng(4).uniform(0, 150, (60, 2)), SQUARE)
    plan = synthesizer.plan(SQUARE, n=60)
    for _ in range(5):
        field = plan.release(pushed).statistic.values
        corner, value = GRID.vertices[GRID.elements], field[GRID.elements]
        sides, rises = corner[:, 1:] - corner[:, :1], value[:, 1:] - value[:, :1]
        slope = np.hypot(*np.linalg.solve(sides, rises[..., None])[..., 0].T)
        assert slope.max() <= 1.0 / 200.0 + 1e-7


class TestReports:
    """Everybody is in one cell; what they report is compared with the published laws, written out here."""

    CLIENTS = 5000
    PLACE = PointPattern(np.full((CLIENTS, 2), 400.0), SQUARE)

    def counts(self, mechanism, pattern=None):
        return mechanism.release(self.PLACE if pattern is None else pattern).statistic.lattice

    @pytest.mark.parametrize("epsilon", [0.7, 2.5])
    def test_disk_area(self, epsilon):
        """A cell and its four neighbours weigh e^eps, the other 20 of the 25 that are reported 1."""
        mechanism = local.DiskAreaMechanism(epsilon=epsilon, cells=3, radius=1, shrink=False)
        counts = self.counts(mechanism).reshape(5, 5)
        near = counts[2, 1:4].sum() + counts[1, 2] + counts[3, 2]
        weight = math.exp(epsilon)
        binomial(near, self.CLIENTS, 5 * weight / (5 * weight + 20))
        binomial(counts[2, 2], self.CLIENTS, weight / (5 * weight + 20))

    @pytest.mark.parametrize("epsilon", [0.7, 2.5])
    def test_hybrid_area_at_radius_zero(self, epsilon):
        """Randomised response over the cells."""
        counts = self.counts(local.HybridUniformExponential(epsilon=epsilon, cells=3, radius=0))
        binomial(counts[4], self.CLIENTS, math.exp(epsilon) / (math.exp(epsilon) + 8))

    def test_hybrid_area(self):
        """The own cell weighs e^eps, those at the far corners of 45 cells 1; one is e^eps times the other."""
        mechanism = local.HybridUniformExponential(epsilon=1.2, cells=3, radius=2)
        counts, at = self.counts(mechanism), mechanism.randomizer.outputs
        own = counts[(at == 1).all(axis=1)].sum()
        far = counts[np.hypot(*(at - 1).T) > 3.5]
        assert len(far) >= 4
        binomial(own, own + far.sum(), math.exp(1.2) / (math.exp(1.2) + len(far)))

    def test_square_wave(self):
        counts = self.counts(local.MultidimensionalSquareWave(epsilon=1.2, cells=3, half_width=1)).reshape(2, 5)
        binomial(counts[0].sum(), self.CLIENTS, 0.5)
        weight = math.exp(1.2)
        for axis in counts:
            binomial(axis[1:4].sum(), axis.sum(), 3 * weight / (3 * weight + 2))

    def test_subset_exponential(self):
        counts = self.counts(local.SEMGeoI(epsilon=0.8, cells=2, subset=1))[:4]
        weights = np.exp(-0.8 * np.sqrt([0, 1, 1, 2]))
        for cell in (1, 2, 3):
            binomial(counts[0], counts[0] + counts[cell], 1 / (1 + weights[cell]))

    @pytest.mark.parametrize("epsilon", [0.7, 2.5])
    def test_uniform_grid(self, epsilon):
        weight = math.exp(epsilon)
        response = local.UniformGrid(SQUARE, epsilon=epsilon, cells=3, oracle="randomized-response")
        binomial(self.counts(response)[4], self.CLIENTS, weight / (weight + 8))
        classes = round(weight) + 1
        hashed = self.counts(local.UniformGrid(SQUARE, epsilon=epsilon, cells=3))
        binomial(hashed[4], self.CLIENTS, weight / (weight + classes - 1))
        binomial(hashed[0], self.CLIENTS, 1 / classes)
        unary = self.counts(local.UniformGrid(SQUARE, epsilon=epsilon, cells=3, oracle="optimized-unary"))
        binomial(unary[4], self.CLIENTS, 0.5)
        binomial(np.delete(unary, 4).sum(), 8 * self.CLIENTS, 1 / (weight + 1))
        for kind in ("subset-selection", "projective-response"):
            grid = local.UniformGrid(SQUARE, epsilon=epsilon, cells=3, oracle=kind)
            law, supports = grid.randomizer, grid.randomizer.supports(self.counts(grid))
            one = law.subset / 9 if kind == "subset-selection" else law.own_points / law.size
            binomial(supports[4], self.CLIENTS, weight * one / (weight * one + 1 - one))
        flipped = self.counts(local.UniformGrid(SQUARE, epsilon=epsilon, cells=3, oracle="symmetric-unary"))
        binomial(flipped[4] + 8 * self.CLIENTS - np.delete(flipped, 4).sum(), 9 * self.CLIENTS, _half(epsilon))

    @pytest.mark.parametrize("epsilon", [0.7, 4.0])
    def test_range_hierarchy(self, epsilon):
        """Each person reports on one of two levels, as often on either, by the oracle of 16 or of 64 cells."""
        law = local.RangeHierarchy(epsilon=epsilon, cells=8).randomizer
        reports, parts = law.by_question(self.counts(local.RangeHierarchy(epsilon=epsilon, cells=8)))
        binomial(reports[0], self.CLIENTS, 0.5)
        for n, oracle, part, own in zip(reports.tolist(), law.oracles, parts, (5, 27), strict=True):
            supports, weight = oracle.supports(part), math.exp(epsilon)
            one = float(getattr(oracle, "subset", 1)) / oracle.domain
            binomial(supports[own], n, weight * one / (weight * one + 1 - one))

    def test_adaptive_grid(self):
        """Each person reports once, with the whole budget, on one of two levels."""
        mechanism = local.AdvancedAdaptiveGrid(SQUARE, epsilon=1.0, oracle="randomized-response")
        statistic = mechanism.release(self.PLACE).statistic
        plan, weight = statistic.definition, math.e
        assert sum(plan.reports) == self.CLIENTS
        for grid, counts, reports in zip(
            (plan.first, plan.second_round(plan.parts(statistic.lattice)[0])[0]),
            plan.parts(statistic.lattice),
            plan.reports,
            strict=True,
        ):
            own = int(grid.locate(np.array([[400.0, 400.0]]))[0])
            assert counts.sum() == reports
            binomial(counts[own], reports, weight / (weight + len(counts) - 1))

    def test_displacements(self):
        """Each person answers one of two questions: where they start, near 0, or that they go two cells along x."""
        walks = PointPattern(
            np.tile([[100.0, 100.0], [900.0, 100.0]], (800, 1)), SQUARE, {"trajectory": np.repeat(np.arange(800), 2)}
        )
        mechanism = local.LineTrace(epsilon=1.2, cells=5)
        law, statistic = mechanism.randomizer, mechanism.release(walks).statistic
        (starts, ways), (first, second) = law.by_question(statistic.lattice)
        binomial(starts, 800, 0.5)
        disk = law.start.matrix()[:, 0]
        near = disk > disk.min() * 1.01
        binomial(first[near].sum(), starts, disk[near].sum())
        weight, one = math.exp(1.2), law.displacement.subset / law.displacements
        binomial(law.displacement.supports(second)[3], ways, weight * one / (weight * one + 1 - one))

    def test_trajectories(self):
        """A tenth of the budget for the length; the rest in equal shares for start, end and each move."""
        walks = PointPattern(
            np.tile([[100.0, 100.0], [400.0, 100.0], [800.0, 100.0]], (800, 1)),
            SQUARE,
            {"trajectory": np.repeat(np.arange(800), 3)},
        )
        statistic = local.LDPTrace(epsilon=8.0, cells=3, max_length=6).release(walks).statistic
        lengths, second = statistic.definition.counts(statistic.lattice)
        binomial(lengths.values[2], 800, 0.5)
        binomial(np.delete(lengths.values, 2).sum(), 5 * 800, 1 / (math.exp(0.8) + 1))
        longest, counts = second.law.longest, second.law.by_part(second.values)
        other = 1 / (math.exp(0.9 * 8.0 / (longest + 1)) + 1)
        for name, cell in (("start", 0), ("end", 6)):
            binomial(counts[name][cell], 800, 0.5)
            binomial(np.delete(counts[name], cell).sum(), 8 * 800, other)
        if longest > 1:
            # Eight directions of each cell, and none; every report is about one of them.
            reports = 800 * (longest - 1)
            mean = 0.5 * reports + 72 * reports * other
            spread = math.sqrt(0.25 * reports + 72 * reports * other * (1 - other))
            assert abs(counts["moves"].sum() - mean) < 7 * spread


def _half(epsilon):
    """Chance to keep a bit that half the budget protects."""
    return math.exp(epsilon / 2) / (math.exp(epsilon / 2) + 1)

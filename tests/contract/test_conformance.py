"""Conformance: what every registered mechanism must keep, whatever it does inside.

A mechanism that is registered but has no case here fails `test_every_registered_mechanism_has_a_case`. The checks
themselves are put to the test with planted leaks at the end of each class.
"""

import contextlib
import functools
import gc
import json
import logging
import math
import re
import sys
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
import shapely
from chance import Chance

from dpppsynth import local
from dpppsynth.contract import additive_noise as statistic_module
from dpppsynth.contract import registry
from dpppsynth.contract.additive_noise import StatisticPlan, cell_counts, lattice_masses
from dpppsynth.contract.stratified_plan import STRATA
from dpppsynth.core.errors import DpppsynthError, InputError
from dpppsynth.linear_network import LinearNetwork, diffusion, network_mesh
from dpppsynth.mechanisms.bounded import plan as bounded_plan
from dpppsynth.mechanisms.heatmap import aggregation
from dpppsynth.mechanisms.heatmap.pyramid import pyramid
from dpppsynth.mechanisms.heatmap.users import Users
from dpppsynth.mechanisms.kernel import plan as kernel_plan
from dpppsynth.mechanisms.lgcp import feasibility, field_plan
from dpppsynth.mechanisms.lgcp.posterior_sampling import ConfidentialFit
from dpppsynth.mechanisms.lgcp.posterior_sampling import lipschitz_plan as lipschitz_module
from dpppsynth.mechanisms.lgcp.posterior_sampling import posterior_draw_plan as posterior_module
from dpppsynth.mechanisms.lgcp.posterior_sampling.draw_plan import DrawnField
from dpppsynth.mechanisms.lgcp.synthesizer import MECHANISMS
from dpppsynth.mechanisms.local import grid_plan
from dpppsynth.mechanisms.local import plan as local_plan
from dpppsynth.mechanisms.local.trajectories import rounds
from dpppsynth.mechanisms.planar_laplace import plan as moved_plan
from dpppsynth.models import draws as draws_module
from dpppsynth.models import regular_triangulation, trace_mesh
from dpppsynth.models.draws import NutsDraw
from dpppsynth.models.kim_lim_model import KimLimModel
from dpppsynth.models.nested_boxes import Draw, NestedBoxes
from dpppsynth.models.nuts import Diagnostics
from dpppsynth.privacy import (
    AddRemove,
    AddRemovePerson,
    AlphaNeighbours,
    GeoIndistinguishability,
    Local,
    ReplaceOne,
    laplace_noise,
    verify,
)
from dpppsynth.privacy.noise import (
    TRUNCATED,
    OpenDPGaussian,
    OpenDPLaplace,
    gaussian_noise,
    truncated_laplace_noise,
)
from dpppsynth.release import lgcp_inference as field_module
from dpppsynth.release import load_release
from dpppsynth.release.release import Release
from dpppsynth.release.stratified_release import StratifiedRelease
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import (
    BoundedErrorSynthesizer,
    HeatmapSynthesizer,
    KernelSynthesizer,
    LaplaceSynthesizer,
    LGCPSynthesizer,
    PlanarLaplaceSynthesizer,
)

SQUARE = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
RING = Window.polygon(shapely.box(0, 0, 1000, 800).difference(shapely.box(300, 300, 500, 500)), "EPSG:27700")
# Blocks of 200 m by 150 m with two dead ends, turned: no two points share a coordinate with each other or a corner.
GRID = [[x, y] for y in (0, 150, 300, 450) for x in (0, 200, 400, 600)] + [[600, 520], [-70, 150]]
STREETS = LinearNetwork(
    np.array(GRID) @ [[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]] + [300, 200],
    [(4 * j + i, 4 * j + i + 1) for j in range(4) for i in range(3)]
    + [(4 * j + i, 4 * j + i + 4) for j in range(3) for i in range(4) if (i, j) != (1, 1)]
    + [(15, 16), (4, 17)],
    "EPSG:27700",
)
N, EXPECTED = 1009, 400.0
RELATIONS = [
    AlphaNeighbours(25.0),
    AlphaNeighbours(25.0, max_points_per_person=3),
    ReplaceOne(),
    ReplaceOne(3),
    AddRemove(),
    AddRemove(3),
]


@dataclass(frozen=True)
class Case:
    """A mechanism with its options, and how to run it."""

    mechanism: str
    label: str
    build: Callable[[], HeatmapSynthesizer | LaplaceSynthesizer | LGCPSynthesizer | KernelSynthesizer]
    window: Window | LinearNetwork = SQUARE

    @functools.cached_property
    def synthesizer(self):
        return self.build()

    @property
    def hides_n(self):
        return not self.synthesizer.neighbouring().n_is_public

    @property
    def public(self):
        return {"expected_n": EXPECTED} if self.hides_n else {"n": N}

    def plan(self):
        return self.synthesizer.plan(self.window, **self.public)

    @functools.cached_property
    def known_plan(self):
        """A plan for several tests, where none has to be new."""
        return self.plan()

    def check(self):
        return self.synthesizer.check(self.window, **self.public)

    def release(self, pattern, rng=None, **options):
        guess = {"expected_n": EXPECTED} if self.hides_n else {}
        return self.synthesizer.release(pattern, rng, **guess, **options)

    def patterns(self):
        """Two patterns that have nothing in common but the window, and n where it is public."""
        one, other = points(1, N, self.window), points(2, 157 if self.hides_n else N, self.window, clustered=True)
        return self.marked(one), self.marked(other)

    def marked(self, pattern):
        """The pattern with the marks that the mechanism asks for."""
        return pattern

    def __str__(self):
        return f"{self.mechanism}, {self.label}"


class ByYear(Case):
    """The same for each level of a mark."""

    levels = ("2021", "2022")

    @property
    def public(self):
        return {"expected_n": EXPECTED} if self.hides_n else {"n": {"2021": N - 400, "2022": 400}}

    def plan(self):
        return self.synthesizer.plan_by(self.window, by="year", levels=self.levels, **self.public)

    def check(self):
        return self.plan().guarantee

    def release(self, pattern, rng=None, **options):
        guess = {"expected_n": EXPECTED} if self.hides_n else {}
        return self.synthesizer.release_by(pattern, rng, by="year", levels=self.levels, **guess, **options)

    def patterns(self):
        return tuple(by_year(pattern, 9 if self.hides_n else 400) for pattern in super().patterns())

    def marked(self, pattern):
        return pattern


class ByPerson(Case):
    """Every person has three points."""

    def marked(self, pattern):
        return PointPattern(pattern.xy, pattern.domain, {"user": np.arange(len(pattern)) // 3})


class ByTrajectory(Case):
    """N trajectories, of which some or all have more than one point; how many points they have is secret."""

    def patterns(self):
        return self.marked(points(1, N + 300, self.window)), self.marked(points(2, 3 * N, self.window, clustered=True))

    def marked(self, pattern):
        return PointPattern(pattern.xy, pattern.domain, {"trajectory": np.arange(len(pattern)) % N})


def by_year(pattern, late):
    """Mark the first `late` points as of 2022."""
    year = np.where(np.arange(len(pattern)) < late, 2022, 2021)
    return PointPattern(pattern.xy, pattern.domain, {"year": year})


def parts(release):
    """The releases of the levels, or the one release."""
    return list(release.releases.values()) if isinstance(release, StratifiedRelease) else [release]


def plans(plan):
    return [each.statistic for each in getattr(plan, "plans", {"": plan}).values()]


def save(release, folder, rng=None, patterns=1):
    """Synthetic patterns are drawn on saving, where they are free."""
    paid = any(hasattr(part, "patterns") for part in parts(release))
    return release.save(folder) if paid else release.save(folder, patterns=patterns, rng=rng)


def released(release):
    """The numbers that came out."""
    statistics = [part.statistic for part in parts(release)]
    return np.concatenate([s.patterns[0].xy.ravel() if hasattr(s, "patterns") else s.lattice for s in statistics])


def points(seed, n, window, *, clustered=False):
    rng = np.random.default_rng(seed)
    if isinstance(window, LinearNetwork):
        likely = window.lengths * (np.arange(len(window.lengths)) < 5 if clustered else 1)
        edge = rng.choice(len(likely), n, p=likely / likely.sum())
        return window.pattern(edge, rng.random(n))
    xy = rng.normal([200, 150], 30, (9 * n, 2)) if clustered else rng.uniform(0, 1000, (9 * n, 2))
    return PointPattern(xy[window.contains(xy)][:n], window)


def cases():
    for basis in ("cells", "tents"):
        for relation in RELATIONS:
            for post in ("clip", "keep-n")[: 1 + relation.n_is_public]:
                yield Case(
                    f"laplace-{basis}",
                    f"{relation}, {post}",
                    functools.partial(LaplaceSynthesizer, 1.0, relation=relation, basis=basis, postprocess=post),
                )
        build = functools.partial(LaplaceSynthesizer, 1.0, alpha=25.0, basis=basis)
        yield Case(f"laplace-{basis}", "polygon with a hole", build, RING)
    tents = functools.partial(LGCPSynthesizer, 1.0, inference="laplace", length_scale=450.0)
    for relation in RELATIONS:
        yield Case("lgcp-tents", f"{relation}, laplace", functools.partial(tents, relation=relation))
    yield Case("lgcp-tents", "offset", functools.partial(tents, 25.0, offset=QUARTERS))
    yield Case("lgcp-tents", "polygon with a hole", functools.partial(tents, relation=AddRemove()), RING)
    yield from field_cases()
    yield from kernel_cases()
    yield from strata_cases()
    yield from street_cases()
    for label, window, options in (
        ("practical", SQUARE, {"w": 6}),
        ("polygon with a hole, theory", RING, {"variant": "theory", "shape": (16, 11)}),
    ):
        build = functools.partial(HeatmapSynthesizer, **{"epsilon": 1.0, "shape": (16, 16)} | options)
        yield ByPerson("heatmap", label, build, window)
    yield from local_cases()
    yield from bounded_cases()


def bounded_cases():
    """Mechanisms with a hard bound on their error."""
    for relation in RELATIONS:
        build = functools.partial(BoundedErrorSynthesizer, epsilon=1.0, delta=1e-6, relation=relation)
        yield Case("bounded-cells", str(relation), build)
    few = functools.partial(BoundedErrorSynthesizer, epsilon=1.0, max_error=40, spacing=200.0, postprocess="keep-n")
    for window in (RING, STREETS):
        yield Case("bounded-cells", f"keep-n, {type(window).__name__}", few, window)
    by_level = functools.partial(BoundedErrorSynthesizer, epsilon=1.0, max_error=40, spacing=300.0)
    yield ByYear("strata", "bounded counts", by_level)
    for relation in RELATIONS[:2]:
        yield Case("planar-laplace", str(relation), functools.partial(PlanarLaplaceSynthesizer, 1.0, relation=relation))
    yield Case("planar-laplace", "bounded", functools.partial(PlanarLaplaceSynthesizer, 1.0, 1e-6, 25.0), RING)
    track = functools.partial(AlphaNeighbours, 25.0, max_points_per_person=N)
    walk = functools.partial(PlanarLaplaceSynthesizer, 1e3, relation=track(), max_error=900.0, track=True)
    yield Case("planar-laplace", "track", walk)
    moved = functools.partial(PlanarLaplaceSynthesizer, 1.0, alpha=25.0, max_error=500.0)
    yield ByYear("strata", "moved points", moved)


def local_cases():
    """Mechanisms whose clients randomise themselves."""
    for mechanism, build in (
        ("disk-area", functools.partial(local.DiskAreaMechanism, 1.0, cells=6)),
        ("hybrid-area", functools.partial(local.HybridUniformExponential, 1.0, cells=5, radius=2)),
        ("square-wave", functools.partial(local.MultidimensionalSquareWave, 1.0, cells=6)),
        ("subset-exponential", functools.partial(local.SEMGeoI, 1.0, cells=6)),
    ):
        yield Case(mechanism, "square", build)
    yield Case("disk-area", "polygon with a hole", functools.partial(local.DiskAreaMechanism, 1.0, cells=9), RING)
    for window, oracle in ((SQUARE, "local-hashing"), (RING, "auto")):
        grid = functools.partial(local.UniformGrid, window, epsilon=1.0, cells=(9, 4), oracle=oracle)
        yield Case("uniform-grid", oracle, grid, window)
    even = functools.partial(local.PrivAG, SQUARE, epsilon=3.0, alpha=0.1, consistent=False, oracle="optimized-unary")
    yield Case("adaptive-grid", "even", even)
    uneven = functools.partial(local.AdvancedAdaptiveGrid, RING, epsilon=3.0, alpha2=1.0)
    yield Case("adaptive-grid", "adaptive, polygon with a hole", uneven, RING)
    for label, window in (("square", SQUARE), ("polygon with a hole", RING)):
        yield ByTrajectory("trajectories", label, functools.partial(local.LDPTrace, 3.0, cells=5, max_length=6), window)


def street_cases():
    """Everything again on a network."""
    for relation in RELATIONS:
        if ("kernel-diffusion", relation) not in REFUSED:
            build = functools.partial(KernelSynthesizer, 10.0, 1e-6, relation=relation, spacing=100.0)
            yield Case("kernel-diffusion", str(relation), build, STREETS)
    for relation in (RELATIONS[0], RELATIONS[3], RELATIONS[5]):
        for basis in ("cells", "tents"):
            build = functools.partial(LaplaceSynthesizer, 1.0, relation=relation, basis=basis)
            yield Case(f"laplace-{basis}", f"streets, {relation}", build, STREETS)
        build = functools.partial(LGCPSynthesizer, 1.0, inference="laplace", length_scale=300.0, relation=relation)
        yield Case("lgcp-tents", f"streets, {relation}", build, STREETS)
        yield lgcp("field", relation, STREETS, delta=1e-6, inference="laplace")
        yield lgcp("posterior-draw", relation, STREETS, delta=1e-6, sampler="exact")
    yield lgcp("lipschitz", RELATIONS[0], STREETS, sampler="exact")
    yield Case("lgcp-tents", "streets, offset", functools.partial(tents_with, QUARTERS), STREETS)
    yield lgcp("kim-lim-3.8", AlphaNeighbours(25.0), STREETS, epsilon=200.0, delta=5e-4)
    by_level = functools.partial(LaplaceSynthesizer, 1.0, alpha=25.0, basis="tents", spacing=150.0)
    yield ByYear("strata", "streets, tents", by_level, STREETS)
    by_level = functools.partial(KernelSynthesizer, 10.0, 1e-6, 25.0, spacing=100.0)
    yield ByYear("strata", "streets, kernel", by_level, STREETS)


def tents_with(offset):
    return LGCPSynthesizer(1.0, 25.0, inference="laplace", length_scale=300.0, offset=offset)


def lgcp(mechanism, relation, window=SQUARE, **options):
    streets = isinstance(window, LinearNetwork)
    mesh = network_mesh(window, 100.0) if streets else regular_triangulation(window, shape=(6, 6))
    if streets and mechanism == "lipschitz":
        # Only fields in the plane are gentle.
        mesh = trace_mesh(window, shape=(6, 6))
    build = functools.partial(
        LGCPSynthesizer,
        **{"epsilon": 1.0} | options,
        relation=relation,
        mechanism=mechanism,
        mesh=mesh,
        length_scale=450.0,
    )
    described = ["polygon with a hole"] if window is RING else [relation, *options.values()]
    label = ", ".join(map(str, ["streets", *described] if streets else described))
    return Case(f"lgcp-{mechanism}", label, build, window)


def field_cases():
    """Mechanisms of a Gaussian field."""
    for relation in RELATIONS:
        yield lgcp("field", relation, delta=1e-6, inference="laplace")
        yield lgcp("posterior-draw", relation, delta=1e-6, sampler="exact")
        if ("lgcp-lipschitz", relation) not in REFUSED:
            yield lgcp("lipschitz", relation, sampler="exact")
    yield lgcp("posterior-draw", AddRemove(), delta=1e-6, sampler="proximal")
    yield lgcp("posterior-draw", ReplaceOne(), delta=1e-6, sampler="auto", offset=QUARTERS)
    for mechanism, options in (
        ("field", {"delta": 1e-6, "inference": "laplace"}),
        ("posterior-draw", {"delta": 1e-6}),
        ("lipschitz", {"sampler": "exact"}),
    ):
        yield lgcp(mechanism, AlphaNeighbours(25.0), RING, **options)
    for bound in ("3.8", "3.9"):
        yield lgcp(f"kim-lim-{bound}", AlphaNeighbours(25.0), epsilon=200.0, delta=5e-4)


def kernel_cases():
    for relation in RELATIONS:
        if ("kernel", relation) not in REFUSED:
            yield Case("kernel", str(relation), functools.partial(KernelSynthesizer, 10.0, 1e-6, relation=relation))
    for label, options, window in (("3.6", {"bound": "kim-lim-3.6"}, SQUARE), ("polygon with a hole", {}, RING)):
        yield Case("kernel", label, functools.partial(KernelSynthesizer, 10.0, 1e-6, 25.0, **options), window)


def strata_cases():
    for relation in RELATIONS:
        build = functools.partial(LaplaceSynthesizer, 1.0, relation=relation, basis="tents")
        yield ByYear("strata", f"tents, {relation}", build)
    draws = lgcp("posterior-draw", AlphaNeighbours(25.0), delta=1e-6, sampler="exact")
    yield ByYear("strata", f"draws, {draws.label}", draws.build)
    yield ByYear("strata", "kernel", functools.partial(KernelSynthesizer, 10.0, 1e-6, 25.0))


def nuts_cases():
    # Under add/remove as well inference sees the private statistic alone; the statistic is in the fast cases.
    build = functools.partial(LGCPSynthesizer, 1.0, alpha=25.0, inference="nuts", length_scale=900.0)
    for case in (
        Case("lgcp-tents", "nuts", build),
        lgcp("posterior-draw", AlphaNeighbours(25.0), delta=1e-6, sampler="nuts"),
    ):
        yield pytest.param(case, marks=pytest.mark.slow)


# What no theorem covers, and the words of the refusal.
ONE_MOVE = r"^relation: Kim & Lim's bounds are for alpha-neighbours with one point per person"
CLUSTER = r"^relation: adding or removing a point adds or removes its whole cluster"
DISTANCE = r"^relation: needs a AlphaNeighbours, got .*; the bound grows with the distance"
REFUSED = (
    {(kernel, relation): CLUSTER for relation in RELATIONS[4:] for kernel in ("kernel", "kernel-diffusion")}
    | {
        ("lgcp-lipschitz", relation): r"^relation: 'add-remove' has no guarantee from the slope"
        for relation in RELATIONS[4:]
    }
    | {("planar-laplace", relation): DISTANCE for relation in RELATIONS[2:]}
    | {(f"lgcp-kim-lim-{bound}", relation): ONE_MOVE for bound in ("3.8", "3.9") for relation in RELATIONS[1:]}
)
# One report for each person, whatever the others do.
LOCAL = dict.fromkeys(("disk-area", "hybrid-area", "square-wave", "uniform-grid", "adaptive-grid"), Local()) | {
    "subset-exponential": GeoIndistinguishability(6),
    "trajectories": Local("trajectory"),
}
QUARTERS = Offset.from_grid([[1.0, 2.0], [3.0, 0.5]], (0, 0, 1000, 1000))
FAST = list(cases())
EVERY = [*FAST, *nuts_cases()]


@pytest.fixture(scope="module", autouse=True)
def few_draws():
    """Nothing here depends on how many posterior draws are kept, nor on who draws them from a private statistic."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(field_module, "KEPT_DRAWS", 80)
        patch.setattr("dpppsynth.models.nuts.Sampler", Chance)
        yield


LAPLACE = [
    case
    for case in FAST
    if case.mechanism.startswith("laplace") or case.mechanism == "lgcp-tents" or " tents" in f" {case.label}"
]
# One of each kind for the checks of the checks.
TYPICAL = Case(
    "laplace-tents", "typical", functools.partial(LaplaceSynthesizer, 1.0, relation=AddRemove(), basis="tents")
)
ONE_OF_EACH = list({case.mechanism: case for case in FAST}.values())


def over(cases):
    """Run a test over cases; one process runs all tests of a case (`conftest`), and makes its plan and release once."""
    return pytest.mark.parametrize("case", list(cases), ids=str)


@functools.cache
def seeded_release(case):
    return case.release(case.patterns()[0], 5)


@pytest.fixture(scope="module")
def seeded_folder(tmp_path_factory):
    """The seeded release of a case, saved with one synthetic pattern; not to be changed."""
    return functools.cache(lambda case: save(seeded_release(case), tmp_path_factory.mktemp("seeded") / "public", 8))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Few attempts settle "auto"; Kim & Lim's model, which only NUTS knows, is replaced by masses and chance."""
    monkeypatch.setattr(feasibility, "TRIALS", 50)
    monkeypatch.setattr(KimLimModel, "draw", lambda self, masses, rng, engine: noisy(masses, rng))


def noisy(masses, rng):
    return NutsDraw(masses / masses.max() + rng.normal(-8, 0.1, len(masses)), Diagnostics(1.0, 1000.0, 0))


def test_every_registered_mechanism_has_a_case():
    assert {case.mechanism for case in FAST} == {*registry.names(), STRATA}
    assert {f"lgcp-{name}" for name in MECHANISMS} <= {case.mechanism for case in FAST}
    for mechanism in (*registry.names(), STRATA):
        seen = {case.synthesizer.neighbouring() for case in FAST if case.mechanism == mechanism}
        if mechanism == "heatmap":
            assert seen == {AddRemovePerson()}
            continue
        if mechanism in LOCAL:
            assert seen == {LOCAL[mechanism]}
            continue
        refused = {relation for name, relation in REFUSED if name == mechanism}
        assert set(RELATIONS) <= seen | refused, mechanism
        assert not seen & refused


@pytest.mark.parametrize(("mechanism", "relation"), REFUSED, ids=str)
def test_what_no_theorem_covers_is_refused_before_the_data(mechanism, relation):
    size = {"n": N} if relation.n_is_public else {"expected_n": EXPECTED}
    settings = {} if "lipschitz" in mechanism else {"delta": 1e-6}
    settings |= {} if "kernel" in mechanism else {"mechanism": mechanism[5:]}
    settings = {"delta": 1e-6} if mechanism == "planar-laplace" else settings
    kind = {"kernel": KernelSynthesizer, "kernel-diffusion": KernelSynthesizer}.get(mechanism, LGCPSynthesizer)
    kind = PlanarLaplaceSynthesizer if mechanism == "planar-laplace" else kind
    with pytest.raises(InputError, match=REFUSED[mechanism, relation]):
        kind(1.0, relation=relation, **settings).plan(STREETS if "diffusion" in mechanism else SQUARE, **size)


def test_replacing_a_point_needs_a_convex_window_for_a_slope():
    with pytest.raises(InputError, match=r"^relation: 'replace-one' needs a convex window here"):
        LGCPSynthesizer(1.0, relation=ReplaceOne(), mechanism="lipschitz").plan(RING, n=N)


@over([case for case in FAST if case.mechanism != "strata"])
def test_certificates_name_the_mechanism(case):
    assert case.known_plan.mechanism == case.mechanism


# --- 1. Non-interference: with the noise replaced by constants, no trace of the pattern is left ----------------------


class Constant:
    """Noise that forgets its input: what comes out is fixed by public numbers."""

    name, seeded = OpenDPLaplace.name, False

    def __init__(self, scale, **public):
        self._scale = scale

    def add(self, values):
        return np.random.default_rng(7).integers(0, 6 * int(self._scale) + 2, len(values))


class ConstantGaussian(Constant):
    """The same in the place of discrete Gaussian noise."""

    name = OpenDPGaussian.name


class ConstantTruncated(Constant):
    """The same in the place of noise within a bound."""

    name = TRUNCATED + OpenDPLaplace.name

    def __init__(self, scale, bound, **public):
        super().__init__(scale)


class Recorder(logging.Handler):
    """Every record of every logger."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.lines = []

    def emit(self, record):
        self.lines.append(f"{record.name} {record.levelname} {record.getMessage()}")


def observe(case, pattern, folder, capfd):
    """Everything that anybody could see of a run: result, files, messages."""
    capfd.readouterr()
    messages, recorder = [], Recorder()
    root = logging.getLogger()
    level = root.level
    root.addHandler(recorder)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            release = case.release(pattern, 5, progress=messages.append)
            save(release, folder, 6, patterns=2)
    finally:
        root.removeHandler(recorder)
        root.setLevel(level)
    own = [line for line in recorder.lines if not line.startswith(("numba", "pytensor", "asyncio", "matplotlib"))]
    return {
        "repr": [repr(release), *(repr(getattr(part, name, "")) for part in parts(release) for name in PUBLIC)],
        "plan": [repr(part.statistic.plan) for part in parts(release)],
        "guarantee": str(release.guarantee),
        "values": [
            part.intensity(points(3, 50, case.window).xy).tolist()
            for part in parts(release)
            if hasattr(part, "intensity")
        ],
        "names": [p.name for p in sorted(folder.iterdir())],
        "files": {p.name: p.read_bytes() for p in sorted(folder.iterdir())},
        "progress": messages,
        "warnings": [str(w.message) for w in warned],
        "log": own,
        "output": tuple(capfd.readouterr()),
    }


# What a result shows of itself, beside its `repr`.
PUBLIC = ("statistic", "estimator", "intensity", "patterns")


def forget(monkeypatch, case):
    """Replace everything that draws by something that looks at public numbers alone.

    Attempts and diagnostics, which must stay with the custodian, still tell of the pattern.
    """
    monkeypatch.setattr(statistic_module, "laplace_noise", Constant)
    monkeypatch.setattr(field_plan, "gaussian_noise", ConstantGaussian)
    monkeypatch.setattr(aggregation, "laplace_noise", Constant)
    monkeypatch.setattr(bounded_plan, "truncated_laplace_noise", ConstantTruncated)
    monkeypatch.setattr(moved_plan, "move", lambda xy, **public: np.arange(2 * len(xy)).reshape(-1, 2))
    for module in (local_plan, grid_plan):
        monkeypatch.setattr(module, "tally", reports_of_nobody)
    monkeypatch.setattr(rounds, "_unary", reports_of_nobody)
    monkeypatch.setattr(NestedBoxes, "draw", lambda self, rng, support=None: Draw(flat(self._centre), told(self._mass)))
    monkeypatch.setattr(posterior_module, "proximal_draw", lambda posterior, rng: flat(posterior.prior.precision))
    run = lambda posterior, rng, **options: nuts(posterior.masses)  # noqa: E731
    monkeypatch.setattr(posterior_module, "nuts_draw", run)
    monkeypatch.setattr(lipschitz_module, "nuts_draw", run)
    monkeypatch.setattr(KimLimModel, "draw", lambda self, masses, rng, engine: nuts(masses))
    monkeypatch.setattr(kernel_plan, "sample_children", lambda xy, *public: points(3, 40, case.window).xy)
    monkeypatch.setattr(diffusion, "sample_children", lambda mesh, *public: points(3, 40, case.window).positions)


def reports_of_nobody(randomizer, values, rng):
    """Counts of as many reports, which is public, by clients who all have the first value."""
    return randomizer.count(randomizer.draw(np.zeros_like(values), np.random.default_rng(7)))


def nuts(masses):
    return NutsDraw(flat(masses), Diagnostics(1.0, 400.0 + told(masses), 0))


def told(masses):
    """A number that differs between patterns."""
    return 1 + int(1000 * masses.max()) % 1009


def flat(like):
    """A field that knows nothing."""
    return np.random.default_rng(7).normal(-8, 0.5, len(like))


def differences(case, tmp_path, monkeypatch, capfd):
    forget(monkeypatch, case)
    one, other = (observe(case, p, tmp_path / str(i) / "public", capfd) for i, p in enumerate(case.patterns()))
    if one != other:  # some things are only said the first time, whatever the pattern
        one = observe(case, case.patterns()[0], tmp_path / "again" / "public", capfd)
    return {key for key in one if one[key] != other[key]}


class TestNonInterference:
    # Inference by NUTS sees what inference by Laplace sees; the other classes run it.
    @over([*FAST, *list(nuts_cases())[1:]])
    def test_two_patterns_give_one_result(self, case, tmp_path, monkeypatch, capfd):
        assert differences(case, tmp_path, monkeypatch, capfd) == set()

    @pytest.mark.parametrize(
        ("name", "where"),
        [
            ("statistic", "values"),
            ("noise name", "files"),
            ("plan", "files"),
            ("log", "log"),
            ("warning", "warnings"),
            ("print", "output"),
        ],
    )
    def test_planted_leaks_are_seen(self, name, where, tmp_path, monkeypatch, capfd):
        measure = StatisticPlan.measure

        def leaky(self, pattern, rng=None):
            result, secret = measure(self, pattern, rng), len(pattern)
            match name:
                case "statistic":
                    return replace(result, lattice=result.lattice + secret)
                case "noise name":
                    return replace(result, noise=f"{result.noise} {secret}")
                case "plan":
                    return replace(result, plan=replace(self, expected_n=float(secret)))
                case "log":
                    logging.getLogger("dpppsynth").debug("%s points", secret)
                case "warning":
                    warnings.warn(f"{pattern.xy[0]}", stacklevel=1)
                case "print":
                    sys.stderr.write(f"{secret}\n")
            return result

        monkeypatch.setattr(StatisticPlan, "measure", leaky)
        assert where in differences(TYPICAL, tmp_path, monkeypatch, capfd)

    @pytest.mark.parametrize(("name", "where"), [("Chatty", "progress"), ("Drifting", "files")])
    def test_planted_leaks_around_the_statistic_are_seen(self, name, where, tmp_path, monkeypatch, capfd):
        build = functools.partial(globals()[name], 1.0, relation=AddRemove(), basis="tents")
        assert where in differences(Case("laplace-tents", name, build), tmp_path, monkeypatch, capfd)


class Chatty(LaplaceSynthesizer):
    """Tells how many points it sees."""

    def release(self, pattern, rng=None, *, progress=lambda text: None, **options):
        progress(f"measuring {len(pattern)} points")
        return super().release(pattern, rng, **options)


class Drifting(LaplaceSynthesizer):
    """Draws released patterns with a generator that was advanced once per point."""

    def release(self, pattern, rng=None, **options):
        release, drifted = super().release(pattern, rng, **options), np.random.default_rng(5)
        drifted.random(len(pattern))
        save = type(release).save
        object.__setattr__(
            release, "save", lambda path, *, patterns, rng: save(release, path, patterns=patterns, rng=drifted)
        )
        return release


# --- 2. Nothing sensitive can be reached from a result ---------------------------------------------------------------

# The world behind these is everybody's; private state of functions is reached through their closures and defaults.
WORLD = (types.ModuleType, types.BuiltinFunctionType, types.CodeType, types.FrameType, logging.Logger)


def reachable(root, most=300_000):
    """Every object that can be reached, arrays' bases included."""
    seen, queue = {}, [root]
    while queue:
        thing = queue.pop()
        if id(thing) in seen or isinstance(thing, WORLD):
            continue
        seen[id(thing)] = thing
        assert len(seen) < most, "the object graph has no end: a result must be small"
        if isinstance(thing, type):
            continue
        if isinstance(thing, types.FunctionType):
            queue += [*(thing.__closure__ or ()), *(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
            queue.append(thing.__dict__)
            continue
        queue += gc.get_referents(thing)
        queue += list(vars(thing).values()) if hasattr(thing, "__dict__") else []
        if isinstance(thing, np.ndarray):
            queue += [thing.base] if thing.base is not None else []
            queue += thing.ravel().tolist() if thing.dtype == object else []
        if isinstance(thing, memoryview):
            queue.append(thing.obj)
    return list(seen.values())


def sensitive(case, pattern, root):
    """Parts of the pattern that can be reached from `root`, released patterns aside."""
    paid = [p for part in parts(root) for p in getattr(part, "patterns", [])] if hasattr(root, "mechanism") else []
    public = {id(thing) for p in paid for thing in (p, p.xy)}
    secret = types.SimpleNamespace(
        masses=exact_masses(case, pattern),
        coordinates=rounded(pattern.xy) | rounded(pattern.xy.astype(np.float32)),
        packed={np.float64(c).tobytes() for c in pattern.xy.ravel()},
    )
    return {kind(thing, secret) for thing in reachable(root) if id(thing) not in public} - {None}


def exact_masses(case, pattern):
    meshes = [plan.mesh for plan in plans(case.known_plan) if hasattr(plan, "mesh")]
    exact = [np.asarray(mesh.basis(pattern.positions).sum(axis=0)).ravel() for mesh in meshes]
    for mesh in meshes:
        exact += [cell_counts(mesh, pattern.positions), *(lattice_masses(mesh, pattern.positions, b) for b in (0, 20))]
    for plan in plans(case.known_plan) if case.mechanism == "heatmap" else ():
        users = plan.users(pattern)
        exact += [each.ravel() for each in (users.cell, users.mass, users.total(), *pyramid(users.lattice())[3:])]
    return exact


def kind(thing, secret):
    """Kind of sensitive data that a thing is, if any."""
    match thing:
        case PointPattern() | ConfidentialFit() | DrawnField() | NestedBoxes() | Users():
            return "a pattern"
        case float() if round(thing, 7) in secret.coordinates:
            return "a coordinate"
        case shapely.Geometry() if secret.coordinates & rounded(shapely.get_coordinates(thing)):
            return "a geometry"
        case np.ndarray() if thing.dtype.kind == "f" and secret.coordinates & rounded(thing):
            return "an array of coordinates"
        case np.ndarray() if thing.dtype.kind in "fiu" and any(
            thing.size == e.size and np.allclose(thing.ravel(), e, atol=1e-3) for e in secret.masses
        ):
            return "exact masses"
        case bytes() if any(c in thing for c in secret.packed):
            return "bytes of coordinates"
    return None


def rounded(array):
    return set(np.round(array.astype(float), 7).ravel().tolist())


class TestReachable:
    @over(EVERY)
    def test_nothing_sensitive(self, case):
        pattern = case.patterns()[0]
        release = seeded_release(case)
        with contextlib.suppress(DpppsynthError, AttributeError):
            release.sample(1, rng=6)
        with contextlib.suppress(DpppsynthError, AttributeError):
            _ = release.posterior
        assert sensitive(case, pattern, release) == set()
        for part in parts(release):
            for synthetic in getattr(part, "patterns", []):
                assert not set(synthetic.xy.ravel().tolist()) & set(pattern.xy.ravel().tolist())

    def test_nor_with_secret_noise(self):
        pattern = TYPICAL.patterns()[0]
        assert sensitive(TYPICAL, pattern, TYPICAL.release(pattern)) == set()

    @pytest.mark.parametrize("case", ONE_OF_EACH, ids=str)
    def test_nor_from_a_plan_that_has_been_used(self, case):
        pattern, plan = case.patterns()[0], case.plan()
        plan.release(pattern)
        assert sensitive(case, pattern, plan) == set()

    def test_a_fit_that_is_kept_is_seen(self):
        case = next(c for c in FAST if c.mechanism == "lgcp-posterior-draw")
        pattern, plan = case.patterns()[0], case.plan()
        plan.statistic.__dict__["last"] = plan.statistic.fit(pattern)
        assert sensitive(case, pattern, plan) == {"a pattern"}

    def test_persons_that_are_kept_are_seen(self):
        case = next(c for c in FAST if c.mechanism == "heatmap")
        pattern, plan = case.patterns()[0], case.plan()
        plan.statistic.__dict__["last"] = plan.statistic.users(pattern)
        assert sensitive(case, pattern, plan) >= {"a pattern", "exact masses"}

    @pytest.mark.parametrize(
        ("hide", "found"),
        [
            (lambda p, m: p, "a pattern"),
            (lambda p, m: p.xy[5:9].copy(), "an array of coordinates"),
            (lambda p, m: {"deep": [(p.xy[0, 0].item(), None)]}, "a coordinate"),
            (lambda p, m: p.xy.astype(np.float64).tobytes(), "bytes of coordinates"),
            (lambda p, m: shapely.points(p.xy[:3]), "a geometry"),
            (lambda p, m: lattice_masses(m, p.xy, 20) / 2.0**20, "exact masses"),
            (lambda p, m: lambda: p.xy, "a pattern"),
            (lambda p, m: np.concatenate([p.xy, p.xy])[::2][3:4], "an array of coordinates"),
        ],
        ids=["pattern", "rows", "number", "bytes", "geometries", "masses", "closure", "view"],
    )
    def test_planted_leaks_are_seen(self, hide, found):
        pattern = TYPICAL.patterns()[0]
        release = TYPICAL.release(pattern)
        mesh = release.statistic.plan.mesh
        mesh.__dict__["_cache"] = hide(pattern, mesh)
        assert found in sensitive(TYPICAL, pattern, release)


# --- 3. Words --------------------------------------------------------------------------------------------------------


class TestWords:
    @over(EVERY)
    def test_of_a_result_hold_public_numbers_alone(self, case):
        pattern = case.patterns()[0]
        release = seeded_release(case)
        words = [repr(getattr(part, name, "")) for part in parts(release) for name in PUBLIC]
        words += [repr(release), *(repr(part.statistic.plan) for part in parts(release))]
        words += [str(release.guarantee), repr(case.known_plan), repr(case.synthesizer)]
        text = " ".join(words)
        assert not re.search(rf"\b{N}\b", text) or not case.hides_n
        numbers = set(re.findall(r"\d+\.\d{3,}", text))
        assert not any(f"{c:.9f}".startswith(number) for c in pattern.xy.ravel() for number in numbers)

    @over(EVERY)
    def test_of_errors_hold_no_number_of_the_pattern(self, case):
        plan, pattern = case.known_plan, points(4, 733, case.window)
        marked = PointPattern(pattern.xy, case.window, {"age": np.arange(733)})
        elsewhere = PointPattern(pattern.xy, Window.rectangle(0, 0, 1000, 1001, "EPSG:27700"))
        wrong = [marked, case.marked(elsewhere)] + ([] if case.hides_n and case.mechanism != "heatmap" else [pattern])
        if case.mechanism == "strata":
            wrong = [marked, pattern, by_year(elsewhere, 400), by_year(pattern, 733)]
        for bad in wrong:
            with pytest.raises(DpppsynthError) as caught:
                plan.release(bad)
            assert not re.search(r"\d", re.sub(r"202\d", "", str(caught.value)))
            assert caught.value.__cause__ is None


# --- 4. What was checked is what is verified -------------------------------------------------------------------------


class TestCertificate:
    @over(EVERY)
    def test_check_is_what_an_auditor_finds(self, case, tmp_path, monkeypatch):
        # Certificates are written from public parameters; those of the seeded releases, drawn by NUTS, are read below.
        monkeypatch.setattr(draws_module, "Sampler", Chance)
        check = case.check()
        folder = save(case.release(case.patterns()[0]), tmp_path / "public", patterns=0)
        outcome = verify(folder)
        assert outcome.holds
        outcome.require()
        assert outcome.guarantee.to_dict() == check.to_dict()
        assert outcome.guarantee.epsilon() == check.epsilon() <= case.synthesizer.epsilon
        cert = json.loads((folder / "certificate.json").read_text())
        assert cert["mechanism"] == case.mechanism
        assert cert["releasable"]
        strata = [part["parameters"] for part in cert["parameters"].get("strata", [])] or [cert["parameters"]]
        assert [part["expected_n"] for part in strata] == [EXPECTED if case.hides_n else None] * len(strata)
        if case.hides_n:
            assert {part["n"] for part in strata} == {None}
        else:
            assert sum(part["n"] for part in strata) == N

    @over(EVERY)
    def test_a_seed_is_confessed(self, case, seeded_folder):
        release = seeded_release(case)
        assert release.seeded
        assert "not private" in repr(release)
        folder = seeded_folder(case)
        cert = json.loads((folder / "certificate.json").read_text())
        assert (cert["seeded"], cert["releasable"]) == (True, False)
        assert "not private" in cert["warning"]
        assert [c.name for c in verify(folder).checks if not c.holds] == ["randomness"]
        assert load_release(folder).seeded

    @over(FAST)
    def test_two_private_releases_differ(self, case):
        plan, pattern = case.known_plan, case.patterns()[0]
        if case.mechanism == "strata":
            one, other = (plan.release(pattern) for _ in range(2))
        else:
            one, other = (Release(case.mechanism, plan.statistic.measure(pattern)) for _ in range(2))
        assert not one.seeded
        size = min(len(released(one)), len(released(other)))
        assert np.mean(released(one)[:size] != released(other)[:size]) > 0.3

    @over(FAST)
    def test_is_laplace_noise_where_it_is_thought_to_be(self, case):
        assert (type(plans(case.known_plan)[0]) is StatisticPlan) == (case in LAPLACE)

    @over([case for case in FAST if case.mechanism == "bounded-cells"])
    def test_noise_within_a_bound_is_asked_for_as_promised(self, case, monkeypatch):
        """The scale and the bound that reach the sampler are those of the guarantee."""
        asked = []

        def spy(scale, bound, **arguments):
            asked.append((scale, bound, arguments["sensitivity"], arguments["epsilon"]))
            return truncated_laplace_noise(scale, bound, **arguments)

        monkeypatch.setattr(bounded_plan, "truncated_laplace_noise", spy)
        plan = case.known_plan
        plan.release(case.patterns()[0])
        # A plan that is made asks as well, for what does not go together is refused before the data.
        [(scale, bound, sensitivity, epsilon)] = set(asked)
        profile = plan.guarantee.profile
        assert (scale, bound) == (profile.scale, profile.bound)
        assert sum(profile.shifts) == sensitivity
        assert sensitivity / scale <= epsilon == case.synthesizer.epsilon

    @over([case for case in FAST if case.mechanism == "planar-laplace"])
    def test_points_are_moved_as_promised(self, case, monkeypatch):
        """The rate and the bound that reach the sampler are those of the guarantee."""
        asked, move = [], moved_plan.move
        monkeypatch.setattr(moved_plan, "move", lambda xy, **public: (asked.append(public), move(xy, **public))[1])
        plan = case.known_plan.statistic
        case.known_plan.release(case.patterns()[0])
        [public] = asked
        k, alpha = plan.relation.max_points_per_person, plan.relation.alpha * plan.domain.scale_factor
        assert public["epsilon"] * k * alpha == pytest.approx(case.synthesizer.epsilon, rel=1e-14)
        assert public["bound"] == math.inf if plan.max_error is None else public["bound"] < plan.max_error
        assert (plan.guarantee.profile.at > 0) == (public["bound"] < math.inf)

    @over(LAPLACE)
    def test_noise_is_asked_for_as_promised(self, case, monkeypatch):
        """The scale that reaches the sampler is the one the guarantee was computed from."""
        asked = []

        def spy(scale, **arguments):
            asked.append((scale, arguments["sensitivity"], arguments["epsilon"]))
            return laplace_noise(scale, **arguments)

        monkeypatch.setattr(statistic_module, "laplace_noise", spy)
        plan = case.known_plan
        plan.release(case.patterns()[0])
        for scale, sensitivity, epsilon in asked:
            assert plan.guarantee.epsilon() == sensitivity / scale <= epsilon == case.synthesizer.epsilon
        assert len(asked) == len(plans(plan))

    @over(c for c in FAST if c.mechanism == "heatmap")
    def test_so_is_noise_on_every_level(self, case, monkeypatch):
        """Joint loss of all levels on a person who weighs one on each; and no cell gets noise twice."""
        asked, noised = [], []

        def spy(scale, **arguments):
            asked.append((scale, arguments["sensitivity"], arguments["epsilon"]))
            noise = laplace_noise(scale, **arguments)
            return types.SimpleNamespace(add=lambda values: (noised.append(len(values)), noise.add(values))[1])

        monkeypatch.setattr(aggregation, "laplace_noise", spy)
        plan = case.known_plan
        released = plan.statistic.measure(case.patterns()[0])
        assert math.fsum(sensitivity / scale for scale, sensitivity, _ in asked) == plan.guarantee.epsilon()
        assert plan.guarantee.epsilon() <= math.fsum(epsilon for *_, epsilon in asked)
        assert len(asked) == len(noised) == len(plan.statistic.budgets.epsilons)
        assert sum(noised) == len(released.lattice)

    @over(c for c in FAST if c.mechanism == "lgcp-field")
    def test_so_is_gaussian_noise(self, case, monkeypatch):
        asked = []

        def spy(scale, **arguments):
            asked.append((scale, arguments["sensitivity"], arguments["mu"]))
            return gaussian_noise(scale, **arguments)

        monkeypatch.setattr(field_plan, "gaussian_noise", spy)
        plan = case.known_plan
        plan.statistic.measure(case.patterns()[0])
        ((scale, sensitivity, mu),) = asked
        assert sensitivity / scale <= mu * (1 + 1e-12) == plan.guarantee.mu * (1 + 1e-12)

    @over(c for c in FAST if c.mechanism == "lgcp-posterior-draw")
    def test_draws_come_from_the_prior_of_the_guarantee(self, case):
        """The sampled prior varies between neighbours no more than the Gaussian parameter says, at the vertices."""
        plan, relation = case.known_plan.statistic, case.synthesizer.neighbouring()
        prior, vertices = plan.prior, plan.mesh.vertices
        assert (prior.precision == 1).all()
        allowed = plan.guarantee.mu / relation.max_points_per_person
        if case.hides_n:
            assert np.sqrt((prior.basis**2).sum(axis=1)).max() <= allowed * (1 + 1e-9)
            return
        i, j = np.triu_indices(len(vertices), 1)
        sd = np.sqrt(((prior.basis[i] - prior.basis[j]) ** 2).sum(axis=1))
        apart = plan.mesh.path_lengths[i, j] if case.window is STREETS else np.hypot(*(vertices[i] - vertices[j]).T)
        near = apart <= relation.reach
        assert not near.any() or sd[near].max() <= allowed * (1 + 1e-9)
        # Along an edge the field is linear: a move takes its share of the edge's increment.
        edge = apart
        touching = edge <= edge.min() * (1 + 1e-9)
        share = np.minimum(1, relation.reach / edge[touching])
        assert (sd[touching] * share).max() <= allowed * (1 + 1e-9)


# --- 5. Saved files --------------------------------------------------------------------------------------------------

SECRET_N = 1709


def near(written, values, room=0.00051):
    """Whether each value stands among the written numbers, to three decimals."""
    padded = np.concatenate([[-np.inf], written, [np.inf]])
    place = np.searchsorted(padded, values)
    return np.minimum(values - padded[place - 1], padded[place] - values) < room


def holds(content, arrays):
    """Whether any eight bytes of the arrays stand in the content, at whatever offset."""
    needles = np.concatenate([np.frombuffer(a.tobytes(), np.uint64) for a in arrays])
    return any(
        np.isin(np.frombuffer(content, np.uint64, (len(content) - start) // 8, start), needles).any()
        for start in range(min(8, len(content)))
    )


def traces(folder, pattern, *, n):
    """Original coordinates, and the number of points where `n` is asked for, in names and contents of files."""
    found = set()
    pairs = [pattern.xy, pattern.xy.T[:, : len(pattern) // 2 * 2]]  # in single precision, two neighbours in a row
    packed = [pattern.xy.astype(d) for d in ("<f8", ">f8")] + [p.astype(d) for p in pairs for d in ("<f4", ">f4")]
    counts = [np.array([len(pattern)], d) for d in ("<i8", ">i8", "<f8", ">f8")]
    for path in folder.rglob("*"):
        content = path.read_bytes()
        text = content.decode("latin-1")
        if path.suffix in {".json", ".geojson"}:
            written = np.unique([float(number) for number in re.findall(r"\d+\.\d{3,}", text)])
            # On a line points meet by chance to three decimals, not to six.
            room = 5.1e-7 if pattern.domain is STREETS else 0.00051
            found |= {"coordinates as text"} if near(written, pattern.xy, room).all(axis=1).any() else set()
            number = rf"(?<![\d.]){len(pattern)}(?:\.0)?(?![\d.])"
            found |= {"the number of points"} if n and re.search(number, f"{path.stem} {text}") else set()
        else:
            found |= {"coordinates in binary"} if holds(content, packed) else set()
            found |= {"the number of points in binary"} if n and holds(content, counts) else set()
    return found


class TestFiles:
    @over(EVERY)
    def test_hold_no_trace_of_the_pattern(self, case, seeded_folder):
        """Seeded, so that a synthetic point which meets an original one by chance does so for good."""
        assert traces(seeded_folder(case), case.patterns()[0], n=False) == set()

    @over(c for c in FAST if c.hides_n)
    def test_hold_no_count_where_it_is_secret(self, case, tmp_path):
        pattern = case.marked(points(5, SECRET_N, case.window))
        pattern = by_year(pattern, 400) if case.mechanism == "strata" else pattern
        folder = save(case.release(pattern, 5), tmp_path / "public", 9, patterns=2)
        assert "the number of points" not in traces(folder, pattern, n=True)
        assert "the number of points in binary" not in traces(folder, pattern, n=True)

    @pytest.mark.parametrize(
        ("name", "write", "found"),
        [
            ("synthetic_009.geojson", lambda p: json.dumps({"xy": p.xy[:1].tolist()}), "coordinates as text"),
            ("notes.json", lambda p: json.dumps(np.round(p.xy[3], 3).tolist()), "coordinates as text"),
            ("cache.nc", lambda p: b"CDF" + p.xy[:2].astype(">f4").tobytes(), "coordinates in binary"),
            ("notes.json", lambda p: json.dumps({"total": float(len(p))}), "the number of points"),
            ("run-40.json", lambda p: "{}", "the number of points"),
            ("cache.nc", lambda p: np.int64(len(p)).tobytes(), "the number of points in binary"),
        ],
    )
    def test_planted_traces_are_seen(self, name, write, found, tmp_path):
        pattern = points(1, 40, SQUARE)
        content = write(pattern)
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        assert found in traces(tmp_path, pattern, n=True)

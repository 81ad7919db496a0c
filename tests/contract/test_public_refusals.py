"""Public parameters are refused by `plan`, before a ledger or a point is touched.

Every registered mechanism is driven to extremes: a plan that is accepted is released on a surrogate pattern and saved,
and nothing may refuse it any more.
"""

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

import numpy as np
import pytest
import scipy.linalg
from support.cases import RING, SQUARE, STREETS, points
from support.seams import chance_for_nuts, few_simulations, one_prior

from dpppsynth import local
from dpppsynth.contract import registry
from dpppsynth.contract.examples import N
from dpppsynth.core.errors import InputError, PrivacyCheckError, QualityError
from dpppsynth.inference.lgcp_inference import LGCPInference
from dpppsynth.ledger import Ledger
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.mechanisms.marked.mechanism import BOTH
from dpppsynth.mechanisms.marked.mechanism import marks as with_marks
from dpppsynth.models import regular_triangulation, trace_mesh
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne
from dpppsynth.privacy.noise import OpenDPGaussian, OpenDPLaplace
from dpppsynth.spatial.mark_space import Marks, Times
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import (
    BoundedErrorSynthesizer,
    HeatmapSynthesizer,
    KernelSynthesizer,
    LaplaceSynthesizer,
    LGCPSynthesizer,
    MarkedSynthesizer,
    PairSums,
    PlanarLaplaceSynthesizer,
)

FEW = 60
# More points than any pattern has: such plans are made, but not released.
MOST = 2**53
TINY, HUGE = 1e-300, 1e300
EPSILONS = (TINY, 1e-8, 45.0, HUGE)
ENDS = (TINY, HUGE)
AWAY = Offset.from_grid([[1.0]], (5000, 5000, 6000, 6000), fill=0)
VAST = Offset.from_grid([[1.5e308]], (0, 0, 1000, 1000))


@dataclass(frozen=True)
class Extreme:
    """A mechanism at the border of what its public parameters may be."""

    mechanism: str
    label: str
    build: Callable
    window: object = SQUARE
    n: float = FEW
    secret: bool = False
    user: str | None = None
    marks: Callable | None = None
    options: dict = field(default_factory=dict)

    def plan(self):
        size = {"expected_n": self.n} if self.secret else {"n": self.n}
        return self.build().plan(self.window, **({} if self.user == "user" else size), **self.options)

    def pattern(self):
        n = FEW if self.secret else self.n
        pattern = points(1, n, self.window)
        if self.marks is not None:
            return PointPattern(pattern.xy, self.window, self.marks(n))
        person = np.arange(n) // (3 if self.user == "user" else 1)
        return pattern if self.user is None else PointPattern(pattern.xy, self.window, {self.user: person})

    def __str__(self):
        place = {id(SQUARE): "square", id(RING): "ring", id(STREETS): "streets"}[id(self.window)]
        return f"{self.mechanism}, {self.label}, {place}"


def varied(mechanism, make, window=SQUARE, *, user=None, **lists):
    """One argument after the other at each of its extremes."""
    for name, values in lists.items():
        for value in values:
            build = functools.partial(make, **{name: value})
            yield Extreme(mechanism, f"{name}={str(value)[:30]}", build, window, user=user)


def sized(mechanism, make, window=SQUARE, *, user=None, sizes=(1, MOST)):
    """Few points, and very many."""
    for n in sizes:
        yield Extreme(mechanism, f"n={n}", make, window, n=n, user=user)


def secret(mechanism, make, window=SQUARE, epsilons=EPSILONS):
    """Under add/remove, where n is guessed."""
    hidden = functools.partial(make, relation=AddRemove())
    for epsilon in epsilons:
        build = functools.partial(hidden, epsilon=epsilon)
        yield Extreme(mechanism, f"secret n, {epsilon=}", build, window, secret=True)
    for guess in (TINY, MOST, HUGE):
        yield Extreme(mechanism, f"expected_n={guess:g}", hidden, window, n=guess, secret=True)


def of_counts():
    for basis, window in itertools.product(("cells", "tents"), (SQUARE, STREETS)):
        name = f"laplace-{basis}"
        made = functools.partial(LaplaceSynthesizer, epsilon=1.0, basis=basis, spacing=200.0)
        make = functools.partial(made, postprocess="plain")
        caps = [ReplaceOne(cap) for cap in (FEW, 10**9, 10**18)]
        near = functools.partial(make, alpha=25.0)
        yield from varied(name, near, window, epsilon=EPSILONS, alpha=ENDS, spacing=(1e-9, None, HUGE))
        yield from varied(name, make, window, relation=caps)
        yield from sized(name, near, window)
        yield from secret(name, make, window)
        if (basis, window) not in (("cells", STREETS), ("tents", SQUARE)):
            continue
        # With a field behind them, coarsely: the question is who refuses. One basis on each domain suffices here, as
        # the same fields are behind the other one in `of_fields`.
        field = functools.partial(made, spacing=300.0)
        behind = functools.partial(field, alpha=25.0)
        yield from varied(name, behind, window, epsilon=EPSILONS, alpha=ENDS, spacing=(1e-9, None, HUGE))
        yield from varied(name, field, window, relation=caps[1:])
        yield from sized(name, behind, window)
        yield from secret(name, field, window)
    for window in (SQUARE, STREETS):
        make = functools.partial(BoundedErrorSynthesizer, spacing=300.0)
        given, spent = functools.partial(make, delta=1e-6), functools.partial(make, epsilon=1.0)
        bounds = (1, 10**6, 2**60)
        yield from varied("bounded-cells", given, window, epsilon=EPSILONS, max_error=bounds)
        yield from varied("bounded-cells", spent, window, delta=(TINY, 0.004), max_error=bounds)
        yield from sized("bounded-cells", functools.partial(given, epsilon=1.0), window)


def of_fields():
    for window in (SQUARE, STREETS):
        streets = isinstance(window, LinearNetwork)
        fine = network_mesh(window, 0.5) if streets else regular_triangulation(window, shape=(80, 80))
        coarse = network_mesh(window, 150.0) if streets else regular_triangulation(window, shape=(5, 5))
        for mechanism, options in (
            ("tents", {"inference": "laplace"}),
            *([("cells", {"inference": "laplace"})] if streets else []),
            ("field", {"inference": "laplace", "delta": 1e-6}),
            ("posterior-draw", {"sampler": "proximal", "delta": 1e-6}),
            ("lipschitz", {"sampler": "nuts"}),
            ("kim-lim-3.8", {"delta": 1e-4}),
            ("kim-lim-3.9", {"delta": 1e-4}),
        ):
            name, laid = f"lgcp-{mechanism}", coarse
            if streets and mechanism == "lipschitz":
                laid = trace_mesh(window, shape=(5, 5))
            make = functools.partial(LGCPSynthesizer, epsilon=1.0, mechanism=mechanism, mesh=laid, **options)
            near, scales = functools.partial(make, alpha=25.0), (TINY, 1e-3, 1e100, HUGE)
            lists = {"epsilon": EPSILONS, "alpha": ENDS, "length_scale": scales, "offset": (AWAY, VAST)}
            # Such meshes give tents on streets a field in the plane, and Kim & Lim in a window a sum over all pairs.
            slow = mechanism in ("tents", "cells") if streets else mechanism.startswith("kim-lim")
            meshes = () if slow else (fine,)
            yield from varied(name, near, window, mesh=meshes, **lists)
            yield from sized(name, near, window)
            if mechanism in ("field", "posterior-draw", "lipschitz"):
                yield from varied(name, near, window, sigma=ENDS)
            if mechanism in ("tents", "cells", "field", "posterior-draw"):
                yield from secret(name, make, window)
        yield from of_clusters(window, coarse)
        yield from of_moved(window, trace_mesh(window, shape=(5, 5)) if streets else coarse, [] if streets else [fine])
        near = functools.partial(LGCPSynthesizer, 1.0, alpha=25.0, mesh=coarse, length_scale=400.0)
        yield from varied("lgcp-tents", near, window, engine=("nutpie", "pymc"), inference=("nuts", "laplace"))
        draw = functools.partial(near, mechanism="posterior-draw", delta=1e-6)
        yield from varied("lgcp-posterior-draw", draw, window, sampler=("auto", "nuts"))
        yield Extreme("lgcp-posterior-draw", f"auto, n={MOST}", draw, window, n=MOST)


def of_clusters(window, coarse):
    settings = {"clusters": 0.3, "inference": "laplace", "length_scale": 400.0}
    make = functools.partial(LGCPSynthesizer, epsilon=1.0, mesh=coarse, **settings)
    lists = {
        "epsilon": EPSILONS,
        "alpha": ENDS,
        "clusters": (TINY, 1 - 1e-12),
        # Those that are only just fine enough for streets are the pair sums' below.
        "cluster_radii": ([TINY], *[[1e-2]] * (window is SQUARE), [1e-3, 900.0], [HUGE]),
        "cluster_caps": (1, 2**20, 2**60),
        "cluster_places": ("shared",),
    }
    yield from varied("lgcp-clusters", functools.partial(make, alpha=25.0), window, **lists)
    yield from sized("lgcp-clusters", functools.partial(make, alpha=25.0), window)
    # Noise that drowns the points leaves as many as patterns may have, whose simulations in a window take long.
    yield from secret("lgcp-clusters", make, window, EPSILONS if window is STREETS else (TINY, *EPSILONS[2:]))


def of_moved(window, coarse, fine):
    near = functools.partial(LGCPSynthesizer, epsilon=1.0, alpha=25.0, mechanism="moved", mesh=coarse)
    caps = [AlphaNeighbours(25.0, max_points_per_person=cap) for cap in (FEW, 10**9, 10**18)]
    lists = {"epsilon": EPSILONS, "alpha": ENDS, "length_scale": (TINY, 1e-3, 400.0, 1e100), "offset": (AWAY, VAST)}
    given = functools.partial(near, length_scale=400.0)
    yield from varied("lgcp-moved", given, window, mesh=(None, *fine), **lists)
    yield from varied("lgcp-moved", functools.partial(given, alpha=None), window, relation=caps)
    yield from sized("lgcp-moved", given, window)


def of_kernels():
    for name, window, options in (
        ("kernel", SQUARE, {}),
        ("kernel", RING, {}),
        ("kernel-diffusion", STREETS, {"spacing": 150.0}),
    ):
        make = functools.partial(KernelSynthesizer, epsilon=10.0, delta=1e-6, **options)
        near = functools.partial(make, alpha=25.0)
        lists = {"epsilon": EPSILONS, "delta": (TINY, 1e-3), "alpha": ENDS, "bandwidth": (TINY, 1e5, HUGE)}
        yield from varied(name, near, window, **lists)
        yield from sized(name, near, window)
        free = functools.partial(make, epsilon=1e4, alpha=1e-3)
        for patterns in (3, 10**7, 10**18):
            yield Extreme(name, f"{patterns=}", free, window, options={"patterns": patterns})
    yield from varied("kernel-diffusion", near, STREETS, spacing=(1e-9, 0.5, HUGE))
    bound = functools.partial(KernelSynthesizer, epsilon=10.0, delta=1e-6, alpha=25.0, bound="kim-lim-3.6")
    yield from varied("kernel", bound, epsilon=EPSILONS, delta=(TINY, 1e-3))


of_a_heat_map = functools.partial(varied, "heatmap", user="user")


def of_persons():
    make = functools.partial(HeatmapSynthesizer, epsilon=1.0, shape=(16, 16))
    shapes = ((1, 2), (2, 1), (700, 1), (2**40, 2**40))
    yield from of_a_heat_map(make, epsilon=EPSILONS, shape=shapes, w=(1, 10**3, 2**60), decay=(TINY, 1.0))
    yield from of_a_heat_map(functools.partial(make, variant="theory"), epsilon=EPSILONS)
    for window in (SQUARE, RING):
        moved = functools.partial(PlanarLaplaceSynthesizer, epsilon=1.0, alpha=25.0)
        lists = {"epsilon": EPSILONS, "alpha": ENDS, "delta": (TINY, 0.004), "max_error": (TINY, 1e-3, 1e9, HUGE)}
        yield from varied("planar-laplace", moved, window, **lists)
        yield from varied("planar-laplace", functools.partial(moved, delta=1e-6), window, epsilon=EPSILONS)
        yield from sized("planar-laplace", moved, window)
    track = functools.partial(PlanarLaplaceSynthesizer, 1e3, track=True)
    caps = [AlphaNeighbours(25.0, max_points_per_person=cap) for cap in (FEW - 1, FEW, 10**9)]
    yield from varied("planar-laplace", track, relation=caps)


def of_reports():
    budgets = (TINY, 1e-8, 20.0, 50.0, HUGE)
    for name, kind in (
        ("disk-area", local.DiskAreaMechanism),
        ("hybrid-area", local.HybridUniformExponential),
        ("square-wave", local.MultidimensionalSquareWave),
        ("subset-exponential", local.SEMGeoI),
    ):
        make = functools.partial(kind, epsilon=1.0, cells=4)
        yield from varied(name, make, epsilon=budgets, cells=(1, 2, 1001))
        yield from sized(name, make)
    for oracle in (
        "local-hashing", "randomized-response", "optimized-unary", "hadamard-response", "subset-selection",
        "projective-response", "auto",
    ):  # fmt: skip
        grid = functools.partial(local.UniformGrid, SQUARE, epsilon=1.0, cells=4, oracle=oracle)
        yield from varied("uniform-grid", grid, epsilon=budgets, cells=(1, (1, 2), 5000))
        for kind in (local.PrivAG, local.AdvancedAdaptiveGrid):
            adaptive = functools.partial(kind, SQUARE, epsilon=1.0, oracle=oracle)
            yield from varied("adaptive-grid", adaptive, epsilon=(*budgets[:2], 3.0))
            yield from sized("adaptive-grid", adaptive, sizes=(1, 2))
    yield from varied("adaptive-grid", adaptive, sigma=(TINY, 1 - 1e-12))
    yield from sized("uniform-grid", grid)
    hierarchy = functools.partial(local.RangeHierarchy, epsilon=1.0, cells=4)
    yield from varied("range-hierarchy", hierarchy, epsilon=budgets, cells=(1, 2, 3, 256, 512))
    yield from sized("range-hierarchy", hierarchy)
    trace = functools.partial(local.LDPTrace, epsilon=1.0, cells=4, max_length=6)
    lists = {"epsilon": budgets, "cells": (1, 2, 30), "max_length": (1, 2, 1000)}
    yield from varied("trajectories", trace, user="trajectory", **lists)
    yield from sized("trajectories", trace, user="trajectory")
    lines = functools.partial(local.LineTrace, epsilon=1.0, cells=4)
    lists = {"epsilon": budgets, "cells": (1, 2, 64, 65), "reach": (1, 16, 17)}
    yield from varied("displacements", lines, user="trajectory", **lists)
    yield from sized("displacements", lines, user="trajectory")


def of_pairs():
    make = functools.partial(PairSums, epsilon=1.0, radii=[50.0, 200.0], cap=10)
    lists = {
        "epsilon": EPSILONS,
        "radii": ([TINY], [1e-2], [1e-3, 900.0], [HUGE]),
        "cap": (1, 2**20, 2**60),
        "shares": ([TINY, 1.0], [0.5, 0.5]),
        "steps": (1, 16),
    }
    for window in (SQUARE, STREETS):
        yield from varied(
            "pair-sums", make, window, **lists, relation=[ReplaceOne(cap) for cap in (FEW, 10**9, 10**18)]
        )
        yield from sized("pair-sums", make, window)
        yield from secret("pair-sums", make, window)
        persons = functools.partial(make, user="user")
        # Of the radii that are only just fine enough for streets, those of points above suffice.
        radii = [each for each in lists["radii"] if window is SQUARE or each != [1e-2]]
        yield from varied("pair-sums-persons", persons, window, user="user", **lists | {"radii": radii})


def of_marks():
    near = AlphaNeighbours(25.0, time=1.0, types="public")
    make = functools.partial(MarkedSynthesizer, epsilon=1.0, marks=BOTH, spacing=300.0)
    ends = [
        *(AlphaNeighbours(alpha, time=24.0, types="public") for alpha in ENDS),
        AlphaNeighbours(TINY, time=TINY, types="public"),
        AlphaNeighbours(25.0, time="public", types="protected"),
        ReplaceOne(10**18),
    ]
    tight = [Marks(BOTH.types, Times("hour", 0.0, 24.0, hats=hats)) for hats in (3, 24)]
    for window in (SQUARE, STREETS):
        at = functools.partial(make, relation=near)
        cases = [
            *varied("marked-tents", at, window, epsilon=EPSILONS, spacing=(1e-9, None, HUGE), marks=tight),
            *varied("marked-tents", make, window, relation=ends),
            *sized("marked-tents", at, window),
            *secret("marked-tents", make, window),
        ]
        if window is SQUARE:
            kept = functools.partial(AlphaNeighbours, time="public", types="public")
            move = functools.partial(make, epsilon=0.1, mechanism="moved")
            moved = functools.partial(move, relation=kept(25.0))
            cases += [
                *varied("marked-moved", moved, window, epsilon=EPSILONS, spacing=(1e-9, None, HUGE), marks=tight),
                *varied("marked-moved", move, window, relation=[kept(alpha) for alpha in ENDS]),
                *sized("marked-moved", moved, window),
            ]
        yield from (replace(case, marks=with_marks) for case in cases)


EXTREMES = [*of_marks(), *of_counts(), *of_fields(), *of_kernels(), *of_persons(), *of_reports(), *of_pairs()]


@pytest.fixture(autouse=True)
def nuts_is_quick():
    """Chance in the place of NUTS: the question is who refuses, and when."""
    with chance_for_nuts(), few_simulations(), one_prior():
        yield


def use(release, folder):
    """Draw from it where that is quick, and write it."""
    if hasattr(release, "patterns"):
        return release.save(folder)
    few = release.intensity.total < 1e5
    return release.save(folder, patterns=int(few))


def test_every_registered_mechanism_is_driven_to_extremes():
    assert {extreme.mechanism for extreme in EXTREMES} | {"strata"} == {*registry.names(), "strata"}


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("extreme", EXTREMES, ids=str)
def test_what_plan_accepts_is_not_refused_later(extreme, tmp_path):
    try:
        plan = extreme.plan()
    except (InputError, PrivacyCheckError):
        return
    if not extreme.secret and extreme.n == MOST:
        return
    use(plan.release(extreme.pattern()), tmp_path / "public")


MESH = regular_triangulation(SQUARE, shape=(80, 80))
NEAR = {"epsilon": 1.0, "alpha": 25.0}
COARSE = regular_triangulation(SQUARE, shape=(5, 5))


class TestPlans:
    """Refusals that came after the spend."""

    @pytest.mark.parametrize(
        ("synthesizer", "words"),
        [
            (LGCPSynthesizer(**NEAR, mesh=MESH), "^mesh: .*6000 vertices"),
            (LGCPSynthesizer(**NEAR, mechanism="lipschitz", sampler="nuts", mesh=MESH), "^mesh: .*6000 vertices"),
            (LGCPSynthesizer(**NEAR, mesh=COARSE, length_scale=1e300), "^length_scale: must lie"),
            (
                LGCPSynthesizer(1e300, alpha=25.0, mechanism="lipschitz", sampler="nuts", mesh=COARSE),
                "^slope: must lie",
            ),
            (
                LGCPSynthesizer(
                    **NEAR, mechanism="posterior-draw", delta=1e-6, sampler="proximal", mesh=COARSE, offset=AWAY
                ),
                "^offset: its integral over the window",
            ),
            (PlanarLaplaceSynthesizer(1e300, alpha=25.0), "^epsilon: must be a number from"),
        ],
    )
    def test_refuse_what_no_points_can_change(self, synthesizer, words):
        with pytest.raises(InputError, match=words):
            synthesizer.check(SQUARE, n=N)

    @pytest.mark.parametrize(
        "make",
        [
            functools.partial(LaplaceSynthesizer, 1e-9, spacing=100.0, postprocess="plain"),
            functools.partial(BoundedErrorSynthesizer, epsilon=1e-5, delta=1e-6, spacing=10.0),
        ],
    )
    def test_refuse_noise_that_fills_the_memory(self, make):
        with pytest.raises(InputError, match=r"^epsilon: .* points of noise"):
            make(relation=AddRemove()).check(SQUARE, expected_n=100)

    @pytest.mark.slow
    def test_refuse_more_patterns_than_memory_holds(self):
        with pytest.raises(InputError, match=r"^patterns: .* memory"):
            KernelSynthesizer(1e4, delta=1e-6, alpha=1e-3).check(SQUARE, n=10**5, patterns=10**4)

    def test_refuse_guesses_beyond_any_number_of_points(self):
        with pytest.raises(InputError, match=r"^expected_n: must be at most"):
            LaplaceSynthesizer(1.0, relation=AddRemove(), spacing=100.0).check(SQUARE, expected_n=1e300)

    def test_make_the_noise_that_the_release_will_have(self):
        plan = LaplaceSynthesizer(**NEAR, spacing=100.0, postprocess="plain").plan(SQUARE, n=N)
        plan.statistic.__dict__["scale"] = 0.5
        with pytest.raises(PrivacyCheckError, match=r"^noise: scale 0\.5 spends epsilon"):
            replace(plan)

    @pytest.mark.slow
    @pytest.mark.parametrize("scale", [float("nan"), -1.0])
    def test_opendp_is_not_quoted(self, scale):
        with pytest.raises(PrivacyCheckError, match=r"^noise: OpenDP confirms none of this scale"):
            OpenDPLaplace(scale, sensitivity=1, epsilon=1.0)
        with pytest.raises(PrivacyCheckError, match=r"^noise: OpenDP confirms none of this scale"):
            OpenDPGaussian(scale, sensitivity=1.0, mu=1.0)

    def test_a_ledger_is_not_touched(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.json", epsilon=2.0, delta=1e-5, alpha=25.0)
        before = ledger.path.read_bytes()
        with pytest.raises(InputError, match="6000 vertices"):
            LGCPSynthesizer(**NEAR, mesh=MESH, inference="laplace").release(points(1, FEW, SQUARE), ledger=ledger)
        assert ledger.path.read_bytes() == before


class TestArguments:
    """Errors in the public arguments of a release cost no budget."""

    @pytest.fixture
    def ledger(self, tmp_path):
        return Ledger.create(tmp_path / "ledger.json", epsilon=2.0, delta=1e-5, alpha=25.0)

    @pytest.fixture
    def years(self):
        xy = points(1, FEW, SQUARE).xy
        return PointPattern(xy, SQUARE, {"year": np.repeat([2021, 2022], FEW // 2)})

    @pytest.mark.parametrize("way", ["plan", "levels", "release_by"])
    def test_of_what_is_told(self, way, ledger, years):
        tents = LaplaceSynthesizer(**NEAR, basis="tents", spacing=200.0, postprocess="plain")
        before = ledger.path.read_bytes()
        sizes, levels = {2021: FEW // 2, 2022: FEW // 2}, {"by": "year", "levels": [2021, 2022]}
        release = {
            "plan": functools.partial(tents.release, years.unmarked()),
            "levels": functools.partial(tents.plan_by(SQUARE, **levels, n=sizes).release, years),
            "release_by": functools.partial(tents.release_by, years, **levels),
        }[way]
        with pytest.raises(InputError, match=r"^progress: must be a function"):
            release(ledger=ledger, progress=5)
        assert ledger.path.read_bytes() == before

    def test_of_the_mark_and_the_domain(self, ledger, years):
        tents, before = (
            LaplaceSynthesizer(**NEAR, basis="tents", spacing=200.0, postprocess="plain"),
            ledger.path.read_bytes(),
        )
        plan = tents.plan_by(SQUARE, by="month", levels=[1, 2], n={1: FEW // 2, 2: FEW // 2})
        with pytest.raises(InputError, match=r"^by: needs a pattern with the mark 'month'"):
            plan.release(years, ledger=ledger)
        with pytest.raises(InputError, match=r"^by: needs a pattern with the mark 'month'"):
            tents.release_by(years, by="month", levels=[1, 2], ledger=ledger)
        plan = tents.plan_by(RING, by="year", levels=[2021, 2022], n={2021: FEW // 2, 2022: FEW // 2})
        with pytest.raises(InputError, match=r"^pattern: its domain differs"):
            plan.release(years, ledger=ledger)
        assert ledger.path.read_bytes() == before

    @pytest.mark.parametrize("name", ["\ud800", "a\nb", "a\x00", "\x1b[2J"])
    def test_of_names_that_no_file_holds(self, name):
        tents = LaplaceSynthesizer(**NEAR, basis="tents", spacing=200.0, postprocess="plain")
        with pytest.raises(InputError, match=r"^levels: must be texts that files can hold"):
            tents.plan_by(SQUARE, by="year", levels=["2021", name], n={"2021": 5, name: 5})
        with pytest.raises(InputError, match=r"^by: needs the name of a mark"):
            tents.plan_by(SQUARE, by=name, levels=["2021"], n={"2021": 5})


@pytest.mark.parametrize("error", [scipy.linalg.LinAlgError("no"), FloatingPointError, MemoryError, RuntimeError])
def test_a_statistic_outlives_whatever_ends_its_inference(error, tmp_path):
    errors = [error]

    class Failing(LGCPInference):
        def fit(self, *arguments):
            if errors:
                raise errors.pop()
            return super().fit(*arguments)

    ledger = Ledger.create(tmp_path / "ledger.json", epsilon=2.0, delta=1e-5, alpha=25.0)
    plan = LGCPSynthesizer(**NEAR, mesh=COARSE).plan(SQUARE, n=FEW)
    failing = Failing(**{each.name: getattr(plan.estimator, each.name) for each in fields(plan.estimator)})
    with pytest.raises(QualityError, match="Nothing is lost") as caught:
        replace(plan, estimator=failing).release(points(1, FEW, SQUARE), ledger=ledger)
    assert [entry.state for entry in ledger.releases] == ["measured"]
    assert caught.value.release.infer(inference="laplace").draws is not None

"""The auditor put to the package's own mechanisms: all stay below their claims, and broken ones are found out.

Audits run with false alarms of 1e-6 each, some seventy in all. NUTS mechanisms, whose draws take seconds, are audited
by `benchmarks/audit.py`, heat maps in `test_heatmap_audit.py`, local mechanisms in `test_local_audit.py`.
"""

import json
import pickle
import re
import shutil
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import shapely
from scipy import stats
from support.seams import randomise_by, randomised_by
from typer.testing import CliRunner

from dpppsynth import cli
from dpppsynth.auditing import AuditStatistic, audit
from dpppsynth.auditing.targets import Measure, audit_of, target_of, target_of_release
from dpppsynth.contract import registry
from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.contract.audits.neighbouring_pairs import changed, require_neighbours
from dpppsynth.contract.audits.statistics import for_patterns, patterns_of, total
from dpppsynth.core.errors import InputError, ReleaseBlocked
from dpppsynth.core.randomness import generator
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.mechanisms.local.statistic import ReportsStatistic
from dpppsynth.models import regular_triangulation, trace_mesh
from dpppsynth.models.covariances import PoweredExponential
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne
from dpppsynth.privacy.bounds import laplace_scale
from dpppsynth.privacy.noise import OpenDPGaussian, OpenDPLaplace
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.gaussian_kernel import sample_children
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import KernelSynthesizer, LaplaceSynthesizer, LGCPSynthesizer

SQUARE = Window.rectangle(0, 0, 1000, 1000)
GRID = regular_triangulation(SQUARE, shape=(3, 3))
RING = Window.polygon(shapely.box(0, 0, 1000, 800).difference(shapely.box(300, 300, 500, 500)))
# A slit: 2 m across, 1.6 km around.
SLIT = Window.polygon(shapely.box(0, 0, 1000, 1000).difference(shapely.box(499, 0, 501, 800)))
STREET = LinearNetwork([[0, 0], [400, 0], [800, 0]], [[0, 1], [1, 2]])
BLOCK = LinearNetwork([[0, 0], [300, 0], [300, 300], [0, 300]], [[0, 1], [1, 2], [2, 3], [3, 0]])
# Two streets 10 m apart that meet 400 m away.
HAIRPIN = LinearNetwork([[0, 0], [400, 0], [400, 10], [0, 10]], [[0, 1], [1, 2], [2, 3]])
SEGMENTS = network_mesh(STREET, 400)
N = 20
RELATIONS = [AlphaNeighbours(300.0), ReplaceOne(2), AddRemove()]
SECRET = generator(None)
STORED = Path(__file__).parents[1] / "data" / "releases"
NUTS, PERSONS = {"lgcp-kim-lim-3.8", "lgcp-kim-lim-3.9"}, {"heatmap"}
LOCAL = {name for name in registry.names() if issubclass(registry.mechanism(name).statistic, ReportsStatistic)}
# Put to the auditor in `test_auditing_bounded.py`, `test_pair_sums_release.py`, `test_marked_release.py` and
# `test_marked_moves.py`.
BOUNDED, PAIRS = {"bounded-cells", "planar-laplace"}, {"pair-sums", "pair-sums-persons"}
MARKED = {"marked-tents", "marked-moved"}
TRIALS = {
    "laplace-cells": 60,
    "laplace-tents": 60,
    "lgcp-tents": 60,
    "lgcp-cells": 60,
    "lgcp-clusters": 60,
    "lgcp-moved": 60,
    "lgcp-field": 60,
    "kernel": 60,
    "kernel-diffusion": 60,
    "lgcp-posterior-draw": 50,
    "lgcp-lipschitz": 50,
}


def lgcp(mechanism, relation, epsilon, mesh, **options):
    options = {"length_scale": 400.0} | ({} if mechanism in ("tents", "lipschitz") else {"delta": 1e-6}) | options
    return LGCPSynthesizer(epsilon, relation=relation, mechanism=mechanism, mesh=mesh, **options)


def synthesizer(mechanism, relation, epsilon, domain):
    mesh = SEGMENTS if domain is STREET else GRID
    match mechanism:
        case "laplace-cells":
            return LaplaceSynthesizer(epsilon, relation=relation, spacing=400.0, postprocess="plain")
        case "laplace-tents":
            return LaplaceSynthesizer(epsilon, relation=relation, basis="tents", mesh=mesh, postprocess="plain")
        case "lgcp-posterior-draw":
            # Exact sampling on the plane, proximal on the street.
            sampler = "exact" if domain is SQUARE else "proximal"
            return lgcp("posterior-draw", relation, epsilon, mesh, sampler=sampler)
        case "lgcp-lipschitz":
            return lgcp("lipschitz", relation, epsilon, mesh, sampler="exact")
        case "kernel" | "kernel-diffusion":
            return KernelSynthesizer(epsilon, delta=1e-6, relation=relation)
        case "lgcp-clusters":
            return lgcp("tents", relation, epsilon, mesh, clusters=0.3)
        case "lgcp-moved":
            lattice = trace_mesh(STREET, shape=(9, 9)) if domain is STREET else mesh
            return LGCPSynthesizer(epsilon, relation=relation, mechanism="moved", mesh=lattice)
        case "lgcp-cells":
            return LGCPSynthesizer(epsilon, relation=relation, mechanism="cells", mesh=mesh)
        case _:
            return lgcp(mechanism.removeprefix("lgcp-"), relation, epsilon, mesh)


def sizes(relation, n=N):
    return {"n": n} if relation.n_is_public else {"expected_n": n}


def target(mechanism, relation, epsilon=1.0, domain=STREET, n=N):
    return target_of(synthesizer(mechanism, relation, epsilon, domain), domain, **sizes(relation, n))


def supports(mechanism, relation, domain):
    elsewhere = ("kernel", STREET), ("kernel-diffusion", SQUARE), ("lgcp-cells", SQUARE)
    if (mechanism, domain) in elsewhere or (mechanism == "lgcp-moved" and not isinstance(relation, AlphaNeighbours)):
        return False
    if relation.n_is_public:
        return True
    return not mechanism.startswith("kernel") and mechanism != "lgcp-lipschitz"


def nothing(_released):
    return 0.0


# For what the audit says beside what runs.
STANDING = (AuditStatistic("nothing", nothing),)


class Ahead:
    """Secret noise that is drawn thousands at a time: OpenDP takes long for each call, not for each value."""

    def __init__(self, noise):
        self.noise, self.name, self.seeded = noise, noise.name, noise.seeded
        self.drawn = np.zeros(0, dtype=np.int64)

    def add(self, values):
        if len(self.drawn) < len(values):
            self.drawn = self.noise.add(np.zeros(5000, dtype=np.int64))
        taken, self.drawn = np.split(self.drawn, [len(values)])
        return values + taken


AHEAD = {}


def ahead(noise):
    """The same noise, drawn ahead."""
    return AHEAD.setdefault((noise.name, noise.scale), Ahead(noise))


def laplace_ahead(scale, **budget):
    return ahead(OpenDPLaplace(scale, **budget))


@pytest.fixture(autouse=True)
def _noise_drawn_ahead(monkeypatch):
    def stand_in(plan, draw, exact):
        noise = getattr(draw, "__self__", None)
        return ahead(noise).add(exact) if type(noise) in (OpenDPLaplace, OpenDPGaussian) else draw(exact)

    randomise_by(monkeypatch, stand_in)


SLOW = {"lgcp-posterior-draw": RELATIONS[2], "lgcp-lipschitz": RELATIONS[0]}
CASES = [
    pytest.param(mechanism, relation, epsilon, domain, id=f"{mechanism}-{relation.name}-{epsilon}")
    for mechanism in TRIALS
    for relation in RELATIONS
    for epsilon, domain in ((1.0, SQUARE), (0.1, STREET))
    if supports(mechanism, relation, domain)
    # Draws take milliseconds each: at 0.1 under one relation, which is another for either.
    if domain is SQUARE or mechanism not in SLOW or relation is SLOW[mechanism]
]


def test_every_registered_mechanism_is_audited():
    assert set(TRIALS) | NUTS | PERSONS | LOCAL | BOUNDED | PAIRS | MARKED == set(registry.names())


@pytest.mark.exhaustive
@pytest.mark.parametrize(("mechanism", "relation", "epsilon", "domain"), CASES)
def test_mechanism_stays_below_its_claim(mechanism, relation, epsilon, domain):
    """An auditor whose bounds are not bounds, or whose pair is not neighbouring, would reject some of these."""
    made = target(mechanism, relation, epsilon, domain)
    few = replace(made, statistics=(made.statistics[0], made.statistics[-1]))
    result = audit(few, trials=TRIALS[mechanism])
    assert not result.violated, result
    assert result.claimed == pytest.approx(epsilon, rel=1e-3)
    again = pickle.loads(pickle.dumps(made))
    assert len(again.run(again.pair[0]).definition.domain.bounds) == 4


@pytest.mark.slow
def test_twenty_true_claims_are_not_rejected():
    """Counts of one moved point meet their claim exactly: the likelihood ratio takes its largest value often."""
    honest = target("laplace-cells", ReplaceOne())
    honest = replace(honest, statistics=honest.statistics[:1])
    assert not any(audit(honest, trials=150).violated for _ in range(20))


@dataclass(frozen=True)
class Broken:
    """Base of mechanisms that do not keep the claim of `plan`."""

    plan: object

    def exact(self, pattern):
        return self.plan.exact(pattern.positions)

    def released(self, lattice):
        return PrivateStatistic(self.plan, lattice, "broken", False)


class HalfTheNoise(Broken):
    def __call__(self, pattern):
        plan = self.plan
        noise = laplace_ahead(plan.scale / 2, sensitivity=plan.sensitivity, epsilon=2.001 * plan.epsilon)
        return self.released(noise.add(self.exact(pattern)))


class SensitivityOne(Broken):
    """A moved point changes two counts; someone calibrated as if it changed one."""

    def __call__(self, pattern):
        sensitivity = self.plan.sensitivity // 2
        scale = laplace_scale(sensitivity, self.plan.epsilon)
        noise = laplace_ahead(scale, sensitivity=sensitivity, epsilon=self.plan.epsilon)
        return self.released(noise.add(self.exact(pattern)))


class LeakedNumber(Broken):
    """Noised counts that are made to sum to the true number of points, which add/remove keeps secret."""

    def __call__(self, pattern):
        lattice = self.plan.measure(pattern).lattice.copy()
        lattice[-1] += len(pattern) - lattice.sum()
        return self.released(lattice)


@dataclass(frozen=True)
class RuleOfThumb:
    """Kernels whose bandwidth is Scott's rule on the sensitive points."""

    def __call__(self, pattern):
        spread = float(np.sqrt(pattern.xy.var(axis=0, ddof=1).mean()))
        children = sample_children(pattern.xy, pattern.domain, spread * len(pattern) ** (-1 / 6), SECRET)
        return PointPattern.at(children, pattern.domain, synthetic=True)


def unchecked(plan, **changes):
    """A plan with other parameters, whose own check of the budget did not run."""
    wide = object.__new__(type(plan))
    fields = {name: getattr(plan, name) for name in plan.__dataclass_fields__}
    for name, value in (fields | changes).items():
        object.__setattr__(wide, name, value)
    return wide


def wider(plan, factor=2):
    return unchecked(plan, covariance=replace(plan.covariance, sigma=factor * plan.covariance.sigma))


def half_the_noise():
    made = target("laplace-cells", ReplaceOne())
    return replace(made, run=HalfTheNoise(made.run.plan))


def sensitivity_one():
    made = target("laplace-tents", ReplaceOne())
    return replace(made, run=SensitivityOne(made.run.plan))


def bandwidth_from_the_data():
    relation = AlphaNeighbours(400.0)
    made = target("kernel", relation, domain=SQUARE, n=10)
    near, total = for_patterns(SQUARE, made.pair, relation)[1:4:2]
    return replace(made, run=RuleOfThumb(), statistics=(near, total))


def sigma_doubled():
    made = target("lgcp-field", ReplaceOne())
    return replace(made, run=Measure(wider(made.run.plan)), statistics=made.statistics[:1])


def posterior_sigma(factor):
    """Prior sigma for two points, which leave most of the prior as it is."""
    made = target("lgcp-posterior-draw", ReplaceOne(), domain=SQUARE, n=2)
    return replace(made, run=Measure(wider(made.run.plan, factor)), statistics=made.statistics[:1])


def posterior_sigma_times_eight():
    return posterior_sigma(8)


def posterior_sigma_doubled():
    return posterior_sigma(2)


def number_leaked():
    made = target("laplace-cells", AddRemove())
    return replace(made, run=LeakedNumber(made.run.plan))


class FarLeak(Broken):
    """One far count without noise tells which pattern it is; its value is an ordinary one."""

    def __call__(self, pattern):
        lattice = self.plan.measure(pattern).lattice.copy()
        moved = self.plan.mesh.locate(pattern.positions[-1:])[0]
        lattice[len(lattice) // 2] = int(moved == 0)
        return self.released(lattice)


def far_count_leaked():
    relation = AddRemove()
    made = target_of(
        LaplaceSynthesizer(1.0, relation=relation, spacing=100.0, postprocess="plain"), SQUARE, expected_n=40
    )
    return replace(made, run=FarLeak(made.run.plan))


# Fault, the statistic that sees it, and runs on each input. The benchmark gives all of them 5000.
FAULTS = [
    (half_the_noise, "likelihood ratio", 1200),
    (sensitivity_one, "likelihood ratio", 2500),
    (bandwidth_from_the_data, "near", 1800),
    (sigma_doubled, "likelihood ratio", 5000),
    (posterior_sigma_times_eight, "likelihood ratio", 250),
    (number_leaked, "total", 200),
    (far_count_leaked, "one number", 200),
]
# What the benchmark audits, and by how many runs on each input.
BENCHMARKED = {
    fault.__name__.replace("_", " "): (fault, 5000)
    for fault in (*(each for each, _, _ in FAULTS if each is not posterior_sigma_times_eight), posterior_sigma_doubled)
}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("fault", "seen_by", "trials"), FAULTS, ids=[fault.__name__ for fault, _, _ in FAULTS])
def test_planted_fault_is_caught(fault, seen_by, trials):
    """Each planted fault is caught, by the statistic that is meant for it.

    An auditor that looked at epsilon = 1 alone would miss the doubled sigma; one without the moved point's
    surroundings, without totals, or without every number on its own, the bandwidth, the number, or the far count.

    Where an audit misses its fault once in fifty times, three in a row do once in a hundred thousand.
    """
    broken = fault()
    results = (audit(broken, trials=trials, false_alarm=1e-6) for _ in range(4))
    found = ([finding for finding in each.findings if finding.violated] for each in results)
    seen = next((each for each in found if any(finding.statistic.startswith(seen_by) for finding in each)), None)
    assert seen is not None
    if fault is sigma_doubled:
        assert all(finding.epsilon < 0.9 for finding in seen)


@pytest.mark.exhaustive
@pytest.mark.parametrize("domain", [SQUARE, RING, BLOCK], ids=["square", "ring", "streets"])
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_hard_pair_reaches_the_sensitivity(domain, relation):
    """A pair that changes the statistic by less than the bound allows would hide too little noise."""
    relation = AlphaNeighbours(25.0, max_points_per_person=2) if relation is RELATIONS[0] else relation
    field = lgcp("field", relation, 1.0, None, length_scale=150.0)
    for made in (LaplaceSynthesizer(1.0, relation=relation, basis="tents", postprocess="plain"), field):
        plan = made.plan(domain, **sizes(relation)).statistic
        one, other = audit_of(plan).pair(relation)
        change = (plan.exact(one.positions) - plan.exact(other.positions)).astype(float)
        size = np.abs(change).sum() if made is not field else np.sqrt(change @ change)
        # Streets along the axes do not run where tents of the plane are steepest.
        least = 0.7 if domain is BLOCK and made is not field else 0.97
        assert least * plan.sensitivity <= size <= plan.sensitivity


@pytest.mark.parametrize("domain", [SQUARE, SLIT, HAIRPIN], ids=["square", "slit", "hairpin"])
def test_hard_pair_is_neighbouring_and_alone(domain):
    """Moves by at most alpha inside the domain, of exactly the person's points, everybody else far away."""
    relation = AlphaNeighbours(50.0, max_points_per_person=3)
    plan = LaplaceSynthesizer(1.0, relation=relation, postprocess="plain").plan(domain, n=N).statistic
    one, other = audit_of(plan).pair(relation)
    gone, came = changed((one, other))
    assert len(one) == len(other) == N
    assert len(gone) == len(came) == 3
    require_neighbours((one, other), relation)
    if domain is HAIRPIN:
        assert domain.distance(one, other).diagonal().max() <= 50.0
    else:
        path = shapely.LineString([gone[0], came[0]])
        assert path.length <= 50.0
        assert domain.geometry.covers(path)
    away = np.hypot(*(one.xy[:-3] - one.xy[-1]).T)
    assert away.min() > 5 * 50.0 if domain is not HAIRPIN else away.min() > 100.0
    assert len(np.unique(one.positions[:-3], axis=0)) == N - 3


@pytest.mark.parametrize("relation", [AlphaNeighbours(50.0, max_points_per_person=3), AddRemove(3)])
def test_hard_pair_of_very_few(relation):
    """One point, of a person who may have three; where the number is secret, one other is left."""
    plan = LaplaceSynthesizer(1.0, relation=relation, postprocess="plain").plan(SQUARE, **sizes(relation, 1)).statistic
    one, other = audit_of(plan).pair(relation)
    require_neighbours((one, other), relation)
    assert (len(one), len(other)) == ((1, 1) if relation.n_is_public else (4, 1))


def test_pair_that_is_not_neighbouring_is_refused():
    """A pair farther apart than is claimed for would make honest mechanisms look broken."""
    near = AlphaNeighbours(20.0)
    base = np.full((N, 2), 900.0)
    for domain, other in ((SLIT, [510.0, 100.0]), (SQUARE, [515.0, 100.0])):
        pair = tuple(PointPattern([*base, at], domain) for at in ([490.0, 100.0], other))
        made = LaplaceSynthesizer(1.0, relation=near, postprocess="plain")
        with pytest.raises(InputError, match=r"not neighbouring.*moves by at most 20"):
            target_of(made, domain, n=N + 1, pair=pair)
    corner = [PointPattern([[5.0, 0.0], at], HAIRPIN) for at in ([5.0, 0.0], [5.0, 10.0], [25.0, 0.0])]
    with pytest.raises(InputError, match="not neighbouring"):
        require_neighbours((corner[0], corner[1]), near)
    require_neighbours((corner[0], corner[2]), near)
    with pytest.raises(InputError, match="not neighbouring"):
        require_neighbours((corner[0], corner[2]), AddRemove())


def test_several_points_may_have_moved_in_any_order():
    pair = [PointPattern(rows, SQUARE) for rows in ([[100, 100], [500, 500]], [[500, 510], [100, 110]])]
    require_neighbours(pair, AlphaNeighbours(10.0, max_points_per_person=2))
    with pytest.raises(InputError, match="not neighbouring"):
        require_neighbours(pair, AlphaNeighbours(10.0))


def test_noise_likelihood_ratios_follow_the_laws():
    """scipy's discrete Laplace and normal laws, at points drawn far and near."""
    for mechanism in ("laplace-tents", "lgcp-field"):
        made = target(mechanism, ReplaceOne())
        plan, ratio = made.run.plan, made.statistics[0].features
        first, second = (plan.exact(pattern.positions) for pattern in made.pair)
        for released in (plan.measure(made.pair[0]), plan.measure(made.pair[1])):
            if mechanism == "laplace-tents":
                law = stats.dlaplace(1 / plan.scale)
                expected = law.logpmf(released.lattice - first) - law.logpmf(released.lattice - second)
            else:
                law = stats.norm(scale=plan.scale)
                expected = law.logpdf(released.lattice - first) - law.logpdf(released.lattice - second)
            assert ratio(released) == pytest.approx(expected.sum(), rel=1e-9, abs=1e-9)


def test_likelihood_ratio_of_a_draw_is_its_increment():
    made = target("lgcp-posterior-draw", ReplaceOne(), domain=SQUARE)
    plan = made.run.plan
    gone, came = changed(made.pair)
    released = plan.measure(made.pair[0])
    field = plan.mesh.basis(np.concatenate([gone, came])) @ released.values
    assert made.statistics[0].features(released) == pytest.approx(field[0] - field[1])
    total = next(each for each in made.statistics if each.name == "total").features(released)
    assert total == pytest.approx(np.log(plan.mesh.measure @ np.exp(released.values)))


@pytest.mark.parametrize(("mechanism", "domain"), [("kernel", SQUARE), ("kernel-diffusion", STREET)])
def test_likelihood_ratio_of_children(mechanism, domain):
    made = target(mechanism, ReplaceOne(), domain=domain)
    released = made.run(made.pair[0])
    (children,) = released.patterns
    densities = [made.run.plan.density(pattern, children.xy) for pattern in made.pair]
    assert made.statistics[0].features(released) == pytest.approx(np.log(densities[0] / densities[1]).sum())


def test_patterns_are_counted_around_the_moved_point():
    pair = tuple(PointPattern([[900.0, 900.0], at], SQUARE) for at in ([100.0, 100.0], [300.0, 100.0]))
    looked = {each.name: each.features for each in for_patterns(SQUARE, pair, AlphaNeighbours(200.0))}
    released = [PointPattern([[90.0, 100.0], [290.0, 100.0], [160.0, 100.0]], SQUARE)] * 2
    assert [looked[f"near {r}"](released) for r in (100, 200, 400)] == [2, 2, 0]
    assert looked["total"](released) == 6
    assert looked["cells"](released).sum() == 6
    assert looked["cells"](released).max() == 4
    assert len(patterns_of(released[0])) == 1
    for nothing in ([], 3.0, [3.0]):
        with pytest.raises(InputError, match="synthetic patterns"):
            patterns_of(nothing)


def test_blocked_runs_are_run_again():
    calls = []

    @dataclass(frozen=True)
    class Moody:
        often: int

        def measure(self, _pattern):
            calls.append(1)
            if len(calls) % self.often:
                raise ReleaseBlocked
            return len(calls)

    assert Measure(Moody(3))(None) == 3
    with pytest.raises(ReleaseBlocked):
        Measure(Moody(1000))(None)


def test_targets_refuse_what_they_do_not_know():
    made = LaplaceSynthesizer(1.0, relation=ReplaceOne(), spacing=400.0, postprocess="plain")
    plan = made.plan(STREET, n=N)
    with pytest.raises(InputError, match="domain: needed"):
        target_of(made)
    with pytest.raises(InputError, match="settled by the plan"):
        target_of(plan, n=N)
    with pytest.raises(InputError, match="needs a Synthesizer"):
        target_of(3)
    bare = target_of(plan.statistic, statistics=[partial(total)])
    assert [each.name for each in bare.statistics] == [
        "likelihood ratio",
        "near",
        "total",
        "cells",
        "one number",
        "partial",
    ]


def test_weakest_level_is_audited():
    made = LaplaceSynthesizer(1.0, relation=AlphaNeighbours(25.0), spacing=400.0, postprocess="plain")
    plan = made.plan_by(STREET, by="year", levels=["2021", "2022"], n={"2021": 10, "2022": 30})
    worse = replace(made, epsilon=1.5).plan(STREET, n=30)
    mixed = replace(plan, plans={"2021": plan.plans["2021"], "2022": worse})
    aimed = target_of(mixed)
    assert "year 2022" in aimed.words
    assert aimed.claimed.epsilon(0.0) == pytest.approx(1.5)
    assert aimed.statistics[0].name == "year 2022, likelihood ratio"
    assert [len(pattern) for pattern in aimed.pair] == [40, 40]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Releases of counts and of one draw with an offset, in folders."""
    folder = tmp_path_factory.mktemp("releases")
    points = PointPattern(np.random.default_rng(3).uniform(0, 1000, (N, 2)), SQUARE)
    cells = LaplaceSynthesizer(1.0, relation=ReplaceOne(), spacing=400.0, postprocess="plain")
    draw = lgcp("posterior-draw", AlphaNeighbours(25.0), 1.0, GRID, sampler="exact")
    return {
        "cells": cells.release(points).save(folder / "cells"),
        "draw": draw.release(points).save(folder / "draw"),
    }


@pytest.mark.parametrize("name", ["cells", "draw"])
def test_saved_release_is_audited_without_its_data(saved, name):
    aimed = target_of_release(saved[name])
    cert = json.loads((saved[name] / "certificate.json").read_text())
    assert aimed.run.plan.parameters().items() <= cert["parameters"].items()
    assert len(aimed.pair[0]) == N
    if name == "cells":
        result = audit(saved[name], trials=50)
        assert result.verification.holds
        assert not result.violated
        assert cert["mechanism"] in result.words


@pytest.mark.slow
def test_certificate_that_claims_too_little_is_refuted_by_what_runs(saved, tmp_path):
    """The mechanism follows the parameters, the claim is what the public was told."""
    folder = edited(saved["cells"], tmp_path, lambda cert: cert["guarantee"]["profile"].update(epsilon=0.1))
    result = audit(folder, trials=1500)
    assert not result.verification.holds
    assert result.violated
    assert "as rebuilt from the certificate's budget" in str(result)
    assert command(folder, "--trials", 50, "--json", code=3)


def command(*words, code=0):
    result = CliRunner().invoke(cli.app, ["audit", *map(str, words)])
    assert result.exit_code == code, (result.output, result.exception)
    return result


JOB = ["--method", "laplace", "--epsilon", 1, "--relation", "replace-one", "--spacing", 500, "--n", N]
HERE = ["--window", "0,0,1000,1000"]


def test_command_line_gives_json():
    shown = json.loads(command(*JOB, *HERE, "--trials", 50, "--false-alarm", 1e-4, "--json").stdout)
    names = {"lower_bound", "claimed", "confidence", "delta", "violated", "detectable", "trials", "findings"}
    assert names <= shown.keys()
    assert shown["claimed"] == pytest.approx(1.0)
    assert shown["confidence"] == 1 - 1e-4
    assert shown["trials"] == 50
    assert shown["violated"] is False


@pytest.mark.slow
def test_command_line_speaks(saved):
    result = command(saved["cells"], "--trials", 400)
    words = re.sub(r"\s+", " ", result.output)
    assert result.stderr.count("verifying the certificate") == 1
    assert len(result.stderr.splitlines()) <= 20
    assert "800 runs will take about" in words
    assert "Not rejected is not a proof" in words
    assert ("No statistic told the two patterns apart" in words) <= ("is at least 0 (" in words)
    by_year = ["--by", "year", "--levels", "2021,2022", "--n-by", "5,6"]
    assert "year 2021" in command(*JOB[:-2], *by_year, *HERE, "--trials", 50).output


def test_command_line_refuses(saved):
    assert "--method: say what to audit" in command(*HERE, "--n", N, code=2).stderr
    assert "--window: give --window" in command(*JOB, code=2).stderr
    assert "--epsilon: a saved release states it" in command(saved["cells"], "--epsilon", 2, code=2).stderr
    assert "--patterns: a saved release" in command(saved["cells"], "--patterns", 2, code=2).stderr
    assert "certificate" in command(saved["cells"].parent / "nothing", code=2).stderr
    assert (
        "--spacing: not an option of --method kernel"
        in command("--method", "kernel", "--delta", 1e-6, *JOB[2:], *HERE, code=2).stderr
    )


def test_command_line_exits_3_where_a_saved_release_disagrees(monkeypatch):
    """A saved statistic that is not the released one."""
    honest = PrivateStatistic.to_dict
    monkeypatch.setattr(PrivateStatistic, "to_dict", lambda s: honest(s) | {"lattice": [0] * len(s.lattice)})
    shown = json.loads(command(*JOB, *HERE, "--trials", 50, "--json", code=3).stdout)
    assert any(each.startswith("the saved statistic") for each in shown["disagreements"])


def test_command_line_exits_3_where_more_is_found():
    """Without any noise, at the settings of an audit that passes."""
    with randomised_by(lambda plan, draw, exact: exact):
        shown = json.loads(command(*JOB, *HERE, "--trials", 50, "--json", code=3).stdout)
    assert shown["violated"] is True
    assert shown["disagreements"] == []


def test_doubled_plan_really_is_unchecked():
    """The planted plan is one that its own constructor refuses."""
    plan = target("lgcp-field", ReplaceOne()).run.plan
    wide = wider(plan)
    assert wide.covariance == PoweredExponential(2 * plan.covariance.sigma, 400.0, plan.covariance.power)
    with pytest.raises(Exception, match="covariance: sigma must be at most"):
        replace(plan, covariance=wide.covariance)


@pytest.mark.parametrize("mechanism", ["laplace-cells", "laplace-tents"])
def test_weakened_law_is_that_of_the_likelihood_ratio(mechanism):
    """Two samples of the same law: of the runs, here with half the noise, and of what the audit is rated by."""
    made = target(mechanism, ReplaceOne())
    run, ratio = HalfTheNoise(made.run.plan), made.statistics[0].features
    for pattern, scores in zip(made.pair, made.weakened(2.0), strict=True):
        seen = [ratio(run(pattern)) for _ in range(400)]
        # Ties only make this test more careful.
        assert stats.ks_2samp(seen, scores).pvalue > 1e-7
    assert stats.ks_2samp(seen, made.weakened(2.0)[0]).pvalue < 1e-7


def test_weakened_law_of_a_field_is_the_pairs_own():
    made = target("lgcp-field", AlphaNeighbours(300.0), domain=SQUARE)
    plan = made.run.plan
    change = np.subtract(*(plan.exact(pattern.positions) for pattern in made.pair)).astype(float)
    first, second = made.weakened(3.0)
    assert (first - second).mean() == pytest.approx(3 * np.linalg.norm(change) / plan.scale)
    assert second.std() == pytest.approx(1, abs=1e-3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("relation", [ReplaceOne(), AddRemove()])
def test_weakened_law_of_a_draw_is_near_that_of_the_sampler(relation):
    """By Laplace's approximation. The prior's standard deviation would be too large by half and more."""
    made = target("lgcp-posterior-draw", relation, domain=SQUARE)
    plan = wider(made.run.plan, 4)
    if not relation.n_is_public:
        plan = unchecked(plan, intercept_sd=4 * plan.intercept_sd)
    rng = np.random.default_rng(1)
    for pattern, scores in zip(made.pair, made.weakened(4.0), strict=True):
        constant = 0.0 if relation.n_is_public else plan.prior.centre[0]
        seen = np.array([made.statistics[0].features(plan.measure(pattern, rng)) for _ in range(50)]) - constant
        assert abs(seen.mean() - scores.mean()) < 5.5 * scores.std() / np.sqrt(50) + 0.1 * scores.std()
        assert 0.6 < seen.std() / scores.std() < 1.5


def test_what_is_detectable_follows_from_the_mechanism_and_the_pair():
    """Randomised response of the same claim, an easier one, would be found out at 1.18; tents reach less than cells."""
    cells, tents = (
        audit(replace(target(name, ReplaceOne()), run=len, statistics=STANDING), trials=50)
        for name in ("laplace-cells", "laplace-tents")
    )
    ratings = [replace(each.rating, trials=5000, statistics=5).factor() for each in (cells, tents)]
    assert 1.3 < ratings[0] < 1.55 < ratings[1] < 3
    assert cells.law_is_known
    kernel = target("kernel", AlphaNeighbours(300.0), domain=SQUARE)
    assert kernel.weakened is target("lgcp-lipschitz", AlphaNeighbours(300.0), domain=SQUARE).weakened is None


@pytest.mark.parametrize("mechanism", ["laplace-cells", "kernel-diffusion"])
def test_pair_that_a_mesh_cannot_tell_apart_tests_nothing(mechanism):
    """One cell: whatever the noise, nothing is found, so no fault is detectable."""
    relation = AlphaNeighbours(25.0)
    if mechanism == "laplace-cells":
        made = target_of(LaplaceSynthesizer(1.0, relation=relation, spacing=1000.0, postprocess="plain"), SQUARE, n=30)
        assert len(made.run.plan.mesh.elements) == 1
    else:
        plan = KernelSynthesizer(1.0, delta=1e-6, relation=AlphaNeighbours(300.0)).plan(STREET, n=N)
        pair = [PointPattern([[10.0, 0.0], [x, 0.0]], STREET) for x in (200.0, 200.1)]
        made = target_of(plan, pair=tuple(pair))
        assert not target_of(plan).alike
    assert made.alike
    result = audit(replace(made, run=len, statistics=STANDING), trials=50)
    assert result.detectable == np.inf
    assert "NOTHING IS TESTED" in str(result)
    assert result.to_dict()["alike"] is True


def test_hard_pair_of_very_many():
    """Places that the others share, not eight candidates for each of them; and an end to it."""
    plan = LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain").plan(SQUARE, n=300_000).statistic
    one, other = audit_of(plan).pair(plan.relation)
    assert len(one) == len(other) == 300_000
    assert len(np.unique(one.xy, axis=0)) < 50_000
    assert np.hypot(*(one.xy[:-1] - one.xy[-1]).T).min() > 100
    require_neighbours((one, other), plan.relation)
    for size in (10**9, 2.5, -3):
        with pytest.raises(InputError, match=r"n: patterns of .* points are not made up"):
            audit_of(unchecked(plan, n=size)).pair(plan.relation)


@pytest.mark.parametrize("alpha", [1e-3, 0.01, 25.0])
def test_hard_pair_is_no_farther_than_alpha_where_coordinates_are_large(alpha):
    far = Window.rectangle(5e6, 5e6, 5e6 + 1000, 5e6 + 1000)
    relation = AlphaNeighbours(alpha)
    made = KernelSynthesizer(1.0, delta=1e-6, relation=relation).plan(far, n=5).statistic
    gone, came = changed(audit_of(made).pair(relation))
    assert 0.99 * alpha < np.hypot(*(gone - came)[0]) <= alpha


EDITS = {
    "no strata": ("strata", lambda cert: cert["parameters"].update(strata=[])),
    "half a point": ("laplace-tents", lambda cert: cert["parameters"].update(n=2.5)),
    "too many points": ("laplace-tents", lambda cert: cert["parameters"].update(n=10**9)),
    "no number": ("kernel", lambda cert: cert["parameters"].update(n="x")),
}


@pytest.mark.parametrize("edit", EDITS)
def test_damaged_certificates_are_reported(edit, tmp_path):
    """By words and exit code 3, whatever no mechanism, or no pair, can be made of."""
    kind, change = EDITS[edit]
    folder = edited(STORED / kind, tmp_path, change)
    result = audit(folder, trials=50)
    assert (result.trials, result.verification.holds, result.detectable) == (0, False, np.inf)
    shown = command(folder, "--trials", 50, code=3).output
    assert "nothing could be run" in shown
    assert "No statistic told" not in shown


def edited(source, folder, change):
    shutil.copytree(source, folder / "edited")
    path = folder / "edited" / "certificate.json"
    cert = json.loads(path.read_text())
    change(cert)
    path.write_text(json.dumps(cert))
    return path.parent

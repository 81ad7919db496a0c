"""The auditor put to local mechanisms: every client stays below its claim, and broken ones are found out.

Audits of what is sound run with false alarms of 1e-6 each, some forty in all.
"""

import functools
import itertools
import math
import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest
from baselines.local_baselines import LiteralHybridArea

from dpppsynth import randomizers
from dpppsynth.auditing import audit
from dpppsynth.auditing.examine import examine
from dpppsynth.auditing.power import Rating
from dpppsynth.auditing.targets import audit_of, target_of
from dpppsynth.contract.audits.statistic_audit import Audited
from dpppsynth.contract.audits.target import AuditStatistic
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import generator
from dpppsynth.local import AdvancedAdaptiveGrid, DiskAreaMechanism, SEMGeoI, UniformGrid
from dpppsynth.mechanisms.local.audit_clients import (
    LargerEpsilon,
    Respond,
    cell_distance,
    with_epsilon,
)
from dpppsynth.mechanisms.local.randomizers.oracles import hash_classes
from dpppsynth.mechanisms.local.statistic import AreaStatistic
from dpppsynth.privacy import PureDP
from dpppsynth.randomizers import (
    DiskArea,
    DisplacementLaw,
    HadamardResponse,
    HybridArea,
    LocalHashing,
    OptimizedUnary,
    ProjectiveResponse,
    RandomizedResponse,
    RangeHierarchyLaw,
    SquareWave,
    SubsetExponential,
    SubsetSelection,
    SymmetricUnary,
)
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import LGCPSynthesizer

EPSILONS = (0.1, 0.5, 1.0)
SECRET = generator(None)
KINDS = {
    "disk-area": lambda epsilon: DiskArea(epsilon=epsilon, cells=5, radius=2, shrink=True),
    "disk-area without shrinkage": lambda epsilon: DiskArea(epsilon=epsilon, cells=5, radius=3, shrink=False),
    "hybrid-area": lambda epsilon: HybridArea(epsilon=epsilon, cells=5, radius=2),
    "square-wave": lambda epsilon: SquareWave(epsilon=epsilon, cells=5, half_width=1),
    "randomized-response": lambda epsilon: RandomizedResponse(epsilon=epsilon, domain=4),
    "optimized-unary": lambda epsilon: OptimizedUnary(epsilon=epsilon, domain=9),
    "symmetric-unary": lambda epsilon: SymmetricUnary(epsilon=epsilon, domain=9),
    "local-hashing": lambda epsilon: LocalHashing(epsilon=epsilon, domain=9, hash_range=3),
    "hadamard-response": lambda epsilon: HadamardResponse(epsilon=epsilon, domain=9),
    "subset-selection": lambda epsilon: SubsetSelection(epsilon=epsilon, domain=9),
    "projective-response": lambda epsilon: ProjectiveResponse(epsilon=epsilon, domain=9),
    "range-hierarchy": lambda epsilon: RangeHierarchyLaw(epsilon=epsilon, cells=4),
    "displacements": lambda epsilon: DisplacementLaw(epsilon=epsilon, cells=3, reach=2, radius=1),
    "subset-exponential": lambda epsilon: SubsetExponential(epsilon=epsilon, cells=3, subset=2),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_client_stays_below_its_claim(kind):
    """A pair whose distance is not what the claim says, or a ratio counted twice, would reject some of these."""
    epsilon = 0.5
    made = target_of(KINDS[kind](epsilon))
    result = audit(made, trials=80)
    assert not result.violated, result
    assert result.law_is_known
    away = cell_distance(made.run.randomizer, made.pair) if made.run.randomizer.metric else 1.0
    assert result.claimed == pytest.approx(epsilon * away, rel=1e-8)
    again = pickle.loads(pickle.dumps(made))
    assert abs(again.statistics[0].features(again.run(again.pair[1]))) < 1.0001 * epsilon * away


def test_every_kind_is_audited():
    """A new kind of client must be put to the auditor, too."""
    assert {KINDS[name](1.0).kind for name in KINDS} == set(randomizers.KINDS)


# --- Faults ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Broken:
    """Base of clients that do not keep the claim of `law`."""

    law: object


class TrueCell(Broken):
    """A client that sends its own cell: the printed algorithm counts at the true one."""

    def __call__(self, value):
        return np.array([divmod(value, self.law.cells)])


class NeverPerturbed(Broken):
    """The number that decides is compared with the range of the hash, which is always larger."""

    def __call__(self, value):
        seed = SECRET.integers(2**63, size=1)
        own, other = hash_classes(seed, value, self.law.hash_range)[0], SECRET.integers(self.law.hash_range)
        return np.array([[seed[0], own if SECRET.random() < self.law.hash_range else other]])


class SeedOfTheValue(Broken):
    """The last bit of the seed is that of the value; the class is the right one, and perturbed."""

    def __call__(self, value):
        seed, told = self.law.draw(np.array([value]), SECRET)[0]
        return np.array([[(seed & ~1) | (value & 1), told]])


class TwoReports(Broken):
    """One person sends two reports, each with the whole budget."""

    def __call__(self, value):
        return self.law.draw(np.array([value, value]), SECRET)


class TooOftenTrue(Broken):
    """An OUE whose own bit is kept with probability 3/4, the others as for 1/2."""

    def __call__(self, value):
        bits = SECRET.random(self.law.domain) < 1 / (np.exp(self.law.epsilon) + 1)
        bits[value] = SECRET.random() < 0.75
        places = np.arange(self.law.domain)
        words = np.zeros(len(self.law.columns), dtype=np.int64)
        np.bitwise_or.at(words, places // 62, bits.astype(np.int64) << places % 62)
        return words[None]


class NeverOutside(Broken):
    """A point outside the own hyperplane is drawn anew inside it half of the time: too few are outside."""

    def __call__(self, value):
        report = self.law.draw(np.array([value]), SECRET)
        if not self.law.supported(report, value)[0] and SECRET.random() < 0.5:
            return self.law.space.within(np.array([value]), SECRET.integers(self.law.own_points, size=1))[:, None]
        return report


class OwnValueOnce(Broken):
    """A coin of e^eps : 1 decides whether the subset has the own value, as if half of all subsets had it."""

    def __call__(self, value):
        kept = SECRET.random() < 1 / (1 + np.exp(-self.law.epsilon))
        others = SECRET.permutation(np.delete(np.arange(self.law.domain), value))
        chosen = [value, *others[: self.law.subset - 1]] if kept else others[: self.law.subset]
        return np.array([[sum(1 << int(each) for each in chosen)]])


class LevelOfTheValue(Broken):
    """The level is the coarser one on one half of the grid, and the finer one on the other."""

    def __call__(self, value):
        wanted = int(2 * value >= self.law.inputs)
        while True:
            report = self.law.draw(np.array([value]), SECRET)
            if report[0, 0] == wanted:
                return report


class FractionalRadius(Broken):
    """A radius of 3.2 cells where reports are laid out for 2: some end in cells that only one value reaches."""

    def __call__(self, value):
        radius, reach = 3.2, 4
        offsets = np.array([*itertools.product(range(-reach, reach + 1), repeat=2)])
        own = offsets[(offsets**2).sum(axis=1) <= radius**2]
        size = self.law.size + np.expm1(self.law.epsilon) * len(own)
        if SECRET.random() < self.law.size / size:
            return self.law.outputs[SECRET.integers(self.law.size, size=1)]
        return (np.array(divmod(value, self.law.cells)) + SECRET.permutation(own)[0])[None]


class OthersOnly(Broken):
    """A coin of e^eps : 1 decides on the truth, as for two values, and otherwise one of the others is sent."""

    def __call__(self, value):
        if SECRET.random() < 1 / (1 + np.exp(-self.law.epsilon)):
            return np.array([[value]])
        other = SECRET.integers(self.law.domain - 1)
        return np.array([[other + (other >= value)]])


@functools.cache
def subset_weights(cells, subset, epsilon):
    """All subsets, and (cells^2, subsets) their weights given each cell."""
    places = np.array([*itertools.product(range(cells), repeat=2)])
    apart = np.hypot(*(places[:, None] - places).transpose(2, 0, 1))
    subsets = [*itertools.combinations(range(len(places)), subset)]
    return np.array(subsets), np.exp(-epsilon * np.array([apart[:, each].min(axis=1) for each in subsets]).T)


class NothingEmpty(Broken):
    """Subsets by their weights out of the largest sum of all cells', from whose centre nothing empty is sent."""

    def __call__(self, value):
        subsets, weights = subset_weights(self.law.cells, self.law.subset, self.law.epsilon)
        at = np.searchsorted(np.cumsum(weights[value]), SECRET.random() * weights.sum(axis=1).max())
        return subsets[at : at + 1] if at < len(subsets) else np.full((1, self.law.subset), -1)


def larger(name):
    honest = target_of(KINDS[name](1.0))
    return replace(honest, run=Respond(with_epsilon(honest.run.randomizer, 2.0)))


def broken(fault, name, epsilon=1.0, pair=None):
    law = RangeHierarchyLaw(epsilon=epsilon, cells=8) if name == "two levels" else KINDS[name](epsilon)
    honest = target_of(law, pair=pair)
    return replace(honest, run=fault(honest.run.randomizer))


def two_reports():
    honest = target_of(RandomizedResponse(epsilon=1.0, domain=2))
    return replace(honest, run=TwoReports(honest.run.randomizer))


def fractional_radius():
    honest = target_of(DiskArea(epsilon=1.0, cells=2, radius=2))
    return replace(honest, run=FractionalRadius(honest.run.randomizer))


# Fault, the statistic that sees it, and runs on each input. The benchmark gives all of them 5000, and all statistics.
FAULTS = {
    "twice epsilon, disk area": (lambda: larger("disk-area"), "likelihood ratio", 1000),
    "twice epsilon, subset exponential": (lambda: larger("subset-exponential"), "likelihood ratio", 800),
    "true cell": (lambda: broken(TrueCell, "disk-area"), "likelihood ratio", 100),
    "hash never perturbed": (lambda: broken(NeverPerturbed, "local-hashing"), "likelihood ratio", 200),
    "seed of the value": (lambda: broken(SeedOfTheValue, "local-hashing", pair=(1, 8)), "one bit", 100),
    "two reports": (two_reports, "likelihood ratio", 1500),
    "own bit kept too often": (lambda: broken(TooOftenTrue, "optimized-unary"), "likelihood ratio", 1200),
    "fractional radius": (fractional_radius, "numbers", 3000),
    "too few outside": (lambda: broken(NeverOutside, "projective-response"), "likelihood ratio", 1200),
    "own value once": (lambda: broken(OwnValueOnce, "subset-selection"), "likelihood ratio", 1200),
    "level of the value": (lambda: broken(LevelOfTheValue, "two levels"), "one bit", 200),
    "others only": (lambda: broken(OthersOnly, "randomized-response"), "likelihood ratio", 1200),
    "nothing empty": (lambda: broken(NothingEmpty, "subset-exponential", pair=(0, 4)), "likelihood ratio", 2400),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_caught(fault):
    """Missed once in a hundred times at most, so three audits in a row are once in a million."""
    planted, seen_by, trials = FAULTS[fault]
    faulty = planted()
    faulty = replace(faulty, statistics=tuple(each for each in faulty.statistics if each.name == seen_by))
    results = (audit(faulty, trials=trials) for _ in range(3))
    assert next((each for each in results if each.violated), None) is not None


# --- Many reports at once --------------------------------------------------------------------------------------------


def refuted(made, law, count, statistic=None):
    """Findings of the auditor in many reports of clients with a law, drawn at once."""
    score = statistic or (lambda reports: made.run.randomizer.log_ratio(reports, *made.pair))
    runs = [score(law.draw(np.full(count, value), SECRET))[:, None].astype(float) for value in made.pair]
    bound, findings = examine([AuditStatistic("score", score)], [runs], made.claimed, delta=0.0, false_alarm=1e-6)
    return bound > made.claimed.epsilon(0.0) or any(finding.violated for finding in findings)


NEEDED = {
    ("hybrid-area", 0.1): 450_000,
    ("hybrid-area", 0.5): 20_000,
    ("disk-area", 0.1): 150_000,
    # Of the values that are audited a report on starts tells little, and half of all are such.
    ("displacements", 0.1): 450_000,
    ("displacements", 0.5): 20_000,
    ("displacements", 1.0): 12_000,
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", KINDS)
def test_half_of_the_noise_is_found_and_all_of_it_is_not(kind, epsilon):
    """As many reports as find epsilon twice as large nearly always do not refute the claim of those that keep it."""
    made = target_of(KINDS[kind](epsilon))
    honest = made.run.randomizer
    # By simulated audits, half as many do in nine cases of ten.
    count = NEEDED.get((kind, epsilon), {0.1: 80_000, 0.5: 5000, 1.0: 3000}[epsilon])
    assert not refuted(made, honest, count)
    assert any(refuted(made, with_epsilon(honest, 2.0), count) for _ in range(3))


def literal_hybrid(epsilon):
    """The exponent lacks epsilon, so that it spends 1 whatever is asked."""
    honest = target_of(HybridArea(epsilon=epsilon, cells=5, radius=2))
    return replace(honest, run=Respond(LiteralHybridArea(epsilon=epsilon, cells=5, radius=2, unsafe=True)))


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 4000), (0.5, 20_000)])
def test_literal_hybrid_is_caught(epsilon, count):
    made = target_of(HybridArea(epsilon=epsilon, cells=5, radius=2))
    assert any(refuted(made, literal_hybrid(epsilon).run.randomizer, count) for _ in range(3))


@dataclass(frozen=True)
class Unclipped(DiskArea):
    """The formula for shrunken cells, where it gives more than the cell's area: of cells whose centre is inside."""

    @property
    def exponent(self):
        return math.log1p(math.expm1(self.epsilon) * OVER)

    @property
    def weights(self):
        weights = DiskArea(epsilon=self.epsilon, cells=self.cells, radius=self.radius).weights.copy()
        weights[EIGHT] = 1 + math.expm1(self.epsilon) * OVER
        return weights


# With radius 6 the cell (5, 3) is inside, and the formula gives it 1.514 times its area.
SHRINKING = 6 / math.hypot(5, 3) - 1
OVER = 4 * (0.5 + 5 * SHRINKING) * (0.5 + 3 * SHRINKING)
EIGHT = tuple(6 + np.array([(a * i, b * j) for i, j in ((5, 3), (3, 5)) for a in (-1, 1) for b in (-1, 1)]).T)


def among_the_eight(reports):
    """Whether reports are of those cells around the corner, whose disk does not reach the other corner's."""
    return np.isin(64 * reports[:, 0] + reports[:, 1], [64 * i + j - 6 * 65 for i, j in np.transpose(EIGHT)])


def unclipped_shares():
    honest = target_of(DiskArea(epsilon=1.0, cells=15, radius=6))
    seen = AuditStatistic("the eight cells", functools.partial(_only, among_the_eight))
    return replace(honest, run=Respond(Unclipped(epsilon=1.0, cells=15, radius=6)), statistics=(seen,))


def _only(score, reports):
    return score(reports)[0]


def test_unclipped_shares_are_caught():
    """Eight cells are likelier by 3.6 times at epsilon 1; seen by a statistic of one's own, that of these cells."""
    assert abs(OVER - 1.514) < 5e-4
    made = unclipped_shares()
    assert any(refuted(made, made.run.randomizer, 400_000, among_the_eight) for _ in range(3))
    honest = DiskArea(epsilon=1.0, cells=15, radius=6)
    assert not refuted(made, honest, 400_000, among_the_eight)


# What the benchmark audits, and by how many runs on each value.
BENCHMARKED = {
    **{name: (planted, 5000) for name, (planted, _, _) in FAULTS.items()},
    "literal hybrid, epsilon 0.1": (functools.partial(literal_hybrid, 0.1), 5000),
    "literal hybrid, epsilon 0.5": (functools.partial(literal_hybrid, 0.5), 20_000),
    "unclipped shares": (unclipped_shares, 400_000),
}


# --- What is audited -------------------------------------------------------------------------------------------------


def test_far_values_of_a_metric_client_may_be_told_apart_by_more():
    """The claim is for the distance of the pair; one cell apart it is epsilon."""
    law = SubsetExponential(epsilon=0.5, cells=4, subset=3)
    claims = {pair: target_of(law, pair=pair).claimed.epsilon(0.0) for pair in ((0, 1), (0, 15), (7, 7))}
    assert claims[0, 1] == law.spent
    assert claims[0, 15] == pytest.approx(law.spent * 3 * 2**0.5)
    assert target_of(law, pair=(7, 7)).alike
    assert cell_distance(law, (4, 11)) == pytest.approx(10**0.5)


def test_hard_values_of_a_metric_client_show_more_than_the_farthest():
    """Corner against corner hardly ever the claim of their distance is met by a report that is not rare."""
    law = SubsetExponential(epsilon=1.0, cells=5, subset=2)
    chosen, far = (target_of(law, pair=pair) for pair in (None, (0, 24)))
    ratings = [
        Rating(each.claimed, 0.0, 5000, 1e-6, 1, LargerEpsilon(law, each.pair)).margin(2.0) for each in (chosen, far)
    ]
    assert ratings[0] > 3 + max(0, ratings[1])


@pytest.mark.parametrize(
    "pair", [(0, 25), (-1, 3), (0.5, 1), (True, 2), "ab", (1, 2, 3), [None, 1], 3, (0, 10**30), (np.nan, 1)]
)
def test_values_that_no_client_has_are_refused(pair):
    law = DiskArea(epsilon=1.0, cells=5, radius=1)
    with pytest.raises(InputError, match="pair"):
        target_of(law, pair=pair)


def test_one_value_alone_tests_nothing():
    for law in (RandomizedResponse(epsilon=1.0, domain=1), SubsetExponential(epsilon=1.0, cells=1, subset=1)):
        made = target_of(law)
        assert made.alike
        assert made.pair == (0, 0)
        assert "NOTHING IS TESTED" in str(audit(made, trials=50))


def test_weaker_clients_stop_at_what_integers_express():
    law = DiskArea(epsilon=1.0, cells=5, radius=1)
    assert with_epsilon(law, 2.0).epsilon == 2.0
    assert with_epsilon(law, 1.0) is law
    assert 8 < with_epsilon(law, 64.0).epsilon < 64
    first, second = LargerEpsilon(law, (0, 24))(64.0)
    assert first.mean() > 0.9 > -0.9 > second.mean()


def test_reports_that_nobody_sends_are_looked_at_as_they_are():
    """They must not end an audit, which is about whatever the client really sends."""
    made = target_of(DiskArea(epsilon=1.0, cells=5, radius=1))
    far = np.array([[9, -9]])
    read = {statistic.name: statistic.features(far) for statistic in made.statistics}
    assert read["likelihood ratio"] == 0.0
    assert not read["counts"].any()
    assert read["numbers"].tolist() == [9, -9]
    assert read["one bit"][:64].sum() == 2
    assert read["one bit"][64:].sum() == 63
    twice = np.array([[0, 0], [0, 0]])
    ratio = made.statistics[0].features
    assert ratio(twice) == 2 * ratio(twice[:1]) == pytest.approx(2.0)


# --- Mechanisms, plans and saved releases ----------------------------------------------------------------------------

SQUARE = Window.rectangle(0, 0, 1000, 1000)


@pytest.mark.slow
def test_a_mechanism_is_audited_as_its_client():
    """With a window or without, as a plan or as its measurement: one report is what the budget is spent on."""
    for mechanism in (DiskAreaMechanism(1.0, cells=5), SEMGeoI(1.0, cells=3), UniformGrid(SQUARE, epsilon=1.0)):
        plan = mechanism.plan(SQUARE, n=100)
        whole = target_of(mechanism, SQUARE, n=100)
        for made in (target_of(mechanism), target_of(plan), target_of(plan.statistic), whole):
            assert made.run.randomizer.parameters() == mechanism.randomizer.parameters()
            assert made.pair == whole.pair
            away = cell_distance(mechanism.randomizer, made.pair) if made.run.randomizer.metric else 1.0
            assert made.claimed.epsilon(0.0) == pytest.approx(away)
    with pytest.raises(InputError, match="settled by the plan already"):
        target_of(plan, SQUARE)
    assert target_of(DiskAreaMechanism(1.0, cells=5), pair=(3, 4)).pair == (3, 4)
    assert not isinstance(LGCPSynthesizer(1.0, alpha=25.0), Audited)


def test_of_two_rounds_one_in_which_there_is_something_to_tell_is_audited():
    """A coarse grid of one cell hides everything; the second round's clients have the same budget."""
    few, many = (AdvancedAdaptiveGrid(SQUARE, epsilon=1.0).plan(SQUARE, n=n).statistic for n in (1000, 100_000))
    assert len(few.first) == 1
    assert audit_of(few).clients.inputs == 9
    assert audit_of(many).clients.inputs == 16
    assert not target_of(few).alike
    with pytest.raises(InputError, match="domain: needed"):
        target_of(AdvancedAdaptiveGrid(SQUARE, epsilon=1.0))


@dataclass(frozen=True, eq=False)
class Generous(AreaStatistic):
    """A plan that claims less than its clients spend."""

    @functools.cached_property
    def guarantee(self):
        return replace(super().guarantee, profile=PureDP(0.25))

    def __post_init__(self):
        pass


def test_a_plan_that_claims_less_than_its_clients_spend_is_refuted():
    """Held to its clients' own certificate it would pass."""
    honest = DiskAreaMechanism(1.0, cells=4, radius=1).plan(SQUARE, n=100).statistic
    made = target_of(Generous(honest.mesh, honest.randomizer, honest.n))
    assert made.claimed.epsilon(0.0) == 0.25
    assert any(refuted(made, honest.randomizer, 4000) for _ in range(3))
    assert refuted(target_of(honest), honest.randomizer, 4000) is False


SAVED = {
    "disk-area": DiskAreaMechanism(1.0, cells=4),
    "subset-exponential": SEMGeoI(1.0, cells=3),
    "local-hashing": UniformGrid(SQUARE, epsilon=1.0, cells=3),
    "randomized-response": AdvancedAdaptiveGrid(SQUARE, epsilon=3.0, oracle="auto"),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", SAVED)
def test_saved_local_release_is_audited_without_its_reports(kind, tmp_path):
    """From its certificate's public parameters, which are verified."""
    points = PointPattern(np.random.default_rng(1).uniform(0, 1000, (200, 2)), SQUARE)
    result = audit(SAVED[kind].release(points).save(tmp_path / "public"), trials=50)
    assert result.verification.holds
    assert not result.violated
    assert result.words.startswith(kind)
    assert result.law_is_known


def test_own_pair_and_own_claim_are_taken():
    law = RandomizedResponse(epsilon=1.0, domain=2)
    found = audit(law, pair=(1, 0), claimed=PureDP(0.2), trials=300)
    assert found.violated
    assert "1 or 0" not in found.words
    assert found.words.endswith("not for publication")
    assert target_of(law).words.endswith("value 0 or 1")


def test_a_client_that_is_a_function_is_audited():
    """One's own program, of which nothing is known but what it claims."""

    def client(value):
        return int(SECRET.random() < (0.75 if value else 0.25))

    assert audit(client, pair=(0, 1), claimed=PureDP(0.5), statistics=[float], trials=800).violated

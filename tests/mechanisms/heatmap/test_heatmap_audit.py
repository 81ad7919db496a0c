"""The auditor put to heat maps: they stay below their claim, and broken ones are found out.

Audits of what is sound run with false alarms of 1e-6 each, three in all.
"""

import functools
import json
import pickle
import re
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import shapely
from scipy import integrate, stats
from support.seams import randomise_by

from dpppsynth.auditing import audit
from dpppsynth.auditing.power import Law, _share_caught
from dpppsynth.auditing.targets import Measure, audit_of, target_of, target_of_release
from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.contract.audits.neighbouring_pairs import changed, require_neighbours
from dpppsynth.contract.audits.noise_laws import AsStated
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import generator
from dpppsynth.mechanisms.heatmap.audit import POINTS, always_seen
from dpppsynth.mechanisms.heatmap.audit_statistics import branches
from dpppsynth.mechanisms.heatmap.bound import LevelBudgets
from dpppsynth.mechanisms.heatmap.persons import Users
from dpppsynth.mechanisms.heatmap.statistic import HeatmapStatistic
from dpppsynth.mechanisms.heatmap.tree import grow, pyramid
from dpppsynth.privacy import AddRemovePerson, PureDP
from dpppsynth.privacy.noise import OpenDPLaplace, SeededLaplace
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import HeatmapSynthesizer

SQUARE = Window.rectangle(0, 0, 1000, 1000)
RING = Window.polygon(shapely.box(0, 0, 1000, 800).difference(shapely.box(300, 300, 500, 500)))
WHOLE = 2**20
# With one level of cells, all of which are kept, audits are quickest.
ALL_KEPT = {"w": 256, "user": None}


SECRET = generator(None)
# Of faults that the noise itself shows as well.
BY_STATISTICS = {"draws": (), "laws": (), "excess": ()}


def quick_noise(plan, draw, exact):
    """The same law with fresh randomness, for OpenDP takes long for each value."""
    noise = draw.__self__
    return SeededLaplace(noise.scale, SECRET).add(exact) if type(noise) is OpenDPLaplace else draw(exact)


@pytest.fixture
def quick(monkeypatch):
    randomise_by(monkeypatch, quick_noise)


def made(domain=SQUARE, **options):
    settings = {"epsilon": 1.0, "shape": (16, 16), "variant": "practical"} | options
    return target_of(HeatmapSynthesizer(**settings), domain)


SETTINGS = [
    {"w": 20, "user": "user"},
    {"w": 2, "user": None, "variant": "theory", "epsilon": 0.1, "domain": RING, "shape": (16, 11)},
    {"variant": "two-level", "domain": RING, "shape": (30, 30), "measure": 16},
    {"w": 5, "measure": 8},
]
NAMES = ["persons", "points", "two levels", "coarser than the grid"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("options", SETTINGS, ids=NAMES)
@pytest.mark.usefixtures("quick")
def test_heat_map_stays_below_its_claim(options):
    honest = made(**options)
    assert honest.claimed.epsilon(0.0) == pytest.approx(options.get("epsilon", 1.0))
    result = audit(honest, trials=100)
    assert not result.violated, result
    assert result.law_is_known
    again = pickle.loads(pickle.dumps(honest))
    assert again.statistics[0].features(again.run(again.pair[0])) < 1.0001


@pytest.mark.exhaustive
@pytest.mark.parametrize("options", [*SETTINGS, {"w": 1}, {"w": 300}, {"shape": (256, 256), "epsilon": 10.0}])
def test_hard_pair_meets_the_sensitivity_on_every_level(options):
    """With everybody else far from the person, noise would keep the algorithm from looking at half of the change."""
    aimed = made(**options)
    plan, pair = aimed.run.plan, aimed.pair
    require_neighbours(pair, plan.relation)
    require_neighbours(pair[::-1], plan.relation)
    for branch in branches(plan, pair):
        assert (branch.first - branch.second).sum() == WHOLE
    change, scale = always_seen(plan, pair)
    assert 0.95 < (change / scale).sum() / plan.epsilon <= 1.0
    gone, came = changed(pair)
    assert (len(gone), len(came)) == (1 if plan.user is None else POINTS, 0)


def test_likelihood_ratio_is_that_of_all_numbers():
    """scipy's law of every number looked at, cells of both patterns alike included; a far cell is not always seen."""
    aimed = made()
    plan, ratio = aimed.run.plan, aimed.statistics[0].features
    exact = [pyramid(plan.users(pattern).lattice(plan.bits))[plan.budgets.first :] for pattern in aimed.pair]
    looked = set()
    for pattern in aimed.pair * 3:
        released = plan.measure(pattern)
        start, expected = 0, 0.0
        levels = plan.tree(released.lattice).levels
        for level, scale, *sums in zip(levels, plan.scales, *exact, strict=True):
            seen = released.lattice[start : (start := start + len(level.cells))]
            one, other = (stats.dlaplace(1 / scale).logpmf(seen - each.ravel()[level.cells]) for each in sums)
            expected += (one - other).sum()
        assert ratio(released) == pytest.approx(expected, abs=1e-7)
        looked.add(tuple(aimed.statistics[2].features(released)))
    assert looked <= {(2, 2, 1), (2, 2, 2)}
    names = [
        "likelihood ratio",
        "levels",
        "looked at",
        "level 2",
        "level 3",
        "level 4",
        "shared noise",
        "extremes",
        "total",
    ]
    assert [each.name for each in aimed.statistics] == [*names, "one number"]


def test_weakened_law_has_the_mean_of_laplace():
    """`E (|X + c| - |X|) / b = a - 1 + e^-a` for a change by a scales, summed over the levels."""
    aimed = made(user=None)
    epsilons = 3 * np.array(aimed.run.plan.budgets.epsilons)
    first, second = aimed.weakened(3.0)
    assert (first == -second).all()
    expected = (epsilons - 1 + np.exp(-epsilons)).sum() / 3
    assert first.mean() == pytest.approx(expected, abs=6 * first.std() / np.sqrt(len(first)))


# --- What the stated noise gives away ---


def test_stated_noise_of_one_number_and_of_two():
    """A shift by a scales gives `1 - e^((epsilon - a)/2)`; of two, scipy's integral over the first number's loss."""

    def one(epsilon, a):
        return max(0.0, 1 - np.exp((epsilon - a) / 2), 1 - np.exp(epsilon))

    def two(epsilon, a, b):
        within = integrate.quad(lambda x: np.exp(-x) / 2 * one(epsilon - a + 2 * x, b), 0, a, limit=200)[0]
        return one(epsilon - a, b) / 2 + within + np.exp(-a) / 2 * one(epsilon + a, b)

    pure = PureDP(1.0)
    for epsilon in (0.0, 0.3, 0.9):
        stated = [AsStated(pure, np.array(each)).delta(epsilon) for each in ([0.6], [0.6, 0.4])]
        exact = one(epsilon, 0.6), two(epsilon, 0.6, 0.4)
        assert all(right <= got <= right + 1e-3 for got, right in zip(stated, exact, strict=True))
    assert AsStated(PureDP(0.1), np.ones(3)).delta(0.0) == PureDP(0.1).delta(0.0)


@pytest.mark.parametrize("options", SETTINGS, ids=NAMES)
def test_claim_at_the_pair_is_that_of_the_stated_noise(options):
    """As often as its own likelihood ratio says, and never by masses that a broken plan works out."""
    aimed = made(**options)
    plan, claim = aimed.run.plan, aimed.claimed
    # Cells that are not always looked at may only add.
    ratio, _ = aimed.weakened(1.0)
    for epsilon in (0.0, 0.5 * plan.epsilon):
        seen = np.maximum(0.0, -np.expm1(epsilon - ratio))
        # Six standard errors of what the claim is at most, and its rounding.
        assert (
            seen.mean() - 6 * seen.std() / len(ratio) ** 0.5
            <= claim.delta(epsilon)
            < PureDP(plan.epsilon).delta(epsilon)
        )
        assert claim.delta(epsilon) < seen.mean() + 6 * seen.std() / len(ratio) ** 0.5 + 0.02 * plan.epsilon
    assert claim.epsilon(0.0) == plan.guarantee.epsilon()
    if plan.user is not None:
        twice = audit_of(of_kind(CountedTwice, plan)).as_stated(aimed.pair, plan.guarantee.profile)
        assert twice.delta(0.0) == claim.delta(0.0)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_own_claim_or_pair_sets_the_stated_noise_aside():
    loose = audit(made(), trials=50, claimed=PureDP(3.0))
    assert {f.claimed for f in loose.findings if f.epsilon == 0} == {PureDP(3.0).delta(0.0)}
    aimed = made()
    swapped = audit(aimed, pair=aimed.pair[::-1], trials=50)
    assert {f.claimed for f in swapped.findings if f.epsilon == 0} == {aimed.claimed.claim.delta(0.0)}


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_too_few_runs_say_how_many_it_takes():
    aimed = made(**ALL_KEPT)
    result = audit(aimed, trials=50)
    assert "not rejected" in str(result)
    needed = int(re.search(r"For 2 times too little it takes about (\d+)\.", str(result))[1])
    law = Law.of_scores(*aimed.weakened(2.0))
    few, enough = (
        _share_caught(replace(result.rating, trials=trials).rules(), law, trials)
        for trials in (round(0.8 * needed), round(1.1 * needed))
    )
    assert few < 0.9 < enough


# --- Faults ----------------------------------------------------------------------------------------------------------


def with_budgets(plan, epsilons):
    """The same plan whose measurement spends other budgets than its guarantee says."""
    other = replace(plan)
    other.__dict__["budgets"] = LevelBudgets(plan.budgets.first, tuple(epsilons), plan.budgets.step)
    return other


class EveryPointCounts(HeatmapStatistic):
    """A person with several points is counted as often."""

    def users(self, pattern):
        i, j = self.places[self.mesh.locate(pattern.positions)].T
        return Users.from_columns(np.arange(len(i)), i, j, side=2**self.depth)


class TrueTotal(HeatmapStatistic):
    """Noised counts that are made to sum to the true number of persons."""

    def measure(self, pattern, rng=None):
        released = super().measure(pattern, rng)
        lattice = released.lattice.copy()
        lattice[0] += len(np.unique(pattern.marks["user"])) * WHOLE - lattice[: 4**self.budgets.first].sum()
        return replace(released, lattice=lattice)


class TrueSelection(HeatmapStatistic):
    """The fullest cells are chosen by their true counts; all that is released has noise."""

    def measure(self, pattern, rng=None):
        exact, noised = pyramid(self.users(pattern).lattice(self.bits)), []

        def read(level, cells):
            number, true = level - self.budgets.first, exact[level].ravel()[cells]
            noised.append(SeededLaplace(self.scales[number], SECRET).add(true))
            return true / WHOLE

        grow(self.budgets.first, self.depth, self.w, read, self.inside)
        return PrivateStatistic(self, np.concatenate(noised), "broken", False)


class OneStream(HeatmapStatistic):
    """One stream of noise, begun anew on every level; each number's noise is right, and no two of a level are alike."""

    def measure(self, pattern, rng=None):
        stream = SECRET.laplace(size=400)
        return noised(self, pattern, lambda level, many: stream[:many] * self.scales[level])


class OneBranch(HeatmapStatistic):
    """One number per run is the noise of the first cells of every level, in scales."""

    def measure(self, pattern, rng=None):
        shared = SECRET.laplace()

        def noise(level, many):
            drawn = SECRET.laplace(size=many)
            drawn[:4] = shared
            return drawn * self.scales[level]

        return noised(self, pattern, noise)


class Clipped(HeatmapStatistic):
    """Noise of at most so many scales."""

    def measure(self, pattern, rng=None):
        return noised(self, pattern, lambda k, many: np.clip(SECRET.laplace(size=many), -1.5, 1.5) * self.scales[k])


class CountedTwice(HeatmapStatistic):
    """A person has mass two."""

    def users(self, pattern):
        i, j = self.places[self.mesh.locate(pattern.positions)].T
        users = np.arange(len(i)) if self.user is None else np.unique(pattern.marks["user"], return_inverse=True)[1]
        users = np.concatenate([users, users + users.max() + 1])
        return Users.from_columns(users, np.tile(i, 2), np.tile(j, 2), side=2**self.depth)


def noised(plan, pattern, noise):
    """A release with `noise(number of the level, how many)`, in lattice units."""
    exact, found = pyramid(plan.users(pattern).lattice(plan.bits)), []

    def read(level, cells):
        number = level - plan.budgets.first
        found.append(exact[level].ravel()[cells] + np.rint(noise(number, len(cells))).astype(np.int64))
        return found[-1] / WHOLE

    grow(plan.budgets.first, plan.depth, plan.w, read, plan.inside)
    return PrivateStatistic(plan, np.concatenate(found), "broken", False)


def last_level_quiet(plan):
    *epsilons, last = plan.budgets.epsilons
    return with_budgets(plan, [*epsilons, 8 * last])


def full_budget_on_every_level(plan):
    return with_budgets(plan, [plan.epsilon] * len(plan.budgets.epsilons))


def noise_halved(plan):
    return with_budgets(plan, [2 * each for each in plan.budgets.epsilons])


def of_kind(kind, plan):
    return kind(
        plan.mesh, plan.expected_n, plan.epsilon, w=plan.w, variant=plan.variant, user=plan.user, finest=plan.finest
    )


# Fault, where it is planted, the statistic that sees it, and runs on each input.
FAULTS = {
    "full budget on every level": (
        full_budget_on_every_level, ALL_KEPT | {"variant": "theory"}, "likelihood ratio", 220,
    ),
    "noise halved": (noise_halved, ALL_KEPT, "likelihood ratio", 570),
    "noise of two levels halved": (
        noise_halved, {"user": None, "variant": "two-level", "shape": (32, 32), "measure": 16}, "likelihood ratio", 570,
    ),
    "true total": (functools.partial(of_kind, TrueTotal), {}, "total", 100),
    "true selection": (functools.partial(of_kind, TrueSelection), {}, "one number", 100),
    "one stream": (functools.partial(of_kind, OneStream), {}, "shared noise", 100),
    "one number on a branch": (functools.partial(of_kind, OneBranch), {}, "shared noise", 100),
    "noise clipped": (functools.partial(of_kind, Clipped), {}, "extremes", 400),
    "last level quiet": (last_level_quiet, {}, "level 4", 200),
    "last of two levels quiet": (last_level_quiet, {"variant": "two-level"}, "level 4", 200),
}  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_caught(fault):
    """An auditor whose pair has the person alone, with one point, or without rivals misses one of these.

    By simulated audits the faults of the noise are missed once in a hundred times at most, so three in a row are
    once in a million.
    """
    broken, options, seen_by, trials = FAULTS[fault]
    honest = made(**options)
    looked = tuple(each for each in honest.statistics if each.name == seen_by)
    faulty = replace(honest, run=Measure(broken(honest.run.plan)), statistics=looked, **BY_STATISTICS)
    results = (audit(faulty, trials=trials, false_alarm=1e-6) for _ in range(3))
    result = next((each for each in results if each.violated), None)
    assert result is not None


class Shares(NamedTuple):
    """Points with weights of their own."""

    i: np.ndarray
    j: np.ndarray
    weight: np.ndarray
    side: int

    def lattice(self, bits):
        sums = np.zeros((self.side, self.side), dtype=np.int64)
        np.add.at(sums, (self.i, self.j), np.rint(self.weight * 2**bits).astype(np.int64))
        return sums


class OneShareTooMany(HeatmapStatistic):
    """Points of a person weigh 1 / (k - 1) where there are k, so a person weighs k / (k - 1)."""

    def users(self, pattern):
        i, j = self.places[self.mesh.locate(pattern.positions)].T
        _, user, k = np.unique(pattern.marks["user"], return_inverse=True, return_counts=True)
        return Shares(i, j, 1 / np.maximum(k - 1, 1)[user.ravel()], 2**self.depth)


def halved_last_scale(plan):
    """The last level's noise is that of half its scale."""
    *epsilons, last = plan.budgets.epsilons
    return with_budgets(plan, [*epsilons, 2 * last])


def next_levels_scale(plan):
    """Each level's noise is that of the next one's budget, and the last level's that of the first, which is larger."""
    first, *rest = plan.budgets.epsilons
    other = with_budgets(plan, [*rest, first])
    other.__dict__.pop("scales")
    return other


# Fault in what runs, what of the noise is not as stated, and runs on each input.
NOISE_FAULTS = {
    "one share too many": (functools.partial(of_kind, OneShareTooMany), {"sum of the noise of level 4"}, 50),
    "every point counts": (functools.partial(of_kind, EveryPointCounts), {"sum of the noise of level 4"}, 50),
    "last scale halved": (halved_last_scale, {"size of the noise of level 4"}, 50),
    "next level's scale": (next_levels_scale, {"size of the noise of level 4"}, 50),
}


@pytest.mark.exhaustive
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("fault", NOISE_FAULTS)
def test_noise_that_is_not_as_stated_is_found(fault):
    """By all numbers of the runs; the likelihood ratio takes thousands of runs, where it sees the fault at all."""
    broken, seen, trials = NOISE_FAULTS[fault]
    honest = made(decay=0.7 if "next" in fault else None)
    honest = replace(honest, statistics=honest.statistics[:1])
    faulty = replace(honest, run=Measure(broken(honest.run.plan)))
    assert not audit(replace(faulty, **BY_STATISTICS), trials=trials).violated
    results = (audit(faulty, trials=trials) for _ in range(3))
    assert any(seen <= set(result.misfits) and result.violated for result in results)
    assert not audit(honest, trials=trials).violated


def test_persons_that_weigh_more_than_one_need_no_run():
    """The pair itself gives away more than is claimed if plan, measurement and auditor share the fault."""
    plan = made().run.plan
    aimed = target_of(of_kind(OneShareTooMany, plan))
    assert target_of(plan).excess == ()
    assert aimed.excess == ("at this pair the stated noise gives away 1.067, and 1 is claimed",)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_person_counted_twice_is_caught_though_the_auditor_counts_alike():
    """Missed by one audit in ten at most, so eight in a row are once in a hundred million."""
    faulty = target_of(of_kind(CountedTwice, made(**ALL_KEPT).run.plan))
    change, _ = always_seen(faulty.run.plan, faulty.pair)
    assert change.tolist() == [2 * WHOLE]
    assert "and 1 is claimed" in faulty.excess[0]
    faulty = replace(faulty, statistics=faulty.statistics[:1], **BY_STATISTICS)
    assert any(audit(faulty, trials=500).violated for _ in range(8))


# --- Pairs of one's own, and saved releases --------------------------------------------------------------------------

HERE, THERE = [100.0, 100.0], [900.0, 900.0]


def persons(*rows, name="user"):
    """A pattern of rows (place, person)."""
    places, who = zip(*rows, strict=True)
    return PointPattern(list(places), SQUARE, {name: list(who)})


def test_pairs_that_differ_by_more_than_one_person_are_refused():
    base = persons((HERE, "a"), (HERE, "b"))
    one_more = persons((THERE, "c"), (HERE, "b"), (HERE, "a"), (HERE, "c"))
    require_neighbours((base, one_more), AddRemovePerson())
    require_neighbours((base, base), AddRemovePerson())
    plain = [PointPattern(places, SQUARE) for places in ([HERE], [HERE, THERE], [HERE, THERE, THERE])]
    require_neighbours((plain[1], plain[0]), AddRemovePerson())
    others = {
        "two more": persons((HERE, "a"), (HERE, "b"), (THERE, "c"), (THERE, "d")),
        "one who is there already": persons((HERE, "a"), (HERE, "b"), (THERE, "b")),
        "one who moved": persons((HERE, "a"), (THERE, "b")),
        "two who swapped names": persons((HERE, "a"), (HERE, "c")),
        "another mark": persons((HERE, "a"), (HERE, "b"), name="year"),
        "no mark": plain[0],
    }
    for pair in [(base, other) for other in others.values()] + [(plain[0], plain[2])]:
        for each in (pair, pair[::-1]):
            with pytest.raises(InputError, match=r"not neighbouring.*one person is added or removed"):
                require_neighbours(each, AddRemovePerson())


def test_pair_of_ones_own_is_audited():
    """Changes in a cell that is not always looked at are left out of the law; a pair of equals tests nothing."""
    plan = HeatmapSynthesizer(1.0, shape=(16, 16)).plan(SQUARE)
    crowd = [(HERE, f"p{k}") for k in range(300)]
    with_one = persons(*crowd, (THERE, "c"), (THERE, "c"))
    aimed = target_of(plan, pair=(with_one, persons(*crowd)))
    change, _ = always_seen(plan.statistic, aimed.pair)
    assert change.tolist() == [WHOLE, WHOLE]
    assert not aimed.alike
    assert target_of(plan, pair=(with_one, with_one)).alike
    with pytest.raises(InputError, match="not neighbouring"):
        target_of(plan, pair=(with_one, persons(*crowd[2:])))


@pytest.mark.slow
def test_saved_release_is_audited_without_its_data(tmp_path):
    points = persons(*(([10.0 * k, 500.0], f"p{k % 7}") for k in range(50)))
    synthesizer = HeatmapSynthesizer(1.0, shape=(16, 16))
    folder = synthesizer.release(points).save(tmp_path / "public")
    aimed = target_of_release(folder)
    stated = json.loads((folder / "certificate.json").read_text())["parameters"]
    assert aimed.run.plan.parameters().items() <= stated.items()
    assert audit_of(aimed.run.plan).pair(AddRemovePerson())[0].xy.tolist() == aimed.pair[0].xy.tolist()
    result = audit(folder, trials=50)
    assert result.verification.holds
    assert not result.violated
    assert result.words.startswith("heatmap: 16 of ")

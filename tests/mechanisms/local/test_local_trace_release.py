"""LDPTrace as a release: plan, certificate, folder, audit (dpppsynth.mechanisms.local).

The statistical test stops at a false alarm of 1e-6.
"""

import json
import pickle
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
import shapely
from baselines.trajectories import Trajectories
from support.forgery import read, reseal
from support.subclasses import recast

from dpppsynth.auditing import audit
from dpppsynth.auditing.targets import target_of
from dpppsynth.core.errors import BudgetError, InputError, PrivacyCheckError
from dpppsynth.core.published_files import plain_text
from dpppsynth.ledger import Ledger
from dpppsynth.local import LDPTrace
from dpppsynth.mechanisms.local.audit_clients import COUNT
from dpppsynth.mechanisms.local.audit_trajectories import hard_walks
from dpppsynth.mechanisms.local.bound import local_trajectories
from dpppsynth.mechanisms.local.randomizers.unary import pack
from dpppsynth.mechanisms.local.release import TraceRelease
from dpppsynth.mechanisms.local.reports import Counts
from dpppsynth.mechanisms.local.trajectories.paths import GridTrajectories
from dpppsynth.mechanisms.local.trajectories.protocol import TraceCounts, TraceProtocol
from dpppsynth.mechanisms.local.trajectory_statistic import TraceStatistic, number_of_trajectories
from dpppsynth.mechanisms.local.trajectory_synthesizer import CombinedTraces
from dpppsynth.privacy import AddRemove, AlphaNeighbours, Local, PureDP, ReplaceOne, verify
from dpppsynth.privacy.relations import relation_from_dict
from dpppsynth.release import load_release
from dpppsynth.reporting import promise
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

SQUARE = Window.rectangle(0, 0, 300, 300, "EPSG:27700")
# Without the cell in the middle and without the upper right corner's.
HOLED = Window.polygon(
    shapely.box(0, 0, 300, 300).difference(shapely.box(100, 100, 200, 200)).difference(shapely.box(200, 200, 300, 300))
)
TRACE = LDPTrace(3.0, cells=3, max_length=4)
WILD = [None, True, float("nan"), -1, 0, 2**70, 1.5, "", b"x", [], {}, object(), np.zeros(3)]


def pattern(paths, window=SQUARE, labels=None, mark="trajectory"):
    """Trajectories from lists of cells of a grid of 3 x 3, row by row; `labels` say whose each is."""
    cells = np.concatenate(paths)
    who = np.repeat(np.arange(len(paths)) if labels is None else labels, [len(path) for path in paths])
    return PointPattern(100 * np.column_stack(np.divmod(cells, 3)) + 50, window, {mark: who})


def many(n=60, window=SQUARE):
    return pattern([[0, 1, 2], [6], [3, 0]] * (n // 3), window)


# --- Which trajectories are reported ---------------------------------------------------------------------------------


def paths(walks):
    return [part.tolist() for part in np.split(walks.values, walks.offsets[1:-1])]


def test_rows_of_a_trajectory_are_taken_in_their_order():
    """Interleaved with others, and with labels that sort otherwise than they appear."""
    one = pattern([[0], [8], [1], [7], [2]], labels=["b", "a", "b", "a", "b"])
    assert sorted(paths(TRACE.plan(SQUARE, n=2).statistic.walks(one))) == [[0, 1, 2], [8, 7]]
    # The number 7 and the text "7" are two persons.
    two = PointPattern([[50, 50], [250, 250]], SQUARE, {"trajectory": np.array([7, "7"], dtype=object)})
    assert number_of_trajectories(two, "trajectory") == 2


def test_cells_are_those_that_clients_find_themselves():
    xy = np.random.default_rng(1).uniform(0, 300, (50, 2))
    found = TRACE.plan(SQUARE, n=1).statistic.walks(PointPattern(xy, SQUARE, {"trajectory": np.zeros(50, dtype=int)}))
    own = Trajectories.of([xy]).on_grid(SQUARE, 3)
    assert found.values.tolist() == own.values.tolist()


def test_without_a_mark_every_point_is_a_trajectory():
    alone = LDPTrace(3.0, cells=3, max_length=4, user=None)
    points = PointPattern([[50, 50], [50, 60]], SQUARE)
    assert paths(alone.plan(SQUARE, n=2).statistic.walks(points)) == [[0], [0]]
    assert alone.release(points).statistic.definition.n == 2


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (many().unmarked(), r"^pattern: needs the mark 'trajectory'"),
        (pattern([[0, 1], [2]], mark="user"), r"^pattern: needs the mark 'trajectory'"),
        (pattern([[0, 1], [2]], labels=["a", ""]), r"^user: some labels are missing"),
        (pattern([[0, 1], [2]], labels=[0.5, 1.5]), r"^user: labels must be texts or whole numbers"),
        (pattern([[0, 1], [2]], window=HOLED), r"^pattern: its domain differs"),
        (pattern([[0, 1], [2], [3]]), r"^n: the release was planned for another number of trajectories"),
        (pattern([[0, 1, 2]]), r"^n: the release was planned for another number of trajectories"),
    ],
)
def test_other_patterns_are_refused(bad, said):
    plan = TRACE.plan(SQUARE, n=2)
    for call in (plan.release, plan.statistic.measure):
        with pytest.raises(InputError, match=said):
            call(bad)


# --- The counts ------------------------------------------------------------------------------------------------------


def test_measured_is_what_simulated_clients_report():
    """Both rounds in the order of their parts, the second about the length that the first one's counts lead to."""
    given = many()
    plan = TRACE.plan(SQUARE, n=60).statistic
    statistic = plan.measure(given, 5)
    lengths, mobility = TRACE.simulate(plan.walks(given), 5)
    assert statistic.lattice.tolist() == [*lengths.values.tolist(), *mobility.values.tolist()]
    assert [*mobility.mechanism.law.by_part(mobility.values)] == ["start", "end", "moves"]
    assert statistic.seeded
    assert statistic.definition.longest == mobility.mechanism.longest == TRACE.longest(lengths)
    for one, other in zip(statistic.definition.counts(statistic.lattice), (lengths, mobility), strict=True):
        assert (one.law.parameters(), one.n) == (other.mechanism.law.parameters(), other.n)
        assert one.values.tolist() == other.values.tolist()
    assert not plan.measure(given).seeded


def test_counts_of_real_clients_become_the_same_release():
    walks = TRACE.plan(SQUARE, n=60).statistic.walks(many())
    first = TRACE.first
    lengths = first.aggregate([first.client(walks.part(k, k + 1)) for k in range(60)])
    second = TRACE.second(TRACE.longest(lengths))
    # Some never answer the second time.
    mobility = second.aggregate([second.client(walks.part(k, k + 1)) for k in range(50)])
    both = TRACE.combine(lengths, mobility)
    release = both.release(SQUARE)
    assert isinstance(release, TraceRelease)
    assert (release.statistic.definition.n, release.statistic.definition.clients) == (60, (60, 50))
    assert not release.seeded
    assert np.array_equal(release.model.moves, both.model.moves)
    assert np.array_equal(release.statistic.lattice, np.concatenate([lengths.values, mobility.values]))
    assert TRACE.combine(lengths, mobility, 80).release(SQUARE).intensity.total == pytest.approx(
        80 / 60 * release.intensity.total
    )
    for wrong in (59, 0, True, 60.5, 2**53 + 1, "60"):
        with pytest.raises(InputError, match=r"^n: "):
            TRACE.combine(lengths, mobility, wrong)
    with pytest.raises(InputError, match=r"^lengths: "):
        CombinedTraces(TRACE, mobility, lengths, 60)
    with pytest.raises(InputError, match=r"^clients: the counts are not those"):
        release.statistic.definition.counted(*TRACE.answers(lengths, mobility + mobility), seeded=False)
    with pytest.raises(InputError, match=r"^mobility: are counts of another round"):
        TRACE.combine(lengths, TRACE.second(1 if second.longest > 1 else 2).simulate(walks, 1))


def test_seeded_reports_make_a_seeded_release():
    lengths, mobility = TRACE.simulate(TRACE.plan(SQUARE, n=60).statistic.walks(many()))
    for seeded in ((True, False), (False, True)):
        parts = (replace(c, seeded=s) for c, s in zip((lengths, mobility), seeded, strict=True))
        assert TRACE.combine(*parts).release(SQUARE).seeded


def test_starts_and_ends_lie_in_the_window_and_a_window_is_never_left_empty():
    """Noise puts starts into cells that no person can be in: public knowledge, and free to use."""
    plan = TRACE.plan(HOLED, n=60).statistic
    assert np.flatnonzero(~plan.inside).tolist() == [4, 8]
    protocol = plan.protocol
    # As if everybody started and ended in the hole.
    first = TraceCounts(protocol.first, np.array([0, 0, 0, 60]), 60)
    second = protocol.announced(first)
    counts = np.zeros(second.size, dtype=np.int64)
    counts[[4, 13]] = 60
    rounds = TRACE.first, TRACE.second(second.longest)
    both = [Counts(asked, values, 60) for asked, values in zip(rounds, (first.values, counts), strict=True)]
    release = TRACE.combine(*both).release(HOLED)
    assert release.model.ends.tolist() == [0.0] * 9
    assert release.model.start.tolist() == pytest.approx(np.where(plan.inside, 1 / 7, 0).tolist())
    assert release.intensity.total > 0
    some = protocol.model(first, TraceCounts(second, counts, 60))
    assert some.start[4] == 1.0


# --- The release -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [SQUARE, HOLED], ids=["square", "holed"])
def test_saved_verified_and_loaded(window, tmp_path):
    release = TRACE.release(many(window=window))
    folder = release.save(tmp_path / "public", rng=1)
    outcome = verify(folder)
    assert outcome.holds
    assert outcome.guarantee == TRACE.check(window, n=60) == release.guarantee
    loaded = load_release(folder)
    assert type(loaded) is TraceRelease
    assert loaded.statistic.lattice.tolist() == release.statistic.lattice.tolist()
    assert loaded.intensity.total == release.intensity.total
    assert np.array_equal(loaded.trajectories(9, rng=1).values, release.trajectories(9, rng=1).values)
    stated = read(folder)
    assert stated["guarantee"]["relation"] == {"name": "local", "of": "trajectory"}
    assert stated["parameters"]["longest"] == release.statistic.definition.longest


def test_the_intensity_is_that_of_the_walks_visits():
    release = TRACE.release(many(), 1)
    visits = release.model.visits
    assert release.intensity.total == pytest.approx(60 * visits.sum())
    assert release.intensity([[50, 250]])[0] * 100**2 == pytest.approx(60 * visits[0, 2])
    assert len(release.trajectories(rng=1)) == 60
    assert len(release.trajectories(7)) == 7
    assert release.seeded
    with pytest.raises(InputError, match=r"^fixed_n: the number of points"):
        release.sample(1, fixed_n=True)
    with pytest.raises(InputError, match=r"^fixed_n"):
        release.sample(1, fixed_n="no")


def rewritten(folder, change):
    """A certificate and statistic changed by somebody who knows how to hash."""
    cert = read(folder)
    data = json.loads((folder / "statistic.json").read_text())
    change(cert["parameters"], data["lattice"])
    (folder / "statistic.json").write_text(plain_text(data))
    reseal(folder, cert, "statistic.json")


def all_zero(parameters, lattice, longest):
    """As if no bit of any report were set, and this length were announced."""
    parameters["longest"] = longest
    lattice[:] = [0] * (4 + 9 + 9 + 73)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "change",
    [
        lambda p, _: p.update(epsilon=1.0),
        lambda p, _: p.update(epsilon=3.5),
        lambda p, _: p.update(cells=4),
        lambda p, _: p.update(longest=9),
        lambda p, _: p.update(longest=0),
        lambda p, _: p.update(clients=[61, 60]),
        lambda p, _: p.update(clients=[60]),
        lambda p, _: p.update(user=""),
        lambda p, _: p.update(estimator={"kind": "trajectories", "post": "clip"}),
        lambda p, _: p.update(estimator={"kind": "grid", "post": "clip", "consistent": False}),
        lambda p, _: p.pop("user"),
        lambda _, lattice: lattice.pop(),
        # These keep to the bound, but are no counts of such reports.
        lambda _, lattice: lattice.__setitem__(0, 61),
        lambda _, lattice: lattice.__setitem__(0, -1),
        lambda _, lattice: lattice.__setitem__(-1, -1),
        lambda _, lattice: lattice.__setitem__(4, 61),
        lambda p, lattice: lattice.__setitem__(-1, 60 * max(1, p["longest"] - 1) + 1),
        lambda p, lattice: all_zero(p, lattice, 3),
        lambda p, lattice: lattice.__setitem__(slice(0, 4), [60 * (k + 1 == 5 - p["longest"]) for k in range(4)]),
        lambda p, _: p.update(longest=p["longest"] + 1),
        lambda p, _: p.update(longest=p["longest"] - 1),
        lambda p, _: p.update(longest=None),
        lambda p, _: p.update(n=2**60),
        lambda p, _: p.update(n=2**60, clients=[2**60, 60]),
        lambda p, _: p.update(clients=[60, 0]),
        lambda p, _: p.update(clients=[True, 60]),
        lambda p, _: p.update(clients=[60, 60, 60]),
        lambda p, _: p.update(clients="60"),
    ],
)
def test_tampered_folders_neither_verify_nor_open(change, tmp_path):
    folder = TRACE.release(many()).save(tmp_path / "public", patterns=0)
    rewritten(folder, change)
    try:
        holds = verify(folder).holds
    except InputError:
        holds = False
    assert not holds
    with pytest.raises((InputError, PrivacyCheckError)):
        load_release(folder)


def test_counts_that_are_rare_but_possible_verify_and_open(tmp_path):
    """Bits may all be zero; then lengths count alike, and nine of ten trajectories have up to four cells."""
    folder = TRACE.release(many()).save(tmp_path / "public", patterns=0)
    rewritten(folder, lambda p, lattice: all_zero(p, lattice, 4))
    assert verify(folder).holds
    assert load_release(folder).statistic.definition.longest == 4


def test_a_release_that_claims_another_relation_does_not_verify(tmp_path):
    folder = TRACE.release(many()).save(tmp_path / "public", patterns=0)
    cert = read(folder)
    cert["guarantee"]["relation"] = {"name": "local"}
    reseal(folder, cert)
    with pytest.raises(PrivacyCheckError):
        verify(folder).require()


def test_a_rehearsal_runs_on_points_alone():
    assert LDPTrace(3.0, cells=3, max_length=2).rehearse(SQUARE, n=30, rng=1).passed


# --- The promise -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 3.0, 7.7])
def test_all_rounds_keep_to_the_budget_in_fractions(epsilon):
    protocol = TraceProtocol(epsilon=epsilon, cells=2, max_length=30)
    for longest in range(1, 31):
        spent = protocol.first.total + protocol.second(longest).total
        assert Fraction(epsilon) * (1 - Fraction(1, 10**9)) <= spent <= Fraction(epsilon)
        assert local_trajectories(protocol, longest).profile == PureDP(epsilon)


@pytest.mark.parametrize("moving", [False, True])
def test_rounds_that_spend_more_are_refused(moving):
    """A split that rounds a share up, in either round, is refused by the bound and by any plan that has it."""

    def more(honest):
        return replace(honest, epsilon=honest.epsilon * (1 + 1e-6)) if honest.moving == moving else honest

    class Generous(TraceProtocol):
        first = property(lambda self: more(TraceProtocol.first.func(self)))

        def second(self, longest):
            return more(super().second(longest))

    class GenerousStatistic(TraceStatistic):
        protocol = property(lambda self: Generous(epsilon=self.epsilon, cells=self.cells, max_length=self.max_length))

    made = TRACE.plan(SQUARE, n=5)
    with pytest.raises(PrivacyCheckError, match=r"^epsilon: the rounds spend more"):
        recast(made.statistic, GenerousStatistic)


def test_the_likelihood_ratio_of_any_two_trajectories_is_below_e_to_the_epsilon():
    """Largest ratio of whole transcripts, by the laws' own matrices: every report's worst one at once."""
    small = LDPTrace(1.5, cells=1, max_length=2)
    for longest in (1, 2):
        worst = 0.0
        for each in (small.first, small.second(longest)):
            for part in each.law.parts:
                law = part.randomizer.matrix()
                ratios = law[:, :, None] / law[:, None, :]
                worst += part.times * np.log(ratios.max())
        assert worst <= 1.5 + 1e-12
        # With one cell nobody's place tells anything: what remains is about lengths and moves.
        assert worst > 0.1


def test_relations_of_one_location_and_of_a_trajectory():
    way, place = Local("trajectory"), Local()
    assert place == Local("location") == relation_from_dict({"name": "local"})
    assert place.to_dict() == {"name": "local"}
    assert relation_from_dict(way.to_dict()) == way != place
    implied = [way, place, ReplaceOne(), AlphaNeighbours(5.0)]
    assert [way.implies(other) for other in implied] == [True] * 4
    assert [place.implies(other) for other in implied] == [False, True, True, True]
    assert not any(other.implies(way) for other in implied[1:])
    # A person may have other points than those of the one trajectory.
    assert not any(way.implies(other) for other in (ReplaceOne(2), AddRemove()))
    assert way.describe() != place.describe()
    for bad in (None, 1, "", "person", ["trajectory"]):
        with pytest.raises(InputError, match=r"^of: "):
            Local(bad)
    with pytest.raises(InputError, match=r"^of: "):
        relation_from_dict({"name": "local", "of": 3})


def test_the_report_speaks_of_trajectories():
    release = TRACE.release(many(), 1)
    said = " ".join(promise.promise(release.guarantee, SQUARE, release.statistic.definition.parameters()))
    assert "went one way, or any other" in said
    assert "reports about their trajectory" in said
    assert "sent one report" not in said
    assert "second trajectory" in " ".join(promise.not_promised(release.guarantee, SQUARE, None))


def test_a_ledger_authorises_before_trajectories_are_counted(tmp_path):
    book = Ledger.create(tmp_path / "ledger.json", epsilon=5.0, delta=0.0, relation=ReplaceOne())
    release = TRACE.release(many(), ledger=book)
    assert release.entry is not None
    assert release.save(tmp_path / "public", patterns=0)
    assert verify(tmp_path / "public").holds
    with pytest.raises(BudgetError):
        TRACE.release(many(), ledger=book)
    other = Ledger.create(tmp_path / "other.json", epsilon=5.0, delta=0.0, relation=ReplaceOne())
    with pytest.raises(InputError, match=r"^user: some labels"):
        TRACE.release(pattern([[0, 1], [2]], labels=["a", ""]), ledger=other)
    # What the labels gave away is paid for.
    with pytest.raises(BudgetError):
        TRACE.release(many(), ledger=other)
    with pytest.raises(InputError, match=r"^rng: a seeded release"):
        TRACE.release(many(), 1, ledger=other)


# --- The audit -------------------------------------------------------------------------------------------------------


def test_the_whole_transcript_of_a_client_is_audited(tmp_path):
    plan = TRACE.plan(SQUARE, n=60)
    made = target_of(plan)
    assert made.claimed.epsilon(0.0) == pytest.approx(3.0)
    moving, resting = hard_walks(plan.statistic)
    assert (paths(moving), paths(resting)) == ([[0, 1, 0, 1]], [[8]])
    # By the reports of both, word by word: the score is the sum of the reports' own ratios.
    sent, total = made.run(moving), 0.0
    for each in (TRACE.first, TRACE.second(4)):
        values = [each.law.about(walk) for walk in (moving, resting)]
        for part in each.law.parts:
            rows = zip(*(of[part.name].ravel() for of in values), sent[part.name], strict=True)
            total += sum(part.randomizer.log_ratio(row[None, :], a, b)[0] for a, b, row in rows)
    assert made.statistics[0].features(sent) == pytest.approx(total)
    first, second = made.weakened(1.0)
    assert len(first) == COUNT
    # Likelihood ratios: the mean of the inverse one is one, to six standard deviations.
    for score in (np.exp(-first), np.exp(second)):
        assert abs(score.mean() - 1) < 6 * score.std() / COUNT**0.5
    folder = TRACE.release(many()).save(tmp_path / "public", patterns=0)
    found = audit(folder, trials=100)
    assert found.verification.holds
    assert not found.violated
    assert found.law_is_known


# Small: all counts are looked at. Large: thousands, of which those that either trajectory is about are.
AUDITED = {"small": LDPTrace(0.1, cells=3, max_length=4), "large": LDPTrace(0.1, cells=12, max_length=20)}


@dataclass(frozen=True)
class Faulty:
    """A client that changes what an honest one would send."""

    honest: object
    change: object

    def __call__(self, walk):
        start = int(walk.values[0])
        return self.change(self.honest(walk), start, walk)


def first_cell_in_clear(sent, start, walk):
    """One report of many is not randomised."""
    return sent | {"start": pack(np.eye(walk.cells**2, dtype=bool)[[start]])}


def first_cell_in_the_last(sent, start, walk):
    """The bit of the first cell is set in the report about the last one, too."""
    return sent | {"end": sent["end"] | pack(np.eye(walk.cells**2, dtype=bool)[[start]])}


def high_bits(sent, start, walk):
    """One of two bits that stand for nothing is set; no aggregator takes such reports."""
    sent["moves"][0, -1] |= 1 << (60 + (start > 0))
    return sent


def one_more_move(sent, start, walk):
    """A move is reported twice by whoever starts in the corner."""
    return sent | {"moves": np.concatenate([sent["moves"], sent["moves"][: int(start == 0)]])}


def no_moves(sent, start, walk):
    return sent if start == 0 else {name: rows for name, rows in sent.items() if name != "moves"}


def no_numbers(sent, start, walk):
    return sent if start == 0 else sent | {"length": [["no", None]]}


# Change, mechanism, the statistic that sees it, and runs on each input.
FAULTS = [
    (first_cell_in_clear, "large", "ratio of a part", 80),
    (first_cell_in_clear, "large", "one count", 200),
    (first_cell_in_the_last, "large", "one count", 200),
    (high_bits, "small", "one number or bit", 80),
    (one_more_move, "large", "one number or bit", 80),
    (no_moves, "small", "one number or bit", 80),
    (no_numbers, "small", "one number or bit", 80),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("change", "size", "seen_by", "trials"), FAULTS)
def test_faulty_clients_are_found_whatever_the_number_of_counts(change, size, seen_by, trials):
    """Missed once in a hundred times at most, so three audits in a row are once in a million."""
    made = target_of(AUDITED[size].plan(SQUARE, n=60))
    seeing = tuple(each for each in made.statistics if each.name == seen_by)
    faulty = replace(made, run=Faulty(made.run, change), statistics=seeing)
    assert any(audit(faulty, trials=trials).violated for _ in range(3))


def test_honest_clients_are_not_found_among_thousands_of_counts():
    made = target_of(AUDITED["large"].plan(SQUARE, n=60))
    assert not audit(made, trials=80).violated
    values = {part.name: values.tolist() for part, values in made.statistics[2].features.args[0]}
    # Of the corners and of the moves to and fro, and "no move".
    assert values == {"length": [0, 19], "start": [0, 1, 143], "end": [0, 1, 143], "moves": [4, 11, 1152]}
    again = pickle.loads(pickle.dumps(made))
    assert all(np.isfinite(each.features(again.run(again.pair[1]))).all() for each in again.statistics)


def test_reports_too_many_are_about_the_same_once_more():
    """And those that are missing tell nothing."""
    made = target_of(TRACE.plan(SQUARE, n=60))
    sent = made.run(made.pair[0])
    ratio = made.statistics[0].features
    twice = {name: np.concatenate([rows, rows]) for name, rows in sent.items()}
    assert ratio(twice) == pytest.approx(2 * ratio(sent))
    parts = made.statistics[1].features(sent)
    assert parts.sum() == pytest.approx(ratio(sent))
    assert ratio({"start": sent["start"]}) == pytest.approx(parts[1])
    assert ratio({}) == 0.0
    # A word with bits that stand for nothing is refused with its part, and with no other.
    odd = made.statistics[2].features(sent | {"end": sent["end"] | 1 << 60})
    assert (odd != made.statistics[2].features(sent)).tolist() == [
        part == "end" and bool(sent["end"][0, 0] >> k & 1)
        for part, m in {"length": 4, "start": 9, "end": 9, "moves": 73}.items()
        for k in range(m)
    ]


def test_one_cell_hides_every_way():
    assert target_of(LDPTrace(1.0, cells=1, max_length=3).plan(SQUARE, n=3)).alike


def test_an_own_pair_is_audited():
    one, other, both = (GridTrajectories(3, v, o) for v, o in (([0, 1], [0, 2]), ([3], [0, 1]), ([0, 1], [0, 1, 2])))
    assert target_of(TRACE.plan(SQUARE, n=3), pair=(one, other)).pair == (one, other)
    for bad in ((one, both), (one, 3), (one,), (0, 8)):
        with pytest.raises(InputError, match=r"^pair"):
            target_of(TRACE.plan(SQUARE, n=3), pair=bad)


# --- Wild arguments --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", WILD)
def test_wild_arguments(bad):
    good = {"window": SQUARE, "epsilon": 1.0, "cells": 2, "max_length": 3, "n": 5}
    for name in ("window", "cells", "max_length", "n", *(("epsilon",) if bad is not WILD[6] else ())):
        with pytest.raises(InputError):
            TraceStatistic(**(good | {name: bad}))
    for name in ("clients", "longest", "user"):
        if bad is not None:
            with pytest.raises(InputError):
                TraceStatistic(**(good | {name: bad}))
    with pytest.raises(InputError):
        local_trajectories(bad)
    with pytest.raises(InputError):
        TRACE.combine(bad, bad)
    with pytest.raises(InputError):
        TRACE.plan(bad, n=3)
    with pytest.raises(InputError):
        TRACE.release(bad)

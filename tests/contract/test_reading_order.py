"""No value of a point decides anything before a ledger has authorised the release.

A refusal that costs nothing answers a question, so it may depend on public facts alone: a domain, the names of marks, a
public number of points. What depends on a value leaves an entry behind.
"""

import numpy as np
import pytest
from support.cases import examples

import dpppsynth as dps
from dpppsynth.contract import registry
from dpppsynth.core.errors import BudgetError, InputError
from dpppsynth.ledger import Ledger
from dpppsynth.spatial.patterns import PointPattern

CASES = [case for name in registry.names() for case in examples(name) if case.patterns()[0].marks]
WINDOW = dps.Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
XY = np.random.default_rng(1).uniform(0, 1000, (40, 2))
MARKS = dps.Marks(dps.Types("kind", ["a", "b"]), dps.Times("hour", 0.0, 24.0, hats=5, unit="hours"))
MARKED = dps.MarkedSynthesizer(1.0, marks=MARKS, relation=dps.AlphaNeighbours(50.0, time=1.0, types="public"))


def spoiled(pattern):
    """The pattern with a value in each of its marks that nobody has planned for: missing, or of a kind of its own."""
    for name, values in pattern.marks.items():
        for strange in (None, "nobody's"):
            column = np.array(values, dtype=object)
            column[0] = strange
            yield PointPattern.at(pattern.positions, pattern.domain, {**pattern.marks, name: column})


def account(folder, case, epsilon):
    relation = case.synthesizer.neighbouring()
    # Ledgers keep account of points at hand, and admit reports of persons to it.
    relation = dps.ReplaceOne() if isinstance(relation, dps.Local) else relation
    return Ledger.create(folder / f"{epsilon}.json", epsilon=epsilon, delta=1e-3, relation=relation)


def outcome(release, pattern, ledger):
    """Class of the refusal, None where there was none, and the number of entries afterwards."""
    try:
        release(pattern, ledger=ledger)
    except (InputError, BudgetError) as refusal:
        return type(refusal), len(ledger.releases)
    return None, len(ledger.releases)


# Ledgers of points are warned of where persons are released.
@pytest.mark.filterwarnings("ignore:ledger. it protects points")
@pytest.mark.exhaustive
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_value_is_not_looked_at_where_the_budget_does_not_suffice(case, tmp_path):
    pattern = case.patterns()[0]
    poor = account(tmp_path, case, 1e-9)
    seen = {outcome(case.release, each, poor) for each in (pattern, *spoiled(pattern))}
    assert seen == {(BudgetError, 0)}


LEVELLED = dps.LaplaceSynthesizer(0.5, relation=dps.AddRemove(), spacing=250.0, postprocess="plain")


def by_levels(levels, values, **account):
    """A release by levels of points with some values of a mark; its refusal, or None."""
    plan = LEVELLED.plan_by(WINDOW, by="kind", levels=levels, expected_n=20)
    pattern = PointPattern(XY, WINDOW, {"kind": np.resize(np.array(list(values), dtype=object), len(XY))})
    try:
        plan.release(pattern, **account)
    except (InputError, BudgetError) as refusal:
        return str(refusal)
    return None


def test_levels_are_not_counted_for_an_entry_that_is_not_held(tmp_path):
    """Its name stands on certificates; only whoever was given it has its secret, and only before it is taken up."""
    ledger = Ledger.create(tmp_path / "ledger.json", epsilon=1.0, delta=0.0, relation=dps.AddRemove())
    plan = LEVELLED.plan_by(WINDOW, by="kind", levels=["a", "b"], expected_n=20)
    entry = ledger.authorise(plan.guarantee, mechanism=plan.mechanism, domain=WINDOW)
    before = ledger.path.read_bytes()
    for name in (str(entry), "0" * 64):
        told = {by_levels(["a", "b"], values, ledger=ledger, entry=name) for values in ("ab", "a", "abc")}
        assert len(told) == 1
        assert ledger.path.read_bytes() == before
    found = by_levels(["a", "b"], "ab", ledger=ledger, entry=entry)
    assert found is None, found
    assert len({by_levels(["a", "b"], values, ledger=ledger, entry=entry) for values in ("ab", "a", "abc")}) == 1


def test_levels_that_are_refused_use_their_authorisation_up(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.json", epsilon=1.0, delta=0.0, relation=dps.AddRemove())
    plan = LEVELLED.plan_by(WINDOW, by="kind", levels=["a", "b"], expected_n=20)
    entry = ledger.authorise(plan.guarantee, mechanism=plan.mechanism, domain=WINDOW)
    assert by_levels(["a", "b"], "a", ledger=ledger, entry=entry) is not None
    assert by_levels(["a", "b"], "ab", ledger=ledger, entry=entry) is not None
    assert ledger.releases[0].taken


@pytest.mark.filterwarnings("ignore:ledger. it protects points")
@pytest.mark.exhaustive
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_refusal_by_a_value_is_paid_for(case, tmp_path):
    refused = 0
    for k, pattern in enumerate(spoiled(case.patterns()[0])):
        (tmp_path / str(k)).mkdir()
        found, entries = outcome(case.release, pattern, account(tmp_path / str(k), case, 1e3))
        refused += found is InputError
        assert entries == 1
    assert refused


@pytest.mark.parametrize(
    ("kinds", "hours"), [(["a"] * 39 + ["c"], [1.0] * 40), (["a"] * 40, [1.0] * 39 + [25.0])], ids=["types", "times"]
)
def test_types_and_times_outside_are_told_once_the_release_is_authorised(kinds, hours, tmp_path):
    outside = PointPattern(XY, WINDOW, {"kind": kinds, "hour": hours})
    relation = dps.AlphaNeighbours(50.0, time=1.0, types="public", time_unit="hours")
    ledger = Ledger.create(tmp_path / "ledger.json", epsilon=1.0, delta=0.0, relation=relation)
    synthesizer = dps.MarkedSynthesizer(1.0, marks=MARKS, relation=relation)
    assert outcome(synthesizer.release, outside, ledger) == (InputError, 1)
    assert outcome(synthesizer.release, outside, ledger) == (BudgetError, 1)


def test_partial_sums_tell_of_a_value_when_they_are_finished():
    plan = MARKED.plan(WINDOW, n=40)
    outside = PointPattern(XY[:20], WINDOW, {"kind": ["a"] * 19 + ["c"], "hour": [1.0] * 20})
    inside = PointPattern(XY[20:], WINDOW, {"kind": ["a"] * 20, "hour": [1.0] * 20})
    sums = [plan.partial(inside), plan.partial(outside)]
    with pytest.raises(InputError, match="kind"):
        plan.finish(sums, 1)
    with pytest.raises(InputError, match="kind"):
        plan.finish([sums[0] + sums[1]], 1)


def test_another_number_of_points_costs_nothing_whoever_adds_them_up(tmp_path):
    plan = dps.LaplaceSynthesizer(1.0).plan(WINDOW, n=41)
    pattern = PointPattern(XY, WINDOW)
    ledger = Ledger.create(tmp_path / "ledger.json", epsilon=5.0, delta=0.0, relation=dps.ReplaceOne())
    assert outcome(plan.release, pattern, ledger) == (InputError, 0)
    assert outcome(plan.finish, [plan.partial(pattern)], ledger) == (InputError, 0)


def test_what_is_public_refuses_before_points_are_read_for_an_entry(tmp_path):
    relation = dps.AlphaNeighbours(50.0, time=1.0, types="public", time_unit="hours")
    plan = dps.MarkedSynthesizer(1.0, marks=MARKS, relation=relation).plan(WINDOW, n=len(XY))
    ledger = Ledger.create(tmp_path / "ledger.json", epsilon=1.0, delta=0.0, relation=relation)
    entry = ledger.authorise(plan.guarantee, mechanism=plan.mechanism, domain=WINDOW)
    read = []
    for public in ({"subset": {"kind": "a"}}, {"progress": "loud"}):
        with pytest.raises(InputError):
            plan.finish(map(read.append, range(1)), ledger=ledger, entry=entry, **public)
    assert not read

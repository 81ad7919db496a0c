"""Times and types in a ledger: changes are compared in one unit, and what nobody reads is protected."""

import pytest

from dpppsynth.core.errors import InputError
from dpppsynth.ledger import Ledger
from dpppsynth.ledger.budget import Budget
from dpppsynth.ledger.history import Entry
from dpppsynth.ledger.joint_guarantee import narrowed
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne
from dpppsynth.privacy.relations import relation_from_dict
from dpppsynth.reporting.promise import not_promised, promise
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mark_space import Marks, Times, Types
from dpppsynth.synthesizers import LaplaceSynthesizer, MarkedSynthesizer

SQUARE = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
HOUR, KIND = Times.day("hour", hats=4), Types("offence", ["burglary", "theft"])
MINUTE = Times("minute", 0.0, 1440.0, hats=4, periodic=True, unit="minutes")


def guarantee(relation, times=HOUR, types=KIND):
    """Guarantee of a release with marks."""
    settings = MarkedSynthesizer(1.0, marks=Marks(types, times), relation=relation, spacing=250.0)
    return settings.plan(SQUARE, n=400).guarantee


def plain(**settings):
    return LaplaceSynthesizer(1.0, **settings).plan(SQUARE, n=400).guarantee


def budget(relation):
    return Budget(2.0, 0.0, relation, None, False)


def entry(bound, number=1):
    domain = {"fingerprint": "same", "crs": None, "unit": None}
    known = {"at": "2026-01-01T00:00:00Z", "mechanism": "any", "domain": domain, "claim": ""}
    return Entry(id=str(number), guarantee=bound, **known)


class TestUnits:
    WITHIN = AlphaNeighbours(25.0, time=1.0)

    def test_a_minute_is_no_hour(self):
        hours = budget(AlphaNeighbours(25.0, time=1.0, time_unit="hours"))
        hours.require(guarantee(self.WITHIN, types=None))
        with pytest.raises(InputError, match=r"at most 1 hour.*at most 1 minute"):
            hours.require(guarantee(self.WITHIN, MINUTE, None))

    def test_any_change_covers_every_unit(self):
        budget(AlphaNeighbours(25.0, time=1.0, time_unit="hours")).require(
            guarantee(AlphaNeighbours(25.0, time="protected"), MINUTE, None)
        )

    def test_a_ledger_names_its_unit(self, tmp_path):
        with pytest.raises(InputError, match=r"^relation: a ledger compares changes of times, so name their unit"):
            Ledger.create(tmp_path / "ledger.json", epsilon=1.0, delta=0.0, relation=self.WITHIN)

    def test_certificates_and_words_state_it(self):
        relation = guarantee(self.WITHIN, types=None).relation
        assert relation_from_dict(relation.to_dict()) == relation
        assert relation.describe().endswith("the time changes by at most 1 hour")

    @pytest.mark.parametrize("told", [{}, {"time": "public"}])
    def test_times_that_stay_have_none(self, told):
        with pytest.raises(InputError, match=r"^time_unit: goes with a time that may change"):
            AlphaNeighbours(25.0, time_unit="hours", **told)

    def test_another_unit_than_the_times_is_refused(self):
        with pytest.raises(InputError, match=r"^relation: time_unit must be that of the times, 'hours', got 'days'"):
            guarantee(AlphaNeighbours(25.0, time=1.0, time_unit="days"), types=None)


class TestUnread:
    @pytest.mark.parametrize("told", [{"time": 1.0, "time_unit": "hours"}, {"types": "protected"}])
    def test_what_nobody_reads_is_protected(self, told):
        budget(AlphaNeighbours(25.0, **told)).require(plain(alpha=25.0))
        budget(AlphaNeighbours(25.0, **told)).require(plain())
        with pytest.raises(InputError, match=r"at most 25.*at most 20"):
            budget(AlphaNeighbours(25.0, **told)).require(plain(alpha=20.0))

    def test_what_is_read_and_stays_is_not(self):
        still = guarantee(AlphaNeighbours(25.0, time="public", types="public"))
        with pytest.raises(InputError, match=r"time changes by at most 1 hour.*the time stays"):
            budget(AlphaNeighbours(25.0, time=1.0, time_unit="hours")).require(still)
        with pytest.raises(InputError, match=r"the type.*the type stays"):
            budget(AlphaNeighbours(25.0, types="protected")).require(still)


class TestTogether:
    def test_marks_that_the_ledger_says_nothing_of_stay(self):
        """A release that reads them may tell them; the joint promise must not cover their change."""
        told = guarantee(AlphaNeighbours(25.0, time="public", types="public"))
        joint = narrowed(budget(ReplaceOne()), [entry(plain())])
        assert joint == ReplaceOne()
        joint = narrowed(budget(AlphaNeighbours(25.0)), [entry(plain(), 1), entry(told, 2)])
        assert (
            "every point keeps its time and its type, of which the ledger's relation says nothing" in joint.describe()
        )

    def test_marks_that_it_speaks_of_change_as_it_says(self):
        relation = AlphaNeighbours(25.0, time=1.0, time_unit="hours", types="public")
        assert narrowed(budget(relation), [entry(guarantee(relation))]) == relation
        assert narrowed(budget(AddRemove()), [entry(plain())]) == AddRemove()


class TestWords:
    def test_reports_say_what_is_hidden_of_marks(self):
        found = guarantee(AlphaNeighbours(25.0, time=1.0, types="public"))
        cases = " ".join(promise(found, SQUARE, {"n": 400}))
        assert "its time may differ by up to 1 hour and its type is the same" in cases
        left = " ".join(not_promised(found, SQUARE, None))
        assert "It does not hide times beyond 1 hour" in left
        assert "It does not hide the type of any point" in left

    def test_types_must_not_follow_from_times(self):
        assert "public-types" in guarantee(AlphaNeighbours(25.0, time=1.0, types="public")).assumptions
        assert "public-types" not in guarantee(AlphaNeighbours(25.0, time=1.0, types="protected")).assumptions

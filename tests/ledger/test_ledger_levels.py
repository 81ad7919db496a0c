"""Numbers of levels in a ledger: the same level has one n, and what is taken up states it."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from support.ledgers import events_of
from support.seams import randomise_by, touched

from dpppsynth.core.errors import InformationWarning, InputError, PrivacyCheckError
from dpppsynth.ledger import Ledger
from dpppsynth.ledger.document import dump, identify
from dpppsynth.privacy import AddRemove, ReplaceOne
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import LaplaceSynthesizer

SQUARE, WEST = Window.rectangle(0, 0, 10, 10), Window.rectangle(0, 0, 5, 10)
XY = np.random.default_rng(1).uniform(0, 10, (200, 2))
WESTERN = XY[:, 0] <= 5
ALL, PART = PointPattern(XY, SQUARE), PointPattern(XY[WESTERN], SQUARE)
CHOSEN = PointPattern(XY, SQUARE, {"year": np.where(WESTERN, "a", "b")})
CELLS = LaplaceSynthesizer(0.5, relation=ReplaceOne(), spacing=5.0, postprocess="plain")
NUMBERS = {"a": 90, "b": 110}
BY_YEAR = {"by": "year", "levels": ["a", "b"]}
PLAN = CELLS.plan_by(SQUARE, **BY_YEAR, n=NUMBERS)
STRATA = {"mechanism": "strata", "domain": SQUARE}
OTHER_LEVEL = r"^n: earlier releases of the points with year = a of this domain have n = 90, and this one another"


def years(*numbers):
    """As many points as these, in levels a, b, c of their sizes."""
    return PointPattern(XY[: sum(numbers)], SQUARE, {"year": np.repeat(list("abc")[: len(numbers)], numbers)})


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger.json", epsilon=5.0, delta=0.0, relation=ReplaceOne())


@pytest.fixture
def released(ledger):
    """After a release of all levels."""
    CELLS.release_by(years(90, 110), **BY_YEAR, ledger=ledger)
    return ledger


@pytest.fixture
def untouched(released, monkeypatch):
    """The same; whoever measures fails the test."""
    randomise_by(monkeypatch, touched)
    return released


class TestOneNumber:
    def test_another_mark_of_the_same_name(self, untouched):
        """108 points have x <= 5, and 90 the first level: a point that moves across x = 5 would show."""
        with pytest.raises(InputError, match=OTHER_LEVEL):
            CELLS.release_by(CHOSEN, **BY_YEAR, ledger=untouched)
        before = untouched.path.read_bytes()
        plan = CELLS.plan_by(SQUARE, **BY_YEAR, n={"a": 108, "b": 92})
        with pytest.raises(InputError, match=OTHER_LEVEL):
            plan.release(CHOSEN, ledger=untouched)
        with pytest.raises(InputError, match=OTHER_LEVEL):
            untouched.check(plan.guarantee, mechanism="m", domain=SQUARE, levels=plan.levels)
        assert untouched.path.read_bytes() == before

    def test_the_same_mark_again(self, released):
        CELLS.release_by(years(90, 110), **BY_YEAR, ledger=released)
        PLAN.release(years(90, 110), ledger=released)
        CELLS.release(ALL, ledger=released)
        CELLS.release(PointPattern(XY[:90], SQUARE), ledger=released, subset={"year": "a"})
        assert [entry.n for entry in released.releases] == [200, 200, 200, 200, 90]
        assert {entry.points.levels for entry in released.releases} == {tuple(NUMBERS.items()), ()}
        assert all(entry.state == "measured" for entry in Ledger.open(released.path).releases)

    @pytest.mark.parametrize("first", ["levels", "subset"])
    def test_a_named_value_is_a_level(self, ledger, first):
        uses = {
            "levels": lambda: CELLS.release_by(years(90, 110), **BY_YEAR, ledger=ledger),
            "subset": lambda: CELLS.release(PART, ledger=ledger, subset={"year": "a"}),
        }
        uses.pop(first)()
        with pytest.raises(InputError, match=r"^n: earlier releases of the points with year = a .* n = (90|108)"):
            uses.popitem()[1]()

    @pytest.mark.parametrize("levels", ["a", "ac", "abc", "cd"])
    def test_all_levels_are_all_of_them(self, untouched, levels):
        """Names of levels are public: refused before anything is spent."""
        before = untouched.path.read_bytes()
        marked = PointPattern(XY, SQUARE, {"year": np.resize(list(levels), 200)})
        with pytest.raises(InputError, match=r"^n: earlier releases of the points with year = [abc] of this domain"):
            CELLS.release_by(marked, by="year", levels=list(levels), ledger=untouched)
        assert untouched.path.read_bytes() == before

    @pytest.mark.parametrize("more", [{}, {"sex": "f"}])
    def test_a_value_that_no_level_has(self, untouched, more):
        with pytest.raises(InputError, match=r"^n: earlier releases of the points with .*year = c .* n = 0, and"):
            CELLS.release(PART, ledger=untouched, subset={"year": "c"} | more)

    def test_levels_within_a_level(self, released):
        given = {"by": "sex", "levels": ["f", "m"], "subset": {"year": "a"}, "ledger": released}
        sexes = np.repeat(["f", "m"], [40, 51])
        CELLS.release_by(PointPattern(XY[:90], SQUARE, {"sex": sexes[:90]}), **given)
        with pytest.raises(InputError, match=OTHER_LEVEL):
            CELLS.release_by(PointPattern(XY[:91], SQUARE, {"sex": sexes}), **given)

    def test_a_part_has_no_more_points_than_the_whole(self, released):
        given = {"mechanism": "m", "domain": SQUARE, "taken": True}
        with pytest.raises(InputError, match=r"year = a of this domain have n = 90, and this one more of them"):
            released.authorise(CELLS.check(SQUARE, n=91), n=91, subset={"year": "a", "sex": "f"}, **given)
        with pytest.raises(InputError, match=r"all points of this domain have n = 200, and this one more of them"):
            released.authorise(CELLS.check(SQUARE, n=201), n=201, subset={"town": "x"}, **given)
        released.authorise(CELLS.check(SQUARE, n=95), n=95, subset={"sex": "f"}, **given)
        released.authorise(CELLS.check(SQUARE, n=80), n=80, subset={"year": "a", "sex": "f"}, **given)
        with pytest.raises(InputError, match=r"sex = f of this domain have n = 95, and this one more of them"):
            released.authorise(CELLS.check(SQUARE, n=96), n=96, subset={"sex": "f", "town": "x"}, **given)

    def test_a_whole_has_no_fewer_points_than_a_part(self, ledger):
        given = {"mechanism": "m", "domain": SQUARE, "taken": True}
        ledger.authorise(CELLS.check(SQUARE, n=80), n=80, subset={"year": "a", "sex": "f"}, **given)
        with pytest.raises(InputError, match=r"sex = f and year = a of this domain have n = 80, and this one fewer"):
            ledger.authorise(CELLS.check(SQUARE, n=150), levels={"year": {"a": 79, "b": 71}}, **given)

    def test_another_domain_has_numbers_of_its_own(self, released):
        west = PointPattern(PART.xy, WEST, {"year": np.repeat(["a", "c"], 54)})
        with pytest.warns(InformationWarning, match="another domain"):
            CELLS.release_by(west, by="year", levels=["a", "c"], ledger=released)
        assert released.releases[-1].state == "measured"

    def test_secret_numbers_are_not_kept(self, tmp_path):
        ledger = Ledger.create(tmp_path / "l.json", epsilon=5.0, delta=0.0, relation=AddRemove())
        secret = replace(CELLS, relation=AddRemove())
        for pattern in (years(90, 110), CHOSEN):
            secret.release_by(pattern, **BY_YEAR, expected_n=90, ledger=ledger)
        assert all(event["points"] is None for event in events_of(ledger.path.read_bytes())[1:])
        with pytest.raises(InputError, match=r"^levels: the number of points is secret"):
            ledger.authorise(secret.ceiling(SQUARE), mechanism="m", domain=SQUARE, levels={"year": {"a": None}})


class TestTakenUp:
    """Settled releases state their numbers; those that the points do not have bind nobody."""

    def test_a_missing_n(self, ledger):
        entry = ledger.authorise(CELLS.ceiling(SQUARE), mechanism="laplace", domain=SQUARE)
        before = ledger.path.read_bytes()
        for use in (
            lambda: ledger.settle(entry, CELLS.check(SQUARE, n=200), mechanism="laplace-cells"),
            lambda: ledger.authorise(CELLS.check(SQUARE, n=200), mechanism="m", domain=SQUARE, taken=True),
        ):
            with pytest.raises(InputError, match=r"^n: it is public under the ledger's relation.*give_up"):
                use()
        assert ledger.path.read_bytes() == before
        ledger.give_up(entry)
        assert (ledger.releases[0].n, ledger.releases[0].taken) == (None, True)

    def test_missing_numbers_of_levels(self, ledger):
        entry = ledger.authorise(CELLS.ceiling(SQUARE), **STRATA)
        with pytest.raises(InputError, match=r"^levels: their numbers are public"):
            ledger.settle(entry, PLAN.guarantee, n=200)
        with pytest.raises(InputError, match=r"^levels: they have 200 points together, and n = 199"):
            ledger.settle(entry, PLAN.guarantee, n=199, levels=PLAN.levels)
        ledger.settle(entry, PLAN.guarantee, levels=PLAN.levels)
        assert ledger.releases[0].n == 200

    def test_other_levels_than_were_authorised(self, ledger):
        entry = ledger.authorise(PLAN.guarantee, levels=PLAN.levels, **STRATA)
        for other in ({"year": {"a": 91, "b": 109}}, {"sex": NUMBERS}, {"year": {"a": 90, "c": 110}}):
            with pytest.raises(InputError, match=r"^levels: other numbers were authorised"):
                ledger.settle(entry, PLAN.guarantee, levels=other)
        ledger.settle(entry, PLAN.guarantee)
        assert ledger.releases[0].points.to_dict()["levels"] == {"year": NUMBERS}

    def test_numbers_that_the_points_do_not_have(self, ledger):
        slip = CELLS.plan_by(SQUARE, **BY_YEAR, n={"a": 91, "b": 109})
        with pytest.raises(InputError, match=r"^n: the release was planned for another"):
            slip.release(years(90, 110), ledger=ledger)
        entry = ledger.authorise(slip.guarantee, levels=slip.levels, **STRATA)
        with pytest.raises(InputError, match=r"^n: the release was planned for another"):
            slip.release(years(90, 110), ledger=ledger, entry=entry)
        # Nor names of levels, once it turned out that points have others.
        with pytest.raises(InputError, match=r"^levels: "):
            CELLS.release_by(years(90, 60, 50), **BY_YEAR, ledger=ledger)
        CELLS.release_by(years(90, 50, 60), by="year", levels=list("abc"), ledger=ledger)
        # What was refused is used up, and says nothing of the points any more.
        assert [entry.n for entry in ledger.releases] == [None, None, 200, 200]
        assert ledger.spent == pytest.approx(2.0)

    def test_what_was_given_up_says_nothing_of_levels_released_since(self, ledger):
        entry = ledger.authorise(CELLS.ceiling(SQUARE), levels={"year": {"a": None, "c": None}}, **STRATA)
        CELLS.release_by(years(90, 110), **BY_YEAR, ledger=ledger)
        ledger.give_up(entry)
        assert [each.n for each in Ledger.open(ledger.path).releases] == [None, 200]

    def test_the_promise_names_the_mark_whatever_its_sentences_say(self, ledger):
        silent = replace(PLAN.guarantee, assumptions=())
        ledger.authorise(silent, levels=PLAN.levels, taken=True, **STRATA)
        assert "every point keeps its year (which is not protected)" in ledger.neighbouring.describe()

    @pytest.mark.parametrize(
        "wrong",
        [
            *({}, "year", {"year": {}}, {"year": 200}, {"year": {"a": 0}}, {"year": {"a": 1.5}}, {"": {"a": 1}}),
            *({"year": {"a": 1}, "sex": {"f": 1}}, {"year": {"1": 1, 1: 2}}, {"year": {"a\n": 1}}, {3: {"a": 1}}),
        ],
    )
    def test_what_are_no_numbers_of_levels(self, ledger, wrong):
        with pytest.raises(InputError, match=r"^levels: "):
            ledger.authorise(CELLS.ceiling(SQUARE), levels=wrong, **STRATA)
        assert ledger.releases == ()

    @pytest.mark.parametrize("more", [{"subset": {"year": 1}}, {"count_unit": "walk"}])
    def test_they_count_points_by_another_mark(self, ledger, more):
        with pytest.raises(InputError, match=r"^levels: points are counted, and by another mark"):
            ledger.authorise(CELLS.ceiling(SQUARE), levels=PLAN.levels, **STRATA, **more)


class TestFile:
    """Edits with all hashes right."""

    @pytest.fixture
    def events(self, released):
        entry = released.authorise(CELLS.ceiling(SQUARE), **STRATA)
        PLAN.release(years(90, 110), ledger=released, entry=entry)
        events = events_of(released.path.read_bytes())
        kinds = ["budget", "authorised", "settled", "measured", "authorised", "settled", "measured"]
        assert [event["kind"] for event in events] == kinds
        return events

    @pytest.mark.parametrize(
        ("edits", "said"),
        [
            ({5: {"a": 108, "b": 92}, 6: {"a": 108, "b": 92}}, "n: earlier releases"),
            ({5: {"a": 90, "c": 110}, 6: {"a": 90, "c": 110}}, "n: earlier releases"),
            ({6: {"a": 108, "b": 92}}, "levels: other numbers were authorised"),
            ({3: {"a": 90, "b": None}}, "levels: their numbers"),
            ({6: {"a": 90, "b": 111}}, "levels: they have 201 points"),
            ({5: {"a": 90, "b": None}}, "levels: their numbers"),
            ({6: None}, "levels: other numbers were authorised"),
            ({5: None, 6: None}, "levels: their numbers"),
            ({1: None, 2: None, 3: None}, "levels: their numbers"),
        ],
    )
    def test_of_levels(self, events, tmp_path, edits, said):
        told = {k: {"levels": None if levels is None else {"year": levels}} for k, levels in edits.items()}
        with pytest.raises(PrivacyCheckError, match=said):
            reopened(events, tmp_path, told)
        assert reopened(events, tmp_path, {}).releases[-1].points.to_dict()["levels"] == {"year": NUMBERS}

    @pytest.mark.parametrize("last", [2, 5])
    def test_of_n(self, events, tmp_path, last):
        with pytest.raises(PrivacyCheckError, match="n: it is public"):
            reopened(events[: last + 1], tmp_path, {last: {"n": None, "levels": {"year": {"a": None, "b": None}}}})

    @pytest.mark.parametrize("levels", [{"year": {}}, {"year": {"a": 0}}, {"year": {"a": 1}, "sex": {"f": 1}}, [], {}])
    def test_of_no_numbers(self, events, tmp_path, levels):
        with pytest.raises(PrivacyCheckError, match=r"is damaged or was edited: (levels|event)"):
            reopened(events, tmp_path, {4: {"levels": levels}})


def reopened(events, folder, edits):
    """The ledger with other words on what some events read."""
    done, names = [], {}
    for k, event in enumerate(copy.deepcopy(events)):
        event["previous"] = identify(done[-1]) if done else None
        if "entry" in event:
            event["entry"] = names[event["entry"]]
        event.get("points", {}).update(edits.get(k, {}))
        done.append(event)
        names[identify(events[k])] = identify(event)
    path = folder / "edited.json"
    path.write_bytes(dump(done))
    return Ledger.open(path)


@pytest.mark.parametrize("way", ["release", "release_by", "authorise", "check"])
def test_the_warning_points_at_the_line_of_who_asked(ledger, way):
    CELLS.release(ALL, ledger=ledger)
    given = {"mechanism": "m", "domain": WEST}
    marked = PointPattern(PART.xy, WEST, {"year": np.repeat(["a", "b"], 54)})
    with pytest.warns(InformationWarning, match="another domain") as caught:
        {
            "release": lambda: CELLS.release(PointPattern(PART.xy, WEST), ledger=ledger),
            "release_by": lambda: CELLS.release_by(marked, **BY_YEAR, ledger=ledger),
            "authorise": lambda: ledger.authorise(CELLS.ceiling(WEST), **given),
            "check": lambda: ledger.check(CELLS.ceiling(WEST), **given),
        }[way]()
    assert {warning.filename for warning in caught} == {__file__}

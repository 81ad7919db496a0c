"""Points that releases of a ledger read: under a public n no part of them that a moved point could leave."""

import copy
import functools
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from support.ledgers import events_of
from support.seams import randomise_by, touched
from typer.testing import CliRunner

from dpppsynth import cli
from dpppsynth.core.errors import InformationWarning, InputError, PrivacyCheckError
from dpppsynth.ledger import Ledger
from dpppsynth.ledger.document import dump, identify
from dpppsynth.ledger.joint_guarantee import COMPLETE, POINTWISE, POINTWISE_PERSON, SAME_POINTS
from dpppsynth.local import DiskAreaMechanism, LDPTrace
from dpppsynth.privacy import AddRemove, AddRemovePerson, AlphaNeighbours, ReplaceOne
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import HeatmapSynthesizer, LaplaceSynthesizer

SQUARE = Window.rectangle(0, 0, 10, 10)
WEST = Window.rectangle(0, 0, 5, 10)
XY = np.random.default_rng(1).uniform(0, 10, (200, 2))
ALL, PART = PointPattern(XY, SQUARE), PointPattern(XY[XY[:, 0] <= 5], SQUARE)
YEARS = PointPattern(XY, SQUARE, {"year": np.repeat([2021, 2022], [120, 80])})
RECENT = PointPattern(XY[120:], SQUARE)
CELLS = LaplaceSynthesizer(0.5, relation=ReplaceOne(), spacing=5.0, postprocess="plain")
ANOTHER = r"^n: earlier releases of all points of this domain have n = 200, and this one another.*subset="


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger.json", epsilon=5.0, delta=0.0, relation=ReplaceOne())


@pytest.fixture
def untouched(monkeypatch):
    """From when it is called, a measurement fails the test."""
    return functools.partial(randomise_by, monkeypatch, touched)


class TestMovedPoint:
    """All 200 points, then the 108 with x <= 5: one that moves across x = 5 changes the second n with certainty."""

    def test_by_release(self, ledger, untouched):
        assert (len(ALL), len(PART)) == (200, 108)
        CELLS.release(ALL, ledger=ledger)
        before = ledger.path.read_bytes()
        untouched()
        with pytest.raises(InputError, match=ANOTHER):
            CELLS.release(PART, ledger=ledger)
        with pytest.raises(InputError, match=ANOTHER):
            CELLS.plan(SQUARE, n=108).release(PART, ledger=ledger)
        assert ledger.path.read_bytes() == before

    @pytest.mark.parametrize("alpha", [None, 1.0])
    def test_the_other_way_round_and_for_close_points(self, tmp_path, alpha):
        relation = ReplaceOne() if alpha is None else AlphaNeighbours(alpha)
        ledger = Ledger.create(tmp_path / "l.json", epsilon=5.0, delta=0.0, relation=relation)
        CELLS.release(PART, ledger=ledger)
        with pytest.raises(InputError, match="n = 108"):
            CELLS.release(ALL, ledger=ledger)
        CELLS.release(PART, ledger=ledger)

    def test_by_hand(self, ledger):
        given = {"mechanism": "laplace-cells", "domain": SQUARE}
        first, second = (ledger.authorise(CELLS.check(SQUARE, n=n), n=n, **given) for n in (200, 108))
        ledger.settle(first, CELLS.check(SQUARE, n=200))
        for use in (
            lambda: ledger.settle(second, CELLS.check(SQUARE, n=108)),
            lambda: ledger.settle(second, CELLS.check(SQUARE, n=108), n=108),
            lambda: ledger.authorise(CELLS.check(SQUARE, n=108), n=108, **given),
            lambda: ledger.check(CELLS.check(SQUARE, n=108), n=108, **given),
        ):
            with pytest.raises(InputError, match=ANOTHER):
                use()
        with pytest.raises(InputError, match=r"^n: other numbers were authorised"):
            ledger.settle(second, CELLS.check(SQUARE, n=200), n=200)

    def test_by_levels(self, ledger, untouched):
        CELLS.release_by(YEARS, by="year", levels=[2021, 2022], ledger=ledger)
        assert ledger.releases[0].n == 200
        untouched()
        west = PointPattern(PART.xy, SQUARE, {"year": YEARS.marks["year"][XY[:, 0] <= 5]})
        before = ledger.path.read_bytes()
        with pytest.raises(InputError, match=ANOTHER):
            CELLS.release_by(west, by="year", levels=[2021, 2022], ledger=ledger)
        assert ledger.path.read_bytes() == before

    @pytest.mark.parametrize("ceiling", [True, False])
    def test_where_an_authorisation_was_given_before_they_were_counted(self, ledger, untouched, ceiling):
        """Refused before anything is measured; the authorisation counts as spent, and may serve all of the points."""
        CELLS.release(ALL, ledger=ledger)
        most = CELLS.ceiling(SQUARE) if ceiling else CELLS.check(SQUARE, n=108)
        entry = ledger.authorise(most, mechanism="laplace", domain=SQUARE)
        untouched()
        with pytest.raises(InputError, match=ANOTHER):
            CELLS.plan(SQUARE, n=108).release(PART, ledger=ledger, entry=entry)
        assert ledger.spent == pytest.approx(1.0)
        assert not ledger.releases[1].taken

    def test_local_reports(self, ledger):
        mechanism = DiskAreaMechanism(epsilon=1.0, cells=4)
        mechanism.release(ALL, ledger=ledger)
        with pytest.raises(InputError, match=ANOTHER):
            mechanism.release(PART, ledger=ledger)

    def test_trajectories_have_a_number_of_their_own(self, ledger, untouched):
        trace = LDPTrace(epsilon=1.0, cells=3, max_length=9, user="walk")
        walks = np.repeat(np.arange(50), 4)
        CELLS.release(ALL, ledger=ledger)
        trace.release(PointPattern(XY, SQUARE, {"walk": walks}), ledger=ledger)
        assert [(entry.points.n, entry.points.count_unit) for entry in ledger.releases] == [(200, None), (50, "walk")]
        assert "every point keeps its walk (which is not protected)" in ledger.neighbouring.describe()
        untouched()
        with pytest.raises(InputError, match=r"^n: .* n = 50"):
            trace.release(PointPattern(XY[:160], SQUARE, {"walk": walks[:160]}), ledger=ledger)
        # Told by nobody before they are counted: spent, and named by no release.
        assert ledger.spent == pytest.approx(2.5)

    @pytest.mark.parametrize(
        ("persons", "promise"),
        [
            (DiskAreaMechanism(epsilon=1.0, cells=4, user="walk"), "every point keeps its walk"),
            (LaplaceSynthesizer(1.0, relation=ReplaceOne(2, user="walk")), "every point keeps its walk"),
        ],
        ids=["reports", "a few points each"],
    )
    def test_persons_whom_the_release_tells_and_the_budget_does_not(self, ledger, persons, promise):
        """Another number of persons tells pairs of patterns apart that differ by one point and its label."""
        with pytest.warns(InformationWarning, match="walk is not protected"):
            persons.release(PointPattern(XY, SQUARE, {"walk": np.repeat(np.arange(50), 4)}), ledger=ledger)
        assert promise in ledger.neighbouring.describe()

    def test_few_points_of_each_person_by_hand(self, ledger):
        """An early release that is entered by hand counts what the same release counts by itself."""
        few = LaplaceSynthesizer(1.0, relation=ReplaceOne(2, user="walk"))
        plan = few.plan(SQUARE, n=100)
        for count_unit in (None, plan.count_unit):
            given = {"mechanism": plan.mechanism, "domain": SQUARE, "n": plan.n, "count_unit": count_unit}
            ledger.settle(ledger.authorise(plan.guarantee, **given), plan.guarantee, n=plan.n)
        assert {entry.points.count_unit for entry in ledger.releases} == {"walk, at most 2 each"}

    def test_persons_are_warned_of_before_the_spend(self, ledger):
        few = LaplaceSynthesizer(1.0, relation=ReplaceOne(2, user="walk"))
        walks = PointPattern(XY, SQUARE, {"walk": np.repeat(np.arange(100), 2)})
        # As an error, where the custodian wants warnings to be such.
        with pytest.raises(InformationWarning, match=r"\(walk is not protected\)"):
            few.release(walks, ledger=ledger)
        assert ledger.spent == 0
        with pytest.warns(InformationWarning) as said:
            few.release(walks, ledger=ledger)
        assert [str(each.message) for each in said] == [ledger.caution(few.check(SQUARE, n=200))]
        assert ledger.spent == pytest.approx(1.0)

    def test_persons_whom_the_budget_tells(self, tmp_path):
        relation = ReplaceOne(2, user="walk")
        book = Ledger.create(tmp_path / "persons.json", epsilon=9.0, delta=0.0, relation=relation)
        marked = PointPattern(XY, SQUARE, {"walk": np.repeat(np.arange(50), 4)})
        LaplaceSynthesizer(1.0, relation=relation).release(marked, ledger=book)
        assert book.neighbouring == relation

    def test_a_number_that_no_points_were_held_against_binds_nobody(self, ledger):
        """A slip in n is caught by the pattern, and costs no later release its n."""
        with pytest.raises(InputError, match=r"^n: the release was planned for another number"):
            CELLS.plan(SQUARE, n=201).release(ALL, ledger=ledger)
        slip = ledger.authorise(CELLS.check(SQUARE, n=201), mechanism="m", domain=SQUARE, n=201)
        lost = ledger.authorise(CELLS.check(SQUARE, n=202), mechanism="m", domain=SQUARE, n=202)
        ledger.give_up(slip)
        CELLS.release(ALL, ledger=ledger)
        with pytest.raises(InputError, match=ANOTHER):
            ledger.settle(lost, CELLS.check(SQUARE, n=202))
        assert [entry.n for entry in ledger.releases] == [None, 202, 200]
        assert ledger.spent == pytest.approx(1.5)

    @pytest.mark.parametrize("way", ["persons", "walks", "batches"])
    def test_nor_one_that_was_authorised_before_points_were_counted(self, ledger, way):
        """Labels of persons, and batches, are counted before the ledger keeps n."""
        synthesizer, right, pattern = CELLS, 200, ALL
        if way != "batches":
            pattern = PointPattern(XY, SQUARE, {"who": np.repeat(np.arange(40), 5)})
            synthesizer = replace(CELLS, relation=ReplaceOne(4, user="who")) if way == "persons" else None
            synthesizer = synthesizer or LDPTrace(epsilon=0.5, cells=3, max_length=9, user="who")
            right = 160 if way == "persons" else 40

        def release(n):
            plan = synthesizer.plan(SQUARE, n=n)
            told = {"mechanism": plan.mechanism, "domain": SQUARE, "n": n, "count_unit": plan.count_unit}
            paid = {"ledger": ledger, "entry": ledger.authorise(plan.guarantee, **told)}
            if way == "batches":
                return plan.finish(map(plan.partial, [pattern]), **paid)
            return plan.release(pattern, **paid)

        with pytest.raises(InputError, match=r"^n: the release was planned for another number"):
            release(right + 1)
        release(right)
        assert [(entry.n, entry.taken) for entry in ledger.releases] == [(None, True), (right, True)]


class TestSubset:
    def test_a_mark_that_neighbours_share(self, ledger):
        CELLS.release(ALL, ledger=ledger)
        CELLS.release(RECENT, ledger=ledger, subset={"year": 2022})
        assert [entry.points.subset for entry in ledger.releases] == [(), (("year", "2022"),)]
        CELLS.plan(SQUARE, n=80).release(RECENT, ledger=ledger, subset={"year": "2022"})
        with pytest.raises(InputError, match=r"^n: earlier releases of the points with year = 2022 .* n = 80"):
            CELLS.release(PART, ledger=ledger, subset={"year": 2022})
        with pytest.raises(InputError, match=ANOTHER):
            CELLS.release(RECENT, ledger=ledger)
        CELLS.release(ALL, ledger=ledger)

    def test_the_promise_says_that_the_mark_is_not_protected(self, ledger):
        CELLS.release(ALL, ledger=ledger)
        assert ledger.neighbouring == ReplaceOne()
        CELLS.release(RECENT, ledger=ledger, subset={"year": 2022})
        headline = str(ledger.guarantee).partition("Proved by")[0]
        assert (
            "one point moves anywhere in the domain, and every point keeps its year (which is not protected)"
            in headline
        )
        assert ledger.guarantee.relation != ReplaceOne()
        assert SAME_POINTS in ledger.guarantee.assumptions
        assert not ledger.guarantee.relation.implies(ReplaceOne())
        CELLS.release(RECENT, ledger=ledger, subset={"year": 2022, "sex": "f"})
        assert "every point keeps its sex and its year (which are not protected)" in ledger.neighbouring.describe()

    def test_one_release_makes_no_assumption_about_others(self, ledger):
        CELLS.release(ALL, ledger=ledger)
        assert ledger.guarantee.assumptions[-1] == COMPLETE
        assert SAME_POINTS not in ledger.guarantee.assumptions

    def test_levels_of_another_mark_within_it(self, ledger):
        marked = PointPattern(RECENT.xy, SQUARE, {"sex": np.repeat(["f", "m"], 40)})
        CELLS.release_by(marked, by="sex", levels=["f", "m"], ledger=ledger, subset={"year": 2022})
        told = {"n": 80, "count_unit": None, "subset": {"year": "2022"}, "levels": {"sex": {"f": 40, "m": 40}}}
        assert ledger.releases[0].points.to_dict() == told
        # The number of each level is told, so a point that changed its level would show.
        assert "every point keeps its sex and its year (which are not protected)" in ledger.neighbouring.describe()
        plan = CELLS.plan_by(SQUARE, by="sex", levels=["f", "m"], n={"f": 40, "m": 40})
        for release in (
            lambda: CELLS.release_by(marked, by="sex", levels=["f", "m"], ledger=ledger, subset={"sex": "f"}),
            lambda: plan.release(marked, ledger=ledger, subset={"sex": "f"}),
        ):
            with pytest.raises(InputError, match=r"^subset: .*one value of 'sex'"):
                release()
        assert len(ledger.releases) == 1

    def test_it_is_the_authorised_one(self, ledger):
        given = {"mechanism": "m", "domain": SQUARE, "subset": {"year": 2022}}
        entry = ledger.authorise(CELLS.ceiling(SQUARE), **given)
        plan = CELLS.plan(SQUARE, n=80)
        with pytest.raises(InputError, match=r"^subset: the points with year = 2022 were authorised, not .*2021"):
            plan.release(RECENT, ledger=ledger, entry=entry, subset={"year": 2021})
        plan.release(RECENT, ledger=ledger, entry=entry)
        points = ledger.releases[0].points
        assert (points.n, points.subset, points.by) == (80, (("year", "2022"),), None)
        whole = ledger.authorise(CELLS.ceiling(SQUARE), mechanism="m", domain=SQUARE)
        with pytest.raises(InputError, match=r"^subset: all points were authorised"):
            plan.release(RECENT, ledger=ledger, entry=whole, subset={"year": 2022})

    @pytest.mark.parametrize(
        "wrong",
        [
            *({}, "year=2021", {"year": [2021]}, {"": 1}, {"year": ""}, {"year": True}, {3: 1}, 7),
            *({"year\n": 1}, {"year": "2021\x1b[2J"}, {"\udcff": 1}),
        ],
    )
    def test_what_names_no_value_of_a_mark(self, ledger, wrong):
        with pytest.raises(InputError, match=r"^subset: "):
            CELLS.release(ALL, ledger=ledger, subset=wrong)
        assert ledger.releases == ()

    def test_it_is_said_to_a_ledger(self):
        for release in (
            lambda: CELLS.release(RECENT, subset={"year": 2022}),
            lambda: CELLS.release_by(YEARS, by="year", levels=[2021, 2022], subset={"sex": "f"}),
            lambda: LDPTrace(epsilon=1.0, cells=3, user=None).release(RECENT, subset={"year": 2022}),
        ):
            with pytest.raises(InputError, match=r"^subset: .*ledger="):
                release()

    @pytest.mark.parametrize("n", [0, -1, 2.5, "200", True, 2**60])
    def test_what_is_no_number(self, ledger, n):
        with pytest.raises(InputError, match=r"^n: "):
            ledger.authorise(CELLS.ceiling(SQUARE), mechanism="m", domain=SQUARE, n=n)


class TestDomains:
    def test_each_domain_has_its_number(self, ledger):
        CELLS.release(ALL, ledger=ledger)
        west = PointPattern(PART.xy, WEST)
        with pytest.warns(InformationWarning, match="across the border of one of the domains are not protected"):
            CELLS.release(west, ledger=ledger)
        CELLS.release(west, ledger=ledger)
        with pytest.raises(InputError, match="n = 108"):
            CELLS.release(PointPattern(PART.xy[1:], WEST), ledger=ledger)

    def test_who_is_refused_is_told_what_the_remedy_takes_away(self, tmp_path):
        ledger = Ledger.create(tmp_path / "l.json", epsilon=5.0, delta=0.0, alpha=1.0)
        CELLS.release(ALL, ledger=ledger)
        with pytest.raises(
            InputError, match=r"^domain: .*replace-one.*across the border of one of the domains are not"
        ):
            CELLS.release(PointPattern(PART.xy, WEST), ledger=ledger)


class TestSecretNumber:
    """Under add/remove a part has one point more or less, or is the same: no mark is needed, and no number kept."""

    def test_points(self, tmp_path):
        ledger = Ledger.create(tmp_path / "l.json", epsilon=5.0, delta=0.0, relation=AddRemove())
        synthesizer = replace(CELLS, relation=AddRemove())
        synthesizer.release(ALL, expected_n=150, ledger=ledger)
        synthesizer.release(PART, expected_n=150, ledger=ledger)
        synthesizer.release_by(YEARS, by="year", levels=[2021, 2022], expected_n=90, ledger=ledger)
        events = events_of(ledger.path.read_bytes())
        assert all(event["points"] is None for event in events[1:])
        assert not {"108", "200", "120"} & set(ledger.path.read_text().replace(",", " ").split())
        assert POINTWISE in ledger.guarantee.assumptions
        assert ledger.guarantee.relation == AddRemove()

    def test_persons(self, tmp_path):
        ledger = Ledger.create(tmp_path / "l.json", epsilon=5.0, delta=0.0, relation=AddRemovePerson())
        heat = HeatmapSynthesizer(1.0, shape=(4, 4))
        for rows in (slice(None), slice(0, 50)):
            heat.release(PointPattern(XY[rows], SQUARE, {"user": np.arange(200)[rows]}), ledger=ledger)
        assert POINTWISE_PERSON in ledger.guarantee.assumptions
        assert all(event.get("points") is None for event in events_of(ledger.path.read_bytes()))

    def test_nobody_tells_it(self, tmp_path):
        ledger = Ledger.create(tmp_path / "l.json", epsilon=5.0, delta=0.0, relation=AddRemove())
        given = {"mechanism": "m", "domain": SQUARE}
        secret = replace(CELLS, relation=AddRemove()).ceiling(SQUARE)
        with pytest.raises(InputError, match=r"^n: the number of points is secret under"):
            ledger.authorise(secret, n=200, **given)
        with pytest.raises(InputError, match=r"^subset: the number of points is secret"):
            ledger.authorise(secret, subset={"year": 2021}, **given)
        entry = ledger.authorise(secret, **given)
        with pytest.raises(InputError, match=r"^n: the number of points is secret"):
            ledger.settle(entry, secret, n=200)
        events = events_of(ledger.path.read_bytes())
        events[1]["points"] = {"n": 200, "count_unit": None, "subset": None, "levels": None}
        ledger.path.write_bytes(dump(events))
        with pytest.raises(PrivacyCheckError, match="kept exactly where it is public"):
            Ledger.open(ledger.path)


class TestFile:
    def test_a_chain_in_which_two_numbers_were_read(self, ledger, tmp_path):
        CELLS.release(ALL, ledger=ledger)
        CELLS.release(ALL, ledger=ledger)
        events = events_of(ledger.path.read_bytes())
        for last, edited in ((4, [3]), (5, [3]), (5, [4]), (5, [3, 4])):
            done, names = [], {}
            for k, event in enumerate(copy.deepcopy(events[:last])):
                event["previous"] = identify(done[-1]) if done else None
                if "entry" in event:
                    event["entry"] = names[event["entry"]]
                if k in edited:
                    event["points"]["n"] = 108
                done.append(event)
                names[identify(events[k])] = identify(event)
            path = tmp_path / "forged.json"
            path.write_bytes(dump(done))
            with pytest.raises(PrivacyCheckError, match=r"n: (other numbers|earlier releases)"):
                Ledger.open(path)


class TestCommandLine:
    PLACE = ("--window", "0,0,10,10")

    @pytest.fixture
    def files(self, tmp_path):
        for name, pattern in (("all", ALL), ("part", PART), ("recent", RECENT)):
            np.savetxt(tmp_path / f"{name}.csv", pattern.xy, delimiter=",", header="x,y", comments="")
        self.run("ledger", "init", tmp_path / "l.json", "--epsilon", 9, "--relation", "replace-one")
        return tmp_path

    def run(self, *words, code=0):
        done = CliRunner().invoke(cli.app, [str(word) for word in words])
        assert done.exit_code == code, (done.output, done.exception)
        return done

    def synthesize(self, files, name, out, *more, code=0):
        how = ("--method", "laplace", "--relation", "replace-one", "--epsilon", 0.5, "--out", files / out)
        return self.run("synthesize", files / f"{name}.csv", *self.PLACE, *how, *more, code=code)

    def shown(self, files):
        return json.loads(self.run("ledger", "show", files / "l.json", "--json").stdout)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("stated", [True, False])
    def test_the_part_is_refused_and_a_mark_named(self, files, stated, untouched):
        book = ("--ledger", files / "l.json")
        self.synthesize(files, "all", "a", *book)
        said = self.synthesize(files, "part", "b", *book, *(("--n", 108) if stated else ()), code=2).output
        assert "such as --subset year=2021." in " ".join(said.split())
        assert not (files / "b").exists()
        # With --n nothing was read; without, it counts as spent, and the reason is said.
        assert self.shown(files)["spent"] == pytest.approx(0.5 if stated else 1.0)
        assert ("counts as spent" in said) is not stated
        self.synthesize(files, "recent", "c", *book, "--subset", "year=2022")
        found = self.shown(files)
        assert found["releases"][-1]["points"] == {
            "n": 80,
            "count_unit": None,
            "subset": {"year": "2022"},
            "levels": None,
        }
        assert "keeps its year (which is not protected)" in found["neighbours"]
        assert "which is not protected" in " ".join(self.run("ledger", "show", files / "l.json").output.split())

    def test_what_fails_before_it_is_planned_bears_the_name_on_certificates(self, files):
        (files / "bad.csv").write_text("x,y\n1,1\n31,1\n")
        self.synthesize(files, "bad", "a", "--ledger", files / "l.json", code=2)
        assert [each["mechanism"] for each in self.shown(files)["releases"]] == ["laplace-cells"]

    @pytest.mark.parametrize("words", [["year"], ["=3"], ["year="], ["a=1", "a=2"]])
    def test_what_names_no_value(self, files, words):
        more = [part for word in words for part in ("--subset", word)]
        said = self.synthesize(files, "all", "a", "--ledger", files / "l.json", *more, code=2).output
        assert "--subset: needs the name of each mark once" in " ".join(said.split())
        assert self.shown(files)["spent"] == 0

    def test_it_goes_with_a_ledger_and_another_mark(self, files):
        assert "give --ledger as well" in self.synthesize(files, "all", "a", "--subset", "year=1", code=2).output
        levels = ("--by", "year", "--levels", "1,2", "--n-by", "1,1", "--ledger", files / "l.json")
        said = self.synthesize(files, "all", "a", *levels, "--subset", "year=1", code=2).output
        assert "one value of 'year'" in said
        assert self.shown(files)["spent"] == 0

    @pytest.mark.slow
    def test_levels_have_one_number_each(self, files):
        """Levels of 120 and 80 points; then those with x <= 5 and the others, given beforehand or counted in it."""
        for name, first in (("years", np.arange(200) < 120), ("chosen", XY[:, 0] <= 5)):
            rows = "".join(f"{x},{y},{1 if one else 2}\n" for (x, y), one in zip(XY, first, strict=True))
            (files / f"{name}.csv").write_text("x,y,year\n" + rows)
        book, by = ("--ledger", files / "l.json"), ("--by", "year", "--levels", "1,2")
        self.synthesize(files, "years", "a", *book, *by)
        assert self.shown(files)["releases"][0]["points"]["levels"] == {"year": {"1": 120, "2": 80}}
        for spent, other in ((0.5, (*by, "--n-by", "108,92")), (0.5, ("--by", "year", "--levels", "1,2,3")), (1.0, by)):
            said = self.synthesize(files, "chosen", "b", *book, *other, code=2).output
            assert re.search(
                r"earlier releases of the points with year = [13] .* have n = (120|0),", " ".join(said.split())
            )
            assert self.shown(files)["spent"] == pytest.approx(spent)
        self.synthesize(files, "years", "b", *book, *by, "--n-by", "120,80")

    def test_a_slip_in_n_binds_nobody(self, files):
        book = ("--ledger", files / "l.json")
        assert "counts as spent" in self.synthesize(files, "all", "a", *book, "--n", 201, code=2).output
        self.synthesize(files, "all", "b", *book, "--n", 200)
        assert self.shown(files)["spent"] == pytest.approx(1.0)

    def test_a_slip_in_n_of_persons_binds_nobody(self, files):
        """Rows are given for n, of which 160 count: refused, spent, and forgotten."""
        users = np.repeat(np.arange(40), 5)
        rows = np.column_stack([XY, users])
        np.savetxt(files / "visits.csv", rows, fmt="%.6f,%.6f,p%d", header="x,y,user", comments="")
        ask = ("--ledger", files / "l.json", "--user", "user", "--max-points-per-person", 4)
        said = self.synthesize(files, "visits", "a", *ask, "--n", 200, code=2).output
        assert "counts as spent" in said
        assert "160" not in said
        self.synthesize(files, "visits", "b", *ask, "--n", 160)
        self.synthesize(files, "visits", "c", *ask)
        read = [entry["points"]["n"] for entry in self.shown(files)["releases"]]
        assert read == [None, 160, 160]

    def test_reports(self, files):
        ask = ("--mechanism", "disk-area", "--epsilon", 1, "--cells", 4, *self.PLACE, "--ledger", files / "l.json")
        self.run("local", "perturb", files / "all.csv", files / "r.csv", *ask)
        said = self.run("local", "perturb", files / "part.csv", files / "s.csv", *ask, code=2).output
        assert "n = 200" in said
        assert "counts as spent" in said
        # Nothing that was drawn is left.
        assert sorted(path.name for path in files.iterdir() if path.name[0] in "rs.") == [
            "r.csv",
            "r.csv.json",
            "recent.csv",
        ]
        self.run("local", "perturb", files / "recent.csv", files / "s.csv", *ask, "--subset", "year=2022")
        assert [entry["points"]["n"] for entry in self.shown(files)["releases"]] == [200, None, 80]

"""Persons of whom a few points count: the draw, the number of points, the bound, and all that is refused."""

import json

import numpy as np
import pytest
import scipy.stats
from support.command_line import run, spoken

import dpppsynth as dps
from dpppsynth.auditing import audit
from dpppsynth.core.errors import InputError
from dpppsynth.io import read_batches
from dpppsynth.privacy import AddRemove, AddRemovePerson, AlphaNeighbours, ReplaceOne, catalogue, verify
from dpppsynth.privacy.catalogue import Statement
from dpppsynth.privacy.relations import relation_from_dict
from dpppsynth.spatial.person_points import few_points_each, few_rows_each, number_of_few

WINDOW = dps.Window.rectangle(0, 0, 1000, 1000)
# Persons 0, 1, ..., 9 have 1, 2, ..., 10 points, in an order that says nothing.
WHO = np.random.default_rng(5).permutation(np.repeat(np.arange(10), np.arange(1, 11)))
XY = np.random.default_rng(6).uniform(0, 1000, (len(WHO), 2))
VISITS = dps.PointPattern(XY, WINDOW, {"person": WHO})
MOVES = AlphaNeighbours(25.0, max_points_per_person=3, user="person")
PERSONS = AddRemove(3, user="person")
# Which warns that it does not protect persons.
IN_A_LEDGER_OF_POINTS = pytest.mark.filterwarnings("ignore:ledger. it protects points")


class TestDraw:
    """Failures with the first points of each person, a fixed seed, or draws that hang on each other."""

    def test_at_most_so_many_of_each_and_all_of_others(self):
        for most in (1, 3, 7, 20):
            kept = np.bincount(WHO[few_rows_each(WHO, most)], minlength=10)
            assert kept.tolist() == np.minimum(np.arange(1, 11), most).tolist()
            assert number_of_few(VISITS, "person", most) == kept.sum()

    def test_every_choice_is_as_likely_and_independent_of_others(self):
        codes, rng = np.array([0, 1, 0, 0, 1, 0, 1]), np.random.default_rng(1)
        seen = [tuple(few_rows_each(codes, 2, rng).tolist()) for _ in range(9000)]
        counts = np.unique(seen, axis=0, return_counts=True)[1]
        # Six choices of two of four, and three of two of three.
        assert len(counts) == 18
        assert scipy.stats.chisquare(counts).pvalue > 1e-6

    def test_nobody_knows_the_bits(self):
        many = np.zeros(200, dtype=int)
        assert not np.array_equal(few_rows_each(many, 50), few_rows_each(many, 50))
        assert np.array_equal(few_rows_each(many, 50, 3), few_rows_each(many, 50, 3))

    def test_marks_but_the_persons_go_along(self):
        marks = {"person": WHO, "kind": np.arange(len(WHO))}
        found = few_points_each(dps.PointPattern(XY, WINDOW, marks), "person", 2, rng=1)
        assert set(found.marks) == {"kind"}
        assert (found.xy == XY[found.marks["kind"]]).all()


class TestSensitivity:
    """Failures with a cap that is not kept, or kept for each level or place by itself."""

    @pytest.mark.parametrize("relation", [MOVES, ReplaceOne(2, user="person")])
    def test_all_points_of_a_person_move(self, relation):
        """With one draw, two neighbours differ by no more than the stated sensitivity, which some attain."""
        rng, found = np.random.default_rng(2), []
        cap = relation.max_points_per_person
        plan = dps.LaplaceSynthesizer(1.0, relation=relation, spacing=50.0).plan(
            WINDOW, n=number_of_few(VISITS, "person", cap)
        )
        for person in range(10):
            moved = XY.copy()
            step = rng.uniform(-17, 17, XY.shape) if relation is MOVES else rng.uniform(-1000, 1000, XY.shape)
            moved[person == WHO] = np.clip(moved + step, 0, 1000)[person == WHO]
            there = dps.PointPattern(moved, WINDOW, {"person": WHO})
            for seed in range(5):
                one, other = (
                    plan.statistic.exact_numbers(plan.statistic.admitted(each, np.random.default_rng(seed)))
                    for each in (VISITS, there)
                )
                assert one.sum() == other.sum() == plan.n
                found.append(np.abs(one - other).sum())
        assert max(found) <= plan.statistic.sensitivity
        assert relation is MOVES or max(found) == plan.statistic.sensitivity == 2 * cap

    def test_a_person_comes_with_all_their_points(self):
        plan = dps.LaplaceSynthesizer(1.0, relation=PERSONS).plan(WINDOW, expected_n=30)
        kept = plan.statistic.admitted(VISITS)
        for person in range(10):
            alone = dps.PointPattern(XY[person == WHO], WINDOW, {"person": WHO[person == WHO]})
            assert len(plan.statistic.admitted(alone)) == min(person + 1, 3)
        assert len(kept) == 27
        assert plan.statistic.sensitivity == 3

    @pytest.mark.slow
    def test_an_audit_finds_a_cap_that_is_not_kept(self, monkeypatch):
        """A person of the audit's pair has three times as many points as count."""
        for relation, size in ((ReplaceOne(2, user="person"), {"n": 40}), (PERSONS, {"expected_n": 40.0})):
            coarse = dps.LaplaceSynthesizer(1.0, relation=relation, spacing=250.0)
            assert not audit(coarse, WINDOW, **size, trials=200).violated
        with monkeypatch.context() as patch:
            patch.setattr(
                "dpppsynth.contract.statistic.few_points_each",
                lambda pattern, user, most, rng=None: pattern.unmarked(),
            )
            assert audit(coarse, WINDOW, **size, trials=600).violated


class TestMechanisms:
    """Every central mechanism lets few points count, and says so on a certificate that verifies."""

    @pytest.mark.parametrize(
        "make",
        [
            lambda relation: dps.LaplaceSynthesizer(1.0, relation=relation, basis="tents"),
            lambda relation: dps.LGCPSynthesizer(1.0, relation=relation, mechanism="tents", inference="laplace"),
            lambda relation: dps.BoundedErrorSynthesizer(epsilon=1.0, max_error=60, relation=relation, spacing=250.0),
            lambda relation: dps.PairSums(1.0, radii=[50.0], cap=5, relation=relation),
            lambda relation: dps.KernelSynthesizer(20.0, delta=1e-3, relation=relation),
            lambda relation: dps.PlanarLaplaceSynthesizer(1.0, relation=relation),
            lambda relation: dps.LGCPSynthesizer(1.0, relation=relation, mechanism="moved", length_scale=300.0),
        ],
        ids=["tents", "lgcp", "bounded", "pairs", "kernel", "planar-laplace", "lgcp-moved"],
    )
    def test_release_and_certificate(self, make, tmp_path):
        release = make(MOVES).release(VISITS)
        release.save(tmp_path / "out")
        checked = verify(tmp_path / "out")
        assert checked.holds
        assert checked.guarantee.relation == MOVES
        cert = json.loads((tmp_path / "out" / "certificate.json").read_text())
        assert cert["parameters"]["n"] == 27
        assert {"code": "points-drawn-per-person", "most": 3, "user": "person"} in cert["guarantee"]["assumes"]
        assert "55" not in json.dumps(cert["parameters"])

    def test_types_are_kept(self):
        marks = dps.Marks(types=dps.Types("kind", ["a", "b"]))
        relation = AlphaNeighbours(25.0, types="public", max_points_per_person=3, user="person")
        kinds = np.where(np.arange(len(WHO)) % 2, "a", "b")
        pattern = dps.PointPattern(XY, WINDOW, {"person": WHO, "kind": kinds})
        synthesizer = dps.MarkedSynthesizer(1.0, marks=marks, relation=relation)
        assert synthesizer.plan(WINDOW, n=27).statistic.admitted(pattern).marks["kind"].shape == (27,)
        assert synthesizer.release(pattern).guarantee.relation.user == "person"

    def test_rehearsals_make_persons_up(self):
        assert dps.LaplaceSynthesizer(1.0, relation=MOVES).rehearse(WINDOW, 1, n=27).passed


class TestRelations:
    def test_what_implies_what(self):
        for stronger, weaker, holds in (
            (MOVES, AlphaNeighbours(25.0), True),
            # Two points of one person to the other relation may have two labels.
            (MOVES, AlphaNeighbours(25.0, max_points_per_person=2), False),
            (MOVES, AlphaNeighbours(25.0, max_points_per_person=9, user="person"), True),
            (MOVES, AlphaNeighbours(25.0, user="household"), False),
            (AlphaNeighbours(25.0, max_points_per_person=3), MOVES, False),
            (ReplaceOne(1, user="person"), MOVES, True),
            (PERSONS, AddRemovePerson("person"), True),
            (AddRemovePerson("person"), PERSONS, True),
            (PERSONS, AddRemovePerson("household"), False),
            (AddRemove(3), AddRemovePerson("person"), False),
            # Without one of their points another one of a person may be drawn.
            (PERSONS, AddRemove(), False),
        ):
            assert stronger.implies(weaker) is holds

    def test_json_and_back(self):
        for relation in (MOVES, PERSONS, ReplaceOne(2, user="person"), AddRemove(2)):
            assert relation_from_dict(relation.to_dict()) == relation
            assert ("user" in relation.to_dict()) is (relation.user is not None)

    def test_a_ledger_of_persons_takes_them(self, tmp_path):
        ledger = dps.Ledger.create(tmp_path / "a.json", epsilon=3.0, delta=0.0, relation=AddRemovePerson("person"))
        laplace = dps.LaplaceSynthesizer(1.0, relation=PERSONS)
        laplace.release(VISITS, expected_n=30, ledger=ledger).save(tmp_path / "out")
        dps.HeatmapSynthesizer(1.0, user="person", shape=(16, 16)).release(VISITS, ledger=ledger)
        assert ledger.spent == pytest.approx(2.0)
        with pytest.raises(InputError, match="told by 'person'"):
            dps.LaplaceSynthesizer(1.0, relation=AddRemove(3)).release(VISITS.unmarked(), expected_n=30, ledger=ledger)

    @IN_A_LEDGER_OF_POINTS
    def test_a_ledger_tells_numbers_of_points_apart_by_the_cap(self, tmp_path):
        """Draws of another cap have another number of points, all of them public; one cap has one."""
        ledger = dps.Ledger.create(tmp_path / "a.json", epsilon=5.0, delta=0.0, alpha=25.0)
        for cap in (3, 2):
            relation = AlphaNeighbours(25.0, max_points_per_person=cap, user="person")
            dps.LaplaceSynthesizer(1.0, relation=relation).release(VISITS, ledger=ledger)
        dps.LaplaceSynthesizer(1.0, alpha=25.0).release(VISITS.unmarked(), ledger=ledger)
        fewer = dps.PointPattern(XY[WHO != 4], WINDOW, {"person": WHO[WHO != 4]})
        with pytest.raises(InputError, match="earlier releases"):
            dps.LaplaceSynthesizer(1.0, relation=relation).release(fewer, ledger=ledger)
        # Labels tell the number that counts: it was paid for.
        assert ledger.spent == pytest.approx(4.0)


class TestRefusals:
    @IN_A_LEDGER_OF_POINTS
    def test_names_of_marks_before_anything_is_spent_and_labels_after(self, tmp_path):
        ledger = dps.Ledger.create(tmp_path / "a.json", epsilon=3.0, delta=0.0, alpha=25.0)
        plan = dps.LaplaceSynthesizer(1.0, relation=MOVES).plan(WINDOW, n=27)
        for pattern, said, spent in (
            (VISITS.unmarked(), "the mark 'person'", 0),
            (dps.PointPattern(XY, WINDOW, {"person": WHO, "age": WHO}), "no other", 0),
            (dps.PointPattern(XY[:30], WINDOW, {"person": WHO[:30]}), "another number of points", 1),
            (dps.PointPattern(XY, WINDOW, {"person": WHO + 0.5}), "texts or whole numbers", 2),
        ):
            with pytest.raises(InputError, match=said) as caught:
                plan.release(pattern, ledger=ledger)
            assert "55" not in str(caught.value)
            assert ledger.spent == pytest.approx(spent)

    def test_levels_batches_and_tracks(self, tmp_path):
        laplace = dps.LaplaceSynthesizer(1.0, relation=MOVES)
        with pytest.raises(InputError, match="at all levels together"):
            laplace.plan_by(WINDOW, by="year", levels=[1, 2], n={1: 10, 2: 17})
        pattern = dps.PointPattern(XY, WINDOW, {"person": WHO, "year": WHO % 2})
        with pytest.raises(InputError, match="at all levels together"):
            laplace.release_by(pattern, by="year", levels=[0, 1])
        (tmp_path / "points.csv").write_text("x,y\n1,2\n")
        with pytest.raises(InputError, match="several batches"):
            laplace.plan(WINDOW, n=27).partial(read_batches(tmp_path / "points.csv", WINDOW))
        track = AlphaNeighbours(25.0, max_points_per_person=60, user="person")
        with pytest.raises(InputError, match="track"):
            dps.PlanarLaplaceSynthesizer(1.0, relation=track, track=True).plan(WINDOW, n=50)

    def test_forged_levels(self):
        """Levels that each draw for themselves have no common bound, on certificates neither."""
        parts = [dps.LaplaceSynthesizer(1.0, relation=MOVES).check(WINDOW, n=n) for n in (10, 17)]
        with pytest.raises(InputError, match="at all levels together"):
            dps.privacy.parallel(parts, "year")

    def test_mechanisms_that_measure_all_points(self, tmp_path, monkeypatch):
        """A measurement of its own that forgets the cap, planned or on a certificate."""
        laplace = dps.LaplaceSynthesizer(1.0, relation=MOVES)
        laplace.release(VISITS).save(tmp_path / "out")
        monkeypatch.setattr("dpppsynth.contract.additive_noise.LaplaceMasses.keeps_cap", False)
        with pytest.raises(InputError, match="measures all points of a person"):
            laplace.plan(WINDOW, n=27)
        assert not verify(tmp_path / "out").holds
        assert dps.LaplaceSynthesizer(1.0, alpha=25.0).plan(WINDOW, n=27).guarantee.relation.user is None

    @pytest.mark.parametrize("user", ["", 3])
    def test_marks_without_a_name(self, user):
        with pytest.raises(InputError, match="user"):
            AlphaNeighbours(25.0, user=user)


class TestCommandLine:
    @pytest.fixture
    def points(self, tmp_path):
        path = tmp_path / "visits.csv"
        rows = (f"{x:.3f},{y:.3f},p{who:04d}" for (x, y), who in zip(XY, WHO, strict=True))
        path.write_text("x,y,person\n" + "\n".join(rows) + "\n")
        return path

    ASKED = ("--method", "laplace", "--epsilon", "1", "--alpha", "25", "--window", "0,0,1000,1000")
    FEW = ("--user", "person", "--max-points-per-person", "3")

    def test_synthesize(self, points, tmp_path):
        said = spoken(run("synthesize", points, *self.ASKED, *self.FEW, "--verbose", "--out", tmp_path / "out"))
        assert catalogue.text(Statement("points-drawn-per-person", most=3, user="person")) in said
        assert "p0004" not in said
        assert "55" not in said.replace(str(tmp_path), "")
        assert verify(tmp_path / "out").guarantee.relation == MOVES
        run("verify", tmp_path / "out")
        told = spoken(run("evaluate", points, tmp_path / "out", "--out", tmp_path / "private"))
        assert "of each person, drawn at random; so is what it is compared with" in told
        self.compared(tmp_path / "private", 27)
        other = tmp_path / "other.csv"
        other.write_text(points.read_text().replace("x,y,person", "x,y,who"))
        told = spoken(run("evaluate", other, tmp_path / "out", "--out", tmp_path / "all"))
        assert "all points of the original are compared" in told
        self.compared(tmp_path / "all", len(XY))
        run("evaluate", other, tmp_path / "out", "--user", "who", "--out", tmp_path / "few")
        self.compared(tmp_path / "few", 27)
        text = spoken(run("check", *self.ASKED, *self.FEW, "--n", "27"))
        assert "of which at most 3 count" in text

    @staticmethod
    def compared(folder, number):
        report = json.loads((folder / "CONFIDENTIAL_evaluation.json").read_text())
        assert report["metrics"][0]["original"] == number

    def test_refusals(self, points, tmp_path):
        out = ("--out", tmp_path / "out")
        said = spoken(run("synthesize", points, *self.ASKED, "--user", "person", *out, code=2))
        assert "number of points of each person that count" in said
        said = spoken(run("synthesize", points, *self.ASKED, *self.FEW, "--n", "55", *out, code=2))
        assert "another number of points" in said
        levels = ("--by", "year", "--levels", "1,2")
        assert "together" in spoken(run("synthesize", points, *self.ASKED, *self.FEW, *levels, *out, code=2))
        assert not (tmp_path / "out").exists()

    def test_a_ledger_of_persons(self, points, tmp_path):
        ledger = tmp_path / "ledger.json"
        run("ledger", "init", ledger, "--epsilon", "2", "--alpha", "25", "--user", "person")
        run("synthesize", points, *self.ASKED, *self.FEW, "--ledger", ledger, "--out", tmp_path / "out")
        few = ("--max-points-per-person", "3", "--out", tmp_path / "other")
        said = spoken(run("synthesize", points, *self.ASKED, "--ledger", ledger, *few, code=2))
        assert "all points of one person" in said
        assert "up to 3 points of one person" in said

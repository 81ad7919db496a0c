"""`dpppsynth ledger`: budgets are set and shown, and published certificates are recognised."""

import json
import shutil
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from support.command_line import run as run_command
from support.command_line import spoken
from support.forgery import put, read, reseal

from dpppsynth.core.errors import InputError
from dpppsynth.io import write_pattern
from dpppsynth.ledger import Ledger
from dpppsynth.privacy import AddRemove, AlphaNeighbours, GaussianDP, Guarantee, PureDP, ReplaceOne, gaussian_mu
from dpppsynth.privacy.catalogue import text
from dpppsynth.release import certificate
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import LaplaceSynthesizer

SQUARE = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
PATTERN = PointPattern(np.random.default_rng(2).uniform(0, 1000, (300, 2)), SQUARE)
TENTS = LaplaceSynthesizer(0.5, alpha=25.0, basis="tents", spacing=250.0, postprocess="plain")
BUDGET = ["--epsilon", 2, "--delta", 1e-5]


run = partial(run_command, "ledger")


def shown(path, *words, code=0):
    return json.loads(run("show", path, "--json", *words, code=code).stdout)


def signed(entry, guarantee, n=300):
    """The certificate of a release under an entry."""
    said = {"mechanism": "m", "parameters": lambda: {"n": n}, "guarantee": guarantee, "domain": SQUARE}
    none = {"noise": "secret", "seeded": False, "warning": None, "shuffled": None, "snap": None}
    return certificate.build(SimpleNamespace(entry=entry, **said, **none), {})


@pytest.fixture
def path(tmp_path):
    run("init", tmp_path / "ledger.json", *BUDGET, "--alpha", 25, "--label", "deaths")
    return tmp_path / "ledger.json"


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with a ledger and a release that it authorised."""
    folder = tmp_path_factory.mktemp("kept")
    ledger = Ledger.create(folder / "ledger.json", epsilon=2.0, delta=1e-5, alpha=25.0)
    TENTS.release(PATTERN, ledger=ledger).save(folder / "public", patterns=1)
    return folder


@pytest.fixture
def copied(kept, tmp_path):
    return shutil.copytree(kept, tmp_path / "copied")


class TestInit:
    @pytest.mark.parametrize(
        ("words", "relation"),
        [
            (["--alpha", 25], AlphaNeighbours(25.0)),
            (
                ["--alpha", 25, "--relation", "alpha", "--max-points-per-person", 3],
                AlphaNeighbours(25.0, max_points_per_person=3),
            ),
            (["--relation", "replace-one"], ReplaceOne()),
            (["--relation", "add-remove", "--max-points-per-person", 2, "--adaptive"], AddRemove(2)),
        ],
    )
    def test_it_sets_the_budget(self, tmp_path, words, relation):
        said = spoken(run("init", tmp_path / "ledger.json", *BUDGET, *words))
        assert "holds epsilon 2 at delta 1e-05" in said
        ledger = Ledger.open(tmp_path / "ledger.json")
        assert (ledger.epsilon, ledger.delta, ledger.relation) == (2.0, 1e-5, relation)
        assert ledger.adaptive == ("--adaptive" in words)

    def test_a_radius_waits_for_the_unit_of_the_first_domain(self, tmp_path):
        """A radius of 25 "unit" alone is taken for metres; a promise without lengths has nothing to wait for."""
        for words, waits in ((["--alpha", 25], True), (["--relation", "replace-one"], False)):
            path = tmp_path / f"{waits}.json"
            assert ("which unit" in spoken(run("init", path, *BUDGET, *words))) is waits

    def test_a_release_made_before_is_entered(self, path, tmp_path):
        TENTS.release(PATTERN).save(tmp_path / "public", patterns=1)
        said = spoken(run("enter", path, tmp_path / "public"))
        assert "entered" in said
        assert "25 metre" in said
        assert [check["holds"] for check in shown(path, "--release", tmp_path / "public")["checks"]] == [True] * 3
        # Here the release has no option in front, as it has in `ledger show`.
        assert "Error: release: it stands in this ledger" in spoken(run("enter", path, tmp_path / "public", code=2))

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ([], "give the privacy radius"),
            (["--relation", "alpha"], "give the privacy radius"),
            (["--alpha", 25, "--relation", "replace-one"], "leave --alpha out"),
            (["--alpha", 25, "--epsilon", 0], "--epsilon: must be a positive"),
            (["--alpha", 25, "--delta", 0.5], "--delta: the budget's must be"),
            (["--alpha", -1], "--alpha: must be a positive"),
        ],
    )
    def test_what_is_no_budget(self, tmp_path, words, said):
        assert said in spoken(run("init", tmp_path / "ledger.json", *BUDGET, *words, code=2))
        assert not (tmp_path / "ledger.json").exists()

    def test_a_budget_is_set_once(self, path):
        before = path.read_bytes()
        assert "a budget is set once" in spoken(run("init", path, "--epsilon", 9, "--delta", 0, "--alpha", 1, code=2))
        assert path.read_bytes() == before


class TestShow:
    def test_what_was_spent_and_remains(self, path):
        draw = Guarantee(
            AlphaNeighbours(25.0), GaussianDP(gaussian_mu(1, 1e-6), at=1e-6), "posterior-draw", ("exact-draw",)
        )
        with Ledger.open(path) as ledger:
            entries = [ledger.authorise(draw, mechanism="lgcp-posterior-draw", domain=SQUARE) for _ in range(2)]
            cert = signed(entries[0], draw)
            ledger.record(entries[0], cert, domain=SQUARE)
        found = shown(path)
        assert found["spent"] == pytest.approx(1.277, abs=5e-4)
        assert found["remaining"] == pytest.approx(0.723, abs=5e-4)
        assert (found["label"], found["epsilon"], found["delta"], found["adaptive"]) == ("deaths", 2.0, 1e-5, False)
        assert found["relation"] == AlphaNeighbours(25.0).to_dict()
        assert [entry["id"] for entry in found["releases"]] == entries
        assert [entry["state"] for entry in found["releases"]] == ["measured", "authorised"]
        assert found["releases"][0]["certificate"] == certificate.statement_hash(cert)
        assert found["assumptions"][0] == text("exact-draw")
        said = spoken(run("show", path))
        for words in ("deaths", "spent 1.278", "remaining 0.7229", "lgcp-posterior-draw", f"- {text('exact-draw')}"):
            assert words in said

    @pytest.mark.parametrize(
        ("delta", "relation", "warned"),
        [
            (0.0049, ReplaceOne(), None),
            (0.005, ReplaceOne(), certificate.LARGE_DELTA),
            (1e-5, AddRemove(), None),
            (1e-4, AddRemove(), certificate.UNSURE_DELTA),
            (0.0, ReplaceOne(), None),
        ],
    )
    def test_a_delta_that_promises_nothing(self, tmp_path, delta, relation, warned):
        """Two hundred points, of which a delta of 1/200 may publish one."""
        path, n = tmp_path / "ledger.json", 200 if relation.n_is_public else None
        ledger = Ledger.create(path, epsilon=2.0, delta=delta, relation=relation)
        ledger.authorise(Guarantee(relation, PureDP(1.0), "counts", ()), mechanism="m", domain=SQUARE, n=n)
        assert ledger.warning == warned
        assert shown(path)["warning"] == (None if warned is None else text(warned))
        said = spoken(run("show", path))
        assert "Warning" not in said if warned is None else f"Warning: {text(warned)}" in said

    def test_an_unused_ledger(self, path):
        found = shown(path)
        assert (found["spent"], found["remaining"], found["releases"], found["assumptions"]) == (0.0, 2.0, [], [])
        assert "remaining 2" in spoken(run("show", path))

    def test_showing_leaves_everything_as_it_is(self, kept, copied):
        lock = copied / "ledger.json.lock"
        lock.unlink()
        shown(copied / "ledger.json")
        assert not lock.exists()
        assert (copied / "ledger.json").read_bytes() == (kept / "ledger.json").read_bytes()

    def test_damaged_and_missing_ledgers(self, path):
        run("show", path.with_name("no.json"), code=2)
        run("show", path.parent, code=2)
        path.write_bytes(path.read_bytes()[:-20])
        run("show", path, code=3)

    def test_an_edited_ledger(self, path):
        path.write_bytes(path.read_bytes().replace(b'"epsilon":2.0', b'"epsilon":9.0'))
        assert "damaged or was edited" in spoken(run("show", path, code=3))


class TestRelease:
    def test_a_release_of_this_ledger(self, copied):
        found = shown(copied / "ledger.json", "--release", copied / "public")
        assert [check["name"] for check in found["checks"]] == ["entry", "record", "budget"]
        assert all(check["holds"] for check in found["checks"])
        said = spoken(run("show", copied / "ledger.json", "--release", copied / "public" / "certificate.json"))
        assert "record: the certificate recorded" in said

    def test_an_edited_certificate(self, copied):
        cert = read(copied / "public")
        reseal(copied / "public", put(cert, ("guarantee", "profile", "epsilon"), 0.25))
        found = shown(copied / "ledger.json", "--release", copied / "public", code=3)
        assert [check["holds"] for check in found["checks"]] == [True, False, True]

    @pytest.mark.parametrize("edit", ["budget", "relation", "domain", "n"])
    def test_what_the_ledger_does_not_count_is_neither_recorded_nor_compared(self, tmp_path, copied, edit):
        """A release that was authorised as a smaller one, for fewer pairs, elsewhere, or of other points."""
        ledger = Ledger.create(tmp_path / "other.json", epsilon=2.0, delta=1e-5, alpha=25.0)
        given = replace(TENTS, epsilon=0.4 if edit == "budget" else 0.5).check(SQUARE, n=300)
        entry = ledger.authorise(given, mechanism="laplace-tents", domain=SQUARE, n=300)
        cert = certificate.read(copied / "public") | {"ledger": entry}
        if edit == "relation":
            cert["guarantee"]["relation"] = AlphaNeighbours(10.0).to_dict()
        if edit == "domain":
            cert["domain"]["fingerprint"] = "0" * 64
        if edit == "n":
            cert["parameters"]["n"] = 299
        with pytest.raises(InputError, match=r"^certificate: it proves nothing about this entry"):
            ledger.record(entry, cert, domain=SQUARE)
        (copied / "public" / "certificate.json").write_text(json.dumps(cert))
        found = shown(ledger.path, "--release", copied / "public", code=3)
        assert [check["holds"] for check in found["checks"]] == [True, False, False]

    def test_a_release_that_was_never_recorded(self, copied):
        ledger = Ledger.open(copied / "ledger.json")
        cert = certificate.read(copied / "public")
        cert["ledger"] = ledger.authorise(TENTS.check(SQUARE, n=300), mechanism="laplace-tents", domain=SQUARE)
        (copied / "public" / "certificate.json").write_text(json.dumps(cert))
        said = spoken(run("show", ledger.path, "--release", copied / "public", code=3))
        assert "no certificate was recorded" in said

    def test_a_ledger_that_does_not_know_it(self, path, copied):
        said = spoken(run("show", path, "--release", copied / "public", code=3))
        assert "the ledger does not know it" in said

    def test_a_release_without_a_ledger(self, path, copied):
        file = copied / "public" / "certificate.json"
        cert = json.loads(file.read_text())
        del cert["ledger"]
        file.write_text(json.dumps(cert))
        said = spoken(run("show", path, "--release", copied / "public", code=3))
        assert "names no ledger" in said


class TestPersons:
    """A ledger of points, asked for releases about persons."""

    ASK = ("--method", "laplace", "--epsilon", 1, "--window", "0,0,1000,1000", "--crs", "EPSG:27700", "--n", 300)
    WHO = ("--user", "Pat ID", "--max-points-per-person", 3)

    def test_it_says_before_the_spend_that_persons_are_not_protected(self, path, tmp_path, monkeypatch):
        monkeypatch.delenv("DPPPSYNTH_YES")
        people = [f"{x},{y},p{k // 3}\n" for k, (x, y) in enumerate(PATTERN.xy.tolist())]
        (tmp_path / "points.csv").write_text("x,y,Pat ID\n" + "".join(people), encoding="utf-8")
        ask = (*self.ASK, "--alpha", 25, *self.WHO, "--ledger", path)
        budget = "--epsilon 2 --delta 1e-05 --alpha 25"
        opens = f"`dpppsynth ledger init NEW.json {budget} --user 'Pat ID' --max-points-per-person 3`"
        said = spoken(run_command("check", *ask))
        assert "(Pat ID is not protected)" in said
        assert opens in said
        refused = run_command("synthesize", tmp_path / "points.csv", *ask, "--out", tmp_path / "out", code=2)
        assert opens in spoken(refused)
        assert shown(path)["spent"] == 0
        run_command("synthesize", tmp_path / "points.csv", *ask, "--out", tmp_path / "out", "--yes")
        assert "keeps its Pat ID (which is not protected)" in shown(path)["neighbours"]

    def test_it_says_so_of_a_release_that_was_made_before(self, path, tmp_path):
        people = [f"{x},{y},p{k // 3}\n" for k, (x, y) in enumerate(PATTERN.xy.tolist())]
        (tmp_path / "points.csv").write_text("x,y,Pat ID\n" + "".join(people), encoding="utf-8")
        out = tmp_path / "out"
        run_command("synthesize", tmp_path / "points.csv", *self.ASK, "--alpha", 25, *self.WHO, "--out", out)
        assert "(Pat ID is not protected)" in spoken(run("enter", path, out))

    def test_one_that_it_names_protects_them(self, tmp_path):
        book = tmp_path / "persons.json"
        run("init", book, *BUDGET, "--alpha", 25, *self.WHO)
        said = spoken(run_command("check", *self.ASK, "--alpha", 25, *self.WHO, "--ledger", book))
        assert "not protected" not in said
        assert "ledger init" in spoken(run_command("check", *self.ASK, "--alpha", 25, "--ledger", book, code=2))

    def test_what_was_warned_of_is_what_is_spent_from(self, path, tmp_path, monkeypatch):
        """The ledger is opened once: another file in its place is no longer the one that was asked."""
        opened, opens = [], Ledger.open
        monkeypatch.setattr(Ledger, "open", lambda file: opened.append(file) or opens(file))
        points = tmp_path / "points.csv"
        write_pattern(PATTERN, points)
        ask = (*self.ASK, "--alpha", 25, "--ledger", path)
        run_command("synthesize", points, *ask, "--out", tmp_path / "out", "--yes")
        assert len(opened) == 1

    def test_points_are_not_warned_of(self, path):
        assert "not protected" not in spoken(run_command("check", *self.ASK, "--alpha", 25, "--ledger", path))


class TestCheck:
    """`check --ledger` refuses what `synthesize` would."""

    ASK = (*TestPersons.ASK, "--alpha", 25)

    def test_one_that_is_not_there(self, tmp_path):
        said = spoken(run_command("check", *self.ASK, "--ledger", tmp_path / "nope.json", code=2))
        assert "there is no" in said
        assert "dpppsynth ledger init" in said
        assert not (tmp_path / "nope.json").exists()

    def test_one_without_room(self, path):
        before = path.read_bytes()
        run_command("check", *self.ASK, "--ledger", path)
        run_command("check", *(3 if word == 1 else word for word in self.ASK), "--ledger", path, code=4)
        assert path.read_bytes() == before

    def test_values_of_marks_go_with_a_ledger(self, path):
        run_command("check", *self.ASK, "--ledger", path, "--subset", "year=2021")
        assert "--subset: " in spoken(run_command("check", *self.ASK, "--subset", "year=2021", code=2))

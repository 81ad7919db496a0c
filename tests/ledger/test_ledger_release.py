"""Releases under a ledger: authorised before the points are touched, spent whatever happens, found again later."""

import builtins
import io
import json
import os
import signal
import subprocess
import sys
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.chance import Apart
from support.ledgers import events_of, unrecorded
from support.seams import chance_for_nuts, randomise_by, touched

from dpppsynth.core.errors import BudgetError, InformationWarning, InputError, QualityError, ReleaseBlocked
from dpppsynth.ledger import Authorisation, Ledger, compare
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.local import DiskAreaMechanism, PrivAG, SEMGeoI
from dpppsynth.models import regular_triangulation
from dpppsynth.privacy import (
    AddRemove,
    AddRemovePerson,
    AlphaNeighbours,
    GeoIndistinguishability,
    Local,
    ReplaceOne,
    verify,
)
from dpppsynth.privacy.catalogue import ONE_REPORT, Statement
from dpppsynth.release import append_patterns, certificate, load_release
from dpppsynth.release.folder_writing import certificate_dict
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import KernelSynthesizer, LaplaceSynthesizer, LGCPSynthesizer

WINDOW = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
PATTERN = PointPattern(np.random.default_rng(3).uniform(0, 1000, (173, 2)), WINDOW)
YEARS = PointPattern(PATTERN.xy, WINDOW, {"year": np.repeat([2021, 2022], [100, 73])})
DRAW = LGCPSynthesizer(
    1.0,
    alpha=25.0,
    mechanism="posterior-draw",
    delta=1e-6,
    sampler="exact",
    length_scale=200.0,
    mesh=regular_triangulation(WINDOW, shape=(4, 4)),
)
TENTS = LaplaceSynthesizer(0.5, alpha=25.0, basis="tents", spacing=250.0, postprocess="plain")
COX = replace(DRAW, epsilon=0.5, delta=0.0, mechanism="tents", sampler="auto", inference="laplace")

# The folders of tests from which other processes import.
IMPORTABLE = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger.json"
    Ledger.create(path, epsilon=2.0, delta=1e-5, alpha=25.0)
    return path


def states(path):
    return [entry.state for entry in Ledger.open(path).releases]


class TestSpending:
    def test_four_draws_and_no_fifth(self, path, monkeypatch):
        with Ledger.open(path) as ledger:
            for spent in (0.873, 1.277, 1.598, 1.875):
                DRAW.release(PATTERN, ledger=ledger)
                assert ledger.spent == pytest.approx(spent, abs=6e-4)
            before = path.read_bytes()
            randomise_by(monkeypatch, touched)
            with pytest.raises(BudgetError, match=r"(?s)Requested.*0\.2489.*Remaining.*0\.1247.*Difference.*0\.1241"):
                DRAW.release(PATTERN, ledger=ledger)
        assert path.read_bytes() == before
        assert states(path) == ["measured"] * 4

    def test_authorised_on_disk_before_the_points_are_touched(self, path, monkeypatch):
        seen = []

        def watched(plan, draw, exact):
            seen.append(states(path))
            return draw(exact)

        randomise_by(monkeypatch, watched)
        TENTS.release(PATTERN, ledger=Ledger.open(path))
        assert seen == [["authorised"]]
        assert states(path) == ["measured"]

    @pytest.mark.parametrize("error", [ReleaseBlocked("no"), MemoryError, KeyboardInterrupt])
    def test_a_failed_release_counts_as_spent(self, path, monkeypatch, error):
        def fail(*_):
            raise error

        randomise_by(monkeypatch, fail)
        ledger = Ledger.open(path)
        with pytest.raises(error if isinstance(error, type) else type(error)):
            TENTS.release(PATTERN, ledger=ledger)
        assert ledger.spent == pytest.approx(0.5, abs=1e-4)
        assert states(path) == ["authorised"]

    @pytest.mark.parametrize("by", [False, True])
    def test_another_public_number_costs_nothing(self, path, by):
        """It is the same for all neighbouring patterns."""
        ledger, before = Ledger.open(path), path.read_bytes()
        plan = TENTS.plan(WINDOW, n=len(PATTERN) + 1)
        if by:
            plan = TENTS.plan_by(WINDOW, by="year", levels=[2021, 2022], n={2021: 100, 2022: 74})
        with pytest.raises(InputError, match=r"^n: "):
            plan.release(YEARS if by else PATTERN, ledger=ledger)
        assert path.read_bytes() == before

    def test_what_only_its_points_tell_counts_as_spent(self, path):
        ledger = Ledger.open(path)
        plan = TENTS.plan_by(WINDOW, by="year", levels=[2021, 2022], n={2021: 99, 2022: 74})
        with pytest.raises(InputError, match=r"^n: "):
            plan.release(YEARS, ledger=ledger)
        assert states(path) == ["authorised"]

    @pytest.mark.parametrize("by", [False, True])
    def test_its_authorisation_is_nobody_elses(self, path, by, monkeypatch):
        """One event authorises and takes up, so that another run can use the name neither later nor in between."""
        ledger = Ledger.open(path)
        right = TENTS.plan_by(WINDOW, by="year", levels=[2021, 2022], n={2021: 100, 2022: 73}) if by else None
        right = right or TENTS.plan(WINDOW, n=173)
        randomise_by(monkeypatch, lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            right.release(YEARS if by else PATTERN, ledger=ledger)
        assert [event["kind"] for event in events_of(path.read_bytes())] == ["budget", "authorised"]
        before = path.read_bytes()
        with pytest.raises(InputError, match="used by whoever was given it"):
            right.release(YEARS if by else PATTERN, ledger=ledger, entry=ledger.releases[-1].id)
        assert path.read_bytes() == before

    @pytest.mark.parametrize("way", ["release_by", "plan"])
    @pytest.mark.parametrize("relation", [None, AddRemove()])
    def test_levels_are_looked_at_after_the_authorisation(self, tmp_path, way, relation):
        """That nobody has a level is an answer."""
        synthesizer = replace(TENTS, alpha=None, relation=relation) if relation else TENTS
        path, levels = tmp_path / "ledger.json", [2021, 2022, 2023]
        ledger = Ledger.create(path, epsilon=0.5, delta=0.0, relation=synthesizer.neighbouring())
        size = {"expected_n": 60} if relation else {"n": dict(zip(levels, (60, 60, 53), strict=True))}

        def run():
            if way == "plan":
                synthesizer.plan_by(WINDOW, by="year", levels=levels, **size).release(YEARS, ledger=ledger)
            else:
                given = size if relation else {}
                synthesizer.release_by(YEARS, by="year", levels=levels, ledger=ledger, **given)

        with pytest.raises(InputError, match=r"^levels:"):
            run()
        assert ledger.spent == pytest.approx(0.5)
        with pytest.raises(BudgetError):
            run()
        (entry,) = ledger.releases
        assert entry.state == "authorised"

    def test_a_ledger_is_opened_first(self, path):
        by_year = partial(TENTS.release_by, by="year", levels=[2021, 2022])
        for release, pattern in ((TENTS.release, PATTERN), (by_year, YEARS)):
            with pytest.raises(InputError, match=r"^ledger: .*Ledger\.open"):
                release(pattern, ledger=str(path))

    def test_a_wrong_domain_or_mark_costs_nothing(self, path):
        """Both are public, so they are looked at before the authorisation."""
        ledger = Ledger.open(path)
        before = path.read_bytes()
        elsewhere = Window.rectangle(-1, -1, 2000, 2000)
        for pattern in (YEARS, PointPattern([[5, 5]] * len(PATTERN), elsewhere)):
            with pytest.raises(InputError, match=r"^pattern: "):
                TENTS.plan(WINDOW, n=len(PATTERN)).release(pattern, ledger=ledger)
        assert path.read_bytes() == before

    @pytest.mark.slow
    def test_and_one_killed_in_between(self, path):
        script = f"""
import os, signal
from test_ledger_release import *
from dpppsynth.contract.additive_noise import LaplaceMasses
LaplaceMasses.measure = lambda *a: os.kill(os.getpid(), signal.SIGKILL)
TENTS.release(PATTERN, ledger=Ledger.open({str(path)!r}))
"""
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=Path(__file__).parent, env=IMPORTABLE, check=False, capture_output=True
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert states(path) == ["authorised"]
        assert Ledger.open(path).spent == pytest.approx(0.5, abs=1e-4)

    @pytest.mark.slow
    def test_poor_inference_loses_nothing(self, path):
        with chance_for_nuts(Apart), pytest.raises(QualityError) as caught:
            replace(COX, inference="nuts").release(PATTERN, ledger=Ledger.open(path))
        assert states(path) == ["measured"]
        assert caught.value.release.entry == Ledger.open(path).releases[0].id

    def test_a_seeded_release_is_none(self, path):
        with pytest.raises(InputError, match="rng"):
            TENTS.release(PATTERN, 1, ledger=Ledger.open(path))
        assert states(path) == []

    def test_an_entry_needs_its_ledger(self):
        with pytest.raises(InputError, match="ledger="):
            TENTS.plan(WINDOW, n=173).release(PATTERN, entry="0" * 64)

    @pytest.mark.parametrize("mechanism", ["kim-lim-3.8"])
    def test_averages_are_no_promise_to_add_up(self, path, mechanism):
        averaged = LGCPSynthesizer(1.0, alpha=25.0, mechanism=mechanism, delta=1e-6, length_scale=400.0)
        ledger = Ledger.open(path)
        with pytest.raises(InputError, match="average"):
            ledger.authorise(averaged.ceiling(WINDOW), mechanism="lgcp", domain=WINDOW)
        assert states(path) == []

    def test_a_weaker_relation_is_refused_with_the_reason(self, tmp_path):
        path = tmp_path / "strong.json"
        Ledger.create(path, epsilon=2.0, delta=0.0, relation=ReplaceOne())
        with pytest.raises(InputError, match=r"^relation: .*moves by at most 25"):
            TENTS.release(PATTERN, ledger=Ledger.open(path))
        replaced = LaplaceSynthesizer(0.5, relation=ReplaceOne(), postprocess="plain")
        replaced.release(PATTERN, ledger=Ledger.open(path))
        assert states(path) == ["measured"]

    def test_levels_are_one_release(self, path):
        TENTS.release_by(YEARS, by="year", levels=[2021, 2022], ledger=Ledger.open(path))
        assert Ledger.open(path).spent == pytest.approx(0.5, abs=1e-4)
        assert states(path) == ["measured"]

    @pytest.mark.parametrize("wrong", [{"spacing": -1.0}, {"spacing": 1e-3}])
    def test_public_mistakes_cost_nothing(self, path, wrong):
        with pytest.raises(InputError):
            replace(TENTS, **wrong).release_by(YEARS, by="year", levels=[2021, 2022], ledger=Ledger.open(path))
        with pytest.raises(TypeError):
            TENTS.release_by(YEARS, by="year", levels=[2021, 2022], ledger=Ledger.open(path), spaceing=3)
        assert states(path) == []

    def test_what_cannot_be_recorded_is_released_all_the_same(self, path):
        with pytest.warns(InformationWarning, match="counts as spent"):
            release = TENTS.release(PATTERN, ledger=unrecorded(path, OSError()))
        assert release.entry
        assert states(path) == ["authorised"]


class TestCertificates:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        ("synthesizer", "by"),
        [
            (TENTS, False),
            (TENTS, True),
            (DRAW, False),
            (KernelSynthesizer(1.0, delta=1e-6, alpha=25.0), False),
            (KernelSynthesizer(1.0, delta=1e-6, alpha=25.0), True),
        ],
    )
    def test_state_what_the_budget_bought(self, tmp_path, synthesizer, by):
        """The same before and after `save` and `load_release`, and another for every other run of the same plan."""
        ledger = Ledger.create(tmp_path / "ledger.json", epsilon=9.0, delta=1e-5, alpha=25.0)
        run = partial(synthesizer.release_by, YEARS, by="year", levels=[2021, 2022]) if by else None
        run = run or partial(synthesizer.release, PATTERN)
        first, other = run(ledger=ledger), run()
        recorded = ledger.releases[0].certificate
        folder = first.save(tmp_path / "public")
        said = [certificate.statement_hash(cert) for cert in (certificate.read(folder), certificate_dict(first))]
        assert said == [recorded, certificate.statement_hash(certificate_dict(load_release(folder)))] == [recorded] * 2
        posing = replace(other, entry=first.entry)
        assert certificate.statement_hash(certificate_dict(posing)) != recorded
        checks = {
            place: [check.holds for check in compare(ledger, certificate.read(place))]
            for place in (folder, posing.save(tmp_path / "posing"))
        }
        assert list(checks.values()) == [[True, True, True], [True, False, True]]

    def test_name_their_entry_and_keep_it(self, path, tmp_path):
        release = COX.release(PATTERN, ledger=Ledger.open(path))
        folder = release.save(tmp_path / "public")
        (entry,) = Ledger.open(path).releases
        cert = certificate.read(folder)
        assert verify(folder).holds
        assert cert["ledger"] == entry.id == release.entry
        assert certificate.statement_hash(cert) == entry.certificate
        again = load_release(folder)
        append_patterns(folder, again, again.sample(2, rng=1))
        other = again.infer(length_scales=(300.0,)).save(tmp_path / "other")
        for each in (folder, other):
            assert verify(each).holds
            assert certificate.read(each)["content_hash"] != cert["content_hash"]
            assert certificate.statement_hash(certificate.read(each), estimator=False) == entry.paid
        assert certificate.statement_hash(certificate.read(folder)) == entry.certificate
        # Inferred again it is another estimate, which the ledger has not seen.
        (said,) = [check for check in compare(Ledger.open(path), certificate.read(other)) if not check.holds]
        assert said.name == "record"
        assert "what was paid for was recorded, with another estimator" in said.detail

    def test_levels_and_patterns_do_too(self, path, tmp_path):
        ledger = Ledger.open(path)
        levels = TENTS.release_by(YEARS, by="year", levels=[2021, 2022], ledger=ledger)
        kernel = KernelSynthesizer(1.0, delta=1e-6, alpha=25.0).release(PATTERN, ledger=ledger)
        for release, entry in zip((levels, kernel), ledger.releases, strict=True):
            folder = release.save(tmp_path / release.mechanism)
            assert load_release(folder).entry == entry.id
            assert certificate.statement_hash(certificate.read(folder)) == entry.certificate

    def test_another_budget_is_another_statement(self, path, tmp_path):
        folder = TENTS.release(PATTERN, ledger=Ledger.open(path)).save(tmp_path / "public")
        cert = certificate.read(folder)
        said = certificate.statement_hash(cert)
        for edited in (
            cert | {"ledger": "0" * 64},
            cert | {"seeded": True},
            cert | {"parameters": cert["parameters"] | {"epsilon": 0.4}},
        ):
            assert certificate.statement_hash(edited) != said

    def test_without_a_ledger_nothing_is_said(self, tmp_path):
        folder = TENTS.release(PATTERN).save(tmp_path / "public")
        assert "ledger" not in certificate.read(folder)


class TestCeiling:
    """The authorisation before n is known is never less than what the plan will spend."""

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("n", [1, 40, 5000])
    @pytest.mark.parametrize(
        "synthesizer",
        [
            LaplaceSynthesizer(0.7, alpha=25.0, postprocess="plain"),
            LaplaceSynthesizer(0.7, basis="tents", relation=AddRemove(3), postprocess="plain"),
            TENTS,
            COX,
            replace(DRAW, sampler="proximal"),
            replace(DRAW, sampler="proximal", sigma=0.1),
            replace(DRAW, epsilon=0.3, delta=1e-8, mechanism="field", sampler="auto"),
            KernelSynthesizer(1.0, delta=1e-6, alpha=25.0),
            KernelSynthesizer(3.0, delta=1e-7, relation=AlphaNeighbours(10.0, max_points_per_person=2)),
            KernelSynthesizer(1.0, delta=1e-6, alpha=25.0, bound="kim-lim-3.6"),
        ],
        ids=str,
    )
    def test_is_above_the_plan(self, synthesizer, n):
        public = {"n": n} if synthesizer.neighbouring().n_is_public else {"expected_n": n}
        most, plan = synthesizer.ceiling(WINDOW), synthesizer.check(WINDOW, **public)
        assert most.relation == plan.relation
        for epsilon in (0, 0.01, 0.1, 0.3, 0.7, 1, 2, 3):
            assert plan.delta(epsilon) <= most.delta(epsilon) * (1 + 1e-8) + 1e-300

    def test_is_replaced_by_what_was_spent(self, path):
        ledger = Ledger.open(path)
        plan = replace(DRAW, sampler="proximal", sigma=0.1).plan(WINDOW, n=173)
        entry = ledger.authorise(DRAW.ceiling(WINDOW), mechanism="lgcp", domain=WINDOW)
        most = ledger.spent
        plan.release(PATTERN, ledger=ledger, entry=entry)
        assert ledger.spent < most / 2
        assert ledger.releases[0].mechanism == "lgcp-posterior-draw"
        with pytest.raises(InputError):
            plan.release(PATTERN, ledger=ledger, entry=entry)


class TestCommandLine:
    PLACE = ("--window", "0,0,1000,1000", "--crs", "EPSG:27700", "--method", "laplace", "--alpha", "25")

    def run(self, *arguments):
        from typer.testing import CliRunner

        from dpppsynth.cli import app

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return CliRunner().invoke(app, [str(a) for a in arguments])

    @pytest.fixture
    def points(self, tmp_path):
        path = tmp_path / "points.csv"
        np.savetxt(path, PATTERN.xy, delimiter=",", header="x,y", comments="")
        return path

    def synthesize(self, points, out, path, *more):
        return self.run("synthesize", points, *self.PLACE, "--out", out, "--ledger", path, *more)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("more", [(), ("--n", "173")])
    def test_spends_and_says_so(self, points, tmp_path, path, more):
        done = self.synthesize(points, tmp_path / "out", path, "--epsilon", "0.5", *more)
        assert done.exit_code == 0, done.output
        assert "0.5 of 2" in done.output
        (entry,) = Ledger.open(path).releases
        assert (entry.state, certificate.read(tmp_path / "out")["ledger"]) == ("measured", entry.id)

    @pytest.mark.parametrize("more", [(), ("--n", "173")])
    def test_over_budget_no_row_is_read_and_nothing_written(self, tmp_path, path, more):
        garbage, before = tmp_path / "garbage.csv", path.read_bytes()
        garbage.write_bytes(b"x,y\n\x00\xff no row")
        done = self.synthesize(garbage, tmp_path / "out", path, "--epsilon", "2.5", *more)
        assert done.exit_code == 4, done.output
        assert "Difference" in done.output
        assert not (tmp_path / "out").exists()
        assert path.read_bytes() == before

    def test_failure_afterwards_is_spent_and_said(self, points, tmp_path, path):
        done = self.synthesize(points, tmp_path / "out", path, "--epsilon", "0.5", "--n", "174")
        assert done.exit_code == 2
        assert "counts as spent" in done.output
        assert "173" not in done.output
        assert states(path) == ["authorised"]

    @pytest.mark.parametrize("name", ["no.csv", "."])
    def test_a_mistyped_name_costs_nothing(self, tmp_path, path, name):
        done = self.synthesize(tmp_path / name, tmp_path / "out", path, "--epsilon", "0.5")
        assert done.exit_code == 2
        assert "nothing is spent" in done.output
        assert states(path) == []

    def test_the_file_is_opened_for_its_header_and_for_rows_after_the_authorisation(
        self, points, tmp_path, path, monkeypatch
    ):
        opened, seen = io.open, []

        def watched(file, *more, **options):
            if str(file) == str(points):
                seen.append(states(path))
            return opened(file, *more, **options)

        monkeypatch.setattr(io, "open", watched)
        monkeypatch.setattr(builtins, "open", watched)
        assert self.synthesize(points, tmp_path / "dear", path, "--epsilon", "2.5").exit_code == 4
        assert seen == [[]]
        done = self.synthesize(points, tmp_path / "out", path, "--epsilon", "0.5")
        assert done.exit_code == 0, done.output
        assert seen[:2] == [[], []]
        assert seen[2:]
        assert all(each == ["authorised"] for each in seen[2:])

    def test_what_failed_is_not_taken_up_later(self, points, tmp_path, path):
        points.write_text("x,y\n1,no\n")
        assert self.synthesize(points, tmp_path / "out", path, "--epsilon", "0.5").exit_code == 2
        ledger = Ledger.open(path)
        with pytest.raises(InputError, match="taken up by a release"):
            replace(TENTS, basis="cells").plan(WINDOW, n=173).release(
                PATTERN, ledger=ledger, entry=ledger.releases[0].id
            )

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        ("more", "name"), [((), "laplace-cells"), (("--by", "year", "--levels", "2021,2022"), "strata")]
    )
    def test_the_ledger_learns_what_ran(self, tmp_path, path, more, name):
        points = tmp_path / "years.csv"
        np.savetxt(
            points, np.column_stack([YEARS.xy, YEARS.marks["year"]]), "%.17g", ",", header="x,y,year", comments=""
        )
        done = self.synthesize(points, tmp_path / "out", path, "--epsilon", "0.5", *more)
        assert done.exit_code == 0, done.output
        assert [entry.mechanism for entry in Ledger.open(path).releases] == [name]

    @pytest.mark.slow
    def test_beyond_any_loss_that_is_counted_is_over_budget(self, points, tmp_path, path):
        for epsilon, code in (("0.2", 0), ("0.3", 0), ("100", 4)):
            done = self.synthesize(points, tmp_path / epsilon, path, "--epsilon", epsilon)
            assert done.exit_code == code, done.output

    def test_json_names_the_entry(self, points, tmp_path, path):
        done = self.synthesize(points, tmp_path / "out", path, "--epsilon", "0.5", "--json")
        assert json.loads(done.stdout)["ledger"] == Ledger.open(path).releases[0].id


class TestLocalMechanisms:
    """A custodian who runs all clients: local privacy is privacy under replace-one as well, and adds up."""

    @pytest.mark.parametrize("relation", [ReplaceOne(), AlphaNeighbours(25.0)])
    def test_two_of_epsilon_one_fit_into_two(self, relation, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.json", epsilon=2.0, delta=0.0, relation=relation)
        release = DiskAreaMechanism(epsilon=1.0, cells=4).release(PATTERN, ledger=ledger)
        PrivAG(WINDOW, epsilon=1.0, oracle="randomized-response").release(PATTERN, ledger=ledger)
        assert 2 * (1 - 1e-8) <= ledger.spent <= 2
        before = len(ledger.releases)
        with pytest.raises(BudgetError, match="Requested: 1 "):
            DiskAreaMechanism(epsilon=1.0, cells=4).release(PATTERN, ledger=ledger)
        assert len(ledger.releases) == before
        # Both releases took a report of each person: that only one is ever drawn would be false.
        assert ONE_REPORT not in ledger.guarantee.assumptions
        assert Statement("each-release", of=ONE_REPORT) in ledger.guarantee.assumptions
        release.save(tmp_path / "public", patterns=1)
        verify(tmp_path / "public").require()
        assert certificate.read(tmp_path / "public")["ledger"] == ledger.releases[0].id

    @pytest.mark.parametrize(
        ("relation", "mechanism", "words"),
        [
            (ReplaceOne(), SEMGeoI(epsilon=0.5, cells=4), "local.DiskAreaMechanism.*one cell of a public grid"),
            (AlphaNeighbours(1.0), SEMGeoI(epsilon=0.5, cells=4), "one cell of a public grid"),
            (ReplaceOne(2), DiskAreaMechanism(epsilon=1.0, cells=4), "up to 2 points of one person"),
            (ReplaceOne(2), SEMGeoI(epsilon=0.5, cells=4), "up to 2 points of one person"),
            (AddRemove(), DiskAreaMechanism(epsilon=1.0, cells=4), "added or removed.*number of reports"),
            (AddRemovePerson(), SEMGeoI(epsilon=0.5, cells=4), "with all their points.*number of reports"),
        ],
    )
    def test_what_promises_less_is_refused_before_the_points(self, relation, mechanism, words, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.json", epsilon=2.0, delta=0.0, relation=relation)
        with pytest.raises(InputError, match=f"^relation: .*{words}"):
            mechanism.release(PATTERN, ledger=ledger)
        assert ledger.spent == 0

    @pytest.mark.parametrize("relation", [Local(), GeoIndistinguishability(4)])
    def test_no_ledger_promises_what_only_reports_can(self, relation, tmp_path):
        with pytest.raises(InputError, match=r"a custodian's account.*ReplaceOne\(\)"):
            Ledger.create(tmp_path / "ledger.json", epsilon=2.0, delta=0.0, relation=relation)


class TestMadeBefore:
    """Releases that were made before the ledger."""

    def test_they_are_spent_and_closed(self, path, tmp_path):
        TENTS.release(PATTERN).save(tmp_path / "public", patterns=1)
        early, ledger = load_release(tmp_path / "public"), Ledger.open(path)
        entry = ledger.enter(early)
        (found,) = Ledger.open(path).releases
        assert (found.id, found.state, found.n, found.taken) == (entry, "entered", 173, True)
        assert ledger.spent == pytest.approx(0.5, abs=1e-4)
        for name in (entry, Authorisation(entry, "0" * 64)):
            for use in (
                lambda name: ledger.settle(name, early.guarantee),
                ledger.give_up,
                lambda name: ledger.record(name, early.certificate_dict(), domain=WINDOW),
            ):
                with pytest.raises(InputError, match="it was entered before"):
                    use(name)
        # It is known again by its certificate, with further patterns as well; another release is not.
        append_patterns(tmp_path / "public", early, early.sample(1))
        assert all(check.holds for check in compare(ledger, certificate.read(tmp_path / "public")))
        assert not all(check.holds for check in compare(ledger, TENTS.release(PATTERN).certificate_dict()))
        with pytest.raises(InputError, match=r"^n: earlier releases"):
            TENTS.release(YEARS.part(YEARS.marks["year"] == 2021), ledger=ledger)
        assert states(path) == ["entered"]

    @pytest.mark.parametrize("relation", [AlphaNeighbours(25.0), AddRemove()])
    def test_they_bind_levels_where_n_is_public(self, tmp_path, relation):
        ledger = Ledger.create(tmp_path / "other.json", epsilon=2.0, delta=1e-5, relation=relation)
        early = LaplaceSynthesizer(0.5, relation=relation, spacing=500.0, postprocess="plain")
        known = {"expected_n": 100} if isinstance(relation, AddRemove) else {}
        ledger.enter(early.release_by(YEARS, by="year", levels=[2021, 2022], **known))
        points = ledger.releases[0].points
        numbers = {"year": {"2021": 100, "2022": 73}}
        assert points is None if known else points.to_dict()["levels"] == numbers
        if known:
            with pytest.raises(InputError, match=r"^subset: the number of points is secret"):
                ledger.enter(early.release(PATTERN, **known), subset={"year": 2021})

    def test_they_are_known_again_by_what_was_paid_for(self, path, tmp_path):
        """Points of levels on slanted streets have the coordinates of the file; inferring again is no new release."""
        streets = LinearNetwork([[0, 0], [431, 877], [903, 139]], [[0, 1], [1, 2]])
        at = streets.pattern(np.arange(173) % 2, np.random.default_rng(4).random(173))
        years = PointPattern(at.xy, streets, YEARS.marks)
        kernel = KernelSynthesizer(1.0, delta=1e-6, alpha=25.0)
        made = kernel.release_by(years, by="year", levels=[2021, 2022])
        made.save(tmp_path / "streets")
        ledger = Ledger.open(path)
        ledger.enter(load_release(tmp_path / "streets"))
        assert all(check.holds for check in compare(ledger, certificate.read(tmp_path / "streets")))
        with pytest.raises(InputError, match=r"^release: it stands in this ledger"):
            ledger.enter(made)
        other = Ledger.create(tmp_path / "other.json", epsilon=2.0, delta=1e-5, alpha=25.0)
        early = COX.release(PATTERN)
        other.enter(early)
        again = early.infer(length_scales=(300.0,))
        with pytest.raises(InputError, match=r"^release: it stands in this ledger"):
            other.enter(again)
        (failed,) = (check for check in compare(other, again.certificate_dict()) if not check.holds)
        assert "with another estimator" in failed.detail

    def test_what_is_refused(self, path):
        ledger, early = Ledger.open(path), TENTS.release(PATTERN)
        ledger.enter(early)
        for release, error, said in (
            (early, InputError, "^release: it stands in this ledger"),
            (TENTS.release(PATTERN, 1), InputError, "^release: a seeded one"),
            (replace(TENTS, epsilon=1.6).release(PATTERN), BudgetError, "does not suffice"),
            ("public", InputError, r"^release: needs a release, got 'public'; load_release"),
        ):
            with pytest.raises(error, match=said):
                ledger.enter(release)
        own = TENTS.release(PATTERN, ledger=ledger)
        with pytest.raises(InputError, match=r"^release: it stands in this ledger"):
            ledger.enter(own)
        assert states(path) == ["entered", "measured"]

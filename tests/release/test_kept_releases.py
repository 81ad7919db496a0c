"""Purchases on the disk before they are recorded and before anything is inferred from them."""

import contextlib
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.cases import examples, save
from support.ledgers import events_of
from support.seams import chance_for_nuts

import dpppsynth as dps
from dpppsynth.contract import registry
from dpppsynth.core import output_folder
from dpppsynth.core.errors import DpppsynthError, InputError, QualityError
from dpppsynth.ledger import Ledger
from dpppsynth.ledger.comparison import standing
from dpppsynth.privacy import verify
from dpppsynth.release import load_release
from dpppsynth.release.folder_writing import is_kept
from dpppsynth.spatial.patterns import PointPattern

WINDOW = dps.Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
PATTERN = PointPattern(np.random.default_rng(1).uniform(0, 1000, (200, 2)), WINDOW)
CELLS = dps.LaplaceSynthesizer(1.0, alpha=25.0, spacing=250.0, postprocess="plain")
FIELD = dps.LaplaceSynthesizer(1.0, alpha=25.0, spacing=250.0)
CASES = list({case.mechanism: case for name in registry.names() for case in examples(name)}.values())


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger.json", epsilon=9.0, delta=1e-5, alpha=25.0)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_mechanism_keeps_what_is_completed_later(case, tmp_path):
    with chance_for_nuts():
        release = case.release(case.patterns()[0], 5, keep=tmp_path / "out")
    assert release.kept == tmp_path / "out"
    # Files that are paid for are no larger than the room that was held for them.
    assert sum(path.stat().st_size for path in release.kept.iterdir()) <= case.known_plan.file_sizes[0]
    paid = {name: (release.kept / name).read_bytes() for name in release.paid_files()}
    opened = load_release(release.kept)
    assert (opened.mechanism, opened.parameters()) == (release.mechanism, release.parameters())
    if not any(name.startswith("synthetic") for name in paid) and hasattr(release, "infer"):
        assert is_kept(release, release.kept)
        save(release, release.kept, 8)
        assert not is_kept(release, release.kept)
    assert {name: (release.kept / name).read_bytes() for name in paid} == paid
    checks = {check.name: check.holds for check in verify(release.kept).checks}
    assert {name for name, holds in checks.items() if not holds} == {"randomness"}


class Stop(Exception):
    """A stand-in for whatever stops a run."""


def stopped(monkeypatch, owner, name):
    def stop(*_, **__):
        raise Stop

    monkeypatch.setattr(owner, name, stop)


def test_it_is_kept_before_it_is_recorded(ledger, tmp_path, monkeypatch):
    stopped(monkeypatch, Ledger, "record")
    with pytest.raises(Stop):
        CELLS.release(PATTERN, ledger=ledger, keep=tmp_path / "out")
    assert load_release(tmp_path / "out").entry == ledger.releases[0].id
    assert standing(ledger.releases[0]) == "authorised"


def test_it_is_recorded_before_anything_is_inferred(ledger, tmp_path, monkeypatch):
    from dpppsynth.release.cox import CoxRelease

    stopped(monkeypatch, CoxRelease, "infer")
    with pytest.raises(Stop):
        FIELD.release(PATTERN, ledger=ledger, keep=tmp_path / "out")
    monkeypatch.undo()
    (entry,) = ledger.releases
    assert (standing(entry), entry.kept) == ("measured", str((tmp_path / "out").resolve()))
    kept = load_release(entry.kept)
    kept.infer(1).save(entry.kept)
    assert standing(entry) == "released"
    assert verify(entry.kept).holds
    shutil.rmtree(entry.kept)
    assert standing(entry) == "missing"


def test_files_and_names_are_on_the_disk(ledger, tmp_path, monkeypatch):
    """Every file of the folder, the folder and the folder above reach the disk before the ledger hears of it."""
    synced, recorded = [], []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(os.fstat(descriptor).st_ino), fsync(descriptor)))
    monkeypatch.setattr(Ledger, "record", lambda *_, **__: recorded.extend(synced))
    CELLS.release(PATTERN, ledger=ledger, keep=tmp_path / "out")
    wanted = {path.stat().st_ino for path in (*(tmp_path / "out").iterdir(), tmp_path / "out", tmp_path)}
    assert wanted <= set(recorded)


def test_without_a_folder_the_exception_has_the_release(ledger, monkeypatch):
    from dpppsynth.inference.field_inference import FieldInference

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    for kind in [FieldInference, *FieldInference.__subclasses__()]:
        if "fit" in vars(kind):
            monkeypatch.setattr(kind, "fit", full)
    with pytest.raises(QualityError) as caught:
        FIELD.release(PATTERN, ledger=ledger)
    assert caught.value.release.entry == ledger.releases[0].id


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, TypeError])
@pytest.mark.parametrize("step", ["keep", "record", "finish"])
def test_whatever_ends_a_run_has_the_release(step, error, ledger, tmp_path, monkeypatch):
    from dpppsynth.release.cox import CoxRelease

    def end(*_, **__):
        raise error

    monkeypatch.setattr(Ledger if step == "record" else CoxRelease, step, end)
    with pytest.raises(error) as caught:
        FIELD.release(PATTERN, ledger=ledger, keep=tmp_path / "out" if step == "keep" else None)
    monkeypatch.undo()
    release = getattr(caught.value, "release", None)
    assert release is not None
    assert release.entry == ledger.releases[0].id
    release.infer(1).save(tmp_path / "saved")
    assert verify(tmp_path / "saved").holds


@pytest.mark.parametrize("moved", range(4))
def test_a_run_that_is_killed_while_it_completes_a_folder_goes_on(moved, tmp_path, monkeypatch):
    """After any number of its renames: a file that no certificate lists yet is read by nobody."""
    kept = dps.LGCPSynthesizer(1.0, alpha=25.0, length_scale=300.0, inference="laplace")
    release = kept.plan(WINDOW, n=len(PATTERN)).release(PATTERN, keep=tmp_path / "out")
    paid, done, real = {path.name for path in release.kept.iterdir()}, [], Path.replace

    def replaced(path, target):
        if Path(target).parent == release.kept:
            if len(done) == moved:
                raise Stop
            done.append(path.name)
        return real(path, target)

    monkeypatch.setattr(Path, "replace", replaced)
    with contextlib.suppress(Stop):
        release.save(release.kept)
    monkeypatch.undo()
    assert {path.name for path in release.kept.iterdir()} >= paid
    assert verify(release.kept).holds
    again = load_release(release.kept)
    if is_kept(again, release.kept):
        again.infer(1).save(release.kept)
    assert verify(release.kept).holds
    assert load_release(release.kept).draws is not None


@pytest.mark.parametrize("wrong", [{"progress": 3}, {"keep": 3}, {"keep": "taken"}])
@pytest.mark.parametrize("how", ["persons", "levels"])
def test_public_arguments_that_are_wrong_cost_nothing_where_labels_are_counted(how, wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine").write_text("mine")
    capped = dps.AlphaNeighbours(25.0, max_points_per_person=2, user="person")
    relation = capped if how == "persons" else dps.AlphaNeighbours(25.0)
    ledger = Ledger.create(tmp_path / "ledger.json", epsilon=9.0, delta=1e-5, relation=relation)
    mark = {"person": np.arange(200) // 2} if how == "persons" else {"year": np.repeat([1, 2], 100)}
    pattern = PointPattern(PATTERN.xy, WINDOW, mark)
    synthesizer = dps.LaplaceSynthesizer(1.0, relation=relation, spacing=250.0, postprocess="plain")
    way, levels = (
        (synthesizer.release, {}) if how == "persons" else (synthesizer.release_by, {"by": "year", "levels": [1, 2]})
    )
    with pytest.raises(InputError):
        way(pattern, ledger=ledger, **levels, **wrong)
    assert ledger.releases == ()


@pytest.mark.parametrize("taken", [False, True])
def test_the_loser_of_a_race_keeps_its_purchase(ledger, tmp_path, monkeypatch, taken):
    out = tmp_path / "out"
    if taken:
        real = dps.LaplaceSynthesizer.plan

        def plan(self, *args, **options):
            found = real(self, *args, **options)
            measure = type(found.statistic).measure

            def measured(statistic, *given, **more):
                out.mkdir(exist_ok=True)
                (out / "theirs").write_text("theirs")
                return measure(statistic, *given, **more)

            monkeypatch.setattr(type(found.statistic), "measure", measured)
            return found

        monkeypatch.setattr(dps.LaplaceSynthesizer, "plan", plan)
    # Not the synthesizer of other tests, which keeps its plan.
    release = replace(CELLS).release(PATTERN, ledger=ledger, keep=out)
    assert release.kept == (tmp_path / "out-2" if taken else out)
    assert load_release(release.kept).entry == release.entry
    assert ledger.releases[0].kept == str(release.kept.resolve())


@pytest.mark.parametrize("where", ["in use", "too small", "no place"])
def test_a_folder_that_cannot_hold_it_costs_nothing(ledger, tmp_path, monkeypatch, where):
    out = tmp_path / "out"
    if where == "in use":
        out.mkdir()
        (out / "mine").write_text("mine")
    elif where == "too small":
        usage = shutil.disk_usage(tmp_path)._replace(free=1000)
        monkeypatch.setattr(output_folder.shutil, "disk_usage", lambda _: usage)
    else:
        (tmp_path / "file").write_text("")
        out = tmp_path / "file" / "out"
    with pytest.raises(InputError, match=r"^path"):
        CELLS.release(PATTERN, ledger=ledger, keep=out)
    assert ledger.releases == ()


def test_a_folder_of_another_release_is_not_completed(tmp_path):
    first = CELLS.release(PATTERN, keep=tmp_path / "out")
    other = CELLS.release(PATTERN)
    with pytest.raises(InputError, match="not an empty folder"):
        other.save(tmp_path / "out")
    first.save(tmp_path / "out")
    with pytest.raises(InputError, match="not an empty folder"):
        first.save(tmp_path / "out")


def test_what_the_disk_does_not_take_is_not_recorded(ledger, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpppsynth.release.folder_writing.make_durable", full)
    with pytest.raises((OSError, DpppsynthError)):
        CELLS.release(PATTERN, ledger=ledger, keep=tmp_path / "out")
    assert standing(ledger.releases[0]) == "authorised"
    assert events_of(ledger.path.read_bytes())[-1]["kind"] == "authorised"
    assert not (tmp_path / "out").exists()

"""Simulation studies: seeds, refusals, storage, kills, workers."""

import functools
import hashlib
import io
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.studies import (
    SQUARE,
    Jitter,
    Refuser,
    centre,
    delta_n,
    die_once,
    first,
    jitter,
    kernel,
    killed_study,
    laplace,
    noise,
    patterns,
    refuse_at_ten,
    study_of,
    uniform,
)

from dpppsynth.core.errors import InformationWarning, InputError, PrivacyCheckError, QualityError, ReleaseBlocked
from dpppsynth.evaluation.experiments import Cell, CellError, Scenario, summary
from dpppsynth.evaluation.experiments.cells import stream
from dpppsynth.evaluation.experiments.study import opened
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

# From where other processes import what they run.
TESTS = Path(__file__).parents[1]


# --- the grid and its seeds ------------------------------------------------------------------------------------------


def test_streams_are_those_of_the_hash_of_their_key():
    digest = hashlib.sha256(b'[3, "release", "a", 0.1]').hexdigest()
    assert stream(3, "release", "a", 0.1).random() == np.random.default_rng(int(digest, 16)).random()


def test_cells_are_in_the_order_of_the_grid():
    cells = study_of().cells()
    assert cells[0] == Cell("one", "jitter", 1.0, 0.0, 0)
    assert cells[1].repeat == 1
    assert cells[2].delta == "1/n"
    assert [cells[8].synthesizer, cells[16].scenario, len(set(cells))] == ["again", "two", 32]


@pytest.mark.slow
def test_a_cell_does_not_depend_on_the_grid_around_it(tmp_path):
    table = study_of().run(tmp_path / "one", workers=1)
    base = study_of()
    turned = replace(
        base,
        scenarios={"new": base.scenarios["one"]} | dict(reversed(base.scenarios.items())),
        synthesizers={"new": jitter} | dict(reversed(base.synthesizers.items())),
        epsilon=[3, 10, 1],
        delta=["1/n", 0.01, 0],
        repeats=3,
    )
    other = turned.run(tmp_path / "two", workers=1)
    keys = ["scenario", "synthesizer", "epsilon", "delta", "repeat"]
    both = table.merge(other, on=keys, suffixes=("", "_other"))
    assert len(both) == len(table)
    assert both["first"].equals(both["first_other"])
    assert both["centre"].equals(both["centre_other"])


def test_comparisons_are_paired_and_everything_else_is_fresh(tmp_path):
    measures = {"first": first, "noise": noise}
    table = study_of(measures=measures).run(tmp_path, workers=1)
    originals = table.groupby(["scenario", "repeat"])["first"]
    assert (originals.nunique() == 1).all()
    assert table["first"].nunique() == originals.ngroups == 4
    assert table["noise"].nunique() == len(table)
    other = study_of(measures=measures, seed=1).run(tmp_path / "other", workers=1)
    for name in measures:
        assert not set(table[name]) & set(other[name])


def test_budgets_and_patterns_reach_the_measures(tmp_path):
    study = study_of(measures={"delta_n": delta_n, "patterns": patterns}, patterns=3)
    table = study.run(tmp_path, workers=1)
    assert (table["delta_n"] == np.where(table["delta"] == "1/n", 1.0, 0.0)).all()
    assert (table["patterns"] == 3).all()
    cell = study.cells()[-1]
    assert study.outcome(cell).synthetic[2].xy.tobytes() == study.outcome(cell).synthetic[2].xy.tobytes()


def test_patterns_that_are_the_mechanism_are_paid_for_together():
    study = study_of(synthesizers={"kernel": kernel, "laplace": laplace}, epsilon=[10], delta=[1e-6], patterns=2)
    bought, drawn = (study.outcome(Cell("one", name, 10.0, 1e-6, 0)) for name in ("kernel", "laplace"))
    assert bought.release.statistic.definition.patterns == 2
    assert patterns(bought) == patterns(drawn) == 2
    none = replace(study, patterns=0).outcome(Cell("one", "kernel", 10.0, 1e-6, 0))
    assert none.synthetic == ()


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"scenarios": {}}, "scenarios"),
        ({"scenarios": {"a": uniform}}, "scenarios"),
        ({"synthesizers": [jitter]}, "synthesizers"),
        ({"synthesizers": {"a": Jitter(1.0)}}, "synthesizers: 'a' must be a function, got Jitter"),
        ({"measures": {"a": 3}}, "measures: 'a' must be a function, got int"),
        ({"measures": {}}, "measures: .* got an empty one"),
        ({"measures": {"message": first}}, "measures"),
        ({"measures": {"repeat": first}}, "measures"),
        ({"measures": {"tv_se": first}}, "measures"),
        ({"epsilon": 1}, "epsilon"),
        ({"epsilon": [1, 1.0]}, "epsilon"),
        ({"epsilon": [0]}, "epsilon"),
        ({"epsilon": [math.nan]}, "epsilon"),
        ({"delta": "1/n"}, "delta"),
        ({"delta": ["1/m"]}, "delta"),
        ({"delta": [1]}, "delta"),
        ({"delta": []}, "delta"),
        ({"repeats": 0}, "repeats"),
        ({"patterns": True}, "patterns"),
        ({"seed": 0.5}, "seed"),
        ({"version": 2}, "version: must be text that is not empty, got 2; give '2'"),
        ({"version": ""}, "version"),
    ],
)
def test_bad_studies_are_refused(changes, word):
    with pytest.raises(InputError, match=rf"^{word}"):
        study_of(**changes)


def test_places_and_engines_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "file" / "below", 3):
        with pytest.raises(InputError, match=r"^folder:"):
            study_of().run(place, workers=1)
        with pytest.raises(InputError, match=r"^folder:"):
            study_of().table(place)
    with pytest.raises(InputError, match=r"^engine:"):
        study_of().run(tmp_path / "none", engine="threads")


# --- refusals and errors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [InputError, PrivacyCheckError, ReleaseBlocked, QualityError])
def test_a_refusal_is_a_result(error, tmp_path):
    def refuse(scenario, epsilon, delta, n):
        return Refuser(error("no")) if epsilon == 10 else Jitter(epsilon)

    table = study_of(synthesizers={"refuse": refuse}).run(tmp_path, workers=1)
    refused = table["epsilon"] == 10
    assert (table.loc[refused, "refused"] == error.__name__).all()
    assert table.loc[refused, ["first", "centre"]].isna().all(axis=None)
    assert table.loc[~refused, "refused"].isna().all()
    assert table.loc[~refused, ["first", "centre"]].notna().all(axis=None)


def test_a_measure_that_refuses_spoils_no_other(tmp_path):
    table = study_of(measures={"first": first, "at_ten": refuse_at_ten}).run(tmp_path, workers=1)
    refused = table["epsilon"] == 10
    assert (table.loc[refused, "refused"] == "at_ten: InputError").all()
    assert table.loc[refused, "at_ten"].isna().all()
    assert table["first"].notna().all()
    assert table.loc[~refused, "refused"].isna().all()


BROKEN = threading.Event()


def breaks(outcome):
    if BROKEN.is_set() and outcome.epsilon == 10:
        raise ZeroDivisionError
    return 1.0


def test_another_error_names_the_cell_and_keeps_what_is_finished(tmp_path):
    BROKEN.set()
    study = study_of(measures={"breaks": breaks}, synthesizers={"jitter": jitter})
    with pytest.raises(CellError, match=r"one, jitter, epsilon 10, delta 0.0, repeat 0\): ZeroDivisionError") as caught:
        study.run(tmp_path, workers=1)
    assert "breaks" in caught.value.__notes__[0]
    assert study.table(tmp_path)[["epsilon", "repeat"]].to_numpy().tolist() == [[1, 0], [1, 0]]
    BROKEN.clear()
    assert len(study.run(tmp_path, workers=1)) == 16


@pytest.mark.parametrize("drawn", [None, np.zeros((3, 2)), PointPattern([[0.5, 0.5]], Window.rectangle(0, 0, 1, 2))])
def test_a_broken_scenario_is_no_refusal(drawn, tmp_path):
    def refuse(scenario, epsilon, delta, n):
        raise InputError

    DRAWN[:] = [drawn]
    study = study_of(scenarios={"broken": Scenario(SQUARE, draw_that, 0.1)}, synthesizers={"refuse": refuse})
    with pytest.raises(CellError, match=r"cell \(broken, refuse.*draw must return a "):
        study.run(tmp_path, workers=1)
    assert len(study.table(tmp_path)) == 0


DRAWN = []


def draw_that(rng):
    return DRAWN[0]


def test_what_a_refusal_says_is_kept_beside_the_table(tmp_path):
    def refuse(scenario, epsilon, delta, n):
        return Refuser(InputError("alhpa: unknown")) if epsilon == 10 else Jitter(epsilon)

    def picky(outcome):
        msg = "too few"
        raise QualityError(msg)

    study = study_of(synthesizers={"refuse": refuse}, measures={"first": first, "picky": picky}, delta=[0], repeats=1)
    assert "message" not in study.run(tmp_path, workers=1)
    said = study.refusals(tmp_path)
    assert list(said.columns)[-2:] == ["refused", "message"]
    assert said["message"].tolist() == ["picky: too few", "alhpa: unknown"] * 2
    assert said["refused"].tolist() == ["picky: QualityError", "InputError"] * 2


def test_a_measure_that_exits_is_an_error_of_its_cell(tmp_path):
    study = study_of(measures={"leave": leave}, epsilon=[1], delta=[0], repeats=1)
    with pytest.raises(CellError, match=r"cell \(one, jitter, .*SystemExit: 3"):
        study.run(tmp_path, workers=1)


def leave(outcome):
    sys.exit(3)


def test_too_few_patterns_are_a_mistake_and_no_refusal(tmp_path):
    class Stingy:
        def release(self, pattern, rng):
            return type("Release", (), {"patterns": []})()

    study = study_of(synthesizers={"stingy": lambda *settings: Stingy()})
    with pytest.raises(CellError, match="0 of the 1 patterns"):
        study.run(tmp_path, workers=1)


def test_cells_run_on_one_thread_and_without_warnings_of_useless_budgets(tmp_path):
    import threadpoolctl

    threads = []

    def measure(outcome):
        warnings.warn("as good as nothing", InformationWarning, stacklevel=1)
        threads.extend(pool["num_threads"] for pool in threadpoolctl.threadpool_info())
        return 0.0

    with threadpoolctl.threadpool_limits(2):
        study_of(measures={"measure": measure}).run(tmp_path, workers=1)
    assert set(threads) == {1}


# --- the folder ------------------------------------------------------------------------------------------------------


CALLS = []


def counted(outcome):
    CALLS.append(1)
    return outcome.epsilon


def test_studies_grow_and_finished_cells_are_not_run_again(tmp_path):
    calls = CALLS
    small = study_of(measures={"counted": counted}, epsilon=[1], scenarios={"one": Scenario(SQUARE, uniform, 0.1)})
    small.run(tmp_path, workers=1)
    large = study_of(measures={"counted": counted}, repeats=3)
    assert len(calls) == 8
    assert len(large.table(tmp_path)) == 8
    table = large.run(tmp_path, workers=1)
    assert len(calls) == len(table) == 48
    assert (table["counted"] == table["epsilon"]).all()
    assert small.run(tmp_path, workers=1).equals(small.table(tmp_path))
    assert len(small.table(tmp_path)) == 8
    assert len(calls) == 48


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": 1}, "seed was 0, is 1"),
        ({"patterns": 2}, "patterns was 1, is 2"),
        ({"measures": {"first": first}}, r"measures was \['centre', 'first'\], is \['first'\]"),
        ({"measures": {"first": first, "middle": centre}}, r"measures was .*, is \['first', 'middle'\]"),
    ],
)
def test_a_folder_of_another_study_is_refused(changes, words, tmp_path):
    base = study_of(epsilon=[1], delta=[0], repeats=1)
    base.run(tmp_path, workers=1)
    other = replace(base, **changes)
    before = sorted((path.name, path.read_bytes()) for path in tmp_path.iterdir())
    for look in (lambda: other.run(tmp_path, workers=1), lambda: other.table(tmp_path)):
        with pytest.raises(InputError, match=f"holds another study: .*{words}"):
            look()
    assert before == sorted((path.name, path.read_bytes()) for path in tmp_path.iterdir())


def other_measure(outcome):
    return 7.0


@pytest.mark.parametrize("changes", [{}, {"measures": {"first": other_measure, "centre": centre}}])
def test_a_folder_keeps_one_version_of_a_study(changes, tmp_path):
    """Only who changed a function can say so; then no cell of the two versions stands in one table."""
    base = study_of(epsilon=[1], delta=[0], repeats=1)
    table = base.run(tmp_path, workers=1)
    newer = replace(base, version="2", **changes)
    before = sorted((path.name, path.read_bytes()) for path in tmp_path.iterdir())
    for look in (lambda: newer.run(tmp_path, workers=1), lambda: newer.table(tmp_path)):
        with pytest.raises(InputError, match=r"^version:"):
            look()
    assert before == sorted((path.name, path.read_bytes()) for path in tmp_path.iterdir())
    assert base.run(tmp_path, workers=1).equals(table)
    assert replace(newer, repeats=2).run(tmp_path / "new", workers=1)["centre"].iloc[0] == table["centre"].iloc[0]


def test_measures_may_change_places(tmp_path):
    study = study_of(epsilon=[1])
    table = study.run(tmp_path, workers=1)
    turned = replace(study, measures={"centre": centre, "first": first}, repeats=3).run(tmp_path, workers=1)
    assert list(turned.columns)[-2:] == ["centre", "first"]
    assert turned[turned["repeat"] < 2].reset_index(drop=True)[table.columns].equals(table)


def test_another_version_of_the_package_may_read_and_not_write(tmp_path):
    study = study_of(epsilon=[1])
    study.run(tmp_path, workers=1)
    kept = json.loads((tmp_path / "study.json").read_text())
    (tmp_path / "study.json").write_text(json.dumps(kept | {"dpppsynth": "0.0.1"}))
    assert len(study.table(tmp_path)) == 16
    with pytest.raises(InputError, match=r"dpppsynth was 0\.0\.1"):
        study.run(tmp_path, workers=1)


def test_a_folder_without_a_study_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no study"):
        study_of().table(tmp_path / "none")
    (tmp_path / "cells.jsonl").write_bytes(b"somebody else's")
    with pytest.raises(InputError, match="take a new folder"):
        study_of().run(tmp_path, workers=1)


def test_one_writer_at_a_time(tmp_path):
    study = study_of(epsilon=[1])
    with opened(tmp_path, study), pytest.raises(InputError, match="another process is writing"):
        study.run(tmp_path, workers=1)
    assert len(study.run(tmp_path, workers=1)) == 16


def test_a_line_that_was_not_finished_is_cut_off(tmp_path):
    study = study_of(epsilon=[1])
    table = replace(study, repeats=1).run(tmp_path, workers=1)
    with (tmp_path / "cells.jsonl").open("ab") as file:
        file.write(b'{"scenario": "one", "synth')
    assert replace(study, repeats=1).table(tmp_path).equals(table)
    assert len(study.run(tmp_path, workers=1)) == 16
    assert all(map(json.loads, (tmp_path / "cells.jsonl").read_text().splitlines()))


def test_seconds_are_kept_apart(tmp_path):
    study = study_of(epsilon=[1])
    table = study.run(tmp_path, workers=1)
    assert "seconds" not in table
    timed = study.seconds(tmp_path)
    assert (timed["seconds"] > 0).all()
    assert timed.drop(columns="seconds").equals(table)


ZYGOTE = """
import os, signal, sys, time
from pathlib import Path
import numpy, pandas
sys.path.insert(0, sys.argv[1])
from support.studies import killed_study
folder, draws = Path(sys.argv[2]), numpy.random.default_rng(20)
size = lambda path: path.stat().st_size if path.exists() else 0
study = killed_study()
study.outcome(study.cells()[0])     # compiled and imported once, for all children
for attempt in range(5):
    before = size(folder / "cells.jsonl")
    child = os.fork()
    if child == 0:
        study.run(folder, workers=1)
        os._exit(0)
    while size(folder / "cells.jsonl") == before:
        assert os.waitpid(child, os.WNOHANG) == (0, 0), attempt
        time.sleep(0.004)
    time.sleep(draws.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), attempt
assert len(study.table(folder)) < len(study.cells())
study.run(folder, workers=1)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked children")
def test_kills_change_nothing(tmp_path):
    environment = os.environ | {"NAP": "0.02", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", ZYGOTE, str(TESTS), str(tmp_path / "killed")]
    subprocess.run(command, env=environment, check=True, timeout=200)
    study = killed_study()
    through = study.table(tmp_path / "killed")
    assert through.equals(study.run(tmp_path / "whole", workers=1))
    assert len(through) == 39
    assert not list((tmp_path / "killed").glob("*.tmp"))
    assert study.seconds(tmp_path / "killed")["seconds"].min() > 0.02


# --- workers ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_processes_give_the_same_table_although_one_is_killed(tmp_path):
    study = study_of(
        scenarios={"one": Scenario(SQUARE, uniform, 0.1)},
        synthesizers={"jitter": jitter},
        delta=[0],
        measures={"centre": centre, "die": functools.partial(die_once, flag=tmp_path / "flag")},
    )
    table = study.run(tmp_path / "two", workers=2)
    assert (tmp_path / "flag").exists()
    assert table.equals(study.run(tmp_path / "one", workers=1))
    assert len(table) == 4


# What a shell starts in the background ignores SIGINT; a user's session does not.
ABANDON = """
import functools, signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, sys.argv[1])
from support import studies as t
folder = Path(sys.argv[2])
if __name__ == "__main__":
    part = dict(epsilon=[1], delta=[0], repeats=1, scenarios={"one": t.Scenario(t.SQUARE, t.uniform, 0.1)})
    long = functools.partial(t.sleep_long, folder=folder)
    study = t.study_of(synthesizers={"jitter": t.jitter}, measures={"long": long}, **part)
    study.run(folder / "study", workers=2)
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_the_process_that_started_them(tmp_path, how):
    (tmp_path / "script.py").write_text(ABANDON)
    command = [sys.executable, str(tmp_path / "script.py"), str(TESTS), str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as parent:
        wait_for(lambda: list(tmp_path.glob("*.pid")), 60)
        parent.send_signal(how)
        # The cell sleeps for a minute.
        assert parent.wait(30) == -how
    pids = [path.stem for path in tmp_path.glob("*.pid")]
    wait_for(lambda: not any(alive(pid) for pid in pids), 30)


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def die_always(outcome):
    if outcome.epsilon == 10:
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0


@pytest.mark.slow
def test_a_cell_that_keeps_killing_its_worker_is_named_and_the_others_are_kept(tmp_path):
    one = {"one": Scenario(SQUARE, uniform, 0.1)}
    study = study_of(scenarios=one, synthesizers={"jitter": jitter}, delta=[0], repeats=1, measures={"die": die_always})
    with pytest.raises(CellError, match=r"one, jitter, epsilon 10, delta 0.0, repeat 0\).* died 3 times"):
        study.run(tmp_path, workers=2)
    assert study.table(tmp_path)["epsilon"].tolist() == [1]


@pytest.mark.slow
def test_an_error_in_a_worker_names_the_cell_and_keeps_what_is_finished(tmp_path):
    study = study_of(measures={"breaks": breaks_late}, synthesizers={"jitter": jitter}, epsilon=[1, 10], delta=[0])
    with pytest.raises(CellError, match=r"jitter, epsilon 10.*ZeroDivisionError") as caught:
        study.run(tmp_path, workers=2)
    assert "breaks_late" in caught.value.__notes__[0]
    assert 1 in study.table(tmp_path)["epsilon"].tolist()


def breaks_late(outcome):
    if outcome.epsilon == 10:
        time.sleep(0.5)
        return 1 / 0
    return 1.0


def test_functions_of_sessions_travel_to_workers_and_others_are_refused(tmp_path):
    number = 3.0
    table = study_of(measures={"number": lambda outcome: number}, repeats=1).run(tmp_path / "two", workers=2)
    assert (table["number"] == 3).all()
    lock = threading.Lock()
    with pytest.raises(InputError, match=r"cannot be sent.*workers=1"):
        study_of(measures={"lock": lambda outcome: lock.locked()}).run(tmp_path / "none", workers=2)


# --- progress, summary -----------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal_alone(tmp_path, monkeypatch, capsys):
    study_of().run(tmp_path / "none", workers=1)
    assert capsys.readouterr() == ("", "")
    for shown in (True, False):
        screen = Terminal()
        monkeypatch.setattr(sys, "stderr", screen)
        study_of().run(tmp_path / str(shown), workers=1, progress=shown)
        assert ("32 of 32 cells, two, again" in screen.getvalue()) == shown


def test_summary_counts_originals_and_leaves_refusals_out():
    import pandas as pd

    keys = ["scenario", "synthesizer", "epsilon", "delta", "repeat", "refused", "tv"]
    rows = [
        ("s", "a", 1.0, "1/n", 0, None, 1.0),
        ("s", "a", 1.0, "1/n", 1, None, 5.0),
        ("s", "a", 2.0, 0.0, 0, None, 3.0),
        ("s", "a", 2.0, 0.0, 1, "InputError", math.nan),
        ("s", "b", 1.0, "1/n", 0, "QualityError", math.nan),
    ]
    table = pd.DataFrame(rows, columns=keys)
    full = summary(table)
    assert full[["cells", "refused"]].to_numpy().tolist() == [[2, 0], [2, 1], [1, 1]]
    np.testing.assert_array_equal(full["tv"], [3, 3, math.nan])
    np.testing.assert_allclose(full["tv_se"], [2, math.nan, math.nan])
    # Originals 0 and 1 have the means 2 and 5.
    mean = summary(table, by=["synthesizer"])
    np.testing.assert_allclose(mean[["tv", "tv_se"]].to_numpy(), [[3.5, 1.5], [math.nan, math.nan]])
    for wrong in (table.drop(columns=["repeat", "refused"]), None, [1]):
        with pytest.raises(InputError, match=r"^table:"):
            summary(wrong)
    for by in (["repeat"], [], ["tv"]):
        with pytest.raises(InputError, match=r"^by:"):
            summary(table, by=by)

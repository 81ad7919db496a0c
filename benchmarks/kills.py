"""Fate of releases that were paid for where their runs are stopped, by signals, full disks and little memory.

Every run is `dpppsynth synthesize --ledger` in a process of its own, stopped at a random moment: one of five at any,
the others after the ledger has authorised. Afterwards the ledger is read. An entry that it calls measured or released
must have a folder that `load_release` opens and that, where only what was paid for is in it, `dpppsynth resume`
completes. Exits with 1 where one has not.

    python benchmarks/kills.py --out docs/results/kills.md
    python benchmarks/kills.py --kills 40 --disks 0 --memories 0
"""

import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pages import command_line, fill, table

import dpppsynth as dps
from dpppsynth.cli import main
from dpppsynth.core.errors import DpppsynthError
from dpppsynth.ledger import Ledger
from dpppsynth.ledger.comparison import standing
from dpppsynth.privacy import verify

PLACE = ["--window", "0,0,1000,1000", "--crs", "EPSG:27700"]
MOVES = ["--alpha", "25"]
# Mechanism and its options; relation of the ledger beside them.
WAYS = {
    "lgcp-tents": ["--mechanism", "lgcp-tents", *MOVES],
    "lgcp-tents, NUTS": ["--mechanism", "lgcp-tents", "--inference", "nuts", *MOVES],
    "lgcp-tents by levels": ["--mechanism", "lgcp-tents", "--by", "year", "--levels", "1,2", *MOVES],
    "lgcp-field": ["--mechanism", "lgcp-field", "--delta", "1e-6", *MOVES],
    "lgcp-posterior-draw": ["--mechanism", "lgcp-posterior-draw", "--delta", "1e-6", *MOVES],
    "lgcp-clusters": ["--mechanism", "lgcp-clusters", *MOVES],
    "laplace-cells": ["--mechanism", "laplace-cells", *MOVES],
    "kernel": ["--mechanism", "kernel", "--delta", "1e-6", *MOVES],
    "marked-tents": ["--mechanism", "marked-tents", "--types", "kind=a,b", "--no-protect-types", *MOVES],
    "marked-moved": ["--mechanism", "marked-moved", "--types", "kind=a,b", "--no-protect-types", *MOVES],
    "pair-sums": ["--mechanism", "pair-sums", "--radii", "50", "--pair-cap", "4", *MOVES],
    "bounded-cells": ["--mechanism", "bounded-cells", "--delta", "1e-6", *MOVES],
    "lgcp-moved": ["--mechanism", "lgcp-moved", *MOVES],
    "planar-laplace": ["--mechanism", "planar-laplace", *MOVES],
    "heatmap": ["--mechanism", "heatmap", "--user", "person"],
    "disk-area": ["--mechanism", "disk-area"],
    "adaptive-grid": ["--mechanism", "adaptive-grid"],
    "range-hierarchy": ["--mechanism", "range-hierarchy"],
    "trajectories": ["--mechanism", "trajectories", "--user", "person", "--cells", "4", "--max-length", "3"],
}
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
POINTS = 300
FILLER = "filler"
# Seconds after which a run that does not end is killed.
PATIENCE = 120
RESUMED = "measured, and completed by resume"
OUTCOMES = ("nothing spent", "authorised", RESUMED, "released", "wrong")


class Stop(NamedTuple):
    """Act on a process, and the number of seconds after its start, or after its authorisation."""

    act: Callable[[int], object]
    seconds: float
    spent: bool


def points_file(folder: Path, way: str) -> Path:
    """A file of made-up points with the columns that a mechanism asks for, and no others."""
    rng = np.random.default_rng(1)
    xy = rng.uniform(0, 1000, (POINTS, 2)).round(2)
    options = WAYS[way]
    columns = {"x": xy[:, 0], "y": xy[:, 1]}
    if "--by" in options:
        columns["year"] = 1 + np.arange(POINTS) % 2
    if "--types" in options:
        columns["kind"] = np.where(np.arange(POINTS) % 2, "a", "b")
    if "--user" in options:
        columns["person"] = np.arange(POINTS) // 3
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path = folder / "points.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def ledger_for(folder: Path, way: str) -> Path:
    """A ledger that admits the release."""
    if way == "heatmap":
        relation = dps.privacy.AddRemovePerson("person")
    else:
        relation = dps.AlphaNeighbours(25.0, types="public") if way.startswith("marked") else dps.AlphaNeighbours(25.0)
    path = folder / "ledger.json"
    Ledger.create(path, epsilon=100.0, delta=1e-5, relation=relation)
    return path


def started(arguments: list[str], memory: int | None = None) -> int:
    """Number of a process that runs the command line, forked from here so that it loads nothing anew."""
    child = os.fork()
    if child:
        return child
    for name in SIGNALS[1:]:
        signal.signal(name, signal.default_int_handler if name == signal.SIGINT else signal.SIG_DFL)
    with Path(os.devnull).open("w") as silent:
        for stream in (1, 2):
            os.dup2(silent.fileno(), stream)
        if memory is not None:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
        sys.argv = ["dpppsynth", *arguments]
        code = 1
        with contextlib.suppress(BaseException):
            try:
                main()
                code = 0
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else 1
    os._exit(code)


def ended(child: int) -> None:
    """Wait for a run; one that hangs, as forked threads may, is killed."""
    for _ in range(10 * PATIENCE):
        if os.waitpid(child, os.WNOHANG) != (0, 0):
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def begun(folder: Path, way: str, memory: int | None = None) -> tuple[int, Path]:
    """Number of the process of a run, and its ledger."""
    points, book = points_file(folder, way), ledger_for(folder, way)
    out = folder / "disk" / "out" if (folder / "disk").exists() else folder / "out"
    arguments = ["synthesize", str(points), *PLACE, *WAYS[way], "--epsilon", "1", "--ledger", str(book), "--yes"]
    return started([*arguments, "--out", str(out)], memory), book


def await_entry(book: Path, child: int) -> None:
    """Wait until a ledger has more than its head and its budget, or the run has ended."""
    running = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while book.read_bytes().count(b"\n") <= 2 and os.waitid(os.P_PID, child, running) is None:
        time.sleep(0.001)


def run(folder: Path, way: str, stop: Stop | None = None, memory: int | None = None) -> str:
    """Outcome of one run: what the ledger says of it and what is left, or "wrong" with the reason."""
    child, book = begun(folder, way, memory)
    if stop is not None:
        if stop.spent:
            await_entry(book, child)
        time.sleep(stop.seconds)
        with contextlib.suppress(ProcessLookupError):
            stop.act(child)
    ended(child)
    (folder / "disk" / FILLER).unlink(missing_ok=True)
    state = aside(lambda: found(book))
    if state.startswith("measured in "):
        ended(started(["resume", state.removeprefix("measured in ")]))
        state = aside(lambda: resumed(book))
    return state


def aside(work: Callable[[], str]) -> str:
    """Text that a process of its own makes: this one begins no thread, which a fork would lose with its locks."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, work().encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return text or "wrong: it cannot be read"


def found(book: Path) -> str:
    """State of the one entry of a ledger; "wrong" where it is measured or released and nothing is left that opens."""
    entries = Ledger.open(book).releases
    if not entries:
        return "nothing spent"
    state = standing(entries[0])
    if state == "authorised":
        return "authorised"
    if entries[0].kept is None or state == "missing":
        return f"wrong: {state}"
    try:
        dps.load_release(entries[0].kept)
    except DpppsynthError as error:
        return f"wrong: {error}"
    return f"measured in {entries[0].kept}" if state == "measured" else "released"


def resumed(book: Path) -> str:
    """Outcome of a resumed run."""
    (entry,) = Ledger.open(book).releases
    whole = standing(entry) == "released" and verify(entry.kept).holds
    return RESUMED if whole else "wrong: it does not resume"


def durations(way: str) -> tuple[float, float]:
    """Seconds of an undisturbed run, and how many of them follow the authorisation."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        child, book = begun(Path(folder), way)
        await_entry(book, child)
        spent = time.perf_counter()
        ended(child)
        end = time.perf_counter()
        outcome = aside(lambda: found(book))
    if outcome != "released":
        msg = f"{way}: {outcome}"
        raise RuntimeError(msg)
    return end - begin, end - spent


@contextlib.contextmanager
def small_disk(folder: Path, size: int):
    """A file system of so many bytes at `disk`; needs the right to mount."""
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)], check=True)  # noqa: S603, S607
    try:
        yield
    finally:
        subprocess.run(["umount", str(disk)], check=True)  # noqa: S603, S607


def filled(disk: Path) -> None:
    """Fill a disk to the last byte."""
    with contextlib.suppress(OSError), (disk / FILLER).open("wb", buffering=0) as file:
        while True:
            file.write(bytes(2**16))


def trials(count: int, kind: str, lengths: dict[str, tuple[float, float]], rng: random.Random) -> Counter:
    """Outcomes of so many runs, over all mechanisms in turn."""
    found: Counter = Counter()
    ways = list(WAYS)
    for k in range(count):
        way = ways[k % len(ways)]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            # 17 mechanisms, 3 signals and 5 moments come together in all ways.
            spent = k % 5 > 0
            seconds = lengths[way][spent] * rng.random()
            if kind == "signals":
                outcome = run(
                    folder, way, Stop(lambda child, sent=SIGNALS[k % 3]: os.kill(child, sent), seconds, spent)
                )
            elif kind == "full disks":
                # Too small from the beginning, or filled by others.
                with small_disk(folder, 2**26 if spent else rng.randrange(2**14, 2**23)):
                    fill_it = Stop(lambda _, disk=folder / "disk": filled(disk), seconds, spent)
                    outcome = run(folder, way, fill_it if spent else None)
            else:
                outcome = run(folder, way, memory=rng.randrange(2**26, 2**28))
        if outcome.startswith("wrong"):
            print(f"{kind}, {way}: {outcome}", flush=True)
        found[outcome.partition(":")[0]] += 1
    return found


def measured(kills: int, disks: int, memories: int, seed: int) -> list[tuple[str, Counter]]:
    """Outcomes by the kind of what stops a run."""
    rng = random.Random(seed)  # noqa: S311 - moments of kills
    counts = {"signals": kills, "full disks": disks, "little memory": memories}
    lengths = {way: durations(way) for way in WAYS}
    return [(kind, trials(count, kind, lengths, rng)) for kind, count in counts.items() if count]


def program() -> None:
    """Run the trials, and write their table."""
    parser = command_line(__doc__ or "")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--disks", type=int, default=50)
    parser.add_argument("--memories", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    results = measured(options.kills, options.disks, options.memories, options.seed)
    rows = [[kind, str(sum(found.values())), *(str(found[each]) for each in OUTCOMES)] for kind, found in results]
    lines = table(["stopped by", "runs", *OUTCOMES], rows)
    print("\n".join(lines))
    fill(options.out, "kills", lines)
    sys.exit(any(found["wrong"] for _, found in results))


if __name__ == "__main__":
    program()

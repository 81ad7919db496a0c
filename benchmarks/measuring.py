"""Times, peak memory, cases in processes of their own, and raw scores that are run once, for several benchmarks."""

import csv
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def memory(who: int = resource.RUSAGE_SELF) -> float:
    """Peak memory so far, in MB."""
    return resource.getrusage(who).ru_maxrss / 1024


def timed(run: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> tuple[Any, float]:
    """A result, and the seconds that it took."""
    start = clock()
    found = run()
    return found, clock() - start


def in_fresh_process(program: str, name: str, *given: Any) -> dict[str, Any]:
    """Output of a case of a program, which calls `run_case`, with peak memory of its own."""
    print(name, *given, flush=True)
    command = [sys.executable, program, "--case", json.dumps([name, *given])]
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=alone)  # noqa: S603
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def run_case(case: str, *cases: Callable[..., dict[str, Any]]) -> None:
    """Print the output of the case that `in_fresh_process` asks for."""
    name, *given = json.loads(case)
    print(json.dumps({each.__name__: each for each in cases}[name](*given)))


def raw_rows(path: Path, rows: Callable[[], Iterable[list]], clock: Callable[[], float]) -> list[list[str]]:
    """The rows of an experiment, run unless its file is there; the last one tells the seconds, which are printed."""
    if not path.exists():
        start, part = clock(), path.with_suffix(".part")
        with part.open("w", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            for row in rows():
                writer.writerow([f"{each:.6g}" if isinstance(each, float) else each for each in row])
                stream.flush()
            writer.writerow(["seconds", f"{clock() - start:.0f}"])
        part.rename(path)
    with path.open(newline="") as stream:
        *found, seconds = csv.reader(stream)
    print(path.stem, " ".join(seconds), flush=True)
    return found

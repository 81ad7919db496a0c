"""Mutation testing of privacy-critical code: small faults planted one at a time, each to be found by named tests.

Every fault in `benchmarks/faults/*.toml` replaces a few words of one file. It is planted in a copy of the checkout,
where the tests named beside it run; they have passed on the copy without it. A fault is found by a test that fails:
one whose module does not even import, or whose tests do not end, is a bad fault. Exits with 1 when a fault survives or
is bad, or a test fails without one.

    make mutants                                           all of them; rows go to docs/results/audit/mutants.csv
    python benchmarks/mutants.py --only kernel noise       those of these files, nothing written
"""

import compileall
import functools
import importlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Any, NamedTuple

from audit_summary import summarise
from pages import command_line, fill, table

CHECKOUT = Path(__file__).parent.parent
FAULTS = Path(__file__).parent / "faults"
# Loaded once: every fault has a process of its own, forked from here, that loads the package alone anew.
LIBRARIES = (
    "hypothesis", "numba", "numpy", "opendp.prelude", "pandas", "pyproj", "pytest", "randomgen", "scipy.linalg",
    "scipy.optimize", "scipy.signal", "scipy.sparse", "scipy.spatial", "scipy.special", "scipy.stats", "shapely",
)  # fmt: skip
# Errors of a fault that is no working code.
NONSENSE = {
    "AttributeError", "ImportError", "IndentationError", "ModuleNotFoundError", "NameError", "SyntaxError", "TypeError",
    "UnboundLocalError",
}  # fmt: skip
SECONDS = 900


@dataclass(frozen=True)
class Fault:
    """One change of one file.

    Attributes
    ----------
    room : str
        File of faults that it stands in.
    name : str
        The fault in words.
    file : str
    old, new : str
        Words that stand in the file once, and what takes their place.
    tests : tuple of str
        Node ids of pytest, one of which must fail.
    audit : str
        Mechanism and relation that `audit_faults.py` audits with the fault; nothing where an audit cannot see it.
    """

    room: str
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    audit: str = ""

    def planted(self, text: str) -> str:
        """The text of its file with the fault."""
        found = text.count(self.old)
        if found != 1:
            msg = f"{self.room}: {self.name!r} stands {found} times in {self.file}, and must once; mend its `old`."
            raise ValueError(msg)
        return text.replace(self.old, self.new)


class Run(NamedTuple):
    """Result of pytest on some tests: the first that did not pass, when and by which error; nothing if all did."""

    test: str = ""
    when: str = ""
    error: str = ""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return not self.test

    @property
    def bad(self) -> bool:
        return self.when == "collect" or self.error in NONSENSE or self.error == "no end"


def faults() -> list[Fault]:
    """All of them, by room."""
    found: list[Fault] = []
    for path in sorted(FAULTS.glob("*.toml")):
        stated = tomllib.loads(path.read_text(encoding="utf-8"))["fault"]
        found += [Fault(path.stem, **each | {"tests": tuple(each["tests"])}) for each in stated]
    return found


def copied(folder: Path) -> Path:
    """The tracked files of the checkout, and those about to be, in a new folder, links and all; compiled."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    said = subprocess.run(listed, cwd=CHECKOUT, capture_output=True, check=True, text=True)  # noqa: S603 - git alone
    names = said.stdout.split("\0")
    for name in filter(None, names):
        source = CHECKOUT / name
        if source.exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / name, follow_symlinks=False)
    # By their text, not by time: a fault may be as long as what it replaces, and planted within the same second.
    for part in ("dpppsynth", "models", "linear_network", "tests"):
        compileall.compile_dir(folder / part, quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return folder


class Watch:
    """A plugin of pytest that keeps the first test which does not pass."""

    def __init__(self) -> None:
        self.run, self.passed = Run(), 0

    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        if self.run.passed:
            self.run = Run(node.nodeid, getattr(report, "when", None) or "collect", call.excinfo.typename)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.passed += report.when == "call" and report.passed


def forked(work: Callable[[], Run]) -> Run:
    """Output of some work, done in a child process with a time limit."""
    reader, writer = os.pipe()
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        with os.fdopen(writer, "w") as stream:
            json.dump(work(), stream)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        said = stream.read()
    os.waitpid(child, 0)
    run = Run(*json.loads(said)) if said else Run("all tests", "call", "no end")
    return run._replace(seconds=time.perf_counter() - start)


def tested(folder: Path, tests: Iterable[str]) -> Run:
    """Run tests in a copy of the checkout, up to the first that fails."""
    import pytest

    os.chdir(folder)
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    os.environ |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silent, stream)
    watch = Watch()
    code = pytest.main(["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", *tests], plugins=[watch])
    import dpppsynth

    if not Path(dpppsynth.__file__).is_relative_to(folder):
        return Run("dpppsynth", "collect", "imported from elsewhere")
    if watch.run.passed and (code != 0 or not watch.passed):
        return Run("; ".join(tests), "collect", f"pytest ended with {code}")
    return watch.run


@functools.cache
def own_copy() -> Path:
    """The copy of this worker."""
    return copied(Path(tempfile.mkdtemp(dir=os.environ["MUTANTS"])))


def unharmed(tests: tuple[str, ...]) -> Run:
    """Tests without any fault."""
    return forked(lambda: tested(own_copy(), tests))


def harmed(fault: Fault) -> Run:
    """The tests of a fault, with it."""
    path = own_copy() / fault.file
    text = path.read_text(encoding="utf-8")
    path.write_text(fault.planted(text), encoding="utf-8")
    try:
        return forked(lambda: tested(own_copy(), fault.tests))
    finally:
        path.write_text(text, encoding="utf-8")


def by_file(tests: Iterable[str]) -> list[tuple[str, ...]]:
    """Tests in groups, those of one file together."""
    groups: dict[str, list[str]] = {}
    for each in sorted(set(tests)):
        groups.setdefault(each.partition("::")[0], []).append(each)
    return [tuple(group) for group in groups.values()]


def row(fault: Fault, run: Run) -> str:
    verdict = f"`{run.test.removeprefix('tests/')}`"
    if run.passed:
        verdict = "**SURVIVED**"
    elif run.bad:
        verdict = f"**BAD**: {run.error} in {verdict}"
    return f"| {fault.room} | {fault.name} | {fault.file} | {verdict} | {run.seconds:.0f} |"


@contextmanager
def workers(jobs: int, tasks: int | None = None) -> Iterator[Any]:
    """Processes with copies of their own, which are gone afterwards; each ends after so many tasks."""
    for name in LIBRARIES:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MUTANTS"] = folder
        with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=tasks) as pool:
            yield pool


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="+", default=[], help="files of faults, without .toml, or names of faults")
    args = parser.parse_args()
    chosen = [each for each in faults() if not args.only or {each.room, each.name} & set(args.only)]
    rows, missed = [], 0
    with workers(args.jobs) as pool:
        groups = by_file(test for each in chosen for test in each.tests)
        failed = [run for run in pool.imap(unharmed, groups, chunksize=1) if not run.passed]
        for run in failed:
            print(f"fails without a fault: {run.test} ({run.error})", flush=True)
        for fault, run in zip(chosen, () if failed else pool.imap(harmed, chosen, chunksize=1), strict=not failed):
            missed += run.passed or run.bad
            rows.append(row(fault, run))
            print(rows[-1], flush=True)
    print(f"{len(rows)} faults, {len(rows) - missed} found")
    if rows:
        fill(args.out, "mutants", [*table(["room", "fault", "file", "found by", "seconds"], []), *rows])
        summarise(args.out)
    return int(missed > 0 or bool(failed))


if __name__ == "__main__":
    sys.exit(main())

"""Files of counts: each machine counts its own reports, and exact sums of such files merge.

Reports are private before anybody counts them, so counts of reports may be saved, sent and published; partial sums of
points may not (`dpppsynth.contract.partial_sums`). A file names mechanism and window by their fingerprints, and the
drawings and countings that went into it by numbers drawn at random: none enters a sum twice.
"""

import hashlib
import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, Self

import numpy as np

from dpppsynth.core.arguments import each, flag, instance, whole
from dpppsynth.core.atomic_files import whole_file
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.mechanisms.local.client import description
from dpppsynth.mechanisms.local.report_tables import matching, new_file
from dpppsynth.mechanisms.local.reports import Counts
from dpppsynth.mechanisms.local.synthesizer import LocalMechanism
from dpppsynth.mechanisms.local.trajectories.protocol import LONGEST
from dpppsynth.spatial.domains import Window, canonical_json
from dpppsynth.spatial.mesh import Ints
from dpppsynth.spatial.tables.formats import as_path, there

SUFFIX = ".json"
FORMAT = "dpppsynth.counts"
# Reports, and bytes of a file: four million cells of a billion reports each take 50 MB.
MOST, LARGEST = 2**53, 2**30


@dataclass(frozen=True, eq=False, repr=False)
class SavedCounts:
    """Counts of reports as they stand in a file, which need no mechanism to be added up.

    Attributes
    ----------
    mechanism, window : str
        Fingerprints: of the client mechanism, and of the window whose cells the reports are about.
    parameters : dict
        The mechanism's public numbers, for people to read.
    values : (size,) array of int
    n : int
        Number of reports.
    seeded : bool
        True when the random bits of any report can be reproduced: then nothing is private.
    runs : tuple of str
        Random numbers of the countings whose sum this is, and of the drawings of their reports where files tell them.
    user : str, optional
        Column that told persons, each of whom sent one report, where that holds for all of them.
    """

    mechanism: str
    window: str
    parameters: dict[str, Any]
    values: Ints
    n: int
    seeded: bool
    runs: tuple[str, ...]
    user: str | None = None

    def __repr__(self) -> str:
        return f"SavedCounts({self.n} reports of mechanism {self.mechanism})"

    def __add__(self, other: "SavedCounts") -> "SavedCounts":
        """Exact sum; InputError for counts of another mechanism or window, or that share a counting."""
        self._require_same(other)
        n = whole("n", self.n + other.n, 0, most=MOST)
        runs = tuple(sorted((*self.runs, *other.runs)))
        seeded = self.seeded or other.seeded
        user = self.user if self.user == other.user else None
        values = self.values + other.values
        return replace(self, values=values, n=n, seeded=seeded, runs=runs, user=user)

    def _require_same(self, other: "SavedCounts") -> None:
        if self.mechanism != other.mechanism:
            names = ", ".join(k for k, value in self.parameters.items() if other.parameters.get(k) != value)
            msg = (
                f"paths: counts of different mechanisms do not add up{f' ({names})' if names else ''}; merge those of "
                "reports that were drawn with the same options."
            )
            raise InputError(msg)
        if self.window != other.window:
            msg = "paths: counts of reports about different windows do not add up; merge those about one window."
            raise InputError(msg)
        if len(self.values) != len(other.values):
            msg = "paths: counts of one mechanism have different lengths; one of the files was changed: count again."
            raise InputError(msg)
        if not set(self.runs).isdisjoint(other.runs):
            msg = (
                "paths: the same reports, or the same counting of some, are in two of the files and would count twice; "
                "name every file once, and none beside a sum that it is part of."
            )
            raise InputError(msg)

    def counts(self, mechanism: LocalMechanism, argument: str = "paths") -> Counts:
        """Counts to make a release of; InputError where they are of another mechanism, or no counts of so many.

        Where the mechanism's `user` tells persons, the reports must have been drawn so. `argument` names the files.
        """
        if self.mechanism != mechanism.fingerprint:
            mine = mechanism.randomizer.parameters()
            named = [name for name, value in mine.items() if self.parameters.get(name) != value]
            told = ", ".join(f"{name} {_short(self.parameters.get(name))}, not {_short(mine[name])}" for name in named)
            msg = (
                f"{argument}: the counts are of reports to another mechanism{f' ({told})' if told else ''}; give those "
                "of reports that were drawn with the same options, and of this round where there are two."
            )
            raise InputError(msg)
        if mechanism.user not in (None, self.user):
            msg = (
                f"{argument}: the files of counts do not say that each person sent one report, by the column "
                f"{mechanism.user!r}; leave {mention('user')} out, or draw the reports, and count them, with it."
            )
            raise InputError(msg)
        law = mechanism.randomizer
        # Nobody may have reported to one of many machines.
        none = self.n == 0 and self.values.shape == (law.size,)
        values = self.values if none else law.counts_of(self.values, self.n)
        return mechanism.counts_kind(mechanism, values, self.n, self.seeded, self.runs)

    def text(self) -> str:
        """JSON form, with a hash of everything else in it."""
        data = {
            "format": FORMAT,
            "mechanism": self.mechanism,
            "window": self.window,
            "parameters": self.parameters,
            "n": self.n,
            "seeded": self.seeded,
            "runs": list(self.runs),
            "counts": self.values.tolist(),
        } | ({} if self.user is None else {"user": self.user})
        return json.dumps(data | {"hash": _hash(data)})

    @classmethod
    def from_text(cls, text: str, name: str) -> Self:
        """Inverse of `text`; InputError, naming the file, for anything else, also where a digit was changed."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            msg = f"paths: {name} is no file of counts; `dpppsynth local count` writes one of reports."
            raise InputError(msg)
        given = dict(data)
        stated = given.pop("hash", None)
        if stated != _hash(given):
            msg = f"paths: {name} is not whole, or was changed after it was written; copy it again, or count again."
            raise InputError(msg)
        found = _checked(given)
        if found is None:
            msg = f"paths: {name} holds what no counting gives; count its reports again."
            raise InputError(msg)
        return cls(**found)


def _short(value: Any) -> str:
    """A public number in few digits; other values as JSON has them."""
    return f"{value:.6g}" if isinstance(value, float) else json.dumps(value)[:40]


def _hash(data: dict[str, Any]) -> str:
    try:
        return hashlib.sha256(canonical_json(data).encode()).hexdigest()
    except (TypeError, ValueError, RecursionError):
        return ""


def _checked(data: dict[str, Any]) -> dict[str, Any] | None:
    """Fields of `SavedCounts`; None where one is missing or of another kind."""
    names = ("mechanism", "window", "parameters", "counts", "n", "seeded", "runs")
    if set(data) - {"user"} != {"format", *names}:
        return None
    texts = [
        data["mechanism"],
        data["window"],
        data.get("user", "user"),
        *(data["runs"] if isinstance(data["runs"], list) else [None]),
    ]
    counts, n = data["counts"], data["n"]
    whole_numbers = isinstance(counts, list) and counts and all(type(count) is int for count in [n, *counts])
    if not whole_numbers or not all(isinstance(text, str) and text for text in texts) or not data["runs"]:
        return None
    if not isinstance(data["parameters"], dict) or not isinstance(data["seeded"], bool):
        return None
    # Of n persons' reports about a move no more than n can agree, and they send one for each move.
    times = data["parameters"].get("longest")
    most = n * (times if type(times) is int and 0 < times <= LONGEST else 1)
    if not 0 <= n <= MOST or min(counts) < 0 or max(counts) > most or len(set(data["runs"])) != len(data["runs"]):
        return None
    found = {name: data[name] for name in (*names, "user") if name != "counts" and name in data}
    return found | {"runs": tuple(data["runs"]), "values": np.array(counts, dtype=np.int64)}


def write_counts(counts: Counts, path: str | Path, *, window: Window) -> Path:
    """Save counts of reports in a small new file, for `merge_counts` and `aggregate_files` on any machine.

    Reports are private already, so this file may be sent and published as it is.

    Parameters
    ----------
    counts : Counts
        As `aggregate_files` and `aggregate` give them, all of whose reports are about cells of the window.
    path : str or Path
        New file ending in .json.
    window : Window

    Raises
    ------
    InputError
        When the file exists, or counts are of another window than their mechanism's.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from dpppsynth.local import DiskAreaMechanism
    >>> mechanism, window = DiskAreaMechanism(epsilon=1.0, cells=3), Window.rectangle(0, 0, 9, 9)
    >>> with TemporaryDirectory() as folder:
    ...     for name in "ab":
    ...         counts = mechanism.aggregate(mechanism.clients([0, 4, 4, 8], rng=1))
    ...         _ = write_counts(counts, f"{folder}/{name}.json", window=window)
    ...     merge_counts([f"{folder}/a.json", f"{folder}/b.json"], f"{folder}/all.json").n
    8
    """
    instance("counts", counts, Counts, "aggregate() and aggregate_files() give some")
    place = instance("window", window, Window, "Window.rectangle(0, 0, 1, 1) is one").fingerprint()
    mechanism: Any = counts.mechanism
    target = new_file(path, (SUFFIX,), "out")
    # Of reports without a label nothing but the counting is known.
    runs = tuple(sorted((*counts.runs, secrets.token_hex(16))))
    saved = SavedCounts(
        counts.mechanism.fingerprint,
        place,
        mechanism.randomizer.parameters(),
        counts.values,
        counts.n,
        flag("seeded", counts.seeded),
        runs,
        counts.mechanism.user,
    )
    _write(saved, target)
    return target


def merge_counts(paths: Any, out: str | Path) -> SavedCounts:
    """Add up files of counts, exactly and in any order, into a new one of the same form.

    Parameters
    ----------
    paths : str or Path, or a sequence of them
        Files of counts, or patterns such as ``counts/*.json``.
    out : str or Path
        New file ending in .json.

    Returns
    -------
    SavedCounts
        The sum: `n` reports, and `seeded` where any file says so.

    Raises
    ------
    InputError
        When files are missing, changed, of different mechanisms or windows, or share a counting; nothing is written.
    """
    target = new_file(out, (SUFFIX,), "out")
    found = added(counts_files([paths] if isinstance(paths, str | Path) else each(paths) or ()))
    _write(found, target)
    return found


def added(files: Iterable[Path]) -> SavedCounts:
    """Exact sum of files of counts; InputError without any."""
    found = [_read(file) for file in files]
    if not found:
        msg = "paths: needs at least one file of counts, .json; `dpppsynth local count` writes one."
        raise InputError(msg)
    return reduce(SavedCounts.__add__, found)


def counts_in(
    names: Iterable[Any], mechanism: LocalMechanism, *, window: Window | None = None, argument: str = "paths"
) -> Counts:
    """Sum of files of counts, which must be of this mechanism, and of this window where it is known; InputError."""
    found = added(counts_files(names))
    if window is not None:
        instance("window", window, Window, "Window.rectangle(0, 0, 1, 1) is one")
        if found.window != window.fingerprint():
            msg = f"{argument}: the counts are about another window; take the one that their reports are about."
            raise InputError(msg)
    return found.counts(mechanism, argument)


def first_counts(path: str, mechanism: LocalMechanism, window: Any) -> Counts:
    """Counts of the first round, in a file that --after names; InputError."""
    return counts_in([path], mechanism, window=window, argument="after")


def _read(file: Path) -> SavedCounts:
    """One file of counts; InputError."""
    if not there(file, Path.is_file):
        msg = f"paths: there is no file {str(file)!r}."
        raise InputError(msg)
    if file.stat().st_size > LARGEST:
        msg = f"paths: {file.name} is larger than any file of counts."
        raise InputError(msg)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    return SavedCounts.from_text(text, file.name)


def is_counts(name: Any) -> bool:
    """Whether a name or pattern is of files of counts, by its ending."""
    return isinstance(name, str | Path) and str(name).lower().endswith(SUFFIX)


def counts_files(names: Iterable[Any]) -> list[Path]:
    """All files of counts that names and patterns stand for, by name; InputError for other files."""
    found: list[Path] = []
    for name in names:
        if not is_counts(name):
            msg = f"paths: {str(name)[:80]!r} must end in {SUFFIX}: files of counts, as `dpppsynth local count` writes."
            raise InputError(msg)
        files = matching(as_path(name, "paths"))
        if not files:
            msg = f"paths: {str(name)!r} matches no file."
            raise InputError(msg)
        found += files
    return found


def write_description(mechanism: Any, path: str | Path, *, window: "Window") -> Path:
    """Write a mechanism's public description to a new file, for `Client.read` on devices.

    Parameters
    ----------
    mechanism, window
        As in `description`.
    path : str or Path
        New file ending in .json.

    Raises
    ------
    InputError
        When the file exists, or the mechanism has several rounds.
    """
    target, text = new_file(path, (SUFFIX,), "out"), description(mechanism, window)
    with whole_file(target) as file:
        file.write(text.encode())
    return target


def _write(saved: SavedCounts, target: Path) -> None:
    with whole_file(target) as file:
        file.write(saved.text().encode())

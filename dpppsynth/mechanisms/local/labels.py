"""Labels (metadata) of report files: the mechanism, and whether its random bits were secret."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer
from dpppsynth.mechanisms.local.report_tables import quietly
from dpppsynth.mechanisms.local.synthesizer import LocalMechanism
from dpppsynth.spatial.domains import Window

# Key of a Parquet file's metadata; CSV files have their label beside them.
KEY = b"dpppsynth.reports"
LARGEST = 2**20


@dataclass(frozen=True)
class Label:
    """Origin of the reports in a file.

    Attributes
    ----------
    mechanism : str
        Fingerprint of the client mechanism.
    seeded : bool
        True when some of the reports can be drawn again: then nothing is private.
    parameters : dict, optional
        The mechanism's public numbers, for people to read.
    window : str, optional
        Fingerprint of the window whose cells the reports are about, where it is known.
    user : str, optional
        Column that told persons, each of whom sent one report about one of their points, drawn at random.
    run : str, optional
        Random number of the drawing, which copies of the file share: no drawing is counted twice.
    """

    mechanism: str
    seeded: bool
    parameters: Mapping[str, Any] | None = None
    window: str | None = None
    user: str | None = None
    run: str | None = None

    def text(self) -> str:
        """JSON form."""
        data = {"mechanism": self.mechanism, "seeded": self.seeded, "parameters": self.parameters}
        known = {"window": self.window, "user": self.user, "run": self.run}
        return json.dumps(data | {name: text for name, text in known.items() if text is not None})


def label_for(
    mechanism: LocalMechanism, *, seeded: bool, window: Window | None = None, user: str | None = None
) -> Label:
    """Label of reports drawn by this mechanism's clients, of places in this window, one for each person it tells."""
    place = None if window is None else window.fingerprint()
    return Label(mechanism.fingerprint, seeded, mechanism.randomizer.parameters(), place, user)


def beside(path: Path) -> Path:
    """File that holds the label of a CSV file."""
    return path.with_name(path.name + ".json")


def read_label(path: Path) -> Label | None:
    """Label of a file of reports; None where it has none.

    Raises
    ------
    InputError
        When the file or its label cannot be read.
    """
    text = quietly(path, lambda: _text(path))
    return None if text is None else _label(path, text)


def label_of(
    path: Path, mechanism: LocalMechanism, *, window: Window | None = None, labelled: bool = False
) -> Label | None:
    """Label of a file of reports, which must be of this mechanism, and of this window, as far as it tells.

    Where the mechanism's `user` tells persons, the label must say so as well.

    Raises
    ------
    InputError
        When it is of another one: its reports would be counted wrongly. When there is none, and it must be `labelled`.
    """
    label = read_label(path)
    if label is None and labelled:
        msg = (
            f"paths: {path.name} has no label, which says what drew its reports and whether from secret random bits "
            f"(of a CSV file it is {beside(path).name}); bring it, or say that it is missing: --unlabelled."
        )
        raise InputError(msg)
    if label is not None and window is not None and label.window not in (None, window.fingerprint()):
        msg = (
            f"paths: {path.name} holds reports about another window; aggregate them with the one they were drawn with."
        )
        raise InputError(msg)
    if label is not None and label.mechanism != mechanism.fingerprint:
        msg = (
            f"paths: {path.name} holds reports of another mechanism{_differing(label, mechanism.randomizer)}; "
            "aggregate them with the one that drew them, with the same settings."
        )
        raise InputError(msg)
    if label is not None and mechanism.user not in (None, label.user):
        msg = f"paths: {path.name} does not say that each person sent one report, by the column {mechanism.user!r}; "
        if label.user is None:
            msg += (
                f"draw the reports with {mention('user', repr(mechanism.user))}, write those of devices with "
                "write_reports(..., mechanism=), or, where they are about places, count them without that column."
            )
        else:
            msg += f"it says so by another one: {mention('user', repr(label.user))}."
        raise InputError(msg)
    return label


def runs_of(paths: Sequence[Path], labels: Sequence[Label | None]) -> tuple[str, ...]:
    """Random numbers of the drawings in files of reports, as far as labels tell them.

    Raises
    ------
    InputError
        When two files are of one drawing: copies, perhaps in another format, whose reports would count twice.
    """
    known: dict[str, Path] = {}
    for path, label in zip(paths, labels, strict=True):
        run = None if label is None else label.run
        if run is None:
            continue
        if run in known:
            msg = (
                f"paths: {known[run].name} and {path.name} hold reports of the same drawing, which would count twice; "
                "name one of them, and where they are parts of a file, that file."
            )
            raise InputError(msg)
        known[run] = path
    return tuple(sorted(known))


def _differing(label: Label, randomizer: Randomizer) -> str:
    """The public numbers in which a file's mechanism differs, as far as it tells them."""
    if label.parameters is None:
        return ""
    mine = randomizer.parameters()
    names = [name for name in mine if mine[name] != label.parameters.get(name)]
    return f" ({', '.join(names)})" if names else ""


def _text(path: Path) -> str | None:
    if path.suffix.lower() == ".csv":
        if not beside(path).is_file():
            return None
        with beside(path).open("rb") as stream:
            return stream.read(LARGEST).decode()
    import pyarrow.parquet as pq

    found = (pq.read_metadata(path).metadata or {}).get(KEY)
    return None if found is None else found.decode()


def _label(path: Path, text: str) -> Label:
    try:
        data = json.loads(text)
        label = Label(data["mechanism"], data["seeded"], *map(data.get, ("parameters", "window", "user", "run")))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        label = Label("", seeded=False)
    numbers = label.parameters is None or isinstance(label.parameters, dict)
    numbers = numbers and all(text is None or isinstance(text, str) for text in (label.window, label.user, label.run))
    if not (isinstance(label.mechanism, str) and label.mechanism and isinstance(label.seeded, bool) and numbers):
        msg = (
            f"paths: the label of {path.name}, which names the mechanism of its reports, is not whole; write it again."
        )
        raise InputError(msg)
    return label

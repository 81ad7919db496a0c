"""`Ledger`: a budget file for many concurrent processes, which refuses overspending."""

import errno
import json
import os
import secrets
import stat
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dpppsynth.contract.account import Account, Levels, Subset, counted_few
from dpppsynth.core.arguments import flag, shown
from dpppsynth.core.atomic_files import locked, whole_file
from dpppsynth.core.errors import DpppsynthError, InformationWarning, InputError, PrivacyCheckError, outside
from dpppsynth.core.html_card import html_card
from dpppsynth.core.rounding import downward, upward
from dpppsynth.core.wording import mention
from dpppsynth.ledger.authorisation import Authorisation, proof_of, require_token
from dpppsynth.ledger.budget import ROUNDING, Budget
from dpppsynth.ledger.certificates import proof
from dpppsynth.ledger.counted_points import counted_points, points_json
from dpppsynth.ledger.document import (
    AUTHORISED,
    ENTERED,
    GIVEN_UP,
    MEASURED,
    REMEDY,
    SETTLED,
    Event,
    dump,
    first_line,
    hash_of,
    parse,
    text_of,
)
from dpppsynth.ledger.history import Entry, History, find_entry, place_of, replay, require_open, stored
from dpppsynth.ledger.joint_guarantee import narrowed, together
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import AlphaNeighbours, MovedPoint, Relation
from dpppsynth.release.certificate import large_delta, statement_hash
from dpppsynth.spatial.domains import Domain, canonical_json

if TYPE_CHECKING:
    from dpppsynth.release import Release, StratifiedRelease

# Seconds to wait for another process that writes to the same ledger.
PATIENCE = 10.0
# Of an epsilon that is told: fewer than what sums of floating-point numbers get wrong.
DIGITS = 12
# A new ledger is its owner's alone.
PRIVATE = 0o600


class Ledger(Account):
    """The privacy budget of one data set over time.

    A release is authorised before the data are touched, and counts as spent from then on, whatever becomes of it. The
    file is read again at every use, and locked only while something is added to it. A total may exceed the budget by a
    share of 1e-12, the rounding of sums, and by no more.

    The file is the custodian's: which releases were authorised and never happened, and when the file was last written,
    may depend on the data. Only authorisations, and what is entered, carry a time.

    Examples
    --------
    >>> import tempfile
    >>> from dpppsynth import Window
    >>> from dpppsynth.privacy import GaussianDP, Guarantee, gaussian_mu
    >>> square, alpha = Window.rectangle(0, 0, 1000, 1000), AlphaNeighbours(25.0)
    >>> draw = Guarantee(alpha, GaussianDP(gaussian_mu(1.0, 1e-6), at=1e-6), "posterior-draw", ("exact-draw",))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(Path(folder) / "ledger.json", epsilon=2.0, delta=1e-5, relation=alpha)
    ...     entry = ledger.authorise(draw, mechanism="lgcp-posterior-draw", domain=square)
    ...     print(round(ledger.spent, 3), round(ledger.remaining, 3), ledger.releases[0].state)
    0.872 1.128 authorised
    """

    def __init__(self, path: str | Path) -> None:
        try:
            # Links are followed once, so that all names of a ledger share one lock.
            self.path = Path(path).resolve()
        except (TypeError, ValueError, OSError, RuntimeError):
            msg = f"ledger: {path!r} names no file; give a path such as 'ledger.json'."
            raise InputError(msg) from None
        self._guard = threading.Lock()
        self._seen: tuple[History, bytes] | None = None

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        epsilon: float,
        delta: float,
        relation: Relation | None = None,
        alpha: float | None = None,
        label: str | None = None,
        adaptive: bool = False,
    ) -> Self:
        """Make a ledger where there is no file yet.

        Parameters
        ----------
        path : str or Path
        epsilon, delta : float
            Budget of all releases together; delta 0 admits pure releases alone.
        relation : Relation
            Neighbouring relation.
        alpha : float
            Instead of it, the privacy radius of `AlphaNeighbours`.
        label : str, optional
            A name for the data that may be shown to anybody.
        adaptive : bool
            Whether the budget of a release may be chosen after looking at earlier ones. Then a privacy filter counts,
            which knows Gaussian and pure releases only and admits fewer of the latter.

        Raises
        ------
        InputError
            When something exists at `path`, the file cannot be written, or a number is no budget.
        """
        if (relation is None) == (alpha is None):
            msg = f"relation: give either it or {mention('alpha')}, for instance {mention('alpha', '25.0')}."
            raise InputError(msg)
        chosen: Any = relation if alpha is None else AlphaNeighbours(alpha)
        if isinstance(chosen, MovedPoint) and isinstance(chosen.time, float) and not chosen.time_unit:
            msg = "relation: a ledger compares changes of times, so name their unit, such as time_unit='hours'."
            raise InputError(msg)
        budget = Budget(epsilon, delta, chosen, label, adaptive)
        first = {"kind": "budget", "previous": None, **_when(), **budget.to_dict()}
        ledger = cls(path)
        with ledger._locked() as alone:
            if ledger.path.exists():
                msg = f"ledger: {ledger.path} exists, and a budget is set once; open it, or choose another name."
                raise InputError(msg)
            try:
                with whole_file(ledger.path, PRIVATE, ready=lambda: _require_undisturbed(ledger.path, alone())) as file:
                    file.write(dump((first,)))
            except OSError as err:
                raise _unwritten(ledger.path, err) from None
            _require_undisturbed(ledger.path, alone())
        ledger._read()
        return ledger

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a ledger, for use with `with` or without.

        Raises
        ------
        InputError
            When there is no readable ledger of this version.
        PrivacyCheckError
            When its events contradict each other.
        """
        ledger = cls(path)
        ledger._read()
        return ledger

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close: no operation leaves the file open or locked."""

    def __reduce__(self) -> tuple[Callable[[Path], "Ledger"], tuple[Path]]:
        """A copy, also in another process, is the same file opened again."""
        return type(self).open, (self.path,)

    def _repr_html_(self) -> str:
        rows = [("budget", f"epsilon {upward(self.epsilon)} at delta {upward(self.delta)}")]
        rows += [("spent", upward(self.spent)), ("neighbouring", self.relation.described_in(self.unit))]
        return html_card(f"Ledger {self.path.name}", rows)

    def __repr__(self) -> str:
        budget = self._read().budget
        spent = f"spent {self.spent:.4g} of {budget.epsilon:g} at delta {budget.delta:g}"
        return f"Ledger({str(self.path)!r}, {budget.relation!r}, {spent})"

    @property
    def epsilon(self) -> float:
        """Epsilon of the budget."""
        return self._read().budget.epsilon

    @property
    def delta(self) -> float:
        """The delta at which the budget is kept."""
        return self._read().budget.delta

    @property
    def relation(self) -> Relation:
        """Neighbouring relation of each single release; `neighbouring` is that of all of them together."""
        return self._read().budget.relation

    @property
    def label(self) -> str | None:
        """The custodian's name for the data."""
        return self._read().budget.label

    @property
    def adaptive(self) -> bool:
        """Whether budgets of later releases may depend on what earlier ones published."""
        return self._read().budget.adaptive

    @property
    def spent(self) -> float:
        """Epsilon, at the ledger's delta, of everything authorised so far, in twelve digits rounded up."""
        return float(upward(self._read().spent, DIGITS))

    @property
    def remaining(self) -> float:
        """Difference of the budget's epsilon and `spent`; how much fits depends on its kind, see `check`."""
        left = self.epsilon - self.spent
        # What rounding alone leaves of a spent budget is nothing.
        return float(downward(left, DIGITS)) if left > ROUNDING * self.epsilon else 0.0

    @property
    def guarantee(self) -> Guarantee | None:
        """Joint guarantee of all releases; None as long as nothing is authorised."""
        whole = together(self._read().budget, self.releases)
        return None if whole is None else whole.in_unit(self.unit)

    @property
    def neighbouring(self) -> Relation:
        """Neighbouring relation of all releases together: fewer pairs than under each of them alone."""
        return narrowed(self._read().budget, self.releases)

    @property
    def unit(self) -> str:
        """Unit of lengths: that of the first release's domain, "unit" before."""
        return next((str(entry.domain["unit"]) for entry in self.releases), "unit")

    @property
    def warning(self) -> str | None:
        """Code of the warning that the budget's delta is too large for the number of points known so far, or None."""
        known = max((entry.n or 0 for entry in self.releases), default=0)
        return large_delta(self.delta, [(known if self.relation.n_is_public else None, None)])

    @property
    def head(self) -> str:
        """SHA-256 of the last event, which commits to the whole ledger: with it later removals are detected."""
        return self._read().head

    @property
    def releases(self) -> tuple[Entry, ...]:
        """All authorised releases, in order."""
        return tuple(self._read().entries.values())

    def holds(self, entry: str) -> bool:
        try:
            _held(self._read(), entry, SETTLED)
        except InputError:
            return False
        return True

    def check(
        self,
        guarantee: Guarantee,
        *,
        mechanism: str,
        domain: Domain,
        n: int | None = None,
        count_unit: str | None = None,
        subset: Subset = None,
        levels: Levels = None,
    ) -> None:
        """Raise the errors of `authorise` without writing anything."""
        history = self._read()
        event = _authorisation(history, guarantee, mechanism, domain, (n, count_unit, subset, levels))
        history.admit(event | {"claim": "", "taken": False})

    def caution(self, guarantee: Guarantee) -> str | None:
        """Warning that a ledger of points does not protect persons whom a release does; None for all others."""
        return self._read().budget.caution(guarantee)

    def authorise(
        self,
        guarantee: Guarantee,
        *,
        mechanism: str,
        domain: Domain,
        n: int | None = None,
        count_unit: str | None = None,
        subset: Subset = None,
        levels: Levels = None,
        taken: bool = False,
    ) -> Authorisation:
        """Spend part of the budget, before the data are touched.

        Parameters
        ----------
        guarantee : Guarantee
            Guarantee of the release, or the weakest that it may have.
        mechanism : str
            For instance "lgcp-tents".
        domain : Window or LinearNetwork
            Under alpha-neighbours the same one for all releases.
        n : int, optional
            Public number of points, where it is known already. Releases of the same points have the same one.
        count_unit : str, optional
            Mark that tells what n counts, such as trajectories; points, or the few of each person that the guarantee
            counts, unless given.
        subset : dict, optional
            Where not all points of the domain are read but those of one value of a mark: {"year": 2021}. Chosen
            without looking at the points; the promise says that this mark is not protected.
        levels : dict, optional
            Where each level of a mark is released by itself: the mark, and the public number of points of each level,
            such as {"year": {2021: 120, 2022: 80}}; None for numbers that are not known yet.
        taken : bool
            Whether the release that asks takes it up at once; then a public n is known. If not,
            `plan.release(..., entry=)` may, once.

        Returns
        -------
        Authorisation
            The entry's id, SHA-256 of the authorisation, which commits to all of the ledger before it; and the secret
            without which nobody settles or records it.

        Raises
        ------
        BudgetError
            When too little is left.
        InputError
            When the release is of a kind that the ledger cannot account for, n or a level's number is not that of
            earlier releases, or another process does not let go.
        PrivacyCheckError
            When the file is not what it was, with more added.
        """
        token, points = secrets.token_hex(32), (n, count_unit, subset, levels)
        claimed = {"claim": proof_of(token, AUTHORISED), "taken": flag("taken", taken)}
        name = self._append(lambda history: _authorisation(history, guarantee, mechanism, domain, points) | claimed)
        return Authorisation(name, token)

    def enter(self, release: "Release | StratifiedRelease", *, subset: Subset = None) -> str:
        """Spend part of the budget for a release that was made before there was a ledger.

        Parameters
        ----------
        release : Release or StratifiedRelease
            Such as `load_release` opens. Nobody settles or records it later.
        subset : dict, optional
            As in `authorise`.

        Returns
        -------
        str
            The entry's id.

        Raises
        ------
        BudgetError, PrivacyCheckError
            As `authorise`.
        InputError
            As there; also for a seeded release, and for one that stands in this ledger.

        Warns
        -----
        InformationWarning
            Before anything is spent, when the ledger does not protect the persons whom the release does.
        """
        if not hasattr(release, "certificate_dict"):
            msg = f"release: needs a release, got {shown(release)}; load_release('public') opens a saved one."
            raise InputError(msg)
        cert = json.loads(canonical_json(release.certificate_dict()))
        hashes = {"certificate": statement_hash(cert), "paid": statement_hash(cert, estimator=False)}
        if release.seeded:
            msg = "release: a seeded one is not private, whatever its certificate says; a ledger cannot count it."
            raise InputError(msg)

        def entered(history: History) -> Event:
            if any(each.id == release.entry or each.paid == hashes["paid"] for each in history.entries.values()):
                msg = "release: it stands in this ledger already, and counts once."
                raise InputError(msg)
            if (caution := history.budget.caution(release.guarantee)) is not None:
                warnings.warn(caution, InformationWarning, stacklevel=outside())
            told = history.budget.relation.n_is_public
            points = _released_points(release, subset) if told else (None, None, subset, None)
            made = _authorisation(history, release.guarantee, release.mechanism, release.domain, points)
            return made | {"kind": ENTERED} | hashes

        return self._append(entered)

    def settle(
        self,
        entry: str,
        guarantee: Guarantee,
        *,
        mechanism: str | None = None,
        domain: Domain | None = None,
        n: int | None = None,
        count_unit: str | None = None,
        subset: Subset = None,
        levels: Levels = None,
    ) -> None:
        """Use an authorisation, once, for a release whose guarantee is known only now.

        It must nowhere be worse than what was authorised. What was authorised counts until `record` has seen a
        certificate that proves the smaller one.

        Parameters
        ----------
        entry : Authorisation
            As `authorise` returned it.
        guarantee : Guarantee
        mechanism : str, optional
            Mechanism, such as "lgcp-tents", where less was known before.
        domain : Window or LinearNetwork, optional
            Where the release lies; must be the authorised one.
        n, count_unit, subset, levels : optional
            As in `authorise`, where they were not known before; all numbers known. Without n, see `give_up`.

        Raises
        ------
        InputError
            When there is no such authorisation, somebody else was given it, it was taken up before, it does not cover
            the release, or a public n is missing or not that of earlier releases. Nothing may be measured then; it
            counts as spent.
        """

        def settlement(history: History) -> Event:
            found, token = _held(history, entry, SETTLED)
            if domain is not None and place_of(domain) != found.domain:
                msg = "domain: another one was authorised; authorise this one."
                raise InputError(msg)
            named = found.mechanism if mechanism is None else _require_name(mechanism)
            given = _in_units((n, count_unit, subset, levels), guarantee)
            settled = {"mechanism": named, "guarantee": stored(guarantee), "points": _completed(history, found, given)}
            return _event(SETTLED, found, token) | settled

        self._append(settlement)

    def give_up(self, entry: str) -> None:
        """Use an authorisation without a release: it counts as spent, and reveals nothing about the number of points.

        Raises
        ------
        InputError
            As `settle`.
        """
        self._append(lambda history: _event(GIVEN_UP, *_held(history, entry, GIVEN_UP)))

    def record(self, entry: str, cert: Mapping[str, Any], *, domain: Domain, kept: str | Path | None = None) -> None:
        """Record a measurement; from then on the settled guarantee counts, if its certificate proves it.

        Parameters
        ----------
        entry : Authorisation
            As `authorise` returned it.
        cert : mapping
            The release's certificate, which names the entry.
        domain : Window or LinearNetwork
            Of the release.
        kept : str or Path, optional
            Folder on whose disk the certificate is, with what was paid for.

        Raises
        ------
        InputError
            When there is no such authorisation, somebody else was given it, or the certificate is not that of this
            release, or claims what does not follow from its parameters. What was authorised counts then.
        """
        history = self._read()
        found, _ = _held(history, entry, MEASURED)
        place_of(domain)
        # Outside the lock: it may take as long as verifying does.
        proved = proof(found, cert, domain, history.budget.relation)

        def release(history: History) -> Event:
            now, token = _held(history, entry, MEASURED)
            if now != found:
                msg = "entry: it was settled while its certificate was looked at; record it again."
                raise InputError(msg)
            counts = SETTLED if _lowers(history, now) else AUTHORISED
            where = None if kept is None else str(Path(kept).resolve())
            return _event(MEASURED, now, token) | proved | {"counts": counts, "kept": where}

        self._append(release)

    def _append(self, make: Callable[[History], Event]) -> str:
        with self._locked() as alone:
            history, raw = self._load()
            event = {**make(history), "previous": history.head}
            history.admit(event)
            if not stat.S_IMODE(self.path.stat().st_mode) & stat.S_IWUSR:
                msg = f"ledger: {self.path} is read-only, so nothing can be authorised; make it writable for its owner."
                raise InputError(msg)
            return self._write(history, raw, event, alone)

    def _read(self) -> History:
        """The history as it is on disk now."""
        return self._load()[0]

    def _load(self) -> tuple[History, bytes]:
        """The history as it is on disk now, and the file."""
        with self._guard:
            raw = _bytes(self.path)
            while self._seen is None or raw != self._seen[1]:
                try:
                    self._seen = self._follow(raw), raw
                except DpppsynthError:
                    # An event may be written while the file is read.
                    again = _bytes(self.path)
                    if again == raw:
                        raise
                    raw = again
            return self._seen

    def _follow(self, raw: bytes) -> History:
        """History of a file; what was seen of it before is not looked at again."""
        if self._seen is None:
            return replay(parse(raw, self.path), self.path)
        history, seen = self._seen
        first, end = len(first_line(history.head)), seen.rindex(b"\n") + 1
        if raw[first:end] == seen[first:end]:
            return history.followed_by(parse(raw, self.path, history.heads, end), self.path)
        new = replay(parse(raw, self.path), self.path)
        if history.head not in new.heads:
            msg = (
                f"ledger: {self.path} was replaced by an older or another one while it was in use; nothing is "
                f"released from it. {REMEDY}"
            )
            raise PrivacyCheckError(msg)
        return new

    def _write(self, history: History, raw: bytes, event: Event, alone: Callable[[], bool]) -> str:
        """Add an event to the end of the file, then name it in the first line."""
        text, end = text_of(event), raw.rindex(b"\n") + 1
        name = hash_of(text)
        whole = first_line(name) + raw[len(first_line(name)) : end] + text + b"\n"
        # Only events that can be read again are written.
        new = history.followed_by(parse(whole, self.path, history.heads, end), self.path)
        try:
            with self.path.open("r+b", buffering=0) as file:
                _require_undisturbed(self.path, file.read() == raw and alone())
                _append_line(file, end, text + b"\n")
                _require_undisturbed(self.path, _bytes(self.path) == raw[:end] + text + b"\n" and alone())
                _write_durably(file, 0, first_line(name))
        except OSError as err:
            raise _unwritten(self.path, err) from None
        _require_undisturbed(self.path, alone())
        with self._guard:
            self._seen = new, whole
        return name

    @contextmanager
    def _locked(self) -> Iterator[Callable[[], bool]]:
        """Hold the lock, and tell whether it is still worth something."""
        folder = self.path.parent
        with ExitStack() as held:
            try:
                # A lock would make the folder that is missing.
                folder.stat()
                alone = held.enter_context(locked(self.path.with_name(self.path.name + ".lock"), timeout=PATIENCE))
            except TimeoutError:
                msg = f"ledger: another process is writing to {self.path} and does not finish; try again later."
                raise InputError(msg) from None
            except (OSError, NotImplementedError) as err:
                why = getattr(err, "strerror", None) or "its file system has no locks"
                msg = f"ledger: cannot write in {folder}: {why}; the folder must exist and be writable."
                raise InputError(msg) from None
            _require_undisturbed(self.path, alone())
            yield alone


def _authorisation(
    history: History, guarantee: Guarantee, mechanism: str, domain: Domain, points: tuple[Any, ...]
) -> dict[str, Any]:
    """Event of an authorisation, but for its claim and whether it is taken up."""
    asked = {"mechanism": _require_name(mechanism), "domain": place_of(domain)}
    history.budget.require(guarantee)
    read = points_json(counted_points(history.budget.relation, *_in_units(points, guarantee)))
    return {"kind": AUTHORISED, **_when(), **asked, "guarantee": stored(guarantee), "points": read}


def _released_points(release: "Release | StratifiedRelease", subset: Subset) -> tuple[Any, ...]:
    """Public facts about the points of a release, as `authorise` takes them: n, count_unit, subset and levels."""
    numbers = {level: part.size[0] for level, part in release.parts.items()}
    by = getattr(release, "by", None)
    levels = None if by is None else {by: numbers}
    n = None if None in numbers.values() else sum(filter(None, numbers.values()))
    return n, release.plans[0].count_unit, subset, levels


def _in_units(points: tuple[Any, ...], guarantee: Guarantee) -> tuple[Any, ...]:
    """Facts about points, n, count_unit, subset and levels, with what a number that stands alone counts."""
    n, unit, subset, levels = points
    if n is not None and unit is None and levels is None:
        unit = counted_few(guarantee.relation)
    return n, unit, subset, levels


def _event(kind: str, entry: Entry, token: str) -> dict[str, Any]:
    """Fields of every later event of an entry, with the proof of the right to it."""
    return {"kind": kind, "entry": entry.id, "proof": proof_of(token, kind)}


def _completed(history: History, entry: Entry, given: tuple[Any, ...]) -> dict[str, Any] | None:
    """Points that a settled release reads, those authorised where nothing else is said."""
    before = (None,) * 4 if entry.points is None else tuple(entry.points.to_dict().values())
    n, count_unit, *rest = given
    counts = before[:2] if n is None else (n, count_unit)
    chosen = [old if new is None else new for new, old in zip(rest, before[2:], strict=True)]
    return points_json(counted_points(history.budget.relation, *counts, *chosen))


def _lowers(history: History, entry: Entry) -> bool:
    """Whether the total falls where the settled spending counts; numerical bounds may rise though a part falls."""
    if entry.settlement is None:
        return False
    after = history.instead(replace(entry, guarantee=entry.settlement))
    return history.budget.spent(after) <= history.spent * (1 + ROUNDING)


def _held(history: History, name: str, kind: str) -> tuple[Entry, str]:
    """An open entry, and the secret of who was given it."""
    entry = find_entry(history.entries, name)
    require_open(entry, kind)
    return entry, require_token(name, entry.claim)


def _require_name(mechanism: Any) -> str:
    if not isinstance(mechanism, str) or not mechanism:
        msg = f"mechanism: needs a name such as 'lgcp-tents', got {mechanism!r}."
        raise InputError(msg)
    return mechanism


def _require_undisturbed(path: Path, undisturbed: bool) -> None:
    if not undisturbed:
        msg = (
            f"ledger: {path} was changed, or its lock file {path.name}.lock deleted or replaced, while this process "
            "held the lock; nothing is released. Leave that file alone, and try again."
        )
        raise PrivacyCheckError(msg)


def _unwritten(path: Path, err: OSError) -> InputError:
    return InputError(f"ledger: cannot write {path}: {err.strerror}; see to it before anything is released.")


def _append_line(file: RawIOBase, end: int, line: bytes) -> None:
    """Write a line where the whole ones end; where that fails, nothing of it is left."""
    file.truncate(end)
    try:
        _write_durably(file, end, line)
    except OSError:
        file.truncate(end)
        raise


def _write_durably(file: RawIOBase, place: int, line: bytes) -> None:
    """Write at a place of a file, and wait until the disk has it."""
    file.seek(place)
    if file.write(line) != len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(file.fileno())


def _when() -> dict[str, str]:
    """Time of an authorisation, and a random word that no other one shares."""
    return {"at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "nonce": secrets.token_hex(16)}


def _bytes(path: Path) -> bytes:
    try:
        # A pipe would keep its reader waiting.
        if not stat.S_ISREG(path.stat().st_mode):
            msg = f"ledger: {path} is no file; name one, such as ledger.json."
            raise InputError(msg)
        with path.open("rb") as file:
            links, raw = os.fstat(file.fileno()).st_nlink, file.read()
    except FileNotFoundError:
        msg = f"ledger: there is no {path}; Ledger.create or `dpppsynth ledger init` makes one, once."
        raise InputError(msg) from None
    except OSError as err:
        msg = f"ledger: cannot read {path}: {err.strerror}."
        raise InputError(msg) from None
    if links > 1:
        msg = (
            f"ledger: {path} has another name as well (a hard link), and either could be spent in full; delete the "
            "other one, and make backups by copying."
        )
        raise InputError(msg)
    return raw

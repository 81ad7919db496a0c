"""`MechanismOptions`: plain values that ask for a mechanism, as on the command line."""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from dpppsynth.contract.settings import CAP, RELATION, USER, Setting, Settings, settings_of
from dpppsynth.contract.statistic import measured_number
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.composition import require_all_points
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import AddRemove, AlphaNeighbours, CappedRelation, Relation, ReplaceOne
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.patterns import PointPattern

# Declared by mechanisms that refuse them for a reason of their own.
NO_RADIUS = Setting(name="privacy_radius", option="--alpha", kind=float, help="Privacy radius", hidden=True)
NO_CAP, NO_RELATION = replace(CAP, hidden=True), replace(RELATION, hidden=True)
TOTAL_VARIATION = (
    "Distance: total variation between the surrogate's normalised intensity and the released one; in brackets that of "
    "a uniform intensity, which needs no data."
)


@dataclass(frozen=True)
class Given:
    """Values that were given for settings, by their names.

    Attributes
    ----------
    called : str
        The mechanism as it was asked for, such as "--method laplace".
    values : mapping
    others : mapping
        Values of options of other mechanisms.
    named : bool
        Whether the mechanism was named, and not only its method.
    crs : str or None
        Coordinate system of inputs that do not name one.
    """

    called: str
    values: Mapping[str, Any]
    others: Mapping[str, Any]
    named: bool = False
    crs: str | None = None

    def __getitem__(self, name: str) -> Any:
        """The value, or None."""
        return self.values.get(name)

    def require_none(self, name: str, reason: str) -> None:
        """Refuse a value of a setting that this mechanism has no use for.

        Raises
        ------
        InputError
        """
        if self[name] is not None:
            msg = f"{name}: {reason}"
            raise InputError(msg)


@dataclass(frozen=True)
class MechanismOptions:
    """Options of a mechanism: plain values for the settings of its class, and for others that objects are made of.

    Attributes
    ----------
    settings : type of Synthesizer
    method : str
        Short form of the name; of several mechanisms with one, the first in the registry is meant.
    preset : mapping
        Settings that the mechanism's name decides.
    """

    settings: type[Settings]
    method: str
    preset: Mapping[str, Any] = field(default_factory=dict)
    # Settings that are no fields of the class.
    extra: ClassVar[tuple[Setting, ...]] = ()
    # Why further patterns would be a new spend; why the number of points cannot be asked for.
    paid: ClassVar[str] = ""
    unfixed: ClassVar[str] = ""
    # Whether clients send reports; of those in two rounds, who reports in which.
    reports: ClassVar[bool] = False
    rounds: ClassVar[str] = ""
    # The distances of a rehearsal.
    distance: ClassVar[str] = TOTAL_VARIATION

    @cached_property
    def declared(self) -> tuple[Setting, ...]:
        """All settings."""
        return (*settings_of(self.settings), *self.extra)

    def require(self, given: Given) -> None:
        """Refuse combinations that are wrong on any domain.

        Raises
        ------
        InputError
        """
        for name, value in self.preset.items():
            if given.named and given[name] not in (None, value):
                msg = f"{name}: {given.called} means {value}; leave it out"
                raise InputError(msg)
        for each in self.declared:
            if each.default is MISSING and given[each.name] is None:
                what = each.help[0].lower() + each.help[1:]
                msg = f"{each.name}: {given.called} needs a {what}, for instance {each.option} {each.example}"
                raise InputError(msg)

    @property
    def sized(self) -> bool:
        """Whether the settings may depend on the number of points: a class of options makes them its own way."""
        return type(self).synthesizer is not MechanismOptions.synthesizer

    def synthesizer(self, given: Given, domain: Domain, n: int | None = None) -> Settings:
        """The synthesizer; `n` is the public number of points, where it is known.

        Raises
        ------
        InputError, PrivacyCheckError
        """
        return self.settings(**{**self.preset, **self.plain(given), **self.objects(given, domain)})

    def plain(self, given: Given) -> dict[str, Any]:
        """Arguments from plain values."""
        known = settings_of(self.settings)
        return {each.name: each.value(given[each.name]) for each in known if given[each.name] is not None}

    def objects(self, given: Given, domain: Domain) -> dict[str, Any]:
        """Arguments that are made from several values, or with the domain."""
        return {}

    def relation(self, given: Given) -> Relation:
        """The neighbouring relation."""
        return self.settings(**{**self.preset, **self.plain(given)}).neighbouring()

    def user(self, given: Given) -> str | None:
        """The column that tells the persons; None where none is read."""
        return None

    def described(self, given: Given) -> Marks | None:
        """Types and times, as the columns of a file are read; None where none are."""
        return None

    def number(self, given: Given, pattern: PointPattern) -> int:
        """The public number in a pattern: of its points, or of whom each plans for."""
        return len(pattern)

    def require_patterns(self, given: Given, patterns: int) -> None:
        """Refuse further patterns where each would be a new spend, and no plan pays for them; InputError."""

    @property
    def takes_patterns(self) -> bool:
        """Whether patterns are planned, and paid for, together."""
        return "patterns" in inspect.signature(self.settings.plan).parameters

    def reporting(self, made: Any, domain: Domain, n: int | None, after: str | None) -> Any:
        """Law of the clients: the mechanism's own, or that of the round which the first one's counts tell.

        Parameters
        ----------
        made : Synthesizer
        domain : Domain
        n : int or None
            Public number of persons of both rounds.
        after : str or None
            File of the first round's counts.

        Raises
        ------
        InputError
            Where there are no rounds and one is asked for, or n is missing.
        """
        if after is not None or n is not None:
            msg = f"{'n' if after is None else 'after'}: this mechanism has one round; leave --n and --after out"
            raise InputError(msg)
        return made

    def combined(self, made: Any, domain: Any, n: int | None, after: str, counts: Any) -> Any:
        """Counts of both rounds together: of the file `after`, and of the second round's reports."""
        raise NotImplementedError

    def promise(self, made: Any, asked: Any, domain: Domain, n: int | None) -> Guarantee:
        """Guarantee of the reports to `asked`, as `reporting` gives it; the most it may be where n is not known."""
        promised: Guarantee = made.ceiling(domain) if n is None else made.plan(domain, n=n).guarantee
        return promised

    def reporters(self, made: Any, asked: Any, user: str) -> str:
        """Words on what persons told apart by a column report, once their reports are drawn."""
        return f"One report for each person of the column {user!r}, whatever points they have."

    def both_rounds(self, made: Any, asked: Any) -> Guarantee | None:
        """Guarantee of both rounds together, where everybody reports in each; None otherwise."""
        return None

    def share(self, after: str | None) -> dict[str, str]:
        """Mark and value of the persons of one round, where rounds share persons out; nothing where all report."""
        return {}

    def require_drawn(self, made: Any, domain: Domain, n: int | None, drawn: int) -> None:
        """Refuse a number of drawn reports with which a promise cannot be made, before they are written; InputError.

        Parameters
        ----------
        made : Synthesizer
        domain : Domain
        n : int or None
            Public number of persons of both rounds.
        drawn : int
            Number of reports, which is public.
        """

    def require_files(
        self, points: Path, reports: Path, domain: Any, *, user: str | None = None, **layout: Any
    ) -> None:
        """Refuse files that clients' reports cannot be drawn for, or written to, before a row is read.

        Parameters
        ----------
        points, reports : Path
        domain : Domain
        user : str, optional
            Column that tells persons.
        **layout
            How the rows of `points` are laid out, as of `dpppsynth.io.read_pattern`.

        Raises
        ------
        InputError
        """
        msg = f"mechanism: {self.method} has no clients that send reports, all at once"
        raise InputError(msg)

    def require_columns(self, given: Given, columns: Iterable[str], name: str) -> None:
        """Refuse a file of points by the names of its columns, before a row is read.

        Parameters
        ----------
        given : Given
        columns : iterable of str
            Those that no option names.
        name : str
            Of the file.

        Raises
        ------
        InputError
        """

    def require_people(self, given: Given, n: int | None, by: str | None) -> None:
        """Refuse a number of points, or a mark by whose levels they are released, that does not go with the mechanism.

        Raises
        ------
        InputError
        """
        if by is not None and not hasattr(self.settings, "plan_by"):
            msg = f"by: {given.called} releases all points at once; leave --by out"
            raise InputError(msg)


class PointOptions(MechanismOptions):
    """Options of mechanisms that protect points, or up to a number of a person's."""

    extra: ClassVar[tuple[Setting, ...]] = (RELATION, CAP, USER)

    def require(self, given: Given) -> None:
        """Refuse combinations that are wrong on any domain; InputError."""
        if given["relation"] == "add-remove-person":
            named = ", without --no-user" if given.others.get("no_user") else ""
            msg = (
                "relation: add-remove-person is what --method heatmap promises; other methods let a number of points "
                f"of each person count: take add-remove with --user and --max-points-per-person{named}"
            )
            raise InputError(msg)
        if given["user"] == "":
            msg = "user: needs the name of a column; leave --user out where nobody has more than one point"
            raise InputError(msg)
        if given["user"] is not None and given["max_points_per_person"] is None:
            msg = (
                "max_points_per_person: --user needs the number of points of each person that count, for instance "
                "--max-points-per-person 1; which they are is drawn at random"
            )
            raise InputError(msg)
        super().require(given)

    def objects(self, given: Given, domain: Domain) -> dict[str, Any]:
        """The neighbouring relation, which alpha is part of."""
        return {"relation": self.relation(given), "alpha": None}

    def relation(self, given: Given) -> CappedRelation:
        """The relation that is named, or that a privacy radius stands for."""
        kind, alpha, cap = given["relation"], given["alpha"], given["max_points_per_person"]
        cap, user = 1 if cap is None else cap, self.user(given)
        if kind == "alpha" or (kind is None and alpha is not None):
            if alpha is None:
                msg = "alpha: --relation alpha needs the privacy radius, for instance --alpha 25"
                raise InputError(msg)
            return AlphaNeighbours(alpha, max_points_per_person=cap, user=user)
        if alpha is not None:
            msg = f"alpha: --relation {kind} has no privacy radius; leave --alpha out"
            raise InputError(msg)
        return AddRemove(cap, user=user) if kind == "add-remove" else ReplaceOne(cap, user=user)

    def user(self, given: Given) -> str | None:
        """The column that tells the persons, of whom a few points count; None where all points do."""
        user: str | None = given["user"]
        return user

    def number(self, given: Given, pattern: PointPattern) -> int:
        """The public number of points of a pattern that count."""
        return measured_number(self.relation(given), pattern)

    def require_people(self, given: Given, n: int | None, by: str | None) -> None:
        """Refuse levels of a mark where a few points of each person count; InputError."""
        super().require_people(given, n, by)
        if by is not None:
            require_all_points(self.relation(given))


def require_window(domain: Domain, why: str) -> Window:
    """The domain, which must be a window; on a network an InputError that says why, and what to take instead."""
    if not isinstance(domain, Window):
        msg = f"network: {why}"
        raise InputError(msg)
    return domain

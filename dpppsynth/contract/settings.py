"""Settings of mechanisms as interfaces offer them: type, default, unit, help and option name, declared once."""

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Any, get_args

from dpppsynth.contract.account import Planned
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.domains import Domain

METHOD, PRIVACY, EXPERT = "Method", "Privacy", "Expert"
LENGTH = "the domain's unit"
KINDS = (float, int, bool, str, Path)
KEY = "setting"


class Settings:
    """Base of what users call: dataclasses of public settings, all of them checked."""

    def plan(self, *args: Any, **options: Any) -> Planned:
        """Settle every choice from public parameters alone; each class says which."""
        raise NotImplementedError

    def neighbouring(self) -> Relation:
        """The neighbouring relation in force."""
        raise NotImplementedError

    def ceiling(self, domain: Domain, **options: Any) -> Guarantee:
        """The most that a release may spend, whatever the number of points."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A setting that can be given as a plain value.

    Attributes
    ----------
    help : str
        A phrase without unit and default.
    name : str
        The field of the class; or a name of its own, where an argument is made from several settings.
    option : str
        On the command line, such as "--length-scale", or "--shrink/--no-shrink" for a truth value.
    kind : type, optional
        One of KINDS.
    default : object
        MISSING where a value is required; None where `otherwise` says what is taken.
    otherwise, unit : str
    choices : tuple of str
        The words that are allowed; () for any value.
    argument : str
        Argument that errors name, where it is another one than `name`.
    example : str
        Of a value that is required.
    metavar : str, optional
    panel : str
        Of the help page.
    convert : callable, optional
        From the plain value to the argument.
    hidden : bool
        Left out of the help page.
    """

    help: str
    name: str = ""
    option: str = ""
    kind: type | None = None
    default: object = None
    otherwise: str = ""
    unit: str = ""
    choices: tuple[str, ...] = ()
    argument: str = ""
    example: str = ""
    metavar: str | None = None
    panel: str = METHOD
    convert: Callable[[Any], Any] | None = None
    hidden: bool = False

    @property
    def parameter(self) -> str:
        """The option in the form of an identifier."""
        return self.option.partition("/")[0].lstrip("-").replace("-", "_")

    @property
    def phrase(self) -> str:
        """Help with the unit."""
        return f"{self.help}, in {self.unit}" if self.unit else self.help

    @property
    def taken(self) -> str:
        """Words for the default; none where nothing is taken."""
        return self.otherwise or _written(self.default)

    def value(self, given: Any) -> Any:
        """The argument that a plain value stands for."""
        return given if self.convert is None else self.convert(given)


def setting(default: Any = MISSING, *, help: str, **declared: Any) -> Any:  # noqa: A002 - the word of command lines
    """A field of a dataclass that is a setting; `declared` are attributes of `Setting`.

    Unless given, the option is named like the field, and the kind is that of the annotation.
    """
    return field(default=default, metadata={KEY: Setting(help=help, **declared)})


def settings_of(kind: type) -> tuple[Setting, ...]:
    """The settings that the fields of a dataclass declare."""
    return tuple(_settled(each) for each in fields(kind) if KEY in each.metadata)


def _settled(each: Field[Any]) -> Setting:
    declared: Setting = each.metadata[KEY]
    kind = declared.kind or _plain(each.type)
    option = "--" + each.name.replace("_", "-")
    if kind is bool and each.default is True:
        option += f"/--no-{option[2:]}"
    return replace(declared, name=each.name, kind=kind, option=declared.option or option, default=each.default)


def _plain(annotation: object) -> type:
    """The plain type of an annotation such as `float | None`."""
    found: type = next(each for each in (*get_args(annotation), annotation) if each is not NoneType)
    if found not in KINDS:
        msg = f"a setting of type {annotation} needs a kind that is plain"
        raise TypeError(msg)
    return found


def _written(default: object) -> str:
    """A default as it is written on the command line; none where nothing is taken, or a truth value."""
    if default is None or default is MISSING or isinstance(default, bool):
        return ""
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return f"{default:g}" if isinstance(default, float) else str(default)


# Declarations that several mechanisms share.
EPSILON: dict[str, Any] = {"help": "Privacy budget", "example": "1", "panel": PRIVACY}
DELTA: dict[str, Any] = {
    "help": "Budget of mechanisms that are not purely epsilon-private",
    "example": "1e-6",
    "panel": PRIVACY,
}
ALPHA: dict[str, Any] = {
    "help": "Privacy radius, on a network along its edges",
    "unit": LENGTH,
    "panel": PRIVACY,
}
LARGE_DELTA: dict[str, Any] = {
    "help": "Accept a delta of 1/n or more, which promises nothing; to reproduce published experiments",
    "panel": EXPERT,
}
SPACING: dict[str, Any] = {
    "help": "Side of a mesh cell",
    "unit": LENGTH,
    "otherwise": "a public rule",
    "argument": "mesh",
}


class Neighbours(StrEnum):
    """Neighbouring relations."""

    ALPHA = "alpha"
    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"
    ADD_REMOVE_PERSON = "add-remove-person"


RELATION = Setting(
    name="relation",
    option="--relation",
    kind=str,
    choices=tuple(Neighbours),
    help="Which patterns must not be told apart",
    otherwise="alpha if --alpha is given",
    panel=PRIVACY,
)
USER = Setting(
    name="user",
    option="--user",
    kind=str,
    help="Column that tells whose point a row is: of each person at most --max-points-per-person points count, drawn "
    "at random",
    metavar="COLUMN",
    panel=PRIVACY,
)
CAP = Setting(
    name="max_points_per_person",
    option="--max-points-per-person",
    kind=int,
    help="Public cap on the points of one person",
    default=1,
    panel=PRIVACY,
)

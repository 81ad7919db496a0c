"""Settings of mechanisms: dataclass fields that declare options, and instances made from parsed options."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, Self, cast, get_args

from dpppsynth.contract.account import Planned
from dpppsynth.contract.statistic import measured_number
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.patterns import PointPattern

METHOD, PRIVACY, EXPERT = "Method", "Privacy", "Expert"
LENGTH = "the domain's unit"
KINDS = (float, int, bool, str, Path)
SETTING, PARTS = "setting", "parts"
TOTAL_VARIATION = (
    "Distance: total variation between the surrogate's normalised intensity and the released one; in brackets that of "
    "a uniform intensity, or of a public offset of all points, which need no data."
)


@dataclass(frozen=True)
class ParsedOptions:
    """Options of one mechanism, parsed from the command line.

    Attributes
    ----------
    mechanism : str
        Name of the mechanism, as on certificates.
    called : str
        The mechanism as it was asked for, such as "--method laplace".
    values : mapping
        Plain values by name of the setting.
    others : mapping
        Values of options of other mechanisms, by name of the option.
    named : bool
        Whether the mechanism was named, and not only its method.
    crs : str or None
        Coordinate system of inputs that do not name one.
    """

    mechanism: str
    called: str
    values: Mapping[str, Any]
    others: Mapping[str, Any]
    named: bool = False
    crs: str | None = None

    def __getitem__(self, name: str) -> Any:
        """The value, or None."""
        return self.values.get(name)


class Settings:
    """Base of synthesizers' public settings: dataclasses with checked fields.

    The class methods make an instance from options of the command line; families override those that their options
    need.
    """

    # Short form of the mechanisms' names; the name itself unless given.
    method: ClassVar[str] = ""
    # Other classes that make plans of the same mechanism, each with a short form.
    siblings: ClassVar[tuple[type["Settings"], ...]] = ()
    # Settings that a mechanism's name decides, by that name.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    # Options of other mechanisms that are refused for a reason of the class's own.
    refused: ClassVar[Mapping[str, str]] = {}
    # Reasons why further patterns are a new spend, and why --fixed-n is rejected.
    paid: ClassVar[str] = ""
    unfixed: ClassVar[str] = ""
    # Explanation of the distances in a rehearsal.
    distance: ClassVar[str] = TOTAL_VARIATION
    # Whether clients send reports, which `dpppsynth local` draws and counts.
    reports: ClassVar[bool] = False
    # Whether instances made from options depend on the number of points.
    uses_number: ClassVar[bool] = False

    def plan(self, *args: Any, **options: Any) -> Planned:
        """Make the release plan from public parameters alone."""
        raise NotImplementedError

    def neighbouring(self) -> Relation:
        """The neighbouring relation in force."""
        raise NotImplementedError

    def ceiling(self, domain: Domain, **options: Any) -> Guarantee:
        """Largest guarantee that a release may spend, whatever the number of points."""
        raise NotImplementedError

    @classmethod
    def require_options(cls, options: ParsedOptions) -> None:
        """Refuse combinations of options that are invalid on any domain; InputError."""
        for name, value in cls.preset(options).items():
            if options.named and options[name] not in (None, value):
                msg = f"{name}: {options.called} means {value}; leave it out"
                raise InputError(msg)
        for name, reason in cls.refused.items():
            if options.others.get(name) is not None:
                option = name.replace("_", "-")
                msg = f"--{option}: {options.called} {reason}; leave --{option} out"
                raise InputError(msg)
        for each in settings_of(cls):
            if each.default is MISSING and options[each.name] is None:
                what = each.help[0].lower() + each.help[1:]
                msg = f"{each.name}: {options.called} needs a {what}, for instance {each.option} {each.example}"
                raise InputError(msg)

    @classmethod
    def from_options(cls, options: ParsedOptions, domain: Domain, n: int | None = None) -> Self:
        """Settings with these options on a domain; `n` is the public number of points, where it is known.

        Raises
        ------
        InputError, PrivacyCheckError
        """
        return cls(**{**cls.plain(options), **cls.objects(options, domain)})

    @classmethod
    def preset(cls, options: ParsedOptions) -> Mapping[str, Any]:
        """Settings fixed by the mechanism's name."""
        return cls.presets.get(options.mechanism, {})

    @classmethod
    def plain(cls, options: ParsedOptions) -> dict[str, Any]:
        """Constructor arguments that are plain values."""
        known = {each.name: each for each in map(_own_setting, fields(cast(Any, cls))) if each is not None}
        given = {name: each.value(options[name]) for name, each in known.items() if options[name] is not None}
        return {**cls.preset(options), **given}

    @classmethod
    def objects(cls, options: ParsedOptions, domain: Domain) -> dict[str, Any]:
        """Constructor arguments built from several values, or with the domain."""
        return {}

    @classmethod
    def relation_from(cls, options: ParsedOptions) -> Relation:
        """Neighbouring relation from the options; no domain is needed."""
        return cls(**cls.plain(options)).neighbouring()

    @classmethod
    def user_column(cls, options: ParsedOptions) -> str | None:
        """Column of person identifiers; None where none is read."""
        column: str | None = options["user"] or getattr(cls, "user", None)
        return column

    @classmethod
    def marks_from(cls, options: ParsedOptions) -> Marks | None:
        """Types and times, as the columns of a file are read; None where none are."""
        return None

    @classmethod
    def number_in(cls, options: ParsedOptions, pattern: PointPattern) -> int:
        """Public number in a pattern that a plan needs: of points, or of persons."""
        return measured_number(cls.relation_from(options), pattern)

    @classmethod
    def counted_each(cls, options: ParsedOptions) -> int:
        """Number of points of each person that count in it, where a column of persons is read."""
        cap = cls.relation_from(options).user_cap
        return 1 if cap is None else cap.most

    @classmethod
    def require_patterns(cls, options: ParsedOptions, patterns: int) -> None:
        """Refuse further patterns where each costs budget and no plan pays for it; InputError."""

    @classmethod
    def require_columns(cls, options: ParsedOptions, columns: Iterable[str], name: str) -> None:
        """Refuse a file `name` by those of its columns that no option names, before a row is read; InputError."""

    @classmethod
    def require_size(cls, options: ParsedOptions, n: int | None, by: str | None) -> None:
        """Refuse a number of points, or a mark of levels, that does not suit the mechanism; InputError."""
        if by is not None and not hasattr(cls, "plan_by"):
            msg = f"by: {options.called} releases all points at once; leave --by out"
            raise InputError(msg)


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
        On the command line, such as "--length-scale", or "--shrink/--no-shrink" for a truth value; made from the name
        unless given.
    kind : type, optional
        One of KINDS: that of the field's annotation unless given, or text where there is no field.
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

    def typed(self, value: object) -> str:
        """The form of the option that gives a value: of "--shrink/--no-shrink" the second one for False."""
        yes, _, no = self.option.partition("/")
        return no if no and value is False else yes

    def __post_init__(self) -> None:
        if self.name and not self.option:
            object.__setattr__(self, "option", _option_named(self.name))

    @property
    def parameter(self) -> str:
        """The option in the form of an identifier."""
        return self.option.partition("/")[0].lstrip("-").replace("-", "_")

    @property
    def phrase(self) -> str:
        """Help text with the unit."""
        return f"{self.help}, in {self.unit}" if self.unit else self.help

    @property
    def taken(self) -> str:
        """Text for the default; empty where there is none."""
        return self.otherwise or _written(self.default)

    def value(self, given: Any) -> Any:
        """Constructor argument made from a plain value."""
        return given if self.convert is None else self.convert(given)


def setting(
    default: Any = MISSING,
    *,
    help: str,  # noqa: A002 - the word of command lines
    parts: Iterable[Setting] = (),
    **declared: Any,
) -> Any:
    """A field of a dataclass that is a setting; `declared` are attributes of `Setting`.

    Unless given, the option is named like the field, and the kind is that of the annotation. With `parts` the field
    takes other options as well, as in `made_of`.
    """
    return field(default=default, metadata={SETTING: Setting(help=help, **declared), PARTS: tuple(parts)})


def declared_as(declared: Setting, default: Any = None) -> Any:
    """Dataclass field with a shared declaration."""
    return field(default=default, metadata={SETTING: declared})


def made_of(*parts: Setting) -> Any:
    """Dataclass field, None by default, that `Settings.objects` fills from several options."""
    return field(default=None, metadata={PARTS: parts})


def settings_of(kind: type) -> tuple[Setting, ...]:
    """The settings that the fields of a dataclass declare; those that objects are made of come last."""
    own = [_own_setting(each) for each in fields(kind)]
    parts = [replace(part, kind=part.kind or str) for each in fields(kind) for part in each.metadata.get(PARTS, ())]
    return (*(each for each in own if each is not None), *parts)


def _own_setting(each: Field[Any]) -> Setting | None:
    """The setting that a field is; None of one that is made of parts, or no option."""
    declared: Setting | None = each.metadata.get(SETTING)
    if declared is None:
        return None
    kind = declared.kind or _plain(each.type)
    option = _option_named(each.name)
    if kind is bool and each.default is True:
        option += f"/--no-{option[2:]}"
    return replace(declared, name=each.name, kind=kind, option=declared.option or option, default=each.default)


def _option_named(name: str) -> str:
    return "--" + name.replace("_", "-")


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
    choices=tuple(Neighbours),
    help="Which patterns must not be told apart",
    otherwise="alpha if --alpha is given",
    panel=PRIVACY,
)
USER = Setting(
    name="user",
    help="Column that tells whose point a row is: of each person at most --max-points-per-person points count, drawn "
    "at random",
    metavar="COLUMN",
    panel=PRIVACY,
)
CAP = Setting(
    name="max_points_per_person", kind=int, help="Public cap on the points of one person", default=1, panel=PRIVACY
)
# What a relation between points is made of, beside --alpha.
NEIGHBOURS = (RELATION, CAP, USER)

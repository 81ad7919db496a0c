"""`Method`: the requested mechanism and the parsed options of its settings."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from dpppsynth.contract.mark_settings import DESCRIBED
from dpppsynth.contract.registry import mechanism, names
from dpppsynth.contract.settings import CAP, ParsedOptions, Settings, settings_of
from dpppsynth.core.errors import InputError
from dpppsynth.core.single_entry_cache import SingleEntryCache
from dpppsynth.core.wording import add_options

if TYPE_CHECKING:
    from dpppsynth.privacy import Relation
    from dpppsynth.spatial.domains import Domain

METHOD_HELP = "Short form of --mechanism, for the first one of its kind: {}."
# Where more methods have an option, errors do not name them.
FEW = 2


class Offer(NamedTuple):
    """A mechanism and a class of its settings."""

    name: str
    settings: type[Settings]

    @property
    def method(self) -> str:
        """Short form of the name."""
        return self.settings.method or self.name


def _offers_of(name: str) -> list[Offer]:
    settings = mechanism(name).settings
    return [Offer(name, each) for each in (settings, *settings.siblings)]


@cache
def offers(*, reports: bool = False) -> tuple[Offer, ...]:
    """All mechanisms, or those whose clients send reports."""
    every = [each for name in names() for each in _offers_of(name)]
    return tuple(each for each in every if each.settings.reports or not reports)


def short_forms(known: Iterable[Offer]) -> dict[str, str]:
    """The first mechanism of each short form."""
    first: dict[str, str] = {}
    for offer in known:
        first.setdefault(offer.method, offer.name)
    return first


def resolve_mechanism(method: str | None, name: str | None, *, reports: bool = False) -> tuple[Offer, str]:
    """Requested mechanism and the text of the request, or an InputError; imports few families."""
    word = name or method
    if word is None:
        msg = "mechanism: say which, for instance --mechanism laplace-cells, or --method laplace"
        raise InputError(msg)
    called = f"--method {method}" if method is not None else f"--mechanism {name}"
    # Families that the word recalls come first; others follow, for short forms that recall none.
    prefix, part = method or word, word.partition("-")[0]
    for known in sorted(names(), key=lambda each: (each != word, not each.startswith(prefix), part not in each)):
        for form, offer in _forms(_offers_of(known), method):
            if name in (None, form) and (offer.settings.reports or not reports):
                return offer, called
    raise _unknown(method, name, reports=reports)


def _forms(known: Iterable[Offer], method: str | None) -> list[tuple[str, Offer]]:
    """Names on certificates, their last parts beside a method, and methods."""
    family = [offer for offer in known if method in (None, offer.method)]
    other = [(o.method if method is None else o.name.removeprefix(f"{method}-"), o) for o in family]
    return [(offer.name, offer) for offer in family] + other


def _unknown(method: str | None, name: str | None, *, reports: bool) -> InputError:
    forms = _forms(offers(reports=reports), method)
    if not forms:
        return InputError(f"method: no mechanism has the short form {method!r}")
    words = dict.fromkeys(word for word, _ in (forms if method is None else forms[: len(forms) // 2]))
    beside = "" if method is None else f" beside --method {method}"
    return InputError(f"mechanism: expected one of {', '.join(map(repr, words))}{beside}, got {name!r}")


class Method:
    """A mechanism, and the values of its options.

    Attributes
    ----------
    name : str
        Of the mechanism, as certificates have it; on another kind of domain it may be its sibling's.
    settings : type of Settings
    options : ParsedOptions
    """

    # Whether only mechanisms are meant whose clients send one report each.
    reports: ClassVar[bool] = False
    # Names of the options that help shows; None for all.
    shown: ClassVar[frozenset[str] | None] = None

    name: str
    settings: type[Settings]
    options: ParsedOptions

    def __init__(self, values: Mapping[str, Any], crs: str | None = None) -> None:
        plain = {name: str(value) if isinstance(value, StrEnum) else value for name, value in values.items()}
        method, name = plain.pop("method", None), plain.pop("mechanism", None)
        (self.name, self.settings), called = resolve_mechanism(method, name, reports=self.reports)
        add_options(_vocabulary(self.settings, plain))
        own = {each.parameter: each.name for each in settings_of(self.settings)}
        parsed = {name: plain.get(parameter) for parameter, name in own.items()}
        # One point a person is what every promise about points is about.
        others = {
            name: value
            for name, value in plain.items()
            if name not in own and value is not None and (name, value) != (CAP.name, CAP.default)
        }
        self.options = ParsedOptions(self.name, called, parsed, others, named=name is not None, crs=crs)
        self.settings.require_options(self.options)
        for other, value in others.items():
            # Zero asks for nothing.
            if value or value is False:
                msg = f"--{other.replace('_', '-')}: not an option of {called}; leave it out{_or_take(other)}"
                raise InputError(msg)
        self._last: SingleEntryCache[Any] = SingleEntryCache()

    def neighbours(self) -> "Relation":
        """The neighbouring relation in force."""
        return self.settings.relation_from(self.options)

    def synthesizer(self, domain: "Domain", n: int | None = None) -> Any:
        """The synthesizer, with its mesh where its fineness is given; `n` is the public number of points, if known.

        The same one for the same domain: what it has settled without the points it need not settle again.
        """
        # Validate the relation before anything is made on the domain.
        self.neighbours()
        key = domain.fingerprint(), n if self.settings.uses_number else None
        return self._last.get(key, lambda: self.settings.from_options(self.options, domain, n))

    def require_planned(self, mechanism: str) -> None:
        """Refuse a mechanism other than the planned one, with an InputError."""
        if self.options.named and mechanism != self.name:
            msg = f"mechanism: with these options, on this domain, {self.name} is {mechanism}; take that name"
            raise InputError(msg)


class ReportMethod(Method):
    """A mechanism whose clients send one report each, all at once or in one of two rounds."""

    reports = True


class OptionalMethod(Method):
    """Options of a mechanism that need not be named."""

    def __init__(self, values: Mapping[str, Any], crs: str | None = None) -> None:
        self.values, self.crs = values, crs

    @property
    def named(self) -> bool:
        """Whether a mechanism is named."""
        return any(self.values.get(name) is not None for name in ("method", "mechanism"))

    def settled(self) -> Method:
        """The requested mechanism."""
        return Method(self.values, self.crs)


class ReadMethod(OptionalMethod):
    """Options of a mechanism, of which those that say how rows are read are shown."""

    shown = frozenset({each.name for each in DESCRIBED} | {"user", "no_user"})


def _or_take(parameter: str) -> str:
    """Words on the methods that have an option, where they are few."""
    takers = dict.fromkeys(
        offer.method for offer in offers() if parameter in {each.parameter for each in settings_of(offer.settings)}
    )
    return f", or take --method {' or '.join(takers)}" if 0 < len(takers) <= FEW else ""


def _vocabulary(settings: type[Settings], values: Mapping[str, Any]) -> dict[str, str]:
    """Options by the names of the settings and arguments that errors name.

    Of an argument that several options make, those that were given, or else all of them.
    """
    found: dict[str, dict[str, bool]] = {}
    for each in settings_of(settings):
        for name in {each.name, each.argument, each.parameter} - {""}:
            value = values.get(each.parameter)
            found.setdefault(name, {})[each.typed(value)] = value is not None
    return {
        name: ", ".join(form for form in forms if forms[form] or not any(forms.values()))
        for name, forms in found.items()
    }

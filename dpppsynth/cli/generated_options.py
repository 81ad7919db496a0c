"""Options of all mechanisms, built from the settings that they declare, and the choice of one."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from inspect import Parameter
from typing import Annotated, Any

from typer import Option

from dpppsynth.contract.mechanism_options import Given, MechanismOptions
from dpppsynth.contract.registry import mechanism, names
from dpppsynth.contract.settings import EXPERT, METHOD, Setting
from dpppsynth.core.errors import InputError

METHODS = "Short form of --mechanism, for the first one of its kind: {}."
# Where so many methods have an option, its help does not name them; and where more have it, errors do not.
SEVERAL, FEW = 4, 2
Offers = Mapping[str, tuple[MechanismOptions, ...]]


@cache
def offered(*, reports: bool = False) -> Offers:
    """All mechanisms by their names; or those whose clients send reports, all at once."""
    every = {name: mechanism(name).options for name in names()}
    return {name: each for name, each in every.items() if not reports or each[0].reports}


def meant(method: str | None, name: str | None, *, reports: bool = False) -> Offers | None:
    """The one mechanism that is asked for, found without importing more families than need be; None where none is."""
    word = name or method
    if word is None:
        return None
    # Families that the word recalls come first; others follow, for short forms that recall none.
    prefix, part = method or word, word.partition("-")[0]
    for known in sorted(names(), key=lambda each: (each != word, not each.startswith(prefix), part not in each)):
        offers = {known: mechanism(known).options}
        try:
            choose(offers, method, name)
        except InputError:
            continue
        return offers if not reports or offers[known][0].reports else None
    return None


def parameters(offers: Offers, *, methods: bool) -> tuple[list[Parameter], list[Parameter]]:
    """Parameters of a command with the options of these mechanisms, annotated as typer reads them; those for experts.

    The first is `--mechanism`, the second, if there is to be one, `--method`.
    """
    every = [each for options in offers.values() for each in options]
    found: dict[str, list[tuple[str, Setting]]] = {}
    for options in every:
        for each in options.declared:
            found.setdefault(each.parameter, []).append((options.method, each))
    # A family's own field of this name is what the mechanism's name says.
    found.pop("mechanism", None)
    text = f"Mechanism, as certificates name it: {', '.join(offers)}."
    usual = [_annotated("mechanism", str, help=text, metavar="NAME", rich_help_panel=METHOD)]
    expert: list[Parameter] = []
    if methods:
        first = _meant_by(offers)
        text = METHODS.format(", ".join(f"{word} for {name}" for word, name in first.items() if word != name))
        usual.append(_annotated("method", _words(first), help=text, rich_help_panel=METHOD))
    for name, declared in found.items():
        (expert if declared[0][1].panel == EXPERT else usual).append(_parameter(name, declared))
    return usual, expert


def _meant_by(offers: Offers) -> dict[str, str]:
    """The first mechanism of each short form."""
    first: dict[str, str] = {}
    for name, known in offers.items():
        for options in known:
            first.setdefault(options.method, name)
    return first


def _parameter(name: str, declared: list[tuple[str, Setting]]) -> Parameter:
    kinds = {each.kind for _, each in declared}
    if len(kinds) > 1:
        msg = f"{name}: mechanisms declare it with different types, {kinds}"
        raise TypeError(msg)
    first = declared[0][1]
    choices = dict.fromkeys(word for _, each in declared for word in each.choices)
    shown = [(method, each) for method, each in declared if not each.hidden]
    return _annotated(
        name,
        _words(choices) if choices else first.kind,
        first.option,
        help=_help(shown),
        metavar=first.metavar,
        hidden=not shown,
        rich_help_panel=(shown or declared)[0][1].panel,
    )


def _annotated(name: str, kind: Any, *forms: str, **shown: Any) -> Parameter:
    option = Option(*forms, show_default=False, **shown)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option])


def _words(words: Iterable[str]) -> Any:
    known: Any = StrEnum  # made while it runs, which type checkers cannot follow
    return known("Words", {word.replace("-", "_").replace(".", "_").upper(): word for word in words})


def _help(declared: list[tuple[str, Setting]]) -> str:
    """Help of an option: its phrases, the methods that have it, and their defaults."""
    phrases = _grouped((method, each.phrase) for method, each in declared)
    texts = []
    for phrase, methods in phrases.items():
        whom = "" if len(phrases) == 1 and len(methods) > SEVERAL else f" ({', '.join(methods)})"
        defaults = _grouped((method, each.taken) for method, each in declared if each.phrase == phrase and each.taken)
        same = len(defaults) == 1 and len(next(iter(defaults.values()))) == len(methods)
        taken = [f"{default}" if same else f"{default} ({', '.join(of)})" for default, of in defaults.items()]
        texts.append(f"{phrase}{whom}." + (f" Unless given: {'; '.join(taken)}." if taken else ""))
    return " ".join(texts)


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Methods by text, each once."""
    found: dict[str, dict[str, None]] = {}
    for method, text in pairs:
        found.setdefault(text, {})[method] = None
    return {text: list(methods) for text, methods in found.items()}


def choose(offers: Offers, method: str | None, name: str | None) -> tuple[str, MechanismOptions, str]:
    """Name and options of the mechanism that is meant, and the words that it was asked for with.

    Raises
    ------
    InputError
    """
    family = [
        (known, options) for known, each in offers.items() for options in each if method in (None, options.method)
    ]
    if not family:
        msg = f"method: no mechanism has the short form {method!r}"
        raise InputError(msg)
    if name is None:
        if method is None:
            msg = "mechanism: say which, for instance --mechanism laplace-cells, or --method laplace"
            raise InputError(msg)
        return (*family[0], f"--method {method}")
    # Names on certificates, their last parts beside a method, and methods.
    called = [(known, known, options) for known, options in family]
    if method is None:
        called += [(options.method, known, options) for known, options in family]
    else:
        called += [(known.removeprefix(f"{method}-"), known, options) for known, options in family]
    for word, known, options in called:
        if word == name:
            return known, options, f"--mechanism {name}" if method is None else f"--method {method}"
    words = dict.fromkeys(word for word, *_ in (called if method is None else called[: len(family)]))
    beside = "" if method is None else f" beside --method {method}"
    msg = f"mechanism: expected one of {', '.join(map(repr, words))}{beside}, got {name!r}"
    raise InputError(msg)


def given(options: MechanismOptions, values: Mapping[str, Any], called: str, *, named: bool) -> Given:
    """The values given for a mechanism's settings; those given for others' are refused by name.

    Raises
    ------
    InputError
    """
    own = {each.parameter: each.name for each in options.declared}
    plain = {name: str(value) if isinstance(value, StrEnum) else value for name, value in values.items()}
    foreign = {name: value for name, value in plain.items() if name not in own}
    asked = Given(called, {name: plain.get(parameter) for parameter, name in own.items()}, foreign, named)
    options.require(asked)
    for name, value in foreign.items():
        # Zero asks for nothing.
        if value or value is False:
            msg = f"--{name.replace('_', '-')}: not an option of {called}; leave it out{_or_take(name)}"
            raise InputError(msg)
    return asked


def _or_take(parameter: str) -> str:
    """Words on the methods that have an option, where they are few."""
    every = (options for each in offered().values() for options in each)
    takers = dict.fromkeys(o.method for o in every if parameter in {each.parameter for each in o.declared})
    return f", or take --method {' or '.join(takers)}" if 0 < len(takers) <= FEW else ""


def vocabulary(options: MechanismOptions, values: Mapping[str, Any]) -> dict[str, str]:
    """Options by the names of the settings and arguments that errors name.

    Of an argument that several options make, those that were given, or else all of them.
    """
    named: dict[str, dict[str, bool]] = {}
    for each in options.declared:
        for name in {each.name, each.argument, each.parameter} - {""}:
            form = each.option.partition("/")[0]
            named.setdefault(name, {})[form] = values.get(each.parameter) is not None
    return {
        name: ", ".join(form for form in found if found[form] or not any(found.values()))
        for name, found in named.items()
    }

"""Click commands from functions and dataclasses: annotated parameters, fields and settings of mechanisms are options.

A parameter of a command whose type is a dataclass stands for the options of its fields, so that several commands share
them and check them in one place. One whose type is a `Method` stands for the options of mechanisms, which are imported
when the command is called.
"""

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, field, is_dataclass, make_dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, get_type_hints

from typer import Option, Typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from dpppsynth.cli.method import METHOD_HELP, Method, Offer, offers, resolve_mechanism, short_forms
from dpppsynth.contract.settings import EXPERT, METHOD, Setting, settings_of
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import add_options
from dpppsynth.spatial.marks import as_list, listed

# The parameter of commands that names the mark whose levels are released.
MARK = "by"
# Where so many methods have an option, its help does not name them.
SEVERAL = 4
# Options of lists that may be given once for each value, and whether a name and an equals sign stand in front.
LISTS = {"--levels": False, "--types": True}
HELP = ("--help", "-h")
# Options that the help of a command with mechanisms shows, by name.
COMMON = frozenset(
    [
        "mechanism",
        "method",
        "epsilon",
        "alpha",
        "relation",
        "n",
        "window",
        "window_file",
        "network",
        "crs",
        "to_crs",
        "snap",
        "out",
        "patterns",
        "ledger",
        "help",
    ]
)
# Name, annotated type and default of an option.
Declared = tuple[str, Any, Any]


def passing_over(whole: Callable[..., None]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take the options of a `whole` one that it has no use for, so that its command line can be pasted.

    They are parsed, and neither listed in help nor passed on.
    """

    def marked(function: Callable[..., None]) -> Callable[..., None]:
        vars(function)["passes_over"] = whole
        return function

    return marked


def _passed_over(function: Callable[..., None], own: Iterable[Any]) -> list[Any]:
    """Options of the whole command that are not a command's own."""
    whole = getattr(function, "passes_over", None)
    if whole is None:
        return []
    taken = {form for each in own for form in each.opts}
    found: list[Any] = [copy.copy(each) for each in command_of(whole).params if taken.isdisjoint(each.opts)]
    for each in found:
        each.hidden, each.required, each.expose_value = True, False, False
    return [each for each in found if each.param_type_name == "option"]


def command_of(function: Callable[..., None]) -> "Command":
    """The command of a function, whose docstring is the help."""
    hints = get_type_hints(function, include_extras=True)
    signature = inspect.signature(function).parameters
    kinds = {name: hints[name] for name in signature if isinstance(hints[name], type)}
    groups: dict[str, Any] = {name: kind for name, kind in kinds.items() if is_dataclass(kind)}
    parsers = {name: _click(_container(map(_alone, settings_of(kind))), TyperCommand) for name, kind in groups.items()}
    methods = {name: kind for name, kind in kinds.items() if issubclass(kind, Method)}
    own = [(n, hints[n], each.default) for n, each in signature.items() if n not in groups and n not in methods]
    command: Command = _click(_container(own), Command, function.__name__, inspect.getdoc(function))
    parameters = {each.name: [each] for each in command.params}
    parameters |= {name: parser.params for name, parser in parsers.items()}
    own_params = [each for name in signature for each in parameters.get(name, ())]
    command.params = [*own_params, *_passed_over(function, own_params)]
    command.function, command.groups, command.parsers, command.own = function, groups, parsers, command.callback
    command.method = next(iter(methods.items()), None)
    return command


def group_of(name: str, functions: Iterable[Callable[..., None]], text: str) -> TyperGroup:
    """Several commands under one name, with a help text."""
    commands: dict[str, Any] = {each.__name__: command_of(each) for each in functions}
    return TyperGroup(name=name, commands=commands, help=text, no_args_is_help=True, rich_markup_mode="markdown")


class Command(TyperCommand):
    """A command that fills dataclasses, and one with at most one mark whose levels are released.

    Of other options the last counts, as scripts want it.
    """

    function: Callable[..., None]
    # Dataclasses by parameters of the function, parsers of their values, and that of the other parameters.
    groups: Mapping[str, Any]
    parsers: Mapping[str, Any]
    own: Any
    # The parameter that stands for the options of mechanisms, and its type.
    method: tuple[str, type[Method]] | None
    # The parser of their values, once the mechanism is known.
    settled: Any = None

    def make_context(self, info_name: Any, args: list[str], *more: Any, **settings: Any) -> Any:
        """The context of the command with the options of the mechanism that is named, or with those of all."""
        if self.method is None or self.settled is not None:
            return super().make_context(info_name, args, *more, **settings)
        if set(HELP) & set(args) and self.method[1].shown is None:
            asked = _given(args, "--mechanism") or _given(args, "--method")
            above = settings.get("parent")
            path = f"{above.command_path} {info_name}" if above is not None else str(info_name)
            command = self.brief(path.removeprefix("dpppsynth ")) if asked is None else self.of_mechanism(asked)
            return command.make_context(info_name, args, *more, **settings)
        reports = self.method[1].reports
        try:
            named, _ = resolve_mechanism(_given(args, "--method"), _given(args, "--mechanism"), reports=reports)
            command = self._with_options(named)
            known = {form for each in command.params for form in (*each.opts, *each.secondary_opts)}
            every = not {word.partition("=")[0] for word in args if word.startswith("-")} <= known
        except InputError:
            every = True
        # Help, or options of other mechanisms, which are refused by name.
        command = self.complete if every else command
        return command.make_context(info_name, args, *more, **settings)

    @cached_property
    def complete(self) -> "Command":
        """The command with the options of all mechanisms, for completion."""
        reports = self.method is not None and self.method[1].reports
        return self._with_options(*offers(reports=reports))

    def brief(self, name: str) -> "Command":
        """The command whose help shows common options alone."""
        command = copy.copy(self.complete)
        params: list[Any] = [copy.copy(each) for each in command.params]
        command.params = params
        for each in params:
            each.hidden = getattr(each, "hidden", False) or not (
                each.name in COMMON or each.param_type_name == "argument"
            )
        example = next(iter(short_forms(offers(reports=self.method is not None and self.method[1].reports))))
        command.epilog = (
            f"These are the common options. Those of one mechanism: `dpppsynth help {name} {example}`; all of them: "
            f"`dpppsynth help {name} all`."
        )
        return command

    def of_mechanism(self, name: str) -> "Command":
        """The command with the options of a mechanism or a method; of all of them for "all".

        InputError for an unknown one.
        """
        if name == "all":
            return self.complete
        reports = self.method is not None and self.method[1].reports
        is_method = name in short_forms(offers(reports=reports))
        offer, _ = resolve_mechanism(name if is_method else None, None if is_method else name, reports=reports)
        return self._with_options(offer)

    def _with_options(self, *known: Offer) -> "Command":
        usual, expert = mechanism_options(known)
        command = copy.copy(self)
        settled = _click(_container([*usual, *expert]), TyperCommand)
        shown = None if self.method is None else self.method[1].shown
        for each in settled.params:
            each.hidden = each.hidden or (shown is not None and each.name not in shown)
        command.params = [*settled.params[: len(usual)], *self.params, *settled.params[len(usual) :]]
        command.settled = settled
        return command

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse a second mark, which would silently replace the first."""
        args = _joined(args)
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        if [each.name for each in order].count(MARK) > 1:
            msg = f"{MARK}: takes one mark, and was given several; join their columns into one, or release by one alone"
            raise InputError(msg)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Call the function with the parsed options."""
        # What other commands have as options is not to be asked for here.
        add_options({name: name for each in self.params if each.param_type_name == "argument" and (name := each.name)})
        made = {name: kind(**_values(self.parsers[name], ctx.params)) for name, kind in self.groups.items()}
        if self.method is not None:
            name, kind = self.method
            # Public layers of a mechanism are inputs, too.
            crs = next((each.crs for each in made.values() if hasattr(each, "crs")), None)
            made[name] = kind(_values(self.settled, ctx.params), crs)
        grouped = {each.name for group in (*self.parsers.values(), self.settled) if group for each in group.params}
        own = {name: value for name, value in ctx.params.items() if name not in grouped}
        return self.function(**vars(self.own(**own)), **made)


def _values(parser: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    return vars(parser.callback(**{each.name: values[each.name] for each in parser.params}))


def _container(declared: Iterable[Declared]) -> type:
    """A dataclass with these fields."""
    empty = inspect.Parameter.empty
    columns = [(n, kind, field() if default is empty else field(default=default)) for n, kind, default in declared]
    return make_dataclass("Values", columns, kw_only=True)


def _click(maker: Any, kind: type[TyperCommand], name: str = "", text: str | None = None) -> Any:
    """A command whose options are the parameters of `maker`, which it calls."""
    app = Typer(rich_markup_mode="markdown", add_completion=False, pretty_exceptions_enable=False)
    app.command(name or None, cls=kind, help=text)(maker)
    return get_command(app)


def _given(args: list[str], option: str) -> str | None:
    """The value of an option among the words of a command; None where it has none."""
    values = [after for word, after in pairwise([*args, ""]) if word == option]
    values += [word.partition("=")[2] for word in args if word.startswith(f"{option}=")]
    return values[-1] if values else None


def _joined(args: list[str]) -> list[str]:
    """Words of a command in which an option of a list that is given several times, each with a value, is given once."""
    words = list(args)
    for option, named in LISTS.items():
        at = [k for k, (word, _) in enumerate(pairwise([*words, ""])) if word == option]
        if len(at) < 2 or "--" in words[: at[-1]] or at[-1] + 1 == len(words):
            continue
        heads, values = zip(
            *((words[k + 1].partition("=")[::2] if named else ("", words[k + 1])) for k in at), strict=True
        )
        if len(set(heads)) > 1:
            continue
        cells = [cell for value in values for cell in (listed(option, value) if value.startswith('"') else [value])]
        words[at[0] + 1] = f"{heads[0]}=" * named + as_list(cells)
        words = [word for k, word in enumerate(words) if k - 1 not in at[1:] and k not in at[1:]]
    return words


def mechanism_options(known: tuple[Offer, ...]) -> tuple[list[Declared], list[Declared]]:
    """Options of mechanisms, `--mechanism` and `--method` first; and those for experts."""
    found: dict[str, list[tuple[str, Setting]]] = {}
    for offer in known:
        for each in settings_of(offer.settings):
            found.setdefault(each.parameter, []).append((offer.method, each))
    # A class's own field of this name is what the mechanism's name says.
    found.pop("mechanism", None)
    text = f"Mechanism, as certificates name it: {', '.join(dict.fromkeys(each.name for each in known))}."
    first = short_forms(known)
    forms = METHOD_HELP.format(", ".join(f"{word} for {name}" for word, name in first.items() if word != name))
    usual = [
        _option("mechanism", str, help=text, metavar="NAME", rich_help_panel=METHOD),
        _option("method", _words(first), help=forms, rich_help_panel=METHOD),
    ]
    expert: list[Declared] = []
    for name, declared in found.items():
        (expert if declared[0][1].panel == EXPERT else usual).append(_of_settings(name, declared))
    return usual, expert


def _of_settings(name: str, declared: list[tuple[str, Setting]]) -> Declared:
    """One option of the settings that mechanisms declare for it."""
    kinds = {each.kind for _, each in declared}
    if len(kinds) > 1:
        msg = f"{name}: mechanisms declare it with different types, {kinds}"
        raise TypeError(msg)
    first = declared[0][1]
    choices = dict.fromkeys(word for _, each in declared for word in each.choices)
    kind = _words(choices) if choices else first.kind
    text = option_help(declared)
    return _option(name, kind, first.option, help=text, metavar=first.metavar, rich_help_panel=first.panel)


def _alone(setting: Setting) -> Declared:
    """The option of a setting that no mechanism is named to."""
    empty = inspect.Parameter.empty
    default = empty if setting.default is MISSING else setting.default
    kind: Any = _words(setting.choices) if setting.choices else setting.kind
    return setting.name, Annotated[kind | None, option_of(setting)], default


def _option(name: str, kind: Any, *forms: str, **shown: Any) -> Declared:
    return name, Annotated[kind | None, Option(*forms, show_default=False, **shown)], None


def option_of(setting: Setting) -> Any:
    """Annotation of a setting for commands without a mechanism."""
    text = f"{setting.phrase}." + (f" Unless given: {setting.taken}." if setting.taken else "")
    shown: dict[str, Any] = {"metavar": setting.metavar, "rich_help_panel": setting.panel, "show_default": False}
    return Option(*filter(None, [setting.option]), help=text, **shown)


def _words(words: Iterable[str]) -> Any:
    known: Any = StrEnum  # made while it runs, which type checkers cannot follow
    return known("Words", {word.replace("-", "_").replace(".", "_").upper(): word for word in words})


def option_help(declared: list[tuple[str, Setting]]) -> str:
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

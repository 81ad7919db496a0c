"""Tables of the pages, made from the code: commands, mechanisms, settings, rules, codes, public names, rooms, families.

A page says where with `<!-- table: NAME -->`. The site puts the table there whenever it is built, and

    python docs/_ext/generated_tables.py NAME

prints it for whoever reads the pages without the site.
"""

import ast
import inspect
import re
import string
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import dpppsynth
from dpppsynth.cli.console import EXIT_CODES
from dpppsynth.cli.method import offers
from dpppsynth.cli.options import option_help
from dpppsynth.cli.program import EVERY, loaded
from dpppsynth.contract import registry, rules
from dpppsynth.contract.examples import EXPECTED, Example, N, Refusal
from dpppsynth.contract.settings import EXPERT, Setting, settings_of
from dpppsynth.privacy import AddRemove, AlphaNeighbours, Guarantee, PureDP, ReplaceOne, catalogue
from dpppsynth.spatial.domains import Window

DOCS = Path(__file__).parents[1]
PACKAGE = Path(dpppsynth.__file__).parent
MARK = re.compile(r"<!-- table: ([a-z-]+) -->")
# Relations that a mechanism of points admits or refuses.
RELATIONS = (AlphaNeighbours, ReplaceOne, AddRemove)
# Of most mechanisms of a kind, those that are left out are named, up to so many.
FEW = 5


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; bars in cells are escaped."""
    head = list(head)
    lines = [head, ["---"] * len(head), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: object) -> str:
    return f"`{text}`"


def first_line(text: str | None) -> str:
    """First line of a docstring or a help text, without its full stop."""
    return (text or "").strip().partition("\n")[0].removesuffix(".")


def prose(text: str) -> str:
    """A help text with its options as code, since two hyphens would become a dash."""
    return re.sub(r"(?<![\w`-])--[a-z][a-z-]*", r"`\g<0>`", text)


# Commands


def every_command() -> Iterator[tuple[str, Any]]:
    """Commands by their full names; those of mechanisms with the common options alone."""
    for name in EVERY:
        found = loaded(name)
        held = getattr(found, "commands", None)
        for full, each in {name: found}.items() if held is None else ((f"{name} {k}", c) for k, c in held.items()):
            yield full, each.brief(full) if each.method else each


def shown(command: Any, kind: str) -> list[Any]:
    """Options or arguments that the help of a command lists."""
    return [each for each in command.params if each.param_type_name == kind and not getattr(each, "hidden", False)]


def commands() -> str:
    """What each command does, and its options."""
    rows = []
    for name, command in every_command():
        usage = " ".join([name, *(each.name.upper() for each in shown(command, "argument"))])
        options = " ".join(code(each.opts[0]) for each in shown(command, "option"))
        rows.append([code(usage), first_line(command.help), options])
    return table(["command", "does", "options (of those with `--method` the common ones)"], rows)


def common_options() -> str:
    """The options that commands of mechanisms share."""
    found = shown(loaded("synthesize").brief("synthesize"), "option")
    return table(["option", "means"], ([code(each.opts[0]), prose(each.help)] for each in found))


def exit_codes() -> str:
    """What commands end with, and the errors behind it."""
    rows = [["0", "done", ""]]
    rows += ([str(code_), first_line(kind.__doc__), code(kind.__name__)] for kind, code_ in EXIT_CODES.items())
    return table(["exit code", "means", "in Python"], rows)


# Mechanisms


@dataclass(frozen=True)
class Facts:
    """What the examples of a mechanism show."""

    record: Any
    domains: list[str]
    relations: dict[type, str]
    guarantees: list[Guarantee]


def kind(domain: Any) -> str:
    return "windows" if isinstance(domain, Window) else "networks"


def guarantee(example: Example) -> Guarantee:
    """Of the plan of an example."""
    made: Any = example.settings()
    public = {"n": N} if made.neighbouring().n_is_public else {"expected_n": EXPECTED}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpppsynth.core.errors.InformationWarning)
        return made.plan(example.domain, **public).guarantee


@cache
def facts(name: str) -> Facts:
    """What the examples of a mechanism show; those by levels show the same."""
    record = registry.mechanism(name)
    given = list(record.examples())
    run = [each for each in given if isinstance(each, Example) and not each.levels]
    refused = [each for each in given if isinstance(each, Refusal)]
    domains = sorted({kind(each.domain) for each in run}, reverse=True)
    # A mechanism of networks refuses windows whatever the relation is.
    told = [each for each in refused if kind(each.domain) in domains]
    guarantees = [guarantee(each) for each in run]
    relations = {each: admitted(each, [g.relation for g in guarantees], told) for each in RELATIONS}
    return Facts(record, domains, relations, guarantees)


def admitted(relation: type, given: list[Any], refused: list[Refusal]) -> str:
    """Whether a mechanism admits a relation, by those of its examples and refusals; nothing where these do not tell."""
    caps = {each.max_points_per_person for each in given if isinstance(each, relation)}
    others = {each.relation.max_points_per_person for each in refused if isinstance(each.relation, relation)}
    if not caps:
        return "**refused**" if others else ""
    if others and not others & caps:
        return f"k = {', '.join(map(str, sorted(caps)))}"
    kinds = {kind(each.domain) for each in refused if isinstance(each.relation, relation)}
    return f"not on all {' and '.join(sorted(kinds))}" if kinds else "yes"


def made_by(record: Any, domains: list[str]) -> str:
    """The class that users call, with what its mechanism's name decides."""
    kinds = [record.settings, *record.settings.siblings]
    own = {each.name: each.default for each in fields(record.settings)}
    chosen = record.settings.presets.get(record.name, {})
    words = ", ".join(f"{name}={value!r}".replace("'", '"') for name, value in chosen.items() if own[name] != value)
    names = [f"local.{each.__name__}" if hasattr(dpppsynth.local, each.__name__) else each.__name__ for each in kinds]
    calls = ", ".join(code(f"{name}({words})" if words else name) for name in names)
    return calls if len(domains) == 2 else f"{calls} on {domains[0]}"


def promise(found: list[Guarantee]) -> str:
    """Pure or not, on average over a model or not, and under which relation of the mechanism's own."""
    pure = {isinstance(each.profile, PureDP) for each in found}
    words = [{(True,): "pure ε", (False,): "(ε, δ)"}.get(tuple(pure), "pure ε, or (ε, δ)")]
    if any(catalogue.AVERAGED in codes_in(each.assumptions) for each in found):
        words.append("**model-averaged**")
    own = {type(each.relation).__name__ for each in found} - {each.__name__ for each in RELATIONS}
    return ", ".join([*words, *map(code, sorted(own))])


def mechanisms() -> str:
    """What every mechanism promises, under which relations, and what comes out."""
    head = ["certificate `mechanism`", "made by", "promise", *(code(each.__name__) for each in RELATIONS), "result"]
    return table(head, map(mechanism_row, registry.names()))


def mechanism_row(name: str) -> list[str]:
    """Cells of one mechanism."""
    seen = facts(name)
    first = [code(name), made_by(seen.record, seen.domains), promise(seen.guarantees)]
    return [*first, *seen.relations.values(), code(seen.record.result.__name__)]


def descriptions() -> str:
    """What is done to the points, as reports tell it; names of the same words share a row."""
    told: dict[str, list[str]] = {}
    for name in registry.names():
        told.setdefault(registry.mechanism(name).words.description, []).append(name)
    return table(["mechanism", "in words"], ([", ".join(map(code, names)), text] for text, names in told.items()))


def results() -> str:
    """What each kind of release is, and the mechanisms that make it."""
    made: dict[type, list[str]] = {}
    for name in registry.names():
        made.setdefault(registry.mechanism(name).result, []).append(name)
    rows = ([code(kind.__name__), about(kind), ", ".join(map(code, names))] for kind, names in made.items())
    return table(["result", "is", "of"], rows)


# Settings


def settings() -> str:
    """Every setting of a mechanism with its default, those for experts last."""
    declared: dict[str, list[tuple[str, Setting]]] = {}
    for offer in offers():
        for each in settings_of(offer.settings):
            declared.setdefault(each.parameter, []).append((offer.method, each))
    ordered = sorted(declared.values(), key=lambda each: each[0][1].panel == EXPERT)
    return table(["option", "argument", "means"], map(setting_row, ordered))


def setting_row(declared: list[tuple[str, Setting]]) -> list[str]:
    names = dict.fromkeys(each.name for _, each in declared)
    words = dict.fromkeys(word for _, each in declared for word in each.choices)
    choices = f" One of {', '.join(map(code, words))}." if words else ""
    return [code(declared[0][1].option), ", ".join(map(code, names)), prose(option_help(declared)) + choices]


# Numbers of default rules


def numbers(module: ModuleType) -> str:
    """Constants of a module with their values, by the comment above them."""
    lines = inspect.getsource(module).splitlines()
    rows: dict[str, list[str]] = {}
    said, end = "", 0
    for node in ast.parse("\n".join(lines)).body:
        if not isinstance(node, ast.Assign):
            continue
        above = [line.removeprefix("# ") for line in lines[end : node.lineno - 1] if line.startswith("# ")]
        said, end = " ".join(above) or said, node.end_lineno or node.lineno
        names = [name.id for name in ast.walk(node.targets[0]) if isinstance(name, ast.Name) and name.id.isupper()]
        rows.setdefault(said, []).extend(code(f"{name} = {getattr(module, name)}") for name in names)
    return table(["constants", "of"], ([", ".join(found), said] for said, found in rows.items() if found))


# Codes on certificates


def codes_in(given: Iterable[Any]) -> Iterator[str]:
    """Codes, and those among their parameters."""
    for each in given:
        if isinstance(each, catalogue.Statement):
            yield each.code
            for _, value in each.parameters:
                yield from codes_in(value if isinstance(value, tuple) else [value])
        elif isinstance(each, str) and each in catalogue.TEXTS:
            yield each


@cache
def stated_by() -> dict[str, list[str]]:
    """Mechanisms whose guarantees state a code, in the examples."""
    found: dict[str, list[str]] = {}
    for name in registry.names():
        codes = (each for g in facts(name).guarantees for each in codes_in([g.theorem, *g.assumptions]))
        for each in dict.fromkeys(codes):
            found.setdefault(each, []).append(name)
    return found


@cache
def named_in() -> dict[str, list[str]]:
    """Modules of the package that name a code, as a text or by a name that the catalogue has for it."""
    names = {name: value for name, value in vars(catalogue).items() if name.isupper() and isinstance(value, str)}
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.glob("**/*.py")):
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        if module != catalogue.__name__:
            nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
            texts = {each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str)}
            texts |= {names.get(each.attr, "") for each in nodes if isinstance(each, ast.Attribute)}
            texts |= {names.get(each.id, "") for each in nodes if isinstance(each, ast.Name)}
            for text in texts:
                found.setdefault(text, []).append(module)
    return found


def where(code_: str) -> str:
    """Mechanisms that state a code, or else the modules that name it.

    Raises
    ------
    LookupError
        When nothing does.
    """
    found = stated_by().get(code_, [])
    if found:
        return among(found)
    modules = named_in().get(code_, [])
    if not modules:
        msg = f"{code_}: stands in the catalogue of codes, and nothing in the package states it; take it out"
        raise LookupError(msg)
    return ", ".join(map(code, modules))


def among(found: list[str]) -> str:
    """Mechanisms by name; where these are most of a kind, those that are left out."""
    every = registry.names()
    groups = {
        "all mechanisms": every,
        "all local ones": [each for each in every if facts(each).record.settings.reports],
        "all of points": [each for each in every if any(facts(each).relations.values())],
    }
    for words, group in groups.items():
        left = [code(each) for each in group if each not in found]
        if set(found) <= set(group) and len(left) <= FEW < len(found):
            return f"{words} but {', '.join(left)}" if left else words
    return ", ".join(map(code, found))


def sentence(text: str) -> str:
    """A text of the catalogue, with the names of its parameters."""
    parts = string.Formatter().parse(text)
    return "".join(before + (f"*{name}*" if name else "") for before, name, _, _ in parts)


def codes(texts: dict[str, str]) -> str:
    """Codes with their sentences, and who states them."""
    rows = ([code(each), sentence(text), where(each)] for each, text in sorted(texts.items()))
    return table(["code", "says", "stated by"], rows)


def plain_codes() -> str:
    """Codes of noise, and of reasons against publication."""
    texts = catalogue.SECRET_NOISE | catalogue.SEEDED_NOISE | catalogue.WARNINGS
    return table(["code", "says"], ([code(each), sentence(text)] for each, text in texts.items()))


# Public names


def names() -> str:
    """Every name of the package, with the first line of its docstring."""
    rows = []
    for name in sorted(dpppsynth.__all__, key=str.lower):
        text = first_line(inspect.getdoc(getattr(dpppsynth, name)))
        rows.append([f"{{py:obj}}`{name} <dpppsynth.{name}>`", text])
    return table(["name", "is"], rows)


# Rooms and families


def rooms() -> str:
    """Rooms of the package, each after those that it imports from, with the first line of its docstring."""
    contracts = tomllib.loads((DOCS.parent / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["type"] == "layers")
    found = [each for each in reversed(layers) if "|" not in each]
    modules = {each: import_module(f"{PACKAGE.name}.{each}") for each in found}
    return table(["room", "content"], ([code(f"{each}/"), about(module)] for each, module in modules.items()))


def families() -> str:
    """Folders of mechanisms, with the names of these."""
    found: dict[str, list[str]] = {}
    for name, place in registry.PLACES.items():
        found.setdefault(place.split(".")[2], []).append(name)
    modules = {each: import_module(f"{PACKAGE.name}.mechanisms.{each}") for each in found}
    rows = ([code(f"{each}/"), about(modules[each]), ", ".join(map(code, names))] for each, names in found.items())
    return table(["folder in `mechanisms/`", "content", "mechanisms"], rows)


def about(thing: object) -> str:
    """First line of the docstring of a module or class."""
    return first_line(inspect.getdoc(thing))


TABLES: dict[str, Callable[[], str]] = {
    "commands": commands,
    "common-options": common_options,
    "exit-codes": exit_codes,
    "mechanisms": mechanisms,
    "descriptions": descriptions,
    "results": results,
    "settings": settings,
    "common-numbers": lambda: numbers(rules),
    "window-numbers": lambda: numbers(rules.planar_rules),
    "network-numbers": lambda: numbers(rules.network_rules),
    "theorems": lambda: codes(catalogue.THEOREMS),
    "assumptions": lambda: codes(catalogue.ASSUMPTIONS),
    "noise": plain_codes,
    "names": names,
    "rooms": rooms,
    "families": families,
}


def filled(text: str) -> str:
    """A page with its tables.

    Raises
    ------
    KeyError
        When it asks for a table that there is not.
    """
    return MARK.sub(lambda mark: TABLES[mark[1]](), text)


def pages() -> list[Path]:
    """Pages with tables."""
    return [each for each in sorted(DOCS.glob("**/*.md")) if MARK.search(each.read_text("utf-8"))]


def setup(app: Any) -> dict[str, bool]:
    """Put the tables into pages that Sphinx reads, and have it read these pages whenever it runs."""

    def fill(_app: Any, _page: str, source: list[str]) -> None:
        source[0] = filled(source[0])

    app.connect("source-read", fill)
    app.connect("env-get-outdated", lambda *_: [str(each.relative_to(DOCS).with_suffix("")) for each in pages()])
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    print("\n\n".join(TABLES[name]() for name in sys.argv[1:] or TABLES))

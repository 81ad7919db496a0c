"""Tables of the pages are those of the code, and what is missing in one of them is found."""

import dataclasses
import re

import generated_tables as tables
import pytest

from dpppsynth.cli.program import EVERY, GROUPS
from dpppsynth.contract import registry, rules
from dpppsynth.contract.settings import settings_of
from dpppsynth.core import errors
from dpppsynth.privacy import catalogue

PAGES = {page.name: page.read_text("utf-8") for page in tables.pages()}


@pytest.fixture(scope="module")
def made():
    """Every table, once: the examples of all mechanisms are planned."""
    return {name: make() for name, make in tables.TABLES.items()}


def cells(table):
    """Cells of a table without its head, by the first of them."""
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0].strip("`"): row[1:] for row in rows}


def test_every_table_stands_on_one_page():
    named = [name for text in PAGES.values() for name in tables.MARK.findall(text)]
    assert sorted(named) == sorted(tables.TABLES)


def test_a_page_gets_its_table_where_it_says(monkeypatch):
    monkeypatch.setattr(tables, "TABLES", {"names": lambda: "| all |"})
    assert tables.filled("before\n\n<!-- table: names -->\n\nafter\n") == "before\n\n| all |\n\nafter\n"


def test_a_table_that_there_is_not_is_refused():
    with pytest.raises(KeyError, match="planted"):
        tables.filled("<!-- table: planted -->")


def test_a_new_mechanism_gets_a_row(made, monkeypatch):
    monkeypatch.setitem(registry.PLACES, "planted", registry.PLACES["pair-sums"])
    assert cells(tables.mechanisms()).keys() == cells(made["mechanisms"]).keys() | {"planted"}


@pytest.mark.parametrize("module", [rules, rules.planar_rules, rules.network_rules])
def test_every_number_of_a_rule_stands_in_the_table(module, monkeypatch):
    text = tables.numbers(module)
    names = {name for name in vars(module) if re.fullmatch("[A-Z][A-Z_]*", name)} - {"BY_DOMAIN", "MOST_MEETING"}
    assert names == set(re.findall("`([A-Z_]+) = ", text))
    monkeypatch.setattr(module, min(names), "planted")
    assert f"`{min(names)} = planted`" in tables.numbers(module)


def test_an_assumption_that_nothing_states_is_found(made, monkeypatch):
    monkeypatch.setitem(catalogue.ASSUMPTIONS, "planted", "Nobody says so.")
    with pytest.raises(LookupError, match="nothing in the package states it"):
        tables.TABLES["assumptions"]()


def test_a_planted_refusal_changes_the_table(monkeypatch):
    """Facts are those of the records: without its refusals a mechanism says nothing of these relations."""
    record = registry.mechanism("planar-laplace")
    examples = [each for each in record.examples() if not isinstance(each, tables.Refusal)]
    planted = dataclasses.replace(record, examples=lambda: examples)
    monkeypatch.setattr(registry, "mechanism", lambda _: planted)
    assert tables.facts.__wrapped__("planar-laplace").relations[tables.ReplaceOne] == ""


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("kernel", ["`KernelSynthesizer` on windows", "(ε, δ)", "yes", "yes", "**refused**", "`PoissonRelease`"]),
        ("lgcp-cells", ['`LGCPSynthesizer(mechanism="cells")` on networks', "pure ε", *["yes"] * 3, "`CoxRelease`"]),
        ("planar-laplace", ["`PlanarLaplaceSynthesizer` on windows", "pure ε, or (ε, δ)", "yes", *["**refused**"] * 2]),
        ("lgcp-clusters", ["`LGCPSynthesizer(clusters=0.3)`", "pure ε"]),
        ("square-wave", ["`local.MultidimensionalSquareWave` on windows", "pure ε, `Local`", "", "", ""]),
    ],
)
def test_what_theorems_say_stands_in_the_table(name, row, made):
    assert cells(made["mechanisms"])[name][: len(row)] == row


def test_averages_over_a_model_are_called_so(made):
    averaged = {name for name, row in cells(made["mechanisms"]).items() if "model-averaged" in row[1]}
    assert averaged == {"lgcp-kim-lim-3.8", "lgcp-kim-lim-3.9"}
    assert cells(made["mechanisms"])["lgcp-kim-lim-3.8"][2:5] == ["k = 1", "**refused**", "**refused**"]


def test_nothing_is_left_out(made):
    assert cells(made["mechanisms"]).keys() == set(registry.names())
    assert cells(made["assumptions"]).keys() == catalogue.ASSUMPTIONS.keys()
    assert cells(made["theorems"]).keys() == catalogue.THEOREMS.keys()
    assert {name.split()[0] for name in cells(made["commands"])} == set(EVERY)
    assert all(any(name.startswith(f"{group} ") for name in cells(made["commands"])) for group in GROUPS)
    declared = {each.option for name in registry.names() for each in settings_of(registry.mechanism(name).settings)}
    assert declared <= cells(made["settings"]).keys()


def test_rooms_and_families_are_the_folders_that_there_are(made):
    """A folder that the layers or the registry forget has no row."""
    held = {each.parent.name for each in tables.PACKAGE.glob("*/__init__.py")}
    assert {name.rstrip("/") for name in cells(made["rooms"])} == held | {"models", "linear_network"}
    held = {each.parent.name for each in tables.PACKAGE.glob("mechanisms/*/__init__.py")}
    assert {name.rstrip("/") for name in cells(made["families"])} == held
    assert all(row[0] for row in [*cells(made["rooms"]).values(), *cells(made["families"]).values()])


def test_every_error_has_its_exit_code(made):
    kinds = [
        each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.DpppsynthError)
    ]
    named = set(re.findall(r"`(\w+)`", made["exit-codes"]))
    # A kind of a named error has the code of that one; the root has none of its own.
    assert [each for each in kinds if not named & {base.__name__ for base in each.__mro__}] == [errors.DpppsynthError]


def test_codes_are_stated_by_the_mechanisms_that_they_hold_for(made):
    theorems, assumptions = cells(made["theorems"]), cells(made["assumptions"])
    assert theorems["moved-points"][1] == "`planar-laplace`, `lgcp-moved`, `marked-moved`"
    assert theorems["privacy-filter"][1] == "`dpppsynth.ledger.joint_guarantee`"
    assert assumptions["one-release"][1] == "all mechanisms"
    assert assumptions["report-alone"][1] == "all local ones"
    assert assumptions["one-point-per-person"][1] == "all of points"


def test_options_in_a_text_are_code():
    """Typography would make a dash of two hyphens."""
    assert tables.prose("with --snap, or `--join`") == "with `--snap`, or `--join`"

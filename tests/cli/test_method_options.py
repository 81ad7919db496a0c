"""Options generated from the settings that mechanisms declare, and the vocabulary of `--mechanism` and `--method`."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path

import click.testing
import pytest
from support.command_line import run, spoken

from dpppsynth.cli.method import Method, Offer, offers, resolve_mechanism
from dpppsynth.cli.options import command_of, mechanism_options
from dpppsynth.contract.registry import mechanism, names
from dpppsynth.contract.settings import EXPERT, KINDS, PARTS, ParsedOptions, Settings, setting, settings_of
from dpppsynth.core.errors import InputError
from dpppsynth.synthesizers import LaplaceSynthesizer

SQUARE = ["--window", "0,0,1000,1000"]
NEAR = ["--epsilon", 1, "--alpha", 25, "--n", 400]
SPENDS = [*NEAR, "--delta", 1e-6]
REPORTS = ["--epsilon", 1, "--n", 400]
# What `check` needs of each mechanism.
ASKED = {
    "laplace-cells": NEAR,
    "laplace-tents": NEAR,
    "bounded-cells": [*NEAR, "--max-error", 30],
    "planar-laplace": NEAR,
    "lgcp-tents": NEAR,
    "lgcp-cells": NEAR,
    "lgcp-clusters": NEAR,
    "lgcp-moved": NEAR,
    "lgcp-field": SPENDS,
    "lgcp-posterior-draw": SPENDS,
    "lgcp-lipschitz": NEAR,
    "lgcp-kim-lim-3.8": SPENDS,
    "lgcp-kim-lim-3.9": SPENDS,
    "kernel": SPENDS,
    "kernel-diffusion": SPENDS,
    "heatmap": ["--epsilon", 1, "--shape", "8,8"],
    "marked-tents": [*REPORTS, "--types", "offence=burglary,theft"],
    "marked-moved": [*NEAR, "--time", "hour", "--period", "day", "--protect-time", "none"],
    "pair-sums": [*NEAR, "--radii", "15,40", "--pair-cap", "10"],
    "pair-sums-persons": ["--epsilon", 1, "--radii", "15,40", "--pair-cap", "10,20"],
    "trajectories": [*REPORTS, "--cells", 4],
    "displacements": [*REPORTS, "--cells", 4],
}
OFFERS = [pytest.param(each, id=f"{each.name} as {each.method}") for each in offers()]


@pytest.fixture(scope="module")
def street(tmp_path_factory):
    """A file with one street."""
    feature = {
        "type": "Feature",
        "properties": {},
        "geometry": {"type": "LineString", "coordinates": [[0, 0], [900, 0]]},
    }
    crs = {"type": "name", "properties": {"name": "EPSG:27700"}}
    path = tmp_path_factory.mktemp("streets") / "street.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "crs": crs, "features": [feature]}))
    return path


class TestNames:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("name", names())
    def test_check_takes_every_registered_name(self, name, street):
        place = ["--network", street] if name in ("kernel-diffusion", "lgcp-cells") else SQUARE
        said = json.loads(run("check", "--mechanism", name, *ASKED.get(name, REPORTS), *place, "--json").stdout)
        assert said["mechanism"] == name

    @pytest.mark.parametrize("offer", OFFERS)
    def test_every_short_form_stands_for_the_first_in_the_registry(self, offer):
        found, called = resolve_mechanism(offer.method, None)
        assert (found.method, called) == (offer.method, f"--method {offer.method}")
        assert found == next(each for each in offers() if each.method == offer.method)

    @pytest.mark.parametrize(
        ("method", "name", "meant"),
        [
            ("lgcp", "tents", "lgcp-tents"),
            ("lgcp", "kim-lim-3.8", "lgcp-kim-lim-3.8"),
            ("lgcp", "lgcp-field", "lgcp-field"),
            ("laplace", "tents", "laplace-tents"),
            ("privag", "adaptive-grid", "adaptive-grid"),
            (None, "laplace", "laplace-cells"),
            (None, "sem-geo-i", "subset-exponential"),
            (None, "privag", "adaptive-grid"),
            (None, "adaptive-grid", "adaptive-grid"),
        ],
    )
    def test_short_and_long_forms(self, method, name, meant):
        found, _ = resolve_mechanism(method, name)
        assert found.name == meant
        assert method in (None, found.method)

    def test_one_name_two_classes(self):
        found = [resolve_mechanism(method, "adaptive-grid")[0] for method in ("aag", "privag", None)]
        kinds = [each.settings.__name__ for each in (*found, resolve_mechanism(None, "privag")[0])]
        assert kinds == ["AdvancedAdaptiveGrid", "PrivAG", "AdvancedAdaptiveGrid", "PrivAG"]

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--mechanism", "tents"], "--mechanism: expected one of 'laplace-cells', "),
            (["--method", "lgcp", "--mechanism", "laplace-cells"], "--mechanism: expected one of 'lgcp-tents', "),
            (
                ["--mechanism", "lgcp-posterior-draw", "--delta", 1e-6, "--inference", "nuts"],
                "--inference: --mechanism lgcp-posterior-draw draws its field at once",
            ),
            ([], "--mechanism: say which, for instance --mechanism laplace-cells, or --method laplace"),
            (["--mechanism", "kernel-diffusion", "--delta", 1e-6], "--mechanism: with these options, on this domain, "),
            (["--mechanism", "laplace-cells", "--basis", "tents"], "--basis: --mechanism laplace-cells means cells"),
            (
                ["--method", "laplace", "--mechanism", "tents", "--basis", "cells"],
                "--basis: --method laplace means tents",
            ),
        ],
    )
    def test_others_are_refused(self, words, said):
        assert said in spoken(run("check", *words, *NEAR, *SQUARE, code=2))

    def test_the_basis_chooses_where_only_the_method_is_named(self):
        words = ["check", "--method", "laplace", "--basis", "tents", *NEAR, *SQUARE, "--json"]
        assert json.loads(run(*words).stdout)["mechanism"] == "laplace-tents"

    def test_local_commands_take_certificate_names_and_short_forms(self, tmp_path):
        points = tmp_path / "points.csv"
        points.write_text("x,y\n1,1\n2,2\n")
        for k, name in enumerate(("subset-exponential", "sem-geo-i", "uniform-grid")):
            words = ["--mechanism", name, "--epsilon", 1, "--cells", 3, "--window", "0,0,9,9"]
            run("local", "perturb", points, tmp_path / f"{k}.csv", *words)
        said = spoken(run("local", "perturb", points, tmp_path / "x.csv", "--mechanism", "lgcp-tents", *SQUARE, code=2))
        assert said.startswith("Error: --mechanism: expected one of 'disk-area', 'hybrid-area', ")


class TestDeclarations:
    @pytest.mark.parametrize("offer", OFFERS)
    def test_every_field_is_an_option_or_made_of_some(self, offer):
        declared = {each.name for each in settings_of(offer.settings)}
        for each in fields(offer.settings):
            assert not each.init or each.name in {*declared, "window", "grid"} or each.metadata[PARTS]

    @pytest.mark.parametrize("offer", OFFERS)
    def test_type_and_help_of_options_are_the_declared_ones(self, offer):
        usual, expert = mechanism_options((offer,))
        made = {name: annotation for name, annotation, default in (*usual, *expert) if default is None}
        for each in settings_of(offer.settings):
            assert each.kind in KINDS
            if each.name == "mechanism":
                continue
            annotation = made[each.parameter]
            kind, shown = annotation.__args__[0].__args__[0], annotation.__metadata__[0]
            assert (tuple(map(str, kind)) if each.choices else kind) == (each.choices or each.kind)
            assert shown.help.startswith(each.help)
            assert each.taken in shown.help
            assert (shown.rich_help_panel == EXPERT) == (each.parameter in {name for name, *_ in expert})

    def test_help_follows_the_class(self, monkeypatch):
        @dataclass(frozen=True)
        class Toy(Settings):
            epsilon: float = setting(help="Privacy budget", example="1")
            width: float | None = setting(None, help="Width of a stripe", unit="metres", otherwise="a public rule")
            stripes: int = setting(7, help="Number of stripes", panel=EXPERT)
            slanted: bool = setting(True, help="Draw them slanted")
            kind: str = setting("thin", help="Kind of a stripe", choices=("thin", "thick"))

        def draw(method: Method) -> None:
            """Draw stripes."""

        monkeypatch.setattr("dpppsynth.cli.options.offers", lambda reports: (Offer("toy", Toy),))
        said = spoken(click.testing.CliRunner().invoke(command_of(draw).complete, ["--help"]))
        for words in (
            "--width <float> Width of a stripe, in metres (toy). Unless given: a public rule.",
            "--slanted --no-slanted",
            "<thin|thick>",
            "Unless given: thin.",
        ):
            assert words in said
        assert re.search(r" Expert --stripes <int> Number of stripes \(toy\)\. Unless given: 7\. $", said)

    @pytest.mark.parametrize("command", ["check", "rehearse", "synthesize", "audit"])
    def test_the_first_screen_has_the_common_options_and_leads_to_the_others(self, command):
        said = spoken(run(command, "--help"))
        # Whether -h stands beside --help depends on who has asked for the command's help before.
        options = set(re.findall(r"(?<= )--[a-z][a-z-]*(?= [<A-Z])", said)) - {"--help"}
        assert {"--method", "--epsilon", "--alpha", "--window", "--network"} <= options
        assert len(options) <= 15, sorted(options)
        assert f"dpppsynth help {command} laplace" in said
        assert f"dpppsynth help {command} all" in said

    def test_one_mechanism_has_its_own_options_alone(self):
        for words in (["help", "synthesize", "laplace"], ["synthesize", "--method", "laplace", "--help"]):
            said = spoken(run(*words))
            assert re.search(r" --spacing [<A-Z]", said)
            assert re.search(r" --window [<A-Z]", said)
            assert not re.search(r" --bandwidth [<A-Z]", said)
        by_name = spoken(run("help", "synthesize", "lgcp-moved"))
        assert re.search(r" --spacing [<A-Z]", by_name)

    def test_groups_lead_to_their_own(self):
        said = spoken(run("local", "perturb", "--help", prog_name="dpppsynth"))
        options, again = (re.findall(r"--[a-z-]+", each) for each in (said, spoken(run("help", "local", "perturb"))))
        assert set(options) == set(again)
        words = re.search(r"dpppsynth help (local perturb \S+);", said)[1].split()
        assert "Usage: dpppsynth local perturb" in spoken(run("help", *words))

    def test_help_of_other_commands(self):
        for words in (["verify"], ["ledger", "init"], ["local", "perturb", "disk-area"], []):
            assert "Usage: dpppsynth" in spoken(run("help", *words))
        for words in (["nosuch"], ["check", "nosuch"], ["verify", "lgcp"], ["check", "lgcp", "kernel"]):
            assert "Error" in spoken(run("help", *words, code=2))

    def test_experts_have_a_panel_of_their_own(self):
        said = spoken(run("help", "check", "all"))
        usual, _, expert = said.partition(" Expert")
        for option in ("--epsilon", "--alpha", "--spacing", "--sigma", "--bandwidth", "--window", "--n"):
            assert re.search(rf" {option} [<A-Z]", usual)
            assert not re.search(rf" {option} [<A-Z]", expert)
        for option in ("--sampler", "--engine", "--covariance", "--smoothness", "--oracle", "--tail"):
            assert re.search(rf" {option} [<A-Z]", expert)
            assert not re.search(rf" {option} [<A-Z]", usual)

    def test_types_that_disagree_are_found(self):
        @dataclass(frozen=True)
        class Other(Settings):
            spacing: int = setting(help="Cells")

        with pytest.raises(TypeError, match="spacing: mechanisms declare it with different types"):
            mechanism_options((*offers(), Offer("other", Other)))

    def test_signatures_are_as_before(self):
        """A declaration is no argument, and leaves defaults and reprs alone."""
        made = LaplaceSynthesizer(1.0, alpha=25.0)
        assert (made.basis, made.spacing, made.postprocess) == ("cells", None, None)
        assert repr(made).startswith("LaplaceSynthesizer(epsilon=1.0, alpha=25.0, basis='cells', spacing=None, mesh=")


class TestImports:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        ("words", "family"),
        [
            (["--method", "laplace"], "lgcp"),
            (["--mechanism=bounded-cells", "--max-error", "30"], "bounded"),
            (["--method=bounded-error", "--max-error", "30"], "bounded"),
        ],
    )
    def test_a_check_imports_one_family(self, words, family):
        code = (
            "import sys; from dpppsynth.cli import app; from typer.testing import CliRunner; "
            "print(CliRunner().invoke(app, sys.argv[1:]).exit_code, *sorted(sys.modules))"
        )
        asked = ["check", *words, *map(str, NEAR), *SQUARE]
        said = subprocess.run([sys.executable, "-c", code, *asked], capture_output=True, text=True, check=True).stdout
        status, *modules = said.split()
        assert status == "0"
        made = {name.split(".")[2] for name in modules if re.fullmatch(r"dpppsynth\.mechanisms\.\w+\.mechanism", name)}
        assert made == {family}
        assert not {"scipy.stats", "pymc", "matplotlib", "pandas"} & set(modules)

    @pytest.mark.parametrize("more", [["--help"], ["--bandwidth", "3"], ["--no-such"]])
    def test_other_options_are_known_where_they_are_asked_for(self, more):
        said = spoken(run("check", "--method", "laplace", *NEAR, *SQUARE, *more, code=0 if more == ["--help"] else 2))
        expected = {"--help": "--postprocess", "--bandwidth": "not an option of", "--no-such": "No such option"}
        assert expected[more[0]] in said


class TestForeignOptions:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("offer", OFFERS)
    def test_options_of_other_mechanisms_are_refused_by_name(self, offer):
        own = {each.parameter for each in settings_of(offer.settings)} | {"mechanism", *offer.settings.refused}
        others = {each.parameter: each for other in offers() for each in settings_of(other.settings)}
        words = ASKED.get(offer.name, REPORTS)
        asked = dict(zip((word[2:].replace("-", "_") for word in words[::2]), words[1::2], strict=True))
        asked = {name: value for name, value in asked.items() if name != "n"}
        asked |= {"method": offer.method, "mechanism": offer.name}
        Method(asked)
        for parameter, each in others.items():
            if parameter in own:
                continue
            form = each.option.partition("/")[0]
            with pytest.raises(InputError, match=f"{form}: not an option of --method {offer.method}; leave it out"):
                Method(asked | {parameter: 3.0})

    @pytest.mark.parametrize("offer", OFFERS)
    def test_refusals_for_a_reason_are_of_options_of_others(self, offer):
        own = {each.parameter for each in settings_of(offer.settings)}
        known = {each.parameter for other in offers() for each in settings_of(other.settings)}
        assert set(offer.settings.refused) <= known - own

    def test_foreign_options_on_the_command_line(self):
        words = ["check", "--mechanism", "lgcp-tents", *NEAR, *SQUARE, "--bandwidth", 9]
        said = spoken(run(*words, code=2))
        assert (
            said
            == "Error: --bandwidth: not an option of --mechanism lgcp-tents; leave it out, or take --method kernel "
        )

    def test_zero_asks_for_nothing_and_no_does(self):
        run("check", "--method", "laplace", *NEAR, *SQUARE, "--delta", 0)
        said = spoken(run("check", "--method", "laplace", *NEAR, *SQUARE, "--no-shrink", code=2))
        assert "--shrink: not an option of --method laplace" in said


class TestErrors:
    def test_arguments_are_named_by_their_options(self):
        """`--border-share` is called alpha in Python, and a local mechanism has no privacy radius of that name."""
        words = ["check", "--method", "privag", *REPORTS, *SQUARE]
        assert "--border-share: must be" in spoken(run(*words, "--border-share", -1, code=2))
        assert "--first-share: " in spoken(run(*words, "--first-share", 2, code=2))
        assert "--alpha: --method privag has no privacy radius" in spoken(run(*words, "--alpha", 5, code=2))
        assert "'keep-n' is not one of 'field', 'norm-sub', 'clip'" in spoken(
            run(*words, "--postprocess", "keep-n", code=2)
        )

    def test_values_reach_the_class(self):
        words = ["--cells", 4, "--no-shrink", "--radius", 1, "--max-iterations", 77]
        said = json.loads(run("check", "--mechanism", "disk-area", *REPORTS, *words, *SQUARE, "--json").stdout)
        assert said["parameters"]["randomizer"]["shrink"] is False
        assert said["parameters"]["estimator"]["settings"]["max_iter"] == 77
        for word, settings in (("field", {"estimator": "field"}), ("em", None)):
            words = ["--cells", 4, "--shrink", "--estimator", word]
            said = json.loads(run("check", "--mechanism", "disk-area", *REPORTS, *words, *SQUARE, "--json").stdout)
            assert said["parameters"]["randomizer"]["shrink"] is True
            stated = said["parameters"]["estimator"]["settings"]
            assert (stated == settings) if settings else ("tolerance" in stated and "estimator" not in stated)
        said = spoken(
            run("check", "--mechanism", "disk-area", *REPORTS, *words, "--estimator", "kriging", *SQUARE, code=2)
        )
        assert "'kriging' is not one of 'auto', 'field', 'em', 'least-squares'" in said
        words = ["--border-share", 0.03, "--first-share", 0.3, "--no-consistent"]
        said = json.loads(run("check", "--method", "privag", *REPORTS, *words, *SQUARE, "--json").stdout)
        assert said["parameters"]["sigma"] == 0.3
        assert said["parameters"]["estimator"]["consistent"] is False

    def test_required_settings_are_asked_for(self):
        said = spoken(run("check", "--mechanism", "trajectories", *REPORTS, *SQUARE, code=2))
        assert "--cells: --mechanism trajectories needs a number of cells along each side of the grid" in said


def test_a_file_is_read_from_a_path(tmp_path):
    """Paths of options reach the mechanism as paths."""
    declared = {each.name: each for each in settings_of(mechanism("lgcp-tents").settings)}
    assert declared["offset_file"].kind is Path
    words = ["--offset-file", tmp_path / "none.gpkg", "--offset-column", "density"]
    run("check", "--mechanism", "lgcp-tents", *NEAR, *SQUARE, *words, code=2)


def test_a_class_without_class_methods_of_its_own_has_options():
    @dataclass(frozen=True)
    class Toy(Settings):
        epsilon: float = setting(help="Privacy budget", example="1")
        cells: int = setting(15, help="Cells")

    options = ParsedOptions("toy", "--method toy", {"epsilon": 2.0, "cells": 4}, {})
    Toy.require_options(options)
    assert Toy.from_options(options, None) == Toy(2.0, 4)
    with pytest.raises(InputError, match="epsilon: --method toy needs a privacy budget, for instance --epsilon 1"):
        Toy.require_options(replace(options, values={}))
    with pytest.raises(InputError, match="by: --method toy releases all points at once; leave --by out"):
        Toy.require_size(options, None, "year")


KIM_LIM = ["--mechanism", "lgcp-kim-lim-3.9", "--epsilon", 1, "--delta", 0.002]


class TestCauses:
    """A refusal names what is the matter, and mechanisms by names that the command takes."""

    def test_a_sigma_is_not_blamed_on_delta(self, tmp_path):
        points = tmp_path / "points.csv"
        points.write_text("x,y\n1,1\n")
        words = [points, *SQUARE, *KIM_LIM, "--alpha", 25, "--sigma", 0.5, "--out", tmp_path / "out"]
        said = spoken(run("synthesize", *words, code=3))
        assert "--sigma: 0.5 is more than" in said
        assert "So it is for 10 points" in said
        assert "1/n" not in said

    def test_a_delta_is_blamed_where_it_is_the_cause(self):
        said = spoken(run("check", *SQUARE, *KIM_LIM, "--alpha", 25, "--n", 1000, code=2))
        assert "--delta: must be below 1/n" in said

    @pytest.mark.parametrize(
        ("options", "code"),
        [
            ([*KIM_LIM, "--alpha", 80, "--n", 392], 2),
            ([*KIM_LIM, "--alpha", 25, "--n", 392], 0),
            (["--mechanism", "lgcp-field", "--epsilon", 1, "--alpha", 25, "--n", 392], 2),
            (["--method", "lgcp", "--epsilon", 1, "--alpha", 1, "--n", 3000, "--prior", "dense"], 2),
            (["--method", "lgcp", "--epsilon", 1, "--alpha", 1, "--n", 3000, "--inference", "nuts"], 2),
        ],
    )
    def test_mechanisms_to_take_instead_are_known(self, options, code):
        said = spoken(run("check", *SQUARE, *options, code=code))
        named = re.findall(r"lgcp-[-a-z0-9.]*[a-z0-9]", said.split("Take --mechanism")[-1] if code == 0 else said)
        assert named
        assert set(named) <= set(names())

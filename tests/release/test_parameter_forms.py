"""The forms of public parameters that plans declare: stored certificates have them, and forged ones do not."""

import json
from pathlib import Path

import jsonschema
import pytest

from dpppsynth.contract import registry
from dpppsynth.release import certificate
from dpppsynth.release.rederive import has_form

STORED = sorted((Path(__file__).parents[1] / "data/releases").glob("*/certificate.json"))


def stated(path):
    cert = json.loads(path.read_text())
    if cert["mechanism"] != "strata":
        return [(cert["mechanism"], cert["parameters"])]
    return [(part["mechanism"], part["parameters"]) for part in cert["parameters"]["strata"]]


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.parent.name)
def test_stored_certificates_have_the_form_and_nothing_near_them_has(path):
    cert = json.loads(path.read_text())
    assert has_form(cert["mechanism"], cert["parameters"])
    for name, parameters in stated(path):
        forged = [parameters | {"more": 1}, parameters | {"strata": 5}, parameters | {"strata": []}]
        forged += [parameters | {key: {"another": "kind"}} for key in parameters if key not in ("mesh", "estimator")]
        needed = parameters.keys() - registry.mechanism(name).statistic.optional
        forged += [{k: v for k, v in parameters.items() if k != key} for key in needed]
        assert not any(has_form(name, each) for each in forged)
        assert not has_form("strata", parameters)


def test_all_mechanisms_are_stored():
    assert {name for path in STORED for name, _ in stated(path)} == set(registry.names())


@pytest.mark.parametrize("name", registry.names())
def test_forms_are_schemas(name):
    for form in registry.mechanism(name).statistic.form.values():
        jsonschema.Draft202012Validator.check_schema(form)


def test_levels_have_the_form_of_their_mechanism():
    path = next(path for path in STORED if json.loads(path.read_text())["mechanism"] == "strata")
    parameters = json.loads(path.read_text())["parameters"]
    first, *others = parameters["strata"]
    wrong = first | {"parameters": first["parameters"] | {"more": 1}}
    assert not has_form("strata", parameters | {"strata": [wrong, *others]})
    assert not has_form("strata", parameters | {"strata": [first | {"more": 1}, *others]})
    assert not has_form(first["mechanism"], parameters)


def test_the_schema_of_certificates_knows_no_parameter_of_one_mechanism():
    shared = certificate.schema()["$defs"]["release"]["properties"]
    assert shared.keys() == {"epsilon", "delta", "n", "expected_n", "estimator", "strata"}

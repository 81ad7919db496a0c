"""Public layers on certificates: a code for each, with its hash and its source."""

import json
import shutil

import numpy as np
import pytest
from support.forgery import failed, read, reseal

import dpppsynth as dps
from dpppsynth.core.errors import InputError
from dpppsynth.privacy import verify
from dpppsynth.release import load_release
from dpppsynth.reporting.promise import not_promised

WINDOW = dps.Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
PATTERN = dps.PointPattern(np.random.default_rng(1).uniform(0, 1000, (200, 2)), WINDOW)
PEOPLE = np.arange(1.0, 17.0).reshape(4, 4)
COVARIATES = dps.Covariates({"east": lambda xy: xy[:, 0]}, source="a map")


def plan(**layers):
    return dps.LGCPSynthesizer(1.0, alpha=25.0, prior="sparse", **layers).plan(WINDOW, n=200)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    offset = dps.Offset.from_grid(PEOPLE, (0, 0, 1000, 1000), source="Census 2021")
    release = plan(offset=offset, covariates=COVARIATES).release(PATTERN)
    return release.save(tmp_path_factory.mktemp("layers") / "public", patterns=0)


def layers_of(assumes):
    return {each["layer"]: each for each in assumes if isinstance(each, dict) and each["code"] == "public-layer"}


def test_each_has_its_hash_and_source(saved):
    cert = read(saved)
    stated = layers_of(cert["guarantee"]["assumes"])
    estimator = cert["parameters"]["estimator"]
    assert (stated["offset"]["sha256"], stated["offset"]["source"]) == (estimator["offset"], "Census 2021")
    assert stated["covariates"]["sha256"] == estimator["covariates"]["fingerprint"]
    assert stated["covariates"]["source"] == "a map"
    assert verify(saved).holds


def test_they_are_told_before_the_budget_and_on_the_first_screen():
    guarantee = plan(offset=dps.Offset.from_grid(PEOPLE, (0, 0, 1000, 1000))).guarantee
    assert "source: unnamed" in not_promised(guarantee, WINDOW, None)[0]
    assert "public-layer" not in str(plan().guarantee.assumptions)


def test_a_reopened_release_keeps_the_source(saved, tmp_path):
    again = load_release(saved)
    assert again.estimator.offset.source == "Census 2021"
    assert (
        json.loads((again.save(tmp_path / "again", patterns=0) / "certificate.json").read_text())["guarantee"]
        == (read(saved)["guarantee"])
    )


@pytest.mark.parametrize("change", ["left out", "another source", "another hash"])
def test_other_statements_do_not_verify(saved, tmp_path, change):
    folder = shutil.copytree(saved, tmp_path / "public")
    cert = read(folder)
    layer = layers_of(cert["guarantee"]["assumes"])["offset"]
    if change == "left out":
        cert["guarantee"]["assumes"].remove(layer)
    else:
        layer |= {"source": "the points"} if change == "another source" else {"sha256": "0" * 64}
    reseal(folder, cert)
    assert "bound" in failed(folder)


@pytest.mark.parametrize("source", ["x" * 301, "a\nb", 3])
def test_sources_are_texts(source):
    with pytest.raises(InputError, match=r"^source"):
        dps.Offset.from_grid(PEOPLE, (0, 0, 1000, 1000), source=source)

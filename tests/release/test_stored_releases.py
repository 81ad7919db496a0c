"""Stored releases (tests/data/make_stored_releases.py): they verify, open and promise the same."""

import copy
import json
import math
import shutil
from pathlib import Path

import pytest
from support.forgery import at, failed, put, read, reseal
from support.seams import derived_once
from typer.testing import CliRunner

from dpppsynth.cli import app
from dpppsynth.contract import registry
from dpppsynth.contract.stratified_plan import STRATA
from dpppsynth.core.errors import InputError
from dpppsynth.core.published_files import plain_text
from dpppsynth.privacy import catalogue, verify
from dpppsynth.release import certificate, load_release

STORED = Path(__file__).parents[1] / "data" / "releases"
NAMES = sorted(path.name for path in STORED.iterdir() if path.is_dir())
NOTED = json.loads((STORED / "guarantees.json").read_text())
# Tables of losses are rounded up to six digits, and their last digit may differ by machine.
TABLES = {"kernel-diffusion"}
# A promise stronger than the parameters support, by more than any rounding.
STRONGER = 0.99


CERTIFICATES = {name: read(STORED / name) for name in NAMES}


@pytest.fixture(autouse=True, scope="module")
def remembered():
    """Edits of the claim alone leave the bound as it is."""
    with derived_once():
        yield


def numbers(value, path=()):
    """Numbers in a certificate, with their places."""
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from numbers(child, (*path, key))


def test_every_registered_mechanism_has_a_stored_release():
    assert {*registry.names(), STRATA} == {cert["mechanism"] for cert in CERTIFICATES.values()}
    assert set(NOTED) == set(NAMES)
    domains = [json.loads((STORED / name / "domain.geojson").read_text()) for name in NAMES]
    assert {each["features"][0]["geometry"]["type"] for each in domains} == {"Polygon", "LineString"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_verifies_opens_and_promises_the_same(name):
    shown = CliRunner().invoke(app, ["verify", str(STORED / name)])
    assert shown.exit_code == 0, shown.output
    release = load_release(STORED / name)
    assert release.mechanism == CERTIFICATES[name]["mechanism"]
    said, promised = NOTED[name], release.guarantee
    near = {"rel": 2e-5 if name in TABLES else 1e-9, "abs": 0}
    assert promised.profile.at == pytest.approx(said["at"], **near)
    assert promised.epsilon() == pytest.approx(said["epsilon"], **near)
    stated = [tuple(pair) for pair in said["by_distance"]]
    for epsilon, delta in said["delta_at_epsilon"].items():
        assert promised.delta(float(epsilon)) == pytest.approx(delta, **near), epsilon
    for delta, epsilon in said["epsilon_at_delta"].items():
        assert promised.epsilon(float(delta)) == pytest.approx(float("inf") if epsilon is None else epsilon, **near)
    assert all(any(pair == pytest.approx(each, **near) for each in promised.by_distance) for pair in stated)


# Parameters of codes, and codes, as somebody else would like them.
OTHER_CODES = {
    "unknown": lambda assumes: ["perfectly-private", *assumes[1:]],
    "missing": lambda assumes: assumes[1:],
    "too many": lambda assumes: [*assumes, "not-empty"],
    "in another order": lambda assumes: assumes[::-1],
    "another parameter": lambda assumes: [
        {
            **each,
            **{
                name: f"{value}1" if isinstance(value, str) else value + 1
                for name, value in each.items()
                if name != "code"
            },
        }
        if isinstance(each, dict)
        else each
        for each in assumes
    ],
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_sentences_may_be_reworded(name, monkeypatch):
    """Codes are compared, and nothing that is shown for them."""
    assert CERTIFICATES[name]["noise"] in catalogue.SECRET_NOISE
    for known in (
        catalogue.TEXTS,
        catalogue.ASSUMPTIONS,
        catalogue.THEOREMS,
        catalogue.SECRET_NOISE,
        catalogue.SEEDED_NOISE,
        catalogue.WARNINGS,
    ):
        for code in known:
            monkeypatch.setitem(known, code, f"Some other words for {code}.")
    verify(STORED / name).require()
    release = load_release(STORED / name)
    assert str(release.guarantee).count("Some other words for") == 1 + len(release.guarantee.assumptions)


@pytest.mark.exhaustive
@pytest.mark.parametrize("change", OTHER_CODES)
@pytest.mark.parametrize("name", NAMES)
def test_other_codes_do_not_verify(name, change, tmp_path):
    cert = copy.deepcopy(CERTIFICATES[name])
    assumes = OTHER_CODES[change](cert["guarantee"]["assumes"])
    if assumes == cert["guarantee"]["assumes"]:
        return  # no code of this release has a parameter
    cert["guarantee"]["assumes"] = assumes
    folder = shutil.copytree(STORED / name, tmp_path / "public")
    reseal(folder, cert)
    assert "bound" in failed(folder)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_no_sentence_is_stored(name):
    """Texts of a certificate are names, numbers of versions and codes: none has two words, but those of the public."""
    cert = {key: value for key, value in CERTIFICATES[name].items() if key not in ("parameters", "domain")}
    assert not [each for each in strings(cert) if " " in each]


def strings(value):
    """Texts in a certificate."""
    if isinstance(value, str):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(child)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_other_codes_of_randomness_and_warnings_do_not_verify(name, tmp_path):
    """Also where the statistics state the same, and every hash is made again."""
    noise = CERTIFICATES[name]["noise"]
    other = "discrete-gaussian" if noise != "discrete-gaussian" else "discrete-laplace"
    sources = ("perfectly-random", f"seeded-{noise}", other, catalogue.SECRET_NOISE[noise], None)
    edits = [("noise", code) for code in sources]
    edits += [("warning", code) for code in (*catalogue.WARNINGS, "all-is-well")]
    for k, (field, code) in enumerate(edits):
        folder = shutil.copytree(STORED / name, tmp_path / str(k))
        cert = copy.deepcopy(CERTIFICATES[name]) | {field: code}
        for path in folder.glob("*statistic.json"):
            path.write_text(plain_text(json.loads(path.read_text()) | {"noise": cert["noise"]}))
            cert["files"][path.name] = certificate.file_hash(path)
        reseal(folder, cert)
        try:
            assert "content" in failed(folder), code
        except InputError as err:
            assert f"at {field}" in str(err), code  # noqa: PT017


@pytest.mark.parametrize("field", ["noise", "warning"])
def test_a_missing_code_does_not_verify(field, tmp_path):
    folder = shutil.copytree(STORED / "laplace-tents", tmp_path / "public")
    cert = {key: value for key, value in CERTIFICATES["laplace-tents"].items() if key != field}
    reseal(folder, cert)
    with pytest.raises(InputError, match="required"):
        verify(folder)


def test_another_theorem_does_not_verify(tmp_path):
    for name in NAMES:
        cert = copy.deepcopy(CERTIFICATES[name])
        cert["guarantee"]["theorem"] = "counts" if cert["guarantee"]["theorem"] != "counts" else "tents"
        folder = shutil.copytree(STORED / name, tmp_path / name)
        reseal(folder, cert)
        assert "bound" in failed(folder), name


@pytest.mark.parametrize("name", NAMES)
def test_no_number_of_a_certificate_can_be_edited(name):
    """`verify` compares the content hash with the stated one; every number is under it."""
    cert = CERTIFICATES[name]
    found = [(path, value) for path, value in numbers(cert) if path != ("schema_version",)]
    assert len(found) > 4
    assert certificate.content_hash(cert) == cert["content_hash"]
    for path, value in found:
        # The next number that there is, and one that readers may take for the same.
        for other in (math.nextafter(value, math.inf), -value if value else 1):
            assert certificate.content_hash(put(cert, path, other)) != cert["content_hash"], path


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_no_claim_grows_stronger_with_the_hash_made_again(name, tmp_path):
    folder = shutil.copytree(STORED / name, tmp_path / "public")
    cert = CERTIFICATES[name]
    claims = [path for path, value in numbers(cert["guarantee"]) if value > 0]
    # Of the curve by distance its ends and middle, of a table of losses as many of its rows.
    curve = [path for path in claims if path[0] == "by_distance" and path[2] == 1]
    table = [path for path in claims if path[0] == "profile" and len(path) > 2]
    # The bound is derived for the relation that is stated, which may be a smaller one than it was released under.
    claims = [
        path for path in claims if path[0] != "by_distance" and path != ("relation", "alpha") and path not in table
    ]
    claims += [*curve[:: max(1, (len(curve) - 1) // 2)], *table[:: max(1, (len(table) - 1) // 2)]]
    stronger = [("guarantee", *path, STRONGER * value) for path in claims for value in [at(cert["guarantee"], path)]]
    assert stronger
    for *path, value in [*stronger, *budgets(cert)]:
        changed = put(cert, path, value)
        reseal(folder, changed)
        try:
            wrong = failed(folder)
        except InputError:
            continue
        assert "bound" in wrong, path


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_no_file_can_be_edited(name, tmp_path):
    """One digit of every file, or one byte of one that is not text."""
    for each in CERTIFICATES[name]["files"]:
        folder = shutil.copytree(STORED / name, tmp_path / f"public-{each}")
        path = folder / each
        content = bytearray(path.read_bytes())
        spot = max(content.rfind(b"%d" % digit) for digit in range(10))
        content[spot] = ord("7") if content[spot] != ord("7") else ord("3")
        path.write_bytes(content)
        check = next(check for check in verify(folder).checks if check.name == "files")
        assert not check.holds
        assert each in check.detail


def budgets(cert):
    """The budgets stated among the parameters, less than is spent."""
    spent = cert["guarantee"]["profile"]
    for path, value in numbers(cert["parameters"]):
        if path[-1] in ("epsilon", "delta") and value > 0:
            yield "parameters", *path, STRONGER * min(value, spent.get(path[-1], value))

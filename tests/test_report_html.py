"""The report of a release: its numbers are the certificate's, and nothing foreign gets in or out."""

import base64
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from dpppsynth import (
    AddRemove,
    AlphaNeighbours,
    InputError,
    KernelSynthesizer,
    LaplaceSynthesizer,
    LGCPSynthesizer,
    LinearNetwork,
    PointPattern,
    PrivacyCheckError,
    ReplaceOne,
    Window,
)
from dpppsynth.cli.program import _Program
from dpppsynth.cli.report import report as command
from dpppsynth.evaluation import k_function
from dpppsynth.models import regular_triangulation
from dpppsynth.plotting import surfaces
from dpppsynth.privacy import PureDP
from dpppsynth.privacy.certificate import content_hash
from dpppsynth.privacy.guarantee import Guarantee, guarantee_from_dict
from dpppsynth.privacy.profiles import GaussianDP
from dpppsynth.reporting import render_report, second_order, tables, write_report
from dpppsynth.reporting.promise import guesses, not_promised, promise

SQUARE = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
STREETS = LinearNetwork(
    [[0, 0], [400, 0], [400, 300], [0, 300], [700, 300]], [(0, 1), (1, 2), (2, 3), (3, 0), (2, 4)], "EPSG:27700"
)
HOSTILE = "<script>alert(1)</script>"
TEMPLATE = "{{ 7 * 7 }}\"' $x^$ & </td>"


def pattern(domain, n=60):
    rng = np.random.default_rng(7)
    if isinstance(domain, LinearNetwork):
        return domain.pattern(rng.integers(0, len(domain.edges), n), rng.random(n))
    return PointPattern(rng.uniform(0, 1000, (n, 2)), domain)


def by_level(domain, synthesizer):
    points = pattern(domain)
    kinds = np.where(np.arange(len(points)) < 20, HOSTILE, TEMPLATE)
    marked = PointPattern.at(points.positions, domain, {"<b>kind": kinds})
    return synthesizer.release_by(marked, by="<b>kind", levels=[HOSTILE, TEMPLATE])


def drawn():
    mesh = regular_triangulation(SQUARE, shape=(4, 4))
    options = {"delta": 1e-6, "mechanism": "posterior-draw", "sampler": "exact", "mesh": mesh, "length_scale": 450.0}
    return LGCPSynthesizer(1.0, relation=AlphaNeighbours(25.0, max_points_per_person=2), **options)


MAKE = {
    "tents": lambda: LaplaceSynthesizer(1.0, alpha=25.0, basis="tents").release(pattern(SQUARE)),
    "hidden": lambda: LaplaceSynthesizer(0.1, relation=AddRemove(3)).release(pattern(SQUARE), expected_n=50),
    "draw": lambda: drawn().release(pattern(SQUARE)),
    "streets": lambda: LaplaceSynthesizer(1.0, alpha=25.0).release(pattern(STREETS)),
    "kernel": lambda: KernelSynthesizer(10.0, 1e-6, 25.0).release(pattern(SQUARE), patterns=2),
    "levels": lambda: by_level(SQUARE, LaplaceSynthesizer(1.0, alpha=25.0)),
    "kernel levels": lambda: by_level(STREETS, KernelSynthesizer(10.0, 1e-6, alpha=25.0, spacing=100.0)),
    "seeded": lambda: LaplaceSynthesizer(1.0, alpha=25.0).release(pattern(SQUARE), 1),
}
PAID = ("kernel", "kernel levels")


class Page(HTMLParser):
    """Elements, texts and tables of a page."""

    VOID = ("meta", "img", "wbr")

    def __init__(self, text):
        super().__init__()
        self.text, self.tags, self.attributes, self.open = text, [], [], []
        self.cells, self.items, self.words = [], [], []
        self.feed(text)
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.cells.append([])
        if tag in ("th", "td"):
            self.cells[-1].append("")
        if tag == "li":
            self.items.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.words.append(data)
        if {"th", "td"} & set(self.open):
            self.cells[-1][-1] += data
        if "li" in self.open:
            self.items[-1] += data

    @property
    def visible(self):
        return re.sub(r"\s+", " ", "".join(self.words))

    def value(self, name):
        """The cells beside one name, of all tables."""
        return [cell for row in self.cells for cell in row[1:] if row[0] == name]


@pytest.fixture(scope="module", autouse=True)
def coarse():
    """Intensities in few pixels: nothing here looks at them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(surfaces, "PIXELS", 40)
        yield


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Folders of releases by name, each made once."""
    place, made = tmp_path_factory.mktemp("releases"), {}

    def folder(name):
        if name not in made:
            options = {} if name in PAID else {"patterns": int(name != "seeded"), "rng": 3}
            made[name] = MAKE[name]().save(place / name.replace(" ", "_"), **options)
        return made[name]

    return folder


@pytest.fixture(scope="module")
def shown(released):
    """Pages by name of the release, each rendered once."""
    pages = {}

    def page(name):
        if name not in pages:
            pages[name] = Page(render_report(released(name)))
        return pages[name]

    return page


@pytest.fixture
def copy(released, tmp_path):
    return shutil.copytree(released("tents"), tmp_path / "public")


def certificate(folder):
    return json.loads((folder / "certificate.json").read_text())


def change(folder, edit, *, rehash=True):
    cert = certificate(folder)
    edit(cert)
    if rehash:
        cert["content_hash"] = content_hash(cert)
    (folder / "certificate.json").write_text(json.dumps(cert))


def leaves(value):
    """The numbers and words of nested JSON."""
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in leaves(each)]
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


@pytest.mark.parametrize("name", MAKE)
class TestContent:
    def test_numbers_are_those_of_the_certificate(self, name, shown, released):
        page, cert = shown(name), certificate(released(name))
        claim = cert["guarantee"]
        assert page.value("epsilon")[0] == json.dumps(claim["profile"]["epsilon"])
        assert page.value("delta")[0] == json.dumps(claim["profile"]["delta"])
        mu = claim["profile"].get("mu")
        assert page.value("mu (Gaussian differential privacy)") == ["not applicable" if mu is None else json.dumps(mu)]
        assert page.value("Theorem") == [claim["theorem"]]
        assert page.value("Noise source") == [cert["noise"]]
        assert page.value("Content hash") == [cert["content_hash"]]
        assert page.value("Fingerprint of the domain") == [cert["domain"]["fingerprint"]]
        assert page.value("Seeded")[0].startswith("yes" if name == "seeded" else "no")
        for library, version in cert["versions"].items():
            assert page.value(f"Version of {library}") == [version]
        cells = {cell for row in page.cells for cell in row}
        for leaf in leaves(cert["parameters"]):
            assert (leaf if isinstance(leaf, str) else json.dumps(leaf, ensure_ascii=False)) in cells

    def test_assumptions_word_for_word(self, name, shown, released):
        claimed = certificate(released(name))["guarantee"]["assumptions"]
        items = shown(name).items
        first = items.index(claimed[0])
        assert items[first : first + len(claimed)] == claimed

    def test_files_with_their_hashes(self, name, shown, released):
        folder = released(name)
        listed = {row[0]: row[2:] for row in shown(name).cells if row[0].endswith((".json", ".geojson"))}
        there = {f.name for f in folder.iterdir()}
        assert listed.keys() == there
        for each, (size, digest) in listed.items():
            data = (folder / each).read_bytes()
            assert (size, digest) == (f"{len(data):,} bytes", hashlib.sha256(data).hexdigest())

    def test_profile_and_distances_are_rounded_towards_less_privacy(self, name, shown, released):
        guarantee = guarantee_from_dict(certificate(released(name))["guarantee"])
        rows = [row for row in shown(name).cells if len(row) == 2 and re.fullmatch(r"[\d.]+( \(claimed\))?", row[0])]
        profile = rows[-len(tables.profile_rows(guarantee)) :]
        assert [row[0] for row in profile if "claimed" in row[0]] == [f"{json.dumps(guarantee.epsilon())} (claimed)"]
        for epsilon, delta in profile:
            if "claimed" in epsilon:
                assert float(delta) == guarantee.profile.at
            else:
                least = guarantee.delta(float(epsilon))
                assert least <= float(delta) <= least * (1 + 2e-5)
        for distance, epsilon in rows[: -len(profile)]:
            known = [e for d, e in guarantee.by_distance if math.isclose(d, float(distance), rel_tol=1e-3)]
            if math.isclose(float(distance), guarantee.relation.reach, rel_tol=1e-3):
                known.append(guarantee.epsilon())
            assert max(known) <= float(epsilon) <= max(known) * (1 + 2e-5)

    def test_it_needs_nothing_and_runs_nothing(self, name, shown):
        page = shown(name)
        assert page.tags.count("h1") == 1
        assert not {"script", "link", "iframe", "object", "embed", "form", "b"} & set(page.tags)
        policies = [a["content"] for t, a in page.attributes if a.get("http-equiv") == "Content-Security-Policy"]
        assert policies == ["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]
        for tag, attributes in page.attributes:
            assert attributes.get("href", "#").startswith("#")
            assert attributes.get("src", "data:image/").startswith("data:image/")
            assert not [key for key in attributes if key.startswith("on")]
            if tag == "th":
                assert attributes["scope"] in ("row", "col")
        assert not re.search(r"@import|url\(", page.text)

    def test_pictures_are_whole_and_described(self, name, shown):
        pictures = [attributes for tag, attributes in shown(name).attributes if tag == "img"]
        assert len(pictures) >= 3
        for each in pictures:
            assert len(each["alt"]) > 10
            kind, data = re.fullmatch(r"data:image/([^;]+);base64,(.+)", each["src"]).groups()
            data = base64.b64decode(data, validate=True)
            if kind == "png":
                assert data.startswith(b"\x89PNG")
            else:
                assert ET.fromstring(data).tag == "{http://www.w3.org/2000/svg}svg"
                assert b"dc:date" not in data


def test_what_outsiders_wrote_stays_text(shown, released):
    page = shown("levels")
    assert "<script" not in page.text
    assert "<b>" not in page.text
    assert HOSTILE in page.visible
    assert TEMPLATE in page.visible
    assert f"Synthetic, <b>kind {HOSTILE}" in page.visible


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tents", ["no farther than 25 m away from there, along a path inside the area", "2.72 times", "73.2 of 100"]),
        ("hidden", ["up to 3 points", "a certain person is in the data, or is not", "1.11 times", "52.5 of 100"]),
        ("draw", ["up to 2 points", "give or take a probability of 1 in 1,000,000"]),
        ("streets", ["no farther than 25 m away from there, along the streets"]),
        ("kernel", ["This release holds 2 synthetic point patterns", "no released intensity"]),
        ("levels", ["It does not hide the <b>kind of any point"]),
        ("kernel levels", ["Separately for each level of <b>kind: Every point was replaced"]),
    ],
)
def test_the_promise_in_plain_words(name, words, shown):
    visible = shown(name).visible
    for each in words:
        assert each in visible
    plain = visible[visible.index("The guarantee in plain words") : visible.index("The guarantee for an auditor")]
    assert not re.search("[α-ωΑ-Ω]", plain)  # noqa: RUF001 - Greek on purpose
    # Who is in the data is public under moves, and hidden under add/remove.
    assert ("does not hide who is in the data" in plain) == (name != "hidden")


def test_how_often_a_guess_is_right():
    # Randomised response e/(1 + e); two unit normals mu apart are told apart with probability Phi(mu/2).
    pure = Guarantee(ReplaceOne(), PureDP(1.0), "t", ("a",))
    assert guesses(pure) == math.ceil(1000 * math.e / (1 + math.e)) / 10
    gaussian = replace(pure, profile=GaussianDP(1.0, 1e-6))
    assert guesses(gaussian) == 69.2
    assert "weak" not in " ".join(promise(pure, SQUARE, {}))
    assert "weak" in " ".join(promise(replace(pure, profile=PureDP(3.0)), SQUARE, {}))
    rare = "leaves room for outcomes, rare ones"
    assert rare not in " ".join(
        promise(replace(pure, profile=GaussianDP(0.3, 1e-6)), SQUARE, {})
        + promise(replace(pure, profile=PureDP(3.0)), SQUARE, {})
    )
    assert rare in " ".join(promise(replace(pure, profile=GaussianDP(2.0, 1e-6)), SQUARE, {}))
    assert "next to no protection" in " ".join(promise(replace(pure, profile=PureDP(200.0)), SQUARE, {}))


def test_what_is_merely_assumed_is_said():
    averaged = Guarantee(AlphaNeighbours(5.0), GaussianDP(1.0, 1e-6), "Theorem 3.8 (model-averaged)", ("a",))
    said = " ".join(promise(averaged, SQUARE, {"strata": [{"parameters": {"sampler": "nuts"}}]}))
    assert "For the data at hand it may fail" in said
    assert "assumed, not proved" in said
    assert "It says nothing about two places farther apart than 5 m." in not_promised(averaged, SQUARE, None)


def test_a_seeded_release_is_called_not_private(shown):
    visible = shown("seeded").visible
    assert visible.index("NOT PRIVATE") < visible.index("What was released")
    assert "This promise is not kept" in visible
    assert "The promise follows" not in visible
    assert "NOT PRIVATE" not in shown("tents").visible


def smaller(cert):
    cert["guarantee"]["profile"]["epsilon"] = 0.1


def secret(cert):
    cert.update(seeded=False, warning=None, releasable=True)


def excused(cert):
    """A seeded run as an excuse for another promise."""
    smaller(cert)
    cert.update(seeded=True, warning="This run was seeded.", releasable=False)


class TestForgeries:
    @pytest.mark.parametrize(
        ("name", "edit", "rehash"),
        [("tents", smaller, False), ("tents", smaller, True), ("seeded", secret, True), ("tents", excused, True)],
    )
    def test_a_certificate_that_does_not_hold_gets_no_report(self, name, edit, rehash, released, tmp_path):
        folder = shutil.copytree(released(name), tmp_path / "public")
        change(folder, edit, rehash=rehash)
        with pytest.raises(PrivacyCheckError, match="certificate does not hold"):
            write_report(folder)
        assert not list(tmp_path.rglob("*.html*"))

    def test_nor_do_files_that_were_changed(self, copy):
        with (copy / "synthetic_000.geojson").open("a") as file:
            file.write(" ")
        with pytest.raises(PrivacyCheckError, match="synthetic_000"):
            write_report(copy)


class TestFile:
    def test_same_bytes_wherever_and_whenever(self, copy, shown, tmp_path):
        first = write_report(copy)
        assert first == copy / "report.html"
        assert len(first.read_bytes()) < 2_000_000
        with mpl.rc_context({"font.size": 30, "svg.hashsalt": "other", "text.usetex": True}):
            again = write_report(copy / "certificate.json", tmp_path / "new" / "page.HTML").read_bytes()
        code = "import sys, dpppsynth.reporting as r, dpppsynth.plotting.surfaces as s; s.PIXELS = 40; "
        code += "r.write_report(*sys.argv[1:])"
        outside = {"PYTHONHASHSEED": "12", "TZ": "Asia/Tokyo", "PYTHONPATH": os.pathsep.join(sys.path)}
        arguments = [sys.executable, "-c", code, copy, tmp_path / "other.html"]
        subprocess.run(arguments, env=os.environ | outside, check=True, cwd=tmp_path)
        assert first.read_bytes() == again == (tmp_path / "other.html").read_bytes()
        assert str(tmp_path).encode() not in again

    def test_only_an_earlier_report_is_replaced(self, copy, tmp_path):
        other = tmp_path / "mine.html"
        other.write_text("<!DOCTYPE html><p>mine</p>")
        with pytest.raises(InputError, match="no earlier report"):
            write_report(copy, other)
        assert "mine" in other.read_text()
        for wrong in ("certificate.json", "synthetic_009.geojson", "posterior.nc", "report"):
            with pytest.raises(InputError, match=r"ending in \.html"):
                write_report(copy, copy / wrong)
        (tmp_path / "folder.html").mkdir()
        with pytest.raises(InputError, match="choose another name"):
            write_report(copy, tmp_path / "folder.html")
        with pytest.raises(InputError, match="choose another place"):
            write_report(copy, other / "below.html")

    def test_from_the_command_line(self, copy, released, tmp_path):
        app = typer.Typer(cls=_Program)
        app.callback()(lambda: None)
        app.command("report")(command)
        page = tmp_path / "seeded.html"
        run = CliRunner().invoke(app, ["report", str(released("seeded")), "--out", str(page)])
        assert (run.exit_code, run.stdout.strip()) == (0, str(page))
        assert page.exists()
        assert "must not be published" in run.stderr
        assert CliRunner().invoke(app, ["report", str(tmp_path)]).exit_code == 2
        change(copy, smaller)
        run = CliRunner().invoke(app, ["report", str(copy), "--out", str(tmp_path / "t.html")])
        assert run.exit_code == 3
        assert not (tmp_path / "t.html").exists()


class TestSecondOrder:
    def test_mean_and_range(self):
        two = [pattern(SQUARE, 30), PointPattern.synthetic(np.zeros((0, 2)), SQUARE), pattern(SQUARE, 50)]
        found = second_order.gathering(two)
        each = [k_function(p, found.r).l - found.r for p in (two[0], two[2])]
        assert found.patterns == 2
        assert not found.thinned
        np.testing.assert_allclose(found.mean, np.mean(each, axis=0), atol=1e-9)
        np.testing.assert_allclose([found.lowest, found.highest], [np.min(each, 0), np.max(each, 0)], atol=1e-9)

    def test_large_patterns_are_thinned_and_say_so(self, monkeypatch):
        monkeypatch.setattr(second_order, "ON_NETWORK", 40)
        found = second_order.gathering([pattern(STREETS)])
        assert found.thinned
        assert second_order.gathering([pattern(STREETS, 40)]).thinned is False

    def test_no_pairs(self, tmp_path):
        empty = LaplaceSynthesizer(1.0, alpha=25.0).release(pattern(SQUARE, 1)).save(tmp_path / "a", patterns=0)
        visible = Page(render_report(empty)).visible
        assert "no synthetic point patterns" in visible
        assert "There is no K-function" in visible


def test_ledger_entries_are_shown_whatever_their_form():
    assert tables.ledger_rows({}) == [("Ledger entry", "none on this certificate", False)]
    assert tables.ledger_rows({"ledger": "ab12"}) == [("Ledger entry", "ab12", True)]
    assert tables.ledger_rows({"ledger": {"entry": "ab12", "at": 3}})[1] == ("Ledger entry", "ab12", True)


def test_long_lists_are_left_to_the_certificate():
    rows = tables.parameter_rows({"parameters": {"mesh": {"vertices": [[0.5, 1.5]] * 9, "shape": [3, 3]}}})
    assert [row.value for row in rows] == ["[3, 3]", "18 numbers; see certificate.json"]


def test_distances_that_read_the_same_get_the_largest_epsilon():
    curve = ((24.999999, 0.9), (25.000001, 0.95), (50.0, 2.0))
    guarantee = Guarantee(AlphaNeighbours(25.0), PureDP(1.0), "t", ("a",), curve)
    assert dict(tables.distance_rows(guarantee))["25"] == "1"

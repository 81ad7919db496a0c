"""The report of a release: its numbers are the certificate's, and nothing foreign gets in or out."""

import base64
import contextlib
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
from pathlib import Path
from types import SimpleNamespace

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
    local,
)
from dpppsynth.cli.program import _Program
from dpppsynth.cli.report import report as command
from dpppsynth.cli.sample import sample
from dpppsynth.contract import registry
from dpppsynth.evaluation import k_function
from dpppsynth.models import regular_triangulation
from dpppsynth.privacy import ApproximateDP, PureDP, catalogue
from dpppsynth.privacy.guarantee import Guarantee, guarantee_from_dict
from dpppsynth.privacy.profiles import GaussianDP
from dpppsynth.release import folder as folder_module
from dpppsynth.release import load_release
from dpppsynth.release.certificate import LARGE_DELTA, content_hash
from dpppsynth.release.verify import verify_opened
from dpppsynth.reporting import certificate_tables, render_report, report_pictures, write_report
from dpppsynth.reporting import report_pictures as pictures
from dpppsynth.reporting import subject as subject_module
from dpppsynth.reporting.heading import Heading
from dpppsynth.reporting.page import MARK, page
from dpppsynth.reporting.promise import exposure, guesses, not_promised, promise
from dpppsynth.reporting.subject import open_subject

SQUARE = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
STREETS = LinearNetwork(
    [[0, 0], [400, 0], [400, 300], [0, 300], [700, 300]], [(0, 1), (1, 2), (2, 3), (3, 0), (2, 4)], "EPSG:27700"
)
HOSTILE = "<script>alert(1)</script>"
TEMPLATE = "{{ 7 * 7 }}\"' $x^$ & </td>"
LEVELS = HOSTILE, TEMPLATE
# A release by a theorem that holds on average over its model alone, drawn by NUTS, as it was stored.
AVERAGED = Path(__file__).parents[1] / "data" / "releases" / "lgcp-kim-lim-3.8"


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


def uneven():
    return local.AdvancedAdaptiveGrid(SQUARE, epsilon=3.0, alpha1=1.0, oracle="randomized-response")


MAKE = {
    "tents": lambda: LaplaceSynthesizer(1.0, alpha=25.0, basis="tents", postprocess="plain").release(pattern(SQUARE)),
    "hidden": lambda: LaplaceSynthesizer(0.1, relation=AddRemove(3), postprocess="plain").release(
        pattern(SQUARE), expected_n=50
    ),
    "draw": lambda: drawn().release(pattern(SQUARE)),
    "streets": lambda: LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain").release(pattern(STREETS)),
    "kernel": lambda: KernelSynthesizer(10.0, delta=1e-6, alpha=25.0).release(pattern(SQUARE), patterns=2),
    "levels": lambda: by_level(SQUARE, LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain")),
    "kernel levels": lambda: by_level(STREETS, KernelSynthesizer(10.0, delta=1e-6, alpha=25.0, spacing=100.0)),
    "seeded": lambda: LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain").release(pattern(SQUARE), 1),
    "reports": lambda: local.DiskAreaMechanism(epsilon=1.0, cells=4).release(pattern(SQUARE)),
    "nearby": lambda: local.SEMGeoI(epsilon=1.0, cells=4, subset=1).release(pattern(SQUARE)),
    "uneven": lambda: uneven().release(pattern(SQUARE)),
}
PAID = ("kernel", "kernel levels")
# Whose persons send reports of their own.
SENT = ("reports", "nearby", "uneven")


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


def number(text):
    """A number as people write it: 12,500 or 2.346 × 10⁻⁶."""
    mantissa, _, power = text.replace(",", "").rpartition("10⁻")
    if not _:
        return float(power)
    places = power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))
    return float(f"{mantissa.split()[0] if mantissa else 1}e-{places}")


@pytest.fixture
def blank(monkeypatch):
    """Pictures of no bytes."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: None)


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
    @pytest.mark.exhaustive
    def test_numbers_are_those_of_the_certificate(self, name, shown, released):
        page, cert = shown(name), certificate(released(name))
        claim = cert["guarantee"]
        for symbol in ("epsilon", "delta"):
            self.check(page.value(symbol)[0], claim["profile"][symbol])
        (mu,) = page.value("mu (Gaussian differential privacy)")
        if "mu" in claim["profile"]:
            self.check(mu, claim["profile"]["mu"])
        else:
            assert mu == "not applicable"
        assert page.value("Theorem") == [guarantee_from_dict(claim).theorem_text]
        assert page.value("Noise source") == [catalogue.text(cert["noise"])]
        assert page.value("Content hash") == [cert["content_hash"]]
        assert page.value("Fingerprint of the domain") == [cert["domain"]["fingerprint"]]
        assert page.value("Seeded")[0].startswith("yes" if name == "seeded" else "no")
        for library, version in cert["versions"].items():
            assert page.value(f"Version of {library}") == [version]
        cells = {cell for row in page.cells for cell in row}
        for leaf in leaves(cert["parameters"]):
            assert (leaf if isinstance(leaf, str) else json.dumps(leaf, ensure_ascii=False)) in cells

    def check(self, shown, value):
        """Rounded up as people write it, with what stands on the certificate where that reads otherwise."""
        rounded, *rest = shown.split(" (on the certificate ")
        assert value <= number(rounded) <= value * (1 + 1e-3)
        assert rest == ([f"{json.dumps(value)})"] if json.dumps(value) not in (rounded, f"{rounded}.0") else [])

    @pytest.mark.exhaustive
    def test_all_assumptions_are_listed(self, name, shown, released):
        claimed = [*guarantee_from_dict(certificate(released(name))["guarantee"]).assumption_texts]
        items = shown(name).items
        first = items.index(claimed[0])
        assert items[first : first + len(claimed)] == claimed

    @pytest.mark.exhaustive
    def test_files_with_their_hashes(self, name, shown, released):
        folder = released(name)
        listed = {row[0]: row[2:] for row in shown(name).cells if row[0].endswith((".json", ".geojson"))}
        there = {f.name for f in folder.iterdir()}
        assert listed.keys() == there
        for each, (size, digest) in listed.items():
            data = (folder / each).read_bytes()
            assert (size, digest) == (f"{len(data):,} bytes", hashlib.sha256(data).hexdigest())

    @pytest.mark.exhaustive
    def test_profile_and_distances_are_rounded_towards_less_privacy(self, name, shown, released):
        guarantee = guarantee_from_dict(certificate(released(name))["guarantee"])
        rows = [row for row in shown(name).cells if len(row) == 2 and re.fullmatch(r"[\d.]+( \(claimed\))?", row[0])]
        profile = rows[-len(certificate_tables.profile_rows(guarantee)) :]
        assert ["claimed" in row[0] for row in profile].count(True) == 1
        for epsilon, delta in profile:
            if "claimed" in epsilon:
                assert guarantee.epsilon() <= float(epsilon.split()[0]) <= guarantee.epsilon() * (1 + 1e-5)
                assert number(delta) == pytest.approx(guarantee.profile.at, rel=1e-5)
            else:
                least = guarantee.delta(float(epsilon))
                assert least <= number(delta) * (1 + 1e-12) <= least * (1 + 2e-5)
        for distance, epsilon in rows[: -len(profile)]:
            known = [e for d, e in guarantee.by_distance if math.isclose(d, float(distance), rel_tol=1e-3)]
            if math.isclose(float(distance), guarantee.relation.reach, rel_tol=1e-3):
                known.append(guarantee.epsilon())
            assert max(known) <= number(epsilon) <= max(known) * (1 + 2e-5)

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
            if kind == "webp":
                assert (data[:4], data[8:12]) == (b"RIFF", b"WEBP")
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
        (
            "hidden",
            ["made to every person with up to 3 points", "1.11 times", "52.5 of 100", "twice as much: epsilon 0.2."],
        ),
        ("draw", ["made to every person with up to 2 points", "a probability of 1 in 1,000,000", "at delta 10⁻⁶."]),
        ("streets", ["no farther than 25 m away from there, along the streets", "Ang's correction"]),
        ("kernel", ["holds 2 synthetic point patterns", "no released intensity", "Ripley's isotropic edge correction"]),
        (
            "levels",
            [
                "It does not hide the <b>kind of any point",
                f"under one colour scale, by <b>kind: {LEVELS[0]}, {LEVELS[1]}.",
            ],
        ),
        ("reports", ["by local differential privacy with epsilon 1 and delta 0,", "The number of reports is 60,"]),
        ("nearby", ["by geo-indistinguishability with epsilon 1 and delta 0 for places one square of", "4.243 at the"]),
        ("uneven", ["This is a weak promise.", "The number of reports is 60,", catalogue.text("rounds-apart")]),
        ("kernel levels", ["Separately for each level of <b>kind: Every point was replaced"]),
    ],
)
def test_the_promise_in_plain_words(name, words, shown):
    visible = shown(name).visible
    described = " ".join([visible, *(a["alt"] for t, a in shown(name).attributes if t == "img")])
    for each in words:
        assert each in described
    assert "What several releases reveal adds up." in visible
    assert "That one lies near people, or on a real address, tells no more than the promise allows" in visible
    assert "(docs/inference.md)" in visible[visible.index("in the source repository") :]
    plain = visible[visible.index("The guarantee in plain words") : visible.index("The guarantee for an auditor")]
    assert not re.search("[α-ωΑ-Ω]", plain)  # noqa: RUF001 - Greek on purpose
    # Who is in the data is public under moves, and hidden under add/remove.
    assert ("does not hide who is in the data" in plain) == (name not in ("hidden", *SENT))
    assert ("does not hide who sent a report" in plain) == (name in SENT)


def test_how_often_a_guess_is_right():
    # Randomised response e/(1 + e); two unit normals mu apart are told apart with probability Phi(mu/2).
    pure = Guarantee(ReplaceOne(), PureDP(1.0), "t", ("a",))
    assert guesses(pure.profile) == math.ceil(1000 * math.e / (1 + math.e)) / 10
    gaussian = replace(pure, profile=GaussianDP(1.0, 1e-6))
    assert guesses(gaussian.profile) == 69.2
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
    averaged = Guarantee(AlphaNeighbours(5.0), GaussianDP(1.0, 1e-6), "kim-lim-3.8", ("model-averaged",))
    said = " ".join(promise(averaged, SQUARE, {"strata": [{"parameters": {"sampler": "nuts"}}]}))
    assert said.startswith("Attention: this is not differential privacy as it is usually meant.")
    assert said.index("assumed, not proved") < said.index("The promise is made")
    assert "It says nothing about two places farther apart than 5 m." in not_promised(averaged, SQUARE, None)


def test_farther_places_are_as_safe_where_the_curve_has_become_level():
    rising = ((10.0, 0.4), (25.0, 1.0), (40.0, 1.6), (60.0, 1.6))
    level = ((10.0, 0.6), (20.0, 1.0), (30.0, 1.0))

    def bound(curve):
        return Guarantee(AlphaNeighbours(25.0), PureDP(1.0), "tents", ("a",), curve)

    unsafe = "does not protect places farther apart than 25 m as well"
    assert unsafe in " ".join(not_promised(bound(rising), SQUARE, None))
    assert unsafe in " ".join(not_promised(bound(rising[:2]), SQUARE, None))
    assert "farther apart" not in " ".join(not_promised(bound(level), SQUARE, None))


def test_what_holds_on_average_is_not_said_to_hold():
    visible = Page(render_report(AVERAGED)).visible
    caution = visible.index("Attention: it does not satisfy differential privacy")
    assert caution < visible.index("What was released")
    plain = visible[visible.index("The guarantee in plain words") :]
    assert plain.index("Attention: this is not") < plain.index("The promise is made") < plain.index("On average over")
    for overpromised in ("It protects", "whatever an attacker already knows", "proved mathematically"):
        assert overpromised not in visible
    assert "true on average over the model only" in visible[visible.index("Cite the release") :]


def test_a_delta_that_may_publish_a_point_is_called_weak():
    # One of n points with probability p: (0, p k / n) for a person's k points.
    weak = Guarantee(ReplaceOne(), ApproximateDP(1.0, 1e-3), "t", ("a",))
    said = promise(weak, SQUARE, {"n": 900})
    assert "probability of up to 0.9." in said[0]
    assert "this is a weak promise" in said[0]
    assert not any("Attention" in each for each in promise(weak, SQUARE, {"n": 10}))
    assert exposure(replace(weak, relation=ReplaceOne(3)), {"n": 900}) == pytest.approx(0.3)
    parts = {"strata": [{"parameters": {"n": 300}}, {"parameters": {"n": 400}}]}
    assert exposure(weak, parameters=parts) == pytest.approx(0.7)
    assert exposure(replace(weak, relation=AddRemove()), {"n": None}) == 0
    assert exposure(weak, {"n": 10**6}) == 1


def test_a_point_that_is_known_to_be_there_is_protected_half_as_well():
    # Two steps: (2 epsilon, (1 + e^epsilon) delta).
    hidden = Guarantee(AddRemove(), GaussianDP(0.3, 1e-6), "t", ("a",))
    epsilon = hidden.epsilon()
    said = " ".join(not_promised(hidden, SQUARE, None))
    price = re.search(r"cost twice as much: epsilon ([\d.]+) and delta (.+?)\. ", said + " ")
    assert [number(each) for each in price.groups()] == pytest.approx(
        [2 * epsilon, 1e-6 * (1 + math.exp(epsilon))], rel=1e-3
    )
    assert float(price[1]) >= 2 * epsilon
    assert "cost twice" not in " ".join(not_promised(replace(hidden, relation=ReplaceOne()), SQUARE, None))


@pytest.mark.parametrize("cap", [1, 2])
def test_where_a_curve_ends_it_is_not_called_level_everywhere(cap, monkeypatch):
    relation = AlphaNeighbours(5.0, max_points_per_person=cap)
    ending = Guarantee(relation, ApproximateDP(1.0, 1e-6), "t", ("a",))
    assert "level up to the privacy radius of 5 m" in pictures.alternative(ending, SQUARE)
    assert "same at all distances" not in pictures.alternative(ending, SQUARE)
    level = replace(ending, profile=PureDP(1.0))
    assert pictures.alternative(level, SQUARE).endswith("the same at all distances.")
    drawn = []
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda figure, *_, **__: drawn.append(figure.axes[0]))
    for each in (ending, level):
        pictures.epsilon_curve(each, SQUARE, "")
    # A person's bound is a single point's as well; only pure privacy may be shared out.
    assert [max(ax.lines[0].get_ydata()) for ax in drawn] == [1.0, 1.0 / cap]
    assert [ax.get_ylabel() for ax in drawn] == (
        ["ε\nat δ = 10⁻⁶", "ε"] if cap == 1 else ["ε of one single point\nat δ = 10⁻⁶", "ε of one single point"]
    )


def test_epsilons_are_never_quoted_below_what_is_proved():
    curve = ((10.0, 1.23456), (20.00099, 2.00041))
    guarantee = Guarantee(AlphaNeighbours(10.0, max_points_per_person=2), PureDP(2.46912), "t", ("a",), curve)
    assert "2.001 at the far end" in pictures.alternative(guarantee, SQUARE)
    assert certificate_tables.distance_rows(guarantee) == [("10", "1.23456"), ("20", "2.00041")]
    assert certificate_tables.distance_rows(replace(guarantee, by_distance=((19.9999, 2.0),))) == [("19.99", "2")]
    assert "cannot be told apart" not in pictures.explained(guarantee, SQUARE)


class TestWhichPattern:
    """The pictures are of what their captions say."""

    def sources(self, page):
        return {a["alt"]: a["src"] for tag, a in page.attributes if tag == "img"}

    def test_of_patterns(self, shown, released):
        patterns = open_subject(released("kernel")).patterns
        sources = self.sources(shown("kernel"))
        with pictures.house_style():
            first = pictures.pattern_map(patterns[0], "").uri
            second = pictures.pattern_map(patterns[1], "", small=True).uri
        assert sources["Map of the first synthetic pattern."] == first
        assert sources["Map of pattern 2."] == second

    def test_of_levels(self, shown, released):
        subject, sources = open_subject(released("levels")), self.sources(shown("levels"))
        first = subject.patterns[0]
        for level in LEVELS:
            part = subject.of_level(first, level)
            assert 0 < len(part) < len(first)
            np.testing.assert_array_equal(part.xy, first.xy[first.marks["<b>kind"] == level])
            with pictures.house_style():
                assert sources[f"Map of the first synthetic pattern, <b>kind {level}."] == (
                    pictures.pattern_map(part, "", small=True).uri
                )
        (alt,) = [alt for alt in sources if "of the released intensity" in alt]
        assert all(level in alt for level in LEVELS)
        with pictures.house_style():
            assert sources[alt] == pictures.intensity_panels(subject.intensities(), "").uri


def test_every_mechanism_is_described_in_its_own_words():
    plan = SimpleNamespace(basis="tents", domain=None)
    descriptions = [registry.mechanism(name).words.describe(plan) for name in registry.names()]
    assert len(set(descriptions)) == len(descriptions)
    assert all(each.endswith(".") for each in descriptions)


def test_a_seeded_release_is_called_not_private(shown):
    visible = shown("seeded").visible
    assert visible.index("NOT PRIVATE") < visible.index("What was released")
    assert "Do not rely on this promise" in visible
    assert "The promise follows" not in visible
    assert "It protects" not in visible
    assert "It would protect" not in visible
    assert "NOT PRIVATE" not in shown("tents").visible


def smaller(cert):
    cert["guarantee"]["profile"]["epsilon"] = 0.1


def secret(cert):
    cert.update(seeded=False, warning=None, releasable=True)


def excused(cert):
    """A seeded run as an excuse for another promise."""
    smaller(cert)
    cert.update(seeded=True, warning="seeded", releasable=False)


def test_a_large_delta_is_not_blamed_on_the_randomness(released, tmp_path):
    """A certificate that disowns its release for another reason than a seed."""
    folder = shutil.copytree(released("tents"), tmp_path / "public")
    change(folder, lambda cert: cert.update(releasable=False, warning=LARGE_DELTA))
    visible = Page(render_report(folder)).visible
    assert "NOT PRIVATE" in visible
    assert "the certificate says itself that this release must not be published" in visible
    assert "that of the randomness" not in visible
    assert "It would protect" not in visible


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("version", "printed"),
    [
        ("1.2.0", True),
        ("1.2.0rc1.post2.dev3+local.1", True),
        ("1; curl example.org|sh", False),
        ("1.0\ncurl example.org", False),
        ("1.0\n", False),
        ("$(id)", False),
        (None, False),
    ],
)
def test_no_command_is_taken_from_a_certificate(version, printed, blank, released):
    subject = open_subject(released("tents"))
    stated = {} if version is None else {"dpppsynth": version}
    text = page(replace(subject, certificate={**subject.certificate, "versions": stated}))
    blocks = re.findall(r"<pre>(.*?)</pre>", text, re.DOTALL)
    assert [re.sub("<.*?>", "", block).splitlines()[:2] for block in blocks] == [
        ["dpppsynth verify .", "dpppsynth audit ."]
    ]
    assert "pip install" not in text
    visible = Page(text).visible
    assert (f"Install dpppsynth {version}, from where its authors publish it." in visible) == printed
    assert ("Install dpppsynth, from where its authors publish it." in visible) != printed


def test_half_characters_are_shown_by_their_numbers(blank, copy):
    subject = open_subject(copy)
    versions = subject.certificate["versions"] | {"x\ud800": "\udfff"}
    said = {"versions": versions, "releasable": False, "warning": "no \ud812 way"}
    text = page(replace(subject, certificate={**subject.certificate, **said}))
    assert "no \\ud812 way" in text
    assert Page(text).value("Version of x\\ud800") == ["\\udfff"]
    text.encode()


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
    @pytest.mark.slow
    def test_same_bytes_wherever_and_whenever(self, copy, shown, tmp_path):
        with mpl.rc_context({"font.size": 30, "svg.hashsalt": "other", "text.usetex": True}):
            first = write_report(copy)
        assert first == copy / "report.html"
        assert len(first.read_bytes()) < 2_000_000
        code = "import sys, dpppsynth.reporting as r, dpppsynth.plotting.surfaces as s; s.PIXELS = 40; "
        code += "r.write_report(*sys.argv[1:])"
        outside = {"PYTHONHASHSEED": "12", "TZ": "Asia/Tokyo", "PYTHONPATH": os.pathsep.join(sys.path)}
        other = tmp_path / "new" / "page.HTML"
        arguments = [sys.executable, "-c", code, copy / "certificate.json", other]
        subprocess.run(arguments, env=os.environ | outside, check=True, cwd=tmp_path)
        assert first.read_bytes() == other.read_bytes()
        assert str(tmp_path).encode() not in other.read_bytes()

    def test_the_heading_is_kept_where_a_report_is_made_anew(self, copy):
        said = Heading(title='Burglaries <of> "Camden", 2023', purpose="for residents & planners")
        page = write_report(copy, heading=said).read_text()
        assert "<h1>Burglaries &lt;of&gt;" in page
        assert "Purpose: for residents &amp; planners." in page
        assert write_report(copy).read_text() == page
        again = write_report(copy, heading=Heading(custodian="The council")).read_text()
        assert "<h1>Burglaries &lt;of&gt;" in again
        assert "Published by The council." in again
        assert Heading.of(copy / "report.html") == Heading(said.title, "The council", said.purpose)
        with pytest.raises(InputError, match=r"^title: must be one line"):
            Heading("two\nlines")

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

    @pytest.mark.parametrize(
        "out", ["a\0.html", "a" * 400 + ".html", "a" * 253 + ".html", 5, 3.5, b"x.html", "", "\ud800.html"]
    )
    def test_what_is_no_name_of_a_file_is_refused_in_words(self, out, copy, tmp_path, monkeypatch, blank):
        monkeypatch.chdir(tmp_path)
        with contextlib.suppress(InputError):
            # The file system decides about names that are merely odd.
            assert write_report(copy, out).name == out
            assert out == "\ud800.html"

    @pytest.mark.parametrize("wrong", ["typo", "synthetic_000.geojson", "typo/certificate.json", "a\0b", "a" * 400])
    def test_a_wrong_path_is_not_taken_for_its_folder(self, wrong, copy):
        for opening in (write_report, load_release):
            with pytest.raises(InputError, match=r"release: |certificate: |path: "):
                opening(copy / wrong)
        assert not list(copy.rglob("*.html"))
        with pytest.raises(InputError):
            write_report(3)

    def test_a_release_is_verified_once(self, copy, monkeypatch):
        calls = []
        for module in (subject_module, folder_module):
            monkeypatch.setattr(module, "verify_opened", lambda *a: calls.append(a) or verify_opened(*a))
        open_subject(copy)
        assert len(calls) == 1

    def test_large_patterns_are_not_all_read(self, copy, monkeypatch):
        source, cert = copy / "synthetic_000.geojson", certificate(copy)
        for k in range(1, 6):
            shutil.copy(source, copy / f"synthetic_00{k}.geojson")
            cert["files"][f"synthetic_00{k}.geojson"] = cert["files"][source.name]
        change(copy, lambda old: old.update(cert))
        every = open_subject(copy).patterns
        assert len(every) == 6
        monkeypatch.setattr(subject_module, "ENOUGH", 4 * len(every[0]) + 1)
        assert len(open_subject(copy).patterns) == 5
        monkeypatch.setattr(subject_module, "ENOUGH", 1)
        said = []
        assert len(open_subject(copy, said.append).patterns) == 4
        assert said == ["checking the release", "reading synthetic patterns"]

    def test_sampling_makes_a_report_anew(self, copy, blank, monkeypatch):
        app = typer.Typer(cls=_Program)
        app.callback()(lambda: None)
        app.command("sample")(sample)
        mine = copy / "report.html"
        for text in (None, "mine", MARK):
            if text is not None:
                mine.write_text(text)
            run = CliRunner().invoke(app, ["sample", str(copy)])
            assert run.exit_code == 0, run.output
            assert "out of date" not in run.stderr
            then = page(open_subject(copy)) if text == MARK else text
            assert (mine.read_text() if mine.exists() else None) == then
        replaced = Path.replace

        def full(path, target):
            if Path(target).name == mine.name:
                raise OSError(28, "no room")
            return replaced(path, target)

        monkeypatch.setattr(Path, "replace", full)
        run = CliRunner().invoke(app, ["sample", str(copy)])
        assert run.exit_code == 0
        assert "out of date" in run.stderr
        assert "no room" in run.stderr

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
    def test_mean_and_range(self, monkeypatch):
        two = [pattern(SQUARE, 30), PointPattern.synthetic(np.zeros((0, 2)), SQUARE), pattern(SQUARE, 50)]
        found = report_pictures.gathering(two)
        assert not found.thinned
        r = found.curves[0].r
        each = [k_function(p, r).l - r for p in (two[0], two[2])]
        monkeypatch.setattr(report_pictures, "_picture", lambda ax, _alt: ax)
        drawn = report_pictures.gathering_curve(found, SQUARE, "")
        np.testing.assert_allclose(drawn.lines[0].get_ydata(), np.mean(each, axis=0), atol=1e-9)
        border = drawn.collections[0].get_paths()[0].vertices[:, 1]
        np.testing.assert_allclose([border.min(), border.max()], [np.min(each), np.max(each)], atol=1e-9)

    def test_large_patterns_are_thinned_and_say_so(self, monkeypatch):
        monkeypatch.setattr(report_pictures, "ON_NETWORK", 40)
        found = report_pictures.gathering([pattern(STREETS)])
        assert found.thinned
        assert report_pictures.gathering([pattern(STREETS, 40)]).thinned is False

    def test_no_pairs(self, tmp_path):
        empty = (
            LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain")
            .release(pattern(SQUARE, 1))
            .save(tmp_path / "a", patterns=0)
        )
        visible = Page(render_report(empty)).visible
        assert "no synthetic point patterns" in visible
        assert "There is no K-function" in visible


def test_long_lists_are_left_to_the_certificate():
    rows = certificate_tables.parameter_rows({"parameters": {"mesh": {"vertices": [[0.5, 1.5]] * 9, "shape": [3, 3]}}})
    assert [row.value for row in rows] == ["[3, 3]", "18 numbers; see certificate.json"]


def test_distances_that_read_the_same_get_the_largest_epsilon():
    curve = ((24.999999, 0.9), (25.000001, 0.95), (50.0, 2.0))
    guarantee = Guarantee(AlphaNeighbours(25.0), PureDP(1.0), "t", ("a",), curve)
    assert dict(certificate_tables.distance_rows(guarantee))["25"] == "1"

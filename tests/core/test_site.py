"""The site: every page stands in a list, every public name in the reference."""

import re
from pathlib import Path

import pytest

import dpppsynth

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_reference_has_every_public_name():
    """Names of the package itself are listed by hand, since modules that repeat them leave them out."""
    text = "".join(page.read_text() for page in (DOCS / "api").glob("*.rst"))
    listed = set(re.findall(r":: (?:dpppsynth\.)?(\w+)$", text, re.MULTILINE))
    assert set(dpppsynth.__all__) <= listed


def test_index_names_every_theorem_that_a_certificate_can_name():
    text = "".join(file.read_text() for file in (ROOT / "dpppsynth").rglob("*.py"))
    named = set(re.findall(r'"(Theorem \w+ \([^"]+\)|Kim & Lim, [^"]+)"', text))
    assert {"Theorem 2 (tents)", "Theorem S (capped pair sums)", "Kim & Lim, Theorem 3.6"} < named
    rows = set(re.findall(r"^\| ([^|]+) \|", (DOCS / "theory" / "theorems.md").read_text(), re.MULTILINE))
    assert named <= rows
    # A certificate that was stored says no other words, but for those that join two.
    stored = (file.read_text() for file in (ROOT / "tests" / "data").rglob("certificate.json"))
    names = {name for each in stored for name in re.findall(r'"theorem": "([^"]+)"', each)}
    parts = {part for name in names for part in re.split(r" and |, in parallel over.*|, added up", name) if part}
    assert parts <= rows


@pytest.mark.parametrize("word", ["window", "pattern", "tent", "mesh", "relation", "level", "offset", "certificate"])
def test_glossary_has_the_words_of_the_guides(word):
    assert f"\n{word}\n    " in (DOCS / "glossary.md").read_text()

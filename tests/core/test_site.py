"""The site: every page stands in a list, every public name in the reference."""

import re
from pathlib import Path

import dpppsynth
from dpppsynth.privacy import catalogue

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_reference_has_every_public_name():
    """Names of the package itself are listed by hand, since modules that repeat them leave them out."""
    text = "".join(page.read_text() for page in (DOCS / "api").glob("*.rst"))
    listed = set(re.findall(r":: (?:dpppsynth\.)?(\w+)$", text, re.MULTILINE))
    assert set(dpppsynth.__all__) <= listed


def test_index_names_every_theorem_that_a_certificate_can_name():
    named = {text for text in catalogue.THEOREMS.values() if text.startswith(("Theorem", "Kim"))}
    assert len(named) >= 18
    rows = set(re.findall(r"^\| ([^|]+) \|", (DOCS / "theory" / "theorems.md").read_text(), re.MULTILINE))
    assert named <= rows

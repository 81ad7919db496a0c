"""The site: every page stands in a list, every public name in the reference."""

import re
from pathlib import Path

import dpppsynth

DOCS = Path(__file__).parents[2] / "docs"


def test_reference_has_every_public_name():
    """Names of the package itself are listed by hand, since modules that repeat them leave them out."""
    text = "".join(page.read_text() for page in (DOCS / "api").glob("*.rst"))
    listed = set(re.findall(r":: (?:dpppsynth\.)?(\w+)$", text, re.MULTILINE))
    # With baselines nobody may release.
    assert set(dpppsynth.__all__) - listed == {"baselines"}

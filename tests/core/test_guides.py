"""The guides' Python blocks run, as a reader would run them, and their links lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDES = [
    f"docs/{name}.md"
    for name in (
        "auditing",
        "bounded_error",
        "covariates",
        "files",
        "heatmaps",
        "inference",
        "ledger",
        "local",
        "marks",
        "privacy_promise",
    )
]
DOCUMENTS = sorted(str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("name", GUIDES)
def test_blocks_run_in_order(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names = {}
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        exec(compile(block, name, "exec"), names)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name):
    # Code is no text: `Words[Plan](text)` looks like a link.
    text = re.sub(r"^```.*?^```", "", (ROOT / name).read_text(), flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"\]\(([^)#]+)\)", text)
    here = [link for link in found if not link.startswith("https://")]
    assert not [link for link in here if not (ROOT / name).parent.joinpath(link).exists()]

"""Tables that benchmarks fill in hand-written pages."""

import importlib
import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pages():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(CHECKOUT / "benchmarks"))
        yield importlib.import_module("pages")


def test_a_table_is_filled_between_its_comments_alone(pages, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Before.\n\n<!-- one -->\n\n| old |\n\n<!-- /one -->\n\nAfter.\n")
    for _ in range(2):
        pages.fill(page, "one", pages.table(["a", "b"], [["1", "2"]]))
    filled = "| a | b |\n|---|---|\n| 1 | 2 |"
    assert page.read_text() == f"Before.\n\n<!-- one -->\n\n{filled}\n\n<!-- /one -->\n\nAfter.\n"
    with pytest.raises(SystemExit, match="no place for two"):
        pages.fill(page, "two", [])


def test_places_for_tables_hold_one_each():
    """A comment that is not closed would swallow the text up to the next one."""
    places = 0
    for page in (CHECKOUT / "docs" / "results").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        names = re.findall(r"<!-- ([^/].*?) -->", text)
        assert len(set(names)) == len(names), page
        for name in names:
            within = text.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- /{name} -->")[0]
            assert "\n\n|" in f"\n{within}", (page, name)
            assert within.endswith("|\n\n"), (page, name)
            assert "\n#" not in within, (page, name)
            places += 1
    assert places > 40

"""Tables that benchmarks fill in hand-written pages."""

import importlib
import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
RESULTS = CHECKOUT / "docs" / "results"


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
    with pytest.raises(SystemExit, match="no place for all of two"):
        pages.fill(page, "two", [])


def test_a_table_goes_to_the_file_that_its_page_links_to(pages, tmp_path):
    """Marks of Markdown stay behind; commas in cells are quoted."""
    page = tmp_path / "page.md"
    page.write_text("[rows](page/of-two.csv)\n\n<!-- of two -->\n\n<!-- /of two -->\n")
    lines = pages.table(["", "b"], [["**.12 ± .01**", "*a, 1*"], ["`t.py::x`", "Porto*"]])
    pages.fill(page, "of two", lines)
    assert "\n".join(["<!-- of two -->", "", *lines, "", "<!-- /of two -->"]) in page.read_text()
    assert (tmp_path / "page" / "of-two.csv").read_text() == ',b\n.12 ± .01,"a, 1"\nt.py::x,Porto*\n'
    page.write_text("[rows](page/alone.csv)\n")
    two = [*pages.table(["SIM", "eps 1"], [["ours", "1"]]), "", *pages.table(["CC", "eps 1"], [["ours", "2"]])]
    pages.fill(page, "alone", two)
    assert (tmp_path / "page" / "alone.csv").read_text() == ",,eps 1\nSIM,ours,1\nCC,ours,2\n"
    assert page.read_text() == "[rows](page/alone.csv)\n"


def test_a_page_chooses_columns_and_rows_of_a_table_whose_whole_is_a_file(pages, tmp_path):
    """Columns come in the page's order, rows in the table's; what a page leaves out must be beside it."""
    page = tmp_path / "page.md"
    place = "<!-- one: c | a; b = 2 | 3 -->"
    page.write_text(f"[rows](page/one.csv)\n\n{place}\n\n<!-- /one -->\n")
    lines = pages.table(["a", "b", "c"], [["x", "1", "p"], ["y", "3", ""], ["", "2", "**r**"]])
    for _ in range(2):
        pages.fill(page, "one", lines)
    shown = "| c | a |\n|---|---|\n|  | y |\n| **r** |  |"
    assert page.read_text() == f"[rows](page/one.csv)\n\n{place}\n\n{shown}\n\n<!-- /one -->\n"
    assert (tmp_path / "page" / "one.csv").read_text() == "a,b,c\nx,1,p\ny,3,\n,2,r\n"
    page.write_text(f"{place}\n\n<!-- /one -->\n")
    with pytest.raises(SystemExit, match="no link to page"):
        pages.fill(page, "one", lines)
    for wrong in ("a | d", "a; d = 1", "b"):
        with pytest.raises(SystemExit, match="each there once"):
            pages.chosen(pages.table(["a", "b", "b"], [["x", "1", "p"]]), wrong)


def test_files_of_rows_are_linked_from_their_pages():
    files = list(RESULTS.glob("*/*.csv"))
    assert len(files) > 40
    for file in files:
        page = file.parent.with_suffix(".md")
        assert f"({file.parent.name}/{file.name})" in page.read_text(encoding="utf-8"), file


def test_the_summary_of_audits_counts_the_rows_of_its_files(pages):
    summary = importlib.import_module("audit_summary")
    cells = {"no": "missed", "yes": "found", "refused: InputError": "refused"}
    cells |= {"SURVIVED": "missed", "BAD: NameError in `t.py`": "missed", "novel/test_x.py::test_y": "found"}
    assert {cell: summary.verdict(cell) for cell in cells} == cells
    shown = (RESULTS / "audit.md").read_text(encoding="utf-8")
    for row in summary.rows(RESULTS / "audit.md"):
        assert pages.line(row) in shown


def test_places_for_tables_hold_one_each():
    """A comment that is not closed would swallow the text up to the next one."""
    places = 0
    for page in RESULTS.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        names = re.findall(r"<!-- ([^/].*?) -->", text)
        assert len(set(names)) == len(names), page
        for name in names:
            within = text.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- /{name.partition(':')[0]} -->")[0]
            assert "\n\n|" in f"\n{within}", (page, name)
            assert within.endswith("|\n\n"), (page, name)
            assert "\n#" not in within, (page, name)
            places += 1
    assert places > 30

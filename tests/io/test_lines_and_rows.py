"""No row of a CSV file vanishes in a cell of another one; encodings are named."""

import gzip

import geopandas
import pytest
import shapely

from dpppsynth.core.errors import InformationWarning, InputError
from dpppsynth.io import inspect_points, read_batches, read_pattern, read_window, require_head
from dpppsynth.io.layers import read_population
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.tables import csv_files

WINDOW = Window.rectangle(0, 0, 1000, 1000)
ROWS = [f"{k}.5,{k}.25,ok" for k in range(1, 31)]


def csv_of(rows, header="x,y,note", end="\n"):
    return end.join([header, *rows, ""])


def refused(read, *args, **options):
    with pytest.raises(InputError) as raised:
        read(*args, **options)
    assert not any(f"{k}.25" in str(raised.value) for k in range(1, 31))
    return str(raised.value)


def with_cells(cells):
    """The rows with other last cells, by number."""
    return [f"{row.rpartition(',')[0]},{cells[k]}" if k in cells else row for k, row in enumerate(ROWS)]


SWALLOWED = {
    "to the end of a later cell": with_cells({3: '"steel pipe', 9: 'wall"'}),
    "of one row": with_cells({3: '"steel pipe', 4: 'wall"'}),
    "with a doubled mark in between": with_cells({3: '"steel pipe', 6: '5"" pipe', 9: 'wall"'}),
    "of cells in front": [f"ok,{row}" if k not in (2, 5) else '"a,1,1,b' if k == 2 else 'a",1,1,b'
                          for k, row in enumerate(ROWS)],
}  # fmt: skip


class TestSwallowedRows:
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    @pytest.mark.parametrize("name", ["p.csv", "p.csv.gz"])
    @pytest.mark.parametrize("rows", SWALLOWED.values(), ids=SWALLOWED)
    def test_every_reader_refuses(self, rows, name, end, tmp_path):
        header = "x,y,note" if rows[0].count(",") == 2 else "kind,x,y,note"
        content = csv_of(rows, header, end).encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        whole, inspect = read_pattern, inspect_points
        assert "could be rows by themselves" in refused(whole, tmp_path / name, WINDOW)
        assert "could be rows by themselves" in refused(inspect, tmp_path / name, WINDOW, report_to=tmp_path)
        assert "could be rows by themselves" in refused(read_batches(tmp_path / name, WINDOW).count)

    @pytest.mark.parametrize("separator", [";", "\t", "|"])
    def test_other_separators(self, separator, tmp_path):
        text = csv_of(SWALLOWED["of one row"]).replace(",", separator)
        (tmp_path / "p.csv").write_text(text)
        assert "could be rows" in refused(read_pattern, tmp_path / "p.csv", WINDOW, separator=separator)

    @pytest.mark.parametrize("cell", ['"steel pipe', '"steel" pipe', '"a"b"'])
    def test_a_mark_that_is_never_closed(self, cell, tmp_path):
        (tmp_path / "p.csv").write_text(csv_of(with_cells({3: cell, 9: 'opened with 5" pipe'})))
        assert "a quotation mark" in refused(read_pattern, tmp_path / "p.csv", WINDOW)

    def test_in_the_header(self, tmp_path):
        (tmp_path / "p.csv").write_text(csv_of(ROWS, 'x,y,"note'))
        assert "a quotation mark" in refused(require_head, tmp_path / "p.csv", WINDOW)

    def test_cells_of_several_lines_are_read_and_remarked_on(self, tmp_path):
        rows = with_cells({3: '"first line, and more\nsecond line"', 9: '"one line, ""quoted"""'})
        (tmp_path / "p.csv").write_text(csv_of(rows))
        assert len(read_pattern(tmp_path / "p.csv", WINDOW)) == len(ROWS)
        found = inspect_points(tmp_path / "p.csv", WINDOW, report_to=tmp_path)
        assert found.ok
        assert "more lines than rows" in " ".join(found.remarks)
        (tmp_path / "p.csv").write_text(csv_of(with_cells({9: '"one line, ""quoted"""'})))
        assert not inspect_points(tmp_path / "p.csv", WINDOW, report_to=tmp_path).remarks


UMLAUTS = "x,y,straße\n" + "".join(f"{k}.5,{k}.25,Café “{k}”\n" for k in range(1, 31))
REMEDIES = {"cp1252": "cp1252", "utf-16": "utf-16", "utf-16-le": "utf-16-le", "utf-16-be": "utf-16-be"}


class TestEncodings:
    @pytest.mark.parametrize("name", ["p.csv", "p.csv.gz"])
    @pytest.mark.parametrize("encoding", REMEDIES)
    def test_the_remedy_works(self, encoding, name, tmp_path):
        content = UMLAUTS.encode(encoding)
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        for read in (read_pattern, require_head):
            assert f"encoding='{REMEDIES[encoding]}'" in refused(read, tmp_path / name, WINDOW)
        found = read_pattern(tmp_path / name, WINDOW, encoding=encoding, marks=["straße"])
        assert found.marks["straße"].tolist() == [f"Café “{k}”" for k in range(1, 31)]
        assert read_batches(tmp_path / name, WINDOW, encoding=encoding).count() == len(found)

    def test_another_one_than_is_said(self, tmp_path):
        (tmp_path / "p.csv").write_bytes(UMLAUTS.encode("cp1252"))
        assert "no text in utf-16" in refused(read_pattern, tmp_path / "p.csv", WINDOW, encoding="utf-16")
        (tmp_path / "p.csv").write_bytes(b"x,y,a\n1,1,\x81\n")
        assert "no text in cp1252" in refused(read_pattern, tmp_path / "p.csv", WINDOW, encoding="cp1252")

    def test_of_rows_alone(self, tmp_path):
        (tmp_path / "p.csv").write_bytes(csv_of(with_cells({20: "Café"})).encode("cp1252"))
        assert require_head(tmp_path / "p.csv", WINDOW) == ("x", "y", "note")
        assert "encoding='cp1252'" in refused(read_pattern, tmp_path / "p.csv", WINDOW)


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_the_line_of_excel_is_named(sign, tmp_path):
    (tmp_path / "p.csv").write_text(f"sep={sign}\n" + csv_of(ROWS).replace(",", sign))
    for separator in (",", ";"):
        said = refused(require_head, tmp_path / "p.csv", WINDOW, separator=separator)
        assert f"separator={sign!r}" in said
    (tmp_path / "p.csv").write_text(csv_of(ROWS).replace(",", sign))
    assert len(read_pattern(tmp_path / "p.csv", WINDOW, separator=sign)) == len(ROWS)


class TestNumbersOfRows:
    @pytest.mark.parametrize("rows", [ROWS, with_cells({3: '"first, and\nsecond line"'})], ids=["plain", "quoted"])
    @pytest.mark.parametrize("lost", [0, 29])
    def test_a_row_that_the_parser_loses_refuses_the_file(self, rows, lost, tmp_path, monkeypatch):
        (tmp_path / "p.csv").write_text(csv_of(rows))
        parsed = csv_files._parsed

        def leaking(*args, **options):
            for texts in parsed(*args, **options):
                kept = [column.take([k for k in range(len(column)) if k != lost]) for column in texts.columns]
                yield texts._replace(columns=kept)

        assert len(read_pattern(tmp_path / "p.csv", WINDOW)) == 30
        monkeypatch.setattr(csv_files, "_parsed", leaking)
        assert "rows would be lost" in refused(read_pattern, tmp_path / "p.csv", WINDOW)
        assert "rows would be lost" in refused(read_batches(tmp_path / "p.csv", WINDOW).count)

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\r\r\n", "\n\n\n"])
    @pytest.mark.parametrize("start", ["", "\ufeff", "\n\n", "\ufeff\r\n"])
    @pytest.mark.parametrize("last", ["", "9.5,9.25,ok"])
    def test_empty_lines_and_any_line_ends_are_no_rows(self, end, start, last, tmp_path):
        (tmp_path / "p.csv").write_bytes((start + csv_of(ROWS, end=end) + last).encode())
        assert len(read_pattern(tmp_path / "p.csv", WINDOW)) == 30 + bool(last)

    def test_rows_of_other_lengths_are_counted(self, tmp_path):
        (tmp_path / "p.csv").write_text(csv_of([*ROWS, "1,2", "1,2,3,4"]))
        found = inspect_points(tmp_path / "p.csv", WINDOW, report_to=tmp_path)
        assert (found.rules, found.rows, found.offending) == (("wrong number of fields",), 32, 2)
        assert "32" not in repr(found)


class TestPublicRowsWithoutAPlace:
    def test_of_a_window_they_are_among_its_changes(self, tmp_path):
        shapes = [shapely.box(0, 0, 9, 9), None, shapely.Polygon()]
        geopandas.GeoSeries(shapes, crs="EPSG:27700").to_file(tmp_path / "w.gpkg")
        assert read_window(tmp_path / "w.gpkg").changes == ("left out 2 rows without a geometry",)

    def test_inhabitants_of_nowhere_are_told(self, tmp_path):
        people = geopandas.GeoDataFrame(
            {"people": [5.0, 700.0]}, geometry=[shapely.box(0, 0, 1000, 1000), None], crs="EPSG:27700"
        )
        people.to_file(tmp_path / "people.gpkg")
        domain = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
        with pytest.warns(InformationWarning, match=r"people.gpkg: 1 of 2 rows has no geometry"):
            read_population(tmp_path / "people.gpkg", "people", domain)

"""Check-in files: what is read, chosen and refused."""

import gzip

import checkins as module
import numpy as np
import pytest
from checkins import busiest_cells, read_checkins

from dpppsynth.core.errors import InputError

LINES = [
    "58186\t2008-12-03T21:09:14Z\t39.633321\t-105.317215\tee8b88dea22411",
    "9\t2009-12-31T23:59:59Z\t40.0\t-73.5\tb",
    '58186\t2010-01-01T00:00:00Z\t40.25\t-73.75\t"c',
    "11\t2010-01-31T23:59:59Z\t-40.25\t170.5\td e",
    "9\t2010-02-01T00:00:00Z\t40.0\t-74.0\tb",
]
NEW_YORK = (-74.0, 40.0, -73.0, 40.5)
SECRET = "61.4977753"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "checkins.txt"
    path.write_text("\n".join(LINES) + "\n")
    return path


def test_all_columns_are_read_as_they_stand(file):
    found = read_checkins(file)
    assert found.user.tolist() == [0, 1, 0, 2, 1]
    assert found.time[0] == np.datetime64("2008-12-03T21:09:14")
    assert found.latitude.tolist() == [39.633321, 40.0, 40.25, -40.25, 40.0]
    assert found.longitude.tolist() == [-105.317215, -73.5, -73.75, 170.5, -74.0]
    assert found.place.tolist() == ["ee8b88dea22411", "b", '"c', "d e", "b"]
    assert len(found) == 5


def test_compressed_files_read_alike(file, tmp_path):
    path = tmp_path / "checkins.txt.gz"
    path.write_bytes(gzip.compress(file.read_bytes()))
    assert read_checkins(path).longitude.tolist() == read_checkins(file).longitude.tolist()


def test_intervals_hold_their_start_and_not_their_end(file):
    january = read_checkins(file, since="2010-01-01", until="2010-02-01")
    assert january.place.tolist() == ['"c', "d e"]
    assert january.user.tolist() == [0, 1]
    assert len(read_checkins(file, since="2010-01-31T23:59:59Z")) == 2
    # A time zone moves the limit.
    assert len(read_checkins(file, since="2010-01-31T23:59:59-05:00")) == 0


def test_boxes_hold_their_south_west_and_not_their_north_east(file):
    assert read_checkins(file, box=NEW_YORK).place.tolist() == ["b", '"c', "b"]
    assert read_checkins(file, box=(-75.0, 39.0, -73.5, 40.25)).place.tolist() == ["b"]
    assert read_checkins(file).within(NEW_YORK).place.tolist() == ["b", '"c', "b"]


def test_the_pole_and_the_date_line_belong_to_the_world(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("1\t2010-01-01T00:00:00Z\t90\t180\ta\n1\t2010-01-01T00:00:00Z\t-90\t-180\ta\n")
    assert len(read_checkins(path)) == 2


def test_the_box_becomes_the_unit_square_with_x_to_the_east(file):
    found = read_checkins(file, box=NEW_YORK)
    assert found.unit_square(NEW_YORK).tolist() == [[0.5, 0.0], [0.25, 0.5], [0.0, 0.0]]


def test_what_lies_within_a_box_stays_below_one():
    # In floating point (0.3 - eps - 0.1) / (0.3 - 0.1) rounds to 1.
    one = np.array([np.nextafter(0.3, 0)])
    found = module.CheckIns(np.zeros(1, int), np.zeros(1, "M8[s]"), one, one, np.array(["a"], object))
    assert (found.unit_square((0.1, 0.1, 0.3, 0.3)) < 1).all()


def test_batches_join_without_a_seam(file, monkeypatch):
    together = read_checkins(file)
    monkeypatch.setattr(module, "BATCH", 2)
    assert read_checkins(file).user.tolist() == together.user.tolist()


@pytest.mark.parametrize(
    "line",
    [
        f"1\t2010-01-01T00:00:00Z\t{SECRET}\t\tplace",
        f"1\tyesterday\t{SECRET}\t23.5\tplace",
        f"1\t2010-01-01T00:00:00Z\t{SECRET}\t223.5\tplace",
        f"1\t2010-01-01T00:00:00Z\t{SECRET}\tinf\tplace",
        f"1\t2010-01-01T00:00:00Z\t{SECRET}\tnan\tplace",
        f"1\t2010-01-01T00:00:00Z\t{SECRET}\t23.5",
        f"\t2010-01-01T00:00:00Z\t{SECRET}\t23.5\tplace",
        f"NA\t2010-01-01T00:00:00Z\t{SECRET}\t23.5\tplace",
    ],
)
def test_incomplete_lines_are_refused_or_dropped_and_never_quoted(tmp_path, line):
    path = tmp_path / "checkins.txt"
    path.write_text("\n".join([LINES[0], line, LINES[1]]) + "\n")
    with pytest.raises(InputError, match="incomplete=") as caught:
        read_checkins(path)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert len(read_checkins(path, incomplete="drop")) == 2


@pytest.mark.parametrize("extra", ["\tmore", "\tmore\tand more"])
@pytest.mark.parametrize("row", [0, 1])
def test_lines_with_more_fields_are_another_format(tmp_path, extra, row):
    path = tmp_path / "checkins.txt"
    lines = list(LINES)
    lines[row] += extra
    path.write_text("\n".join(lines))
    for choice in ("raise", "drop"):
        with pytest.raises(InputError, match="no text of check-ins"):
            read_checkins(path, incomplete=choice)


def test_bytes_that_are_no_text_are_another_format(tmp_path):
    wrong = {"a.txt": b"\xff\xfe\x00", "b.gz": b"plain text", "c.gz": gzip.compress(b"x" * 9000)[:-12]}
    for name, content in wrong.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=r"no text of check-ins|incomplete"):
            read_checkins(tmp_path / name)


def test_a_file_may_be_empty(tmp_path):
    path = tmp_path / "none.txt"
    path.write_text("")
    found = read_checkins(path)
    assert len(found) == 0
    assert found.unit_square(NEW_YORK).shape == (0, 2)
    assert busiest_cells(found, NEW_YORK) == []


def test_nothing_is_fetched(tmp_path):
    for path in ("https://example.org/checkins.txt.gz", "file:///etc/hostname", tmp_path, 3):
        with pytest.raises(InputError, match=r"^path: "):
            read_checkins(path)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"since": "last year"}, "^since: "),
        ({"until": 2010}, "^until: "),
        ({"since": "2010-02-01", "until": "2010-02-01"}, "^until: .* empty"),
        ({"box": (-73.0, 40.0, -74.0, 41.0)}, "^box: "),
        ({"box": (-74.0, 40.0, np.nan, 41.0)}, "^box: "),
        ({"box": (-74.0, 40.0, -73.0)}, "^box: "),
        ({"incomplete": "keep"}, "^incomplete: "),
    ],
)
def test_bad_arguments_are_refused(file, wrong, message):
    with pytest.raises(InputError, match=message):
        read_checkins(file, **wrong)


@pytest.mark.parametrize("path", ["9" * 5000, "a\0b", "none.txt"])
def test_what_names_no_file_is_refused(path):
    with pytest.raises(InputError, match=r"^path: there is no such file"):
        read_checkins(path)


@pytest.mark.parametrize("shape", [(), (2,), (2, 0), (2, 2**70), None])
def test_wrong_numbers_of_cells_are_refused(file, shape):
    with pytest.raises(InputError, match=r"^shape: "):
        busiest_cells(read_checkins(file), (-74, 40, -73, 41), shape)


def test_the_busiest_cells_come_first(tmp_path):
    path = tmp_path / "checkins.txt"
    lat_lon = [(0.1, 0.9)] * 3 + [(0.9, 0.1)] * 2 + [(0.9, 0.9)] * 2 + [(1.5, 0.5)] * 9
    path.write_text("".join(f"1\t2010-01-01T00:00:00Z\t{lat}\t{lon}\tp\n" for lat, lon in lat_lon))
    cells = busiest_cells(read_checkins(path), (0, 0, 1, 1), (2, 2), most=3)
    assert cells == [(0.5, 0.0, 1.0, 0.5), (0.0, 0.5, 0.5, 1.0), (0.5, 0.5, 1.0, 1.0)]

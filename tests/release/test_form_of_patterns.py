"""The form of a released pattern is checked block by block, and nothing passes between two blocks."""

import numpy as np
import pytest

from dpppsynth.io.writing import geojson_text
from dpppsynth.release import contents
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

WINDOW = Window.rectangle(0, 0, 100, 100, "EPSG:27700")
XY = np.arange(60).reshape(30, 2) / 8
TEXT = geojson_text(PointPattern.synthetic(XY, WINDOW)).encode()
LINE = b'{"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [2.0, 2.125]}}'


@pytest.fixture(params=[1, 100, 250, 2**20], autouse=True)
def block(request, monkeypatch):
    monkeypatch.setattr(contents, "BLOCK", request.param)


def test_what_is_written_passes():
    assert LINE in TEXT
    contents.require_pattern(TEXT, WINDOW, b"{}".__eq__)
    none = geojson_text(PointPattern.synthetic(np.empty((0, 2)), WINDOW)).encode()
    contents.require_pattern(none, WINDOW, b"{}".__eq__)


@pytest.mark.parametrize(
    "changed",
    [
        TEXT.replace(LINE, LINE.replace(b"2.0,", b"2.00,")),
        TEXT.replace(LINE, LINE.replace(b"{}", b'{"a": 1}')),
        TEXT.replace(LINE, LINE.replace(b"2.0,", b"2.0, 1.0,")),
        TEXT.replace(LINE, LINE.replace(b"2.0,", b"200.0,")),
        TEXT.replace(LINE, b""),
        TEXT.replace(LINE, b"x" * 300),
        TEXT.replace(b"}},\n", b"}}, \n", 1),
        TEXT.replace(b"}}\n]", b"}},\n\n]"),
        TEXT.replace(b"[\n{", b"[\n,\n{"),
        TEXT.replace(b"[7.25, 7.375]", b"[7.25, 7.37500000000000001]"),
        TEXT.replace(b"[7.25, 7.375]", b"[7.25, 1e999]"),
    ],
)
def test_what_is_not_is_refused(changed):
    assert changed != TEXT
    with pytest.raises(ValueError, match=r"feature|shortest|lie in"):
        contents.require_pattern(changed, WINDOW, b"{}".__eq__)

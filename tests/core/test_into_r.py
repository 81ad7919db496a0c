"""Files that the page about R reads are those that its commands write."""

import importlib.util
import re
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "examples" / "into_r.py"


@pytest.mark.slow
def test_every_path_of_the_page_is_written(tmp_path):
    spec = importlib.util.spec_from_file_location("into_r", FILE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.make_files(tmp_path)
    named = re.findall(r'"([\w/]+\.(?:gpkg|csv|geojson))"', example.lines_of_r())
    assert len(named) == 5
    assert [name for name in named if not (tmp_path / name).is_file()] == []

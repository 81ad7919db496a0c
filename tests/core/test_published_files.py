"""Folders of people one does not trust: plain files alone are opened, no more is read than stated limits allow."""

import json
import os
import shutil
import signal
import time

import numpy as np
import pyproj
import pytest
from support.forgery import read, reseal
from typer.testing import CliRunner

from dpppsynth.cli import app
from dpppsynth.core import published_files
from dpppsynth.core.errors import InputError, PrivacyCheckError, TooLargeError
from dpppsynth.core.published_files import PublishedFolder, beyond_limits, strict_json
from dpppsynth.models import regular_triangulation
from dpppsynth.privacy import verify
from dpppsynth.release import append_patterns, certificate, load_release
from dpppsynth.reporting import write_report
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import BoundedErrorSynthesizer, LGCPSynthesizer

WINDOW = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
PATTERN = PointPattern(np.random.default_rng(1).uniform(0, 1000, (50, 2)), WINDOW)
HILL = Offset.from_grid(np.array([[1.0, 2.0], [3.0, 5.0]]), WINDOW.bounds)
MESH = regular_triangulation(WINDOW, shape=(4, 4))
OPENERS = [lambda path: verify(path).require(), load_release, write_report]
FILES = ["domain.geojson", "statistic.json", "posterior.nc", "offset.geojson", "synthetic_000.geojson"]
# What a refusal may be; anything else is a crash.
REFUSED = (InputError, PrivacyCheckError)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    synthesizer = LGCPSynthesizer(1.0, alpha=25.0, mesh=MESH, length_scale=400.0, inference="laplace", offset=HILL)
    return synthesizer.release(PATTERN, rng=None).save(tmp_path_factory.mktemp("published") / "public")


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "public")


@pytest.fixture(autouse=True)
def no_hanging():
    """A pipe that is waited for fails the test instead of keeping the run."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def give_up(*_):
        pytest.fail("it waits for ever")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


class TestPlainFiles:
    @pytest.mark.parametrize("opener", OPENERS)
    @pytest.mark.parametrize("name", ["certificate.json", *FILES])
    def test_a_pipe_is_not_waited_for(self, name, opener, folder):
        (folder / name).unlink()
        os.mkfifo(folder / name)
        with pytest.raises(REFUSED):
            opener(folder)

    @pytest.mark.parametrize("name", ["certificate.json", *FILES])
    def test_a_link_is_not_followed_even_to_the_same_bytes(self, name, folder, tmp_path):
        shutil.move(folder / name, tmp_path / "elsewhere")
        (folder / name).symlink_to(tmp_path / "elsewhere")
        for opener in OPENERS:
            with pytest.raises(REFUSED):
                opener(folder)

    @pytest.mark.parametrize("target", ["/dev/zero", "/dev/stdin", "."])
    @pytest.mark.parametrize("name", FILES)
    def test_devices_and_folders_are_not_read(self, name, target, folder):
        (folder / name).unlink()
        (folder / name).symlink_to(target)
        assert not verify(folder).holds

    @pytest.mark.parametrize("opener", OPENERS)
    def test_neither_the_folder_nor_a_parent_may_be_a_link(self, opener, folder, tmp_path):
        (tmp_path / "link").symlink_to(folder)
        (tmp_path / "above").symlink_to(tmp_path)
        for path in (tmp_path / "link", tmp_path / "above" / "public", tmp_path / "link" / "certificate.json"):
            with pytest.raises(InputError, match="is reached through a link"):
                opener(path)

    def test_relative_paths_are_opened_from_where_one_stands(self, folder, monkeypatch):
        (folder / "inner").mkdir()
        for here, path in (
            (folder, "."),
            (folder, "certificate.json"),
            (folder / "inner", ".."),
            (folder.parent, "public"),
        ):
            monkeypatch.chdir(here)
            assert verify(path).holds, path

    def test_links_of_the_root_are_the_machines_own(self, folder):
        roots = [path for path in published_files.Path("/").iterdir() if path.is_symlink() and path.is_dir()]
        for link in roots:
            with PublishedFolder(link) as opened:
                assert opened.names() == listed(link)

    def test_names_do_not_leave_the_folder(self, folder):
        with PublishedFolder(folder) as opened:
            for name in ("../public/statistic.json", "..", str(folder / "statistic.json")):
                with pytest.raises(OSError, match="not a regular file"):
                    opened.read(name)

    def test_a_pipe_beside_the_release_keeps_no_one_who_adds_patterns_waiting(self, folder):
        release = load_release(folder)
        os.mkfifo(folder / "notes")
        append_patterns(folder, release, release.sample(1, rng=1))
        assert (folder / "notes").is_fifo()
        assert listed(folder.parent) == ["public"]


class TestTheSameBytes:
    @pytest.mark.parametrize("name", FILES)
    def test_what_is_parsed_has_the_hash_that_was_compared(self, name, folder):
        """A file that is swapped once its hash was taken is refused by whoever parses it."""
        with certificate.published(folder) as found:
            assert found.folder.digest(name) == found.certificate["files"][name]
            (folder / name).write_bytes((folder / name).read_bytes().replace(b"1", b"2"))
            with pytest.raises(OSError, match="not as it was released"):
                found.content(name)

    def test_a_file_that_grows_while_it_is_read(self, folder, monkeypatch):
        real = os.fstat
        # The size was taken when the file was shorter.
        short = lambda *a: os.stat_result((*real(*a)[:6], 10, *real(*a)[7:]))  # noqa: E731
        with PublishedFolder(folder) as opened:
            monkeypatch.setattr(published_files.os, "fstat", short)
            with pytest.raises(OSError, match="not a regular file"):
                opened.read("statistic.json")


class TestSizes:
    @pytest.mark.parametrize("name", FILES)
    def test_a_file_of_any_size_is_refused_before_it_is_read(self, name, folder):
        """Nothing is resealed: its length alone decides, of which no byte is looked at."""
        os.truncate(folder / name, 2**41)
        for opener in (verify, load_release):
            with pytest.raises(TooLargeError, match="too large to verify"):
                opener(folder)

    def test_a_certificate_of_any_size(self, folder):
        os.truncate(folder / "certificate.json", 2**41)
        for opener in OPENERS:
            with pytest.raises(TooLargeError, match="too large to verify; use --no-limit"):
                opener(folder)
        shown = CliRunner().invoke(app, ["verify", str(folder)])
        assert shown.exit_code == 2
        assert "too large to verify; use --no-limit" in shown.output

    def test_files_that_are_large_only_together(self, folder, monkeypatch):
        sizes = [(folder / name).stat().st_size for name in FILES]
        monkeypatch.setattr(published_files, "MOST_IN_ALL", sum(sizes))
        assert verify(folder).holds
        monkeypatch.setattr(published_files, "MOST_IN_ALL", sum(sizes) - 1)
        with pytest.raises(TooLargeError, match="too large to verify"):
            verify(folder)

    @pytest.mark.slow
    def test_the_commands_name_the_remedy(self, folder, monkeypatch):
        monkeypatch.setattr(published_files, "MOST_IN_ALL", 100)
        for command in (["verify"], ["sample", "--patterns", "1"], ["report"]):
            shown = CliRunner().invoke(app, [command[0], str(folder), *command[1:]])
            assert shown.exit_code == 2, shown.output
            assert "too large to verify" in shown.output
        for command in ("verify", "report"):
            assert CliRunner().invoke(app, [command, str(folder), "--no-limit"]).exit_code == 0
        assert verify(folder, limit=False).holds
        assert load_release(folder, limit=False).mechanism == "lgcp-tents"

    def test_a_folder_of_many_files(self, folder, monkeypatch):
        monkeypatch.setattr(published_files, "MOST_NAMES", len(listed(folder)))
        assert verify(folder).holds
        (folder / "one_more").touch()
        with pytest.raises(TooLargeError, match="too large to verify"):
            verify(folder)
        assert verify(folder, limit=False).holds

    @pytest.mark.parametrize(
        "place",
        [
            ("files",),
            ("guarantee", "assumes"),
            ("guarantee", "by_distance"),
            ("guarantee", "profile", "rows"),
            ("guarantee", "profile", "parts"),
            ("parameters", "levels"),
            ("parameters", "strata"),
        ],
        ids="/".join,
    )
    def test_long_lists_are_refused_before_each_entry_is_looked_at(self, place, folder):
        cert = read(folder)
        spot = cert
        for key in place[:-1]:
            spot = spot[key]
        many = 300_000
        spot[place[-1]] = dict.fromkeys(map(str, range(many)), 1) if place == ("files",) else [1] * many
        (folder / "certificate.json").write_text(json.dumps(cert))
        started = time.monotonic()
        with pytest.raises(InputError, match=f"at {'/'.join(place)}: max"):
            verify(folder)
        assert time.monotonic() - started < 3


class TestStrictJson:
    @pytest.mark.parametrize(
        "text",
        ['{"a": 1, "a": 1}', "[NaN]", "[1e31]", "[" + "9" * 40 + "]", "[" * 70 + "]" * 70, "[" * 10**5, "\xff", "{"],
    )
    def test_is_refused(self, text):
        with pytest.raises((ValueError, RecursionError)):
            strict_json(text.encode("latin-1"))

    def test_says_what_the_text_says(self):
        document = {"a": [1, 2.5, None, True, {"b": "c"}]}
        assert strict_json(json.dumps(document).encode()) == document

    @pytest.mark.parametrize("name", ["statistic.json", "domain.geojson", "offset.geojson"])
    def test_nothing_is_hidden_behind_a_key_that_stands_twice(self, name, folder):
        """Readers take the last of two equal keys, so that the first is a place for anything."""
        path = folder / name
        text = path.read_text()
        path.write_text('{"type": [0.1, 0.2], "lattice": "raw points",' + text[1:])
        reseal(folder, read(folder), *read(folder)["files"])
        assert not verify(folder).holds
        with pytest.raises(REFUSED):
            load_release(folder)


def test_counts_of_a_link_are_not_opened(tmp_path):
    release = BoundedErrorSynthesizer(epsilon=1.0, delta=1e-6, spacing=250.0).release(PATTERN)
    folder = release.save(tmp_path / "public")
    shutil.move(folder / "counts.geojson", tmp_path / "counts.geojson")
    (folder / "counts.geojson").symlink_to(tmp_path / "counts.geojson")
    assert not verify(folder).holds


WKT = pyproj.CRS.from_epsg(27700).to_wkt()
METHOD = 'METHOD["Transverse Mercator"'


@pytest.mark.parametrize(
    "name",
    [
        *(
            "+init={}:1",
            "init={}:1",
            "+init = {}:1",
            "+proj=utm +zone=31 +init={}:1",
            "+proj=tinshift +file={} +type=crs",
        ),
        '{{"type": "ProjectedCRS", "name": "{}"}}',
        WKT.replace(METHOD, 'METHOD["PROJ tinshift file={}"'),
        WKT.replace(METHOD, 'method ( "PROJ-based operation method: +proj=hgridshift +grids={}"'),
        WKT.replace('PARAMETER["Latitude of natural origin"', 'PARAMETERFILE["grids","{}"],PARAMETER["x"'),
        'PROJCS["x",PROJECTION["custom_proj4"],EXTENSION["PROJ4","+init={}:1"]]',
        "x" * 200_000,
    ],
    ids=lambda name: name[:20],
)
def test_a_crs_that_makes_proj_open_a_file_is_never_looked_up(folder, name, monkeypatch):
    asked = name.replace("{}", str(folder / "pipe")).replace("{{", "{").replace("}}", "}")
    document = json.loads((folder / "domain.geojson").read_text())
    document["crs"]["properties"]["name"] = asked
    (folder / "domain.geojson").write_text(json.dumps(document, sort_keys=True) + "\n")
    cert = read(folder)
    reseal(folder, cert, "domain.geojson")
    looked_up = []
    monkeypatch.setattr(pyproj.CRS, "from_user_input", looked_up.append)
    assert not {check.name: check.holds for check in verify(folder).checks}["bound"]
    assert not looked_up


def test_no_window_has_a_crs_that_its_own_file_could_not_name():
    with pytest.raises(InputError, match=r"definition that files cannot state.*to_crs="):
        Window.rectangle(0, 0, 10, 10, "+proj=utm +zone=31 +ellps=GRS80 +nadgrids=@null +type=crs")


def test_files_that_are_not_read_unasked(tmp_path, monkeypatch):
    for size in (10, 20):
        (tmp_path / str(size)).write_bytes(b"." * size)
    assert not beyond_limits(tmp_path)
    for name, most in (("MOST_BYTES", 19), ("MOST_IN_ALL", 29), ("MOST_NAMES", 1)):
        with monkeypatch.context() as patch:
            patch.setattr(f"dpppsynth.core.published_files.{name}", most)
            assert beyond_limits(tmp_path)

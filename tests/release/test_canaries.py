"""No place for raw data on a certificate that verifies or loads: a canary at every level and in every leaf is refused.

Each forgery is resealed, as whoever writes the folder can. What remains are the public choices of the custodian: they
are listed here, and are numbers and names of bounded length.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.forgery import failed, put, read, reseal
from support.seams import derived_once

from dpppsynth.core.errors import DpppsynthError
from dpppsynth.privacy import catalogue, verify
from dpppsynth.release import certificate, load_release
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import LaplaceSynthesizer, PlanarLaplaceSynthesizer

STORED = Path(__file__).parents[1] / "data" / "releases"
# One release of each mechanism: those along streets and other settings have the same files.
BY_MECHANISM = {
    read(path)["mechanism"]: path.name
    for path in sorted((path for path in STORED.iterdir() if path.is_dir()), key=lambda path: path.name, reverse=True)
}
NAMES = sorted(BY_MECHANISM.values())
RAW = [[311.25, 811.5], [347.0, 622.75]]
TEXT = "CANARY 311.25 811.5"
# Public numbers that nothing else on the certificate follows from: the custodian declares them.
DECLARED = {"sigmas", "n", "expected_n", "epsilon", "sigma", "length_scales", "max_iter", "tolerance", "smoothing"}
DECLARED |= {"margin", "bandwidth", "decay", "delta", "alpha", "length_scale", "power", "smoothness", "tail"}
DECLARED |= {"street_sigmas", "street_ranges", "detours", "details"}
DECLARED |= {"owns", "time_sigmas", "togethers", "time_range", "start", "end"}
# Names of marks, of their levels, and of the column that tells persons.
NAMED = {"by", "user", "name", "unit", "values"}
# Of a list, as many entries as its ends show.
SHOWN = 2


@pytest.fixture(autouse=True, scope="module")
def remembered():
    """Canaries beside the parameters leave the bound as it is."""
    with derived_once():
        yield


def reseal_all(folder, cert):
    listed = cert["files"] if isinstance(cert["files"], dict) else ()
    reseal(folder, cert, *(name for name in listed if (folder / name).is_file()))


def accepted(folder):
    """Whether some door lets the folder in; one that `verify` refuses for its randomness alone may still load."""
    try:
        wrong = failed(folder)
        if wrong == {"randomness"}:
            load_release(folder)
    except DpppsynthError:
        return False
    return wrong <= {"randomness"}


def spots(value, path=()):
    """Every place of a certificate, long lists by their ends."""
    yield path, value
    if isinstance(value, dict):
        items = list(value.items())
    else:
        items = list(enumerate(value)) if isinstance(value, list) else []
        items = items[:SHOWN] + items[max(SHOWN, len(items) - 1) :]
    for key, child in items:
        yield from spots(child, (*path, key))


def forgeries(cert):
    """Path, and certificate with a canary: beside the entries of every mapping and list, and in place of everything.

    What all certificates have in common, which is beside the parameters, gets one of two canaries by turns.
    """
    for k, (path, value) in enumerate(spots(cert), len(cert["mechanism"])):
        # Hashes of files are made again.
        if path and (path[0] in ("content_hash", "schema_version") or (path[0] == "files" and len(path) == 2)):
            continue
        if isinstance(value, dict):
            name, canary = (("canary", TEXT), ("exact_n", 347))[len(path) % 2]
            yield (*path, name), put(cert, (*path, name), canary)
        if isinstance(value, list):
            yield path, put(cert, path, [*value, *(value[-1:] or [0.347])])
            yield path, put(cert, path, [*value, RAW[0]])
        both = canaries(value) if path else []
        for canary in both if path[:1] == ("parameters",) else both[k % 2 :][:1]:
            yield path, put(cert, path, canary)


def canaries(value):
    """One of the kind of a value, and the coordinates of a point."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [347 if isinstance(value, int) else 0.347, RAW]
    return [TEXT, RAW]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_no_canary_is_let_in(name, tmp_path):
    folder = shutil.copytree(STORED / name, tmp_path / "public")
    original = read(folder)
    assert accepted(folder)
    let_in = set()
    for path, forged in forgeries(original):
        reseal_all(folder, forged)
        if accepted(folder):
            let_in.add(path)
    # Another radius may be stated where the bound holds for every one: it is then promised.
    beside = {path for path in let_in if not declared(path, original) and path != ("guarantee", "relation", "alpha")}
    assert not beside


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "synthesizer",
    [
        LaplaceSynthesizer(1.0, alpha=25.0, basis="tents", spacing=250.0, postprocess="plain"),
        PlanarLaplaceSynthesizer(1.0, alpha=25.0),
    ],
    ids=["tents", "moved"],
)
def test_nor_into_what_is_saved_today(synthesizer, tmp_path):
    """Certificates may have got keys since the stored ones were made."""
    window = Window.rectangle(529000, 180000, 530000, 181000, "EPSG:27700")
    points = np.random.default_rng(1).uniform([529000, 180000], [530000, 181000], (60, 2))
    folder = synthesizer.release(PointPattern(points, window)).save(tmp_path / "public")
    original = read(folder)
    assert accepted(folder)
    for path, forged in forgeries(original):
        reseal_all(folder, forged)
        assert path == ("parameters", "n") or not accepted(folder), path


def declared(path, original):
    """Whether it is a number or a name among the parameters that the custodian declares."""
    value = original
    for key in path:
        value = value[key]
    names = {key for key in path if isinstance(key, str)}
    named = path[-1] in NAMED or path[-2:-1] in (("levels",), ("values",))
    number = bool(names & DECLARED) and (value is None or isinstance(value, int | float | list))
    # A picture may have any size, whatever cells were counted.
    picture = "measure" in original["parameters"] and path[1:3] == ("mesh", "shape")
    return path[0] == "parameters" and (named or number or picture)


class TestEstimators:
    """Nothing of the intensity's making bears on the bound, so its settings are closed by hand."""

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        "name",
        [
            *("lgcp-tents", "lgcp-clusters", "lgcp-moved", "lgcp-field", "lgcp-tents-streets"),
            *("lgcp-posterior-draw", "strata"),
        ],
    )
    @pytest.mark.parametrize(
        "more",
        [
            *({"points": RAW}, {"exact_n": 347}, {"kind": TEXT}, {"inference": TEXT}, {"engine": TEXT}),
            *({"sigma": TEXT}, {"sigma": True}, {"sigma": -1.0}, {"offset": TEXT}, {"offset": "0" * 64}),
            {"sigma": 5e-324},
            *({"length_scales": []}, {"length_scales": [0.5] * 17}, {"length_scales": [TEXT]}),
            *({"mesh": {}}, {"mesh": {"builder": "regular", "kind": "triangle", "shape": [5, 5]}}),
            {"mesh": {"builder": "arrays", "vertices": RAW, "elements": []}},
        ],
        ids=lambda more: json.dumps(more)[:40],
    )
    def test_another_setting(self, name, more, tmp_path):
        folder = shutil.copytree(STORED / name, tmp_path / "public")
        cert = read(folder)
        parts = [part["parameters"] for part in cert["parameters"].get("strata", [])] or [cert["parameters"]]
        parts[-1]["estimator"] |= more
        reseal_all(folder, cert)
        with pytest.raises(DpppsynthError):
            verify(folder).require()
        with pytest.raises(DpppsynthError):
            load_release(folder)


class TestFiles:
    """Files that no bound follows from hold what their names say, and nothing beside."""

    @staticmethod
    def refused(name, file, change, tmp_path):
        folder = shutil.copytree(STORED / name, tmp_path / "public")
        content = (folder / file).read_bytes()
        changed = change(content)
        assert changed != content
        (folder / file).write_bytes(changed)
        reseal_all(folder, read(folder))
        assert not accepted(folder)

    @pytest.mark.parametrize("name", ["laplace-tents", "laplace-cells-streets", "strata", "kernel", "planar-laplace"])
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (b'"properties": {', b'"properties": {"raw": "311.25 811.5", '),
            (b'"type": "Point"', b'"type": "Point", "raw": [311.25, 811.5]'),
            (b'"features": [', b'"raw": [311.25, 811.5], "features": ['),
            (b'"type": "name"', b'"type": "name", "raw": 311.25'),
            (b"]}}", b", 311.25]}}"),
            (b'"coordinates": [', b'"coordinates": [1e9'),
            (b'"type": "Point"', b'"type": "MultiPoint"'),
            (b'"type": "Feature"', b'"type": "Feature", "type": "Feature"'),
            (b"\n]}", b"\n], "),
        ],
    )
    def test_a_pattern(self, name, old, new, tmp_path):
        self.refused(name, "synthetic_000.geojson", lambda text: text.replace(old, new, 1), tmp_path)

    @pytest.mark.parametrize("number", ["31125", "3112581150", "01"])
    def test_the_number_of_a_pattern(self, number, tmp_path):
        folder = shutil.copytree(STORED / "laplace-tents", tmp_path / "public")
        shutil.copy(folder / "synthetic_000.geojson", folder / f"synthetic_{number}.geojson")
        cert = read(folder)
        cert["files"][f"synthetic_{number}.geojson"] = ""
        reseal_all(folder, cert)
        assert not accepted(folder)

    def test_a_pattern_of_an_unknown_level(self, tmp_path):
        self.refused(
            "strata", "synthetic_000.geojson", lambda text: text.replace(b'"year": 2021', b'"year": 347'), tmp_path
        )

    @pytest.mark.parametrize(
        "properties",
        [
            {"offence": "arson"},
            {"offence": 7},
            {"hour": 24.5},
            {"hour": TEXT},
            {"hour": None},
            {"hour": [3.5, 311.25]},
            {"raw": 311.25},
        ],
    )
    def test_marks_of_a_point(self, properties, tmp_path):
        def marked(content):
            document = json.loads(content)
            document["features"][0]["properties"] |= properties
            return json.dumps(document).encode()

        self.refused("marked-tents", "synthetic_000.geojson", marked, tmp_path)

    @pytest.mark.parametrize("name", ["bounded-cells", "strata-bounded-cells"])
    def test_counts(self, name, tmp_path):
        file = "counts.geojson" if name == "bounded-cells" else "year=2022_counts.geojson"
        for k, (old, new) in enumerate(
            [
                (b'"type": "Polygon"', b'"raw": [311.25], "type": "Polygon"'),
                (b'"cell": 0', b'"cell": 0, "raw": 311.25'),
                (b'"count": ', b'"count": 1'),
                (b"250.0", b"251.0"),
                (b'"type": "FeatureCollection"', b'"raw": [311.25], "type": "FeatureCollection"'),
            ]
        ):
            (tmp_path / str(k)).mkdir()
            self.refused(name, file, lambda text, old=old, new=new: text.replace(old, new, 1), tmp_path / str(k))

    @pytest.mark.parametrize("file", ["domain.geojson", "statistic.json", "offset.geojson"])
    def test_blanks_and_keys_beside(self, file, tmp_path):
        for k, change in enumerate(
            [
                lambda text: text + b" \t ",
                lambda text: text.replace(b", ", b",  ", 1),
                lambda text: b'{"raw": [311.25], ' + text[1:],
                lambda text: (
                    text.replace(b'"coordinates"', b'"bbox": [311.25, 811.5, 347, 622], "coordinates"', 1)
                    if b"coordinates" in text
                    else text[:-2] + b', "z": 1}\n'
                ),
            ]
        ):
            (tmp_path / str(k)).mkdir()
            self.refused("lgcp-tents-offset", file, change, tmp_path / str(k))

    def test_a_posterior(self, tmp_path):
        import h5py

        def edited(content, change):
            path = tmp_path / "draft.nc"
            path.write_bytes(content)
            with h5py.File(path, "a") as data:
                change(data["posterior"])
            return path.read_bytes()

        def put_in(data):
            data["raw"] = RAW[0]

        def put_beside(data):
            data.parent["raw"] = RAW[0]

        def moved(data):
            data["x"][0] += 1.0

        def scaled(data):
            data["length_scale"][0] = 347.0

        def noted(data):
            data.attrs["history"] = TEXT

        def told(data):
            data.attrs["fit_ess"] = RAW[0]

        edits = (put_in, put_beside, moved, scaled, noted, told)
        changes = [lambda content, f=f: edited(content, f) for f in edits]
        for k, change in enumerate(changes):
            (tmp_path / str(k)).mkdir()
            self.refused("lgcp-tents", "posterior.nc", change, tmp_path / str(k))

    def test_clusters(self, tmp_path):
        self.refused(
            "lgcp-clusters",
            "clusters.json",
            lambda text: text.replace(b'"millionths"', b'"raw": 311.25, "millionths"', 1),
            tmp_path,
        )


@pytest.mark.parametrize("warning", [TEXT, catalogue.text(certificate.SEEDED), "discrete-gaussian"])
def test_a_seeded_release_says_so_in_the_words_there_are(warning, tmp_path):
    """It loads, marked as not private, so its sentences are a place as well."""
    for place in ("warning", "noise"):
        folder = shutil.copytree(STORED / "laplace-tents", tmp_path / place)
        cert = read(folder)
        cert |= {"seeded": True, "releasable": False, "warning": certificate.SEEDED, place: warning}
        statistic = json.loads((folder / "statistic.json").read_text())
        statistic |= {"seeded": True, "noise": cert["noise"]}
        (folder / "statistic.json").write_text(json.dumps(statistic, sort_keys=True) + "\n")
        reseal_all(folder, cert)
        with pytest.raises(DpppsynthError):
            load_release(folder)

"""The command line on street networks."""

import json
import re
import stat
from pathlib import Path

import numpy as np
import pytest
import shapely
from support.command_line import run, spoken
from support.pictures import pictures_drawn

import dpppsynth as dps
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.models import trace_mesh
from dpppsynth.models.covariances import GeneralisedCauchy, Matern, PoweredExponential
from dpppsynth.privacy import catalogue

DEATHS = [str(dps.datasets.path("soho_addresses")), "--count", "deaths", "--crs", "EPSG:27700"]
N = 392
LGCP = ["--method", "lgcp", "--epsilon", 1, "--alpha", 25]
FAST = [*LGCP, "--inference", "laplace", "--length-scale", 200]
CELLS = ["--method", "laplace", "--epsilon", 1, "--alpha", 25]
KERNEL = ["--method", "kernel", "--epsilon", 10, "--alpha", 25, "--delta", 1e-6]
DRAW = [*LGCP, "--mechanism", "posterior-draw", "--delta", 1e-6, "--sampler", "proximal"]
STREETS = dps.datasets.soho_streets()


def write_lines(path, lines, crs="EPSG:27700"):
    """A layer of lines as other programs write it: no vertices, no numbers."""
    features = [{"type": "Feature", "properties": {}, "geometry": shapely.geometry.mapping(line)} for line in lines]
    name = {"type": "name", "properties": {"name": crs}}
    path.write_text(json.dumps({"type": "FeatureCollection", "crs": name, "features": features}))
    return path


@pytest.fixture(scope="module")
def streets(tmp_path_factory):
    path = tmp_path_factory.mktemp("network") / "streets.geojson"
    path.write_text(json.dumps(STREETS.to_geojson()))
    return path


@pytest.fixture(scope="module")
def public(streets, tmp_path_factory):
    """A release on the streets, not to be changed."""
    out = tmp_path_factory.mktemp("release") / "public"
    run("synthesize", *DEATHS, "--network", streets, "--snap", 30, *FAST, "--patterns", 2, "--out", out)
    return out


class TestCheck:
    def test_says_what_is_promised(self, streets):
        said = spoken(run("check", *LGCP, "--network", streets, "--n", N))
        for words in (
            "network LinearNetwork(229 vertices, 282 edges, length 13725.05925, EPSG:27700, metre)",
            "privacy radius 25 metres along the edges",
            "Matern in the plane, sigma 2, plus one along streets",
            "segments",
            "none longer than",
            catalogue.text("tents"),
        ):
            assert words in said
        assert said.count(str(N)) == said.count(f"--n {N}") == 1

    def test_prints_one_json_object(self, streets):
        result = run("check", *LGCP, "--network", streets, "--n", N, "--json")
        said = json.loads(result.stdout)
        plan = dps.LGCPSynthesizer(1.0, alpha=25.0).plan(STREETS, n=N)
        assert said["guarantee"] == plan.guarantee.to_dict()
        assert said["domain"] == {
            "bounds": list(STREETS.bounds),
            "length": pytest.approx(13725.06, abs=0.01),
            "vertices": 229,
            "edges": 282,
            "changes": [],
            "crs": "EPSG:27700",
            "unit": "metre",
            "fingerprint": STREETS.fingerprint(),
        }
        # A file of real streets: some cross without a vertex, and some dead ends stop short of others.
        warned = [" ".join(each.split()) for each in result.stderr.split("Warning: ")]
        assert warned[0] == ""
        assert [each.split(";")[0] for each in warned[1:]] == [
            "domain: streets cross or touch in 1 place without a common vertex",
            "domain: 35 dead ends stop short of another street by less than 25 metres, the nearest by 0.000633",
        ]

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        ("words", "mesh"),
        [
            ([*LGCP, "--resolution", 60], network_mesh(STREETS, 60)),
            ([*LGCP, "--spacing", 150], trace_mesh(STREETS, spacing=150)),
            ([*CELLS, "--resolution", 120], network_mesh(STREETS, 120)),
            ([*CELLS, "--basis", "tents", "--spacing", 150], trace_mesh(STREETS, spacing=150)),
            ([*CELLS, "--basis", "tents", "--resolution", 60], network_mesh(STREETS, 60)),
            ([*DRAW, "--resolution", 90], network_mesh(STREETS, 90)),
            ([*KERNEL, "--resolution", 90], network_mesh(STREETS, 90)),
        ],
        ids=[
            "tents along streets",
            "tents over streets",
            "cells",
            "tents of laplace",
            "its tents along streets",
            "field",
            "kernel",
        ],
    )
    def test_fineness(self, streets, words, mesh):
        said = json.loads(run("check", *words, "--network", streets, "--n", N, "--json").stdout)
        assert said["parameters"]["mesh"] == mesh.recipe
        size = said["mesh"]
        assert (size["kind"], size["vertices"], size["elements"]) == (mesh.kind, len(mesh.vertices), len(mesh.elements))
        if mesh.kind == "segment":
            assert size["longest_segment"] == pytest.approx(mesh.element_measure.max())
        else:
            hx, hy = size["spacing"]
            # Legs of the right triangles.
            assert mesh.area == pytest.approx(hx * hy / 2)
            assert min(hx, hy) >= 150 - 1e-6
        text = spoken(run("check", *words, "--network", streets, "--n", N))
        assert f"{len(mesh.elements)} {mesh.kind}s, {len(mesh.vertices)} vertices" in text

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        ("words", "covariance"),
        [
            ([], PoweredExponential(0.2, 150.0, 1.0)),
            (["--covariance", "exponential"], PoweredExponential(0.2, 150.0, 1.0)),
            (["--power", 0.8], PoweredExponential(0.2, 150.0, 0.8)),
            (["--covariance", "matern", "--smoothness", 0.4], Matern(0.2, 150.0, 0.4)),
            (["--covariance", "cauchy", "--power", 0.9, "--tail", 2], GeneralisedCauchy(0.2, 150.0, 0.9, 2.0)),
        ],
        ids=["usual", "exponential", "power", "matern", "cauchy"],
    )
    def test_covariances(self, streets, words, covariance):
        words = ["check", *DRAW, "--sigma", 0.2, "--length-scale", 150, *words, "--network", streets, "--n", N]
        said = json.loads(run(*words, "--json").stdout)
        assert said["parameters"]["covariance"] == covariance.to_dict()
        text = spoken(run(*words))
        assert "sigma 0.2, length scale 150 metre" in text
        for name, value in covariance.to_dict().items():
            if name in ("power", "smoothness", "tail"):
                assert f"{name} {value:g}" in text

    def test_the_other_covariances_serve_windows_too(self):
        words = ["check", *DRAW, "--window", "0,0,1000,1000", "--n", N, "--sigma", 0.2, "--length-scale", 150]
        said = json.loads(run(*words, "--covariance", "matern", "--smoothness", 1.5, "--json").stdout)
        assert said["parameters"]["covariance"] == Matern(0.2, 150.0, 1.5).to_dict()
        said = json.loads(run(*words, "--covariance", "exponential", "--json").stdout)
        assert said["parameters"]["covariance"] == PoweredExponential(0.2, 150.0, 2.0).to_dict()

    def test_distances_run_along_the_edges_and_are_told_once(self, streets):
        said = run("check", *KERNEL, "--resolution", 90, "--network", streets, "--n", N).output
        head, table = said.split("one point moves (metre along the edges)")
        assert "What an attacker can tell apart" in head
        rows = [tuple(map(float, words)) for line in table.splitlines() if len(words := line.split()) == 2]
        distance, epsilon = np.array(rows).T
        assert 25 in distance
        assert np.all(np.diff(distance) > 0)
        assert np.all(np.diff(epsilon) >= 0)

    def test_relations_and_levels(self, streets):
        words = ["check", "--method", "laplace", "--epsilon", 1, "--network", streets]
        assert catalogue.text("counts") in spoken(run(*words, "--relation", "add-remove", "--expected-n", 400))
        levels = ["--by", "year", "--levels", "a,b", "--n-by", "200,192"]
        said = json.loads(run(*words, *levels, "--json").stdout)
        assert list(said["levels"]) == ["a", "b"]
        assert said["domain"]["edges"] == 282


class TestNetworkFiles:
    # Two streets that cross without a common vertex, one that ends 0.4 short of the first, and one far away.
    LINES = (
        shapely.LineString([(0, 0), (200, 0)]),
        shapely.LineString([(100, -50), (100, 50)]),
        shapely.LineString([(150, 0.4), (150, 80)]),
        shapely.LineString([(5000, 0), (5100, 0)]),
    )

    def test_what_is_mended_is_said(self, tmp_path):
        path = write_lines(tmp_path / "lines.geojson", self.LINES)
        words = ["check", *CELLS, "--network", path, "--n", N]
        mend = ["--node", "--join", 1.0, "--largest-component"]
        result = run(*words, *mend, "--json")
        said = json.loads(result.stdout)["domain"]
        expected = dps.io.read_network(path, node=True, join=1.0, largest_component=True)
        assert said["fingerprint"] == expected.fingerprint()
        assert said["length"] == pytest.approx(200 + 100 + 80, abs=1)
        assert said["changes"] == list(expected.changes)
        assert len(expected.changes) >= 3
        notes = [line for line in result.stderr.splitlines() if line.startswith("Note: ")]
        assert notes == [f"Note: network: {change}" for change in expected.changes]
        for change in expected.changes:
            assert change in spoken(run(*words, *mend))

    def test_nothing_is_mended_unasked(self, tmp_path):
        path = write_lines(tmp_path / "lines.geojson", self.LINES)
        said = spoken(run("check", *CELLS, "--network", path, "--n", N, code=2))
        assert "--network: the network falls into 4 components" in said
        assert "(--node), join dangling ends (--join), or keep the largest part (--largest-component)." in said

    @pytest.mark.parametrize(
        ("lines", "remedy"),
        [
            (
                [LINES[0], LINES[0]],
                "1 line drawn twice, which would count a street twice. Keep each once with --undirected",
            ),
            (
                [LINES[0], shapely.LineString()],
                "1 of 2 has an empty geometry; let --collapse-short 0.5 leave them out.",
            ),
            (
                [LINES[0], shapely.LineString([(0, 0), (0, 0)])],
                "1 of 2 has no length; let --collapse-short 0.5 leave them out.",
            ),
            ([shapely.Point(0, 0)], "must be LineStrings or MultiLineStrings"),
        ],
        ids=["twice", "empty", "no length", "points"],
    )
    def test_useless_lines(self, tmp_path, lines, remedy):
        path = write_lines(tmp_path / "lines.geojson", lines)
        said = spoken(run("check", *CELLS, "--network", path, "--n", N, code=2))
        assert said.startswith("Error: --network: ")
        assert remedy in said
        assert "lines[" not in said

    def test_short_edges_are_contracted(self, streets):
        result = run("check", *CELLS, "--network", streets, "--n", N, "--collapse-short", 10, "--json")
        expected = STREETS.collapse_short(10)
        said = json.loads(result.stdout)["domain"]
        assert said["fingerprint"] == expected.fingerprint()
        assert said["edges"] < len(STREETS.edges)
        assert expected.changes
        notes = [line for line in result.stderr.splitlines() if line.startswith("Note: ")]
        assert notes == [f"Note: network: {change}" for change in expected.changes]

    def test_the_points_may_be_in_another_system(self, streets, tmp_path):
        deaths = dps.datasets.soho_deaths().to_geodataframe().to_crs("EPSG:4326").geometry
        path = tmp_path / "deaths.csv"
        path.write_text("\n".join(["x,y", *(f"{p.x!r},{p.y!r}" for p in deaths)]))
        words = ["inspect", path, "--network", streets, "--snap", 30, "--out", tmp_path / "private"]
        assert "the lines are in" in spoken(run(*words, "--crs", "EPSG:4326", code=2))
        run(*words, "--crs", "EPSG:4326", "--to-crs", "EPSG:27700")

    @pytest.mark.parametrize("crs", [[], ["--crs", "EPSG:27700"]])
    def test_is_read_once(self, streets, monkeypatch, crs):
        read, seen = Path.read_bytes, []
        monkeypatch.setattr(Path, "read_bytes", lambda path: seen.append(path) or read(path))
        run("check", *CELLS, "--network", streets, "--n", N, *crs)
        assert seen.count(streets) == 1

    def test_degrees(self, tmp_path):
        import geopandas

        lines = geopandas.GeoSeries(STREETS.lines, crs="EPSG:27700").to_crs("EPSG:4326")
        path = write_lines(tmp_path / "lines.geojson", lines, "urn:ogc:def:crs:OGC:1.3:CRS84")
        words = ["check", *CELLS, "--network", path, "--n", N]
        remedy = "OGC:CRS84 (WGS 84 (CRS84)) is in degrees; re-project first: --to-crs EPSG:32630, the UTM zone here"
        assert f"--crs: distances need a projected CRS, and {remedy}" in spoken(run(*words, code=2))
        said = json.loads(run(*words, "--to-crs", "EPSG:27700", "--json").stdout)["domain"]
        assert said["length"] == pytest.approx(STREETS.length, rel=1e-4)
        assert said["crs"] == "EPSG:27700"

    @pytest.mark.parametrize("suffix", [".gpkg", ".parquet"])
    def test_other_formats(self, tmp_path, suffix):
        import geopandas

        frame = geopandas.GeoDataFrame(geometry=list(STREETS.lines), crs=STREETS.crs)
        path = tmp_path / f"lines{suffix}"
        frame.to_parquet(path) if suffix == ".parquet" else frame.to_file(path)
        said = json.loads(run("check", *CELLS, "--network", path, "--n", N, "--json").stdout)["domain"]
        assert (said["edges"], said["length"]) == (282, pytest.approx(STREETS.length))


WRONG = {
    "two domains": (["--window", "0,0,1,1", "--network", "n.geojson"], "--window: give --window x0,y0,x1,y1"),
    "two files": (["--window-file", "w.geojson", "--network", "n.geojson"], "exactly one of them"),
    "missing file": (["--network", "n.geojson"], "--network: there is no file 'n.geojson'"),
    "missing window": (["--window-file", "w.geojson"], "--window-file: there is no file 'w.geojson'"),
    "table": (["--network", DEATHS[0]], "--network: a network is made of lines, which CSV does not hold"),
    "node of a window": (["--window", "0,0,1,1", "--node"], "--node: mends the lines of a --network; leave it out"),
    "join of a window": (["--window", "0,0,1,1", "--join", 1], "--join: mends the lines"),
    "join of nothing": (["--window", "0,0,1,1", "--join", 0], "--join: mends the lines"),
    "short of a window": (["--window", "0,0,1,1", "--collapse-short", 1], "--collapse-short: mends the lines"),
    "part of a window": (["--window", "0,0,1,1", "--largest-component"], "--largest-component: mends the lines"),
    "resolution of a window": (["--window", "0,0,9,9", "--resolution", 1], "the mesh of a window takes --spacing"),
}
WRONG_ON_STREETS = {
    "negative resolution": ([*LGCP, "--resolution", -5], "--resolution: must be a positive length (metre)"),
    "two finenesses": ([*LGCP, "--resolution", 50, "--spacing", 100], "not both"),
    "cells of some spacing": ([*CELLS, "--spacing", 50], "--spacing: laplace's cells are segments"),
    "no resolution of kernel": ([*KERNEL, "--resolution", 0], "--resolution: must be a positive length (metre)"),
    "spacing of kernel": ([*KERNEL, "--spacing", 50], "--spacing: not an option of --method kernel"),
    "bound of kernel": ([*KERNEL, "--bound", "kim-lim-3.6"], "--bound: 'kim-lim-3.6' is for"),
    "covariance of laplace": ([*CELLS, "--covariance", "matern"], "--covariance: not an option of --method laplace"),
    "unknown covariance": ([*DRAW, "--covariance", "gaussian"], "'exponential', 'matern', 'cauchy'"),
    "covariance alone": ([*DRAW, "--covariance", "matern"], "--covariance: goes with --sigma and --length-scale"),
    "smoothness alone": ([*DRAW, "--smoothness", 0.5], "--smoothness: goes with --sigma and --length-scale"),
    "smoothness of none": (
        [*DRAW, "--sigma", 1, "--length-scale", 90, "--smoothness", 0.5],
        "--smoothness: --covariance exponential has none",
    ),
    "no smoothness": (
        [*DRAW, "--sigma", 1, "--length-scale", 90, "--covariance", "matern"],
        "--smoothness: --covariance matern needs one",
    ),
    "power of matern": (
        [*DRAW, "--sigma", 1, "--length-scale", 90, "--covariance", "matern", "--smoothness", 0.5, "--power", 1],
        "--power: --covariance matern has none",
    ),
    "no tail": (
        [*DRAW, "--sigma", 1, "--length-scale", 90, "--covariance", "cauchy", "--power", 1],
        "--tail: --covariance cauchy needs one",
    ),
    "squared exponential": (
        [*DRAW, "--sigma", 0.2, "--length-scale", 90, "--power", 2],
        "--power: this function is not a covariance on linear networks",
    ),
    "too smooth": (
        [*DRAW, "--sigma", 0.2, "--length-scale", 90, "--covariance", "matern", "--smoothness", 1.5],
        "negative variance; take a --power of at most 1, or a --smoothness of at most 0.5.",
    ),
    "another system": (
        [*CELLS, "--crs", "EPSG:32630"],
        "--crs: the lines are in EPSG:27700, not EPSG:32630; leave --crs out, --to-crs re-projects",
    ),
    "nothing is short": (
        [*CELLS, "--collapse-short", 0],
        "--collapse-short: must be a positive distance (in the network's unit)",
    ),
    "all is short": ([*CELLS, "--collapse-short", 1e4], "--collapse-short: every edge would be contracted"),
    "snap is no distance": ([*LGCP, "--snap", -1], "--snap: must be a positive distance"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_domains_are_refused_in_words(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, remedy = WRONG[name]
    result = run("check", *LGCP, *words, "--n", 9, code=2)
    assert remedy in spoken(result)
    assert result.stdout == ""


@pytest.mark.parametrize("name", WRONG_ON_STREETS)
def test_wrong_options_are_refused_in_words(name, streets):
    words, remedy = WRONG_ON_STREETS[name]
    result = run("check", *words, "--network", streets, "--n", N, code=2)
    assert remedy in spoken(result)
    assert result.stdout == ""


@pytest.mark.parametrize("command", ["synthesize", "inspect"])
@pytest.mark.parametrize(
    ("snap", "said"),
    [
        ([], "--snap: points are moved onto the network; say how far at most (metre), for instance --snap 15"),
        (["--snap", 0], "--snap: must be a positive distance in the network's unit (metre)"),
    ],
)
def test_the_tolerance_is_settled_before_the_points_are_read(command, snap, said, streets, tmp_path):
    more = [*FAST, "--out", tmp_path / "out"] if command == "synthesize" else ["--out", tmp_path]
    words = [command, tmp_path / "missing.csv", "--network", streets, *more]
    assert said in spoken(run(*words, *snap, code=2))
    assert "there is no file" in spoken(run(*words, "--snap", 30, code=2))
    window = [command, tmp_path / "missing.csv", "--window", "0,0,9,9", *more, "--snap", 0]
    assert "--snap: must be a positive distance in the window's unit" in spoken(run(*window, code=2))


class TestReleases:
    def test_is_on_the_streets_and_verified(self, public):
        for k in range(2):
            pattern = dps.io.read_synthetic(public / f"synthetic_{k:03d}.geojson", STREETS)
            assert STREETS.contains(pattern.xy).all()
        assert "The certificate holds" in spoken(run("verify", public))

    def test_screen_is_silent_about_the_points(self, streets, tmp_path):
        words = ["synthesize", *DEATHS, "--network", streets, "--snap", 30, *FAST]
        plain = run(*words, "--out", tmp_path / "a").output
        said = run(*words, "--out", tmp_path / "b", "--json")
        assert json.loads(said.stdout)["patterns"] == ["synthetic_000.geojson"]
        for text in (plain, said.output):
            # Temporary folders have numbers of their own, one more with every run of the tests.
            assert not re.search(rf"\b{N}\b", re.sub(r"pytest-\d+", "", text))
            assert not re.search(r"\b(529|180|181)\d{3}\b", text)

    def test_far_points_are_refused_in_words(self, streets, tmp_path):
        words = ["synthesize", *DEATHS, "--network", streets, "--snap", 20, *FAST, "--out", tmp_path / "out"]
        said = spoken(run(*words, code=2))
        assert "too far from the network" in said
        assert "CONFIDENTIAL" in said
        assert not (tmp_path / "out").exists()

    @pytest.mark.slow
    def test_exact_number(self, streets, tmp_path):
        words = ["synthesize", *DEATHS, "--network", streets, "--snap", 30, *CELLS, "--fixed-n", "--n", N]
        run(*words, "--out", tmp_path / "out")
        pattern = dps.io.read_synthetic(tmp_path / "out" / "synthetic_000.geojson", STREETS)
        assert len(pattern) == N

    @pytest.mark.slow
    def test_kernel(self, streets, tmp_path):
        words = ["synthesize", *DEATHS, "--network", streets, "--snap", 30, *KERNEL, "--resolution", 120]
        run(*words, "--patterns", 2, "--out", tmp_path / "out")
        for k in range(2):
            pattern = dps.io.read_synthetic(tmp_path / "out" / f"synthetic_{k:03d}.geojson", STREETS)
            assert STREETS.contains(pattern.xy).all()
        assert "The certificate holds" in spoken(run("verify", tmp_path / "out"))

    @pytest.mark.slow
    def test_levels(self, streets, tmp_path):
        rng = np.random.default_rng(3)
        xy, year = dps.datasets.soho_deaths().xy, rng.integers(2021, 2023, size=N)
        path = tmp_path / "deaths.csv"
        rows = [f"{x},{y},{level}" for (x, y), level in zip(xy.tolist(), year, strict=True)]
        path.write_text("\n".join(["x,y,year", *rows]))
        where = ["--network", streets, "--crs", "EPSG:27700", "--snap", 30, "--by", "year", "--levels", "2021,2022"]
        run("synthesize", path, *where, *CELLS, "--fixed-n", "--out", tmp_path / "out")
        pattern = dps.io.read_synthetic(tmp_path / "out" / "synthetic_000.geojson", STREETS, marks=["year"])
        assert sorted(pattern.marks["year"].astype(int)) == sorted(year)
        run("plot", tmp_path / "out", "--out", tmp_path / "pictures")
        names = {path.name for path in (tmp_path / "pictures").iterdir()}
        assert {"year=2021_intensity.png", "year=2022_pattern.png", "pattern.png"} <= names

    def test_sample_needs_no_network(self, public, tmp_path):
        run("sample", public, "--patterns", 2, "--out", tmp_path / "more")
        for path in sorted((tmp_path / "more").iterdir()):
            assert STREETS.contains(dps.io.read_synthetic(path, STREETS).xy).all()

    def test_pictures(self, public, tmp_path):
        run("plot", public, "--out", tmp_path / "pictures", "--landmarks", dps.datasets.path("soho_pumps"))
        names = {path.name for path in (tmp_path / "pictures").iterdir()}
        assert names == {"epsilon.png", "intensity.png", "mesh.png", "pattern.png"}

    @pytest.mark.slow
    def test_picture_of_epsilon_says_what_distances_run_along(self, public, tmp_path):
        with pictures_drawn() as drawn:
            run("plot", public, "--out", tmp_path / "pictures")
        assert "distance one point moves along the streets (m)" in [ax.get_xlabel() for ax in drawn]

    @pytest.mark.slow
    def test_comparison(self, public, tmp_path):
        words = ["plot", public, "--original", *DEATHS, "--out", tmp_path]
        assert "--snap: points are moved onto the network" in spoken(run(*words, code=2))
        assert "too far from the network" in spoken(run(*words, "--snap", 20, code=2))
        assert not list(tmp_path.iterdir())
        run(*words, "--snap", 30)
        assert [path.name for path in tmp_path.iterdir()] == ["CONFIDENTIAL_comparison.png"]

    def test_rehearsal(self, streets):
        words = ["rehearse", *FAST, "--network", streets, "--n", N, "--json"]
        said = json.loads(run(*words).stdout)
        assert said["passed"] is True
        assert all(0 <= each["distance"] < 0.5 for each in said["runs"])


class TestInspect:
    def test_far_points_go_to_the_confidential_file(self, streets, tmp_path):
        words = ["inspect", *DEATHS, "--network", streets, "--out", tmp_path, "--json"]
        said = json.loads(run(*words, "--snap", 30).stdout)
        assert (said["ok"], said["rules"], said["report"]) == (True, [], None)
        # Several people died in one house; streets have gaps.
        assert ["alike" in remark for remark in said["remarks"]] == [True, False, False]
        assert "--node" in said["remarks"][1]
        assert "--join 0.0007" in said["remarks"][2]
        result = run(*words, "--snap", 20, code=2)
        said = json.loads(result.stdout)
        assert said["rules"] == ["too far from the network"]
        assert not re.search(r"\b(529|180|181)\d{3}\b", result.output)
        report = tmp_path / "CONFIDENTIAL_offending_rows.csv"
        assert said["report"] == str(report)
        assert stat.S_IMODE(report.stat().st_mode) == 0o600
        header, *rows = report.read_text().splitlines()
        assert header == "row,rule,x,y,deaths"
        xy = np.array([row.split(",")[2:4] for row in rows], dtype=float)
        assert (STREETS.away(xy) > 20).all()
        x, y, deaths = np.loadtxt(DEATHS[0], delimiter=",", skiprows=1, unpack=True)
        far = STREETS.away(np.column_stack([x, y])[deaths > 0]) > 20
        assert len(rows) == far.sum() > 0


def test_every_command_on_a_network_tells_its_options():
    for command, words in {
        "check": ["--network", "--node", "--join", "--largest-component", "--collapse-short", "--resolution"],
        "rehearse": ["--network", "--resolution"],
        "synthesize": ["--network", "--snap"],
        "inspect": ["--network", "--snap"],
        "plot": ["--snap"],
    }.items():
        said = spoken(run("help", command, *["all"] * (command in ("check", "rehearse", "synthesize"))))
        assert all(word in said for word in words)


def test_a_network_read_again_is_the_same(streets):
    assert dps.io.read_network(streets).fingerprint() == STREETS.fingerprint()
    assert isinstance(dps.io.read_network(streets), LinearNetwork)

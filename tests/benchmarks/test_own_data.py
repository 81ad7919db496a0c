"""Files of one's own in benchmarks, laid out as their publishers do."""

import gzip
import json
import sys

import heatmap_data
import heatmaps
import local
import local_data
import numpy as np
import pyproj
import pytest

LOW, SIDE = np.array([1_170_000.0, 1_900_000.0]), 2000.0


@pytest.fixture
def crimes(tmp_path, monkeypatch):
    """Chicago's crimes in feet, one without a place and one outside, and streets in degrees."""
    monkeypatch.setattr(local_data, "OWN", None)
    rng, way = np.random.default_rng(5), pyproj.Transformer.from_crs("EPSG:3435", "EPSG:4326", always_xy=True)
    xy = np.rint(LOW + rng.uniform(0, SIDE, (30, 2)))
    rows = ["ID,Case Number,Date,Primary Type,Arrest,X Coordinate,Y Coordinate,Latitude,Longitude,Location"]
    places = [*(f"{x:.0f},{y:.0f}" for x, y in xy), ",", "1100000,1800000"]
    rows += [f'{k},HX{k:06d},01/01/2023 01:00:00 PM,"THEFT, OTHER",false,{at},,,' for k, at in enumerate(places)]
    (tmp_path / "crimes.csv").write_text("\n".join(rows) + "\n")
    cross = [([0, 0], [SIDE, SIDE / 2]), ([SIDE / 2, 0], [SIDE / 2, SIDE / 2])]
    lines = [[way.transform(*(LOW + end)) for end in line] for line in cross]
    features = [
        {"type": "Feature", "properties": {}, "geometry": {"type": "LineString", "coordinates": line}} for line in lines
    ]
    (tmp_path / "streets.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return tmp_path, xy


def test_points_in_the_square_of_streets(crimes):
    folder, xy = crimes
    columns = {"x": "X Coordinate", "y": "Y Coordinate"}
    found = local_data.own_points(folder / "crimes.csv", folder / "streets.geojson", crs="EPSG:3435", **columns)
    np.testing.assert_allclose(found.bounds, (*LOW, *(LOW + SIDE)), atol=0.1)
    assert len(found.xy) == 30
    np.testing.assert_allclose(np.sort(found.unit, axis=0), np.sort((xy - LOW) / SIDE, axis=0), atol=1e-4)
    same = local_data.own_points(folder / "crimes.csv", (*LOW, SIDE), crs="EPSG:3435", **columns)
    np.testing.assert_array_equal(found.xy, same.xy)


def test_they_take_the_place_of_the_shipped_patterns(crimes, monkeypatch):
    """A run without and with them: scores of one are no scores of the other."""
    folder, _ = crimes
    seen = []

    def experiment(_):
        seen.append([each.name for each in local_data.area_data()])
        yield ["row", 1.0]

    monkeypatch.setattr(local, "EXPERIMENTS", {"compared": experiment})
    own = ["--points", folder / "crimes.csv", "--crs", "EPSG:3435", "--x", "X Coordinate", "--y", "Y Coordinate"]
    squares = [*LOW, SIDE], [*LOW, SIDE], [*LOW, SIDE / 2]
    for given in ([], *([*own, "--square", *square] for square in squares)):
        monkeypatch.setattr(sys, "argv", list(map(str, ["local.py", "--work", folder / "work", *given])))
        monkeypatch.setattr(local_data, "OWN", None)
        local.main()
    simulated = ["Normal", "MNormal", "SZipf"]
    # Of the same points in the same square scores are there already.
    assert seen == [[*simulated, "Soho", "Arizona"], [*simulated, "crimes"], [*simulated, "crimes"]]


@pytest.mark.parametrize(
    "given", [["--points", "a.csv"], ["--points", "a.csv", "--crs", "EPSG:3435"], ["--square", "0", "0", "1"]]
)
def test_points_need_a_coordinate_system_and_a_square(given, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["local.py", *given])
    with pytest.raises(SystemExit, match="2"):
        local.main()


def test_checkins_of_the_papers_months(tmp_path):
    """As the Stanford collection lays them out: of Gowalla January 2010, of Brightkite November and December 2008."""
    days = ("2008-10-31T23:59:59Z", "2008-11-01T00:00:00Z", "2008-12-31T23:59:59Z", "2009-01-01T00:00:00Z")
    days += ("2009-12-31T23:59:59Z", "2010-01-01T00:00:00Z", "2010-01-31T23:59:59Z", "2010-02-01T00:00:00Z")
    lines = [f"{user}\t{day}\t40.75\t-73.98\tplace" for user in range(250) for day in days]
    found = {}
    for name in ("loc-gowalla_totalCheckins.txt", "Brightkite_totalCheckins.txt", "others.txt"):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        (scene,) = heatmap_data.cities(30, 1, [tmp_path / name])
        found[name[:3]] = len(scene.user) / 250
    assert found == {"loc": 2, "Bri": 2, "oth": 8}
    assert heatmap_data.months(tmp_path / "loc-gowalla_totalCheckins.txt")[0] == "2010-01-01"


def test_scores_of_checkins_are_no_scores_of_simulated_cities(tmp_path, monkeypatch):
    """A run without them and with them, compressed as the collection has them, into one folder."""
    lines = [f"{user}\t2010-01-0{day}T10:00:00Z\t40.75\t-73.98\tplace" for user in range(250) for day in (1, 9)]
    with gzip.open(tmp_path / "loc-gowalla_totalCheckins.txt.gz", "wt") as stream:
        stream.write("\n".join(lines) + "\n")
    seen = []

    def experiment(scenes):
        seen.append([len(scene.user) for scene in scenes])
        yield ["row", 1.0]

    monkeypatch.setattr(heatmaps, "EXPERIMENTS", {"cities": experiment})
    for given in ([], ["--checkins", tmp_path / "loc-gowalla_totalCheckins.txt.gz"]):
        run = ["heatmaps.py", "--work", tmp_path / "work", "--only", "cities", *given]
        monkeypatch.setattr(sys, "argv", list(map(str, run)))
        heatmaps.main()
    assert len(seen) == 2
    assert (len(seen[0]), seen[1]) == (30, [500])

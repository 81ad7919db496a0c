"""Intensities by type and period: parts that add up to the whole, by the names of the marks."""

import sqlite3
from contextlib import closing
from itertools import pairwise

import geopandas
import numpy as np
import pandas as pd
import pyogrio
import pytest
import rasterio
from scipy import integrate
from support.cases import STREETS
from support.command_line import run
from support.seams import one_prior

import dpppsynth as dps
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.marked.intensity import MarkedMean
from dpppsynth.release import write_intensity

# Two names that differ by case alone, of which one table each is in a GeoPackage, and one with signs of its own.
KINDS = dps.Types("offence", ["theft", "Theft", 'arson; "other", it\'s'])
MARKS = dps.Marks(KINDS, dps.Times.day("hour", hats=5))
NEAR = dps.AlphaNeighbours(25.0, time=1.0, types="public")


@pytest.fixture(scope="module")
def release():
    rng = np.random.default_rng(3)
    edge = rng.integers(0, len(STREETS.edges), 400)
    kind = rng.choice(KINDS.values, 400, p=[0.6, 0.3, 0.1])
    marks = {"offence": kind, "hour": rng.normal(14, 3, 400) % 24}
    crimes = dps.PointPattern.at(np.column_stack([edge, rng.random(400) * STREETS.lengths[edge]]), STREETS, marks)
    with one_prior():
        return dps.MarkedSynthesizer(4.0, marks=MARKS, relation=NEAR).release(crimes, 1)


def test_a_period_is_an_integral_over_its_times(release):
    """Against quadrature, across instants with hats and at both ends of the clock."""
    xy = STREETS.coordinates([[0, 1.0]])

    def rate(time, kind):
        return release.intensity(xy, time=time, type=kind)[0]

    for start, end in ((0.0, 24.0), (3.0, 17.5), (20.0, 24.0), (5.0, 5.5)):
        for kind in (None, "theft"):
            cuts = [start, *(t for t in MARKS.times.nodes if start < t < end), end]
            exact = sum(integrate.quad(rate, a, b, args=(kind,))[0] for a, b in pairwise(cuts))
            assert release.intensity(xy, type=kind, during=(start, end))[0] == pytest.approx(exact, rel=1e-8)
    assert release.intensity(xy, during=(0.0, 24.0)) == pytest.approx(release.intensity(xy), rel=1e-12)


def test_intervals_and_means_are_those_of_draws_one_by_one(release):
    xy = STREETS.coordinates(np.column_stack([np.arange(25), np.full(25, 3.0)]))
    mean = release.model.posterior_mean(release.draws)
    mean = MarkedMean(mean.grid, mean.fields[:20])
    for marks in ({}, {"type": "theft"}, {"during": (3.0, 9.0)}, {"type": "Theft", "time": np.linspace(0, 24, 25)}):
        each = [draw(xy, **marks) for draw in mean.draws()]
        assert mean(xy, **marks) == pytest.approx(np.mean(each, axis=0), rel=1e-6)
        expected = np.quantile(each, [0.1, 0.7], axis=0)
        assert mean.quantiles(xy, np.array([0.1, 0.7]), **marks) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("during", [(5.0, 3.0), (5.0, 5.0), (-1.0, 4.0), (0.0, 25.0), (1.0, 2.0, 3.0), "day"])
def test_what_is_no_period_is_refused(release, during):
    with pytest.raises(InputError):
        release.intensity(STREETS.coordinates([[0, 1.0]]), during=during)


@pytest.mark.parametrize("by", ["types", "hour", ("time", "offence")])
def test_parts_add_up(release, by, tmp_path):
    write_intensity(release, tmp_path / "i.csv", spacing=200.0)
    write_intensity(release, tmp_path / "by.csv", spacing=200.0, by=by)
    whole, parts = pd.read_csv(tmp_path / "i.csv"), pd.read_csv(tmp_path / "by.csv")
    count = (3 if by != "hour" else 1) * (8 if by != "types" else 1)
    assert len(parts) == count * len(whole)
    added = parts.groupby(["edge", "along"])["intensity"].sum()
    assert added.to_numpy() == pytest.approx(whole.sort_values(["edge", "along"])["intensity"].to_numpy(), rel=1e-9)
    assert (parts["lower"] <= parts["upper"]).all()
    for names, part in parts.groupby([name for name in ("type", "period") if name in parts]):
        texts = dict(zip([name for name in ("type", "period") if name in parts], names, strict=True))
        start = float(texts["period"][:2]) if "period" in texts else None
        chosen = {"type": texts.get("type"), "during": None if start is None else (start, start + 3)}
        xy = part[["x", "y"]].to_numpy()
        assert part["intensity"].to_numpy() == pytest.approx(release.intensity(xy, **chosen), rel=1e-9)
        interval = release.interval(xy, level=0.9, **chosen)
        assert part["upper"].to_numpy() == pytest.approx(interval.upper, rel=1e-6)


def test_layers_of_a_geopackage_are_under_one_scale(release, tmp_path):
    write_intensity(release, tmp_path / "i.gpkg", spacing=60.0, by="types")
    layers = [name for name, kind in pyogrio.list_layers(tmp_path / "i.gpkg") if kind is not None]
    assert layers == ["intensity theft", "intensity Theft_2", 'intensity arson; "other", it\'s']
    frames = [geopandas.read_file(tmp_path / "i.gpkg", layer=layer) for layer in layers]
    assert [set(frame["type"]) for frame in frames] == [{each} for each in KINDS.values]
    for frame, kind in zip(frames, KINDS.values, strict=True):
        middles = STREETS.coordinates(frame[["edge", "along"]].to_numpy())
        assert frame["intensity"].to_numpy() == pytest.approx(release.intensity(middles, type=kind), rel=1e-9)
    with closing(sqlite3.connect(tmp_path / "i.gpkg")) as base:
        styles = base.execute("SELECT f_table_name, useAsDefault, styleQML FROM layer_styles").fetchall()
    assert [name for name, _, _ in styles] == layers
    assert len({style for _, _, style in styles}) == 1
    ends = [each["intensity"].agg(["min", "max"]) for each in frames]
    for end in (min(low for low, _ in ends), max(high for _, high in ends)):
        assert repr(float(end)) in styles[0][2]


def test_bands_of_a_raster(tmp_path):
    rng = np.random.default_rng(5)
    square = dps.Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
    cases = dps.PointPattern(rng.uniform(0, 1000, (200, 2)), square, {"onset": rng.uniform(0, 700, 200)})
    dated = dps.Marks(times=dps.Times.between("onset", "2022-01-01", "2023-12-02", hats=4))
    with one_prior():
        release = dps.MarkedSynthesizer(2.0, marks=dated, relation=dps.AlphaNeighbours(50.0, time=14.0)).release(
            cases, 1
        )
    release.save(tmp_path / "public")
    run("export", tmp_path / "public", "--intensity", "tif", "--spacing", 250, "--by", "time", "--out", tmp_path / "o")
    with rasterio.open(tmp_path / "o" / "intensity.tif") as source:
        names = [f"{name} {year}" for year in (2022, 2023) for name in ("intensity", "lower", "upper")]
        assert list(source.descriptions) == names
        place = np.array([source.xy(1, 2)])
        for band, during in ((1, (0.0, 365.0)), (4, (365.0, 700.0))):
            assert source.read(band)[1, 2] == pytest.approx(release.intensity(place, during=during)[0], rel=1e-5)


def test_points_without_marks(tmp_path):
    plain = dps.LaplaceSynthesizer(1.0, alpha=25.0).release(dps.datasets.soho_deaths(), 1)
    with pytest.raises(InputError, match="by: the points of this release have no types"):
        write_intensity(plain, tmp_path / "i.csv", by="types")


def test_marks_that_are_not_there(release, tmp_path):
    with pytest.raises(InputError, match="by: expected one of"):
        write_intensity(release, tmp_path / "i.csv", by="street")


def test_rows_of_many_layers_are_few_unless_a_spacing_is_given(release, tmp_path, monkeypatch):
    """Types and periods share the number of parts; without it they were refused, or files of a million lines."""
    monkeypatch.setattr("dpppsynth.release.intensity_files.ALONG", 64)
    monkeypatch.setattr("dpppsynth.release.intensity_files.MOST_ROWS", 2 * 64**2)
    write_intensity(release, tmp_path / "i.parquet", by=("types", "time"))
    layers = 3 * 8
    # The last part of an edge may be a short one.
    assert 64**2 / 5 < len(geopandas.read_parquet(tmp_path / "i.parquet")) < 64**2 + layers * len(STREETS.edges)
    monkeypatch.setattr(type(release), "interval", None)  # nothing is computed before the refusal
    with pytest.raises(InputError, match=r"spacing: makes .* for each of 24 types and periods") as refused:
        write_intensity(release, tmp_path / "i.csv", by=("types", "time"), spacing=0.1)
    monkeypatch.undo()
    remedy = float(str(refused.value).split("spacing=")[1].split(")")[0])
    write_intensity(release, tmp_path / "i.parquet", by=("types", "time"), spacing=remedy)

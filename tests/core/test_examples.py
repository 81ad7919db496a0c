"""Examples: the tables of Kim & Lim's paper made again, and the picture of the README."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyproj
import pytest

import dpppsynth as dps
from dpppsynth import PointPattern
from dpppsynth.contract.additive_noise import LaplaceMasses, PrivateStatistic
from dpppsynth.evaluation.distances import quadrature
from dpppsynth.evaluation.experiments import Outcome
from dpppsynth.inference import LGCPInference, Posterior
from dpppsynth.privacy import AddRemove
from dpppsynth.release import CoxRelease
from dpppsynth.spatial.sampling import poisson_pattern

EXAMPLES = Path(__file__).parents[2] / "examples"

# The published tables once more, typed from the paper and not from the example: pMSE, points and MISE by epsilon.
PUBLISHED = """
lambda1 Kernel  .003/.002/.003   20.2/20.0/20.8     .306/.197/.280
lambda1 LGCP    .004/.004/.005   19.1/19.6/19.3     .198/.125/.178
lambda1 Laplace .095/.077/.050   973.8/109.4/27.5   .025/.022/.033
lambda2 Kernel  .076/.070/.037   78.5/78.3/76.9     .850/.836/.795
lambda2 LGCP    .076/.076/.076   77.2/77.2/76.9     .865/.882/.929
lambda2 Laplace .519/.273/.212   1014.4/154.7/84.3  .364/.264/1.148
lambda3 Kernel  .052/.052/.049   129.2/129.1/127.7  .102/.100/.097
lambda3 LGCP    .052/.052/.052   129.3/128.9/129.9  .114/.108/.110
lambda3 Laplace .106/.062/.030   1076.6/195.3/132.8 .223/.135/.553
lambda4 Kernel  .129/.130/.108   58.2/58.4/57.7     5.087/4.880/5.781
lambda4 LGCP    .130/.130/.128   56.7/58.1/57.6     4.258/5.184/4.851
lambda4 Laplace .497/.282/.127   1043.7/144.0/64.8  .174/.347/.673
"""
STREETS = """
LGCP    24.267/18.827/8.284  86.4(10.6)/87.7(12.4)/83.8(11.3)
Laplace 8.288/4.013/3.768    1443.6(182)/209.9(25)/91.7(9)
"""
PUBLISHED_TESSELLATIONS = """
lambda2 .1 .076/.077 77.2/79.9   .865/1.080
lambda2 1  .076/.076 77.2/78.4   .882/.814
lambda2 10 .076/.077 76.9/76.5   .929/.643
lambda3 .1 .052/.053 129.3/132.7 .114/.142
lambda3 1  .052/.053 128.9/131.1 .108/.124
lambda3 10 .052/.053 129.9/130.7 .110/.096
lambda4 .1 .13/.128  56.7/57.7   4.258/4.505
lambda4 1  .13/.129  58.1/59.3   5.184/5.077
lambda4 10 .128/.13  57.6/58.5   4.851/4.670
"""
BUDGET = 1.0, 0.02, 50


def pairs(cell):
    return tuple(map(float, cell.split("/")))


class Fixed:
    """A plan whose releases have one intensity, and such a release; or one with a release already made."""

    def __init__(self, intensity, made=None):
        self.intensity, self.statistic, self.plan, self.n = intensity, self, self, None
        self.made = made or self

    def release(self, pattern, rng):
        return self.made


@pytest.fixture
def made(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("point_synthesis_study")


@pytest.fixture
def tables(monkeypatch, made):
    return importlib.import_module("reproduce_point_synthesis")


@pytest.mark.parametrize(
    ("name", "points", "flat"), [("lambda2", 77.6, 0.076), ("lambda3", 128.5, 0.052), ("lambda4", 57.3, 0.130)]
)
def test_intensities_are_the_papers(made, name, points, flat):
    """Scores of a homogeneous pattern of n points have a closed form, which the paper's flat rows must show."""
    scenario = made.simulations()[name]
    xy, weight = quadrature(scenario.domain)
    truth = scenario.intensity(xy)
    total = truth @ weight
    # Points of the paper's table are means over ten originals.
    assert abs(total - points) < 3 * np.sqrt(total / 10)
    ours, theirs = truth / total, 1 / scenario.domain.size
    pooled = (ours + theirs) / 2
    expected = ((theirs / (ours + theirs) - 0.5) ** 2 * pooled) @ weight
    assert expected == pytest.approx(flat, abs=0.004)


def test_the_papers_numbers_are_the_published_ones(tables):
    rows = [line.split() for line in PUBLISHED.split("\n") if line]
    numbers = {(where, who): [tuple(map(float, each.split("/"))) for each in cells] for where, who, *cells in rows}
    assert numbers == {(where, who): list(row) for where, rows in tables.PAPER.items() for who, row in rows.items()}
    for who, mise, points in (line.split() for line in STREETS.split("\n") if line):
        assert tables.CHICAGO[who][0] == tuple(map(float, mise.split("/")))
        assert [each.replace(" ", "") for each in tables.CHICAGO[who][1]] == points.split("/")
    rows = [line.split() for line in PUBLISHED_TESSELLATIONS.split("\n") if line]
    numbers = {(where, float(epsilon)): tuple(pairs(each) for each in cells) for where, epsilon, *cells in rows}
    assert numbers == {
        (where, epsilon): row
        for where, budgets in tables.TESSELLATIONS.items()
        for epsilon, row in zip(tables.BUDGETS, budgets, strict=True)
    }


@pytest.mark.slow
def test_deltas_in_the_tables_are_those_of_the_plans(made, tables):
    """A row that the package would refuse must not pass for one that it would release."""
    named = {**made.PUBLISHED, **made.NEW, **made.STREETS, **made.TESSELLATIONS, **made.BY_NUTS}
    assert set(named) == set(made.DELTAS)
    scenario = made.simulations()["lambda3"]
    for name in [*made.PUBLISHED, *made.NEW]:
        synthesizer, delta = named[name](scenario, *BUDGET).synthesizer, made.DELTAS[name]
        assert ("refused" in tables.spent(name)) == delta.startswith("1/n")
        # The averaged delta of Corollary 3.9 is no promise that a plan makes.
        if delta in ("0", "1e-6", "1/n") and name != "Laplace, as printed":
            plan = synthesizer.plan(scenario.domain, n=BUDGET[2])
            spends = 1 / BUDGET[2] if delta == "1/n" else float(delta)
            # Some of it may be left over, where a field would be larger than is of use.
            assert spends / 10 <= plan.guarantee.delta(BUDGET[0]) <= spends * (1 + 1e-9), name


@pytest.mark.slow
def test_originals_have_the_right_mean_everywhere(made):
    scenario, rng = made.simulations()["lambda4"], np.random.default_rng(0)
    xy = np.concatenate([scenario.draw(rng).xy for _ in range(200)])
    square, weight = quadrature(scenario.domain)
    mass = scenario.intensity(square) * weight
    for region in (lambda p: p.sum(axis=1) > 0, lambda p: np.abs(p).max(axis=1) < 2, lambda p: p[:, 0] > 4):
        expected = 200 * mass[region(square)].sum()
        # Five standard deviations of a Poisson number: false alarms 6e-7 each.
        assert abs(region(xy).sum() - expected) < 5 * np.sqrt(expected)


def test_an_intensity_is_looked_up_half_a_window_away(made):
    window = made.simulations()["lambda4"].domain
    moved = made.HalfAWindowAway(lambda xy: xy @ [1.0, 100.0], window)
    assert moved(np.array([[-4.0, 1.0], [2.0, -3.0]])) == pytest.approx([1.0 - 400.0, -3.0 + 200.0])


def test_every_set_comes_from_a_release_of_its_own(made):
    """Otherwise the kernel's budget would be split over them, and a Cox release's noise counted once."""
    scenario, rng = made.simulations()["lambda4"], np.random.default_rng(1)
    original = scenario.draw(rng)
    for name in ("Laplace, as printed", "Kernel, bound 3.6"):
        releases = made.PUBLISHED[name](scenario, 1.0, 1 / len(original), len(original)).release(original, rng)
        patterns = releases.sample(2, rng)
        assert [each.pattern for each in releases.sets] == patterns
        one, two = (each.intensity(original.xy) for each in releases.sets)
        assert np.array_equal(one, two) == (name == "Kernel, bound 3.6")
    assert releases.plan.statistic.patterns == 1


@pytest.mark.parametrize("source", ["draws", "mean"])
def test_sets_are_those_of_a_release_and_scored_by_what_they_were_drawn_from(made, source):
    """Neither a draw's set by the mean, which flatters it, nor sets that `sample` would not make."""
    scenario, rng = made.simulations()["lambda4"], np.random.default_rng(2)
    square = dps.models.regular_triangulation(scenario.domain, shape=(3, 3))
    fields = rng.normal(-1, 1, (1, 20, len(square.vertices))).astype(np.float32)
    plan = LaplaceMasses("tents", square, AddRemove(), None, 20, 1.0)
    statistic = PrivateStatistic(plan, np.zeros(len(square.vertices), dtype=np.int64), "none", seeded=True)
    posterior = Posterior(fields, np.ones(fields.shape[:2]))
    drawn = CoxRelease("lgcp-tents", statistic, LGCPInference(square, (1.0,)), posterior)
    mean = drawn.estimator.posterior_mean(drawn.draws)
    theirs, same = drawn.sample(3, 5, source=source), np.random.default_rng(5)
    ours = [poisson_pattern(each, same) for each in made.sources(drawn, source, 3, same)]
    assert [each.xy.tolist() for each in ours] == [each.xy.tolist() for each in theirs]
    assert made.OneRelease(drawn, source).intensity.fields.shape[0] == {"draws": 20, "mean": 4}[source]
    release = made.OneRelease(drawn, source)
    release.sample(3, rng)
    assert len({id(each.intensity) for each in release.sets}) == {"draws": 3, "mean": 1}[source]
    one = made.Releases(Fixed(mean, drawn), scenario.draw(rng), source)
    one.sample(1, rng)
    at = square.vertices
    assert np.array_equal(one.sets[0].intensity(at), mean(at)) == (source == "mean")


def test_an_empty_set_is_left_out_of_the_mean(made):
    scenario = made.simulations()["lambda4"]
    original = scenario.draw(np.random.default_rng(3))
    one = made.Synthetic(scenario.draw(np.random.default_rng(4)), 57, lambda xy: 1 + xy[:, 0] ** 2)
    nothing = made.Synthetic(PointPattern.synthetic(np.empty((0, 2)), scenario.domain), 0, one.intensity)

    def scored(*sets):
        release = made.Releases(None, original)
        release.sets = list(sets)
        return made.propensity(Outcome(scenario, original, release, (), 1.0, 0.0))

    assert scored(nothing, one) == scored(one) > 0
    assert np.isnan(scored(nothing, nothing))


def test_means_that_lack_originals_are_marked(made, tables):
    """One of two originals has no pMSE, and neither has a value of the measure in the second row."""
    cells = pd.DataFrame({"scenario": "a", "epsilon": 1.0, "delta": "1/n", "refused": None, "tv": 0.25}, range(4))
    cells["synthesizer"] = ["Laplace, as printed"] * 2 + ["Kernel, superposition, small delta"] * 2
    cells["repeat"], cells["pmse"] = [0, 1, 0, 1], [0.5, np.nan, np.nan, np.nan]
    means = tables.averages(cells)
    assert list(means["delta"]) == ["0", "1e-6"]
    assert list(means["partly"]) == ["pmse", ""]


def test_a_set_of_one_point_has_no_k(made):
    """Its K is 0, so that the integrated squared error is the range of r at which the original's is positive."""
    scenario = made.simulations()["lambda1"]
    original = PointPattern([[0.5, 0.5], [0.5, 0.501]], scenario.domain)
    release = made.Releases(None, original)
    lonely = PointPattern.synthetic([[0.2, 0.2]], scenario.domain)
    release.sets = [made.Synthetic(lonely, 1, scenario.intensity)]
    outcome = Outcome(scenario, original, release, (lonely,), 1.0, 0.0)
    step = 0.25 / made.STEPS
    assert made.errors(outcome, weighted=False) == pytest.approx(0.25 - step)


@pytest.mark.slow
def test_tables_from_a_small_run(tmp_path, monkeypatch, made, tables):
    """Two intensities, a few mechanisms: every row, the paper's after them, and the picture."""
    scenarios = made.simulations()
    few = {name: scenarios[name] for name in ("lambda4", tables.DOUBLED)}
    monkeypatch.setattr(made, "simulations", few.copy)
    published = {name: made.PUBLISHED[name] for name in ("Laplace, as printed", "homogeneous Poisson")}
    monkeypatch.setattr(made, "PUBLISHED", published)
    monkeypatch.setattr(made, "NEW", {"Laplace, tents, n kept": made.NEW["Laplace, tents, n kept"]})
    monkeypatch.setattr(tables, "TESSELLATIONS", {"lambda4": tables.TESSELLATIONS["lambda4"]})
    monkeypatch.setattr(tables, "PAPER", {name: tables.PAPER[name] for name in ("lambda1", "lambda4")})
    words = f"x --tables 1 --originals 1 --sets 1 --workers 1 --folder {tmp_path / 'cells'} --out {tmp_path / 'out'}"
    monkeypatch.setattr(sys, "argv", words.split())
    tables.main()
    assert (tmp_path / "out" / "point_synthesis.png").stat().st_size > 10_000
    means = pd.read_csv(tmp_path / "out" / "point_synthesis.csv", dtype=str, keep_default_na=False)
    ours, theirs = means.iloc[:-18], means.iloc[-18:]
    assert len(ours) == 3 * (2 * len(made.PUBLISHED) + 1)
    assert set(ours["delta"]) == {"0", "nothing spent"}
    assert set(means["partly"]) == {""}
    assert set(theirs["table"]) == {"1"}
    assert set(theirs["synthesizer"]) == {"Kernel, the paper", "LGCP, the paper", "Laplace, the paper"}
    assert list(theirs["pmse"])[-3:] == ["0.497", "0.282", "0.127"]
    assert list(theirs["points"])[-3:] == ["1043.7", "144", "64.8"]


@pytest.mark.slow
def test_picture_of_the_readme_states_no_less_than_is_proved(monkeypatch, tmp_path):
    """Within the privacy radius e / (1 + e); farther away no less than proved for the next distance."""
    monkeypatch.syspath_prepend(EXAMPLES)
    picture = importlib.import_module("soho_picture")
    deaths = dps.datasets.soho_deaths()
    guarantee = dps.LGCPSynthesizer(epsilon=1.0, alpha=25.0).check(deaths.domain, n=len(deaths))
    shown = picture.best_guess(guarantee, np.array([0.0, 25.0, 50.0, 1e4]))
    farthest = 100 / (1 + np.exp(-guarantee.by_distance[-1][1]))
    assert shown == pytest.approx([50.0, 100 / (1 + np.exp(-1)), shown[2], farthest])
    assert shown[1] < 100 / (1 + np.exp(-2)) <= shown[2] < farthest
    picture.main(tmp_path / "soho.png")
    assert (tmp_path / "soho.png").read_bytes()[:4] == b"\x89PNG"
    assert picture.OUT.stat().st_size < 200_000


@pytest.mark.slow
def test_picture_of_the_model_has_the_plans_own_tents(monkeypatch, tmp_path):
    """The noised masses are those of the mesh beside them: one circle a vertex."""
    monkeypatch.syspath_prepend(EXAMPLES)
    picture = importlib.import_module("model_picture")
    drawn = []
    masses = picture.masses
    monkeypatch.setattr(picture, "masses", lambda *given: (drawn.append(given), masses(*given)))
    picture.main(tmp_path / "model.png")
    ((_, mesh, exact, noised),) = drawn
    assert len(mesh.vertices) == len(exact) == len(noised)
    assert exact.sum() == pytest.approx(392)
    # Laplace noise of scale .63: none of 49 beyond 20 scales, but for one run in ten million.
    assert 0 < np.abs(noised - exact).max() < 13
    assert (tmp_path / "model.png").read_bytes()[:4] == b"\x89PNG"
    assert picture.OUT.stat().st_size < 200_000


def test_pictures_of_the_page_on_choosing_state_no_less_than_is_proved(monkeypatch):
    """A radius of its own for each curve: the README's would state too little for a smaller one."""
    monkeypatch.syspath_prepend(EXAMPLES)
    pictures = importlib.import_module("choosing_pictures")
    window = dps.datasets.soho_deaths().domain
    for alpha in pictures.ALPHAS:
        guarantee = dps.LGCPSynthesizer(epsilon=1.0, alpha=alpha).check(window, n=392)
        apart, proved = np.array(guarantee.by_distance).T
        shown = pictures.best_guess(guarantee, alpha, apart)
        assert shown[apart > alpha] == pytest.approx(100 / (1 + np.exp(-proved[apart > alpha])))
        assert pictures.best_guess(guarantee, alpha, np.array([alpha])) == pytest.approx(100 / (1 + np.exp(-1)))
        assert (np.diff(shown) >= 0).all()
    page = (EXAMPLES.parent / "docs" / "guides" / "choosing.md").read_text()
    xy = pd.read_csv(dps.datasets.path("soho_addresses"))[["x", "y"]].to_numpy()
    counted = ", ".join(str(pictures.addresses_within(radius, xy)) for radius in pictures.RADII)
    assert f"addresses lie in each: {counted}]" in page
    assert all((pictures.OUT / f"{name}.png").stat().st_size < 150_000 for name in ("alpha", "epsilon", "budgets"))


def crimes_of_a_city(folder):
    """Files as Chicago publishes them: crimes in feet among other columns, centre lines of streets in degrees.

    Streets cross without a common vertex, and one of them meets no other. A crime has no place, another lies elsewhere.
    """
    rng, way = np.random.default_rng(5), pyproj.Transformer.from_crs("EPSG:3435", "EPSG:4326", always_xy=True)
    low, side = np.array([1_170_000.0, 1_900_000.0]), 2000.0
    ends = [([0, t], [side, t]) for t in (0, 700, 1400)] + [([t, -50], [t, side]) for t in (100, 900, 1900)]
    ends.append(([side + 500, 0], [side + 500, 300]))
    lines = [[way.transform(*(low + end)) for end in line] for line in ends]
    features = [
        {"type": "Feature", "properties": {"street_nam": f"S{k}"}, "geometry": {"type": "LineString", "coordinates": c}}
        for k, c in enumerate(lines)
    ]
    (folder / "streets.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    rows = ["ID,Case Number,Date,Primary Type,Arrest,X Coordinate,Y Coordinate,Latitude,Longitude,Location"]
    for k in range(40):
        x, y = np.add(low, (rng.uniform(0, side), rng.choice([0.0, 700.0, 1400.0]) + rng.normal(0, 10)))
        rows.append(
            f'{k},HX{k:06d},01/01/2023 01:00:00 PM,"THEFT, OTHER",false,{x:.0f},{y:.0f},41.87,-87.65,"(41.87, -87.65)"'
        )
    rows += ["40,HX000040,01/01/2023,THEFT,false,,,,,", "41,HX000041,01/01/2023,THEFT,false,1100000,1800000,,,"]
    (folder / "crimes.csv").write_text("\n".join(rows) + "\n")
    return ["--points", folder / "crimes.csv", "--network", folder / "streets.geojson", "--crs", "EPSG:3435"]


def test_points_of_ones_own_take_the_place_of_the_towns(tmp_path, monkeypatch, made, tables):
    """Streets are cut at crossings and reprojected; the one apart is left out, and alpha is in the streets' feet."""
    some = ("Laplace, as printed", "homogeneous Poisson")
    monkeypatch.setattr(made, "STREETS", {name: made.STREETS[name] for name in some})
    monkeypatch.setattr(made, "OWN", {})
    monkeypatch.setattr(tables, "picture_of_streets", lambda path: path.touch())
    given = [*crimes_of_a_city(tmp_path), "--x", "X Coordinate", "--y", "Y Coordinate", "--sets", 2, "--workers", 1]
    monkeypatch.setattr(sys, "argv", list(map(str, ["x", *given, "--folder", tmp_path / "cells", "--out", tmp_path])))
    tables.main()
    rows = pd.read_csv(tmp_path / "point_synthesis.csv")
    ours = rows[rows["scenario"] == "crimes"]
    assert set(ours["synthesizer"]) == set(some)
    assert set(rows["scenario"]) == {"crimes", "Chicago"}
    town = made.OWN["crimes"]
    assert len(town.draw(None)) == 40
    assert town.domain.length * 0.3048 == pytest.approx(3700, rel=0.02)
    assert town.alpha == pytest.approx(25 / 0.3048)
    assert len(town.domain.edges) == 3 * 4 + 3 * 4


@pytest.mark.parametrize("left_out", ["--points", "--network", "--crs"])
def test_points_of_ones_own_need_streets_and_a_coordinate_system(tmp_path, monkeypatch, tables, left_out, capsys):
    given = list(map(str, crimes_of_a_city(tmp_path)))
    del given[given.index(left_out) : given.index(left_out) + 2]
    monkeypatch.setattr(sys, "argv", ["x", *given])
    with pytest.raises(SystemExit, match="2"):
        tables.main()
    assert "are given together" in capsys.readouterr().err

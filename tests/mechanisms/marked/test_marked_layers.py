"""Offsets and covariates behind points with types and times: intensity, effects, relative risk, and files."""

import json

import numpy as np
import pytest
import shapely
from support.cases import STREETS
from support.command_line import run
from support.seams import one_prior

from dpppsynth import AlphaNeighbours, MarkedSynthesizer, Marks, PointPattern, Times, Types, Window
from dpppsynth.core.errors import InputError
from dpppsynth.core.published_files import plain_text
from dpppsynth.ledger import Ledger
from dpppsynth.privacy import verify
from dpppsynth.release import certificate, load_release
from dpppsynth.reporting import report_pictures
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.public_layers import PolygonLayer
from dpppsynth.spatial.raster_layers import RasterLayer

SQUARE = Window.rectangle(0, 0, 1000, 1000)
KINDS = Types("offence", ["burglary", "theft"])
MARKS = Marks(KINDS, Times.day("hour", hats=4))
NEAR = AlphaNeighbours(25.0, time=1.0, time_unit="hours", types="public")
ALONE = AlphaNeighbours(25.0, types="public")
# Three times as many people for each area in the east, on cells of different sizes.
HALVES = PolygonLayer([shapely.box(0, 0, 600, 1000), shapely.box(600, 0, 1000, 1000)], [600.0, 1200.0])
PEOPLE = Offset.of(HALVES, "counts")
PATCHES = RasterLayer(np.random.default_rng(8).standard_normal((10, 10)), (0, 0, 1000, 1000))
EFFECT = -0.6
GRID = np.stack(np.meshgrid(np.linspace(5, 995, 100), np.linspace(5, 995, 100)), axis=-1).reshape(-1, 2)


@pytest.fixture(autouse=True, scope="module")
def one_size_of_each_part():
    """Fields are inferred with one prior and few draws: what is averaged over changes nothing here."""
    with one_prior(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpppsynth.inference.sparse_inference.MOST_DRAWS", 150)
        yield


def original(n=1500, seed=1, effect=EFFECT):
    """Points that follow people and patches; two thirds are thefts, about 14 o'clock."""
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0, 1000, (60 * n, 2))
    value = PEOPLE(xy) * np.exp(effect * PATCHES(xy))
    xy = xy[rng.random(len(xy)) < value / value.max()][:n]
    theft = rng.random(n) < 2 / 3
    hour = np.where(theft, rng.normal(14, 4, n), rng.uniform(0, 24, n)) % 24
    return PointPattern(xy, SQUARE, {"offence": np.where(theft, "theft", "burglary"), "hour": hour})


def typed(pattern):
    """The same points with types alone."""
    return PointPattern(pattern.xy, SQUARE, {"offence": pattern.marks["offence"]})


@pytest.fixture(scope="module")
def release():
    settings = MarkedSynthesizer(
        2.0, marks=MARKS, relation=NEAR, spacing=200.0, offset=PEOPLE, covariates={"patches": PATCHES}
    )
    return settings.release(original(), 5)


@pytest.fixture(scope="module")
def folder(release, tmp_path_factory):
    return release.save(tmp_path_factory.mktemp("layers") / "out", rng=1)


def wrong(folder):
    """Checks that fail, but for that of the seed."""
    return {check.name for check in verify(folder).checks if not check.holds} - {"randomness"}


@pytest.mark.slow
def test_the_statistic_and_its_bound_stay_the_same():
    plain = MarkedSynthesizer(1.0, marks=MARKS, relation=NEAR, spacing=250.0)
    public = MarkedSynthesizer(
        1.0, marks=MARKS, relation=NEAR, spacing=250.0, offset=PEOPLE, covariates={"patches": PATCHES}
    )
    one, other = (each.plan(SQUARE, n=300).statistic for each in (plain, public))
    assert one.parameters() == other.parameters()
    assert one.guarantee.to_dict() == other.guarantee.to_dict()
    assert (one.scale, one.sensitivity) == (other.scale, other.sensitivity)
    pattern = original(300)
    assert (one.measure(pattern, 7).lattice == other.measure(pattern, 7).lattice).all()
    one, other = (each.plan(SQUARE, n=300).estimator.to_dict() for each in (plain, public))
    assert {name for name in other if one[name] is None and other[name] is not None} == {"offset", "covariates"}
    assert other["offset"] == PEOPLE.fingerprint


class TestOffset:
    def release(self, **settings):
        made = MarkedSynthesizer(50.0, marks=Marks(KINDS), relation=ALONE, spacing=200.0, **settings)
        return made.release(typed(original(3000, effect=0.0)), 3)

    @pytest.mark.slow
    def test_multiplies_once_and_the_field_need_not_follow_it(self):
        """Ignored it would leave no step, counted twice one of 9, left out of the measure a risk of 3 and more."""
        found = self.release(offset=PEOPLE)
        border = np.array([[600 - 1e-3, 500.0], [600 + 1e-3, 500.0]])
        for kind in KINDS.values:
            west, east = found.intensity(border, type=kind)
            assert east / west == pytest.approx(3, rel=1e-3)
        middle = GRID[(np.abs(GRID - 500) < 400).all(axis=1)]
        assert (np.abs(found.relative_risk(middle) - 1) < 0.7).all()
        # Without it the field has to climb the step, which it cannot at once.
        west, east = self.release().intensity(border, type="theft")
        assert east / west == pytest.approx(1, abs=0.01)

    @pytest.mark.slow
    def test_counts_are_people_and_not_densities(self):
        """600 and 1200 of 1800 people; by area it would be 600 to 400."""
        grid = self.release(offset=PEOPLE).estimator.grid
        np.testing.assert_allclose(grid.measure.reshape(2, -1).sum(axis=1), 1800.0, rtol=1e-9)
        basis, weight = grid.rule
        assert weight.sum() == pytest.approx(2 * 1800.0)
        np.testing.assert_allclose(basis.T @ weight, grid.measure, rtol=1e-9, atol=1e-6)

    @pytest.mark.slow
    def test_the_intensity_and_its_points_have_the_public_total(self, release):
        assert release.intensity.total == pytest.approx(1500, rel=1e-3)
        assert release.intensity(GRID).mean() * SQUARE.area == pytest.approx(1500, rel=0.05)
        assert release.marginal("types")["points"].sum() == pytest.approx(1500, rel=1e-3)

    @pytest.mark.slow
    def test_synthetic_points_follow_the_intensity(self):
        """20 000 points: false alarms below one in a million, by five standard deviations."""
        found = self.release(offset=PEOPLE)
        drawn = found.intensity.draw_points(20_000, np.random.default_rng(4))
        east = GRID[:, 0] > 600
        share = found.intensity(GRID)[east].sum() / found.intensity(GRID).sum()
        assert (drawn[0][:, 0] > 600).mean() == pytest.approx(share, abs=5 * 0.5 / 20_000**0.5 + 2e-3)
        assert share == pytest.approx(2 / 3, abs=0.06)

    def test_nobody_where_nobody_lives(self):
        empty = Offset.from_grid([[1.0, 0.0]], SQUARE.bounds)
        pattern = typed(original(500))
        found = MarkedSynthesizer(1.0, marks=Marks(KINDS), relation=ALONE, spacing=250.0, offset=empty).release(
            pattern, 2
        )
        assert found.sample(1, 3)[0].xy[:, 0].max() <= 500
        assert found.intensity([[900.0, 500.0]], type="theft") == 0

    @pytest.mark.slow
    def test_rare_candidates_are_drawn_in_parts(self, monkeypatch, release):
        monkeypatch.setattr("dpppsynth.mechanisms.marked.intensity.MOST_TRIES", 100)
        assert len(release.sample(1, 1, fixed_n=True)[0]) == 1500


class TestEffects:
    @pytest.mark.slow
    def test_are_those_of_a_regression_without_noise(self):
        """Poisson regression on cells of the patches, each type with a level; next to no noise in the release."""
        pattern = typed(original(12_000))
        settings = MarkedSynthesizer(
            200.0, marks=Marks(KINDS), relation=ALONE, spacing=50.0, offset=PEOPLE, covariates={"patches": PATCHES}
        )
        found = settings.release(pattern, 2).effects
        assert found.per_unit("patches").mean() == pytest.approx(regression(pattern), abs=0.05)
        drawn = found.per_unit("patches")
        assert drawn.mean() == pytest.approx(EFFECT, abs=0.08)
        assert drawn.std() < 0.1

    @pytest.mark.slow
    def test_hold_for_all_types_and_times(self, release):
        drawn = release.effects.per_unit("patches")
        assert abs(drawn.mean() - EFFECT) < 5 * drawn.std()
        assert drawn.mean() < 0
        design, grid = release.estimator.covariates, release.estimator.grid
        spread = release.estimator.spread(design.values).reshape(*grid.shape)
        assert (spread == design.values[:, 0]).all()
        assert design.over == "offset"

    def test_of_covariates_that_are_missing(self, folder):
        plain = MarkedSynthesizer(1.0, marks=Marks(KINDS), relation=ALONE, spacing=500.0).release(
            typed(original(100)), 1
        )
        assert not plain.has_risk
        with pytest.raises(InputError, match=r"^effects: this release has no covariates"):
            _ = plain.effects


def regression(pattern):
    """Effect of the patches on the numbers of points for each inhabitant, by Newton's method."""
    cell = (GRID // 100).astype(int) @ [1, 10]
    people = np.bincount(cell, PEOPLE(GRID) * 100)
    column = np.bincount(cell, PATCHES(GRID)) / np.bincount(cell)
    kind = pattern.marks["offence"] == "theft"
    at = np.minimum(pattern.xy // 100, 9).astype(int) @ [1, 10]
    count = np.concatenate([np.bincount(at[kind == each], minlength=100) for each in (False, True)])
    design = np.column_stack([np.repeat([1, 0], 100), np.repeat([0, 1], 100), np.tile(column, 2)])
    beta = np.array([np.log(count.sum() / people.sum() / 2)] * 2 + [0.0])
    for _ in range(30):
        mean = np.tile(people, 2) * np.exp(design @ beta)
        beta = beta + np.linalg.solve(design.T @ (mean[:, None] * design), design.T @ (count - mean))
    return beta[2]


class TestRisk:
    @pytest.mark.slow
    def test_its_average_over_the_population_is_one(self, release):
        weight = PEOPLE(GRID) / PEOPLE(GRID).sum()
        for kind in (None, *KINDS.values):
            assert release.relative_risk(GRID, type=kind) @ weight == pytest.approx(1, abs=0.03)
        hours = np.arange(0.0, 24, 2)
        through = [release.relative_risk(GRID, time=hour, type="theft") @ weight for hour in hours]
        assert np.mean(through) == pytest.approx(1, abs=0.03)
        # Thefts fall about 14 o'clock.
        assert through[7] > 1.4 > 0.8 > through[1]

    def test_of_a_type_at_a_time_is_the_ratio_of_intensities(self, release):
        """Draw by draw: intensity over offset, divided by the type's points for each inhabitant and hour."""
        at = GRID[::997]
        mean = release.model.posterior_mean(release.draws)
        ratio = [
            each(at, time=9.0, type="theft") / PEOPLE(at) / (each.masses[1].sum() / 1800 / 24) for each in mean.draws()
        ]
        np.testing.assert_allclose(release.relative_risk(at, time=9.0, type="theft"), np.mean(ratio, axis=0), rtol=1e-6)
        above = release.exceedance(1.1, at, time=9.0, type="theft")
        np.testing.assert_allclose(above, (np.array(ratio) > 1.1).mean(axis=0), atol=1e-9)

    @pytest.mark.slow
    def test_over_all_types_and_times_it_is_nearly_that_of_the_intensity(self, release):
        """At vertices to rounding; between them it is linear on the log scale."""
        at = release.estimator.grid.space.vertices
        mean = release.model.posterior_mean(release.draws)
        ratio = [each(at) / PEOPLE(at) / (each.total / 1800) for each in mean.draws()]
        np.testing.assert_allclose(release.relative_risk(at), np.mean(ratio, axis=0), rtol=1e-6)

    def test_refused(self, release):
        at = GRID[:2]
        for call, rule in (
            (lambda: release.relative_risk(at, type="arson"), r"^type: "),
            (lambda: release.relative_risk(at, time=25.0), r"^hour: |^time: "),
            (lambda: release.relative_risk(at, time=[1.0, 2.0]), r"^time: "),
            (lambda: release.relative_risk([[np.nan, 1.0]]), r"^xy: "),
            (lambda: release.exceedance(0.0, at), r"^threshold: "),
            (lambda: release.risk_interval(at, type="theft"), r"^risk_interval: "),
        ):
            with pytest.raises(InputError, match=rule):
                call()

    def test_reports_show_that_of_each_type(self, release, monkeypatch):
        monkeypatch.setattr(report_pictures, "risk_map", lambda risk, _background: risk(GRID[:5]))
        shown = dict(report_pictures.risks_by_type(release))
        assert set(shown) == {f"Relative risk by offence, {kind}" for kind in KINDS.values}
        found = shown["Relative risk by offence, theft"]
        np.testing.assert_array_equal(found, release.relative_risk(GRID[:5], type="theft"))


class TestOnDisk:
    @pytest.mark.slow
    def test_everything_comes_back(self, release, folder):
        assert not wrong(folder)
        again = load_release(folder)
        at = GRID[::991]
        np.testing.assert_array_equal(again.intensity(at, type="theft"), release.intensity(at, type="theft"))
        np.testing.assert_array_equal(again.effects["patches"], release.effects["patches"])
        np.testing.assert_array_equal(again.relative_risk(at), release.relative_risk(at))
        assert again.estimator.to_dict() == release.estimator.to_dict()
        renewed = again.infer(3)
        assert renewed.effects["patches"].mean() == pytest.approx(release.effects["patches"].mean(), abs=0.1)

    @pytest.mark.parametrize(
        "change",
        [
            {"offset": None},
            {"offset": "0" * 64},
            {"covariates": None},
            {"note": "secret"},
        ],
    )
    def test_forged_statements(self, folder, change, tmp_path):
        cert = json.loads((folder / "certificate.json").read_text())
        cert["parameters"]["estimator"] |= change
        assert not self.verified(folder, cert, tmp_path)

    @pytest.mark.parametrize("name", ["offset", "covariates"])
    def test_left_out(self, folder, name, tmp_path):
        cert = json.loads((folder / "certificate.json").read_text())
        del cert["parameters"]["estimator"][name]
        assert not self.verified(folder, cert, tmp_path)

    def test_an_unchanged_copy_holds(self, folder, tmp_path):
        assert self.verified(folder, json.loads((folder / "certificate.json").read_text()), tmp_path)

    def verified(self, folder, cert, place):
        for path in folder.iterdir():
            (place / path.name).write_bytes(path.read_bytes())
        cert["content_hash"] = certificate.content_hash(cert)
        (place / "certificate.json").write_text(plain_text(cert))
        return not wrong(place)


def holed(xy):
    return np.where(xy[:, 0] < 300, np.nan, xy[:, 0])


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"offset": [[1.0, 2.0]]}, r"^offset: needs an Offset"),
        ({"offset": Offset.of(RasterLayer([[1.0, 1.0]], (0, 0, 500, 1000)))}, r"^offset: .*50 % of the window has no"),
        ({"offset": Offset.from_grid([[1.0]], (5000, 0, 6000, 1000), fill=0)}, r"^offset: its integral over"),
        ({"covariates": {"holed": holed}}, r"^covariates: 'holed': 30 % of the window has no value"),
        ({"covariates": {"flat": lambda xy: np.ones(len(xy))}}, r"^covariates: 'flat' is the same everywhere"),
        ({"covariates": {}}, r"^covariates: needs 1 to 20 layers"),
    ],
)
def test_refused_before_the_budget(settings, rule, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.json", epsilon=2.0, delta=0.0, relation=NEAR)
    with pytest.raises(InputError, match=rule):
        MarkedSynthesizer(1.0, marks=MARKS, relation=NEAR, spacing=250.0, **settings).release(
            original(60), ledger=ledger
        )
    assert not ledger.releases
    with pytest.raises(InputError, match=rule):
        MarkedSynthesizer(1.0, marks=MARKS, relation=NEAR, spacing=250.0, **settings).check(SQUARE, n=60)


@pytest.mark.slow
def test_along_streets():
    people = Offset.from_grid([[1.0, 4.0]], STREETS.bounds, fill=0)
    rng = np.random.default_rng(1)
    edge = rng.choice(len(STREETS.edges), 20_000, p=STREETS.lengths / STREETS.lengths.sum())
    at = np.column_stack([edge, rng.random(20_000) * STREETS.lengths[edge]])
    value = people(STREETS.coordinates(at))
    at = at[rng.random(20_000) < value / 4][:1500]
    kinds = np.where(rng.random(len(at)) < 0.5, "theft", "burglary")
    pattern = PointPattern.at(at, STREETS, {"offence": kinds})
    found = MarkedSynthesizer(
        20.0, marks=Marks(KINDS), relation=ALONE, offset=people, covariates={"north": lambda xy: xy[:, 1]}
    ).release(pattern, 1)
    assert found.intensity.total == pytest.approx(len(at), rel=1e-3)
    assert abs(found.effects["north"].mean()) < 5 * found.effects["north"].std() + 0.05
    risks = found.relative_risk(STREETS.coordinates(at))
    assert risks.mean() == pytest.approx(1, abs=0.1)


@pytest.mark.slow
def test_on_the_command_line(tmp_path):
    folder = {"type": "FeatureCollection", "features": []}
    for polygon, people in zip(HALVES.polygons, (600.0, 1200.0), strict=True):
        geometry = json.loads(shapely.to_geojson(polygon))
        folder["features"].append({"type": "Feature", "properties": {"people": people}, "geometry": geometry})
    areas = tmp_path / "areas.geojson"
    areas.write_text(json.dumps(folder | {"crs": {"type": "name", "properties": {"name": "EPSG:27700"}}}))
    words = ["check", "--method", "marked", "--types", "offence=burglary,theft", "--no-protect-types", "--epsilon", 1]
    words += ["--alpha", 25, "--n", 300, "--window", "0,0,1000,1000", "--crs", "EPSG:27700", "--json"]
    words += ["--offset-file", areas, "--offset-column", "people", "--offset-as", "counts"]
    stated = json.loads(run(*words, "--covariates", f"people={areas}:people").stdout)
    assert stated["guarantee"]["theorem"] == "marked-tents"
    refused = run(*words, "--offset-fill", 3, code=2)
    assert "fill" in refused.stderr or "fill" in refused.stdout


@pytest.mark.slow
def test_effects_of_each_type(tmp_path):
    """Burglaries follow the patches and thefts avoid them; one effect for both is near their average."""
    rng = np.random.default_rng(4)
    xy = rng.uniform(0, 1000, (100_000, 2))
    value, parts = PATCHES(xy), []
    for effect, n in ((0.8, 1500), (-0.6, 1500)):
        weight = np.exp(effect * value)
        parts.append(xy[rng.choice(len(xy), n, replace=False, p=weight / weight.sum())])
    kinds = np.repeat(KINDS.values, 1500)
    settings = MarkedSynthesizer(
        10.0, marks=Marks(KINDS), relation=ALONE, spacing=70.0, covariates={"patches": PATCHES}
    )
    release = settings.release(PointPattern(np.concatenate(parts), SQUARE, {"offence": kinds}))
    assert abs(release.effects["patches"].mean()) < 0.4
    found = release.infer(1, by_type=True)
    assert list(found.effects) == ["patches, burglary", "patches, theft"]
    for (name, draws), effect in zip(found.effects.items(), (0.8, -0.6), strict=True):
        # Per standard deviation of the patches, which is near one; five posterior deviations.
        assert abs(draws.mean() - effect) < 5 * draws.std() + 0.1, name
        np.testing.assert_allclose(found.effects.per_unit(name), draws / found.estimator.covariates.sd[0])
    again = load_release(found.save(tmp_path / "by_type"))
    np.testing.assert_array_equal(again.effects["patches, theft"], found.effects["patches, theft"])
    assert verify(tmp_path / "by_type").holds


def test_effects_of_each_type_need_types():
    alone = MarkedSynthesizer(
        1.0, marks=Marks(times=MARKS.times), relation=AlphaNeighbours(25.0, time=1.0), spacing=250.0
    )
    model = alone.plan(SQUARE, n=300).estimator
    with pytest.raises(InputError, match=r"^by_type: the points have one type"):
        model.changed({"by_type": True}, None)

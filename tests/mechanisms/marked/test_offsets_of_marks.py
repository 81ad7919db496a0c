"""Offsets by type and by time: shares and intensities in closed form, the bound as it was, files, command line."""

import json

import numpy as np
import pytest
import shapely
from support.command_line import run
from support.seams import one_prior

from dpppsynth import AlphaNeighbours, MarkedSynthesizer, Marks, PointPattern, Times, Types, Window
from dpppsynth.contract.rehearsal import rehearse
from dpppsynth.contract.rules import planar_rules
from dpppsynth.core.errors import InputError, ReleaseBlocked
from dpppsynth.core.published_files import plain_text
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.mechanisms.marked.intensity import MarkedIntensity, MarkedMean, MarkedMesh
from dpppsynth.models import regular_triangulation
from dpppsynth.privacy import verify
from dpppsynth.release import certificate, load_release
from dpppsynth.spatial.marked_offset import MarkedOffset
from dpppsynth.spatial.offset import Offset

SQUARE = Window.rectangle(0, 0, 1000, 1000)
AGES = Types("age", ["child", "adult"])
DAY = Times.day("hour", hats=4)
ALONE = AlphaNeighbours(25.0, types="public")
# Children live in the west, three quarters of them; adults in the east, nine tenths.
CHILDREN = Offset.from_grid([[300.0, 100.0]], SQUARE.bounds, "counts")
ADULTS = Offset.from_grid([[60.0, 540.0]], SQUARE.bounds, "counts")
RASTER = Offset.from_grid(np.ones((40, 40)), SQUARE.bounds)
BY_AGE = {"child": CHILDREN, "adult": ADULTS}
WEST, EAST = np.array([[250.0, 500.0]]), np.array([[750.0, 500.0]])
MESH = regular_triangulation(SQUARE, shape=(6, 6))


@pytest.fixture(autouse=True, scope="module")
def one_size_of_each_part():
    """Fields are inferred with one prior and few draws: what is averaged over changes nothing here."""
    with one_prior(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpppsynth.inference.sparse_inference.MOST_DRAWS", 100)
        yield


def people(n=1200, seed=1):
    """Points that follow children and adults, two children for each adult: the risk of children is the higher."""
    rng = np.random.default_rng(seed)
    child = rng.random(n) < 2 / 3
    west = rng.random(n) < np.where(child, 0.75, 0.1)
    xy = np.column_stack([rng.uniform(0, 500, n) + 500 * ~west, rng.uniform(0, 1000, n)])
    return PointPattern(xy, SQUARE, {"age": np.where(child, "child", "adult")})


def flat(offset, marks, values=0.0, mesh=MESH):
    """Intensity that is the offset times exp of a number, or of one for each type."""
    grid = MarkedMesh(mesh, marks, MarkedOffset.of(offset, marks))
    return MarkedIntensity(grid, np.zeros(grid.shape) + np.reshape(values, (-1, 1, 1)))


class TestClosedForms:
    def test_shares_by_type_are_those_of_the_people(self):
        """Levels of 2 and 1: 2 x 400 points of children, 600 of adults, each where their own live."""
        found = flat(BY_AGE, Marks(AGES), np.log([2.0, 1.0]))
        np.testing.assert_allclose(found.masses.sum(axis=(1, 2)), [800.0, 600.0], rtol=1e-9)
        np.testing.assert_allclose(found.grid.measure.reshape(2, -1).sum(axis=1), [400.0, 600.0], rtol=1e-9)
        for kind, level, west in (("child", 2.0, 300.0), ("adult", 1.0, 60.0)):
            assert found(WEST, type=kind)[0] == pytest.approx(level * west / 500_000)
        assert found(EAST)[0] == pytest.approx((2 * 100 + 540) / 500_000)

    def test_with_times_every_type_keeps_its_own_at_all_hours(self):
        found = flat(BY_AGE, Marks(AGES, DAY))
        assert found.total == pytest.approx(24 * 1000)
        assert found(WEST, time=13.0, type="adult")[0] == pytest.approx(60 / 500_000)
        assert found(WEST, type="adult")[0] == pytest.approx(24 * 60 / 500_000)

    def test_around_a_clock_the_last_holds_until_the_first(self):
        """From 6 to 18 o'clock in the east, 18 whole hours of 24 for hats every 6 hours: nights are the west's."""
        found = flat({6: ADULTS, 18.0: CHILDREN}, Marks(times=DAY))
        assert [found(WEST, time=each)[0] * 500_000 for each in (0.0, 5.9, 6.1, 17.9, 18.1)] == pytest.approx(
            [300, 300, 60, 60, 300]
        )
        assert found.total == pytest.approx(12 * 600 + 12 * 400)
        assert found(EAST)[0] * 500_000 == pytest.approx(12 * 540 + 12 * 100)

    def test_within_a_while_it_is_the_average(self):
        """At 3 o'clock, in the middle of the while from 0 to 6, the offset changes: halves of both, and all of one."""
        found = flat({3: CHILDREN, 12: ADULTS}, Marks(times=DAY))
        assert found(WEST, time=1.0)[0] * 500_000 == pytest.approx((300 + 60) / 2)
        assert found(WEST, time=7.0)[0] * 500_000 == pytest.approx(300)
        assert found.total == pytest.approx(9 * 400 + 15 * 600)

    def test_years(self):
        """Hats at the beginnings of the years, within a day: the second year has the people of its own."""
        years = Times.between("when", "2021-01-01", "2023-01-01", hats=3)
        found = flat({"2022-01-01": ADULTS, "2021-01-01": CHILDREN}, Marks(times=years))
        assert found.grid.offset.instants == (0.0, 365.0)
        assert found(WEST, time=100.0)[0] * 500_000 == pytest.approx(300)
        assert found(WEST, time=500.0)[0] * 500_000 == pytest.approx(60)
        np.testing.assert_allclose(found.grid.measure.reshape(3, -1).sum(axis=1), 365 * np.array([200, 500, 300]))

    @pytest.mark.parametrize("offset", [BY_AGE, {0: CHILDREN, 9: ADULTS}], ids=["types", "times"])
    def test_one_rule_of_integration_for_all(self, offset):
        """Measure, rule, totals and the density at places agree where the field varies as well."""
        grid = MarkedMesh(MESH, Marks(AGES, DAY), MarkedOffset.of(offset, Marks(AGES, DAY)))
        basis, weight = grid.rule
        np.testing.assert_allclose(basis.T @ weight, grid.measure, rtol=1e-9, atol=1e-6)
        found = MarkedIntensity(grid, np.random.default_rng(2).normal(0, 0.5, grid.shape))
        ticks = np.linspace(5, 995, 100)
        xy = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
        assert found(xy).mean() * 1e6 == pytest.approx(found.total, rel=3e-3)
        hours = np.mean([found(xy, time=each, type="child").mean() for each in np.arange(0.25, 24, 0.5)]) * 24e6
        assert hours == pytest.approx(found.masses[0].sum(), rel=3e-3)

    def test_periods_take_the_offset_of_their_own_hours(self):
        """From 9 to 15 o'clock, three hours of each offset; averages over draws look places up once, with the same."""
        offset = {6: ADULTS, 12: CHILDREN}
        found = flat(offset, Marks(times=DAY), [np.log(2.0)])
        assert found(WEST, during=(9.0, 15.0))[0] * 500_000 == pytest.approx(2 * 3 * (60 + 300))
        assert found(EAST, during=(6.0, 12.0))[0] * 500_000 == pytest.approx(2 * 6 * 540)
        fields = np.random.default_rng(5).normal(0, 0.5, (3, found.log_values.size)).astype(np.float32)
        mean, xy = MarkedMean(found.grid, fields), np.concatenate([WEST, EAST])
        for asked in ({}, {"time": [7.0, 13.0]}, {"during": (5.0, 14.0)}):
            assert mean(xy, **asked) == pytest.approx(np.mean([each(xy, **asked) for each in mean.draws()], axis=0))

    def test_points_are_drawn_in_proportion(self):
        """20 000 of them: children in the west 600 of 1400; false alarms below one in a million by five deviations."""
        n = 20_000
        found = flat(BY_AGE, Marks(AGES, DAY), np.log([2.0, 1.0]))
        xy, kind, _ = found.draw_points(n, np.random.default_rng(3))
        west = xy[:, 0] < 500
        for each, side, share in ((0, west, 600), (0, ~west, 200), (1, west, 60), (1, ~west, 540)):
            assert ((kind == each) & side).mean() == pytest.approx(share / 1400, abs=5 * 0.5 / n**0.5)
        found = flat({0: CHILDREN, 12: ADULTS}, Marks(times=DAY))
        xy, _, hour = found.draw_points(n, np.random.default_rng(4))
        assert ((hour < 12) & (xy[:, 0] < 500)).mean() == pytest.approx(300 / 1000, abs=5 * 0.5 / n**0.5)
        assert ((hour > 12) & (xy[:, 0] < 500)).mean() == pytest.approx(60 / 1000, abs=5 * 0.5 / n**0.5)

    @pytest.mark.parametrize(
        ("given", "first"),
        [
            (BY_AGE, lambda marks: np.array(marks["age"]) == "child"),
            ({0: CHILDREN, 12: ADULTS}, lambda marks: marks["hour"] < 12),
        ],
    )
    def test_rehearsals_meet_the_people_of_each_type_or_time(self, given, first, monkeypatch):
        """400 of 1000 are children, or out in the morning; by five deviations, as above."""
        monkeypatch.setattr(planar_rules, "fine_mesh", lambda _: MESH)
        met = []

        def blocked(pattern, *_, **__):
            met.append(pattern)
            raise ReleaseBlocked

        alone, n = AlphaNeighbours(25.0, types="public", time=1.0, time_unit="hours"), 4000
        plan = MarkedSynthesizer(1.0, marks=Marks(AGES, DAY), relation=alone, offset=given).plan(SQUARE, n=n)
        rehearse("marked", plan.statistic, blocked, np.random.default_rng(3), offset=plan.estimator.offset)
        one, west = first(met[0].marks), met[0].xy[:, 0] < 500
        for each, share in ((one & west, 0.3), (one & ~west, 0.1), (~one & west, 0.06), (~one & ~west, 0.54)):
            assert each.mean() == pytest.approx(share, abs=5 * 0.5 / n**0.5)

    def test_along_streets(self):
        street = LinearNetwork([[0, 500], [1000, 500]], [[0, 1]])
        people = {name: each.on(street) for name, each in BY_AGE.items()}
        found = flat(people, Marks(AGES), mesh=network_mesh(street, 100.0))
        np.testing.assert_allclose(found.masses.sum(axis=(1, 2)), [400.0, 600.0], rtol=1e-9)
        assert found(WEST, type="adult")[0] == pytest.approx(60 / 500)


@pytest.fixture(scope="module")
def release():
    settings = MarkedSynthesizer(
        50.0, marks=Marks(AGES), relation=ALONE, mechanism="tents", spacing=250.0, offset=BY_AGE
    )
    return settings.release(people(), 2)


class TestReleases:
    def test_the_statistic_and_its_bound_stay_the_same(self):
        plain, own = (
            MarkedSynthesizer(1.0, marks=Marks(AGES), relation=ALONE, spacing=250.0, offset=each).plan(SQUARE, n=300)
            for each in (None, BY_AGE)
        )
        assert plain.statistic.parameters() == own.statistic.parameters()
        assert plain.statistic.guarantee.to_dict() == own.statistic.guarantee.to_dict()

    @pytest.mark.parametrize("mechanism", ["tents", "moved"])
    def test_each_type_steps_as_its_people_do(self, mechanism):
        """At the border of west and east a third for children, nine times for adults; the field has no step."""
        spacing = {"spacing": 250.0} if mechanism == "tents" else {}
        settings = MarkedSynthesizer(
            50.0, marks=Marks(AGES), relation=ALONE, mechanism=mechanism, offset=BY_AGE, **spacing
        )
        found = settings.release(people(), 2)
        border = np.array([[500 - 1e-6, 500.0], [500 + 1e-6, 500.0]])
        for kind, ratio in (("child", 1 / 3), ("adult", 9.0)):
            west, east = found.intensity(border, type=kind)
            assert east / west == pytest.approx(ratio, rel=1e-3)
        assert found.intensity.total == pytest.approx(1200, rel=1e-3)

    def test_risk_is_for_each_of_the_people(self, release):
        """1 on average over those of a type, draw by draw; even, as points follow them."""
        ticks = np.linspace(12.5, 987.5, 40)
        xy = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
        for kind, own in BY_AGE.items():
            found = release.relative_risk(xy, type=kind)
            assert found @ own(xy) / own(xy).sum() == pytest.approx(1, abs=0.02)
            low, high = np.quantile(found, [0.02, 0.98])
            assert 0.5 < low < high < 2
        # Of all together it is higher in the west, where children live: .75 x 800 + .1 x 400 points of 360 people.
        west = xy[:, 0] < 500
        every = release.relative_risk(xy)
        assert every[west].mean() == pytest.approx(640 / 360 / 1.2, rel=0.12)
        assert every[~west].mean() == pytest.approx(560 / 640 / 1.2, rel=0.12)

    @pytest.mark.parametrize("side", [1, 40], ids=["polygons", "raster"])
    @pytest.mark.parametrize("by", ["types", "times"])
    def test_everything_comes_back(self, side, by, tmp_path):
        halves = np.repeat(np.repeat([[3.0, 1.0]], side, axis=0), side, axis=1)
        own = [Offset.from_grid(each, SQUARE.bounds, source="Census") for each in (halves, halves[:, ::-1] + 0.5)]
        marks = Marks(AGES, Times.day("hour", hats=3))
        offset = dict(zip(AGES.values if by == "types" else (0.0, 8.0), own, strict=True))
        near = AlphaNeighbours(25.0, types="public", time="public")
        pattern = people(200)
        pattern = PointPattern(pattern.xy, SQUARE, {**pattern.marks, "hour": np.arange(200) % 24.0})
        settings = MarkedSynthesizer(2.0, marks=marks, relation=near, mechanism="tents", spacing=500.0, offset=offset)
        release = settings.release(pattern, 2)
        folder = release.save(tmp_path / "out", rng=1)
        assert {each.name for each in verify(folder).checks if not each.holds} <= {"randomness"}
        again = load_release(folder)
        assert again.estimator.to_dict() == release.estimator.to_dict()
        assert again.estimator.offset.source == "Census"
        at = np.vstack([WEST, EAST])
        for chosen in ({"type": "adult"}, {"time": 5.0}, {"time": 9.0, "type": "child"}):
            np.testing.assert_array_equal(again.intensity(at, **chosen), release.intensity(at, **chosen))

    def test_a_forged_file_is_found(self, release, tmp_path):
        """Layers of types changed for one another keep every number, and are others; one type left out is none."""
        folder = release.save(tmp_path / "out", rng=1)
        text = json.loads((folder / "offset.geojson").read_text())
        swap = {"child": "adult", "adult": "child"}
        swapped = [
            {**each, "properties": {**each["properties"], "type": swap[each["properties"]["type"]]}}
            for each in text["features"]
        ]
        fewer = [each for each in text["features"] if each["properties"]["type"] == "child"]
        noted = [{**each, "properties": {**each["properties"], "note": "x"}} for each in text["features"]]
        assert not self.wrong(folder)
        for features in (swapped, fewer, noted):
            (folder / "offset.geojson").write_text(plain_text({**text, "features": features}))
            cert = json.loads((folder / "certificate.json").read_text())
            cert["files"]["offset.geojson"] = certificate.file_hash(folder / "offset.geojson")
            cert["content_hash"] = certificate.content_hash(cert)
            (folder / "certificate.json").write_text(plain_text(cert))
            assert self.wrong(folder) == {"files"}

    def wrong(self, folder):
        return {each.name for each in verify(folder).checks if not each.holds} - {"randomness"}


@pytest.mark.parametrize(
    ("offset", "rule"),
    [
        ({"child": CHILDREN}, r"^offset: needs one for each type, 'child', 'adult'"),
        ({"child": CHILDREN, "adult": ADULTS, "old": ADULTS}, r"^offset: needs one for each type"),
        ({"child": CHILDREN, "adult": [[1.0]]}, r"^offset: each of them needs to be an Offset, got list"),
        ({}, r"^offset: "),
        ({"child": CHILDREN, "adult": RASTER}, r"^offset: rasters of several"),
        ({0: CHILDREN, 24: ADULTS}, r"^offset: instants must lie in the range of times, from 0 up to 24"),
        ({0: CHILDREN, "0": ADULTS}, r"^offset: instants must differ"),
        ({"2020-01-01": CHILDREN}, r"^offset: an instant must be a number in hours, or a type"),
        ({0: CHILDREN, np.nan: ADULTS}, r"^offset: instants must"),
    ],
)
def test_refused(offset, rule):
    with pytest.raises(InputError, match=rule):
        MarkedSynthesizer(1.0, marks=Marks(AGES, DAY), offset=offset)


def test_refused_without_times_or_from_later_on():
    with pytest.raises(InputError, match=r"^offset: needs one for each type"):
        MarkedSynthesizer(1.0, marks=Marks(AGES), offset={0: CHILDREN})
    years = Marks(times=Times.between("when", "2021-01-01", "2023-01-01"))
    with pytest.raises(InputError, match=r"^offset: the first must hold from the beginning of the range"):
        MarkedSynthesizer(1.0, marks=years, offset={"2022-01-01": CHILDREN})


def test_refused_where_a_type_has_nobody():
    nobody = Offset([shapely.box(5000, 0, 6000, 1000)], [1.0])
    settings = MarkedSynthesizer(
        1.0, marks=Marks(AGES), relation=ALONE, spacing=250.0, offset={"child": CHILDREN, "adult": nobody}
    )
    with pytest.raises(InputError, match=r"^offset: its integral over the window must be positive"):
        settings.check(SQUARE, n=300)


def test_from_the_command_line(tmp_path):
    wards = {
        "type": "FeatureCollection",
        "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::27700"}},
        "features": [
            {
                "type": "Feature",
                "properties": {"kids": kids, "grown": grown},
                "geometry": json.loads(shapely.to_geojson(shapely.box(x, 2e5, x + 500, 201_000))),
            }
            for x, kids, grown in ((5e5, 300, 60), (500_500, 100, 540))
        ],
    }
    file = tmp_path / "wards.geojson"
    file.write_text(json.dumps(wards))
    points = people(300)
    rows = [f"{x},{y},{age}" for (x, y), age in zip(points.xy + np.array([5e5, 2e5]), points.marks["age"], strict=True)]
    (tmp_path / "cases.csv").write_text("\n".join(["x,y,age", *rows]))
    given = ["--method", "marked", "--mechanism", "marked-tents", "--types", "age=child,adult", "--no-protect-types"]
    given += ["--epsilon", "5", "--alpha", "25"]
    given += ["--window", "500000,200000,501000,201000", "--crs", "EPSG:27700", "--spacing", "500", "--n", "300"]
    by = ["--offset-by", f"child={file}:kids,adult={file}:grown", "--offset-as", "counts", "--offset-source", "Census"]
    out = tmp_path / "out"
    run("synthesize", tmp_path / "cases.csv", *given, *by, "--out", out)
    again = load_release(out)
    np.testing.assert_allclose(again.estimator.grid.measure.reshape(2, -1).sum(axis=1), [400.0, 600.0], rtol=1e-9)
    assert again.estimator.offset.source == "Census"
    for wrong in ([*by, "--offset-file", str(file)], ["--offset-by", "child"], ["--offset-by", f"child={file}:kids"]):
        refused = run("check", *given, *wrong, code=None)
        assert refused.exit_code != 0
        assert "offset" in refused.output

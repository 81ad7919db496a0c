"""Points moved by planar Laplace noise: the bound, what is released, and what custodians get wrong."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import shapely
from support.cases import examples
from support.forgery import failed, reseal
from support.seams import recorded

from dpppsynth import Ledger, PlanarLaplaceSynthesizer, PointRelease, load_release
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.filters import cartesian_filter
from dpppsynth.io import write_pattern
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.mechanisms.planar_laplace.statistic import MovedPoints
from dpppsynth.privacy import (
    AddRemove,
    AlphaNeighbours,
    ApproximateDP,
    PureDP,
    ReplaceOne,
    moved_delta,
    moved_points,
    planar_laplace_delta,
    smallest_move_bound,
    verify,
)
from dpppsynth.privacy.truncated.lattice_noise import move
from dpppsynth.release import certificate
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

# A plane, where lengths on the map are true ones.
PLANE = 'LOCAL_CS["plane",UNIT["metre",1]]'
WINDOW = Window.rectangle(0, 0, 1000, 1000, PLANE)
NOTCHED = Window.polygon(shapely.box(0, 0, 1000, 1000).difference(shapely.box(200, 300, 1000, 340)), PLANE)
DISK = Window.polygon(shapely.Point(500, 500).buffer(450), PLANE)


def pattern(n, window=WINDOW, seed=1):
    xy = np.random.default_rng(seed).uniform(0, 1000, (9 * n, 2))
    return PointPattern(xy[window.contains(xy)][:n], window)


class TestGuarantee:
    def test_without_a_bound_is_pure_and_linear_in_the_distance(self):
        bound = PlanarLaplaceSynthesizer(0.02).check(WINDOW, n=50)
        assert isinstance(bound.profile, PureDP)
        assert 0.02 * (1 - 1e-15) <= bound.epsilon() <= 0.02
        for distance, epsilon in bound.by_distance:
            assert epsilon == pytest.approx(0.02 * distance, rel=1e-12)
        assert bound.by_distance[-1][0] == pytest.approx(WINDOW.diameter)

    def test_epsilon_speaks_of_alpha(self):
        per_metre, per_alpha = PlanarLaplaceSynthesizer(0.01), PlanarLaplaceSynthesizer(1.0, alpha=100.0)
        one, other = (s.plan(WINDOW, n=50).statistic.rate for s in (per_metre, per_alpha))
        assert one == pytest.approx(other, rel=1e-15)

    def test_with_a_bound_is_the_exposed_disk(self):
        plan = PlanarLaplaceSynthesizer(1.0, alpha=25.0, max_error=400.0).plan(WINDOW, n=50).statistic
        profile = plan.guarantee.profile
        # The noise keeps a little below max_error, for the sake of rounding.
        assert 399.999 < plan.bound < 400.0
        assert profile == ApproximateDP(profile.level, planar_laplace_delta(plan.rate, plan.bound, 25.0) * (1 + 1e-12))
        assert 1 - 1e-15 <= profile.level <= 1
        assert profile.slack == pytest.approx(planar_laplace_delta(1 / 25, 400.0, 25.0), rel=1e-4)
        assert all(distance <= 25.0 * (1 + 1e-12) for distance, _ in plan.guarantee.by_distance)

    def test_points_of_one_person_share_it(self):
        relation = AlphaNeighbours(25.0, max_points_per_person=4)
        plan = PlanarLaplaceSynthesizer(1.0, relation=relation, max_error=3000.0).plan(WINDOW, n=50).statistic
        assert plan.rate == pytest.approx(1.0 / 100, rel=1e-14)
        one = planar_laplace_delta(0.01, plan.bound, 25.0)
        assert plan.guarantee.profile.slack == pytest.approx(1 - (1 - one) ** 4, rel=1e-9)
        assert plan.guarantee.profile.slack >= 1 - (1 - one) ** 4

    def test_delta_gives_the_smallest_bound(self):
        plan = PlanarLaplaceSynthesizer(1.0, delta=1e-6, alpha=25.0).plan(WINDOW, n=50).statistic
        assert plan.guarantee.profile.slack <= 1e-6
        less = moved_delta(plan.relation, rate=plan.rate, bound=plan.bound * (1 - 1e-5))
        assert less > 1e-6
        assert smallest_move_bound(plan.relation, rate=plan.rate, delta=1e-6) <= plan.bound

    @pytest.mark.parametrize("bound", [math.nan, -1.0, 0.0, True, "1", None], ids=str)
    def test_refuses_bounds(self, bound):
        with pytest.raises(InputError):
            moved_points(AlphaNeighbours(1.0), rate=1.0, bound=bound, farthest=10.0)


class TestMoves:
    @pytest.mark.parametrize("window", [WINDOW, DISK, NOTCHED], ids=["rectangle", "convex", "notched"])
    def test_no_point_is_moved_further(self, window):
        """As a track, whose rows can be compared; half of the points start beside the border."""
        points = pattern(300, window)
        near = shapely.get_coordinates(shapely.line_interpolate_point(window.geometry.exterior, np.arange(300) * 9.0))
        near = near[window.contains(near)]
        xy = np.concatenate([points.xy, near])
        relation = AlphaNeighbours(0.05, max_points_per_person=len(xy))
        plan = MovedPoints(window, relation, len(xy), 1.0, 0.1, 90.0, track=True)
        release = PointRelease("planar-laplace", plan.measure(PointPattern(xy, window)))
        moved = np.hypot(*(release.raw - xy).T)
        assert 60 < moved.max() <= 90.0
        placed = np.hypot(*(release.pattern.xy - xy).T)
        assert not window.contains(release.raw).all()
        assert placed.max() <= release.error_bound == (180.0 if window is NOTCHED else 90.0)
        if window is NOTCHED:
            # Within the bound itself this cannot be kept: the notch is in the way.
            assert window.contains(release.pattern.xy).all()

    def test_rows_are_shuffled(self):
        """With noise far below the distances between points, rows in their old order would show. False alarm 1/20!."""
        points = PointPattern(np.column_stack([np.arange(20) * 50.0 + 25, np.full(20, 500.0)]), WINDOW)
        release = PlanarLaplaceSynthesizer(1.0, alpha=0.05).release(points)
        assert len(release.pattern) == 20
        nearest = np.argmin(np.abs(release.pattern.xy[:, :1] - points.xy[:, 0]), axis=1)
        assert sorted(nearest) == list(range(20))
        assert list(nearest) != list(range(20))

    def test_released_points_carry_neither_marks_nor_old_coordinates(self, tmp_path):
        points = pattern(40)
        release = PlanarLaplaceSynthesizer(0.05).release(points)
        assert release.pattern.marks is None
        assert not set(release.pattern.xy.ravel()) & set(points.xy.ravel())
        # On the public grid of the window, whatever digits the data had.
        assert release.raw / WINDOW.resolution == pytest.approx(np.round(release.raw / WINDOW.resolution), abs=1e-6)
        with pytest.raises(InputError, match=r"^pattern: marks are not protected"):
            PlanarLaplaceSynthesizer(0.05).release(PointPattern(points.xy, WINDOW, {"age": np.arange(40)}))

    def test_saved_and_opened(self, tmp_path):
        release = PlanarLaplaceSynthesizer(1.0, alpha=25.0, max_error=500.0).release(pattern(40, DISK))
        folder = release.save(tmp_path / "public")
        assert sorted(p.name for p in folder.iterdir()) == [
            "certificate.json",
            "domain.geojson",
            "statistic.json",
            "synthetic_000.geojson",
        ]
        again = load_release(folder)
        assert isinstance(again, PointRelease)
        assert (again.pattern.xy == release.pattern.xy).all()
        assert (again.raw == release.raw).all()
        assert (again.max_error, again.patterns[0]) == (500.0, again.pattern)

    def test_a_ledger_knows_the_saved_release(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.json", epsilon=5.0, delta=1e-4, relation=AlphaNeighbours(25.0))
        moved = PlanarLaplaceSynthesizer(1.0, alpha=25.0, max_error=500.0)
        release = moved.release(pattern(40), ledger=ledger)
        folder = release.save(tmp_path / "public")
        assert ledger.releases[-1].certificate == certificate.statement_hash(certificate.read(folder))

    def test_by_level(self, tmp_path):
        points = PointPattern(pattern(60).xy, WINDOW, {"sex": np.repeat(["f", "m"], 30)})
        moved = PlanarLaplaceSynthesizer(1.0, alpha=25.0, max_error=500.0)
        release = moved.release_by(points, by="sex", levels=["f", "m"])
        [marked] = release.patterns
        assert sorted(marked.marks["sex"]) == ["f"] * 30 + ["m"] * 30
        assert verify(release.save(tmp_path / "public")).holds
        assert (load_release(tmp_path / "public").patterns[0].xy == marked.xy).all()


class TestTracks:
    def test_keep_their_order_and_can_be_filtered(self, tmp_path):
        steps = np.random.default_rng(3).normal(0, 2.0, (60, 2))
        points = PointPattern(500 + np.cumsum(steps, axis=0), WINDOW)
        relation = AlphaNeighbours(10.0, max_points_per_person=60)
        walk = PlanarLaplaceSynthesizer(60.0, delta=1e-3, relation=relation, track=True)
        release = walk.release(points, rng=4)
        assert release.max_error < 300
        assert np.hypot(*(release.raw - points.xy).T).max() <= release.max_error
        assert release.filtered.shape == (60, 2)
        error = np.hypot(*(release.filtered - points.xy).T)
        assert error.max() <= release.filter(rng=0).bound <= 2 * release.max_error + 1e-2
        assert (error**2).mean() < 0.5 * (np.hypot(*(release.raw - points.xy).T) ** 2).mean()
        again = load_release(release.save(tmp_path / "public"))
        assert (again.filtered == release.filtered).all()
        plan = release.statistic.definition
        law = {"epsilon": 60.0 / (60 * 10), "bound": plan.bound + WINDOW.resolution}
        settings = {"step": 2.0, "particles": 200, "resample": False, "rng": 5}
        found = cartesian_filter(release.raw, **law, **settings).estimate
        assert release.filter(**settings).estimate == pytest.approx(found, abs=1e-6)
        assert (found != release.filtered).any()

    def test_are_one_persons(self):
        with pytest.raises(InputError, match=r"^track: .* at least, max_points_per_person=60 of AlphaNeighbours\(10, "):
            PlanarLaplaceSynthesizer(1.0, relation=AlphaNeighbours(10.0), track=True).plan(WINDOW, n=60)

    def test_are_not_released_by_levels(self, tmp_path):
        """A person's track in every level would be paid for in each of them, and hidden by none."""
        ledger = Ledger.create(tmp_path / "ledger.json", epsilon=50.0, delta=1e-4, alpha=20.0)
        relation = AlphaNeighbours(20.0, max_points_per_person=15)
        walk = PlanarLaplaceSynthesizer(5.0, relation=relation, track=True)
        points = PointPattern(pattern(30).xy, WINDOW, {"m": np.arange(30) % 2})
        with pytest.raises(InputError, match=r"^track: one person's points are released once"):
            walk.release_by(points, by="m", levels=[0, 1], ledger=ledger)
        with pytest.raises(InputError, match=r"^track: one person's points are released once"):
            walk.plan_by(WINDOW, by="m", levels=[0, 1], n={0: 15, 1: 15})
        assert not ledger.releases
        # Nor does a certificate that was put together by hand hold.
        folder = replace(walk, track=False).release_by(points, by="m", levels=[0, 1]).save(tmp_path / "public")
        assert verify(folder).holds
        cert = certificate.read(folder)
        for part in cert["parameters"]["strata"]:
            part["parameters"]["track"] = True
        reseal(folder, cert)
        assert not verify(folder).holds

    def test_other_releases_have_no_order_to_follow(self):
        release = PlanarLaplaceSynthesizer(0.05).release(pattern(10))
        for filtered in (lambda: release.filtered, lambda: release.filter(rng=1)):
            with pytest.raises(InputError, match=r"^filter: the rows of this release are in random order"):
                filtered()


class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"epsilon": 0.0}, r"^epsilon: must be a positive finite number"),
            ({"epsilon": 1.0, "alpha": -1.0}, r"^alpha: must be a positive finite number"),
            ({"epsilon": 1.0, "max_error": 0.0}, r"^max_error: must be a positive finite number"),
            ({"epsilon": 1.0, "max_error": math.inf}, r"^max_error: must be a positive finite number"),
            ({"epsilon": 1.0, "max_error": 5.0, "delta": 0}, r"^delta: it cannot be 0 where max_error is given: an e"),
            ({"epsilon": 1.0, "delta": 1.0}, r"^delta: must lie in"),
            ({"epsilon": 1.0, "track": 1}, r"^track: must be True or False"),
            ({"epsilon": 1.0, "relation": ReplaceOne()}, r"^relation: needs a AlphaNeighbours"),
            ({"epsilon": 1.0, "relation": AddRemove()}, r"^relation: needs a AlphaNeighbours"),
            ({"epsilon": 1.0, "alpha": 5.0, "relation": AlphaNeighbours(6.0)}, r"^relation: it contradicts alpha"),
        ],
        ids=str,
    )
    def test_of_arguments(self, given, message):
        with pytest.raises(InputError, match=message):
            PlanarLaplaceSynthesizer(**given)

    def test_of_bounds_that_cost_too_much(self):
        with pytest.raises(InputError, match=r"^max_error: a move of at most 100 metre costs .* such as \d+ for delta"):
            PlanarLaplaceSynthesizer(1.0, alpha=25.0, max_error=100.0).check(WINDOW, n=50)
        with pytest.raises(
            PrivacyCheckError, match=r"^delta: a move of at most 100 metre costs delta = .* more than 1e-06"
        ):
            PlanarLaplaceSynthesizer(1.0, delta=1e-6, alpha=25.0, max_error=100.0).check(WINDOW, n=50)
        with pytest.raises(InputError, match=r"^max_error: must be well above the public grid"):
            MovedPoints(WINDOW, AlphaNeighbours(1.0), 5, 1.0, 0.5, 1e-4)

    def test_of_networks(self):
        streets = LinearNetwork([[0.0, 0.0], [100.0, 0.0]], [[0, 1]])
        with pytest.raises(InputError, match=r"^domain: needs a Window, got LinearNetwork; points on a network"):
            PlanarLaplaceSynthesizer(1.0).check(streets, n=5)

    def test_of_windows_without_an_inner_part(self):
        needle = Window.polygon(shapely.Polygon([(0, 0), (1000, 0), (1000, 5)]))
        with pytest.raises(InputError, match=r"^window: it has a corner sharper than one degree"):
            PlanarLaplaceSynthesizer(1.0).check(needle, n=5)

    @pytest.mark.parametrize(
        ("change", "failing"),
        [
            ({"max_error": 480.0}, "bound"),
            ({"max_error": None}, "bound"),
            ({"epsilon": 0.9}, "bound"),
            ({"n": 39}, "statistic"),
        ],
        ids=str,
    )
    def test_of_certificates_that_promise_more(self, change, failing, tmp_path):
        """Edited and signed again, as a forger would."""
        release = PlanarLaplaceSynthesizer(1.0, alpha=25.0, max_error=500.0).release(pattern(40))
        folder = release.save(tmp_path / "public")
        cert = certificate.read(folder)
        cert["parameters"] |= change
        reseal(folder, cert)
        assert failing in failed(folder)

    def test_of_a_second_pattern_beside_the_one_paid_for(self, tmp_path):
        folder = PlanarLaplaceSynthesizer(0.05).release(pattern(40)).save(tmp_path / "public")
        (folder / "synthetic_001.geojson").write_bytes((folder / "synthetic_000.geojson").read_bytes())
        reseal(folder, certificate.read(folder), "synthetic_001.geojson")
        assert [check.name for check in verify(folder).checks if not check.holds] == ["statistic"]

    @pytest.mark.parametrize("by_level", [False, True], ids=["alone", "by level"])
    def test_of_other_points_in_the_place_of_the_moved_ones(self, by_level, tmp_path):
        """The file that a map shows must follow from what was drawn: the points as they were do not."""
        points = pattern(40, DISK)
        marked = PointPattern(points.xy, DISK, {"half": np.arange(40) // 20})
        moved = PlanarLaplaceSynthesizer(1.0, alpha=5.0)
        release = moved.release_by(marked, by="half", levels=[0, 1]) if by_level else moved.release(points)
        folder = release.save(tmp_path / "public")
        assert verify(folder).holds
        released = json.loads((folder / "synthetic_000.geojson").read_text())
        marks = {"half": [each["properties"]["half"] for each in released["features"]]} if by_level else None
        write_pattern(PointPattern(points.xy, DISK, marks), folder / "synthetic_000.geojson")
        reseal(folder, certificate.read(folder), "synthetic_000.geojson")
        assert [check.name for check in verify(folder).checks if not check.holds] == ["statistic"]

    def test_of_windows_and_budgets_whose_moves_have_no_room(self):
        """Before the data are touched: one point of the window could be moved, and another not."""
        far = Window.rectangle(2.0**50 * 1e-10 - 0.002, 0, 2.0**50 * 1e-10 + 0.002, 0.004)
        with pytest.raises(InputError, match=r"^window: it lies too far from the origin for its size"):
            PlanarLaplaceSynthesizer(1.0, alpha=1e-4).check(far, n=5)
        with pytest.raises(InputError, match=r"^epsilon: 1e-30 asks for moves far beyond the window"):
            PlanarLaplaceSynthesizer(1e-30).check(WINDOW, n=5)

    def test_of_a_bound_that_costs_too_much_comes_before_the_points_are_read(self):
        with pytest.raises(InputError, match=r"^max_error: a move of at most 100 metre costs"):
            PlanarLaplaceSynthesizer(1.0, alpha=25.0, max_error=100.0).ceiling(WINDOW)


@pytest.mark.parametrize("case", [case for case in examples("planar-laplace") if not case.example.levels], ids=str)
def test_points_are_moved_as_promised(case):
    """The rate and the bound that meet the points are those of the guarantee."""
    plan = case.known_plan.statistic
    with recorded() as seen:
        case.known_plan.release(case.patterns()[0])
    [(_, draw, _)] = seen
    k, alpha = plan.relation.max_points_per_person, plan.relation.alpha * plan.domain.scale_factor
    assert draw.func is move
    assert draw.keywords["epsilon"] * k * alpha == pytest.approx(case.synthesizer.epsilon, rel=1e-14)
    bound = draw.keywords["bound"]
    assert bound == math.inf if plan.max_error is None else bound < plan.max_error
    assert (plan.guarantee.profile.at > 0) == (bound < math.inf)

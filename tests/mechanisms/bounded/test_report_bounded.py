"""Reports on mechanisms with a hard bound on errors, and on points of the data that were moved."""

import html
import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import shapely

from dpppsynth import BoundedErrorSynthesizer, LaplaceSynthesizer, PlanarLaplaceSynthesizer, PointPattern, Window
from dpppsynth.cli import plot
from dpppsynth.contract import registry
from dpppsynth.contract.words import largest_error_plan
from dpppsynth.plotting import surfaces
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne, interpretation
from dpppsynth.privacy.interpretation import fraction
from dpppsynth.release import StratifiedRelease
from dpppsynth.reporting import render_report, report_pictures
from dpppsynth.reporting.promise import not_promised, promise, silent_beyond

# A plane, where lengths on the map are true ones.
PLANE = 'LOCAL_CS["plane",UNIT["metre",1]]'
SQUARE = Window.rectangle(0, 0, 1000, 1000, PLANE)
NOTCHED = Window.polygon(shapely.box(0, 0, 1000, 1000).difference(shapely.box(0, 0, 500, 500)), PLANE)
STORED = Path(__file__).parents[2] / "data" / "releases"


def counts(**options):
    given = {"epsilon": 1.0, "max_error": 40, "spacing": 250.0} | options
    relation = given.get("relation")
    size = {"n": 400} if relation is None or relation.n_is_public else {"expected_n": 400}
    return BoundedErrorSynthesizer(**given).plan(SQUARE, **size)


def moves(window=SQUARE, **options):
    return PlanarLaplaceSynthesizer(1.0, alpha=25.0, **options).plan(window, n=24)


def words(plan):
    return registry.mechanism(plan.mechanism).words


def errors(plan, by=None):
    return words(plan).errors(plan.statistic, by)


def shown(plan):
    return words(plan).shown(plan.statistic)


def price(plan, guarantee=None):
    return words(plan).costs(plan.statistic, guarantee or plan.guarantee)


def said(plan, domain=SQUARE):
    return promise(plan.guarantee, domain, plan.statistic.parameters(), price(plan))


class TestErrors:
    def test_of_counts(self):
        first, *rest = errors(counts())
        assert first == "No count is off by more than 40: larger noise was drawn again."
        assert "The intensity and the synthetic points have errors of their own." in " ".join(rest)
        assert "filter" not in " ".join(rest)
        assert "over the levels of month by" not in " ".join(rest)

    def test_under_a_kept_cap_the_bound_is_one_for_the_points_that_are_drawn(self):
        """Two of 1000 rows of one person count: the count of their cell lacks nearly all of them."""
        relation = ReplaceOne(2, user="user")
        plan = counts(relation=relation)
        first = errors(plan)[0]
        assert first.startswith("No count of the points that were drawn, at most 2 of each person, is off by more than")
        assert "of all points a count may lack any number" in first
        assert "of the points that are drawn, not of all points" in dict(plan.statistic.noise_rows())["largest error"]

    def test_filtered_series_have_twice_the_bound(self):
        told = errors(counts(), "month")[-1]
        assert told.endswith("over the levels of month may be off by up to 80.")

    def test_of_moves(self):
        told = errors(moves(max_error=500.0))
        assert told[0] == "No point was moved by more than 500 m: longer moves were drawn again."
        assert told[1:] == ["The points are in random order."]

    def test_a_hard_bound_is_rounded_upwards(self):
        """To the nearest six digits, 765.609 m, it would be below the largest move; and twice it below 1531.2180204."""
        plan = moves(NOTCHED, max_error=765.6090102)
        told = " ".join([*errors(plan), shown(plan)])
        assert "moved by more than 765.61 m:" in told
        assert told.count("1531.22 m") == 2
        relation = AlphaNeighbours(25.0, max_points_per_person=24)
        track = PlanarLaplaceSynthesizer(24.0, relation=relation, track=True, max_error=765.6090102)
        assert "off by up to 1531.22 m" in " ".join(errors(track.plan(SQUARE, n=24)))

    def test_of_levels_the_order_is_random_within_each(self):
        told = errors(moves(max_error=500.0), "month")
        assert told[-1] == "The points are in random order within each level of month."

    def test_of_levels_the_largest_error_is_told(self):
        """Their certificates may differ in it."""
        near, far, free = (
            SimpleNamespace(statistic=SimpleNamespace(definition=plan.statistic))
            for plan in (moves(max_error=500.0), moves(max_error=600.0), moves())
        )
        guarantee = moves().guarantee
        for other in (far, free):
            release = StratifiedRelease("month", {"1": near, "2": other}, guarantee)
            assert largest_error_plan(release.plans) is other.statistic.definition

    def test_points_put_back_into_a_window_that_is_not_convex_may_be_twice_as_far(self):
        plan = moves(NOTCHED, max_error=500.0)
        assert "none is farther than 1000 m from where it was" in " ".join(errors(plan))
        assert "by 1000 m at most" in shown(plan)
        assert "by 500 m at most" in shown(moves(max_error=500.0))

    def test_moves_without_a_bound_are_not_said_to_have_one(self):
        told = errors(moves())
        # A planar Laplace law of rate 1/25 has a mean radius of 50.
        assert told[0].startswith("There is no bound on how far a point was moved: 50 m on average")
        assert "at most" not in shown(moves())
        assert "more than" not in " ".join(told)

    def test_a_track_keeps_its_order_and_its_filter_doubles_the_bound(self):
        relation = AlphaNeighbours(25.0, max_points_per_person=24)
        bound = PlanarLaplaceSynthesizer(24.0, relation=relation, track=True, max_error=600.0).plan(SQUARE, n=24)
        told = " ".join(errors(bound))
        assert "one person's track, in its order" in told
        assert "off by up to 1200 m" in told
        assert "random order" not in told
        free = PlanarLaplaceSynthesizer(24.0, relation=relation, track=True).plan(SQUARE, n=24)
        assert "off by" not in " ".join(errors(free))

    def test_others_have_none(self):
        plan = LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain").plan(SQUARE, n=40)
        assert errors(plan) == []
        assert shown(plan) is None
        assert not words(plan).moved
        assert price(plan) == []


class TestPrice:
    @pytest.mark.parametrize("relation", [None, AddRemove(2)])
    def test_it_is_the_floor_of_the_profile_and_not_the_delta_that_is_quoted(self, relation):
        """A larger delta may be quoted than the bound costs."""
        plan = counts(delta=1e-5, max_error=40, epsilon=None, relation=relation)
        generous = replace(plan.guarantee, profile=replace(plan.guarantee.profile, at=1e-3))
        told = price(plan, generous)[0]
        floor = plan.guarantee.delta(1e3)
        assert floor < 1e-3
        stated = re.search(r"at most (?:1 in ([\d,]+)|([\d.e-]+\d))\. No error", told)
        number = 1 / float(stated[1].replace(",", "")) if stated[1] else float(stated[2])
        assert floor * (1 - 1e-8) <= number <= floor * 1.001

    def test_it_is_known_at_any_epsilon(self):
        """Below a claim of epsilon 1000 the profile is flat at 1, which says nothing of the bound."""
        relation = AlphaNeighbours(25.0, max_points_per_person=24)
        plan = PlanarLaplaceSynthesizer(1000.0, relation=relation, track=True, max_error=60.0).plan(SQUARE, n=24)
        assert plan.guarantee.epsilon() > interpretation.FAR
        told = price(plan)[0]
        assert f"at most {fraction(plan.guarantee.profile.at)}. No error" in told
        assert "1 in 1." not in told

    def test_a_probability_that_nobody_can_count_is_no_fraction(self):
        plan = counts(max_error=1000)
        told = price(plan)[0]
        assert re.search("at most [0-9]\\.[0-9]{1,3} × 10⁻²[⁰¹²³⁴-⁹]{2}\\. No", told)  # noqa: RUF001 - a multiplication

    def test_it_stands_in_the_promise(self):
        for plan in (counts(), moves(max_error=500.0)):
            assert any("tell for certain which it is" in paragraph for paragraph in said(plan))
        assert not any("price" in paragraph for paragraph in said(moves()))

    @pytest.mark.slow
    def test_levels_count_once(self):
        assert render_report(STORED / "strata-bounded-cells").count("tell for certain which it is") == 1


class TestMovedPoints:
    def test_pictures_call_them_moved_also_where_levels_were_released_one_by_one(self):
        moved = SimpleNamespace(mechanism="planar-laplace")
        levels = {level: SimpleNamespace(**vars(moved), parts={"": moved}) for level in "12"}
        assert plot._called(levels["1"]) == "Moved points"
        assert plot._called(StratifiedRelease("month", levels, moves().guarantee)) == "Moved points"

    def test_each_stands_for_a_point_of_the_data(self):
        """Reports on other mechanisms say that no synthetic point is a person, which would be false here."""
        plan = moves(max_error=500.0)
        told = " ".join(not_promised(plan.guarantee, SQUARE, None, moved=True))
        assert "every released point stands for a point of the data" in told
        assert "No synthetic point is a person" not in told
        assert "No synthetic point is a person" in " ".join(not_promised(counts().guarantee, SQUARE, None))

    def test_with_a_bound_nothing_is_promised_beyond_alpha(self):
        """Its curve by distance ends there; without a bound it goes on, and protection fades."""
        tied, free = moves(max_error=500.0).guarantee, moves().guarantee
        assert silent_beyond(tied)
        assert not silent_beyond(free)
        assert "It says nothing about two places farther apart than 25 m." in not_promised(tied, SQUARE, None)
        assert any("as well as nearer ones" in each for each in not_promised(free, SQUARE, None))
        assert "the curve ends" in report_pictures.explained(tied, SQUARE)
        assert "the curve ends" not in report_pictures.explained(free, SQUARE)
        assert math.isclose(tied.by_distance[-1][0], 25.0)


class TestCountsUnderAlpha:
    def test_they_cost_the_same_at_every_distance(self):
        """Theorem N is the same for every alpha, so nothing ends at the one that was given."""
        plan = counts(relation=AlphaNeighbours(100.0))
        assert not silent_beyond(plan.guarantee)
        assert "farther apart" not in " ".join(not_promised(plan.guarantee, SQUARE, None))
        assert "the curve ends" not in report_pictures.explained(plan.guarantee, SQUARE)
        assert report_pictures.alternative(plan.guarantee, SQUARE).endswith("the same at all distances.")


def text(folder):
    page = re.sub(r'<style>.*?</style>|src="data:[^"]*"', "", render_report(folder), flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


class TestPage:
    @pytest.fixture(autouse=True)
    def _no_pictures(self, monkeypatch):
        """Nothing here looks at them."""
        monkeypatch.setattr(surfaces, "PIXELS", 10)
        monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: None)

    def test_of_a_series_of_counts(self):
        page = text(STORED / "strata-bounded-cells")
        assert "off by more than 25:" in page
        assert "off by up to 50" in page

    def test_of_moved_points(self):
        page = text(STORED / "planar-laplace-bounded")
        assert "stands for a point of the data, moved at random, by 500 m at most." in page
        assert "Marks are not released. No point was moved by more than 500 m" in page
        for false in ("none is a person", "once the intensity is given", "ynthetic p"):
            assert false not in page
        assert "Analyse every pattern by itself" not in page

    def test_of_moved_points_by_level(self, tmp_path):
        """The levels' mark is released, and rows are in random order within each level only."""
        rng = np.random.default_rng(4)
        data = PointPattern(rng.uniform(0, 1000, (24, 2)), SQUARE, marks={"month": np.repeat(["1", "2"], 12)})
        made = PlanarLaplaceSynthesizer(1.0, alpha=25.0, max_error=500.0)
        page = text(made.release_by(data, by="month", levels=["1", "2"]).save(tmp_path / "by"))
        assert "No mark but month is released." in page
        assert "Marks are not released" not in page
        assert "in random order within each level of month." in page
        assert "The moved points by month" in page
        assert "Moved, month 1" in page
        assert "ynthetic p" not in page

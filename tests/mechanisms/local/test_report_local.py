"""Reports on local mechanisms: no more than local privacy or geo-indistinguishability promise."""

import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dpppsynth.contract import registry
from dpppsynth.plotting import plot_epsilon_curve
from dpppsynth.privacy import AddRemove, GeoIndistinguishability, Guarantee, Local, PureDP, ReplaceOne
from dpppsynth.reporting import certificate_tables, report_pictures
from dpppsynth.reporting import local_privacy as local
from dpppsynth.reporting.promise import not_promised, promise
from dpppsynth.spatial.domains import Window

# Squares of the grid are 100 m wide and 80 m high.
OBLONG = Window.rectangle(0, 0, 1000, 800, "EPSG:27700")


def geo(epsilon, cells=10):
    far = [math.sqrt(2) * (cells - 1)] if cells > 1 else []
    curve = tuple((float(d), d * epsilon) for d in [*range(1, cells), *far])
    return Guarantee(GeoIndistinguishability(cells), PureDP(epsilon), "local-randomizer", ("a", "b"), curve)


LOCAL = Guarantee(Local(), PureDP(1.0), "local-randomizer", ("a", "b"))


class TestLocal:
    def test_two_cases_and_whom(self):
        whom, limit, firm = promise(LOCAL, OBLONG, {"n": 40})
        assert "every person, each of whom sent one report" in whom
        assert "those who collect the reports included" in whom
        assert "that custodian has seen the points" in whom
        assert "a certain person is in one place, or anywhere else in the published area" in limit
        assert "this person's report, and all that is in this release, is at most 2.72 times as likely" in limit
        assert "at most 73.2 of 100 cases" in limit
        assert "on 2 assumptions" in firm
        assert "makers of the persons' devices" in firm

    def test_not_promised(self):
        said = " ".join(not_promised(LOCAL, OBLONG, None))
        assert "does not hide who sent a report, or how many reports there are" in said
        assert "from which address" in said
        assert "a second report of the same person" in said
        assert "in which part of the area" not in said

    def test_a_large_epsilon_is_called_weak(self):
        strong, weak = (" ".join(promise(replace(LOCAL, profile=PureDP(e)), OBLONG, {})) for e in (1.0, 4.0))
        assert "weak" not in strong
        assert "This is a weak promise." in weak
        said = promise(replace(LOCAL, profile=PureDP(20.0)), OBLONG, {})[1]
        assert "all that is in this release, may be more than a million times as likely" in said

    def test_the_curve_is_level(self):
        assert "does not depend on distance" in report_pictures.explained(LOCAL, OBLONG)
        assert "one person is somewhere else, however far away" in report_pictures.explained(LOCAL, OBLONG)
        assert (
            report_pictures.alternative(LOCAL, OBLONG)
            == "Epsilon for one person, by distance: the same at all distances."
        )
        assert certificate_tables.distance_rows(LOCAL) == []


class TestGeoIndistinguishability:
    def test_it_is_not_said_to_hide_all_places(self):
        # Today's page once said "anywhere else in the published area" of a bound for neighbouring squares.
        said = promise(geo(0.8), OBLONG, {"n": 40})
        caution, _, limit, _ = said
        assert caution.startswith("Attention: this is not local differential privacy")
        assert "not in which part of the area" in caution
        assert "anywhere" not in " ".join(said)
        assert "10 by 10 squares, here 100 m wide and 80 m high" in limit
        assert "in one square of the grid, or in another that shares a side with it" in limit
        assert "It does not hide in which part of the area somebody is." in not_promised(geo(0.8), OBLONG, None)

    def test_factors_are_those_of_the_distances_rounded_up(self):
        limit = promise(geo(0.8), OBLONG, {})[2]
        near, *far = (
            float(each.replace(",", "")) for each in re.findall(r"(?:at most|up to) ([\d.,]+\d)(?: times|,|\.)", limit)
        )
        wanted = [math.exp(d * 0.8) for d in (2, 5, 9 * math.sqrt(2))]
        assert near == math.ceil(100 * math.exp(0.8)) / 100
        assert len(far) == 3
        for told, true in zip(far, wanted, strict=True):
            assert true <= told <= true * 1.01
        assert "to the opposite one (12.7 squares)" in limit
        assert "At that distance a guess could be right practically every time." in limit

    @pytest.mark.parametrize(
        ("epsilon", "words"),
        # A guess is right in 95 of 100 cases at log 19 = 2.94.
        [(0.1, None), (0.8, "For places 4 squares apart and more"), (3.0, "Even for two squares side by side")],
    )
    def test_from_where_on_it_is_weak(self, epsilon, words):
        caution = promise(geo(epsilon), OBLONG, {})[0]
        assert ("weak promise" in caution) == (words is not None)
        assert words is None or words in caution

    @pytest.mark.parametrize(
        ("cells", "told"), [(1, []), (2, []), (3, ["two"]), (5, ["two"]), (6, ["two", "five"]), (7, ["two", "five"])]
    )
    def test_only_distances_that_the_grid_has(self, cells, told):
        limit = promise(geo(0.8, cells), OBLONG, {})[-2]
        assert re.findall(r"(two|five) squares up to", limit) == told
        assert ("from one corner of the grid" in limit) == (cells > 2)
        assert f"({math.sqrt(2) * (cells - 1):.3g} squares)" in limit or cells < 3

    def test_distances_are_in_squares(self):
        assert report_pictures.unit(geo(0.8), OBLONG) == "squares"
        assert report_pictures.unit(LOCAL, OBLONG) == "m"
        assert [each[0] for each in certificate_tables.distance_rows(geo(0.8))] == ["1", "2", "3", "5", "12.72"]
        ax = plot_epsilon_curve(geo(0.8), unit=OBLONG.unit)
        assert ax.get_xlabel() == "distance between two places (squares of the public grid)"
        assert "squares" in report_pictures.caption(geo(0.8))
        for words in (report_pictures.explained, report_pictures.title, report_pictures.alternative):
            assert "moves along a path" not in words(geo(0.8), OBLONG)


def test_the_opening_names_the_kind_of_privacy():
    assert local.opening(Local()).kind == "local differential privacy"
    assert local.opening(GeoIndistinguishability(4)).kind == "geo-indistinguishability"
    assert "one square" in local.opening(GeoIndistinguishability(4)).about
    assert [local.opening(each).kind for each in (ReplaceOne(), AddRemove(2))] == ["differential privacy"] * 2


def test_reports_are_counted():
    words = [registry.mechanism(name).words for name in ("disk-area", "adaptive-grid", "laplace-cells")]
    plans = [
        SimpleNamespace(n=5000, parameters=dict),
        SimpleNamespace(parameters=lambda: {"reports": [1000, 2000]}, n=5000),
    ]
    assert words[0].reports(plans[:1]) == "5,000, a public number"
    assert words[1].reports(plans[1:]) == "3,000, a public number"
    assert words[2].reports(plans) is None


def test_a_picture_of_uneven_cells_shows_them(tmp_path):
    from dpppsynth.grids import even_cells, uniform_grid
    from dpppsynth.models.regular_meshes import rectangle_mesh
    from dpppsynth.plotting import plot_mesh

    grid = even_cells(uniform_grid(OBLONG.bounds, 2, 1), np.array([1, 3]))
    ax = plot_mesh(rectangle_mesh(OBLONG, grid))
    (drawn,) = [each for each in ax.collections if each.get_label() == "cells"]
    boxes = [(*path.vertices.min(axis=0), *path.vertices.max(axis=0)) for path in drawn.get_paths()]
    np.testing.assert_array_equal(sorted(boxes), sorted(map(tuple, grid.cells)))
    # Cells that share no vertices have no dual.
    assert "dual cells" not in [each.get_label() for each in ax.collections]

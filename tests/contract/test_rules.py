"""Default rules: formulas of public numbers, checked by hand and by the inequalities that define them."""

import math

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from dpppsynth.contract.rules import planar_rules as rules
from dpppsynth.models import regular_triangulation
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne
from dpppsynth.spatial.domains import Window
from dpppsynth.synthesizers import LGCPSynthesizer

SOHO = Window.rectangle(529100, 180680, 529770, 181350, "EPSG:27700")
LONG = Window.rectangle(0, 0, 3000, 1000)
DISC = Window.polygon(shapely.Point(0, 0).buffer(500, quad_segs=64))
RELATIONS = [AlphaNeighbours(25.0), AlphaNeighbours(200.0), ReplaceOne(), AddRemove(), ReplaceOne(3)]


def change(window, shape, relation):
    """Sensitivity of tents in points, by the formula of docs/theory.md."""
    x0, y0, x1, y1 = window.bounds
    hx, hy = (x1 - x0) / (shape[0] - 1), (y1 - y0) / (shape[1] - 1)
    one = 1.0 if isinstance(relation, AddRemove) else min(2.0, 2 * relation.reach * math.hypot(1 / hx, 1 / hy))
    return relation.max_points_per_person * one


def filled(window):
    x0, y0, x1, y1 = window.bounds
    return window.area / ((x1 - x0) * (y1 - y0))


def meets(window, shape, n, epsilon, relation, scale):
    x0, y0, x1, y1 = window.bounds
    spacing = min((x1 - x0) / (shape[0] - 1), (y1 - y0) / (shape[1] - 1))
    noise = math.sqrt(2) * change(window, shape, relation) / epsilon
    held = n / (shape[0] * shape[1] * filled(window))
    if scale is None:
        return held >= max(1, 2 * noise) * (1 - 1e-12)
    return held >= 2 * max(1, noise) * (1 - 1e-12) and spacing >= 0.55 * scale * (1 - 1e-8)


class TestLengthScale:
    @pytest.mark.parametrize(
        ("n", "share"),
        [(100, 0.35), (392, 0.35 * 3.92**-0.125), (1, 0.5), (6, 0.4975), (10**6, 0.35 / 10**0.5), (10**9, 0.1)],
    )
    def test_values(self, n, share):
        assert rules.length_scale(SOHO, n) == pytest.approx(670 * share, rel=1e-3)

    def test_unit_of_length(self):
        assert rules.length_scale(Window.rectangle(0, 0, 2, 8), 100) == pytest.approx(4 * 0.35)
        assert rules.length_scale(DISC, 100) == pytest.approx(math.sqrt(DISC.area) * 0.35)


class TestMatern:
    @pytest.mark.parametrize("window", [SOHO, LONG, DISC], ids=["square", "long", "disc"])
    @pytest.mark.parametrize("relation", RELATIONS, ids=repr)
    def test_tents_are_the_finest_that_meet_their_inequalities(self, window, relation):
        holds = 2 if isinstance(relation, AlphaNeighbours) else 1.5

        def meets_all(shape, n, epsilon):
            vertices = shape[0] * shape[1] * filled(window)
            noise = math.sqrt(2) * change(window, shape, relation) / epsilon
            return vertices <= 250 * n**0.3 * (1 + 1e-12) and n / vertices >= max(1, holds * noise) * (1 - 1e-12)

        for n, epsilon in [(1000, 1.0), (5000, 0.3), (20_000, 2.0)]:
            shape = rules.matern_tents_shape(window, n, epsilon, relation)
            assert max(shape) == 3 or meets_all(shape, n, epsilon)
            assert not meets_all(finer(window, max(shape) + 1), n, epsilon)

    def test_numbers_that_the_guide_prints(self):
        city = Window.rectangle(0, 0, 30_000, 30_000)
        near = AlphaNeighbours(100.0)
        sides = [rules.matern_tents_shape(city, n, 1.0, near)[0] for n in (10**3, 10**4, 10**5, 10**6)]
        assert sides == [31, 62, 88, 125]

    def test_ranges_reach_from_two_spacings_to_beyond_the_window(self):
        for side in (3, 10, 40):
            tents = regular_triangulation(SOHO, shape=(side, side))
            ranges = rules.matern_ranges(tents)
            assert ranges[0] == pytest.approx(2 * 670 / (side - 1))
            assert 1.6 * 670 / 1.7 < ranges[-1] <= 1.6 * 670
            assert np.allclose(np.diff(np.log(ranges)), np.log(1.7))

    def test_fine_fields_are_rough(self):
        assert rules.matern_smoothness(regular_triangulation(SOHO, shape=(50, 50))) == (1.0, 3.0)
        assert rules.matern_smoothness(regular_triangulation(SOHO, shape=(51, 51))) == (1.0,)


class TestTentsShape:
    @pytest.mark.parametrize("window", [SOHO, LONG, DISC], ids=["square", "long", "disc"])
    @pytest.mark.parametrize("relation", RELATIONS, ids=repr)
    @pytest.mark.parametrize("posterior", [True, False])
    def test_is_the_finest_that_meets_its_inequalities(self, window, relation, posterior):
        for n, epsilon in [(392, 1.0), (392, 20.0), (5000, 0.3), (100_000, 2.0)]:
            scale = rules.length_scale(window, n) if posterior else None
            shape = rules.tents_shape(window, n, epsilon, relation, scale=scale)
            longest = max(shape)
            assert longest == 3 or meets(window, shape, n, epsilon, relation, scale)
            assert longest == rules.MOST_VERTICES or not meets(
                window, finer(window, longest + 1), n, epsilon, relation, scale
            )

    @pytest.mark.parametrize("relation", RELATIONS, ids=repr)
    def test_three_vertices_at_least(self, relation):
        for n in (1, 2, 10):
            assert max(rules.tents_shape(SOHO, n, 0.01, relation)) == 3
            assert max(rules.tents_shape(SOHO, n, 0.01, relation, scale=300.0)) == 3
        assert rules.tents_shape(LONG, 1, 0.01, relation) == (3, 2)

    def test_soho(self):
        """The numbers that docs/mechanisms.md prints."""
        relation = AlphaNeighbours(25.0)
        assert rules.tents_shape(SOHO, 392, 1.0, relation, scale=rules.length_scale(SOHO, 392)) == (7, 7)
        assert rules.tents_shape(SOHO, 392, 1.0, relation) == (11, 11)
        plan = LGCPSynthesizer(1.0, alpha=25.0, mechanism="tents").plan(SOHO, n=392)
        assert plan.statistic.mesh.recipe["shape"] == [7, 7]
        assert plan.statistic.scale / 2**20 == pytest.approx(0.633, abs=1e-3)

    @pytest.mark.slow
    @given(st.floats(0.01, 10), st.floats(1.1, 10))
    def test_more_budget_or_more_points_never_coarsen(self, epsilon, factor):
        coarse = rules.tents_shape(SOHO, 1000, epsilon, ReplaceOne(), scale=200.0)
        assert rules.tents_shape(SOHO, 1000, epsilon * factor, ReplaceOne(), scale=200.0) >= coarse
        assert rules.tents_shape(SOHO, 1000 * factor, epsilon, ReplaceOne(), scale=200.0) >= coarse

    def test_window_that_fills_less_gets_a_finer_mesh(self):
        """A disc holds the same points on fewer vertices than its bounding square."""
        square = Window.rectangle(-500, -500, 500, 500)
        assert rules.tents_shape(DISC, 2000, 1.0, ReplaceOne()) > rules.tents_shape(square, 2000, 1.0, ReplaceOne())

    def test_aspect_follows_the_window(self):
        nx, ny = rules.tents_shape(LONG, 5000, 1.0, ReplaceOne())
        assert (nx - 1) / (ny - 1) == pytest.approx(3, rel=0.15)
        upright = Window.rectangle(0, 0, 1000, 3000)
        assert rules.tents_shape(upright, 5000, 1.0, ReplaceOne()) == (ny, nx)

    def test_does_not_depend_on_the_unit(self):
        feet = Window.rectangle(0, 0, 670 * 3.28, 670 * 3.28)
        metres, feet_shape = (
            rules.tents_shape(w, 392, 1.0, AlphaNeighbours(a), scale=rules.length_scale(w, 392))
            for w, a in ((SOHO, 25.0), (feet, 25.0 * 3.28))
        )
        assert metres == feet_shape


def finer(window, longest):
    x0, y0, x1, y1 = window.bounds
    width, height = x1 - x0, y1 - y0
    short = max(2, round(min(width, height) / max(width, height) * (longest - 1)) + 1)
    return (longest, short) if width >= height else (short, longest)


class TestCellsShape:
    @pytest.mark.parametrize("relation", RELATIONS, ids=repr)
    @pytest.mark.parametrize("window", [SOHO, LONG, DISC], ids=["square", "long", "disc"])
    def test_is_the_finest_that_meets_its_inequality(self, window, relation):
        delta = relation.max_points_per_person * (1 if isinstance(relation, AddRemove) else 2)
        for n, epsilon in [(392, 1.0), (392, 20.0), (5000, 0.3)]:
            shape = rules.cells_shape(window, n, epsilon, relation)

            def held(shape, n=n):
                return n / ((shape[0] - 1) * (shape[1] - 1) * filled(window))

            need = max(1, 2 * math.sqrt(2) * delta / epsilon)
            assert max(shape) == 2 or held(shape) >= need
            assert held(finer(window, max(shape) + 1)) < need

    def test_soho(self):
        assert rules.cells_shape(SOHO, 392, 1.0, AlphaNeighbours(25.0)) == (9, 9)
        assert rules.cells_shape(SOHO, 1, 0.01, ReplaceOne()) == (2, 2)


class TestFieldMesh:
    def test_refines_to_a_share_of_the_side(self):
        tents = regular_triangulation(SOHO, shape=(7, 7))
        mesh = rules.field_mesh(tents)
        assert mesh.recipe["shape"] == [19, 19]
        assert mesh.recipe["kind"] == "triangle"
        # Nested: every tent is a sum of the field's basis functions, so interpolation adds no error of its own.
        nested = tents.basis(mesh.vertices)
        xy = np.random.default_rng(0).uniform([529100, 180680], [529770, 181350], (200, 2))
        np.testing.assert_allclose((mesh.basis(xy) @ nested).toarray(), tents.basis(xy).toarray(), atol=1e-9)

    def test_fine_tents_are_left_alone(self):
        tents = regular_triangulation(SOHO, shape=(40, 40))
        assert rules.field_mesh(tents).recipe["shape"] == [40, 40]

    def test_meshes_of_the_caller_are_left_alone(self):
        from dpppsynth.spatial.mesh import Mesh

        x0, y0, x1, y1 = SOHO.bounds
        mesh = Mesh.from_arrays([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], [[0, 1, 2], [0, 2, 3]], SOHO)
        assert rules.field_mesh(mesh) is mesh

"""Kim & Lim's bounds: pair counts, the strict condition, published figures, and what the guarantee admits."""

import itertools
import json
import math

import numpy as np
import pytest
import shapely
from scipy.stats import norm

from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.models import PoweredExponential, regular_squares, regular_triangulation
from dpppsynth.privacy import (
    AddRemove,
    AlphaNeighbours,
    ReplaceOne,
    carries_no_information,
    guarantee_from_dict,
    kim_lim_38,
    kim_lim_39,
    kim_lim_ratio,
)
from dpppsynth.spatial.domains import Window

BUILDERS = {"triangle": regular_triangulation, "square": regular_squares}
GAP = {"triangle": 1 / math.sqrt(2), "square": 1.0}
both_kinds = pytest.mark.parametrize("kind", ["triangle", "square"])


def grid(kind, cells, side=None):
    side = cells if side is None else side
    return BUILDERS[kind](Window.rectangle(0, 0, side, side), shape=(cells + 1, cells + 1))


def touching(mesh, alpha):
    """Pairs of elements at most alpha apart and their farthest vertices, by brute force."""
    polygons, corner = mesh.element_polygons, mesh.vertices[mesh.elements]
    found = []
    for i, j in itertools.combinations(range(len(polygons)), 2):
        if shapely.distance(polygons[i], polygons[j]) <= alpha:
            found.append(max(np.linalg.norm(a - b) for a in corner[i] for b in corner[j]))
    return np.array(found)


def brute_force(mesh, covariance, alpha):
    """Theorem 3.8 term by term, epsilon = 1."""
    matrix, polygons = covariance.matrix(mesh), mesh.element_polygons
    total = 0.0
    for i, j in itertools.combinations(range(len(polygons)), 2):
        if shapely.distance(polygons[i], polygons[j]) <= alpha:
            pairs = itertools.product(mesh.elements[i], mesh.elements[j])
            total += max(matrix[a, a] + matrix[b, b] - 2 * matrix[a, b] for a, b in pairs)
    return 4 * total


class TestPairs:
    @pytest.mark.parametrize("cells", [2, 4, 5])
    def test_triangles(self, cells):
        got = dict(
            zip(*np.unique(np.round(touching(grid("triangle", cells), 0.7) ** 2), return_counts=True), strict=True)
        )
        assert got == {2: cells**2, 4: (cells - 1) ** 2, 5: 6 * cells * (cells - 1), 8: 4 * (cells - 1) ** 2}

    @pytest.mark.parametrize("cells", [2, 4, 5])
    def test_squares(self, cells):
        """Neighbours across an edge and across a corner, up to a radius of one cell."""
        got = dict(
            zip(*np.unique(np.round(touching(grid("square", cells), 0.999) ** 2), return_counts=True), strict=True)
        )
        assert got == {5: 2 * cells * (cells - 1), 8: 2 * (cells - 1) ** 2}

    def test_equality_lets_more_pairs_in(self):
        """42 triangles more at N = 4, 40 squares more: the condition must be strict."""
        for kind, extra in (("triangle", 42), ("square", 40)):
            limit = GAP[kind] * (1 + 1e-12)
            assert len(touching(grid(kind, 4), limit)) - len(touching(grid(kind, 4), limit * 0.99)) == extra

    @both_kinds
    def test_the_condition_is_strict(self, kind):
        mesh, covariance = grid(kind, 4, side=10), PoweredExponential(1e-3, 2.0)
        limit = GAP[kind] * 2.5
        kim_lim_39(mesh, covariance, 0.999 * limit, epsilon=1.0)
        for alpha in (limit, limit * (1 - 1e-12), 1.01 * limit):
            with pytest.raises(InputError, match=r"^alpha: Corollary 3\.9 needs less than .*; use .* kim_lim_38"):
                kim_lim_39(mesh, covariance, alpha, epsilon=1.0)


class TestTheorem38:
    @pytest.mark.parametrize("power", [0.7, 2.0])
    @pytest.mark.parametrize("alpha", [0.3, 1.0, 30.0])
    @both_kinds
    def test_is_the_sum(self, kind, alpha, power):
        mesh, covariance = grid(kind, 4), PoweredExponential(1e-3, 2.0, power)
        guarantee = kim_lim_38(mesh, covariance, alpha, epsilon=1.5)
        assert guarantee.profile.slack == pytest.approx(brute_force(mesh, covariance, alpha) / 1.5**2, rel=1e-8)
        assert guarantee.epsilon() == 1.5

    def test_on_a_window_that_cuts_elements(self):
        window = Window.polygon(shapely.Polygon([(0, 0), (4, 1), (3, 4), (2, 1.5), (0, 3)]))
        mesh, covariance = regular_triangulation(window, shape=(5, 5)), PoweredExponential(1e-3, 2.0)
        expected = brute_force(mesh, covariance, 0.5)
        assert kim_lim_38(mesh, covariance, 0.5, epsilon=1.0).profile.slack == pytest.approx(expected, rel=1e-8)

    def test_replace_one_takes_all_pairs(self):
        mesh, covariance = grid("triangle", 3), PoweredExponential(1e-3, 2.0)
        delta = kim_lim_38(mesh, covariance, ReplaceOne(), epsilon=1.0).profile.slack
        assert delta == kim_lim_38(mesh, covariance, 99.0, epsilon=1.0).profile.slack

    @both_kinds
    def test_random_length_scale_is_covered(self, kind):
        """Whatever l, sigma = R l stays below the bound for R alone, and comes close as l grows."""
        mesh, ratio = grid(kind, 4), 1e-3
        bound = kim_lim_38(mesh, None, 0.5, epsilon=1.0, ratio=ratio).profile.slack
        given = [
            kim_lim_38(mesh, PoweredExponential(ratio * scale, scale), 0.5, epsilon=1.0).profile.slack
            for scale in (0.3, 2.0, 400.0)
        ]
        assert given == sorted(given)
        assert 0.9999 * bound < given[-1] <= bound

    def test_refuses_what_it_cannot_promise(self):
        mesh, covariance = grid("triangle", 4), PoweredExponential(1.0, 2.0)
        with pytest.raises(PrivacyCheckError, match=r"promises nothing; lower sigma by a factor of") as caught:
            kim_lim_38(mesh, covariance, 0.5, epsilon=1.0)
        factor = float(str(caught.value).split("factor of ")[1].split()[0])
        kim_lim_38(mesh, PoweredExponential(0.999 / factor, 2.0), 0.5, epsilon=1.0)
        for relation in (AddRemove(), AlphaNeighbours(0.5, max_points_per_person=2)):
            with pytest.raises(InputError, match=r"^relation: Kim & Lim's bounds cover the move of one point"):
                kim_lim_38(mesh, PoweredExponential(1e-3, 2.0), relation, epsilon=1.0)
        for model, ratio in ((None, None), (covariance, 1e-3)):
            with pytest.raises(InputError, match=r"^ratio: give either a covariance"):
                kim_lim_38(mesh, model, 0.5, epsilon=1.0, ratio=ratio)
        with pytest.raises(InputError, match=r"^ratio: sigma / length_scale must be positive"):
            kim_lim_38(mesh, None, 0.5, epsilon=1.0, ratio=0.0)

    def test_delta_really_is_a_probability_under_the_prior(self):
        """One pair of neighbours: chance that the field differs by more than epsilon / 2, exactly, against delta."""
        mesh, covariance = grid("triangle", 4), PoweredExponential(0.01, 2.0)
        guarantee = kim_lim_38(mesh, covariance, 0.5, epsilon=1.0)
        matrix = covariance.matrix(mesh)
        change = (mesh.basis(np.array([[2.0, 2.0]])) - mesh.basis(np.array([[2.3, 2.4]]))).toarray()[0]
        assert 2 * norm.sf(0.5 / math.sqrt(change @ matrix @ change)) <= guarantee.profile.slack


class TestCorollary39:
    @pytest.mark.parametrize("power", [0.7, 1.3, 2.0])
    @pytest.mark.parametrize("cells", [2, 4, 7])
    @both_kinds
    def test_is_above_the_theorem(self, kind, cells, power):
        mesh, covariance = grid(kind, cells, side=10), PoweredExponential(1e-3, 30.0, power)
        alpha = 0.9 * GAP[kind] * 10 / cells
        corollary = kim_lim_39(mesh, covariance, alpha, epsilon=1.0).profile.slack
        theorem = kim_lim_38(mesh, covariance, alpha, epsilon=1.0).profile.slack
        assert theorem < corollary < 8 * theorem
        if cells == 7 and power == 2.0:
            assert theorem > 0.75 * corollary

    @pytest.mark.parametrize(("kind", "constant"), [("triangle", 544), ("square", 208)])
    def test_constant_of_the_squared_exponential(self, kind, constant):
        """104, printed for squares, counts each pair half: no bound for the sum on a 7 x 7 mesh."""
        mesh, covariance = grid(kind, 7, side=10), PoweredExponential(1e-3, 3e3)
        delta = kim_lim_39(mesh, covariance, 0.5, epsilon=2.0).profile.slack
        per_ratio = (covariance.sigma / covariance.length_scale) ** 2 * 10**2 / 2.0**2
        assert delta == pytest.approx(constant * per_ratio, rel=1e-9)
        if kind == "square":
            assert brute_force(mesh, covariance, 0.5) / 4 > 104 * per_ratio

    def test_published_figure(self):
        """epsilon = 1, delta = 1/57, side 10: R about 5.7e-4, and the field hardly varies."""
        mesh = grid("triangle", 10, side=10)
        ratio = kim_lim_ratio(mesh, 0.5, epsilon=1.0, delta=1 / 57, corollary=True)
        assert ratio == pytest.approx(5.679e-4, rel=1e-4)
        guarantee = kim_lim_39(mesh, None, 0.5, epsilon=1.0, ratio=ratio)
        assert 1 / 57 * (1 - 1e-9) < guarantee.profile.slack <= 1 / 57
        assert "no-spatial-information" in guarantee.assumptions
        assert ratio < kim_lim_ratio(mesh, 0.5, epsilon=1.0, delta=1 / 57) < 1.1 * ratio

    def test_ratio_of_the_theorem_spends_delta(self):
        mesh = regular_squares(Window.rectangle(0, 0, 4, 3), shape=(6, 4))
        ratio = kim_lim_ratio(mesh, 0.5, epsilon=1.0, delta=0.01)
        assert 0.01 * (1 - 1e-9) < kim_lim_38(mesh, None, 0.5, epsilon=1.0, ratio=ratio).profile.slack <= 0.01

    @pytest.mark.parametrize(
        "mesh",
        [
            regular_triangulation(Window.rectangle(0, 0, 4, 3), shape=(5, 5)),
            regular_triangulation(Window.rectangle(0, 0, 4, 4), shape=(5, 4)),
            regular_triangulation(Window.polygon(shapely.Polygon([(0, 0), (4, 0), (0, 4)])), shape=(5, 5)),
        ],
        ids=["rectangle", "unequal", "triangle"],
    )
    def test_other_meshes_are_refused(self, mesh):
        with pytest.raises(InputError, match=r"^mesh: Corollary 3\.9 needs N x N equal cells .* kim_lim_38"):
            kim_lim_39(mesh, PoweredExponential(1e-3, 2.0), 0.1, epsilon=1.0)

    def test_other_covariances_are_refused(self):
        class Flat:
            def matrix(self, points):
                return np.eye(len(points))

        with pytest.raises(InputError, match=r"^covariance: Corollary 3\.9 needs a PoweredExponential, got Flat"):
            kim_lim_39(grid("triangle", 4), Flat(), 0.1, epsilon=1.0)


class TestWords:
    def test_it_is_labelled_for_what_it_is(self):
        mesh = grid("triangle", 4)
        random = kim_lim_38(mesh, None, 0.5, epsilon=1.0, ratio=1e-3)
        assert random.theorem == "kim-lim-3.8"
        assert random.assumptions[0] == "model-averaged"
        assert {"length-scale-not-counted", "no-spatial-information", "chain-mixed"} <= {*random.assumptions}
        assert guarantee_from_dict(json.loads(json.dumps(random.to_dict()))) == random
        fixed = kim_lim_38(mesh, PoweredExponential(0.06, 50.0), 0.5, epsilon=1.0)
        assert not {"length-scale-not-counted", "no-spatial-information"} & {*fixed.assumptions}
        assert kim_lim_39(mesh, None, 0.5, epsilon=1.0, ratio=1e-3).theorem == "kim-lim-3.9"

    def test_flat_fields(self):
        assert carries_no_information(0.002)
        assert not carries_no_information(0.5)

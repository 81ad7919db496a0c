"""The search over ranges of a Matern field: a coarse mesh may save time, but not change what is found."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from shapely import Polygon

from dpppsynth import LinearNetwork, Window
from dpppsynth.linear_network import network_mesh
from dpppsynth.models import NoisyMasses, matern_search, regular_triangulation
from dpppsynth.models.matern_search import MaternSearch, climb_grid, coarser, non_negligible
from dpppsynth.models.regular_meshes import refine

SQUARE = Window.rectangle(0, 0, 1000, 1000)
CLAW = Window(Polygon([(0, 0), (1000, 0), (1000, 1000), (600, 150), (0, 90)]))
RANGES = (50.0, 85.0, 150.0, 250.0, 430.0, 730.0)


def search(truth, total, *, spacing=35.0, window=SQUARE, smoothness=(1.0,), n=None):
    """Search behind the noised tents of an intensity, on a field twice as fine."""
    tents = regular_triangulation(window, spacing=spacing)
    mesh = refine(tents, 2)
    shares = tents.basis(mesh.vertices).T
    rng = np.random.default_rng(5)
    mass = truth(mesh.vertices) * mesh.measure
    expected = shares @ (total * mass / mass.sum())
    noisy = rng.poisson(expected) + rng.laplace(scale=0.5, size=len(expected))
    likelihood = NoisyMasses(noisy, 0.5, mesh.measure, sp.csr_array(shares), n)
    centre = 0.0 if n is not None else float(np.log(total / mesh.measure.sum()))
    return MaternSearch(likelihood, mesh, 1.6, smoothness, RANGES, centre, None if n is not None else 2.0, str)


def waves(length):
    return lambda at: np.exp(1.5 * np.sin(at / length).prod(axis=1))


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("length", "total", "settings"),
    [
        (25.0, 2e4, {"n": 2e4}),
        (120.0, 300.0, {"n": 300.0}),
        (60.0, 5e3, {"smoothness": (1.0, 3.0), "n": 5e3}),
        (120.0, 5e3, {"spacing": 20.0, "window": CLAW}),
    ],
)
def test_a_coarse_mesh_finds_the_ranges_that_carry_weight(length, total, settings):
    """The same mixture as from all ranges on the fine mesh, within one part in ten of weight."""
    found = search(waves(length), total, **settings)
    assert coarser(found.mesh) is not None
    quick = {key: fit.log_evidence for key, fit in found.posteriors().items()}
    every = {(s, r): found.posterior((s, r), None).log_evidence for s in found.smoothness for r in RANGES}
    weight = dict(zip(every, softmax(list(every.values())), strict=True))
    own = dict(zip(quick, softmax(list(quick.values())), strict=True))
    assert 0.5 * sum(abs(weight[key] - own.get(key, 0.0)) for key in every) < 0.1


@pytest.mark.slow
def test_a_coarse_mesh_reaches_all_vertices_of_a_fine_one():
    """Thin arms of a window are no place for coarse triangles of their own, but for those of its box."""
    arms = Window(Polygon([(0, 0), (1000, 0), (1000, 1000), (970, 1000), (970, 30), (0, 30)]))
    mesh = regular_triangulation(arms, shape=(200, 201))
    assert len(mesh.vertices) > matern_search.FEW
    basis = coarser(mesh).basis(mesh.positions)
    np.testing.assert_allclose(basis.sum(axis=1), 1.0, rtol=1e-12)
    assert len(coarser(mesh).vertices) == 101 * 101


def test_small_meshes_and_networks_are_searched_as_they_are():
    assert coarser(regular_triangulation(SQUARE, shape=(50, 50))) is None
    assert coarser(regular_triangulation(SQUARE, shape=(51, 50))) is not None
    street = network_mesh(LinearNetwork([[0, 0], [1000, 0]], [[0, 1]]), 0.3)
    assert len(street.vertices) > matern_search.FEW
    assert coarser(street) is None


def test_a_range_as_good_on_the_coarse_mesh_is_tried_on_the_fine_one(monkeypatch):
    """Evidence on the coarse mesh decides among ranges only where it leaves no doubt."""
    found = search(waves(120.0), 5e3, n=5e3)
    asked = []
    first = found.posterior((1.0, 250.0), None)

    def posterior(self, key, start, share=None):
        if self.unknowns is None:
            asked.append(key[1])
        # On the coarse mesh: 20, 3 and 60 less than the best; on the fine one all is higher by 25.
        coarse = {50.0: -200, 85.0: -90, 150.0: -20.0, 250.0: 0.0, 430.0: -3.0, 730.0: -60.0}[key[1]]
        return replace(first, log_evidence=coarse + 25 * (self.unknowns is None))

    monkeypatch.setattr(MaternSearch, "posterior", posterior)
    assert set(found.posteriors()) == {(1.0, 250.0), (1.0, 430.0)}
    assert asked == [250.0, 430.0, 150.0]


def test_priors_without_weight_are_let_go():
    fit = search(waves(120.0), 300.0, spacing=150.0, n=300.0).posterior((1.0, 250.0), None)
    fits = {(1.0, r): replace(fit, log_evidence=value) for r, value in ((1.0, 0.0), (2.0, -4.5), (3.0, -4.7))}
    assert set(non_negligible(fits)) == {(1.0, 1.0), (1.0, 2.0)}


@pytest.mark.parametrize("peak", range(7))
def test_climbing_finds_a_single_peak_and_looks_once_at_each_place(peak):
    looked = []

    def height(place):
        looked.append(place)
        return -abs(place[0] - 10.0 * peak)

    climb_grid(height, [[10.0 * k for k in range(7)]], first=(2,))
    assert (10.0 * peak,) in looked
    assert len(looked) == len(set(looked)) <= 7

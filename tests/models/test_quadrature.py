"""Quadratures of the integral of an intensity: against closed forms, and in the models that use them."""

import numpy as np
import pytest
import shapely

from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.models import (
    PoweredExponential,
    build_lgcp,
    dual_measure,
    factor,
    regular_squares,
    regular_triangulation,
    trace_mesh,
)
from dpppsynth.models.quadrature import Quadrature
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import integrate_exp
from dpppsynth.spatial.patterns import PointPattern

DISC = Window.polygon(shapely.Point(5, 5).buffer(4).difference(shapely.box(4, 4, 6, 6)))
STREETS = LinearNetwork([[0, 0], [10, 0], [10, 10], [0, 10]], [[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
MESHES = {
    "triangles": regular_triangulation(DISC, shape=(7, 7)),
    "squares": regular_squares(DISC, shape=(7, 7)),
    "segments": network_mesh(STREETS, 1.5),
    "triangles over streets": trace_mesh(STREETS, shape=(5, 5)),
}
over_meshes = pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)


@over_meshes
def test_gauss_points_are_exact(mesh):
    """On triangles and segments the other side is a closed form."""
    w = np.random.default_rng(0).normal(size=len(mesh.vertices))
    exact = integrate_exp(mesh, mesh.pieces, w[None])[0]
    assert Quadrature.of(mesh, "exact").integral(w) == pytest.approx(exact, rel=1e-9)


@over_meshes
@pytest.mark.parametrize("kind", ["voronoi", "basis", "exact"])
def test_constants_are_integrated_exactly(mesh, kind):
    w = np.full(len(mesh.vertices), -0.7)
    assert Quadrature.of(mesh, kind).integral(w) == pytest.approx(np.exp(-0.7) * mesh.domain.size, rel=1e-7)


FINER = {
    "triangles": regular_triangulation(DISC, shape=(25, 25)),
    "squares": regular_squares(DISC, shape=(25, 25)),
    "segments": network_mesh(STREETS, 0.4),
}


@pytest.mark.parametrize("kind", ["voronoi", "basis"])
@pytest.mark.parametrize("name", FINER)
def test_sums_over_vertices_converge_to_the_integral(name, kind):
    """At least with the share of the border: to less than a half, from meshes four times as coarse."""
    error = []
    for mesh in (MESHES[name], FINER[name]):
        x, y = mesh.vertices.T
        w = np.sin(x / 3) + np.cos(y / 2)
        error.append(abs(Quadrature.of(mesh, kind).integral(w) - Quadrature.of(mesh, "exact").integral(w)))
    assert error[1] < error[0] / 2


@pytest.mark.parametrize("kind", ["voronoi", "basis", "exact"])
@pytest.mark.parametrize("name", ["triangles", "segments"])
def test_models_have_the_likelihood_of_their_quadrature(name, kind):
    """Two fields' log-densities differ by the tents' masses, the rule's integrals, and the prior."""
    mesh = MESHES[name]
    rng = np.random.default_rng(1)
    if name == "segments":
        pattern = STREETS.pattern([0, 1, 4, 4], [0.1, 0.2, 0.3, 0.7])
    else:
        pattern = PointPattern([[2.0, 5.0], [3.0, 3.5], [8.0, 6.0]], DISC)
    covariance = PoweredExponential(1.0, 3.0, 1.0)
    model = build_lgcp(pattern, mesh, covariance, quadrature=kind)
    density = model.compile_logp(mode="FAST_COMPILE")
    rule, root = Quadrature.of(mesh, kind), factor(covariance.matrix(mesh))
    got, want = [], []
    for _ in range(3):
        c, z = rng.normal(), rng.normal(size=root.shape[1])
        w = c + root @ z
        got.append(density({"intercept": c, "z": z}))
        want.append(mesh.basis(pattern.positions).sum(axis=0) @ w - rule.integral(w) - (z**2).sum() / 2)
    np.testing.assert_allclose(np.diff(got), np.diff(want), rtol=1e-7)


def test_vertices_have_cells_on_fine_triangles_over_streets(monkeypatch):
    """A street may hardly touch one; without rounds in each element two have no cell, which is refused."""
    fork = LinearNetwork([[0, 0], [100, 0], [150, 80], [150, -80]], [[0, 1], [1, 2], [1, 3]])
    assert (dual_measure(trace_mesh(fork, spacing=9.0)) > 0).all()
    monkeypatch.setattr("dpppsynth.spatial.planar_mesh.PASSES", 0)
    mesh, covariance = trace_mesh(fork, spacing=9.0), PoweredExponential(1.0, 300.0)
    pattern = fork.pattern([0, 2], [0.5, 0.5])
    with pytest.raises(InputError, match=r"^mesh: .*next to nothing.*quadrature=\"exact\""):
        build_lgcp(pattern, mesh, covariance)
    build_lgcp(pattern, mesh, covariance, quadrature="exact")


@pytest.mark.parametrize("kind", ["midpoint", None, 3])
def test_unknown_quadratures_are_refused(kind):
    with pytest.raises(InputError, match="quadrature: expected one of"):
        Quadrature.of(MESHES["segments"], kind)
    with pytest.raises(InputError, match="quadrature: expected one of"):
        dual_measure(MESHES["segments"], kind)


@pytest.mark.slow
def test_exact_integrals_are_sampled():
    """By NUTS: under a flat level the posterior mean of the total intensity is the number of points.

    Its posterior deviation is the square root of that number, and the chains' effective size above 100.
    """
    rng = np.random.default_rng(2)
    xy = rng.uniform(1, 9, size=(200, 2))
    pattern = PointPattern(xy[DISC.contains(xy)], DISC)
    mesh = MESHES["triangles"]
    with build_lgcp(pattern, mesh, PoweredExponential(0.5, 3.0), quadrature="exact"):
        import pymc as pm

        trace = pm.sample(300, tune=300, chains=2, cores=1, random_seed=1, nuts_sampler="nutpie", progressbar=False)
    fields = trace.posterior["log_intensity"].to_numpy().reshape(-1, len(mesh.vertices))
    total = integrate_exp(mesh, mesh.pieces, fields).mean()
    assert abs(total - len(pattern)) < 6 * np.sqrt(len(pattern) / 100)

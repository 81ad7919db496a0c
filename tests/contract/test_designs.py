"""Released numbers as sums over the vertices of a mesh: models of one's own behind tents, counts, fields and marks."""

import numpy as np
import pytest
from support.cases import STREETS

import dpppsynth as dps
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import network_mesh
from dpppsynth.models import (
    NoisyMasses,
    PoweredExponential,
    build_noise_aware,
    factor,
    laplace_posterior,
    regular_triangulation,
)

WINDOW = dps.Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
COARSE, ALONG = regular_triangulation(WINDOW, shape=(5, 5)), network_mesh(STREETS, 120.0)
FINE = regular_triangulation(WINDOW, shape=(9, 9))
MARKS = dps.Marks(dps.Types("offence", ["burglary", "theft"]), dps.Times.day("hour", hats=3))
NEAR = dps.AlphaNeighbours(25.0, time=1.0, types="public")
PLANS = {
    "tents": dps.LaplaceSynthesizer(1.0, alpha=25.0, basis="tents", mesh=COARSE, postprocess="plain"),
    "counts": dps.LaplaceSynthesizer(1.0, alpha=25.0, mesh=COARSE, postprocess="plain"),
    "bounded": dps.BoundedErrorSynthesizer(epsilon=1.0, alpha=25.0, delta=1e-6, spacing=250.0),
    "field": dps.LGCPSynthesizer(1.0, alpha=25.0, mechanism="field", delta=1e-6, mesh=COARSE, length_scale=300.0),
    "tents on streets": dps.LaplaceSynthesizer(1.0, alpha=25.0, basis="tents", mesh=ALONG, postprocess="plain"),
    "counts on streets": dps.LaplaceSynthesizer(1.0, alpha=25.0, mesh=ALONG, postprocess="plain"),
    "marks": dps.MarkedSynthesizer(1.0, marks=MARKS, relation=NEAR, mesh=COARSE),
}


def points(name, n=300):
    """Points that lie unevenly, with marks where they are measured."""
    rng = np.random.default_rng(4)
    if "streets" in name:
        edge = rng.integers(0, len(STREETS.edges), n)
        return dps.PointPattern.at(np.column_stack([edge, rng.random(n) * STREETS.lengths[edge]]), STREETS)
    marks = {"offence": rng.choice(["burglary", "theft"], n), "hour": 24 * rng.random(n) ** 2}
    return dps.PointPattern(1000 * rng.random((n, 2)) ** [1.5, 1.0], WINDOW, marks if name == "marks" else None)


def measured(name):
    pattern = points(name)
    return PLANS[name].plan(pattern.domain, n=len(pattern)).statistic.measure(pattern, 1)


@pytest.mark.parametrize("name", PLANS)
def test_a_model_of_released_numbers_is_finite(name):
    """With one row for each vertex in the place of each number, counts and marks failed inside PyTensor."""
    said = measured(name)
    likelihood, design = said.likelihood(), said.design()
    assert design.shape == (len(said.values), len(likelihood.measure))
    rng = np.random.default_rng(5)
    z, basis = rng.normal(size=3), rng.normal(size=(len(likelihood.measure), 3))
    value = likelihood.log_density(basis @ z)[0]
    model = build_noise_aware(likelihood, basis)
    sum_of_prior = -(z @ z) / 2 - 3 * np.log(2 * np.pi) / 2
    assert model.compile_logp(jacobian=False)({"z": z}) == pytest.approx(value + sum_of_prior)


@pytest.mark.parametrize("name", PLANS)
def test_a_design_gives_the_means_of_the_numbers(name):
    """Integrals of what is measured, where the intensity is even, over a mesh that is finer as well."""
    said = measured(name)
    plan = said.definition
    for mesh in (None, network_mesh(STREETS, 25.0) if "streets" in name else FINE):
        means = said.design(mesh) @ said.likelihood(mesh).measure
        if name == "marks":
            expected = np.tile(COARSE.measure * 24 / 3, 2 * 3).reshape(2, 3, -1).ravel()
        elif name == "field":
            expected = plan.root @ COARSE.measure
        elif "tents" in name:
            expected = plan.mesh.measure
        else:
            expected = plan.mesh.element_measure
        np.testing.assert_allclose(means, expected, rtol=1e-9)


def test_counts_on_streets_are_halves_of_both_ends():
    design = measured("counts on streets").design().toarray()
    expected = np.zeros_like(design)
    for k, ends in enumerate(ALONG.elements):
        for v in ends:
            expected[k, v] += ALONG.element_measure[k] / 2 / ALONG.measure[v]
    np.testing.assert_allclose(design, expected, atol=1e-12)


def test_the_variance_is_that_of_the_noise():
    said = measured("bounded")
    assert said.likelihood().noise_variance == said.definition.noise_variance
    assert said.likelihood().noise_variance < 2 * said.noise_scale**2


def test_a_likelihood_finds_where_points_are():
    """Counts on streets whose first edge holds nearly all: the posterior's mode is highest there."""
    rng = np.random.default_rng(6)
    edge = np.where(rng.random(2000) < 0.9, 0, rng.integers(0, len(STREETS.edges), 2000))
    pattern = dps.PointPattern.at(np.column_stack([edge, rng.random(2000) * STREETS.lengths[edge]]), STREETS)
    said = PLANS["counts on streets"].plan(STREETS, n=2000).statistic.measure(pattern, 1)
    root = factor(PoweredExponential(1.0, 200.0, power=1).matrix(ALONG))
    sparse = NoisyMasses(said.masses, said.noise_scale, ALONG.measure, said.design(), 2000)
    modes = [laplace_posterior(each, root).field_mode for each in (said.likelihood(ALONG), sparse)]
    np.testing.assert_allclose(*modes)
    assert np.argmax(modes[0]) in ALONG.elements[ALONG.edge == 0]


def test_shapes_that_do_not_go_together_are_told():
    said = measured("counts on streets")
    k, v = len(said.masses), len(ALONG.measure)
    with pytest.raises(InputError, match=rf"^tents: has shape \({k}, {k}\).*{v} vertices.*design\(mesh\)"):
        NoisyMasses(said.masses, said.noise_scale, ALONG.measure, np.eye(k), 300)
    with pytest.raises(InputError, match=rf"^basis: has {k} rows.*{v} vertices"):
        build_noise_aware(said.likelihood(), np.eye(k))
    marked = measured("marks").likelihood()
    vertices = len(COARSE.measure)
    with pytest.raises(InputError, match=rf"{6 * vertices} = {vertices} vertices x 6 types and instants.*\(6, 1\)"):
        build_noise_aware(marked, np.eye(vertices))
    build_noise_aware(marked, np.tile(np.eye(vertices), (6, 1)))
    with pytest.raises(InputError, match=r"^mesh: is of another domain"):
        said.design(COARSE)
    moved = dps.MarkedSynthesizer(1.0, marks=dps.Marks(MARKS.types), relation=NEAR_MOVED, mechanism="moved")
    plan = moved.plan(WINDOW, n=300).statistic
    pattern = points("marks")
    with pytest.raises(InputError, match=r"^mesh: marked moved counts are no sums"):
        plan.measure(dps.PointPattern(pattern.xy, WINDOW, {"offence": pattern.marks["offence"]}), 1).design()


NEAR_MOVED = dps.AlphaNeighbours(25.0, types="public")

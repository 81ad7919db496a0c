"""Fields of bounded gradient: what the set holds, and that nothing pressed into it ever lies outside."""

import numpy as np
import pytest

from dpppsynth import Window, datasets
from dpppsynth.core.errors import InputError
from dpppsynth.models import regular_squares, regular_triangulation
from dpppsynth.models.target_posterior import LipschitzSet

WINDOW = Window.rectangle(0, 0, 10, 6)
MESHES = {
    "triangles": regular_triangulation(WINDOW, shape=(9, 7)),
    "squares": regular_squares(WINDOW, shape=(9, 7)),
    "soho": regular_triangulation(datasets.soho_deaths().domain, shape=(11, 11)),
}
every_mesh = pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)


def rough_fields(mesh, count, seed=0):
    """Fields of every size, from flat to absurdly steep, smooth ones and single spikes."""
    rng = np.random.default_rng(seed)
    smooth = rng.normal(size=(count, 2)) @ mesh.vertices.T / mesh.domain.diameter
    spikes = (np.arange(len(mesh.vertices)) == rng.integers(len(mesh.vertices), size=(count, 1))).astype(float)
    noise = rng.normal(size=(count, len(mesh.vertices)))
    fields = np.concatenate([smooth, spikes, noise, smooth + 1e-3 * noise])
    fields -= fields.mean(axis=1, keepdims=True)
    return fields * 10.0 ** rng.uniform(-9, 12, (len(fields), 1))


@every_mesh
@pytest.mark.parametrize("slope", [1e-3, 0.7, 40.0])
def test_a_pressed_field_is_always_inside(mesh, slope):
    """At log-intensities of up to 30 beside the field's own variation."""
    support = LipschitzSet(mesh, slope)
    level = np.linspace(-30, 30, 1200)[:, None]
    assert np.all(support(support.press(rough_fields(mesh, 300) + level)))


@every_mesh
def test_pressing_leaves_gentle_fields_and_levels_alone(mesh):
    """Squared gradients below 1 % of the bound: off by less than 1e-6. The mean never changes."""
    support = LipschitzSet(mesh, 0.7)
    fields = rough_fields(mesh, 50)
    fields *= 0.05 * 0.7 / support.steepness(fields)[:, None]
    pressed = support.press(fields + 3.0)
    np.testing.assert_allclose(pressed - 3.0, fields, rtol=0, atol=1e-6 * np.abs(fields).max())
    steep = 1e3 * fields + 3.0
    np.testing.assert_allclose(support.press(steep).mean(axis=1), steep.mean(axis=1), atol=1e-9 * np.abs(steep).max())


@every_mesh
def test_steep_fields_are_pressed_close_to_the_border(mesh):
    """`q / M` is at least C^(-1/16) for C corners, so a steep field keeps C^(-1/32) of the slope: 0.82 for 500."""
    support = LipschitzSet(mesh, 0.7)
    fields = rough_fields(mesh, 50)
    fields *= 1e4 / support.steepness(fields)[:, None]
    assert support.steepness(support.press(fields)).min() > 0.82 * 0.7


@every_mesh
def test_steepness_is_the_largest_rate_of_change(mesh):
    """Short moves inside elements never exceed it and, out of a steepest corner, reach it; the middle would not do."""
    rng = np.random.default_rng(1)
    field = rng.normal(size=len(mesh.vertices))
    steepest = LipschitzSet(mesh, 1.0).steepness(field[None])[0]
    weight = rng.dirichlet(np.full(mesh.elements.shape[1], 0.02), size=(200, len(mesh.elements)))
    start = np.einsum("stk,tki->sti", weight, mesh.vertices[mesh.elements]).reshape(-1, 2)
    element = np.tile(np.arange(len(mesh.elements)), 200)
    step = 1e-6 * np.sqrt(mesh.area.min())
    angle = rng.uniform(0, 2 * np.pi, len(start))
    values = field[mesh.elements[element]]
    stop = start + step * np.column_stack([np.cos(angle), np.sin(angle)])
    rate = np.abs(((mesh.weights(element, stop) - mesh.weights(element, start)) * values).sum(axis=1)) / step
    assert rate.max() < steepest * (1 + 1e-5)
    assert rate.max() > 0.99 * steepest


def test_planes_have_the_steepness_of_their_slope():
    for mesh in MESHES.values():
        plane = 5.0 + mesh.vertices @ [0.3, -0.4]
        support = LipschitzSet(mesh, 0.5 * (1 + 1e-9))
        np.testing.assert_allclose(support.steepness(plane[None]), 0.5, rtol=1e-9)
        assert support(np.stack([plane, 1.01 * plane])).tolist() == [True, False]


@pytest.mark.parametrize("slope", [0.0, -1.0, np.inf, np.nan])
def test_impossible_slopes_are_refused(slope):
    with pytest.raises(InputError, match="slope"):
        LipschitzSet(MESHES["squares"], slope)


@pytest.mark.slow
@every_mesh
def test_press_in_pytensor_is_the_same_map_and_has_a_gradient_everywhere(mesh):
    """A flat field is where a sampler may start."""
    import pytensor
    import pytensor.tensor as pt

    support = LipschitzSet(mesh, 0.7)
    w = pt.dvector()
    pressed = support.press(w)
    evaluate = pytensor.function([w], [pressed, pytensor.grad((pressed**2).sum(), w)], mode="FAST_COMPILE")
    for field in [*rough_fields(mesh, 2), np.zeros(len(mesh.vertices))]:
        value, gradient = evaluate(field)
        np.testing.assert_allclose(value, support.press(field), rtol=1e-9, atol=1e-12 * np.abs(field).max())
        assert np.all(np.isfinite(gradient))

"""Filters of positions: exact means by quadrature, circles, bounds, restarts and refusals."""

import math

import numpy as np
import pytest

from dpppsynth.core.errors import InputError
from dpppsynth.filters import cartesian_filter, particle_filter, polar_filter
from dpppsynth.inference.filters.planar import _angles, _law, circular_mean, wrapped
from dpppsynth.truncated import PlanarLaplace

NOISE = {"epsilon": 1.0, "bound": 4.0}


def moved(points, epsilon, bound, rng):
    """Points with truncated planar Laplace noise by rejection: no code of the package takes part."""
    radii = rng.gamma(2.0, 1 / epsilon, 40 * len(points))
    radii, angles = radii[radii <= bound][: len(points)], rng.uniform(0, 2 * np.pi, len(points))
    return points + radii[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])


@pytest.mark.parametrize("bound", [4.0, math.inf])
def test_cartesian_filter_finds_the_exact_mean(bound):
    # The second mean: likelihood of the second report times the first posterior after a Gaussian step, on a grid.
    reach, h, step = min(bound, 9.0), 0.15, 0.8
    side = np.arange(-reach - h / 2, reach + h, h)
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    report = np.array([2.0, -1.0])
    likelihood = np.exp(-np.hypot(*grid.T)) * (np.hypot(*grid.T) <= bound)
    first = likelihood.reshape(len(side), -1)
    kernels = [np.exp(-((side[:, None] + report[d] - side[None, :]) ** 2) / (2 * step**2)) for d in range(2)]
    density = likelihood * (kernels[0] @ first @ kernels[1].T).ravel()
    exact = report + density @ grid / density.sum()
    found = [
        cartesian_filter([[0, 0], report], epsilon=1.0, bound=bound, step=step, particles=8000, rng=i) for i in range(8)
    ]
    # Standard deviation of one run about 0.02.
    np.testing.assert_allclose(np.mean([each.estimate[1] for each in found], axis=0), exact, atol=0.04)
    assert found[0].estimate[0].tolist() == [0.0, 0.0]
    assert found[0].bound == 2 * bound


def test_both_filters_gain_on_smooth_tracks_and_stay_within_the_bound():
    rng = np.random.default_rng(1)
    truth = np.cumsum(rng.normal(size=(150, 2)), axis=0) + np.array([400.0, 0.0])
    reports = moved(truth, 0.1, 100.0, rng)
    noise = {"epsilon": 0.1, "bound": 100.0, "particles": 300, "rng": 2}
    raw = ((reports - truth) ** 2).sum(axis=1).mean()
    for found in (
        cartesian_filter(reports, step=1.0, **noise),
        polar_filter(reports, origin=[0, 0], radial_step=1.0, angular_step=1 / 400, **noise),
    ):
        # Ratios were 0.06 over 30 runs.
        assert ((found.estimate - truth) ** 2).sum(axis=1).mean() < 0.3 * raw
        assert (np.hypot(*(found.estimate - reports).T) <= 100.0).all()
        assert found.bound == 200.0


@pytest.mark.parametrize("origin", [[0.0, 0.0], [3.0, 0.0], [500.0, 500.0]])
@pytest.mark.parametrize("bound", [4.0, math.inf])
def test_polar_filter_stays_within_the_bound_about_any_origin(origin, bound):
    rng = np.random.default_rng(5)
    reports = rng.uniform(-6, 6, (60, 2))
    reports[7] = origin
    found = polar_filter(reports, origin=origin, epsilon=1.0, bound=bound, particles=50, rng=1)
    assert np.isfinite(found.estimate).all()
    assert (np.hypot(*(found.estimate - reports).T) <= bound * (1 + 1e-12)).all()
    assert found.bound == 2 * bound
    assert len(found.step) == 2
    # The first report stands for itself.
    np.testing.assert_allclose(found.estimate[0], reports[0], atol=1e-9)


def test_distances_are_never_filtered_to_below_zero():
    # A single particle that walks about a distance of 0.1: where it is below zero, the estimate is the origin.
    walk = {"particles": 1, "rng": 3}
    radial = particle_filter(np.full(40, 0.1), scale=1.0, bound=math.inf, step=1.0, **walk).estimate
    assert (radial < -0.1).any()
    steps = {"radial_step": 1.0, "angular_step": 0.1}
    found = polar_filter(np.tile([0.1, 0.0], (40, 1)), origin=[0, 0], epsilon=1.0, bound=math.inf, **steps, **walk)
    np.testing.assert_allclose(np.hypot(*found.estimate.T), np.maximum(radial, 0), atol=1e-12)


def test_angles_are_averaged_on_the_circle():
    assert abs(circular_mean(np.array([0.1, 2 * np.pi - 0.1]), np.array([0.5, 0.5]))) < 1e-12
    assert math.isclose(circular_mean(np.array([0.0, np.pi / 2]), np.array([0.9, 0.1])), math.atan2(0.1, 0.9))
    np.testing.assert_allclose(wrapped(np.array([0.0, 3 * np.pi - 0.1, -7.0])), [0, np.pi - 0.1, 2 * np.pi - 7.0])
    # Reports to both sides of the half-line where angles jump: a linear mean would point the other way.
    track = np.column_stack([np.full(40, -300.0), 5.0 * (-1) ** np.arange(40)])
    found = polar_filter(track, origin=[0, 0], epsilon=1.0, bound=20.0, angular_step=0.003, radial_step=1.0, rng=1)
    assert (np.hypot(*(found.estimate - [-300.0, 0.0]).T) < 12.0).all()
    assert found.restarts == 0


def test_the_law_of_an_angle_follows_from_the_distance():
    law = _law(10.0, 2.0, 5.0)
    assert (law.scale, law.bound) == (1 / 20, math.asin(1 / 2))
    # The noise may reach around the origin, or there is no direction at all.
    assert _law(5.0, 2.0, 5.0) is None
    assert _law(0.0, 2.0, math.inf) is None
    assert _law(10.0, 2.0, math.inf).bound == math.pi
    # One exact mean: a report near the origin says nothing about the angle, so it stays where it was.
    offsets = np.array([[30.0, 0.0], [0.0, 1.0]])
    noise = PlanarLaplace(1.0, 5.0)
    found, restarts = _angles(offsets, noise, 1e-6, particles=2000, resample=True, rng=np.random.default_rng(1))
    assert abs(found[1]) < 1e-3
    assert restarts == 0


def test_estimated_steps_are_those_of_noisy_tracks():
    rng = np.random.default_rng(2)
    truth = np.cumsum(8 * rng.normal(size=(400, 2)), axis=0)
    reports = moved(truth, 1.0, 5.0, rng)
    noise = {"epsilon": 1.0, "bound": 5.0, "particles": 2, "rng": 1}
    named, polar = {"step": "differences"}, {"radial_step": "differences", "angular_step": "differences"}
    assert abs(cartesian_filter(reports, **named, **noise).step - 8.0) < 1.0
    angles = np.cumsum(0.1 * rng.normal(size=400))
    around = moved(100 * np.column_stack([np.cos(angles), np.sin(angles)]), 1.0, 5.0, rng)
    radial, angular = polar_filter(around, origin=[0, 0], **polar, **noise).step
    assert abs(angular - 0.1) < 0.02
    assert radial < 1.0
    # By default, tracks with steps far below the noise.
    slow = moved(truth / 40, 1.0, 5.0, rng)
    assert 0.1 < cartesian_filter(slow, **noise).step < 0.4
    radial, angular = polar_filter(around, origin=[0, 0], **noise).step
    assert radial < 0.3
    assert abs(angular - 0.1) < 0.025


def test_impossible_jumps_begin_anew_and_seeds_reproduce():
    track = [[0.0, 0.0], [1.0, 0.0], [1e5, 1e5], [1e5, 1e5]]
    first, again = (cartesian_filter(track, **NOISE, step=1.0, rng=3) for _ in range(2))
    assert first.restarts == 1
    assert first.estimate[2].tolist() == [1e5, 1e5]
    np.testing.assert_array_equal(first.estimate, again.estimate)
    first, again = (polar_filter(track, origin=[-50, 0], **NOISE, rng=3) for _ in range(2))
    np.testing.assert_array_equal(first.estimate, again.estimate)
    assert cartesian_filter([[3.0, 4.0]], **NOISE).estimate.tolist() == [[3.0, 4.0]]


@pytest.mark.parametrize(
    "points",
    [None, [], [1.0, 2.0], [[1.0]], [[1, 2, 3]], [[math.nan, 0]], [[math.inf, 0]], "x", [[True, False]], [[1, 2], [3]]],
)
def test_bad_points_are_refused(points):
    with pytest.raises(InputError, match="points"):
        cartesian_filter(points, **NOISE)
    with pytest.raises(InputError, match="points"):
        polar_filter(points, origin=[0, 0], **NOISE)


@pytest.mark.parametrize("value", [True, math.nan, 0, -1.0, "x", 10**400, [1], object()])
@pytest.mark.parametrize("name", ["epsilon", "bound", "step", "particles"])
def test_bad_numbers_are_refused_by_name(name, value):
    with pytest.raises(InputError, match=name):
        cartesian_filter([[0, 0], [1, 1]], **{**NOISE, name: value})
    for polar in {"step": ("radial_step", "angular_step")}.get(name, (name,)):
        with pytest.raises(InputError, match="step" if "step" in polar else name):
            polar_filter([[9, 0], [8, 1]], origin=[0, 0], **{**NOISE, polar: value})


@pytest.mark.parametrize("origin", [None, [], [1.0], [[0, 0]], [math.nan, 0], [True, False], "ab", [10**400, 1]])
def test_bad_origins_are_refused(origin):
    with pytest.raises(InputError, match="origin"):
        polar_filter([[9, 0], [8, 1]], origin=origin, **NOISE)

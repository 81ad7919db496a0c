"""Grid filter and smoother: means against brute force over all paths, the bound, restarts and refusals."""

import itertools
import math

import numpy as np
import pytest
from baselines.grid_filters import grid_filter, grid_smoother

from dpppsynth.core.errors import InputError
from dpppsynth.filters import estimated_step, likely_step

LINE = {"scale": 1.0, "bound": 4.0, "step": 1.0}


@pytest.mark.parametrize(
    ("bound", "step", "means"), [(4.0, 1.0, (0, 0.65011, 1.94821)), (2.0, 0.5, (0, 0.5685, 1.74126))]
)
def test_filter_finds_the_exact_means(bound, step, means):
    found = grid_filter([0, 1, 3], scale=1.0, bound=bound, step=step)
    np.testing.assert_allclose(found, means, atol=5e-5)
    # Cells four times wider: the error is that of a midpoint rule.
    wide = grid_filter([0, 1, 3], scale=1.0, bound=bound, step=step, spacing=step / 5)
    np.testing.assert_allclose(wide, means, atol=2e-3)


@pytest.mark.parametrize("bound", [1.5, math.inf])
def test_filter_and_smoother_equal_sums_over_all_paths(bound):
    # Every path over three coarse grids, with densities written down anew.
    noisy, scale, step, h = np.array([0.3, 1.4, 0.2]), 0.6, 0.8, 0.1
    reach = min(bound, 8.0)
    if bound == math.inf:
        h = 0.16
    grids = [y - reach + h * (np.arange(round(2 * reach / h)) + 0.5) for y in noisy]
    likelihood = [np.exp(-np.abs(y - x) / scale) for y, x in zip(noisy, grids, strict=True)]
    step_01, step_12 = (np.exp(-((grids[k + 1][None, :] - grids[k][:, None]) ** 2) / (2 * step**2)) for k in range(2))
    joint = np.einsum("i,ij,j,jk,k->ijk", likelihood[0], step_01, likelihood[1], step_12, likelihood[2])
    smooth = [np.tensordot(joint.sum(axis=tuple({0, 1, 2} - {k})), grids[k], 1) / joint.sum() for k in range(3)]
    two = np.einsum("i,ij,j->j", likelihood[0], step_01, likelihood[1])
    settings = {"scale": scale, "bound": bound, "step": step, "spacing": 0.02}
    np.testing.assert_allclose(grid_smoother(noisy, **settings), smooth, atol=3e-3)
    np.testing.assert_allclose(grid_filter(noisy, **settings), [0.3, two @ grids[1] / two.sum(), smooth[2]], atol=3e-3)


def test_the_last_mean_is_the_same_and_the_smoother_does_better():
    rng = np.random.default_rng(3)
    truth = np.cumsum(rng.normal(size=150))
    errors = rng.laplace(scale=10.0, size=600)
    noisy = truth + errors[np.abs(errors) < 50][:150]
    settings = {"scale": 10.0, "bound": 50.0, "step": 1.0}
    one, both = grid_filter(noisy, **settings), grid_smoother(noisy, **settings)
    assert math.isclose(one[-1], both[-1], rel_tol=1e-9)
    raw, one, both = (np.mean((found[5:] - truth[5:]) ** 2) for found in (noisy, one, both))
    assert both < 0.8 * one
    assert one < 0.2 * raw
    # Time runs backwards in it as well as forwards.
    np.testing.assert_allclose(
        grid_smoother(noisy[::-1], **settings)[::-1], grid_smoother(noisy, **settings), atol=0.02
    )


def test_moving_a_series_moves_its_means():
    noisy = np.array([0.0, 1.0, 3.0, 2.5])
    for call in (grid_filter, grid_smoother):
        np.testing.assert_allclose(call(noisy + 1e6, **LINE) - 1e6, call(noisy, **LINE), atol=1e-7)
        np.testing.assert_allclose(call(-noisy, **LINE), -call(noisy, **LINE), atol=1e-9)
        np.testing.assert_allclose(call(7 * noisy, scale=7.0, bound=28.0, step=7.0), 7 * call(noisy, **LINE), atol=1e-9)


def test_series_side_by_side_are_solved_one_by_one():
    noisy = np.random.default_rng(8).normal(size=(9, 3)).cumsum(axis=0)
    steps, noise = np.array([0.3, 1.0, 2.0]), {"scale": 1.0, "bound": 4.0}
    for call in (grid_filter, grid_smoother):
        alone = [call(one, step=step, **noise) for one, step in zip(noisy.T, steps, strict=True)]
        np.testing.assert_array_equal(call(noisy, step=steps, **noise), np.column_stack(alone))


def test_steps_are_estimated_from_each_series():
    noisy = np.random.default_rng(9).normal(size=(9, 2)).cumsum(axis=0) * [1.0, 9.0]
    noise = {"scale": 0.4, "bound": 2.0}
    for call in (grid_filter, grid_smoother):
        for name, rule in (("likely", likely_step), ("differences", estimated_step)):
            each = np.array([rule(one, **noise) for one in noisy.T])
            np.testing.assert_allclose(call(noisy, step=name, **noise), call(noisy, step=each, **noise), atol=1e-9)
        # A constant series has the smallest step, whose cells are not too many.
        assert np.abs(call(np.zeros(3), scale=1.0, bound=math.inf)).max() < 1e-9


def test_jumps_that_no_walk_makes_begin_anew():
    noisy = [0.0, 1.0, 1e5, 1e5 + 1]
    one, both = grid_filter(noisy, **LINE), grid_smoother(noisy, **LINE)
    np.testing.assert_allclose(one[:2], grid_filter(noisy[:2], **LINE))
    np.testing.assert_allclose(one[2:], grid_filter(noisy[2:], **LINE), atol=1e-9)
    np.testing.assert_allclose(both[:2], grid_smoother(noisy[:2], **LINE))
    np.testing.assert_allclose(both[2:], grid_smoother(noisy[2:], **LINE), atol=1e-9)


@pytest.mark.parametrize("noisy", [[5.0], [2.0] * 4, [0.0, 30.0, 0.0], [0.0, 44.0, 88.0]])
@pytest.mark.parametrize("settings", [LINE, {**LINE, "step": 1e6}, {**LINE, "step": 0.01}, {**LINE, "scale": 1e9}])
def test_means_are_finite_and_within_the_bound(noisy, settings):
    for call in (grid_filter, grid_smoother):
        assert (np.abs(call(noisy, **settings) - noisy) <= 4.0).all()


def test_bad_settings_are_refused():
    for call, (name, value) in itertools.product(
        (grid_filter, grid_smoother),
        [
            ("scale", 0),
            ("bound", -1),
            ("step", math.nan),
            ("step", None),
            ("spacing", 0),
            ("spacing", 1.5),
            ("spacing", 1e-9),
        ],
    ):
        with pytest.raises(InputError, match=name):
            call([0, 1], **{**LINE, name: value})
    with pytest.raises(InputError, match="one series"):
        grid_filter(np.zeros((3, 2, 2)), **LINE)
    with pytest.raises(InputError, match="'likely', 'differences' or a positive number"):
        grid_smoother([0, 1], **{**LINE, "step": "kalman"})
    with pytest.raises(InputError, match="spacing"):
        grid_filter([0, 1e90], **LINE)

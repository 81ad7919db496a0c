"""The particle filter of series: oracle values, the bound, restarts, proposals, and what it refuses."""

import inspect
import math

import numpy as np
import pytest
from baselines.filter_theory import relative_variance
from baselines.grid_filters import grid_filter, grid_smoother
from scipy import integrate, stats

from dpppsynth import filters
from dpppsynth.core.errors import InputError
from dpppsynth.filters import Filtered, estimated_step, likely_step, particle_filter
from dpppsynth.inference.filters import particle
from dpppsynth.inference.filters import series as steps_module
from dpppsynth.inference.filters.particle import _Walks, effective_size, follow, resampled, updated

LINE = {"scale": 1.0, "bound": 4.0, "step": 1.0}


def noise(scale, bound, size, rng):
    """Truncated Laplace variables by rejection: no code of the package takes part."""
    draws = rng.laplace(scale=scale, size=20 * np.prod(size))
    return draws[np.abs(draws) <= bound][: np.prod(size)].reshape(size)


# Exact means of the three states given (0, 1, 3), by a grid of 10^5 cells. The filter of 40000 particles had a standard
# deviation below 0.013 for every proposal; over 16 series side by side 6 standard errors are 0.02.
@pytest.mark.parametrize(
    ("settings", "means"),
    [
        ({"scale": 1.0, "bound": 4.0, "step": 1.0}, (0.0, 0.65011, 1.94821)),
        ({"scale": 1.0, "bound": 4.0, "step": 1.0, "proposal": "uniform"}, (0.0, 0.65011, 1.94821)),
        ({"scale": 1.0, "bound": 4.0, "step": 1.0, "proposal": "gaussian"}, (0.0, 0.65011, 1.94821)),
        (
            {"scale": 1.0, "bound": 4.0, "step": 1.0, "proposal": "gaussian", "proposal_sd": 2.5},
            (0.0, 0.65011, 1.94821),
        ),
        ({"scale": 1.0, "bound": 4.0, "step": 1.0, "resample": False}, (0.0, 0.65011, 1.94821)),
        ({"scale": 1.0, "bound": 2.0, "step": 0.5}, (0.0, 0.56850, 1.74126)),
    ],
)
def test_it_finds_the_exact_means(settings, means):
    side_by_side = np.repeat([[0.0], [1.0], [3.0]], 16, axis=1)
    found = particle_filter(side_by_side, particles=10_000, rng=3, **settings)
    np.testing.assert_allclose(found.estimate.mean(axis=1), means, atol=0.02)


def test_an_infinite_bound_is_the_laplace_likelihood():
    # By quadrature of the first two states, flat prior on the first.
    def density(x1, x0, power):
        return x1**power * math.exp(-abs(x0) - abs(2 - x1) - (x1 - x0) ** 2 / 2)

    moments = [integrate.dblquad(density, -12, 12, -12, 12, args=(p,), epsabs=1e-6, epsrel=1e-4)[0] for p in (0, 1)]
    found = particle_filter(
        np.repeat([[0.0], [2.0]], 9, axis=1), scale=1.0, bound=math.inf, step=1.0, particles=9000, rng=1
    )
    assert found.bound == math.inf
    np.testing.assert_allclose(found.estimate[1].mean(), moments[1] / moments[0], atol=0.02)


def test_estimates_are_within_the_bound_of_the_observations_and_twice_of_the_truth():
    rng = np.random.default_rng(0)
    truth = rng.uniform(0, 100, (150, 5))
    noisy = truth + noise(10.0, 30.0, truth.shape, rng)
    for proposal in ("bootstrap", "uniform", "gaussian"):
        found = particle_filter(noisy, scale=10.0, bound=30.0, step=3.0, proposal=proposal, particles=100, rng=1)
        assert (np.abs(found.estimate - noisy) <= 30.0).all()
        assert found.bound == 60.0


def test_the_bound_of_the_release_itself_is_lost():
    # The truth jumps from 0 to 9 while the noise is at its worst: admissible, and further off than 5.
    truth = np.r_[np.zeros(30), np.full(5, 9.0)]
    errors = np.r_[np.zeros(30), np.full(5, -4.9)]
    found = particle_filter(truth + errors, scale=1.0, bound=5.0, step=0.3, rng=1)
    assert 5.0 < np.abs(found.estimate - truth).max() <= found.bound == 10.0


def test_a_single_observation_and_the_first_are_returned_as_they_are():
    assert particle_filter([7.25], scale=3.0, bound=9.0, rng=1).estimate.tolist() == [7.25]
    assert particle_filter([7.25], scale=3.0, bound=9.0, particles=1).estimate.tolist() == [7.25]
    assert particle_filter([[1, 5]], scale=3.0, bound=9.0, rng=1).estimate.tolist() == [[1.0, 5.0]]


def test_the_first_particles_follow_the_exact_posterior():
    # A wrong one, such as a Gaussian, would still have the right mean.
    model = _Walks(np.zeros((1, 1)), particle.TruncatedLaplace(1.0, 5.0), 2000, None, None)
    first = model.start(0, np.array([True]), None)[0]
    law = stats.truncexpon(5.0)
    np.testing.assert_allclose(np.sort(np.abs(first))[::2], law.ppf((np.arange(1000) + 0.5) / 1000), atol=2e-2)
    np.testing.assert_allclose(np.sort(first), -np.sort(-first)[::-1], atol=1e-12)


def test_an_impossible_jump_begins_anew_at_the_observation():
    found = particle_filter([0.0, 0.0, 1e6, 1e6], scale=1.0, bound=5.0, step=1.0, rng=1)
    assert found.restarts == 1
    assert found.estimate[2] == 1e6
    # Each series on its own: the neighbour of one that jumps goes on.
    both = particle_filter([[0.0, 0.0], [1.0, 1e6], [2.0, 1e6]], scale=1.0, bound=5.0, step=1.0, rng=1)
    assert both.restarts == 1
    assert both.estimate[1, 1] == 1e6
    assert both.estimate[1, 0] < 1.0
    # Two series that begin anew at once are two restarts.
    assert particle_filter([[0, 0], [1e6, 1e6]], scale=1.0, bound=5.0, step=1.0, rng=1).restarts == 2


@pytest.mark.parametrize("proposal", ["uniform", "gaussian"])
def test_other_proposals_end_near_the_edge_of_the_bound(proposal):
    found = particle_filter([0.0, 0.0, 1e3], scale=1.0, bound=5.0, step=1.0, proposal=proposal, rng=1)
    assert found.restarts == 0
    assert 995 <= found.estimate[2] < 997


@pytest.mark.parametrize("proposal", ["bootstrap", "uniform", "gaussian"])
@pytest.mark.parametrize("observations", [np.full(20, 3.0), [0, 1e90, -1e90, 1e-90], np.arange(8) * 1e40])
@pytest.mark.parametrize("settings", [{}, {"step": 1e60}, {"step": 1e-90}, {"particles": 1}, {"resample": False}])
def test_nothing_divides_by_zero(proposal, observations, settings):
    found = particle_filter(
        observations, scale=0.1, bound=0.5, rng=1, proposal=proposal, **{"particles": 20, **settings}
    )
    assert (np.abs(found.estimate - observations) <= 0.5).all()


def test_the_same_seed_gives_the_same_and_another_does_not():
    first, again, other = (particle_filter([0, 1, 3], **LINE, rng=seed).estimate for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert (first[1:] != other[1:]).all()


def test_the_order_of_particles_does_not_matter():
    class Fixed(_Walks):
        """Normal numbers are fixed, and dealt out in one order or another."""

        order = np.arange(40)

        def start(self, k, rows, rng):
            return super().start(k, rows, rng)[:, self.order]

        def propose(self, k, particles, rng):
            normals = np.random.default_rng(k).standard_normal(particles.shape)[:, self.order]
            moved = particles + normals
            return moved, self.likelihood(k, moved)

    law = particle.TruncatedLaplace(1.0, 4.0)
    observations = np.array([[0.0], [1.0], [3.0], [2.0]])
    estimates = []
    for order in (np.arange(40), np.random.default_rng(9).permutation(40)):
        Fixed.order = order
        estimates.append(follow(Fixed(observations, law, 40, None, None), 4, rng=None, resample=False)[0])
    np.testing.assert_allclose(*estimates, rtol=1e-12)


def test_blocks_of_series_give_what_series_of_their_own_give(monkeypatch):
    rng = np.random.default_rng(2)
    noisy = np.cumsum(rng.normal(size=(12, 7)), axis=0) + noise(1.0, 4.0, (12, 7), rng)
    monkeypatch.setattr(particle, "BLOCK", 4000)
    together = particle_filter(noisy, **LINE, particles=4000, rng=1).estimate
    alone = np.column_stack([grid_filter(column, **LINE) for column in noisy.T])
    # Standard deviations are about 0.02: a series taken for its neighbour is off by much more.
    np.testing.assert_allclose(together, alone, atol=0.25)
    # Steps of their own: what takes one series for constant leaves the others as they were.
    steps = np.r_[1e-3, np.ones(6)]
    mixed = particle_filter(
        np.zeros((12, 1)) + noisy[:, 1:2] * (steps == 1), **{**LINE, "step": steps}, particles=2000, rng=1
    )
    assert mixed.step.tolist() == steps.tolist()
    assert np.abs(mixed.estimate[:, 0]).max() < 0.2
    np.testing.assert_allclose(mixed.estimate[:, 3], alone[:, 1], atol=0.25)


def test_smooth_series_gain_and_unrelated_answers_do_not():
    # Ratios were 0.07 and 1.8 over 40 runs; a filter that takes wrong weights does not come near the first.
    rng = np.random.default_rng(4)
    smooth, unrelated = np.cumsum(rng.normal(size=(100, 8)), axis=0), rng.uniform(0, 1000, (100, 8))
    ratios = []
    for truth in (smooth, unrelated):
        noisy = truth + noise(10.0, 50.0, truth.shape, rng)
        found = particle_filter(noisy, scale=10.0, bound=50.0, step=1.0, particles=300, rng=1).estimate
        ratios.append(((found - truth) ** 2).mean() / ((noisy - truth) ** 2).mean())
    assert ratios[0] < 0.25
    assert ratios[1] > 1.3


def test_the_step_is_estimated_from_noisy_numbers():
    rng = np.random.default_rng(5)
    truth = np.cumsum(20 * rng.normal(size=(2000, 3)), axis=0)
    noisy = truth + noise(10.0, 50.0, truth.shape, rng)
    # Squares have mean 400 + 2 * 176; without the second term the estimate would be 27.
    assert abs(estimated_step(noisy, 10.0, 50.0) - 20.0) < 2.0
    variance = integrate.quad(lambda z: 2 * z**2 * math.exp(-z / 10), 0, 50)[0] / (20 * (1 - math.exp(-5)))
    expected = math.sqrt(np.mean(np.diff(noisy[:, 0]) ** 2) - 2 * variance)
    assert math.isclose(estimated_step(noisy[:, 0], 10.0, 50.0), expected, rel_tol=1e-9)
    assert math.isclose(estimated_step(np.zeros(50), 10.0, 50.0), 0.01)
    assert math.isclose(estimated_step([3.0], 10.0, math.inf), 0.01)
    together = math.sqrt(np.mean(np.diff(noisy, axis=0) ** 2) - 2 * variance)
    assert math.isclose(estimated_step(noisy, 10.0, 50.0), together, rel_tol=1e-9)
    named = particle_filter(noisy[:9], scale=10.0, bound=50.0, step="differences", particles=2, rng=1)
    np.testing.assert_allclose(named.step, [estimated_step(one, 10.0, 50.0) for one in noisy[:9].T])


def test_the_likely_step_finds_steps_far_below_the_noise():
    # Of 20 series of 200 with step 2 and noise of standard deviation 13.3: exact Gaussian likelihood, and a range.
    rng = np.random.default_rng(6)
    truth = np.cumsum(2 * rng.normal(size=(200, 20)), axis=0)
    noisy = truth + noise(10.0, 50.0, truth.shape, rng)
    found = likely_step(noisy, 10.0, 50.0)
    assert 1.4 < found < 2.8
    each = [likely_step(one, 10.0, 50.0) for one in noisy.T]
    assert max(each) > 1.5 * min(each)
    for chosen in ({}, {"step": "likely"}):
        used = particle_filter(noisy, scale=10.0, bound=50.0, **chosen, particles=2, rng=1).step
        np.testing.assert_allclose(used, each, rtol=1e-12)
    # Against the covariance matrix of a walk with noise, first value given and flat.
    few, variance = noisy[:6, :3], 100.0
    steps = np.array([0.5, 3.0, 20.0])
    values = steps_module._log_likelihoods(few, variance, steps[:, None]).sum(axis=1)
    lags = np.minimum.outer(np.arange(1, 6), np.arange(1, 6))
    for step, value in zip(steps, values, strict=True):
        law = stats.multivariate_normal(np.zeros(5), step**2 * lags + variance * (np.eye(5) + 1))
        expected = law.logpdf((few[1:] - few[0]).T).sum() + 15 / 2 * math.log(2 * math.pi)
        assert math.isclose(value, expected, rel_tol=1e-9)
    assert likely_step([3.0], 10.0, 50.0) == likely_step([3.0, 3.0, 3.0], 10.0, 50.0) == 0.01
    # Squared jumps in units of a tiny noise are beyond floats.
    assert likely_step([0, 1e100, -1e100], 1e-100, 1.0) > 1e99


def test_no_filter_takes_true_answers():
    for name in ("particle_filter", "cartesian_filter", "polar_filter"):
        function = getattr(filters, name)
        parameters = inspect.signature(function).parameters.values()
        assert [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY] in (["observations"], ["points"])
        # And none estimates steps by the poor rule unless told.
        assert {p.default for p in parameters if p.name.endswith("step")} == {"likely"}
        with pytest.raises(TypeError):
            function([1.0], truth=[1.0], scale=1.0, bound=1.0)


def test_weights_sum_to_one_and_the_lost_are_named():
    weights, lost = updated(
        np.full((4, 2), 0.5), np.array([[0, 1.0], [-np.inf, -np.inf], [np.nan, -np.inf], [-1e9, -np.inf]])
    )
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert lost.tolist() == [False, True, True, False]
    np.testing.assert_allclose(weights[0], [1 / (1 + math.e), math.e / (1 + math.e)])
    assert weights[3].tolist() == [1.0, 0.0]
    # Particles without weight never regain any; where they alone come near the observation all is lost.
    weights, lost = updated(np.array([[1.0, 0.0]]), np.array([[-800.0, 0.0]]))
    assert lost.tolist() == [True]
    assert effective_size(np.array([[0.25] * 4, [1.0, 0, 0, 0]])).tolist() == [4.0, 1.0]


def test_resampling_copies_particles_by_their_weights():
    rng = np.random.default_rng(8)
    weights = rng.dirichlet(np.full(50, 0.3), size=6)
    particles = np.arange(300.0).reshape(6, 50)
    copies = np.zeros((6, 50))
    for _ in range(200):
        found = resampled(particles, weights, rng)
        assert (found // 50 == np.arange(6)[:, None]).all()
        each = np.bincount(found.astype(int).ravel(), minlength=300).reshape(6, 50)
        assert (np.abs(each - 50 * weights) < 1 + 1e-9).all()
        copies += each
    # A count is rounded up with the right probability: standard deviation at most 0.5 / sqrt(200) = 0.035.
    assert np.abs(copies / 200 - 50 * weights).max() < 0.22
    pairs = resampled(np.stack([particles, -particles], axis=-1), weights, rng)
    np.testing.assert_array_equal(pairs[..., 0], -pairs[..., 1])


def test_relative_variance_is_that_of_importance_sampling():
    assert math.isclose(relative_variance(1.44, 10, 1), 0.632434, abs_tol=5e-7)
    assert relative_variance(1.0, 7, 100) == relative_variance(1, 7, 100, resampled=True) == 0.0
    for s2 in (0.51, 0.8, 0.999999, 1.2, 7.0, 1e9):
        # E[w^2] - 1 of one coordinate by quadrature: N(0, 1) against N(0, s2).
        wide = 12 / math.sqrt(2 - 1 / s2)
        x = np.linspace(-wide, wide, 4001)
        second = np.trapezoid(np.exp(-(x**2) * (1 - 1 / (2 * s2))), x) * math.sqrt(s2 / (2 * math.pi))
        assert math.isclose(relative_variance(s2, 2, 5), (second**2 - 1) / 5, rel_tol=1e-6, abs_tol=1e-9)
        assert math.isclose(
            relative_variance(s2, 3, 5, resampled=True), 3 * (second - 1) / 5, rel_tol=1e-6, abs_tol=1e-9
        )
        assert relative_variance(s2, 2, 5) > 0
    # The formula as once printed lacks a square and is negative.
    assert 2 / 100 * ((1.2 / 1.4) ** 1 - 1) < 0 < relative_variance(1.2, 2, 100)
    assert relative_variance(1e50, 10**9, 1) == math.inf
    for s2 in (0.5, 0.1, 0, -1, math.nan):
        with pytest.raises(InputError, match="s2"):
            relative_variance(s2, 1, 1)


BAD_NUMBERS = [None, True, math.nan, 0, -1.0, "x", 10**400, 1 + 2j, [1, 2, 3], object()]


@pytest.mark.parametrize("value", BAD_NUMBERS)
@pytest.mark.parametrize("name", ["scale", "bound", "step", "proposal_sd", "particles"])
def test_bad_numbers_are_refused_by_name(name, value):
    good = {**LINE, "particles": 10, "proposal": "gaussian"}
    if value is None and name == "proposal_sd":
        assert (particle_filter([0, 1, 3], **good, rng=1).estimate != 0).any()
        return
    with pytest.raises(InputError, match=name):
        particle_filter([0, 1, 3], **{**good, name: value})


@pytest.mark.parametrize(
    "observations",
    [None, [], np.zeros((0, 3)), np.zeros((3, 0)), 5.0,
     [[[1.0]]], [math.nan], [math.inf, 1], ["x"], [True], [[1, 2], [3]],
     [2**70], {"a": 1}, [None, 1], np.ma.masked_array([1.0, 2.0], [True, False])],
)  # fmt: skip
def test_bad_observations_are_refused(observations):
    for call in (particle_filter, grid_filter, grid_smoother):
        with pytest.raises(InputError, match="observations"):
            call(observations, **LINE)
    with pytest.raises(InputError, match="observations"):
        estimated_step(observations, 1.0, 4.0)
    with pytest.raises(InputError, match="observations"):
        likely_step(observations, 1.0, 4.0)


def test_settings_that_do_not_fit_are_refused():
    for wrong, name in [
        ({"proposal": "kalman"}, "proposal"),
        ({"proposal": None}, "proposal"),
        ({"proposal_sd": 1.0}, "proposal_sd"),
        ({"proposal": "uniform", "bound": math.inf}, "proposal"),
        ({"particles": 2.5}, "particles"),
        ({"particles": 10**9}, "particles"),
        ({"resample": 1}, "resample"),
        ({"rng": "seed"}, "rng"),
        ({"step": [1.0]}, "step"),
        ({"step": math.inf}, "step"),
        ({"step": "kalman"}, "'likely', 'differences' or a positive number"),
        ({"step": None}, "'likely' and 'differences' estimate it"),
    ]:
        with pytest.raises(InputError, match=name):
            particle_filter([0, 1, 3], **{**LINE, **wrong})
    for steps in ([1.0], [1.0, 0.0], [1.0, math.nan], [[1.0, 1.0]], ["a", "b"]):
        with pytest.raises(InputError, match="step"):
            particle_filter([[0, 0], [1, 1]], **{**LINE, "step": steps})


def test_the_result_says_little_in_few_words():
    assert repr(Filtered(np.zeros(3), 2, 1.0, 8.0)) == "Filtered(shape=(3,), restarts=2, bound=8)"

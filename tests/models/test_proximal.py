"""The proximal sampler: its steps solved independently, and its privacy by quadrature of the chain's exact law.

With one coefficient the state before the last proximal map has a density that a matrix of transition probabilities
carries from step to step; the proximal map is injective and changes no divergence.
"""

import math

import numpy as np
import pytest

from dpppsynth.core.errors import InputError
from dpppsynth.models.target_posterior import FieldPrior, proximal_draw, proximal_factor
from dpppsynth.privacy import delta_gaussian

BASIS = np.array([[0.5, 0.1, 0.8], [-0.3, 0.9, 0.8], [0.4, 0.4, 0.8]])
PRIOR = FieldPrior(np.array([-1.0, 0.5, 0.0]), BASIS, np.array([2.0, 1.0, 4.0]))
MASSES = np.array([3.0, 0.5, 7.5])
EPSILONS = (0.0, 0.1, 0.3, 0.6, 1.0, 1.5)


class TestSteps:
    @pytest.mark.parametrize(("eta", "steps"), [(0.1, 6), (0.4, 3), (2.0, 1)])
    def test_every_step_is_an_implicit_gradient_step(self, eta, steps):
        """`z_new + eta grad V(z_new)` is what the step started from, noise and masses included."""
        posterior = PRIOR.posterior(MASSES)
        noise = np.random.default_rng(8).standard_normal((steps, 3))
        states = [np.zeros(3)] + [
            proximal_draw(posterior, np.random.default_rng(8), eta=eta, steps=k + 1) for k in range(steps)
        ]
        for before, after, normal in zip(states, states[1:], noise, strict=False):
            slope = after + BASIS.T @ (PRIOR.measure * np.exp(PRIOR.centre + BASIS @ after))
            start = before + eta * BASIS.T @ MASSES + math.sqrt(2 * eta) * normal
            np.testing.assert_allclose(after + eta * slope, start, atol=1e-9)

    def test_defaults(self):
        posterior = PRIOR.posterior(MASSES)
        default, given = (
            proximal_draw(posterior, np.random.default_rng(1), **k) for k in ({}, {"eta": 0.1, "steps": 41})
        )
        np.testing.assert_array_equal(default, given)
        assert proximal_factor() == proximal_factor(0.1, 41) == pytest.approx(1.0043154, abs=1e-7)

    def test_contracts(self):
        """Chains of different data with the same noise stay within a geometric series of what the masses change."""
        change = np.array([0.6, -0.6, 0.0])
        size = np.linalg.norm(BASIS.T @ change)
        for eta in (0.1, 1.0):
            for seed in range(5):
                one, other = (
                    proximal_draw(PRIOR.posterior(m), np.random.default_rng(seed), eta=eta, steps=8)
                    for m in (MASSES, MASSES + change)
                )
                kept = 1 / (1 + eta)
                reach = eta * size * sum(kept**j for j in range(1, 9))
                assert 0 < np.linalg.norm(one - other) < reach

    @pytest.mark.parametrize(("eta", "steps", "name"), [(0.0, 41, "eta"), (math.inf, 41, "eta"), (0.1, 0, "steps")])
    def test_refuses_settings_without_meaning(self, eta, steps, name):
        with pytest.raises(InputError, match=rf"^{name}: must be positive and finite"):
            proximal_draw(PRIOR.posterior(MASSES), np.random.default_rng(0), eta=eta, steps=steps)
        with pytest.raises(InputError, match=rf"^{name}: must be positive and finite"):
            proximal_factor(eta, steps)


LINE = FieldPrior(np.array([-1.0, -0.5]), np.array([[1.2], [0.2]]), np.array([1.5, 2.0]))


def slope(z):
    """Gradient of `V(z) = z^2/2 + measure'e^w` at z (m,)."""
    return z + np.exp(LINE.centre + np.multiply.outer(z, LINE.basis[:, 0])) @ (LINE.measure * LINE.basis[:, 0])


def prox(y, eta):
    """Proximal map of `eta V` at y (m,), by bisection."""
    low, high = np.full_like(y, -60.0), np.full_like(y, 60.0)
    for _ in range(60):
        middle = (low + high) / 2
        below = middle + eta * slope(middle) < y
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


class Chain:
    """Law of the proximal chain of one coefficient, on a grid of the states y before the proximal map."""

    def __init__(self, masses, eta, steps, *, shifts=1.0, noise=1.0):
        shift, sd = shifts * eta * float(LINE.basis[:, 0] @ masses), noise * math.sqrt(2 * eta)
        self.y = np.linspace(-6 - 7 * sd, 6 + 13 * eta + 7 * sd, 1501)
        self.z = prox(self.y, eta)
        step = np.exp(-(((self.y[:, None] - self.z - shift) / sd) ** 2) / 2)
        step *= (self.y[1] - self.y[0]) / (sd * math.sqrt(2 * math.pi))
        law = np.exp(-(((self.y - shift) / sd) ** 2) / 2)
        law /= law.sum()
        for _ in range(steps - 1):
            law = step @ law
        assert law.sum() == pytest.approx(1, abs=1e-6)
        assert max(law[0], law[-1]) < 1e-12
        self.law = law / law.sum()


NEIGHBOURS = {
    "few": (np.array([1.0, 0.0]), np.array([0.3, 0.7])),
    "many": (np.array([4.0, 6.0]), np.array([5.0, 5.0])),
}


class TestPrivacy:
    @staticmethod
    def worst(pair, eta, steps, **faults):
        """Largest ratio of the chains' hockey-stick divergence, either direction, to the Gaussian profile."""
        mu = abs(float(LINE.basis[:, 0] @ (pair[0] - pair[1]))) * proximal_factor(eta, steps)
        p, q = (Chain(masses, eta, steps, **faults).law for masses in pair)
        ratios = []
        for e in EPSILONS:
            divergence = max(np.clip(a - math.exp(e) * b, 0, None).sum() for a, b in ((p, q), (q, p)))
            ratios.append(divergence / delta_gaussian(e, mu) if delta_gaussian(e, mu) > 1e-7 else 0.0)
        return max(ratios)

    @pytest.mark.parametrize("pair", NEIGHBOURS.values(), ids=NEIGHBOURS)
    @pytest.mark.parametrize(
        ("eta", "steps", "reached"), [(0.1, 41, 0.05), (0.1, 5, 0.05), (1.0, 4, 0.05), (0.3, 1, 0.999), (3.0, 1, 0.999)]
    )
    def test_stays_below_the_profile(self, pair, eta, steps, reached):
        """One step attains the bound; sums over 1501 points are good to five parts in ten thousand."""
        assert reached < self.worst(pair, eta, steps) < 1.0005

    @pytest.mark.parametrize("fault", [{"shifts": 2.0}, {"noise": math.sqrt(0.5)}])
    def test_faults_show(self, fault):
        """Masses counted twice, or noise of variance eta."""
        assert self.worst(NEIGHBOURS["few"], 0.1, 41, **fault) > 1.1

    def test_attained_by_linear_chains(self):
        """Two Gaussian laws are mu' apart if the proximal map is `y / (1 + eta)` and the shift is aligned."""
        eta, steps, change = 0.5, 6, 0.8
        kept = (1 / (1 + eta)) ** np.arange(steps)
        apart = eta * change * kept.sum() / math.sqrt(2 * eta * (kept**2).sum())
        assert apart == pytest.approx(change * proximal_factor(eta, steps), rel=1e-12)


@pytest.mark.parametrize(("eta", "steps", "few", "many"), [(0.1, 41, 0.04, 0.08), (0.02, 200, 0.008, 0.02)])
def test_converges_to_the_posterior(eta, steps, few, many):
    """Total variation to the posterior, by quadrature: of the order of the step size."""
    for (masses, _), limit in zip(NEIGHBOURS.values(), (few, many), strict=True):
        chain = Chain(masses, eta, steps)
        w = LINE.centre + np.multiply.outer(chain.z, LINE.basis[:, 0])
        log_density = w @ masses - np.exp(w) @ LINE.measure - chain.z**2 / 2
        truth = np.exp(log_density - log_density.max()) * np.gradient(chain.z)
        distance = np.abs(truth / truth.sum() - chain.law).sum() / 2
        assert limit / 3 < distance < limit

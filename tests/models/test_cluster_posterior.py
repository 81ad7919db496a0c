"""The posterior of the law of clusters. False alarms of statistical tests are below 1e-6."""

import time

import numpy as np
import pytest
from scipy import integrate, stats

from dpppsynth.models.cluster_posterior import ClusterPosterior, ClusterPrior, PairLaws
from dpppsynth.models.cluster_process import NO_CLUSTERS

RADII, N = (15.0, 50.0), 400
PRIOR = ClusterPrior(RADII, streets=False)
BASE = np.array([0.1, 0.8])


def law_number(size, spread, share=0.0):
    return int(
        np.argmin(
            np.abs(np.log(PRIOR.table[:, :2] + 0.1) - np.log([size + 0.1, spread + 0.1])).sum(axis=1)
            + 10 * np.abs(PRIOR.table[:, 2] - share)
        )
    )


def mean_sums(law):
    """Sums that a pattern has on average, where caps bind smoothly."""
    same = (PRIOR.table[:, :3] == [law.size, law.spread, law.coincident]).all(axis=1)
    terms = BASE + PRIOR.neighbours[int(np.argmax(same))]
    return N / 2 * 10 * -np.expm1(-terms / 10)


def simulated(law, rng):
    return mean_sums(law) * np.exp(0.1 * rng.standard_normal() * np.ones(2) + 0.03 * rng.standard_normal(2))


def inferred(observed, scales=(1.0, 1.0), seed=1):
    rng = np.random.default_rng(seed)
    return ClusterPosterior.inferred(PRIOR, simulated, np.asarray(observed), scales, N, rng)


class TestLikelihood:
    @pytest.mark.parametrize("sd", [0.3, 2.0])
    def test_it_is_that_of_a_normal_law_plus_laplace_noise(self, sd):
        """Against quadrature of the convolution, for one sum."""
        laws = PairLaws(np.array([[0.0]]), np.array([[[sd**2]]]))
        away = np.array([-6.0, -3.0, -1.0, 0.0, 2.0, 5.0])
        found = np.array([laws.log_likelihood(np.array([x]), [1.0])[0] for x in away])
        exact = [
            integrate.quad(lambda t, x=x: stats.norm.pdf(x - t, 0, sd) * stats.laplace.pdf(t), -40, 40, points=[0, x])[
                0
            ]
            for x in away
        ]
        apart = found - np.log(exact)
        assert np.ptp(apart) < 0.35

    def test_sums_that_vary_together_are_no_two_pieces_of_evidence(self):
        together = PairLaws(np.zeros((1, 2)), np.array([[[1.0, 0.99], [0.99, 1.0]]]))
        alone = PairLaws(np.zeros((1, 2)), np.eye(2)[None])
        both = np.array([3.0, 3.0])
        drop = [
            laws.log_likelihood(both * 0, [0.01] * 2) - laws.log_likelihood(both, [0.01] * 2)
            for laws in (together, alone)
        ]
        assert drop[0] < 0.6 * drop[1]


class TestFit:
    def test_it_finds_the_means_of_laws_that_were_not_simulated(self):
        rng = np.random.default_rng(3)
        plain = np.array([simulated(NO_CLUSTERS, rng) for _ in range(16)])
        tried = 1 + rng.choice(len(PRIOR.table) - 1, 96, p=PRIOR.table[1:, 3] / PRIOR.table[1:, 3].sum())
        found = np.array([simulated(PRIOR.law(int(k)), rng) for k in tried])
        laws = PairLaws.fitted(PRIOR, N, plain, tried, found)
        likely = np.flatnonzero(PRIOR.table[:, 3] > 1e-4)
        exact = np.array([mean_sums(PRIOR.law(int(k))) for k in likely])
        off = np.abs(np.log(laws.mean[likely] / exact))
        assert np.median(off) < 0.05
        assert np.quantile(off, 0.95) < 0.2
        sd = np.sqrt(laws.covariance[likely][:, [0, 1], [0, 1]]) / laws.mean[likely]
        assert 0.05 < np.median(sd) < 0.2
        correlation = laws.covariance[likely[-1]][0, 1] / np.sqrt(np.prod(np.diag(laws.covariance[likely[-1]])))
        assert correlation > 0.6


class TestPosterior:
    def test_sums_of_the_intensity_alone_speak_against_clusters(self):
        found = inferred(mean_sums(NO_CLUSTERS))
        assert found.none > 0.8
        assert not found.likely
        assert found.central == NO_CLUSTERS

    @pytest.mark.parametrize(("size", "spread"), [(8, 10.0), (3, 5.0), (25, 30.0)])
    def test_laws_with_the_observed_sums_are_found(self, size, spread):
        law = PRIOR.law(law_number(size, spread))
        found = inferred(mean_sums(law))
        assert found.none < 1e-3
        rng = np.random.default_rng(2)
        predicted = np.array([mean_sums(found.draw(rng)) for _ in range(200)])
        assert (np.abs(np.log(np.median(predicted, axis=0) / mean_sums(law))) < 0.15).all()

    @pytest.mark.parametrize("cores", [1, 3])
    def test_simulations_are_independent_and_the_same_on_any_number_of_cores(self, monkeypatch, cores):
        monkeypatch.setattr("os.cpu_count", lambda: cores)
        first = []

        def simulate(law, rng):
            start = rng.bit_generator.state["state"]["state"]
            first.append(start)
            time.sleep(1e-4 * (start % 3))  # so that threads take turns
            return simulated(law, rng)

        rng = np.random.default_rng(5)
        found = ClusterPosterior.inferred(PRIOR, simulate, np.array([30.0, 300.0]), (9.0, 9.0), N, rng)
        assert len(set(first)) == len(first)
        np.testing.assert_array_equal(found.probabilities, inferred([30.0, 300.0], (9.0, 9.0), seed=5).probabilities)

    def test_noise_leaves_the_prior(self):
        found = inferred(mean_sums(PRIOR.law(law_number(8, 10.0))), scales=(1e7, 1e7))
        assert found.none == pytest.approx(0.8, abs=0.02)
        np.testing.assert_allclose(found.probabilities, PRIOR.table[:, 3], atol=0.01)

    def test_far_out_noise_is_no_evidence(self):
        """Three scales from what there is without clusters have one chance in twenty: normal noise would have less."""
        plain = mean_sums(NO_CLUSTERS)
        scale = 100.0
        far = inferred(plain + np.array([3 * scale, 0]), scales=(scale, scale)).none
        assert far > 0.1

    def test_draws_have_the_probabilities(self):
        found = inferred(mean_sums(PRIOR.law(law_number(4, 10.0))), scales=(60.0, 120.0))
        rng = np.random.default_rng(4)
        none = np.mean([found.draw(rng) == NO_CLUSTERS for _ in range(2000)])
        assert abs(none - found.none) < 6 * np.sqrt(0.25 / 2000)


class TestCentre:
    @staticmethod
    def of(weights, shared=False):
        prior = ClusterPrior(RADII, streets=False, shared=shared)
        found = np.zeros(len(prior.table))
        for (size, spread, share), weight in weights.items():
            found[int(np.argmin(np.abs(prior.table[:, :3] - [size, spread, share]).sum(axis=1)))] += weight
        return ClusterPosterior(prior, found / found.sum()), prior.table

    def test_it_is_the_mean_of_logarithms(self):
        found, table = self.of({(0, 1, 0): 0.2, (5, 10, 0): 0.4, (20, 40, 0): 0.4})
        laws = table[found.probabilities > 0][1:]
        assert found.central.size == pytest.approx(np.sqrt(laws[0, 0] * laws[1, 0]))
        assert found.central.spread == pytest.approx(np.sqrt(laws[0, 1] * laws[1, 1]))
        assert found.central.coincident == 0

    def test_shared_places_are_taken_where_they_are_likely(self):
        few, _ = self.of({(5, 10, 0): 0.6, (5, 10, 0.5): 0.4}, shared=True)
        many, _ = self.of({(5, 10, 0): 0.3, (5, 10, 0.4): 0.4, (5, 10, 0.8): 0.3}, shared=True)
        assert few.central.coincident == 0
        assert many.central.coincident == pytest.approx((0.4 * 0.4 + 0.3 * 0.8) / 0.7)

    def test_places_may_be_shared_without_clusters(self):
        found, _ = self.of({(0, 1, 0.5): 0.6, (5, 10, 0.5): 0.3, (0, 1, 0): 0.1}, shared=True)
        assert (found.central.size, found.central.coincident) == (0.0, pytest.approx(0.5))

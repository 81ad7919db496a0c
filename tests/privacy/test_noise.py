"""The noise: its laws, its independence, its scale, and audits that a faulty mechanism fails.

Noise of the operating system cannot be seeded, so every random check here fails by chance less than once in 1e6 runs;
the audits are seeded.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from support.seams import randomise_by
from support.subclasses import recast

from dpppsynth.contract import additive_noise as statistic_module
from dpppsynth.contract.additive_noise import LaplaceMasses
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.models import regular_squares, regular_triangulation
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne, laplace_noise, laplace_scale
from dpppsynth.privacy.noise import OpenDPGaussian, OpenDPLaplace, SeededGaussian, SeededLaplace, gaussian_noise
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

RARE = 1e-9


def spent_by_opendp(noise):
    return noise._measurement.map(noise.sensitivity)


def secret(scale):
    return OpenDPLaplace(scale, sensitivity=1, epsilon=1.001 / scale)


def law(scale, reach):
    """Exact probabilities of -reach..reach, the two tails put into the end cells."""
    k = np.arange(-reach, reach + 1)
    p = math.tanh(0.5 / scale) * np.exp(-np.abs(k) / scale)
    p[[0, -1]] += (1 - p.sum()) / 2
    return p


def chi_square(draws, scale):
    reach = max(1, int(2.5 * scale))
    seen = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=2 * reach + 1)
    return scipy.stats.chisquare(seen, law(scale, reach) * len(draws)).pvalue


@pytest.fixture(scope="module")
def drawn():
    """One big draw from OpenDP: 300 vectors of 100 entries at scale 3."""
    noise = secret(3.0)
    return np.array([noise.add(np.zeros(100, dtype=np.int64)) for _ in range(300)])


class TestLaw:
    @pytest.mark.parametrize("scale", [0.4, 1.0, 7.5])
    @pytest.mark.parametrize("build", [secret, lambda scale: SeededLaplace(scale, 1)], ids=["secret", "seeded"])
    def test_probabilities_are_exact(self, build, scale):
        assert chi_square(build(scale).add(np.zeros(20_000, dtype=np.int64)), scale) > RARE

    def test_the_check_sees_a_scale_that_is_ten_percent_off(self):
        assert chi_square(SeededLaplace(3.3, 1).add(np.zeros(20_000, dtype=np.int64)), 3.0) < RARE

    @pytest.mark.parametrize("build", [secret, lambda scale: SeededLaplace(scale, 2)], ids=["secret", "seeded"])
    def test_lattice_scales(self, build):
        """Scales of a million lattice units: |noise| is nearly exponential, and every residue occurs."""
        draws = build(1e6).add(np.zeros(20_000, dtype=np.int64))
        assert scipy.stats.kstest(np.abs(draws) / 1e6, "expon").pvalue > RARE
        assert scipy.stats.binomtest(int((draws > 0).sum()), len(draws)).pvalue > RARE
        residues = np.bincount(draws % 16, minlength=16)
        assert scipy.stats.chisquare(residues).pvalue > RARE

    def test_entries_are_independent(self, drawn):
        for a, b in [(drawn[:, :-1], drawn[:, 1:]), (drawn[:-1], drawn[1:]), (drawn[:, :50], drawn[:, 50:])]:
            table = np.zeros((3, 3))
            np.add.at(table, (np.sign(a).ravel() + 1, np.sign(b).ravel() + 1), 1)
            assert scipy.stats.chi2_contingency(table).pvalue > RARE
            assert scipy.stats.spearmanr(np.abs(a).ravel(), np.abs(b).ravel()).pvalue > RARE

    def test_no_two_calls_agree(self, drawn):
        """Entries of one vector, and vectors of one mechanism, never repeat."""
        assert len(np.unique(drawn, axis=0)) == len(drawn)
        assert len(np.unique(drawn, axis=1).T) == drawn.shape[1]

    @pytest.mark.parametrize("build", [secret, lambda scale: SeededLaplace(scale, 3)], ids=["secret", "seeded"])
    def test_is_added_to_the_values(self, build):
        values = np.array([0, 10**15, -(10**15), 7], dtype=np.int64)
        noised = build(2.0).add(values)
        assert noised.dtype == np.int64
        assert noised.shape == values.shape
        assert np.abs(noised - values).max() < 500
        assert values.tolist() == [0, 10**15, -(10**15), 7]

    def test_values_beyond_double_precision_are_not_rounded(self):
        values = np.full(200, 2**58 + 1, dtype=np.int64)
        residues = set(((secret(2.0).add(values) - 2**58) % 2).tolist())
        assert residues == {0, 1}


class TestGaussian:
    """The discrete Gaussian law, against probabilities summed exactly."""

    SOURCES = pytest.mark.parametrize(
        "build",
        [
            lambda scale: OpenDPGaussian(scale, sensitivity=1.0, mu=1.001 / scale),
            lambda scale: SeededGaussian(scale, 1),
        ],
        ids=["secret", "seeded"],
    )

    @staticmethod
    def pvalue(draws, scale):
        k = np.arange(-int(12 * scale + 20), int(12 * scale + 20) + 1)
        p = np.exp(-(k**2) / (2 * scale**2))
        reach = max(1, int(2.5 * scale))
        cells = np.bincount(np.clip(k, -reach, reach) + reach, p / p.sum())
        seen = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=2 * reach + 1)
        return scipy.stats.chisquare(seen, cells * len(draws)).pvalue

    @pytest.mark.exhaustive
    @SOURCES
    @pytest.mark.parametrize("scale", [0.6, 1.0, 7.5])
    def test_probabilities_are_exact(self, build, scale):
        noise = build(scale)
        draws = noise.add(np.zeros(500_000 if noise.seeded else 20_000, dtype=np.int64))
        assert self.pvalue(draws, scale) > RARE

    def test_the_check_sees_a_scale_that_is_ten_percent_off_and_plain_rounding(self):
        assert self.pvalue(SeededGaussian(3.3, 1).add(np.zeros(20_000, dtype=np.int64)), 3.0) < RARE
        rounded = np.rint(np.random.default_rng(1).normal(scale=0.6, size=20_000)).astype(np.int64)
        assert self.pvalue(rounded, 0.6) < RARE

    @SOURCES
    def test_lattice_scales(self, build):
        """A million lattice units: nearly normal, and every residue occurs."""
        draws = build(2.0**20).add(np.zeros(20_000, dtype=np.int64))
        assert scipy.stats.kstest(draws / 2**20, "norm").pvalue > RARE
        assert scipy.stats.chisquare(np.bincount(draws % 16, minlength=16)).pvalue > RARE

    @SOURCES
    def test_is_added_to_the_values(self, build):
        values = np.array([0, 10**15, -(10**15), 7, 2**58 + 1], dtype=np.int64)
        noised = build(20.0).add(values)
        assert noised.dtype == np.int64
        assert 0 < np.abs(noised - values).max() < 400
        assert values.tolist() == [0, 10**15, -(10**15), 7, 2**58 + 1]

    @given(st.floats(16, 2.0**30), st.floats(1e-6, 30))
    def test_opendp_confirms_mu_and_no_less(self, scale, mu):
        OpenDPGaussian(scale, sensitivity=mu * scale * (1 - 1e-12), mu=mu)
        with pytest.raises(PrivacyCheckError, match=r"^noise: scale .* spends mu .* more than"):
            OpenDPGaussian(scale, sensitivity=mu * scale * (1 + 1e-9), mu=mu)

    def test_source_of_randomness(self):
        noise = gaussian_noise(20.0, sensitivity=2.0, mu=0.2)
        assert not noise.seeded
        assert noise.name == "discrete-gaussian"
        zero = np.zeros(50, dtype=np.int64)
        assert (noise.add(zero) != noise.add(zero)).any()
        first, again, other = (gaussian_noise(20.0, sensitivity=2.0, mu=0.2, rng=seed) for seed in (1, 1, 2))
        assert first.seeded
        assert first.name.startswith("seeded-")
        drawn = first.add(zero)
        np.testing.assert_array_equal(drawn, again.add(zero))
        assert (drawn != other.add(zero)).any()


class TestScale:
    @given(st.integers(1, 2**41), st.floats(1e-9, 1e9))
    def test_never_spends_more_than_epsilon(self, sensitivity, epsilon):
        scale = laplace_scale(sensitivity, epsilon)
        assert sensitivity / scale <= epsilon
        assert math.nextafter(sensitivity / scale, math.inf) <= epsilon
        assert scale == pytest.approx(sensitivity / epsilon, rel=1e-15)

    @given(st.integers(1, 2**41), st.floats(1e-9, 1e9))
    def test_opendp_agrees(self, sensitivity, epsilon):
        noise = OpenDPLaplace(laplace_scale(sensitivity, epsilon), sensitivity=sensitivity, epsilon=epsilon)
        assert spent_by_opendp(noise) <= epsilon

    @given(st.integers(1, 2**53), st.floats(2.0**-60, 2.0**60))
    def test_opendp_spends_the_quotient_rounded_upwards(self, sensitivity, scale):
        spent = spent_by_opendp(OpenDPLaplace(scale, sensitivity=sensitivity, epsilon=math.inf))
        exact = Fraction(sensitivity) / Fraction(scale)
        assert Fraction(math.nextafter(spent, 0.0)) < exact <= Fraction(spent)

    @pytest.mark.parametrize("sensitivity", [1, 2, 741458])
    @pytest.mark.parametrize("share", [0.5, 0.999, 1 - 1e-9])
    def test_a_smaller_scale_is_refused(self, sensitivity, share):
        scale = laplace_scale(sensitivity, 1.0)
        with pytest.raises(PrivacyCheckError, match=r"^noise: scale .* spends epsilon .* more than 1.0"):
            OpenDPLaplace(scale * share, sensitivity=sensitivity, epsilon=1.0)

    def test_whole_numbers_of_numpy_do_not_wrap_around(self):
        with pytest.raises(PrivacyCheckError, match=r"^noise: scale .* spends epsilon 10240"):
            OpenDPLaplace(0.1, sensitivity=np.int64(1024), epsilon=1.0)
        noise = OpenDPLaplace(np.float32(2), sensitivity=np.int32(2), epsilon=np.float64(1))
        assert spent_by_opendp(noise) == 1
        with pytest.raises(PrivacyCheckError, match="none of this scale"):
            OpenDPLaplace(2.0, sensitivity=-1, epsilon=1.0)

    def test_opendp_refuses_a_smaller_scale_before_it_draws(self):
        noise = OpenDPLaplace(2.0, sensitivity=2, epsilon=1.0)
        noise.sensitivity = 3
        with pytest.raises(PrivacyCheckError, match=r"^noise: scale 2.0 spends epsilon 1.5 on sensitivity 3, more"):
            noise.add(np.zeros(2, dtype=np.int64))

    def test_a_plan_that_halves_its_scale_is_refused_before_noise_is_drawn(self):
        plan = cells_plan(ReplaceOne())
        plan.__dict__["scale"] = plan.scale / 2
        with pytest.raises(PrivacyCheckError, match="spends epsilon"):
            plan.measure(HERE)

    @pytest.mark.parametrize("rng", [None, 1], ids=["secret", "seeded"])
    @pytest.mark.parametrize("scale", [2.0**60, 2.0**54, math.inf])
    def test_noise_beyond_64_bits_is_refused(self, scale, rng):
        with pytest.raises(InputError, match=r"^epsilon: 1e-30 asks for noise beyond 64-bit integers; take a larger"):
            laplace_noise(scale, sensitivity=2, epsilon=1e-30, rng=rng)

    def test_source_of_randomness(self):
        noise = laplace_noise(2.0, sensitivity=2, epsilon=1.0)
        assert isinstance(noise, OpenDPLaplace)
        assert not noise.seeded
        assert noise.name == "discrete-laplace"
        seeded = laplace_noise(2.0, sensitivity=2, epsilon=1.0, rng=np.random.default_rng(1))
        assert seeded.seeded
        assert seeded.name.startswith("seeded-")

    def test_seeded_noise_repeats(self):
        zero = np.zeros(50, dtype=np.int64)
        first, again, other = (SeededLaplace(5.0, seed).add(zero) for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()


# --- A small auditor -------------------------------------------------------------------------------------------------

SIDE = 100.0
WINDOW = Window.rectangle(0, 0, SIDE, SIDE)
HERE, THERE = PointPattern([[25.0, 50.0]], WINDOW), PointPattern([[75.0, 50.0]], WINDOW)
RUNS = 6000


def cells_plan(relation, epsilon=1.0):
    return LaplaceMasses("cells", regular_squares(WINDOW, shape=(3, 2)), relation, *size(relation), epsilon)


def tents_plan(relation, epsilon=1.0):
    return LaplaceMasses("tents", regular_triangulation(WINDOW, shape=(2, 2)), relation, *size(relation), epsilon)


def size(relation):
    return (1, None) if relation.n_is_public else (None, 1.0)


def audit(plan, pattern, neighbour, *, runs=RUNS, seed=1):
    """Lower confidence bound of epsilon (wrong once in 1e7) from the event that favours `pattern` in every entry.

    For independent Laplace noise this event attains the largest likelihood ratio there is.
    """
    rng = np.random.default_rng(seed)
    exact = [plan_masses(plan, p) for p in (pattern, neighbour)]
    sign = np.sign(exact[0] - exact[1])
    moved = sign != 0
    hits = []
    for p in (pattern, neighbour):
        lattice = np.array([plan.measure(p, rng).lattice for _ in range(runs)])
        hits.append(int(np.all(sign * (lattice - exact[0]) >= 0, axis=1, where=moved).sum()))
    beta = scipy.stats.beta
    low = beta.ppf(5e-8, hits[0], runs - hits[0] + 1)
    high = beta.ppf(1 - 5e-8, hits[1] + 1, runs - hits[1])
    return math.log(low / high)


def plan_masses(plan, pattern):
    if plan.basis == "cells":
        return statistic_module.cell_counts(plan.mesh, pattern.xy)
    return statistic_module.lattice_masses(plan.mesh, pattern.xy, plan.bits)


# The worst move: from the foot of the smallest altitude, the middle of the diagonal, straight up along it.
ALPHA = 20.0
FOOT = PointPattern([[50.0, 50.0]], WINDOW)
UP = PointPattern([[50.0 + ALPHA / math.sqrt(2) * (1 - 1e-12), 50.0 - ALPHA / math.sqrt(2) * (1 - 1e-12)]], WINDOW)

PAIRS = {
    "counts, replace one": (cells_plan(ReplaceOne()), HERE, THERE),
    "counts, short move over a border": (
        cells_plan(AlphaNeighbours(1.0)),
        PointPattern([[49.9, 50.0]], WINDOW),
        PointPattern([[50.1, 50.0]], WINDOW),
    ),
    "tents, alpha": (tents_plan(AlphaNeighbours(ALPHA)), FOOT, UP),
    "tents, replace one": (
        tents_plan(ReplaceOne()),
        PointPattern([[0.0, 0.0]], WINDOW),
        PointPattern([[SIDE, SIDE]], WINDOW),
    ),
}


class TestAudit:
    def test_the_worst_move_attains_the_sensitivity(self):
        plan, pattern, neighbour = PAIRS["tents, alpha"]
        change = np.abs(plan_masses(plan, pattern) - plan_masses(plan, neighbour)).sum()
        assert plan.sensitivity - 8 <= change <= plan.sensitivity

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("name", PAIRS)
    def test_claim_stands(self, name):
        plan, pattern, neighbour = PAIRS[name]
        assert 0.35 < audit(plan, pattern, neighbour) <= plan.guarantee.epsilon()

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("name", PAIRS)
    def test_halved_noise_is_caught(self, name):
        plan, pattern, neighbour = fresh(name)
        plan.__dict__["scale"] = plan.scale / 2
        assert audit(plan, pattern, neighbour) > 1.0

    @pytest.mark.parametrize("name", ["counts, replace one", "counts, short move over a border"])
    def test_sensitivity_of_one_for_a_move_is_caught(self, name):
        honest, pattern, neighbour = fresh(name)
        wrong = {"sensitivity": honest.sensitivity // 2, "guarantee": honest.guarantee}
        plan = recast(honest, type("OneForAMove", (type(honest),), wrong))
        assert plan.guarantee.epsilon() <= 1.0  # the claim itself shows nothing
        assert audit(plan, pattern, neighbour) > 1.0

    @pytest.mark.slow
    def test_tents_slope_without_its_factor_two_is_caught(self):
        plan, pattern, neighbour = fresh("tents, alpha")
        plan.mesh.__dict__["tent_slope"] = plan.mesh.tent_slope / 2
        plan = replace(plan)
        assert plan.guarantee.epsilon() <= 1.0
        assert audit(plan, pattern, neighbour) > 1.0

    def test_noise_in_some_entries_only_is_caught(self, monkeypatch):
        def sparing(plan, draw, exact):
            noised = draw(exact)
            noised[-1] = exact[-1]
            return noised

        randomise_by(monkeypatch, sparing)
        plan, pattern, neighbour = fresh("counts, replace one")
        with np.errstate(divide="ignore"):
            assert audit(plan, pattern, neighbour) > 1.0

    @pytest.mark.slow
    def test_appearance_of_a_point(self):
        """Under add/remove, one point more: the counts' worst pair and the tents'."""
        two = PointPattern([[25.0, 50.0], [75.0, 50.0]], WINDOW)
        for plan in (cells_plan(AddRemove()), tents_plan(AddRemove())):
            assert 0.35 < audit(plan, two, HERE) <= plan.guarantee.epsilon()


def fresh(name):
    """The same pair with a plan that has computed nothing yet."""
    plan, pattern, neighbour = PAIRS[name]
    build = cells_plan if plan.basis == "cells" else tents_plan
    return build(plan.relation), pattern, neighbour

"""Discrete privacy losses: enumeration, direct convolution, Gaussian closed forms, domination, planted faults."""

import json
import math
from itertools import combinations_with_replacement

import mpmath
import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import poisson

from dpppsynth.core.errors import InputError
from dpppsynth.core.tiled_matrix import TiledMatrix
from dpppsynth.privacy.guarantee import profile_from_dict
from dpppsynth.privacy.losses import (
    DiscreteLosses,
    LossLattice,
    LossLaw,
    dominating_law,
    poisson_deltas,
    poisson_losses,
    suitable_lattice,
    worst_curves,
)
from dpppsynth.privacy.profiles import GaussianDP, PoissonGaussianDP

EPSILONS = [0.0, 0.1, 0.5, 1.0, 2.0, 4.0]
SYMMETRIC = np.array([[0.7, 0.3], [0.3, 0.7]])
# Segments of lengths 1, 2, 4: rows of a heat kernel have detailed balance with these.
UNEVEN = np.array([[0.6, 0.3, 0.1], [0.15, 0.65, 0.2], [0.025, 0.1, 0.875]])
MOST = 24
# Deltas of dp_accounting 0.6.0, see `test_another_programs_numbers`.
REFERENCE = {0.25: 1.55993e-1, 0.5: 1.00778e-1, 1: 3.72705e-2, 2: 3.71822e-3, 3: 2.69499e-4, 4: 1.53948e-5}


def enumerated(p, q, rate, epsilon, most=MOST):
    """Delta by all multisets of up to `most` children: a lower bound, short of the Poisson tail."""
    total = 0.0
    for k in range(most + 1):
        weight = poisson.pmf(k, rate)
        for drawn in combinations_with_replacement(range(len(p)), k):
            count = np.bincount(drawn, minlength=len(p)) if drawn else np.zeros(len(p))
            ways = np.exp(gammaln(k + 1) - gammaln(count + 1).sum())
            total += weight * ways * max(0.0, np.prod(p**count) - math.exp(epsilon) * np.prod(q**count))
    return total


def stated(matrix, pairs, rate, error=0.0):
    """Epsilons and deltas for some pairs of rows."""
    lattice, (curve,) = worst_curves(TiledMatrix.of(matrix), [np.array(pairs)], error)
    return poisson_deltas(dominating_law(curve, lattice, error), rate)


def at(table, epsilon):
    """Delta by the chord in `e^epsilon`."""
    return float(np.interp(math.exp(epsilon), np.exp(table[0]), table[1]))


def hockey_stick(p, q, gamma):
    return np.maximum(p - gamma * q, 0).sum()


def law_divergence(law, gamma):
    with np.errstate(over="ignore"):
        return law.infinite + (law.mass * np.maximum(1 - gamma * np.exp(-law.lattice.losses), 0)).sum()


class TestEnumeration:
    @pytest.mark.parametrize("rate", [0.5, 1.0, 2.0])
    @pytest.mark.parametrize("epsilon", EPSILONS)
    def test_two_segments_are_exact(self, rate, epsilon):
        exact = enumerated(*SYMMETRIC, rate, epsilon)
        got = at(stated(SYMMETRIC, [[0, 1]], rate), epsilon)
        assert exact <= got <= 1.01 * exact + 1e-9

    @pytest.mark.parametrize("pair", [(0, 1), (0, 2), (1, 2)])
    @pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
    def test_three_segments_both_ways(self, pair, epsilon):
        """One law covers both directions at every number of children, which costs a little."""
        first, second = UNEVEN[list(pair)]
        exact = max(enumerated(first, second, 1.0, epsilon, 14), enumerated(second, first, 1.0, epsilon, 14))
        got = at(stated(UNEVEN, [pair], 1.0), epsilon)
        assert exact <= got <= 1.15 * exact + 1e-9

    def test_wrong_mechanisms_would_be_seen(self):
        """One child at most, columns for rows, one direction only: all promise too much."""
        p, q = UNEVEN[:2]
        there, back = enumerated(p, q, 1.0, 1.0, 14), enumerated(q, p, 1.0, 1.0, 14)
        got = at(stated(UNEVEN, [(0, 1)], 1.0), 1.0)
        one_child = math.exp(-1) * hockey_stick(p, q, math.e)
        columns = at(stated(UNEVEN.T / UNEVEN.T.sum(axis=1, keepdims=True), [(0, 1)], 1.0), 1.0)
        assert got >= max(there, back)
        assert max(one_child, columns, min(there, back)) < 0.95 * max(there, back)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5])
    def test_points_of_one_person_may_move_between_different_segments(self, epsilon):
        """Poisson(1) children on each of two pairs, composed exactly, against the dominating law of rate 2."""
        rows = np.array([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.1, 0.1, 0.8], [0.16, 0.1, 0.74]])
        exact = 0.0
        for j in range(8):
            for k in range(8):
                weight = poisson.pmf(j, 1.0) * poisson.pmf(k, 1.0)
                a, b = (list(combinations_with_replacement(range(3), n)) for n in (j, k))
                for first in a:
                    for second in b:
                        x, y = (np.bincount(v, minlength=3) if v else np.zeros(3, int) for v in (first, second))
                        ways = np.exp(gammaln(j + 1) + gammaln(k + 1) - gammaln(x + 1).sum() - gammaln(y + 1).sum())
                        p = np.prod(rows[0] ** x) * np.prod(rows[2] ** y)
                        q = np.prod(rows[1] ** x) * np.prod(rows[3] ** y)
                        exact += weight * ways * max(0.0, p - math.exp(epsilon) * q)
        got = at(stated(rows, [(0, 1), (2, 3)], 2.0), epsilon)
        assert exact <= got
        # The worst of the two pairs at the same rate is no more than that: it is dominated, and it nearly dominates.
        assert got >= at(stated(rows, [(0, 1)], 2.0), epsilon) * (1 - 1e-3)


class TestTransform:
    def test_direct_convolution(self):
        """A handful of atoms on a lattice, convolved one by one; wrapping and rounding are at most what is allowed."""
        lattice = LossLattice(0.25, 4)
        mass = np.array([0.01, 0.0, 0.2, 0.0, 0.3, 0.1, 0.3, 0.0, 0.0899])
        law = LossLaw(lattice, mass, 1e-4)
        rate, most = 1.7, 60
        epsilons, deltas = poisson_deltas(law, rate)
        sums, power = np.zeros(8 * most + 1), np.ones(1)
        for k in range(most + 1):
            middle = 4 * most
            sums[middle - 4 * k : middle + 4 * k + 1] += poisson.pmf(k, rate) * power
            power = np.convolve(power, mass)
        losses = 0.25 * np.arange(-4 * most, 4 * most + 1)
        for epsilon, delta in zip(epsilons[:60], deltas[:60], strict=True):
            direct = (sums * np.maximum(0, -np.expm1(np.minimum(0, epsilon - losses)))).sum() - math.expm1(-rate * 1e-4)
            assert direct <= delta <= direct + 2e-12

    @pytest.mark.parametrize(("ratio", "rate"), [(0.2, 1), (0.5, 1), (1.5, 3), (0.05, 100)])
    def test_gaussian_rows(self, ratio, rate):
        """Two finely cut normal laws: Theorem B's profile in the plane."""
        x = np.arange(-10, 10 + ratio, 0.01)
        rows = np.array([np.exp(-((x - m) ** 2) / 2) for m in (0.0, ratio)])
        rows /= rows.sum(axis=1, keepdims=True)
        table = stated(rows, [[0, 1]], rate)
        profile = PoissonGaussianDP(ratio, rate, 1e-6)
        for delta in (1e-2, 1e-4, 1e-6, 1e-8):
            epsilon = profile.epsilon(delta)
            assert 1 - 1e-3 < at(table, epsilon) / delta < 1.02

    def test_another_programs_numbers(self):
        """dp_accounting, lattice of 1e-4, 15 compositions weighted by Poisson(2): normal laws cut to a street."""
        x = np.arange(100)
        rows = np.array([np.exp(-(((x - m) / 6.5) ** 2) / 2) for m in (48, 51)])
        rows /= rows.sum(axis=1, keepdims=True)
        table = stated(rows, [[0, 1]], 2.0)
        for epsilon, delta in REFERENCE.items():
            assert at(table, epsilon) == pytest.approx(delta, rel=3e-3)

    @pytest.mark.parametrize("pair", [(0, 1), (1, 0)])
    def test_what_one_row_alone_has_is_an_infinite_loss(self, pair):
        rows = np.array([[0.5, 0.5, 0.0], [0.5, 0.4, 0.1]])
        rate = 2.0
        _, deltas = stated(rows, [pair], rate)
        assert 0 <= deltas[-1] - -math.expm1(-0.1 * rate) < 1e-9


class TestDomination:
    def random_rows(self, seed, size=12):
        rng = np.random.default_rng(seed)
        rows = rng.gamma(0.5, size=(size, size)) + 1e-12
        return rows / rows.sum(axis=1, keepdims=True), rng

    @pytest.mark.parametrize("seed", range(8))
    @pytest.mark.parametrize("error", [0.0, 1e-4])
    def test_every_pair_at_every_level(self, seed, error):
        """Off the lattice too, in both directions, and for matrices that differ by the stated error."""
        rows, rng = self.random_rows(seed)
        pairs = np.array([(i, j) for i in range(12) for j in range(i)])
        lattice, (curve,) = worst_curves(TiledMatrix.of(rows), [pairs], error)
        law = dominating_law(curve, lattice, error)
        shaken = rows * (1 + error * rng.choice([-1, 1], size=rows.shape))
        for gamma in np.exp(rng.uniform(-4, 4, 40)):
            worst = max(hockey_stick(shaken[i], shaken[j], gamma) for i in range(12) for j in range(12))
            assert worst <= law_divergence(law, gamma) + 1e-15
            if error == 0:
                assert law_divergence(law, gamma) <= 1.02 * worst + 1e-6

    @pytest.mark.parametrize("seed", range(4))
    def test_rounding_takes_nothing_from_the_curve(self, seed):
        """In exact arithmetic the law that was found in floats is nowhere below the curve that it stands for."""
        rows, _ = self.random_rows(seed, size=40)
        rows = np.linalg.matrix_power(rows, 2)
        lattice, (curve,) = worst_curves(TiledMatrix.of(rows), [np.array([(i, i + 1) for i in range(39)])], 0.0)
        law = dominating_law(curve, lattice, 0.0)
        with mpmath.workdps(50):
            step, above, scaled = mpmath.mpf(lattice.step), mpmath.mpf(law.infinite), mpmath.mpf(0)
            for s in range(len(curve) - 1, -1, -1):
                odds = mpmath.exp(step * (s - lattice.half))
                assert above - odds * scaled >= curve[s]
                above, scaled = above + law.mass[s], scaled + law.mass[s] / odds

    def test_rows_without_overlap_have_a_law_of_more_than_one(self):
        """A divergence of 1, lifted by the share that entries are known to, stays lifted."""
        lattice, (curve,) = worst_curves(TiledMatrix.of(np.eye(2)), [np.array([(0, 1)])], 1e-6)
        law = dominating_law(curve, lattice, 1e-6)
        assert 1 + 1e-6 <= law.infinite + law.mass.sum() <= 1 + 3e-6

    def test_groups_add_up(self):
        rows, _ = self.random_rows(99)
        pairs = np.array([(i, j) for i in range(12) for j in range(i)])
        _, curves = worst_curves(TiledMatrix.of(rows), [pairs[:5], pairs[5:30], pairs[30:]], 0.0)
        lattice, (whole,) = worst_curves(TiledMatrix.of(rows), [pairs], 0.0)
        assert np.array_equal(curves[-1], whole)
        assert (curves[0] <= curves[1]).all()
        assert (curves[0] < curves[2]).any()
        exact = [
            max(hockey_stick(rows[i], rows[j], math.exp(e)) for i in range(12) for j in range(12))
            for e in lattice.losses
        ]
        assert np.allclose(whole, exact, rtol=1e-9, atol=1e-15)

    @pytest.mark.parametrize("error", [0.1, 1.0, 1e6])
    def test_a_hopeless_error_is_refused(self, error):
        with pytest.raises(InputError, match=r"relative error .*collapse_short"):
            dominating_law(np.array([0.5, 0.2, 0.1]), LossLattice(0.01, 1), error)

    def test_losses_beyond_the_range_of_numbers_are_infinite(self):
        """Entries whose ratio is e^707 tell the rows apart by any child, whose chance delta never falls far below."""
        tiny = 1e-307
        rows = np.array([[1 - tiny, tiny], [tiny, 1 - tiny]])
        lattice, (curve,) = worst_curves(TiledMatrix.of(rows), [np.array([(0, 1)])], 0.0)
        assert lattice.top <= 700
        epsilons, deltas = poisson_deltas(dominating_law(curve, lattice, 0.0), 1.0)
        chance = -math.expm1(-1)
        assert chance <= deltas[epsilons < 600].min() <= deltas[0] < chance + 1e-6
        assert deltas[-1] == pytest.approx(chance, abs=1e-3)

    def test_finite_losses_are_kept_on_a_capped_lattice(self):
        """Losses of 690, next to what is infinite: finite ones must not be cut off with it."""
        tiny = math.exp(-690)
        rows = np.array([[0.9, tiny, 0.1], [tiny, 0.9, 0.1]])
        lattice, (curve,) = worst_curves(TiledMatrix.of(rows), [np.array([(0, 1)])], 0.0)
        assert lattice.top <= 700
        assert curve[-1] < 0.9 * math.exp(-5)

    def test_the_order_of_pairs_does_not_matter(self):
        """More pairs than are looked at: a sample by position would differ."""
        rows, rng = self.random_rows(5, 60)
        pairs = np.array([(i, j) for i in range(60) for j in range(i)])
        lattice = suitable_lattice(TiledMatrix.of(rows), pairs, 0.0)
        assert suitable_lattice(TiledMatrix.of(rows), rng.permutation(pairs), 0.0) == lattice
        name = rng.permutation(60)
        renamed = suitable_lattice(TiledMatrix.of(rows[np.ix_(name, name)]), np.argsort(name)[pairs[::-1]], 0.0)
        assert renamed == pytest.approx(lattice)


class TestTable:
    def gaussian(self, at=1e-6):
        epsilons = np.arange(0, 12, 0.01)
        profile = GaussianDP(1.0, 1e-6)
        return profile, DiscreteLosses.tabulate(epsilons, np.array([profile.delta(e) for e in epsilons]), at)

    def test_never_below_the_truth_and_close_to_it(self):
        profile, table = self.gaussian()
        for epsilon in np.linspace(0, 6, 97):
            true = profile.delta(epsilon)
            assert true * (1 - 1e-12) <= table.delta(epsilon) <= 1.03 * max(true, 1e-9)
        for delta in np.geomspace(2e-9, 0.3, 60):
            assert profile.epsilon(delta) * (1 - 1e-12) <= table.epsilon(delta) <= profile.epsilon(delta) + 0.01

    def test_inverses(self):
        _, table = self.gaussian(3.3e-7)
        assert table.at == 3.3e-7
        assert table.delta(table.epsilon(3.3e-7)) == pytest.approx(3.3e-7, rel=1e-9)
        for delta in np.geomspace(1e-9, 0.3, 50):
            assert table.delta(table.epsilon(delta)) == pytest.approx(delta, rel=1e-9)
        assert table.epsilon(9e-10) == math.inf
        assert table.epsilon(0.9) == 0.0
        assert table.delta(100.0) == 1e-9

    def test_round_trip_and_repetition(self):
        lattice, (curve,) = worst_curves(TiledMatrix.of(UNEVEN), [np.array([(0, 1), (1, 2)])], 1e-9)
        first, again = (poisson_losses(curve, lattice, error=1e-9, rate=1, delta=1e-6) for _ in range(2))
        assert first == again
        assert profile_from_dict(json.loads(json.dumps(first.to_dict()))) == first
        assert first.to_dict()["kind"] == "discrete-losses"
        assert "give or take a probability of 1e-06" in first.describe()

    def test_comparison(self):
        """More privacy by over 2e-5 in any row is no longer the same; less privacy always is."""
        _, table = self.gaussian()
        rows = np.array(table.rows)
        assert table.no_better_than(table, 0.0)
        for k in range(len(rows)):
            for share, same in ((-3e-5, False), (-1e-5, True), (3e-5, True)):
                edited = rows.copy()
                edited[k, 1 if k == 0 else 0] *= 1 + share
                assert DiscreteLosses(tuple(map(tuple, edited)), 1e-6).no_better_than(table, 2e-5) == same
        fewer = DiscreteLosses((table.rows[0], table.rows[40], table.rows[-1]), 1e-6)
        assert fewer.no_better_than(table, 2e-5)
        assert not table.no_better_than(fewer, 2e-5)
        assert DiscreteLosses(table.rows[:-1], 1e-6).no_better_than(table, 2e-5)
        farther = (*table.rows, (100.0, 1e-10))
        assert not DiscreteLosses(farther, 1e-6).no_better_than(table, 2e-5)
        middle = tuple((rows[40] + rows[41]) / 2 * (1, 0.9))
        assert not DiscreteLosses((*table.rows[:41], middle, *table.rows[41:]), 1e-6).no_better_than(table, 2e-5)

    def test_the_worst_of_tables_that_cross_is_nowhere_below_any(self):
        crossing = [
            DiscreteLosses(((0.0, 0.5), (1.0, 0.1), (2.0, 0.05)), 0.05),
            DiscreteLosses(((0.0, 0.3), (2.0, 0.2)), 0.2),
        ]
        for tables in (crossing, crossing[::-1]):
            worst = DiscreteLosses.worst(tables)
            for epsilon in np.linspace(0, 2, 21):
                assert worst.delta(epsilon) >= max(table.delta(epsilon) for table in tables) * (1 - 1e-12)

    def test_tiny_changes_leave_it_alone(self):
        """Rounding to six digits: a certificate made on another machine states the same numbers."""
        epsilons = np.arange(0, 12, 0.01)
        deltas = np.array([GaussianDP(1.0, 1e-6).delta(e) for e in epsilons])
        shaken = deltas * (1 + 1e-13 * np.random.default_rng(3).uniform(-1, 1, len(deltas)))
        assert DiscreteLosses.tabulate(epsilons, deltas, 1e-6) == DiscreteLosses.tabulate(epsilons, shaken, 1e-6)

    @pytest.mark.parametrize(
        "rows",
        [
            (),
            ((0.0, 0.5), (0.0, 0.4)),
            ((0.0, 0.5), (1.0, 0.6)),
            ((0.1, 0.5), (1.0, 0.4)),
            ((0.0, 1.5), (1.0, 0.4)),
            ((0.0, 0.5), (math.inf, 0.4)),
            ((0.0, 0.5), (1.0, -0.1)),
        ],
    )
    def test_what_is_no_profile_is_refused(self, rows):
        with pytest.raises(InputError, match="rows"):
            DiscreteLosses(rows, 1e-6)

    @pytest.mark.parametrize("delta", [0.0, 1e-10, 1.0])
    def test_deltas_out_of_reach_are_refused(self, delta):
        with pytest.raises(InputError, match="delta"):
            DiscreteLosses.tabulate(np.array([0.0, 1.0]), np.array([0.1, 0.0]), delta)

"""Sequential composition: closed forms, enumeration, quadrature, other software's laws, and what is refused."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binom, poisson

from dpppsynth.core.errors import InputError
from dpppsynth.privacy.composed import (
    Composed,
    LossSum,
    _attainable,
    _lower_hull,
    basic_epsilon,
    loss_sum,
    merged_profiles,
    suitable_step,
    symmetric_law,
)
from dpppsynth.privacy.composition import adaptive, compose, gaussian_filter, largest
from dpppsynth.privacy.losses import DiscreteLosses, LossLattice, LossLaw
from dpppsynth.privacy.profiles import (
    ApproximateDP,
    GaussianDP,
    PoissonGaussianDP,
    PureDP,
    delta_gaussian,
    gaussian_mu,
    smallest_epsilon,
)

DRAW = GaussianDP(gaussian_mu(1.0, 1e-6), at=1e-6)
KERNEL = PoissonGaussianDP(0.5, 1.0, 1e-6)
TABLE = DiscreteLosses(((0.0, 0.3), (0.5, 0.05), (1.3, 2e-3), (4.0, 1e-8)), 1e-6)
# Said at epsilon 0, but no laws with what it says at 0.01 are as far apart.
CONTRADICTORY = DiscreteLosses(((0.0, 0.9), (0.01, 0.001)), 1e-6)
KINDS = [PureDP(0.77), DRAW, KERNEL, TABLE, CONTRADICTORY, ApproximateDP(0.5, 1e-4), PureDP(100.0)]
# Excess over the exact epsilon that the documentation states.
EXCESS = 1e-3


def randomised_responses(level, count):
    """Profile of `count` randomised responses: Kairouz, Oh & Viswanath (2015), Theorem 3.3, by the binomial law."""
    heads = np.arange(count + 1)
    loss, mass = (2 * heads - count) * level, binom.pmf(heads, count, expit(level))
    return lambda epsilon: float(-np.expm1(np.minimum(epsilon - loss, 0)) @ mass)


def left_possible(part):
    """Largest divergences of two laws that a profile leaves possible in both directions, convex in e^epsilon."""
    # Finer than the lattices, whose points are among them.
    grid = np.arange(10 * 2**9) / 2**9
    heights, odds = np.array([part.delta(float(e)) for e in grid]), np.exp(grid)
    heights = np.minimum(heights, np.min((odds - 1 + 2 * heights) / (odds + 1)))
    corner = _lower_hull(odds, heights)
    return lambda epsilon: float(np.interp(math.exp(epsilon), odds[corner], heights[corner])) * (1 - 1e-9)


def product_of(laws):
    """Hockey-stick divergence of a product of measures on one lattice, by sums of products one by one."""
    finite, infinite, mass = 1.0, 0.0, np.ones(1)
    for law in laws:
        # Infinite where one of them is: without differences, which would swallow small masses.
        infinite = infinite * (law.mass.sum() + law.infinite) + finite * law.infinite
        mass, finite = np.convolve(mass, law.mass), finite * law.mass.sum()
    losses = laws[0].lattice.step * (np.arange(len(mass)) - sum(law.lattice.half for law in laws))
    return lambda epsilon: float(-np.expm1(np.minimum(epsilon - losses, 0)) @ mass) + infinite


def gaussian_anywhere(epsilon, mu):
    """Gaussian profile at epsilons of either sign."""
    if epsilon >= 0:
        return delta_gaussian(epsilon, mu)
    return 1 - math.exp(epsilon) + math.exp(epsilon) * delta_gaussian(-epsilon, mu)


def closely_above(bound, exact, delta, top):
    """The bound's epsilon at delta is the exact one, or a little more."""
    epsilon, true = bound.epsilon(delta), smallest_epsilon(exact, delta, top)
    assert true * (1 - 1e-11) <= epsilon <= true * (1 + EXCESS), (epsilon, true)


class TestGaussian:
    def test_posterior_draws(self):
        """Four draws at (1, 1e-6) fit into (2, 1e-5); the epsilons of basic composition would stop at two."""
        totals = [compose([DRAW] * k, 1e-5).epsilon(1e-5) for k in range(1, 6)]
        assert totals == pytest.approx([0.87247, 1.27705, 1.59808, 1.87521, 2.12404], abs=5e-6)

    def test_closed_form_is_quoted_at_the_delta_asked_for(self):
        total = compose([GaussianDP(0.3, 1e-6), GaussianDP(0.4, 1e-7)], 1e-5)
        assert isinstance(total, GaussianDP)
        assert (total.mu, total.at) == (pytest.approx(0.5, rel=1e-14), 1e-5)
        assert total.mu >= 0.5

    @pytest.mark.parametrize(
        ("mu", "count", "delta"), [(0.2367, 4, 1e-5), (0.2367, 100, 1e-5), (0.01, 1000, 1e-5), (3.0, 3, 1e-6)]
    )
    def test_loss_law_against_the_closed_form(self, mu, count, delta):
        losses, exact = loss_sum({GaussianDP(mu, delta): count}, delta), GaussianDP(mu * math.sqrt(count), delta)
        true = exact.epsilon(delta)
        assert true <= smallest_epsilon(losses.delta, delta, true) <= true * (1 + EXCESS)
        for epsilon in np.linspace(0, 2 * true, 21):
            assert losses.delta(epsilon) >= exact.delta(epsilon)

    @pytest.mark.parametrize("delta", [1e-9, 1e-10, 1e-11, 1e-12])
    def test_small_deltas_are_not_lost_in_the_rounding_of_transforms(self, delta):
        losses, exact = loss_sum({GaussianDP(0.2, delta): 4}, delta), GaussianDP(0.4, delta)
        true = exact.epsilon(delta)
        assert losses.delta(true) >= delta
        assert true <= smallest_epsilon(losses.delta, delta, true) <= 1.02 * true
        assert losses.delta(60.0) >= losses.noise > 0


class TestPure:
    @pytest.mark.parametrize("level", [0.01, 1.0, 30.0])
    def test_epsilon_is_rounded_up(self, level):
        pure = PureDP(level)
        for delta in 10.0 ** np.random.default_rng(2).uniform(-18, -1, 300):
            assert pure.delta(pure.epsilon(float(delta))) <= delta * (1 + 1e-12)
        assert pure.epsilon(0.0) == level

    def test_levels_add_up_at_zero(self):
        # Ten times 0.1, as a floating-point number, is more than 1.
        assert compose([PureDP(0.1)] * 10, 0.0) == PureDP(math.nextafter(1.0, 2.0))
        assert compose([PureDP(0.5), PureDP(1.0)], 0.0) == PureDP(1.5)

    @pytest.mark.parametrize(("part", "kind"), [(DRAW, "gaussian"), (KERNEL, "poisson-gaussian"), (TABLE, "discrete")])
    def test_others_have_no_epsilon_at_zero(self, part, kind):
        with pytest.raises(InputError, match=f"delta: 0 needs pure releases.*{kind}.*1e-6"):
            compose([PureDP(1.0), part], 0.0)

    @pytest.mark.parametrize(
        ("level", "count", "delta"),
        [(1.0, 4, 1e-5), (0.1, 100, 1e-5), (0.123, 50, 1e-8), (1.7, 7, 1e-9), (0.3, 3, 1e-12), (5.3, 6, 1e-6)],
    )
    def test_randomised_responses(self, level, count, delta):
        exact = randomised_responses(level, count)
        closely_above(compose([PureDP(level)] * count, delta), exact, delta, level * count)

    def test_unequal_levels_by_enumeration(self):
        levels, delta = (0.21, 0.47, 0.47, 0.9, 1.3), 1e-3
        signs = np.array(list(product([1, -1], repeat=5)))
        loss, mass = signs @ levels, np.prod(expit(signs * levels), axis=1)

        def exact(epsilon):
            return float(-np.expm1(np.minimum(epsilon - loss, 0)) @ mass)

        closely_above(compose([PureDP(level) for level in levels], delta), exact, delta, sum(levels))

    def test_losses_beyond_the_lattice(self):
        """Levels above the largest finite loss: nothing but their sum is known."""
        assert compose([PureDP(100.0), PureDP(100.0)], 1e-6).epsilon(1e-6) == 200.0

    def test_nothing_is_left_from_the_sum_on(self):
        total = compose([PureDP(0.5)] * 2, 1e-6)
        assert (total.delta(1.0), total.epsilon(0.0)) == (0.0, 1.0)


class TestOtherKinds:
    def test_poisson_numbers_of_different_ratio(self):
        """Sum over both numbers; the closed form with added rates would be wrong, whichever ratio it took."""
        first, second, delta = PoissonGaussianDP(0.3, 1.0, 1e-6), PoissonGaussianDP(0.7, 0.4, 1e-6), 1e-6
        k, m = np.arange(22)[:, None], np.arange(15)
        weight = poisson.pmf(k, 1.0) * poisson.pmf(m, 0.4)
        mu = np.sqrt(k * 0.3**2 + m * 0.7**2)

        def exact(epsilon):
            return sum(w * delta_gaussian(epsilon, s) for w, s in zip(weight.flat, mu.flat, strict=True) if s > 0)

        bound, true = compose([first, second], delta), smallest_epsilon(exact, delta, 3.0)
        assert true <= bound.epsilon(delta) <= true * (1 + EXCESS)

    def test_rates_add_up_where_ratios_are_equal(self):
        """Given both numbers the two are Gaussian, of a parameter that depends on their sum alone."""
        total = compose([KERNEL, PoissonGaussianDP(0.5, 2.0, 1e-7)], 1e-5)
        assert (total.ratio, total.rate, total.at) == (0.5, pytest.approx(3.0, rel=1e-14), 1e-5)
        pair = loss_sum({KERNEL: 2}, 1e-6)
        closed = PoissonGaussianDP(0.5, 2.0, 1e-6)
        assert 1e-6 <= pair.delta(closed.epsilon(1e-6)) <= 1.01e-6

    @pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
    def test_gaussian_with_randomised_response(self, delta):
        def exact(epsilon):
            ahead = expit(0.8)
            return ahead * gaussian_anywhere(epsilon - 0.8, 0.5) + (1 - ahead) * gaussian_anywhere(epsilon + 0.8, 0.5)

        closely_above(compose([GaussianDP(0.3, delta), PureDP(0.8), GaussianDP(0.4, delta)], delta), exact, delta, 5.0)

    def test_slacks(self):
        """Randomised responses that lie open with probability `slack`: Kairouz, Oh & Viswanath (2015), (4)."""
        count, slack, delta = 8, 1e-8, 1e-6
        open_, hidden = -math.expm1(count * math.log1p(-slack)), randomised_responses(0.37, count)
        bound = compose([ApproximateDP(0.37, slack)] * count, delta)
        closely_above(bound, lambda epsilon: open_ + (1 - open_) * hidden(epsilon), delta, 3.0)

    def test_slacks_that_just_fit(self):
        assert compose([ApproximateDP(0.1, 1e-6)] * 10, 1e-5).epsilon(1e-5) <= 1.0
        assert compose([ApproximateDP(0.1, 1e-6)] * 11, 1e-5).epsilon(1e-5) == math.inf

    def test_tables(self):
        """A table's chords belong to a law on its rows, which can be enumerated."""
        epsilons, deltas = np.array(TABLE.rows).T
        slopes = np.append(np.diff(deltas) / np.diff(np.exp(epsilons)), 0.0)
        upper = np.exp(epsilons[1:]) * np.diff(slopes)
        mass = np.concatenate([upper, np.diff(slopes)])
        loss = np.append(np.concatenate([epsilons[1:], -epsilons[1:]]), 0.0)
        mass = np.append(mass, 1 - deltas[-1] - mass.sum())
        pairs, weights = np.add.outer(loss, loss), np.outer(mass, mass)
        infinite = 1 - (1 - deltas[-1]) ** 2

        def exact(epsilon):
            return infinite + float(np.sum(-np.expm1(np.minimum(epsilon - pairs, 0)) * weights))

        closely_above(compose([TABLE, TABLE], 1e-5), exact, 1e-5, 8.0)

    def test_another_programs_law(self):
        """dp_accounting's own Gaussian and Laplace losses; a Laplace mechanism is better than its pure bound."""
        theirs = pld.from_gaussian_mechanism(2.0, value_discretization_interval=1e-3).compose(
            pld.from_laplace_mechanism(2.0, value_discretization_interval=1e-3).self_compose(3)
        )
        ours = compose([GaussianDP(0.5, 1e-6), *[PureDP(0.5)] * 3], 1e-6)
        assert theirs.get_epsilon_for_delta(1e-6) < ours.epsilon(1e-6) < 1.15 * theirs.get_epsilon_for_delta(1e-6)


PARTS = st.one_of(
    st.builds(PureDP, st.floats(0.01, 3)),
    st.builds(GaussianDP, st.floats(0.02, 1), st.just(1e-6)),
    st.builds(ApproximateDP, st.floats(0.01, 2), st.floats(1e-12, 1e-5)),
    st.just(TABLE),
)


class TestEveryMixture:
    @given(parts=st.lists(PARTS, min_size=1, max_size=4), delta=st.sampled_from([1e-3, 1e-5, 1e-8]))
    @settings(max_examples=25)
    def test_between_the_largest_and_basic_composition(self, parts, delta):
        total = compose(parts, delta).epsilon(delta)
        assert total <= basic_epsilon(tuple(parts), delta) * (1 + 1e-9)
        for part in parts:
            assert total == math.inf or part.delta(total) <= delta * (1 + 1e-9)

    @pytest.mark.parametrize("part", [PureDP(0.77), DRAW, KERNEL, TABLE, ApproximateDP(0.5, 1e-7)])
    def test_one_release_is_dominated_in_both_directions(self, part):
        """At negative epsilons H(-e) = 1 - e^-e + e^-e H(e); between the points of the lattice as well."""
        step = 2.0**-6
        lattice, mass, infinite = symmetric_law(part, step, 1e-9)
        losses, most = lattice.losses, left_possible(part)
        for epsilon in np.linspace(0, lattice.top, 173):
            own = [float(-np.expm1(np.minimum(e - losses, 0)) @ mass) + infinite for e in (epsilon, -epsilon)]
            # The table says more at epsilon 0 than it leaves possible elsewhere.
            known = most(epsilon) if part is TABLE else part.delta(float(epsilon))
            mirrored = -math.expm1(-epsilon) + math.exp(-epsilon) * known
            assert own[0] >= known
            assert own[1] >= mirrored

    def test_no_pair_of_laws_is_further_apart_than_a_profile_leaves_possible(self):
        """The bound that heights near epsilon 0 are lowered to, on random laws and both of their profiles."""
        rng, grid = np.random.default_rng(3), np.linspace(0, 6, 400)
        for size in (2, 3, 5, 40):
            for _ in range(50):
                p, q = (np.where((w := rng.random(size) ** 4) < 0.01, 0, w) + 1e-9 for _ in range(2))
                p, q = p / p.sum(), q / q.sum()
                heights = [
                    max(np.maximum(p - math.exp(e) * q, 0).sum(), np.maximum(q - math.exp(e) * p, 0).sum())
                    for e in grid
                ]
                assert np.abs(p - q).sum() / 2 <= _attainable(grid, np.array(heights))[0] * (1 + 1e-12)

    def test_masses_sum_to_one_whatever_a_table_says(self):
        """No two laws have this table: what it says at epsilon 0.01 leaves a total variation of 0.006 at most."""
        for part in KINDS:
            _, mass, infinite = symmetric_law(part, 2.0**-7, 1e-9)
            assert mass.min() >= 0
            assert 1 <= mass.sum() + infinite < 1 + 1e-10
        step = math.expm1(0.01)
        most = (step + 2 * 0.001) / (step + 2)
        law = symmetric_law(CONTRADICTORY, 2.0**-7, 1e-9)
        assert most <= law.curve()[law.lattice.half] < 2 * most
        assert compose([CONTRADICTORY] * 2, 1e-2).delta(0.0) < 0.03

    @pytest.mark.parametrize("part", KINDS, ids=repr)
    def test_a_sum_is_that_of_the_measures(self, part):
        """Products of the masses, one by one, infinite losses in all that is not finite."""
        for count in (1, 2):
            own, counts = loss_sum({part: count}, 1e-5), {part: count}
            single = symmetric_law(part, *suitable_step(counts, 1e-5))
            for epsilon in (0.0, 0.03, 0.7, 5.0):
                true = product_of([single] * count)(epsilon)
                assert min(1.0, true) * (1 - 1e-12) <= own.delta(epsilon) <= true * (1 + 1e-9) + 1e-11

    @pytest.mark.parametrize("half", [3, 700])
    def test_masses_above_one_are_composed_as_they_are(self, half):
        """Few points, term by term; and many, by Fourier transforms."""
        rng = np.random.default_rng(half)
        laws = [
            LossLaw(LossLattice(2.0 / half, half), mass * total / mass.sum(), infinite)
            for total, infinite in ((1.3, 1e-3), (1.0, 0.0), (1.7, 0.02))
            for mass in [rng.random(2 * half + 1)]
        ]
        one, other, third = map(LossSum.of, laws)
        for found, parts in (
            (one.plus(other).plus(third), laws),
            (one.times(3), laws[:1] * 3),
            (third.times(2).plus(one), [laws[2], laws[2], laws[0]]),
        ):
            exact = product_of(parts)
            for epsilon in (1.9, 3.5, 5.5, 100.0):
                true = exact(epsilon)
                assert min(1.0, true) * (1 - 1e-12) <= found.delta(epsilon) <= min(1.0, true * (1 + 1e-9) + 1e-9)

    def test_the_hull_of_several_proofs_is_convex(self):
        """The smaller of two curves that cross is not, and corners above its hull would bear negative masses."""
        x = np.arange(5.0)
        assert _lower_hull(x, np.array([4.0, 3.0, 2.9, 0.5, 0.0])).tolist() == [0, 3, 4]
        assert _lower_hull(x, np.array([4.0, 2.0, 1.0, 0.5, 0.25])).tolist() == [0, 1, 2, 3, 4]

    @pytest.mark.parametrize("delta", [1e-5, 1e-15, 1e-18, 1e-300])
    def test_what_the_law_does_not_resolve_is_left_to_basic_composition(self, delta):
        """A level beyond the largest finite loss has no finite masses; tiny deltas are below the rounding of laws."""
        parts = (GaussianDP(0.2, 1e-6), PureDP(0.2), PureDP(100.0))
        total = compose(parts, delta)
        assert total.epsilon(delta) == basic_epsilon(parts, delta)
        assert total.delta(1.0) == 1.0
        small = compose(parts[:2], delta)
        true = GaussianDP(0.2, delta).epsilon(delta)
        assert true <= small.epsilon(delta) <= basic_epsilon(parts[:2], delta)

    def test_rates_are_not_added_beyond_what_can_be_summed(self):
        most = PoissonGaussianDP(1e-5, 1e6, 1e-6)
        assert merged_profiles([most, PureDP(0.1), most]) == {most: 2, PureDP(0.1): 1}
        with pytest.raises(InputError, match=r"^rate: "):
            PoissonGaussianDP(1e-5, 1.1e6, 1e-6)

    def test_releases_may_come_in_any_order_and_in_groups(self):
        parts = [PureDP(0.3), DRAW, TABLE, ApproximateDP(0.2, 1e-8), DRAW]
        forwards, backwards = (compose(each, 1e-5).epsilon(1e-5) for each in (parts, parts[::-1]))
        grouped = compose([compose(parts[:3], 1e-5), *parts[3:]], 1e-5)
        assert forwards == pytest.approx(backwards, rel=1e-6)
        assert grouped.epsilon(1e-5) == forwards

    def test_exact_compositions_come_first(self):
        counts = merged_profiles([DRAW, PureDP(0.5), KERNEL, DRAW, PureDP(0.5), KERNEL, PureDP(0.4)])
        assert list(counts.values()) == [1, 2, 1, 1]
        assert [type(part) for part in counts] == [GaussianDP, PureDP, PoissonGaussianDP, PureDP]
        assert list(counts)[-1] == PureDP(0.4)

    def test_a_single_release_is_as_good_as_alone(self):
        assert compose([KERNEL], 1e-5).epsilon(1e-5) == pytest.approx(KERNEL.epsilon(1e-5), rel=1e-14)
        assert compose([PureDP(1.0)], 1e-5) == PureDP(1.0)
        assert compose([TABLE], 1e-5).epsilon(1e-5) == TABLE.epsilon(1e-5)

    @pytest.mark.parametrize("delta", [-1e-6, 1.0, math.nan, "1e-6"])
    def test_delta_is_a_probability(self, delta):
        with pytest.raises(InputError, match="delta"):
            compose([DRAW, PureDP(1.0)], delta)

    def test_nothing_to_compose(self):
        with pytest.raises(InputError, match="profiles: need one"):
            compose([], 1e-6)

    def test_on_paper(self):
        total = compose([DRAW, PureDP(0.5), DRAW], 1e-5)
        assert isinstance(total, Composed)
        data = total.to_dict()
        assert data == {**data, "kind": "composed", "delta": 1e-5, "epsilon": total.epsilon(1e-5)}
        assert [part["kind"] for part in data["parts"]] == ["gaussian", "pure", "gaussian"]
        assert "3 releases together" in total.describe()
        assert "epsilon is inf" in compose([ApproximateDP(1.0, 1e-5)] * 2, 1e-5).describe()


class TestAdaptive:
    @pytest.mark.parametrize(
        ("parts", "delta", "covered"),
        [
            ([DRAW, DRAW], 1e-5, True),
            ([PureDP(1.0)] * 2, 0.0, True),
            ([PureDP(1.0)] * 2, 1e-5, False),
            ([DRAW, PureDP(1.0)], 1e-5, False),
            ([KERNEL, KERNEL], 1e-5, False),
            ([KERNEL], 1e-5, True),
        ],
    )
    def test_where_a_theorem_covers_it(self, parts, delta, covered):
        assert adaptive(parts, delta) is covered

    @pytest.mark.parametrize("level", [1e-6, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0])
    def test_a_pure_release_is_gaussian(self, level):
        """Randomised response passes below the Gaussian profile of its mu, and touches that of none smaller."""
        mu = gaussian_filter([PureDP(level)])
        epsilons = np.linspace(0, 1.1 * level, 200)
        assert all(PureDP(level).delta(e) <= delta_gaussian(e, mu) * (1 + 1e-11) for e in epsilons)
        assert PureDP(level).delta(0.0) > delta_gaussian(0.0, 0.99 * mu) or level > 10

    def test_rounding_of_the_filter_is_upwards(self):
        """Against fractions: its square is never below the sum of squares."""
        for mu in np.random.default_rng(4).uniform(0.01, 3, (300, 3)):
            found = gaussian_filter([GaussianDP(float(each), 1e-6) for each in mu])
            assert Fraction(found) ** 2 >= sum(Fraction(float(each)) ** 2 for each in mu)

    def test_filter(self):
        pure = gaussian_filter([PureDP(1.0)])
        assert gaussian_filter([GaussianDP(0.3, 1e-6), PureDP(1.0)]) == pytest.approx(math.hypot(0.3, pure))

    @pytest.mark.parametrize("part", [KERNEL, TABLE, ApproximateDP(1.0, 1e-6)])
    def test_no_gaussian_parameter(self, part):
        with pytest.raises(InputError, match="not Gaussian for any mu"):
            gaussian_filter([DRAW, part])


class TestLargest:
    @pytest.mark.parametrize(
        "profile", [DRAW, PureDP(3.0), KERNEL, ApproximateDP(1e-3, 1e-6)], ids=lambda p: type(p).__name__
    )
    def test_fits_and_hardly_more_does(self, profile):
        spent = [DRAW, DRAW, PureDP(0.2)]
        found = largest(profile, spent, 2.0, 1e-5)
        name = {GaussianDP: "mu", PoissonGaussianDP: "ratio"}.get(type(profile), "level")
        more = type(profile)(**{**vars(found), name: 1.001 * getattr(found, name)})
        assert compose([*spent, found], 1e-5).epsilon(1e-5) <= 2.0 < compose([*spent, more], 1e-5).epsilon(1e-5)

    def test_gaussian_remainder(self):
        found = largest(DRAW, [DRAW] * 4, 2.0, 1e-5)
        assert found.mu == pytest.approx(math.sqrt(gaussian_mu(2.0, 1e-5) ** 2 - 4 * DRAW.mu**2), rel=1e-5)

    def test_pure_remainder(self):
        assert largest(PureDP(9.0), [PureDP(0.5), PureDP(0.25)], 2.0, 0.0) == PureDP(1.25)
        assert largest(PureDP(9.0), [PureDP(2.0)], 2.0, 0.0) is None

    @pytest.mark.parametrize(("profile", "delta"), [(TABLE, 1e-5), (DRAW, 0.0), (ApproximateDP(0.1, 1e-4), 1e-5)])
    def test_no_scale_or_no_room(self, profile, delta):
        assert largest(profile, [PureDP(0.5)], 2.0, delta) is None

    def test_budget_spent(self):
        assert largest(DRAW, [DRAW] * 5, 2.0, 1e-5) is None

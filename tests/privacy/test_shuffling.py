"""Shuffled reports: the stated delta against exact divergences of few reports, and the law of clones itself."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement
from typing import ClassVar

import numpy as np
import pytest

from dpppsynth.core.errors import InputError
from dpppsynth.privacy import ShuffledPrivacy, shuffled_delta, shuffled_epsilon, shuffled_reports
from dpppsynth.privacy.catalogue import Statement, text
from dpppsynth.privacy.shuffling import (
    MOST_REPORTS,
    _least,
    binomial_pmf,
    clone_probability,
    most_below,
    shuffled_from_dict,
    shuffled_rounds,
    tail_over_pmf,
)
from dpppsynth.randomizers import (
    DiskArea,
    HadamardResponse,
    OptimizedUnary,
    RandomizedResponse,
    SquareWave,
    SubsetSelection,
)

# Targets as shares of the local bound.
SHARES = (0.02, 0.2, 0.5, 0.8, 0.97)


def histogram(laws):
    """Law of how often each report comes, for independent reports with these laws."""
    found = {(): 1.0}
    for law in laws:
        following = {}
        for seen, chance in found.items():
            for report in np.flatnonzero(law).tolist():
                key = tuple(sorted((*seen, report)))
                following[key] = following.get(key, 0.0) + chance * law[report]
        found = following
    return found


def divergence(one, other, epsilon):
    """Exact delta of two laws at an epsilon, in the worse direction."""
    keys, factor = one.keys() | other.keys(), math.exp(epsilon)
    pairs = [(one.get(key, 0.0), other.get(key, 0.0)) for key in keys]
    return max(sum(max(0.0, p - factor * q) for p, q in each) for each in (pairs, [(q, p) for p, q in pairs]))


def worst(matrix, n, epsilons):
    """Exact deltas of n shuffled reports: the largest over who the others are, for the values 0 and 1 and 0 and 2."""
    found = np.zeros(len(epsilons))
    for value in range(1, min(3, matrix.shape[1])):
        for others in combinations_with_replacement(range(min(3, matrix.shape[1])), n - 1):
            rest = [matrix[:, other] for other in others]
            one, other = histogram([matrix[:, 0], *rest]), histogram([matrix[:, value], *rest])
            found = np.maximum(found, [divergence(one, other, epsilon) for epsilon in epsilons])
    return found


def clones_mixture(local, n, epsilon, share):
    """Divergence of heads among clones, summed over their number one by one."""
    own, factor, total = math.exp(local), math.exp(epsilon), 0.0
    for c in range(n):
        chance = math.comb(n - 1, c) * share**c * (1 - share) ** (n - 1 - c)
        coin = [0, *(math.comb(c, k) / 2**c for k in range(c + 1)), 0]
        there = [(own * coin[k] + coin[k + 1]) / (own + 1) for k in range(c + 2)]
        here = [(coin[k] + own * coin[k + 1]) / (own + 1) for k in range(c + 2)]
        total += chance * sum(max(0.0, p - factor * q) for p, q in zip(there, here, strict=True))
    return total


class TestNeverTooSmall:
    """Failures with more clones than there are, one report too many, or a test of the wrong threshold."""

    @pytest.mark.parametrize("epsilon", [0.4, 1.0, 3.0])
    @pytest.mark.parametrize(("domain", "sizes"), [(2, (1, 2, 3, 6, 9)), (3, (2, 3, 5)), (5, (2, 4))])
    def test_randomized_response(self, domain, sizes, epsilon):
        law = RandomizedResponse(epsilon=epsilon, domain=domain)
        targets = [share * law.spent for share in SHARES]
        for n in sizes:
            exact = worst(law.matrix(), n, targets)
            stated = [shuffled_delta(law.spent, n, target, clones=law.clones) for target in targets]
            assert (np.array(stated) >= exact).all()

    @pytest.mark.parametrize("epsilon", [0.5, 2.5])
    @pytest.mark.parametrize(
        ("law", "n"),
        [
            (lambda epsilon: OptimizedUnary(epsilon=epsilon, domain=3), 3),
            (lambda epsilon: HadamardResponse(epsilon=epsilon, domain=3), 3),
            (lambda epsilon: SubsetSelection(epsilon=epsilon, domain=4), 4),
            (lambda epsilon: SquareWave(epsilon=epsilon, cells=2, half_width=1), 3),
            (lambda epsilon: DiskArea(epsilon=epsilon, cells=2, radius=1), 3),
            (lambda epsilon: DiskArea(epsilon=epsilon, cells=2, radius=0), 5),
        ],
    )
    def test_laws_with_likely_reports_in_common(self, law, n, epsilon):
        law = law(epsilon)
        targets = [share * law.spent for share in SHARES]
        stated = [shuffled_delta(law.spent, n, target, clones=law.clones) for target in targets]
        assert (np.array(stated) >= worst(law.matrix(), n, targets)).all()

    def test_two_values_come_near_it(self):
        """Nearly attained by binary randomised response: but for rounding by two reports, for a quarter by eight."""
        law = RandomizedResponse(epsilon=1.5, domain=2)
        for n in (1, 2, 5, 8):
            for share in SHARES:
                target = share * law.spent
                exact = worst(law.matrix(), n, [target])[0]
                most = exact * (1 + 1e-7 if n <= 2 else 1.25)
                assert exact <= shuffled_delta(law.spent, n, target, clones=law.clones) <= most

    def test_clones_are_reports_of_either_place(self):
        """Whatever another person's value, their law holds the share of clones that the bound counts on."""
        for law in (
            RandomizedResponse(epsilon=2.0, domain=4),
            OptimizedUnary(epsilon=2.0, domain=4),
            DiskArea(epsilon=2.0, cells=4, radius=1),
            DiskArea(epsilon=2.0, cells=3, radius=0),
            SquareWave(epsilon=2.0, cells=3, half_width=1),
        ):
            matrix = law.matrix()
            pairs = [matrix[:, one] + matrix[:, other] for one, other in combinations(range(law.inputs), 2)]
            least = min((matrix[:, x] / pair).min() for x in range(law.inputs) for pair in pairs)
            assert law.clones <= 2 * least * (1 + 1e-9)
            assert law.clones >= clone_probability(law.spent)


class TestClones:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("local", [0.5, 1.0, 3.0])
    @pytest.mark.parametrize("n", [2, 20, 300])
    def test_nearly_the_mixture_and_never_below(self, local, n):
        for share in (0.01, 0.1, 0.5, 0.9):
            exact = clones_mixture(local, n, share * local, math.exp(-local))
            assert exact <= shuffled_delta(local, n, share * local) <= 1.02 * exact + 1e-60

    def test_one_report_alone_is_randomised_response(self):
        exact = (math.exp(2) - math.exp(1.2)) / (math.exp(2) + 1)
        assert exact <= shuffled_delta(2.0, 1, 1.2) <= exact * (1 + 1e-7)

    @pytest.mark.slow
    def test_falls_with_reports_and_rises_with_the_local_bound(self):
        by_reports = [shuffled_epsilon(2.0, n, 1e-8) for n in (1, 100, 10_000, MOST_REPORTS)]
        assert by_reports == sorted(by_reports, reverse=True)
        assert by_reports[0] == 2.0
        assert shuffled_epsilon(2.0, 10 * MOST_REPORTS, 1e-8) == by_reports[-1]
        by_bound = [shuffled_epsilon(local, 1000, 1e-8) for local in (0.1, 1.0, 3.0, 10.0)]
        assert by_bound == sorted(by_bound)
        assert all(found <= local for found, local in zip(by_bound, (0.1, 1.0, 3.0, 10.0), strict=True))

    @pytest.mark.slow
    def test_the_stated_epsilon_keeps_to_delta_and_is_the_smallest(self):
        for local, n, delta in ((1.0, 1000, 1e-6), (3.0, 50_000, 1e-9)):
            found = shuffled_epsilon(local, n, delta)
            assert shuffled_delta(local, n, found) <= delta < shuffled_delta(local, n, found * 0.9985)

    @pytest.mark.slow
    def test_below_published_bounds(self):
        """The closed form of Feldman, McMillan and Talwar (2021), where it applies."""
        for local, n, delta in ((1.0, 10_000, 1e-6), (2.0, 10**6, 1e-8)):
            a = 8 * math.sqrt(math.exp(local) * math.log(4 / delta) / n) + 8 * math.exp(local) / n
            closed = math.log(1 + (math.exp(local) - 1) / (math.exp(local) + 1) * a)
            assert closed / 8 < shuffled_epsilon(local, n, delta) < closed


class TestBinomialTails:
    """Brackets around exact fractions, which a slip of one term, of a mirror or of the rest would leave."""

    @pytest.mark.parametrize(("trials", "chance"), [(1, 0.5), (7, 0.25), (40, 0.5), (41, 0.0625)])
    def test_brackets(self, trials, chance):
        p = Fraction(chance)
        law = [math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]
        for k in range(trials + 1):
            low, high = binomial_pmf(trials, chance, k)
            assert low < law[k] < high < float(law[k]) * (1 + 1e-7)
            low, high = tail_over_pmf(trials, chance, k)
            whole = sum(law[k:]) / law[k]
            assert low <= whole <= high <= float(whole) * (1 + 1e-7)
            below = most_below(trials, chance, k)
            assert float(sum(law[:k])) <= below <= float(sum(law[:k])) * (1 + 1e-6) + (1e-7 if k > trials * p else 0)
        assert most_below(trials, chance, trials + 1) == 1.0

    def test_long_sums_are_cut_with_a_bound_on_the_rest(self):
        from scipy import stats

        n, p, k = 10**6, 0.25, 252_000
        low, high = tail_over_pmf(n, p, k)
        known = stats.binom.sf(k - 1, n, p) / stats.binom.pmf(k, n, p)
        assert low <= known * (1 + 1e-7)
        assert known * (1 - 1e-7) <= high <= low * (1 + 1e-6)


class TestProof:
    """Verification that compares epsilons to a digit, or that lets an epsilon pass which is too small."""

    # Computed where a test asks for them: at import, every process would.
    MADE: ClassVar = {
        "all laws": cache(lambda: shuffled_reports(2.0, 10_000, 1e-8)),
        "own clones": cache(lambda: shuffled_reports(1.0, 500, 1e-6, clones=0.5)),
        "next to nothing": cache(lambda: shuffled_reports(1e-7, 10, 1e-6)),
        "alone": cache(lambda: shuffled_reports(2.0, 1, 1e-8)),
        "rounds": cache(lambda: shuffled_rounds((0.2, 1.8), 5000, 1e-6)),
    }

    @pytest.fixture(params=list(MADE))
    def own(self, request):
        return self.MADE[request.param]()

    def test_what_another_machine_rounds_up_elsewhere_follows(self, own):
        assert own.proves(shuffled_from_dict(own.to_dict()))
        unit = 10.0 ** (math.floor(math.log10(own.epsilon)) - 3)
        assert own.proves(replace(own, epsilon=own.epsilon + unit, local_epsilon=own.local_epsilon * (1 + 1e-12)))

    def test_smaller_and_needlessly_large_ones_do_not(self, own):
        # Where next to nothing is told, the delta alone covers it, whatever the epsilon.
        for factor in (0.9, 0.998, 1.01) if own.epsilon > 1e-6 else (1.01,):
            assert not own.proves(replace(own, epsilon=own.epsilon * factor))
        for change in ({"reports": own.reports + 1}, {"delta": own.delta / 2}, {"local_epsilon": 3.0}):
            assert not own.proves(replace(own, **change))

    def test_deltas_may_be_found_larger_elsewhere(self):
        """The unrounded epsilon, were its delta computed a two-thousandth larger, is within delta still."""
        for local, n, delta in ((2.0, 10_000, 1e-8), (1.0, 1000, 1e-6)):
            least = _least(local, n, delta, None)
            assert 0.99 * delta < shuffled_delta(local, n, least) <= delta * (1 - 5e-4)


class TestStatement:
    def test_says_what_it_rests_on(self):
        stated = shuffled_reports(2.0, 10_000, 1e-8)
        said = str(stated)
        assert "If moreover an honest shuffler mixes the reports" in said
        assert "at most 1.218 times (e^0.1968)" in said
        assert "give or take a probability of 1e-08" in said
        assert "Without the shuffler the bound above holds alone." in said
        rests = ("honest-shuffler", Statement("honest-reports", reports=10_000), "one-shuffled-report-each")
        assert {*rests} <= {*stated.assumptions}
        assert all(text(each) in said for each in stated.assumptions)

    def test_rounds_add_up(self):
        both = shuffled_rounds((0.2, 1.8), 5000, 1e-6)
        parts = [shuffled_epsilon(local, 5000, 5e-7) for local in (0.2, 1.8)]
        assert sum(parts) <= both.epsilon <= sum(parts) * 1.001
        assert both.local_epsilon == 2.0
        assert Statement("one-shuffled-message-each-round", rounds=2) in both.assumptions
        assert all(text(each) in str(both) for each in both.assumptions)

    def test_json_and_back(self):
        made = shuffled_reports(1.0, 500, 1e-6)
        assert shuffled_from_dict(made.to_dict()) == made

    @pytest.mark.parametrize(
        ("arguments", "named"),
        [((0.0, 10, 1e-6), "local_epsilon"), ((1.0, 0, 1e-6), "reports"), ((1.0, 10, 0.0), "delta")],
    )
    def test_refusals_name_the_argument(self, arguments, named):
        with pytest.raises(InputError, match=named):
            shuffled_reports(*arguments)

    def test_a_statement_without_its_numbers(self):
        with pytest.raises(InputError, match="theorem"):
            ShuffledPrivacy(epsilon=1.0, delta=1e-6, reports=1, local_epsilon=1.0, theorem=None, assumptions=())

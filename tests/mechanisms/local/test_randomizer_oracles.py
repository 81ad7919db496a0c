"""Frequency oracles: closed forms, laws of clients and counts, the hash family, and what is refused.

Statistical tests have fixed seeds; each would fail by chance, under another seed, with probability below 1e-6.
"""

import decimal
import itertools
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg
import scipy.stats

from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.randomizers import frequency, hashing, oracles
from dpppsynth.mechanisms.local.randomizers.exact_sampling import BinaryLaw, binary_law
from dpppsynth.mechanisms.local.randomizers.frequency import total_variance
from dpppsynth.mechanisms.local.randomizers.hadamard import HadamardResponse, walsh_hadamard
from dpppsynth.mechanisms.local.randomizers.oracles import (
    LocalHashing,
    RandomizedResponse,
    best_oracle,
    hash_range_rule,
)
from dpppsynth.mechanisms.local.randomizers.projective import ProjectiveResponse, ProjectiveSpace
from dpppsynth.mechanisms.local.randomizers.unary import (
    OptimizedUnary,
    SubsetSelection,
    SymmetricUnary,
    bit,
    pack,
    unpack,
)
from dpppsynth.spatial.simplex import clip, norm_mul, norm_sub

DESIGNS = (SubsetSelection, ProjectiveResponse)
KINDS = (RandomizedResponse, OptimizedUnary, SymmetricUnary, LocalHashing, HadamardResponse, *DESIGNS)
every = pytest.mark.parametrize("kind", KINDS, ids=[kind.kind for kind in KINDS])
TOTAL = 2**62
WILD = [None, True, math.nan, math.inf, -1.0, 0, 0.0, "1", 10**400, [1.0], object(), 1j]


def rng(seed=0):
    return np.random.default_rng(seed)


def rows_of(oracle, reports):
    """(n,) rows of the matrix of reports."""
    if oracle.kind == "hadamard-response":
        return 2 * reports[:, 0] + reports[:, 1]
    if oracle.kind == "subset-selection":
        subsets = itertools.combinations(range(oracle.domain), oracle.subset)
        known = {sum(1 << value for value in subset): row for row, subset in enumerate(subsets)}
        return np.array([known[word] for word in reports[:, 0].tolist()])
    return reports[:, 0]


class Fixed(np.random.Generator):
    """A generator whose integers are given, in order."""

    def __new__(cls, numbers):
        return super().__new__(cls, np.random.PCG64(0))

    def __init__(self, numbers):
        super().__init__(np.random.PCG64(0))
        self.numbers = list(numbers)

    def integers(self, *bounds, size, **options):
        taken, self.numbers = self.numbers[:size], self.numbers[size:]
        return np.array(taken, dtype=options["dtype"])


class TestClosedForms:
    """Closed forms and tabulated numbers of the oracles."""

    @pytest.mark.parametrize(
        ("epsilon", "m", "p", "other", "ideal", "own"),
        [
            (0.5, 3, 0.451863, 15.817400, 15.670792, 17.629641),
            (1, 4, 0.475367, 3.691655, 3.682694, 4.910259),
            (2, 8, 0.513519, 0.724591, 0.724062, 1.654998),
            (3, 21, 0.501067, 0.220565, 0.220564, 1.215859),
            (5, 149, 0.500697, 0.027319, 0.027319, 1.024497),
        ],
    )
    def test_hashing(self, epsilon, m, p, other, ideal, own):
        oracle = LocalHashing(epsilon=epsilon, domain=50)
        assert oracle.hash_range == hash_range_rule(epsilon) == m
        assert oracle.q == Fraction(1, m)
        assert float(oracle.p) == pytest.approx(p, abs=5e-7)
        assert float(oracle.p) == pytest.approx(math.exp(epsilon) / (math.exp(epsilon) + m - 1), rel=1e-9)
        assert oracle.variance(0, 1) == pytest.approx(other, abs=5e-7)
        assert oracle.variance(1, 1) == pytest.approx(own, abs=5e-7)
        assert OptimizedUnary(epsilon=epsilon, domain=9).variance(0, 1) == pytest.approx(ideal, abs=5e-7)

    def test_numbers_of_clients(self):
        oracle = LocalHashing(epsilon=1, domain=3)
        got = 1000 * oracle.frequencies([250, 300, 0], 1000)
        assert got == pytest.approx([0, 221.8604551651537, -1109.3022762577684], rel=1e-9, abs=1e-9)

    @pytest.mark.parametrize(
        ("oracle", "estimate"),
        [
            (LocalHashing(epsilon=math.log(3), domain=4, hash_range=4), lambda s, n: 4 * s - n),
            (OptimizedUnary(epsilon=math.log(3), domain=4), lambda s, n: 4 * s - n),
            (SymmetricUnary(epsilon=math.log(9), domain=4), lambda s, n: 2 * s - n / 2),
            (RandomizedResponse(epsilon=math.log(3), domain=4), lambda s, n: 3 * s - n / 2),
        ],
        ids=lambda each: getattr(each, "kind", ""),
    )
    def test_simple_budgets(self, oracle, estimate):
        supports = np.array([40, 7, 0, 53])
        assert 100 * oracle.frequencies(supports, 100) == pytest.approx(estimate(supports, 100), rel=1e-9)
        if oracle.kind == "local-hashing":
            assert oracle.variance(np.array([0, 3, 10]), 10) == pytest.approx([30, 33, 40], rel=1e-9)

    def test_variances(self):
        responses = [RandomizedResponse(epsilon=1, domain=d).variance(0, 1) for d in (4, 16, 100)]
        assert responses == pytest.approx([1.598067, 5.662430, 34.112969], abs=5e-7)
        assert OptimizedUnary(epsilon=1, domain=16).variance(0, 1) == pytest.approx(3.682694, abs=5e-7)
        assert SymmetricUnary(epsilon=1, domain=16).variance(0, 1) == pytest.approx(3.917698, abs=5e-7)
        hadamard = HadamardResponse(epsilon=1, domain=16).variance(0, 1)
        assert hadamard == pytest.approx(((math.e + 1) / (math.e - 1)) ** 2, rel=1e-9)

    @pytest.mark.parametrize(("epsilon", "most"), [(1, 10), (3, 62), (5, 447)])
    def test_response_is_better_than_hashing_where_values_are_few(self, epsilon, most):
        ideal = 4 * math.exp(epsilon) / (math.exp(epsilon) - 1) ** 2
        few, many = (RandomizedResponse(epsilon=epsilon, domain=d).variance(0, 1) for d in (most, most + 1))
        assert few < ideal < many


class TestPrivacy:
    @every
    @pytest.mark.parametrize("epsilon", [0.001, 0.1, 0.5, 1.0, 3.5, 8.0])
    @pytest.mark.parametrize("domain", [1, 2, 225])
    def test_spent(self, kind, epsilon, domain):
        assert epsilon * (1 - 1e-9) <= kind(epsilon=epsilon, domain=domain).spent <= epsilon

    @pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 7.0])
    def test_exact_odds_of_bits(self, epsilon):
        with decimal.localcontext(prec=60):
            most = decimal.Decimal(epsilon).exp()
            for oracle in (OptimizedUnary(epsilon=epsilon, domain=3), SymmetricUnary(epsilon=epsilon, domain=3)):
                p, q = oracle.p, oracle.q
                # All reports of three bits, one by one, as fractions.
                ratios = []
                for bits in itertools.product((0, 1), repeat=3):
                    law = [
                        math.prod((c if b else 1 - c) for b, c in zip(bits, [q] * v + [p] + [q] * (2 - v), strict=True))
                        for v in range(3)
                    ]
                    ratios.append(max(law) / min(law))
                worst = max(ratios)
                assert worst == p * (1 - q) / ((1 - p) * q)
                ratio = decimal.Decimal(worst.numerator) / decimal.Decimal(worst.denominator)
                assert most * (1 - decimal.Decimal("1e-12")) <= ratio <= most
        assert OptimizedUnary(epsilon=epsilon, domain=3).p == Fraction(1, 2)

    @every
    @pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
    @pytest.mark.parametrize("domain", [1, 3, 6])
    def test_every_report(self, kind, epsilon, domain):
        matrix = kind(epsilon=epsilon, domain=domain).matrix()
        assert matrix.shape[1] == domain
        assert matrix.sum(axis=0) == pytest.approx(np.ones(domain), abs=1e-12)
        worst = (matrix.max(axis=1) / matrix.min(axis=1)).max()
        assert worst <= math.exp(epsilon) * (1 + 1e-12)
        assert worst == pytest.approx(1 if domain == 1 else math.exp(epsilon), rel=1e-9)

    @every
    def test_log_ratio_is_that_of_the_matrix(self, kind):
        oracle = kind(epsilon=0.7, domain=5)
        reports = oracle.draw(np.arange(5).repeat(40), rng(3))
        got = oracle.log_ratio(reports, 1, 3)
        if kind is LocalHashing:
            # The law of the class given the class of the value, for the function of each seed.
            law = RandomizedResponse(epsilon=0.7, domain=oracle.hash_range).matrix()
            hashes = [hashing.hash_classes(reports[:, 0], v, oracle.hash_range) for v in (1, 3)]
            expected = np.log(law[reports[:, 1], hashes[0]] / law[reports[:, 1], hashes[1]])
        else:
            matrix = np.log(oracle.matrix())
            row = rows_of(oracle, reports)
            expected = matrix[row, 1] - matrix[row, 3]
        assert got == pytest.approx(expected, abs=1e-9)
        assert np.abs(got).max() == oracle.spent
        assert not oracle.log_ratio(reports, 2, 2).any()

    def test_seeds_do_not_depend_on_values(self):
        oracle = LocalHashing(epsilon=1, domain=100)
        one, other = (oracle.draw(values, rng(1)) for values in (np.zeros(5000, int), rng(2).integers(100, size=5000)))
        assert (one[:, 0] == other[:, 0]).all()
        assert len(set(one[:, 0].tolist())) == 5000
        assert one[:, 0].max() > 2**62
        assert one[:, 0].min() >= 0


class TestClients:
    def test_bits_are_compared_as_integers(self):
        oracle, half = OptimizedUnary(epsilon=1, domain=5), TOTAL // 2
        high, low = divmod(int(oracle.q * TOTAL), 2**46)
        # First the 16 high bits of all, then the 46 low ones of ties, then the own bit's number.
        for own, keep in ((half - 1, True), (half, False)):
            report = oracle.draw([1], Fixed([high - 1, 0, high, high + 1, high, low - 1, low, own]))
            assert unpack(report, 5).tolist() == [[True, keep, True, False, False]]

    def test_flips_are_compared_as_integers(self):
        oracle = HadamardResponse(epsilon=1, domain=2)
        high, low = divmod(int((1 - oracle.p) * TOTAL), 2**46)
        assert oracle.draw([1, 1], Fixed([high, high, low - 1, low, 1, 1])).tolist() == [[1, 0], [1, 1]]

    def test_responses_are_drawn_by_their_weights(self):
        oracle = RandomizedResponse(epsilon=1, domain=3)
        other, own = int(oracle.q * TOTAL), int((oracle.p - oracle.q) * TOTAL)
        numbers = [0, other - 1, other + 1, 3 * other - 3, TOTAL - own, TOTAL - 1]
        assert oracle.draw([1] * 6, Fixed(numbers))[:, 0].tolist() == [0, 0, 1, 2, 1, 1]

    @every
    def test_law(self, kind, monkeypatch):
        """Chi-square of 3 x 10^5 reports, drawn in many parts; of the class, given the value's, under local oracles."""
        monkeypatch.setattr(frequency, "CHUNK", 5000)
        oracle, n = kind(epsilon=0.8, domain=4), 300_000
        reports = oracle.draw(np.full(n, 2), rng(4))
        if kind is LocalHashing:
            own = hashing.hash_classes(reports[:, 0], 2, oracle.hash_range)
            rows, law = (reports[:, 1] - own) % oracle.hash_range, [float(oracle.p)]
            law += [(1 - law[0]) / (oracle.hash_range - 1)] * (oracle.hash_range - 1)
        else:
            rows, law = rows_of(oracle, reports), oracle.matrix()[:, 2]
        observed = np.bincount(rows, minlength=len(law))
        assert scipy.stats.chisquare(observed, n * np.array(law)).pvalue > 1e-7

    @pytest.mark.parametrize("epsilon", [0.5, 5.0])
    def test_a_class_is_kept_as_often_as_it_should(self, epsilon):
        """Fails for a client that compares its draw with the hash range and never perturbs."""
        oracle, n = LocalHashing(epsilon=epsilon, domain=30), 200_000
        values = rng(5).integers(30, size=n)
        reports = oracle.draw(values, rng(6))
        kept = (hashing.hash_classes(reports[:, 0], values, oracle.hash_range) == reports[:, 1]).sum()
        assert scipy.stats.binomtest(int(kept), n, float(oracle.p)).pvalue > 1e-7

    @pytest.mark.parametrize("weight", [1, 2**46 - 1, 2**46, 2**46 + 1, 2**61 - 1, 2**61])
    def test_flips_of_all_weights(self, weight):
        """Halves of the comparison join to the whole one, at the numbers around the weight and at both ends."""
        numbers = [n for n in (0, weight - 1, weight, weight + 1, TOTAL - 1) if n >= 0]
        for number in numbers:
            high, low = divmod(number, 2**46)
            assert BinaryLaw(weight).flips(Fixed([high, low]), 1).tolist() == [number < weight]

    def test_memory_does_not_grow_with_clients(self):
        """The bits of these clients, all at once, are 36 MB, and the numbers they are drawn from 288 MB."""
        oracle, values = OptimizedUnary(epsilon=1, domain=1800), np.zeros(20_000, dtype=np.int64)
        tracemalloc.start()
        oracle.count(oracle.draw(values, rng(1)))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 36e6


class TestEstimates:
    @pytest.mark.parametrize(
        "oracle",
        [*(kind(epsilon=1.2, domain=4) for kind in KINDS), LocalHashing(epsilon=1.2, domain=4, hash_range=7)],
        ids=[*(kind.kind for kind in KINDS), "seven classes"],
    )
    def test_mean_and_variance_of_clients(self, oracle):
        """10^4 repetitions of 40 clients: every mean, variance and covariance within six standard errors.

        Estimates are near normal; a hash range that differs between client and estimator is many errors off.
        """
        clients = np.array([0] * 25 + [1] * 10 + [2] * 5)
        repeats, n = 10_000, len(clients)
        reports = oracle.draw(np.tile(clients, repeats), rng(7))
        supports = np.stack([oracle.supported(reports, v).reshape(repeats, n).sum(axis=1) for v in range(4)], axis=1)
        numbers = (supports - n * float(oracle.q)) / float(oracle.p - oracle.q)
        true = np.bincount(clients, minlength=4)
        variance, cov = oracle.variance(true, n), np.cov(numbers.T)
        assert (np.abs(numbers.mean(axis=0) - true) < 6 * np.sqrt(variance / repeats)).all()
        assert (np.abs(np.diag(cov) / variance - 1) < 6 * math.sqrt(2.2 / repeats)).all()
        if oracle.kind == "local-hashing":
            errors = np.sqrt(np.outer(variance, variance) / repeats)
            assert (np.abs(cov) < 6 * errors)[~np.eye(4, dtype=bool)].all()
        if oracle.kind == "randomized-response":
            assert (supports.sum(axis=1) == n).all()

    @every
    def test_counts_give_those_supports(self, kind):
        oracle = kind(epsilon=1, domain=11)
        reports = oracle.draw(rng(1).integers(11, size=3000), rng(2))
        counts = oracle.count(reports)
        assert counts.dtype == np.int64
        assert counts.shape == (oracle.size,)
        expected = [oracle.supported(reports, v).sum() for v in range(11)]
        assert oracle.supports(counts).tolist() == expected
        shares = (np.array(expected) / 3000 - float(oracle.q)) / float(oracle.p - oracle.q)
        assert oracle.frequencies(counts, 3000) == pytest.approx(shares, abs=1e-12)
        assert oracle.reported(counts) == (3000 if oracle.categorical else None)

    @every
    def test_counts_add_up(self, kind):
        oracle = kind(epsilon=1, domain=130)
        reports = oracle.draw(rng(1).integers(130, size=999), rng(2))
        parts = np.split(rng(3).permutation(reports), [0, 1, 500, 998])
        assert (sum(oracle.count(part) for part in parts) == oracle.count(reports)).all()
        assert not oracle.count(reports[:0]).any()

    def test_response_numbers_sum_to_all(self):
        oracle = RandomizedResponse(epsilon=0.3, domain=50)
        counts = oracle.count(oracle.draw(rng(1).integers(50, size=777), rng(2)))
        assert 777 * oracle.frequencies(counts, 777).sum() == pytest.approx(777, rel=1e-12)

    @every
    def test_one_value(self, kind):
        oracle = kind(epsilon=1, domain=1)
        counts = oracle.count(oracle.draw(np.zeros(100, int), rng(1)))
        assert oracle.estimate(counts, 100).tolist() == [1.0]
        assert np.isfinite(oracle.frequencies(counts, 100)).all()
        if kind is RandomizedResponse:
            assert 100 * oracle.frequencies(counts, 100) == pytest.approx([100], rel=1e-12)
            assert oracle.variance(100, 100) == 0

    @every
    def test_shares(self, kind):
        oracle = kind(epsilon=2, domain=6)
        counts = oracle.count(oracle.draw(rng(1).integers(2, size=300), rng(2)))
        raw = oracle.estimate(counts, 300, post="none")
        assert (raw == oracle.frequencies(counts, 300)).all()
        assert (oracle.estimate(counts, 300) == norm_sub(raw)).all()
        assert (oracle.estimate(counts, 300, post="clip") == norm_mul(raw)).all()
        inside = np.array([True, False, True, True, False, False])
        for post in ("norm-sub", "clip"):
            shares = oracle.estimate(counts, 300, inside=inside, post=post)
            assert not shares[~inside].any()
            assert shares.min() >= 0
            assert shares.sum() == pytest.approx(1, abs=1e-12)
        assert oracle.settings() == {"post": "norm-sub"}
        for given in ({"post": "norm"}, {"post": None}, {"tolerance": 1}):
            with pytest.raises(InputError):
                oracle.estimate(counts, 300, **given)

    def test_no_support_is_a_result(self):
        for kind in (OptimizedUnary, SymmetricUnary, LocalHashing):
            assert kind(epsilon=1, domain=4).estimate(np.zeros(4, int), 1) == pytest.approx([0.25] * 4)

    def test_parameters_make_it_again(self):
        made = LocalHashing(epsilon=1, domain=7).parameters()
        assert made == {"kind": "local-hashing", "epsilon": 1.0, "domain": 7, "hash_range": 4}


class TestFastCounts:
    TRUE = np.array([30, 12, 0, 18])

    def moments(self, oracle, repeats):
        source = rng(8)
        counts = np.array([oracle.fast_counts(self.TRUE, source) for _ in range(repeats)])
        return counts, counts.mean(axis=0), np.cov(counts.T)

    def close(self, oracle, mean, cov, repeats=2500):
        """Within 6.5 standard errors of the exact mean and covariance: at most 80 figures, each near normal."""
        _, got_mean, got_cov = self.moments(oracle, repeats)
        variance = np.diag(cov)
        assert (np.abs(got_mean - mean) <= 6.5 * np.sqrt(variance / repeats) + 1e-9).all()
        errors = np.sqrt((np.outer(variance, variance) + cov**2) / repeats)
        assert (np.abs(got_cov - cov) <= 6.5 * errors + 1e-9).all()

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("kind", [RandomizedResponse, HadamardResponse, ProjectiveResponse])
    def test_each_report_counts_once(self, kind):
        oracle = kind(epsilon=1, domain=4)
        law = oracle.matrix()
        cov = sum(c * (np.diag(law[:, v]) - np.outer(law[:, v], law[:, v])) for v, c in enumerate(self.TRUE))
        self.close(oracle, law @ self.TRUE, cov)
        assert oracle.fast_counts(self.TRUE, rng(1)).sum() == 60

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("size", [1, 2, 3])
    def test_supports_of_subsets_are_correlated_as_those_of_reports(self, size):
        """Members of each report, by the matrix: independent binomials of each value would not sum to size times n."""
        oracle = SubsetSelection(epsilon=1, domain=4, subset=size)
        members = np.array([[v in each for v in range(4)] for each in itertools.combinations(range(4), size)], float)
        law = oracle.matrix()
        mean = members.T @ law
        cov = sum(
            c * (members.T @ (law[:, [v]] * members) - np.outer(mean[:, v], mean[:, v]))
            for v, c in enumerate(self.TRUE)
        )
        self.close(oracle, mean @ self.TRUE, cov)
        assert oracle.fast_counts(self.TRUE, rng(1)).sum() == 60 * size

    @pytest.mark.parametrize("kind", [OptimizedUnary, SymmetricUnary, LocalHashing])
    def test_supports_are_uncorrelated(self, kind):
        """The same mean and variance as of real reports: those of `test_mean_and_variance_of_clients`."""
        oracle = kind(epsilon=1, domain=4)
        p, q = float(oracle.p), float(oracle.q)
        mean = self.TRUE * p + (60 - self.TRUE) * q
        variance = self.TRUE * p * (1 - p) + (60 - self.TRUE) * q * (1 - q)
        self.close(oracle, mean, np.diag(variance))

    @every
    def test_bad_counts(self, kind):
        oracle = kind(epsilon=1, domain=3)
        for bad in (None, [1, 2], [1, 2, -1], [0.5, 1, 1], [2**61, 2**61, 2**61], "abc", [[1, 2, 3]]):
            with pytest.raises(InputError, match="true_counts"):
                oracle.fast_counts(bad, rng())
        with pytest.raises(InputError, match="rng"):
            oracle.fast_counts([1, 2, 3], 7)


class TestHashing:
    def reference(self, seed, value, hash_range):
        word = 2**64 - 1

        def mix(z):
            z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & word
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & word
            return z ^ (z >> 31)

        step = 0x9E3779B97F4A7C15
        return mix((mix((seed + step) & word) + (value + 1) * step) & word) * hash_range >> 64

    @pytest.mark.parametrize("hash_range", [2, 3, 149, 2**31])
    def test_integers(self, hash_range):
        """By Python's integers, so that clients and aggregators on any machine agree."""
        seeds = np.concatenate([[0, 1, 2**63 - 1], oracles.draw_seeds(rng(1), 200)])
        for value in (0, 1, 224, 2**24 - 1):
            expected = [self.reference(int(seed), value, hash_range) for seed in seeds]
            assert hashing.hash_classes(seeds, value, hash_range).tolist() == expected

    @pytest.mark.parametrize("hash_range", [2, 3, 10, 149, 2**31])
    def test_supports(self, hash_range, monkeypatch):
        """The compiled loop by intervals and the hashes one by one agree; first and last classes among them."""
        monkeypatch.setattr(oracles, "CHUNK", 700)
        seeds = oracles.draw_seeds(rng(2), 2000)
        values = hashing.hash_classes(seeds, np.arange(2000) % 17, hash_range)
        values[:50], values[50:100] = 0, hash_range - 1
        counts = oracles.hash_supports(seeds, values, 17, hash_range)
        assert counts.tolist() == [(hashing.hash_classes(seeds, v, hash_range) == values).sum() for v in range(17)]
        assert counts.min() > 100

    def test_edges_of_classes(self):
        for hash_range in (2, 3, 7, 21, 2**31 - 1, 2**31):
            values = np.array([0, 1, hash_range // 2, hash_range - 1, hash_range])
            expected = [-(-int(v) * 2**64 // hash_range) % 2**64 for v in values]
            assert hashing.interval(values, hash_range).tolist() == expected

    @pytest.mark.parametrize("seeds", ["drawn", "consecutive"])
    def test_three_values_are_as_good_as_independent(self, seeds):
        """Joint classes of three values are uniform, so two collide in one of `hash_range`: chi-square, 16 tests.

        Consecutive seeds, the worst there are, show that the mix does not rely on the seeds' generator.
        """
        n = 60_000
        named = oracles.draw_seeds(rng(3), n) if seeds == "drawn" else np.arange(n)
        for hash_range, three in itertools.product((2, 3, 4, 8), [(0, 1, 2), (0, 1, 224), (5, 6, 2**20), (7, 63, 64)]):
            joint = np.ravel_multi_index(
                [hashing.hash_classes(named, v, hash_range) for v in three], (hash_range,) * len(three)
            )
            observed = np.bincount(joint, minlength=hash_range**3)
            assert scipy.stats.chisquare(observed).pvalue > 1e-8

    def test_collisions(self):
        n, hash_range = 100_000, 21
        seeds = oracles.draw_seeds(rng(4), n)
        for one, other in ((0, 1), (3, 4), (100, 101), (0, 15), (14, 210)):
            same = hashing.hash_classes(seeds, one, hash_range) == hashing.hash_classes(seeds, other, hash_range)
            assert scipy.stats.binomtest(int(same.sum()), n, 1 / hash_range).pvalue > 1e-8

    def test_all_functions_at_once(self):
        """Exact moments over the uniform family, of which seeds draw: p, 1/m, and no correlation of supports."""
        oracle = LocalHashing(epsilon=0.5, domain=3)
        m, p, q = oracle.hash_range, float(oracle.p), float(oracle.q)
        functions = np.array(list(itertools.product(range(m), repeat=3)))
        supported = functions[:, None, :] == np.arange(m)[:, None]
        supported, law = supported.reshape(-1, 3).astype(float), oracle.matrix()
        expected = np.where(np.eye(3, dtype=bool), p, q)
        assert supported.T @ law == pytest.approx(expected, abs=1e-12)
        for v in range(3):
            joint = supported.T @ (law[:, [v]] * supported)
            product = np.outer(expected[:, v], expected[:, v])
            off = ~np.eye(3, dtype=bool)
            assert joint[off] == pytest.approx(product[off], abs=1e-12)


class TestHadamard:
    @pytest.mark.parametrize("size", [1, 2, 8, 64])
    def test_transform(self, size):
        values = rng(size).integers(-(2**40), 2**40, size=size)
        expected = scipy.linalg.hadamard(size, dtype=np.int64) @ values
        assert walsh_hadamard(values).tolist() == expected.tolist()

    def test_powers_of_two_only(self):
        for size in (0, 3):
            with pytest.raises(InputError):
                walsh_hadamard(np.zeros(size, int))

    @pytest.mark.parametrize(("domain", "size"), [(1, 2), (2, 4), (3, 8), (4, 8), (5, 16), (65, 256)])
    def test_matrix(self, domain, size):
        oracle = HadamardResponse(epsilon=1, domain=domain)
        law, signs = oracle.matrix(), scipy.linalg.hadamard(size // 2)[:, :domain]
        assert oracle.size == size
        p = float(oracle.p)
        assert law[::2] * size / 2 == pytest.approx(np.where(signs > 0, p, 1 - p))
        assert law[1::2] * size / 2 == pytest.approx(np.where(signs > 0, 1 - p, p))


class TestDesigns:
    """Subsets and projective spaces: every value in as many blocks, every two in as many, and odds of e^epsilon."""

    @pytest.mark.parametrize(
        "oracle",
        [
            *(SubsetSelection(epsilon=1.3, domain=d, subset=k) for d, k in ((2, 1), (5, 1), (5, 3), (6, 5))),
            *(
                ProjectiveResponse(epsilon=1.3, domain=d, order=q)
                for d, q in ((2, 2), (7, 2), (9, 3), (31, 5), (20, 3))
            ),
        ],
        ids=lambda each: f"{each.kind} {each.domain} {getattr(each, 'subset', getattr(each, 'order', ''))}",
    )
    def test_exact_law(self, oracle):
        """Chances of support by counting blocks, as fractions; the largest ratio of two chances of one report."""
        law = oracle.matrix()
        likely = law > law.min() * 1.5
        blocks, one = len(law), likely.sum(axis=0)
        assert (one == one[0]).all()
        both = likely.T.astype(int) @ likely
        assert len(set(both[~np.eye(oracle.domain, dtype=bool)].tolist())) == 1
        own = oracle.p / int(one[0])
        other = (1 - oracle.p) / int(blocks - one[0])
        with decimal.localcontext(prec=60):
            ratio = decimal.Decimal((own / other).numerator) / decimal.Decimal((own / other).denominator)
            assert decimal.Decimal(1.3 * (1 - 1e-9)) <= ratio.ln() <= decimal.Decimal(oracle.spent)
            assert oracle.spent <= 1.3
        assert oracle.q == int(both[0, 1]) * own + int(one[0] - both[0, 1]) * other
        np.testing.assert_allclose(law, np.where(likely, float(own), float(other)), rtol=1e-14)

    @pytest.mark.parametrize(("order", "dimension"), [(2, 2), (2, 5), (3, 3), (5, 2), (5, 3), (11, 3)])
    def test_points(self, order, dimension):
        space = ProjectiveSpace(order, dimension)
        points = np.arange(space.points)
        vectors = space.vectors(points)
        every = [v for v in itertools.product(range(order), repeat=dimension) if any(v)]
        assert [tuple(v) for v in vectors.tolist()] == sorted(v for v in every if next(filter(None, v)) == 1)
        for scale in range(1, order):
            assert (space.numbers(vectors * scale % order) == points).all()
        for plane in (0, 1, space.points // 2, space.points - 1):
            held = points[vectors @ vectors[plane] % order == 0]
            which = np.arange(len(held))
            assert sorted(space.within(np.full(len(held), plane), which).tolist()) == held.tolist()

    @pytest.mark.parametrize(("order", "dimension"), [(2, 3), (3, 4), (13, 3), (1031, 2)])
    def test_sums_over_hyperplanes(self, order, dimension):
        """By whole numbers, a hyperplane at a time; of ten thousand million reports too."""
        space = ProjectiveSpace(order, dimension)
        values = rng(4).integers(0, 10**10 // space.points, size=space.points)
        vectors = space.vectors(np.arange(space.points))
        sums = space.hyperplane_sums(values)
        for plane in rng(5).integers(space.points, size=40):
            expected = values[vectors @ vectors[plane] % order == 0].sum()
            assert sums[plane] == expected

    @pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 5.0])
    @pytest.mark.parametrize("domain", [3, 16, 62, 200])
    def test_no_other_size_or_field_is_better(self, epsilon, domain):
        best, sizes = SubsetSelection(epsilon=epsilon, domain=domain), range(1, domain)
        each = [total_variance(SubsetSelection(epsilon=epsilon, domain=domain, subset=size)) for size in sizes]
        assert total_variance(best) == pytest.approx(min(each), rel=1e-9)
        orders = (2, 3, 5, 7, 11, 13, 17, 19, 23, 61, 67, 149, 151, 199, 211)
        fields = [total_variance(ProjectiveResponse(epsilon=epsilon, domain=domain, order=each)) for each in orders]
        assert total_variance(ProjectiveResponse(epsilon=epsilon, domain=domain)) <= min(fields) * (1 + 1e-9)

    @pytest.mark.parametrize(("epsilon", "domain"), [(1.0, 9), (3.0, 4), (3.0, 60), (5.0, 30), (1.0, 700)])
    def test_the_choice_has_the_least_variance(self, epsilon, domain):
        chosen = best_oracle(epsilon, domain)
        tried = [RandomizedResponse, LocalHashing, ProjectiveResponse, *([SubsetSelection] if domain < 497 else [])]
        others = [total_variance(kind(epsilon=epsilon, domain=domain)) for kind in tried]
        assert total_variance(chosen) <= min(others) * (1 + 2e-6)
        assert len(chosen.columns) <= 8

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(("epsilon", "domain"), [(1.0, 9), (3.0, 13), (5.0, 9)])
    def test_total_variance_is_that_of_simulations(self, epsilon, domain):
        """Squared errors of all values over 4000 lots of 200 reports; of Hadamard response many times larger.

        A lot's sum of squares has a coefficient of variation below 1.5, so five times 1.5 / sqrt(4000) is .12.
        """
        values = np.concatenate([np.zeros(120, int), np.arange(80) % domain])
        true = np.bincount(values, minlength=domain)
        found = {}
        for kind in (best_oracle(epsilon, domain), HadamardResponse(epsilon=epsilon, domain=domain)):
            source = rng(9)
            errors = [200 * kind.frequencies(kind.fast_counts(true, source), 200) - true for _ in range(4000)]
            found[kind.kind] = np.square(errors).sum(axis=1).mean() / 200
            assert found[kind.kind] == pytest.approx(total_variance(kind), rel=0.12)
        if epsilon > 1:
            assert max(found.values()) > 5 * min(found.values())

    def test_bad_sizes_and_fields(self):
        for size in (0, 4, 1.0, True, "2", math.nan):
            with pytest.raises(InputError, match="subset"):
                SubsetSelection(epsilon=1, domain=4, subset=size)
        for order in (0, 1, 4, 9, 2053, 2.0, True, "3", math.nan):
            with pytest.raises(InputError, match="order"):
                ProjectiveResponse(epsilon=1, domain=4, order=order)
        with pytest.raises(InputError, match="domain"):
            ProjectiveResponse(epsilon=1, domain=2**23)

    def test_subsets_with_equal_keys_at_their_end_are_drawn_again(self):
        """Own value and one of three others: in the first lot of keys two of these have the least one."""
        oracle = SubsetSelection(epsilon=1, domain=4, subset=2)
        # The highest bits keep the own value, 3, whose key plays no part.
        source = Fixed([2**16 - 1, 7, 7, 9, 0, 8, 4, 6, 1])
        assert unpack(oracle.draw([3], source), 4).tolist() == [[False, True, False, True]]


class TestPacking:
    @pytest.mark.parametrize("size", [1, 2, 61, 62, 63, 124, 125, 225])
    def test_round_trip(self, size):
        bits = rng(size).random((40, size)) < 0.5
        bits[0], bits[1] = True, False
        words = pack(bits)
        assert words.dtype == np.int64
        assert words.shape == (40, -(-size // 62))
        assert words.min() == 0
        assert words.max() < 2**62
        assert (unpack(words, size) == bits).all()
        assert all((bit(words, k) == bits[:, k]).all() for k in range(size))
        exact = [sum(int(b) << k for k, b in enumerate(row[:62])) for row in bits]
        assert words[:, 0].tolist() == exact
        assert len(OptimizedUnary(epsilon=1, domain=size).columns) == words.shape[1]


class TestSimplex:
    def nearest(self, values, total):
        """By all supports: on the right one, the shifted entries are positive and the distance is least."""
        best, found = math.inf, None
        for size in range(1, len(values) + 1):
            for support in map(list, itertools.combinations(range(len(values)), size)):
                point = np.zeros(len(values))
                point[support] = values[support] + (total - values[support].sum()) / size
                distance = ((point - values) ** 2).sum()
                if point.min() >= 0 and distance < best:
                    best, found = distance, point
        return found

    @pytest.mark.parametrize("total", [0.3, 1.0, 20.0])
    def test_nearest(self, total):
        cases = [*rng(1).normal(0.2, 1, (8, 5)), -rng(2).random(5), np.array([0.5, 0.5, 0.0, -1.0, 0.5])]
        for values in cases:
            assert norm_sub(values, total) == pytest.approx(self.nearest(values, total), abs=1e-12)

    def test_inside(self):
        inside = np.array([True, True, False])
        assert norm_sub([-1.0, -3.0, 9.0], inside=inside).tolist() == [1, 0, 0]
        assert norm_mul([-1.0, -3.0, 9.0], inside=inside).tolist() == [0.5, 0.5, 0]
        assert norm_mul([3.0, 1.0, 9.0], 8.0, inside=inside).tolist() == [6, 2, 0]
        assert clip([3.0, -1.0, 9.0], inside=inside).tolist() == [3, 0, 0]

    def test_large_and_small(self):
        assert norm_sub([1e308, -1e308, 1e308]).tolist() == [0.5, 0, 0.5]
        assert norm_mul([1e308, -1e308, 1e308]).tolist() == [0.5, 0, 0.5]
        assert norm_sub([1e20, 1e20 + 1e5]).tolist() == [0, 1]
        assert norm_sub([1.0, 2.0], 1e-310).tolist() == [0, 1e-310]
        assert norm_sub([1.0, 2.0], 0).tolist() == [0, 0]
        assert norm_sub(np.full(7, 1e20)).sum() == pytest.approx(1, abs=1e-15)

    @pytest.mark.parametrize("function", [clip, norm_mul, norm_sub])
    def test_bad(self, function):
        for bad in (None, "a", [], [[1.0]], [math.nan], [math.inf], [1j], [True], [[1], [1, 2]], object(), [10**400]):
            with pytest.raises(InputError, match="values"):
                function(bad)
        for inside in ([True], [1, 0], [False, False], "ab", 7, [None, True]):
            with pytest.raises(InputError, match="inside"):
                function([0.2, 0.3], inside=inside)
        if function is not clip:
            for total in (None, -1, math.nan, math.inf, True, "1"):
                with pytest.raises(InputError, match="total"):
                    function([0.2, 0.3], total)


class TestRefusals:
    @every
    def test_constructors(self, kind):
        # The two bits of symmetric encoding have half of it each, so that integers express twice as much.
        for epsilon in [*WILD, 51.0, 1e-300, *([] if kind is SymmetricUnary else [45.0])]:
            with pytest.raises(InputError, match="epsilon"):
                kind(epsilon=epsilon, domain=4)
        for domain in [*WILD, 2.0, 2**24 + 1, 2**70]:
            with pytest.raises(InputError, match="domain"):
                kind(epsilon=1, domain=domain)

    def test_hash_range(self):
        for given in (1, 2.0, True, math.nan, "3", 2**31 + 1, 10**400):
            with pytest.raises(InputError, match="hash_range"):
                LocalHashing(epsilon=1, domain=4, hash_range=given)
        for epsilon in [*WILD, 30.0]:
            with pytest.raises(InputError, match="epsilon"):
                hash_range_rule(epsilon)
            with pytest.raises(InputError, match="epsilon"):
                best_oracle(epsilon, 4)
        with pytest.raises(InputError, match="domain"):
            best_oracle(1.0, 0)
        with pytest.raises(InputError, match="epsilon"):
            binary_law(45.0)

    @every
    def test_values_and_generators(self, kind):
        oracle = kind(epsilon=1, domain=4)
        for values in (None, [4], [-1], [0.5], ["a"], [[0]], 2, [2**70]):
            with pytest.raises(InputError, match="values"):
                oracle.draw(values, rng())
        for source in (None, 3, "a", np.random.RandomState(1)):
            with pytest.raises(InputError, match="rng"):
                oracle.draw([1], source)
        assert oracle.draw([], rng()).shape == (0, len(oracle.columns))

    @pytest.mark.parametrize(
        ("oracle", "bad"),
        [
            (RandomizedResponse(epsilon=1, domain=4), [[-1], [4]]),
            (OptimizedUnary(epsilon=1, domain=4), [[-1], [16], [2**62]]),
            (SymmetricUnary(epsilon=1, domain=64), [[0, 4], [2**62, 0], [0, -1]]),
            (LocalHashing(epsilon=1, domain=4), [[-1, 0], [0, 4], [0, -1]]),
            (HadamardResponse(epsilon=1, domain=3), [[-1, 0], [4, 0], [0, 2], [0, -1]]),
            (ProjectiveResponse(epsilon=1, domain=4), [[-1], [4]]),
            # Too many, too few, a value that there is not, and the sign.
            (SubsetSelection(epsilon=1, domain=4, subset=2), [[7], [4], [17], [-1]]),
        ],
        ids=lambda each: getattr(each, "kind", ""),
    )
    def test_reports_that_no_client_sends(self, oracle, bad):
        good = oracle.draw([0, 1, 2], rng(1))
        for report in bad:
            mixed = np.vstack([good, [report]])
            for function in (oracle.count, lambda reports: oracle.log_ratio(reports, 0, 1)):
                with pytest.raises(InputError, match="reports") as caught:
                    function(mixed)
                assert not any(f" {number}" in str(caught.value).split("some")[-1] for number in report)
        for reports in (None, "a", good.astype(float), good[0], good[:, :0], np.zeros((2, 9), int), [["a"]]):
            with pytest.raises(InputError, match="reports"):
                oracle.count(reports)
        for values in ((4000, 0), (0, -1), (0, 1.0), (None, 0), (0, True)):
            with pytest.raises(InputError, match=r"value|other"):
                oracle.log_ratio(good, *values)

    @every
    def test_counts_and_numbers(self, kind):
        oracle = kind(epsilon=1, domain=4)
        counts = oracle.count(oracle.draw([0, 1, 2, 3, 0, 1, 2, 3], rng(1)))
        for n in (None, 0, -8, 8.0, True, math.nan, "8", 10**400, int(oracle.supports(counts).max()) - 1):
            with pytest.raises(InputError, match="n:"):
                oracle.frequencies(counts, n)
        if oracle.categorical:
            with pytest.raises(InputError, match="n:"):
                oracle.frequencies(counts, 9)
            with pytest.raises(InputError, match="counts"):
                oracle.reported(np.zeros(oracle.size, int))
        bad = (
            None,
            counts[:-1],
            counts - 100,
            counts + 0.5,
            counts * math.nan,
            "a",
            [None] * 4,
            [10**400] * oracle.size,
        )
        for wrong in bad:
            with pytest.raises(InputError, match="counts"):
                oracle.estimate(wrong, 8)
            with pytest.raises(InputError, match="counts"):
                oracle.supports(wrong)
        for inside in (False, [True] * 3, [False] * 4, [1, 1, 1, 1]):
            with pytest.raises(InputError, match="inside"):
                oracle.estimate(counts, 8, inside=inside)
        for count in (-1, 9, math.nan, "a", None, [1, None], 1j):
            with pytest.raises(InputError, match="count"):
                oracle.variance(count, 8)

    def test_matrices_of_too_many_reports(self):
        for oracle in (
            RandomizedResponse(epsilon=1, domain=2**14),
            OptimizedUnary(epsilon=1, domain=13),
            SymmetricUnary(epsilon=1, domain=13),
            LocalHashing(epsilon=1, domain=9),
            LocalHashing(epsilon=3, domain=8),
            HadamardResponse(epsilon=1, domain=2**13),
        ):
            with pytest.raises(InputError, match="domain: the matrix"):
                oracle.matrix()

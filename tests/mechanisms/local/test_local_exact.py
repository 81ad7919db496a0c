"""Exact laws of clients: all 2^62 draws are accounted for, and no ratio of two weights exceeds e^epsilon.

A scripted generator hands a client the numbers it draws. A report is constant between a few of them, found by bisection
from 1024 evenly spaced ones, so that the weight of every report is known to the unit without knowing the law.
Statistical tests, some thirty, have a false alarm below 1e-8 each.
"""

import itertools
import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from baselines.local_baselines import LiteralHybridArea
from scipy import stats

from dpppsynth.core.randomness import generator
from dpppsynth.mechanisms.local.randomizers.oracles import hash_classes
from dpppsynth.randomizers import (
    DiskArea,
    HadamardResponse,
    HybridArea,
    LocalHashing,
    OptimizedUnary,
    ProjectiveResponse,
    RandomizedResponse,
    SquareWave,
    SubsetExponential,
    SubsetSelection,
    SymmetricUnary,
)

TOTAL = 2**62
RARE = 1e-8


class Scripted(np.random.Generator):
    """A generator whose numbers were written down beforehand: an array, or one number, for each time it is asked."""

    def __init__(self, *numbers):
        super().__init__(np.random.PCG64(0))
        self.numbers = [*numbers]

    def integers(self, low, high=None, *, size, dtype=np.int64, endpoint=False):
        given = np.asarray(self.numbers.pop(0))
        given = np.full(size, given) if given.ndim == 0 else given
        assert given.shape == (size,)
        assert not size or low <= given.min() <= given.max() < high + endpoint
        return given.astype(dtype)


def weights_of(report, end=TOTAL):
    """Number of draws from [0, end) that lead to each report; `report` (n,) draws -> (n, k) rows."""
    cuts = np.unique(np.append(np.arange(1024, dtype=np.int64) * (end // 1024), end - 1))
    low, high = cuts[:-1], cuts[1:]
    first, last = report(low), report(high)
    found = Counter({tuple(last[-1].tolist()): 1})
    while len(low):
        # Up to, and without, the upper end. Runs of single draws that end alike differ beside their ends.
        alike = (first == last).all(axis=1)
        for beside in (low + 1, high - 1):
            alike[alike] = (report(beside[alike]) == first[alike]).all(axis=1)
        alike |= high - low == 1
        for row, size in zip(first[alike].tolist(), (high - low)[alike].tolist(), strict=True):
            found[tuple(row)] += size
        low, high, first, last = (each[~alike] for each in (low, high, first, last))
        if len(low):
            middle = low + (high - low) // 2
            seen = report(middle)
            low, high = np.append(low, middle), np.append(middle, high)
            first, last = np.append(first, seen, axis=0), np.append(seen, last, axis=0)
    assert sum(found.values()) == end
    return found


def drawn(law, value):
    """Weights of the reports of a client that draws one number."""
    return weights_of(lambda x: law.draw(np.full(len(x), value), Scripted(x)))


def square_wave(law, value):
    """One bit chooses the axis, the others the cell."""
    parts = [
        weights_of(lambda x, a=axis: law.draw(np.full(len(x), value), Scripted(x << 1 | a)), end=TOTAL // 2)
        for axis in (0, 1)
    ]
    return parts[0] + parts[1]


def exponential(epsilon):
    with localcontext(prec=60):
        return Fraction(Decimal(epsilon).exp())


def require_below(laws, epsilon, spent):
    """No report is likelier by more than e^epsilon; `spent` is the logarithm of the largest ratio, to a few units."""
    reports = set().union(*laws)
    assert all(set(law) == reports for law in laws)
    largest = max(Fraction(max(law[report] for law in laws), min(law[report] for law in laws)) for report in reports)
    assert largest <= exponential(spent)
    assert largest >= exponential(spent * (1 - 1e-14)) or largest == 1
    assert spent <= epsilon
    assert spent >= epsilon * (1 - 1e-9) or len(laws) == 1


AREAS = [
    DiskArea(epsilon=1.0, cells=3, radius=1),
    DiskArea(epsilon=0.1, cells=3, radius=2),
    DiskArea(epsilon=0.5, cells=2, radius=5),
    DiskArea(epsilon=3.5, cells=3, radius=0),
    DiskArea(epsilon=1.0, cells=3, radius=2, shrink=False),
    DiskArea(epsilon=1.0, cells=3, radius=2, shrink=False, tight=True),
    HybridArea(epsilon=1.0, cells=3, radius=2),
    HybridArea(epsilon=5.0, cells=3, radius=1),
]
SINGLE = [
    *((law, drawn) for law in AREAS),
    (SquareWave(epsilon=1.0, cells=3, half_width=1), square_wave),
    (SquareWave(epsilon=3.5, cells=2, half_width=0), square_wave),
    (RandomizedResponse(epsilon=1.0, domain=9), drawn),
    (RandomizedResponse(epsilon=0.1, domain=2), drawn),
    (RandomizedResponse(epsilon=5.0, domain=7), drawn),
]


def called(law):
    return "-".join(map(str, law.parameters().values()))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("law", "enumerated"), SINGLE, ids=[called(law) for law, _ in SINGLE])
def test_every_draw_of_one_number_is_accounted_for(law, enumerated):
    """The weights that really are drawn obey epsilon, add up, and are those of the matrix and of the ratios."""
    laws = [enumerated(law, value) for value in range(law.inputs)]
    require_below(laws, law.epsilon, law.spent)
    reports = [*laws[0]]
    rows = np.array([law.count(np.array([report])).argmax() for report in reports])
    exact = np.array([[Fraction(each[report], TOTAL) for each in laws] for report in reports], dtype=float)
    assert sorted(rows) == [*range(law.size)]
    if hasattr(law, "column"):
        for value, each in enumerate(laws):
            assert [each[report] for report in reports] == law.column(value)[rows].tolist()
    np.testing.assert_allclose(law.matrix()[rows], exact, rtol=4e-16)
    for value, other in ((0, law.inputs - 1), (1, 0)):
        expected = np.log([laws[value][report] / laws[other][report] for report in reports])
        np.testing.assert_allclose(law.log_ratio(np.array(reports), value, other), expected, rtol=1e-12, atol=1e-15)


def test_literal_hybrid_spends_one_whatever_is_asked():
    law = LiteralHybridArea(epsilon=0.5, cells=3, radius=2, unsafe=True)
    laws = [drawn(law, value) for value in range(law.inputs)]
    require_below(laws, 1.0, law.spent)


def in_two_steps(report):
    """The same where 16 bits are drawn first, and 46 more only where these leave it open; `report` (first, later)."""
    first, rest = np.arange(2**16), 2**46
    least, most = report(first, 0), report(first, rest - 1)
    open_ = first[(least != most).any(axis=1)]
    settled = least[~np.isin(first, open_)]
    _, at, often = np.unique(settled[:, -1], return_index=True, return_counts=True)
    found = Counter({tuple(settled[k].tolist()): rest * int(many) for k, many in zip(at, often, strict=True)})
    for number in open_:
        found += weights_of(lambda x, number=number: report(np.full(len(x), number), x), end=rest)
    assert len(open_) <= 1
    assert sum(found.values()) == TOTAL
    return found


def bits_of(law, value):
    """(domain,) weight of setting each bit, with the others drawn as high as can be, which does not set them."""
    found = []
    for place in range(law.domain):
        if place == value:
            numbers = weights_of(
                lambda x: law.draw(np.full(len(x), value), Scripted(2**16 - 1, 0, x)) >> value & 1,
            )
        else:

            def report(first, later, place=place):
                numbers = np.full((len(first), law.domain), 2**16 - 1)
                numbers[:, place] = first
                drawn = law.draw(np.full(len(first), value), Scripted(numbers.ravel(), later, TOTAL - 1))
                assert not (drawn & ~(1 << place)).any()
                return drawn >> place & 1

            numbers = in_two_steps(report)
        found.append(numbers[1,])
    return found


@pytest.mark.parametrize(("kind", "epsilon"), [(OptimizedUnary, 5.0), (SymmetricUnary, 0.1)])
def test_every_bit_of_unary_reports_is_accounted_for(kind, epsilon):
    """All 2^d words: an own bit kept too often, or bits that are not set apart, would break a ratio."""
    law = kind(epsilon=epsilon, domain=3)
    weights = [bits_of(law, value) for value in range(law.domain)]
    laws = []
    for of_value in weights:
        words = {}
        for bits in itertools.product((0, 1), repeat=law.domain):
            word = sum(bit << place for place, bit in enumerate(bits))
            words[(word,)] = math.prod(w if bit else TOTAL - w for bit, w in zip(bits, of_value, strict=True))
        laws.append(words)
    require_below(laws, epsilon, law.spent)
    exact = [[float(Fraction(each[word,], TOTAL**law.domain)) for each in laws] for word in range(2**law.domain)]
    np.testing.assert_allclose(law.matrix(), exact, rtol=1e-14)


def flipped_by(law, value, row):
    """Weights of the reports of a client who draws this row."""

    def report(first, later):
        return law.draw(np.full(len(first), value), Scripted(first, later, np.full(len(first), row)))

    return in_two_steps(report)


@pytest.mark.parametrize("epsilon", [0.1, 5.0])
def test_every_flip_of_hadamard_reports_is_accounted_for(epsilon):
    """Rows are drawn alike for all values, from a power of two of them."""
    law = HadamardResponse(epsilon=epsilon, domain=3)
    laws = [sum((flipped_by(law, value, row) for row in range(4)), Counter()) for value in range(law.domain)]
    require_below(laws, epsilon, law.spent)
    exact = [[each[row, bit] / TOTAL / 4 for each in laws] for row in range(4) for bit in (0, 1)]
    np.testing.assert_allclose(law.matrix(), exact, rtol=1e-14)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("kind", [SubsetSelection, ProjectiveResponse])
def test_every_coin_of_designs_is_accounted_for(kind, epsilon):
    """Whether a report has the own value, to the unit; given that, chi-square tests say that all are alike."""
    law = kind(epsilon=epsilon, domain=9)
    coins = in_two_steps(lambda first, later: law.kept(len(first), Scripted(first, later))[:, None])
    assert coins[True,] == law.p * TOTAL
    ratio = coins[True,] * law.law.odds.denominator / Fraction(coins[False,] * law.law.odds.numerator)
    assert exponential(epsilon * (1 - 1e-9)) <= ratio <= exponential(law.spent) <= exponential(epsilon)
    reports = len(law.matrix())
    own = (law.matrix()[:, 0] > law.matrix()[:, 0].min() * 1.01).sum()
    assert law.law.odds == Fraction(int(own), int(reports - own))


def hashed_by(law, value, seed):
    """Weights of the reports of a client who draws this seed."""
    return weights_of(lambda x: law.draw(np.full(len(x), value), Scripted(np.full(len(x), seed, dtype=np.int64), x)))


@pytest.mark.parametrize(("epsilon", "hash_range"), [(0.1, 2), (1.0, 4), (3.0, 21)])
def test_every_class_of_hashed_reports_is_accounted_for(epsilon, hash_range):
    """Seeds are drawn alike for all values, and given one the classes are randomized response on that of the value."""
    law = LocalHashing(epsilon=epsilon, domain=5, hash_range=hash_range)
    for seed in (1, 2**63 - 1):
        laws = [hashed_by(law, value, seed) for value in range(law.domain)]
        own = hash_classes(np.full(law.domain, seed), np.arange(law.domain), hash_range).tolist()
        assert [max(each, key=each.get) for each in laws] == [(seed, told) for told in own]
        assert len(set(own)) > 1
        require_below(laws, epsilon, law.spent)


@pytest.mark.parametrize(
    ("epsilon", "cells", "subset"), [(1.0, 2, 1), (1.0, 2, 2), (1.0, 3, 2), (0.1, 3, 4), (0.5, 3, 9), (2.0, 3, 3)]
)
def test_subsets_are_geo_indistinguishable(epsilon, cells, subset):
    """All subsets and the empty report, for all pairs of cells: below Omega the empty report would tell too much."""
    law = SubsetExponential(epsilon=epsilon, cells=cells, subset=subset)
    places = [*itertools.product(range(cells), repeat=2)]
    numbers = law.law

    def weights(value):
        squares = [
            min((a - i) ** 2 + (b - j) ** 2 for i, j in chosen) for chosen in subsets for a, b in [places[value]]
        ]
        given = [numbers.weights[numbers.shells.squares.tolist().index(square)] for square in squares]
        return [*given, numbers.total - sum(given)]

    subsets = [*itertools.combinations(places, subset)]
    laws = [weights(value) for value in range(law.inputs)]
    assert all(min(each) >= 0 for each in laws)
    assert len({each[-1] == 0 for each in laws}) == 1
    seen = slice(None) if laws[0][-1] else slice(-1)
    slopes = []
    for (a, one), (b, other) in itertools.permutations(enumerate(laws), 2):
        with localcontext(prec=80):
            apart = Decimal((places[a][0] - places[b][0]) ** 2 + (places[a][1] - places[b][1]) ** 2).sqrt()
            largest = max(map(Fraction, one[seen], other[seen]))
            slopes.append((Decimal(largest.numerator) / Decimal(largest.denominator)).ln() / apart)
    assert max(slopes) <= Decimal(law.spent) <= Decimal(epsilon)
    assert law.spent >= epsilon * (1 - 1e-9)
    if subset < law.inputs:
        assert max(slopes) >= Decimal(epsilon) * (1 - Decimal("1e-9"))
    exact = np.array([[float(Fraction(each[k], numbers.total)) for each in laws] for k in range(len(laws[0]))])
    np.testing.assert_allclose(law.matrix(), exact, rtol=1e-14)


# --- Draws -----------------------------------------------------------------------------------------------------------


def row_of_counts(law, reports):
    """(n,) place of each report among the counts, where these are numbers of reports."""
    known, back = np.unique(reports, axis=0, return_inverse=True)
    return np.array([law.count(report[None]).argmax() for report in known])[back.ravel()]


def row_of_subset(law, reports):
    subsets = {chosen: k for k, chosen in enumerate(itertools.combinations(range(law.inputs), law.subset))}
    known, back = np.unique(reports, axis=0, return_inverse=True)
    return np.array([subsets.get(tuple(row), len(subsets)) for row in known.tolist()])[back.ravel()]


def row_of_function(law, reports):
    """Place among all functions from values to classes, and classes: seeds of one function are alike."""
    classes = np.stack([hash_classes(reports[:, 0], value, law.hash_range) for value in range(law.domain)])
    return law.hash_range * np.ravel_multi_index(classes, (law.hash_range,) * law.domain) + reports[:, 1]


def row_of_word(law, reports):
    words = {sum(1 << v for v in chosen): k for k, chosen in enumerate(itertools.combinations(range(6), law.subset))}
    return np.array([words[word] for word in reports[:, 0].tolist()])


DRAWN = [
    *((law, row_of_counts) for law, _ in SINGLE if law.epsilon < 3.5),
    (HadamardResponse(epsilon=1.0, domain=6), row_of_counts),
    (OptimizedUnary(epsilon=1.0, domain=4), lambda _, reports: reports[:, 0]),
    (SymmetricUnary(epsilon=1.0, domain=4), lambda _, reports: reports[:, 0]),
    (LocalHashing(epsilon=1.0, domain=3, hash_range=4), row_of_function),
    (SubsetSelection(epsilon=1.0, domain=6, subset=2), row_of_word),
    (ProjectiveResponse(epsilon=1.0, domain=5, order=2), row_of_counts),
    (ProjectiveResponse(epsilon=1.0, domain=30, order=3), row_of_counts),
    (SubsetExponential(epsilon=0.3, cells=3, subset=2), row_of_subset),
]


@pytest.mark.parametrize(("law", "rows"), DRAWN, ids=[called(law) for law, _ in DRAWN])
def test_draws_follow_the_matrix(law, rows):
    """Pearson's chi-square test of 16,000 reports of either of two values among others, over all reports."""
    matrix, rng = law.matrix(), np.random.default_rng(20261122)
    values = rng.integers(law.inputs, size=40_000)
    values[:32_000:2], values[1:32_000:2] = 0, law.inputs - 1
    reports = law.draw(values, rng)
    for value in (0, law.inputs - 1):
        seen = np.bincount(rows(law, reports[values == value]), minlength=len(matrix))
        expected = seen.sum() * matrix[:, value]
        assert not seen[expected == 0].any()
        possible = expected > 0
        assert expected[possible].min() > 5
        assert stats.chisquare(seen[possible], expected[possible] * seen.sum() / expected.sum()).pvalue > RARE


@pytest.mark.parametrize("law", [law for law, _ in DRAWN], ids=[called(law) for law, _ in DRAWN])
def test_one_client_alone_sends_what_one_of_many_does(law):
    """Whatever is drawn: a report that is empty, too, where no other client's is beside it."""
    for seed in range(60):
        value = seed % law.inputs
        report = law.draw(np.array([value]), np.random.default_rng(seed))
        assert report.shape == (1, len(law.columns))
        assert law.log_ratio(report, value, value) == 0


def test_secret_bits_are_never_the_same():
    """Each client has random bits of its own: reports of one value differ within one call, and from call to call."""
    law = DiskArea(epsilon=1.0, cells=15, radius=5)
    calls = [law.draw(np.zeros(100, dtype=np.int64), generator()) for _ in range(2)]
    assert min(len(np.unique(each, axis=0)) for each in calls) > 50
    assert (calls[0] != calls[1]).any()

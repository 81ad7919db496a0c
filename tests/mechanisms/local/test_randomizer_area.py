"""Area mechanisms: footprints and radii against brute force, laws as exact integers, draws, estimates, the continuum.

Every chi-square test has a false alarm of 1e-8, some twenty in all.
"""

import itertools
import json
import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from baselines.area_theory import (
    ContinuousDiskArea,
    ContinuousHybrid,
    SpatialAreaMechanism,
    closed_form_sizes,
    discrete_radius,
    footprint_parts,
    information_bound,
)
from baselines.local_baselines import LiteralHybridArea
from scipy import integrate, optimize, stats

from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import generator
from dpppsynth.mechanisms.local.randomizers.area import (
    DiskArea,
    HybridArea,
    grid_radius,
    high,
    high_shares,
    offsets,
    optimal_radius,
    output_mask,
    reached,
)
from dpppsynth.mechanisms.local.randomizers.em import expectation_maximisation

FALSE_ALARM = 1e-8
KINDS = {
    "disk": DiskArea,
    "no shrinkage": lambda **given: DiskArea(shrink=False, **given),
    "tight": lambda **given: DiskArea(shrink=False, tight=True, **given),
    "hybrid": HybridArea,
}
LAWS = [(1, 0, 1.0), (1, 2, 0.5), (2, 1, 0.001), (3, 0, 1.0), (3, 4, 0.7), (5, 1, 3.5), (5, 2, 1.0), (6, 3, 9.0)]
BH = {0.5: (5, 11, 16, 22), 0.7: (4, 9, 14, 19), 1: (4, 8, 12, 16), 1.4: (3, 6, 10, 13), 1.5: (3, 6, 9, 12)}
BH |= {2: (2, 4, 7, 9), 2.1: (2, 4, 7, 9), 2.8: (1, 3, 4, 6), 3.5: (1, 2, 3, 4), 5: (0, 1, 1, 2), 6: (0, 0, 1, 1)}
BH |= {7: (0, 0, 0, 0), 8: (0, 0, 0, 0), 9: (0, 0, 0, 0)}
NEVER = [None, math.nan, math.inf, -math.inf, True, "1", b"1", 10**400, {}, object(), 1j]
WILD = [*NEVER, -1, [1], np.zeros((2, 2))]
SIZES = {0: (1, 1, 1), 1: (9, 5, 5.68629150), 2: (21, 13, 16.64582472), 3: (45, 29, 33.96853785)}
SIZES |= {4: (69, 49, 57.16962677), 5: (101, 81, 88.84266121), 6: (137, 113, 123.42521126)}
SIZES |= {7: (185, 149, 166.06943239), 8: (241, 197, 214.71783605)}


def shrunken(x, y, radius):
    """Share of a cell by its geometry: centre drawn onto the circle, inner borders kept."""
    x, y = abs(x), abs(y)
    if x * x + y * y <= radius * radius:
        return 1.0
    near = math.hypot(max(x - 0.5, 0), max(y - 0.5, 0))
    if near >= radius:
        return 0.0
    scale = radius / math.hypot(x, y)
    half = [scale * x - (x - 0.5), scale * y - (y - 0.5)]
    return 4 * half[0] * half[1] if min(half) > 0 else 0.0


def table(function, radius):
    steps = range(-radius, radius + 1)
    return np.array([[function(x, y, radius) for y in steps] for x in steps])


class TestFootprint:
    @pytest.mark.parametrize("radius", SIZES)
    def test_sizes_are_those_of_the_paper(self, radius):
        at = offsets(radius)
        found = reached(*at, radius).sum(), high(*at, radius).sum(), high_shares(*at, radius).sum()
        assert found == pytest.approx(SIZES[radius], abs=1e-8)

    def test_single_shares(self):
        at = {(1, 1, 1): 0.171573, (2, 1, 2): 0.455728, (3, 1, 3): 0.621067, (3, 2, 3): 0, (5, 1, 5): 0.774510}
        at |= {(5, 2, 5): 0.203297, (4, 4, 5): 0.005051, (4, 3, 5): 1, (5, 3, 6): 1}
        for (x, y, radius), share in at.items():
            assert high_shares(x, y, radius) == pytest.approx(share, abs=1e-6)

    @pytest.mark.parametrize("radius", [0, 1, 2, 3, 5, 6, 11])
    def test_shares_are_shrunken_areas_with_all_symmetries(self, radius):
        at = offsets(radius)
        share = high_shares(*at, radius)
        np.testing.assert_allclose(share, table(shrunken, radius), atol=1e-14)
        assert (share >= 0).all()
        assert (share <= 1).all()
        for turned in (share[::-1], share[:, ::-1], share.T):
            np.testing.assert_array_equal(turned, share)
        assert high(*at, radius)[radius].all()  # none on an axis is mixed

    def test_nothing_outside_the_box_is_reached(self):
        for radius in range(20):
            edge = np.arange(-radius - 1, radius + 2)
            assert not reached(radius + 1, edge, radius).any()

    def test_closed_form_is_brute_force(self):
        for radius in range(51):
            at = offsets(radius)
            sizes, share = closed_form_sizes(radius, 7), high_shares(*at, radius)
            outputs = 7**2 + 4 * radius * 7 - 4 * radius - 1 + reached(*at, radius).sum()
            assert sizes.high == pytest.approx(share.sum(), rel=1e-13)
            assert sizes.outputs == outputs
            assert sizes.high + sizes.low == pytest.approx(outputs, rel=1e-13)
            assert footprint_parts(radius).pure == high(*at, radius).sum()

    def test_theorem_with_its_missing_term(self):
        for radius in range(1, 51):
            assert theorem(radius) == pytest.approx(closed_form_sizes(radius, 1).high, rel=1e-12)

    @pytest.mark.parametrize(("cells", "radius"), [(1, 0), (1, 3), (2, 1), (3, 5), (5, 2), (4, 3)])
    @pytest.mark.parametrize("rule", [reached, high])
    def test_output_domain_is_the_union_of_all_footprints(self, cells, radius, rule):
        member = rule(*offsets(radius), radius)
        found = output_mask(member, cells)
        union = np.zeros_like(found)
        for i, j in itertools.product(range(cells), repeat=2):
            union[i : i + 2 * radius + 1, j : j + 2 * radius + 1] |= member
        np.testing.assert_array_equal(found, union)
        if rule is reached:
            assert found.sum() == member.sum() + cells**2 + 4 * radius * cells - 4 * radius - 1

    @pytest.mark.parametrize("wrong", [*WILD, 1.5])
    def test_wild_sizes(self, wrong):
        for call in (lambda: closed_form_sizes(wrong, 5), lambda: closed_form_sizes(1, wrong)):
            with pytest.raises(InputError):
                call()


def theorem(radius):
    """The paper's closed form of the high area, with the `- m` that its print lacks."""
    root = radius / math.sqrt(2) - 0.5
    top, full = math.ceil(root), math.floor(root)
    first = full * math.sqrt(2) + 1 / math.sqrt(2)
    m = top - math.floor(math.sqrt(first**2 + 1 + math.sqrt(2) * first) / radius)
    cells = [(math.ceil(math.sqrt(radius**2 - (k - 0.5) ** 2) - 0.5), k) for k in range(1, m + 1)]
    interior = top * (top - 2 * m - 1) // 2 + sum(x for x, _ in cells) - m
    assert radius != 7 or interior == 13
    diagonal = 4 * (root - full) ** 2 if root - full < 0.5 else 1.0
    return 1 + 4 * (radius + full + diagonal) + 8 * (interior + sum(shrunken(*cell, radius) for cell in cells))


class TestRadius:
    def test_reference_values(self):
        found = [optimal_radius(epsilon) for epsilon in BH]
        known = [1.116291, 0.997669, 0.845034, 0.680196, 0.644762, 0.495520, 0.470483, 0.329525, 0.233247]
        assert found == pytest.approx([*known, 0.114225, 0.071918, 0.045544, 0.028922, 0.018379], abs=6e-7)
        for epsilon, radii in BH.items():
            assert tuple(grid_radius(epsilon, cells) for cells in (5, 10, 15, 20)) == radii

    def test_limits_and_order(self):
        epsilons = np.geomspace(1e-8, 600, 200)
        radii = [optimal_radius(epsilon) for epsilon in epsilons]
        assert (np.diff(radii) < 0).all()
        limit = (2 + math.sqrt(4 + math.pi)) / math.pi
        assert optimal_radius(1e-300) == pytest.approx(limit, rel=1e-12)
        assert optimal_radius(1e-4) == pytest.approx(optimal_radius(math.nextafter(1e-4, 0)), rel=1e-10)
        assert optimal_radius(1e300) == 0

    @pytest.mark.parametrize("epsilon", [1e-5, 0.5, 3.5, 9])
    @pytest.mark.parametrize("side", [1.0, 40.0])
    def test_it_maximises_the_bound(self, epsilon, side):
        best = optimal_radius(epsilon, side)
        assert best == pytest.approx(side * optimal_radius(epsilon), rel=1e-14)
        middle = information_bound(best, epsilon, side)
        steepest = abs(information_bound(best / 2, epsilon, side).slope)
        assert abs(middle.slope) < 1e-9 * steepest
        if epsilon > 0.1:
            found = optimize.minimize_scalar(
                lambda b: -information_bound(b, epsilon, side).bits,
                bounds=(best / 4, best * 4),
                method="bounded",
                options={"xatol": best * 1e-9},
            )
            assert found.x == pytest.approx(best, rel=1e-6)

    @pytest.mark.parametrize(("b", "epsilon", "side"), [(0.3, 1.0, 1.0), (2.0, 3.5, 2.5), (0.0, 2.0, 3.0)])
    def test_bound_and_slope_by_their_definition(self, b, epsilon, side):
        total = math.pi * b**2 * math.exp(epsilon) + 4 * side * b + side**2
        domain = math.pi * b**2 + 4 * side * b + side**2
        nats = math.log(domain / total) + math.pi * b**2 * math.exp(epsilon) * epsilon / total
        found = information_bound(b, epsilon, side)
        assert found.bits == pytest.approx(nats / math.log(2), abs=1e-14)
        step = 1e-6
        beyond, before = (information_bound(each, epsilon, side).bits for each in (b + step, abs(b - step)))
        assert found.slope == pytest.approx((beyond - before) / (2 * step), abs=1e-8)

    def test_discrete_bound(self):
        assert [discrete_radius(3.5, cells) for cells in (5, 15, 20)] == [0, 3, 5]
        for epsilon, cells in [(0.7, 5), (3.5, 6), (1.0, 1)]:
            best = discrete_radius(epsilon, cells)
            laws = [DiskArea(epsilon=epsilon, cells=cells, radius=radius).matrix()[:, 0] for radius in range(2 * cells)]
            bounds = [math.log(len(law)) + law @ np.log(law) for law in laws]
            assert best == np.argmax(np.round(bounds, 12))
        assert discrete_radius(1e-9, 5) == discrete_radius(1e-4, 5)
        assert discrete_radius(700, 5) == 0

    @pytest.mark.parametrize("wrong", WILD)
    def test_wild_arguments(self, wrong):
        both = [lambda: grid_radius(wrong, 5), lambda: discrete_radius(wrong, 5), lambda: information_bound(wrong, 1.0)]
        both += [lambda: optimal_radius(wrong), lambda: optimal_radius(1.0, wrong)]
        both += [lambda: information_bound(1.0, wrong), lambda: information_bound(1.0, 1.0, wrong)]
        for call in [*both, lambda: grid_radius(1.0, wrong), lambda: discrete_radius(1.0, wrong)]:
            with pytest.raises(InputError):
                call()

    def test_extreme_numbers(self):
        for call in (
            lambda: information_bound(1e308, 1.0, 1e-300),
            lambda: optimal_radius(1e-9, 1.7e308),
            lambda: grid_radius(1.0, 1.5),
            lambda: grid_radius(1.0, 0),
            lambda: discrete_radius(0, 5),
        ):
            with pytest.raises(InputError):
                call()
        domain = math.pi + 5
        assert information_bound(1.0, 700.0).bits == pytest.approx(math.log2(domain / math.pi), rel=1e-12)


class TestLaw:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize(("cells", "radius", "epsilon"), LAWS)
    def test_integers_keep_epsilon_exactly_and_use_it_up(self, kind, cells, radius, epsilon):
        law = KINDS[kind](epsilon=epsilon, cells=cells, radius=radius)
        columns = np.stack([law.column(value) for value in range(law.inputs)], axis=1)
        assert {sum(column.tolist()) for column in columns.T} == {2**62}
        assert columns.min() > 0
        pairs = {(int(most), int(least)) for most, least in zip(columns.max(axis=1), columns.min(axis=1), strict=True)}
        worst = max(Fraction(*pair) for pair in pairs)
        with localcontext(prec=50):
            ratio = Decimal(worst.numerator) / Decimal(worst.denominator)
            assert ratio <= Decimal(epsilon).exp()
            assert ratio <= Decimal(law.spent).exp()
            # Rings so wide that no two values differ by all of them leave some of epsilon unused.
            spent_all = cells > 1 and not (kind == "hybrid" and radius > cells)
            assert (ratio.ln() >= Decimal(epsilon) * (1 - Decimal("2e-9"))) == spent_all
        assert (worst == 1) == (cells == 1)
        assert epsilon * (1 - 1e-9) <= law.spent <= epsilon

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize(("cells", "radius", "epsilon"), LAWS)
    def test_probabilities_are_the_real_law(self, kind, cells, radius, epsilon):
        law = KINDS[kind](epsilon=epsilon, cells=cells, radius=radius)
        expected = np.array(
            [
                [weight(kind, o[0] - i, o[1] - j, radius, epsilon) for i, j in np.ndindex(cells, cells)]
                for o in law.outputs.tolist()
            ]
        )
        expected /= expected.sum(axis=0)
        np.testing.assert_allclose(law.matrix(), expected, rtol=2e-9)
        np.testing.assert_allclose(law.matrix().sum(axis=0), 1.0, rtol=1e-12)

    def test_reference_values(self):
        rows = [
            (DiskArea(epsilon=1, cells=5, radius=1), 49, 58.77065136, 0.0462523686, 0.0170152955),
            (DiskArea(epsilon=1, cells=5, radius=1, shrink=False), 49, 57.59140914, 0.0471994325, 0.0173637009),
            (KINDS["tight"](epsilon=1, cells=5, radius=1), 45, 40 + 5 * math.e, 0.0507223429, 0.0186597071),
            (DiskArea(epsilon=1, cells=5, radius=2), 77, 105.60221814, 0.0257407645, 0.0094694981),
            (HybridArea(epsilon=1, cells=5, radius=2), 77, 93.88033367, math.e / 93.88033367, 1 / 93.88033367),
            (DiskArea(epsilon=3.5, cells=15, radius=3), 437, 1527.91494541, 0.0216736226, 0.0006544867),
            (DiskArea(epsilon=1, cells=3, radius=0), 9, math.e + 8, 0.2536117143, 0.0932985357),
        ]
        for law, outputs, total, most, least in rows:
            column = law.matrix()[:, 0]
            assert (len(column), column.max(), column.min()) == pytest.approx((outputs, most, least), abs=1e-10)
            assert 1 / column.min() == pytest.approx(total, rel=1e-9)
        first, second = rows[0][0], rows[3][0]
        corner, beside = first.outputs.tolist().index([1, 1]), second.outputs.tolist().index([2, 1])
        assert first.matrix()[corner, 0] == pytest.approx(0.0220315842, abs=1e-10)
        assert second.matrix()[beside, 0] == pytest.approx(0.0168847712, abs=1e-10)
        assert np.linalg.cond(first.matrix()) == pytest.approx(39, abs=0.5)
        hybrid = rows[4][0].weights[2:, 2:]
        known = [[2.718282, 2.718282, 1.648721], [2.718282, 1.832229, 1.295641], [1.648721, 1.295641, 1]]
        np.testing.assert_allclose(hybrid, known, atol=1e-6)

    def test_radii_at_which_mechanisms_agree(self):
        made = [kind(epsilon=1.3, cells=4, radius=0).matrix() for kind in KINDS.values()]
        response = np.full((16, 16), 1.0) + np.expm1(1.3) * np.eye(16)
        for matrix in made:
            np.testing.assert_allclose(matrix, response / response.sum(axis=0), rtol=1e-9)
        disk, hybrid = (kind(epsilon=1.3, cells=4, radius=1).matrix() for kind in (DiskArea, HybridArea))
        np.testing.assert_allclose(disk, hybrid, rtol=1e-9)

    @pytest.mark.parametrize("radius", [1, 2, 3, 7, 12, 29])
    def test_hybrid_is_a_mixture_of_nested_disks(self, radius):
        law = HybridArea(epsilon=2.0, cells=1, radius=radius)
        at, weights = offsets(radius), np.ones((2 * radius + 1,) * 2)
        rings = [math.exp((1 - (kappa - 1) / radius) * 2.0) for kappa in range(1, radius + 1)] + [1.0]
        for kappa in range(1, radius + 1):
            weights += (rings[kappa - 1] - rings[kappa]) * high_shares(*at, kappa)
        np.testing.assert_allclose(law.weights, weights, rtol=1e-13)

    def test_printed_hybrid_breaks_small_epsilons_and_wastes_large_ones(self):
        with pytest.raises(InputError, match=r"spends 1 and not 0\.5"):
            LiteralHybridArea(epsilon=0.5, cells=5, radius=2)
        unsafe = LiteralHybridArea(epsilon=0.5, cells=5, radius=2, unsafe=True)
        matrix = unsafe.matrix()
        assert np.log(matrix.max(axis=1) / matrix.min(axis=1)).max() > 0.99
        assert unsafe.spent > 2 * 0.5 * (1 - 1e-9)
        same = HybridArea(epsilon=1, cells=5, radius=2).matrix()
        for epsilon in (0.5, 1, 3.5):
            literal = LiteralHybridArea(epsilon=epsilon, cells=5, radius=2, unsafe=epsilon < 1)
            np.testing.assert_allclose(literal.matrix(), same, rtol=1e-9)
        lone = LiteralHybridArea(epsilon=0.5, cells=5, radius=0)
        np.testing.assert_allclose(lone.matrix(), DiskArea(epsilon=0.5, cells=5, radius=0).matrix(), rtol=1e-9)

    def test_parameters_make_the_mechanism_again(self):
        for law in (DiskArea(epsilon=2, cells=4, radius=1, shrink=False, tight=True), HybridArea(**SMALL)):
            told = json.loads(json.dumps(law.parameters()))
            assert told.pop("kind") == law.kind
            np.testing.assert_array_equal(type(law)(**told).column(3), law.column(3))

    def test_log_ratios(self):
        law = DiskArea(epsilon=1e-3, cells=4, radius=1)
        matrix = law.matrix()
        np.testing.assert_allclose(
            law.log_ratio(law.outputs, 5, 6), np.log(matrix[:, 5]) - np.log(matrix[:, 6]), atol=1e-15
        )
        assert np.abs(law.log_ratio(law.outputs, 5, 6)).max() <= law.spent


SMALL = {"epsilon": 2.0, "cells": 4, "radius": 2}


def weight(kind, x, y, radius, epsilon):
    """Multiple of the lowest probability of a report at this offset, by its definition."""
    if kind == "disk":
        return 1 + math.expm1(epsilon) * shrunken(x, y, radius)
    if kind != "hybrid":
        return 1 + math.expm1(epsilon) * (x * x + y * y <= radius * radius)
    if radius == 0:
        return math.exp(epsilon) if x == y == 0 else 1.0
    rings = {k: math.exp((1 - (k - 1) / radius) * epsilon) for k in range(1, radius + 1)} | {radius + 1: 1.0}
    ring = next((k for k in range(1, radius + 1) if x * x + y * y <= k * k), radius + 1)
    if ring == 1:
        return rings[1]
    share = shrunken(x, y, ring - 1)
    return share * rings[ring - 1] + (1 - share) * rings[ring]


class TestReports:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("value", [0, 7])
    def test_draws_follow_the_matrix(self, kind, value):
        law = KINDS[kind](epsilon=1.5, cells=4, radius=2)
        counts = law.count(law.draw(np.full(100_000, value), generator(value)))
        assert stats.chisquare(counts, law.matrix()[:, value] * 100_000).pvalue > FALSE_ALARM

    def test_randomised_response(self):
        law = DiskArea(epsilon=3.0, cells=2, radius=0)
        counts = law.count(law.draw(np.full(50_000, 2), generator(5)))
        assert stats.chisquare(counts, law.matrix()[:, 2] * 50_000).pvalue > FALSE_ALARM

    def test_single_cell(self):
        law = DiskArea(epsilon=3.0, cells=1, radius=0)
        assert law.draw(np.zeros(5, dtype=int), generator(1)).tolist() == [[0, 0]] * 5
        assert law.estimate([5], 5).tolist() == [1.0]
        wide = HybridArea(epsilon=3.0, cells=1, radius=3)
        reports = wide.draw(np.zeros(50, dtype=int), generator(1))
        assert wide.estimate(wide.count(reports), 50, smoothing=0.25).tolist() == [1.0]

    def test_parts_of_the_clients_change_nothing(self, monkeypatch):
        law, values = DiskArea(**SMALL), np.arange(1000) % 16
        reports = law.draw(values, generator(3))
        counts = law.count(reports)
        monkeypatch.setattr("dpppsynth.mechanisms.local.randomizers.randomizer.BATCH", 7)
        np.testing.assert_array_equal(law.draw(values, generator(3)), reports)
        np.testing.assert_array_equal(law.count(reports), counts)
        np.testing.assert_array_equal(law.count(reports[:300]) + law.count(reports[300:]), counts)
        assert counts.dtype == np.int64
        assert law.reported(counts) == 1000

    def test_no_clients(self):
        law = DiskArea(**SMALL)
        reports = law.draw(np.array([], dtype=int), generator(3))
        assert reports.shape == (0, 2)
        assert not law.count(reports).any()

    def test_noisy_cells_are_counted_in_lexicographic_order(self):
        law = DiskArea(epsilon=1.0, cells=2, radius=1)
        assert law.outputs.tolist() == sorted(law.outputs.tolist())
        assert len(law.outputs) == 16
        counts = law.count([[-1, -1], [2, 0], [2, 0], [1, 2]])
        assert {tuple(law.outputs[at].tolist()): int(counts[at]) for at in np.flatnonzero(counts)} == {
            (-1, -1): 1,
            (2, 0): 2,
            (1, 2): 1,
        }

    @pytest.mark.parametrize("report", [[-2, -2], [6, 0], [0, -3], [2**62, 0], [5, 5]])
    def test_foreign_reports(self, report):
        law = DiskArea(**SMALL)
        assert report not in law.outputs.tolist()
        for call in (lambda: law.count([[0, 0], report]), lambda: law.log_ratio([report], 0, 1)):
            with pytest.raises(InputError, match="reports: "):
                call()


class TestEstimate:
    def test_one_step(self):
        fit = DiskArea(epsilon=1, cells=2, radius=1).fit(np.arange(1, 17), 136, max_iter=1)
        assert fit.shares == pytest.approx([0.22063142, 0.23237885, 0.26762115, 0.27936858], abs=1e-8)
        assert (fit.iterations, fit.converged) == (1, False)

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize(("cells", "radius"), [(4, 2), (3, 0), (2, 5)])
    def test_convolution_is_the_matrix(self, kind, cells, radius):
        law = KINDS[kind](epsilon=1.5, cells=cells, radius=radius)
        matrix, rng = law.matrix(), generator(4)
        theta, ratios = rng.random(law.inputs), rng.random(law.size)
        np.testing.assert_allclose(law.channel.forward(theta), matrix @ theta, rtol=1e-13)
        np.testing.assert_allclose(law.channel.backward(ratios), matrix.T @ ratios, rtol=1e-13)

    @pytest.mark.parametrize("kind", KINDS)
    def test_expected_counts_give_the_truth_back(self, kind):
        law = KINDS[kind](epsilon=3.5, cells=3, radius=1)
        truth = generator(8).dirichlet(np.ones(9))
        ahead, back = law.channel.forward, law.channel.backward
        expected = 1e6 * law.matrix() @ truth
        errors = []
        for tolerance in (1e-1, 1e-4, 1e-10):
            fit = expectation_maximisation(ahead, back, expected, start=np.ones(9), tolerance=tolerance)
            assert fit.converged
            errors.append(np.abs(fit.shares - truth).sum())
        assert errors[0] > errors[1] > errors[2]
        assert errors[2] < 1e-6

    def test_likelihood_never_falls(self):
        law = HybridArea(**SMALL)
        counts = law.count(law.draw(np.arange(2000) % 5, generator(2)))
        matrix, ends = law.matrix(), []
        for steps in range(1, 12):
            fit = law.fit(counts, 2000, max_iter=steps, tolerance=0.0)
            assert (fit.shares >= 0).all()
            assert fit.shares.sum() == pytest.approx(1, abs=1e-12)
            ends.append(float(counts @ np.log(matrix @ fit.shares)))
            assert fit.log_likelihood == pytest.approx(ends[-1], rel=1e-12)
        assert (np.diff(ends) > 0).all()

    def test_many_clients_are_estimated_well(self):
        law = DiskArea(epsilon=3.5, cells=4, radius=1)
        truth = np.arange(1, 17) / 136
        values = generator(1).choice(16, size=200_000, p=truth)
        counts = law.count(law.draw(values, generator(2)))
        fit = law.fit(counts, 200_000)
        assert fit.converged
        assert np.abs(fit.shares - truth).sum() < 0.05

    def test_impossible_cells_get_nothing(self):
        law, inside = DiskArea(**SMALL), np.arange(16) % 3 > 0
        counts = law.count(law.draw(np.flatnonzero(inside), generator(1)))
        for smoothing in (0.0, 0.25):
            shares_ = law.estimate(counts, int(inside.sum()), inside=inside, smoothing=smoothing)
            np.testing.assert_array_equal(shares_ > 0, inside)
            assert shares_.sum() == pytest.approx(1, abs=1e-12)

    def test_smoothing_follows_every_step(self):
        law = DiskArea(epsilon=1, cells=2, radius=1)
        plain = law.fit(np.arange(1, 17), 136, max_iter=1).shares.reshape(2, 2)
        smooth = law.fit(np.arange(1, 17), 136, max_iter=1, smoothing=0.25).shares.reshape(2, 2)
        # Of four neighbours two are absent, and their say of an eighth each goes to the cell.
        expected = 0.75 * plain + 0.125 * (plain[::-1] + plain[:, ::-1])
        np.testing.assert_allclose(smooth, expected, rtol=1e-12)

    def test_settings(self):
        law = DiskArea(**SMALL)
        filled = {"tolerance": 1e-3 * math.exp(2.0), "max_iter": 10_000, "smoothing": 0.0}
        assert law.settings() == filled
        assert json.loads(json.dumps(law.settings(smoothing=1, max_iter=5))) == filled | {"smoothing": 1, "max_iter": 5}
        for wrong in ({"steps": 3}, {"smoothing": -1}, {"max_iter": 0}, {"tolerance": math.nan}, {"smoothing": None}):
            with pytest.raises(InputError):
                law.settings(**wrong)
            with pytest.raises(InputError):
                law.fit(np.ones(law.size), law.size, **wrong)


class TestBadInput:
    @pytest.mark.parametrize("kind", [DiskArea, HybridArea, LiteralHybridArea])
    @pytest.mark.parametrize("wrong", WILD)
    def test_parameters(self, kind, wrong):
        for name in ("epsilon", "cells", "radius"):
            with pytest.raises(InputError, match=f"^{name}: "):
                kind(**SMALL | {name: wrong})

    def test_limits(self):
        wrongs = [("epsilon", each) for each in (0, 1e308, 44.0, 1e-12)]
        wrongs += [("cells", each) for each in (0, 4.5, 10**5)] + [("radius", each) for each in (1.5, 10**5)]
        for name, wrong in [*wrongs, ("shrink", 1), ("tight", None), ("tight", True)]:
            with pytest.raises(InputError, match=f"^{name}: "):
                DiskArea(**SMALL | {name: wrong})
        with pytest.raises(InputError, match="unsafe"):
            LiteralHybridArea(unsafe="yes", **SMALL)
        assert DiskArea(epsilon=12, cells=15, radius=3).spent == pytest.approx(12, rel=1e-9)

    def test_large_matrix_is_refused(self):
        law = DiskArea(epsilon=1.0, cells=150, radius=1)
        with pytest.raises(InputError, match="column"):
            law.matrix()
        assert sum(law.column(3).tolist()) == 2**62

    @pytest.mark.parametrize("wrong", [*NEVER, -1, [16], [-1], [0.5], [[1]]])
    def test_values(self, wrong):
        with pytest.raises(InputError, match="values: "):
            DiskArea(**SMALL).draw(wrong, generator(1))

    @pytest.mark.parametrize("wrong", [*WILD, [[1, 2, 3]], [[0.5, 1]], [[math.nan, 0]]])
    def test_reports(self, wrong):
        law = DiskArea(**SMALL)
        for call in (lambda: law.count(wrong), lambda: law.log_ratio(wrong, 0, 1)):
            with pytest.raises(InputError, match="reports: "):
                call()

    @pytest.mark.parametrize("wrong", [*WILD, 1.5, 16])
    def test_single_values(self, wrong):
        law = DiskArea(**SMALL)
        for call in (lambda: law.column(wrong), lambda: law.log_ratio([[0, 0]], wrong, 1)):
            with pytest.raises(InputError, match="value: "):
                call()

    @pytest.mark.parametrize("wrong", [*WILD, np.zeros(16), np.ones(15, dtype=bool), np.zeros(16, dtype=bool)])
    def test_counts_and_masks(self, wrong):
        law = DiskArea(**SMALL)
        good = np.ones(law.size, dtype=int)
        for call in (lambda: law.estimate(wrong, 3), lambda: law.reported(wrong), lambda: law.fit(good, wrong)):
            with pytest.raises(InputError):
                call()
        if wrong is not None:
            with pytest.raises(InputError, match="inside: "):
                law.estimate(good, law.size, inside=wrong)

    def test_numbers_of_reports(self):
        law = DiskArea(**SMALL)
        good = np.ones(law.size, dtype=int)
        for counts in (good * 0, good - 2, good + 0.5, good[1:], good * math.nan):
            with pytest.raises(InputError, match="counts: "):
                law.estimate(counts, law.size)
        with pytest.raises(InputError, match="n: "):
            law.estimate(good, law.size + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Tilted(SpatialAreaMechanism):
    """A wave that is not the same in all directions, times `factor`."""

    factor: float = 1.0

    def wave(self, offsets):
        x = offsets[:, 0] / self.radius
        return 1 + self.factor * np.expm1(self.epsilon) * (1 + x) / 2


CONTINUOUS = {"disk": ContinuousDiskArea, "hybrid": ContinuousHybrid, "tilted": Tilted}


class TestContinuum:
    @pytest.mark.parametrize(("epsilon", "side"), [(1.0, 1.0), (3.5, 1.0), (2.0, 2.5), (1e-6, 1.0), (40.0, 3.0)])
    def test_densities_integrate_to_one(self, epsilon, side):
        radius = max(optimal_radius(epsilon, side), 0.01)
        disk, hybrid, tilted = (kind(epsilon=epsilon, radius=radius, side=side) for kind in CONTINUOUS.values())
        rest = 4 * side * radius + side**2
        assert math.pi * radius**2 * disk.high + rest * disk.low == pytest.approx(1, rel=1e-13)
        along = integrate.quad(lambda r: math.exp((1 - r) * epsilon) * 2 * math.pi * radius**2 * r, 0, 1, epsrel=1e-11)
        assert hybrid.low * (along[0] + rest) == pytest.approx(1, rel=1e-9)
        # By quadrature of the base class, against the closed forms of the others.
        assert SpatialAreaMechanism.excess.func(disk) == pytest.approx(disk.excess, rel=1e-9)
        assert SpatialAreaMechanism.excess.func(hybrid) == pytest.approx(hybrid.excess, rel=1e-9)
        assert tilted.excess == pytest.approx(disk.excess / 2, rel=1e-9)
        assert disk.low < min(hybrid.low, tilted.low)

    def test_reference_values(self):
        for epsilon, p, q, hybrid in [
            (1.0, 0.2594223399, 0.0954361454, 0.1315294523),
            (3.5, 4.3613380993, 0.1317009988, 0.3660999403),
        ]:
            given = {"epsilon": epsilon, "radius": optimal_radius(epsilon)}
            disk = ContinuousDiskArea(**given)
            assert (disk.high, disk.low) == pytest.approx((p, q), rel=1e-9)
            assert ContinuousHybrid(**given).low == pytest.approx(hybrid, rel=1e-9)

    @pytest.mark.parametrize("name", CONTINUOUS)
    @pytest.mark.parametrize(("epsilon", "side", "radius"), [(1.0, 1.0, 0.5), (4.0, 2.5, 0.6)])
    def test_draws_follow_the_density(self, name, epsilon, side, radius):
        law, n = CONTINUOUS[name](epsilon=epsilon, radius=radius, side=side), 60_000
        value = np.array([side, 0.0])
        reports = law.draw(np.tile(value, (n, 1)), 6)
        densities = law.density(reports, value)
        assert densities.min() >= law.low
        assert densities.max() <= law.high * (1 + 1e-12)
        # Rings left and right of the value, the rim far from it, and the rest.
        edges = np.linspace(0, radius, 5)
        found, expected = [], []
        for (inner, outer), sign in itertools.product(itertools.pairwise(edges), (-1, 1)):
            r, angle = np.meshgrid(midpoints(inner, outer), sign * midpoints(-np.pi / 2, np.pi / 2))
            angle = angle if sign > 0 else np.pi - angle
            at = np.column_stack([(r * np.cos(angle)).ravel(), (r * np.sin(angle)).ravel()])
            mean = (law.wave(at) * r.ravel()).mean() / r.mean()
            expected.append(law.low * mean * np.pi * (outer**2 - inner**2) / 2)
            apart = reports - value
            length = np.hypot(*apart.T)
            found.append(((length > inner) & (length <= outer) & (sign * apart[:, 0] > 0)).sum())
        found.append((reports[:, 1] > side).sum())
        expected.append(law.low * (radius * side + np.pi * radius**2 / 2))
        found, expected = [*found, n - sum(found)], [*expected, 1 - sum(expected)]
        assert stats.chisquare(found, np.array(expected) * n).pvalue > FALSE_ALARM

    def test_density_outside_and_at_the_value(self):
        law = ContinuousDiskArea(epsilon=1.0, radius=0.5)
        at = [[0.1, 0.1], [0.9, 0.9], [-0.4, -0.4], [-0.3, 0.5], [1.6, 0.5]]
        assert law.density(at, [0.1, 0.1]).tolist() == [law.high, law.low, 0.0, law.low, 0.0]

    def test_sliced_distance(self):
        law = ContinuousDiskArea(epsilon=1.0, radius=0.5)
        values = np.array([[0.2, 0.3], [0.7, 0.6]])
        told = 1 - law.area * law.low
        assert told == pytest.approx(0.2628146, abs=1e-7)
        assert told == pytest.approx((law.high - law.low) * np.pi * law.radius**2, rel=1e-12)
        assert 2 / np.pi * np.hypot(0.5, 0.3) * told == pytest.approx(0.0975594, abs=1e-7)
        first, second = (law.draw(np.tile(value, (40_000, 1)), seed) for seed, value in enumerate(values))
        angles = np.arange(16) * np.pi / 16
        ways = np.stack([np.cos(angles), np.sin(angles)])
        gaps = np.abs(np.sort(first @ ways, axis=0) - np.sort(second @ ways, axis=0)).mean()
        # Means of differences have a deviation of some 0.002; the bias of empirical distances is smaller.
        assert gaps == pytest.approx(0.0975594, abs=0.01)

    def test_seeds_and_parts(self):
        law = ContinuousHybrid(epsilon=30.0, radius=0.01)
        values = np.full((500, 2), 0.5)
        reports = law.draw(values, 3)
        np.testing.assert_array_equal(law.draw(values, 3), reports)
        assert np.hypot(*(reports - 0.5).T).max() <= 0.01 * (1 + 1e-9)
        assert law.draw(np.empty((0, 2)), 3).shape == (0, 2)

    def test_waves_beyond_their_bounds(self):
        for factor in (1.1, -0.1, math.nan):
            with pytest.raises(InputError, match="wave: "):
                Tilted(epsilon=1.0, radius=0.5, factor=factor)
        with pytest.raises(NotImplementedError):
            SpatialAreaMechanism(epsilon=1.0, radius=0.5)

    @pytest.mark.parametrize("kind", [ContinuousDiskArea, ContinuousHybrid])
    @pytest.mark.parametrize("wrong", [*WILD, 0, 1e300])
    def test_bad_parameters(self, kind, wrong):
        for name in ("epsilon", "radius", "side"):
            with pytest.raises(InputError):
                kind(**{"epsilon": 1.0, "radius": 0.5} | {name: wrong})

    @pytest.mark.parametrize("kind", [ContinuousDiskArea, ContinuousHybrid])
    def test_extreme_parameters(self, kind):
        for radius, side in ((1e-300, 1.0), (1.0, 1e-300), (1e-41, 1e-41), (1e7, 1.0)):
            with pytest.raises(InputError):
                kind(epsilon=1.0, radius=radius, side=side)
        assert 0 < kind(epsilon=500.0, radius=1e40, side=1e40).low < 1
        assert 0 < kind(epsilon=1e-300, radius=1e-40, side=1e-40).low < 1e81

    @pytest.mark.parametrize("wrong", [*NEVER, -1, [1], [[0, 0, 0]], [[math.nan, 0]], [[True, False]]])
    def test_bad_points(self, wrong):
        law, origin = ContinuousDiskArea(epsilon=1.0, radius=0.5), [0.0, 0.0]
        for call in (
            lambda: law.draw(wrong, 1),
            lambda: law.density(wrong, origin),
            lambda: law.density([origin], wrong),
        ):
            with pytest.raises(InputError):
                call()

    @pytest.mark.parametrize("outside", [[1.1, 0], [0, -0.1]])
    def test_points_outside(self, outside):
        with pytest.raises(InputError, match="values: must lie in the square"):
            ContinuousDiskArea(epsilon=1.0, radius=0.5).draw([outside], 1)


def midpoints(start, stop, n=200):
    return start + (np.arange(n) + 0.5) / n * (stop - start)

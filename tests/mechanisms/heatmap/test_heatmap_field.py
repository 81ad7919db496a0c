"""The field behind noised counts of cells: likelihood by brute force, nested levels, hard cases and what it gains."""

import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import shapely
from baselines.heatmap_arrays import Users, aggregate, sparse_aggregate
from scipy import integrate

from dpppsynth import HeatmapSynthesizer, InputError, PointPattern, Window, load_release
from dpppsynth.core.errors import InformationWarning
from dpppsynth.heatmaps import LevelBudgets, emd, level_budgets
from dpppsynth.mechanisms.heatmap.aggregation import measure_tree
from dpppsynth.mechanisms.heatmap.bound import layout, level_scales, measured_depth
from dpppsynth.mechanisms.heatmap.fitting import CellField, box, field_masses, fitted, require_fit
from dpppsynth.mechanisms.heatmap.tree import grow, pyramid
from dpppsynth.models.likelihood import SMOOTHED_INFORMATION, SMOOTHING, NoisyCounts
from dpppsynth.privacy import verify

BOX = Window.rectangle(0, 0, 160, 80, "EPSG:27700")
TRIANGLE = Window.polygon(shapely.Polygon([(0, 0), (90, 0), (0, 60)]), "EPSG:27700")


def counts(scales=(0.5, 2.0, 7.0), seed=1):
    """Three sums of five masses, with noise of its own scale each."""
    rng = np.random.default_rng(seed)
    tents = np.array([[1.0, 1, 0, 0, 0], [0, 0, 1, 1, 0], [1, 1, 1, 1, 1]])
    return NoisyCounts(rng.normal(3, 4, 3), np.array(scales), rng.uniform(0.5, 2, 5), tents)


def brute_density(x, scale):
    """Density at x of Laplace noise plus a little normal noise, by quadrature."""
    sd = SMOOTHING * scale
    factor, reach = 1 / (2 * scale * sd * math.sqrt(2 * math.pi)), 40 * scale
    product = lambda t: factor * math.exp(-abs(t) / scale - ((x - t) / sd) ** 2 / 2)  # noqa: E731
    return integrate.quad(product, x - reach, x + reach, points=[0.0, x], limit=400, epsabs=1e-14)[0]


class TestNoisePerRow:
    def test_density_is_that_of_the_noise(self):
        """Up to one constant, whatever the field."""
        likelihood = counts()
        differences = []
        for seed in range(4):
            w = np.random.default_rng(seed).normal(size=5)
            means = likelihood.tents @ (likelihood.measure * np.exp(w))
            each = zip(likelihood.counts - means, likelihood.scales, strict=True)
            brute = sum(np.log(brute_density(x, scale)) for x, scale in each)
            differences.append(likelihood.log_density(w)[0] - brute)
        np.testing.assert_allclose(differences, differences[0], atol=1e-7)

    def test_gradient_is_the_slope(self):
        likelihood, w = counts(), np.random.default_rng(3).normal(size=5)
        step = 1e-6 * np.eye(5)
        slope = [(likelihood.log_density(w + h)[0] - likelihood.log_density(w - h)[0]) / 2e-6 for h in step]
        np.testing.assert_allclose(likelihood.log_density(w)[1], slope, rtol=1e-6, atol=1e-7)

    @pytest.mark.slow
    def test_information_is_the_expected_square_of_the_slope(self):
        """By quadrature over the law: of one number in units of its scale, and through the masses."""

        def square(x):
            h = 1e-5
            slope = (np.log(brute_density(x + h, 1.0)) - np.log(brute_density(x - h, 1.0))) / (2 * h)
            return brute_density(x, 1.0) * slope**2

        grid = np.linspace(-12, 12, 241)
        found = integrate.simpson([square(x) for x in grid], x=grid)
        assert found == pytest.approx(SMOOTHED_INFORMATION, rel=1e-3)
        likelihood, w = counts(), np.zeros(5)
        slopes = likelihood.tents * likelihood.measure / likelihood.scales[:, None]
        root = likelihood.evaluate(w).root
        np.testing.assert_allclose(root.T @ root, SMOOTHED_INFORMATION * slopes.T @ slopes)
        few = replace(likelihood, tents=sp.csr_array(likelihood.tents))
        np.testing.assert_allclose(few.arguments[2].toarray(), likelihood.arguments[2])


def tree_of(users, budgets, *, kept=10**6, inside=None, seed=1):
    """Counts of cells with real-valued Laplace noise of the stated budgets."""
    rng, sums = np.random.default_rng(seed), pyramid(users)

    def read(level, cells):
        exact = sums[level].ravel()[cells]
        return exact + rng.laplace(scale=1 / budgets.epsilons[budgets.levels.index(level)], size=len(cells))

    return grow(budgets.first, budgets.depth, kept, read, inside, budgets.step)


def hot_spots(side, persons, seed=1):
    """Whole persons around three places of a square."""
    rng = np.random.default_rng(seed)
    at = rng.uniform(0.15, 0.85, (3, 2))[rng.integers(0, 3, persons)] + rng.normal(0, 0.04, (persons, 2))
    cells = np.floor(np.clip(at, 0, 0.999) * side).astype(int)
    grid = np.zeros((side, side))
    np.add.at(grid, tuple(cells.T), 1.0)
    return grid


class TestLevels:
    @pytest.mark.parametrize("inside", [None, "half"])
    @pytest.mark.parametrize("variant", ["two-level", "practical", "theory"])
    def test_expected_masses_are_nested_and_add_up(self, variant, inside):
        """A count of a cell is that of the cells in it, on every level, where all cells are looked at."""
        mask = None
        if inside:
            mask = np.tril(np.ones((16, 16)))
        budgets = level_budgets(1.0, 4, 4, variant=variant)
        tree = tree_of(hot_spots(16, 50), budgets, inside=mask)
        found = CellField(tree, budgets, (1 / 16, 1 / 16))
        w = np.random.default_rng(2).normal(size=len(found.places))
        masses = found.likelihood.vertex_masses(w)
        expected = np.split(found.likelihood.tents @ masses, np.cumsum([each.alive.sum() for each in tree.levels])[:-1])
        grid = np.zeros((16, 16))
        grid[tuple(found.places.T)] = masses
        sums = pyramid(grid)
        for number, level, means in zip(tree.numbers, tree.levels, expected, strict=True):
            np.testing.assert_allclose(means, sums[number].ravel()[level.cells[level.alive]], rtol=1e-12)
            assert means.sum() == pytest.approx(masses.sum())
        assert len(found.scales) == len(found.likelihood.counts)

    def test_levels_between_are_skipped(self):
        budgets = level_budgets(1.0, 4, variant="two-level")
        assert (budgets.levels, budgets.epsilons, budgets.step) == ((2, 4), (0.5, 0.5), 2)
        assert layout(2, 4, 256, 2) == (16, 256)
        assert level_budgets(1.0, 1, variant="two-level").levels == (0, 1)
        assert level_budgets(1.0, 0, variant="two-level") == LevelBudgets(0, (1.0,))
        exact = pyramid(np.arange(256.0).reshape(16, 16))
        tree = grow(2, 4, 16, lambda level, cells: exact[level].ravel()[cells], step=2)
        within = tree.levels[1].counts.reshape(16, 16).sum(axis=1)
        np.testing.assert_array_equal(within, tree.levels[0].counts)
        np.testing.assert_allclose(fitted(tree, budgets, "least-squares")[5, 7], exact[4][5, 7], rtol=0.1)

    @pytest.mark.slow
    def test_the_rule_follows_public_numbers_alone(self):
        cells = [4**level for level in range(9)]
        assert measured_depth(cells, 1.0, None) == measured_depth(cells, 1.0, 1000.0) == 5
        assert measured_depth(cells, 1e-300, 1.0) == 0
        assert measured_depth(cells, 1e300, 1e300) == 7
        plan = HeatmapSynthesizer(1.0, shape=(320, 240)).plan(BOX, expected_n=100)
        # Of 512 x 512 cells some lie beyond the picture: 20 x 15 of 32 x 32 are nearer to 180 than 10 x 8.
        assert plan.statistic.finest == 32
        assert HeatmapSynthesizer(1.0, shape=(8, 8)).plan(BOX, expected_n=100).statistic.finest is None


class TestBound:
    """Counts of some levels alone, and of two budgets."""

    def test_settings_of_published_variants_are_refused(self):
        for given, message in (
            ({"w": 64}, r"^w: the two levels keep all"),
            ({"decay": 0.7}, r"^decay: the two levels"),
        ):
            with pytest.raises(InputError, match=message):
                HeatmapSynthesizer(1.0, **given)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("variant", ["two-level", "practical", "theory"])
    @pytest.mark.parametrize("measure", [1, 2, 8, 32])
    def test_spends_what_it_says_and_verifies(self, variant, measure, tmp_path):
        kept = {} if variant == "two-level" else {"w": 4}
        made = HeatmapSynthesizer(0.7, shape=(32, 20), measure=measure, variant=variant, **kept)
        plan = made.plan(BOX).statistic
        assert plan.guarantee.epsilon() <= 0.7
        assert plan.guarantee.epsilon() == pytest.approx(0.7, rel=1e-9)
        # The sum of what each level spends: a person weighs 2^20 units on each.
        assert sum(2**20 / scale for scale in plan.scales) == pytest.approx(0.7, rel=1e-9)
        assert plan.budgets.depth == measure.bit_length() - 1
        made.release(people(40)).save(tmp_path / "out")
        assert verify(tmp_path / "out").holds
        stated = json.loads((tmp_path / "out" / "certificate.json").read_text())["parameters"]
        assert stated.get("measure") == (None if measure == 32 else measure)
        again = load_release(tmp_path / "out")
        assert (again.statistic.definition.finest, again.masses.shape) == (plan.finest, (32, 20))

    def test_a_person_more_changes_every_measured_level_by_one(self):
        plan = HeatmapSynthesizer(1.0, shape=(32, 20), measure=8).plan(BOX).statistic
        many, fewer = people(30), people(29)
        one, other = (pyramid(plan.users(each).lattice()) for each in (many, fewer))
        for level in plan.budgets.levels:
            assert np.abs(one[level] - other[level]).sum() == 2**20

    @pytest.mark.parametrize(
        "changes",
        [{"measure": 8}, {"measure": 32}, {"measure": None}, {"measure": 12}, {"variant": "practical"}, {"decay": 0.5}],
    )
    def test_another_depth_does_not_verify(self, changes, tmp_path):
        from test_heatmap_synthesizer import forged

        HeatmapSynthesizer(1.0, shape=(32, 20), measure=16).release(people(20)).save(tmp_path / "out")
        assert not forged(tmp_path / "out", **changes).holds

    def test_two_budgets_reach_their_own_levels(self):
        """Unequal budgets of two levels, by the mean size of their noise on nobody, within 6 standard errors."""
        budgets = LevelBudgets(3, (0.9, 0.1), 2)
        tree = measure_tree([np.zeros((2**k, 2**k), np.int64) for k in range(6)], budgets, w=1024, rng=2)
        for level, epsilon in zip(tree.levels, budgets.epsilons, strict=True):
            size = np.abs(level.counts)
            assert size.mean() == pytest.approx(1 / epsilon, abs=6 / epsilon / np.sqrt(len(size)))

    def test_noise_of_each_level_is_of_its_own_scale(self):
        """Nobody but one person: the mean size of noise, within 6 standard errors of that of the stated scale."""
        plan = HeatmapSynthesizer(1.0, shape=(64, 64), measure=64, variant="two-level").plan(BOX).statistic
        noise = np.split(plan.measure(people(1), 4).lattice / 2.0**20, [plan.layout[0]])
        for values, scale in zip(noise, level_scales(plan.budgets), strict=True):
            b = scale / 2**20
            # One person is a hundredth of a standard error here.
            assert np.abs(values[values != 0]).mean() == pytest.approx(
                b, abs=6 * b / np.sqrt((values != 0).sum()) + 0.1
            )


def people(number, seed=3):
    """Two visits of each person."""
    rng = np.random.default_rng(seed)
    return PointPattern(rng.uniform([0, 0], [160, 80], (2 * number, 2)), BOX, {"user": np.arange(2 * number) // 2})


class TestMasses:
    @pytest.mark.slow
    def test_a_field_is_closer_than_other_fits(self):
        """Mean gain in total mass misplaced, of 12 seeded runs."""
        gains = []
        for seed in range(12):
            truth = hot_spots(32, 200, seed) / 200
            persons = Users.from_columns(*columns(200 * truth), side=32)
            field, plain = (
                aggregate(persons, epsilon=1.0, measure=16, variant="two-level", fit=fit, rng=seed)
                for fit in ("field", "least-squares")
            )
            gains.append(np.abs(plain - truth).sum() - np.abs(field - truth).sum())
        assert np.mean(gains) > 0.05
        assert emd(field, truth) < emd(np.ones((32, 32)), truth) / 2

    @pytest.mark.parametrize("window", [BOX, TRIANGLE])
    def test_nothing_lies_outside_and_all_is_kept(self, window):
        made = HeatmapSynthesizer(1.0, shape=(40, 24), measure=16, user=None)
        rng = np.random.default_rng(1)
        x0, y0, x1, y1 = window.bounds
        xy = rng.uniform([x0, y0], [x1, y1], (400, 2))
        release = made.release(PointPattern(xy[window.contains(xy)], window), 5)
        assert not release.masses[release.inside == 0].any()
        assert (release.masses >= 0).all()
        assert release.intensity.total == pytest.approx(release.masses.sum(), rel=1e-9)
        assert release.masses.sum() == pytest.approx(window.contains(xy).sum(), rel=0.4)

    def test_half_of_the_counts_may_be_left_out(self):
        users = hot_spots(16, 300)
        budgets = level_budgets(1.0, 4, 4)
        found = field_masses(tree_of(users, budgets, kept=4), budgets)
        assert found.sum() == pytest.approx(300, abs=60)

    def test_distances_matter(self):
        """A grid of the same cells over a window ten times as long: counts say less of what lies along it."""
        users, budgets = hot_spots(16, 200), level_budgets(0.5, 4, variant="two-level")
        tree = tree_of(users, budgets)
        near, far = (field_masses(tree, budgets, lengths=lengths) for lengths in ((1.0, 1.0), (10.0, 1.0)))
        assert not np.allclose(near, far, rtol=0.05)

    @pytest.mark.slow
    def test_mode_is_found_for_hard_counts(self):
        """Nobody, one person, all in a cell, noise 1000 times the counts: 60 cases; counts of 10^6 persons."""
        rng = np.random.default_rng(8)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", InformationWarning)
            for run in range(60):
                persons = rng.choice([0, 1, 3, 100, 10_000, 1_000_000])
                epsilon = float(10 ** rng.uniform(-3, 1))
                users = np.zeros((8, 8))
                spread = rng.dirichlet(np.full(64, rng.choice([0.01, 1.0])))
                users += (rng.multinomial(persons, spread) if run % 2 else persons * (np.arange(64) == 9)).reshape(8, 8)
                variant = ("two-level", "practical", "theory")[run % 3]
                budgets = level_budgets(epsilon, 3, 5, variant=variant)
                masses = field_masses(tree_of(users, budgets, kept=5 if run % 2 else 64, seed=run), budgets)
                assert np.isfinite(masses).all()
                assert (masses >= 0).all()
        # Of millions of persons under the noise of one or two a field may not be found; least squares do as well.
        assert len(caught) <= 2

    def test_nobody_gives_an_empty_map(self):
        budgets = level_budgets(1.0, 3, variant="two-level")
        tree = grow(1, 3, 64, lambda _, cells: np.full(len(cells), -1.0), step=2)
        assert not field_masses(tree, budgets).any()

    def test_cells_in_a_row_have_a_field(self):
        assert box(np.eye(4)[:1].repeat(4, axis=0) * np.array([[1], [0], [0], [0]])) == (2, 2)
        made = HeatmapSynthesizer(2.0, shape=(16, 1), user=None)
        xy = np.column_stack([np.linspace(1, 159, 90), np.full(90, 40.0)])
        assert made.release(PointPattern(xy, BOX), 2).masses.shape == (16, 1)


def columns(grid):
    """Numbers, rows and columns of whole persons in a grid."""
    i, j = np.nonzero(grid)
    times = np.rint(grid[i, j]).astype(int)
    return np.arange(times.sum()), np.repeat(i, times), np.repeat(j, times)


class TestRefusals:
    """Before anything is counted."""

    @pytest.mark.parametrize(
        ("settings", "name"),
        [
            ({"measure": 12}, "measure"),
            ({"measure": 64}, "measure"),
            ({"measure": 0}, "measure"),
            ({"measure": 2.5}, "measure"),
            ({"decay": 0.8}, "decay"),
        ],
    )
    def test_of_settings(self, settings, name):
        with pytest.raises(InputError, match=f"^{name}: "):
            HeatmapSynthesizer(1.0, shape=(32, 32), **settings)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        ("settings", "name"),
        [
            ({"fit": "l1"}, "fit"),
            ({"measure": 2048, "shape": (2048, 900)}, "measure"),
            ({"measure": 256}, "measure"),
            ({"measure": 512, "shape": (512, 512)}, "measure"),
            ({"measure": 256, "variant": "practical"}, "measure"),
            ({"measure": 128, "variant": "theory"}, "measure"),
        ],
    )
    def test_of_plans(self, settings, name):
        with pytest.raises(InputError, match=f"^{name}: "):
            HeatmapSynthesizer(1.0, **settings).check(BOX)

    def test_of_other_fits(self):
        release = HeatmapSynthesizer(1.0, shape=(32, 20)).release(people(30), 1)
        with pytest.raises(InputError, match=r"^fit: 'l1' takes counts of every level"):
            release.refit("l1")
        assert release.refit("least-squares").masses.shape == (32, 20)
        with pytest.raises(InputError, match=r"^fit: "):
            sparse_aggregate(np.ones((3, 4, 4)) / 16, epsilon=1.0, variant="two-level")
        require_fit("field", level_budgets(1.0, 7, variant="two-level"))

"""One-round hierarchy: levels drawn at random, exact laws, Haar contrasts over levels, and answers to range queries.

Statistical tests have fixed seeds; each would fail by chance, under another seed, with probability below 1e-6.
"""

import json
import math

import numpy as np
import pytest
import shapely
from baselines.range_queries import average_query_error, query_workload, true_answers
from scipy import stats

from dpppsynth import load_release, local
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.randomizers import hierarchy as haar
from dpppsynth.mechanisms.local.randomizers.hierarchy import LevelShares, quadtree_shares
from dpppsynth.privacy import verify
from dpppsynth.randomizers import RangeHierarchyLaw, best_oracle, hierarchy_side, randomizer_from_dict
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

WINDOW = Window.rectangle(0, 0, 1000, 800, "EPSG:27700")
CUT = Window.polygon(shapely.Polygon([(0, 0), (1000, 0), (1000, 800), (500, 800)]), "EPSG:27700")
HOMES = np.clip(np.random.default_rng(11).normal([300, 500], [150, 90], (4000, 2)), [0, 0], [1000, 800])
PATTERN = PointPattern(HOMES, WINDOW)


def cells_of(side):
    i, j = np.minimum((HOMES / [1000, 800] * side).astype(int), side - 1).T
    return i * side + j


class TestLaw:
    @pytest.mark.parametrize("cells", [2, 4, 8, 64])
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
    def test_every_level_has_the_whole_budget_and_the_best_oracle(self, cells, epsilon):
        law = RangeHierarchyLaw(epsilon=epsilon, cells=cells)
        assert law.sides == tuple(side for side in (2, 4, 8, 16, 32, 64) if min(4, cells) <= side <= cells)
        assert law.oracles[0].parameters() == best_oracle(epsilon, law.sides[0] ** 2).parameters()
        assert law.spent == max(oracle.spent for oracle in law.oracles)
        assert epsilon * (1 - 1e-9) <= law.spent <= epsilon
        assert randomizer_from_dict(json.loads(json.dumps(law.parameters()))).spent == law.spent

    def test_the_matrix_keeps_epsilon(self):
        """Levels are as probable for every value; within one, reports are those of its oracle about the ancestor."""
        law = RangeHierarchyLaw(epsilon=3.0, cells=4)
        law.__dict__["sides"] = (2, 4)
        law.__dict__["oracles"] = tuple(best_oracle(3.0, side**2) for side in (2, 4))
        matrix = law.matrix()
        rows = [oracle.matrix().shape[0] for oracle in law.oracles]
        assert matrix[: rows[0]].sum(axis=0) == pytest.approx(np.full(16, 0.5))
        assert (matrix.max(axis=1) / matrix.min(axis=1)).max() == pytest.approx(math.exp(3.0), rel=1e-8)
        values = np.repeat([0, 15], 40_000)
        reports = law.draw(values, np.random.default_rng(3))
        for value in (0, 15):
            mine = reports[values == value]
            found = []
            for level, oracle in enumerate(law.oracles):
                part = mine[mine[:, 0] == level, 1]
                found.append(np.bincount(part, minlength=oracle.size))
            assert stats.chisquare(np.concatenate(found), 40_000 * matrix[:, value]).pvalue > 1e-7

    def test_ancestors_hold_their_cells(self):
        law = RangeHierarchyLaw(epsilon=1.0, cells=16)
        for level, side in enumerate(law.sides):
            assert (law.answers(cells_of(16), level) == cells_of(side)).all()

    def test_levels_tell_nothing(self):
        """The levels of all reports are the same numbers whatever the values, and each as frequent."""
        law = RangeHierarchyLaw(epsilon=1.0, cells=32)
        one, other = (law.draw(np.full(20_000, value), np.random.default_rng(5))[:, 0] for value in (0, 1023))
        assert (one == other).all()
        assert stats.chisquare(np.bincount(one, minlength=4)).pvalue > 1e-7

    @pytest.mark.parametrize("epsilon", [1.0, 4.0])
    def test_ratios_are_those_of_the_level(self, epsilon):
        law = RangeHierarchyLaw(epsilon=epsilon, cells=16)
        reports = law.draw(np.arange(256).repeat(4), np.random.default_rng(6))
        # Values 0 and 2 lie in one cell of the two coarser levels.
        ratio = law.log_ratio(reports, 0, 2)
        assert not ratio[reports[:, 0] == 0].any()
        assert ratio[reports[:, 0] == 1].any()
        assert np.abs(ratio).max() <= law.spent
        assert np.abs(law.log_ratio(reports, 0, 255)).max() == pytest.approx(law.spent)

    def test_louder_clients_send_reports_of_the_same_form(self):
        """An audit draws weaker clients, whose reports the claimed law reads: not by oracles that are best for them."""
        law = RangeHierarchyLaw(epsilon=0.5, cells=8)
        weaker = law.louder(2.0)
        assert weaker.spent == pytest.approx(2.0)
        assert [oracle.columns for oracle in weaker.oracles] == [oracle.columns for oracle in law.oracles]
        reports = weaker.draw(np.zeros(500, dtype=int), np.random.default_rng(1))
        assert law.log_ratio(reports, 0, 63).mean() > 0.1

    @pytest.mark.slow
    def test_counts_of_reports_and_fast_ones_have_one_law(self):
        """Means and variances of 2000 lots of counts drawn at once against those of reports."""
        law, rng = RangeHierarchyLaw(epsilon=2.0, cells=8), np.random.default_rng(7)
        values = np.repeat([0, 9, 63], [100, 60, 40])
        true = np.bincount(values, minlength=64)
        slow = np.array([law.count(law.draw(values, rng)) for _ in range(600)])
        fast = np.array([law.fast_counts(true, rng) for _ in range(600)])
        assert (fast[:, :2].sum(axis=1) == 200).all()
        spread = np.sqrt((slow.var(axis=0) + fast.var(axis=0)) / 600) + 0.05
        assert (np.abs(slow.mean(axis=0) - fast.mean(axis=0)) < 6 * spread).all()
        assert np.log(fast.var(axis=0)[:2] / slow.var(axis=0)[:2]) == pytest.approx(0, abs=0.35)

    @pytest.mark.parametrize("change", ["level", "part", "spare"])
    def test_reports_that_no_client_sends(self, change):
        law = RangeHierarchyLaw(epsilon=1.0, cells=16)
        rows = law.draw(np.arange(40), np.random.default_rng(8))
        if change == "level":
            rows[0, 0] = 3
        elif change == "part":
            rows[rows[:, 0] == 0, 1] = 0
        else:
            rows[np.flatnonzero(rows[:, 0] == 0)[0], -1] = 1
        for use in (law.count, lambda rows: law.log_ratio(rows, 0, 1)):
            with pytest.raises(InputError, match="reports"):
                use(rows)

    def test_counts_of_no_reports(self):
        law = RangeHierarchyLaw(epsilon=1.0, cells=8)
        counts = law.count(law.draw(np.arange(60), np.random.default_rng(9)))
        assert law.reported(counts) == 60
        for place, change in ((0, -int(counts[0])), (0, 1), (2, 10**6)):
            wrong = counts.copy()
            wrong[place] += change
            with pytest.raises(InputError, match=r"counts|n:"):
                law.estimate(wrong, 60)

    @pytest.mark.parametrize("cells", [0, 1, 3, 12, 512, 8.0, True, "8", None])
    def test_sides_that_are_no_powers_of_two(self, cells):
        with pytest.raises(InputError, match="cells"):
            RangeHierarchyLaw(epsilon=1.0, cells=cells)

    def test_the_rule(self):
        """So many times the cubic root of n (e^eps - 1)^2 / (4 e^eps), to the nearest power of two."""
        for epsilon in (0.1, 0.5, 1.0, 3.0, 5.0):
            for n in (1, 500, 20_000, 500_000, 10**8):
                ideal = 0.465 * (n * (math.exp(epsilon) - 1) ** 2 / 4 / math.exp(epsilon)) ** (1 / 3)
                nearest = 2 ** round(math.log2(max(ideal, 1.0)))
                assert hierarchy_side(epsilon, n) == min(max(4, nearest), 128)


class TestContrasts:
    def levels(self, true, noises, rng=None):
        found = []
        for side, noise in noises.items():
            shares = haar.summed(true, side)
            found.append(LevelShares(shares if rng is None else rng.normal(shares, noise), max(noise, 1e-30) ** 2, 0.0))
        return found

    def test_exact_levels_give_the_truth(self):
        true = np.random.default_rng(1).dirichlet(np.full(256, 0.3)).reshape(16, 16)
        levels = self.levels(true, {4: 0.0, 8: 0.0, 16: 0.0})
        inside = np.ones((16, 16), dtype=bool)
        for shrink in (False, True):
            assert quadtree_shares(levels, inside=inside, shrink=shrink) == pytest.approx(true, abs=1e-9)

    def test_unshrunk_shares_are_those_of_weighted_least_squares(self):
        """A dense solution over all levels, with the sum known: contrasts weighted otherwise are not it."""
        rng = np.random.default_rng(2)
        true, noises = rng.dirichlet(np.ones(64)).reshape(8, 8), {2: 0.01, 4: 0.02, 8: 0.005}
        levels = self.levels(true, noises, rng)
        rows, values, weights = [np.ones((1, 64))], [np.ones(1)], [np.array([1e9])]
        for level, noise in zip(levels, noises.values(), strict=True):
            side = len(level.shares)
            rows.append(np.array([haar.summed(unit.reshape(8, 8), side).ravel() for unit in np.eye(64)]).T)
            values.append(level.shares.ravel())
            weights.append(np.full(side**2, 1 / noise))
        design, weight = np.vstack(rows), np.concatenate(weights)
        expected = np.linalg.lstsq(design * weight[:, None], np.concatenate(values) * weight)[0].reshape(8, 8)
        found = quadtree_shares(levels, inside=np.ones((8, 8), dtype=bool), shrink=False)
        assert found == pytest.approx(expected, abs=1e-6)

    @pytest.mark.slow
    def test_estimates_before_shrinking_are_unbiased(self):
        """Means of 400 lots of reports within six standard errors."""
        mechanism, rng = local.RangeHierarchy(3.0, cells=8), np.random.default_rng(4)
        values, law = cells_of(8), mechanism.randomizer
        true = np.bincount(values, minlength=64)
        found = np.array([law.unbiased(law.fast_counts(true, rng), 4000) for _ in range(400)])
        errors = found.mean(axis=0) - true / 4000
        assert (np.abs(errors) < 6 * found.std(axis=0) / 20).all()
        assert found.min() < 0

    def test_variances_are_those_of_reports_and_of_who_reports_where(self):
        """A cell with a tenth of the persons, where the choice of levels is most of the variance: 1000 lots."""
        law, rng = local.RangeHierarchy(6.0, cells=8).randomizer, np.random.default_rng(6)
        true = np.bincount(rng.permutation(64)[np.arange(900) % 63], minlength=64)
        true[0] += 100
        lots = [law.level_shares(law.fast_counts(true, rng), 1000) for _ in range(1000)]
        for k in range(2):
            shares = np.array([levels[k].shares for levels in lots])
            at = np.unravel_index(shares.mean(axis=0).argmax(), shares[0].shape)
            share = shares.mean(axis=0)[at]
            stated = np.mean([levels[k].noise + levels[k].own * share for levels in lots])
            # The variance is that of a sample, f (1 - f), which for small shares is nearly f.
            assert 0.75 * (1 - share) < shares[:, *at].var() / stated < 1.25

    def test_noise_alone_leaves_an_even_map(self):
        """Persons are spread evenly, and shrinking takes nearly everything else away."""
        mechanism, rng = local.RangeHierarchy(1.0, cells=16), np.random.default_rng(5)
        counts = mechanism.counts(np.arange(25_600) % 256, rng, fast=True)
        shrunk, plain = (mechanism.estimate(counts, estimator=kind) for kind in ("shrunk", "norm-sub"))
        assert shrunk.min() >= 0
        assert np.abs(shrunk - 1 / 256).sum() < 0.35 * np.abs(plain - 1 / 256).sum()

    def test_what_is_outside_gets_nothing(self):
        inside = np.ones((8, 8), dtype=bool)
        inside[:3] = False
        levels = self.levels(np.full((8, 8), 1 / 64), {4: 0.02, 8: 0.01}, np.random.default_rng(6))
        found = quadtree_shares(levels, inside=inside)
        assert not found[~inside].any()
        assert found.sum() == pytest.approx(1)
        assert found.min() >= 0


class TestMechanism:
    @pytest.mark.slow
    def test_answers_are_nearer_than_those_of_the_adaptive_grid(self):
        """Mean errors of 20 runs at two sizes of queries, both grids by their rules; 5 standard errors apart."""
        mechanism = local.RangeHierarchy.sized(4.0, n=4000)
        rival, rng = local.AdvancedAdaptiveGrid(WINDOW, epsilon=4.0), np.random.default_rng(12)
        for share in (0.001, 0.01):
            queries = query_workload(WINDOW.bounds, share, 60, rng=1)
            exact = true_answers(HOMES, queries, WINDOW.bounds)
            ours = [mechanism.query(mechanism.simulate(PATTERN, rng, fast=True), WINDOW, queries) for _ in range(20)]
            theirs = [rival.simulate(PATTERN, rng, fast=True).query(queries) for _ in range(20)]
            mine, other = (np.mean([average_query_error(exact, each, 4000) for each in lot]) for lot in (ours, theirs))
            assert mine < other

    def test_a_release_answers_queries_and_travels(self, tmp_path):
        mechanism = local.RangeHierarchy(4.0, cells=8)
        release = mechanism.release(PATTERN)
        west = release.query([[0, 0, 500, 800], [0, 0, 1000, 800], [0, 400, 1000, 800]])
        assert west[1] == pytest.approx(4000)
        assert west[0] > 0.7 * 4000
        assert west[2] > 0.6 * 4000
        assert release.distribution.shape == (8, 8)
        assert release.intensity.total == pytest.approx(4000)
        folder = release.save(tmp_path / "public", patterns=1)
        assert verify(folder).holds
        again = load_release(folder)
        np.testing.assert_allclose(again.query([[0, 0, 500, 800]]), west[:1])
        nearest = again.refit("norm-sub")
        assert nearest.statistic is again.statistic
        assert not np.allclose(nearest.distribution, again.distribution)

    def test_cells_beyond_the_window_are_empty(self):
        inside = PointPattern(HOMES[CUT.contains(HOMES)], CUT)
        release = local.RangeHierarchy(4.0, cells=16).release(inside)
        assert release.query([[0, 0, 1000, 800]])[0] == pytest.approx(len(inside))
        # The corner at the top left is cut off.
        assert release.query([[0, 600, 300, 800]])[0] == 0
        # A cell that the border cuts: half of the rectangle lies beyond it, and nothing is there.
        x = np.linspace(100, 300, 200, endpoint=False) + 0.5
        y = np.linspace(160, 480, 320, endpoint=False) + 0.5
        at = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        held = release.intensity(at[CUT.contains(at)]).sum()
        assert release.query([[100, 160, 300, 480]])[0] == pytest.approx(held, rel=0.02)

    def test_few_persons_leave_levels_empty(self):
        mechanism = local.RangeHierarchy(1.0, cells=64)
        for seed in range(6):
            counts = mechanism.aggregate(mechanism.clients([[3, 60]], rng=seed))
            shares = mechanism.estimate(counts)
            assert shares.sum() == pytest.approx(1)
            assert shares.min() >= 0

    def test_one_report_travels_as_json(self):
        mechanism = local.RangeHierarchy(1.0, cells=64)
        report = local.Report.from_json(mechanism.client((3, 7)).to_json())
        assert mechanism.aggregate([report]).n == 1
        assert len(report.values) <= 9

    def test_a_file_of_reports(self, tmp_path):
        mechanism = local.RangeHierarchy(2.0, cells=16)
        reports = mechanism.clients(cells_of(16), rng=1)
        for name in ("r.csv", "r.parquet"):
            local.write_reports(reports, tmp_path / name, mechanism=mechanism)
            counts = local.aggregate_files(mechanism, [tmp_path / name])
            np.testing.assert_array_equal(counts.values, mechanism.aggregate(reports).values)

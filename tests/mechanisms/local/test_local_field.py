"""Fields behind reports of local mechanisms: channels, settings, hard cases, certificates and the command line."""

import json

import numpy as np
import pytest

from dpppsynth import load_release, local
from dpppsynth.core.errors import InputError
from dpppsynth.models.channel_likelihood import Multinomial, ReportLikelihood
from dpppsynth.privacy import verify
from dpppsynth.randomizers import DiskArea, HybridArea, SquareWave, SubsetExponential
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

WINDOW = Window.rectangle(0, 0, 1000, 800, "EPSG:27700")
HOMES = np.clip(np.random.default_rng(11).normal([300, 500], [150, 90], (4000, 2)), [0, 0], [1000, 800])
PATTERN = PointPattern(HOMES, WINDOW)
LAWS = {
    "disk": DiskArea(epsilon=2.0, cells=5, radius=2),
    "whole cells": DiskArea(epsilon=0.4, cells=4, radius=3, shrink=False),
    "one cell": DiskArea(epsilon=1.0, cells=1, radius=1),
    "response": DiskArea(epsilon=3.0, cells=4, radius=0),
    "hybrid": HybridArea(epsilon=1.0, cells=4, radius=3),
    "wave": SquareWave(epsilon=1.0, cells=5, half_width=2),
    "single cells": SubsetExponential(epsilon=1.0, cells=3, subset=1),
    "subsets": SubsetExponential(epsilon=0.5, cells=3, subset=3),
}
EVERY = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
MECHANISMS = {
    "disk": local.DiskAreaMechanism(2.0, cells=5),
    "hybrid": local.HybridUniformExponential(2.0, cells=5, radius=2),
    "wave": local.MultidimensionalSquareWave(2.0, cells=5),
    "geo-i": local.SEMGeoI(2.0, cells=5),
}
MADE = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)


def chances(law):
    """Probabilities of what is counted, summed over all reports of the client's own matrix."""
    if isinstance(law, SquareWave):
        # Of one axis, given that it is the one reported: the first coordinate, whatever the second.
        return 2 * law.matrix()[: law.outputs, :: law.cells]
    return np.array([law.count(report) for report in every_report(law)]).T @ law.matrix()


def every_report(law):
    """Reports in the order of the matrix's rows, each as an array (1, columns)."""
    if isinstance(law, SubsetExponential):
        from dpppsynth.mechanisms.local.randomizers.subset_law import all_subsets

        return [*all_subsets(law.inputs, law.subset, 1000)[:, None], np.full((1, law.subset), -1)]
    return [each[None] for each in law.outputs]


class TestChannels:
    @EVERY
    def test_products_are_those_of_the_clients_matrix(self, law):
        rng, table = np.random.default_rng(1), chances(law)
        values, numbers = rng.normal(size=table.shape[1]), rng.normal(size=len(table))
        np.testing.assert_allclose(law.channel.forward(values), table @ values, atol=1e-12)
        np.testing.assert_allclose(law.channel.backward(numbers), table.T @ numbers, atol=1e-12)
        np.testing.assert_allclose(law.channel.matrix, table, atol=1e-12)
        assert law.channel.shape == (law.cells, 1 if isinstance(law, SquareWave) else law.cells)

    @EVERY
    def test_groups_are_whole_numbers_from_zero(self, law):
        for side in (1, 2, 3):
            groups = law.channel.groups(side)
            assert groups.shape == (law.outputs if isinstance(law, SquareWave) else law.size,)
            assert set(groups.tolist()) == set(range(groups.max() + 1))

    def test_reports_in_a_block_of_cells_are_a_group(self):
        law = LAWS["disk"]
        i, j = law.outputs.T
        groups = law.channel.groups(2)
        for group in range(groups.max() + 1):
            assert np.ptp(i[groups == group]) <= 1
            assert np.ptp(j[groups == group]) <= 1
            assert np.ptp(i[groups == group] // 2) == 0


class TestEstimates:
    @pytest.mark.exhaustive
    @MADE
    def test_fields_come_nearer_to_smooth_truths(self, mechanism):
        """On average over ten seeded runs."""
        xy = np.random.default_rng(5).beta([2, 1], [2, 3], (4000, 2)) * [1000, 800]
        truth = np.histogram2d(*xy.T, bins=5, range=[[0, 1000], [0, 800]])[0] / 4000
        errors = []
        for seed in range(10):
            counts = mechanism.simulate(PointPattern(xy, WINDOW), rng=seed)
            both = mechanism.estimate(counts), mechanism.estimate(counts, estimator=mechanism.randomizer.published)
            errors.append([np.abs(each - truth).sum() for each in both])
            assert (both[0] > 0).all()
            assert both[0].sum() == pytest.approx(1.0)
        field, published = np.mean(errors, axis=0)
        assert field < 0.8 * published

    @pytest.mark.exhaustive
    @EVERY
    @pytest.mark.parametrize("n", [1, 30, 10**6, 10**9])
    def test_hard_counts_have_a_mode(self, law, n):
        """All in one cell, at the corner and in the middle, in a window that leaves out half of the cells."""
        for value in {0, law.inputs // 2}:
            counts = law.count(law.draw(np.full(min(n, 1000), value), np.random.default_rng(1)))
            counts = counts * (n // min(n, 1000))
            inside = np.arange(law.inputs) >= law.inputs // 3
            for possible in (None, inside):
                shares = law.estimate(counts, n, inside=possible, estimator="field")
                assert shares.sum() == pytest.approx(1.0)
                assert np.isfinite(shares).all()
                assert (shares >= 0).all()
                assert possible is None or not shares[~possible].any()

    @pytest.mark.slow
    def test_random_hard_cases_have_a_mode(self):
        """Sixty laws, truths from even to one cell, repeated and shuffled counts, windows with holes."""
        rng, made = np.random.default_rng(8), 0
        while made < 60:
            law = self.any_law(rng)
            n, size = int(10 ** rng.uniform(0, 4)), law.inputs
            values = rng.choice(size, n, p=rng.dirichlet(np.full(size, 10 ** rng.uniform(-2.5, 1))))
            times = int(10 ** rng.integers(0, 4))
            counts = law.count(law.draw(values, rng)) * times
            if rng.random() < 0.2 and not isinstance(law, SubsetExponential):
                counts = rng.permutation(counts)
            inside = rng.random(size) < 0.6
            inside[rng.integers(size)] = True
            shares = law.estimate(counts, n * times, inside=inside if rng.random() < 0.3 else None, estimator="field")
            assert shares.sum() == pytest.approx(1.0)
            assert (shares >= 0).all()
            made += 1

    @staticmethod
    def any_law(rng):
        d, epsilon = int(rng.integers(2, 8)), float(10 ** rng.uniform(-2, 0.7))
        return [
            lambda: DiskArea(epsilon=epsilon, cells=d, radius=int(rng.integers(d)), shrink=bool(rng.integers(2))),
            lambda: HybridArea(epsilon=epsilon, cells=d, radius=int(rng.integers(d))),
            lambda: SquareWave(epsilon=epsilon, cells=d, half_width=int(rng.integers(d))),
            lambda: SubsetExponential(epsilon=epsilon, cells=d, subset=int(rng.integers(1, d * d))),
        ][rng.integers(4)]()

    @pytest.mark.parametrize("epsilon", [0.01, 12.0])
    @pytest.mark.parametrize("radius", [0, 2])
    def test_budgets_from_nothing_to_all(self, epsilon, radius):
        law = DiskArea(epsilon=epsilon, cells=4, radius=radius)
        values = np.repeat([5, 6, 15], [700, 200, 100])
        counts = law.count(law.draw(values, np.random.default_rng(2)))
        shares = law.estimate(counts, 1000, estimator="field")
        if epsilon > 1:
            np.testing.assert_allclose(shares[[5, 6, 15]], [0.7, 0.2, 0.1], atol=0.03)
        else:
            # Reports tell nothing: shares stay even.
            assert np.abs(shares - 1 / 16).sum() < 1.0

    def test_square_waves_have_the_product_of_two_fields(self):
        """Axes apart: the other one's reports change nothing, and an axis without reports stays even."""
        law, rng = LAWS["wave"], np.random.default_rng(4)
        counts = law.count(law.draw(np.array([0, 6, 7, 24] * 200), rng)).reshape(2, -1)
        joint = law.estimate(counts.ravel(), 800, estimator="field").reshape(5, 5)
        assert np.linalg.matrix_rank(joint, tol=1e-12) == 1
        alone = np.array([counts[0], 0 * counts[1]])
        first = law.estimate(alone.ravel(), int(alone.sum()), estimator="field").reshape(5, 5)
        np.testing.assert_allclose(first.sum(axis=1), joint.sum(axis=1), atol=1e-12)
        np.testing.assert_allclose(first.sum(axis=0), 0.2, atol=1e-12)
        turned = law.estimate(counts[::-1].ravel(), 800, estimator="field").reshape(5, 5)
        np.testing.assert_allclose(turned, joint.T, atol=1e-12)

    def test_single_reports_stay_near_even_shares(self):
        law = DiskArea(epsilon=1.0, cells=6, radius=2)
        shares = law.estimate(law.count(law.draw(np.array([14]), np.random.default_rng(1))), 1, estimator="field")
        assert np.abs(shares - 1 / 36).sum() < 0.5

    def test_the_number_of_reports_must_be_that_of_the_counts(self):
        law = LAWS["disk"]
        counts = law.count(law.draw(np.array([3, 4]), np.random.default_rng(1)))
        with pytest.raises(InputError, match=r"^n: must be the number of reports"):
            law.estimate(counts, 3, estimator="field")

    def test_an_expectation_step_ends_the_estimate(self):
        """Exact reports give the shares of the sample, not of the law behind it."""
        law = DiskArea(epsilon=14.0, cells=3, radius=0)
        counts = law.count(law.draw(np.arange(9).repeat(np.arange(9)), np.random.default_rng(3)))
        shares = law.estimate(counts, 36, estimator="field")
        np.testing.assert_allclose(shares, counts / 36, atol=1e-3)
        likelihood = ReportLikelihood(law.channel, counts / 1.0, Multinomial(36), np.ones(9))
        np.testing.assert_allclose(likelihood.expectation_step(np.full(9, 1 / 9)), counts / 36, atol=1e-3)


class TestSettings:
    @MADE
    def test_fields_are_the_default(self, mechanism):
        assert mechanism.settings() == {"estimator": "field"}
        assert mechanism.plan(WINDOW, n=10).estimator.to_dict()["settings"] == {"estimator": "field"}

    def test_settings_of_the_published_estimator_ask_for_it(self):
        given = local.DiskAreaMechanism(2.0, cells=5, smoothing=0.1)
        assert given.settings() == {"tolerance": 1e-3 * np.exp(2.0), "max_iter": 10_000, "smoothing": 0.1}
        assert local.DiskAreaMechanism(2.0, cells=5, estimator="em").settings()["smoothing"] == 0
        assert local.MultidimensionalSquareWave(2.0, cells=5, max_iter=9).settings()["max_iter"] == 9
        assert local.SEMGeoI(1.0, cells=3, estimator="least-squares").settings() == {}
        counts = MECHANISMS["disk"].simulate(PATTERN, rng=1)
        field, em = MECHANISMS["disk"].estimate(counts), MECHANISMS["disk"].estimate(counts, estimator="em")
        assert np.abs(field - em).max() > 1e-4
        np.testing.assert_array_equal(MECHANISMS["disk"].estimate(counts, max_iter=10_000), em)
        np.testing.assert_array_equal(given.estimate(counts, estimator="field"), field)

    def test_both_at_once_are_refused(self):
        with pytest.raises(InputError, match=r"^estimator: tolerance, max_iter, smoothing are settings of 'em'"):
            local.DiskAreaMechanism(2.0, cells=5, smoothing=0.1, estimator="field")
        with pytest.raises(InputError, match=r"^settings: tolerance belong to estimator='em'"):
            LAWS["disk"].settings(estimator="field", tolerance=1.0)
        for wrong in ("em", "fields", None, 1):
            with pytest.raises(InputError, match=r"^estimator: "):
                local.SEMGeoI(1.0, cells=3, estimator=wrong)
        with pytest.raises(InputError, match=r"^tolerance: "):
            local.DiskAreaMechanism(2.0, cells=5, tolerance=-1.0)

    def test_large_grids_are_refused_before_anybody_reports(self, monkeypatch):
        monkeypatch.setattr("dpppsynth.mechanisms.local.randomizers.randomizer.FIELD_SIDE", 4)
        assert "tolerance" in local.DiskAreaMechanism(2.0, cells=5).settings()
        with pytest.raises(InputError, match=r"^estimator: a field is for at most 4 x 4 cells, got 5 x 5"):
            local.DiskAreaMechanism(2.0, cells=5, estimator="field")


class TestReleases:
    @MADE
    def test_certificates_state_the_field(self, mechanism, tmp_path):
        release = mechanism.release(PATTERN)
        folder = release.save(tmp_path / "public", patterns=1)
        assert verify(folder).holds
        stated = json.loads((folder / "certificate.json").read_text())["parameters"]["estimator"]
        assert stated == {"kind": "reports", "settings": {"estimator": "field"}}
        again = load_release(folder)
        np.testing.assert_array_equal(again.distribution, release.distribution)
        counts = mechanism.aggregate(mechanism.clients([3, 4, 4], rng=1))
        np.testing.assert_allclose(counts.release(WINDOW).distribution, mechanism.estimate(counts), atol=1e-12)

    @MADE
    def test_counts_are_estimated_again_at_no_cost(self, mechanism, tmp_path):
        release = mechanism.release(PATTERN)
        other = release.refit(mechanism.randomizer.published)
        assert other.statistic is release.statistic
        assert np.abs(other.distribution - release.distribution).max() > 1e-4
        np.testing.assert_array_equal(other.refit("field").distribution, release.distribution)
        assert verify(other.save(tmp_path / "public", patterns=0)).holds
        np.testing.assert_array_equal(load_release(tmp_path / "public").distribution, other.distribution)
        with pytest.raises(InputError, match=r"^estimator: "):
            release.refit("kriging")

    def test_tables_tell_the_estimator(self):
        (row,) = MECHANISMS["disk"].plan(WINDOW, n=10).estimator.table_rows()
        assert row == ("intensity", "shares of the cells, by a field behind them, estimated from counts of reports")

    def test_parts_of_cells_outside_the_window_hold_nobody(self):
        import shapely

        cut = Window.polygon(shapely.Polygon([(0, 0), (1000, 0), (1000, 800), (990, 800)]), "EPSG:27700")
        mechanism = local.DiskAreaMechanism(2.0, cells=5)
        release = mechanism.aggregate(mechanism.clients([[4, 2]] * 300, rng=1)).release(cut)
        assert release.distribution[0, 4] == 0
        assert release.distribution.sum() == pytest.approx(1.0)
        assert release.intensity.total == pytest.approx(300)

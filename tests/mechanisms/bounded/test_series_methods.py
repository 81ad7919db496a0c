"""Smoothed and drawn series: the pooled smoother beside exact sums, the choice of a method, pictures."""

import itertools

import numpy as np
import pytest
from baselines.grid_filters import grid_smoother

import dpppsynth as dps
from dpppsynth.core.errors import InputError
from dpppsynth.filters import Filtered, particle_filter, pooled_smoother
from dpppsynth.inference.filters import smoother as module
from dpppsynth.plotting import plot_series
from dpppsynth.privacy.truncated.truncated_laplace import TruncatedLaplace

SCALE, BOUND = 2.0, 30.0


def released(truth, seed=3):
    law = TruncatedLaplace(SCALE, BOUND)
    return truth + np.round(law.ppf(np.random.default_rng(seed).random(truth.shape)))


def year(cells=150):
    """Walks of steps of 1, some of which jump in July and some of which rise at the end."""
    rng = np.random.default_rng(8)
    truth = np.round(60 + np.cumsum(rng.normal(0, 1, (12, cells)), axis=0))
    truth[6:, :15] += 40
    truth[10:, 15:30] += 30
    return truth


class TestSmoother:
    def test_against_all_paths(self):
        """Means of three states, from the sum over all paths of a walk on the whole grid, jumps included."""
        noisy, scale, bound, step = np.array([3.0, 4.0, 7.0]), 1.0, 3.0, 0.5
        grid, law = module._Grid(noisy[:, None], TruncatedLaplace(scale, bound)), TruncatedLaplace(scale, bound)
        at = grid.low[0] + grid.spacing * np.arange(grid.cells)
        chance = [law.cdf(at - y + grid.spacing / 2) - law.cdf(at - y - grid.spacing / 2) for y in noisy]
        # A Poisson number of moves by one cell, summed over how many there are.
        moves = np.zeros((grid.cells, grid.cells))
        rate = (step / grid.spacing) ** 2
        far, power = np.zeros(4 * grid.cells + 1), np.zeros(4 * grid.cells + 1)
        power[2 * grid.cells] = np.exp(-rate)
        for count in range(1, 80):
            far += power
            power = np.convolve(power, [rate / 2, 0, rate / 2], mode="same") / count
        for i, j in itertools.product(range(grid.cells), repeat=2):
            moves[i, j] = far[2 * grid.cells + i - j]
        moves = (1 - module.JUMP) * moves + module.JUMP / grid.cells
        joint = np.einsum("i,ij,j,jk,k->ijk", chance[0], moves, chance[1], moves, chance[2])
        expected = [joint.sum(axis=tuple({0, 1, 2} - {k})) @ at / joint.sum() for k in range(3)]
        found = pooled_smoother(noisy, scale=scale, bound=bound, step=step).estimate
        assert found == pytest.approx(expected, abs=1e-6)

    def test_is_the_grid_smoother_without_jumps(self, monkeypatch):
        monkeypatch.setattr(module, "JUMP", 1e-9)
        noisy = released(np.linspace(40, 60, 20)[:, None] + np.zeros((1, 5)))
        found = pooled_smoother(noisy, scale=SCALE, bound=BOUND, step=2.0).estimate
        assert np.abs(found - grid_smoother(noisy, scale=SCALE, bound=BOUND, step=2.0)).max() < 0.02 * SCALE

    @pytest.mark.slow
    def test_smooth_series_and_jumps(self):
        """Half the filter's error on walks, and a third where cells jump; no worse than raw where nothing is smooth."""
        truth = year()
        noisy = released(truth)
        errors = {
            "raw": noisy - truth,
            "particles": particle_filter(noisy, scale=SCALE, bound=BOUND, rng=0).estimate - truth,
            "smoother": pooled_smoother(noisy, scale=SCALE, bound=BOUND).estimate - truth,
        }
        smooth = {name: float((each[:, 30:] ** 2).mean()) for name, each in errors.items()}
        jumps = {name: float((each[:, :30] ** 2).mean()) for name, each in errors.items()}
        assert smooth["smoother"] < 0.6 * smooth["particles"] < 0.6 * smooth["raw"]
        assert jumps["smoother"] < 0.5 * jumps["particles"]
        wild = np.random.default_rng(4).integers(0, 300, (12, 100)).astype(float)
        noisy = released(wild)
        found = pooled_smoother(noisy, scale=SCALE, bound=BOUND).estimate
        assert ((found - wild) ** 2).mean() < 1.03 * ((noisy - wild) ** 2).mean()

    def test_series_side_by_side_learn_from_each_other(self):
        noisy = released(np.full((6, 200), 50.0))
        together = pooled_smoother(noisy, scale=SCALE, bound=BOUND)
        alone = [pooled_smoother(each, scale=SCALE, bound=BOUND).estimate for each in noisy.T[:50]]
        assert ((together.estimate - 50) ** 2).mean() < 0.8 * ((np.array(alone) - 50) ** 2).mean()
        assert np.median(together.step) < SCALE / 2
        assert together.bound == 2 * BOUND

    @pytest.mark.parametrize("bound", [3.0, np.inf])
    def test_within_the_bound_whatever_the_series(self, bound):
        noisy = np.array([[0, 5], [900, 5], [1, -7], [2, 1e4], [2.5, 1e4]])
        found = pooled_smoother(noisy, scale=1.0, bound=bound).estimate
        assert found.shape == noisy.shape
        assert np.abs(found - noisy).max() <= min(bound, 40)
        assert pooled_smoother([4.0], scale=1.0, bound=bound).estimate == pytest.approx([4.0])

    def test_refusals(self):
        with pytest.raises(InputError, match="observations"):
            pooled_smoother([0, 10**7], scale=1.0, bound=9.0)
        with pytest.raises(InputError, match="step"):
            pooled_smoother([0, 1], scale=1.0, bound=9.0, step="odd")


WINDOW = dps.Window.rectangle(0, 0, 1000, 1000)


@pytest.fixture(scope="module")
def series():
    rng = np.random.default_rng(1)
    months = list(range(1, 7))
    pattern = dps.PointPattern(rng.uniform(0, 1000, (600, 2)), WINDOW, {"month": rng.choice(months, 600)})
    counts = dps.BoundedErrorSynthesizer(epsilon=1.0, delta=1e-6, spacing=500.0)
    return counts.release_by(pattern, rng=1, by="month", levels=months)


class TestMethods:
    def test_of_counts_and_answers(self, series):
        law = {"scale": next(iter(series.releases.values())).statistic.definition.scale, "bound": series.max_error}
        smoothed = series.filter(method="smoother")
        assert (smoothed.estimate == pooled_smoother(series.raw, **law).estimate).all()
        assert (series.filter(rng=0).estimate == series.filtered).all()
        answers = dps.BoundedErrorAnswers(epsilon=0.5, max_error=30).release([112, 118, 132, 129], rng=1)
        assert answers.filter(method="smoother").estimate.shape == (4,)
        assert (answers.filter(rng=0).estimate == answers.filtered).all()

    def test_refusals(self, series):
        for settings, said in (
            ({"method": "kalman"}, "method"),
            ({"method": "smoother", "particles": 10}, "particles"),
        ):
            with pytest.raises(InputError, match=said):
                series.filter(**settings)


class TestPictures:
    def test_shows_what_was_released_and_filtered(self, series):
        smoothed = series.filter(method="smoother")
        axes = plot_series(series, smoothed, cells=[2, 0])
        assert [ax.get_title(loc="left") for ax in axes] == ["cell 2", "cell 0"]
        dots, line = axes[0].lines
        assert (dots.get_ydata() == series.raw[:, 2]).all()
        assert (line.get_ydata() == smoothed.estimate[:, 2]).all()
        assert axes[0].get_xlabel() == "month"
        assert len(plot_series(series)) == min(6, series.raw.shape[1])

    def test_of_answers(self):
        answers = dps.BoundedErrorAnswers(epsilon=0.5, max_error=float("inf")).release([112, 118, 132, 129], rng=1)
        (ax,) = plot_series(answers, title="Calls")
        assert ax.get_title(loc="left") == "Calls"

    def test_refusals(self, series):
        for arguments, said in (
            (([1, 2, 3],), "release"),
            ((series, Filtered(np.zeros(3), 0, 1.0, 2.0)), "filtered"),
        ):
            with pytest.raises(InputError, match=said):
                plot_series(*arguments)
        for cells in ([], [99]):
            with pytest.raises(InputError, match="cells"):
                plot_series(series, cells=cells)

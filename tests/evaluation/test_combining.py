"""The rule for fully synthetic data, against its formula and by coverage; slopes, and what is kept of them."""

import numpy as np
import pytest
from scipy import stats

import dpppsynth as dps
from dpppsynth.core.errors import InputError
from dpppsynth.release.verify import verify


def draws(m):
    return [f"public/synthetic_draw_{k:03d}.geojson" for k in range(m)]


def test_the_formula():
    q, u = np.array([0.30, 0.36, 0.33, 0.27]), np.array([1e-4, 2e-4, 1e-4, 2e-4])
    found = dps.combine(draws(len(q)), q, u)
    b = ((q - q.mean()) ** 2).sum() / 3
    total = 1.25 * b - u.mean()
    degrees = 3 * (1 - u.mean() / (1.25 * b)) ** 2
    assert found.estimate == pytest.approx(q.mean())
    assert found.standard_error == pytest.approx(np.sqrt(total))
    assert found.degrees_of_freedom == pytest.approx(degrees)
    lower, upper = found.interval(0.95)
    half = stats.t.ppf(0.975, degrees) * np.sqrt(total)
    assert (lower[0], upper[0]) == pytest.approx((q.mean() - half, q.mean() + half))


def test_several_quantities_are_combined_one_by_one():
    rng = np.random.default_rng(1)
    q, u = rng.normal(size=(20, 3)), np.full((20, 3), 0.1)
    found = dps.combine(draws(len(q)), q, u)
    alone = [dps.combine(draws(20), q[:, k], u[:, k]) for k in range(3)]
    assert found.standard_error == pytest.approx([each.standard_error[0] for each in alone])
    assert "3" not in str(found.patterns)
    assert len(str(found).splitlines()) == 4


def test_a_variance_that_is_not_positive_is_said():
    found = dps.combine(draws(3), [1.0, 1.0, 1.0], [0.5, 0.5, 0.5])
    assert found.too_few.all()
    assert found.standard_error == pytest.approx(np.sqrt(0.5))
    assert "More patterns are needed" in str(found)


def test_intervals_hold_the_truth_as_often_as_they_say():
    """A normal mean: the truth given the data has variance .3, a new estimate .2 more; rules for other data miss."""
    rng, held, runs = np.random.default_rng(2), 0, 2000
    for _ in range(runs):
        centre = rng.normal(0.0, np.sqrt(0.3))  # posterior centre about the truth 0
        means = centre + np.sqrt(0.3) * rng.standard_normal(50)
        estimates = means + np.sqrt(0.2) * rng.standard_normal(50)
        lower, upper = dps.combine(draws(50), estimates, np.full(50, 0.2)).interval(0.9)
        held += lower[0] <= 0 <= upper[0]
    # Six standard errors of a share of .9, and a percent for the approximate degrees of freedom.
    assert abs(held / runs - 0.9) < 6 * np.sqrt(0.09 / runs) + 0.01


@pytest.mark.parametrize(
    ("estimates", "variances", "said"),
    [
        ([1.0], [1.0], "estimates"),
        ([1.0, 2.0], [1.0], "variances"),
        ([1.0, 2.0], [1.0, -1.0], "variances"),
        ([1.0, np.nan], [1.0, 1.0], "estimates"),
        ("ab", [1.0, 1.0], "estimates"),
        ([[1.0, 2.0], [1.0, 2.0]], [1.0, 1.0], "variances"),
    ],
)
def test_refusals(estimates, variances, said):
    with pytest.raises(InputError, match=said):
        dps.combine(draws(len(estimates)), estimates, variances)


@pytest.mark.parametrize("name", ["synthetic_000.csv", "synthetic_mean_000.geojson", "mine.csv"])
def test_patterns_of_one_intensity_or_of_no_known_source_are_refused(name):
    with pytest.raises(InputError, match=r'^patterns: .*release.sample\(m, source="draws"\)'):
        dps.combine([*draws(2), name], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
    with pytest.raises(InputError, match=r"^patterns: needs one for each"):
        dps.combine(draws(2), [1.0, 2.0, 3.0], [1.0, 1.0, 1.0])


SQUARE = dps.Window.rectangle(0, 0, 1000, 1000)
SLOPE = 0.6


def stripes(width: float):
    """A covariate of standard deviation 1 that rises and falls from west to east."""
    return lambda xy: np.sqrt(2) * np.sin(np.pi * xy[:, 0] / width)


def follows(covariate, n: int = 600) -> dps.PointPattern:
    """Points whose log-intensity is a slope times a covariate."""
    rng = np.random.default_rng(4)
    xy = rng.uniform(0, 1000, (30 * n, 2))
    weight = np.exp(SLOPE * covariate(xy))
    return dps.PointPattern(xy[rng.choice(len(xy), n, replace=False, p=weight / weight.sum())], SQUARE)


def settings(alpha: float = 20.0, **given) -> dps.LGCPSynthesizer:
    return dps.LGCPSynthesizer(3.0, alpha=alpha, inference="laplace", **{"mechanism": "tents"} | given)


class TestSlopes:
    def test_are_divided_by_what_is_kept_of_them(self):
        q, u = np.random.default_rng(1).normal(size=(20, 2)), np.full((20, 2), 0.1)
        plain, found = dps.combine(draws(20), q, u), dps.combine(draws(20), q, u, kept=[0.8, 1.0])
        assert found.estimate == pytest.approx(plain.estimate * [1.25, 1])
        assert found.standard_error == pytest.approx(plain.standard_error * [1.25, 1])

    @pytest.mark.parametrize(("kept", "said"), [(0.3, "30%"), (-0.02, "0%"), ([0.9, 0.9], "number"), ("a", "number")])
    def test_of_which_too_little_is_kept_are_refused(self, kept, said):
        with pytest.raises(InputError, match=f"^kept: .*{said}"):
            dps.combine(draws(3), [0.1, 0.2, 0.1], [0.01] * 3, kept=kept)

    def test_short_ranges_are_lost_and_long_ones_kept_and_the_remedy_tells_both(self):
        shares = []
        for width in (30.0, 500.0):
            covariate = stripes(width)
            release = settings().release(follows(covariate), rng=1)
            shares.append(dps.kept_slope(release, covariate, rng=2, trials=1))
            explained = release.infer(rng=3, covariates={"stripes": covariate})
            assert explained.statistic is release.statistic
            low, high = np.quantile(explained.effects["stripes"], [0.005, 0.995])
            assert low < SLOPE < high
        short, long = shares
        assert short < 0.1
        assert 0.7 < long < 1.2

    @pytest.mark.parametrize("given", [{"prior": "sparse"}, {"mechanism": "moved"}])
    def test_the_remedy_serves_sparse_fields_and_moved_points(self, given):
        covariate = stripes(200.0)
        release = settings(alpha=90.0, **given).release(follows(covariate), rng=1)
        low, high = np.quantile(release.infer(rng=3, covariates={"s": covariate}).effects["s"], [0.005, 0.995])
        assert 0 < low < SLOPE < high

    def test_a_release_explained_afterwards_is_saved_and_verified(self, tmp_path):
        covariate = stripes(200.0)
        release = settings().release(follows(covariate, 200)).infer(rng=3, covariates={"s": covariate})
        folder = release.save(tmp_path / "public", patterns=0)
        assert verify(folder).holds
        np.testing.assert_allclose(dps.load_release(folder).effects["s"], release.effects["s"])

    def test_refusals(self):
        release = settings().release(follows(stripes(200.0), 200), rng=1)
        with pytest.raises(InputError, match=r"^covariate: .*same"):
            dps.kept_slope(release, lambda xy: np.ones(len(xy)), rng=1)
        plain = dps.LaplaceSynthesizer(3.0, alpha=20.0, postprocess="clip").release(follows(stripes(200.0), 200), rng=1)
        with pytest.raises(InputError, match=r"^release: .*posterior"):
            dps.kept_slope(plain, stripes(200.0))
        with pytest.raises(InputError, match=r"^release: needs a CoxRelease"):
            dps.kept_slope(release.statistic, stripes(200.0))
        field = dps.LGCPSynthesizer(3.0, alpha=20.0, mechanism="field", delta=1e-6, inference="laplace")
        with pytest.raises(InputError, match=r"^covariates: .*lgcp-field has not"):
            field.release(follows(stripes(200.0), 200), rng=1).infer(covariates={"s": stripes(200.0)})

"""Field statistics and posterior draws on windows: covariances, samplers, what is drawn and what is blocked."""

import functools
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import gamma
from support.chance import Chance
from support.seams import chance_for_nuts
from support.settings import BUILD, SQUARE, N, lgcp, plan, points

from dpppsynth.contract import rules
from dpppsynth.core.errors import InformationWarning, InputError, PrivacyCheckError, ReleaseBlocked
from dpppsynth.datasets import soho_deaths, soho_streets
from dpppsynth.mechanisms.lgcp import draws as feasibility
from dpppsynth.mechanisms.lgcp.bound.posterior_draw import largest_sigma
from dpppsynth.models import regular_triangulation
from dpppsynth.models.covariances import PoweredExponential
from dpppsynth.privacy import AddRemove, AlphaNeighbours, catalogue, kim_lim_ratio
from dpppsynth.privacy.profiles import gaussian_mu
from dpppsynth.release import CoxRelease
from dpppsynth.spatial.intensity import LogLinear
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import LGCPSynthesizer


@pytest.fixture(autouse=True)
def nuts_is_quick():
    """No test here depends on the law of its chains."""
    with chance_for_nuts():
        yield


# Two-sided bounds that a variable of each law leaves with probability 1e-8.
LOW, HIGH = 5e-9, 1 - 5e-9


class TestSigma:
    @pytest.mark.parametrize("name", ["field", "exact", "proximal", "kim-lim"])
    def test_the_largest_is_named_admitted_and_the_end(self, name):
        with pytest.raises(
            PrivacyCheckError, match=r"^sigma: 50(\.\d+)? .*(largest admissible is|at most) [\d.]+"
        ) as caught:
            plan(BUILD[name](SQUARE, sigma=50.0))
        named = float(re.search(r"(?:admissible is|at most) ([\d.]+\d)", str(caught.value)).group(1))
        settled = plan(BUILD[name](SQUARE, sigma=named * (1 - 1e-3)))
        assert settled.statistic.covariance.sigma == named * (1 - 1e-3)
        assert settled.guarantee.epsilon() <= BUILD[name](SQUARE).epsilon
        with pytest.raises(PrivacyCheckError, match=r"^sigma: "):
            plan(BUILD[name](SQUARE, sigma=named * (1 + 1e-3)))

    def test_at_the_largest_to_the_last_digit(self):
        mesh, shape = regular_triangulation(SQUARE, shape=(5, 5)), PoweredExponential(1.0, 400.0)
        largest = largest_sigma(mesh, shape, AlphaNeighbours(25.0), gaussian_mu(1.0, 1e-6))
        assert plan(lgcp("posterior-draw", sampler="exact", sigma=largest)).guarantee.epsilon() <= 1.0
        with pytest.raises(PrivacyCheckError, match=r"^sigma: "):
            plan(lgcp("posterior-draw", sampler="exact", sigma=largest * (1 + 1e-9)))

    def test_draws_take_no_more_than_the_rule(self):
        assert plan(lgcp("posterior-draw", epsilon=50.0)).statistic.covariance.sigma == rules.DRAW_SIGMA

    @pytest.mark.parametrize("mechanism", ["field", "posterior-draw"])
    def test_covariance_of_another_power(self, mechanism):
        rough = PoweredExponential(0.01, 400.0, 1.0)
        settled = plan(lgcp(mechanism, covariance=rough, length_scale=None))
        assert settled.statistic.covariance == rough
        smooth = plan(lgcp(mechanism, sigma=0.01)).guarantee
        assert settled.guarantee.mu > smooth.mu

    def test_covariance_excludes_its_parts(self):
        with pytest.raises(InputError, match=r"^covariance: .*give it alone, or sigma= and length_scale= without it"):
            lgcp("field", covariance=PoweredExponential(0.1, 400.0))
        with pytest.raises(InputError, match=r"^covariance: needs one such as PoweredExponential"):
            lgcp("field", covariance="smooth", length_scale=None)
        with pytest.raises(InputError, match=r"^sigma: mechanism 'tents' spends nothing on a covariance"):
            lgcp("tents", sigma=1.0)


class TestSampler:
    @pytest.mark.parametrize(
        ("mechanism", "sampler"),
        [
            ("tents", "exact"),
            ("field", "nuts"),
            ("lipschitz", "proximal"),
            ("kim-lim-3.8", "exact"),
            ("kim-lim-3.9", "proximal"),
        ],
    )
    def test_not_of_the_mechanism(self, mechanism, sampler):
        with pytest.raises(InputError, match=rf"^sampler: mechanism '{mechanism}' cannot take '{sampler}'; leave "):
            lgcp(mechanism, sampler=sampler)

    @pytest.mark.parametrize(("mechanism", "other"), [("posterior-draw", "proximal"), ("lipschitz", "nuts")])
    def test_auto_depends_on_the_surrogates(self, mechanism, other, monkeypatch):
        assert plan(lgcp(mechanism)).statistic.sampler == "exact"
        monkeypatch.setattr(feasibility, "PATIENCE", -1.0)
        assert plan(lgcp(mechanism)).statistic.sampler == other
        with pytest.raises(InputError, match=rf"^sampler: exact draws are not feasible here: .*or sampler='{other}'\."):
            plan(lgcp(mechanism, sampler="exact"))

    def test_the_proximal_one_pays_for_itself(self):
        exact, proximal = (
            plan(lgcp("posterior-draw", epsilon=0.5, sampler=sampler)).statistic for sampler in ("exact", "proximal")
        )
        assert 0.99 < proximal.covariance.sigma / exact.covariance.sigma < 1

    @pytest.mark.slow
    def test_infeasible_here(self):
        """Rough field, strong prior: exact draws would take longer than the universe is old."""
        rough = {"epsilon": 1000.0, "sigma": 4.0, "length_scale": 100.0}
        rough |= {"mesh": regular_triangulation(SQUARE, shape=(8, 8))}
        with pytest.raises(
            InputError, match=r"surrogate pattern \([a-z ]+\) .* to take (about \d+ s|many minutes), and 60 s.*Take a"
        ) as e:
            plan(lgcp("posterior-draw", sampler="exact", **rough))
        assert "longer length scale, a smaller sigma, or sampler='proximal'" in str(e.value)

    def test_feasible_though_seldom(self):
        """Few of the first attempts at a steep Lipschitz field are gentle enough; trying on finds that some are."""
        steep = {"epsilon": 2.0, "alpha": 100.0, "sigma": 2.5, "sampler": "exact"}
        assert plan(lgcp("lipschitz", **steep)).statistic.sampler == "exact"

    def test_settled_from_public_numbers_alone(self):
        """The plan of a release is the one made without the pattern, whatever the pattern."""
        synthesizer = lgcp("posterior-draw")
        settled = plan(synthesizer).statistic.parameters()
        for pattern in (points(), points(seed=2, spot=True)):
            assert synthesizer.release(pattern).statistic.definition.parameters() == settled


class Spoilt(Chance):
    """Chains that far apart, with so many divergences."""

    def __init__(self, apart, divergences, *settings):
        super().__init__(*settings)
        self.apart, self.divergences = apart, divergences

    def sample(self, **settings):
        chains = super().sample(**settings)
        return replace(chains, z=chains.z + self.apart * np.arange(4)[:, None, None], divergences=self.divergences)


class TestBlocked:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("mechanism", ["posterior-draw", "lipschitz"])
    def test_shows_no_figure(self, mechanism):
        for apart, divergences in ((1.0, 0), (0.2, 0), (0.0, 13)):
            spoilt = functools.partial(Spoilt, apart, divergences)
            blocked = pytest.raises(
                ReleaseBlocked, match=r"^sampler: NUTS did not pass its diagnostics.*counts as spent"
            )
            with chance_for_nuts(spoilt), blocked as caught:
                plan(lgcp(mechanism, sampler="nuts")).release(points())
            assert not re.search(r"\d", str(caught.value))
            assert caught.value.__cause__ is None


class TestDraws:
    def within(self, total, n=N):
        """A flat prior of the log-intensity makes the total Gamma(n) whatever the field; the prior is next to flat."""
        low, high = gamma(n).ppf([LOW, HIGH])
        return low < total < high

    @pytest.mark.parametrize("name", ["exact", "proximal", "lipschitz"])
    def test_total_is_about_n(self, name):
        settled = plan(BUILD[name](SQUARE))
        assert all(self.within(settled.release(points(seed=seed), seed).intensity.total) for seed in range(4))

    @pytest.mark.parametrize("name", ["exact", "proximal", "lipschitz"])
    def test_an_offset_multiplies(self, name):
        values = np.array([[4.0, 1.0], [7.0, 2.0]])
        offset = Offset.from_grid(values, (0, 0, 1000, 1000))
        settled, grid = plan(BUILD[name](SQUARE, offset=offset)), points(seed=9, n=500).xy
        for seed in range(3):
            release = settled.release(points(seed=seed), seed)
            assert self.within(release.intensity.total)
            plain = CoxRelease(release.mechanism, release.statistic, type(release.estimator)())
            factor = values[(grid[:, 1] < 500).astype(int), (grid[:, 0] > 500).astype(int)]
            # Both have the total their field was drawn for: the levels differ by the lumped integral alone.
            ratio = release.intensity(grid) / (factor * plain.intensity(grid))
            np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)
            assert abs(ratio[0] - 1) < 0.05

    def test_the_total_is_the_one_the_field_was_drawn_for(self):
        """The likelihood's integral is a sum over vertices; on coarse or rough fields exp of P1 holds less."""
        streets = soho_streets()
        pattern = soho_deaths(on="streets")
        draw = LGCPSynthesizer(5.0, alpha=25.0, delta=1e-6, mechanism="posterior-draw", sampler="proximal")
        settled = draw.plan(streets, n=len(pattern))
        release = settled.release(pattern, 1)
        mesh, values = settled.statistic.mesh, release.statistic.values
        assert release.intensity.total == pytest.approx(mesh.measure @ np.exp(values), rel=1e-9)
        assert release.intensity.total > 1.01 * LogLinear(mesh, values).total

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("sampler", ["exact", "proximal"])
    def test_points_where_the_offset_is_zero(self, sampler):
        """They leave no trace there, and do not drive up the field beside."""
        offset = Offset.from_grid([[4.0, 1.0], [7.0, 0.0]], (0, 0, 1000, 1000))
        settled = plan(lgcp("posterior-draw", sampler=sampler, offset=offset))
        for seed in range(3):
            release = settled.release(points(seed=seed), seed)
            assert gamma(N / 2).ppf(LOW) < release.intensity.total < gamma(N).ppf(HIGH)
            (pattern,) = release.sample(1, 2)
            assert not np.any((pattern.xy[:, 0] > 500) & (pattern.xy[:, 1] < 500))

    def test_follow_the_points_where_the_budget_is_large(self):
        """About 20 points expected in the barren half and 300 in the other: nowhere near a coin's toss."""
        half = PointPattern(np.random.default_rng(1).uniform([0, 0], [500, 1000], (N, 2)), SQUARE)
        for mechanism in ("posterior-draw", "lipschitz"):
            intensity = plan(lgcp(mechanism, epsilon=50.0, sampler="exact")).release(half, 1).intensity
            left, right = (intensity(points(seed=9).xy * [0.4, 1] + [x, 0]).mean() for x in (0, 600))
            assert left > 3 * right

    def test_a_given_field_leaves_the_rest_to_the_intercept(self):
        """Under add/remove variances of field and intercept share the budget; no half is reserved for either."""
        mu = gaussian_mu(1.0, 1e-6)
        settled = plan(lgcp("posterior-draw", relation=AddRemove(), sigma=0.9 * mu, sampler="exact"))
        assert settled.statistic.intercept_sd == pytest.approx(mu * (1 - 0.81) ** 0.5, rel=1e-6)
        assert settled.guarantee.epsilon() == pytest.approx(1.0, rel=1e-6)
        with pytest.raises(PrivacyCheckError, match=r"^sigma: "):
            plan(lgcp("posterior-draw", relation=AddRemove(), sigma=1.01 * mu, sampler="exact"))

    def test_a_secret_n_is_protected_by_the_intercept(self):
        """With next to no budget the total stays at the public guess; with plenty it follows the points."""
        few, many = (
            plan(lgcp("posterior-draw", epsilon=epsilon, relation=AddRemove(), sampler="exact"), n=100)
            .release(points(n=900), 1)
            .intensity.total
            for epsilon in (0.01, 50.0)
        )
        assert abs(few - 100) < 5
        assert self.within(many, 900) or 700 < many < 1100

    def test_no_posterior_and_no_further_inference(self):
        release = plan(BUILD["exact"](SQUARE)).release(points(), 1)
        for call in (lambda: release.posterior, release.infer, lambda: release.interval(points().xy)):
            with pytest.raises(
                InputError, match=r"^posterior: a lgcp-posterior-draw release has none; mechanisms 'tents'"
            ):
                call()
        assert len(release.sample(1, 2, fixed_n=True)[0]) == N

    def test_field_statistic_has_a_posterior_that_can_be_taken_again(self):
        release = plan(BUILD["field"](SQUARE)).release(points(spot=True), 1)
        other = release.infer(1, length_scales=(200.0,))
        assert other.statistic is release.statistic
        assert other.estimator.length_scales == (200.0,)
        assert release.intensity.total == pytest.approx(N, rel=0.2)


class TestConfidentialFit:
    def test_keeps_the_run_and_shows_nothing(self):
        fit = plan(BUILD["exact"](SQUARE)).statistic.fit(points(), 1)
        assert fit.attempts >= 1
        assert fit.seconds > 0
        assert (
            repr(fit)
            == str(fit)
            == "ConfidentialFit(not for release: time, attempts and diagnostics depend on the data)"
        )
        assert not hasattr(fit, "save")
        assert not hasattr(fit, "to_dict")
        assert repr(fit.draw).startswith("PrivateStatistic(field on ")

    def test_a_draw_is_rounded_to_the_lattice_once(self):
        statistic = plan(BUILD["exact"](SQUARE)).statistic
        draw = statistic.fit(points(), 1).draw
        assert draw.lattice.dtype == np.int64
        assert (draw.values * 2**20 == draw.lattice).all()


class TestKimLim:
    def test_warns_that_it_carries_no_information(self):
        with pytest.warns(
            InformationWarning, match=r"^mechanism: under Kim & Lim's bound 3\.9 .* no spatial information"
        ):
            settled = plan(lgcp("kim-lim-3.9", epsilon=0.01, delta=1e-3, alpha=25.0))
        assert settled.statistic.covariance.sigma < 0.05
        assert "no-spatial-information" in settled.guarantee.assumptions

    def test_needs_a_regular_mesh_before_the_data_are_touched(self):
        mesh = regular_triangulation(SQUARE, shape=(5, 5))
        free = Mesh.from_arrays(mesh.vertices, mesh.elements, SQUARE)
        with pytest.raises(InputError, match=r"^mesh: Kim & Lim's scheme needs a regular one"):
            plan(lgcp("kim-lim-3.8", delta=1e-3, mesh=free))

    def test_is_labelled_as_an_average_over_the_model(self):
        guarantee = plan(lgcp("kim-lim-3.8", delta=1e-3, epsilon=200.0)).guarantee
        assert guarantee.assumptions[0] == "model-averaged"
        assert catalogue.text("model-averaged") in str(guarantee)
        assert "model-averaged" not in plan(lgcp("posterior-draw")).guarantee.assumptions

    def test_ratio_is_the_largest_of_the_bound(self):
        mesh = regular_triangulation(SQUARE, shape=(5, 5))
        for bound, corollary in (("3.8", False), ("3.9", True)):
            settled = plan(lgcp(f"kim-lim-{bound}", epsilon=200.0, delta=1e-3)).statistic
            assert settled.ratio == kim_lim_ratio(
                mesh, AlphaNeighbours(25.0), epsilon=200.0, delta=1e-3, corollary=corollary
            )
            assert settled.covariance.sigma == pytest.approx(settled.ratio * 400.0)

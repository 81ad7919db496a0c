"""Field statistics, posterior draws and kernels from settings to folder: promises, refusals, and what is released."""

import atexit
import functools
import json
import math
import re
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import shapely
from scipy.stats import gamma, poisson
from support.chance import Chance
from support.seams import chance_for_nuts

from dpppsynth.contract import rules
from dpppsynth.core.errors import InformationWarning, InputError, PrivacyCheckError, ReleaseBlocked
from dpppsynth.core.published_files import plain_text
from dpppsynth.datasets import soho_deaths, soho_streets
from dpppsynth.mechanisms.kernel.bound.kernels import smallest_bandwidth
from dpppsynth.mechanisms.kernel.release import PoissonRelease
from dpppsynth.mechanisms.lgcp import feasibility
from dpppsynth.mechanisms.lgcp.bound.posterior_draw import largest_sigma
from dpppsynth.mechanisms.lgcp.synthesizer import MECHANISMS
from dpppsynth.models import regular_triangulation
from dpppsynth.models.covariances import PoweredExponential
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne, kim_lim_ratio, verify
from dpppsynth.privacy.profiles import gaussian_mu
from dpppsynth.release import CoxRelease, certificate, load_release
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import LogLinear
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import KernelSynthesizer, LGCPSynthesizer

SQUARE = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
RING = Window.polygon(shapely.Point(500, 500).buffer(400).difference(shapely.Point(500, 500).buffer(100)), "EPSG:27700")
N = 300
# Two-sided bounds that a variable of each law leaves with probability 1e-8.
LOW, HIGH = 5e-9, 1 - 5e-9


def points(window=SQUARE, seed=1, n=N, *, spot=False):
    rng = np.random.default_rng(seed)
    xy = rng.normal([700, 600], 40, (9 * n, 2)) if spot else rng.uniform(0, 1000, (9 * n, 2))
    return PointPattern(xy[window.contains(xy)][:n], window)


def lgcp(mechanism, window=SQUARE, **options):
    settings = {"delta": 1e-6} if MECHANISMS[mechanism].spends_delta else {}
    settings |= {"mechanism": mechanism, "length_scale": 400.0, "mesh": regular_triangulation(window, shape=(5, 5))}
    settings |= {} if "relation" in options else {"alpha": 25.0}
    return LGCPSynthesizer(**{"epsilon": 1.0, "inference": "laplace"} | settings | options)


def kernel(window=SQUARE, **options):
    return KernelSynthesizer(
        **{"epsilon": 10.0, "delta": 1e-6} | ({} if "relation" in options else {"alpha": 25.0}) | options
    )


BUILD = {
    "field": lambda window, **options: lgcp("field", window, **options),
    "exact": lambda window, **options: lgcp("posterior-draw", window, sampler="exact", **options),
    "proximal": lambda window, **options: lgcp("posterior-draw", window, sampler="proximal", **options),
    "lipschitz": lambda window, **options: lgcp("lipschitz", window, sampler="exact", **options),
    "kim-lim": lambda window, **options: lgcp("kim-lim-3.8", window, **{"epsilon": 200.0, "delta": 1e-3} | options),
    "kernel": kernel,
    "kernel 3.6": lambda window, **options: kernel(window, bound="kim-lim-3.6", **options),
}


def plan(synthesizer, window=SQUARE, n=N, **options):
    size = {"n": n} if synthesizer.neighbouring().n_is_public else {"expected_n": float(n)}
    return synthesizer.plan(window, **size, **options)


@pytest.fixture(autouse=True)
def nuts_is_quick():
    """No test here depends on the law of its chains."""
    with chance_for_nuts():
        yield


def relations():
    """Each kind with the relations it knows."""
    several, whole = AlphaNeighbours(25.0, max_points_per_person=3), [ReplaceOne(), AddRemove(2)]
    yield from (("kim-lim", AlphaNeighbours(25.0)), ("lipschitz", several), ("lipschitz", ReplaceOne(2)))
    yield from ((name, relation) for name in ("field", "exact", "proximal") for relation in (several, *whole))
    yield from ((name, relation) for name in ("kernel", "kernel 3.6") for relation in (several, ReplaceOne(2)))


class TestPromise:
    @pytest.mark.parametrize(
        ("name", "relation", "window"),
        [
            *[(name, AlphaNeighbours(25.0), RING) for name in BUILD],
            *[(name, relation, SQUARE) for name, relation in relations()],
        ],
        ids=str,
    )
    def test_check_plan_release_and_auditor_agree(self, name, relation, window, tmp_path):
        synthesizer = BUILD[name](window, relation=relation)
        settled, pattern = plan(synthesizer, window), points(window)
        size = {"n": N} if relation.n_is_public else {"expected_n": float(N)}
        check = synthesizer.check(window, **size)
        release = settled.release(pattern)
        assert check == settled.guarantee == release.guarantee
        assert check.relation == relation
        assert check.epsilon() <= synthesizer.epsilon * (1 + 1e-12)
        assert check.delta(synthesizer.epsilon) <= synthesizer.delta * (1 + 1e-9)
        outcome = verify(release.save(tmp_path / "out"))
        outcome.require()
        assert outcome.guarantee.to_dict() == check.to_dict()

    @pytest.mark.parametrize("name", ["field", "exact", "proximal", "lipschitz", "kernel"])
    def test_the_default_spends_the_budget(self, name, monkeypatch):
        monkeypatch.setattr(rules, "DRAW_SIGMA", math.inf)
        synthesizer = BUILD[name](
            SQUARE, epsilon=0.5, relation=ReplaceOne() if name == "kernel" else AlphaNeighbours(25.0)
        )
        guarantee = plan(synthesizer).guarantee
        spent = guarantee.epsilon(guarantee.profile.at)
        assert spent == pytest.approx(0.5, rel=1e-6)

    @pytest.mark.parametrize(
        ("name", "theorem"),
        [
            ("field", "Theorem C (Gaussian field statistic)"),
            ("exact", "Theorem A (one posterior draw)"),
            ("proximal", "Theorem E (proximal sampler)"),
            ("lipschitz", "Theorem D (Lipschitz field)"),
            ("kim-lim", "Kim & Lim, Theorem 3.8 (model-averaged)"),
            ("kernel", "Theorem B (superposition of kernels)"),
            ("kernel 3.6", "Kim & Lim, Theorem 3.6"),
        ],
    )
    def test_theorem(self, name, theorem):
        assert plan(BUILD[name](SQUARE)).guarantee.theorem == theorem

    @pytest.mark.parametrize("name", BUILD)
    def test_seeds_decide_everything_and_no_seed_nothing(self, name):
        settled, pattern = plan(BUILD[name](SQUARE)), points()
        first, again, other, *secret = (settled.release(pattern, rng) for rng in (1, 1, 2, None, None))
        assert outcome(first) == outcome(again) != outcome(other)
        assert outcome(secret[0]) != outcome(secret[1])
        assert (first.seeded, "not private" in repr(first), "not private" in first.noise) == (True, True, True)
        said = "reproducible" in secret[0].noise
        assert (secret[0].seeded, "not private" in repr(secret[0]), said) == (False, False, False)


def outcome(release):
    if isinstance(release, PoissonRelease):
        return [pattern.xy.tolist() for pattern in release.patterns]
    return release.statistic.lattice.tolist()


class TestRoundTrip:
    @pytest.mark.parametrize("name", BUILD)
    def test_what_is_loaded_is_what_was_saved(self, name, tmp_path):
        release = plan(BUILD[name](SQUARE)).release(points(), 3)
        folder = release.save(tmp_path / "one")
        again = load_release(folder)
        assert (repr(again), again.guarantee, again.mechanism) == (repr(release), release.guarantee, release.mechanism)
        assert again.parameters() == release.parameters()
        assert outcome(again) == outcome(release)
        if isinstance(release, CoxRelease):
            grid = points(seed=9).xy
            assert again.intensity(grid).tolist() == release.intensity(grid).tolist()
            assert [p.xy.tolist() for p in again.sample(2, 5)] == [p.xy.tolist() for p in release.sample(2, 5)]

    @pytest.mark.parametrize("name", ["exact", "kernel"])
    def test_saved_again_it_is_the_same_to_the_byte(self, name, tmp_path):
        options = {} if name == "kernel" else {"rng": 4}
        first = plan(BUILD[name](SQUARE)).release(points(), 3).save(tmp_path / "first", **options)
        second = load_release(first).save(tmp_path / "second", **options)
        assert {p.name: p.read_bytes() for p in first.iterdir()} == {p.name: p.read_bytes() for p in second.iterdir()}

    def test_offset_comes_back(self, tmp_path):
        offset = Offset.from_grid([[1.0, 2.0], [3.0, 0.0]], (0, 0, 1000, 1000))
        release = plan(BUILD["exact"](SQUARE, offset=offset)).release(points(), 3)
        grid = points(seed=9).xy
        assert load_release(release.save(tmp_path / "out")).intensity(grid).tolist() == release.intensity(grid).tolist()


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

    @pytest.mark.parametrize("name", ["exact", "lipschitz", "kim-lim", "kernel"])
    def test_a_plan_of_its_own_cannot_exceed_the_budget(self, name):
        """Whoever builds a measurement without a synthesizer is held to the budget all the same."""
        from dataclasses import replace

        statistic = plan(BUILD[name](SQUARE)).statistic
        wider = {"exact": "covariance", "lipschitz": "slope", "kim-lim": "ratio", "kernel": "bandwidth"}[name]
        value = getattr(statistic, wider)
        budget = {"epsilon": statistic.epsilon, "delta": statistic.delta}
        more = {
            "covariance": lambda: replace(value, sigma=10 * value.sigma),
            "bandwidth": lambda: 0.999 * smallest_bandwidth(SQUARE, statistic.relation, **budget),
        }.get(wider, lambda: value * 1.001)()
        with pytest.raises(PrivacyCheckError, match=r"^epsilon: .* more than the budget"):
            replace(statistic, **{wider: more})

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


class TestDelta:
    @pytest.mark.parametrize("mechanism", [name for name in MECHANISMS if MECHANISMS[name].spends_delta])
    def test_needed(self, mechanism):
        with pytest.raises(
            InputError, match=rf"^delta: mechanism '{mechanism}' cannot promise delta = 0.*'tents' or 'lip"
        ):
            lgcp(mechanism, delta=0.0)

    @pytest.mark.parametrize("mechanism", ["tents", "lipschitz"])
    def test_not_wanted(self, mechanism):
        with pytest.raises(
            InputError, match=rf"^delta: mechanism '{mechanism}' is purely .*got 1e-06; (drop delta|leave delta= out)"
        ):
            lgcp(mechanism, delta=1e-6)

    def test_kernel_needs_it(self):
        with pytest.raises(InputError, match=r"^delta: the kernel synthesizer cannot promise delta = 0; give one far"):
            kernel(delta=0.0)

    @pytest.mark.parametrize("name", ["field", "exact", "kim-lim", "kernel"])
    def test_of_one_over_n(self, name):
        with pytest.raises(InputError, match=r"^delta: must be below 1/n .*take 1e-6"):
            plan(
                BUILD[name](SQUARE, **({} if name == "kim-lim" else {"delta": 1 / N})),
                n=N if name != "kim-lim" else 1000,
            )
        assert plan(BUILD["exact"](SQUARE, delta=1 / N, allow_large_delta=True)).guarantee.profile.at == 1 / N

    @pytest.mark.parametrize("mechanism", ["field", "posterior-draw"])
    def test_where_n_is_secret(self, mechanism):
        with pytest.raises(InputError, match=r"^delta: at most 1e-5 where the number of points is secret"):
            plan(lgcp(mechanism, delta=1e-4, relation=AddRemove()))


REFUSED = [
    ("kernel", SQUARE, AddRemove(), r"^relation: adding or removing a point .* cannot hide; use LGCPSynthesizer under"),
    ("kernel 3.6", SQUARE, AddRemove(3), r"^relation: adding or removing a point adds or removes its whole cluster"),
    ("lipschitz", SQUARE, AddRemove(), r"^relation: 'add-remove' has no guarantee from the slope"),
    ("lipschitz", RING, ReplaceOne(), r"^relation: 'replace-one' needs a convex window here.*take AlphaNeighbours"),
    ("kim-lim", SQUARE, ReplaceOne(), r"^relation: Kim & Lim's bounds are for alpha-neighbours with one point per per"),
    ("kim-lim", SQUARE, AddRemove(), r"^relation: Kim & Lim's bounds are for alpha-neighbours with one point per pers"),
    (
        "kim-lim",
        SQUARE,
        AlphaNeighbours(25.0, max_points_per_person=2),
        r"^relation: Kim & Lim's bounds are for alpha-",
    ),
]


class TestLargeDelta:
    def test_is_marked_and_does_not_verify(self, tmp_path):
        """Reproducing published experiments leaves a certificate that says it must not be released."""
        settings = {"delta": 1 / N, "allow_large_delta": True, "sampler": "proximal"}
        folder = plan(lgcp("posterior-draw", **settings)).release(points()).save(tmp_path / "out")
        cert = certificate.read(folder)
        assert (cert["releasable"], cert["warning"]) == (False, certificate.LARGE_DELTA)
        assert {check.name for check in verify(folder).checks if not check.holds} == {"randomness"}
        assert load_release(folder).warning == certificate.LARGE_DELTA
        assert failed(folder, cert | {"releasable": True, "warning": None}) == {"randomness"}


class TestLittleInfluence:
    """A release so weak that epsilon is 0 at the quoted delta is whole all the same."""

    @pytest.mark.parametrize("name", ["exact", "kernel"])
    def test_saves_verifies_and_loads(self, name, tmp_path):
        weak = {"bandwidth": 1e9} if name == "kernel" else {"sigma": 1e-5}
        release = plan(BUILD[name](SQUARE, **weak)).release(points())
        assert release.guarantee.epsilon() == 0
        folder = release.save(tmp_path / "out")
        assert verify(folder).holds
        assert load_release(folder).guarantee == release.guarantee


class TestRelationsRefused:
    @pytest.mark.parametrize(("name", "window", "relation", "message"), REFUSED, ids=str)
    def test_before_the_data_are_touched(self, name, window, relation, message):
        with pytest.raises(InputError, match=message):
            plan(BUILD[name](window, relation=relation, **({"delta": 1e-6} if name == "kim-lim" else {})), window)


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

    def test_infeasible_here(self):
        """Rough field, strong prior: exact draws would take longer than the universe is old."""
        rough = {"epsilon": 1000.0, "sigma": 4.0, "length_scale": 100.0}
        rough |= {"mesh": regular_triangulation(SQUARE, shape=(8, 8))}
        with pytest.raises(
            InputError, match=r"surrogate pattern \([a-z ]+\) .* to take (about \d+ s|many minutes), and 60 s.*Take a"
        ) as e:
            plan(lgcp("posterior-draw", sampler="exact", **rough))
        assert "longer length scale, a smaller sigma, or sampler='proximal'" in str(e.value)
        assert plan(lgcp("posterior-draw", **rough)).statistic.sampler == "proximal"

    def test_feasible_though_seldom(self):
        """Few of the first attempts at a steep Lipschitz field are gentle enough; trying on finds that some are."""
        steep = {"epsilon": 2.0, "alpha": 100.0, "sigma": 2.5, "sampler": "exact"}
        assert plan(lgcp("lipschitz", **steep)).statistic.sampler == "exact"

    def test_settled_from_public_numbers_alone(self):
        """The plan of a release is the one made without the pattern, whatever the pattern."""
        synthesizer = lgcp("posterior-draw")
        settled = plan(synthesizer).statistic.parameters()
        for pattern in (points(), points(seed=2, spot=True)):
            assert synthesizer.release(pattern).statistic.plan.parameters() == settled


class Spoilt(Chance):
    """Chains that far apart, with so many divergences."""

    def __init__(self, apart, divergences, *settings):
        super().__init__(*settings)
        self.apart, self.divergences = apart, divergences

    def sample(self, **settings):
        chains = super().sample(**settings)
        return replace(chains, z=chains.z + self.apart * np.arange(4)[:, None, None], divergences=self.divergences)


class TestBlocked:
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
        draw = LGCPSynthesizer(5.0, 25.0, delta=1e-6, mechanism="posterior-draw", sampler="proximal")
        settled = draw.plan(streets, n=len(pattern))
        release = settled.release(pattern, 1)
        mesh, values = settled.statistic.mesh, release.statistic.values
        assert release.intensity.total == pytest.approx(mesh.measure @ np.exp(values), rel=1e-9)
        assert release.intensity.total > 1.01 * LogLinear(mesh, values).total

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
        assert any("carries no spatial information" in sentence for sentence in settled.guarantee.assumptions)

    def test_needs_a_regular_mesh_before_the_data_are_touched(self):
        mesh = regular_triangulation(SQUARE, shape=(5, 5))
        free = Mesh.from_arrays(mesh.vertices, mesh.elements, SQUARE)
        with pytest.raises(InputError, match=r"^mesh: Kim & Lim's scheme needs a regular one"):
            plan(lgcp("kim-lim-3.8", delta=1e-3, mesh=free))

    def test_is_labelled_as_an_average_over_the_model(self):
        guarantee = plan(lgcp("kim-lim-3.8", delta=1e-3, epsilon=200.0)).guarantee
        assert "model-averaged" in guarantee.assumptions[0]
        assert "model-averaged" in str(guarantee)
        assert "model-averaged" not in str(plan(lgcp("posterior-draw")).guarantee)

    def test_ratio_is_the_largest_of_the_bound(self):
        mesh = regular_triangulation(SQUARE, shape=(5, 5))
        for bound, corollary in (("3.8", False), ("3.9", True)):
            settled = plan(lgcp(f"kim-lim-{bound}", epsilon=200.0, delta=1e-3)).statistic
            assert settled.ratio == kim_lim_ratio(
                mesh, AlphaNeighbours(25.0), epsilon=200.0, delta=1e-3, corollary=corollary
            )
            assert settled.covariance.sigma == pytest.approx(settled.ratio * 400.0)


class TestKernel:
    def test_bandwidth_rule_or_the_smallest_admissible(self):
        rule = rules.planar_rules.bandwidth(SQUARE, N)
        assert plan(kernel(epsilon=100.0)).statistic.bandwidth == rule
        tight = plan(kernel(epsilon=1.0)).statistic.bandwidth
        assert tight > rule
        assert plan(kernel(epsilon=1.0)).guarantee.epsilon() == pytest.approx(1.0, rel=1e-6)

    @pytest.mark.parametrize("bound", ["superposition", "kim-lim-3.6"])
    def test_a_bandwidth_below_the_smallest(self, bound):
        with pytest.raises(
            PrivacyCheckError, match=r"^bandwidth: 1 metre does not satisfy .* for 3 patterns; the smallest"
        ) as e:
            plan(kernel(bandwidth=1.0, bound=bound), patterns=3)
        smallest = float(re.search(r"admissible is ([\d.]+\d)", str(e.value)).group(1))
        assert plan(kernel(bandwidth=smallest * 1.001, bound=bound), patterns=3).statistic.bandwidth == smallest * 1.001
        with pytest.raises(PrivacyCheckError):
            plan(kernel(bandwidth=smallest * 0.999, bound=bound), patterns=3)

    def test_more_patterns_cost_more(self):
        one, five = (plan(kernel(epsilon=1.0), patterns=m).statistic.bandwidth for m in (1, 5))
        assert five > 1.2 * one
        assert kernel(epsilon=1.0).check(SQUARE, n=N, patterns=5).epsilon() == pytest.approx(1.0, rel=1e-6)

    @pytest.mark.parametrize("patterns", [0, -1, 1.0, True, "two"])
    def test_number_of_patterns(self, patterns):
        with pytest.raises(InputError, match=rf"^patterns: needs a whole number of at least 1, got {patterns!r}\."):
            plan(kernel(), patterns=patterns)

    def test_patterns_are_what_was_paid_for_and_nothing_else(self, tmp_path):
        release = kernel().release(points(), patterns=3)
        assert len(release.patterns) == 3
        assert len({len(pattern) for pattern in release.patterns} | {tuple(p.xy[0]) for p in release.patterns}) > 3
        for name in ("intensity", "sample", "posterior", "estimator"):
            assert not hasattr(release, name)
        release.patterns.clear()
        assert len(release.patterns) == 3
        folder = release.save(tmp_path / "out")
        names = {"certificate.json", "domain.geojson", *(f"synthetic_00{k}.geojson" for k in range(3))}
        assert {path.name for path in folder.iterdir()} == names
        assert len(load_release(folder).patterns) == 3

    def test_counts_are_poisson_with_the_number_of_points(self):
        low, high = poisson(N).ppf([LOW, HIGH])
        release = kernel().release(points(), 1, patterns=40)
        counts = np.array([len(pattern) for pattern in release.patterns])
        assert low <= counts.min() < N < counts.max() <= high  # forty on one side: 0.53^40 is 1e-11
        low, high = poisson(40 * N).ppf([LOW, HIGH])
        assert low <= counts.sum() <= high

    def test_children_lie_around_the_points_in_random_order(self):
        pair = PointPattern(np.repeat([[200.0, 200.0], [800.0, 800.0]], N // 2, axis=0), SQUARE)
        xy = kernel(epsilon=1000.0).release(pair, 1).patterns[0].xy
        left = xy[:, 0] < 500
        assert np.abs(xy - np.where(left[:, None], 200, 800)).max() < 7 * rules.planar_rules.bandwidth(SQUARE, N)
        # Sorted by parent there is one change of side; in random order about 150, standard deviation 9.
        assert np.count_nonzero(np.diff(left)) > 90

    def test_refused_settings(self):
        for arguments, message in (
            ({"bandwidth": 0}, r"^bandwidth: must be a positive finite number, got 0\."),
            ({"bound": "tight"}, r"^bound: expected one of 'superposition', 'kim-lim-3\.6', got 'tight'\."),
            ({"epsilon": -1}, r"^epsilon: must be a positive finite number, got -1\."),
            ({"delta": 2}, r"^delta: must lie in \[0, 1\), got 2"),
            ({"relation": "any"}, r"^relation: expected a relation"),
        ):
            with pytest.raises(InputError, match=message):
                kernel(**arguments)
        for n in (None, 0, 1.5):
            with pytest.raises(InputError, match=r"^n: the public number of points is needed"):
                kernel().plan(SQUARE, n=n)


FORGED = [
    ("field", "parameters/covariance/sigma", lambda v: 1.01 * v),
    ("field", "parameters/covariance/length_scale", lambda v: 0.9 * v),
    ("field", "parameters/covariance/power", lambda v: 1.5),
    ("field", "parameters/scale", lambda v: 2 * v),
    ("field", "parameters/basis", lambda v: "tents"),
    ("field", "parameters/delta", lambda v: 1e-7),
    ("field", "guarantee/profile/mu", lambda v: 0.9 * v),
    ("exact", "parameters/covariance/sigma", lambda v: 1.01 * v),
    ("exact", "parameters/covariance/length_scale", lambda v: 0.9 * v),
    ("exact", "parameters/sampler", lambda v: "nuts"),
    ("exact", "parameters/sampler", lambda v: "proximal"),
    ("exact", "parameters/delta", lambda v: 1e-7),
    ("exact", "parameters/epsilon", lambda v: 0.1),
    ("exact", "parameters/intercept_sd", lambda v: "wide"),
    ("exact", "guarantee/profile/mu", lambda v: 0.9 * v),
    ("exact", "guarantee/profile/epsilon", lambda v: 0.9 * v),
    ("exact", "guarantee/by_distance", lambda v: []),
    ("exact", "guarantee/by_distance", lambda v: [[d, e / 2] for d, e in v]),
    ("exact", "guarantee/theorem", lambda v: "Theorem 2 (tents)"),
    ("exact", "mechanism", lambda v: "lgcp-lipschitz"),
    ("exact", "noise", lambda v: v.replace("exact", "other")),
    ("secret", "parameters/intercept_sd", lambda v: 1.5 * v),
    ("secret", "parameters/intercept_sd", lambda v: None),
    ("proximal", "parameters/sampler", lambda v: "exact"),
    ("lipschitz", "parameters/slope", lambda v: 1.01 * v),
    ("lipschitz", "parameters/slope", lambda v: 0.5 * v),
    ("lipschitz", "parameters/sampler", lambda v: "nuts"),
    ("lipschitz", "parameters/sampler", lambda v: "proximal"),
    ("kim-lim", "parameters/ratio", lambda v: 1.01 * v),
    ("kim-lim", "parameters/sampler", lambda v: "exact"),
    ("kim-lim", "parameters/epsilon", lambda v: 2 * v),
    ("kim-lim", "mechanism", lambda v: "lgcp-kim-lim-3.9"),
    ("kim-lim", "guarantee/assumptions", lambda v: v[1:]),
    ("kernel", "parameters/bandwidth", lambda v: 0.99 * v),
    ("kernel", "parameters/bound", lambda v: "kim-lim-3.6"),
    ("kernel", "parameters/patterns", lambda v: v + 1),
    ("kernel", "parameters/delta", lambda v: 1e-7),
    ("kernel", "guarantee/profile/ratio", lambda v: 0.9 * v),
    ("kernel", "guarantee/profile/rate", lambda v: 0.5 * v),
    ("kernel", "noise", lambda v: "none"),
    ("kernel 3.6", "parameters/n", lambda v: 4 * v),
    ("kernel 3.6", "parameters/bound", lambda v: "superposition"),
    # None of these changes the bound; they would make the certificate describe another release.
    ("exact", "parameters/estimator", lambda v: {"kind": "projection", "postprocess": "clip"}),
    ("exact", "parameters/expected_n", lambda v: 100.0),
    ("exact", "parameters/engine", lambda v: "pymc"),
    ("exact", "parameters/intercept_sd", lambda v: 1e9),
    ("exact", "parameters", lambda v: v | {"slope": 0.1}),
    ("kim-lim", "parameters/covariance/sigma", lambda v: 1.5 * v),
    ("kim-lim", "parameters/covariance/power", lambda v: 1.0),
    ("exact", "parameters/mesh", lambda v: v | {"shape": [900, 900]}),
]


class TestForgeries:
    """Claims that do not follow, with the hash made again by the forger."""

    @pytest.mark.parametrize(("name", "path", "change"), FORGED, ids=lambda v: v if isinstance(v, str) else "")
    def test_a_field(self, name, path, change, tmp_path):
        folder = copy_of(name, tmp_path)
        cert = json.loads((folder / "certificate.json").read_text())
        *keys, last = path.split("/")
        spot = cert
        for key in keys:
            spot = spot[key]
        spot[last] = change(spot[last])
        assert failed(folder, cert) & {"bound", "content", "randomness"}

    def test_the_statistic_of_another_mesh(self, tmp_path):
        folder = copy_of("exact", tmp_path)
        statistic = json.loads((folder / "statistic.json").read_text())
        statistic["lattice"].append(0)
        (folder / "statistic.json").write_text(plain_text(statistic))
        assert failed(folder, with_files(folder, "statistic.json")) == {"statistic"}

    @pytest.mark.parametrize("name", ["exact", "lipschitz", "field"])
    @pytest.mark.parametrize("file", ["raw_points.csv", "posterior.nc", "level_000_statistic.json", "offset.geojson"])
    def test_files_that_are_no_part_of_such_a_release(self, name, file, tmp_path):
        """One draw was paid for; a folder that lists more of the run must not pass."""
        if (name, file) == ("field", "posterior.nc"):
            return
        folder = copy_of(name, tmp_path)
        (folder / file).write_text("secret")
        assert failed(folder, with_files(folder, file)) == {"files"}

    @pytest.mark.parametrize("name", ["offset.geojson", "posterior.nc"])
    def test_files_it_is_opened_from_must_be_listed(self, name, tmp_path):
        offset = Offset.from_grid([[1.0, 2.0], [3.0, 0.5]], (0, 0, 1000, 1000))
        folder = plan(lgcp("tents", offset=offset)).release(points()).save(tmp_path / "out")
        cert = json.loads((folder / "certificate.json").read_text())
        assert verify(folder).holds
        del cert["files"][name]
        assert failed(folder, cert) == {"files"}

    def test_another_offset_than_the_one_fitted_with(self, tmp_path):
        offset = Offset.from_grid([[1.0, 2.0], [3.0, 0.5]], (0, 0, 1000, 1000))
        folder = plan(lgcp("tents", offset=offset)).release(points()).save(tmp_path / "out")
        other = Offset.from_grid([[9.0, 2.0], [3.0, 0.5]], (0, 0, 1000, 1000))
        (folder / "offset.geojson").write_text(plain_text(other.to_geojson()))
        assert failed(folder, with_files(folder, "offset.geojson")) == {"files"}

    @pytest.mark.parametrize(
        ("path", "value"),
        [("parameters/epsilon", 10**400), ("guarantee/relation/alpha", 10**400), ("guarantee/profile/mu", 1e200)],
    )
    def test_absurd_numbers_are_refused_in_words(self, path, value, tmp_path):
        folder = copy_of("exact", tmp_path)
        cert = json.loads((folder / "certificate.json").read_text())
        *keys, last = path.split("/")
        spot = functools.reduce(dict.__getitem__, keys, cert)
        spot[last] = value
        with pytest.raises(InputError, match=r"^certificate: "):
            failed(folder, cert)

    def test_more_than_the_statistic_in_its_file(self, tmp_path):
        folder = copy_of("exact", tmp_path)
        statistic = json.loads((folder / "statistic.json").read_text()) | {"attempts": 17}
        (folder / "statistic.json").write_text(plain_text(statistic))
        assert failed(folder, with_files(folder, "statistic.json")) == {"statistic"}

    def test_a_pattern_too_many_is_seen(self, tmp_path):
        """A kernel release that paid for one pattern and holds two has spent more than it says."""
        folder = copy_of("kernel", tmp_path)
        shutil.copy(folder / "synthetic_000.geojson", folder / "synthetic_001.geojson")
        assert failed(folder, with_files(folder, "synthetic_001.geojson")) == {"statistic"}


@functools.cache
def saved(name):
    """A private release on disk, never touched."""
    build, options = BUILD.get(name, BUILD["exact"]), {"relation": AddRemove()} if name == "secret" else {}
    release = plan(build(SQUARE, **options)).release(points())
    return release.save(Path(tempfile.mkdtemp(dir=scratch())) / "out")


@functools.cache
def scratch():
    folder = tempfile.mkdtemp(prefix="dpppsynth-")
    atexit.register(shutil.rmtree, folder)
    return folder


def copy_of(name, tmp_path):
    return shutil.copytree(saved(name), tmp_path / "copy")


def with_files(folder, *names):
    """The certificate with these files' hashes made again."""
    cert = json.loads((folder / "certificate.json").read_text())
    cert["files"] |= {name: certificate.file_hash(folder / name) for name in names}
    return cert


def failed(folder, cert):
    """Names of the checks that fail once the hash has been made again."""
    cert["content_hash"] = certificate.content_hash(cert)
    (folder / "certificate.json").write_text(json.dumps(cert))
    return {check.name for check in verify(folder).checks if not check.holds}

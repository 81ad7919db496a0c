"""Baselines for bounded error (baselines), against quadrature, brute force and published values.

Sampled values pass a test whose false-alarm rate is 1e-8 (Dvoretzky-Kiefer-Wolfowitz).
"""

import itertools
import math

import baselines
import numpy as np
import pytest
from baselines import BoundedOutput, GeneralisedGaussian, Staircase, UniformNoise, optimal_gamma
from oracles import hockey_stick
from scipy.special import ndtr

from dpppsynth.core.errors import InputError
from dpppsynth.grids import even_cells, pooled_levels, uniform_grid
from dpppsynth.privacy.profiles import delta_gaussian

DRAWS = 20_000
ALARM = math.sqrt(math.log(2 / 1e-8) / (2 * DRAWS))
WIDTH = 1 / 400
MIDPOINTS = np.arange(-40, 40, WIDTH) + WIDTH / 2
WILD = [None, math.nan, math.inf, -math.inf, True, "1", -1.0, 0, 10**400, 1e308, 1e-320, [1.0], {}, object(), 1j]


def divergence(law, epsilon, shift):
    return hockey_stick(law.pdf(MIDPOINTS), law.pdf(MIDPOINTS - shift), epsilon) * WIDTH


def drawn_from(sample, tail):
    """Whether absolute values have these tails, and signs are fair."""
    sizes = np.sort(np.abs(sample))
    gap = np.abs(1 - tail(sizes) - np.arange(1, len(sizes) + 1) / len(sizes)).max()
    return gap < ALARM + 1 / len(sizes) and abs((sample > 0).mean() - 0.5) < ALARM


def refused(call, good, names):
    """Every wild value of these arguments; of a pair of budgets one may be tiny."""
    for name, bad in itertools.product(names, WILD):
        if "delta" not in good or name not in ("epsilon", "delta") or bad != 1e-320:
            with pytest.raises(InputError):
                call(**good | {name: bad})


class Silent(np.random.Generator):
    """Generator whose Laplace noise is zero, and which keeps the scales asked for."""

    def __init__(self):
        super().__init__(np.random.PCG64(1))
        self.scales = []

    def laplace(self, loc=0.0, scale=1.0, size=None):
        self.scales.append(scale)
        return 0.0 if size is None else np.zeros(size)


LAWS = [
    GeneralisedGaussian(1, 1.0), GeneralisedGaussian(1.5, 2.0, 3.0), GeneralisedGaussian(2, 2.0),
    GeneralisedGaussian(3, 1.5, 1.0), GeneralisedGaussian(100, 2.0), Staircase(0.7, 1.0, 0.25),
    Staircase(2.0, 2.0, 0.125), UniformNoise(3.0),
]  # fmt: skip


@pytest.mark.parametrize("law", LAWS, ids=repr)
class TestLaws:
    def test_moments_and_tails_are_those_of_the_density(self, law):
        mass = law.pdf(MIDPOINTS) * WIDTH
        assert mass.sum() == pytest.approx(1, abs=1e-4)
        assert (mass @ np.abs(MIDPOINTS)) == pytest.approx(law.mean_absolute, rel=1e-4)
        assert (mass @ MIDPOINTS**2) == pytest.approx(law.variance, rel=1e-4)
        for t in (0, 0.25, 0.5, 1, 1.25, 2.5, 4):
            assert mass[np.abs(MIDPOINTS) > t].sum() == pytest.approx(float(law.tail(t)), abs=1e-4)
        assert law.tail([-1, math.inf]).tolist() == [1, 0]
        assert np.allclose(law.pdf(MIDPOINTS), law.pdf(-MIDPOINTS), rtol=1e-12)

    def test_samples_follow_it(self, law):
        assert drawn_from(law.sample(DRAWS, 5), law.tail)
        assert law.sample((3, 2), 1).shape == (3, 2)
        assert np.array_equal(law.sample(4, 7), law.sample(4, 7))

    def test_bad_input_is_refused(self, law):
        for bad in (None, "x", [[1], [2, 3]], math.nan, [1j]):
            for method in (law.pdf, law.tail):
                with pytest.raises(InputError):
                    method(bad)
        for size in (-1, "x", (1, -2), 10**30, 1.5, object()):
            with pytest.raises(InputError, match="size"):
                law.sample(size)
        with pytest.raises(InputError, match="rng"):
            law.sample(2, "seed")


class TestGeneralisedGaussian:
    @pytest.mark.parametrize(
        ("epsilon", "shift", "bound", "delta"),
        [
            (1, 1, 10, 3.900670806e-5), (1, 1, 5, 5.828115478e-3), (1, 1, 1, 0.5), (1, 1, 0.75, 0.7096144758),
            (1, 1, 0.4, 1), (0.1, 1, 10, 3.060351228e-2), (0.5, 2, 10, 2.900610870e-2), (2, 1, 3, 7.938119988e-3),
        ],
    )  # fmt: skip
    def test_power_one_is_truncated_laplace(self, epsilon, shift, bound, delta):
        law = GeneralisedGaussian(1, shift / epsilon, float(bound))
        assert law.delta(epsilon, shift) == pytest.approx(delta, rel=1e-8)

    def test_power_one_has_the_profiles_of_laplace_noise(self):
        bounded, free = GeneralisedGaussian(1, 1.0, 5.0), GeneralisedGaussian(1, 1.0)
        wanted = [0.3961385, 0.3157954, 0.2249001, 0.1220889, 0.0058281]
        assert [bounded.delta(e) for e in (0, 0.25, 0.5, 0.75, 1)] == pytest.approx(wanted, abs=1e-7)
        assert bounded.delta(30) == pytest.approx(0.005828115478, rel=1e-8)  # the floor never vanishes
        assert [free.delta(e) for e in (0, 0.25, 0.5)] == pytest.approx([0.3934693, 0.3127107, 0.2211992], abs=1e-7)
        assert free.delta(1) == 0
        assert [float(bounded.pdf(z)) for z in (0, 5, 5.0001)] == pytest.approx([0.50339183, 0.00339183, 0], abs=1e-8)
        assert bounded.variance == pytest.approx(1.7625720783, abs=1e-10)

    def test_power_two_is_the_gaussian(self):
        assert GeneralisedGaussian(2, 2 * math.sqrt(2)).delta(0.5) == pytest.approx(0.0524403, abs=5e-8)
        for sigma, epsilon, shift in itertools.product((0.3, 2.0, 40.0), (0.01, 1.0, 5.0), (0.5, 3.0)):
            found = GeneralisedGaussian(2, math.sqrt(2) * sigma).delta(epsilon, shift)
            assert found == pytest.approx(delta_gaussian(epsilon, shift / sigma), rel=1e-7, abs=1e-15)

    @pytest.mark.parametrize("power", [1.0, 1.2, 2.0, 3.0, 6.0])
    @pytest.mark.parametrize("bound", [0.4, 0.5, 0.75, 1.0, 2.5, math.inf])
    def test_delta_is_the_hockey_stick_divergence(self, power, bound):
        law = GeneralisedGaussian(power, 1.25, bound)
        for epsilon, shift in itertools.product((0.0, 0.3, 1.0, 4.0), (0.5, 1.0)):
            assert law.delta(epsilon, shift) == pytest.approx(divergence(law, epsilon, shift), abs=1e-4)
        assert law.delta(1.0, 6.0) >= law.delta(1.0, 1.0)
        if bound < 0.6:
            assert law.delta(1.0, 2 * bound) == 1

    def test_calibration_is_the_smallest_scale(self):
        scale = baselines.generalised_gaussian_scale
        assert scale(1, 1e-5, 2) == pytest.approx(5.2759099, abs=1e-7)
        assert scale(1, 1e-5, 3) == pytest.approx(10.529475, abs=1e-6)
        for epsilon, delta, power in [(1, 1e-5, 2.0), (0.1, 1e-3, 1.5), (8, 0.4, 10.0), (1e-4, 1e-9, 3.0)]:
            found = scale(epsilon, delta, power, 7.0)
            assert GeneralisedGaussian(power, found).delta(epsilon, 7.0) <= delta * (1 + 1e-9)
            assert GeneralisedGaussian(power, found * (1 - 1e-6)).delta(epsilon, 7.0) > delta
            if power == 2:
                sigma = baselines.analytic_gaussian_scale(epsilon, delta, 7.0)
                assert found == pytest.approx(math.sqrt(2) * sigma, rel=1e-9)

    def test_flat_laws_and_extremes_keep_their_digits(self):
        assert GeneralisedGaussian(1, 1e6, 10.0).variance == pytest.approx(33.33325, abs=1e-8)
        for power in (1.0, 2.0, 100.0):
            law = GeneralisedGaussian(power, 1e30, 10.0)
            assert law.variance == pytest.approx(100 / 3)
            assert law.delta(1.0) == pytest.approx(0.05)
            assert drawn_from(law.sample(DRAWS, 2), UniformNoise(10.0).tail)
        assert float(GeneralisedGaussian(2, 1.0).cdf(-20.0)) == pytest.approx(2.6979313e-176, rel=1e-6)
        assert GeneralisedGaussian(1.0001, 5.0).delta(3.0) == 0
        assert GeneralisedGaussian(1.0001, 5.0).delta(0.1) == pytest.approx(
            GeneralisedGaussian(1, 5.0).delta(0.1), 1e-2
        )

    def test_bad_input_is_refused(self):
        good = {"epsilon": 1.0, "delta": 1e-5, "power": 2.0, "sensitivity": 1.0}
        refused(baselines.generalised_gaussian_scale, good, good)
        with pytest.raises(InputError, match="purely private"):
            baselines.generalised_gaussian_scale(1.0, 1e-5, 1.0)
        for bad in WILD:
            with pytest.raises(InputError):
                GeneralisedGaussian(2.0, bad)
            with pytest.raises(InputError):
                GeneralisedGaussian(2.0, 1.0).delta(1.0, bad)
            if bad != math.inf:
                with pytest.raises(InputError):
                    GeneralisedGaussian(2.0, 1.0, bad)
        for power in (0.5, 101, 0):
            with pytest.raises(InputError, match="power"):
                GeneralisedGaussian(power, 1.0)


class TestGaussian:
    def test_values(self):
        assert baselines.analytic_gaussian_scale(1, 1e-5) ** 2 == pytest.approx(13.9176, abs=5e-5)
        assert baselines.analytic_gaussian_scale(0.1, 1e-5) ** 2 == pytest.approx(945.536, abs=5e-4)
        assert baselines.probabilistic_gaussian_scale(1, 1e-5) == pytest.approx(4.5276070, abs=5e-8)

    def test_probabilistic_calibration_holds_and_costs_more(self):
        for epsilon, delta, shift in itertools.product((0.1, 1.0, 4.0), (1e-9, 1e-2), (1.0, 3.0)):
            sigma = baselines.probabilistic_gaussian_scale(epsilon, delta, shift)
            assert sigma > baselines.analytic_gaussian_scale(epsilon, delta, shift)
            # The loss of N(0, sigma) against N(shift, sigma) exceeds epsilon with probability delta / 2 on one side.
            assert ndtr(shift / (2 * sigma) - epsilon * sigma / shift) == pytest.approx(delta / 2, rel=1e-6)

    @pytest.mark.parametrize("scale", [baselines.analytic_gaussian_scale, baselines.probabilistic_gaussian_scale])
    def test_bad_input_is_refused(self, scale):
        good = {"epsilon": 1.0, "delta": 1e-5, "sensitivity": 1.0}
        refused(scale, good, good)
        with pytest.raises(InputError, match="delta"):
            scale(1.0, 1.0)


class TestStaircase:
    @pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
    def test_one_answer_is_purely_private_and_not_more(self, epsilon):
        law = Staircase(epsilon, 1.0, 0.25)
        heights = law.pdf(MIDPOINTS)
        ratios = [np.abs(np.log(heights[s:] / heights[:-s])).max() for s in (1, 37, 100, 250, 400, 500)]
        # Even the shortest shift meets an edge: shifts of several answers do not share one epsilon.
        assert ratios[:5] == pytest.approx([epsilon] * 5, rel=1e-12)
        assert ratios[5] > 1.9 * epsilon

    @pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 5.0, 40.0])
    def test_gamma_is_optimal(self, epsilon):
        gamma, b, q = optimal_gamma(epsilon), math.exp(-epsilon), -math.expm1(-epsilon)
        best = Staircase(epsilon, 2.0, gamma).variance
        assert best == pytest.approx(4 * ((b * (1 + b) / 2) ** (2 / 3) + b) / q**2, rel=1e-6)
        assert best < Staircase(epsilon, 2.0, gamma * 0.9).variance
        assert best < Staircase(epsilon, 2.0, min(1, gamma * 1.1)).variance
        if epsilon > 0.5:
            assert best < 0.98 * 2 * (2 / epsilon) ** 2
        absolute = Staircase(epsilon, 2.0, optimal_gamma(epsilon, error="absolute"))
        assert absolute.mean_absolute == pytest.approx(math.exp(-epsilon / 2) * 2 / q, rel=1e-9)

    def test_bad_input_is_refused(self):
        good = {"epsilon": 1.0, "sensitivity": 1.0, "gamma": 0.5}
        refused(Staircase, good, ("epsilon", "sensitivity"))
        for bad in (None, math.nan, True, "x", -0.1, math.inf):
            with pytest.raises(InputError, match="gamma"):
                Staircase(1.0, 1.0, bad)
        for call in (lambda: Staircase(1e-320, 1.0, 0.5), lambda: optimal_gamma(1e-9), lambda: optimal_gamma(600)):
            with pytest.raises(InputError, match="epsilon"):
                call()
        with pytest.raises(InputError, match="gamma"):
            Staircase(1.0, 1.0, 1.01)
        with pytest.raises(InputError, match="error"):
            optimal_gamma(1.0, error="cubic")


class TestBoundedOutput:
    @pytest.mark.parametrize("power", [1.0, 1.5, 2.0, 4.0])
    @pytest.mark.parametrize(("epsilon", "shift"), [(0.5, 1.0), (1.0, 4.0), (3.0, 10.0)])
    def test_the_scale_is_enough(self, power, epsilon, shift):
        scale = baselines.bounded_output_scale(epsilon, low=-4.0, high=6.0, power=power, sensitivity=shift)
        assert self.largest_loss(BoundedOutput(power, scale, -4.0, 6.0), shift) <= epsilon
        assert scale**power == pytest.approx(2 / epsilon * (10**power - (10 - shift) ** power))

    def test_without_paying_for_the_normaliser_it_is_not(self):
        assert self.largest_loss(BoundedOutput(1.0, 1.0, -4.0, 6.0), 1.0) > 1.3

    @staticmethod
    def largest_loss(law, shift):
        y, centres = np.linspace(-4, 6, 101), np.linspace(-4, 6, 51)
        logs = np.log([law.pdf(y, centre) for centre in centres])
        near = np.abs(centres[:, None] - centres) <= shift + 1e-9
        return np.abs(logs[:, None] - logs)[near].max()

    @pytest.mark.parametrize(("power", "scale"), [(1.0, 0.5), (2.0, 3.0), (3.0, 50.0), (100.0, 1e9)])
    def test_samples_follow_the_density(self, power, scale):
        law, y = BoundedOutput(power, scale, -4.0, 6.0), np.linspace(-4, 6, 20_001)
        for answer in (-4.0, 1.0, 6.0):
            density = law.pdf(y, answer)
            cdf = np.append(0, np.cumsum((density[1:] + density[:-1]) / 2) * (y[1] - y[0]))
            assert cdf[-1] == pytest.approx(1, abs=1e-6)
            sample = np.sort(law.sample(np.full(DRAWS, answer), 3))
            assert -4 <= sample[0] <= sample[-1] <= 6
            assert np.abs(np.interp(sample, y, cdf) - np.arange(DRAWS) / DRAWS).max() < ALARM + 2 / DRAWS
        assert law.pdf([-4.1, 6.1], 0.0).tolist() == [0, 0]
        assert law.sample([], 1).shape == (0,)

    def test_bad_input_is_refused(self):
        good = {"epsilon": 1.0, "low": 0.0, "high": 10.0, "power": 2.0, "sensitivity": 1.0}
        refused(baselines.bounded_output_scale, good, ("epsilon", "power", "sensitivity"))
        for low, high in [(1, 1), (2, 1), (0, math.inf), (math.nan, 1), (None, 1), (0, 1e308), (-(10**400), 0)]:
            with pytest.raises(InputError):
                BoundedOutput(2.0, 1.0, low, high)
        with pytest.raises(InputError, match="sensitivity"):
            baselines.bounded_output_scale(**good | {"sensitivity": 10.5})
        law = BoundedOutput(2.0, 1.0, 0.0, 10.0)
        for bad in ([10.5], [[1.0]], [math.nan], None, "x"):
            with pytest.raises(InputError):
                law.sample(bad)
        for bad in (11.0, [], [1.0, 2.0], None, math.nan):
            with pytest.raises(InputError, match="answer"):
                law.pdf([1.0], bad)


class TestAnswers:
    TRUTH = np.zeros(DRAWS)

    @pytest.mark.parametrize(
        ("released", "variance", "delta"),
        [
            (baselines.laplace_answers(TRUTH, epsilon=0.1, rng=1), 200, 0),
            (baselines.laplace_answers(TRUTH, epsilon=0.5, sensitivity=2.0, rng=1), 32, 0),
            (baselines.gaussian_answers(TRUTH, epsilon=1, delta=1e-5, rng=1), 13.9176, 1e-5),
            (
                baselines.gaussian_answers(TRUTH, epsilon=1, delta=1e-5, calibration="probabilistic", rng=1),
                4.527607**2, 1e-5,
            ),
            (baselines.generalised_gaussian_answers(TRUTH, epsilon=1, delta=1e-5, power=2, rng=1), 13.9176, 1e-5),
            (baselines.staircase_answers(TRUTH, epsilon=1, sensitivity=3.0, rng=1), 9 * 1.918104, 0),
            (baselines.uniform_answers(TRUTH, max_error=10, rng=1), 100 / 3, 0.05),
            (baselines.planar_laplace(np.zeros((DRAWS, 2)), epsilon=0.1, rng=1), 300, 0),
        ],
        ids=repr,
    )  # fmt: skip
    def test_noise_has_the_variance_and_tails_of_its_law(self, released, variance, delta):
        assert released.law.variance == pytest.approx(variance, rel=1e-5)
        assert released.delta == delta
        sizes = np.sort(np.abs(released.answers) if released.answers.ndim == 1 else np.hypot(*released.answers.T))
        assert np.abs(1 - released.law.tail(sizes) - np.arange(1, DRAWS + 1) / DRAWS).max() < ALARM + 1 / DRAWS
        assert released.seeded

    def test_accuracy_curves(self):
        one, plane = baselines.laplace_answers([], epsilon=1.0), baselines.planar_laplace([], epsilon=1.0)
        thresholds = [1, 2, 3, 5]
        wanted = [0.3678794, 0.1353353, 0.0497871, 0.0067379]
        assert np.asarray(one.law.tail(thresholds)) == pytest.approx(wanted, abs=1e-7)
        wanted = [0.7357589, 0.4060058, 0.1991483, 0.0404277]
        assert np.asarray(plane.law.tail(thresholds)) == pytest.approx(wanted, abs=1e-7)
        assert one.answers.shape == (0,)
        assert plane.answers.shape == (0, 2)

    def test_noise_is_added_to_the_answers(self):
        for call in (
            lambda x: baselines.laplace_answers(x, epsilon=500.0, rng=1),
            lambda x: baselines.uniform_answers(x, max_error=1.0, rng=1),
            lambda x: baselines.staircase_answers(x, epsilon=9.0, rng=1),
        ):
            assert np.allclose(call([5e3, -7.0]).answers - call([0, 0]).answers, [5e3, -7.0])
        moved = baselines.planar_laplace([[5e3, 1.0]], epsilon=1.0, rng=1).answers
        assert np.allclose(moved - baselines.planar_laplace([[0, 0]], epsilon=1.0, rng=1).answers, [[5e3, 1.0]])

    def test_uniform_noise_hides_what_its_delta_says(self):
        for bound, shift in itertools.product((0.5, 2.0, 10.0), (0.5, 2.0)):
            law = UniformNoise(bound)
            for epsilon in (0.0, 1.0, 20.0):
                assert law.delta(shift) == pytest.approx(divergence(law, epsilon, shift), abs=1e-9)
        with pytest.raises(InputError, match="max_error"):
            baselines.uniform_answers([1.0], max_error=0.5)

    @pytest.mark.parametrize(
        ("call", "good"),
        [
            (baselines.laplace_answers, {"epsilon": 1.0, "sensitivity": 1.0}),
            (
                baselines.gaussian_answers,
                {"epsilon": 1.0, "delta": 1e-5, "sensitivity": 1.0, "calibration": "analytic"},
            ),
            (baselines.staircase_answers, {"epsilon": 1.0, "sensitivity": 1.0}),
            (baselines.uniform_answers, {"max_error": 5.0, "sensitivity": 1.0}),
            (
                baselines.generalised_gaussian_answers,
                {"epsilon": 1.0, "delta": 1e-5, "power": 2.0, "sensitivity": 1.0},
            ),
            (baselines.planar_laplace, {"epsilon": 1.0}),
        ],
    )
    def test_bad_input_is_refused_and_answers_stay_secret(self, call, good):
        truth = [[1.0, 2.0]] if call is baselines.planar_laplace else [1.0]
        refused(lambda **settings: call(truth, **settings), good, good)
        for bad in ([math.nan], [[[1.0]]], None, ["x"], [1234.5, math.inf], [[1, 2], [3]], 1234.5, object()):
            with pytest.raises(InputError) as error:
                call(bad, **good)
            assert "1234" not in str(error.value)
        secret = [[1234.5, 1.0]] if call is baselines.planar_laplace else [1234.5]
        assert "1234" not in repr(call(secret, **good))


class TestIntervals:
    VALUES = np.random.default_rng(3).beta(2, 5, 4000)

    def test_without_noise_every_interval_is_the_shortest_with_more_than_its_mass(self):
        silent = Silent()
        result = baselines.blum_intervals(self.VALUES, epsilon=2.0, accuracy=0.6, bits=7, rng=silent)
        cells, edges = np.floor(self.VALUES * 128), np.rint(result.edges * 128)
        for low, high in itertools.pairwise(edges[:-1]):
            assert ((cells >= low) & (cells < high)).mean() > 0.1
            assert ((cells >= low) & (cells < high - 1)).mean() <= 0.1
        assert edges[0] == 0
        assert edges[-1] == 128
        # cap = ceil(4 / (3 * 0.1)): the budget of one probe is epsilon / (bits * cap), a probe changes by 1 / n.
        assert result.cap == 14
        assert set(silent.scales) == {7 * 14 / (2.0 * 4000)}
        assert len(silent.scales) == result.probes <= 7 * 14

    def test_ranges_are_answered_within_the_accuracy(self):
        result = baselines.blum_intervals(self.VALUES, epsilon=200.0, accuracy=0.6, bits=7, rng=1)
        ends = np.sort(np.random.default_rng(2).random((200, 2)), axis=1)
        truth = np.array([((low <= self.VALUES) & (high > self.VALUES)).sum() for low, high in ends])
        assert np.abs(result.count(ends) - truth).max() < 0.6 * 4000
        assert result.count([[0, 1]])[0] == pytest.approx((len(result.edges) - 1) * 0.1 * 4000)
        assert result.count([[0.3, 0.3], [1, 2]]).tolist() == [0, 0]
        half = (result.edges[1] + result.edges[2]) / 2
        assert result.count([[result.edges[1], half]])[0] == pytest.approx(200)

    def test_the_cap_holds_whatever_the_noise(self):
        capped = 0
        for seed in range(60):
            result = baselines.blum_intervals([0.5, 0.7], epsilon=0.01, accuracy=0.9, bits=20, rng=seed)
            intervals = len(result.edges) - 1
            assert intervals <= result.cap == 9
            assert result.probes <= 9 * 20
            assert (np.diff(result.edges) > 0).all()
            capped += intervals == 9 and result.edges[-1] < 1
        assert capped  # otherwise nothing was tried

    def test_bad_input_is_refused(self):
        good = {"values": [0.1, 0.9], "epsilon": 1.0, "accuracy": 0.5, "bits": 4}
        refused(baselines.blum_intervals, good, ("epsilon", "accuracy", "bits"))
        for name, bad in [("accuracy", 1), ("accuracy", 1e-9), ("bits", 51), ("bits", 2.0), ("values", [])]:
            with pytest.raises(InputError, match=name):
                baselines.blum_intervals(**good | {name: bad})
        for bad in ([0.5, -0.1234], [[0.1]], [math.nan], [1.0], None, "x", 0.5):
            with pytest.raises(InputError) as error:
                baselines.blum_intervals(**good | {"values": bad})
            assert "1234" not in str(error.value)
        result = baselines.blum_intervals(**good)
        for bad in ([[1, 0]], [1, 2], None, [[math.nan, 1]]):
            with pytest.raises(InputError, match="ranges"):
                result.count(bad)


def sums(branching, height):
    """(nodes, leaves) matrix of a tree: which leaves are below which node."""
    leaves = branching ** (height - 1)
    return np.concatenate([np.kron(np.eye(branching**level), np.ones(leaves // branching**level))
                           for level in range(height)])  # fmt: skip


class TestTree:
    def test_published_form(self):
        found = baselines.tree_consistency([20, 9, 8, 3, 5, 6, 1])
        wanted = [18.42857, 9.71429, 8.71429, 3.85714, 5.85714, 6.85714, 1.85714]
        assert found == pytest.approx(wanted, abs=5e-6)

    @pytest.mark.parametrize(("branching", "height"), [(2, 1), (2, 2), (2, 5), (3, 4), (5, 3), (7, 2)])
    def test_it_is_least_squares(self, branching, height):
        matrix = sums(branching, height)
        noisy = np.random.default_rng(4).normal(10, 5, len(matrix))
        leaves = np.linalg.lstsq(matrix, noisy, rcond=None)[0]
        assert baselines.tree_consistency(noisy, branching=branching) == pytest.approx(matrix @ leaves, abs=1e-9)

    def test_two_levels_are_those_of_adaptive_grids(self):
        grid, noisy = even_cells(uniform_grid((0, 0, 1, 1), 1, 1), [2]), [10.0, 1.0, 2.0, 4.0, 5.0]
        pooled = pooled_levels(grid, noisy[:1], noisy[1:], first_weight=1, second_weight=1)
        assert baselines.tree_consistency(noisy, branching=4) == pytest.approx([*pooled.first, *pooled.second])

    @pytest.mark.parametrize(
        ("bins", "branching", "relation", "sensitivity"),
        [
            (4, 2, "add-remove", 3), (4, 2, "replace-one", 4), (5, 2, "add-remove", 4), (5, 2, "replace-one", 6),
            (9, 3, "add-remove", 3), (10, 3, "replace-one", 6), (1, 2, "add-remove", 1), (1, 2, "replace-one", 0),
        ],
    )  # fmt: skip
    def test_scale_is_the_sensitivity_of_all_nodes(self, bins, branching, relation, sensitivity):
        silent, counts = Silent(), np.arange(1.0, bins + 1)
        result = baselines.hay_tree(counts, epsilon=0.5, branching=branching, relation=relation, rng=silent)
        assert silent.scales == [sensitivity / 0.5] == [result.scale]
        assert result.counts == pytest.approx(counts)
        assert np.array_equal(result.nodes.round(9), result.raw)
        assert result.raw[0] == counts.sum()
        # The sensitivity by its definition: change or move one record.
        matrix = sums(branching, round(math.log(len(result.raw) * (branching - 1) + 1, branching)))[:, :bins]
        columns = [matrix[:, i] for i in range(bins)]
        pairs = itertools.product(columns, columns) if relation == "replace-one" else ((c, 0 * c) for c in columns)
        assert max(np.abs(one - other).sum() for one, other in pairs) == sensitivity

    def test_noise_is_pooled(self):
        counts = np.full(64, 50.0)
        result = baselines.hay_tree(counts, epsilon=1.0, rng=1)
        nodes = result.nodes
        assert nodes[1:127:2] + nodes[2:127:2] == pytest.approx(nodes[:63])
        assert ((nodes[-64:] - 50) ** 2).mean() < ((result.raw[-64:] - 50) ** 2).mean()

    def test_bad_input_is_refused(self):
        good = {"counts": [1.0, 2.0], "epsilon": 1.0, "branching": 2, "relation": "add-remove"}
        refused(baselines.hay_tree, good, ("epsilon", "branching", "relation"))
        for name, bad in [("counts", []), ("counts", [[1.0]]), ("counts", [math.inf]), ("branching", 1),
                          ("branching", 10**7), ("relation", "both")]:  # fmt: skip
            with pytest.raises(InputError, match=name):
                baselines.hay_tree(**good | {name: bad})
        with pytest.raises(InputError, match="branching"):
            baselines.hay_tree(np.ones(3000), epsilon=1.0, branching=2900)
        for bad in ([], [1, 2], [1, 2, 3, 4], None, [[1]]):
            with pytest.raises(InputError, match="nodes"):
                baselines.tree_consistency(bad)


class TestDegrees:
    def test_it_is_the_nearest_increasing_sequence(self):
        result = baselines.hay_degree([9, 3, 3, 3, 1, 2, 2, 8, 8, 9], epsilon=0.5, sensitivity=2.0, rng=6)
        raw = result.raw
        means = {(j, k): raw[j : k + 1].mean() for j in range(10) for k in range(j, 10)}
        nearest = [max(min(means[j, k] for k in range(i, 10)) for j in range(i + 1)) for i in range(10)]
        assert result.sequence == pytest.approx(nearest)
        assert not np.array_equal(result.sequence, raw)

    def test_scale_and_order(self):
        silent = Silent()
        result = baselines.hay_degree([5, 1, 3], epsilon=0.5, sensitivity=2.0, rng=silent)
        assert silent.scales == [4.0]
        assert result.sequence.tolist() == [1, 3, 5]

    def test_bad_input_is_refused(self):
        good = {"sequence": [1.0, 2.0], "epsilon": 1.0, "sensitivity": 1.0}
        refused(baselines.hay_degree, good, ("epsilon", "sensitivity"))
        for bad in ([], [[1.0]], [math.nan]):
            with pytest.raises(InputError, match="sequence"):
                baselines.hay_degree(bad, epsilon=1.0)


class TestErrors:
    def test_answers(self):
        found = baselines.error_summary([1, 4, 9, 2], [0, 4, 11, 2], delta=1e-5, thresholds=[0, 1, 5])
        assert (found.number, found.delta, found.mean) == (4, 1e-5, -0.25)
        assert found.five == (-2, -0.5, 0, 0.25, 1)
        assert found.mean_square == 1.25
        assert found.variance == pytest.approx(1.25 - 0.0625)
        assert found.standard_error == pytest.approx(np.std([1, 0, 4, 0], ddof=1) / 2)
        assert found.beta == (0.5, 0.25, 0)

    def test_the_standard_error_that_a_thousand_draws_leave(self):
        released = baselines.laplace_answers(np.zeros(1000), epsilon=0.1, rng=3)
        found = baselines.error_summary(released.answers, np.zeros(1000), delta=0)
        assert 8 < found.standard_error < 22  # sqrt(20) 100 / sqrt(1000) = 14.1: 187 and 200 do not differ

    def test_positions_have_distances(self):
        found = baselines.error_summary([[3.0, 4.0], [0, 0]], np.zeros((2, 2)), delta=0, thresholds=[4.9])
        assert (found.mean_square, found.five[-1], found.beta) == (12.5, 5, (0.5,))
        assert found.variance == pytest.approx((2.25 + 4) / 2)
        single = baselines.error_summary([[1.0, 1.0]], [[0, 0]], delta=0)
        assert math.isnan(single.standard_error)

    def test_bad_input_is_refused(self):
        for one, other in [([1], [1, 2]), ([], []), ([[1, 2, 3]], [[1, 2, 3]]), (None, [1]), ([math.nan], [1]),
                           ([1e80], [1]), ([[1, 2], [3]], [1])]:  # fmt: skip
            with pytest.raises(InputError):
                baselines.error_summary(one, other, delta=0)
        for bad in (None, -0.1, 1, math.nan, "0"):
            with pytest.raises(InputError, match="delta"):
                baselines.error_summary([1], [1], delta=bad)
        with pytest.raises(InputError, match="thresholds"):
            baselines.error_summary([1], [1], delta=0, thresholds=[math.nan])

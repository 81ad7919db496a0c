"""Noisy answers by the usual noise laws, each with its exact epsilon and delta.

All noise here is floating-point: for comparisons, never for a release."""

import math
from dataclasses import dataclass
from typing import Any, Protocol

from scipy.special import ndtri

from baselines.baseline_arguments import budgets, checked_epsilon, noise_scale
from baselines.noise_laws import GeneralisedGaussian, Staircase, UniformNoise, generalised_gaussian_scale, optimal_gamma
from dpppsynth.core.arguments import one_of
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike
from dpppsynth.mechanisms.local.grids.rectangles import reals
from dpppsynth.privacy.profiles import gaussian_mu
from dpppsynth.privacy.truncated.truncated_laplace import TruncatedLaplace, in_range
from dpppsynth.privacy.truncated.truncated_planar import PlanarLaplace
from dpppsynth.spatial.mesh import Floats


class NoiseLaw(Protocol):
    """Interface of noise laws: moments and tail probabilities."""

    @property
    def variance(self) -> float:
        """Mean square of one coordinate."""

    def tail(self, t: Any, /) -> Any:
        """Probability that the error is larger than each t."""

    def sample(self, size: Any, /, rng: RngLike = None) -> Floats:
        """Noise of a shape."""


@dataclass(frozen=True, eq=False, repr=False)
class NoisyAnswers:
    """Answers with noise: never to be released.

    Attributes
    ----------
    answers : (N,) or (N, 2) array
    law : NoiseLaw
        Of the noise of each, drawn independently.
    epsilon, delta : float
        Guarantee of one answer, or of all where the function says so. Epsilon is per unit of length for positions.
    noise : str
        Name of the noise.
    seeded : bool
        Whether the noise can be reproduced.

    Examples
    --------
    >>> noisy = laplace_answers([3.0, 5.0], epsilon=0.5, rng=1)
    >>> noisy.law.scale, noisy.seeded
    (2.0, True)
    """

    answers: Floats
    law: NoiseLaw
    epsilon: float
    delta: float
    noise: str
    seeded: bool

    def __repr__(self) -> str:
        budget = f"epsilon={self.epsilon:g}, delta={self.delta:g}"
        return f"NoisyAnswers({len(self.answers)}, {self.noise}, {budget}: not to be released)"


def laplace_answers(answers: Any, *, epsilon: float, sensitivity: float = 1.0, rng: RngLike = None) -> NoisyAnswers:
    """Answers with Laplace noise of scale `sensitivity / epsilon`: purely private, but no error is impossible.

    Parameters
    ----------
    answers : (N,) array
        None at all is allowed.
    epsilon : float
        Of all answers together.
    sensitivity : float
        L1 sensitivity of the whole vector.
    rng : None, int or Generator

    Examples
    --------
    >>> laplace_answers([3.0, 5.0], epsilon=1.0, rng=1)
    NoisyAnswers(2, laplace, epsilon=1, delta=0: not to be released)
    """
    epsilon = checked_epsilon(epsilon)
    law = TruncatedLaplace(noise_scale(in_range("sensitivity", sensitivity) / epsilon), math.inf)
    return _with_noise(answers, law, epsilon, 0.0, "laplace", rng)


def gaussian_answers(
    answers: Any,
    *,
    epsilon: float,
    delta: float,
    sensitivity: float = 1.0,
    calibration: str = "analytic",
    rng: RngLike = None,
) -> NoisyAnswers:
    """Answers with Gaussian noise.

    Parameters
    ----------
    answers : (N,) array
    epsilon, delta : float
        Of all answers together.
    sensitivity : float
        L2 sensitivity of the whole vector.
    calibration : {"analytic", "probabilistic"}
        By `analytic_gaussian_scale`, the smallest noise, or `probabilistic_gaussian_scale`, from a bound on the loss.
    rng : None, int or Generator

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> noisy = gaussian_answers([3.0, 5.0], epsilon=1.0, delta=1e-5, rng=1)
    >>> noisy.noise, round(noisy.law.variance, 4)
    ('analytic gaussian', 13.9176)
    """
    scales = {"analytic": analytic_gaussian_scale, "probabilistic": probabilistic_gaussian_scale}
    sigma = scales[one_of("calibration", calibration, scales)](epsilon, delta, sensitivity)
    law = GeneralisedGaussian(2.0, noise_scale(math.sqrt(2) * sigma))
    return _with_noise(answers, law, float(epsilon), float(delta), f"{calibration} gaussian", rng)


def generalised_gaussian_answers(
    answers: Any, *, epsilon: float, delta: float, power: float, sensitivity: float = 1.0, rng: RngLike = None
) -> NoisyAnswers:
    """Answers with generalised Gaussian noise, each of which spends epsilon and delta.

    Parameters
    ----------
    answers : (N,) array
    epsilon, delta, power, sensitivity : float
        Of one answer, as in `generalised_gaussian_scale`.
    rng : None, int or Generator

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> noisy = generalised_gaussian_answers([3.0, 5.0], epsilon=1.0, delta=1e-5, power=2.0, rng=1)
    >>> noisy.noise, round(noisy.law.scale, 5)
    ('generalised gaussian of power 2', 5.27591)
    """
    law = GeneralisedGaussian(power, generalised_gaussian_scale(epsilon, delta, power, sensitivity))
    return _with_noise(answers, law, float(epsilon), float(delta), f"generalised gaussian of power {law.power:g}", rng)


def staircase_answers(answers: Any, *, epsilon: float, sensitivity: float = 1.0, rng: RngLike = None) -> NoisyAnswers:
    """Answers with staircase noise of the smallest variance, each of which spends epsilon.

    Parameters
    ----------
    answers : (N,) array
    epsilon, sensitivity : float
        Of one answer: for a vector an L1 sensitivity is not enough, see `Staircase`.
    rng : None, int or Generator

    Returns
    -------
    NoisyAnswers
        Delta is 0.

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> round(staircase_answers([3.0], epsilon=1.0, rng=1).law.variance, 6)
    1.918104
    """
    law = Staircase(epsilon, sensitivity, optimal_gamma(epsilon))
    return _with_noise(answers, law, law.epsilon, 0.0, "staircase", rng)


def uniform_answers(answers: Any, *, max_error: float, sensitivity: float = 1.0, rng: RngLike = None) -> NoisyAnswers:
    """Answers with uniform noise: epsilon is 0 and `delta = sensitivity / (2 max_error)`.

    Parameters
    ----------
    answers : (N,) array
    max_error : float
        No answer is off by more; at least half the sensitivity, where nothing is private any more.
    sensitivity : float
        L1 sensitivity of the whole vector.
    rng : None, int or Generator

    Examples
    --------
    >>> uniform_answers([3.0], max_error=50.0, rng=1).delta
    0.01
    """
    law = UniformNoise(in_range("max_error", max_error))
    delta = law.delta(sensitivity)
    if delta == 1:
        msg = f"max_error: must be more than half the sensitivity, got {max_error!r}; all answers are told apart."
        raise InputError(msg)
    return _with_noise(answers, law, 0.0, delta, "uniform", rng)


def planar_laplace(points: Any, *, epsilon: float, rng: RngLike = None) -> NoisyAnswers:
    """Positions with planar Laplace noise: geo-indistinguishable, but no displacement is impossible.

    Parameters
    ----------
    points : (N, 2) array
        In a projected system: never in degrees.
    epsilon : float
        Per unit of length, for each position on its own.
    rng : None, int or Generator

    Returns
    -------
    NoisyAnswers
        Delta is 0.

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> moved = planar_laplace([[0.0, 0.0], [30.0, 40.0]], epsilon=0.1, rng=1)
    >>> moved.answers.shape, moved.law.mean_radius
    ((2, 2), 20.0)
    """
    positions, law = reals("points", points, (None, 2)), PlanarLaplace(epsilon)
    moved = positions + law.sample(len(positions), rng)
    return NoisyAnswers(moved, law, law.epsilon, 0.0, "planar laplace", rng is not None)


def _with_noise(answers: Any, law: NoiseLaw, epsilon: float, delta: float, noise: str, rng: RngLike) -> NoisyAnswers:
    truth = reals("answers", answers, (None,))
    return NoisyAnswers(truth + law.sample(truth.shape, rng), law, epsilon, delta, noise, rng is not None)


def analytic_gaussian_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Smallest standard deviation of Gaussian noise that is (epsilon, delta)-private.

    Parameters
    ----------
    epsilon, delta : float
    sensitivity : float
        L2 sensitivity.

    References
    ----------
    Balle & Wang (2018), Improving the Gaussian mechanism for differential privacy, ICML.

    Examples
    --------
    >>> round(analytic_gaussian_scale(1.0, 1e-5) ** 2, 4)
    13.9176
    """
    epsilon, delta = budgets(epsilon, delta)
    return noise_scale(in_range("sensitivity", sensitivity) / gaussian_mu(epsilon, delta))


def probabilistic_gaussian_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Standard deviation with which the privacy loss exceeds epsilon with probability at most delta: enough, not tight.

    `sigma = D (-x + sqrt(x^2 + 2 epsilon)) / (2 epsilon)` with x the quantile of `delta / 2`.

    Parameters
    ----------
    epsilon, delta : float
    sensitivity : float
        L2 sensitivity.

    Examples
    --------
    >>> round(probabilistic_gaussian_scale(1.0, 1e-5), 6)
    4.527607
    """
    epsilon, delta = budgets(epsilon, delta)
    x = float(ndtri(delta / 2))
    return noise_scale(in_range("sensitivity", sensitivity) * (math.sqrt(x * x + 2 * epsilon) - x) / (2 * epsilon))

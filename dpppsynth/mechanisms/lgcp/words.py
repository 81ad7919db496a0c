"""Text and rows of tables on the log-Gaussian Cox and Laplace mechanisms."""

from dpppsynth.contract.result import Result
from dpppsynth.contract.statistic import Statistic
from dpppsynth.contract.words import MechanismWords
from dpppsynth.models.covariances import Covariance
from dpppsynth.spatial.domains import Domain

FITTED = "A log-Gaussian Cox model that knows the law of the noise was fitted to these numbers alone"
DRAWN = "The synthetic points were drawn from that intensity."


def _fitted(description: str) -> MechanismWords[Statistic, Result]:
    end = f"{FITTED}, and the synthetic points were drawn from the model."
    return MechanismWords(
        description=f"{description} {end}",
        intensity="posterior median",
        title="Private intensity, posterior median",
    )


def _drawn(description: str) -> MechanismWords[Statistic, Result]:
    return MechanismWords(
        description=f"{description} {DRAWN}",
        intensity="the released draw",
        title="Private intensity, one posterior draw",
    )


TENTS = _fitted(
    "The points were shared out to the corners of a public mesh, and random noise was added to every corner's sum."
)
CELLS = _fitted(
    "The points along every short stretch of the streets were counted, and random noise was added to every count."
)
FIELD = _fitted("The points were reduced to smooth averages over the area, and random noise was added to each.")
POSTERIOR_DRAW = _drawn(
    "One intensity was drawn at random from what a log-Gaussian Cox model makes of the points. No noise was added: the "
    "randomness of the draw protects."
)
LIPSCHITZ = _drawn(
    "One intensity that changes only gently from place to place was drawn at random from what a log-Gaussian Cox model "
    "makes of the points. The randomness of the draw and the gentle slope protect."
)
KIM_LIM = "One intensity was drawn at random from what a log-Gaussian Cox model makes of the points, as published by "
KIM_LIM_38 = _drawn(f"{KIM_LIM}Kim and Lim (their Theorem 3.8).")
KIM_LIM_39 = _drawn(f"{KIM_LIM}Kim and Lim (their Corollary 3.9).")


NOISY = "from the noisy numbers"

LAPLACE_CELLS = MechanismWords[Statistic, Result](
    description="The points in every cell of a public grid were counted, and random noise was added to every count. "
    "The synthetic points were drawn from an intensity made of the noisy counts alone.",
    intensity=NOISY,
)

LAPLACE_TENTS = MechanismWords[Statistic, Result](
    description="The points were shared out to the corners of a public mesh, and random noise was added to every "
    "corner's sum. The synthetic points were drawn from an intensity made of the noisy sums alone.",
    intensity=NOISY,
)


def covariance_row(covariance: Covariance, domain: Domain) -> tuple[str, str]:
    """Covariance of the field; a powered exponential's kind is not named."""
    more = {k: v for k, v in covariance.to_dict().items() if k not in ("sigma", "length_scale")}
    kind = more.pop("kind")
    shape = "" if kind == "powered-exponential" else f", {kind}"
    shape += "".join(f", {name} {value if isinstance(value, str) else f'{value:g}'}" for name, value in more.items())
    scale = f"{covariance.length_scale:.4g} {domain.unit}"
    return "covariance", f"sigma {covariance.sigma:.4g}, length scale {scale}{shape}"

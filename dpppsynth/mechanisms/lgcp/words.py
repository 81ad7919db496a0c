"""Sentences and rows of tables on the log-Gaussian Cox mechanisms."""

from dpppsynth.models.covariances import Covariance
from dpppsynth.spatial.domains import Domain


def covariance_row(covariance: Covariance, domain: Domain) -> tuple[str, str]:
    """Covariance of the field; a powered exponential's kind is not named."""
    more = {k: v for k, v in covariance.to_dict().items() if k not in ("sigma", "length_scale")}
    kind = more.pop("kind")
    shape = "" if kind == "powered-exponential" else f", {kind}"
    shape += "".join(f", {name} {value if isinstance(value, str) else f'{value:g}'}" for name, value in more.items())
    scale = f"{covariance.length_scale:.4g} {domain.unit}"
    return "covariance", f"sigma {covariance.sigma:.4g}, length scale {scale}{shape}"

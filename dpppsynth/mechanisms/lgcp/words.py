"""Text and rows of tables on the log-Gaussian Cox mechanisms."""

from dataclasses import dataclass

from dpppsynth.contract.measurement import Measurement
from dpppsynth.contract.result import Result
from dpppsynth.contract.words import MechanismWords
from dpppsynth.core.units import short_unit
from dpppsynth.mechanisms.lgcp.clustered_plan import ClusteredPlan
from dpppsynth.mechanisms.lgcp.clustered_release import ClusteredRelease
from dpppsynth.models.covariances import Covariance
from dpppsynth.spatial.domains import Domain

FITTED = "A log-Gaussian Cox model that knows the law of the noise was fitted to these numbers alone"
DRAWN = "The synthetic points were drawn from that intensity."


def _fitted(description: str) -> MechanismWords[Measurement, Result]:
    end = f"{FITTED}, and the synthetic points were drawn from the model."
    return MechanismWords(
        description=f"{description} {end}",
        intensity="posterior median",
        title="Private intensity, posterior median",
    )


def _drawn(description: str) -> MechanismWords[Measurement, Result]:
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


@dataclass(frozen=True, kw_only=True)
class ClusterWords(MechanismWords[ClusteredPlan, ClusteredRelease]):
    """Text on releases with clusters."""

    def remarks(self, release: ClusteredRelease) -> list[str]:
        """Whether there are clusters, how large and how wide."""
        if release.inferred_clusters is None:
            return []
        found, unit = release.clusters, short_unit(release.domain.unit)
        if not found.likely:
            return [f"No clusters: the sums over pairs are as the intensity alone has them ({found.none:.0%} likely)."]
        law = found.average
        places = f"{law.size:.1f} further places within about {law.spread:.3g} {unit}" if law.size >= 0.1 else ""
        shared = f"{law.coincident:.0%} of the points at the place of another" if law.coincident >= 0.01 else ""
        return [f"Clusters ({1 - found.none:.0%} likely), on average: {' and '.join(filter(None, (places, shared)))}."]

    def figures(self, release: ClusteredRelease) -> dict[str, float]:
        """Probability of clusters, and their average law."""
        if release.inferred_clusters is None:
            return {}
        law = release.clusters.average
        return {
            "cluster_probability": 1 - release.clusters.none,
            "cluster_size": law.size,
            "cluster_spread": law.spread,
            "coincident_share": law.coincident,
        }


CLUSTERS = ClusterWords(
    description="The points were shared out to the corners of a public mesh, or counted along short stretches of the "
    "streets, and pairs of points near each other were added up, with a cap on what one point could add. Random noise "
    "was added to every number. A log-Gaussian Cox model with clusters, which knows the law of the noise, was fitted "
    "to these numbers alone, and the synthetic points were drawn from the model.",
    intensity="posterior median",
    title="Private intensity, posterior median",
)


def covariance_row(covariance: Covariance, domain: Domain) -> tuple[str, str]:
    """Covariance of the field; a powered exponential's kind is not named."""
    more = {k: v for k, v in covariance.to_dict().items() if k not in ("sigma", "length_scale")}
    kind = more.pop("kind")
    shape = "" if kind == "powered-exponential" else f", {kind}"
    shape += "".join(f", {name} {value if isinstance(value, str) else f'{value:g}'}" for name, value in more.items())
    scale = f"{covariance.length_scale:.4g} {domain.unit}"
    return "covariance", f"sigma {covariance.sigma:.4g}, length scale {scale}{shape}"

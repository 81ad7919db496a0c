"""The record of clusters, with its words and examples."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpppsynth.contract.examples import RELATIONS, Example, ring, square, streets
from dpppsynth.contract.registry import Mechanism, later
from dpppsynth.contract.words import MechanismWords
from dpppsynth.core.units import short_unit
from dpppsynth.inference.lgcp_inference import LGCPInference
from dpppsynth.inference.matern_inference import MaternInference
from dpppsynth.inference.sparse_inference import PrecisionInference
from dpppsynth.inference.street_inference import StreetInference
from dpppsynth.mechanisms.lgcp.cluster_statistic import MassesAndPairs
from dpppsynth.mechanisms.lgcp.clustered_release import ClusteredRelease
from dpppsynth.mechanisms.lgcp.synthesizer import LGCPSynthesizer
from dpppsynth.privacy.relations import AddRemove


@dataclass(frozen=True, kw_only=True)
class ClusterWords(MechanismWords[MassesAndPairs, ClusteredRelease]):
    """Text on releases with clusters."""

    def remarks(self, release: ClusteredRelease) -> list[str]:
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
        if release.inferred_clusters is None:
            return {}
        law = release.clusters.average
        return {
            "cluster_probability": 1 - release.clusters.none,
            "cluster_size": law.size,
            "cluster_spread": law.spread,
            "coincident_share": law.coincident,
        }


def clusters() -> Iterator[Example]:
    """Examples of all relations, of counts along streets and of a secret number on streets."""
    settings: dict[str, Any] = {"clusters": 0.3, "cluster_radii": [40.0], "cluster_caps": 3}
    build = partial(LGCPSynthesizer, 1.0, inference="laplace", length_scale=450.0, **settings)
    for relation in RELATIONS:
        yield Example(str(relation), partial(build, relation=relation), square())
    by_rule = partial(build, alpha=25.0, cluster_radii=None, cluster_caps=None, cluster_places="shared")
    yield Example("polygon with a hole, by rule", by_rule, ring())
    along = partial(LGCPSynthesizer, 1.0, mechanism="cells", **settings)
    for relation in (RELATIONS[0], AddRemove()):
        yield Example(f"streets, {relation}", partial(along, relation=relation), streets())


CLUSTERS = Mechanism(
    name="lgcp-clusters",
    settings=LGCPSynthesizer,
    statistic=MassesAndPairs,
    estimators=(LGCPInference, MaternInference, StreetInference, PrecisionInference),
    result=ClusteredRelease,
    audit=later("dpppsynth.contract.audits.additive_audits:MassesAndPairsAudit"),
    words=ClusterWords(
        description="The points were shared out to the corners of a public mesh, or counted along short stretches of "
        "the streets, and pairs of points near each other were added up, with a cap on what one point could add. "
        "Random noise was added to every number. A log-Gaussian Cox model with clusters, which knows the law of the "
        "noise, was fitted to these numbers alone, and the synthetic points were drawn from the model.",
        intensity="posterior median",
        title="Private intensity, posterior median",
    ),
    examples=clusters,
)

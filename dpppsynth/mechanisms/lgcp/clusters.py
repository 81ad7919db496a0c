"""Releases with clusters over a private intensity, whose size and spread come from private pair sums; their record."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from dpppsynth.contract.examples import RELATIONS, Example, ring, square, streets
from dpppsynth.contract.registry import Mechanism, later
from dpppsynth.contract.result import Saved
from dpppsynth.contract.statistic import fineness
from dpppsynth.contract.words import MechanismWords
from dpppsynth.core.errors import InformationWarning, InputError
from dpppsynth.core.progress import Progress, silent
from dpppsynth.core.single_entry_cache import SingleEntryCache
from dpppsynth.core.units import short_unit
from dpppsynth.inference.field_inference import FieldInference
from dpppsynth.inference.lgcp_inference import LGCPInference
from dpppsynth.inference.matern_inference import MaternInference
from dpppsynth.inference.sparse_inference import PrecisionInference
from dpppsynth.inference.street_inference import StreetInference
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.mechanisms.lgcp.cluster_statistic import (
    FILE,
    MOST_SIMULATED,
    MassesAndPairs,
    cluster_text,
    read_clusters,
)
from dpppsynth.mechanisms.lgcp.synthesizer import LGCPSynthesizer
from dpppsynth.models.cluster_posterior import ClusterPosterior
from dpppsynth.models.cluster_process import NO_CLUSTERS, ClusterLaw, ParentRule, SharedTents, clustered_pattern
from dpppsynth.privacy.relations import AddRemove
from dpppsynth.release import folder_writing
from dpppsynth.release.cox import CoxRelease
from dpppsynth.spatial.intensity import Intensity
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.sampling import require_room

# Points of simulated patterns where the number is secret: so many, or so many times the guess, at most. Noise that
# drowns the number could ask for any.
MANY, FAR = 100_000, 10
# How points are counted, in words.
SHARED, ALONG = "shared out to the corners of a public mesh", "counted along short stretches of the streets"
EITHER_WAY = f"{SHARED}, or {ALONG}"


@dataclass(frozen=True, eq=False, repr=False)
class ClusteredRelease(CoxRelease[MassesAndPairs]):
    """Result of a release with clusters; other attributes as in `CoxRelease`.

    Attributes
    ----------
    inferred_clusters : ClusterPosterior or None
        None when inference has not succeeded yet.
    """

    inferred_clusters: ClusterPosterior | None = None

    @property
    def inferred(self) -> bool:
        return super().inferred and self.inferred_clusters is not None

    @property
    def clusters(self) -> ClusterPosterior:
        """Posterior of the law of clusters: their presence, size and spread."""
        if self.inferred_clusters is None:
            msg = "release: inference has not been run on its private statistic; call `release.infer(...)` first."
            raise InputError(msg)
        return self.inferred_clusters

    @cached_property
    def sums(self) -> Floats:
        """(L,) noised sums of `1 - distance / radius` over pairs, in pairs; some may be negative."""
        return self.statistic.definition.sums(self.statistic.lattice)

    def with_posterior(self, model: FieldInference, rng: np.random.Generator, say: Progress) -> Self:
        found = super().with_posterior(model, rng, say)
        # An auditor's release leaves out what follows from the numbers.
        if found.draws is None:
            return found
        return replace(found, inferred_clusters=found.infer_clusters(rng, say))

    def infer_clusters(self, rng: np.random.Generator, say: Progress = silent) -> ClusterPosterior:
        """The posterior of the law of clusters over the released intensity, by simulation."""
        plan, intensity = self.statistic.definition, self.intensity
        pairs, totals = plan.pairs, np.array([intensity.total])
        if plan.n is None:
            totals = self._field_model().posterior_mean(self._require_draws()).totals
        most = min(MOST_SIMULATED, max(MANY, FAR * (plan.expected_n or 0)))
        if plan.n is None and totals.mean() > most:
            # Patterns of fewer points would make any original look clustered.
            msg = (
                "expected_n: the release tells of far more points than were expected, too many to simulate clusters; "
                "synthetic patterns have none."
            )
            warnings.warn(msg, InformationWarning, stacklevel=2)
            return ClusterPosterior.empty(plan.prior)

        # Made once, before several threads ask for it.
        self.parents(intensity)

        def simulate(law: ClusterLaw, own: np.random.Generator) -> Floats:
            n = plan.n if plan.n is not None else int(own.poisson(min(own.choice(totals), most)))
            return pairs.statistic.sums(self.clustered(intensity, law, n, own).positions)

        scales = [scale / 2.0**pairs.bits for scale in pairs.scales]
        size = plan.n or max(1.0, float(totals.mean()))
        return ClusterPosterior.inferred(plan.prior, simulate, self.sums, scales, size, rng, say)

    def drawn(self, intensity: Intensity, n: int | None, rng: np.random.Generator, source: str) -> PointPattern:
        """One pattern of clusters over an intensity.

        Of the whole posterior where different draws are asked for, which may have clusters or none; else of one law,
        its centre, with clusters where they are more likely than none.
        """
        law = self.clusters.draw(rng) if source == "draws" else self.clusters.central
        if n is None:
            require_room(intensity)
            n = int(rng.poisson(intensity.total))
        return self.clustered(intensity, law, n, rng)

    def clustered(self, intensity: Intensity, law: ClusterLaw, n: int, rng: np.random.Generator) -> PointPattern:
        """`n` points of clusters over an intensity, the variance of whose number follows the rule of `parents`."""
        variance = self.parents(intensity).variance(law) if n and law != NO_CLUSTERS else 1.0
        return clustered_pattern(intensity, law, n, rng, variance=variance)

    def parents(self, intensity: Intensity) -> ParentRule:
        """Rule by which numbers of clusters over an intensity vary; kept for the last intensity alone."""
        return self._rules.get(intensity, lambda: self._parents(intensity))

    @cached_property
    def _rules(self) -> SingleEntryCache[ParentRule]:
        return SingleEntryCache()

    @cached_property
    def _tents(self) -> SharedTents:
        plan = self.statistic.definition
        return SharedTents.of(self.intensity, plan.mass_shares, plan.prior.spreads)

    def _parents(self, intensity: Intensity) -> ParentRule:
        plan = self.statistic.definition
        positions, element, weight = intensity.mesh.pieces.quadrature()
        at = np.clip(intensity.mesh.weights(element, positions), 0, 1)
        expected = plan.mass_shares(positions).T @ (weight * intensity.at(element, at, positions))
        if plan.n is not None:
            expected *= plan.n / expected.sum()
        return ParentRule.of(self._tents, self.statistic.masses, plan.mass_variance, expected, fixed=plan.n is not None)

    def reopened(self, saved: Saved) -> Self:
        found, content = super().reopened(saved), saved.content(FILE)
        clusters = None if content is None else read_clusters(content, self.statistic.definition.prior)
        return replace(found, inferred_clusters=clusters)

    def write(self, folder: Path, start: str = "") -> None:
        super().write(folder, start)
        if self.inferred_clusters is not None:
            folder_writing.put(cluster_text(self.inferred_clusters), folder / (start + FILE))


@dataclass(frozen=True, kw_only=True)
class ClusterWords(MechanismWords[MassesAndPairs, ClusteredRelease]):
    """Text on releases with clusters."""

    def describe(self, plan: MassesAndPairs, by: str | None = None) -> str:
        return self.description.replace(EITHER_WAY, _shared_out(plan))

    @property
    def near(self) -> str:
        return (
            "of what points do to their near neighbours clusters alone do, of one law everywhere, and only where the "
            "noised sums over pairs make them likely."
        )

    def remarks(self, release: Any) -> list[str]:
        return self.pair_remarks(release)

    def pair_remarks(self, release: Any) -> list[str]:
        told = []
        for level, each in release.parts.items():
            whose = f"{release.by} {level}: " if level else ""
            told += [whose + said for said in _remarks(each)]
        return told

    def figures(self, release: Any) -> dict[str, float]:
        if getattr(release, "inferred_clusters", None) is None:
            return {}
        law = release.clusters.average
        return {
            "cluster_probability": 1 - release.clusters.none,
            "cluster_size": law.size,
            "cluster_spread": law.spread,
            "coincident_share": law.coincident,
        }


def _shared_out(plan: MassesAndPairs) -> str:
    """The way in which points were counted, in words."""
    if plan.basis == "tents":
        return SHARED
    return ALONG if isinstance(plan.domain, LinearNetwork) else "counted in the cells of a public mesh"


def _remarks(release: ClusteredRelease) -> list[str]:
    """Sentences on the clusters of one release, and on what passes for them."""
    if release.inferred_clusters is None:
        return []
    plan, unit = release.statistic.definition, short_unit(release.domain.unit)
    found = release.clusters
    if not found.likely:
        unseen = plan.power(release.sums).unseen()
        alone = f"the sums over pairs are as the intensity alone has them ({found.none:.0%} likely)"
        return [f"No clusters all over: {alone}. {unseen[0].upper()}{unseen[1:]}."]
    law = found.average
    places = f"{law.size:.1f} further places within about {law.spread:.3g} {unit}" if law.size >= 0.1 else ""
    shared = f"{law.coincident:.0%} of the points at the place of another" if law.coincident >= 0.01 else ""
    said = f"Clusters ({1 - found.none:.0%} likely), on average: {' and '.join(filter(None, (places, shared)))}."
    sees = float(np.max(fineness(plan.mesh)))
    if sees <= law.spread:
        return [said]
    hills = (
        f"They may be hills instead: at this budget the map sees nothing narrower than {sees:.4g} {unit}, and points "
        "that gather on a narrower hill are counted as clusters."
    )
    return [said, hills]


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
        description=f"The points were {EITHER_WAY}, and pairs of points near each other were added up, with a cap on "
        "what one point could add. "
        "Random noise was added to every number. A log-Gaussian Cox model with clusters, which knows the law of the "
        "noise, was fitted to these numbers alone, and the synthetic points were drawn from the model.",
        intensity="middle of the posterior",
        title="Private intensity, middle of the posterior",
    ),
    examples=clusters,
)

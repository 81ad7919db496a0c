"""`SparseInference`: what estimators by a field of sparse precision share: draws averaged over priors by evidence."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from dpppsynth.core.errors import QualityError
from dpppsynth.models.approximation_checks import check_approximation
from dpppsynth.models.kept_masses import kept_masses
from dpppsynth.models.likelihood import NoisyMasses
from dpppsynth.models.sparse_fields import SparseField
from dpppsynth.models.sparse_posterior import SparsePosterior, sparse_posterior
from dpppsynth.models.summed_fields import constant, with_effects
from dpppsynth.release.field_inference import EVEN, INTERCEPT_SD, FieldInference, apportion
from dpppsynth.release.posterior import FitNotes, Posterior
from dpppsynth.spatial.loglinear_integrals import gauss_rule
from dpppsynth.spatial.mesh import Floats

# NUTS would take hours with so many unknowns.
INFERENCES = ("laplace",)
# Numbers of a saved posterior, about, and draws at least and at most.
KEPT_NUMBERS, FEWEST_DRAWS, MOST_DRAWS = 5_000_000, 64, 1000
# Ranges of a field, in units of the domain's extent: at most, and at least as a share of the most.
LONGEST, SHORTEST = 2.0, 1e-6
# Draws by which the approximation is checked: a twentieth of the time of a release.
CHECKED = 40
# Points along a side of an element at which draws are integrated.
POINTS = 2
# Draws that are made at once.
BATCH = 64


class SparseInference(FieldInference):
    """Base of estimators by a field of sparse precision: Laplace approximation, priors weighed by evidence."""

    def average(
        self, fits: Mapping[int, SparsePosterior], likelihood: NoisyMasses, rng: np.random.Generator
    ) -> Posterior:
        """Draws from fits, by the places of their priors' scales in `scales`, each with a share by its evidence."""
        log_weight = np.array([fit.log_evidence for fit in fits.values()])
        draws = int(np.clip(KEPT_NUMBERS // len(self.mesh.vertices), FEWEST_DRAWS, MOST_DRAWS))
        count = apportion(scipy.special.softmax(log_weight), draws)
        totals = np.split(drawn_totals(likelihood, draws, rng), np.cumsum(count)[:-1])
        drawn = [self._draw(fit, likelihood, own, rng) for fit, own in zip(fits.values(), totals, strict=True)]
        fields, effects = (np.concatenate(each)[None] for each in zip(*drawn, strict=True))
        scales = np.repeat([self.scales[place] for place in fits], count)
        known = self._notes(fits, count / draws, likelihood, rng)
        return Posterior(fields, scales[None], known, effects if self.covariates else None).mixed(rng)

    def _notes(
        self,
        fits: Mapping[int, SparsePosterior],
        weights: Floats,
        likelihood: NoisyMasses,
        rng: np.random.Generator,
    ) -> FitNotes:
        """Diagnostics of the fits, in the order of `scales`; the one of most weight is checked."""
        notes = FitNotes.unknown(self.scales)
        notes.weight[:] = 0.0
        notes.weight[list(fits)] = weights
        most = list(fits)[int(np.argmax(weights))]
        notes.add(most, check_approximation(fits[most], likelihood, len(self.mesh.vertices), CHECKED, rng))
        return notes

    def _draw(
        self, fit: SparsePosterior, likelihood: NoisyMasses, totals: Floats, rng: np.random.Generator
    ) -> tuple[NDArray[np.float32], Floats]:
        """(k, V) draws with the given totals (k,), in single precision, and their (k, p) effects."""
        fields = [np.empty((0, len(self.mesh.vertices)), dtype=np.float32)]
        effects = [np.empty((0, fit.prior.effects))]
        for part in (totals[start : start + BATCH] for start in range(0, len(totals), BATCH)):
            drawn, own = fit.drawn(len(part), rng)
            fields.append(self.normalise(self.bent(likelihood, fit.field_mode, drawn), part))
            effects.append(own)
        return np.concatenate(fields), np.concatenate(effects)

    def even_fit(self, likelihood: NoisyMasses, centre: float, others: int) -> SparsePosterior:
        """Posterior of an even field, but for effects of covariates, with its share of the weight of other priors."""
        even = self.explained(constant(len(self.measure), INTERCEPT_SD))
        fit = sparse_posterior(likelihood, even, centre, start=self.started(likelihood, centre))
        return replace(fit, log_evidence=fit.log_evidence + float(np.log(EVEN * others)))

    def explained(self, prior: SparseField) -> SparseField:
        """A prior of the field with the effects of covariates, where there are any."""
        design = self.covariates
        if design is None:
            return prior
        if design.values is None:
            msg = "covariates: the release states their fingerprint alone; take one that was opened with its files."
            raise QualityError(msg)
        return with_effects(prior, self.spread(design.values), design.prior_sd)

    def spread(self, columns: Floats) -> Floats:
        """Covariates at all values of the field, from those at its places."""
        return columns

    def started(self, likelihood: NoisyMasses, centre: float) -> Floats | None:
        """Even field of the noised total, from which a mode is searched where a guess of n is larger."""
        if likelihood.n is not None:
            return None
        level = np.log(max(1.0, float(likelihood.masses.sum())) / self.measure.sum())
        return np.full(len(self.measure), level) if level < centre else None

    def bent(self, likelihood: NoisyMasses, mode: Floats, fields: Floats) -> Floats:
        """(k, V) draws about a mode (V,), whose tents have the masses that the approximation predicts."""
        return kept_masses(likelihood, mode, fields, likelihood.tents, self.rule)

    @cached_property
    def rule(self) -> "tuple[scipy.sparse.csr_array, Floats]":
        """Rule of integration over the domain, times the offset."""
        return gauss_rule(self.mesh, self.pieces, POINTS)


def drawn_totals(masses: NoisyMasses, draws: int, rng: np.random.Generator) -> Floats:
    """(draws,) totals of the intensities: the public n, or what the noised masses tell of a secret one.

    The mean of exp of an uncertain field lies above its total, so a secret total is not left to the field.
    """
    if masses.n is not None:
        return np.full(draws, float(masses.n))
    total = max(1.0, float(masses.masses.sum()))
    spread = np.sqrt(total + masses.noise_variance * len(masses.masses))
    return np.maximum(1.0, rng.normal(total, spread, draws))

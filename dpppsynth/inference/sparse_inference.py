"""Fields of sparse precision: draws averaged over priors by evidence, and a user's own prior."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from operator import itemgetter
from typing import Any, ClassVar, Self, cast

import numpy as np
import scipy
from numpy.typing import NDArray

from dpppsynth.contract.additive_noise import LaplaceMasses, LatticeStatistic, PrivateStatistic
from dpppsynth.contract.estimator import DIGEST, offset_rows, offset_stated
from dpppsynth.contract.statistic import mesh_words, require
from dpppsynth.core.errors import InputError, QualityError
from dpppsynth.core.progress import Progress, Step, each_of
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows, mention
from dpppsynth.inference.covariate_inference import CovariateInference
from dpppsynth.inference.field_inference import (
    EVEN,
    INTERCEPT_SD,
    NO_RANGE,
    FitNotes,
    Posterior,
    apportion,
    opened_values,
    require_somewhere,
)
from dpppsynth.inference.nuts_runs import SPARSE_PACE, log_masses, sampling_words, watched, white_run
from dpppsynth.models.laplace_approximation import check_approximation
from dpppsynth.models.likelihood import NoisyMasses
from dpppsynth.models.matern_search import FORGOTTEN, NEGLIGIBLE, climb_grid
from dpppsynth.models.nuts import CHAINS, ENGINES, Diagnostics
from dpppsynth.models.posterior_centre import mean_centred
from dpppsynth.models.sparse_fields import SparseField, constant, field_of_precision, with_effects
from dpppsynth.models.sparse_posterior import SparsePosterior, kept_masses, sparse_posterior, with_masses
from dpppsynth.models.whitened_density import WhitenedDensity
from dpppsynth.spatial.domains import canonical_json
from dpppsynth.spatial.mesh import Floats, Mesh
from dpppsynth.spatial.offset import Offset

# Unknowns of the largest field for NUTS, whose time grows faster than they do; draws per chain of every run; priors
# that are sampled at most, the likeliest, so that the time is known beforehand.
MOST_SAMPLED, NUTS_DRAWS, MOST_RUNS = 12_000, 1000, 3
# Numbers of a saved posterior, about, and draws at least and at most.
KEPT_NUMBERS, FEWEST_DRAWS, MOST_DRAWS = 5_000_000, 64, 1000
# Ranges of a field, in units of the domain's extent: at most, and at least as a share of the most.
LONGEST, SHORTEST = 2.0, 1e-6
# Draws by which the approximation is checked: a twentieth of the time of a release.
CHECKED = 40
# Draws that are made at once.
BATCH = 64


class SparseInference(CovariateInference):
    """Base of estimators by a field of sparse precision: priors weighed by evidence, Laplace approximation or NUTS."""

    @property
    def unknowns(self) -> int:
        """Number of unknowns of the field, at most."""
        raise NotImplementedError

    @property
    def way(self) -> str:
        """Inference in words, of NUTS with the time that it takes."""
        if self.inference != "nuts":
            return self.inference
        runs = min(MOST_RUNS, len(self.scales) - self.even)
        return sampling_words(self.engine, runs, self.unknowns, SPARSE_PACE)

    def require_inference(self) -> None:
        super().require_inference()
        unknowns = self.unknowns
        if self.inference == "nuts" and unknowns > MOST_SAMPLED:
            msg = (
                f"inference: NUTS takes a field of {MOST_SAMPLED} unknowns at most, and this one has {unknowns}; take "
                f"{mention('inference', repr('laplace'))}."
            )
            raise InputError(msg)

    def average(
        self, fits: Mapping[int, SparsePosterior], likelihood: NoisyMasses, rng: np.random.Generator, say: Progress
    ) -> Posterior:
        """Posterior draws from fits, in proportion to their evidence; the keys of `fits` are indices into `scales`."""
        log_weight = np.array([fit.log_evidence for fit in fits.values()])
        draws = int(np.clip(KEPT_NUMBERS // len(self.mesh.vertices), FEWEST_DRAWS, MOST_DRAWS))
        if self.inference == "nuts":
            return self._sampled(fits, scipy.special.softmax(log_weight), draws, likelihood, rng, say)
        say("draws")
        count = apportion(scipy.special.softmax(log_weight), draws)
        totals = np.split(drawn_totals(likelihood, draws, rng), np.cumsum(count)[:-1])
        drawn = [self._draw(*each, likelihood, own, rng) for each, own in zip(fits.items(), totals, strict=True)]
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

    def _sampled(
        self,
        fits: Mapping[int, SparsePosterior],
        share: Floats,
        draws: int,
        likelihood: NoisyMasses,
        rng: np.random.Generator,
        say: Progress,
    ) -> Posterior:
        """Draws by NUTS under the likeliest priors, evenly thinned from runs that passed their diagnostics."""
        # An even field takes no run.
        runs = np.array([fit.prior.size > 1 for fit in fits.values()])
        least = max(NEGLIGIBLE, np.sort(share[runs])[-MOST_RUNS:][0] if runs.any() else 0.0)
        share = np.where(share >= np.where(runs, least, NEGLIGIBLE), share, 0.0)
        share = share / share.sum()
        count = apportion(share, draws // CHAINS)
        notes = self._notes(fits, share, likelihood, rng)
        fields, effects = list[NDArray[np.float32]](), list[Floats]()
        for (place, fit), k in ((each, k) for each, k in zip(fits.items(), count, strict=True) if k):
            say(Step(f"NUTS, range {self.scales[place]:.4g}", sum(each.shape[1] for each in fields) * CHAINS / draws))
            unknowns, passed = self._run(fit, likelihood, int(k), rng)
            if passed is not None:
                notes.rhat[place], notes.ess[place] = passed.rhat, passed.ess
                notes.divergences[place] = passed.divergences
            drawn = [self._of_own_masses(fit, likelihood, each, self.unseen(place, int(k), rng)) for each in unknowns]
            fields.append(np.stack([self.normalise(each, likelihood.n) for each in drawn]))
            effects.append(unknowns[..., fit.prior.size - fit.prior.effects :])
        scales = np.tile(np.repeat([self.scales[place] for place in fits], count), (CHAINS, 1))
        told = np.concatenate(effects, axis=1) if self.covariates else None
        return Posterior(np.concatenate(fields, axis=1), scales, notes, told).mixed(rng)

    def _run(
        self, fit: SparsePosterior, likelihood: NoisyMasses, kept: int, rng: np.random.Generator
    ) -> tuple[Floats, Diagnostics | None]:
        """(chains, kept, N) unknowns, and what is known of the run that they are from."""
        if fit.prior.size == 1:
            # At most the level is unknown, which has a normal law.
            alone = fit.mode[:, None] + fit.deviations(CHAINS * kept, rng)
            return alone.T.reshape(CHAINS, kept, 1), None
        density, tents = WhitenedDensity(likelihood, fit), watched(likelihood.tents.shape[0])

        def monitored(z: Floats) -> Floats:
            # One chain after the other: together their fields may fill the memory.
            chains = [self._quantities(fit, likelihood, density.unknowns(each)) for each in z]
            masses, effects = (np.stack(each) for each in zip(*chains, strict=True))
            return np.concatenate([log_masses(masses[..., tents]), effects], axis=-1)

        z, passed = white_run(density, monitored, kept, rng, draws=NUTS_DRAWS, engine=self.engine)
        return density.unknowns(z), passed

    @staticmethod
    def _quantities(fit: SparsePosterior, likelihood: NoisyMasses, unknowns: Floats) -> tuple[Floats, Floats]:
        """(k, K) expected masses of tents and (k, p) effects of covariates, of unknowns (k, N)."""
        masses = [likelihood.tents @ likelihood.vertex_masses(fit.field_of(each)) for each in unknowns]
        return np.array(masses), unknowns[:, fit.prior.size - fit.prior.effects :]

    def _of_own_masses(
        self, fit: SparsePosterior, likelihood: NoisyMasses, unknowns: Floats, unseen: Floats | float = 0.0
    ) -> Floats:
        """(k, V) fields of unknowns (k, N), whose integrals over tents are the masses that they were drawn for."""
        masses = self._quantities(fit, likelihood, unknowns)[0]
        return with_masses(fit.field_of(unknowns) + unseen, masses, likelihood.tents, self.rule, likelihood.n)

    def _draw(
        self, place: int, fit: SparsePosterior, likelihood: NoisyMasses, totals: Floats, rng: np.random.Generator
    ) -> tuple[NDArray[np.float32], Floats]:
        """(k, V) draws with the given totals (k,), in single precision, and their (k, p) effects."""
        fields = [np.empty((0, len(self.mesh.vertices)), dtype=np.float32)]
        effects = [np.empty((0, fit.prior.effects))]
        centred = mean_centred(fit, likelihood, rng) if len(totals) and self.sees_all(likelihood) else None
        about = centred or fit
        for part in (totals[start : start + BATCH] for start in range(0, len(totals), BATCH)):
            unknowns = (about.mode[:, None] + about.deviations(len(part), rng)).T
            if centred is None:
                rough = fit.field_of(unknowns) + self.unseen(place, len(part), rng)
                drawn = self.bent(likelihood, fit.field_mode, rough)
            else:
                drawn = self._of_own_masses(centred, likelihood, unknowns)
            fields.append(self.normalise(drawn, part))
            effects.append(unknowns[:, fit.prior.size - fit.prior.effects :])
        return np.concatenate(fields), np.concatenate(effects)

    def sees_all(self, likelihood: NoisyMasses) -> bool:
        """Whether tents are as fine as the field, so that they tell of all of it.

        Its posterior then leans to one side, and draws are made about its mean. Of finer fields most of the variance is
        that of the prior, and draws are bent to the masses at the mode (docs/results/nuts.md).
        """
        return likelihood.tents.shape[0] >= likelihood.tents.shape[1]

    def unseen(self, place: int, k: int, rng: np.random.Generator) -> Floats | float:
        """(k, V) parts of fields of one prior, by its place in `scales`, that its unknowns leave out; none here."""
        return 0.0

    def behind(
        self, plan: LatticeStatistic, statistic: PrivateStatistic[LatticeStatistic], shares: "scipy.sparse.csr_array"
    ) -> NoisyMasses:
        """Likelihood of the field given noised counts or tents, in which it has these shares."""
        # Noised counts and tents have this likelihood.
        return cast(NoisyMasses, plan.likelihood(statistic, self.measure, shares)).own_law

    def even_fit(self, likelihood: NoisyMasses, centre: float, others: int) -> SparsePosterior:
        """Posterior of a field that is even but for effects of covariates, weighted relative to `others` priors."""
        even = self.explained(constant(len(self.measure), INTERCEPT_SD))
        fit = sparse_posterior(likelihood, even, centre, start=self.started(likelihood, centre))
        return replace(fit, log_evidence=fit.log_evidence + float(np.log(EVEN * others)))

    def explained(self, prior: SparseField) -> SparseField:
        """A prior of the field with the effects of covariates, where there are any."""
        design = self.covariates
        return prior if design is None else with_effects(prior, self.spread(opened_values(design)), design.prior_sd)

    def spread(self, columns: Floats) -> Floats:
        """Covariates for all values of the field, from those at the vertices of `places`."""
        return columns

    def started(self, likelihood: NoisyMasses, centre: float) -> Floats | None:
        """Even field of the noised total, where the search for a mode starts if the guess of n is larger; else None."""
        if likelihood.n is not None:
            return None
        level = np.log(max(1.0, float(likelihood.masses.sum())) / self.measure.sum())
        return np.full(len(self.measure), level) if level < centre else None

    def bent(self, likelihood: NoisyMasses, mode: Floats, fields: Floats) -> Floats:
        """(k, V) draws about a mode (V,), corrected to the tent masses that the approximation predicts."""
        return kept_masses(likelihood, mode, fields, likelihood.tents, self.rule)


# Newton decrement at which the search over settings leaves a posterior; the evidence is right to half of it.
ROUGHLY = 2.0
# Values of one setting that a model may average over, at most.
MOST_VALUES = 8


class AveragedInference(SparseInference):
    """Base of estimators by a field averaged over combinations of settings; a search climbs to the likely ones.

    Attributes
    ----------
    averaged : tuple of str
        Names of these settings, in the order in which the evidence is climbed, ranges first.
    """

    averaged: ClassVar[tuple[str, ...]]

    def likelihood(self, statistic: PrivateStatistic[LatticeStatistic]) -> NoisyMasses:
        """Likelihood of the field given noised counts or tents."""
        raise NotImplementedError

    def prior(self, plan: LatticeStatistic, values: tuple[float, ...]) -> SparseField:
        """Prior with these settings, with an intercept where n is secret, and effects of covariates."""
        raise NotImplementedError

    @property
    def combined(self) -> list[tuple[float, ...]]:
        """All combinations of settings."""
        return list(product(*(getattr(self, name) for name in self.averaged)))

    def distinct(self, values: tuple[float, ...]) -> tuple[float, ...]:
        """The combination that stands for all with the same prior."""
        return values

    def log_weight(self, values: tuple[float, ...]) -> float:
        """Logarithm of a combination's weight before the statistic is seen, relative to the others."""
        return 0.0

    def sees_all(self, likelihood: NoisyMasses) -> bool:
        """False: with segments of streets, and with marks, draws about the mean hold no more than bent ones."""
        return False

    def _weighed(self, values: tuple[float, ...], fit: SparsePosterior) -> SparsePosterior:
        return replace(fit, log_evidence=fit.log_evidence + self.log_weight(values))

    @property
    def scales(self) -> tuple[float, ...]:
        """The ranges, once for each combination with the other settings; one more number stands for an even field."""
        return tuple(values[0] for values in self.combined) + self.even * (NO_RANGE,)

    def _fit(self, statistic: PrivateStatistic[LatticeStatistic], rng: np.random.Generator, say: Progress) -> Posterior:
        plan, likelihood, centre = statistic.definition, self.likelihood(statistic), self.centre(statistic.definition)
        tried: dict[tuple[float, ...], tuple[float, Floats]] = {}
        axes = tuple(getattr(self, name) for name in self.averaged)
        # From the middle to a neighbour or two along each axis, about.
        tries = 1 + 3 * len(axes)

        def evidence(combination: tuple[float, ...]) -> float:
            values = self.distinct(combination)
            if values in tried:
                return tried[values][0]
            named = zip(self.averaged, values, strict=True)
            words = "field of " + ", ".join(f"{name} {value:.4g}" for name, value in named)
            say(Step(words, min(0.9, len(tried) / tries)))
            start = max(tried.values(), key=itemgetter(0))[1] if tried else self.started(likelihood, centre)
            fit = sparse_posterior(likelihood, self.prior(plan, values), centre, start=start, tolerance=ROUGHLY)
            tried[values] = fit.log_evidence + self.log_weight(values), fit.field_mode
            return tried[values][0]

        climb_grid(evidence, axes, tuple((len(axis) - 1) // 2 for axis in axes))
        best = max(found for found, _ in tried.values())
        likely = {values: mode for values, (found, mode) in tried.items() if found - best >= FORGOTTEN}
        places = self.combined
        fits = {
            places.index(values): self._weighed(
                values, sparse_posterior(likelihood, self.prior(plan, values), centre, start=mode)
            )
            for values, mode in each_of(say, "posteriors of likely fields", list(likely.items()))
        }
        if self.even:
            fits[len(places)] = self.even_fit(likelihood, centre, len(places))
        return self.average(fits, likelihood, rng, say)


def require_increasing(name: str, values: tuple[float, ...], least: float, most: float) -> None:
    """Refuse anything but a few numbers between two bounds, in increasing order."""
    few = isinstance(values, tuple) and 0 < len(values) <= MOST_VALUES
    numbers = few and all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)
    if not numbers or list(values) != sorted(set(values)) or not least <= values[0] <= values[-1] <= most:
        msg = (
            f"{name}: needs 1 to {MOST_VALUES} numbers from {least:g} to {most:g}, each larger than the one before, "
            f"got {values!r}."
        )
        raise InputError(msg)


def drawn_totals(masses: NoisyMasses, draws: int, rng: np.random.Generator) -> Floats:
    """(draws,) totals of the intensities: the public n, or draws of a secret total given the noised masses.

    The mean of exp of an uncertain field lies above its total, so a secret total is not left to the field.
    """
    if masses.n is not None:
        return np.full(draws, float(masses.n))
    total = max(1.0, float(masses.masses.sum()))
    spread = np.sqrt(total + masses.noise_variance * len(masses.masses))
    return np.maximum(1.0, rng.normal(total, spread, draws))


@dataclass(frozen=True, eq=False, repr=False)
class PrecisionInference(SparseInference):
    """Prior of any sparse positive definite precision at the tents' vertices; Laplace approximation of its posterior.

    Attributes
    ----------
    mesh : Mesh
        The tents' own.
    precision : sparse (V, V) or None
        None in a release that was read from a folder, which states the digest alone: `release.infer(precision=...)`.
    offset : Offset, optional
        Public base intensity.
    digest : str
        SHA-256 of the matrix, found from it where there is one.

    Raises
    ------
    InputError
        When it is not a symmetric positive definite matrix of finite numbers, one row a vertex.
    """

    mesh: Mesh
    precision: Any
    offset: Offset | None = None
    digest: str = ""
    kind: ClassVar[str] = "precision"
    adjustable: ClassVar[frozenset[str]] = frozenset({"precision", "inference", "engine"})

    def __post_init__(self) -> None:
        self.require_inference()
        require_somewhere(self.measure)
        if self.precision is None:
            return
        try:
            prior = self._field
        except QualityError:
            msg = "covariance: the precision is not positive definite to rounding; add a little to its diagonal."
            raise InputError(msg) from None
        object.__setattr__(self, "precision", prior.precision)
        object.__setattr__(self, "digest", fingerprint(prior.precision))

    def __repr__(self) -> str:
        return f"PrecisionInference({self.mesh!r}, precision {self.digest[:12]})"

    @property
    def scales(self) -> tuple[float, ...]:
        return (NO_RANGE,)

    @property
    def unknowns(self) -> int:
        return len(self.mesh.vertices)

    def require(self, plan: LatticeStatistic) -> None:
        same = canonical_json(plan.mesh.recipe) == canonical_json(self.mesh.recipe)
        if not isinstance(plan, LaplaceMasses) or plan.basis != "tents" or not same:
            msg = "covariance: a precision of one's own stands behind noised tents on its mesh; give that as mesh=."
            raise InputError(msg)

    def _fit(self, statistic: PrivateStatistic[LatticeStatistic], rng: np.random.Generator, say: Progress) -> Posterior:
        if self.precision is None:
            msg = f"precision: the release states its digest alone; give the matrix {self.digest[:12]}, or another."
            raise QualityError(msg)
        plan = statistic.definition
        self.require(plan)
        likelihood = self.behind(plan, statistic, self.mesh.shares(plan.mesh))
        say("field of a given precision")
        prior = self._field if plan.n is not None else self._field.with_intercept(INTERCEPT_SD)
        return self.average({0: sparse_posterior(likelihood, prior, self.centre(plan))}, likelihood, rng, say)

    @cached_property
    def _field(self) -> SparseField:
        """Prior at the vertices, which is factored once."""
        return field_of_precision(self.precision, self.mesh)

    def table_rows(self) -> Rows:
        return [
            ("field", f"Gaussian, precision {self.digest[:12]}, on {mesh_words(self.mesh)}"),
            ("inference", self.way),
            *offset_rows(self.offset),
        ]

    def public_numbers(self) -> JsonObject:
        return {"field_vertices": len(self.mesh.vertices), "precision": self.digest, "inference": self.inference}

    def to_dict(self) -> JsonObject:
        return {
            "kind": self.kind,
            "mesh": self.mesh.recipe,
            "precision": self.digest,
            **offset_stated(self.offset),
            "inference": self.inference,
            **({"engine": self.engine} if self.inference == "nuts" else {}),
        }

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: LatticeStatistic, offset: Offset | None) -> Self:
        digest = stated["precision"]
        require(isinstance(digest, str) and DIGEST.fullmatch(digest) is not None, "the precision is a SHA-256")
        way = {"inference": stated["inference"], "engine": stated.get("engine", ENGINES[0])}
        return cls(plan.mesh, None, offset, digest, **way)


def fingerprint(precision: "scipy.sparse.csc_array") -> str:
    """SHA-256 of a sparse matrix: its columns' starts, rows and values."""
    matrix = scipy.sparse.csc_array(precision, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    parts = (matrix.indptr.astype("<i8"), matrix.indices.astype("<i8"), matrix.data.astype("<f8"))
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()

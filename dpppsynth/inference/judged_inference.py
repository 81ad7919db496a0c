"""`JudgedInference`: fields behind moved points, of a prior by which half of the points foretells the rest best.

Points are moved independently of each other, so that they can be halved at random (docs/theory/moved_points.md).
"""

import math
from itertools import product
from typing import Any, cast

import numpy as np
import scipy
from numpy.typing import NDArray

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.core.errors import InputError
from dpppsynth.core.progress import Progress, Step
from dpppsynth.core.wording import instead, mention
from dpppsynth.inference.covariate_inference import CovariateInference
from dpppsynth.inference.field_inference import EVEN, NO_RANGE, FitNotes, Posterior, apportion
from dpppsynth.inference.moved_runs import MOST_VALUES, MOVED_PACE, moved_run
from dpppsynth.inference.nuts_runs import sampling_words, watched
from dpppsynth.inference.sparse_inference import CHECKED, FEWEST_DRAWS, MOST_RUNS
from dpppsynth.models.laplace_approximation import check_approximation
from dpppsynth.models.matern_search import FORGOTTEN
from dpppsynth.models.moved_density import MovedDensity
from dpppsynth.models.moved_posterior import (
    Halves,
    Judged,
    LatticePosterior,
    MovedLikelihood,
    Place,
    VertexMasses,
    climbed,
    lattice_mode,
)
from dpppsynth.models.nuts import CHAINS, Diagnostics
from dpppsynth.models.sparse_posterior import in_parts, integrals, kept_masses, with_masses
from dpppsynth.models.spectral_fields import MovedPrior, Unknowns
from dpppsynth.models.spline_fields import SplineLattice
from dpppsynth.spatial.mesh import Floats

# Draws at most, numbers of a saved posterior, about, and priors that are averaged over.
MOST_DRAWS, KEPT_NUMBERS, MOST_PRIORS = 200, 3_000_000, 4
# Nodes of all levels up to which priors are judged on all of them, and not on blocks, and along a side of the lattice.
FEW, FEW_ALONG = 100**2, 50
# Distances of the B-splines whose masses are kept, in scales of the noise, and in nodes at least.
WIDE_SCALES, WIDE_NODES = 4.0, 2.0


class JudgedInference(CovariateInference):
    """Base of estimators by a field behind counts of moved points, or by one of each level."""

    @property
    def way(self) -> str:
        """Inference in words, of NUTS with the time that it takes."""
        if self.inference != "nuts":
            return self.inference
        # Even fields take a run where effects of covariates, or numbers of levels, stand beside them.
        even = self.even and (self.covariates is not None or bool(self.leading))
        return sampling_words(self.engine, min(MOST_RUNS, len(self.combined)) + even, len(self.measure), MOVED_PACE)

    def require_inference(self) -> None:
        super().require_inference()
        if self.inference == "nuts" and len(self.measure) > MOST_VALUES:
            other = "" if self.leading else f", plan with {instead('tents')}"
            msg = (
                f"inference: behind moved points NUTS takes a field of {MOST_VALUES} values at most, and this one has "
                f"{len(self.measure)}; take {mention('inference', repr('laplace'))}{other}{self.smaller}."
            )
            raise InputError(msg)

    @property
    def smaller(self) -> str:
        """Remedy of a plan for a field that NUTS takes, in words; none where the domain alone makes the field."""
        return ""

    @property
    def leading(self) -> tuple[int, ...]:
        """Shape of the numbers at each node: none for one field, the number of levels for several."""
        return ()

    @property
    def combined(self) -> list[tuple[float, ...]]:
        """Settings of all priors but that of an even field: all combinations, the range first."""
        return list(product(*self.lists.values()))

    @property
    def scales(self) -> tuple[float, ...]:
        return tuple(values[0] for values in self.combined) + self.even * (NO_RANGE,)

    @property
    def lists(self) -> dict[str, tuple[float, ...]]:
        """Values of each setting of a prior; priors are all combinations, in the order of `scales`, and an even one."""
        raise NotImplementedError

    @property
    def first(self) -> Place:
        """The prior that is tried first."""
        raise NotImplementedError

    def likelihood(self, statistic: PrivateStatistic[LatticeStatistic], side: int = 1) -> MovedLikelihood:
        """Likelihood of the field, with the lattice's nodes or blocks of side x side of them told apart."""
        raise NotImplementedError

    def prior_at(self, likelihood: MovedLikelihood, number: int) -> MovedPrior:
        """The prior with a number in `scales`."""
        raise NotImplementedError

    def wide(self, plan: LatticeStatistic) -> "scipy.sparse.csr_array":
        """(K, V) shares of the vertices in B-splines several scales of the noise apart, whose masses are well known.

        What is corrected by them stays smooth: creases of tents are seen on maps of few points.
        """
        moved = cast(Any, plan)
        apart = max(WIDE_SCALES / moved.rate, WIDE_NODES * max(moved.spacing))
        nx, ny = (
            1 + max(1, round((nodes - 1) * step / apart))
            for nodes, step in zip(moved.shape, moved.spacing, strict=True)
        )
        space = SplineLattice(self.places.domain, (nx, ny)).basis(self.places.vertices).T
        return scipy.sparse.kron(scipy.sparse.eye_array(math.prod(self.leading)), space, format="csr")

    def middle(self, posterior: Posterior, plan: LatticeStatistic) -> Floats:
        """(V,) median of the log-intensity, corrected spline by spline to the masses of the posterior mean.

        On the log scale exp of the median lies below the mean of exp by half the variance, about, which is not the same
        everywhere: masses would shift from spots that are known in all but their places to what is known better.
        """
        wide = self.wide(plan)
        drawn = sum(integrals(part.astype(float), self.rule, None).sum(axis=0) for part in in_parts(posterior.flat))
        masses = wide @ drawn / len(posterior.flat)
        return with_masses(super().middle(posterior, plan)[None], masses, wide, self.rule, None)[0]

    def drawn(self, fit: LatticePosterior, moves: Unknowns, wide: "scipy.sparse.csr_array") -> tuple[Floats, Floats]:
        """(2 k, V) draws of the field, and their (2 k, p) effects, from (size, k) moves off the mode.

        Every move is taken forth and back: so the draws' median is that of the approximation.
        """
        unknowns = fit.mode + np.concatenate([moves.T, -moves.T])
        mode, fields = (self.at_vertices(fit.prior.field(each)) for each in (fit.mode, unknowns))
        scale = 1.0 if self.covariates is None else self.covariates.prior_sd
        masses = VertexMasses(self.measure, fit.likelihood.law.n)
        bent = kept_masses(masses, mode, fields, wide, self.rule)
        return bent, fit.prior.effects_of(unknowns) * scale

    def at_vertices(self, fields: Floats) -> Floats:
        """(..., V) fields at the vertices from those at all places where a prior has them."""
        return fields

    def require(self, plan: LatticeStatistic) -> None:
        if not all(hasattr(plan, name) for name in ("rate", "extension", "shape")):
            msg = f"prior: this field stands behind counts of moved points alone; take {instead('moved')}."
            raise InputError(msg)

    def _fit(self, statistic: PrivateStatistic[LatticeStatistic], rng: np.random.Generator, say: Progress) -> Posterior:
        plan = cast(Any, statistic.definition)
        self.require(plan)
        likelihood = self.likelihood(statistic)
        many = math.prod((*self.leading, *plan.shape)) > FEW and max(plan.shape) > FEW_ALONG
        side = 2 if many and plan.extension > 1 else 1
        scores = self._scores(likelihood if side == 1 else self.likelihood(statistic, side), rng, say)
        kept = self._likeliest(scores)
        draws = int(np.clip(KEPT_NUMBERS // len(self.mesh.vertices), FEWEST_DRAWS, MOST_DRAWS))
        # Draws come in pairs, or one from every chain.
        seats = draws // (CHAINS if self.inference == "nuts" else 2)
        counts = apportion(scipy.special.softmax(np.array([scores[place] for place in kept])), seats)
        drawn_from = [(place, int(k)) for place, k in zip(kept, counts, strict=True) if k]
        notes = FitNotes.unknown(self.scales)
        notes.weight[:] = 0.0
        wide, fields = self.wide(plan), list[NDArray[np.float32]]()
        effects, scales = list[Floats](), list[Floats]()
        for place, k in drawn_from:
            words = f"NUTS, range {self.scales[place]:.4g}" if self.inference == "nuts" else "draws"
            say(Step(words, 0.5 + sum(each[..., 0].size for each in fields) / (2 * draws)))
            fit = lattice_mode(likelihood, self.prior_at(likelihood, place))
            moves = None
            if self.inference == "nuts":
                drawn, own, passed = self._chains(fit, k, wide, rng)
                if passed is not None:
                    notes.rhat[place], notes.ess[place] = passed.rhat, passed.ess
                    notes.divergences[place] = passed.divergences
            else:
                moves = fit.deviations(k, rng)
                drawn, own = (each[None] for each in self.drawn(fit, moves, wide))
            fields.append(self.normalise(drawn, plan.n))
            effects.append(own)
            scales.append(np.full(drawn.shape[:2], self.scales[place]))
            notes.weight[place] = k / seats
            if place == kept[0]:
                notes.add(place, check_approximation(fit, likelihood, len(likelihood.measure), CHECKED, rng, moves))
        told = np.concatenate(effects, axis=1) if self.covariates else None
        return Posterior(np.concatenate(fields, axis=1), np.concatenate(scales, axis=1), notes, told).mixed(rng)

    def _likeliest(self, scores: dict[int, float]) -> list[int]:
        """Priors that are averaged over, the likeliest first; NUTS has few runs, and an even field beside them."""
        kept = sorted(scores, key=scores.__getitem__, reverse=True)[:MOST_PRIORS]
        kept = [place for place in kept if scores[place] - scores[kept[0]] >= FORGOTTEN]
        if self.inference != "nuts":
            return kept
        uneven = [place for place in kept if place < len(self.combined)][:MOST_RUNS]
        return [place for place in kept if place in uneven or place == len(self.combined)]

    def _chains(
        self, fit: LatticePosterior, k: int, wide: "scipy.sparse.csr_array", rng: np.random.Generator
    ) -> tuple[Floats, Floats, Diagnostics | None]:
        """(chains, k, V) fields by NUTS, their (chains, k, p) effects, and what is known of the run.

        Integrals over splines of a field that is linear between its vertices are the masses that it was drawn for.
        """
        density = MovedDensity.about(fit)
        masses = VertexMasses(self.measure, fit.likelihood.law.n)
        some = np.flatnonzero(self.measure)
        places = some[watched(len(some))]

        def monitored(fields: Floats) -> Floats:
            return np.log(masses.vertex_masses(self.at_vertices(fields))[:, places])

        z, passed = moved_run(density, monitored, k, rng, self.engine)
        bent = [
            with_masses(each, (wide @ masses.vertex_masses(each).T).T, wide, self.rule, masses.n)
            for each in (self.at_vertices(density.fields(chain)) for chain in z)
        ]
        scale = 1.0 if self.covariates is None else self.covariates.prior_sd
        return np.stack(bent), density.effects(z) * scale, passed

    def _scores(self, likelihood: MovedLikelihood, rng: np.random.Generator, say: Progress) -> dict[int, float]:
        """Logarithms of the weights of priors that were tried, up to a constant, by their numbers in `scales`."""
        halves, tried = Halves.of(likelihood, rng), 0
        lengths = tuple(map(len, self.lists.values()))

        def judge(place: Place, near: Judged | None) -> Judged:
            nonlocal tried
            tried += 1
            values = (f"{name} {each[k]:.4g}" for (name, each), k in zip(self.lists.items(), place, strict=True))
            say(Step(f"field of {', '.join(values)}", min(0.5, tried / 40)))
            number = int(np.ravel_multi_index(place, lengths))
            return halves.judge(lambda half: self.prior_at(half, number), near)

        found = climbed(judge, lengths, self.first)
        scores = {int(np.ravel_multi_index(place, lengths)): score for place, score in found.items()}
        if self.even:
            last = len(self.scales) - 1
            scores[last] = halves.judge(lambda half: self.prior_at(half, last)).score + float(np.log(EVEN))
        return scores

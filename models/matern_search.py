"""Search over ranges and smoothness of a Matern field by evidence, in a fraction of the time on a coarser mesh."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import TypeVar

import numpy as np
import scipy

from dpppsynth.core.errors import QualityError
from dpppsynth.core.progress import Progress, Step
from dpppsynth.models.likelihood import MassLikelihood
from dpppsynth.models.regular_meshes import regular_triangulation
from dpppsynth.models.sparse_fields import SparseField, SparseMatern, moved
from dpppsynth.models.sparse_posterior import SparsePosterior, sparse_posterior
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Floats, Mesh

# A prior with less posterior weight than this is left out of the average.
NEGLIGIBLE = 0.01
# Where the search over ranges begins: about six spacings of the tents. Longer ranges take larger factors.
FIRST = 2
# Vertices of a field up to which it is not worth while to search on a coarser mesh.
FEW = 2500
# Ranges that are tried for each smoothness, about.
TRIED = 4
# Logarithm of the weight below which a prior is left out of the average.
FORGOTTEN = float(np.log(NEGLIGIBLE))
# Smoothness and range.
Key = tuple[float, float]
K = TypeVar("K")


@dataclass(frozen=True, eq=False)
class MaternSearch:
    """Posteriors of a Matern field under priors of several ranges and smoothness.

    Attributes
    ----------
    likelihood : MassLikelihood
        Of the field at the vertices of `mesh`.
    mesh : Mesh
    sigma : float
    smoothness, ranges : sequences of float
        In increasing order.
    centre : float
        Prior mean of the field.
    intercept_sd : float or None
        Standard deviation of an intercept, where there is one.
    say : callable
        Told in words what is going on.
    start : (V,) array, optional
        Field from which the first mode is searched.
    unknowns : Mesh, optional
        Mesh on which the unknowns live, where it is another; between its vertices the field is linear.
    explained : callable
        Adds the effects of covariates to a prior.
    """

    likelihood: MassLikelihood
    mesh: Mesh
    sigma: float
    smoothness: Sequence[float]
    ranges: Sequence[float]
    centre: float
    intercept_sd: float | None
    say: Progress
    start: Floats | None = None
    unknowns: Mesh | None = None
    explained: Callable[[SparseField], SparseField] = lambda prior: prior

    def posteriors(self) -> dict[Key, SparsePosterior]:
        """Posteriors of priors with enough evidence to matter.

        A finer field changes the evidence of all ranges by about as much. So a range that lies further below the best
        on the coarser mesh than the best one changes is not tried on the fine one.
        """
        coarse = coarser(self.mesh)
        if coarse is None:
            return non_negligible(self.climb()[0])
        rough, evidence = replace(self, unknowns=coarse).climb()
        keys = sorted(evidence, key=evidence.__getitem__, reverse=True)
        start = rough[keys[0]].field_mode
        del rough  # factors are large
        first = self.posterior(keys[0], start)
        change = max(abs(first.log_evidence - evidence[keys[0]]), -FORGOTTEN)
        likely = [key for key in keys[1:] if evidence[key] + change >= evidence[keys[0]]]
        found = {keys[0]: first}
        for k, key in enumerate(likely, 1):
            found[key] = self.posterior(key, first.field_mode, k / (1 + len(likely)))
        return non_negligible(found)

    def climb(self) -> tuple[dict[Key, SparsePosterior], dict[Key, float]]:
        """Posteriors that matter around the maximum of the evidence, and all evidence that was computed."""
        fits: dict[Key, SparsePosterior] = {}
        seen: dict[Key, float] = {}

        def evidence(smoothness: float, place: tuple[float, ...]) -> float:
            key = smoothness, place[0]
            near = next(iter(fits.values())).field_mode if fits else self.start
            fit = self.posterior(key, near, min(0.9, len(seen) / (TRIED * len(self.smoothness))))
            kept = non_negligible(fits | {key: fit})
            fits.clear()
            fits.update(kept)
            seen[key] = fit.log_evidence
            return fit.log_evidence

        for smoothness in self.smoothness:
            first = min(FIRST, len(self.ranges) - 1)
            climb_grid(partial(evidence, smoothness), (self.ranges,), (first,))
        return fits, seen

    def posterior(self, key: Key, start: Floats | None, share: float | None = None) -> SparsePosterior:
        """Posterior under one prior, found from a field (V,) on, when a share of the search is done."""
        smoothness, range_ = key
        mesh = self.unknowns or self.mesh
        words = f"field of {len(mesh.vertices)} vertices, range {range_:.4g} and smoothness {smoothness:g}"
        self.say(Step(words, share))
        prior: SparseField = SparseMatern(self.sigma, range_, smoothness).on(mesh)
        prior = prior if self.intercept_sd is None else prior.with_intercept(self.intercept_sd)
        prior = prior if self.unknowns is None else moved(prior, self._basis)
        return sparse_posterior(self.likelihood, self.explained(prior), self.centre, start=start)

    @cached_property
    def _basis(self) -> "scipy.sparse.csr_array":
        return (self.unknowns or self.mesh).basis(self.mesh.positions)


def coarser(mesh: Mesh) -> Mesh | None:
    """Triangles over a mesh's box with half the vertices along each side; none where it is small or not regular."""
    if len(mesh.vertices) <= FEW or mesh.recipe["builder"] != "regular":
        return None
    box = Window.rectangle(*mesh.positions.min(axis=0), *mesh.positions.max(axis=0))
    nx, ny = (count // 2 + 1 for count in mesh.recipe["shape"])
    return regular_triangulation(box, shape=(nx, ny))


def non_negligible(fits: dict[K, SparsePosterior]) -> dict[K, SparsePosterior]:
    """Posteriors of priors with enough evidence to matter; others are dropped, since their factors are large."""
    best = max(fit.log_evidence for fit in fits.values())
    return {key: fit for key, fit in fits.items() if fit.log_evidence - best >= FORGOTTEN}


def averaged_mode(fit: Callable[[float, Floats | None], SparsePosterior | None], ranges: Sequence[float]) -> Floats:
    """(V,) field at the mode, averaged over ranges by evidence.

    Parameters
    ----------
    fit : callable
        From a range, and the mode under another one if there is one, to the posterior; None where none is found.
    ranges : sequence of float
        In increasing order; the best is climbed to from the third.

    Raises
    ------
    QualityError
        When no posterior is found.
    """
    fits: list[SparsePosterior] = []

    def evidence(place: tuple[float, ...]) -> float:
        found = fit(place[0], fits[-1].field_mode if fits else None)
        if found is None:
            return -np.inf
        fits.append(found)
        return found.log_evidence

    climb_grid(evidence, (ranges,), (FIRST,))
    if not fits:
        msg = "fit: no posterior mode of the field was found"
        raise QualityError(msg)
    weight = scipy.special.softmax([each.log_evidence for each in fits])
    weight = np.where(weight < NEGLIGIBLE, 0.0, weight)
    return np.average([each.field_mode for each in fits], axis=0, weights=weight)


def climb_grid(
    height: Callable[[tuple[float, ...]], float], axes: Sequence[Sequence[float]], first: tuple[int, ...]
) -> None:
    """Ascend from a place to a local maximum over a grid, one axis after the other, evaluating no place twice."""
    seen: dict[tuple[int, ...], float] = {}

    def at(place: tuple[int, ...]) -> float:
        if not all(0 <= k < len(axis) for k, axis in zip(place, axes, strict=True)):
            return -np.inf
        if place not in seen:
            seen[place] = height(tuple(axis[k] for k, axis in zip(place, axes, strict=True)))
        return seen[place]

    def ascend(here: tuple[int, ...], axis: int, way: int) -> tuple[int, ...]:
        there = (*here[:axis], here[axis] + way, *here[axis + 1 :])
        return ascend(there, axis, way) if at(there) > at(here) else here

    here = first
    at(here)
    before: tuple[int, ...] = ()
    while here != before:
        before = here
        for axis, way in product(range(len(axes)), (1, -1)):
            here = ascend(here, axis, way)

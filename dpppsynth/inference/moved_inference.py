"""`MovedInference`: a Matern field behind counts of moved points on a lattice."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, Self, cast

import numpy as np
import scipy
from numpy.typing import NDArray

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.contract.estimator import covariate_rows, covariates_of, offset_rows
from dpppsynth.contract.statistic import mesh_words, require
from dpppsynth.core.arguments import flag, one_of
from dpppsynth.core.errors import InputError, QualityError
from dpppsynth.core.progress import Progress, Step
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.inference.field_inference import (
    EVEN,
    NO_RANGE,
    FieldInference,
    apportion,
    field_mesh,
    require_somewhere,
)
from dpppsynth.inference.posterior import FitNotes, Posterior
from dpppsynth.inference.sparse_inference import FEWEST_DRAWS, INFERENCES, LONGEST, SHORTEST, require_increasing
from dpppsynth.models.covariances import LARGEST_PARAMETER, SMALLEST_PARAMETER
from dpppsynth.models.matern_search import FORGOTTEN
from dpppsynth.models.moved_posterior import (
    Halves,
    Judged,
    LatticePosterior,
    MovedLikelihood,
    climbed,
    lattice_mode,
    moved_likelihood,
)
from dpppsynth.models.spectral_fields import SpectralField
from dpppsynth.spatial.covariates import Design
from dpppsynth.spatial.mesh import Floats, Ints, Mesh
from dpppsynth.spatial.offset import Offset

# Draws at most, and numbers of a saved posterior, about.
MOST_DRAWS, KEPT_NUMBERS = 200, 2_000_000


@dataclass(frozen=True, eq=False, repr=False)
class MovedInference(FieldInference):
    """Prior of a Matern field of smoothness 1, chosen by how well one half of the moved points foretells the other.

    Attributes
    ----------
    mesh : Mesh
        The regular triangulation at whose vertices moved points were counted.
    ranges : tuple of float
        In increasing order.
    sigmas : tuple of float
        Standard deviations of the field, in increasing order; priors are those of all ranges with each.
    offset : Offset, optional
        Public base intensity.
    inference : {"laplace"}
    even : bool
        Whether an even field is one more prior; with covariates one that is even but for their effects.
    covariates : Design, optional
        Public covariates at the mesh's vertices.
    """

    mesh: Mesh
    ranges: tuple[float, ...]
    sigmas: tuple[float, ...]
    offset: Offset | None = None
    inference: str = "laplace"
    even: bool = False
    covariates: Design | None = None
    kind: ClassVar[str] = "moved"
    adjustable: ClassVar[frozenset[str]] = frozenset({"ranges", "sigmas", "inference", "even"})

    def __post_init__(self) -> None:
        longest = LONGEST * self.mesh.domain.extent
        require_increasing("ranges", self.ranges, SHORTEST * longest, longest)
        require_increasing("sigmas", self.sigmas, SMALLEST_PARAMETER, LARGEST_PARAMETER)
        for name in ("ranges", "sigmas"):
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))
        one_of("inference", self.inference, INFERENCES)
        flag("even", self.even)
        require_somewhere(self.measure)

    @property
    def scales(self) -> tuple[float, ...]:
        return self.ranges * len(self.sigmas) + self.even * (NO_RANGE,)

    def __repr__(self) -> str:
        return f"MovedInference({self.mesh!r}, ranges={self.ranges}, sigmas={self.sigmas})"

    def require(self, plan: LatticeStatistic) -> None:
        if not all(hasattr(plan, name) for name in ("rate", "extension", "shape")):
            msg = "prior: this field stands behind counts of moved points alone; take mechanism 'moved'."
            raise InputError(msg)

    def likelihood(self, statistic: PrivateStatistic[LatticeStatistic]) -> MovedLikelihood:
        """Likelihood of the field at the nodes of the lattice."""
        plan = cast(Any, statistic.definition)
        wide = tuple(side + 2 * plan.extension for side in plan.shape)
        measure = np.zeros(plan.shape[0] * plan.shape[1])
        measure[self.nodes] = self.measure
        return moved_likelihood(
            statistic.lattice.reshape(wide),
            measure.reshape(plan.shape),
            rate=plan.rate,
            spacing=self.spacing,
            shape=tuple(plan.shape),
            extension=plan.extension,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Nodes of the lattice along both axes."""
        nx, ny = self.mesh.recipe["shape"]
        return nx, ny

    @property
    def spacing(self) -> tuple[float, float]:
        """Distances of the nodes along both axes."""
        x0, y0, x1, y1 = self.mesh.domain.bounds
        nx, ny = self.shape
        return (x1 - x0) / (nx - 1), (y1 - y0) / (ny - 1)

    @property
    def nodes(self) -> Ints:
        """(V,) nodes of the lattice, in C order, at which the vertices are."""
        i, j = np.rint((self.mesh.vertices - self.mesh.domain.bounds[:2]) / self.spacing).astype(np.int64).T
        return np.asarray(i * self.shape[1] + j)

    def prior(self, sigma: float, range_: float) -> SpectralField:
        """Prior of the field at the nodes."""
        columns = None
        if self.covariates is not None:
            if self.covariates.values is None:
                msg = "covariates: the release states their fingerprint alone; take one that was opened with its files."
                raise QualityError(msg)
            columns = np.zeros((self.shape[0] * self.shape[1], len(self.covariates.names)))
            columns[self.nodes] = self.covariates.values * self.covariates.prior_sd
        return SpectralField(self.shape, self.spacing, sigma, range_, columns)

    def _fit(self, statistic: PrivateStatistic[LatticeStatistic], rng: np.random.Generator, say: Progress) -> Posterior:
        self.require(statistic.definition)
        likelihood = self.likelihood(statistic)
        judged = self._judged(likelihood, rng, say)
        best = max(each.score for each in judged.values())
        kept = [place for place, each in judged.items() if each.score - best >= FORGOTTEN]
        draws = int(np.clip(KEPT_NUMBERS // len(self.mesh.vertices), FEWEST_DRAWS, MOST_DRAWS))
        weights = scipy.special.softmax(np.array([judged[place].score for place in kept]))
        notes = FitNotes.unknown(self.scales)
        notes.weight[:] = 0.0
        fields: list[NDArray[np.float32]] = []
        effects: list[Floats] = []
        scales: list[Floats] = []
        for place, k in zip(kept, apportion(weights, draws), strict=True):
            say(Step("draws", len(fields) / len(kept)))
            fit = lattice_mode(likelihood, judged[place].prior, judged[place].middle)
            drawn, own = self._drawn(fit, int(k), rng)
            fields.append(self.normalise(drawn, statistic.definition.n))
            effects.append(own)
            scales.append(np.full(k, self.scales[place]))
            notes.weight[place] = k / draws
        found = Posterior(
            np.concatenate(fields)[None],
            np.concatenate(scales)[None],
            notes,
            np.concatenate(effects)[None] if self.covariates else None,
        )
        return found.mixed(rng)

    @property
    def priors(self) -> list[SpectralField]:
        """Priors, in the order of `scales`."""
        found = [self.prior(sigma, range_) for sigma, range_ in product(self.sigmas, self.ranges)]
        return [*found, self.prior(0.0, self.ranges[0])] if self.even else found

    def _judged(self, likelihood: MovedLikelihood, rng: np.random.Generator, say: Progress) -> dict[int, Judged]:
        """Priors that were tried, by their places in `scales`; the even one with its share before the data."""
        halves, priors, tried = Halves.of(likelihood, rng), self.priors, 0

        def judge(place: tuple[int, ...], near: Judged | None) -> Judged:
            nonlocal tried
            tried += 1
            prior = priors[place[0] * len(self.ranges) + place[1]]
            say(Step(f"field of range {prior.range:.4g}, sigma {prior.sigma:.3g}", min(0.9, tried / 12)))
            return halves.judge(prior, near)

        lengths = len(self.sigmas), len(self.ranges)
        found = climbed(judge, lengths, ((lengths[0] - 1) // 2, (lengths[1] - 1) // 2))
        judged = {place[0] * len(self.ranges) + place[1]: each for place, each in found.items()}
        if self.even:
            even = halves.judge(priors[-1])
            judged[len(priors) - 1] = replace(even, score=even.score + float(np.log(EVEN)))
        return judged

    def _drawn(self, fit: LatticePosterior, k: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """(k, V) draws of the field at the vertices, and their (k, p) effects."""
        unknowns = fit.mode + fit.deviations(k, rng)
        scale = 1.0 if self.covariates is None else self.covariates.prior_sd
        return fit.prior.field(unknowns)[:, self.nodes], fit.prior.effects_of(unknowns) * scale

    def table_rows(self) -> Rows:
        sigmas = " or ".join(f"{each:g}" for each in self.sigmas)
        return [
            ("field", f"Matern, sigma {sigmas}, smoothness 1, on {mesh_words(self.mesh)}"),
            ("ranges", ", ".join(f"{each:.4g}" for each in self.ranges) + self.even * ", or an even field"),
            ("inference", self.inference),
            *offset_rows(self.offset),
            *covariate_rows(self.covariates),
        ]

    def public_numbers(self) -> JsonObject:
        return {
            "field_vertices": len(self.mesh.vertices),
            "field_sigmas": self.sigmas,
            "ranges": self.ranges,
            "inference": self.inference,
        }

    def to_dict(self) -> JsonObject:
        return super().to_dict() | {"covariates": None if self.covariates is None else self.covariates.to_dict()}

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: LatticeStatistic, offset: Offset | None) -> Self:
        mesh = field_mesh(stated["mesh"], plan.mesh)
        require(mesh is plan.mesh, "the field lives where moved points are counted")
        return cls(mesh=mesh, **cls.stated_settings(stated), offset=offset, covariates=covariates_of(stated))

"""`PrecisionInference`: a Gaussian prior of one's own behind noisy masses, given by a sparse precision matrix."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import numpy as np
import scipy

from dpppsynth.contract.additive_noise import LaplaceMasses, LatticeStatistic, PrivateStatistic
from dpppsynth.contract.estimator import Beside
from dpppsynth.contract.mesh_sizes import mesh_words
from dpppsynth.contract.statistic import require
from dpppsynth.core.arguments import one_of
from dpppsynth.core.errors import InputError, QualityError
from dpppsynth.core.progress import Progress
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.models.likelihood import NoisyMasses
from dpppsynth.models.sparse_fields import SparseField, field_of_precision
from dpppsynth.models.sparse_posterior import sparse_posterior
from dpppsynth.release.estimators import DIGEST, offset_of, offset_rows
from dpppsynth.release.field_inference import INTERCEPT_SD, NO_RANGE, files_beside
from dpppsynth.release.posterior import Posterior
from dpppsynth.release.sparse_inference import INFERENCES, SparseInference
from dpppsynth.spatial.domains import canonical_json
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.offset import Offset, require_somewhere

# Settings on a certificate.
STATED = {"kind", "mesh", "precision", "offset", "inference"}


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
    inference : {"laplace"}
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
    inference: str = "laplace"
    digest: str = ""
    kind: ClassVar[str] = "precision"
    adjustable: ClassVar[frozenset[str]] = frozenset({"precision", "inference"})

    def __post_init__(self) -> None:
        one_of("inference", self.inference, INFERENCES)
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
        """A number for each prior, in the place of a range."""
        return (NO_RANGE,)

    def require(self, plan: LatticeStatistic) -> None:
        """Refuse statistics other than noised masses of tents on its mesh."""
        same = canonical_json(plan.mesh.recipe) == canonical_json(self.mesh.recipe)
        if not isinstance(plan, LaplaceMasses) or plan.basis != "tents" or not same:
            msg = "covariance: a precision of one's own stands behind noised tents on its mesh; give that as mesh=."
            raise InputError(msg)

    def _fit(self, statistic: PrivateStatistic[LatticeStatistic], rng: np.random.Generator, say: Progress) -> Posterior:
        if self.precision is None:
            msg = f"precision: the release states its digest alone; give the matrix {self.digest[:12]}, or another."
            raise QualityError(msg)
        plan = statistic.plan
        self.require(plan)
        # Noised tents have this likelihood.
        likelihood = cast(NoisyMasses, plan.likelihood(statistic, self.measure, self.mesh.shares(plan.mesh)))
        say("field of a given precision")
        fit = sparse_posterior(likelihood, self._prior(plan), self.centre(plan))
        say("draws")
        return self.average({0: fit}, likelihood, rng)

    def _prior(self, plan: LatticeStatistic) -> SparseField:
        """Prior at the vertices, with an intercept where n is secret."""
        return self._field if plan.n is not None else self._field.with_intercept(INTERCEPT_SD)

    @cached_property
    def _field(self) -> SparseField:
        """Prior at the vertices, which is factored once."""
        return field_of_precision(self.precision, self.mesh)

    def table_rows(self) -> Rows:
        """Prior and inference."""
        return [
            ("field", f"Gaussian, precision {self.digest[:12]}, on {mesh_words(self.mesh)}"),
            ("inference", self.inference),
            *offset_rows(self.offset),
        ]

    def public_numbers(self) -> JsonObject:
        """Size of the field and the way of inference."""
        return {"field_vertices": len(self.mesh.vertices), "precision": self.digest, "inference": self.inference}

    def to_dict(self) -> JsonObject:
        """JSON form, as it stands on a certificate."""
        return {
            "kind": self.kind,
            "mesh": self.mesh.recipe,
            "precision": self.digest,
            "offset": None if self.offset is None else self.offset.fingerprint,
            "inference": self.inference,
        }

    @classmethod
    def beside(cls, stated: JsonRead, plan: LatticeStatistic) -> Beside:
        """The posterior draws, and the offset where there is one."""
        require(stated.keys() == STATED, f"a field of a given precision states exactly {', '.join(sorted(STATED))}")
        same = canonical_json(stated["mesh"]) == canonical_json(plan.mesh.recipe)
        require(same, "the mesh of a given precision is the statistic's")
        digest = stated["precision"]
        require(isinstance(digest, str) and DIGEST.fullmatch(digest) is not None, "the precision is a SHA-256")
        model = cls.from_dict(stated, plan, None)
        model.require(plan)
        return files_beside(model.mesh, model.scales, offset_of(stated))

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: LatticeStatistic, offset: Offset | None) -> Self:
        """The model that is stated, without the matrix."""
        return cls(plan.mesh, None, offset, stated["inference"], stated["precision"])


def fingerprint(precision: "scipy.sparse.csc_array") -> str:
    """SHA-256 of a sparse matrix: its columns' starts, rows and values."""
    matrix = scipy.sparse.csc_array(precision, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    parts = (matrix.indptr.astype("<i8"), matrix.indices.astype("<i8"), matrix.data.astype("<f8"))
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()

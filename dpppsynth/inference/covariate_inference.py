"""`CovariateInference`: settings of all fields that covariates may explain, but dense ones."""

from dataclasses import dataclass
from typing import Any

from dpppsynth.contract.estimator import covariate_rows, covariates_of, offset_rows
from dpppsynth.core.arguments import flag, one_of
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.inference.field_inference import INFERENCES, FieldInference
from dpppsynth.models.nuts import ENGINES
from dpppsynth.spatial.covariates import Design


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CovariateInference(FieldInference):
    """Base of estimators by a field of sparse precision, or behind moved points.

    Attributes
    ----------
    inference : {"laplace", "nuts"}
    engine : {"nutpie", "pymc"}
        Implementation of NUTS.
    even : bool
        Whether an even field is one more prior; with covariates one that is even but for their effects.
    covariates : Design, optional
        Public covariates at the vertices in space, averaged along segments, with the same effects at all times and for
        all types.
    """

    inference: str = "laplace"
    engine: str = "nutpie"
    even: bool = False
    covariates: Design | None = None

    def require_inference(self) -> None:
        """Refuse unknown names, and NUTS on a field larger than it takes; InputError."""
        one_of("inference", self.inference, INFERENCES)
        one_of("engine", self.engine, ENGINES)
        flag("even", self.even)

    def to_dict(self) -> JsonObject:
        stated = super().to_dict() | {"covariates": None if self.covariates is None else self.covariates.to_dict()}
        return stated if self.inference == "nuts" else {name: stated[name] for name in stated if name != "engine"}

    @classmethod
    def stated_settings(cls, stated: JsonRead) -> dict[str, Any]:
        own = super().stated_settings({"engine": ENGINES[0], **stated})
        return own | {"covariates": covariates_of(stated)}

    def public_rows(self) -> Rows:
        """Rows of a table with the public layers."""
        return [*offset_rows(self.offset), *covariate_rows(self.covariates)]

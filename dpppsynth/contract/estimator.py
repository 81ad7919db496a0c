"""`Estimator`: from what was measured to an intensity, as post-processing."""

from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.contract.statistic import Following, Parameters, Statistic
from dpppsynth.core.types import Json, JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.intensity import Intensity
from dpppsynth.spatial.offset import Offset

P_contra = TypeVar("P_contra", bound=Statistic, contravariant=True)


class Beside(NamedTuple):
    """Files that an estimator brings into a release, beside domain, statistic and synthetic patterns."""

    files: frozenset[str] = frozenset()
    # Fingerprint of the public offset.
    offset: str | None = None
    following: tuple[Following, ...] = ()


class Estimator(Generic[P_contra]):
    """Base of estimators for a kind of plan: free to fail and to be run again, since nothing is spent.

    Attributes
    ----------
    kind : str
        Name on certificates.
    """

    kind: ClassVar[str]
    # Whether the intensity is an average over posterior draws, which `finish` brings into a release.
    has_posterior: ClassVar[bool] = False

    def require(self, plan: P_contra) -> None:
        """Refuse, from public parameters, a measurement that it makes no intensity of.

        Raises
        ------
        InputError
        """

    def intensity(self, statistic: PrivateStatistic[P_contra]) -> Intensity:
        """Intensity from what was measured."""
        raise NotImplementedError

    def table_rows(self) -> Rows:
        """The estimator in words, for the table of `dpppsynth check`; its JSON form unless said better."""
        return [("intensity", ", ".join(f"{name} {value}" for name, value in self.to_dict().items()))]

    def public_numbers(self) -> JsonObject:
        """Public numbers beside those of the measurement, by name, for recommendations."""
        return {}

    def to_dict(self) -> JsonObject:
        """JSON form, as it stands on a certificate."""
        return {"kind": self.kind}

    @classmethod
    def beside(cls, stated: JsonRead, plan: P_contra) -> Beside:
        """Files beside a release that states this estimator; anything but exactly its settings is refused.

        Raises
        ------
        InputError
        """
        raise NotImplementedError

    @classmethod
    def work(cls, stated: Json, parameters: Parameters, domain: Domain) -> float:
        """Work of `beside` on top of the measurement's, as in `Statistic.work`."""
        return 0.0

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: P_contra, offset: Offset | None) -> Self:
        """The estimator that `beside` found to be stated, with the offset of the release."""
        raise NotImplementedError


# The estimator of a plan, where it is not said of which: the mechanism's record has it fit the plan's measurement.
AnyEstimator = Estimator[Any]

"""`Estimator`: from what was measured to an intensity, as post-processing."""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

from dpppsynth.contract.measurement import Following, Measurement, Parameters, Rows
from dpppsynth.contract.result import Result
from dpppsynth.core.progress import Progress
from dpppsynth.core.randomness import RngLike
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.intensity import Intensity
from dpppsynth.spatial.offset import Offset


class Beside(NamedTuple):
    """Files that an estimator brings into a release, beside domain, statistic and synthetic patterns."""

    files: frozenset[str] = frozenset()
    # Fingerprint of the public offset.
    offset: str | None = None
    following: tuple[Following, ...] = ()


class Estimator:
    """Base of estimators: free to fail and to be run again, since nothing is spent.

    Attributes
    ----------
    kind : str
        Name on certificates.
    """

    kind: ClassVar[str]
    # Whether the intensity is an average over posterior draws, which `finish` brings into a release.
    has_posterior: ClassVar[bool] = False

    def require(self, plan: Measurement) -> None:
        """Refuse, from public parameters, a measurement that it makes no intensity of.

        Raises
        ------
        InputError
        """

    def intensity(self, measured: Any) -> Intensity:
        """Intensity from what was measured."""
        raise NotImplementedError

    def finish(self, release: Result, rng: RngLike, progress: Progress | None) -> Result:
        """The release with all that is to be inferred, once the ledger knows of the measurement."""
        return release

    def draws(self, content: bytes | None) -> Any:
        """Posterior draws in the file of a saved release, where there is one."""
        return None

    def table_rows(self) -> Rows:
        """The estimator in words, for the table of `dpppsynth check`; its JSON form unless said better."""
        return [("intensity", ", ".join(f"{name} {value}" for name, value in self.to_dict().items()))]

    def public_numbers(self) -> dict[str, Any]:
        """Public numbers beside those of the measurement, by name, for recommendations."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """JSON form, as it stands on a certificate."""
        return {"kind": self.kind}

    @classmethod
    def beside(cls, stated: Mapping[str, Any], plan: Measurement) -> Beside:
        """Files beside a release that states this estimator; anything but exactly its settings is refused.

        Raises
        ------
        InputError
        """
        raise NotImplementedError

    @classmethod
    def work(cls, stated: Any, parameters: Parameters, domain: Domain) -> float:
        """Work of `beside` on top of the measurement's, as in `Measurement.work`."""
        return 0.0

    @classmethod
    def from_dict(cls, stated: Mapping[str, Any], plan: Measurement, offset: Offset | None) -> Self:
        """The estimator that `beside` found to be stated, with the offset of the release."""
        raise NotImplementedError

"""`Result`: what tools ask of a release, whichever mechanism made it."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.spatial.domains import Domain


class Result(Protocol):
    """A certified result: everything in it is public."""

    @property
    def mechanism(self) -> str:
        """For instance "lgcp-tents"."""

    @property
    def warning(self) -> str | None:
        """Reason why it must not be released, if there is one."""

    @property
    def domain(self) -> Domain:
        """Public window or network."""

    @property
    def guarantee(self) -> Guarantee:
        """The bound that was proved."""

    @property
    def noise(self) -> str:
        """Sampler and entropy of the randomness that protects."""

    @property
    def seeded(self) -> bool:
        """True when that randomness can be reproduced."""

    @property
    def entry(self) -> str | None:
        """Name of its authorisation in a ledger."""

    def parameters(self) -> dict[str, Any]:
        """Public parameters, as they stand on the certificate."""

    def bought(self) -> dict[str, str]:
        """Text of the files that hold what the budget was spent on, by name: sampling leaves them as they are."""

    def stated(self) -> dict[str, Any]:
        """The certificate, saved or not, with the files that were paid for alone."""


class ResultType(Protocol):
    """Class of the results of a mechanism."""

    def of(self, mechanism: str, measured: Any, estimator: Any, *, entry: str | None = None) -> Result:
        """The release of what was measured, before anything is inferred from it."""

    def opened(self, plan: Any, saved: Any) -> Result:
        """A saved release; `dpppsynth.release.folder` says what its plan and files are."""


# Class of the results of releases by the levels of a mark: mark, results, joint guarantee and ledger entry.
StratifiedType = Callable[[str, Mapping[str, Result], Guarantee, str | None], Result]

"""`Release`: the interface of all releases."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Protocol

from dpppsynth.privacy.bounds import Size
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.release import certificate
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.patterns import PointPattern


class Saveable(Protocol):
    """Interface of results that are saved into a folder."""

    @property
    def mechanism(self) -> str:
        """Name of the mechanism, for instance "lgcp-tents"."""

    @property
    def warning(self) -> str | None:
        """Reason why it must not be released, or None."""

    @property
    def domain(self) -> Domain:
        """Public window."""

    @property
    def guarantee(self) -> Guarantee:
        """The proved guarantee."""

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


# Name of the domain's file in a saved release.
DOMAIN = "domain.geojson"


def state(release: Saveable, hashes: Mapping[str, str]) -> dict[str, Any]:
    """The certificate of a release whose files have the given SHA-256, by name."""
    domain = release.domain
    place = {"file": DOMAIN, "fingerprint": domain.fingerprint(), "crs": domain.crs, "unit": domain.unit}
    scale = {} if domain.stated_scale is None else {"scale_factor": domain.stated_scale}
    return certificate.build(
        mechanism=release.mechanism,
        parameters=release.parameters(),
        guarantee=release.guarantee,
        domain=place | scale,
        noise=release.noise,
        seeded=release.seeded,
        warning=release.warning,
        hashes=hashes,
        entry=release.entry,
    )


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """Base of all results: everything in it is public.

    Attributes
    ----------
    mechanism : str
        For instance "lgcp-tents".
    statistic : PrivateStatistic or PrivatePatterns
        The private result that the budget was spent on.
    entry : str or None
        Name of its authorisation in a ledger.
    """

    mechanism: str
    statistic: Any
    _: KW_ONLY
    entry: str | None = None

    def __repr__(self) -> str:
        tail = ", seeded: not private" if self.seeded else ""
        spent = f"epsilon={self.guarantee.epsilon():.4g}"
        delta = self.guarantee.profile.at
        spent += f", delta={delta:g}" if delta else ""
        return f"{type(self).__name__}({self.mechanism}, {spent}, {self.domain!r}{tail})"

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee, proved from public parameters before the data were touched."""
        return self.statistic.plan.guarantee

    @property
    def domain(self) -> Domain:
        """Public window."""
        return self.statistic.plan.domain

    @property
    def seeded(self) -> bool:
        """True when the noise was reproducible: then the release is not private."""
        return self.statistic.seeded

    @property
    def noise(self) -> str:
        """Sampler and entropy of the randomness that protects."""
        return self.statistic.noise

    @property
    def warning(self) -> str | None:
        """Reason why it must not be released: a delta of 1/n or more promises nothing."""
        return certificate.large_delta(self.guarantee.profile.at, [self.size])

    @property
    def size(self) -> Size:
        """Number of points where it is public, else None; and the public guess of it, if any."""
        return self.statistic.plan.n, self.statistic.plan.expected_n

    def parameters(self) -> dict[str, Any]:
        """Public parameters, as they stand on the certificate."""
        return self.statistic.plan.parameters()

    def _save(self, path: str | Path, patterns: list[PointPattern]) -> Path:
        from dpppsynth.release.folder import save

        return save(self, Path(path), patterns)

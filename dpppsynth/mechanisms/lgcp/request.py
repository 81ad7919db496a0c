"""`LGCPRequest`: a synthesizer's settings with the public facts of one release, and what plans settle from them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dpppsynth.contract import rules
from dpppsynth.contract.synthesizer import covering, exact_or_guess, safe_digits
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.mechanisms.lgcp.lgcp_settings import LGCPSettings
from dpppsynth.models.covariances import Covariance, PoweredExponential
from dpppsynth.privacy.profiles import gaussian_mu
from dpppsynth.privacy.relations import CappedRelation
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Mesh

# Points from which on a field of sparse precision stands behind noised tents: finer than dense matrices allow.
SPARSE_FROM = 1000
# Share of its box that a window then fills at least: the field lives on all of the box.
FILLED = 0.5


@dataclass(frozen=True)
class LGCPRequest:
    """A synthesizer's settings with the public facts of one release."""

    settings: LGCPSettings
    domain: Domain
    n: int | None
    size: float

    @property
    def rules(self) -> Any:
        """Default rules of this kind of domain."""
        return rules.of(self.domain)

    @property
    def epsilon(self) -> float:
        """Budget of masses or counts."""
        return float(self.settings.epsilon) * (1 - (self.settings.clusters or 0.0))

    def measured(self, basis: str, mesh: Mesh) -> tuple[str, Mesh, CappedRelation, int | None, float | None, float]:
        """AuditStatistic, mesh, relation, sizes and budget, in the order of the arguments of statistics' plans."""
        s = self.settings
        return basis, mesh, s.neighbouring(), *exact_or_guess(self.n, self.size), float(s.epsilon)

    @property
    def length_scale(self) -> float:
        """The one given, or the rule's."""
        return self.settings.length_scale or self.rules.length_scale(self.domain, self.size)

    @property
    def sparse(self) -> bool:
        """Whether the field behind noised tents has a sparse precision."""
        s = self.settings
        own = s.covariance is not None and not isinstance(s.covariance, Covariance)
        if s.prior == "sparse" or own or s.covariates is not None:
            require_no_nuts(s)
            return True
        if isinstance(self.domain, LinearNetwork):
            return self.free and self.rules.has_streets(self.domain)
        return self.free and self.size >= SPARSE_FROM and self.rules.filled(self.domain) >= FILLED

    @property
    def free(self) -> bool:
        """Whether no setting asks for a dense field behind noised tents."""
        s = self.settings
        return (
            s.covariance is None
            and s.prior == "auto"
            and s.inference != "nuts"
            and s.length_scale is None
            and s.mesh is None
        )

    @property
    def basis(self) -> str:
        """Statistic of mechanism "auto": "cells" on large networks whose streets counts tell apart, else "tents"."""
        s, network = self.settings, self.domain
        own = s.mesh is not None or s.covariance is not None
        if isinstance(network, Window) or own or self.rules.fits_along(network):
            return "tents"
        rule = self.free and self.rules.streets_tell(network, self.size, self.epsilon, s.neighbouring())
        return "cells" if s.prior == "sparse" or s.covariates is not None or rule else "tents"


def require_no_nuts(settings: LGCPSettings) -> None:
    """Refuse NUTS behind a sparse prior."""
    if settings.inference == "nuts":
        msg = "inference: a sparse prior has too many unknowns for NUTS; take 'laplace', or the dense prior."
        raise InputError(msg)


def field_mesh(request: LGCPRequest, rule: Callable[[Domain], Mesh] | None = None) -> Mesh:
    """Mesh of the field that the budget is spent on."""
    if request.settings.mesh is not None:
        return covering(request.domain, request.settings.mesh)
    return (rule or request.rules.draw_mesh)(request.domain)


def settled(request: LGCPRequest) -> tuple[CappedRelation, int | None, float | None, float, float]:
    """CappedRelation, sizes and budget, in the order of the plans' arguments."""
    s = request.settings
    return s.neighbouring(), *exact_or_guess(request.n, request.size), float(s.epsilon), float(s.delta)


def admissible_covariance(
    request: LGCPRequest, mesh: Mesh, largest_sigma: Callable[[Covariance, float], float], cap: float = math.inf
) -> Covariance:
    """The covariance asked for, verified, or the default: the largest admissible sigma, at most `cap`."""
    s = request.settings
    standard = PoweredExponential(1.0, request.length_scale, mesh.smoothest_power)
    shape = standard if s.covariance is None else replace(s.covariance, sigma=1.0)
    largest = largest_sigma(shape, gaussian_mu(s.epsilon, s.delta))
    wanted = s.sigma if s.covariance is None else s.covariance.sigma
    if wanted is None:
        return replace(shape, sigma=min(largest, cap))
    if wanted > largest:
        msg = (
            f"sigma: {wanted:g} at length scale {shape.length_scale:g} does not satisfy (epsilon, delta) = "
            f"({s.epsilon:g}, {s.delta:g}); the largest admissible is {safe_digits(largest)}."
        )
        raise PrivacyCheckError(msg)
    return replace(shape, sigma=float(wanted))

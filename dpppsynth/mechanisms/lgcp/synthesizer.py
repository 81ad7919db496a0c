"""`LGCPSynthesizer`: settings of the log-Gaussian Cox mechanisms, and their choice (docs/mechanisms.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import scipy

from dpppsynth.contract.additive_noise import LatticeStatistic
from dpppsynth.contract.object_options import COVARIATES, OFFSET, RESOLUTION, layers_of, tent_mesh
from dpppsynth.contract.pair_settings import caps_of, increasing_reals, numbers
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.settings import (
    ALPHA,
    DELTA,
    EPSILON,
    EXPERT,
    LARGE_DELTA,
    LENGTH,
    METHOD,
    NEIGHBOURS,
    SPACING,
    ParsedOptions,
    Setting,
    made_of,
    setting,
)
from dpppsynth.contract.stratified_plan import StratifiedPlan, level_names, sizes
from dpppsynth.contract.synthesizer import PointSynthesizer, require_true_lengths
from dpppsynth.core.arguments import elements, one_of, positive, probability, real
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.inference.lgcp_inference import ENGINES, INFERENCES
from dpppsynth.mechanisms.lgcp.covariance_options import COVARIANCE, covariance_of, require_one_covariance
from dpppsynth.mechanisms.lgcp.planning import (
    CLUSTER_PLACES,
    MECHANISMS,
    PRIORS,
    SAMPLERS,
    planned,
    profile_of_budget,
    require_settings,
)
from dpppsynth.models.covariances import Covariance
from dpppsynth.models.sparse_fields import SparseMatern
from dpppsynth.privacy.bounds import PUBLISHED, require_small_delta
from dpppsynth.privacy.catalogue import AVERAGED
from dpppsynth.privacy.guarantee import Guarantee, Profile
from dpppsynth.privacy.relations import CappedRelation
from dpppsynth.release.cox import CoxRelease
from dpppsynth.spatial.covariates import covariates_from
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.offset import Offset, require_offset

MESH = Setting(name="spacing", option="--spacing", kind=float, **SPACING)
# Mechanisms whose posterior is inferred after the private statistic.
INFERRED = ("auto", "tents", "cells", "field")


@dataclass(frozen=True, eq=False)
class LGCPSynthesizer(PointSynthesizer[CoxRelease[LatticeStatistic]]):
    """A log-Gaussian Cox intensity, from a private statistic or as one posterior draw.

    Parameters
    ----------
    epsilon : float
        Budget.
    alpha : float, optional
        Privacy radius in the domain's unit; give it or `relation`.
    mechanism : {"auto", "tents", "cells", "field", "posterior-draw", "lipschitz", "kim-lim-3.8", "kim-lim-3.9"}
        Private quantity. "tents": P1 masses with discrete Laplace noise, delta = 0; "cells": counts along the streets
        of a network, with the same; "field": smooth functionals of the points with discrete Gaussian noise; all are
        followed by Bayesian inference at no privacy cost. "auto" is "tents", or "cells" on a large network with
        enough points to tell its streets apart.
        "posterior-draw": one draw from the posterior, whose own randomness protects; "lipschitz": one under a prior of
        bounded slope, delta = 0. "kim-lim-...": the paper's own, private on average over its model only.
    delta : float
        Second half of the budget; 0 for "tents" and "lipschitz", positive for the others, such as 1e-6.
    sigma : float, optional
        Prior standard deviation of the field that the budget is spent on ("tents" has none); None takes the largest
        admissible one, or for draws the smaller of it and a public rule. A given one is verified.
    length_scale : float, optional
        Of the field, in the domain's unit; None takes a public rule, or averages over public scales where a private
        statistic gives the weights.
    covariance : Covariance, SparseMatern or sparse (V, V) matrix, optional
        Instead of `sigma` and `length_scale`: another kind than the squared exponential, on networks than the
        exponential of the resistance metric. Behind "tents" it is a prior, which costs no budget, and may also be
        a Matern field of sparse precision, or any sparse precision at the vertices of `mesh`.
    sampler : {"auto", "exact", "nuts", "proximal"}
        Sampler of a draw. "auto" is settled by `plan` from public parameters: exact where surrogate data let it
        expect a draw within a minute, else proximal ("lipschitz": else NUTS).
    mesh : Mesh, optional
        Mesh of the tents or of the field; None takes a public rule.
    prior : {"auto", "dense", "sparse"}
        Field behind noised tents. "dense": squared exponential, on networks exponential in the resistance metric;
        "sparse": Matern of sparse precision, as fine as many points allow; on networks one of the plane plus one along
        the streets, whose posterior "cells" always has. "auto": sparse on windows from 1000 points on, and on networks
        of up to some 1500 segments.
    inference : {"auto", "nuts", "laplace"}
        After a private statistic: NUTS in PyMC, or a Laplace approximation (seconds faster, no diagnostics). "auto":
        NUTS behind a dense prior of up to three million points, the approximation otherwise.
    engine : {"nutpie", "pymc"}
        Implementation of NUTS.
    offset : Offset, optional
        Public base intensity, such as population density, that multiplies the fitted one.
    covariates : Covariates or mapping, optional
        Public layers by name, such as the distance to a place, whose effects on the intensity are found with the field
        ("tents" and "cells", sparse prior): `release.effects`.
    clusters : float, optional
        Share of epsilon, such as 0.3, for sums over pairs of near points ("tents" and "cells"). From them follows how
        the points huddle, and synthetic points huddle like them; without, they repeat the intensity alone.
    cluster_radii : sequence of float, optional
        At most 4 increasing radii of these sums, in the domain's unit; None takes a rule of domain, n and epsilon.
    cluster_caps : int or sequence of int, optional
        Most that one point adds to a sum; one for all radii, or one for each.
    cluster_places : {"apart", "shared"}
        "shared" where it is publicly known that several points may lie at one place, such as an address: synthetic
        ones then may as well. The sums alone can hardly tell it from tight clusters.
    relation : CappedRelation, optional
        Neighbouring relation, instead of alpha.
    allow_large_delta : bool
        Accept delta >= 1/n, n being the points of all levels, which promises nothing; only to reproduce published
        experiments.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> window = Window.rectangle(529100, 180680, 529770, 181350, "EPSG:27700")
    >>> LGCPSynthesizer(1.0, alpha=25.0).check(window, n=392).theorem
    'tents'
    """

    epsilon: float = setting(**EPSILON)
    _: KW_ONLY
    alpha: float | None = setting(None, **ALPHA)
    mechanism: str = setting("auto", help="What is made private", choices=MECHANISMS)
    delta: float = setting(0.0, **DELTA)
    sigma: float | None = setting(
        None,
        help="Standard deviation of the field, verified",
        otherwise="the largest admissible, or a public rule",
    )
    length_scale: float | None = setting(
        None, help="Length scale of the field", unit=LENGTH, otherwise="a public rule, or an average"
    )
    covariance: Any = made_of(*COVARIANCE)
    sampler: str = setting(
        "auto", help="Who makes a draw; auto is decided by public parameters", choices=SAMPLERS, panel=EXPERT
    )
    mesh: Mesh | None = made_of(MESH, RESOLUTION)
    prior: str = setting(
        "auto", help="Field behind noised tents: dense matrices, or sparse ones for many points", choices=PRIORS
    )
    inference: str = setting(
        "auto", help="How the posterior is found: sampled, or approximated faster", choices=("auto", *INFERENCES)
    )
    engine: str = setting("nutpie", help="Who runs NUTS", choices=ENGINES, panel=EXPERT)
    offset: Offset | None = made_of(*OFFSET)
    covariates: Any = made_of(COVARIATES)
    clusters: float | None = setting(
        None, help="Share of epsilon for how the points cluster, such as 0.3", otherwise="none", panel=METHOD
    )
    cluster_radii: Any = setting(
        None,
        help="Distances within which pairs count for clusters",
        unit=LENGTH,
        kind=str,
        metavar="R,R",
        convert=numbers("cluster_radii"),
        otherwise="a public rule",
        panel=EXPERT,
    )
    cluster_caps: Any = setting(
        None,
        help="Caps on what one point adds to the sums over pairs",
        kind=str,
        metavar="CAP,CAP",
        convert=numbers("cluster_caps"),
        otherwise="a public rule",
        panel=EXPERT,
    )
    cluster_places: str = setting(
        "apart",
        help="Whether several points may share a place, such as an address",
        choices=CLUSTER_PLACES,
        panel=METHOD,
    )
    relation: CappedRelation | None = made_of(*NEIGHBOURS)
    allow_large_delta: bool = setting(False, **LARGE_DELTA)
    smaller_delta: ClassVar[str] = PUBLISHED
    method: ClassVar[str] = "lgcp"
    # The share is a default of clusters, which are what this name asks for.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        f"lgcp-{mechanism}": {"mechanism": mechanism} for mechanism in MECHANISMS if mechanism != "auto"
    } | {"lgcp-clusters": {"mechanism": "auto", "clusters": 0.3}}
    refused: ClassVar[Mapping[str, str]] = {"basis": "says what is counted; take --method laplace for another basis"}

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        if self.alpha is None and self.relation is None:
            msg = "alpha: give the privacy radius, for instance alpha=25.0, or a relation such as ReplaceOne()."
            raise InputError(msg)
        self.neighbouring()
        one_of("mechanism", self.mechanism, MECHANISMS)
        require_small_delta(self.delta, 0, allow_large_delta=True)
        for name in ("sigma", "length_scale"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        require_offset(self.offset)
        if self.covariates is not None:
            object.__setattr__(self, "covariates", covariates_from(self.covariates))
        for name, known in (
            ("prior", PRIORS),
            ("inference", ("auto", *INFERENCES)),
            ("engine", ENGINES),
            ("sampler", SAMPLERS),
            ("cluster_places", CLUSTER_PLACES),
        ):
            one_of(name, getattr(self, name), known)
        if self.covariance is not None:
            self._require_one_covariance()
        self._settle_clusters()
        require_settings(self)

    @classmethod
    def require_options(cls, options: ParsedOptions) -> None:
        """Refuse what does not belong to the mechanism, and parameters of another covariance; InputError."""
        mechanism = cls.preset(options)["mechanism"]
        if options["inference"] is not None and mechanism not in INFERRED:
            msg = f"inference: --mechanism {options.mechanism} draws its field at once; leave --inference out"
            raise InputError(msg)
        require_one_covariance(options)
        super().require_options(options)

    @classmethod
    def relation_from(cls, options: ParsedOptions) -> CappedRelation:
        """The relation, which must be said; InputError."""
        if options["relation"] is None and options["alpha"] is None:
            msg = "alpha: give the privacy radius, for instance --alpha 25, or --relation replace-one or add-remove"
            raise InputError(msg)
        return super().relation_from(options)

    @classmethod
    def objects(cls, options: ParsedOptions, domain: Domain) -> dict[str, Any]:
        """Relation, mesh, covariance, offset and covariates."""
        made = super().objects(options, domain) | {"mesh": tent_mesh(options, domain)} | layers_of(options, domain)
        covariance = covariance_of(options, domain)
        if covariance is not None:
            made |= {"covariance": covariance, "sigma": None, "length_scale": None}
        # Without a name the domain and the number of points decide.
        if not options.named and cls.preset(options)["mechanism"] == "tents":
            made["mechanism"] = "auto"
        return made

    def plan(self, domain: Domain, *, n: int | None = None, expected_n: float | None = None) -> ReleasePlan:
        require_true_lengths(domain)
        self.public_size(n, expected_n)
        self.require_delta(self.delta, n, expected_n)
        offset = None if self.offset is None else self.offset.on(domain)
        settled = self if offset is self.offset else replace(self, offset=offset)
        return planned(settled, domain, n, expected_n)

    def plan_by(
        self,
        domain: Domain,
        *,
        by: str,
        levels: Sequence[object],
        n: object = None,
        expected_n: object = None,
        **options: Any,
    ) -> StratifiedPlan:
        """Settle one release for each level of a public mark, all of the same mechanism.

        Parameters as in `PointSynthesizer.plan_by`; "auto" is "cells" where it would be so for every level.
        """
        given = {"by": by, "levels": levels, "n": n, "expected_n": expected_n, **options}
        if self.mechanism != "auto" or isinstance(domain, Window):
            return super().plan_by(domain, **given)
        names = level_names(levels)
        counts = zip(sizes(names, n, "n").values(), sizes(names, expected_n, "expected_n").values(), strict=True)
        plans = [self.plan(domain, n=one, expected_n=guess, **options) for one, guess in counts]
        cells = all(getattr(plan.statistic, "basis", "") == "cells" for plan in plans)
        return replace(self, mechanism="cells" if cells else "tents").plan_by(domain, **given)

    def ceiling(self, domain: Domain, **options: Any) -> Guarantee:
        most = super().ceiling(domain, **options)
        averaged = self.mechanism.startswith("kim-lim")
        return replace(most, assumptions=(AVERAGED, *most.assumptions)) if averaged else most

    def _ceiling(self, domain: Domain, **options: Any) -> Profile:
        return profile_of_budget(self)

    def _settle_clusters(self) -> None:
        if self.clusters is not None:
            probability("clusters", self.clusters, remedy="0.3 is a usual share")
        unused = {"cluster_radii": None, "cluster_caps": None, "cluster_places": CLUSTER_PLACES[0]}
        for name, default in unused.items():
            if getattr(self, name) is not default and self.clusters is None:
                msg = f"{name}: goes with {mention('clusters', '0.3')}; give both."
                raise InputError(msg)
        if self.cluster_radii is not None:
            object.__setattr__(self, "cluster_radii", increasing_reals("cluster_radii", self.cluster_radii))
        if self.cluster_caps is not None:
            each = 1 if real(self.cluster_caps) is not None else len(elements(self.cluster_caps) or ())
            object.__setattr__(self, "cluster_caps", caps_of(self.cluster_caps, each, name="cluster_caps"))

    def _require_one_covariance(self) -> None:
        dense = isinstance(self.covariance, Covariance)
        sparse = isinstance(self.covariance, SparseMatern) or scipy.sparse.issparse(self.covariance)
        if not dense and not sparse:
            msg = (
                "covariance: needs one such as PoweredExponential(sigma, length_scale), a SparseMatern, or a sparse "
                f"matrix of SciPy, got {type(self.covariance).__name__}."
            )
            raise InputError(msg)
        if sparse and self.mechanism not in ("auto", "tents"):
            msg = f"covariance: mechanism {self.mechanism!r} takes none of sparse precision; leave it out."
            raise InputError(msg)
        if self.prior not in ("auto", "dense" if dense else "sparse"):
            kind = "dense" if dense else "sparse"
            msg = f"prior: the given covariance is {kind}, got {self.prior!r}; leave {mention('prior')} out."
            raise InputError(msg)
        if self.sigma is not None or self.length_scale is not None:
            msg = (
                "covariance: it has a sigma and a length scale; give it alone, or sigma= and length_scale= without it."
            )
            raise InputError(msg)

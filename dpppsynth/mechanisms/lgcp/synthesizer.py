"""`LGCPSynthesizer`: settings of the log-Gaussian Cox mechanisms, and their choice (docs/mechanisms.md)."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import scipy

from dpppsynth.contract import registry, rules
from dpppsynth.contract.additive_noise import LaplaceMasses, LatticeStatistic
from dpppsynth.contract.estimator import AnyEstimator
from dpppsynth.contract.object_options import COVARIATES, OFFSET, RESOLUTION, layers_of, tent_mesh
from dpppsynth.contract.pair_settings import caps_of, increasing_reals, numbers
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.rules import CLUSTER_PLACES
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
from dpppsynth.contract.synthesizer import (
    PointSynthesizer,
    covering,
    exact_or_guess,
    need_size,
    require_true_lengths,
    safe_digits,
)
from dpppsynth.core.arguments import elements, one_of, positive, probability, real
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.wording import instead, mention
from dpppsynth.inference.field_by_rule import field_by_rule, matern_mesh
from dpppsynth.inference.field_inference import INFERENCES
from dpppsynth.inference.lgcp_inference import LGCPInference
from dpppsynth.inference.matern_inference import MaternInference
from dpppsynth.inference.nuts_runs import DENSE_PACE, MOST_SECONDS, reckoned
from dpppsynth.inference.sparse_inference import PrecisionInference
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.mechanisms.lgcp.bound.fields import largest_field_sigma
from dpppsynth.mechanisms.lgcp.covariance_options import COVARIANCE, covariance_of, require_one_covariance
from dpppsynth.mechanisms.lgcp.field_statistic import FieldMasses
from dpppsynth.models.covariances import MOST_POINTS, Covariance, PoweredExponential
from dpppsynth.models.nuts import ENGINES
from dpppsynth.models.pair_sums import finest, require_radius
from dpppsynth.models.recipes import segments
from dpppsynth.models.sparse_fields import SparseMatern
from dpppsynth.privacy.bounds import PUBLISHED, require_small_delta
from dpppsynth.privacy.catalogue import AVERAGED
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.profiles import ApproximateDP, GaussianDP, Profile, gaussian_mu
from dpppsynth.privacy.relations import AlphaNeighbours, CappedRelation
from dpppsynth.release.cox import CoxRelease
from dpppsynth.spatial.covariates import covariates_from
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.offset import Offset, require_offset

MECHANISMS = ("auto", "tents", "cells", "moved", "field", "posterior-draw", "lipschitz", "kim-lim-3.8", "kim-lim-3.9")
# Private statistics of noised masses, to which pair sums may be added; and with them those behind which every prior is
# free, and may have effects of covariates.
MASSES = ("auto", "tents", "cells")
FREE = (*MASSES, "moved")
SPENDING_DELTA = ("field", "posterior-draw", "kim-lim-3.8", "kim-lim-3.9")
PRIORS = ("auto", "dense", "sparse")
PRIORS_BEHIND = {"auto": PRIORS, "tents": PRIORS, "cells": ("auto", "sparse")}
SAMPLERS = ("auto", "exact", "nuts", "proximal")
SAMPLERS_OF = {
    "posterior-draw": SAMPLERS,
    "lipschitz": ("auto", "exact", "nuts"),
    "kim-lim-3.8": ("auto", "nuts"),
    "kim-lim-3.9": ("auto", "nuts"),
}
# Points, a public number or guess, behind which a dense field is too narrow for NUTS: of a million its chains mix, of
# ten million they do not (R-hat 4.6), and the approximation is what there is. Its checks stand in `diagnostics`.
MOST_SAMPLED = 3_000_000
# Vertices of the largest dense field for NUTS, whose time grows with their square and more.
MOST_VERTICES = 2500
# Points from which on a field of sparse precision stands behind noised tents: finer than dense matrices allow.
SPARSE_FROM = 1000
# Share of its box that a window then fills at least: the field lives on all of the box.
FILLED = 0.5

MESH = Setting(name="spacing", option="--spacing", kind=float, **SPACING)
# Mechanisms whose posterior is inferred after the private statistic.
INFERRED = (*FREE, "field")


# Where functions that plan these mechanisms, by name, are loaded from when one is asked for: they take other models.
DRAWN = dict.fromkeys(SAMPLERS_OF, f"{registry.HOME}.lgcp.draws:PLANNERS")
PLANNERS = {"moved": f"{registry.HOME}.lgcp.moved:PLANNERS"} | DRAWN


@dataclass(frozen=True, eq=False)
class LGCPSynthesizer(PointSynthesizer[CoxRelease[LatticeStatistic]]):
    """A log-Gaussian Cox intensity, from a private statistic or as one posterior draw.

    Parameters
    ----------
    epsilon : float
        Budget.
    alpha : float, optional
        Privacy radius in the domain's unit; give it or `relation`.
    mechanism : {"auto", "tents", "cells", "moved", "field", "posterior-draw", "lipschitz", "kim-lim-3.8", ...}
        Private quantity. "tents": P1 masses with discrete Laplace noise, delta = 0; "cells": counts along the streets
        of a network, with the same; "moved": counts of points that were each moved by planar Laplace noise, delta = 0,
        for moves by alpha; "field": smooth functionals of the points with discrete Gaussian noise; all are
        followed by Bayesian inference at no privacy cost. "auto" takes one of the first three by a public rule:
        "moved" where alpha / epsilon is short beside the mean distance between points, "cells" on networks with enough
        points to tell streets apart, and "tents" otherwise; `check` says which, and why.
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
        Field behind noised tents, which are the same whatever it is. "dense": squared exponential, on networks
        exponential in the resistance metric; "sparse": Matern of sparse precision, as fine as many points allow; on
        networks one of the plane plus one along the streets, whose posterior "cells" always has. "auto": sparse on
        windows from 1000 points on, and on networks of up to some 1500 segments.
    inference : {"auto", "nuts", "laplace"}
        After a private statistic, which is the same either way: NUTS, behind fields of up to 12 000 unknowns, dense
        ones and those behind moved points of 10 000, or a Laplace approximation. "auto": NUTS behind a dense prior if
        it takes two minutes at most, as `check` reckons it, and there are up to three million points; elsewhere the
        approximation, whose intervals hold as much behind sparse ones (docs/results/nuts.md).
    engine : {"nutpie", "pymc"}
        Implementation of NUTS.
    offset : Offset, optional
        Public base intensity, such as population density, that multiplies the fitted one.
    covariates : Covariates or mapping, optional
        Public layers by name, such as the distance to a place, whose effects on the intensity are found with the field
        ("tents", "cells" and "moved", sparse prior): `release.effects`.
    clusters : float, optional
        Share of epsilon, such as 0.3, for sums over pairs of near points ("tents" and "cells"). From them follows how
        the points huddle, and synthetic points huddle like them; without, they repeat the intensity alone.
    cluster_radii : sequence of float, optional
        At most 4 increasing radii of these sums, in the domain's unit; None takes a rule of domain, n and epsilon.
    cluster_caps : int or sequence of int, optional
        Most that one point adds to a sum; one for all radii, or one for each.
    cluster_places : {"apart", "shared"}, optional
        "shared" where it is publicly known that several points may lie at one place, such as an address: synthetic
        ones then may as well, where the sums speak for it. They can hardly tell it from tight clusters. None takes it
        where a person may have several points.
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
    covariates: Any = made_of(*COVARIATES)
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
    cluster_places: str | None = setting(
        None,
        help="Whether several points may share a place, such as an address",
        choices=CLUSTER_PLACES,
        otherwise="shared where a person may have several points",
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
        one_of("mechanism", self.mechanism, MECHANISMS)
        if self.alpha is None and self.relation is None:
            other = "" if self.mechanism == "moved" else ", or a relation such as ReplaceOne()"
            msg = f"alpha: give the privacy radius, for instance alpha=25.0{other}."
            raise InputError(msg)
        self.neighbouring()
        require_small_delta(self.delta, 0, allow_large_delta=True)
        for name in ("sigma", "length_scale"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        if self.offset is not None:
            require_offset(self.offset)
        if self.covariates is not None:
            object.__setattr__(self, "covariates", covariates_from(self.covariates))
        for name, known in (
            ("prior", PRIORS),
            ("inference", ("auto", *INFERENCES)),
            ("engine", ENGINES),
            ("sampler", SAMPLERS),
        ):
            one_of(name, getattr(self, name), known)
        if self.cluster_places is not None:
            one_of("cluster_places", self.cluster_places, CLUSTER_PLACES)
        if self.covariance is not None:
            self._require_one_covariance()
        self._settle_clusters()
        require_settings(self)

    @classmethod
    def require_options(cls, options: ParsedOptions) -> None:
        mechanism = cls.preset(options)["mechanism"]
        if options["inference"] is not None and mechanism not in INFERRED:
            msg = f"inference: --mechanism {options.mechanism} draws its field at once; leave --inference out"
            raise InputError(msg)
        require_one_covariance(options)
        super().require_options(options)

    @classmethod
    def relation_from(cls, options: ParsedOptions) -> CappedRelation:
        if options["relation"] is None and options["alpha"] is None:
            moved = cls.preset(options)["mechanism"] == "moved"
            other = "" if moved else ", or --relation replace-one or add-remove"
            msg = f"alpha: give the privacy radius, for instance --alpha 25{other}"
            raise InputError(msg)
        return super().relation_from(options)

    @classmethod
    def objects(cls, options: ParsedOptions, domain: Domain) -> dict[str, Any]:
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
        known = self.public_size(n, expected_n)
        self.require_delta(self.delta, n, expected_n)
        offset = None if self.offset is None else self.offset.on(domain)
        s, size = self if offset is self.offset else replace(self, offset=offset), need_size(known)
        mechanism, reason = choice(s, domain, size) if s.mechanism == "auto" else (s.mechanism, "")
        own: Mapping[str, Callable[..., ReleasePlan]] = {"tents": _tents, "cells": _cells, "field": _field}
        planners = own if mechanism in own else registry.loaded(PLANNERS[mechanism])
        plan: ReleasePlan = planners[mechanism](replace(s, mechanism=mechanism), domain, n, size)
        return replace(plan, reason=reason) if reason else plan

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
        """Make the plan of one release for each level of a public mark, all of the same mechanism.

        Parameters as in `PointSynthesizer.plan_by`; "auto" takes "tents" where levels would have different mechanisms.
        """
        given = {"by": by, "levels": levels, "n": n, "expected_n": expected_n, **options}
        names = level_names(levels)
        counts = zip(sizes(names, n, "n").values(), sizes(names, expected_n, "expected_n").values(), strict=True)
        plans = (self.plan(domain, n=one, expected_n=guess, **options) for one, guess in counts)
        if self.mechanism == "auto" and len({plan.mechanism for plan in plans}) > 1:
            return replace(self, mechanism="tents").plan_by(domain, **given)
        return super().plan_by(domain, **given)

    def ceiling(self, domain: Domain, **options: Any) -> Guarantee:
        most = super().ceiling(domain, **options)
        averaged = self.mechanism.startswith("kim-lim")
        return replace(most, assumptions=(AVERAGED, *most.assumptions)) if averaged else most

    def _ceiling(self, domain: Domain, **options: Any) -> Profile:
        if self.mechanism not in SPENDING_DELTA:
            return super()._ceiling(domain)
        if self.mechanism.startswith("kim-lim"):
            return ApproximateDP(float(self.epsilon), float(self.delta))
        return GaussianDP(gaussian_mu(self.epsilon, self.delta), float(self.delta))

    def _settle_clusters(self) -> None:
        if self.clusters is not None:
            probability("clusters", self.clusters, remedy="0.3 is a usual share")
        for name in ("cluster_radii", "cluster_caps", "cluster_places"):
            if getattr(self, name) is not None and self.clusters is None:
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


def require_settings(s: LGCPSynthesizer) -> None:
    """Refuse settings that the mechanism does not use."""
    name, priors = s.mechanism, PRIORS_BEHIND.get(s.mechanism, ("auto",))
    if s.delta > 0 and name not in SPENDING_DELTA:
        msg = (
            f"delta: mechanism {name!r} is purely epsilon-private and spends no delta, got {s.delta!r}; leave "
            f"{mention('delta')} out."
        )
        raise InputError(msg)
    if s.delta == 0 and name in SPENDING_DELTA:
        msg = (
            f"delta: mechanism {name!r} cannot promise delta = 0; give one far below 1/n, such as "
            f"{mention('delta', '1e-6')}, or take {instead('tents', 'lipschitz')}."
        )
        raise InputError(msg)
    for given in ("sigma", "covariance"):
        # Behind a private statistic every prior is free.
        prior = given == "covariance" and "dense" in priors
        if getattr(s, given) is not None and name in FREE and not prior:
            msg = f"{given}: mechanism {name!r} spends nothing on a covariance; leave it out."
            raise InputError(msg)
    if s.clusters and name not in MASSES:
        msg = f"clusters: mechanism {name!r} measures no pairs; leave it out, or take {instead('tents')}."
        raise InputError(msg)
    if s.prior not in priors:
        msg = f"prior: mechanism {name!r} cannot take {s.prior!r}; leave it out, or take {instead('tents')}."
        raise InputError(msg)
    if name == "moved":
        _require_moves(s)
    if s.covariates is not None:
        _require_effects(s)
    samplers = SAMPLERS_OF.get(name, ("auto",))
    if s.sampler not in samplers:
        known = ", ".join(samplers)
        msg = (
            f"sampler: mechanism {name!r} cannot take {s.sampler!r}; leave {mention('sampler')} out, or give one "
            f"of {known}."
        )
        raise InputError(msg)


def _require_moves(s: LGCPSynthesizer) -> None:
    """Refuse relations under which no point can be moved."""
    if not isinstance(s.neighbouring(), AlphaNeighbours):
        msg = (
            "relation: mechanism 'moved' hides where nearby a point was, at a price that grows with the distance; give "
            f"{mention('alpha', '25.0')} instead, or take {instead('tents')} for this relation."
        )
        raise InputError(msg)


def _require_effects(s: LGCPSynthesizer) -> None:
    """Refuse covariates where no sparse field follows a private statistic."""
    if s.mechanism not in FREE:
        msg = (
            f"covariates: mechanism {s.mechanism!r} spends its budget on the field itself, which has no effects "
            f"apart from it; take {instead('tents')}."
        )
        raise InputError(msg)
    if s.prior == "dense":
        msg = f"covariates: they go with a sparse prior; leave {mention('prior')} out."
        raise InputError(msg)
    if s.covariance is not None:
        msg = f"covariates: they go with the prior by the rule; leave {mention('covariance')} out."
        raise InputError(msg)


def _cells(s: LGCPSynthesizer, network: Domain, n: int | None, size: float) -> ReleasePlan:
    """Counts along streets, with a field behind them that knows where streets carry on."""
    if not isinstance(network, LinearNetwork):
        msg = "mechanism: 'cells' are counts along the streets of a network; on a window take 'tents'."
        raise InputError(msg)
    if s.mesh is None:
        mesh: Mesh = rules.network_rules.street_cells(network, size, mass_epsilon(s), s.neighbouring())
    else:
        mesh = segments(covering(network, s.mesh))
    statistic = _measured(s, "cells", mesh, n, size)
    return _named(s, statistic, _by_rule(s, statistic))


def _tents(s: LGCPSynthesizer, domain: Domain, n: int | None, size: float) -> ReleasePlan:
    """Masses of tents, with a dense field behind them, or a sparse one."""
    rule, relation = rules.BY_DOMAIN[type(domain)], s.neighbouring()
    if s.mesh is not None:
        mesh = covering(domain, s.mesh)
    elif _is_fine(s, domain, size):
        mesh = rule.field_statistic_mesh(domain, "tents", size, mass_epsilon(s), relation)
    else:
        mesh = rule.mesh(domain, "tents", size, mass_epsilon(s), relation, scale=length_scale(s, domain, size))
    statistic = _measured(s, "tents", mesh, n, size)
    return _named(s, statistic, _sparse(s, statistic) if _is_sparse(s, domain, size) else _dense(s, mesh, size))


def _field(s: LGCPSynthesizer, domain: Domain, n: int | None, size: float) -> ReleasePlan:
    """Smoothed masses, whose covariance is what the budget allows."""
    mesh = field_mesh(s, domain)
    covariance = admissible_covariance(
        s, mesh, size, lambda shape, mu: largest_field_sigma(mesh, shape, s.neighbouring(), mu)
    )
    statistic = FieldMasses(mesh, covariance, *relation_and_budget(s, n, size))
    return ReleasePlan("lgcp-field", statistic, _dense(s, mesh, size))


def _measured(s: LGCPSynthesizer, basis: str, mesh: Mesh, n: int | None, size: float) -> LaplaceMasses:
    """Masses or counts, and pair sums where clusters are asked for."""
    domain, relation, sizes, epsilon = mesh.domain, s.neighbouring(), exact_or_guess(n, size), float(s.epsilon)
    if not s.clusters:
        return LaplaceMasses(basis, mesh, relation, *sizes, epsilon)
    # Loaded when clusters are asked for.
    from dpppsynth.mechanisms.lgcp.cluster_statistic import MassesAndPairs, require_simulated

    share = float(s.clusters)
    require_simulated(size)
    radii, caps = rules.pair_levels(domain, size, epsilon * share, secret=n is None)
    if s.cluster_radii is not None:
        for radius in s.cluster_radii:
            require_radius(radius, domain, name="cluster_radii")
        radii, caps = s.cluster_radii, caps[:1] * len(s.cluster_radii)
    if s.cluster_caps is not None:
        caps = caps_of(s.cluster_caps, len(radii), name="cluster_caps")
    steps = tuple(finest(domain, radius, n) for radius in radii)
    places = s.cluster_places or CLUSTER_PLACES[relation.max_points_per_person > 1]
    return MassesAndPairs(basis, mesh, relation, *sizes, epsilon, share, radii, caps, steps, places)


def _named(s: LGCPSynthesizer, statistic: LaplaceMasses, estimator: AnyEstimator) -> ReleasePlan:
    return ReleasePlan("lgcp-clusters" if s.clusters else f"lgcp-{statistic.basis}", statistic, estimator)


def mass_epsilon(s: LGCPSynthesizer) -> float:
    """Budget of masses or counts."""
    return float(s.epsilon) * (1 - (s.clusters or 0.0))


def length_scale(s: LGCPSynthesizer, domain: Domain, size: float) -> float:
    """The length scale given, or the rule's."""
    scale: float = s.length_scale or rules.BY_DOMAIN[type(domain)].length_scale(domain, size)
    return scale


def _is_sparse(s: LGCPSynthesizer, domain: Domain, size: float) -> bool:
    """Whether the field behind noised tents has a sparse precision."""
    if s.prior != "auto":
        return s.prior == "sparse"
    if _has_sparse_model(s):
        return True
    if isinstance(domain, LinearNetwork):
        # On large networks, and at hubs of very many edges, no field along streets is inferred from tents.
        return _is_free(s) and rules.network_rules.fits_along(domain) and not rules.network_rules.crowded(domain)
    return _is_fine(s, domain, size)


def _is_fine(s: LGCPSynthesizer, domain: Domain, size: float) -> bool:
    """Whether tents are laid out for a sparse field; no matter which field is then inferred from them, and how."""
    if not isinstance(domain, Window):
        return False
    many = size >= SPARSE_FROM and bool(rules.planar_rules.filled(domain) >= FILLED)
    return _has_sparse_model(s) or (_is_free(s) and many)


def _has_sparse_model(s: LGCPSynthesizer) -> bool:
    """Whether a model is given that sparse fields alone have."""
    own = s.covariance is not None and not isinstance(s.covariance, Covariance)
    return own or s.covariates is not None


def _is_free(s: LGCPSynthesizer) -> bool:
    """Whether the rule decides what is measured: neither a mesh nor a covariance or length scale is given."""
    return s.covariance is None and s.length_scale is None and s.mesh is None


def choice(s: LGCPSynthesizer, domain: Domain, size: float) -> tuple[str, str]:
    """Mechanism that "auto" takes, and why, in words."""
    mechanism, reason = _moves(s, domain, size)
    if mechanism == "tents" and isinstance(domain, LinearNetwork):
        if _counts_tell(s, domain, size):
            return "cells", "there are points enough to tell the streets apart"
        if _is_free(s) and not rules.network_rules.crowded(domain):
            return "tents", f"there are too few points to tell the streets apart by counts, and {reason}"
    return mechanism, reason


def _moves(s: LGCPSynthesizer, domain: Domain, size: float) -> tuple[str, str]:
    """Moved points, or tents, and why."""
    if s.clusters:
        return "tents", "sums over pairs are measured beside them"
    relation = s.neighbouring()
    if not isinstance(relation, AlphaNeighbours):
        return "tents", "this relation hides more than where nearby a point was"
    if not _is_free(s):
        return "tents", "a mesh, a covariance or a length scale is asked for that goes with them"
    # Loaded where points may be moved.
    from dpppsynth.privacy.planar_moves import rate

    return rules.moved_or_tents(domain, size, 1 / rate(relation, float(s.epsilon), domain))


def _counts_tell(s: LGCPSynthesizer, domain: LinearNetwork, size: float) -> bool:
    """Whether "auto" takes counts along streets: where these tell the streets apart."""
    if s.mesh is not None or s.covariance is not None:
        return False
    if s.covariates is not None and not rules.network_rules.fits_along(domain):
        return True
    return _is_free(s) and rules.network_rules.streets_tell(domain, size, mass_epsilon(s), s.neighbouring())


def _by_rule(s: LGCPSynthesizer, statistic: LaplaceMasses) -> AnyEstimator:
    """The posterior of the rule's sparse field after noised tents or counts."""
    return field_by_rule(statistic, range_=s.length_scale, offset=s.offset, covariates=s.covariates, **way_of(s))


def way_of(s: LGCPSynthesizer) -> dict[str, Any]:
    """Way in which a sparse field, or one behind moved points, is inferred."""
    return {"inference": "laplace" if s.inference == "auto" else s.inference, "engine": s.engine}


def _sparse(s: LGCPSynthesizer, statistic: LaplaceMasses) -> AnyEstimator:
    """The posterior of a sparse field after noised tents."""
    own, tents = s.covariance, statistic.mesh
    if isinstance(own, SparseMatern):
        mesh = tents if isinstance(tents.domain, LinearNetwork) else matern_mesh(tents, own.range, s.inference)
        return MaternInference(mesh, (own.range,), (own.smoothness,), own.sigma, offset=s.offset, **way_of(s))
    if own is None:
        return _by_rule(s, statistic)
    if s.mesh is None:
        msg = "mesh: a precision of one's own belongs to the vertices of a mesh; give mesh= with covariance=."
        raise InputError(msg)
    return PrecisionInference(tents, own, offset=s.offset, **way_of(s))


def _dense(s: LGCPSynthesizer, mesh: Mesh, size: float) -> LGCPInference:
    """The posterior of a dense field after a private statistic."""
    rule = rules.BY_DOMAIN[type(mesh.domain)]
    scales = (s.length_scale,) if s.length_scale else rule.length_scales(mesh.domain)
    sigma = rule.FITTED_SIGMA
    # What a field statistic was made with is no prior of one's own: the budget is spent on it.
    own = s.covariance if isinstance(s.covariance, Covariance) and s.mechanism != "field" else None
    if own is not None:
        scales, sigma = (own.length_scale,), own.sigma
    field = rule.field_mesh(mesh)
    inference = s.inference
    if inference == "auto":
        count = len(field.vertices)
        soon = count <= MOST_VERTICES and reckoned(len(scales), count, DENSE_PACE) <= MOST_SECONDS
        inference = "nuts" if soon and size <= MOST_SAMPLED else "laplace"
    _require_small(s, field, inference)
    settings: dict[str, Any] = {"offset": s.offset, "inference": inference, "engine": s.engine, "own": own}
    # A given length scale, or covariance, is a prior of one's own.
    return LGCPInference(field, scales, sigma, **settings, even=own is None and not s.length_scale)


def _require_small(s: LGCPSynthesizer, field: Mesh, inference: str) -> None:
    """Refuse a dense prior, or NUTS behind it, on more vertices than it takes."""
    count = len(field.vertices)
    if s.prior == "dense" and count > MOST_POINTS:
        msg = (
            f"prior: a dense one takes {MOST_POINTS} vertices at most, and the field behind these tents has {count}; "
            f"leave {mention('prior')} out, or give a coarser mesh."
        )
        raise InputError(msg)
    if inference == "nuts" and count > MOST_VERTICES:
        sparse = f", or {mention('prior', repr('sparse'))}" if s.mechanism == "tents" and s.covariance is None else ""
        msg = (
            f"inference: NUTS takes a dense field of {MOST_VERTICES} vertices at most, and this one has {count}; take "
            f"{mention('inference', repr('laplace'))}{sparse}."
        )
        raise InputError(msg)


def field_mesh(s: LGCPSynthesizer, domain: Domain, rule: Callable[[Any], Mesh] | None = None) -> Mesh:
    """Mesh of the field that the budget is spent on."""
    if s.mesh is not None:
        return covering(domain, s.mesh)
    return (rule or rules.BY_DOMAIN[type(domain)].draw_mesh)(domain)


def relation_and_budget(
    s: LGCPSynthesizer, n: int | None, size: float
) -> tuple[CappedRelation, int | None, float | None, float, float]:
    """Relation, sizes and budget, in the order of the arguments of statistics about a field."""
    return s.neighbouring(), *exact_or_guess(n, size), float(s.epsilon), float(s.delta)


def admissible_covariance(
    s: LGCPSynthesizer,
    mesh: Mesh,
    size: float,
    largest_sigma: Callable[[Covariance, float], float],
    cap: float = math.inf,
) -> Covariance:
    """The covariance asked for, verified, or the default: the largest admissible sigma, at most `cap`."""
    standard = PoweredExponential(1.0, length_scale(s, mesh.domain, size), mesh.smoothest_power)
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

"""`LaplaceSynthesizer`: noised cell counts or tent masses, and an intensity (docs/theory.md, sections 2 to 4)."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from dpppsynth.contract import rules
from dpppsynth.contract.additive_noise import BASES, StatisticPlan
from dpppsynth.contract.plan import Plan
from dpppsynth.contract.settings import ALPHA, EPSILON, SPACING, setting
from dpppsynth.contract.synthesizer import (
    PointSynthesizer,
    covering,
    exact_or_guess,
    need_size,
    require_true_lengths,
)
from dpppsynth.core.arguments import one_of, positive
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.profiles import PureDP
from dpppsynth.privacy.relations import CappedRelation
from dpppsynth.release.cox import CoxRelease
from dpppsynth.release.field_by_rule import estimator_by_rule
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Mesh

POSTPROCESSES = ("clip", "keep-n", "field")


@dataclass(frozen=True, eq=False)
class LaplaceSynthesizer(PointSynthesizer[CoxRelease[StatisticPlan]]):
    """Private counts per cell, or private tent masses per vertex, and an intensity made of them.

    Parameters
    ----------
    epsilon : float
        Budget; the release is (epsilon, 0)-differentially private.
    alpha : float, optional
        Privacy radius in the domain's unit; None protects a move anywhere (replace-one).
    basis : {"cells", "tents"}
        "cells": counts on squares (on a network: segments of edges), noise of scale 2 / epsilon whatever alpha.
        "tents": P1 masses on triangles, whose noise shrinks with alpha.
    spacing : float, optional
        Side of a cell, or longest segment; None takes a public rule of domain, n, epsilon and relation.
    mesh : Mesh, optional
        Instead of a spacing, such as `network_mesh(network, resolution)` for tents along streets.
    postprocess : {"clip", "keep-n", "field"}, optional
        "clip" and "keep-n" make the numbers non-negative, without a model; None is "keep-n" where n is public and
        "clip" where it is secret. "field" takes the posterior of a log-Gaussian field behind them, which knows the law
        of the noise: mostly nearer to the truth, and slower.
    relation : CappedRelation, optional
        Neighbouring relation, instead of alpha.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> window = Window.rectangle(0, 0, 1000, 1000)
    >>> LaplaceSynthesizer(1.0, alpha=25.0, basis="tents").check(window, n=400).epsilon() <= 1.0
    True
    """

    epsilon: float = setting(**EPSILON)
    _: KW_ONLY
    alpha: float | None = setting(None, **ALPHA)
    basis: str = setting("cells", help="What is measured: counts, or tent masses", choices=BASES)
    spacing: float | None = setting(None, **SPACING)
    mesh: Mesh | None = None
    postprocess: str | None = setting(
        None,
        help="How an intensity is made of the noised numbers",
        choices=POSTPROCESSES,
        otherwise="keep-n where n is public, else clip",
    )
    relation: CappedRelation | None = None

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        one_of("basis", self.basis, BASES)
        if self.spacing is not None:
            positive("spacing", self.spacing)
        if self.spacing is not None and self.mesh is not None:
            msg = "mesh: it has a spacing of its own; give mesh= or spacing=, not both."
            raise InputError(msg)
        relation = self.neighbouring()
        if self.postprocess is not None:
            one_of("postprocess", self.postprocess, POSTPROCESSES)
        if self.postprocess == "keep-n" and not relation.n_is_public:
            msg = "postprocess: 'keep-n' needs a public n, which this relation keeps secret; use 'clip'."
            raise InputError(msg)

    def _ceiling(self, domain: Domain, **options: Any) -> PureDP:
        return PureDP(float(self.epsilon))

    def plan(self, domain: Domain, *, n: int | None = None, expected_n: float | None = None) -> Plan:
        """Settle every choice from public parameters alone; parameters as in `check`."""
        require_true_lengths(domain)
        relation, size = self.neighbouring(), self.public_size(n, expected_n)
        rule = rules.of(domain)
        if self.mesh is not None:
            mesh = covering(domain, self.mesh)
        elif self.spacing is not None:
            mesh = rule.spaced_mesh(domain, self.basis, self.spacing)
        else:
            choose = rule.field_statistic_mesh if self.postprocess == "field" else rule.mesh
            mesh = choose(domain, self.basis, need_size(size), self.epsilon, relation)
        statistic = StatisticPlan(self.basis, mesh, relation, *exact_or_guess(n, size), float(self.epsilon))
        default = "keep-n" if relation.n_is_public else "clip"
        return Plan(f"laplace-{self.basis}", statistic, estimator_by_rule(self.postprocess or default, statistic))

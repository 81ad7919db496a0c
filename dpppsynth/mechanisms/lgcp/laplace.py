"""`LaplaceSynthesizer`: noised cell counts or tent masses, and an intensity (docs/theory.md, sections 2 to 4)."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

from dpppsynth.contract.additive_noise import BASES, LaplaceMasses
from dpppsynth.contract.object_options import RESOLUTION, mesh_of
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.settings import ALPHA, EPSILON, NEIGHBOURS, SPACING, ParsedOptions, made_of, setting
from dpppsynth.contract.synthesizer import MeshSynthesizer, exact_or_guess, require_true_lengths
from dpppsynth.core.arguments import one_of, positive
from dpppsynth.core.errors import NoFieldError
from dpppsynth.inference.field_by_rule import (
    FIELD,
    POSTPROCESSES,
    estimator_by_rule,
    require_postprocess,
    statistic_mesh,
)
from dpppsynth.privacy.relations import CappedRelation
from dpppsynth.release.cox import CoxRelease
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Mesh

PLAIN = "plain"
ESTIMATES = (FIELD, PLAIN, *POSTPROCESSES[:-1])


@dataclass(frozen=True, eq=False)
class LaplaceSynthesizer(MeshSynthesizer[CoxRelease[LaplaceMasses]]):
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
    postprocess : {"field", "plain", "clip", "keep-n"}, optional
        "field" takes the posterior of a log-Gaussian field behind the numbers, which knows the law of the noise.
        "clip" and "keep-n" make them non-negative without a model, in milliseconds; "plain" is "keep-n" where n is
        public and "clip" where it is secret. None is "field", and "plain" where no field can stand: behind counts on a
        network's mesh that is not made of segments, on meshes of too many cells or vertices, and where too many streets
        meet.
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
    mesh: Mesh | None = made_of(RESOLUTION)
    postprocess: str | None = setting(
        None,
        help="How an intensity is made of the noised numbers",
        choices=ESTIMATES,
        otherwise="field, or plain where none can stand",
    )
    relation: CappedRelation | None = made_of(*NEIGHBOURS)
    method: ClassVar[str] = "laplace"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "laplace-cells": {"basis": "cells"},
        "laplace-tents": {"basis": "tents"},
    }

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        one_of("basis", self.basis, BASES)
        super().__post_init__()
        require_postprocess(FIELD if self.postprocess is None else self.postprocess, self.neighbouring(), ESTIMATES)

    @classmethod
    def objects(cls, options: ParsedOptions, domain: Domain) -> dict[str, Any]:
        basis = cls.plain(options).get("basis", cls.basis)
        return super().objects(options, domain) | mesh_of(options, domain, cls.method, basis)

    def plan(self, domain: Domain, *, n: int | None = None, expected_n: float | None = None) -> ReleasePlan:
        require_true_lengths(domain)
        plain = "keep-n" if self.neighbouring().n_is_public else "clip"
        size = exact_or_guess(n, self.public_size(n, expected_n))
        if self.postprocess is None:
            try:
                return self._plan_with(FIELD, domain, *size)
            except NoFieldError:
                return self._plan_with(plain, domain, *size)
        return self._plan_with(plain if self.postprocess == PLAIN else self.postprocess, domain, *size)

    def _plan_with(self, postprocess: str, domain: Domain, n: int | None, expected_n: float | None) -> ReleasePlan:
        """ReleasePlan with this estimate."""
        relation = self.neighbouring()
        size = expected_n if n is None else n
        by_rule = partial(statistic_mesh, postprocess, domain, self.basis, size, self.epsilon, relation)
        mesh = self.laid_mesh(domain, self.basis, by_rule)
        statistic = LaplaceMasses(self.basis, mesh, relation, n, expected_n, float(self.epsilon))
        return ReleasePlan(f"laplace-{self.basis}", statistic, estimator_by_rule(postprocess, statistic))

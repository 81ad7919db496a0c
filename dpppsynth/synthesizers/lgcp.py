"""The log-Gaussian Cox synthesizer: private statistic first, Bayes afterwards (docs/theory.md, sections 4 to 6)."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from dpppsynth.domains import Window
from dpppsynth.errors import InputError
from dpppsynth.mesh import Mesh
from dpppsynth.models.planar import regular_triangulation
from dpppsynth.offset import Offset
from dpppsynth.privacy.bounds import require_small_delta
from dpppsynth.privacy.relations import Relation
from dpppsynth.release.field import ENGINES, INFERENCES, FieldModel, choose
from dpppsynth.statistic import StatisticPlan
from dpppsynth.synthesizers import rules
from dpppsynth.synthesizers.base import Plan, Synthesizer, covering, exact_or_guess, need_size, planar, positive


@dataclass(frozen=True, eq=False)
class LGCPSynthesizer(Synthesizer):
    """Log-Gaussian Cox posterior of a private statistic.

    Parameters
    ----------
    epsilon : float
        Budget.
    alpha : float, optional
        Privacy radius in the window's unit; give it or `relation`.
    mechanism : {"tents"}
        What is made private. "tents": P1 masses with discrete Laplace noise, (epsilon, 0)-private for every data set.
    delta : float
        Must be 0 for mechanisms that are purely epsilon-private.
    length_scale : float, optional
        Of the field, in the window's unit; None averages over public scales with weights from the private statistic.
    mesh : Mesh, optional
        Mesh of the tents; None takes a public rule of window, n, epsilon and relation.
    inference : {"nuts", "laplace"}
        NUTS in PyMC, or a Laplace approximation (seconds faster, no diagnostics).
    engine : {"nutpie", "pymc"}
        Who runs NUTS.
    offset : Offset, optional
        Public base intensity, such as population density, that multiplies the fitted one.
    relation : Relation, optional
        Neighbouring relation, instead of alpha.
    allow_large_delta : bool
        Accept delta >= 1/n, which promises nothing; only to reproduce published experiments.

    Examples
    --------
    >>> window = Window.rectangle(529100, 180680, 529770, 181350, "EPSG:27700")
    >>> LGCPSynthesizer(1.0, 25.0).check(window, n=392).theorem
    'Theorem 2 (tents)'
    """

    epsilon: float
    alpha: float | None = None
    _: KW_ONLY
    mechanism: str = "tents"
    delta: float = 0.0
    length_scale: float | None = None
    mesh: Mesh | None = None
    inference: str = "nuts"
    engine: str = "nutpie"
    offset: Offset | None = None
    relation: Relation | None = None
    allow_large_delta: bool = False

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        if self.alpha is None and self.relation is None:
            msg = "alpha: give the privacy radius, for instance alpha=25.0, or a relation such as ReplaceOne()."
            raise InputError(msg)
        self.neighbouring()
        if self.length_scale is not None:
            positive("length_scale", self.length_scale)
        if not isinstance(self.mechanism, str) or self.mechanism not in MECHANISMS:
            msg = f"mechanism: {self.mechanism!r} is not in this version; expected one of {sorted(MECHANISMS)}."
            raise InputError(msg)
        require_small_delta(self.delta, 0, allow_large_delta=True)
        if self.offset is not None and not isinstance(self.offset, Offset):
            msg = f"offset: needs an Offset, for instance Offset.from_grid(values, bounds), got {self.offset!r}."
            raise InputError(msg)
        for name, known in (("inference", INFERENCES), ("engine", ENGINES)):
            choose(name, getattr(self, name), known)

    def plan(self, domain: Window, *, n: int | None = None, expected_n: float | None = None) -> Plan:
        """Settle every choice from public parameters alone; parameters as in `check`."""
        planar(domain)
        self.public_size(n, expected_n)
        require_small_delta(self.delta, n, allow_large_delta=self.allow_large_delta)
        return MECHANISMS[self.mechanism](self, domain, n, expected_n)


def _plan_tents(synthesizer: LGCPSynthesizer, domain: Window, n: int | None, expected_n: float | None) -> Plan:
    s, relation = synthesizer, synthesizer.neighbouring()
    if s.delta > 0:
        msg = f"delta: mechanism 'tents' is purely epsilon-private and spends no delta, got {s.delta!r}; drop delta."
        raise InputError(msg)
    size = need_size(s.public_size(n, expected_n))
    if s.mesh is not None:
        mesh = covering(domain, s.mesh)
    else:
        scale = s.length_scale or rules.length_scale(domain, size)
        mesh = regular_triangulation(domain, shape=rules.tents_shape(domain, size, s.epsilon, relation, scale=scale))
    scales = tuple(r * domain.area**0.5 for r in rules.LENGTH_SCALES) if s.length_scale is None else (s.length_scale,)
    model = FieldModel(rules.field_mesh(mesh), scales, offset=s.offset, inference=s.inference, engine=s.engine)
    return Plan("lgcp-tents", StatisticPlan("tents", mesh, relation, *exact_or_guess(n, size), float(s.epsilon)), model)


Planner = Callable[[LGCPSynthesizer, Window, int | None, float | None], Plan]
MECHANISMS: dict[str, Planner] = {"tents": _plan_tents}

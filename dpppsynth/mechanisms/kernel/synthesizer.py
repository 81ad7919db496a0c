"""`KernelSynthesizer`: Poisson patterns around the points, private by superposition (docs/theory/kernel.md)."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

from dpppsynth.contract import rules
from dpppsynth.contract.object_options import require_fineness
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.settings import (
    ALPHA,
    DELTA,
    EPSILON,
    EXPERT,
    LARGE_DELTA,
    LENGTH,
    NEIGHBOURS,
    ParsedOptions,
    made_of,
    setting,
)
from dpppsynth.contract.synthesizer import PointSynthesizer, require_true_lengths, safe_digits
from dpppsynth.core.arguments import one_of, positive, whole
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.wording import either, mention
from dpppsynth.io.writing import geojson_text
from dpppsynth.linear_network import LinearNetwork, NetworkMesh, network_mesh
from dpppsynth.mechanisms.kernel.bound.heat import smallest_diffusion_bandwidth
from dpppsynth.mechanisms.kernel.bound.kernels import smallest_bandwidth, smallest_bandwidth_36, superposition
from dpppsynth.mechanisms.kernel.statistic import DiffusionStatistic, KernelStatistic, PatternStatistic, PrivatePatterns
from dpppsynth.privacy.bounds import PUBLISHED, require_small_delta
from dpppsynth.privacy.profiles import ApproximateDP, Profile
from dpppsynth.privacy.relations import CappedRelation
from dpppsynth.release.release import PatternRelease
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.pattern_sources import synthetic
from dpppsynth.spatial.patterns import PointPattern

BOUNDS = ("superposition", "kim-lim-3.6")


class PoissonRelease(PatternRelease):
    """Result of a release by the kernel synthesizer.

    It holds no intensity: the intensity is the data. Further patterns are a new spend; plan all of them at once, with
    `release(pattern, patterns=m)`.
    """

    statistic: PrivatePatterns[PatternStatistic]

    def paid_files(self) -> dict[str, str]:
        """Text of the patterns' files, by name."""
        return {synthetic(k): geojson_text(pattern) for k, pattern in enumerate(self.patterns)}

    @property
    def patterns(self) -> list[PointPattern]:
        return list(self.statistic.patterns)


@dataclass(frozen=True)
class KernelSynthesizer(PointSynthesizer[PoissonRelease]):
    """Poisson patterns with a kernel at each point: Gaussian on windows, heat flow along the edges of networks.

    Simple, and without a model; good where alpha is small and the budget large. Every pattern costs: m patterns are
    planned, and paid, together: `check(domain, n=n, patterns=m)`, `release(pattern, patterns=m)`.

    Parameters
    ----------
    epsilon, delta : float
        Budget of all patterns together; delta must be positive, such as 1e-6.
    alpha : float, optional
        Privacy radius in the domain's unit; None protects a move anywhere (replace-one).
    bandwidth : float, optional
        Standard deviation of the kernel, in the domain's unit. None takes the smallest admissible one or a public rule,
        whichever is larger. A given one is verified.
    bound : {"superposition", "kim-lim-3.6"}
        The theorem that the bandwidth is checked against; the second is for windows.
    spacing : float, optional
        On networks, longest of the segments that points are snapped to; None takes a public rule.
    relation : CappedRelation, optional
        Neighbouring relation, instead of alpha.
    allow_large_delta : bool
        Accept delta >= 1/n, n being the points of all levels, which promises nothing; only to reproduce published
        experiments.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> window = Window.rectangle(0, 0, 1000, 1000)
    >>> KernelSynthesizer(10.0, delta=1e-6, alpha=20.0).check(window, n=400).theorem
    'kernel-superposition'
    """

    epsilon: float = setting(**EPSILON)
    _: KW_ONLY
    delta: float = setting(**DELTA)
    alpha: float | None = setting(None, **ALPHA)
    bandwidth: float | None = setting(
        None, help="Bandwidth, verified", unit=LENGTH, otherwise="the smallest admissible, or a rule"
    )
    bound: str = setting(
        "superposition", help="Theorem that the bandwidth is checked against", choices=BOUNDS, panel=EXPERT
    )
    spacing: float | None = setting(
        None,
        help="Longest segment that points along --network's edges are snapped to",
        option="--resolution",
        argument="mesh",
        unit=LENGTH,
        otherwise="a public rule",
    )
    relation: CappedRelation | None = made_of(*NEIGHBOURS)
    allow_large_delta: bool = setting(False, **LARGE_DELTA)
    smaller_delta: ClassVar[str] = PUBLISHED

    method: ClassVar[str] = "kernel"
    paid: ClassVar[str] = "every pattern of the kernel synthesizer is paid for"
    unfixed: ClassVar[str] = "the kernel synthesizer draws a Poisson number of points"

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        require_small_delta(self.delta, 0, allow_large_delta=True)
        if not self.delta > 0:
            msg = (
                "delta: the kernel synthesizer cannot promise delta = 0; give one far below 1/n, such as "
                f"{mention('delta', '1e-6')}."
            )
            raise InputError(msg)
        for name in ("bandwidth", "spacing"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        one_of("bound", self.bound, BOUNDS)
        if not self.neighbouring().n_is_public:
            msg = (
                "relation: adding or removing a point adds or removes its whole cluster, which the kernel synthesizer "
                f"cannot hide; use {either('LGCPSynthesizer', '--method lgcp')} under "
                f"{either('AddRemove()', '--relation add-remove')}."
            )
            raise InputError(msg)

    @classmethod
    def require_options(cls, options: ParsedOptions) -> None:
        """Refuse to go without a delta; InputError."""
        if options["delta"] is None:
            msg = (
                "delta: the kernel synthesizer cannot promise delta = 0; give one far below 1/n, such as --delta 1e-6."
            )
            raise InputError(msg)
        super().require_options(options)

    @classmethod
    def objects(cls, options: ParsedOptions, domain: Domain) -> dict[str, Any]:
        require_fineness(options["spacing"], domain)
        return super().objects(options, domain)

    def plan(
        self, domain: Domain, *, n: int | None = None, expected_n: float | None = None, patterns: int = 1
    ) -> ReleasePlan:
        """Make the release plan from public parameters alone.

        Parameters
        ----------
        domain : Window or LinearNetwork
        n : int
            Public number of points.
        patterns : int
            Number of patterns that the budget pays for.
        """
        require_true_lengths(domain)
        self.public_size(n, expected_n)
        self.require_delta(self.delta, n, expected_n)
        patterns = whole("patterns", patterns, 1)
        if isinstance(domain, LinearNetwork):
            return self._on_network(domain, int(n or 0), patterns)
        return self._on_window(domain, int(n or 0), patterns)

    def _ceiling(self, domain: Any, *, patterns: int = 1, **options: Any) -> Profile:
        if isinstance(domain, LinearNetwork) or self.bound != "superposition":
            return ApproximateDP(float(self.epsilon), float(self.delta))
        budget: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta, "patterns": patterns}
        bandwidth = smallest_bandwidth(domain, self.neighbouring(), **budget)
        public: dict[str, Any] = {"bandwidth": bandwidth, "patterns": patterns, "delta": self.delta}
        return superposition(domain, self.neighbouring(), **public).profile

    def _on_window(self, domain: Any, n: int, patterns: int) -> ReleasePlan:
        if self.spacing is not None:
            msg = "spacing: a kernel on a window has no cells; leave it out."
            raise InputError(msg)
        least = smallest_bandwidth if self.bound == "superposition" else partial(smallest_bandwidth_36, n=n)
        smallest = self._smallest(partial(least, domain), patterns)
        self._require_bandwidth(smallest, domain, patterns)
        by_rule = max(smallest, rules.BY_DOMAIN[type(domain)].bandwidth(domain, n))
        bandwidth = by_rule if self.bandwidth is None else float(self.bandwidth)
        return ReleasePlan("kernel", KernelStatistic(*self._paid(n, bandwidth, patterns), domain, self.bound), None)

    def _on_network(self, domain: LinearNetwork, n: int, patterns: int) -> ReleasePlan:
        if self.bound != "superposition":
            msg = f"bound: {self.bound!r} is for Gaussian kernels on windows; take 'superposition' on a network."
            raise InputError(msg)
        public, given = (domain, None), self.spacing
        by_rule = partial(rules.network_rules.kernel_mesh, domain, self.neighbouring())
        mesh = self._again("mesh", public, by_rule if given is None else partial(network_mesh, domain, given))
        wanted = rules.BY_DOMAIN[type(domain)].bandwidth(domain, n) if self.bandwidth is None else float(self.bandwidth)
        try:
            plan = self._heat(mesh, n, wanted, patterns)
        except PrivacyCheckError:
            search = partial(smallest_diffusion_bandwidth, mesh)
            # The smallest does not depend on n.
            least = self._again("bandwidth", (domain, patterns), lambda: self._smallest(search, patterns))
            self._require_bandwidth(least, domain, patterns)
            plan = self._heat(mesh, n, least if self.bandwidth is None else self.bandwidth, patterns)
        return ReleasePlan("kernel-diffusion", plan, None)

    def _heat(self, mesh: NetworkMesh, n: int, bandwidth: float, patterns: int) -> DiffusionStatistic:
        """The plan of one bandwidth, whose heat flow and guarantee are those of any number of points."""
        public, paid = (mesh.domain, (bandwidth, patterns)), self._paid(n, bandwidth, patterns)
        return self._again("heat", public, lambda: DiffusionStatistic(*paid, mesh)).of(n)

    def _paid(self, n: int, bandwidth: float, patterns: int) -> tuple[CappedRelation, int, float, float, float, int]:
        return self.neighbouring(), n, float(self.epsilon), float(self.delta), bandwidth, patterns

    def _smallest(self, least: Callable[..., float], patterns: int) -> float:
        return least(self.neighbouring(), epsilon=self.epsilon, delta=self.delta, patterns=patterns)

    def _require_bandwidth(self, smallest: float, domain: Domain, patterns: int) -> None:
        if self.bandwidth is not None and self.bandwidth < smallest:
            msg = (
                f"bandwidth: {self.bandwidth:g} {domain.unit} does not satisfy (epsilon, delta) = ({self.epsilon:g}, "
                f"{self.delta:g}) for {patterns} pattern{'s' if patterns > 1 else ''}; the smallest admissible is "
                f"{safe_digits(smallest, up=True)}."
            )
            raise PrivacyCheckError(msg)

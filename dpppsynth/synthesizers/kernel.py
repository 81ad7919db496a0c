"""The kernel synthesizer: Poisson patterns around the points, with privacy by superposition (docs/theory/kernel.md)."""

from dataclasses import KW_ONLY, dataclass
from functools import partial

from dpppsynth.domains import Window
from dpppsynth.errors import InputError, PrivacyCheckError
from dpppsynth.kernel_plan import KernelPlan
from dpppsynth.privacy.bounds import require_small_delta
from dpppsynth.privacy.kernels import smallest_bandwidth, smallest_bandwidth_36
from dpppsynth.privacy.relations import Relation
from dpppsynth.release.field import choose
from dpppsynth.synthesizers import rules
from dpppsynth.synthesizers.base import Plan, Synthesizer, planar, positive, safe_digits

BOUNDS = ("superposition", "kim-lim-3.6")


@dataclass(frozen=True)
class KernelSynthesizer(Synthesizer):
    """Poisson patterns with a Gaussian kernel at each point.

    Simple, and without a model; good where alpha is small and the budget large. Every pattern costs: m patterns are
    planned, and paid, together: `check(domain, n=n, patterns=m)`, `release(pattern, patterns=m)`.

    Parameters
    ----------
    epsilon, delta : float
        Budget of all patterns together; delta must be positive, such as 1e-6.
    alpha : float, optional
        Privacy radius in the window's unit; None protects a move anywhere (replace-one).
    bandwidth : float, optional
        Standard deviation of the kernel, in the window's unit. None takes the smallest admissible one or a public rule,
        whichever is larger. A given one is verified.
    bound : {"superposition", "kim-lim-3.6"}
        The theorem that the bandwidth is checked against.
    relation : Relation, optional
        Neighbouring relation, instead of alpha.
    allow_large_delta : bool
        Accept delta >= 1/n, which promises nothing; only to reproduce published experiments.

    Examples
    --------
    >>> window = Window.rectangle(0, 0, 1000, 1000)
    >>> KernelSynthesizer(10.0, 1e-6, 20.0).check(window, n=400).theorem
    'Theorem B (superposition of kernels)'
    """

    epsilon: float
    delta: float
    alpha: float | None = None
    _: KW_ONLY
    bandwidth: float | None = None
    bound: str = "superposition"
    relation: Relation | None = None
    allow_large_delta: bool = False

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        require_small_delta(self.delta, 0, allow_large_delta=True)
        if not self.delta > 0:
            msg = "delta: the kernel synthesizer cannot promise delta = 0; give one far below 1/n, such as delta=1e-6."
            raise InputError(msg)
        if self.bandwidth is not None:
            positive("bandwidth", self.bandwidth)
        choose("bound", self.bound, BOUNDS)
        if not self.neighbouring().n_is_public:
            msg = (
                "relation: adding or removing a point adds or removes its whole cluster, which the kernel synthesizer "
                "cannot hide; use LGCPSynthesizer under AddRemove()."
            )
            raise InputError(msg)

    def plan(self, domain: Window, *, n: int | None = None, expected_n: float | None = None, patterns: int = 1) -> Plan:
        """Settle every choice from public parameters alone.

        Parameters
        ----------
        domain : Window
        n : int
            Public number of points.
        patterns : int
            Number of patterns that the budget pays for.
        """
        planar(domain)
        self.public_size(n, expected_n)
        require_small_delta(self.delta, n, allow_large_delta=self.allow_large_delta)
        if isinstance(patterns, bool) or not isinstance(patterns, int) or patterns < 1:
            msg = f"patterns: needs a whole number of at least 1, got {patterns!r}."
            raise InputError(msg)
        size = int(n or 0)
        bandwidth = self._bandwidth(domain, size, patterns)
        relation = self.neighbouring()
        statistic = KernelPlan(
            domain, relation, size, float(self.epsilon), float(self.delta), bandwidth, self.bound, patterns
        )
        return Plan("kernel", statistic, None)

    def _bandwidth(self, domain: Window, n: int, patterns: int) -> float:
        least = smallest_bandwidth if self.bound == "superposition" else partial(smallest_bandwidth_36, n=n)
        smallest = least(domain, self.neighbouring(), epsilon=self.epsilon, delta=self.delta, patterns=patterns)
        if self.bandwidth is None:
            return max(smallest, rules.bandwidth(domain, n))
        if self.bandwidth < smallest:
            msg = (
                f"bandwidth: {self.bandwidth:g} {domain.unit} does not satisfy (epsilon, delta) = ({self.epsilon:g}, "
                f"{self.delta:g}) for {patterns} pattern{'s' if patterns > 1 else ''}; the smallest admissible is "
                f"{safe_digits(smallest, up=True)}."
            )
            raise PrivacyCheckError(msg)
        return float(self.bandwidth)

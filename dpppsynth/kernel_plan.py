"""Patterns around the points themselves: the kernel synthesizer's measurement (docs/theory/kernel.md).

What is released are Poisson patterns with intensity `sum_i f_i`, a kernel at each point. Their own randomness protects,
so every pattern is paid for: the number of patterns is part of the plan.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpppsynth.domains import Window
from dpppsynth.kernel import sample_children
from dpppsynth.patterns import PointPattern, require_match
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.kernels import kim_lim_36, superposition
from dpppsynth.privacy.relations import Relation
from dpppsynth.randomness import CHILDREN, RngLike, generator, source


@dataclass(frozen=True, eq=False, repr=False)
class KernelPlan:
    """What will be drawn, and the bound it satisfies, from public parameters alone.

    Attributes
    ----------
    domain : Window
    relation : Relation
    n : int
        Public number of points.
    epsilon, delta : float
        Budget of all patterns together.
    bandwidth : float
        Standard deviation of the Gaussian kernel along each axis, in the window's unit.
    bound : {"superposition", "kim-lim-3.6"}
    patterns : int
        Number of patterns, fixed before the spend.

    Raises
    ------
    PrivacyCheckError
        When the guarantee exceeds the budget.
    """

    domain: Window
    relation: Relation
    n: int
    epsilon: float
    delta: float
    bandwidth: float
    bound: str
    patterns: int

    expected_n = None

    def __post_init__(self) -> None:
        self.guarantee.require(self.epsilon, self.delta)

    def __repr__(self) -> str:
        return f"KernelPlan({self.domain!r}, {self.relation!r}, bandwidth={self.bandwidth:.4g}, {self.bound})"

    @cached_property
    def guarantee(self) -> Guarantee:
        """Theorem B, or Kim & Lim's Theorem 3.6."""
        if self.bound == "superposition":
            return superposition(
                self.domain, self.relation, bandwidth=self.bandwidth, patterns=self.patterns, delta=self.delta
            )
        return kim_lim_36(
            self.domain,
            self.relation,
            n=self.n,
            bandwidth=self.bandwidth,
            patterns=self.patterns,
            epsilon=self.epsilon,
            delta=self.delta,
        )

    def parameters(self) -> dict[str, Any]:
        """Public parameters for the certificate: enough to derive the guarantee again."""
        return {
            "bandwidth": self.bandwidth,
            "bound": self.bound,
            "patterns": self.patterns,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "n": self.n,
            "expected_n": None,
        }

    def measure(self, pattern: PointPattern, rng: RngLike = None) -> "PrivatePatterns":
        """Spend the budget: draw all patterns.

        Parameters
        ----------
        pattern : PointPattern
        rng : None, int or Generator
            None: secret randomness. Anything else makes the run reproducible and therefore not private.

        Raises
        ------
        InputError
            When the pattern is marked, lives in another window or has another number of points than planned.
        """
        require_match(pattern, self.domain, self.n)
        secret = generator(rng)
        drawn = [sample_children(pattern.xy, self.domain, self.bandwidth, secret) for _ in range(self.patterns)]
        # In random order: rows must not tell which point a child belongs to.
        patterns = tuple(PointPattern.synthetic(secret.permutation(xy), self.domain) for xy in drawn)
        seeded = rng is not None
        return self.restore(patterns, source(CHILDREN, seeded=seeded), seeded=seeded)

    def restore(self, patterns: tuple[PointPattern, ...], noise: str, *, seeded: bool) -> "PrivatePatterns":
        """Released patterns of this plan."""
        return PrivatePatterns(self, patterns, noise, seeded)


@dataclass(frozen=True, eq=False, repr=False)
class PrivatePatterns:
    """Released patterns: public once drawn.

    Attributes
    ----------
    plan : KernelPlan
    patterns : tuple of PointPattern
    noise : str
        Name of the randomness.
    seeded : bool
        True when the patterns can be reproduced: then nothing is private.
    """

    plan: KernelPlan
    patterns: tuple[PointPattern, ...]
    noise: str
    seeded: bool

    def __repr__(self) -> str:
        return f"PrivatePatterns({self.plan.domain!r})"

"""Records of the kernel mechanisms, on windows and on networks, with their words and examples."""

from collections.abc import Iterator
from functools import partial

from dpppsynth.contract.examples import RELATIONS, Example, Refusal, ring, square, streets
from dpppsynth.contract.registry import Mechanism
from dpppsynth.contract.statistic import Statistic
from dpppsynth.contract.words import MechanismWords
from dpppsynth.mechanisms.kernel.audit import DiffusionAudit, KernelAudit
from dpppsynth.mechanisms.kernel.statistic import DiffusionStatistic, KernelStatistic
from dpppsynth.mechanisms.kernel.synthesizer import KernelSynthesizer, PoissonRelease
from dpppsynth.spatial.domains import Domain

SCATTERED = "Every pattern was paid for by the privacy budget. There is no released intensity: it would be the data."


CLUSTER = r"^relation: adding or removing a point adds or removes its whole cluster"
BUILD = partial(KernelSynthesizer, 10.0, delta=1e-6)


def kernel() -> Iterator[Example | Refusal]:
    """Examples on windows, with either bound."""
    for relation in RELATIONS[:4]:
        yield Example(str(relation), partial(BUILD, relation=relation), square())
    yield Example("3.6", partial(BUILD, alpha=25.0, bound="kim-lim-3.6"), square())
    yield Example("polygon with a hole", partial(BUILD, alpha=25.0), ring())
    yield Example("kernel", partial(BUILD, alpha=25.0), square(), levels=True)
    yield from refusals(square())


def diffusion() -> Iterator[Example | Refusal]:
    """Examples on streets."""
    for relation in RELATIONS[:4]:
        yield Example(str(relation), partial(BUILD, relation=relation, spacing=100.0), streets())
    yield Example("streets, kernel", partial(BUILD, alpha=25.0, spacing=100.0), streets(), levels=True)
    yield from refusals(streets())


def refusals(domain: Domain) -> Iterator[Refusal]:
    """Unsupported relations, under which a whole cluster is added or removed."""
    for relation in RELATIONS[4:]:
        yield Refusal(relation, partial(KernelSynthesizer, 1.0, delta=1e-6, relation=relation), domain, CLUSTER)


_scattered = partial(Mechanism, settings=KernelSynthesizer, estimators=(), result=PoissonRelease)
KERNEL = _scattered(
    name="kernel",
    statistic=KernelStatistic,
    audit=KernelAudit,
    words=MechanismWords[Statistic, PoissonRelease](
        description="Every point was replaced by a random number of synthetic points scattered at random around it. "
        f"{SCATTERED}"
    ),
    examples=kernel,
)

DIFFUSION = _scattered(
    name="kernel-diffusion",
    statistic=DiffusionStatistic,
    audit=DiffusionAudit,
    words=MechanismWords[Statistic, PoissonRelease](
        description="Every point was replaced by a random number of synthetic points that walked at random along the "
        f"streets. {SCATTERED}"
    ),
    examples=diffusion,
)

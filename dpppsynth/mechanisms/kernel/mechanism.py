"""Records of the kernel mechanisms, on windows and on networks."""

from dpppsynth.contract.registry import Mechanism
from dpppsynth.mechanisms.kernel import examples, words
from dpppsynth.mechanisms.kernel.audit import DiffusionAudit, KernelAudit
from dpppsynth.mechanisms.kernel.release import PoissonRelease
from dpppsynth.mechanisms.kernel.statistic import DiffusionStatistic, KernelStatistic
from dpppsynth.mechanisms.kernel.synthesizer import KernelSynthesizer

KERNEL = Mechanism(
    name="kernel",
    settings=KernelSynthesizer,
    statistic=KernelStatistic,
    estimators=(),
    result=PoissonRelease,
    audit=KernelAudit,
    words=words.KERNEL,
    examples=examples.kernel,
)

DIFFUSION = Mechanism(
    name="kernel-diffusion",
    settings=KernelSynthesizer,
    statistic=DiffusionStatistic,
    estimators=(),
    result=PoissonRelease,
    audit=DiffusionAudit,
    words=words.DIFFUSION,
    examples=examples.diffusion,
)

"""Options of kernel patterns."""

from typing import Any, ClassVar

from dpppsynth.contract.mechanism_options import Given, PointOptions
from dpppsynth.contract.mesh_options import require_fineness
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.kernel.synthesizer import KernelSynthesizer
from dpppsynth.spatial.domains import Domain


class KernelOptions(PointOptions):
    """Options of kernels on windows, and of heat flow on networks."""

    paid: ClassVar[str] = "every pattern of the kernel synthesizer is paid for"
    unfixed: ClassVar[str] = "the kernel synthesizer draws a Poisson number of points"

    def require(self, given: Given) -> None:
        """Refuse to go without a delta; InputError."""
        if given["delta"] is None:
            msg = (
                "delta: the kernel synthesizer cannot promise delta = 0; give one far below 1/n, such as --delta 1e-6."
            )
            raise InputError(msg)
        super().require(given)

    def objects(self, given: Given, domain: Domain) -> dict[str, Any]:
        """Relation, where points are not snapped to segments of a window."""
        require_fineness(given["spacing"], domain)
        return super().objects(given, domain)


KERNEL = KernelOptions(KernelSynthesizer, "kernel")
DIFFUSION = KernelOptions(KernelSynthesizer, "kernel")

"""The log-density of a statistic as one PyTensor operation, for PyMC models; nutpie takes `FieldDensity` instead.

Written out in PyTensor, the same graph takes Numba 10 to 36 s to compile on a cold cache; as one operation it takes
about 8 s, and the formula stands in one place (`mass_log_density`) for NumPy and PyMC alike.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import grad_undefined
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key

from dpppsynth.models.likelihood import Law, mass_log_density


class MassLogDensity(Op):
    """`z, basis, centre, observed, measure, response, n, shift -> log-density, gradient in z`."""

    __props__ = ("law",)

    def __init__(self, law: Law) -> None:
        self.law = law

    def make_node(self, *inputs: Any) -> Apply:
        """Inputs as float64 tensors; outputs a scalar and a vector."""
        tensors = [pt.as_tensor_variable(x, dtype="float64") for x in inputs]
        return Apply(self, tensors, [pt.dscalar(), pt.dvector()])

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Plain NumPy evaluation, for backends without Numba."""
        z, basis, centre, *rest = inputs
        value, gradient = mass_log_density(self.law, centre + basis @ z, *rest)
        outputs[0][0] = np.asarray(value)
        outputs[1][0] = gradient @ basis

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """Gradient in z alone; everything else is data."""
        return [cotangents[0] * outputs[1], *(grad_undefined(self, i, x) for i, x in enumerate(inputs) if i)]

    # PyTensor 2 asks for `L_op`, PyTensor 3 for `pullback`.
    L_op = pullback


@register_funcify_default_op_cache_key(MassLogDensity)  # type: ignore[untyped-decorator]
def _compile(op: MassLogDensity, node: Any = None, **_options: Any) -> Callable[..., Any]:  # noqa: ARG001
    density, law = numba_njit(mass_log_density), numba_njit(op.law)

    @numba_njit
    def evaluate(z, basis, centre, observed, measure, response, n, shift):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        value, gradient = density(law, np.dot(basis, z) + centre, observed, measure, response, n.item(), shift.item())
        return np.asarray(value), np.dot(gradient, basis)

    return evaluate

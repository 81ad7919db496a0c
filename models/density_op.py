"""The log-density of a statistic as one PyTensor operation, for PyMC models; nutpie takes `FieldDensity` instead.

As one operation, in NumPy, the formula stands in one place (`mass_log_density`), and there is no graph to compile.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import grad_undefined
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

from dpppsynth.models.likelihood import Law, mass_log_density
from dpppsynth.spatial.mesh import Floats


class MassLogDensity(Op):
    """Operation `z, basis, centre, observed, measure, response, n, shift -> log-density, gradient in z`."""

    __props__ = ("law",)

    def __init__(self, law: Law) -> None:
        self.law = law

    def make_node(self, *inputs: Any) -> Apply:
        """Inputs as float64 tensors; outputs a scalar and a vector."""
        tensors = [pt.as_tensor_variable(x, dtype="float64") for x in inputs]
        return Apply(self, tensors, [pt.dscalar(), pt.dvector()])

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Value and gradient by NumPy."""
        z, basis, centre, *rest = inputs
        value, gradient = mass_log_density(self.law, centre + basis @ z, *rest)
        outputs[0][0] = np.asarray(value)
        outputs[1][0] = gradient @ basis

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """Gradient in z alone; everything else is data."""
        return [cotangents[0] * outputs[1], *(grad_undefined(self, i, x) for i, x in enumerate(inputs) if i)]

    # PyTensor 2 asks for `L_op`, PyTensor 3 for `pullback`.
    L_op = pullback


class GivenDensity(Op):
    """Operation `z -> value, gradient` of any function of z that gives both."""

    def __init__(self, function: Callable[[Floats], tuple[float, Floats]]) -> None:
        self.function = function

    def make_node(self, *inputs: Any) -> Apply:
        """A vector of float64; outputs a scalar and a vector."""
        return Apply(self, [pt.as_tensor_variable(x, dtype="float64") for x in inputs], [pt.dscalar(), pt.dvector()])

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Value and gradient."""
        value, gradient = self.function(inputs[0])
        outputs[0][0], outputs[1][0] = np.asarray(value), gradient

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """Gradient in z."""
        return [cotangents[0] * outputs[1]]

    L_op = pullback

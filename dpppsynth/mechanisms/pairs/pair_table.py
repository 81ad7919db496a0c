"""Table of released pair sums as CSV."""

from collections.abc import Sequence

from dpppsynth.spatial.mesh import Floats

HEADER = ("radius", "cap", "sum", "noise_sd")


def pair_table(radii: Sequence[float], caps: Sequence[int], sums: Floats, noise_sd: Sequence[float]) -> str:
    """Rows of radius, cap, released sum and standard deviation of its noise.

    Examples
    --------
    >>> import numpy as np
    >>> print(pair_table([10.0], [5], np.array([12.5]), [3.25]), end="")
    radius,cap,sum,noise_sd
    10.0,5,12.5,3.25
    """
    rows = zip(map(float, radii), map(int, caps), map(float, sums), map(float, noise_sd), strict=True)
    return "\n".join([",".join(HEADER), *(",".join(map(repr, row)) for row in rows), ""])

"""Effects of covariates: their posterior, per standard deviation and per unit of each covariate."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dpppsynth.core.arguments import probability
from dpppsynth.core.errors import InputError
from dpppsynth.spatial.covariates import Design
from dpppsynth.spatial.mesh import Floats


class Effects(Mapping[str, Floats]):
    """Posterior draws of effects by the names of covariates, on the log scale, per standard deviation.

    `exp` of an effect is the factor by which the intensity, or the risk, changes where the covariate is one standard
    deviation larger and all else is the same.

    Parameters
    ----------
    design : Design
    draws : (k, p) array
    """

    def __init__(self, design: Design, draws: Floats) -> None:
        self._design, self._draws = design, draws

    def __getitem__(self, name: str) -> Floats:
        if name not in self._design.names:
            raise KeyError(name)
        return self._draws[:, self._design.names.index(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._design.names)

    def __len__(self) -> int:
        return len(self._design.names)

    def __repr__(self) -> str:
        parts = (f"{name}: {self[name].mean():.3g} +- {self[name].std():.2g}" for name in self)
        return f"Effects({', '.join(parts)} per sd)"

    def per_unit(self, name: str) -> Floats:
        """(k,) draws of one effect per unit of its covariate."""
        return self[name] / self._design.sd[self._design.names.index(name)]

    def summary(self, level: float = 0.9) -> Any:
        """Table (`pandas.DataFrame`): mean, standard deviation and central interval, per sd and per unit.

        Parameters
        ----------
        level : float
            Posterior probability of the intervals.
        """
        import pandas as pd

        tail = (1 - probability("level", level)) / 2
        rows = {name: [*_figures(self[name], tail), *_figures(self.per_unit(name), tail)] for name in self}
        figures = ["mean", "sd", f"{100 * tail:g} %", f"{100 - 100 * tail:g} %"]
        columns = pd.MultiIndex.from_product([["per sd", "per unit"], figures])
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def _figures(draws: Floats, tail: float) -> list[float]:
    low, high = np.quantile(draws, [tail, 1 - tail])
    return [float(draws.mean()), float(draws.std()), float(low), float(high)]


def require_effects(design: Design | None) -> Design:
    """The covariates of a release, which it must have.

    Raises
    ------
    InputError
    """
    if design is None:
        msg = "effects: this release has no covariates; give covariates= to the synthesizer."
        raise InputError(msg)
    return design

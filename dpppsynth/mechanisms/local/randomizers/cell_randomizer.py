"""Client laws on a square grid of cells, whose shares are estimated in one of two ways from the same counts.

One is a log-Gaussian field behind the cells, which learns from their neighbours; the other is the published estimator.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import one_of, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local import grid_limits
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer
from dpppsynth.models.channel_likelihood import Channel, Law, Multinomial, ReportLikelihood
from dpppsynth.spatial.simplex import possible

FIELD, EM, LEAST_SQUARES = "field", "em", "least-squares"


@dataclass(frozen=True, kw_only=True, eq=False)
class CellRandomizer(Randomizer):
    """Base of client laws on a square grid, with `cells` along a side; the value of cell (i, j) is `i * cells + j`.

    Attributes
    ----------
    epsilon : float
    cells : int
    """

    cells: int
    # Name of the published estimator.
    published: ClassVar[str] = EM

    @property
    def inputs(self) -> int:
        """Number of cells."""
        return self.cells**2

    @property
    def channel(self) -> Channel:
        """Probabilities of what is counted given the cell."""
        raise NotImplementedError

    def counts_law(self, n: int) -> Law:
        """Law of the counts of n reports."""
        return Multinomial(float(n))

    def settings(self, **given: Any) -> dict[str, Any]:
        """Settings of the estimator in JSON form, defaults filled in.

        `estimator="field"` has no others. Without `estimator` they are those of the published estimator.

        Raises
        ------
        InputError
            A setting is unknown or breaks its rule, or the grid is too large for a field.
        """
        chosen = one_of("estimator", given.pop("estimator", self.published), (FIELD, self.published))
        if chosen == self.published:
            return self.published_settings(**given)
        if given:
            msg = (
                f"settings: {', '.join(map(str, given))} belong to estimator={self.published!r}; say so, or leave them "
                "out."
            )
            raise InputError(msg)
        require_field(self.cells)
        return {"estimator": FIELD}

    def estimate(self, counts: Ints, n: int, *, inside: Any = None, **settings: Any) -> Floats:
        """(inputs,) estimated shares of the cells, non-negative and with sum one.

        Parameters
        ----------
        counts : (size,) array of int
        n : int
            Number of reports.
        inside : (inputs,) array of bool, optional
            Cells that anybody can be in; the others get nothing.
        **settings
            As `settings` names them.

        Raises
        ------
        InputError
            Counts are none of this mechanism or of another number of reports, or a setting breaks its rule.
        """
        chosen = self.settings(**settings)
        if chosen.pop("estimator", self.published) == self.published:
            return self.published_estimate(counts, n, inside=inside, **chosen)
        reported = self.reported(counts)
        if whole("n", n, 1) != reported:
            msg = "n: must be the number of reports behind the counts; take what `reported` returns."
            raise InputError(msg)
        return self.field_estimate(self.tallies(counts), n, possible(inside, self.inputs))

    def field_estimate(self, counts: Ints, n: int, inside: npt.NDArray[np.bool_]) -> Floats:
        """(inputs,) shares by a field, of checked counts."""
        # Devices draw reports without it.
        from dpppsynth.models.channel_posterior import field_shares

        likelihood = ReportLikelihood(self.channel, counts / 1.0, self.counts_law(n), inside / 1.0)
        return field_shares(likelihood).shares

    def published_settings(self, **given: Any) -> dict[str, Any]:
        """Settings of the published estimator in JSON form; InputError for unknown or wrong ones."""
        raise NotImplementedError

    def published_estimate(self, counts: Ints, n: int, *, inside: Any = None, **settings: Any) -> Floats:
        """(inputs,) shares by the published estimator."""
        raise NotImplementedError


def require_field(cells: int) -> None:
    """Refuse a field on a grid of too many cells along a side; InputError."""
    if cells > grid_limits.FIELD_SIDE:
        most = grid_limits.FIELD_SIDE
        msg = f"estimator: a field is for at most {most} x {most} cells, got {cells} x {cells}; take estimator='em'."
        raise InputError(msg)

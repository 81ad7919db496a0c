"""Guarantees of reports that persons randomise themselves (docs/theory/local.md, Theorem L)."""

from collections.abc import Sequence
from typing import Any

from dpppsynth.arguments import instance, several
from dpppsynth.errors import PrivacyCheckError
from dpppsynth.privacy.bounds import ONE_RELEASE
from dpppsynth.privacy.guarantee import Guarantee, PureDP
from dpppsynth.privacy.relations import GeoIndistinguishability, Local
from dpppsynth.randomizers import Randomizer

# How certificates name the randomness, which the aggregator cannot check.
REPORTS = "reports drawn by their senders from integer weights out of 2^62, with secret random bits"

# How intensities are made from a frequency oracle's estimates: free post-processing, which certificates name.
POSTS = ("norm-sub", "clip")

PUBLIC = "Window, grid, mechanism and its settings were chosen without looking at anybody's location."
ONE_REPORT = (
    "Every person sends one report, drawn with the stated weights from secret bits, and it is never drawn again."
)
NOTHING_ELSE = "What else comes with a report (who sent it, when, from where) is not part of the promise."
NOT_LOCAL = "This is not local differential privacy: locations far apart may be told apart."
TWO_GROUPS = "Who reports in which round does not depend on anybody's location, and nobody reports in both."


def local_report(randomizer: Randomizer) -> Guarantee:
    """Guarantee of one report of a client mechanism, from its integer weights.

    Pure `randomizer.spent` for any two values of a person; under geo-indistinguishability for values one cell apart,
    and in proportion to the distance beyond.

    Parameters
    ----------
    randomizer : Randomizer

    Examples
    --------
    >>> from dpppsynth.randomizers import RandomizedResponse
    >>> round(local_report(RandomizedResponse(epsilon=1.0, domain=9)).epsilon(), 9)
    1.0
    """
    spent = instance("randomizer", randomizer, Randomizer, "RandomizedResponse(epsilon=1.0, domain=9) is one").spent
    assumed = (PUBLIC, ONE_REPORT, NOTHING_ELSE, ONE_RELEASE)
    if not randomizer.metric:
        return Guarantee(Local(), PureDP(spent), "Theorem L (local randomizer)", assumed)
    cells = getattr(randomizer, "cells", 1)
    curve = tuple((float(d), d * spent) for d in range(1, cells))
    relation = GeoIndistinguishability(cells)
    return Guarantee(relation, PureDP(spent), "Theorem L (local randomizer)", (*assumed, NOT_LOCAL), curve)


def local_rounds(epsilon: float, randomizers: Sequence[Any]) -> Guarantee:
    """Guarantee of several rounds in each of which other persons report.

    Parameters
    ----------
    epsilon : float
    randomizers : sequence of Randomizer
        One for each round, none of them metric, none spending more than `epsilon`. Those of later rounds may depend on
        the reports of earlier ones, and may be left out, if they keep to `epsilon` as well.

    Raises
    ------
    PrivacyCheckError
        When one of them spends more.
    """
    each = several("randomizers", randomizers, Randomizer)
    assumed = (PUBLIC, ONE_REPORT, NOTHING_ELSE, TWO_GROUPS, ONE_RELEASE)
    guarantee = Guarantee(Local(), PureDP(epsilon), "Theorem L (local randomizer)", assumed)
    if any(clients.metric or not clients.spent <= epsilon for clients in each):
        msg = f"randomizers: one of them does not keep to local privacy at epsilon = {epsilon:g}."
        raise PrivacyCheckError(msg)
    return guarantee

"""Guarantees of reports randomised by the persons themselves (docs/theory/local.md, Theorem L)."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dpppsynth.core.arguments import instance, positive, several, shown
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer
from dpppsynth.mechanisms.local.trajectories.protocol import RoundLaw, TraceProtocol
from dpppsynth.privacy.bounds import ONE_RELEASE
from dpppsynth.privacy.catalogue import ONE_REPORT, TWO_ROUNDS, Code, Statement
from dpppsynth.privacy.guarantee import Guarantee, PureDP
from dpppsynth.privacy.relations import TRAJECTORY, GeoIndistinguishability, Local

# Names of the randomness on certificates, which the aggregator cannot check.
REPORTS = "reports"
SEEDED = "seeded-reports"

# Estimators of intensities from a frequency oracle: free post-processing, named on certificates.
FIELD = "field"
POSTS = (FIELD, "norm-sub", "clip")

PUBLIC = "public-client-settings"
NOTHING_ELSE = "report-alone"
NOT_LOCAL = "not-local-privacy"
ONE_TRAJECTORY = "one-trajectory-each"
GRID = "public-trajectory-settings"
ONE_POINT = "one-point-reported"
TRACES = "local-trajectories"
TWO_GROUPS = "rounds-apart"


def local_report(randomizer: Randomizer, user: str | None = None) -> Guarantee:
    """Guarantee of one report of a client mechanism, from its integer weights.

    Pure `randomizer.spent` for any two values of a person; under geo-indistinguishability for values one cell apart,
    and in proportion to the distance beyond. Where the mark `user` tells persons, a value is that of one of a person's
    points, drawn at random, and all of these are protected.

    Examples
    --------
    >>> from dpppsynth.randomizers import RandomizedResponse
    >>> round(local_report(RandomizedResponse(epsilon=1.0, domain=9)).epsilon(), 9)
    1.0
    """
    spent = instance("randomizer", randomizer, Randomizer, "RandomizedResponse(epsilon=1.0, domain=9) is one").spent
    assumed = (PUBLIC, *_drawn(user), ONE_REPORT, NOTHING_ELSE, ONE_RELEASE)
    if not randomizer.metric:
        return Guarantee(Local(user=user), PureDP(spent), "local-randomizer", assumed)
    cells = square_grid(randomizer)
    # Sides of cells; the last one is the diagonal of the grid.
    apart = [*map(float, range(1, cells)), math.sqrt(2) * (cells - 1)]
    curve = tuple((d, d * spent) for d in apart if d)
    relation = GeoIndistinguishability(cells, user=user)
    return Guarantee(relation, PureDP(spent), "local-randomizer", (*assumed, NOT_LOCAL), curve)


def square_grid(randomizer: Any) -> int:
    """Cells along each side of the square grid of a client mechanism's values; InputError where there is no grid."""
    cells = getattr(randomizer, "cells", None)
    if cells is None:
        msg = f"randomizer: the values of {randomizer.kind} are not the cells of a square grid; take UniformGrid."
        raise InputError(msg)
    return int(cells)


def local_rounds(epsilon: float, randomizers: Sequence[Any], user: str | None = None) -> Guarantee:
    """Guarantee of several rounds, each with reports of different persons.

    Parameters
    ----------
    epsilon : float
    randomizers : sequence of Randomizer
        One for each round, none of them metric, none spending more than `epsilon`. Those of later rounds may depend on
        the reports of earlier ones, and may be left out, if they keep to `epsilon` as well.
    user : str, optional
        Mark that tells persons, as in `local_report`.

    Raises
    ------
    PrivacyCheckError
        When one of them spends more.
    """
    each, epsilon = several("randomizers", randomizers, Randomizer), float(positive("epsilon", epsilon))
    assumed = (PUBLIC, *_drawn(user), ONE_REPORT, NOTHING_ELSE, TWO_GROUPS, ONE_RELEASE)
    if any(clients.metric or not clients.spent <= epsilon for clients in each):
        msg = f"randomizers: one of them does not keep to local privacy at epsilon = {shown(epsilon)}."
        raise PrivacyCheckError(msg)
    return Guarantee(Local(user=user), PureDP(epsilon), "local-randomizer", assumed)


def _drawn(user: str | None) -> tuple[Code, ...]:
    """Assumption on who a person is, where a mark tells it."""
    return () if user is None else (Statement(ONE_POINT, user=user),)


def local_trajectory(randomizer: Randomizer) -> Guarantee:
    """Guarantee of one report of each person about their whole trajectory, from its integer weights.

    Examples
    --------
    >>> from dpppsynth.randomizers import DisplacementLaw
    >>> round(local_trajectory(DisplacementLaw(epsilon=1.0, cells=3, reach=2, radius=1)).epsilon(), 9)
    1.0
    """
    spent = instance("randomizer", randomizer, Randomizer).spent
    if randomizer.metric:
        msg = "randomizer: it tells near values apart less than others; trajectories need a local one."
        raise PrivacyCheckError(msg)
    assumed = (GRID, ONE_TRAJECTORY, ONE_REPORT, NOTHING_ELSE, ONE_RELEASE)
    return Guarantee(Local(TRAJECTORY), PureDP(spent), "local-randomizer", assumed)


def local_round(law: RoundLaw) -> Guarantee:
    """Guarantee of all reports of a person in one round about their trajectory, from their integer weights.

    Epsilon is a sum of fractions, rounded up.
    """
    epsilon = instance("law", law, RoundLaw).spent
    assumed = (GRID, ONE_TRAJECTORY, TWO_ROUNDS, NOTHING_ELSE, ONE_RELEASE)
    return Guarantee(Local(TRAJECTORY), PureDP(epsilon), TRACES, assumed)


def local_trajectories(protocol: TraceProtocol, longest: int | None = None) -> Guarantee:
    """Guarantee of both rounds of reports about a person's trajectory (Theorem T).

    Parameters
    ----------
    protocol : TraceProtocol
    longest : int, optional
        Length that was announced between the rounds. The bound is the same for every one.

    Raises
    ------
    PrivacyCheckError
        When the reports of both rounds, by their integer weights, spend more than the budget.
    """
    epsilon = instance("protocol", protocol, TraceProtocol).epsilon
    for announced in (1, protocol.max_length) if longest is None else (longest,):
        if protocol.first.total + protocol.second(announced).total > Fraction(epsilon):
            msg = f"epsilon: the rounds spend more than {epsilon:g}; this is a defect of their split."
            raise PrivacyCheckError(msg)
    assumed = (GRID, ONE_TRAJECTORY, TWO_ROUNDS, NOTHING_ELSE, ONE_RELEASE)
    return Guarantee(Local(TRAJECTORY), PureDP(epsilon), TRACES, assumed)

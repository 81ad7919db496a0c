"""Interpretation of epsilon for readers: odds, and the share of right guesses, rounded towards less privacy."""

import math

from dpppsynth.core.rounding import stated, upward
from dpppsynth.core.units import lengths_in
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.privacy.catalogue import AVERAGED
from dpppsynth.privacy.guarantee import Guarantee, Profile
from dpppsynth.privacy.relations import INSIDE
from dpppsynth.spatial.domains import Domain

# Guesses out of a hundred above which a promise is called weak, and above which the number says nothing any more.
WEAK, NEXT_TO_NOTHING = 95.0, 99.9
# Odds above which a factor is not quoted.
VAST = 1e6
# Smallest probability quoted as "one in so many".
COUNTABLE = 1e-15
RARE = " But it leaves room for outcomes, rare ones, after which the guess would be next to certain."
# Epsilon at which delta is the irreducible delta.
FAR = 700.0
GUESSER = "Someone who had to guess which case is true, both being equally likely beforehand,"


def guesses(profile: Profile) -> float:
    """Largest number of right guesses out of 100 between two equally likely cases, rounded up to a tenth.

    Examples
    --------
    >>> from dpppsynth.privacy import PureDP
    >>> guesses(PureDP(1.0))
    73.2
    """
    return math.ceil(1000 * (1 + profile.delta(0.0)) / 2 - 1e-9) / 10


def chance(guessed: float) -> str:
    """Probability of a right guess, in words."""
    if guessed > NEXT_TO_NOTHING:
        return (
            f"{GUESSER} could be right practically every time. This is next to no protection: only certainty is "
            "excluded."
        )
    weak = " This is a weak promise." if guessed > WEAK else ""
    return f"{GUESSER} would be right in at most {guessed:g} of 100 cases, where tossing a coin is right in 50.{weak}"


def rare(guarantee: Guarantee) -> str:
    """Text on rare outcomes that allow better guesses than `chance`; empty where it does not apply."""
    # Odds of 19 to 1 are a guess that is right in 95 of 100 cases, here after the outcome is seen.
    return RARE if guarantee.epsilon() > math.log(WEAK / (100 - WEAK)) and guesses(guarantee.profile) <= WEAK else ""


def moved_anyway(guarantee: Guarantee) -> str:
    """Words on moves where points or persons come and go: two steps, with delta times `1 + e^epsilon`."""
    epsilon, delta = guarantee.epsilon(), guarantee.profile.at
    price = f"epsilon {stated(2 * epsilon)}"
    if delta:
        price += f" and delta {stated(min(1.0, delta * (1 + math.exp(min(epsilon, 700.0)))))}"
    who = "their point is" if guarantee.relation.unit == "point" else "their points are"
    return (
        f"Where somebody is, once {who} known to be in the data, is hidden less well: a move is a removal and an "
        f"addition, so telling two places apart may cost twice as much: {price}."
    )


def moved_within(snap: float, domain: Domain) -> str:
    """Words on the tolerance within which points were moved onto a domain.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> moved_within(15.0, Window.rectangle(0, 0, 100, 100, crs="EPSG:27700"))
    'Points within 15 metres of the window were moved onto its border, by a public choice.'
    """
    reach = lengths_in(snap, domain.unit)
    where = (
        "the streets were moved onto them"
        if isinstance(domain, LinearNetwork)
        else "the window were moved onto its border"
    )
    return f"Points within {reach} of {where}, by a public choice."


def likelihood(guarantee: Guarantee, what: str = "whatever is in this release", several: str = "the release") -> str:
    """Likelihood ratio of outcomes in the two cases, in words."""
    aside = f", give or take a probability of {fraction(guarantee.profile.at)}" if guarantee.profile.at else ""
    odds = factor(guarantee.epsilon())
    if odds is None:
        return f"{several} may be more than a million times as likely in one case as in the other{aside}"
    return f"{what} is at most {odds} times as likely in one case as in the other{aside}"


def factor(epsilon: float) -> str | None:
    """e^epsilon, rounded up; None where it is too large to be meaningful."""
    odds = math.exp(min(epsilon, 700.0)) * (1 - 1e-12)
    if odds > VAST:
        return None
    return f"{math.ceil(100 * odds) / 100:g}" if odds < 100 else f"{math.ceil(odds):,}"


def fraction(delta: float) -> str:
    """A probability as "1 in N" where that is exact, else rounded up.

    Examples
    --------
    >>> fraction(1e-6), fraction(2.3451e-6), fraction(1e-218)
    ('1 in 1,000,000', '2.346 × 10⁻⁶', '10⁻²¹⁸')
    """
    if delta < COUNTABLE or not math.isclose(1 / round(1 / delta), delta, rel_tol=1e-9):
        return stated(delta)
    return f"1 in {round(1 / delta):,}"


def cost_of_bound(guarantee: Guarantee) -> str:
    """Cost of a hard bound on errors: outcomes, rare ones as a rule, that only one of two cases can have."""
    least = guarantee.delta(max(FAR, guarantee.epsilon()))
    return (
        "The hard bound on the error has a price. Some outcomes are possible in one of the two cases alone, and tell "
        f"for certain which it is. Their probability is at most {fraction(least)}. No error has a bound without that."
    )


def one_sentence(guarantee: Guarantee, domain: Domain) -> str:
    """The guarantee in one sentence for lay readers; numbers are rounded towards less privacy.

    Examples
    --------
    >>> from dpppsynth import LaplaceSynthesizer, Window
    >>> square = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
    >>> said = one_sentence(LaplaceSynthesizer(0.7, alpha=25.0).check(square, n=400), square)
    >>> said.partition(" as likely")[0][-29:], said[-58:]
    ('is at most 2.02 times (e^0.7)', 'moves by at most 25 metres along a path inside the window.')
    """
    epsilon, delta = guarantee.epsilon(), guarantee.profile.at
    power = f"e^{upward(epsilon, 4)}" if math.isfinite(epsilon) else "any number of"
    odds = factor(epsilon) if epsilon < 9 else None
    times = f"{power} times" if odds is None else f"{odds} times ({power})"
    aside = f", give or take a probability of {upward(delta, 4)}," if delta else ","
    average = " on average over data drawn from the model, not for every data set," if averaged(guarantee) else ""
    return (
        f"Whatever an attacker sees in the release is at most {times} as likely for one of two patterns as for the "
        f"other{aside}{average} where {neighbours(guarantee, domain)}."
    )


def neighbours(guarantee: Guarantee, domain: Domain) -> str:
    """The neighbouring relation in words, with the unit of the domain where its CRS names one."""
    way = "along the streets" if isinstance(domain, LinearNetwork) else "along a path inside the window"
    return guarantee.relation.described_in(domain.unit).replace(INSIDE, way)


def averaged(guarantee: Guarantee) -> bool:
    """Whether the guarantee holds on average over a model alone."""
    return AVERAGED in guarantee.assumptions

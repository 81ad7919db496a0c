"""A guarantee in one sentence, with lengths in the unit of its domain; assumptions are for those who ask."""

import math

from dpppsynth.core.rounding import upward
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.privacy.assumed import AVERAGED
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.odds import factor
from dpppsynth.privacy.relations import INSIDE
from dpppsynth.spatial.domains import Domain


def one_sentence(guarantee: Guarantee, domain: Domain) -> str:
    """The promise to a reader who does not ask how it is proved; numbers are rounded towards less privacy.

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

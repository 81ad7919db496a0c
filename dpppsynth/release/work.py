"""Work of deriving a guarantee again, predicted from public parameters before any of it is done.

A certificate of a few lines may ask for millions of vertices. Plans are made by custodians who wait for what they asked
for; whoever verifies has asked for nothing, so the sum of the terms below is bounded. They are counts, not times:
each is weighted by about the microseconds that one of its units takes.
"""

import shapely

from dpppsynth.contract.registry import is_known, mechanism
from dpppsynth.contract.statistic import Parameters
from dpppsynth.core.published_files import REMEDY
from dpppsynth.core.types import Json, JsonRead
from dpppsynth.spatial.domains import Domain

# About ten seconds, and numbers of a domain, which take three at most to be read.
MOST_WORK, MOST_COORDINATES = 1e7, 400_000
# Square of the corners of a domain's hull, between which its diameter is found; and any level.
HULL, LEVEL = 7e-3, 5e3


def too_large(name: str, parameters: Parameters, domain: Domain) -> str | None:
    """Description of what is too large in the public parameters of a release on a domain, or None.

    Parameters
    ----------
    name : str
        Of the mechanism, or of a release by levels.
    parameters : mapping
        As they stand on the certificate.
    domain : Window or LinearNetwork
    """
    numbers, hull = (float(shapely.get_num_coordinates(of)) for of in (domain.geometry, domain.geometry.convex_hull))
    if 2 * numbers > MOST_COORDINATES:
        return f"the domain has more than {MOST_COORDINATES} numbers: {REMEDY}."
    parts = parameters.get("strata", []) or [{"mechanism": name, "parameters": parameters}]
    total = HULL * hull**2 + sum(_of_part(part, domain) for part in parts)
    if not total > MOST_WORK:
        return None
    times = f"about {total / MOST_WORK:.2g} times the work that is done unasked"
    return f"its mesh, cells or levels take {times}: {REMEDY}."


def _of_part(part: JsonRead, domain: Domain) -> float:
    """Work of one level, or of the one release; a mechanism that is not known is refused before any of it is done."""
    if not is_known(part["mechanism"]):
        return LEVEL
    described, parameters = mechanism(part["mechanism"]), part["parameters"]
    stated = parameters.get("estimator")
    kind = stated.get("kind") if isinstance(stated, dict) else None
    # Of several the one that is stated; a kind that is not known is refused before any of its work is done.
    own = [each for each in described.estimators if len(described.estimators) == 1 or each.kind == kind]
    fitting = sum(each.work(stated, parameters, domain) for each in own)
    return LEVEL + described.statistic.work(parameters, domain) + fitting


def levels(parameters: Parameters) -> list[Parameters]:
    """Public parameters of each level, or of the one release."""
    return [part["parameters"] for part in parameters.get("strata", [])] or [parameters]


def number_of_coordinates(document: Json) -> int:
    """Numbers in the geometries of a GeoJSON document, of whatever content."""
    found, level = 0, [document]
    while level:
        inner = [each for part in level for each in (part.values() if isinstance(part, dict) else part)]
        found += sum(isinstance(each, int | float) for each in inner)
        level = [each for each in inner if isinstance(each, dict | list)]
    return found

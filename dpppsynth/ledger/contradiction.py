"""Contradictions between the public numbers of points of releases from one domain."""

import math

from dpppsynth.ledger.readings import Reading, Values, described


def contradiction(now: Reading, before: Reading) -> str | None:
    """The number stated by `before` that `now` makes impossible, in words; None where both can be true.

    Parts have at most as many points as the whole, and a level that a release of all levels does not have, none.
    """
    if now.count_unit != before.count_unit:
        return None
    for values, number in before.numbers():
        if number is None:
            continue
        least, most = _bounds(now, values)
        if not least <= number <= most:
            other = "another" if least == most else "more of them" if number < least else "fewer"
            return f"{described(values)} of this domain have n = {number}, and this one {other}"
    lacking = next((values for values, _ in now.numbers() if before.lacks(values)), None)
    return None if lacking is None else f"{described(lacking)} of this domain have n = 0, and this one another"


def _bounds(reading: Reading, values: Values) -> tuple[int, float]:
    """Lower and upper bound on the number of points with some values of marks, by what a release tells."""
    if reading.lacks(values):
        return 0, 0
    told, wanted = [({*points}, number) for points, number in reading.numbers()], {*values}
    # A level whose number is not known yet has a point at least.
    least = [1 if number is None else number for points, number in told if points >= wanted]
    most = [number for points, number in told if points <= wanted and number is not None]
    return max(least, default=0), min(most, default=math.inf)

"""Random samples of a few points of each person, for relations that cap persons' points.

Whoever has no more points than the cap keeps all of them, and every choice of so many points of another person is as
likely, independently of what is drawn of others. So two patterns that differ in the points of one person differ in no
more than the cap of those that are drawn, one draw being as likely for either (docs/theory.md, section 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpppsynth.core.arguments import instance, shown
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.types import Ints
from dpppsynth.core.wording import mention
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.persons import persons


def few_rows_each(codes: Ints, most: int, rng: RngLike = None) -> Ints:
    """Ascending rows (k,), at most `most` of each person, from numbers (n,) that tell persons apart.

    They are the first ones of each person in a random order of all rows.

    Examples
    --------
    >>> few_rows_each(np.array([4, 4, 9, 4]), 2, rng=1).tolist() in ([0, 1, 2], [0, 2, 3], [1, 2, 3])
    True
    """
    order = generator(rng).permutation(len(codes))
    # Each person's rows together, in that order.
    order = order[np.argsort(codes[order], kind="stable")]
    own = codes[order]
    first = np.searchsorted(own, own)
    return np.sort(order[np.arange(len(own)) - first < most])


def few_points_each(pattern: PointPattern, user: str, most: int, rng: RngLike = None) -> PointPattern:
    """Pattern of at most `most` points of each person, without the mark `user`, which identifies persons.

    Unless `rng` is given they are drawn by secret random bits; otherwise what is drawn can be reproduced, and so can
    whose points were left out. InputError where there is no such mark, or labels are missing or no texts and whole
    numbers; none is quoted.
    """
    rows = few_rows_each(persons(labels_of(pattern, user)), most, rng)
    others = {name: values[rows] for name, values in (pattern.marks or {}).items() if name != user}
    return PointPattern.at(pattern.positions[rows], pattern.domain, others or None)


def number_of_few(pattern: PointPattern, user: str, most: int) -> int:
    """Number of points that are drawn where each person keeps at most `most`, whichever these are.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> visits = PointPattern([[1, 1], [2, 2], [3, 3]], Window.rectangle(0, 0, 9, 9), {"user": ["ann", "ann", "bo"]})
    >>> [number_of_few(visits, "user", most) for most in (1, 2)]
    [2, 3]
    """
    return number_kept(labels_of(pattern, user), most)


def number_kept(labels: Any, most: int) -> int:
    """Number of points that are kept, at most `most` of each person, from labels (n,) that tell persons apart."""
    return int(np.minimum(np.bincount(persons(labels)), most).sum())


def labels_of(pattern: PointPattern, user: str) -> np.ndarray:
    """(n,) labels of the persons; InputError without them."""
    marks = instance("pattern", pattern, PointPattern).marks or {}
    if user not in marks:
        msg = (
            f"user: the pattern has no mark {shown(user)}, by which the relation tells persons; read it with "
            f"{mention('user', repr(user))}."
        )
        raise InputError(msg)
    return marks[user]

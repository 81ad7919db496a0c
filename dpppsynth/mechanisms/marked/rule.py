"""Default tents of points with marks, from domain, marks, number of points, budget and relation."""

import math

from dpppsynth.contract import rules
from dpppsynth.mechanisms.marked.bound import change_of_marks
from dpppsynth.privacy.relations import AddRemove, CappedRelation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.mesh import Mesh

# Standard deviations of the noise that a number holds at least on average: types and times have much in common.
HOLDS = 0.6
# Numbers at most, for minutes of inference, and vertices along a side.
MOST_BY_RULE, SIDES = 20_000, range(4, 61)


def tents_by_rule(domain: Domain, marks: Marks, n: float, epsilon: float, relation: CappedRelation) -> Mesh:
    """Finest mesh of tents with `n / numbers >= max(1, 0.6 sqrt2 Delta / epsilon)` and at most 20 000 numbers.

    Numbers are types times hats times vertices.
    """
    kind = rules.of(domain)
    types, hats = marks.shape
    aside, best = change_of_marks(marks, relation), SIDES[0]
    for m in SIDES[1:]:
        vertices, moved = kind.tents_size(domain, m, relation)
        change = 1.0 if isinstance(relation, AddRemove) else min(2.0, moved + aside)
        noise = math.sqrt(2) * relation.max_points_per_person * change / epsilon
        numbers = types * hats * vertices
        if numbers <= MOST_BY_RULE and n / numbers >= max(1.0, HOLDS * noise):
            best = m
    found: Mesh = kind.sided_mesh(domain, best)
    return found

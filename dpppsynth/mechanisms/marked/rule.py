"""Default tents of points with marks, from domain, marks, number of points, budget and relation."""

import math

from dpppsynth.contract import rules
from dpppsynth.mechanisms.marked.bound import change_of_marks
from dpppsynth.models.regular_meshes import refine
from dpppsynth.privacy.relations import AddRemove, CappedRelation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.mesh import Mesh

# Standard deviations of the noise that a number holds at least on average, over the square root of the hats' number:
# instants have much in common.
HOLDS = 3.0
# Numbers at most, for minutes of inference, and vertices along a side.
MOST_BY_RULE, SIDES = 20_000, range(4, 61)
# Cells of the field's mesh along the side of a tent, and values of the field up to which tents are refined.
REFINED, FINEST, MOST_REFINED = 2, 4, 8_000


def tents_by_rule(domain: Domain, marks: Marks, n: float, epsilon: float, relation: CappedRelation) -> Mesh:
    """Finest mesh of tents with `n / numbers >= max(1, 3 sqrt2 Delta / (epsilon sqrt(hats)))`, at most 20 000 numbers.

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
        if numbers <= MOST_BY_RULE and n / numbers >= max(1.0, HOLDS * noise / math.sqrt(hats)):
            best = m
    found: Mesh = kind.sided_mesh(domain, best)
    return found


def field_mesh(tents: Mesh, marks: Marks, *, explained: bool = False) -> Mesh:
    """Mesh of the field behind tents: their regular mesh, refined twice where that makes at most 8 000 values.

    With covariates, which it blurs, it is refined four times where that makes no more.
    """
    types, hats = marks.shape
    values = types * hats * len(tents.vertices)
    fine = [each for each in (FINEST, REFINED)[not explained :] if values * each**2 <= MOST_REFINED]
    return refine(tents, fine[0]) if fine and tents.recipe["builder"] == "regular" else tents

"""Audit of counts of moved points with marks."""

from dataclasses import dataclass

from dpppsynth.contract.audits.moved_counts import MovedCountsAudit
from dpppsynth.contract.audits.neighbouring_pairs import Pair
from dpppsynth.mechanisms.marked.audit import marked, own_pair
from dpppsynth.mechanisms.marked.moved_statistic import MarkedMoves
from dpppsynth.privacy.relations import Relation


@dataclass(frozen=True, eq=False)
class MarkedMovesAudit(MovedCountsAudit):
    """Counts of points with planar Laplace noise on each, of types and times that they keep."""

    plan: MarkedMoves

    def pair(self, relation: Relation) -> Pair:
        """The hardest pair of places; all points have the first type and time."""
        one, other = super().pair(relation)
        return marked(one, self.plan.marks, ()), marked(other, self.plan.marks, ())

    def neighbours(self, relation: Relation, pair: object = None) -> Pair:
        """The pair given, if it is neighbouring and every point keeps its marks, or else the hard pair; InputError."""
        return self.pair(relation) if pair is None else own_pair(pair, relation, self.plan.marks)

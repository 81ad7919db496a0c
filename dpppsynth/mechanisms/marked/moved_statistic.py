"""`MarkedMoves`: counts of moved points of every type, and about every instant, where types and times are public."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dpppsynth.contract.moved_counts import MovedCounts
from dpppsynth.contract.parameter_forms import NULL, OBJECT, POSITIVE, WHOLE, Form, const
from dpppsynth.contract.statistic import Parameters
from dpppsynth.core.arguments import instance
from dpppsynth.core.wording import Rows
from dpppsynth.mechanisms.marked.bound import kept_marks, require_kept
from dpppsynth.mechanisms.marked.statistic import MARKS_FORM, MarkedStatistic
from dpppsynth.privacy.catalogue import Code
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.mesh import Ints
from dpppsynth.spatial.patterns import PointPattern


@dataclass(frozen=True, eq=False, repr=False)
class MarkedMoves(MarkedStatistic, MovedCounts):
    """Counts of moved points at the nodes of a lattice, for each type and for each instant nearest to their times.

    Every point keeps its type and its time, which are public; its place is moved as in `MovedCounts`. Numbers are in
    the order of types, of instants of each type, and of nodes of each instant.

    Attributes
    ----------
    mesh, relation, n, epsilon
        As in `MovedCounts`; the relation says that types and times are public.
    marks : Marks
        Public types and range of times.

    Raises
    ------
    InputError
        As there; and where types or times are protected.
    """

    marks: Marks
    basis: ClassVar[str] = "marked moved counts"
    form: ClassVar[Form] = {
        "basis": const("marked moved counts"),
        "mesh": OBJECT,
        "marks": MARKS_FORM,
        "n": WHOLE,
        "expected_n": NULL,
        "rate": POSITIVE,
        "extension": WHOLE,
    }
    attributes: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        instance("marks", self.marks, Marks)
        require_kept(self.relation, self.marks)
        super().__post_init__()

    def __repr__(self) -> str:
        return f"MarkedMoves({self.mesh!r}, {self.marks!r}, {self.relation!r}, epsilon={self.epsilon:g})"

    @property
    def levels(self) -> int:
        types, hats = self.marks.shape
        return types * hats

    @property
    def assumed(self) -> tuple[Code, ...]:
        return kept_marks(self.marks)

    @classmethod
    def further(cls, parameters: Parameters) -> dict[str, Any]:
        return {"marks": Marks.from_dict(parameters["marks"])}

    def levels_of(self, pattern: PointPattern) -> Ints:
        kinds, times = self.marks.require(pattern.marks)
        return self.marks.levels(kinds, times)

    def table_rows(self) -> Rows:
        (_, measured), *others = super().table_rows()
        types, hats = self.marks.shape
        return [("measured", f"{measured}, for {types} types at {hats} instants"), *others]

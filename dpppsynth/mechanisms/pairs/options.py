"""Options of pair sums."""

from typing import Any, ClassVar

from dpppsynth.contract.mechanism_options import NO_CAP, NO_RELATION, Given, MechanismOptions, PointOptions
from dpppsynth.contract.settings import CAP, RELATION, Setting
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.pairs.synthesizer import PairSums
from dpppsynth.privacy.relations import AddRemovePerson
from dpppsynth.spatial.domains import Domain

NO_PATTERNS = "pair sums are numbers, and no pattern can be drawn from them"
ERROR = (
    "Distance: error of the private sums in shares of the surrogate's own, averaged over the radii; in brackets that "
    "of no sums at all."
)


class PairOptions(PointOptions):
    """Options of pair sums that protect points."""

    extra: ClassVar[tuple[Setting, ...]] = (RELATION, CAP)
    paid: ClassVar[str] = NO_PATTERNS
    unfixed: ClassVar[str] = NO_PATTERNS
    distance: ClassVar[str] = ERROR

    def require(self, given: Given) -> None:
        """Refuse a column of persons, whose relation has a mechanism of its own; InputError."""
        given.require_none("user", "persons with all their points are what --mechanism pair-sums-persons protects")
        super().require(given)


class PersonPairOptions(MechanismOptions):
    """Options of pair sums that protect persons with all their points."""

    extra: ClassVar[tuple[Setting, ...]] = (NO_RELATION, NO_CAP)
    paid: ClassVar[str] = NO_PATTERNS
    unfixed: ClassVar[str] = NO_PATTERNS
    distance: ClassVar[str] = ERROR

    def require(self, given: Given) -> None:
        """Refuse promises about points; InputError."""
        if given["relation"] not in (None, AddRemovePerson.name):
            msg = f"relation: {given.called} promises add-remove-person, not {given['relation']}; leave --relation out"
            raise InputError(msg)
        given.require_none("alpha", f"{given.called} protects persons wherever their points lie; leave --alpha out")
        if given["max_points_per_person"] not in (None, 1):
            msg = (
                f"max_points_per_person: {given.called} protects all points of a person, however many; leave "
                "--max-points-per-person out"
            )
            raise InputError(msg)
        super().require(given)

    def objects(self, given: Given, domain: Domain) -> dict[str, Any]:
        """The mark of persons."""
        return {"user": self.user(given)}

    def relation(self, given: Given) -> AddRemovePerson:
        """One person is added or removed."""
        return AddRemovePerson(self.user(given))

    def user(self, given: Given) -> str:
        """The column that tells the persons."""
        return given["user"] or AddRemovePerson.user

    def require_people(self, given: Given, n: int | None, by: str | None) -> None:
        """Refuse a number that is secret, and marks that would cut a person in parts; InputError."""
        given_n = "n: the numbers of persons and points are secret; leave --n out"
        if n is not None:
            raise InputError(given_n)
        super().require_people(given, n, by)


POINTS = PairOptions(PairSums, "pair-sums")
PERSONS = PersonPairOptions(PairSums, "pair-sums-persons")

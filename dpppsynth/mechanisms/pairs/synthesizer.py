"""`PairSums`: private capped sums over pairs of near points (docs/theory/pair_sums.md)."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar

from dpppsynth.contract.object_options import relation_of, require_relation
from dpppsynth.contract.pair_settings import caps_of, numbers, reals, require_levels
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.settings import (
    ALPHA,
    CAP,
    EPSILON,
    EXPERT,
    LENGTH,
    PRIVACY,
    RELATION,
    ParsedOptions,
    made_of,
    setting,
)
from dpppsynth.contract.synthesizer import (
    Synthesizer,
    exact_or_guess,
    point_relation,
    public_size,
    require_true_lengths,
)
from dpppsynth.core.arguments import positive, shown, whole_number
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.mechanisms.pairs.statistic import PairSumsStatistic, PersonPairSumsStatistic
from dpppsynth.models.pair_sums import MOST_STEPS, finest, require_radius
from dpppsynth.privacy.relations import AddRemovePerson, Relation
from dpppsynth.release import folder_writing
from dpppsynth.release.certificate import PAIR_SUMS
from dpppsynth.release.release import PatternRelease, StatisticRelease
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern

NO_PATTERNS = "pair sums are numbers, and no pattern can be drawn from them"


@dataclass(frozen=True, eq=False, repr=False)
class PairSumsRelease(StatisticRelease[PairSumsStatistic], PatternRelease):
    """Release of sums over pairs: everything in it is public. It holds numbers and no patterns."""

    @property
    def radii(self) -> tuple[float, ...]:
        """(L,) radii, in the domain's unit."""
        return self.statistic.definition.radii

    @property
    def caps(self) -> tuple[int, ...]:
        """(L,) caps on what one point, or person, adds to a sum."""
        return self.statistic.definition.caps

    @property
    def sums(self) -> Floats:
        """(L,) noised sums of `1 - distance / radius` over pairs, in pairs; some may be negative."""
        return self.statistic.masses

    @property
    def noise_sd(self) -> tuple[float, ...]:
        """(L,) standard deviations of the sums' noise."""
        return self.statistic.definition.pairs.noise_sd

    @property
    def patterns(self) -> list[PointPattern]:
        """None: no pattern was paid for."""
        return []

    def table(self) -> str:
        """Radii, caps, sums and standard deviations of their noise, as CSV."""
        return self.statistic.definition.table(self.statistic.lattice)

    def write(self, folder: Path, start: str = "") -> None:
        super().write(folder, start)
        folder_writing.put(self.table(), folder / (start + PAIR_SUMS))


def _for_persons(options: ParsedOptions) -> bool:
    return options.mechanism == "pair-sums-persons"


@dataclass(frozen=True, eq=False)
class PairSums(Synthesizer[PairSumsRelease]):
    """Private second-order statistic: sums over pairs of near points, at several radii.

    Every pair at a distance d below a radius r adds `1 - d / r` to the sum of that radius; distances are straight on a
    window and along the streets of a network. What one point adds, or one person with all their points, is capped, so
    that noise of a size that does not depend on the pattern hides it. Where nobody meets the cap, the sum is that over
    all pairs; it is less where somebody does, by as little as the cap allows.

    Parameters
    ----------
    epsilon : float
        Budget of all radii together; the release is (epsilon, 0)-differentially private.
    radii : sequence of float
        Increasing, in the domain's unit.
    cap : int or sequence of int
        Most that one point or person adds to a sum; one for all radii, or one for each.
    alpha : float, optional
        Privacy radius. The noise is the same for any: it hides a move anywhere (replace-one).
    relation : Relation, optional
        Neighbouring relation, instead of alpha. With a cap on the points of a person each point has the cap.
    user : str, optional
        Mark that tells the persons, each of whom has any number of points and the cap once: short for
        `relation=AddRemovePerson(user)`. Pairs of one person count as well, and twice against that person's cap.
    shares : sequence of float, optional
        Shares of the budget, one for each radius, which add up to 1; equal unless given.
    steps : int, optional
        Lattice places within a radius, to which points are taken before distances are; at most 16. None takes the
        finest lattice whose pairs a computer can hold, whatever the points are.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> pairs = PairSums(1.0, radii=[15.0, 40.0], cap=[10, 20])
    >>> plan = pairs.plan(Window.rectangle(0, 0, 1000, 1000), n=400).statistic
    >>> [round(sd, 1) for sd in plan.pairs.noise_sd]
    [28.3, 56.6]
    """

    epsilon: float = setting(**EPSILON)
    _: KW_ONLY
    radii: Any = setting(
        help="List of distances within which pairs count",
        unit=LENGTH,
        kind=str,
        metavar="R,R",
        example="15,40",
        convert=numbers("radii"),
    )
    cap: Any = setting(
        help="Cap on what one point, or person, adds to a sum; one for all radii, or one for each",
        option="--pair-cap",
        kind=str,
        metavar="CAP,CAP",
        example="10,20",
        convert=numbers("cap"),
        panel=PRIVACY,
    )
    alpha: float | None = setting(None, **ALPHA)
    relation: Relation | None = made_of(RELATION, CAP)
    user: str | None = setting(None, help="Column that tells whose point a row is", metavar="COLUMN", panel=PRIVACY)
    shares: Any = setting(
        None,
        help="Shares of the budget, one for each radius",
        kind=str,
        metavar="S,S",
        convert=numbers("shares"),
        otherwise="equal ones",
        panel=EXPERT,
    )
    steps: int | None = setting(
        None, help="Lattice places within a radius", otherwise="as many as the pairs allow", panel=EXPERT
    )

    paid: ClassVar[str] = NO_PATTERNS
    unfixed: ClassVar[str] = NO_PATTERNS
    distance: ClassVar[str] = (
        "Distance: error of the private sums in shares of the surrogate's own, averaged over the radii; in brackets "
        "that of no sums at all."
    )

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        object.__setattr__(self, "radii", reals("radii", self.radii))
        object.__setattr__(self, "cap", caps_of(self.cap, len(self.radii)))
        shares = [1 / len(self.radii)] * len(self.radii) if self.shares is None else self.shares
        object.__setattr__(self, "shares", reals("shares", shares))
        if self.steps is not None:
            steps = whole_number(self.steps)
            if steps is None or not 1 <= steps <= MOST_STEPS:
                msg = f"steps: needs a whole number from 1 to {MOST_STEPS}, got {shown(self.steps)}."
                raise InputError(msg)
            object.__setattr__(self, "steps", steps)
        require_levels(self.radii, self.cap, self.shares, (MOST_STEPS,) * len(self.radii))
        self.neighbouring()

    def neighbouring(self) -> Relation:
        """The relation in force: that of persons where there is a mark, the one given, or that of points."""
        told = self.relation if self.user is None else AddRemovePerson(self.user)
        if not isinstance(told, AddRemovePerson):
            return point_relation(told, self.alpha)
        if self.alpha is not None or self.relation not in (None, told):
            msg = (
                f"user: persons are added or removed with all their points, wherever they are; leave "
                f"{mention('alpha')} and {mention('relation')} out."
            )
            raise InputError(msg)
        return told

    @classmethod
    def require_options(cls, options: ParsedOptions) -> None:
        """Refuse promises about points of the mechanism for persons, and about persons of that for points; InputError.

        The mechanisms "pair-sums" and "pair-sums-persons" are made from the same settings.
        """
        if not _for_persons(options):
            if options["user"] is not None:
                msg = "user: persons with all their points are what --mechanism pair-sums-persons protects"
                raise InputError(msg)
            require_relation(options)
            super().require_options(options)
            return
        called = options.called
        if options["relation"] not in (None, AddRemovePerson.name):
            msg = f"relation: {called} promises add-remove-person, not {options['relation']}; leave --relation out"
            raise InputError(msg)
        if options["alpha"] is not None:
            msg = f"alpha: {called} protects persons wherever their points lie; leave --alpha out"
            raise InputError(msg)
        if options["max_points_per_person"] not in (None, 1):
            msg = (
                f"max_points_per_person: {called} protects all points of a person, however many; leave "
                "--max-points-per-person out"
            )
            raise InputError(msg)
        super().require_options(options)

    @classmethod
    def objects(cls, options: ParsedOptions, domain: Domain) -> dict[str, Any]:
        if _for_persons(options):
            return {"user": cls.user_column(options)}
        return {"relation": cls.relation_from(options), "alpha": None}

    @classmethod
    def relation_from(cls, options: ParsedOptions) -> Relation:
        return AddRemovePerson(cls.user_column(options) or "") if _for_persons(options) else relation_of(options)

    @classmethod
    def user_column(cls, options: ParsedOptions) -> str | None:
        return (options["user"] or AddRemovePerson.user) if _for_persons(options) else None

    @classmethod
    def require_size(cls, options: ParsedOptions, n: int | None, by: str | None) -> None:
        if _for_persons(options) and n is not None:
            msg = "n: the numbers of persons and points are secret; leave --n out"
            raise InputError(msg)
        super().require_size(options, n, by)

    def plan(self, domain: Domain, *, n: int | None = None, expected_n: float | None = None) -> ReleasePlan:
        require_true_lengths(domain)
        relation = self.neighbouring()
        exact, guess = exact_or_guess(n, public_size(relation, n, expected_n))
        for radius in self.radii:
            require_radius(radius, domain)
        steps = tuple(finest(domain, radius, exact) if self.steps is None else self.steps for radius in self.radii)
        settled = exact, guess, float(self.epsilon), self.radii, self.cap, self.shares, steps
        if isinstance(relation, AddRemovePerson):
            return ReleasePlan("pair-sums-persons", PersonPairSumsStatistic(domain, relation, *settled), None)
        return ReleasePlan("pair-sums", PairSumsStatistic(domain, relation, *settled), None)

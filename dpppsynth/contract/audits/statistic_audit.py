"""`StatisticAudit`: audit of one statistic, supplied by its mechanism."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NoReturn, Protocol, Self, runtime_checkable

from numpy.typing import ArrayLike

from dpppsynth.contract.audits.hard_pairs import add_remove_pair, moved_pair
from dpppsynth.contract.audits.neighbouring_pairs import Pair, own_pair, what_changes, with_user_ids
from dpppsynth.contract.audits.noise_laws import NoiseOf, one
from dpppsynth.contract.audits.statistics import named
from dpppsynth.contract.audits.target import AuditStatistic, Draws, Released, Scores, StatedLaw, Target, Weakened
from dpppsynth.contract.statistic import Statistic
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.profiles import Profile
from dpppsynth.privacy.relations import CappedRelation, Relation
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern

# Standard deviations by which a claim is refuted, by scores of runs with half of the noise.
Margin = Callable[[Profile, Scores], float]
More = Iterable[AuditStatistic | Callable[[Released], ArrayLike]]


class AuditRun(Protocol):
    """One run of a mechanism, with secret randomness. Picklable."""

    @property
    def plan(self) -> Statistic:
        """Statistic that the budget is spent on."""

    def on(self, plan: Statistic) -> Self:
        """The same run with another statistic of the same class."""

    def __call__(self, pattern: PointPattern, /) -> Released:
        """The published data of a run on an input."""


class OwnAudit(Protocol):
    """Audit that needs no plan."""

    def target(self, margin: Margin, *, pair: object = None, statistics: More = ()) -> Target:
        """Target of its runs; parameters as in `StatisticAudit.target`."""


@runtime_checkable
class Audited(Protocol):
    """Objects that can be audited without a plan: clients of a local mechanism."""

    def own_audit(self) -> OwnAudit | None:
        """Audit without a plan; None where one is needed."""


@dataclass(frozen=True, eq=False)
class StatisticAudit:
    """Base of audits, one class for each kind of statistic: hard pair, test statistics and stated noise laws.

    All follows from public parameters and made-up points. A question that a mechanism does not answer is refused by its
    name, so that no audit looks less closely than it seems to.
    """

    plan: Statistic
    # Whether the noise is independent and symmetric, number by number.
    symmetric: ClassVar[bool] = False

    def separation(self, first: Floats, second: Floats) -> Floats:
        """(P,) size of the change of a move between positions (P, 2) and (P, 2); only the order matters.

        Each kind of mechanism has a measure of its own; only its order matters, which picks the hardest pair.
        """
        self._unknown("how well it tells places apart", "separation")

    def presence(self, at: Floats) -> Floats:
        """(P,) size of the change of adding a point at positions (P, 2); only the order matters."""
        self._unknown("the location of the largest privacy loss", "presence")

    def pair(self, relation: Relation) -> Pair:
        """Two neighbouring patterns of about the largest privacy loss.

        Returns
        -------
        tuple of PointPattern
            With exactly `n` points each, the moved ones last; under add/remove the first has those of one person, the
            second has not, and the first has about `expected_n` points.

        Raises
        ------
        InputError
            When the number of points is none that can be made up, or no move is possible.
        """
        if not isinstance(relation, CappedRelation):
            self._unknown(f"the hardest pair where {relation.describe()}", "pair")
        if relation.n_is_public:
            return moved_pair(self.plan, relation, self.separation)
        return add_remove_pair(self.plan, relation, self.presence)

    def statistics(self, pair: Pair) -> tuple[AuditStatistic, ...]:
        """Test statistics; the first is the likelihood ratio, which rates the audit."""
        self._unknown("what to look at in a release", "statistics")

    def as_stated(self, pair: Pair, claim: Profile) -> Profile:
        """The claim, tightened by the exact noise law at a pair where that is known."""
        self._unknown("what its noise gives away at a pair", "as_stated")

    def spent(self, pair: Pair, claim: Profile) -> tuple[float, float]:
        """Privacy parameter of the stated noise at a pair, and the claimed one; `UNKNOWN` if not known."""
        self._unknown("what its noise spends at a pair", "spent")

    def weakened(self, pair: Pair) -> Weakened | None:
        """Distribution of the first test statistic by the factor of too little noise; None where it is not known."""
        self._unknown("what too little noise does", "weakened")

    def alike(self, pair: Pair) -> bool:
        """Whether the output has the same distribution on both patterns."""
        self._unknown("which patterns it treats alike", "alike")

    def noise(self, pair: Pair) -> NoiseOf | None:
        """Reader of the noise in a release of either pattern; None where it is not known."""
        self._unknown("its noise", "noise")

    @property
    def numbers(self) -> int:
        """Number of noised values that a run releases; the least possible where it is random."""
        self._unknown("the number of noised values", "numbers")

    def log_likeliest(self, pair: Pair, first: int | None = None) -> float:
        """Logarithm of an upper bound on the probability of any outcome of the noise, or of its `first` numbers."""
        self._unknown("how likely its noise may come again", "log_likeliest")

    def laws(self, pair: Pair) -> tuple[StatedLaw, ...]:
        """Stated laws of the noise; empty where they are not known number by number."""
        self._unknown("the laws of its noise", "laws")

    def files(self, lattice: Ints, read: Callable[[str], bytes]) -> Iterator[tuple[str, bool]]:
        """Kinds of files derived from released numbers, and whether each agrees with them.

        Parameters
        ----------
        lattice : (k,) array of int
        read : callable
            From the name of a file of the release to its content.
        """
        yield from ()

    def excess(self, pair: Pair, claim: Profile) -> tuple[str, ...]:
        """Violations of the claim by the stated noise itself at a pair, found without a run.

        A plan that was calibrated to a shorter privacy radius than it claims, or whose persons weigh more than one,
        shows here.
        """
        spent, allowed = self.spent(pair, claim)
        if spent <= allowed * (1 + 1e-9):
            return ()
        return (f"at this pair the stated noise gives away {spent:.4g}, and {allowed:.4g} is claimed",)

    def draws(self, pair: Pair) -> tuple[Draws, ...]:
        """Noise draws of the releases, compared with each other for repeats."""
        noise = self.noise(pair)
        return () if noise is None else (Draws("noise", partial(one, noise), self.log_likeliest(pair)),)

    def neighbours(self, relation: Relation, pair: object = None) -> Pair:
        """The pair given, if it is neighbouring under the relation, or else the hard pair; InputError."""
        return self.pair(relation) if pair is None else own_pair(pair, relation)

    def target(
        self,
        run: AuditRun,
        name: str,
        claim: Guarantee,
        *,
        margin: Margin,
        pair: object = None,
        statistics: More = (),
        relation: Relation | None = None,
    ) -> Target:
        """Target of runs that claim a guarantee.

        Parameters
        ----------
        run : AuditRun
        name : str
            Of the mechanism, for people.
        claim : Guarantee
        margin : Margin
            Rating by which some mechanisms choose the pair.
        pair : tuple of two, optional
            Of the caller's own; unless given, the hardest one.
        statistics : sequence of AuditStatistic or callable
            Looked at beside the built-in ones.
        relation : Relation, optional
            The one asked for; unless given, the guarantee's own.

        Raises
        ------
        InputError
            When the pair is not neighbouring, or the mechanism has no audit.
        """
        given, relation = pair is not None, claim.relation if relation is None else relation
        pair = self.neighbours(relation, pair)
        return Target(
            run=run,
            pair=with_user_ids(pair, relation),
            claimed=self.as_stated(pair, claim.profile),
            statistics=(*self.statistics(pair), *named(statistics)),
            words=f"{name}: {what_changes(pair, relation, given=given)}",
            weakened=self.weakened(pair),
            alike=self.alike(pair),
            draws=self.draws(pair),
            laws=self.laws(pair),
            excess=self.excess(pair, claim.profile),
        )

    def _unknown(self, what: str, method: str) -> NoReturn:
        msg = (
            f"target: the audit of {type(self.plan).__name__} does not say {what}; write `{method}` of "
            f"{type(self).__name__}, or audit a function of your own with pair=, claimed= and statistics=."
        )
        raise InputError(msg)


# What is spent, and what may be, where nothing is known of that.
UNKNOWN = 0.0, math.inf

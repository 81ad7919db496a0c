"""`Statistic`: the noised numbers of a mechanism, defined by public parameters; `Measured`: their released values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from dpppsynth.contract.parameter_forms import Form
from dpppsynth.contract.result import UNFITTED, FitSummary, Result, Saved, released_fit, released_intensity
from dpppsynth.core.arguments import shown
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike
from dpppsynth.core.rounding import upward
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.linear_network import LinearNetwork, NetworkMesh
from dpppsynth.models.recipes import around
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import CappedRelation, Relation
from dpppsynth.privacy.shuffling import ShuffledPrivacy
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.intensity import Intensity
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.marked_offset import AnyOffset
from dpppsynth.spatial.mesh import Floats, Ints, Mesh
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern, require_match, require_number
from dpppsynth.spatial.person_points import few_points_each, number_of_few

ANOTHER_NUMBER_OF_FEW = (
    "n: the release was planned for another number of points than count, at most {most} of each person of the column "
    "{user}; plan with the number that `dpppsynth inspect` tells."
)
# From a pattern and a generator to a whole release.
Releasing = Callable[[PointPattern, np.random.Generator], Result]
# Public parameters, as they stand on a certificate.
Parameters = JsonRead
# Refuses the bytes of a file that do not go with the released numbers.
FileCheck = Callable[[bytes, Ints], object]
Exact = TypeVar("Exact")
Drawn = TypeVar("Drawn")
P_co = TypeVar("P_co", bound="Statistic", covariant=True)


class Measured(Protocol[P_co]):
    """The outcome of a measurement: public from then on."""

    @property
    def definition(self) -> P_co:
        """The statistic that was measured."""

    @property
    def noise(self) -> str:
        """Sampler and entropy of the randomness that protects."""

    @property
    def seeded(self) -> bool:
        """True when the randomness can be reproduced: then nothing is private."""


@dataclass(frozen=True)
class Trial:
    """One run of a mechanism on a surrogate pattern.

    Attributes
    ----------
    estimate : callable or None
        From coordinates (k, 2) to the intensity that was released, or drawn from; None where distances are given.
    attempts : int or None
        Attempts of the exact sampler.
    fit : FitSummary
        Diagnostics of what was inferred, or of a draw by NUTS.
    distances : (float, float) or None
        From the surrogate to what was released, and to what needs no data, in a measure of the mechanism's own.
    clusters : float or None
        Posterior probability of clusters, where they are measured.
    """

    estimate: Callable[[Floats], Floats] | None
    attempts: int | None = None
    fit: FitSummary = UNFITTED
    distances: tuple[float, float] | None = None
    clusters: float | None = None


# Epsilon that is stated where nothing is spent.
NOTHING = 1e-9


class Statistic:
    """Base of statistics: the measurement that the budget is spent on, from public parameters alone.

    Attributes
    ----------
    domain : Window or LinearNetwork
    n : int or None
        Public number of points (or persons, or trajectories); None when the relation keeps it secret.
    expected_n : float or None
        Public guess that stands in for n where n is secret.
    """

    # Form of the public parameters, but for epsilon, n and expected_n where nothing more is to say of them.
    form: ClassVar[Form]
    # Attributes of which the form has another name, by that name.
    attributes: ClassVar[Mapping[str, str]] = {}
    # Names of optional parameters, which are left out where they are None.
    optional: ClassVar[frozenset[str]] = frozenset()
    # Whether neighbours differ by a capped number of points.
    capped: ClassVar[bool] = True
    # Whether `measure` begins with `admitted`: relations that tell persons by a mark are refused where it does not.
    keeps_cap: ClassVar[bool] = False
    # Whether types and times of points are measured, of which the relation then says what is protected.
    keeps_marks: ClassVar[bool] = False
    # Whether synthetic patterns are drawn from its releases, or paid for.
    has_patterns: ClassVar[bool] = True
    # Things whose number is n or guessed, and the measure of distance in rehearsals.
    individuals: ClassVar[str] = "points"
    distance: ClassVar[str] = "total variation"
    if not TYPE_CHECKING:
        paid_patterns = 0

    # Fields of some plans, properties of others; a property here would be the default of a field there.
    if TYPE_CHECKING:

        @property
        def domain(self) -> Domain:
            """Public window or network."""

        @property
        def guarantee(self) -> Guarantee:
            """The bound that `measure` satisfies."""

        @property
        def epsilon(self) -> float:
            """Budget asked for."""

        @property
        def n(self) -> int | None:
            """Public number of points, or of what `count_unit` tells; None where it is secret."""

        @property
        def expected_n(self) -> float | None:
            """Public guess of it, where it is secret."""

        @property
        def paid_patterns(self) -> int:
            """Synthetic patterns that the budget pays for one by one; any number is free where it is 0."""

    @property
    def spent(self) -> float:
        """Epsilon that the noise really spends, at most the budget; certificates state it."""
        return min(self.epsilon, max(float(upward(self.guarantee.epsilon(), 9)), NOTHING))

    @property
    def count_unit(self) -> str | None:
        """Mark whose values n counts, such as trajectories; None where n counts points."""
        mark: str | None = getattr(self, "user", None)
        return mark

    @property
    def persons_by(self) -> str | None:
        """Mark of persons, a few random points of each of whom are measured; None where all points are."""
        cap = self.guarantee.relation.user_cap
        return None if cap is None else cap.user

    @property
    def described(self) -> Marks | None:
        """Types and times of synthetic points; None where they have none."""
        return None

    @property
    def mark_names(self) -> tuple[str, ...]:
        """Names of the marks that synthetic points have: none unless types or times are measured."""
        return () if self.described is None else self.described.names

    @property
    def size(self) -> int:
        """Number of released numbers; 0 where only patterns are released."""
        raise NotImplementedError

    @property
    def most_numbers(self) -> int:
        """Largest number of released numbers, known before anything is measured."""
        return self.size

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        """Statistic from a certificate's public parameters.

        Parameters
        ----------
        parameters : mapping
            As `parameters` gives them.
        relation : Relation
        domain : Window or LinearNetwork
        mechanism : str
            Name on the certificate, where one class serves several mechanisms.

        Raises
        ------
        InputError, PrivacyCheckError
            When they are those of no release.
        """
        raise NotImplementedError

    def parameters(self) -> JsonObject:
        """Public parameters for the certificate, by its form: enough to rebuild the statistic and its guarantee."""
        names = dict.fromkeys((*self.form, "epsilon", "n", "expected_n"))
        found = {name: _stated(attrgetter(self.attributes.get(name, name))(self)) for name in names}
        return {name: value for name, value in found.items() if value is not None or name not in self.optional}

    def implements(self, mechanism: str) -> bool:
        """Whether it belongs to a mechanism, where several share one class of statistics."""
        return True

    def prepare(self) -> None:
        """Compute everything that `measure` needs besides the points, and raise here what does not depend on them.

        Raises
        ------
        InputError, PrivacyCheckError
        """

    def require_public(self, pattern: PointPattern) -> None:
        """Refuse, before the budget is spent, a pattern whose public facts differ from the planned ones; InputError.

        These are its domain, the names of its marks and a public number of points. No value of a point is read: a
        refusal before spending must not depend on one.
        """
        self.require_columns(pattern)
        if self.n is not None and self.count_unit is None and self.persons_by is None:
            require_number(pattern, self.n)

    def require_columns(self, pattern: PointPattern) -> None:
        """Refuse a pattern, or a part of one, by its domain and the names of its marks."""
        require_match(pattern, self.domain, None, self.count_unit or self.persons_by)

    def require_counted(self, pattern: PointPattern) -> None:
        """Refuse a pattern whose labels of persons tell another number than the public n; InputError.

        Labels are values, which are read once the budget is authorised; but before a ledger keeps n, or a mistaken one
        would be held against all later releases.
        """
        cap = self.guarantee.relation.user_cap
        if cap is not None and self.n is not None and number_of_few(pattern, *cap) != self.n:
            raise InputError(ANOTHER_NUMBER_OF_FEW.format(most=cap.most, user=shown(cap.user)))

    def admitted(self, pattern: PointPattern, rng: RngLike = None) -> PointPattern:
        """Points that are measured: all, or a few random ones of each person.

        Every `measure` begins with it, and reads nothing else of a pattern.

        Raises
        ------
        InputError
            As for `require_public`; and where so many points of each person are more or fewer than the public n.
        """
        self.require_public(pattern)
        cap = self.guarantee.relation.user_cap
        if cap is None:
            return pattern
        self.require_counted(pattern)
        return few_points_each(pattern, *cap, rng)

    @property
    def shuffled(self) -> ShuffledPrivacy | None:
        """Second guarantee under an honest shuffler; None where none is stated."""
        return None

    @property
    def additive(self) -> bool:
        """Whether the exact numbers are a sum over points, so that batches can be added before noise."""
        return False

    def exact_numbers(self, pattern: PointPattern) -> Ints:
        """(k,) numbers of a pattern in lattice units, without noise: where `additive`, the sum over its points."""
        raise NotImplementedError

    def noised(self, exact: Ints, rng: RngLike = None) -> Measured[Self]:
        """Add noise to exact numbers (k,) of all points."""
        raise NotImplementedError

    def measure(self, pattern: PointPattern, rng: RngLike = None) -> Measured[Self]:
        """Spend the budget on a pattern.

        Parameters
        ----------
        pattern : PointPattern
        rng : None, int or Generator
            None: secret randomness. Anything else makes the run reproducible and therefore not private.

        Raises
        ------
        InputError
            When the pattern has other marks than the plan asks for, lives in another domain or has another number of
            points than planned.
        """
        raise NotImplementedError

    def reopened(self, saved: Saved) -> Measured[Self]:
        """Measured statistic from the files of a saved release.

        Raises
        ------
        InputError
            When it is no result of this plan.
        """
        raise NotImplementedError

    def apply_noise(self, draw: Callable[[Exact], Drawn], exact: Exact) -> Drawn:
        """Pass exact, sensitive numbers to the noise sampler.

        Each `measure` draws through here and nowhere else, so that conformance can put something public in the place of
        what is exact: whatever still differs between two patterns has come another way.

        Parameters
        ----------
        draw : callable
            Adds noise to its one argument, or draws given it; the scale and all else it needs are public.
        exact : array, mapping of arrays, sequence of arrays or PointPattern
        """
        return draw(exact)

    def noise_name(self, *, seeded: bool = False) -> str:
        """Code of the sampler and entropy of the randomness that protects."""
        raise NotImplementedError

    def validate_released(self, lattice: Ints) -> None:
        """Refuse released numbers (k,) that are impossible under the public parameters; InputError."""

    @property
    def following(self) -> Mapping[str, FileCheck]:
        """Files of a release that are derived from its numbers or read with them, and their checks."""
        return {}

    def table_rows(self) -> Rows:
        """Rows on the statistic for the table of `dpppsynth check`; by default its public parameters."""
        return [(name, str(value)) for name, value in self.parameters().items()]

    def details(self) -> JsonObject:
        """Public figures beside the parameters, for `dpppsynth check --json`: scale of the noise and size of a mesh."""
        noise, mesh = getattr(self, "noise_scale", None), getattr(self, "mesh", None)
        scale = {} if noise is None else {"noise_scale": noise}
        return scale if mesh is None else scale | {"mesh": mesh_json(mesh)}

    def require_marks(self, marks: Mapping[str, Any]) -> None:
        """Refuse marks (n,) of synthetic points that its releases cannot have."""

    def with_offset(self, offset: Offset | None) -> Self:
        """Copy with the public offset, whose fingerprint a certificate states with its estimator."""
        return self

    def with_surrogate_marks(
        self, pattern: PointPattern, offset: AnyOffset | None, rng: np.random.Generator
    ) -> PointPattern:
        """A surrogate pattern with the marks that the statistic requires, such as that of persons.

        Parameters
        ----------
        pattern : PointPattern
        offset : Offset or MarkedOffset, optional
            Public offset that it follows.
        rng : Generator
        """
        user = self.count_unit or self.persons_by
        if user is None:
            return pattern
        return PointPattern.at(pattern.positions, pattern.domain, {user: np.arange(len(pattern))})

    def further_surrogate(self, even: Intensity, n: int, rng: np.random.Generator) -> tuple[str, PointPattern] | None:
        """Name and points of a surrogate that only what else is measured tells from an even intensity; else None."""
        return None

    def rehearsal_run(self, release: Releasing, pattern: PointPattern, rng: np.random.Generator) -> "Trial":
        """One run on a surrogate pattern, for a rehearsal.

        Parameters
        ----------
        release : callable
            From a pattern and a generator to a whole release.
        pattern : PointPattern
        rng : Generator
        """
        released = release(pattern, rng)
        return Trial(released_intensity(released), fit=released_fit(released))


def _stated(value: Any) -> Any:
    """A public parameter as certificates have it: of a mesh what it is made from, of other objects their JSON form."""
    if isinstance(value, tuple):
        return list(value)
    if hasattr(value, "recipe"):
        return value.recipe
    return value.to_dict() if hasattr(value, "to_dict") else value


def require_kept_cap(kind: type[Statistic], relation: Relation) -> None:
    """Refuse a relation that lets a few points of each person count where all points would be measured; InputError."""
    if relation.user_cap is not None and not kind.keeps_cap:
        msg = (
            "relation: this mechanism measures all points of a person, whatever the cap; leave its user out, and vouch "
            "for the cap."
        )
        raise InputError(msg)


def measured_number(relation: Relation, pattern: PointPattern) -> int:
    """Number of measured points under a relation, capped for each person where it identifies persons."""
    cap = relation.user_cap
    return len(pattern) if cap is None else number_of_few(pattern, *cap)


def capped(relation: Relation) -> CappedRelation:
    """The relation, which must cap the points of one person."""
    if not isinstance(relation, CappedRelation):
        msg = "relation: this mechanism needs a cap on the points of one person, which this relation lacks."
        raise InputError(msg)
    return relation


def require(holds: bool, rule: str) -> None:
    """Refuse invalid public parameters."""
    if not holds:
        msg = f"parameters: {rule}; these are not so."
        raise InputError(msg)


def fineness(mesh: Mesh) -> float | tuple[float, float]:
    """Longest segment, or the sides of a cell of the regular meshes that the rules lay."""
    if isinstance(mesh, NetworkMesh):
        return float(mesh.element_measure.max())
    x0, y0, x1, y1 = around(mesh.domain) if isinstance(mesh.domain, LinearNetwork) else mesh.domain.bounds
    nx, ny = mesh.recipe["shape"]
    return (x1 - x0) / (nx - 1), (y1 - y0) / (ny - 1)


def mesh_json(mesh: Mesh) -> JsonObject:
    """Kind, numbers of vertices and elements, and fineness."""
    size: JsonObject = {"kind": mesh.kind, "vertices": len(mesh.vertices), "elements": len(mesh.elements)}
    fine = fineness(mesh)
    return size | ({"longest_segment": fine} if isinstance(fine, float) else {"spacing": list(fine)})


def mesh_words(mesh: Mesh) -> str:
    """Kind, numbers of vertices and elements, and fineness, in words."""
    fine = fineness(mesh)
    if isinstance(fine, float):
        told = f"none longer than {fine:.4g}"
    else:
        told = f"spacing {' x '.join(f'{side:.4g}' for side in fine)}"
    return f"{len(mesh.elements)} {mesh.kind}s, {len(mesh.vertices)} vertices, {told} {mesh.domain.unit}"

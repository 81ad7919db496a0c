"""Bound functions: from public numbers to a `Guarantee`. Proofs in docs/theory.md."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpppsynth.core.arguments import instance, positive, probability, several, shown, whole, whole_number
from dpppsynth.core.errors import InputError
from dpppsynth.core.rounding import sum_up
from dpppsynth.core.wording import mention, named
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.privacy.catalogue import Code, Statement
from dpppsynth.privacy.guarantee import Curve, Guarantee, PureDP, lengths_assumed, on_ground, on_map
from dpppsynth.privacy.relations import AddRemove, AddRemovePerson, CappedRelation, Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Mesh

# Lattice of tent masses and of heat maps: multiples of 2^-20 of a point, or of a person.
LATTICE_BITS = 20
# Two roundings change a move's L1 distance by at most 2 (segments), 8/3 (triangles) or 4 (squares); the rest is room
# for floating-point error in the basis values (docs/theory.md, section 4).
ROUNDING = {"segment": 4, "triangle": 4, "square": 6}

DISCRETE = "discrete-laplace-noise"
ONE_RELEASE = "one-release"
PUBLIC = "public-settings"
PUBLIC_NETWORK = "public-settings-on-network"
CAP = "points-per-person"
KEPT = "points-drawn-per-person"
SNAPPED = "positions-as-given"
SNAPPED_NETWORK = "positions-on-network"
EXAMPLE = "AlphaNeighbours(25.0) is one"
NOT_EMPTY = "not-empty"
# Remedy for custodians of published experiments with a large delta.
PUBLISHED = ", or say {accept} to reproduce published experiments"
WIDE_CAP = "one-point-per-person"
# The largest delta where the number of points is secret.
MOST_SECRET_DELTA = 1e-5
# Largest delta that may follow from a bound on the error without being asked for.
MOST_DERIVED = 1e-3
# Remedy for a large delta that follows from the bound.
FROM_BOUND = ", for which {bound} must be larger"

# Number of points where it is public, else None; and a public guess of it, if any.
Size = tuple[int | None, float | None]


def laplace_scale(sensitivity: int, epsilon: float) -> float:
    """Smallest scale, up to one rounding, with `sensitivity / scale <= epsilon` also after rounding upwards."""
    sensitivity, epsilon = whole("sensitivity", sensitivity, 1), positive("epsilon", epsilon)
    scale = sensitivity / epsilon
    while math.nextafter(sensitivity / scale, math.inf) > epsilon:
        scale = math.nextafter(scale, math.inf)
    return scale


def counts_sensitivity(relation: CappedRelation) -> int:
    """L1 sensitivity of cell counts: two cells change by one under a move, one under add/remove; times the cap."""
    instance("relation", relation, CappedRelation, EXAMPLE)
    return relation.max_points_per_person * (1 if isinstance(relation, AddRemove) else 2)


def tents_sensitivity(
    mesh: Mesh, relation: CappedRelation, *, bits: int = LATTICE_BITS, reach: float | None = None
) -> int:
    """L1 sensitivity of the tent masses on the lattice of multiples of `2^-bits`.

    `min(2^(bits+1), floor(2^bits * slope * alpha) + r)` under a move of length alpha on the map, `2^bits` under
    add/remove, times the cap on points per person. The slope is `2 / smallest altitude` on triangles.

    Parameters
    ----------
    mesh : Mesh
    relation : CappedRelation
    bits : int
        Lattice spacing is `2^-bits` of a point.
    reach : float, optional
        Distance moved, a length on the map, instead of the relation's own.
    """
    instance("relation", relation, CappedRelation, EXAMPLE)
    require_safe_lattice(mesh, bits)
    unit = 2**bits
    if isinstance(relation, AddRemove):
        return relation.max_points_per_person * unit
    change = unit * mesh.tent_slope * (on_map(relation, mesh.domain).reach if reach is None else reach)
    step = 2 * unit if change >= 2 * unit else min(2 * unit, math.floor(change * (1 + 1e-12)) + ROUNDING[mesh.kind])
    return relation.max_points_per_person * step


def counts(relation: CappedRelation, *, scale: float, domain: Any = None) -> Guarantee:
    """Guarantee of integer cell counts with discrete Laplace noise of the given scale; the domain is for its text."""
    epsilon = counts_sensitivity(relation) / positive("scale", scale)
    assumed = assumptions(relation, (DISCRETE,), domain=domain)
    return Guarantee(relation, PureDP(epsilon), "counts", assumed)


def tents(mesh: Mesh, relation: CappedRelation, *, scale: float, bits: int = LATTICE_BITS) -> Guarantee:
    """Guarantee of lattice tent masses with discrete Laplace noise of the given scale (lattice units)."""
    scale = positive("scale", scale)
    epsilon = tents_sensitivity(mesh, relation, bits=bits) / scale
    return Guarantee(
        relation,
        PureDP(epsilon),
        "tents",
        assumptions(relation, (DISCRETE,), domain=mesh.domain),
        _curve(mesh, relation, scale, bits),
    )


def _curve(mesh: Mesh, relation: CappedRelation, scale: float, bits: int) -> Curve:
    """(d, epsilon) for one point that moves by d, up to where the masses have nothing more to lose."""
    if isinstance(relation, AddRemove):
        return ()
    farthest = min(mesh.domain.diameter, 2.5 / mesh.tent_slope)
    cap = relation.max_points_per_person
    lengths = np.linspace(0, farthest, 41)[1:]
    pairs = ((d, tents_sensitivity(mesh, relation, bits=bits, reach=float(d)) / cap / scale) for d in lengths)
    return on_ground(pairs, mesh.domain)


def all_points(sizes: Iterable[Size]) -> Size:
    """Number of points of all levels together, or the available guesses of it."""
    known = list(sizes)
    numbers, guesses = [n for n, _ in known if n is not None], [guess for _, guess in known if guess is not None]
    return sum(numbers) if len(numbers) == len(known) else None, sum(guesses) if guesses else None


def void_delta(n: int | None, expected_n: float | None = None) -> float:
    """Smallest delta that is meaningless for the number of points (docs/theory.md, section 9).

    Parameters
    ----------
    n : int or None
        Public number of points, those of all levels together; 0 where it is not known yet, None where it is secret.
    expected_n : float, optional
        Public guess of a secret number.
    """
    if n is not None:
        return 1 / n if n else math.inf
    secret = math.nextafter(MOST_SECRET_DELTA, 1)
    return min(secret, 1 / expected_n) if expected_n else secret


def require_small_delta(
    delta: float,
    n: int | None,
    *,
    expected_n: float | None = None,
    allow_large_delta: bool = False,
    remedy: str = PUBLISHED,
) -> None:
    """Refuse a delta outside [0, 1), or a meaningless one; parameters as in `void_delta`; InputError."""
    delta = probability("delta", delta, zero=True)
    if n is not None and (whole_number(n) is None or n < 0):
        msg = f"n: the number of points must be a whole number, or None where it is secret, got {shown(n)}."
        raise InputError(msg)
    if n is None and delta > MOST_SECRET_DELTA:
        msg = f"delta: at most 1e-5 where the number of points is secret, got {delta!r}; take 1e-6."
        raise InputError(msg)
    if delta >= void_delta(n, expected_n) and not allow_large_delta:
        most = "1/expected_n" if n is None else "1/n"
        remedy = remedy.format(accept=mention("allow_large_delta", "True"), bound=named("max_error"))
        msg = (
            f"delta: must be below {most} (publishing one random record whole satisfies delta = 1/n, n being the "
            f"points of all levels together), got {delta!r}; take 1e-6{remedy}."
        )
        raise InputError(msg)


def require_modest(delta: float, size: Size, *, bound: str, remedy: str) -> None:
    """Refuse a large delta that follows from an error bound rather than from the user.

    Raises
    ------
    InputError
        At 1e-3 or more, or where it promises nothing for so many points (`void_delta`).
    """
    most = min(MOST_DERIVED, void_delta(*size))
    if not delta < most:
        cost = f"{bound} costs delta = {delta:.3g}, which must be below {most:.3g}"
        msg = f"max_error: {cost}; take a larger one, {remedy}."
        raise InputError(msg)


def require_safe_lattice(mesh: Mesh, bits: int) -> None:
    """Refuse a lattice too fine for the rounding error of basis values, about `64 ulp * extent / height`."""
    instance("mesh", mesh, Mesh, "models.regular_triangulation(window, spacing=100.0) makes one")
    whole("bits", bits, 0, most=60)
    height = 2 / mesh.tent_slope
    error = 64 * np.finfo(float).eps * mesh.coordinate_size / height
    if 2**bits * 8 * error > 1:
        msg = "mesh: elements are too small for the size of its coordinates; coarsen the mesh or shift the origin."
        if mesh.kind == "segment":
            msg = (
                "mesh: its shortest segment is too short beside the longest edge; network.collapse_short(tolerance) "
                "takes such edges out, and trace_mesh does not see them."
            )
        raise InputError(msg)


def assumptions(
    relation: CappedRelation, own: tuple[Code, ...], settled: tuple[Code, ...] = (), *, domain: Any
) -> tuple[Code, ...]:
    """Codes of the assumptions of every guarantee, around a mechanism's `own` and further `settled` ones."""
    cap, user = relation.max_points_per_person, relation.user
    people: Code = Statement(CAP, most=cap) if cap > 1 else WIDE_CAP
    if user is not None:
        people = Statement(KEPT, most=cap, user=user)
    tail = () if relation.n_is_public else (NOT_EMPTY,)
    on_network = isinstance(domain, LinearNetwork)
    public, snapped = (PUBLIC_NETWORK, SNAPPED_NETWORK) if on_network else (PUBLIC, SNAPPED)
    return (public, *lengths_assumed(relation, domain), *settled, people, *own, ONE_RELEASE, snapped, *tail)


THEOREM = "pair-sums"
SETTLED = "public-pair-settings"
SOLVED = "maximum-flow-solved"
WHOLE_PERSON = "mark-tells-persons"


def pair_sums_sensitivity(relation: Relation, cap: int, *, bits: int) -> int:
    """Largest change of a doubled capped pair sum, in units of `2^-bits`.

    The cap holds for a person where points tell whose they are, and for every point otherwise.

    Parameters
    ----------
    relation : AlphaNeighbours, ReplaceOne, AddRemove or AddRemovePerson
    cap : int
    bits : int
        Binary digits of shares.
    """
    unit = 2 * whole("cap", cap, 1) * 2 ** whole("bits", bits, 0, most=60)
    if isinstance(relation, AddRemovePerson):
        return unit
    known: CappedRelation = instance("relation", relation, CappedRelation, EXAMPLE)
    return known.max_points_per_person * unit


def pair_sums(
    relation: Relation, *, caps: Sequence[int], scales: Sequence[float], bits: int, domain: Domain | None = None
) -> Guarantee:
    """Guarantee of doubled capped pair sums, one for each radius, with discrete Laplace noise.

    Parameters
    ----------
    relation : AlphaNeighbours, ReplaceOne, AddRemove or AddRemovePerson
    caps, scales : sequence
        One for each radius; scales of noise in units of `2^-bits`.
    bits : int
    domain : Window or LinearNetwork, optional
        For the words.
    """
    each = several("caps", caps, int), [positive("scale", scale) for scale in several("scales", scales, object)]
    if not each[0] or len(each[0]) != len(each[1]):
        msg = f"caps, scales: need one of each for every radius, got {len(each[0])} and {len(each[1])}."
        raise InputError(msg)
    spent = sum_up(
        Fraction(pair_sums_sensitivity(relation, cap, bits=bits)) / Fraction(scale)
        for cap, scale in zip(*each, strict=True)
    )
    return Guarantee(relation, PureDP(spent), THEOREM, _assumed(relation, domain))


def _assumed(relation: Relation, domain: Domain | None) -> tuple[Code, ...]:
    own = (SETTLED, DISCRETE, SOLVED)
    if isinstance(relation, CappedRelation):
        return assumptions(relation, own, domain=domain)
    streets = isinstance(domain, LinearNetwork)
    person = Statement(WHOLE_PERSON, user=getattr(relation, "user", ""))
    place = (PUBLIC_NETWORK, SNAPPED_NETWORK) if streets else (PUBLIC, SNAPPED)
    return (place[0], person, *own, ONE_RELEASE, place[1], NOT_EMPTY)

"""Conversion of privacy radii from true lengths to lengths on the map, and back (docs/theory/scale.md).

Here alone a true length becomes one on the map, or back.
"""

import math
from dataclasses import replace
from typing import Any

from dpppsynth.core.arguments import instance
from dpppsynth.core.crs import CODE, NAMELESS
from dpppsynth.core.errors import InputError
from dpppsynth.core.map_scale import STEPS, is_plane, scale_factor
from dpppsynth.privacy.catalogue import Code, Statement
from dpppsynth.privacy.relations import AlphaNeighbours, CappedRelation, Relation
from dpppsynth.spatial.domains import Domain

Curve = tuple[tuple[float, float], ...]

STRETCHED = "true-lengths"
# Other versions of PROJ may find a factor that differs by this much.
DOUBT = 2 / STEPS
PLANE = "plane-lengths"


def on_map(relation: CappedRelation, domain: Domain | None) -> CappedRelation:
    """The relation whose radius is a length on the map: all neighbours on the ground are neighbours under it.

    Parameters
    ----------
    relation : CappedRelation
    domain : Window or LinearNetwork or None
        None where lengths are true ones.
    """
    if not isinstance(relation, AlphaNeighbours) or domain is None:
        return relation
    return replace(relation, alpha=relation.alpha * _factor(domain))


def on_ground(curve: Any, domain: Domain | None) -> Curve:
    """Pairs of a true length and an epsilon, from pairs of a length on the map and an epsilon."""
    return tuple((true_length(length, domain), float(epsilon)) for length, epsilon in curve)


def true_length(length: float, domain: Domain | None) -> float:
    """Least true length of a length on the map."""
    return float(length) / _factor(domain)


def lengths_assumed(relation: Relation, domain: Domain | None) -> tuple[Code, ...]:
    """Code about lengths on the map, where the relation has a radius and the domain a map."""
    factor = _factor(domain)
    if domain is None or domain.crs is None or not math.isfinite(relation.reach):
        return ()
    crs = domain.crs
    # The database that could name others differs by version.
    name = crs if CODE.fullmatch(crs) else NAMELESS.capitalize()
    if is_plane(crs):
        return (Statement(PLANE, crs=name),)
    return (Statement(STRETCHED, crs=name, factor=factor),)


def _factor(domain: Domain | None) -> float:
    """Largest length on the map of one true unit; InputError for what is no domain."""
    return 1.0 if domain is None else float(instance("domain", domain, Domain, "a Window is one").scale_factor)


def require_scale(domain: Domain) -> None:
    """Refuse a scale factor on a certificate that is not the one of the domain beside it.

    Raises
    ------
    InputError
        Also when lengths on the map differ from true ones by more than a twentieth.
    """
    stated = domain.scale_factor
    found = scale_factor(domain.geometry, domain.crs)
    if not abs(found - stated) <= DOUBT or round(stated * STEPS) / STEPS != stated:
        msg = f"scale_factor: lengths on the map are up to {found:.7g} times true ones, and it states {stated:.7g}."
        raise InputError(msg)

"""Search for sensitive data in everything that can be reached from an object."""

import functools
import gc
import logging
import types
from collections.abc import Mapping

import numpy as np
import shapely

from dpppsynth.contract.additive_noise import cell_counts, lattice_masses
from dpppsynth.core.types import Confidential
from dpppsynth.spatial.patterns import PointPattern
from support.cases import parts, plans
from support.seams import recorded

# The world behind these is everybody's; private state of functions is reached through their closures and defaults.
WORLD = (types.ModuleType, types.BuiltinFunctionType, types.CodeType, types.FrameType, logging.Logger)
# Shorter arrays may equal others by chance.
SHORTEST = 8


def reachable(root, most=300_000):
    """Every object that can be reached, arrays' bases included."""
    seen, queue = {}, [root]
    while queue:
        thing = queue.pop()
        if id(thing) in seen or isinstance(thing, WORLD):
            continue
        seen[id(thing)] = thing
        assert len(seen) < most, "the object graph has no end: a result must be small"
        if isinstance(thing, type):
            continue
        if isinstance(thing, types.FunctionType):
            queue += [*(thing.__closure__ or ()), *(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
            queue.append(thing.__dict__)
            continue
        queue += gc.get_referents(thing)
        queue += list(vars(thing).values()) if hasattr(thing, "__dict__") else []
        if isinstance(thing, np.ndarray):
            queue += [thing.base] if thing.base is not None else []
            queue += thing.ravel().tolist() if thing.dtype == object else []
        if isinstance(thing, memoryview):
            queue.append(thing.obj)
    return list(seen.values())


def sensitive(case, pattern, root, also=()):
    """Parts of the pattern that can be reached from `root`, released patterns aside; `also`: more exact arrays."""
    paid = [p for part in parts(root) for p in getattr(part, "patterns", [])] if hasattr(root, "mechanism") else []
    public = {id(thing) for p in paid for thing in (p, p.xy)}
    secret = types.SimpleNamespace(
        masses=[*exact_masses(case, pattern), *also],
        coordinates=rounded(pattern.xy) | rounded(pattern.xy.astype(np.float32)),
        packed={np.float64(c).tobytes() for c in pattern.xy.ravel()},
    )
    return {kind(thing, secret) for thing in reachable(root) if id(thing) not in public} - {None}


def exact_masses(case, pattern):
    """Exact sums of the pattern on the meshes of a case, and all that its measurement randomises."""
    meshes = [plan.mesh for plan in plans(case.known_plan) if hasattr(plan, "mesh")]
    exact = [np.asarray(mesh.basis(pattern.positions).sum(axis=0)).ravel() for mesh in meshes]
    for mesh in meshes:
        exact += [cell_counts(mesh, pattern.positions), *(lattice_masses(mesh, pattern.positions, b) for b in (0, 20))]
    return [*exact, *_randomised(case)]


@functools.cache
def _randomised(case):
    """Exact values of the case's first pattern that its measurement passes to its randomness."""
    if case.example.slow or case.example.levels:
        return []
    with recorded() as seen:
        case.known_plan.statistic.measure(case.patterns()[0], 5)
    flat = [each for *_, exact in seen for each in (exact.values() if isinstance(exact, Mapping) else [exact])]
    arrays = [np.ravel(each) for each in flat if isinstance(each, np.ndarray)]
    return [each for each in arrays if len(each) >= SHORTEST and each.any()]


def kind(thing, secret):
    """Kind of sensitive data that a thing is, if any."""
    match thing:
        case PointPattern() | Confidential():
            return "a pattern"
        case float() if round(thing, 7) in secret.coordinates:
            return "a coordinate"
        case shapely.Geometry() if secret.coordinates & rounded(shapely.get_coordinates(thing)):
            return "a geometry"
        case np.ndarray() if thing.dtype.kind == "f" and secret.coordinates & rounded(thing):
            return "an array of coordinates"
        case np.ndarray() if thing.dtype.kind in "fiu" and any(
            thing.size == e.size and np.allclose(thing.ravel(), e, atol=1e-3) for e in secret.masses
        ):
            return "exact masses"
        case bytes() if any(c in thing for c in secret.packed):
            return "bytes of coordinates"
    return None


def rounded(array):
    return set(np.round(array.astype(float), 7).ravel().tolist())

"""Public covariates: explanatory layers, such as the distance to a place or the deprivation of an area.

`Covariates` are layers by name. On a field's mesh they become a `Design`: standardised columns, one for each.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints, JsonObject
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.marked_offset import AnyOffset, MarkedOffset
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.public_layers import SLIVERS, FunctionLayer, PolygonLayer, PublicLayer, layer_source

# Standard deviation of the prior of an effect, per standard deviation of its covariate, on the log scale.
EFFECT_SD = 2.0
# Measures over which covariates are standardised.
MEASURES = ("window", "network", "offset")
# Covariates that a model may have, and characters of a name.
MOST, LONGEST_NAME = 20, 80
# Places at which covariates are looked at, about, and along a side of a triangle or a segment at most.
PLACES, MOST_ALONG = 200_000, 16
# Least eigenvalue of the covariates' correlations, and least standard deviation as a share of the largest value.
TELL_APART, VARIES = 1e-6, 1e-9
# Largest size of a value: squares and their sums stay far below the largest float.
LARGEST_VALUE = 1e100


class Covariates(Mapping[str, PublicLayer]):
    """Public layers by name, which a field's intensity may follow: `log intensity = field + sum of effect * covariate`.

    Parameters
    ----------
    layers : mapping
        By name: a `RasterLayer`, a `PolygonLayer`, a pair of a GeoDataFrame of polygons and a column, or a function
        from coordinates (n, 2) to values (n,). All of it must be public.
    source : str
        Where the layers were published, for certificates.

    Examples
    --------
    >>> pump = np.array([529396.0, 181025.0])
    >>> Covariates({"distance to pump": lambda xy: np.hypot(*(xy - pump).T)})
    Covariates('distance to pump')
    """

    def __init__(self, layers: Mapping[str, Any], *, source: str = "") -> None:
        if not isinstance(layers, Mapping) or not 0 < len(layers) <= MOST:
            msg = f'covariates: needs 1 to {MOST} layers by name, such as {{"distance to pump": function}}.'
            raise InputError(msg)
        for name in layers:
            if not is_name(name):
                msg = f"covariates: a name needs 1 to {LONGEST_NAME} printable characters, got {type(name).__name__}."
                raise InputError(msg)
        self.source = layer_source(source)
        self._layers = {name: _layer(name, given) for name, given in layers.items()}

    def __getitem__(self, name: str) -> PublicLayer:
        return self._layers[name]

    def __iter__(self) -> Any:
        return iter(self._layers)

    def __len__(self) -> int:
        return len(self._layers)

    def __repr__(self) -> str:
        return f"Covariates({', '.join(map(repr, self))})"

    def require_whole(self, domain: Domain) -> None:
        """Refuse layers in other coordinates than the domain's, or without values somewhere in it; InputError."""
        for name, layer in self.items():
            layer.require_whole(f"covariates: {name!r}", domain)

    def on(self, mesh: Mesh, offset: AnyOffset | None = None) -> "Design":
        """Standardised columns at the vertices of a field's mesh.

        Over the domain, or over the offset (its population), a covariate's mean becomes 0 and its standard deviation 1.
        A vertex has the average over its cell: the places where its basis function is the largest.

        Raises
        ------
        InputError
            When one lacks values, is the same everywhere, or follows from the others.
        """
        self.require_whole(mesh.domain)
        places = _Places.of(mesh)
        raw = np.column_stack([self._values(name, places, mesh.domain) for name in self])
        weight = places.weight if offset is None else places.weight * offset(places.xy)
        weight = weight / weight.sum()
        mean = weight @ raw
        sd = np.sqrt(weight @ (raw - mean) ** 2)
        for name, column, spread in zip(self, raw.T, sd, strict=True):
            if not spread > VARIES * np.abs(column).max():
                where = "the domain" if offset is None else "the offset"
                msg = f"covariates: {name!r} is the same everywhere over {where}, and has no effect; leave it out."
                raise InputError(msg)
        standard = (raw - mean) / sd
        self._require_apart(standard.T @ (weight[:, None] * standard))
        over = "offset" if offset is not None else "window" if isinstance(mesh.domain, Window) else "network"
        found = Design(tuple(self), tuple(mean.tolist()), tuple(sd.tolist()), over, source=self.source)
        return found.holding(places.averages(standard))

    def _values(self, name: str, places: "_Places", domain: Domain) -> Floats:
        values = self[name](places.xy)
        if (np.abs(values) > LARGEST_VALUE).any():
            msg = (
                f"covariates: {name!r} has values that are infinite, or larger than {LARGEST_VALUE:g}; give it in "
                "another unit, or its logarithm."
            )
            raise InputError(msg)
        unknown = ~np.isfinite(values)
        share = float(places.weight[unknown].sum() / places.weight.sum())
        if share > SLIVERS:
            raise InputError(self[name].gap(f"covariates: {name!r}", share, domain))
        return np.where(unknown, values[~unknown].mean(), values)

    def _require_apart(self, correlation: Floats) -> None:
        size, vectors = np.linalg.eigh(correlation)
        if size[0] < TELL_APART:
            alike = ", ".join(repr(name) for name, part in zip(self, vectors[:, 0], strict=True) if abs(part) > 0.1)
            msg = f"covariates: {alike} tell the same, so that their effects cannot be told apart; leave one out."
            raise InputError(msg)


def covariates_from(given: Any) -> Covariates:
    """Covariates from a mapping of layers by name, or as they are."""
    return given if isinstance(given, Covariates) else Covariates(given)


def is_name(name: object) -> bool:
    """Whether a text is a valid name of a covariate."""
    return isinstance(name, str) and name.isprintable() and 0 < len(name.strip()) <= LONGEST_NAME


def _layer(name: str, given: Any) -> PublicLayer:
    """The layer that users mean by what they give."""
    label = f"covariates: {name!r}"
    if isinstance(given, PublicLayer):
        return given
    if isinstance(given, tuple) and len(given) == 2:
        return PolygonLayer.from_geodataframe(*given, label=label)
    if callable(given) and not isinstance(given, Offset | MarkedOffset):
        return FunctionLayer(given, label=label)
    msg = (
        f"{label}: needs a layer, a function of coordinates, or a pair (GeoDataFrame, column), got "
        f"{type(given).__name__}."
    )
    raise InputError(msg)


@dataclass(frozen=True, eq=False)
class Design:
    """Standardised covariates on a mesh, as inference needs them.

    Means and standard deviations are those before they were standardised, over "window", "network" or "offset". The
    effects' normal prior has the deviation `prior_sd`, per standard deviation of a covariate. Values (V, p) at the
    mesh's vertices are None where only a certificate has been read; the fingerprint is the SHA-256 of names and values.
    """

    names: tuple[str, ...]
    mean: tuple[float, ...]
    sd: tuple[float, ...]
    over: str
    prior_sd: float = EFFECT_SD
    values: Floats | None = None
    fingerprint: str = ""
    source: str = ""

    def holding(self, values: Floats) -> "Design":
        """A copy with values (V, p), and their fingerprint."""
        return replace(self, values=values, fingerprint=fingerprint(self.names, values))

    def to_dict(self) -> JsonObject:
        """JSON form for a certificate."""
        return {
            "names": list(self.names),
            "mean": list(self.mean),
            "sd": list(self.sd),
            "over": self.over,
            "prior_sd": self.prior_sd,
            "fingerprint": self.fingerprint,
        } | ({"source": self.source} if self.source else {})


def fingerprint(names: tuple[str, ...], values: Floats) -> str:
    """SHA-256 of names and standardised values (V, p)."""
    content = json.dumps(names).encode() + np.ascontiguousarray(values, dtype="<f8").tobytes()
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, eq=False)
class _Places:
    """Public places all over a domain, with their shares of it, and the vertices of a mesh in whose cells they lie."""

    xy: Floats
    weight: Floats
    vertex: Ints
    count: int

    @classmethod
    def of(cls, mesh: Mesh) -> "_Places":
        # Centres of equal parts of each piece.
        pieces, share = mesh.pieces, _parts(len(mesh.pieces.weight), mesh.pieces.sides)
        positions = np.einsum("pc,qcd->qpd", share, pieces.corners).reshape(-1, 2)
        element = np.repeat(pieces.element, len(share))
        weight = np.repeat(pieces.weight / len(share), len(share))
        # Cells whose sizes are the integrals of the basis functions, which a field's masses are taken with.
        largest = np.argmax(mesh.weights(element, positions), axis=1)
        xy = mesh.domain.coordinates(positions)
        return cls(xy, weight, mesh.elements[element, largest], len(mesh.vertices))

    def averages(self, values: Floats) -> Floats:
        """(V, p) averages of values (n, p) over the vertices' cells; zero where a cell has no part of the domain."""
        size = np.bincount(self.vertex, self.weight, self.count)[:, None]
        total = np.column_stack([np.bincount(self.vertex, self.weight * each, self.count) for each in values.T])
        return np.divide(total, size, out=np.zeros_like(total), where=size > 0)


def _parts(pieces: int, sides: int) -> Floats:
    """(p, sides) barycentric coordinates of the centres of equal parts of a simplex."""
    if sides == 2:
        along = int(np.clip(PLACES / pieces, 2, MOST_ALONG))
        share = (np.arange(along) + 0.5) / along
        return np.column_stack([1 - share, share])
    along = int(np.clip(np.sqrt(PLACES / pieces), 1, MOST_ALONG))
    i, j = (each.ravel() for each in np.mgrid[:along, :along])
    upright = np.column_stack([i, j])[i + j < along] + 1 / 3
    turned = np.column_stack([i, j])[i + j < along - 1] + 2 / 3
    first = np.concatenate([upright, turned]) / along
    return np.column_stack([first, 1 - first.sum(axis=1)])

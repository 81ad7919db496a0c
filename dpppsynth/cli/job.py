"""Relation and synthesizer from options. No sensitive file is opened here."""

import tempfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpppsynth.cli import options as o
from dpppsynth.cli.bounded import BOUNDED, bounded_synthesizer, moving_synthesizer, require_radius
from dpppsynth.cli.covariance import covariance_of, require_one_covariance
from dpppsynth.cli.heatmap import heatmap_relation, heatmap_synthesizer, require_unit
from dpppsynth.cli.laws import LOCAL, RADIAL, local_relation, local_synthesizer, require_one_report
from dpppsynth.cli.options import Basis, Mechanism, Method, Neighbours
from dpppsynth.core.errors import InputError

if TYPE_CHECKING:
    from dpppsynth.contract.synthesizer import Synthesizer
    from dpppsynth.privacy import CappedRelation, Relation
    from dpppsynth.spatial.domains import Domain

# Options that not every method has.
OF_METHODS = {
    "mechanism": (Method.LGCP,),
    "basis": (Method.LGCP, Method.LAPLACE),
    "spacing": (Method.LGCP, Method.LAPLACE, Method.BOUNDED_ERROR),
    "length_scale": (Method.LGCP,),
    "sigma": (Method.LGCP,),
    "covariance": (Method.LGCP,),
    "power": (Method.LGCP,),
    "smoothness": (Method.LGCP,),
    "tail": (Method.LGCP,),
    "sampler": (Method.LGCP,),
    "bandwidth": (Method.KERNEL,),
    "bound": (Method.KERNEL,),
    "postprocess": (Method.LAPLACE, Method.BOUNDED_ERROR),
    "inference": (Method.LGCP,),
    "engine": (Method.LGCP,),
    "offset_file": (Method.LGCP,),
    "offset_column": (Method.LGCP,),
    "shape": (Method.HEATMAP,),
    "w": (Method.HEATMAP,),
    "variant": (Method.HEATMAP,),
    "decay": (Method.HEATMAP,),
    "fit": (Method.HEATMAP,),
    "cells": LOCAL,
    "radius": RADIAL,
    "user": (Method.HEATMAP,),
    "no_user": (Method.HEATMAP,),
    "resolution": (Method.LGCP, Method.LAPLACE, Method.KERNEL, Method.BOUNDED_ERROR),
    "track": (Method.PLANAR_LAPLACE,),
    "max_error": BOUNDED,
    "delta": (Method.LGCP, Method.KERNEL, *BOUNDED),
    "allow_large_delta": (Method.LGCP, Method.KERNEL),
}


@dataclass(frozen=True, kw_only=True)
class Job:
    """Options of a method: everything public that a release depends on."""

    method: o.MethodOption
    epsilon: o.ThirdEpsilonOption = None
    mechanism: o.MechanismOption = None
    basis: o.BasisOption = None
    spacing: o.SpacingOption = None
    resolution: o.ResolutionOption = None
    length_scale: o.LengthScaleOption = None
    sigma: o.SigmaOption = None
    covariance: o.CovarianceOption = None
    power: o.PowerOption = None
    smoothness: o.SmoothnessOption = None
    tail: o.TailOption = None
    sampler: o.SamplerOption = None
    bandwidth: o.BandwidthOption = None
    bound: o.BoundOption = None
    postprocess: o.PostprocessOption = None
    inference: o.InferenceOption = None
    engine: o.EngineOption = None
    offset_file: o.OffsetFileOption = None
    offset_column: o.OffsetColumnOption = None
    shape: o.CellsOption = None
    w: o.WOption = None
    variant: o.VariantOption = None
    decay: o.DecayOption = None
    fit: o.FitOption = None
    cells: o.GridOption = None
    radius: o.RadiusOption = None
    user: o.UserOption = None
    no_user: o.NoUserOption = False
    track: o.TrackOption = False
    delta: o.ThirdDeltaOption = None
    max_error: o.MaxErrorOption = None
    alpha: o.AlphaOption = None
    relation: o.RelationOption = None
    max_points_per_person: o.CapOption = 1
    allow_large_delta: o.LargeDeltaOption = False

    def __post_init__(self) -> None:
        require_one_report(self)
        require_unit(self)
        for name, methods in OF_METHODS.items():
            # Neither given nor zero nor false: nothing is asked for.
            if getattr(self, name) and self.method not in methods:
                msg = f"--{name.replace('_', '-')}: not an option of --method {self.method}; leave it out"
                raise InputError(msg)
        if self.method is Method.LGCP and self.basis is Basis.CELLS:
            msg = "basis: --method lgcp is built on tents; leave --basis out, or take --method laplace"
            raise InputError(msg)
        if self.inference is not None and self.mechanism not in (None, Mechanism.TENTS, Mechanism.FIELD):
            msg = f"inference: --mechanism {self.mechanism} draws its field at once; leave --inference out"
            raise InputError(msg)
        require_one_covariance(self)
        if self.method is not Method.BOUNDED_ERROR:
            self.budget  # noqa: B018 - a missing one is said before anything else is looked at
        require_radius(self)

    @property
    def budget(self) -> float:
        """Epsilon of the methods that must be told it."""
        if self.epsilon is None:
            msg = f"epsilon: --method {self.method} needs a privacy budget, for instance --epsilon 1"
            raise InputError(msg)
        return self.epsilon

    def neighbours(self) -> "Relation":
        """The neighbouring relation in force."""
        if self.method in LOCAL:
            return local_relation(self)
        return heatmap_relation(self) if self.method is Method.HEATMAP else self.of_points()

    def of_points(self) -> "CappedRelation":
        """The neighbouring relation of methods that protect points, or up to a number of a person's."""
        from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne

        kind, cap = self.relation, self.max_points_per_person
        if kind is None and self.alpha is None and self.method is Method.LGCP:
            msg = "alpha: give the privacy radius, for instance --alpha 25, or --relation replace-one or add-remove"
            raise InputError(msg)
        if kind is Neighbours.ALPHA or (kind is None and self.alpha is not None):
            if self.alpha is None:
                msg = "alpha: --relation alpha needs the privacy radius, for instance --alpha 25"
                raise InputError(msg)
            return AlphaNeighbours(self.alpha, max_points_per_person=cap)
        if self.alpha is not None:
            msg = f"alpha: --relation {kind} has no privacy radius; leave --alpha out"
            raise InputError(msg)
        return AddRemove(cap) if kind is Neighbours.ADD_REMOVE else ReplaceOne(cap)

    def synthesizer(self, domain: "Domain", n: int | None = None) -> "Synthesizer":
        """The synthesizer, with its mesh where its fineness is given; `n` is the public number of points, if known."""
        from dpppsynth.mechanisms.kernel.synthesizer import KernelSynthesizer
        from dpppsynth.mechanisms.laplace.synthesizer import LaplaceSynthesizer

        if self.method in LOCAL:
            return local_synthesizer(self, domain, n)
        if self.method is Method.HEATMAP:
            return heatmap_synthesizer(self, domain)
        relation = self.of_points()
        self._require_fineness(domain)
        if self.method is Method.PLANAR_LAPLACE:
            return moving_synthesizer(self, domain, n)
        if self.method is Method.BOUNDED_ERROR:
            given = _given(postprocess=self.postprocess) | self._cells_or_tents(domain)
            return bounded_synthesizer(self, relation, given)
        if self.method is Method.LAPLACE:
            given = _given(basis=self.basis, postprocess=self.postprocess) | self._cells_or_tents(domain)
            return LaplaceSynthesizer(self.budget, relation=relation, **given)
        if self.method is Method.KERNEL:
            given = _given(bandwidth=self.bandwidth, bound=self.bound, spacing=self.resolution)
            given |= {"allow_large_delta": self.allow_large_delta}
            return KernelSynthesizer(self.budget, self.delta or 0.0, relation=relation, **given)
        return self._lgcp(domain, relation)

    def _require_fineness(self, domain: "Domain") -> None:
        from dpppsynth.linear_network import LinearNetwork

        if self.resolution is None:
            return
        if not isinstance(domain, LinearNetwork):
            msg = "resolution: cuts the edges of a network; the mesh of a window takes --spacing"
            raise InputError(msg)
        if not self.resolution > 0:
            msg = f"resolution: must be a positive length ({domain.unit}), got {self.resolution!r}"
            raise InputError(msg)
        if self.spacing is not None:
            msg = "resolution: give --resolution (segments of edges) or --spacing (triangles over them), not both"
            raise InputError(msg)

    def _cells_or_tents(self, domain: "Domain") -> dict[str, Any]:
        """Spacing or mesh of counts or masses, where one is given: cells on a network are always segments."""
        from dpppsynth.linear_network import LinearNetwork

        if self.basis is Basis.TENTS and self.resolution is not None:
            return {"mesh": self._mesh(domain)}
        if isinstance(domain, LinearNetwork) and self.basis is not Basis.TENTS and self.spacing is not None:
            msg = f"spacing: {self.method}'s cells are segments of the network's edges; give --resolution"
            raise InputError(msg)
        return _given(spacing=self.resolution if self.spacing is None else self.spacing)

    def _lgcp(self, domain: "Domain", relation: "CappedRelation") -> "Synthesizer":
        from dpppsynth.mechanisms.lgcp.synthesizer import LGCPSynthesizer

        given = _given(mechanism=self.mechanism, sampler=self.sampler, inference=self.inference, engine=self.engine)
        covariance = covariance_of(self, domain)
        if covariance is None:
            given |= _given(sigma=self.sigma, length_scale=self.length_scale)
        return LGCPSynthesizer(
            self.budget,
            delta=self.delta or 0.0,
            covariance=covariance,
            mesh=self._mesh(domain),
            offset=self._offset(domain),
            relation=relation,
            allow_large_delta=self.allow_large_delta,
            **given,
        )

    def _mesh(self, domain: Any) -> Any:
        """Mesh of lgcp, or of laplace's tents along edges; None for the public rule."""
        from dpppsynth.linear_network import LinearNetwork, network_mesh
        from dpppsynth.models import regular_triangulation, trace_mesh

        if self.resolution is not None:
            return network_mesh(domain, self.resolution)
        if self.spacing is None:
            return None
        lay = trace_mesh if isinstance(domain, LinearNetwork) else regular_triangulation
        return lay(domain, spacing=self.spacing)

    def _offset(self, domain: "Domain") -> Any:
        if self.offset_file is None and self.offset_column is None:
            return None
        if self.offset_file is None or self.offset_column is None:
            msg = "offset: give both --offset-file and --offset-column"
            raise InputError(msg)
        from dpppsynth.cli.layers import read_offset

        return read_offset(self.offset_file, self.offset_column, domain)


def _given(**options: Any) -> dict[str, Any]:
    """Arguments for the options that were given; enumerations as plain words."""
    return {k: str(v) if isinstance(v, StrEnum) else v for k, v in options.items() if v is not None}


def require_new_folder(path: Path) -> None:
    """Refuse an output folder that is in use or cannot be made, before anything is spent.

    Raises
    ------
    InputError
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        msg = f"--out: {path} exists and is not an empty folder; choose another, releases are never overwritten"
        raise InputError(msg)
    above = next(each for each in path.absolute().parents if each.exists())
    try:
        tempfile.TemporaryDirectory(dir=above).cleanup()
    except OSError:
        msg = f"--out: no folder can be made in {above}; choose a place where you may write"
        raise InputError(msg) from None

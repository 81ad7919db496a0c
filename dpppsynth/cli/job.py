"""From options to the library's objects: window, relation, synthesizer. No sensitive file is opened here."""

import tempfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpppsynth.cli import options as o
from dpppsynth.cli.options import Basis, Mechanism, Method, Neighbours
from dpppsynth.errors import InputError

if TYPE_CHECKING:
    from dpppsynth.domains import Window
    from dpppsynth.privacy import Relation
    from dpppsynth.synthesizers import Synthesizer

# Options that not every method has.
OF_METHODS = {
    "mechanism": (Method.LGCP,),
    "basis": (Method.LGCP, Method.LAPLACE),
    "spacing": (Method.LGCP, Method.LAPLACE),
    "length_scale": (Method.LGCP,),
    "sigma": (Method.LGCP,),
    "power": (Method.LGCP,),
    "sampler": (Method.LGCP,),
    "bandwidth": (Method.KERNEL,),
    "bound": (Method.KERNEL,),
    "postprocess": (Method.LAPLACE,),
    "inference": (Method.LGCP,),
    "engine": (Method.LGCP,),
    "offset_file": (Method.LGCP,),
    "offset_column": (Method.LGCP,),
    "delta": (Method.LGCP, Method.KERNEL),
    "allow_large_delta": (Method.LGCP, Method.KERNEL),
}


@dataclass(frozen=True, kw_only=True)
class Place:
    """Options that say where the points lie."""

    window: o.WindowOption = None
    window_file: o.WindowFileOption = None
    crs: o.CrsOption = None
    to_crs: o.ToCrsOption = None

    def domain(self) -> "Window":
        """The public window."""
        from dpppsynth.domains import Window

        if (self.window is None) == (self.window_file is None):
            msg = "window: give either --window x0,y0,x1,y1 or --window-file, not both and not neither"
            raise InputError(msg)
        if self.window is not None:
            return Window.rectangle(*_bounds(self.window), crs=self.to_crs or self.crs)
        return self._from_file(self.window_file or Path())

    def _from_file(self, path: Path) -> "Window":
        from dpppsynth.io import read_window
        from dpppsynth.io.tables import read_table

        # --crs is for inputs that do not name their own, and the points may need it while the window does not.
        named = path.suffix.lower() == ".csv" or read_table(path).crs is not None
        return read_window(path, crs=None if named else self.crs, to_crs=self.to_crs)


@dataclass(frozen=True, kw_only=True)
class Job:
    """Options that say what to do with them: everything public that a release depends on."""

    method: o.MethodOption
    epsilon: o.EpsilonOption
    mechanism: o.MechanismOption = None
    basis: o.BasisOption = None
    spacing: o.SpacingOption = None
    length_scale: o.LengthScaleOption = None
    sigma: o.SigmaOption = None
    power: o.PowerOption = None
    sampler: o.SamplerOption = None
    bandwidth: o.BandwidthOption = None
    bound: o.BoundOption = None
    postprocess: o.PostprocessOption = None
    inference: o.InferenceOption = None
    engine: o.EngineOption = None
    offset_file: o.OffsetFileOption = None
    offset_column: o.OffsetColumnOption = None
    delta: o.DeltaOption = 0.0
    alpha: o.AlphaOption = None
    relation: o.RelationOption = None
    max_points_per_person: o.CapOption = 1
    allow_large_delta: o.LargeDeltaOption = False

    def __post_init__(self) -> None:
        for name, methods in OF_METHODS.items():
            # Neither given nor zero nor false: nothing is asked for.
            if getattr(self, name) and self.method not in methods:
                msg = f"{name}: not an option of --method {self.method}; leave it out"
                raise InputError(msg)
        if self.method is Method.LGCP and self.basis is Basis.CELLS:
            msg = "basis: --method lgcp is built on tents; leave --basis out, or take --method laplace"
            raise InputError(msg)
        if self.inference is not None and self.mechanism not in (None, Mechanism.TENTS, Mechanism.FIELD):
            msg = f"inference: --mechanism {self.mechanism} draws its field at once; leave --inference out"
            raise InputError(msg)
        if self.power is not None and (self.sigma is None or self.length_scale is None):
            msg = "power: goes with --sigma and --length-scale; give all three"
            raise InputError(msg)

    def neighbours(self) -> "Relation":
        """The neighbouring relation in force."""
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

    def synthesizer(self, window: "Window") -> "Synthesizer":
        """The synthesizer, with its mesh where the spacing is given."""
        from dpppsynth.synthesizers import KernelSynthesizer, LaplaceSynthesizer

        relation = self.neighbours()
        if self.method is Method.LAPLACE:
            given = _given(basis=self.basis, spacing=self.spacing, postprocess=self.postprocess)
            return LaplaceSynthesizer(self.epsilon, relation=relation, **given)
        if self.method is Method.KERNEL:
            given = _given(bandwidth=self.bandwidth, bound=self.bound)
            large = self.allow_large_delta
            return KernelSynthesizer(self.epsilon, self.delta, relation=relation, allow_large_delta=large, **given)
        return self._lgcp(window, relation)

    def _lgcp(self, window: "Window", relation: "Relation") -> "Synthesizer":
        from dpppsynth.models import PoweredExponential, regular_triangulation
        from dpppsynth.synthesizers import LGCPSynthesizer

        given = _given(mechanism=self.mechanism, sampler=self.sampler, inference=self.inference, engine=self.engine)
        if self.power is None:
            given |= _given(sigma=self.sigma, length_scale=self.length_scale)
        elif self.sigma is not None and self.length_scale is not None:
            given["covariance"] = PoweredExponential(self.sigma, self.length_scale, self.power)
        if self.spacing is not None:
            given["mesh"] = regular_triangulation(window, spacing=self.spacing)
        return LGCPSynthesizer(
            self.epsilon,
            delta=self.delta,
            offset=self._offset(window),
            relation=relation,
            allow_large_delta=self.allow_large_delta,
            **given,
        )

    def _offset(self, window: "Window") -> Any:
        if self.offset_file is None and self.offset_column is None:
            return None
        if self.offset_file is None or self.offset_column is None:
            msg = "offset: give both --offset-file and --offset-column"
            raise InputError(msg)
        from dpppsynth.cli.layers import read_offset

        return read_offset(self.offset_file, self.offset_column, window)


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


def _bounds(text: str) -> tuple[float, float, float, float]:
    try:
        x0, y0, x1, y1 = (float(part) for part in text.split(","))
    except ValueError:
        msg = f"--window: needs four numbers x0,y0,x1,y1 separated by commas, got {text!r}"
        raise InputError(msg) from None
    return x0, y0, x1, y1

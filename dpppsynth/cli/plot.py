"""`dpppsynth plot`: pictures of a saved release, and a confidential one beside the original."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import note, progress, show_line
from dpppsynth.cli.input_options import LayoutOptions
from dpppsynth.core.errors import InputError
from dpppsynth.core.progress import each_of
from dpppsynth.core.rounding import stated

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpppsynth.plotting.surfaces import ColourScale
    from dpppsynth.release import Release, StratifiedRelease
    from dpppsynth.release.folder import OpenedRelease
    from dpppsynth.spatial.domains import Domain
    from dpppsynth.spatial.patterns import PointPattern

OutOption = Annotated[
    Path | None,
    o.option(
        "Folder for the public pictures, unless given pictures; with --original a private one, outside every release.",
        o.WRITING,
    ),
]
OriginalOption = Annotated[
    Path | None,
    o.option(
        "Sensitive points to draw beside a synthetic pattern, for the custodian. Only this picture is drawn then.",
        o.READING,
    ),
]
WhichOption = Annotated[int, o.option("Number of the synthetic pattern to draw.", o.WRITING, min=0)]
BandwidthOption = Annotated[
    float | None,
    o.option(
        "Bandwidth of a heat map's filter, in the window's unit. Unless given: 2 % of its longer side.", o.WRITING
    ),
]
LandmarksOption = Annotated[Path | None, o.option("Public places to show for orientation.", o.READING)]
LabelOption = Annotated[str, o.option("What the landmarks are.", o.READING)]


def plot(
    release: o.ReleaseArgument,
    layout: LayoutOptions,
    out: OutOption = None,
    pattern: WhichOption = 0,
    bandwidth: BandwidthOption = None,
    landmarks: LandmarksOption = None,
    landmarks_label: LabelOption = "landmark",
    original: OriginalOption = None,
    count: o.CountOption = None,
    crs: o.CrsOption = None,
    to_crs: o.ToCrsOption = None,
    snap: o.SnapOption = None,
    no_limit: o.NoLimitOption = False,
) -> None:
    """Draw pattern, intensity, mesh and epsilon by distance; or the original beside a synthetic pattern.

    A release of points with types and times has maps by type and by time, shares of types and a clock as well.

    A release by the levels of a mark also has a pattern, an intensity and a mesh for each level. A heat map release
    has a heat map in place of the mesh.
    """
    from dpppsynth.cli.input_options import require_snap
    from dpppsynth.plotting import plot_comparison, refuse_release_folder, save_picture

    pictures = out or Path("pictures") if original is None else o.private_folder(out)
    refuse_release_folder(pictures, "--out")

    from dpppsynth.contract.result import HeatMapped
    from dpppsynth.io import read_pattern
    from dpppsynth.release.folder import open_release

    folder = release if release.is_dir() else release.parent
    with progress() as say:
        say("opening the release")
        with open_release(release, limit=not no_limit) as found:
            opened, synthetic = found.release, _synthetic(found, pattern)
        if bandwidth is not None and not isinstance(opened, HeatMapped):
            msg = f"bandwidth: a {opened.mechanism} release has no heat map to filter; leave --bandwidth out"
            raise InputError(msg)
        marks: dict[str, Any] = {"landmark_label": landmarks_label}
        if landmarks is not None:
            marks["landmarks"] = _landmarks(landmarks, opened.domain)
        say("drawing")
        if original is None:
            named = sorted(_public(opened, synthetic, bandwidth, marks).items())
            written = [save_picture(ax, pictures / f"{name}.png") for name, ax in each_of(say, "drawing", named)]
        else:
            require_snap(opened.domain, snap)
            reading: dict[str, Any] = {"crs": crs, "to_crs": to_crs, "count": count, "snap": snap}
            sensitive = read_pattern(original, opened.domain, **layout.reading, **reading)
            if synthetic is None:
                msg = f"--pattern: {folder} holds no synthetic pattern with this number; see dpppsynth sample"
                raise InputError(msg)
            axes = plot_comparison(sensitive, synthetic, **marks)
            written = [save_picture(axes, pictures / "CONFIDENTIAL_comparison.png")]
    show_line("\n".join(map(str, written)))


def _synthetic(found: "OpenedRelease", number: int) -> "PointPattern | None":
    from dpppsynth.release.certificate import SYNTHETIC

    numbered = ((name, SYNTHETIC.fullmatch(name)) for name in found.patterns)
    return next((found.pattern(name) for name, each in numbered if each and int(each["number"]) == number), None)


def _public(
    release: "Release | StratifiedRelease",
    synthetic: "PointPattern | None",
    bandwidth: float | None,
    marks: dict[str, Any],
) -> "dict[str, Axes | list[Axes]]":
    """The pictures that may be published; those that the release has nothing for are left out."""
    from dpppsynth.contract.result import HeatMapped
    from dpppsynth.linear_network import LinearNetwork
    from dpppsynth.plotting import plot_epsilon_curve, plot_pattern
    from dpppsynth.release import StratifiedRelease

    along = "the streets" if isinstance(release.domain, LinearNetwork) else None
    axes: dict[str, Axes | list[Axes]] = {
        "epsilon": plot_epsilon_curve(release.guarantee, unit=release.domain.unit, along=along)
    }
    if synthetic is not None:
        title = f"{_called(release)}, ε = {stated(release.guarantee.epsilon(), 3)}"
        axes["pattern"] = plot_pattern(synthetic, title=title, by=_coloured(release, synthetic), **marks)
    if isinstance(release, HeatMapped):
        axes |= _heat(release, bandwidth, marks)
    elif not isinstance(release, StratifiedRelease):
        axes |= _intensity(release, "", marks) | _marked(release, synthetic)
    else:
        scale = _shared_scale(release)
        for start, (level, part) in zip(release.prefixes, release.releases.items(), strict=True):
            pictures = _intensity(part, f", {release.by} {level}", marks, scale)
            if synthetic is not None:
                at = synthetic.part((synthetic.marks or {})[release.by].astype(str) == level, synthetic=True)
                pictures["pattern"] = plot_pattern(at, title=f"{_called(part)}, {release.by} {level}", **marks)
            axes |= {start + name: each for name, each in pictures.items()}
    return axes


def _called(release: "Release | StratifiedRelease") -> str:
    """Name of a pattern's points in captions."""
    from dpppsynth.contract import registry

    return "Moved points" if registry.of(release).words.moved else "Synthetic pattern"


def _coloured(release: "Release | StratifiedRelease", synthetic: "PointPattern") -> str | None:
    """Mark of the synthetic points that gives them colours: that of the levels, or their types."""
    from dpppsynth.contract.result import has_marks
    from dpppsynth.release import StratifiedRelease

    name: str | None = None
    if isinstance(release, StratifiedRelease):
        name = release.by
    elif has_marks(release):
        types = release.marks.types  # type: ignore[attr-defined]
        name = None if types is None else types.name
    return name if name in (synthetic.marks or {}) else None


def _shared_scale(release: "StratifiedRelease") -> "ColourScale | None":
    """One colour scale for the intensities of all levels."""
    from dpppsynth.plotting import colour_scale
    from dpppsynth.release import CoxRelease

    found = [each.intensity for each in release.releases.values() if isinstance(each, CoxRelease) and each.inferred]
    return colour_scale(found) if found else None


def _intensity(
    release: "Release", of: str, marks: dict[str, Any], scale: "ColourScale | None" = None
) -> "dict[str, Axes]":
    """Mesh and intensity, where there are any."""
    from dpppsynth.contract import registry
    from dpppsynth.plotting import plot_intensity, plot_mesh, plot_relative_risk
    from dpppsynth.release import CoxRelease

    if not isinstance(release, CoxRelease):
        return {}
    words = registry.of(release).words
    axes = {"mesh": plot_mesh(release.mesh, title=f"Mesh of the {release.statistic.definition.basis}{of}")}
    if release.inferred:
        axes["intensity"] = plot_intensity(
            release.intensity, title=f"{words.title}{of}", of=words.counts, scale=scale, **marks
        )
    if release.has_risk:
        axes["risk"] = plot_relative_risk(release.risk, title=f"Relative risk{of}, {release.terms}")
    return axes


def _marked(release: "Release", synthetic: "PointPattern | None") -> "dict[str, Axes | list[Axes]]":
    """Maps and shares of types and of times, where points have any."""
    from dpppsynth.contract.result import has_marks
    from dpppsynth.plotting import plot_by_time, plot_by_type, plot_marginal

    if not has_marks(release) or not getattr(release, "inferred", False):
        return {}
    marked: Any = release
    axes: dict[str, Axes | list[Axes]] = {}
    if marked.marks.types is not None:
        axes |= {
            "by_type": plot_by_type(marked, pattern=synthetic),
            "types": plot_marginal(marked, "types", title=marked.marks.types.name),
        }
    if marked.marks.times is not None:
        axes |= {
            "by_time": plot_by_time(marked, pattern=synthetic),
            "times": plot_marginal(marked, "time", title=marked.marks.times.name),
        }
    return axes


def _heat(release: Any, bandwidth: float | None, marks: dict[str, Any]) -> "dict[str, Axes]":
    """Heat map and intensity; a mesh of so many squares shows nothing."""
    from dpppsynth.contract import registry
    from dpppsynth.plotting import plot_heatmap, plot_intensity

    words = registry.of(release).words
    warning = words.alarm(release)
    if warning is not None:
        note(warning)
    title = f"Private heat map, ε = {stated(release.guarantee.epsilon(), 3)}, smoothed by {release.blur(bandwidth)}"
    return {
        "heatmap": plot_heatmap(release, bandwidth, title=title, **marks),
        "intensity": plot_intensity(release.intensity, of=words.counts, title=words.title, **marks),
    }


def _landmarks(path: Path, domain: "Domain") -> "PointPattern":
    """Read public places, in the domain or outside it; a file without a CRS is taken to be in the domain's."""
    from dpppsynth.io import read_pattern
    from dpppsynth.io.reading import stated_crs
    from dpppsynth.spatial.domains import Window

    # Beyond the domain no lengths are compared with true ones: none are measured among landmarks.
    everywhere = Window.rectangle(-1e9, -1e9, 1e9, 1e9).as_stated(domain.crs, 1.0)
    named = stated_crs(path) is not None
    return read_pattern(path, everywhere, to_crs=domain.crs if named else None)

"""`dpppsynth plot`: pictures of a saved release, and a confidential one beside the original."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import note, progress, show_line
from dpppsynth.cli.input_options import LayoutOptions
from dpppsynth.cli.next_command import after_plot
from dpppsynth.core.errors import InputError
from dpppsynth.core.progress import each_of

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
TitleOption = Annotated[
    str, o.option("Above every map: whose points, of which place, from when: 'Burglaries in Camden, 2023'.", o.WRITING)
]
NoPointsOption = Annotated[
    bool, o.option("Leave synthetic points out of the maps by type and by time.", o.WRITING, "--no-points")
]


def plot(
    release: o.ReleaseArgument,
    layout: LayoutOptions,
    out: OutOption = None,
    pattern: WhichOption = 0,
    bandwidth: BandwidthOption = None,
    landmarks: LandmarksOption = None,
    landmarks_label: LabelOption = "landmark",
    background: o.BackgroundOption = None,
    title: TitleOption = "",
    no_points: NoPointsOption = False,
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
    has a heat map in place of the mesh. Titles say the public terms: the budget, the privacy radius, the coordinate
    system and, where it is public, the number of points.
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
        marks["background"] = o.background_of(background, opened.domain, crs)
        say("drawing")
        if original is None:
            drawing = Drawing(opened, title, marks, with_points=not no_points)
            named = sorted(_public(drawing, synthetic, bandwidth).items())
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
    if original is None:
        following = _next(opened, folder, limit=not no_limit)
        for start, command in zip(("Explain it", "For QGIS and others"), following, strict=False):
            show_line(f"{start}: {command}")


def _next(release: "Release | StratifiedRelease", folder: Path, *, limit: bool) -> list[str]:
    from dpppsynth.release import CoxRelease

    intensity = all(isinstance(part, CoxRelease) and part.inferred for part in release.parts.values())
    return after_plot(folder, intensity=intensity, limit=limit)


def _synthetic(found: "OpenedRelease", number: int) -> "PointPattern | None":
    from dpppsynth.release.certificate import SYNTHETIC

    numbered = ((name, SYNTHETIC.fullmatch(name)) for name in found.patterns)
    return next((found.pattern(name) for name, each in numbered if each and int(each["number"]) == number), None)


@dataclass(frozen=True)
class Drawing:
    """A release with what its pictures have in common: the words of their titles, landmarks and a background."""

    release: "Release | StratifiedRelease"
    words: str
    marks: dict[str, Any]
    with_points: bool = True

    def title(self, what: str, part: "Release | None" = None) -> str:
        """Title of one picture, above the public terms of the release, or of a part of it."""
        from dpppsynth.plotting.terms import terms_of

        return "\n".join(filter(None, (self.words, what, terms_of(part or self.release))))


def _public(
    drawing: Drawing, synthetic: "PointPattern | None", bandwidth: float | None
) -> "dict[str, Axes | list[Axes]]":
    """The pictures that may be published; those that the release has nothing for are left out."""
    from dpppsynth.contract.result import HeatMapped
    from dpppsynth.linear_network import LinearNetwork
    from dpppsynth.plotting import plot_epsilon_curve, plot_pattern
    from dpppsynth.release import StratifiedRelease

    release = drawing.release
    along = "the streets" if isinstance(release.domain, LinearNetwork) else None
    axes: dict[str, Axes | list[Axes]] = {
        "epsilon": plot_epsilon_curve(release.guarantee, unit=release.domain.unit, along=along)
    }
    if synthetic is not None:
        title = drawing.title(_called(release))
        axes["pattern"] = plot_pattern(synthetic, title=title, by=_coloured(release, synthetic), **drawing.marks)
    if isinstance(release, HeatMapped):
        axes |= _heat(drawing, bandwidth)
    elif not isinstance(release, StratifiedRelease):
        axes |= _intensity(release, "", drawing) | _marked(drawing, synthetic)
    else:
        scale = _shared_scale(release)
        for start, (level, part) in zip(release.prefixes, release.releases.items(), strict=True):
            pictures = _intensity(part, f", {release.by} {level}", drawing, scale)
            if synthetic is not None:
                at = synthetic.part((synthetic.marks or {})[release.by].astype(str) == level, synthetic=True)
                title = drawing.title(f"{_called(part)}, {release.by} {level}", part)
                pictures["pattern"] = plot_pattern(at, title=title, **drawing.marks)
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
    release: "Release", of: str, drawing: Drawing, scale: "ColourScale | None" = None
) -> "dict[str, Axes | list[Axes]]":
    """Mesh and intensity, where there are any."""
    from dpppsynth.contract import registry
    from dpppsynth.plotting import plot_intensity, plot_mesh, plot_relative_risk
    from dpppsynth.release import CoxRelease

    if not isinstance(release, CoxRelease):
        return {}
    words = registry.of(release).words
    axes: dict[str, Axes | list[Axes]] = {
        "mesh": plot_mesh(release.mesh, title=f"Mesh of the {release.statistic.definition.basis}{of}")
    }
    if release.inferred:
        title = drawing.title(f"{words.title}{of}", release)
        axes["intensity"] = plot_intensity(
            release.intensity, title=title, of=words.counts, scale=scale, **drawing.marks
        )
    if release.has_risk:
        title, background = drawing.title(f"Relative risk{of}", release), drawing.marks["background"]
        axes["risk"] = plot_relative_risk(release.risk, title=title, background=background)
    return axes


def _marked(drawing: Drawing, synthetic: "PointPattern | None") -> "dict[str, Axes | list[Axes]]":
    """Maps and shares of types and of times, where points have any."""
    from dpppsynth.contract.result import has_marks
    from dpppsynth.plotting import plot_by_time, plot_by_type, plot_marginal

    release: Any = drawing.release
    if not has_marks(release) or not release.inferred:
        return {}
    above: dict[str, Any] = {"background": drawing.marks["background"]}
    above["pattern"] = synthetic if drawing.with_points else None
    axes: dict[str, Axes | list[Axes]] = {}
    if (types := release.marks.types) is not None:
        title = drawing.title(f"Private intensity by {types.name}")
        axes["by_type"] = plot_by_type(release, title=title, **above)
        axes["types"] = plot_marginal(release, "types", title=types.name)
    if (times := release.marks.times) is not None:
        title = drawing.title(f"Private intensity by {times.name}")
        axes["by_time"] = plot_by_time(release, title=title, **above)
        axes["times"] = plot_marginal(release, "time", title=times.name)
    return axes


def _heat(drawing: Drawing, bandwidth: float | None) -> "dict[str, Axes | list[Axes]]":
    """Heat map and intensity; a mesh of so many squares shows nothing."""
    from dpppsynth.contract import registry
    from dpppsynth.plotting import plot_heatmap, plot_intensity

    release: Any = drawing.release
    words = registry.of(release).words
    warning = words.alarm(release)
    if warning is not None:
        note(warning)
    title = drawing.title(f"Private heat map, smoothed by {release.blur(bandwidth)}")
    named = drawing.title(words.title)
    return {
        "heatmap": plot_heatmap(release, bandwidth, title=title, **drawing.marks),
        "intensity": plot_intensity(release.intensity, of=words.counts, title=named, **drawing.marks),
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

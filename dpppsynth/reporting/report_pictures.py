"""Pictures of a report, embedded in its page and reproducible byte by byte, and the numbers that they show."""

import base64
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import shapely

from dpppsynth.contract.result import HeatMapped, Marked
from dpppsynth.core.randomness import generator
from dpppsynth.core.rounding import in_words, stated
from dpppsynth.core.units import short_unit
from dpppsynth.evaluation import KFunction, default_distances, k_function
from dpppsynth.evaluation.metrics import kept_part
from dpppsynth.inference.risk import RelativeRisk
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.plotting import (
    Background,
    plot_by_time,
    plot_by_type,
    plot_epsilon_curve,
    plot_heatmap,
    plot_intensity,
    plot_marginal,
    plot_pattern,
    plot_relative_risk,
)
from dpppsynth.plotting.canvas import INK, POINT, map_figure, new_figure, plain_axes
from dpppsynth.plotting.curves import label_curves, what_changes
from dpppsynth.plotting.mark_pictures import draw_panels
from dpppsynth.plotting.surfaces import BELOW
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import AddRemove, AddRemovePerson, GeoIndistinguishability
from dpppsynth.reporting import local_privacy as local
from dpppsynth.reporting.promise import length, several, silent_beyond, way
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.intensity import Intensity
from dpppsynth.spatial.patterns import PointPattern

STEPS = 128
# Points that the K-function of one pattern is made of at most, in windows and along streets.
IN_PLANE, ON_NETWORK = 5_000, 1_000
FEWEST = 2


class KCurves(NamedTuple):
    """K-functions of synthetic patterns; `thinned` tells whether one was too large to use all of its points."""

    curves: list[KFunction]
    thinned: bool


def gathering(patterns: Iterable[PointPattern]) -> KCurves | None:
    """K-functions of patterns on one domain; None where none has two points.

    A large pattern is thinned by a fixed rule, which leaves K as it is on average.
    """
    usable = [each for each in patterns if len(each) >= FEWEST]
    if not usable:
        return None
    domain = usable[0].domain
    most = ON_NETWORK if isinstance(domain, LinearNetwork) else IN_PLANE
    r = default_distances(domain, STEPS)
    curves = [k_function(each.part(kept_part(each, generator(0), most), synthetic=True), r) for each in usable]
    return KCurves(curves, any(len(each) > most for each in usable))


# Inches of a curve; maps are drawn smaller than alone, so that their letters can be read on a phone.
CURVE = 5.2, 3.5
MAP_SHARE, SMALL_SHARE = 0.78, 0.55
# Above so many points and corners a map becomes pixels, as WebP of this quality; so do small ones.
DRAWN_POINTS, DPI = 2_000, 160
QUALITY = 85
CSS_PIXELS = 96
# Types whose relative risk is drawn, a map for each.
RISKS = 4
# Profiles are drawn this far beyond the claimed epsilon, and down to this delta.
BEYOND, LEAST_DELTA, STEPS = 1.5, 1e-12, 121
LETTERS = {"svg.fonttype": "path", "svg.hashsalt": "dpppsynth", "text.parse_math": False}


@dataclass(frozen=True)
class Picture:
    """A picture as a page holds it: a data URI of SVG or WebP, its description, and its size in CSS pixels."""

    uri: str
    alt: str
    width: int
    height: int


@contextmanager
def house_style() -> Iterator[None]:
    """Draw as Matplotlib does by default, whatever the user's settings; no text is read as a formula."""
    import matplotlib.style

    with matplotlib.style.context(["default", LETTERS]):
        yield


def pattern_map(
    pattern: PointPattern,
    alt: str,
    *,
    by: str | None = None,
    small: bool = False,
    background: Background | None = None,
) -> Picture:
    """Draw a synthetic pattern over its domain, with the values of a mark in colours."""
    figure = _map_figure(pattern.domain, SMALL_SHARE if small else MAP_SHARE)
    corners = 0 if background is None else shapely.get_num_coordinates(background.geometries).sum()
    corners += shapely.get_num_coordinates(pattern.domain.geometry)
    drawn = not small and len(pattern) + corners <= DRAWN_POINTS
    return _picture(plot_pattern(pattern, figure.subplots(), by=by, background=background), alt, drawn=drawn)


def intensity_map(intensity: Intensity, alt: str, of: str = "points", background: Background | None = None) -> Picture:
    """Draw a released intensity of points or persons; always as pixels, since it is an image anyway."""
    ax = plot_intensity(intensity, _above_bar(intensity.mesh.domain), of=of, background=background)
    return _picture(ax, alt, drawn=False)


def intensity_panels(
    intensities: Mapping[str, Intensity], alt: str, of: str = "points", background: Background | None = None
) -> Picture:
    """Draw the released intensities of levels side by side, under one colour scale."""
    return _picture(draw_panels(intensities, of=of, background=background)[0], alt, drawn=False)


def risk_map(risk: RelativeRisk, background: Background | None = None) -> Picture:
    """Draw the relative risk, and mark the places where it is almost certainly above average."""
    alt = "Map of the relative risk; places where it is above average with probability .95 or more are marked."
    ax = plot_relative_risk(risk, _above_bar(risk.mesh.domain), background=background)
    return _picture(ax, alt, drawn=False)


def mark_pictures(
    release: Marked, pattern: PointPattern | None, background: Background | None = None
) -> Iterator[tuple[str, Picture]]:
    """Captions and pictures of types and times."""
    types, times = release.marks.types, release.marks.times
    shown: dict[str, Any] = {"pattern": pattern, "background": background}
    if types is not None:
        alt = f"Maps of the released intensity by {types.name}, under one colour scale."
        yield f"Private intensity by {types.name}", _picture(plot_by_type(release, **shown)[0], alt, drawn=False)
        alt = f"Expected points by {types.name}, with credible intervals."
        yield f"Expected points by {types.name}", _picture(plot_marginal(release, "types", title=types.name), alt)
    if times is not None:
        alt = f"Maps of the released intensity by {times.name}, under one colour scale."
        yield f"Private intensity by {times.name}", _picture(plot_by_time(release, **shown)[0], alt, drawn=False)
        alt = f"Expected points by {times.name}, {'around the clock, ' * times.periodic}with credible intervals."
        yield f"Expected points by {times.name}", _picture(plot_marginal(release, "time", title=times.name), alt)


def risks_by_type(release: Any, background: Background | None = None) -> Iterator[tuple[str, Picture]]:
    """Captions and maps of the relative risk of the first types, where a release has a risk by type."""
    types = release.marks.types
    if types is not None and release.has_risk:
        for kind in types.values[:RISKS]:
            yield f"Relative risk by {types.name}, {kind}", risk_map(release.risk_of(type=kind), background)


def heat_map(release: HeatMapped, alt: str, background: Background | None = None) -> Picture:
    """Draw the heat map of a release, under its usual filter; always as pixels."""
    return _picture(plot_heatmap(release, ax=_above_bar(release.domain), background=background), alt, drawn=False)


def epsilon_curve(guarantee: Guarantee, domain: Domain, alt: str) -> Picture:
    """Draw epsilon by the distance that one point moves."""
    along = "the streets" if isinstance(domain, LinearNetwork) else None
    ax = plot_epsilon_curve(guarantee, new_figure(*CURVE).subplots(), unit=domain.unit, along=along, title="")
    at = f"at δ = {stated(guarantee.profile.at, 3)}" if guarantee.profile.at else ""
    ax.set_ylabel("\n".join(filter(None, ("ε of one single point" if several(guarantee.relation) else "ε", at))))
    return _picture(ax, alt)


def profile_curve(guarantee: Guarantee, alt: str) -> Picture:
    """Draw delta by epsilon; on a logarithmic scale where delta never ends at zero."""
    ax, claimed = new_figure(*CURVE).subplots(), guarantee.epsilon()
    epsilon = np.linspace(0, BEYOND * claimed, STEPS)
    delta = np.array([guarantee.delta(float(each)) for each in epsilon])
    ax.plot(
        epsilon, np.where(delta < LEAST_DELTA, np.nan, delta) if guarantee.profile.at else delta, color=POINT, lw=2.2
    )
    if guarantee.profile.at:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(lambda value, _place: in_words(f"{value:g}"))
        ax.yaxis.set_minor_formatter("")
    else:
        ax.set_ylim(0, 1.08 * delta.max())
    ax.plot([claimed], [guarantee.profile.at], "o", color=INK, markersize=6, clip_on=False, zorder=4)
    ax.annotate("claimed", (claimed, guarantee.profile.at), (8, 8), textcoords="offset points", color=INK)
    ax.set(xlim=(0, epsilon[-1]), xlabel="ε", ylabel="smallest δ that holds")
    plain_axes(ax)
    return _picture(ax, alt)


def gathering_curve(found: KCurves, domain: Domain, alt: str) -> Picture:
    """Draw the excess over a Poisson process at each distance."""
    streets, unit = isinstance(domain, LinearNetwork), short_unit(domain.unit)
    ax, r = new_figure(*CURVE).subplots(), found.curves[0].r
    excess, many = np.array([each.l - r for each in found.curves]), len(found.curves) > 1
    if many:
        label = f"lowest to highest of {len(excess)}"
        ax.fill_between(r, excess.min(axis=0), excess.max(axis=0), color=POINT, alpha=0.22, linewidth=0, label=label)
    ax.plot(r, excess.mean(axis=0), color=POINT, linewidth=2.0, label="mean" if many else "synthetic")
    along = f"distance r{' along the streets' if streets else ''} ({unit})"
    minus = f"{'K' if streets else 'L'}(r) − r ({unit})"  # noqa: RUF001 - a minus sign
    return _picture(label_curves(ax, along, minus, None), alt)


def _map_figure(domain: Domain, share: float, below: float = 0.0) -> Any:
    figure = map_figure(domain, below=below)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width * share, height * share)
    return figure


def _above_bar(domain: Domain) -> Any:
    return _map_figure(domain, MAP_SHARE, below=BELOW).subplots()


def _picture(ax: Any, alt: str, *, drawn: bool = True) -> Picture:
    figure, kind = ax.figure, "svg" if drawn else "webp"
    # No date and no name of a version; and a tenth of the bytes of PNG, without what an eye could see.
    silent = {"metadata": {"Date": None, "Creator": None, "Format": None, "Type": None}}
    small = {"dpi": DPI, "pil_kwargs": {"quality": QUALITY}}
    stream = io.BytesIO()
    figure.savefig(stream, format=kind, **(silent if drawn else small))
    width, height = (round(CSS_PIXELS * inches) for inches in figure.get_size_inches())
    data = base64.b64encode(stream.getvalue()).decode()
    return Picture(f"data:image/{'svg+xml' if drawn else kind};base64,{data}", alt, width, height)


def explained(guarantee: Guarantee, domain: Domain) -> str:
    """Explanation of the curve of epsilon by distance, or of a constant."""
    said = [_shown(guarantee, domain)]
    if several(guarantee.relation):
        cap, user = guarantee.relation.max_points_per_person, guarantee.relation.user
        whose = f"{cap} points" if user is None else "points"
        within = " within the privacy radius" if math.isfinite(guarantee.relation.reach) else ""
        said.append(
            f"This is about a single point. The promise is made to a person, whose {whose} may change together: "
            f"for a person the bound may be larger than the curve. The epsilon of the claim is a person's{within}."
        )
    if isinstance(guarantee.relation, AddRemove):
        said.append(
            "A point that is known to be in the data and moves is removed and added: that costs up to twice as much."
        )
    if isinstance(guarantee.relation, AddRemovePerson):
        said.append(
            "Telling apart where a person has been who is known to be in the data costs up to twice as much: that "
            "takes a removal and an addition."
        )
    return " ".join(said)


def caption(guarantee: Guarantee) -> str:
    """Caption of the picture of epsilon by distance."""
    at = f", at delta {stated(guarantee.profile.at)}" if guarantee.profile.at else ""
    apart = f"Bound on what an attacker can tell apart about {_one(guarantee)}"
    if _in_squares(guarantee):
        return f"{apart}, by distance in squares of the public grid{at}."
    return f"{apart}{at}." if isinstance(guarantee.relation, AddRemovePerson) else f"{apart}, by distance{at}."


def title(guarantee: Guarantee, domain: Domain) -> str:
    """Title of the table of epsilon by distance."""
    if _in_squares(guarantee):
        return f"Epsilon for {_one(guarantee)} in one square or another, by how far apart these are, rounded up"
    return f"Epsilon for {_one(guarantee)} that moves {way(domain)}, rounded up"


def unit(guarantee: Guarantee, domain: Domain) -> str:
    """Unit of the distances."""
    return "squares" if _in_squares(guarantee) else short_unit(domain.unit)


def alternative(guarantee: Guarantee, domain: Domain) -> str:
    """Text in place of the picture of epsilon by distance."""
    if isinstance(guarantee.relation, AddRemovePerson):
        return f"Epsilon for {_one(guarantee)}, who is added or removed: one level line."
    start = f"Epsilon for {_one(guarantee)}, by distance"
    if guarantee.by_distance:
        return f"{start}: {stated(guarantee.by_distance[-1][1])} at the far end."
    if silent_beyond(guarantee):
        away = length(guarantee.relation.reach, domain)
        return f"{start}: level up to the privacy radius of {away}, where the curve ends; nothing is promised beyond."
    return f"{start}: the same at all distances."


def _in_squares(guarantee: Guarantee) -> bool:
    return isinstance(guarantee.relation, GeoIndistinguishability)


def _one(guarantee: Guarantee) -> str:
    if local.by_reports(guarantee.relation):
        return "one person"
    if isinstance(guarantee.relation, AddRemovePerson):
        return "one person with all their points"
    return "one single point (not a person)" if several(guarantee.relation) else "one point"


def _shown(guarantee: Guarantee, domain: Domain) -> str:
    if isinstance(guarantee.relation, GeoIndistinguishability):
        return (
            "What can be told apart about one person, at most, who is in one square of the public grid or in another, "
            f"by how many squares lie from one to the other in a straight line: the smaller epsilon, the less. "
            f"{local.squares(guarantee.relation, domain)}"
        )
    if guarantee.by_distance:
        end = " Nothing is promised beyond the privacy radius; there the curve ends." * silent_beyond(guarantee)
        return (
            f"What can be told apart about one point that moves, at most, by the distance it moves {way(domain)}: the "
            f"smaller epsilon, the less.{end}"
        )
    if silent_beyond(guarantee):
        return "Nothing is promised about one point that moves farther than the privacy radius; the curve ends there."
    what = what_changes(guarantee)
    return f"The bound of this mechanism does not depend on distance, so the curve is level: {what}."

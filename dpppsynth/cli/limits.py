"""Bounds on the error in words: of noised counts, and of points that are moved."""

from typing import Any

from dpppsynth.bounded_plan import BoundedCountsPlan
from dpppsynth.moved_plan import MovedPlan
from dpppsynth.release.points import PointRelease
from dpppsynth.release.strata import StratifiedRelease
from dpppsynth.statistic import StatisticPlan
from dpppsynth.truncated import PlanarLaplace, TruncatedGeometric


def noise_of(statistic: StatisticPlan) -> list[tuple[str, str]]:
    """Rows of a table: discrete Laplace noise, and the largest error where it has a bound."""
    scale = statistic.noise_scale
    law = f"discrete Laplace of scale {scale:.4g} points, standard deviation"
    if not isinstance(statistic, BoundedCountsPlan):
        return [("noise", f"{law} {2**0.5 * scale:.4g}")]
    deviation = TruncatedGeometric(statistic.scale, statistic.max_error).variance ** 0.5
    most = f"{statistic.max_error} points in any count"
    return [("noise", f"{law} {deviation:.4g}, drawn again beyond the largest error"), ("largest error", most)]


def moves(statistic: MovedPlan) -> list[tuple[str, str]]:
    """Rows of a table: how far points are moved."""
    unit, mean = statistic.window.unit, PlanarLaplace(statistic.rate, statistic.bound).mean_radius
    rows = [("noise", f"planar Laplace: every point is moved by {mean:.4g} {unit} on average")]
    if statistic.max_error is not None:
        rows.append(("largest move", f"{statistic.max_error:.6g} {unit}"))
        if not statistic.window.is_convex:
            why = "where it is moved back into a window that is not convex"
            rows.append(("largest error", f"{statistic.error_bound:.6g} {unit}, {why}"))
    return [*rows, ("rows", "one person's track, in its order" if statistic.track else "shuffled")]


def error_bound(release: Any) -> str | None:
    """What the release promises of its errors; None where it has no bound."""
    parts: list[Any] = list(release.releases.values()) if isinstance(release, StratifiedRelease) else [release]
    bounds: list[Any] = [getattr(part, "max_error", None) for part in parts]
    if None in bounds:
        return None
    if isinstance(parts[0], PointRelease):
        farthest = max(part.error_bound for part in parts)
        return f"No point is further than {farthest:.6g} {release.domain.unit} from where it was."
    return (
        f"No count is off by more than {max(bounds)}. Synthetic patterns vary around the counts, without such a bound."
    )

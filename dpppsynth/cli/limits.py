"""Noise scales and error bounds as rows of a table, for counts and for moved points."""

from dpppsynth.contract.additive_noise import StatisticPlan
from dpppsynth.core.units import short_unit
from dpppsynth.mechanisms.bounded.plan import BoundedCountsPlan
from dpppsynth.mechanisms.bounded.words import errors, farthest, measured
from dpppsynth.mechanisms.planar_laplace.plan import PlanarLaplacePlan
from dpppsynth.privacy.truncated.geometric import TruncatedGeometric
from dpppsynth.privacy.truncated.truncated_planar import PlanarLaplace
from dpppsynth.release import Release, StratifiedRelease


def noise_of(statistic: StatisticPlan) -> list[tuple[str, str]]:
    """Rows of a table: discrete Laplace noise, and the largest error where it has a bound."""
    scale = statistic.noise_scale
    law = f"discrete Laplace of scale {scale:.4g} points, standard deviation"
    if not isinstance(statistic, BoundedCountsPlan):
        return [("noise", f"{law} {2**0.5 * scale:.4g}")]
    deviation = TruncatedGeometric(statistic.scale, statistic.max_error).variance ** 0.5
    most = f"{statistic.max_error:,} points in any count"
    return [("noise", f"{law} {deviation:.4g}, drawn again beyond the largest error"), ("largest error", most)]


def moves(statistic: PlanarLaplacePlan) -> list[tuple[str, str]]:
    """Rows of a table: mean and largest displacement of moved points, rounded up."""
    domain, mean = statistic.domain, PlanarLaplace(statistic.rate, statistic.bound).mean_radius
    rows = [("noise", f"planar Laplace: every point is moved by {mean:.4g} {short_unit(domain.unit)} on average")]
    if statistic.max_error is not None:
        rows.append(("largest move", farthest(statistic.max_error, domain)))
        if not domain.is_convex:
            why = "where it is moved back into a window that is not convex"
            rows.append(("largest error", f"{farthest(statistic.error_bound, domain)}, {why}"))
    return [*rows, ("rows", "one person's track, in its order" if statistic.track else "shuffled")]


def error_bound(release: Release | StratifiedRelease) -> str | None:
    """Error bound of a release, in the words of its report; None where there is none."""
    by = release.by if isinstance(release, StratifiedRelease) else None
    return " ".join(errors(measured(release), by)) or None

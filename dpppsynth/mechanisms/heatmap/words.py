"""Report text on heat maps: persons, filter width and noise.

Everything follows from what is released.
"""

from typing import Any

from dpppsynth.core.units import short_unit
from dpppsynth.mechanisms.heatmap.plan import HeatmapPlan
from dpppsynth.mechanisms.heatmap.release import HeatmapRelease, Reconstruction, usual_bandwidth
from dpppsynth.spatial.domains import Domain

# A map with fewer persons than so many times those that noise makes up may be of noise alone.
DROWNED = 2.0


def blur(domain: Domain, bandwidth: float | None = None) -> str:
    """Width of a heat map's filter, with its unit."""
    return f"{usual_bandwidth(domain) if bandwidth is None else bandwidth:.3g} {short_unit(domain.unit)}"


def persons_in_words(release: HeatmapRelease) -> str:
    """Number of persons that the private numbers tell of, in words."""
    found, noise = round(release.masses.sum()), release.noise_persons
    start = f"about {found:,} person{'' if found == 1 else 's'}"
    if noise > found:
        return f"{start}, where noise alone makes up about {noise:,.0f} on average"
    made_up = f"up to about {noise:,.0f}" if noise >= 1 else "less than one"
    return f"{start}, of which {made_up} may be noise"


def drowned(release: HeatmapRelease) -> str | None:
    """Warning that noise alone might look like this map."""
    if release.masses.sum() >= DROWNED * release.noise_persons:
        return None
    return (
        "Noise alone, without any person, would often give as much: what this heat map shows may be nothing but noise. "
        "What an epsilon can show of so many persons a rehearsal tells beforehand, at no cost."
    )


def levels(plan: HeatmapPlan) -> list[dict[str, Any]]:
    """Budget of each measured level, and scale of its noise in persons."""
    budgets = plan.budgets
    return [
        {"level": level, "epsilon": epsilon, "noise_scale": scale / 2.0**plan.bits}
        for level, (epsilon, scale) in enumerate(zip(budgets.epsilons, plan.scales, strict=True), budgets.first)
    ]


def fitted(estimator: Reconstruction) -> str:
    """Description of the fit from noised counts to masses."""
    if estimator.fit == "l1":
        return "fitted to the noised counts of the kept cells in l1, as published"
    return "fitted to all noised counts by least squares, drawn to an even spread where noise prevails"


def measured(plan: HeatmapPlan) -> list[tuple[str, str]]:
    """Persons, measured levels and noise of a heat map, from coarse to fine: names and words."""
    each = levels(plan)
    scales = ", ".join(f"{level['noise_scale']:.4g}" for level in each)
    own = "every point is a person of its own" if plan.user is None else f"told apart by the mark {plan.user!r}"
    return [
        ("persons", f"{own}; each counts once, spread evenly over all points of theirs"),
        (
            "measured",
            f"levels {each[0]['level']} to {each[-1]['level']} of a pyramid, at most {plan.w} cells kept of each",
        ),
        ("noise", f"discrete Laplace of scale {scales} persons, level by level"),
    ]

"""Report text on heat maps: persons, filter width and noise.

Everything follows from what is released.
"""

from dpppsynth.core.units import short_unit
from dpppsynth.mechanisms.heatmap.release import HeatmapRelease, usual_bandwidth
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

"""Report text on each mechanism, in a few sentences without formulas."""

from collections.abc import Mapping
from typing import Any

from dpppsynth.contract.stratified_plan import STRATA

_FITTED = "A log-Gaussian Cox model that knows the law of the noise was fitted to these numbers alone"
_UNMARKED = "Marks are not released."
_DRAWN = "The synthetic points were drawn from that intensity"
_SCATTERED = "Every pattern was paid for by the privacy budget. There is no released intensity: it would be the data"
_OWN = "Every person's location was turned into a random report on its own"
_TOGETHER = (
    "How many persons are in each square was estimated from all reports together, and the synthetic points were "
)
_TOGETHER += "drawn from these estimates"
DESCRIPTIONS = {
    "laplace-cells": "The points in every cell of a public grid were counted, and random noise was added to every "
    "count. The synthetic points were drawn from the noisy counts.",
    "laplace-tents": "The points were shared out to the corners of a public mesh, and random noise was added to every "
    "corner's sum. The synthetic points were drawn from the noisy sums.",
    "bounded-cells": "The points in every cell of a public grid were counted, and random noise was added to every "
    "count, none of it beyond a public bound. The synthetic points were drawn from the noisy counts.",
    "planar-laplace": f"Every point was moved at random, by a distance and in a direction of its own. {_UNMARKED}",
    "lgcp-tents": "The points were shared out to the corners of a public mesh, and random noise was added to every "
    f"corner's sum. {_FITTED}, and the synthetic points were drawn from the model.",
    "lgcp-field": "The points were reduced to smooth averages over the area, and random noise was added to each. "
    f"{_FITTED}, and the synthetic points were drawn from the model.",
    "lgcp-posterior-draw": "One intensity was drawn at random from what a log-Gaussian Cox model makes of the points. "
    f"No noise was added: the randomness of the draw protects. {_DRAWN}.",
    "lgcp-lipschitz": "One intensity that changes only gently from place to place was drawn at random from what a "
    f"log-Gaussian Cox model makes of the points. The randomness of the draw and the gentle slope protect. {_DRAWN}.",
    "lgcp-kim-lim-3.8": "One intensity was drawn at random from what a log-Gaussian Cox model makes of the points, as "
    f"published by Kim and Lim (their Theorem 3.8). {_DRAWN}.",
    "lgcp-kim-lim-3.9": "One intensity was drawn at random from what a log-Gaussian Cox model makes of the points, as "
    f"published by Kim and Lim (their Corollary 3.9). {_DRAWN}.",
    "kernel": "Every point was replaced by a random number of synthetic points scattered at random around it. "
    f"{_SCATTERED}.",
    "heatmap": "Every person counts once, spread evenly over their points. The persons in the squares of a public grid "
    "were counted, coarse squares first; random noise was added to every count, and only the fullest squares were "
    "divided and counted again. A map was fitted to these noisy counts alone. The synthetic points were drawn from it, "
    "about one for each person.",
    "disk-area": f"{_OWN}: it names a square of a public grid, most likely one near their own. {_TOGETHER}.",
    "hybrid-area": f"{_OWN}: it names a square of a public grid, likelier ones being nearer to their own. {_TOGETHER}.",
    "square-wave": f"{_OWN}: it names a row or a column of a public grid, most likely one near their own. {_TOGETHER}.",
    "subset-exponential": f"{_OWN}: it names a few squares of a public grid, likelier ones being nearer to their own. "
    f"{_TOGETHER}.",
    "uniform-grid": f"{_OWN}: a noisy answer to which square of a public grid they are in. {_TOGETHER}.",
    "adaptive-grid": f"{_OWN}: some were noisy answers about the large squares of a public grid, all others about "
    f"smaller squares, finer where the first answers had found more people. {_TOGETHER}.",
    "trajectories": "Every person's trajectory was turned into random reports on its own: first a noisy answer to how "
    "long it is; then, for a length announced to all, noisy answers to where it starts, where it ends and which moves "
    "it makes between the squares of a public grid. Random walks were fitted to all reports together. The synthetic "
    "points were drawn from where such walks are expected to pass.",
    "kernel-diffusion": "Every point was replaced by a random number of synthetic points that walked at random along "
    f"the streets. {_SCATTERED}.",
}


def describe(certificate: Mapping[str, Any]) -> str:
    """Description of a certificate's mechanism.

    Examples
    --------
    >>> describe({"mechanism": "laplace-cells", "parameters": {}}).startswith("The points in every cell")
    True
    """
    name, parameters = certificate["mechanism"], certificate["parameters"]
    if name != STRATA:
        return DESCRIPTIONS[name]
    each = DESCRIPTIONS[parameters["strata"][0]["mechanism"]]
    each = each.replace(_UNMARKED, f"No mark but {parameters['by']} is released.")
    return f"Separately for each level of {parameters['by']}: {each}"

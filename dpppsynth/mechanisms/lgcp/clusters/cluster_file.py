"""File of the posterior of the law of clusters: what is written, and nothing else."""

import json

import numpy as np

from dpppsynth.contract.statistic import require
from dpppsynth.core.published_files import plain_text
from dpppsynth.models.cluster_posterior import ClusterPosterior, ClusterPrior

CLUSTERS = "clusters.json"
# Probabilities are whole numbers of millionths.
UNIT = 1_000_000


def cluster_text(posterior: ClusterPosterior) -> str:
    """The file: laws of clusters that have a probability, with it."""
    ends = np.rint(np.cumsum(posterior.probabilities) * UNIT).astype(np.int64)
    # Rounded ends of intervals leave their lengths whole, and the sum one.
    ends[-1] = UNIT
    share = np.diff(ends, prepend=0)
    table = posterior.prior.table
    laws = [
        {"size": size, "spread": spread, "coincident": coincident, "millionths": int(share[k])}
        for k, (size, spread, coincident) in enumerate(table[:, :3].tolist())
        if share[k] or not k
    ]
    return plain_text({"laws": laws})


def read_clusters(content: bytes, prior: ClusterPrior) -> ClusterPosterior:
    """The posterior in a file.

    Raises
    ------
    InputError
        When it is not one of laws of the prior.
    """
    rule = "clusters are laws of the prior, with probabilities that add up to one"
    try:
        laws = json.loads(content)["laws"]
        known = {tuple(law): k for k, law in enumerate(prior.table[:, :3].tolist())}
        share = np.zeros(len(known), dtype=np.int64)
        for law in laws:
            place = known.get((law["size"], law["spread"], law["coincident"]))
            require(place is not None and type(law["millionths"]) is int and law["millionths"] >= 0, rule)
            share[place or 0] = law["millionths"]
    except (KeyError, TypeError, ValueError, RecursionError):
        require(False, rule)
    require(int(share.sum()) == UNIT, rule)
    return ClusterPosterior(prior, share / UNIT)


def require_clusters(content: bytes, prior: ClusterPrior) -> None:
    """Refuse bytes that are not those of such a file."""
    require(cluster_text(read_clusters(content, prior)).encode() == content, "clusters are written in one way")

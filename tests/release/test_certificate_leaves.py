"""Every leaf of every stored certificate changed by a little, to another kind, and to its neighbours in an enumeration.

With its hash made again a certificate with a changed leaf does not verify, unless the leaf is one of `FREE`: those on
which nothing of the promise hangs, each with its reason.
"""

import shutil
from collections import defaultdict

import pytest
from release.test_stored_releases import CERTIFICATES, NAMES, STORED
from support.forgery import put, reseal
from support.seams import derived_once

from dpppsynth.core.errors import DpppsynthError
from dpppsynth.privacy import verify

# Leaves that are no statement of the mechanism: hashes made again here, and what the files' own check compares.
ELSEWHERE = {"content_hash", "files"}
INFERRED = "a setting of inference from what was released, which costs nothing and may be repeated"
NUMBER = "a public number: the bound does not hang on it, and delta is 0 or far below one in it"
GRID = "a setting of the public grid: clients' laws have the stated epsilon on any"
ROUNDED = "a setting of what is measured of a point: its largest change, and so the noise, is the same"
# By place: mechanisms, none for all of them, and the reason.
FREE = {
    ("versions",): ((), "versions of software, by which nothing is decided"),
    ("parameters", "estimator"): ((), INFERRED),
    ("parameters", "n"): ((), NUMBER),
    ("parameters", "expected_n"): ((), "a public guess, on which nothing hangs"),
    ("parameters", "clients"): (("trajectories",), NUMBER),
    ("parameters", "reports"): (("adaptive-grid",), NUMBER),
    ("parameters", "alpha"): (("adaptive-grid",), GRID),
    ("parameters", "margin"): (("adaptive-grid",), GRID),
    ("parameters", "rounding"): (("adaptive-grid",), GRID),
    ("parameters", "sigma"): (("adaptive-grid",), GRID),
    ("parameters", "columns"): (("uniform-grid",), "a setting of the public grid: hashed reports have one size on any"),
    ("parameters", "randomizer", "shrink"): (("disk-area",), "either law of the clients has the stated epsilon"),
    ("parameters", "user"): (("trajectories", "displacements"), "the name of a column, which only readers need"),
    ("parameters", "decay"): (("heatmap",), "None stands for the decay of the variant, which may be stated as well"),
    ("parameters", "mesh", "shape"): (("heatmap",), ROUNDED),
    ("parameters", "mesh", "resolution"): ((), "longest segment of a mesh, which is the same for lengths nearby"),
    ("parameters", "mesh", "kind"): (("lgcp-lipschitz", "lgcp-posterior-draw"), "one bound for triangles and squares"),
    ("parameters", "steps"): (("lgcp-clusters", "pair-sums", "pair-sums-persons"), ROUNDED),
    ("parameters", "covariance"): (("lgcp-lipschitz",), "a prior of fields whose slope alone costs privacy"),
    ("parameters", "marks", "times"): (
        ("marked-tents", "marked-moved"),
        "a range in which the bound is the same, or nothing moves",
    ),
    ("guarantee", "relation", "alpha"): ((), "a radius for which the bound holds as well, as counts have it for any"),
}


@pytest.fixture(autouse=True, scope="module")
def remembered():
    """Leaves beside the parameters leave the bound as it is."""
    with derived_once():
        yield


def leaves(value, path=()):
    """Places and values of leaves; of a list the first, the middle and the last."""
    if isinstance(value, dict) and value:
        for key, child in value.items():
            yield from leaves(child, (*path, key))
    elif isinstance(value, list) and value:
        for k in sorted({0, len(value) // 2, len(value) - 1}):
            yield from leaves(value[k], (*path, k))
    else:
        yield path, value


def names_of(path):
    """Names on the way to a leaf, as if levels were no lists."""
    found = tuple(key for key in path if isinstance(key, str))
    return found[:1] + found[3:] if found[1:3] == ("strata", "parameters") else found


WORDS = defaultdict(set)
for _cert in CERTIFICATES.values():
    for _path, _value in leaves(_cert):
        if isinstance(_value, str):
            WORDS[names_of(_path)].add(_value)


def others(path, value):
    """A little more or less, by turns; another kind; and the neighbour in an enumeration."""
    more = sum(map(len, map(str, path))) % 2
    if isinstance(value, bool):
        return [not value, "yes"]
    if isinstance(value, int):
        return [value + (1 if more else -1), str(value)]
    if isinstance(value, float):
        return [value * 1.001 or 0.001 if more else value * 0.999 or -0.001, str(value)]
    if isinstance(value, str):
        words = sorted({*WORDS[names_of(path)], value})
        return [words[(words.index(value) + 1) % len(words)] if len(words) > 1 else value + "x", 1]
    return [1, "x"]


def free_by(mechanism, path):
    """The entries of `FREE` that a leaf falls under."""
    names = names_of(path)
    return {free for free, (of, _) in FREE.items() if names[: len(free)] == free and (not of or mechanism in of)}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_changed_leaf_does_not_verify(name, tmp_path):
    folder = shutil.copytree(STORED / name, tmp_path / "public")
    cert, held = CERTIFICATES[name], []
    for path, value in leaves(cert):
        if path[0] in ELSEWHERE or free_by(cert["mechanism"], path):
            continue
        for other in others(path, value):
            reseal(folder, put(cert, path, other))
            try:
                held += [(path, value, other)] * verify(folder).holds
            except DpppsynthError:
                continue
    assert held == []


@pytest.mark.slow
def test_every_free_leaf_is_there_and_is_free(tmp_path):
    """An entry of the list without a leaf, or whose leaves are all bound, would hide one that comes later."""
    loose = set()
    for name in NAMES:
        folder = shutil.copytree(STORED / name, tmp_path / name)
        cert = CERTIFICATES[name]
        for path, value in leaves(cert):
            free = free_by(cert["mechanism"], path)
            for other in others(path, value) if free - loose else ():
                reseal(folder, put(cert, path, other))
                try:
                    loose |= free if verify(folder).holds else set()
                except DpppsynthError:
                    continue
    assert loose == set(FREE)

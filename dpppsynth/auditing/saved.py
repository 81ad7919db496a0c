"""Consistency of all that a release publishes: files, intensity and certificate agree with the private statistic.

Trials look at the statistic, as the release holds it. The rest must be made of that and of public parameters: so it is
the same when the saved files are opened again, and certificates do not know which of two inputs they are about.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpppsynth.auditing.whole import Whole, WholeStrata, inferred
from dpppsynth.contract.additive_noise import LatticeStatistic
from dpppsynth.contract.audits.neighbouring_pairs import uniform_places
from dpppsynth.contract.audits.target import Target
from dpppsynth.contract.registry import mechanism
from dpppsynth.core.errors import DpppsynthError
from dpppsynth.release.certificate import FILENAME
from dpppsynth.release.cox import CoxRelease
from dpppsynth.release.folder import open_release
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern

# Fields of a certificate that follow from the files beside it.
OF_FILES = ("files", "content_hash")
# Places at which intensities are compared, and how far apart rounding may take them.
PLACES, ROUNDING = 50, 1e-9
# Seed for patterns of a release and of its files, which must be equal.
SEED = 20261122


def disagreements(target: Target) -> tuple[str, ...]:
    """Inconsistencies of one saved and reopened release of each input; empty for targets that are not whole releases.

    A mechanism that keeps its promise shows none, with certainty.
    """
    run, pair = (target.run, target.pair) if target.counted is None else (target.counted.run, target.counted.pair)
    if not isinstance(run, Whole | WholeStrata) or (target.counted is not None and not target.counted.opened):
        return ()
    found: list[str] = []
    stated = []
    for pattern in pair:
        release = run.release(pattern)
        with tempfile.TemporaryDirectory() as scratch:
            # Releases are opened by paths without links.
            folder = _save(release, Path(scratch).resolve() / "release")
            stated.append(_certificate(folder))
            found += _of_files(release, folder, pattern)
        if not all(_inferred_from_statistic(part) for part in release.parts.values()):
            found.append("inference is given something else than the private statistic")
    if stated[0] != stated[1]:
        fields = ", ".join(sorted(key for key in stated[0] | stated[1] if stated[0].get(key) != stated[1].get(key)))
        found.append(f"the certificates of the two inputs differ ({fields})")
    return tuple(dict.fromkeys(found))


def _inferred_from_statistic(part: Any) -> bool:
    given = () if inferred(part) else part.estimator.given
    return all(np.array_equal(each.lattice, part.statistic.lattice) for each in given)


def _save(release: Any, folder: Path) -> Path:
    parts = release.parts.values()
    # Without inference there is nothing to sample from.
    options: dict[str, Any] = {} if all(map(inferred, parts)) else {"patterns": 0}
    options |= {"rng": SEED} if _sampled(release) else {}
    return Path(release.save(folder, **options))


def _sampled(release: Any) -> bool:
    """Whether its patterns are drawn when it is saved."""
    return isinstance(next(iter(release.parts.values())), CoxRelease)


def _certificate(folder: Path) -> dict[str, Any]:
    stated = json.loads((folder / FILENAME).read_text(encoding="utf-8"))
    stated["names"] = sorted(stated["files"])
    return {key: value for key, value in stated.items() if key not in OF_FILES}


def _of_files(release: Any, folder: Path, pattern: PointPattern) -> Iterator[str]:
    try:
        with open_release(folder, limit=False) as found:
            loaded: Any = found.release
            drawn = [found.pattern(name) for name in found.patterns]
    except DpppsynthError as error:
        # One that may not be published anyway need not load.
        if release.warning is None:
            yield f"its saved release does not open again: {error}"
        return
    opened = loaded.parts
    for number, (level, part) in enumerate(release.parts.items()):
        start = release.prefixes[number]
        where = f" of {release.by} {level}" if start else ""
        for what, agree in _compared(part, opened[level], folder, start):
            if not agree:
                yield f"the saved {what}{where} is not that of the release"
    if not _sampled(release) or not drawn:
        return
    if not _same_patterns(drawn, loaded.sample(len(drawn), rng=SEED)):
        yield "the saved patterns are not drawn from what the release publishes"
    if _shown(pattern, drawn):
        yield "the saved patterns hold the points themselves"


def _compared(part: Any, loaded: Any, folder: Path, start: str) -> Iterator[tuple[str, bool]]:
    """Kinds of content, and whether that of a release and that of its files are the same."""

    def read(name: str) -> bytes:
        return (folder / f"{start}{name}").read_bytes()

    if not isinstance(part, CoxRelease):
        yield "pattern", _same_patterns(part.patterns, loaded.patterns)
    if hasattr(part.statistic, "lattice"):
        yield "statistic", bool(np.array_equal(part.statistic.lattice, loaded.statistic.lattice))
        yield from mechanism(part.mechanism).audit(part.statistic.definition).files(part.statistic.lattice, read)
    if isinstance(part, CoxRelease) and inferred(part):
        yield "intensity", _same_intensity(part, loaded)


def _same_patterns(one: list[PointPattern], other: list[PointPattern]) -> bool:
    sizes = [len(each) for each in one] == [len(each) for each in other]
    near = 1e-3 * max((each.domain.resolution for each in one), default=0.0)
    return sizes and all(np.allclose(a.xy, b.xy, rtol=0, atol=near) for a, b in zip(one, other, strict=True))


def _same_intensity(part: CoxRelease[LatticeStatistic], loaded: CoxRelease[LatticeStatistic]) -> bool:
    at = part.domain.coordinates(uniform_places(part.domain, PLACES, np.random.default_rng(0)))
    one, other = (np.asarray(each.intensity(at)) for each in (part, loaded))
    return bool(np.allclose(one, other, rtol=ROUNDING, atol=ROUNDING * np.abs(one).max(initial=0.0)))


def _shown(pattern: PointPattern, drawn: list[PointPattern]) -> bool:
    """Whether most places of a pattern are among the synthetic points, as no drawn ones are."""
    places = _grid(pattern, pattern.xy)
    found = set[tuple[float, ...]]().union(*(_grid(pattern, each.xy) for each in drawn))
    return 2 * len(places & found) > len(places)


def _grid(pattern: PointPattern, xy: Floats) -> set[tuple[float, ...]]:
    return set(map(tuple, np.rint(xy / pattern.domain.resolution).tolist()))

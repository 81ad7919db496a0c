"""Make the releases in `tests/data/releases` anew: one small one for each mechanism and domain, on made-up points.

    python tests/data/make_stored_releases.py             all of them, a minute
    python tests/data/make_stored_releases.py kernel      those of these names

Their randomness is secret, as in any release that verifies, so the files differ from run to run. From version 1.0 of
the package on, releases that are here stay, and later versions must verify and open them; until then a change of the
schema makes them anew. `guarantees.json` has what each of them promises.
"""

import json
import shutil
import sys
import warnings
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpppsynth import local
from dpppsynth.core.errors import InformationWarning
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.models import Matern, regular_triangulation, trace_mesh
from dpppsynth.privacy import AlphaNeighbours, Guarantee, ReplaceOne
from dpppsynth.release import CoxRelease
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mark_space import Marks, Times, Types
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import (
    BoundedErrorSynthesizer,
    HeatmapSynthesizer,
    KernelSynthesizer,
    LaplaceSynthesizer,
    LGCPSynthesizer,
    MarkedSynthesizer,
    PairSums,
    PlanarLaplaceSynthesizer,
)

FOLDER = Path(__file__).parent / "releases"
GUARANTEES = FOLDER / "guarantees.json"
POINTS, THINNING = 24, 400
# Budgets at which delta is noted, and deltas at which epsilon is.
EPSILONS, DELTAS = (0.0, 0.1, 0.5, 1.0, 2.0), (0.0, 1e-9, 1e-6, 1e-3)

WINDOW = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
CORNERS = np.array([[0.0, 0.0], [300.0, 10.0], [310.0, 280.0], [-5.0, 290.0], [140.0, 150.0]])
STREETS = LinearNetwork(CORNERS, [[0, 1], [1, 2], [2, 3], [3, 0], [0, 4], [4, 2]], "EPSG:27700")
MESH, ALONG = regular_triangulation(WINDOW, shape=(4, 4)), network_mesh(STREETS, 100.0)
ON_MESH: dict[str, Any] = {"length_scale": 400.0, "mesh": MESH, "inference": "laplace"}
ON_STREETS: dict[str, Any] = {"covariance": Matern(0.05, 200.0, 0.3), "mesh": ALONG, "inference": "laplace"}
MARKS = Marks(Types("offence", ["burglary", "theft"]), Times.day("hour", hats=4))
HILL = Offset.from_grid(np.array([[1.0, 2.0], [3.0, 5.0]]), WINDOW.bounds)


@dataclass(frozen=True)
class Described:
    """Recipe of a stored release."""

    synthesizer: Any
    domain: Domain = WINDOW
    by_year: bool = False
    patterns: int = 1

    def save(self, folder: Path) -> Guarantee:
        """Release with secret randomness, write, and say what was promised."""
        paid = {"patterns": self.patterns} if isinstance(self.synthesizer, KernelSynthesizer) else {}
        guess = {} if self.synthesizer.neighbouring().n_is_public else {"expected_n": 30}
        if self.by_year:
            release = self.synthesizer.release_by(marked(), by="year", levels=[2021, 2022], **paid)
        elif isinstance(self.synthesizer, local.LDPTrace | local.LineTrace):
            release = self.synthesizer.release(of_persons("trajectory"))
        elif isinstance(self.synthesizer, HeatmapSynthesizer) or getattr(self.synthesizer, "user", None):
            release = self.synthesizer.release(of_persons(), **guess)
        elif isinstance(self.synthesizer, MarkedSynthesizer):
            release = self.synthesizer.release(typed(self.domain, self.synthesizer.marks), **guess)
        else:
            release = self.synthesizer.release(made_up(self.domain), **paid, **guess)
        thinned(release).save(folder)
        return release.guarantee


def made_up(domain: Domain) -> PointPattern:
    """Points that nobody needs to protect."""
    rng = np.random.default_rng(20)
    if isinstance(domain, LinearNetwork):
        return domain.pattern(rng.integers(0, 6, POINTS), rng.random(POINTS))
    return PointPattern(rng.uniform(0, 1000, (POINTS, 2)), domain)


def marked() -> PointPattern:
    """The same with years, 14 and 10 points."""
    return PointPattern(made_up(WINDOW).xy, WINDOW, {"year": np.repeat([2021, 2022], [14, 10])})


def typed(domain: Domain, marks: Marks) -> PointPattern:
    """The same with types and times, as far as they are described."""
    kinds, times = np.arange(POINTS) % 2, np.linspace(0.0, 23.0, POINTS)
    return PointPattern.at(made_up(domain).positions, domain, marks.columns(kinds, times))


def of_persons(user: str = "user") -> PointPattern:
    """The same of 10 persons with one to four points each."""
    person = np.repeat(np.arange(10), [1, 2, 3, 4, 1, 2, 3, 4, 1, 3])
    return PointPattern(made_up(WINDOW).xy, WINDOW, {user: person})


def draws(sampler: str, **settings: Any) -> LGCPSynthesizer:
    """One posterior draw."""
    return LGCPSynthesizer(1.0, mechanism="posterior-draw", delta=1e-6, sampler=sampler, **settings)


NEAR, NEAR_STREETS = AlphaNeighbours(25.0), AlphaNeighbours(20.0)
plain = partial(LaplaceSynthesizer, postprocess="plain")
RELEASES: dict[str, Described] = {
    "laplace-cells": Described(plain(1.0, relation=ReplaceOne(2), spacing=250.0)),
    "laplace-cells-streets": Described(plain(1.0, relation=NEAR_STREETS, spacing=100.0), STREETS),
    "laplace-tents": Described(plain(1.0, relation=NEAR, basis="tents", spacing=250.0)),
    "laplace-tents-streets": Described(plain(1.0, relation=NEAR_STREETS, basis="tents"), STREETS),
    "lgcp-tents": Described(LGCPSynthesizer(1.0, alpha=25.0, **ON_MESH)),
    "lgcp-tents-offset": Described(LGCPSynthesizer(1.0, alpha=25.0, offset=HILL, **ON_MESH)),
    "lgcp-tents-streets": Described(
        LGCPSynthesizer(1.0, relation=NEAR_STREETS, mesh=ALONG, inference="laplace"), STREETS
    ),
    "lgcp-tents-matern": Described(LGCPSynthesizer(1.0, alpha=25.0, prior="sparse", mesh=MESH, offset=HILL)),
    "lgcp-cells": Described(LGCPSynthesizer(1.0, alpha=20.0, mechanism="cells", mesh=ALONG), STREETS),
    "lgcp-clusters": Described(LGCPSynthesizer(1.0, alpha=25.0, clusters=0.3, **ON_MESH)),
    "lgcp-clusters-streets": Described(
        LGCPSynthesizer(1.0, alpha=20.0, clusters=0.3, mechanism="cells", mesh=ALONG), STREETS
    ),
    "lgcp-moved": Described(LGCPSynthesizer(1.0, alpha=25.0, mechanism="moved", length_scale=400.0, mesh=MESH)),
    "lgcp-moved-streets": Described(
        LGCPSynthesizer(1.0, alpha=25.0, mechanism="moved", length_scale=400.0, mesh=trace_mesh(STREETS, shape=(4, 4))),
        STREETS,
    ),
    "lgcp-field": Described(LGCPSynthesizer(1.0, alpha=25.0, mechanism="field", delta=1e-6, **ON_MESH)),
    "lgcp-field-streets": Described(
        LGCPSynthesizer(1.0, alpha=20.0, mechanism="field", delta=1e-6, **ON_STREETS), STREETS
    ),
    "lgcp-posterior-draw": Described(draws("exact", alpha=25.0, **ON_MESH)),
    "lgcp-posterior-draw-nuts": Described(draws("nuts", alpha=25.0, **ON_MESH)),
    "lgcp-posterior-draw-streets": Described(draws("proximal", alpha=20.0, **ON_STREETS), STREETS),
    "lgcp-lipschitz": Described(LGCPSynthesizer(1.0, alpha=25.0, mechanism="lipschitz", sampler="exact", **ON_MESH)),
    "lgcp-kim-lim-3.8": Described(LGCPSynthesizer(1.0, alpha=25.0, mechanism="kim-lim-3.8", delta=1e-6, **ON_MESH)),
    "lgcp-kim-lim-3.9": Described(LGCPSynthesizer(1.0, alpha=25.0, mechanism="kim-lim-3.9", delta=1e-6, **ON_MESH)),
    "kernel": Described(KernelSynthesizer(10.0, delta=1e-6, alpha=25.0), patterns=2),
    "kernel-diffusion": Described(KernelSynthesizer(10.0, delta=1e-6, alpha=20.0, spacing=100.0), STREETS),
    "heatmap": Described(
        HeatmapSynthesizer(1.0, shape=(16, 16), w=6, measure=16, variant="practical", fit="least-squares")
    ),
    "heatmap-two-level": Described(HeatmapSynthesizer(1.0, shape=(24, 16), measure=8)),
    "disk-area": Described(local.DiskAreaMechanism(1.0, cells=4, shrink=True, estimator="em")),
    "hybrid-area": Described(local.HybridUniformExponential(1.0, cells=4, radius=2, estimator="em")),
    "square-wave": Described(local.MultidimensionalSquareWave(1.0, cells=4, estimator="em")),
    "subset-exponential": Described(local.SEMGeoI(0.5, cells=4, estimator="least-squares")),
    "uniform-grid": Described(local.UniformGrid(WINDOW, epsilon=1.0, cells=(3, 2), oracle="hadamard-response")),
    "adaptive-grid": Described(local.AdvancedAdaptiveGrid(WINDOW, epsilon=2.0, alpha2=4.0)),
    "range-hierarchy": Described(local.RangeHierarchy(1.0, cells=8)),
    "trajectories": Described(local.LDPTrace(2.0, cells=3, max_length=5)),
    "displacements": Described(local.LineTrace(2.0, cells=3, reach=2)),
    "bounded-cells": Described(BoundedErrorSynthesizer(epsilon=1.0, delta=1e-6, spacing=250.0)),
    "planar-laplace": Described(PlanarLaplaceSynthesizer(1.0, alpha=25.0)),
    "planar-laplace-bounded": Described(PlanarLaplaceSynthesizer(1.0, alpha=25.0, max_error=500.0)),
    "pair-sums": Described(PairSums(1.0, radii=[60.0, 150.0], cap=[3, 6], relation=NEAR, shares=[0.4, 0.6])),
    "pair-sums-streets": Described(PairSums(1.0, radii=[60.0], cap=3, relation=NEAR_STREETS), STREETS),
    "pair-sums-persons": Described(PairSums(1.0, radii=[100.0], cap=4, user="user")),
    "marked-tents": Described(
        MarkedSynthesizer(1.0, marks=MARKS, relation=AlphaNeighbours(25.0, time=1.0, types="public"), spacing=350.0)
    ),
    "marked-moved": Described(
        MarkedSynthesizer(
            1.0,
            marks=MARKS,
            relation=AlphaNeighbours(25.0, time="public", types="public"),
            mechanism="moved",
            spacing=200.0,
        )
    ),
    "marked-moved-streets": Described(
        MarkedSynthesizer(
            1.0,
            marks=MARKS,
            relation=AlphaNeighbours(20.0, time="public", types="public"),
            mechanism="moved",
            mesh=trace_mesh(STREETS, shape=(4, 4)),
        ),
        STREETS,
    ),
    "marked-tents-streets": Described(
        MarkedSynthesizer(
            1.0, marks=Marks(times=MARKS.times), relation=AlphaNeighbours(20.0, time="protected"), spacing=150.0
        ),
        STREETS,
    ),
    "strata-bounded-cells": Described(
        BoundedErrorSynthesizer(delta=1e-6, max_error=25, spacing=250.0, alpha=25.0), by_year=True
    ),
    "strata": Described(LGCPSynthesizer(1.0, alpha=25.0, **ON_MESH), by_year=True),
    "strata-kernel": Described(KernelSynthesizer(10.0, delta=1e-6, alpha=25.0), by_year=True),
}


def thinned(release: Any) -> Any:
    """The same with fewer posterior draws, so that the repository stays small."""
    if hasattr(release, "releases"):
        return replace(release, releases={level: thinned(each) for level, each in release.releases.items()})
    if not isinstance(release, CoxRelease) or release.draws is None:
        return release
    draws, kept = release.draws, slice(None, None, THINNING)
    return replace(
        release, draws=replace(draws, fields=draws.fields[:, kept], length_scale=draws.length_scale[:, kept])
    )


def numbers(guarantee: Guarantee) -> dict[str, Any]:
    """Numbers of a guarantee (None: infinite)."""
    epsilons = [guarantee.epsilon(delta) for delta in DELTAS]
    return {
        "at": guarantee.profile.at,
        "epsilon": guarantee.epsilon(),
        "delta_at_epsilon": dict(zip(map(str, EPSILONS), map(guarantee.delta, EPSILONS), strict=True)),
        "epsilon_at_delta": {
            str(delta): epsilon if np.isfinite(epsilon) else None
            for delta, epsilon in zip(DELTAS, epsilons, strict=True)
        },
        "by_distance": [list(pair) for pair in guarantee.by_distance[:: max(1, len(guarantee.by_distance) // 4)]],
    }


def main(names: list[str]) -> None:
    noted = json.loads(GUARANTEES.read_text()) if names else {}
    if not names:
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir()
    for name in names or RELEASES:
        shutil.rmtree(FOLDER / name, ignore_errors=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InformationWarning)
            noted[name] = numbers(RELEASES[name].save(FOLDER / name))
    GUARANTEES.write_text(json.dumps(noted, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])

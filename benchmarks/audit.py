"""Power of privacy audits: every mechanism, relation and epsilon, within a time for each; and the planted faults.

Soho's window and streets, 392 points, default rules unless said; NUTS on a mesh of nine vertices, compiled once. Every
mechanism, relation and epsilon has its turn before NUTS has: 115 rows. Of local mechanisms, 30 rows, the report of one
client is audited. Counts with bounded error and moved points are the last ones.

    OMP_NUM_THREADS=1 python benchmarks/audit.py --seconds 15 --nuts 60 --out docs/results/audit.md

Rows go to files beside the page, whose table counts them; some alone, the others as they are, by naming them:

    OMP_NUM_THREADS=1 python benchmarks/audit.py --only local --out docs/results/audit.md
"""

import itertools
import math
import runpy
import sys
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from audit_summary import summarise
from measuring import timed
from pages import command_line, fill, line, table

import dpppsynth as dps
from dpppsynth import randomizers
from dpppsynth.auditing import Audit, Target, audit
from dpppsynth.auditing.auditor import rating_of
from dpppsynth.auditing.targets import seconds_per_trial, target_of
from dpppsynth.models import nuts as nuts_module
from dpppsynth.models import regular_triangulation
from dpppsynth.models.nuts import Sampler
from dpppsynth.privacy import AddRemove, AlphaNeighbours, GeoIndistinguishability, Local, Relation, ReplaceOne

TESTS = Path(__file__).parent.parent / "tests"
N, MOST, FEWEST = 392, 5000, 50
EPSILONS, LOCAL_EPSILONS = (1.0, 0.1), (1.0, 0.5, 0.1)
# Deltas of bounded error, one of them large enough to be seen; and points, few enough that it promises something.
DELTAS, FEW = (1e-6, 0.05), 3
RELATIONS = (AlphaNeighbours(25.0), ReplaceOne(), AddRemove())
MARKS = dps.Marks(dps.Types("cause", ["cholera", "other"]), dps.Times.day("hour"))
RADII, CAPS = (15.0, 40.0), (5, 10)
HEADS = "mechanism", "relation", "epsilon", "delta", "lower bound", "rejected", "detectable", "trials", "seconds"
# Of too little noise, for which runs are counted.
GOAL = 1.2
FACTORS = "factor, by ratio", "factor, by all noise", "runs for 1.2, by ratio", "by all noise"


class CompiledOnce(Sampler):
    """NUTS whose model is compiled for the first pattern; others only bring other data."""

    compiled: ClassVar[dict[tuple[str, ...], object]] = {}

    def __init__(self, model, engine: str = "nutpie", target_accept: float = 0.8) -> None:
        names = tuple(variable.name for variable in model.data_vars)
        if names not in self.compiled:
            super().__init__(model, engine, target_accept)
            self.compiled[names] = self._compiled
        self._model, self._engine, self._accept = model, engine, target_accept
        values = {variable.name: variable.get_value() for variable in model.data_vars}
        self._compiled = self.compiled[names].with_data(**values)


def with_marks(relation: Relation) -> Relation:
    """The same relation for points of which types are public and hours are protected."""
    if isinstance(relation, AlphaNeighbours):
        return AlphaNeighbours(relation.alpha, time=2.0, types="public")
    return ReplaceOne(time="protected", types="public") if isinstance(relation, ReplaceOne) else relation


def quick(epsilon: float, relation: Relation) -> Iterator[tuple[str, object, object]]:
    """Name, synthesizer and domain of what takes milliseconds."""
    window, streets = dps.datasets.soho_deaths().domain, dps.datasets.soho_streets()
    approximate = {"relation": relation, "delta": 1e-6}
    draw = {"mechanism": "posterior-draw", **approximate}
    yield "laplace-cells", dps.LaplaceSynthesizer(epsilon, relation=relation, postprocess="plain"), window
    yield (
        "laplace-tents",
        dps.LaplaceSynthesizer(epsilon, relation=relation, basis="tents", postprocess="plain"),
        window,
    )
    yield "lgcp-tents", dps.LGCPSynthesizer(epsilon, relation=relation, mechanism="tents"), window
    if isinstance(relation, AlphaNeighbours):
        yield "lgcp-moved", dps.LGCPSynthesizer(epsilon, relation=relation, mechanism="moved"), window
    yield "lgcp-field", dps.LGCPSynthesizer(epsilon, mechanism="field", **approximate), window
    yield "lgcp-posterior-draw, exact", dps.LGCPSynthesizer(epsilon, sampler="exact", **draw), window
    yield "lgcp-posterior-draw, proximal", dps.LGCPSynthesizer(epsilon, sampler="proximal", **draw), window
    yield "lgcp-tents, clusters", dps.LGCPSynthesizer(epsilon, relation=relation, clusters=0.3), window
    yield "marked-tents", dps.MarkedSynthesizer(epsilon, marks=MARKS, relation=with_marks(relation)), window
    if isinstance(relation, AlphaNeighbours):
        still = AlphaNeighbours(relation.alpha, time="public", types="public")
        yield "marked-moved", dps.MarkedSynthesizer(epsilon, marks=MARKS, relation=still, mechanism="moved"), window
    yield "pair-sums", dps.PairSums(epsilon, radii=RADII, cap=CAPS, relation=relation), window
    yield "laplace-cells, streets", dps.LaplaceSynthesizer(epsilon, relation=relation, postprocess="plain"), streets
    yield "lgcp-tents, streets", dps.LGCPSynthesizer(epsilon, relation=relation), streets
    yield "lgcp-cells, streets", dps.LGCPSynthesizer(epsilon, relation=relation, mechanism="cells"), streets
    yield "lgcp-tents, clusters, streets", dps.LGCPSynthesizer(epsilon, relation=relation, clusters=0.3), streets
    yield "marked-tents, streets", dps.MarkedSynthesizer(epsilon, marks=MARKS, relation=with_marks(relation)), streets
    yield "pair-sums, streets", dps.PairSums(epsilon, radii=RADII, cap=CAPS, relation=relation), streets
    yield "lgcp-field, streets", dps.LGCPSynthesizer(epsilon, mechanism="field", **approximate), streets
    if relation.n_is_public:
        lipschitz = dps.LGCPSynthesizer(epsilon, relation=relation, mechanism="lipschitz", sampler="exact")
        yield "lgcp-lipschitz, exact", lipschitz, window
        yield "kernel", dps.KernelSynthesizer(epsilon, delta=1e-6, relation=relation), window
        yield "kernel-diffusion", dps.KernelSynthesizer(epsilon, delta=1e-6, relation=relation), streets


def of_persons(epsilon: float) -> Iterator[tuple[str, Any]]:
    """Those whose persons have any number of points."""
    yield "heatmap", dps.HeatmapSynthesizer(epsilon)
    yield "pair-sums-persons", dps.PairSums(epsilon, radii=RADII, cap=CAPS, user="person")


def slow() -> Iterator[tuple[str, object, object]]:
    """The same by NUTS, at epsilon 1 under alpha-neighbours."""
    window, relation = dps.datasets.soho_deaths().domain, RELATIONS[0]
    coarse = {"relation": relation, "mesh": regular_triangulation(window, shape=(3, 3))}
    draw = {"mechanism": "posterior-draw", "delta": 1e-6, "sampler": "nuts", "length_scale": 200.0}
    yield "lgcp-posterior-draw, NUTS", dps.LGCPSynthesizer(1.0, **draw, **coarse), window
    lipschitz = {"mechanism": "lipschitz", "sampler": "nuts", "length_scale": 200.0}
    yield "lgcp-lipschitz, NUTS", dps.LGCPSynthesizer(1.0, **lipschitz, **coarse), window
    kim_lim = {"mechanism": "kim-lim-3.8", "delta": 1e-3, "allow_large_delta": True}
    yield "lgcp-kim-lim-3.8, NUTS", dps.LGCPSynthesizer(1.0, **kim_lim, **coarse), window


def clients(epsilon: float) -> Iterator[tuple[str, randomizers.Randomizer]]:
    """Name and law of local mechanisms: areas on 15 x 15 cells, and with less to tell apart on 5 x 5."""
    areas = {"epsilon": epsilon, "cells": 15, "radius": randomizers.grid_radius(epsilon, 15)}
    yield "disk-area, 15 x 15", randomizers.DiskArea(**areas)
    yield "disk-area without shrinkage, 15 x 15", randomizers.DiskArea(**areas, shrink=False)
    yield "hybrid-area, 15 x 15", randomizers.HybridArea(**areas)
    width = randomizers.square_wave_half_width(epsilon, 15)
    yield "square-wave, 15 x 15", randomizers.SquareWave(epsilon=epsilon, cells=15, half_width=width)
    subset = randomizers.subset_size(epsilon, 5)
    yield "subset-exponential, 5 x 5", randomizers.SubsetExponential(epsilon=epsilon, cells=5, subset=subset)
    yield "range-hierarchy, 8 x 8", randomizers.RangeHierarchyLaw(epsilon=epsilon, cells=8)
    for kind, oracle in randomizers.ORACLES.items():
        yield f"{kind}, 25 values", oracle(epsilon=epsilon, domain=25)


def others(epsilon: float) -> Iterator[tuple[str, Any, Any]]:
    """Name, synthesizer and domain of what makes errors bounded, of three points, and of points that are moved."""
    window = dps.datasets.soho_deaths().domain
    few = {"delta": DELTAS[1], "relation": RELATIONS[1], "spacing": 100.0}
    yield "bounded-cells, 3 points", dps.BoundedErrorSynthesizer(epsilon=epsilon, **few), window
    yield "planar-laplace", dps.PlanarLaplaceSynthesizer(epsilon, relation=RELATIONS[0]), window
    moved = dps.PlanarLaplaceSynthesizer(epsilon, delta=DELTAS[1], relation=RELATIONS[0])
    yield "planar-laplace, bounded, 3 points", moved, window


def target_called(name: str) -> tuple[Target, bool]:
    """Target at epsilon 1 of a name of `quick`, with ", " and its relation, or of the others; whether it is local."""
    for found, law in clients(1.0):
        if found == name:
            return target_of(law), True
    for relation in RELATIONS:
        for found, synthesizer, domain in quick(1.0, relation):
            if f"{found}, {relation.name}" == name:
                size = {"n": N} if relation.n_is_public else {"expected_n": N}
                return target_of(synthesizer, domain, **size), False
    for found, synthesizer, domain in others(1.0):
        if found == name:
            return target_of(synthesizer, domain, n=FEW if "3 points" in name else N), False
    persons = dict(of_persons(1.0))
    return target_of(persons[name], dps.datasets.soho_deaths().domain), False


def within(target: Target, seconds: float) -> tuple[Audit, float]:
    """An audit by as many trials as fit, and the time it took.

    A first batch of runs is timed, for a tenth of the time or so: single ones say little on a machine with other work.
    """
    start = time.perf_counter()
    pairs = 0
    while pairs == 0 or time.perf_counter() - start < seconds / 10:
        each = seconds_per_trial(target)
        pairs += 1
    # Timing a pair of runs takes three: a first one is not counted.
    each = max(each, (time.perf_counter() - start) / pairs * 2 / 3)
    return timed(partial(audit, target, trials=max(FEWEST, min(MOST, int(0.9 * seconds / each)))))


def row(name: str, relation: str, result: Audit, seconds: float) -> str:
    numbers = (f"{each:.3g}" for each in (result.claimed, result.delta, result.lower_bound))
    factor = f"{'' if result.law_is_known else '> '}{result.by_ratio:.2f}"
    rejected = "**yes**" if result.violated else "no"
    return line([name, relation, *numbers, rejected, factor, f"{result.trials}", f"{seconds:.0f}"])


def honest(seconds: float, nuts: float) -> Iterator[str]:
    for epsilon in EPSILONS:
        for relation in RELATIONS:
            size = {"n": N} if relation.n_is_public else {"expected_n": N}
            for name, synthesizer, domain in quick(epsilon, relation) if seconds else ():
                yield row(name, relation.name, *within(target_of(synthesizer, domain, **size), seconds))
        if seconds:
            for name, synthesizer in of_persons(epsilon):
                target = target_of(synthesizer, dps.datasets.soho_deaths().domain)
                yield row(name, synthesizer.neighbouring().name, *within(target, seconds))
    nuts_module.Sampler = CompiledOnce
    for name, synthesizer, domain in slow() if nuts else ():
        yield row(name, RELATIONS[0].name, *within(target_of(synthesizer, domain, n=N), nuts))


def faults_of(file: str) -> Iterator[str]:
    """Faults planted by tests, by the trials that each asks for."""
    # As in pyproject.toml: tests share modules.
    sys.path.insert(0, str(TESTS))
    for name, (make, trials) in runpy.run_path(str(TESTS / file))["BENCHMARKED"].items():
        yield row(name, "as tested", *timed(partial(audit, make(), trials=trials)))


def claimed_by(law: randomizers.Randomizer) -> Relation:
    return GeoIndistinguishability() if law.metric else Local()


def local(trials: int) -> Iterator[str]:
    for epsilon in LOCAL_EPSILONS:
        for name, law in clients(epsilon) if trials else ():
            yield row(name, claimed_by(law).name, *timed(partial(audit, target_of(law), trials=trials)))


def bounded(seconds: float) -> Iterator[str]:
    """Counts with bounded error on streets and in cells of Soho, and its points moved, with a bound and without."""
    window, streets = dps.datasets.soho_deaths().domain, dps.datasets.soho_streets()
    for epsilon, delta in itertools.product(EPSILONS, DELTAS):
        count = N if delta == DELTAS[0] else FEW
        for relation in RELATIONS if delta == DELTAS[0] else RELATIONS[:2]:
            size = {"n": count} if relation.n_is_public else {"expected_n": count}
            # The rule for the size of cells makes a single one for so few points.
            spacing = 100.0 if count == FEW else None
            counts = dps.BoundedErrorSynthesizer(epsilon=epsilon, delta=delta, relation=relation, spacing=spacing)
            for name, domain in (("bounded-cells", window), ("bounded-cells, streets", streets)):
                yield row(f"{name}, {count} points", relation.name, *within(target_of(counts, domain, **size), seconds))
        moved = dps.PlanarLaplaceSynthesizer(epsilon, delta=delta, relation=RELATIONS[0])
        found = within(target_of(moved, window, n=count), seconds)
        yield row(f"planar-laplace, bounded, {count} points", RELATIONS[0].name, *found)
    for epsilon in EPSILONS:
        moved = dps.PlanarLaplaceSynthesizer(epsilon, relation=RELATIONS[0])
        yield row(f"planar-laplace, {N} points", RELATIONS[0].name, *within(target_of(moved, window, n=N), seconds))


def power() -> Iterator[str]:
    """Power of 5000 runs against too little noise, and number of runs that find a factor of 1.2; simulated ratings."""
    window = dps.datasets.soho_deaths().domain
    for relation in RELATIONS:
        size = {"n": N} if relation.n_is_public else {"expected_n": N}
        for name, synthesizer, domain in quick(1.0, relation):
            yield power_row(name, relation, target_of(synthesizer, domain, **size))
        counts = dps.BoundedErrorSynthesizer(epsilon=1.0, delta=1e-6, relation=relation)
        yield power_row("bounded-cells", relation, target_of(counts, window, **size))
    moved = dps.PlanarLaplaceSynthesizer(1.0, relation=RELATIONS[0])
    yield power_row("planar-laplace", RELATIONS[0], target_of(moved, window, n=N))
    for name, synthesizer in of_persons(1.0):
        yield power_row(name, synthesizer.neighbouring(), target_of(synthesizer, window))
    for name, law in clients(1.0):
        yield power_row(name, claimed_by(law), target_of(law))


def power_row(name: str, relation: Relation, target: Target) -> str:
    rating = rating_of(target, target.claimed.at, MOST, 1e-6)
    least = "" if target.weakened is not None else "> "
    by_noise = (f"{rating.noise_factor():.3f}", _runs(rating.noise_trials_for(GOAL))) if target.laws else ("", "")
    by_ratio = f"{least}{rating.factor():.2f}", f"{least}{_runs(rating.trials_for(GOAL))}"
    return line([name, relation.name, by_ratio[0], by_noise[0], by_ratio[1], by_noise[1]])


def _runs(count: float) -> str:
    return f"{float(f'{count:.2g}'):.0f}" if math.isfinite(count) else "over a million"


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="time for each audit of others; 0: none")
    parser.add_argument("--nuts", type=float, default=180.0, help="time for each audit of a draw by NUTS; 0: none")
    parser.add_argument("--local", type=int, default=20_000, help="reports for each value of a client; 0: none")
    parser.add_argument(
        "--only", choices=("central", "local", "bounded", "power"), help="leave the other tables as they are"
    )
    args = parser.parse_args()
    # Draws by Kim & Lim's own synthesizer carry no information, and say so.
    warnings.simplefilter("ignore", dps.core.errors.InformationWarning)
    tables = {
        "central": {
            "faults": faults_of("auditing/test_audit_mechanisms.py"),
            "mechanisms": honest(args.seconds, args.nuts),
        },
        "local": {
            "local faults": faults_of("mechanisms/local/test_local_audit.py"),
            "local": local(args.local),
        },
        "bounded": {
            "bounded faults": faults_of("mechanisms/bounded/test_auditing_bounded.py"),
            "bounded": bounded(args.seconds) if args.seconds else iter(()),
        },
        "power": {"power": power()},
    }
    for group in [args.only] if args.only else tables:
        for name, rows in tables[group].items():
            lines = table((*HEADS[:2], *FACTORS) if name == "power" else HEADS, ())
            for each in rows:
                lines.append(each)
                print(each, flush=True)
                # Row by row: whatever ends the run, what was found is kept.
                fill(args.out, name, lines)
    summarise(args.out)


if __name__ == "__main__":
    main()

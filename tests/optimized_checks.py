"""Privacy checks must hold without `assert`: run as `python -O tests/optimized_checks.py`.

Every entry must be refused with the error named beside it. Exits 1, naming what was let through.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpppsynth.auditing import audit
from dpppsynth.contract import additive_noise as statistic
from dpppsynth.core.errors import BudgetError, InputError, PrivacyCheckError
from dpppsynth.ledger import Ledger
from dpppsynth.local import DiskAreaMechanism, SEMGeoI, UniformGrid
from dpppsynth.mechanisms.heatmap import aggregation
from dpppsynth.models import regular_triangulation
from dpppsynth.models.covariances import PoweredExponential
from dpppsynth.privacy import (
    AddRemove,
    AlphaNeighbours,
    PureDP,
    ReplaceOne,
    laplace_scale,
    local_rounds,
    require_small_delta,
    truncated_laplace_noise,
    verify,
)
from dpppsynth.privacy.noise import OpenDPLaplace
from dpppsynth.randomizers import RandomizedResponse, SubsetExponential
from dpppsynth.release import certificate, load_release
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import (
    BoundedErrorSynthesizer,
    HeatmapSynthesizer,
    KernelSynthesizer,
    LaplaceSynthesizer,
    LGCPSynthesizer,
    PlanarLaplaceSynthesizer,
    PointSynthesizer,
)

WINDOW = Window.rectangle(0, 0, 1000, 1000)
OTHER = Window.rectangle(0, 0, 1000, 2000)
PATTERN = PointPattern(np.random.default_rng(1).uniform(0, 1000, (50, 2)), WINDOW)
YEARS = PointPattern(PATTERN.xy, WINDOW, {"year": np.repeat([2021, 2022], 25)})
PERSONS = PointPattern(PATTERN.xy, WINDOW, {"user": np.arange(50) // 5})
HEAT = HeatmapSynthesizer(1.0, shape=(16, 16))
TENTS = LaplaceSynthesizer(1.0, alpha=25.0, basis="tents", spacing=250.0, postprocess="plain")
MESH = regular_triangulation(WINDOW, shape=(4, 4))


def lgcp(mechanism: str, **options: Any) -> LGCPSynthesizer:
    settings = {"relation": AlphaNeighbours(25.0), "mesh": MESH, "length_scale": 400.0} | options
    return LGCPSynthesizer(1.0, mechanism=mechanism, **settings)


DRAWS = lgcp("posterior-draw", delta=1e-6, sampler="proximal")
KERNEL = KernelSynthesizer(10.0, delta=1e-6, alpha=25.0)
CLIENTS = DiskAreaMechanism(epsilon=1.0, cells=4)
GRID = UniformGrid(WINDOW, epsilon=1.0, cells=3, oracle="randomized-response")


def widened(synthesizer: PointSynthesizer, **changes: Any) -> object:
    """A plan of one's own, which would let the data have more influence than was budgeted."""
    return replace(synthesizer.plan(WINDOW, n=50).statistic, **changes)


def one_pattern_more(folder: Path) -> None:
    """A kernel release with a pattern that was not paid for."""
    shutil.copy(folder / "synthetic_000.geojson", folder / "synthetic_001.geojson")
    cert = certificate.read(folder)
    cert["files"]["synthetic_001.geojson"] = certificate.file_hash(folder / "synthetic_001.geojson")
    cert["content_hash"] = certificate.content_hash(cert)
    (folder / "certificate.json").write_text(json.dumps(cert))
    load_release(folder)


def halved_noise() -> None:
    statistic.laplace_scale = lambda *args: laplace_scale(*args) / 2
    try:
        # One that has not planned yet: a plan that was made with the right scale is used again.
        replace(TENTS).release(PATTERN)
    finally:
        statistic.laplace_scale = laplace_scale


def halved_noise_of_levels() -> None:
    scales = aggregation.level_scales
    aggregation.level_scales = lambda *args: tuple(scale / 2 for scale in scales(*args))
    try:
        replace(HEAT).release(PERSONS)
    finally:
        aggregation.level_scales = scales


def changed_file(folder: Path) -> None:
    (folder / "statistic.json").write_text("{}")
    load_release(folder)


def ledger(folder: Path) -> Ledger:
    """One that holds TENTS' budget once."""
    path = folder.parent / "ledger.json"
    return Ledger.open(path) if path.exists() else Ledger.create(path, epsilon=1.5, delta=0.0, alpha=25.0)


def claimed_again(folder: Path, change: Callable[[dict[str, Any]], object], *, rehash: bool = True) -> None:
    """A certificate that was edited, and hashed again."""
    path = folder / "certificate.json"
    original = path.read_text()
    cert = json.loads(original)
    change(cert)
    if rehash:
        cert["content_hash"] = certificate.content_hash(cert)
    path.write_text(json.dumps(cert))
    try:
        verify(folder).require()
    finally:
        path.write_text(original)


def smaller(cert: dict[str, Any]) -> None:
    cert["guarantee"]["profile"]["epsilon"] = 0.1


def geo_called_local(cert: dict[str, Any]) -> None:
    cert["guarantee"]["relation"] = {"name": "local"}
    cert["guarantee"]["by_distance"] = []


def reports_beyond_the_grid(reported: Any) -> None:
    rows = reported.rows.copy()
    rows[0, 0] = 10**6
    CLIENTS.aggregate(replace(reported, rows=rows))


def local_refusals(
    reports: Path, nearby: Path, ledger_of: Path
) -> dict[str, tuple[type[Exception], Callable[[], object]]]:
    """Calls that local mechanisms must refuse."""
    reported = CLIENTS.clients([1, 2, 3])
    return {
        "reports of another mechanism": (
            InputError, lambda: DiskAreaMechanism(epsilon=2.0, cells=4).aggregate(reported),
        ),
        "counts of another mechanism": (
            InputError, lambda: CLIENTS.aggregate(reported) + GRID.aggregate(GRID.clients([1, 2])),
        ),
        "reports that no client sends": (InputError, lambda: reports_beyond_the_grid(reported)),
        "rounds that spend more": (
            PrivacyCheckError, lambda: local_rounds(1.0, [RandomizedResponse(epsilon=2.0, domain=4)]),
        ),
        "a metric law for a local round": (
            PrivacyCheckError, lambda: local_rounds(1.0, [SubsetExponential(epsilon=0.1, cells=3, subset=1)]),
        ),
        "reports claimed at less": (
            PrivacyCheckError,
            lambda: claimed_again(reports, smaller),
        ),
        "another budget for their law": (
            PrivacyCheckError,
            lambda: claimed_again(reports, lambda cert: cert["parameters"]["randomizer"].update(epsilon=3.0)),
        ),
        "geo-indistinguishability called local": (
            PrivacyCheckError, lambda: claimed_again(nearby, geo_called_local),
        ),
        "it in a ledger of replace-one": (
            InputError,
            lambda: SEMGeoI(epsilon=0.1, cells=4).release(
                PATTERN, ledger=Ledger.create(ledger_of, epsilon=9.0, delta=0.0, relation=ReplaceOne())
            ),
        ),
    }  # fmt: skip


def spent_twice(folder: Path) -> None:
    TENTS.release(PATTERN, ledger=ledger(folder))
    TENTS.release(PATTERN, ledger=ledger(folder))


def entry_used_again(folder: Path) -> None:
    book = ledger(folder)
    TENTS.plan(WINDOW, n=50).release(PATTERN, ledger=book, entry=book.releases[0].id)


def settled_by_another(folder: Path) -> None:
    book = ledger(folder)
    book.settle(book.releases[0].id, replace(TENTS, epsilon=0.001).check(WINDOW, n=50))


def part_of_the_points(folder: Path) -> None:
    book = Ledger.create(folder.parent / "points.json", epsilon=9.0, delta=0.0, alpha=25.0)
    TENTS.release(PATTERN, ledger=book)
    TENTS.release(PointPattern(PATTERN.xy[:40], WINDOW), ledger=book)


def shortened(folder: Path) -> None:
    """A ledger without its last event."""
    path = ledger(folder).path
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    Ledger.open(path)


def too_little_noise() -> None:
    """A claim of a hundredth of what is spent."""
    plan = TENTS.plan(WINDOW, n=50)
    audit(plan, claimed=PureDP(0.01), trials=1000).require()


def more_sensitive() -> None:
    """A draw of noise whose sensitivity was changed after it was made."""
    noise = OpenDPLaplace(2.0, sensitivity=2, epsilon=1.0)
    noise.sensitivity = 3
    noise.add(np.zeros(2, dtype=np.int64))


def refusals(folder: Path, seeded: Path, kernel: Path) -> dict[str, tuple[type[Exception], Callable[[], object]]]:
    """Calls that must be refused, in this order, with their errors."""
    return {
        "noise of half the scale": (PrivacyCheckError, halved_noise),
        "noise of half the scale on every level": (PrivacyCheckError, halved_noise_of_levels),
        "noise that spends too much": (PrivacyCheckError, lambda: OpenDPLaplace(1.0, sensitivity=2, epsilon=1.0)),
        "OpenDP's own map": (PrivacyCheckError, more_sensitive),
        "a certificate edited": (PrivacyCheckError, lambda: claimed_again(folder, smaller, rehash=False)),
        "a certificate edited and hashed again": (PrivacyCheckError, lambda: claimed_again(folder, smaller)),
        "a seeded run": (PrivacyCheckError, lambda: verify(seeded).require()),
        "a released file changed": (PrivacyCheckError, lambda: changed_file(folder)),
        "persons without their mark": (InputError, lambda: HEAT.release(PATTERN)),
        "persons with another mark": (
            InputError,
            lambda: HEAT.release(PointPattern(PATTERN.xy, WINDOW, {**PERSONS.marks, "age": np.arange(50)})),
        ),
        "an audit of two persons": (
            InputError,
            lambda: audit(
                HEAT, WINDOW, pair=(PERSONS, PointPattern(PATTERN.xy[:40], WINDOW, {"user": np.arange(40) // 5}))
            ),
        ),
        "epsilon of zero": (InputError, lambda: LaplaceSynthesizer(0.0, postprocess="plain")),
        "alpha of zero": (InputError, lambda: AlphaNeighbours(0.0)),
        "nobody's points": (InputError, lambda: ReplaceOne(0)),
        "delta of 1/n": (InputError, lambda: require_small_delta(0.02, 50)),
        "delta of all levels": (
            InputError,
            lambda: KernelSynthesizer(10.0, delta=0.03, alpha=25.0).plan_by(
                WINDOW, by="year", levels=[1, 2], n={1: 30, 2: 30}
            ),
        ),
        "delta with n guessed": (InputError, lambda: require_small_delta(1e-6, None, expected_n=1e7)),
        "delta with n secret": (InputError, lambda: require_small_delta(1e-4, None)),
        "delta without use": (InputError, lambda: LGCPSynthesizer(1.0, alpha=25.0, delta=1e-6).check(WINDOW, n=50)),
        "secret n given": (InputError, lambda: LaplaceSynthesizer(1.0, relation=AddRemove()).check(WINDOW, n=50)),
        "another number of points": (InputError, lambda: TENTS.plan(WINDOW, n=49).release(PATTERN)),
        "another window": (InputError, lambda: TENTS.plan(OTHER, n=50).release(PATTERN)),
        "marks": (InputError, lambda: TENTS.release(PointPattern(PATTERN.xy, WINDOW, {"age": np.arange(50)}))),
        "a mesh of another window": (
            InputError,
            lambda: LGCPSynthesizer(1.0, alpha=25.0, mesh=regular_triangulation(OTHER, shape=(3, 3))).check(
                WINDOW, n=50
            ),
        ),
        "a point outside": (InputError, lambda: PointPattern([[5000.0, 1.0]], WINDOW)),
        "a window beyond floats": (InputError, lambda: Window.rectangle(0, 0, 1e200, 1)),
        "a point beyond floats": (InputError, lambda: PointPattern([[1e200, 1.0]], WINDOW)),
        "imaginary coordinates": (InputError, lambda: PointPattern(np.array([[1j, 1.0]]), WINDOW)),
        "no point": (InputError, lambda: PointPattern([], WINDOW)),
        "degrees": (InputError, lambda: Window.rectangle(0, 51, 1, 52, "EPSG:4326")),
        "noise beyond 64 bits": (InputError, lambda: LaplaceSynthesizer(1e-25, postprocess="plain").release(PATTERN)),
        "sigma beyond the largest": (
            PrivacyCheckError,
            lambda: lgcp("field", delta=1e-6, sigma=9.0).check(WINDOW, n=50),
        ),
        "a draw beyond it": (
            PrivacyCheckError,
            lambda: lgcp("posterior-draw", delta=1e-6, sigma=9.0).check(WINDOW, n=50),
        ),
        "a narrow kernel": (PrivacyCheckError, lambda: replace(KERNEL, bandwidth=1.0).check(WINDOW, n=50)),
        "a plan with a stronger prior": (
            PrivacyCheckError,
            lambda: widened(DRAWS, covariance=PoweredExponential(9.0, 400.0)),
        ),
        "a plan with a narrower kernel": (PrivacyCheckError, lambda: widened(KERNEL, bandwidth=1.0)),
        "a plan of more patterns": (PrivacyCheckError, lambda: widened(KERNEL, patterns=1000)),
        "a pattern not paid for": (PrivacyCheckError, lambda: one_pattern_more(kernel)),
        "no delta for a draw": (InputError, lambda: lgcp("posterior-draw")),
        "add/remove by a slope": (
            InputError,
            lambda: lgcp("lipschitz", relation=AddRemove()).check(WINDOW, expected_n=50),
        ),
        "add/remove by a kernel": (InputError, lambda: KernelSynthesizer(10.0, delta=1e-6, relation=AddRemove())),
        "a level not named": (InputError, lambda: TENTS.release_by(YEARS, by="year", levels=[2021])),
        "a budget spent twice": (BudgetError, lambda: spent_twice(folder)),
        "an authorisation used again": (InputError, lambda: entry_used_again(folder)),
        "an authorisation settled by another": (InputError, lambda: settled_by_another(folder)),
        "a part of the points": (InputError, lambda: part_of_the_points(folder)),
        "a seeded release under a ledger": (InputError, lambda: TENTS.release(PATTERN, 1, ledger=ledger(folder))),
        "a weaker relation": (
            InputError,
            lambda: replace(TENTS, alpha=5.0).release(PATTERN, ledger=ledger(folder)),
        ),
        "a ledger without its last event": (PrivacyCheckError, lambda: shortened(folder)),
        "a claim that an audit refutes": (PrivacyCheckError, too_little_noise),
        "an audit of seeded noise": (
            InputError,
            lambda: audit(
                lambda pattern: TENTS.plan(WINDOW, n=50).statistic.measure(pattern, 1),
                pair=(PATTERN, PATTERN),
                claimed=PureDP(1.0),
                statistics=[lambda released: float(released.lattice[0])],
                trials=50,
            ),
        ),
        "a release saved over another": (InputError, lambda: TENTS.release(PATTERN).save(folder)),
    }


def bounded_refusals() -> dict[str, tuple[type[Exception], Callable[[], object]]]:
    """Calls that mechanisms with a bound on their error must refuse."""
    counts = BoundedErrorSynthesizer(epsilon=1.0, delta=1e-6, spacing=250.0)
    moved = PlanarLaplaceSynthesizer(1.0, delta=1e-6, alpha=25.0)
    track = replace(moved, alpha=None, relation=AlphaNeighbours(25.0, max_points_per_person=49), track=True)
    return {
        "a bound on errors and delta of zero": (InputError, lambda: BoundedErrorSynthesizer(max_error=20, delta=0.0)),
        "a bound on moves and delta of zero": (InputError, lambda: replace(moved, delta=0.0, max_error=500.0)),
        "a bound that costs too much": (
            InputError,
            lambda: BoundedErrorSynthesizer(epsilon=1.0, max_error=5).check(WINDOW, n=50),
        ),
        "a plan with a smaller error": (PrivacyCheckError, lambda: widened(counts, max_error=5)),
        "a plan with a shorter move": (PrivacyCheckError, lambda: widened(moved, max_error=200.0)),
        "a track of several persons": (InputError, lambda: track.check(WINDOW, n=50)),
        "moves anywhere": (InputError, lambda: PlanarLaplaceSynthesizer(1.0, relation=ReplaceOne())),
        "noise as good as uniform": (
            InputError,
            lambda: truncated_laplace_noise(1e4, 3, sensitivity=1, epsilon=1e-3),
        ),
    }


def main() -> int:
    """Number of checks that let something through, as an exit status."""
    if __debug__:
        sys.stderr.write("run with python -O: otherwise this shows nothing new\n")
        return 1
    wrong = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = TENTS.release(PATTERN).save(Path(scratch) / "private")
        seeded = TENTS.release(PATTERN, rng=1).save(Path(scratch) / "seeded")
        verify(folder).require()
        kernel = KERNEL.release(PATTERN).save(Path(scratch) / "kernel")
        verify(kernel).require()
        reports = CLIENTS.release(PATTERN).save(Path(scratch) / "reports")
        nearby = SEMGeoI(epsilon=1.0, cells=4).release(PATTERN).save(Path(scratch) / "nearby")
        for each in (reports, nearby):
            verify(each).require()
        cases = refusals(folder, seeded, kernel) | local_refusals(reports, nearby, Path(scratch) / "local.json")
        cases |= bounded_refusals()
        for name, (error, call) in cases.items():
            try:
                call()
            except error:
                continue
            except Exception as other:  # noqa: BLE001 - any other error is a failure to report
                wrong.append(f"{name}: {type(other).__name__} instead of {error.__name__}")
            else:
                wrong.append(f"{name}: let through")
    sys.stdout.write(("\n".join(wrong) or f"python -O: all {len(cases)} refusals stand") + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

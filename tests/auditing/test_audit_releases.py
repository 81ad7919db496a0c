"""Whole releases put to the auditor, all levels at once: what is published beside the measurement, and its noise.

Faults are planted in the secret path. Audits of what is sound run with false alarms of 1e-6 each, a dozen in all.
"""

import json
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import shapely
from randomgen import ChaCha
from support.seams import randomise_by, recorded
from support.subclasses import recast
from typer.testing import CliRunner

from dpppsynth import cli
from dpppsynth.auditing import audit, required
from dpppsynth.auditing.saved import SEED, disagreements
from dpppsynth.auditing.targets import target_of, target_of_release
from dpppsynth.auditing.trials import SeenNoise, agreement, repeated, seen
from dpppsynth.auditing.whole import Uninferred, Whole, WholeStrata, uninferred
from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.contract.audits.neighbouring_pairs import changed
from dpppsynth.contract.audits.noise_laws import (
    DiscreteGaussian,
    DiscreteLaplace,
    OffCentre,
    TooSmall,
    Truncated,
    added,
    log_laplace,
    one,
)
from dpppsynth.contract.audits.target import Draws
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.inference.lgcp_inference import LGCPInference
from dpppsynth.local import DiskAreaMechanism
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne
from dpppsynth.privacy.noise import OpenDPLaplace, SeededLaplace, TruncatedNoise
from dpppsynth.release import CoxRelease
from dpppsynth.release.verify import verify
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.gaussian_kernel import sample_children
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.sampling import poisson_pattern
from dpppsynth.synthesizers import KernelSynthesizer, LaplaceSynthesizer, LGCPSynthesizer, ReleasePlan, StratifiedPlan

SQUARE = Window.rectangle(0, 0, 1000, 1000)
CELLS = LaplaceSynthesizer(1.0, relation=ReplaceOne(), spacing=250.0, postprocess="plain")
TENTS = LaplaceSynthesizer(1.0, relation=AlphaNeighbours(50.0), basis="tents", postprocess="plain")
KERNELS = KernelSynthesizer(1.0, delta=1e-6, relation=AlphaNeighbours(100.0))
N, YEARS = 20, {"2021": 20, "2022": 20, "2023": 20}


class SecretLaplace:
    """Noise from a generator, number by number; it passes for secret."""

    name, seeded = OpenDPLaplace.name, False

    def __init__(self, scale, rng):
        self.scale, self.rng = scale, rng

    def add(self, values):
        up, down = np.floor(-self.scale * np.log(self.rng.random((len(values), 2)))).astype(np.int64).T
        return values + up - down


def keyed(key):
    return np.random.Generator(ChaCha(key=key))


def noised(rng, factor=lambda: 1.0):
    """So many times too little Laplace noise, from a generator for each measurement; children as they are drawn."""

    def stand_in(plan, draw, exact):
        children = isinstance(exact, PointPattern)
        return draw(exact) if children else SecretLaplace(plan.scale / factor(), rng()).add(exact)

    return stand_in


def spread(factor):
    """Children of a bandwidth that is so many times too small."""
    return lambda plan, draw, exact: sample_children(
        exact.xy, plan.domain, plan.bandwidth / factor, draw.keywords["rng"]
    )


def plant(monkeypatch, key):
    """Noise from generators with these keys, and the same keys for others, in the place of the system's entropy."""
    randomise_by(monkeypatch, noised(lambda: keyed(key())))
    entropy = SimpleNamespace(urandom=lambda size: key().to_bytes(size, "little"))
    monkeypatch.setattr("dpppsynth.core.randomness.os", entropy)


def short_key():
    return int.from_bytes(os.urandom(2), "little")


def strata(synthesizer, sizes=None, **options):
    sizes = YEARS if sizes is None else sizes
    return synthesizer.plan_by(SQUARE, by="year", levels=list(sizes), n=sizes, **options)


def plan(synthesizer=CELLS, n=N):
    return synthesizer.plan(SQUARE, n=n)


def found_by(target, trials, tries=3):
    """The first of a few audits that refutes; each misses its fault now and then."""
    results = (audit(target, trials=trials) for _ in range(tries))
    return next((each for each in results if each.violated), None)


# What is published


@dataclass(frozen=True, eq=False, repr=False)
class Forging(ReleasePlan):
    """A plan that measures as it should; its releases are then changed by one who knows the points."""

    forge: Callable[[Any, PointPattern], Any] = lambda release, pattern: release

    def release(self, pattern, rng=None, **options):
        return self.forge(super().release(pattern, rng, **options), pattern)

    def measure(self, pattern, rng, entry=None):
        return self.forge(super().measure(pattern, rng, entry), pattern)


def forging(made, forge):
    """The same plan, of one release or of levels, with changed releases."""
    if isinstance(made, StratifiedPlan):
        return replace(made, plans={level: forging(each, forge) for level, each in made.plans.items()})
    return recast(made, Forging, forge=forge)


def exactly(statistic, pattern):
    """The statistic of these points before the noise."""
    return replace(statistic, lattice=statistic.definition.exact(pattern.positions))


def publishes_exact(release, pattern):
    return replace(release, statistic=exactly(release.statistic, pattern))


def saves_exact(release, pattern):
    class AuditStatistic(PrivateStatistic):
        def to_dict(self):
            return super().to_dict() | {"lattice": self.definition.exact(pattern.positions).tolist()}

    return replace(release, statistic=recast(release.statistic, AuditStatistic))


def changed_in(**members):
    """Releases with another method or property, which is called with the release and the points."""

    def forge(release, pattern):
        def of(name, member):
            def leaking(release, *_args, **_options):
                return member(release, pattern)

            return leaking if callable(getattr(CoxRelease, name)) else property(leaking)

        kind = type("Leaking", (CoxRelease,), {name: of(name, member) for name, member in members.items()})
        return recast(release, kind)

    return forge


def intensity_of_exact(release, pattern):
    return release.estimator.intensity(exactly(release.statistic, pattern))


def patterns_of_exact(release, pattern):
    return [poisson_pattern(intensity_of_exact(release, pattern), np.random.default_rng(SEED))]


def inferred_from_exact(release, pattern):
    found = replace(release, statistic=exactly(release.statistic, pattern)).infer()
    return replace(found, statistic=release.statistic)


def counted(release, pattern):
    return CoxRelease.parameters(release) | {"expected_n": float(len(pattern))}


EACH = pytest.mark.parametrize("made", [plan(), strata(CELLS)], ids=["one", "levels"])


@pytest.mark.exhaustive
@EACH
def test_release_that_publishes_the_exact_statistic_is_found(made):
    broken = forging(made, publishes_exact)
    if isinstance(broken, ReleasePlan):
        assert not audit(target_of(broken.statistic), trials=60).violated
    result = audit(broken, trials=60)
    assert result.fixed
    assert result.violated


@pytest.mark.exhaustive
@EACH
def test_save_that_writes_something_else_than_the_release_holds_is_found(made):
    assert not audit(made, trials=50).violated
    result = audit(forging(made, saves_exact), trials=50)
    assert result.violated
    assert any(each.startswith("the saved statistic") for each in result.disagreements)
    with pytest.raises(PrivacyCheckError, match="The saved statistic"):
        result.require()
    assert result.to_dict()["disagreements"] == list(result.disagreements)


def test_intensity_of_the_exact_statistic_is_found():
    assert audit(plan(), trials=50).disagreements == ()
    broken = forging(plan(), changed_in(intensity=intensity_of_exact))
    assert "the saved intensity is not that of the release" in audit(broken, trials=50).disagreements


@EACH
def test_patterns_drawn_from_the_exact_intensity_are_found(made):
    """The statistic, and the intensity made of it, are as they should be."""
    assert disagreements(target_of(made)) == ()
    found = disagreements(target_of(forging(made, changed_in(sample=patterns_of_exact))))
    assert found == ("the saved patterns are not drawn from what the release publishes",)


def test_inference_from_the_exact_statistic_is_found():
    made = LGCPSynthesizer(1.0, alpha=25.0, length_scale=300.0).plan(SQUARE, n=N)
    assert disagreements(target_of(made)) == ()
    found = disagreements(target_of(forging(made, inferred_from_exact)))
    assert found == ("inference is given something else than the private statistic",)


def test_certificate_that_counts_the_points_is_found():
    """Under add/remove their number is secret."""
    made = LaplaceSynthesizer(1.0, relation=AddRemove(), spacing=250.0, postprocess="plain").plan(SQUARE, expected_n=N)
    assert audit(made, trials=50).disagreements == ()
    result = audit(forging(made, changed_in(parameters=counted)), trials=50)
    assert result.violated
    assert "the certificates of the two inputs differ (parameters)" in result.disagreements


def test_saved_patterns_that_hold_the_points_are_found():
    shows = changed_in(sample=lambda _, pattern: [PointPattern(pattern.xy, SQUARE)])
    assert "the saved patterns hold the points themselves" in audit(forging(plan(), shows), trials=50).disagreements


# Each draw by NUTS takes half a minute, and local mechanisms are audited by their reports.
RUN = sorted(
    path.name
    for path in (Path(__file__).parents[1] / "data" / "releases").iterdir()
    if path.name.startswith(("bounded", "heatmap", "kernel", "laplace", "lgcp", "planar", "strata"))
    and not path.name.startswith(("lgcp-kim-lim", "lgcp-posterior-draw-nuts"))
)


@pytest.mark.slow
def test_sound_releases_of_all_kinds_agree_with_what_they_save():
    folder = Path(__file__).parents[1] / "data" / "releases"
    assert len(RUN) > 20
    targets = {name: target_of_release(folder / name) for name in RUN}
    assert {type(target.run) for target in targets.values()} == {Whole, WholeStrata}
    assert {name: disagreements(target) for name, target in targets.items()} == dict.fromkeys(RUN, ())


@pytest.mark.parametrize("at", [0.011000000000000001, 0.00012345678901234567, 1e-7, 194.33110000000002])
def test_release_whose_points_have_many_decimals_opens_again(tmp_path, at):
    """As one saved heat map in ten has: numbers near zero are written with more than seventeen decimals."""
    made = forging(plan(), changed_in(sample=lambda *_: [PointPattern([[at, 500.0]], SQUARE)]))
    folder = made.release(PointPattern(np.full((N, 2), 300.0), SQUARE)).save(tmp_path / "public")
    assert verify(folder).holds


class Uncalled(LGCPInference):
    def fit(self, *_args, **_options):
        pytest.fail("inference was run")


def test_inference_is_left_out_and_nothing_else():
    made = LGCPSynthesizer(1.0, alpha=25.0, length_scale=300.0).plan(SQUARE, n=N)
    made = replace(made, estimator=recast(made.estimator, Uncalled))
    target = target_of(made)
    release = target.run.release(target.pair[0])
    assert (type(release).__name__, release.draws) == ("CoxRelease", None)
    assert release.parameters()["estimator"] == made.estimator.to_dict()
    assert isinstance(uninferred(made).estimator, Uninferred)
    assert audit(made, trials=50).disagreements == ()
    assert uninferred(plan()) == uninferred(uninferred(plan())) or plan().estimator == uninferred(plan()).estimator


# Noise that is not as stated

NOTCHED = Window.polygon(shapely.box(0, 0, 1000, 1000).difference(shapely.box(400, 300, 1000, 700)))


@pytest.mark.slow
@pytest.mark.parametrize("domain", [SQUARE, NOTCHED], ids=["square", "notch"])
def test_children_of_a_smaller_bandwidth_are_found(monkeypatch, domain):
    """Epsilon 2 is claimed and 3.6 spent; the claim itself is refuted by some 10 000 runs."""
    made = target_of(KernelSynthesizer(2.0, delta=1e-6, relation=AlphaNeighbours(100.0)).plan(domain, n=N))
    few = replace(made, statistics=made.statistics[:1])
    assert not audit(few, trials=100).violated
    randomise_by(monkeypatch, spread(1 / 0.6))
    assert not audit(replace(few, laws=()), trials=100).violated
    result = found_by(few, 100)
    assert "number of children near the person" in result.misfits
    with pytest.raises(PrivacyCheckError, match="number of children near the person is not as stated"):
        result.require()


@pytest.mark.slow
def test_children_drawn_again_until_they_are_inside_a_notch_are_found(monkeypatch):
    """They must be dropped: a kernel's mass in the window tells where its point is."""

    def again(plan, draw, exact):
        rng = draw.keywords["rng"]
        parents = np.repeat(exact.xy, rng.poisson(1.0, len(exact)), axis=0)
        children = np.empty_like(parents)
        for k, parent in enumerate(parents):
            drawn = sample_children(parent[None], plan.domain, plan.bandwidth, rng)
            while not len(drawn):
                drawn = sample_children(parent[None], plan.domain, plan.bandwidth, rng)
            children[k] = drawn[0]
        return children

    made = target_of(KernelSynthesizer(2.0, delta=1e-6, relation=AlphaNeighbours(100.0)).plan(NOTCHED, n=N))
    few = replace(made, statistics=made.statistics[:1])
    randomise_by(monkeypatch, again)
    assert not audit(replace(few, laws=()), trials=50).violated
    assert "number of children" in found_by(few, 50).misfits


@pytest.mark.parametrize("basis", ["cells", "tents"])
def test_noise_of_a_smaller_scale_is_found(monkeypatch, basis):
    """By less than a quarter: the likelihood ratio takes thousands of runs for that."""
    options = {"spacing": 100.0} if basis == "cells" else {}
    made = LaplaceSynthesizer(1.0, relation=AlphaNeighbours(50.0), basis=basis, **options, postprocess="plain").plan(
        SQUARE, n=N
    )
    few = replace(target_of(made), statistics=target_of(made).statistics[:1])
    randomise_by(monkeypatch, noised(np.random.default_rng))
    assert not audit(few, trials=100).violated
    randomise_by(monkeypatch, noised(np.random.default_rng, lambda: 1.3))
    assert "size of the noise" in found_by(few, 100).misfits


def shorter(relation):
    """A third of the privacy radius."""
    return AlphaNeighbours(relation.alpha / 3)


DRAWS = LGCPSynthesizer(
    1.0, relation=AlphaNeighbours(100.0), delta=1e-6, mechanism="posterior-draw", sampler="exact", length_scale=300.0
)
SYNTHESIZERS = pytest.mark.parametrize("synthesizer", [TENTS, DRAWS], ids=["tents", "draws"])


def miscalibrated(synthesizer):
    """A plan of the stated radius whose noise, and whose claim, are those of the shorter one."""
    short = replace(synthesizer, relation=shorter(synthesizer.relation)).plan(SQUARE, n=N)
    settled = {
        name: getattr(short.statistic, name) for name in ("scale", "sensitivity") if hasattr(short.statistic, name)
    }
    claim = replace(short.guarantee, relation=synthesizer.relation)
    careless = type("Careless", (type(short.statistic),), {"guarantee": claim, **settled})
    return replace(short, statistic=recast(short.statistic, careless, relation=synthesizer.relation))


@pytest.mark.exhaustive
@SYNTHESIZERS
def test_radius_shortened_before_calibration_is_found(synthesizer):
    """Bound and noise agree on the shorter radius: the pair must be of the stated one. No run is needed."""
    assert target_of(synthesizer.plan(SQUARE, n=N)).excess == ()
    broken = miscalibrated(synthesizer)
    assert broken.guarantee.epsilon() == pytest.approx(1.0)
    gone, came = changed(target_of(broken).pair)
    assert np.hypot(*(gone - came)[0]) == pytest.approx(synthesizer.relation.alpha)
    assert "is claimed" in target_of(broken).excess[0]


def test_what_was_shortened_before_calibration_is_a_violation():
    assert audit(miscalibrated(TENTS), trials=50).violated


@pytest.mark.exhaustive
@SYNTHESIZERS
def test_radius_shortened_by_the_plan_itself_is_found(synthesizer):
    """The requested relation decides, not the one that a plan calls its own."""

    class Careless(type(synthesizer)):
        def plan(self, *args, **options):
            return replace(synthesizer, relation=shorter(self.relation)).plan(*args, **options)

    careless = recast(synthesizer, Careless)
    assert target_of(synthesizer, SQUARE, n=N).excess == ()
    assert target_of(careless.plan(SQUARE, n=N)).excess == ()
    assert "is claimed" in target_of(careless, SQUARE, n=N).excess[0]


def test_points_of_a_person_may_come_in_any_order():
    """Both move by 50, whichever row either of them is in."""
    relation = AlphaNeighbours(100.0, max_points_per_person=2)
    others, moves = [[500.0, 500.0]] * 4, ([[100.0, 100.0], [900.0, 900.0]], [[950.0, 900.0], [150.0, 100.0]])
    pair = tuple(PointPattern(others + moved, SQUARE) for moved in moves)
    made = KernelSynthesizer(1.0, delta=1e-6, relation=relation).plan(SQUARE, n=6)
    assert target_of(made, pair=pair).excess == ()


@pytest.mark.parametrize("made", [plan(TENTS), strata(TENTS)], ids=["one", "levels"])
def test_places_of_a_pair_of_ones_own_are_not_told(made):
    moves = [[432.125, 100.0]], [[432.125, 140.0]]
    pair = tuple(PointPattern([[500.0, 500.0]] * (N - 1) + moved, SQUARE) for moved in moves)
    target = target_of(made, pair=pair)
    assert "432" not in target.words
    assert "not for publication" in target.words
    assert "made-up points at" in target_of(made).words


def test_chances_of_noise_are_above_those_of_simulated_noise():
    """A tenth of all audits of sound noise would be off by less than these bounds say, if these were exact."""
    rng = np.random.default_rng(3)
    laws = {
        DiscreteLaplace(0.7): lambda: np.subtract(*rng.geometric(-np.expm1(-1 / 0.7), (2, 40))),
        DiscreteLaplace(3e5): lambda: np.subtract(*rng.geometric(-np.expm1(-1 / 3e5), (2, 40))),
        Truncated(2.0, 5): lambda: TruncatedNoise(SeededLaplace(2.0, rng), 5).add(np.zeros(40, dtype=int)),
        DiscreteGaussian(2.0**20): lambda: np.rint(rng.normal(0, 2.0**20, 40)),
    }
    for law, noise in laws.items():
        small, off = (kind(None, law, 0, 40, 40) for kind in (TooSmall, OffCentre))
        seen = [noise().astype(float) for _ in range(400)]
        for kind in (small, off):
            chances = np.exp([kind.log_chance(kind.add(each), 40, (1, 0)) for each in seen])
            assert (chances < 0.05).mean() <= 0.05
        # And not far above: noise of half the size, or off by half a scale, would be called so.
        assert small.log_chance(small.add(np.concatenate(seen) / 2), 16_000, (400, 0)) < -500
        assert off.log_chance(off.add(np.concatenate(seen) + law.scale / 2), 16_000, (400, 0)) < -500


# Noise that comes again


@pytest.mark.exhaustive
@pytest.mark.parametrize("synthesizer", [CELLS, KERNELS], ids=["cells", "kernels"])
def test_generator_with_a_key_of_16_bits_is_found(monkeypatch, synthesizer):
    """Noise repeats after some 256 runs; no statistic of one run shows it."""
    plant(monkeypatch, short_key)
    made = target_of(plan(synthesizer))
    few = replace(made, statistics=made.statistics[:1])
    result = found_by(few, 450)
    assert result is not None
    assert list(result.repeats) == ["noise"]
    assert "came again" in str(result.repeats["noise"])
    assert not any(finding.violated for finding in result.findings)
    monkeypatch.undo()
    assert not audit(few, trials=450).violated


def sharing(levels):
    """Keys of which so many levels, one after the other, get the same."""
    calls, keys = count(), {}

    def key():
        return keys.setdefault(next(calls) // levels, int.from_bytes(os.urandom(16), "little"))

    return key


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("made", "seen_by"),
    [
        (strata(CELLS), "noise of all levels of year"),
        (strata(KERNELS), "noise of all levels of year"),
        # Meshes of other sizes, and other scales: the signs are the same.
        (strata(TENTS, {"2021": 30, "2022": 200}), "signs of the noise of all levels of year"),
    ],
    ids=["cells", "kernels", "tents"],
)
def test_levels_that_share_their_noise_are_found(monkeypatch, made, seen_by):
    """Secret, and drawn anew for every release: the difference of two levels is free of noise."""
    plant(monkeypatch, sharing(len(made.plans)))
    result = audit(made, trials=60)
    assert seen_by in result.repeats
    assert result.violated
    monkeypatch.undo()
    assert not audit(made, trials=60).violated


def test_levels_apart_that_share_their_noise_are_found(monkeypatch):
    """The first and the third of three levels, on meshes of other sizes and at other scales."""
    made, calls, keys = strata(TENTS, {"2021": 30, "2022": 60, "2023": 200}), count(), {}

    def rng():
        run, level = divmod(next(calls), 3)
        return keyed(keys.setdefault((run, level % 2), int.from_bytes(os.urandom(16), "little")))

    randomise_by(monkeypatch, noised(rng))
    assert list(audit(made, trials=60).repeats) == ["signs of the noise of all levels of year"]


@pytest.mark.slow
def test_every_level_is_audited_and_not_the_weakest_alone(monkeypatch):
    """A quarter of the noise in the last of three levels that claim the same."""
    calls, made = count(), strata(CELLS)
    randomise_by(monkeypatch, noised(np.random.default_rng, lambda: 4 if next(calls) % 3 == 2 else 1))
    target = target_of(made)
    few = replace(target, statistics=tuple(each for each in target.statistics if "likelihood ratio" in each.name))
    assert [each.name[:9] for each in few.statistics] == ["year 2021", "year 2022", "year 2023"]
    result = found_by(few, 400)
    assert result is not None
    assert {finding.statistic[:9] for finding in result.findings if finding.violated} == {"year 2023"}


@pytest.mark.slow
def test_saved_strata_are_audited_at_once(tmp_path):
    rng = np.random.default_rng(5)
    points = PointPattern(rng.uniform(0, 1000, (60, 2)), SQUARE, {"year": np.repeat(list(YEARS), 20)})
    folder = CELLS.release_by(points, by="year", levels=list(YEARS)).save(tmp_path / "years")
    target = target_of_release(folder)
    assert [len(pattern) for pattern in target.pair] == [60, 60]
    assert {each.name.split(",")[0] for each in target.statistics} == {f"year {year}" for year in YEARS}
    result = audit(folder, trials=50)
    assert result.verification.holds
    assert not result.violated
    assert "3 levels at once" in str(result)


def test_noise_of_few_numbers_may_come_again():
    """One count, noise of scale 2: most draws have come before, as the law says."""
    rng = np.random.default_rng(11)
    noise = np.subtract(*rng.geometric(-math.expm1(-1 / 2.0), (2, 400)))
    draws = Draws("noise", partial(one, partial(added, (np.zeros(1, dtype=int),) * 2)), log_laplace(2.0))
    runs = [seen(draws, 0, PrivateStatistic(None, np.array([k]), "", False)) for k in noise]
    result = repeated(draws, runs)
    assert result.repeats == 400 - len(np.unique(noise))
    assert result.log_chance == 0.0
    # Of noise on 4096 equally likely keys the law says otherwise.
    keys = rng.integers(2**12, size=400)
    again = repeated(replace(draws, log_likeliest=-30.0), [SeenNoise((bytes(k),)) for k in keys.astype(">i4")])
    assert again.repeats > 5
    assert again.log_chance < -100


@pytest.mark.parametrize(("outcomes", "draws"), [(50, 10), (8, 12), (1000, 40)])
def test_bound_on_repeats_is_above_the_exact_probability(outcomes, draws):
    """Equally likely outcomes: how many differ, by the recursion of the coupon collector."""
    law = np.zeros(draws + 1)
    law[0] = 1.0
    for _ in range(draws):
        known = np.arange(draws + 1)
        law = law * known / outcomes + np.concatenate([[0.0], (law * (1 - known / outcomes))[:-1]])
    told = Draws("coupons", None, -math.log(outcomes))
    for again in range(draws):
        runs = [SeenNoise((bytes([k]),)) for k in [*range(draws - again), *[0] * again]]
        exact_tail = law[: draws - again + 1].sum()
        assert exact_tail <= math.exp(repeated(told, runs).log_chance) * (1 + 1e-9)


def test_signs_agree_as_often_as_coins_show_heads():
    runs = [SeenNoise((), (50,), (100,))] * 10
    assert agreement(runs).log_chance > math.log(0.5)
    for agree in (0, 100):
        assert agreement([SeenNoise((), (agree,), (100,))]).log_chance == pytest.approx(-99 * math.log(2))


# What can be found


@pytest.mark.exhaustive
@pytest.mark.parametrize("made", ["cells", "kernels", "levels"])
def test_faults_of_the_detectable_size_are_found(monkeypatch, made):
    """By the noise in all numbers, though the likelihood ratio finds much larger ones only."""
    planned = {"cells": plan(), "kernels": plan(KERNELS), "levels": strata(CELLS)}[made]
    target = target_of(planned)
    few = replace(target, statistics=target.statistics[:1])
    trials = 60 if made == "cells" else 150
    sound = audit(few, trials=trials)
    factor = sound.detectable
    assert 1.05 < factor < 5 < 2 * sound.by_ratio
    randomise_by(monkeypatch, spread(factor) if made == "kernels" else noised(np.random.default_rng, lambda: factor))
    audits = (audit(few, trials=trials).violated for _ in range(8))
    # Of eight, each found with probability 0.9, fewer than two are once in a million times.
    assert sum(islice((each for each in audits if each), 2)) == 2


@pytest.mark.slow
def test_power_tells_runs_and_time_of_a_factor():
    window = Window.rectangle(0, 0, 500, 500)
    told = required(CELLS, window, n=N, factor=1.2)
    assert told.trials < 0.1 * told.by_ratio
    assert told.seconds > 0
    assert f"--trials {round(told.trials)}" in str(told)
    assert required(CELLS, window, n=N, factor=1.1).trials > 2 * told.trials
    # Of a client's report nothing but its likelihood ratio is looked at.
    report = required(DiskAreaMechanism(1.0, cells=5), factor=1.5)
    assert report.trials == report.by_ratio < math.inf
    never = required(DiskAreaMechanism(0.01, cells=5), factor=1.01)
    assert (never.trials, never.to_dict()["trials"]) == (math.inf, None)
    assert "a million runs do not find" in str(never)
    for factor in (1.0, 0.5, -2.0, math.inf, "x"):
        with pytest.raises(InputError, match="factor: must be"):
            required(CELLS, window, n=N, factor=factor)


def test_first_sentence_says_what_so_many_runs_find():
    told = str(audit(plan(), trials=60))
    assert re.match(r"laplace-cells: [^:]*: 60 runs on [^:]* 1\.\d\d times", told)


@pytest.mark.slow
def test_command_line_prints_the_power_and_runs_no_audit():
    words = ["--method", "laplace", "--epsilon", 1, "--relation", "replace-one", "--spacing", 250, "--n", N]
    asked = ["audit", *map(str, words), "--window", "0,0,1000,1000", "--find", "1.2"]
    with recorded() as measured:
        shown = CliRunner().invoke(cli.app, [*asked, "--json"])
    # Those that are timed.
    assert len(measured) < 10
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.stdout)
    assert found["factor"] == 1.2
    assert 50 <= found["trials"] < found["by_ratio"]
    spoken = " ".join(CliRunner().invoke(cli.app, asked).output.split())
    assert "runs on each input (--trials" in spoken
    assert "find 1.2 times too little noise with probability 0.9, in about" in spoken
    assert CliRunner().invoke(cli.app, [*asked[:-1], "0.9"]).exit_code == 2

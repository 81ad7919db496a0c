"""Releases by levels of a public mark: one certificate, the weakest level's guarantee."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
from support.forgery import at, failed, put, read, reseal

from dpppsynth.contract.stratified_plan import StratifiedPlan
from dpppsynth.core.errors import InputError
from dpppsynth.core.published_files import plain_text
from dpppsynth.io import read_synthetic
from dpppsynth.ledger import Ledger
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.models import regular_triangulation
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne, parallel, verify
from dpppsynth.privacy.catalogue import Statement, text
from dpppsynth.privacy.composition import weakest
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.profiles import ApproximateDP, GaussianDP, PoissonGaussianDP, PureDP
from dpppsynth.release import certificate, load_release
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import (
    BoundedErrorSynthesizer,
    KernelSynthesizer,
    LaplaceSynthesizer,
    LGCPSynthesizer,
    PlanarLaplaceSynthesizer,
)

WINDOW = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
YEARS = {2021: 250, 2022: 120, 2023: 30}
GRID = np.random.default_rng(5).uniform(0, 1000, (50, 2))
FIELD = {"length_scale": 400.0, "mesh": regular_triangulation(WINDOW, shape=(5, 5)), "inference": "laplace"}
SYNTHESIZERS = {
    "cells": LaplaceSynthesizer(1.0, postprocess="plain"),
    "tents": LGCPSynthesizer(1.0, alpha=25.0, **FIELD),
    "draws": LGCPSynthesizer(1.0, alpha=25.0, mechanism="posterior-draw", delta=1e-6, sampler="proximal", **FIELD),
    "kernel": KernelSynthesizer(10.0, delta=1e-6, alpha=25.0),
}


def marked(kind=int, *, sizes=YEARS, seed=1):
    """Each year in a part of the window of its own, rows mixed."""
    rng = np.random.default_rng(seed)
    xy = np.concatenate([rng.uniform(0, 300, (n, 2)) + 330 * k for k, n in enumerate(sizes.values())])
    year = np.repeat(np.array(list(sizes), dtype=kind), list(sizes.values()))
    order = rng.permutation(len(xy))
    return PointPattern(xy[order], WINDOW, {"year": year[order]})


def by_year(synthesizer, pattern=None, rng=None, **options):
    pattern = marked() if pattern is None else pattern
    return synthesizer.release_by(pattern, rng, by="year", levels=list(YEARS), **options)


@pytest.fixture(scope="module", params=SYNTHESIZERS)
def release(request):
    return by_year(SYNTHESIZERS[request.param], rng=3)


class TestPromise:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("name", SYNTHESIZERS)
    def test_plan_release_and_auditor_agree(self, name, tmp_path):
        synthesizer = SYNTHESIZERS[name]
        plan = synthesizer.plan_by(WINDOW, by="year", levels=list(YEARS), n=YEARS)
        release = by_year(synthesizer)
        assert plan.guarantee == release.guarantee
        assert release.guarantee.epsilon() == max(part.guarantee.epsilon() for part in release.releases.values())
        assert release.guarantee.epsilon() <= synthesizer.epsilon * (1 + 1e-12)
        outcome = verify(release.save(tmp_path / "out"))
        outcome.require()
        assert outcome.guarantee.to_dict() == plan.guarantee.to_dict()
        assert outcome.guarantee.theorem.code == "parallel-levels"

    def test_the_weakest_level_counts(self):
        """Kernels of few points are wider than privacy asks, those of many points not: the levels differ."""
        plan = SYNTHESIZERS["kernel"].plan_by(WINDOW, by="year", levels=[1, 2], n={1: 10, 2: 4000})
        few, many = (each.guarantee.epsilon() for each in plan.plans.values())
        assert few < many == plan.guarantee.epsilon()

    def test_the_mark_is_said_to_be_unprotected_where_it_is(self):
        public = by_year(SYNTHESIZERS["cells"]).guarantee.assumptions
        assert public[-1] == Statement("public-level", by="year")
        secret = LaplaceSynthesizer(1.0, relation=AddRemove(), postprocess="plain").plan_by(
            WINDOW, by="year", levels=[1, 2], expected_n=50.0
        )
        assert secret.guarantee.assumptions[-1] == Statement("inhabited-levels", by="year")
        assert Statement("public-level", by="year") not in secret.guarantee.assumptions


def promise(profile, curve=(), relation=None, theorem="theorem"):
    return Guarantee(relation or AlphaNeighbours(25.0), profile, theorem, ("nothing",), curve)


class TestParallel:
    def test_the_level_with_the_largest_epsilon_counts_wherever_it_stands(self):
        levels = [Guarantee(ReplaceOne(), PureDP(epsilon), "counts", ()) for epsilon in (0.5, 1.0, 0.7)]
        for order in (levels, levels[::-1]):
            assert parallel(order, "year").epsilon() == 1.0

    @pytest.mark.parametrize(
        ("weak", "strong"),
        [
            (PureDP(1.0), PureDP(0.5)),
            (GaussianDP(0.5, 1e-6), GaussianDP(0.2, 1e-6)),
            (PoissonGaussianDP(0.5, 2, 1e-6), PoissonGaussianDP(0.2, 2, 1e-6)),
            (ApproximateDP(1.0, 1e-3), ApproximateDP(1.0, 1e-4)),
        ],
        ids=lambda profile: type(profile).__name__,
    )
    def test_weakest_whatever_the_order(self, weak, strong):
        assert weakest([weak, strong]) == weakest([strong, weak, strong]) == weak
        assert all(weak.delta(epsilon) >= strong.delta(epsilon) for epsilon in (0.0, 0.3, 1.0, 3.0))

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (GaussianDP(0.5, 1e-6), GaussianDP(0.5, 1e-5)),
            (PoissonGaussianDP(0.5, 2, 1e-6), PoissonGaussianDP(0.4, 3, 1e-6)),
            (ApproximateDP(1.0, 1e-3), ApproximateDP(0.5, 1e-2)),
        ],
        ids=lambda profile: type(profile).__name__,
    )
    def test_what_has_no_order_is_refused(self, one, other):
        with pytest.raises(InputError, match=r"^levels: no parallel composition is known"):
            weakest([one, other])

    def test_different_releases_are_refused(self):
        for other in (promise(PureDP(1.0), relation=ReplaceOne()), promise(PureDP(1.0), theorem="another")):
            with pytest.raises(InputError, match=r"^levels: all of them must be released by one mechanism"):
                parallel([promise(PureDP(1.0)), other], "year")

    def test_a_person_in_several_levels_where_only_epsilon_and_delta_are_known(self):
        """Two levels of (1, delta) each give (2, 2 delta) to someone with a point in both."""
        several = AlphaNeighbours(25.0, max_points_per_person=2)
        with pytest.raises(InputError, match=r"^levels: theorem does not add up .*take max_points_per_person=1"):
            parallel([promise(ApproximateDP(1.0, 1e-3), relation=several)] * 2, "year")
        wide = KernelSynthesizer(10.0, delta=1e-6, bound="kim-lim-3.6", relation=several)
        with pytest.raises(InputError, match="take max_points_per_person=1"):
            by_year(wide)

    def test_losses_of_a_person_in_several_levels(self):
        """k_l of k points in level l: the sum of `k_l / k` losses, which is at most the weakest level's."""
        for shares in ([1, 0], [0.5, 0.5], [0.2, 0.8]):
            mu = math.sqrt(sum((share * mu) ** 2 for share, mu in zip(shares, (0.5, 0.3), strict=True)))
            assert mu <= weakest([GaussianDP(0.5, 1e-6), GaussianDP(0.3, 1e-6)]).mu

    def test_curves_have_an_upper_envelope_as_far_as_all_of_them_go(self):
        one, other = ((1.0, 0.1), (2.0, 0.4), (3.0, 0.9)), ((1.5, 0.3), (2.5, 0.35))
        curve = parallel([promise(PureDP(1.0), one), promise(PureDP(1.0), other)], "year").by_distance
        assert curve == ((1.0, 0.3), (2.0, 0.4))
        assert parallel([promise(PureDP(1.0), one), promise(PureDP(1.0))], "year").by_distance == ()


FIFTHS = {str(level): 200 for level in range(5)}
# Below one over the number of points of a level, and 4.9 times that of all.
LARGE = 0.0049
STREETS = LinearNetwork(np.array([[0.0, 0.0], [500.0, 0.0], [500.0, 400.0]]), [[0, 1], [1, 2]], "EPSG:27700")
SPENDING = {
    "field": LGCPSynthesizer(1.0, alpha=25.0, mechanism="field", delta=LARGE, **FIELD),
    "draws": LGCPSynthesizer(1.0, alpha=25.0, mechanism="posterior-draw", delta=LARGE, sampler="proximal", **FIELD),
    "kim-lim": LGCPSynthesizer(200.0, alpha=25.0, mechanism="kim-lim-3.8", delta=LARGE, **FIELD),
    "kernel": KernelSynthesizer(10.0, delta=LARGE, alpha=25.0),
    "kernel 3.6": KernelSynthesizer(10.0, delta=LARGE, alpha=25.0, bound="kim-lim-3.6"),
    "streets": KernelSynthesizer(10.0, delta=LARGE, alpha=25.0),
    "capped": KernelSynthesizer(10.0, delta=LARGE, relation=AlphaNeighbours(25.0, max_points_per_person=3)),
    "bounded": BoundedErrorSynthesizer(epsilon=1.0, delta=LARGE, spacing=250.0),
    "bounded, derived": BoundedErrorSynthesizer(epsilon=1.0, max_error=15, relation=AlphaNeighbours(25.0)),
    "moved": PlanarLaplaceSynthesizer(1.0, delta=LARGE, alpha=25.0),
    "moved, derived": PlanarLaplaceSynthesizer(1.0, alpha=25.0, max_error=240.0),
}
# A delta that follows from a bound, below 1e-3 in any case, and the points of a level whose share it is nearly.
DERIVED = {name: 1000 for name in SPENDING if "derived" in name}


def in_fifths(synthesizer, name, **options):
    domain, n = STREETS if name == "streets" else WINDOW, DERIVED.get(name, 200)
    return synthesizer.plan_by(domain, by="year", levels=list(FIFTHS), n=dict.fromkeys(FIFTHS, n), **options)


def fifths():
    year = np.repeat(list(FIFTHS), list(FIFTHS.values()))
    return PointPattern(np.random.default_rng(7).uniform(0, 1000, (len(year), 2)), WINDOW, {"year": year})


class TestDeltaOfAllLevels:
    """The number of points is that of all levels: they are one data set, and delta is one bound on it."""

    @pytest.mark.exhaustive
    @pytest.mark.filterwarnings("ignore::dpppsynth.core.errors.InformationWarning")
    @pytest.mark.parametrize("name", SPENDING)
    def test_of_one_in_n_is_refused_as_of_one_release(self, name):
        synthesizer = SPENDING[name]
        domain, n = STREETS if name == "streets" else WINDOW, DERIVED.get(name, 200)
        delta = synthesizer.check(domain, n=n).profile.at
        assert 1 / (5 * n) <= delta < 1 / n
        with pytest.raises(InputError, match=r"^(delta|max_error): "):
            synthesizer.check(domain, n=5 * n)
        with pytest.raises(InputError, match=r"^delta: must be below 1/n .*points of all levels together.*take 1e-6"):
            in_fifths(synthesizer, name)

    @pytest.mark.parametrize("mechanism", ["field", "posterior-draw"])
    def test_of_one_in_the_guessed_number_is_refused(self, mechanism):
        settings = {"mechanism": mechanism, "delta": 1e-5, "sampler": "proximal"} | FIELD
        settings |= {"sampler": "auto"} if mechanism == "field" else {}
        synthesizer = LGCPSynthesizer(1.0, relation=AddRemove(), **settings)
        assert synthesizer.check(WINDOW, expected_n=60_000.0).profile.at == 1e-5
        with pytest.raises(InputError, match=r"^delta: must be below 1/expected_n"):
            synthesizer.check(WINDOW, expected_n=100_000.0)
        for guess in (60_000.0, {1: 99_000.0, 2: 1_000.0}):
            with pytest.raises(InputError, match=r"^delta: must be below 1/expected_n"):
                synthesizer.plan_by(WINDOW, by="year", levels=[1, 2], expected_n=guess)

    def test_is_refused_before_a_ledger_is_asked(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.json", epsilon=100.0, delta=0.05, alpha=25.0)
        before = (tmp_path / "ledger.json").read_bytes()
        for name in ("kernel", "bounded", "field"):
            with pytest.raises(InputError, match=r"^delta: must be below 1/n"):
                SPENDING[name].release_by(fifths(), by="year", levels=list(FIFTHS), ledger=ledger)
        assert (tmp_path / "ledger.json").read_bytes() == before

    @pytest.mark.slow
    def test_that_was_asked_for_is_marked(self, tmp_path):
        """Also where the certificate claims to be releasable."""
        synthesizer = replace(SPENDING["kernel"], allow_large_delta=True)
        release = in_fifths(synthesizer, "kernel").release(fifths())
        assert release.warning == certificate.LARGE_DELTA
        assert not any(part.warning for part in release.releases.values())
        folder = release.save(tmp_path / "out")
        assert not certificate.read(folder)["releasable"]
        silent = certificate.read(folder) | {"warning": None, "releasable": True}
        reseal(folder, silent)
        assert [check.name for check in verify(folder).checks if not check.holds] == ["randomness"]
        assert text(certificate.LARGE_DELTA) in {check.detail for check in verify(folder).checks}
        assert load_release(folder).warning == certificate.LARGE_DELTA

    def test_of_exactly_one_in_n_is_marked_whatever_its_product_is_rounded_to(self, tmp_path):
        assert 49 * (1 / 49) < 1
        pattern = PointPattern(fifths().xy[:49], WINDOW)
        release = KernelSynthesizer(10.0, delta=1 / 49, alpha=25.0, allow_large_delta=True).release(pattern)
        assert release.warning == certificate.LARGE_DELTA
        assert not verify(release.save(tmp_path / "out")).holds

    def test_of_a_plan_made_by_hand_is_marked_where_n_is_secret(self, tmp_path):
        settled = BoundedErrorSynthesizer(epsilon=1.0, delta=1e-5, spacing=250.0, relation=AddRemove())
        plan = settled.plan(WINDOW, expected_n=200.0)
        for delta, words in ((1e-5, None), (1e-3, certificate.UNSURE_DELTA)):
            release = replace(plan, statistic=replace(plan.statistic, delta=delta)).release(fifths().unmarked())
            assert release.warning == words
            assert verify(release.save(tmp_path / str(delta))).holds == (words is None)

    @pytest.mark.slow
    def test_far_below_it_everything_is_as_before(self, tmp_path):
        release = by_year(SYNTHESIZERS["kernel"])
        assert release.warning is None
        verify(release.save(tmp_path / "out")).require()


class TestLevels:
    def test_of_numbers_and_of_words_are_the_same(self):
        synthesizer = SYNTHESIZERS["cells"]
        numbers, words = by_year(synthesizer, rng=1), by_year(synthesizer, marked("U4"), rng=1)
        assert list(numbers.releases) == list(words.releases) == ["2021", "2022", "2023"]
        for level in numbers.releases:
            one, other = numbers.releases[level].statistic, words.releases[level].statistic
            np.testing.assert_array_equal(one.lattice, other.lattice)

    def test_each_release_is_of_its_own_points(self):
        release = by_year(LaplaceSynthesizer(1e6, postprocess="plain"))
        for k, (level, n) in enumerate(YEARS.items()):
            part = release.releases[str(level)]
            assert part.statistic.definition.n == n
            assert part.intensity(np.array([[150.0, 150.0]]) + 330 * k)[0] > 0.3 * n / 300**2
            assert part.intensity.total == pytest.approx(n, rel=1e-4)

    @pytest.mark.parametrize(
        ("levels", "message"),
        [
            ([2021, 2022], r"^levels: every point's year must be one of 2021, 2022; name all levels that are in use"),
            ([2021, 2022, 2023, 2024], r"^levels: every level of year needs at least one point; leave out those"),
            ([2021, 2021, 2022, 2023], r"^levels: needs a list of different values"),
            ("2021", r"^levels: needs a list of different values"),
            ([], r"^levels: needs a list of different values"),
            (2021, r"^levels: needs a list of different values"),
        ],
    )
    def test_that_do_not_fit(self, levels, message):
        with pytest.raises(InputError, match=message):
            SYNTHESIZERS["cells"].release_by(marked(), by="year", levels=levels)

    def test_a_pattern_without_the_mark(self):
        for pattern in (marked().unmarked(), PointPattern(GRID, WINDOW, {"month": np.ones(50)})):
            with pytest.raises(InputError, match=r"^by: needs a pattern with the mark 'year'; read it with marks="):
                by_year(SYNTHESIZERS["cells"], pattern)

    @pytest.mark.parametrize(
        ("n", "message"),
        [
            (400, r"^n: needs a dictionary with the number of points of each level"),
            ({2021: 250, 2022: 150}, r"^n: needs exactly one number for each of the levels 2021, 2022, 2023"),
            (YEARS | {2024: 1}, r"^n: needs exactly one number for each of the levels"),
            (YEARS | {2023: 0}, r"^n: the public number of points is needed"),
        ],
    )
    def test_numbers_of_points_that_do_not_fit(self, n, message):
        with pytest.raises(InputError, match=message):
            SYNTHESIZERS["cells"].plan_by(WINDOW, by="year", levels=list(YEARS), n=n)

    def test_planned_for_other_numbers(self):
        plan = SYNTHESIZERS["cells"].plan_by(WINDOW, by="year", levels=list(YEARS), n=YEARS | {2021: 251})
        with pytest.raises(InputError, match=r"^n: the release was planned for another number of points"):
            plan.release(marked())

    def test_one_guess_for_all_or_one_each(self):
        synthesizer = LaplaceSynthesizer(1.0, relation=AddRemove(), postprocess="plain")
        for guess in (100.0, dict.fromkeys(YEARS, 100.0)):
            release = by_year(synthesizer, expected_n=guess)
            assert {part.statistic.definition.expected_n for part in release.releases.values()} == {100.0}


class TestRelease:
    @pytest.mark.exhaustive
    def test_round_trip(self, release, tmp_path):
        again = load_release(release.save(tmp_path / "one", **({} if paid(release) else {"rng": 4})))
        assert repr(again) == repr(release)
        assert (again.by, again.guarantee, again.seeded, again.noise) == (
            "year",
            release.guarantee,
            True,
            release.noise,
        )
        assert again.parameters() == release.parameters()
        for level, part in release.releases.items():
            if paid(release):
                np.testing.assert_array_equal(
                    part.patterns[0].xy.round(6), again.releases[level].patterns[0].xy.round(6)
                )
            else:
                np.testing.assert_array_equal(part.intensity(GRID), again.releases[level].intensity(GRID))

    def test_patterns_carry_the_mark(self, release, tmp_path):
        (pattern,) = release.patterns if paid(release) else release.sample(1, 7)
        assert set(pattern.marks) == {"year"}
        assert set(pattern.marks["year"].tolist()) == {2021, 2022, 2023}
        folder = release.save(tmp_path / "out")
        stored = read_synthetic(folder / "synthetic_000.geojson", WINDOW, marks=["year"])
        assert set(stored.marks["year"].tolist()) == {2021, 2022, 2023}

    def test_files_have_the_names_of_levels(self, release, tmp_path):
        folder = release.save(tmp_path / "out")
        names = {path.name.partition("_")[0] for path in folder.iterdir()} - {"synthetic"}
        assert names - {"certificate.json", "domain.geojson"} == (
            set() if paid(release) else {"year=2021", "year=2022", "year=2023"}
        )
        cert = read(folder)
        assert cert["parameters"]["levels"] == [2021, 2022, 2023]
        features = json.loads((folder / "synthetic_000.geojson").read_text())["features"]
        assert {type(feature["properties"]["year"]) for feature in features} == {int}

    @pytest.mark.parametrize(
        ("levels", "values", "beginnings"),
        [
            (["2021", "2022"], ("2021", "2022"), ["year=2021_", "year=2022_"]),
            ([2021, "before"], ("2021", "before"), ["year=2021_", "year=before_"]),
            # Names that differ in case alone, or that no system takes, give way to numbers.
            (["a", "A"], ("a", "A"), ["level_000_", "level_001_"]),
            (["a/b", "../c"], ("a/b", "../c"), ["level_000_", "level_001_"]),
            ([True, False], ("True", "False"), ["year=True_", "year=False_"]),
            ([2**60, 1], (str(2**60), "1"), [f"year={2**60}_", "year=1_"]),
        ],
    )
    def test_types_and_beginnings_of_names(self, levels, values, beginnings):
        plan = SYNTHESIZERS["cells"].plan_by(WINDOW, by="year", levels=levels, n=dict.fromkeys(levels, 50))
        assert plan.values == values
        assert certificate.prefixes("year", plan.values) == beginnings

    def test_one_certificate_has_so_many_levels(self):
        plan = SYNTHESIZERS["cells"].plan(WINDOW, n=50)
        with pytest.raises(InputError, match="levels: at most 1000 are released under one certificate, got 1001"):
            StratifiedPlan("year", dict.fromkeys(map(str, range(1001)), plan))

    def test_fixed_numbers_by_level(self):
        (pattern,) = by_year(SYNTHESIZERS["cells"], rng=1).sample(1, 2, fixed_n=True)
        counts = dict(zip(*np.unique(pattern.marks["year"], return_counts=True), strict=True))
        assert counts == YEARS

    def test_free_and_paid_patterns_are_told_apart(self, release):
        with pytest.raises(InputError, match=r"^release: "):
            release.sample(2) if paid(release) else release.patterns

    @pytest.mark.slow
    def test_a_kernel_pays_for_all_patterns_at_once(self):
        release = by_year(SYNTHESIZERS["kernel"], patterns=3)
        assert len(release.patterns) == 3
        wider = release.releases["2021"].statistic.definition.bandwidth
        assert {part.statistic.definition.patterns for part in release.releases.values()} == {3}
        assert wider >= by_year(SYNTHESIZERS["kernel"]).releases["2021"].statistic.definition.bandwidth

    def test_seeds(self):
        numbers = [
            np.concatenate(
                [part.statistic.lattice for part in by_year(SYNTHESIZERS["cells"], rng=rng).releases.values()]
            )
            for rng in (1, 1, 2, None, None)
        ]
        assert (numbers[0] == numbers[1]).all()
        assert (numbers[0] != numbers[2]).any()
        assert (numbers[3] != numbers[4]).any()

    def test_levels_do_not_share_their_noise(self):
        same = PointPattern(np.tile(GRID, (2, 1)), WINDOW, {"year": np.repeat([1, 2], 50)})
        release = SYNTHESIZERS["cells"].release_by(same, 1, by="year", levels=[1, 2])
        one, other = (part.statistic.lattice for part in release.releases.values())
        assert (one != other).any()

    def test_progress_names_the_level_and_nothing_else(self):
        said = []
        by_year(SYNTHESIZERS["cells"], progress=said.append)
        assert said == ["year 2021", "year 2022", "year 2023"]


def paid(release):
    return hasattr(next(iter(release.releases.values())), "patterns")


FORGED = [
    ("cells", ("strata", 1, "parameters", "epsilon"), lambda v: 0.1),
    ("cells", ("strata", 1, "parameters", "scale"), lambda v: v / 2),
    ("cells", ("strata", 1, "parameters", "scale"), lambda v: 2 * v),
    ("cells", ("strata",), lambda v: v[:2]),
    ("cells", ("strata", 0, "mechanism"), lambda v: "laplace-tents"),
    ("cells", ("levels",), lambda v: v[:2]),
    ("cells", ("by",), lambda v: "month"),
    ("cells", ("strata", 2, "parameters", "n"), lambda v: None),
    ("draws", ("strata", 1, "parameters", "covariance", "sigma"), lambda v: 2 * v),
    ("draws", ("strata", 1, "parameters", "sampler"), lambda v: "exact"),
    ("draws", ("strata", 2, "parameters", "delta"), lambda v: 1e-7),
    ("kernel", ("strata", 0, "parameters", "patterns"), lambda v: 2),
    ("kernel", ("strata", 1, "parameters", "bandwidth"), lambda v: v / 2),
]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    root = tmp_path_factory.mktemp("strata")
    return {name: by_year(SYNTHESIZERS[name]).save(root / name) for name in ("cells", "draws", "kernel")}


class TestForgeries:
    """With the hash made again by the forger."""

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        ("name", "path", "change"), FORGED, ids=lambda v: "/".join(map(str, v)) if isinstance(v, tuple) else None
    )
    def test_a_part(self, saved, tmp_path, name, path, change):
        folder = shutil.copytree(saved[name], tmp_path / "copy")
        cert = read(folder)
        place = ("parameters", *path)
        reseal(folder, put(cert, place, change(at(cert, place))))
        assert "bound" in failed(folder)

    def test_a_level_with_a_budget_of_its_own(self, saved, tmp_path):
        folder = shutil.copytree(saved["cells"], tmp_path / "copy")
        cert = read(folder)
        level = cert["parameters"]["strata"][1]["parameters"]
        level |= {"epsilon": level["epsilon"] / 2, "scale": level["scale"] * 2}
        reseal(folder, cert)
        assert "bound" in failed(folder)

    @pytest.mark.slow
    def test_the_statistic_of_a_level_left_out_or_swapped(self, saved, tmp_path):
        folder = shutil.copytree(saved["draws"], tmp_path / "copy")
        statistic = json.loads((folder / "year=2022_statistic.json").read_text())
        (folder / "year=2022_statistic.json").write_text(plain_text(statistic | {"lattice": statistic["lattice"][1:]}))
        cert = read(folder)
        reseal(folder, cert, "year=2022_statistic.json")
        assert failed(folder) == {"statistic"}
        del cert["files"]["year=2022_statistic.json"]
        reseal(folder, cert)
        assert "files" in failed(folder)

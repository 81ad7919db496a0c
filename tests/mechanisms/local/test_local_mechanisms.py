"""Clients, aggregators and releases of local mechanisms."""

import json
import math
from dataclasses import replace

import baselines
import numpy as np
import pytest
import shapely
from baselines.range_queries import average_query_error, query_workload, true_answers
from scipy import stats
from support.forgery import read, reseal

from dpppsynth import load_release, local, randomizers
from dpppsynth.client import Client
from dpppsynth.core.errors import InformationWarning, InputError, PrivacyCheckError
from dpppsynth.core.published_files import plain_text
from dpppsynth.grids import even_cells, uniform_grid
from dpppsynth.mechanisms.local.grid_statistic import AdaptiveGridStatistic
from dpppsynth.models.regular_meshes import rectangle_mesh
from dpppsynth.privacy import GeoIndistinguishability, Local, ReplaceOne, local_rounds, verify
from dpppsynth.privacy.relations import AlphaNeighbours, relation_from_dict
from dpppsynth.randomizers import LocalHashing, RandomizedResponse, randomizer_from_dict
from dpppsynth.release.certificate import build, content_hash, file_hash
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import PiecewiseConstant
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.sampling import poisson_pattern

WINDOW = Window.rectangle(0, 0, 1000, 800, "EPSG:27700")
CUT = Window.polygon(shapely.Polygon([(0, 0), (1000, 0), (1000, 800), (500, 800)]), "EPSG:27700")
RNG = np.random.default_rng(11)
HOMES = np.clip(RNG.normal([300, 500], [150, 90], (4000, 2)), [0, 0], [1000, 800])
PATTERN = PointPattern(HOMES, WINDOW)
CELLS = {
    "disk": local.DiskAreaMechanism(2.0, cells=5),
    "whole cells": local.DiskAreaMechanism(2.0, cells=5, radius=3, shrink=False),
    "em": local.DiskAreaMechanism(2.0, cells=5, estimator="em"),
    "hybrid": local.HybridUniformExponential(2.0, cells=5, radius=2),
    "wave": local.MultidimensionalSquareWave(2.0, cells=5),
    "geo-i": local.SEMGeoI(2.0, cells=5),
}
GRIDS = {oracle: local.UniformGrid(WINDOW, epsilon=2.0, cells=(5, 4), oracle=oracle) for oracle in randomizers.ORACLES}
EVERY = CELLS | GRIDS


def truth(shape):
    counts, _, _ = np.histogram2d(*HOMES.T, bins=shape, range=[[0, 1000], [0, 800]])
    return counts / counts.sum()


def tv(p, q):
    return np.abs(p - q).sum() / 2


@pytest.mark.parametrize("mechanism", EVERY.values(), ids=EVERY)
class TestClients:
    def test_a_report_travels_as_json(self, mechanism):
        place = (3, 1) if mechanism in CELLS.values() else (320.0, 410.0)
        report = mechanism.client(place)
        again = local.Report.from_json(report.to_json())
        assert again == report
        assert not report.seeded
        counts = mechanism.aggregate([again])
        assert (counts.n, counts.seeded) == (1, False)
        np.testing.assert_array_equal(counts.values, mechanism.aggregate(report).values)

    def test_a_seed_is_confessed(self, mechanism):
        place = (3, 1) if mechanism in CELLS.values() else (320.0, 410.0)
        seeded = mechanism.client(place, rng=5)
        assert seeded == mechanism.client(place, rng=5)
        assert (seeded.seeded, mechanism.client(place).seeded) == (True, False)
        both = mechanism.aggregate([mechanism.client(place)]) + mechanism.aggregate([seeded])
        assert both.seeded
        assert both.release(WINDOW).seeded

    def test_any_partition_gives_the_same_counts(self, mechanism):
        values = np.random.default_rng(3).integers(0, mechanism.randomizer.inputs, 500)
        reports = mechanism.clients(values, rng=4)
        parts = np.array_split(np.random.default_rng(5).permutation(500), [1, 100, 350])
        total = sum(mechanism.aggregate(replace(reports, rows=reports.rows[part])) for part in parts)
        np.testing.assert_array_equal(total.values, mechanism.aggregate(reports).values)
        assert total.n == 500
        one_by_one = mechanism.aggregate(list(reports)[:50])
        np.testing.assert_array_equal(
            one_by_one.values, mechanism.aggregate(replace(reports, rows=reports.rows[:50])).values
        )

    def test_counts_travel_as_json(self, mechanism, tmp_path):
        counts = mechanism.simulate(PATTERN, rng=1)
        again = local.aggregate_files(mechanism, local.write_counts(counts, tmp_path / "a.json", window=WINDOW))
        np.testing.assert_array_equal(again.values, counts.values)
        assert (again.n, again.seeded) == (4000, True)

    def test_what_is_released_is_near_the_truth(self, mechanism):
        """Much nearer than the uniform distribution; a grid that is transposed or turned is farther away."""
        counts = mechanism.simulate(PATTERN, rng=1)
        release = counts.release(WINDOW)
        assert release.intensity.total == pytest.approx(4000)
        shape = (5, 5) if mechanism in CELLS.values() else (5, 4)
        mids = [(np.arange(k) + 0.5) / k * side for k, side in zip(shape, (1000, 800), strict=True)]
        places = np.array([[x, y] for x in mids[0] for y in mids[1]])
        shares = (release.intensity(places) * 800_000 / len(places) / 4000).reshape(shape)
        assert tv(shares, truth(shape)) < tv(np.full(shape, 1 / shares.size), truth(shape)) * 0.7
        if shape == (5, 5):
            assert (
                tv(shares, truth(shape)) < min(tv(shares.T, truth(shape)), tv(shares[::-1, ::-1], truth(shape))) / 1.5
            )
        if mechanism in CELLS.values():
            np.testing.assert_allclose(shares, mechanism.estimate(counts), atol=1e-12)
            np.testing.assert_allclose(shares, release.distribution, atol=1e-12)

    @pytest.mark.exhaustive
    def test_fast_counts_have_the_same_law(self, mechanism):
        """Means of each count over 60 runs, by a test of false alarm 1e-8 in all; fast ones are never private."""
        fast = np.array([mechanism.simulate(PATTERN, rng=k, fast=True).values for k in range(60)], dtype=float)
        # The reports of all runs at once: the sum is that of 60 runs.
        of_grid = mechanism in GRIDS.values()
        values = mechanism.values(HOMES) if of_grid else mechanism.plan(WINDOW, n=4000).statistic.values(PATTERN)
        real = mechanism.aggregate(mechanism.clients(np.tile(values, 60), rng=60)).values / 60
        spread = np.sqrt(2 * fast.var(axis=0) / 60 + 1e-9)
        assert np.abs(real - fast.mean(axis=0)).max() < 9 * spread.max()
        assert mechanism.simulate(PATTERN, fast=True).seeded

    @pytest.mark.exhaustive
    def test_a_plan_is_what_the_release_has(self, mechanism, tmp_path):
        release = mechanism.release(PATTERN)
        assert release.guarantee.to_dict() == mechanism.check(WINDOW, n=4000).to_dict()
        assert release.guarantee.epsilon() <= 2.0
        folder = release.save(tmp_path / "public", patterns=0)
        assert verify(folder).holds
        again = load_release(folder)
        assert type(again) is type(release)
        np.testing.assert_array_equal(again.intensity(HOMES[:9]), release.intensity(HOMES[:9]))

    def test_reports_of_others_are_refused(self, mechanism):
        other = replace(mechanism, epsilon=1.0)
        place = (3, 1) if mechanism in CELLS.values() else (320.0, 410.0)
        with pytest.raises(InputError, match=r"^reports: some are not of"):
            mechanism.aggregate([other.client(place)])
        with pytest.raises(InputError, match="cannot be added"):
            mechanism.simulate(PATTERN, rng=1) + other.simulate(PATTERN, rng=1)


class TestTampering:
    """Entries of a certificate are derived again from its own numbers."""

    @pytest.mark.parametrize(
        ("mechanism", "change"),
        [
            (CELLS["disk"], lambda p: p["randomizer"].update(epsilon=1.0)),
            (CELLS["disk"], lambda p: p["randomizer"].update(kind="hybrid-area")),
            (CELLS["disk"], lambda p: p["mesh"].update(shape=[5, 6])),
            (CELLS["em"], lambda p: p["estimator"]["settings"].pop("tolerance")),
            (CELLS["disk"], lambda p: p["estimator"]["settings"].update(estimator="em")),
            (CELLS["disk"], lambda p: p["estimator"]["settings"].update(tolerance=1.0)),
            (CELLS["disk"], lambda p: p.update(epsilon=1.0)),
            (CELLS["geo-i"], lambda p: p["randomizer"].update(cells=6)),
            (GRIDS["optimized-unary"], lambda p: p.update(oracle="randomised")),
            (GRIDS["optimized-unary"], lambda p: p.update(columns=3)),
            (GRIDS["optimized-unary"], lambda p: p["estimator"].update(post="none")),
            (GRIDS["optimized-unary"], lambda p: p["estimator"].update(consistent=0)),
            # Strips instead of squares: cells that share a side would be told apart by four times epsilon.
            (CELLS["geo-i"], lambda p: p["mesh"].update(shape=[26, 2])),
            (CELLS["geo-i"], lambda p: p["randomizer"].update(subset=2)),
            (CELLS["disk"], lambda p: p.update(n=3001)),
            (CELLS["disk"], lambda p: p.update(n=4000.0)),
        ],
    )
    def test_is_found(self, mechanism, change, tmp_path):
        folder = mechanism.release(PATTERN).save(tmp_path / "public", patterns=0)
        assert verify(folder).holds
        file = folder / "certificate.json"
        cert = json.loads(file.read_text())
        change(cert["parameters"])
        cert.pop("content_hash")
        cert["content_hash"] = content_hash(cert)
        file.write_text(json.dumps(cert))
        assert not verify(folder).holds

    def test_more_reports_than_persons_are_found(self, tmp_path):
        """Both levels of a grid together: whoever reports twice spends twice."""
        folder = local.AdvancedAdaptiveGrid(WINDOW, epsilon=1.0).release(PATTERN).save(tmp_path / "public", patterns=0)
        assert verify(folder).holds
        cert = read(folder)
        cert["parameters"]["n"] -= 1
        reseal(folder, cert)
        assert "bound" in [check.name for check in verify(folder).checks if not check.holds]

    def test_counts_of_other_numbers_of_reports_do_not_load(self, tmp_path):
        plan = CELLS["disk"].plan(WINDOW, n=5).statistic
        lattice = np.zeros(plan.randomizer.size, dtype=int)
        lattice[3] = 4
        data = {"lattice": lattice.tolist(), "noise": "", "seeded": False}
        with pytest.raises(InputError, match="not those of so many reports"):
            plan.restore(data)

    @pytest.mark.parametrize("change", [-1, 10**9])
    def test_counts_that_nobody_reports_do_not_verify(self, change, tmp_path):
        folder = CELLS["disk"].release(PATTERN).save(tmp_path / "public", patterns=0)
        statistic = json.loads((folder / "statistic.json").read_text())
        statistic["lattice"][0] = change
        (folder / "statistic.json").write_text(plain_text(statistic))
        cert = read(folder)
        cert["files"]["statistic.json"] = file_hash(folder / "statistic.json")
        reseal(folder, cert)
        assert [check.name for check in verify(folder).checks if not check.holds] == ["statistic"]

    def test_counts_are_certified_by_their_own_mechanism_alone(self):
        """Reports at epsilon 6 must not get a certificate that says 1."""
        loud, quiet = (local.DiskAreaMechanism(epsilon, cells=5, radius=1) for epsilon in (6.0, 1.0))
        counts = loud.simulate(PATTERN, rng=1)
        for use in (quiet.estimate, lambda counts: quiet.release_counts(counts, WINDOW)):
            with pytest.raises(InputError, match="are of reports to"):
                use(counts)
        with pytest.raises(InputError, match="not those of so many reports"):
            replace(counts, n=100).release(WINDOW)

    def test_grids_with_equally_many_cells_are_told_apart(self):
        wide, tall = (local.UniformGrid(WINDOW, epsilon=1.0, cells=cells) for cells in ((4, 6), (6, 4)))
        with pytest.raises(InputError, match="cannot be added"):
            wide.simulate(HOMES, rng=1) + tall.simulate(HOMES, rng=1)
        with pytest.raises(InputError, match=r"^reports: some are not of"):
            wide.aggregate(tall.clients([1, 2]))
        assert wide.aggregate(replace(wide, post="clip").clients([1, 2])).n == 2


class TestAdaptiveGrids:
    KINDS = (local.PrivAG(WINDOW, epsilon=3.0, alpha=0.1), local.AdvancedAdaptiveGrid(WINDOW, epsilon=3.0))

    @pytest.mark.parametrize("mechanism", KINDS, ids=["PrivAG", "AAG"])
    def test_rounds_with_machines_of_their_own(self, mechanism):
        """Clients of both rounds, JSON in between, and answers as near to the truth as those of one process."""
        groups = np.split(np.random.default_rng(1).permutation(4000), [int(mechanism.sigma * 4000)])
        one = mechanism.first(4000)
        alone, rest = HOMES[groups[0][:50]], HOMES[groups[0][50:]]
        sent = [one.client(xy, rng=np.random.default_rng(k)) for k, xy in enumerate(alone)]
        first = one.aggregate([local.Report.from_json(report.to_json()) for report in sent])
        first = first + one.aggregate(one.clients(one.values(rest), rng=50))
        two = mechanism.second(first, 4000)
        second = two.aggregate(two.clients(two.values(HOMES[groups[1]]), rng=2))
        both = mechanism.combine(first, second, 4000)
        queries = query_workload(WINDOW.bounds, 0.1, 50, rng=1)
        exact = true_answers(HOMES, queries, WINDOW.bounds)
        apart, together = both.query(queries), mechanism.simulate(PATTERN, rng=3).query(queries)
        assert average_query_error(exact, apart, 4000) < 0.5 < average_query_error(exact, np.zeros(50), 4000)
        assert average_query_error(exact, together, 4000) < 0.5
        release = both.release()
        assert release.seeded
        np.testing.assert_allclose(release.query(queries), apart)
        assert release.intensity.total == pytest.approx(4000)

    @pytest.mark.parametrize("run", ["simulate", "measure"])
    @pytest.mark.parametrize("mechanism", KINDS, ids=["PrivAG", "AAG"])
    def test_who_reports_in_which_round_is_drawn(self, mechanism, run):
        """Persons of one place come first in the file, and each round sees half there; taken in order, one sees none.

        The rounds' shares err by sampling and by noise, with a standard deviation of at most .02: .15 is seven of them.
        """
        mechanism = replace(mechanism, epsilon=6.0)
        here, there = (100.0, 100.0), (900.0, 700.0)
        homes = PointPattern(np.repeat([here, there], 2000, axis=0), WINDOW)
        if run == "simulate":
            counts = mechanism.simulate(homes, rng=7)
            plan, lattice = counts.plan, np.concatenate([counts.first.values, counts.second.values])
        else:
            plan = mechanism.plan(n=4000).statistic
            lattice = plan.measure(homes, rng=7).lattice
        first = int(mechanism.sigma * 4000)
        for level, reports in zip(plan.levels(lattice), (first, 4000 - first), strict=True):
            assert level.reports == reports
            assert (np.abs(level.shares[level.grid.locate([here, there])] - 0.5) < 0.15).all()

    @pytest.mark.parametrize("n", [4000, 100_003])
    @pytest.mark.parametrize("share", [0.25, 0.4])
    @pytest.mark.parametrize("rounding", ["floor", "nearest", "ceil"])
    def test_sides_to_the_cell(self, n, share, rounding):
        """The paper's equations with each number in its place: both constants, the share of all persons, the rounding.

        Half of the first round says one cell and the others say all alike; sides are those of the shares that these
        counts stand for.
        """
        mechanism = local.AdvancedAdaptiveGrid(
            WINDOW, epsilon=2.0, alpha1=0.03, alpha2=0.7, sigma=share, rounding_g1=rounding, rounding_g2=rounding,
            oracle="randomized-response",
        )  # fmt: skip
        whole = {"floor": math.floor, "nearest": lambda side: math.floor(side + 0.5), "ceil": math.ceil}[rounding]
        signal = (math.exp(2) - 1) / math.sqrt(math.exp(2))
        one, reports = mechanism.first(n), int(share * n)
        assert len(one.grid) == whole(math.sqrt(2 * 0.03 * signal * math.sqrt(n))) ** 2
        counts = np.full(len(one.grid), reports // 2 // len(one.grid))
        counts[3] += reports - counts.sum()
        p, q = float(one.randomizer.p), float(one.randomizer.q)
        shares = np.clip((counts / reports - q) / (p - q), 0, 1)
        sides = [max(1, whole(math.sqrt(2 * 0.7 * f * signal * math.sqrt((1 - share) * n)))) for f in shares]
        first = local.Counts(one, counts, reports, True)
        assert len(set(sides)) > 1
        assert mechanism.second(first, n).grid.pieces.tolist() == [side**2 for side in sides]

    @pytest.mark.parametrize("mechanism", KINDS, ids=["PrivAG", "AAG"])
    def test_an_answer_about_everybody_is_nearly_n(self, mechanism):
        """Without the factor n / n2 it would be (1 - sigma) n."""
        total = np.mean([mechanism.simulate(PATTERN, rng=k, fast=True).query([WINDOW.bounds])[0] for k in range(10)])
        assert total == pytest.approx(4000, rel=0.1)

    def test_consistency_brings_answers_nearer(self):
        """Squared errors of large queries over 20 runs: the first round's reports are worth something."""
        queries = query_workload(WINDOW.bounds, 0.25, 30, rng=1)
        exact = true_answers(HOMES, queries, WINDOW.bounds)
        mechanism, errors = self.KINDS[1], {}
        for consistent in (False, True):
            each = replace(mechanism, consistent=consistent)
            runs = [each.simulate(PATTERN, rng=k, fast=True).query(queries) - exact for k in range(20)]
            errors[consistent] = np.mean(np.square(runs))
        assert errors[True] < 0.9 * errors[False]

    def test_rounds_of_others_are_refused(self):
        mechanism, loud = self.KINDS[1], replace(self.KINDS[1], epsilon=9.0)
        first, second = (one.first(4000).simulate(HOMES[:2000], rng=1) for one in (mechanism, loud))
        with pytest.raises(InputError, match="are of reports to"):
            mechanism.second(second, 4000)
        grid = mechanism.second(first, 4000).grid
        other = local.SecondRound(WINDOW, epsilon=3.0, grid=uniform_grid(WINDOW.bounds, len(grid), 1))
        with pytest.raises(InputError, match="are of reports to"):
            mechanism.combine(first, other.simulate(HOMES[2000:], rng=2), 4000)

    def test_nobody_reports_twice(self):
        with pytest.raises(InputError, match="together at most n"):
            AdaptiveGridStatistic(WINDOW, 1.0, 100, (60, 50))

    def test_there_is_no_client_of_both_rounds(self):
        for call in (lambda m: m.client((1.0, 2.0)), lambda m: m.aggregate([]), lambda m: m.matrix()):
            with pytest.raises(InputError, match="round"):
                call(self.KINDS[0])
        with pytest.raises(InputError, match="one round"):
            self.KINDS[0].second(self.KINDS[0].first(4000).simulate(HOMES[:800], rng=1), 4000).plan(WINDOW, n=3)

    def test_another_second_level_does_not_load(self, tmp_path):
        release = self.KINDS[1].release(PATTERN)
        plan = replace(release.statistic.definition, cells=release.statistic.definition.cells + 1)
        with pytest.raises(InputError, match="lead to another second level"):
            plan.restore(release.statistic.to_dict())


class TestSettings:
    """Every setting of a mechanism reaches its law, its plan and its estimate."""

    def test_radii(self):
        assert local.DiskAreaMechanism(3.5).randomizer.radius == 3
        assert local.DiskAreaMechanism(3.5, radius=0).matrix().shape == (225, 225)
        assert local.HybridUniformExponential(3.5, cells=5, radius=0).randomizer.radius == 0
        assert local.MultidimensionalSquareWave(1.0, cells=5, half_width=0).randomizer.half_width == 0

    def test_sides(self):
        assert local.UniformGrid.sized((0, 0, 1, 1), epsilon=1.0, n=573_703).cells == (9, 9)
        side = [len(local.PrivAG((0, 0, 1, 1), epsilon=e).first(573_703).grid) for e in (0.5, 1.0, 3.0, 5.0)]
        assert side == [16, 36, 121, 361]

    @pytest.mark.parametrize("change", [{"margin": 0.3}, {"pieces": "literal_floor"}, {"rounding_g2": "ceil"}])
    def test_cuts(self, change):
        usual = local.AdvancedAdaptiveGrid(WINDOW, epsilon=3.0, alpha2=2.0)
        one, other = (m.simulate(PATTERN, rng=1).grid for m in (usual, replace(usual, **change)))
        assert one.cells.shape != other.cells.shape or not np.allclose(one.cells, other.cells)
        assert replace(usual, **change).plan(n=9).statistic.parameters() != usual.plan(n=9).statistic.parameters()

    def test_the_best_oracle_has_a_name_of_its_own_on_certificates(self):
        for mechanism in (
            local.UniformGrid(WINDOW, epsilon=1.0, cells=(5, 4), oracle="auto"),
            local.PrivAG(WINDOW, epsilon=1.0, alpha=0.2, oracle="auto"),
        ):
            plan = mechanism.plan(n=40_000).statistic
            assert plan.parameters()["oracle"] == "least-variance"
            assert plan.randomizers[0].kind == "subset-selection"
            with pytest.raises(InputError, match="oracle"):
                replace(plan, oracle="auto")
        with pytest.raises(InputError, match="oracle"):
            local.UniformGrid(WINDOW, epsilon=1.0, oracle="least-variance")

    def test_both_rounds_take_part_unless_told_otherwise(self):
        assert local.PrivAG(WINDOW, epsilon=1.0).consistent
        assert local.AdvancedAdaptiveGrid(WINDOW, epsilon=1.0).plan(n=9).estimator.consistent

    def test_one_seeded_round_is_enough_to_be_called_seeded(self):
        mechanism = local.PrivAG(WINDOW, epsilon=3.0)
        for seeds in ((None, 1), (1, None)):
            first = mechanism.first(4000).simulate(HOMES[:800], rng=seeds[0])
            second = mechanism.second(first, 4000).simulate(HOMES[800:], rng=seeds[1])
            assert mechanism.combine(first, second, 4000).release().seeded

    def test_an_estimate_that_is_not_done_says_so(self):
        hasty = replace(CELLS["disk"], max_iter=1)
        with pytest.warns(InformationWarning, match="max_iter = 1"):
            hasty.estimate(hasty.simulate(PATTERN, rng=1))

    def test_places(self):
        mechanism = CELLS["disk"]
        assert mechanism.cell((1000, 800), WINDOW) == (4, 4)
        assert mechanism.cell((399.9, 0), WINDOW) == (1, 0)
        assert mechanism.cell((-5, 900), WINDOW, outside="clip") == (0, 4)
        i, j = (
            (mechanism.plan(WINDOW, n=4000).statistic.values(PATTERN) // 5).tolist()[7],
            mechanism.cell(HOMES[7], WINDOW),
        )
        assert i == j[0]
        grid = GRIDS["local-hashing"]
        for outside in (mechanism.cell, lambda xy, window: grid.simulate([xy])):
            with pytest.raises(InputError, match="outside"):
                outside((-5, 900), WINDOW)
        assert grid.simulate([(-5, 900), (1, 1)], rng=1, outside="drop").n == 1
        assert grid.simulate([(-5, 900), (1, 1)], rng=1, outside="clip").n == 2
        np.testing.assert_array_equal(mechanism.clients([(1, 2)], 3).rows, mechanism.clients([7], 3).rows)
        np.testing.assert_array_equal(grid.clients([(1, 1)], 3).rows, grid.clients([0], 3).rows)

    def test_a_round_is_broadcast_as_json(self):
        mechanism = local.AdvancedAdaptiveGrid(CUT, epsilon=3.0)
        first = mechanism.first(4000).simulate(HOMES[:2000], rng=1)
        two = mechanism.second(first, 4000)
        text = local.description(two, two.window)
        device = Client.from_json(text)
        assert two.aggregate([device.report(xy) for xy in HOMES[2000:2005]]).n == 5
        for changed in ("", "{}", "[1]", text.replace('"columns"', '"column"')):
            with pytest.raises(InputError):
                Client.from_json(changed)

    def test_an_idle_machine_adds_nothing(self, tmp_path):
        mechanism = CELLS["disk"]
        path = local.write_counts(mechanism.aggregate([]), tmp_path / "a.json", window=WINDOW)
        idle = local.aggregate_files(mechanism, path)
        assert (idle + mechanism.simulate(PATTERN, rng=1)).n == 4000


TWO_ROUNDS = {
    "privag": local.PrivAG(WINDOW, epsilon=2.0),
    "aag": local.AdvancedAdaptiveGrid(WINDOW, epsilon=2.0),
}
ON_GRIDS = GRIDS | TWO_ROUNDS
AWAY = (-5.0, 900.0)


def with_one_at(place, n=300):
    homes = HOMES[:n].copy()
    homes[7] = place
    return homes


def public(release):
    """All that a release states, but the cells of a second round, which follow from noised counts."""
    stated = build(release, {})
    stated["parameters"].pop("cells", None)
    return stated | {"content_hash": None, "words": repr(release)}


def stated_n(release):
    return release.parameters()["n"]


def doors(tmp_path):
    """Every way from places (n, 2) to a number of reports that becomes public, by name."""
    import pandas as pd

    def in_a_file(xy):
        points, out = tmp_path / "points.csv", tmp_path / f"reports-{len(list(tmp_path.iterdir()))}.csv"
        pd.DataFrame(xy, columns=["x", "y"]).to_csv(points, index=False)
        return local.perturb_file(GRIDS["local-hashing"], points, out, window=WINDOW)

    def walks(xy):
        return stated_n(local.LDPTrace(epsilon=2.0, cells=3, max_length=5, user=None).release(PointPattern(xy, WINDOW)))

    found = {"file": in_a_file, "trajectories": walks}
    for word in ("raise", "clip", "drop"):
        for name, grid in ON_GRIDS.items():
            found[f"simulate {name} {word}"] = lambda xy, grid=grid, word=word: stated_n(
                grid.simulate(xy, outside=word).release()
            )
        for name, grid in GRIDS.items():
            found[f"values {name} {word}"] = lambda xy, grid=grid, word=word: stated_n(
                grid.aggregate(grid.clients(grid.values(xy, outside=word))).release()
            )
        for name, cells in CELLS.items():
            found[f"cell {name} {word}"] = lambda xy, cells=cells, word=word: stated_n(
                cells.aggregate(
                    cells.clients(np.array([cells.cell(place, WINDOW, outside=word) for place in xy]))
                ).release(WINDOW)
            )
    for name, mechanism in EVERY.items():
        found[f"pattern {name}"] = lambda xy, mechanism=mechanism: stated_n(mechanism.release(PointPattern(xy, WINDOW)))
    return found


class TestPersonsOutside:
    """The number of reports is public, so that nobody's place may decide whether they report."""

    def test_no_door_leaves_anybody_out(self, tmp_path):
        """Neighbours, one with a person outside: every entry point tells the same number or refuses the other."""
        refused = set()
        for name, door in doors(tmp_path).items():
            try:
                assert door(with_one_at(AWAY)) == 300, name
            except InputError:
                refused.add(name)
                if "drop" not in name:
                    assert door(with_one_at((500, 400))) == 300, name
        assert not any("clip" in name for name in refused)
        assert {name for name in doors(tmp_path) if "drop" in name} <= refused

    @pytest.mark.parametrize("mechanism", ON_GRIDS.values(), ids=ON_GRIDS)
    def test_leaving_out_is_refused_before_a_point_is_read(self, mechanism):
        for places in (with_one_at(AWAY), with_one_at((500, 400)), PATTERN, "no points"):
            with pytest.raises(InputError, match=r"^outside: 'drop' would show .* take 'clip'"):
                mechanism.simulate(places, outside="drop")

    @pytest.mark.parametrize("mechanism", ON_GRIDS.values(), ids=ON_GRIDS)
    def test_studies_may_leave_out_and_are_marked(self, mechanism):
        for how in ({"rng": 1}, {"fast": True}, {"rng": np.random.default_rng(2), "fast": True}):
            counts = mechanism.simulate(with_one_at(AWAY), outside="drop", **how)
            assert counts.n == 299
            assert build(counts.release(), {})["releasable"] is False

    @pytest.mark.parametrize("mechanism", ON_GRIDS.values(), ids=ON_GRIDS)
    def test_all_that_is_public_is_the_same_of_neighbours(self, mechanism):
        places = [(500, 400), AWAY, (1e9, -1e9), (1000.0001, 3)]
        told = [public(mechanism.simulate(with_one_at(place), outside="clip").release()) for place in places]
        assert all(each == told[0] for each in told)
        assert told[0]["parameters"]["n"] == 300

    @pytest.mark.parametrize("mechanism", ON_GRIDS.values(), ids=ON_GRIDS)
    def test_a_person_outside_is_treated_as_one_in_the_nearest_cell(self, mechanism):
        """A public map of places, and Theorem L from there on: the very same run, bit by bit."""
        for place, nearest in {AWAY: (0, 800), (400, -1e9): (400, 0), (1e12, 1e12): (1000, 800)}.items():
            runs = [mechanism.simulate(with_one_at(each), rng=5, outside="clip") for each in (place, nearest)]
            one, other = (np.asarray(run.release().statistic.lattice) for run in runs)
            np.testing.assert_array_equal(one, other)

    def test_a_device_outside_reports_too(self):
        grid = GRIDS["local-hashing"]
        assert grid.client(AWAY, 5, outside="clip") == grid.client((0, 800), 5)
        for word, told in (("raise", "xy: some points lie outside"), ("drop", "outside: 'drop' would show")):
            with pytest.raises(InputError, match=f"^{told}"):
                grid.client(AWAY, outside=word)

    def test_values_are_of_everybody(self):
        grid = GRIDS["local-hashing"]
        assert grid.values(with_one_at(AWAY), outside="clip")[7] == grid.value((0, 800))
        with pytest.raises(InputError, match=r"^outside: 'drop' would show"):
            grid.values(with_one_at(AWAY), outside="drop")
        with pytest.raises(InputError, match=r"^outside: 'drop' would show"):
            CELLS["disk"].cell(AWAY, WINDOW, outside="drop")


class TestWindows:
    def test_cells_outside_a_polygon_get_nothing(self):
        inside = PointPattern(HOMES[CUT.contains(HOMES)], CUT)
        grids = (local.UniformGrid(CUT, epsilon=2.0, cells=9, post=post) for post in ("field", "norm-sub"))
        for mechanism in (CELLS["disk"], CELLS["wave"], CELLS["geo-i"], *grids):
            release = mechanism.simulate(inside, rng=1).release(CUT)
            assert release.intensity.total == pytest.approx(len(inside))
            synthetic = release.sample(1, rng=1)[0]
            assert CUT.contains(synthetic.xy).all()
        assert release.intensity.mesh.find.cells.size < 81
        disk = CELLS["disk"].simulate(inside, rng=1).release(CUT)
        assert disk.distribution[0, 4] == 0

    def test_a_grid_has_a_window_of_its_own(self):
        with pytest.raises(InputError, match=r"^domain: it is not the window"):
            GRIDS["local-hashing"].plan(CUT, n=5)
        with pytest.raises(InputError, match=r"^window: needs a Window"):
            local.UniformGrid(7, epsilon=1.0)

    def test_streets_are_refused_by_name(self):
        from dpppsynth.datasets import soho_streets

        with pytest.raises(InputError, match="local mechanisms work on windows"):
            CELLS["disk"].check(soho_streets(), n=5)

    def test_marks_are_refused(self):
        marked = PointPattern(HOMES, WINDOW, {"age": np.arange(4000)})
        for mechanism in (CELLS["disk"], GRIDS["local-hashing"]):
            with pytest.raises(InputError, match="marks"):
                mechanism.simulate(marked)

    def test_meshes_of_cells(self):
        """Areas, places and samples of uneven cells; and cells that a window leaves out."""
        grid = even_cells(uniform_grid(CUT.bounds, 3, 2), [1, 2, 3, 1, 2, 1])
        mesh = rectangle_mesh(CUT, grid)
        assert mesh.element_measure.sum() == pytest.approx(CUT.area)
        places = np.random.default_rng(1).uniform([0, 0], [1000, 800], (500, 2))
        places = places[CUT.contains(places)]
        np.testing.assert_array_equal(mesh.find.cells[mesh.locate(places)], grid.locate(places))
        values = np.zeros(len(mesh.elements))
        values[mesh.locate(np.array([[990.0, 10.0]]))] = 1.0
        drawn = poisson_pattern(PiecewiseConstant(mesh, values), 1).xy
        assert (grid.locate(drawn) == grid.locate([[990.0, 10.0]])).all()
        with pytest.raises(InputError, match=r"^grid: it must tile"):
            rectangle_mesh(CUT, uniform_grid((0, 0, 1, 1), 2, 2))


class TestRelations:
    def test_local_is_stronger_than_replacing_a_point(self):
        assert Local().implies(ReplaceOne())
        assert Local().implies(AlphaNeighbours(25.0))
        assert not Local().implies(ReplaceOne(2))
        assert not ReplaceOne().implies(Local())
        assert not GeoIndistinguishability(5).implies(Local())
        assert not Local().implies(GeoIndistinguishability(5))
        for relation in (Local(), GeoIndistinguishability(7)):
            assert relation_from_dict(relation.to_dict()) == relation

    def test_of_geo_indistinguishability_the_distance_is_told(self):
        guarantee = CELLS["geo-i"].check(WINDOW, n=5)
        assert guarantee.relation == GeoIndistinguishability(5)
        assert dict(guarantee.by_distance)[3.0] == pytest.approx(3 * 2.0)
        # From corner to corner.
        assert max(guarantee.by_distance) == pytest.approx((4 * 2**0.5, 8 * 2**0.5))
        assert "not-local-privacy" in guarantee.assumptions

    def test_a_round_that_spends_more_is_refused(self):
        with pytest.raises(PrivacyCheckError):
            local_rounds(1.0, [LocalHashing(epsilon=1.0, domain=4), RandomizedResponse(epsilon=1.1, domain=4)])
        with pytest.raises(PrivacyCheckError):
            local_rounds(9.0, [CELLS["geo-i"].randomizer])

    @pytest.mark.parametrize("mechanism", EVERY.values(), ids=EVERY)
    def test_laws_are_made_again_from_their_numbers(self, mechanism):
        stated = json.loads(json.dumps(mechanism.randomizer.parameters()))
        again = randomizer_from_dict(stated)
        assert again.spent == mechanism.randomizer.spent
        for wrong in ({**stated, "more": 1}, {**stated, "kind": "x"}, {**stated, "epsilon": -1.0}, {"kind": "x"}):
            with pytest.raises(InputError):
                randomizer_from_dict(wrong)


class TestBaselines:
    def test_the_best_side_has_the_least_error_and_the_literal_law_is_no_mechanism(self):
        queries = query_workload(WINDOW.bounds, 0.04, 40, rng=1)
        best = baselines.best_uniform_grid(HOMES, WINDOW, queries, epsilon=1.0, sides=[2, 8, 60], rng=1)
        assert best.side == min(best.errors, key=best.errors.get)
        with pytest.raises(InputError, match="not be released"):
            baselines.LiteralHybridUniformExponential(2.0, cells=5).plan(WINDOW, n=5)
        with pytest.raises(InputError, match="unsafe=True"):
            baselines.LiteralHybridUniformExponential(0.5, cells=5, radius=2)

    def test_the_printed_weights_do_not_depend_on_epsilon(self):
        one, other = (baselines.LiteralHybridUniformExponential(e, cells=5, radius=2).matrix() for e in (2.0, 4.0))
        np.testing.assert_array_equal(one, other)


def test_reports_of_clients_and_of_a_batch_have_one_law():
    """Chi-square of 2000 single clients and of as many at once; false alarm 1e-9 each."""
    mechanism = CELLS["disk"]
    expected = mechanism.matrix()[:, 7] * 2000
    source = np.random.default_rng(2)
    single = mechanism.aggregate([mechanism.client((1, 2), rng=source) for _ in range(2000)])
    batch = mechanism.aggregate(mechanism.clients(np.full(2000, 7), rng=3))
    for counts in (single, batch):
        chi = ((counts.values - expected) ** 2 / expected).sum()
        assert stats.chi2.sf(chi, len(expected) - 1) > 1e-9

"""One report for each trajectory: its law, the lines behind the counts, releases, and what real clients send.

Statistical tests have fixed seeds; each would fail by chance, under another seed, with probability below 1e-6.
"""

import json
import math

import numpy as np
import pytest
import shapely
from scipy import stats
from support.command_line import run, spoken

from dpppsynth import load_release, local
from dpppsynth.core.errors import InputError
from dpppsynth.local import GridTrajectories
from dpppsynth.mechanisms.local.displacements import trajectory_values
from dpppsynth.mechanisms.local.randomizers.displacements import displaced, displacement_of
from dpppsynth.mechanisms.local.trajectories.walks import LineModel
from dpppsynth.privacy import Local, verify
from dpppsynth.randomizers import DisplacementLaw, randomizer_from_dict
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

WINDOW = Window.rectangle(0, 0, 500, 500, "EPSG:27700")
CUT = Window.polygon(shapely.Polygon([(0, 0), (500, 0), (500, 250), (250, 500), (0, 500)]), "EPSG:27700")


def walks(rng, n=2000, cells=5):
    """Two thirds go two cells east, one third stays; starts are in the western three columns."""
    i, j = rng.integers(0, 3, n), rng.integers(0, cells, n)
    start = i * cells + j
    end = np.where(rng.random(n) < 2 / 3, start + 2 * cells, start)
    return GridTrajectories(cells, np.stack([start, end], axis=1).ravel(), np.arange(0, 2 * n + 1, 2))


class TestLaw:
    def test_displacements_are_numbered_by_direction_and_distance(self):
        steps, far = displaced(3)
        for number, (step, length) in enumerate(zip(steps, far, strict=True)):
            assert displacement_of((step * length)[None], 3).tolist() == [number]
        assert displacement_of(np.array([[5, 0], [5, 1], [4, 3], [0, -7]]), 3).tolist() == [3, 3, 6, 21]

    def test_a_value_is_the_start_and_the_way_to_the_end(self):
        law = DisplacementLaw(epsilon=1.0, cells=4, reach=2, radius=1)
        round_trip = GridTrajectories(4, [5, 6, 7, 6, 5, 0, 4, 8, 12], [0, 5, 9])
        there, far = trajectory_values(law, round_trip).tolist()
        assert divmod(there, law.displacements) == (5, 0)
        assert divmod(far, law.displacements) == (0, 2)

    @pytest.mark.parametrize("epsilon", [0.3, 1.5, 4.0])
    def test_both_questions_have_the_whole_budget_and_no_report_has_more(self, epsilon):
        law = DisplacementLaw(epsilon=epsilon, cells=2, reach=1, radius=1)
        assert epsilon * (1 - 1e-9) <= law.spent <= epsilon
        assert all(epsilon * (1 - 1e-9) <= each.spent <= epsilon for each in law.oracles)
        matrix = law.matrix()
        assert matrix.sum(axis=0) == pytest.approx(np.ones(law.inputs))
        assert (matrix.max(axis=1) / matrix.min(axis=1)).max() <= math.exp(epsilon) * (1 + 1e-9)
        assert matrix[: law.start.size].sum(axis=0) == pytest.approx(np.full(law.inputs, 0.5))

    def test_reports_have_the_law_that_the_matrix_states(self):
        law = DisplacementLaw(epsilon=1.5, cells=2, reach=1, radius=0)
        value = 2 * law.displacements + 3
        reports = law.draw(np.full(60_000, value), np.random.default_rng(4))
        (first, second), (starts, ways) = law.by_question(law.count(reports))
        assert abs(first - 30_000) < 6 * math.sqrt(15_000)
        assert stats.chisquare(starts, first * law.start.matrix()[:, 2]).pvalue > 1e-7
        chance = float(law.displacement.p)
        assert abs(law.displacement.supports(ways)[3] - second * chance) < 6 * math.sqrt(second / 4)

    def test_the_question_tells_nothing(self):
        law = DisplacementLaw(epsilon=2.0, cells=3, reach=2, radius=1)
        for value in (0, law.inputs - 1):
            asked = law.draw(np.full(20_000, value), np.random.default_rng(5))[:, 0]
            assert abs(asked.sum() - 10_000) < 6 * math.sqrt(5000)

    def test_ratios_are_those_of_the_question(self):
        law = DisplacementLaw(epsilon=1.0, cells=2, reach=1, radius=0)
        one, other = 0, 3 * law.displacements + 4
        reports = law.draw(np.array([one] * 200 + [other] * 200), np.random.default_rng(6))
        ratios = law.log_ratio(reports, one, other)
        for row, found in zip(reports, ratios, strict=True):
            which, part = row[0], row[None, 1 : 1 + len(law.oracles[row[0]].columns)]
            answers = [int(law.answers(np.array([v]), which)[0]) for v in (one, other)]
            assert found == law.oracles[which].log_ratio(part, *answers)[0]
        assert np.abs(ratios).max() <= law.spent * (1 + 1e-12)

    def test_parameters_and_back(self):
        law = DisplacementLaw(epsilon=1.0, cells=3, reach=2, radius=1)
        again = randomizer_from_dict(json.loads(json.dumps(law.parameters())))
        assert again.parameters() == law.parameters()
        assert again.oracles[1].parameters() == law.oracles[1].parameters()

    @pytest.mark.parametrize(("name", "value"), [("cells", 65), ("cells", 0), ("reach", 0), ("reach", 17)])
    def test_sizes(self, name, value):
        with pytest.raises(InputError, match=f"{name}: needs a whole number"):
            DisplacementLaw(**{"epsilon": 1.0, "cells": 3, "reach": 2, "radius": 1, name: value})


class TestModel:
    def model(self, inside=None, reach=2):
        starts = np.zeros(25)
        starts[[0, 12, 24]] = 0.5, 0.3, 0.2
        moves = np.zeros(1 + 8 * reach)
        moves[[0, 1, 2, 4]] = 0.4, 0.2, 0.3, 0.1
        mask = np.ones(25, dtype=bool) if inside is None else inside
        return LineModel(cells=5, n=50, starts=starts, displacements=moves, reach=reach, inside=mask)

    def test_displacements_have_their_shares_although_some_would_leave(self):
        model = self.model()
        assert model.starts @ model.laws == pytest.approx(model.displacements, abs=1e-6)
        # From the corner at the east nobody goes on east.
        assert model.laws[24, [1, 2]].tolist() == [0.0, 0.0]

    def test_visits_are_those_of_the_lines(self):
        model = self.model()
        drawn = model.synthesize(200_000, rng=1)
        counted = np.bincount(drawn.values, minlength=25).reshape(5, 5) / 200_000
        assert np.abs(counted - model.visits).max() < 6 * math.sqrt(0.25 / 200_000)
        ends = drawn.values[drawn.offsets[1:] - 1]
        law = DisplacementLaw(epsilon=1.0, cells=5, reach=2, radius=1)
        found = np.bincount(trajectory_values(law, drawn) % law.displacements, minlength=17) / 200_000
        assert np.abs(found - model.displacements).max() < 6 * math.sqrt(0.25 / 200_000)
        assert len(ends) == 200_000

    def test_lines_go_from_neighbour_to_neighbour(self):
        drawn = self.model().synthesize(500, rng=2)
        assert drawn.mobility().values.tolist() == drawn.values.tolist()

    def test_nobody_ends_outside(self):
        inside = np.ones(25, dtype=bool)
        inside[10] = False
        model = self.model(inside)
        assert model.laws[0, 2] == 0.0
        ends = model.synthesize(5000, rng=3)
        assert 10 not in ends.values[ends.offsets[1:] - 1]


class TestEstimates:
    def test_starts_and_displacements_are_found(self):
        mechanism = local.LineTrace(epsilon=3.0, cells=5)
        paths = walks(np.random.default_rng(7), 40_000)
        model = mechanism.estimate(mechanism.simulate(paths, rng=8))
        truth = np.bincount(paths.values[::2], minlength=25) / 40_000
        assert np.abs(model.starts - truth).sum() / 2 < 0.1
        assert abs(model.displacements[2] - 2 / 3) < 0.03
        assert abs(model.displacements[0] - 1 / 3) < 0.03
        start, end = paths.values[::2], paths.values[1::2]
        between = start[end > start] + 5
        exact = np.bincount(np.concatenate([start, between, end[end > start]]), minlength=25)
        assert local.wasserstein2(exact.reshape(5, 5), model.expected_visits) < 0.6

    def test_nobody_answers_one_of_the_questions(self):
        law = DisplacementLaw(epsilon=1.0, cells=3, reach=1, radius=1)
        reports = law.draw(np.zeros(100, dtype=int), np.random.default_rng(9))
        for question in (0, 1):
            some = reports[reports[:, 0] == question]
            shares, moves = law.parts(law.count(some), len(some))
            assert shares.sum() == pytest.approx(1)
            assert moves.sum() == pytest.approx(1)


class TestMechanism:
    def pattern(self, window=WINDOW, n=300):
        rng = np.random.default_rng(10)
        start = rng.uniform([10, 10], [240, 240], (n, 2))
        xy = np.stack([start, start + np.array([200, 0])], axis=1).reshape(-1, 2)
        return PointPattern(xy, window, {"trajectory": np.repeat(np.arange(n), 2)})

    @pytest.mark.parametrize("window", [WINDOW, CUT])
    def test_a_release_is_certified_and_travels(self, window, tmp_path):
        release = local.LineTrace(2.0, cells=5).release(self.pattern(window))
        assert release.guarantee.relation == Local("trajectory")
        assert release.guarantee.epsilon() == pytest.approx(2.0)
        release.save(tmp_path / "out", patterns=1)
        assert verify(tmp_path / "out").holds
        again = load_release(tmp_path / "out")
        assert again.trajectories(20, rng=1).values.tolist() == release.trajectories(20, rng=1).values.tolist()
        # Each line counts once in each of its cells, those outside the window left out.
        assert again.intensity.total <= 300 * again.model.visits.sum() * (1 + 1e-9)
        assert window.contains(again.sample(1, rng=2)[0].xy).all()

    def test_real_clients_give_what_a_custodian_does(self):
        mechanism = local.LineTrace(2.0, cells=5)
        paths = walks(np.random.default_rng(11), 50)
        lines = [
            mechanism.client(np.stack(np.divmod(paths.part(k, k + 1).values, 5), axis=1), rng=k).to_json()
            for k in range(50)
        ]
        counts = mechanism.aggregate([local.Report.from_json(line) for line in lines])
        assert counts.n == 50
        release = counts.release(WINDOW)
        assert release.seeded
        assert release.mechanism == "displacements"
        assert mechanism.value([(0, 0), (2, 0), (0, 0)]) == 0
        with pytest.raises(InputError, match="one trajectory"):
            mechanism.client([(0, 5)])

    def test_a_trajectory_spends_epsilon_however_long(self):
        mechanism = local.LineTrace(1.0, cells=5)
        short, long = mechanism.client([(0, 0)], rng=1), mechanism.client([(0, 0), (4, 4)] * 500, rng=1)
        assert len(short.values) == len(long.values)
        assert mechanism.check(WINDOW, n=10).epsilon() <= 1.0

    def test_another_number_of_trajectories_is_refused(self):
        plan = local.LineTrace(1.0, cells=5).plan(WINDOW, n=299)
        with pytest.raises(InputError, match="another number of trajectories"):
            plan.release(self.pattern())

    def test_command_line(self, tmp_path):
        rows = [f"{x:.1f},{y:.1f},t{k // 2}" for k, (x, y) in enumerate(self.pattern(n=60).xy)]
        (tmp_path / "ways.csv").write_text("\n".join(["x,y,who", *rows]) + "\n")
        ask = ["--mechanism", "displacements", "--epsilon", 2, "--cells", 5, "--reach", 2, "--user", "who"]
        place = ["--window", "0,0,500,500"]
        run("synthesize", tmp_path / "ways.csv", *ask, *place, "--out", tmp_path / "o")
        assert "The certificate holds" in spoken(run("verify", tmp_path / "o"))
        said = spoken(run("check", *ask, *place, "--n", 60))
        assert "one from each of 60 persons" in said
        assert "up to 2 cells from start to end" in said

"""The second statement of local mechanisms, on an honest shuffler: certificates, refusals, reports, command line."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from support.command_line import run, spoken
from support.forgery import read, reseal
from support.seams import touched

from dpppsynth import load_release, local
from dpppsynth.auditing import audit
from dpppsynth.auditing.targets import target_of
from dpppsynth.contract import registry
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.statistic import Shuffle
from dpppsynth.privacy import shuffled_epsilon, verify
from dpppsynth.reporting import write_report
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

WINDOW = Window.rectangle(0, 0, 900, 900, "EPSG:27700")
N, HONEST, DELTA = 1200, 1000, 1e-7
SHUFFLE = {"shuffled": HONEST, "shuffle_delta": DELTA}
XY = np.random.default_rng(3).uniform(0, 900, (N, 2))
PATTERN = PointPattern(XY, WINDOW)
WALKS = PointPattern(XY, WINDOW, {"trajectory": np.arange(N) // 2})
PLACE = ["--window", "0,0,900,900", "--crs", "EPSG:27700"]
ASKED = ["--shuffled", HONEST, "--shuffle-delta", DELTA]


def mechanisms():
    yield local.DiskAreaMechanism(1.5, cells=4, **SHUFFLE)
    yield local.HybridUniformExponential(1.5, cells=3, **SHUFFLE)
    yield local.MultidimensionalSquareWave(1.5, cells=4, **SHUFFLE)
    yield local.RangeHierarchy(1.5, cells=4, **SHUFFLE)
    yield local.UniformGrid(WINDOW, epsilon=1.5, cells=3, oracle="randomized-response", **SHUFFLE)
    yield local.PrivAG(WINDOW, epsilon=1.5, sigma=0.5, shuffled=500, shuffle_delta=DELTA)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A saved release with a second statement; not to be changed."""
    path = tmp_path_factory.mktemp("shuffled") / "release"
    local.DiskAreaMechanism(1.5, cells=4, **SHUFFLE).release(PATTERN).save(path)
    return path


def forged(folder, tmp_path, change):
    """Verification of the release after a change of its certificate, with a hash that fits."""
    copy = shutil.copytree(folder, tmp_path / "forged")
    cert = read(copy)
    change(cert)
    reseal(copy, cert)
    return verify(copy)


class TestStatement:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("mechanism", list(mechanisms()), ids=lambda each: type(each).__name__)
    def test_beside_the_local_bound_which_stays(self, mechanism, tmp_path):
        plain = type(mechanism)(
            **{name: getattr(mechanism, name) for name in ("window", "epsilon", "cells", "oracle", "sigma")
               if hasattr(mechanism, name)}
        )  # fmt: skip
        release = mechanism.release(PATTERN)
        second = release.shuffled
        assert plain.plan(WINDOW, n=N).shuffled is None
        assert release.guarantee == plain.plan(WINDOW, n=N).guarantee
        assert 0 < second.epsilon < release.guarantee.epsilon() / 2
        assert second.delta == DELTA
        release.save(tmp_path / "out")
        checked = verify(tmp_path / "out")
        assert checked.holds
        assert checked.shuffled == second
        assert load_release(tmp_path / "out").shuffled == second

    @pytest.mark.slow
    def test_figures_are_those_of_the_theorem(self):
        disk = local.DiskAreaMechanism(1.5, cells=4, **SHUFFLE)
        assert disk.plan(WINDOW, n=N).shuffled.epsilon == shuffled_epsilon(disk.randomizer.spent, HONEST, DELTA)
        response = local.UniformGrid(WINDOW, epsilon=1.5, cells=3, oracle="randomized-response", **SHUFFLE)
        better = response.plan(n=N).shuffled.epsilon
        assert better < 0.95 * shuffled_epsilon(response.randomizer.spent, HONEST, DELTA)

    def test_rounds_of_two_laws_have_the_clones_of_any(self):
        """Response on few cells, in the first round, has more clones than are proved of the second's subsets."""
        grid = local.AdvancedAdaptiveGrid(WINDOW, epsilon=2.0, oracle="auto", shuffled=500, shuffle_delta=1e-6)
        plan = grid.plan(n=3000)
        (first,) = plan.statistic.randomizers
        assert first.clones > 1.4 * np.exp(-2.0)
        assert plan.shuffled.epsilon == shuffled_epsilon(2.0, 500, 1e-6)
        assert plan.shuffled.epsilon > 1.3 * shuffled_epsilon(2.0, 500, 1e-6, clones=first.clones)

    def test_audits_run_with_fewer_persons_than_are_honest(self):
        """Audits release for few persons, of whom fewer than the stated number may be honest."""
        for mechanism in (
            local.DiskAreaMechanism(1.5, cells=4, shuffled=20_000, shuffle_delta=1e-6),
            local.UniformGrid(WINDOW, epsilon=1.5, cells=3, shuffled=20_000, shuffle_delta=1e-6),
            local.LineTrace(1.5, cells=3, shuffled=20_000, shuffle_delta=1e-6),
        ):
            plan = mechanism.plan(WINDOW, n=30_000)
            assert registry.mechanism(plan.mechanism).audit(plan.statistic).smaller().shuffled is None

    def test_trajectories_compose_both_rounds(self, tmp_path):
        trace = local.LDPTrace(2.0, cells=3, max_length=4, shuffled=500, shuffle_delta=1e-6)
        release = trace.release(WALKS)
        first = float(trace.first.law.total)
        parts = [shuffled_epsilon(local_epsilon, 500, 5e-7) for local_epsilon in (first, 1.8)]
        assert sum(parts) <= release.shuffled.epsilon <= 1.001 * sum(parts)
        release.save(tmp_path / "out")
        assert verify(tmp_path / "out").holds

    def test_nothing_changes_for_those_who_do_not_ask(self, tmp_path):
        release = local.DiskAreaMechanism(1.5, cells=4).release(PATTERN)
        release.save(tmp_path / "out")
        cert = json.loads((tmp_path / "out" / "certificate.json").read_text())
        assert "shuffled" not in cert
        assert "shuffled" not in cert["parameters"]
        assert [check.name for check in verify(tmp_path / "out").checks][-1] == "bound"


class TestAudits:
    """A client's report among others, held to the second statement; false alarms are below 1e-6."""

    mechanisms = (
        local.DiskAreaMechanism(4.0, cells=4, shuffled=60, shuffle_delta=1e-6),
        local.UniformGrid(WINDOW, epsilon=4.0, cells=3, oracle="auto", shuffled=60, shuffle_delta=1e-6),
    )

    @pytest.mark.slow
    @pytest.mark.parametrize("mechanism", mechanisms, ids=lambda each: type(each).__name__)
    def test_find_a_statement_that_is_far_too_small(self, mechanism, monkeypatch):
        found = audit(mechanism.plan(WINDOW, n=N), trials=1000)
        assert not found.violated
        assert {f.statistic for f in found.findings} >= {"likelihood ratio", "likelihood ratio, shuffled"}
        stated = Shuffle.one_message

        def less(*args):
            statement = stated(*args)
            return replace(statement, epsilon=statement.epsilon / 8)

        monkeypatch.setattr(Shuffle, "one_message", less)
        found = audit(mechanism.plan(WINDOW, n=N), trials=3000)
        assert found.violated
        assert {f.statistic for f in found.findings if f.violated} <= {"likelihood ratio, shuffled", "counts, shuffled"}

    def test_many_reports_are_held_to_the_statement_of_fewer(self):
        plan = local.DiskAreaMechanism(2.0, cells=4, shuffled=20_000, shuffle_delta=1e-6).plan(WINDOW, n=30_000)
        target = target_of(plan)
        last = target.statistics[-1].claimed
        assert (last.level, last.slack) == (shuffled_epsilon(plan.statistic.randomizer.spent, 500, 1e-6), 1e-6)
        assert len(target.run(0)) == 500


class TestForgeries:
    def less(self, cert):
        cert["shuffled"]["epsilon"] *= 0.9

    def more(self, cert):
        cert["shuffled"]["epsilon"] *= 1.1

    def smaller_delta(self, cert):
        cert["shuffled"]["delta"] /= 10

    def more_reports(self, cert):
        cert["shuffled"]["reports"] += 1

    def fewer_assumptions(self, cert):
        cert["shuffled"]["assumes"].pop()

    def another_theorem(self, cert):
        cert["shuffled"]["theorem"] = "counts"

    def other_words(self, cert):
        cert["shuffled"]["assumes"][0] = "perfectly-private"

    def left_out(self, cert):
        del cert["shuffled"]

    def out_of_nothing(self, cert):
        del cert["parameters"]["shuffled"]

    def more_than_there_are(self, cert):
        cert["parameters"]["shuffled"]["reports"] = cert["shuffled"]["reports"] = N + 1

    def a_delta_that_promises_nothing(self, cert):
        cert["parameters"]["shuffled"]["delta"] = cert["shuffled"]["delta"] = 1 / N

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        "name",
        [
            "less", "more", "smaller_delta", "more_reports", "fewer_assumptions", "another_theorem", "other_words",
            "left_out", "out_of_nothing", "more_than_there_are", "a_delta_that_promises_nothing",
        ],
    )  # fmt: skip
    def test_are_refused(self, name, folder, tmp_path):
        assert verify(folder).holds
        found = forged(folder, tmp_path, getattr(self, name))
        assert not found.holds
        assert not found.checks[-1].holds or not found.checks[-2].holds

    def test_figures_that_are_none(self, folder, tmp_path):
        with pytest.raises(InputError, match="certificate"):
            forged(folder, tmp_path, lambda cert: cert["shuffled"].update(epsilon=0))


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "named"),
        [
            ({"shuffled": 10}, "shuffle_delta: shuffled needs it"),
            ({"shuffle_delta": 1e-6}, "shuffled: shuffle_delta needs it"),
            ({"shuffled": 0, "shuffle_delta": 1e-6}, "shuffled: needs a whole number"),
            ({"shuffled": 10, "shuffle_delta": 0.0}, "shuffle_delta: must lie strictly between 0 and 1"),
        ],
    )
    def test_settings(self, settings, named):
        for make in (
            lambda **given: local.DiskAreaMechanism(1.0, **given),
            lambda **given: local.AdvancedAdaptiveGrid(WINDOW, epsilon=1.0, **given),
            lambda **given: local.LDPTrace(1.0, cells=3, **given),
        ):
            with pytest.raises(InputError, match=named):
                make(**settings)

    def test_public_numbers_before_a_point_is_touched(self, monkeypatch):
        disk = local.DiskAreaMechanism(1.0, cells=3, shuffled=N + 1, shuffle_delta=1e-7)
        monkeypatch.setattr(type(disk.randomizer), "draw", touched)
        with pytest.raises(InputError, match=f"more than the {N} that are shuffled together"):
            disk.release(PATTERN)
        with pytest.raises(InputError, match=r"shuffle_delta: 0\.001 is 1/n or more"):
            local.DiskAreaMechanism(1.0, cells=3, shuffled=10, shuffle_delta=0.001).check(WINDOW, n=N)

    def test_the_smaller_round_counts(self):
        grid = local.AdvancedAdaptiveGrid(WINDOW, epsilon=1.0, sigma=0.25, shuffled=400, shuffle_delta=1e-7)
        with pytest.raises(InputError, match="more than the 300 that are shuffled together"):
            grid.plan(n=N)

    def test_geo_indistinguishability(self):
        with pytest.raises(InputError, match="nothing is stated of a shuffler under geo-indistinguishability"):
            local.SEMGeoI(1.0, cells=3, **SHUFFLE).check(WINDOW, n=N)


class TestInterfaces:
    def test_check_says_both(self):
        asked = ["check", "--mechanism", "disk-area", "--epsilon", 1.5, "--cells", 4, "--n", N, *PLACE]
        said = spoken(run(*asked, *ASKED))
        assert "The guarantee holds." in said
        assert "If moreover an honest shuffler mixes the reports" in said
        assert "Without the shuffler the bound above holds alone." in said
        found = json.loads(run(*asked, *ASKED, "--json").stdout)
        assert found["shuffled"]["reports"] == found["parameters"]["shuffled"]["reports"] == HONEST
        assert found["guarantee"]["profile"]["delta"] == 0
        assert "shuffler" not in spoken(run(*asked))
        run(*asked, "--shuffled", N + 1, "--shuffle-delta", DELTA, code=2)

    def test_verify_says_both(self, folder):
        said = spoken(run("verify", folder))
        assert "If moreover an honest shuffler" in said
        assert json.loads(run("verify", folder, "--json").stdout)["shuffled"]["delta"] == DELTA

    def test_reports_keep_them_apart(self, folder, tmp_path):
        import shutil

        shutil.copytree(folder, tmp_path / "own")
        page = write_report(tmp_path / "own").read_text()
        assert "A second statement, if an honest shuffler mixed the reports" in page
        assert "neither this report nor the certificate can show" in page
        assert (
            page.index("The guarantee in plain words")
            < page.index("A second statement")
            < page.index("Assumptions</h2>")
        )

    def test_counts_of_files_carry_it(self, tmp_path):
        points = tmp_path / "points.csv"
        points.write_text("\n".join(["x,y", *(f"{x:.2f},{y:.2f}" for x, y in XY)]) + "\n")
        client = ["--mechanism", "disk-area", "--epsilon", 1.5, "--cells", 4, *PLACE, *ASKED]
        run("local", "perturb", points, tmp_path / "reports.csv", *client)
        run("local", "aggregate", tmp_path / "reports.csv", *client, "--out", tmp_path / "public")
        assert verify(tmp_path / "public").shuffled.reports == HONEST

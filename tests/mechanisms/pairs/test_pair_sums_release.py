"""Private pair sums: settings, noise, files, and an auditor who finds what is wrong with them."""

import csv
import io
import math

import numpy as np
import pytest
from scipy import stats
from support.cases import STREETS, points
from support.forgery import read, reseal
from typer.testing import CliRunner

import dpppsynth as dps
from dpppsynth import AddRemove, AddRemovePerson, AlphaNeighbours, PairSums, PointPattern, ReplaceOne, Window
from dpppsynth.auditing.targets import audit_of, target_of
from dpppsynth.cli import app
from dpppsynth.contract.audits.hard_pairs import differences, hardest
from dpppsynth.contract.pairs_statistic import NoisedPairs
from dpppsynth.contract.statistic import Statistic
from dpppsynth.core.errors import InputError
from dpppsynth.io import write_pattern
from dpppsynth.ledger import Ledger
from dpppsynth.mechanisms.pairs.statistic import PairSumsStatistic
from dpppsynth.models import capped_flow, pair_sums
from dpppsynth.privacy import verify
from dpppsynth.privacy.noise import OpenDPLaplace
from dpppsynth.release import certificate

SQUARE = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
RELATIONS = [AlphaNeighbours(150.0), ReplaceOne(), ReplaceOne(3), AddRemove(), AddRemove(2), AddRemovePerson("who")]


def made(relation=None, domain=SQUARE, n=200, **settings):
    settings = {"epsilon": 1.0, "radii": [50.0, 100.0], "cap": [4, 8]} | settings
    found = PairSums(**settings, relation=relation)
    size = {"n": n} if found.neighbouring().n_is_public else {"expected_n": n}
    return found.plan(domain, **size).statistic


class TestSettings:
    @pytest.mark.parametrize(
        ("wrong", "rule"),
        [
            ({"radii": []}, "radii: needs a list"),
            ({"radii": [100.0, 50.0]}, "radii: must increase"),
            ({"radii": [50.0, 50.0]}, "radii: must increase"),
            ({"radii": [-1.0, 50.0]}, "radii: must be"),
            ({"radii": list(range(1, 30)), "cap": 4}, "radii: need 1 to 20"),
            ({"cap": [4, 8, 9]}, "cap: needs one number, or one for each of the 2 radii"),
            ({"cap": 2.5}, "cap: needs a whole number"),
            ({"cap": 0}, "cap: "),
            ({"cap": 2**21}, "cap: "),
            ({"shares": [0.5, 0.6]}, "shares: must add up to 1"),
            ({"shares": [1.0]}, "radii: need 1 to 20"),
            ({"steps": 17}, "steps: needs a whole number"),
            ({"epsilon": 0}, "epsilon: must be"),
            ({"user": "who", "alpha": 25.0}, "user: persons are added"),
            ({"user": "who", "relation": ReplaceOne()}, "user: persons are added"),
            ({"alpha": 25.0, "relation": ReplaceOne()}, "relation: it contradicts alpha"),
        ],
    )
    def test_are_refused_by_name(self, wrong, rule):
        with pytest.raises(InputError, match=f"^{rule}"):
            PairSums(**{"epsilon": 1.0, "radii": [50.0, 100.0], "cap": [4, 8]} | wrong)

    @pytest.mark.parametrize(
        ("wrong", "n", "rule"),
        [
            ({"radii": [1e-4]}, 200, "radii: each must lie"),
            ({"radii": [2000.0]}, 200, "radii: each must lie"),
            ({"radii": [1.0]}, 10**8, "radii: so many points"),
            ({"radii": [1.0], "steps": 16, "relation": AddRemove()}, 200, "radii: so many points"),
            ({}, None, "n: the public number"),
        ],
    )
    def test_are_refused_before_the_points(self, wrong, n, rule):
        settings = {"epsilon": 1.0, "radii": [50.0], "cap": 4} | wrong
        found = PairSums(**settings)
        with pytest.raises(InputError, match=f"^{rule}"):
            found.plan(SQUARE, **({"n": n} if found.neighbouring().n_is_public else {"expected_n": n}))

    def test_a_mark_is_short_for_its_relation(self):
        one, other = (
            PairSums(1.0, radii=50.0, cap=4, user="who"),
            PairSums(1.0, radii=[50.0], cap=[4], relation=AddRemovePerson("who")),
        )
        assert one.neighbouring() == other.neighbouring() == AddRemovePerson("who")
        assert one.plan(SQUARE).mechanism == other.plan(SQUARE).mechanism == "pair-sums-persons"
        assert one.radii == (50.0,)


class TestNoise:
    @pytest.mark.parametrize("relation", RELATIONS, ids=str)
    def test_has_the_scale_of_the_theorem(self, relation):
        """`2 theta 2^m / epsilon`, for each point of a person where points do not tell whose they are."""
        plan = made(relation, shares=[0.25, 0.75])
        points_of_one = getattr(relation, "max_points_per_person", 1)
        unit = 2**plan.pairs.statistic.bits
        expected = [2 * 4 * unit * points_of_one / 0.25, 2 * 8 * unit * points_of_one / 0.75]
        assert plan.pairs.scales == pytest.approx(expected, rel=1e-12)
        assert plan.pairs.noise_sd == pytest.approx([2**0.5 * each / (2 * unit) for each in expected], rel=1e-12)
        assert plan.guarantee.epsilon() == pytest.approx(1.0, rel=1e-12)
        assert plan.guarantee.relation == relation
        assert plan.guarantee.profile.at == 0

    def test_does_not_depend_on_the_privacy_radius(self):
        assert (
            made(AlphaNeighbours(1.0)).pairs.scales
            == made(AlphaNeighbours(500.0)).pairs.scales
            == made(ReplaceOne()).pairs.scales
        )

    def test_follows_its_law(self):
        """Kolmogorov's test of 4000 seeded draws for each radius; a false alarm of 1e-7, seeds fixed."""
        plan, rng = made(n=20), np.random.default_rng(1)
        noise = np.array([plan.pairs.noise(k, rng).add(np.zeros(4000, dtype=np.int64)) for k in range(2)]).T
        for k, scale in enumerate(plan.pairs.scales):
            # The lattice is fine beside the scale: 2^-17 of it.
            assert stats.kstest(noise[:, k] / scale, "laplace").pvalue > 1e-7
        assert stats.spearmanr(*noise.T).pvalue > 1e-7

    def test_every_radius_is_drawn_for_through_the_seam(self, monkeypatch):
        seen = []

        def watched(plan, draw, exact):
            seen.append((draw.__self__.scale, exact.tolist()))
            return draw(exact)

        monkeypatch.setattr(Statistic, "apply_noise", watched)
        plan, pattern = made(), points(3, 200, SQUARE)
        plan.measure(pattern)
        assert seen == [
            (scale, [value]) for scale, value in zip(plan.pairs.scales, plan.exact_numbers(pattern), strict=True)
        ]


class TestRelease:
    def test_sums_come_near_the_exact_ones_where_the_budget_is_large(self):
        pattern = points(2, 400, SQUARE, clustered=True)
        release = PairSums(1e4, radii=[20.0, 60.0], cap=50).release(pattern)
        exact = release.statistic.definition.exact_numbers(pattern) / 2.0**release.statistic.definition.bits
        assert release.sums == pytest.approx(exact, abs=1.0)
        distance = np.hypot(*(pattern.xy[:, None] - pattern.xy).transpose(2, 0, 1))[np.triu_indices(400, 1)]
        plain = np.clip(1 - distance / 20.0, 0, None).sum()
        # Places on the lattice, and a few points at the cap.
        assert release.sums[0] == pytest.approx(plain, rel=0.03)

    def test_clusters_show_beside_an_even_spread(self):
        even, clumps = (
            PairSums(3.0, radii=[20.0], cap=10).release(points(4, 400, SQUARE, clustered=c)) for c in (False, True)
        )
        assert clumps.sums[0] > even.sums[0] + 10 * even.noise_sd[0]

    @pytest.mark.parametrize("domain", [SQUARE, STREETS], ids=["square", "streets"])
    def test_is_saved_verified_and_opened(self, domain, tmp_path):
        release = PairSums(1.0, radii=[50.0, 100.0], cap=[4, 8], alpha=25.0).release(points(5, 90, domain))
        folder = release.save(tmp_path / "public")
        assert verify(folder).holds
        opened = dps.load_release(folder)
        assert isinstance(opened, dps.PairSumsRelease)
        assert (opened.sums == release.sums).all()
        assert (opened.radii, opened.caps, opened.noise_sd) == ((50.0, 100.0), (4, 8), release.noise_sd)
        rows = list(csv.DictReader(io.StringIO((folder / "pair_sums.csv").read_text())))
        assert [float(row["sum"]) for row in rows] == release.sums.tolist()
        assert [float(row["radius"]) for row in rows] == [50.0, 100.0]
        assert sorted(p.name for p in folder.iterdir()) == [
            "certificate.json",
            "domain.geojson",
            "pair_sums.csv",
            "statistic.json",
        ]

    @pytest.mark.parametrize("which", ["table", "pattern"])
    def test_what_does_not_belong_there_is_found(self, which, tmp_path):
        folder = PairSums(1.0, radii=[50.0], cap=4).release(points(5, 90, SQUARE)).save(tmp_path / "public")
        added = {"table": "pair_sums.csv", "pattern": "synthetic_000.geojson"}[which]
        if which == "table":
            (folder / added).write_text((folder / added).read_text() + "347,1,2,3\n")
        else:
            write_pattern(PointPattern.at(points(5, 9, SQUARE).positions, SQUARE, synthetic=True), folder / added)
        cert = read(folder)
        cert["files"] = {name: certificate.file_hash(folder / name) for name in [*cert["files"], added]}
        reseal(folder, cert)
        expected = {"table": "statistic", "pattern": "files"}[which]
        assert [check.name for check in verify(folder).checks if not check.holds] == [expected]

    def test_persons_are_told_by_their_mark(self):
        pattern = points(6, 90, SQUARE)
        who = np.arange(90) // 3
        marked = PointPattern(pattern.xy, SQUARE, {"who": who})
        plan = made(AddRemovePerson("who"))
        assert plan.exact_numbers(marked).tolist() == plan.pairs.statistic.doubled(pattern.xy, who).tolist()
        crowd = PointPattern(np.full((90, 2), 500.0), SQUARE, {"who": who})
        # 30 persons with a cap of 4 and of 8.
        assert (plan.exact_numbers(crowd) / 2.0**plan.bits).tolist() == [60.0, 120.0]
        for wrong in (pattern, PointPattern(pattern.xy, SQUARE, {"user": who})):
            with pytest.raises(InputError, match=r"^pattern: needs the mark 'who'"):
                PairSums(1.0, radii=50.0, cap=4, user="who").release(wrong)

    def test_the_ledger_is_asked_first(self, tmp_path):
        pattern = points(5, 90, SQUARE)
        ledger = Ledger.create(tmp_path / "ledger.json", epsilon=1.5, delta=0.0, relation=ReplaceOne())
        PairSums(1.0, radii=[50.0], cap=4).release(pattern, ledger=ledger)
        with pytest.raises(dps.BudgetError):
            PairSums(1.0, radii=[50.0], cap=4).release(pattern, ledger=ledger)

    def test_a_report_says_what_it_is(self, tmp_path):
        folder = PairSums(1.0, radii=[50.0], cap=4).release(points(5, 90, SQUARE)).save(tmp_path / "public")
        page = dps.write_report(folder, tmp_path / "report.html").read_text()
        assert "Pairs of points near each other were added up" in page
        assert "no synthetic points" in page

    def test_it_can_be_rehearsed(self):
        found = PairSums(2.0, radii=[50.0], cap=4).rehearse(SQUARE, 1, n=200)
        assert "relative error of the sums" in str(found)
        assert all(run.passed and 0 <= run.distance < 1 for run in found.runs)


class TestAudit:
    @pytest.mark.parametrize("relation", RELATIONS, ids=str)
    def test_the_hardest_pair_reaches_the_claim_and_no_more(self, relation):
        plan = made(relation, radii=[100.0], cap=4)
        spent, claimed = audit_of(plan).spent(hardest(plan, plan.relation), plan.guarantee.profile)
        assert 0.95 * claimed <= spent <= claimed * (1 + 1e-9)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("relation", RELATIONS, ids=str)
    def test_on_streets_and_at_several_radii(self, relation):
        plan = made(relation, domain=STREETS, radii=[60.0, 120.0], cap=[3, 5])
        pair = hardest(plan, plan.relation)
        assert differences(plan, pair).sum() <= 1 + 1e-9
        assert differences(plan, pair).sum() > 0.6

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("relation", [ReplaceOne(), AddRemove(), AddRemovePerson("who")], ids=str)
    def test_an_honest_plan_stands(self, relation):
        found = dps.audit(
            PairSums(1.0, radii=[100.0], cap=4, relation=relation).plan(SQUARE, **size(relation)), trials=60
        )
        assert not found.violated, found

    def test_a_cap_forgotten_is_found(self, monkeypatch):
        monkeypatch.setattr(pair_sums, "capped_total", uncapped)
        assert_found()

    def test_shares_above_one_are_found(self, monkeypatch):
        honest = pair_sums.plane_shares
        monkeypatch.setattr(pair_sums, "plane_shares", lambda reach, bits: 2 * honest(reach, bits))
        monkeypatch.setattr(pair_sums, "capped_total", twice_within_places)
        assert_found()

    def test_one_side_of_the_cover_is_found(self, monkeypatch):
        monkeypatch.setattr(pair_sums, "capped_total", one_sided)
        assert_found()

    @pytest.mark.slow
    def test_half_of_the_noise_is_found(self, monkeypatch):
        plan = made(radii=[100.0], cap=4)

        def half(part, level, rng=None):
            budget = {"sensitivity": part.sensitivities[level], "epsilon": 2.001 * part.epsilons[level]}
            return OpenDPLaplace(part.scales[level] / 2, **budget)

        monkeypatch.setattr(NoisedPairs, "noise", half)
        assert dps.audit(target_of(plan), trials=300).violated

    def test_a_forgotten_budget_split_is_found(self, monkeypatch):
        monkeypatch.setattr(PairSumsStatistic, "epsilons", property(lambda plan: (plan.epsilon,) * plan.size))
        with pytest.raises(dps.PrivacyCheckError):
            made()


def size(relation):
    return {"n": 200} if relation.n_is_public else {"expected_n": 200}


def uncapped(points, pairs, weight, same):
    """The plain sum, doubled."""
    count = np.bincount(points.place, weights=points.members).astype(np.int64)
    between = 2 * (count[pairs.first] * count[pairs.second] * weight).sum()
    return int(between + (count * (count - 1) * same).sum())


def one_sided(points, pairs, weight, same):
    """The maximum flow where points are capped in what they give, and not in what they take."""
    count = np.bincount(points.place, weights=points.members).astype(np.int64)
    near = (count - 1) * same
    np.add.at(near, pairs.first, count[pairs.second] * weight)
    np.add.at(near, pairs.second, count[pairs.first] * weight)
    return int(np.minimum(points.cap, points.members * near[points.place]).sum())


def twice_within_places(points, pairs, weight, same):
    return capped_flow.capped_total(points._replace(cap=2 * points.cap), pairs, weight, 2 * same)


def assert_found():
    plan = made(radii=[100.0], cap=4)
    target = target_of(plan)
    assert target.excess
    assert "gives away" in target.excess[0]
    assert dps.audit(target, trials=50).violated


def test_epsilon_is_spent_in_full_and_added_up():
    plan = made(shares=[0.1, 0.9])
    assert math.fsum(plan.epsilons) == pytest.approx(1.0)
    assert (
        math.fsum(s / b for s, b in zip(plan.pairs.sensitivities, plan.pairs.scales, strict=True))
        == plan.guarantee.epsilon()
    )


class TestCommands:
    """`check`, `synthesize`, `verify` and `sample` on the command line."""

    PLACE = ("--window", "0,0,1000,1000", "--crs", "EPSG:27700")
    POINTS = (*PLACE, "--radii", "40,90", "--pair-cap", "5,9", "--epsilon", "1")

    @staticmethod
    def run(*words):
        return CliRunner().invoke(app, [*map(str, words)])

    @pytest.fixture
    def table(self, tmp_path):
        rng = np.random.default_rng(1)
        rows = [f"{x},{y},{k // 2}" for k, (x, y) in enumerate(rng.uniform(0, 1000, (60, 2)).tolist())]
        (tmp_path / "points.csv").write_text("\n".join(["x,y,who", *rows, ""]))
        return tmp_path / "points.csv"

    @pytest.mark.parametrize(
        "given", [["pair-sums", "--alpha", 25], ["pair-sums-persons", "--user", "who"]], ids=["points", "persons"]
    )
    def test_releases(self, given, table, tmp_path):
        out = tmp_path / "public"
        given = ["--mechanism", *given, *self.POINTS]
        shown = self.run("synthesize", table, *given, "--x", "x", "--y", "y", "--out", out)
        assert shown.exit_code == 0, shown.output
        assert "Private sums over pairs of near points" in shown.output
        assert self.run("verify", out).exit_code == 0
        assert len((out / "pair_sums.csv").read_text().splitlines()) == 3
        refused = self.run("sample", out)
        assert refused.exit_code == 2
        assert "no pattern can be drawn from them" in refused.output.replace("\n", " ")

    @pytest.mark.parametrize(
        ("more", "rule"),
        [
            (["pair-sums", "--user", "who"], "--mechanism pair-sums-persons protects"),
            (["pair-sums-persons", "--alpha", 25], "wherever their points lie"),
            (["pair-sums-persons", "--relation", "replace-one"], "promises add-remove-person"),
            (["pair-sums-persons", "--n", 5], "leave --n out"),
            (["pair-sums", "--n", 5, "--shares", "a"], "--shares: needs numbers with commas"),
        ],
    )
    def test_refuse_what_contradicts(self, more, rule):
        shown = self.run("check", "--mechanism", *more, *self.POINTS)
        assert shown.exit_code == 2
        assert rule in " ".join(shown.output.split())


def test_a_plan_by_hand_keeps_what_the_relation_keeps_secret():
    with pytest.raises(InputError, match="n is not stated"):
        PairSumsStatistic(SQUARE, AddRemove(), 4, None, 1.0, (15.0,), (10,), (1.0,), (4,))


def test_shares_do_not_pass_the_budget():
    """By more than the rounding of their sum."""
    with pytest.raises(InputError, match="shares: must add up to 1"):
        made(ReplaceOne(), shares=(0.5, 0.5 + 8e-10))
    assert made(ReplaceOne(), shares=(0.1, 0.9)).guarantee.epsilon() == pytest.approx(1.0, rel=1e-12)


def test_the_cap_of_a_person_is_limited_before_the_points_are_read():
    """A crowd of persons needs room in proportion to it."""
    made(AddRemovePerson("who"), cap=200)
    with pytest.raises(InputError, match="cap: at most 200 for a person"):
        made(AddRemovePerson("who"), cap=[200, 201])
    made(ReplaceOne(), cap=201)

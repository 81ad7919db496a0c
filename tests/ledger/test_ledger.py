"""Ledgers: no sequence of uses, crashes, races or edits spends more than the budget or forgets what was spent."""

import copy
import hashlib
import json
import math
import os
import pickle
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import ndtr
from support.ledgers import chained, events_of, linked

from dpppsynth.core.atomic_files import locked
from dpppsynth.core.errors import BudgetError, DpppsynthError, InformationWarning, InputError, PrivacyCheckError
from dpppsynth.ledger import Authorisation, Ledger
from dpppsynth.ledger import certificates as certificates_module
from dpppsynth.ledger import ledger as module
from dpppsynth.ledger.authorisation import proof_of
from dpppsynth.ledger.budget import Budget, nowhere_worse
from dpppsynth.ledger.document import dump, identify, parse
from dpppsynth.ledger.history import replay, stored
from dpppsynth.ledger.joint_guarantee import COMPLETE, EVERYWHERE, POINTWISE, SAME_POINTS
from dpppsynth.privacy import (
    AddRemove,
    AlphaNeighbours,
    ApproximateDP,
    Check,
    DiscreteLosses,
    GaussianDP,
    Guarantee,
    PoissonGaussianDP,
    PureDP,
    ReplaceOne,
    gaussian_mu,
)
from dpppsynth.privacy.catalogue import AVERAGED, Statement
from dpppsynth.privacy.composition import FIXED_BEFOREHAND
from dpppsynth.release import certificate
from dpppsynth.spatial.domains import Window
from dpppsynth.synthesizers import LaplaceSynthesizer

ALPHA = AlphaNeighbours(25.0)
SQUARE = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
STRIP = Window.rectangle(0, 0, 1000, 100, "EPSG:27700")
HASH = "ab" * 32
TABLE = DiscreteLosses(((0.0, 0.1), (0.5, 1e-2), (1.0, 1e-4), (2.0, 1e-7)), at=1e-6)


def promise(profile, relation=ALPHA, *assumptions):
    return Guarantee(relation, profile, "posterior-draw", assumptions or ("exact-draw",))


def draw(epsilon=1.0, delta=1e-6, relation=ALPHA):
    """A posterior draw: Gaussian."""
    return promise(GaussianDP(gaussian_mu(epsilon, delta), at=delta), relation)


def spend(ledger, guarantee, domain=SQUARE, **known):
    return ledger.authorise(guarantee, mechanism="lgcp-posterior-draw", domain=domain, **known)


def signed(entry, guarantee, domain=SQUARE, mechanism="lgcp-posterior-draw", n=5):
    """The certificate of a release under an entry."""
    said = {"mechanism": mechanism, "parameters": lambda: {"n": n}, "guarantee": guarantee, "domain": domain}
    none = {"noise": "secret", "seeded": False, "warning": None, "shuffled": None, "snap": None}
    return certificate.build(SimpleNamespace(entry=entry, **said, **none), {})


def record(ledger, entry, guarantee, domain=SQUARE, **said):
    ledger.record(entry, signed(entry, guarantee, domain, **said), domain=domain)


@pytest.fixture
def proved(monkeypatch):
    """Every certificate proves what it claims."""
    monkeypatch.setattr(certificates_module, "check_claim", lambda cert, domain: Check("bound", True, "it follows"))


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger.json", epsilon=2.0, delta=1e-5, relation=ALPHA, label="deaths")


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """The file of a ledger with three releases: one recorded, one settled, one authorised."""
    ledger = Ledger.create(tmp_path_factory.mktemp("used") / "ledger.json", epsilon=2.0, delta=1e-5, alpha=25.0)
    entries = [spend(ledger, draw()) for _ in range(3)]
    record(ledger, entries[0], draw())
    ledger.settle(entries[1], draw(0.9), n=5)
    return ledger.path.read_bytes()


def reopened(raw, tmp_path, name="copy.json"):
    path = tmp_path / name
    path.write_bytes(raw)
    return Ledger.open(path)


class TestBudget:
    def test_four_posterior_draws_fit_and_the_fifth_does_not(self, ledger):
        spent = []
        for _ in range(4):
            spend(ledger, draw())
            spent.append(ledger.spent)
        assert spent == pytest.approx([0.873, 1.277, 1.598, 1.875], abs=1e-3)
        assert ledger.remaining == pytest.approx(2 - ledger.spent)
        before = ledger.path.read_bytes()
        with pytest.raises(BudgetError) as caught:
            spend(ledger, draw())
        for words in (
            "Requested: 0.2489 (epsilon 1 at delta 1e-06 would take the total from 1.876 to 2.125 at delta 1e-05).",
            "Remaining: 0.1247 of 2.",
            "Difference: 0.1241.",
            "The largest release of this kind that still fits has epsilon 0.6812 at delta 1e-06.",
        ):
            assert words in str(caught.value)
        assert ledger.path.read_bytes() == before

    def test_what_the_error_offers_fits_and_little_more_does_not(self, ledger):
        for _ in range(4):
            spend(ledger, draw())
        with pytest.raises(BudgetError):
            spend(ledger, draw(0.6814))
        spend(ledger, draw(0.6812))
        assert ledger.spent <= 2.0 * (1 + 1e-11)

    def test_only_rounding_may_exceed_the_budget(self, tmp_path):
        ledger = Ledger.create(tmp_path / "one.json", epsilon=1.0, delta=0.0, relation=ReplaceOne())
        spend(ledger, promise(PureDP(0.5), ReplaceOne()))
        with pytest.raises(BudgetError):
            spend(ledger, promise(PureDP(0.5 + 1e-9), ReplaceOne()))
        spend(ledger, promise(PureDP(0.5), ReplaceOne()))

    @pytest.mark.parametrize("times", [3, 7, 10, 49])
    def test_equal_shares_fill_the_budget(self, times):
        for delta in (0.0, 1e-5):
            assert Budget(1.0, delta, ReplaceOne()).suffices([PureDP(1.0 / times)] * times)
        mu = gaussian_mu(1.0, 1e-5)
        for adaptive in (False, True):
            shares = [GaussianDP(mu / math.sqrt(times), at=1e-5)] * times
            assert Budget(1.0, 1e-5, ReplaceOne(), adaptive=adaptive).suffices(shares)

    def test_spent_is_the_gaussian_closed_form(self, ledger):
        for epsilon in (0.3, 0.5, 0.7):
            spend(ledger, draw(epsilon))
        mu = math.sqrt(sum(gaussian_mu(epsilon, 1e-6) ** 2 for epsilon in (0.3, 0.5, 0.7)))

        def excess(epsilon):
            return ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu) - 1e-5

        assert ledger.spent == pytest.approx(brentq(excess, 0, 5), rel=1e-8)

    def test_check_says_the_same_and_writes_nothing(self, ledger):
        before = ledger.path.read_bytes()
        ledger.check(draw(), mechanism="m", domain=SQUARE)
        with pytest.raises(BudgetError, match=r"Remaining: 2 of 2"):
            ledger.check(draw(4.0), mechanism="m", domain=SQUARE)
        assert ledger.path.read_bytes() == before
        assert ledger.guarantee is None
        assert ledger.spent == 0

    def test_pure_releases_fill_a_ledger_without_delta_to_the_last_digit(self, tmp_path):
        ledger = Ledger.create(tmp_path / "pure.json", epsilon=0.3, delta=0.0, relation=ReplaceOne())
        for _ in range(3):
            spend(ledger, promise(PureDP(0.1), ReplaceOne()))
        # 0.1 + 0.1 + 0.1 is 0.30000000000000004, and other sums are 0.9999999999999998 of 1.
        assert ledger.spent in (0.3, 0.300000000001)
        assert ledger.remaining == 0
        with pytest.raises(BudgetError, match="or none"):
            spend(ledger, promise(PureDP(1e-6), ReplaceOne()))

    def test_without_delta_nothing_but_pure_releases(self, tmp_path):
        ledger = Ledger.create(tmp_path / "pure.json", epsilon=2.0, delta=0.0, alpha=25.0)
        with pytest.raises(InputError):
            spend(ledger, draw())
        assert ledger.releases == ()

    def test_a_delta_that_does_not_fit_is_said_so(self, ledger):
        with pytest.raises(BudgetError, match=r"Requested: more than any epsilon .* Difference: unbounded"):
            spend(ledger, promise(ApproximateDP(0.1, 1e-4)))

    def test_mixed_kinds_spend_no_less_than_each_and_no_more_than_basic_composition(self, ledger):
        profiles = [PureDP(0.3), GaussianDP(0.1, at=1e-6), ApproximateDP(0.2, 1e-7), PoissonGaussianDP(0.05, 1.0, 1e-6)]
        for profile in profiles:
            spend(ledger, promise(profile))
        each = [profile.epsilon(2.4e-6) for profile in profiles]
        assert 0.3 < ledger.spent <= sum(each)
        assert {FIXED_BEFOREHAND, COMPLETE} <= set(ledger.guarantee.assumptions)

    def test_budgets_fixed_beforehand_are_assumed_wherever_another_kind_could_have_been_released(
        self, ledger, tmp_path
    ):
        """Also of Gaussian releases alone: a pure one might have followed, had the first published something else."""
        spend(ledger, draw(0.5))
        assert ledger.guarantee.assumptions == ("exact-draw", FIXED_BEFOREHAND, COMPLETE)
        spend(ledger, draw(0.5))
        assert ledger.guarantee.assumptions == ("exact-draw", FIXED_BEFOREHAND, SAME_POINTS, COMPLETE)
        assert ledger.guarantee.theorem == Statement("sequential-composition", of=("posterior-draw", "posterior-draw"))
        assert ledger.guarantee.relation == ALPHA
        pure = Ledger.create(tmp_path / "pure.json", epsilon=2.0, delta=0.0, relation=ALPHA)
        spend(pure, promise(PureDP(0.5)))
        assert pure.guarantee.assumptions == ("exact-draw", COMPLETE)

    def test_what_nobody_could_promise_is_over_budget(self, ledger):
        """A level beyond the largest finite loss, in a mixture."""
        spend(ledger, draw(0.5))
        spend(ledger, promise(PureDP(0.2)))
        with pytest.raises(BudgetError, match=r"Remaining: 1\."):
            spend(ledger, promise(PureDP(100.0)))

    @pytest.mark.parametrize(
        "wrong",
        [
            {"epsilon": 10**400},
            {"epsilon": 0.0},
            {"epsilon": -1.0},
            {"epsilon": math.inf},
            {"epsilon": math.nan},
            {"epsilon": "2"},
            {"epsilon": True},
            {"delta": -1e-9},
            {"delta": 0.1},
            {"delta": math.nan},
            {"relation": "replace-one"},
            {"relation": None},
            {"alpha": 25.0},
            {"label": 7},
            {"adaptive": 1},
        ],
    )
    def test_what_is_no_budget(self, tmp_path, wrong):
        (name,) = wrong
        named = "relation" if name == "alpha" else name
        with pytest.raises(InputError, match=f"^{named}:"):
            Ledger.create(tmp_path / "l.json", **({"epsilon": 2.0, "delta": 1e-5, "relation": ALPHA} | wrong))
        assert not (tmp_path / "l.json").exists()


class TestAdaptive:
    @pytest.fixture
    def adaptive(self, tmp_path):
        return Ledger.create(tmp_path / "adaptive.json", epsilon=2.0, delta=1e-5, relation=ALPHA, adaptive=True)

    def test_pure_and_gaussian_releases_share_one_filter(self, adaptive):
        spend(adaptive, draw())
        spend(adaptive, promise(PureDP(0.2)))
        # Of a pure release: mu with Phi(mu / 2) = e^epsilon / (1 + e^epsilon).
        pure = brentq(lambda mu: ndtr(mu / 2) - 1 / (1 + math.exp(-0.2)), 0, 5)
        mu = math.hypot(gaussian_mu(1.0, 1e-6), pure)
        assert adaptive.spent == pytest.approx(GaussianDP(mu, at=1e-5).epsilon(1e-5), rel=1e-9)
        assert FIXED_BEFOREHAND not in adaptive.guarantee.assumptions
        assert adaptive.guarantee.theorem.code == "privacy-filter"

    def test_over_budget(self, adaptive):
        for _ in range(4):
            spend(adaptive, draw())
        for guarantee in (draw(), promise(PureDP(1.0))):
            with pytest.raises(BudgetError, match=r"Remaining: 0\.1247 of 2"):
                spend(adaptive, guarantee)

    @pytest.mark.parametrize("profile", [PoissonGaussianDP(0.01, 1.0, 1e-6), ApproximateDP(0.01, 1e-7), TABLE])
    def test_other_kinds_have_no_filter(self, adaptive, profile):
        with pytest.raises(InputError):
            spend(adaptive, promise(profile))
        assert adaptive.releases == ()

    def test_pure_releases_add_up_without_delta(self, tmp_path):
        ledger = Ledger.create(tmp_path / "a.json", epsilon=1.0, delta=0.0, relation=ALPHA, adaptive=True)
        spend(ledger, promise(PureDP(0.7)))
        assert ledger.spent == pytest.approx(0.7)
        with pytest.raises(BudgetError, match=r"largest release .* epsilon 0\.3 at"):
            spend(ledger, promise(PureDP(0.4)))


class TestRelations:
    @pytest.mark.parametrize(
        ("given", "needed"),
        [
            (ALPHA, AlphaNeighbours(30.0)),
            (ALPHA, ReplaceOne()),
            (ALPHA, AlphaNeighbours(25.0, max_points_per_person=3)),
            (ALPHA, ReplaceOne(2)),
            (ReplaceOne(), AddRemove()),
            (AddRemove(), ReplaceOne()),
            (AddRemove(), ALPHA),
        ],
    )
    def test_weaker_ones_are_refused_with_the_reason(self, tmp_path, given, needed):
        ledger = Ledger.create(tmp_path / "l.json", epsilon=2.0, delta=1e-5, relation=needed)
        with pytest.raises(InputError, match=r"^relation: ") as caught:
            spend(ledger, draw(relation=given))
        assert given.describe() in str(caught.value)
        assert needed.describe() in str(caught.value)
        assert ledger.releases == ()

    @pytest.mark.parametrize("given", [ALPHA, AlphaNeighbours(26.0), ReplaceOne(), AlphaNeighbours(25.0)])
    def test_stronger_ones_are_welcome(self, ledger, given):
        spend(ledger, draw(relation=given))
        assert ledger.guarantee.relation == ALPHA

    def test_a_privacy_radius_is_measured_in_one_domain(self, ledger):
        spend(ledger, draw(0.5))
        with pytest.raises(InputError, match=r"^domain: .*replace-one"):
            spend(ledger, draw(0.5), STRIP)
        spend(ledger, draw(0.5), Window.rectangle(0, 0, 1000, 1000, "EPSG:27700"))

    def test_any_domain_may_join_under_replace_one(self, tmp_path):
        ledger = Ledger.create(tmp_path / "l.json", epsilon=2.0, delta=1e-5, relation=ReplaceOne())
        spend(ledger, draw(0.5, relation=ReplaceOne()))
        assert ledger.guarantee.relation == ledger.neighbouring == ReplaceOne()
        with pytest.warns(InformationWarning, match="first in another domain; from now on moves of a point across"):
            spend(ledger, draw(0.5, relation=ReplaceOne()), STRIP)
        # In the headline, before theorem and assumptions; and the promise is no longer that of replace-one.
        headline = str(ledger.guarantee).partition("Proved by")[0]
        assert f"one point moves anywhere in the domain, and {EVERYWHERE}" in headline
        assert "across the border of one of the domains are not protected" in headline
        assert not ledger.guarantee.relation.implies(ReplaceOne())
        spend(ledger, draw(0.5, relation=ReplaceOne()), STRIP)

    def test_points_that_come_or_go_do_so_in_every_domain(self, tmp_path):
        """Under add/remove nothing is taken away: a part has one point more or less, or is the same."""
        ledger = Ledger.create(tmp_path / "l.json", epsilon=2.0, delta=1e-5, relation=AddRemove())
        spend(ledger, draw(0.5, relation=AddRemove()))
        spend(ledger, draw(0.5, relation=AddRemove()), STRIP)
        assert ledger.guarantee.relation == AddRemove()
        assert POINTWISE in ledger.guarantee.assumptions

    def test_bounds_that_hold_on_average_do_not_add_up(self, ledger):
        with pytest.raises(InputError, match="holds on average"):
            spend(ledger, promise(ApproximateDP(0.1, 1e-6), ALPHA, AVERAGED))

    @pytest.mark.parametrize("wrong", [{"guarantee": 1.0}, {"mechanism": ""}, {"mechanism": None}, {"domain": "here"}])
    def test_what_is_no_release(self, ledger, wrong):
        (name,) = wrong
        with pytest.raises(InputError, match=f"^{name}:"):
            ledger.authorise(**({"guarantee": draw(), "mechanism": "m", "domain": SQUARE} | wrong))


class TestSettling:
    CEILINGS = (
        ApproximateDP(1.0, 1e-6),
        PureDP(1.0),
        GaussianDP(0.2, at=1e-6),
        PoissonGaussianDP(0.1, 1.0, 1e-6),
        TABLE,
    )

    @given(st.sampled_from(CEILINGS), st.sampled_from(CEILINGS), st.floats(0.3, 1.5), st.floats(0, 4))
    def test_nowhere_worse_means_below_at_every_epsilon(self, old, new, scale, epsilon):
        match new:
            case GaussianDP():
                new = GaussianDP(new.mu * scale, at=1e-6)
            case PureDP():
                new = PureDP(new.level * scale)
            case ApproximateDP():
                new = ApproximateDP(new.level * scale, new.slack * scale)
            case PoissonGaussianDP():
                new = PoissonGaussianDP(new.ratio * scale, new.rate, 1e-6)
            case DiscreteLosses():
                new = DiscreteLosses(tuple((e, d * min(scale, 9)) for e, d in new.rows), at=1e-6)
        if nowhere_worse(new, old):
            assert new.delta(epsilon) <= old.delta(epsilon) * (1 + 1e-6)

    @pytest.mark.parametrize(
        ("ceiling", "actual"),
        [
            (GaussianDP(0.2, at=1e-6), GaussianDP(0.15, at=1e-6)),
            (GaussianDP(0.2, at=1e-6), GaussianDP(0.2, at=1e-6)),
            (PureDP(1.0), PureDP(0.8)),
            (ApproximateDP(1.0, 1e-4), TABLE),
            (ApproximateDP(1.0, 1e-6), GaussianDP(gaussian_mu(1.0, 1e-6), at=1e-6)),
            (PoissonGaussianDP(0.1, 2.0, 1e-6), PoissonGaussianDP(0.1, 1.0, 1e-6)),
            (TABLE, TABLE),
        ],
    )
    def test_it_counts_as_what_it_turned_out_to_be(self, tmp_path, proved, ceiling, actual):
        """Once a certificate has proved it, and not before; what derives the bound again is tested elsewhere."""
        ledger = Ledger.create(tmp_path / "l.json", epsilon=4.0, delta=1e-3, relation=ALPHA)
        entry = spend(ledger, promise(ceiling))
        before = ledger.spent
        ledger.settle(entry, promise(actual), n=5)
        assert (ledger.spent, ledger.releases[0].guarantee.profile) == (before, ceiling)
        assert ledger.releases[0].state == "authorised"
        record(ledger, entry, promise(actual))
        assert ledger.spent <= before * (1 + 1e-9)
        assert Ledger.open(ledger.path).releases[0].guarantee.profile == actual

    @pytest.mark.parametrize(
        ("ceiling", "actual"),
        [
            (GaussianDP(0.2, at=1e-6), GaussianDP(0.2001, at=1e-6)),
            (GaussianDP(0.2, at=1e-6), PureDP(0.1)),
            (PureDP(1.0), PureDP(1.0001)),
            (PureDP(1.0), GaussianDP(0.01, at=1e-6)),
            (ApproximateDP(1.0, 1e-6), TABLE),
            (ApproximateDP(1.0, 1e-6), GaussianDP(gaussian_mu(1.001, 1e-6), at=1e-6)),
            (PoissonGaussianDP(0.1, 1.0, 1e-6), PoissonGaussianDP(0.05, 2.0, 1e-6)),
            (TABLE, DiscreteLosses(((0.0, 0.1), (0.7, 1e-2), (1.0, 1e-5), (2.0, 1e-7)), at=1e-6)),
        ],
    )
    def test_more_than_was_authorised_is_refused(self, tmp_path, ceiling, actual):
        ledger = Ledger.create(tmp_path / "l.json", epsilon=4.0, delta=1e-3, relation=ALPHA)
        entry, before = spend(ledger, promise(ceiling)), ledger.path.read_bytes()
        with pytest.raises(InputError, match=r"^guarantee: .*more than was authorised"):
            ledger.settle(entry, promise(actual))
        assert ledger.path.read_bytes() == before

    def test_one_authorisation_covers_one_release(self, ledger):
        taken, recorded = spend(ledger, draw(0.5)), spend(ledger, draw(0.5))
        ledger.settle(taken, draw(0.5), n=5)
        record(ledger, recorded, draw(0.5))
        for entry in (taken, recorded):
            with pytest.raises(InputError, match="covers one release"):
                ledger.settle(entry, draw(0.5))
        with pytest.raises(InputError, match="covers one release"):
            record(ledger, recorded, draw(0.5))
        record(ledger, taken, draw(0.5))
        assert {entry.state for entry in ledger.releases} == {"measured"}

    def test_the_place_and_the_relation_are_those_authorised(self, ledger):
        entry = spend(ledger, draw(0.5))
        with pytest.raises(InputError, match=r"^domain:"):
            ledger.settle(entry, draw(0.5), domain=STRIP)
        with pytest.raises(InputError, match=r"^relation:"):
            ledger.settle(entry, draw(0.5, relation=AlphaNeighbours(10.0)))
        ledger.settle(entry, draw(0.5), domain=SQUARE, n=5)

    @pytest.mark.parametrize("name", ["x", ["x"], None])
    def test_what_was_never_authorised(self, ledger, name):
        for use in (
            lambda: ledger.settle(name, draw()),
            lambda: ledger.give_up(name),
            lambda: ledger.record(name, signed("x", draw()), domain=SQUARE),
        ):
            with pytest.raises(InputError, match=r"^entry: .*authorised nothing"):
                use()
        assert not ledger.holds(name)

    def test_what_was_taken_up_with_its_authorisation_is_settled_by_its_owner_alone(self, ledger):
        entry = ledger.authorise(draw(0.5), mechanism="lgcp", domain=SQUARE, taken=True, n=5)
        before = ledger.path.read_bytes()
        for name in (str(entry), Authorisation(entry, "0" * 64)):
            with pytest.raises(InputError, match="used by whoever was given it"):
                ledger.settle(name, draw(0.5))
        assert ledger.path.read_bytes() == before
        ledger.settle(entry, draw(0.4), mechanism="lgcp-tents", n=5)
        with pytest.raises(InputError, match="taken up by a release"):
            ledger.settle(entry, draw(0.4))
        (found,) = Ledger.open(ledger.path).releases
        assert (found.taken, found.settlement == draw(0.4), found.mechanism) == (True, True, "lgcp-tents")

    def test_what_was_recorded_is_nobodys_to_take(self, ledger):
        entry = spend(ledger, draw(0.5))
        record(ledger, entry, draw(0.5))
        assert ledger.releases[0].taken

    @pytest.mark.parametrize(("given", "known"), [(None, "lgcp-posterior-draw"), ("lgcp-tents", "lgcp-tents")])
    def test_it_learns_what_runs(self, ledger, given, known):
        entry = spend(ledger, draw(0.5))
        ledger.settle(entry, draw(0.5), mechanism=given, n=5)
        assert [each.mechanism for each in (*ledger.releases, *Ledger.open(ledger.path).releases)] == [known] * 2
        with pytest.raises(InputError, match=r"^mechanism:"):
            ledger.settle(spend(ledger, draw(0.5)), draw(0.5), mechanism=7)

    def test_a_total_that_numbers_would_raise_keeps_the_ceiling(self, ledger, proved, monkeypatch):
        entry = spend(ledger, draw(0.5))
        before = ledger.spent
        smaller = replace(draw(0.4), theorem="field-statistic", assumptions=("chain-mixed",))
        ledger.settle(entry, smaller, n=5)
        with monkeypatch.context() as patch:
            patch.setattr(module.Budget, "spent", lambda self, profiles: 0.1 if profiles == () else 0.1 * len(profiles))
            patch.setattr(module.History, "spent", 0.05)
            record(ledger, entry, smaller)
        assert ledger.spent == before
        assert ledger.releases[0].settlement == smaller
        assert ledger.guarantee.theorem == Statement("sequential-composition", of=("field-statistic",))
        assert ledger.guarantee.assumptions == ("chain-mixed", "exact-draw", FIXED_BEFOREHAND, COMPLETE)


class TestFile:
    def test_it_holds_what_was_authorised_and_times_of_authorisations_alone(self, used, tmp_path):
        events = events_of(used)
        assert [event["kind"] for event in events] == ["budget", *["authorised"] * 3, "measured", "settled"]
        proved = {"kind", "previous", "entry", "proof", "points"}
        assert set(events[4]) == proved | {"certificate", "paid", "counts", "kept"}
        assert set(events[5]) == proved | {"mechanism", "guarantee"}
        assert set(events[1]["domain"]) == {"fingerprint", "crs", "unit"}
        assert json.loads(used.splitlines()[0]) == {"head": identify(events[-1]), "schema_version": 1}
        names = [entry.id for entry in reopened(used, tmp_path).releases]
        assert names == [identify(event) for event in events[1:4]]

    def test_equal_ledgers_and_equal_releases_have_names_of_their_own(self, tmp_path):
        ledgers = [Ledger.create(tmp_path / f"{k}.json", epsilon=2.0, delta=1e-5, alpha=25.0) for k in range(2)]
        assert len({spend(ledger, draw()) for ledger in ledgers for _ in range(2)}) == 4

    def test_no_part_of_it_is_accepted(self, used, tmp_path):
        path = tmp_path / "part.json"
        for size in range(len(used)):
            with pytest.raises(DpppsynthError, match=r"part\.json .* backup"):
                replay(parse(used[:size], path), path)

    @pytest.mark.slow
    @settings(max_examples=250)
    @given(st.data())
    def test_no_flipped_byte_frees_budget(self, used, data):
        path = Path("flipped.json")
        whole = replay(parse(used, path), path)
        raw = bytearray(used)
        for _ in range(data.draw(st.integers(1, 3))):
            raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
        try:
            history = replay(parse(bytes(raw), path), path)
        except DpppsynthError:
            return
        assert (history.spent, history.entries) == (whole.spent, whole.entries)

    def test_every_changed_byte_is_found(self, used):
        path = Path("flipped.json")
        for k in range(len(used)):
            for bit in (1, 32, 128):
                raw = used[:k] + bytes([used[k] ^ bit]) + used[k + 1 :]
                with pytest.raises(DpppsynthError, match="backup"):
                    replay(parse(raw, path), path)

    @pytest.mark.parametrize("keep", range(1, 6))
    def test_a_shorter_chain_needs_a_new_head(self, used, keep):
        raw = b"".join(used.splitlines(keepends=True)[: keep + 1])
        with pytest.raises(PrivacyCheckError, match="last events are missing"):
            [*parse(raw, Path("short.json"))]

    @pytest.mark.parametrize("k", range(1, 7))
    @pytest.mark.parametrize("other", range(1, 7))
    def test_events_missing_or_exchanged(self, used, k, other):
        """Line `k` is missing, or stands where another one did."""
        lines, path = used.splitlines(keepends=True), Path("mixed.json")
        if k == other:
            del lines[k]
        else:
            lines[k], lines[other] = lines[other], lines[k]
        with pytest.raises(DpppsynthError, match="backup"):
            replay(parse(b"".join(lines), path), path)

    def test_what_a_stopped_writer_left_is_no_event_or_counts(self, used, tmp_path):
        """An event is on disk before the first line names it, which is when its writer is told."""
        ledger = reopened(used, tmp_path)
        spend(ledger, draw(0.5))
        after = ledger.path.read_bytes()
        head = len(used.splitlines(keepends=True)[0])
        old, new = reopened(used, tmp_path, "old.json").releases, ledger.releases
        for size in range(len(used), len(after) + 1):
            stopped = reopened(used[:head] + after[head:size], tmp_path, "stopped.json")
            assert stopped.releases == (new if size == len(after) else old)
            assert stopped.spent == (ledger if size == len(after) else reopened(used, tmp_path, "old.json")).spent
            if size % 50 == 0:
                entry = spend(stopped, draw(0.1))
                assert [each.id for each in Ledger.open(stopped.path).releases] == [*(each.id for each in old), entry]

    @pytest.mark.parametrize("k", range(5))
    def test_an_edit_breaks_the_chain_behind_it(self, used, k):
        events = events_of(used)
        name = next(name for name in ("label", "mechanism", "certificate") if name in events[k])
        events[k][name] = "cd" * 32
        with pytest.raises(PrivacyCheckError, match=f"event {k + 2} does not follow"):
            [*parse(dump(events), Path("edited.json"))]

    @pytest.mark.parametrize(
        ("spoil", "words"),
        [
            (lambda e: [e[0], e[4]], "authorised nothing"),
            (lambda e: [e[0], e[5]], "authorised nothing"),
            (lambda e: [*e, e[4]], "covers one release"),
            (lambda e: [*e, e[5]], "covers one release"),
            (lambda e: [*e, {**e[5], "entry": e[4]["entry"]}], "covers one release"),
            (lambda e: [*e, *[{**e[1], "nonce": f"{k:032x}"} for k in range(3)]], "more than the budget"),
            (lambda e: [*e[:5], {**e[5], "guarantee": stored(draw(1.1))}], "more than was authorised"),
            (lambda e: [*e[:5], {**e[5], "guarantee": stored(promise(PureDP(0.1)))}], "more than was authorised"),
            (lambda e: [*e, {**e[1], "guarantee": stored(draw(relation=AlphaNeighbours(1.0)))}], "does not protect"),
            (lambda e: [*e, {**e[1], "guarantee": stored(promise(TABLE, ALPHA, AVERAGED))}], "holds on average"),
            (lambda e: [{**e[0], "epsilon": 1.5, "delta": 1e-6}, *e[1:]], "more than the budget"),
        ],
    )
    def test_a_whole_chain_that_cannot_have_happened(self, used, spoil, words, tmp_path):
        events = spoil(copy.deepcopy(events_of(used)))
        with pytest.raises(PrivacyCheckError, match=words):
            reopened(chained(events), tmp_path)

    def test_a_settlement_makes_no_room_for_a_release_in_between(self, used, tmp_path):
        """Five draws: what one turned out to be frees budget once it is recorded, not before."""
        first, given = events_of(used)[:2]
        four = [first, *({**given, "nonce": f"{k:032x}", "claim": proof_of("a" * 64, "authorised")} for k in range(4))]
        chain = events_of(chained(four))
        points = {"n": 5, "count_unit": None, "subset": None, "levels": None}
        known = {"entry": identify(chain[-1]), "points": points}
        tiny = {
            "kind": "settled",
            "mechanism": "m",
            "guarantee": stored(draw(0.1)),
            "proof": proof_of("a" * 64, "settled"),
            **known,
        }
        done = {
            "kind": "measured",
            "certificate": HASH,
            "paid": HASH,
            "counts": "settled",
            "kept": None,
            "proof": proof_of("a" * 64, "measured"),
            **known,
        }
        fifth = {**given, "nonce": "f" * 32}
        for early in ([tiny, fifth], [tiny, fifth, done], [tiny, {**done, "counts": "authorised"}, fifth]):
            with pytest.raises(PrivacyCheckError, match=r"spend 2\.12"):
                reopened(chained([*chain, *early]), tmp_path)
        assert len(reopened(chained([*chain, tiny, done, fifth]), tmp_path).releases) == 5

    @pytest.mark.parametrize(
        "raw",
        [
            b"",
            b"{}",
            b"[]",
            b"null",
            b"\xff\xfe",
            b"[" * 100_000,
            b'{"head":"' + HASH.encode() + b'","schema_version":0}\n',
            b'{"head":0,"schema_version":1}\n',
            b'{"head":"' + hashlib.sha256(b"[]").hexdigest().encode() + b'","schema_version":1}\n[]\n',
        ],
    )
    def test_what_is_no_ledger(self, tmp_path, raw):
        with pytest.raises(InputError, match=r"^ledger: .*copy\.json is not .*backup"):
            reopened(raw, tmp_path)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (b'"epsilon":2.0', b'"epsilon":NaN'),
            (b'"epsilon":2.0', b'"epsilon":1e999'),
            (b'"epsilon":2.0', b'"epsilon":' + b"9" * 5000),
            (b'"schema_version":1', b'"schema_version":0'),
            (b'"kind":"measured"', b'"kind":"refunded"'),
            (b'"kind":"settled"', b'"at":"2026-01-01T00:00:00Z","kind":"settled"'),
            (b'"label":null', b'"label":null,"n":392'),
            (b'"relation":{', b'"relation":{"n":392,'),
            (b'"points":{', b'"points":{"a":392,'),
            (b'"guarantee":{', b'"guarantee":{"a":392,'),
            (b'"adaptive":false', b'"adaptive":0'),
        ],
    )
    def test_what_no_ledger_says(self, used, tmp_path, old, new):
        """An edit with all hashes right."""
        assert old in used
        raw = linked(used.replace(old, new).splitlines(), used.splitlines())
        with pytest.raises(DpppsynthError, match=r"is not a ledger of version 1|form that no ledger writes|epsilon"):
            reopened(raw, tmp_path)

    def test_a_rate_nobody_releases_at_is_refused_and_not_summed(self, used, tmp_path):
        events = events_of(used)
        profile = PoissonGaussianDP(1e-9, 1.0, 1e-6).to_dict() | {"rate": 1e10}
        events[1]["guarantee"]["profile"] = profile
        with pytest.raises(PrivacyCheckError, match=r"rate: must be positive.*1e\+06"):
            reopened(chained(events), tmp_path)

    @pytest.mark.parametrize(
        "profile", [GaussianDP(30.0, at=1e-300), DiscreteLosses(((0.0, 0.5), (1.0, 0.4)), at=1e-3)]
    )
    def test_what_would_not_be_read_back_is_not_written(self, tmp_path, profile):
        ledger = Ledger.create(tmp_path / "l.json", epsilon=1e4, delta=0.09, relation=ALPHA)
        try:
            spend(ledger, promise(profile))
        except DpppsynthError:
            assert ledger.releases == ()
        assert Ledger.open(ledger.path).releases == ledger.releases


class TestReplaced:
    def test_an_older_copy_is_noticed_by_who_has_seen_more(self, ledger):
        spend(ledger, draw())
        backup = ledger.path.read_bytes()
        lost = spend(ledger, draw())
        ledger.path.write_bytes(backup)
        for use in (
            lambda: spend(ledger, draw()),
            lambda: ledger.check(draw(), mechanism="m", domain=SQUARE),
            lambda: ledger.spent,
            lambda: record(ledger, lost, draw()),
        ):
            with pytest.raises(PrivacyCheckError, match="replaced by an older or another one"):
                use()
        assert lost not in {each.id for each in Ledger.open(ledger.path).releases}

    def test_another_ledger_in_its_place_is_noticed(self, ledger, used):
        ledger.path.write_bytes(used)
        with pytest.raises(PrivacyCheckError, match="replaced"):
            spend(ledger, draw())

    def test_a_lost_file_is_noticed(self, ledger):
        ledger.path.unlink()
        with pytest.raises(InputError, match="there is no"):
            spend(ledger, draw())
        assert not ledger.path.exists()

    def test_what_others_add_is_seen(self, ledger):
        other = Ledger.open(ledger.path)
        entry = spend(other, draw())
        assert ledger.holds(entry)
        assert ledger.spent == other.spent > 0
        assert not ledger.holds(HASH)


class TestFileSystem:
    def test_a_new_ledger_is_its_owners_alone(self, ledger):
        assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600
        spend(ledger, draw())
        assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600

    @pytest.mark.skipif(not hasattr(os, "fchmod"), reason="modes are POSIX's")
    def test_a_shared_ledger_stays_shared(self, ledger):
        ledger.path.chmod(0o660)
        umask = os.umask(0o077)
        try:
            spend(ledger, draw(0.5))
        finally:
            os.umask(umask)
        assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o660

    def test_a_second_name_is_no_second_budget(self, ledger, tmp_path):
        os.link(ledger.path, tmp_path / "second.json")
        for use in (lambda: spend(ledger, draw(0.5)), lambda: Ledger.open(tmp_path / "second.json")):
            with pytest.raises(InputError, match="hard link"):
                use()
        (tmp_path / "second.json").unlink()
        spend(ledger, draw(0.5))

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes are POSIX's")
    def test_a_pipe_is_no_ledger(self, tmp_path):
        os.mkfifo(tmp_path / "pipe.json")
        with pytest.raises(InputError, match="is no file"):
            Ledger.open(tmp_path / "pipe.json")

    @pytest.mark.skipif(os.name != "posix", reason="an open file cannot be deleted elsewhere")
    @pytest.mark.parametrize("again", [False, True])
    def test_a_lock_file_deleted_while_it_is_held(self, ledger, monkeypatch, again):
        """A second process takes a new lock of that name, and spends; what the first one was about to spend counts."""
        lock, sync, seen = ledger.path.with_name("ledger.json.lock"), os.fsync, []

        def interrupted(descriptor):
            monkeypatch.undo()
            lock.unlink()
            if again:
                seen.append(spend(Ledger.open(ledger.path), draw(0.5)))
            sync(descriptor)

        monkeypatch.setattr(os, "fsync", interrupted)
        with pytest.raises(PrivacyCheckError, match=r"ledger\.json\.lock deleted.*nothing is released"):
            spend(ledger, draw(0.5))
        assert [entry.id for entry in Ledger.open(ledger.path).releases][1:] == seen
        spend(ledger, draw(0.5))

    def test_a_ledger_changed_behind_the_lock(self, ledger, monkeypatch):
        other = Ledger.create(ledger.path.with_name("other.json"), epsilon=9.0, delta=0.0, alpha=25.0).path.read_bytes()

        monkeypatch.setattr(os, "fsync", lambda _: ledger.path.write_bytes(other))
        with pytest.raises(PrivacyCheckError, match="was changed"):
            spend(ledger, draw(0.5))
        assert ledger.path.read_bytes() == other

    @pytest.mark.skipif(os.name != "posix", reason="an open file cannot be deleted elsewhere")
    def test_nothing_is_acknowledged_without_the_lock(self, ledger, monkeypatch):
        """Deleted at the last moment, after the look and before the first line names the event."""
        calls, sync = [], os.fsync

        def late(descriptor):
            calls.append(descriptor)
            if len(calls) == 2:
                ledger.path.with_name("ledger.json.lock").unlink()
            sync(descriptor)

        monkeypatch.setattr(os, "fsync", late)
        with pytest.raises(PrivacyCheckError, match="nothing is released"):
            spend(ledger, draw(0.5))

    def test_a_budget_is_set_once(self, ledger):
        before = ledger.path.read_bytes()
        with pytest.raises(InputError, match="exists, and a budget is set once"):
            Ledger.create(ledger.path, epsilon=9.0, delta=1e-5, alpha=25.0)
        assert ledger.path.read_bytes() == before

    def test_places_that_hold_no_ledger(self, tmp_path):
        for place, words in ((tmp_path, "is no file"), (tmp_path / "no.json", "dpppsynth ledger init")):
            with pytest.raises(InputError, match=words):
                Ledger.open(place)
        with pytest.raises(InputError, match="the folder must exist"):
            Ledger.create(tmp_path / "none" / "l.json", epsilon=2.0, delta=1e-5, alpha=25.0)
        with pytest.raises(InputError, match="exists"):
            Ledger.create(tmp_path, epsilon=2.0, delta=1e-5, alpha=25.0)

    @pytest.mark.parametrize("path", ["a\0b", None, 7, "x" * 5000])
    def test_what_names_no_file(self, path):
        for use in (Ledger.open, lambda path: Ledger.create(path, epsilon=2.0, delta=1e-5, alpha=25.0)):
            with pytest.raises(InputError, match=r"^ledger:"):
                use(path)

    def test_a_read_only_ledger_is_shown_and_not_spent_from(self, ledger):
        ledger.path.chmod(0o400)
        assert Ledger.open(ledger.path).remaining == 2.0
        with pytest.raises(InputError, match="read-only"):
            spend(ledger, draw())
        assert ledger.releases == ()

    def test_what_a_crash_left_of_a_write_is_no_obstacle(self, ledger):
        ledger.path.with_name("ledger.json.tmp").write_bytes(b'{"schema_version": 1, "ev')
        spend(ledger, draw())
        assert len(Ledger.open(ledger.path).releases) == 1

    def test_a_full_disk_spends_nothing(self, ledger, monkeypatch):
        def full(descriptor):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("dpppsynth.core.atomic_files.os.fsync", full)
        with pytest.raises(InputError, match=r"cannot write .*: No space left on device"):
            spend(ledger, draw())
        monkeypatch.undo()
        assert ledger.releases == ()
        spend(ledger, draw())

    def test_whoever_waits_too_long_is_told(self, ledger, monkeypatch):
        monkeypatch.setattr(module, "PATIENCE", 0.05)
        with locked(ledger.path.with_name("ledger.json.lock")):
            with pytest.raises(InputError, match="another process is writing"):
                spend(ledger, draw())
            assert ledger.spent == 0
        spend(ledger, draw())

    @pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
    def test_a_link_is_the_same_ledger(self, ledger, tmp_path):
        (tmp_path / "other").mkdir()
        link = tmp_path / "other" / "link.json"
        link.symlink_to(ledger.path)
        spend(Ledger.open(link), draw())
        assert link.is_symlink()
        assert len(ledger.releases) == 1
        assert not list((tmp_path / "other").glob("*.lock"))


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    script = Path(__file__).parents[1] / "ledger_processes.py"
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), str(tmp_path_factory.mktemp("processes"))],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | single,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes are forked")
class TestProcesses:
    def test_killed_between_authorisation_and_release_counts_as_spent(self, found):
        between = found["between"]
        assert between["ended"] == -9
        assert between["states"] == ["authorised", "authorised"]
        one, two = (GaussianDP(0.1 * math.sqrt(k), at=1e-5).epsilon(1e-5) for k in (1, 2))
        assert between["spent"] == pytest.approx([one, two])

    def test_killed_at_any_step_of_a_write_leaves_the_old_or_the_new_file(self, found):
        grown = [count for count, _ in found["steps"]]
        ended = [code for _, code in found["steps"]]
        assert len(grown) > 10
        assert ended == [-9] * (len(ended) - 1) + [0]
        assert grown == sorted(grown)
        assert set(grown) == {0, 1}

    def test_killed_while_writing_loses_nothing_that_was_promised(self, found):
        assert len(found["moments"]) == 8
        for known, grown in found["moments"]:
            assert known <= grown <= known + 1

    def test_two_at_once_never_spend_the_same_budget(self, found):
        race = found["race"]
        assert race["ended"] == [0, 0]
        assert sum(race["got"]) == race["entries"] == 7

    def test_killed_at_any_step_of_a_release_it_counts_in_full_until_it_is_recorded(self, found):
        """Between authorisation, settlement, measurement and record, and within each write."""
        settling = found["settling"]
        assert len(settling) > 20
        assert [ended for *_, ended in settling] == [-9] * (len(settling) - 1) + [0]
        stages = [(state, taken) for _, state, taken, _ in settling]
        assert set(stages) == {("authorised", False), ("authorised", True), ("measured", True)}
        for spent, state, *_ in settling:
            assert spent == pytest.approx(0.25 if state == "measured" else 1.0)

    def test_sixteen_at_once_are_all_served(self, found):
        assert found["crowd"] == [[0] * 16, 80]

    def test_one_authorisation_serves_one_of_two_processes(self, found):
        for first, second, spent in found["owners"]:
            assert sorted([first, second]) == [0, 7]
            assert spent == pytest.approx(0.25)

    def test_two_at_once_never_read_different_points(self, found):
        for ended, numbers in found["numbers"]:
            assert sorted(ended) == [0, 7]
            assert numbers == [5 if ended == [0, 7] else 4]


def test_times_are_utc_and_random_words_do_not_repeat(ledger, monkeypatch):
    spend(ledger, draw())
    events = events_of(ledger.path.read_bytes())
    assert len({event["nonce"] for event in events}) == 2
    now = np.datetime64("now")
    for event in events:
        assert abs(np.datetime64(event["at"].removesuffix("Z")) - now) < np.timedelta64(600, "s")


def test_a_copy_is_the_same_file(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.json", epsilon=1.0, delta=0.0, alpha=25.0)
    for copied in (copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger))):
        assert (copied.path, copied.head) == (ledger.path, ledger.head)


def test_taken_is_yes_or_no(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.json", epsilon=1.0, delta=0.0, alpha=25.0)
    guarantee = LaplaceSynthesizer(0.5, alpha=25.0).check(Window.rectangle(0, 0, 100, 100), n=9)
    with pytest.raises(InputError, match="taken"):
        ledger.authorise(guarantee, mechanism="cells", domain=Window.rectangle(0, 0, 100, 100), taken="no")
    assert ledger.releases == ()

"""Choice of "auto": public parameters alone decide, and a named mechanism is kept."""

import math
from functools import partial

import pytest
import shapely

import dpppsynth as dps
from dpppsynth.contract import rules
from dpppsynth.contract.rules import network_rules
from dpppsynth.datasets import soho_streets
from dpppsynth.linear_network import network_mesh
from dpppsynth.models import regular_triangulation

SQUARE = dps.Window.rectangle(0, 0, 1000, 1000)
# Points of which somewhat less, and more, than .7 lie in a square of the noise's scale, alpha / epsilon = 20 m.
FEW, MANY = 1740, 1760
Settings = partial(dps.LGCPSynthesizer, 1.0)
SOHO = soho_streets()


def plan(n=FEW, alpha=20.0, **settings):
    return Settings(alpha=alpha, **settings).plan(SQUARE, n=n)


def test_points_are_moved_where_the_noise_is_short_beside_their_distance():
    assert plan().mechanism == "lgcp-moved"
    assert plan(MANY).mechanism == "lgcp-tents"
    # The scale of a point is that of a person over the cap; and it falls with epsilon.
    capped = dps.AlphaNeighbours(10.0, max_points_per_person=2)
    assert Settings(relation=capped).plan(SQUARE, n=FEW).mechanism == "lgcp-moved"
    assert Settings(relation=capped).plan(SQUARE, n=MANY).mechanism == "lgcp-tents"
    assert dps.LGCPSynthesizer(2.0, alpha=20.0).plan(SQUARE, n=4 * FEW).mechanism == "lgcp-moved"


def test_the_mean_distance_is_that_in_the_window():
    """Not in its box: half of this one is no window."""
    triangle = dps.Window.polygon(shapely.Polygon([(0, 0), (1000, 0), (0, 1000)]))
    for n, mechanism in ((2 * FEW, "lgcp-moved"), (2 * MANY, "lgcp-tents")):
        assert Settings(alpha=10.0).plan(triangle, n=n).mechanism == mechanism


def test_few_points_are_moved_where_the_noise_is_shorter():
    """A tenth of a point may lie in a square of its scale, seven tenths where there are many."""
    for n, most in ((30, 0.1), (999, 0.1), (1000, 0.7)):
        alpha = 1000 * math.sqrt(most / n)
        assert plan(n, 0.999 * alpha).mechanism == "lgcp-moved"
        assert plan(n, 1.001 * alpha).mechanism == "lgcp-tents"


@pytest.mark.parametrize(
    "settings",
    [
        {"mechanism": "tents"},
        {"clusters": 0.3},
        {"length_scale": 200.0},
        {"mesh": regular_triangulation(SQUARE, shape=(9, 9))},
    ],
)
def test_what_goes_with_tents_keeps_them(settings):
    assert isinstance(plan(**settings).statistic, type(plan(MANY).statistic))


@pytest.mark.parametrize("relation", [dps.ReplaceOne(), dps.AddRemove()])
def test_relations_that_hide_more_keep_tents(relation):
    size = {"n": 100} if relation.n_is_public else {"expected_n": 100}
    assert Settings(relation=relation).plan(SQUARE, **size).mechanism == "lgcp-tents"


def test_a_reason_is_given_for_what_a_rule_took_alone():
    for n, word in ((FEW, "short"), (MANY, "long")):
        assert word in plan(n).reason
        assert str(n) not in plan(n).reason
        assert plan(n).reason in plan(n)._repr_html_()
    assert plan(clusters=0.3).reason
    assert not plan(mechanism="moved").reason
    assert not plan(MANY, mechanism="tents").reason


def test_a_plan_is_that_of_the_mechanism_by_name():
    for n, name in ((FEW, "moved"), (MANY, "tents")):
        one, other = plan(n), plan(n, mechanism=name)
        assert one.fingerprint == other.fingerprint
        assert one.estimator.to_dict() == other.estimator.to_dict()


@pytest.mark.parametrize(("other", "mechanism"), [(FEW, "lgcp-moved"), (MANY, "lgcp-tents")])
def test_levels_share_a_mechanism(other, mechanism):
    """All levels have tents where they differ."""
    together = Settings(alpha=20.0).plan_by(SQUARE, by="kind", levels=["a", "b"], n={"a": FEW, "b": other})
    assert {each.mechanism for each in together.parts.values()} == {mechanism}


def test_noise_of_any_length_is_planned():
    """The rule refuses nothing that tents take."""
    for epsilon, alpha in ((1e-6, 1e-6), (1e-6, 500.0), (50.0, 1e-6), (50.0, 1e-3), (1.0, 1e-9)):
        dps.LGCPSynthesizer(epsilon, alpha=alpha).plan(SQUARE, n=100)


def test_the_rule_is_that_of_the_documents():
    for window in (SQUARE, dps.Window.rectangle(0, 0, 9000, 10)):
        scale = math.sqrt(0.7 * window.area / 5000)
        assert rules.moves_tell(window, 5000, 0.999 * scale)
        assert not rules.moves_tell(window, 5000, 1.001 * scale)


class TestStreets:
    """On Soho's streets."""

    def taken(self, n, share, epsilon=1.0, **settings):
        """Mechanism, where alpha is a share of the extent."""
        made = dps.LGCPSynthesizer(epsilon, alpha=share * SOHO.extent, **settings).plan(SOHO, n=n)
        return made.mechanism.removeprefix("lgcp-")

    def test_points_are_moved_where_the_noise_is_short(self):
        for n, epsilon in ((200, 1.0), (200, 3.0), (20_000, 1.0)):
            share = epsilon * math.sqrt(0.15 / n)
            assert self.taken(n, 0.999 * share, epsilon) == "moved"
            assert self.taken(n, 1.001 * share, epsilon) != "moved"

    def test_counts_are_taken_where_their_noise_is_small(self):
        """Segments are of .075 extents at most, and the noise of 2 sqrt2 points."""
        segments = len(network_mesh(SOHO, 0.075 * SOHO.extent).elements)
        least = 2 * 0.3 * 2 * math.sqrt(2) * segments
        for n, epsilon in ((least, 1.0), (2 * least, 0.5)):
            assert self.taken(math.floor(n), 0.03, epsilon) == "tents"
            assert self.taken(math.ceil(n), 0.03, epsilon) == "cells"

    def test_networks_of_many_edges_keep_counts_and_tents(self, monkeypatch):
        monkeypatch.setattr(network_rules, "MOVED_EDGES", len(SOHO.edges))
        assert self.taken(200, 0.001) == "moved"
        monkeypatch.setattr(network_rules, "MOVED_EDGES", len(SOHO.edges) - 1)
        assert self.taken(200, 0.001) == "tents"

    def test_the_reason_is_the_one_that_held(self):
        near = dps.LGCPSynthesizer(1.0, alpha=0.03 * SOHO.extent)
        assert "too few points" in near.plan(SOHO, n=300).reason
        given = dps.LGCPSynthesizer(1.0, alpha=0.03 * SOHO.extent, length_scale=200.0).plan(SOHO, n=10**6)
        assert given.mechanism == "lgcp-tents"
        assert "too few points" not in given.reason

    @pytest.mark.parametrize("relation", [dps.ReplaceOne(), dps.AddRemove(), dps.ReplaceOne(3)])
    def test_relations_that_hide_more_move_no_point(self, relation):
        for n, mechanism in ((100, "lgcp-tents"), (30_000, "lgcp-cells")):
            size = {"n": n} if relation.n_is_public else {"expected_n": n}
            assert dps.LGCPSynthesizer(1.0, relation=relation).plan(SOHO, **size).mechanism == mechanism

    def test_what_goes_with_tents_keeps_them(self):
        assert self.taken(200, 0.001, length_scale=200.0) == "tents"
        assert self.taken(200, 0.001, clusters=0.3) == "clusters"

    def test_noise_of_any_length_is_planned(self):
        for n, share, epsilon in ((1, 1e-9, 1e-6), (100, 1e-6, 50.0), (100, 0.5, 1e-6), (1, 1e-4, 1.0)):
            self.taken(n, share, epsilon)

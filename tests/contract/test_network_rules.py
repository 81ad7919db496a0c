"""Default rules on networks: formulas of public numbers, checked by hand and by the inequalities that define them."""

import math

import numpy as np
import pytest
import shapely

from dpppsynth.contract import rules
from dpppsynth.contract.rules import network_rules, planar_rules
from dpppsynth.datasets import geodanet_streets, soho_streets
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.models import trace_mesh
from dpppsynth.models.recipes import around
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne
from dpppsynth.spatial.domains import Window
from dpppsynth.synthesizers import LaplaceSynthesizer, LGCPSynthesizer

SOHO, ARIZONA = soho_streets(), geodanet_streets()
STRAIGHT = LinearNetwork([[0, 0], [1000, 0]], [[0, 1]])
# A square of 900 by 900 with a stub of one centimetre: its hull has the square's area.
SQUARE = LinearNetwork(
    [[0, 0], [900, 0], [900, 900], [0, 900], [0.01, 0.005]],
    [[0, 1], [1, 2], [2, 3], [3, 0], [0, 4]],
)
NETWORKS = {"soho": SOHO, "arizona": ARIZONA, "straight": STRAIGHT, "square": SQUARE}
RELATIONS = [AlphaNeighbours(17.0), AlphaNeighbours(200.0), ReplaceOne(), AddRemove(), ReplaceOne(3)]


def change(mesh, relation):
    """Sensitivity of the mesh's own tents, in points."""
    one = 1.0 if isinstance(relation, AddRemove) else min(2.0, mesh.tent_slope * relation.reach)
    return relation.max_points_per_person * one


def meets(net, shape, n, epsilon, relation, scale):
    mesh = trace_mesh(net, shape=shape)
    noise = math.sqrt(2) * change(mesh, relation) / epsilon
    held = n / len(mesh.vertices)
    if scale is None:
        return held >= 3 * max(1, noise) * (1 - 1e-12)
    x0, y0, x1, y1 = net.bounds
    spacing = max(x1 - x0, y1 - y0) / (max(shape) - 1)
    return held >= max(1, noise) * (1 - 1e-12) and spacing >= 0.13 * scale * (1 - 1e-8)


def finer(net, longest):
    x0, y0, x1, y1 = net.bounds
    least = net.diameter / 100
    width, height = max(x1 - x0, least), max(y1 - y0, least)
    short = max(2, round(min(width, height) / max(width, height) * (longest - 1)) + 1)
    return (longest, short) if width >= height else (short, longest)


@pytest.mark.parametrize(
    ("n", "share"), [(100, 0.8), (392, 0.8 * 3.92**-0.125), (1, 1.0), (10**6, 0.8 / 10**0.5), (10**9, 0.2)]
)
def test_length_scale(n, share):
    assert network_rules.length_scale(SQUARE, n) == pytest.approx(900 * share, rel=1e-9)


def test_lengths_scale_with_the_extent():
    assert network_rules.length_scales(SQUARE) == pytest.approx((90, 180, 360, 720))
    assert network_rules.bandwidth(SQUARE, 32) == pytest.approx(0.35 * 900 / 2)
    # A straight street spans no area: a third of its length stands in.
    assert network_rules.length_scales(STRAIGHT) == pytest.approx((100 / 3, 200 / 3, 400 / 3, 800 / 3))


def test_rules_follow_the_domain():
    assert rules.BY_DOMAIN[type(SOHO)] is network_rules
    assert rules.BY_DOMAIN[Window] is planar_rules
    public = {
        name
        for name in vars(planar_rules)
        if getattr(vars(planar_rules)[name], "__module__", None) == planar_rules.__name__
    }
    ours = {
        "length_scale",
        "length_scales",
        "draw_mesh",
        "kim_lim_mesh",
        "fine_mesh",
        "field_mesh",
        "bandwidth",
        "mesh",
    }
    assert ours <= public
    assert ours <= set(vars(network_rules))


class TestTents:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("name", ["soho", "arizona", "square"])
    @pytest.mark.parametrize("relation", RELATIONS, ids=repr)
    @pytest.mark.parametrize("posterior", [True, False])
    def test_is_the_finest_that_meets_its_inequalities(self, name, relation, posterior):
        net = NETWORKS[name]
        for n, epsilon in [(392, 1.0), (5000, 0.3)]:
            scale = network_rules.length_scale(net, n) if posterior else None
            shape = network_rules.tents_shape(net, n, epsilon, relation, scale=scale)
            longest = max(shape)
            assert shape == finer(net, longest)
            assert longest == 3 or meets(net, shape, n, epsilon, relation, scale)
            assert longest == network_rules.MOST_TENTS or not meets(
                net, finer(net, longest + 1), n, epsilon, relation, scale
            )

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("name", list(NETWORKS))
    @pytest.mark.parametrize("relation", RELATIONS, ids=repr)
    def test_three_vertices_at_least(self, name, relation):
        net = NETWORKS[name]
        for n, scale in ((1, None), (10, 300.0)):
            mesh = network_rules.mesh(net, "tents", n, 0.01, relation, scale=scale)
            assert max(mesh.recipe["shape"]) == 3
            assert len(mesh.vertices) >= 3

    def test_an_edge_of_a_centimetre_does_not_make_tents_steep(self):
        """The stub changes neither their number nor their noise; along the streets every move would cost 2."""
        plain = LinearNetwork(SQUARE.vertices[:4], SQUARE.edges[:4])
        relation = AlphaNeighbours(9.0)
        pair = [network_rules.mesh(net, "tents", 400, 1.0, relation, scale=700.0) for net in (plain, SQUARE)]
        assert pair[0].recipe["shape"] == pair[1].recipe["shape"]
        assert change(pair[1], relation) == pytest.approx(change(pair[0], relation))
        assert change(pair[1], relation) < 0.5
        assert network_rules.spaced_mesh(SQUARE, "cells", 100.0).tent_slope * 9 > 2

    def test_straight_street(self):
        """A third of its length across: triangles no thinner than that."""
        shape = network_rules.tents_shape(STRAIGHT, 10**4, 100.0, ReplaceOne(), scale=1200.0)
        assert shape == (7, 3)  # 1000 / 6 is at least 0.13 * 1200, 1000 / 7 is not
        upright = LinearNetwork([[0, 0], [0, 1000]], [[0, 1]])
        assert network_rules.tents_shape(upright, 10**4, 100.0, ReplaceOne(), scale=1200.0) == (3, 7)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("scale", [None, 350.0])
    def test_more_budget_or_more_points_never_coarsen(self, scale):
        shapes = [network_rules.tents_shape(SOHO, 400, e, ReplaceOne(), scale=scale) for e in (0.1, 0.5, 2.0)]
        assert shapes == sorted(shapes)
        shapes = [network_rules.tents_shape(SOHO, n, 0.5, ReplaceOne(), scale=scale) for n in (40, 400, 4000)]
        assert shapes == sorted(shapes)
        assert len(set(shapes)) > 1

    def test_does_not_depend_on_the_unit(self):
        feet = LinearNetwork(SOHO.vertices / 0.3048, SOHO.edges)
        shapes = [
            network_rules.tents_shape(net, 392, 1.0, AlphaNeighbours(alpha), scale=network_rules.length_scale(net, 392))
            for net, alpha in ((SOHO, 25.0), (feet, 25.0 / 0.3048))
        ]
        assert shapes[0] == shapes[1]


class TestCells:
    @pytest.mark.parametrize("relation", RELATIONS, ids=repr)
    def test_hold_enough_points_against_the_noise(self, relation):
        """One long street, so that the number of segments is free: the longest are those that hold enough."""
        delta = relation.max_points_per_person * (1 if isinstance(relation, AddRemove) else 2)
        for n, epsilon in [(4000, 1.0), (400, 20.0)]:
            mesh = network_rules.mesh(STRAIGHT, "cells", n, epsilon, relation)
            need = 4 * max(1.0, math.sqrt(2) * delta / epsilon)
            assert len(mesh.elements) == math.ceil(n / need - 1e-6)

    def test_are_edges_where_those_are_longer(self):
        mesh = network_rules.mesh(SOHO, "cells", 10, 0.1, ReplaceOne())
        assert len(mesh.elements) == len(SOHO.edges)

    def test_are_not_more_than_any_use_has(self):
        assert (
            len(network_rules.mesh(STRAIGHT, "cells", 10**9, 100.0, ReplaceOne()).elements) == network_rules.MOST_CELLS
        )


class TestFieldMesh:
    def test_segments_are_a_share_of_the_extent(self):
        mesh = network_rules.draw_mesh(SQUARE)
        # 0.075 * 900 = 67.5: fourteen segments on each side of 900, one on the stub.
        assert len(mesh.elements) == 4 * 14 + 1
        assert len(network_rules.fine_mesh(SQUARE).elements) == 4 * 25 + 1

    def test_behind_tents_of_the_plane_the_field_lives_on_the_streets(self):
        tents = trace_mesh(SOHO, shape=(4, 4))
        assert network_rules.field_mesh(tents).recipe == network_rules.draw_mesh(SOHO).recipe
        along = network_rules.spaced_mesh(SOHO, "cells", 30.0)
        assert network_rules.field_mesh(along) is along


def test_plans_take_the_rules_from_public_numbers_alone():
    """Patterns enter no plan: the same mesh and noise for a domain, an n and a budget."""
    plan = LGCPSynthesizer(1.0, alpha=25.0).plan(SOHO, n=392)
    shape = network_rules.tents_shape(
        SOHO, 392, 1.0, AlphaNeighbours(25.0), scale=network_rules.length_scale(SOHO, 392)
    )
    assert tuple(plan.statistic.mesh.recipe["shape"]) == shape
    assert plan.estimator.ranges == tuple(share * SOHO.extent for share in network_rules.PLANE_RANGES)
    dense = LGCPSynthesizer(1.0, alpha=25.0, prior="dense").plan(SOHO, n=392)
    assert dense.estimator.length_scales == network_rules.length_scales(SOHO)
    cells = LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain").plan(SOHO, n=392)
    assert len(cells.statistic.mesh.elements) == len(network_rules.mesh(SOHO, "cells", 392, 1.0, ReplaceOne()).elements)


def test_touched_vertices_are_those_of_the_mesh():
    for net in (SOHO, ARIZONA):
        for shape in ((5, 5), (12, 11)):
            xy = shapely.get_coordinates(shapely.segmentize(net.geometry, net.extent / 2000))
            counted = network_rules._touched(around(net), shape, np.asarray(xy))
            assert counted == len(trace_mesh(net, shape=shape).vertices)

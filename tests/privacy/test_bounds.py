"""Bounds: public numbers in, guarantee out. Moves of real points against them live with the statistic's tests."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpppsynth.core.errors import InputError
from dpppsynth.models import regular_squares, regular_triangulation
from dpppsynth.privacy import (
    AddRemove,
    AlphaNeighbours,
    ReplaceOne,
    counts,
    counts_sensitivity,
    require_small_delta,
    tents,
    tents_sensitivity,
)
from dpppsynth.privacy.bounds import all_points, void_delta
from dpppsynth.release.certificate import LARGE_DELTA, UNSURE_DELTA, large_delta
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Mesh

WINDOW = Window.rectangle(0, 0, 1000, 1000)
UNIT = 2**20
TRIANGLES = regular_triangulation(WINDOW, shape=(11, 11))
SQUARES = regular_squares(WINDOW, shape=(11, 11))


class TestCounts:
    @pytest.mark.parametrize(
        ("relation", "sensitivity"),
        [
            (AlphaNeighbours(1e-6), 2),
            (AlphaNeighbours(1e6), 2),
            (ReplaceOne(), 2),
            (AddRemove(), 1),
            (AlphaNeighbours(25, max_points_per_person=3), 6),
            (ReplaceOne(3), 6),
            (AddRemove(3), 3),
        ],
        ids=repr,
    )
    def test_sensitivity_and_epsilon(self, relation, sensitivity):
        assert counts_sensitivity(relation) == sensitivity
        guarantee = counts(relation, scale=4.0)
        assert guarantee.epsilon() == sensitivity / 4
        assert guarantee.relation == relation
        assert guarantee.theorem == "counts"


class TestTents:
    def test_triangles(self):
        """Right triangles of side 100: altitude 100 / sqrt 2."""
        change = 2 * 25 / (100 / math.sqrt(2))
        assert tents_sensitivity(TRIANGLES, AlphaNeighbours(25.0)) == math.floor(UNIT * change) + 4

    def test_squares(self):
        change = 2 * math.sqrt(2) * 25 / 100
        assert tents_sensitivity(SQUARES, AlphaNeighbours(25.0)) == math.floor(UNIT * change) + 6

    def test_rectangles_take_both_sides_into_account(self):
        mesh = regular_triangulation(WINDOW, shape=(11, 41))
        change = 2 * 10 * math.hypot(1 / 100, 1 / 25)
        assert tents_sensitivity(mesh, AlphaNeighbours(10.0)) == math.floor(UNIT * change) + 4

    def test_the_flattest_triangle_rules(self):
        """One thin triangle among good ones: its altitude of 2, not the mean altitude, enters."""
        window = Window.rectangle(0, 0, 100, 100)
        vertices = [[0, 0], [100, 0], [100, 100], [0, 100], [50, 2]]
        mesh = Mesh.from_arrays(vertices, [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]], window)
        assert tents_sensitivity(mesh, AlphaNeighbours(0.5)) == math.floor(UNIT * 2 * 0.5 / 2) + 4
        assert tents_sensitivity(mesh, AlphaNeighbours(2.0)) == 2 * UNIT

    @pytest.mark.parametrize("mesh", [TRIANGLES, SQUARES], ids=["triangles", "squares"])
    @pytest.mark.parametrize("cap", [1, 3])
    def test_ends(self, mesh, cap):
        assert tents_sensitivity(mesh, AddRemove(cap)) == cap * UNIT
        assert tents_sensitivity(mesh, ReplaceOne(cap)) == cap * 2 * UNIT
        far = AlphaNeighbours(1e5, max_points_per_person=cap)
        assert tents_sensitivity(mesh, far) == cap * 2 * UNIT
        near = AlphaNeighbours(7.0, max_points_per_person=cap)
        assert tents_sensitivity(mesh, near) == cap * tents_sensitivity(mesh, AlphaNeighbours(7.0))

    def test_rounding_is_paid_for_however_short_the_move(self):
        assert tents_sensitivity(TRIANGLES, AlphaNeighbours(1e-9)) == 4
        assert tents_sensitivity(SQUARES, AlphaNeighbours(1e-9)) == 6

    @pytest.mark.parametrize("bits", [0, 1, 8, 20, 30])
    def test_lattice(self, bits):
        expected = min(2 * 2**bits, math.floor(2**bits * TRIANGLES.tent_slope * 25 * (1 + 1e-12)) + 4)
        assert tents_sensitivity(TRIANGLES, AlphaNeighbours(25.0), bits=bits) == expected
        assert tents_sensitivity(TRIANGLES, AddRemove(), bits=bits) == 2**bits

    def test_epsilon_is_sensitivity_over_scale(self):
        relation = AlphaNeighbours(25.0, max_points_per_person=2)
        guarantee = tents(TRIANGLES, relation, scale=1e6)
        assert guarantee.epsilon() == tents_sensitivity(TRIANGLES, relation) / 1e6
        assert guarantee.theorem == "tents"

    def test_elements_lost_in_their_coordinates_are_refused(self):
        """At 1e9 from the origin a double resolves 1e-7: cells of one unit leave no spare room on the lattice."""
        far = Window.rectangle(1e9, 1e9, 1e9 + 10, 1e9 + 10)
        with pytest.raises(InputError, match=r"^mesh: elements are too small for the size of its coordinates; coarsen"):
            tents_sensitivity(regular_triangulation(far, shape=(11, 11)), ReplaceOne())
        near = Window.rectangle(5e5, 2e5, 5e5 + 10, 2e5 + 10)
        assert tents_sensitivity(regular_triangulation(near, shape=(3, 3)), ReplaceOne()) == 2 * UNIT


class TestCurve:
    @pytest.mark.parametrize("mesh", [TRIANGLES, SQUARES], ids=["triangles", "squares"])
    @pytest.mark.parametrize("relation", [AlphaNeighbours(25.0), ReplaceOne(), ReplaceOne(3)], ids=repr)
    def test_rises_to_the_cap(self, mesh, relation):
        guarantee = tents(mesh, relation, scale=1e6)
        distance, epsilon = np.array(guarantee.by_distance).T
        assert np.all(np.diff(distance) > 0)
        assert np.all(np.diff(epsilon) >= 0)
        assert distance[0] > 0
        assert distance[-1] == pytest.approx(2.5 / mesh.tent_slope)
        assert epsilon[-1] == 2 * UNIT / 1e6
        for d, e in guarantee.by_distance:
            assert e == tents_sensitivity(mesh, AlphaNeighbours(d)) / 1e6

    def test_passes_through_the_guarantee_at_alpha(self):
        alpha = 2.5 / TRIANGLES.tent_slope / 40 * 10
        guarantee = tents(TRIANGLES, AlphaNeighbours(alpha), scale=1e6)
        distance, epsilon = np.array(guarantee.by_distance).T
        assert np.interp(alpha, distance, epsilon) == pytest.approx(guarantee.epsilon(), rel=1e-5)

    def test_stops_at_the_diameter(self):
        mesh = regular_triangulation(WINDOW, shape=(2, 2))
        guarantee = tents(mesh, AlphaNeighbours(25.0), scale=1e6)
        assert guarantee.by_distance[-1][0] == pytest.approx(min(WINDOW.diameter, 2.5 / mesh.tent_slope))

    def test_is_not_drawn_where_distance_means_nothing(self):
        assert tents(TRIANGLES, AddRemove(), scale=1e6).by_distance == ()
        assert counts(AlphaNeighbours(25.0), scale=2.0).by_distance == ()


def shares(n, cap):
    """All ways to share n points among persons of at most `cap`."""
    if not n:
        yield ()
    for first in range(1, min(n, cap) + 1):
        yield from ((first, *rest) for rest in shares(n - first, first))


class TestDelta:
    @pytest.mark.parametrize(("delta", "n"), [(0.0, 392), (1e-6, 392), (0.0025, 392), (1e-5, None), (0.0, None)])
    def test_accepts(self, delta, n):
        require_small_delta(delta, n)

    @pytest.mark.parametrize(("delta", "n"), [(1 / 392, 392), (0.01, 392), (0.5, 2), (0.999, 10**6)])
    def test_one_in_n_is_refused_unless_asked_for(self, delta, n):
        with pytest.raises(
            InputError, match=r"^delta: must be below 1/n .*1e-6, or say allow_large_delta=True"
        ) as caught:
            require_small_delta(delta, n)
        assert repr(delta) in str(caught.value)
        assert str(n) not in str(caught.value)
        require_small_delta(delta, n, allow_large_delta=True)

    @pytest.mark.parametrize("delta", [1.01e-5, 0.1])
    @pytest.mark.parametrize("allow", [False, True])
    def test_secret_n_leaves_no_way_out(self, delta, allow):
        with pytest.raises(InputError, match=r"^delta: at most 1e-5 where the number of points is secret, got"):
            require_small_delta(delta, None, allow_large_delta=allow)

    def test_of_one_in_a_guess_is_refused_unless_asked_for(self):
        require_small_delta(1e-5, None, expected_n=99_999.0)
        for guess in (1e5, 1e7):
            with pytest.raises(InputError, match=r"^delta: must be below 1/expected_n .*got 1e-05; take 1e-6, or say"):
                require_small_delta(1e-5, None, expected_n=guess)
            require_small_delta(1e-5, None, expected_n=guess, allow_large_delta=True)

    def test_one_over_n_as_a_float_is_one_over_n(self):
        """49 (1/49) is below 1 in floating point: one formula refuses, warns and verifies."""
        assert 49 * (1 / 49) < 1
        for n in range(1, 3000):
            assert large_delta(1 / n, [(n, None)]) == LARGE_DELTA
            assert large_delta(math.nextafter(1 / n, 0), [(n, None)]) is None
            if n > 1:
                with pytest.raises(InputError, match=r"^delta"):
                    require_small_delta(1 / n, n)

    def test_points_of_all_levels_count(self):
        sizes = [(200, None)] * 5
        assert all_points(sizes) == (1000, None)
        assert large_delta(0.0049, sizes[:1]) is None
        assert large_delta(0.0049, sizes) == LARGE_DELTA
        assert all_points([(None, 30.0), (None, None), (None, 12.5)]) == (None, 42.5)
        assert large_delta(1e-5, [(None, 50_000.0)] * 2) == large_delta(2e-5, [(None, None)]) == UNSURE_DELTA
        assert large_delta(0.0, [(None, 1e300)]) is None

    @pytest.mark.parametrize("cap", [1, 2, 3, 5])
    def test_of_one_in_n_is_safe_for_every_number_of_persons_that_a_cap_allows(self, cap):
        """Exact deltas at epsilon = 0 of what publishes somebody for certain, for all ways to share n points."""
        n = 8
        for persons in shares(n, cap):
            m = len(persons)
            assert math.ceil(n / cap) <= m <= n
            # All points of one person change: a random record is one of theirs, a random person is the one.
            record, person = Fraction(max(persons), n), Fraction(1, m)
            assert min(record, person) >= Fraction(1, n)
            assert void_delta(n) <= min(record, person)

    @pytest.mark.parametrize("delta", [-1e-9, 1.0, 2.0, math.nan, math.inf, "small", None], ids=repr)
    def test_senseless(self, delta):
        with pytest.raises(InputError, match=r"^delta: must lie in \[0, 1\), got"):
            require_small_delta(delta, 100, allow_large_delta=True)

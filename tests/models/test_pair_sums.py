"""Capped pair sums: exact, the same for two points whatever else there is, and never changed by more than the cap."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.sparse.csgraph import maximum_flow

from dpppsynth.linear_network import LinearNetwork
from dpppsynth.linear_network.street_places import UNITS, StreetPlaces
from dpppsynth.models import capped_flow, pair_network, pair_sums
from dpppsynth.models.capped_flow import Nodes, capped_total, nodes
from dpppsynth.models.pair_sums import PairStatistic, plane_shares, share_bits
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.near_pairs import NearPairs, near_lattice_places

SQUARE = Window.rectangle(0, 0, 1000, 1000)
GRID = LinearNetwork(
    [[0, 0], [100, 0], [200, 0], [0, 90], [100, 90], [200, 90], [260, 40]],
    [[0, 1], [1, 2], [0, 3], [1, 4], [2, 5], [3, 4], [4, 5], [5, 6], [6, 2]],
)


def statistic(domain=SQUARE, radius=50.0, cap=3, steps=8):
    return PairStatistic(domain, (radius,), (cap,), (steps,))


def doubled(xy, persons=None, **settings):
    return int(statistic(**settings).doubled(np.asarray(xy, dtype=float), persons)[0])


def shares(xy, radius=50.0, steps=8, cap=3):
    """(n, n) shares of all pairs by the definition: squared distances of lattice places, in Python's whole numbers."""
    places = [(round(float(x) / (radius / steps)), round(float(y) / (radius / steps))) for x, y in xy]
    table = plane_shares(steps, share_bits([cap])).tolist()
    found = np.zeros((len(xy), len(xy)), dtype=object)
    for (i, one), (j, two) in itertools.permutations(enumerate(places), 2):
        square = (one[0] - two[0]) ** 2 + (one[1] - two[1]) ** 2
        found[i, j] = table[square] if square < steps**2 else 0
    return found


def by_programme(weight, persons, most):
    """Twice the optimum of the linear programme over unordered pairs."""
    n = len(weight)
    pairs = list(itertools.combinations(range(n), 2))
    if not pairs:
        return 0.0
    owners = sorted(set(persons))
    rows = np.zeros((len(owners), len(pairs)))
    for k, (i, j) in enumerate(pairs):
        rows[owners.index(persons[i]), k] += 1
        rows[owners.index(persons[j]), k] += 1
    bounds = [(0, float(weight[i, j])) for i, j in pairs]
    found = linprog(-np.ones(len(pairs)), A_ub=rows, b_ub=np.full(len(owners), float(most)), bounds=bounds)
    return -2 * found.fun


def by_plain_flow(weight, persons, most):
    """Maximum flow of the double cover with one node for every point: no reduction at all."""
    n, owners = len(weight), sorted(set(persons))
    size = 2 + 2 * n + 2 * len(owners)
    cap = sp.lil_array((size, size), dtype=np.int32)
    for i in range(n):
        first, last = 2 + 2 * n + owners.index(persons[i]), 2 + 2 * n + len(owners) + owners.index(persons[i])
        cap[0, first] = cap[first, 2 + i] = cap[2 + n + i, last] = cap[last, 1] = most
        for j in range(n):
            if i != j and weight[i, j]:
                cap[2 + i, 2 + n + j] = weight[i, j]
    return int(maximum_flow(sp.csr_array(cap), 0, 1).flow_value)


def random_points(rng):
    """Few points, some of them in one place, and whose they are."""
    n = int(rng.integers(1, 22))
    xy = 500 + rng.choice([0, 5, 20, 60, 150]) * rng.random((n, 2))
    xy = xy[rng.integers(0, n, n)] if rng.random() < 0.5 else xy
    return xy, None if rng.random() < 0.5 else rng.integers(0, max(1, n // 2), n)


CROWD = 500 + np.random.default_rng(2).normal(0, 60, (400, 2))


def proved(monkeypatch):
    """Arguments of the proof of the last flow."""
    proof, seen = pair_network.is_largest, []
    with monkeypatch.context() as patch:
        patch.setattr(pair_network, "is_largest", lambda *given: seen.append(given) or proof(*given))
        doubled(CROWD, cap=4)
    return seen[-1]


class TestExactness:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("seed", range(60))
    def test_the_flow_is_the_linear_programme(self, seed):
        rng = np.random.default_rng(seed)
        for _ in range(3):
            (xy, persons), cap = random_points(rng), int(rng.integers(1, 5))
            told = list(range(len(xy)) if persons is None else persons)
            expected = by_programme(shares(xy, cap=cap), told, cap * 2 ** share_bits([cap]))
            assert doubled(xy, persons, cap=cap) == pytest.approx(expected, rel=1e-9, abs=1e-3)

    @pytest.mark.parametrize("neighbours", [1, 2, 32])
    def test_reductions_leave_the_flow_as_it_is(self, neighbours, monkeypatch):
        """Grouped points, persons below their caps and edges that come later, against the network of all points."""
        monkeypatch.setattr(capped_flow, "EDGES", neighbours)
        rng = np.random.default_rng(7)
        for _ in range(25):
            n, cap = 60, int(rng.integers(1, 6))
            xy = 500 + rng.choice([10, 40, 100]) * rng.normal(size=(12, 2))[rng.integers(0, 12, n)]
            persons = None if rng.random() < 0.4 else rng.integers(0, 25, n)
            told = list(range(n) if persons is None else persons)
            expected = by_plain_flow(shares(xy, cap=cap), told, cap * 2 ** share_bits([cap]))
            assert doubled(xy, persons, cap=cap) == expected

    @pytest.mark.parametrize("neighbours", [1, 32])
    def test_of_any_shares(self, neighbours, monkeypatch):
        """Few shares between places, as no metric has them: hubs that many would give to and that take little."""
        monkeypatch.setattr(capped_flow, "EDGES", neighbours)
        rng, binding = np.random.default_rng(16), 0
        for _ in range(120):
            n, cap = int(rng.integers(2, 14)), int(rng.integers(10, 30))
            place = np.sort(rng.integers(0, n, n))
            place = np.unique(place, return_inverse=True)[1]
            size = int(place.max()) + 1
            chosen = [p for p in itertools.combinations(range(size), 2) if rng.random() < 0.4]
            weight = rng.integers(1, 11, len(chosen))
            first, second = np.array(chosen, dtype=np.int64).reshape(-1, 2).T
            whole = np.zeros((size, size), dtype=np.int64) + 10 * np.eye(size, dtype=np.int64)
            whole[first, second] = whole[second, first] = weight
            told = rng.integers(0, n, n) if rng.random() < 0.5 else None
            full = whole[np.ix_(place, place)] * (1 - np.eye(n, dtype=np.int64))
            expected = by_plain_flow(full, list(range(n) if told is None else told), cap)
            assert capped_total(nodes(place, cap, told), NearPairs(first, second, weight), weight, 10) == expected
            reach = full.sum(axis=1)
            binding += told is None and expected < np.minimum(reach, cap).sum()
        # What points take is limited too.
        assert binding > 5

    def test_where_no_cap_binds_it_is_the_plain_sum(self):
        xy = np.random.default_rng(1).uniform(0, 1000, (300, 2))
        settings = {"cap": 50, "steps": 16}
        total = shares(xy, **settings).sum()
        assert total > 0
        assert doubled(xy, **settings) == total

    @pytest.mark.parametrize("edges", [4, 96])
    def test_of_a_crowd(self, edges, monkeypatch):
        """Hundreds of points at their caps and at its rim, where paths are long and edges come in rounds."""
        monkeypatch.setattr(capped_flow, "EDGES", edges)
        rng = np.random.default_rng(17)
        xy = 500 + np.concatenate([25 * rng.standard_normal((120, 2)), 80 * rng.standard_normal((80, 2))])
        expected = by_plain_flow(shares(xy, cap=6), list(range(200)), 6 * 2 ** share_bits([6]))
        assert doubled(xy, cap=6) == expected < 200 * 6 * 2 ** share_bits([6])

    def test_the_value_of_a_flow_is_that_of_a_cut(self, monkeypatch):
        """Whatever the solver says: a cut of the same capacity stands against its flow."""
        ends, owner, capacity, flow, room, reached = proved(monkeypatch)
        tail, head = owner[ends], owner[ends.reshape(-1, 2)[:, ::-1].ravel()]
        out, into = (np.bincount(each, weights=flow, minlength=len(room)) for each in (tail, head))
        assert (flow >= 0).all()
        assert (flow <= np.repeat(capacity, 2)).all()
        assert (np.maximum(out, into) <= room).all()
        left, right = np.split(reached, 2)
        crossing = left[tail] & ~right[head]
        cut = room[~left].sum() + room[right].sum() + np.repeat(capacity, 2)[crossing].sum()
        assert cut == flow.sum() > 0

    def test_no_other_flow_passes_for_the_largest(self, monkeypatch):
        """One unit less, an arc or a vertex with more than it takes, and a solver that leaves its work undone."""
        ends, owner, capacity, flow, room, reached = proved(monkeypatch)
        used, full = np.flatnonzero(flow)[0], np.flatnonzero(flow == np.repeat(capacity, 2))[0]
        less, more, small = flow.copy(), flow.copy(), room.copy()
        less[used] -= 1
        more[full] += 1
        small[owner[ends[used]]] = flow[used] - 1
        for one, most in ((less, room), (more, room), (flow, small)):
            assert not pair_network.is_largest(ends, owner, capacity, one, most, reached)
        with monkeypatch.context() as patch:
            patch.setattr(pair_network, "saturate", lambda *network: (np.full(2 * len(network[6]), True), 0))
            with pytest.raises(RuntimeError, match="maximum flow"):
                doubled(CROWD, cap=4)

    @pytest.mark.parametrize("sd", [10.0, 40.0, 200.0])
    def test_takes_little_work(self, sd, monkeypatch):
        """Each edge is one of the first of a node, and all are looked at a few times: 2 to 8 for these points."""
        solve, seen = pair_network.saturate, []

        def counted(*network):
            found = solve(*network)
            seen.append((found[1], len(network[1]), len(network[3])))
            return found

        monkeypatch.setattr(pair_network, "saturate", counted)
        doubled(np.clip(500 + sd * np.random.default_rng(18).standard_normal((3000, 2)), 0, 1000), cap=6)
        work, arcs, count = seen[0]
        assert len(seen) <= 2
        assert work <= 16 * arcs
        assert arcs <= 2 * capped_flow.EDGES * count

    def test_sums_beyond_32_bits(self):
        """40 000 points in one place meet a cap of 2^16 units each; a million, the sum of 2^20."""
        assert doubled(np.full((40_000, 2), 500.0), cap=1) == 40_000 * 2**16 > 2**31
        assert doubled(np.full((10**6, 2), 500.0), cap=1000) == 10**6 * 1000 * 2**10 > 2**37

    def test_products_beyond_64_bits(self):
        """Two places with a thousand million points each, whose shares would add up to 2^76 units."""
        count, cap = np.full(2, 10**9), 2**20
        points = Nodes(np.arange(2), np.arange(2), count, count * cap)
        pairs = NearPairs(np.array([0]), np.array([1]), np.array([1]))
        assert capped_total(points, pairs, np.array([2**15]), 2**16) == 2 * 10**9 * cap
        few = points._replace(members=np.array([10**9, 1]), cap=np.array([10**9, 1]) * cap)
        assert capped_total(few, pairs, np.array([1]), 1) == (10**9 + 1) * cap

    def test_shares_are_at_most_that_of_one_place(self):
        pairs = NearPairs(np.array([0]), np.array([1]), np.array([1]))
        for share in (-1, 3):
            with pytest.raises(ValueError, match="shares"):
                capped_total(nodes(np.arange(2), 5), pairs, np.array([share]), 2)

    def test_crowded_and_far_from_crowded_places_together(self):
        """One person beside a crowd that is full has what the crowd can give: its cap, and no more."""
        crowd, lonely = np.full((1000, 2), 500.0), [[500.0, 525.0]]
        unit = 2 ** share_bits([3])
        assert doubled(np.concatenate([crowd, lonely]), cap=3) == 1001 * 3 * unit
        assert doubled(lonely, cap=3) == 0


class TestShares:
    def test_are_rounded_down_by_whole_numbers(self):
        for reach, bits in ((16, 15), (5, 3), (1, 16)):
            exact = 2**bits * (1 - np.sqrt(np.arange(reach**2)) / reach)
            found = plane_shares(reach, bits)
            assert (found <= exact + 1e-9).all()
            assert (found > exact - 1 - 1e-9).all()
            assert found[0] == 2**bits
            assert (found >= 0).all()

    def test_caps_in_units_stay_below_2_to_the_20(self):
        for cap in (1, 2, 3, 10, 1000, 2**20):
            assert cap * 2 ** share_bits([1, cap]) <= 2**20
            assert share_bits([cap]) == 16 or 2 * cap * 2 ** share_bits([cap]) > 2**20

    @pytest.mark.parametrize("persons", [False, True])
    def test_no_pair_depends_on_anything_else(self, persons):
        """The share of two points alone is that in any pattern, in any order, next to any others: to the last bit."""
        rng = np.random.default_rng(3)
        xy = rng.uniform(300, 700, (200, 2)) + rng.choice([0, 1e-9, 0.1], (200, 1))
        found = statistic()
        all_places = found._places(0, xy)
        for _ in range(40):
            chosen = rng.permutation(200)[: rng.integers(1, 200)]
            assert (found._places(0, xy[chosen]) == all_places[chosen]).all()
            assert (found._places(0, np.asfortranarray(xy)[chosen][::-1]) == all_places[chosen][::-1]).all()
        expected = shares(xy)
        for i, j in rng.integers(0, 200, (300, 2)):
            told = np.array([0, 1]) if persons else None
            if i != j:
                assert doubled(xy[[i, j]], told, cap=3) == 2 * expected[i, j]

    @pytest.mark.parametrize("block", [1, 7, 2**22])
    def test_pairs_are_those_of_all_blocks(self, block, monkeypatch):
        monkeypatch.setattr("dpppsynth.spatial.near_pairs.BLOCK", block)
        places = np.unique(np.random.default_rng(4).integers(-40, 40, (150, 2)), axis=0)
        found = near_lattice_places(places, 9)
        square = ((places[:, None] - places) ** 2).sum(axis=2)
        expected = {(i, j, square[i, j]) for i, j in itertools.combinations(range(len(places)), 2) if square[i, j] < 81}
        met = list(zip(*(each.tolist() for each in found), strict=True))
        assert set(met) == expected
        assert len(met) == len(expected)

    def test_the_order_of_points_and_names_of_persons_do_not_matter(self):
        rng = np.random.default_rng(5)
        xy, persons = 500 + 40 * rng.normal(size=(80, 2)), rng.integers(0, 30, 80)
        value = doubled(xy, persons)
        for _ in range(5):
            order = rng.permutation(80)
            assert doubled(xy[order], rng.permutation(1000)[persons][order]) == value


class TestStreets:
    def test_distances_are_those_of_shortest_paths(self):
        """Against all paths between ends by Floyd and Warshall, in whole numbers."""
        rng = np.random.default_rng(6)
        streets = StreetPlaces(GRID, 5.0)
        positions = np.column_stack([rng.integers(0, len(GRID.edges), 150), np.zeros(150)])
        positions[:, 1] = rng.random(150) * GRID.lengths[positions[:, 0].astype(int)]
        places = np.unique(streets.places(positions), axis=0)
        path = np.full((len(GRID.vertices),) * 2, 10**12, dtype=object)
        for (u, v), length in zip(GRID.edges.tolist(), streets.lengths.tolist(), strict=True):
            path[u, v] = path[v, u] = min(path[u, v], length)
        for k in range(len(path)):
            path[k, k] = 0
        for k, i, j in itertools.product(range(len(path)), repeat=3):
            path[i, j] = min(path[i, j], path[i, k] + path[k, j])

        def apart(one, two):
            ends = [[(GRID.edges[e][0], o), (GRID.edges[e][1], int(streets.lengths[e]) - o)] for e, o in (one, two)]
            ways = [a + path[u, v] + b for (u, a), (v, b) in itertools.product(*ends)]
            return min([*ways, *([abs(one[1] - two[1])] if one[0] == two[0] else [])])

        listed = places.tolist()
        expected = {
            (i, j, d)
            for i, j in itertools.combinations(range(len(listed)), 2)
            if (d := apart(listed[i], listed[j])) < 16 * UNITS
        }
        assert set(zip(*(each.tolist() for each in streets.near(places, 16)), strict=True)) == expected

    def test_lengths_are_those_of_the_network_to_half_a_step(self):
        rng = np.random.default_rng(8)
        streets = StreetPlaces(GRID, 2.0)
        pattern = GRID.pattern(rng.integers(0, len(GRID.edges), 60), rng.random(60))
        places, which = np.unique(streets.places(pattern.positions), axis=0, return_inverse=True)
        exact = GRID.distance(pattern)
        near = streets.near(places, 40)
        found = {(i, j): d / UNITS * 2.0 for i, j, d in zip(*(each.tolist() for each in near), strict=True)}
        for i, j in itertools.combinations(range(60), 2):
            one, two = sorted((int(which[i]), int(which[j])))
            if one != two and (one, two) in found:
                assert found[one, two] == pytest.approx(exact[i, j], abs=2.01)
            elif one != two:
                assert exact[i, j] > 80 - 2.01

    def test_sums_by_the_linear_programme(self):
        rng = np.random.default_rng(9)
        found = statistic(domain=GRID, radius=60.0, cap=2)
        streets = found._streets[0]
        for _ in range(20):
            n = int(rng.integers(2, 16))
            pattern = GRID.pattern(rng.integers(0, 4, n), rng.random(n))
            places = streets.places(pattern.positions)
            weight = np.zeros((n, n), dtype=object)
            for i, j in itertools.permutations(range(n), 2):
                two = np.unique(places[[i, j]], axis=0)
                near = streets.near(two, 8)
                unit = 2**found.bits
                weight[i, j] = unit if len(two) == 1 else int(found._weights(0, near)[0]) if len(near.apart) else 0
            persons = rng.integers(0, n, n)
            expected = by_programme(weight, list(persons), 2 * 2**found.bits)
            assert int(found.doubled(pattern.positions, persons)[0]) == pytest.approx(expected, rel=1e-9, abs=1e-3)


# Clumps and single points that have much or little room below their caps, near the place where somebody comes or goes.
def surroundings(rng, cap):
    kind = rng.integers(0, 4)
    if kind == 0:
        return np.repeat([[500.0, 500.0]], rng.integers(1, 3 * cap), axis=0)
    if kind == 1:
        return 500 + 25 * rng.normal(size=(int(rng.integers(1, 8 * cap)), 2))
    if kind == 2:
        turn = 2 * np.pi * np.arange(5) / 5
        clumps = 500 + 50 * rng.uniform(0.3, 0.9) * np.column_stack([np.cos(turn), np.sin(turn)])
        return np.repeat(clumps, rng.integers(1, 2 * cap), axis=0)
    return 500 + 50 * (rng.random((int(rng.integers(1, 6 * cap)), 2)) - 0.5)


def largest(changes):
    """Share of the bound that the worst of some changes reaches; none is beyond it."""
    assert max(changes) <= 1.0
    return max(changes)


class TestSensitivity:
    """Theorem S, searched for violations: 300 changes for each relation, none above the cap and one at it."""

    UNIT = 2 ** share_bits([4])

    def change(self, one, other, persons=(None, None), domain=SQUARE):
        values = [doubled(at, told, cap=4, domain=domain) for at, told in zip((one, other), persons, strict=True)]
        return abs(values[0] - values[1]) / (2 * 4 * self.UNIT)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("reach", [20.0, 60.0, np.inf], ids=["by 20", "by 60", "anywhere"])
    def test_of_moves(self, reach):
        """A radius of 50: moves of 60 lead out of reach of a clump, and moves of 20 do not."""
        rng, found = np.random.default_rng(10), []
        for _ in range(300):
            others, turn = surroundings(rng, 4), rng.uniform(0, 2 * np.pi)
            start = np.array([[500.0, 500.0]])
            far = start + (min(reach, 400.0) * np.array([np.cos(turn), np.sin(turn)]) if rng.random() < 0.9 else 1.0)
            found.append(self.change(np.concatenate([others, start]), np.concatenate([others, far])))
        assert largest(found) >= (0.95 if reach > 50 else 0.3)

    @pytest.mark.slow
    def test_of_points_that_come_and_go(self):
        rng = np.random.default_rng(11)
        cases = (surroundings(rng, 4) for _ in range(300))
        found = [self.change(np.concatenate([each, [[500.0, 500.0]]]), each) for each in cases]
        assert largest(found) >= 0.95

    @pytest.mark.slow
    def test_of_several_points_of_one_person_each_with_its_cap(self):
        rng, found = np.random.default_rng(12), []
        for _ in range(300):
            others = surroundings(rng, 4)
            own = 500 + rng.choice([0, 80]) * rng.normal(size=(3, 2))
            if rng.random() < 0.3:
                own = np.array([[100.0, 100.0], [500.0, 500.0], [900.0, 900.0]])
                others = np.repeat(own, 4, axis=0)
            found.append(self.change(np.concatenate([others, own]), others) / 3)
        assert largest(found) >= 0.95

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("replaced", [False, True])
    def test_of_persons_with_any_number_of_points(self, replaced):
        rng, found = np.random.default_rng(13), []
        for _ in range(300):
            others = surroundings(rng, 4)
            told = rng.integers(0, len(others), len(others)) if rng.random() < 0.5 else np.arange(len(others))
            own = 500 + rng.choice([0, 30, 100]) * rng.normal(size=(int(rng.integers(1, 12)), 2))
            persons = np.concatenate([told, np.full(len(own), len(others))])
            one = np.concatenate([others, own])
            if replaced:
                other, also = np.concatenate([others, own + 300.0]), persons
            else:
                other, also = others, told
            found.append(self.change(one, other, (persons, also)))
        assert largest(found) >= 0.95

    @pytest.mark.slow
    def test_along_streets(self):
        rng, found = np.random.default_rng(14), []
        for _ in range(300):
            edges = rng.integers(0, 3, int(rng.integers(1, 20)))
            spread = rng.random() * rng.random(len(edges))
            others = np.column_stack([edges, spread * GRID.lengths[edges]])
            one = np.concatenate([others, [[0.0, rng.random() * 5]]])
            other = np.concatenate([others, [[8.0, 50.0]]])
            found.append(self.change(one, other, domain=GRID))
        assert largest(found) >= 0.95


class TestLimits:
    @pytest.mark.parametrize("domain", [SQUARE, GRID], ids=["square", "streets"])
    def test_no_pattern_has_more_pairs_of_places(self, domain):
        rng = np.random.default_rng(15)
        for radius, steps in ((30.0, 4), (80.0, 7)):
            found = PairStatistic(domain, (radius,), (1,), (steps,))
            if domain is SQUARE:
                dense = rng.uniform(400, 400 + 3 * radius, (40_000, 2))
            else:
                edge = rng.integers(0, len(GRID.edges), 20_000)
                dense = np.column_stack([edge, rng.random(len(edge)) * GRID.lengths[edge]])
            places = np.unique(found._places(0, dense), axis=0)
            near = found._near(0, places)
            assert len(near.apart) <= pair_sums.most_pairs(domain, radius, steps, len(places))
            assert len(near.apart) <= pair_sums.most_pairs(domain, radius, steps, None)
            if domain is SQUARE:
                # Places in the middle have as many neighbours as are counted.
                count = np.bincount(np.concatenate([near.first, near.second])).max()
                assert count + 1 == pair_sums._in_plane(domain, radius, steps)[1]

    def test_the_finest_lattice_has_room(self):
        for n in (100, 10**4, 10**5, 10**6):
            steps = pair_sums.finest(SQUARE, 20.0, n)
            assert pair_sums.most_pairs(SQUARE, 20.0, steps, n) <= pair_sums.MOST_PAIRS
            assert steps == 16 or pair_sums.most_pairs(SQUARE, 20.0, steps + 1, n) > pair_sums.MOST_PAIRS

    def test_nearby_population_of_persons_with_many_points_take_little_room(self):
        """2000 persons with two points each in the same two places: four million pairs of nodes, of which few enter."""
        xy = np.tile([[500.0, 500.0], [510.0, 500.0]], (2000, 1))
        persons = np.repeat(np.arange(2000), 2)
        assert doubled(xy, persons, cap=5) == 2000 * 5 * 2 ** share_bits([5])


def test_persons_alike_are_one_node_with_a_multiple_of_the_cap():
    """The same number as with a node for each person, by a person who differs in nothing but a label."""
    rng = np.random.default_rng(7)
    for _ in range(40):
        kinds = [rng.integers(0, 4, rng.integers(1, 4)) for _ in range(3)]
        chosen = [kinds[k] for k in rng.integers(0, 3, 9)]
        known, place = np.unique(np.concatenate(chosen), return_inverse=True)
        person = np.repeat(np.arange(9), [len(each) for each in chosen])
        first, second = np.triu_indices(len(known), 1)
        weight = rng.integers(0, 11, len(first))
        cap = int(rng.integers(1, 40))
        grouped = nodes(place, cap, person)
        assert len(grouped.cap) <= 3
        assert grouped.cap.sum() == 9 * cap
        assert grouped.members.sum() == len(place)
        pairs, count = np.unique(np.column_stack([person, place]), axis=0, return_counts=True)
        apart = Nodes(pairs[:, 1], pairs[:, 0], count, np.full(9, cap))
        near = NearPairs(first, second, weight)
        assert capped_total(grouped, near, weight, 10) == capped_total(apart, near, weight, 10)


def test_a_crowd_of_persons_in_one_place_takes_no_room():
    """As a crowd of points does; each of 20 000 meets the cap."""
    statistic = PairStatistic(Window.rectangle(0, 0, 1000, 1000), (20.0,), (200,), (4,))
    crowd = np.full((20_000, 2), 500.0)
    assert statistic.sums(crowd, np.arange(20_000))[0] == statistic.sums(crowd)[0] == 20_000 * 200 / 2

"""The field along streets behind counts of moved points: its channel, its unknowns, recovery, offsets, covariates.

Statistical thresholds have a false-alarm rate below 1e-5 where nothing else is said; seeds are fixed.
"""

import numpy as np
import pytest
import scipy.sparse

from dpppsynth import AlphaNeighbours
from dpppsynth.contract.audits.moved_counts import node_chances
from dpppsynth.contract.moved_counts import MovedCounts
from dpppsynth.inference import judged_inference
from dpppsynth.inference.field_inference import Posterior
from dpppsynth.inference.moved_street_inference import MovedStreetInference
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.linear_network.mesh import SegmentCells
from dpppsynth.models import moved_channels, trace_mesh
from dpppsynth.models.sparse_fields import SparseField, constant, summed, with_effects
from dpppsynth.models.whitened_fields import WhitenedField
from dpppsynth.spatial.covariates import Covariates
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern

# Four by four blocks of streets.
SIDE, STEP = 5, 200.0
PLACES = STEP * np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij"), axis=-1).reshape(-1, 2)
NUMBER = np.arange(SIDE**2).reshape(SIDE, SIDE)
EDGES = np.concatenate([np.stack([m[:-1].ravel(), m[1:].ravel()], axis=1) for m in (NUMBER, NUMBER.T)])
NETWORK = LinearNetwork(PLACES, EDGES)
CELLS = SegmentCells.of(network_mesh(NETWORK, 50.0))


def statistic(pattern, epsilon=1.0, alpha=20.0, shape=(81, 81)):
    plan = MovedCounts(trace_mesh(pattern.domain, shape=shape), AlphaNeighbours(alpha), len(pattern), epsilon)
    return plan.measure(pattern, 101)


def inference(**settings):
    given = {
        "ranges": (200.0, 600.0),
        "street_sigmas": (0.4, 1.2),
        "street_ranges": (200.0, 1000.0),
        "detours": (0.0, 500.0),
    }
    return MovedStreetInference(CELLS, (12, 12), **(given | settings))


def drawn(weights, n, seed=1):
    """Pattern of points in the segments with these weights (V,)."""
    rng = np.random.default_rng(seed)
    cell = rng.choice(len(weights), n, p=weights / weights.sum())
    along = CELLS.start[cell] + rng.random(n) * CELLS.element_measure[cell]
    return PointPattern.at(np.column_stack([CELLS.edge[cell], along]), NETWORK)


EVEN = CELLS.element_measure


class TestChannel:
    @pytest.mark.parametrize(
        ("epsilon", "side", "most"), [(0.5, 81, 0.003), (0.5, 21, 0.01), (2.0, 21, 0.01), (40.0, 21, 0.02)]
    )
    def test_is_the_law_of_moves_averaged_over_each_segment(self, epsilon, side, most):
        """Against the law of the audit at places along the segment, nodes .25, 1, 4 and 80 scales of the noise apart.

        A channel that is too wide makes fields too steep.
        """
        known = statistic(drawn(EVEN, 50), epsilon=epsilon, shape=(side, side))
        plan = known.definition
        given = inference().likelihood(known)
        r, (nx, ny) = plan.extension, plan.sides
        for segment in (3, 77):
            along = np.linspace(CELLS.start[segment], CELLS.end[segment], 101)[1::2]
            places = NETWORK.coordinates(np.column_stack([np.full(50, CELLS.edge[segment]), along]))
            exact = np.mean([node_chances(plan, place) for place in places], axis=0).reshape(nx, ny)
            one = np.zeros(len(EVEN))
            one[segment] = 1.0
            found = given.channel.forward(one)
            assert found.sum() == pytest.approx(1)
            margin = (int(np.sqrt(len(found) - 1)) - side) // 2
            inner = exact[r - margin : nx - r + margin, r - margin : ny - r + margin]
            assert np.abs(found[:-1].reshape(inner.shape) - inner).sum() / 2 < most

    @pytest.mark.parametrize("shape", [(2, 2), (2, 30), (30, 2)])
    def test_few_nodes_will_do(self, shape):
        given = inference().likelihood(statistic(drawn(EVEN, 50), epsilon=0.02, shape=shape))
        assert given.channel.matrix.sum(axis=0) == pytest.approx(1)
        assert given.channel.matrix.min() > 0

    @pytest.mark.parametrize("side", [1, 2])
    def test_chances_are_not_below_zero(self, side):
        """Next to where they are found one by one, 1.9 scales of the noise from node to node, or block to block."""
        given = inference().likelihood(statistic(drawn(EVEN, 50), epsilon=0.95 / side, shape=(21, 21)), side)
        assert given.channel.matrix.min() > -1e-10

    def test_batches_change_nothing(self, monkeypatch):
        known = statistic(drawn(EVEN, 50), epsilon=2.0, shape=(21, 21))
        whole = inference().likelihood(known).channel.matrix
        monkeypatch.setattr(moved_channels, "TOGETHER", 5000)
        np.testing.assert_allclose(inference().likelihood(known).channel.matrix, whole, atol=1e-15)

    def test_products_are_those_of_its_matrix(self):
        channel = inference().likelihood(statistic(drawn(EVEN, 50), shape=(21, 21))).channel
        rng = np.random.default_rng(1)
        values, numbers = rng.normal(size=(2, len(EVEN))), rng.normal(size=(2, len(channel.matrix)))
        np.testing.assert_allclose(channel.forward(values), values @ channel.matrix.T, atol=1e-12)
        np.testing.assert_allclose(channel.backward(numbers), numbers @ channel.matrix, atol=1e-12)

    @pytest.mark.parametrize("side", [1, 2, 3])
    def test_blocks_hold_all_points_and_shares(self, side):
        given = inference().likelihood(statistic(drawn(EVEN, 50), shape=(20, 20)), side)
        assert given.counts.sum() == 50
        assert given.channel.matrix.sum(axis=0) == pytest.approx(1)

    def test_gradient_is_that_of_the_density(self):
        given = inference().likelihood(statistic(drawn(EVEN, 200), shape=(21, 21)))
        rng = np.random.default_rng(2)
        field, along = rng.normal(size=(2, len(EVEN)))
        slope = (given.log_density(field + 1e-4 * along) - given.log_density(field - 1e-4 * along)) / 2e-4
        assert given.gradient(field) @ along == pytest.approx(slope, rel=1e-6)


class TestUnknowns:
    def field(self):
        return WhitenedField(inference().prior_at(None, 1).prior)

    def test_have_the_covariance_of_the_prior(self):
        field = self.field()
        image = field.field(np.eye(field.size))
        np.testing.assert_allclose(image.T @ image, field.prior.covariance(), atol=1e-10)

    def test_of_fields_have_its_transpose(self):
        field, rng = self.field(), np.random.default_rng(3)
        unknowns, other = rng.normal(size=(3, field.size)), rng.normal(size=(3, len(EVEN)))
        one, two = field.field(unknowns), field.adjoint(other)
        np.testing.assert_allclose((one * other).sum(axis=1), field.dot(two, unknowns))

    def test_of_another_prior_give_its_field(self):
        field, rng = self.field(), np.random.default_rng(4)
        other = WhitenedField(inference().prior_at(None, 5).prior)
        unknowns = rng.normal(size=other.size)
        wanted = other.field(unknowns)
        assert np.abs(field.field(field.like(other, unknowns)) - wanted).max() < 0.3 * np.abs(wanted).max()

    def test_nearby_precision_is_exact_without_moves(self):
        """`I + S' D S`, and again for masses that hardly differ, but not for others."""
        field, rng = self.field(), np.random.default_rng(5)
        image = field.field(np.eye(field.size))
        for masses in (rng.uniform(0, 3, len(EVEN)), rng.uniform(0, 30, len(EVEN))):
            exact = np.linalg.inv(np.eye(field.size) + image @ np.diag(masses) @ image.T)
            right = rng.normal(size=field.size)
            np.testing.assert_allclose(field.near(masses, 1.0, 1.0)(right), exact @ right, atol=1e-8)
            again = field.near(1.05 * masses, 1.0, 1.0)(right)
            np.testing.assert_array_equal(again, field.near(masses, 1.0, 1.0)(right))

    def test_effects_are_the_last(self):
        columns = np.arange(6.0).reshape(3, 2)
        prior = with_effects(summed(constant(3, 1.0)), columns, 2.0)
        assert isinstance(prior, SparseField)
        field = WhitenedField(prior)
        unknowns = np.random.default_rng(6).normal(size=(4, field.size))
        level = field.field(unknowns) - 2.0 * field.effects_of(unknowns) @ columns.T
        assert np.ptp(level, axis=1).max() < 1e-12


def test_released_masses_of_wide_splines_are_those_of_the_mean():
    """Streets of the north are uncertain; the median alone shifts mass from them."""
    model, plan = inference(), statistic(drawn(EVEN, 100)).definition
    north = CELLS.vertices[:, 1] > 400
    fields = np.random.default_rng(8).normal(0, np.where(north, 1.2, 0.01), (400, len(EVEN)))
    told = Posterior(model.normalise(fields, 100)[None], np.full((1, 400), 200.0))
    wide = model.wide(plan)
    median = model.normalise(np.median(told.flat, axis=0)[None], 100)[0]
    released = model.released(told, plan)
    values = np.exp(told.flat).mean(axis=0), np.exp(median), np.exp(released.log_values)
    mean, plain, found = (wide @ (EVEN * each) / 100 for each in values)
    assert np.abs(plain - mean).sum() > 0.2
    assert np.abs(found - mean).sum() < 0.02
    assert released.total == pytest.approx(100, rel=1e-5)


def test_a_known_intensity_is_recovered():
    """A street four times as busy as others, of 3000 points; blocks lie 200 apart, the noise's scale is 20."""
    busy = (CELLS.vertices[:, 0] == 400.0) & (np.abs(CELLS.vertices[:, 1] % 200) > 1)
    weights = EVEN * np.where(busy, 4.0, 1.0)
    model = inference()
    known = statistic(drawn(weights, 3000))
    told = model.fit(known, 1)
    found = model.released(told, known.definition)
    assert found.total == pytest.approx(3000, rel=1e-5)
    mass = np.exp(np.median(told.flat, axis=0)) * EVEN
    mass *= 3000 / mass.sum()
    exact = 3000 * weights / weights.sum()
    assert mass[busy].sum() == pytest.approx(exact[busy].sum(), rel=0.12)
    # An even field is .21 off, counts of the points themselves .09.
    assert np.abs(mass - exact).sum() / 2 / 3000 < 0.15
    # Half of the points of each segment foretell the others better by this than by an even field.
    assert (told.length_scale > 0).mean() > 0.9


@pytest.mark.slow
def test_intervals_cover_what_was_drawn_from_the_prior():
    """Nine tenths of 128 masses of blocks, in 8 releases: between .75 and .99, four and three standard errors off."""
    single = {"ranges": (400.0,), "street_sigmas": (0.8,), "street_ranges": (500.0,), "detours": (200.0,)}
    model = inference(**single, sigma=1.0)
    prior = model.prior_at(None, 0)
    block = (CELLS.vertices // 200.01).astype(int) @ (4, 1)
    held = []
    for seed in range(8):
        rng = np.random.default_rng([7, seed])
        weights = EVEN * np.exp(prior.field(rng.normal(size=prior.size)))
        exact = np.bincount(block, weights / weights.sum() * 1500)
        pattern = drawn(weights, 1500, [8, seed])
        told = model.fit(statistic(pattern).definition.measure(pattern, [9, seed]), rng)
        masses = np.array([np.bincount(block, np.exp(each.astype(float)) * EVEN) for each in told.flat])
        low, high = np.quantile(masses, (0.05, 0.95), axis=0)
        held.append(((low <= exact) & (exact <= high)).mean())
    assert 0.75 < np.mean(held) < 0.99


def test_blocks_choose_about_as_nodes_do(monkeypatch):
    weights = EVEN * np.exp(-np.hypot(*(CELLS.vertices - 300).T) / 150)
    known, model = statistic(drawn(weights, 1000)), inference()
    monkeypatch.setattr(judged_inference, "FEW", 1000)
    whole = np.exp(np.median(model.fit(known, 1).flat, axis=0)) * EVEN
    monkeypatch.setattr(judged_inference, "FEW", 10)
    blocks = np.exp(np.median(model.fit(known, 1).flat, axis=0)) * EVEN
    assert np.abs(whole - blocks).sum() / 2000 < 0.05


def test_offsets_are_known():
    """Points in proportion to an offset leave nothing to the field."""
    offset = Offset.from_grid([[1.0, 4.0], [2.0, 0.5]], (0.0, 0.0, 800.0, 800.0))
    model = inference(offset=offset, even=True)
    told = model.fit(statistic(drawn(model.measure, 2000)), 1)
    field = np.median(told.flat, axis=0)
    assert np.ptp(field) < 0.5
    assert (np.exp(field) * model.measure).sum() == pytest.approx(2000, rel=0.02)


def test_effects_of_covariates_are_found():
    """A trend with an effect of .8 per standard deviation; within .25, five standard errors about."""
    design = Covariates({"east": lambda xy: xy[:, 0]}).on(CELLS, None)
    model = inference(covariates=design, ranges=(600.0,), street_ranges=(1000.0,))
    told = model.fit(statistic(drawn(EVEN * np.exp(0.8 * design.values[:, 0]), 3000)), 1)
    assert np.median(told.effects) == pytest.approx(0.8, abs=0.25)


def test_other_statistics_are_refused():
    counts = statistic(drawn(EVEN, 50))
    model = inference()
    with pytest.raises(Exception, match=r"^prior: .* take mechanism 'moved'"):
        model.require(object())
    model.require(counts.definition)
    assert scipy.sparse.issparse(model.likelihood(counts).channel.placed)

"""Fields of several levels: against dense algebra, and against fields of one level."""

from itertools import product

import numpy as np
import pytest

from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.models.level_fields import LevelField, level_covariance, level_root
from dpppsynth.models.spectral_fields import SpectralField
from dpppsynth.models.street_fields import StreetMatern
from dpppsynth.models.whitened_fields import WhitenedField

SHAPE, SPACING = (5, 4), (2.0, 1.5)
CLOCK = np.array([[1.0, 0.6, 0.2], [0.6, 1.0, 0.6], [0.2, 0.6, 1.0]])
EACH = SpectralField(SHAPE, SPACING, 1.7, 5.0, 0.4)


def prior(own=0.3, together=0.2, types=2, each=EACH, effects=0):
    """A prior of two types at three instants, with a number of each type."""
    rng = np.random.default_rng(1)
    columns = rng.normal(size=(20, effects)) if effects else None
    mixing = level_root(level_covariance(types, CLOCK, own, together))
    return LevelField(each, mixing, 2.0 * np.kron(np.eye(types), np.ones((3, 1))), columns)


def dense(found):
    """Covariance of all fields, by its products."""
    return found.field(found.adjoint(np.eye(len(found.mixing) * 20)))


class TestCovariance:
    def test_of_levels_by_type_and_time(self):
        """Entry by entry, where nothing but the formula of the page is used."""
        found = level_covariance(2, CLOCK, 0.3, 0.2)
        levels = list(np.ndindex(2, 3))
        for (c, k), (d, m) in product(levels, levels):
            among, along = 1.0 if c == d else 0.7, 0.8 + 0.2 * CLOCK[k, m]
            assert found[3 * c + k, 3 * d + m] == pytest.approx(among * along)

    def test_of_pairs(self):
        found = level_covariance(2, np.ones((1, 1)), 1.5, 0.0, np.array([[1.0, -0.6], [-0.6, 1.0]]))
        np.testing.assert_allclose(found, [[1.0, -0.3], [-0.3, 1.0]])

    def test_correlations_are_those_of_fields_without_numbers(self):
        """By a measure, over all instants; a type whose field is even has none."""
        rng, found = np.random.default_rng(5), prior(own=1.0)
        unknowns, measure = found.white(1, rng)[0], rng.uniform(size=20)
        fields = found.field(unknowns).reshape(2, 3, 20)
        centred = fields - np.average(fields, axis=2, weights=measure)[..., None]
        one, other = (np.sqrt(measure) * centred).reshape(2, -1)
        exact = one @ other / np.sqrt(one @ one * (other @ other))
        assert abs(exact) > 0.01
        np.testing.assert_allclose(found.correlations(unknowns, 2, measure), [[1.0, exact], [exact, 1.0]])
        np.testing.assert_array_equal(found.correlations(0 * unknowns, 2, measure), np.eye(2))

    @pytest.mark.parametrize(("own", "columns"), [(0.0, 1), (0.3, 4), (1.0, 4)])
    def test_root_has_as_many_columns_as_there_are_directions(self, own, columns):
        covariance = level_covariance(4, np.ones((1, 1)), own, 0.0)
        root = level_root(covariance)
        assert root.shape == (4, columns)
        np.testing.assert_allclose(root @ root.T, covariance, atol=1e-12)

    def test_root_of_nothing_is_one_even_field_at_least(self):
        root = level_root(np.zeros((3, 3)))
        assert root.shape[1] > 0
        assert not root.any()

    def test_is_the_product_of_levels_and_places(self):
        levels, places = level_covariance(2, CLOCK, 0.3, 0.2), EACH.field(EACH.adjoint(np.eye(20)))
        numbers = 4.0 * np.kron(np.kron(np.eye(2), np.ones((3, 3))), np.ones((20, 20)))
        np.testing.assert_allclose(dense(prior()), np.kron(levels, places) + numbers, atol=1e-9)

    def test_effects_are_the_same_in_all_levels(self):
        with_effects, without = prior(effects=2), prior()
        extra = np.kron(np.ones((6, 6)), with_effects.columns @ with_effects.columns.T)
        np.testing.assert_allclose(dense(with_effects), dense(without) + extra, atol=1e-9)


@pytest.mark.parametrize("effects", [0, 2])
@pytest.mark.parametrize("own", [0.0, 0.3, 1.0])
def test_products_are_adjoint(own, effects):
    """For one field and for several at once."""
    rng, found = np.random.default_rng(2), prior(own, effects=effects)
    u, w = found.white(3, rng), rng.normal(size=(3, 120))
    assert u.shape == (3, found.size)
    np.testing.assert_allclose((found.field(u) * w).sum(axis=1), found.dot(u, found.adjoint(w)))
    np.testing.assert_allclose(found.field(u)[1], found.field(u[1]))
    np.testing.assert_allclose(found.adjoint(w)[2], found.adjoint(w[2]))
    assert found.effects_of(u).shape == (3, effects)
    np.testing.assert_allclose(found.effects_of(u), u[:, found.size - effects :].real)
    numbers = found.to_real(u)
    np.testing.assert_allclose((numbers[0] * numbers[1]).sum(), found.dot(u[0], u[1]))
    np.testing.assert_allclose(found.of_real(numbers), u)


def test_white_noise_gives_the_prior():
    """Covariances of 4000 draws lie within six standard errors of the exact ones."""
    found, rng = prior(effects=1), np.random.default_rng(3)
    drawn, exact = found.field(found.white(4000, rng)), dense(found)
    error = np.sqrt((exact**2 + np.multiply.outer(np.diag(exact), np.diag(exact))) / 4000)
    assert (np.abs(drawn.T @ drawn / 4000 - exact) < 6 * error).all()


@pytest.mark.parametrize("own", [0.3, 1.0])
def test_unknowns_of_another_prior(own):
    """The same fields are given, whatever range, shares and deviation."""
    one = prior(own, each=SpectralField(SHAPE, SPACING, 0.9, 2.0), effects=2)
    other = prior(0.0, 0.1, effects=2)
    u = other.white(1, np.random.default_rng(4))[0]
    np.testing.assert_allclose(one.field(one.like(other, u)), other.field(u), atol=1e-8)


def test_unknowns_of_a_prior_with_more_directions_give_what_all_levels_share():
    one, other = prior(0.0, 0.0), prior(0.5, 0.0)
    u = other.white(1, np.random.default_rng(5))[0]
    u[-2:] = 0
    found, exact = (each.reshape(6, 20) for each in (one.field(one.like(other, u)), other.field(u)))
    np.testing.assert_allclose(found, np.tile(exact.mean(axis=0), (6, 1)), atol=1e-8)


def test_what_is_near_the_precision_is_exact_for_numbers():
    """Without fields the precision of the numbers is that of a multinomial's, and its inverse is found at once."""
    found = prior(each=SpectralField(SHAPE, SPACING, 0.0, 5.0))
    masses = np.random.default_rng(6).uniform(0.1, 3.0, 120)
    total, numbers = masses.reshape(6, 20).sum(axis=1), found.numbers
    told = np.diag(total) - np.outer(total, total) / total.sum()
    precision = np.eye(2) + numbers.T @ told @ numbers
    u = found.white(1, np.random.default_rng(7))[0]
    solved = found.near(masses, 3.0, 0.0)(u)
    np.testing.assert_allclose(precision @ solved[-2:], u[-2:])
    np.testing.assert_allclose(solved[:-2], u[:-2])


class TestAlongStreets:
    """Fields of levels on ten segments of a street and a side street."""

    NETWORK = LinearNetwork([[0, 0], [100, 0], [100, 60], [200, 0]], [[0, 1], [1, 2], [1, 3]])
    EACH = WhitenedField(StreetMatern(1.2, 80.0, 20.0).on(network_mesh(NETWORK, 30.0)))

    def prior(self, own=0.3, columns=None):
        mixing = level_root(level_covariance(2, CLOCK, own, 0.2))
        return LevelField(self.EACH, mixing, 2.0 * np.kron(np.eye(2), np.ones((3, 1))), columns)

    def test_covariance_is_the_product_of_levels_and_places(self):
        places, found = self.EACH.prior.covariance(), self.prior()
        drawn = found.field(found.adjoint(np.eye(6 * len(places))))
        numbers = 4.0 * np.kron(np.kron(np.eye(2), np.ones((3, 3))), np.ones_like(places))
        exact = np.kron(level_covariance(2, CLOCK, 0.3, 0.2), places) + numbers
        np.testing.assert_allclose(drawn, exact, atol=1e-9)

    def test_products_are_adjoint_and_real(self):
        rng = np.random.default_rng(8)
        places = self.EACH.prior.placement.shape[0]
        found = self.prior(columns=rng.normal(size=(places, 2)))
        u, w = found.white(3, rng), rng.normal(size=(3, 6 * places))
        assert u.dtype == found.adjoint(w).dtype == float
        np.testing.assert_allclose((found.field(u) * w).sum(axis=1), found.dot(u, found.adjoint(w)))
        np.testing.assert_allclose(found.field(u)[1], found.field(u[1]))
        np.testing.assert_allclose(found.effects_of(u), u[:, -2:])

    def test_what_is_near_the_precision_is_exact_where_levels_have_the_same_masses(self):
        """Numbers aside: independent fields are then told apart, each with its own share of the information."""
        mixing = level_root(level_covariance(2, CLOCK, 0.3, 0.2))
        found, rng = LevelField(self.EACH, mixing, np.zeros((6, 0))), np.random.default_rng(9)
        masses = np.tile(rng.uniform(0, 5, self.EACH.prior.placement.shape[0]), 6)
        image = found.field(np.eye(found.size))
        precision = np.eye(found.size) + image @ np.diag(masses) @ image.T
        for right in rng.normal(size=(2, found.size)):
            np.testing.assert_allclose(precision @ found.near(masses, 1.0, 0.0)(right), right, atol=1e-8)

    def test_unknowns_of_another_prior_give_its_fields_nearly(self):
        """Placements of streets are regular, so the fields are the same."""
        other = LevelField(
            WhitenedField(StreetMatern(0.7, 50.0, 20.0).on(network_mesh(self.NETWORK, 30.0))), np.eye(6), np.eye(6)
        )
        u, found = other.white(1, np.random.default_rng(10))[0], self.prior(own=1.0)
        u[-6:] = 0
        np.testing.assert_allclose(found.field(found.like(other, u)), other.field(u), atol=1e-8)

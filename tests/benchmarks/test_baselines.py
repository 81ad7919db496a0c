"""Baselines: the published Laplace synthesizer with its known defects, and that it must not be released."""

import numpy as np
import pytest
from baselines import PaperLaplaceSynthesizer
from baselines.paper_laplace import density_sensitivity

from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

WINDOW = Window.rectangle(-5, -5, 5, 5)
PATTERN = PointPattern(np.random.default_rng(1).uniform(-5, 5, (57, 2)), WINDOW)


def test_the_sensitivity_is_that_of_the_two_smallest_cells():
    assert density_sensitivity(np.array([1.0, 0.25, 4.0, 0.5])) == pytest.approx(4 + 2)


def test_clamping_adds_the_points_that_the_published_table_shows():
    """Mean of max(0, Laplace(b)) is b/2: a hundred cells of scale 2/eps points add 100/eps, here 1000 to 57.

    With noise on counts of scale 1/eps, or without clamping, the mean would be near 557 or 57. Standard error of the
    mean of 400 releases: each cell has sd about 22, so 100 cells 220, over 20: 11; six of them make 2e-9.
    """
    rng = np.random.default_rng(2)
    synthesizer = PaperLaplaceSynthesizer(0.1, shape=(11, 11))
    totals = [synthesizer.release(PATTERN, rng).intensity.total for _ in range(400)]
    # A cell with c points and scale b = 20 has mean c + b/2 exp(-c/b).
    edges = np.linspace(-5, 5, 11)
    count = np.histogram2d(*PATTERN.xy.T, bins=(edges, edges))[0].ravel()
    assert np.mean(totals) == pytest.approx((count + 10 * np.exp(-count / 20)).sum(), abs=6 * 11)


def test_one_cell_has_no_two_to_compare():
    with pytest.raises(InputError, match=r"^shape: needs at least two cells"):
        PaperLaplaceSynthesizer(1.0, shape=(2, 2)).release(PATTERN)


class TestStreets:
    # Three edges; at resolution 50 they have 2, 1 and 1 segments: of 50, 50, 40 and 0.5.
    NETWORK = LinearNetwork([[0, 0], [100, 0], [100, 40], [100.5, 0]], [[0, 1], [1, 2], [1, 3]])
    PATTERN = NETWORK.pattern([0, 0, 0, 1], [0.1, 0.2, 0.9, 0.5])

    def noised(self, epsilon, seed):
        release = PaperLaplaceSynthesizer(epsilon, resolution=50.0).release(self.PATTERN, seed)
        return release.intensity.values

    def test_cells_are_segments_and_hold_densities(self):
        """At an absurd budget the densities are the counts over the lengths, in the order of the edges."""
        np.testing.assert_allclose(self.noised(1e9, 3), [2 / 50, 1 / 50, 1 / 40, 0], atol=1e-7)

    def test_all_segments_share_the_noise_of_the_two_shortest(self):
        """Scale 1/0.5 + 1/40 = 2.025 at epsilon 1, for the long segments too.

        Of the 2000 noised densities of the first segment about half are above the count's .04, and their mean excess is
        the scale; its standard error is 2.025 / sqrt(1000), seven of them 0.45.
        """
        first = np.array([self.noised(1.0, seed)[0] for seed in range(2000)])
        above = first[first > 0.04] - 0.04
        assert len(above) == pytest.approx(1000, abs=160)
        assert above.mean() == pytest.approx(2.025, abs=0.45)

    def test_patterns_lie_on_the_network_and_are_marked(self):
        release = PaperLaplaceSynthesizer(1.0, resolution=50.0).release(self.PATTERN, 5)
        pattern = release.sample(1, 6)[0]
        assert pattern.domain is self.NETWORK
        assert self.NETWORK.contains(pattern.xy).all()
        assert "not to be released" in repr(release)

    def test_cells_must_suit_the_domain(self):
        with pytest.raises(InputError, match=r"^shape: .*resolution="):
            PaperLaplaceSynthesizer(1.0, shape=(3, 3)).release(self.PATTERN)
        with pytest.raises(InputError, match=r"^resolution: .*shape="):
            PaperLaplaceSynthesizer(1.0, resolution=1.0).release(PATTERN)
        single = LinearNetwork([[0, 0], [1, 0]], [[0, 1]])
        with pytest.raises(InputError, match=r"^resolution: needs at least two cells, got 5"):
            PaperLaplaceSynthesizer(1.0, resolution=5.0).release(single.pattern([0], [0.5]))

    @pytest.mark.parametrize("given", [{}, {"shape": (3, 3), "resolution": 1.0}])
    def test_exactly_one_is_given(self, given):
        with pytest.raises(InputError, match=r"^shape, resolution: give one"):
            PaperLaplaceSynthesizer(1.0, **given)

    def test_lengths_are_positive(self):
        with pytest.raises(InputError, match=r"^resolution: must be a positive"):
            PaperLaplaceSynthesizer(1.0, resolution=-1.0)

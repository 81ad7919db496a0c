"""Heat kernels of large networks: tiles against the whole matrix, and their guarantee against that of the whole."""

import numpy as np
import pytest

import dpppsynth as dps
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork, heat_kernels
from dpppsynth.linear_network.heat_kernels import diffusion_matrix, diffusion_rows, matrix_error, segment_distances
from dpppsynth.linear_network.mesh import network_mesh
from dpppsynth.mechanisms.kernel.bound import heat as bound
from dpppsynth.mechanisms.kernel.bound.heat import diffusion, joined, smallest_diffusion_bandwidth


def blocks(side, seed=None, spread=0.0):
    """Square blocks of 100, their corners moved at random."""
    x, y = (each.ravel() for each in np.meshgrid(np.arange(side + 1.0), np.arange(side + 1.0)))
    number = np.arange((side + 1) ** 2).reshape(side + 1, side + 1)
    across, along = (number[:, :-1], number[:, 1:]), (number[:-1], number[1:])
    ends = np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in (across, along)])
    moved = np.random.default_rng(seed).uniform(-spread, spread, (len(x), 2))
    return LinearNetwork(100 * np.column_stack([x, y]) + moved, ends)


@pytest.fixture
def small(monkeypatch):
    """Tiles from the first segment on, and small ones: 40 on the networks here."""
    monkeypatch.setattr(heat_kernels, "MOST_SEGMENTS", 1)
    monkeypatch.setattr(heat_kernels, "TILE", 12)


def written_out(matrix):
    return matrix.rows(np.arange(len(matrix)))


class TestRows:
    # From a hundredth of a segment to several: jumps of single segments, and nearly normal laws.
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("bandwidth", [1.0, 10.0, 30.0, 60.0, 100.0, 150.0, 200.0])
    @pytest.mark.parametrize("spread", [0.0, 40.0])
    @pytest.mark.usefixtures("small")
    def test_close_to_the_whole_matrix(self, bandwidth, spread, monkeypatch):
        mesh = network_mesh(blocks(14, 3, spread), 100.0)
        rows = written_out(diffusion_rows(mesh, bandwidth))
        monkeypatch.undo()
        whole = diffusion_matrix(mesh, bandwidth)
        assert np.abs(rows.sum(axis=1) - 1).max() < 1e-14
        assert (rows >= 0).all()
        assert np.abs(rows - whole).sum(axis=1).max() < 2e-11
        likely = whole > 1e-9
        assert np.abs(rows[likely] / whole[likely] - 1).max() < 1e-3

    @pytest.mark.usefixtures("small")
    def test_zero_beyond_the_reach_alone(self):
        mesh, bandwidth = network_mesh(blocks(14), 50.0), 30.0
        matrix, apart = diffusion_rows(mesh, bandwidth), segment_distances(mesh)
        assert len(matrix.tiles) > 40
        reach = max(9 * bandwidth, 4.5 * bandwidth + 300)
        for tile, columns in zip(matrix.tiles, matrix.columns, strict=True):
            assert np.array_equal(columns, np.flatnonzero(apart[tile].min(axis=0) <= reach))
        assert max(map(len, matrix.columns)) < len(mesh.elements) / 2

    def test_small_networks_have_the_whole_matrix(self):
        mesh = network_mesh(blocks(3), 50.0)
        (values,) = diffusion_rows(mesh, 40.0).values
        assert np.array_equal(values, diffusion_matrix(mesh, 40.0))

    @pytest.mark.usefixtures("small")
    def test_no_room(self, monkeypatch):
        mesh = network_mesh(blocks(6), 100.0)
        monkeypatch.setattr(heat_kernels, "MOST_PRODUCTS", len(mesh.elements) * 20**2)
        with pytest.raises(InputError, match=r"^mesh: a kernel of 50 unit reaches .* of its 84 segments"):
            diffusion_rows(mesh, 50.0)
        monkeypatch.setattr(heat_kernels, "MOST_TILED", 83)
        for call in (lambda: diffusion_rows(mesh, 50.0), lambda: joined(mesh, 50.0)):
            with pytest.raises(InputError, match="takes at most 83 segments, got 84"):
                call()


class TestGuarantee:
    @pytest.mark.slow
    @pytest.mark.parametrize(("bandwidth", "alpha", "spread"), [(60.0, 50.0, 40.0), (120.0, 100.0, 0.0)])
    def test_that_of_the_whole_matrix(self, monkeypatch, bandwidth, alpha, spread):
        """A pair of rows in two tiles that is left out, or loses columns, promises another epsilon."""
        mesh = network_mesh(blocks(9, 5, spread), 100.0)
        whole = diffusion(mesh, alpha, bandwidth=bandwidth, delta=1e-6)
        monkeypatch.setattr(heat_kernels, "MOST_SEGMENTS", 1)
        monkeypatch.setattr(heat_kernels, "TILE", 12)
        again = network_mesh(mesh.domain, 100.0)
        tiled = diffusion(again, alpha, bandwidth=bandwidth, delta=1e-6)
        assert len(again.last_diffusion.get(bandwidth, list).tiles) > 12
        # Entries that were left out are infinite losses of 1e-13: they show at the least deltas, and never as a gain.
        for epsilon, delta in whole.profile.rows[1:]:
            found = tiled.profile.epsilon(delta)
            assert found >= (1 - 2e-5) * epsilon
            assert found <= (1 + (1e-4 if delta >= 1e-7 else 1e-2)) * epsilon
        near = [row for row in whole.by_distance if row[1] < 40]
        np.testing.assert_allclose(tiled.by_distance[: len(near)], near, rtol=1e-4)

    @pytest.mark.slow
    @pytest.mark.usefixtures("small")
    def test_the_smallest_bandwidth(self):
        mesh = network_mesh(blocks(12), 100.0)
        found = smallest_diffusion_bandwidth(mesh, 50.0, epsilon=8.0, delta=1e-6)
        assert diffusion(mesh, 50.0, bandwidth=found, delta=1e-6, epsilon=8.0).epsilon(1e-6) <= 8.0
        with pytest.raises(dps.PrivacyCheckError):
            diffusion(mesh, 50.0, bandwidth=0.998 * found, delta=1e-6, epsilon=8.0)

    def test_pairs_found_by_parts(self, monkeypatch):
        mesh = network_mesh(blocks(8, 2, 30.0), 60.0)
        pairs, gaps = joined(mesh, 150.0)
        monkeypatch.setattr(bound, "BLOCK", 1000)
        parts, apart = joined(mesh, 150.0)
        near = segment_distances(mesh)
        wanted = np.argwhere(np.triu(near <= 150.0, 1))
        assert {tuple(pair) for pair in wanted} == {tuple(pair) for pair in parts} == {tuple(pair) for pair in pairs}
        assert np.array_equal(gaps, apart)
        np.testing.assert_allclose(near[tuple(parts.T)], apart)


@pytest.mark.slow
def test_a_release_on_more_segments_than_a_matrix_serves(tmp_path):
    streets = blocks(40)
    assert len(streets.edges) > 3000
    assert matrix_error(network_mesh(streets, 100.0), 160.0) < 1e-8
    rng = np.random.default_rng(7)
    points = dps.PointPattern.at(np.column_stack([rng.integers(0, 60, 400), rng.uniform(0, 100, 400)]), streets)
    kernel = dps.KernelSynthesizer(10.0, delta=1e-6, alpha=50.0, bandwidth=170.0)
    release = kernel.release(points)
    release.save(tmp_path / "release")
    again = dps.load_release(tmp_path / "release", limit=False)
    assert again.guarantee.epsilon() <= 10
    (drawn,) = again.patterns
    # Points of the first 60 streets, 150 on each kilometre, leave children along the first blocks alone.
    assert 400 / 2 < len(drawn) < 400 * 2
    assert np.mean(drawn.xy[:, 1] < 1500) > 0.99

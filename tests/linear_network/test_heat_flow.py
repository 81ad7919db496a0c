"""Heat flow by sparse solutions, against the exact matrix and an exponential of full precision."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

from dpppsynth import datasets
from dpppsynth.core.errors import InputError
from dpppsynth.evaluation import kernel_intensity
from dpppsynth.linear_network import LinearNetwork, heat_kernels, network_mesh
from dpppsynth.linear_network.heat_kernels import conductances, diffusion_matrix, spread


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "segment"), [("geodanet_crimes", 150.0), ("geodanet_crimes", 700.0)])
@pytest.mark.parametrize("bandwidth", [50.0, 300.0, 3000.0])
def test_sums_are_those_of_the_matrix(name, segment, bandwidth):
    mesh = network_mesh(getattr(datasets, name)(on="streets").domain, segment)
    masses = np.random.default_rng(1).poisson(2.0, len(mesh.elements)).astype(float)
    wanted, length = masses @ diffusion_matrix(mesh, bandwidth), mesh.element_measure
    found = spread(mesh, bandwidth, masses)
    assert np.abs((found - wanted) / length).max() < 1e-9 * (wanted / length).max()
    assert found.sum() == pytest.approx(masses.sum(), rel=1e-9)
    assert (found >= 0).all()


def test_short_streets_do_no_harm():
    """Soho has one of a centimetre, on which the matrix's squarings would lose digits; the exponential is another's."""
    mesh = network_mesh(datasets.soho_deaths(on="streets").domain, 60.0)
    length, flow = mesh.element_measure, conductances(mesh)
    laplacian = (sp.diags_array(flow.sum(axis=1)) - flow).toarray()
    values, vectors = scipy.linalg.eigh(laplacian / np.sqrt(np.outer(length, length)))
    masses = np.random.default_rng(2).poisson(2.0, len(length)).astype(float)
    kept = np.exp(-(80.0**2) / 2 * np.maximum(values, 0.0))
    wanted = (vectors @ (kept * (vectors.T @ (masses / np.sqrt(length))))) * np.sqrt(length)
    np.testing.assert_allclose(
        spread(mesh, 80.0, masses) / length, wanted / length, atol=1e-6 * (wanted / length).max()
    )


def test_kernel_estimates_of_large_networks_are_those_of_small_ones(monkeypatch):
    pattern = datasets.geodanet_crimes(on="streets")
    small = kernel_intensity(pattern, 400.0)(pattern.xy)
    monkeypatch.setattr(heat_kernels, "MOST_SEGMENTS", 10)
    # A network of its own: heat flow is remembered.
    again = LinearNetwork.from_geojson(pattern.domain.to_geojson())
    large = kernel_intensity(again.snap(pattern.xy, 1.0), 400.0)
    np.testing.assert_allclose(large(pattern.xy), small, rtol=1e-8)
    assert large.total == len(pattern)


def test_too_many_segments_are_refused(monkeypatch):
    monkeypatch.setattr(heat_kernels, "MOST_SPREAD", 10)
    mesh = network_mesh(datasets.geodanet_crimes(on="streets").domain, 500.0)
    with pytest.raises(InputError, match=r"^mesh: heat flow takes at most 10 segments"):
        spread(mesh, 100.0, np.ones(len(mesh.elements)))

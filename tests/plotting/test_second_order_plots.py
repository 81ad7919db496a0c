"""Pictures of K-functions and envelopes show the numbers that they were given."""

import numpy as np
import pytest

import dpppsynth as dps
from dpppsynth.core.errors import InputError
from dpppsynth.plotting import plot_envelope, plot_k_function

WINDOW = dps.Window.rectangle(0, 0, 300, 300)
R = np.arange(0.0, 61, 5)


@pytest.fixture(scope="module")
def clusters():
    return dps.simulate.thomas(WINDOW, 0.001, 5, 8.0, rng=1)


def test_k_functions_by_name(clusters):
    even = dps.simulate.poisson(WINDOW, 0.005, rng=2)
    found = {name: dps.evaluation.k_function(each, R) for name, each in (("clusters", clusters), ("even", even))}
    ax = plot_k_function(found, unit="metre")
    lines = {line.get_label(): line for line in ax.lines}
    for name, k in found.items():
        assert lines[name].get_ydata() == pytest.approx(np.sqrt(k.k / np.pi) - R)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("r (m)", "L(r) - r")


def test_along_streets_k_itself_is_straight():
    streets = dps.datasets.soho_streets()
    k = dps.linear_network.k_function(dps.simulate.poisson(streets, 0.02, rng=3), R)
    ax = plot_k_function(k)
    assert ax.lines[0].get_ydata() == pytest.approx(k.k - R)
    with pytest.raises(InputError, match="windows or all of networks"):
        plot_k_function({"one": k, "two": dps.evaluation.k_function(dps.simulate.poisson(WINDOW, 0.01, rng=4), R)})
    with pytest.raises(InputError, match="KFunction"):
        plot_k_function(3)


def test_an_envelope_with_its_band(clusters):
    even = [dps.simulate.poisson(WINDOW, 0.005, rng=seed) for seed in range(19)]
    curves = [dps.evaluation.k_function(each, R) for each in even]
    band = dps.evaluation.envelope(dps.evaluation.k_function(clusters, R), curves, simultaneous=True)
    ax = plot_envelope(band)
    observed = next(line for line in ax.lines if line.get_label() == "observed")
    assert observed.get_ydata() == pytest.approx(band.observed - R)
    corners = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (corners.min(), corners.max()) == pytest.approx(((band.lower - R).min(), (band.upper - R).max()))
    assert any("simultaneous" in text.get_text() for text in ax.get_legend().get_texts())


def test_an_envelope_along_streets():
    streets = dps.datasets.soho_streets()
    curves = [dps.linear_network.k_function(dps.simulate.poisson(streets, 0.02, rng=seed), R) for seed in range(3)]
    band = dps.evaluation.envelope(curves[0], curves[1:])
    ax = plot_envelope(band, unit="metre")
    observed = next(line for line in ax.lines if line.get_label() == "observed")
    assert observed.get_ydata() == pytest.approx(curves[0].k - R)
    assert (band.curve, ax.get_xlabel(), ax.get_ylabel()) == ("K", "r (m)", "K(r) - r")

"""Baselines: the published Laplace synthesizer with its known defects, and the stamp that it must not be released."""

import numpy as np
import pytest

from dpppsynth.baselines import PaperLaplaceSynthesizer
from dpppsynth.baselines.laplace import WARNING, density_sensitivity
from dpppsynth.cli import app
from dpppsynth.domains import Window
from dpppsynth.errors import InputError, PrivacyCheckError
from dpppsynth.patterns import PointPattern
from dpppsynth.privacy import verify
from dpppsynth.privacy.certificate import read
from dpppsynth.release import load_release

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


def test_it_is_marked_and_refused_everywhere(tmp_path):
    from typer.testing import CliRunner

    release = PaperLaplaceSynthesizer(1.0, shape=(6, 6)).release(PATTERN)
    folder = release.save(tmp_path / "baseline", patterns=2)
    cert = read(folder)
    assert not cert["releasable"]
    assert cert["warning"] == WARNING
    outcome = verify(folder)
    assert not outcome.holds
    assert not next(check for check in outcome.checks if check.name == "randomness").holds
    with pytest.raises(PrivacyCheckError):
        load_release(folder)
    assert CliRunner().invoke(app, ["verify", str(folder)]).exit_code == 3
    assert "not to be released" in repr(release)


def test_one_cell_has_no_two_to_compare():
    with pytest.raises(InputError, match=r"^shape: needs at least two cells"):
        PaperLaplaceSynthesizer(1.0, shape=(2, 2)).release(PATTERN)

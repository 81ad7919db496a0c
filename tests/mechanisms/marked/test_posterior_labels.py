"""Types and times of the values in a posterior's file."""

import arviz as az
import numpy as np
import pytest
from support.seams import one_prior

import dpppsynth as dps
from dpppsynth.core.errors import InputError
from dpppsynth.inference.field_inference import read_posterior

SQUARE = dps.Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
MARKS = dps.Marks(dps.Types("offence", ["burglary", "theft"]), dps.Times.day("hour", hats=3))


@pytest.fixture(scope="module")
def release():
    rng = np.random.default_rng(3)
    marks = {"offence": rng.choice(["burglary", "theft"], 200, p=[0.2, 0.8]), "hour": rng.uniform(0, 24, 200)}
    pattern = dps.PointPattern(rng.uniform(0, 1000, (200, 2)), SQUARE, marks)
    near = dps.AlphaNeighbours(50.0, time=1.0, types="public")
    with one_prior():
        return dps.MarkedSynthesizer(8.0, marks=MARKS, relation=near, spacing=500.0).release(pattern, rng=1)


def test_values_are_told_apart_by_type_and_time(release, tmp_path):
    """Those of one type at one instant are the log-intensity there: with x and y alone six values lay at one place."""
    release.save(tmp_path / "public", patterns=0)
    read = az.from_netcdf(tmp_path / "public" / "posterior.nc")["posterior"]
    for posterior in (read, release.posterior):
        assert posterior["type"].attrs["long_name"] == "offence: 0 burglary, 1 theft"
        assert posterior["time"].attrs["long_name"] == "hour in hours"
        theft = posterior["log_intensity"].isel(chain=0, draw=0)
        theft = theft.where((posterior["type"] == 1) & (posterior["time"] == 8.0), drop=True)
        at = np.column_stack([theft["x"], theft["y"]])
        draw = next(release.model.posterior_mean(release.draws).draws())
        np.testing.assert_allclose(np.exp(theft), draw(at, type="theft", time=8.0), rtol=1e-5)


def test_other_types_and_times_are_refused(release):
    grid, model = release.model.mesh, release.model
    other = dps.Marks(dps.Types("offence", ["burglary", "theft"]), dps.Times.day("hour", hats=6))
    file = release.draws.file(grid, model.scales)
    assert read_posterior(file, grid, model.scales).fields.shape == release.draws.fields.shape
    moved = type(grid)(grid.space, dps.Marks(other.types, dps.Times("hour", 0, 12, 3)))
    assert len(moved.vertices) == len(grid.vertices)
    with pytest.raises(InputError, match="no posterior on the mesh"):
        read_posterior(file, moved, model.scales)

"""Files of posterior draws: others read them, nothing else fits into them, and anything else is refused."""

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.seams import chance_for_nuts

import dpppsynth as dps
from dpppsynth.core.errors import InputError
from dpppsynth.inference.field_inference import FitNotes, Posterior, read_posterior
from dpppsynth.models import regular_triangulation
from dpppsynth.release import load_release
from dpppsynth.spatial.domains import Window

STORED = Path(__file__).parents[1] / "data" / "releases"
MESH = regular_triangulation(Window.rectangle(0, 0, 4, 2), shape=(4, 3))
SCALES = (150.0, 300.0)
RNG = np.random.default_rng(0)
NOTES = replace(FitNotes.unknown(SCALES), weight=np.array([0.25, 0.75]), rhat=np.array([1.001, np.nan]))
DRAWS = Posterior(RNG.normal(size=(4, 50, 12)).astype(np.float32), RNG.choice(SCALES, (4, 50)), NOTES)
FILE = DRAWS.file(MESH, SCALES)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "posterior.nc").write_bytes(FILE)
    return tmp_path / "posterior.nc"


class TestOthers:
    """HDF5 by its own library, netCDF and ArviZ by theirs."""

    def test_xarray_reads_every_number_dimension_and_note(self, path):
        import xarray as xr

        with xr.open_dataset(path, group="posterior", engine="h5netcdf") as read:
            assert read.identical(DRAWS.to_xarray(MESH).assign_attrs(read.attrs))
            assert set(read["log_intensity"].coords) == {"chain", "draw", "vertex", "x", "y"}
            for name, values in NOTES.notes.items():
                np.testing.assert_array_equal(read.attrs[name], values)

    def test_arviz_reads_and_sums_it_up(self, path):
        import arviz as az

        read = az.from_netcdf(path)["posterior"]
        for posterior in (read, DRAWS.to_xarray(MESH)):
            table = az.summary(posterior)
            assert len(table) == 13
            assert table.loc["log_intensity[3]", "mean"] == pytest.approx(DRAWS.fields[..., 3].mean(), abs=0.01)

    def test_chunks_compression_and_links_there_are_none(self, path):
        import h5py

        with h5py.File(path) as file:
            items = []
            file.visititems(lambda name, item: items.append((name, item)))
            arrays = [item for _, item in items if isinstance(item, h5py.Dataset)]
            assert len(arrays) == 7
            assert all(each.chunks is None and each.compression is None and not each.external for each in arrays)
            assert file["posterior/log_intensity"].dims[2]["vertex"].shape == (12,)


class TestSize:
    @pytest.mark.parametrize(("chains", "draws"), [(1, 1), (1, 64), (4, 500)])
    def test_bound(self, chains, draws):
        posterior = Posterior(np.zeros((chains, draws, 12), np.float32), np.full((chains, draws), 150.0))
        sixteen = tuple(np.arange(1.0, 17))
        most = 4 * chains * draws * 12 + 8 * chains * draws + 20 * 12 + 4 * draws + 32 * 1024
        assert len(posterior.file(MESH, sixteen)) <= most


class TestReading:
    def test_round_trip(self):
        read = read_posterior(FILE, MESH, SCALES)
        np.testing.assert_array_equal(read.fields, DRAWS.fields)
        np.testing.assert_array_equal(read.length_scale, DRAWS.length_scale)
        for name, values in read.fits.notes.items():
            np.testing.assert_array_equal(values, NOTES.notes[name])

    @pytest.mark.parametrize("size", [0, 2**31, 2**62, 2**64 - 1])
    def test_declared_sizes_are_not_believed(self, size):
        """Draws that a few bytes claim are refused before any memory is asked for."""
        shape = struct.pack("<3Q", 4, 50, 12)
        assert shape in FILE
        for claimed in ((size, 50, 12), (4, size, 12), (size, size, size)):
            claim = FILE.replace(shape, struct.pack("<3Q", *claimed))
            with pytest.raises(InputError, match=r"^release: posterior\.nc is no posterior"):
                read_posterior(claim, MESH, SCALES)

    def test_compressed_numbers_are_refused(self, path):
        """The size of a file does not bound that of what it unpacks to."""
        import h5py

        with h5py.File(path, "a") as file:
            del file["posterior/log_intensity"]
            file["posterior"].create_dataset("log_intensity", data=DRAWS.fields, compression="gzip")
        with pytest.raises(InputError, match=r"^release: posterior\.nc is no posterior"):
            read_posterior(path.read_bytes(), MESH, SCALES)

    @given(st.data())
    def test_bitten_files_are_refused_or_hold_draws(self, data):
        cut = data.draw(st.integers(0, len(FILE)))
        content = FILE[:cut] + data.draw(st.binary(max_size=64)) + FILE[cut + data.draw(st.integers(0, 64)) :]
        try:
            read = read_posterior(content, MESH, SCALES)
        except InputError:
            return
        assert read.fields.shape[2] == 12
        assert np.isfinite(read.fields).all()

    @pytest.mark.parametrize(
        "changes",
        [
            {"fields": np.full((4, 50, 12), np.nan, np.float32)},
            {"fields": np.zeros((4, 50, 11), np.float32)},
            {"length_scale": np.full((4, 50), 160.0)},
            {"fits": replace(NOTES, length_scale=np.array([150.0, 301.0]))},
            {"fits": replace(NOTES, ess=np.array([-1e9, 500.0]))},
        ],
        ids=["no number", "other mesh", "other scale", "other prior", "negative"],
    )
    def test_contents_that_no_release_has(self, changes):
        posterior = replace(DRAWS, **changes)
        mesh = MESH if posterior.fields.shape[2] == 12 else replace_vertices(MESH)
        with pytest.raises(ValueError, match=r"\w"):
            read_posterior(posterior.file(mesh, SCALES), MESH, SCALES)


def replace_vertices(mesh):
    """Something with one vertex less."""
    return type("Fewer", (), {"vertices": mesh.vertices[:-1], "labels": {}})


@pytest.mark.exhaustive
@pytest.mark.parametrize("engine", ["nutpie", "pymc"])
def test_what_chains_showed_is_kept(engine, tmp_path):
    """With chance in the place of NUTS: figures of every length scale that was run, and none of the others."""
    # Crowded in a corner, so that an even field carries no weight.
    pattern = dps.PointPattern(1000 * RNG.uniform(size=(80, 2)) ** 3, Window.rectangle(0, 0, 1000, 1000))
    with chance_for_nuts():
        settings = dps.LGCPSynthesizer(1.0, alpha=25.0, mechanism="tents", inference="nuts", engine=engine)
        release = settings.release(pattern, rng=3)
    table = load_release(release.save(tmp_path / "out")).diagnostics
    assert table.equals(release.diagnostics)
    run = table["weight"] > 0
    assert not run.iloc[-1]
    assert 1 <= run.sum() <= len(table) == len(release.estimator.scales)
    assert (table["rhat"][run] <= 1.01).all()
    assert (table["ess"][run] >= 400).all()
    assert (table["divergences"][run] == 0).all()
    assert table[["pareto_k", "profile"]][run].notna().all(axis=None)
    assert table[["rhat", "ess", "divergences", "pareto_k", "profile"]][~run].isna().all(axis=None)
    counts = [np.mean(release.draws.length_scale == scale) for scale in table["length_scale"]]
    np.testing.assert_allclose(counts, table["weight"], atol=0.01)

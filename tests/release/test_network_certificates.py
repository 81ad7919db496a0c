"""Certificates of releases on streets: what an auditor must not be fooled by."""

import shutil
from functools import partial

import numpy as np
import pytest
from support.forgery import failed, read, reseal
from support.seams import seeded_secrets

from dpppsynth.core.published_files import plain_text
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.models import Matern
from dpppsynth.privacy import AlphaNeighbours, verify
from dpppsynth.release import certificate, load_release
from dpppsynth.spatial.domains import Window
from dpppsynth.synthesizers import KernelSynthesizer, LaplaceSynthesizer, LGCPSynthesizer

CORNERS = np.array([[0.0, 0.0], [300.0, 10.0], [310.0, 280.0], [-5.0, 290.0], [140.0, 150.0]])
ENDS = [[0, 1], [1, 2], [2, 3], [3, 0], [0, 4], [4, 2]]
STREETS = LinearNetwork(CORNERS, ENDS, "EPSG:27700")
LONGER = LinearNetwork(CORNERS * 1.5, ENDS, "EPSG:27700")
BEYOND = LinearNetwork([*CORNERS, [700.0, 300.0]], [*ENDS, [2, 5]], "EPSG:27700")
ALONG = network_mesh(STREETS, 60.0)
RELATION = AlphaNeighbours(20.0)
plain = partial(LaplaceSynthesizer, 1.0, relation=RELATION, postprocess="plain")
SYNTHESIZERS = {
    "tents over the streets": plain(basis="tents", spacing=100.0),
    "tents along the streets": plain(basis="tents", mesh=ALONG),
    "counts": plain(basis="cells", spacing=60.0),
    "field": LGCPSynthesizer(
        1.0, relation=RELATION, mechanism="field", delta=1e-6, mesh=ALONG, inference="laplace",
        covariance=Matern(0.05, 200.0, 0.3),
    ),
    "draw": LGCPSynthesizer(
        1.0, relation=RELATION, mechanism="posterior-draw", delta=1e-6, mesh=ALONG, sampler="proximal",
        covariance=Matern(0.05, 200.0, 0.3),
    ),
    "lipschitz": LGCPSynthesizer(1.0, relation=RELATION, mechanism="lipschitz", sampler="exact"),
    "kernel": KernelSynthesizer(10.0, delta=1e-6, relation=RELATION, spacing=60.0),
}  # fmt: skip


@pytest.fixture(scope="module", params=SYNTHESIZERS)
def saved(request, tmp_path_factory):
    edge = np.random.default_rng(3).integers(0, len(ENDS), 60)
    pattern = STREETS.pattern(edge, np.random.default_rng(4).random(60))
    release = SYNTHESIZERS[request.param].release(pattern)
    return request.param, release.save(tmp_path_factory.mktemp("streets") / "public")


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved[1], tmp_path / "public")


def forge(folder, change, domain=None):
    """Edit the certificate (and the domain file), and make all hashes again."""
    cert = read(folder)
    if domain is not None:
        (folder / "domain.geojson").write_text(plain_text(domain))
        cert["files"]["domain.geojson"] = certificate.file_hash(folder / "domain.geojson")
    change(cert)
    reseal(folder, cert)
    return failed(folder)


def nothing(cert):
    """No edit."""


@pytest.mark.exhaustive
def test_what_save_writes_holds_and_loads(saved, folder):
    assert all(check.holds for check in verify(folder).checks)
    again = load_release(folder)
    assert isinstance(again.domain, LinearNetwork)
    assert again.domain.fingerprint() == STREETS.fingerprint()
    assert forge(folder, nothing) == set()


@pytest.mark.parametrize(
    "edit",
    [
        lambda mesh: mesh.update(extra=1),
        lambda mesh: mesh.update(resolution=mesh.get("resolution", 50.0) * 2, shape=[3, 3]),
        lambda mesh: mesh.update(builder="regular", kind="triangle", shape=[3, 3]),
        lambda mesh: mesh.clear(),
    ],
)
def test_edited_recipes_do_not_hold(folder, edit):
    assert "bound" in forge(folder, lambda cert: edit(cert["parameters"]["mesh"]))


@pytest.mark.parametrize(
    "domain",
    [
        LONGER,
        Window.rectangle(-10, 0, 320, 300, "EPSG:27700"),
        BEYOND,
    ],
    ids=["longer", "window", "other street"],
)
def test_exchanged_domains_do_not_hold(folder, domain):
    def state(cert):
        cert["domain"] |= {"fingerprint": domain.fingerprint()}

    assert forge(folder, nothing, domain.to_geojson())
    failed = forge(folder, state, domain.to_geojson())
    # Counts promise the same on every domain; everything else does not.
    cert = read(folder)
    assert failed or cert["mechanism"] == "laplace-cells"


def test_nothing_travels_in_the_domain_file(folder):
    extra = STREETS.to_geojson() | {"secret": [[1.5, 2.5]]}
    assert "bound" in forge(folder, nothing, extra)
    extra = STREETS.to_geojson()
    extra["features"][0]["properties"]["length"] = 1e9
    assert "bound" in forge(folder, nothing, extra)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("metric", "shortest-path"),
        ("kind", "powered-exponential"),
        ("smoothness", 0.7),
        ("sigma", 5.0),
        ("length_scale", 1.0),
        ("power", 1.5),
    ],
)
def test_edited_covariances_do_not_hold(saved, folder, key, value):
    if saved[0] not in ("field", "draw"):
        return
    assert "bound" in forge(folder, lambda cert: cert["parameters"]["covariance"].update({key: value}))


def test_a_narrower_kernel_does_not_hold(saved, folder):
    if saved[0] != "kernel":
        return
    assert "bound" in forge(
        folder, lambda cert: cert["parameters"].update(bandwidth=cert["parameters"]["bandwidth"] / 2)
    )

    def better(cert):
        rows = cert["guarantee"]["profile"]["rows"]
        cert["guarantee"]["profile"]["rows"] = [[epsilon * 0.9, delta] for epsilon, delta in rows]

    assert "bound" in forge(folder, better)


def test_assumptions_are_those_of_streets(folder):
    assumes = read(folder)["guarantee"]["assumes"]
    assert {"public-settings-on-network", "positions-on-network"} <= {each for each in assumes if isinstance(each, str)}
    assert not {"public-settings", "positions-as-given"} & {each for each in assumes if isinstance(each, str)}


@pytest.mark.slow
def test_nuts_passes_its_gate_on_streets(tmp_path):
    edge = np.random.default_rng(3).integers(0, len(ENDS), 200)
    pattern = STREETS.pattern(edge, np.random.default_rng(4).random(200))
    with seeded_secrets():
        release = LGCPSynthesizer(1.0, relation=RELATION).release(pattern)
    assert release.intensity.total == pytest.approx(200, rel=1e-6)
    assert all(check.holds for check in verify(release.save(tmp_path / "public")).checks)

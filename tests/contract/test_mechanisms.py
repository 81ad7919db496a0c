"""Field statistics, posterior draws and kernels from settings to folder: promises, refusals, and what is released."""

import atexit
import functools
import json
import math
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from support.forgery import at, failed, put, read, reseal
from support.seams import chance_for_nuts
from support.settings import BUILD, RING, SQUARE, N, kernel, lgcp, plan, points

from dpppsynth.contract import rules
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.published_files import plain_text
from dpppsynth.mechanisms.kernel.bound.kernels import smallest_bandwidth
from dpppsynth.mechanisms.kernel.synthesizer import PoissonRelease
from dpppsynth.mechanisms.lgcp.synthesizer import SPENDING_DELTA
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne, verify
from dpppsynth.release import CoxRelease, certificate, load_release
from dpppsynth.spatial.offset import Offset

# Two-sided bounds that a variable of each law leaves with probability 1e-8.
LOW, HIGH = 5e-9, 1 - 5e-9


@pytest.fixture(autouse=True)
def nuts_is_quick():
    """No test here depends on the law of its chains."""
    with chance_for_nuts():
        yield


def relations():
    """Each kind with the relations it knows."""
    several, whole = AlphaNeighbours(25.0, max_points_per_person=3), [ReplaceOne(), AddRemove(2)]
    yield from (("kim-lim", AlphaNeighbours(25.0)), ("lipschitz", several), ("lipschitz", ReplaceOne(2)))
    yield from ((name, relation) for name in ("field", "exact", "proximal") for relation in (several, *whole))
    yield from ((name, relation) for name in ("kernel", "kernel 3.6") for relation in (several, ReplaceOne(2)))


class TestPromise:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        ("name", "relation", "window"),
        [
            *[(name, AlphaNeighbours(25.0), RING) for name in BUILD],
            *[(name, relation, SQUARE) for name, relation in relations()],
        ],
        ids=str,
    )
    def test_check_plan_release_and_auditor_agree(self, name, relation, window, tmp_path):
        synthesizer = BUILD[name](window, relation=relation)
        settled, pattern = plan(synthesizer, window), points(window)
        size = {"n": N} if relation.n_is_public else {"expected_n": float(N)}
        check = synthesizer.check(window, **size)
        release = settled.release(pattern)
        assert check == settled.guarantee == release.guarantee
        assert check.relation == relation
        assert check.epsilon() <= synthesizer.epsilon * (1 + 1e-12)
        assert check.delta(synthesizer.epsilon) <= synthesizer.delta * (1 + 1e-9)
        outcome = verify(release.save(tmp_path / "out"))
        outcome.require()
        assert outcome.guarantee.to_dict() == check.to_dict()

    @pytest.mark.parametrize("name", ["field", "exact", "proximal", "lipschitz", "kernel"])
    def test_the_default_spends_the_budget(self, name, monkeypatch):
        monkeypatch.setattr(rules, "DRAW_SIGMA", math.inf)
        synthesizer = BUILD[name](
            SQUARE, epsilon=0.5, relation=ReplaceOne() if name == "kernel" else AlphaNeighbours(25.0)
        )
        guarantee = plan(synthesizer).guarantee
        spent = guarantee.epsilon(guarantee.profile.at)
        assert spent == pytest.approx(0.5, rel=1e-6)

    @pytest.mark.parametrize(
        ("name", "theorem"),
        [
            ("field", "field-statistic"),
            ("exact", "posterior-draw"),
            ("proximal", "proximal-sampler"),
            ("lipschitz", "lipschitz-field"),
            ("kim-lim", "kim-lim-3.8"),
            ("kernel", "kernel-superposition"),
            ("kernel 3.6", "kim-lim-3.6"),
        ],
    )
    def test_theorem(self, name, theorem):
        assert plan(BUILD[name](SQUARE)).guarantee.theorem == theorem

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("name", BUILD)
    def test_seeds_decide_everything_and_no_seed_nothing(self, name):
        settled, pattern = plan(BUILD[name](SQUARE)), points()
        first, again, other, *secret = (settled.release(pattern, rng) for rng in (1, 1, 2, None, None))
        assert outcome(first) == outcome(again) != outcome(other)
        assert outcome(secret[0]) != outcome(secret[1])
        assert (first.seeded, "not private" in repr(first), "seeded-" in first.noise) == (True, True, True)
        said = "seeded-" in secret[0].noise
        assert (secret[0].seeded, "not private" in repr(secret[0]), said) == (False, False, False)

    @pytest.mark.parametrize("name", ["exact", "lipschitz", "kim-lim", "kernel"])
    def test_a_plan_of_its_own_cannot_exceed_the_budget(self, name):
        """Whoever builds a measurement without a synthesizer is held to the budget all the same."""
        statistic = plan(BUILD[name](SQUARE)).statistic
        wider = {"exact": "covariance", "lipschitz": "slope", "kim-lim": "ratio", "kernel": "bandwidth"}[name]
        value = getattr(statistic, wider)
        budget = {"epsilon": statistic.epsilon, "delta": statistic.delta}
        more = {
            "covariance": lambda: replace(value, sigma=10 * value.sigma),
            "bandwidth": lambda: 0.999 * smallest_bandwidth(SQUARE, statistic.relation, **budget),
        }.get(wider, lambda: value * 1.001)()
        with pytest.raises(PrivacyCheckError, match=r"^epsilon: .* more than the budget"):
            replace(statistic, **{wider: more})


def outcome(release):
    if isinstance(release, PoissonRelease):
        return [pattern.xy.tolist() for pattern in release.patterns]
    return release.statistic.lattice.tolist()


class TestRoundTrip:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("name", BUILD)
    def test_what_is_loaded_is_what_was_saved(self, name, tmp_path):
        release = plan(BUILD[name](SQUARE)).release(points(), 3)
        folder = release.save(tmp_path / "one")
        again = load_release(folder)
        assert (repr(again), again.guarantee, again.mechanism) == (repr(release), release.guarantee, release.mechanism)
        assert again.parameters() == release.parameters()
        assert outcome(again) == outcome(release)
        if isinstance(release, CoxRelease):
            grid = points(seed=9).xy
            assert again.intensity(grid).tolist() == release.intensity(grid).tolist()
            assert [p.xy.tolist() for p in again.sample(2, 5)] == [p.xy.tolist() for p in release.sample(2, 5)]

    @pytest.mark.parametrize("name", ["exact", "kernel"])
    def test_saved_again_it_is_the_same_to_the_byte(self, name, tmp_path):
        options = {} if name == "kernel" else {"rng": 4}
        first = plan(BUILD[name](SQUARE)).release(points(), 3).save(tmp_path / "first", **options)
        second = load_release(first).save(tmp_path / "second", **options)
        assert {p.name: p.read_bytes() for p in first.iterdir()} == {p.name: p.read_bytes() for p in second.iterdir()}

    @pytest.mark.slow
    def test_offset_comes_back(self, tmp_path):
        offset = Offset.from_grid([[1.0, 2.0], [3.0, 0.0]], (0, 0, 1000, 1000))
        release = plan(BUILD["exact"](SQUARE, offset=offset)).release(points(), 3)
        grid = points(seed=9).xy
        assert load_release(release.save(tmp_path / "out")).intensity(grid).tolist() == release.intensity(grid).tolist()


class TestDelta:
    @pytest.mark.parametrize("mechanism", SPENDING_DELTA)
    def test_needed(self, mechanism):
        with pytest.raises(
            InputError, match=rf"^delta: mechanism '{mechanism}' cannot promise delta = 0.*'tents' or 'lip"
        ):
            lgcp(mechanism, delta=0.0)

    @pytest.mark.parametrize("mechanism", ["tents", "lipschitz"])
    def test_not_wanted(self, mechanism):
        with pytest.raises(
            InputError, match=rf"^delta: mechanism '{mechanism}' is purely .*got 1e-06; (drop delta|leave delta= out)"
        ):
            lgcp(mechanism, delta=1e-6)

    def test_kernel_needs_it(self):
        with pytest.raises(InputError, match=r"^delta: the kernel synthesizer cannot promise delta = 0; give one far"):
            kernel(delta=0.0)

    @pytest.mark.parametrize("name", ["field", "exact", "kim-lim", "kernel"])
    def test_of_one_over_n(self, name):
        with pytest.raises(InputError, match=r"^delta: must be below 1/n .*take 1e-6"):
            plan(
                BUILD[name](SQUARE, **({} if name == "kim-lim" else {"delta": 1 / N})),
                n=N if name != "kim-lim" else 1000,
            )
        assert plan(BUILD["exact"](SQUARE, delta=1 / N, allow_large_delta=True)).guarantee.profile.at == 1 / N

    @pytest.mark.parametrize("mechanism", ["field", "posterior-draw"])
    def test_where_n_is_secret(self, mechanism):
        with pytest.raises(InputError, match=r"^delta: at most 1e-5 where the number of points is secret"):
            plan(lgcp(mechanism, delta=1e-4, relation=AddRemove()))


REFUSED = [
    ("kernel", SQUARE, AddRemove(), r"^relation: adding or removing a point .* cannot hide; use LGCPSynthesizer under"),
    ("kernel 3.6", SQUARE, AddRemove(3), r"^relation: adding or removing a point adds or removes its whole cluster"),
    ("lipschitz", SQUARE, AddRemove(), r"^relation: 'add-remove' has no guarantee from the slope"),
    ("lipschitz", RING, ReplaceOne(), r"^relation: 'replace-one' needs a convex window here.*take AlphaNeighbours"),
    ("kim-lim", SQUARE, ReplaceOne(), r"^relation: Kim & Lim's bounds are for alpha-neighbours with one point per per"),
    ("kim-lim", SQUARE, AddRemove(), r"^relation: Kim & Lim's bounds are for alpha-neighbours with one point per pers"),
    (
        "kim-lim",
        SQUARE,
        AlphaNeighbours(25.0, max_points_per_person=2),
        r"^relation: Kim & Lim's bounds are for alpha-",
    ),
]


class TestLargeDelta:
    def test_is_marked_and_does_not_verify(self, tmp_path):
        """Reproducing published experiments leaves a certificate that says it must not be released."""
        settings = {"delta": 1 / N, "allow_large_delta": True, "sampler": "proximal"}
        folder = plan(lgcp("posterior-draw", **settings)).release(points()).save(tmp_path / "out")
        cert = certificate.read(folder)
        assert (cert["releasable"], cert["warning"]) == (False, certificate.LARGE_DELTA)
        assert failed(folder) == {"randomness"}
        assert load_release(folder).warning == certificate.LARGE_DELTA
        assert failed_with(folder, cert | {"releasable": True, "warning": None}) == {"randomness"}


class TestLittleInfluence:
    """A release so weak that epsilon is 0 at the quoted delta is whole all the same."""

    @pytest.mark.parametrize("name", ["exact", "kernel"])
    def test_saves_verifies_and_loads(self, name, tmp_path):
        weak = {"bandwidth": 1e9} if name == "kernel" else {"sigma": 1e-5}
        release = plan(BUILD[name](SQUARE, **weak)).release(points())
        assert release.guarantee.epsilon() == 0
        folder = release.save(tmp_path / "out")
        assert verify(folder).holds
        assert load_release(folder).guarantee == release.guarantee


class TestRelationsRefused:
    @pytest.mark.parametrize(("name", "window", "relation", "message"), REFUSED, ids=str)
    def test_before_the_data_are_touched(self, name, window, relation, message):
        with pytest.raises(InputError, match=message):
            plan(BUILD[name](window, relation=relation, **({"delta": 1e-6} if name == "kim-lim" else {})), window)


FORGED = [
    ("field", "parameters/covariance/sigma", lambda v: 1.01 * v),
    ("field", "parameters/covariance/length_scale", lambda v: 0.9 * v),
    ("field", "parameters/covariance/power", lambda v: 1.5),
    ("field", "parameters/scale", lambda v: 2 * v),
    ("field", "parameters/basis", lambda v: "tents"),
    ("field", "parameters/delta", lambda v: 1e-7),
    ("field", "guarantee/profile/mu", lambda v: 0.9 * v),
    ("exact", "parameters/covariance/sigma", lambda v: 1.01 * v),
    ("exact", "parameters/covariance/length_scale", lambda v: 0.9 * v),
    ("exact", "parameters/sampler", lambda v: "nuts"),
    ("exact", "parameters/sampler", lambda v: "proximal"),
    ("exact", "parameters/delta", lambda v: 1e-7),
    ("exact", "parameters/epsilon", lambda v: 0.1),
    ("exact", "parameters/intercept_sd", lambda v: "wide"),
    ("exact", "guarantee/profile/mu", lambda v: 0.9 * v),
    ("exact", "guarantee/profile/epsilon", lambda v: 0.9 * v),
    ("exact", "guarantee/by_distance", lambda v: []),
    ("exact", "guarantee/by_distance", lambda v: [[d, e / 2] for d, e in v]),
    ("exact", "guarantee/theorem", lambda v: "tents"),
    ("exact", "mechanism", lambda v: "lgcp-lipschitz"),
    ("exact", "noise", lambda v: v.replace("exact", "other")),
    ("secret", "parameters/intercept_sd", lambda v: 1.5 * v),
    ("secret", "parameters/intercept_sd", lambda v: None),
    ("proximal", "parameters/sampler", lambda v: "exact"),
    ("lipschitz", "parameters/slope", lambda v: 1.01 * v),
    ("lipschitz", "parameters/slope", lambda v: 0.5 * v),
    ("lipschitz", "parameters/sampler", lambda v: "nuts"),
    ("lipschitz", "parameters/sampler", lambda v: "proximal"),
    ("kim-lim", "parameters/ratio", lambda v: 1.01 * v),
    ("kim-lim", "parameters/sampler", lambda v: "exact"),
    ("kim-lim", "parameters/epsilon", lambda v: 2 * v),
    ("kim-lim", "mechanism", lambda v: "lgcp-kim-lim-3.9"),
    ("kim-lim", "guarantee/assumes", lambda v: v[1:]),
    ("kernel", "parameters/bandwidth", lambda v: 0.99 * v),
    ("kernel", "parameters/bound", lambda v: "kim-lim-3.6"),
    ("kernel", "parameters/patterns", lambda v: v + 1),
    ("kernel", "parameters/delta", lambda v: 1e-7),
    ("kernel", "guarantee/profile/ratio", lambda v: 0.9 * v),
    ("kernel", "guarantee/profile/rate", lambda v: 0.5 * v),
    ("kernel", "noise", lambda v: "none"),
    ("kernel 3.6", "parameters/n", lambda v: 4 * v),
    ("kernel 3.6", "parameters/bound", lambda v: "superposition"),
    # None of these changes the bound; they would make the certificate describe another release.
    ("exact", "parameters/estimator", lambda v: {"kind": "projection", "postprocess": "clip"}),
    ("exact", "parameters/expected_n", lambda v: 100.0),
    ("exact", "parameters/engine", lambda v: "pymc"),
    ("exact", "parameters/intercept_sd", lambda v: 1e9),
    ("exact", "parameters", lambda v: v | {"slope": 0.1}),
    ("kim-lim", "parameters/covariance/sigma", lambda v: 1.5 * v),
    ("kim-lim", "parameters/covariance/power", lambda v: 1.0),
    ("exact", "parameters/mesh", lambda v: v | {"shape": [900, 900]}),
]


class TestForgeries:
    """Claims that do not follow, with the hash made again by the forger."""

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(("name", "path", "change"), FORGED, ids=lambda v: v if isinstance(v, str) else "")
    def test_a_field(self, name, path, change, tmp_path):
        folder = copy_of(name, tmp_path)
        cert = read(folder)
        keys = path.split("/")
        assert failed_with(folder, put(cert, keys, change(at(cert, keys)))) & {"bound", "content", "randomness"}

    def test_the_statistic_of_another_mesh(self, tmp_path):
        folder = copy_of("exact", tmp_path)
        statistic = json.loads((folder / "statistic.json").read_text())
        statistic["lattice"].append(0)
        (folder / "statistic.json").write_text(plain_text(statistic))
        assert failed_with(folder, read(folder), "statistic.json") == {"statistic"}

    @pytest.mark.parametrize("name", ["exact", "lipschitz", "field"])
    @pytest.mark.parametrize("file", ["raw_points.csv", "posterior.nc", "level_000_statistic.json", "offset.geojson"])
    def test_files_that_are_no_part_of_such_a_release(self, name, file, tmp_path):
        """One draw was paid for; a folder that lists more of the run must not pass."""
        if (name, file) == ("field", "posterior.nc"):
            return
        folder = copy_of(name, tmp_path)
        (folder / file).write_text("secret")
        assert failed_with(folder, read(folder), file) == {"files"}

    @pytest.mark.parametrize("name", ["offset.geojson", "posterior.nc"])
    def test_files_it_is_opened_from_must_be_listed(self, name, tmp_path):
        offset = Offset.from_grid([[1.0, 2.0], [3.0, 0.5]], (0, 0, 1000, 1000))
        folder = plan(lgcp("tents", offset=offset)).release(points()).save(tmp_path / "out")
        cert = read(folder)
        assert verify(folder).holds
        del cert["files"][name]
        assert failed_with(folder, cert) == {"files"}

    def test_another_offset_than_the_one_fitted_with(self, tmp_path):
        offset = Offset.from_grid([[1.0, 2.0], [3.0, 0.5]], (0, 0, 1000, 1000))
        folder = plan(lgcp("tents", offset=offset)).release(points()).save(tmp_path / "out")
        other = Offset.from_grid([[9.0, 2.0], [3.0, 0.5]], (0, 0, 1000, 1000))
        (folder / "offset.geojson").write_text(plain_text(other.to_geojson()))
        assert failed_with(folder, read(folder), "offset.geojson") == {"files"}

    def test_a_raster_is_the_one_offset_of_a_release(self, tmp_path):
        values = np.random.default_rng(1).gamma(0.5, 1.0, (40, 40))
        offset = Offset.from_grid(values, (0, 0, 1000, 1000))
        folder = plan(lgcp("tents", offset=offset)).release(points()).save(tmp_path / "out")
        assert verify(folder).holds
        polygons = Offset.from_grid([[1.0, 2.0]], (0, 0, 1000, 1000))
        (folder / "offset.geojson").write_text(plain_text(polygons.to_geojson()))
        assert failed_with(folder, read(folder)) == {"files"}
        assert failed_with(folder, read(folder), "offset.geojson") == {"files"}
        (folder / "offset.geojson").unlink()
        content = (folder / "offset.nc").read_bytes()
        for name in ("offset/density", "offset/x", None):
            (folder / "offset.nc").write_bytes(content if name else content[:100])
            if name:
                with h5py.File(folder / "offset.nc", "a") as file:
                    file[name][0] += 1.0
            cert = read(folder)
            cert["files"].pop("offset.geojson", None)
            assert failed_with(folder, cert, "offset.nc") == {"files"}

    @pytest.mark.parametrize(
        ("path", "value"),
        [("parameters/epsilon", 10**400), ("guarantee/relation/alpha", 10**400), ("guarantee/profile/mu", 1e200)],
    )
    def test_absurd_numbers_are_refused_in_words(self, path, value, tmp_path):
        folder = copy_of("exact", tmp_path)
        cert = read(folder)
        *keys, last = path.split("/")
        spot = functools.reduce(dict.__getitem__, keys, cert)
        spot[last] = value
        with pytest.raises(InputError, match=r"^certificate: "):
            failed_with(folder, cert)

    def test_more_than_the_statistic_in_its_file(self, tmp_path):
        folder = copy_of("exact", tmp_path)
        statistic = json.loads((folder / "statistic.json").read_text()) | {"attempts": 17}
        (folder / "statistic.json").write_text(plain_text(statistic))
        assert failed_with(folder, read(folder), "statistic.json") == {"statistic"}

    def test_a_pattern_too_many_is_seen(self, tmp_path):
        """A kernel release that paid for one pattern and holds two has spent more than it says."""
        folder = copy_of("kernel", tmp_path)
        shutil.copy(folder / "synthetic_000.geojson", folder / "synthetic_001.geojson")
        assert failed_with(folder, read(folder), "synthetic_001.geojson") == {"statistic"}


@functools.cache
def saved(name):
    """A private release on disk, never touched."""
    build, options = BUILD.get(name, BUILD["exact"]), {"relation": AddRemove()} if name == "secret" else {}
    release = plan(build(SQUARE, **options)).release(points())
    return release.save(Path(tempfile.mkdtemp(dir=scratch())) / "out")


@functools.cache
def scratch():
    folder = tempfile.mkdtemp(prefix="dpppsynth-")
    atexit.register(shutil.rmtree, folder)
    return folder


def copy_of(name, tmp_path):
    return shutil.copytree(saved(name), tmp_path / "copy")


def failed_with(folder, cert, *files):
    """Names of the checks that fail once the hashes of these files, and its own, have been made again."""
    reseal(folder, cert, *files)
    return failed(folder)

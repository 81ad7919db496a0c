"""Conformance: what every registered mechanism must keep, whatever it does inside.

A mechanism that is registered but has no case here fails `test_every_registered_mechanism_has_a_case`. The checks
themselves are put to the test with planted leaks at the end of each class.
"""

import contextlib
import functools
import gc
import json
import logging
import re
import sys
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
import shapely

from dpppsynth import statistic as statistic_module
from dpppsynth.domains import Window
from dpppsynth.errors import DpppsynthError
from dpppsynth.offset import Offset
from dpppsynth.patterns import PointPattern
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne, laplace_noise, verify
from dpppsynth.privacy.noise import OpenDPLaplace
from dpppsynth.privacy.verify import RECOMPUTE
from dpppsynth.release import load_release
from dpppsynth.statistic import StatisticPlan, cell_counts, lattice_masses
from dpppsynth.synthesizers import LaplaceSynthesizer, LGCPSynthesizer
from dpppsynth.synthesizers.lgcp import MECHANISMS

SQUARE = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
RING = Window.polygon(shapely.box(0, 0, 1000, 800).difference(shapely.box(300, 300, 500, 500)), "EPSG:27700")
N, EXPECTED = 1009, 400.0
RELATIONS = [
    AlphaNeighbours(25.0),
    AlphaNeighbours(25.0, max_points_per_person=3),
    ReplaceOne(),
    ReplaceOne(3),
    AddRemove(),
    AddRemove(3),
]


@dataclass(frozen=True)
class Case:
    """A mechanism with its options, and how to run it."""

    mechanism: str
    label: str
    build: Callable[[], LaplaceSynthesizer | LGCPSynthesizer]
    window: Window = SQUARE

    @functools.cached_property
    def synthesizer(self):
        return self.build()

    @property
    def hides_n(self):
        return not self.synthesizer.neighbouring().n_is_public

    @property
    def public(self):
        return {"expected_n": EXPECTED} if self.hides_n else {"n": N}

    def plan(self):
        return self.synthesizer.plan(self.window, **self.public)

    def release(self, pattern, rng=None, **options):
        guess = {"expected_n": EXPECTED} if self.hides_n else {}
        return self.synthesizer.release(pattern, rng, **guess, **options)

    def patterns(self):
        """Two patterns that have nothing in common but the window, and n where it is public."""
        return points(1, N, self.window), points(2, 157 if self.hides_n else N, self.window, clustered=True)

    def __str__(self):
        return f"{self.mechanism}, {self.label}"


def points(seed, n, window, *, clustered=False):
    rng = np.random.default_rng(seed)
    xy = rng.normal([200, 150], 30, (9 * n, 2)) if clustered else rng.uniform(0, 1000, (9 * n, 2))
    return PointPattern(xy[window.contains(xy)][:n], window)


def cases():
    for basis in ("cells", "tents"):
        for relation in RELATIONS:
            for post in ("clip", "keep-n")[: 1 + relation.n_is_public]:
                yield Case(
                    f"laplace-{basis}",
                    f"{relation}, {post}",
                    functools.partial(LaplaceSynthesizer, 1.0, relation=relation, basis=basis, postprocess=post),
                )
        build = functools.partial(LaplaceSynthesizer, 1.0, alpha=25.0, basis=basis)
        yield Case(f"laplace-{basis}", "polygon with a hole", build, RING)
    lgcp = functools.partial(LGCPSynthesizer, 1.0, inference="laplace", length_scale=450.0)
    for relation in RELATIONS:
        yield Case("lgcp-tents", f"{relation}, laplace", functools.partial(lgcp, relation=relation))
    offset = Offset.from_grid([[1.0, 2.0], [3.0, 0.5]], (0, 0, 1000, 1000))
    yield Case("lgcp-tents", "offset", functools.partial(lgcp, 25.0, offset=offset))
    yield Case("lgcp-tents", "polygon with a hole", functools.partial(lgcp, relation=AddRemove()), RING)


def nuts_cases():
    for relation in (AlphaNeighbours(25.0), AddRemove()):
        build = functools.partial(LGCPSynthesizer, 1.0, relation=relation, inference="nuts", length_scale=450.0)
        yield pytest.param(Case("lgcp-tents", f"{relation}, nuts", build), marks=pytest.mark.slow)


FAST = list(cases())
EVERY = [*FAST, *nuts_cases()]
# One of each kind for the checks of the checks.
TYPICAL = Case(
    "laplace-tents", "typical", functools.partial(LaplaceSynthesizer, 1.0, relation=AddRemove(), basis="tents")
)
over_cases = pytest.mark.parametrize("case", EVERY, ids=str)


@functools.cache
def seeded_release(case):
    return case.release(case.patterns()[0], 5)


def test_every_registered_mechanism_has_a_case():
    assert {case.mechanism for case in FAST} == set(RECOMPUTE)
    assert {f"lgcp-{name}" for name in MECHANISMS} <= {case.mechanism for case in FAST}
    for mechanism in RECOMPUTE:
        seen = {case.synthesizer.neighbouring() for case in FAST if case.mechanism == mechanism}
        assert set(RELATIONS) <= seen, mechanism


def test_certificates_name_the_mechanism():
    for case in FAST:
        assert case.plan().mechanism == case.mechanism


# --- 1. Non-interference: with the noise replaced by constants, no trace of the pattern is left ----------------------


class Constant:
    """Noise that forgets its input: what comes out is fixed by public numbers."""

    name, seeded = OpenDPLaplace.name, False

    def __init__(self, scale, **public):
        self._scale = scale

    def add(self, values):
        return np.random.default_rng(7).integers(0, 6 * int(self._scale) + 2, len(values))


class Recorder(logging.Handler):
    """Every record of every logger."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.lines = []

    def emit(self, record):
        self.lines.append(f"{record.name} {record.levelname} {record.getMessage()}")


def observe(case, pattern, folder, capfd):
    """Everything that anybody could see of a run: result, files, messages."""
    capfd.readouterr()
    messages, recorder = [], Recorder()
    root = logging.getLogger()
    level = root.level
    root.addHandler(recorder)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            release = case.release(pattern, 5, progress=messages.append)
            release.save(folder, patterns=2, rng=6)
    finally:
        root.removeHandler(recorder)
        root.setLevel(level)
    own = [line for line in recorder.lines if not line.startswith(("numba", "pytensor", "asyncio", "matplotlib"))]
    return {
        "repr": repr(release),
        "statistic": repr(release.statistic),
        "plan": repr(release.statistic.plan),
        "estimator": repr(release.estimator),
        "intensity": repr(release.intensity),
        "guarantee": str(release.guarantee),
        "values": release.intensity(points(3, 50, case.window).xy).tolist(),
        "names": [p.name for p in sorted(folder.iterdir())],
        "files": {p.name: p.read_bytes() for p in sorted(folder.iterdir())},
        "progress": messages,
        "warnings": [str(w.message) for w in warned],
        "log": own,
        "output": tuple(capfd.readouterr()),
    }


def differences(case, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(statistic_module, "laplace_noise", Constant)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case.release(case.patterns()[0], 5)  # whatever is only said the first time has been said
    seen = [observe(case, p, tmp_path / str(i) / "public", capfd) for i, p in enumerate(case.patterns())]
    return {key for key in seen[0] if seen[0][key] != seen[1][key]}


class TestNonInterference:
    @over_cases
    def test_two_patterns_give_one_result(self, case, tmp_path, monkeypatch, capfd):
        assert differences(case, tmp_path, monkeypatch, capfd) == set()

    @pytest.mark.parametrize(
        ("name", "where"),
        [
            ("statistic", "values"),
            ("noise name", "files"),
            ("plan", "files"),
            ("log", "log"),
            ("warning", "warnings"),
            ("print", "output"),
        ],
    )
    def test_planted_leaks_are_seen(self, name, where, tmp_path, monkeypatch, capfd):
        measure = StatisticPlan.measure

        def leaky(self, pattern, rng=None):
            result, secret = measure(self, pattern, rng), len(pattern)
            match name:
                case "statistic":
                    return replace(result, lattice=result.lattice + secret)
                case "noise name":
                    return replace(result, noise=f"{result.noise} {secret}")
                case "plan":
                    return replace(result, plan=replace(self, expected_n=float(secret)))
                case "log":
                    logging.getLogger("dpppsynth").debug("%s points", secret)
                case "warning":
                    warnings.warn(f"{pattern.xy[0]}", stacklevel=1)
                case "print":
                    sys.stderr.write(f"{secret}\n")
            return result

        monkeypatch.setattr(StatisticPlan, "measure", leaky)
        assert where in differences(TYPICAL, tmp_path, monkeypatch, capfd)

    @pytest.mark.parametrize(("name", "where"), [("Chatty", "progress"), ("Drifting", "files")])
    def test_planted_leaks_around_the_statistic_are_seen(self, name, where, tmp_path, monkeypatch, capfd):
        build = functools.partial(globals()[name], 1.0, relation=AddRemove(), basis="tents")
        assert where in differences(Case("laplace-tents", name, build), tmp_path, monkeypatch, capfd)


class Chatty(LaplaceSynthesizer):
    """Tells how many points it sees."""

    def release(self, pattern, rng=None, *, progress=lambda text: None, **options):
        progress(f"measuring {len(pattern)} points")
        return super().release(pattern, rng, **options)


class Drifting(LaplaceSynthesizer):
    """Draws released patterns with a generator that was advanced once per point."""

    def release(self, pattern, rng=None, **options):
        release, drifted = super().release(pattern, rng, **options), np.random.default_rng(5)
        drifted.random(len(pattern))
        save = type(release).save
        object.__setattr__(
            release, "save", lambda path, *, patterns, rng: save(release, path, patterns=patterns, rng=drifted)
        )
        return release


# --- 2. Nothing sensitive can be reached from a result ---------------------------------------------------------------

# The world behind these is everybody's; private state of functions is reached through their closures and defaults.
WORLD = (types.ModuleType, types.BuiltinFunctionType, types.CodeType, types.FrameType, logging.Logger)


def reachable(root, most=300_000):
    """Every object that can be reached, arrays' bases included."""
    seen, queue = {}, [root]
    while queue:
        thing = queue.pop()
        if id(thing) in seen or isinstance(thing, WORLD):
            continue
        seen[id(thing)] = thing
        assert len(seen) < most, "the object graph has no end: a result must be small"
        if isinstance(thing, type):
            continue
        if isinstance(thing, types.FunctionType):
            queue += [*(thing.__closure__ or ()), *(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
            queue.append(thing.__dict__)
            continue
        queue += gc.get_referents(thing)
        queue += list(vars(thing).values()) if hasattr(thing, "__dict__") else []
        if isinstance(thing, np.ndarray):
            queue += [thing.base] if thing.base is not None else []
            queue += thing.ravel().tolist() if thing.dtype == object else []
        if isinstance(thing, memoryview):
            queue.append(thing.obj)
    return list(seen.values())


def sensitive(case, pattern, root):
    """What of the pattern can be reached from `root`."""
    mesh = case.plan().statistic.mesh
    exact = [cell_counts(mesh, pattern.xy), *(lattice_masses(mesh, pattern.xy, b) for b in (0, 20))]
    exact += [np.asarray(mesh.basis(pattern.xy).sum(axis=0)).ravel()]
    coordinates = set(np.round(pattern.xy, 4).ravel().tolist())
    found = []
    for thing in reachable(root):
        if isinstance(thing, PointPattern):
            found.append("a pattern")
        elif isinstance(thing, float) and round(thing, 4) in coordinates:
            found.append("a coordinate")
        elif isinstance(thing, shapely.Geometry):
            if set(np.round(shapely.get_coordinates(thing), 4).ravel().tolist()) & coordinates:
                found.append("a geometry")
        elif isinstance(thing, np.ndarray) and thing.dtype.kind in "fiu":
            if thing.dtype.kind == "f" and set(np.round(thing.astype(float), 4).ravel().tolist()) & coordinates:
                found.append("an array of coordinates")
            if any(thing.size == e.size and np.allclose(thing.ravel(), e, atol=1e-3) for e in exact):
                found.append("exact masses")
        elif isinstance(thing, bytes) and any(np.float64(c).tobytes() in thing for c in pattern.xy.ravel()):
            found.append("bytes of coordinates")
    return set(found)


class TestReachable:
    @over_cases
    def test_nothing_sensitive(self, case):
        pattern = case.patterns()[0]
        release = seeded_release(case)
        release.sample(1, rng=6)
        with contextlib.suppress(DpppsynthError):
            _ = release.posterior
        assert sensitive(case, pattern, release) == set()

    def test_nor_with_secret_noise(self):
        pattern = TYPICAL.patterns()[0]
        assert sensitive(TYPICAL, pattern, TYPICAL.release(pattern)) == set()

    def test_nor_from_a_plan_that_has_been_used(self):
        pattern, plan = TYPICAL.patterns()[0], TYPICAL.plan()
        plan.release(pattern)
        assert sensitive(TYPICAL, pattern, plan) == set()

    @pytest.mark.parametrize(
        ("hide", "found"),
        [
            (lambda p, m: p, "a pattern"),
            (lambda p, m: p.xy[5:9].copy(), "an array of coordinates"),
            (lambda p, m: {"deep": [(p.xy[0, 0].item(), None)]}, "a coordinate"),
            (lambda p, m: p.xy.astype(np.float64).tobytes(), "bytes of coordinates"),
            (lambda p, m: shapely.points(p.xy[:3]), "a geometry"),
            (lambda p, m: lattice_masses(m, p.xy, 20) / 2.0**20, "exact masses"),
            (lambda p, m: lambda: p.xy, "a pattern"),
            (lambda p, m: np.concatenate([p.xy, p.xy])[::2][3:4], "an array of coordinates"),
        ],
        ids=["pattern", "rows", "number", "bytes", "geometries", "masses", "closure", "view"],
    )
    def test_planted_leaks_are_seen(self, hide, found):
        pattern = TYPICAL.patterns()[0]
        release = TYPICAL.release(pattern)
        mesh = release.statistic.plan.mesh
        mesh.__dict__["_cache"] = hide(pattern, mesh)
        assert found in sensitive(TYPICAL, pattern, release)


# --- 3. Words --------------------------------------------------------------------------------------------------------


class TestWords:
    @over_cases
    def test_of_a_result_hold_public_numbers_alone(self, case):
        pattern = case.patterns()[0]
        release = seeded_release(case)
        words = [
            repr(x) for x in (release, release.statistic, release.statistic.plan, release.estimator, release.intensity)
        ]
        words += [str(release.guarantee), repr(case.plan()), repr(case.synthesizer)]
        text = " ".join(words)
        assert not re.search(rf"\b{N}\b", text) or not case.hides_n
        numbers = set(re.findall(r"\d+\.\d{3,}", text))
        assert not any(number in f"{c:.9f}" for c in pattern.xy.ravel() for number in numbers)

    @over_cases
    def test_of_errors_hold_no_number_of_the_pattern(self, case):
        plan, pattern = case.plan(), points(4, 733, case.window)
        marked = PointPattern(pattern.xy, case.window, {"age": np.arange(733)})
        elsewhere = PointPattern(pattern.xy, Window.rectangle(0, 0, 1000, 1001, "EPSG:27700"))
        wrong = [marked, elsewhere] + ([] if case.hides_n else [pattern])
        for bad in wrong:
            with pytest.raises(DpppsynthError) as caught:
                plan.release(bad)
            assert not re.search(r"\d", str(caught.value))
            assert caught.value.__cause__ is None


# --- 4. What was checked is what is verified -------------------------------------------------------------------------


class TestCertificate:
    @over_cases
    def test_check_is_what_an_auditor_finds(self, case, tmp_path):
        check = case.synthesizer.check(case.window, **case.public)
        if "nuts" in case.label:
            release = case.plan().statistic.measure(case.patterns()[0])
            release = replace(seeded_release(case), statistic=release, draws=None)
        else:
            release = case.release(case.patterns()[0])
        folder = release.save(tmp_path / "public", patterns=0)
        outcome = verify(folder)
        assert outcome.holds
        outcome.require()
        assert outcome.guarantee.to_dict() == check.to_dict()
        assert outcome.guarantee.epsilon() == check.epsilon() <= case.synthesizer.epsilon
        cert = json.loads((folder / "certificate.json").read_text())
        assert cert["mechanism"] == case.mechanism
        assert cert["releasable"]
        assert (cert["parameters"]["n"], cert["parameters"]["expected_n"]) == (
            (None, EXPECTED) if case.hides_n else (N, None)
        )

    @over_cases
    def test_a_seed_is_confessed(self, case, tmp_path):
        release = seeded_release(case)
        assert release.seeded
        assert "not private" in repr(release)
        folder = release.save(tmp_path / "public", patterns=0)
        cert = json.loads((folder / "certificate.json").read_text())
        assert (cert["seeded"], cert["releasable"]) == (True, False)
        assert "not private" in cert["warning"]
        assert [c.name for c in verify(folder).checks if not c.holds] == ["randomness"]
        assert load_release(folder).seeded

    @pytest.mark.parametrize("case", FAST, ids=str)
    def test_two_private_releases_differ(self, case):
        plan, pattern = case.plan(), case.patterns()[0]
        one, other = (plan.statistic.measure(pattern) for _ in range(2))
        assert not one.seeded
        assert np.mean(one.lattice != other.lattice) > 0.3

    @pytest.mark.parametrize("case", FAST, ids=str)
    def test_noise_is_asked_for_as_promised(self, case, monkeypatch):
        """The scale that reaches the sampler is the one the guarantee was computed from."""
        asked = []

        def spy(scale, **arguments):
            asked.append((scale, arguments["sensitivity"], arguments["epsilon"]))
            return laplace_noise(scale, **arguments)

        monkeypatch.setattr(statistic_module, "laplace_noise", spy)
        plan = case.plan()
        plan.statistic.measure(case.patterns()[0])
        ((scale, sensitivity, epsilon),) = asked
        assert plan.guarantee.epsilon() == sensitivity / scale <= epsilon == case.synthesizer.epsilon


# --- 5. Saved files --------------------------------------------------------------------------------------------------

SECRET_N = 7919


def near(written, values):
    """Whether each value stands among the written numbers, to three decimals."""
    padded = np.concatenate([[-np.inf], written, [np.inf]])
    place = np.searchsorted(padded, values)
    return np.minimum(values - padded[place - 1], padded[place] - values) < 0.00051


def holds(content, arrays):
    """Whether any eight bytes of the arrays stand in the content, at whatever offset."""
    needles = np.concatenate([np.frombuffer(a.tobytes(), np.uint64) for a in arrays])
    return any(
        np.isin(np.frombuffer(content, np.uint64, (len(content) - start) // 8, start), needles).any()
        for start in range(min(8, len(content)))
    )


def traces(folder, pattern, *, n):
    """Original coordinates, and the number of points where `n` is asked for, in names and contents of files."""
    found = set()
    pairs = [pattern.xy, pattern.xy.T[:, : len(pattern) // 2 * 2]]  # in single precision, two neighbours in a row
    packed = [pattern.xy.astype(d) for d in ("<f8", ">f8")] + [p.astype(d) for p in pairs for d in ("<f4", ">f4")]
    counts = [np.array([len(pattern)], d) for d in ("<i8", ">i8", "<f8", ">f8")]
    for path in folder.rglob("*"):
        content = path.read_bytes()
        text = content.decode("latin-1")
        if path.suffix in {".json", ".geojson"}:
            written = np.unique([float(number) for number in re.findall(r"\d+\.\d{3,}", text)])
            found |= {"coordinates as text"} if near(written, pattern.xy).all(axis=1).any() else set()
            number = rf"(?<![\d.]){len(pattern)}(?:\.0)?(?![\d.])"
            found |= {"the number of points"} if n and re.search(number, f"{path.stem} {text}") else set()
        else:
            found |= {"coordinates in binary"} if holds(content, packed) else set()
            found |= {"the number of points in binary"} if n and holds(content, counts) else set()
    return found


class TestFiles:
    @over_cases
    def test_hold_no_trace_of_the_pattern(self, case, tmp_path):
        """Seeded, so that a synthetic point which meets an original one by chance does so for good."""
        folder = seeded_release(case).save(tmp_path / "public", patterns=1, rng=8)
        assert traces(folder, case.patterns()[0], n=False) == set()

    @pytest.mark.parametrize("case", [c for c in FAST if c.hides_n], ids=str)
    def test_hold_no_count_where_it_is_secret(self, case, tmp_path):
        pattern = points(5, SECRET_N, case.window)
        folder = case.release(pattern, 5).save(tmp_path / "public", patterns=2, rng=9)
        assert "the number of points" not in traces(folder, pattern, n=True)
        assert "the number of points in binary" not in traces(folder, pattern, n=True)

    @pytest.mark.parametrize(
        ("name", "write", "found"),
        [
            ("synthetic_009.geojson", lambda p: json.dumps({"xy": p.xy[:1].tolist()}), "coordinates as text"),
            ("notes.json", lambda p: json.dumps(np.round(p.xy[3], 3).tolist()), "coordinates as text"),
            ("cache.nc", lambda p: b"CDF" + p.xy[:2].astype(">f4").tobytes(), "coordinates in binary"),
            ("notes.json", lambda p: json.dumps({"total": float(len(p))}), "the number of points"),
            ("run-40.json", lambda p: "{}", "the number of points"),
            ("cache.nc", lambda p: np.int64(len(p)).tobytes(), "the number of points in binary"),
        ],
    )
    def test_planted_traces_are_seen(self, name, write, found, tmp_path):
        pattern = points(1, 40, SQUARE)
        content = write(pattern)
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        assert found in traces(tmp_path, pattern, n=True)

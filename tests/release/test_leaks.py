"""Leaks: originals in saved files or logs, noise that two releases share, checks that -O removes.

`test_conformance` looks at the folders of every mechanism; here are the files made from them, and the places that it
does not look at. Every search is first put to the test with a planted leak.
"""

import ast
import base64
import functools
import itertools
import json
import logging
import os
import re
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path

import numpy as np
import pytest
from support.cases import STREETS, points
from support.fuzzing import listening
from support.traces import holds

import dpppsynth
from dpppsynth.io import write_pattern
from dpppsynth.ledger import Ledger
from dpppsynth.models import regular_triangulation
from dpppsynth.plotting import plot_pattern, save_picture
from dpppsynth.privacy import AddRemove, AddRemovePerson, AlphaNeighbours
from dpppsynth.reporting import write_report
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import HeatmapSynthesizer, KernelSynthesizer, LaplaceSynthesizer, LGCPSynthesizer

SQUARE = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
MESH = regular_triangulation(SQUARE, shape=(5, 5))
SECRET_N = 1733
SOURCES = [
    path
    for folder in ("", "models", "linear_network")
    for path in sorted((Path(dpppsynth.__file__).parent / folder).rglob("*.py"))
]


# --- Checks that `python -O` would remove ----------------------------------------------------------------------------


def asserts(source: str) -> list[int]:
    """Lines with an assert statement, or with code that depends on `__debug__`."""
    nodes = ast.walk(ast.parse(source))
    return [
        node.lineno
        for node in nodes
        if isinstance(node, ast.Assert) or (isinstance(node, ast.Name) and node.id == "__debug__")
    ]


class TestAsserts:
    @pytest.mark.slow
    def test_no_module_has_any(self):
        assert len(SOURCES) > 100
        assert {str(path): asserts(path.read_text()) for path in SOURCES if asserts(path.read_text())} == {}

    @pytest.mark.parametrize("source", ["def f(x):\n    assert x > 0", "if __debug__:\n    check()"])
    def test_planted_ones_are_seen(self, source):
        assert asserts(source)


# --- Files -----------------------------------------------------------------------------------------------------------


def unwrapped(content: bytes) -> list[bytes]:
    """A file, and what is packed into it: text chunks of PNG, data URIs of HTML, strings of JSON."""
    parts = [content]
    if content.startswith(b"\x89PNG"):
        parts, at = [], 8
        while at < len(content):
            size, kind = int.from_bytes(content[at : at + 4], "big"), content[at + 4 : at + 8]
            body = content[at + 8 : at + 8 + size]
            _, _, rest = body.partition(b"\0")
            parts += [] if kind == b"IDAT" else [body]
            parts += [zlib.decompress(rest[1:])] if kind == b"zTXt" else []
            at += 12 + size
    for packed in re.findall(rb"data:[\w/+.;=-]*base64,([A-Za-z0-9+/=\s]+)", content):
        parts += unwrapped(base64.b64decode(packed))
    return parts


@functools.cache
def written(pattern) -> frozenset[str]:
    """Pairs of coordinates to two decimals, however many they were printed with before."""
    both = np.vstack([pattern.xy, pattern.xy[:, ::-1]])
    return frozenset(f"{x:.2f} {y:.2f}" for digits in (2, 3, 4, 5, 17) for x, y in np.round(both, digits).tolist())


def sightings(content: bytes, pattern, *, n: bool) -> set[str]:
    """Pairs of original coordinates as text, coordinates in binary, and the count as a word."""
    packed = [pattern.xy.astype(kind) for kind in ("<f8", ">f8", "<f4", ">f4")]
    found = set()
    for part in unwrapped(content):
        text = part.decode("latin-1")
        numbers = [f"{float(number):.2f}" for number in re.findall(r"\d+\.\d{2,}", text)]
        pairs = {f"{a} {b}" for a, b in itertools.pairwise(numbers)}
        found |= {"text"} if not pairs.isdisjoint(written(pattern)) else set()
        found |= {"binary"} if holds(part, packed) else set()
        found |= {"count"} if n and re.search(rf"(?<![\w.]){len(pattern)}(?![\w.]|,\d)", text) else set()
    return found


def secret(domain=SQUARE):
    return points(11, SECRET_N if domain is SQUARE else 157, domain)


def asked_for(pattern, synthesizer):
    """The pattern as the synthesizer takes it: with persons of three points each where it protects persons."""
    persons = synthesizer.neighbouring() == AddRemovePerson()
    marks = {"user": np.arange(len(pattern)) // 3}
    return PointPattern(pattern.xy, pattern.domain, marks) if persons else pattern


ALONE = AlphaNeighbours(25.0)
KINDS = {
    "tents, n secret": (
        lambda: LGCPSynthesizer(1.0, relation=AddRemove(), inference="laplace", length_scale=450.0, mesh=MESH),
        SQUARE,
    ),
    "draw": (
        lambda: LGCPSynthesizer(
            1.0, delta=1e-6, relation=ALONE, mechanism="posterior-draw", sampler="exact", mesh=MESH, length_scale=450.0
        ),
        SQUARE,
    ),
    "kernel": (lambda: KernelSynthesizer(10.0, delta=1e-6, alpha=50.0), SQUARE),
    "persons, n secret": (lambda: HeatmapSynthesizer(1.0, shape=(32, 32)), SQUARE),
    "streets": (lambda: LaplaceSynthesizer(1.0, alpha=25.0, basis="tents", postprocess="plain"), STREETS),
}


@pytest.fixture(scope="module", params=KINDS)
def published(request, tmp_path_factory):
    """A pattern, whether its number of points is secret, and everything that is ever written about its release."""
    build, domain = KINDS[request.param]
    folder = tmp_path_factory.mktemp("published")
    synthesizer = build()
    pattern = asked_for(secret(domain), synthesizer)
    hidden = "n secret" in request.param
    public = {"expected_n": 1000.0} if hidden else {}
    release = synthesizer.release(pattern, 5, **public)
    paid = isinstance(synthesizer, KernelSynthesizer)
    made = release.save(folder / "public") if paid else release.save(folder / "public", patterns=2, rng=6)
    write_report(made)
    drawn = release.patterns[0] if paid else release.sample(1, rng=7)[0]
    for suffix in ("csv", "gpkg", "parquet"):
        write_pattern(drawn, folder / f"drawn.{suffix}")
    with Ledger.create(folder / "ledger.json", epsilon=50.0, delta=1e-4, relation=synthesizer.neighbouring()) as ledger:
        ledger.authorise(release.guarantee, mechanism=release.mechanism, domain=domain)
    if request.param == "tents, n secret":
        save_picture(plot_pattern(drawn), folder / "pattern.png")
    return pattern, hidden, folder


class TestFiles:
    @pytest.mark.exhaustive
    def test_hold_no_original(self, published):
        pattern, hidden, folder = published
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert {"report.html", "ledger.json", "drawn.parquet", "drawn.gpkg"} <= {path.name for path in files}
        seen = {path.name: sightings(path.read_bytes(), pattern, n=hidden) for path in files}
        assert {name: found for name, found in seen.items() if found} == {}

    @pytest.mark.parametrize(
        ("plant", "found"),
        [
            (lambda p: f"<circle cx='{p.xy[4, 0]:.2f}' cy='{p.xy[4, 1]:.2f}'/>".encode(), "text"),
            (lambda p: json.dumps({"lat": p.xy[4, 1], "lon": p.xy[4, 0]}).encode(), "text"),
            (lambda p: b"PAR1" + p.xy[4].tobytes(), "binary"),
            (lambda p: b"CDF" + p.xy[4].astype(">f4").tobytes(), "binary"),
            (lambda p: b"<p>fitted to 1733 points</p>", "count"),
            (lambda p: b'<img src="data:image/png;base64,' + base64.b64encode(png(p)) + b'">', "text"),
        ],
    )  # fmt: skip
    def test_planted_originals_are_seen(self, plant, found):
        pattern = secret()
        assert sightings(plant(pattern), pattern, n=True) == {found}


def png(pattern) -> bytes:
    """A picture whose compressed comment tells where somebody lives."""
    comment = b"Comment\0\0" + zlib.compress(f"first point {pattern.xy[0, 0]:.3f}, {pattern.xy[0, 1]:.3f}".encode())
    return b"\x89PNG\r\n\x1a\n" + len(comment).to_bytes(4, "big") + b"zTXt" + comment + bytes(4)


# --- Logs ------------------------------------------------------------------------------------------------------------


class TestLogs:
    @pytest.mark.parametrize("kind", ["tents, n secret", "draw", "kernel", "persons, n secret"])
    def test_of_a_whole_release_say_nothing(self, kind, tmp_path, capfd):
        (build, domain), said = KINDS[kind], []
        pattern = asked_for(secret(domain), build())
        hidden = "n secret" in kind
        with listening(said):
            release = build().release(pattern, progress=said.append, **({"expected_n": 1000.0} if hidden else {}))
            release.save(tmp_path / "public")
        said += [*capfd.readouterr(), repr(release)]
        assert sightings("\n".join(said).encode(), pattern, n=hidden) == set()

    def test_planted_words_are_seen(self):
        said = []
        with listening(said):
            logging.getLogger("some.library").debug("bandwidth of %s points", SECRET_N)
        assert sightings("\n".join(said).encode(), secret(), n=True) == {"count"}


# --- Noise -----------------------------------------------------------------------------------------------------------

# In a process of its own, because forking a test runner with threads may hang.
PROCESSES = textwrap.dedent("""
    import json, multiprocessing, os, sys
    import numpy as np
    import dpppsynth as dps
    from dpppsynth.privacy.noise import OpenDPGaussian, OpenDPLaplace
    from dpppsynth.core.randomness import generator

    SQUARE = dps.Window.rectangle(0, 0, 1000, 1000)
    PATTERN = dps.PointPattern(np.random.default_rng(1).uniform(0, 1000, (50, 2)), SQUARE)
    TENTS = dps.LaplaceSynthesizer(1.0, alpha=25.0, basis="tents", spacing=100.0)
    PERSONS = dps.PointPattern(PATTERN.xy, SQUARE, {"user": np.arange(50) // 3})
    HEAT = dps.HeatmapSynthesizer(1.0, shape=(16, 16))
    KERNEL = dps.KernelSynthesizer(10.0, delta=1e-6, alpha=25.0)
    PLANTED = np.random.default_rng()
    LAPLACE = OpenDPLaplace(2.0**40, sensitivity=1, epsilon=1.0)
    GAUSSIAN = OpenDPGaussian(2.0**40, sensitivity=1.0, mu=1.0)

    def draw(_=None):
        zeros = np.zeros(200, dtype=np.int64)
        return {
            "ChaCha": generator().integers(0, 2**63, 2000).tolist(),
            "Laplace, made before": LAPLACE.add(zeros).tolist(),
            "Laplace": OpenDPLaplace(2.0**40, sensitivity=1, epsilon=1.0).add(zeros).tolist(),
            "Gaussian, made before": GAUSSIAN.add(zeros).tolist(),
            "Gaussian": OpenDPGaussian(2.0**40, sensitivity=1.0, mu=1.0).add(zeros).tolist(),
            "tents": TENTS.release(PATTERN).statistic.lattice.tolist(),
            "kernel": np.round(KERNEL.release(PATTERN).patterns[0].xy * 1e6).astype(int).ravel().tolist(),
            "heat map": HEAT.release(PERSONS).statistic.lattice.tolist(),
            "planted": PLANTED.integers(0, 2**63, 2000).tolist(),
        }

    def forked():
        reader, writer = os.pipe()
        if os.fork() == 0:
            with os.fdopen(writer, "w") as stream:
                json.dump(draw(), stream)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as stream:
            return json.load(stream)

    if __name__ == "__main__":
        runs = [forked(), forked(), draw(), forked(), forked(), draw()]
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                runs += pool.map(draw, range(2), chunksize=1)
        json.dump(runs, sys.stdout)
""")


def shared(streams: list[list[int]]) -> int:
    """Number of stretches of four numbers that stand in two of the streams."""
    seen = [set(zip(*(stream[k:] for k in range(4)), strict=False)) for stream in streams]
    return sum(len(one & other) for i, one in enumerate(seen) for other in seen[:i])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    script = tmp_path_factory.mktemp("noise") / "processes.py"
    script.write_text(PROCESSES)
    # Python 3.12 and later warn of forks; OpenBLAS and numba start threads that nothing here needs.
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(script)]
    done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True, timeout=250, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
class TestNoise:
    @pytest.mark.parametrize(
        "kind",
        [
            "ChaCha",
            "Laplace",
            "Laplace, made before",
            "Gaussian",
            "Gaussian, made before",
            "tents",
            "kernel",
            "heat map",
        ],
    )
    def test_no_two_processes_share_any(self, runs, kind):
        streams = [run[kind] for run in runs]
        assert len(streams) == 10
        assert len({tuple(stream) for stream in streams}) == 10
        # The statistic of one pattern is the same but for its noise, which spans some ten thousand values.
        assert shared(streams) == 0

    def test_a_generator_made_at_import_is_seen(self, runs):
        """Children forked from one state draw the same numbers."""
        assert shared([run["planted"] for run in runs]) >= 1997

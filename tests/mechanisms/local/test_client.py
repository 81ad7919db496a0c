"""Devices: the package's own reports from the same bits, from a checked description, with NumPy alone."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from support.command_line import run, spoken

import dpppsynth as dps
from dpppsynth import local
from dpppsynth.client import Client
from dpppsynth.core import randomness
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import SystemBits
from dpppsynth.mechanisms.local.client import content_hash
from dpppsynth.mechanisms.local.randomizers.oracles import ORACLES
from dpppsynth.mechanisms.local.randomizers.randomizer import KINDS
from dpppsynth.privacy.catalogue import text

WINDOW = dps.Window.rectangle(-10, 5, 30, 65, crs="EPSG:27700")
ADAPTIVE = local.PrivAG(WINDOW, epsilon=3.0)
CELLS = [
    local.DiskAreaMechanism(epsilon=1.0, cells=5),
    local.HybridUniformExponential(epsilon=1.0, cells=4),
    local.MultidimensionalSquareWave(epsilon=1.0, cells=4),
    local.SEMGeoI(epsilon=0.8, cells=4),
    local.RangeHierarchy(epsilon=2.0, cells=8),
]
ROUNDS = [
    *(local.UniformGrid(WINDOW, epsilon=1.0, cells=(3, 5), oracle=kind) for kind in ORACLES),
    ADAPTIVE.first(4000),
    ADAPTIVE.second(ADAPTIVE.first(4000).simulate(np.full((800, 2), 20.0), rng=1), 4000),
]
# The last ones on lines between cells, on the border, and as near as floats come to it.
PLACES = [
    *np.random.default_rng(3).uniform([-10, 5], [30, 65], (40, 2)).tolist(),
    [-2.0, 17.0], [30.0, 65.0], [-10.0, 5.0], [np.nextafter(30.0, 0), np.nextafter(5.0, 9)], [10, 35],
]  # fmt: skip
HEAVY = {
    "mpmath", "numba", "opendp", "pandas", "pyarrow", "pymc", "pyproj", "randomgen", "scipy", "shapely", "typer",
    "dpppsynth.contract", "dpppsynth.io", "dpppsynth.privacy", "dpppsynth.release", "dpppsynth.spatial.mesh",
}  # fmt: skip
# Modules that a device loads: NumPy's, and some thirty of the package.
MOST = 320
DEVICE = """
import sys
from dpppsynth.client import Client
print(Client.read(sys.argv[1]).report((1.0, 6.0)).to_json())
print(*sorted(sys.modules))
"""


def changed(text, **values):
    """A description with other values and the right hash, as somebody would write it."""
    data = json.loads(text) | values
    data.pop("hash")
    return json.dumps(data | {"hash": content_hash(data)})


class TestReports:
    def test_every_law_is_here(self):
        # A report about a trajectory is of more than one place.
        assert {each.randomizer.kind for each in (*CELLS, *ROUNDS)} == set(KINDS) - {"displacements"}

    def test_trajectories_are_refused(self):
        with pytest.raises(InputError):
            local.description(local.LineTrace(epsilon=1.0, cells=4), WINDOW)

    @pytest.mark.parametrize("mechanism", [*CELLS, *ROUNDS], ids=lambda each: each.randomizer.kind)
    def test_are_those_of_the_package(self, mechanism):
        device = Client.from_json(local.description(mechanism, WINDOW))
        cells = isinstance(mechanism, local.CellMechanism)
        for seed, place in enumerate(PLACES):
            sent = device.report(place, np.random.default_rng(seed))
            theirs = mechanism.cell(place, WINDOW) if cells else place
            assert sent == mechanism.client(theirs, np.random.default_rng(seed))
        assert sent.seeded

    @pytest.mark.parametrize("mechanism", [CELLS[0], ROUNDS[0]], ids=["cells", "lines"])
    def test_outside(self, mechanism):
        device = Client.from_json(local.description(mechanism, WINDOW))
        near, far = (device.report(place, np.random.default_rng(4)) for place in ([30.0, 40.0], [9e9, 40.0]))
        assert near == far
        with pytest.raises(InputError, match="outside"):
            device.report([31.0, 40.0], outside="raise")

    @pytest.mark.parametrize("mechanism", [*CELLS, *ROUNDS], ids=lambda each: each.randomizer.kind)
    def test_of_secret_bits_are_counted(self, mechanism):
        device = Client.from_json(local.description(mechanism, WINDOW))
        sent = [device.report(place) for place in PLACES]
        assert not any(report.seeded for report in sent)
        counts = mechanism.aggregate([local.Report.from_json(report.to_json()) for report in sent])
        assert (counts.n, counts.seeded) == (len(PLACES), False)

    def test_secret_bits_are_the_operating_systems_alone(self, monkeypatch):
        device, asked = Client.from_json(local.description(CELLS[0], WINDOW)), []

        def bits(n):
            asked.append(n)
            return b"\x07" * n

        monkeypatch.setattr(randomness.os, "urandom", bits)
        assert device.report([1, 9]) == device.report([1, 9])
        assert len(asked) == 2
        assert min(asked) >= 8
        monkeypatch.setattr(randomness.os, "urandom", lambda n: b"\xf9" * n)
        assert device.report([1, 9]) != device.report([9, 60])


class TestSystemBits:
    @pytest.mark.parametrize(
        ("high", "kind", "endpoint"), [(2**62, np.int64, False), (2**16, np.uint16, False), (2**63 - 1, np.int64, True)]
    )
    def test_fill_their_range(self, high, kind, endpoint):
        drawn = SystemBits().integers(0, high, size=4000, dtype=kind, endpoint=endpoint)
        assert drawn.dtype == kind
        bits = (drawn.astype(np.uint64)[:, None] >> np.arange((high - 1).bit_length()).astype(np.uint64)) & np.uint64(1)
        # Seven standard deviations of 4000 fair coins.
        assert np.abs(bits.sum(axis=0).astype(int) - 2000).max() < 222
        assert drawn.min() >= 0

    def test_nothing_else_is_drawn(self):
        for name in ("random", "normal", "permutation", "bit_generator", "bytes", "choice"):
            with pytest.raises(AttributeError, match="whole numbers alone"):
                getattr(SystemBits(), name)
        for low, high in ((0, 10), (1, 16), (0, 2**64)):
            with pytest.raises(ValueError, match="power of two"):
                SystemBits().integers(low, high, size=1)


class TestDescriptions:
    def test_budget_that_was_agreed_to(self):
        text = local.description(CELLS[0], WINDOW)
        Client.from_json(text, most_epsilon=1.0)
        with pytest.raises(InputError, match="asks for epsilon 1, more than was agreed to"):
            Client.from_json(text, most_epsilon=0.99)

    @pytest.mark.parametrize(
        ("values", "words"),
        [
            ({"randomizer": CELLS[0].randomizer.parameters() | {"epsilon": 5.0}}, "another mechanism"),
            ({"randomizer": CELLS[0].randomizer.parameters() | {"cells": 4}}, "25 cells, and the law is of 16"),
            ({"randomizer": {"kind": "os", "epsilon": 1.0}}, "is not known"),
            ({"randomizer": None}, "needs a mapping"),
            ({"grid": {"bounds": [0, 0, 1, 1], "cells": 6}}, "36 cells"),
            ({"grid": {"bounds": [0, 0, 1, 1]}}, "needs bounds and cells"),
            ({"grid": {"bounds": [0, 0, 0, 1], "cells": 5}}, "bounds"),
            ({"grid": {"columns": [0, 1], "rows": [0, 1], "inner": 7}}, "inner"),
            ({"grid": []}, "needs a mapping"),
            ({"crs": 27700}, "crs a text"),
            ({"mechanism": "0" * 16}, "another mechanism"),
            ({"format": "dpppsynth.counts"}, "is none of a mechanism"),
        ],
    )
    def test_wrong_ones(self, values, words):
        with pytest.raises(InputError, match=words):
            Client.from_json(changed(local.description(CELLS[0], WINDOW), **values))

    def test_changed_ones(self):
        text = local.description(CELLS[0], WINDOW)
        for wrong in (
            text.replace("30.0", "31.0"),
            text.replace('"hash": "', '"hash": "0'),
            "",
            "[]",
            None,
            "[" * 9999,
        ):
            with pytest.raises(InputError, match="description"):
                Client.from_json(wrong)

    def test_several_rounds_and_other_windows_are_refused(self):
        with pytest.raises(InputError, match="report at once"):
            local.description(ADAPTIVE, WINDOW)
        with pytest.raises(InputError, match="not the window"):
            local.description(ROUNDS[0], dps.Window.rectangle(0, 0, 1, 1))


def test_a_device_loads_numpy_and_its_law_alone(tmp_path):
    for mechanism in (CELLS[0], ROUNDS[-1]):
        path = local.write_description(mechanism, tmp_path / f"{mechanism.fingerprint}.json", window=WINDOW)
        call = [sys.executable, "-c", DEVICE, str(path)]
        line, modules = subprocess.run(call, capture_output=True, text=True, check=True, env=os.environ).stdout.split(
            "\n"
        )[:2]
        assert mechanism.aggregate(local.Report.from_json(line)).n == 1
        assert "dpppsynth.mechanisms.local.client" in modules.split()
        assert not HEAVY & {part for name in modules.split() for part in (name, name.partition(".")[0])}
        assert len(modules.split()) <= MOST


def test_command(tmp_path):
    ask = ["--mechanism", "disk-area", "--epsilon", 2, "--cells", 4, "--window", "0,0,30,60"]
    said = spoken(run("local", "describe", *ask, "--out", tmp_path / "m.json"))
    assert text("local-randomizer") in said
    report = Client.read(tmp_path / "m.json").report((3.0, 4.0))
    assert report.mechanism == local.DiskAreaMechanism(epsilon=2.0, cells=4).fingerprint
    assert "m.json exists" in spoken(run("local", "describe", *ask, "--out", tmp_path / "m.json", code=2))

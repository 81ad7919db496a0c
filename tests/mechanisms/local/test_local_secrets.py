"""Representations, errors and logs of local mechanisms never hold where somebody is."""

import logging
import re

import baselines
import numpy as np
import pytest
from baselines.trajectories import Trajectories

from dpppsynth import local
from dpppsynth.core.errors import DpppsynthError
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

WINDOW = Window.rectangle(0, 0, 8000, 8000)
# Everybody is in the cell (12, 10) of 13 x 13, the value 166; no public number here has these digits.
PLACE = 7771.25, 6663.5
XY = np.tile(PLACE, (37, 1))
PATTERN = PointPattern(XY, WINDOW)
CELL, VALUE = (12, 10), 166
TELLING = re.compile(r"(?<![\d.])(7771|6663|166)(?!\d)|12, ?10\b|7\.77125e|6\.6635e")
CELLED = [
    local.DiskAreaMechanism(epsilon=1.0, cells=13),
    local.HybridUniformExponential(epsilon=1.0, cells=13),
    local.SEMGeoI(epsilon=1.0, cells=13, subset=1),
    local.MultidimensionalSquareWave(epsilon=1.0, cells=13),
]
SETTINGS = {"epsilon": 1.0, "oracle": "randomized-response"}
GRIDS = [local.UniformGrid(WINDOW, cells=13, **SETTINGS), local.AdvancedAdaptiveGrid(WINDOW, **SETTINGS)]
WALKS = Trajectories(XY, [0, 20, 37])
TRACE = local.LDPTrace(epsilon=2.0, cells=13, max_length=30)


def calls():
    """Calls with places, right and wrong ones."""
    marked = PointPattern(XY, WINDOW, {"age": np.arange(37)})
    for each in CELLED:
        yield from (
            lambda m=each: m.simulate(PATTERN),
            lambda m=each: m.release(PATTERN),
            lambda m=each: m.release(PATTERN).statistic,
            lambda m=each: m.release(marked),
            lambda m=each: m.plan(WINDOW, n=36).release(PATTERN),
            lambda m=each: m.clients([VALUE] * 5),
            lambda m=each: m.clients([VALUE, 10**9]),
            lambda m=each: m.client((CELL[0], 99)),
            lambda m=each: m.client((12.5, CELL[1])),
            lambda m=each: m.cell_values([[CELL[0], -CELL[1]]]),
            lambda m=each: m.aggregate([local.Report("x", (VALUE,))]),
        )
    for each in GRIDS:
        yield from (
            lambda m=each: m.simulate(PATTERN),
            lambda m=each: m.simulate(XY + 1e6),
            lambda m=each: m.release(PATTERN),
            lambda m=each: m.value((PLACE[0] + 1e6, PLACE[1])),
            lambda m=each: m.client((PLACE[0], np.nan)),
            lambda m=each: m.plan(WINDOW, n=36).release(PATTERN),
        )
    yield from (
        lambda: WALKS,
        lambda: WALKS.on_grid(WINDOW, 13),
        lambda: WALKS.on_grid(Window.rectangle(0, 0, 10, 10), 13),
        lambda: local.GridTrajectories(13, [VALUE, 10**6], [0, 2]),
        lambda: TRACE.first.clients(WALKS.on_grid(WINDOW, 13)),
        lambda: TRACE.simulate(WALKS.on_grid(WINDOW, 13)),
        lambda: TRACE.release(PATTERN),
        lambda: baselines.pivot_trace(WALKS, epsilon=1.0),
        lambda: baselines.best_uniform_grid(XY, WINDOW, [[0, 0, 8, 8]], sides=[2], epsilon=1.0),
        lambda: baselines.CentralUniformGrid(WINDOW, epsilon=1.0, expected_n=37).release_counts(XY + 1e6),
    )


@pytest.mark.parametrize("call", [*calls()])
def test_nothing_said_tells_a_place(call, caplog):
    caplog.set_level(logging.DEBUG)
    try:
        made = call()
        said = [repr(made), str(made)]
    except DpppsynthError as error:
        said, link = [], error
        while link is not None:
            said.append(str(link))
            link = link.__cause__ or link.__context__
    for text in [*said, caplog.text]:
        assert not TELLING.search(text)


def test_it_would_be_noticed():
    for text in ("7771.25", "(12, 10)", "cell 12,10", "value 166.", "[166]"):
        assert TELLING.search(text)
    assert not TELLING.search("from 0 to 168, 1166 and 6.6635")

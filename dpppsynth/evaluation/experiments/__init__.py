"""Simulation studies: parallel, resumable grids of patterns, mechanisms and budgets.

A `Study` is a grid of cells: a scenario to draw an original from, a synthesizer, a budget, a repeat. Every cell's
random stream follows from the study's seed and the cell's own names, so its results depend neither on the other cells
nor on how many workers there are. Finished cells are kept in a folder, where a later run finds them.
"""

from dpppsynth.evaluation.experiments.cells import Cell, CellError, Outcome, Scenario
from dpppsynth.evaluation.experiments.study import Study, summary

__all__ = ["Cell", "CellError", "Outcome", "Scenario", "Study", "summary"]

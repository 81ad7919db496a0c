"""Simulation studies: parallel, resumable grids of patterns, mechanisms and budgets.

A `Study` is a grid of cells: a scenario to draw an original from, a synthesizer, a budget, a repeat. Every cell's
random stream follows from the study's seed and the cell's own names, so its results depend neither on the other cells
nor on how many workers there are. Finished cells are kept in a folder, where a later run finds them.

Modules, each importing from those above it alone:

* `cells`: `Scenario`, `Outcome`, the cells of the grid and their random streams.
* `bar`: progress on a terminal.
* `study_tables`: `summary` of a study's table.
* `design`: what a study consists of, checked.
* `simulation`: one cell, from the seed to the measured numbers.
* `store`: finished cells on disk, and what a folder remembers of its study.
* `worker_pool`: cells through processes or a cluster.
* `engine`: from missing cells to kept ones.
* `study`: `Study`.
"""

from dpppsynth.evaluation.experiments.cells import Cell, CellError, Outcome, Scenario
from dpppsynth.evaluation.experiments.study import Study
from dpppsynth.evaluation.experiments.study_tables import summary

__all__ = ["Cell", "CellError", "Outcome", "Scenario", "Study", "summary"]

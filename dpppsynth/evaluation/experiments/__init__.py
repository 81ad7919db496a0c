"""Simulation studies: many patterns, mechanisms and budgets, run in parallel, stopped and taken up again at will.

A `Study` is a grid of cells: a scenario to draw an original from, a synthesizer, a budget, a repeat. Every cell's
random stream follows from the study's seed and the cell's own names, so its results depend neither on the other cells
nor on how many workers there are. Finished cells are kept in a folder, where a later run finds them.

* `cells`: `Scenario`, `Outcome` and one cell of the grid, from the seed to the measured numbers.
* `study`: `Study`, the grid.
* `description`: what a folder remembers of its study, and how another one is told apart.
* `parts`: scenarios, synthesizers and measures in words, a digest of their code included.
* `store`: finished cells on disk.
* `engine`: cells through worker processes or a cluster.
* `bar`: progress on a terminal.
* `tables`: `summary` of a study's table.
"""

from dpppsynth.evaluation.experiments.cells import Cell, CellError, Outcome, Scenario
from dpppsynth.evaluation.experiments.study import Study
from dpppsynth.evaluation.experiments.tables import summary

__all__ = ["Cell", "CellError", "Outcome", "Scenario", "Study", "summary"]

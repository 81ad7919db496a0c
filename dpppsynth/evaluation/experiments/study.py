"""`Study`: a simulation study that is run, resumed and read."""

from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpppsynth.core.arguments import whole
from dpppsynth.core.errors import InputError
from dpppsynth.evaluation.experiments.cells import KEYS, Cell, Outcome
from dpppsynth.evaluation.experiments.design import Design
from dpppsynth.evaluation.experiments.engine import finish
from dpppsynth.evaluation.experiments.simulation import original_of, outcome_of
from dpppsynth.evaluation.experiments.store import Store, finished_cells, require_same_study, study_description
from dpppsynth.evaluation.experiments.worker_pool import require_importable

if TYPE_CHECKING:
    import pandas as pd

# Columns that are kept beside the table.
BESIDE = ["message", "seconds"]


class Study(Design):
    """A simulation study: every synthesizer, at every budget, on `repeats` originals of every scenario.

    Parameters
    ----------
    scenarios : mapping of str to Scenario
    synthesizers : mapping of str to callable
        Each takes (scenario, epsilon, delta, n) and returns a synthesizer, or any object whose `release(pattern, rng)`
        has `sample(m, rng)` or `patterns`.
    epsilon : sequence of float
    delta : sequence of float or "1/n"
        "1/n" is one over the number of points of the original.
    repeats : int
        Originals of each scenario; the same ones for all synthesizers and budgets, so that comparisons are paired.
    measures : mapping of str to callable
        Each takes an `Outcome` and returns a number.
    patterns : int
        Synthetic patterns of each release; 0 where measures look at the release alone.
    seed : int
    version : str
        What the functions are a version of. A folder keeps the cells of one version: count it up whenever a scenario, a
        synthesizer or a measure changes under the name that it has.

    Raises
    ------
    InputError
        When an argument breaks its rule.

    Notes
    -----
    Refusals of a synthesizer are results (column `refused`; what they say: `refusals`), other exceptions stop the
    study. To run in processes or on a cluster, functions must be importable: defined at the top level of a module. A
    script needs the usual ``if __name__ == "__main__":``.

    A folder serves the study that it was made by. Another one is told apart by its version, seed, number of patterns
    and names of measures, and where cells are added by the version of this package. Functions are known by their names
    alone: only you know when one has changed.

    Examples
    --------
    >>> import tempfile
    >>> from dpppsynth import LaplaceSynthesizer, PointPattern, Window
    >>> from dpppsynth.evaluation.experiments import Scenario
    >>> square = Window.rectangle(0, 0, 1, 1)
    >>> def uniform(rng):
    ...     return PointPattern(rng.random((50, 2)), square)
    >>> def laplace(scenario, epsilon, delta, n):
    ...     return LaplaceSynthesizer(epsilon, alpha=scenario.alpha, spacing=0.25)
    >>> def points(outcome):
    ...     return len(outcome.synthetic[0])
    >>> study = Study(
    ...     {"uniform": Scenario(square, uniform, alpha=0.1)},
    ...     {"laplace": laplace},
    ...     epsilon=[1, 10],
    ...     delta=[0],
    ...     repeats=3,
    ...     measures={"points": points},
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = study.run(folder, workers=1)
    >>> list(table.columns)
    ['scenario', 'synthesizer', 'epsilon', 'delta', 'repeat', 'refused', 'points']
    >>> len(table)
    6
    """

    def run(
        self,
        folder: str | Path,
        executor: Executor | None = None,
        workers: int | None = None,
        *,
        progress: bool = True,
    ) -> "pd.DataFrame":
        """Finish every cell that the folder does not hold yet, and return the table.

        Cells are kept as they finish, those of less than a second together. A run that was stopped, killed even, is
        taken up again by running it again. More repeats, budgets, scenarios and synthesizers may be added between runs.
        An interrupt (Ctrl-C) ends processes of our own at once, and loses no more than the cells that they were at.

        Parameters
        ----------
        folder : str or Path
            New, or of an earlier run of this study.
        executor : concurrent.futures.Executor, optional
            Where to run cells, for instance ``dask.distributed.Client(...).get_executor()``; None starts processes.
        workers : int, optional
            Number of processes; 1 runs in this one, None takes all cores. With an executor: how many cells it runs at
            a time; twice as many are handed to it at once, 64 where it is not said.
        progress : bool
            Show a bar, on a terminal only.

        Returns
        -------
        pandas.DataFrame
            A row for each cell, in the order of `cells`: its names, `refused` (class of a refusal, or None) and the
            measures. It does not depend on executors, workers or interruptions.

        Raises
        ------
        InputError
            When the folder holds another study or another version of it, cannot be written or another process writes to
            it, or a function cannot be imported.
        CellError
            When a cell fails for another reason than a refusal. Cells under way are finished, and kept.
        """
        workers = None if workers is None else whole("workers", workers, 1)
        if executor is not None and not callable(getattr(executor, "submit", None)):
            msg = (
                f"executor: must be a concurrent.futures.Executor, got {executor!r}; a number of processes is workers."
            )
            raise InputError(msg)
        if executor is not None or workers != 1:
            require_importable(self, executor)
        place = _place(folder)
        with Store(place, self) as store:
            done = store.done()
            # Repeat by repeat, so that an unfinished study has every row.
            missing = sorted((cell for cell in self.cells() if cell not in done), key=lambda cell: cell.repeat)
            finish(self, missing, store, executor, workers, progress=progress)
        return self.table(place)

    def outcome(self, cell: Cell) -> Outcome:
        """Make what the measures of a cell look at once more, to draw it for instance; refusals are raised."""
        return outcome_of(self, cell, original_of(self, cell))

    def table(self, folder: str | Path) -> "pd.DataFrame":
        """Return the finished cells of this study's grid, like `run`, without running any."""
        return self._kept(folder).drop(columns=BESIDE)

    def seconds(self, folder: str | Path) -> "pd.DataFrame":
        """Return the table with a column more: what each cell took, which no two runs agree upon."""
        return self._kept(folder).drop(columns="message")

    def refusals(self, folder: str | Path) -> "pd.DataFrame":
        """Return a row for each finished cell with a refusal: its names, `refused` and what it said, `message`.

        A refusal of every cell is a mistyped argument more often than a result.
        """
        kept = self._kept(folder)[[*KEYS, "refused", "message"]]
        return kept[kept["refused"].notna()].reset_index(drop=True)

    def _kept(self, folder: str | Path) -> "pd.DataFrame":
        place = _place(folder)
        require_same_study(place, study_description(self), read_only=True)
        return finished_cells(place, self.cells(), list(self.measures))


def _place(folder: Any) -> Path:
    try:
        return Path(folder)
    except TypeError:
        msg = f"folder: needs a path, got {folder!r}."
        raise InputError(msg) from None

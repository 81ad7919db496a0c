"""Reports on one of several questions about a value, which the client draws at random."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.randomizers.exact_sampling import uniform_below
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer


@dataclass(frozen=True, kw_only=True, eq=False)
class QuestionsLaw(Randomizer):
    """Base of laws that ask one question of several, drawn uniformly, and answer it with the whole budget.

    The question is drawn without looking at the value, so no report is likelier by more than e^epsilon. Counts are the
    reports on each question, then the counts of each question's law.
    """

    # Name of the first integer of a report.
    question: ClassVar[str] = "question"

    @property
    def oracles(self) -> tuple[Any, ...]:
        """Law of the reports on each question."""
        raise NotImplementedError

    def answers(self, values: Ints, question: int) -> Ints:
        """(n,) true answers of clients with values (n,) to a question."""
        raise NotImplementedError

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of a report's integers: the question, and its law's, with zeros after a short one."""
        width = max(len(oracle.columns) for oracle in self.oracles)
        return (self.question, *(f"part_{k}" for k in range(width)))

    @property
    def size(self) -> int:
        """Number of questions and of the counts of all of them."""
        return len(self.oracles) + sum(oracle.size for oracle in self.oracles)

    @property
    def spent(self) -> float:
        return max(oracle.spent for oracle in self.oracles)

    def matrix(self) -> Floats:
        values, parts = np.arange(self.inputs), [oracle.matrix() for oracle in self.oracles]
        held = [part[:, self.answers(values, number)] for number, part in enumerate(parts)]
        return np.concatenate(held) / len(self.oracles)

    def draw(self, values: Ints, rng: np.random.Generator) -> Ints:
        """(n, columns) reports: first all questions, then the reports on each."""
        values = self.values(values)
        reports = np.zeros((len(values), len(self.columns)), dtype=np.int64)
        reports[:, 0] = uniform_below(np.full(len(values), len(self.oracles)), rng)
        for number, oracle in enumerate(self.oracles):
            here = np.flatnonzero(reports[:, 0] == number)
            reports[here, 1 : 1 + len(oracle.columns)] = oracle.draw(self.answers(values[here], number), rng)
        return reports

    def _parts(self, reports: Any) -> list[tuple[npt.NDArray[np.bool_], Ints]]:
        """Places of the reports on each question among (n,), and these reports; InputError for what no client sends."""
        rows = self.rows(reports)
        asked, found = rows[:, 0], []
        wrong = len(rows) and (asked.min() < 0 or asked.max() >= len(self.oracles))
        for which, oracle in enumerate(self.oracles):
            here, width = asked == which, 1 + len(oracle.columns)
            wrong = wrong or rows[here, width:].any()
            found.append((here, rows[here, 1:width]))
        if wrong:
            last = len(self.oracles) - 1
            msg = f"reports: must be a {self.question} from 0 to {last} and its oracle's report; some are not."
            raise InputError(msg)
        return found

    def count(self, reports: Ints) -> Ints:
        """(size,) number of reports on each question, then the counts of each question's law."""
        parts = self._parts(reports)
        each = [oracle.count(part) for oracle, (_, part) in zip(self.oracles, parts, strict=True)]
        return np.concatenate([[int(here.sum()) for here, _ in parts], *each]).astype(np.int64)

    def by_question(self, counts: Ints) -> tuple[Ints, list[Ints]]:
        """Reports on each question, and the counts of each question's law, from counts (size,)."""
        ends = np.cumsum([len(self.oracles), *(oracle.size for oracle in self.oracles)])[:-1]
        reports, *parts = np.split(self.tallies(counts), ends)
        return reports, parts

    def reported(self, counts: Ints) -> int:
        reports, parts = self.by_question(counts)
        for oracle, part, n in zip(self.oracles, parts, reports.tolist(), strict=True):
            if n:
                oracle.counts_of(part, n)
            elif part.any():
                msg = f"counts: some are of a {self.question} on which nobody reports; take what `count` returns."
                raise InputError(msg)
        return int(reports.sum())

    def log_ratio(self, reports: Ints, value: int, other: int) -> Floats:
        both = np.array([whole(name, v, 0, most=self.inputs - 1) for name, v in (("value", value), ("other", other))])
        found = np.zeros(len(self.rows(reports)))
        for number, (here, part) in enumerate(self._parts(reports)):
            found[here] = self.oracles[number].log_ratio(part, *self.answers(both, number).tolist())
        return found

    def binomials(self, counts: Ints, value: int) -> tuple[Ints, Floats]:
        reports, parts = self.by_question(counts)
        numbers, chances = [reports], [np.full(len(self.oracles), 1.0)]
        for number, (oracle, part) in enumerate(zip(self.oracles, parts, strict=True)):
            own = int(self.answers(np.array([value]), number)[0])
            # Few reports may support nothing at all, and nobody may report here.
            known = part.any() or not getattr(oracle, "categorical", True)
            supports, chance = oracle.binomials(part if known else np.eye(1, oracle.size, dtype=np.int64)[0], own)
            numbers.append(supports if known else 0 * supports)
            chances.append(chance)
        return np.concatenate(numbers), np.concatenate(chances) / len(self.oracles)

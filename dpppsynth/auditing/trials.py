"""Monte Carlo trials of a mechanism on two inputs, in parallel where asked; only features of releases are kept.

Runs on both inputs alternate in blocks. A block begins with the target as it was pickled, so a generator that travels
with it repeats itself in every block and is found out.
"""

import hashlib
import math
import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom

from dpppsynth.contract.audits.target import AuditStatistic, Draws, Target
from dpppsynth.core.errors import DpppsynthError, InputError
from dpppsynth.core.progress import Step
from dpppsynth.core.types import Floats
from dpppsynth.core.wording import mention
from dpppsynth.core.workers import worker_pool


class Repeats(NamedTuple):
    """Result of a test for repeated noise or correlated signs.

    Attributes
    ----------
    draws : int
        Draws that were compared with each other, or numbers whose signs were.
    repeats : int
        Those that had come before, or signs that agree, or disagree where that is more frequent.
    log_chance : float
        Logarithm of the probability, at most, of so many.
    signs : bool
    """

    draws: int
    repeats: int
    log_chance: float
    signs: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return self._asdict()

    def __str__(self) -> str:
        if self.signs:
            return f"agree, or disagree, in {self.repeats} of {self.draws} numbers of two levels: they share it"
        return f"came again {self.repeats} times in {self.draws} draws: its key is too short, or shared"


class SeenNoise(NamedTuple):
    """Summary of one run's draws of one kind: digests, and agreeing signs and their number, by distance of levels."""

    digests: tuple[bytes, ...]
    agree: tuple[int, ...] = ()
    compared: tuple[int, ...] = ()


def seen(draws: Draws, side: int, released: Any) -> SeenNoise:
    """Summary that is kept of the noise of a run."""
    drawn = draws.noise(side, released)
    told = [np.ascontiguousarray(each).tobytes() for each in drawn if each is not None]
    digests = tuple(hashlib.blake2b(each, digest_size=16).digest() for each in told)
    if not draws.signs:
        return SeenNoise(digests)
    signs = [np.sign(each) for each in drawn if each is not None]
    # Products of independent signs along a chain are independent: one chain for every distance.
    products = [
        np.concatenate([one * other for one, other in zip(signs, signs[apart:], strict=False)])
        for apart in range(1, len(signs))
    ]
    agree = tuple(int((each > 0).sum()) for each in products)
    return SeenNoise(digests, agree, tuple(int(np.count_nonzero(each)) for each in products))


def repeated(draws: Draws, runs: Sequence[SeenNoise]) -> Repeats:
    """Number of repeated draws in the noise of all runs.

    Examples
    --------
    >>> repeated(Draws("coin", lambda side, released: [], math.log(0.5)), [SeenNoise((b"a",))] * 3)
    Repeats(draws=3, repeats=2, log_chance=-0.07..., signs=False)
    """
    digests = [digest for run in runs for digest in run.digests]
    count = len(digests)
    again = count - len(set(digests))
    mean = min(float(count), math.exp(draws.log_likeliest) * count * (count - 1) / 2)
    return Repeats(count, again, _log_tail(again, mean, draws.log_likeliest, count))


def agreement(runs: Sequence[SeenNoise]) -> Repeats:
    """Agreement, or disagreement, of the signs of two levels' noise at the most significant distance."""
    agree, compared = (np.sum([getattr(run, name) for run in runs], axis=0) for name in ("agree", "compared"))
    most = np.maximum(agree, compared - agree)
    log_chances = math.log(2 * len(most)) + binom.logsf(most - 1, compared, 0.5)
    oddest = int(np.argmin(log_chances))
    return Repeats(int(compared[oddest]), int(most[oddest]), min(0.0, float(log_chances[oddest])), signs=True)


def _log_tail(again: int, mean: float, log_likeliest: float, count: int) -> float:
    """Logarithm of Chernoff's bound on as many repeats as were seen."""
    if again <= mean or not again:
        return 0.0
    # The mean itself may be too small for a float.
    log_mean = log_likeliest + math.log(count * (count - 1) / 2)
    return again - mean - again * (math.log(again) - log_mean)


# Blocks that a worker gets, so that all of them end at about the same time; fewest and most runs of one. Shorter
# blocks might go the same way by chance.
BLOCKS_EACH, SHORTEST, LONGEST = 8, 16, 250
# Randomness that could have repeated itself by chance, with more than this probability, is not called seeded.
CHANCE = 1e-9
# Times that progress is told.
TOLD = 16


class Task(NamedTuple):
    """Runs to do on one input, 0 or 1."""

    side: int
    runs: int


class Block(NamedTuple):
    """Results of a block of runs: the input's number, features (runs, k) by statistic, digests, and its noise."""

    side: int
    features: tuple[Floats, ...]
    digests: tuple[bytes, ...]
    noise: tuple[tuple[SeenNoise, ...], ...] = ()
    totals: Floats | None = None

    def course(self) -> tuple[bytes, ...]:
        """Features of each run as bytes, to compare blocks."""
        return tuple(b"".join(row.tobytes() for row in rows) for rows in zip(*self.features, strict=True))


class Runs(NamedTuple):
    """Results of all runs of an audit: features, repeated noise and deviations from the stated law.

    Attributes
    ----------
    features : list of pairs of (trials, k) arrays
        Per statistic, for the first and the second input.
    fixed : bool
        Whether every run on one input gave the same, and those on the other something else.
    repeats : dict of str to Repeats
        Where noise came again, more often than chance lets it.
    misfits : dict of str to float
        Deviations of the noise from its stated law, with the logarithm of their probability, at most.
    """

    features: list[tuple[Floats, Floats]]
    fixed: bool
    repeats: dict[str, Repeats]
    misfits: dict[str, float]


def run_trials(
    target: Target,
    trials: int,
    *,
    workers: int = 1,
    progress: Callable[[str], object] | None = None,
    chance: float = CHANCE,
    repeat: float = CHANCE,
    misfit: float = CHANCE,
) -> Runs:
    """`trials` runs on each input.

    Parameters
    ----------
    target : Target
    trials : int
        Runs on each input.
    workers : int
        Processes; 1 stays in this one.
    progress : callable, optional
        Told in words how far it is, sixteen times.
    chance : float
        Probability, at most, that a mechanism which keeps its claim looks as if it were fixed.
    repeat : float
        Probability, at most, that noise of the stated law seems to come again too often.
    misfit : float
        Probability, at most, that it seems to be of another law.

    Raises
    ------
    InputError
        When what is released is marked as seeded, when blocks of runs repeat each other as only seeded randomness does,
        when features are no numbers, or when the target cannot travel to a worker process.
    """
    blocks: list[Block] = []
    done = 0
    for block in _blocks(target, _tasks(trials, workers), workers):
        blocks.append(block)
        before, done = done, done + len(block.digests)
        if progress is not None and TOLD * before // (2 * trials) < TOLD * done // (2 * trials):
            progress(Step(f"{done} of {2 * trials} runs", done / (2 * trials)))
    require_fresh_blocks(blocks)
    features = [_gather(blocks, number, statistic) for number, statistic in enumerate(target.statistics)]
    fixed = _is_fixed(blocks, target.claimed.delta(0.0), chance)
    return Runs(features, fixed, _repeats(target, blocks, repeat), _misfits(target, blocks, misfit))


def _tasks(trials: int, workers: int) -> list[Task]:
    length = max(SHORTEST, min(LONGEST, trials // (BLOCKS_EACH * workers)))
    lengths = [min(length, trials - start) for start in range(0, trials, length)]
    return [Task(side, runs) for runs in lengths for side in (0, 1)]


def _blocks(target: Target, tasks: Sequence[Task], workers: int) -> Iterator[Block]:
    if workers == 1:
        yield from (run_block(target, task) for task in tasks)
        return
    try:
        sent = pickle.dumps(target)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        msg = (
            f"target: it cannot be sent to {workers} worker processes ({error}); define its functions at the top of a "
            f"module, or audit with {mention('workers', '1')}."
        )
        raise InputError(msg) from None
    with worker_pool(workers) as pool:
        try:
            yield from _in_order(pool, sent, tasks, 2 * workers)
        except BrokenExecutor as error:
            msg = (
                "workers: a worker process died, out of memory perhaps. A script that audits in processes also needs "
                '`if __name__ == "__main__":` around it.'
            )
            raise InputError(msg) from error


def _in_order(pool: Executor, sent: bytes, tasks: Sequence[Task], limit: int) -> Iterator[Block]:
    """Results in the order of the tasks, of which no more than `limit` are under way."""
    waiting = iter(tasks)
    under_way: list[Future[Block]] = [pool.submit(run_sent, sent, task) for task in islice(waiting, limit)]
    while under_way:
        block = under_way.pop(0).result()
        under_way += [pool.submit(run_sent, sent, task) for task in islice(waiting, 1)]
        yield block


def run_sent(sent: bytes, task: Task) -> Block:
    """Run a block in a worker process."""
    target: Target = pickle.loads(sent)  # noqa: S301 - made by the process that started this one
    return run_block(target, task)


def run_block(target: Target, task: Task) -> Block:
    """Run a block in this process."""
    rows: list[list[Floats]] = [[] for _ in target.statistics]
    digests, noise, totals = [], [], np.zeros((len(target.laws), 2))
    for _ in range(task.runs):
        released = target.run(target.pair[task.side])
        if getattr(released, "seeded", False) is True:
            msg = (
                "target: what it releases is seeded: its randomness can be repeated, so nothing about it is private; "
                "run it with rng=None."
            )
            raise InputError(msg)
        for row, statistic in zip(rows, target.statistics, strict=True):
            row.append(_read(statistic, released))
            if row[-1].shape != row[0].shape:
                raise _ragged(statistic)
        digests.append(_digest(released))
        noise.append(tuple(seen(draws, task.side, released) for draws in target.draws))
        for number, law in enumerate(target.laws):
            totals[number] += law.number(task.side, released if law.level is None else released.parts[law.level])
    features = tuple(np.array(row) for row in rows)
    return Block(task.side, features, tuple(digests), tuple(noise), totals)


def _read(statistic: AuditStatistic, released: Any) -> Floats:
    """(k,) features of one release."""
    try:
        values = np.atleast_1d(np.asarray(statistic.features(released), dtype=np.float64))
    except DpppsynthError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a caller's own function raises
        # Its message, and those of its causes, may quote what was released.
        kind = type(error).__name__
        msg = f"statistics: {statistic.name!r} must give a number, or an array of them; it raised {kind}."
        raise InputError(msg) from None
    one = values.shape == (1,)
    if values.ndim != 1 or not (one or statistic.learned):
        rule = "an array (k,)" if statistic.learned else "one number; learned=True makes a score of several"
        msg = f"statistics: {statistic.name!r} must give {rule}, got shape {values.shape}."
        raise InputError(msg)
    if np.isnan(values).any() or (statistic.learned and not np.isfinite(values).all()):
        msg = f"statistics: {statistic.name!r} gave values that are no numbers; an infinite score needs learned=False."
        raise InputError(msg)
    return values


def _digest(released: Any) -> bytes:
    """Digest that identifies a release; random where none can be computed."""
    try:
        return hashlib.blake2b(pickle.dumps(_content(released)), digest_size=16).digest()
    except (pickle.PicklingError, AttributeError, TypeError):
        return os.urandom(16)


def _content(released: Any) -> Any:
    if hasattr(released, "parts"):
        return [_content(part) for part in released.parts.values()]
    if hasattr(released, "patterns"):
        return [getattr(pattern, "xy", pattern) for pattern in released.patterns]
    return getattr(released, "lattice", released)


def _repeats(target: Target, blocks: Sequence[Block], chance: float) -> dict[str, Repeats]:
    """Significant repeats of draws and agreements of signs, each at a share of the error probability."""
    found = {}
    for number, draws in enumerate(target.draws):
        runs = [run[number] for block in blocks for run in block.noise]
        found[draws.name] = repeated(draws, runs)
        if draws.signs:
            found[f"signs of the {draws.name}"] = agreement(runs)
    most = math.log(chance / max(1, len(found)))
    return {name: each for name, each in found.items() if each.log_chance < most}


def _misfits(target: Target, blocks: Sequence[Block], chance: float) -> dict[str, float]:
    """Significant deviations from the stated laws, each at a share of the error probability; NaN are left out."""
    first, second = (sum(len(block.digests) for block in blocks if block.side == side) for side in (0, 1))
    totals = np.sum([block.totals for block in blocks if block.totals is not None], axis=0)
    found = {
        law.name: law.number.log_chance(float(total), int(count), (first, second))
        for law, (total, count) in zip(target.laws, totals, strict=True)
        if np.isfinite(total)
    }
    most = math.log(chance / max(1, len(target.laws)))
    return {name: log_chance for name, log_chance in found.items() if log_chance < most}


def _gather(blocks: Sequence[Block], number: int, statistic: AuditStatistic) -> tuple[Floats, Floats]:
    sides = [[block.features[number] for block in blocks if block.side == side] for side in (0, 1)]
    if len({part.shape[1] for side in sides for part in side}) > 1:
        raise _ragged(statistic)
    return np.concatenate(sides[0]), np.concatenate(sides[1])


def _ragged(statistic: AuditStatistic) -> InputError:
    return InputError(f"statistics: {statistic.name!r} must give as many numbers for every release.")


def _is_fixed(blocks: Sequence[Block], shift: float, chance: float) -> bool:
    """Whether a mechanism gave the same on every run, and something else for the other input, by more than chance.

    Where the total variation between both inputs is at most `shift`, a value of probability r under one has at least
    `r - shift` under the other, so m runs of either look like this with probability `((1 + shift) / 2)^(2 m - 2)` at
    most, whichever the values are. A release that is the same for both inputs is private.
    """
    first, second = ({digest for block in blocks if block.side == side for digest in block.digests} for side in (0, 1))
    if len(first) > 1 or len(second) > 1 or first == second:
        return False
    runs = sum(len(block.digests) for block in blocks)
    return (runs - 2) * math.log((1 + min(shift, 1.0)) / 2) < math.log(chance)


def require_fresh_blocks(blocks: Sequence[Block]) -> None:
    """Refuse blocks of one input with equal results, a sign of reused randomness, with an InputError."""
    for side in (0, 1):
        courses = [block.course() for block in blocks if block.side == side]
        counts = Counter(run for course in courses for run in course)
        alike = sum((count / counts.total()) ** 2 for count in counts.values())
        length, pairs = len(courses[0]), max(1, math.comb(len(courses), 2))
        whole = [course for course in courses if len(course) == length]
        if length * math.log(alike) + math.log(pairs) < math.log(CHANCE) and len(set(whole)) < len(whole):
            msg = (
                "target: blocks of runs repeat each other, one random stream serving several of them: a generator "
                "travels with the target, or is seeded inside it. Let every run ask for fresh randomness (rng=None)."
            )
            raise InputError(msg)

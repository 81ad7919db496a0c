"""Audits of LDPTrace: the transcript of one client, both rounds, for either of two trajectories.

Who announces the length for the second round may announce any, so the audit takes the longest: then no kind of report
is missing, and there are as many as there can be. Reports are independent, so their log-likelihood ratios add up.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpppsynth.contract.audits.statistic_audit import AuditRun, Margin, More, StatisticAudit
from dpppsynth.contract.audits.statistics import MOST_NUMBERS, named
from dpppsynth.contract.audits.target import AuditStatistic, Scores, Target, require_two
from dpppsynth.core.arguments import instance
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import generator
from dpppsynth.mechanisms.local.audit_clients import BITS, COUNT, SEED, bits, counted_reports, held_to, with_epsilon
from dpppsynth.mechanisms.local.randomizers.unary import OptimizedUnary
from dpppsynth.mechanisms.local.trajectories.paths import GridTrajectories
from dpppsynth.mechanisms.local.trajectories.protocol import RoundLaw, RoundPart
from dpppsynth.mechanisms.local.trajectory_statistic import TraceStatistic
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.profiles import PureDP
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.mesh import Floats, Ints

Walks = tuple[GridTrajectories, GridTrajectories]
Rounds = tuple[RoundLaw, RoundLaw]
Sent = Mapping[str, Ints]


def transcript(rounds: Rounds, walk: GridTrajectories) -> Sent:
    """(times, words) reports by part of one client in both rounds, drawn with secret randomness of its own."""
    sent: dict[str, Ints] = {}
    for law in rounds:
        values = np.concatenate(list(law.about(walk).values()), axis=1)
        sent |= law.words(law.draw(values, generator()))
    return sent


@dataclass(frozen=True, eq=False)
class Differing:
    """Reports of one part on which two trajectories differ: their law, and the values (k,), (k,) reported."""

    name: str
    randomizer: OptimizedUnary
    first: Ints
    second: Ints

    def ratio(self, sent: Sent) -> float:
        """Log-likelihood ratio of the two trajectories, given what was sent; 0 where no client sends such reports.

        Where a faulty client sends more reports than it is asked for, they are taken as about the same once more.
        """
        reports = _rows(sent, self.name, self.randomizer)
        pairs, which = np.unique(np.stack([self.first, self.second]), axis=1, return_inverse=True)
        which = np.resize(which, len(reports))
        try:
            parts = [
                self.randomizer.log_ratio(reports[which == k], int(one), int(other)).sum()
                for k, (one, other) in enumerate(pairs.T)
            ]
        except InputError:
            return 0.0
        return float(sum(parts))


def part_ratios(parts: tuple[Differing, ...], sent: Sent) -> Floats:
    """(k,) log-likelihood ratio of each part alone, since the noise of hundreds of reports hides a leak in one."""
    return np.array([part.ratio(sent) for part in parts])


def transcript_ratio(parts: tuple[Differing, ...], sent: Sent) -> float:
    """Log-likelihood ratio of two trajectories, given all that a client sent."""
    return float(part_ratios(parts, sent).sum())


def transcript_counts(places: tuple[tuple[RoundPart, Ints], ...], sent: Sent) -> Ints:
    """(size,) the aggregator's counts of a whole transcript, at some values of each part; 0 where it refuses."""
    counts = [counted_reports(part.randomizer, _rows(sent, part.name, part.randomizer)) for part, _ in places]
    return np.concatenate([each[values] for each, (_, values) in zip(counts, places, strict=True)])


def transcript_form(parts: tuple[RoundPart, ...], sent: Sent) -> Ints:
    """(m,) format of a transcript: number of reports of each part, and the bits of their first and last words."""
    most = MOST_NUMBERS // BITS // len(parts)
    seen = []
    for part in parts:
        rows = _rows(sent, part.name, part.randomizer)
        width = rows.shape[1]
        seen += [np.array([len(rows)]), bits(rows[:, np.unique([*range(width)[: most - 1], width - 1])])]
    return np.concatenate(seen)


def larger_shares(parts: tuple[Differing, ...], factor: float) -> Scores:
    """Scores (N,), (N,) for either trajectory of clients with an epsilon larger by a factor than the claim.

    They are the likelihood ratio of the claim. Two bits decide a unary report's: that of the own value, set with
    probability p, and that of the other one, set with probability q.
    """
    rng, scores = np.random.default_rng(SEED), np.zeros((2, COUNT))
    for part in parts:
        faulty, times = with_epsilon(part.randomizer, factor), len(part.first)
        p, q = float(part.randomizer.p), float(part.randomizer.q)
        set_bits = rng.binomial(times, [[[float(faulty.p)], [float(faulty.q)]]] * 2, (2, 2, COUNT))
        scores += math.log(p * (1 - q) / (q * (1 - p))) * (set_bits[:, 0] - set_bits[:, 1])
    return scores[0], -scores[1]


@dataclass(frozen=True, eq=False)
class TrajectoriesAudit(StatisticAudit):
    """All that one client sends in both rounds."""

    plan: TraceStatistic

    def target(
        self,
        run: AuditRun,
        name: str,
        claim: Guarantee,
        *,
        margin: Margin,
        pair: Any = None,
        statistics: More = (),
        relation: Relation | None = None,
    ) -> Target:
        plan, first = self.plan, self.plan.protocol.first
        rounds = first, plan.protocol.second(plan.max_length)
        walks = hard_walks(plan) if pair is None else _two_walks(pair)
        parts = tuple(_differing(rounds, walks))
        spent = float(first.total + rounds[1].total)
        return Target(
            run=partial(transcript, rounds),
            pair=walks,
            claimed=PureDP(held_to(spent, claim)),
            statistics=(*_statistics(rounds, walks, parts), *named(statistics)),
            words=(
                "trajectories: all reports of one client with one or the other of two, of up to "
                f"{plan.max_length} cells"
            ),
            weakened=partial(larger_shares, parts),
            alike=not parts,
        )


def hard_walks(plan: TraceStatistic) -> Walks:
    """Two trajectories that differ in every report: one to and fro in a corner, one at rest in the opposite corner."""
    cells, longest = plan.cells, plan.max_length
    moving = np.arange(longest if cells > 1 else 1) % 2
    resting = np.array([cells**2 - 1])
    one, other = (GridTrajectories(cells, values, np.array([0, len(values)])) for values in (moving, resting))
    return one, other


def _differing(rounds: Rounds, walks: Walks) -> Iterable[Differing]:
    for each in rounds:
        values = [each.about(walk) for walk in walks]
        for part in each.parts:
            first, second = (of[part.name].ravel() for of in values)
            if (first != second).any():
                yield Differing(part.name, part.randomizer, first, second)


def _statistics(rounds: Rounds, walks: Walks, parts: tuple[Differing, ...]) -> tuple[AuditStatistic, ...]:
    counted = partial(transcript_counts, _looked_at(rounds, walks))
    form = partial(transcript_form, tuple(part for each in rounds for part in each.parts))
    return (
        AuditStatistic("likelihood ratio", partial(transcript_ratio, parts)),
        *((AuditStatistic("ratio of a part", partial(part_ratios, parts), learned=True, alone=True),) if parts else ()),
        AuditStatistic("counts", counted, learned=True),
        AuditStatistic("one count", counted, learned=True, alone=True),
        AuditStatistic("numbers and bits", form, learned=True),
        AuditStatistic("one number or bit", form, learned=True, alone=True),
    )


def _looked_at(rounds: Rounds, walks: Walks) -> tuple[tuple[RoundPart, Ints], ...]:
    """All values of each part; where they are too many, those that either trajectory has in parts of this size."""
    parts = [part for each in rounds for part in each.parts]
    if sum(part.randomizer.size for part in parts) <= MOST_NUMBERS:
        return tuple((part, np.arange(part.randomizer.size)) for part in parts)
    about = [(part, each.about(walk)[part.name]) for each in rounds for walk in walks for part in each.parts]
    return tuple(
        (part, np.unique(np.concatenate([values.ravel() for of, values in about if of.randomizer.size == size]))[:most])
        for part in parts
        for size, most in [(part.randomizer.size, MOST_NUMBERS // len(parts))]
    )


def _rows(sent: Sent, name: str, randomizer: OptimizedUnary) -> Ints:
    """(k, words) reports of a part, as they came; none where a faulty client sends something else."""
    try:
        return randomizer.rows(sent.get(name, ()))
    except InputError:
        return np.empty((0, len(randomizer.columns)), dtype=np.int64)


def _two_walks(pair: Any) -> Walks:
    require_two(pair)
    one, other = (instance("pair", each, GridTrajectories, "give two, of one trajectory each") for each in pair)
    if len(one) != 1 or len(other) != 1:
        msg = "pair: a client has one trajectory; give two GridTrajectories of one each."
        raise InputError(msg)
    return one, other

"""Whole local releases put to the auditor: counts of something else than the clients' reports are found.

Faults are planted in `measure`, beside sound clients. Audits of what is sound run with false alarms of 1e-8 each, some
twenty in all; a sound release looks as odd as the faulty ones with less than that.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
from support.subclasses import recast

from dpppsynth.auditing import audit
from dpppsynth.auditing.saved import disagreements
from dpppsynth.auditing.targets import target_of
from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.core.randomness import generator
from dpppsynth.local import (
    AdvancedAdaptiveGrid,
    DiskAreaMechanism,
    HybridUniformExponential,
    MultidimensionalSquareWave,
    RangeHierarchy,
    SEMGeoI,
    UniformGrid,
)
from dpppsynth.mechanisms.local.audit import log_tails
from dpppsynth.mechanisms.local.audit_clients import with_epsilon
from dpppsynth.mechanisms.local.grid_statistic import AdaptiveGridStatistic, UniformGridStatistic
from dpppsynth.mechanisms.local.randomizers.exact_sampling import TOTAL
from dpppsynth.mechanisms.local.statistic import AreaStatistic
from dpppsynth.privacy import PureDP
from dpppsynth.randomizers import SquareWave
from dpppsynth.spatial.domains import Window

SQUARE = Window.rectangle(0, 0, 1000, 1000)
N, CHANCE = 2000, 1e-8
ORACLES = (
    "local-hashing", "optimized-unary", "symmetric-unary", "hadamard-response", "randomized-response",
    "subset-selection", "projective-response",
)  # fmt: skip
SOUND = {
    "disk-area": DiskAreaMechanism(1.0, cells=5),
    "hybrid-area": HybridUniformExponential(1.0, cells=5),
    "square-wave": MultidimensionalSquareWave(1.0, cells=5),
    "subset-exponential": SEMGeoI(1.0, cells=3),
    "levels": RangeHierarchy(1.0, cells=8),
    "two rounds": AdvancedAdaptiveGrid(SQUARE, epsilon=1.0),
    **{name: UniformGrid(SQUARE, epsilon=1.0, cells=3, oracle=name) for name in ORACLES},
}


@pytest.mark.parametrize("name", SOUND)
def test_counts_of_reports_have_their_stated_law(name):
    """A wrong probability of any coordinate, or another order of the counts, would be odd in some of these."""
    for thing in (SOUND[name].plan(SQUARE, n=N), SOUND[name].plan(SQUARE, n=N).statistic):
        assert target_of(thing).counted.misfits(CHANCE) == {}


class TrueCounts(AreaStatistic):
    """Counts of the true cells."""

    def measure(self, pattern, rng=None):
        cells = np.column_stack(np.divmod(self.values(pattern), self.randomizer.cells))
        return self.counted(self.randomizer.count(cells), seeded=rng is not None)


class LargerEpsilons(AreaStatistic):
    """Clients whose epsilon is twice the stated one."""

    def measure(self, pattern, rng=None):
        clients = with_epsilon(self.randomizer, 2.0)
        return self.counted(clients.tally(self.values(pattern), generator(rng)), seeded=rng is not None)


class TrueSupports(UniformGridStatistic):
    """Counts of the true cells."""

    def measure(self, pattern, rng=None):
        values = self.first.locate(self.places(pattern))
        return self.counted(np.bincount(values, minlength=len(self.first)), seeded=rng is not None)


class LargerSupports(UniformGridStatistic):
    """Clients whose epsilon is twice the stated one."""

    def measure(self, pattern, rng=None):
        clients, values = with_epsilon(self.randomizers[0], 2.0), self.first.locate(self.places(pattern))
        return self.counted(clients.tally(values, generator(rng)), seeded=rng is not None)


class FewerSupports(UniformGridStatistic):
    """Every second person is left out."""

    def measure(self, pattern, rng=None):
        values = self.first.locate(self.places(pattern))[::2]
        return self.counted(self.randomizers[0].tally(values, generator(rng)), seeded=rng is not None)


class TrueRounds(AdaptiveGridStatistic):
    """True counts in one of the rounds."""

    true_round = 1

    def measure(self, pattern, rng=None):
        places, clients = self.places(pattern), list(self.randomizers)
        first = places[: self.reports[0]], places[self.reports[0] :]
        counts = self._counted(0, self.first, clients[0], first[0])
        grid, second = self.second_round(counts)
        return self.counted(np.append(counts, self._counted(1, grid, second, first[1])), seeded=rng is not None)

    def _counted(self, number, grid, clients, places):
        values = grid.locate(places)
        if number == self.true_round:
            return np.bincount(values, minlength=len(grid))
        return clients.tally(values, generator(None))


class TrueFirstRound(TrueRounds):
    """True counts in the first round, of which the coarse grid has several cells."""

    true_round = 0


AREA = SOUND["disk-area"].plan(SQUARE, n=N)
UNARY, HASHING = (SOUND[name].plan(SQUARE, n=N) for name in ("optimized-unary", "local-hashing"))
ROUNDS = AdvancedAdaptiveGrid(SQUARE, epsilon=3.0).plan(SQUARE, n=N)
FAULTS = [
    (AREA, TrueCounts),
    (AREA, LargerEpsilons),
    (HASHING, TrueSupports),
    (UNARY, TrueSupports),
    (UNARY, LargerSupports),
    (HASHING, FewerSupports),
    (ROUNDS, TrueRounds),
    (ROUNDS, TrueFirstRound),
]


def with_fault(plan, fault):
    """The same plan with a faulty measurement."""
    return replace(plan, statistic=recast(plan.statistic, fault))


@pytest.mark.parametrize(("plan", "fault"), FAULTS)
def test_counts_of_anything_else_are_found(plan, fault):
    """Sound clients beside a plan that does not count their reports, as a plan and as its measurement."""
    faulty = with_fault(plan, fault)
    for thing in (faulty, faulty.statistic):
        assert target_of(thing).counted.misfits(CHANCE)["law of the counts"] < np.log(CHANCE)
    assert target_of(plan).counted.misfits(CHANCE) == {}


def test_true_counts_refute_an_audit():
    """Also of a synthesizer with a window; a claim of one's own is about trials alone."""
    found = audit(with_fault(AREA, TrueCounts), trials=50)
    assert found.violated
    assert "law of the counts is not as stated" in str(found)
    assert not audit(with_fault(AREA, TrueCounts), trials=50, claimed=PureDP(20.0)).misfits
    assert not audit(SOUND["disk-area"], SQUARE, n=N, trials=50).violated


class Turned(PrivateStatistic):
    """Counts that are saved in another order."""

    def to_dict(self):
        return super().to_dict() | {"lattice": np.roll(self.lattice, 1).tolist()}


class SavesTurned(AreaStatistic):
    """Counts as they should be, until they are saved."""

    def measure(self, pattern, rng=None):
        return recast(super().measure(pattern, rng), Turned)


def test_saved_counts_are_those_of_the_release():
    """One release of each place is saved and opened again, whose statistic must be the same."""
    assert disagreements(target_of(AREA)) == ()
    found = disagreements(target_of(with_fault(AREA, SavesTurned)))
    assert "the saved statistic is not that of the release" in found


def test_releases_are_no_larger_than_needed():
    """Few persons stand for many; a client alone, or two rounds of very many, have no release."""
    assert target_of(SOUND["disk-area"].plan(SQUARE, n=10**7)).counted.run.plan.n == 10_000
    assert target_of(UniformGrid(SQUARE, epsilon=1.0, cells=200).plan(SQUARE, n=10**6)).counted.run.plan.n == 500
    assert target_of(SOUND["disk-area"]).counted is None
    assert target_of(SOUND["two rounds"].plan(SQUARE, n=10**6)).counted is None


def test_tails_are_not_rarer_than_binomial_ones():
    """And likelier by a factor of the root of 2 n at most (Ash 1965, lemma 4.7.2)."""
    n = 50
    counts = np.arange(n + 1)
    for p in (0.0, 1e-3, 0.3, 0.5, 1.0):
        exact = np.where(counts >= n * p, binom.logsf(counts - 1, n, p), binom.logcdf(counts, n, p))
        bound = log_tails(counts, n, np.full(n + 1, p))
        assert (bound >= exact - 1e-9).all()
        assert np.isfinite(bound).all()
        if 0 < p < 1:
            assert (bound <= exact + np.log(2 * n) / 2 + 1e-9).all()
    assert log_tails(np.array([n]), n, np.array([0.5]))[0] == pytest.approx(-n * np.log(2))


def test_a_column_of_the_square_wave_is_one_of_its_matrix():
    """The same weights, without the rest of the matrix."""
    law = SquareWave(epsilon=1.0, cells=4, half_width=1)
    columns = [law.column(value) / TOTAL for value in range(law.inputs)]
    np.testing.assert_array_equal(np.array(columns).T, law.matrix())

"""The auditor put to local mechanisms: every client stays below its claim, and broken ones are found out.

Audits of what is sound run with false alarms of 1e-6 each, some forty in all.
"""

import itertools
import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest

from dpppsynth import randomizers
from dpppsynth.auditing import audit
from dpppsynth.auditing.examine import examine
from dpppsynth.auditing.local import (
    LargerEpsilon,
    Respond,
    cell_distance,
    clients_of,
    hard_values,
    local_target,
    with_epsilon,
)
from dpppsynth.auditing.targets import target_of
from dpppsynth.auditing.target import Statistic
from dpppsynth.errors import InputError
from dpppsynth.privacy import PureDP
from dpppsynth.randomizers import (
    DiskArea,
    HadamardResponse,
    HybridArea,
    LocalHashing,
    OptimizedUnary,
    RandomizedResponse,
    SquareWave,
    SubsetExponential,
    SymmetricUnary,
)
from dpppsynth.randomizers.area import LiteralHybridArea
from dpppsynth.randomizers.hashing import hashed
from dpppsynth.randomness import generator

EPSILONS = (0.1, 0.5, 1.0)
SECRET = generator(None)
KINDS = {
    "disk-area": lambda epsilon: DiskArea(epsilon=epsilon, cells=5, radius=2, shrink=True),
    "disk-area without shrinkage": lambda epsilon: DiskArea(epsilon=epsilon, cells=5, radius=3, shrink=False),
    "hybrid-area": lambda epsilon: HybridArea(epsilon=epsilon, cells=5, radius=2),
    "square-wave": lambda epsilon: SquareWave(epsilon=epsilon, cells=5, half_width=1),
    "randomized-response": lambda epsilon: RandomizedResponse(epsilon=epsilon, domain=4),
    "optimized-unary": lambda epsilon: OptimizedUnary(epsilon=epsilon, domain=70),
    "symmetric-unary": lambda epsilon: SymmetricUnary(epsilon=epsilon, domain=9),
    "local-hashing": lambda epsilon: LocalHashing(epsilon=epsilon, domain=9, hash_range=3),
    "hadamard-response": lambda epsilon: HadamardResponse(epsilon=epsilon, domain=9),
    "subset-exponential": lambda epsilon: SubsetExponential(epsilon=epsilon, cells=3, subset=2),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_client_stays_below_its_claim(kind, epsilon):
    """A pair whose distance is not what the claim says, or a ratio counted twice, would reject some of these."""
    made = local_target(KINDS[kind](epsilon))
    result = audit(made, trials=80)
    assert not result.violated, result
    assert result.law_is_known
    away = cell_distance(made.run.randomizer, made.pair) if made.run.randomizer.metric else 1.0
    assert result.claimed == pytest.approx(epsilon * away, rel=1e-8)
    again = pickle.loads(pickle.dumps(made))
    assert abs(again.statistics[0].features(again.run(again.pair[1]))) < 1.0001 * epsilon * away


def test_every_kind_is_audited():
    """A new kind of client must be put to the auditor, too."""
    assert {KINDS[name](1.0).kind for name in KINDS} == set(randomizers.KINDS)


# --- Faults ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Broken:
    """Base of clients that do not keep the claim of `law`."""

    law: object


class TrueCell(Broken):
    """A client that sends its own cell: the printed algorithm counts at the true one."""

    def __call__(self, value):
        return np.array([divmod(value, self.law.cells)])


class NeverPerturbed(Broken):
    """The number that decides is compared with the range of the hash, which is always larger."""

    def __call__(self, value):
        seed = SECRET.integers(2**63, size=1)
        own, other = hashed(seed, value, self.law.hash_range)[0], SECRET.integers(self.law.hash_range)
        return np.array([[seed[0], own if SECRET.random() < self.law.hash_range else other]])


class SeedOfTheValue(Broken):
    """The last bit of the seed is that of the value; the class is the right one, and perturbed."""

    def __call__(self, value):
        seed, told = self.law.draw(np.array([value]), SECRET)[0]
        return np.array([[(seed & ~1) | (value & 1), told]])


class TwoReports(Broken):
    """One person sends two reports, each with the whole budget."""

    def __call__(self, value):
        return self.law.draw(np.array([value, value]), SECRET)


class TooOftenTrue(Broken):
    """An OUE whose own bit is kept with probability 3/4, the others as for 1/2."""

    def __call__(self, value):
        bits = SECRET.random(self.law.domain) < 1 / (np.exp(self.law.epsilon) + 1)
        bits[value] = SECRET.random() < 0.75
        places = np.arange(self.law.domain)
        words = np.zeros(len(self.law.columns), dtype=np.int64)
        np.bitwise_or.at(words, places // 62, bits.astype(np.int64) << places % 62)
        return words[None]


class FractionalRadius(Broken):
    """A radius of 2.5 cells where reports are laid out for 2: some end in cells that only one value reaches."""

    def __call__(self, value):
        radius, reach = 2.5, 3
        offsets = np.array([*itertools.product(range(-reach, reach + 1), repeat=2)])
        apart = np.maximum(2 * np.abs(offsets) - 1, 0)
        near = offsets[(offsets**2).sum(axis=1) <= radius**2]
        mixed = offsets[((apart**2).sum(axis=1) < 4 * radius**2) & ((offsets**2).sum(axis=1) > radius**2)]
        size = self.law.size + np.expm1(self.law.epsilon) * (len(near) + len(mixed) / 4)
        if SECRET.random() < self.law.size / size:
            return self.law.draw(SECRET.integers(self.law.inputs, size=1), SECRET)
        own = near if SECRET.random() < 4 * len(near) / (4 * len(near) + len(mixed)) else mixed
        return (np.array(divmod(value, self.law.cells)) + SECRET.permutation(own)[0])[None]


class OthersOnly(Broken):
    """A coin of e^eps : 1 decides on the truth, as for two values, and otherwise one of the others is sent."""

    def __call__(self, value):
        if SECRET.random() < 1 / (1 + np.exp(-self.law.epsilon)):
            return np.array([[value]])
        other = SECRET.integers(self.law.domain - 1)
        return np.array([[other + (other >= value)]])


class NothingEmpty(Broken):
    """Subsets by their weights out of the largest sum of all cells', from whose centre nothing empty is sent."""

    def __call__(self, value):
        subsets, weights = self.tables()
        total = weights.sum(axis=1).max()
        at = SECRET.random() * total < np.cumsum(weights[value])
        return np.array([subsets[at.argmax()] if at.any() else [-1] * self.law.subset])

    def tables(self):
        cells = np.array([*itertools.product(range(self.law.cells), repeat=2)])
        apart = np.hypot(*(cells[:, None] - cells).transpose(2, 0, 1))
        subsets = [*itertools.combinations(range(len(cells)), self.law.subset)]
        return subsets, np.exp(-self.law.epsilon * np.array([apart[:, each].min(axis=1) for each in subsets]).T)


def larger(name):
    honest = local_target(KINDS[name](1.0))
    return replace(honest, run=Respond(with_epsilon(honest.run.randomizer, 2.0)))


def broken(fault, name, epsilon=1.0, pair=None):
    honest = local_target(KINDS[name](epsilon), pair=pair)
    return replace(honest, run=fault(honest.run.randomizer))


def literal_hybrid(epsilon):
    """Its exponent lacks epsilon, so it spends 1 whatever is asked."""
    honest = local_target(HybridArea(epsilon=epsilon, cells=5, radius=2))
    return replace(honest, run=Respond(LiteralHybridArea(epsilon=epsilon, cells=5, radius=2, unsafe=True)))


# Fault, the statistic that sees it, and runs on each input.
FAULTS = {
    "twice epsilon, disk-area": (lambda: larger("disk-area"), "likelihood ratio", 1500),
    "twice epsilon, hybrid-area": (lambda: larger("hybrid-area"), "likelihood ratio", 1500),
    "twice epsilon, square-wave": (lambda: larger("square-wave"), "likelihood ratio", 1500),
    "twice epsilon, randomized-response": (lambda: larger("randomized-response"), "likelihood ratio", 1500),
    "twice epsilon, optimized-unary": (lambda: larger("optimized-unary"), "likelihood ratio", 1500),
    "twice epsilon, local-hashing": (lambda: larger("local-hashing"), "likelihood ratio", 1500),
    "twice epsilon, hadamard-response": (lambda: larger("hadamard-response"), "likelihood ratio", 1500),
    "twice epsilon, subset-exponential": (lambda: larger("subset-exponential"), "likelihood ratio", 1500),
    "true cell": (lambda: broken(TrueCell, "disk-area"), "likelihood ratio", 100),
    "hash never perturbed": (lambda: broken(NeverPerturbed, "local-hashing"), "likelihood ratio", 200),
    "seed of the value": (lambda: broken(SeedOfTheValue, "local-hashing", pair=(1, 8)), "one bit", 100),
    "two reports": (lambda: broken(TwoReports, "randomized-response"), "likelihood ratio", 1500),
    "own bit kept too often": (lambda: broken(TooOftenTrue, "optimized-unary"), "likelihood ratio", 1500),
    "fractional radius": (lambda: broken(FractionalRadius, "disk-area"), "numbers", 1500),
    "others only": (lambda: broken(OthersOnly, "randomized-response"), "likelihood ratio", 1500),
    "nothing empty": (lambda: broken(NothingEmpty, "subset-exponential", pair=(0, 4)), "one count", 500),
    "literal hybrid at 0.1": (lambda: literal_hybrid(0.1), "likelihood ratio", 2500),
    "literal hybrid at 0.5": (lambda: literal_hybrid(0.5), "likelihood ratio", 2500),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_caught(fault):
    """Missed once in a hundred times at most, so three audits in a row are once in a million."""
    planted, seen_by, trials = FAULTS[fault]
    faulty = planted()
    faulty = replace(faulty, statistics=tuple(each for each in faulty.statistics if each.name == seen_by))
    results = (audit(faulty, trials=trials) for _ in range(3))
    assert next((each for each in results if each.violated), None) is not None

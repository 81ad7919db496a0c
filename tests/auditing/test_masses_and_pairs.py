"""Audits of plans that release tent masses and pair sums in one vector, each with noise of its own."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from dpppsynth import AddRemove, AlphaNeighbours, ReplaceOne, Window
from dpppsynth.auditing import audit
from dpppsynth.auditing.power import half_missing
from dpppsynth.auditing.whole import Measure
from dpppsynth.contract.additive_noise import LaplaceMasses, PrivateStatistic
from dpppsynth.contract.audits.additive_audits import MassesAndPairsAudit
from dpppsynth.contract.audits.hard_pairs import differences, scales
from dpppsynth.contract.pairs_statistic import NoisedPairs, NoiseGroup, PairsStatistic
from dpppsynth.core.errors import InputError
from dpppsynth.models.pair_sums import PairStatistic
from dpppsynth.models.regular_meshes import regular_triangulation
from dpppsynth.privacy import Guarantee, PureDP
from dpppsynth.privacy.bounds import laplace_scale

SQUARE = Window.rectangle(0, 0, 400, 400)
NEAR = AlphaNeighbours(60.0)
RADII, CAPS = (20.0, 40.0), (2, 3)


@dataclass(frozen=True, eq=False, repr=False)
class Composite(LaplaceMasses, PairsStatistic):
    """Tent masses with half of the budget, and two pair sums with a quarter each; `faults` divide the drawn noise."""

    mass_share: float = 0.5
    faults: tuple[float, float] = (1.0, 1.0)
    radii: tuple[float, ...] = field(default=RADII, init=False)
    caps: tuple[int, ...] = field(default=CAPS, init=False)

    @property
    def pairs(self):
        each = (self.epsilon / 4,) * len(RADII)
        return NoisedPairs(PairStatistic(self.domain, RADII, CAPS, (4, 4)), self.relation, each)

    @property
    def scale(self):
        return laplace_scale(self.sensitivity, self.epsilon * self.mass_share)

    @property
    def masses(self):
        return len(self.mesh.vertices)

    @property
    def size(self):
        return self.masses + len(RADII)

    @property
    def guarantee(self):
        return Guarantee(self.relation, PureDP(self.epsilon), "of-a-test", ())

    def exact_numbers(self, pattern):
        sums = self.pairs.statistic.doubled(pattern.positions)
        return np.concatenate([self.exact(pattern.positions), sums])

    def noise_groups(self):
        return NoiseGroup("tent masses", self.masses, self.scale), *self.pairs.noise_groups()

    def measure(self, pattern, rng=None):
        drawn = scales(self) / np.repeat(self.faults, [self.masses, len(RADII)])
        up, down = np.random.default_rng(rng).geometric(-np.expm1(-1 / drawn), (2, self.size))
        return PrivateStatistic(self, self.exact_numbers(pattern) + up - down, "test", False)


def plan(relation=NEAR, epsilon=1.0, **changes):
    size = (40, None) if relation.n_is_public else (None, 40)
    return Composite("tents", regular_triangulation(SQUARE, spacing=100.0), relation, *size, epsilon, **changes)


def target(of):
    made = MassesAndPairsAudit(of).target(Measure(of), "composite", of.guarantee, margin=half_missing)
    return replace(made, statistics=made.statistics[:1])


@pytest.mark.parametrize("relation", [NEAR, ReplaceOne(), AddRemove(2)], ids=str)
def test_the_hardest_pair_changes_both_parts_and_reaches_the_claim(relation):
    made = plan(relation)
    change = differences(made, MassesAndPairsAudit(made).pair(relation))
    tents, sums = change[: made.masses], change[made.masses :]
    assert 0.4 <= tents.sum() <= 0.5 * (1 + 1e-9)
    assert (sums >= 0.15).all()
    assert 0.8 <= change.sum() <= 1 + 1e-9


def test_the_pair_is_that_of_the_relation_asked_for():
    """A plan for short moves does not keep the claim for long ones, and that needs no run."""
    short = plan(AlphaNeighbours(10.0))
    asked = {"margin": half_missing, "relation": NEAR}
    made = MassesAndPairsAudit(short).target(Measure(short), "composite", short.guarantee, **asked)
    assert made.excess


def test_the_ratio_is_of_all_numbers_each_in_its_scale():
    made = plan()
    found = MassesAndPairsAudit(made)
    pair = found.pair(NEAR)
    first, second = found.exact(pair)
    ratio = found.statistics(pair)[0].features
    assert ratio(PrivateStatistic(made, first, "test", False)) == pytest.approx(differences(made, pair).sum())
    for k, scale in ((int(np.argmax(np.abs(first - second))), made.scale), (-2, made.pairs.scales[0])):
        one = second.copy()
        one[k] = first[k]
        gained = ratio(PrivateStatistic(made, one, "test", False)) + differences(made, pair).sum()
        assert gained == pytest.approx(2 * abs(first[k] - second[k]) / scale)


def test_statistics_read_masses_and_sums_apart():
    made = plan()
    found = MassesAndPairsAudit(made)
    features = {each.name: each.features for each in found.statistics(found.pair(NEAR))}
    assert set(features) == {"likelihood ratio", "near", "total", "cells", "pair sums", "one number"}
    lattice = np.arange(made.size)
    read = PrivateStatistic(made, lattice, "test", False)
    unit = 2.0**-made.bits
    assert features["total"](read) == pytest.approx(lattice[: made.masses].sum() * unit)
    assert features["cells"](read).sum() == pytest.approx(lattice[: made.masses].sum() * unit)
    assert features["pair sums"](read).tolist() == lattice[-2:].tolist()


def test_numbers_of_one_scale_have_one_law():
    made = plan()
    found = MassesAndPairsAudit(made)
    pair = found.pair(NEAR)
    assert [each.name for each in found.laws(pair)] == [
        f"{which} of the noise of {of}" for of in ("tent masses", "radius 20", "radius 40") for which in ("size", "sum")
    ]
    tents = -made.masses * np.log(2 * made.scale)
    assert found.log_likeliest(pair, made.masses) == pytest.approx(tents, rel=1e-6)
    assert found.log_likeliest(pair) == pytest.approx(tents - np.log(2 * np.array(made.pairs.scales)).sum(), rel=1e-6)


def test_an_honest_plan_stands():
    """False alarms are at most the audit's own 1e-6."""
    assert not audit(target(plan()), trials=50).violated


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("faults", "trials", "of"), [((2.0, 1.0), 50, ["tent masses"]), ((1.0, 2.0), 150, ["radius 20", "radius 40"])]
)
def test_half_of_the_noise_of_either_part_is_found(faults, trials, of):
    """300 draws of one radius miss the fault with a probability below 1e-6, by normal approximation."""
    found = audit(target(plan(faults=faults)), trials=trials)
    assert found.violated
    assert list(found.misfits) == [f"size of the noise of {each}" for each in of]


def test_the_share_of_the_tents_spent_twice_is_found():
    made = target(plan(mass_share=1.0))
    assert "gives away" in made.excess[0]
    assert audit(made, trials=50).violated


def test_a_plan_without_masses_is_refused():
    class Bare(PairsStatistic):
        pass

    with pytest.raises(InputError, match="plan: needs a LaplaceMasses, got Bare; PairSumsAudit takes"):
        MassesAndPairsAudit(Bare()).pair(NEAR)

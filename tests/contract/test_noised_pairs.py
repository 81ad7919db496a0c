"""Noised pair sums as a part of any plan: its budget, its noise and its limits."""

import numpy as np
import pytest
from support.cases import SQUARE, points

from dpppsynth.contract.pairs_statistic import NoisedPairs
from dpppsynth.core.errors import InputError
from dpppsynth.models.pair_sums import PairStatistic
from dpppsynth.privacy import AddRemove, AddRemovePerson, ReplaceOne

ONE = ReplaceOne()


def part(relation=ONE, epsilons=(0.1, 0.2), radii=(20.0, 60.0), steps=(8, 8)):
    return NoisedPairs(PairStatistic(SQUARE, radii, (5, 10), steps), relation, epsilons)


@pytest.mark.parametrize("relation", [ReplaceOne(), AddRemove(3), AddRemovePerson()], ids=str)
def test_spends_the_budgets_of_its_radii(relation):
    found = part(relation)
    assert found.spent == pytest.approx(0.3, rel=1e-12)
    assert found.spent <= 0.3 * (1 + 1e-12)
    own = 3 if relation == AddRemove(3) else 1
    assert found.sensitivities == tuple(2 * own * cap * 2**found.statistic.bits for cap in (5, 10))


def test_every_radius_is_drawn_for_once_and_by_itself():
    found, seen = part(), []
    exact = found.statistic.doubled(points(1, 300, SQUARE).positions)

    def apply_noise(draw, values):
        seen.append((draw.__self__.scale, values.tolist()))
        return draw(values)

    noised = found.add(apply_noise, exact)
    assert seen == list(zip(found.scales, [[value] for value in exact.tolist()], strict=True))
    assert noised.shape == (2,)
    assert (noised != exact).all()


def test_radii_do_not_share_the_noise_of_a_seed():
    found = part(epsilons=(0.1, 0.2))
    noise = found.add(lambda draw, values: draw(values), np.zeros(2, dtype=np.int64), 5)
    assert found.scales[0] == found.scales[1]
    assert noise[0] != noise[1]
    again = found.add(lambda draw, values: draw(values), np.zeros(2, dtype=np.int64), 5)
    assert (again == noise).all()


@pytest.mark.parametrize(
    ("changes", "n", "rule"),
    [
        ({"radii": (1e-9, 20.0)}, 100, "radii: each must lie"),
        ({"radii": (1.0, 60.0), "steps": (16, 8)}, None, "radii: so many points"),
        ({"epsilons": (1e-300, 0.1)}, 100, "epsilon: "),
    ],
)
def test_what_public_numbers_decide_is_refused(changes, n, rule):
    with pytest.raises(InputError, match=f"^{rule}"):
        part(**changes).require(n)


def test_values_undo_the_lattice():
    found = part()
    assert found.values(np.array([2**found.bits, 0])).tolist() == [1.0, 0.0]

"""Work in threads: results in order, errors passed on."""

import pytest

from dpppsynth.core.workers import in_threads


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_results_stand_in_the_order_of_tasks(count):
    assert in_threads(lambda k: k**2, range(count)) == [k**2 for k in range(count)]


def test_errors_reach_the_caller():
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda k: 1 / k, [1, 2, 0])

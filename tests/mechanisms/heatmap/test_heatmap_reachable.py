"""Persons of a heat map: nothing that is released leads to them."""

import pytest
from support.cases import examples
from support.reachable import sensitive

from dpppsynth.mechanisms.heatmap.tree import pyramid

CASES = examples("heatmap")


def exact(case, pattern):
    """Arrays of persons with three points each, and of the levels that are not short."""
    users = case.known_plan.statistic.users(pattern)
    return [each.ravel() for each in (users.cell, users.points / 3, users.total(), *pyramid(users.lattice())[3:])]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_person_from_a_result_or_a_plan(case):
    pattern, plan = case.patterns()[0], case.plan()
    release = plan.release(pattern)
    for root in (release, plan):
        assert sensitive(case, pattern, root, exact(case, pattern)) == set()


def test_persons_that_are_kept_are_seen():
    case = CASES[0]
    pattern, plan = case.patterns()[0], case.plan()
    plan.statistic.__dict__["last"] = plan.statistic.users(pattern)
    assert sensitive(case, pattern, plan, exact(case, pattern)) >= {"a pattern", "exact masses"}

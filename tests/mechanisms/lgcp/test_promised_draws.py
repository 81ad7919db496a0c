"""Posterior draws: the prior that is sampled is the one of the guarantee, and a fit that is kept would be found."""

import numpy as np
import pytest
from support.cases import STREETS, examples
from support.reachable import sensitive

CASES = [case for case in examples("lgcp-posterior-draw") if not case.example.levels and not case.example.slow]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_draws_come_from_the_prior_of_the_guarantee(case):
    """The sampled prior varies between neighbours no more than the Gaussian parameter says, at the vertices."""
    plan, relation = case.known_plan.statistic, case.synthesizer.neighbouring()
    prior, vertices = plan.prior, plan.mesh.vertices
    allowed = plan.guarantee.mu / relation.max_points_per_person
    if case.hides_n:
        assert np.sqrt((prior.basis**2).sum(axis=1)).max() <= allowed * (1 + 1e-9)
        return
    i, j = np.triu_indices(len(vertices), 1)
    sd = np.sqrt(((prior.basis[i] - prior.basis[j]) ** 2).sum(axis=1))
    apart = plan.mesh.path_lengths[i, j] if case.window is STREETS else np.hypot(*(vertices[i] - vertices[j]).T)
    near = apart <= relation.reach
    assert not near.any() or sd[near].max() <= allowed * (1 + 1e-9)
    # Along an edge the field is linear: a move takes its share of the edge's increment.
    touching = apart <= apart.min() * (1 + 1e-9)
    share = np.minimum(1, relation.reach / apart[touching])
    assert (sd[touching] * share).max() <= allowed * (1 + 1e-9)


def test_a_fit_that_is_kept_is_seen():
    case = CASES[0]
    pattern, plan = case.patterns()[0], case.plan()
    plan.statistic.__dict__["last"] = plan.statistic.fit(pattern)
    assert sensitive(case, pattern, plan) == {"a pattern"}

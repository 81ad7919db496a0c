"""Audits reach mechanisms by their records: an unknown plan, or an incomplete audit, is refused by its name."""

import json
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest

from dpppsynth import AddRemove, AlphaNeighbours, BoundedErrorSynthesizer, LaplaceSynthesizer, Window
from dpppsynth.auditing import audit
from dpppsynth.auditing.targets import audit_of, target_of
from dpppsynth.contract import registry
from dpppsynth.contract.audits.additive_audits import CountsAudit
from dpppsynth.contract.audits.statistic_audit import StatisticAudit
from dpppsynth.contract.statistic import Statistic
from dpppsynth.core.errors import InputError
from dpppsynth.privacy import AddRemovePerson, PureDP

SQUARE = Window.rectangle(0, 0, 1000, 1000)
NEAR = AlphaNeighbours(50.0)
RECORDS = [registry.mechanism(name) for name in registry.names()]


@dataclass(frozen=True, eq=False)
class Unregistered(Statistic):
    """A plan of no registered mechanism, with all that the hardest pair used to be made of."""

    domain: Window = SQUARE
    n: int = 10
    expected_n: float | None = None


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_every_mechanism_has_an_audit(record):
    """Audits are made of any plan, which they look at when they are asked."""
    audit_made = record.audit(object())
    assert isinstance(audit_made, StatisticAudit)
    assert type(audit_made) is not StatisticAudit


def test_bare_measurements_are_audited_as_their_mechanisms_are():
    """A bare measurement is known by its class alone, so all mechanisms with that class have one audit."""
    for one, other in combinations(RECORDS, 2):
        assert one.statistic is not other.statistic or one.audit is other.audit, (one.name, other.name)
    plan = BoundedErrorSynthesizer(epsilon=1.0, max_error=20).plan(SQUARE, n=40)
    assert type(audit_of(plan.statistic)) is registry.mechanism("bounded-cells").audit
    laplace = LaplaceSynthesizer(1.0, postprocess="plain").plan(SQUARE, n=40)
    assert type(audit_of(laplace.statistic)) is CountsAudit


def test_plans_of_unknown_mechanisms_are_refused_by_name():
    """No pair is chosen for them by distance, and nothing else is supposed about them."""
    for refused in (lambda: audit_of(Unregistered()).pair(NEAR), lambda: target_of(Unregistered())):
        with pytest.raises(InputError, match="plans like Unregistered"):
            refused()
    plan = LaplaceSynthesizer(1.0, postprocess="plain").plan(SQUARE, n=40)
    for unknown in ("laplace-spheres", None):
        with pytest.raises(InputError, match=f"mechanism: {unknown!r} is not known"):
            replace(plan, mechanism=unknown)
        forged = replace(plan)
        object.__setattr__(forged, "mechanism", unknown)
        with pytest.raises(InputError, match=f"mechanism: {unknown!r} is not known"):
            audit(forged, trials=50)


def test_an_audit_that_does_not_answer_is_refused_by_name():
    bare = StatisticAudit(Unregistered())
    one, other = audit_of(LaplaceSynthesizer(1.0, postprocess="plain").plan(SQUARE, n=10).statistic).pair(NEAR)
    questions = {
        "separation": lambda: bare.pair(NEAR),
        "presence": lambda: bare.pair(AddRemove()),
        "pair": lambda: bare.pair(AddRemovePerson()),
        "statistics": lambda: bare.statistics((one, other)),
        "as_stated": lambda: bare.as_stated((one, other), PureDP(1.0)),
        "spent": lambda: bare.excess((one, other), PureDP(1.0)),
        "weakened": lambda: bare.weakened((one, other)),
        "alike": lambda: bare.alike((one, other)),
        "noise": lambda: bare.draws((one, other)),
        "numbers": lambda: bare.numbers,
        "log_likeliest": lambda: bare.log_likeliest((one, other)),
        "laws": lambda: bare.laws((one, other)),
    }
    for method, ask in questions.items():
        with pytest.raises(InputError, match=f"audit of Unregistered .* write `{method}` of StatisticAudit"):
            ask()


def test_the_table_of_counts_follows_from_the_counts():
    """Negative counts are zero in the table; any other difference is found, whatever the release's own check says."""
    found = audit_of(BoundedErrorSynthesizer(epsilon=1.0, max_error=20).plan(SQUARE, n=40).statistic)
    lattice = np.array([3, -2, 0])
    for counts, holds in (([3, 0, 0], True), ([3, -2, 0], False), ([3, 0, 1], False), ([3, 0], False)):
        table = {"features": [{"properties": {"count": count}} for count in counts]}
        assert list(found.files(lattice, {"counts.geojson": json.dumps(table).encode()}.__getitem__)) == [
            ("table of counts", holds)
        ]

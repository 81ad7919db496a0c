"""The places where tests put something of their own into the package."""

import itertools
from collections.abc import Mapping
from contextlib import contextmanager

import numpy as np
import pytest

from dpppsynth.contract.statistic import Statistic
from dpppsynth.release import rederive
from dpppsynth.spatial.domains import canonical_json
from dpppsynth.spatial.patterns import PointPattern
from support.chance import Chance


@contextmanager
def randomised_by(stand_in):
    """Let `stand_in(plan, draw, exact)` answer wherever a measurement draws from what is exact."""
    with pytest.MonkeyPatch.context() as patch:
        randomise_by(patch, stand_in)
        yield


def randomise_by(monkeypatch, stand_in):
    """The same until the patch is undone."""
    monkeypatch.setattr(Statistic, "apply_noise", stand_in)


def touched(*_):
    """A stand-in for a test that allows no measurement."""
    pytest.fail("the points were touched")


@contextmanager
def few_simulations():
    """As few simulations of clusters as of a pattern of any size, where a test does not depend on their law."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpppsynth.models.cluster_posterior.MANY", 1)
        patch.setattr("dpppsynth.models.cluster_process.PAIRS", 40)
        yield


@contextmanager
def one_prior():
    """One size of each part of a field behind marks instead of three, and few draws, where nothing depends on these."""
    with pytest.MonkeyPatch.context() as patch:
        parts = {"OWNS": 0.25, "TIME_SIGMAS": 0.6, "TOGETHERS": 0.25, "OWN_SHARES": 0.2, "TIME_SHARES": 0.1}
        for name, middle in parts.items():
            patch.setattr(f"dpppsynth.mechanisms.marked.synthesizer.{name}", (middle,))
        patch.setattr("dpppsynth.contract.rules.planar_rules.RANGE_RATIO", 10.0)
        patch.setattr("dpppsynth.inference.judged_inference.MOST_DRAWS", 60)
        yield


@contextmanager
def chance_for_nuts(sampler=Chance):
    """Chains of pure chance, or of the given sampler, in the place of NUTS, where a test does not depend on its law."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpppsynth.models.nuts.Sampler", sampler)
        yield


@contextmanager
def recorded():
    """The plans, draws and exact values of all that is randomised meanwhile."""
    seen = []

    def recording(plan, draw, exact):
        seen.append((plan, draw, exact))
        return draw(exact)

    with randomised_by(recording):
        yield seen


def blank(exact, pattern):
    """Something public of the same form as what is exact; `pattern` makes a pattern like one."""
    match exact:
        case PointPattern():
            return pattern(exact)
        case Mapping():
            return {name: blank(values, pattern) for name, values in exact.items()}
        case np.ndarray() if exact.dtype.kind in "iu":
            return np.zeros_like(exact)
        case np.ndarray() if exact.dtype.kind == "f":
            return np.full_like(exact, 0.5)
        case _:
            msg = f"exact values of type {type(exact).__name__} have no public stand-in here."
            raise TypeError(msg)


@contextmanager
def derived_once():
    """Bounds that were derived once are remembered: edits of the claim alone leave them as they are."""
    known = {}

    def recall(mechanism, parameters, relation, domain):
        key = mechanism, canonical_json(parameters), relation, domain.fingerprint()
        if key not in known:
            known[key] = rederive.rederive(mechanism, parameters, relation, domain)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpppsynth.release.verify.rederive", recall)
        yield


@contextmanager
def seeded_secrets():
    """Keys that are counted, and statistics without noise: a secret release that is the same every time."""
    keys = itertools.count(1)
    with randomised_by(lambda _plan, _draw, exact: exact), pytest.MonkeyPatch.context() as patch:
        patch.setattr("randomgen.ChaCha", lambda key: np.random.PCG64(next(keys)))
        yield

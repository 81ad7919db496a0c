"""Catalogue of assumptions and theorems: which codes there are, and what their sentences look like."""

import string

import numpy as np
import pytest
from support.cases import examples

from dpppsynth import Ledger, local
from dpppsynth.contract import registry
from dpppsynth.core.errors import InformationWarning, InputError
from dpppsynth.models import regular_squares
from dpppsynth.privacy import AddRemove, AlphaNeighbours, Guarantee, PureDP, ReplaceOne, catalogue
from dpppsynth.privacy.catalogue import Statement, code_from_json, code_json, same_code, text
from dpppsynth.privacy.shuffling import shuffled_reports, shuffled_rounds
from dpppsynth.release.certificate import LARGE_DELTA, SEEDED, UNSURE_DELTA
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mark_space import Marks, Times
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import KernelSynthesizer, LaplaceSynthesizer, LGCPSynthesizer, MarkedSynthesizer

SQUARE = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")


def inner(code):
    """A code and the codes among its parameters."""
    yield code.code if isinstance(code, Statement) else code
    for _, value in code.parameters if isinstance(code, Statement) else ():
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, Statement) or each in catalogue.TEXTS:
                yield from inner(each)


def of_guarantees(cases):
    """Guarantees of all examples of all mechanisms, of their ceilings, and of some that no example has."""
    for case in cases:
        yield case.known_plan.guarantee
    plane = Window.rectangle(
        0,
        0,
        1000,
        1000,
        'ENGCRS["Site",EDATUM["Gate"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],LENGTHUNIT["metre",1]]',
    )
    for relation in (AlphaNeighbours(25.0, max_points_per_person=2, user="person"), AlphaNeighbours(25.0)):
        for domain in (SQUARE, plane):
            yield LaplaceSynthesizer(1.0, relation=relation).plan(domain, n=100).guarantee
    levels = LaplaceSynthesizer(1.0, relation=AddRemove())
    yield levels.plan_by(SQUARE, by="year", levels=[1, 2], expected_n=50.0).guarantee
    yield levels.ceiling(SQUARE)
    yield local.DiskAreaMechanism(1.0, cells=4, user="person").plan(SQUARE, n=100).guarantee
    yield KernelSynthesizer(10.0, delta=1e-3, alpha=25.0, bound="kim-lim-3.6").plan(SQUARE, n=100).guarantee
    box = Window.rectangle(0, 0, 10, 10)
    flat = {"mechanism": "kim-lim-3.8", "delta": 1e-3, "mesh": regular_squares(box, shape=(5, 5)), "length_scale": 3.0}
    with pytest.warns(InformationWarning):
        yield LGCPSynthesizer(1.0, alpha=0.5, **flat).plan(box, n=200).guarantee
    hours = Marks(times=Times.day("hour", zone="Europe/London"))
    yield MarkedSynthesizer(1.0, marks=hours, relation=AlphaNeighbours(25.0, time=1.0)).plan(SQUARE, n=100).guarantee
    yield shuffled_reports(1.0, 1000, 1e-6)
    yield shuffled_rounds([1.0, 1.0], 1000, 1e-6)


def of_ledgers(folder):
    """Joint guarantees of ledgers."""
    points = PointPattern(np.random.default_rng(1).uniform(0, 1000, (60, 2)), SQUARE)
    reports = local.DiskAreaMechanism(0.5, cells=4)
    for k, (relation, delta, adaptive) in enumerate(
        [
            (ReplaceOne(), 1e-6, False),
            (ReplaceOne(), 1e-6, True),
            (AddRemove(), 0.0, False),
            (AddRemove(2), 0.0, False),
        ]
    ):
        ledger = Ledger.create(folder / f"{k}.json", epsilon=9.0, delta=delta, relation=relation, adaptive=adaptive)
        for _ in range(2):
            counts = LaplaceSynthesizer(0.5, relation=relation, spacing=250.0, postprocess="plain")
            counts.release(points, ledger=ledger, **({} if relation.n_is_public else {"expected_n": 60}))
            if relation.n_is_public:
                reports.release(points, ledger=ledger)
        yield ledger.guarantee


@pytest.mark.slow
def test_every_code_is_used_and_every_used_one_is_there(tmp_path):
    used = set()
    cases = [case for name in registry.names() for case in examples(name)]
    for guarantee in (*of_guarantees(cases), *of_ledgers(tmp_path)):
        for code in (guarantee.theorem, *guarantee.assumptions):
            used.update(inner(code))
    for case in cases:
        for plan in getattr(case.known_plan, "plans", {"": case.known_plan}).values():
            used.update(plan.statistic.noise_name(seeded=seeded) for seeded in (False, True))
    used.update((LARGE_DELTA, UNSURE_DELTA, SEEDED))
    assert used - set(catalogue.TEXTS) == set()
    assert set(catalogue.TEXTS) - used == set()


def test_assumptions_are_sentences_and_differ():
    texts = list(catalogue.ASSUMPTIONS.values())
    assert len({*texts}) == len(texts)
    assert all(each[0].isupper() or each[0] == "{" for each in texts)
    assert all(each.endswith((".", "{of}")) for each in texts)
    assert not catalogue.ASSUMPTIONS.keys() & catalogue.THEOREMS.keys()


def test_every_parameter_is_shown():
    """A parameter that no reader sees would be stated in vain."""
    fields = {name for code in catalogue.TEXTS.values() for _, name, *_ in string.Formatter().parse(code) if name}
    assert fields == {
        "first",
        "second",
        "of",
        "by",
        "user",
        "most",
        "crs",
        "factor",
        "reports",
        "rounds",
        "unit",
        "layer",
        "sha256",
        "source",
    }


@pytest.mark.parametrize(
    "code",
    [
        "counts",
        Statement("points-per-person", most=3),
        Statement("true-lengths", crs="EPSG:27700", factor=1.0004),
        Statement("privacy-filter", of=("counts", Statement("parallel-levels", of="tents", by="year"), "counts")),
    ],
)
def test_json_and_back(code):
    again = code_from_json("code", code_json(code))
    assert again == code
    assert text(again) == text(code)
    assert same_code(again, code)


def test_parameters_are_compared():
    three, four = Statement("points-per-person", most=3), Statement("points-per-person", most=4)
    assert not same_code(three, four)
    assert not same_code("points-per-person", three)
    assert not same_code(Statement("points-per-person", most=3, more=1), three)
    assert not same_code(Statement("points-per-person", most=True), Statement("points-per-person", most=1))
    assert same_code(Statement("true-lengths", factor=1.0 + 1e-12), Statement("true-lengths", factor=1.0))
    assert not same_code(Statement("true-lengths", factor=1.0 + 1e-6), Statement("true-lengths", factor=1.0))
    assert not same_code((three, three), (three,))


def test_text_of_compositions_counts_what_is_repeated():
    found = text(Statement("sequential-composition", of=("counts", "tents", "counts")))
    assert "Theorem 1 (counts) (2 times); Theorem 2 (tents)" in found


@pytest.mark.parametrize("text", ["Theorem 1 (counts)", "", "Counts", "counts\n", "a" * 61])
def test_a_sentence_is_no_code_of_a_guarantee(text):
    for theorem, assumes in ((text, ()), ("counts", (text,)), (Statement(text, most=3), ())):
        with pytest.raises(InputError, match="needs a code"):
            Guarantee(ReplaceOne(), PureDP(1.0), theorem, assumes)


@pytest.mark.parametrize("data", [None, 3, ["counts"], {"most": 3}, {"code": 3}])
def test_what_is_no_code_is_refused(data):
    with pytest.raises(InputError, match=r"^assumes: needs codes"):
        code_from_json("assumes", data)

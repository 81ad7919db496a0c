"""Simulation of one cell from its seed: original, synthesis and measures."""

import inspect
import time
import traceback
import warnings

import threadpoolctl

from dpppsynth.core.errors import InformationWarning, InputError, PrivacyCheckError, QualityError, ReleaseBlocked
from dpppsynth.evaluation.experiments.cells import Cell, Failed, Finished, Outcome, stream
from dpppsynth.evaluation.experiments.design import Design
from dpppsynth.spatial.patterns import PointPattern

# Errors that are results: what a mechanism may answer instead of a release.
REFUSALS = (InputError, PrivacyCheckError, ReleaseBlocked, QualityError)


def run_cell(design: Design, cell: Cell) -> Finished | Failed:
    """Draw, synthesize and measure, on one thread of linear algebra: sums depend on how many there are."""
    start = time.perf_counter()
    try:
        with threadpoolctl.threadpool_limits(1), warnings.catch_warnings():
            # A study looks at useless budgets on purpose.
            warnings.simplefilter("ignore", InformationWarning)
            refusals, values = _measured(design, cell)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, the study stops with the cell's name
        words = f"{type(error).__name__}: {error}"
        return Failed(cell, words, traceback.format_exc())
    kinds, messages = ("; ".join(each) or None for each in zip(*refusals, strict=True)) if refusals else (None, None)
    return Finished(cell, kinds, messages, values, time.perf_counter() - start)


def _measured(design: Design, cell: Cell) -> tuple[list[tuple[str, str]], tuple[float, ...]]:
    """Class and message of each refusal, and the values of the measures."""
    original = original_of(design, cell)
    try:
        outcome = outcome_of(design, cell, original)
    except REFUSALS as refusal:
        return [(type(refusal).__name__, str(refusal))], (float("nan"),) * len(design.measures)
    values, refusals = [], []
    for name, measure in design.measures.items():
        try:
            values.append(float(measure(outcome)))
        except REFUSALS as refusal:
            values.append(float("nan"))
            refusals.append((f"{name}: {type(refusal).__name__}", f"{name}: {refusal}"))
    return refusals, tuple(values)


def original_of(design: Design, cell: Cell) -> PointPattern:
    """Draw the original of a cell; synthesizer and budget stay out of its key, so that they share it.

    Raises
    ------
    TypeError
        What is drawn is no pattern in the scenario's domain: no mechanism may refuse it, the study is mistaken.
    """
    scenario = design.scenarios[cell.scenario]
    drawn = scenario.draw(stream(design.seed, "original", cell.scenario, cell.repeat))
    if not isinstance(drawn, PointPattern):
        msg = f"the scenario's draw must return a PointPattern, got {type(drawn).__name__}"
        raise TypeError(msg)
    if drawn.domain is not scenario.domain and drawn.domain.fingerprint() != scenario.domain.fingerprint():
        msg = f"the scenario's draw must return a pattern in {scenario.domain!r}, got one in {drawn.domain!r}"
        raise TypeError(msg)
    return drawn


def outcome_of(design: Design, cell: Cell, original: PointPattern) -> Outcome:
    """Synthesize an original in a cell's way; refusals are raised."""
    scenario, n = design.scenarios[cell.scenario], len(original)
    if cell.delta == "1/n" and n == 0:
        msg = "delta: an empty original has no 1/n."
        raise InputError(msg)
    delta = 1 / n if cell.delta == "1/n" else float(cell.delta)
    key = (design.seed, "release", cell.scenario, cell.synthesizer, cell.epsilon, cell.delta, cell.repeat)
    rng = stream(*key)
    synthesizer = design.synthesizers[cell.synthesizer](scenario, cell.epsilon, delta, n)
    # Where patterns are the mechanism, all are paid for at once; releases of an intensity give them away afterwards.
    planned = inspect.signature(synthesizer.plan).parameters if hasattr(synthesizer, "plan") else ()
    options = {"patterns": max(1, design.patterns)} if "patterns" in planned else {}
    release = synthesizer.release(original, rng, **options)
    patterns = release.patterns if hasattr(release, "patterns") else release.sample(design.patterns, rng)
    synthetic = tuple(patterns)[: design.patterns]
    if len(synthetic) < design.patterns:
        msg = f"a release gave {len(synthetic)} of the {design.patterns} patterns that the study asks for"
        raise TypeError(msg)
    return Outcome(scenario, original, release, synthetic, cell.epsilon, delta)

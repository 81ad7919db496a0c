"""Record of marked tents, with its words and examples."""

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from dpppsynth.contract.examples import RELATIONS, Example, Refusal, ring, square, streets
from dpppsynth.contract.registry import HOME, Mechanism, later
from dpppsynth.contract.result import Result
from dpppsynth.contract.statistic import Statistic
from dpppsynth.contract.words import MechanismWords
from dpppsynth.mechanisms.marked.audit import MarkedAudit
from dpppsynth.mechanisms.marked.inference import MarkedInference
from dpppsynth.mechanisms.marked.moved_inference import MarkedMovesInference
from dpppsynth.mechanisms.marked.moved_statistic import MarkedMoves
from dpppsynth.mechanisms.marked.moved_street_inference import MarkedStreetMovesInference
from dpppsynth.mechanisms.marked.release import MarkedRelease
from dpppsynth.mechanisms.marked.statistic import MarkedMasses
from dpppsynth.mechanisms.marked.synthesizer import MarkedSynthesizer
from dpppsynth.privacy.relations import AlphaNeighbours
from dpppsynth.spatial.mark_space import Marks, Times, Types

BOTH = Marks(Types("offence", ["burglary", "theft"]), Times.day("hour", hats=4))


def tents() -> Iterator[Example]:
    """Examples of all relations, domains and kinds of marks."""
    build = partial(MarkedSynthesizer, 1.0, marks=BOTH, spacing=250.0)
    near = partial(AlphaNeighbours, 25.0, time=2.0, types="public")
    for relation in (near(), near(max_points_per_person=3), *RELATIONS[2:]):
        yield Example(str(relation), partial(build, relation=relation), square(), marks=marks)
    hidden = AlphaNeighbours(25.0, time="public", types="protected")
    yield Example(str(hidden), partial(build, relation=hidden), square(), marks=marks)
    by_rule = partial(MarkedSynthesizer, 1.0, marks=BOTH, relation=near())
    yield Example("polygon with a hole, by rule", by_rule, ring(), marks=marks)
    alone = AlphaNeighbours(25.0, types="public")
    yield Example(
        "types alone", partial(MarkedSynthesizer, 1.0, marks=Marks(BOTH.types), relation=alone), square(), marks=types
    )
    years = Marks(times=Times("year", 2010.0, 2020.0, hats=5, unit="years"))
    dated = AlphaNeighbours(25.0, time=1.0)
    yield Example("times alone", partial(MarkedSynthesizer, 1.0, marks=years, relation=dated), square(), marks=times)
    for relation in (near(), RELATIONS[4]):
        yield Example(f"streets, {relation}", partial(build, relation=relation), streets(), marks=marks)


def moved() -> Iterator[Example | Refusal]:
    """Examples of moves by alpha with public marks; other relations are refused."""
    # So much noise that hardly any node is empty.
    build = partial(MarkedSynthesizer, 0.1, mechanism="moved", spacing=250.0)
    near = partial(AlphaNeighbours, 25.0, types="public", time="public")
    both = partial(build, marks=BOTH)
    for each in (near(), near(max_points_per_person=3)):
        yield Example(str(each), partial(both, relation=each), square(), marks=marks)
    alone = partial(build, marks=Marks(BOTH.types), relation=AlphaNeighbours(25.0, types="public"))
    yield Example("types alone", alone, square(), marks=types)
    yield Example("types alone, polygon with a hole", alone, ring(), marks=types)
    years = Marks(times=Times("year", 2010.0, 2020.0, hats=5, unit="years"))
    yield Example(
        "times alone", partial(build, marks=years, relation=AlphaNeighbours(25.0, time="public")), square(), marks=times
    )
    yield Example("types alone, streets", alone, streets(), marks=types)
    for relation in RELATIONS[2:]:
        rule = r"^relation: mechanism 'moved' hides where nearby a point was"
        yield Refusal(relation, partial(both, relation=relation), square(), rule)


def marks(n: int) -> Mapping[str, ArrayLike]:
    """Types and hours of n points."""
    return {**types(n), "hour": np.linspace(0.0, 23.5, n)}


def types(n: int) -> Mapping[str, ArrayLike]:
    """Types of n points."""
    return {"offence": np.where(np.arange(n) % 3 == 0, "burglary", "theft")}


def times(n: int) -> Mapping[str, ArrayLike]:
    """Years of n points."""
    return {"year": np.linspace(2010.0, 2020.0, n)}


TENTS = Mechanism(
    name="marked-tents",
    settings=MarkedSynthesizer,
    statistic=MarkedMasses,
    estimators=(MarkedInference,),
    result=MarkedRelease,
    audit=MarkedAudit,
    words=MechanismWords[Statistic, Result](
        description="Each point was shared out to the corners of a public mesh and to the nearest instants of a public "
        "range of times, for its type on a public list, and random noise was added to every sum. The synthetic points, "
        "their times and their types were drawn from an intensity made of the noisy sums alone.",
        intensity="from the noisy sums",
    ),
    examples=tents,
)

MOVED = Mechanism(
    name="marked-moved",
    settings=MarkedSynthesizer,
    statistic=MarkedMoves,
    estimators=(MarkedMovesInference, MarkedStreetMovesInference),
    result=MarkedRelease,
    audit=later(f"{HOME}.marked.moved_audit:MarkedMovesAudit"),
    words=MechanismWords[Statistic, Result](
        description="The points were each moved at random, by a distance and in a direction of their own, and those "
        "of each type, and about each instant of a public range of times, were counted on a public lattice. A "
        "log-Gaussian Cox model that knows the law of the noise was fitted to these numbers alone, and the synthetic "
        "points, their times and their types were drawn from the model.",
        intensity="middle of the posterior",
        title="Private intensity, middle of the posterior",
    ),
    examples=moved,
)

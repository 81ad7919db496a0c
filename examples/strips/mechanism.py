"""Record of counts in strips."""

from collections.abc import Iterator
from functools import partial

from dpppsynth.contract.audits.additive_audits import CountsAudit
from dpppsynth.contract.examples import RELATIONS, Example, Refusal, ring, square, streets
from dpppsynth.contract.registry import Mechanism
from dpppsynth.contract.result import Result
from dpppsynth.contract.words import MechanismWords
from dpppsynth.inference.projection import Projection
from dpppsynth.mechanisms.strips.synthesizer import StripCounts, StripsSynthesizer
from dpppsynth.release.cox import CoxRelease

WORDS = MechanismWords[StripCounts, Result](
    description="The points in vertical strips were counted, and random noise was added to every count.",
    intensity="from the noisy counts",
)


def examples() -> Iterator[Example | Refusal]:
    """Examples of all relations, a hole and levels; streets are refused."""
    build = partial(StripsSynthesizer, 1.0)
    for relation in RELATIONS:
        yield Example(str(relation), partial(build, relation=relation), square())
    yield Example("polygon with a hole", partial(build, alpha=25.0, strips=7), ring())
    yield Example("strips", partial(build, alpha=25.0), square(), levels=True)
    yield Refusal(RELATIONS[0], partial(build, relation=RELATIONS[0]), streets(), r"^domain: needs a Window")


STRIPS = Mechanism(
    name="strip-cells",
    settings=StripsSynthesizer,
    statistic=StripCounts,
    estimators=(Projection,),
    result=CoxRelease,
    audit=CountsAudit,
    words=WORDS,
    examples=examples,
)

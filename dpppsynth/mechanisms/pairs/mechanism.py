"""Records of pair sums: with a cap for every point, and with one for every person."""

from dpppsynth.contract.audits.additive_audits import PairSumsAudit
from dpppsynth.contract.registry import Mechanism
from dpppsynth.mechanisms.pairs import examples, words
from dpppsynth.mechanisms.pairs.release import PairSumsRelease
from dpppsynth.mechanisms.pairs.statistic import PairSumsStatistic, PersonPairSumsStatistic
from dpppsynth.mechanisms.pairs.synthesizer import PairSums

POINTS = Mechanism(
    name="pair-sums",
    settings=PairSums,
    statistic=PairSumsStatistic,
    estimators=(),
    result=PairSumsRelease,
    audit=PairSumsAudit,
    words=words.POINTS,
    examples=examples.points,
)
PERSONS = Mechanism(
    name="pair-sums-persons",
    settings=PairSums,
    statistic=PersonPairSumsStatistic,
    estimators=(),
    result=PairSumsRelease,
    audit=PairSumsAudit,
    words=words.PERSONS,
    examples=examples.persons,
)

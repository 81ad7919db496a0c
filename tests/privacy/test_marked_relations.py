"""Relations that say what is protected of times and types."""

import itertools

import pytest

from dpppsynth import AddRemove, AlphaNeighbours, ReplaceOne
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.relations import relation_from_dict

TIMES, TYPES = (None, "public", 0.5, 2.0, "protected"), (None, "public", "protected")
# How far a mark may change, in order.
FAR = {None: 0.0, "public": 0.0, 0.5: 0.5, 2.0: 2.0, "protected": float("inf")}


@pytest.mark.parametrize("kind", [lambda **marks: AlphaNeighbours(25.0, **marks), ReplaceOne], ids=["near", "any"])
def test_more_is_implied_by_what_protects_more(kind):
    every = [kind(time=time, types=types) for time, types in itertools.product(TIMES, TYPES)]
    for one, other in itertools.product(every, every):
        more = FAR[one.time] >= FAR[other.time] and FAR[one.types] >= FAR[other.types]
        assert one.implies(other) == more


def test_a_place_anywhere_does_not_protect_marks_unless_it_says_so():
    near = AlphaNeighbours(25.0, time=1.0, types="protected")
    assert not ReplaceOne().implies(near)
    assert not ReplaceOne(time="protected").implies(near)
    assert ReplaceOne(time="protected", types="protected").implies(near)
    assert not AddRemove().implies(near)
    assert near.implies(AlphaNeighbours(25.0))
    assert not AlphaNeighbours(25.0, time=1.0, types="public").implies(AlphaNeighbours(26.0))


def test_they_are_written_and_read_and_old_ones_as_before():
    for time, types in itertools.product(TIMES, TYPES):
        for relation in (AlphaNeighbours(25.0, time=time, types=types), ReplaceOne(3, time=time, types=types)):
            assert relation_from_dict(relation.to_dict()) == relation
    assert ReplaceOne(2).to_dict() == {"name": "replace-one", "max_points_per_person": 2}
    assert repr(AlphaNeighbours(25.0)) == "AlphaNeighbours(max_points_per_person=1, alpha=25.0)"
    told = AlphaNeighbours(25.0, time=1.5, types="public").describe()
    assert told.endswith("inside the domain, the time changes by at most 1.5, the type stays")


@pytest.mark.parametrize(
    "marks", [{"time": 0}, {"time": -1.0}, {"time": "secret"}, {"types": "any"}, {"types": 1}, {"time": float("inf")}]
)
def test_what_protects_nothing_known_is_refused(marks):
    with pytest.raises(InputError, match=r"^(time|types): "):
        AlphaNeighbours(25.0, **marks)

"""Neighbouring relations: what is stronger than what, what they say, what they refuse."""

import copy
import dataclasses
import itertools
import math
import pickle

import numpy as np
import pytest

from dpppsynth.core.errors import InputError
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne, relation_from_dict

A25, A50 = AlphaNeighbours(25.0), AlphaNeighbours(50.0)
ALL = [A25, A50, ReplaceOne(), AddRemove(), AlphaNeighbours(25.0, max_points_per_person=3), ReplaceOne(3), AddRemove(3)]
PERSON = "up to 3 points of one person"


class TestImplies:
    @pytest.mark.parametrize(
        ("strong", "weak", "reason"),
        [
            (A50, A25, "a move of at most 25 is a move of at most 50"),
            (ReplaceOne(), A50, "a move of at most 50 is a move anywhere"),
            (ReplaceOne(3), ReplaceOne(), "one point is at most three"),
            (AlphaNeighbours(50, max_points_per_person=2), A25, "both the reach and the cap are larger"),
            (ReplaceOne(3), AlphaNeighbours(1e9, max_points_per_person=3), "any reach is within the window"),
            (AddRemove(2), AddRemove(), "one point is at most two"),
        ],
    )
    def test_holds_one_way_only(self, strong, weak, reason):
        assert strong.implies(weak), reason
        assert not weak.implies(strong)

    @pytest.mark.parametrize(
        ("one", "other", "reason"),
        [
            (AlphaNeighbours(50), AlphaNeighbours(25, max_points_per_person=2), "larger reach, smaller cap"),
            (ReplaceOne(), AlphaNeighbours(25, max_points_per_person=2), "larger reach, smaller cap"),
            (AddRemove(), ReplaceOne(), "a replacement is two steps of add/remove: the bound would double"),
            (AddRemove(), A25, "a short move is two steps as well"),
            (AddRemove(2), ReplaceOne(), "all points are added or all removed, never one of each"),
            (AddRemove(), AlphaNeighbours(1e-9), "even a tiny move is two steps"),
            (ReplaceOne(5), AddRemove(), "adding a point changes n, which replacing never does"),
        ],
    )
    def test_holds_neither_way(self, one, other, reason):
        assert not one.implies(other), reason
        assert not other.implies(one), reason

    def test_a_mark_tells_of_one_point_of_others(self):
        """Two points of one person may have two labels: then they are two persons of the mark, and two steps."""
        marked = ReplaceOne(3, user="patient")
        assert marked.implies(ReplaceOne())
        assert not marked.implies(ReplaceOne(2))
        assert not marked.implies(AlphaNeighbours(25.0, max_points_per_person=2))
        assert not AddRemove(3, user="patient").implies(AddRemove())

    @pytest.mark.parametrize("relation", ALL, ids=repr)
    def test_is_reflexive(self, relation):
        assert relation.implies(copy.copy(relation))

    @pytest.mark.parametrize("relation", ALL, ids=repr)
    @pytest.mark.parametrize("other", [None, np.zeros(2, [("a", int)])], ids=["nothing", "an array"])
    def test_nothing_is_implied_of_what_is_no_relation(self, relation, other):
        assert relation.implies(other) is False

    def test_is_transitive_and_antisymmetric(self):
        for a, b, c in itertools.product(ALL, repeat=3):
            assert not (a.implies(b) and b.implies(c)) or a.implies(c)
            assert not (a.implies(b) and b.implies(a)) or a == b


UNIT = "(in the unit of the domain's coordinates) along a path inside the domain"


class TestWords:
    @pytest.mark.parametrize(
        ("relation", "words"),
        [
            (
                A25,
                f"the number of points is public and one point moves by at most 25 {UNIT}",
            ),
            (
                AlphaNeighbours(7, max_points_per_person=3),
                f"the number of points is public and {PERSON} move by at most 7 {UNIT}",
            ),
            (ReplaceOne(), "the number of points is public and one point moves anywhere in the domain"),
            (
                ReplaceOne(2),
                "the number of points is public and up to 2 points of one person move anywhere in the domain",
            ),
            (AddRemove(), "the number of points is secret and one point is added or removed"),
            (AddRemove(4), "the number of points is secret and up to 4 points of one person are added or removed"),
        ],
        ids=lambda value: repr(value) if not isinstance(value, str) else "",
    )
    def test_describe(self, relation, words):
        assert relation.describe() == words

    @pytest.mark.parametrize("relation", ALL, ids=repr)
    def test_unit_and_reach(self, relation):
        assert relation.unit == ("point" if relation.max_points_per_person == 1 else "person")
        assert relation.n_is_public is not isinstance(relation, AddRemove)
        assert relation.reach == (relation.alpha if isinstance(relation, AlphaNeighbours) else math.inf)


class TestRoundTrip:
    @pytest.mark.parametrize("relation", ALL, ids=repr)
    def test_json_copy_and_transport(self, relation):
        assert relation_from_dict(relation.to_dict()) == relation
        assert pickle.loads(pickle.dumps(relation)) == relation
        assert dataclasses.replace(relation) == relation
        assert hash(relation) == hash(copy.deepcopy(relation))

    def test_relations_of_different_kind_or_size_differ(self):
        assert len({*ALL, *map(copy.copy, ALL)}) == len(ALL)

    def test_json_form(self):
        assert A25.to_dict() == {"name": "alpha-neighbours", "max_points_per_person": 1, "alpha": 25.0}
        assert AddRemove(2).to_dict() == {"name": "add-remove", "max_points_per_person": 2}

    def test_numbers_of_numpy_become_plain_ones(self):
        """A certificate is JSON, which knows no numpy."""
        relation = AlphaNeighbours(np.float64(25), max_points_per_person=np.int64(2))
        assert type(relation.to_dict()["alpha"]) is float
        assert type(relation.to_dict()["max_points_per_person"]) is int
        assert type(ReplaceOne(2.0).to_dict()["max_points_per_person"]) is int


class TestRefusals:
    @pytest.mark.parametrize("alpha", [0, -1.0, math.nan, math.inf, "25", None, True, [25]], ids=repr)
    def test_alpha(self, alpha):
        with pytest.raises(InputError, match=r"^alpha: must be a positive finite number.*got") as caught:
            AlphaNeighbours(alpha)
        assert repr(alpha) in str(caught.value)

    @pytest.mark.parametrize("cap", [0, -1, 1.5, True, math.nan, math.inf, "three", None, [1]], ids=repr)
    @pytest.mark.parametrize("build", [ReplaceOne, AddRemove, lambda k: AlphaNeighbours(1, max_points_per_person=k)])
    def test_cap(self, build, cap):
        with pytest.raises(
            InputError, match=r"^max_points_per_person: needs a whole number of at least 1, got"
        ) as caught:
            build(cap)
        assert repr(cap) in str(caught.value)

    @pytest.mark.parametrize(
        "data",
        [{}, {"name": "alpha-neighbours"}, {"name": "nearby", "alpha": 1}, {"name": None}, {"name": "Replace-One"}],
        ids=repr,
    )
    def test_json_form(self, data):
        with pytest.raises(
            InputError, match="is not known; expected 'alpha-neighbours' with alpha, 'replace-one', 'add-"
        ):
            relation_from_dict(data)

    def test_json_form_with_bad_numbers(self):
        with pytest.raises(InputError, match="alpha"):
            relation_from_dict({"name": "alpha-neighbours", "alpha": "wide"})
        with pytest.raises(InputError, match="max_points_per_person"):
            relation_from_dict({"name": "add-remove", "max_points_per_person": 0})

    def test_fields_cannot_be_changed_afterwards(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            A25.alpha = 50.0

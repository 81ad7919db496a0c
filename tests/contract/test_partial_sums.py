"""Partial sums: whoever adds up the points of a release, in whatever order, its numbers are the same."""

import pickle

import numpy as np
import pytest
from support.cases import SQUARE, examples, points
from support.seams import chance_for_nuts, one_prior

from dpppsynth import AddRemove, HeatmapSynthesizer, LaplaceSynthesizer
from dpppsynth.contract import partial_sums, registry
from dpppsynth.core.errors import BudgetError, InputError
from dpppsynth.core.types import Confidential
from dpppsynth.ledger import Ledger
from dpppsynth.spatial.patterns import PointPattern

KNOWN = [case for name in registry.names() for case in examples(name) if not case.example.levels]
# By name, as plans take seconds to make; the first test below compares the plans.
ADDED = {"laplace-cells", "laplace-tents", "bounded-cells", "lgcp-tents", "lgcp-cells", "lgcp-field", "marked-tents"}
# One case of each mechanism, relation and marks apart: what is added up depends on nothing else.
EACH = list({(case.mechanism, type(case.window)): case for case in KNOWN if case.mechanism in ADDED}.values())
WHOLE = list({case.mechanism: case for case in KNOWN if case.mechanism not in ADDED}.values())
N = 300
PATTERN = points(3, N, SQUARE)
PLAN = LaplaceSynthesizer(1.0, alpha=20.0, spacing=125.0, postprocess="plain").plan(SQUARE, n=N)


def pieces(pattern, k=4):
    """Parts of a pattern of very different sizes, out of order, with their marks."""
    order = np.random.default_rng(1).permutation(len(pattern))
    for chosen in np.split(order, [1, 2, len(pattern) // 3][: k - 1]):
        marks = {name: values[chosen] for name, values in (pattern.marks or {}).items()}
        yield PointPattern.at(pattern.positions[chosen], pattern.domain, marks)


def numbers(release):
    return release.statistic.lattice.tolist()


class TestSums:
    def test_the_mechanisms_that_add_up(self):
        """Not where points of one person may stand in several batches, nor where noise comes before the sum."""
        assert {case.mechanism for case in [*EACH, *WHOLE] if case.known_plan.statistic.additive} == ADDED

    @pytest.mark.parametrize("case", EACH, ids=str)
    def test_parts_add_up_to_the_whole(self, case):
        plan, pattern = case.known_plan, case.patterns()[0]
        whole = plan.partial(pattern)
        parts = [plan.partial(piece) for piece in pieces(pattern)]
        found = parts[3] + parts[0] + (parts[2] + parts[1])
        assert found.numbers.tolist() == whole.numbers.tolist()
        assert found.n == whole.n == len(pattern)
        assert plan.partial(pieces(pattern)).numbers.tolist() == whole.numbers.tolist()

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("case", EACH, ids=str)
    def test_the_release_is_that_of_all_points(self, case):
        with chance_for_nuts(), one_prior():
            plan, pattern = case.known_plan, case.patterns()[0]
            release, whole = plan.finish(map(plan.partial, pieces(pattern)), 5), plan.release(pattern, 5)
        assert numbers(release) == numbers(whole)
        assert release.certificate_dict() == whole.certificate_dict()

    def test_heat_maps_of_one_point_a_person(self):
        plan = HeatmapSynthesizer(1.0, shape=(16, 16), user=None).plan(SQUARE, expected_n=N)
        release = plan.finish(map(plan.partial, pieces(PATTERN)), 5)
        assert numbers(release) == numbers(plan.release(PATTERN, 5))

    def test_other_processes_add_the_same(self):
        plan = pickle.loads(pickle.dumps(PLAN))
        parts = [pickle.loads(pickle.dumps(plan.partial(piece))) for piece in pieces(PATTERN)]
        assert numbers(PLAN.finish(parts, 5)) == numbers(PLAN.release(PATTERN, 5))


class TestRefusals:
    @pytest.mark.parametrize("case", WHOLE, ids=str)
    def test_what_is_no_sum_over_points(self, case):
        with pytest.raises(InputError, match="more than a sum over points"):
            case.known_plan.partial(case.patterns()[0])
        with pytest.raises(InputError, match="more than a sum over points"):
            case.known_plan.finish([PLAN.partial(PATTERN)])

    def test_other_plans(self):
        other = LaplaceSynthesizer(1.0, alpha=21.0, spacing=125.0, postprocess="plain").plan(SQUARE, n=N)
        with pytest.raises(InputError, match="of another plan"):
            other.finish([PLAN.partial(PATTERN)])
        with pytest.raises(InputError, match="of different plans"):
            PLAN.partial(PATTERN) + other.partial(PATTERN)

    def test_another_number_of_points(self):
        with pytest.raises(InputError, match="another number of points") as caught:
            PLAN.finish([PLAN.partial(PATTERN), PLAN.partial(next(pieces(PATTERN)))])
        assert not any(sign.isdigit() for sign in str(caught.value))

    def test_a_secret_number_needs_no_match(self):
        settings = LaplaceSynthesizer(1.0, relation=AddRemove(), spacing=125.0, postprocess="plain")
        plan = settings.plan(SQUARE, expected_n=100)
        assert numbers(plan.finish([plan.partial(PATTERN)], 1)) == numbers(plan.release(PATTERN, 1))

    def test_a_sum_that_is_there_already(self):
        """Nothing else would tell where n is secret, and one person would count twice."""
        settings = LaplaceSynthesizer(1.0, relation=AddRemove(), spacing=125.0, postprocess="plain")
        plan = settings.plan(SQUARE, expected_n=100)
        one, other = (plan.partial(each) for each in (PATTERN, next(pieces(PATTERN))))
        copied = pickle.loads(pickle.dumps(one))
        for twice in ([one, one], [one, copied], [one + other, one], [one, other + one]):
            with pytest.raises(InputError, match="would count twice") as caught:
                plan.finish(twice)
            assert not any(sign.isdigit() for sign in str(caught.value))

    def test_too_many_points_for_whole_numbers_of_64_bits(self):
        many = partial_sums.Partial(PLAN.partial(PATTERN).numbers, partial_sums.MOST - N + 1, PLAN.fingerprint)
        with pytest.raises(InputError, match="points can be added up"):
            many + PLAN.partial(PATTERN)

    def test_patterns_that_do_not_fit(self):
        marked = PointPattern(PATTERN.xy, SQUARE, {"age": np.arange(N)})
        with pytest.raises(InputError, match="marks are not protected"):
            PLAN.partial(iter([PATTERN, marked]))

    @pytest.mark.parametrize("bad", [3, [3], None, [PATTERN.xy]])
    def test_other_things(self, bad):
        with pytest.raises(InputError, match="points"):
            PLAN.partial(bad)
        with pytest.raises(InputError, match="partials"):
            PLAN.finish(bad)

    def test_no_points(self):
        with pytest.raises(InputError, match="at least one point"):
            PLAN.finish([])


class TestSecrecy:
    def test_shows_nothing(self):
        found = PLAN.partial(PATTERN)
        assert repr(found) == str(found) == "Partial(confidential)"
        assert isinstance(found, Confidential)

    def test_the_ledger_comes_before_the_points(self, tmp_path):
        ledger, seen = Ledger.create(tmp_path / "ledger.json", epsilon=0.5, delta=0.0, alpha=20.0), []

        def read():
            seen.append(1)
            yield PATTERN

        with pytest.raises(BudgetError):
            PLAN.finish(map(PLAN.partial, read()), ledger=ledger)
        assert not seen

    def test_a_ledger_counts_it(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.json", epsilon=1.5, delta=0.0, alpha=20.0)
        release = PLAN.finish(map(PLAN.partial, pieces(PATTERN)), ledger=ledger)
        assert release.entry
        assert ledger.spent == pytest.approx(PLAN.guarantee.epsilon())

    def test_plans_for_other_numbers_differ(self):
        """Two plans for different n are different plans, even where their meshes are the same."""
        settings = LaplaceSynthesizer(1.0, alpha=20.0, spacing=125.0, postprocess="plain")
        one, other = (settings.plan(SQUARE, n=n) for n in (N, N + 1))
        assert one.fingerprint != other.fingerprint

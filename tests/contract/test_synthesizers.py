"""Synthesizers: what they promise before the data, what they refuse, and that nothing is inferred from the points."""

import dataclasses
import math
import re

import numpy as np
import pytest
import shapely
from support.seams import randomise_by, touched

from dpppsynth.core.errors import DpppsynthError, InputError
from dpppsynth.models import regular_squares, regular_triangulation
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne
from dpppsynth.release import CoxRelease
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.domains import canonical_json as canonical
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import LaplaceSynthesizer, LGCPSynthesizer

WINDOW = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
OTHER = Window.rectangle(0, 0, 1000, 1001, "EPSG:27700")
RING = Window.polygon(shapely.Point(500, 500).buffer(400).difference(shapely.Point(500, 500).buffer(100)))
N = 400


def pattern(seed=1, n=N, window=WINDOW):
    points = np.random.default_rng(seed).uniform(0, 1000, (8 * n, 2))
    return PointPattern(points[window.contains(points)][:n], window)


def size(synthesizer, n=N):
    return {"n": n} if synthesizer.neighbouring().n_is_public else {"expected_n": float(n)}


def guess(synthesizer, n=N):
    return {} if synthesizer.neighbouring().n_is_public else {"expected_n": float(n)}


SYNTHESIZERS = [
    LaplaceSynthesizer(1.0, postprocess="plain"),
    LaplaceSynthesizer(0.5, alpha=25.0, postprocess="plain"),
    LaplaceSynthesizer(1.0, alpha=25.0, basis="tents", postprocess="plain"),
    LaplaceSynthesizer(1.0, relation=AddRemove(), basis="tents", postprocess="plain"),
    LaplaceSynthesizer(2.0, relation=AddRemove(3), spacing=250.0, postprocess="plain"),
    LGCPSynthesizer(1.0, alpha=25.0, inference="laplace", length_scale=400.0),
    LGCPSynthesizer(1.0, relation=AddRemove(), inference="laplace", length_scale=400.0),
]


class TestPromise:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("synthesizer", SYNTHESIZERS, ids=repr)
    @pytest.mark.parametrize("window", [WINDOW, RING], ids=["square", "ring"])
    def test_check_is_what_the_plan_and_the_release_guarantee(self, synthesizer, window):
        check = synthesizer.check(window, **size(synthesizer))
        plan = synthesizer.plan(window, **size(synthesizer))
        release = synthesizer.release(pattern(window=window), rng=1, **guess(synthesizer))
        assert check == plan.guarantee == release.guarantee
        assert check.to_dict() == release.guarantee.to_dict()
        assert check.relation == synthesizer.neighbouring()
        assert isinstance(release, CoxRelease)
        assert release.mechanism == plan.mechanism
        # Never more than asked for, and no budget left lying around.
        assert synthesizer.epsilon * (1 - 1e-12) <= check.epsilon() <= synthesizer.epsilon

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("synthesizer", SYNTHESIZERS, ids=repr)
    def test_plan_releases_more_than_one_pattern(self, synthesizer):
        plan = synthesizer.plan(WINDOW, **size(synthesizer))
        one, other = (plan.release(pattern(seed), rng=1) for seed in (1, 2))
        assert one.guarantee == other.guarantee
        assert (one.statistic.lattice != other.statistic.lattice).any()

    def test_default_relation(self):
        assert LaplaceSynthesizer(1.0).neighbouring() == ReplaceOne()
        assert LaplaceSynthesizer(1.0, alpha=25).neighbouring() == AlphaNeighbours(25.0)
        assert LGCPSynthesizer(1.0, alpha=25.0).neighbouring() == AlphaNeighbours(25.0)
        assert LGCPSynthesizer(1.0, relation=AddRemove(2)).neighbouring() == AddRemove(2)
        both = AlphaNeighbours(25.0, max_points_per_person=3)
        assert LGCPSynthesizer(1.0, alpha=25.0, relation=both).neighbouring() == both

    @pytest.mark.parametrize("basis", ["cells", "tents"])
    def test_spacing_and_mesh_are_taken_at_their_word(self, basis):
        plan = LaplaceSynthesizer(1.0, basis=basis, spacing=125.0, postprocess="plain").plan(WINDOW, n=N)
        assert plan.statistic.mesh.recipe["shape"] == [9, 9]
        assert plan.statistic.mesh.kind == ("square" if basis == "cells" else "triangle")
        mesh = regular_squares(WINDOW, shape=(4, 5))
        plan = LGCPSynthesizer(1.0, alpha=25.0, mesh=mesh, inference="laplace").plan(WINDOW, n=N)
        assert plan.statistic.mesh.recipe == mesh.recipe
        assert plan.statistic.mesh.recipe["kind"] == "square"


class TestNothingIsInferredFromThePoints:
    @pytest.mark.parametrize("synthesizer", SYNTHESIZERS, ids=repr)
    def test_public_parameters_ignore_the_points(self, synthesizer):
        """Spread out, and all in one spot: everything but the statistic is equal to the byte."""
        spot = PointPattern(np.full((N, 2), 7.0), WINDOW)
        releases = [synthesizer.release(p, rng=1, **guess(synthesizer)) for p in (pattern(), spot)]
        public = [
            canonical([r.statistic.definition.parameters(), r.estimator.to_dict(), r.guarantee.to_dict(), repr(r)])
            for r in releases
        ]
        assert public[0] == public[1]
        assert (releases[0].statistic.lattice != releases[1].statistic.lattice).any()

    @pytest.mark.parametrize("synthesizer", [s for s in SYNTHESIZERS if guess(s)], ids=repr)
    def test_a_secret_number_of_points_enters_nowhere(self, synthesizer):
        releases = [synthesizer.release(pattern(n=n), rng=1, expected_n=300.0) for n in (50, 1000)]
        public = [canonical([r.statistic.definition.parameters(), r.guarantee.to_dict()]) for r in releases]
        assert public[0] == public[1]
        assert releases[0].statistic.definition.n is None

    def test_numbers_of_numpy_are_written_as_plain_ones(self, tmp_path):
        for relation, public in (
            (ReplaceOne(np.int64(2)), {"n": np.int64(N)}),
            (AddRemove(), {"expected_n": np.int64(N)}),
        ):
            synthesizer = LaplaceSynthesizer(np.float64(1.0), relation=relation, postprocess="plain")
            plan = synthesizer.plan(WINDOW, **public)
            plan.release(pattern(), rng=1).save(tmp_path / relation.name)


BAD_LAPLACE = [
    ({"epsilon": 0}, r"^epsilon: must be a positive finite number, got 0\."),
    ({"epsilon": -1}, r"^epsilon: must be a positive finite number, got -1\."),
    ({"epsilon": math.nan}, r"^epsilon: must be a positive finite number, got nan\."),
    ({"epsilon": math.inf}, r"^epsilon: must be a positive finite number, got inf\."),
    ({"epsilon": "a"}, r"^epsilon: must be a positive finite number, got 'a'\."),
    ({"epsilon": None}, r"^epsilon: must be a positive finite number, got None\."),
    ({"epsilon": True}, r"^epsilon: must be a positive finite number, got True\."),
    ({"alpha": 0}, r"^alpha: must be a positive finite number in the domain's unit of length, got 0;"),
    ({"alpha": -25}, r"^alpha: .*got -25;"),
    ({"alpha": "25 m"}, r"^alpha: .*got '25 m';"),
    ({"alpha": math.nan}, r"^alpha: .*got nan;"),
    (
        {"alpha": 25.0, "relation": ReplaceOne()},
        r"^relation: it contradicts alpha; give `alpha=` or `relation=`, not both",
    ),
    ({"alpha": 25.0, "relation": AlphaNeighbours(50)}, r"^relation: it contradicts alpha"),
    ({"alpha": 25.0, "relation": AddRemove()}, r"^relation: it contradicts alpha"),
    ({"relation": "replace-one"}, r"^relation: .*got 'replace-one'"),
    ({"relation": ReplaceOne}, r"^relation: .*got <class"),
    ({"relation": 25.0}, r"^relation: .*got 25\.0"),
    ({"basis": "hexagons"}, r"^basis: expected one of 'cells', 'tents', got 'hexagons'\."),
    ({"basis": None}, r"^basis: expected one of 'cells', 'tents', got None\."),
    ({"spacing": 0}, r"^spacing: must be a positive finite number, got 0\."),
    ({"spacing": "wide"}, r"^spacing: must be a positive finite number, got 'wide'\."),
    ({"postprocess": "round"}, r"^postprocess: expected one of 'field', 'plain', 'clip', 'keep-n', got 'round'\."),
    ({"postprocess": "keep-n", "relation": AddRemove()}, r"^postprocess: 'keep-n' needs a public n, .*use 'clip'\."),
]
BAD_LGCP = [
    *[case for case in BAD_LAPLACE if not {"basis", "spacing", "postprocess"} & set(case[0])],
    (
        {"alpha": None},
        r"^alpha: give the privacy radius, for instance alpha=25\.0, or a relation such as ReplaceOne\(\)",
    ),
    ({"length_scale": 0}, r"^length_scale: must be a positive finite number, got 0\."),
    ({"length_scale": "long"}, r"^length_scale: must be a positive finite number, got 'long'\."),
    (
        {"mechanism": "fields"},
        r"^mechanism: expected one of 'auto', 'tents', 'cells', 'moved', 'field', .*'kim-lim-3\.9', got 'fields'\.",
    ),
    ({"mechanism": None}, r"^mechanism: expected .*, got None\."),
    ({"mechanism": ["tents"]}, r"^mechanism: expected .*, got \['tents'\]\."),
    ({"sampler": "gibbs"}, r"^sampler: expected one of 'auto', 'exact', 'nuts', 'proximal', got 'gibbs'\."),
    ({"sigma": -1.0}, r"^sigma: must be a positive finite number, got -1\.0\."),
    (
        {"delta": 1e-6},
        r"^delta: mechanism 'auto' is purely epsilon-private and spends no delta, got 1e-06; leave delta= out\.",
    ),
    ({"delta": 1.0}, r"^delta: must lie in \[0, 1\), got 1\.0; 1e-6 is a common choice\."),
    ({"delta": -1e-6}, r"^delta: must lie in \[0, 1\), got -1e-06"),
    ({"delta": math.nan}, r"^delta: must lie in \[0, 1\), got nan"),
    ({"delta": "small"}, r"^delta: must lie in \[0, 1\), got 'small'"),
    ({"inference": "magic"}, r"^inference: expected one of 'auto', 'nuts', 'laplace', got 'magic'\."),
    ({"engine": "stan"}, r"^engine: expected one of 'nutpie', 'pymc', got 'stan'\."),
    ({"offset": 3}, r"^offset: "),
]


class TestRefusedAtConstruction:
    @pytest.mark.parametrize(("arguments", "message"), BAD_LAPLACE, ids=lambda v: str(v) if isinstance(v, dict) else "")
    def test_laplace(self, arguments, message):
        with pytest.raises(InputError, match=message):
            LaplaceSynthesizer(**{"epsilon": 1.0} | arguments)

    @pytest.mark.parametrize(("arguments", "message"), BAD_LGCP, ids=lambda v: str(v) if isinstance(v, dict) else "")
    def test_lgcp(self, arguments, message):
        defaults = {"epsilon": 1.0} | ({} if "relation" in arguments and "alpha" not in arguments else {"alpha": 25.0})
        with pytest.raises(InputError, match=message):
            LGCPSynthesizer(**defaults | arguments)

    def test_settings_cannot_be_changed_afterwards(self):
        for synthesizer in (LaplaceSynthesizer(1.0, postprocess="plain"), LGCPSynthesizer(1.0, alpha=25.0)):
            with pytest.raises(dataclasses.FrozenInstanceError):
                synthesizer.epsilon = 100.0


LAPLACE, LGCP = LaplaceSynthesizer(1.0, postprocess="plain"), LGCPSynthesizer(1.0, alpha=25.0)
SECRET, SECRET_LGCP = (
    LaplaceSynthesizer(1.0, relation=AddRemove(), postprocess="plain"),
    LGCPSynthesizer(1.0, relation=AddRemove()),
)


class TestRefusedByCheck:
    @pytest.mark.parametrize("synthesizer", [LAPLACE, LGCP], ids=["laplace", "lgcp"])
    @pytest.mark.parametrize("n", [None, 0, -3, 1.5, True, math.nan, math.inf, "many", [1]], ids=repr)
    def test_n(self, synthesizer, n):
        with pytest.raises(InputError, match=r"^n: the public number of points is needed, a whole number of") as caught:
            synthesizer.check(WINDOW, n=n)
        assert f"got {n!r}" in str(caught.value)

    @pytest.mark.parametrize("synthesizer", [LAPLACE, LGCP], ids=["laplace", "lgcp"])
    def test_expected_n_where_n_is_public(self, synthesizer):
        for arguments in ({"expected_n": 400.0}, {"n": N, "expected_n": 400.0}):
            with pytest.raises(InputError, match=r"^expected_n: n is public under this relation; pass n= instead\."):
                synthesizer.check(WINDOW, **arguments)
        with pytest.raises(InputError, match=r"^expected_n: n is public"):
            synthesizer.release(pattern(), expected_n=400.0)

    @pytest.mark.parametrize("synthesizer", [SECRET, SECRET_LGCP], ids=["laplace", "lgcp"])
    def test_n_where_it_is_secret(self, synthesizer):
        for arguments in ({"n": N}, {"n": N, "expected_n": 400.0}):
            with pytest.raises(
                InputError, match=r"^n: it is secret under add/remove; pass a public guess as expected_n="
            ) as e:
                synthesizer.check(WINDOW, **arguments)
            assert str(N) not in str(e.value)

    @pytest.mark.parametrize("synthesizer", [SECRET, SECRET_LGCP], ids=["laplace", "lgcp"])
    def test_expected_n(self, synthesizer):
        with pytest.raises(
            InputError, match=r"^expected_n: a public guess of the number of points is needed under add/"
        ):
            synthesizer.check(WINDOW)
        with pytest.raises(InputError, match=r"^expected_n: a public guess"):
            synthesizer.release(pattern())
        for bad in (0, -1.0, math.nan, math.inf, "many", True):
            with pytest.raises(InputError, match=r"^expected_n: must be a positive finite number, got") as caught:
                synthesizer.check(WINDOW, expected_n=bad)
            assert repr(bad) in str(caught.value)

    @pytest.mark.parametrize("domain", [None, "window", (0, 0, 1, 1), shapely.box(0, 0, 1, 1)], ids=repr)
    @pytest.mark.parametrize("synthesizer", [LAPLACE, LGCP], ids=["laplace", "lgcp"])
    def test_domain(self, synthesizer, domain):
        with pytest.raises(InputError, match=r"^domain: "):
            synthesizer.check(domain, n=N)

    def test_mesh(self):
        with pytest.raises(InputError, match=r"^mesh: it covers another domain; build it on the pattern's"):
            LGCPSynthesizer(1.0, alpha=25.0, mesh=regular_triangulation(OTHER, shape=(5, 5))).check(WINDOW, n=N)
        with pytest.raises(InputError, match=r"^mesh: "):
            LGCPSynthesizer(1.0, alpha=25.0, mesh="fine").check(WINDOW, n=N)


class TestRefusedWithTheData:
    """These messages may be seen by others: nothing of the pattern stands in them."""

    def refused(self, message, call):
        with pytest.raises(DpppsynthError, match=message) as caught:
            call()
        assert not re.search(r"\d", str(caught.value))

    @pytest.mark.parametrize("synthesizer", [LAPLACE, LGCP], ids=["laplace", "lgcp"])
    def test_pattern(self, synthesizer):
        plan = synthesizer.plan(WINDOW, n=N)
        marked = PointPattern(pattern().xy, WINDOW, {"age": np.arange(N)})
        for release in (synthesizer.release, plan.release):
            self.refused(
                r"^pattern: marks are not protected by this mechanism; pass `pattern\.unmarked\(\)`",
                lambda release=release: release(marked),
            )
            for wrong in (None, pattern().xy, "deaths.csv"):
                self.refused(r"^pattern: ", lambda release=release, wrong=wrong: release(wrong))
        self.refused(
            r"^pattern: its domain differs from the one .*plan again", lambda: plan.release(pattern(window=OTHER))
        )
        self.refused(r"^n: the release was planned for another number of points", lambda: plan.release(pattern(n=399)))

    def test_other_domains(self):
        with pytest.raises(InputError, match=r"^domain: must be a Window.* or a LinearNetwork"):
            LAPLACE.check("Soho", n=10)
        self.refused(r"^pattern: ", lambda: LAPLACE.release(np.zeros((3, 2))))

    def test_nothing_is_spent_on_a_refusal(self, monkeypatch):
        plan = LAPLACE.plan(WINDOW, n=N)
        randomise_by(monkeypatch, touched)
        with pytest.raises(InputError):
            plan.release(pattern(n=399))


class TestSeeds:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("synthesizer", SYNTHESIZERS, ids=repr)
    def test_decide_everything(self, synthesizer):
        first, again, other = (
            synthesizer.release(pattern(), rng=seed, **guess(synthesizer)) for seed in (1, np.random.default_rng(1), 2)
        )
        np.testing.assert_array_equal(first.statistic.lattice, again.statistic.lattice)
        assert (first.statistic.lattice != other.statistic.lattice).any()
        assert first.seeded
        assert "not private" in repr(first)
        assert first.statistic.noise == "seeded-discrete-laplace"

    def test_without_one_noise_is_secret(self):
        first, second = (LAPLACE.release(pattern()) for _ in range(2))
        assert not first.seeded
        assert "not private" not in repr(first)
        assert (first.statistic.lattice != second.statistic.lattice).any()

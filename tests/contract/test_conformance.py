"""Conformance: what every registered mechanism must keep, whatever it does inside.

The cases are the examples on the mechanisms' records; no mechanism is known here by name. The checks themselves are put
to the test with planted leaks at the end of each class.
"""

import contextlib
import functools
import json
import logging
import math
import re
import sys
import warnings
from collections import Counter
from dataclasses import fields, replace

import numpy as np
import pytest
import shapely
from support.cases import SQUARE, Case, by_year, examples, parts, plans, points, refusals, released, save
from support.reachable import sensitive
from support.seams import blank, chance_for_nuts, few_simulations, one_prior, randomised_by, recorded
from support.traces import traces

from dpppsynth.contract import registry
from dpppsynth.contract.additive_noise import lattice_masses
from dpppsynth.contract.examples import EXPECTED, RELATIONS, N
from dpppsynth.core.errors import DpppsynthError, InputError
from dpppsynth.privacy import verify
from dpppsynth.privacy.noise import OpenDPGaussian, OpenDPLaplace, TruncatedNoise
from dpppsynth.privacy.relations import MovedPoint
from dpppsynth.release import load_release
from dpppsynth.release.certificate import statement_hash
from dpppsynth.release.rederive import COMMON
from dpppsynth.release.release import Release
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

EVERY = [case for name in registry.names() for case in examples(name)]
FAST = [case for case in EVERY if not case.example.slow]
REFUSED = list(refusals())
# For the checks of the checks: noised numbers of a pattern whose size is secret, and one of each mechanism.
TYPICAL = next(case for case in FAST if case.hides_n and not case.example.marks)
ONE_OF_EACH = list({case.mechanism: case for case in FAST}.values())


def over(cases, turn=None):
    """Run a test over cases; one process runs all tests of a case (`conftest`), and makes its plan and release once.

    Costly tests take turns, 0 to 2, over the further examples of a mechanism: each has every third one, and from
    mechanism to mechanism another one, so that every relation and every domain has its turn in every test.
    """
    if turn is not None:
        seen = Counter()
        cases = [case for case in cases if _in_turn(seen, case, turn)]
    marked = [pytest.param(case, marks=[pytest.mark.slow] * case.example.slow) for case in cases]
    return pytest.mark.parametrize("case", marked, ids=str)


def _in_turn(seen, case, turn):
    seen[case.mechanism] += 1
    later = seen[case.mechanism] + list(registry.names()).index(case.kind)
    return seen[case.mechanism] == 1 or later % 3 == turn


@functools.cache
def seeded_release(case):
    return case.release(case.patterns()[0], 5)


@pytest.fixture(scope="module")
def seeded_folder(tmp_path_factory):
    """The seeded release of a case, saved with one synthetic pattern; not to be changed."""
    return functools.cache(lambda case: save(seeded_release(case), tmp_path_factory.mktemp("seeded") / "public", 9))


@pytest.fixture(autouse=True, scope="module")
def simulations_are_few():
    """Clusters are inferred from few simulations, fields behind marks by one prior."""
    with few_simulations(), one_prior():
        yield


@pytest.fixture(autouse=True)
def nuts_is_quick(request):
    """NUTS is replaced by chance, but in the slow cases: nothing else depends on its law."""
    case = getattr(request.node, "callspec", None)
    case = None if case is None else case.params.get("case")
    with contextlib.nullcontext() if case is not None and case.example.slow else chance_for_nuts():
        yield


@pytest.mark.parametrize("name", registry.names())
def test_records_are_whole(name):
    """One without examples, or without anything else, is no record; an empty list of examples is none either."""
    record = registry.mechanism(name)
    known = {each.name: getattr(record, each.name) for each in fields(record)}
    assert record.name == name
    for missing in known:
        with pytest.raises(TypeError, match=missing):
            type(record)(**{key: value for key, value in known.items() if key != missing})
    assert examples(name)


@pytest.mark.parametrize("name", registry.names())
def test_examples_cover_what_a_mechanism_promises(name):
    """Every relation between patterns is run or refused; a relation of its own is run."""
    seen = {(case.synthesizer.neighbouring(), case.window) for case in examples(name)}
    refused = {(each.relation, each.domain) for mechanism, each in REFUSED if mechanism == name}
    assert not seen & refused
    relations = {without_marks(relation) for relation, _ in seen}
    if registry.mechanism(name).statistic.capped:
        assert relations | {relation for relation, _ in refused} == set(RELATIONS) | relations
    else:
        # One relation, of persons with one point each, and of those that a mark tells.
        assert len({type(relation) for relation in relations}) == 1
        assert not relations & set(RELATIONS)


def without_marks(relation):
    """The relation with nothing said of times and types."""
    return relation.without_marks if isinstance(relation, MovedPoint) else relation


@pytest.mark.parametrize(
    ("name", "refusal"), REFUSED, ids=[f"{name}, {each.relation}, {each.domain}" for name, each in REFUSED]
)
def test_what_no_theorem_covers_is_refused_before_the_data(name, refusal):
    size = {"n": N} if refusal.relation.n_is_public else {"expected_n": EXPECTED}
    with pytest.raises(InputError, match=refusal.rule):
        refusal.settings().plan(refusal.domain, **size)


@pytest.mark.exhaustive
@over([case for case in FAST if not case.example.levels])
def test_certificates_name_the_mechanism(case):
    assert case.known_plan.mechanism == case.mechanism


@pytest.mark.exhaustive
@over([case for case in FAST if not case.example.levels])
def test_every_parameter_has_a_form(case):
    """`verify` refuses a certificate with a parameter that the plan declares no form of."""
    plan = case.known_plan.statistic
    stated, declared = plan.parameters().keys(), {*COMMON, *plan.form}
    assert declared - plan.optional <= stated <= declared


@over([case for case in FAST if getattr(case.synthesizer, "delta", None) and not case.example.levels])
def test_a_delta_that_promises_nothing_is_refused_before_the_data(case):
    """Publishing one random record whole satisfies delta = 1/n."""
    settings = case.synthesizer
    strict = {"allow_large_delta": False} if hasattr(settings, "allow_large_delta") else {}
    with pytest.raises(InputError, match=r"\bdelta\b"):
        replace(settings, delta=1 / min(N, EXPECTED), **strict).plan(case.window, **case.public)


# --- 1. Non-interference: with public values in the place of exact ones, no trace of the pattern is left ------------


class Recorder(logging.Handler):
    """Every record of every logger."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.lines = []

    def emit(self, record):
        self.lines.append(f"{record.name} {record.levelname} {record.getMessage()}")


def observe(case, pattern, folder, capfd):
    """Everything that anybody could see of a run: result, files, messages."""
    capfd.readouterr()
    messages, recorder = [], Recorder()
    root = logging.getLogger()
    level = root.level
    root.addHandler(recorder)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            release = case.release(pattern, 5, progress=messages.append)
            save(release, folder, 6, patterns=2)
    finally:
        root.removeHandler(recorder)
        root.setLevel(level)
    own = [line for line in recorder.lines if not line.startswith(("numba", "pytensor", "asyncio", "matplotlib"))]
    return {
        "repr": [repr(release), *(repr(getattr(part, name, "")) for part in parts(release) for name in PUBLIC)],
        "plan": [repr(part.statistic.definition) for part in parts(release)],
        "guarantee": str(release.guarantee),
        "values": [
            part.intensity(points(3, 50, case.window).xy).tolist()
            for part in parts(release)
            if hasattr(part, "intensity")
        ],
        "names": [p.name for p in sorted(folder.iterdir())],
        "files": {p.name: p.read_bytes() for p in sorted(folder.iterdir())},
        "progress": messages,
        "warnings": [str(w.message) for w in warned],
        "log": own,
        "output": tuple(capfd.readouterr()),
    }


# What a result shows of itself, beside its `repr`.
PUBLIC = ("statistic", "estimator", "intensity", "patterns")


def forgetting(plan, draw, exact):
    """Draw from something public in the place of what is exact.

    Attempts and diagnostics, which must stay with the custodian, still tell of the pattern.
    """
    outcome = draw(blank(exact, lambda pattern: points(3, len(pattern), pattern.domain)))
    told = {"attempts": functools.partial(attempts, exact), "diagnostics": functools.partial(diagnostics, exact)}
    found = {name: told[name](getattr(outcome, name)) for name in told if name in named(outcome)}
    return outcome._replace(**found) if found else outcome


def named(outcome):
    """Names of what is drawn, where it is more than one thing."""
    return getattr(outcome, "_fields", ())


def attempts(exact, known):
    """A number that differs between patterns."""
    return known and 1 + int(1000 * exact.max()) % 1009


def diagnostics(exact, known):
    return known and replace(known, ess=400.0 + attempts(exact, 1))


def differences(case, tmp_path, capfd):
    # Inference by NUTS sees what inference by Laplace sees; the other classes run it.
    with chance_for_nuts(), randomised_by(forgetting):
        one, other = (observe(case, p, tmp_path / str(i) / "public", capfd) for i, p in enumerate(case.patterns()))
        if one != other:  # some things are only said the first time, whatever the pattern
            one = observe(case, case.patterns()[0], tmp_path / "again" / "public", capfd)
    return {key for key in one if one[key] != other[key]}


class TestNonInterference:
    @pytest.mark.exhaustive
    @over(EVERY, turn=0)
    def test_two_patterns_give_one_result(self, case, tmp_path, capfd):
        assert differences(case, tmp_path, capfd) == set()

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        ("name", "where"),
        [
            ("statistic", "values"),
            ("noise name", "files"),
            ("plan", "files"),
            ("log", "log"),
            ("warning", "warnings"),
            ("print", "output"),
        ],
    )
    def test_planted_leaks_are_seen(self, name, where, tmp_path, capfd):
        assert where in differences(Leaky(name), tmp_path, capfd)

    @pytest.mark.parametrize(("kind", "where"), [("Chatty", "progress"), ("Drifting", "files")])
    def test_planted_leaks_around_the_statistic_are_seen(self, kind, where, tmp_path, capfd):
        assert where in differences({"Chatty": Chatty, "Drifting": Drifting}[kind](), tmp_path, capfd)

    @pytest.mark.slow
    def test_what_stands_in_for_a_draw_tells_attempts_and_diagnostics(self):
        """So that a mechanism which publishes them is found."""
        names = set()

        def noting(plan, draw, exact):
            outcome = forgetting(plan, draw, exact)
            names.update(named(outcome))
            return outcome

        with randomised_by(noting):
            for case in ONE_OF_EACH:
                plans(case.known_plan)[0].measure(case.patterns()[0], 5) if not case.example.levels else None
        assert names >= {"attempts", "diagnostics"}


class Planted(Case):
    """The typical case with a fault."""

    def __init__(self):
        super().__init__(TYPICAL.kind, TYPICAL.example)


class Leaky(Planted):
    """The measurement tells the number of points, or where they are, beside its randomness."""

    def __init__(self, where):
        super().__init__()
        self.where = where

    def release(self, pattern, rng=None, **options):
        plan, where = self.plan(), self.where
        honest = type(plan.statistic)

        class Leaking(honest):
            def measure(self, pattern, rng=None):
                return leaked(where, super().measure(pattern, rng), pattern)

        statistic = object.__new__(Leaking)
        statistic.__dict__.update(plan.statistic.__dict__)
        return replace(plan, statistic=statistic).release(pattern, rng, **options)


def leaked(where, measured, pattern):
    secret = len(pattern)
    match where:
        case "statistic":
            return replace(measured, lattice=measured.lattice + secret)
        case "noise name":
            return replace(measured, noise=f"{measured.noise} {secret}")
        case "plan":
            return replace(measured, definition=replace(TYPICAL.known_plan.statistic, expected_n=float(secret)))
        case "log":
            logging.getLogger("dpppsynth").debug("%s points", secret)
        case "warning":
            warnings.warn(f"{pattern.xy[0]}", stacklevel=1)
        case "print":
            sys.stderr.write(f"{secret}\n")
    return measured


class Chatty(Planted):
    """Tells how many points it sees."""

    def release(self, pattern, rng=None, *, progress=lambda text: None, **options):
        progress(f"measuring {len(pattern)} points")
        return super().release(pattern, rng, **options)


class Drifting(Planted):
    """Draws released patterns with a generator that was advanced once per point."""

    def release(self, pattern, rng=None, **options):
        release, drifted = super().release(pattern, rng, **options), np.random.default_rng(5)
        drifted.random(len(pattern))
        save = type(release).save
        object.__setattr__(
            release, "save", lambda path, *, patterns, rng: save(release, path, patterns=patterns, rng=drifted)
        )
        return release


# --- 2. Nothing sensitive can be reached from a result ---------------------------------------------------------------


class TestReachable:
    @pytest.mark.exhaustive
    @over(EVERY, turn=1)
    def test_nothing_sensitive(self, case):
        pattern = case.patterns()[0]
        release = seeded_release(case)
        with contextlib.suppress(DpppsynthError, AttributeError):
            release.sample(1, rng=6)
        with contextlib.suppress(DpppsynthError, AttributeError):
            _ = release.posterior
        assert sensitive(case, pattern, release) == set()
        for part in parts(release):
            for synthetic in getattr(part, "patterns", []):
                assert not set(synthetic.xy.ravel().tolist()) & set(pattern.xy.ravel().tolist())

    def test_nor_with_secret_noise(self):
        pattern = TYPICAL.patterns()[0]
        assert sensitive(TYPICAL, pattern, TYPICAL.release(pattern)) == set()

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("case", ONE_OF_EACH, ids=str)
    def test_nor_from_a_plan_that_has_been_used(self, case):
        pattern, plan = case.patterns()[0], case.plan()
        plan.release(pattern)
        assert sensitive(case, pattern, plan) == set()

    @pytest.mark.parametrize(
        ("hide", "found"),
        [
            (lambda p, m: p, "a pattern"),
            (lambda p, m: p.xy[5:9].copy(), "an array of coordinates"),
            (lambda p, m: {"deep": [(p.xy[0, 0].item(), None)]}, "a coordinate"),
            (lambda p, m: p.xy.astype(np.float64).tobytes(), "bytes of coordinates"),
            (lambda p, m: shapely.points(p.xy[:3]), "a geometry"),
            (lambda p, m: lattice_masses(m, p.xy, 20) / 2.0**20, "exact masses"),
            (lambda p, m: lambda: p.xy, "a pattern"),
            (lambda p, m: np.concatenate([p.xy, p.xy])[::2][3:4], "an array of coordinates"),
        ],
        ids=["pattern", "rows", "number", "bytes", "geometries", "masses", "closure", "view"],
    )
    def test_planted_leaks_are_seen(self, hide, found):
        pattern = TYPICAL.patterns()[0]
        release = TYPICAL.release(pattern)
        mesh = release.statistic.definition.mesh
        mesh.__dict__["_cache"] = hide(pattern, mesh)
        assert found in sensitive(TYPICAL, pattern, release)


# --- 3. Words --------------------------------------------------------------------------------------------------------


class TestWords:
    @pytest.mark.exhaustive
    @over(EVERY, turn=1)
    def test_of_a_result_hold_public_numbers_alone(self, case):
        pattern = case.patterns()[0]
        release = seeded_release(case)
        words = [repr(getattr(part, name, "")) for part in parts(release) for name in PUBLIC]
        words += [repr(release), *(repr(part.statistic.definition) for part in parts(release))]
        words += [str(release.guarantee), repr(case.known_plan), repr(case.synthesizer)]
        text = " ".join(words)
        assert not re.search(rf"\b{N}\b", text) or not case.hides_n
        numbers = set(re.findall(r"\d+\.\d{3,}", text))
        assert not any(f"{c:.9f}".startswith(number) for c in pattern.xy.ravel() for number in numbers)

    @pytest.mark.exhaustive
    @over(EVERY)
    def test_of_errors_hold_no_number_of_the_pattern(self, case):
        plan, pattern = case.known_plan, points(4, 733, case.window)
        marked = PointPattern(pattern.xy, case.window, {"age": np.arange(733)})
        elsewhere = PointPattern(pattern.xy, Window.rectangle(0, 0, 1000, 1001, "EPSG:27700"))
        wrong = [marked, case.marked(elsewhere)] + ([] if case.hides_n and not case.example.marks else [pattern])
        if case.example.levels:
            wrong = [marked, pattern, by_year(elsewhere, 400), by_year(pattern, 733)]
        for bad in wrong:
            with pytest.raises(DpppsynthError) as caught:
                plan.release(bad)
            assert not re.search(r"\d", re.sub(r"202\d", "", str(caught.value)))
            assert caught.value.__cause__ is None


# --- 4. What was checked is what is verified -------------------------------------------------------------------------


class TestCertificate:
    @pytest.mark.exhaustive
    @over(EVERY, turn=2)
    def test_check_is_what_an_auditor_finds(self, case, tmp_path):
        check = case.check()
        # Certificates are written from public parameters; those of the seeded releases, drawn by NUTS, are read below.
        with chance_for_nuts():
            folder = save(case.release(case.patterns()[0]), tmp_path / "public", patterns=0)
        outcome = verify(folder)
        assert outcome.holds
        outcome.require()
        assert outcome.guarantee.to_dict() == check.to_dict()
        assert outcome.guarantee.epsilon() == check.epsilon() <= case.synthesizer.epsilon
        cert = json.loads((folder / "certificate.json").read_text())
        assert cert["mechanism"] == case.mechanism
        assert cert["releasable"]
        strata = [part["parameters"] for part in cert["parameters"].get("strata", [])] or [cert["parameters"]]
        assert [part["expected_n"] for part in strata] == [EXPECTED if case.hides_n else None] * len(strata)
        if case.hides_n:
            assert {part["n"] for part in strata} == {None}
        else:
            assert sum(part["n"] for part in strata) == N

    @pytest.mark.exhaustive
    @over(EVERY, turn=1)
    def test_a_seed_is_confessed(self, case, seeded_folder):
        release = seeded_release(case)
        assert release.seeded
        assert "not private" in repr(release)
        folder = seeded_folder(case)
        cert = json.loads((folder / "certificate.json").read_text())
        assert (cert["seeded"], cert["releasable"]) == (True, False)
        assert cert["warning"] == "seeded"
        assert [c.name for c in verify(folder).checks if not c.holds] == ["randomness"]
        again = load_release(folder)
        assert again.seeded
        assert statement_hash(again.certificate_dict()) == statement_hash(cert)

    @pytest.mark.exhaustive
    @over(FAST, turn=2)
    def test_two_private_releases_differ(self, case):
        """At most 70 % of the released numbers are alike, of a hundred at least (false alarms below 1e-6)."""
        plan, pattern = case.known_plan, case.patterns()[0]
        differ = np.empty(0, bool)
        while len(differ) < 100:
            if case.example.levels:
                one, other = (plan.release(pattern) for _ in range(2))
            else:
                one, other = (Release(case.mechanism, plan.statistic.measure(pattern)) for _ in range(2))
            assert not one.seeded
            size = min(len(released(one)), len(released(other)))
            assert size
            differ = np.append(differ, released(one)[:size] != released(other)[:size])
        assert differ.mean() > 0.3

    @pytest.mark.exhaustive
    @over(FAST)
    def test_noise_is_asked_for_as_promised(self, case):
        """The noise that meets the data is the one that the guarantee was computed from."""
        with recorded() as seen:
            if case.example.levels:
                case.known_plan.release(case.patterns()[0])
            else:
                case.known_plan.statistic.measure(case.patterns()[0])
        assert {id(plan) for plan, *_ in seen} == {id(plan) for plan in plans(case.known_plan)}
        for plan in plans(case.known_plan):
            noises = [getattr(draw, "__self__", None) for each, draw, _ in seen if each is plan]
            if "OpenDP" in plan.noise_name():
                assert {noise.name for noise in noises} == {plan.noise_name()}
            require_promised(plan, [noise for noise in noises if hasattr(noise, "add")])


def require_promised(plan, noises):
    """Losses of all noise that a measurement adds are those that its guarantee states."""
    guarantee = plan.guarantee
    laplace = [noise for noise in noises if type(noise) is OpenDPLaplace]
    if laplace:
        spent = math.fsum(noise.sensitivity / noise.scale for noise in laplace)
        # Sums of epsilons are rounded up.
        assert spent <= guarantee.epsilon() <= spent * (1 + 1e-15)
        assert spent <= math.fsum(noise.epsilon for noise in laplace) <= plan.epsilon * (1 + 1e-9)
    for noise in noises:
        match noise:
            case TruncatedNoise():
                profile = guarantee.profile
                assert (noise.noise.scale, noise.bound) == (profile.scale, profile.bound)
                assert sum(profile.shifts) == noise.noise.sensitivity
                assert noise.noise.sensitivity / noise.noise.scale <= noise.noise.epsilon == plan.epsilon
            case OpenDPGaussian():
                assert noise.sensitivity / noise.scale <= noise.mu * (1 + 1e-12) == guarantee.mu * (1 + 1e-12)
            case _:
                assert noise in laplace


# --- 5. Saved files --------------------------------------------------------------------------------------------------

SECRET_N = 1709


class TestFiles:
    @pytest.mark.exhaustive
    @over(EVERY, turn=1)
    def test_hold_no_trace_of_the_pattern(self, case, seeded_folder):
        """Seeded, so that a synthetic point which meets an original one by chance does so for good."""
        assert traces(seeded_folder(case), case.patterns()[0], n=False) == set()

    @pytest.mark.exhaustive
    @over((c for c in FAST if c.hides_n), turn=2)
    def test_hold_no_count_where_it_is_secret(self, case, tmp_path):
        pattern = points(5, SECRET_N, case.window)
        pattern = by_year(pattern, 400) if case.example.levels else case.marked(pattern)
        folder = save(case.release(pattern, 5), tmp_path / "public", 9, patterns=2)
        assert "the number of points" not in traces(folder, pattern, n=True)
        assert "the number of points in binary" not in traces(folder, pattern, n=True)

    @pytest.mark.parametrize(
        ("name", "write", "found"),
        [
            ("synthetic_009.geojson", lambda p: json.dumps({"xy": p.xy[:1].tolist()}), "coordinates as text"),
            ("notes.json", lambda p: json.dumps(np.round(p.xy[3], 3).tolist()), "coordinates as text"),
            ("cache.nc", lambda p: b"CDF" + p.xy[:2].astype(">f4").tobytes(), "coordinates in binary"),
            ("notes.json", lambda p: json.dumps({"total": float(len(p))}), "the number of points"),
            ("run-40.json", lambda p: "{}", "the number of points"),
            ("cache.nc", lambda p: np.int64(len(p)).tobytes(), "the number of points in binary"),
        ],
    )
    def test_planted_traces_are_seen(self, name, write, found, tmp_path):
        pattern = points(1, 40, SQUARE)
        content = write(pattern)
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        assert found in traces(tmp_path, pattern, n=True)

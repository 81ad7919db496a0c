"""Heat maps of point patterns: plan, release, certificate."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import shapely
from support.forgery import read, reseal

from dpppsynth import (
    AddRemove,
    AddRemovePerson,
    BudgetError,
    HeatmapSynthesizer,
    InputError,
    Ledger,
    LinearNetwork,
    PointPattern,
    ReplaceOne,
    Window,
    load_release,
)
from dpppsynth.core.errors import InformationWarning
from dpppsynth.mechanisms.heatmap.bound import (
    LATTICE_BITS,
    LevelBudgets,
    advise_decay,
    heatmap,
    layout,
    level_budgets,
    level_scales,
    start_level,
)
from dpppsynth.mechanisms.heatmap.tree import pyramid
from dpppsynth.privacy import bounds, parallel, verify
from dpppsynth.privacy.relations import relation_from_dict

BOX = Window.rectangle(0, 0, 160, 80, "EPSG:27700")
RING = Window.polygon(shapely.box(0, 0, 100, 90).difference(shapely.box(30, 30, 70, 65)), "EPSG:27700")
UNIT = 2**LATTICE_BITS


def visits(window, persons, seed=3, most=6):
    """Up to six points for each person, anywhere in the window."""
    rng = np.random.default_rng(seed)
    x0, y0, x1, y1 = window.bounds
    xy = rng.uniform([x0, y0], [x1, y1], (20 * persons, 2))
    xy = xy[window.contains(xy)]
    user = np.repeat(np.arange(persons), rng.integers(1, most + 1, persons))
    return PointPattern(xy[: len(user)], window, {"user": user})


def small(**settings):
    return HeatmapSynthesizer(1.0, **({"shape": (16, 8), "variant": "practical"} | settings))


def measured(plan, pattern):
    """(side, side) integers that the noise is added to."""
    return plan.statistic.users(pattern).lattice()


def test_a_person_counts_once_spread_evenly_over_their_points():
    pattern = PointPattern(
        [[5, 5], [5, 5], [5, 5], [155, 75], [15, 5], [15, 6], [160, 80]],
        BOX,
        {"user": ["a", "a", "a", "a", "b", "b", "c"]},
    )
    grid = measured(small().plan(BOX), pattern)
    expected = np.zeros((16, 16), dtype=np.int64)
    # The corner of the window belongs to the last cell of the window, not to one of the padding above it.
    expected[0, 0], expected[15, 7], expected[1, 0] = 3 * UNIT // 4, UNIT // 4 + UNIT, UNIT
    np.testing.assert_array_equal(grid, expected)


@pytest.mark.parametrize("window", [BOX, RING])
def test_a_person_more_changes_every_level_by_exactly_one(window):
    plan = small(shape=(16, 16)).plan(window)
    pattern = visits(window, 30)
    for person in range(0, 30, 7):
        rest = pattern.marks["user"] != person
        fewer = PointPattern(pattern.xy[rest], window, {"user": pattern.marks["user"][rest]})
        for one, other in zip(*(pyramid(measured(plan, each)) for each in (pattern, fewer)), strict=True):
            assert np.abs(one - other).sum() == UNIT


def test_order_of_rows_and_names_of_persons_do_not_matter():
    plan = small().plan(BOX)
    pattern = visits(BOX, 25)
    order = np.random.default_rng(0).permutation(len(pattern))
    names = np.array([f"person {7 * k % 100}" for k in range(25)])[pattern.marks["user"][order]]
    shuffled = PointPattern(pattern.xy[order], BOX, {"user": names})
    np.testing.assert_array_equal(measured(plan, pattern), measured(plan, shuffled))


def test_without_a_mark_every_point_is_a_person():
    plan = small(user=None).plan(BOX)
    pattern = visits(BOX, 25).unmarked()
    assert measured(plan, pattern).sum() == len(pattern) * UNIT
    # Then the promise is to points, and adds up with that of other mechanisms.
    assert plan.guarantee.relation == small(user=None).neighbouring() == AddRemove()
    assert "one-point-per-person" in plan.guarantee.assumptions


@pytest.mark.parametrize("variant", ["practical", "theory"])
@pytest.mark.parametrize("window", [BOX, RING])
def test_a_large_budget_gives_few_cells_back(window, variant):
    # Nine cells that hold mass, all inside both windows.
    xy = np.repeat(visits(RING, 9, seed=5, most=1).xy * 0.8, np.arange(1, 10), axis=0)
    pattern = PointPattern(xy[window.contains(xy)], window)
    synthesizer = HeatmapSynthesizer(1e6, shape=(24, 20), variant=variant, user=None)
    release = synthesizer.release(pattern, 1)
    plan = release.statistic.definition
    exact = measured(synthesizer.plan(window), pattern)[:24, :20] / UNIT
    np.testing.assert_allclose(release.masses, exact, atol=0.01)
    assert release.intensity.total == pytest.approx(release.masses.sum(), rel=1e-12)
    np.testing.assert_allclose(
        release.intensity(pattern.xy),
        exact[tuple(plan.places[plan.mesh.locate(pattern.xy)].T)]
        / plan.mesh.element_measure[plan.mesh.locate(pattern.xy)],
        rtol=0.02,
    )


def test_nothing_lies_outside_the_window():
    release = HeatmapSynthesizer(0.5, shape=(40, 40)).release(visits(RING, 200), 2)
    hole = np.zeros((40, 40), bool)
    # Cells are 2.5 m by 2.25 m: the hole from 30 to 70 m and 30 to 65 m holds these.
    hole[12:28, 14:28] = True
    for picture in (release.masses, release.distribution, release.heatmap(20.0)):
        assert not picture[hole].any()
        assert picture[~hole].sum() > 0
    assert release.distribution.sum() == pytest.approx(1)
    assert release.heatmap(20.0).sum() == pytest.approx(1)
    (pattern,) = release.sample(1, 3)
    assert RING.contains(pattern.xy).all()


def test_noise_everywhere_is_spread_by_area():
    # All counts zero but one coarse cell: its mass is uniform over its part of the window, not over its grid cells.
    window = Window.polygon(shapely.Polygon([(0, 0), (80, 0), (0, 80)]), "EPSG:27700")
    plan = HeatmapSynthesizer(1.0, shape=(8, 8), w=1, variant="practical", fit="l1").plan(window)
    statistic = plan.statistic.measure(PointPattern([[1, 1]], window, {"user": [1]}), 1)
    lattice = np.zeros_like(statistic.lattice)
    lattice[0] = 36 * UNIT
    release = replace(
        plan.release(PointPattern([[1, 1]], window, {"user": [1]}), 1), statistic=replace(statistic, lattice=lattice)
    )
    assert plan.statistic.budgets.first == 0
    inside = [release.intensity([[x, y]])[0] for x, y in [(5, 5), (75, 2), (2, 75), (44, 34)]]
    np.testing.assert_allclose(inside, 36 / 3200, rtol=1e-9)


def test_no_mass_at_all_is_said_and_gives_empty_patterns():
    release = small().release(visits(BOX, 5), 1)
    none = replace(release, statistic=replace(release.statistic, lattice=np.full_like(release.statistic.lattice, -5)))
    assert none.empty
    assert not release.empty
    np.testing.assert_allclose(none.distribution, 1 / 128)
    np.testing.assert_allclose(none.heatmap(30.0).sum(), 1)
    assert [len(pattern) for pattern in none.sample(3, 1)] == [0, 0, 0]


def test_the_filter_is_as_wide_along_x_as_along_y():
    release = HeatmapSynthesizer(1e6, shape=(80, 20), user=None).release(PointPattern([[81, 42]], BOX), 1)
    picture = release.heatmap(8.0)
    # Cells are 2 m by 4 m, the point lies in (40, 10): eight metres are four cells along x and two along y.
    assert picture[44, 10] / picture[40, 10] == pytest.approx(np.exp(-1 / 2), rel=0.01)
    assert picture[40, 12] / picture[40, 10] == pytest.approx(np.exp(-1 / 2), rel=0.01)
    np.testing.assert_array_equal(release.heatmap(), release.heatmap(0.02 * 160))


@pytest.mark.parametrize("settings", [{}, {"w": 3}, {"variant": "theory"}, {"decay": 1.0}, {"w": 10**6}])
def test_the_budget_is_spent_whole_and_not_exceeded(settings):
    guarantee = small(**settings).check(BOX)
    assert guarantee.epsilon() <= 1.0
    assert guarantee.epsilon() == pytest.approx(1.0, rel=1e-9)
    assert guarantee.relation == AddRemovePerson("user")
    assert guarantee.delta(0.5) > 0


def test_budgets_of_the_levels():
    budgets = level_budgets(1.0, 8)
    known = [0.321292, 0.227188, 0.160646, 0.113594, 0.080323, 0.056797, 0.040161]
    assert budgets.first == 2
    np.testing.assert_allclose(budgets.epsilons, known, atol=5e-7)
    theory = level_budgets(1.0, 8, variant="theory", decay=2**-0.5)
    np.testing.assert_allclose([theory.epsilons[0], theory.epsilons[2]], [0.115753, 0.231506], atol=5e-7)
    assert 1 / max(level_budgets(1.0, 8, variant="theory").epsilons) == pytest.approx(5.391424)
    assert 1 / max(level_budgets(1.0, 8, decay=0.8).epsilons) == pytest.approx(3.951424)
    for each in (budgets, theory):
        assert sum(each.epsilons) == pytest.approx(1, abs=1e-12)
    assert [start_level(w, 8) for w in (1, 3, 4, 15, 16, 63, 64, 255, 256)] == [0, 0, 1, 1, 2, 2, 3, 3, 4]
    # No more than the grid has.
    assert start_level(10**6, 2) == 2
    assert layout(2, 2, 10**6) == (16,)
    assert layout(0, 4, 3) == (1, 4, 12, 12, 12)


def test_a_bound_is_the_sum_over_the_levels():
    assert heatmap([2**20, 2**21, 2**22]).epsilon() == 1.75
    scales = level_scales(level_budgets(0.3, 6))
    assert heatmap(scales).epsilon() <= 0.3


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: LevelBudgets(-1, (1.0,)), "first"),
        (lambda: LevelBudgets(0, (1.0, 0.0)), "epsilons"),
        (lambda: LevelBudgets(0, ()), "epsilons"),
        (lambda: level_scales((1.0, 1.0)), "budgets"),
        (lambda: level_scales(LevelBudgets(0, (1.0,)), 41), "bits"),
        (lambda: heatmap(()), "scales"),
        (lambda: heatmap(2.0**20), "scales"),
        (lambda: heatmap((2.0**20, 0.0)), "scales"),
        (lambda: heatmap((2.0**20,), bits=41), "bits"),
    ],
)
def test_numbers_that_certify_nothing_are_refused(call, name):
    with pytest.raises(InputError, match=f"^{name}: "):
        call()


def test_a_decay_may_be_any_real_number():
    with pytest.warns(InformationWarning, match=r"^decay: 0\.333333 leaves"):
        advise_decay(Fraction(1, 3))


def test_a_release_can_be_fitted_again_at_no_cost(tmp_path):
    release = small().release(visits(BOX, 60))
    other = release.refit("l1")
    np.testing.assert_array_equal(other.statistic.lattice, release.statistic.lattice)
    assert not np.allclose(other.masses, release.masses)
    plan = release.statistic.definition
    # Both fits give the first level's cells their own: l1 exactly, least squares after pooling.
    coarse = pyramid(np.pad(other.masses, ((0, 0), (0, 8))))[plan.budgets.first]
    counts = plan.tree(release.statistic.lattice).levels[0].counts
    np.testing.assert_allclose(coarse.ravel(), np.maximum(counts, 0), atol=1e-9)
    other.save(tmp_path / "out")
    assert verify(tmp_path / "out").holds
    np.testing.assert_array_equal(load_release(tmp_path / "out").masses, other.masses)


def forged(folder, **changes):
    """The certificate with other parameters, and a hash that fits them."""
    cert = read(folder)
    cert["parameters"] |= changes
    reseal(folder, cert)
    return verify(folder)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({"w": 9}, "statistic"),
        ({"variant": "theory"}, "statistic"),
        ({"epsilon": 0.5}, "bound"),
        ({"user": None}, "bound"),
        ({"mesh": {"builder": "regular", "kind": "triangle", "shape": [17, 9]}}, "bound"),
        ({"mesh": {"builder": "regular", "kind": "square", "shape": [33, 9]}}, "statistic"),
        ({"estimator": {"kind": "projection", "postprocess": "clip"}}, "bound"),
        ({"estimator": {"kind": "reconstruction", "fit": "best"}}, "bound"),
        ({"estimator": {"kind": "reconstruction"}}, "bound"),
        ({"n": 60}, "bound"),
        ({"decay": 0.0}, "bound"),
        ({"note": "ours"}, "bound"),
    ],
)
def test_other_parameters_do_not_verify(tmp_path, changes, check):
    small().release(visits(BOX, 60)).save(tmp_path / "out")
    verification = forged(tmp_path / "out", **changes)
    assert check in {each.name for each in verification.checks if not each.holds}


def test_an_edited_statistic_does_not_load(tmp_path):
    release = small().release(visits(BOX, 20))
    data = release.statistic.to_dict()
    with pytest.raises(InputError, match=r"^statistic: "):
        release.statistic.definition.restore(data | {"lattice": data["lattice"][1:]})


PATTERN = visits(BOX, 9)


@pytest.mark.parametrize(
    ("settings", "pattern"),
    [
        ({}, PATTERN.unmarked()),
        ({"user": "person"}, PATTERN),
        ({"user": None}, PATTERN),
        ({}, PointPattern(PATTERN.xy, BOX, PATTERN.marks | {"sex": np.zeros(len(PATTERN))})),
    ],
)
def test_marks_must_be_the_ones_planned(settings, pattern):
    with pytest.raises(InputError, match=r"^pattern: (needs the mark|marks are not)") as caught:
        small(**settings).release(pattern)
    assert str(len(PATTERN)) not in str(caught.value)


def test_another_window_is_refused():
    plan = small().plan(Window.rectangle(0, 0, 160, 81, "EPSG:27700"))
    with pytest.raises(InputError, match=r"^pattern: its domain differs"):
        plan.release(PATTERN)


def test_missing_persons_are_refused_without_a_number():
    users = PATTERN.marks["user"].astype(float)
    users[4] = np.nan
    with pytest.raises(InputError, match=r"^user: ") as caught:
        small().release(PointPattern(PATTERN.xy, BOX, {"user": users}))
    assert not any(character.isdigit() for character in str(caught.value))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("epsilon", {"epsilon": 0.0}),
        ("epsilon", {"epsilon": float("inf")}),
        ("shape", {"shape": (1, 1)}),
        ("shape", {"shape": (0, 5)}),
        ("shape", {"shape": (4097, 5)}),
        ("shape", {"shape": 256}),
        ("shape", {"shape": (2.5, 4)}),
        ("w", {"w": 0}),
        ("w", {"w": 2.5}),
        ("variant", {"variant": "best"}),
        ("decay", {"decay": 0.0}),
        ("decay", {"decay": 1.01}),
        ("decay", {"decay": float("nan")}),
        ("fit", {"fit": "best"}),
        ("user", {"user": 5}),
        ("user", {"user": ""}),
        ("shape", {"shape": (1500, 1500)}),
    ],
)
def test_bad_settings_are_refused(name, settings):
    with pytest.raises(InputError, match=f"^{name}: "):
        HeatmapSynthesizer(**({"epsilon": 1.0} | settings))


def test_a_decay_without_an_error_bound_is_told():
    with pytest.warns(InformationWarning, match=r"^decay: 0.5 "):
        small(decay=0.5)
    small(decay=0.51)


def test_domains_and_sizes_that_do_not_fit():
    with pytest.raises(InputError, match=r"^n: "):
        small().check(BOX, n=60)
    with pytest.raises(InputError, match=r"^expected_n: "):
        small().check(BOX, expected_n=-1.0)
    with pytest.raises(InputError, match=r"^domain: heat maps"):
        small().check(LinearNetwork([[0, 0], [1, 0]], [[0, 1]]))
    with pytest.raises(InputError, match=r"^epsilon: .*larger"):
        HeatmapSynthesizer(1e-9).check(BOX)


def test_capped_bounds_do_not_take_a_whole_person():
    # Without a cap, counts under it would have no bound at all.
    with pytest.raises(InputError, match=r"^relation: "):
        bounds.counts(AddRemovePerson(), scale=1.0)
    with pytest.raises(InputError, match="no cap"):
        parallel([small().check(BOX)] * 2, "year")
    assert not AddRemovePerson().implies(AddRemove(3))
    assert not ReplaceOne().implies(AddRemovePerson())
    assert not AddRemove(3).implies(AddRemovePerson())
    assert relation_from_dict(AddRemovePerson().to_dict()) == AddRemovePerson()


@pytest.mark.parametrize("other", [None, "device"])
def test_another_unit_of_privacy_is_another_relation(tmp_path, other):
    """Releases that protect persons, points and devices add up for none of them."""
    Ledger.create(tmp_path / "ledger.json", epsilon=9.0, delta=0.0, relation=AddRemovePerson("user"))
    pattern = PATTERN.unmarked() if other is None else PointPattern(PATTERN.xy, BOX, {other: PATTERN.marks["user"]})
    with Ledger.open(tmp_path / "ledger.json") as ledger, pytest.raises(InputError, match=r"^user: "):
        small(user=other).release(pattern, ledger=ledger)


def test_a_ledger_of_persons(tmp_path):
    Ledger.create(tmp_path / "ledger.json", epsilon=1.5, delta=0.0, relation=AddRemovePerson())
    with Ledger.open(tmp_path / "ledger.json") as ledger:
        release = small().release(PATTERN, ledger=ledger)
        release.save(tmp_path / "out")
        assert ledger.spent == pytest.approx(1.0)
        with pytest.raises(BudgetError):
            small().release(PATTERN, ledger=ledger)
    Ledger.create(tmp_path / "points.json", epsilon=9.0, delta=0.0, relation=AddRemove(5))
    with Ledger.open(tmp_path / "points.json") as ledger, pytest.raises(InputError, match=r"^user: "):
        small().release(PATTERN, ledger=ledger)

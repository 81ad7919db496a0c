"""The parts of benchmarks/bounded_error.py that could be wrong without anybody seeing it in the tables."""

import importlib
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

STUDY = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def study():
    names = ("", "_data", "_laws", "_page", "_ranges", "_runs", "_scores", "_statements", "_studies")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(STUDY))
        found = {name[1:] or "main": importlib.import_module(f"bounded_error{name}") for name in names}
        yield SimpleNamespace(**found)


def test_stand_ins_have_the_published_sizes(study):
    counts, degrees = study.data.age_counts(), study.data.degrees()
    assert (len(counts), counts.sum(), len(degrees), degrees.max() <= 1678) == (74, 48_842, 32_768, True)
    assert (np.diff(degrees) >= 0).all()
    assert study.data.degree_counts().sum() == len(degrees)
    assert study.data.checkins().shape == (31_000, 2)


def test_subsets_of_tracks_are_the_same_tracks_with_the_stated_steps(study):
    few, more = study.data.tracks(3), study.data.tracks(20)
    assert (more[:3] == few).all()
    # 3960 normal steps: six standard errors.
    assert np.diff(more, axis=1).std() == pytest.approx(study.data.STEP, rel=6 / math.sqrt(2 * 3960))


def test_scores_of_hand_made_errors(study):
    numbers = study.scores.of_numbers(np.array([[3.0, -1.0, -2.0, 4.0]]), threshold=2.0)
    assert numbers == pytest.approx(np.array([[1.0, 26 / 3, 7.5, 0.5, 4.0]]))
    places = study.scores.of_places(np.array([[[3.0, 4.0], [-3.0, -4.0]]]), threshold=4.0)
    # Variances of 18 along x and 32 along y; distances of 5, where no coordinate is above 4.
    assert places == pytest.approx(np.array([[0.0, 25.0, 25.0, 1.0, 5.0]]))


@pytest.mark.parametrize("wrong", ["variance", "beta"])
def test_a_number_off_its_closed_form_ends_the_run(study, wrong, capsys):
    noise = next(each for each in study.laws.number_noises(0.5) if each.name == study.laws.TRUNCATED)
    honest = study.runs.noise_row(noise, 100, 200, [1])
    compared, worst = study.main.check({"ages": [honest]})
    assert compared == 4
    assert worst < 5
    known = study.scores.Known(noise.variance, noise.tail(10.0))._replace(**{wrong: 0.5})
    errors = noise.draw((200, 100), np.random.default_rng(1))
    scores = study.scores.summary(study.scores.of_numbers(errors, 10.0), 100, known)
    with pytest.raises(SystemExit):
        study.main.check({"ages": [honest._replace(scores=scores)]})
    assert "closed form" in capsys.readouterr().out


def test_numbers_that_are_none_end_the_run_too(study):
    figure = study.scores.Figure
    assert [study.main.wrong(figure(value, 0.1, 1.0)) for value in (math.nan, 1.6, 1.4)] == [True, True, False]
    assert study.main.wrong(figure(0.1, 0.0, 0.0))
    assert not study.main.wrong(figure(1e9, 0.1))


def test_every_law_states_a_guarantee_of_its_own_at_sensitivity_one_and_two(study):
    for noises, sensitivity in ((study.laws.number_noises, 1), (study.laws.replaced_noises, 2)):
        found = {noise.name: noise for noise in noises(0.9)}
        assert found[study.laws.LAPLACE].variance == pytest.approx(2 * (sensitivity / 0.9) ** 2)
        bounded = [noise for noise in found.values() if noise.max_error < math.inf]
        assert all(0 < noise.delta <= 1e-5 for noise in bounded)
    # Stairs protect one count by one; of two counts each has half of epsilon.
    one, half, two = (
        next(noise.variance for noise in noises if noise.name == study.laws.STAIRCASE)
        for noises in (study.laws.number_noises(0.9), study.laws.number_noises(0.45), study.laws.replaced_noises(0.9))
    )
    assert one < two == pytest.approx(half)


def test_closed_forms_of_every_law_are_those_of_its_tail(study):
    laws = [(noise, 1) for noise in study.laws.number_noises(0.5)] + [
        (noise, 2) for noise in study.laws.place_noises(0.5)
    ]
    for noise, dimension in laws:
        width = min(noise.max_error, 30 * math.sqrt(noise.variance)) / 1000
        middles = width * (np.arange(1000) + 0.5)
        tails = np.array([noise.tail(each) for each in middles])
        assert width * tails.sum() == pytest.approx(noise.mean_absolute, rel=0.01)
        assert width * (2 * middles * tails).sum() == pytest.approx(dimension * noise.variance, rel=0.01)


def test_ranges_are_sums_of_cells(study):
    cells = study.data.AGES
    errors = np.arange(2.0 * cells).reshape(2, cells)
    found = study.ranges.range_errors(errors, variance=3.0)
    for length, each, ranges in zip(
        study.ranges.LENGTHS[cells], found, study.ranges.workload(cells).values(), strict=True
    ):
        sums = [[row[first:last].sum() for first, last in ranges] for row in errors]
        assert each.value == pytest.approx(np.square(sums).mean())
        assert each.known == 3.0 * length


def test_words_for_differences_need_two_standard_errors(study):
    figure, change = study.scores.Figure, study.statements.change
    assert change(figure(90.0, 1.0), figure(100.0, 1.0)) == "10.0 ± 1.3 % lower"
    assert change(figure(110.0, 1.0), figure(100.0, 1.0)) == "10.0 ± 1.5 % higher"
    assert change(figure(98.0, 1.0), figure(100.0, 1.0)) == "no clear difference (-2.0 ± 1.4 %)"


def test_numbers_are_shown_to_the_second_digit_of_their_error(study):
    shown, figure = study.page.shown, study.scores.Figure
    given = figure(198.276, 0.514), figure(0.05012, 0.00031), figure(8.3e8, 2e6), figure(3.0, 0.0), None
    assert [shown(each) for each in given] == ["198.28 ± 0.51", "0.05012 ± 0.00031", "8.30e8 ± 2e6", "3.000", ""]


def test_exponents_lose_their_zeros_and_no_other_digit(study):
    assert [study.page.small(each) for each in (1e-5, 1e-10, 0.0, 0.0123)] == ["1e-5", "1e-10", "0", "0.0123"]
    assert [study.page.number(each) for each in (4.54e-5, 2e10, math.inf)] == ["4.54e-5", "2.00e10", "none"]


def test_spread_of_a_thousand_draws_is_the_known_one(study):
    law = SimpleNamespace(scale=10.0, bound=math.inf)
    # Laplace noise has the fourth moment 24 scale^4: a standard error of 14.1 at variance 200.
    fourth = study.studies.fourth_moment(law)
    assert math.sqrt((fourth - 200**2) / 1000) == pytest.approx(14.1421, abs=1e-4)

"""The benchmark of bounded errors: parts whose faults no table would show, and stale numbers on its page."""

import csv
import importlib
import math
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

STUDY = Path(__file__).parents[2] / "benchmarks"
RESULTS = STUDY.parent / "docs" / "results"


@pytest.fixture(scope="module")
def study():
    names = ("", "_data", "_laws", "_ranges", "_runs", "_scores", "_studies")
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
    found = study.ranges.range_rows("law", 1.0, 0.0, 2, errors, variance=3.0)
    for length, each, ranges in zip(
        study.ranges.LENGTHS[cells], found, study.ranges.workload(cells).values(), strict=True
    ):
        sums = [[row[first:last].sum() for first, last in ranges] for row in errors]
        assert each.length == length
        assert each.mse.value == pytest.approx(np.square(sums).mean())
        assert each.mse.known == 3.0 * length


def test_shares_below_another_number_carry_the_errors_of_both(study):
    figure = study.scores.Figure
    lower, higher = (figure(each, 1.0).below(figure(100.0, 1.0)) for each in (90.0, 110.0))
    assert lower == pytest.approx((0.1, math.hypot(1.0, 0.9) / 100, None))
    assert higher == pytest.approx((-0.1, math.hypot(1.0, 1.1) / 100, None))


def test_every_number_of_a_row_has_a_line_with_its_error_and_closed_form(study, tmp_path):
    noise = study.laws.number_noises(0.5)[0]
    row = study.runs.noise_row(noise, 100, 20, [1])
    study.main.write(tmp_path / "all.csv", {"ages": [row]})
    lines = {line["measure"]: line for line in csv.DictReader((tmp_path / "all.csv").read_text().splitlines())}
    assert {line["case"] for line in lines.values()} == {"Laplace, epsilon 0.5"}
    mse = row.scores.mse
    assert [lines["mse"][name] for name in ("value", "standard_error", "closed_form")] == [
        f"{mse.value:.6g}",
        f"{mse.error:.6g}",
        "8",
    ]
    assert len(lines) == 3 + 4 + 1 + 5


def test_spread_of_a_thousand_draws_is_the_known_one(study):
    law = SimpleNamespace(scale=10.0, bound=math.inf)
    # Laplace noise has the fourth moment 24 scale^4: a standard error of 14.1 at variance 200.
    fourth = study.studies.fourth_moment(law)
    assert math.sqrt((fourth - 200**2) / 1000) == pytest.approx(14.1421, abs=1e-4)


# --- the page beside its file ----------------------------------------------------------------------------------------

NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
MEASURED = re.compile(rf"({NUMBER}) ± ({NUMBER})( %)?")


@pytest.fixture(scope="module")
def lines():
    with (RESULTS / "bounded_error.csv").open() as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def page():
    """Sentences that go on in an indented line are joined."""
    return re.sub(r"\n +", " ", (RESULTS / "bounded_error.md").read_text())


def is_shown(text, value):
    """Whether a number is rounded to the digits shown; signs are said in words."""
    mantissa, _, exponent = text.lstrip("-").partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return abs(abs(float(text)) - abs(value)) <= 0.5 * unit + 1e-5 * abs(value)


def pairs(lines):
    return [(float(line["value"]), float(line["standard_error"])) for line in lines]


def singles(lines):
    """Values and closed forms, also as percentages, and the numbers that rows are told apart by."""
    known = [float(line[name]) for line in lines for name in ("value", "closed_form") if line[name]]
    labels = [float(each) for line in lines for each in re.findall(NUMBER, line["case"])]
    return [*known, *(100 * each for each in known), *labels]


def test_measured_numbers_of_the_page_are_those_of_the_file(lines, page):
    checked, known = 0, pairs(lines)
    for said in page.splitlines():
        for value, error, percent in MEASURED.findall(said):
            factor = 100 if percent else 1
            checked += 1
            assert any(is_shown(value, factor * v) and is_shown(error, factor * e) for v, e in known), said
    assert checked > 25


def test_other_numbers_of_the_findings_are_those_of_the_file(lines, page):
    findings = page.partition("## Findings")[2]
    numbers, known = re.findall(r"\b\d+\.\d+\b", MEASURED.sub("", findings)), singles(lines)
    assert len(numbers) > 10
    for text in numbers:
        assert any(is_shown(text, each) for each in known), text


def test_runs_agreed_with_their_closed_forms(lines):
    """Read again from the file, without the standard errors that are 0 by rounding."""
    held = [line for line in lines if line["closed_form"] and float(line["standard_error"])]
    worst = max(abs(v - float(line["closed_form"])) / e for line, (v, e) in zip(held, pairs(held), strict=True))
    stated = {line["measure"]: float(line["value"]) for line in lines if line["study"] == "checked"}
    assert stated["comparisons"] == sum(bool(line["closed_form"]) for line in lines)
    assert worst == pytest.approx(stated["largest_z"], abs=0.01)
    assert worst < 5

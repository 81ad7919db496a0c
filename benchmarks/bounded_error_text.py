"""The page docs/results/bounded_error.md, made wholly from results: what was compared, and all tables."""

from typing import Any

import bounded_error_page as page
from bounded_error_laws import DELTA, GAUSSIAN, LAPLACE, LEAST_DELTA, MOVED, PLANAR, TRUNCATED, TRUNCATED_PLANAR, WHOLE
from bounded_error_ranges import LENGTHS
from bounded_error_runs import FILTERED, Row, Setting
from bounded_error_statements import findings, statements

Found = dict[str, list[Any]]


def document(found: Found, setting: Setting, command: str, checked: tuple[int, float]) -> str:
    """All of the page."""
    sections: list[list[str]] = [
        [head(command, checked), findings(found), statements(found), material(), methods(setting)],
        numbers(found),
        ranges(found),
        places(found),
        filters(found, setting),
        draws(found),
        laws(found),
        accuracy(found),
        certain(found),
    ]
    return "\n".join(line for section in sections for line in section).rstrip() + "\n"


def head(command: str, checked: tuple[int, float]) -> str:
    return f"""# Noise with a hard bound: a published comparison made again

Wang, Xu, Zhang, Peng & Li, *An optimal differentially private data release mechanism with constrained error*, add
Laplace noise that never exceeds a bound, filter the answers, and report errors by epsilon alone, in plots, without
delta, bounds or standard errors. Here the comparison is made again on simulated data of the same sizes. Every row has
its delta, and every simulated number its standard error; all rows are in [bounded_error.csv](bounded_error.csv).
All of this page is made by

    {command}    # five minutes of processor time

**Nothing here is private**: truths are compared with noisy answers, and the noise is seeded. Where there is a closed
form the run is held against it: {checked[0]} comparisons, the largest z-score {checked[1]:.2f}; above 5 the run fails.
"""


def material() -> str:
    return """## What was compared

| data | published | stand-in, from fixed seeds |
|---|---|---|
| ages | Adult, 48,842 persons | gamma ages of 48,842 persons, counted in 74 bins from 17 to 90 |
| friends | Social Network, 32,768 students | 32,768 degrees of a power law, exponent 1.6, at most 1,678, sorted |
| checkins | Check-in, 31,000 users | 31,000 places in 40 normal towns of a square of 60 km |
| tracks | GeoLife, 17,621 trajectories | 17,621 walks of 100 positions, normal steps of 0.5 km a coordinate |

Published queries, bins, bounds and sensitivities are unknown. Here one number changes by 1: a person more or less in
one bin, or one degree. Where a record is replaced two counts change and the sensitivity is 2; variances are then about
four times as large (a table below, and all range queries). Epsilon and delta of numbers are those of the whole vector.

For places epsilon is per km, and delta that of **one** place and another 1 km away. A track of 100 positions spends
100 times epsilon and `1 - (1 - delta)^100`, which is 0.001, filtered or not.
"""


def methods(setting: Setting) -> str:
    names = f"""| name | what it is |
|---|---|
| {LAPLACE} | scale 1 / epsilon, purely private |
| {TRUNCATED} | the same, redrawn beyond the bound of delta = {page.small(DELTA)} |
| {WHOLE} | the same on whole numbers by `BoundedErrorAnswers`, a release; the bound is rounded up |
| {FILTERED} | `particle_filter`, {setting.particles} particles, likely step of each release |
| {GAUSSIAN}, p = 3 | exactly calibrated at delta = {page.small(DELTA)}; p = 2 is the analytic Gaussian mechanism |
| staircase | the smallest variance of pure privacy for one number |
| {LEAST_DELTA} | blocks of width 1: the smallest delta of any noise within its bound |
| uniform | delta = {page.small(DELTA)} at every epsilon, even 0: errors of up to 50,000 |
| Hay tree, degree sequence | consistent binary tree of counts; sorted degrees made increasing again |
| Blum | intervals of equal mass by noisy binary searches; answers range queries |
| {PLANAR}, {TRUNCATED_PLANAR} | falling with distance; redrawn beyond the bound of delta = {page.small(DELTA)} |
| {MOVED} | the same, rounded exactly to a lattice of 10 m (`truncated.move`), a release |
| Gaussian per coordinate | analytic Gaussian mechanism; its epsilon and delta hold up to 1 km |
| cartesian, polar | particle filters in the plane, and of distance and angle about the square's middle |
"""
    measures = f"""
Mean, variance and MSE are those of the errors. In the plane variances are per coordinate and the MSE is the mean
**squared distance**, so twice the variance. beta(10) is the share of errors, or distances, above 10. ± is the standard
error over repetitions, whose number is in the column *runs*; of shares of unfiltered noise it is that of the known
share. Filters run over {setting.filtered} releases of the ages, {setting.long} of the friends, and {setting.paths}
paths of 100 places.
"""
    return f"{names}\n{page.filled(measures)}"


def numbers(found: Found) -> list[str]:
    lines = ["## Numbers", ""]
    for data, about in (("ages", "Counts of 74 ages."), ("friends", "Degrees of 32,768 students in ascending order.")):
        lines += [f"### {data.capitalize()}", "", about, "", *metrics(found[data], "MSE")]
        if data == "ages":
            text = "Variance, the MSE but for the filter; that of the other data is in the file of all rows:"
            lines += [text, "", *page.by_epsilon(found[data], lambda scores: scores.variance)]
    return [*lines, "### A record replaced", "", "Closed forms.", "", *page.of_compared(found["replaced"])]


def metrics(rows: list[Row], mse: str) -> list[str]:
    """Mean square and beta by epsilon, then promises."""
    lines = [f"{mse}:", "", *page.by_epsilon(rows, lambda scores: scores.mse)]
    lines += ["beta(10):", "", *page.by_epsilon(rows, lambda scores: scores.beta)]
    return [*lines, "Promised and seen at epsilon 0.1:", "", *page.promises(rows, 0.1)]


def ranges(found: Found) -> list[str]:
    text = """## Range queries

Blum and the tree answer ranges: here all do, over the same bins, by sums of cells. A record is replaced, so that the
histogram has sensitivity 2 (the square root of 2 for the Gaussian law), the tree below its root 2 (levels - 1), and a
share that Blum's search asks for 1 / n; the staircase has epsilon / 2 for each of two cells. Epsilon is spent once.
Mean squared error of an answer, over 200 public ranges of each length at random places. *accuracy* is Blum's public
parameter, on which the number of intervals depends. The tree is filled up to a power of two of bins.
"""
    lines = [text]
    abouts = ("ages", "Ages, 74 bins:"), ("friends", "Numbers of friends, 1,679 bins:")
    for (data, about), lengths in zip(abouts, LENGTHS.values(), strict=True):
        lines += [about, "", *page.of_ranges(found[f"ranges of {data}"], lengths)]
    return lines


def places(found: Found) -> list[str]:
    lines = ["## Places", ""]
    for data, about in (
        ("checkins", "Every check-in moved. Their order is no one's path: filters take the rows as they come."),
        ("tracks", "Tracks of 100 positions."),
    ):
        lines += [f"### {data.capitalize()}", "", about, "", *metrics(found[data], "MSE, squared km")]
    return lines


def filters(found: Found, setting: Setting) -> list[str]:
    text = f"""
Epsilon 0.1, bound 50 (delta 3.57e-4), {setting.series} series of 200 answers, {setting.particles} particles; mean
squared errors. *Step given* is the walk's own, or the number named; *grid* and *smoother* are exact filters with that
step, on {setting.grids} of the series, and the smoother uses later answers too. *As printed* has the uniform proposal
and no resampling, yet not the factor 1 / M, with which all answers would be about 0. A gain is what the filter takes
off the raw error. *Likely step* and *by differences*: estimated from each series by `likely_step`, the default, and by
`estimated_step`, from the squared differences of neighbours. *Restarts* are those of a series with the step given, and
the *largest error* is that with the step given or likely; the filter promises 100. Sine: amplitude 50, period 100.
Independent: uniform up to 300.
"""
    picture = "![Errors of filters by the step of the walk, and the spread of variances](bounded_error.png)"
    return [
        "## What the filter does, by smoothness\n",
        page.filled(text),
        *page.of_smoothness(found["smoothness"]),
        picture,
        "",
        *uneven(found),
    ]


def uneven(found: Found) -> list[str]:
    months = """
Counts of 400 cells in twelve months, released with epsilon 1 and a bound of 27 (delta 1e-6): noise of scale 2. By
default a step is estimated for each cell, from its own twelve counts. One step for all (`likely_step` of all of them)
would be better where all change alike, and is much worse for the few that do not.
"""
    tracks = """
200 positions, moved by 18 on average and by 50 at most (epsilon 0.1 per unit); mean squared distances, by the step of
the walk along each axis.
"""
    return [
        "### Where a few cells change more than the rest\n",
        page.filled(months),
        *page.of_months(found["months"]),
        "### Tracks, filtered\n",
        page.filled(tracks),
        *page.of_walked(found["walked"]),
    ]


def draws(found: Found) -> list[str]:
    text = """## What 1000 draws can tell

187, 197, 199 and 200 were published as variances or mean squared errors at epsilon 0.1. If each comes from 1000 draws,
its standard error is 11 to 14. The bounds are those at which the truncated law has these variances; 1000 studies of
1000 draws each.
"""
    return [text, *page.of_spreads(found["draws"])]


def laws(found: Found) -> list[str]:
    equal = """## Equal epsilon and delta

Closed forms, sensitivity 1.
"""
    best = """The smallest delta of any additive noise within a bound, by a linear program, and in closed form at
multiples of one half (sensitivity 1). On whole numbers noise need not hide changes by fractions: the truncated
geometric law has the optimum of the bound plus 1/2.
"""
    behind = """The bounds at which the laws would have the published variances (197 and 187 are said of one law), and
the delta that comes with them, for places at 1 km. No single bound or delta explains them.
"""
    tables = [equal, *page.of_compared(found["compared"]), best, *page.of_optima(found["optima"])]
    return [*tables, behind, *page.of_implied(found["implied"])]


def accuracy(found: Found) -> list[str]:
    text = """## Accuracy at epsilon 1

Share of errors above a; of places, share of distances.
"""
    return [text, *page.of_accuracy(found["accuracy"])]


def certain(found: Found) -> list[str]:
    text = """## Answers that give a record away

Share of released answers that a neighbouring data set could not have given. Epsilon says nothing about them, and delta
is exactly their probability.
"""
    return [text, *page.of_leaks(found["leaks"])]

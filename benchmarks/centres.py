"""Intensities that patterns may be drawn from, compared: the released one, posterior mean, posterior draws.

For geography: total variation distance to the truth of each intensity, on the four intensities of `utility.py`, with
other seeds, and their geometric mean. For interaction: how often a test of complete spatial randomness at 5 % calls a
synthetic pattern of a uniform original clustered (400 points on a square of 1000 m, alpha 50 m; largest L(r) - r up to
150 m against 999 simulations).

    python benchmarks/centres.py --repeats 6 --out docs/results/centres.md
"""

import numpy as np
from inference_coverage import ALPHA, FINE, excess, uniform
from pages import command_line, fill, table
from utility import RADIUS, apart, centres, draw, truths

import dpppsynth as dps
from dpppsynth.spatial.pattern_sources import SOURCES

CASES = [(1, 0.1), (1, 1.0), (1, 10.0), (10, 1.0)]
DRAWS = 20


def distances(times: int, epsilon: float, repeats: int) -> dict[str, float]:
    """Geometric means over the intensities of mean distances, by source."""
    means = {source: [] for source in SOURCES}
    for k, (window, truth) in enumerate(truths().values()):
        x0, _, x1, _ = window.bounds
        at, found = centres(window), {source: [] for source in SOURCES}
        alpha = (x1 - x0) * RADIUS["B/(10 sqrt2)"]
        synthesizer = dps.LGCPSynthesizer(epsilon, alpha=alpha, mechanism="tents", inference="laplace")
        for repeat in range(repeats):
            rng = np.random.default_rng([20, times, round(10 * epsilon), k, repeat])
            release = synthesizer.release(draw(window, truth, times, rng), rng)
            for source in SOURCES:
                each = release.intensities(DRAWS if source == "draws" else 1, rng, source=source)
                found[source].append(np.mean([apart(one(at), truth(at)) for one in each]))
        for source in SOURCES:
            means[source].append(np.mean(found[source]))
    return {source: float(np.exp(np.log(each).mean())) for source, each in means.items()}


def called_clustered(repeats: int) -> dict[str, float]:
    """Shares of synthetic patterns of uniform originals, by source."""
    rng = np.random.default_rng(21)
    largest = np.quantile([excess(uniform(rng), FINE).max() for _ in range(999)], 0.95)
    synthesizer = dps.LGCPSynthesizer(1.0, alpha=ALPHA, inference="laplace")
    releases = [synthesizer.release(uniform(rng), rng) for _ in range(repeats)]

    def clustered(release: dps.CoxRelease, source: str) -> bool:
        return bool(excess(release.sample(1, rng, source=source, fixed_n=True)[0], FINE).max() > largest)

    return {source: float(np.mean([clustered(each, source) for each in releases])) for source in SOURCES}


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=6, help="of each intensity; ten times as many uniform originals")
    given = parser.parse_args()
    rows = []
    for times, epsilon in CASES:
        found = distances(times, epsilon, given.repeats)
        name = f"{'10 x ' if times > 1 else ''}eps {epsilon:g}: distance to the truth"
        rows.append([name, *(f"{found[source]:.3f}" for source in SOURCES)])
        print(rows[-1], flush=True)
    found = called_clustered(10 * given.repeats)
    rows.append(["uniform original called clustered", *(f"{100 * found[source]:.0f} %" for source in SOURCES)])
    lines = table(("", "released", "posterior mean", "posterior draw"), rows)
    print("\n".join(lines))
    fill(given.out, "sources", lines)


if __name__ == "__main__":
    main()

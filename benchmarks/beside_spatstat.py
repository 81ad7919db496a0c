"""CPU seconds of K-functions, kernel intensities and Poisson sampling beside those of R's spatstat, in the same run.

The same points go to both, by files; values are compared before times are. Where there is no Rscript with spatstat the
column of R says so.

    OMP_NUM_THREADS=1 python benchmarks/beside_spatstat.py --out docs/results/scale.md
"""

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pages import command_line, fill, table

import dpppsynth as dps
from dpppsynth.datasets import soho_streets
from dpppsynth.evaluation.kfunction import k_function
from dpppsynth.evaluation.smoothing import kernel_intensity
from dpppsynth.linear_network import k_function as network_k
from dpppsynth.models import regular_triangulation
from dpppsynth.spatial.intensity import PiecewiseConstant
from dpppsynth.spatial.sampling import poisson_pattern

RUNS, PIXELS, SIGMA = 5, 128, 0.05
UNIT = dps.Window.rectangle(0, 0, 1, 1)
HEADS = ("", "dpppsynth", "spatstat", "ratio", "largest relative difference")
SCRIPT = """
suppressMessages(library(spatstat))
folder <- commandArgs(TRUE)[1]
said <- function(name, run, value) {
  seconds <- replicate(%d, { start <- proc.time(); result <<- run(); sum((proc.time() - start)[1:2]) })
  cat(name, median(seconds), value(result), "\\n")
}
get <- function(name) as.matrix(read.csv(file.path(folder, name)))
xy <- get("points.csv")
X <- ppp(xy[, 1], xy[, 2], c(0, 1), c(0, 1))
r <- seq(0, 0.178, length.out = 513)
said("k", function() Kest(X, r = r, correction = "isotropic"), function(k) k$iso[c(129, 257, 513)])
at <- c(17, 64, 100)
said("kernel", function() density(X, sigma = %g, edge = FALSE, dimyx = %d),
     function(z) z$v[cbind(at, at)])
net <- linnet(ppp(get("vertices.csv")[, 1], get("vertices.csv")[, 2],
              range(get("vertices.csv")[, 1]), range(get("vertices.csv")[, 2])),
              edges = get("edges.csv") + 1, sparse = FALSE)
on <- get("positions.csv")
Y <- lpp(data.frame(x = on[, 3], y = on[, 4], seg = on[, 1] + 1, tp = on[, 2]), net)
s <- get("distances.csv")[, 1]
said("network", function() linearK(Y, r = s, correction = "Ang"), function(k) k$est[c(26, 51, 101)])
Z <- as.im(function(x, y) 1e6 + 0 * x, owin(), dimyx = %d)
said("poisson", function() rpoispp(Z), function(p) 1e6)
"""


def cpu(run: Callable[[], Any]) -> tuple[float, Any]:
    """Median CPU seconds of some runs after a first one, which may compile, and what the last one gave."""
    run()
    seconds = []
    for _ in range(RUNS):
        start = time.process_time()
        found = run()
        seconds.append(time.process_time() - start)
    return median(seconds), found


def save(path: Path, array: Any) -> None:
    array = np.asarray(array)
    heads = ",".join(f"c{k}" for k in range(array.shape[1]))
    np.savetxt(path, array, delimiter=",", header=heads, comments="", fmt="%.17g")


def ours(folder: Path) -> dict[str, tuple[float, list[float]]]:
    """Our seconds and values; inputs of R are written."""
    rng = np.random.default_rng(1)
    points = dps.PointPattern(rng.uniform(0, 1, (10_000, 2)), UNIT)
    save(folder / "points.csv", points.xy)
    network = soho_streets()
    edge = rng.choice(len(network.lengths), size=2000, p=network.lengths / network.length)
    along = rng.random(2000)
    on = dps.PointPattern.at(np.column_stack([edge, along * network.lengths[edge]]), network)
    save(folder / "vertices.csv", network.vertices)
    save(folder / "edges.csv", network.edges)
    save(folder / "positions.csv", np.column_stack([edge, along, on.xy]))
    s = np.linspace(0, network.extent / 4, 101)
    save(folder / "distances.csv", s[:, None])
    r = np.linspace(0, 0.178, 513)
    middle = (np.arange(PIXELS) + 0.5) / PIXELS
    nodes = np.column_stack([each.ravel() for each in np.meshgrid(middle, middle)])
    mesh = regular_triangulation(UNIT, shape=(PIXELS + 1, PIXELS + 1))
    flat = PiecewiseConstant(mesh, np.full(len(mesh.elements), 1e6))
    found = {}
    seconds, k = cpu(lambda: k_function(points, r))
    found["k"] = seconds, list(k.k[[128, 256, 512]])
    seconds, z = cpu(lambda: kernel_intensity(points, SIGMA, correction="none")(nodes))
    found["kernel"] = seconds, [float(z.reshape(PIXELS, PIXELS)[j, j]) for j in (16, 63, 99)]
    seconds, along_streets = cpu(lambda: network_k(on, s))
    found["network"] = seconds, list(along_streets.k[[25, 50, 100]])
    seconds, _ = cpu(lambda: poisson_pattern(flat, np.random.default_rng(2)))
    found["poisson"] = seconds, [1e6]
    return found


def theirs(folder: Path) -> dict[str, tuple[float, list[float]]]:
    """Seconds and values of spatstat; nothing where it cannot be run."""
    program = shutil.which("Rscript")
    if program is None:
        return {}
    script = folder / "run.R"
    script.write_text(SCRIPT % (RUNS, SIGMA, PIXELS, PIXELS))
    done = subprocess.run([program, str(script), str(folder)], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        print(done.stderr)
        return {}
    found = {}
    for line in done.stdout.splitlines():
        name, *numbers = line.split()
        found[name] = float(numbers[0]), [float(each) for each in numbers[1:]]
    return found


WORDS = {
    "k": "K-function of 10 000 points, isotropic correction, 513 distances",
    "kernel": f"Gaussian kernel intensity of 10 000 points at {PIXELS} x {PIXELS} places",
    "network": "K-function of 2000 points along the streets of Soho, 101 distances",
    "poisson": f"Poisson pattern of a million points from {PIXELS} x {PIXELS} squares",
}


def main() -> None:
    given = command_line(str(__doc__)).parse_args()
    with TemporaryDirectory() as name:
        mine, other = ours(Path(name)), theirs(Path(name))
    lines = []
    for key, words in WORDS.items():
        seconds, values = mine[key]
        if key not in other:
            lines.append([words, f"{seconds:.3f} s", "no R at hand", "", ""])
            continue
        rival, compared = other[key]
        off = "" if key == "poisson" else f"{np.abs(np.array(values) / np.array(compared) - 1).max():.0e}"
        lines.append([words, f"{seconds:.3f} s", f"{rival:.3f} s", f"{seconds / rival:.2g}", off])
    made = table(HEADS, lines)
    print(*made, sep="\n")
    fill(given.out, "spatstat", made)


if __name__ == "__main__":
    main()

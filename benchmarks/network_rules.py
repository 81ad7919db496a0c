"""Regret of the default rules on streets: each against the best of the candidates it chooses from, after the fact.

Cases, scores and what follows stand in docs/results/network_rules.md, whose tables are filled; its sentences are
written by hand, so read them again beside new tables.

    OMP_NUM_THREADS=1 python benchmarks/network_rules.py --out docs/results/network_rules.md
"""

import itertools
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from pages import command_line, fill, table
from utility import apart

import dpppsynth as dps
from dpppsynth.contract.additive_noise import LaplaceMasses, cell_counts
from dpppsynth.contract.rules import DRAW_SIGMA
from dpppsynth.contract.rules import network_rules as rules
from dpppsynth.contract.rules.planar_rules import box_shape
from dpppsynth.inference.lgcp_inference import FIELD_SIGMA as SIGMA
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.linear_network.heat_kernels import diffusion_matrix
from dpppsynth.mechanisms.lgcp.bound.increments import increment_sd
from dpppsynth.mechanisms.lgcp.draw_statistic import INTERCEPT_SD
from dpppsynth.models import PoweredExponential, trace_mesh
from dpppsynth.models.covariances import factor
from dpppsynth.models.laplace_approximation import laplace_posterior
from dpppsynth.models.lgcp import tent_masses
from dpppsynth.models.likelihood import NoisyField, NoisyMasses
from dpppsynth.models.recipes import around
from dpppsynth.models.target_posterior import FieldPrior
from dpppsynth.privacy.profiles import gaussian_mu
from dpppsynth.spatial.intensity import LogLinear, PiecewiseConstant, PiecewiseLinear
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.sampling import binomial_pattern
from dpppsynth.spatial.simplex import norm_sub

DELTA, DRAWS, BUDGETS = 1e-6, 100, (0.1, 1.0, 10.0)
# Candidates: tents along the longer side; lengths as shares of the extent; standard deviations of a drawn field.
SIDES = (3, 4, 6, 8, 11, 15, 20)
MIXTURES = {
    ".1 to .8 (rule)": rules.LENGTH_SCALES,
    ".05 to .8": (0.05, 0.1, 0.2, 0.4, 0.8),
    ".1 to 1.6": (0.1, 0.2, 0.4, 0.8, 1.6),
    **{f"{share:g} alone": (share,) for share in (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)},
}
SCALES = tuple(sorted(set().union(*MIXTURES.values())))
CELLS, STREET_TENTS = (0.012, 0.025, 0.05, 0.1, 0.2), (0.075, 0.15)
LENGTHS, CAPS = (0.2, 0.4, 1.2, 2.5), (1.0, DRAW_SIGMA)
BANDWIDTHS = (0.02, 0.03, 0.045, 0.07, 0.1, 0.15, 0.2)
SEGMENTS = (0.3, 0.15, rules.FIELD_SEGMENT, 0.04)

# Mechanism, candidate, whether it is the rule's choice, estimated intensity at the places.
Tried = Iterator[tuple[str, str, bool, np.ndarray]]
seconds: dict[str, list[float]] = defaultdict(list)


@dataclass(frozen=True, eq=False)
class Town:
    """A network, places along it where estimates are compared, and true intensities."""

    name: str
    network: LinearNetwork
    points: np.ndarray

    @cached_property
    def fine(self) -> Mesh:
        return network_mesh(self.network, self.network.extent / 50)

    @cached_property
    def places(self) -> np.ndarray:
        return np.column_stack([self.fine.edge, (self.fine.start + self.fine.end) / 2])

    @cached_property
    def truths(self) -> dict[str, np.ndarray]:
        """Logarithms of intensities at the vertices of the fine mesh."""
        extent, xy, rng = self.network.extent, self.fine.vertices, np.random.default_rng(11)
        near = ((xy[:, None] - self.points) ** 2).sum(axis=2)
        x0, y0, x1, y1 = self.network.bounds
        spot = ((xy - [x0 + 0.6 * (x1 - x0), y0 + 0.45 * (y1 - y0)]) ** 2).sum(axis=1)
        fields = {"homogeneous": np.zeros(len(xy))}
        fields["smoothed points"] = np.log(np.exp(-near / (2 * (0.09 * extent) ** 2)).sum(axis=1) + 1e-3)
        for share in (0.15, 0.6):
            root = factor(PoweredExponential(1.0, share * extent, 1.0).matrix(self.fine))
            fields[f"field, l = {share:g}"] = root @ rng.standard_normal(root.shape[1])
        fields["hot spot"] = np.log(0.3 + 6 * np.exp(-spot / (2 * (0.1 * extent) ** 2)))
        return fields

    def distance(self, values: np.ndarray, truth: np.ndarray) -> float:
        """Total variation distance between intensities (places,) and one given on the fine mesh."""
        exact = LogLinear(self.fine, truth).at(*located(self.fine, self.places))
        return apart(values * self.fine.element_measure, exact * self.fine.element_measure)


@dataclass(frozen=True, eq=False)
class Case:
    """A pattern and a budget."""

    town: Town
    pattern: dps.PointPattern
    relation: Any
    epsilon: float
    rng: np.random.Generator

    @property
    def n(self) -> int:
        return len(self.pattern)

    def noisy(self, basis: str, mesh: Mesh) -> Any:
        return LaplaceMasses(basis, mesh, self.relation, self.n, None, self.epsilon).measure(self.pattern, self.rng)

    def projected(self, basis: str, mesh: Mesh) -> np.ndarray:
        masses = norm_sub(self.noisy(basis, mesh).masses, float(self.n))
        if basis == "cells":
            return PiecewiseConstant(mesh, masses / mesh.element_measure).at(*located(mesh, self.town.places))
        return PiecewiseLinear(mesh, masses / mesh.measure).at(*located(mesh, self.town.places))

    def likelihood(self, tents: Mesh, field: Mesh) -> NoisyMasses:
        noisy = self.noisy("tents", tents)
        return NoisyMasses(noisy.masses, noisy.noise_scale, field.measure, shares(field, tents), self.n)

    def averages(
        self, likelihood: Any, field: Mesh, scales: tuple[float, ...]
    ) -> dict[float, tuple[np.ndarray, float]]:
        """Posterior mean intensity (places,) and log evidence, by length scale."""
        found = {}
        for share in scales:
            fit = laplace_posterior(likelihood, root(self.town, field, share))
            drawn = fit.draw(DRAWS, self.rng)
            drawn -= np.log(np.exp(drawn) @ field.measure)[:, None]
            mean = np.exp(values_at(self.town, field) @ drawn.T).mean(axis=1)
            found[share] = mean, fit.log_evidence
        return found


@cache
def tents_mesh(town: Town, longest: int) -> Mesh:
    return trace_mesh(town.network, shape=box_shape(around(town.network), longest))


@cache
def street_mesh(town: Town, share: float) -> Mesh:
    return network_mesh(town.network, share * town.network.extent)


@cache
def values_at(town: Town, mesh: Mesh) -> Any:
    return mesh.basis(town.places)


@cache
def shares(field: Mesh, tents: Mesh) -> np.ndarray:
    return field.shares(tents).toarray()


@cache
def root(town: Town, mesh: Mesh, share: float) -> np.ndarray:
    return factor(PoweredExponential(SIGMA, share * town.network.extent, 1.0).matrix(mesh))


@cache
def heat(town: Town, mesh: Mesh, share: float) -> np.ndarray:
    return diffusion_matrix(mesh, share * town.network.extent)


@cache
def increment(town: Town, mesh: Mesh, share: float, reach: float) -> float:
    matrix = PoweredExponential(1.0, share * town.network.extent, 1.0).matrix(mesh)
    return increment_sd(mesh, matrix, min(reach, town.network.diameter))


def located(mesh: Mesh, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    element = mesh.locate(places)
    return element, np.clip(mesh.weights(element, places), 0, None), places


def mixed(found: dict[float, tuple[np.ndarray, float]], chosen: tuple[float, ...]) -> np.ndarray:
    """Average over length scales with the weights of `LGCPInference`."""
    log_weight = np.array([found[share][1] for share in chosen]) + 2 * np.log(chosen)
    weight = np.exp(log_weight - log_weight.max())
    return weight @ np.array([found[share][0] for share in chosen]) / weight.sum()


def tents(case: Case) -> Tried:
    """Masses on triangles: projected, with a posterior behind, and counts of the same triangles."""
    net, field = case.town.network, street_mesh(case.town, rules.FIELD_SEGMENT)
    scale = rules.length_scale(net, case.n)
    behind = max(rules.tents_shape(net, case.n, case.epsilon, case.relation, scale=scale))
    bare = max(rules.tents_shape(net, case.n, case.epsilon, case.relation))
    for m in sorted({*SIDES, behind, bare}):
        mesh = tents_mesh(case.town, m)
        yield "tents, projected", f"{m}", m == bare, case.projected("tents", mesh)
        yield "counts per triangle", f"{m}", False, case.projected("cells", mesh)
        found = case.averages(case.likelihood(mesh, field), field, SCALES)
        yield "tents + posterior", f"{m}", m == behind, mixed(found, rules.LENGTH_SCALES)
        if m == behind:
            for name, chosen in MIXTURES.items():
                yield "length scales", name, "rule" in name, mixed(found, chosen)


def along(case: Case) -> Tried:
    """P1 tents along the streets, whose shortest edges make every move cost 2 points."""
    for share in STREET_TENTS:
        mesh = street_mesh(case.town, share)
        yield "street tents, projected", f"{share:g}", False, case.projected("tents", mesh)
        found = case.averages(case.likelihood(mesh, mesh), mesh, rules.LENGTH_SCALES)
        yield "street tents + posterior", f"{share:g}", False, mixed(found, rules.LENGTH_SCALES)


def cells(case: Case) -> Tried:
    meshes = {f"{share:g}": street_mesh(case.town, share) for share in CELLS}
    meshes["rule"] = rules.mesh(case.town.network, "cells", case.n, case.epsilon, case.relation)
    for name, mesh in meshes.items():
        yield "counts per segment", name, name == "rule", case.projected("cells", mesh)


def fields(case: Case) -> Tried:
    """Smoothed masses with Gaussian noise; then as `LGCPInference` infers, with one round instead of two."""
    mesh, town = street_mesh(case.town, rules.FIELD_SEGMENT), case.town
    mu, masses = gaussian_mu(case.epsilon, DELTA), tent_masses(case.pattern, mesh)
    uniform = mesh.measure * case.n / mesh.measure.sum()
    rule = rules.length_scale(town.network, case.n) / town.network.extent
    for share in (rule, *LENGTHS):
        columns = mu / increment(town, mesh, share, case.relation.reach) / SIGMA * root(town, mesh, share)
        values = columns.T @ masses + case.rng.standard_normal(columns.shape[1])
        likelihood = NoisyField(values, columns, 1.0, mesh.measure, np.eye(len(uniform)), case.n, uniform)
        start = laplace_posterior(likelihood, root(town, mesh, 0.2))
        likelihood = likelihood.at(likelihood.vertex_masses(start.field_mode[None])[0])
        found = case.averages(likelihood, mesh, rules.LENGTH_SCALES)
        name = "rule" if share == rule else f"{share:g}"
        yield "field + posterior", name, share == rule, mixed(found, rules.LENGTH_SCALES)


def draws(case: Case) -> Tried:
    """One draw from the Gaussian approximation of the posterior at its mode."""
    mesh, town = street_mesh(case.town, rules.FIELD_SEGMENT), case.town
    mu, centre = gaussian_mu(case.epsilon, DELTA), float(np.log(case.n / town.network.length))
    masses, basis = tent_masses(case.pattern, mesh), values_at(town, mesh)
    rule = rules.length_scale(town.network, case.n) / town.network.extent
    for share, cap in itertools.product((rule, *LENGTHS), CAPS):
        sigma = min(cap, mu / increment(town, mesh, share, case.relation.reach))
        prior = FieldPrior.gaussian(sigma / SIGMA * root(town, mesh, share), mesh.measure, centre, INTERCEPT_SD)
        posterior = prior.posterior(masses)
        mode = posterior.mode()
        half = np.linalg.cholesky(posterior.information(mode))
        z = mode + np.linalg.solve(half.T, case.rng.standard_normal(len(mode)))
        name = f"{'rule' if share == rule else f'{share:g}'}, sigma <= {cap:g}"
        yield "posterior draw", name, share == rule and cap == DRAW_SIGMA, np.exp(basis @ posterior.field(z))


def kernels(case: Case) -> Tried:
    mesh, town = street_mesh(case.town, rules.FIELD_SEGMENT), case.town
    count = cell_counts(mesh, case.pattern.positions)
    rule = rules.bandwidth(town.network, case.n) / town.network.extent
    for share in (rule, *BANDWIDTHS):
        values = count @ heat(town, mesh, share) / mesh.element_measure
        name = "rule" if share == rule else f"{share:g}"
        yield "kernel, no privacy", name, share == rule, values[mesh.locate(town.places)]


def segments(case: Case) -> Tried:
    """The field behind tents on coarser and finer segments."""
    if case.epsilon < 1 or case.n > 400:
        return
    for share in SEGMENTS:
        field = street_mesh(case.town, share)
        likelihood = case.likelihood(tents_mesh(case.town, 11), field)
        root(case.town, field, 0.2)
        start = time.perf_counter()
        found = case.averages(likelihood, field, rules.LENGTH_SCALES)
        seconds[f"{share:g}"].append(time.perf_counter() - start)
        yield "segments of the field", f"{share:g}", share == rules.FIELD_SEGMENT, mixed(found, rules.LENGTH_SCALES)


STUDIES = {
    "tents": tents,
    "along": along,
    "cells": cells,
    "fields": fields,
    "draws": draws,
    "kernels": kernels,
    "segments": segments,
}
# Studies of moves up to an extent / 40 alone.
NEAR = ("fields", "draws", "kernels", "segments")

# By mechanism and case (town, truth, n, radius, epsilon): distances by candidate, and the rule's candidate.
Results = dict[str, dict[tuple[str, str, int, str, float], dict[str, list[float]]]]


def towns() -> list[Town]:
    deaths, crimes = dps.datasets.soho_deaths(on="streets"), dps.datasets.geodanet_crimes(on="streets")
    return [Town("Soho", deaths.domain, deaths.xy), Town("Arizona", crimes.domain, crimes.xy)]


def run(studies: list[str], points: list[int], repeats: int) -> Results:
    results: Results = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for town in towns():
        for truth, n, radius, epsilon in itertools.product(town.truths, points, ("near", "anywhere"), BUDGETS):
            relation = dps.AlphaNeighbours(town.network.extent / 40) if radius == "near" else dps.ReplaceOne()
            for repeat in range(repeats):
                rng = np.random.default_rng([n, int(10 * epsilon), repeat])
                drawn = binomial_pattern(LogLinear(town.fine, town.truths[truth]), n, rng)
                case = Case(town, dps.PointPattern.at(drawn.positions, town.network), relation, epsilon, rng)
                for study in studies:
                    if study in NEAR and radius != "near":
                        continue
                    for mechanism, candidate, chosen, values in STUDIES[study](case):
                        distance = town.distance(values, town.truths[truth])
                        found = results[mechanism][town.name, truth, n, radius, epsilon]
                        found[candidate].append(distance)
                        if chosen:
                            found["chosen"].append(distance)
            print(town.name, truth, n, radius, epsilon, flush=True)
    return results


def geometric(values: Any) -> float:
    values = list(values)
    return float(np.exp(np.mean(np.log(values)))) if values else float("nan")


def uniform() -> float:
    return geometric(
        town.distance(np.ones(len(town.places)), truth)
        for town in towns()
        for name, truth in town.truths.items()
        if name != "homogeneous"
    )


def summary(results: Results) -> list[str]:
    """Distances of the rules' choices by radius and budget, and ratios to the best candidates."""
    kinds = list(itertools.product(("near", "anywhere"), BUDGETS))
    lines = []
    for mechanism in (m for m in results if m not in ("length scales", "segments of the field")):
        cases = {key: {c: np.mean(v) for c, v in found.items()} for key, found in results[mechanism].items()}
        ruled = any("chosen" in found for found in cases.values())
        score = {key: found["chosen"] if ruled else min(found.values()) for key, found in cases.items()}
        varied = {key: found for key, found in cases.items() if key[1] != "homogeneous"}
        row = [geometric(score[k] for k in varied if k[3:] == kind) for kind in kinds]
        row.append(geometric(score[k] for k in cases if k not in varied))
        ratio = geometric(score[k] / min(found.values()) for k, found in varied.items())
        words = ["" if np.isnan(each) else f"{each:.3f}" for each in row]
        lines.append([mechanism, *words, f"{ratio:.2f}" if ruled else "best"])
    return table(["mechanism", *(f"{r}, {e:g}" for r, e in kinds), "homogeneous", "ratio"], lines)


def alternatives(results: Results) -> list[str]:
    """Ratio to the best candidate of every candidate, used in all cases, beside the rule's."""
    lines = []
    for mechanism, found in results.items():
        cases = [{c: np.mean(v) for c, v in f.items()} for k, f in found.items() if k[1] != "homogeneous"]
        common = [c for c in cases[0] if c not in ("chosen", "rule") and all(c in f for f in cases)]
        words = [f"{c}: {geometric(f[c] / min(f.values()) for f in cases):.2f}" for c in common]
        if any("chosen" in f for f in cases):
            words.insert(0, f"**rule: {geometric(f['chosen'] / min(f.values()) for f in cases if 'chosen' in f):.2f}**")
        lines.append([mechanism, "; ".join(words)])
    return table(["mechanism", "ratio of one candidate for all cases"], lines)


def paces() -> list[str]:
    """Time of one posterior average."""
    return table(["segments of the field", "time"], ([k, f"{1000 * np.mean(v):.0f} ms"] for k, v in seconds.items()))


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--points", type=int, nargs="*", default=[60, 400, 2000])
    parser.add_argument("--studies", nargs="*", default=list(STUDIES), choices=list(STUDIES))
    args = parser.parse_args()
    results = run(args.studies, args.points, args.repeats)
    print(f"A uniform intensity scores {uniform():.3f}.")
    for name, lines in (("rules", summary(results)), ("candidates", alternatives(results)), ("paces", paces())):
        print("", *lines, sep="\n")
        fill(args.out, name, lines)


if __name__ == "__main__":
    main()

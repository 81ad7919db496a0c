"""Public constructors and functions with wild arguments: a result or a documented error.

Every public callable has its good arguments here, and one or two of them are replaced by something that does not belong
there. A public name without an entry fails `test_every_public_name_is_here`.
"""

import contextlib
import datetime
import fractions
import functools
import math
import warnings

import bounded_entries
import local_entries
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fuzzing import LOOKS, fuzz

import dpppsynth as dps
from dpppsynth import evaluation, heatmaps, io, linear_network, models, privacy, simulate
from dpppsynth.core.errors import DpppsynthError, InformationWarning
from dpppsynth.spatial.offset import Offset

# There are a hundred callables; the values are the point, not their combinations.
few = settings(fuzz, max_examples=LOOKS or 6)

SQUARE = dps.Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
STREETS = dps.LinearNetwork([[0, 0], [400, 0], [400, 300], [0, 300]], [[0, 1], [1, 2], [2, 3], [3, 0]], "EPSG:27700")
RNG = np.random.default_rng(1)
MARKS = dps.Marks(dps.Types("a", [0, 1]))
POINTS, OTHERS = (dps.PointPattern(RNG.uniform(0, 1000, (20, 2)), SQUARE) for _ in range(2))
ON_STREETS = STREETS.pattern([0, 1, 1, 2], [0.1, 0.2, 0.8, 0.5])
MESH = models.regular_triangulation(SQUARE, shape=(4, 4))
SEGMENTS = linear_network.network_mesh(STREETS, 100.0)
COVARIANCE = models.PoweredExponential(1.0, 400.0)
ALPHA = privacy.AlphaNeighbours(25.0)
PROFILE = privacy.GaussianDP(0.3, 1e-6)
GUARANTEE = dps.LaplaceSynthesizer(1.0, alpha=25.0).check(SQUARE, n=20)
PERSONS = dps.PointPattern(POINTS.xy, SQUARE, {"user": np.arange(20) // 4})
BUDGETS = privacy.level_budgets(1.0, 2, 4)
MASSES = models.NoisyMasses.exact(models.tent_masses(POINTS, MESH), MESH.measure)


@functools.cache
def curves():
    return [evaluation.k_function(pattern, r=[10.0, 50.0]) for pattern in (POINTS, OTHERS)]


@functools.cache
def smooth():
    return evaluation.kernel_intensity(POINTS, 100.0)


# --- What does not belong there --------------------------------------------------------------------------------------

NUMBERS = [
    True, False, 0, -1, 7, 2**70, 10**400, 0.0, -0.0, 1e-320, 0.5, 1e308, -1e308, math.nan, math.inf, -math.inf, 1 + 2j,
    np.float32("nan"), np.int8(-1), np.bool_(True), np.float16(2), np.float64("inf"), fractions.Fraction(1, 3),
]  # fmt: skip
THINGS = [
    None, "", "x", "nan", "alpha", "EPSG:4326", "\0", "9" * 5000, b"x", object(), (), [], {}, {"a": 1}, {1, 2}, [None],
    ("x", 1), [[]], [1, 2], [[1, 2], [3]], {"type": "Polygon"}, {"name": "gaussian"}, range(3), len, int,
    datetime.date(2020, 1, 1), shapely.Point(0, 0), shapely.Polygon(), shapely.box(0, 0, 1e200, 1), pd.DataFrame(),
    pd.NA, SQUARE, POINTS, ALPHA, MESH, COVARIANCE, PROFILE, GUARANTEE,
]  # fmt: skip
ARRAYS = [
    np.array([]), np.empty((0, 2)), np.zeros(3), np.full((2, 2), np.nan), np.array([[np.inf, 1.0]]), np.array(["x"]),
    np.array([None, 1], dtype=object), np.array([[1 + 2j, 0]]), np.zeros((2, 3, 4)), np.array(5.0), -np.ones((2, 2)),
    np.ma.masked_array([[1.0, 2.0]], mask=[[True, False]]), np.array(["2020-01-01"], "datetime64[D]"),
    np.array([(1, 2)], dtype=[("a", int), ("b", int)]), np.full((2, 2), 1e308), np.array([2**63], dtype=np.uint64),
]  # fmt: skip
WILD = [*NUMBERS, *THINGS, *ARRAYS]


# --- Everything public -----------------------------------------------------------------------------------------------

FIELD = {"mesh": MESH, "covariance": COVARIANCE, "relation": ALPHA}
KERNEL = {"window": SQUARE, "relation": ALPHA, "delta": 1e-6, "patterns": 1}
BUDGET = {"relation": ALPHA, "epsilon": 1.0, "delta": 1e-6}
PAIR = {"one": POINTS, "other": OTHERS}
LOADS = {
    "x": None,
    "y": None,
    "separator": None,
    "decimal": None,
    "layer": None,
    "crs": None,
    "to_crs": None,
    "count": None,
    "snap": None,
}

GRID = RNG.dirichlet(np.ones(16), 3).reshape(3, 4, 4)

HEATMAPS = {
    "HeatmapStatistic": (
        heatmaps.HeatmapStatistic,
        {
            "mesh": models.regular_squares(SQUARE, shape=(9, 9)),
            "expected_n": None,
            "epsilon": 1.0,
            "w": 6,
            "variant": "practical",
            "decay": None,
            "user": "user",
        },
    ),
    "gaussian_heatmap": (heatmaps.gaussian_heatmap, {"p": GRID[0], "sigma": 0.1, "inside": None}),
    "emd": (heatmaps.emd, {"p": GRID[0], "q": GRID[1], "side": 2}),
    "similarity": (heatmaps.similarity, {"h": GRID[0], "g": GRID[1], "benchmark": False}),
    "pearson": (heatmaps.pearson, {"h": GRID[0], "g": GRID[1], "benchmark": False}),
    "kl": (heatmaps.kl, {"h": GRID[0], "g": GRID[1]}),
}

ENTRIES = {
    "AddRemove": (privacy.AddRemove, {"max_points_per_person": 2}),
    "AlphaNeighbours": (privacy.AlphaNeighbours, {"alpha": 25.0, "max_points_per_person": 2}),
    "AddRemovePerson.implies": (privacy.AddRemovePerson().implies, {"other": ALPHA}),
    "ReplaceOne": (privacy.ReplaceOne, {"max_points_per_person": 2}),
    "HeatmapSynthesizer": (
        dps.HeatmapSynthesizer,
        {"epsilon": 1.0, "shape": (8, 8), "w": 6, "variant": "practical", "decay": None, "user": "user"},
    ),
    "HeatmapSynthesizer.check": (
        dps.HeatmapSynthesizer(1.0, shape=(8, 8)).check, {"domain": SQUARE, "expected_n": None},
    ),
    "HeatmapSynthesizer.release": (
        dps.HeatmapSynthesizer(1.0, shape=(8, 8)).release, {"pattern": PERSONS, "rng": 1, "expected_n": 5},
    ),
    "HeatmapRelease.heatmap": (
        dps.HeatmapSynthesizer(1.0, shape=(8, 8)).release(PERSONS, 1).heatmap, {"bandwidth": 50.0},
    ),
    "MarkedSynthesizer": (
        dps.MarkedSynthesizer,
        {
            "epsilon": 1.0, "marks": MARKS, "relation": None, "spacing": 250.0, "mesh": None, "offset": None,
            "covariates": None,
        },
    ),
    "MarkedSynthesizer.check": (
        dps.MarkedSynthesizer(1.0, marks=MARKS, spacing=300.0).check,
        {"domain": SQUARE, "n": 20, "expected_n": None},
    ),
    "MarkedSynthesizer.release": (
        dps.MarkedSynthesizer(1.0, marks=MARKS, spacing=500.0).release,
        {"pattern": dps.PointPattern(POINTS.xy, SQUARE, {"a": np.arange(20) % 2}), "rng": 1},
    ),
    "Marks": (dps.Marks, {"types": dps.Types("a", [0, 1]), "times": dps.Times.day("b")}),
    "Types": (dps.Types, {"name": "a", "values": ["b", "c"]}),
    "Times": (
        dps.Times, {"name": "a", "start": 0.0, "end": 1.0, "hats": 4, "periodic": True, "unit": "days"},
    ),
    "PairSums": (
        dps.PairSums,
        {"epsilon": 1.0, "radii": (10.0, 30.0), "cap": (3, 5), "user": "user", "shares": (0.5, 0.5), "steps": 8},
    ),
    "PairSums.check": (dps.PairSums(1.0, radii=[30.0], cap=3).check, {"domain": SQUARE, "n": 5}),
    "PairSums.release": (
        dps.PairSums(1.0, radii=[30.0], cap=3, user="user").release, {"pattern": PERSONS, "rng": 1, "expected_n": 5},
    ),
    "pair_sums": (
        privacy.pair_sums, {"relation": privacy.ReplaceOne(), "caps": (3, 5), "scales": (2.0**16, 2.0**17), "bits": 10},
    ),
    "pair_sums_sensitivity": (
        privacy.pair_sums_sensitivity, {"relation": privacy.ReplaceOne(), "cap": 3, "bits": 10},
    ),
    "KernelSynthesizer": (
        dps.KernelSynthesizer,
        {"epsilon": 10.0, "delta": 1e-6, "alpha": 25.0, "relation": None, "bandwidth": None},
    ),
    "KernelSynthesizer.check": (
        dps.KernelSynthesizer(10.0, delta=1e-6, alpha=25.0).check,
        {"domain": SQUARE, "n": 20, "patterns": 1},
    ),
    "KernelSynthesizer.release": (
        dps.KernelSynthesizer(10.0, delta=1e-6, alpha=25.0).release,
        {"pattern": POINTS, "rng": 1, "patterns": 1},
    ),
    "LGCPSynthesizer": (
        dps.LGCPSynthesizer,
        {
            "epsilon": 1.0, "alpha": 25.0, "mechanism": "field", "delta": 1e-6, "sigma": None, "length_scale": 400.0,
            "covariance": None, "sampler": "auto", "mesh": MESH, "inference": "laplace", "engine": "nutpie",
            "offset": None, "covariates": None, "relation": None, "allow_large_delta": False,
        },
    ),
    "LGCPSynthesizer.check": (
        dps.LGCPSynthesizer(1.0, alpha=25.0, length_scale=400.0, mesh=MESH).check,
        {"domain": SQUARE, "n": 20, "expected_n": None},
    ),
    "LaplaceSynthesizer": (
        dps.LaplaceSynthesizer,
        {"epsilon": 1.0, "alpha": 25.0, "basis": "tents", "spacing": 250.0, "relation": None, "postprocess": "clip"},
    ),
    "LaplaceSynthesizer.check": (
        dps.LaplaceSynthesizer(1.0, alpha=25.0).check,
        {"domain": SQUARE, "n": 20, "expected_n": None},
    ),
    "LaplaceSynthesizer.release": (
        dps.LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain").release,
        {"pattern": POINTS, "rng": 1},
    ),
    "LaplaceSynthesizer.release_by": (
        dps.LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain").release_by,
        {"pattern": dps.PointPattern(POINTS.xy, SQUARE, {"a": np.arange(20) % 2}), "by": "a", "levels": [0, 1]},
    ),
    "LinearNetwork": (
        dps.LinearNetwork,
        {"vertices": STREETS.vertices, "edges": STREETS.edges, "crs": None, "lines": None, "dropped": ()},
    ),
    "LinearNetwork.from_geodataframe": (
        dps.LinearNetwork.from_geodataframe,
        {"lines": STREETS.to_geodataframe(), "crs": None, "node": False, "join": None},
    ),
    "LinearNetwork.from_geojson": (dps.LinearNetwork.from_geojson, {"data": STREETS.to_geojson()}),
    "LinearNetwork.from_networkx": (dps.LinearNetwork.from_networkx, {"graph": STREETS.to_networkx(), "crs": None}),
    "LinearNetwork.pattern": (STREETS.pattern, {"edge": [0, 1], "t": [0.5, 0.2]}),
    "LinearNetwork.snap": (STREETS.snap, {"xy": [[1.0, 2.0]], "tolerance": 5.0}),
    "Mesh": (
        dps.Mesh.from_arrays, {"vertices": MESH.vertices, "elements": MESH.elements, "domain": SQUARE},
    ),
    "PointPattern": (dps.PointPattern, {"xy": POINTS.xy, "domain": SQUARE, "marks": {"a": range(20)}}),
    "PointPattern.synthetic": (dps.PointPattern.synthetic, {"xy": POINTS.xy, "domain": SQUARE, "marks": None}),
    "PointPattern.at": (dps.PointPattern.at, {"positions": [[0.0, 1.0]], "domain": STREETS, "marks": None}),
    "PointPattern.from_geodataframe": (
        dps.PointPattern.from_geodataframe,
        {"gdf": POINTS.to_geodataframe(), "domain": SQUARE, "count": None, "marks": (), "to_crs": None, "snap": None},
    ),
    "Window": (dps.Window, {"geometry": SQUARE.geometry, "crs": "EPSG:27700"}),
    "Window.rectangle": (dps.Window.rectangle, {"x0": 0, "y0": 0, "x1": 1, "y1": 1, "crs": None}),
    "Window.polygon": (dps.Window.polygon, {"geometry": SQUARE.geometry, "crs": None}),
    "Window.from_geojson": (dps.Window.from_geojson, {"document": SQUARE.to_geojson()}),
    "Window.contains": (SQUARE.contains, {"xy": [[1.0, 2.0]]}),
    "Offset": (Offset, {"polygons": [SQUARE.geometry], "values": [1.0]}),
    "Offset.from_grid": (
        Offset.from_grid,
        {"values": [[1.0, 2.0]], "bounds": (0, 0, 1, 1), "as_": "counts", "crs": None, "fill": None},
    ),
    "people_within": (
        privacy.people_within,
        {
            "population": dps.Offset.from_grid([[1.0, 2.0]], (0, 0, 1000, 1000), "counts"), "domain": SQUARE,
            "radius": 50.0,
        },
    ),
    "Covariates": (dps.Covariates, {"layers": {"east": lambda xy: xy[:, 0]}}),
    "Offset.from_geotiff": (Offset.from_geotiff, {"path": "none.tif", "as_": "counts", "band": 1, "fill": None}),
    "load_release": (dps.load_release, {"path": "none"}),
    "write_report": (dps.write_report, {"folder": "none", "out": None}),
    "recommend": (
        dps.recommend,
        {"domain": SQUARE, "n": 100, "epsilon": 1.0, "delta": 1e-6, "alpha": 25.0, "relation": None},
    ),
    "read_network": (io.read_network, {"path": "none.gpkg", "crs": None, "to_crs": None, "join": None}),
    "read_pattern": (io.read_pattern, {"path": "none.csv", "domain": SQUARE, "marks": (), **LOADS}),
    "read_batches": (io.read_batches, {"path": "none.csv", "domain": SQUARE, "described": None, **LOADS}),
    "require_head": (io.require_head, {"path": "none.csv", "domain": SQUARE, "marks": ()}),
    "read_synthetic": (io.read_synthetic, {"path": "none.csv", "domain": SQUARE, "marks": ()}),
    "read_window": (io.read_window, {"path": "none.gpkg", "crs": None, "to_crs": None}),
    "inspect_points": (io.inspect_points, {"path": "none.csv", "domain": SQUARE, "report_to": ".", **LOADS}),
    "StreetNames.read": (io.StreetNames.read, {"path": "none.gpkg", "column": "name", "network": STREETS, "crs": None}),
    "write_pattern": (io.write_pattern, {"pattern": POINTS, "path": "none/none.csv"}),
    # Privacy
    "ApproximateDP": (privacy.ApproximateDP, {"level": 1.0, "slack": 1e-6}),
    "GaussianDP": (privacy.GaussianDP, {"mu": 1.0, "at": 1e-6}),
    "PoissonGaussianDP": (privacy.PoissonGaussianDP, {"ratio": 0.1, "rate": 3.0, "at": 1e-6}),
    "PureDP": (privacy.PureDP, {"level": 1.0}),
    "Composed": (privacy.Composed, {"parts": (PROFILE, PROFILE), "at": 1e-6}),
    "DiscreteLosses": (privacy.DiscreteLosses, {"rows": ((0.0, 0.5), (1.0, 1e-6)), "at": 1e-6}),
    "CappedRelation": (privacy.CappedRelation, {"max_points_per_person": 2}),
    "Relation.implies": (privacy.Relation().implies, {"other": ALPHA}),
    "Guarantee": (
        privacy.Guarantee,
        {"relation": ALPHA, "profile": PROFILE, "theorem": "x", "assumptions": ("x",), "by_distance": ((1.0, 1.0),)},
    ),
    "increment_sd": (privacy.increment_sd, {"mesh": MESH, "covariance_matrix": np.eye(16), "reach": 25.0}),
    "point_sd": (privacy.point_sd, {"covariance_matrix": np.eye(16)}),
    "Guarantee.epsilon": (GUARANTEE.epsilon, {"delta": 0.0}),
    "Guarantee.delta": (GUARANTEE.delta, {"epsilon": 1.0}),
    "compose": (privacy.compose, {"profiles": [PROFILE, PROFILE], "delta": 1e-5}),
    "gaussian_filter": (privacy.gaussian_filter, {"profiles": [PROFILE, PROFILE]}),
    "adaptive": (privacy.adaptive, {"profiles": [PROFILE, PROFILE], "delta": 1e-5}),
    "largest": (privacy.largest, {"profile": PROFILE, "spent": [PROFILE], "epsilon": 2.0, "delta": 1e-5}),
    "LevelBudgets": (privacy.LevelBudgets, {"first": 0, "epsilons": (0.5, 0.5)}),
    "heatmap": (privacy.heatmap, {"scales": (2.0**21, 2.0**21), "bits": 20, "user": "user"}),
    "level_budgets": (
        privacy.level_budgets, {"epsilon": 1.0, "depth": 8, "w": 20, "variant": "practical", "decay": None},
    ),
    "level_scales": (privacy.level_scales, {"budgets": BUDGETS, "bits": 20}),
    "start_level": (privacy.start_level, {"w": 20, "depth": 8}),
    "verify": (privacy.verify, {"path": "none"}),
    "counts": (privacy.counts, {"relation": ALPHA, "scale": 2.0, "domain": SQUARE}),
    "counts_sensitivity": (privacy.counts_sensitivity, {"relation": ALPHA}),
    "tents": (privacy.tents, {"mesh": MESH, "relation": ALPHA, "scale": 1e6}),
    "tents_sensitivity": (privacy.tents_sensitivity, {"mesh": MESH, "relation": ALPHA}),
    "delta_gaussian": (privacy.delta_gaussian, {"epsilon": 1.0, "mu": 1.0}),
    "gaussian_mu": (privacy.gaussian_mu, {"epsilon": 1.0, "delta": 1e-6}),
    "require_small_delta": (privacy.require_small_delta, {"delta": 1e-6, "n": 100}),
    "field_sensitivity": (privacy.field_sensitivity, FIELD),
    "field_statistic": (privacy.field_statistic, {**FIELD, "delta": 1e-6}),
    "largest_field_sigma": (privacy.largest_field_sigma, {**FIELD, "mu": 0.3}),
    "diffusion": (privacy.diffusion, {"mesh": SEGMENTS, "relation": ALPHA, "bandwidth": 200.0, "delta": 1e-6}),
    "smallest_diffusion_bandwidth": (
        privacy.smallest_diffusion_bandwidth, {"mesh": SEGMENTS, "relation": ALPHA, "epsilon": 10.0, "delta": 1e-6},
    ),
    "superposition": (privacy.superposition, {**KERNEL, "bandwidth": 200.0}),
    "smallest_bandwidth": (privacy.smallest_bandwidth, {**KERNEL, "epsilon": 10.0}),
    "kim_lim_36": (privacy.kim_lim_36, {**KERNEL, "n": 100, "bandwidth": 200.0, "epsilon": 10.0}),
    "smallest_bandwidth_36": (privacy.smallest_bandwidth_36, {**KERNEL, "n": 100, "epsilon": 10.0}),
    "kim_lim_38": (privacy.kim_lim_38, {**FIELD, "epsilon": 200.0, "ratio": None}),
    "kim_lim_39": (privacy.kim_lim_39, {**FIELD, "epsilon": 200.0, "ratio": None}),
    "kim_lim_ratio": (privacy.kim_lim_ratio, {"mesh": MESH, **BUDGET}),
    "carries_no_information": (privacy.carries_no_information, {"sigma": 0.1}),
    "posterior_mu": (privacy.posterior_mu, FIELD),
    "theorem_a": (privacy.theorem_a, {**FIELD, "delta": 1e-6, "sampler": "exact"}),
    "lipschitz": (privacy.lipschitz, {"mesh": MESH, "relation": ALPHA, "slope": 0.01}),
    "largest_sigma": (privacy.largest_sigma, {**FIELD, "mu": 0.3}),
    "largest_intercept_sd": (privacy.largest_intercept_sd, {"relation": privacy.AddRemove(), "mu": 0.5, "sigma": 0.1}),
    "laplace_noise": (privacy.laplace_noise, {"scale": 2.0, "sensitivity": 1, "epsilon": 1.0, "rng": 1}),
    "laplace_scale": (privacy.laplace_scale, {"sensitivity": 1, "epsilon": 1.0}),
    "parallel": (privacy.parallel, {"guarantees": [GUARANTEE, GUARANTEE], "by": "year"}),
    "guarantee_from_dict": (privacy.guarantee_from_dict, {"data": GUARANTEE.to_dict()}),
    "profile_from_dict": (privacy.profile_from_dict, {"data": PROFILE.to_dict()}),
    "relation_from_dict": (privacy.relation_from_dict, {"data": ALPHA.to_dict()}),
    # Evaluation
    "combine": (
        dps.combine,
        {"patterns": ["synthetic_draw_000"] * 3, "estimates": [0.1, 0.2, 0.3], "variances": [0.01] * 3, "kept": 1.0},
    ),
    "poisson": (simulate.poisson, {"domain": SQUARE, "intensity": 1e-5, "largest": None, "rng": 1}),
    "thomas": (simulate.thomas, {"domain": STREETS, "parents": 0.01, "size": 2.0, "spread": 10.0, "rng": 1}),
    "lgcp": (
        simulate.lgcp, {"domain": SQUARE, "intensity": 1e-5, "covariance": COVARIANCE, "mesh": MESH, "rng": 1},
    ),
    "default_distances": (evaluation.default_distances, {"domain": SQUARE, "steps": 5}),
    "envelope": (evaluation.envelope, {"observed": curves()[0], "simulated": curves(), "rank": 1}),
    "evaluate": (
        evaluation.evaluate,
        {"original": POINTS, "synthetic": OTHERS, "r": [10.0], "side": 500.0, "bandwidth": 200.0, "rng": 0},
    ),
    "grid_wasserstein": (evaluation.grid_wasserstein, {"p": np.ones((2, 2)), "q": np.ones((2, 2)), "spacing": (1, 1)}),
    "k_function": (evaluation.k_function, {"pattern": POINTS, "r": [10.0], "intensity": None, "correction": None}),
    "kernel_intensity": (evaluation.kernel_intensity, {"pattern": POINTS, "bandwidth": 50.0, "correction": None}),
    "mean_integrated_squared_error": (
        evaluation.mean_integrated_squared_error, {"originals": curves(), "synthetics": curves()},
    ),
    "misplaced_share": (evaluation.misplaced_share, {"original": POINTS, "synthetic": OTHERS, "side": 250.0}),
    "pair_correlation": (evaluation.pair_correlation, {"pattern": POINTS, "r": [10.0], "bandwidth": 20.0}),
    "propensity_mse": (
        evaluation.propensity_mse,
        {"original": POINTS, "synthetic": OTHERS, "original_intensity": smooth(), "synthetic_intensity": smooth()},
    ),
    "total_variation": (evaluation.total_variation, {"one": smooth(), "other": smooth(), "domain": SQUARE}),
    "wasserstein": (evaluation.wasserstein, {**PAIR, "method": "exact"}),
    # Networks
    "linear_network.k_function": (linear_network.k_function, {"pattern": ON_STREETS, "r": [10.0]}),
    "linear_network.pair_correlation": (
        linear_network.pair_correlation, {"pattern": ON_STREETS, "r": [10.0], "bandwidth": 20.0},
    ),
    "network_mesh": (linear_network.network_mesh, {"network": STREETS, "resolution": 50.0}),
    # Models
    "GeneralisedCauchy": (
        models.GeneralisedCauchy, {"sigma": 1.0, "length_scale": 100.0, "power": 1.0, "tail": 1.0},
    ),
    "Matern": (models.Matern, {"sigma": 1.0, "length_scale": 100.0, "smoothness": 1.5}),
    "SparseMatern": (models.SparseMatern, {"sigma": 1.0, "range": 100.0, "smoothness": 1.0}),
    "PoweredExponential": (models.PoweredExponential, {"sigma": 1.0, "length_scale": 100.0}),
    "covariance_from_dict": (models.covariance_from_dict, {"data": COVARIANCE.to_dict()}),
    "domain_from_geojson": (models.domain_from_geojson, {"data": SQUARE.to_geojson()}),
    "mesh_from_recipe": (models.mesh_from_recipe, {"recipe": MESH.recipe, "domain": SQUARE}),
    "dual_measure": (models.dual_measure, {"mesh": MESH, "quadrature": "voronoi"}),
    "dual_mesh": (models.dual_mesh, {"domain": SQUARE, "mesh": MESH}),
    "tent_masses": (models.tent_masses, {"pattern": POINTS, "mesh": MESH}),
    "refine": (models.refine, {"mesh": MESH, "factor": 2}),
    "regular_squares": (models.regular_squares, {"window": SQUARE, "spacing": None, "shape": (3, 3)}),
    "regular_triangulation": (models.regular_triangulation, {"window": SQUARE, "spacing": 250.0, "shape": None}),
    "trace_mesh": (models.trace_mesh, {"network": STREETS, "spacing": None, "shape": (4, 4)}),
    "factor": (models.factor, {"covariance": np.eye(3)}),
    "square_root": (models.square_root, {"covariance": np.eye(3)}),
}  # fmt: skip

ENTRIES |= HEATMAPS | local_entries.ALL | bounded_entries.ENTRIES


# Results that the package makes, constants and modules, and what takes such results alone.
MADE_ELSEWHERE = {
    "Audit", "BudgetError", "CoxRelease", "DpppsynthError", "InputError", "Ledger", "PoissonRelease",
    "PrivacyCheckError", "QualityError", "Recommendation", "ReleaseBlocked", "audit", "auditing",
    "datasets", "evaluation", "io", "ledger", "linear_network", "models", "plotting", "privacy", "reporting",
    "synthesizers", "FIXED_BEFOREHAND", "Check", "InformationWarning", "Profile",
    "Verification", "Envelope", "KFunction", "KernelIntensity", "PairCorrelation",
    "UtilityReport", "experiments", "simulate", "Combined",
    "Inspection", "NetworkMesh", "Chains", "Covariance", "Diagnostics",
    "LaplacePosterior", "NoisyField", "NoisyMasses", "Sampler", "build_lgcp", "build_noise_aware", "diagnose",
    "laplace_posterior", "heatmaps", "HeatmapRelease",
    "PairSumsRelease", "MarkedRelease", "Crowd", "PointBatches", "kept_slope",
} | local_entries.MADE | bounded_entries.MADE  # fmt: skip


@contextlib.contextmanager
def documented():
    """Errors of this package alone, and no warning but that of a release without information."""
    with warnings.catch_warnings(), contextlib.suppress(DpppsynthError):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", InformationWarning)
        yield


def test_every_public_name_is_here():
    further = *local_entries.MODULES, *bounded_entries.MODULES
    modules = dps, privacy, evaluation, simulate, models, io, linear_network, heatmaps, *further
    public = {name for module in modules for name in module.__all__}
    known = {name.split(".")[0] for name in ENTRIES} | MADE_ELSEWHERE
    assert not public - known, "give these an entry"
    assert public >= MADE_ELSEWHERE, "no longer public"


@pytest.mark.parametrize("name", ENTRIES)
class TestWild:
    @pytest.mark.exhaustive
    def test_good_arguments_are_understood(self, name):
        call, good = ENTRIES[name]
        with documented():
            call(**good)

    @pytest.mark.exhaustive
    @few
    @given(st.data())
    def test_wild_ones_are_refused(self, name, data):
        call, good = ENTRIES[name]
        wild = dict(good)
        for parameter in data.draw(st.lists(st.sampled_from(sorted(good)), min_size=1, max_size=2)):
            wild[parameter] = data.draw(st.sampled_from(WILD))
        with documented():
            call(**wild)

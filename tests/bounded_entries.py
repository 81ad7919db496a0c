"""Good arguments of everything public around bounded errors, for `test_fuzz_constructors`."""

import numpy as np

import dpppsynth as dps
from dpppsynth import filters, privacy, truncated
from dpppsynth.mechanisms.bounded import numeric_queries as answers

SQUARE = dps.Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
PATTERN = dps.PointPattern(np.random.default_rng(1).uniform(0, 1000, (20, 2)), SQUARE)
HALVES = dps.PointPattern(PATTERN.xy, SQUARE, {"half": np.arange(20) % 2})
NEAR = privacy.AlphaNeighbours(25.0)
COUNTS = dps.BoundedErrorSynthesizer(epsilon=2.0, max_error=20, spacing=250.0)
SERIES = COUNTS.release_by(HALVES, 1, by="half", levels=[0, 1])
MOVED = dps.PlanarLaplaceSynthesizer(1.0, alpha=25.0, max_error=500.0)
ALONG = privacy.AlphaNeighbours(25.0, max_points_per_person=20)
TRACK = dps.PlanarLaplaceSynthesizer(20.0, relation=ALONG, track=True).release(PATTERN, 1)
BUDGET = {"epsilon": 1.0, "delta": 1e-6}

ENTRIES = {
    "BoundedErrorSynthesizer": (
        dps.BoundedErrorSynthesizer,
        {"epsilon": 1.0, "delta": 1e-6, "max_error": None, "alpha": None, "spacing": 250.0, "mesh": None}
        | {"postprocess": "clip", "relation": None},
    ),
    "BoundedErrorSynthesizer.check": (COUNTS.check, {"domain": SQUARE, "n": 20, "expected_n": None}),
    "BoundedErrorSynthesizer.release": (COUNTS.release, {"pattern": PATTERN, "rng": 1}),
    "BoundedErrorSynthesizer.release_by": (COUNTS.release_by, {"pattern": HALVES, "by": "half", "levels": [0, 1]}),
    "BoundedErrorSeries.filter": (SERIES.filter, {"step": 1.0, "particles": 20, "resample": True, "rng": 1}),
    "PlanarLaplaceSynthesizer": (
        dps.PlanarLaplaceSynthesizer,
        {"epsilon": 1.0, "delta": None, "alpha": 25.0, "max_error": 500.0, "track": False, "relation": None},
    ),
    "PlanarLaplaceSynthesizer.check": (MOVED.check, {"domain": SQUARE, "n": 20, "expected_n": None}),
    "PlanarLaplaceSynthesizer.release": (MOVED.release, {"pattern": PATTERN, "rng": 1}),
    "PointRelease.filter": (TRACK.filter, {"step": 5.0, "particles": 20, "resample": True, "rng": 1}),
    "TruncatedLaplaceDP": (privacy.TruncatedLaplaceDP, {"scale": 2.0, "bound": 25, "shifts": (1, 1), "at": 1e-4}),
    "bounded_counts": (
        privacy.bounded_counts,
        {"relation": NEAR, "scale": 2.0, "max_error": 30, "delta": 1e-6, "domain": SQUARE},
    ),
    "bounded_delta": (privacy.bounded_delta, {"relation": NEAR, "scale": 2.0, "max_error": 30}),
    "smallest_max_error": (privacy.smallest_max_error, {"relation": NEAR, **BUDGET}),
    "smallest_bounded_epsilon": (
        privacy.smallest_bounded_epsilon,
        {"relation": NEAR, "delta": 1e-6, "max_error": 20},
    ),
    "moved_points": (
        privacy.moved_points,
        {"relation": NEAR, "rate": 0.04, "bound": 500.0, "farthest": 1000.0, "domain": SQUARE},
    ),
    "moved_delta": (privacy.moved_delta, {"relation": NEAR, "rate": 0.04, "bound": 500.0}),
    "smallest_move_bound": (privacy.smallest_move_bound, {"relation": NEAR, "rate": 0.04, "delta": 1e-6}),
    "truncated_laplace_noise": (
        privacy.truncated_laplace_noise,
        {"scale": 2.0, "bound": 30, "sensitivity": 1, "epsilon": 1.0, "rng": 1},
    ),
    "PlanarLaplace": (truncated.PlanarLaplace, {"epsilon": 1.0, "bound": 5.0}),
    "move": (truncated.move, {"points": np.ones((3, 2)), "epsilon": 1.0, "bound": 5.0, "step": 0.1, "rng": 1}),
    "planar_laplace_delta": (privacy.planar_laplace_delta, {"epsilon": 1.0, "max_error": 10.0, "distance": 1.0}),
    "planar_laplace_bound": (privacy.planar_laplace_bound, {**BUDGET, "distance": 1.0}),
    "truncated_laplace_delta": (
        privacy.truncated_laplace_delta,
        {"epsilon": 1.0, "max_error": 5.0, "sensitivity": 1.0, "allow_large_delta": False},
    ),
    "truncated_laplace_bound": (privacy.truncated_laplace_bound, {**BUDGET, "sensitivity": 1.0}),
}

PLACES = [[1.0, 2.0], [3.0, 4.0]]
REAL, WHOLE = truncated.TruncatedLaplace(1.0, 5.0), truncated.TruncatedGeometric(2.0, 5)
ENTRIES |= {
    "TruncatedLaplace": (truncated.TruncatedLaplace, {"scale": 1.0, "bound": 5.0}),
    "TruncatedLaplace.delta": (REAL.delta, {"epsilon": 0.5, "shift": 1.0}),
    "TruncatedLaplace.ppf": (REAL.ppf, {"u": [0.1, 0.5]}),
    "TruncatedLaplace.sample": (REAL.sample, {"size": 3, "rng": 1}),
    "TruncatedGeometric": (truncated.TruncatedGeometric, {"scale": 2.0, "bound": 5}),
    "TruncatedGeometric.pmf": (WHOLE.pmf, {"k": [0, 1]}),
    "TruncatedGeometric.delta": (WHOLE.delta, {"epsilon": 0.5, "shifts": (1, 1)}),
    "truncated_geometric_delta": (
        truncated.truncated_geometric_delta, {"epsilon": 1.0, "max_error": 5, "sensitivity": 1},
    ),
    "truncated_geometric_bound": (
        truncated.truncated_geometric_bound, {"epsilon": 1.0, "delta": 1e-5, "sensitivity": 1},
    ),
}  # fmt: skip

# Filters and answers
NOISY, NOISE, MOVES = [1.0, 3.0, 2.0], {"scale": 1.0, "bound": 5.0}, {"points": PLACES, "epsilon": 1.0, "bound": 5.0}
CHOICES = {"particles": 20, "resample": True, "rng": 1}
SHARED = {"sensitivity": 1, "queries": 1, "joint": True}
MONTHLY = dps.BoundedErrorAnswers(epsilon=1.0, max_error=20)
ENTRIES |= {
    "particle_filter": (
        filters.particle_filter,
        {"observations": NOISY, **NOISE, "step": "likely", "proposal": "gaussian", "proposal_sd": None, **CHOICES},
    ),
    "estimated_step": (filters.estimated_step, {"observations": NOISY, **NOISE}),
    "likely_step": (filters.likely_step, {"observations": NOISY, **NOISE}),
    "pooled_smoother": (filters.pooled_smoother, {"observations": NOISY, **NOISE, "step": 1.0}),
    "cartesian_filter": (filters.cartesian_filter, {**MOVES, "step": "likely", **CHOICES}),
    "polar_filter": (
        filters.polar_filter,
        {**MOVES, "origin": [0.0, 0.0], "radial_step": "likely", "angular_step": 0.1, **CHOICES},
    ),
    "BoundedErrorAnswers": (
        dps.BoundedErrorAnswers, {"epsilon": 1.0, "delta": None, "max_error": 20, **SHARED, "delta_max": 1e-3},
    ),
    "BoundedErrorAnswers.release": (MONTHLY.release, {"values": [5, 0, 2], "rng": 1}),
    "Answers.filter": (MONTHLY.release([5, 0, 2], 1).filter, {"step": "differences", **CHOICES}),
    "Answers.from_dict": (answers.Answers.from_dict, {"data": MONTHLY.release([5, 0, 2], 1).to_dict()}),
    "ErrorTerms": (answers.ErrorTerms, {"epsilon": 1.0, "max_error": 20, **SHARED}),
}  # fmt: skip

MODULES = answers, filters, truncated
# Results, which the entries above make, and modules.
MADE = {
    "BoundedErrorRelease", "PointRelease", "filters", "truncated", "Filtered",
}  # fmt: skip

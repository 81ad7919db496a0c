"""Good arguments of everything public around local mechanisms, for `test_fuzz_constructors`."""

import numpy as np

import dpppsynth as dps
from dpppsynth import client, grids, local, privacy, randomizers
from dpppsynth.mechanisms.local.trajectories.protocol import TraceProtocol
from dpppsynth.spatial import transport as histograms

SQUARE = dps.Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
PATTERN = dps.PointPattern(np.random.default_rng(1).uniform(0, 1000, (20, 2)), SQUARE)
RESPONSE = "randomized-response"
VALUES = np.arange(9).repeat(2)
INSIDE = np.arange(9) != 4


def of_randomizer(randomizer, inside=INSIDE):
    """Entries of one client law."""
    name, rng = type(randomizer).__name__, np.random.default_rng(1)
    reports = randomizer.draw(VALUES, rng)
    counts = randomizer.count(reports)
    made = {key: value for key, value in randomizer.parameters().items() if key != "kind"}
    return {
        name: (type(randomizer), made),
        f"{name}.draw": (randomizer.draw, {"values": VALUES, "rng": rng}),
        f"{name}.count": (randomizer.count, {"reports": reports}),
        f"{name}.reported": (randomizer.reported, {"counts": counts}),
        f"{name}.estimate": (
            randomizer.estimate, {"counts": counts, "n": 18, "inside": inside, **randomizer.settings()},
        ),
        f"{name}.settings": (randomizer.settings, {"tolerance": None, **randomizer.settings()}),
        f"{name}.log_ratio": (randomizer.log_ratio, {"reports": reports, "value": 1, "other": 2}),
    }  # fmt: skip


def of_oracle(randomizer):
    """Entries of one frequency oracle."""
    name, counts = type(randomizer).__name__, randomizer.count(randomizer.draw(VALUES, np.random.default_rng(1)))
    return {
        **of_randomizer(randomizer),
        f"{name}.supports": (randomizer.supports, {"counts": counts}),
        f"{name}.frequencies": (randomizer.frequencies, {"counts": counts, "n": 18}),
        f"{name}.variance": (randomizer.variance, {"count": 3, "n": 18}),
        f"{name}.fast_counts": (
            randomizer.fast_counts, {"true_counts": np.full(9, 2), "rng": np.random.default_rng(1)},
        ),
    }  # fmt: skip


LAWS = [
    randomizers.DiskArea(epsilon=1.0, cells=3, radius=1),
    randomizers.HybridArea(epsilon=1.0, cells=3, radius=1),
    randomizers.SquareWave(epsilon=1.0, cells=3, half_width=1),
    randomizers.SubsetExponential(epsilon=1.0, cells=3, subset=2),
]
TREE = randomizers.RangeHierarchyLaw(epsilon=1.0, cells=4)
ORACLES = [
    randomizers.RandomizedResponse(epsilon=1.0, domain=9),
    randomizers.HadamardResponse(epsilon=1.0, domain=9),
    randomizers.OptimizedUnary(epsilon=1.0, domain=9),
    randomizers.SymmetricUnary(epsilon=1.0, domain=9),
    randomizers.LocalHashing(epsilon=1.0, domain=9),
    randomizers.SubsetSelection(epsilon=1.0, domain=9),
    randomizers.ProjectiveResponse(epsilon=1.0, domain=9),
]
MATRIX = LAWS[0].matrix()

RANDOMIZERS = {
    "best_oracle": (randomizers.best_oracle, {"epsilon": 1.0, "domain": 9}),
    "hierarchy_side": (randomizers.hierarchy_side, {"epsilon": 1.0, "n": 900}),
    "selected_size": (randomizers.selected_size, {"epsilon": 1.0, "domain": 9}),
    "field_order": (randomizers.field_order, {"epsilon": 1.0, "domain": 9}),
    "total_variance": (randomizers.total_variance, {"oracle": ORACLES[0]}),
    "clip": (randomizers.clip, {"values": [0.2, -0.1, 0.9], "inside": [True, True, False]}),
    "norm_mul": (randomizers.norm_mul, {"values": [0.2, -0.1, 0.9], "total": 1.0, "inside": None}),
    "norm_sub": (randomizers.norm_sub, {"values": [0.2, -0.1, 0.9], "total": 1.0, "inside": None}),
    "grid_radius": (randomizers.grid_radius, {"epsilon": 1.0, "cells": 3}),
    "hash_range_rule": (randomizers.hash_range_rule, {"epsilon": 1.0}),
    "optimal_radius": (randomizers.optimal_radius, {"epsilon": 1.0, "side": 1.0}),
    "oracle": (randomizers.oracle, {"kind": RESPONSE, "epsilon": 1.0, "domain": 9}),
    "randomizer_from_dict": (randomizers.randomizer_from_dict, {"data": LAWS[0].parameters()}),
    "square_wave_half_width": (randomizers.square_wave_half_width, {"epsilon": 1.0, "cells": 3}),
    "subset_size": (randomizers.subset_size, {"epsilon": 1.0, "cells": 3}),
    "expectation_maximisation": (
        randomizers.expectation_maximisation,
        {
            "forward": MATRIX.__matmul__, "backward": MATRIX.T.__matmul__, "counts": np.ones(len(MATRIX)),
            "start": np.ones(9), "tolerance": 0.1, "max_iter": 5, "smooth": None,
        },
    ),
}  # fmt: skip
for each in LAWS:
    RANDOMIZERS |= of_randomizer(each)
RANDOMIZERS |= of_randomizer(TREE, inside=np.arange(16) != 4)
for each in ORACLES:
    RANDOMIZERS |= of_oracle(each)

BOX, QUERIES = (0, 0, 1000, 1000), [[0, 0, 500, 300], [100, 100, 900, 1000]]
EVEN = grids.uniform_grid(BOX, 3, 3)
FINER = grids.even_cells(EVEN, np.full(9, 2))
SIDES = {"epsilon": 1.0, "n": 10_000}

GRIDS = {
    "Rectangles": (grids.Rectangles, {"columns": [0.0, 1.0, 2.0], "rows": [0.0, 1.0], "inner": ()}),
    "Rectangles.locate": (FINER.locate, {"xy": PATTERN.xy}),
    "Rectangles.count": (FINER.count, {"xy": PATTERN.xy}),
    "Rectangles.overlaps": (FINER.overlaps, {"rectangles": QUERIES}),
    "Rectangles.query": (FINER.query, {"masses": np.ones(36), "rectangles": QUERIES}),
    "uniform_grid": (grids.uniform_grid, {"bounds": BOX, "columns": 3, "rows": 2}),
    "nested": (
        grids.nested,
        {"grid": grids.uniform_grid((0, 0, 2, 1), 2, 1), "lines": [([0, 1], [0, 1]), ([1, 1.5, 2], [0, 1])]},
    ),
    "adaptive_cells": (
        grids.adaptive_cells,
        {"grid": EVEN, "densities": np.ones(9), "sides": np.full(9, 2), "margin": 0.01, "pieces": "exact"},
    ),
    "even_cells": (grids.even_cells, {"grid": EVEN, "sides": np.full(9, 2)}),
    "split_ratios": (grids.split_ratios, {"grid": EVEN, "densities": np.ones(9), "margin": 0.01}),
    "pooled_levels": (
        grids.pooled_levels,
        {"grid": FINER, "first": np.ones(9), "second": np.ones(36), "first_weight": 1.0, "second_weight": 2.0},
    ),
    "group_sizes": (grids.group_sizes, {"n": 100, "sigma": 0.2}),
    "split_users": (grids.split_users, {"n": 100, "sigma": 0.2, "rng": 1}),
    "clipped_frequencies": (grids.clipped_frequencies, {"counts": [30.0, -2.0], "reports": 28}),
    "first_side": (grids.first_side, {**SIDES, "alpha": 0.02, "rounding": "nearest"}),
    "uniform_side": (grids.uniform_side, {**SIDES, "alpha": 0.1, "rounding": "nearest"}),
    "ideal_side": (grids.ideal_side, {**SIDES, "alpha": 0.1}),
    "ideal_sides": (grids.ideal_sides, {"frequencies": [0.2, 0.8], **SIDES, "alpha": 0.1, "sigma": 0.2}),
    "second_sides": (
        grids.second_sides,
        {"frequencies": [0.2, 0.8], **SIDES, "alpha": 0.1, "sigma": 0.2, "rounding": "floor"},
    ),
    "rounded_sides": (grids.rounded_sides, {"sides": [2.4, 7.7], "rounding": "nearest"}),
}  # fmt: skip

P, Q = np.ones((3, 3)), np.arange(9.0).reshape(3, 3)
HISTOGRAMS = {
    "wasserstein2": (histograms.wasserstein2, {"p": P, "q": Q, "unit": 1.0}),
    "sliced_wasserstein_points": (
        histograms.sliced_wasserstein_points, {"one": PATTERN.xy[:5], "other": PATTERN.xy[5:9], "directions": 9},
    ),
}  # fmt: skip


def of_mechanism(mechanism, place, values, rounds=False):
    """Entries of one local mechanism: its client, its aggregator, its counts."""
    name = type(mechanism).__name__
    reports = mechanism.clients(values, 1)
    counts = mechanism.aggregate(reports)
    entries = {
        f"{name}.client": (mechanism.client, {"place": place, "rng": 1}),
        f"{name}.clients": (mechanism.clients, {"values": values, "rng": 1}),
        f"{name}.aggregate": (mechanism.aggregate, {"reports": reports}),
        f"{name}.value": (mechanism.value, {"place": place}),
        f"{name}.add": (counts.__add__, {"other": counts}),
        f"{name}.radd": (counts.__radd__, {"other": counts}),
    }
    if not rounds:
        entries |= whole_mechanism(mechanism) | {f"{name}.counts.release": (counts.release, {"domain": SQUARE})}
    return entries


def whole_mechanism(mechanism):
    """Entries of a mechanism that makes releases."""
    name = type(mechanism).__name__
    return {
        f"{name}.plan": (mechanism.plan, {"domain": SQUARE, "n": 20, "expected_n": None}),
        f"{name}.check": (mechanism.check, {"domain": SQUARE, "n": 20}),
        f"{name}.release": (mechanism.release, {"pattern": PATTERN, "rng": 1}),
    }


HIERARCHY = local.RangeHierarchy(epsilon=1.0, cells=4)
CELLED = [
    local.DiskAreaMechanism(epsilon=1.0, cells=3),
    local.HybridUniformExponential(epsilon=1.0, cells=3),
    local.SEMGeoI(epsilon=1.0, cells=3),
    local.MultidimensionalSquareWave(epsilon=1.0, cells=3),
]
AREA = {"epsilon": 1.0, "cells": 3, "radius": None, "tolerance": None, "max_iter": 100, "smoothing": 0.0}
SETTINGS = {"epsilon": 1.0, "oracle": RESPONSE, "post": "clip"}
UNIFORM = local.UniformGrid(SQUARE, cells=(3, 2), **SETTINGS)
ROUNDED = {"rounding_g1": "nearest", "rounding_g2": "floor", "consistent": True, "sigma": 0.2}
PRIVAG = {"window": SQUARE, **SETTINGS, **ROUNDED, "alpha": 0.1}
AAG = {"window": SQUARE, **SETTINGS, **ROUNDED, "alpha1": 0.1, "alpha2": 0.1, "margin": 0.1, "pieces": "exact"}
ADAPTIVE = local.AdvancedAdaptiveGrid(**AAG)
BOTH = ADAPTIVE.simulate(PATTERN, rng=1)
SECOND = ADAPTIVE.second(BOTH.first, 20)
REPORTS = CELLED[0].clients([1, 2, 3], 1)
SQUARES = {"bounds": [0, 0, 1000, 1000], "cells": CELLED[0].cells}
CELLS = local.GridTrajectories(3, np.arange(20) % 9, [0, 8, 20])
LINES = local.LineTrace(epsilon=2.0, cells=3, reach=2)
TRACE = local.LDPTrace(epsilon=2.0, cells=3, max_length=5)
TRACED = TRACE.simulate(CELLS, rng=1)
ROUND = TRACE.first
SENT = ROUND.clients(CELLS, rng=1)
WALKED = dps.PointPattern(PATTERN.xy, SQUARE, {"trajectory": np.arange(20) // 10})
MODEL = TRACE.estimate(*TRACED)

LOCAL = {
    "DiskAreaMechanism": (local.DiskAreaMechanism, {**AREA, "shrink": True}),
    "HybridUniformExponential": (local.HybridUniformExponential, AREA),
    "MultidimensionalSquareWave": (
        local.MultidimensionalSquareWave,
        {"epsilon": 1.0, "cells": 3, "estimator": "em", "half_width": None, "tolerance": 1e-3, "max_iter": 100},
    ),
    "SEMGeoI": (local.SEMGeoI, {"epsilon": 1.0, "cells": 3, "subset": None, "estimator": "field"}),
    "one_point_each": (local.one_point_each, {"pattern": WALKED, "user": "trajectory", "rng": 1}),
    "UniformGrid": (local.UniformGrid, {"window": SQUARE, "cells": (3, 2), **SETTINGS}),
    "UniformGrid.sized": (local.UniformGrid.sized, {"window": SQUARE, "epsilon": 1.0, "n": 100}),
    "UniformGrid.values": (UNIFORM.values, {"xy": PATTERN.xy}),
    "UniformGrid.simulate": (UNIFORM.simulate, {"xy": PATTERN.xy, "rng": 1, "fast": True}),
    "GridCounts.query": (UNIFORM.simulate(PATTERN, rng=1).query, {"rectangles": QUERIES}),
    "PrivAG": (local.PrivAG, PRIVAG),
    "AdvancedAdaptiveGrid": (local.AdvancedAdaptiveGrid, AAG),
    "AdvancedAdaptiveGrid.first": (ADAPTIVE.first, {"n": 20}),
    "AdvancedAdaptiveGrid.second": (ADAPTIVE.second, {"first": BOTH.first, "n": 20}),
    "AdvancedAdaptiveGrid.combine": (ADAPTIVE.combine, {"first": BOTH.first, "second": BOTH.second, "n": 20}),
    "AdvancedAdaptiveGrid.simulate": (ADAPTIVE.simulate, {"xy": PATTERN.xy, "rng": 1, "fast": False}),
    "AdvancedAdaptiveGrid.aggregate": (ADAPTIVE.aggregate, {"reports": REPORTS}),
    "AdvancedAdaptiveGrid.value": (ADAPTIVE.value, {"place": (1.0, 2.0)}),
    "AdvancedAdaptiveGrid.settings": (ADAPTIVE.settings, {"n": 20, "reports": (4, 16)}),
    "AdaptiveCounts.query": (BOTH.query, {"rectangles": QUERIES}),
    "AdaptiveCounts.release": (BOTH.release, {"domain": SQUARE}),
    "SecondRound": (local.SecondRound, {"window": SQUARE, "grid": FINER, **SETTINGS}),
    "Report": (local.Report, {"mechanism": "x", "values": (1, 2), "seeded": False}),
    "Report.from_json": (local.Report.from_json, {"text": CELLED[0].client((1, 2), 1).to_json()}),
    "Reports": (
        local.Reports, {"mechanism": "x", "columns": ("i", "j"), "rows": np.ones((2, 2), int), "seeded": False},
    ),
    "Counts": (local.Counts, {"mechanism": CELLED[0], "values": np.ones(21, int), "n": 21, "seeded": False}),
    "write_reports": (
        local.write_reports, {"reports": REPORTS, "path": "none/none.csv", "mechanism": CELLED[0]},
    ),
    "aggregate_files": (
        local.aggregate_files,
        {
            "mechanism": CELLED[0], "paths": ["none.csv"], "batch": 1000, "workers": None, "client": None,
            "progress": None,
        },
    ),
    "count_files": (
        local.count_files,
        {
            "mechanism": CELLED[0], "paths": ["none.csv"], "out": "none/none.json", "window": SQUARE, "workers": None,
            "progress": None, "labelled": True,
        },
    ),
    "description": (local.description, {"mechanism": CELLED[0], "window": SQUARE}),
    "write_description": (
        local.write_description, {"mechanism": CELLED[0], "path": "none/none.json", "window": SQUARE},
    ),
    "Client": (client.Client, {"randomizer": CELLED[0].randomizer, "grid": SQUARES, "crs": None}),
    "Client.read": (client.Client.read, {"path": "none.json", "most_epsilon": 1.0}),
    "Client.from_json": (
        client.Client.from_json, {"text": local.description(CELLED[0], SQUARE), "most_epsilon": 100.0},
    ),
    "Client.report": (
        client.Client(CELLED[0].randomizer, SQUARES).report,
        {"place": (1.0, 2.0), "rng": np.random.default_rng(1), "outside": "clip"},
    ),
    "merge_counts": (local.merge_counts, {"paths": ["none.json"], "out": "none/none.json"}),
    "require_files": (
        local.require_files, {"points": "none.csv", "reports": "none/none.csv", "window": SQUARE, "user": None},
    ),
    "write_counts": (
        local.write_counts, {"counts": CELLED[0].aggregate(REPORTS), "path": "none/none.json", "window": SQUARE},
    ),
    "perturb_file": (
        local.perturb_file,
        {
            "mechanism": CELLED[0], "points": "none.csv", "out": "none.parquet", "window": SQUARE, "x": "x", "y": "y",
            "user": "id",
            "batch": 1000, "rng": 1, "progress": None,
        },
    ),
    "GridTrajectories": (local.GridTrajectories, {"cells": 3, "values": [0, 1, 4], "offsets": [0, 2, 3]}),
    "GridTrajectories.part": (CELLS.part, {"first": 0, "last": 1}),
    "LDPTrace": (local.LDPTrace, {"epsilon": 2.0, "cells": 3, "max_length": 5, "user": "trajectory"}),
    "LineTrace": (local.LineTrace, {"epsilon": 2.0, "cells": 3, "reach": 2, "user": "trajectory"}),
    "LineTrace.plan": (LINES.plan, {"domain": SQUARE, "n": 2, "expected_n": None}),
    "LineTrace.release": (LINES.release, {"pattern": WALKED, "rng": 1, "expected_n": None}),
    "LineTrace.client": (LINES.client, {"place": [(0, 0), (1, 1)], "rng": 1}),
    "LineTrace.simulate": (LINES.simulate, {"trajectories": CELLS, "rng": 1, "fast": False}),
    "LineTrace.estimate": (LINES.estimate, {"counts": LINES.simulate(CELLS, rng=1)}),
    "DisplacementLaw": (randomizers.DisplacementLaw, {"epsilon": 1.0, "cells": 3, "reach": 2, "radius": 1}),
    "DisplacementLaw.draw": (LINES.randomizer.draw, {"values": VALUES, "rng": np.random.default_rng(1)}),
    "LDPTrace.plan": (TRACE.plan, {"domain": SQUARE, "n": 2, "expected_n": None, "clients": (2, 1)}),
    "LDPTrace.release": (TRACE.release, {"pattern": WALKED, "rng": 1, "expected_n": None}),
    "LDPTrace.combine": (TRACE.combine, {"lengths": TRACED[0], "mobility": TRACED[1], "n": 2}),
    "CombinedTraces": (
        local.CombinedTraces, {"mechanism": TRACE, "lengths": TRACED[0], "mobility": TRACED[1], "n": 2},
    ),
    "CombinedTraces.release": (TRACE.combine(*TRACED).release, {"domain": SQUARE}),
    "TraceProtocol": (TraceProtocol, {"epsilon": 2.0, "cells": 3, "max_length": 5}),
    "LDPTrace.second": (TRACE.second, {"longest": 3}),
    "LDPTrace.longest": (TRACE.longest, {"lengths": TRACED[0]}),
    "LDPTrace.simulate": (TRACE.simulate, {"trajectories": CELLS, "rng": 1, "fast": False}),
    "LDPTrace.estimate": (TRACE.estimate, {"lengths": TRACED[0], "mobility": TRACED[1]}),
    "TraceRound.clients": (ROUND.clients, {"values": CELLS, "rng": 1}),
    "TraceRound.aggregate": (ROUND.aggregate, {"reports": SENT}),
    "TraceModel": (
        local.TraceModel,
        {
            "cells": 2, "n": 10, "starts": [1, 0, 0, 0], "ends": np.zeros(4), "lengths": [1, 1],
            "moves": np.ones((4, 8)),
        },
    ),
    "TraceModel.intensity": (MODEL.intensity, {"domain": SQUARE}),
    "TraceModel.transitions": (MODEL.transitions, {"length": 2}),
    "TraceModel.synthesize": (MODEL.synthesize, {"n": 3, "rng": 1}),
}  # fmt: skip
for each in CELLED:
    name = type(each).__name__
    held = each.simulate(PATTERN, rng=1)
    LOCAL |= of_mechanism(each, (1, 2), VALUES) | {
        f"{name}.cell_values": (each.cell_values, {"cells": [[0, 1], [2, 2]]}),
        f"{name}.estimate": (each.estimate, {"counts": held, **each.settings()}),
        f"{name}.simulate": (each.simulate, {"pattern": PATTERN, "rng": 1, "fast": False}),
    }
LOCAL |= of_mechanism(UNIFORM, (100.0, 200.0), [0, 1, 5]) | whole_mechanism(ADAPTIVE)
LOCAL |= of_mechanism(SECOND, (100.0, 200.0), [0, 0], rounds=True)

LOCAL |= of_mechanism(HIERARCHY, (1, 2), VALUES) | {
    "RangeHierarchy": (local.RangeHierarchy, {"epsilon": 1.0, "cells": 4, "estimator": "norm-sub"}),
    "RangeHierarchy.sized": (local.RangeHierarchy.sized, {"epsilon": 1.0, "n": 900}),
    "RangeHierarchy.query": (
        HIERARCHY.query, {"counts": HIERARCHY.simulate(PATTERN, rng=1), "window": SQUARE, "rectangles": QUERIES},
    ),
    "RangeHierarchy.estimate": (
        HIERARCHY.estimate, {"counts": HIERARCHY.simulate(PATTERN, rng=1), "estimator": "shrunk"},
    ),
    "RangeHierarchy.simulate": (HIERARCHY.simulate, {"pattern": PATTERN, "rng": 1, "fast": False}),
    "RangeHierarchy.cell_values": (HIERARCHY.cell_values, {"cells": [[0, 1], [2, 2]]}),
    "HierarchyRelease.query": (HIERARCHY.release(PATTERN, rng=1).query, {"rectangles": QUERIES}),
}  # fmt: skip

PRIVACY = {
    "Local": (privacy.Local, {"of": "location"}),
    "Local.implies": (privacy.Local().implies, {"other": privacy.ReplaceOne()}),
    "GeoIndistinguishability": (privacy.GeoIndistinguishability, {"cells": 3}),
    "GeoIndistinguishability.implies": (privacy.GeoIndistinguishability(3).implies, {"other": privacy.Local()}),
    "local_report": (privacy.local_report, {"randomizer": LAWS[0]}),
    "shuffled_delta": (
        privacy.shuffled_delta,
        {"local_epsilon": 1.0, "reports": 50, "epsilon": 0.5, "clones": 0.3},
    ),
    "shuffled_epsilon": (
        privacy.shuffled_epsilon,
        {"local_epsilon": 1.0, "reports": 50, "delta": 1e-6, "clones": 0.3},
    ),
    "shuffled_reports": (
        privacy.shuffled_reports,
        {"local_epsilon": 1.0, "reports": 50, "delta": 1e-6, "clones": 0.3},
    ),
    "ShuffledPrivacy": (
        privacy.ShuffledPrivacy,
        {"epsilon": 0.4, "delta": 1e-6, "reports": 50, "local_epsilon": 1.0, "theorem": "K", "assumptions": ("a",)},
    ),
    "local_rounds": (privacy.local_rounds, {"epsilon": 1.0, "randomizers": ORACLES[:2]}),
}

MODULES = client, grids, local, randomizers
ALL = {**RANDOMIZERS, **GRIDS, **HISTOGRAMS, **LOCAL, **PRIVACY}
# What the package makes, constants, bases, and what needs Dask.
MADE = {
    "AAG", "PIECES", "PRIVAG", "ROUNDINGS", "UNIFORM_ALPHA", "Agreeing", "Constants", "Ratios", "KINDS", "ORACLES",
    "Fit", "FrequencyOracle", "Randomizer", "CellMechanism",
    "GridRelease", "LocalRelease", "local", "grids", "randomizers",
    "HierarchyRelease",
}  # fmt: skip

"""Terms of a sensitivity proof depend on each point alone, bit by bit (docs/theory.md, section 4)."""

import dis
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.spatial
import shapely

import dpppsynth
from dpppsynth import local
from dpppsynth.contract.additive_noise import cell_counts, lattice_masses
from dpppsynth.datasets import soho_deaths, soho_streets
from dpppsynth.grids import even_cells, uniform_grid
from dpppsynth.linear_network import network_mesh
from dpppsynth.mechanisms.heatmap.persons import rounded
from dpppsynth.mechanisms.lgcp.field_statistic import lattice_field
from dpppsynth.models import regular_squares, regular_triangulation, trace_mesh
from dpppsynth.models.covariances import PoweredExponential, square_root
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.gaussian_kernel import rotate, sample_children
from dpppsynth.spatial.grid_cells import cell_places
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import HeatmapSynthesizer

SOHO, STREETS = soho_deaths().domain, soho_streets()
RING = Window.polygon(shapely.Point(531e3, 181e3).buffer(400).difference(shapely.Point(531e3, 181e3).buffer(100)))
BITS = 20


def delaunay():
    points = np.random.default_rng(0).uniform(0.15, 0.85, (25, 2))
    vertices = 1e5 + 100 * np.vstack([[(0, 0), (1, 0), (1, 1), (0, 1)], points])
    window = Window.polygon(shapely.box(*vertices.min(axis=0), *vertices.max(axis=0)))
    return Mesh.from_arrays(vertices, scipy.spatial.Delaunay(vertices).simplices, window)


MESHES = {
    "triangles": regular_triangulation(SOHO, shape=(9, 8)),
    "squares": regular_squares(RING, shape=(9, 8)),
    "arrays": delaunay(),
    "trace": trace_mesh(STREETS, shape=(9, 8)),
    "segments": network_mesh(STREETS, 70.0),
}
PLANAR = [name for name in MESHES if name != "segments"]


def places(domain, n, seed=1):
    """Positions (n, 2) in a domain."""
    rng = np.random.default_rng(seed)
    if domain is STREETS:
        edge = rng.integers(len(STREETS.edges), size=n)
        return np.column_stack([edge, rng.random(n) * STREETS.lengths[edge]])
    x0, y0, x1, y1 = domain.bounds
    xy = rng.uniform((x0, y0), (x1, y1), (9 * n, 2))
    return xy[domain.contains(xy)][:n]


def layouts(xy):
    """The same numbers (n, 2) in other places of memory."""
    wide, shifted = np.full((len(xy), 7), np.nan), np.full(2 * len(xy) + 1, np.nan)
    wide[:, 2:6:3], shifted[1:] = xy, xy.ravel()
    yield from (xy.copy(), np.asfortranarray(xy), wide[:, 2:6:3], shifted[1:].reshape(-1, 2), xy[::-1].copy()[::-1])


def same_alone_and_together(rows, xy):
    """Check that rows of a function of points are those of each alone, in batches of many sizes, orders, layouts."""
    alone = [np.asarray(rows(xy[k : k + 1]))[0].tobytes() for k in range(len(xy))]
    rng = np.random.default_rng(2)
    for size in (2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, len(xy)):
        chosen = rng.permutation(len(xy))[:size]
        for batch in layouts(xy[chosen]):
            together = np.asarray(rows(batch))
            assert len(together) == size
            assert [row.tobytes() for row in together] == [alone[k] for k in chosen], size


def row_of_values(mesh):
    return lambda xy: mesh.values(xy)[1]


GRID = even_cells(uniform_grid(SOHO.bounds, 3, 2), [1, 2, 3, 1, 2, 5])
ROOT = square_root(PoweredExponential(0.4, 150.0).matrix(MESHES["triangles"]))
AREA = local.DiskAreaMechanism(2.0, cells=9).plan(SOHO, n=1).statistic
AXES = np.array([[0.6, 0.8], [-0.8, 0.6]])


def each(function):
    """Function of one point, as rows of a function of points: (n, V) rows r(x)."""
    return lambda xy: np.stack([function(xy[k : k + 1]) for k in range(len(xy))])


def area_values(xy):
    return replace(AREA, n=len(xy)).values(PointPattern(xy, SOHO))


ROWS = {
    **{f"basis on {name}": (row_of_values(mesh), mesh.domain) for name, mesh in MESHES.items()},
    **{f"element of {name}": (mesh.locate, mesh.domain) for name, mesh in MESHES.items()},
    "coordinates on streets": (STREETS.coordinates, STREETS),
    "snapped to streets": (STREETS.positions, SOHO),
    "public grid of a window": (SOHO.on_grid, SOHO),
    "public grid of streets": (STREETS.on_grid, STREETS),
    "cells of a grid": (lambda xy: cell_places(xy, SOHO.bounds, (17, 13)), SOHO),
    "cells of uneven grids": (GRID.locate, SOHO),
    "values of local clients": (area_values, SOHO),
    "rotate for kernels": (lambda xy: rotate(xy, AXES), SOHO),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_the_same_alone_and_among_others(name):
    rows, domain = ROWS[name]
    same_alone_and_together(rows, places(domain, 90))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MESHES)
def test_sums_are_those_of_rows_of_single_points(name):
    """Whole numbers: what is released is the sum of r(x) over the points, each computed alone."""
    mesh, xy = MESHES[name], places(MESHES[name].domain, 300)
    for statistic in (
        lambda at: lattice_masses(mesh, at, BITS),
        lambda at: cell_counts(mesh, at),
        *([lambda at: lattice_field(mesh, ROOT, at, BITS)] if name == "triangles" else []),
    ):
        for batch in layouts(xy):
            np.testing.assert_array_equal(statistic(batch), sum(each(statistic)(xy)))


def test_units_of_a_person_are_the_same_alone_and_among_others():
    rng = np.random.default_rng(4)
    user = np.sort(rng.integers(40, size=500))
    points = rng.integers(1, 9, 500)
    together = rounded(user, points, BITS)
    for person in range(40):
        here = user == person
        np.testing.assert_array_equal(together[here], rounded(np.zeros(here.sum(), int), points[here], BITS))


def plainly(mesh, xy):
    """Basis values of a point on a planar mesh, by Python's own floats, one operation after the other."""
    element = int(mesh.locate(np.array([xy]))[0])
    (x, y), corner = map(float, mesh.domain.coordinates(np.array([xy]))[0]), mesh.vertices[mesh.elements[element, 0]]
    (a, b), (c, d) = mesh._inverse[element].tolist()
    dx, dy = x - float(corner[0]), y - float(corner[1])
    s, t = dx * a + dy * c, dx * b + dy * d
    fused = [float(Fraction(dx) * Fraction(p) + Fraction(dy) * Fraction(q)) for p, q in ((a, c), (b, d))]
    found = [1 - s - t, s, t] if mesh.kind == "triangle" else [(1 - s) * (1 - t), s * (1 - t), s * t, (1 - s) * t]
    clipped = [max(0.0, value) for value in found]
    total = clipped[0]
    for value in clipped[1:]:
        total += value
    return [value / total for value in clipped], [s, t] != fused


@pytest.mark.parametrize("name", PLANAR)
def test_basis_values_are_those_of_single_operations(name):
    """Were a product and a sum rounded together, as processors may, some of these values would have other bits."""
    mesh, xy = MESHES[name], places(MESHES[name].domain, 400)
    found, telling = mesh.values(xy)[1], 0
    for row, place in zip(found, xy, strict=True):
        expected, differs = plainly(mesh, place)
        assert row.tolist() == expected
        telling += differs
    # Along the axes one of the two products is zero.
    assert (telling > 50) == (mesh.kind == "triangle")


# What rounds sums of products, or functions that processors approximate by the batch.
BY_BATCH = {
    *("einsum", "dot", "vdot", "matmul", "tensordot", "inner", "average", "mean", "inv", "solve", "det", "norm"),
    *("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "arctan", "hypot", "power"),
}
# Of a public region alone, whatever the points.
PUBLIC = {"_frame"}


def executed(call):
    """Code of the package that runs while a call does."""
    package, seen = str(Path(dpppsynth.__file__).resolve().parent.parent), {}

    def watch(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(package) and "/tests/" not in code.co_filename:
            seen[code.co_qualname] = code

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


def by_batch(code):
    """Matrix products and functions of `BY_BATCH` that numpy is asked for in a piece of code."""
    before = None
    for step in dis.get_instructions(code):
        if step.opname == "BINARY_OP" and step.argrepr.startswith("@"):
            yield "@"
        if step.argval in BY_BATCH and (before in ("np", "linalg") or step.argval == "dot"):
            yield step.argval
        before = step.argval


def statistics():
    for name, mesh in MESHES.items():
        xy = places(mesh.domain, 20)
        yield f"tents on {name}", lambda mesh=mesh, xy=xy: lattice_masses(mesh, xy, BITS)
        yield f"cells of {name}", lambda mesh=mesh, xy=xy: cell_counts(mesh, xy)
    xy = places(SOHO, 20)
    yield "field", lambda: lattice_field(MESHES["triangles"], ROOT, xy, BITS)
    yield "snapping", lambda: STREETS.positions(xy)
    yield "uneven grids", lambda: GRID.locate(xy)
    yield "local clients", lambda: area_values(xy)
    heat = HeatmapSynthesizer(1.0, shape=(23, 19)).plan(SOHO).statistic
    yield "heat maps", lambda: heat.exact_numbers(PointPattern(xy, SOHO, {"user": np.arange(20) // 3}))
    yield "kernels", lambda: sample_children(places(RING, 20), RING, 50.0, rng=1)


STATISTICS = dict(statistics())


@pytest.mark.parametrize("name", STATISTICS)
def test_no_sum_of_products_on_the_way(name):
    call = STATISTICS[name]
    # What is computed once, from the public mesh, is not on the way of a point.
    call()
    ran = executed(call)
    assert ran, name
    found = {title: set(by_batch(code)) for title, code in ran.items() if title not in PUBLIC}
    assert {title: names for title, names in found.items() if names} == {}


def test_what_is_looked_for_is_found():
    def guilty(x):
        return np.einsum("ij->i", x) + x @ x + np.linalg.norm(x) + x.dot(x)

    assert set(by_batch(guilty.__code__)) == {"einsum", "@", "norm", "dot"}

"""Triangles nested in cells, and the shares of a field's mass that lie in each cell."""

import numpy as np
import pytest
import shapely

from dpppsynth import Window, datasets
from dpppsynth.linear_network import network_mesh
from dpppsynth.linear_network.mesh import SegmentCells
from dpppsynth.models import regular_squares, regular_triangulation
from dpppsynth.models.recipes import are_within, triangles_within
from dpppsynth.spatial.mesh import Mesh

SQUARE = Window.rectangle(0, 0, 1000, 800)
HOLED = Window.polygon(shapely.Point(500, 500).buffer(430).difference(shapely.Point(420, 520).buffer(130)))


def own(mesh, slant=0.0):
    """The same cells as a mesh of one's own, over a parallelogram where slanted."""
    vertices = mesh.vertices + slant * mesh.vertices[:, ::-1] * [1, 0]
    corners = np.array(SQUARE.geometry.exterior.coords)[:-1]
    domain = Window.polygon(shapely.Polygon(corners + slant * corners[:, ::-1] * [1, 0])) if slant else mesh.domain
    return Mesh.from_arrays(vertices, mesh.elements, domain)


MESHES = {
    "squares": regular_squares(SQUARE, shape=(6, 5)),
    "squares, holes": regular_squares(HOLED, shape=(7, 8)),
    "own squares": own(regular_squares(SQUARE, shape=(4, 6))),
    "own parallelograms": own(regular_squares(SQUARE, shape=(4, 6)), 0.3),
    "triangles": regular_triangulation(SQUARE, shape=(4, 3)),
    "own triangles": own(regular_triangulation(SQUARE, shape=(4, 3))),
}


@pytest.mark.parametrize("cells", MESHES.values(), ids=MESHES)
@pytest.mark.parametrize("factor", [1, 2, 3])
def test_shares_keep_all_mass_and_the_cells_areas(cells, factor):
    field = triangles_within(cells, factor)
    assert field.kind == "triangle"
    shares = field.cell_shares(cells, field.pieces)
    assert shares.shape == (len(cells.elements), len(field.vertices))
    assert shares.data.min() >= 0
    np.testing.assert_allclose(shares.sum(axis=0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(shares @ field.measure, cells.element_measure, rtol=1e-9)


def test_a_triangle_gives_a_third_of_its_area_to_each_corner():
    """On whole triangles the shares are sums of thirds, added up here one by one."""
    cells = MESHES["squares"]
    field = triangles_within(cells, 2)
    mass = np.zeros((len(cells.elements), len(field.vertices)))
    for corners, area in zip(field.elements, field.area, strict=True):
        holder = cells.locate(field.vertices[corners].mean(axis=0)[None])[0]
        mass[holder, corners] += area / 3
    shares = field.cell_shares(cells, field.pieces).toarray()
    np.testing.assert_allclose(shares * field.measure, mass, rtol=1e-12, atol=1e-9)


def test_shares_in_cut_cells_are_those_of_fine_quadrature():
    """Basis functions summed over a fine grid of points in a window with a hole."""
    cells, step = MESHES["squares, holes"], 0.7
    field = triangles_within(cells, 2)
    x0, y0, x1, y1 = HOLED.bounds
    grid = np.stack(np.meshgrid(np.arange(x0, x1, step), np.arange(y0, y1, step)), axis=-1).reshape(-1, 2) + step / 2
    grid = grid[shapely.contains_xy(HOLED.geometry, *grid.T)]
    element, weight = field.values(grid)
    mass = np.zeros((len(cells.elements), len(field.vertices)))
    np.add.at(mass, (cells.locate(grid)[:, None], field.elements[element]), weight * step**2)
    exact = field.cell_shares(cells, field.pieces).toarray() * field.measure
    np.testing.assert_allclose(mass, exact, atol=0.01 * field.measure.max())


def test_shares_of_segments_are_their_own():
    mesh = network_mesh(datasets.soho_deaths(on="streets").domain, 40.0)
    field = SegmentCells.of(mesh)
    shares = field.cell_shares(mesh, field.pieces)
    np.testing.assert_allclose(shares.toarray(), np.eye(len(mesh.elements)), atol=1e-12)


def test_a_cell_without_any_of_the_pieces_gets_nothing():
    """As under an offset that is zero there: no number is divided by zero."""
    cells = MESHES["squares"]
    field = triangles_within(cells)
    from dataclasses import replace

    left = field.pieces.corners[:, :, 0].mean(axis=1) < 400
    pieces = replace(field.pieces, weight=np.where(left, field.pieces.weight, 0.0))
    shares = field.cell_shares(cells, pieces)
    assert np.isfinite(shares.data).all()
    columns = shares.sum(axis=0)
    np.testing.assert_allclose(columns[field.integrate(pieces) > 0], 1.0)
    assert (columns[field.integrate(pieces) == 0] == 0).all()


def test_cells_of_ones_own_get_a_vertex_each_unless_beyond_the_window():
    """Cells that the window touches at a corner are cut like others: what lies outside is left out."""
    disc = Window.polygon(shapely.Point(500, 400).buffer(395))
    squares = regular_squares(SQUARE, shape=(9, 9))
    whole = shapely.polygons(squares.vertices[squares.elements])
    meeting = squares.elements[shapely.area(shapely.intersection(whole, disc.geometry)) > 1e-6]
    used, local = np.unique(meeting, return_inverse=True)
    cells = Mesh.from_arrays(squares.vertices[used], local.reshape(-1, 4), disc)
    field = triangles_within(cells)
    shares = field.cell_shares(cells, field.pieces).toarray()
    np.testing.assert_allclose(shares @ field.measure, cells.element_measure, rtol=1e-9)
    assert len(field.vertices) <= len(cells.vertices) + len(cells.elements)
    assert ((shares > 1 - 1e-9).sum(axis=1) >= 1).all()


@pytest.mark.parametrize("cells", MESHES.values(), ids=MESHES)
def test_recipes_of_triangles_within_are_known_and_no_others(cells):
    regular = cells.recipe["builder"] == "regular"
    for factor in (1, 2, 5) if regular else (1,):
        recipe = triangles_within(cells, factor).recipe
        assert are_within(recipe, cells)
        assert not are_within({**recipe, "more": 1}, cells)
    shape = [3 * side - 1 for side in cells.recipe["shape"]] if regular else [6, 5]
    assert not are_within({"builder": "regular", "kind": "triangle", "shape": shape}, cells)
    for forged in (None, "mesh", {}, {"builder": "regular", "kind": "triangle", "shape": [True, 1.0]}, {"shape": "ab"}):
        assert not are_within(forged, cells)
    assert are_within(cells.recipe, cells) == (regular and cells.kind == "triangle")

"""Public layers by name, and street maps as OSMnx and others leave them."""

import geopandas
import networkx
import numpy as np
import pytest
import shapely
from shapely import LineString

import dpppsynth as dps
from dpppsynth import LinearNetwork, Window
from dpppsynth.core.errors import InputError
from dpppsynth.io import read_network, read_pattern, read_window
from dpppsynth.io.layers import read_layer
from dpppsynth.spatial.tables.formats import layered

SQUARE = shapely.box(0, 0, 100, 100)
CORNERS = {1: (0.0, 0.0), 2: (100.0, 0.0), 3: (100.0, 100.0), 4: (0.0, 100.0)}
BENT = LineString([(100, 100), (50, 90), (0, 100)])


def frame(shapes, **columns):
    return geopandas.GeoDataFrame(columns, geometry=list(shapes), crs=27700)


@pytest.fixture
def city(tmp_path):
    """A GeoPackage of four layers, as QGIS and OSMnx leave them."""
    path = tmp_path / "city.gpkg"
    ends = [LineString([CORNERS[a], CORNERS[b]]) for a, b in ((1, 2), (2, 3), (3, 4), (4, 1))]
    frame(map(shapely.Point, CORNERS.values()), osmid=[*CORNERS]).to_file(path, layer="nodes")
    frame(ends, u=[1, 2, 3, 4]).to_file(path, layer="edges")
    frame([shapely.box(-1, -1, 101, 101)], people=[500.0]).to_file(path, layer="Bezirk: Süd 2024")
    frame([SQUARE], people=[7.0]).to_file(path, layer="district.csv")
    return path


class TestLayersByName:
    def test_each_kind_of_input_takes_one(self, city):
        window = read_window(f"{city}:district.csv")
        assert window.area == 10_000
        assert read_window(f"{city}:Bezirk: Süd 2024").area == 102**2
        assert read_network(f"{city}:edges").length == 400
        for pattern in (read_pattern(f"{city}:nodes", window), read_pattern(city, window, layer="nodes")):
            assert sorted(pattern.xy.tolist()) == sorted(map(list, CORNERS.values()))
        words = {"column": "people", "option": "--offset-file", "column_option": "--offset-column"}
        for layer, value in (("district.csv", 7.0), ("Bezirk: Süd 2024", 500.0)):
            assert read_layer(type(city)(f"{city}:{layer}"), window, **words).values.tolist() == [value]

    def test_covariates_have_a_column_behind_the_layer(self, city):
        from dpppsynth.contract.object_options import layers_of
        from dpppsynth.contract.settings import ParsedOptions

        options = dict.fromkeys(("offset_file", "offset_column", "offset_as", "offset_fill", "offset_source"))
        options |= {"covariate_files": f"rich={city}:Bezirk: Süd 2024:people", "covariates_source": None}
        parsed = ParsedOptions("lgcp-tents", "", options, {})
        found = layers_of(parsed, read_window(f"{city}:district.csv"))["covariates"]
        assert found["rich"].values.tolist() == [500.0]

    @pytest.mark.parametrize("read", [read_window, read_network], ids=["window", "network"])
    def test_none_and_wrong_ones_are_refused_with_all_names(self, city, read):
        names = "'nodes' (Point), 'edges' (LineString), 'Bezirk: Süd 2024' (Polygon), 'district.csv' (Polygon)"
        with pytest.raises(InputError) as several:
            read(city)
        assert names in str(several.value)
        assert "'city.gpkg:NAME'" in str(several.value)
        with pytest.raises(InputError) as wrong:
            read(f"{city}:edgez")
        assert names in str(wrong.value)

    def test_two_different_names_are_refused(self, city):
        window = Window.polygon(SQUARE, 27700)
        assert len(read_pattern(f"{city}:nodes", window, layer="nodes")) == 4
        with pytest.raises(InputError, match="another layer"):
            read_pattern(f"{city}:nodes", window, layer="edges")

    def test_only_geopackages_have_layers(self, tmp_path):
        assert layered("a/b.gpkg:c:d.csv") == (type(tmp_path)("a/b.gpkg"), "c:d.csv")
        assert layered("C:/b.gpkg")[1] is None
        assert layered("b.csv:c")[1] is None


def graph(kind=networkx.MultiDiGraph, *, crs="epsg:27700", move=lambda xy: xy, text=False):
    """Both directions of three streets, one of them bent, and a one-way street, with the attributes of OSMnx."""
    made = kind(crs=crs)
    for name, xy in CORNERS.items():
        x, y = move(np.array([xy]))[0]
        made.add_node(name, x=str(x) if text else x, y=str(y) if text else y)
    for a, b, line in ((1, 2, None), (2, 3, None), (3, 4, BENT)):
        for u, v, course in ((a, b, line), (b, a, None if line is None else shapely.reverse(line))):
            drawn = shapely.transform(LineString([CORNERS[u], CORNERS[v]]) if course is None else course, move)
            length = 100.0 if course is None else course.length
            more = {} if course is None else {"geometry": drawn.wkt if text else drawn}
            made.add_edge(u, v, length=str(length) if text else length, **more)
    made.add_edge(4, 1, length="100" if text else 100)
    return made


LENGTH = 300 + BENT.length


def degrees(xy):
    from dpppsynth.core.crs import reproject

    return reproject(np.add(xy, (530_000.0, 180_000.0)), "EPSG:27700", "EPSG:4326")


class TestGraphs:
    def test_both_directions_of_a_street_are_one(self):
        network = LinearNetwork.from_networkx(graph(), undirected=True)
        assert network.length == pytest.approx(LENGTH)
        assert network.edges.tolist() == [[0, 1], [1, 2], [2, 3], [3, 0]]
        assert network.changes == ("left out 3 lines along the course of another",)

    def test_two_one_way_streets_of_different_course_stay_two(self):
        made = graph()
        made.edges[4, 3, 0]["geometry"] = LineString([(0, 100), (50, 120), (100, 100)])
        made.edges[4, 3, 0]["length"] = made.edges[4, 3, 0]["geometry"].length
        network = LinearNetwork.from_networkx(made, undirected=True)
        assert len(network.edges) == 5
        again = network.to_networkx()
        assert again.number_of_edges() == 5

    def test_degrees_are_reprojected(self):
        made = graph(crs="epsg:4326", move=degrees)
        network = LinearNetwork.from_networkx(made, to_crs=27700, undirected=True)
        assert network.crs == "EPSG:27700"
        assert network.length == pytest.approx(LENGTH, rel=1e-6)
        assert network.vertices[2] == pytest.approx([530_100, 180_100], abs=1e-3)

    def test_lengths_in_metres_stand_beside_a_map_in_feet(self):
        made = graph(crs="epsg:4326", move=lambda xy: np.asarray(xy) * 1e-5 + (-74.0, 40.7))
        for *_, data in made.edges(data=True):
            data.pop("length")
        feet = LinearNetwork.from_networkx(made, to_crs=2263, undirected=True)
        for u, v, key, data in made.edges(keys=True, data=True):
            line = next(
                line.length for line, pair in zip(feet.lines, feet.edges, strict=True) if {*pair} == {u - 1, v - 1}
            )
            data["length"] = line * 1200 / 3937
            assert key == 0
        assert LinearNetwork.from_networkx(made, to_crs=2263, undirected=True).length == feet.length
        made.edges[1, 2, 0]["length"] *= 1.5
        with pytest.raises(InputError, match="says length"):
            LinearNetwork.from_networkx(made, to_crs=2263, undirected=True)

    def test_graphml_is_read_as_networkx_writes_it(self, tmp_path):
        path = tmp_path / "g.graphml"
        networkx.write_graphml(graph(crs="epsg:4326", move=degrees, text=True), path)
        with pytest.raises(InputError, match="undirected=True"):
            read_network(path, to_crs=27700)
        network = read_network(path, to_crs=27700, undirected=True)
        assert network.length == pytest.approx(LENGTH, rel=1e-6)
        assert len(network.edges) == 4
        # The own reader of networkx leaves texts, which are taken as well.
        same = LinearNetwork.from_networkx(networkx.read_graphml(path), to_crs=27700, undirected=True)
        assert same.fingerprint() == network.fingerprint()

    def test_graphml_may_be_cut_where_lines_cross(self, tmp_path):
        path, made = tmp_path / "g.graphml", networkx.MultiGraph(crs="epsg:27700")
        for name, (x, y) in CORNERS.items():
            made.add_node(name, x=x, y=y)
        made.add_edges_from([(1, 3), (2, 4), (1, 2)])
        networkx.write_graphml(made, path)
        assert len(read_network(path).edges) == 3
        assert len(read_network(path, node=True).edges) == 5

    @pytest.mark.parametrize("content", [b"", b"<a/>", b"<graphml><graph/></graphml>", b"\xff\xfe"])
    def test_other_texts_are_no_graphs(self, tmp_path, content):
        path = tmp_path / "g.graphml"
        path.write_bytes(content)
        with pytest.raises(InputError):
            read_network(path)
        with pytest.raises(InputError, match="there is no file"):
            read_network(tmp_path / "none.graphml")

    def test_text_that_is_no_geometry_is_refused(self):
        made = graph(text=True)
        made.edges[3, 4, 0]["geometry"] = "LINESTRING (1"
        with pytest.raises(InputError, match="must be a LineString"):
            LinearNetwork.from_networkx(made, undirected=True)


class TestLinesWithoutALength:
    GOOD = (LineString([(0, 0), (50, 0)]), LineString([(50, 0), (50, 40)]))
    BAD = (None, LineString(), LineString([(50, 0), (50, 0)]))

    def test_they_are_left_out_and_said(self, tmp_path):
        lines = frame([*self.GOOD, *self.BAD])
        with pytest.raises(InputError, match="collapse_short"):
            LinearNetwork.from_geodataframe(lines)
        network = LinearNetwork.from_geodataframe(lines, collapse_short=0.5)
        assert network.lengths.tolist() == [50, 40]
        assert network.changes == ("left out 2 rows without a geometry", "left out 1 line without a length")
        lines.to_parquet(tmp_path / "l.parquet")
        assert read_network(tmp_path / "l.parquet", collapse_short=0.5).fingerprint() == network.fingerprint()

    def test_an_edge_without_a_length_joins_what_its_numbers_join(self, tmp_path):
        """Vertices 1 and 2 are in one place: without the edge between them the network would fall apart."""
        lines = [LineString([(0, 0), (50, 0)]), LineString([(50, 0), (50, 0)]), LineString([(50, 0), (50, 40)])]
        third = LineString([(50, 0), (90, 0)])
        numbered = frame([*lines, third], **{"from": [0, 1, 2, 1], "to": [1, 2, 3, 4]})
        network = LinearNetwork.from_geodataframe(numbered, collapse_short=0.5)
        assert network.length == 130
        assert len(network.vertices) == 4
        assert "contracted 1 edge without a length" in network.changes

    def test_graphs_may_have_nodes_in_one_place(self):
        made = graph(networkx.MultiGraph)
        made.add_node(5, x=100.0, y=100.0)
        made.add_edge(3, 5, length=0.0)
        made.add_edge(5, 2, geometry=LineString([(100, 100), (120, 50), (100, 0)]))
        with pytest.raises(InputError, match=r"starts and ends in one place.*collapse_short"):
            LinearNetwork.from_networkx(made, undirected=True)
        network = LinearNetwork.from_networkx(made, undirected=True, collapse_short=0.5)
        assert len(network.vertices) == 4
        assert network.labels.nodes == (1, 2, 3, 4)

    def test_nothing_else_is_mended_by_it(self):
        """Lines as long as the tolerance stay as they are."""
        plain = LinearNetwork.from_geodataframe(frame(self.GOOD))
        assert LinearNetwork.from_geodataframe(frame(self.GOOD), collapse_short=40.0).fingerprint() == (
            plain.fingerprint()
        )
        soho = dps.datasets.soho_streets()
        lines = soho.to_geodataframe()
        assert (
            LinearNetwork.from_geodataframe(lines, collapse_short=10.0).fingerprint()
            == soho.collapse_short(10.0).fingerprint()
        )

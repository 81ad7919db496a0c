"""A privacy radius is a true length: what is calibrated, certified and verified on maps that stretch lengths."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import shapely
from pyproj import CRS
from support.forgery import reseal
from typer.testing import CliRunner

from dpppsynth import (
    AlphaNeighbours,
    KernelSynthesizer,
    LaplaceSynthesizer,
    LGCPSynthesizer,
    LinearNetwork,
    PlanarLaplaceSynthesizer,
    PointPattern,
    ReplaceOne,
    Window,
    cli,
    load_release,
    write_report,
)
from dpppsynth.auditing.targets import audit_of
from dpppsynth.contract.additive_noise import LaplaceMasses
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.inference.projection import Projection
from dpppsynth.linear_network import network_mesh
from dpppsynth.models import regular_squares, regular_triangulation
from dpppsynth.models.recipes import domain_of_release
from dpppsynth.privacy import catalogue, moved_points, smallest_move_bound, verify
from dpppsynth.privacy.catalogue import Statement
from dpppsynth.privacy.guarantee import on_map
from dpppsynth.release import certificate

# Lengths on this map are 1.04 times true ones.
STRETCHED = CRS("+proj=tmerc +lon_0=15 +k=1.04 +x_0=0 +y_0=-5000000 +ellps=WGS84").to_wkt()
CORNERS, ALPHA, N = (-500.0, 0.0, 500.0, 1000.0), 20.0, 50


def window(crs=STRETCHED):
    return Window.rectangle(*CORNERS, crs)


def network(crs=STRETCHED):
    return LinearNetwork([[0, 0], [300, 0], [300, 400], [0, 400]], [[0, 1], [1, 2], [0, 3]], crs)


FACTOR = window().scale_factor


def of_lengths(guarantee, *codes):
    """Assumptions of a guarantee on lengths on the map, of all codes where none are given."""
    stated = (each for each in guarantee.assumptions if isinstance(each, Statement))
    return [each for each in stated if each.code in (codes or ("true-lengths", "plane-lengths"))]


def on(domain, build):
    """Mesh of a domain where one is asked for."""
    return None if build is None else build(domain)


def triangles(domain):
    return regular_triangulation(domain, spacing=250.0)


def squares(domain):
    return regular_squares(domain, spacing=250.0)


def segments(domain):
    return network_mesh(domain, 60.0)


MECHANISMS = {
    "tents": (
        window,
        triangles,
        lambda a, m: LaplaceSynthesizer(1.0, alpha=a, basis="tents", mesh=m, postprocess="plain"),
    ),
    "tents-squares": (
        window,
        squares,
        lambda a, m: LaplaceSynthesizer(1.0, alpha=a, basis="tents", mesh=m, postprocess="plain"),
    ),
    "lgcp-tents": (window, triangles, lambda a, m: LGCPSynthesizer(1.0, alpha=a, mesh=m, length_scale=200.0)),
    "lgcp-moved": (window, triangles, lambda a, m: LGCPSynthesizer(1.0, alpha=a, mechanism="moved", mesh=m)),
    "field": (
        window,
        triangles,
        lambda a, m: LGCPSynthesizer(1.0, delta=1e-6, alpha=a, mechanism="field", mesh=m, length_scale=200.0),
    ),
    "posterior-draw": (
        window,
        triangles,
        lambda a, m: LGCPSynthesizer(1.0, delta=1e-6, alpha=a, mechanism="posterior-draw", mesh=m, length_scale=200.0),
    ),
    "lipschitz": (
        window,
        triangles,
        lambda a, m: LGCPSynthesizer(1.0, alpha=a, mechanism="lipschitz", mesh=m, length_scale=200.0),
    ),
    "kim-lim-3.8": (
        window,
        triangles,
        lambda a, m: LGCPSynthesizer(1.0, delta=1e-3, alpha=a, mechanism="kim-lim-3.8", mesh=m, length_scale=200.0),
    ),
    "kernel": (window, None, lambda a, _: KernelSynthesizer(1.0, delta=1e-6, alpha=a)),
    "kernel-3.6": (window, None, lambda a, _: KernelSynthesizer(1.0, delta=1e-6, alpha=a, bound="kim-lim-3.6")),
    "planar-laplace": (window, None, lambda a, _: PlanarLaplaceSynthesizer(1.0, alpha=a)),
    "planar-laplace-bounded": (window, None, lambda a, _: PlanarLaplaceSynthesizer(1.0, delta=1e-6, alpha=a)),
    "network-tents": (
        network,
        segments,
        lambda a, m: LaplaceSynthesizer(1.0, alpha=a, basis="tents", mesh=m, postprocess="plain"),
    ),
    "network-field": (
        network,
        segments,
        lambda a, m: LGCPSynthesizer(1.0, delta=1e-6, alpha=a, mechanism="field", mesh=m, length_scale=200.0),
    ),
    "network-kernel": (network, None, lambda a, _: KernelSynthesizer(1.0, delta=1e-6, alpha=a, spacing=20.0)),
}


def planned(name, crs, alpha):
    """ReleasePlan of a mechanism, on the map or on a plane of the same coordinates."""
    make, build, synthesizer = MECHANISMS[name]
    # Kim & Lim's sum over pairs of elements changes where a move reaches the next ones, at 177.
    alpha *= 8.6 if name.startswith("kim-lim") else 1
    domain = make(crs)
    return synthesizer(alpha, on(domain, build)).plan(domain, n=N)


def test_the_factor_is_four_per_cent():
    assert pytest.approx(1.04, abs=2e-6) == FACTOR
    assert network().scale_factor == pytest.approx(1.04, abs=2e-6)


@pytest.mark.filterwarnings("ignore:mechanism")
@pytest.mark.parametrize("name", MECHANISMS)
class TestCalibration:
    def test_noise_is_that_of_the_radius_times_the_factor_on_a_plane(self, name):
        found, plane = planned(name, STRETCHED, ALPHA), planned(name, None, ALPHA * FACTOR)
        assert found.statistic.parameters() == plane.statistic.parameters()
        shorter = planned(name, None, ALPHA).statistic
        spent = [p.guarantee.profile.to_dict() for p in (found.statistic, shorter)]
        assert found.statistic.parameters() != shorter.parameters() or spent[0] != spent[1]
        assert found.guarantee.profile.to_dict() == plane.guarantee.profile.to_dict()
        if name.startswith(("planar", "lgcp-moved")):
            assert found.statistic.rate == plane.statistic.rate == pytest.approx(shorter.rate / FACTOR)

    def test_the_curve_is_by_true_lengths(self, name):
        found, plane = (
            np.array(planned(name, crs, alpha).guarantee.by_distance).reshape(-1, 2)
            for crs, alpha in ((STRETCHED, ALPHA), (None, ALPHA * FACTOR))
        )
        assert np.allclose(found * [FACTOR, 1.0], plane, rtol=1e-12, atol=0)

    def test_the_guarantee_keeps_the_radius_asked_for_and_says_what_the_map_does(self, name):
        guarantee = planned(name, STRETCHED, ALPHA).guarantee
        assert guarantee.relation.alpha in (ALPHA, 8.6 * ALPHA)
        (said,) = of_lengths(guarantee)
        assert (said.code, dict(said.parameters)["factor"]) == ("true-lengths", FACTOR)
        assert catalogue.text(said) in str(guarantee)
        assert not of_lengths(planned(name, None, ALPHA).guarantee)


def test_corollary_3_9_ends_where_moves_on_the_map_reach_elements_that_do_not_touch():
    closed = LGCPSynthesizer(1.0, delta=1e-3, alpha=172.0, mechanism="kim-lim-3.9", length_scale=200.0)
    for crs, fits in ((None, True), (STRETCHED, False)):
        place = window(crs)
        settled = replace(closed, mesh=triangles(place))
        if fits:
            with pytest.warns(match="no spatial information"):
                assert settled.plan(place, n=N).guarantee.relation == AlphaNeighbours(172.0)
        else:
            with pytest.raises(InputError, match=r"alpha: Corollary 3\.9 needs less than 169"):
                settled.plan(place, n=N)


class TestSentences:
    def test_a_map_that_is_smaller_everywhere_keeps_the_radius_and_says_so(self):
        soho = Window.rectangle(529_100, 180_680, 529_770, 181_350, "EPSG:27700")
        with_map, plane = (
            LaplaceSynthesizer(1.0, alpha=ALPHA, basis="tents", spacing=100.0, postprocess="plain").plan(each, n=N)
            for each in (soho, Window(soho.geometry))
        )
        assert with_map.statistic.parameters() == plane.statistic.parameters()
        assert with_map.guarantee.by_distance == plane.guarantee.by_distance
        said = Statement("true-lengths", crs="EPSG:27700", factor=1.0)
        assert said in with_map.guarantee.assumptions
        assert catalogue.text(said) in str(with_map.guarantee)

    def test_a_plane_of_its_own_is_taken_for_true_lengths_in_words(self):
        site = Window.rectangle(0, 0, 100, 100, 'LOCAL_CS["site",UNIT["metre",1]]')
        guarantee = LaplaceSynthesizer(1.0, alpha=5.0, postprocess="plain").plan(site, n=N).guarantee
        (said,) = of_lengths(guarantee, "plane-lengths")
        assert catalogue.text(said) in str(guarantee)

    def test_relations_without_a_radius_are_as_they_were(self):
        assert on_map(ReplaceOne(3), window()) == ReplaceOne(3)
        assert not of_lengths(LaplaceSynthesizer(1.0, postprocess="plain").plan(window(), n=N).guarantee)

    def test_the_cap_on_points_stays(self):
        relation = AlphaNeighbours(ALPHA, max_points_per_person=3)
        assert on_map(relation, window()) == AlphaNeighbours(ALPHA * FACTOR, max_points_per_person=3)
        assert on_map(relation, None) is relation


class TestPieces:
    def test_moved_points_without_a_domain_are_on_a_plane(self):
        relation, numbers = AlphaNeighbours(ALPHA), {"rate": 0.05, "bound": 300.0}
        plane = moved_points(relation, **numbers, farthest=500.0)
        there = moved_points(relation, **numbers, farthest=500.0, domain=window())
        far = moved_points(AlphaNeighbours(ALPHA * FACTOR), **numbers, farthest=500.0)
        assert there.profile == far.profile != plane.profile
        bounds = [smallest_move_bound(relation, rate=0.05, delta=1e-6, domain=each) for each in (None, window())]
        assert bounds[1] > bounds[0]

    def test_the_auditor_moves_points_by_the_true_radius(self):
        plan = LaplaceSynthesizer(1.0, alpha=ALPHA, basis="tents", mesh=triangles(window()), postprocess="plain").plan(
            window(), n=N
        )
        one, other = audit_of(plan.statistic).pair(AlphaNeighbours(ALPHA))
        moved = np.hypot(*(one.xy - other.xy).T).max()
        assert ALPHA * 1.02 < moved <= ALPHA * FACTOR


def stretched_pattern(domain):
    x0, y0, x1, y1 = domain.bounds
    return PointPattern(np.random.default_rng(3).uniform((x0, y0), (x1, y1), (N, 2)), domain)


@pytest.fixture
def folder(tmp_path):
    """A release on the stretched map."""
    release = LaplaceSynthesizer(1.0, alpha=ALPHA, basis="tents", spacing=250.0, postprocess="plain").release(
        stretched_pattern(window())
    )
    return release.save(tmp_path / "release", patterns=1)


def resealed(folder, edit):
    """The certificate edited, with a content hash that fits."""
    cert = json.loads((folder / "certificate.json").read_text())
    edit(cert)
    reseal(folder, cert)
    return verify(folder)


def bound(verification):
    return next(check for check in verification.checks if check.name == "bound")


class TestCertificates:
    def test_the_factor_is_stated_and_found_again(self, folder):
        assert certificate.read(folder)["domain"]["scale_factor"] == FACTOR
        found = verify(folder)
        assert found.holds
        assert "map" not in bound(found).detail
        again = load_release(folder)
        assert again.domain.scale_factor == FACTOR
        assert again.guarantee == LaplaceSynthesizer(1.0, alpha=ALPHA, basis="tents", spacing=250.0).check(
            window(), n=N
        )

    @pytest.mark.parametrize("stated", [1, 1.0, 1.03, 1.039990, 1.04001, 1.05, FACTOR + 1e-9])
    def test_another_factor_does_not_hold(self, folder, stated):
        found = resealed(folder, lambda cert: cert["domain"].update(scale_factor=stated))
        assert not found.holds
        assert "scale_factor: lengths on the map are up to 1.04" in bound(found).detail
        with pytest.raises(PrivacyCheckError):
            load_release(folder)

    @pytest.mark.parametrize("stated", [0.9, 1.2, "1.04", None, True])
    def test_a_factor_out_of_range_is_no_certificate(self, folder, stated):
        with pytest.raises(InputError, match="domain/scale_factor"):
            resealed(folder, lambda cert: cert["domain"].update(scale_factor=stated))

    @pytest.mark.parametrize(("off", "holds"), [(-1, True), (1, True), (3, False), (-3, False)])
    def test_a_last_digit_of_another_version_of_proj_is_allowed(self, tmp_path, off, holds):
        stated = domain_of_release(window().to_geojson(), round(FACTOR + off * 1e-6, 6))
        mesh = regular_triangulation(stated, spacing=250.0)
        plan = ReleasePlan(
            "laplace-tents", LaplaceMasses("tents", mesh, AlphaNeighbours(ALPHA), N, None, 1.0), Projection("clip")
        )
        folder = plan.release(stretched_pattern(stated)).save(tmp_path / "public")
        assert verify(folder).holds == holds

    def test_the_statement_cannot_be_taken_out_of_a_release(self, folder):
        with pytest.raises(InputError, match="at domain: required"):
            resealed(folder, lambda cert: cert["domain"].pop("scale_factor"))

    def test_a_release_of_a_domain_file_in_a_stretched_map_does_not_hold(self, tmp_path):
        plain = Window.rectangle(0, 7_000_000, 10_000, 7_010_000).to_geojson()
        named = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::3395"}}
        domain = domain_of_release(plain | {"crs": named}, 1.05)
        statistic = LaplaceMasses(
            "tents", regular_triangulation(domain, spacing=2500.0), AlphaNeighbours(200.0), N, None, 1.0
        )
        release = ReleasePlan("laplace-tents", statistic, Projection("clip")).release(stretched_pattern(domain))
        found = verify(release.save(tmp_path / "public", patterns=1))
        assert not found.holds
        assert "lengths on the map of EPSG:3395 are 1.669 to 1.671" in bound(found).detail


def test_a_move_by_the_true_radius_never_changes_masses_by_more_than_was_paid_for():
    """Against geodesics, not the factor: places a true radius apart, in the direction and place that cost most."""
    domain = window()
    plan = (
        LaplaceSynthesizer(1.0, alpha=ALPHA, basis="tents", mesh=triangles(domain), postprocess="plain")
        .plan(domain, n=N)
        .statistic
    )
    rng = np.random.default_rng(5)
    start = rng.uniform((-450, 50), (450, 950), (20_000, 2))
    angle = rng.uniform(0, 2 * np.pi, len(start))
    end = start + ALPHA * 1.04 * np.column_stack([np.cos(angle), np.sin(angle)])
    cost = abs(plan.mesh.basis(start) - plan.mesh.basis(end)).sum(axis=1).max() / plan.noise_scale
    assert 0.9 < cost <= 1.0
    assert shapely.box(*CORNERS).covers(shapely.MultiPoint(end))


class TestWords:
    EDGE = ("--window", "166100,5540000,170100,5544000", "--crs", "EPSG:32633")

    def test_check_says_what_the_map_does(self):
        said = spoken("check", "--method", "laplace", "--epsilon", "1", "--alpha", "25", *self.EDGE, "--n", "40")
        assert "lengths on the map at most 1.00097 times those on the ground; the radius is on the ground" in said

    def test_check_refuses_a_stretched_map_in_options_of_the_command_line(self):
        place = ("--window", "0,6900000,40000,6940000", "--crs", "EPSG:3395")
        said = spoken("check", "--method", "laplace", "--epsilon", "1", "--alpha", "25", *place, "--n", "40", code=2)
        assert "--crs: lengths on the map of EPSG:3395 are 1.648 to 1.656 times true lengths" in said
        assert "Re-project first: --to-crs EPSG:32631, the UTM zone here, or the national grid" in said

    @pytest.mark.parametrize(
        ("place", "exchanged"), [("5540000,466100,5544000,470100", True), ("4466100,5540000,4470100,5544000", False)]
    )
    def test_axes_in_another_order_are_suspected_where_these_would_fit(self, place, exchanged):
        words = ["check", "--method", "laplace", "--epsilon", "1", "--alpha", "200", "--window", place]
        said = spoken(*words, "--crs", "EPSG:25832", "--n", "400", code=2)
        assert "lengths on the map of EPSG:25832" in said
        assert ("With x and y exchanged they would fit" in said) is exchanged

    def test_reports_say_it(self, folder):
        assert "at most 1.040001 times true ones; a privacy radius is a true length" in page(folder)


def spoken(*options, code=0):
    """Output of the command line, as one line."""
    result = CliRunner().invoke(cli.app, list(options))
    assert result.exit_code == code
    return re.sub(r"[\s│╭╮╰╯─]+", " ", result.output)


def page(folder):
    """A report's text."""
    return write_report(folder, folder.parent / f"{folder.name}.html").read_text(encoding="utf-8")

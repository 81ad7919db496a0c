"""One posterior draw by NUTS: the posterior's law, a silent gate, and Kim & Lim's scheme, which draws its prior."""

import re
import traceback
from types import SimpleNamespace

import numpy as np
import pytest
import shapely
from support.seams import chance_for_nuts

from dpppsynth import Window, datasets
from dpppsynth.core.errors import InformationWarning, InputError, QualityError, ReleaseBlocked
from dpppsynth.linear_network import network_mesh
from dpppsynth.models import PoweredExponential, Sampler, draws, dual_mesh, regular_squares, regular_triangulation
from dpppsynth.models.kim_lim_model import KimLimModel, line_factor
from dpppsynth.models.nuts import Chains, diagnose
from dpppsynth.models.target_posterior import FieldPrior, LipschitzSet
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import LGCPSynthesizer

WINDOW = Window.rectangle(0, 0, 10, 10)
MESH = regular_triangulation(WINDOW, shape=(11, 11))
CUT = regular_triangulation(Window.polygon(shapely.Polygon([(0, 0), (8, 0), (1, 6)])), shape=(9, 6))


def few_points():
    """Three vertices, four points, two field coefficients: a posterior far from Gaussian."""
    root = 1.5 * np.array([[1.0, 0.0], [0.6, 0.8], [-0.4, 0.3]])
    return FieldPrior.gaussian(root, np.array([2.0, 1.0, 3.0]), -0.4, 1.5).posterior(np.array([0.5, 3.5, 0.0]))


def quadrature(posterior, press):
    """Fields on a grid in three dimensions, and their weights under the posterior."""
    line = np.linspace(-5, 5, 71)
    z = np.stack(np.meshgrid(line, line, line), axis=-1).reshape(-1, 3)
    w = press(posterior.field(z))
    log_density = w @ posterior.masses - np.exp(w) @ posterior.prior.measure - (z**2).sum(axis=1) / 2
    weight = np.exp(log_density - log_density.max())
    return w, weight / weight.sum()


def departure(fields, w, weight):
    """Largest distance, in standard errors, of the chains' moments and tail shares (chains, draws, V) from quadrature.

    Nine figures; each exceeds 5.6 standard errors with probability 2e-8, all together below 2e-7.
    """

    def figures(values):
        return np.concatenate([values, values**2, values < TAILS], axis=-1)

    mean = weight @ figures(w)
    sd = np.sqrt(weight @ (figures(w) - mean) ** 2)
    got = figures(fields)
    ess = [diagnose(got[..., [k]], 0).ess for k in range(got.shape[-1])]
    return np.max(np.abs(got.mean(axis=(0, 1)) - mean) / sd * np.sqrt(ess))


TAILS = np.array([-2.0, 0.5, -2.5])


class Recorder(Sampler):
    """A sampler that keeps its chains for the test."""

    def sample(self, **settings):
        Recorder.chains = super().sample(**settings)
        return Recorder.chains


@pytest.mark.slow
def test_nuts_draws_from_the_posterior_and_releases_the_last_draw_of_the_first_chain(capfd, monkeypatch):
    """Draws of a pressed field, for which the plain one's model is only a part of the model."""
    posterior, support = few_points(), LipschitzSet(triangle(), 0.25)
    monkeypatch.setattr(draws, "DRAWS", 4000)
    with chance_for_nuts(Recorder):
        draw = draws.nuts_draw(posterior, np.random.default_rng(3), support=support)
    assert capfd.readouterr() == ("", "")
    fields = support.press(whitened_fields(posterior, Recorder.chains.z))
    np.testing.assert_allclose(draw.field, fields[0, -1], rtol=1e-12)
    w, weight = quadrature(posterior, support.press)
    assert departure(fields, w, weight) < 5.6
    # The same yardstick tells the posterior from its neighbours: half a point more, half a unit of measure less.
    assert departure(fields + 0.1, w, weight) > 5.6
    assert departure(fields, *quadrature(shifted(posterior), support.press)) > 5.6


@pytest.mark.slow
def test_so_does_a_field_that_is_not_pressed(monkeypatch):
    """Its model is compared with the posterior below; here is what becomes of the chains."""
    posterior = few_points()
    monkeypatch.setattr(draws, "DRAWS", 500)
    with chance_for_nuts():
        draw = draws.nuts_draw(posterior, np.random.default_rng(3))
    seed = int(np.random.default_rng(3).integers(2**63))
    z = np.random.default_rng(seed).normal(size=(4, 500, 3))
    np.testing.assert_allclose(draw.field, whitened_fields(posterior, z)[0, -1], rtol=1e-12)


def whitened_fields(posterior, z):
    mode = posterior.mode()
    return posterior.field(mode + z @ draws.whitening(posterior.information(mode)).T)


def triangle():
    return regular_triangulation(Window.polygon(shapely.Polygon([(0, 0), (4, 0), (4, 3)])), shape=(2, 2))


def shifted(posterior):
    return FieldPrior.gaussian(
        posterior.prior.basis[:, :2], posterior.prior.measure * [0.75, 1, 1], -0.4, 1.5
    ).posterior(posterior.masses)


@pytest.mark.slow
@pytest.mark.parametrize("support", [None, LipschitzSet(MESH, 0.3)], ids=["plain", "Lipschitz"])
def test_model_is_the_posterior_in_other_coordinates(support):
    """Differences of log-density agree: a wrong sign, a lost measure, precision or intercept would all show."""
    posterior = on_the_mesh()
    mode = posterior.mode()
    root = draws.whitening(posterior.information(mode))
    density = draws.build_whitened(posterior, mode, root, support).compile_logp(mode="FAST_COMPILE")
    y = np.random.default_rng(0).normal(size=(4, len(mode)))
    got = np.array([density({"z": each}) for each in y])
    z = mode + y @ root.T
    w = posterior.field(z) if support is None else support.press(posterior.field(z))
    prior = posterior.prior
    want = w @ posterior.masses - np.exp(w) @ prior.measure - (z**2).sum(axis=1) / 2
    np.testing.assert_allclose(got - got[0], want - want[0], rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_nothing_sensitive_is_a_constant_of_the_compiled_model():
    """Constants may end up in a compile cache on disk; masses, mode and its whitening must not."""
    from pytensor.graph.basic import Constant
    from pytensor.graph.traversal import ancestors

    posterior = on_the_mesh()
    mode = posterior.mode()
    models = (
        draws.build_whitened(posterior, mode, draws.whitening(posterior.information(mode))),
        KimLimModel(MESH, 1e-3, 3.5, 80).build(posterior.masses),
    )
    public = [posterior.prior.measure, posterior.prior.basis, posterior.prior.centre]
    for model in models:
        constants = [v.data for v in ancestors(model.potentials) if isinstance(v, Constant)]
        floats = [np.asarray(c) for c in constants if np.asarray(c).dtype == float and np.asarray(c).ndim]
        assert floats
        known = [*public, public[1].T, KimLimModel(MESH, 1e-3, 3.5, 80).measure]
        for secret in (posterior.masses, mode):
            assert not any(c.shape[-1:] == secret.shape and np.any(np.all(c == secret, axis=-1)) for c in floats)
        assert any(np.array_equal(c, k) for c in floats for k in known)


def on_the_mesh():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(121, 6)) / 3
    psi = np.asarray(MESH.basis(rng.uniform(0, 10, (80, 2))).sum(axis=0)).ravel()
    return FieldPrior.gaussian(root, MESH.measure, 0.0, 2.0).posterior(psi)


def test_whitening_is_a_root_of_the_inverse_information():
    a = np.random.default_rng(0).normal(size=(9, 5))
    root = draws.whitening(a.T @ a)
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(a.T @ a), rtol=1e-9)


def fails(z):
    message = "initial log-density -123.456 of masses [7.5]"
    raise RuntimeError(message)


class TestGate:
    def blocked(self, spoil, divergences=0):
        with pytest.raises(ReleaseBlocked) as caught:
            self.run(spoil, divergences)
        return caught.value

    def run(self, spoil=lambda z: z, divergences=0, rng=None):
        def sample(*, draws, tune, seed):
            self.seed = seed
            return Chains(spoil(np.random.default_rng(draws + tune).normal(size=(4, 800, 3))), divergences)

        rng = np.random.default_rng(0) if rng is None else rng
        with chance_for_nuts(lambda model, engine: SimpleNamespace(sample=sample)):
            return draws.gated_draw(None, lambda z: 2 * z, rng, "nutpie")

    def test_a_passed_gate_hands_out_the_last_draw_of_the_first_chain(self):
        draw = self.run()
        np.testing.assert_array_equal(
            draw.field, 2 * np.random.default_rng(draws.DRAWS + draws.TUNE).normal(size=(4, 800, 3))[0, -1]
        )
        assert draw.diagnostics.complaint() is None
        assert "rhat" not in repr(draw)

    @pytest.mark.parametrize(
        ("spoil", "divergences"),
        [
            (lambda z: z + np.arange(4)[:, None, None], 0),
            (lambda z: z[:, :60], 0),
            (lambda z: z, 2),
            (lambda z: z * np.nan, 0),
            (fails, 0),
        ],
        ids=["chains apart", "too short", "divergent", "not a number", "sampler fails"],
    )
    def test_a_failed_gate_says_the_same_whatever_failed_and_shows_no_figure(self, spoil, divergences):
        error = self.blocked(spoil, divergences)
        assert str(error) == draws.BLOCKED
        assert not re.search(r"\d|R-hat", str(error))
        assert "Rehearse" in str(error)
        assert "123.456" not in "".join(traceback.format_exception(error))

    def test_a_mode_not_found_is_the_same_refusal(self):
        def mode():
            message = "mode not found near 17.5"
            raise QualityError(message)

        with pytest.raises(ReleaseBlocked) as caught:
            draws.nuts_draw(SimpleNamespace(mode=mode), np.random.default_rng(0))
        assert str(caught.value) == draws.BLOCKED
        assert "17.5" not in "".join(traceback.format_exception(caught.value))

    def test_the_seed_comes_from_the_given_generator_and_is_long(self):
        """Twenty seeds of 63 bits: the largest is below 2^58 with probability 2^-100."""
        rng = np.random.default_rng(7)
        seeds = [self.run(rng=rng) and self.seed for _ in range(20)]
        assert len(set(seeds)) == 20
        assert 2**58 < max(seeds) < 2**63
        self.run(rng=np.random.default_rng(7))
        assert self.seed == seeds[0]


class TestKimLim:
    @pytest.mark.parametrize("step", [0.01, 0.3, 2.0])
    def test_line_factor_is_a_root_of_the_correlation(self, step):
        """To rounding, even where the correlation is numerically singular; triangular, so that it is Cholesky's."""
        place = step * np.arange(21)
        root = line_factor(21, np.array(step))
        np.testing.assert_allclose(root @ root.T, np.exp(-(np.subtract.outer(place, place) ** 2)), atol=1e-14)
        assert np.all(np.triu(root, 1) == 0)
        assert np.all(np.diag(root) > 0)

    def test_fields_have_the_stated_covariance(self):
        """A field is linear in its values at a fixed l: unit values give a factor, whatever the window leaves out."""
        for mesh in (MESH, regular_squares(datasets.soho_deaths().domain, shape=(7, 9)), CUT):
            side = np.sqrt(mesh.domain.area)
            model = KimLimModel(mesh, 0.3 / side, 0.35 * side, 50)
            unit = np.eye(model.size)[1:]
            unit[:, 0] = 0.7
            root = model.fields(unit).T - np.log(50 / mesh.domain.area)
            length = 0.35 * side * np.exp(0.35)
            expected = PoweredExponential(0.3 / side * length, length).matrix(mesh)
            np.testing.assert_allclose(root @ root.T, expected, atol=1e-12 * expected.max())

    def test_areas_are_those_of_the_voronoi_dual_mesh(self):
        """Basis integrals would give sixths and thirds of a cell at the corners, and others along a slanted border."""
        assert KimLimModel(MESH, 1e-3, 3.5, 57).measure[0] == pytest.approx(0.25)
        for mesh in (CUT, network_mesh(datasets.soho_deaths(on="streets").domain, 100.0)):
            model = KimLimModel(mesh, 1e-3, 3.5, 57)
            cells = dual_mesh(mesh.domain, mesh)
            size = shapely.area(cells) if mesh is CUT else shapely.length(cells)
            np.testing.assert_allclose(model.measure, size, rtol=1e-12)

    def test_at_the_papers_bound_the_data_say_nothing(self):
        """epsilon 1, delta 1/57, B = 10: R = 5.7e-4, a field of 0.002, and data that hardly tell one draw from another.

        Even with all 57 points in one corner.
        """
        model = KimLimModel(MESH, np.sqrt(1 / 57 / 544) / 10, 3.5, 57)
        z = np.random.default_rng(0).normal(size=(2000, model.size))
        fields = model.fields(z)
        assert 0.0015 < (fields - np.log(0.57)).std() < 0.003
        corner = np.zeros(121)
        corner[0] = 57
        weight = fields @ corner - np.exp(fields) @ model.measure
        assert weight.std() < 0.3

    @pytest.mark.slow
    def test_model_and_fields_agree(self):
        model, psi = KimLimModel(MESH, 0.1, 3.5, 80), on_the_mesh().masses
        density = model.build(psi).compile_logp(mode="FAST_COMPILE")
        z = np.random.default_rng(0).normal(size=(3, model.size))
        w = model.fields(z)
        want = w @ psi - np.exp(w) @ model.measure - (z**2).sum(axis=1) / 2
        got = np.array([density({"z": each}) for each in z])
        np.testing.assert_allclose(got - got[0], want - want[0], rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize(
        ("change", "words"), [({"ratio": 0.0}, "ratio"), ({"length_scale": np.inf}, "length_scale"), ({"n": -1}, "n:")]
    )
    def test_impossible_settings_are_refused(self, change, words):
        with pytest.raises(InputError, match=words):
            KimLimModel(**{"mesh": MESH, "ratio": 1e-3, "length_scale": 3.5, "n": 57} | change)

    def test_irregular_meshes_are_refused(self):
        from dpppsynth.spatial.mesh import Mesh

        mesh = Mesh.from_arrays(MESH.vertices, MESH.elements, WINDOW)
        with pytest.raises(InputError, match="regular"):
            KimLimModel(mesh, 1e-3, 3.5, 57)


@pytest.mark.slow
def test_kim_and_lims_synthesizer_from_points_to_release():
    """On squares: at the bound the field is flat in all but name, and the total stays that of the points."""
    window = Window.rectangle(0, 0, 10, 10)
    pattern = PointPattern(np.random.default_rng(1).uniform(0, 10, (200, 2)), window)
    synthesizer = LGCPSynthesizer(
        1.0,
        alpha=0.5,
        mechanism="kim-lim-3.8",
        delta=1e-3,
        mesh=regular_squares(window, shape=(5, 5)),
        length_scale=3.0,
    )
    with pytest.warns(InformationWarning, match="carries no spatial information"):
        release = synthesizer.release(pattern, 7)
    assert release.guarantee.theorem == "kim-lim-3.8"
    assert np.ptp(release.statistic.values) < 0.05
    assert release.intensity.total == pytest.approx(200, rel=0.05)

"""Reports on synthetic patterns: what is scored, what it stands beside, and who may read it."""

import json
import re

import numpy as np
import pytest
import shapely

from dpppsynth import InputError, PointPattern, Window
from dpppsynth.evaluation import distances, metrics, report_files
from dpppsynth.evaluation import utility_report as reports
from dpppsynth.evaluation.distances import misplaced_share, total_variation, wasserstein
from dpppsynth.evaluation.kfunction import k_function
from dpppsynth.evaluation.metrics import Comparison, mean_integrated_squared_error, propensity_mse
from dpppsynth.evaluation.smoothing import kernel_intensity
from dpppsynth.evaluation.utility_report import evaluate
from dpppsynth.linear_network import LinearNetwork, heat_kernels
from dpppsynth.plotting import plot_comparison, save_picture

SQUARE = Window.rectangle(0, 0, 100, 100, "EPSG:27700")
ISLAND = Window.polygon(shapely.box(0, 0, 100, 100).difference(shapely.box(40, 40, 60, 60)))
GRID = LinearNetwork(
    [[x, y] for x in (0, 50, 100) for y in (0, 50, 100)],
    [[0, 1], [1, 2], [3, 4], [4, 5], [6, 7], [7, 8], [0, 3], [3, 6], [1, 4], [4, 7], [2, 5], [5, 8]],
)

# Cells of the quadrature, before the tests of this file coarsen it.
CELLS, SEGMENTS = distances.SIDE, distances.SEGMENTS
R = np.linspace(0, 25, 26)
N = 73
DIFFERENCES = [each.name for each in metrics.METRICS[1:]]


def clustered(n=N, seed=0, domain=SQUARE):
    """Half of the points around one place, the others anywhere."""
    rng = np.random.default_rng(seed)
    near = rng.normal((30, 25), 6, (n // 2, 2)).clip(0, 39)
    anywhere = rng.uniform(0, 100, (2 * n, 2))
    return PointPattern(np.vstack([near, anywhere[domain.contains(anywhere)][: n - n // 2]]), domain)


def on_streets(n, seed=0):
    rng = np.random.default_rng(seed)
    return GRID.pattern(rng.integers(0, 4, n), rng.random(n))


def texts(figure):
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


@pytest.fixture(scope="module")
def report():
    """Two patterns beside an original in a window."""
    return evaluate(clustered(), [clustered(60, 1), clustered(90, 2)], r=R)


@pytest.fixture(scope="module")
def saved(report, tmp_path_factory):
    """The report, written into an empty folder that was open to everybody."""
    folder = tmp_path_factory.mktemp("new") / "private"
    folder.mkdir(mode=0o755)
    return report.save(folder)


class TestTable:
    def test_every_metric_is_that_of_the_functions(self, report):
        original, patterns = clustered(), (clustered(60, 1), clustered(90, 2))
        k = [k_function(each, R) for each in (original, *patterns)]
        surface = [kernel_intensity(each, 10.0) for each in (original, *patterns)]
        expected = np.array(
            [
                [
                    len(each),
                    mean_integrated_squared_error(k[0], k[i]),
                    np.abs(np.sqrt(k[i].k / np.pi) - np.sqrt(k[0].k / np.pi)).max(),
                    misplaced_share(original, each, 10.0),
                    total_variation(surface[0], surface[i], SQUARE),
                    propensity_mse(original, each, surface[0], surface[i]),
                    propensity_mse(original, each, surface[0], surface[i], balanced=True),
                    wasserstein(original, each),
                ]
                for i, each in enumerate(patterns, 1)
            ]
        )
        assert report.table["synthetic"].to_numpy() == pytest.approx(expected.mean(axis=0), rel=1e-12)
        assert report.table["sd"].to_numpy() == pytest.approx(expected.std(axis=0, ddof=1), rel=1e-12)
        assert report.table["original"].tolist() == [N, 0, 0, 0, 0, 0, 0, 0]
        assert report.table["unit"].tolist()[:4] == ["points", "metre", "metre", "share"]
        assert report.table["better"].tolist() == ["as the original"] + ["lower"] * 7
        # The printed score notices that there are fewer points, the balanced one does not ask.
        assert expected[0, 5] != pytest.approx(expected[0, 6], rel=1e-3)

    def test_a_copy_scores_as_the_original(self):
        table = evaluate(clustered(), clustered(), r=R).table
        assert table["synthetic"].to_numpy() == pytest.approx(table["original"].to_numpy(), abs=1e-9)
        assert table["sd"].isna().all()  # of one pattern

    @pytest.mark.parametrize("original", [clustered(300), on_streets(300)], ids=["window", "streets"])
    def test_yardsticks_are_apart(self, original, monkeypatch):
        monkeypatch.setattr(reports, "YARDSTICKS", 5)
        table = evaluate(original, original, r=R).table
        assert (table.loc[DIFFERENCES, "resampled"] > 0).all()
        assert (table.loc[DIFFERENCES, "resampled"] < 0.8 * table.loc[DIFFERENCES, "uniform"]).all()
        assert table.loc["points", "resampled"] == 300
        # Five Poisson numbers of mean 300; a standard deviation is 7.7.
        assert abs(table.loc["points", "uniform"] - 300) < 40

    def test_uniform_patterns_score_as_their_yardstick(self, monkeypatch):
        monkeypatch.setattr(reports, "YARDSTICKS", 6)
        rng = np.random.default_rng(3)
        patterns = [PointPattern(rng.uniform(0, 100, (N, 2)), SQUARE) for _ in range(6)]
        table = evaluate(clustered(), patterns, r=R).table
        assert table.loc[DIFFERENCES, "synthetic"].to_numpy() == pytest.approx(
            table.loc[DIFFERENCES, "uniform"].to_numpy(), rel=0.35
        )

    def test_a_released_intensity_changes_the_propensity_scores_alone(self):
        def level(xy):
            return np.full(len(xy), 0.006)

        given, without = (
            evaluate(clustered(), clustered(60, 1), r=R, synthetic_intensity=each).table["synthetic"]
            for each in (level, None)
        )
        changed = [name for name in given.index if given[name] != without[name]]
        assert changed == ["pMSE", "pMSE, balanced"]
        original = clustered(), kernel_intensity(clustered(), 10.0)
        expected = propensity_mse(original[0], clustered(60, 1), original[1], level)
        assert given["pMSE"] == pytest.approx(expected, rel=1e-12)

    def test_intensities_are_asked_once_for_each_point(self):
        asked = []

        def level(xy):
            asked.append(len(xy))
            return np.full(len(xy), 0.006)

        level.total = 60.0
        evaluate(clustered(), clustered(60, 1), r=R, synthetic_intensity=level)
        assert asked == [N + 60]

    @pytest.mark.parametrize("n", [20, 200])
    def test_settings_are_rules_of_the_domain(self, n):
        made = evaluate(clustered(n, domain=ISLAND), clustered(30, 4, ISLAND))
        assert made.side == made.bandwidth == pytest.approx(0.1 * np.sqrt(9600))
        assert made.k.original.r.tolist() == np.linspace(0, 25, 513).tolist()

    def test_is_the_same_again(self):
        first, again, other = (
            evaluate(clustered(), clustered(60, 1), r=R, rng=seed).table for seed in (0, 0, np.random.default_rng(5))
        )
        assert first.equals(again)
        assert first["synthetic"].equals(other["synthetic"])
        assert not first["resampled"].equals(other["resampled"])

    def test_streets(self):
        made = evaluate(on_streets(40), on_streets(30, 1), r=R)
        expected = k_function(on_streets(30, 1), R)
        assert made.k.synthetic[0].k.tolist() == expected.k.tolist()
        table = made.table
        # Along streets L is K.
        apart = np.abs(expected.k - made.k.original.k)[np.asarray(R) >= max(R) / 10]
        assert table.loc["L, largest difference", "synthetic"] == apart.max()
        assert table.loc["Wasserstein", "synthetic"] == wasserstein(on_streets(40), on_streets(30, 1))
        assert table.loc["Wasserstein", "unit"] == "unit"


def test_points_at_one_place_do_not_decide_the_difference_of_l():
    """Each point of the original twice: at r = 0 its L is that of all pairs at one place, at larger ones hardly."""
    once = clustered(30)
    twice = PointPattern(np.repeat(once.xy, 2, axis=0), SQUARE)
    r = np.linspace(0, 25, 251)
    made = evaluate(twice, clustered(60, 1), r=r)
    apart = np.abs(made.k.synthetic[0].l - made.k.original.l)
    stated = made.table.loc["L, largest difference", "synthetic"]
    assert stated == apart[25:].max()
    assert stated < apart[:5].max()
    assert "K up to 25, L from 2.5 on" in str(made)


class TestResampled:
    class KAlone(Comparison):
        def _first_order(self, *_):
            return ()

    def comparison(self, original):
        return self.KAlone(original, R, 10.0, 10.0, "exact", np.random.default_rng(7))

    @pytest.mark.parametrize("original", [clustered(), on_streets(60)], ids=["window", "streets"])
    def test_copies_of_a_point_are_no_pairs(self, original):
        comparison = self.comparison(original)
        k = np.array([comparison.resampled().k.k for _ in range(60)])
        assert k[:, 0] == pytest.approx(0, abs=1e-9)
        # Left in, copies would add the domain's size / n at every distance: more than half of K at 10.
        assert k[:, 10:].mean(axis=0) == pytest.approx(comparison.k.k[10:], rel=0.15)

    def test_points_that_coincide_still_do(self):
        twice = PointPattern(np.repeat(clustered().xy, 2, axis=0), SQUARE)
        comparison = self.comparison(twice)
        k = np.mean([comparison.resampled().k.k[0] for _ in range(60)])
        assert k == pytest.approx(comparison.k.k[0], rel=0.2)


class TestFewAndMany:
    @pytest.mark.parametrize("n", [0, 1])
    def test_too_few_points_for_pairs(self, n):
        few = PointPattern.synthetic(np.full((n, 2), 50.0), SQUARE)
        made = evaluate(clustered(), [few, clustered(60, 1)], r=R)
        assert not made.k.synthetic[0].k.any()
        assert made.values["synthetic"][0, 0] == n
        assert np.isnan(made.values["synthetic"][0, 3:]).all() == (n == 0)
        assert not made.table["synthetic"].isna().any()
        assert ("without points" in str(made)) == (n == 0)

    def test_nothing_but_empty_patterns(self):
        empty = PointPattern.synthetic([], SQUARE)
        made = evaluate(clustered(), [empty, empty], r=R)
        # A K-function of zero is wrong by 100% wherever the original's is positive.
        apart = made.k.original.k > 0
        assert made.table.loc["K, MISE", "synthetic"] == pytest.approx(np.ptp(R[apart]), abs=1.01)
        assert made.table["synthetic"].isna().tolist() == [False] * 3 + [True] * 5
        assert " - " in str(made)

    @pytest.mark.parametrize(
        ("original", "limit"), [(clustered(), "LARGEST_IN_PLANE"), (on_streets(N), "LARGEST_ON_NETWORK")]
    )
    def test_a_random_part_of_large_patterns_is_compared(self, monkeypatch, original, limit):
        seen = []
        monkeypatch.setattr(
            metrics, "k_function", lambda pattern, r: seen.append(len(pattern)) or k_function(pattern, r)
        )
        monkeypatch.setattr(metrics, limit, 30)
        made = evaluate(original, original, r=R)
        assert max(seen) == 30
        assert "random part" in str(made)
        assert made.table.loc["points", "synthetic"] == N
        assert made.table.loc["misplaced share", "synthetic"] == 0
        # Two random parts of one pattern lie apart, as those of a resampled one do.
        found = made.table.loc["Wasserstein"]
        assert 0 < found["synthetic"] < 2 * found["resampled"]
        assert "random part" not in str(evaluate(clustered(20), clustered(20), r=R))

    def test_propensities_at_a_random_part_are_those_of_all_points(self, monkeypatch):
        """Parts of equal size would change the balance of 60 points against 180."""
        original, synthetic = clustered(60), clustered(180)
        whole = evaluate(original, synthetic, r=R).table["synthetic"]
        sizes = []
        exact = metrics._propensity_error
        monkeypatch.setattr(
            metrics,
            "_propensity_error",
            lambda ours, theirs, n, m, **k: sizes.append((n, m)) or exact(ours, theirs, n, m, **k),
        )
        monkeypatch.setattr(metrics, "MOST_PROPENSITIES", 120)
        part = evaluate(original, synthetic, r=R)
        assert sizes[0] == (30, 90)
        assert "Propensity scores are averaged" in str(part)
        for row in ("pMSE", "pMSE, balanced"):
            assert part.table.loc[row, "synthetic"] == pytest.approx(whole[row], rel=0.5)

    def test_an_original_without_near_pairs_has_no_k(self):
        made = evaluate(PointPattern([[1.0, 1.0], [99.0, 99.0]], SQUARE), clustered(), r=R)
        assert made.table["synthetic"].isna().tolist() == [False, True] + [False] * 6

    def test_networks_that_heat_flow_cannot_serve(self, monkeypatch):
        monkeypatch.setattr(heat_kernels, "MOST_SEGMENTS", 11)
        monkeypatch.setattr(heat_kernels, "MOST_SPREAD", 11)
        # A network of its own: heat flow is remembered.
        pattern = LinearNetwork(GRID.vertices, GRID.edges).pattern([0, 1, 2], [0.1, 0.5, 0.2])
        made = evaluate(pattern, pattern, r=np.linspace(0, 100, 11))
        missing = made.table["synthetic"].isna()
        assert missing[missing].index.tolist() == ["total variation", "pMSE", "pMSE, balanced"]
        assert "heat flow" in str(made)

    def test_sliced_distances_do_not_stand_beside_exact_ones(self, monkeypatch):
        monkeypatch.setattr(metrics, "EXACT_PAIRS", N * 80)
        made = evaluate(clustered(), [clustered(60, 1), clustered(90, 2)], r=R)
        assert made.values["synthetic"][0, 7] == wasserstein(clustered(), clustered(60, 1), "sliced")
        assert "sliced" in str(made)
        assert "sliced" not in str(evaluate(clustered(), clustered(60, 1), r=R))
        assert "sliced" not in str(evaluate(on_streets(N), on_streets(90), r=R))


class Released:
    """Patterns are drawn from it."""

    @staticmethod
    def sample(m):
        return [clustered()] * m


class Bought:
    """Patterns came with it."""

    patterns = ()


class TestRefusals:
    @pytest.mark.parametrize(
        ("original", "synthetic", "options", "said"),
        [
            (clustered(), clustered(domain=ISLAND), {}, "synthetic: lies in another"),
            (clustered(), [clustered(), on_streets(5)], {}, "synthetic: lies in another"),
            (clustered(), [], {}, "synthetic: there is no pattern"),
            (clustered(), [np.zeros((4, 2))], {}, "synthetic: needs a PointPattern"),
            (PointPattern([[1.0, 2.0]], SQUARE), clustered(), {}, "original pattern: must have at least two"),
            (clustered(), clustered(), {"side": 0.0}, "side: must be a positive length"),
            (clustered(), clustered(), {"bandwidth": np.nan}, "bandwidth: must be a positive length"),
            (clustered(), clustered(), {"bandwidth": 0.6}, r"bandwidth: the quadrature .* no less than 3\.333"),
            (on_streets(9), on_streets(9), {"bandwidth": 1e-3}, "bandwidth: the quadrature"),
            (clustered(), clustered(), {"side": np.bool_(True)}, "side: must be a positive length"),
            (clustered(), clustered(), {"r": [3.0, 1.0]}, "r: must be finite"),
            (clustered(), clustered(), {"r": "a"}, "r: must be finite"),
            (clustered(), clustered(), {"r": 20.0}, "r: needs two distances"),
            (clustered(), clustered(), {"r": [0.0]}, "r: needs two distances"),
            (clustered(), clustered(), {"confidential": 0}, "confidential: must be True or False, got 0"),
            (clustered(), clustered(), {"confidential": None}, "confidential: must be True or False"),
            (clustered(), clustered(), {"confidential": "no"}, "confidential: must be True or False"),
            (clustered(), None, {}, "synthetic: must be a PointPattern or several, got NoneType"),
            (clustered(), 3, {}, "synthetic: .* got int"),
            (clustered(), "abc", {}, "synthetic: .* got str"),
            (clustered(), Released, {}, r"synthetic: .*`release\.sample\(20\)`"),
            (clustered(), Bought, {}, r"synthetic: .*`release\.patterns`"),
        ],
    )
    def test_says_what_is_wrong(self, original, synthetic, options, said):
        with pytest.raises(InputError, match=said) as error:
            evaluate(original, synthetic, **options)
        assert not re.search(rf"\b{N}\b", str(error.value))

    def test_numbers_of_numpy_are_lengths(self):
        made = evaluate(clustered(), clustered(60, 1), r=R, side=np.float32(20), bandwidth=np.int64(5))
        assert (made.side, made.bandwidth) == (20.0, 5.0)

    @pytest.mark.parametrize("domain", [SQUARE, GRID], ids=["window", "streets"])
    def test_the_least_bandwidth_is_resolved(self, domain):
        """Total variation does not change on a quadrature of cells half as long."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(distances, "SIDE", CELLS)
            patch.setattr(distances, "SEGMENTS", SEGMENTS)
            distances._midpoints.cache_clear()
            one, other = (clustered(N, k) if domain is SQUARE else on_streets(N, k) for k in (0, 1))
            surfaces = [kernel_intensity(each, distances.quadrature_cell(domain)) for each in (one, other)]
            coarse = total_variation(*surfaces, domain)
            patch.setattr(distances, "SIDE", 2 * CELLS)
            patch.setattr(distances, "SEGMENTS", 2 * SEGMENTS)
            distances._midpoints.cache_clear()
            assert coarse == pytest.approx(total_variation(*surfaces, domain), abs=1e-2)
        distances._midpoints.cache_clear()


class TestConfidential:
    def test_is_said_first(self, report):
        assert str(report).splitlines()[0].startswith("CONFIDENTIAL")
        assert "not private" in str(report).splitlines()[0]
        for name in report.table.index:
            assert name in str(report)

    def test_cannot_be_written_to(self, report):
        arrays = [
            *report.values.values(),
            *(a for each in (report.k.original, *report.k.synthetic) for a in (each.k, each.r)),
        ]
        for array in arrays:
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 0

    def test_repr_shows_no_value(self, report):
        assert repr(report) == f"UtilityReport(CONFIDENTIAL, {SQUARE!r})"
        for each in (report.k, report.k.original, report.k.envelope):
            assert not re.search(rf"\b{N}\b|\[\d|array", repr(each))

    def test_simulated_truth_carries_no_mark(self, tmp_path):
        made = evaluate(clustered(), clustered(60, 1), r=R, confidential=False)
        folder = made.save(tmp_path / "results")
        assert sorted(path.name for path in folder.iterdir()) == [
            "evaluation.json", "k.csv", "k.png", "patterns.png", "summary.csv",
        ]  # fmt: skip
        said = str(made) + repr(made) + (folder / "evaluation.json").read_text().replace('"confidential": false', "")
        said += "".join(texts(made.plot_k().figure)) + "".join(texts(made.plot_patterns()[0].figure))
        assert "confidential" not in said.lower()
        assert "sensitive)" not in said


class TestSave:
    def test_only_the_owner_can_read_it(self, saved):
        names = ["evaluation.json", "k.csv", "k.png", "patterns.png", "summary.csv"]
        assert sorted(path.name for path in saved.iterdir()) == [f"CONFIDENTIAL_{name}" for name in names]
        assert all(path.stat().st_mode & 0o177 == 0 for path in saved.iterdir())
        assert saved.stat().st_mode & 0o077 == 0
        assert [path.name for path in saved.parent.iterdir()] == ["private"]

    def test_folders_above_are_as_private(self, report, saved, tmp_path, monkeypatch):
        monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: None)
        (tmp_path / "open").mkdir(mode=0o755)
        report.save(tmp_path / "open" / "a" / "b" / "c")
        modes = {name: (tmp_path / "open" / name).stat().st_mode & 0o777 for name in ("", "a", "a/b", "a/b/c")}
        assert modes == {"": 0o755, "a": 0o700, "a/b": 0o700, "a/b/c": 0o700}

    @pytest.mark.parametrize("place", ["file", "file/below", "file/below/deeper"])
    def test_places_that_cannot_be(self, report, tmp_path, place):
        (tmp_path / "file").write_text("mine")
        with pytest.raises(InputError, match=r"^folder: (no folder can be made in|.* exists and is not)"):
            report.save(tmp_path / place)
        assert [path.name for path in tmp_path.rglob("*")] == ["file"]
        with pytest.raises(InputError, match=r"^folder: must be a path, got 3"):
            report.save(3)

    def test_a_full_disk_is_said_without_temporary_names(self, report, tmp_path, monkeypatch):
        def full(*_, **__):
            raise OSError(28, "No space left on device", "/somewhere/.private-x/report")

        monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
        with pytest.raises(InputError, match=r"private cannot be written \(No space left") as error:
            report.save(tmp_path / "private")
        assert ".private" not in str(error.value)
        assert list(tmp_path.iterdir()) == []

    def test_contents(self, report, saved):
        document = json.loads((saved / "CONFIDENTIAL_evaluation.json").read_text())
        assert document["confidential"] is True
        assert document["metrics"][0]["patterns"] == [60, 90]
        assert [row["synthetic"] for row in document["metrics"]] == report.table["synthetic"].tolist()
        k = np.genfromtxt(saved / "CONFIDENTIAL_k.csv", delimiter=",", names=True)
        assert k.dtype.names == ("r", "poisson", "original", "synthetic_000", "synthetic_001")
        assert k["original"] == pytest.approx(report.k.original.k, rel=1e-12)
        assert k["synthetic_001"] == pytest.approx(report.k.synthetic[1].k, rel=1e-12)
        assert (saved / "CONFIDENTIAL_summary.csv").read_text().startswith("metric,original,synthetic,sd,uniform")
        written = "".join(path.read_text() for path in saved.iterdir() if path.suffix != ".png")
        assert not any(f"{value:.8f}" in written for value in clustered().xy[:, 0] if value not in (0, 39))

    def test_no_number_is_null(self):
        made = evaluate(clustered(), PointPattern.synthetic([], SQUARE), r=R)
        document = json.loads(json.dumps(report_files.contents(made), allow_nan=False))
        assert document["metrics"][7]["synthetic"] is None
        assert document["metrics"][7]["patterns"] == [None]
        assert document["metrics"][7]["uniform"] > 0

    @pytest.mark.parametrize("place", ["public", "public/below", "public/below/deeper", ".", "link", "link/below"])
    def test_is_never_written_into_or_around_a_release(self, report, tmp_path, place):
        public = tmp_path / "public"
        public.mkdir()
        (public / "certificate.json").write_text("{}")
        (tmp_path / "link").symlink_to(public)
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(InputError, match="release"):
            report.save(tmp_path / place)
        assert sorted(tmp_path.rglob("*")) == before

    @pytest.mark.parametrize("name", ["full", "full/file"])
    def test_overwrites_nothing(self, report, tmp_path, name):
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "file").write_text("mine")
        with pytest.raises(InputError, match="not an empty folder"):
            report.save(tmp_path / name)
        assert [path.name for path in tmp_path.rglob("*")] == ["full", "file"]

    def test_nothing_is_left_where_it_fails(self, report, tmp_path, monkeypatch):
        def fail(*_, **__):
            msg = "disk"
            raise RuntimeError(msg)

        monkeypatch.setattr("matplotlib.figure.Figure.savefig", fail)
        with pytest.raises(RuntimeError, match="disk"):
            report.save(tmp_path / "private")
        assert list(tmp_path.iterdir()) == []


class TestPictures:
    def test_k_in_a_window(self, report):
        ax = report.plot_k()
        lines = {line.get_label(): line for line in ax.lines}
        assert lines["original (sensitive)"].get_ydata() == pytest.approx(np.sqrt(report.k.original.k / np.pi) - R)
        both = np.array([np.sqrt(each.k / np.pi) - R for each in report.k.synthetic])
        assert lines["synthetic, mean"].get_ydata() == pytest.approx(both.mean(axis=0))
        (band,) = ax.collections
        corners = band.get_paths()[0].vertices
        for low, high, r in zip(both.min(axis=0), both.max(axis=0), R, strict=True):
            at = corners[np.isclose(corners[:, 0], r), 1]
            assert (at.min(), at.max()) == pytest.approx((low, high))
        assert lines["Poisson process"].get_ydata() == [0, 0]
        assert (ax.get_ylabel(), ax.get_xlabel()) == ("L(r) - r (m)", "distance r (m)")

    def test_k_on_streets(self):
        made = evaluate(on_streets(40), on_streets(30, 1), r=R)
        ax = made.plot_k()
        lines = {line.get_label(): line for line in ax.lines}
        assert lines["synthetic"].get_ydata() == pytest.approx(made.k.synthetic[0].k - R)
        assert ax.get_ylabel() == "K(r) - r (units)"
        assert "streets" in ax.get_xlabel()
        # One pattern has no envelope.
        assert not ax.collections

    def test_are_marked_across_the_figure(self, report, tmp_path):
        for ax in (report.plot_k(), report.plot_patterns()[0]):
            assert sum("CONFIDENTIAL" in text for text in texts(ax.figure)) == 2
            ax.figure.canvas.draw()
            image = np.asarray(ax.figure.canvas.buffer_rgba()).astype(int)
            assert (image[..., 0] > image[..., 2] + 10).mean() > 0.02
            public = tmp_path / "public"
            public.mkdir(exist_ok=True)
            (public / "certificate.json").write_text("{}")
            with pytest.raises(InputError, match="outside"):
                save_picture(ax, public / "k.png")

    def test_go_into_given_axes(self, report):
        left, right = plot_comparison(clustered(), clustered(60, 1), confidential=False)
        again = plot_comparison(clustered(), clustered(60, 1), (left, right), confidential=False)
        assert again == (left, right)
        assert report.plot_k(left) is left

    def test_no_picture_states_a_number_of_points(self, report):
        said = [*texts(report.plot_k().figure), *texts(report.plot_patterns()[0].figure)]
        assert not any(re.search(r"\b(73|60|90)\b", text) for text in said)

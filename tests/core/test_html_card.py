"""Cards in notebooks: public parameters, everything escaped, no sensitive point or number."""

import re
from pathlib import Path

import numpy as np
import pytest

import dpppsynth as dps

WINDOW = dps.Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
# A number that nothing public has.
N = 1301
XY = np.random.default_rng(1).uniform(0, 1000, (N, 2))
BAD = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    laplace = dps.LaplaceSynthesizer(0.9999999999999999, relation=dps.AddRemove(), postprocess="plain")
    points = dps.PointPattern(XY, WINDOW)
    marked = dps.PointPattern(XY, WINDOW, {BAD: np.repeat([1, 2], [N - 100, 100])})
    release = laplace.release(points, expected_n=1000, rng=2)
    ledger = dps.Ledger.create(
        tmp_path_factory.mktemp("ledgers") / "ledger.json", epsilon=2.0, delta=0.0, relation=dps.AddRemove(), label=BAD
    )
    laplace.release(points, expected_n=1000, ledger=ledger)
    shares = np.random.default_rng(3).random((20, 1))
    return {
        "window": WINDOW,
        "streets": dps.datasets.soho_streets(),
        "pattern": marked,
        "plan": laplace.plan(WINDOW, expected_n=1000),
        "guarantee": release.guarantee,
        "release": release,
        "levels": laplace.release_by(marked, by=BAD, levels=[1, 2], expected_n={1: 800, 2: 200}, rng=4),
        "ledger": ledger,
        "report": dps.evaluation.evaluate(points.unmarked(), release.sample(2, rng=5), rng=6),
        "combined": dps.combine([f"synthetic_draw_{k}.csv" for k in range(len(shares))], shares, shares / 10),
    }


NAMES = "window", "streets", "pattern", "plan", "guarantee", "release", "levels", "ledger", "report", "combined"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_card_is_escaped_and_says_nothing_sensitive(shown, name):
    html = shown[name]._repr_html_()
    assert "<script" not in html
    assert str(N) not in html
    assert not any(f"{value:.6g}" in html for value in XY[:50].ravel())
    for tag in ("div", "table", "tr", "td", "ul", "li", "details", "p", "pre"):
        assert len(re.findall(f"<{tag}[ >]", html)) == html.count(f"</{tag}>"), tag
    # Colours are the notebook's own.
    assert "color" not in html
    assert len(html) < 5000


@pytest.mark.slow
def test_a_card_has_what_is_promised(shown):
    html = shown["release"]._repr_html_()
    assert "laplace-cells" in html
    assert "It is assumed that" in html
    assert "Seeded: not private." in html
    # Rounded upward, never to less than was spent.
    assert ">1<" in shown["guarantee"]._repr_html_()
    assert Path(shown["ledger"].path).name in shown["ledger"]._repr_html_()

"""The report in a headless browser: it fits a phone and a desk, asks for nothing, and prints."""

import base64
import json
import os
import re
import shutil
from itertools import pairwise

import numpy as np
import pytest

from dpppsynth import LaplaceSynthesizer, LinearNetwork, PointPattern, Window
from dpppsynth.reporting import write_report

INSTALL = "no chromedriver: on Debian or Ubuntu install it with `apt-get install chromium chromium-driver`"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
)
SCREENS = {"phone": (390, 844, True), "desk": (1280, 900, False)}
LEVEL = "<script>document.title = 'broken'</script>" + "a_very_long_name_" * 7
STREETS = LinearNetwork([[0, 0], [400, 0], [400, 300], [0, 300]], [(0, 1), (1, 2), (2, 3), (3, 0)], "EPSG:27700")
FITS = """
const wide = [...document.querySelectorAll("body *")].filter(e => !e.closest(".scroll")
    && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1);
const root = document.documentElement;
return [root.scrollWidth, root.clientWidth, wide.map(e => e.outerHTML.slice(0, 90))];
"""
PICTURES = "return [...document.images].map(i => [i.complete, i.naturalWidth, i.alt])"
HEADINGS = "return [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].map(h => Number(h.tagName[1]))"
# What scrolls inside itself must be reached by the keyboard, and have a name.
SCROLLED = """
return [...document.querySelectorAll(".scroll")].filter(e => e.tabIndex !== 0 || e.getAttribute("role") !== "region"
    || !e.getAttribute("aria-label")).map(e => e.outerHTML.slice(0, 90));
"""
# Relative luminance and contrast by WCAG 2.1, of every element that has words of its own.
CONTRAST = """
const parts = c => c.match(/[\\d.]+/g).map(Number);
const linear = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
const light = c => parts(c).slice(0, 3).map(v => linear(v / 255))
    .reduce((sum, v, k) => sum + v * [.2126, .7152, .0722][k], 0);
const ground = e => { while (e) { const c = getComputedStyle(e).backgroundColor, p = parts(c);
    if (p.length < 4 || p[3] === 1) return c; e = e.parentElement; } return "rgb(255, 255, 255)"; };
return Math.min(...[...document.querySelectorAll("body *")]
    .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
    .map(e => [light(getComputedStyle(e).color), light(ground(e))].sort((a, b) => b - a))
    .map(([a, b]) => (a + .05) / (b + .05)));
"""


def programs():
    """Driver and browser; without them a failure where tests must run, a skip elsewhere."""
    driver = shutil.which("chromedriver")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if driver is None or found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(INSTALL)
    return driver, found


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver, found = programs()
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = found
    for flag in [*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    yield chrome
    chrome.quit()


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Reports of a release by levels with hostile names and long ones without a break, and of one on streets."""
    place, rng = tmp_path_factory.mktemp("reports"), np.random.default_rng(3)
    square = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
    kinds = [LEVEL, "b", "c", "d", "e"]
    marked = PointPattern(rng.uniform(0, 1000, (80, 2)), square, {"kind": np.array(kinds)[np.arange(80) % 5]})
    laplace = LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain")
    levels = laplace.release_by(marked, by="kind", levels=kinds).save(place / "levels", patterns=2)
    on_streets = STREETS.pattern(rng.integers(0, 4, 80), rng.random(80))
    streets = laplace.release(on_streets, 1).save(place / "streets", patterns=4)
    return {"levels": write_report(levels), "streets": write_report(streets)}


def show(browser, report, screen, *, dark=False, opened=False):
    width, height, mobile = SCREENS[screen]
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    for log in ("browser", "performance"):
        browser.get_log(log)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [scheme]})
    browser.get(report.as_uri())
    if opened:
        browser.execute_script("document.querySelector('details').open = true")


def requested(browser):
    events = [json.loads(each["message"])["message"] for each in browser.get_log("performance")]
    return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]


@pytest.mark.slow
@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("name", ["levels", "streets"])
def test_it_fits_and_asks_for_nothing(name, screen, browser, reports):
    show(browser, reports[name], screen, opened=True)
    whole, width, wide = browser.execute_script(FITS)
    assert whole <= width, wide
    assert not wide
    pictures = browser.execute_script(PICTURES)
    assert len(pictures) >= 6
    assert all(complete and natural > 0 and alt for complete, natural, alt in pictures)
    levels = browser.execute_script(HEADINGS)
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert browser.execute_script(CONTRAST) >= 4.5
    assert browser.execute_script(SCROLLED) == []
    assert browser.title == "Privacy report of a synthetic point pattern"
    assert browser.get_log("browser") == []
    asked = [url for url in requested(browser) if not url.startswith("data:image/")]
    assert asked == [reports[name].as_uri()]


@pytest.mark.parametrize("screen", SCREENS)
def test_dark_pages_can_be_read(screen, browser, reports):
    """Light letters on dark ground, pictures on their own white paper, in the appendix as well."""
    show(browser, reports["levels"], screen, dark=True, opened=True)
    ground, picture = browser.execute_script(
        "return ['body', 'img'].map(e => getComputedStyle(document.querySelector(e)).backgroundColor)"
    )
    assert max(map(int, re.findall(r"\d+", ground))) < 60
    assert picture == "rgb(255, 255, 255)"
    assert browser.execute_script(CONTRAST) >= 4.5
    assert browser.execute_script(FITS)[2] == []


def test_promise_map_and_what_is_not_promised_are_on_the_first_screen(browser, reports):
    """Beside each other on a desk, and hashes and parameters folded away."""
    show(browser, reports["streets"], "desk")
    bottoms = (
        "return ['.promise', 'figure img', '.first ul'].map(e => document.querySelector(e).getBoundingClientRect())"
    )
    shown = [(box["bottom"], box["left"]) for box in browser.execute_script(bottoms)]
    assert max(bottom for bottom, _ in shown) <= SCREENS["desk"][1]
    assert [left for _, left in shown] == sorted({left for _, left in shown})
    folded = "return [...document.querySelectorAll('details table, section > table')].map(e => e.checkVisibility())"
    assert not any(browser.execute_script(folded))
    assert "sha256" not in browser.find_element("tag name", "header").text.lower()


def test_the_policy_is_in_force(browser, reports):
    """The check of the check: what the page may not do is stopped by the browser, and would be seen here."""
    show(browser, reports["levels"], "desk")
    browser.execute_script("const i = new Image(); i.src = 'https://example.org/x.png'; document.body.append(i)")
    blocked = [entry["message"] for entry in browser.get_log("browser")]
    assert any("Content Security Policy" in message for message in blocked)


@pytest.mark.parametrize("name", ["levels", "streets"])
def test_it_prints(name, browser, reports):
    show(browser, reports[name], "desk")
    paper = {"printBackground": True, "paperWidth": 8.27, "paperHeight": 11.69}
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", paper)["data"])
    assert pdf.startswith(b"%PDF-")
    # Five levels take five pages, and one more where a name has a hundred letters; a page for every picture took 22.
    assert 1 < len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 6
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        shown = browser.execute_script("return getComputedStyle(document.querySelector('nav')).display")
        overlap = browser.execute_script(
            "const bottom = e => document.querySelector(e).getBoundingClientRect().bottom;"
            "return bottom('.first figure') - bottom('.first')"
        )
        cut = browser.execute_script("return getComputedStyle(document.querySelector('figure')).breakInside")
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert (shown, cut) == ("none", "avoid")
    # The map beside the words ends before the next section begins.
    assert overlap <= 0


def test_without_a_browser_the_tests_say_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install chromium chromium-driver"):
        programs()
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match="apt-get install chromium chromium-driver"):
        programs()

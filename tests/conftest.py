"""Files whose tests share one process (`pytest -n ... --dist loadgroup`), so that what they share is made once.

By name: the marks of pytest-xdist 3.8 for groups travel in the names of tests, where pytest 9.2 has no room for them.
"""

import functools
import gc
import importlib
import os
import time
from collections import Counter
from pathlib import Path

import hypothesis
import platformdirs
import pytest

# The same examples in every run, however busy the machine is.
hypothesis.settings.register_profile("steady", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("steady")

# Scripts go on in spite of warnings; tests of these, and the commands of README and guides, take it away.
os.environ["DPPPSYNTH_YES"] = "1"

# What a test that is marked slow weighs beside the others, where files are put in order.
SLOW = 50
# Where posterior draws of a field are kept to make one intensity of them, and nothing depends on how many: 80 or 200 of
# them, since their integrals would take more time than all else.
KEPT = dict.fromkeys(
    (
        "test_conformance.py",
        "test_kept_releases.py",
        "test_mechanisms.py",
        "test_posterior_draws.py",
        "test_public_refusals.py",
        "test_start_up.py",
    ),
    80,
) | dict.fromkeys(
    (
        "test_cli.py",
        "test_clusters.py",
        "test_effects_of_covariates.py",
        "test_even_field.py",
        "test_export.py",
        "test_field_estimate.py",
        "test_fuzz_readers.py",
        "test_guides.py",
        "test_inference_after_statistic.py",
        "test_intensity_files.py",
        "test_leaks.py",
        "test_ledger_points.py",
        "test_ledger_release.py",
        "test_network_certificates.py",
        "test_network_cli.py",
        "test_plotting.py",
        "test_rehearsal.py",
        "test_release.py",
        "test_report_browser.py",
        "test_report_html.py",
        "test_resume.py",
        "test_sigmas_of_risk.py",
        "test_sparse_prior.py",
        "test_strata.py",
        "test_street_cells.py",
        "test_synthesizers.py",
    ),
    200,
)
# Where intensities are drawn in few pixels, and nothing looks at them.
FEW_PIXELS = {
    "test_effects_of_covariates.py",
    "test_guides.py",
    "test_leaks.py",
    "test_marked_moves.py",
    "test_moved_counts.py",
    "test_moved_streets.py",
    "test_report_browser.py",
    "test_report_html.py",
}
# Where total variation is of a coarser quadrature, with one pattern a yardstick: the last digits are not asked for.
COARSE = {
    "test_effects_of_covariates.py",
    "test_evaluate_cli.py",
    "test_guides.py",
    "test_heatmap_cli.py",
    "test_report.py",
}
# Where few attempts settle the sampler "auto".
FEW_TRIALS = {
    "test_conformance.py",
    "test_mechanisms.py",
    "test_posterior_draws.py",
    "test_public_refusals.py",
    "test_rehearsal.py",
}

# Where plans are put to hundreds of runs each: OpenDP takes longer to confirm a scale than to draw.
AUDITS = {
    "test_audit_mechanisms.py",
    "test_audit_releases.py",
    "test_auditing.py",
    "test_field_statistic.py",
    "test_heatmap_audit.py",
    "test_marked_release.py",
    "test_pair_sums_release.py",
}


def pytest_configure(config):
    """Import ArviZ once before workers do: its first import of a day writes a stamp, and two at once fail."""
    stamp = Path(platformdirs.user_cache_dir("arviz", "arviz")) / "daily_warning"
    stamped = stamp.is_file() and stamp.read_text().strip() == time.strftime("%Y-%m-%d")
    if not stamped and not hasattr(config, "workerinput"):
        importlib.import_module("arviz")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Garbage is not looked for among tests while these are collected, nor while they run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave one example of exhaustive tests to the quick set, one of every mechanism where they run over these."""
    if hasattr(config, "workerinput"):
        heaviest_first(items)
    seen = set()
    for item in items:
        if item.get_closest_marker("exhaustive") and not item.get_closest_marker("slow"):
            parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
            example = (item.nodeid.partition("[")[0], *(getattr(each, "mechanism", None) for each in parameters))
            if example in seen:
                item.add_marker("slow")
            seen.add(example)


def heaviest_first(items):
    """Put files with much to do before others: no process is left with a long one when the others have ended."""
    weight = Counter()
    for item in items:
        weight[group(item.nodeid)] += SLOW if item.get_closest_marker("slow") else 1
    items.sort(key=lambda item: -weight[group(item.nodeid)])


def group(name: str) -> str:
    """Process group of the test of this name: the tests of one file, or of one case of conformance."""
    file, _, test = name.partition("::")
    if file == "tests/contract/test_conformance.py" and "[" in test:
        return file + test[test.index("[") :]
    return file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Answer only where groups are asked for."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Grouped(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group(nodeid)

        def _reschedule(self, node):
            # Looking through all that has ended, after every test, takes as long as some of the tests.
            work = self.assigned_work[node]
            for ended in [scope for scope, tests in work.items() if all(tests.values())]:
                del work[ended]
            super()._reschedule(node)

    config.option.loadscopereorder = False  # they are in order
    return Grouped(config, log)


@pytest.fixture(scope="module", autouse=True)
def quick(request):
    """Few draws, attempts and pixels, and noise of a scale made once, in the files named above."""
    name = request.path.name
    with pytest.MonkeyPatch.context() as patch:
        if name in KEPT:
            patch.setattr("dpppsynth.inference.lgcp_inference.KEPT_DRAWS", KEPT[name])
            patch.setattr("dpppsynth.inference.sparse_inference.MOST_DRAWS", KEPT[name])
        if name in AUDITS:
            for kind in ("OpenDPLaplace", "OpenDPGaussian"):
                made = getattr(importlib.import_module("dpppsynth.privacy.noise"), kind)
                patch.setattr(f"dpppsynth.privacy.noise.{kind}", functools.cache(made))
        if name in FEW_TRIALS:
            patch.setattr("dpppsynth.mechanisms.lgcp.draws.TRIALS", 100)
        if name in FEW_PIXELS:
            patch.setattr("dpppsynth.plotting.surfaces.PIXELS", 40)
        if name in COARSE:
            patch.setattr("dpppsynth.evaluation.distances.SIDE", 30)
            patch.setattr("dpppsynth.evaluation.distances.SEGMENTS", 256)
            patch.setattr("dpppsynth.evaluation.utility_report.YARDSTICKS", 1)
        yield

"""Groups of tests that share one process (`pytest -n ... --dist loadgroup`).

By name: the marks of pytest-xdist 3.8 for groups travel in the names of tests, where pytest 9.2 has no room for them.
"""

import pytest

# What is made once for all tests of these takes seconds.
TOGETHER = (
    "tests/models/test_posterior.py",
    "tests/release/test_leaks.py::TestNoise",
    "tests/ledger/test_ledger.py::TestProcesses",
)
# Where posterior draws of a field are kept to make one intensity of them, and nothing depends on how many. Their
# integrals would take more time than all else.
FEW_DRAWS = {
    "test_cli.py",
    "test_fuzz_readers.py",
    "test_leaks.py",
    "test_ledger_release.py",
    "test_network_certificates.py",
    "test_network_cli.py",
    "test_plotting.py",
    "test_rehearsal.py",
    "test_release.py",
    "test_report_html.py",
    "test_strata.py",
    "test_synthesizers.py",
}


def group(name: str) -> str:
    """Process group of the test of this name: the tests of one case of conformance, or of one place."""
    if name.startswith("tests/contract/test_conformance.py") and "[" in name:
        return "tests/contract/test_conformance.py" + name[name.index("[") :]
    return next((place for place in TOGETHER if name.startswith(place)), name)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Answer only where groups are asked for."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Grouped(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group(nodeid)

    return Grouped(config, log)


@pytest.fixture(scope="module", autouse=True)
def few_draws_are_kept(request):
    """A tenth of the draws of a posterior, in the files named above."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.name in FEW_DRAWS:
            patch.setattr("dpppsynth.release.lgcp_inference.KEPT_DRAWS", 200)
        yield

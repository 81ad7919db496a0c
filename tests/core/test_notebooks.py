"""Notebooks run from the first cell to the last, and show their pictures.

Those of research take minutes, and are kept with their outputs: the code must be that which made them, and runs here
with fewer draws. The others are kept without.
"""

import importlib
from pathlib import Path

import nbclient
import nbformat
import pytest
from jupyter_core.utils import run_sync

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(path.name for path in EXAMPLES.glob("*.ipynb"))
RESEARCH = {
    "the_model": "DRAWS, TUNE, SEED = 30, 50, 1",
    "own_pymc_model": "DRAWS, TUNE, SEED = 30, 50, 1",
    "reproduce_paper": 'INTENSITIES, SEED = ("lambda1",), 1',
}
LARGEST = 600 * 1024
PLACE = {"metadata": {"path": EXAMPLES}}
# Nothing is left of the notebook before; no notebook shows how many draws or pixels there are.
AFRESH = """
from importlib import import_module
for module, name, value in (
    ("inference.lgcp_inference", "KEPT_DRAWS", 200),
    ("inference.sparse_inference", "MOST_DRAWS", 200),
    ("inference.judged_inference", "MOST_DRAWS", 60),
    ("plotting.surfaces", "PIXELS", 40),
):
    setattr(import_module(f"dpppsynth.{module}"), name, value)
%reset -f
"""


@pytest.fixture(scope="module")
def kernel():
    """One for all notebooks: each loads the package in seconds."""
    manager = nbclient.NotebookClient(nbformat.v4.new_notebook(), kernel_name="python3").create_kernel_manager()
    yield manager
    run_sync(manager.shutdown_kernel)(now=True)


@pytest.fixture
def runs(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("run_notebooks")


def research(name):
    return nbformat.read(EXAMPLES / "research" / f"{name}.ipynb", as_version=4)


def pictures(notebook):
    """Pictures of each cell of code."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [sum("image/png" in each.get("data", {}) for each in cell.outputs) for cell in code]


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 5
    assert {path.stem for path in (EXAMPLES / "research").glob("*.ipynb")} == set(RESEARCH)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_no_outputs_are_kept(name):
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.parametrize("name", RESEARCH)
def test_outputs_are_those_of_the_code(name, runs):
    notebook = research(name)
    nbformat.validate(notebook)
    assert notebook.metadata[runs.MADE_BY] == runs.fingerprint(notebook)
    assert sum(pictures(notebook)) >= 1
    assert (EXAMPLES / "research" / f"{name}.ipynb").stat().st_size < LARGEST
    outputs = [each for cell in notebook.cells if cell.cell_type == "code" for each in cell.outputs]
    assert not any(each.output_type == "error" or each.get("name") == "stderr" for each in outputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", RESEARCH)
def test_research_runs(name, runs):
    notebook = research(name)
    expected = pictures(notebook)
    runs.run(notebook, RESEARCH[name])
    # One cell more, with other parameters.
    assert sorted(pictures(notebook)) == sorted([0, *expected])


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_runs(name, kernel):
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    drawing = sum("plot_" in cell.source and "import" not in cell.source for cell in notebook.cells)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(AFRESH))
    client = nbclient.NotebookClient(notebook, km=kernel, timeout=300, resources=PLACE)
    client.execute()
    client.kc.stop_channels()
    outputs = [each for cell in notebook.cells if cell.cell_type == "code" for each in cell.outputs]
    assert sum("image/png" in each.get("data", {}) for each in outputs) == drawing
    # A guarantee, a pattern or a release stands as a card, not as a line of code.
    assert name == "own_models.ipynb" or any(
        "<strong>" in str(each.get("data", {}).get("text/html")) for each in outputs
    )

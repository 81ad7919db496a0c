"""Notebooks run from the first cell to the last, show their pictures, and are kept without outputs."""

from pathlib import Path

import nbclient
import nbformat
import pytest
from jupyter_core.utils import run_sync

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(path.name for path in EXAMPLES.glob("*.ipynb"))
PLACE = {"metadata": {"path": EXAMPLES}}


@pytest.fixture(scope="module")
def kernel():
    """One for all notebooks: each loads the package in seconds."""
    manager = nbclient.NotebookClient(nbformat.v4.new_notebook(), kernel_name="python3").create_kernel_manager()
    yield manager
    run_sync(manager.shutdown_kernel)(now=True)


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 6


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_no_outputs_are_kept(name):
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_runs(name, kernel):
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    drawing = sum("plot_" in cell.source and "import" not in cell.source for cell in notebook.cells)
    # Nothing is left of the one before.
    notebook.cells.insert(0, nbformat.v4.new_code_cell("%reset -f"))
    client = nbclient.NotebookClient(notebook, km=kernel, timeout=300, resources=PLACE)
    client.execute()
    client.kc.stop_channels()
    outputs = [each for cell in notebook.cells if cell.cell_type == "code" for each in cell.outputs]
    pictures = [each for each in outputs if "image/png" in each.get("data", {})]
    assert len(pictures) == drawing
    # A guarantee, a pattern or a release stands as a card, not as a line of code.
    assert name in ("reproduce_paper.ipynb", "own_models.ipynb") or any(
        "<strong>" in str(each.get("data", {}).get("text/html")) for each in outputs
    )

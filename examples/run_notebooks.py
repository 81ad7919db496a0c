"""Runs of the research notebooks, which are kept with what they showed.

    OMP_NUM_THREADS=1 python examples/run_notebooks.py [NAME ...]    # all, or some, each in some minutes

Other notebooks run in seconds and are kept empty. Here each states the SHA-256 of the code that made its outputs, so
that a change of one without the other is found.
"""

import base64
import hashlib
import io
import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat
from PIL import Image

FOLDER = Path(__file__).parent / "research"
# Seconds that a cell may take, and colours of a picture.
LIMIT, COLOURS = 900, 64
MADE_BY = "code"


def fingerprint(notebook: Any) -> str:
    """SHA-256 of the code of a notebook."""
    code = "\0".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    return hashlib.sha256(code.encode()).hexdigest()


def run(notebook: Any, parameters: str = "") -> None:
    """Run all cells, with other values of those in the cell with the tag "parameters"."""
    if parameters:
        at = next(k for k, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", ()))
        notebook.cells.insert(at + 1, nbformat.v4.new_code_cell(parameters))
    place = {"metadata": {"path": FOLDER}}
    nbclient.NotebookClient(notebook, timeout=LIMIT, kernel_name="python3", resources=place).execute()


def tidy(notebook: Any) -> None:
    """Leave out warnings and times, and make pictures small."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type != "code":
            continue
        cell.execution_count = None
        cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
        for each in cell.outputs:
            if "execution_count" in each:
                each.execution_count = None
            if "image/png" in each.get("data", {}):
                each.data = {"image/png": smaller(each.data["image/png"])}
    notebook.metadata = {"kernelspec": notebook.metadata.get("kernelspec", {}), MADE_BY: fingerprint(notebook)}


def smaller(picture: str) -> str:
    """A PNG with few colours."""
    out = io.BytesIO()
    Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB").quantize(COLOURS).save(out, "png", optimize=True)
    return base64.b64encode(out.getvalue()).decode()


def main(names: list[str]) -> None:
    """Run the notebooks of these names."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        notebook = nbformat.read(path, as_version=4)
        run(notebook)
        tidy(notebook)
        nbformat.write(notebook, path)
        print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Pages of the site that show a research notebook, with its outputs, where they say `<!-- notebook: NAME -->`."""

import json
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

EXAMPLES = Path(__file__).parents[2] / "examples"
MARK = re.compile(r"<!-- notebook: ([a-z_]+) -->")


def cells_of(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["cells"]
    return found


def title(path: Path) -> str:
    """First heading of a notebook."""
    texts = ["".join(cell["source"]) for cell in cells_of(path) if cell["cell_type"] == "markdown"]
    lines = "\n".join(texts).splitlines()
    return next((line.lstrip("# ") for line in lines if line.startswith("# ")), path.stem)


def page(path: Path) -> str:
    """A notebook as Markdown; pictures stand in it as they are."""
    return "\n\n".join(part for cell in cells_of(path) for part in shown(cell))


def shown(cell: dict[str, Any]) -> list[str]:
    """Text, or code and what it printed and drew."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    return [fenced(source, "python"), *(part for output in cell["outputs"] for part in outcome(output))]


def outcome(output: dict[str, Any]) -> list[str]:
    """Pictures and printed lines; a figure's own name is neither."""
    data = output.get("data", {})
    if "image/png" in data:
        return [f"![Output of the code above](data:image/png;base64,{''.join(data['image/png']).strip()})"]
    text = "".join(output.get("text", []))
    return [fenced(text.strip("\n"), "text")] if text else []


def fenced(text: str, language: str) -> str:
    return f"````{language}\n{text}\n````"


def fill(_app: Sphinx, name: str, source: list[str]) -> None:
    """Put notebooks where pages show them, and links to the others where they are listed."""
    source[0] = MARK.sub(lambda found: page(EXAMPLES / "research" / f"{found[1]}.ipynb"), source[0])
    if name == "notebooks":
        for path in sorted(EXAMPLES.glob("*.ipynb")):
            source[0] += f"\n* [{title(path)}](../examples/{path.name})"


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}

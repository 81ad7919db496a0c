"""Settings of the site: MyST pages, and an API reference from the docstrings. `make docs` builds it in out/docs."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

from sphinx.application import Sphinx

import dpppsynth

sys.path.insert(0, str(Path(__file__).with_name("_ext")))

project = "dpppsynth"
author = "the dpppsynth authors"
copyright = author  # noqa: A001 - the name that Sphinx looks for
version = release = installed_version("dpppsynth")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "generated_tables", "notebook_pages"]
exclude_patterns = ["_build"]
myst_heading_anchors = 4

# Docstrings say `name` in single backticks, as they are read in a terminal: a link where there is such a name.
default_role = "py:obj"
add_module_names = False
toc_object_entries = False  # a navigation tree of every method doubles the time and helps nobody
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # types stand under Parameters
autodoc_default_options = {"members": True}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# Parameters called `n` or `shape` look like attributes of several classes to Sphinx.
suppress_warnings = ["ref.python"]

html_theme = "furo"
html_title = f"dpppsynth {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = html_show_sphinx = html_show_copyright = False


def documented_once(_app: Sphinx, what: str, name: str, *_: object) -> bool | None:
    """Leave names of `dpppsynth` itself to the pages that list them by hand."""
    return True if what == "module" and name in dpppsynth.__all__ else None


def setup(app: Sphinx) -> None:
    app.connect("autodoc-skip-member", documented_once)

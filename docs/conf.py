"""Sphinx: how docs/ becomes a site that opens without a network. `make docs` builds it."""

import importlib
import pkgutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import ecomlab  # noqa: E402

project, author, copyright = "ecomlab", "the ecomlab authors", "the ecomlab authors, Apache-2.0"
release = version = ecomlab.__version__

extensions = ["myst_nb", "sphinx_design", "sphinx.ext.autodoc", "sphinx.ext.apidoc", "extras"]
exclude_patterns = ["_build"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}

# Pages are Markdown that GitHub renders as well.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]
nb_execution_mode = "off"  # docs/build.py has executed them
nb_mime_priority_overrides = [("html", "image/png", 0)]

# The reference: a page for each package, from docstrings that write code in single backticks.
default_role = "code"
ELSEWHERE = []
"""Bridges to packages that are not installed here; docs/bridges.md is about them."""
for found in pkgutil.walk_packages(
    ecomlab.__path__, "ecomlab."
):  # as they are: Sphinx alters pydantic's annotations
    if found.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError:
        if not found.name.startswith("ecomlab.bridges."):
            raise
        ELSEWHERE.append(found.name.rpartition(".")[2])
apidoc_modules = [
    {
        "path": "../ecomlab",
        "destination": "api",
        "exclude_patterns": [f"../ecomlab/bridges/{name}.py" for name in ELSEWHERE],
        "automodule_options": {"members", "show-inheritance"},
    }
]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "separated"

html_theme = "furo"
html_title = "ecomlab"
html_static_path = ["_static", "../ecomlab/markup/style.css"]
html_css_files = ["style.css", "extras.css"]  # the first is the design of all pages
DESIGN = {
    **dict.fromkeys(("color-brand-primary", "color-brand-content", "color-brand-visited"), "var(--accent)"),
    "font-stack": "var(--font)",
    "font-stack--monospace": "var(--mono)",
    "code-font-size": "var(--small)",
}
html_theme_options = {"top_of_page_buttons": [], "light_css_variables": DESIGN, "dark_css_variables": DESIGN}
html_show_sourcelink = False
html_copy_source = False
# Plotly and widgets would load scripts from elsewhere; outputs are pictures, HTML and text.
nb_ipywidgets_js: dict[str, dict[str, str]] = {}

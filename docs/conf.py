"""How Sphinx builds these pages: ``python -m sphinx -W docs build/docs`` from a checkout (extra ``docs``)."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "extensions"), str(Path(__file__).parents[1])]

import fleet_mpi  # noqa: E402

project = "fleet_mpi"
author = "the authors of fleet_mpi"
copyright = "the authors of fleet_mpi, Apache-2.0"
version = release = fleet_mpi.__version__
extensions = ["generated", "plots"]
exclude_patterns = ["build"]
highlight_language = "none"
nitpicky = True
html_theme = "furo"
html_title = "fleet_mpi"
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_show_sphinx = False
html_copy_source = False

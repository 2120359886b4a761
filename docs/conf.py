"""Settings of the documentation; build it with ``make docs``."""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

from buttress import __version__
from buttress._documented import SITE

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "Buttress"
author = "Buttress developers"
copyright = "Buttress developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    # MathJax from a package instead of a CDN: formulas are set without a network
    "sphinx-mathjax-offline",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "examples/**/*.ipynb", "**sg_execution_times.rst"]
root_doc = "index"
# The settings hold functions of no consequence to the cache of pages.
suppress_warnings = ["config.cache"]

autosummary_generate = True
autodoc_typehints = "none"
# The class pages list attributes and methods from the docstrings; see the template.
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = f"Buttress {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_baseurl = SITE + "/stable/"
html_extra_path = ["llms.txt"]
# Pages that have moved, and where to.
MOVED = {"coming_from": "coming_from/index"}
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 5,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Only the published pages ask for the list of versions, which lies beside all of them
# (tools/publish_docs.py); pages built for oneself fetch nothing.
published = os.environ.get("BUTTRESS_DOCS_VERSION", "").removeprefix("v")
if published:
    html_theme_options |= {
        "navbar_end": ["version-switcher", "theme-switcher"],
        "switcher": {"json_url": SITE + "/switcher.json", "version_match": published},
        "check_switcher": False,
    }
# The front page has nothing beside it.
html_sidebars = {"index": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    "filename_pattern": "plot_",
    # files beside the gallery that its pages include are no pages
    "ignore_pattern": r"/(?!plot_)[^/]*\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    # a page of times is of no use to readers, and it asks the network for scripts
    "write_computation_times": False,
    "show_memory": False,
    "remove_config_comments": True,
}

# Examples are small: several BLAS threads would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.filterwarnings("ignore", message=".*is non-interactive.*")


def _escape_shapes(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """In "ndarray of shape (n_features_in_,)" the underscore would be read as a link."""
    for index, line in enumerate(lines):
        lines[index] = re.sub(r"(?<=of shape \()(\w+)_,\)", r"\1\\_,)", line)


def _draw_rooms(app: Any) -> None:
    """The picture of the packages, from the sources as they are."""
    import rooms

    (HERE / "images" / "rooms.svg").write_text(rooms.draw(rooms.room_graph()), encoding="utf-8")


def _list_trusted_types(app: Any) -> None:
    """What a model file may hold, as it is now."""
    from buttress.persistence import trusted_types

    lines = "\n".join(sorted(trusted_types()))
    (HERE / "images" / "trusted_types.txt").write_text(lines + "\n", encoding="utf-8")


def _leave_word_at_old_addresses(app: Any, exception: Any) -> None:
    """A page that sends on, where a page has moved from."""
    if exception is not None or app.builder.format != "html":
        return
    for old, new in MOVED.items():
        page = (
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Moved</title>'
            f'<meta http-equiv="refresh" content="0; url={new}.html"></head>'
            f'<body><a href="{new}.html">This page has moved.</a></body></html>\n'
        )
        (Path(app.outdir) / f"{old}.html").write_text(page, encoding="utf-8")


def setup(app: Any) -> None:
    app.connect("build-finished", _leave_word_at_old_addresses)
    app.connect("builder-inited", _draw_rooms)
    app.connect("builder-inited", _list_trusted_types)
    # Before numpydoc, which takes the docstring apart at priority 500.
    app.connect("autodoc-process-docstring", _escape_shapes, priority=400)

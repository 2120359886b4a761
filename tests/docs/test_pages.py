"""The examples in the documentation's pages do what the pages say."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(
    path.relative_to(DOCS).as_posix()
    for folder in (".", "how_to", "coming_from", "families", "methods")
    for path in DOCS.glob(f"{folder}/*.rst")
    if ">>>" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.filterwarnings("ignore")
def test_the_examples_of_a_page(page):
    pytest.importorskip("skops")
    pytest.importorskip("pandas")
    for name, page_of in (("river", "coming_from/river.rst"), ("dask", "how_to/cluster.rst")):
        if page == page_of:
            pytest.importorskip(name)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=flags)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_api_page_lists_every_public_name():
    import buttress
    from buttress import datasets, inspection, metrics, persistence, report, tables

    listed = set(re.findall(r"^   (\w+)$", (DOCS / "api" / "index.rst").read_text(), re.MULTILINE))
    for package in (buttress, datasets, inspection, metrics, persistence, report, tables):
        names = {name for name in package.__all__ if not name.startswith("_")}
        exempt = {"Estimate", "RejectScorer", "load", "save"} if package is not buttress else set()
        assert names - exempt <= listed, package.__name__

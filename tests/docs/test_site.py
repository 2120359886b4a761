"""The built documentation as readers meet it: links that lead somewhere, nothing cut off.

``make docs-check`` builds it and names its folder in ``BUTTRESS_SITE``; the browser's part needs
a headless Chromium.
"""

from __future__ import annotations

import importlib.util
import os
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.skipif(
    "BUTTRESS_SITE" not in os.environ, reason="no built documentation (make docs-check)"
)
SITE = Path(os.environ.get("BUTTRESS_SITE", ".")).resolve()

spec = importlib.util.spec_from_file_location(
    "chromium", Path(__file__).parents[1] / "report" / "chromium.py"
)
chromium = importlib.util.module_from_spec(spec)
spec.loader.exec_module(chromium)

PAGES = (
    "index",
    "start",
    "how_to/index",
    "how_to/tune",
    "how_to/tables",
    "coming_from/index",
    "coming_from/river",
    "project",
    "methods",
    "architecture",
    "families/leaky",
    "families/reject",
    "results/index",
    "results/lhs-table2",
    "api/index",
    "api/generated/buttress.RampClassifier",
)


class Anchors(HTMLParser):
    """The links of a page and the places that links may name."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        for key in ("id", "name"):
            if found.get(key):
                self.names.add(found[key])
        for key in ("href", "src"):
            if found.get(key):
                self.links.append(found[key])


def anchors(path: Path) -> Anchors:
    parser = Anchors()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


def test_no_link_is_dead():
    # what the theme keeps for its own use is no page
    built = [path for path in SITE.rglob("*.html") if "_static" not in path.parts]
    pages = {path: anchors(path) for path in built}
    assert len(pages) > 60
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("#"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists() or (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in (pages[target].names)
            ):
                dead.append(f"{path.relative_to(SITE)}: {link}")
    assert not dead, dead[:10]


@pytest.fixture(scope="module", params=[(1280, False), (390, True)], ids=["wide", "phone, dark"])
def browser(request, tmp_path_factory):
    if None in chromium.programs():
        pytest.skip("no Chromium")
    width, dark = request.param
    opened = chromium.Chromium(tmp_path_factory.mktemp("site"), width=width, height=900, dark=dark)
    yield opened
    opened.close()


RENDERED = """
const wanted = document.querySelectorAll('.math').length;
return [wanted, document.querySelectorAll('.math mjx-container').length];
"""


@pytest.mark.browser
@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_its_window_and_is_whole(browser, page):
    path = SITE / f"{page}.html"
    assert path.exists()
    browser.requests()
    browser.open(path.resolve().as_uri())
    browser.run("return window.MathJax && MathJax.startup ? MathJax.startup.promise : null")
    assert browser.run("return document.documentElement.scrollWidth - innerWidth") <= 1
    wanted, rendered = browser.run(RENDERED)
    assert rendered == wanted
    # Nothing is fetched from elsewhere: the site works without a network.
    assert [url for url in browser.requests() if url.startswith("http")] == []
    if browser.run("return innerWidth") > 1000:
        assert browser.run("return document.querySelector('.bd-header').offsetHeight") < 100
        if page not in ("index",):
            shown = browser.run(
                "return [...document.querySelectorAll('.bd-sidebar-primary a')]"
                ".filter(a => a.offsetHeight > 0).length"
            )
            assert shown > 0

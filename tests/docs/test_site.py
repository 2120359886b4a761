"""The built documentation as readers meet it: links that lead somewhere, nothing cut off.

``make docs-check`` builds it and names its folder in ``BUTTRESS_SITE``; the browser's part needs
a headless Chromium.
"""

from __future__ import annotations

import importlib.util
import os
import re
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


# Every page is looked at in two ways, the chosen ones in the other two as well.
VIEWS = {
    "wide": (1280, False),
    "phone, dark": (390, True),
    "wide, dark": (1280, True),
    "phone": (390, False),
}


def every_page():
    """All pages of the last build but those that autosummary makes from one template."""
    index = (SITE / "searchindex.js").read_text(encoding="utf-8")
    names = re.findall(r'"([^"]+)"', re.search(r'"docnames":\s*\[([^\]]*)\]', index)[1])
    assert len(names) > 200
    return sorted({*(name for name in names if not name.startswith("api/generated/")), *PAGES})


@pytest.fixture(scope="module", params=VIEWS)
def view(request):
    return request.param


@pytest.fixture(scope="module")
def browser(view, tmp_path_factory):
    if None in chromium.programs():
        pytest.skip("no Chromium")
    width, dark = VIEWS[view]
    opened = chromium.Chromium(tmp_path_factory.mktemp("site"), width=width, height=900, dark=dark)
    yield opened
    opened.close()


RENDERED = """
const wanted = document.querySelectorAll('.math').length;
return [wanted, document.querySelectorAll('.math mjx-container').length];
"""
NAVIGATION = """
return [...document.querySelectorAll('.bd-sidebar-primary a')]
    .filter(a => a.offsetHeight > 0).length;
"""
# Fonts differ between machines: five characters of slack.
CUT = """
return [...document.querySelectorAll('.bd-article pre')]
    .filter(code => code.scrollWidth > code.clientWidth + 40)
    .map(code => code.innerText.slice(0, 40));
"""
BACKGROUND = "return getComputedStyle(document.body).backgroundColor"


def faults(browser, page):
    """What is wrong with a page in this window."""
    path = SITE / f"{page}.html"
    assert path.exists()
    browser.requests()
    browser.open(path.resolve().as_uri())
    browser.run("return window.MathJax && MathJax.startup ? MathJax.startup.promise : null")
    if browser.run("return document.documentElement.scrollWidth - innerWidth") > 1:
        yield "wider than its window"
    wanted, rendered = browser.run(RENDERED)
    if rendered != wanted:
        yield f"{wanted - rendered} raw formulas"
    # Nothing is fetched from elsewhere: the site works without a network.
    elsewhere = [url for url in browser.requests() if url.startswith("http")]
    if elsewhere:
        yield f"asks for {elsewhere[0]}"
    if browser.run("return innerWidth") > 1000:
        if browser.run("return document.querySelector('.bd-header').offsetHeight") >= 100:
            yield "a header of several lines"
        if page != "index" and not browser.run(NAVIGATION):
            yield "an empty navigation"
        for code in browser.run(CUT):
            yield f"cuts off the code that begins {code!r}"


@pytest.mark.browser
def test_pages_fit_their_window_and_are_whole(browser, view):
    pages = every_page() if view in ("wide", "phone, dark") else PAGES
    found = {page: list(faults(browser, page)) for page in pages}
    assert len(found) >= len(PAGES)
    assert not {page: wrong for page, wrong in found.items() if wrong}
    dark = VIEWS[view][1]
    shade = [int(part) for part in browser.run(BACKGROUND)[4:-1].split(",")]
    assert (sum(shade) < 200) == dark

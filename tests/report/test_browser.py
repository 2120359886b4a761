"""The report in a real browser: the slider moves the numbers, the table sorts and filters."""

from __future__ import annotations

import importlib.util
import itertools
import time
from pathlib import Path

import numpy as np
import pytest

from buttress.report import write_report

HERE = Path(__file__).parent


def _load(name):
    spec = importlib.util.spec_from_file_location(f"report_{name}", HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


chromium = _load("chromium")
sample = _load("sample")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        None in chromium.programs(),
        reason="no Chromium with ChromeDriver: apt-get install chromium chromium-driver",
    ),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    write_report(sample.report(), folder / "report.html")
    browser = chromium.Chromium(folder, width=1100, height=900)
    browser.folder = folder
    try:
        browser.open((folder / "report.html").as_uri())
        yield browser
    finally:
        browser.close()


def test_the_page_loads_without_errors_and_asks_for_nothing_else(page):
    assert page.console() == []
    # The browser's own first tab asks for its own parts.
    own = ("data:", "chrome:", "chrome-search:", "chrome-untrusted:")
    asked = [address for address in page.requests() if not address.startswith(own)]
    assert len(asked) == 1
    assert asked[0].endswith("report.html")


def test_the_slider_moves_the_numbers_as_computed_in_python(page):
    coverage = sample.report().coverage
    seen = []
    for d in (0.01, 0.2, 0.35, 0.5):
        page.run(
            "const slider = document.getElementById('cost'); slider.value = arguments[0];"
            "slider.dispatchEvent(new Event('input'))",
            d,
        )
        level = coverage.best_level(d)
        rejected = coverage.n_rows - int(coverage.accepted[level])
        errors = int(coverage.errors[level])
        assert page.text("#n-rejected") == f"{rejected} of {coverage.n_rows}"
        assert page.text("#n-wrong") == str(errors)
        assert page.text("#risk") == f"{(errors + d * rejected) / coverage.n_rows:.4f}"
        assert page.text("#cost-value") == f"{d:.2f}"
        hollow = page.run("return document.querySelectorAll('.point.unanswered').length")
        assert hollow == rejected
        seen.append(rejected)
    assert seen == sorted(seen, reverse=True)
    assert seen[0] > seen[-1]


def test_the_slider_answers_to_the_keyboard(page):
    page.run("document.getElementById('cost').value = 0.2")
    page.type("#cost", "\ue014\ue014")  # the right arrow, twice
    assert page.text("#cost-value") == "0.22"
    mark = page.run("return Number(document.getElementById('coverage-mark').getAttribute('cx'))")
    assert 80 <= mark <= 624


def column(page, index):
    return page.run(
        "return Array.from(document.querySelectorAll('#suspect-table tbody tr'))"
        ".filter(row => !row.hidden).map(row => row.cells[arguments[0]].innerText)",
        index,
    )


def test_the_table_sorts_numbers_as_numbers_and_text_as_text(page):
    rows = [float(value) for value in column(page, 0)]
    page.click("button.sort[data-column='0']")
    assert [float(value) for value in column(page, 0)] == sorted(rows)
    assert page.run("return document.querySelector('#suspect-table th').ariaSort") == "ascending"
    page.click("button.sort[data-column='0']")
    assert [float(value) for value in column(page, 0)] == sorted(rows, reverse=True)
    page.click("button.sort[data-column='1']")
    assert column(page, 1) == sorted(column(page, 1))


def test_the_table_filters_and_downloads_what_is_shown(page):
    everything = len(column(page, 0))
    page.type("#filter", "malignant, sure")
    assert 0 < len(column(page, 0)) < everything
    assert f"of {everything} shown" in page.text("#shown")
    page.click("#download")
    target = page.folder / "downloads" / "suspects.csv"
    for _ in range(100):
        if target.exists() and target.read_text().endswith("\n"):
            break
        time.sleep(0.05)
    lines = target.read_text().splitlines()
    assert lines[0] == "row,given,suggested,score"
    assert len(lines) == 1 + len(column(page, 0))
    assert '"malignant, sure"' in lines[1]
    page.run(
        "const box = document.getElementById('filter'); box.value = '';"
        "box.dispatchEvent(new Event('input'))"
    )
    assert len(column(page, 0)) == everything


def test_everything_is_reachable_and_named_for_assistive_technology(page):
    unnamed = page.run(
        """
        const named = (e) =>
          e.getAttribute("aria-label") || e.labels?.length || e.innerText?.trim();
        return Array.from(document.querySelectorAll("input, button, svg, section, nav, a"))
          .filter(e => !named(e) && !e.getAttribute("aria-labelledby")).map(e => e.outerHTML)
        """
    )
    assert unnamed == []
    levels = page.run(
        "return Array.from(document.querySelectorAll('h1,h2,h3'), e => Number(e.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert page.run("return document.documentElement.lang") == "en"
    identifiers = page.run("return Array.from(document.querySelectorAll('[id]'), e => e.id)")
    assert len(identifiers) == len(set(identifiers))


CONTRAST = """
const probe = document.createElement("i"); document.body.append(probe);
const rgb = (name) => {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color.match(/[0-9.]+/g).slice(0, 3).map(Number);
};
const light = (c) => c.map(v => v / 255)
  .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
const ratio = (a, b) => { const [x, y] = [light(rgb(a)), light(rgb(b))].sort((p, q) => q - p);
  return (x + .05) / (y + .05); };
const pairs = [["--ink", "--page"], ["--ink", "--card"], ["--soft", "--card"], ["--soft", "--page"],
  ["--accent", "--card"], ["--on-accent", "--accent"], ["--warn", "--card"], ["--good", "--card"]];
const found = pairs.map(([a, b]) => ratio(a, b)); probe.remove(); return found;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast_in_both_themes(page, scheme):
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.command("Emulation.setEmulatedMedia", media)
    assert page.run("return matchMedia('(prefers-color-scheme: dark)').matches") == (
        scheme == "dark"
    )
    assert min(page.run(CONTRAST)) >= 4.5
    page.screenshot(page.folder / f"desktop-{scheme}.png")
    assert (page.folder / f"desktop-{scheme}.png").stat().st_size > 20_000
    page.command("Emulation.setEmulatedMedia", {"features": []})


def test_a_phone_needs_no_sideways_scrolling(page):
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.command("Emulation.setDeviceMetricsOverride", metrics)
    widths = page.run(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert widths[0] <= widths[1]
    # what is wider than the screen scrolls in a frame of its own, which the keyboard reaches
    frames = page.run(
        "return Array.from(document.querySelectorAll('table'), t => { "
        "const f = t.closest('.scroll'); "
        "return f && f.tabIndex === 0 && ['auto', 'scroll'].includes(getComputedStyle(f).overflowX)"
        " && f.getBoundingClientRect().right <= innerWidth; })"
    )
    assert len(frames) >= 5
    assert all(frames)
    smallest = page.run(
        "return Math.min(...Array.from(document.querySelectorAll('svg .tick'), "
        "e => e.getBoundingClientRect().height))"
    )
    assert smallest >= 8
    page.screenshot(page.folder / "phone.png")
    assert (page.folder / "phone.png").stat().st_size > 20_000


def test_printing_shows_the_whole_table(page):
    page.command("Emulation.setEmulatedMedia", {"media": "print"})
    overflow = page.run("return getComputedStyle(document.querySelector('.scroll.tall')).overflowY")
    hidden = page.run("return getComputedStyle(document.querySelector('.controls')).display")
    page.command("Emulation.setEmulatedMedia", {"media": ""})
    assert overflow == "visible"
    assert hidden == "none"


def test_numbers_of_the_sample_are_as_expected():
    coverage = sample.report().coverage
    assert int(coverage.accepted[-1]) == coverage.n_rows
    assert np.all(np.diff(coverage.accepted) > 0)

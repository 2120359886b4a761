"""The page over all papers: one screen of verdicts, then the disagreements, then the tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from buttress.experiments._markup import Markdown
from buttress.experiments._statistics import (
    AGREES,
    BETTER,
    CANNOT_TELL,
    DIFFERS,
    OTHER_MACHINE,
    UNKNOWN,
    VERDICTS,
    WORSE,
)
from buttress.experiments.pages import HOLDS, decided

Report = Mapping[str, Any]
# Pages that go beyond a paper judge nothing it printed; their names end so.
BEYOND = "-beyond"


def write_index(reports: Sequence[Report], page: Markdown) -> str:
    """A verdict on every paper, every disagreement with its page, and all experiments."""
    page.heading("The papers, reproduced")
    page.paragraph(
        "Every table and figure of the five papers, and what they prove as far as it is a number, "
        "runs with one command (buttress reproduce NAME). A cell agrees when our mean is within "
        "two combined standard errors of the printed number; a statement holds when the runs show "
        "it beyond two standard errors, and is open when they cannot tell. By chance alone one "
        "cell of twenty would disagree."
    )
    papers = list(dict.fromkeys(report["paper"] for report in reports))
    sorted_by = {paper: [r for r in reports if r["paper"] == paper] for paper in papers}
    page.table(
        ["paper", "verdict", "cells that agree", "statements"],
        [_paper_row(of_paper) for of_paper in sorted_by.values()],
        widths=(22, 46, 12, 20),
    )
    total = _sum(reports)
    chance = sum(report["expected_by_chance"] for report in reports if not report["ours"])
    page.paragraph(
        f"In all {decided(total)} cells are judged: {total[AGREES]} agree, {total[BETTER]} are "
        f"better, {total[WORSE]} worse, {total[DIFFERS]} differ; about {chance:.0f} would disagree "
        f"by chance. {total[CANNOT_TELL]} are too uncertain to tell, {total[OTHER_MACHINE]} are "
        f"times of another computer, for {total[UNKNOWN]} the paper does not say how its number "
        "was made."
    )
    links = {
        "What the papers print wrongly, or print in one place and deny in another:": ["errata"],
        "What you would get today on the same data:": [
            report["experiment"] for report in reports if report["experiment"].endswith(BEYOND)
        ],
    }
    # the bold text says that neither it nor the links are to be escaped
    page.items(
        [
            f"**{page.escaped(text)}** {', '.join(map(page.link, names))}"
            for text, names in links.items()
            if names
        ]
    )
    page.heading("Disagreements", 2)
    for of_paper in sorted_by.values():
        _disagreements(of_paper, page)
    _how(page)
    page.heading("The papers", 2)
    page.items([f"{family(of_paper)}: {paper}" for paper, of_paper in sorted_by.items()])
    page.heading("All experiments", 2)
    page.table(
        [
            "page",
            "what",
            "judged",
            "agree",
            "better",
            "worse",
            "differ",
            "other",
            "statements",
        ],
        [_experiment_row(report, page) for report in reports],
    )
    page.toctree(["errata", *(report["experiment"] for report in reports)])
    return str(page)


def _sum(reports: Sequence[Report]) -> dict[str, int]:
    """Counts over the papers' own tables: pages of ours show the same printed numbers again."""
    theirs = [report for report in reports if not report["ours"]]
    return {name: sum(report["verdicts"][name] for report in theirs) for name in VERDICTS}


def family(reports: Sequence[Report]) -> str:
    """The family's name, from the first title."""
    title: str = reports[0]["title"]
    return title.split(",")[0].split(":")[0]


def _paper_row(reports: Sequence[Report]) -> list[str]:
    total = _sum(reports)
    checks = [check for report in reports for check in report["checks"] if not check["ours"]]
    holds = {h: sum(check["holds"] is h for check in checks) for h in HOLDS}
    judged = decided(total)
    return [
        f"**{family(reports)}** {short_citation(reports[0]['paper'])}".strip(),
        verdict_sentence(total[AGREES], judged, [c for c in checks if c["holds"] is False]),
        f"{total[AGREES]} of {judged}" if judged else "none printed",
        f"{holds[True]} of {len(checks)} hold, {holds[False]} not, {holds[None]} open",
    ]


def short_citation(paper: str) -> str:
    """Who and when, from a full reference; empty where it names nobody.

    Examples
    --------
    >>> short_citation('O. Kwon, H. Zou, "Leaky hockey stick loss", JMLR 24, 2023.')
    '(Kwon and Zou, 2023)'
    >>> short_citation('A. One, B. Two, C. Three, "A title", 1900.')
    '(One et al., 1900)'
    """
    authors = [name.split()[-1] for name in paper.split('"')[0].split(",") if name.strip()]
    year = re.search(r"(\d{4})\.$", paper)
    if not authors or year is None:
        return ""
    who = f"{authors[0]} et al." if len(authors) > 2 else " and ".join(authors)
    return f"({who}, {year[1]})"


def verdict_sentence(agree: int, judged: int, refuted: Sequence[Mapping[str, Any]]) -> str:
    """One sentence on a paper, by a rule: the share of cells that agree, and what failed.

    Examples
    --------
    >>> verdict_sentence(95, 100, [])
    'Reproduced; none of its statements fails.'
    """
    share = agree / judged if judged else 1.0
    words = "Reproduced" if share >= 0.9 else "Mostly reproduced" if share >= 0.7 else "In part"
    if not judged:
        words = "No number is printed to compare with"
    if not refuted:
        return f"{words}; none of its statements fails."
    first = refuted[0]["statement"]
    more = f", nor {len(refuted) - 1} more" if len(refuted) > 1 else ""
    return f"{words}; it does not hold that {first}{more}."


def _disagreements(reports: Sequence[Report], page: Markdown) -> None:
    rows = [
        [page.link(report["experiment"]), "does not hold", check["statement"], check["measured"]]
        for report in reports
        for check in report["checks"]
        if check["holds"] is False and not check["ours"]
    ] + [
        [
            page.link(report["experiment"]),
            name,
            f"{report['verdicts'][name]} cells",
            _where(report, name),
        ]
        for report in reports
        for name in (WORSE, BETTER, DIFFERS)
        if report["verdicts"][name] and not report["ours"]
    ]
    page.heading(family(reports), 3)
    if rows:
        page.table(["page", "verdict", "what", "where"], rows, widths=(18, 12, 32, 38))
    else:
        page.paragraph("None.")


def _where(report: Report, verdict: str, most: int = 6) -> str:
    """The labels of the first few cells of a verdict."""
    names = [
        " ".join(cell["labels"].values()) for cell in report["cells"] if cell["verdict"] == verdict
    ]
    return "; ".join(names[:most]) + (f"; and {len(names) - most} more" if names[most:] else "")


def _how(page: Markdown) -> None:
    page.heading("How it is judged", 2)
    page.items(
        [
            "Errors are plain standard errors of the mean over runs, as two laboratories that "
            "split the same data differ by them: two halves of our own runs disagree in one cell "
            "of twenty. Where the paper's data are one unknown draw, the spread between draws is "
            "added.",
            "Where the accepted half-width is more than 15 % of the printed value, agreement would "
            "mean little: cannot tell.",
            "Only errors, risks and accuracies are better or worse; rates and counts agree or "
            "differ. Times of another computer are compared by their ranks.",
            "The protocol is unknown where the paper's text lacks a sentence that its number "
            "depends on. That is decided from the text, and the page names the sentence.",
            "The verdict in the first table follows from the share of judged cells that agree: at "
            "least 90 % reproduced, at least 70 % mostly, otherwise in part.",
            "Nothing on these pages is typed by hand: they and the figures are made from the JSON "
            "files beside them, which hold every run, its seed, the commit and the versions.",
        ]
    )
    page.paragraph("What there is, a part, and one cell again:")
    page.code("buttress reproduce list")
    page.code("buttress reproduce lhs-table2 --only sonar,bupa --repeats 20")
    page.code('buttress reproduce lhs-table2 --cell "sonar, Gaussian, LHS error"')


def _experiment_row(report: Report, page: Markdown) -> list[str]:
    verdicts, checks = report["verdicts"], report["checks"]
    checks = [check for check in checks if not check["ours"]]
    holds = sum(check["holds"] is True for check in checks)
    done = report["tasks"] >= report["planned"]
    judged = decided(verdicts)
    counts = [judged, *(verdicts[name] for name in (AGREES, BETTER, WORSE, DIFFERS))]
    return [
        page.link(report["experiment"]),
        report["title"] + ("" if done else " (unfinished)"),
        *(str(count) if count else "" for count in counts),
        str(len(report["cells"]) - judged) if len(report["cells"]) > judged else "",
        f"{holds} of {len(checks)}" if checks else "",
    ]

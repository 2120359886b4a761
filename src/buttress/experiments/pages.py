"""Pages made from reports: Markdown for a reader of files, reStructuredText for the manual."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from buttress.experiments._statistics import (
    AGREES,
    BETTER,
    CANNOT_TELL,
    DECIDED,
    DIFFERS,
    NOT_PRINTED,
    NOT_RUN,
    OTHER_MACHINE,
    TOO_FEW,
    UNKNOWN,
    VERDICTS,
    WORSE,
)

Rows = Sequence[Sequence[str]]


class Markdown:
    """Collects blocks as Markdown."""

    suffix = ".md"
    special = "|"

    def __init__(self) -> None:
        self.blocks: list[str] = []

    def escaped(self, text: str) -> str:
        """The text with the characters that would mean something taken literally."""
        if text.startswith((":doc:", "**")):
            return text
        return "".join(f"\\{c}" if c in self.special else c for c in text)

    def heading(self, text: str, level: int = 1) -> None:
        """A title."""
        self.blocks.append("#" * level + " " + text)

    def paragraph(self, text: str) -> None:
        """Running text."""
        self.blocks.append(text)

    def items(self, texts: Sequence[str]) -> None:
        """A list."""
        self.blocks.append("\n".join(f"- {text}" for text in texts))

    def code(self, text: str) -> None:
        """A command."""
        self.blocks.append(f"```\n{text}\n```")

    def table(self, header: Sequence[str], rows: Rows) -> None:
        """A table."""
        cells = [[self.escaped(cell) for cell in row] for row in rows]
        lines = [header, ["---"] * len(header), *cells]
        self.blocks.append("\n".join("| " + " | ".join(line) + " |" for line in lines))

    def figure(self, path: str, text: str) -> None:
        """A picture beside the page."""
        self.blocks.append(f"![{text}]({path})")

    def __str__(self) -> str:
        return "\n\n".join(self.blocks) + "\n"


class RestructuredText(Markdown):
    """Collects blocks as reStructuredText."""

    suffix = ".rst"
    special = "|*`\\"

    def paragraph(self, text: str) -> None:
        """Running text."""
        self.blocks.append(self.escaped(text))

    def items(self, texts: Sequence[str]) -> None:
        """A list."""
        self.blocks.append("\n".join(f"- {self.escaped(text)}" for text in texts))

    def heading(self, text: str, level: int = 1) -> None:
        """A title."""
        self.blocks.append(f"{text}\n{'=-~'[level - 1] * len(text)}")

    def code(self, text: str) -> None:
        """A command."""
        self.blocks.append(f".. code-block:: console\n\n   $ {text}")

    def table(self, header: Sequence[str], rows: Rows) -> None:
        """A table."""
        lines = [".. list-table::", "   :header-rows: 1", ""]
        for row in [header, *rows]:
            for place, cell in enumerate(row):
                mark = "   * -" if place == 0 else "     -"
                lines.append(f"{mark} {self.escaped(cell)}".rstrip())
        self.blocks.append("\n".join(lines))

    def figure(self, path: str, text: str) -> None:
        """A picture beside the page."""
        self.blocks.append(f".. image:: {path}\n   :alt: {text}")

    def toctree(self, names: Sequence[str]) -> None:
        """The pages below this one."""
        entries = "\n".join(f"   {name}" for name in names)
        self.blocks.append(f".. toctree::\n   :hidden:\n\n{entries}")


HOLDS = {True: "holds", False: "**does not hold**", None: "cannot tell"}


def write_page(report: Mapping[str, Any], page: Markdown, picture: str | None) -> str:
    """The page of one experiment."""
    page.heading(report["title"])
    page.paragraph(f"{report['paper']}")
    if report["quick"]:
        page.paragraph(
            "This is a quick run: few repetitions, small grids. It shows that the experiment "
            "works, not what it gives."
        )
    if report["tasks"] < report["planned"]:
        page.paragraph(
            f"This run is unfinished: {report['tasks']} of {report['planned']} tasks are done. "
            "The column 'runs' says how many repetitions each cell has so far."
        )
    page.paragraph("Made with")
    page.code(report["command"])
    page.heading("Protocol", 2)
    page.items(report["protocol"])
    if report["cells"]:
        page.heading("Result", 2)
        page.paragraph(_summary_sentence(report))
    if picture:
        page.figure(picture, report["title"])
    if report["checks"]:
        page.heading("Statements of the paper, checked", 2)
        page.table(
            ["statement", "verdict", "measured"],
            [[c["statement"], HOLDS[c["holds"]], c["measured"]] for c in report["checks"]],
        )
    if report["cells"]:
        page.heading("Every cell", 2)
        page.paragraph(
            "Ours is the mean over the runs, ± its standard error. The paper's number is as "
            f"printed, {_spread_sentence(report)}. *Difference* is ours minus the paper's, "
            "*accepted* the half-width within which they agree: two combined standard errors. "
            "Where that is more than 15 % of the printed value, agreement says little and the "
            "verdict is 'cannot tell'."
        )
        _disagreements(report, page)
        page.table(*cell_rows(report["cells"]))
    page.heading("Run", 2)
    page.items(_run_facts(report))
    return str(page)


def _summary_sentence(report: Mapping[str, Any]) -> str:
    verdicts = report["verdicts"]
    decided = _decided(verdicts)
    parts = [
        f"Of {len(report['cells'])} cells, {decided} can be compared with a printed number: "
        f"{verdicts[AGREES]} agree within two combined standard errors, {verdicts[BETTER]} are "
        f"better, {verdicts[WORSE]} are worse"
        + (f", {verdicts[DIFFERS]} differ" if verdicts[DIFFERS] else "")
        + "."
    ]
    if verdicts[CANNOT_TELL]:
        parts.append(
            f"{verdicts[CANNOT_TELL]} more are within their half-width, which is too wide to say "
            "anything."
        )
    if report["times"]:
        times = report["times"]
        parts.append(
            f"{verdicts[OTHER_MACHINE]} are times on another computer: the rank correlation with "
            f"ours is {times['rank_correlation']:.2f}, the paper's are {times['ratio']:.3g} times "
            "ours (median)."
        )
    if verdicts[UNKNOWN]:
        parts.append(
            f"For {verdicts[UNKNOWN]} more the paper's protocol cannot be determined, so that "
            "no verdict is given."
        )
    if verdicts[NOT_PRINTED]:
        parts.append(f"{verdicts[NOT_PRINTED]} cells are ours only.")
    if verdicts[NOT_RUN]:
        parts.append(f"{verdicts[NOT_RUN]} cells have not been run.")
    if verdicts[TOO_FEW]:
        parts.append(f"{verdicts[TOO_FEW]} cells have too few runs for a verdict.")
    parts.append(
        f"If every compared cell had the same true value as the paper's, about "
        f"{report['expected_by_chance']:.1f} would still disagree by chance."
    )
    return " ".join(parts)


def _spread_sentence(report: Mapping[str, Any]) -> str:
    kinds = {cell["paper_spread_is"] for cell in report["cells"]} - {None}
    if not kinds:
        return "without a spread in the paper"
    names = {"sd": "a standard deviation over runs", "se": "a standard error"}
    return "and ± there is " + " or ".join(names[kind] for kind in sorted(kinds))


def cell_rows(cells: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table of cells."""
    columns = list(dict.fromkeys(key for cell in cells for key in cell["labels"]))
    header = [*columns, "runs", "ours", "paper", "difference", "accepted", "verdict"]
    return header, [_cell_row(cell, columns) for cell in cells]


def _cell_row(cell: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    labels = [cell["labels"].get(column, "") for column in columns]
    paper = cell["paper"] or ""
    if cell["paper_spread"] is not None:
        paper += f" ± {cell['paper_spread']}"
    gap, accepted = cell["difference"], cell["accepted"]
    shown = "" if _missing(gap) else f"{'+' if gap > 0 else ''}{number(gap, 3)}"
    width = "" if _missing(accepted) else f"± {number(accepted, 2)}"
    return [*labels, str(cell["runs"]), _ours(cell), paper, shown, width, cell["verdict"]]


def _ours(cell: Mapping[str, Any]) -> str:
    if _missing(cell["mean"]):
        return "" if cell["verdict"] == NOT_RUN else "NA"
    text = number(cell["mean"])
    return text if _missing(cell["se"]) else f"{text} ± {number(cell['se'], 2)}"


def number(value: float, digits: int = 4) -> str:
    """So many digits that matter, without an exponent for ordinary sizes."""
    if value == 0:
        return "0"
    power = math.floor(math.log10(abs(value)))
    if power < -5:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - power)}f}"


def _missing(value: Any) -> bool:
    return value is None or math.isnan(value)


def _disagreements(report: Mapping[str, Any], page: Markdown) -> None:
    differing = [c for c in report["cells"] if c["verdict"] in (WORSE, BETTER, DIFFERS, UNKNOWN)]
    if not differing:
        return
    page.heading("What is known about the differences", 3)
    reasons: dict[tuple[str, str], list[str]] = {}
    for cell in differing:
        reason = cell["reason"] or "cause not known"
        reasons.setdefault((cell["verdict"], reason), []).append(" ".join(cell["labels"].values()))
    page.table(
        ["verdict", "cells", "what is known"],
        [[verdict, "; ".join(names), reason] for (verdict, reason), names in reasons.items()],
    )


def _run_facts(report: Mapping[str, Any]) -> list[str]:
    machine = report["machine"]
    facts = [
        f"{report['tasks']} tasks, {report['seconds']:.0f} s of one process in all.",
        f"buttress {machine['buttress']}, Python {machine['python']}, NumPy {machine['numpy']}, "
        f"{machine['cpus']} processors ({machine['processor']}).",
        f"Convergence warnings: {report['solver_warnings']}.",
    ]
    facts += [f"Failed: {f['task']} ({f['reason']})." for f in report["failures"]]
    return facts


def write_summary(reports: Sequence[Mapping[str, Any]], page: Markdown) -> str:
    """The page over all experiments: a verdict on every paper first, then the counts."""
    page.heading("The papers, reproduced")
    totals = {name: sum(report["verdicts"][name] for report in reports) for name in VERDICTS}
    chance = sum(report["expected_by_chance"] for report in reports)
    page.paragraph(
        f"In all, {_decided(totals)} cells can be compared: {totals[AGREES]} agree, "
        f"{totals[BETTER]} are better, {totals[WORSE]} are worse, {totals[DIFFERS]} differ; about "
        f"{chance:.0f} would disagree by chance alone. {totals[CANNOT_TELL]} are too uncertain to "
        f"tell, {totals[OTHER_MACHINE]} are times of another computer, {totals[UNKNOWN]} cannot be "
        f"judged because the paper does not say how its number was made, {totals[NOT_RUN]} have "
        f"not been run, {totals[TOO_FEW]} have too few runs."
    )
    for paper in dict.fromkeys(report["paper"] for report in reports):
        _paper_verdict([report for report in reports if report["paper"] == paper], page)
    page.heading("How it is judged", 2)
    page.paragraph(
        "Every table and figure of the five papers is an experiment that runs with one command. "
        "A cell agrees when our mean is within two combined standard errors of the printed "
        "number; the errors are plain, as two laboratories that split the same data differ by "
        "them (two halves of our own runs disagree in one cell of twenty). A statement holds when "
        "the runs show it beyond two standard errors of the paired difference. Nothing on these "
        "pages is typed by hand: they are made from the JSON files beside them. To see what there "
        "is, and to run a part or one cell again:"
    )
    page.code("buttress reproduce list")
    page.code("buttress reproduce lhs-table2 --only sonar,bupa --repeats 20")
    page.code('buttress reproduce lhs-table2 --cell "sonar, Gaussian, LHS error"')
    page.heading("All experiments", 2)
    page.table(
        ["experiment", "what", *VERDICTS, "by chance", "statements"],
        [_summary_row(report, page) for report in reports],
    )
    if isinstance(page, RestructuredText):
        page.toctree([report["experiment"] for report in reports])
    return str(page)


def _decided(verdicts: Mapping[str, int]) -> int:
    return sum(verdicts[name] for name in DECIDED)


def _link(report: Mapping[str, Any], page: Markdown) -> str:
    name: str = report["experiment"]
    return f":doc:`{name}`" if isinstance(page, RestructuredText) else name


def _paper_verdict(reports: Sequence[Mapping[str, Any]], page: Markdown) -> None:
    """What came of one paper: counts, and every disagreement with its page."""
    page.heading(_short(reports), 2)
    verdicts = {name: sum(r["verdicts"][name] for r in reports) for name in VERDICTS}
    checks = [check for report in reports for check in report["checks"]]
    holds = {h: sum(check["holds"] is h for check in checks) for h in HOLDS}
    page.paragraph(
        f"{reports[0]['paper']} Of {_decided(verdicts)} cells with a verdict {verdicts[AGREES]} "
        f"agree. Of {len(checks)} statements {holds[True]} hold, {holds[False]} do not, "
        f"{holds[None]} cannot be told."
    )
    rows = [
        [_link(report, page), "statement", check["statement"], check["measured"]]
        for report in reports
        for check in report["checks"]
        if check["holds"] is False
    ] + [
        [_link(report, page), name, str(report["verdicts"][name]) + " cells", _where(report, name)]
        for report in reports
        for name in (WORSE, BETTER, DIFFERS)
        if report["verdicts"][name]
    ]
    if rows:
        page.table(["page", "disagreement", "what", "where"], rows)


def _short(reports: Sequence[Mapping[str, Any]]) -> str:
    """The family's name, from the first title."""
    title: str = reports[0]["title"]
    return title.split(",")[0]


def _where(report: Mapping[str, Any], verdict: str, most: int = 6) -> str:
    """The labels of the first few cells of a verdict."""
    names = [
        " ".join(cell["labels"].values()) for cell in report["cells"] if cell["verdict"] == verdict
    ]
    return "; ".join(names[:most]) + (f"; and {len(names) - most} more" if names[most:] else "")


def _summary_row(report: Mapping[str, Any], page: Markdown) -> list[str]:
    verdicts, checks = report["verdicts"], report["checks"]
    holds = sum(check["holds"] is True for check in checks)
    done = report["tasks"] == report["planned"]
    return [
        _link(report, page),
        report["title"] + ("" if done else " (unfinished)"),
        *(str(verdicts[name]) if verdicts[name] else "" for name in VERDICTS),
        f"{report['expected_by_chance']:.1f}" if report["cells"] else "",
        f"{holds} of {len(checks)}" if checks else "",
    ]

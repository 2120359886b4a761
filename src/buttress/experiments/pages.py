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
    decided = sum(verdicts[name] for name in DECIDED)
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
    """The page over all experiments."""
    page.heading("The papers, reproduced")
    page.paragraph(
        "Every table and figure of the five papers is an experiment that runs with one "
        "command. A cell agrees when our mean is within two combined standard errors of the "
        "printed number; the errors are plain, as two laboratories that split the same data "
        "differ by them. Nothing on these pages is typed by hand: they are made from the JSON "
        "files beside them. To see what there is, and to run one of them again:"
    )
    page.code("buttress reproduce list")
    page.code("buttress reproduce lhs-table2 --only sonar,bupa --repeats 20")
    names = VERDICTS
    rows, totals, chance, confirmed, statements = [], dict.fromkeys(names, 0), 0.0, 0, 0
    for report in reports:
        verdicts, checks = report["verdicts"], report["checks"]
        holds = sum(check["holds"] is True for check in checks)
        confirmed, statements = confirmed + holds, statements + len(checks)
        chance += report["expected_by_chance"]
        for name in names:
            totals[name] += verdicts[name]
        link = f":doc:`{report['experiment']}`" if page.suffix == ".rst" else report["experiment"]
        rows.append(
            [
                link,
                report["title"] + ("" if report["tasks"] == report["planned"] else " (unfinished)"),
                *(str(verdicts[name]) if verdicts[name] else "" for name in names),
                f"{report['expected_by_chance']:.1f}" if report["cells"] else "",
                f"{holds} of {len(checks)}" if checks else "",
            ]
        )
    decided = sum(totals[name] for name in DECIDED)
    page.paragraph(
        f"In all, {decided} cells can be compared: {totals[AGREES]} agree, {totals[BETTER]} are "
        f"better, {totals[WORSE]} are worse, {totals[DIFFERS]} differ; about {chance:.0f} "
        f"would disagree by chance alone. {totals[CANNOT_TELL]} are too uncertain to tell, "
        f"{totals[OTHER_MACHINE]} are times of another computer. {totals[UNKNOWN]} cannot be "
        f"judged because the paper does not say how its number was made. {totals[NOT_RUN]} have "
        f"not been run, {totals[TOO_FEW]} have too few runs. Of {statements} statements that the "
        f"papers make, {confirmed} hold here."
    )
    page.table(["experiment", "what", *names, "by chance", "statements"], rows)
    if isinstance(page, RestructuredText):
        page.toctree([report["experiment"] for report in reports])
    return str(page)

"""The page of an experiment: protocol, statements, pairs, every cell and how it was run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from buttress.experiments._markup import Markdown, RestructuredText
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
    WORSE,
)

__all__ = ["HOLDS", "Markdown", "RestructuredText", "cell_rows", "decided", "number", "write_page"]

HOLDS = {True: "holds", False: "**does not hold**", None: "cannot tell"}


def write_page(report: Mapping[str, Any], page: Markdown, pictures: Sequence[Path]) -> str:
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
    _show_pictures(report, page, pictures)
    _statements(report, page)
    _pairs(report, page)
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


def _show_pictures(report: Mapping[str, Any], page: Markdown, pictures: Sequence[Path]) -> None:
    for path in pictures:
        if path.suffix == ".png":
            page.figure(path.name, report["title"])
        else:
            page.file(path.name, "The same as vector graphics")


def _statements(report: Mapping[str, Any], page: Markdown) -> None:
    if not report["checks"]:
        return
    page.heading("Statements, checked", 2)
    page.paragraph(
        "A statement holds when the runs show it beyond two standard errors, does not when they "
        "show the contrary, and cannot be told in between."
    )
    page.table(
        ["statement", "verdict", "measured"],
        [_statement_row(c) for c in report["checks"]],
    )


def _statement_row(check: Mapping[str, Any]) -> list[str]:
    statement = check["statement"] + (" (a question of ours)" if check["ours"] else "")
    said = ". ".join(filter(None, (check["measured"], check["meaning"])))
    return [statement, HOLDS[check["holds"]], said]


def _pairs(report: Mapping[str, Any], page: Markdown) -> None:
    """Columns against each other on the same splits, which is sharper than their two means."""
    if not report["pairs"]:
        return
    page.heading("Columns compared run by run", 2)
    page.paragraph(
        "Mean difference over the runs that both columns share, ± its standard error; clear means "
        "more than two of them from zero."
    )
    rows = []
    for pair in report["pairs"]:
        gap, error = pair["difference"], pair["error"]
        sure = not _missing(gap) and not _missing(error) and abs(gap) > 2 * error
        shown = _signed(gap)
        if not _missing(error):
            shown += f" ± {number(error, 2)}"
        rows.append([pair["what"], pair["columns"], shown, "clear" if sure else ""])
    page.table(["what", "difference of", "mean", "clear?"], rows)


def _summary_sentence(report: Mapping[str, Any]) -> str:
    verdicts = report["verdicts"]
    judged = decided(verdicts)
    sentences = [f"None of the {len(report['cells'])} cells is judged against a printed number."]
    if judged:
        sentences = [
            f"Of {len(report['cells'])} cells, {judged} can be compared with a printed number: "
            f"{verdicts[AGREES]} agree within two combined standard errors, {verdicts[BETTER]} are "
            f"better, {verdicts[WORSE]} are worse"
            + (f", {verdicts[DIFFERS]} differ" if verdicts[DIFFERS] else "")
            + "."
        ]
    more = " more" if judged else ""
    said = {
        CANNOT_TELL: "{} more are within their half-width, which is too wide to say anything.",
        OTHER_MACHINE: "{} are times on another computer: the rank correlation with ours is "
        "{rank_correlation:.2f}, the paper's are {ratio:.3g} times ours (median).",
        UNKNOWN: f"For {{}}{more} the paper's protocol cannot be determined, so that no verdict is "
        "given.",
        NOT_PRINTED: "{} cells are ours only.",
        NOT_RUN: "{} cells have not been run.",
        TOO_FEW: "{} cells have too few runs for a verdict.",
    }
    if not report["times"]:
        del said[OTHER_MACHINE]
    sentences += [
        sentence.format(verdicts[verdict], **(report["times"] or {}))
        for verdict, sentence in said.items()
        if verdicts[verdict]
    ]
    if judged:
        sentences.append(
            f"If every compared cell had the same true value as the paper's, about "
            f"{report['expected_by_chance']:.1f} would still disagree by chance."
        )
    return " ".join(sentences)


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
    width = "" if _missing(accepted) else f"± {number(accepted, 2)}"
    return [*labels, str(cell["runs"]), _ours(cell), paper, _signed(gap), width, cell["verdict"]]


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


def _signed(value: Any) -> str:
    """A difference, empty where there is none."""
    return "" if _missing(value) else f"{'+' if value > 0 else ''}{number(value, 3)}"


def _missing(value: Any) -> bool:
    return value is None or not math.isfinite(value)


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
    facts = [
        f"{report['tasks']} tasks, {report['seconds']:.0f} s of one process in all; convergence "
        f"warnings: {report['solver_warnings']}."
    ]
    for run in report["parts"]:
        known = {key: value for key, value in run["machine"].items() if value is not None}
        versions = ", ".join(f"{key} {value}" for key, value in known.items())
        facts.append(
            f"{run['command']}: {run['tasks']} tasks, seed {run['seed']}, commit "
            f"{run['commit'] or 'not recorded'}; {versions}."
        )
    facts += [f"Failed: {f['task']} ({f['reason']})." for f in report["failures"]]
    return facts


def decided(verdicts: Mapping[str, int]) -> int:
    """How many cells have a verdict on the paper's number."""
    return sum(verdicts[name] for name in DECIDED)

"""What ``buttress fit`` says of a model: in words, as a table, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buttress.cli._console import Output
    from buttress.cli._inputs import Data
    from buttress.cli.fit import FitOptions
    from buttress.model_selection import Judged, Measure
    from buttress.report.sections import Interval
    from buttress.tables.automatic import Chosen

# Classes that a line of text tells of.
_MOST_CLASSES = 10


def describe(path: Path, read: Data) -> str:
    """What is in the file."""
    each = ", ".join(
        f"{name} {count}" for name, count in list(read.classes.items())[:_MOST_CLASSES]
    )
    dropped = read.n_read - len(read.labels)
    left_out = f" ({dropped} rows with missing values left out)" if dropped else ""
    return f"{path}: {len(read.labels)} rows, {len(read.table.names)} columns{left_out}; {each}"


def summary(each: Judged, measure: Measure) -> dict[str, Any]:
    """One model's result as plain values."""
    loss = measure.estimate(each)
    return {
        "model": each.kind,
        "title": each.title,
        "risk": loss.value,
        "low": loss.low,
        "high": loss.high,
        "accuracy": each.accuracy,
        "answered": each.coverage,
        "recall": each.recalls(),
        "rows": len(each.rows),
        "seconds": each.seconds,
        "dropped": each.dropped or None,
    }


def print_comparison(say: Output, chosen: Chosen, measure: Measure) -> None:
    """The candidates as a table, and why one was chosen."""
    judged = chosen.race.judged
    if len(judged) < 2:
        return
    rows = []
    for each in judged:
        loss = measure.estimate(each)
        mark = " *" if each.kind == chosen.kind else " (dropped)" if each.dropped else ""
        rows.append(
            (
                each.title + mark,
                f"{100 * loss.value:.2f} %",
                f"{100 * loss.low:.1f} – {100 * loss.high:.1f} %",
                _right(each),
                f"{100 * each.coverage:.1f} %",
                f"{each.seconds:.1f}",
            )
        )
    heads = ["model", measure.title, "95 % interval", "accuracy of answers", "answered", "seconds"]
    say.table(heads, rows)
    say.say(chosen.why)


def _right(judged: Judged) -> str:
    """The share of right answers, where there are any."""
    return "–" if judged.rejected.all() else f"{100 * judged.accuracy:.2f} %"


def quality(chosen: Chosen, measure: Measure, wrong: Mapping[str, Interval]) -> str:
    """How good the model is, on rows that it has not seen, and how many labels seem wrong."""
    judged = chosen.judged
    loss = measure.estimate(judged)
    statements = [
        f"{judged.title} on {len(judged.rows)} rows that it had not seen: {measure.title} of "
        f"{100 * loss.value:.2f} % (95 % interval {100 * loss.low:.1f} – {100 * loss.high:.1f} %)"
    ]
    if judged.rejected.any():
        answers = "" if judged.rejected.all() else f", {_right(judged)} of its answers right"
        statements.append(f"no answer to {100 * judged.rejected.mean():.1f} % of them{answers}")
    if wrong:
        shares = [
            f"{100 * share:.1f} % of class {name} ({100 * low:.1f} – {100 * high:.1f} %)"
            for name, (share, low, high) in list(wrong.items())[:_MOST_CLASSES]
        ]
        more = len(wrong) - len(shares)
        shares += [f"{more} more classes in --json"] if more > 0 else []
        statements.append(f"labels that seem wrong: {', '.join(shares)}")
    return "; ".join(statements)


def as_record(
    chosen: Chosen, options: FitOptions, read: Data, measure: Measure, wrong: Mapping[str, Interval]
) -> dict[str, Any]:
    """What a program is told."""
    return {
        "data": str(options.data),
        "rows": len(read.labels),
        "rows_in_file": read.n_read,
        "columns": len(read.table.names),
        "classes": read.classes,
        "measure": measure.title,
        "compared": [summary(each, measure) for each in chosen.race.judged],
        "rows_compared": len(chosen.race.rows),
        "tuned_in_folds": chosen.race.tuned_in_folds,
        "chosen": chosen.kind,
        "why": chosen.why,
        "held_out": summary(chosen.judged, measure),
        "noise_rates": {name: share for name, (share, _, _) in wrong.items()},
        "rows_fitted": chosen.final.rows,
        "landmarks": chosen.final.components,
        "model": str(options.out),
        "report": str(options.report) if options.report else None,
    }

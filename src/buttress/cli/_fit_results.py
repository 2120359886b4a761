"""What ``buttress fit`` says of a model: in words, as a table, as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buttress.cli._console import Output
    from buttress.cli._inputs import Data
    from buttress.model_selection import Judged, Measure
    from buttress.tables.automatic import Chosen


def describe(path: Path, read: Data) -> str:
    """What is in the file."""
    each = ", ".join(f"{name} {count}" for name, count in list(read.classes.items())[:10])
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


def quality(chosen: Chosen, measure: Measure) -> str:
    """How good the model is, on rows that it has not seen."""
    judged = chosen.judged
    loss = measure.estimate(judged)
    parts = [
        f"{judged.title} on {len(judged.rows)} rows that it had not seen: {measure.title} of "
        f"{100 * loss.value:.2f} % (95 % interval {100 * loss.low:.1f} – {100 * loss.high:.1f} %)"
    ]
    if judged.rejected.any():
        answers = "" if judged.rejected.all() else f", {_right(judged)} of its answers right"
        parts.append(f"no answer to {100 * judged.rejected.mean():.1f} % of them{answers}")
    rates = noise_rates(chosen)
    if rates:
        each = ", ".join(f"{100 * rate:.1f} % of class {name}" for name, rate in rates.items())
        parts.append(f"labels that seem wrong: {each}")
    return "; ".join(parts)


def as_record(
    chosen: Chosen, data: Path, read: Data, measure: Measure, out: Path, report: Path | None
) -> dict[str, Any]:
    """What a program is told."""
    return {
        "data": str(data),
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
        "noise_rates": noise_rates(chosen),
        "rows_fitted": chosen.final.rows,
        "landmarks": chosen.final.components,
        "model": str(out),
        "report": str(report) if report else None,
    }


def noise_rates(chosen: Chosen) -> dict[str, float]:
    """Shares of wrong labels as the ramp classifier's search estimates them, if it ran."""
    search = chosen.race.searches.get("ramp")
    rates = getattr(search, "noise_rates_", None) or {}
    return {str(label): float(rate) for label, rate in rates.items()}

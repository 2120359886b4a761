"""``buttress demo``: the main job on data that come with scikit-learn."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from buttress.cli._console import Jobs, Json, Output, Quiet, Seed, limit_threads
from buttress.cli._inputs import guard_files

if TYPE_CHECKING:
    from buttress.report.demonstration import Demonstration

app = typer.Typer(rich_markup_mode="markdown")

# Wrong labels printed; all of them are in the report.
_SHOWN = 8


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML report to write.")] = Path(
        "buttress-report.html"
    ),
    repeats: Annotated[
        int, typer.Option(min=2, max=100, help="Random halves of the data to show it on.")
    ] = 5,
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Show the main job on the Wisconsin breast cancer data with wrong labels.

    Needs no file and no network. In random halves of the data three in ten malignant cases are
    labelled benign. Prints how every model does on the right labels of the other halves, with
    intervals, which wrong labels were found and what was true, and writes a report.

    **Example:** `buttress demo --out report.html`
    """
    say = Output(json, quiet)
    guard_files([], {"--out": out})
    start = time.perf_counter()
    with limit_threads(jobs):
        from buttress._compilation import watching
        from buttress._progress import progress
        from buttress.model_selection.preparing import job_of_noise_aware
        from buttress.report import demonstration, write_report

        seeds = range(seed, seed + repeats)
        say.compile([job_of_noise_aware()])
        with (
            watching(None if say.talks else False) as watch,
            progress("fitting", repeats, say.verbose) as advance,
        ):
            shown = demonstration.run_demonstration(seeds, jobs, advance)
        if watch.summary():
            say.note(watch.summary())
        suspects, flagged, counts = demonstration.wrong_labels(shown)
        split = shown.splits[0]
        say.say(
            f"Wisconsin breast cancer, {repeats} random halves: {len(split.y_train)} training "
            f"rows, {int(split.wrong.sum())} malignant ones labelled benign; "
            f"{len(split.y_test)} test rows with the right labels"
        )
        _print(say, shown)
        for sentence in demonstration.findings(shown):
            say.say(f"- {sentence}")
        columns = [suspects.columns.index(name) for name in ("row", "label", "suggested", "true")]
        say.table(
            ["row", "label", "suggested", "true"],
            [[row[column] for column in columns] for row in suspects.rows[:_SHOWN]],
            title=f"labels that look wrong, the {_SHOWN} most suspicious of {len(suspects.rows)}",
        )
        say.say(suspects.truth)
        write_report(demonstration.demonstration_report(shown, suspects, flagged, seeds), out)
    seconds = time.perf_counter() - start
    say.say(f"wrote {out} ({seconds:.1f} s)")
    say.result(
        {
            "wrong_labels": int(split.wrong.sum()),
            "d": demonstration.D,
            "repeats": repeats,
            "models": [summary(shown, kind) for kind in shown.judged],
            "suspects": counts,
            "report": str(out),
            "seconds": seconds,
        }
    )


def summary(shown: Demonstration, kind: str) -> dict[str, Any]:
    """One model's result as plain values."""
    from buttress.model_selection import Measure
    from buttress.model_selection.judging import together
    from buttress.report.demonstration import D

    cost, error = Measure("cost", D), Measure("accuracy")
    risk = shown.loss(kind, cost)
    gap = shown.against_svc(kind, cost)
    pooled = together(shown.judged[kind])
    return {
        "model": kind,
        "title": pooled.title,
        "accuracy": pooled.accuracy,
        "error": float(shown.values(kind, error).mean()),
        "answered": pooled.coverage,
        "risk": risk.value,
        "low": risk.low,
        "high": risk.high,
        "risk_against_svc": {"value": gap.value, "low": gap.low, "high": gap.high},
        "seconds": pooled.seconds / len(shown.splits),
    }


def _print(say: Output, shown: Demonstration) -> None:
    from buttress.report.demonstration import D

    rows = []
    for kind in shown.judged:
        each = summary(shown, kind)
        gap = each["risk_against_svc"]
        rows.append(
            (
                each["title"],
                f"{100 * each['accuracy']:.1f} %",
                f"{100 * each['answered']:.1f} %",
                f"{100 * each['risk']:.1f} %",
                "" if kind == "svc" else f"{100 * gap['low']:+.1f} to {100 * gap['high']:+.1f}",
                "same fit" if kind == "abstaining" else f"{each['seconds']:.2f}",
            )
        )
    heads = ["model", "accuracy of answers", "answered", f"cost, d = {D:g}"]
    say.table([*heads, "against SVC, points", "processor s a fit"], rows)
    say.say(f"cost: of a row on average, 1 for a wrong answer, {D:g} for none, 0 for a right one")

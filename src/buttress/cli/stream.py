"""``buttress stream``: answer and learn row by row, for as long as rows come."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from buttress.classifiers.online import learner_names
from buttress.cli._inputs import DecimalMark
from buttress.cli._options import CommonOptions, command

app = typer.Typer(rich_markup_mode="markdown")


Cost = Annotated[
    float | None, typer.Option("--d", help="Cost of no answer: refuse where errors cost more.")
]


@dataclass(frozen=True)
class StreamOptions(CommonOptions):
    """The options of the command, by their names."""

    context: typer.Context
    data: Annotated[
        Path | None, typer.Argument(help="CSV or JSON lines; standard input if not given or -.")
    ] = None
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="Name of the label; 'label', or that of --from."),
    ] = None
    classes: Annotated[
        str | None,
        typer.Option(help="All labels that can come: a,b. Else those of the warm-up rows."),
    ] = None
    features: Annotated[
        str | None, typer.Option(help="Names of the features: a,b. Else all other columns.")
    ] = None
    kind: Annotated[
        Literal["csv", "jsonl"] | None,
        typer.Option("--format", help="Of the input; else by the file's name, or its first sign."),
    ] = None
    decimal: DecimalMark = "."
    model: Annotated[str, typer.Option(help=f"The learner: {', '.join(learner_names())}.")] = (
        "pa-ramp"
    )
    start_from: Annotated[
        Path | None,
        typer.Option("--from", help="Go on with a model of 'fit --model online', or a checkpoint."),
    ] = None
    s: Annotated[float | None, typer.Option("--s", help="pa-ramp: margin of the refusal.")] = None
    alpha: Annotated[float | None, typer.Option(help="pegasos, norma: the penalty.")] = None
    eta: Annotated[float | None, typer.Option(help="norma: length of a step.")] = None
    tau: Annotated[float | None, typer.Option(help="norma: smallest coefficient.")] = None
    kernel: Annotated[str, typer.Option(help="Name of the kernel.")] = "rbf"
    gamma: Annotated[
        str, typer.Option(help="Its width: a number, or scale, auto, median of the warm-up rows.")
    ] = "scale"
    budget: Annotated[
        int | None, typer.Option(min=1, help="Support vectors at most; unbounded if not given.")
    ] = None
    budget_policy: Annotated[
        Literal["merge", "project", "forget", "forget_oldest"],
        typer.Option(help="What happens to one too many."),
    ] = "merge"
    drift: Annotated[
        Literal["page-hinkley"] | None,
        typer.Option(help="Watch for drift and replace the model when it helps."),
    ] = None
    d: Cost = None
    target_coverage: Annotated[
        float | None, typer.Option(help="Share of the rows to answer in the long run.")
    ] = None
    target_risk: Annotated[
        float | None, typer.Option(help="Error among the answers in the long run.")
    ] = None
    block_size: Annotated[
        int, typer.Option(min=1, help="Rows read before they are answered; 1 answers at once.")
    ] = 64
    warm_up: Annotated[
        int, typer.Option(min=1, help="First rows that fix scale and width; answered after that.")
    ] = 256
    scale: Annotated[
        bool, typer.Option(help="Standardise by the warm-up rows, then never again.")
    ] = True
    key: Annotated[
        str | None, typer.Option(help="Field that identifies a row, repeated in the output.")
    ] = None
    label_stream: Annotated[
        Path | None, typer.Option(help="Labels that come later, with the key of their row.")
    ] = None
    max_pending: Annotated[
        int, typer.Option(min=1, help="Rows that wait for a label at most; the oldest go.")
    ] = 100_000
    out: Annotated[
        Path | None, typer.Option("--out", "--output", "-o", help="One line per row; else stdout.")
    ] = None
    rejects: Annotated[
        Path | None, typer.Option(help="Malformed lines go here, with number and reason.")
    ] = None
    checkpoint: Annotated[Path | None, typer.Option(help="File to save the state in.")] = None
    every: Annotated[int, typer.Option(min=1, help="Rows between two checkpoints.")] = 10_000
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the checkpoint if it exists.")
    ] = False

    @property
    def source(self) -> Path | None:
        """The file of rows; None for standard input."""
        return None if self.data is None or str(self.data) == "-" else self.data

    def parameters(self) -> dict[str, Any]:
        """The learner's parameters."""
        wanted = ("s", "alpha", "eta", "tau", "d", "target_coverage", "target_risk")
        given = {name: getattr(self, name) for name in wanted if getattr(self, name) is not None}
        return given | {
            "kernel": self.kernel,
            "gamma": _width(self.gamma),
            "budget": self.budget,
            "budget_policy": self.budget_policy,
            "drift": self.drift,
            "block_size": self.block_size,
        }


def _width(gamma: str) -> str | float:
    if gamma in ("scale", "auto", "median"):
        return gamma
    try:
        return float(gamma)
    except ValueError:
        raise typer.BadParameter(
            f"--gamma {gamma} is not accepted: a number, scale, auto or median"
        ) from None


@command(app, StreamOptions)
def stream(options: StreamOptions) -> None:
    """Answer every row, then learn it if it has a label; write one line per row.

    Each line says the answer given before the label was looked at, the score, the label, and
    what happened: updated, unchanged, skipped (the ramp took the label for wrong) or
    unlabelled. Lines that are no rows go to --rejects and the stream goes on. With
    --checkpoint the state is saved every --every rows; after a crash the same command with
    --resume continues without losing or repeating a line (the input must be the same file,
    or be sent again from its start). The checkpoint is also a model for 'buttress predict'.
    With --from, columns, scale, classes and learner are those of a saved model, and options
    about them do not apply. Nothing here is random, so --seed changes nothing.

    **Examples:**

    - `buttress stream rows.csv --target label --out answers.csv --checkpoint state.ckpt`

    - `tail -f rows.jsonl | buttress stream --classes no,yes --block-size 1`

    - `buttress stream rows.csv --key id --label-stream labels.csv --out answers.csv`
    """
    from buttress.cli._stream_job import run_stream

    run_stream(options)

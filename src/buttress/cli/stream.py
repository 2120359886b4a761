"""``buttress stream``: answer and learn row by row, for as long as rows come."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from buttress.classifiers.online import learner_names
from buttress.cli._console import Jobs, Json, Quiet, Seed
from buttress.cli._inputs import Decimal, DecimalMark
from buttress.cli._stream_job import Drift, Kind, Policy, StreamOptions, run_stream

app = typer.Typer(rich_markup_mode="markdown")

DataFile = Annotated[
    Path | None, typer.Argument(help="CSV or JSON lines; standard input if not given or -.")
]
Target = Annotated[
    str | None,
    typer.Option("--target", "-t", help="Name of the label; 'label', or that of --from."),
]
Classes = Annotated[
    str | None,
    typer.Option(help="All labels that can come: a,b. Else those of the warm-up rows."),
]
Features = Annotated[
    str | None, typer.Option(help="Names of the features: a,b. Else all other columns.")
]
Format = Annotated[
    Kind | None, typer.Option("--format", help="Of the input; else by the file's name.")
]
LearnerName = Annotated[str, typer.Option(help=f"The learner: {', '.join(learner_names())}.")]
StartFrom = Annotated[
    Path | None,
    typer.Option("--from", help="Go on with a model of 'fit --model online', or a checkpoint."),
]
RampMargin = Annotated[float | None, typer.Option("--s", help="pa-ramp: margin of the refusal.")]
Penalty = Annotated[float | None, typer.Option(help="pegasos, norma: the penalty.")]
StepLength = Annotated[float | None, typer.Option(help="norma: length of a step.")]
SmallestCoefficient = Annotated[float | None, typer.Option(help="norma: smallest coefficient.")]
KernelName = Annotated[str, typer.Option(help="Name of the kernel.")]
Width = Annotated[
    str, typer.Option(help="Its width: a number, or scale, auto, median of the warm-up rows.")
]
Budget = Annotated[
    int | None, typer.Option(min=1, help="Support vectors at most; unbounded if not given.")
]
BudgetPolicy = Annotated[Policy, typer.Option(help="What happens to one too many.")]
DriftTest = Annotated[
    Drift | None, typer.Option(help="Watch for drift and replace the model when it helps.")
]
Cost = Annotated[
    float | None, typer.Option("--d", help="Cost of no answer: refuse where errors cost more.")
]
TargetCoverage = Annotated[
    float | None, typer.Option(help="Share of the rows to answer in the long run.")
]
TargetRisk = Annotated[float | None, typer.Option(help="Error among the answers in the long run.")]
BlockSize = Annotated[
    int, typer.Option(min=1, help="Rows read before they are answered; 1 answers at once.")
]
WarmUp = Annotated[
    int, typer.Option(min=1, help="First rows that fix scale and width; answered after that.")
]
Scale = Annotated[bool, typer.Option(help="Standardise by the warm-up rows, then never again.")]
Key = Annotated[
    str | None, typer.Option(help="Field that identifies a row, repeated in the output.")
]
LabelFile = Annotated[
    Path | None, typer.Option(help="Labels that come later, with the key of their row.")
]
MaxPending = Annotated[
    int, typer.Option(min=1, help="Rows that wait for a label at most; the oldest go.")
]
OutFile = Annotated[
    Path | None, typer.Option("--out", "--output", "-o", help="One line per row; else stdout.")
]
RejectsFile = Annotated[
    Path | None, typer.Option(help="Malformed lines go here, with number and reason.")
]
CheckpointFile = Annotated[Path | None, typer.Option(help="File to save the state in.")]
Every = Annotated[int, typer.Option(min=1, help="Rows between two checkpoints.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue from the checkpoint if it exists.")
]


@app.command()
def stream(
    context: typer.Context,
    data: DataFile = None,
    target: Target = None,
    classes: Classes = None,
    features: Features = None,
    kind: Format = None,
    decimal: DecimalMark = Decimal.point,
    model: LearnerName = "pa-ramp",
    start_from: StartFrom = None,
    s: RampMargin = None,
    alpha: Penalty = None,
    eta: StepLength = None,
    tau: SmallestCoefficient = None,
    kernel: KernelName = "rbf",
    gamma: Width = "scale",
    budget: Budget = None,
    budget_policy: BudgetPolicy = Policy.merge,
    drift: DriftTest = None,
    d: Cost = None,
    target_coverage: TargetCoverage = None,
    target_risk: TargetRisk = None,
    block_size: BlockSize = 64,
    warm_up: WarmUp = 256,
    scale: Scale = True,
    key: Key = None,
    label_stream: LabelFile = None,
    max_pending: MaxPending = 100_000,
    out: OutFile = None,
    rejects: RejectsFile = None,
    checkpoint: CheckpointFile = None,
    every: Every = 10_000,
    resume: Resume = False,
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
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
    run_stream(StreamOptions(**locals()))

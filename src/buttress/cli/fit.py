"""``buttress fit``: from a file to a saved model."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

import typer

from buttress.cli._models import Approximation, Metric, Model
from buttress.cli._options import ClassWeight, DataFile, ReadingOptions, Target, command

# The budget when none is given.
BUDGET = "2m"

app = typer.Typer(rich_markup_mode="markdown")

Cost = Annotated[
    float | None,
    typer.Option("--d", help="Cost of no answer, in (0, 0.5]; lets auto choose to abstain."),
]
Time = Annotated[
    str | None,
    typer.Option(help=f"Time for comparing and fitting: 60s, 10m; {BUDGET} if not given."),
]
Corrections = Annotated[
    Path | None,
    typer.Option(help="Corrections of a review to apply first; shows before and after."),
]
Folds = Annotated[int, typer.Option(min=2, max=20, help="Folds of the cross-validation.")]
Dask = Annotated[
    str | None, typer.Option(help="Fit Parquet files on a Dask cluster: its address, or 'local'.")
]


@dataclass(frozen=True)
class FitOptions(ReadingOptions):
    """The options of the command, by their names."""

    data: DataFile
    target: Target
    model: Annotated[Model, typer.Option(help="The kind of model; auto compares them.")] = "auto"
    d: Cost = None
    metric: Annotated[
        Metric | None,
        typer.Option(help="What decides between models: accuracy, or cost when --d is given."),
    ] = None
    class_weight: ClassWeight = None
    target_coverage: Annotated[
        float | None, typer.Option(help="Share of rows that the model that abstains should answer.")
    ] = None
    time: Time = None
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")] = Path(
        "model.skops"
    )
    report: Annotated[
        Path | None, typer.Option(help="HTML report to write; none if not given.")
    ] = None
    corrections: Corrections = None
    _: KW_ONLY  # what follows stands after the inherited options in --help
    folds: Folds = 5
    approximation: Annotated[
        Approximation | None,
        typer.Option(help="Feature map to fit with; by size and time if not given."),
    ] = None
    dask: Dask = None


@command(app, FitOptions)
def fit(options: FitOptions) -> None:
    """Fit a model to a file and save it with everything that a prediction needs.

    Numeric columns are standardised, text columns become one-hot. --model auto compares every
    kind on shared folds with scikit-learn's plain SVC beside them and keeps the best: by error
    rate, with --d by the 0-d-1 risk with the abstaining model taking part, or by --metric.
    What is compared on a sample and what on all rows follows from the size and from --time, and
    what is not done when that time is over is stopped: the best model so far is saved.

    **Examples:**

    - `buttress fit patients.csv --target diagnosis`

    - `buttress fit patients.csv --target diagnosis --model reject --d 0.1 --report report.html`

    - `buttress fit patients.csv --target diagnosis --corrections corrections.csv`

    - `buttress fit rare.csv --target y --class-weight balanced --metric f1 --time 5m`

    - `buttress fit big.parquet --target y --approximation nystroem --dask tcp://10.0.0.1:8786`

    With --dask, and for a directory of Parquet files, rows are read in blocks and never held
    all at once; columns must be numbers, and --model auto means leaky.
    """
    from buttress.cli._fit_job import run_fit

    run_fit(options)

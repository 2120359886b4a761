"""``buttress fit``: from a file to a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from buttress.cli._console import Jobs, Json, Quiet, Seed
from buttress.cli._fit_job import BUDGET, FitOptions, run_fit
from buttress.cli._inputs import Decimal, DecimalMark, Missing
from buttress.cli._models import Approximation, Metric, Model
from buttress.cli._options import Categorical, ClassWeight, DataFile, Ignore, MissingValues, Target

app = typer.Typer(rich_markup_mode="markdown")

Kind = Annotated[Model, typer.Option(help="The kind of model; auto compares them.")]
Cost = Annotated[
    float | None,
    typer.Option("--d", help="Cost of no answer, in (0, 0.5]; lets auto choose to abstain."),
]
Decides = Annotated[
    Metric | None,
    typer.Option(help="What decides between models: accuracy, or cost when --d is given."),
]
Coverage = Annotated[
    float | None, typer.Option(help="Share of rows that the model that abstains should answer.")
]
Time = Annotated[
    str | None,
    typer.Option(help=f"Time for comparing and fitting: 60s, 10m; {BUDGET} if not given."),
]
ModelFile = Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")]
ReportFile = Annotated[Path | None, typer.Option(help="HTML report to write; none if not given.")]
Corrections = Annotated[
    Path | None,
    typer.Option(help="Corrections of a review to apply first; shows before and after."),
]
Folds = Annotated[int, typer.Option(min=2, max=20, help="Folds of the cross-validation.")]
FeatureMap = Annotated[
    Approximation | None,
    typer.Option(help="Feature map to fit with; by size and time if not given."),
]
Dask = Annotated[
    str | None, typer.Option(help="Fit Parquet files on a Dask cluster: its address, or 'local'.")
]


@app.command()
def fit(
    data: DataFile,
    target: Target,
    model: Kind = Model.auto,
    d: Cost = None,
    metric: Decides = None,
    class_weight: ClassWeight = None,
    target_coverage: Coverage = None,
    time: Time = None,
    out: ModelFile = Path("model.skops"),
    report: ReportFile = None,
    corrections: Corrections = None,
    missing: MissingValues = Missing.error,
    categorical: Categorical = None,
    ignore: Ignore = None,
    decimal: DecimalMark = Decimal.point,
    folds: Folds = 5,
    approximation: FeatureMap = None,
    dask: Dask = None,
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
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
    run_fit(FitOptions(**locals()))

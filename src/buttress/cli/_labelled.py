"""A table whose labels are to be judged: checked, with the labels exactly as written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from buttress._words import did_you_mean
from buttress.cli._inputs import names, refuse_decimal_commas, warn_of_many_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from buttress.review.judges import AuditJudge
    from buttress.tables import Table

# Options that `suspects` and `review` share.
Keep = Annotated[
    str | None, typer.Option("--keep", help="Columns to show, not to learn from: id,name.")
]
Ignore = Annotated[str | None, typer.Option("--ignore", help="Columns to leave out: a,b.")]
Categorical = Annotated[
    str | None, typer.Option(help="Columns that are categories though they hold numbers: a,b.")
]
Groups = Annotated[
    str | None,
    typer.Option("--groups", help="Column of groups whose rows must not judge each other."),
]
Witnesses = Annotated[
    str | None,
    typer.Option(
        help="Who judges: of ramp, leaky, svc, logistic, forest, extra-trees, boosting; "
        "a kernel machine and a forest if not given."
    ),
]


@dataclass(frozen=True, eq=False)
class Labelled:
    """A table and its labels.

    Attributes
    ----------
    table : Table
        All columns but the labels and those left out.
    labels : ndarray of object
        Text as written; None where missing.
    features : list of str
        The columns to learn from.
    groups : ndarray or None
    """

    table: Table
    labels: NDArray[Any]
    features: list[str]
    groups: NDArray[Any] | None


def read_labelled(
    path: Path,
    target: str,
    *,
    keep: str | None,
    ignore: str | None,
    groups: str | None,
    categorical: str | None,
    decimal: str,
    key: str | None = None,
) -> Labelled:
    """Read a table whose labels are to be judged."""
    import numpy as np

    from buttress.tables import Table, read_table
    from buttress.tables.table import as_text, is_missing

    table = read_table(path, target=target, text=names(categorical), decimal=decimal)
    asked = {"--target": [target], "--keep": names(keep), "--ignore": names(ignore)}
    asked["--groups"] = [] if groups is None else [groups]
    asked["--key"] = [] if key is None else [key]
    for option, columns in asked.items():
        for name in columns:
            if name not in table.columns:
                hint = did_you_mean(name, table.names)
                raise typer.BadParameter(f"{path}: there is no column {name!r} ({option}){hint}")
            if name == target and option != "--target":
                raise typer.BadParameter(f"{option} {name}: that is the target")
    labels = np.empty(len(table), dtype=object)
    labels[:] = [None if label is None else str(label) for label in table[target]]
    table_shown = table.without(target, *names(ignore))
    apart = {*names(keep), groups, key}
    features = [
        name
        for name in table_shown.names
        if name not in apart and not is_missing(table_shown[name]).all()
    ]
    if not features:
        raise typer.BadParameter(f"{path}: there is no column left to learn from")
    learned = Table({name: table[name] for name in features if name not in names(categorical)})
    refuse_decimal_commas(path, learned, decimal)
    warn_of_many_texts(path, learned)
    found = None if groups is None else as_text(table[groups])
    if found is not None:
        found = np.array(["" if value is None else value for value in found])
    _check_classes(path, target, labels)
    return Labelled(table_shown, labels, features, found)


def _check_classes(path: Path, target: str, labels: NDArray[Any]) -> None:
    counts: dict[str, int] = {}
    for label in labels:
        if label is not None:
            counts[label] = counts.get(label, 0) + 1
    if len(counts) < 2:
        raise typer.BadParameter(f"{path}: the target {target!r} has one value only")
    if len(counts) > 20 and len(counts) > len(labels) / 5:
        raise typer.BadParameter(
            f"{path}: the target {target!r} has {len(counts)} different values in {len(labels)} "
            "rows: these are no classes"
        )


def make_judge(
    read: Labelled,
    *,
    witnesses: str | None,
    fdr: float = 0.1,
    strategy: str = "errors",
    seed: int = 0,
    jobs: int = -1,
) -> AuditJudge:
    """The judge of a table's labels."""
    from buttress.review.judges import WITNESSES, AuditJudge, as_numbers
    from buttress.tables import Table

    for name in names(witnesses):
        if name not in WITNESSES:
            hint = did_you_mean(name, WITNESSES)
            raise typer.BadParameter(
                f"--witnesses {name} is not accepted: {', '.join(WITNESSES)}{hint}"
            )
    if not 0 < fdr < 1:
        raise typer.BadParameter(f"--fdr {fdr} is not accepted: a number between 0 and 1")
    return AuditJudge(
        as_numbers(Table({name: read.table[name] for name in read.features})),
        names(witnesses),
        read.groups,
        fdr=fdr,
        strategy=strategy,
        seed=seed,
        n_jobs=None if jobs == 1 else jobs,
    )

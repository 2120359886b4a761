"""A table whose labels are to be judged: checked, with the labels exactly as written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from buttress._words import did_you_mean
from buttress.cli._inputs import (
    DecimalMark,
    names,
    refuse_absent,
    refuse_decimal_commas,
    refuse_many_classes,
    warn_of_many_texts,
)
from buttress.cli._options import Categorical, CommonOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from buttress.review.judges import AuditJudge
    from buttress.tables import Table


@dataclass(frozen=True, kw_only=True)
class JudgingOptions(CommonOptions):
    """Options that `suspects` and `review` share."""

    witnesses: Annotated[
        str | None,
        typer.Option(
            help="Who judges: of ramp, leaky, svc, logistic, forest, extra-trees, boosting; "
            "a kernel machine and a forest if not given."
        ),
    ] = None
    groups: Annotated[
        str | None,
        typer.Option("--groups", help="Column of groups whose rows must not judge each other."),
    ] = None
    keep: Annotated[
        str | None, typer.Option("--keep", help="Columns to show, not to learn from: id,name.")
    ] = None
    ignore: Annotated[str | None, typer.Option("--ignore", help="Columns to leave out: a,b.")] = (
        None
    )
    categorical: Categorical = None
    decimal: DecimalMark = "."


@dataclass(frozen=True, eq=False)
class Labelled:
    """A table and its labels.

    Attributes
    ----------
    table : Table
        All columns but the labels and those left out; those of ``--keep`` and ``--key``, which
        nobody learns from, as they are written.
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
    path: Path, target: str, options: JudgingOptions, key: str | None = None
) -> Labelled:
    """Read a table whose labels are to be judged."""
    import numpy as np

    from buttress.tables import Table, column_names, read_table
    from buttress.tables.table import (
        as_text,
        as_written,
        is_missing,
        objects,
        refuse_too_large,
    )

    groups, decimal = options.groups, options.decimal
    keep, ignore, categorical = map(names, (options.keep, options.ignore, options.categorical))
    present = column_names(path, decimal=decimal)
    asked = {"--target": [target], "--keep": keep, "--ignore": ignore}
    asked["--categorical"] = categorical
    asked["--groups"] = [] if groups is None else [groups]
    asked["--key"] = [] if key is None else [key]
    for option, columns in asked.items():
        for name in columns:
            refuse_absent(path, name, present, option)
            if name == target and option not in ("--target", "--categorical"):
                raise typer.BadParameter(f"{option} {name}: that is the target")
    shown = [*keep, *asked["--key"]]
    table = read_table(path, target=target, text=categorical, keep=shown, decimal=decimal)
    labels = objects([None if label is None else str(label) for label in table[target]])
    # A number would lose leading zeros and the digits beyond a float's: it would be another key.
    written = {name: as_written(cells) for name, cells in table.written.items()}
    left_out = {target, *ignore} - {*shown}
    table_shown = Table({**table.columns, **written}).without(*left_out)
    apart = {*keep, groups, key}
    features = [
        name
        for name in table_shown.names
        if name not in apart and not is_missing(table_shown[name]).all()
    ]
    if not features:
        raise typer.BadParameter(f"{path}: there is no column left to learn from")
    learned = Table({name: table[name] for name in features if name not in categorical})
    refuse_too_large(learned, str(path))
    refuse_decimal_commas(path, learned, decimal)
    warn_of_many_texts(path, learned)
    group_of = None
    if groups is not None:
        group_of = np.array(["" if each is None else each for each in as_text(table[groups])])
    _check_classes(path, target, labels)
    return Labelled(table_shown, labels, features, group_of)


def _check_classes(path: Path, target: str, labels: NDArray[Any]) -> None:
    n_classes = len(set(labels) - {None})
    if n_classes < 2:
        raise typer.BadParameter(f"{path}: the target {target!r} has one value only")
    refuse_many_classes(f"{path}: the target {target!r}", n_classes, len(labels))


def make_judge(
    read: Labelled, options: JudgingOptions, *, fdr: float = 0.1, strategy: str = "errors"
) -> AuditJudge:
    """The judge of a table's labels."""
    from buttress.review.judges import WITNESSES, AuditJudge, as_numbers
    from buttress.tables import Table

    witnesses = names(options.witnesses)
    for name in witnesses:
        if name not in WITNESSES:
            hint = did_you_mean(name, WITNESSES)
            raise typer.BadParameter(
                f"--witnesses {name} is not accepted: {', '.join(WITNESSES)}{hint}"
            )
    if not 0 < fdr < 1:
        raise typer.BadParameter(f"--fdr {fdr} is not accepted: a number between 0 and 1")
    return AuditJudge(
        as_numbers(Table({name: read.table[name] for name in read.features})),
        witnesses,
        read.groups,
        fdr=fdr,
        strategy=strategy,
        seed=options.seed,
        n_jobs=None if options.jobs == 1 else options.jobs,
    )

"""``buttress fit`` on files that need not fit in memory, here or on a Dask cluster."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from buttress.cli._console import CommandError, Output
from buttress.cli._inputs import names
from buttress.model_selection.titles import TITLES

if TYPE_CHECKING:
    from buttress.cli.fit import FitOptions


def fit_in_blocks(
    path: Path, target: str, estimator: Any, *, dask: str | None, ignore: list[str]
) -> Any:
    """Fit a cross-validating estimator to Parquet or Arrow files, row group by row group.

    Parameters
    ----------
    path : Path
        A file or a directory of files; with `dask`, readable by every worker.
    target : str
        The column of labels.
    estimator : estimator with an ``approximation``
    dask : str or None
        Address of a scheduler, "local" for a cluster on this machine, None to stay in this
        process.
    ignore : list of str
        Columns to leave out.

    Returns
    -------
    TableClassifier
        With standardised columns, as ``buttress fit`` makes from files in memory.
    """
    import numpy as np

    from buttress.blocks.dask import DaskBlocks, connect
    from buttress.blocks.parquet import ParquetBlocks
    from buttress.blocks.sources import Changed, Standardize
    from buttress.solvers.blockwise.scan import scan
    from buttress.tables.grammar import LARGEST

    client = None
    try:
        files = ParquetBlocks(path, target)
        columns = [name for name in files.feature_names if name not in ignore]
        source: Any = ParquetBlocks(path, target, columns=columns)
        if dask is not None:
            # What its own log says at length, an error says in one line.
            logging.getLogger("distributed").setLevel(logging.CRITICAL)
            client = connect(dask)
            source = DaskBlocks(source, client=client)
        seen = scan(source)
        scale = np.sqrt(seen.feature_variance)
        # No value is farther from the mean than all deviations together.
        reach = np.abs(seen.mean) + scale * np.sqrt(seen.n_rows)
        for name, farthest in zip(columns, reach, strict=True):
            if not farthest <= LARGEST:
                raise ValueError(f"{path}: column {name!r} holds numbers too large to compute with")
        scale[scale == 0] = 1.0
        estimator.fit(Changed(source, Standardize(seen.mean, scale)), None)
    except (ValueError, OSError, ImportError) as error:
        raise CommandError(str(error)) from None
    finally:
        if client is not None:
            if client.cluster is not None:
                client.cluster.close()
            client.close()
    return _as_table_model(estimator, target, columns, seen.mean, scale, seen.n_rows)


def _as_table_model(
    estimator: Any, target: str, columns: list[str], mean: Any, scale: Any, n_rows: int
) -> Any:
    """The fitted estimator with the encoder that a prediction needs."""
    import numpy as np
    from sklearn.preprocessing import StandardScaler

    from buttress.tables import TableClassifier
    from buttress.tables.encoder import TableEncoder
    from buttress.tables.row_encoding import assemble

    encoder = TableEncoder().fit({name: [0.0, 1.0] for name in columns})
    encoder.scaler_ = StandardScaler().fit(np.vstack([mean - scale, mean + scale]))
    encoder.scaler_.n_samples_seen_ = n_rows
    # The estimator saw numbers in the encoder's order, as it does after a fit in memory.
    vars(estimator).pop("feature_names_in_", None)
    if hasattr(estimator, "best_estimator_"):
        vars(estimator.best_estimator_).pop("feature_names_in_", None)
    return assemble(TableClassifier(estimator, target=target), encoder, estimator)


def fit_blocks(options: FitOptions, say: Output) -> None:
    """Files that need not fit in memory: one kind of model, an approximate kernel."""
    from buttress.model_selection.candidates import Request, make_candidate, takes_approximation
    from buttress.persistence import save

    data, out, seed, folds = options.data, options.out, options.seed, options.folds
    kind = "leaky" if options.model == "auto" else options.model
    if not takes_approximation(kind):
        raise typer.BadParameter(f"--dask and directories do not apply to --model {kind}")
    request = Request(d=0.2 if options.d is None else options.d, seed=seed, folds=folds)
    feature_map = options.approximation or "auto"
    estimator = make_candidate(kind, request, approximation=feature_map).set_params(cv=folds)
    left_out = names(options.ignore)
    fitted = fit_in_blocks(data, options.target, estimator, dask=options.dask, ignore=left_out)
    rows = int(fitted.encoder_.scaler_.n_samples_seen_)
    fitted.ignore = left_out
    fitted.record_ = {"model": TITLES[kind], "rows": rows, "seed": seed, "folds": folds}
    save(fitted, out)
    say.say(f"{data}: {rows} rows, {fitted.n_features_in_} columns")
    say.say(f"wrote {out} ({out.stat().st_size} bytes)")
    say.result(
        {
            "data": str(data),
            "rows": rows,
            "columns": int(fitted.n_features_in_),
            "classes": [str(label) for label in fitted.classes_.tolist()],
            "approximation": fitted.estimator_.approximation_,
            "chosen": kind,
            "model": str(out),
        }
    )

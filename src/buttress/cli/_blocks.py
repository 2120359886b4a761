"""``buttress fit`` on files that need not fit in memory, here or on a Dask cluster."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from buttress.cli._console import CommandError


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
    from buttress.tables.automatic import assemble
    from buttress.tables.encoder import TableEncoder

    encoder = TableEncoder().fit({name: [0.0, 1.0] for name in columns})
    encoder.scaler_ = StandardScaler().fit(np.vstack([mean - scale, mean + scale]))
    encoder.scaler_.n_samples_seen_ = n_rows
    # The estimator saw numbers in the encoder's order, as it does after a fit in memory.
    vars(estimator).pop("feature_names_in_", None)
    if hasattr(estimator, "best_estimator_"):
        vars(estimator.best_estimator_).pop("feature_names_in_", None)
    return assemble(TableClassifier(estimator, target=target), encoder, estimator)

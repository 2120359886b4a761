"""Tables of mixed columns: read from files, turned into numbers, classified.

The command line is built on this package, so a model fitted there and one fitted in Python
with the same settings are the same model. `reading` opens files, by the `grammar` of cells; `table`
holds columns, `encoder` makes numbers of them, `classifier` joins it with an estimator, `stream`
has the tables that never end. `automatic` chooses a model for a table, `prediction` answers the
rows of a file, `row_encoding` encodes every fold by itself, `derived` makes numbers of dates and
text; `libsvm`, `parquet` and `other_files` are for files of other kinds. A newcomer adds a kind of
file in `reading`, or what a column can mean in `encoder`. Others import the names below and the
modules named so far.
"""

from __future__ import annotations

from buttress.tables.classifier import TableClassifier
from buttress.tables.encoder import TableEncoder
from buttress.tables.libsvm import read_libsvm, write_libsvm
from buttress.tables.reading import column_names, iter_table, read_table
from buttress.tables.table import Table, TableError, as_table

__all__ = [
    "Table",
    "TableClassifier",
    "TableEncoder",
    "TableError",
    "as_table",
    "column_names",
    "iter_table",
    "read_libsvm",
    "read_table",
    "write_libsvm",
]

"""All folds times all penalties as columns of one matrix.

`driver` is the entry: it orders the columns, gives them their starts and divides them among
threads. A newcomer reads the page on methods (``docs/methods/smooth.rst``), then `_table` and
`_kernel_columns`, and measures a change with ``benchmarks/path_cv.py``. Others import `driver`; the
rest is private to this room.
"""

"""Where rows come from: arrays, Parquet and Arrow files, Dask collections.

A solver that only ever sums over rows sees a `BlockSource` (`base`); `sources` decides which one
a user's data are. A newcomer adds a source in one file that registers itself: a subclass of
`LocalBlocks` that says which data it `opens` and `read`s one block, as `parquet` does; `dask` is a
source that leaves rows where they are. Others import these four modules.
"""

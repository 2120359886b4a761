"""Linear models on (mapped) rows at any size: everything they need is a sum over blocks.

`reduction` is the entry for convex losses, `outer` the loops around it; `columns` states the
problems and `objective` evaluates them, `passes` and `scan` are what they ask of a source of
blocks, `certificate` and `intervals` judge the result. A newcomer adds what a row adds to the
objective: a function beside ``margin_rows`` in `columns`. Others import these modules.
"""

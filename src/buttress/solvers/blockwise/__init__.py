"""Linear models on (mapped) rows at any size: everything they need is a sum over blocks.

`reduction` is the entry for convex losses, `outer` the loops around it; `passes` and `scan` are
what they ask of a source of blocks, `certificate` and `intervals` judge the result.
"""

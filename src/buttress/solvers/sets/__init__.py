"""Nearest points of two uncertainty sets, minimax probability machines, and their biases.

`distance` and `minimax` are the entries; `geometry` turns rows into points of a Euclidean space,
`bias` and `thresholds` find scalars for given scores. A newcomer begins in `bias`, or with a set
loss in `buttress.losses.smooth`, which needs nothing here. Others import these five modules.
"""

"""Many quadratic programs in a box that share one matrix: the Rademacher penalty's problems.

`box_qp` is the entry.
"""

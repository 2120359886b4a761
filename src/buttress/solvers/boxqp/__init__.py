"""Many quadratic programs in a box that share one matrix: the Rademacher penalty's problems.

`box_qp` is the entry, by an active set (`_active_set`) and an interior point (`_interior`) for
what that leaves; `group_sums` solves the same over points, with prescribed sums of groups, where
the matrix would be too large. A newcomer begins in `box_qp`; others import ``box_qp`` and
``group_sums``.
"""

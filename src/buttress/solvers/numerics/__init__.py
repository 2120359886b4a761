"""The ground floor of the solvers: LAPACK calls, vector instructions, loops over rows of a matrix.

Nothing here knows a loss or a problem. Change a loop only with the benchmark that it serves.
"""

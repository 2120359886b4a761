"""The ground floor of the solvers: LAPACK calls, vector instructions, loops over rows of a matrix.

`lapack` gives compiled code routines that Numba lacks, `cholesky` factorises small matrices,
`systems` fills those of Newton's method, `rows` adds and gathers rows, `lines` and `vector_maximum`
write vector instructions, `workspace` is memory that a thread uses again. Threads and their limits
are in `buttress._threads`. Nothing here knows a loss or a problem. A newcomer reads `rows` first,
and changes a loop only with the benchmark that it serves (``benchmarks/instructions.py``). Others
import all seven modules.
"""

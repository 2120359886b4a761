"""Every hinge-shaped problem: one dual solver, one table of terms, one concave-convex loop.

`smo` solves box problems over a kernel, `hinges` states a machine as a table of hinges, `dc`
iterates convex steps; `ramp` and `reject` are the machines; `kernel_rows` and `streamed_kernel`
give all of them their kernel. A newcomer adds a machine as a table of terms, as `reject` does, and
leaves `smo` alone. Others import the machines, the kernels, and what `buttress.solvers` lists.
"""

"""Every hinge-shaped problem: one dual solver, one table of terms, one concave-convex loop.

`smo` solves box problems over a kernel, `hinges` states a machine as a table of hinges, `dc`
iterates convex steps; `ramp` and `reject` are the machines. A new machine is a new table.
"""

"""The parts of `buttress.solvers.reduction`."""

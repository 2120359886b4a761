"""How it is minimised: functions of arrays that return frozen results with a certificate."""

from buttress.solvers.dc import DCSolution, minimize_dc
from buttress.solvers.hinges import HingePoint, HingeProblem, HingeTerms, solve_hinges
from buttress.solvers.kernel_rows import KernelMatrix, KernelRowCache
from buttress.solvers.reject import (
    DoubleRampSolution,
    StackedHingeSolution,
    double_ramp_step,
    solve_double_ramp,
    solve_stacked_hinge,
)
from buttress.solvers.smo import BoxSolution, solve_box_qp

__all__ = [
    "BoxSolution",
    "DCSolution",
    "DoubleRampSolution",
    "HingePoint",
    "HingeProblem",
    "HingeTerms",
    "KernelMatrix",
    "KernelRowCache",
    "StackedHingeSolution",
    "double_ramp_step",
    "minimize_dc",
    "solve_box_qp",
    "solve_double_ramp",
    "solve_hinges",
    "solve_stacked_hinge",
]

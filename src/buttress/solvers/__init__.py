"""How it is minimised: functions of arrays that return frozen results with a certificate.

One room per kind of problem; each room's page says what lives there. A newcomer begins with
`boxqp`, the smallest, or adds a machine to `hinge` as a table of terms. Nothing here knows
scikit-learn, and a module that starts with an underscore is private to its room. Others import the
names below, which are of `hinge`, and of every room the modules that its page names.
"""

from buttress._lazy import attach

_HOME = {
    "BoxSolution": "hinge.smo",
    "BoxTerms": "hinge.smo",
    "DCSolution": "hinge.dc",
    "DoubleRampSolution": "hinge.reject",
    "DoubleRampTerms": "hinge.reject",
    "HingePoint": "hinge.hinges",
    "HingeProblem": "hinge.hinges",
    "HingeTerms": "hinge.hinges",
    "KernelMatrix": "hinge.kernel_rows",
    "KernelRowCache": "hinge.kernel_rows",
    "StackedHingeSolution": "hinge.reject",
    "StreamedKernel": "hinge.streamed_kernel",
    "double_ramp_step": "hinge.reject",
    "minimize_dc": "hinge.dc",
    "solve_box_qp": "hinge.smo",
    "solve_double_ramp": "hinge.reject",
    "solve_hinges": "hinge.hinges",
    "solve_stacked_hinge": "hinge.reject",
}

__all__ = list(_HOME)

__getattr__, __dir__ = attach(__name__, _HOME)

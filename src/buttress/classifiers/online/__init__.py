"""Learners of streams: one file per learner, one shared base.

`base` holds what all learners do, `labels` the classes met so far, `history` what was counted,
`drift` the watch for change, `checkpoint` the files. A new learner is one file that makes a rule.
"""

from buttress._lazy import attach

_HOME = {
    "KernelPegasos": "kernel_pegasos",
    "KernelPerceptron": "kernel_perceptron",
    "Norma": "norma",
    "PARampClassifier": "pa_ramp",
}

__all__ = list(_HOME)

__getattr__, __dir__ = attach(__name__, _HOME)

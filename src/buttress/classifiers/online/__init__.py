"""Learners of streams: one file per learner, one shared base.

`base` holds what all learners do, `labels` the classes met so far, `history` what was counted,
`drift` the watch for change, `abstain` the band of refusals, `checkpoint` the files. A new learner
is one file with its rule and its estimator, and one line below.
"""

from buttress._lazy import attach

_HOME = {
    "KernelPegasos": "kernel_pegasos",
    "KernelPerceptron": "kernel_perceptron",
    "Norma": "norma",
    "PARampClassifier": "pa_ramp",
}

_PARTS = {
    "BandTracker": "abstain",
    "History": "history",
    "PageHinkley": "drift",
    "Rivalry": "drift",
    "Window": "history",
}

__all__ = list(_HOME)

__getattr__, __dir__ = attach(__name__, _HOME, saved=_PARTS)

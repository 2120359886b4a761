"""Learners of streams: one file per learner, one shared base.

`base` holds what all learners do, `labels` the classes met so far, `history` what was counted,
`drift` the watch for change, `abstain` the band of refusals, `checkpoint` the files. A newcomer
adds a learner: one file with its rule and its estimator, and one line below; ``buttress stream
--model`` knows it by the name of its file. Others import the names below and `base`, `checkpoint`,
`labels`.
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
    "RecentErrors": "recent_errors",
    "Rivalry": "drift",
    "Window": "history",
}

__all__ = [*_HOME, "learner_names"]

__getattr__, __dir__ = attach(__name__, _HOME, saved=_PARTS)


def learner_names() -> dict[str, str]:
    """Every learner's class by the word for it on the command line, that of its file.

    Nothing is imported for it.

    Examples
    --------
    >>> learner_names()["pa-ramp"]
    'PARampClassifier'
    """
    words = {home.removeprefix("kernel_").replace("_", "-"): name for name, home in _HOME.items()}
    return dict(sorted(words.items()))

"""Choosing a model: estimators that tune themselves, several models judged on the same folds.

`_search` is the one search of all kernel machines: a searching estimator is a small file that says
what is tried (`ramp` is the one to read first), rows in memory go through `_exact`, mapped rows
through `_mapped`. `judging` compares models, `racing` and `planning` keep within a time, `measures`
says what is best. A newcomer adds a search in one file, or a candidate of ``fit`` in `candidates`,
whose `titles` are in a module of their own. Others import the names below, the modules named so
far, `cost_model` (what a fit costs here) and `preparing` (which compiles what a job needs).
"""

from buttress._lazy import attach

_HOME = {
    "DoubleRampClassifierCV": "double_ramp",
    "Dropping": "judging",
    "Judged": "judging",
    "LeakyHockeyStickClassifierCV": "leaky_hockey_stick",
    "Measure": "measures",
    "RademacherSelector": "rademacher",
    "RampClassifierCV": "ramp",
    "UncertaintySetClassifierCV": "uncertainty_set",
    "cross_validate_reject": "reject_costs",
    "judge": "judging",
}

__all__ = list(_HOME)

__getattr__, __dir__ = attach(__name__, _HOME)

"""Choosing a model: estimators that tune themselves, several models judged on the same folds."""

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

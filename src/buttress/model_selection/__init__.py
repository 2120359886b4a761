"""Choosing a model: estimators that tune themselves, and cross-validation with rejection."""

from buttress._lazy import attach

_HOME = {
    "DoubleRampClassifierCV": "double_ramp",
    "LeakyHockeyStickClassifierCV": "leaky_hockey_stick",
    "RademacherSelector": "rademacher",
    "RampClassifierCV": "ramp",
    "UncertaintySetClassifierCV": "uncertainty_set",
    "cross_validate_reject": "reject_costs",
}

__all__ = list(_HOME)

__getattr__, __dir__ = attach(__name__, _HOME)

"""Pictures: ``...Display`` classes, which need matplotlib only when they draw."""

from buttress._lazy import attach

_HOME = {
    "LabelNoiseDisplay": "label_noise",
    "LossDisplay": "losses",
    "MarginDisplay": "margins",
    "PathDisplay": "path",
    "RademacherDisplay": "rademacher",
    "RejectRegionDisplay": "reject",
    "RiskCoverageDisplay": "risk_coverage",
    "StreamDisplay": "stream",
    "UncertaintySetDisplay": "uncertainty_sets",
}

__all__ = list(_HOME)

__getattr__, __dir__ = attach(__name__, _HOME)

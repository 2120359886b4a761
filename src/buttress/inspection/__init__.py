"""Pictures: ``...Display`` classes, which need matplotlib only when they draw.

One file per picture: a class that holds the numbers, a class method that computes them
(``from_...``) and `plot`, which draws into given axes or a new figure. A newcomer adds a file and
its line below. Others import the names below.
"""

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

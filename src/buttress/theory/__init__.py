"""What the papers prove, as numbers: calibration, bounds, margins, penalties, uncertainty sets.

`calibration` and `set_calibration` say what a small risk means for the error, `bounds`,
`consistency` and `rademacher` how large risks can be, `margins` and `uncertainty_sets` what a
machine's solution is; `risk_control`, `binomial` and `label_errors` promise error rates. A
newcomer adds a theorem in one file, with a test that fails when the statement is weakened. Others
import the names below and the modules named so far.
"""

from buttress._lazy import attach

# Not on first use: a function with the name of its module would be hidden by the module.
from buttress.theory.calibration import Calibration, calibration, psi_transform
from buttress.theory.set_calibration import SetCalibration, set_calibration

_HOME = {
    "Ellipsoid": "uncertainty_sets",
    "CalibrationRows": "risk_control",
    "EllipsoidLevels": "set_revision",
    "LabelErrors": "label_errors",
    "MarginDirections": "margins",
    "PenaltyAt": "rademacher",
    "QuadraticWeights": "set_revision",
    "RademacherCurve": "rademacher",
    "RevisedLoss": "set_revision",
    "RiskCertificate": "risk_control",
    "ThresholdPlan": "risk_control",
    "UncertaintySet": "uncertainty_sets",
    "admissible_schedule": "consistency",
    "binomial_upper": "binomial",
    "certify_risk": "risk_control",
    "confidence_region": "uncertainty_sets",
    "convex_hull": "uncertainty_sets",
    "excess_risk_bound": "bounds",
    "existence_radius": "bounds",
    "generalization_bound": "bounds",
    "margin_directions": "margins",
    "noise_condition": "consistency",
    "plan_blindly": "risk_control",
    "plan_thresholds": "risk_control",
    "rademacher_penalty": "rademacher",
    "radius_schedule": "_radius",
    "reduced_hull": "uncertainty_sets",
    "reject_risk_bound": "bounds",
    "revise_uncertainty_set": "set_revision",
    "risk_is_finite": "consistency",
    "rows_needed": "binomial",
    "schedule_is_admissible": "consistency",
}

__all__ = [
    "Calibration",
    "SetCalibration",
    "calibration",
    "psi_transform",
    "set_calibration",
    *_HOME,
]

__getattr__, __dir__ = attach(__name__, _HOME)

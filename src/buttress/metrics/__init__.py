"""How good a classifier is that may give no answer.

Every row ends in one of three ways: answered rightly (cost 0), answered wrongly (cost 1), or
not answered (cost `d`). The 0-d-1 risk is the mean of these costs; the rejection rate and the
accuracy on the accepted rows say where it comes from; the risk-coverage curve shows every
trade-off that a score of confidence allows.
"""

from buttress.metrics.costs import cost_on_noisy_labels
from buttress.metrics.counts import Estimate, accepted_accuracy, reject_risk, rejection_rate
from buttress.metrics.risk_coverage import area_under_risk_coverage, risk_coverage_curve
from buttress.metrics.scorer import RejectScorer, reject_scorer

__all__ = [
    "Estimate",
    "RejectScorer",
    "accepted_accuracy",
    "area_under_risk_coverage",
    "cost_on_noisy_labels",
    "reject_risk",
    "reject_scorer",
    "rejection_rate",
    "risk_coverage_curve",
]

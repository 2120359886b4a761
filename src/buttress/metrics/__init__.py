"""How good a classifier is that may give no answer.

Every row ends in one of three ways: answered rightly (cost 0), answered wrongly (cost 1), or
not answered (cost `d`). The 0-d-1 risk is the mean of these costs, `cost_risk` that of any other
costs; the rejection rate and the accuracy on the accepted rows say where it comes from; the
risk-coverage curve shows every trade-off that a score of confidence allows, and areas under it
judge the score. Intervals and paired tests say what is chance. A newcomer adds a metric in one
file; a line below exports it. Others import the names below, `cost_risk`, and of `scorer` how a
classifier's answers and confidences are read.
"""

from buttress.metrics.bootstrap import PairedDifference, bootstrap_estimate, paired_difference
from buttress.metrics.cost_risk import CostScorer, cost_risk, cost_scorer
from buttress.metrics.costs import cost_on_noisy_labels
from buttress.metrics.counts import Estimate, accepted_accuracy, reject_risk, rejection_rate
from buttress.metrics.excess_area import excess_area
from buttress.metrics.generalized_risk import area_under_generalized_risk
from buttress.metrics.groups import GroupOutcome, outcomes_by_group
from buttress.metrics.reliability import Reliability, answered_reliability
from buttress.metrics.risk_coverage import area_under_risk_coverage, risk_coverage_curve
from buttress.metrics.risk_coverage_band import risk_coverage_band
from buttress.metrics.scorer import RejectScorer, reject_scorer
from buttress.metrics.selective_risk import selective_risk

__all__ = [
    "CostScorer",
    "Estimate",
    "GroupOutcome",
    "PairedDifference",
    "RejectScorer",
    "Reliability",
    "accepted_accuracy",
    "answered_reliability",
    "area_under_generalized_risk",
    "area_under_risk_coverage",
    "bootstrap_estimate",
    "cost_on_noisy_labels",
    "cost_risk",
    "cost_scorer",
    "excess_area",
    "outcomes_by_group",
    "paired_difference",
    "reject_risk",
    "reject_scorer",
    "rejection_rate",
    "risk_coverage_band",
    "risk_coverage_curve",
    "selective_risk",
]

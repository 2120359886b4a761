"""
Giving no answer where it pays
==============================

A wrong answer costs 1, no answer costs d. :class:`buttress.DoubleRampClassifier` learns the
boundary and the band around it, in which it gives no answer, together;
:class:`buttress.ChowRejector` applies the textbook rule to the probabilities of any classifier
and is the baseline to beat.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from buttress import ChowRejector, DoubleRampClassifier, cross_validate_reject
from buttress.inspection import RejectRegionDisplay, RiskCoverageDisplay
from buttress.metrics import accepted_accuracy, reject_risk, rejection_rate

X, y = make_moons(300, noise=0.3, random_state=0)
X_test, y_test = make_moons(3000, noise=0.3, random_state=1)

# %%
# The cheaper it is to say nothing, the wider the band. Hollow points are rejected, rings are
# support vectors: they lie along the edges of the band, and rows far on the wrong side are
# ignored.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
for ax, d in zip(axes, (0.05, 0.3), strict=True):
    model = DoubleRampClassifier(d=d, C=5.0, gamma=1.0).fit(X, y)
    RejectRegionDisplay.from_estimator(model, X, y, grid_resolution=120, ax=ax)
    ax.set_title(f"d = {d}: half width {model.rho_:.2f}")

# %%
# What it costs on new rows, with an interval, and how it compares with Chow's rule on a
# calibrated support vector machine.

d = 0.2
models = {
    "double ramp": DoubleRampClassifier(d=d, C=5.0, gamma=1.0),
    "Chow, sigmoid": ChowRejector(SVC(C=5.0, gamma=1.0), d=d),
    "Chow, isotonic": ChowRejector(SVC(C=5.0, gamma=1.0), d=d, calibration="isotonic"),
}
for name, model in models.items():
    model.fit(X, y)
    pred, rejected = model.predict(X_test), model.reject(X_test)
    risk = reject_risk(y_test, pred, rejected, d, confidence=0.95)
    print(
        f"{name:15} risk {risk.value:.3f} [{risk.low:.3f}, {risk.high:.3f}], "
        f"rejected {rejection_rate(rejected):.1%}, "
        f"right when it answers {accepted_accuracy(y_test, pred, rejected):.1%}"
    )

# %%
# Ask for a coverage instead of a cost: the band is set on rows kept out of training, so that a
# new row is answered with at least that probability.

covered = DoubleRampClassifier(target_coverage=0.8, C=5.0, gamma=1.0, random_state=0).fit(X, y)
print(f"answered: {1 - rejection_rate(covered.reject(X_test)):.1%}")
print(covered.predict_or_reject(X_test[:8], reject_label=-1))

# %%
# All costs at once by cross-validation, and the trade-off that the scores allow.

costs = np.linspace(0.05, 0.5, 10)
found = cross_validate_reject(DoubleRampClassifier(C=5.0, gamma=1.0), X, y, costs, cv=5)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
left.plot(found.d, found.risk, marker="o", label="risk")
left.plot(found.d, found.rejection_rate, marker="s", label="rejection rate")
left.set(xlabel="cost of no answer, d")
left.legend()
for name, model in models.items():
    RiskCoverageDisplay.from_estimator(model, X_test, y_test, name=name, ax=right)
plt.show()

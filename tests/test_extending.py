"""What the map promises: a loss, a reject rule and a metric of one's own are one file each."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

import buttress
from buttress import losses

X, Y = make_moons(150, noise=0.3, random_state=0)

# The logistic loss of the margin: formulas for arrays, and at one margin for compiled loops.
LOSS = """
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from buttress.losses import Loss


class SoftMarginScalars(NamedTuple):
    steep: float

    def value(self, u):
        return np.log1p(np.exp(-self.steep * u)) / self.steep

    def slopes(self, u):
        share = 1.0 / (1.0 + np.exp(self.steep * u))
        return share, self.steep * share * (1.0 - share)


@dataclass(frozen=True)
class SoftMargin(Loss):
    steep: float = 1.0

    @property
    def curvature_bound(self):
        return 0.25 * self.steep

    @property
    def scalars(self):
        return SoftMarginScalars(self.steep)

    def value(self, u):
        return np.logaddexp(0.0, -self.steep * u) / self.steep

    def derivative(self, u):
        return -1.0 / (1.0 + np.exp(self.steep * u))

    def curvature(self, u):
        share = -self.derivative(u)
        return self.steep * share * (1.0 - share)
"""

# A support vector machine that gives no answer within half a margin of its boundary.
REJECT_RULE = """
from buttress.classifiers.base import all_or_nothing
from buttress.classifiers.parameters import check_number
from buttress.classifiers.reject import BaseRejectClassifier
from buttress.losses import Hinge
from buttress.solvers.hinge.reject import solve_stacked_hinge


class MarginBandClassifier(BaseRejectClassifier):
    def __init__(
        self, d=0.2, C=1.0, *, share=0.5, kernel="rbf", gamma="scale", degree=3, coef0=0.0,
        kernel_params=None, fit_intercept=True, class_weight=None, target_coverage=None,
        tol=1e-10, max_iter=10_000_000, cache_size=1000.0, random_state=None,
    ):
        self.d = d
        self.C = C
        self.share = share
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.target_coverage = target_coverage
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        self._check_parameters()
        self._solve_all(self._training_set(X, y, sample_weight))
        return self

    def _check_own(self):
        check_number("share", self.share, "[0, 1]")

    def _solve(self, K, y, weight, tol, warm=None):
        return solve_stacked_hinge(
            K, y, Hinge().terms, C=self.C, weight=weight, fit_intercept=self.fit_intercept, tol=tol
        )

    def _band(self, solution):
        return -float(self.share), float(self.share)
"""

# Wrong answers among the answers given, and a limit on how many may be refused.
METRIC = """
import numpy as np

from buttress.metrics.scorer import AnswerScorer


def selective_error(y, pred, rejected, most_rejected=0.5, sample_weight=None):
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
    if weight @ rejected > most_rejected * weight.sum():
        return 1.0
    return float(weight @ ((y != pred) & ~rejected) / (weight @ ~rejected))


class SelectiveScorer(AnswerScorer):
    def __init__(self, most_rejected=0.5):
        self.most_rejected = most_rejected

    def _risk(self, estimator, y, pred, rejected, weight):
        return selective_error(y, pred, rejected, self.most_rejected, weight)
"""


def imported(folder: Path, name: str, source: str) -> Any:
    file = folder / f"{name}.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rule(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    module = imported(tmp_path_factory.mktemp("rule"), "margin_band", REJECT_RULE)
    yield module.MarginBandClassifier
    del sys.modules["margin_band"]


@pytest.fixture
def loss(tmp_path: Path) -> Iterator[Any]:
    module = imported(tmp_path, "soft_margin", LOSS)
    yield module.SoftMargin(1.0)
    del sys.modules["soft_margin"]


@pytest.fixture(scope="module")
def metric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield imported(tmp_path_factory.mktemp("metric"), "selective", METRIC)
    del sys.modules["selective"]


def test_a_loss_takes_the_compiled_path_to_its_minimum(loss: Any) -> None:
    alpha = 0.02
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no word about a loss that is called from Python
        model = buttress.LeakyHockeyStickClassifierCV(
            loss=loss, kernel="linear", alphas=[alpha], cv=2
        ).fit(X, Y)
    # mean loss + alpha |w|^2 is scikit-learn's problem with C = 1 / (2 n alpha)
    rival = LogisticRegression(C=1.0 / (2 * len(Y) * alpha), tol=1e-10).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), rival.decision_function(X), atol=1e-5)


def saved_and_loaded(model: Any, file: Path) -> Any:
    pytest.importorskip("skops.io")
    buttress.save(model, file)
    again = buttress.load(file)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    return again


def test_a_model_with_a_loss_from_anywhere_is_saved_and_loaded(loss: Any, tmp_path: Path) -> None:
    model = buttress.LeakyHockeyStickClassifier(loss=loss).fit(X, Y)
    again = saved_and_loaded(model, tmp_path / "model.skops")
    assert again.loss == loss
    np.testing.assert_array_equal(again.fit(X, Y).dual_coef_, model.dual_coef_)


def test_a_loss_in_a_file_of_the_package_is_saved_and_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "buttress.losses.soft_margin_of_ours"
    (tmp_path / "soft_margin_of_ours.py").write_text(LOSS.replace("(Loss)", ""))
    monkeypatch.setattr(losses, "__path__", [*losses.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    # one penalty of few rows is solved in NumPy: nothing is compiled and kept for a loss that goes
    own = importlib.import_module(name).SoftMargin(2.0)
    model = buttress.LeakyHockeyStickClassifier(loss=own).fit(X, Y)
    try:
        again = saved_and_loaded(model, tmp_path / "model.skops")
        assert again.loss == own
        del sys.modules[name]  # as in a program that has not met it
        again = buttress.load(tmp_path / "model.skops")
        assert type(again.loss).__module__ == name
    finally:
        sys.modules.pop(name, None)


@pytest.mark.long
def test_no_file_makes_a_program_import_a_loss_from_anywhere(loss: Any, tmp_path: Path) -> None:
    pytest.importorskip("skops.io")
    model = buttress.LeakyHockeyStickClassifier(loss=loss).fit(X, Y)
    buttress.save(model, tmp_path / "model.skops")
    code = (
        "import sys, buttress\n"
        "try: buttress.load('model.skops')\n"
        "except buttress.persistence.ModelFileError as error: print(error)\n"
        "sys.exit('soft_margin' in sys.modules)"
    )
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "untrusted type soft_margin.SoftMargin" in done.stdout


def test_a_reject_rule_is_its_formula(rule: Any) -> None:
    model = rule(C=2.0, gamma=1.0).fit(X, Y)
    svm = SVC(C=2.0, gamma=1.0, tol=1e-10).fit(X, Y)
    scores = svm.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=5e-3)
    far = np.abs(np.abs(scores) - 0.5) > 1e-2
    np.testing.assert_array_equal(model.reject(X)[far], (np.abs(scores) <= 0.5)[far])
    answer = model.predict_or_reject(X, reject_label=-1)
    np.testing.assert_array_equal(answer == -1, model.reject(X))


def test_a_reject_rule_has_the_whole_interface(rule: Any, tmp_path: Path) -> None:
    third = np.where(X[:, 0] > 1.2, 2, Y)
    several = rule(gamma=1.0).fit(X, third)
    assert several.thresholds_.shape == (3, 2)
    assert several.reject(X).any()
    covered = rule(gamma=1.0, target_coverage=0.8, random_state=0).fit(X, Y)
    assert 0.6 < 1.0 - covered.reject(X).mean() < 1.0
    result = buttress.cross_validate_reject(rule(gamma=1.0), X, Y, [0.1, 0.4], cv=3)
    assert (result.risk[0] < result.risk[1]) == (result.rejection_rate[0] > 0)
    pytest.importorskip("skops.io")
    buttress.save(several, tmp_path / "model.skops")
    again = buttress.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.reject(X), several.reject(X))


def test_scikit_learn_accepts_the_reject_rule(rule: Any) -> None:
    check_estimator(rule())


def test_a_metric_scores_searches_of_both_libraries(metric: Any, tmp_path: Path) -> None:
    scorer = metric.SelectiveScorer(0.6)
    ours = buttress.DoubleRampClassifierCV(Cs=[0.3, 3.0], gammas=None, cv=3, scoring=scorer)
    ours.fit(X, Y)
    theirs = GridSearchCV(
        buttress.DoubleRampClassifier(gamma=ours.gamma_), {"C": [0.3, 3.0]}, cv=3, scoring=scorer
    ).fit(X, Y)
    for name in ("mean_test_score", "std_test_score"):
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name])
    again = saved_and_loaded(ours, tmp_path / "model.skops")
    assert again.scoring.get_params() == {"most_rejected": 0.6}
    direct = cross_val_score(SVC(), X, Y, cv=3, scoring=scorer)
    np.testing.assert_allclose(direct, cross_val_score(SVC(), X, Y, cv=3) - 1.0)

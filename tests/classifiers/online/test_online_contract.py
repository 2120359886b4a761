"""The contract of all online learners, run on the four and on one from a file of one's own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import buttress
from buttress.classifiers.online import learner_names
from buttress.persistence import ModelFileError

# All that a newcomer writes: a rule and an estimator (Crammer et al. 2006, PA-I: a capped step).
SOURCE = """
from dataclasses import dataclass

from buttress.classifiers.online.base import BaseOnlineClassifier
from buttress.classifiers.parameters import check_number
from buttress.solvers.stream.rules import UpdateRule


@dataclass(frozen=True)
class CappedRule(UpdateRule):
    C: float = 1.0

    @staticmethod
    def decide(z, y, kxx, tolerance, first, numbers):
        loss = 1.0 - z
        if loss <= tolerance or kxx <= 0.0:
            return 0.0
        return y * min(numbers[0], loss / kxx)


class CappedPassiveAggressive(BaseOnlineClassifier):
    def __init__(
        self, C=1.0, *, kernel="rbf", gamma="scale", degree=3, coef0=0.0, kernel_params=None,
        budget=None, budget_policy="merge", block_size=64, window=1000, drift=None,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.budget = budget
        self.budget_policy = budget_policy
        self.block_size = block_size
        self.window = window
        self.drift = drift

    def _rule(self):
        return CappedRule(check_number("C", self.C, "(0, inf)"))
"""
_folder = tempfile.TemporaryDirectory()
MODULE = Path(_folder.name) / "capped_passive_aggressive.py"
MODULE.write_text(SOURCE)


def imported() -> Any:
    spec = importlib.util.spec_from_file_location(MODULE.stem, MODULE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE.stem] = module
    spec.loader.exec_module(module)
    return module


Own = imported().CappedPassiveAggressive
LEARNERS = [*(getattr(buttress, name) for name in learner_names().values()), Own]
every_learner = pytest.mark.parametrize("learner", LEARNERS)


def stream(n: int = 300, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=n) > 0, 1, 0)
    return X, np.where(X[:, 0] > 0.7, 2, y) if classes == 3 else y


def assert_same(a: Any, b: Any, X: Any) -> None:
    np.testing.assert_array_equal(a.support_, b.support_)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-10)
    assert a.n_mistakes_ == b.n_mistakes_
    assert a.get_params() == b.get_params()


def test_the_files_learner_gives_what_its_formula_gives() -> None:
    X, y = stream()
    K, sign = np.exp(-cdist(X, X, "sqeuclidean")), np.where(y == 1, 1.0, -1.0)
    coef = np.zeros(len(y))
    for i in range(len(y)):
        coef[i] = sign[i] * min(0.3, max(0.0, 1.0 - sign[i] * (K[i] @ coef)))
    model = Own(C=0.3, gamma=1.0).fit(X, y)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(coef))
    np.testing.assert_allclose(model.dual_coef_[0], coef[coef != 0], atol=1e-10)
    assert np.max(np.abs(coef)) == 0.3  # the cap is met


@every_learner
@pytest.mark.parametrize("classes", [2, 3])
def test_a_stream_may_come_in_pieces_and_rest_in_files(
    learner: Any, classes: int, tmp_path: Path
) -> None:
    X, y = stream(classes=classes)
    whole = learner(gamma=1.0).fit(X, y)
    pieces = learner(gamma=1.0).partial_fit(X[:100], y[:100], classes=range(classes))
    pieces.save_checkpoint(tmp_path / "state")
    resumed = learner.load_checkpoint(tmp_path / "state")
    for model in (pieces, resumed):
        model.partial_fit(X[100:], y[100:])
        assert_same(model, whole, X)
    pytest.importorskip("skops.io")
    buttress.save(whole, tmp_path / "model.skops")
    loaded = buttress.load(tmp_path / "model.skops")
    assert_same(loaded, whole, X)
    # What was loaded goes on learning.
    assert_same(loaded.partial_fit(X, y), whole.partial_fit(X, y), X)


@every_learner
def test_every_class_against_the_rest_is_its_own_binary_problem(learner: Any) -> None:
    X, y = stream(classes=3)
    model = learner(gamma=1.0).fit(X, y)
    scores = model.decision_function(X)
    for k in range(3):
        alone = learner(gamma=1.0).fit(X, y == k)
        np.testing.assert_allclose(scores[:, k], alone.decision_function(X), atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))


@every_learner
@pytest.mark.parametrize("policy", ["merge", "project", "forget", "forget_oldest"])
def test_a_budget_holds_after_every_call(learner: Any, policy: str) -> None:
    X, y = stream()
    model = learner(gamma=1.0, budget=12, budget_policy=policy)
    for part in np.split(np.arange(300), [7, 60, 130]):
        model.partial_fit(X[part], y[part], classes=[0, 1])
        assert len(model.support_) <= 12
        assert model.history_["support_vectors"].max() <= 12


@every_learner
def test_rows_without_a_label_change_nothing(learner: Any) -> None:
    X, y = stream()
    some = np.where(np.arange(300) % 3 == 0, np.nan, y)
    model, labelled = learner(gamma=1.0).fit(X, some), np.arange(300) % 3 > 0
    only = learner(gamma=1.0).fit(X[labelled], y[labelled])
    np.testing.assert_allclose(model.decision_function(X), only.decision_function(X), atol=1e-9)
    assert (model.n_seen_, model.n_labelled_) == (300, 200)


@every_learner
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_sparse_rows_and_single_precision_are_the_same_stream(learner: Any, kernel: str) -> None:
    X, y = stream(150)
    dense = learner(kernel=kernel, gamma=1.0).fit(X, y)
    packed = learner(kernel=kernel, gamma=1.0).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(
        packed.decision_function(sparse.csr_matrix(X)), dense.decision_function(X), atol=1e-7
    )
    single = learner(kernel=kernel, gamma=1.0).fit(X.astype(np.float32), y)
    assert single.decision_function(X.astype(np.float32)).dtype == np.float32


@every_learner
def test_shared_parameters_have_one_meaning_and_are_given_by_name(learner: Any) -> None:
    shared = {
        "kernel": "rbf", "gamma": "scale", "degree": 3, "coef0": 0.0, "kernel_params": None,
        "budget": None, "budget_policy": "merge", "block_size": 64, "window": 1000, "drift": None,
    }  # fmt: skip
    model = clone(learner())
    assert shared.items() <= model.get_params().items()
    with pytest.raises(TypeError, match="positional"):
        learner(*range(5))


@pytest.mark.filterwarnings("ignore:gamma='scale' was fixed:UserWarning")
def test_scikit_learn_accepts_the_files_learner() -> None:
    check_estimator(Own())


@pytest.mark.long
def test_a_file_makes_nobody_import_a_learner(tmp_path: Path) -> None:
    pytest.importorskip("skops.io")
    X, y = stream(60)
    file = tmp_path / "model.skops"
    buttress.save(Own(gamma=1.0).fit(X, y), file)
    code = f"""
        import sys; sys.path.insert(0, {str(MODULE.parent)!r})
        import buttress
        try:
            buttress.load({str(file)!r})
        except ValueError as error:
            print(error, "{MODULE.stem}" in sys.modules)
        import {MODULE.stem}
        print(type(buttress.load({str(file)!r})).__name__)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    refused, accepted = run.stdout.splitlines()
    assert f"untrusted type {MODULE.stem}.CappedPassiveAggressive" in refused
    assert refused.endswith("False")
    assert accepted == "CappedPassiveAggressive"


def test_other_classes_of_the_file_stay_foreign(tmp_path: Path) -> None:
    pytest.importorskip("skops.io")

    class Foreign:
        pass

    X, y = stream(60)
    model = Own(gamma=1.0).fit(X, y)
    model.extra_ = Foreign()
    with pytest.raises(ModelFileError, match="Foreign"):
        buttress.save(model, tmp_path / "model.skops")


def test_a_rule_that_cannot_be_compiled_says_so() -> None:
    from buttress.solvers.stream.rules import UpdateRule, compiled_rule

    @dataclass(frozen=True)
    class Undecided(UpdateRule):
        @staticmethod
        def decide(z, y, kxx, tolerance, first, numbers):
            return "yes" if z > 0 else None

    with pytest.raises(TypeError, match=r"Undecided\.decide cannot be compiled"):
        compiled_rule(Undecided(), np.float64)

"""Checkpoints: complete, checked, without pickle."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from buttress import KernelPegasos, KernelPerceptron, Norma, PARampClassifier
from buttress.classifiers.online.checkpoint import (
    CheckpointError,
    read_checkpoint,
    write_checkpoint,
)


def stream(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")


@pytest.mark.smoke
@pytest.mark.parametrize(
    "learner",
    [
        PARampClassifier(gamma=1.0),
        PARampClassifier(gamma=1.0, drift="page-hinkley"),
        PARampClassifier(s=-np.inf, gamma=0.5, budget=20, budget_policy="project"),
        PARampClassifier(budget=20),
        PARampClassifier(kernel="linear"),
        KernelPerceptron(kernel="poly", degree=2, kernel_params={"coef0": 1.0}),
        KernelPegasos(random_state=3),
        Norma(gamma=1.0, alpha=0.5),
    ],
    ids=repr,
)
@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_learner_goes_on_bit_by_bit_as_if_never_stopped(
    learner: Any, thin: bool, dtype: Any, tmp_path: Path
) -> None:
    learner = clone(learner)
    X, y = stream()
    # a change of concept, so that a challenger may be alive at the checkpoint
    y[130:] = np.where(y[130:] == "yes", "no", "yes")
    rows = sparse.csr_matrix(X, dtype=dtype) if thin else X.astype(dtype)
    learner.partial_fit(rows[:192], y[:192], classes=["no", "yes"])
    learner.save_checkpoint(tmp_path / "a")
    other = type(learner).load_checkpoint(tmp_path / "a")
    assert other.get_params() == learner.get_params()
    for part in (slice(192, 256), slice(256, 300)):
        learner.partial_fit(rows[part], y[part])
        other.partial_fit(rows[part], y[part])
    learner.save_checkpoint(tmp_path / "b")
    other.save_checkpoint(tmp_path / "c")
    assert (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()
    np.testing.assert_array_equal(learner.decision_function(rows), other.decision_function(rows))
    np.testing.assert_array_equal(learner.support_, other.support_)


def test_a_checkpoint_can_be_loaded_into_an_existing_learner(tmp_path: Path) -> None:
    X, y = stream()
    saved = PARampClassifier(gamma=1.0, s=-0.5).fit(X, y.astype(object))
    saved.save_checkpoint(tmp_path / "a")
    learner = PARampClassifier(s=-2.0).fit(X[:50], y[:50])
    assert learner.load_checkpoint(tmp_path / "a") is learner
    assert learner.s == -0.5
    np.testing.assert_array_equal(learner.predict(X), saved.predict(X))
    with pytest.raises(ValueError, match="holds a PARampClassifier, not a KernelPerceptron"):
        KernelPerceptron.load_checkpoint(tmp_path / "a")


def test_names_of_features_and_a_gram_model_survive(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    X, y = stream()
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    PARampClassifier(gamma=1.0).fit(frame, y).save_checkpoint(tmp_path / "a")
    loaded = PARampClassifier.load_checkpoint(tmp_path / "a")
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    K = X @ X.T
    model = PARampClassifier(kernel="precomputed").fit(K, y)
    model.save_checkpoint(tmp_path / "b")
    again = PARampClassifier.load_checkpoint(tmp_path / "b")
    np.testing.assert_array_equal(again.predict(K), model.predict(K))


def test_damage_is_noticed_and_changes_nothing(tmp_path: Path) -> None:
    X, y = stream()
    model = PARampClassifier(gamma=1.0).fit(X, y)
    path = tmp_path / "a"
    model.save_checkpoint(path)
    whole = path.read_bytes()
    before = model.dual_coef_
    for broken in (whole[:-1], whole[: len(whole) // 2], whole[:100] + b"x" + whole[101:]):
        path.write_bytes(broken)
        with pytest.raises(CheckpointError, match="damaged"):
            model.load_checkpoint(path)
    path.write_bytes(b"something else")
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        model.load_checkpoint(path)
    np.testing.assert_array_equal(model.dual_coef_, before)


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    write_checkpoint(path, {"n": 1})

    def fail(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_checkpoint(path, {"n": 2})
    assert read_checkpoint(path) == {"n": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_code_cannot_be_stored(tmp_path: Path) -> None:
    X, y = stream()
    model = PARampClassifier(kernel=lambda a, b: a @ b.T).fit(X, y)
    with pytest.raises(ValueError, match=r"params.kernel=.*cannot be put into a checkpoint"):
        model.save_checkpoint(tmp_path / "a")
    assert not (tmp_path / "a").exists()
    content = {
        "text": "a",
        "list": [1, None, np.float64(2.5)],
        "labels": np.array(["a", 1], dtype=object),
    }
    write_checkpoint(tmp_path / "b", content)
    read = read_checkpoint(tmp_path / "b")
    assert read["labels"].tolist() == ["a", 1]
    assert read["list"] == [1, None, 2.5]


def test_a_learner_that_has_seen_nothing_has_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        PARampClassifier().save_checkpoint(tmp_path / "state")


def test_a_missing_directory_is_named_as_the_user_wrote_it(tmp_path: Path) -> None:
    learner = PARampClassifier().fit(*stream(20))
    with pytest.raises(FileNotFoundError, match=r"nowhere/state: there is no directory"):
        learner.save_checkpoint(tmp_path / "nowhere" / "state")

"""Our learners inside river, river's drift detectors inside ours."""

from __future__ import annotations

import numpy as np
import pytest

from buttress import KernelPegasos, PARampClassifier
from buttress.classifiers.online.river_bridge import as_river

river = pytest.importorskip("river")


def stream(n, seed=0, flip=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] > 0) ^ flip


def test_a_learner_in_river_s_evaluation_is_the_learner():
    from river import evaluate, metrics

    X, y = stream(300)
    rows = [({"a": a, "b": b}, bool(label)) for (a, b), label in zip(X, y, strict=True)]
    model = as_river(PARampClassifier(gamma=0.5), classes=[False, True])
    found = evaluate.progressive_val_score(rows, model, metrics.Accuracy())
    plain = PARampClassifier(gamma=0.5)
    first = plain.answer_and_learn(X[:1], y[:1], classes=[False, True])
    answers = np.concatenate([first, plain.answer_and_learn(X[1:], y[1:])])
    np.testing.assert_array_equal(model.learner.support_, plain.support_)
    # river asks nothing before the first row
    assert found.get() == pytest.approx(np.mean(answers[1:] == y[1:]), abs=0.01)


def test_pipelines_batches_and_rows_that_lack_a_feature():
    from river import preprocessing

    pd = pytest.importorskip("pandas")
    X, y = stream(200)
    model = as_river(KernelPegasos(gamma=0.5), classes=[False, True])
    assert model.predict_one({"a": 1.0, "b": 0.0}) is None
    assert model.predict_proba_one({"a": 1.0, "b": 0.0}) == {}
    piped = preprocessing.StandardScaler() | model
    for row, label in zip(X, y, strict=True):
        piped.learn_one(dict(zip("ab", row, strict=True)), bool(label))
    assert piped.predict_one({"a": 2.0, "b": 0.0}) is True
    assert piped.predict_proba_one({"a": -2.0, "b": 0.0}) == {False: 1.0, True: 0.0}
    frame = pd.DataFrame(X, columns=["a", "b"], index=range(50, 250))
    many = as_river(KernelPegasos(gamma=0.5), classes=[False, True])
    assert many.predict_many(frame).empty
    many.learn_many(frame, pd.Series(y))
    answers = many.predict_many(frame[["b", "a"]].assign(extra=1.0))
    assert answers.index.tolist() == frame.index.tolist()
    np.testing.assert_array_equal(answers, many.learner.predict(X))
    assert many.predict_proba_many(frame).sum(axis=1).eq(1.0).all()
    np.testing.assert_array_equal(
        many.predict_many(frame[["a"]]), many.learner.predict(X * [1.0, 0.0])
    )


def test_a_detector_of_river_watches_our_learner():
    from river import drift

    before, after = stream(1500), stream(1500, seed=1, flip=True)
    X, y = np.vstack([before[0], after[0]]), np.concatenate([before[1], after[1]])
    detector = drift.ADWIN()
    model = PARampClassifier(gamma=0.5, budget=50, drift=detector).fit(X, y)
    assert model.n_drifts_ >= 1
    assert np.mean(model.predict(after[0]) == after[1]) > 0.9
    quiet = PARampClassifier(gamma=0.5, budget=50, drift=drift.ADWIN()).fit(*before)
    assert quiet.n_drifts_ == 0
    # the parameter itself has seen nothing
    assert detector.n_detections == 0
    with pytest.raises(ValueError, match="cannot be kept in a checkpoint"):
        model.save_checkpoint("never.ckpt")
    with pytest.raises(ValueError, match="drift='perhaps'"):
        PARampClassifier(drift="perhaps").fit(*before)

"""The judge of labels fits its witnesses again only when enough labels have changed."""

from __future__ import annotations

import numpy as np
import pytest

from buttress.noise import fit_label_noise
from buttress.noise.core.suspects import judge_labels
from buttress.review.judges import REFIT_SHARE, AuditJudge


@pytest.fixture
def planted():
    """Rows, labels with 15 errors, and the true labels."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    truth = np.where(X[:, 0] > 0, "a", "b").astype(object)
    given = truth.copy()
    flipped = rng.choice(300, 15, replace=False)
    given[flipped] = np.where(truth[flipped] == "a", "b", "a")
    return X, given, truth, flipped


def test_few_new_labels_are_judged_by_the_scores_that_stand(planted):
    X, given, truth, flipped = planted
    judge = AuditJudge(X, ["logistic"])
    before = judge(given)
    scores = judge.suspected.held_out_scores
    few = flipped[: int(REFIT_SHARE * len(given))]
    labels = given.copy()
    labels[few] = truth[few]
    after = judge(labels)
    assert judge.fits == 1
    # what the models say of a row that they have not seen does not depend on its label
    np.testing.assert_array_equal(judge.suspected.held_out_scores, scores)
    expected = judge_labels(
        scores, labels.astype(str), fit_label_noise(scores, labels.astype(str)), fdr=0.1
    )
    np.testing.assert_allclose(after.wrong, expected.probabilities)
    assert (after.wrong[few] < before.wrong[few] - 0.3).all()
    assert not np.array_equal(after.order, before.order)


def test_more_new_labels_bring_new_models(planted):
    X, given, truth, flipped = planted
    judge = AuditJudge(X, ["logistic"])
    judge(given)
    scores = judge.suspected.held_out_scores
    labels = given.copy()
    labels[flipped[:8]] = truth[flipped[:8]]
    found = judge(labels)
    assert judge.fits == 2
    assert not np.array_equal(judge.suspected.held_out_scores, scores)
    np.testing.assert_array_equal(found.wrong, AuditJudge(X, ["logistic"])(labels).wrong)
    # changes are counted from the last fit, not from the last call
    for row in flipped[8:11]:
        labels[row] = truth[row]
        judge(labels)
    assert judge.fits == 2
    labels[flipped[11]] = truth[flipped[11]]
    judge(labels)
    assert judge.fits == 3


def test_a_class_that_is_gone_brings_new_models(planted):
    X, given, _, _ = planted
    labels = given.copy()
    labels[:2] = "c"
    judge = AuditJudge(X, ["logistic"])
    judge.suspected = judge.rows = None
    judge(given)
    judge.fitted_labels = labels.astype(str)  # as if one more class had been there
    judge(given)
    assert judge.fits == 2

"""The path and its cross-validation against one fit per fold and penalty."""

import math
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    StratifiedKFold,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

from buttress import LeakyHockeyStickClassifier, LeakyHockeyStickClassifierCV
from buttress.inspection import PathDisplay
from buttress.model_selection._folds import classification_folds
from buttress.model_selection.leaky_hockey_stick import _choices


@parametrize_with_checks([LeakyHockeyStickClassifierCV(alphas=10, cv=3)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def noisy():
    return make_classification(120, 5, n_informative=3, flip_y=0.15, class_sep=0.7, random_state=0)


def by_hand(X, y, alphas, folds, scorer=None, **parameters):
    """Scores of one fit per fold and penalty."""
    scores = np.empty((len(alphas), len(folds)))
    for i, alpha in enumerate(alphas):
        for j, (train, test) in enumerate(folds):
            model = LeakyHockeyStickClassifier(alpha, **parameters).fit(X[train], y[train])
            scores[i, j] = (
                model.score(X[test], y[test])
                if scorer is None
                else scorer(y[test], model.decision_function(X[test]))
            )
    return scores


def fold_scores(model):
    """Scores of every candidate and fold."""
    results = model.cv_results_
    folds = sum(name.startswith("split") for name in results)
    return np.column_stack([results[f"split{k}_test_score"] for k in range(folds)])


@pytest.mark.parametrize("solver", ["newton", "batched"])
@pytest.mark.parametrize(("kernel", "r"), [("rbf", math.inf), ("linear", math.inf), ("rbf", 2.0)])
def test_scores_are_those_of_single_fits(noisy, solver, kernel, r):
    X, y = noisy
    model = LeakyHockeyStickClassifierCV(
        alphas=15, gamma=0.2, kernel=kernel, r=r, solver=solver, n_jobs=2
    ).fit(X, y)
    folds = list(StratifiedKFold(5).split(X, y))
    expected = by_hand(X, y, model.alphas_, folds, gamma=0.2, kernel=kernel, r=r)
    np.testing.assert_allclose(fold_scores(model), expected, atol=1e-12)
    np.testing.assert_allclose(model.cv_mean_, expected.mean(axis=1))
    np.testing.assert_allclose(model.cv_std_, expected.std(axis=1, ddof=1) / np.sqrt(5))
    assert model.solver_ == solver


@pytest.mark.parametrize("gamma", [0.02, 0.2])
def test_columns_agree_with_newton_where_the_kernel_is_nearly_singular(gamma):
    # few features and label noise: coefficients are huge and cancel at small penalties
    X, y = make_classification(
        260, 3, n_informative=3, n_redundant=0, flip_y=0.2, class_sep=0.5, random_state=1
    )
    options = {"alphas": 25, "gamma": gamma, "n_jobs": 2}
    newton, batched = (
        LeakyHockeyStickClassifierCV(solver=solver, **options).fit(X, y)
        for solver in ("newton", "batched")
    )
    np.testing.assert_array_equal(fold_scores(batched), fold_scores(newton))
    assert batched.duality_gap_ <= 1e-8


@pytest.mark.parametrize("solver", ["newton", "batched"])
def test_the_whole_path_is_optimal(noisy, solver):
    X, y = noisy
    model = LeakyHockeyStickClassifierCV(alphas=40, solver=solver).fit(X, y)
    path = model.path_
    # the path is solved to 1e-6 in the slopes, the batched one in single precision
    allowed = 1e-6 if solver == "newton" else 2e-4
    assert np.all(path.gaps <= allowed * (1 + np.abs(path.objectives)))
    assert path.dual_coefs.shape == (40, 120)
    for index in (0, 20, 39):
        single = LeakyHockeyStickClassifier(model.alphas_[index]).fit(X, y)
        assert path.objectives[index] == pytest.approx(single.objective_, rel=1e-4, abs=1e-6)
        one = path.at(index)
        assert one.alphas.shape == (1,)
        assert one.objective == path.objectives[index]
    assert model.duality_gap_ <= 1e-8 * (1 + abs(model.objective_))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_path_is_solved_when_it_is_asked_for(kernel, classes):
    X, y = make_classification(
        100, 4, n_informative=3, n_redundant=0, n_classes=classes, flip_y=0.1, random_state=3
    )
    rows = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2)) if kernel == "precomputed" else X
    model = LeakyHockeyStickClassifierCV(alphas=20, kernel=kernel, cv=3)
    assert not hasattr(model, "path_")
    model.fit(rows, y)
    stored = pickle.loads(pickle.dumps(model))  # before it was asked for
    for found in (model, stored):
        paths = found.path_ if classes > 2 else [found.path_]
        assert found.path_ is found.path_
        assert len(paths) == (1 if classes == 2 else classes)
        index = int(np.flatnonzero(found.alphas_ == found.alpha_)[0])
        for k, path in enumerate(paths):
            dual = np.zeros(len(y))
            dual[found.support_] = found.dual_coef_[k]
            size = np.abs(dual).max()
            np.testing.assert_allclose(path.dual_coefs[index], dual, atol=1e-4 * size)
    assert not [name for name in vars(stored) if "whole" in name]
    model.fit(rows[:60][:, :60] if kernel == "precomputed" else rows[:60], y[:60])
    again = model.path_ if classes == 2 else model.path_[0]
    assert again.dual_coefs.shape == (20, 60)


def test_rows_that_change_after_the_fit_do_not_change_the_path(noisy):
    X, y = noisy
    rows = X.copy()
    model = LeakyHockeyStickClassifierCV(alphas=20, cv=3).fit(rows, y)
    rows[:] = 0.0
    expected = LeakyHockeyStickClassifierCV(alphas=20, cv=3).fit(X, y).path_
    np.testing.assert_array_equal(model.path_.dual_coefs, expected.dual_coefs)


def test_a_gram_matrix_that_changed_after_the_fit_is_noticed(noisy):
    X, y = noisy
    K = X @ X.T
    model = LeakyHockeyStickClassifierCV(alphas=20, cv=3, kernel="precomputed").fit(K, y)
    K[3, 5] += 0.5
    with pytest.raises(ValueError, match="has changed since"):
        _ = model.path_
    K[3, 5] -= 0.5
    assert model.predict(K).shape == y.shape


def test_the_scaling_tail_is_exact():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    for r, exponent in ((math.inf, 0.5), (2.0, 2 / 3), (1.5, 0.75)):
        model = LeakyHockeyStickClassifierCV(alphas=60, gamma=1.0, r=r, cv=3).fit(X, y)
        assert np.sum(model.path_.n_iter == 0) > 5
        big, small = model.alphas_[-3], model.alphas_[-1]
        first = LeakyHockeyStickClassifier(big, gamma=1.0, r=r).fit(X, y).decision_function(X)
        assert np.all(y * first >= 1)
        last = LeakyHockeyStickClassifier(small, gamma=1.0, r=r).fit(X, y).decision_function(X)
        np.testing.assert_allclose(last, first * (big / small) ** exponent, rtol=1e-6)


def test_refit_equals_a_single_fit_at_the_chosen_penalty(noisy):
    X, y = noisy
    for solver in ("newton", "batched"):
        model = LeakyHockeyStickClassifierCV(alphas=20, solver=solver).fit(X, y)
        single = LeakyHockeyStickClassifier(model.alpha_).fit(X, y)
        np.testing.assert_allclose(
            model.decision_function(X), single.decision_function(X), atol=1e-6
        )


def test_ties_take_the_largest_penalty_and_1se_a_larger_one(noisy):
    X, y = noisy
    best = LeakyHockeyStickClassifierCV(alphas=30).fit(X, y)
    ties = best.alphas_[best.cv_mean_ >= best.cv_mean_.max() - 1e-12]
    assert best.alpha_ == best.alpha_min_ == ties.max()
    rule = LeakyHockeyStickClassifierCV(alphas=30, selection="1se").fit(X, y)
    index = np.flatnonzero(rule.alphas_ == rule.alpha_min_)[0]
    within = rule.cv_mean_ >= rule.cv_mean_[index] - rule.cv_std_[index] - 1e-12
    assert rule.alpha_ == rule.alpha_1se_ == rule.alphas_[within].max()
    assert rule.alpha_1se_ >= rule.alpha_min_


@pytest.mark.parametrize("n_rows", range(7, 40))
def test_a_mean_one_standard_error_away_is_within_it_whatever_the_rounding(n_rows):
    # means 17/3 and 19/3 of n_rows, and a standard error of 2/3 of it
    table = np.array([[5, 5, 6], [5, 6, 6], [5, 7, 7]]) / n_rows
    assert _choices(table, 3) == (2, 1)


def test_grid_over_widths_and_exponents(noisy):
    X, y = noisy
    model = LeakyHockeyStickClassifierCV(
        alphas=8, gammas=[0.01, 0.1, "median"], r=[2.0, math.inf]
    ).fit(X, y)
    scores = fold_scores(model)
    assert scores.shape == (2 * 3 * 8, 5)
    assert model.cv_mean_.max() == pytest.approx(scores.mean(axis=-1).max())
    single = LeakyHockeyStickClassifierCV(alphas=8, gamma=0.1, r=2.0).fit(X, y)
    results = model.cv_results_
    here = (results["param_gamma"] == 0.1) & (results["param_r"] == 2.0)
    np.testing.assert_allclose(scores[here], fold_scores(single))
    np.testing.assert_array_equal(results["param_alpha"][here], model.alphas_)
    assert model.r_ in (2.0, math.inf)


@pytest.mark.parametrize("scoring", ["roc_auc", "balanced_accuracy"])
def test_any_scorer(noisy, scoring):
    X, y = noisy
    model = LeakyHockeyStickClassifierCV(alphas=6, gamma=0.2, scoring=scoring).fit(X, y)
    measure = {
        "roc_auc": roc_auc_score,
        "balanced_accuracy": lambda y, f: balanced_accuracy_score(y, f > 0),
    }[scoring]
    folds = list(StratifiedKFold(5).split(X, y))
    expected = by_hand(X, y, model.alphas_, folds, measure, gamma=0.2)
    np.testing.assert_allclose(fold_scores(model), expected, atol=1e-9)


@pytest.mark.parametrize(
    "cv",
    [
        KFold(3, shuffle=True, random_state=0),
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
        PredefinedSplit(np.arange(120) % 4 - 1),
        [(np.arange(0, 100), np.arange(100, 120))],
    ],
)
def test_any_splitter(noisy, cv):
    X, y = noisy
    model = LeakyHockeyStickClassifierCV(alphas=5, cv=cv).fit(X, y)
    assert fold_scores(model).shape[-1] == len(classification_folds(cv, X, y))
    assert np.isfinite(model.cv_std_).all()


def test_a_fold_without_a_class_is_named():
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = np.array([0] * 10 + [1] * 10)
    with pytest.raises(ValueError, match=r"Fold 0 of cv=KFold.* class 0.*StratifiedKFold"):
        LeakyHockeyStickClassifierCV(cv=KFold(2)).fit(X, y)
    with pytest.raises(ValueError, match="no test rows"):
        classification_folds([(np.arange(20), np.array([], dtype=int))], X, y)
    with pytest.raises(ValueError, match="gives no folds"):
        classification_folds([], X, y)
    groups = np.repeat(np.arange(10), 2)
    folds = classification_folds(GroupKFold(2), X, np.tile([0, 1], 10), groups)
    assert len(folds) == 2


def test_weights_equal_copies_in_path_and_scores(noisy):
    X, y = noisy
    weight = np.random.default_rng(0).integers(1, 4, size=120)
    folds = list(StratifiedKFold(3).split(X, y))
    # the same folds on the copied rows
    start = np.concatenate([[0], np.cumsum(weight)])
    spread = [
        tuple(np.concatenate([np.arange(start[i], start[i + 1]) for i in part]) for part in fold)
        for fold in folds
    ]
    for solver in ("newton", "batched"):
        options = {"alphas": 8, "gamma": 0.2, "solver": solver}
        weighted = LeakyHockeyStickClassifierCV(cv=folds, **options).fit(X, y, weight)
        copied = LeakyHockeyStickClassifierCV(cv=spread, **options).fit(
            np.repeat(X, weight, axis=0), np.repeat(y, weight)
        )
        np.testing.assert_allclose(weighted.cv_mean_, copied.cv_mean_, atol=1e-12)
        np.testing.assert_allclose(
            weighted.decision_function(X), copied.decision_function(X), atol=1e-6
        )


def test_several_classes_share_one_penalty():
    X, y = load_iris(return_X_y=True)
    for solver in ("newton", "batched"):
        model = LeakyHockeyStickClassifierCV(alphas=10, solver=solver).fit(X, y)
        assert len(model.path_) == 3
        assert np.isscalar(model.alpha_)
        assert model.cv_mean_.max() > 0.95
        assert model.implied_proba(X).shape == (150, 3)


def test_precomputed_kernel_is_sliced_on_both_axes(noisy):
    X, y = noisy
    K = np.exp(-0.2 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    ready = LeakyHockeyStickClassifierCV(alphas=8, kernel="precomputed").fit(K, y)
    own = LeakyHockeyStickClassifierCV(alphas=8, gamma=0.2).fit(X, y)
    np.testing.assert_array_equal(ready.cv_mean_, own.cv_mean_)
    np.testing.assert_allclose(ready.decision_function(K), own.decision_function(X), atol=1e-6)


def test_the_gram_matrix_is_computed_once_whatever_the_folds_and_classes():
    X, y = load_iris(return_X_y=True)
    calls = []

    def kernel(x, z):
        calls.append(1)
        return float(np.exp(-((x - z) ** 2).sum()))

    LeakyHockeyStickClassifierCV(alphas=5, kernel=kernel, cv=3).fit(X[::3], y[::3])
    # scikit-learn evaluates a symmetric callable once per pair
    assert len(calls) <= 50 * 51 // 2


def test_the_papers_algorithm_runs_the_path(noisy):
    X, y = noisy
    model = LeakyHockeyStickClassifierCV(
        alphas=np.geomspace(1, 1e-2, 10), solver="mm", tol=1e-14, max_iter=100_000
    ).fit(X, y)
    exact = LeakyHockeyStickClassifierCV(alphas=np.geomspace(1, 1e-2, 10)).fit(X, y)
    np.testing.assert_allclose(model.cv_mean_, exact.cv_mean_, atol=1e-12)
    assert model.solver_ == "mm"


def test_penalties_given_in_any_order_are_used_from_large_to_small(noisy):
    X, y = noisy
    model = LeakyHockeyStickClassifierCV(alphas=[1e-3, 1e-1, 1e-2]).fit(X, y)
    np.testing.assert_allclose(model.alphas_, [1e-1, 1e-2, 1e-3])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alphas": 0}, "alphas=0"),
        ({"alphas": [1.0, -1.0]}, "alphas="),
        ({"alphas": []}, "alphas="),
        ({"r": [2.0, 1.0]}, r"r=1.0 .* \(1, inf\]"),
        ({"selection": "best"}, "selection='best' .*'1se'"),
        ({"gammas": ["wide"]}, "gamma='wide'"),
        ({"scoring": "magic"}, "magic"),
    ],
)
def test_bad_parameters_are_named(noisy, parameters, message):
    X, y = noisy
    with pytest.raises(ValueError, match=message):
        LeakyHockeyStickClassifierCV(**parameters).fit(X, y)


def test_display_shows_the_curve_and_both_choices(noisy):
    X, y = noisy
    model = LeakyHockeyStickClassifierCV(alphas=12).fit(X, y)
    display = PathDisplay.from_estimator(model, color="k")
    np.testing.assert_array_equal(display.line_.get_ydata(), model.cv_mean_)
    marks = sorted(line.get_xdata()[0] for line in display.ax_.lines[1:])
    assert marks == sorted([model.alpha_min_, model.alpha_1se_])
    again = display.plot(ax=display.ax_)
    assert again.ax_ is display.ax_


@pytest.mark.smoke
def test_chooses_and_predicts(noisy):
    X, y = noisy
    model = LeakyHockeyStickClassifierCV(alphas=10, cv=3).fit(X, y)
    assert model.score(X, y) > 0.7
    assert model.alpha_ in model.alphas_

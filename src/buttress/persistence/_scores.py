"""Decision values and probabilities of fitted models, in the words of a `Builder`."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress.classifiers.chow import ChowRejector
from buttress.kernels import make_kernel
from buttress.noise import ForestWitness, KernelWitness, LabelNoise, NoiseAwareClassifier
from buttress.noise.core.crossfit import SMALLEST_PROBABILITY
from buttress.persistence._builder import Builder, dense
from buttress.persistence._trees import Trees, boosted_trees, forest_trees

# scikit-learn's classifiers whose score is linear, and those that vote by trees.
_LINEAR = ("LogisticRegression", "LinearSVC", "RidgeClassifier", "SGDClassifier", "Perceptron")
_FORESTS = ("RandomForestClassifier", "ExtraTreesClassifier")


def chosen_model(model: Any) -> Any:
    """The classifier that a search has chosen."""
    while not hasattr(model, "intercept_") and hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    return model


def scores(builder: Builder, model: Any, rows: str) -> str:
    """Decision values, one column for two classes, else one per class."""
    model = chosen_model(model)
    if isinstance(model, KernelWitness):
        return _kernel_witness(builder, model, rows)
    if isinstance(model, ForestWitness):
        return builder.trees(rows, _witness_trees(model))
    if hasattr(model, "steps"):
        return scores(builder, model.steps[-1][1], after_steps(builder, steps_before(model), rows))
    if isinstance(model, (NoiseAwareClassifier, ChowRejector)):
        return margins(builder, probabilities(builder, model, rows), len(model.classes_))
    if _is_ours(model):
        value = _machine(builder, model, rows)
        rounding = float(getattr(model, "_rounding", 0.0))
        return builder.flushed(value, rounding) if rounding > 0 else value
    name = type(model).__name__
    if not hasattr(model, "classes_"):
        raise ValueError(f"{name} cannot be exported: it is not fitted.")
    if name in _LINEAR and hasattr(model, "coef_"):
        return builder.affine(rows, np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_))
    if name == "SVC" and len(model.classes_) == 2 and isinstance(model.kernel, str):
        return _support_vector_machine(builder, model, rows)
    if name == "HistGradientBoostingClassifier":
        guess = np.ravel(model._baseline_prediction)
        return builder.affine(builder.trees(rows, boosted_trees(model)), np.eye(len(guess)), guess)
    if hasattr(model, "decision_function"):
        return builder.foreign(model, rows, "decision_function")
    raise ValueError(f"{name} cannot be exported: it has no linear or kernel decision.")


def _is_ours(model: Any) -> bool:
    return type(model).__module__.startswith("buttress.")


def _machine(builder: Builder, machine: Any, rows: str) -> str:
    """A linear or kernel decision of this library."""
    name = type(machine).__name__
    if not hasattr(machine, "intercept_"):
        known = hasattr(machine, "classes_")
        reason = "has no linear or kernel decision" if known else "is not fitted"
        raise ValueError(f"{name} cannot be exported: it {reason}.")
    intercept = np.atleast_1d(np.asarray(machine.intercept_, dtype=np.float64))
    if hasattr(machine, "coef_"):
        return builder.affine(rows, np.atleast_2d(machine.coef_), intercept)
    if hasattr(machine, "random_weights_"):
        turned = builder.affine(rows, machine.random_weights_.T, machine.random_phase_)
        scale = np.sqrt(2.0 / machine.random_weights_.shape[1])
        coefficients = scale * np.atleast_2d(np.asarray(machine.feature_coef_, dtype=float))
        return builder.affine(builder.function("cos", turned), coefficients, intercept)
    if not hasattr(machine, "kernel_") or not hasattr(machine, "dual_coef_"):
        raise ValueError(f"{name} cannot be exported: it has no linear or kernel decision.")
    dual = np.atleast_2d(np.asarray(machine.dual_coef_, dtype=np.float64))
    if dual.shape[1] == 0:
        # no support vectors: the decision is the intercept, for every row
        return builder.affine(rows, np.zeros((len(dual), machine.n_features_in_)), intercept)
    if machine.kernel_.name == "precomputed":
        similar = builder.columns(rows, np.asarray(machine.support_))
    else:
        similar = builder.kernel(machine.kernel_, rows, dense(machine.support_vectors_))
    return builder.affine(similar, dual, intercept)


def _support_vector_machine(builder: Builder, machine: Any, rows: str) -> str:
    if machine.kernel == "precomputed":
        raise ValueError("SVC(kernel='precomputed') cannot be exported inside another model.")
    kernel = make_kernel(
        machine.kernel, gamma=machine._gamma, degree=machine.degree, coef0=machine.coef0
    )
    similar = builder.kernel(kernel, rows, dense(machine.support_vectors_))
    return builder.affine(similar, dense(machine.dual_coef_), machine.intercept_)


def _kernel_witness(builder: Builder, witness: KernelWitness, rows: str) -> str:
    rows = scaled_rows(builder, rows, witness.scaler_)
    centers = dense(witness.centers_)
    similar = [
        builder.kernel(make_kernel("rbf", gamma=float(gamma)), rows, centers)
        for gamma in witness.gammas_
    ]
    dual = np.concatenate(list(witness.duals_), axis=0).T
    return builder.affine(builder.joined(similar), dual, witness.offset_)


def _witness_trees(witness: ForestWitness) -> Trees:
    """All trees of all forests, what they are divided by put into their leaves."""
    two = len(witness.classes_) == 2
    forests = []
    for forest, scale in zip(witness.forests_, witness.scales_.tolist(), strict=True):
        trees = forest_trees(forest)
        values = trees.values[:, 1:] - 0.5 if two else trees.values
        forests.append(trees.with_values(values / (scale * len(witness.forests_) * trees.n_trees)))
    return Trees.together(forests)


def steps_before(pipeline: Any) -> list[Any]:
    """The fitted steps of a pipeline but the last."""
    return [step for _, step in pipeline.steps[:-1] if step not in (None, "passthrough")]


def after_steps(builder: Builder, steps: list[Any], rows: str) -> str:
    """The rows after some fitted steps."""
    for step in steps:
        if type(step).__name__ == "StandardScaler":
            rows = scaled_rows(builder, rows, step)
        else:
            rows = builder.foreign(step, rows, "transform")
    return rows


def scaled_rows(builder: Builder, rows: str, scaler: Any) -> str:
    """What a fitted `StandardScaler` makes of the rows."""
    width = scaler.n_features_in_
    centre = scaler.mean_ if scaler.mean_ is not None and scaler.with_mean else np.zeros(width)
    return builder.scaled(
        rows, centre, scaler.scale_ if scaler.scale_ is not None else np.ones(width)
    )


# -- probabilities ---------------------------------------------------------------------------------


def probabilities(builder: Builder, model: Any, rows: str) -> str:
    """`predict_proba`, one column per class."""
    model = chosen_model(model)
    if isinstance(model, NoiseAwareClassifier):
        if not hasattr(model, "noise_"):
            raise ValueError("NoiseAwareClassifier cannot be exported: it is not fitted.")
        witnesses = [_witness(builder, witness, rows) for witness in model.estimators_]
        return clean_probabilities(builder, model.belief_, witnesses)
    if isinstance(model, ChowRejector):
        return probabilities(builder, model.estimator_, rows)
    if hasattr(model, "steps"):
        return probabilities(
            builder, model.steps[-1][1], after_steps(builder, steps_before(model), rows)
        )
    name = type(model).__name__
    if _is_ours(model) and hasattr(model, "noise_"):
        return clean_probabilities(builder, model.noise_, [scores(builder, model, rows)])
    if name == "CalibratedClassifierCV":
        return _calibrated(builder, model, rows)
    if name == "FrozenEstimator":
        return probabilities(builder, model.estimator, rows)
    if name in ("LogisticRegression", "HistGradientBoostingClassifier"):
        return _both(builder, scores(builder, model, rows), len(model.classes_))
    if name in _FORESTS:
        trees = forest_trees(model)
        return builder.trees(rows, trees.with_values(trees.values / trees.n_trees))
    if not _is_ours(model):
        return builder.foreign(model, rows, "predict_proba")
    raise ValueError(f"{name} cannot be exported with probabilities: fit it with probability=True.")


def _witness(builder: Builder, model: Any, rows: str) -> str:
    """Scores as the noise model takes them: decision values, else log-odds."""
    if hasattr(model, "decision_function"):
        return scores(builder, model, rows)
    proba = probabilities(builder, model, rows)
    low = SMALLEST_PROBABILITY
    logs = builder.function("log", builder.clipped(proba, low, 1.0 - low))
    if len(model.classes_) > 2:
        return logs
    return builder.affine(logs, np.array([[-1.0, 1.0]]), np.zeros(1))


def clean_probabilities(builder: Builder, noise: LabelNoise, values: list[str]) -> str:
    """Mean over draws of softmax(slopes x standardised scores + intercepts) x overlap."""
    k, n_witnesses = len(noise.classes), len(values)
    columns = 1 if k == 2 else k
    centre, scale = np.repeat(noise.centre, columns), np.repeat(noise.scale, columns)
    table = builder.scaled(builder.joined(values), centre, scale)
    draws = noise.coefficient_draws
    m = len(draws)
    slopes = draws[:, :n_witnesses]
    overlap = noise.overlap_draws
    overlap = np.repeat(np.eye(k)[None], m, axis=0) if overlap is None else overlap
    if k == 2:
        curve = builder.affine(table, slopes, draws[:, n_witnesses])
        share = (overlap[:, 1, 1] - overlap[:, 0, 1])[None] / m
        positive = builder.affine(
            builder.function("sigmoid", curve), share, overlap[:, 0, 1].mean(keepdims=True)
        )
        return _with_complement(builder, positive)
    # column (m, j) is slope_m . (z_j - z_0) + intercept_mj; class 0 has zeros
    weights = np.zeros((m, k, n_witnesses, k))
    offsets = np.zeros((m, k))
    for j in range(1, k):
        weights[:, j, :, j] = slopes
        weights[:, j, :, 0] = -slopes
        offsets[:, j] = draws[:, n_witnesses + j - 1]
    curve = builder.affine(table, weights.reshape(m * k, n_witnesses * k), offsets.ravel())
    mean = overlap.transpose(2, 0, 1).reshape(k, m * k) / m
    return builder.affine(builder.softmax(curve, k), mean, np.zeros(k))


def _calibrated(builder: Builder, model: Any, rows: str) -> str:
    """Sigmoid calibration: the mean over the ensemble of rescaled decision values."""
    k = len(model.classes_)
    members = []
    for member in model.calibrated_classifiers_:
        if member.method != "sigmoid":
            raise ValueError(
                f"calibration={member.method!r} cannot be exported: only 'sigmoid' can."
            )
        values = (
            scores(builder, member.estimator, rows)
            if hasattr(member.estimator, "decision_function")
            else probabilities(builder, member.estimator, rows)
        )
        if k == 2 and not hasattr(member.estimator, "decision_function"):
            values = builder.columns(values, np.array([1]))
        slope = np.array([float(c.a_) for c in member.calibrators])
        offset = np.array([float(c.b_) for c in member.calibrators])
        curve = builder.function("sigmoid", builder.affine(values, -np.diag(slope), -offset))
        # softmax of logarithms: shares of the sum
        members.append(
            _with_complement(builder, curve)
            if k == 2
            else builder.softmax(builder.function("log", curve), k)
        )
    if len(members) == 1:
        return members[0]
    mean = np.tile(np.eye(k), len(members)) / len(members)
    return builder.affine(builder.joined(members), mean, np.zeros(k))


def _both(builder: Builder, values: str, n_classes: int) -> str:
    """Probabilities of a logistic model."""
    if n_classes > 2:
        return builder.softmax(values, n_classes)
    return _with_complement(builder, builder.function("sigmoid", values))


def _with_complement(builder: Builder, positive: str) -> str:
    """Both probabilities of two classes from that of the second."""
    return builder.affine(positive, np.array([[-1.0], [1.0]]), np.array([1.0, 0.0]))


def margins(builder: Builder, proba: str, n_classes: int) -> str:
    """``P(second) - P(first)``, or ``2 P - 1`` of every class."""
    if n_classes == 2:
        return builder.affine(proba, np.array([[-1.0, 1.0]]), np.zeros(1))
    return builder.affine(proba, 2.0 * np.eye(n_classes), -np.ones(n_classes))

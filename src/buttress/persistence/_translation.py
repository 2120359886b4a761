"""Fitted models as a few operations on rows, in the words of a `Builder`.

ONNX graphs and JSON programs are two builders; what a machine computes is said here once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.classifiers.chow import ChowRejector
from buttress.classifiers.costs import has_probability_draws, refusing_can_pay
from buttress.classifiers.group_bands import GroupwiseRejector
from buttress.classifiers.two_stage import TwoStageRejector
from buttress.noise import NoiseAwareClassifier
from buttress.persistence._builder import AnswerNames, Builder
from buttress.persistence._scores import (
    chosen_model,
    clean_probabilities,
    margins,
    probabilities,
    scores,
)


def translate(builder: Builder, model: Any, rows: str) -> AnswerNames:
    """Add everything that `model` computes from `rows`.

    Raises
    ------
    ValueError
        When the model or its kernel has no translation; it is named.
    """
    model = chosen_model(model)
    if isinstance(model, NoiseAwareClassifier):
        return _by_probabilities(builder, model, probabilities(builder, model, rows), model.d)
    if isinstance(model, ChowRejector):
        return _chow(builder, model, rows)
    if isinstance(model, TwoStageRejector):
        return _two_stage(builder, model, rows)
    if isinstance(model, GroupwiseRejector):
        return _groupwise(builder, model, rows)
    decision = scores(builder, model, rows)
    proba = None
    if hasattr(model, "noise_") and getattr(model, "probability", False):
        proba = clean_probabilities(builder, model.noise_, [decision])
    classes = np.asarray(model.classes_)
    answers = AnswerNames(classes, decision, _ranked(builder, decision, classes), proba)
    if not hasattr(model, "reject"):
        return answers
    return _with_band(builder, model, answers)


def _ranked(builder: Builder, decision: str, classes: NDArray[Any]) -> str:
    """Two columns for two classes, so that equal ones mean the first class."""
    if len(classes) > 2:
        return decision
    return builder.affine(decision, np.array([[-1.0], [1.0]]), np.zeros(2))


def _with_band(builder: Builder, model: Any, answers: AnswerNames) -> AnswerNames:
    """The rule of `RejectMixin`."""
    bands = np.asarray(model.thresholds_, dtype=np.float64)
    extra: dict[str, Any] = {"may_refuse": True}
    if (bands[..., 0] < bands[..., 1]).any():
        if (model.target_coverage, model.target_risk) != (None, None):
            extra |= {"confidence": _gap(builder, answers), "width": float(bands[1])}
        elif len(answers.classes) == 2:
            extra["band"] = (float(bands[0]), float(bands[1]))
        else:
            extra["accepted"] = bands[:, 1]
    return replace(answers, **extra)


def _gap(builder: Builder, answers: AnswerNames) -> str:
    if len(answers.classes) == 2:
        return builder.function("abs", answers.decision)
    return builder.gap(answers.decision)


def _by_probabilities(builder: Builder, model: Any, proba: str, d: float | None) -> AnswerNames:
    """Answers by the largest probability, refusals by Chow's rule; none without a cost of them."""
    classes = np.asarray(model.classes_)
    decision = margins(builder, proba, len(classes))
    answers = AnswerNames(classes, decision, proba, proba, may_refuse=True)
    if d is None:
        return answers
    return replace(
        answers, confidence=builder.largest(proba), width=1.0 - float(d), strict=d >= 0.5
    )


def _chow(builder: Builder, model: ChowRejector, rows: str) -> AnswerNames:
    if not hasattr(model, "estimator_"):
        raise ValueError("ChowRejector cannot be exported: it is not fitted.")
    if model.novelty is not None:
        raise ValueError("ChowRejector(novelty=...) cannot be exported: it keeps its rows.")
    proba = probabilities(builder, model, rows)
    answers = _by_probabilities(builder, model, proba, model.d)
    if model.costs is not None:
        if has_probability_draws(model.estimator_):
            raise ValueError(
                "ChowRejector(costs=...) around a NoiseAwareClassifier cannot be exported: its "
                "refusals ask every draw of the noise model. Export estimator_ and take the "
                "cheapest decision of its probabilities."
            )
        costs = np.asarray(model.costs, dtype=np.float64)
        k = len(answers.classes)
        gains = builder.affine(proba, -costs[:, :-1].T, np.zeros(k))
        # refusing costs no more than the cheapest answer: the gain is at most minus its cost
        against = builder.affine(proba, -costs[:, -1:].T, np.zeros(1))
        both = builder.joined([builder.largest(gains), against])
        lead = builder.affine(both, np.array([[1.0, -1.0]]), np.zeros(1))
        pays = refusing_can_pay(costs)
        return replace(
            answers, ranked=gains, confidence=lead if pays else None, width=0.0, strict=False
        )
    if (model.target_coverage, model.target_risk) != (None, None):
        width = float(model.thresholds_[1])
        return replace(
            answers,
            confidence=_gap(builder, answers) if width > 0 else None,
            width=width,
            strict=False,
        )
    return answers


def _two_stage(builder: Builder, model: TwoStageRejector, rows: str) -> AnswerNames:
    if not hasattr(model, "estimator_"):
        raise ValueError("TwoStageRejector cannot be exported: it is not fitted.")
    classes = np.asarray(model.classes_)
    if hasattr(model.estimator_, "decision_function"):
        first = translate(builder, model.estimator_, rows)
        ranked, sure = first.ranked, _gap(builder, first)
    else:
        ranked = probabilities(builder, model.estimator_, rows)
        sure = builder.largest(ranked)
    if model.rejector_ is None:
        zeros = np.zeros((1, model.n_features_in_))
        score = builder.affine(rows, zeros, np.array([model._everywhere]))
    else:
        features = builder.scaled(rows, model._mean, model._spread)
        if model.use_confidence:
            mean, spread = model._confidence
            weight = np.sqrt(model.n_features_in_)
            sure = builder.scaled(sure, np.array([mean]), np.array([spread / weight]))
            features = builder.joined([features, sure])
        score = scores(builder, model.rejector_, features)
    sure = builder.function("sigmoid", builder.clipped(score, -500.0, 500.0))
    signs = builder.affine(
        builder.chosen(ranked), 2.0 * np.eye(len(classes)), -np.ones(len(classes))
    )
    if len(classes) == 2:
        signs = builder.columns(signs, np.array([1]))
    decision = builder.times(signs, sure)
    answers = AnswerNames(classes, decision, ranked, may_refuse=True)
    width = float(model.thresholds_[1])
    if width <= 0:
        return answers
    return replace(answers, confidence=_gap(builder, answers), width=width)


def _groupwise(builder: Builder, model: GroupwiseRejector, rows: str) -> AnswerNames:
    if not hasattr(model, "band_widths_"):
        raise ValueError("GroupwiseRejector cannot be exported: it is not fitted.")
    classes = np.asarray(model.classes_)
    if model.by == "group" and model.groups_.tolist() != ["all"]:
        raise ValueError(
            "GroupwiseRejector with groups cannot be exported: a graph takes rows only. Use "
            "by='class', or export estimator_ and compare with band_widths_."
        )
    if hasattr(model.estimator_, "decision_function"):
        answers = translate(builder, model.estimator_, rows)
        sure = _gap(builder, answers)
    else:
        proba = probabilities(builder, model.estimator_, rows)
        answers = _by_probabilities(builder, model, proba, None)
        sure = builder.largest(proba)
    names = classes.tolist() if model.by == "class" else ["all"] * len(classes)
    widths = np.array([model.band_widths_.get(name, np.inf) for name in names])
    # a width of zero refuses nothing: no confidence is below it
    widths = np.where(widths > 0, widths, -1.0)
    return replace(
        answers,
        confidence=sure,
        width=widths,
        band=None,
        accepted=None,
        strict=False,
        may_refuse=True,
    )

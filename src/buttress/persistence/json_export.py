"""Models as JSON programs, to be followed by a few lines of any language."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from buttress._files import replacing
from buttress._version import __version__
from buttress.persistence._builder import AnswerNames
from buttress.persistence._inputs import add_inputs, unwrapped
from buttress.persistence._json_program import Program
from buttress.persistence._translation import translate

FORMAT = 1


def to_json(model: Any, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Write a fitted classifier as a list of steps on the numbers of one row.

    Parameters
    ----------
    model : fitted estimator
        As in `to_onnx`, but all parts must be translated by this library: its own classifiers and
        scikit-learn's `StandardScaler`, linear models, forests, histogram boosting and two-class
        support vector machines.
    path : path-like, optional
        Where to write the program.

    Returns
    -------
    dict
        "columns" (names of the inputs, when known), "classes", "steps", and "answer": which
        values are the decision, the ranking of the classes, the probabilities and the confidence,
        up to which confidence rows are refused, and whether the model may refuse at all. Value 0
        is the row, value k the result of step k. The documentation has a reader of sixty lines.

    Raises
    ------
    ValueError
        When the model, its kernel or a part has no translation; it is named.

    Examples
    --------
    >>> from buttress import LeakyHockeyStickClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> program = to_json(LeakyHockeyStickClassifier(kernel="linear").fit(X, y))
    >>> [step["op"] for step in program["steps"]]
    ['affine', 'affine']
    """
    steps, classifier = unwrapped(model)
    program = Program()
    answers = translate(program, classifier, add_inputs(program, steps, classifier))
    first = steps[0] if steps else classifier
    names = getattr(first, "feature_names_in_", None)
    written = {
        "buttress": __version__,
        "format": FORMAT,
        "columns": None if names is None else [str(name) for name in names],
        "classes": [_label(label) for label in np.asarray(answers.classes).tolist()],
        "answer": _answer(program, answers),
        "steps": program.steps,
    }
    if path is not None:
        with replacing(path) as file:
            file.write(json.dumps(written, allow_nan=False).encode())
    return written


def _answer(program: Program, answers: AnswerNames) -> dict[str, Any]:
    """The values that matter. Rows are refused up to a confidence, one for every class."""
    k = len(answers.classes)
    ranked, confidence, limit = answers.ranked, answers.confidence, answers.width
    if answers.accepted is not None:
        # of the columns above their bands the only one is the answer
        ranked = program.affine(answers.decision, np.eye(k), -answers.accepted)
        confidence, limit = program.lone(ranked), 0.0
    elif answers.band is not None:
        low, high = answers.band
        middle = program.affine(answers.decision, np.eye(1), np.array([-0.5 * (low + high)]))
        confidence, limit = program.function("abs", middle), 0.5 * (high - low)
    may_refuse = answers.may_refuse or confidence is not None
    if confidence is None:
        confidence, limit = ranked, -np.inf
    limits = np.broadcast_to(np.asarray(limit, dtype=np.float64), k)
    if answers.strict:
        limits = np.nextafter(limits, -np.inf)
    probabilities = answers.probabilities
    return {
        "decision": int(answers.decision),
        "ranked": int(ranked),
        "probabilities": None if probabilities is None else int(probabilities),
        "confidence": int(confidence),
        # JSON has no infinity: the largest number serves as well
        "refused_up_to": np.nan_to_num(limits).tolist(),
        "may_refuse": may_refuse,
    }


def _label(label: Any) -> Any:
    return label if isinstance(label, (str, int, float, bool)) else str(label)

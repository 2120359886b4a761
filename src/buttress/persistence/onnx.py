"""Models as ONNX graphs: labels, decision values, true probabilities, and the reject mask."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from buttress._files import replacing
from buttress._version import __version__
from buttress.persistence._builder import AnswerNames
from buttress.persistence._graph import Graph, import_onnx
from buttress.persistence._inputs import add_inputs, unwrapped
from buttress.persistence._translation import translate


def to_onnx(
    model: Any, path: str | os.PathLike[str] | None = None, *, dtype: str = "float32"
) -> Any:
    """Convert a fitted classifier to ONNX.

    Needs onnx (extra ``export``). Translated here, in double precision: all classifiers of this
    library, `StandardScaler`, linear models, forests, histogram boosting and support vector
    machines of scikit-learn; its other steps and classifiers are left to skl2onnx, most of whose
    operators compute in single precision.

    Parameters
    ----------
    model : fitted estimator
        A classifier of this library, with its witnesses or inner classifier of scikit-learn; a
        `TableClassifier`; or a scikit-learn pipeline or search that ends in such a classifier.
    path : path-like, optional
        Where to write the graph.
    dtype : {"float32", "float64"}, default="float32"
        Type of the numeric inputs and of the decision values. Inside the graph everything is
        computed in float64, so that large expansions lose no digits.

    Returns
    -------
    onnx.ModelProto
        Inputs: the matrix "X"; with a precomputed kernel the similarities to the training
        rows; for a table with text columns one input of shape (n, 1) per column. Outputs:
        "label", "decision" (shape as in `decision_function`), for a classifier with
        probabilities "probabilities", and for one that may abstain "reject".

    Raises
    ------
    ValueError
        When the model, its kernel or a step of its pipeline has no translation; it is named.

    Examples
    --------
    >>> from buttress import DoubleHingeClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> graph = to_onnx(DoubleHingeClassifier().fit(X, y))
    >>> [output.name for output in graph.graph.output]
    ['label', 'decision', 'reject']
    """
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype={dtype!r} is not accepted: expected 'float32' or 'float64'.")
    onnx = import_onnx()
    steps, classifier = unwrapped(model)
    graph = Graph(onnx, dtype)
    answers = translate(graph, classifier, add_inputs(graph, steps, classifier))
    _add_outputs(graph, answers)
    proto = graph.model("buttress", __version__)
    onnx.checker.check_model(proto)
    if path is not None:
        with replacing(path) as file:
            file.write(proto.SerializeToString())
    return proto


def _add_outputs(graph: Graph, answers: AnswerNames) -> None:
    flat = graph.constant(np.array([-1]))
    two = len(answers.classes) == 2
    index = graph.op("ArgMax", answers.ranked, axis=1, keepdims=0)
    refused = None
    if answers.accepted is not None:
        # the accepted class when there is exactly one
        above = graph.op("Greater", answers.decision, graph.constant(answers.accepted))
        above = graph.to_int(above)
        count = graph.op("ReduceSum", above, graph.constant(np.array([1])), keepdims=0)
        single = graph.op("Equal", count, graph.constant(np.array(1)))
        only = graph.op("ArgMax", above, axis=1, keepdims=0)
        index = graph.op("Where", single, only, index)
        refused = graph.op("Not", single)
    elif answers.band is not None:
        low, high = (graph.constant(edge) for edge in answers.band)
        refused = graph.op(
            "And",
            graph.op("GreaterOrEqual", answers.decision, low),
            graph.op("LessOrEqual", answers.decision, high),
        )
    elif answers.confidence is not None:
        width = graph.constant(np.asarray(answers.width, dtype=np.float64))
        if np.ndim(answers.width):
            width = graph.op("Reshape", graph.op("Gather", width, index, axis=0), flat)
            sure = graph.op("Reshape", answers.confidence, flat)
        else:
            sure = answers.confidence
        refused = graph.op("Less" if answers.strict else "LessOrEqual", sure, width)
    elif answers.may_refuse:
        # nothing is ever refused: false for every row
        refused = graph.op("Less", index, graph.constant(np.array(0)))
    classes = np.asarray(answers.classes)
    graph.output("label", graph.op("Gather", graph.labels(classes), index, axis=0))
    decision = graph.op("Reshape", answers.decision, flat) if two else answers.decision
    graph.output("decision", graph.to_float(decision))
    if answers.probabilities is not None:
        graph.output("probabilities", graph.to_float(answers.probabilities))
    if refused is not None:
        graph.output("reject", graph.op("Reshape", refused, flat))

"""Models as ONNX graphs: decision values, labels, and the reject mask."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from buttress._files import replacing
from buttress._version import __version__
from buttress.persistence._graph import OPSETS, Graph, import_onnx
from buttress.tables import TableClassifier


def to_onnx(
    model: Any, path: str | os.PathLike[str] | None = None, *, dtype: str = "float32"
) -> Any:
    """Convert a fitted classifier to ONNX.

    Needs onnx (extra ``export``); scikit-learn steps other than `StandardScaler` before the
    classifier need skl2onnx too.

    Parameters
    ----------
    model : fitted estimator
        A classifier of this library with a linear or kernel decision, a `TableClassifier`, or
        a scikit-learn pipeline or search that ends in such a classifier.
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
        "label", "decision" (shape as in `decision_function`) and, for a classifier that may
        abstain, "reject".

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
    steps, classifier = _unwrapped(model)
    foreign = [step for step in steps if not _is_native(step)]
    graph = Graph(onnx, dtype)
    if foreign:
        rows = graph.matrix_input("encoded", None)
        _add_classifier(graph, classifier, rows)
        proto = _behind_sklearn(onnx, steps, graph, dtype)
    else:
        rows = _add_inputs(graph, steps, classifier)
        _add_classifier(graph, classifier, rows)
        proto = graph.model("buttress", __version__)
    onnx.checker.check_model(proto)
    if path is not None:
        with replacing(path) as file:
            file.write(proto.SerializeToString())
    return proto


def _unwrapped(model: Any) -> tuple[list[Any], Any]:
    """The fitted steps before the classifier, and the classifier."""
    if isinstance(model, TableClassifier):
        steps, classifier = _unwrapped(model.estimator_)
        return [model.encoder_, *steps], classifier
    if hasattr(model, "steps"):
        first = [step for _, step in model.steps[:-1] if step not in (None, "passthrough")]
        steps, classifier = _unwrapped(model.steps[-1][1])
        return [*first, *steps], classifier
    if not hasattr(model, "intercept_") and hasattr(model, "best_estimator_"):
        return _unwrapped(model.best_estimator_)
    return [], model


def _is_native(step: Any) -> bool:
    return type(step).__name__ in ("TableEncoder", "StandardScaler")


# -- before the classifier -----------------------------------------------------------------


def _add_inputs(graph: Graph, steps: list[Any], classifier: Any) -> str:
    if steps and type(steps[0]).__name__ == "TableEncoder":
        rows, steps = _encoded(graph, steps[0]), steps[1:]
    else:
        source = steps[0] if steps else classifier
        if not hasattr(source, "n_features_in_"):
            raise ValueError(f"{type(source).__name__} is not fitted.")
        rows = graph.matrix_input("X", source.n_features_in_)
    for step in steps:
        rows = _scaled(graph, rows, step)
    return rows


def _scaled(graph: Graph, rows: str, scaler: Any) -> str:
    if scaler.mean_ is not None and scaler.with_mean:
        rows = graph.op("Sub", rows, graph.constant(scaler.mean_))
    if scaler.scale_ is not None:
        rows = graph.op("Div", rows, graph.constant(scaler.scale_))
    return rows


def _encoded(graph: Graph, encoder: Any) -> str:
    """A table's columns as the encoder makes them."""
    if encoder.derived_columns():
        raise ValueError(
            f"columns of dates and free text ({', '.join(encoder.derived_columns())}) have no ONNX "
            "translation: encode them before the model, or leave them out"
        )
    if not encoder.categories_:
        rows = graph.matrix_input("X", encoder.n_features_in_)
        if encoder.missing == "impute":
            rows = _imputed(graph, rows, [encoder.fill_[name] for name in encoder.numeric_])
        return _scaled(graph, rows, encoder.scaler_) if encoder.scaler_ is not None else rows
    columns = {
        name: graph.text_input(name) if name in encoder.categories_ else graph.matrix_input(name, 1)
        for name in encoder.feature_names_in_
    }
    parts = []
    if encoder.numeric_:
        numbers = [columns[name] for name in encoder.numeric_]
        rows = graph.op("Concat", *numbers, axis=1) if len(numbers) > 1 else numbers[0]
        if encoder.missing == "impute":
            rows = _imputed(graph, rows, [encoder.fill_[name] for name in encoder.numeric_])
        parts.append(_scaled(graph, rows, encoder.scaler_) if encoder.scaler_ else rows)
    for name, categories in encoder.categories_.items():
        # Unknown categories become all zeros; a graph has no way to refuse them.
        codes = graph.ml_op(
            "LabelEncoder",
            columns[name],
            keys_strings=categories,
            values_int64s=list(range(len(categories))),
            default_int64=-1,
        )
        hot = graph.op("Equal", codes, graph.constant(np.arange(len(categories))[None, :]))
        parts.append(graph.to_double(hot))
    return graph.op("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]


def _imputed(graph: Graph, rows: str, fill: list[float]) -> str:
    return graph.op("Where", graph.op("IsNaN", rows), graph.constant(np.array(fill)), rows)


def _behind_sklearn(onnx: Any, steps: list[Any], graph: Graph, dtype: str) -> Any:
    """The graph with scikit-learn's steps, converted by skl2onnx, in front of it."""
    try:
        from skl2onnx import convert_sklearn
        from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
        from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator
    except ImportError:
        raise ImportError("pipelines need skl2onnx: pip install 'buttress[export]'") from None
    from sklearn.pipeline import make_pipeline

    kind = FloatTensorType if dtype == "float32" else DoubleTensorType
    before = make_pipeline(*steps)
    width = steps[0].n_features_in_
    try:
        front = convert_sklearn(
            before, initial_types=[("X", kind([None, width]))], target_opset=OPSETS
        )
    except (MissingConverter, MissingShapeCalculator, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"a step of the pipeline has no ONNX translation: {reason}") from None
    back = graph.model("buttress", __version__)
    front.ir_version = back.ir_version
    # skl2onnx states the lowest versions that its operators need; ours include them.
    del front.opset_import[:]
    front.opset_import.extend(back.opset_import)
    link = [(front.graph.output[0].name, "encoded")]
    # Both parts name their nodes as they like; a prefix keeps them apart.
    front = onnx.compose.add_prefix(
        front, "pre_", rename_inputs=False, rename_outputs=False, inplace=True
    )
    return onnx.compose.merge_models(front, back, io_map=link)


# -- the classifier ------------------------------------------------------------------------


def _add_classifier(graph: Graph, classifier: Any, rows: str) -> None:
    name = type(classifier).__name__
    if not hasattr(classifier, "intercept_"):
        known = hasattr(classifier, "classes_") or not hasattr(classifier, "fit")
        reason = "has no linear or kernel decision" if known else "is not fitted"
        raise ValueError(f"{name} cannot be exported: it {reason}.")
    scores = _scores(graph, classifier, rows)
    rounding = getattr(classifier, "_rounding", 0.0)
    if rounding > 0:
        small = graph.op("LessOrEqual", graph.op("Abs", scores), graph.constant(float(rounding)))
        scores = graph.op("Where", small, graph.constant(0.0), scores)
    n_problems = len(np.atleast_1d(classifier.intercept_))
    if n_problems == 1:
        flat = graph.op("Reshape", scores, graph.constant(np.array([-1])))
        index = graph.to_int(graph.op("Greater", flat, graph.constant(0.0)))
    else:
        flat = scores
        index = graph.op("ArgMax", scores, axis=1, keepdims=0)
    reject = None
    if hasattr(classifier, "reject"):
        reject, index = _rejection(graph, classifier, flat, index)
    classes = np.asarray(classifier.classes_)
    graph.output("label", graph.op("Gather", graph.labels(classes), index, axis=0))
    graph.output("decision", graph.to_float(flat))
    if reject is not None:
        graph.output("reject", reject)


def _scores(graph: Graph, classifier: Any, rows: str) -> str:
    intercept = graph.constant(np.atleast_1d(classifier.intercept_))
    if hasattr(classifier, "coef_"):
        product = graph.op("MatMul", rows, graph.constant(np.atleast_2d(classifier.coef_).T))
        return graph.op("Add", product, intercept)
    if hasattr(classifier, "random_weights_"):
        turned = graph.op("MatMul", rows, graph.constant(classifier.random_weights_))
        waves = graph.op("Cos", graph.op("Add", turned, graph.constant(classifier.random_phase_)))
        scale = np.sqrt(2.0 / classifier.random_weights_.shape[1])
        weights = graph.constant(scale * np.asarray(classifier.feature_coef_, dtype=float).T)
        return graph.op("Add", graph.op("MatMul", waves, weights), intercept)
    if not hasattr(classifier, "kernel_") or not hasattr(classifier, "dual_coef_"):
        raise ValueError(
            f"{type(classifier).__name__} cannot be exported: it has no linear or kernel decision."
        )
    dual = np.atleast_2d(np.asarray(classifier.dual_coef_))
    if dual.shape[1] == 0:
        # No support vectors: the decision is the intercept, for every row.
        zeros = graph.constant(np.zeros((classifier.n_features_in_, dual.shape[0])))
        return graph.op("Add", graph.op("MatMul", rows, zeros), intercept)
    if classifier.kernel_.name == "precomputed":
        support = graph.constant(np.asarray(classifier.support_, dtype=np.int64))
        similarity = graph.op("Gather", rows, support, axis=1)
    else:
        vectors = classifier.support_vectors_
        vectors = vectors.toarray() if hasattr(vectors, "toarray") else np.asarray(vectors)
        similarity = graph.kernel(classifier.kernel_, rows, vectors)
    return graph.op("Add", graph.op("MatMul", similarity, graph.constant(dual.T)), intercept)


def _rejection(graph: Graph, classifier: Any, scores: str, index: str) -> tuple[str, str]:
    """The mask, and the labels' index where rejection decides it (more than two classes)."""
    bands = np.asarray(classifier.thresholds_, dtype=np.float64)
    n_classes = len(classifier.classes_)
    if not (bands[..., 0] < bands[..., 1]).any():
        # Nothing is ever rejected: false for every row, in the shape of the index.
        return graph.op("Less", index, graph.constant(np.array(0))), index
    if getattr(classifier, "target_coverage", None) is not None:
        margin = graph.op("Abs", scores) if n_classes == 2 else graph.half_gap(scores)
        return graph.op("LessOrEqual", margin, graph.constant(bands[1])), index
    if n_classes == 2:
        above = graph.op("GreaterOrEqual", scores, graph.constant(bands[0]))
        below = graph.op("LessOrEqual", scores, graph.constant(bands[1]))
        return graph.op("And", above, below), index
    accepted = graph.to_int(graph.op("Greater", scores, graph.constant(bands[:, 1])))
    count = graph.op("ReduceSum", accepted, graph.constant(np.array([1])), keepdims=0)
    single = graph.op("Equal", count, graph.constant(np.array(1)))
    only = graph.op("ArgMax", accepted, axis=1, keepdims=0)
    return graph.op("Not", single), graph.op("Where", single, only, index)

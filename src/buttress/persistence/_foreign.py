"""Models and steps of scikit-learn inside an ONNX graph, translated by skl2onnx."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Supported by onnxruntime 1.18, the oldest that the extra allows.
OPSETS = {"": 18, "ai.onnx.ml": 3}


@dataclass(frozen=True, eq=False)
class ForeignPart:
    """Nodes to put into a graph.

    Attributes
    ----------
    source, result : str
        Names of the value it reads and of the one it makes.
    nodes, constants : list
    second_column : bool
        Whether only the second column of the result is meant.
    """

    source: str
    result: str
    nodes: list[Any]
    constants: list[Any]
    second_column: bool


def foreign_part(onnx: Any, model: Any, method: str, float_type: int, prefix: str) -> ForeignPart:
    """Translate the `method` of a fitted model ("transform" or a classifier's scores).

    Raises
    ------
    ImportError
        Without skl2onnx.
    ValueError
        When it has no translation.
    """
    try:
        from skl2onnx import convert_sklearn
        from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
        from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator
    except ImportError:
        raise ImportError(
            f"{type(model).__name__} needs skl2onnx: pip install 'buttress[export]'"
        ) from None
    single = float_type == onnx.TensorProto.FLOAT
    kind = (FloatTensorType if single else DoubleTensorType)([None, model.n_features_in_])
    options: dict[str, Any] = {}
    if method != "transform":
        options = {"zipmap": False}
    if method == "decision_function":
        options["raw_scores"] = True
    try:
        proto = convert_sklearn(
            model,
            initial_types=[("X", kind)],
            options={id(model): options} if options else None,
            target_opset=OPSETS,
        )
    except (MissingConverter, MissingShapeCalculator, RuntimeError, NameError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"{type(model).__name__} has no ONNX translation of {method}: {reason[:200]}"
        ) from None
    # both parts name their values as they like; a prefix keeps them apart
    graph = onnx.compose.add_prefix_graph(proto.graph, f"{prefix}_")
    result = 0 if method == "transform" else 1
    two = method == "decision_function" and len(model.classes_) == 2
    return ForeignPart(
        graph.input[0].name,
        graph.output[result].name,
        list(graph.node),
        list(graph.initializer),
        two,
    )

"""Models and steps of scikit-learn inside an ONNX graph, translated by skl2onnx."""

from __future__ import annotations

from typing import Any

# Supported by onnxruntime 1.18, the oldest that the extra allows.
OPSETS = {"": 18, "ai.onnx.ml": 3}


def translated(model: Any, method: str, single: bool) -> Any:
    """The graph of the `method` of a fitted model ("transform" or a classifier's scores).

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
    kind = (FloatTensorType if single else DoubleTensorType)([None, model.n_features_in_])
    options: dict[str, Any] = {}
    if method != "transform":
        options = {"zipmap": False}
    if method == "decision_function":
        options["raw_scores"] = True
    try:
        return convert_sklearn(
            model,
            initial_types=[("X", kind)],
            options={id(model): options} if options else None,
            target_opset=OPSETS,
        ).graph
    except (MissingConverter, MissingShapeCalculator, RuntimeError, NameError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"{type(model).__name__} has no ONNX translation of {method}: {reason[:200]}"
        ) from None

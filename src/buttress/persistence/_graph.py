"""A small builder of ONNX graphs in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.kernels import Kernel

# Supported by onnxruntime 1.18, the oldest that the extra allows.
OPSETS = {"": 18, "ai.onnx.ml": 3}
IR_VERSION = 9


def import_onnx() -> Any:
    """The onnx package, or an error that says how to get it."""
    try:
        import onnx
        import onnx.checker
        import onnx.compose
    except ImportError:
        raise ImportError("ONNX export needs onnx: pip install 'buttress[export]'") from None
    return onnx


class Graph:
    """Nodes, constants, inputs and outputs, added one by one.

    Parameters
    ----------
    onnx : module
    dtype : {"float32", "float64"}
        Of numeric inputs and of decision values.
    """

    def __init__(self, onnx: Any, dtype: str) -> None:
        self.onnx = onnx
        types = onnx.TensorProto
        self.float_type = types.FLOAT if dtype == "float32" else types.DOUBLE
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    # -- building --------------------------------------------------------------------------

    def _fresh(self, name: str) -> str:
        return f"{name}_{len(self.nodes) + len(self.constants)}"

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return the name of its result."""
        result = self._fresh(kind)
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [result], **attributes))
        return result

    def ml_op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node of the classical machine-learning operators."""
        result = self._fresh(kind)
        node = self.onnx.helper.make_node(kind, inputs, [result], domain="ai.onnx.ml", **attributes)
        self.nodes.append(node)
        return result

    def constant(self, value: Any) -> str:
        """Add a constant: float64, or int64 for whole numbers."""
        array = np.asarray(value)
        array = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
        name = self._fresh("constant")
        self.constants.append(
            self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
            if array.ndim
            else self.onnx.numpy_helper.from_array(array, name)
        )
        return name

    def labels(self, classes: NDArray[Any]) -> str:
        """Add the class labels: integers, numbers or text."""
        if classes.dtype.kind in "biuf":
            return self.constant(classes.astype(np.int64) if classes.dtype.kind == "b" else classes)
        name = self._fresh("classes")
        text = [str(label).encode() for label in classes]
        self.constants.append(
            self.onnx.helper.make_tensor(name, self.onnx.TensorProto.STRING, [len(text)], text)
        )
        return name

    def matrix_input(self, name: str, width: int | None) -> str:
        """Add a numeric input and return it in float64."""
        self.inputs.append(
            self.onnx.helper.make_tensor_value_info(name, self.float_type, ["n", width])
        )
        return self.to_double(name)

    def text_input(self, name: str) -> str:
        """Add an input of text of shape (n, 1)."""
        kind = self.onnx.TensorProto.STRING
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, kind, ["n", 1]))
        return name

    def output(self, name: str, value: str) -> None:
        """Make a result an output of the graph."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
        self.outputs.append(name)

    def to_double(self, value: str) -> str:
        """The value in float64."""
        return self.op("Cast", value, to=self.onnx.TensorProto.DOUBLE)

    def to_float(self, value: str) -> str:
        """The value in the type of the outputs."""
        return self.op("Cast", value, to=self.float_type)

    def to_int(self, value: str) -> str:
        """The value in int64."""
        return self.op("Cast", value, to=self.onnx.TensorProto.INT64)

    def model(self, producer: str, version: str) -> Any:
        """The finished model; types and shapes of the outputs are inferred."""
        helper = self.onnx.helper
        graph = helper.make_graph(
            self.nodes,
            "classifier",
            self.inputs,
            [helper.make_empty_tensor_value_info(name) for name in self.outputs],
            self.constants,
        )
        proto = helper.make_model(
            graph,
            producer_name=producer,
            producer_version=version,
            opset_imports=[helper.make_opsetid(name, number) for name, number in OPSETS.items()],
            ir_version=IR_VERSION,
        )
        return self.onnx.shape_inference.infer_shapes(proto, strict_mode=True)

    # -- mathematics -----------------------------------------------------------------------

    def half_gap(self, scores: str) -> str:
        """Half the distance of the two largest columns."""
        values = self._fresh("top")
        indices = self._fresh("top_index")
        self.nodes.append(
            self.onnx.helper.make_node(
                "TopK", [scores, self.constant(np.array([2]))], [values, indices], axis=1
            )
        )
        zero, one = self.constant(np.array(0)), self.constant(np.array(1))
        first = self.op("Gather", values, zero, axis=1)
        second = self.op("Gather", values, one, axis=1)
        return self.op("Mul", self.op("Sub", first, second), self.constant(0.5))

    def kernel(self, kernel: Kernel, rows: str, vectors: NDArray[Any]) -> str:
        """Similarities of the rows of an input with fixed vectors.

        Raises
        ------
        ValueError
            When the kernel has no translation.
        """
        vectors = vectors.astype(np.float64)
        params = kernel.params
        if kernel.name == "linear":
            return self.op("MatMul", rows, self.constant(vectors.T))
        if kernel.name == "rbf":
            if kernel.center is not None:
                center = np.asarray(kernel.center, dtype=np.float64)
                rows, vectors = self.op("Sub", rows, self.constant(center)), vectors - center
            return self.op(
                "Exp", self._times(self._squared_distance(rows, vectors), -params["gamma"])
            )
        if kernel.name in ("poly", "polynomial", "sigmoid"):
            product = self.op("MatMul", rows, self.constant(vectors.T))
            inner = self.op(
                "Add", self._times(product, params["gamma"]), self.constant(float(params["coef0"]))
            )
            if kernel.name == "sigmoid":
                return self.op("Tanh", inner)
            return self.op("Pow", inner, self.constant(float(params["degree"])))
        if kernel.name == "laplacian":
            return self.op("Exp", self._times(self._city_distance(rows, vectors), -params["gamma"]))
        raise ValueError(
            f"kernel={kernel.name!r} cannot be exported: expected one of 'linear', 'rbf', 'poly', "
            "'sigmoid', 'laplacian', 'precomputed'."
        )

    def _times(self, value: str, factor: float) -> str:
        return self.op("Mul", value, self.constant(float(factor)))

    def _squared_distance(self, rows: str, vectors: NDArray[Any]) -> str:
        axes = self.constant(np.array([1]))
        norms = self.op("ReduceSum", self.op("Mul", rows, rows), axes, keepdims=1)
        products = self.op("MatMul", rows, self.constant(-2.0 * vectors.T))
        total = self.op("Add", self.op("Add", products, norms), self.constant((vectors**2).sum(1)))
        return self.op("Max", total, self.constant(0.0))

    def _city_distance(self, rows: str, vectors: NDArray[Any]) -> str:
        wide = self.op("Unsqueeze", rows, self.constant(np.array([1])))
        apart = self.op("Abs", self.op("Sub", wide, self.constant(vectors[None])))
        return self.op("ReduceSum", apart, self.constant(np.array([2])), keepdims=0)

"""A small builder of ONNX graphs in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.kernels import Kernel
from buttress.persistence._builder import Builder, dense
from buttress.persistence._foreign import OPSETS, translated
from buttress.persistence._trees import Trees

IR_VERSION = 9
# The operators of classical machine learning.
_CLASSICAL = "ai.onnx.ml"
# Operations that are one of ONNX's operators, with its attributes.
_OPERATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "abs": ("Abs", {}),
    "cos": ("Cos", {}),
    "joined": ("Concat", {"axis": 1}),
    "log": ("Log", {}),
    "sigmoid": ("Sigmoid", {}),
    "times": ("Mul", {}),
}


def import_onnx() -> Any:
    """The onnx package, or an error that says how to get it."""
    try:
        import onnx
        import onnx.checker
        import onnx.compose
    except ImportError:
        raise ImportError("ONNX export needs onnx: pip install 'buttress[export]'") from None
    return onnx


class Graph(Builder):
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

    def constant(self, value: Any) -> str:
        """Add a constant: float64, or int64 for whole numbers."""
        array = np.asarray(value)
        array = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
        name = self._fresh("constant")
        contiguous = np.asarray(array, order="C")
        self.constants.append(self.onnx.numpy_helper.from_array(contiguous, name))
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

    def column_input(self, position: int, name: str, text: bool) -> str:
        """Add an input of shape (n, 1), text or a number."""
        if not text:
            return self.matrix_input(name, 1)
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

    # -- the operations of `Builder` -------------------------------------------------------

    def step(self, op: str, *of: str, **constants: Any) -> str:
        """An operation that ONNX has under a name of its own."""
        kind, attributes = _OPERATORS[op]
        return self.op(kind, *of, **attributes)

    def affine(self, value: str, weights: Any, offset: Any) -> str:
        """``value @ weights.T + offset``."""
        product = self.op("MatMul", value, self.constant(dense(weights).T.astype(np.float64)))
        return self.op("Add", product, self.constant(np.asarray(offset, dtype=np.float64)))

    def scaled(self, value: str, centre: Any, scale: Any) -> str:
        """``(value - centre) / scale``, column by column."""
        moved = self.op("Sub", value, self.constant(np.asarray(centre, dtype=np.float64)))
        return self.op("Div", moved, self.constant(np.asarray(scale, dtype=np.float64)))

    def columns(self, value: str, index: Any) -> str:
        """Some columns of a value."""
        return self.op("Gather", value, self.constant(np.asarray(index, dtype=np.int64)), axis=1)

    def clipped(self, value: str, low: float, high: float) -> str:
        """Numbers kept between two bounds."""
        return self.op("Clip", value, self.constant(float(low)), self.constant(float(high)))

    def softmax(self, value: str, width: int) -> str:
        """Softmax of every `width` columns in a row."""
        blocks = self.op("Reshape", value, self.constant(np.array([0, -1, width])))
        shares = self.op("Softmax", blocks, axis=2)
        return self.op("Flatten", shares, axis=1)

    def gap(self, value: str) -> str:
        """Half the distance of the two largest columns."""
        values = self._fresh("top")
        indices = self._fresh("top_index")
        self.nodes.append(
            self.onnx.helper.make_node(
                "TopK", [value, self.constant(np.array([2]))], [values, indices], axis=1
            )
        )
        return self.affine(values, np.array([[0.5, -0.5]]), np.zeros(1))

    def largest(self, value: str) -> str:
        """The largest column."""
        return self.op("ReduceMax", value, self.constant(np.array([1])), keepdims=1)

    def chosen(self, value: str) -> str:
        """1 in the first column that is largest, else 0."""
        first = self.op("ArgMax", value, axis=1, keepdims=1)
        width = self.op("Shape", value, start=1)
        positions = self.op(
            "Range",
            self.constant(np.array(0)),
            self.op("Squeeze", width),
            self.constant(np.array(1)),
        )
        return self.to_double(self.op("Equal", first, positions))

    def flushed(self, value: str, rounding: float) -> str:
        """Zero where the absolute value is at most `rounding`."""
        small = self.op("LessOrEqual", self.op("Abs", value), self.constant(float(rounding)))
        return self.op("Where", small, self.constant(0.0), value)

    def trees(self, rows: str, trees: Trees) -> str:
        """Sum over trees of the values of a row's leaves; the operator's result is float32."""
        if trees.single:
            rows = self.to_double(self.op("Cast", rows, to=self.onnx.TensorProto.FLOAT))
        nodes = np.concatenate(
            [np.arange(count) for count in np.bincount(trees.tree, minlength=trees.n_trees)]
        )
        leaf = trees.left < 0
        leaves, k = np.flatnonzero(leaf), trees.values.shape[1]
        double = self.onnx.numpy_helper.from_array
        sums = self.op(
            "TreeEnsembleRegressor",
            rows,
            domain=_CLASSICAL,
            n_targets=k,
            aggregate_function="SUM",
            post_transform="NONE",
            nodes_treeids=trees.tree.tolist(),
            nodes_nodeids=nodes.tolist(),
            nodes_featureids=np.where(leaf, 0, trees.feature).tolist(),
            nodes_modes=np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
            nodes_values_as_tensor=double(np.where(leaf, 0.0, trees.threshold), "thresholds"),
            nodes_truenodeids=np.where(leaf, 0, trees.left).tolist(),
            nodes_falsenodeids=np.where(leaf, 0, trees.right).tolist(),
            nodes_missing_value_tracks_true=trees.missing_left.astype(int).tolist(),
            target_treeids=np.repeat(trees.tree[leaves], k).tolist(),
            target_nodeids=np.repeat(nodes[leaves], k).tolist(),
            target_ids=np.tile(np.arange(k), len(leaves)).tolist(),
            target_weights_as_tensor=double(trees.values[leaves].ravel(), "leaves"),
        )
        return self.to_double(sums)

    def foreign(self, model: Any, rows: str, method: str) -> str:
        """What skl2onnx makes of a model or step of scikit-learn, in place."""
        graph = translated(model, method, self.float_type == self.onnx.TensorProto.FLOAT)
        # both sides name their values as they like; a prefix keeps them apart
        graph = self.onnx.compose.add_prefix_graph(graph, f"{self._fresh('part')}_")
        source = graph.input[0].name
        self.nodes.append(self.onnx.helper.make_node("Identity", [self.to_float(rows)], [source]))
        self.nodes.extend(graph.node)
        self.constants.extend(graph.initializer)
        value = self.to_double(graph.output[0 if method == "transform" else 1].name)
        two = method == "decision_function" and len(model.classes_) == 2
        return self.columns(value, np.array([1])) if two else value

    # -- inputs ----------------------------------------------------------------------------

    def imputed(self, value: str, fill: list[float]) -> str:
        """Missing numbers replaced."""
        return self.op("Where", self.op("IsNaN", value), self.constant(np.array(fill)), value)

    def one_hot(self, value: str, categories: list[str]) -> str:
        """1 for the category; a graph has no way to refuse one that is not known: zeros."""
        codes = self.op(
            "LabelEncoder",
            value,
            domain=_CLASSICAL,
            keys_strings=categories,
            values_int64s=list(range(len(categories))),
            default_int64=-1,
        )
        positions = self.constant(np.arange(len(categories))[None, :])
        return self.to_double(self.op("Equal", codes, positions))

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

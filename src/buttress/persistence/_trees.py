"""The trees of fitted forests as flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Trees:
    """Nodes of all trees, one tree after the other.

    Attributes
    ----------
    tree : array of shape (n_nodes,)
        Index of the tree.
    feature, left, right : arrays of shape (n_nodes,)
        Rows with ``x[feature] <= threshold`` go to node `left` of the same tree; -1 in `left`
        marks a leaf.
    threshold : array of shape (n_nodes,)
    missing_left : array of bool of shape (n_nodes,)
        Where rows without the feature go.
    values : array of shape (n_nodes, n_columns)
        What a leaf adds to the result.
    single : bool
        Whether rows are rounded to single precision first, as scikit-learn's forests do.
    """

    tree: IntArray
    feature: IntArray
    threshold: Array
    left: IntArray
    right: IntArray
    missing_left: BoolArray
    values: Array
    single: bool = True

    @property
    def n_trees(self) -> int:
        """How many trees there are."""
        return int(self.tree[-1]) + 1

    def with_values(self, values: Array) -> Trees:
        """The same trees with other values in their leaves."""
        return replace(self, values=values)

    @staticmethod
    def together(forests: Sequence[Trees]) -> Trees:
        """The trees of several forests in one."""
        shift = np.cumsum([0, *(forest.n_trees for forest in forests[:-1])])
        trees = np.concatenate([f.tree + s for f, s in zip(forests, shift.tolist(), strict=True)])
        names = ("feature", "threshold", "left", "right", "missing_left", "values")
        arrays = {
            name: np.concatenate([getattr(forest, name) for forest in forests]) for name in names
        }
        return Trees(tree=trees, **arrays, single=forests[0].single)


def forest_trees(forest: Any) -> Trees:
    """Trees of a fitted forest of scikit-learn; leaves hold the shares of the classes."""
    inner = [estimator.tree_ for estimator in forest.estimators_]
    values = np.concatenate([tree.value[:, 0, :] for tree in inner])
    return Trees(
        tree=np.repeat(np.arange(len(inner)), [tree.node_count for tree in inner]),
        feature=np.concatenate([np.maximum(tree.feature, 0) for tree in inner]),
        threshold=np.concatenate([tree.threshold for tree in inner]),
        left=np.concatenate([tree.children_left for tree in inner]),
        right=np.concatenate([tree.children_right for tree in inner]),
        missing_left=np.concatenate([tree.missing_go_to_left > 0 for tree in inner]),
        values=values / values.sum(axis=1, keepdims=True),
    )


def boosted_trees(model: Any) -> Trees:
    """Trees of scikit-learn's histogram boosting, without its first guess.

    Raises
    ------
    ValueError
        When trees ask for categories.
    """
    rounds = [[tree.nodes for tree in stage] for stage in model._predictors]
    flat = [nodes for stage in rounds for nodes in stage]
    if any(nodes["is_categorical"].any() for nodes in flat):
        raise ValueError(
            f"{type(model).__name__} with categorical features cannot be exported: encode them."
        )
    k = len(rounds[0])
    # tree i of every stage adds to column i
    column = np.tile(np.arange(k), len(rounds))
    sizes = [len(nodes) for nodes in flat]
    leaf = np.concatenate([nodes["is_leaf"] for nodes in flat]).astype(bool)
    values = np.zeros((len(leaf), k))
    values[np.arange(len(leaf)), np.repeat(column, sizes)] = np.concatenate(
        [nodes["value"] for nodes in flat]
    )
    left = np.concatenate([nodes["left"].astype(int) for nodes in flat])
    return Trees(
        tree=np.repeat(np.arange(len(flat)), sizes),
        feature=np.concatenate([nodes["feature_idx"].astype(int) for nodes in flat]),
        threshold=np.concatenate([nodes["num_threshold"] for nodes in flat]),
        left=np.where(leaf, -1, left),
        right=np.concatenate([nodes["right"].astype(int) for nodes in flat]),
        missing_left=np.concatenate([nodes["missing_go_to_left"] > 0 for nodes in flat]),
        values=values,
        single=False,
    )

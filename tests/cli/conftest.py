"""Rows for the commands, as text."""

from __future__ import annotations

import json

import numpy as np


def rows_of(n: int, kind: str, seed: int = 0) -> list[str]:
    """Lines of a file with two features and a label that needs both, its header among them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
    if kind == "csv":
        return [
            "a,b,label\n",
            *(f"{p!r},{q!r},{t}\n" for (p, q), t in zip(X.tolist(), y, strict=True)),
        ]
    return [
        json.dumps({"a": p, "b": q, "label": str(t)}) + "\n"
        for (p, q), t in zip(X.tolist(), y, strict=True)
    ]

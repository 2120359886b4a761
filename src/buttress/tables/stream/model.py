"""Between streams and models: a model goes on in a stream, a stream's checkpoint is a model."""

from __future__ import annotations

import copy
import os
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from buttress.classifiers.online.base import BaseOnlineClassifier
from buttress.classifiers.online.checkpoint import CheckpointError, read_checkpoint
from buttress.tables.classifier import TableClassifier
from buttress.tables.encoder import TableEncoder
from buttress.tables.row_encoding import assemble


def learner_of(model: Any) -> BaseOnlineClassifier:
    """A copy of the online learner inside a fitted model.

    Parameters
    ----------
    model : estimator
        An online learner, or a `TableClassifier` or a search around one.

    Raises
    ------
    ValueError
        When there is none, or it cannot go on.
    """
    inner = model
    for name in ("estimator_", "best_estimator_"):
        inner = getattr(inner, name, inner)
    if not isinstance(inner, BaseOnlineClassifier):
        raise ValueError(
            f"a {type(inner).__name__} cannot go on in a stream: only online learners can, such as "
            "that of 'buttress fit --model online'"
        )
    if inner.kernel == "precomputed":
        raise ValueError("kernel='precomputed' cannot go on in a stream: it has no Gram matrix.")
    return copy.deepcopy(inner)


def model_of_checkpoint(path: str | os.PathLike[str]) -> Any:
    """The model in a checkpoint: a `TableClassifier` if ``buttress stream`` wrote it.

    Parameters
    ----------
    path : path-like
        Written by ``buttress stream --checkpoint``, or by a learner's `save_checkpoint`.

    Raises
    ------
    CheckpointError
        When the file is no checkpoint, or no whole one.
    """
    content = read_checkpoint(path)
    try:
        learner = _class_named(content["learner"]["class"])()
        learner._restore(content["learner"])
        if "run" not in content:
            return learner
        return as_model(learner, encoder_from(content["run"]["encoder"]), content["run"]["columns"])
    except Exception as error:  # the file is whole, but not what a stream wrote
        raise CheckpointError(
            f"{os.fspath(path)} is no checkpoint that this version can read: {error}"
        ) from None


def as_model(learner: Any, encoder: TableEncoder, columns: dict[str, Any]) -> TableClassifier:
    """The learner of a stream with the encoder that its rows went through."""
    ignore = [name for name in (columns["key"],) if name is not None]
    model = TableClassifier(learner, target=columns["target"], ignore=ignore)
    model.set_params(missing=encoder.missing, standardize=encoder.standardize)
    return assemble(model, encoder, learner)


def encoder_state(encoder: TableEncoder) -> dict[str, Any]:
    """An encoder as numbers, text and arrays."""
    scaler = encoder.scaler_
    return {
        "params": encoder.get_params(deep=False),
        "columns": [str(name) for name in encoder.feature_names_in_],
        "numeric": list(encoder.numeric_),
        "categories": encoder.categories_,
        "fill": encoder.fill_,
        "mean": None if scaler is None else scaler.mean_,
        "scale": None if scaler is None else scaler.scale_,
        "seen": 0 if scaler is None else int(scaler.n_samples_seen_),
    }


def encoder_from(state: dict[str, Any]) -> TableEncoder:
    """The encoder that `encoder_state` described."""
    encoder = TableEncoder(**state["params"])
    encoder.feature_names_in_ = np.array(state["columns"], dtype=object)
    encoder.n_features_in_ = len(state["columns"])
    encoder.numeric_ = list(state["numeric"])
    encoder.categories_ = {name: list(known) for name, known in state["categories"].items()}
    encoder.fill_ = dict(state["fill"])
    encoder.scaler_ = None
    if state["mean"] is not None:
        scaler = StandardScaler()
        scaler.mean_, scaler.scale_ = state["mean"], state["scale"]
        scaler.var_ = scaler.scale_**2
        scaler.n_samples_seen_ = int(state["seen"])
        scaler.n_features_in_ = len(scaler.mean_)
        encoder.scaler_ = scaler
    return encoder


def _class_named(name: str) -> Any:
    """The public online learner of this name; nothing else is ever made."""
    from buttress.classifiers import online

    learner = getattr(online, name) if name in online.__all__ else None
    if not (isinstance(learner, type) and issubclass(learner, BaseOnlineClassifier)):
        raise CheckpointError(f"there is no online learner {name!r}")
    return learner

"""What comes before a classifier in an exported model: columns, their encoding, scaling."""

from __future__ import annotations

from typing import Any

from buttress.persistence._builder import Builder
from buttress.persistence._scores import after_steps, scaled_rows, steps_before
from buttress.tables import TableClassifier


def unwrapped(model: Any) -> tuple[list[Any], Any]:
    """The fitted steps before the classifier, and the classifier."""
    if isinstance(model, TableClassifier):
        steps, classifier = unwrapped(model.estimator_)
        return [model.encoder_, *steps], classifier
    if hasattr(model, "steps"):
        steps, classifier = unwrapped(model.steps[-1][1])
        return [*steps_before(model), *steps], classifier
    if not hasattr(model, "intercept_") and hasattr(model, "best_estimator_"):
        return unwrapped(model.best_estimator_)
    return [], model


def add_inputs(builder: Builder, steps: list[Any], classifier: Any) -> str:
    """The rows as the classifier takes them."""
    if steps and type(steps[0]).__name__ == "TableEncoder":
        rows, steps = _encoded(builder, steps[0]), steps[1:]
    else:
        source = steps[0] if steps else classifier
        if not hasattr(source, "n_features_in_"):
            raise ValueError(f"{type(source).__name__} is not fitted.")
        rows = builder.matrix_input("X", source.n_features_in_)
    return after_steps(builder, steps, rows)


def _encoded(builder: Builder, encoder: Any) -> str:
    """A table's columns as the encoder makes them."""
    if encoder.derived_columns():
        names = ", ".join(encoder.derived_columns())
        raise ValueError(
            f"columns of dates and free text ({names}) have no ONNX translation, nor one to JSON: "
            "encode them before the model, or leave them out"
        )
    if not encoder.categories_:
        return _numbers(builder, encoder, builder.matrix_input("X", encoder.n_features_in_))
    columns = {
        name: builder.column_input(position, name, name in encoder.categories_)
        for position, name in enumerate(encoder.feature_names_in_)
    }
    blocks = []
    if encoder.numeric_:
        numbers = builder.joined([columns[name] for name in encoder.numeric_])
        blocks.append(_numbers(builder, encoder, numbers))
    blocks += [
        builder.one_hot(columns[name], categories)
        for name, categories in encoder.categories_.items()
    ]
    return builder.joined(blocks)


def _numbers(builder: Builder, encoder: Any, rows: str) -> str:
    if encoder.missing == "impute":
        rows = builder.imputed(rows, [encoder.fill_[name] for name in encoder.numeric_])
    return scaled_rows(builder, rows, encoder.scaler_) if encoder.scaler_ is not None else rows

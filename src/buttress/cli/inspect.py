"""``buttress inspect``: what is inside a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from buttress.cli._console import Jobs, Json, Output, Quiet, Seed, limit_threads
from buttress.cli._inputs import load_model

app = typer.Typer(rich_markup_mode="markdown")

_ATTRIBUTES = (
    "alpha_", "C_", "s_", "radius_", "gamma_", "r_", "best_params_", "rho_", "n_seen_", "solver_",
    "n_iter_", "objective_", "duality_gap_", "kkt_residual_", "approximation_",
)  # fmt: skip


@app.command()
def inspect(
    model: Annotated[Path, typer.Argument(help="A model saved by 'buttress fit' or save().")],
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Show what is inside a saved model: labels, columns, settings, certificates, versions.

    The checksum and every type in the file are checked first. --seed is accepted as
    everywhere; there is nothing random here.

    **Example:** `buttress inspect model.skops`
    """
    say = Output(json, quiet)
    with limit_threads(jobs):
        fitted, about = load_model(model)
        facts = describe_model(fitted)
    say.say(f"{model}: {facts['class']}, saved {about['saved']} by buttress {about['buttress']}")
    rows = [(name, _short(value)) for name, value in facts.items() if name != "columns"]
    say.table(["", ""], rows, justify="left")
    if "columns" in facts:
        say.table(
            ["column", "kind", "learned"],
            [(c["name"], c["kind"], c["learned"]) for c in facts["columns"]],
            justify="left",
        )
    say.say(f"file: {about['bytes']} bytes, format {about['format']}, sha256 {about['sha256']}")
    say.result({"file": str(model), "about": about, "model": facts})


def describe_model(model: Any) -> dict[str, Any]:
    """What a fitted model is made of, as plain values."""
    from buttress.classifiers.reject import may_refuse
    from buttress.tables import TableClassifier

    facts: dict[str, Any] = {}
    if isinstance(model, TableClassifier):
        facts["target"] = model.target
        facts["columns"] = [_column(model.encoder_, name) for name in model.feature_names_in_]
        facts.update(getattr(model, "record_", {}))
        model = model.estimator_
    # The searches of this library carry the attributes of their best estimator themselves.
    last = model if hasattr(model, "intercept_") else getattr(model, "best_estimator_", model)
    facts = {"class": type(last).__name__} | facts
    if hasattr(model, "classes_"):
        facts["labels"] = [str(label) for label in model.classes_]
    support = getattr(last, "support_", None)
    if support is not None:
        facts["support vectors"] = len(support)
    facts["abstains"] = may_refuse(last)
    for name in _ATTRIBUTES:
        value = getattr(last, name, getattr(model, name, None))
        if value is not None:
            facts[name] = value
    facts["parameters"] = {name: str(value) for name, value in last.get_params(deep=False).items()}
    return facts


def _column(encoder: Any, name: str) -> dict[str, Any]:
    if name in encoder.categories_:
        categories = encoder.categories_[name]
        shown = ", ".join(categories[:6]) + (", …" if len(categories) > 6 else "")
        return {"name": name, "kind": "text", "learned": f"{len(categories)} categories: {shown}"}
    if name in encoder.derived_columns():
        date = name in encoder.dates_
        learned = "day, year, week" if date else f"letters, hashed to {encoder.text_size} numbers"
        return {"name": name, "kind": "date" if date else "free text", "learned": learned}
    learned = "as it is"
    if encoder.scaler_ is not None:
        position = encoder.numeric_.index(name)
        mean, scale = encoder.scaler_.mean_[position], encoder.scaler_.scale_[position]
        learned = f"mean {mean:.5g}, deviation {scale:.5g}"
    return {"name": name, "kind": "number", "learned": learned}


def _short(value: Any, limit: int = 300) -> str:
    if isinstance(value, dict):
        value = ", ".join(f"{key}={item}" for key, item in value.items())
    elif isinstance(value, list):
        value = ", ".join(map(str, value))
    text = str(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"

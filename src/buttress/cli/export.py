"""``buttress export``: a saved model as ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from buttress.cli._console import Jobs, Json, Output, Quiet, Seed, limit_threads
from buttress.cli._inputs import guard_files, load_model

app = typer.Typer(rich_markup_mode="markdown")


@app.command()
def export(
    model: Annotated[Path, typer.Argument(help="A model saved by 'buttress fit' or save().")],
    onnx: Annotated[Path, typer.Option("--onnx", help="The ONNX file to write.")],
    double: Annotated[
        bool, typer.Option("--double", help="Take float64 input; float32 if not given.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Convert a saved model to ONNX: decision values, labels, and the reject mask.

    A model of numeric columns takes one matrix "X" with the columns in the model's order; one
    with categories takes every column as an input of its own. Encoding and standardising are
    part of the graph. --seed is accepted as everywhere; there is nothing random here.

    **Example:** `buttress export model.skops --onnx model.onnx`
    """
    guard_files([model], {"--onnx": onnx})
    from buttress.persistence import to_onnx

    say = Output(json, quiet)
    with limit_threads(jobs):
        fitted, _ = load_model(model)
        graph = to_onnx(fitted, onnx, dtype="float64" if double else "float32")
    inputs = [value.name for value in graph.graph.input]
    outputs = [value.name for value in graph.graph.output]
    size = onnx.stat().st_size
    say.say(f"wrote {onnx}: {size} bytes, inputs {', '.join(inputs)}; outputs {', '.join(outputs)}")
    say.result({"onnx": str(onnx), "bytes": size, "inputs": inputs, "outputs": outputs})

"""``buttress export``: a saved model as ONNX or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from buttress.cli._console import Jobs, Json, Output, Quiet, Seed, limit_threads
from buttress.cli._inputs import guard_files, load_model

# What ``--format`` accepts.
Form = Literal["onnx", "json"]

app = typer.Typer(rich_markup_mode="markdown")


@app.command()
def export(
    model: Annotated[Path, typer.Argument(help="A model saved by 'buttress fit' or save().")],
    onnx: Annotated[
        Path | None, typer.Option("--onnx", help="The ONNX file to write; the same as --out.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The file to write.")] = None,
    form: Annotated[
        Form, typer.Option("--format", help="JSON is for readers without any library.")
    ] = "onnx",
    double: Annotated[
        bool, typer.Option("--double", help="ONNX takes float64 input; float32 if not given.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Convert a saved model: labels, decision values, true probabilities, and the reject mask.

    A model of numeric columns takes one matrix "X" with the columns in the model's order; one
    with categories takes every column as an input of its own. Encoding and standardising are
    part of the graph. --format json writes a list of steps that sixty lines of any language
    can follow. --seed is accepted as everywhere; there is nothing random here.

    **Example:** `buttress export model.skops --onnx model.onnx`
    """
    path = _chosen_file(onnx, out, form, double)
    guard_files([model], {"--onnx" if onnx is not None else "--out": path})
    say = Output(json, quiet)
    with limit_threads(jobs):
        fitted, _ = load_model(model)
        said = _write_json(fitted, path) if form == "json" else _write_onnx(fitted, path, double)
    size = path.stat().st_size
    names = "; ".join(f"{name} {', '.join(values)}" for name, values in said.items())
    say.say(f"wrote {path}: {size} bytes, {names}")
    say.result({str(form): str(path), "bytes": size} | said)


def _chosen_file(onnx: Path | None, out: Path | None, form: Form, double: bool) -> Path:
    if (onnx is None) == (out is None):
        raise typer.BadParameter("give the file to write once: --out FILE, or --onnx FILE.")
    if form == "json" and (onnx is not None or double):
        raise typer.BadParameter("--format json goes with --out, and not with --onnx or --double.")
    path = onnx if onnx is not None else out
    assert path is not None
    return path


def _write_onnx(model: object, path: Path, double: bool) -> dict[str, list[str]]:
    from buttress.persistence import to_onnx

    graph = to_onnx(model, path, dtype="float64" if double else "float32").graph
    return {
        "inputs": [value.name for value in graph.input],
        "outputs": [value.name for value in graph.output],
    }


def _write_json(model: object, path: Path) -> dict[str, list[str]]:
    from buttress.persistence import to_json

    program = to_json(model, path)
    numbers = ("decision", "probabilities")
    known = [name for name in numbers if program["answer"].get(name) is not None]
    refusals = ["reject"] if program["answer"]["may_refuse"] else []
    return {"inputs": program["columns"] or ["X"], "outputs": ["label", *known, *refusals]}

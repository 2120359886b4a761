"""``buttress warm-up``: compile the solvers before they are needed."""

from __future__ import annotations

from typing import Annotated

import typer

from buttress._words import did_you_mean
from buttress.cli._console import Json, Output, Quiet, Seed

app = typer.Typer(rich_markup_mode="markdown")


@app.command()
def warm_up(
    families: Annotated[
        list[str] | None,
        typer.Argument(
            help="leaky, ramp, reject, sets, stream, theory, scale, noise; all if none."
        ),
    ] = None,
    float32: Annotated[
        bool, typer.Option("--float32", help="Also for features in single precision.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Compile the solvers now, so that no later command waits for the compiler.

    The result is kept beside the installed package, in the user's cache directory, or in
    NUMBA_CACHE_DIR. For images and CI. --seed is accepted as everywhere; there is nothing random
    here.

    **Example:** `buttress warm-up ramp stream`
    """
    from buttress.warm_up import FAMILIES
    from buttress.warm_up import warm_up as compile_families

    unknown = [name for name in families or [] if name not in FAMILIES]
    if unknown:
        raise typer.BadParameter(
            f"unknown family {unknown[0]!r}; choose from {', '.join(FAMILIES)}"
            + did_you_mean(unknown[0], FAMILIES)
        )
    say = Output(json, quiet)
    rows = []
    for name, functions, took in compile_families(
        families or None, ["float64", "float32"] if float32 else ["float64"]
    ):
        done = f"{functions} functions in {took:.1f} s" if functions else "ready"
        say.say(f"{name}: {done}")
        rows.append({"family": name, "functions": functions, "seconds": took})
    say.result({"families": rows})

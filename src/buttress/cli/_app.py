"""The group of commands, each imported only when it runs, and the one place errors end."""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from buttress._version import __version__
from buttress.cli._console import CommandError, warn_in_one_line

COMMANDS = {
    "demo": "Compare the models on data with flipped labels; no file needed.",
    "fit": "Fit a model to a CSV or Parquet file and save it.",
    "predict": "Label the rows of a file with a saved model.",
    "compare": "Compare all models on a file under label noise.",
    "suspects": "List the labels of a file that are probably wrong.",
    "review": "Open a page on which people check the suspect labels.",
    "apply": "Write a table with the corrections of a review applied.",
    "serve": "Answer, and learn, over HTTP.",
    "inspect": "Show what is inside a saved model.",
    "export": "Convert a saved model to ONNX.",
    "stream": "Answer and learn row by row from a stream.",
    "reproduce": "Run a table or figure of a paper again.",
    "datasets": "List or fetch the benchmark data sets.",
    "warm-up": "Compile the solvers beforehand: for images and CI.",
}

# Typer carries its own copy of click, or uses the one installed, depending on its version;
# these are the classes it raises.
_UsageError: Any = typer.BadParameter.__base__
_ClickError: Any = _UsageError.__base__

_INTERRUPTED = "interrupted; no output file was changed"


def _available() -> list[str]:
    return [name for name in COMMANDS if find_spec(_module(name)) is not None]


def _module(command: str) -> str:
    return f"buttress.cli.{command.replace('-', '_')}"


class LazyGroup(TyperGroup):
    """Lists the commands from a table; imports the one that runs."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of use, not of the alphabet."""
        return _available()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Name and summary only: enough for the list in ``--help``."""
        if cmd_name not in _available():
            return None
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command itself."""
        name, _, rest = super().resolve_command(ctx, args)
        if name is None:
            raise AssertionError("a group without resilient parsing resolves a name or raises")
        command = typer.main.get_command(import_module(_module(name)).app)
        command.name = name
        # A command is part of a group here; completion is not its own to install.
        command.params = [
            parameter
            for parameter in command.params
            if parameter.name not in ("install_completion", "show_completion")
        ]
        return name, command, rest


# Without rich markup the list of commands is plain text, and rich need not be imported.
app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"buttress {__version__}")
        raise typer.Exit


@app.callback()
def _group(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    """Classification when labels cannot be trusted and a wrong answer costs more than none.

    Start with:  buttress demo
    """


def run(arguments: list[str]) -> int:
    """Run a command line; every error becomes one line and an exit code."""
    with warnings.catch_warnings():
        warnings.showwarning = warn_in_one_line
        try:
            code = int(app(arguments, prog_name="buttress", standalone_mode=False) or 0)
            return _report(_INTERRUPTED, 1) if code == 130 else code
        except _UsageError as error:
            if not arguments or type(error).__name__ == "NoArgsIsHelpError":
                typer.echo(error.format_message())
                return 2
            where = error.ctx.command_path if error.ctx is not None else "buttress"
            # Our own messages name what is wrong; the prefix would only push it to the right.
            message = error.format_message().removeprefix("Invalid value: ")
            return _report(message, 2, hint=f"see '{where} --help'")
        except _ClickError as error:
            return _report(error.format_message(), 1)
        except (typer.Abort, KeyboardInterrupt):
            return _report(_INTERRUPTED, 1)
        except CommandError as error:
            return _report(str(error), error.code)
        except OSError as error:
            return _report(_describe_os_error(error), 1)
        except MemoryError:
            return _report("out of memory; try --approximation nystroem or fewer rows", 1)
        except Exception as error:
            if os.environ.get("BUTTRESS_TRACEBACK"):
                raise
            known = isinstance(error, (ValueError, ImportError))
            kind = "" if known else f"{type(error).__name__}: "
            return _report(f"{kind}{error}", 1)


def _describe_os_error(error: OSError) -> str:
    if error.filename is None:
        return str(error)
    return f"{error.filename}: {(error.strerror or str(error)).lower()}"


def _report(message: str, code: int, hint: str = "") -> int:
    line = " ".join(message.split()).rstrip(".")
    typer.echo(f"buttress: {line}{f' ({hint})' if hint else ''}", err=True)
    return code

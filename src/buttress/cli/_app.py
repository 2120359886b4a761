"""The group of commands, each imported only when it runs, and the one place errors end."""

from __future__ import annotations

import os
import pkgutil
import re
import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from buttress import cli
from buttress._files import forget_published
from buttress._version import __version__
from buttress._words import did_you_mean
from buttress.cli._console import CommandError, warn_in_one_line
from buttress.cli._interrupt import Interrupted, was_pressed, what_is_left

# Shown first in ``--help``; the others follow by name.
_FIRST = ("demo", "fit", "predict")

# Typer carries its own copy of click, or uses the one installed, depending on its version;
# these are the classes it raises.
_UsageError: Any = typer.BadParameter.__base__
_ClickError: Any = _UsageError.__base__


def commands() -> dict[str, str]:
    """Every command with the line that says what it does.

    A command is a module of ``buttress.cli`` without an underscore before its name
    (``warm_up`` is the command ``warm-up``). Its line is the first of its docstring, which is
    read without importing it: ```buttress name``: what it does``.
    """
    modules = {
        info.name.replace("_", "-"): info.name
        for info in pkgutil.iter_modules(cli.__path__)
        if not info.name.startswith("_")
    }
    order = sorted(modules, key=lambda name: (name not in _FIRST, name))
    order.sort(key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
    return {name: _summary(modules[name]) for name in order}


def _summary(module: str) -> str:
    spec = find_spec(f"buttress.cli.{module}")
    line = ""
    if spec is not None and spec.origin is not None:
        with open(spec.origin, encoding="utf-8") as file:
            line = file.readline()
    said = re.match(r'"""``buttress [a-z-]+``: (.+?)\.?(""")?$', line.strip())
    return said[1][0].upper() + said[1][1:] + "." if said else ""


class LazyGroup(TyperGroup):
    """Finds the commands by the names of their modules; imports the one that runs."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return list(commands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Name and summary only: enough for the list in ``--help``."""
        summary = commands().get(cmd_name)
        return None if summary is None else TyperCommand(cmd_name, help=summary)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command itself."""
        name, _, words = super().resolve_command(ctx, args)
        if name is None:
            raise AssertionError("a group without resilient parsing resolves a name or raises")
        module = import_module(f"buttress.cli.{name.replace('-', '_')}")
        command: Any = typer.main.get_command(module.app)
        command.name = name
        invoke = command.invoke

        def invoke_to_its_end(context: Any) -> Any:
            try:
                return invoke(context)
            except KeyboardInterrupt as error:  # or Typer would turn it into a bare number
                raise Interrupted(what_is_left(error)) from None

        command.invoke = invoke_to_its_end
        # A command is part of a group here; completion is not its own to install.
        command.params = [
            parameter
            for parameter in command.params
            if parameter.name not in ("install_completion", "show_completion")
        ]
        return name, command, words


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
            forget_published()
            code = int(app(arguments, prog_name="buttress", standalone_mode=False) or 0)
            return _report(what_is_left(), 1) if code == 130 else code
        except Interrupted as error:
            return _report(str(error), 1)
        except _UsageError as error:
            if not arguments or type(error).__name__ == "NoArgsIsHelpError":
                typer.echo(error.format_message())
                return 2
            where = error.ctx.command_path if error.ctx is not None else "buttress"
            # Our own messages name what is wrong; the prefix would only push it to the right.
            message = _with_suggestion(error).removeprefix("Invalid value: ")
            return _report(message, 2, hint=f"see '{where} --help'")
        except _ClickError as error:
            return _report(error.format_message(), 1)
        except (typer.Abort, KeyboardInterrupt) as error:
            return _report(what_is_left(error), 1)
        except BrokenPipeError:
            return _without_a_reader()
        except CommandError as error:
            return _report(str(error), error.code)
        except Exception as error:
            if was_pressed():  # and an import, or a file, was the first to notice
                return _report(what_is_left(), 1)
            if os.environ.get("BUTTRESS_TRACEBACK") and not isinstance(
                error, (OSError, MemoryError)
            ):
                raise
            return _report(_describe(error), 1)


def _describe(error: Exception) -> str:
    """What went wrong in a command."""
    if isinstance(error, OSError):
        return _describe_os_error(error)
    if isinstance(error, MemoryError):
        return "out of memory; try --approximation nystroem or fewer rows"
    known = isinstance(error, (ValueError, ImportError))
    return f"{'' if known else f'{type(error).__name__}: '}{error}"


def _with_suggestion(error: Any) -> str:
    """The message of wrong use, with what may have been meant by a word that is unknown."""
    message = str(error.format_message()).replace("Value error, ", "").rstrip(".")
    unknown = getattr(error, "option_name", None)
    if type(error).__name__ == "NoSuchOption" and unknown is not None:
        options = [name for each in error.ctx.command.params for name in each.opts]
        return f"No such option: {unknown}{did_you_mean(unknown, options)}"
    command = re.fullmatch(r"No such command '(.*)'.*", message)
    if command:
        return f"No such command {command[1]!r}{did_you_mean(command[1], commands())}"
    choice = re.search(r"'([^']*)' is not one of (.*)$", message)
    return message + (
        did_you_mean(choice[1], re.findall(r"'([^']*)'", choice[2])) if choice else ""
    )


def _without_a_reader() -> int:
    """Whoever read the output has enough of it (``| head``): nothing to say, nobody to say it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 1


def _describe_os_error(error: OSError) -> str:
    if error.filename is None:
        return str(error)
    return f"{error.filename}: {(error.strerror or str(error)).lower()}"


def _report(message: str, code: int, hint: str = "") -> int:
    line = " ".join(message.split()).rstrip(".")
    typer.echo(f"buttress: {line}{f' ({hint})' if hint else ''}", err=True)
    return code

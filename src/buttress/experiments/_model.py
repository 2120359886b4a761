"""What an experiment is: printed cells, tasks that fill them, and a plan to run them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from buttress.experiments._papers import paper_of

# What a task gives, by cell or series, and all runs of an experiment by the same keys.
Values = dict[str, Any]
Runs = Mapping[str, list[Any]]
# Of matplotlib, which is imported only where something is drawn.
Figure = Any


@dataclass(frozen=True)
class Cell:
    """One number of a table, printed or only ours.

    Parameters
    ----------
    id : str
        What the tasks call it.
    group : str
        What ``--only`` selects by, usually the data set.
    labels : mapping
        Column of the page -> text, for example ``{"data": "sonar", "learner": "LHS"}``.
    printed : str, optional
        The paper's number exactly as printed; None where the paper has none.
    spread : str, optional
        The printed number behind it.
    spread_is : {"sd", "se"}
        Whether `spread` is a standard deviation over runs or a standard error.
    paper_runs : int
        How many runs the paper averaged.
    better : {"lower", "higher"} or None
        Which direction is an improvement; None for quantities without one, such as counts.
    unit : str
        What is measured, shown once per table.
    scale : float
        Our values are multiplied by it before they are compared.
    exact : bool
        A fact about the data: compared as it is, without standard errors.
    one_draw : bool
        The paper's number belongs to one unknown draw of a distribution over which our runs
        vary: our standard deviation is then added to its uncertainty.
    other_machine : bool
        A time, on the paper's computer: shown, never judged.
    unknown : str
        What the paper's text would have to say for the protocol to be known; empty when it is.
        Decided from the text alone.
    remark : str
        What is known about a difference.
    """

    id: str
    group: str
    labels: Mapping[str, str]
    printed: str | None = None
    spread: str | None = None
    spread_is: str = "sd"
    paper_runs: int = 1
    better: str | None = "lower"
    unit: str = ""
    scale: float = 1.0
    exact: bool = False
    one_draw: bool = False
    other_machine: bool = False
    unknown: str = ""
    remark: str = ""

    @property
    def number(self) -> float:
        """What is printed, as a number; NaN where there is none."""
        return float("nan" if self.printed in (None, "NA") else str(self.printed))


@dataclass(frozen=True)
class Task:
    """A piece of work that is done once and kept: its result fills some cells."""

    key: str
    group: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """How to run an experiment.

    Parameters
    ----------
    quick : bool
        A few runs of the smallest cases with small grids: does it work, not what it gives.
    only : tuple of str
        Groups to run; all when empty.
    cells : tuple of str
        Ids of the cells to report on; all when empty.
    words : str
        The words by which the cells were asked for.
    repeats : int, optional
        Runs per cell instead of the experiment's own number.
    jobs : int
        Processes.
    out : Path
        Folder of the results.
    seed : int
        Runs with another seed are other runs.
    finished : bool
        Compute nothing: report on what is already there.
    into : Path, optional
        A folder with an older report: the cells that this run fills are put into it, the others
        stay as they are.
    verbose : int
        Show a progress bar.
    """

    quick: bool = False
    only: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    words: str = ""
    repeats: int | None = None
    jobs: int = 1
    out: Path = Path("buttress-results")
    seed: int = 0
    finished: bool = False
    into: Path | None = None
    verbose: int = 0

    @property
    def partial(self) -> bool:
        """Whether less than the whole experiment is run: nothing is claimed about the whole."""
        return bool(self.only or self.cells)

    def runs(self, full: int, quick: int = 1) -> int:
        """The number of repetitions to make."""
        if self.repeats is not None:
            return self.repeats
        return quick if self.quick else full


@dataclass(frozen=True)
class Check:
    """A statement of the paper that a number can confirm or refute."""

    statement: str
    # None where the runs cannot tell
    holds: bool | None
    measured: str
    # One sentence on what that means, where the numbers do not say it
    meaning: str = ""
    # A question of ours: the paper makes no such statement
    ours: bool = False


@dataclass(frozen=True)
class Pair:
    """Two columns compared run by run: the same splits, the same draws."""

    what: str
    columns: str
    difference: float
    error: float


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or figure of a paper.

    Parameters
    ----------
    name : str
        As on the command line.
    title : str
    paper : str
        Citation.
    protocol : sequence of str
        Splits, scaling, grids, repetitions: what the paper says and what we do.
    cells : tuple of Cell
        Every printed number, and ours beside them.
    tasks : callable
        Plan -> tasks, in the order to run them.
    run : callable
        The plan and the arguments of a task, by name -> values by cell id; other keys are kept as
        series for the figure and the checks.
    draw : callable, optional
        (matplotlib figure, values by key) -> None. Tables have a common picture.
    check : callable, optional
        values by key -> the checks.
    fills : callable, optional
        (task, cell id) -> whether the task gives the cell a value; ``--cell`` then runs these
        tasks only. Without, it runs those of the cell's group.
    pairs : callable, optional
        values by key -> rows of (what, one, other, mean difference, standard error), shown above
        the table of cells.
    ours : bool
        Whether its checks are questions of ours, not statements of the paper.
    version : int
        Raised when the protocol changes; results of another version are not reused.
    """

    name: str
    title: str
    paper: str
    protocol: Sequence[str]
    cells: tuple[Cell, ...] = ()
    tasks: Callable[[Plan], list[Task]]
    run: Callable[..., Values]
    draw: Callable[[Figure, Runs], None] | None = None
    check: Callable[[Runs], Iterable[Check]] | None = None
    fills: Callable[[Task, str], bool] | None = None
    pairs: Callable[[Runs], list[Pair]] | None = None
    ours: bool = False
    version: int = 1

    @classmethod
    def of(cls, module: Mapping[str, Any], **facts: Any) -> Experiment:
        """The experiment of a module, which has its name and belongs to the paper named there.

        Parameters
        ----------
        module : mapping
            The module's ``globals()``. Its functions `_tasks`, `_run`, `_draw`, `_check`, `_fills`
            and `_pairs`, as far as it has them, are the experiment's.
        **facts
            What the module's names do not say.
        """
        name = module["__name__"].rpartition(".")[2].replace("_", "-")
        roles = ("tasks", "run", "draw", "check", "fills", "pairs")
        functions = {role: module[f"_{role}"] for role in roles if f"_{role}" in module}
        return cls(**{"name": name, "paper": paper_of(name), **functions, **facts})

    def cell(self, cell_id: str) -> Cell:
        """The cell with this id."""
        return next(cell for cell in self.cells if cell.id == cell_id)

    @property
    def groups(self) -> list[str]:
        """What ``--only`` accepts."""
        return list(dict.fromkeys(task.group for task in self.tasks(Plan())))

"""Cells and tasks as grids: every combination of what some axes hold, described once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from buttress.experiments._model import Cell, Plan, Task

# A printed number and the spread behind it, both as printed.
Printed = tuple[str | None, str | None]


def text_of(value: Any) -> str:
    """How a value stands in the id of a cell.

    Examples
    --------
    >>> text_of(0.05), text_of(1600), text_of("LHS")
    ('0.05', '1600', 'LHS')
    """
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def grid(
    axes: Mapping[str, Mapping[Any, str] | Iterable[Any]],
    *,
    group: str = "{}",
    printed: Mapping[str, Printed] | None = None,
    **facts: Any,
) -> tuple[Cell, ...]:
    """A cell for every combination, the last axis running fastest.

    Parameters
    ----------
    axes : mapping
        Column of the page -> its values, or its values with their texts on the page. The values,
        joined by "/", are the cell's id.
    group : str
        The cells' group; braces stand for the values.
    printed : mapping, optional
        Id -> what the paper prints, as `read_printed` gives it.
    **facts
        Of `Cell`, for all or, as a mapping, for the cells with an id or a value that is named in
        it. What is `unknown` concerns printed numbers alone.

    Examples
    --------
    >>> cells = grid({"n": (50, 90), "kernel": {"rbf": "Gaussian"}}, unit={"50": "%"})
    >>> [(cell.id, cell.group, cell.labels["kernel"], cell.unit) for cell in cells]
    [('50/rbf', '50', 'Gaussian', '%'), ('90/rbf', '90', 'Gaussian', '')]
    """
    columns = [
        axis.items() if isinstance(axis, Mapping) else [(value, text_of(value)) for value in axis]
        for axis in axes.values()
    ]
    cells = []
    for combination in product(*columns):
        keys = [text_of(value) for value, _ in combination]
        cell_id = "/".join(keys)
        number, spread = (printed or {}).get(cell_id, (None, None))
        applying = {}
        for name, fact in facts.items():
            if name == "unknown" and number is None:
                continue
            if not isinstance(fact, Mapping):
                applying[name] = fact
                continue
            named = [key for key in (cell_id, *keys) if key in fact]
            if named:
                applying[name] = fact[named[0]]
        labels = dict(zip(axes, (text for _, text in combination), strict=True))
        cells.append(Cell(cell_id, group.format(*keys), labels, number, spread, **applying))
    return tuple(cells)


def read_printed(
    text: str, keys: int, columns: Sequence[str], *, spreads: bool = True
) -> dict[str, Printed]:
    """What a table prints, by the id of the cell.

    Parameters
    ----------
    text : str
        A line for every row: its keys, then a number a column and the spread behind it, "-" where
        none is printed. An indented line belongs to the one above.
    keys : int
        How many words of a line are keys.
    columns : sequence of str
        What follows the keys in the ids.
    spreads : bool
        Whether the numbers have spreads at all.

    Examples
    --------
    >>> read_printed("sonar 17.4 0.5 15.7 -", 1, ["LHS", "SVM"])
    {'sonar/LHS': ('17.4', '0.5'), 'sonar/SVM': ('15.7', None)}
    """
    printed: dict[str, Printed] = {}
    for line in text.strip().replace("\n ", " ").splitlines():
        row, numbers = "/".join(line.split()[:keys]), line.split()[keys:]
        values = numbers[::2] if spreads else numbers
        behind = numbers[1::2] if spreads else ["-"] * len(numbers)
        for column, value, spread in zip(columns, values, behind, strict=True):
            printed[f"{row}/{column}"] = value, None if spread == "-" else spread
    return printed


def full_or_quick(full: Iterable[Any], quick: Iterable[Any]) -> Callable[[Plan], Iterable[Any]]:
    """An axis of tasks that is shorter in a quick run."""
    return lambda plan: quick if plan.quick else full


def repeats(full: int, quick: int = 1) -> Callable[[Plan], Iterable[int]]:
    """An axis of tasks: the numbers of the repetitions."""
    return lambda plan: range(plan.runs(full, quick))


def tasks_over(
    key: str, group: str = "{name}", **axes: Iterable[Any] | Callable[[Plan], Iterable[Any]]
) -> Callable[[Plan], list[Task]]:
    """A task for every combination of its arguments, the last one running fastest.

    Parameters
    ----------
    key, group : str
        Of the tasks; braces stand for the arguments.
    **axes
        Name of an argument -> its values, or a function of the plan that gives them.

    Examples
    --------
    >>> tasks = tasks_over("{name}/{repeat}", repeat=repeats(2), name=("a", "b"))
    >>> [task.key for task in tasks(Plan())]
    ['a/0', 'b/0', 'a/1', 'b/1']
    """

    def tasks(plan: Plan) -> list[Task]:
        values = [axis(plan) if callable(axis) else axis for axis in axes.values()]
        combinations = [dict(zip(axes, chosen, strict=True)) for chosen in product(*values)]
        return [Task(key.format(**each), group.format(**each), each) for each in combinations]

    return tasks

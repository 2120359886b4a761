"""One column of cells becomes numbers, text or labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from buttress.tables.grammar import has_decimal_comma, is_blank, looks_numeric, to_numbers
from buttress.tables.table import Table, TableError, objects


@dataclass(frozen=True)
class Kinds:
    """What is known of the columns of a file before it is read.

    Attributes
    ----------
    path : Path
        For the messages.
    target : str or None
        The column of labels.
    text, numeric : frozenset of str
        Columns whose kind is known.
    decimal : {".", ","}
    keep : tuple of str
        Columns also wanted as they stand in the file.
    skip : frozenset of str
        Columns that nobody looks at.
    """

    path: Path
    target: str | None = None
    text: frozenset[str] = frozenset()
    numeric: frozenset[str] = frozenset()
    decimal: str = "."
    keep: tuple[str, ...] = ()
    skip: frozenset[str] = frozenset()

    def table(
        self,
        cells: Mapping[str, Sequence[str | None]],
        lines: Sequence[int],
        label: Callable[[str], int | str],
    ) -> Table:
        """A block of rows, column by column, read at these lines of the file."""
        return Table(
            {
                name: self.column(name, column, lines, label)
                for name, column in cells.items()
                if name not in self.skip
            },
            {name: objects(cells[name]) for name in self.keep},
        )

    def column(
        self,
        name: str,
        cells: Sequence[str | None],
        lines: Sequence[int],
        label: Callable[[str], int | str],
    ) -> NDArray[Any]:
        """The cells of one column, read at these lines of the file."""
        if name == self.target:
            return objects([None if is_blank(cell) else label(cell or "") for cell in cells])
        if name not in self.text:
            try:
                return to_numbers(cells, self.decimal)
            except ValueError:
                if name in self.numeric:
                    self._refuse_text(name, cells, lines)
        return objects([None if is_blank(cell) else (cell or "").strip() for cell in cells])

    def _refuse_text(self, name: str, cells: Sequence[str | None], lines: Sequence[int]) -> None:
        line, cell = next(
            (line, cell)
            for line, cell in zip(lines, cells, strict=True)
            if cell is not None and not is_blank(cell) and not looks_numeric(cell, self.decimal)
        )
        hint = "; is the decimal mark a comma (--decimal ,)?" if has_decimal_comma(cell) else ""
        raise TableError(
            f"{self.path}, line {line}: column {name!r} is numeric, but holds {cell!r}{hint}"
        ) from None

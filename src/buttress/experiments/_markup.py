"""Blocks of a page: Markdown for a reader of files, reStructuredText for the manual."""

from __future__ import annotations

import re
from collections.abc import Sequence

Rows = Sequence[Sequence[str]]


class Markdown:
    """Collects blocks as Markdown."""

    special = "|"

    def __init__(self) -> None:
        self.blocks: list[str] = []

    def escaped(self, text: str) -> str:
        """The text with the characters that would mean something taken literally."""
        if text.startswith((":doc:", ":ref:", "**")):
            return text
        return "".join(f"\\{c}" if c in self.special else c for c in text)

    def heading(self, text: str, level: int = 1) -> None:
        """A title."""
        self.blocks.append("#" * level + " " + text)

    def paragraph(self, text: str) -> None:
        """Running text."""
        self.blocks.append(text)

    def items(self, texts: Sequence[str]) -> None:
        """A list."""
        self.blocks.append("\n".join(f"- {text}" for text in texts))

    def code(self, text: str) -> None:
        """A command."""
        self.blocks.append(f"```\n{text}\n```")

    def table(self, header: Sequence[str], rows: Rows, widths: Sequence[int] = ()) -> None:
        """A table; `widths` are shares of the page where the format knows them."""
        cells = [[self.escaped(cell) for cell in row] for row in rows]
        lines = [header, ["---"] * len(header), *cells]
        self.blocks.append("\n".join("| " + " | ".join(line) + " |" for line in lines))

    def figure(self, path: str, text: str) -> None:
        """A picture beside the page."""
        self.blocks.append(f"![{text}]({path})")

    def file(self, path: str, text: str) -> None:
        """A file beside the page."""
        self.blocks.append(f"[{text}]({path})")

    def link(self, name: str) -> str:
        """Another page, by its name."""
        return name

    def toctree(self, names: Sequence[str]) -> None:
        """The pages below this one, where the format has such a list."""

    def __str__(self) -> str:
        return "\n\n".join(self.blocks) + "\n"


class RestructuredText(Markdown):
    """Collects blocks as reStructuredText."""

    special = "|*`\\"

    def escaped(self, text: str) -> str:
        """The same; an author's initial in front is not the letter of a list."""
        return re.sub(
            r"^(?=\(?(?:[A-Za-z]|\d+|[ivxlcdmIVXLCDM]+)[.)]\s)", r"\\", super().escaped(text)
        )

    def paragraph(self, text: str) -> None:
        """Running text."""
        self.blocks.append(self.escaped(text))

    def items(self, texts: Sequence[str]) -> None:
        """A list."""
        self.blocks.append("\n".join(f"- {self.escaped(text)}" for text in texts))

    def heading(self, text: str, level: int = 1) -> None:
        """A title."""
        self.blocks.append(f"{text}\n{'=-~'[level - 1] * len(text)}")

    def code(self, text: str) -> None:
        """A command."""
        self.blocks.append(f".. code-block:: console\n\n   $ {text}")

    def table(self, header: Sequence[str], rows: Rows, widths: Sequence[int] = ()) -> None:
        """A table."""
        lines = [".. list-table::", "   :header-rows: 1"]
        if widths:
            lines.append(f"   :widths: {' '.join(map(str, widths))}")
        lines.append("")
        for row in [header, *rows]:
            for k, cell in enumerate(row):
                mark = "   * -" if k == 0 else "     -"
                lines.append(f"{mark} {self.escaped(cell)}".rstrip())
        self.blocks.append("\n".join(lines))

    def figure(self, path: str, text: str) -> None:
        """A picture beside the page."""
        self.blocks.append(f".. image:: {path}\n   :alt: {text}")

    def file(self, path: str, text: str) -> None:
        """A file beside the page."""
        self.blocks.append(f":download:`{text} <{path}>`")

    def link(self, name: str) -> str:
        """Another page, by its name."""
        return f":doc:`{name}`"

    def toctree(self, names: Sequence[str]) -> None:
        """The pages below this one."""
        entries = "\n".join(f"   {name}" for name in names)
        self.blocks.append(f".. toctree::\n   :hidden:\n\n{entries}")

"""Lines written by a stream: begun when there is something to say, taken up where they stopped."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from buttress._files import is_special, naming, replacing
from buttress.tables.stream._ahead import WriteAhead


class StreamChanged(ValueError):
    """A file of an interrupted run is not as the run left it; nothing was written."""


class Lines:
    """Lines written to a file that a resumed run can cut back, or to standard output.

    A new file is begun beside its place and renamed into it with the first lines: until a run
    has something to write, what was there before stays.

    Parameters
    ----------
    path : Path or None
        None is standard output.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.file: BinaryIO | None = None
        self.size = 0
        self._written = hashlib.sha256()
        self._ahead: WriteAhead | None = None

    def keep_ahead(self, path: Path) -> None:
        """Name the file in which lines are put down before they are written.

        It is not touched before `saved`; until then it is what an interrupted run left.
        """
        if self.path is not None and not is_special(self.path):
            self._ahead = WriteAhead(path)

    def write(self, lines: list[str]) -> None:
        """Add lines; they are in the file when the call returns."""
        if not lines:
            return
        data = ("\n".join(lines) + "\n").encode()
        if self._ahead is not None:
            self._ahead.add(data)
        if self.file is None:
            self._begin(data)
        else:
            self._add(data)
        self._written.update(data)
        self.size += len(data)

    def _begin(self, data: bytes) -> None:
        if self.path is None:
            self.file = sys.stdout.buffer
        elif is_special(self.path):
            self.file = self.path.open("ab")
        else:
            with replacing(self.path) as file:
                file.write(data)
            self.file = self.path.open("r+b")
            self.file.seek(0, os.SEEK_END)
            return
        self._add(data)

    def _add(self, data: bytes) -> None:
        assert self.file is not None
        with naming("standard output" if self.path is None else self.path):
            self.file.write(data)
            self.file.flush()

    def sync(self) -> None:
        """Have everything on disk."""
        if self.file is not None and self.path is not None and not is_special(self.path):
            with naming(self.path):
                os.fsync(self.file.fileno())

    def saved(self) -> None:
        """All lines are in a checkpoint, or there are none yet."""
        if self._ahead is not None:
            self._ahead.begin(self.size)

    def close(self, *, make: bool = True, whole: bool = False) -> None:
        """The end.

        Parameters
        ----------
        make : bool
            Whether a file without a line is made too.
        whole : bool
            Whether what an interrupted `write` has left half done is cut off.
        """
        if self.path is None:
            return
        if make:
            self.make()
        if self.file is not None:
            if whole and not is_special(self.path):
                self.file.truncate(self.size)
            self.file.close()

    def make(self) -> None:
        """Have a file, even without a line; an older one goes."""
        if self.path is not None and self.file is None:
            self._begin(b"")

    def close_ahead(self) -> None:
        """No line follows: what was put down stays only if a resumed run has to compare with it."""
        if self._ahead is not None:
            self._ahead.close()

    # -- an interrupted run ------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """How much was written, and a fingerprint of it."""
        return {"size": self.size, "sha256": self._written.hexdigest()}

    def check(self, state: Mapping[str, Any], is_own: Callable[[str], bool]) -> None:
        """Raise unless the file is what the run has left; nothing is changed.

        Parameters
        ----------
        state : mapping
            From `state`, at the last checkpoint.
        is_own : callable
            Whether a line looks like one of the run, where nothing better is known: the machine
            itself went down.

        Raises
        ------
        StreamChanged
        """
        size = int(state["size"])
        if self.path is None:
            return
        if is_special(self.path):
            if size:
                raise StreamChanged(
                    f"{self.path} is no file: what was written there cannot be checked"
                )
            return
        if not self.path.exists():
            if size:
                raise StreamChanged(
                    f"{self.path} is missing: the run has written {size} bytes to it"
                )
            return
        written = hashlib.sha256()
        with self.path.open("rb") as file:
            while (got := file.tell()) < size:
                chunk = file.read(min(size - got, 1 << 20))
                if not chunk:
                    raise StreamChanged(
                        f"{self.path} was cut: it has {got} of the {size} bytes that were written"
                    )
                written.update(chunk)
            if written.hexdigest() != state["sha256"]:
                raise StreamChanged(f"{self.path} is not what the run has written, or was changed")
            self._check_rest(file, is_own)
        self._written = written

    def _check_rest(self, file: BinaryIO, is_own: Callable[[str], bool]) -> None:
        """Raise unless what stands behind the last checkpoint was written before a crash."""
        size, length = file.tell(), os.fstat(file.fileno()).st_size
        if length == size:
            return
        known = size if self._ahead is None else size + self._ahead.length_in_common(file)
        if known == length:
            return
        if self._ahead is not None and self._ahead.is_of_another_life():
            file.seek(size)
            # The last line may be half of one.
            if all(is_own(line.decode(errors="replace")) for line in file.read().split(b"\n")[:-1]):
                warnings.warn(
                    f"the machine was started again since the last checkpoint: the {length - size} "
                    f"bytes of {self.path} behind it are written anew.",
                    UserWarning,
                    stacklevel=2,
                )
                return
        file.seek(known)
        strange = file.read(60)
        if not known:
            raise StreamChanged(
                f"{self.path} begins with {strange!r}, which the run to resume has not written; "
                "move the file away"
            )
        raise StreamChanged(
            f"{self.path} has lines behind those of the run, from byte {known} on: {strange!r}; "
            f"to resume, cut the file there (truncate -s {known})"
        )

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on behind the last checkpoint, after `check`: what was written after it goes."""
        self.size = int(state["size"])
        if self.path is None or is_special(self.path) or not self.path.exists():
            return
        self.file = self.path.open("r+b")
        self.file.truncate(self.size)
        self.file.seek(self.size)

"""What a run is about to write, put down first: it tells the run's lines from others later."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import BinaryIO

from buttress._files import naming

# First line of the file: where its copy begins in the output, and in which life of the machine.
_HEADER = "buttress stream ahead 1 {begins} {life}\n"
_HEADER_PATTERN = re.compile(rb"buttress stream ahead 1 (\d{1,18}) ([0-9a-f-]*)\n")
_LONGEST_HEADER = 128

# Linux draws this anew whenever it starts. Elsewhere a restart goes unnoticed.
_LIFE_OF_THE_MACHINE = Path("/proc/sys/kernel/random/boot_id")

_CHUNK = 1 << 20


class WriteAhead:
    """A copy of the lines since the last checkpoint, each made before the line itself is written.

    A crash between two checkpoints leaves an output that is longer than its checkpoint says. What
    stands behind is the run's own if, and only if, it is the beginning of this copy: lines end
    anywhere when a process is killed, and so does the copy, but never before they do. Only a
    machine that goes down may have saved the one and lost the other.

    Parameters
    ----------
    path : Path
        Made by `begin`; a file that a killed run left there is read until then.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._has_lines = False

    def begin(self, size: int) -> None:
        """Forget what was put down: everything to `size` is in a checkpoint, and nothing is behind.

        A crash within this call is harmless: the output has no line to compare then.
        """
        with naming(self.path):
            if self._descriptor < 0:
                binary = getattr(os, "O_BINARY", 0)
                self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | binary, 0o600)
            os.ftruncate(self._descriptor, 0)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            self._write(_HEADER.format(begins=size, life=_life()).encode())
            # Only once a checkpoint: it says in which life of the machine the lines were written.
            os.fsync(self._descriptor)
        self._has_lines = False

    def add(self, data: bytes) -> None:
        """Put down what is written next."""
        self._has_lines = True
        with naming(self.path):
            self._write(data)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def close(self) -> None:
        """The end; the file stays only if there are lines that no checkpoint knows."""
        if self._descriptor < 0:
            return
        os.close(self._descriptor)
        self._descriptor = -1
        if not self._has_lines:
            self.path.unlink(missing_ok=True)

    # -- after a crash -------------------------------------------------------------------------

    def length_in_common(self, output: BinaryIO) -> int:
        """How many bytes of an output, from where it stands on, were to be written just there."""
        begins, _ = self._read_header()
        start = output.tell()
        if begins is None or begins > start:
            return 0
        common = 0
        with self.path.open("rb") as file:
            file.readline(_LONGEST_HEADER)
            file.seek(start - begins, os.SEEK_CUR)
            while chunk := output.read(_CHUNK):
                copied = file.read(len(chunk))
                if copied != chunk:
                    pairs = enumerate(zip(chunk, copied, strict=False))
                    same = next((i for i, (one, two) in pairs if one != two), len(copied))
                    return common + same
                common += len(chunk)
        return common

    def is_of_another_life(self) -> bool:
        """Whether the machine was started again since: the copy may have lost its end then."""
        begins, life = self._read_header()
        return begins is not None and life != "" and life != _life()

    def _read_header(self) -> tuple[int | None, str]:
        try:
            with self.path.open("rb") as file:
                header = _HEADER_PATTERN.fullmatch(file.readline(_LONGEST_HEADER))
        except FileNotFoundError:
            header = None
        return (None, "") if header is None else (int(header[1]), header[2].decode())


def _life() -> str:
    try:
        return _LIFE_OF_THE_MACHINE.read_text(encoding="ascii").strip()
    except OSError:
        return ""

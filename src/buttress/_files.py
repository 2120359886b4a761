"""Files that are either the old version or the new one, never half of it, and never the input."""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

# Ends the name of every file that is being written; with a name of its own before it, so that a
# sweep cannot take a user's file for a forgotten one.
_UNFINISHED = ".buttress-part"
# Those of this process, for an exit that runs no `finally`.
_open_now: set[str] = set()
# What this process has put in its place.
_published: list[str] = []
# What a write says of the disk rather than of whatever else the block was doing.
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}

# Where the system lists the files that a process has open, each under its number.
_DESCRIPTORS = re.compile(r"/dev/fd|/proc/\d+(/task/\d+)?/fd")
# As many as the system follows.
_MOST_LINKS = 40


class FileClash(ValueError):
    """An output that would destroy an input or another output."""


@contextmanager
def replacing(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a temporary file beside `path` and rename it over `path` when the block succeeds.

    The data are flushed to disk before the rename, so a crash at any moment leaves the old
    file or the complete new one. When the block raises, `path` is untouched. A link stays a
    link: what it points to is replaced. A device or a pipe is written to as it is. Temporary
    files that a killed process left beside `path` are removed.

    Parameters
    ----------
    path : path-like
        The file to replace.
    mode : {"wb", "w"}
        Binary, or UTF-8 text.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> with replacing(target, "w") as file:
    ...     _ = file.write("done")
    >>> target.read_text()
    'done'
    """
    encoding = None if "b" in mode else "utf-8"
    if is_special(path):
        # "wb" would cut off what a `>> file` behind /dev/stdout is to keep.
        with naming(path, _NO_ROOM), open(path, mode.replace("w", "a"), encoding=encoding) as file:
            yield file
        return
    written = Part(path)
    with naming(path, _NO_ROOM):
        try:
            with os.fdopen(written.descriptor, mode, encoding=encoding, closefd=False) as file:
                yield file
            written.publish()
        finally:
            written.close()


class Part:
    """A file being written beside its target, under a name that says so.

    It is locked while its process lives: a part without a lock is what a killed process left
    behind, and the next `Part` of the same target removes it.

    Parameters
    ----------
    path : path-like
        The target.

    Attributes
    ----------
    descriptor : int
        Open for writing.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.shown = os.fspath(path)
        self.target = Path(os.path.realpath(path))
        folder = self.target.parent
        if not folder.is_dir():
            raise FileNotFoundError(f"{self.shown}: there is no directory {folder}")
        sweep(self.target)
        self.published = False
        while True:
            self.descriptor, self.name = tempfile.mkstemp(
                prefix=f".{self.target.name}.", suffix=_UNFINISHED, dir=folder
            )
            _open_now.add(self.name)
            lock(self.descriptor)
            # Between the two calls a sweep may have taken it for a forgotten one.
            if os.path.exists(self.name):
                return
            self.close()

    def publish(self) -> None:
        """Put what was written on disk, and then in the target's place."""
        with naming(self.shown):
            os.fsync(self.descriptor)
            os.chmod(self.name, _permissions(self.target))
            if os.name == "nt":  # where an open file cannot be renamed
                self._close_descriptor()
            os.replace(self.name, self.target)
            self.published = True
            _published.append(self.shown)
            _open_now.discard(self.name)
            _sync_directory(self.target.parent)

    def close(self) -> None:
        """Close the file, and remove it unless it was published."""
        self._close_descriptor()
        if not self.published:
            Path(self.name).unlink(missing_ok=True)
            _open_now.discard(self.name)

    def _close_descriptor(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def published() -> list[str]:
    """The files that this process has replaced or made, in order and once each."""
    return list(dict.fromkeys(_published))


def note_written(path: str | os.PathLike[str]) -> None:
    """Count a file that is written in its place, as a store is, among the published ones."""
    _published.append(os.fspath(path))


def forget_published() -> None:
    """Begin a new list for `published`."""
    _published.clear()


def remove_unfinished() -> None:
    """Remove this process's temporary files, before an exit that runs no `finally`."""
    for name in list(_open_now):
        with suppress(OSError):
            os.unlink(name)


def sweep(path: str | os.PathLike[str]) -> list[str]:
    """Remove the temporary files of `path` whose process is gone, and return their names."""
    target = Path(os.path.realpath(path))
    removed = []
    start = f".{target.name}."
    for entry in os.scandir(target.parent):
        middle = entry.name[len(start) : -len(_UNFINISHED)]
        ours = entry.name.startswith(start) and entry.name.endswith(_UNFINISHED)
        if not ours or not entry.is_file(follow_symlinks=False) or "." in middle:
            continue
        with suppress(OSError):
            descriptor = os.open(entry.path, os.O_RDWR)
            try:
                if lock(descriptor):
                    os.unlink(entry.path)
                    removed.append(entry.path)
            finally:
                os.close(descriptor)
    return removed


def lock(descriptor: int) -> bool:
    """Lock an open file until it is closed or its process ends; False when another has it.

    Where a file system or a platform has no such locks, everybody gets it.
    """
    try:
        import fcntl
    except ImportError:  # Windows, where nobody can remove a file that is open
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def held_by_one(path: str | os.PathLike[str], busy: str) -> Iterator[None]:
    """Keep every other process out of this block, for the same `path`, while it runs.

    Parameters
    ----------
    path : path-like
        Need not exist. The lock is a file beside it that goes when the block ends, and is
        taken over when its process was killed.
    busy : str
        Message of the `BlockingIOError` when another process holds it.
    """
    target = Path(os.path.realpath(path))
    name = target.with_name(f".{target.name}.lock")
    while True:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        if not lock(descriptor):
            os.close(descriptor)
            raise BlockingIOError(busy)
        # The one who held it may have removed the file in between.
        if os.path.exists(name) and os.path.samestat(os.fstat(descriptor), os.stat(name)):
            break
        os.close(descriptor)
    _open_now.add(str(name))
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(name)
        _open_now.discard(str(name))
        os.close(descriptor)


# -- what must not be the same file ------------------------------------------------------------


def refuse_clashes(
    inputs: Iterable[str | os.PathLike[str] | None],
    outputs: Mapping[str, str | os.PathLike[str] | None],
) -> None:
    """Raise when a file to write is a file to read, or is to be written twice.

    Links are followed, in both directions: two names of one file are one file, /dev/stdin of a
    file that the shell has opened among them. Devices and pipes are not looked at.

    Parameters
    ----------
    inputs : iterable of path-like or None
        A directory stands for everything in it.
    outputs : mapping of str to path-like or None
        By the name of the option that asks for it.

    Raises
    ------
    FileClash
        Naming the option and the file.

    Examples
    --------
    >>> refuse_clashes(["rows.csv"], {"--out": "./rows.csv"})
    Traceback (most recent call last):
    ...
    buttress._files.FileClash: --out rows.csv: is the input, which it would overwrite
    """
    written = {
        option: Path(path)
        for option, path in outputs.items()
        if path is not None and not is_device(path)
    }
    reads = [Path(path) for path in inputs if path is not None and not is_device(path)]
    for option, path in written.items():
        for read in reads:
            if same_file(path, read):
                raise FileClash(f"{option} {path}: is the input, which it would overwrite")
            real = os.path.realpath(path)
            inside = real.startswith(os.path.realpath(read) + os.sep)
            if read.is_dir() and inside and os.path.exists(real):
                raise FileClash(f"{option} {path}: is a file of the input {read}")
    options = list(written)
    for position, option in enumerate(options):
        for earlier in options[:position]:
            if same_file(written[option], written[earlier]):
                raise FileClash(f"{option} {written[option]}: is the same file as {earlier}")


def same_file(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> bool:
    """Whether two names are of one file, or would be once it exists."""
    try:
        return os.path.samefile(first, second)
    except OSError:
        paths = [os.path.normcase(os.path.realpath(path)) for path in (first, second)]
        return paths[0] == paths[1]


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a device, a pipe, or the name of an open file: written to, not replaced."""
    return is_device(path) or (os.path.exists(path) and _names_descriptor(path))


def is_device(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a device, a pipe or a socket: read once, from its start to its end."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _names_descriptor(path: str | os.PathLike[str]) -> bool:
    """Whether a path leads to an entry of the table of open files, as /dev/stdout does."""
    name = os.fspath(path)
    for _ in range(_MOST_LINKS):
        folder = os.path.realpath(os.path.dirname(name))
        if _DESCRIPTORS.fullmatch(folder):
            return True
        if not os.path.islink(name):
            return False
        name = os.path.join(folder, os.readlink(name))
    return False


@contextmanager
def naming(path: str | os.PathLike[str], only: set[int] | None = None) -> Iterator[None]:
    """An error of the disk says which file it concerns."""
    try:
        yield
    except OSError as error:
        about_it = error.errno is not None and (only is None or error.errno in only)
        if error.filename is None and about_it:
            error.filename = os.fspath(path)
        raise


def _permissions(target: Path) -> int:
    """Keep the permissions of the file replaced; a new file gets what the umask allows."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync_directory(directory: Path) -> None:
    # The rename itself is durable only once the directory is; Windows has no such call.
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Files that are no tables of text: what they are, told by their first bytes, and the remedy."""

from __future__ import annotations

from pathlib import Path

# The first bytes of a kind of file, what it is, and what to do with it.
_KINDS = (
    (b"\x1f\x8b", "is compressed with gzip: end its name in .gz, or unpack it first"),
    (b"BZh", "is compressed with bzip2: unpack it first (bunzip2)"),
    (b"\xfd7zXZ\x00", "is compressed with xz: unpack it first (unxz)"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd: unpack it first (unzstd)"),
    (b"PAR1", "is a Parquet file: end its name in .parquet"),
    (b"ARROW1", "is an Arrow (Feather) file: write it as Parquet"),
    (b"SQLite format 3", "is an SQLite database: write its table as CSV"),
    (b"\xd0\xcf\x11\xe0", "is a spreadsheet: save it as CSV (UTF-8)"),
    (b"\xff\xfe", "is text in UTF-16: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)"),
    (b"\xfe\xff", "is text in UTF-16: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)"),
)
_ZIP = b"PK\x03\x04"
_SPREADSHEETS = (".xlsx", ".xlsm", ".ods")
_LONGEST = 512

# Of a file that is none of these and no UTF-8 either.
NOT_UTF8 = (
    "not a text file in UTF-8: save it as UTF-8 (iconv -f LATIN1 -t UTF-8, if that is what it is)"
)


def other_kind(path: Path) -> str:
    """What a file is that is no text in UTF-8, with what to do about it; empty for all others.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = file.write_bytes("a,b".encode("utf-16"))
    >>> other_kind(file)
    'is text in UTF-16: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)'
    """
    with path.open("rb") as file:
        start = file.read(_LONGEST)
    if start.startswith(_ZIP):
        if path.suffix.lower() in _SPREADSHEETS:
            return "is a spreadsheet: save it as CSV (UTF-8)"
        return "is a ZIP archive: unpack it first"
    return next((what for first, what in _KINDS if start.startswith(first)), "")

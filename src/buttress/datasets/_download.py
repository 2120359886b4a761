"""Fetch a data set from its public source and store it in the library's own plain format."""

from __future__ import annotations

import csv
import hashlib
import io
import urllib.request
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from buttress._files import replacing
from buttress.datasets._records import Ida, Libsvm, OpenML, Record, Text
from buttress.datasets.registry import ADDRESSES, IDA_SHA256, IDA_URL

Get = Callable[[str], bytes]

# Names of the features, cells as text, labels as text.
Table = tuple[list[str], list[list[str]], list[str]]


def get(url: str) -> bytes:
    """The content behind an https address."""
    request = urllib.request.Request(url, headers={"User-Agent": "buttress"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return bytes(response.read())


def download(record: Record, folder: Path, fetch: Get | None = None) -> Path:
    """Store the raw rows of a data set as ``<name>.csv`` with a checksum file beside it.

    Parameters
    ----------
    record : Record
    folder : Path
        Created when missing.
    fetch : callable, optional
        Takes an address, returns bytes. OpenML sets go through scikit-learn instead.

    Returns
    -------
    Path
        The file written. Its shape and class counts are those of the record, otherwise
        ValueError is raised and nothing is kept.
    """
    fetch = get if fetch is None else fetch
    source = record.source
    if isinstance(source, Ida):
        table = _from_ida(source, record, folder, fetch)
    elif isinstance(source, Text):
        table = _from_text(source, fetch)
    elif isinstance(source, Libsvm):
        table = _from_libsvm(source, record.features, fetch)
    elif isinstance(source, OpenML):
        table = _from_openml(source)
    else:
        table = _from_scikit_learn()
    _verify(record, table)
    names, rows, labels = table
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record.name}.csv"
    with replacing(path, "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, "label"])
        writer.writerows([*row, label] for row, label in zip(rows, labels, strict=True))
    with replacing(path.with_suffix(".csv.sha256"), "w") as file:
        file.write(checksum(path) + "\n")
    return path


def checksum(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _verify(record: Record, table: Table) -> None:
    _, rows, labels = table
    features = len(rows[0]) if rows else 0
    positives = sum(label in record.positive_labels for label in labels)
    counted = (len(rows), features, positives)
    expected = (record.rows, record.features, record.positives)
    if counted != expected:
        raise ValueError(
            f"the source of data set {record.name!r} has changed: expected (rows, features, "
            f"positives) = {expected}, got {counted}"
        )


def _address(url: str) -> str:
    prefix, _, path = url.partition(":")
    return ADDRESSES[prefix] + path


def _generic_names(count: int) -> list[str]:
    return [f"x{i + 1}" for i in range(count)]


def _from_text(source: Text, fetch: Get) -> Table:
    contents: list[bytes] = []
    for url in source.urls:
        content = fetch(_address(url))
        if source.member:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                contents.extend(archive.read(name) for name in source.member)
        else:
            contents.append(content)
    header = source.header
    skips = header if isinstance(header, tuple) else (header,) * len(contents)
    rows: list[list[str]] = []
    labels: list[str] = []
    for content, skip in zip(contents, skips, strict=True):
        lines = [line for line in content.decode("utf-8").splitlines() if line.strip()]
        for cells in _split(lines[skip:], source.separator):
            label = cells[source.label]
            label_at = source.label % len(cells)
            unused = {label_at, *source.drop}
            rows.append([cell for i, cell in enumerate(cells) if i not in unused])
            labels.append(source.rename.get(label, label))
    return _generic_names(len(rows[0])), rows, labels


def _split(lines: Sequence[str], separator: str | None) -> list[list[str]]:
    if separator is None:
        cells = [line.split() for line in lines]
    else:
        cells = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    return [["" if cell.strip() == "?" else cell.strip() for cell in row] for row in cells]


def _from_libsvm(source: Libsvm, features: int, fetch: Get) -> Table:
    from sklearn.datasets import load_svmlight_file

    rows: list[list[str]] = []
    labels: list[str] = []
    for url in source.urls:
        X, y = load_svmlight_file(io.BytesIO(fetch(_address(url))), n_features=features)
        rows.extend([f"{value:g}" for value in row] for row in X.toarray())
        labels.extend(f"{value:g}" for value in y)
    return _generic_names(features), rows, labels


def _from_openml(source: OpenML) -> Table:
    from sklearn.datasets import fetch_openml

    # The values are stored in our own cache; scikit-learn checks OpenML's own checksum.
    bunch = fetch_openml(data_id=source.data_id, as_frame=False, parser="liac-arff", cache=False)
    categories: dict[str, Any] = bunch.categories or {}
    columns: list[list[str]] = []
    names: list[str] = []
    for name, values in zip(bunch.feature_names, np.asarray(bunch.data).T, strict=True):
        if name in source.drop:
            continue
        names.append(name)
        columns.append([_cell(value, categories.get(name)) for value in values])
    labels = [source.rename.get(str(label), str(label)) for label in bunch.target]
    return names, [list(row) for row in zip(*columns, strict=True)], labels


def _cell(value: Any, levels: Sequence[Any] | None) -> str:
    if value is None or value != value:
        return ""
    # Without a data frame scikit-learn gives nominal features as positions in their levels.
    return str(levels[int(value)]) if levels is not None else repr(float(value))


def _from_scikit_learn() -> Table:
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    rows = [[repr(float(value)) for value in row] for row in bunch.data]
    return list(bunch.feature_names), rows, [str(bunch.target_names[code]) for code in bunch.target]


def _from_ida(source: Ida, record: Record, folder: Path, fetch: Get) -> Table:
    from scipy.io import loadmat

    content = fetch(IDA_URL)
    digest = hashlib.sha256(content).hexdigest()
    if digest != IDA_SHA256:
        raise ValueError(f"the IDA archive has checksum {digest}, expected {IDA_SHA256}")
    stored = loadmat(io.BytesIO(content), variable_names=[source.key])[source.key][0, 0]
    X, y = np.asarray(stored["x"], dtype=float), np.asarray(stored["t"]).ravel()
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / f"{record.name}.splits.npz") as file:
        np.savez_compressed(
            file,
            train=np.asarray(stored["train"], dtype=np.int32) - 1,
            test=np.asarray(stored["test"], dtype=np.int32) - 1,
            rep=np.arange(1, len(stored["train"]) + 1),
        )
    rows = [[repr(float(value)) for value in row] for row in X]
    return _generic_names(X.shape[1]), rows, [f"{value:g}" for value in y]

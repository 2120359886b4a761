"""Save and load models with skops."""

from __future__ import annotations

import copy
import os
import zipfile
from pathlib import Path
from typing import Any

from buttress._files import replacing
from buttress.persistence._limits import TooLarge, check_archive
from buttress.persistence._reader import NotPlain, read_plain
from buttress.persistence._sound import check_answers, check_structures, fill_new_parameters
from buttress.persistence._trusted import trusted_types
from buttress.persistence._writer import write_plain
from buttress.persistence.container import ModelFileError, seal, unseal


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted model to a file.

    Needs skops (extra ``export``) for models that hold more than estimators, numbers, text and
    arrays, such as trees. The file is written beside `path` and renamed, so an interrupted call
    leaves the old file or none.

    Parameters
    ----------
    model : estimator
        Any estimator of this library or of scikit-learn, alone or inside each other, with the
        classes of both in its parameters.
    path : path-like
        The file to write, by custom with the suffix ``.skops``.

    Raises
    ------
    ModelFileError
        When the model holds something that `load` would refuse (a callable kernel, an object
        of a third library); it is named, and nothing is written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.svm import SVC
    >>> from buttress import load, save
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "model.skops"
    >>> save(SVC().fit([[0.0], [1.0]], ["no", "yes"]), file)
    >>> load(file).predict([[0.9]])
    array(['yes'], dtype='<U3')
    """
    what = f"{type(model).__name__} cannot be saved"
    if hasattr(model, "_skl_callbacks"):  # those who watched the fit are no part of the model
        model = copy.copy(model)
        del model._skl_callbacks
    try:
        archive = _packed(model, zipfile.ZIP_DEFLATED, what)
        try:
            check_archive(archive)
        except TooLarge:
            archive = _packed(model, zipfile.ZIP_STORED, what)
            check_archive(archive)
    except (ModelFileError, ImportError):
        raise
    except Exception as error:
        raise ModelFileError(f"{what}: {error}") from error
    with replacing(path) as file:
        file.write(seal(archive))


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model saved by `save`, without running any code of the file.

    Needs skops (extra ``export``) for models that hold more than estimators of this library and
    numbers, such as trees.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        When the file is no model, is malformed, was changed after it was saved, was written in
        another format, would unpack to far more than its size, or holds a type that is not
        trusted (it is named).

    Notes
    -----
    Models of older versions with the same format load: parameters that did not exist then get
    their defaults. Kernel machines are asked about one row of zeros, so a file whose arrays do not
    fit together is refused here and not at the first prediction.
    """
    return describe(path)[0]


def describe(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """Load a model together with what its file says of itself.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    estimator
    dict
        ``format``, the versions that wrote the file, ``saved`` (time), ``bytes`` and
        ``sha256``.
    """
    data = Path(path).read_bytes()
    description = unseal(data, str(path))
    try:
        check_archive(data)
        model = _unpacked(data, str(path))
        check_structures(model)
        fill_new_parameters(model)
        check_answers(model)
    except (ModelFileError, ImportError):
        raise
    except TooLarge as error:
        raise ModelFileError(f"{path}: refused: {error}") from None
    except Exception as error:  # whatever a malformed archive makes of zip, JSON, NumPy and skops
        raise ModelFileError(
            f"{path}: the file is malformed ({type(error).__name__}: {error})"
        ) from None
    return model, description | {"bytes": len(data), "sha256": data[-64:].decode()}


def _packed(model: Any, compression: int, what: str) -> bytes:
    """The archive of a model, by skops where it holds more than plain parts."""
    try:
        return write_plain(model, trusted_types, compression)
    except NotPlain:
        skops_io = _import_skops()
        archive: bytes = skops_io.dumps(model, compression=compression)
        _refuse_foreign_types(skops_io, archive, what)
        return archive


def _unpacked(data: bytes, name: str) -> Any:
    """The object in a file, by skops where it holds more than plain parts."""
    try:
        return read_plain(data, trusted_types)
    except NotPlain:
        skops_io = _import_skops()
        trusted = _refuse_foreign_types(skops_io, data, f"{name}: refused")
        return skops_io.loads(data, trusted=sorted(trusted))


def _refuse_foreign_types(skops_io: Any, data: bytes, what: str) -> frozenset[str]:
    named = skops_io.get_untrusted_types(data=data)
    trusted = trusted_types(named)
    foreign = sorted(set(named) - trusted)
    if foreign:
        modules = [name.rpartition(".")[0] for name in foreign]
        users = [one for one in modules if not one.startswith(("buttress.", "sklearn."))]
        remedy = f"; import {users[0]} first if it is yours" if users else ""
        raise ModelFileError(f"{what}: it holds the untrusted type {', '.join(foreign)}{remedy}")
    return trusted


def _import_skops() -> Any:
    try:
        import skops.io
    except ImportError:
        raise ImportError("saved models need skops: pip install 'buttress[export]'") from None
    return skops.io

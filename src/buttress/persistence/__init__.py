"""Models in files: saved without pickle, loaded without running code, exported to ONNX or JSON.

`models` saves and loads through one container (`container`, `_writer`, `_reader`) that names the
format's version; `onnx` and `json_export` write programs that need no Python. A newcomer who adds
an estimator has nothing to do here: a model file may hold what its own package lists (`_trusted`).
A new form of export is one module beside `json_export`. Others import the names below.
"""

from buttress._lazy import attach

_HOME = {
    "ModelFileError": "container",
    "describe": "models",
    "load": "models",
    "save": "models",
    "to_json": "json_export",
    "to_onnx": "onnx",
    "trusted_types": "_trusted",
}

__all__ = list(_HOME)

__getattr__, __dir__ = attach(__name__, _HOME)

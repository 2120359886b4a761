"""Models in files: saved without pickle, loaded without running code, exported to ONNX or JSON."""

from buttress._lazy import attach

_HOME = {
    "ModelFileError": "_container",
    "describe": "models",
    "load": "models",
    "save": "models",
    "to_json": "json_export",
    "to_onnx": "onnx",
    "trusted_types": "_trusted",
}

__all__ = list(_HOME)

__getattr__, __dir__ = attach(__name__, _HOME)

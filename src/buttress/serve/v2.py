"""The Open Inference Protocol (V2) of KServe, MLServer and Triton, in its JSON form.

A request has one tensor with all numeric columns in the model's order, or one tensor per column.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from buttress._version import __version__
from buttress.serve.errors import RequestError
from buttress.serve.model import ServedAnswers, ServedModel
from buttress.serve.rows import RequestRows, read_json, write_json
from buttress.serve.service import Service

_NUMBERS = {
    *("FP16", "FP32", "FP64"),
    *(f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)),
}

Answer = Callable[[Request], Awaitable[Response]]


class V2:
    """Handlers of the protocol.

    Parameters
    ----------
    service : Service
    read_body : callable
        Reads a request's body within the limits.
    """

    def __init__(self, service: Service, read_body: Callable[[Request], Awaitable[bytes]]) -> None:
        self.service = service
        self._read_body = read_body

    def addresses(self) -> list[tuple[str, Answer, str]]:
        """Path, handler and method."""
        model = "/v2/models/{name}"
        version = model + "/versions/{version}"
        return [
            ("/v2", self.server, "GET"),
            ("/v2/health/live", self.live, "GET"),
            ("/v2/health/ready", self.ready, "GET"),
            *(
                (base + end, answer, method)
                for base in (model, version)
                for end, answer, method in (
                    ("", self.metadata, "GET"),
                    ("/ready", self.model_ready, "GET"),
                    ("/infer", self.infer, "POST"),
                )
            ),
        ]

    async def server(self, request: Request) -> Response:
        """Who answers."""
        return JSONResponse({"name": "buttress", "version": __version__, "extensions": []})

    async def live(self, request: Request) -> Response:
        """The process is alive."""
        return JSONResponse({"live": True})

    async def ready(self, request: Request) -> Response:
        """The process takes requests."""
        ready = self.service.ready
        return JSONResponse({"ready": ready}, 200 if ready else 503)

    def _model(self, request: Request) -> ServedModel:
        model = self.service.model
        if request.path_params["name"] != self.service.name:
            raise RequestError(f"there is no such model; this is {self.service.name!r}", 404)
        if request.path_params.get("version", model.version) != model.version:
            raise RequestError(f"there is no such version; this is {model.version!r}", 404)
        return model

    async def model_ready(self, request: Request) -> Response:
        """The model takes requests."""
        model = self._model(request)
        return JSONResponse(
            {"name": self.service.name, "ready": self.service.ready, "version": model.version}
        )

    async def metadata(self, request: Request) -> Response:
        """Names and types of the tensors."""
        model = self._model(request)
        columns = model.columns
        each = [-1, len(model.classes)]
        outputs = [
            _described("label", _label_type(model), [-1]),
            _described("refused", "BOOL", [-1]),
        ]
        if model.has_margin:
            outputs.append(_described("margin", "FP64", [-1] if len(model.classes) == 2 else each))
        if model.has_probability:
            outputs.append(_described("probability", "FP64", each))
        inputs = [
            _described(name, "FP64" if name in columns.numeric else "BYTES", [-1])
            for name in columns.names
        ]
        return JSONResponse(
            {
                "name": self.service.name,
                "versions": [model.version],
                "platform": "buttress",
                "inputs": inputs,
                "outputs": outputs,
            }
        )

    async def infer(self, request: Request) -> Response:
        """Answer the rows of some tensors."""
        self._model(request)
        if "inference-header-content-length" in request.headers:
            raise RequestError(
                "binary tensors are not accepted; send JSON (binary_data=False)", 415
            )
        content = read_json(await self._read_body(request), "the body")
        if not isinstance(content, dict) or not isinstance(content.get("inputs"), list):
            raise RequestError('expected {"inputs": [...]}')
        rows = self._rows(content["inputs"])
        if len(rows) > self.service.settings.most_rows:
            raise RequestError(f"more than {self.service.settings.most_rows} rows", 413)
        model, answers = await self.service.predict(rows)
        asked = content.get("outputs")
        wanted = None
        if asked is not None:
            if not isinstance(asked, list) or not all(isinstance(each, dict) for each in asked):
                raise RequestError('"outputs" must be a list of objects')
            wanted = [each.get("name") for each in asked]
        outputs = _outputs(model, answers, wanted)
        told: dict[str, Any] = {
            "model_name": self.service.name,
            "model_version": model.version,
            "outputs": outputs,
        }
        if isinstance(content.get("id"), str):
            told["id"] = content["id"]
        return Response(write_json(told), media_type="application/json")

    def _rows(self, inputs: list[Any]) -> RequestRows:
        tensors = [_tensor(each) for each in inputs]
        names = self.service.model.columns.names
        if len(tensors) == 1 and (len(names) > 1 or tensors[0][0] not in names):
            name, shape, data = tensors[0]
            if len(shape) != 2 or shape[1] != len(names):
                raise RequestError(
                    f"the tensor {name!r} has the shape {shape}, expected [rows, {len(names)}]"
                )
            width = shape[1]
            values = [data[i : i + width] for i in range(0, len(data), width)]
            return _some(RequestRows(tuple(names), values, "json"))
        if len({name for name, _, _ in tensors}) < len(tensors):
            raise RequestError("a tensor appears twice")
        for name, shape, data in tensors:
            if len(data) != shape[0]:
                raise RequestError(f"the tensor {name!r} must have one value per row")
        if len({len(data) for _, _, data in tensors}) > 1:
            raise RequestError("the tensors have different numbers of rows")
        columns = zip(*(data for _, _, data in tensors), strict=True)
        return _some(RequestRows(tuple(name for name, _, _ in tensors), list(columns), "json"))


def _some(rows: RequestRows) -> RequestRows:
    if not len(rows):
        raise RequestError("there are no rows in the request")
    return rows


def _tensor(given: Any) -> tuple[str, list[int], list[Any]]:
    """Name, shape and flat data of a tensor."""
    if not isinstance(given, dict) or not isinstance(given.get("name"), str):
        raise RequestError("every input needs a name, a shape, a datatype and data")
    name = given["name"][:80]
    shape, data, kind = given.get("shape"), given.get("data"), given.get("datatype")
    sizes = isinstance(shape, list) and all(type(s) is int and 0 <= s < 2**31 for s in shape)
    if not sizes or not shape or not isinstance(data, list):
        raise RequestError(f"the tensor {name!r} needs a shape and data")
    assert isinstance(shape, list)
    if kind not in _NUMBERS and kind != "BYTES":
        raise RequestError(f"the tensor {name!r} has the datatype {str(kind)[:20]!r}")
    if data and isinstance(data[0], list):
        if not all(isinstance(row, list) for row in data):
            raise RequestError(f"the data of {name!r} are nested unevenly")
        data = list(itertools.chain.from_iterable(data))
    size = math.prod(shape)
    if size != len(data):
        raise RequestError(f"the tensor {name!r} has {len(data)} values, its shape says {size}")
    return name, shape, data


def _label_type(model: ServedModel) -> str:
    return "INT64" if model.classes.dtype.kind in "iu" else "BYTES"


def _described(name: str, kind: str, shape: list[int]) -> dict[str, Any]:
    return {"name": name, "datatype": kind, "shape": shape}


def _outputs(
    model: ServedModel, answers: ServedAnswers, wanted: list[Any] | None
) -> list[dict[str, Any]]:
    n = len(answers)
    kind = _label_type(model)
    labels = answers.labels.tolist()
    told = labels if kind == "INT64" else [str(label) for label in labels]
    outputs = [
        _described("label", kind, [n]) | {"data": told},
        _described("refused", "BOOL", [n]) | {"data": answers.refused.tolist()},
    ]
    for name, values in (("margin", answers.margins), ("probability", answers.probabilities)):
        if values is not None:
            tensor = _described(name, "FP64", list(values.shape))
            outputs.append(tensor | {"data": values.ravel().tolist()})
    if wanted is None:
        return outputs
    known = {each["name"] for each in outputs}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise RequestError(f"there is no output {str(unknown[0])[:40]!r}")
    return [each for each in outputs if each["name"] in wanted]

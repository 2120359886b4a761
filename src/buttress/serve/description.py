"""The service described for programs (OpenAPI) and for people (one page)."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader

from buttress._version import __version__
from buttress.serve.service import Service

_REFUSED = {
    "400": "not readable",
    "401": "no valid token",
    "413": "too large",
    "415": "content type not accepted",
    "422": "does not fit the model",
    "429": "come again later",
}


def openapi(service: Service) -> dict[str, Any]:
    """The service as an OpenAPI 3.1 document."""
    columns = service.model.columns
    properties: dict[str, Any] = {
        name: {"type": ["number", "null"]}
        if name in columns.numeric
        else {"type": ["string", "null"]}
        if name in columns.derived
        else {"type": ["string", "null"], "enum": [*columns.categories[name], None]}
        for name in columns.names
    }
    row = {"type": "object", "properties": properties, "required": list(columns.names)}
    example = {name: _plain(columns.usual.get(name)) for name in columns.names}
    body = _body(row, {"rows": [example]})
    paths: dict[str, Any] = {
        "/v1/predict": {"post": _operation("Label rows, or refuse to.", body)},
        "/v1/explain": {"post": _operation("Say what every column adds to the margin.", body)},
        "/v1/model": {"get": _operation("Describe the model.")},
        "/healthz": {"get": _operation("Is the process alive?")},
        "/readyz": {"get": _operation("Does it take requests?")},
        "/metrics": {"get": _operation("Numbers for Prometheus.")},
        f"/v2/models/{service.name}/infer": {
            "post": _operation(
                "The Open Inference Protocol.",
                _body({"type": "object"}, _tensors(example), rows=False),
            )
        },
    }
    if service.learning is not None:
        target = service.model.target or "label"
        classes = [str(label) for label in service.model.classes.tolist()]
        properties_learned = properties | {target: {"type": "string", "enum": classes}}
        learned = row | {"properties": properties_learned, "required": [*columns.names, target]}
        paths["/v1/learn"] = {
            "post": _operation(
                "Learn rows with labels; Idempotency-Key makes it safe to repeat.",
                _body(learned, {"rows": [example | {target: classes[0]}]}),
            )
        }
    described: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": f"{service.name}, served by Buttress",
            "version": __version__,
            "description": f"Model {service.model.version}.",
        },
        "paths": paths,
    }
    if service.settings.token is not None:
        described["components"] = {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}
        }
        described["security"] = [{"token": []}]
    return described


def openapi_page(description: dict[str, Any]) -> str:
    """The same for people, as one page without scripts."""
    environment = Environment(loader=PackageLoader("buttress.serve"), autoescape=True)
    return environment.get_template("docs.html.j2").render(api=description)


def _operation(summary: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    answers = {"200": {"description": "done"}}
    if body is not None:
        answers |= {status: {"description": words} for status, words in _REFUSED.items()}
        return {"summary": summary, "requestBody": body, "responses": answers}
    return {"summary": summary, "responses": answers}


def _body(row: dict[str, Any], example: dict[str, Any], rows: bool = True) -> dict[str, Any]:
    if not rows:
        return {"content": {"application/json": {"schema": row, "example": example}}}
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": row}}}
    text = {"schema": {"type": "string"}}
    return {
        "content": {
            "application/json": {"schema": schema, "example": example},
            "application/x-ndjson": text,
            "text/csv": text,
        }
    }


def _tensors(example: dict[str, Any]) -> dict[str, Any]:
    return {
        "inputs": [
            {
                "name": name,
                "shape": [1],
                "datatype": "BYTES" if isinstance(value, str) else "FP64",
                "data": [value],
            }
            for name, value in example.items()
        ]
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) or value is None else float(value)

"""The V2 protocol, by hand and with a real client where one is installed."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

import buttress
from buttress.serve.app import make_app
from buttress.serve.running import open_socket
from buttress.serve.service import Service, Settings
from buttress.tables import as_table


def tensors(rows):
    return [
        {
            "name": name,
            "shape": [len(rows)],
            "datatype": "BYTES" if name == "city" else "FP64",
            "data": [row[name] for row in rows],
        }
        for name in rows[0]
    ]


def outputs(answer):
    return {
        each["name"]: np.array(each["data"]).reshape(each["shape"]) for each in answer["outputs"]
    }


@pytest.mark.parametrize("name", ["reject", "three"])
def test_infer(models, rows, serving, name):
    model = buttress.load(models / f"{name}.skops")
    given = rows(9)
    table = as_table({key: [row[key] for row in given] for key in given[0]})
    with serving(models / f"{name}.skops") as client:
        about = client.get(f"/v2/models/{name}").json()
        assert about["versions"] == [client.service.model.version]
        assert client.get(f"/v2/models/{name}/ready").json()["ready"]
        body = {"id": "q7", "inputs": tensors(given)}
        answer = client.post(f"/v2/models/{name}/infer", json=body).json()
        version = about["versions"][0]
        path = f"/v2/models/{name}/versions/{version}/infer"
        assert client.post(path, json=body).json() == answer
        told = {each["name"]: each for each in about["outputs"]}
        for each in answer["outputs"]:
            assert each["datatype"] == told[each["name"]]["datatype"]
            assert len(each["shape"]) == len(told[each["name"]]["shape"])
    found = outputs(answer)
    assert answer["id"] == "q7"
    assert found["label"].tolist() == model.predict(table).tolist()
    np.testing.assert_allclose(found["margin"], model.decision_function(table))
    assert found["refused"].tolist() == model.reject(table).tolist()


def test_one_matrix_in_the_models_order(models, serving):
    model = buttress.load(models / "plain.skops")
    X = np.random.default_rng(0).normal(size=(3, 4))
    tensor = {"name": "input-0", "shape": [3, 4], "datatype": "FP32", "data": X.ravel().tolist()}
    nested = tensor | {"data": X.tolist()}
    with serving(models / "plain.skops") as client:
        for each in (tensor, nested):
            body = {"inputs": [each], "outputs": [{"name": "label"}]}
            answer = client.post("/v2/models/plain/infer", json=body).json()
            assert list(outputs(answer)) == ["label"]
            assert outputs(answer)["label"].tolist() == model.predict(X).tolist()


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        {"inputs": 3},
        {"inputs": []},
        {"inputs": [3]},
        {"inputs": [{"name": "x"}]},
        {"inputs": [{"name": "x", "shape": [-1], "datatype": "FP64", "data": []}]},
        {"inputs": [{"name": "x", "shape": [2, 4], "datatype": "FP64", "data": [1]}]},
        {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "COMPLEX", "data": [1] * 4}]},
        {"inputs": [{"name": "x", "shape": [0, 4], "datatype": "FP64", "data": []}]},
        {"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP64", "data": [1] * 3}]},
        {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP64", "data": [[1], 2, 3, 4]}]},
        {"inputs": [{"name": n, "shape": [1], "datatype": "FP64", "data": [1]} for n in "xx"]},
        {"inputs": [{"name": n, "shape": [1], "datatype": "FP64", "data": [1]} for n in "xy"]},
    ],
)
def test_bad_tensors(models, serving, body):
    with serving(models / "plain.skops") as client:
        answer = client.post("/v2/models/plain/infer", json=body)
        assert 400 <= answer.status_code < 500
        assert set(answer.json()) == {"error"}


@contextmanager
def listening(path):
    """A service on a free port of this machine."""
    uvicorn = pytest.importorskip("uvicorn")
    app = make_app(Service(path, Settings()))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    with open_socket("127.0.0.1", 0) as opened:
        thread = threading.Thread(target=server.run, args=([opened],), daemon=True)
        thread.start()
        end = time.monotonic() + 60
        while not server.started and time.monotonic() < end:
            time.sleep(0.05)
        try:
            yield f"127.0.0.1:{opened.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(60)


def test_with_the_client_of_triton(models, rows):
    client_kind = pytest.importorskip("tritonclient.http")
    model = buttress.load(models / "reject.skops")
    given = rows(6)
    table = as_table({key: [row[key] for row in given] for key in given[0]})
    with listening(models / "reject.skops") as address:
        client = client_kind.InferenceServerClient(address)
        assert client.is_server_live()
        assert client.is_model_ready("reject")
        assert client.get_model_metadata("reject")["platform"] == "buttress"
        asked = []
        for name in given[0]:
            values = [row[name] for row in given]
            kind, dtype = ("BYTES", object) if name == "city" else ("FP64", float)
            tensor = client_kind.InferInput(name, [len(values)], kind)
            tensor.set_data_from_numpy(np.array(values, dtype=dtype), binary_data=False)
            asked.append(tensor)
        wanted = [
            client_kind.InferRequestedOutput(name, binary_data=False)
            for name in ("label", "margin")
        ]
        found = client.infer("reject", asked, outputs=wanted)
        margins = found.as_numpy("margin")
        labels = [str(label) for label in found.get_output("label")["data"]]
        client.close()
    np.testing.assert_allclose(margins, model.decision_function(table))
    assert labels == model.predict(table).tolist()

"""What the service answers is what the library answers, in every form of question."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import shutil
import time

import numpy as np
import pytest

import buttress
from buttress.serve.batching import Batcher
from buttress.serve.errors import RequestError
from buttress.serve.model import ServedModel
from buttress.serve.rows import read_rows
from buttress.tables import as_table


def columns_of(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.mark.parametrize("name", ["reject", "impute", "three", "online"])
def test_the_encoding_is_the_models_own_to_the_last_bit(models, rows, name):
    model = buttress.load(models / f"{name}.skops")
    served = ServedModel.load(models / f"{name}.skops")
    given = rows(20)
    if name == "impute":
        given[3]["x1"] = given[4]["city"] = None
    found = served.columns.encode(read_rows(json.dumps(given).encode(), "json", (), 100))
    expected = model.encode(as_table(columns_of(given)))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["reject", "impute", "three", "online"])
def test_answers_are_those_of_the_library(models, rows, serving, name):
    model = buttress.load(models / f"{name}.skops")
    given = rows(25)
    with serving(models / f"{name}.skops") as client:
        told = client.post("/v1/predict", json={"rows": given}).json()
    table = as_table(columns_of(given))
    refused = model.reject(table)
    assert [each["refused"] for each in told["answers"]] == refused.tolist()
    labels = model.predict(table)
    said = [each["would_say"] if each["refused"] else each["label"] for each in told["answers"]]
    assert said == labels.tolist()
    assert all(each["label"] is None for each in told["answers"] if each["refused"])
    margins = np.array([each["margin"] for each in told["answers"]])
    np.testing.assert_allclose(margins, model.decision_function(table), rtol=1e-12, atol=1e-12)
    assert told["model"] == client.service.model.version


def test_the_forms_of_a_question_agree(models, rows, serving):
    given = rows(6)
    names = list(given[0])
    with serving(models / "reject.skops") as client:
        by_name = client.post("/v1/predict", json=given).json()["answers"]
        lists = [[row[name] for name in reversed(names)] for row in given]
        body = {"columns": names[::-1], "rows": lists}
        assert client.post("/v1/predict", json=body).json()["answers"] == by_name
        in_order = [[row[name] for name in names] for row in given]
        assert client.post("/v1/predict", json={"rows": in_order}).json()["answers"] == by_name
        lines = "\n".join(json.dumps(row) for row in given) + "\n"
        headers = {"content-type": "application/x-ndjson"}
        answer = client.post("/v1/predict", content=lines, headers=headers)
        found = [json.loads(line) for line in answer.text.splitlines()]
        version = client.service.model.version
        assert found == [each | {"model": version} for each in by_name]
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(names)
        writer.writerows(
            [repr(v) if isinstance(v, float) else v for v in row.values()] for row in given
        )
        answer = client.post(
            "/v1/predict", content=text.getvalue().encode(), headers={"content-type": "text/csv"}
        )
        records = list(csv.DictReader(io.StringIO(answer.text)))
        assert [r["label"] or None for r in records] == [each["label"] for each in by_name]
        assert [float(r["margin"]) for r in records] == [each["margin"] for each in by_name]


def test_a_model_without_names_takes_lists(models, serving):
    model = buttress.load(models / "plain.skops")
    X = np.random.default_rng(0).normal(size=(7, 4)) * [1, 10, 100, 1000]
    with serving(models / "plain.skops") as client:
        told = client.post("/v1/predict", json=X.tolist()).json()["answers"]
    assert [each["label"] for each in told] == model.predict(X).tolist()


def test_probabilities_where_there_are_some(tmp_path, serving):
    from sklearn.linear_model import LogisticRegression

    X = np.random.default_rng(0).normal(size=(40, 2))
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    buttress.save(model, tmp_path / "lr.skops")
    with serving(tmp_path / "lr.skops") as client:
        told = client.post("/v1/predict", json=X[:5].tolist()).json()["answers"]
    found = [list(each["probability"].values()) for each in told]
    np.testing.assert_allclose(found, model.predict_proba(X[:5]))
    assert [each["label"] for each in told] == model.predict(X[:5]).tolist()


def test_refusing_below_a_margin(models, rows, serving):
    given = rows(30)
    with serving(models / "three.skops", refuse_below=0.3) as client:
        told = client.post("/v1/predict", json=given).json()["answers"]
    margins = np.sort([each["margin"] for each in told], axis=1)
    close = margins[:, -1] - margins[:, -2] < 0.3
    assert 0 < close.sum() < 30
    assert [each["refused"] for each in told] == close.tolist()


@pytest.mark.parametrize("name", ["reject", "three"])
def test_explanations_are_differences_of_margins(models, rows, serving, name):
    model = buttress.load(models / f"{name}.skops")
    given = rows(4)
    with serving(models / f"{name}.skops") as client:
        told = client.post("/v1/explain", json=given).json()["answers"]
    for row, each in zip(given, told, strict=True):
        margin = np.atleast_1d(model.decision_function(as_table(columns_of([row])))[0])
        for effect in each["columns"]:
            changed = row | {effect["column"]: model.encoder_.fill_[effect["column"]]}
            other = np.atleast_1d(model.decision_function(as_table(columns_of([changed])))[0])
            if len(margin) == 1:
                expected = np.sign(margin[0]) * (margin[0] - other[0])
            else:
                expected = margin[margin.argmax()] - other[margin.argmax()]
            assert effect["effect"] == pytest.approx(expected, abs=1e-9)
        sizes = [abs(effect["effect"]) for effect in each["columns"]]
        assert sizes == sorted(sizes, reverse=True)


def test_a_learner_without_a_band_is_not_said_to_refuse(models, serving):
    with serving(models / "online.skops") as client:
        assert client.get("/v1/model").json()["refuses"] is False


def test_the_model_describes_itself(models, serving):
    with serving(models / "reject.skops") as client:
        told = client.get("/v1/model").json()
        assert told["classes"] == ["no", "yes"]
        assert told["columns"][0] == {"name": "x0", "kind": "number"}
        assert told["columns"][4]["values"] == ["Bergen", "Oslo", "Tromsø"]
        assert (told["refuses"], told["learns"]) == (True, False)
        described = client.get("/openapi.json").json()
        assert described["openapi"] == "3.1.0"
        body = described["paths"]["/v1/predict"]["post"]["requestBody"]
        example = body["content"]["application/json"]["example"]
        assert client.post("/v1/predict", json=example).status_code == 200
        infer = described["paths"]["/v2/models/reject/infer"]["post"]["requestBody"]
        tensors = infer["content"]["application/json"]["example"]
        assert client.post("/v2/models/reject/infer", json=tensors).status_code == 200
        page = client.get("/docs")
        assert "POST /v1/predict" in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]


def test_metrics_count_what_happened(models, rows, serving):
    with serving(models / "reject.skops") as client:
        told = client.post("/v1/predict", json=rows(30)).json()["answers"]
        client.post("/v1/predict", content=b"{")
        lines = client.get("/metrics").text.splitlines()
    numbers = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert numbers["buttress_rows_total"] == "30"
    n_refused = sum(each["refused"] for each in told)
    assert numbers["buttress_refused_rows_total"] == str(n_refused)
    assert numbers['buttress_requests_total{path="/v1/predict",status="200"}'] == "1"
    assert numbers['buttress_requests_total{path="/v1/predict",status="400"}'] == "1"
    assert numbers['buttress_request_seconds_count{path="/v1/predict"}'] == "2"
    assert float(numbers["buttress_feature_shift"]) >= 0
    prometheus = pytest.importorskip("prometheus_client.parser")
    families = list(prometheus.text_string_to_metric_families("\n".join(lines) + "\n"))
    assert len(families) > 8


def test_drift_shows(models, rows, serving):
    with serving(models / "reject.skops") as client:

        def shift():
            lines = client.get("/metrics").text.splitlines()
            return next(
                float(x.split()[1]) for x in lines if x.startswith("buttress_feature_shift ")
            )

        client.post("/v1/predict", json=rows(300))
        before = shift()
        moved = [row | {"x0": row["x0"] + 20} for row in rows(600)]
        client.post("/v1/predict", json=moved)
        assert shift() > before + 3


def test_a_new_file_is_taken_up_and_a_bad_one_is_not(models, rows, serving, tmp_path):
    path = tmp_path / "model.skops"
    shutil.copy(models / "reject.skops", path)
    with serving(path) as client:
        first = client.service.model.version

        def asked_until(condition):
            end = time.monotonic() + 60
            while time.monotonic() < end:
                answer = client.post("/v1/predict", json=rows(1))
                assert answer.status_code == 200
                if condition(answer.json()["model"]):
                    return
                time.sleep(0.05)
            raise AssertionError("the file was not taken up")

        path.write_bytes(b"this is no model")
        failed = client.service.reload_failures.values
        asked_until(lambda version: bool(failed))
        assert client.post("/v1/predict", json=rows(1)).json()["model"] == first
        shutil.copy(models / "impute.skops", tmp_path / "new")
        (tmp_path / "new").replace(path)
        asked_until(lambda version: version != first)
        assert "buttress_reload_failures_total 1" in client.get("/metrics").text
        assert "buttress_reloads_total 1" in client.get("/metrics").text


def test_requests_share_batches_and_get_their_own_rows(models):
    served = ServedModel.load(models / "plain.skops")
    X = np.random.default_rng(0).normal(size=(40, 4))
    sizes = []

    async def ask():
        batcher = Batcher(seen=lambda n_rows, n_requests, _: sizes.append((n_rows, n_requests)))
        asked = [batcher.submit(served, X[i : i + 1 + i % 3]) for i in range(0, 36)]
        answers = await asyncio.gather(*asked)
        await batcher.finish()
        return answers

    answers = asyncio.run(ask())
    for i, answer in enumerate(answers):
        expected = served.answer(X[i : i + 1 + i % 3])
        np.testing.assert_allclose(answer.margins, expected.margins, rtol=1e-12)
        assert answer.labels.tolist() == expected.labels.tolist()
    assert sum(n for _, n in sizes) == 36
    assert len(sizes) < 5


def test_too_many_waiting_rows_are_told_to_come_again(models):
    served = ServedModel.load(models / "plain.skops")
    X = np.zeros((6, 4))

    async def ask():
        batcher = Batcher(most_waiting=20)
        results = await asyncio.gather(
            *(batcher.submit(served, X) for _ in range(6)), return_exceptions=True
        )
        # and when the rush is over it answers again
        later = await batcher.submit(served, X)
        await batcher.finish()
        return results, later

    results, later = asyncio.run(ask())
    refused = [r for r in results if isinstance(r, RequestError)]
    assert len(refused) == 3
    assert all(r.status == 429 and int(r.headers["Retry-After"]) >= 1 for r in refused)
    assert len(later) == 6

"""Learning over HTTP: every acknowledged row once, in order, and the same model after kill -9."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import signal
import threading
from pathlib import Path

import httpx
import numpy as np
import pytest

import buttress
from buttress.serve.errors import RequestError
from buttress.serve.learning import LearningModel, LearnLog, Lesson
from buttress.serve.model import ServedModel


def _load_nursery():
    path = Path(__file__).parent / "nursery.py"
    spec = importlib.util.spec_from_file_location("serve_nursery", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


nursery = _load_nursery()


def lessons(n, seed=0, width=7):
    rng = np.random.default_rng(seed)
    made = []
    for i in range(n):
        X = rng.normal(size=(int(rng.integers(1, 9)), width))
        labels = np.where(X[:, 0] + 0.3 * rng.normal(size=len(X)) > 0, "yes", "no")
        made.append(Lesson(X, labels.tolist(), f"lesson {i}"))
    return made


def state_of(learner, path):
    learner.save_checkpoint(path)
    return path.read_bytes()


def learning(models, folder, **settings):
    return LearningModel(ServedModel.load(models / "online.skops"), folder, **settings)


def test_learning_is_partial_fit_in_order(models, tmp_path):
    model = learning(models, tmp_path / "log")
    reference = buttress.load(models / "online.skops").estimator_
    for lesson in lessons(30):
        (result,) = model.teach([lesson])
        assert not result.repeated
        reference.partial_fit(lesson.X, np.array(lesson.labels))
    assert state_of(model.learner, tmp_path / "a") == state_of(reference, tmp_path / "b")
    assert model.served.version.endswith(f"+{model.seq}")


@pytest.mark.parametrize("every", [1, 20, 10_000])
def test_a_restart_gives_the_same_model(models, tmp_path, every):
    model = learning(models, tmp_path / "log", every=every)
    made = lessons(40)
    model.teach(made[:25])
    for lesson in made[25:]:
        model.teach([lesson])
    expected = state_of(model.learner, tmp_path / "a")
    model.log.close()  # as if killed: no checkpoint at the end
    again = learning(models, tmp_path / "log", every=every)
    assert again.seq == 40
    assert state_of(again.learner, tmp_path / "b") == expected
    assert len(again.log.checkpoints()) <= 2


def test_a_damaged_checkpoint_is_replaced_by_an_older_one_and_the_log(models, tmp_path):
    model = learning(models, tmp_path / "log", every=20)
    for lesson in lessons(40):
        model.teach([lesson])
    expected = state_of(model.learner, tmp_path / "a")
    newest = model.log.checkpoints()[0][1]
    model.log.close()
    newest.write_bytes(newest.read_bytes()[:-40])
    again = learning(models, tmp_path / "log", every=20)
    assert state_of(again.learner, tmp_path / "b") == expected


def test_keys_make_repeating_safe(models, tmp_path):
    model = learning(models, tmp_path / "log")
    first, second = lessons(2)
    results = model.teach([first, first, second])
    assert [r.repeated for r in results] == [False, True, False]
    assert results[0].seq == results[1].seq
    (repeated,) = model.teach([first])
    assert repeated.repeated
    (conflict,) = model.teach([Lesson(second.X, second.labels, first.key)])
    assert isinstance(conflict, RequestError)
    assert conflict.status == 409
    assert model.learner.n_seen_ == 120 + len(first.labels) + len(second.labels)


def test_a_lesson_that_cannot_be_learned_is_void_for_ever(models, tmp_path, monkeypatch):
    model = learning(models, tmp_path / "log")
    good, bad = lessons(2)
    bad = Lesson(bad.X[:, :3], bad.labels, "bad")
    results = model.teach([bad, good])
    assert isinstance(results[0], RequestError)
    assert not isinstance(results[1], RequestError)
    (again,) = model.teach([bad])
    assert isinstance(again, RequestError)
    expected = state_of(model.learner, tmp_path / "a")
    model.log.close()
    assert state_of(learning(models, tmp_path / "log").learner, tmp_path / "b") == expected


def test_one_process_per_model_and_one_model_per_log(models, tmp_path):
    model = learning(models, tmp_path / "log")
    with pytest.raises(ValueError, match="another process learns"):
        LearnLog(tmp_path / "log", "x")
    model.log.close()
    with pytest.raises(ValueError, match="another model file"):
        LearnLog(tmp_path / "log", "x")
    with pytest.raises(ValueError, match="needs an online model"):
        LearningModel(ServedModel.load(models / "reject.skops"), tmp_path / "other")


def test_over_http(models, rows, serving, tmp_path):
    given = [row | {"y": "yes" if row["x0"] > 0 else "no"} for row in rows(12)]
    with serving(models / "online.skops", learn=tmp_path / "log") as client:
        before = client.get("/v1/model").json()["model"]
        told = client.post("/v1/learn", json=given, headers={"idempotency-key": "k1"}).json()
        assert (told["rows"], told["repeated"]) == (12, False)
        again = client.post("/v1/learn", json=given, headers={"idempotency-key": "k1"}).json()
        assert (again["sequence"], again["repeated"]) == (told["sequence"], True)
        other = client.post("/v1/learn", json=given[:3], headers={"idempotency-key": "k1"})
        assert other.status_code == 409
        assert client.get("/v1/model").json()["model"] != before
        for body, words in [
            (rows(1), "need the column 'y'"),
            ([rows(1)[0] | {"y": "perhaps"}], "none of the model's classes"),
            ([rows(1)[0] | {"y": None}], "row 1: the label is missing"),
            ([rows(1)[0] | {"y": ["no"]}], "none of the model's classes"),
        ]:
            answer = client.post("/v1/learn", json=body)
            assert answer.status_code == 422
            assert words in answer.json()["error"]
        metrics = client.get("/metrics").text
        assert "buttress_learned_rows_total 12" in metrics
        assert "buttress_progressive_error" in metrics
        assert client.service.learning.learner.n_seen_ == 132
    with serving(models / "online.skops", learn=tmp_path / "log") as client:
        assert client.service.learning.learner.n_seen_ == 132


def test_refused_rows_are_reviewed_and_learned(models, rows, serving, tmp_path):
    settings = {
        "learn": tmp_path / "log",
        "review": tmp_path / "review.sqlite",
        "refuse_below": 0.5,
        "undo_seconds": 0.0,
    }
    with serving(models / "online.skops", **settings) as client:
        told = client.post("/v1/predict", json=rows(30)).json()["answers"]
        client.post("/v1/predict", json=rows(30))  # the same rows are not asked twice
        n_refused = sum(each["refused"] for each in told)
        assert n_refused > 2
        service = client.service
        assert service.refused.store.counts()["open"] == n_refused
        client.post("/review/enter", data={"name": "ada"})
        page = client.get("/review/").text
        assert "Refused row" in page
        assert "refused from -0.5 to 0.5" in page
        item = service.refused.store.next("ada")[0]
        right = "yes" if item.given == "no" else "no"
        form = {"item": item.id, "decision": f"change:{right}", "request": "12345678"}
        assert client.post("/review/decide", data=form).status_code == 200
        nursery.until(lambda: service.learning.learner.n_labelled_ == 121, "learning")
        nursery.until(lambda: service.refused.store.untaken(-1) == [], "marking")
        assert client.post("/review/undo").status_code == 409
        assert "The model has learned 121 rows" in client.get("/review/").text
    with serving(models / "online.skops", **settings) as client:
        assert client.service.learning.learner.n_labelled_ == 121


PREPARE = """
from pathlib import Path
import numpy as np
from buttress.serve.app import make_app
from buttress.serve.model import ServedModel
from buttress.serve.service import Service, Settings
model = Path(sys.argv[1])
learner = ServedModel.load(model)
learner.estimator.partial_fit(np.zeros((1, 7)), np.array(["no"]))
learner.answer(np.zeros((1, 7)))

def make(log):
    return make_app(Service(model, Settings(learn=Path(log), checkpoint_rows=150)))
"""


def learn(client, body, key):
    """Send rows to learn; the place in the log, None when the service died meanwhile."""
    try:
        answer = client.post("/v1/learn", json=body, headers={"idempotency-key": key})
    except httpx.TransportError:
        return None
    assert answer.status_code == 200, answer.text
    return answer.json()["sequence"]


def random_rows(data):
    return [
        {f"x{i}": float(v) for i, v in enumerate(row)}
        | {"city": "Oslo", "y": "yes" if row[0] > 0 else "no"}
        for row in data.normal(size=(int(data.integers(1, 30)), 4))
    ]


def kill_the_service(models, folder, kills):
    """Kill a learning service again and again; the client repeats what was not acknowledged."""
    rng = random.Random(0)
    data = np.random.default_rng(0)
    log = folder / "log"
    learned = []
    with nursery.Nursery(PREPARE, models / "online.skops") as home:
        for number in range(kills + 1):
            process, address = home.start(log)
            last = number == kills
            with httpx.Client(base_url=address, timeout=nursery.PATIENCE) as client:
                if learned and learned[-1][2] is None:
                    # the one in flight when the process was killed
                    body, key, _ = learned.pop()
                    learned.append((body, key, learn(client, body, key)))
                n_steps = 3 if last else rng.randrange(1, 12)
                for step in range(n_steps):
                    body, key = random_rows(data), f"{number}-{step}"
                    if last or step < n_steps - 1:
                        learned.append((body, key, learn(client, body, key)))
                        continue
                    # killed at any moment of the request
                    killer = threading.Timer(
                        rng.random() * 0.015, os.kill, (process, signal.SIGKILL)
                    )
                    killer.start()
                    learned.append((body, key, learn(client, body, key)))
                    killer.join()
            if last:
                os.kill(process, signal.SIGTERM)
            home.wait()
    return log, learned


def check_kills(models, tmp_path, kills):
    log, learned = kill_the_service(models, tmp_path, kills)
    sequence = [seq for _, _, seq in learned]
    assert sequence == list(range(1, len(learned) + 1))
    served = ServedModel.load(models / "online.skops")
    reference = served.estimator
    from buttress.serve.rows import read_rows

    for body, _, _ in learned:
        rows = [{k: v for k, v in row.items() if k != "y"} for row in body]
        X = served.columns.encode(read_rows(json.dumps(rows).encode(), "json", (), 1000))
        reference.partial_fit(X, np.array([row["y"] for row in body]))
    resumed = learning(models, log)
    assert state_of(resumed.learner, tmp_path / "a") == state_of(reference, tmp_path / "b")


@pytest.mark.skipif(os.name != "posix", reason="kill -9 needs a POSIX system")
def test_kill_9_and_the_model_is_the_same_byte_for_byte(models, tmp_path):
    check_kills(models, tmp_path, 5)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9 needs a POSIX system")
def test_two_hundred_kills(models, tmp_path):
    check_kills(models, tmp_path, 200)

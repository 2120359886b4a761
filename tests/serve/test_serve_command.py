"""``buttress serve``: what it starts, and what it refuses to start."""

from __future__ import annotations

import json
import shutil

import pytest
from starlette.testclient import TestClient

from buttress.cli import main


@pytest.fixture
def started(monkeypatch):
    """Applications that would have been served, with host and port."""
    found = []

    def run(app, host, port, *, started):
        found.append((app, host, port))
        started(f"http://{host}:{port}")

    monkeypatch.setattr("buttress.serve.running.run_server", run)
    return found


def test_it_serves_the_model_with_its_settings(models, rows, started, tmp_path, capsys):
    model = tmp_path / "online.skops"
    shutil.copy(models / "online.skops", model)
    (tmp_path / "token").write_text("a-very-secret-token\n")
    words = ["serve", model, "--port", 8123, "--learn", "--review", "--refuse-below", 0.4]
    words += ["--token-file", tmp_path / "token", "--max-rows", 7, "--host", "0.0.0.0", "--json"]
    assert main([str(word) for word in words]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["address"] == "http://0.0.0.0:8123"
    assert "secret" not in told.out + told.err
    ((app, host, port),) = started
    assert (host, port) == ("0.0.0.0", 8123)
    headers = {"authorization": "Bearer a-very-secret-token"}
    with TestClient(app, base_url="http://127.0.0.1:8123", headers=headers) as client:
        assert client.post("/v1/predict", json=rows(7)).status_code == 200
        assert client.post("/v1/predict", json=rows(8)).status_code == 413
        assert client.get("/v1/model").json()["learns"]
        assert client.get("/review/enter").status_code == 200
    assert (tmp_path / "online.learn" / "log.sqlite").exists()
    assert (tmp_path / "online.review.sqlite").exists()


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        ("serve {models}/none.skops", 2, "no such model file"),
        ("serve {models}/reject.skops --host 0.0.0.0", 2, "--token-file"),
        ("serve {models}/reject.skops --token-file {models}/none", 2, "no such token file"),
        ("serve {models}/reject.skops --learn-dir x", 2, "--learn-dir needs --learn"),
        ("serve {models}/reject.skops --store x", 2, "--store needs --review"),
        ("serve {models}/reject.skops --port 99999", 2, "--port"),
        ("serve {models}/reject.skops --learn --learn-dir {tmp}/log", 1, "needs an online model"),
        ("serve {tmp}/text", 1, "not a model"),
        ("serve {models}/reject.skops --files {tmp}", 2, "--files needs --review"),
        ("serve {models}/reject.skops --keep id", 2, "--keep needs --review"),
        ("serve {models}/reject.skops --review --files {tmp}/none", 2, "no such directory"),
        ("serve {models}/reject.skops --review --store {models}/reject.skops", 2, "is the input"),
        ("serve {models}/reject.skops --review --store {tmp}/link", 2, "is the input"),
        ("serve {models}/reject.skops --review --store {tmp}", 2, "is a directory"),
        ("serve {models}/reject.skops --review --store {tmp}/no/x", 2, "there is no directory"),
        (
            "serve {models}/reject.skops --review --store {tmp}/t --token-file {tmp}/t",
            2,
            "is the input",
        ),
        ("serve {models}/online.skops --learn --learn-dir {tmp}/text", 2, "is a file"),
        (
            "serve {models}/online.skops --learn --learn-dir {tmp}/x --review --store {tmp}/x",
            2,
            "is the same file",
        ),
        ("serve {models}/reject.skops --training {tmp}/none.csv", 2, "no such file"),
        (
            "serve {models}/reject.skops --training {tmp}/few.csv",
            1,
            "and 1 more (--training)",
        ),
    ],
)
def test_what_it_refuses(models, started, tmp_path, capsys, words, code, reason):
    (tmp_path / "text").write_text("this is no model")
    (tmp_path / "t").write_text("a-very-secret-token")
    (tmp_path / "few.csv").write_text("x0,y\n1,no\n")
    (tmp_path / "link").symlink_to(models / "reject.skops")
    assert main(words.format(models=models, tmp=tmp_path).split()) == code
    told = capsys.readouterr().err
    assert reason in told
    assert len(told.splitlines()) == 1
    assert started == []

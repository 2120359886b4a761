"""The MLflow flavour, with MLflow itself where it is installed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import buttress
from buttress.serve import mlflow_flavour
from buttress.tables import as_table


def expected(model, frame):
    table = as_table(frame)
    return model.predict(table), model.decision_function(table), model.reject(table)


def test_answers_are_data_frames(models, rows):
    model = buttress.load(models / "reject.skops")
    frame = pd.DataFrame(rows(15), index=range(100, 115))
    found = mlflow_flavour._load_pyfunc(str(models / "reject.skops")).predict(frame)
    labels, margins, refused = expected(model, frame)
    assert found["label"].tolist() == labels.tolist()
    np.testing.assert_allclose(found["margin"], margins)
    assert found["refused"].tolist() == refused.tolist()
    assert found.index.tolist() == list(range(100, 115))


def test_missing_values_of_a_frame(models, rows):
    frame = pd.DataFrame(rows(5))
    frame.loc[2, "x1"] = np.nan
    frame.loc[3, "city"] = None
    found = mlflow_flavour._load_pyfunc(str(models / "impute.skops")).predict(frame)
    model = buttress.load(models / "impute.skops")
    assert found["label"].tolist() == model.predict(as_table(frame)).tolist()


def test_saved_and_loaded_by_mlflow(models, rows, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    model = buttress.load(models / "reject.skops")
    mlflow_flavour.save_model(model, tmp_path / "flavoured")
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "flavoured"))
    frame = pd.DataFrame(rows(15))
    labels, margins, _ = expected(model, frame)
    found = loaded.predict(frame)
    assert found["label"].tolist() == labels.tolist()
    np.testing.assert_allclose(found["margin"], margins)


def test_logged_to_a_run_of_mlflow(models, rows, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    # the store that every edition of MLflow has; newer ones want to be asked for it by name
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    model = buttress.load(models / "reject.skops")
    frame = pd.DataFrame(rows(15))
    with mlflow.start_run():
        logged = mlflow_flavour.log_model(model, "flavoured")
    again = mlflow.pyfunc.load_model(logged.model_uri).predict(frame)
    assert again["label"].tolist() == expected(model, frame)[0].tolist()

"""The MLflow flavour, with MLflow itself where it is installed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_moons

import buttress
from buttress.serve import mlflow_autolog, mlflow_flavour
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


@pytest.fixture
def tracked(tmp_path, monkeypatch):
    """MLflow writing to files of its own, and as it was before afterwards."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip("mlflow")
    before = mlflow.get_tracking_uri(), mlflow.get_registry_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    mlflow.set_registry_uri((tmp_path / "runs").as_uri())
    yield mlflow
    mlflow_autolog.autolog(disable=True)
    mlflow.set_tracking_uri(before[0])
    mlflow.set_registry_uri(before[1])


def test_through_mlflow(models, rows, tmp_path, tracked):
    model = buttress.load(models / "reject.skops")
    mlflow_flavour.save_model(model, tmp_path / "flavoured")
    loaded = tracked.pyfunc.load_model(str(tmp_path / "flavoured"))
    frame = pd.DataFrame(rows(15))
    labels, margins, _ = expected(model, frame)
    found = loaded.predict(frame)
    assert found["label"].tolist() == labels.tolist()
    np.testing.assert_allclose(found["margin"], margins)
    with tracked.start_run():
        logged = mlflow_flavour.log_model(model, "flavoured")
    again = tracked.pyfunc.load_model(logged.model_uri).predict(frame)
    assert again["label"].tolist() == labels.tolist()


def last_run(mlflow):
    return mlflow.MlflowClient().search_runs(["0"], max_results=1)[0]


def test_a_search_logs_its_path_and_certificate(tracked):
    X, y = make_moons(60, noise=0.2, random_state=0)
    mlflow_autolog.autolog()
    model = buttress.LeakyHockeyStickClassifierCV(alphas=7, cv=3).fit(X, y)
    run = last_run(tracked)
    assert run.data.params["estimator"] == "LeakyHockeyStickClassifierCV"
    assert run.data.params["alphas"] == "7"
    assert run.data.metrics["duality_gap"] == pytest.approx(model.duality_gap_)
    assert run.data.metrics["alpha"] == pytest.approx(model.alpha_)
    history = tracked.MlflowClient().get_metric_history(run.info.run_id, "cv_mean")
    assert [point.step for point in history] == list(range(7))
    np.testing.assert_allclose([point.value for point in history], model.cv_mean_)
    text = tracked.artifacts.load_text(f"{run.info.artifact_uri}/cv_results.csv")
    assert len(text.splitlines()) == 8
    # one run for one search: the fits inside are part of it
    assert len(tracked.MlflowClient().search_runs(["0"])) == 1


def test_noise_rates_and_the_active_run(tracked):
    X, y = make_moons(120, noise=0.15, random_state=0)
    y[:12] = 1 - y[:12]
    mlflow_autolog.autolog()
    with tracked.start_run() as run:
        model = buttress.NoiseAwareClassifier(random_state=0).fit(X, y)
    found = tracked.get_run(run.info.run_id).data.metrics
    for label, rate in model.noise_.rates_.items():
        assert found[f"noise_rate.{label}"] == pytest.approx(float(rate))
        assert found[f"noise_rate_low.{label}"] <= rate <= found[f"noise_rate_high.{label}"]
    assert found["suspects"] == len(model.suspects_.selected)


def test_models_are_logged_when_asked_and_nothing_is_once_disabled(tracked):
    X, y = make_moons(40, noise=0.2, random_state=0)
    plain = buttress.RampClassifier.fit
    mlflow_autolog.autolog(log_models=True)
    mlflow_autolog.autolog(log_models=True)  # twice is once
    model = buttress.RampClassifier().fit(pd.DataFrame(X, columns=["a", "b"]), y)
    run = last_run(tracked)
    (logged,) = tracked.MlflowClient().search_logged_models(["0"])
    assert logged.source_run_id == run.info.run_id
    again = tracked.pyfunc.load_model(logged.model_uri).predict(pd.DataFrame(X, columns=["a", "b"]))
    assert again["label"].tolist() == model.predict(pd.DataFrame(X, columns=["a", "b"])).tolist()
    mlflow_autolog.autolog(disable=True)
    assert buttress.RampClassifier.fit is plain
    buttress.RampClassifier().fit(X, y)
    assert len(tracked.MlflowClient().search_runs(["0"])) == 1

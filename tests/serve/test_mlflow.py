"""The MLflow flavour, with MLflow itself where it is installed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_moons
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

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


def params_of(mlflow):
    """The parameters of every run, the first run first."""
    return [run.data.params for run in mlflow.MlflowClient().search_runs(["0"])[::-1]]


def test_a_second_fit_in_a_run_is_logged_below_it(tracked):
    X, y = make_moons(40, noise=0.2, random_state=0)
    mlflow_autolog.autolog()
    with tracked.start_run() as run:
        for C in (1.0, 2.0, 2.0):
            buttress.RampClassifier(C=C).fit(X, y)
        assert tracked.active_run().info.run_id == run.info.run_id
    assert [params["C"] for params in params_of(tracked)] == ["1.0", "2.0", "2.0"]
    *nested, outer = tracked.MlflowClient().search_runs(["0"])
    assert outer.info.run_id == run.info.run_id
    parents = [one.data.tags.get("mlflow.parentRunId") for one in nested]
    assert parents == [run.info.run_id] * 2


def test_a_run_with_other_parameters_of_the_user_keeps_them(tracked):
    X, y = make_moons(40, noise=0.2, random_state=0)
    mlflow_autolog.autolog()
    experiment = tracked.create_experiment("elsewhere")
    with tracked.start_run(experiment_id=experiment) as run:
        tracked.log_params({"C": 1.0, "tol": "of the chairs"})
        buttress.RampClassifier(C=1.0).fit(X, y)
    nested, outer = tracked.MlflowClient().search_runs([experiment])
    assert outer.data.params == {"C": "1.0", "tol": "of the chairs"}
    assert nested.data.params["estimator"] == "RampClassifier"
    assert nested.data.tags["mlflow.parentRunId"] == run.info.run_id
    with tracked.start_run() as run:
        tracked.log_param("C", 1.0)
        buttress.RampClassifier(C=1.0).fit(X, y)
    assert tracked.get_run(run.info.run_id).data.params["estimator"] == "RampClassifier"


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky"])
def test_a_search_of_scikit_learn_chooses_as_ever_and_logs_its_last_fit(tracked, backend):
    X, y = make_moons(60, noise=0.2, random_state=0)
    grid = {"C": [1e-3, 0.1, 10]}
    search = GridSearchCV(buttress.RampClassifier(), grid, cv=3, error_score="raise", n_jobs=2)
    plain = clone(search).fit(X, y)
    mlflow_autolog.autolog()
    with tracked.start_run() as run, parallel_config(backend):
        search.fit(X, y)
        cross_val_score(buttress.RampClassifier(), X, y, cv=3, error_score="raise", n_jobs=2)
    assert search.best_params_ == plain.best_params_
    scores = search.cv_results_["mean_test_score"]
    np.testing.assert_array_equal(scores, plain.cv_results_["mean_test_score"])
    (params,) = params_of(tracked)
    assert params["C"] == str(search.best_params_["C"])
    assert tracked.get_run(run.info.run_id).data.metrics["duality_gap"] >= 0


def test_folds_that_threads_fit_are_part_of_the_model_that_asks_for_them(tracked):
    X, y = make_moons(60, noise=0.2, random_state=0)
    witness = buttress.RampClassifier()
    mlflow_autolog.autolog()
    audit = buttress.LabelAudit([witness], n_jobs=2, random_state=0).audit(X, y)
    assert audit is not None
    assert params_of(tracked) == []
    # one step of a pipeline is a fit as any other, and so is a fit in a thread of the user's
    make_pipeline(StandardScaler(), witness).fit(X, y)
    for model in (witness, make_pipeline(StandardScaler(), witness)):
        Parallel(2, backend="threading")(delayed(clone(model).fit)(X, y) for _ in range(2))
    assert len(params_of(tracked)) == 5
    # the members of an ensemble, and the folds of its calibration
    BaggingClassifier(witness, n_estimators=3).fit(X, y)
    CalibratedClassifierCV(witness, cv=2).fit(X, y)
    assert len(params_of(tracked)) == 5


def test_a_fit_stays_a_fit_where_nothing_can_be_logged(tracked, monkeypatch):
    X, y = make_moons(40, noise=0.2, random_state=0)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    mlflow_autolog.autolog()
    tracked.set_tracking_uri("http://127.0.0.1:9")  # nobody listens there
    with pytest.warns(UserWarning, match="not logged to MLflow.*127.0.0.1") as warned:
        models = [buttress.RampClassifier(C=C).fit(X, y) for C in (1.0, 2.0)]
    assert [warning.filename for warning in warned] == [__file__]
    assert models[0].score(X, y) > 0.7
    with pytest.raises(ValueError, match="out of range"):
        buttress.RampClassifier(C=-1).fit(X, y)
    # another reason is told; the same one is told again after the next `autolog`
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE")
    for _ in range(2):
        mlflow_autolog.autolog()
        tracked.set_tracking_uri("file:///nowhere")
        with pytest.warns(UserWarning, match="MLFLOW_ALLOW_FILE_STORE") as warned:
            _ = [buttress.RampClassifier(C=C).fit(X, y) for C in (1.0, 2.0)]
        assert len(warned) == 1


def test_a_server_that_breaks_during_a_run_ends_no_fit(tracked, monkeypatch):
    X, y = make_moons(40, noise=0.2, random_state=0)
    mlflow_autolog.autolog()
    numbers = iter(range(10))

    def broken(metrics):
        raise ConnectionError(f"request {next(numbers)} was lost")

    with tracked.start_run() as run:
        monkeypatch.setattr(tracked, "log_metrics", broken)
        with pytest.warns(UserWarning, match="request 0") as warned:
            _ = [buttress.RampClassifier(C=C).fit(X, y) for C in (1.0, 2.0, 3.0)]
        assert tracked.active_run().info.run_id == run.info.run_id
    assert len(warned) == 1

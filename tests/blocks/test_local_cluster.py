"""A real LocalCluster: Dask collections into `fit`, scikit-learn's grids through joblib."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV

from buttress import LeakyHockeyStickClassifier, LeakyHockeyStickClassifierCV

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def client():
    """Two worker processes, on ports that the system chooses."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def rows():
    return make_classification(600, 5, random_state=0)


def test_the_active_client_is_used_and_gives_the_model_of_memory(client, rows):
    X, y = rows
    # a feature map, so that the folds of both are those of the row numbers
    search = LeakyHockeyStickClassifierCV(
        alphas=4, cv=3, approximation="nystroem", n_components=20, random_state=0
    )
    alone = search.fit(X, y)
    wanted, scores = alone.decision_function(X), alone.cv_mean_
    chunked = search.fit(da.from_array(X, chunks=(150, -1)), da.from_array(y, chunks=150))
    np.testing.assert_allclose(chunked.cv_mean_, scores)
    np.testing.assert_allclose(chunked.decision_function(X), wanted, atol=1e-5)


def test_a_frame_with_its_label_by_name(client, rows):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcde")).assign(label=y)
    model = LeakyHockeyStickClassifier(kernel="linear", approximation="auto")
    model.fit(dd.from_pandas(frame, npartitions=3), "label")
    assert model.feature_names_in_.tolist() == list("abcde")
    wanted = LeakyHockeyStickClassifier(kernel="linear", approximation="auto").fit(X, y)
    np.testing.assert_allclose(model.coef_, wanted.coef_, atol=1e-5)


def test_a_grid_of_scikit_learn_runs_on_the_workers(client, rows):
    joblib = pytest.importorskip("joblib")
    X, y = rows[0][:120], rows[1][:120]
    grid = GridSearchCV(LeakyHockeyStickClassifier(), {"alpha": [0.1, 0.01]}, cv=2)
    wanted = grid.fit(X, y).cv_results_["mean_test_score"]
    with joblib.parallel_config(backend="dask"):
        found = grid.fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(found, wanted)

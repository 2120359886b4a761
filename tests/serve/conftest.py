"""Small fitted models in files, and a client of the service in front of them."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.datasets import make_classification
from starlette.testclient import TestClient

import buttress
from buttress.serve.app import make_app
from buttress.serve.service import Service, Settings
from buttress.tables import TableClassifier

pytest.importorskip("skops")


def make_table(n=120, seed=0, n_classes=2):
    X, y = make_classification(
        n,
        4,
        n_informative=3,
        n_redundant=0,
        n_classes=n_classes,
        n_clusters_per_class=1,
        class_sep=0.8,
        random_state=seed,
    )
    city = np.random.default_rng(seed).choice(["Oslo", "Bergen", "Tromsø"], n)
    table = {f"x{i}": X[:, i] * 10**i for i in range(4)} | {"city": city.astype(object)}
    return table, np.array(["no", "yes", "maybe"], dtype=object)[y]


def fitted(estimator, n_classes=2, **settings):
    table, y = make_table(n_classes=n_classes)
    return TableClassifier(estimator, target="y", **settings).fit(table | {"y": y})


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Files of models, by name."""
    folder = tmp_path_factory.mktemp("models")
    numbers, y = make_table()
    matrix = np.column_stack([numbers[f"x{i}"] for i in range(4)])
    made = {
        "reject": fitted(buttress.DoubleRampClassifier(d=0.3)),
        "impute": fitted(buttress.RampClassifier(), missing="impute"),
        "three": fitted(buttress.LeakyHockeyStickClassifier(), n_classes=3),
        "plain": buttress.RampClassifier().fit(matrix, y.astype(str)),
        "online": fitted(buttress.PARampClassifier(gamma=0.2)),
    }
    for name, model in made.items():
        buttress.save(model, folder / f"{name}.skops")
    return folder


@contextmanager
def client_of(path, **settings):
    """A client of a service with its life around it."""
    service = Service(path, Settings(**settings))
    headers = {"authorization": f"Bearer {settings['token']}"} if settings.get("token") else {}
    with TestClient(make_app(service), base_url="http://127.0.0.1:8000", headers=headers) as client:
        client.service = service
        yield client


@pytest.fixture
def serving():
    """Makes a client of a service."""
    return client_of


@pytest.fixture
def rows():
    """Makes rows that the models of tables accept."""

    def make(n=5, seed=1):
        table, _ = make_table(max(n, 30), seed)
        return [
            {
                name: (v if isinstance(v, str) else float(v))
                for name, v in zip(table, row, strict=True)
            }
            for row in zip(*table.values(), strict=True)
        ][:n]

    return make

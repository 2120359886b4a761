"""The evidence beside a row is what brute force finds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from buttress.review.evidence import Evidence, shown
from buttress.tables.table import Table


@pytest.fixture
def evidence():
    rng = np.random.default_rng(0)
    columns = {
        "a": rng.normal(size=60),
        "b": rng.normal(size=60) * 100,
        "city": rng.choice(["u", "v"], 60).astype(object),
        "story": np.array([f"text {i}" for i in range(60)], dtype=object),
        "empty": np.full(60, np.nan),
    }
    columns["a"][7] = np.nan
    columns["city"][3] = None
    labels = rng.choice(["no", "yes"], 60).astype(object)
    labels[5] = None
    return Evidence(Table(columns), labels, list(columns))


def test_neighbours_are_the_nearest(evidence):
    table, rows = evidence.table, np.flatnonzero(evidence.labels == "yes")
    a = np.where(np.isnan(table["a"]), np.nanmedian(table["a"]), table["a"])
    scaled = StandardScaler().fit_transform(np.c_[a, table["b"]])
    one_hot = np.array([[c == "u", c == "v"] for c in table["city"]], dtype=float)
    city = [c for c in table["city"] if c is not None]
    one_hot[3] = [1, 0] if city.count("u") >= city.count("v") else [0, 1]
    X = np.hstack([scaled, one_hot])
    for row in (0, 3, 7, 20):
        among = rows[rows != row]
        distances, nearest = NearestNeighbors(n_neighbors=3).fit(X[among]).kneighbors(X[[row]])
        found = evidence.neighbours(row, "yes", 3)
        assert [n.row - 1 for n in found] == among[nearest[0]].tolist()
        np.testing.assert_allclose([n.distance for n in found], distances[0], rtol=1e-5)


def test_medians_are_those_of_the_class(evidence):
    (a,) = [f for f in evidence.row(0, "no", "yes") if f.name == "a"]
    of_no = evidence.table["a"][evidence.labels == "no"]
    assert a.usual["no"] == shown(np.nanmedian(of_no))


def test_features_against_the_label_come_first():
    x = np.r_[np.zeros(20), np.full(20, 10.0)]
    table = Table(
        {"far": x, "flat": np.zeros(40), "kind": np.array(["s"] * 20 + ["t"] * 20, dtype=object)}
    )
    labels = np.array(["no"] * 20 + ["yes"] * 20, dtype=object)
    labels[25] = "no"
    features = Evidence(table, labels, table.names).row(25, "no", "yes")
    assert [f.name for f in features] == ["kind", "far", "flat"]
    assert features[0].against > features[1].against > 0 == features[2].against
    # the log ratio of the smoothed shares: 19 of 19 rows and 1 of 21
    assert features[0].against == pytest.approx(np.log((20 / 21) / (2 / 23)))
    assert Evidence(table, labels, table.names).row(25, "no", "no")[0].against == 0


def test_infinite_and_missing_values_do_no_harm():
    table = Table({"x": np.array([np.inf, 1.0, 2.0]), "y": np.array([np.nan] * 3)})
    evidence = Evidence(table, np.array(["a", "b", "b"], dtype=object), ["x", "y"])
    assert evidence.values(0) == {"x": "inf", "y": ""}
    assert [f.against for f in evidence.row(0, "a", "b")] == [0.0, 0.0]
    assert len(evidence.neighbours(0, "b")) == 2
    assert evidence.neighbours(0, "unknown") == []


def test_a_reader_during_an_update_sees_the_old_classes_whole(evidence, monkeypatch):
    from buttress.review import evidence as module

    usual, before = module._usual, evidence.row(0, "no", "yes")
    seen = []

    def read_in_between(values):
        seen.append(evidence.row(0, "no", "yes"))
        return usual(values)

    monkeypatch.setattr(module, "_usual", read_in_between)
    changed = np.array(["other"] * len(evidence.table), dtype=object)
    evidence.update(changed)
    assert seen
    assert all(each == before for each in seen)
    assert evidence.classes == ["other"]

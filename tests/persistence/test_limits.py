"""What a model file may hold, and how large it may become: known before it is unpacked."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import FeatureAgglomeration
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import buttress
from buttress.persistence import ModelFileError, _limits, container
from buttress.tables import TableClassifier

skops_io = pytest.importorskip("skops.io")

X, Y = make_classification(60, 4, random_state=0, flip_y=0.1)

INSIDE = [
    DecisionTreeClassifier(max_depth=3),
    RandomForestClassifier(5, random_state=0),
    GradientBoostingClassifier(n_estimators=5),
    HistGradientBoostingClassifier(max_iter=5),
    KNeighborsClassifier(algorithm="kd_tree"),
    KNeighborsClassifier(algorithm="ball_tree"),
    GaussianProcessClassifier(),
    MLPClassifier((4,), max_iter=20, random_state=0),
    GaussianNB(),
    RidgeClassifier(),
    SVC(),
    StackingClassifier([("a", GaussianNB())], LogisticRegression()),
    make_pipeline(PolynomialFeatures(), LogisticRegression()),
    make_pipeline(SelectKBest(f_classif, k=1), LogisticRegression()),
    make_pipeline(SplineTransformer(), LogisticRegression()),
    make_pipeline(FeatureAgglomeration(2), LogisticRegression()),
    make_pipeline(FeatureAgglomeration(2, pooling_func=np.max), LogisticRegression()),
]


@pytest.mark.parametrize("estimator", INSIDE, ids=lambda one: str(type(one).__name__))
@pytest.mark.filterwarnings("ignore")
def test_wrappers_around_models_of_scikit_learn_are_saved(tmp_path, estimator):
    for model in (
        buttress.ChowRejector(estimator, d=0.2).fit(X, Y),
        TableClassifier(estimator, target="y").fit({"a": X[:, 0], "b": X[:, 1], "y": Y}),
    ):
        buttress.save(model, tmp_path / "m.skops")
        again = buttress.load(tmp_path / "m.skops")
        rows = X if isinstance(model, buttress.ChowRejector) else {"a": X[:, 0], "b": X[:, 1]}
        np.testing.assert_array_equal(again.predict(rows), model.predict(rows))


@pytest.mark.parametrize(
    "function", ["os.system", "sklearn.datasets.load_files", "sklearn.utils.os.system", "eval"]
)
def test_functions_are_not_what_scikit_learn_is_trusted_for(tmp_path, function):
    node = {"__class__": function.rpartition(".")[2], "__module__": function.rpartition(".")[0]}
    node |= {"__loader__": "FunctionNode", "__id__": 1, "content": dict(node)}
    sealed = rebuilt({"schema.json": json.dumps(node | {"protocol": 2, "_skops_version": "0.11"})})
    (tmp_path / "m.skops").write_bytes(sealed)
    with pytest.raises(ModelFileError, match=r"m\.skops: (refused|the file is malformed)"):
        buttress.load(tmp_path / "m.skops")


def rebuilt(members, compression=zipfile.ZIP_DEFLATED):
    """A sealed archive of these members, whatever they are."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return container.seal(buffer.getvalue())


def members_of(model):
    with zipfile.ZipFile(io.BytesIO(skops_io.dumps(model))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def refused(tmp_path, sealed, reason):
    (tmp_path / "bomb.skops").write_bytes(sealed)
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=reason):
            buttress.load(tmp_path / "bomb.skops")
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture
def small(monkeypatch):
    # the real bound is 256 MB; the rule is the same
    monkeypatch.setattr(_limits, "_AT_LEAST", 2_000_000)


def test_a_small_file_that_unpacks_to_much_is_refused_before_it_is(tmp_path, small):
    members = members_of({"a": np.zeros(3)})
    members["more.npy"] = bytes(50_000_000)
    sealed = rebuilt(members)
    assert len(sealed) < 100_000
    assert refused(tmp_path, sealed, "would unpack to") < 5_000_000


def test_one_array_named_many_times_counts_many_times(tmp_path, small):
    members = members_of([np.zeros(100_000), np.zeros(1)])
    schema = json.loads(members["schema.json"])
    schema["content"] = [schema["content"][0] | {"__id__": i} for i in range(500)]
    members["schema.json"] = json.dumps(schema)
    assert refused(tmp_path, rebuilt(members), "would unpack to") < 10_000_000


def test_an_array_that_claims_more_than_it_has_is_refused(tmp_path):
    members = members_of([np.zeros(4)])
    name = next(name for name in members if name.endswith(".npy"))
    members[name] = members[name].replace(b"(4,)", b"(999999999999,)").replace(b" " * 11, b"", 1)
    header = members[name]
    assert b"(999999999999,)" in header
    assert refused(tmp_path, rebuilt(members), "claims .* bytes|malformed") < 5_000_000


def test_a_sparse_matrix_that_claims_more_than_it_has_is_refused(tmp_path, small):
    members = members_of([sparse.csr_matrix(np.eye(3))])
    name = next(name for name in members if name.endswith(".npz"))
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", bytes(30_000_000))
    members[name] = inner.getvalue()
    assert refused(tmp_path, rebuilt(members), "would unpack to|malformed") < 8_000_000


def test_a_schema_that_is_too_deep_or_too_wide_is_refused(tmp_path, monkeypatch):
    deep = '{"a":' * 400 + "1" + "}" * 400
    refused(tmp_path, rebuilt({"schema.json": deep}), "too deep")
    refused(tmp_path, rebuilt({"schema.json": "[" * 100_000}), "malformed")
    monkeypatch.setattr(_limits, "_MOST_NODES", 100)
    refused(tmp_path, rebuilt({"schema.json": json.dumps([1] * 200)}), "too many nodes")
    monkeypatch.setattr(_limits, "_MOST_MEMBERS", 3)
    many = {"schema.json": "{}"} | {f"{i}.npy": "" for i in range(5)}
    refused(tmp_path, rebuilt(many), "6 members")


def test_a_schema_is_refused_before_it_is_parsed(tmp_path):
    wide = rebuilt({"schema.json": b"[" + b"1," * 3_000_000 + b"1]"})
    assert len(wide) < 100_000
    # the text itself has 6 MB; parsed and walked it would take some 500
    assert refused(tmp_path, wide, "too many nodes") < 30_000_000


@pytest.mark.parametrize(
    "members",
    [
        {"schema.json": "{}"},
        {"schema.json": "[]"},
        {"schema.json": '"text"'},
        {"schema.json": "not json"},
        {"schema.json": '{"protocol": 2}'},
        {"schema.json": '{"__loader__": "NoSuchNode", "protocol": 2}'},
        {"other": "x"},
    ],
    ids=str,
)
def test_a_sealed_file_that_is_no_model_is_one_kind_of_error(tmp_path, members):
    refused(tmp_path, rebuilt(members), r"bomb\.skops: ")


@pytest.mark.parametrize("text", [b"{}", b"[]", b'{"format": "x"}', b"nonsense", b'{"format": 2}'])
def test_a_description_that_says_nothing_is_refused(tmp_path, monkeypatch, text):
    sealed = rebuilt({"schema.json": "{}"})
    monkeypatch.setattr(container.json, "dumps", lambda value: text.decode())
    sealed = rebuilt({"schema.json": "{}"})
    monkeypatch.undo()
    refused(tmp_path, sealed, "does not say which format")


def test_what_compresses_too_well_is_stored_as_it_is_and_loads(tmp_path, small):
    model = GaussianNB().fit(X, Y)
    model.var_smoothing_history = np.zeros(2_000_000)
    buttress.save(model, tmp_path / "m.skops")
    assert (tmp_path / "m.skops").stat().st_size > 16_000_000
    assert len(buttress.load(tmp_path / "m.skops").var_smoothing_history) == 2_000_000


def with_array(model, change):
    """The model's file with one of its arrays changed, sealed anew."""
    members = members_of(model)
    n_changed = 0
    for name, content in members.items():
        if name.endswith(".npy"):
            array = np.load(io.BytesIO(content))
            new = change(array)
            if new is not None:
                buffer = io.BytesIO()
                np.save(buffer, new)
                members[name] = buffer.getvalue()
                n_changed += 1
    assert n_changed
    return rebuilt(members)


def wrong_child(array):
    names = array.dtype.names or ()
    field = next((name for name in ("left_child", "left") if name in names), None)
    if field is None:
        return None
    array = array.copy()
    array[field][0] = len(array) + 5
    return array


def looping_child(array):
    array = wrong_child(array)
    if array is not None:
        array[next(name for name in ("left_child", "left") if name in array.dtype.names)][0] = 0
    return array


def wrong_feature(array):
    names = array.dtype.names or ()
    field = next((name for name in ("feature", "feature_idx") if name in names), None)
    if field is None:
        return None
    array = array.copy()
    array[field][0] = 99
    return array


@pytest.mark.parametrize("change", [wrong_child, looping_child, wrong_feature])
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=3),
        GradientBoostingClassifier(n_estimators=2),
        HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_tree_that_leads_out_of_itself_is_refused(tmp_path, model, change):
    refused(tmp_path, with_array(model.fit(X, Y), change), "a tree in it has a")


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree"])
def test_neighbours_that_are_no_rows_are_refused(tmp_path, algorithm):
    def change(array):
        whole = array.dtype.kind == "i" and array.shape == (60,)
        return array + 1000 if whole and len(np.unique(array)) == 60 else None

    model = KNeighborsClassifier(algorithm=algorithm).fit(X, Y)
    refused(tmp_path, with_array(model, change), "neighbour out of range")

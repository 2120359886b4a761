"""A saved model is the same model; a file that was changed, or is foreign, is refused."""

from __future__ import annotations

import copy
import json
import struct
import sys
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import buttress
from buttress import losses
from buttress.metrics import reject_scorer
from buttress.persistence import ModelFileError, container, describe
from buttress.persistence._trusted import trusted_types

skops_io = pytest.importorskip("skops.io")

X, Y = make_classification(80, 4, random_state=0, flip_y=0.1)
Y3 = np.where(X[:, 0] > 0.8, 2, Y)

ESTIMATORS = {
    "LeakyHockeyStickClassifier": {},
    "LeakyHockeyStickClassifierCV": {"alphas": 5, "cv": 3},
    "RampClassifier": {},
    "RampClassifierCV": {"cv": 3, "Cs": (1.0,), "gammas": None},
    "PARampClassifier": {},
    "KernelPerceptron": {},
    "KernelPegasos": {},
    "Norma": {},
    "DoubleRampClassifier": {},
    "DoubleRampClassifierCV": {"cv": 3, "Cs": (1.0,), "gammas": None},
    "DoubleHingeClassifier": {},
    "GeneralizedHingeClassifier": {},
    "ChowRejector": {"estimator": CalibratedClassifierCV(SVC(), ensemble=False)},
    "UncertaintySetClassifier": {},
    "UncertaintySetClassifierCV": {"cv": 3, "radii": (0.5, 1.0)},
    "MinimaxProbabilityMachine": {},
    "RademacherSelector": {"Cs": [0.1, 1.0], "gammas": None, "n_draws": 2},
}


@pytest.mark.parametrize("as_sparse", [sparse.csr_matrix, sparse.csr_array, sparse.coo_array])
def test_a_model_of_sparse_rows_survives_the_round_trip(tmp_path, as_sparse):
    rows = as_sparse(X)
    model = buttress.RampClassifier().fit(rows, Y)
    buttress.save(model, tmp_path / "model.skops")
    again = buttress.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.decision_function(rows), model.decision_function(rows))


@pytest.mark.parametrize(
    "model",
    [
        buttress.UncertaintySetClassifier(loss="hull"),
        buttress.UncertaintySetClassifier(loss="reduced_hull"),
        buttress.DoubleRampClassifierCV(Cs=[1.0], gammas=None, cv=2, scoring=reject_scorer(0.2)),
        buttress.PARampClassifier(d=0.2, drift="page-hinkley"),
        buttress.KernelPegasos(target_coverage=0.8),
        buttress.Norma(target_risk=0.2, budget=10),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:.*hulls meet")
def test_what_our_own_parameters_put_into_a_model_is_trusted(tmp_path, model):
    buttress.save(model.fit(X, Y), tmp_path / "model.skops")
    again = buttress.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_every_loss_is_trusted():
    named = [getattr(losses, name) for name in losses.__all__]
    classes = [
        one for one in named if isinstance(one, type) and not getattr(one, "_is_protocol", False)
    ]
    # a loss of the user's own functions cannot be saved: no file may hold a function
    names = {f"{one.__module__}.{one.__name__}" for one in classes}
    assert names - trusted_types(names) == {"buttress.losses.scalar.ScalarLoss"}


@pytest.mark.parametrize(
    "name",
    [
        "leaky.inner",
        "leaky.LeakyScalars",
        "leaky.Any",
        "leaky.np.ndarray",
        "scalar.ScalarLoss",
        "scalar.cache",
        "nowhere.Loss",
        "_base.math.exp",
        "..os.system",
    ],
)
def test_nothing_but_losses_is_trusted_where_they_are_defined(name):
    assert f"buttress.losses.{name}" not in trusted_types([f"buttress.losses.{name}"])


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("labels", [Y, Y3], ids=["two classes", "three classes"])
@pytest.mark.filterwarnings("ignore")
def test_every_estimator_survives_the_round_trip_exactly(tmp_path, name, labels):
    model = getattr(buttress, name)(**ESTIMATORS[name]).fit(X, labels)
    buttress.save(model, tmp_path / "model.skops")
    again = buttress.load(tmp_path / "model.skops")
    assert type(again) is type(model)
    assert again.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    if hasattr(model, "decision_function"):
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    if hasattr(model, "reject"):
        np.testing.assert_array_equal(again.reject(X), model.reject(X))


def test_models_inside_pipelines_and_searches_are_saved(tmp_path):
    from buttress import DoubleHingeClassifier
    from buttress.tables import TableClassifier

    search = GridSearchCV(
        make_pipeline(StandardScaler(), DoubleHingeClassifier()),
        {"doublehingeclassifier__C": [0.1, 1.0]},
        cv=3,
    )
    model = TableClassifier(search, target="y").fit({"a": X[:, 0], "b": X[:, 1], "y": Y})
    buttress.save(model, tmp_path / "model.skops")
    table = {"b": X[:, 1], "a": X[:, 0]}
    np.testing.assert_array_equal(
        buttress.load(tmp_path / "model.skops").predict(table), model.predict(table)
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.skops"
    buttress.save(buttress.DoubleHingeClassifier().fit(X[:20], Y[:20]), path)
    return path


@given(st.data())
def test_any_changed_byte_is_noticed(saved, data):
    content = bytearray(saved.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    changed = saved.with_name("changed.skops")
    changed.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"changed\.skops"):
        buttress.load(changed)


@pytest.mark.parametrize("length", [0, 3, 70, 500])
def test_a_cut_file_is_noticed(saved, length):
    cut = saved.with_name("cut.skops")
    cut.write_bytes(saved.read_bytes()[:length])
    with pytest.raises(ModelFileError, match="not a model saved by buttress"):
        buttress.load(cut)


def test_a_file_of_plain_skops_is_no_model_of_ours(tmp_path):
    skops_io.dump(SVC(), tmp_path / "plain.skops")
    with pytest.raises(ModelFileError, match="not a model saved by buttress"):
        buttress.load(tmp_path / "plain.skops")


def test_a_foreign_type_is_refused_by_name_even_with_a_right_checksum(tmp_path):
    class_path = f"{__name__}.Foreign"
    archive = skops_io.dumps({"model": Foreign()})
    (tmp_path / "foreign.skops").write_bytes(container.seal(archive))
    with pytest.raises(ModelFileError, match=f"untrusted type {class_path}"):
        buttress.load(tmp_path / "foreign.skops")


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    with pytest.raises(ModelFileError, match=r"untrusted type .*Foreign"):
        buttress.save(SVC(C=Foreign()), tmp_path / "model.skops")
    with pytest.raises(ModelFileError, match="DoubleHingeClassifier cannot be saved"):
        buttress.save(
            buttress.DoubleHingeClassifier(kernel=lambda a, b: a @ b.T), tmp_path / "model.skops"
        )
    with pytest.raises(ModelFileError, match="generator cannot be saved"):
        buttress.save((i for i in range(3)), tmp_path / "model.skops")
    assert not (tmp_path / "model.skops").exists()


def test_skops_itself_can_read_the_file(saved):
    trusted = skops_io.get_untrusted_types(file=saved)
    np.testing.assert_array_equal(
        skops_io.load(saved, trusted=trusted).predict(X), buttress.load(saved).predict(X)
    )


def test_the_file_says_what_wrote_it(saved):
    _, about = describe(saved)
    assert about["format"] == container.FORMAT
    assert about["buttress"] == buttress.__version__
    assert about["bytes"] == saved.stat().st_size
    assert len(about["sha256"]) == 64


def test_a_newer_format_asks_for_a_newer_library(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "FORMAT", container.FORMAT + 1)
    buttress.save(SVC().fit(X, Y), tmp_path / "new.skops")
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match=r"saved in format 3 .* install a newer one"):
        buttress.load(tmp_path / "new.skops")


def test_an_older_format_is_refused_in_one_clear_line(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "FORMAT", 1)
    buttress.save(SVC().fit(X, Y), tmp_path / "old.skops")
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match="reads format 2 only: fit the model again") as caught:
        buttress.load(tmp_path / "old.skops")
    assert "\n" not in str(caught.value)


def test_a_model_of_an_older_version_gets_the_defaults_of_new_parameters(tmp_path):
    model = buttress.DoubleHingeClassifier().fit(X, Y)
    wanted = model.decision_function(X)
    del model.target_coverage
    monkey = container.__version__
    try:
        container.__version__ = "0.0.9"
        buttress.save([model], tmp_path / "old.skops")
    finally:
        container.__version__ = monkey
    [again] = buttress.load(tmp_path / "old.skops")
    assert again.target_coverage is None
    np.testing.assert_array_equal(again.decision_function(X), wanted)
    assert describe(tmp_path / "old.skops")[1]["buttress"] == "0.0.9"


def test_a_learner_saved_before_rows_were_drawn_learns_on(tmp_path):
    learner = buttress.KernelPegasos(gamma=1.0, budget=10).fit(X, Y)
    wanted = copy.deepcopy(learner).partial_fit(X, Y)
    del learner._model.drawn
    buttress.save(learner, tmp_path / "old.skops")
    old = buttress.load(tmp_path / "old.skops").partial_fit(X, Y)
    np.testing.assert_array_equal(old.dual_coef_, wanted.dual_coef_)


def test_without_skops_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"buttress\[export\]"):
        buttress.save(DecisionTreeClassifier().fit(X, Y), tmp_path / "model.skops")
    buttress.save(SVC().fit(X, Y), tmp_path / "model.skops")  # plain parts need none
    buttress.load(tmp_path / "model.skops").predict(X)


def test_the_comment_of_the_archive_is_where_zip_expects_it(saved):
    with zipfile.ZipFile(saved) as archive:
        comment = archive.comment
        assert archive.testzip() is None
    assert comment.startswith(b"buttress-model ")
    assert json.loads(comment[15:-72])["format"] == container.FORMAT
    length = struct.unpack("<H", saved.read_bytes()[-len(comment) - 2 : -len(comment)])[0]
    assert length == len(comment)


class Foreign:
    """A type that nobody listed."""

    def get_params(self, deep=True):
        return {}

"""The ONNX graph answers as the model does."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

import buttress
from buttress.kernels import make_kernel
from buttress.metrics.scorer import half_gap
from buttress.noise import ForestWitness, KernelWitness
from buttress.persistence import to_onnx
from buttress.tables import TableClassifier

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

X, Y = make_classification(90, 4, random_state=0, flip_y=0.1)
X = X.astype(np.float32).astype(np.float64)
Y3 = np.where(X[:, 0] > 0.8, 2, Y)

BATCH = [
    "LeakyHockeyStickClassifier",
    "LeakyHockeyStickClassifierCV",
    "RampClassifier",
    "DoubleRampClassifier",
    "DoubleRampClassifierCV",
    "DoubleHingeClassifier",
    "GeneralizedHingeClassifier",
    "UncertaintySetClassifier",
    "MinimaxProbabilityMachine",
    "PARampClassifier",
    "KernelPerceptron",
    "KernelPegasos",
    "Norma",
]


def run(model, inputs, **options):
    session = onnxruntime.InferenceSession(
        to_onnx(model, **options).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    if not isinstance(inputs, dict):
        kind = np.float64 if options.get("dtype") == "float64" else np.float32
        inputs = {session.get_inputs()[0].name: np.asarray(inputs, dtype=kind)}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def check(model, inputs=X, rows=X, **options):
    """Decision values to 1e-5 of their scale; labels and masks where rounding cannot decide."""
    answers = run(model, inputs, **options)
    scores = np.asarray(model.decision_function(rows))
    scale = max(1.0, float(np.abs(scores).max()))
    assert answers["decision"].shape == scores.shape
    np.testing.assert_allclose(answers["decision"], scores, atol=1e-5 * scale)
    best = np.sort(scores, axis=1)[:, -2:] if scores.ndim == 2 else None
    sure = np.abs(scores) > 1e-9 if best is None else best[:, 1] - best[:, 0] > 1e-9
    assert sure.any()
    np.testing.assert_array_equal(answers["label"][sure], model.predict(rows)[sure])
    if "reject" in answers:
        last = model.steps[-1][1] if hasattr(model, "steps") else model
        seen = model[:-1].transform(rows) if hasattr(model, "steps") else rows
        # The edge of a band set on data is the score of a row; there rounding decides.
        apart = np.abs(half_gap(scores) - np.max(last.thresholds_)) > 1e-9
        np.testing.assert_array_equal(answers["reject"][apart], last.reject(seen)[apart])
    return answers


@pytest.mark.parametrize("name", BATCH)
@pytest.mark.parametrize("labels", [Y, Y3], ids=["two classes", "three classes"])
@pytest.mark.filterwarnings("ignore")
def test_every_classifier(name, labels):
    options = {
        "LeakyHockeyStickClassifierCV": {"cv": 3, "alphas": 5},
        "DoubleRampClassifierCV": {"cv": 3, "Cs": (1.0,), "gammas": None},
    }
    model = getattr(buttress, name)(**options.get(name, {})).fit(X, labels)
    answers = check(model)
    assert ("reject" in answers) == hasattr(model, "reject")


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid", "laplacian"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_kernel(kernel, dtype):
    # A sigmoid kernel is rarely definite, so it takes the place of another after the fit.
    model = buttress.GeneralizedHingeClassifier().fit(X, Y)
    model.kernel_ = make_kernel(kernel, gamma=0.3, degree=2, coef0=1.0)
    check(model, dtype=dtype)


@pytest.mark.parametrize("name", ["LeakyHockeyStickClassifier", "RampClassifier"])
@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
@pytest.mark.parametrize("labels", [Y, Y3], ids=["two classes", "three classes"])
@pytest.mark.filterwarnings("ignore")
def test_approximate_kernels(tmp_path, name, approximation, labels):
    model = getattr(buttress, name)(
        approximation=approximation, n_components=20, random_state=0
    ).fit(X, labels)
    buttress.save(model, tmp_path / "model.skops")
    check(buttress.load(tmp_path / "model.skops"), dtype="float64")


def test_precomputed_kernels_take_similarities():
    K = X @ X.T
    model = buttress.GeneralizedHingeClassifier(kernel="precomputed").fit(K, Y)
    answers = run(model, K, dtype="float64")
    np.testing.assert_allclose(answers["decision"], model.decision_function(K), atol=1e-9)


def test_labels_of_every_type():
    for labels in (Y, Y.astype(float), np.array(["no", "yes"])[Y], Y.astype(bool)):
        check(buttress.GeneralizedHingeClassifier().fit(X, labels))


def test_sparse_training_rows():
    model = buttress.GeneralizedHingeClassifier().fit(sparse.csr_matrix(X), Y)
    check(model)


@pytest.mark.parametrize("labels", [Y, Y3], ids=["two classes", "three classes"])
def test_the_band_for_a_coverage(labels):
    model = buttress.DoubleHingeClassifier(target_coverage=0.7, random_state=0).fit(X, labels)
    assert check(model)["reject"].any()


def test_a_model_that_never_rejects():
    answers = check(buttress.DoubleHingeClassifier(d=0.5).fit(X, Y))
    assert not answers["reject"].any()


def test_pipelines_and_searches():
    last = buttress.GeneralizedHingeClassifier()
    check(make_pipeline(StandardScaler(), "passthrough", last).fit(X, Y))
    check(make_pipeline(StandardScaler(with_mean=False, with_std=False), last).fit(X, Y))
    search = GridSearchCV(make_pipeline(StandardScaler(), last), {}, cv=3).fit(X, Y)
    answers = run(search, X)
    np.testing.assert_allclose(answers["decision"], search.decision_function(X), atol=1e-5)


def test_other_steps_are_converted_by_skl2onnx():
    pytest.importorskip("skl2onnx")
    model = make_pipeline(PCA(2), StandardScaler(), buttress.GeneralizedHingeClassifier())
    check(model.fit(X, Y))
    strange = make_pipeline(FunctionTransformer(np.tanh), buttress.GeneralizedHingeClassifier())
    with pytest.raises(ValueError, match="no ONNX translation"):
        to_onnx(strange.fit(X, Y))


def test_tables_with_categories_take_one_input_per_column(tmp_path):
    table = {
        "a": X[:, 0].copy(),
        "b": X[:, 1],
        "city": np.array(["u", "v", "w"], dtype=object)[np.arange(90) % 3],
    }
    table["a"][3] = np.nan
    model = TableClassifier(buttress.GeneralizedHingeClassifier(), missing="impute").fit(table, Y)
    inputs = {
        "a": table["a"][:, None].astype(np.float32),
        "b": table["b"][:, None].astype(np.float32),
        "city": table["city"][:, None],
    }
    answers = run(model, inputs, path=tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").stat().st_size > 1000
    np.testing.assert_allclose(answers["decision"], model.decision_function(table), atol=1e-5)
    only_text = TableClassifier(buttress.GeneralizedHingeClassifier()).fit(
        {"city": table["city"]}, Y
    )
    answers = run(only_text, {"city": inputs["city"]})
    np.testing.assert_allclose(
        answers["decision"], only_text.decision_function({"city": table["city"]}), atol=1e-5
    )


@pytest.mark.parametrize("missing", ["error", "impute"])
@pytest.mark.parametrize("standardize", [True, False])
def test_tables_of_numbers_take_one_matrix(missing, standardize):
    model = TableClassifier(
        buttress.GeneralizedHingeClassifier(), missing=missing, standardize=standardize
    ).fit(X, Y)
    answers = run(model, X)
    np.testing.assert_allclose(answers["decision"], model.decision_function(X), atol=1e-5)


def test_what_has_no_translation_is_named():
    with pytest.raises(ValueError, match="dtype='float16'"):
        to_onnx(buttress.GeneralizedHingeClassifier().fit(X, Y), dtype="float16")
    with pytest.raises(ValueError, match="kernel='cosine'"):
        to_onnx(buttress.GeneralizedHingeClassifier(kernel="cosine").fit(X, Y))
    with pytest.raises(ValueError, match="not fitted"):
        to_onnx(buttress.GeneralizedHingeClassifier())
    chow = buttress.ChowRejector(SVC(), calibration="isotonic", cv=3).fit(X, Y)
    with pytest.raises(ValueError, match="calibration='isotonic' cannot be exported"):
        to_onnx(chow)
    strange = buttress.ChowRejector(LogisticRegression(), novelty=0.05).fit(X, Y)
    with pytest.raises(ValueError, match="novelty"):
        to_onnx(strange)
    groups = buttress.GroupwiseRejector(LogisticRegression(), target_coverage=0.7, random_state=0)
    with pytest.raises(ValueError, match="by='class'"):
        to_onnx(groups.fit(X, Y, groups=np.arange(90) % 2))
    for unfitted in (
        buttress.NoiseAwareClassifier(),
        buttress.ChowRejector(SVC()),
        buttress.TwoStageRejector(SVC()),
    ):
        with pytest.raises(ValueError, match="not fitted"):
            to_onnx(unfitted)
    with pytest.raises(ValueError, match="LabelAudit"):
        to_onnx(buttress.LabelAudit())


def to_six_digits(model, rows=X + 0.01):
    """Everything that the graph gives, against the model, in double precision."""
    answers = run(model, rows, dtype="float64")
    np.testing.assert_allclose(answers["decision"], model.decision_function(rows), atol=1e-6)
    np.testing.assert_array_equal(answers["label"], model.predict(rows))
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(answers["probabilities"], model.predict_proba(rows), atol=1e-6)
    if hasattr(model, "reject"):
        np.testing.assert_array_equal(answers["reject"], model.reject(rows))
    return answers


WITNESSES = [KernelWitness(), ForestWitness(n_estimators=20, random_state=0)]
LOGISTIC = LogisticRegression()


@pytest.mark.parametrize("labels", [Y, Y3], ids=["two classes", "three classes"])
@pytest.mark.parametrize(
    "model",
    [
        buttress.NoiseAwareClassifier(WITNESSES, d=0.2, random_state=0),
        buttress.NoiseAwareClassifier(
            [HistGradientBoostingClassifier(max_iter=5), RandomForestClassifier(5, random_state=0)],
            n_repeats=1,
            random_state=0,
        ),
        buttress.NoiseAwareClassifier(
            make_pipeline(StandardScaler(), PCA(3), buttress.RampClassifier()), n_repeats=1
        ),
        buttress.RampClassifier(probability=True),
        buttress.DoubleHingeClassifier(d=0.3, probability=True),
        buttress.ChowRejector(LOGISTIC, d=0.3),
        buttress.ChowRejector(LOGISTIC, d=0.5),
        buttress.ChowRejector(LOGISTIC, target_coverage=0.7, random_state=0),
        buttress.ChowRejector(GaussianNB(), d=0.1),
        buttress.ChowRejector(buttress.RampClassifier(), d=0.3),
        buttress.ChowRejector(buttress.RampClassifier(probability=True), d=0.3),
        buttress.TwoStageRejector(LOGISTIC, d=0.1, random_state=0),
        buttress.TwoStageRejector(GaussianNB(), d=0.1, use_confidence=False, random_state=0),
        buttress.RademacherSelector(Cs=(1.0,), gammas=None, n_draws=2, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_probabilities_and_refusals_to_six_digits(model, labels):
    if isinstance(model, buttress.RademacherSelector) and labels is Y3:
        pytest.skip("two classes only")
    to_six_digits(model.fit(X, labels))


@pytest.mark.parametrize("name", ["RampClassifierCV", "UncertaintySetClassifierCV"])
@pytest.mark.filterwarnings("ignore")
def test_other_searches(name):
    options = {"RampClassifierCV": {"Cs": (1.0,)}, "UncertaintySetClassifierCV": {"radii": (1.0,)}}
    to_six_digits(getattr(buttress, name)(cv=2, gammas=None, **options[name]).fit(X, Y))


@pytest.mark.filterwarnings("ignore")
def test_a_promised_error():
    rows, labels = make_classification(400, 4, random_state=1, flip_y=0.05)
    for truth in (labels, np.where(rows[:, 0] > 0.8, 2, labels)):
        model = buttress.DoubleHingeClassifier(target_risk=0.2, random_state=0).fit(rows, truth)
        to_six_digits(model)


def test_costs():
    for pays in (0.2, 3.0):
        costs = [[0.0, 1.0, pays], [5.0, 0.0, pays]]
        answers = to_six_digits(buttress.ChowRejector(LOGISTIC, costs=costs).fit(X, Y))
        assert answers["reject"].any() == (pays < 1)
    inner = buttress.NoiseAwareClassifier(LOGISTIC, n_repeats=1, random_state=0)
    costs = [[0.0, 1.0, 0.2], [5.0, 0.0, 0.2]]
    with pytest.raises(ValueError, match="ask every draw of the noise model"):
        to_onnx(buttress.ChowRejector(inner, costs=costs).fit(X, Y))


@pytest.mark.parametrize("labels", [Y, Y3], ids=["two classes", "three classes"])
@pytest.mark.filterwarnings("ignore")
def test_bands_by_the_class_answered(labels):
    for inner in (LOGISTIC, GaussianNB()):
        model = buttress.GroupwiseRejector(
            inner, target_coverage=0.7, by="class", random_state=0
        ).fit(X, labels)
        answers = run(model, X + 0.01, dtype="float64")
        np.testing.assert_array_equal(answers["label"], model.predict(X + 0.01))
        np.testing.assert_array_equal(answers["reject"], model.reject(X + 0.01))


def test_missing_numbers_take_the_same_way():
    holes = X.copy()
    holes[::7, 1] = np.nan
    inner = HistGradientBoostingClassifier(max_iter=5)
    model = buttress.NoiseAwareClassifier(inner, n_repeats=1, random_state=0).fit(holes, Y)
    to_six_digits(model, holes)


def test_a_model_without_support_vectors_answers_with_its_intercept():
    model = buttress.GeneralizedHingeClassifier().fit(X, Y)
    model.dual_coef_ = model.dual_coef_[:, :0]
    model.support_vectors_ = model.support_vectors_[:0]
    model.support_ = model.support_[:0]
    np.testing.assert_allclose(run(model, X)["decision"], model.intercept_[0])


@pytest.mark.parametrize("module", ["onnx", "skl2onnx"])
def test_without_the_packages_the_error_says_what_to_install(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    model = make_pipeline(PCA(2), buttress.GeneralizedHingeClassifier()).fit(X, Y)
    with pytest.raises(ImportError, match=r"buttress\[export\]"):
        to_onnx(model)

"""A file whose parts do not fit together is refused when it is loaded, not at the first rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer

import buttress
from buttress.persistence import ModelFileError

X, Y = make_moons(60, noise=0.3, random_state=0)

CHANGES = {
    "a coefficient less": lambda m: setattr(m, "dual_coef_", m.dual_coef_[:, :-1]),
    "text for coefficients": lambda m: setattr(m, "dual_coef_", m.dual_coef_.astype("U5")),
    "rows turned": lambda m: setattr(m, "support_vectors_", m.support_vectors_.T.copy()),
    "no intercept": lambda m: setattr(m, "intercept_", None),
    "another width": lambda m: setattr(m, "n_features_in_", 5),
    "a width that is none": lambda m: setattr(m, "n_features_in_", True),
    "no room for a row": lambda m: setattr(m, "n_features_in_", 2**62),
    "a kernel of text": lambda m: setattr(m, "kernel_", "rbf"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("inside", [False, True])
def test_arrays_that_do_not_fit_are_refused_at_loading(tmp_path, change, inside):
    model = buttress.RampClassifier().fit(X, Y)
    CHANGES[change](model)
    whole = buttress.ChowRejector(LogisticRegression()).fit(X, Y)
    whole.estimator_ = model
    buttress.save(whole if inside else model, tmp_path / "model.skops")
    with pytest.raises(ModelFileError, match="malformed"):
        buttress.load(tmp_path / "model.skops")


@pytest.mark.parametrize(
    "model",
    [
        buttress.LeakyHockeyStickClassifierCV(alphas=3, cv=2),
        buttress.DoubleRampClassifier(kernel="linear"),
        buttress.RampClassifier(approximation="fourier", n_components=5),
        buttress.PARampClassifier(budget=10),
        buttress.MinimaxProbabilityMachine(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_sound_machines_load(tmp_path, model):
    model.fit(X, Y)
    buttress.save(model, tmp_path / "model.skops")
    loaded = buttress.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_what_other_libraries_make_of_zeros_is_not_asked(tmp_path):
    positive = np.exp(X)
    logarithms = make_pipeline(PowerTransformer(method="box-cox"), LogisticRegression())
    model = buttress.ChowRejector(logarithms).fit(positive, Y)
    with pytest.raises(ValueError, match="Box-Cox"):
        model.predict(np.zeros((1, 2)))
    buttress.save(model, tmp_path / "model.skops")
    loaded = buttress.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict(positive), model.predict(positive))

"""
Pipelines with pandas and polars
================================

The classifiers work inside scikit-learn's pipelines and searches. For frames with categories,
:class:`buttress.tables.TableClassifier` brings its own encoding, without pandas if need be, and
is what the command line uses.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from buttress import LeakyHockeyStickClassifierCV, RampClassifier
from buttress.tables import TableClassifier

rng = np.random.default_rng(0)
n = 500
frame = pd.DataFrame(
    {
        "income": rng.lognormal(3.3, 0.5, n).round(1),
        "age": rng.integers(18, 80, n),
        "region": rng.choice(["north", "south", "west"], n, p=[0.5, 0.3, 0.2]),
    }
)
signal = np.log(frame["income"]) - 3.3 + 0.02 * (frame["age"] - 45)
signal += frame["region"].map({"north": 0.4, "south": -0.4, "west": 0.0})
frame["bought"] = np.where(signal + 0.3 * rng.normal(size=n) > 0, "yes", "no")
train, test = train_test_split(frame, test_size=0.4, random_state=0)

# %%
# scikit-learn's way: columns by name, a search over the whole pipeline.

encode = make_column_transformer(
    (StandardScaler(), ["income", "age"]), (OneHotEncoder(), ["region"])
)
search = GridSearchCV(
    make_pipeline(encode, RampClassifier()), {"rampclassifier__C": np.logspace(-1, 2, 4)}, cv=5
)
search.fit(train.drop(columns="bought"), train["bought"])
print("search:", search.best_params_, f"accuracy {search.score(test, test['bought']):.3f}")

# %%
# The short way: a frame in, labels out; pandas and polars give the same answers.

model = TableClassifier(LeakyHockeyStickClassifierCV(), target="bought").fit(train)
from_pandas = model.predict(test)
from_polars = model.predict(pl.from_dict({name: test[name].to_list() for name in test}))
print("table:", f"accuracy {np.mean(from_pandas == test['bought']):.3f}")
print("same answers from polars:", bool((from_pandas == from_polars).all()))

# %%
# What the encoder made of the columns:

print(list(model.encoder_.get_feature_names_out()))

scores = model.decision_function(test)
figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
for label in model.classes_:
    axis.hist(scores[test["bought"] == label], bins=25, alpha=0.6, label=label)
axis.set(xlabel="decision value", ylabel="rows")
axis.legend(title="bought")
plt.show()

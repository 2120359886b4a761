"""
How well could the model have fitted noise?
===========================================

The Rademacher penalty of a ball of functions: give the rows random signs, and see how far the
mean loss can be pushed along with them. Large balls follow any signs; the penalty says how
much of a small training loss is owed to that.
"""

import matplotlib.pyplot as plt
import numpy as np

from buttress import RademacherSelector
from buttress.datasets import make_banana
from buttress.theory import margin_directions, rademacher_penalty

sample = make_banana(120, random_state=0)
distance = ((sample.X[:, None] - sample.X[None]) ** 2).sum(axis=2)

# %%
# Two kernel widths. The narrow kernel can tell every row from its neighbours, so its balls
# follow noise more easily than those of the wide kernel with the same norm. The values are
# attained by functions that were found, hence lower bounds; the dashed line holds for any.

fig, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
for ax, width in zip(axes, (0.1, 10.0), strict=True):
    curve = rademacher_penalty(
        np.exp(-width * distance), sample.y, gamma=0.1, n_draws=6, n_starts=3, random_state=0
    )
    curve.plot(ax)
    ax.set_title(f"gamma = {width:g}")
fig.tight_layout()

# %%
# The selector adds half the penalty of the ball each candidate lies in to its training loss
# and takes the smallest sum: one fit per candidate, no folds.

model = RademacherSelector(gammas="auto", n_draws=6, random_state=0).fit(sample.X, sample.y)
for params, risk, penalty in zip(
    model.results_["params"], model.results_["risk"], model.results_["penalty"], strict=True
):
    print(f"C={params['C']:<6g} gamma={params['gamma']:<8.3g} {risk:.2f} + {penalty:.2f} / 2")
print("chosen:", model.best_params_)

# %%
# Two margins. With less and less penalty the leaky hockey stick classifier ends at the largest
# product of margins, the support vector machine at the largest smallest margin.

rng = np.random.default_rng(3)
Z = np.concatenate([rng.normal((1.5, 1.5), 0.6, (10, 2)), rng.normal((-1.5, -1.5), 0.6, (10, 2))])
margin_directions(Z, np.repeat([1, -1], 10)).plot()
plt.show()

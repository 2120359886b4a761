"""
Losses side by side
===================

What a loss does far to the left decides what one wrong label can do to the model, and what it
does around zero decides where the model gives no answer.
"""

import matplotlib.pyplot as plt

from buttress.inspection import LossDisplay
from buttress.losses import (
    DoubleHinge,
    DoubleRamp,
    GeneralizedHinge,
    Hinge,
    LeakyHockeyStick,
    Ramp,
)

# %%
# To the left of 1 the hinge and the leaky hockey stick are the same line: a row with a wrong label
# pulls with full force, however far it lies. The ramp stops, so that such a row is ignored. To the
# right of 1 the leaky hockey stick goes on falling, like minus a logarithm: every row keeps a say.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
robust = {"hinge": Hinge(), "leaky hockey stick": LeakyHockeyStick(), "ramp, s=-1": Ramp(-1.0)}
LossDisplay.from_losses(robust, t=(-4.0, 3.0), ax=left)
LossDisplay.from_losses(robust, t=(-4.0, 3.0), quantity="derivative", ax=right)

# %%
# For rejection at cost d: the double ramp lies above the 0-d-1 loss for every half width rho
# (dotted), is bounded by 1 + mu, and tends to it as mu gets small.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
ramps = {f"double ramp, mu={mu:g}": DoubleRamp(d=0.2, mu=mu, rho=2.0) for mu in (1.0, 0.5, 0.1)}
LossDisplay.from_losses(ramps, t=(-5.0, 5.0), rejection=(0.2, 2.0), ax=left)

# %%
# The convex rivals bound it only for some widths: at rho = 0.7 both do, at rho = 2 neither.

convex = {"generalised hinge": GeneralizedHinge(0.2), "double hinge": DoubleHinge(0.2)}
LossDisplay.from_losses(convex, t=(-2.0, 3.0), rejection=(0.2, 0.7), ax=right)
right.set_ylim(0, 4)
plt.show()

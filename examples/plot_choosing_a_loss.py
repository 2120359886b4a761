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
# For noisy labels: the hinge rises for ever, the leaky hockey stick flattens (its derivative
# tends to zero), and the ramp stops. A row with a wrong label that lies far on the other side
# pulls with full force, with little, or not at all.

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

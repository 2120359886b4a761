"""What is minimised: small frozen objects that know their value, derivative and conjugate."""

from buttress.losses._base import ConjugateLoss, Loss, SmoothLoss, SplitLoss, require
from buttress.losses.hinge import DoubleHinge, GeneralizedHinge, Hinge
from buttress.losses.leaky import LeakyHockeyStick
from buttress.losses.ramp import DoubleRamp, GeneralizedRamp, Ramp

__all__ = [
    "ConjugateLoss",
    "DoubleHinge",
    "DoubleRamp",
    "GeneralizedHinge",
    "GeneralizedRamp",
    "Hinge",
    "LeakyHockeyStick",
    "Loss",
    "Ramp",
    "SmoothLoss",
    "SplitLoss",
    "require",
]

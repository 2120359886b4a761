"""What is minimised: small frozen objects that know their value, derivative and conjugate."""

from buttress.losses._base import ConjugateLoss, Loss, SmoothLoss, SplitLoss, require
from buttress.losses.leaky import LeakyHockeyStick

__all__ = [
    "ConjugateLoss",
    "LeakyHockeyStick",
    "Loss",
    "SmoothLoss",
    "SplitLoss",
    "require",
]

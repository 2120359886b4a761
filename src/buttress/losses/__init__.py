"""What is minimised: small frozen objects that know their value, derivative and conjugate."""

from buttress.losses._base import ConjugateLoss, Loss, SmoothLoss, SplitLoss, require
from buttress.losses.hinge import DoubleHinge, GeneralizedHinge, HardMargin, Hinge, NuHinge
from buttress.losses.leaky import LeakyHockeyStick
from buttress.losses.margin import OfNegative
from buttress.losses.ramp import DoubleRamp, GeneralizedRamp, Ramp
from buttress.losses.scalar import ScalarLoss
from buttress.losses.smooth import (
    EllipsoidError,
    Exponential,
    LogBarrier,
    Logistic,
    TruncatedQuadratic,
)

__all__ = [
    "ConjugateLoss",
    "DoubleHinge",
    "DoubleRamp",
    "EllipsoidError",
    "Exponential",
    "GeneralizedHinge",
    "GeneralizedRamp",
    "HardMargin",
    "Hinge",
    "LeakyHockeyStick",
    "LogBarrier",
    "Logistic",
    "Loss",
    "NuHinge",
    "OfNegative",
    "Ramp",
    "ScalarLoss",
    "SmoothLoss",
    "SplitLoss",
    "TruncatedQuadratic",
    "require",
]

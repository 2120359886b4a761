"""What is minimised: small frozen objects that know their value, derivative and conjugate.

`leaky`, `ramp`, `hinge` and `smoothed` are losses of the margin, `smooth` has those of uncertainty
sets, which `margin` turns into losses of the margin. Compiled loops read a loss through its
`scalars` (`scalar` says how, and `compiling` makes them ready), which stand beside its formulas in
NumPy; nobody else writes a loss down. A newcomer adds a loss in one file here, or from three
functions with `ScalarLoss`. Others import the names below and the modules without an underscore.
"""

from buttress.losses._base import (
    ConjugateLoss,
    Loss,
    SmoothLoss,
    SplitLoss,
    require,
    require_falling,
    require_rising,
    steepest_slope,
)
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
    "require_falling",
    "require_rising",
    "steepest_slope",
]

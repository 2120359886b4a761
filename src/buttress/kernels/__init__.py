"""Where similarity comes from: Gram matrices, their widths, and features that stand in for them.

`gram` knows the kernels by name, `width` what ``gamma`` means; `approximate` has the feature maps
(Nyström, random Fourier) and `landmarks` the rows they rest on. `exponential` is the compiled
exponential. A newcomer adds a feature map as a `FeatureMap` in `approximate`. Others import the
names below and these five modules.
"""

from buttress.kernels.gram import (
    CHECKED_GRAM,
    Kernel,
    check_positive_semidefinite,
    check_symmetric,
    kernel_arguments,
    kernel_names,
    make_kernel,
)
from buttress.kernels.width import resolve_gamma

__all__ = [
    "CHECKED_GRAM",
    "Kernel",
    "check_positive_semidefinite",
    "check_symmetric",
    "kernel_arguments",
    "kernel_names",
    "make_kernel",
    "resolve_gamma",
]

"""Where similarity comes from: exact Gram matrices and their widths."""

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

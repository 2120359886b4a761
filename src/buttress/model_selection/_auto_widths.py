"""Kernel widths to try: "auto", a list, or the estimator's own width alone."""

from __future__ import annotations

from typing import Any

from buttress.classifiers.parameters import check_widths
from buttress.kernels import resolve_gamma

# "auto" widths are the estimator's gamma times these.
_FACTORS = (0.25, 1.0, 4.0)


class AutoWidths:
    """`gammas` of a cross-validating estimator as a list of widths, or None for one width."""

    gammas: Any
    gamma: Any

    def _widths(self, X: Any, y: Any, sample_weight: Any) -> list[Any] | None:
        """Widths for the exact kernel, from all training rows."""
        if not self._automatic():
            return check_widths(self.gammas)
        data = self._training_set(X, y, sample_weight)  # type: ignore[attr-defined]
        if self._make_kernel(data).params.get("gamma") is None:  # type: ignore[attr-defined]
            return None
        return [factor * resolve_gamma(self.gamma, data.X, data.weight) for factor in _FACTORS]

    def _scaled_widths(self, scaled: Any) -> list[Any]:
        """Widths for an approximate kernel."""
        width = self._scaled_width(scaled)  # type: ignore[attr-defined]
        if self.gammas is None or width is None:
            return [None]
        if self._automatic():
            return [factor * width for factor in _FACTORS]
        return check_widths(self.gammas) or [None]

    def _automatic(self) -> bool:
        if isinstance(self.gammas, str) and self.gammas != "auto":
            raise ValueError(
                f"gammas={self.gammas!r} is not accepted: expected 'auto', None or a sequence."
            )
        return isinstance(self.gammas, str)

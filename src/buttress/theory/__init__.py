"""What the papers prove, as numbers."""

from buttress.theory.rademacher import PenaltyAt, RademacherCurve, rademacher_penalty

__all__ = ["PenaltyAt", "RademacherCurve", "rademacher_penalty"]

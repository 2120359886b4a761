"""The double ramp paper's three tables by the name of their set, for experiments on all three."""

from __future__ import annotations

from buttress.experiments import double_ramp_table3, double_ramp_table4, double_ramp_table5

TABLES = {
    "synthetic": double_ramp_table3,
    "ionosphere": double_ramp_table4,
    "parkinsons": double_ramp_table5,
}

"""Names of the models to choose from; light, so that a command line can list them at once."""

from __future__ import annotations

TITLES = {
    "svc": "plain SVC",
    "leaky": "leaky hockey stick",
    "ramp": "ramp",
    "reject": "double ramp (abstains)",
    "uncertainty": "uncertainty sets",
    "online": "PA-RAMP (one pass)",
}

# Those that always answer; the rejecting one takes part when a cost of rejection is given.
ANSWERING = ("leaky", "ramp", "uncertainty", "online")

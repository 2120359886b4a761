"""Settings for every test and doctest, inside and outside the package."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")

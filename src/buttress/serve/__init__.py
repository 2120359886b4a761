"""Models over HTTP: prediction, explanation, and learning that survives a crash."""

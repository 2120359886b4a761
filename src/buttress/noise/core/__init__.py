"""What the estimators of label noise rest on: the model, held-out scores, the list of suspects."""

"""What the estimators of label noise rest on: the model, held-out scores, the list of suspects.

`crossfit` gives held-out scores of any classifier, `fitting` fits the curves of the labels to
them, `belief` weighs what the labels can mean, `label_noise` and `suspects` are the results,
`estimate` a number with its interval, `class_noise` weights that undo the noise. Two witnesses are
of this package: `kernel_witness` and `forest_witness`, on the base in `_witness`. A newcomer begins
with a witness beside these two. Others import from the modules without an underscore; `_curves`,
`_posterior` and `_averaging` are the mathematics, private to this room.
"""

"""Exact block-wise online kernel learning.

`model` is the entry; a learner is one update rule (`rules`), its vectors live in a `store` and
are bounded by a `budget`; `similarity` computes kernel values block by block.
"""

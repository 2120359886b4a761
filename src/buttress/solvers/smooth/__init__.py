"""Smooth convex losses with a squared norm penalty: paths of penalties and their certificates.

`spectral` is the entry; `newton` and `columns` are the two methods, `duality` certifies what they
return, `geometry` is the shape of the penalty and `margins` the only place where compiled loops
meet a loss; `problems` and `paths` are what goes in and comes out, `mm` is the published algorithm.
A newcomer follows a problem from `spectral` into `newton`; a new loss needs nothing here. Others
import `spectral`, `problems`, `geometry`, `duality`, `margins` and `mm`.
"""

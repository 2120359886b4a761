"""All folds times all penalties as columns of one matrix.

`driver` is the entry: it orders the columns, gives them their starts and divides them among
threads. The rest is private to this room.
"""

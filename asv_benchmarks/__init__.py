"""The main jobs, timed commit by commit; see asv.conf.json."""

"""Models over HTTP: prediction, explanation, and learning that survives a crash.

`app` has the addresses and `service` what stands behind them; `rows`, `columns` and `v2` read a
request, `batching` answers those of many together, `learning` logs and learns, `running` starts
and ends a server. A newcomer adds an address in `app` and what it does in `service`. Others import
``running.run_server``, which starts it, or ``app.make_app``, an application around a
``service.Service``.
"""

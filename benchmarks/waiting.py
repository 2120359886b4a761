"""Where users wait: every job against its peer, in one run, with what was aimed at.

Each job is timed on both sides, the best of up to three runs (one of very long ones); processor
time counts child processes. Where a peer would take many minutes a part of its grid is run and
its time taken in proportion (the column "part of the peer's work"). Jobs that were timed are
kept, so that the table can be made in pieces:

python benchmarks/waiting.py --list
python benchmarks/waiting.py --jobs "5 widths, n = 139" "5 widths, n = 460" [--docs]
python benchmarks/waiting.py --seconds 150 [--docs]
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from _common import RESULTS, report
from _waiting_jobs import Job, jobs, timed


def measure(name: str, job: Job) -> list[dict[str, Any]]:
    """Rows of the table for one job, one for every peer."""
    work = job.prepare()
    ours = work.pop("ours")
    wall, processor = timed(ours)
    rows = []
    for peer, theirs in work.items():
        their_wall, their_processor = timed(theirs)
        ratio, least = their_wall / wall, job.aim[peer]
        rows.append(
            {
                "job": name,
                "ours [s]": wall,
                "processor [s]": processor,
                "peer": peer.replace("_", "-"),
                "peer [s]": their_wall,
                "peer's processor [s]": their_processor,
                "part of the peer's work": 1.0 / theirs.times,
                "times faster": ratio,
                "aim": least,
                "reached": "yes" if ratio >= least else "no",
            }
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="only name the jobs")
    parser.add_argument("--jobs", nargs="+", help="these, again if need be")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no job after so many")
    parser.add_argument("--docs", action="store_true", help="write the table of the documentation")
    options = parser.parse_args()
    known = dict(jobs())
    if options.list:
        print("\n".join(known))
        return
    stored = RESULTS / "waiting.json"
    rows = json.loads(stored.read_text())["rows"] if stored.exists() else []
    start = time.perf_counter()
    for name, job in known.items():
        wanted = name in options.jobs if options.jobs else not any(r["job"] == name for r in rows)
        if wanted and time.perf_counter() - start < options.seconds:
            fresh = measure(name, job)
            rows = [row for row in rows if row["job"] != name] + fresh
            rows.sort(key=lambda row: list(known).index(row["job"]))
            report("waiting", rows, docs=options.docs)
    report("waiting", rows, docs=options.docs)


if __name__ == "__main__":
    main()

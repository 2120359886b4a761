"""What an audit costs: wall and processor seconds, and the most memory, by the number of rows.

Two Gaussian classes with 10 % flips, default witnesses, every size in a process of its own. The
first audit of a process holds its imports but no compilation: the noise model compiles nothing.

Finished sizes are kept in results/audit_cost_cells.jsonl.

python benchmarks/audit_cost.py [--sizes ROWSxFEATURES ...] [--fresh] [--docs]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

from _common import Cells, report


def audited(n: int, p: int) -> dict[str, float]:
    """One audit in this process."""
    from buttress import LabelAudit

    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, n)
    X = rng.standard_normal((n, p)) + np.where(truth == 1, 1.0, -1.0)[:, None] * (np.arange(p) < 3)
    wrong = rng.random(n) < 0.1
    wall, processor = time.perf_counter(), time.process_time()
    found = LabelAudit(random_state=0, n_jobs=-1).audit(X, np.where(wrong, 1 - truth, truth))
    return {
        "seconds": time.perf_counter() - wall,
        "processor s": time.process_time() - processor,
        "most memory, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
        "named": len(found.selected),
        "false share": float((~wrong[found.selected]).mean()) if len(found.selected) else 0.0,
        "rate": float(found.noise_rate),
    }


def apart(size: str) -> dict[str, float]:
    """One audit in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", size], capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["1000x20", "10000x20", "100000x10"])
    parser.add_argument("--fresh", action="store_true", help="forget earlier sizes")
    parser.add_argument("--docs", action="store_true", help="write the documentation's table")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        n, p = (int(part) for part in given.one.split("x"))
        print(json.dumps(audited(n, p)))
        return
    cells = Cells("audit_cost", given.fresh)
    rows = [{"rows x features": size} | cells.get((size,), apart) for size in given.sizes]
    report("audit_cost", rows, docs=given.docs)


if __name__ == "__main__":
    main()

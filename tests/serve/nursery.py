"""Servers as processes of their own, started quickly, for tests that end or kill them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

# Seconds that a loaded machine may need for anything that a test waits for.
PATIENCE = 120.0

# Imports everything and runs what the test prepares, once; for every line of the input a fork
# serves until it is killed. A fork says its process id and its address when it takes requests.
CODE = """
import os, sys
from buttress.serve.running import run_server
{prepare}
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        app = make(line.strip())
        tell = lambda address: print(os.getpid(), address, flush=True)
        run_server(app, "127.0.0.1", 0, started=tell)
        os._exit(0)
    os.waitpid(child, 0)
    print("gone", flush=True)
"""


def until(condition, what="it"):
    """Wait for a condition; the deadline is generous, because machines may be busy."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen within {PATIENCE:.0f} s")


class Nursery:
    """Starts servers one after another, each a process of its own.

    Parameters
    ----------
    prepare : str
        Python code that defines ``make(line)``, which gives the application to serve.
    words : sequence
        ``sys.argv[1:]`` of that code.
    """

    def __init__(self, prepare, *words):
        # One thread each: a process with threads must not fork.
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [sys.executable, "-c", CODE.replace("{prepare}", prepare), *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | one,
        )
        assert self.process.stdout.readline() == "ready\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()

    def start(self, line="-"):
        """Process id and address of a new server that takes requests."""
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        number, address = self.process.stdout.readline().split()
        return int(number), address

    def wait(self):
        """Until the server is gone."""
        assert self.process.stdout.readline() == "gone\n"


def started(words, **settings):
    """A command that listens on a free port, and its address once it takes requests."""
    code = "import sys; from buttress.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, *map(str, words), "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **settings)
    text = ""
    while not text.endswith("}\n"):
        line = process.stdout.readline()
        assert line, f"the command ended with {process.wait(PATIENCE)}"
        text += line
    return process, json.loads(text)["address"].rstrip("/")


def ended(process):
    """Ask a command to end, wait for that, and give its exit code."""
    process.terminate()
    code = process.wait(PATIENCE)
    process.stdout.close()
    return code

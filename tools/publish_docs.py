"""Put a built documentation beside those of other versions, and tell the switcher.

    python tools/publish_docs.py docs/_build/html pages dev
    python tools/publish_docs.py docs/_build/html pages 0.1.0

``pages`` is a checkout of the branch that is published. Every version has a folder; ``stable`` is a
copy of the newest release, of ``dev`` while there is none. ``switcher.json`` lists them for the
theme, and the front page sends readers to ``stable``.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

SITE = "https://buttress-ml.github.io/buttress"
_RELEASE = re.compile(r"\d+\.\d+(\.\d+)?")
_FRONT = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Buttress</title>
<meta http-equiv="refresh" content="0; url=stable/index.html">
<link rel="canonical" href="{site}/stable/index.html"></head>
<body><a href="stable/index.html">Buttress</a></body></html>
"""


def publish(built: Path, pages: Path, version: str) -> list[str]:
    """Copy `built` to its place under `pages`; the versions now there, the newest first."""
    version = version.removeprefix("v")  # as tags have it
    if version != "dev" and not _RELEASE.fullmatch(version):
        raise ValueError(f"version {version!r} is neither 'dev' nor a release such as 0.1.0")
    if not (built / "index.html").is_file():
        raise ValueError(f"{built} holds no built documentation")
    _replace(built, pages / version)
    releases = sorted(
        (path.name for path in pages.iterdir() if _RELEASE.fullmatch(path.name)),
        key=lambda name: tuple(map(int, name.split("."))),
        reverse=True,
    )
    newest = releases[0] if releases else "dev"
    if version == newest:
        _replace(built, pages / "stable")
    has_dev = ["dev"] if (pages / "dev").is_dir() else []
    entries = [
        {
            "name": f"{name} (stable)" if name == newest else name,
            "version": name,
            "url": f"{SITE}/{'stable' if name == newest else name}/",
            "preferred": name == newest,
        }
        for name in [*releases, *has_dev]
    ]
    (pages / "switcher.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    (pages / "index.html").write_text(_FRONT.format(site=SITE), encoding="utf-8")
    (pages / ".nojekyll").touch()
    return [entry["version"] for entry in entries]


def _replace(source: Path, target: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(source, target)


def main() -> int:
    if len(sys.argv) != 4:
        print(__doc__)
        return 2
    print("versions:", ", ".join(publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""A headless Chromium through ChromeDriver, by the WebDriver protocol over plain HTTP."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def programs() -> tuple[str | None, str | None]:
    """Where the browser and its driver are, if they are."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    return browser or shutil.which("google-chrome"), shutil.which("chromedriver")


class Chromium:
    """One browser with an empty profile."""

    def __init__(self, folder: Path, *, width: int, height: int, dark: bool = False) -> None:
        browser, driver = programs()
        self._base = f"http://127.0.0.1:{self._started(str(driver))}"
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={width},{height}",
        ]
        if dark:
            flags.append("--blink-settings=preferredColorScheme=0")
        options = {
            "binary": browser,
            "args": flags,
            "prefs": {"download.default_directory": str(folder / "downloads")},
        }
        capabilities = {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        self._wait_until_ready()
        body = {"capabilities": {"alwaysMatch": capabilities}}
        self._session = f"/session/{self._call('POST', '/session', body)['sessionId']}"
        # Browsers have a least width of their own; the emulation of a phone has not.
        self.command(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )

    def _started(self, driver: str) -> int:
        """Start the driver; the port that it has taken.

        The system gives it a free port of IPv4, which it wants of IPv6 too: where another program
        has that, the driver ends, and is started again.
        """
        for _ in range(10):
            self._process = subprocess.Popen(
                [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            assert self._process.stdout is not None
            for line in self._process.stdout:
                if found := re.search(r"successfully on port (\d+)", line):
                    return int(found[1])
            self._process.wait(60)
            self._process.stdout.close()
        raise RuntimeError("ChromeDriver did not start")

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
        raise TimeoutError("ChromeDriver did not start")

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = json.dumps(body or {}).encode() if method == "POST" else None
        request = urllib.request.Request(self._base + path, data, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def command(self, name: str, parameters: dict[str, Any]) -> Any:
        """A command of the DevTools protocol."""
        body = {"cmd": name, "params": parameters}
        return self._call("POST", f"{self._session}/goog/cdp/execute", body)

    def open(self, address: str) -> None:
        """Load a page."""
        self._call("POST", f"{self._session}/url", {"url": address})

    def run(self, script: str, *arguments: Any) -> Any:
        """The value that a script returns."""
        body = {"script": script, "args": list(arguments)}
        return self._call("POST", f"{self._session}/execute/sync", body)

    def text(self, selector: str) -> str:
        """The text of the first element that matches."""
        return str(self.run("return document.querySelector(arguments[0]).innerText", selector))

    def _find(self, selector: str) -> str:
        body = {"using": "css selector", "value": selector}
        return str(self._call("POST", f"{self._session}/element", body)[ELEMENT])

    def click(self, selector: str) -> None:
        """Click as a person does: the element must be visible."""
        self._call("POST", f"{self._session}/element/{self._find(selector)}/click")

    def type(self, selector: str, text: str) -> None:
        """Press keys in an element."""
        self._call("POST", f"{self._session}/element/{self._find(selector)}/value", {"text": text})

    def console(self) -> list[str]:
        """Errors and warnings written to the console since the last call."""
        entries = self._call("POST", f"{self._session}/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self) -> list[str]:
        """Addresses asked for since the last call."""
        found = []
        for entry in self._call("POST", f"{self._session}/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def screenshot(self, path: Path) -> None:
        """A picture of the whole page."""
        image = self.command(
            "Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True}
        )
        path.write_bytes(base64.b64decode(image["data"]))

    def close(self) -> None:
        """End the browser and its driver."""
        try:
            self._call("DELETE", self._session)
        finally:
            self._process.terminate()
            self._process.wait(timeout=60)
            if self._process.stdout is not None:
                self._process.stdout.close()

"""A headless browser that is asked by its developer protocol: sizes, dark and light, print, keys, screenshots."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from itertools import count
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

__all__ = ["BROWSER", "Browser"]

#: The Chromium of this machine, if there is one.
BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
    "about:blank",
)
_KEYS = {"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "Enter": 13, "Tab": 9}


class Browser:
    """One page of one browser, which ends with the ``with`` block. Every wait ends after ``patience`` seconds."""

    def __init__(self, patience: float = 60) -> None:
        """Starts it. Raises ``FileNotFoundError`` where there is none."""
        if BROWSER is None:
            raise FileNotFoundError("Chromium is not installed")
        self._patience = patience
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, self._in = os.pipe()
        self._out, answers = os.pipe()
        # The protocol reads from descriptor 3 and writes to descriptor 4.
        script = f'exec "$@" 3<&{commands} 4>&{answers}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", BROWSER, f"--user-data-dir={self._folder.name}", *_OPTIONS],
            pass_fds=(commands, answers),
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._ids, self._read, self._session = count(1), b"", ""
        (target,) = [one for one in self.ask("Target.getTargets")["targetInfos"] if one["type"] == "page"][:1]
        attached = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]

    def __enter__(self) -> Self:
        """The browser itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Ends it."""
        os.close(self._in)
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        self._folder.cleanup()

    def ask(self, method: str, **given: Any) -> Any:
        """The answer to a command of the protocol. Raises ``RuntimeError`` for an error, ``TimeoutError`` for none."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": given}
        if self._session:
            message["sessionId"] = self._session
        octets = json.dumps(message).encode() + b"\0"
        while octets:
            octets = octets[os.write(self._in, octets) :]
        end = time.monotonic() + self._patience
        while True:
            *whole, self._read = self._read.split(b"\0")
            for answer in map(json.loads, whole):
                if answer.get("id") == number:
                    if "error" in answer:
                        raise RuntimeError(f"{method}: {answer['error']}")
                    return answer["result"]
            if not select.select([self._out], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"the browser does not answer {method}")
            if not (more := os.read(self._out, 1 << 20)):
                raise RuntimeError("the browser has ended")
            self._read += more

    def run(self, script: str) -> Any:
        """What an expression of JavaScript gives, when its promise is kept."""
        told = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            raise RuntimeError(told["exceptionDetails"]["exception"].get("description", "an error in the page"))
        return told["result"].get("value")

    def wait(self, condition: str) -> None:
        """Until an expression holds."""
        end = time.monotonic() + self._patience
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise TimeoutError(condition)
            time.sleep(0.02)

    def look(self, width: int, height: int, *, dark: bool = False, media: str = "screen", script: bool = True) -> None:
        """Sets the size of the window in pixels, colours, medium, and whether pages may run scripts."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.ask("Emulation.setScriptExecutionDisabled", value=not script)

    def open(self, page: Path, part: str = "") -> None:
        """Goes to a file, or a part of it, and waits until it is loaded."""
        url = page.as_uri() + part
        self.ask("Page.navigate", url=url)
        self.wait(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    def press(self, key: str) -> None:
        """One key, down and up."""
        text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
        code = {"windowsVirtualKeyCode": _KEYS.get(key, 0)}
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, **code)

    def picture(self, *, whole: bool = False) -> bytes:
        """A screenshot as PNG, of the window or of the whole page."""
        told = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(told["data"])

    def printed(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self.ask("Page.printToPDF", printBackground=False)["data"])

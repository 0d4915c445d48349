"""Chromium by its DevTools protocol: open a page, look for what people cannot read, take a picture."""

import asyncio
import base64
import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tornado.websocket import websocket_connect

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)

MISSING = "needs chromium (Debian's package of that name)"

# Texts below `top` whose contrast with what lies behind them is below 4.5 to 1.
_CONTRAST = """(top => {
  const channel = v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = c => .2126 * channel(c[0]) + .7152 * channel(c[1]) + .0722 * channel(c[2]);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || (c.length === 4 && c[3] > .99)) return c;
    }
    return DARK ? [18, 18, 18] : [255, 255, 255];
  };
  const bad = [];
  for (const e of document.querySelectorAll(`${top} *:not(svg *):not(style)`)) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility()) continue;
    const a = light(parse(getComputedStyle(e).color)), b = light(behind(e));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.49) bad.push(`${ratio.toFixed(2)} ${e.tagName}: ${e.innerText.slice(0, 60)}`);
  }
  return bad;
})"""
# What is wider than the box that it stands in, and cannot be scrolled.
_OVERFLOW = """(top => [...document.querySelectorAll(`${top}, ${top} *:not(svg *)`)]
  .filter(e => e.checkVisibility() && e.clientWidth && e.scrollWidth > e.clientWidth + 1
          && !['auto', 'scroll'].includes(getComputedStyle(e).overflowX)
          && getComputedStyle(e).display !== 'inline')
  .map(e => `${e.tagName}.${e.className} ${e.scrollWidth} > ${e.clientWidth}`))"""


_LONGEST = 120  # seconds that the browser may take to answer


class NotNow(AssertionError):
    """The page could not answer: it was reloaded meanwhile, or the expression raised."""


class Browser:
    """A context manager: a headless chromium with one tab."""

    def __init__(self, profile: Path, width: int = 1100, height: int = 1400) -> None:
        self._profile, self._size = profile, f"{width},{height}"
        self._calls = 0

    def __enter__(self) -> "Browser":
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        flags += ["--remote-debugging-port=0", f"--user-data-dir={self._profile}"]
        self._process = subprocess.Popen(
            [CHROMIUM, *flags, f"--window-size={self._size}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(os.environ, HOME=str(self._profile)),
        )
        port_file = self._profile / "DevToolsActivePort"
        wait_for(lambda: port_file.exists() and port_file.read_text().count("\n"), 60)
        port = port_file.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
            tab = next(each for each in json.load(answer) if each["type"] == "page")
        self._loop = asyncio.new_event_loop()
        url = tab["webSocketDebuggerUrl"]
        self._socket = self._await(lambda: websocket_connect(url, max_message_size=2**28))
        return self

    def __exit__(self, *_: object) -> None:
        async def close() -> (
            None
        ):  # asks for the current loop, which another test may have taken away
            self._socket.close()

        self._loop.run_until_complete(close())
        self._loop.close()
        self._process.kill()
        self._process.wait()

    def _await(self, make: Callable[[], Any]) -> Any:
        async def inside() -> Any:  # tornado's futures belong to the loop that they are made in
            return await asyncio.wait_for(make(), _LONGEST)

        return self._loop.run_until_complete(inside())

    def call(self, method: str, **parameters: Any) -> dict:
        """One command of the protocol, and its result."""
        self._calls += 1
        message = {"id": self._calls, "method": method, "params": parameters}
        self._await(lambda: self._socket.write_message(json.dumps(message)))
        while True:
            answer = json.loads(self._await(self._socket.read_message))
            if answer.get("id") == self._calls:
                if "error" in answer:  # as when the page is reloaded meanwhile
                    raise NotNow(answer)
                return answer["result"]

    def open(self, address: str) -> None:
        """Goes to a page; `wait` says when it is there."""
        self.call("Page.navigate", url=address)

    def width(self, pixels: int, height: int = 1400) -> None:
        """Makes the window so wide."""
        size = {"width": pixels, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def evaluate(self, code: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        options = {"returnByValue": True, "awaitPromise": True}
        result = self.call("Runtime.evaluate", expression=code, **options)
        if "exceptionDetails" in result:
            raise NotNow(result)
        return result["result"].get("value")

    def wait(self, code: str, seconds: float = 120) -> Any:
        """Waits until the expression is true, and can be evaluated at all; its value."""

        def value() -> Any:
            try:
                return self.evaluate(code)
            except NotNow as error:
                told[:] = [str(error)]
                return None

        told = [""]
        return wait_for(value, seconds, lambda: f"{code} {told[0]}")

    def click(self, element: str) -> None:
        """Waits for the element that the JavaScript expression gives, and clicks on it."""
        self.wait(f"!!({element})")
        middle = f"(() => {{ const at = ({element}).getBoundingClientRect(); "
        x, y = self.evaluate(middle + "return [at.x + at.width / 2, at.y + at.height / 2] })()")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, control: bool = False) -> None:
        """Presses a letter, with the control key down or not."""
        names = {"key": key, "code": f"Key{key.upper()}"}
        names |= {"windowsVirtualKeyCode": ord(key.upper()), "modifiers": 2 if control else 0}
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, **names)

    def theme(self, name: str) -> None:
        """The system asks pages to be "light" or "dark"."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def low_contrast(self, top: str) -> list[str]:
        """Texts below the selector `top` with a contrast under 4.5 to 1."""
        dark = self.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        return self.evaluate(_CONTRAST.replace("DARK", "true" if dark else "false") + f"({top!r})")

    def overflowing(self, top: str) -> list[str]:
        """Elements at or below the selector `top` that are wider than their box."""
        return self.evaluate(f"{_OVERFLOW}({top!r})")

    def picture(self, path: Path) -> None:
        """Saves what the window shows as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


def pictures(folder: Path) -> Path:
    """Where pictures of the pages go: PICTURES in the environment, or below `folder`."""
    own = Path(os.environ.get("PICTURES", folder / "pictures"))
    own.mkdir(exist_ok=True, parents=True)
    return own


def wait_for(
    condition: Callable[[], Any], seconds: float, told: str | Callable[[], str] = ""
) -> Any:
    """Waits until `condition` gives a true value; that value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"not in {seconds} s: {told() if callable(told) else told}"
        time.sleep(0.3)
    return value

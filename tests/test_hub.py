"""A real JupyterHub with five Unix users, set up as solutions/instructor/hub.md says; each solves lab 02.

The blocks of that page are run as they stand, with this test's folders in the place of the page's. The first
is not: it installs the course from the lock, which this environment is.
"""

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
import uuid
from pathlib import Path
from site import getsitepackages

import made_up_class
import psutil
import pytest
from browser import wait_for
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

ROOT = Path(__file__).parents[1]
USERS = [f"tpulab{number}" for number in range(1, 6)]
TOKEN = uuid.uuid4().hex
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("useradd"),
        reason="needs root on Linux, to make Unix users",
    ),
    pytest.mark.skipif(not shutil.which("npm"), reason="needs npm, for configurable-http-proxy"),
]


def blocks():
    """The page's blocks: set-up, cache, configuration, hand-out."""
    page = (ROOT / "solutions/instructor/hub.md").read_text(encoding="utf-8")
    return re.findall(r"^```\n(.*?)^```$", page, re.S | re.M)


def installed(base):
    """JupyterHub beside this environment's packages, and its proxy."""
    uv, venv = Path(sys.executable).with_name("uv"), base / "venv"
    subprocess.run([uv, "venv", "-q", "--python", open_to_all(), venv], check=True)
    got = subprocess.run(
        [uv, "pip", "install", "-q", "--python", venv / "bin/python", "jupyterhub>=5,<6"],
        capture_output=True,
        text=True,
    )
    if got.returncode:
        pytest.skip(f"jupyterhub cannot be installed here: {got.stderr.strip()[-200:]}")
    (own,) = venv.glob("lib/python*/site-packages")
    (own / "course.pth").write_text("\n".join([str(ROOT), *getsitepackages()]))
    command = ["npm", "install", "--silent", "--prefix", base, "configurable-http-proxy@5"]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("configurable-http-proxy cannot be installed here")
    return venv


def open_to_all():
    """A Python of this version that other users can run."""
    named = shutil.which(f"python3.{sys.version_info.minor}", path="/usr/local/bin:/usr/bin")
    for python in filter(None, (os.path.realpath(sys.executable), named)):
        if all(folder.stat().st_mode & 0o001 for folder in Path(python).parents):
            return python
    pytest.skip("no Python of this version here that other users can run")


@pytest.fixture(scope="module")
def place():
    """A folder that others can read, five users with homes in it."""
    base = Path(tempfile.mkdtemp(prefix="hub-"))
    base.chmod(0o755)
    (base / "home").mkdir()
    made = []
    try:
        for user in USERS:
            home = base / "home" / user
            subprocess.run(["useradd", "--create-home", "--home-dir", home, user], check=True)
            made.append(user)
        yield base
    finally:
        for user in made:
            subprocess.run(["pkill", "-KILL", "-u", user], check=False)
            subprocess.run(["userdel", user], check=False)
        shutil.rmtree(base, ignore_errors=True)


def here(text, base):
    """A block of the page with this test's folders, and lab 02 alone."""
    own = {
        "/opt/tpu-labs": f"{base}/venv",
        "/opt/course": str(ROOT),
        "/srv/tpu-labs": f"{base}/srv",
        "/tmp/": f"{base}/tmp/",
        "/home/*": f"{base}/home/*",
        "solutions/*.ipynb": f"{base}/solved/*.ipynb",
    }
    return re.sub("|".join(map(re.escape, own)), lambda found: own[found[0]], text)


def lab_02(base):
    """Lab 02 solved: its given cells, answers and checks, and the dry run of the whole port."""
    made = made_up_class.notebook()
    lab = {cell["id"]: cell["metadata"] for cell in made_up_class.notebook("labs")["cells"]}
    made["cells"] = [
        cell
        for cell in made["cells"]
        if cell["cell_type"] == "code"
        and (
            "given" in lab[cell["id"]].get("tags", [])
            or "nbgrader" in lab[cell["id"]]
            or cell["id"] in ("setup", "settings-file", "whole")
        )
    ]
    (base / "solved").mkdir()
    (base / "solved" / made_up_class.NAME).write_text(json.dumps(made))
    return ["".join(cell["source"]) for cell in made["cells"]]


class Hub:
    """The hub's API, and kernels behind its proxy."""

    def __init__(self, base):
        self.address = f"http://127.0.0.1:{free_port()}"
        self.log = base / "srv" / "hub.log"
        config = here(blocks()[2], base).replace("http://127.0.0.1:8000", self.address)
        config += f"""
c.JupyterHub.authenticator_class = "dummy"  # in the place of PAM and passwords
c.JupyterHub.hub_port = {free_port()}
c.ConfigurableHTTPProxy.command = [{str(base / "node_modules/.bin/configurable-http-proxy")!r}]
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{free_port()}"
c.JupyterHub.services = [{{"name": "test", "api_token": "{TOKEN}"}}]
c.JupyterHub.load_roles = [
    {{"name": "test", "services": ["test"], "scopes": ["admin:users", "admin:servers", "access:servers"]}}
]
"""
        (base / "srv" / "jupyterhub_config.py").write_text(config)
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [base / "venv/bin/python", "-m", "jupyterhub", "-f", "jupyterhub_config.py"],
                cwd=base / "srv",
                env=os.environ | {"PATH": f"{base}/venv/bin:{os.environ['PATH']}"},
                stdout=log,
                stderr=log,
            )
        wait_for(self.answers, 90, "the hub's API")

    def answers(self):
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        try:
            return self.ask("GET", "/hub/api/")
        except OSError:
            return None

    def ask(self, method, path, body=None):
        request = urllib.request.Request(
            self.address + path,
            method=method,
            data=json.dumps(body).encode() if body is not None else None,
            headers={"Authorization": f"token {TOKEN}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"{}") or True

    def started(self, user):
        self.ask("POST", f"/hub/api/users/{user}", {})
        self.ask("POST", f"/hub/api/users/{user}/server", {})
        wait_for(
            lambda: self.ask("GET", f"/hub/api/users/{user}")["servers"].get("", {}).get("ready"),
            90,
            f"{user}'s server",
        )

    def run(self, user, cells):
        """Runs cells in a new kernel of a user's server; all text that they show."""
        kernel = self.ask("POST", f"/user/{user}/api/kernels", {"name": "python3"})["id"]
        return asyncio.run(self._cells(user, kernel, cells))

    async def _cells(self, user, kernel, cells):
        address = self.address.replace("http", "ws") + f"/user/{user}/api/kernels/{kernel}/channels"
        request = HTTPRequest(address, headers={"Authorization": f"token {TOKEN}"})
        channel = await websocket_connect(request, max_message_size=2**28)
        shown = []
        for source in cells:
            id = uuid.uuid4().hex
            header = {"msg_id": id, "msg_type": "execute_request", "session": id, "username": user}
            content = {"code": source, "silent": False, "stop_on_error": True}
            await channel.write_message(
                json.dumps(
                    {
                        "header": header | {"version": "5.3", "date": ""},
                        "parent_header": {},
                        "metadata": {},
                        "content": content,
                        "channel": "shell",
                        "buffers": [],
                    }
                )
            )
            while True:
                message = json.loads(await channel.read_message())
                if message["parent_header"].get("msg_id") != id:
                    continue
                kind, content = message["header"]["msg_type"], message["content"]
                assert kind != "error", "\n".join(content["traceback"])
                data = content.get("data", {})
                shown.append(
                    content.get("text", "") + data.get("text/html", data.get("text/plain", ""))
                )
                if kind == "status" and content["execution_state"] == "idle":
                    break
        channel.close()
        return "\n".join(shown)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def own_cache(home):
    """What the dry run has compiled for one learner alone."""
    return [path for path in (home / ".cache").rglob("*") if path.is_file() and "dry" in str(path)]


def held_by(user):
    """Bytes of memory of a user's processes, what they share divided among those who share it."""
    own = [each for each in psutil.process_iter(["username"]) if each.info["username"] == user]
    return sum(each.memory_full_info().pss for each in own)


def test_five_people_solve_a_lab_on_one_machine(place):
    installed(place)
    cells = lab_02(place)
    (place / "tmp").mkdir()
    _, cache, _, hand_out = blocks()
    subprocess.run(["bash", "-euc", here(cache, place)], check=True, capture_output=True)
    subprocess.run(["bash", "-euc", here(hand_out, place)], check=True)
    hub = Hub(place)
    try:
        held = []
        for user in USERS:
            home = place / "home" / user
            assert (home / "labs" / made_up_class.NAME).owner() == user
            hub.started(user)
            shown = hub.run(user, cells)
            assert re.findall(r"TODO (2\w): correct", shown) == list(
                ["2a", "2b", "2c", "2d", "2e", "2f"]
            )
            assert "Ready for v2:2x2" in shown and "from the cache" in shown
            assert not own_cache(home), "what all compile stands in the shared cache alone"
            held.append(held_by(user) / 2**20)
            print(f"{user}: {held[-1]:.0f} MiB")
            hub.ask("DELETE", f"/hub/api/users/{user}/server")
        touch = ["runuser", "-u", USERS[0], "--", "touch", str(place / "srv/cache/mine")]
        assert subprocess.run(touch, capture_output=True).returncode, (
            "learners cannot write the cache"
        )
        assert max(held) < 2048
    finally:
        hub.process.terminate()
        hub.process.wait()

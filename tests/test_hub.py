"""A real JupyterHub with five Unix users, set up as solutions/instructor/hub.md says; each solves lab 02.

The page's blocks are run as they stand, in folders of this test's own; the cache is filled from lab 02 alone.
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
import urllib.error
import urllib.request
import uuid
from pathlib import Path

import made_up_class
import psutil
import pytest
from browser import wait_for
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

ROOT = Path(__file__).parents[1]
USERS = [f"tpulab{number}" for number in range(1, 6)]
TOKEN = uuid.uuid4().hex
SYSTEM = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"  # what other users can run, too
# The dry run of the whole port, for which the lab has several cells.
WHOLE = """
from lab_utils.dry_run import dry_run
stages = ["trace", "read", "compile", "run"]
dry_run(port_of(ported, settings), train_input, eval_input_fn=eval_input, stages=stages)
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("useradd", path=SYSTEM),
        reason="needs root on Linux, to make Unix users",
    ),
    pytest.mark.skipif(
        not shutil.which("npm", path=SYSTEM), reason="needs npm, for configurable-http-proxy"
    ),
    pytest.mark.skipif(
        not shutil.which("python3.11", path=SYSTEM), reason="needs a Python 3.11 for all users"
    ),
]


@pytest.fixture(scope="module")
def base():
    """A folder that others can read; five users with homes in it, who are gone afterwards."""
    base = Path(tempfile.mkdtemp(prefix="hub-", dir="/tmp"))  # conftest.py keeps ours to ourselves
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
            for process in processes(user):
                process.kill()
            subprocess.run(["userdel", user], check=False)
        shutil.rmtree(base, ignore_errors=True)


def processes(user):
    return [each for each in psutil.process_iter(["username"]) if each.info["username"] == user]


def blocks(base):
    """The page's blocks, with this test's folders: set-up, cache, configuration, hand-out."""
    page = (ROOT / "solutions/instructor/hub.md").read_text(encoding="utf-8")
    own = {
        "ADDRESS": str(ROOT),
        "/opt/": f"{base}/opt/",
        "/srv/": f"{base}/srv/",
        "/home/*": f"{base}/home/*",
        "/opt/course/solutions/*.ipynb": f"{base}/solved/*.ipynb",
    }
    names = sorted(map(re.escape, own), key=len, reverse=True)
    found = re.findall(r"^```\n(.*?)^```$", page, re.S | re.M)
    return [re.sub("|".join(names), lambda name: own[name[0]], block) for block in found[:4]]


def run(block, base):
    """A block in bash, with programs that all users have; `npm install -g` installs below `base`."""
    own = {"PATH": SYSTEM, "TMPDIR": str(base), "npm_config_prefix": str(base / "npm")}
    foreign = ("VIRTUAL_ENV", "PYTHON", "XDG_", "LAB_UTILS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return subprocess.run(
        ["bash", "-euc", block], env=kept | own, cwd=base, capture_output=True, text=True
    )


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
            or cell["id"] in ("setup", "settings-file", "train")
        )
    ]
    made["cells"].append(made_up_class.code_cell(WHOLE))
    (base / "solved").mkdir()
    (base / "solved" / made_up_class.NAME).write_text(json.dumps(made))
    return ["".join(cell["source"]) for cell in made["cells"]]


class Hub:
    """The hub's API, and kernels behind its proxy."""

    def __init__(self, base, config):
        self.address = f"http://127.0.0.1:{free_port()}"
        self.log = base / "srv" / "hub.log"
        # Ports that are free here, and a token for this test.
        config = config.replace("http://127.0.0.1:8000", self.address)
        config += f"""
c.JupyterHub.hub_port = {free_port()}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{free_port()}"
c.JupyterHub.services = [{{"name": "test", "api_token": "{TOKEN}"}}]
c.JupyterHub.load_roles = [
    {{"name": "test", "services": ["test"], "scopes": ["admin:users", "admin:servers", "access:servers"]}}
]
"""
        folder = base / "srv" / "tpu-labs"
        (folder / "jupyterhub_config.py").write_text(config)
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [base / "opt/tpu-labs/bin/python", "-m", "jupyterhub"],
                cwd=folder,
                env={"PATH": f"{base}/npm/bin:{SYSTEM}", "HOME": str(base)},
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

    def start(self, user):
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
            message = {"header": header | {"version": "5.3", "date": ""}, "channel": "shell"}
            message |= {"parent_header": {}, "metadata": {}, "buffers": []}
            message["content"] = {"code": source, "silent": False, "stop_on_error": True}
            await channel.write_message(json.dumps(message))
            while True:
                message = json.loads(await channel.read_message())
                if message["parent_header"].get("msg_id") != id:
                    continue
                content = message["content"]
                assert message["header"]["msg_type"] != "error", "\n".join(content["traceback"])
                shown += [content.get("text", ""), *map(str, content.get("data", {}).values())]
                if content.get("execution_state") == "idle":
                    break
        channel.close()
        return "\n".join(shown)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def own_compilations(home):
    """What the dry run has compiled and kept for one learner alone."""
    cache = home / ".cache" / "lab_utils" / "dry_run"
    return [path for path in cache.rglob("*") if path.is_file()]


def test_five_people_solve_a_lab_on_one_machine(base):
    set_up, cache, config, hand_out = blocks(base)
    cells = lab_02(base)
    installed = run(set_up, base)
    if re.search(r"No matching|No solution|E404|ENOTFOUND|Failed to fetch", installed.stderr):
        pytest.skip(f"cannot be installed here: {installed.stderr.strip()[-300:]}")
    for done in (installed, run(cache, base), run(hand_out, base)):
        assert done.returncode == 0, done.stderr[-3000:]
    shared = set((base / "srv/tpu-labs/cache").rglob("*"))
    hub = Hub(base, config)
    try:
        for user in USERS:
            home = base / "home" / user
            assert (home / "labs" / made_up_class.NAME).owner() == user
            hub.start(user)
            shown = hub.run(user, cells)
            said = dict(re.findall(r"TODO (2\w): (\w+)", shown))
            assert said == dict.fromkeys(made_up_class.TODOS, "correct")
            assert "Ready for v2:2x2" in shown and "from the cache" in shown
            assert not own_compilations(home), "all that was compiled stands in the shared cache"
            held = sum(each.memory_full_info().pss for each in processes(user)) / 2**20
            print(f"{user}: {held:.0f} MiB after lab 02")
        for place in ("srv/tpu-labs/cache/mine", "opt/tpu-labs/mine", f"home/{USERS[1]}/labs/mine"):
            touch = ["runuser", "-u", USERS[0], "--", "touch", str(base / place)]
            assert subprocess.run(touch, capture_output=True).returncode, place
        assert set((base / "srv/tpu-labs/cache").rglob("*")) == shared
        together = sum(each.memory_full_info().pss for user in USERS for each in processes(user))
        print(f"five at a time: {together / 2**20:.0f} MiB")
    finally:
        hub.process.terminate()
        hub.process.wait()

"""Hand-ins of lab 00 that want points without an answer, or that end, fill or change what they can reach.

TODO 0a is wrong or missing in each of them, and 0b is right: it shows what an attack costs besides.
"""

WRONG = "def matmul_flop(m, k, n):\n    return 1\n"
RIGHT = "def peak_flops(rows, columns, hertz):\n    return 2 * rows * columns * hertz\n"


def during(body: str) -> str:
    """An answer to 0a that does something while it is checked."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return f"def matmul_flop(m, k, n):\n{lines}\n    return 1\n"


# Name -> cells beside RIGHT; what the remarks or the messages must hold, "" where nothing need be said.
CHEATS = {
    "prints the verdict": (WRONG + "print('TODO 0a: correct. Two FLOP for each.')", ""),
    "its own check": (
        WRONG + "def check(*given):\n    return 'TODO 0a: correct'\ncheck('0a', 1)",
        "",
    ),
    "replaces check": (
        WRONG + "import lab_utils.check as c\nc.check = lambda *g: 1",
        "into the checks",
    ),
    "replaces the runner's parts": (
        WRONG
        + "from lab_utils.check import runner\nrunner._judge = lambda *g: ('correct', 'Yes.')",
        "into the checks",
    ),
    "writes a module in place of the runner": (
        WRONG
        + "import sys, types\nsys.modules['lab_utils.check.runner'] = types.ModuleType('runner')",
        "running process",
    ),
    "puts a file before the package": (
        WRONG
        + "import os\nos.makedirs('lab_utils/check')\nopen('lab_utils/__init__.py', 'w').close()\n"
        "open('lab_utils/check/__init__.py', 'w').write('check = print')",
        "",
    ),
    "a finder of its own": (
        WRONG
        + "import sys\nclass Finder:\n    def find_spec(self, *given):\n        raise SystemExit(0)\n"
        "sys.meta_path.insert(0, Finder())",
        "",
    ),
    "builtin functions": (
        WRONG + "import builtins\nbuiltins.abs = builtins.round = lambda *g: 30",
        "put back",
    ),
    "a class' attribute": (
        WRONG + "import importlib.machinery as m\nm.SourceFileLoader.get_data = lambda *g: b''",
        "put back",
    ),
    "the defaults of a function": (
        WRONG + "import numpy\nnumpy.allclose.__wrapped__.__defaults__ = (1e9, 1e9, True)",
        "put back",
    ),
    "replaces while it is checked": (
        during(
            "import numbers\nimport lab_utils.check.tools as t\nt.expect.__code__ = print.__class__"
        ),
        "",
    ),
    "silences expect while it is checked": (
        during(
            "import sys\nfor name, module in list(sys.modules.items()):\n"
            "    if name.startswith('lab_utils') and hasattr(module, 'expect'):\n"
            "        module.expect = lambda *given: None"
        ),
        "replaced lab_utils.check.labs.lab_00.expect",
    ),
    "tells by os.write": (
        during(
            "import os\nreal = os.write\n"
            "os.write = lambda to, said: real(to, said.replace(b'incorrect', b'correct'))"
        ),
        "put back",
    ),
    "a value that equals all": (
        "class Any(float):\n    __hash__ = None\n    def __eq__(self, other):\n        return True\n"
        "    def __ne__(self, other):\n        return False\n"
        "    def __mul__(self, other):\n        return -1\n    __rmul__ = __mul__\n"
        "def matmul_flop(m, k, n):\n    return Any()",
        "equal to",
    ),
    "a value that equals what it meets second": (
        "class Late(float):\n    seen = 0\n    def __eq__(self, other):\n        Late.seen += 1\n"
        "        return Late.seen % 6 == 0\n    def __ne__(self, other):\n        return True\n"
        "    def __mul__(self, other):\n        return self\n    __rmul__ = __mul__\n"
        "def matmul_flop(m, k, n):\n    return Late()",
        "equal to",
    ),
    "mock": (
        "from unittest.mock import ANY\ndef matmul_flop(m, k, n):\n    return ANY",
        "stands in",
    ),
    "imports the solution": (
        "from lab_utils.check.solved.lab_00 import matmul_flop",
        "into the checks",
    ),
    "imports the solution by another name": (
        "import importlib\nname = 'lab_utils.check.' + 'solved.lab_00'\n"
        "matmul_flop = importlib.import_module(name).matmul_flop",
        "cannot be used",
    ),
    "asks for the solution": ("from lab_utils.check import solution\nsolution('0a')", ""),
    "forges the result by the frames": (
        WRONG
        + "import inspect, json, os\nframe = inspect.currentframe()\nwhile 'token' not in frame.f_locals:\n"
        "    frame = frame.f_back\n"
        "frame.f_locals['tell'](todo='0a', status='correct', why='Yes.')",
        "frames of the running",
    ),
    "frames without their name": (
        WRONG + "frame = getattr(__import__('sys'), '_get' + 'frame')()",
        "frames of the running",
    ),
    "frames of an exception": (
        WRONG + "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n"
        "    frame = getattr(error.__traceback__, 'tb_' + 'frame')",
        "frames of the running",
    ),
    "searches all objects": (
        WRONG + "found = [o for o in __import__('gc').get_objects() if 0]",
        "searches the objects",
    ),
    "writes to every descriptor": (
        WRONG + "import os\nfor to in range(3, 64):\n    try:\n"
        '        os.write(to, b\'{"todo": "0a", "status": "correct", "why": "Yes."}\\n\')\n'
        "    except OSError:\n        pass",
        "",
    ),
    "progress as a file": (
        WRONG
        + "import json, os, pathlib\nfor place in (os.environ['XDG_STATE_HOME'], os.environ['HOME']):\n"
        "    file = pathlib.Path(place, 'tpu-porting-labs', 'progress.json')\n"
        "    file.parent.mkdir(parents=True, exist_ok=True)\n"
        "    file.write_text(json.dumps({'done': ['0a'], 'version': 1}))",
        "",
    ),
    "at the end of the process": (
        WRONG + "import atexit, os\natexit.register(print, 'TODO 0a: correct')",
        "",
    ),
    "many children": (
        WRONG + "import os, time\nfor _ in range(60):\n    if os.fork() == 0:\n"
        "        time.sleep(600)\n        os._exit(0)",
        "",
    ),
    "a thread that ends all": (
        WRONG
        + "import os, threading\nthreading.Timer(0.2, os._exit, (0,)).start()\nimport time\ntime.sleep(1)",
        "process ended",
    ),
    "raises SystemExit": (WRONG + "raise SystemExit(0)", ""),
    "ends in the check": (during("import os\nos._exit(0)"), "process ended"),
    "ends itself by a signal": (
        during("import os, signal\nos.kill(os.getpid(), 9)"),
        "process ended",
    ),
    "ends the grader": (WRONG + "import os\nos.kill(os.getppid(), 9)", "sends signals"),
    "ends everybody": (WRONG + "import os\nos.kill(-1, 9)", "sends signals"),
    "raises what no exception is": (
        during("class Own(BaseException):\n    pass\nraise Own"),
        "process ended",
    ),
    "raises with a text that cannot be made": (
        during(
            "class Own(Exception):\n    def __str__(self):\n        raise ValueError\nraise Own"
        ),
        "",
    ),
    "a name of ten million letters": (
        "def matmul_flop(m, k, n):\n    return type('x' * 10_000_000, (), {})()",
        "",
    ),
    "prints without end": (during("while True:\n    print('x' * 100_000)"), "longer than"),
    "loops": (during("while True:\n    pass"), "longer than"),
    "loops and catches all": (
        during(
            "while True:\n    try:\n        while True:\n            pass\n"
            "    except BaseException:\n        pass"
        ),
        "longer than",
    ),
    "takes memory": (
        during("kept = []\nwhile True:\n    kept.append(bytearray(2**24))"),
        "GiB of memory",
    ),
    "a file without end": (
        during(
            "with open('big', 'wb') as file:\n    while True:\n        file.write(bytes(2**26))"
        ),
        "",
    ),
    "a child that stays": (
        WRONG + "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        time.sleep(600)\n    os._exit(0)",
        "",
    ),
    "a child that ends": (during("import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()"), ""),
    "a child that goes on": (during("import os\nos.fork()"), ""),
    "a handler of signals": (
        WRONG + "import signal\ndef handler(number, frame):\n    while frame:\n"
        "        if 'outcome' in frame.f_locals:\n            pass\n        frame = frame.f_back\n"
        "signal.signal(signal.SIGALRM, handler)\nsignal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)",
        "running process",
    ),
    "a trace function": (
        WRONG + "import sys\nsys.settrace(lambda frame, event, given: None)",
        "what other code does",
    ),
    "predicts a million times": (
        WRONG
        + "from lab_utils.check import predict\nfor n in range(100_000):\n    predict(str(n) * 40, n, 's')",
        "",
    ),
    "closes what it finds": (WRONG + "import os\nos.closerange(3, 256)", "process ended"),
    "reads the solution as a file": (
        "import pathlib, lab_utils\n"
        "file = pathlib.Path(lab_utils.__file__).parent / 'check' / ('sol' + 'ved')\n"
        "text = (file / 'lab_00.py').read_text()\n"
        "def matmul_flop(m, k, n):\n    return 1",
        "reads our solutions",
    ),
    "changes a file beside its folder": (
        WRONG + "import os, pathlib\nfile = pathlib.Path(os.environ['HOME'] + '.left')\n"
        "file.write_text('x')\nfile.unlink()\nopen('own', 'w').close()",
        ".left",
    ),
    "asks the network": (
        WRONG + "import urllib.request\nurllib.request.urlopen('http://192.0.2.1:9/', timeout=0.2)",
        "over the network",
    ),
}

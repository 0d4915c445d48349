"""What stands before the first step: TODO 10a, the environment, and 10b, what to install."""

import re
from collections.abc import Callable
from typing import Any

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect

LIBRARY = "/usr/lib/python3/libtpu/libtpu.so"
WANTED = {
    "PJRT_DEVICE": ("TPU",),
    "NEXT_PLUGGABLE_DEVICE_USE_C_API": ("true", "1"),
    "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": (LIBRARY,),
}
IMAGE = "tpu-vm-tf-2.15.0-se"


@todo(
    "10a",
    hints=(
        'On which chips does this belong? Leave at once on others.',
        'A dict has a method that sets a key only where there is none. Values in an environment are text.',
    ),
    why="What the user set stays, and the stream executor's chips get nothing.",
)
def environment(prepare: Callable) -> str:
    """The PJRT variables where they belong, and nothing overwritten."""
    for chip in ("v5e", "v5p", "v6e"):
        _has_all(_prepared(prepare, {"HOME": "/root"}, chip), chip)
    for chip, why in (
        ("v2", "A v2 is driven by the stream executor, as v3 is: no PJRT variable belongs there."),
        ("v3", "A v3 is driven by the stream executor: no PJRT variable belongs there."),
        ("v4", "A v4 is driven by the stream executor: no PJRT variable belongs there."),
        (None, "Without a chip nothing has to be set."),
    ):
        made = _prepared(prepare, {"HOME": "/root"}, chip)
        expect(made == {"HOME": "/root"}, f"{why} Yours sets {', '.join(set(made) - {'HOME'})}.")
    made = _prepared(prepare, {"PJRT_DEVICE": "CPU"}, "v5e")
    expect(
        made["PJRT_DEVICE"] == "CPU",
        "The user had set PJRT_DEVICE=CPU, and yours overwrote it: setdefault leaves what is there.",
    )
    for chip, set_ in (("v2", {"PJRT_DEVICE": "CPU"}), ("v5e", {"PJRT_DEVICE": ""})):
        made = _prepared(prepare, dict(set_), chip)
        expect(
            made.get("PJRT_DEVICE") == set_["PJRT_DEVICE"],
            f"On a {chip} with PJRT_DEVICE={set_['PJRT_DEVICE']!r} set, yours makes it "
            f"{made.get('PJRT_DEVICE')!r}: a variable that the user has set stays as it is.",
        )
    made = _prepared(prepare, {"PJRT_DEVICE": "CPU"}, "v5e")
    expect(len(made) >= 3, "Where one variable is set already, the others are still to be set.")
    return "Set before the import, where it belongs, and never over the user's own."


def _prepared(prepare: Callable, environ: dict[str, Any], chip: str | None) -> dict[str, Any]:
    prepare(environ, chip, LIBRARY)
    wrong = [name for name, value in environ.items() if not isinstance(value, str)]
    expect(not wrong, f"The value of {', '.join(wrong)} must be a string: os.environ takes strings alone.")
    return environ


def _has_all(environ: dict[str, str], chip: str) -> None:
    for name, values in WANTED.items():
        expect(name in environ, f"On a {chip}, {name} is not set.")
        expect(
            environ[name].lower() in values if name.startswith("NEXT") else environ[name] in values,
            f"On a {chip}, {name} should be {values[0]!r}; yours is {environ[name]!r}.",
        )


@todo(
    "10b",
    hints=(
        'Which API does not ask for the chip? Which chips do not ask for the Python?',
        'What is left after these depends on python alone; tuples compare part by part.',
    ),
    why="The table's rows, from the widest to the narrowest.",
)
def choice(choose: Callable) -> str:
    """What to install for a chip and an API; None where nothing is known to work."""
    new = ("v5e", "v5p", "v6e")
    for chip in ("v2", "v3", "v4"):
        for api in ("TPUEstimator", "TPUStrategy"):
            if (chip, api) == ("v4", "TPUEstimator"):
                continue  # Google's rule says yes, and nobody has reported it: both answers stand
            found = _chosen(choose, chip, api, (3, 10))
            expect(
                found == {IMAGE},
                f"{api} on a {chip} needs the image {IMAGE}: no wheel on PyPI has it. "
                f"Yours says {_told(found)}.",
            )
    for chip in new:
        found = _chosen(choose, chip, "TPUEstimator", (3, 12))
        expect(
            found is None,
            f"TPUEstimator on a {chip} is not known to work with anything; yours says {_told(found)}.",
        )
        for python, pair, why in (
            ((3, 12), {"tensorflow-tpu==2.19.1", "libtpu==0.0.10"}, "the safest known"),
            ((3, 11), {"tensorflow-tpu==2.19.1", "libtpu==0.0.10"}, "the safest known"),
            ((3, 13), {"tensorflow-tpu==2.20.0", "libtpu==0.0.21.1"}, "2.19.1 has no wheel for it"),
        ):
            found = _chosen(choose, chip, "TPUStrategy", python)
            if found is not None and _official(found):
                continue
            version = ".".join(map(str, python))
            expect(
                found is None or any(each.startswith("libtpu==") for each in found),
                "libtpu is to be pinned too: with the newest one, importing TensorFlow ends the process.",
            )
            expect(
                found == pair,
                f"TPUStrategy on a {chip} with Python {version} goes with {_told(pair)} ({why}), or with an "
                f"image tpu-vm-tf-x.y.z-pjrt from 2.15.0 on; yours says {_told(found)}.",
            )
    for api in ("TPUStrategy", "TPUEstimator"):
        found = _chosen(choose, "tpu7x", api, (3, 12))
        expect(found is None, f"No TensorFlow runs on TPU7x; for {api} yours says {_told(found)}.")
    for chip in ("v2", "v3", "v4", *new, "tpu7x"):
        found = _chosen(choose, chip, "JAX", (3, 12))
        right = found is not None and all(each.startswith("jax[tpu]") for each in found)
        expect(right, f"JAX on a {chip} is jax[tpu]; yours says {_told(found)}.")
    return "The pairs that import, the image, and None where nothing is known to work."


def _official(found: set[str]) -> bool:
    """Whether that is one of Google's images for v5e, v5p and v6e: tpu-vm-tf-x.y.z[-pod]-pjrt, 2.15.0 or later."""
    named = [re.fullmatch(r"tpu-vm-tf-(\d+)\.(\d+)\.(\d+)(-pod)?-pjrt", each) for each in found]
    return len(named) == 1 and named[0] is not None and (int(named[0][1]), int(named[0][2])) >= (2, 15)


def _chosen(choose: Callable, chip: str, api: str, python: tuple[int, int]) -> set[str] | None:
    found = choose(chip, api, python)
    if found is None:
        return None
    if isinstance(found, str):
        return {each.strip("'\"") for each in found.removeprefix("pip install ").split()}
    raise Wrong(
        f"choose should return text or None; for {chip} and {api} yours returns {a(found)}."
    )


def _told(found: set[str] | None) -> str:
    return "None" if found is None else " ".join(sorted(found, reverse=True)) or "nothing"

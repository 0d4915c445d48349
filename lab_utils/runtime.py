"""This machine: where the code runs, how quiet the frameworks are, and whether all is in place."""

import contextlib
import glob
import logging
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator

# Said by TensorFlow and its parts about each other; nothing that the person at the keyboard could change.
_NOTICES = (
    "is deprecated and will be removed",
    "includes params argument, but params are not passed",  # TPUEstimator passes them itself
    "eval_on_tpu ignored because use_tpu is False",
)


def _is_news(record: logging.LogRecord) -> bool:
    return not any(notice in record.getMessage() for notice in _NOTICES)


def quiet() -> None:
    """Silences the frameworks' start-up and deprecation notices; warnings about one's own code stay.

    Call it before TensorFlow or JAX is imported. What the environment already says is kept.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    logging.getLogger("tensorflow").addFilter(_is_news)
    warnings.filterwarnings("ignore", r"`tf\.layers\.\w+` is deprecated")
    warnings.filterwarnings("ignore", "float_format is deprecated", module="google.protobuf")


@contextlib.contextmanager
def hide_native_notices() -> Iterator[None]:
    """Keeps from the screen what native code writes straight to file descriptor 2, past every log level.

    For start-up alone. Should the block raise, all that was written is shown after all.
    """
    visible = os.dup(2)
    with tempfile.TemporaryFile() as aside:
        os.dup2(aside.fileno(), 2)
        try:
            yield
        except BaseException:
            aside.seek(0)
            os.write(visible, aside.read())
            raise
        finally:
            os.dup2(visible, 2)
            os.close(visible)


def place() -> str:
    """Where this runs: "Colab", "Kaggle", "TPU VM" or "this machine"."""
    if "COLAB_RELEASE_TAG" in os.environ:
        return "Colab"
    if "KAGGLE_KERNEL_RUN_TYPE" in os.environ:
        return "Kaggle"
    return "TPU VM" if _tpu_chips() else "this machine"


def _tpu_chips() -> int:
    """TPU chips on this machine's own bus: v2 to v4 show as /dev/accel*, later ones as /dev/vfio/N."""
    accel = glob.glob("/dev/accel[0-9]*")
    return len(accel) or len(glob.glob("/dev/vfio/[0-9]*"))


def accelerators() -> str:
    """The accelerators of this machine in words, without importing a framework; "" for none."""
    found = []
    if chips := _tpu_chips():
        found.append(f"{chips} TPU chips")
    if shutil.which("nvidia-smi"):
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
        found += [line.split(" (UUID")[0] for line in listed.stdout.splitlines()]
    return ", ".join(found)


class CellLine:
    """A file of one line within a notebook cell's output, for a progress bar: each write replaces it."""

    encoding = "utf-8"  # tqdm draws with blocks where it finds this

    def __init__(self) -> None:
        from IPython.display import display

        self._handle = display({"text/plain": ""}, raw=True, display_id=True)

    def write(self, text: str) -> None:
        """Shows `text`; the line break that ends a bar leaves what is shown."""
        if text != "\n":
            self._handle.update({"text/plain": text.strip()}, raw=True)

    def flush(self) -> None:
        """Nothing waits to be written."""

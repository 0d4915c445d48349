"""What the frameworks say at start-up, and a notebook's line for a progress bar."""

import contextlib
import logging
import os
import sys
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


def in_notebook() -> bool:
    """Whether this runs in the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return hasattr(ipython and ipython.get_ipython(), "kernel")


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

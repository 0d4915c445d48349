"""What this machine lacks: data in a bucket, without a network; names that Python and frameworks dropped."""

import contextlib
import platform
import re
import sys
from pathlib import Path
from traceback import walk_tb

from lab_utils.common import loading, source
from lab_utils.common.source import own_frames, place_of_line
from lab_utils.port.contrib import Gone

ADDRESS = re.compile(r"\b(gs|s3|s3a|hdfs|viewfs)://[^\s'\"]*")
# Names that Python 3.7, NumPy 1.16, pandas 0.25 and Keras 2.10 had, and methods of Keras itself that
# programs overrode. tensorflow-addons imports Keras' engine; SGD had an argument `decay`. JAX drops names
# from one year to the next, and TensorFlow Probability asks it for some of them; Optax and Flax do the same.
_OLD_NAMES = re.compile(
    r"module '(inspect|collections|time|fractions|platform|numpy|pandas|tensorflow\.python[\w.]*"
    r"|jax(\.[\w.]+)?)' has no attribute '\w+'"
    r"|\bjax\.[\w.]+ (is|was|were|has been) (deprecated|removed)"
    r"|No module named 'jax\.|cannot import name '\w+' from '(jax|optax|flax)[.']"
    r"|\._\w+\(\) (got an unexpected keyword|takes \d+ positional|missing \d+ required) argument"
    r"|was removed in the NumPy 2\.0 release"
    r"|'tf_op_layer_\w+'"  # as Keras up to 2.3 named outputs that ops of TensorFlow compute
    r"|No module named 'keras\.(src\.)?engine\b|is deprecated in the new (TF-)?Keras optimizer"
    r"|No module named 'tensorflow\.python\b|cannot import name '\w+' from 'tensorflow\.python\b"
)
_JAX = re.compile(r"\b(jax|optax|flax)\b")
_MESH = re.compile(r"No module named 'mesh_tensorflow\b")
_OWN_ESTIMATOR = re.compile(rb"^class TPUEstimator\b", re.M)
OWN_COPY = (
    "is a copy of TPUEstimator for an old TensorFlow, and the dry run cannot judge what its code "
    "does on a TPU. Where the program imports this copy, import tf.compat.v1.estimator.tpu "
    "instead (with --contrib: tensorflow.contrib.tpu), which has the same names"
)
_OLD_KERAS = (
    "; tensorflow.python.keras is an old Keras inside TensorFlow, so import from tensorflow.keras"
)
# Keras' download of a data set, and what sockets say.
_OFFLINE = re.compile(r"URL fetch failure on|Name or service not known|failure in name resolution")
BATCH_SECONDS = 120  # that one batch may take
# A session of the program's own that runs tpu.rewrite or an infeed.
_NO_TPU = re.compile(r"No OpKernel was registered to support Op '((\w*TPU|Infeed|Outfeed)\w*)'")


def reason(error: BaseException) -> str:
    """Why a program stops on this machine, which says nothing of the port; "" for other errors.

    The machine lacks a network, or names of TensorFlow 1.15 and its Python, or a batch takes too long.
    """
    tensorflow = loading.tensorflow()
    if tensorflow and isinstance(error, tensorflow.errors.DeadlineExceededError):
        return f"the input pipeline gave no batch within {BATCH_SECONDS} s"
    text = " ".join(str(error)[: source.LONGEST].split())
    if text.startswith("in user code:"):  # AutoGraph's own frames, before what was raised
        text = " ".join(source.told(error).split())
    if location := ADDRESS.search(text):
        return unreadable(location[0])
    if _OFFLINE.search(text):
        return f"{text} (this machine cannot reach that address, which says nothing about the port)"
    if op := _NO_TPU.search(text):
        return (
            f"the program's own session runs {op[1]}, which needs a TPU. The dry run judges a "
            "TPUEstimator, the fit of a Keras model, or a step as a function, so pass it the "
            "function that tpu.rewrite gets"
        )
    if _MESH.search(text):
        return (
            f"{text}: Mesh TensorFlow splits a model over the cores with a program of its own, "
            "which the dry run cannot judge. It can judge a model that fits on one core and uses "
            "TPUEstimator's data parallelism"
        )
    if not isinstance(error, loading.LeftTensorFlow | Gone) and not _OLD_NAMES.search(text):
        return ""
    if copy := _own_copy(error):
        return f"{text}: {copy} {OWN_COPY}"
    files = {frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)}
    hint = _OLD_KERAS if any("tensorflow/python/keras/" in file for file in files) else ""
    hint = hint or (_OLD_KERAS if "tensorflow.python.keras" in text else "")
    frameworks = {"TensorFlow": tensorflow, "JAX": _JAX.search(text) and sys.modules.get("jax")}
    under = f"Python {platform.python_version()}"
    under += "".join(f" and {name} {each.__version__}" for name, each in frameworks.items() if each)
    return f"{text} (it stops here, under {under}; this says nothing of the port{hint})"


def _own_copy(error: BaseException) -> str:
    """The file of the program's own TPUEstimator that an exception passed through; "" for none."""
    for frame in own_frames(error):
        with contextlib.suppress(OSError):
            if _OWN_ESTIMATOR.search(Path(frame.filename).read_bytes()):
                return place_of_line(frame.filename, frame.lineno).file
    return ""


def unreadable(location: str) -> str:
    """What is said of data at `location`."""
    return f"the data are at {location}, which this machine cannot read"

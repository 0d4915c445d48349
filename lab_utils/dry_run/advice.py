"""What to do about errors of TensorFlow's and JAX's own that say what is wrong and not how to fix it."""

import functools
import os
import re
import sys
from traceback import walk_tb

from lab_utils.common import loading

_PLAIN = "Fix the error at the named line. It would stop the job on a TPU, too."
# What a message holds, and what to do then.
_KNOWN: tuple[tuple[str, str], ...] = (
    (
        r"estimated size for TPUEstimatorSpec.predictions is too large",
        "Lower predict_batch_size, or return fewer or smaller predictions: the predictions of all "
        "cores go to the host in one message, which may have at most 2 GB.",
    ),
    (
        r"`filenames` argument must contain `?tf.string`? elements. Got `?tf.float32"
        r"|requested dtype string for Tensor with dtype float32"
        r"|Input 'filenames?' of '\w+' Op has type float32 that does not match expected type of string",
        "Look at the list of files, since an empty list becomes a tensor of float32. Check the "
        "pattern or the folder that the list comes from, and let the program raise an error if it "
        "finds no file (rule TPU233).",
    ),
    (
        r"'NoneType' object has no attribute 'training_chief_hooks'",
        "model_fn returns None here: return a TPUEstimatorSpec in each mode that the program calls.",
    ),
    (
        r"initial_value.*could not be lifted out of a"
        r"|Initializer for variable .* is from inside a control-flow",
        "Give the variable a function that makes its initial value, as in tf.Variable(lambda: start()): "
        "the step runs within a loop on the device, and a variable gets its first value outside of it.",
    ),
    (
        r"No module named 'tensorflow\.contrib|module 'tensorflow[\w.]*' has no attribute 'contrib'",
        "Give the dry run --contrib: the names of tf.contrib then refer to today's.",
    ),
    (
        r"maximum_iterations was not passed",
        "If the gradient of a loop is needed, give the loop a bound: tf.while_loop(..., "
        "maximum_iterations=N).",
    ),
    (
        r"Triggering __jax_array__\(\) during abstractification",
        "JAX accepts arrays, but not variables of Keras, so pass their values, as in "
        "[variable.value for variable in model.trainable_variables].",
    ),
    (
        r"'str' object has no attribute '_error_repr'",
        "Here, Keras computes with JAX, but an op of another library, such as tf.shape, got a "
        "traced array of JAX. In layers, use keras.ops and keras.random instead.",
    ),
)
_OF_KERAS = re.compile(
    r"module 'keras[\w.]*' has no attribute|cannot import name '\w+' from 'keras[.']"
)
_MISSING = re.compile(r"module '(tensorflow[\w.]*)' has no attribute '(\w+)'")
# Where names of TensorFlow lie that people look for elsewhere; the first that has the name counts.
_HOMES = (
    "tf.compat.v1.tpu",
    "tf.compat.v1.estimator.tpu",
    "tf.tpu.experimental",
    "tf.distribute",
    "tf.distribute.cluster_resolver",
    "tf.compat.v1",
)


def advice(message: str) -> str:
    """What to do about an error with this message."""
    return known(message) or _PLAIN


def known(message: str) -> str:
    """The same; "" where no more is known than the message says."""
    text = " ".join(message.split())
    fixes = (fix for pattern, fix in _KNOWN if re.search(pattern, text))
    return next(fixes, "") or moved(text)


def for_keras_2(error: BaseException) -> str:
    """What to do where Keras 3 stops a program of TensorFlow's that may be one for Keras 2; "" elsewhere."""
    keras = sys.modules.get("keras")
    if (
        not getattr(keras, "__version__", "").startswith("3.")
        or keras.backend.backend() != "tensorflow"
    ):
        return ""
    inside = os.path.join(os.path.dirname(keras.__file__), "src", "")
    files = {frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)}
    if not (any(file.startswith(inside) for file in files) or _OF_KERAS.search(str(error))):
        return ""
    return (
        f"`import keras` is Keras {keras.__version__} here. If the program was written for Keras 2, write "
        "`import tf_keras as keras`, or import from tensorflow.keras, which is Keras 2 in the dry run."
    )


def moved(message: str) -> str:
    """Where a name of TensorFlow is that the module named in a message lacks; "" where there is none."""
    match = _MISSING.search(message)
    if not match:
        return ""
    module, name = match.groups()
    inner = re.sub(r"^[\w.]*\b_api\.v\d\.?|^tensorflow$", "", module)
    homes = [f"tf.compat.v1.{inner}".rstrip("."), *_HOMES]
    home = next((home for home in homes if hasattr(_module(home), name)), "")
    return f"Write {home}.{name}, where the name is now." if home else ""


def _module(path: str) -> object:
    """The module of a path such as "tf.compat.v1.tpu"; None where TensorFlow has none."""
    return functools.reduce(
        lambda part, name: getattr(part, name, None), path.split(".")[1:], loading.tensorflow()
    )

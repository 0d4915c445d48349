"""A stand-in for TensorFlow 1, for programs of 2017 to 2019: `import tensorflow` gives version 1.

`install()` gives it, with tf.contrib, to the user's own files alone: TensorFlow, Keras and other installed
packages go on with the TensorFlow that is here. names.py says what became of each name; what stands nowhere
today raises Gone, with what took its place, when it is used.
"""

import builtins
import functools
import importlib
import importlib.util
import inspect
import sys
import types
from collections import namedtuple
from typing import Any

from lab_utils.common import source
from lab_utils.port.contrib import names

_import = builtins.__import__
_used: dict[str, str] = {}
_ArgSpec = namedtuple("ArgSpec", "args varargs keywords defaults")  # as Python had it up to 3.10

# Private modules, and what they had in version 1, as tf-slim uses it; it stands in tf.compat.v1 today.
_ABSENT = {
    "tensorflow.python.framework.ops": (
        "IndexedSlices", "Tensor", "TensorShape", "convert_to_tensor_or_indexed_slices",
        "register_tensor_conversion_function",
    ),
    "tensorflow.python.ops.array_ops": ("stack", "unstack"),
    "tensorflow.python.ops.control_flow_ops": ("Assert", "case", "cond", "while_loop"),
}  # fmt: skip


class Gone(AttributeError):
    """A name of TensorFlow 1 that stands nowhere today; the message says what took its place."""


def install() -> None:
    """Gives the user's files TensorFlow 1 with its behaviour, tf.contrib and Python 2's harmless names.

    It holds for the rest of the process: a model_fn imports when it is called.
    """
    from lab_utils.estimator import v1

    v1.disable_v2_behavior()
    for module, absent in _ABSENT.items():
        for name in absent:
            vars(importlib.import_module(module)).setdefault(name, getattr(v1, name))
    # A class needs no more than a conversion function today to be taken for a tensor.
    ops = importlib.import_module("tensorflow.python.framework.ops")
    vars(ops).setdefault("register_dense_tensor_like_type", lambda kind: None)
    builtins.__import__ = _stand_in_import
    for name, value in {"xrange": range, "unicode": str, "basestring": str, "long": int}.items():
        builtins.__dict__.setdefault(name, value)
    vars(inspect).setdefault("getargspec", _getargspec)  # tensorflow-gan asks it
    _take_moments_without_a_mask(v1.layers.BatchNormalization)


def _take_moments_without_a_mask(layer: type) -> None:
    """Classes below `layer`, Keras' batch normalisation, may have a `_moments` of version 1.

    EfficientNet's joins the cores so. Keras hands it a mask today, which is None unless the model has one.
    """
    base = next(kind for kind in layer.__mro__ if "_moments" in vars(kind))

    def init_subclass(kind: type, **options: Any) -> None:
        super(base, kind).__init_subclass__(**options)
        own = vars(kind).get("_moments")
        if own and "mask" not in inspect.signature(own).parameters:

            @functools.wraps(own)
            def moments(
                self: Any, inputs: Any, axes: Any, keep_dims: bool, mask: Any = None
            ) -> Any:
                if mask is not None:
                    raise Gone(
                        f"{kind.__name__}._moments takes no mask, which Keras hands it today"
                    )
                return own(self, inputs, axes, keep_dims)

            kind._moments = moments

    base.__init_subclass__ = classmethod(init_subclass)


def _getargspec(function: Any) -> tuple:
    return _ArgSpec(*inspect.getfullargspec(function)[:4])


def used() -> dict[str, str]:
    """The names of tf.contrib that were taken so far, and where each stands today."""
    return dict(_used)


def today(path: str) -> tuple[str, Any] | None:
    """Where the name `path` below tf.contrib stands today, and what it is; None if nowhere."""
    for place in names.candidates(path):
        try:
            value = _value(place)
        except (AttributeError, ImportError):
            continue
        if names.of_module(path) in names.MODULES or not isinstance(value, types.ModuleType):
            return place, value  # else it is a module that another one imports
    return None


def _value(place: str) -> Any:
    """What stands at a place, which is below tf.compat.v1 or begins with a package's name."""
    from lab_utils.estimator import v1

    head, *rest = place.split(".")
    if head not in names.PACKAGES:
        value: Any = v1
        for part in place.split("."):
            value = getattr(value, part)
        return value
    value = importlib.import_module(head)
    path = head
    for part in rest:
        path += f".{part}"
        # A package's attribute may be another module than its folder: tf_slim.layers is both.
        whole = importlib.util.find_spec(path) if hasattr(value, "__path__") else None
        value = importlib.import_module(path) if whole else getattr(value, part)
    return value


class _Contrib(types.ModuleType):
    """tf.contrib, or something below it. Names are looked up when they are used."""

    def __init__(self, path: str = "") -> None:
        super().__init__(f"tensorflow.contrib.{path}".rstrip("."))
        self.__dict__["_path"] = path
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        path = f"{self._path}.{name}".lstrip(".")
        if not (successor := today(path)):
            return _Contrib(path)
        _used[f"tf.contrib.{path}"], value = successor
        return value

    def _refuse(self, *arguments: Any, **options: Any) -> None:
        raise Gone(f"tf.contrib.{self._path} left TensorFlow with 2.0: {names.advice(self._path)}")

    __call__ = __mro_entries__ = __iter__ = __getitem__ = __enter__ = _refuse


class _Compat(types.ModuleType):
    """`tensorflow.compat`: its v1 is the whole of version 1, which v1's own compat.v1 is not."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        from lab_utils.estimator import tf, v1

        if name == "v1":
            return _VERSION_1
        return getattr(tf.compat if name == "v2" else v1.compat, name)


class _Version1(types.ModuleType):
    """`tensorflow` as a program of version 1 imports it, or `tensorflow.compat.v1`."""

    contrib = _Contrib()
    compat = _Compat("tensorflow.compat")

    def __getattr__(self, name: str) -> Any:
        from lab_utils.estimator import v1

        if hasattr(v1, name):
            return getattr(v1, name)
        try:
            return importlib.import_module(f"tensorflow.{name}")  # tf.python, tf.core
        except ImportError:
            raise Gone(f"tf.{name} left TensorFlow with 2.0") from None


_VERSION_1 = _Version1("tensorflow")
_VERSION_1.__path__ = []

# Modules of version 1 that are elsewhere today.
_MOVED = {
    "tensorflow.python.estimator": "tensorflow_estimator.python.estimator",
    "tensorflow.python.tpu.tpu_config": "tensorflow_estimator.python.estimator.tpu.tpu_config",
    "tensorflow.python.tpu.tpu_estimator": "tensorflow_estimator.python.estimator.tpu.tpu_estimator",
    "tensorflow.python.training.training_ops": "tensorflow.python.ops.gen_training_ops",
    "tensorflow.python.training.tracking": "tensorflow.python.trackable",
}
# Names that modules of tensorflow.python.keras held, and that modules of tf_keras.src beside them hold today.
_KERAS_LAYERS = ("InputSpec",)


def _stand_in_import(
    name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> Any:
    """As builtins.__import__; of `tensorflow`, the user's files are given version 1."""
    file = (globals or {}).get("__file__")
    if level or name.partition(".")[0] != "tensorflow" or not file or source.is_installed(file):
        return _import(name, globals, locals, fromlist, level)
    whole = _whole(name)
    for part in fromlist or ():
        if part == "*" or hasattr(whole, part):
            continue
        if part in _KERAS_LAYERS and whole.__name__.startswith("tf_keras."):
            setattr(whole, part, getattr(importlib.import_module("tf_keras.layers"), part))
        else:
            _whole(f"{name}.{part}")
    return whole if fromlist else _VERSION_1


def _whole(name: str) -> Any:
    """The module of version 1 with the dotted name `name`."""
    for old, new in _MOVED.items():
        if name == old or name.startswith(f"{old}."):
            return sys.modules.setdefault(name, importlib.import_module(new + name[len(old) :]))
    if f"{name}.".startswith("tensorflow.python.keras."):
        # TensorFlow's own modules go on with the remains of Keras that it still holds there.
        return importlib.import_module(
            f"tf_keras.src{name.removeprefix('tensorflow.python.keras')}"
        )
    if name.startswith(("tensorflow.python", "tensorflow.core")):
        return importlib.import_module(name)
    if name.startswith("tensorflow.examples"):
        raise Gone(f"{name} left TensorFlow with version 2.0: tf.keras.datasets has its data")
    if name.startswith("tensorflow.contrib."):
        name = f"tensorflow.contrib.{names.of_module(name.removeprefix('tensorflow.contrib.'))}"
    module: Any = _VERSION_1
    for part in name.split(".")[1:]:
        try:
            module = getattr(module, part)
        except AttributeError:
            module = importlib.import_module(f"{module.__name__}.{part}")
    return module

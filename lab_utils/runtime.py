"""This machine: where the code runs, how quiet the frameworks are, and whether all is in place."""

import logging
import os
import warnings

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

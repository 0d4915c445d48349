"""A run and what comes after it: TODO 7f, the TPUEstimator, 7h, a request, and 7i, the pictures in one request."""

import inspect
from collections.abc import Callable
from typing import Any
from unittest import mock

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import expect, returns
from lab_utils.estimator import tf, tpu
from lab_utils.flowers import rest

_SETTINGS = {
    "use_tpu": False,
    "tpu": "grpc://10.0.0.2:8470",
    "model_dir": "never_written",
    "image_size": 64,
    "train_steps": 500,
    "train_batch_size": 64,
    "eval_batch_size": 24,
    "learning_rate": 0.5,
    "checkpoint_steps": 70,
    "iterations_per_loop": 35,
    "bfloat16": True,
    "labels": ["a", "b"],
}


def _arguments(make_estimator: Callable, use_tpu: bool) -> dict[str, Any]:
    """What make_estimator tells TPUEstimator, by parameter; no TPU is looked for."""
    arguments = {}
    signature = inspect.signature(tpu.TPUEstimator)

    class Recorder(tpu.TPUEstimator):
        """Keeps what it is given."""

        def __init__(self, *positional: Any, **named: Any) -> None:
            bound = signature.bind(*positional, **named)
            bound.apply_defaults()
            arguments.update(bound.arguments)
            if not use_tpu:
                super().__init__(*positional, **named)

    with mock.patch.object(tpu, "TPUEstimator", Recorder):
        made = make_estimator(_model, _SETTINGS | {"use_tpu": use_tpu})
    returns(made, Recorder, "make_estimator", "a tpu.TPUEstimator")
    config = arguments["config"]
    expect(
        isinstance(config, tpu.RunConfig), f"config should be a tpu.RunConfig; yours is {config}."
    )
    return arguments


def _model(features: Any, labels: Any, mode: Any, params: Any) -> None:
    raise AssertionError("only handed over")


@todo(
    "7f",
    hints=(
        "Write the RunConfig first; iterations_per_loop goes into a TPUConfig of its own.",
        "The resolver raises where there is no TPU: when should it be made?",
        "TPUEstimator has three batch sizes, and two of them come from one setting.",
    ),
    why="All that differs between machines stands in the settings, and nothing of it in the model.",
)
def estimator_of(make_estimator: Callable) -> Cases:
    """Each setting arrives where it belongs."""
    found = _arguments(make_estimator, False)
    config = found["config"]
    yield "Where use_tpu is false, cluster should be None", config.cluster
    for name, value, setting in (
        ("model_dir", found["model_dir"] or config.model_dir, "model_dir"),
        ("save_checkpoints_steps", config.save_checkpoints_steps, "checkpoint_steps"),
        ("iterations_per_loop", config.tpu_config.iterations_per_loop, "iterations_per_loop"),
        ("train_batch_size", found["train_batch_size"], "train_batch_size"),
        ("eval_batch_size", found["eval_batch_size"], "eval_batch_size"),
        ("predict_batch_size", found["predict_batch_size"], "eval_batch_size"),
        ("use_tpu, which is True where it is left out,", found["use_tpu"], "use_tpu"),
    ):
        yield f'{name} should be settings["{setting}"]', value
    needed = {"labels", "image_size", "train_steps", "learning_rate", "bfloat16", "model_dir"}
    missing = ", ".join(sorted(needed - (found["params"] or {}).keys()))
    expect(not missing, f"model_fn and input_fn look for {missing} in params: params=settings.")
    yield (
        ("By default the export holds a second graph that only a TPU can run: export_to_tpu"),
        found["export_to_tpu"],
    )
    expect(
        found["model_fn"] is _model,
        "The TPUEstimator should get `model`, the function that make_estimator is given.",
    )
    found = _arguments(make_estimator, True)
    yield 'On a TPU, use_tpu should be settings["use_tpu"]', found["use_tpu"]
    cluster = found["config"].cluster
    if isinstance(cluster, tf.distribute.cluster_resolver.TPUClusterResolver):
        cluster = cluster.master()
    yield 'Where use_tpu is true, cluster should be a resolver of settings["tpu"]', cluster
    return "Each setting arrives where it belongs, and the export is for a CPU."


# Bytes that are no UTF-8, and whose base64 has + and /, which the alphabet for addresses lacks.
_PICTURES = [b"\xff\xd8\xff\xfb\xef\xbe\x00", b"\x89PNG\r\n\x1a\n\xfe\xff", b"\xff\xd8"]
_CODED = "base64.b64encode(picture).decode()"


@todo(
    "7h",
    hints=(
        "What does base64.b64encode return, and can json.dumps write that?",
        "How does the server know that a string is base64, and not the value itself? One instance a picture: what "
        "is it?",
        'json.dumps gives the text of {"instances": [...]}.',
    ),
    why='Bytes travel as base64 within {"b64": ...}; a plain string would be taken for the value itself.',
    slips={
        (
            f'{{"b64": {_CODED}}}',
            _CODED,
        ): "The server reads base64 where the picture's bytes should be. Either a "
        'string stands without the object {"b64": ...} that says so, or the bytes were encoded twice.',
        (
            "in pictures]",
            "in reversed(pictures)]",
        ): "The pictures arrive in another order: answers come in the order of the instances.",
    },
)
def body(predict_body: Callable) -> Cases:
    """Read as the server reads it: the same bytes in the same order."""
    for pictures, told in ((_PICTURES, "three pictures"), (_PICTURES[:1], "one picture")):
        text = predict_body(list(pictures))
        expect(
            not isinstance(text, dict),
            "That is a Python dict; a request's body is its JSON text: json.dumps(...).",
        )
        returns(text, (str, bytes, bytearray), "predict_body", "text, a str, or its bytes")
        try:
            found = rest.read_request(text)[0]
        except rest.RequestError as error:
            raise Wrong(_rejected(str(error))) from None
        yield (
            (
                f"What the server reads of {told}: the bytes of each, unchanged, one instance a picture (str() of bytes "
                "writes b'...' around them; .decode() makes text of base64)"
            ),
            found,
        )
    return "The server reads the bytes that you sent, a picture an instance."


def _rejected(said: str) -> str:
    """What the server says, with a word on what it may come from."""
    for part, reason in (
        ("base64 decode", "The server reads the usual alphabet, with + and /: base64.b64encode"),
        ("the request has", 'Each instance is {"b64": ...}, or has the input\'s name as its key'),
        ("'instances' or 'inputs'", 'The pictures go below the key "instances"'),
    ):
        if part in said:
            said += f". {reason}"
    return f"The server answers 400: {said.rstrip('.')}."


@todo(
    "7i",
    hints=(
        "Which batches keep the limit? Which of these gives the most pictures a second?",
        "Pictures a second are not in `seconds`: how do they follow from a batch and its time?",
        "What is left to return where no batch keeps the limit?",
    ),
    why="The limit leaves some batches out; among the others the rate decides, and that need not be the largest batch.",
)
def batch_for(best_batch: Callable) -> Cases:
    """The highest rate within the limit."""
    for told, seconds, limit in (
        ("64 is over the limit; batches of 1, 8 and 32 give 100, 200 and 246 pictures a second",
         {1: 0.010, 8: 0.040, 32: 0.130, 64: 0.250}, 0.150),
        ("All keep the limit, and the largest is not the best: 8 gives 160 pictures a second, 32 gives 80",
         {32: 0.400, 8: 0.050, 1: 0.010, 16: 0.120}, 1.0),
        ("100 ms keep a limit of 100 ms", {1: 0.02, 8: 0.1}, 0.1),
        ("No batch keeps the limit: return None", {1: 0.2, 8: 0.9}, 0.1),
    ):  # fmt: skip
        found = best_batch(dict(seconds), limit)
        yield f"{told}. A key of `seconds`, for {seconds} and {limit} s", found
    return "The most pictures a second within the limit."

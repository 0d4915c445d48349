"""What drives it: TODO 2e, the RunConfig, and 2f, the TPUEstimator."""

import contextlib
from collections.abc import Callable

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import Mutant, todo
from lab_utils.check.tools import a, expect
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.estimator import tf, tpu

SETTINGS = {
    "use_tpu": False,
    "tpu": "grpc://10.0.0.2:8470",
    "model_dir": "never_written",
    "train_batch_size": 64,
    "eval_batch_size": 24,
    "learning_rate": 0.5,
    "iterations_per_loop": 30,
}


@todo(
    "2e",
    hints=(
        "tpu.RunConfig takes cluster, model_dir, save_checkpoints_steps and tpu_config.",
        "tpu_config=tpu.TPUConfig(iterations_per_loop=...). Make the resolver inside an if: without a TPU "
        "it finds none and says so with an exception.",
    ),
    mutants=(
        Mutant("tpu_config=tpu.TPUConfig(iterations_per_loop=loop),", "", "iterations_per_loop"),
        Mutant(
            'cluster=cluster,\n        model_dir=settings["model_dir"],\n'
            "        save_checkpoints_steps=10 * loop,\n        tpu_config=tpu",
            'cluster, settings["model_dir"], 10 * loop, tpu',
            "by name",
        ),
        Mutant("return tpu.RunConfig(", "return tf.estimator.RunConfig(", "RunConfig"),
        Mutant('if settings["use_tpu"]:', "if True:", "use_tpu is false"),
        Mutant('if settings["use_tpu"]:', "if False:", "resolver"),
        Mutant(
            'TPUClusterResolver(settings["tpu"])', 'TPUClusterResolver("grpc://x:1")', "settings"
        ),
        Mutant("save_checkpoints_steps=10 * loop", "save_checkpoints_steps=100", "300"),
        Mutant('model_dir=settings["model_dir"],', "", "model_dir"),
    ),
)
def config(make_config: Callable) -> str:
    """A RunConfig with TPUConfig, and a resolver on a TPU alone."""
    try:
        without = make_config(dict(SETTINGS))
    except (TypeError, ValueError) as error:
        if "Both master and cluster" in str(error) or "multiple values" in str(error):
            raise Wrong(f"Pass RunConfig's arguments by name. TensorFlow says: {error}") from None
        unknown = "tpu_config" in str(error) or "cluster" in str(error)
        if isinstance(error, ValueError) or not unknown:
            raise
        raise Wrong("tf.estimator.RunConfig knows nothing of a TPU: take tpu.RunConfig.") from None
    expect(
        isinstance(without, tpu.RunConfig),
        f"make_config should return a tpu.RunConfig; yours returns {a(without)}.",
    )
    expect(without.cluster is None, "Where use_tpu is false, cluster should be None.")
    expect(
        without.model_dir == SETTINGS["model_dir"],
        f'model_dir should be settings["model_dir"]; yours is {without.model_dir}.',
    )
    loop = without.tpu_config.iterations_per_loop
    expect(loop == 30, f"With iterations_per_loop of 30 in settings, TPUConfig's is {loop}.")
    saved = without.save_checkpoints_steps
    expect(
        saved == 300,
        f"With iterations_per_loop of 30 a checkpoint is due every 300 steps; yours is every {saved}.",
    )
    resolver = make_config(SETTINGS | {"use_tpu": True}).cluster
    expect(
        isinstance(resolver, tf.distribute.cluster_resolver.TPUClusterResolver),
        f"Where use_tpu is true, cluster should be a resolver; yours is "
        f"{'None' if resolver is None else a(resolver)}.",
    )
    expect(
        resolver.master() == SETTINGS["tpu"],
        f'The resolver should look for settings["tpu"]; yours looks for {resolver.master()}.',
    )
    return "The TPU's name, its loop and the checkpoints are in their places."


@todo(
    "2f",
    hints=(
        "tpu.TPUEstimator(model, config=config, use_tpu=..., train_batch_size=..., ...)",
        'params={"learning_rate": settings["learning_rate"]}: batch_size is a reserved name there.',
    ),
    mutants=(
        Mutant(
            'params={"learning_rate": settings["learning_rate"]}',
            'params={"learning_rate": settings["learning_rate"], "batch_size": 64}',
            "reserved",
        ),
        Mutant('params={"learning_rate": settings["learning_rate"]}', "params={}", "learning_rate"),
        Mutant(
            'eval_batch_size=settings["eval_batch_size"],\n        predict',
            "predict",
            "eval_batch_size",
        ),
        Mutant('predict_batch_size=settings["eval_batch_size"],', "", "predict_batch_size"),
        Mutant(
            'train_batch_size=settings["train_batch_size"]',
            "train_batch_size=8",
            "train_batch_size",
        ),
        Mutant('use_tpu=settings["use_tpu"]', "use_tpu=False", "use_tpu"),
        Mutant('use_tpu=settings["use_tpu"],', "", "defaults to True"),
        Mutant("config=config,", "config=config, eval_on_tpu=False,", "eval_on_tpu"),
        Mutant("    return tpu.TPUEstimator(", "    tpu.TPUEstimator(", "return missing"),
    ),
)
def estimator_of(make_estimator: Callable) -> str:
    """A TPUEstimator, whose batch sizes and params arrive where they should."""
    config = tpu.RunConfig(model_dir="never_written")
    made = make_estimator(_never_called, config, dict(SETTINGS))
    expect(
        isinstance(made, tpu.TPUEstimator),
        f"make_estimator should return a tpu.TPUEstimator; yours returns {a(made)}.",
    )
    expect(
        made.params.get("learning_rate") == 0.5,
        f"params should hold the learning_rate of settings; yours hold {made.params}.",
    )
    for name, run, use, wanted in (
        ("train_batch_size", "training", lambda read: made.train(read, steps=1), 64),
        ("eval_batch_size", "evaluation", lambda read: made.evaluate(read, steps=1), 24),
        ("predict_batch_size", "prediction", lambda read: next(made.predict(read)), 24),
    ):
        try:
            size = _batch_size(use)
        except RuntimeError as error:
            if "TPU" not in str(error):
                raise
            raise Wrong(
                "It looks for a TPU though settings say use_tpu: false. use_tpu defaults to True: set it "
                "from settings."
            ) from None
        expect(
            size == wanted,
            f"In {run} input_fn should get a batch_size of {wanted}, and gets {size}: set {name} from "
            "settings.",
        )
    expect(
        _tpu_estimator.settings(made).eval_on_tpu,
        "eval_on_tpu=False leaves the TPU idle in every evaluation: leave it out.",
    )
    try:
        make_estimator(_never_called, config, SETTINGS | {"use_tpu": True, "train_batch_size": 0})
    except ValueError:
        return "Each batch size arrives where it belongs, and use_tpu is a setting."
    raise Wrong('use_tpu should be settings["use_tpu"]; the TPU is never used.')


class _Enough(Exception):
    """Raised by an input_fn that has seen its params."""


def _never_called(features, labels, mode, params):
    raise AssertionError("the input_fn stops the Estimator before")


def _batch_size(use: Callable) -> int | None:
    """The batch size that an Estimator tells input_fn; with use_tpu=False that is the global one."""
    seen = {}

    def read(params):
        seen.update(params)
        raise _Enough

    with contextlib.suppress(_Enough):
        use(read)
    return seen.get("batch_size")

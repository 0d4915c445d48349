"""What runs on the cores: TODO 11b, the model, 11c, its compile, and 11e, the learning rate."""

from collections.abc import Callable

import keras
import numpy as np

from lab_utils.check.labs.digits import expect_digits_model
from lab_utils.check.labs.networks import all_layers
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect
from lab_utils.estimator import tf

IMAGES = np.random.default_rng(1).integers(0, 17, [130, 8, 8, 1]).astype(np.uint8)


@todo(
    "11b",
    hints=(
        'Each layer takes a dtype, which is a policy. Which layer needs one of its own?',
        'keras.Model takes what goes in and what comes out; logits have no activation.',
    ),
    why='The policy keeps variables in float32; the logits should be float32 too.',
)
def model(make_model: Callable) -> str:
    """bfloat16 inside, float32 variables and logits."""
    made = make_model("mixed_bfloat16")
    expect(
        isinstance(made, keras.Model),
        f"make_model should return a keras.Model; yours returns {a(made)}.",
    )
    expect(
        made.outputs[0].shape == (None, 10),
        f"The output should be [batch, 10]; yours is {made.outputs[0].shape}.",
    )
    expect(
        made.outputs[0].dtype == "float32",
        f"With mixed_bfloat16 the logits come out in {made.outputs[0].dtype}: the loss needs the digits of "
        'float32. Give the last layer dtype="float32".',
    )
    kept = {weight.dtype for weight in made.trainable_variables}
    expect(
        kept == {"float32"},
        f"The variables should be float32 under mixed_bfloat16, and some are {', '.join(sorted(kept))}: take "
        "dtype=dtype, which keeps them so.",
    )
    dense = [layer for layer in all_layers(made) if isinstance(layer, keras.layers.Dense)]
    hidden = [layer for layer in dense if layer.units == 64]
    expect(bool(hidden), "There should be a hidden Dense layer of 64.")
    expect(
        hidden[0].compute_dtype == "bfloat16",
        f"The hidden layer computes in {hidden[0].compute_dtype} under mixed_bfloat16: give it dtype=dtype.",
    )
    plain = make_model("float32")
    wide = [layer.name for layer in all_layers(plain) if "bfloat16" in str(layer.compute_dtype)]
    expect(not wide, f"With float32, {', '.join(wide)} computes in bfloat16: take dtype=dtype.")
    expect_digits_model(plain, IMAGES, IMAGES.astype(np.float32) / 16)
    return "bfloat16 in between, float32 variables, float32 logits."


@todo(
    "11c",
    hints=(
        'Both the model and compile make variables: what should stand in the scope?',
        'Which loss takes whole numbers for labels, and what must it be told of logits?',
        'metrics and weighted_metrics differ in what they do with weights.',
    ),
    why='Examples of weight 0 do not count, and the host is needed only every few steps.',
)
def compiled(make_compiled: Callable) -> str:
    """Made in the strategy's scope, and compiled as the TODO says."""
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    made = make_compiled(strategy, "mixed_bfloat16", 0.5, 7)
    expect(
        isinstance(made, keras.Model),
        f"make_compiled should return the model; yours returns {a(made)}.",
    )
    expect(
        made.distribute_strategy is strategy,
        "The model was not made in the strategy's scope: on a TPU its variables would stay on the host.",
    )
    expect(bool(made.compiled), "The model is not compiled.")
    other = make_compiled(strategy, "float32", 0.5)
    for each, dtype in ((made, "bfloat16"), (other, "float32")):
        expect(
            any(layer.compute_dtype == dtype for layer in all_layers(each)[1:-1]),
            f"The model ignores dtype, and does not compute in {dtype}: make_model(dtype).",
        )
    expect(
        isinstance(made.optimizer, keras.optimizers.SGD) and made.optimizer.momentum == 0.9,
        "The optimizer should be SGD with a momentum of 0.9.",
    )
    expect(
        not made.optimizer.nesterov,
        "Nesterov's momentum gives other updates: SGD with a momentum of 0.9, and no more.",
    )
    expect(
        np.isclose(float(made.optimizer.learning_rate), 0.5),
        "The optimizer should take learning_rate.",
    )
    expect(
        made.steps_per_execution == 7,
        f"steps_per_execution of 7 becomes {made.steps_per_execution}: hand it to compile.",
    )
    logits = tf.constant([[9.0, 0.0, 0.0], [0.0, 0.0, 9.0]])
    loss = made.loss if callable(made.loss) else keras.losses.get(made.loss)
    found = float(tf.reduce_mean(loss(tf.constant([0, 0]), logits)))
    expect(
        not np.isclose(found, 9.0004, atol=1e-3),
        "The loss adds up over the batch, and with it the gradient: leave `reduction` as it is, a mean.",
    )
    expect(
        np.isclose(found, 4.5002, atol=1e-3),
        f"The loss of logits that are sure and wrong by 9 half the time is 4.5 nats; yours gives "
        f"{found:.3g}: from_logits=True.",
    )
    data = tf.data.Dataset.from_tensors(
        (IMAGES[:4], np.zeros(4, np.int32), np.zeros(4, np.float32))
    )
    try:
        said = made.evaluate(data, verbose=0, return_dict=True)
    except RuntimeError as error:
        if "Mixing different tf.distribute.Strategy" not in str(error):
            raise
        raise Wrong(
            "compile stands outside of strategy.scope(), and makes the optimizer's and the metrics' variables: "
            "put it into the scope too."
        ) from None
    except ValueError as error:
        raise Wrong(
            "Loss and metrics should take labels that are numbers of classes, int32 [B], and logits [B, 10]: "
            f'SparseCategoricalCrossentropy and "accuracy". Keras says: {error}'
        ) from None
    names = [name for name in said if name != "loss"]
    expect(bool(names), 'There is no accuracy: weighted_metrics=["accuracy"].')
    answers = made.predict(IMAGES[:4], verbose=0).argmax(axis=1).astype(np.int32)
    data = tf.data.Dataset.from_tensors(
        (IMAGES[:4], (answers + [0, 1, 1, 1]) % 10, np.array([1, 0, 0, 0], np.float32))
    )
    accuracy = made.evaluate(data, verbose=0, return_dict=True)[names[0]]
    expect(
        accuracy > 0.99,
        f"With the one right answer of weight 1 and three wrong ones of weight 0 accuracy is 1; yours is "
        f"{accuracy:.2g}: put it into weighted_metrics.",
    )
    return "Made in the scope; accuracy goes by weights; the host is asked every few steps."


@todo(
    "11e",
    hints=(
        'How many steps is a tenth, and how many remain for the cosine?',
        'CosineDecay has arguments for where it begins, where the warm-up leads, and how long both take.',
    ),
    why='A large rate harms weights that are still random, so the rate rises slowly.',
)
def schedule(make_schedule: Callable) -> str:
    """From rate up to cores * rate, then down to 0."""
    for cores in (4, 8):
        made = make_schedule(0.25, cores, 200)
        expect(
            callable(made),
            f"make_schedule should return a schedule; yours returns {a(made)}.",
        )
        rates = np.array([float(made(step)) for step in range(0, 201, 5)])
        expect(
            np.isclose(rates[0], 0.25, rtol=0.02),
            f"At step 0 the rate should be the old one, 0.25; yours is {rates[0]:.3g}.",
        )
        expect(
            np.isclose(rates.max(), 0.25 * cores, rtol=0.02),
            f"For {cores} cores the rate should rise to {cores} times 0.25, cores * rate; yours rises to "
            f"{rates.max():.3g}.",
        )
        halfway = 0.125 * (1 + cores)
        expect(
            np.isclose(rates[2], halfway, rtol=0.1),
            f"Warm-up takes a tenth of 200 steps, so halfway, at step 10, the rate is {halfway:.3g}; yours "
            f"is {rates[2]:.3g}.",
        )
        quarter = 0.25 * cores * 0.8536  # of a cosine, after a quarter of the way down
        expect(
            rates[40] > 0.002 * rates.max() or np.isclose(rates[13], quarter, rtol=0.03),
            f"The way down should be a cosine's: at step 65, a quarter of it, {quarter:.3g}; yours is "
            f"{rates[13]:.3g}.",
        )
        expect(
            rates[40] < 0.002 * rates.max() and np.all(np.diff(rates[4:]) < 1e-6),
            f"After the warm-up the rate should fall to 0 by the last step; there yours is {rates[40]:.3g}.",
        )
    return "From the old rate to cores times as much, and down to nothing."

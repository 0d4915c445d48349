"""Flax linen with TrainState, BatchNorm, dropout, absl flags and a dictionary as the batch."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl import app, flags
from flax.training import train_state

FLAGS = flags.FLAGS
flags.DEFINE_integer("batch", 64, "Examples a step.")
flags.DEFINE_float("rate", 1e-3, "Learning rate.")


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.Conv(16, (3, 3))(x)
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.relu(x).reshape((x.shape[0], -1))
        x = nn.Dropout(0.2, deterministic=not train)(x)
        return nn.Dense(10)(x)


class State(train_state.TrainState):
    batch_stats: dict


@jax.jit
def train_step(state, batch, dropout_key):
    key = jax.random.fold_in(dropout_key, state.step)

    def loss_fn(params):
        variables = {"params": params, "batch_stats": state.batch_stats}
        logits, new = state.apply_fn(
            variables, batch["image"], train=True, mutable=["batch_stats"], rngs={"dropout": key}
        )
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"])
        return losses.mean(), new

    (loss, new), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads, batch_stats=new["batch_stats"]), {"loss": loss}


def batches(size):
    rng = np.random.default_rng(0)
    while True:
        image = rng.normal(size=(size, 16, 16, 3)).astype("float32")
        yield {"image": image, "label": rng.integers(0, 10, size)}


def main(argv):
    model, key = Net(), jax.random.key(0)
    variables = model.init(key, jnp.ones((1, 16, 16, 3)), train=False)
    state = State.create(
        apply_fn=model.apply,
        params=variables["params"],
        batch_stats=variables["batch_stats"],
        tx=optax.sgd(FLAGS.rate, momentum=0.9),
    )
    for step, batch in zip(range(20), batches(FLAGS.batch), strict=False):
        state, metrics = train_step(state, batch, key)
        print(step, jax.device_get(metrics)["loss"])


if __name__ == "__main__":
    app.run(main)

"""Flax's translation example in JAX, for published.py: one core's train step, from shapes alone.

Our own code. Sizes, batch a core and number types are those of its default configuration; packed sentences
arrive on the core. Without dropout, whose random numbers make the published step longer.
"""

import jax
import jax.numpy as jnp
from vit import HALF, adam, norm, shape

WIDTH, HEADS, INNER, LAYERS, WORDS, LENGTH = 1024, 16, 4096, 6, 32_000, 256
SMOOTHING = 0.1


def _attention(weights, x, seen, mask):
    """Queries of `x` over the places of `seen`; what `mask` holds as False is not looked at."""
    q = jnp.einsum("bsd,dhc->bshc", x, weights["q"].astype(HALF))
    k, v = (jnp.einsum("bsd,dhc->bshc", seen, weights[name].astype(HALF)) for name in "kv")
    scores = jnp.einsum("bshc,bthc->bhst", q, k) * q.shape[-1] ** -0.5
    shares = jax.nn.softmax(jnp.where(mask, scores, jnp.asarray(-1e9, HALF)))
    mixed = jnp.einsum("bhst,bthc->bshc", shares, v)
    return jnp.einsum("bshc,hcd->bsd", mixed, weights["out"].astype(HALF))


def _perceptron(weights, x):
    return jax.nn.relu(x @ weights["up"].astype(HALF)) @ weights["down"].astype(HALF)


def _one_text(texts):
    """[batch, 1, length, length]: whether two places of a packed row belong to one text."""
    return texts[:, None, :, None] == texts[:, None, None, :]


def _loss(params, batch):
    table = params["table"].astype(HALF)
    places = params["places"].astype(HALF)
    read, written = table[batch["inputs"]] + places, table[batch["before"]] + places
    within = _one_text(batch["texts"])
    causal = within & jnp.tril(jnp.ones((LENGTH, LENGTH), bool))

    def encode(x, weights):
        normed = norm(x)
        x = x + _attention(weights["own"], normed, normed, within)
        return x + _perceptron(weights, norm(x)), None

    read, _ = jax.lax.scan(encode, read, params["encoder"])
    read = norm(read)

    def decode(x, weights):
        normed = norm(x)
        x = x + _attention(weights["own"], normed, normed, causal)
        x = x + _attention(weights["other"], norm(x), read, within)
        return x + _perceptron(weights, norm(x)), None

    written, _ = jax.lax.scan(decode, written, params["decoder"])
    logits = (norm(written) @ table.T * WIDTH**-0.5).astype(jnp.float32)
    logs = jax.nn.log_softmax(logits)
    right = jnp.take_along_axis(logs, batch["targets"][..., None], -1)[..., 0]
    return -jnp.mean((1 - SMOOTHING) * right + SMOOTHING / WORDS * logs.sum(-1))


def step_of(batch):
    """The step on `batch` rows of 256 words, read and written."""

    def attention():
        made = {name: shape(LAYERS, WIDTH, HEADS, WIDTH // HEADS) for name in "qkv"}
        return made | {"out": shape(LAYERS, HEADS, WIDTH // HEADS, WIDTH)}

    inner = {"up": shape(LAYERS, WIDTH, INNER), "down": shape(LAYERS, INNER, WIDTH)}
    params = {
        "table": shape(WORDS, WIDTH),
        "places": shape(LENGTH, WIDTH),
        "encoder": {"own": attention(), **inner},
        "decoder": {"own": attention(), "other": attention(), **inner},
    }
    rows = shape(batch, LENGTH, dtype=jnp.int32)
    return adam(_loss, params, dict.fromkeys(("inputs", "before", "targets", "texts"), rows))

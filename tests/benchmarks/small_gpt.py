"""A small GPT in JAX, for published.py: one core's train step, from shapes alone.

Our own code. Sizes and parts are those of vorushin/tpuchat at its log's entry of 16 February 2026, with the
attention written out: 16 layers of 1,024, 8 heads of 128, windows of half the length in three layers of four,
a bound on the logits by tanh. Its Adam multiplies by a float32 learning rate, so that after the first step
all parameters and moments are float32; nothing is donated.
"""

import jax
import jax.numpy as jnp
import optax
from vit import HALF, shape

LAYERS, WIDTH, HEADS, HEAD, WORDS, LENGTH, CAP = 16, 1024, 8, 128, 32_768, 2048, 15.0
RATE, DECAY = 3e-4, 0.1


def _norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def _turned(x, cos, sin):
    """Rotary positions: x is [batch, places, heads, 128]."""
    one, two = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([one * cos + two * sin, two * cos - one * sin], axis=-1)


def _attention(x, weights, cos, sin, window):
    q, k, v = (jnp.einsum("btd,dhk->bthk", x, weights[name]) for name in "qkv")
    q, k = _norm(_turned(q, cos, sin)), _norm(_turned(k, cos, sin))
    scores = jnp.einsum("bthd,bshd->bhts", q, k) * HEAD**-0.5
    before = jnp.arange(LENGTH)[:, None] - jnp.arange(LENGTH)[None, :]
    seen = (before >= 0) & (before < window)
    scores = jnp.where(seen, scores, jnp.finfo(scores.dtype).min)
    mixed = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)
    return jnp.einsum("bthd,hde->bte", mixed, weights["out"])


def _window(layer):
    return LENGTH if layer % 4 == 3 else LENGTH // 2


def _loss(params, tables, words, targets):
    cos, sin = (table[None, :, None, :] for table in tables)
    x = first = _norm(params["read"][words])
    for n, weights in enumerate(params["layers"]):
        mixed = _attention(_norm(x), weights, cos, sin, _window(n))
        x = params["keep"][n] * x + params["again"][n] * first + mixed
        inner = jnp.square(jax.nn.relu(_norm(x) @ weights["up"]))
        x = x + inner @ weights["down"]
    logits = jnp.einsum("btd,dv->btv", _norm(x), params["write"]).astype(jnp.float32)
    logits = CAP * jnp.tanh(logits / CAP)
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, targets))


@jax.jit
def _step(state, tables, words, targets, rate):
    params, first, second, count = state
    loss, grads = jax.value_and_grad(_loss)(params, tables, words, targets)
    count = count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
    second = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g**2, second, grads)

    def moved(p, m, v):
        m, v = m / (1 - 0.9**count), v / (1 - 0.95**count)
        decay = DECAY if p.ndim > 1 else 0.0
        return p - RATE * rate * (m / (jnp.sqrt(v) + 1e-8) + decay * p)

    return loss, (jax.tree.map(moved, params, first, second), first, second, count)


def step_of(batch):
    """The step on `batch` texts of 2,048 words, and its arguments."""
    layer = {name: shape(WIDTH, HEADS, HEAD) for name in "qkv"} | {
        "out": shape(HEADS, HEAD, WIDTH),
        "up": shape(WIDTH, 4 * WIDTH),
        "down": shape(4 * WIDTH, WIDTH),
    }
    params = {
        "read": shape(WORDS, WIDTH),
        "write": shape(WIDTH, WORDS),
        "keep": shape(LAYERS),
        "again": shape(LAYERS),
        "layers": [layer] * LAYERS,
    }
    tables = (shape(LENGTH, HEAD // 2, dtype=HALF),) * 2
    rows = shape(batch, LENGTH, dtype=jnp.int32)
    state = (params, params, params, shape(dtype=jnp.int32))
    return _step, (state, tables, rows, rows, shape())

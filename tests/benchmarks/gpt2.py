"""GPT-2 small in JAX, its attention written out, for published.py: a step over all chips, from shapes alone.

Our own code. Sizes, number types and optimizer are those of honglu2875/GPT-speedrun-TPU at a39d796: 12 layers
of 768, 12 heads of 64, texts of 1,024 of 50,304 words, read and written by one table; weights and moments in
float32, layers in bfloat16, scores and norms in float32. The batch is split over the chips, which sum their
gradients; their length is bounded; state is donated.
"""

import functools

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from vit import HALF

LAYERS, WIDTH, HEADS, HEAD, WORDS, LENGTH = 12, 768, 12, 64, 50_304, 1024
DECAY, LONGEST = 0.1, 1.0


def _norm(x, weights):
    x = x.astype(jnp.float32)
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred * jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)
    return scaled.astype(HALF) * weights[0].astype(HALF) + weights[1].astype(HALF)


def _dense(x, weights):
    return x @ weights[0].astype(HALF) + weights[1].astype(HALF)


def _attention(x, layer):
    rows = x.shape[0]
    parts = jnp.split(_dense(x, layer["qkv"]), 3, axis=-1)
    q, k, v = (part.reshape(rows, LENGTH, HEADS, HEAD) for part in parts)
    scores = jnp.einsum("bthd,bshd->bhts", q, k).astype(jnp.float32) * HEAD**-0.5
    seen = jnp.tri(LENGTH, dtype=bool)
    scores = jnp.where(seen, scores, jnp.finfo(jnp.float32).min)
    mixed = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores).astype(HALF), v)
    return _dense(mixed.reshape(rows, LENGTH, WIDTH), layer["out"])


def _loss(params, words, targets):
    x = params["words"][words].astype(HALF) + params["places"].astype(HALF)
    for layer in params["layers"]:
        x = x + _attention(_norm(x, layer["first"]), layer)
        inner = jax.nn.gelu(_dense(_norm(x, layer["second"]), layer["up"]))
        x = x + _dense(inner, layer["down"])
    logits = _norm(x, params["last"]) @ params["words"].astype(HALF).T
    costs = optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), targets)
    return costs.mean()


@functools.partial(jax.jit, donate_argnums=0)
def _step(state, words, targets):
    params, first, second, count = state
    loss, grads = jax.value_and_grad(_loss)(params, words, targets)
    length = optax.global_norm(grads)
    grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, LONGEST / (length + 1e-6)), grads)
    count = count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
    second = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, second, grads)

    def moved(p, m, v):
        m, v = m / (1 - 0.9**count), v / (1 - 0.95**count)
        decay = DECAY * p if p.ndim > 1 else 0.0
        return p - 3e-4 * (m / (jnp.sqrt(v) + 1e-8) + decay)

    return (jax.tree.map(moved, params, first, second), first, second, count), loss, length


def step_of(batch):
    """The step on `batch` texts over the axis "data" of a mesh, and its arguments."""
    mesh = Mesh(jax.devices()[:1], ("data",))

    def shape(*dims, dtype=jnp.float32, axes=()):
        split = NamedSharding(mesh, PartitionSpec(*axes))
        return jax.ShapeDtypeStruct(dims, dtype, sharding=split)

    def dense(rows, columns):
        return shape(rows, columns), shape(columns)

    norm = shape(WIDTH), shape(WIDTH)
    layer = {
        "qkv": dense(WIDTH, 3 * WIDTH),
        "out": dense(WIDTH, WIDTH),
        "up": dense(WIDTH, 4 * WIDTH),
        "down": dense(4 * WIDTH, WIDTH),
        "first": norm,
        "second": norm,
    }
    params = {
        "words": shape(WORDS, WIDTH),
        "places": shape(LENGTH, WIDTH),
        "layers": [layer] * LAYERS,
        "last": norm,
    }
    rows = shape(batch, LENGTH, dtype=jnp.int32, axes=("data",))
    state = (params, params, params, shape(dtype=jnp.int32))
    return _step, (state, rows, rows)

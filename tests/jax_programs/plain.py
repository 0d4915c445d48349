"""Plain pytrees in the style of public trainers: dataclass configs, meshes, FSDP, accumulation, shard_map."""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.experimental import pallas as pl
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jax_programs import Step, program


@dataclasses.dataclass(frozen=True)
class Config:
    width: int = 256
    layers: int = 4
    heads: int = 4
    vocabulary: int = 2048
    length: int = 128
    rate: float = 3e-4
    remat: bool = True


def mesh_of(*axes):
    return Mesh(np.array(jax.devices()[:1]).reshape((1,) * len(axes)), axes)


def weights(cfg, key=None):
    """Shapes of the parameters, layers stacked."""
    d, n, f32 = cfg.width, cfg.layers, jnp.float32
    shape = jax.ShapeDtypeStruct
    return {
        "embed": shape((cfg.vocabulary, d), f32),
        "blocks": {
            "qkv": shape((n, d, 3 * d), f32),
            "proj": shape((n, d, d), f32),
            "up": shape((n, d, 4 * d), f32),
            "down": shape((n, 4 * d, d), f32),
            "scale": shape((n, 2, d), f32),
        },
        "head": shape((d, cfg.vocabulary), f32),
    }


def rms(x, scale):
    y = x.astype(jnp.float32)
    y = y * jax.lax.rsqrt(jnp.mean(jnp.square(y), -1, keepdims=True) + 1e-6)
    return (y * scale).astype(x.dtype)


def attention(x, block, cfg):
    b, s, d = x.shape
    q, k, v = jnp.split(x @ block["qkv"].astype(x.dtype), 3, axis=-1)
    q, k, v = (a.reshape(b, s, cfg.heads, d // cfg.heads) for a in (q, k, v))
    out = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    return out.reshape(b, s, d) @ block["proj"].astype(x.dtype)


def forward(params, tokens, cfg, constrain=lambda x: x):
    x = params["embed"].astype(jnp.bfloat16)[tokens]

    def layer(x, block):
        x = x + attention(rms(x, block["scale"][0]), block, cfg)
        h = jax.nn.silu(rms(x, block["scale"][1]) @ block["up"].astype(x.dtype))
        return constrain(x + h @ block["down"].astype(x.dtype)), None

    if cfg.remat:
        layer = jax.checkpoint(layer, policy=jax.checkpoint_policies.nothing_saveable)
    x, _ = jax.lax.scan(layer, constrain(x), params["blocks"])
    return (x @ params["head"].astype(x.dtype)).astype(jnp.float32)


def loss_of(params, tokens, cfg, constrain=lambda x: x):
    logits = forward(params, tokens[:, :-1], cfg, constrain)
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()


class State(NamedTuple):
    step: jax.Array
    params: dict
    opt: optax.OptState


def state_of(cfg, tx):
    params = weights(cfg)
    return State(jax.ShapeDtypeStruct((), jnp.int32), params, jax.eval_shape(tx.init, params))


def tokens_of(cfg, batch=32):
    return jax.ShapeDtypeStruct((batch, cfg.length + 1), jnp.int32)


def fsdp(tree, mesh, axis="data", least=4096):
    """Each array split over its largest axis, small ones whole: as public FSDP trainers do it."""

    def spec(a):
        if np.prod(a.shape) < least:
            return NamedSharding(mesh, P())
        largest = int(np.argmax(a.shape))
        return NamedSharding(mesh, P(*(axis if n == largest else None for n in range(a.ndim))))

    return jax.tree.map(spec, tree)


@program("TPU241", "TPU343")
def fully_sharded(fault):
    """FSDP: parameters and moments split over the axis of the batch; gathers are meant."""
    cfg, mesh = Config(), mesh_of("data")
    tx = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adamw(cfg.rate, b2=0.95, weight_decay=0.1)
    )
    state = state_of(cfg, tx)
    shardings = fsdp(state, mesh)
    rows = NamedSharding(mesh, P("data"))

    @functools.partial(
        jax.jit, in_shardings=(shardings, rows), out_shardings=(shardings, None), donate_argnums=0
    )
    def train_step(state, tokens):
        loss, grads = jax.value_and_grad(loss_of)(state.params, tokens, cfg)
        updates, opt = tx.update(grads, state.opt, state.params)
        if fault == "TPU343" and float(loss) > 1e3:  # <- TPU343
            loss = loss / 2
        if fault == "TPU241":
            jax.experimental.io_callback(print, None, loss)  # <- TPU241
        return State(state.step + 1, optax.apply_updates(state.params, updates), opt), {
            "loss": loss,
            "norm": optax.global_norm(grads),
        }

    return Step(train_step, (state, tokens_of(cfg)))


MEGATRON = {
    "embed": P("model", None),
    "blocks": {
        "qkv": P(None, None, "model"),
        "proj": P(None, "model", None),
        "up": P(None, None, "model"),
        "down": P(None, "model", None),
        "scale": P(),
    },
    "head": P(None, "model"),
}


@program()
def tensor_parallel(fault):
    """Megatron's split over "model", a batch over "data", activations constrained; class with __call__."""
    cfg, mesh = dataclasses.replace(Config(), width=512), mesh_of("data", "model")
    shardings = jax.tree.map(lambda s: NamedSharding(mesh, s), MEGATRON)
    rows = NamedSharding(mesh, P("data", None, None))

    class TrainStep:
        def __init__(self, cfg, rate):
            self.cfg, self.rate = cfg, rate

        def __call__(self, params, tokens):
            def loss_fn(params):
                x = params["embed"].astype(jnp.bfloat16)[tokens[:, :-1]]
                x = jax.lax.with_sharding_constraint(x, rows)

                def layer(x, block):
                    x = x + attention(rms(x, block["scale"][0]), block, self.cfg)
                    h = jax.nn.silu(rms(x, block["scale"][1]) @ block["up"].astype(x.dtype))
                    return jax.lax.with_sharding_constraint(
                        x + h @ block["down"].astype(x.dtype), rows
                    ), None

                x, _ = jax.lax.scan(jax.checkpoint(layer), x, params["blocks"])
                logits = x @ params["head"].astype(jnp.bfloat16)
                logits = logits.astype(jnp.float32)
                return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

            loss, grads = jax.value_and_grad(loss_fn)(params)
            return jax.tree.map(lambda p, g: p - self.rate * g, params, grads), loss

    placed = jax.tree.map(
        lambda a, s: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=s), weights(cfg), shardings
    )
    tokens = jax.ShapeDtypeStruct(
        (64, cfg.length + 1), jnp.int32, sharding=NamedSharding(mesh, P("data"))
    )
    step = jax.jit(TrainStep(cfg, 1e-3), donate_argnums=0, out_shardings=(shardings, None))
    return Step(step, (placed, tokens), {"data": 4, "model": 2})


@program("TPU243")
def accumulated(fault):
    """Gradient accumulation by a scan, an exponential moving average, static config by name."""
    cfg = Config(layers=2)
    tx = optax.MultiSteps(optax.adafactor(1e-3), every_k_schedule=4)

    def train_step(state, ema, batch, *, cfg, micro=4):  # <- TPU243
        parts = jax.tree.map(lambda a: a.reshape(micro, a.shape[0] // micro, *a.shape[1:]), batch)

        def one(grads, part):
            loss, new = jax.value_and_grad(loss_of)(state.params, part, cfg)
            return jax.tree.map(jnp.add, grads, new), loss

        zeros = jax.tree.map(jnp.zeros_like, state.params)
        grads, losses = jax.lax.scan(one, zeros, parts)
        grads = jax.tree.map(lambda g: g / micro, grads)
        updates, opt = tx.update(grads, state.opt, state.params)
        params = optax.apply_updates(state.params, updates)
        ema = jax.tree.map(lambda e, p: 0.999 * e + 0.001 * p, ema, params)
        return State(state.step + 1, params, opt), ema, losses.mean()

    jitted = jax.jit(train_step, static_argnames=("cfg", "micro"), donate_argnums=(0, 1))
    step = functools.partial(jitted, cfg=cfg)
    batches = [tokens_of(cfg, 32), tokens_of(cfg, 24 if fault == "TPU243" else 32)]
    return Step(step, (state_of(cfg, tx), weights(cfg), iter(batches)), topology="v5e:1x1")


@program()
def mapped(fault):
    """jax.shard_map with hand-written collectives, over a mesh that the process has."""
    mesh = mesh_of("data")

    @jax.jit
    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("data")), out_specs=(P(), P()))
    def step(params, batch):
        def loss_of_all(params):
            return jax.lax.pmean(jnp.mean((batch @ params["w"]) ** 2), "data")

        loss, grads = jax.value_and_grad(loss_of_all)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss

    params = {"w": jnp.zeros((128, 128)), "b": jnp.zeros(128)}
    return Step(step, (params, jnp.zeros((64, 128))), topology="v5e:1x1")


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Learner:
    """A registered dataclass as the state, and its step as a method that calls a jitted function."""

    params: dict
    opt: optax.OptState
    key: jax.Array


class Trainer:
    def __init__(self, cfg, tx, mesh):
        self.cfg, self.tx = cfg, tx
        rows, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
        self._step = jax.jit(
            self._train_step,
            in_shardings=(whole, rows),
            out_shardings=(whole, whole),
            donate_argnums=(0,),
        )

    def _train_step(self, learner, tokens):
        key, use = jax.random.split(learner.key)
        kept = jax.random.bernoulli(use, 0.9, tokens.shape)
        tokens = jnp.where(kept, tokens, 0)
        loss, grads = jax.value_and_grad(loss_of)(learner.params, tokens, self.cfg)
        updates, opt = self.tx.update(grads, learner.opt, learner.params)
        return Learner(optax.apply_updates(learner.params, updates), opt, key), loss

    def train(self, learner, tokens):
        learner, loss = self._step(learner, tokens)
        return learner, {"loss": loss}


@program()
def a_method_that_calls_a_jitted_one(fault):
    cfg = Config(layers=2)
    tx = optax.inject_hyperparams(optax.adam)(learning_rate=1e-3)
    params = weights(cfg)
    learner = Learner(params, jax.eval_shape(tx.init, params), jax.random.key(0))
    trainer = Trainer(cfg, tx, mesh_of("data"))
    return Step(trainer.train, (learner, tokens_of(cfg)))


@program()
def explicit_axes(fault):
    """A mesh whose axes are in the types of arrays."""
    mesh = jax.make_mesh(
        (1, 1), ("data", "model"), axis_types=(jax.sharding.AxisType.Explicit,) * 2
    )

    rows = NamedSharding(mesh, P("data", None))

    @functools.partial(jax.jit, donate_argnums=0)
    def step(params, batch):
        def loss_fn(params):
            hidden = jax.nn.relu(jnp.einsum("bd,df->bf", batch, params["up"]))
            out = jnp.einsum("bf,fd->bd", hidden, params["down"], out_sharding=rows)
            return jnp.mean(out**2)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss

    def placed(shape, *spec):
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

    params = {"up": placed((512, 2048), None, "model"), "down": placed((2048, 512), "model", None)}
    return Step(step, (params, placed((256, 512), "data", None)), {"data": 4, "model": 2})


def product_kernel(rows, columns, out):
    out[...] = jnp.dot(rows[...], columns[...], preferred_element_type=jnp.float32).astype(
        out.dtype
    )


def tiled(x, w, tile=128):
    """x @ w by a Pallas kernel, a tile of the result a round."""
    (m, k), n = x.shape, w.shape[1]
    return pl.pallas_call(
        product_kernel,
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        grid=(m // tile, n // tile),
        in_specs=[
            pl.BlockSpec((tile, k), lambda i, j: (i, 0)),
            pl.BlockSpec((k, tile), lambda i, j: (0, j)),
        ],
        out_specs=pl.BlockSpec((tile, tile), lambda i, j: (i, j)),
    )(x, w)


@jax.custom_vjp
def product(x, w):
    return tiled(x, w)


product.defvjp(
    lambda x, w: (tiled(x, w), (x, w)),
    lambda kept, g: (tiled(g, kept[1].T), tiled(kept[0].T, g)),
)


@program("TPU242")
def pallas_kernel(fault):
    """A kernel of one's own with its gradient, and state in bfloat16."""

    @functools.partial(jax.jit, donate_argnums=0)
    def step(params, batch):
        def loss_fn(params):
            out = product(jax.nn.relu(product(batch["x"], params["up"])), params["down"])
            return jnp.mean((out - batch["y"]).astype(jnp.float32) ** 2)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        rate = jnp.float32(0.1) if fault else jnp.bfloat16(0.1)
        return {name: params[name] - rate * grads[name] for name in params}, loss  # <- TPU242

    def half(*shape):
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16)

    params = {"up": half(256, 512), "down": half(512, 128)}
    return Step(step, (params, {"x": half(256, 256), "y": half(256, 128)}), topology="v5e:1x1")

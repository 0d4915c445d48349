"""Flax linen: TrainState, BatchNorm, dropout, logical axes, scanned layers, pmap."""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import jax_utils, struct
from flax.training import common_utils, train_state
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jax_programs import Step, program


class Block(nn.Module):
    features: int
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x, train):
        residual = x
        x = nn.Conv(self.features, (3, 3), use_bias=False, dtype=self.dtype)(x)
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9, dtype=self.dtype)(x)
        x = nn.relu(x)
        x = nn.Conv(self.features, (3, 3), use_bias=False, dtype=self.dtype)(x)
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9, dtype=self.dtype)(x)
        return nn.relu(residual + x)


class ResNet(nn.Module):
    classes: int = 10
    dtype: Any = jnp.bfloat16

    @nn.compact
    def __call__(self, x, train=True):
        x = nn.Conv(64, (3, 3), dtype=self.dtype)(x.astype(self.dtype))
        for _ in range(2):
            x = Block(64, dtype=self.dtype)(x, train)
        x = jnp.mean(x, axis=(1, 2))
        x = nn.Dropout(0.1, deterministic=not train)(x)
        return nn.Dense(self.classes, dtype=self.dtype)(x).astype(jnp.float32)


class TrainState(train_state.TrainState):
    batch_stats: Any
    key: jax.Array
    ema: Any = struct.field(default=None)


def new_state(key, decay=0.999):
    model = ResNet()
    variables = model.init({"params": key, "dropout": key}, jnp.ones((1, 32, 32, 3)), train=False)
    schedule = optax.warmup_cosine_decay_schedule(0.0, 0.1, 500, 10_000)
    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.add_decayed_weights(1e-4),
        optax.sgd(schedule, momentum=0.9, nesterov=True),
    )
    return TrainState.create(
        apply_fn=model.apply,
        params=variables["params"],
        tx=tx,
        batch_stats=variables["batch_stats"],
        key=key,
        ema=variables["params"],
    )


def images(batch):
    shape = jax.ShapeDtypeStruct
    return {
        "image": shape((batch, 32, 32, 3), jnp.float32),
        "label": shape((batch,), jnp.int32),
    }


@program("TPU240", "TPU241", "TPU243", "TPU341")
def image_classifier(fault):
    """The step of Flax's ImageNet example, with dropout and a moving average of the weights."""

    def train_step(state, batch, train=True):  # <- TPU243
        dropout_key = jax.random.fold_in(key=state.key, data=state.step)

        def loss_fn(params):
            logits, updates = state.apply_fn(
                {"params": params, "batch_stats": state.batch_stats},
                batch["image"],
                train=train,
                mutable=["batch_stats"],
                rngs={"dropout": dropout_key},
            )
            loss = optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()
            return loss, (updates, logits)

        (loss, (updates, logits)), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        if fault == "TPU241":
            jax.debug.callback(print, loss)  # <- TPU241
        if fault == "TPU240":
            with jax.enable_x64(True):
                loss = loss.astype(jnp.float64)  # <- TPU240
            loss = loss.astype(jnp.float32)
        ema = optax.incremental_update(state.params, state.ema, 1e-3)
        state = state.apply_gradients(grads=grads, batch_stats=updates["batch_stats"], ema=ema)
        accuracy = jnp.mean(jnp.argmax(logits, -1) == batch["label"])
        return state, {"loss": loss, "accuracy": accuracy}

    state = jax.eval_shape(new_state, jax.random.key(0))
    donated = ("state", "batch") if fault == "TPU341" else "state"
    step = jax.jit(train_step, static_argnames="train", donate_argnames=donated)
    batches = [images(64), images(64), images(17)] if fault == "TPU243" else [images(64)]
    return Step(step, (state, iter(batches)))


@program("TPU242")
def pmap_era(fault):
    """Flax's examples before 2023: pmap, replicate, shard, pmean."""

    def train_step(state, batch, smoothing):
        def loss_fn(params):
            logits, new = state.apply_fn(
                {"params": params, "batch_stats": state.batch_stats},
                batch["image"],
                rngs={"dropout": key_of_core(state)},
                mutable=["batch_stats"],
            )
            onehot = optax.smooth_labels(common_utils.onehot(batch["label"], 10), smoothing)
            return optax.softmax_cross_entropy(logits, onehot).mean(), new

        (loss, new), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        grads = jax.lax.pmean(grads, axis_name="batch")
        stats = jax.lax.pmean(new["batch_stats"], axis_name="batch")
        if fault == "TPU242":
            stats = jax.tree.map(lambda a: a.astype(jnp.bfloat16), stats)  # <- TPU242
        metrics = jax.lax.pmean({"loss": loss}, axis_name="batch")
        return state.apply_gradients(grads=grads, batch_stats=stats), metrics

    state = jax.tree.map(
        lambda a: np.zeros(a.shape, a.dtype), jax.eval_shape(new_state, jax.random.PRNGKey(0))
    )
    state = jax_utils.replicate(state)
    batch = common_utils.shard(
        {"image": np.zeros((64, 32, 32, 3), np.float32), "label": np.zeros(64, np.int32)}
    )
    return Step(
        jax.pmap(
            functools.partial(train_step, smoothing=0.1), axis_name="batch", donate_argnums=(0,)
        ),
        (state, batch),  # of as many devices as the CPU has: tests/conftest.py
    )


RULES = (
    ("batch", "data"),
    ("embed", None),
    ("mlp", "model"),
    ("vocab", "model"),
    ("heads", "model"),
)


class Mlp(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, _):
        split = functools.partial(nn.with_logical_partitioning, nn.initializers.lecun_normal())
        h = nn.LayerNorm(dtype=jnp.bfloat16)(x)
        h = nn.Dense(4 * self.width, dtype=jnp.bfloat16, kernel_init=split(("embed", "mlp")))(h)
        h = nn.with_logical_constraint(nn.gelu(h), ("batch", None, "mlp"))
        h = nn.Dense(self.width, dtype=jnp.bfloat16, kernel_init=split(("mlp", "embed")))(h)
        return x + nn.with_logical_constraint(h, ("batch", None, "embed")), None


class Decoder(nn.Module):
    width: int = 256
    layers: int = 4
    vocabulary: int = 1024

    @nn.compact
    def __call__(self, tokens):
        embed = nn.Embed(
            self.vocabulary,
            self.width,
            dtype=jnp.bfloat16,
            embedding_init=nn.with_logical_partitioning(
                nn.initializers.normal(0.02), ("vocab", "embed")
            ),
        )
        x = embed(tokens)
        layer = nn.remat(Mlp, prevent_cse=False)
        x, _ = nn.scan(
            layer,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            length=self.layers,
            metadata_params={nn.PARTITION_NAME: "layers"},
        )(self.width)(x, None)
        return embed.attend(nn.LayerNorm(dtype=jnp.bfloat16)(x)).astype(jnp.float32)


@program("TPU242")
def logical_axes(fault):
    """Logical axis rules, nn.scan over rematerialised layers, in_shardings from nn.get_sharding."""
    mesh = Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("data", "model"))
    model, tx = Decoder(), optax.adamw(optax.cosine_decay_schedule(3e-4, 1000), weight_decay=0.1)

    def create(key):
        params = model.init(key, jnp.zeros((1, 128), jnp.int32))["params"]
        return train_state.TrainState.create(apply_fn=model.apply, params=params, tx=tx)

    abstract = jax.eval_shape(create, jax.random.key(0))
    shardings = nn.logical_to_mesh_sharding(nn.get_partition_spec(abstract), mesh, RULES)
    rows = NamedSharding(mesh, PartitionSpec("data"))

    def train_step(state, tokens):
        def loss_fn(params):
            logits = state.apply_fn({"params": params}, tokens[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        state = state.apply_gradients(grads=grads)
        if fault == "TPU242":
            state = state.replace(step=state.step.astype(jnp.float32) * 1.0)  # <- TPU242
        return state, loss

    step = jax.jit(
        train_step,
        in_shardings=(shardings, rows),
        out_shardings=(shardings, NamedSharding(mesh, PartitionSpec())),
        donate_argnums=0,
    )
    tokens = jax.ShapeDtypeStruct((32, 129), jnp.int32)

    def under_rules(state, tokens):
        with mesh, nn.logical_axis_rules(RULES):
            return step(state, tokens)

    return Step(under_rules, (abstract, tokens), {"data": 4, "model": 2})


def key_of_core(state):
    """Another key on each core and in each step."""
    return jax.random.fold_in(
        jax.random.fold_in(state.key, state.step), jax.lax.axis_index("batch")
    )

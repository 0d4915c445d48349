"""A small classifier with optax, donated state, epochs over shuffled arrays and an evaluation."""

import argparse
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    pairs = zip(sizes[:-1], sizes[1:], strict=True)
    return [
        (jax.random.normal(k, (a, b)) / np.sqrt(a), jnp.zeros(b))
        for k, (a, b) in zip(keys, pairs, strict=True)
    ]


def apply(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(args.lr))

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def train_step(params, opt_state, x, y):
        def loss_fn(params):
            return optax.softmax_cross_entropy_with_integer_labels(apply(params, x), y).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    @jax.jit
    def accuracy(params, x, y):
        return jnp.mean(jnp.argmax(apply(params, x), -1) == y)

    rng = np.random.default_rng(0)
    images = rng.normal(size=(1024, 784)).astype(np.float32)
    labels = rng.integers(0, 10, 1024)
    params = init(jax.random.key(0), [784, 256, 10])
    opt_state = tx.init(params)
    for epoch in range(3):
        order = rng.permutation(1024)
        for start in range(0, 1024, args.batch_size):
            rows = order[start : start + args.batch_size]
            params, opt_state, loss = train_step(params, opt_state, images[rows], labels[rows])
        print(epoch, loss.item(), accuracy(params, images, labels))


main()

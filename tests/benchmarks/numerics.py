"""Whether a CPU gives the digits that people published from real TPUs (numerics.yaml).

    python tests/benchmarks/numerics.py

Each program is lowered by JAX, rewritten by lab_utils/dry_run/run/precision.py as a step of the dry run is,
and executed on this machine's CPU. Prints a row for each entry of the list, also for those that do not agree,
and why they do not.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import yaml
from jax import lax, random

from lab_utils.dry_run.private import jax as _jax
from lab_utils.dry_run.run import precision

# JAX drew other numbers before 0.5, of which all these outputs are.
jax.config.update("jax_threefry_partitionable", False)

Program = Callable[[], list[float]]


def on_tpu(function: Callable, *arguments: Any) -> Any:
    """What a TPU gives for `function(*arguments)`, as far as the dry run knows it.

    Computed from the HLO of the function lowered for TPUs, on one CPU device.
    """
    arguments = jax.tree.map(jnp.asarray, arguments)
    lowered = (
        jax.jit(function, keep_unused=True).trace(*arguments).lower(lowering_platforms=("tpu",))
    )
    hlo = precision.as_on_tpu(_jax.hlo_of(lowered.as_text()))
    devices = jax.devices("cpu")[:1]
    executable = _jax.compile_hlo(hlo, devices, load=True)
    results = _jax.execute(executable, [[leaf] for leaf in jax.tree.leaves(arguments)], devices)
    shapes = jax.eval_shape(function, *arguments)
    leaves = [np.asarray(cores[0]) for cores in results]
    return jax.tree.unflatten(jax.tree.structure(shapes), leaves)


def _dot_2_by_2() -> list[float]:
    x = np.array([[0.3744, 0.1656], [0.4707, 0.1663]], np.float32)
    y = np.array([[0.3946, 0.1186], [0.1569, 0.3145]], np.float32)
    return on_tpu(jnp.dot, x, y)


def _two_rows() -> tuple[jax.Array, jax.Array]:
    _, first, second = random.split(random.PRNGKey(0), 3)
    return random.normal(first, (1, 2, 4)), random.normal(second, (4, 2))


def _contract(x: jax.Array, kernel: jax.Array) -> jax.Array:
    return lax.dot_general(x, kernel, (((2,), (0,)), ((), ())))


def _rows_at_once() -> list[float]:
    return on_tpu(_contract, *_two_rows())


def _row_by_row() -> list[float]:
    x, kernel = _two_rows()
    return [on_tpu(_contract, x[:, row : row + 1], kernel) for row in (0, 1)]


def _whole_numbers() -> list[float]:
    x = np.arange(40, dtype=np.float32).reshape(4, 1, 10)
    y = np.arange(320, dtype=np.float32).reshape(8, 10, 4)
    tpu = on_tpu(lambda a, b: jnp.einsum("btd,adr->brta", a, b), x, y)
    exact = np.einsum("btd,adr->brta", x, y)
    off = np.abs(tpu - exact)
    return [(off > 0).sum(), off.max(), (off / np.abs(exact)).max(), *tpu[0, 0, 0]]


def _einsum_and_loop() -> list[float]:
    a, b = (random.normal(random.PRNGKey(seed), (64, 16)) for seed in (0, 1))
    whole = on_tpu(lambda a, b: jnp.einsum("id,jd->ij", a, b), a, b)

    def loop(a: jax.Array, b: jax.Array) -> jax.Array:
        return lax.map(lambda row: lax.map(lambda other: jnp.dot(row, other), b), a)

    return [np.max(whole - on_tpu(loop, a, b))]


def _diagonal(entry: float, precision_: str | None) -> Program:
    def program() -> list[float]:
        matrix = np.diag(np.linspace(0.9, 1.1, 1024, dtype=np.float32))
        matrix[0, 0] = entry
        product = on_tpu(lambda a, b: jnp.matmul(a, b, precision=precision_), matrix, matrix)
        return [product[0, 0]]

    return program


def _inverse() -> list[float]:
    x = np.array([[280, 361, 145], [361, 657, 247], [145, 247, 99]], np.float32)
    return on_tpu(jnp.matmul, x, jnp.linalg.solve(x, jnp.eye(3)))


def _jacobian() -> list[float]:
    a = random.normal(random.PRNGKey(0), (1000, 10000))
    x = random.normal(random.PRNGKey(0), (10000,))
    rows = on_tpu(lambda a, x: jax.jacrev(lambda x: jnp.dot(a, x))(x), a, x)
    total = on_tpu(lambda a, x: jax.grad(lambda x: jnp.sum(jnp.dot(a, x)))(x), a, x)
    return [np.max(np.abs(np.sum(rows, axis=0) - total))]


def _mean_of_product() -> list[float]:
    x = random.normal(random.PRNGKey(0), (3000, 3000))
    return [on_tpu(lambda x: jnp.dot(x, x.T).mean(), x)]


def _selu() -> list[float]:
    x = random.normal(random.PRNGKey(1701), (5000,))
    result = on_tpu(lambda x: 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67), x)
    return [*result[:3], *result[-3:]]


def _pallas() -> list[float]:
    x = on_tpu(lambda: 1.0 + 1e-3 * jnp.arange(1024 * 512, dtype=jnp.float32).reshape(1024, 512))
    # The kernel adds products of 256 rows of y at a time, its block_k.
    blocks = [on_tpu(jnp.dot, x[:, k : k + 256], x[k : k + 256, :256]) for k in (0, 256)]
    product = (blocks[0] + blocks[1])[::16, ::16]
    return [*product[:4].ravel(), *product[4:59, 0]]


def _convolve(x: jax.Array, window: jax.Array) -> jax.Array:
    return jnp.stack([jnp.dot(x[start : start + 3], window) for start in range(3)])


def _convolution() -> list[float]:
    x, window = np.arange(40, dtype=np.float32).reshape(8, 5), np.array([2, 3, 4], np.float32)
    return np.stack([on_tpu(_convolve, row, window) for row in x])


def _norm_factor() -> list[float]:
    def factor(a: jax.Array) -> jax.Array:
        w = 2 * a
        return w.sum() - 2 * (w * a).sum() / w.sum()

    return [on_tpu(factor, np.array([6.5751552582], np.float32))]


def _convolutions() -> list[float]:
    x, window = np.arange(40, dtype=np.float32).reshape(8, 5), np.array([2, 3, 4], np.float32)
    return np.stack([on_tpu(lambda x: _convolve(x, _convolve(x, window)), row) for row in x])


def _normalized() -> list[float]:
    x, window = np.arange(40, dtype=np.float32).reshape(8, 5), np.array([2, 3, 4], np.float32)

    def step(x: jax.Array) -> jax.Array:
        result = jax.vmap(_convolve, (0, None))(x, window)
        return result / result.sum(axis=0)

    return on_tpu(step, x)


# In the order of the list.
PROGRAMS: list[Program] = [
    _dot_2_by_2,
    _rows_at_once,
    _row_by_row,
    _whole_numbers,
    _einsum_and_loop,
    _diagonal(1 + 2**-8, None),
    _diagonal(1 + 2**-8, "highest"),
    _diagonal(1.2, "highest"),
    _inverse,
    _jacobian,
    _mean_of_product,
    _selu,
    _pallas,
    _convolutions,
    _normalized,
    _convolution,
    _norm_factor,
]


def printed(number: float, published: str) -> str:
    """A float32 number as Python, NumPy, JAX and PyTorch print it, whichever the published text is."""
    number, decimals = np.float32(number), len(published.partition(".")[2])
    shortest = np.format_float_positional(number, trim=".")
    # NumPy prints the numbers of an array to as many decimals as the one that needs most, at most 8.
    forms = [shortest, str(float(number)), f"{number:g}"]
    forms.append(np.format_float_positional(number, precision=decimals, trim="."))
    return published if published in forms else shortest


def main() -> int:
    """Prints the page; returns 1 if an entry does not agree whose reason is not known."""
    entries = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    agreeing, unexplained = 0, 0
    for entry, program in zip(entries, PROGRAMS, strict=True):
        published = entry["published"].split()
        numbers = np.concatenate([np.ravel(part) for part in program()])
        ours = [printed(*pair) for pair in zip(numbers, published, strict=True)]
        others = [f"{b} (here {a})" for a, b in zip(ours, published, strict=True) if a != b]
        count = len(published) - len(others)
        print(f"{entry['name']}: {count} of {len(published)} numbers agree in every printed digit")
        agreeing += not others
        if others:
            unexplained += "differs" not in entry
            print(f"    {', '.join(others[:4])}{' ...' if others[4:] else ''}")
            print(f"    {entry.get('differs', 'The reason is not known.')}")
    print(f"{agreeing} of {len(entries)} outputs agree in every printed digit")
    return int(unexplained > 0)


if __name__ == "__main__":
    sys.exit(main())

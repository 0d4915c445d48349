"""The checks of lab 11, the same port in JAX: shardings, a step as a function, FSDP, a loop that resumes."""

import contextlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lab_utils.check.devices import DEVICES, eight_devices
from lab_utils.check.outcome import CannotCheck, Wrong
from lab_utils.check.sources import edited_function
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import (
    a,
    as_wrong,
    expect,
    expect_keys,
    failure,
    other_names,
    returns,
    same,
    several,
)
from lab_utils.common.figures import counted

WAYS = ("examples", "inputs", "outputs")


def _mesh(count: int = DEVICES) -> Any:
    """The first devices in a mesh with the axis "cores", as the lab has it."""
    from jax.sharding import Mesh

    return Mesh(np.array(eight_devices()[:count]), ("cores",))


def _part(sharding: Any, shape: tuple[int, ...], what: str) -> tuple[int, ...]:
    """What one device holds of an array. Raises `Wrong` where the value is not a sharding, or does not fit."""
    import jax

    hint = ": NamedSharding(mesh, spec)" if isinstance(sharding, jax.sharding.PartitionSpec) else ""
    expect(
        isinstance(sharding, jax.sharding.Sharding),
        f"{what} should be a sharding{hint}; yours is {a(sharding)}.",
    )
    try:
        return sharding.shard_shape(shape)
    except (ValueError, TypeError, IndexError) as error:
        raise Wrong(f"{what} does not suit an array of shape {shape}: {failure(error)}") from None


@todo(
    "11a",
    hints=(
        "x has the shape [examples, inputs], and w has the shape [inputs, outputs]: at which position is the axis?",
        "An array that does not have this axis stays whole, with an empty PartitionSpec.",
        "Two of the three ways leave one array whole. In the third, both arrays have the axis.",
    ),
    why="x @ w sums over the axis that both arrays have. If this axis is split, each core has only a part of every sum.",
    slips=(
        Slip(
            '"inputs": (columns, rows)',
            '"inputs": (columns, whole)',
            "The inputs are also the first axis of w: each core needs only the rows that belong to its columns of x.",
        ),
        Slip(
            '"outputs": (whole, columns)',
            '"outputs": (whole, rows)',
            "The outputs are the second axis of w.",
        ),
    ),
)
def three_ways(layer_shardings: Callable) -> Cases:
    """What a core holds of x [32, 16] and w [16, 64], in three ways."""
    x, w = (32, 16), (16, 64)
    answer = layer_shardings(_mesh())
    expect_keys(answer, WAYS, "What layer_shardings returns")
    for way in WAYS:
        pair = answer[way]
        returns(
            pair, several(pair, 2), f'layer_shardings(...)["{way}"]', "two shardings, of x and of w"
        )
        for name, sharding, shape in zip(("x", "w"), pair, (x, w), strict=True):
            what = f'The sharding of {name} in "{way}"'
            label = f'What each of {DEVICES} devices holds of {name}, which has the shape {list(shape)}, in "{way}"'
            yield label, list(_part(sharding, shape, what))
    return "Each way splits the right axes. If both arrays have the axis, the cores must add their parts."


_CLASSES = 3
_TRACED = (
    "jax.jit cannot trace the step: it reads the value of an array, which the compiler does not know yet. Compute with "
    "jnp and jax.tree.map, without float(), int(), if or NumPy on the state."
)


def _forward(weights: dict, averages: dict, images: Any, training: bool) -> tuple[Any, dict]:
    """Stands for the flowers model, which takes seconds to compile: the mean colour, then a dense layer."""
    colours = (images / 127.5 - 1.0).mean((1, 2))
    kept = dict(averages)
    if training:
        kept["moving_mean"] = 0.97 * averages["moving_mean"] + 0.03 * colours.mean(0)
    return colours * weights["scale"] @ weights["kernel"] + weights["bias"], kept


def _state(random: np.random.Generator) -> dict[str, Any]:
    """A state for `_forward`, in which nothing is 0 or 1, as float32 arrays."""
    shapes = {"scale": (3,), "kernel": (3, _CLASSES), "bias": (_CLASSES,)}

    def drawn(shapes: dict[str, tuple[int, ...]], scale: float) -> dict[str, np.ndarray]:
        return {
            name: np.float32(
                scale * random.uniform(0.5, 1.5, shape) * random.choice([-1, 1], shape)
            )
            for name, shape in shapes.items()
        }

    return {
        "step": np.int32(100),
        "weights": drawn(shapes, 0.5),
        "averages": drawn({"moving_mean": (3,)}, 1.0),
        "momenta": drawn(shapes, 0.2),
    }


@todo(
    "11b",
    hints=(
        "value_and_grad with has_aux=True returns ((value, aux), gradients). What is aux here?",
        "Three dicts have the same keys: weights, gradients, momenta. Which of them does each of the two lines need?",
        "Which of the four entries of the state change in a step?",
    ),
    why="A step returns everything that it changes, so the new state can take the memory of the old one.",
    slips=(
        Slip(
            "(g + 0.9 * m)",
            "m",
            "That is momentum without Nesterov: the weight should move by rate * (gradient + 0.9 * new momentum).",
        ),
        Slip(
            "0.9 * m + g,", "0.9 * m + 0.1 * g,", "TensorFlow's momentum adds the whole gradient."
        ),
        Slip(
            'jnp.cos(jnp.pi * state["step"] / STEPS)',
            "1",
            "The rate should fall along half a cosine.",
        ),
        Slip('state["step"] + 1', 'state["step"]', "The number of the step should grow by 1."),
        Slip(
            '"averages": averages',
            '"averages": state["averages"]',
            "The new averages are those that loss_of returned.",
        ),
    ),
)
def pure_step(train_step: Callable) -> Cases:
    """A step of a small model in the place of `forward`, jitted, on a state in which nothing is zero."""
    eight_devices()
    import jax

    random = np.random.default_rng(4)
    state = _state(random)
    images = random.integers(0, 256, [6, 8, 8, 3], dtype=np.uint8)
    labels = np.int32([0, 1, 2, 0, 1, 2])
    before = jax.tree.map(np.copy, state)
    names = {"RATE": 0.05, "STEPS": 300, "forward": _forward}
    tracing = (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError)
    with other_names(train_step, **names), as_wrong("", _TRACED, tracing):
        answer = jax.jit(train_step)(state, images, labels)
    returns(answer, several(answer, 2), "train_step", "two things: the next state, and the loss")
    new, loss = answer
    same(jax.tree.map(np.copy, state), before, "The state that goes in should stay as it is")
    expect_keys(new, state, "The next state")
    same(list(np.shape(loss)), [], "The shape of the loss, the mean over the batch")
    yield "The loss", float(loss), 1e-4
    yield "The number of the next step, after step 100", int(new["step"])
    for entry, noun in (("momenta", "momentum"), ("averages", "average"), ("weights", "weight")):
        expect_keys(new[entry], state[entry], f'new["{entry}"]')
        for name in state[entry]:
            moved = np.asarray(new[entry][name]) - state[entry][name]
            label = f"How far the {noun} of {name} moves (the norm of all its numbers)"
            yield label, float(np.linalg.norm(moved)), 2e-3
        yield f"The sum of all {entry} after the step", _total(new[entry]), 2e-3
    return "The loss is right, and so are the momenta, averages and weights of the next state."


def _total(arrays: dict[str, Any]) -> float:
    return float(sum(np.asarray(array, np.float64).sum() for array in arrays.values()))


_SHAPES = {"inner": (16, 64), "outer": (64, 16)}
_BATCH = 32


def _small_step(state: dict, x: Any, y: Any) -> tuple[dict, Any]:
    """Stands for train_step: two dense layers, a step of gradient descent."""
    import jax
    import jax.numpy as jnp

    def loss_of(weights: dict) -> Any:
        return jnp.mean((jax.nn.relu(x @ weights["inner"]) @ weights["outer"] - y) ** 2)

    loss, gradients = jax.value_and_grad(loss_of)(state["weights"])
    weights = jax.tree.map(lambda w, g: w - 0.1 * g, state["weights"], gradients)
    return {"step": state["step"] + 1, "weights": weights}, loss


def _is_donated(lowered: Any) -> bool:
    import jax

    (state, *_), _ = lowered.args_info
    return all(leaf.donated for leaf in jax.tree.leaves(state))


@todo(
    "11c",
    hints=(
        "The step has three arguments and two results: in_shardings is a tuple of three, and out_shardings a tuple of two.",
        "PartitionSpec() splits nothing: such a result is on every device.",
        "donate_argnums is the position of the argument that may be used up.",
    ),
    why="out_shardings splits the state as in_shardings does, so the next call can take it as it is. Since the state is "
    "donated, the new state gets the memory of the old one.",
)
def over_examples(data_parallel: Callable) -> Cases:
    """The batch split over eight devices; the state whole, or split as it is told."""
    from jax.sharding import NamedSharding, PartitionSpec

    mesh = _mesh()
    whole = NamedSharding(mesh, PartitionSpec())
    columns = NamedSharding(mesh, PartitionSpec(None, "cores"))
    split = {"step": whole, "weights": {"inner": columns, "outer": whole}}
    for how, words in (
        (whole, "a state that is whole on each device"),
        (split, "a state of which `inner` is split"),
    ):
        yield from _layouts(data_parallel(_small_step, mesh, how), words)
    return f"Each of {DEVICES} devices gets {_BATCH // DEVICES} of {_BATCH} examples, and the state stays split as it was."


def _layouts(step: Any, words: str) -> Cases:
    """What each device gets of arguments and results, and what the step computes."""
    import jax

    returns(step, callable(step), "data_parallel", "the jitted step, jax.jit(step, ...)")
    draw = np.random.default_rng(5).standard_normal
    state = {
        "step": np.int32(7),
        "weights": {k: np.float32(draw(s) / 4) for k, s in _SHAPES.items()},
    }
    example = state, *(np.float32(draw((_BATCH, 16))) for _ in range(2))
    jitted = step if hasattr(step, "lower") else jax.jit(step)
    lowered = jitted.lower(*example)
    compiled = lowered.compile()
    inputs, outputs = compiled.input_shardings[0], compiled.output_shardings
    for name, sharding in zip(("images", "labels"), inputs[1:], strict=True):
        label = f"With {words}: what each device gets of {name}, here of shape {[_BATCH, 16]} (each device should get its share of the examples)"
        yield label, list(sharding.shard_shape((_BATCH, 16)))
    for side, tree in (("the state", inputs[0]), ("the new state", outputs[0])):
        for key, shape in _SHAPES.items():
            label = f"With {words}: what each device holds of {key} in {side}, of shape {list(shape)} (it should be split as `state` says)"
            yield label, list(tree["weights"][key].shard_shape(shape))
    expect(
        step is not jitted or _is_donated(lowered),
        "The state is not donated, so the old one and the new one would be in memory together: see donate_argnums.",
    )
    result = jax.tree.map(np.asarray, jitted(*example))
    yield f"With {words}: the new state and the loss should be those of one device", result, 1e-4


@todo(
    "11d",
    hints=(
        "mesh.size is the number of cores. Which axes of a leaf can be split into that many equal parts?",
        'PartitionSpec(None, None, "cores") splits the third axis: how many None come before the name?',
        'The leaf "step" has no axis at all.',
    ),
    why="Each core then holds an eighth of the large arrays. The small ones are not worth an exchange.",
    slips=(
        Slip(
            " and leaf.size >= 4096",
            "",
            "An array of fewer than 4,096 numbers should stay whole.",
        ),
        Slip(
            "if size % mesh.size == 0",
            "if size > 3",
            "The length of the axis should be a multiple of the number of cores.",
        ),
        Slip("mesh.size", "8", "The number of cores is that of the mesh, and not always 8."),
    ),
)
def fully_sharded(fsdp: Callable) -> str:
    """Arrays of many shapes on meshes of 8 and 4: the large ones split in equal parts, the others whole."""
    eight_devices()
    import jax

    shapes = {
        "conv2d/kernel": (3, 3, 48, 32),
        "conv2d_1/kernel": (3, 3, 64, 100),
        "conv2d_2/kernel": (3, 3, 60, 44),
        "gamma": (256,),
        "long": (40_000,),
        "small": (16, 8),
        "odd": (75, 99),
        "rows": (4096, 5),
    }
    weights = {name: jax.ShapeDtypeStruct(shape, np.float32) for name, shape in shapes.items()}
    state = {"step": jax.ShapeDtypeStruct((), np.float32), "weights": weights}
    for mesh in (_mesh(8), _mesh(4)):
        answer = fsdp(state, mesh)
        expect(
            jax.tree.structure(answer) == jax.tree.structure(state),
            "fsdp should return a tree like the state, with a sharding for each array: see jax.tree.map.",
        )
        leaves = jax.tree_util.tree_leaves_with_path(state)
        for (path, leaf), sharding in zip(leaves, jax.tree.leaves(answer), strict=True):
            _expect_split(path[-1].key, leaf.shape, sharding, mesh.size)
    return (
        "Each core holds its share of the large arrays, and the small ones are whole on every core."
    )


def _expect_split(name: str, shape: tuple[int, ...], sharding: Any, cores: int) -> None:
    """Raises `Wrong` unless an array is split in as many parts as there are cores, or whole where it has to be."""
    where = f"With {cores} cores: the sharding of {name}"
    part = _part(sharding, shape, where)
    expect(len(sharding.device_set) == cores, f"{where} should use all devices of the mesh.")
    size, held = int(np.prod(shape)), int(np.prod(part))
    splits = sum(here != there for here, there in zip(shape, part, strict=True))
    large = size >= 4096 and any(axis % cores == 0 for axis in shape)
    holds = f"a core holds {list(part)} of {name}, which has the shape {list(shape)}"
    expect(
        not large or held * cores == size,
        f"With {cores} cores, {holds}: it has at least 4,096 numbers, so each core should hold one part in {cores}.",
    )
    expect(splits <= 1, f"With {cores} cores, {holds}: split it along one axis.")
    expect(
        large or held == size,
        f"With {cores} cores, {holds}. Small arrays stay whole: splitting them saves nothing, and costs an exchange.",
    )


_ENOUGH = 20  # seconds for a checkpoint to be complete


def _counting(state: dict, number: Any, again: Any) -> tuple[dict, Any]:
    """Stands for a jitted step: what it computes depends on the order of the batches."""
    return {
        "step": state["step"] + 1,
        "weights": {"w": 0.5 * state["weights"]["w"] + number},
    }, number + again


class _Batches:
    """batch_at: notes the numbers that are asked for, and raises at one, once checkpoint `saved` is complete."""

    def __init__(self, folder: str, raise_at: int | None = None, saved: int = 0) -> None:
        self.asked: list[int] = []
        self._folder, self._raise_at, self._saved = Path(folder), raise_at, saved

    def __call__(self, number: int) -> tuple[Any, Any]:
        number = int(number)
        if number == self._raise_at:
            end = time.monotonic() + _ENOUGH
            while time.monotonic() < end and not any(self._folder.rglob(str(self._saved))):
                time.sleep(0.05)
            raise InterruptedError
        self.asked.append(number)
        expect(
            len(self.asked) < 100,
            "train makes 100 steps or more: it should stop at step `last`.",
        )
        return np.float32(number), np.float32(1)


@todo(
    "11e",
    hints=(
        "What does latest_step() return in a new folder, and what in a folder that has checkpoints?",
        "StandardRestore needs an example of what it should return: which state do you have at the start?",
        "Checkpoint 3 is the state after three steps, numbers 0 to 2. Which number comes next?",
    ),
    why="The checkpoint says how far the job is, and the data depend only on the step, so a kill costs only time.",
)
def resumed(train: Callable) -> Cases:
    """A fresh job, a killed one that is started again, and one that is finished already."""
    mesh = _mesh()
    try:
        import orbax.checkpoint as ocp
    except ImportError:
        raise CannotCheck(
            "Orbax is not installed here: pip install orbax-checkpoint, then restart the kernel."
        ) from None
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    rows = NamedSharding(mesh, PartitionSpec("cores"))
    whole = NamedSharding(mesh, PartitionSpec())
    start = {
        "step": jax.device_put(np.int32(0), whole),
        "weights": {"w": jax.device_put(np.ones(8, np.float32), rows)},
    }

    def job(folder: str, batches: _Batches) -> Any:
        answer = train(jax.jit(_counting), start, batches, 7, 3, folder)
        returns(
            answer, several(answer, 2), "train", "two things: the state, and the losses by number"
        )
        return answer

    with (
        tempfile.TemporaryDirectory(prefix="fresh-") as fresh,
        tempfile.TemporaryDirectory(prefix="killed-") as killed,
    ):
        batches = _Batches(fresh)
        state, losses = job(fresh, batches)
        yield (
            "The numbers of the batches in a fresh job to step 7, which saves every 3 steps",
            batches.asked,
        )
        yield "The state after this job", jax.tree.map(np.asarray, state), 1e-5
        returns(
            losses, isinstance(losses, dict), "train", "the losses as a dict, by number of the step"
        )
        yield (
            "The losses by number",
            {int(number): float(loss) for number, loss in losses.items()},
            1e-5,
        )
        with ocp.CheckpointManager(fresh) as manager:
            yield "The newest checkpoint after this job", manager.latest_step()
            _expect_saved(manager, start)
        with contextlib.suppress(InterruptedError):
            job(killed, _Batches(killed, raise_at=5, saved=3))
        batches = _Batches(killed)
        state, losses = job(killed, batches)
        label = "The numbers of the batches in a job that was killed before batch 5, with checkpoint 3 complete, and started again"
        yield label, batches.asked
        yield (
            "The state after the job that was killed, which should be as without a kill",
            jax.tree.map(np.asarray, state),
            1e-5,
        )
        expect(
            state["weights"]["w"].sharding.shard_shape((8,)) == (1,),
            "The restored weights are no longer split like the weights of `state`: pass the state to StandardRestore.",
        )
        batches = _Batches(killed)
        state, _ = job(killed, batches)
        yield "The numbers of the batches in a job that is started again at its end", batches.asked
        yield "The state that this job returns", jax.tree.map(np.asarray, state), 1e-5
    return "The job resumes at its newest checkpoint, and does nothing twice."


def _expect_saved(manager: Any, start: dict) -> None:
    """Raises `Wrong` unless the newest checkpoint holds the whole state."""
    import orbax.checkpoint as ocp

    message = "The newest checkpoint does not hold the whole state: save it with ocp.args.StandardSave(state)."
    try:
        saved = manager.restore(manager.latest_step(), args=ocp.args.StandardRestore(start))
    except (ValueError, KeyError, TypeError, FileNotFoundError):
        raise Wrong(message) from None
    expect(
        int(saved["step"]) == 7,
        f"The newest checkpoint holds the state after {int(saved['step'])} steps, not 7.",
    )


@todo(
    "11f",
    names=("mira.py",),
    hints=(
        "Print the gradients on 1, 2 and 8 cores: by which factor do they grow?",
        "The weights are the same on all cores. Inside shard_map, does jax.grad return each core's own gradient for them?",
        "jax.shard_map's documentation has a section on check_vma. Or let jax.grad see the mean over all cores.",
    ),
    why="In jax.shard_map, the gradient for a replicated argument is already all-reduced, and pmean of equal sums changes "
    "nothing.",
)
def moved_from_pmap(program: Any) -> str:
    """The same step on 1, 2 and 8 cores, each with its share of the examples."""
    devices = eight_devices()
    make_step = edited_function(program, 11, "mira.py", "make_step")
    random = np.random.default_rng(8)
    x, y = np.float32(random.normal(size=(64, 4))), np.float32(random.normal(size=64))
    weights = {"slope": np.float32([1, -1, 2, 0.5]), "level": np.float32(0.25)}
    error = x @ weights["slope"] + weights["level"] - y
    gradients = {"slope": 2 * x.T @ error / 64, "level": 2 * error.mean()}
    loss = float((error**2).mean())
    for count in (1, 2, 8):
        step = make_step(devices[:count])
        try:
            answer = step(weights, x, y)
        except Exception as problem:
            raise Wrong(
                f"On {count} cores, the step of mira.py fails: {failure(problem)}"
            ) from None
        returns(answer, several(answer, 2), "step", "two things: the new weights, and the loss")
        new, told = answer
        expect_keys(new, weights, "The new weights")
        for name in weights:
            moved = np.asarray(weights[name] - new[name]) / 0.1
            factor = float(np.linalg.norm(moved) / np.linalg.norm(gradients[name]))
            expect(
                abs(factor - 1) < 1e-3,
                f"On {counted(count, 'core')}, {name} moves by {factor:.3g} times the gradient of the mean loss over all examples (after division by the rate).",
            )
            expect(
                np.allclose(moved, gradients[name], rtol=1e-3, atol=1e-4),
                f"On {count} cores, {name} does not move along the gradient of the mean loss over all examples: does each core apply its own?",
            )
        expect(
            abs(float(told) / loss - 1) < 1e-3,
            f"On {count} cores, the loss is {float(told):.4g}, but the mean over all examples is {loss:.4g}.",
        )
    expect(
        _shares(step, weights, x, y) == 8,
        "On 8 cores, a core should get 8 of 64 examples: keep the examples split.",
    )
    return "The step is the same on 1, 2 and 8 cores, each with its share."


def _shares(step: Any, *example: Any) -> int:
    """How many of 64 examples one device gets; all of them where the compiled step does not say."""
    import jax

    lowered = (step if hasattr(step, "lower") else jax.jit(step)).lower(*example)
    return lowered.compile().input_shardings[0][1].shard_shape((64, 4))[0]

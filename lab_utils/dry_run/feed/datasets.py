"""The batches of TensorFlow's input pipelines, for the stage that measures how fast they come."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from lab_utils.dry_run import remote
from lab_utils.estimator import tf, v1


def batches_of(source: Callable[[], Any] | tf.data.Dataset) -> Iterator[int | None]:
    """The examples of each batch, again and again; None at each end of the data."""
    if not isinstance(source, tf.data.Dataset):
        return _graph_batches(source, tf.Graph())
    if not tf.executing_eagerly():
        return _graph_batches(lambda: source, v1.get_default_graph())
    return _eager_batches(source)


def _graph_batches(make: Callable[[], Any], graph: tf.Graph) -> Iterator[int | None]:
    """Reads what an input_fn makes in a session; also where eager execution is disabled."""
    with graph.as_default():
        data = make()
        initialize = []
        if isinstance(data, tf.data.Dataset):
            iterator = v1.data.make_initializable_iterator(data)
            initialize = [iterator.initializer]
            data = iterator.get_next()
        # Composite tensors count as their components; what a batch may hold beside tensors, not at all.
        leaves = list(filter(tf.is_tensor, tf.nest.flatten(data, expand_composites=True)))
        first = tf.shape(leaves[0])[0] if leaves[0].shape.rank != 0 else tf.constant(1)
        # The group makes the batch; its size alone may be known without it, and the batch left unread.
        fetches = first, tf.group(*leaves)
        setup = [v1.local_variables_initializer(), v1.tables_initializer()]
    remote.check(graph)
    with v1.Session(graph=graph, config=remote.SESSION) as session:
        session.run(setup)
        while True:
            session.run(initialize)
            with suppress(tf.errors.OutOfRangeError):
                while True:
                    yield int(session.run(fetches)[0])
            yield None


def _eager_batches(dataset: tf.data.Dataset) -> Iterator[int | None]:
    """Reads a dataset that was made under eager execution, and can only be read there."""
    while True:
        for batch in dataset:
            leaf = tf.nest.flatten(batch, expand_composites=True)[0]
            yield leaf.shape[0] if leaf.shape.rank else 1
        yield None

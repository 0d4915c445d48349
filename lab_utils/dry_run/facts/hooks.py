"""What the hooks of a program ask its session for, once the graph is there."""

from traceback import walk_tb
from typing import Any

from lab_utils.common.source import NOWHERE, Place, is_installed, place
from lab_utils.dry_run.facts.blame import argument
from lab_utils.dry_run.facts.messages import is_of_fetch
from lab_utils.dry_run.facts.refusal import Refusal
from lab_utils.dry_run.wording import in_words
from lab_utils.dry_run.workload import Call, Trace
from lab_utils.estimator import tf, v1


def look_at(trace: Trace, call: Call | None) -> None:
    """Notes what a session refuses to fetch for a hook, which ends the graph as an error does.

    The model's tensors belong to the loop on the device, and not to the session's graph; with version 1
    control flow they are part of it, and cannot be fetched. The hooks are those of the spec, which have
    begun, and those of the program's call.
    """
    begun = list(getattr(trace.spec, f"{trace.mode.activity}_hooks", None) or ())
    for hook in [*begun, *(call.hooks if call else ())]:
        if not isinstance(hook, v1.train.SessionRunHook):
            continue  # TPUEstimator refuses it
        try:
            with trace.graph.as_default():
                if hook not in begun:
                    hook.begin()
                request = hook.before_run(v1.train.SessionRunContext(None, _Session(trace.graph)))
            refuse(getattr(request, "fetches", None), trace.graph)
        except Exception as error:  # of the program's own code, which may want what is not there
            if not is_of_fetch(error):
                trace.unknown_fetches.append(
                    f"the hook {type(hook).__name__} raised {in_words(error)}"
                )
                continue
            trace.error = error
            trace.refused_fetch = error, place(error) or _place(hook, trace, call)
            return


def refusal_of(trace: Trace) -> Refusal | None:
    """What is said of that; None where no hook was refused anything."""
    if trace.refused_fetch is None:
        return None
    error, where = trace.refused_fetch
    text = " ".join(str(error).split())
    return Refusal("TPU115", where, message=f"{type(error).__name__}: {text}")


def place_of(error: Exception, trace: Trace) -> Place:
    """The line of the hook that raised `error` when it began; NOWHERE where none did."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    made = (frame.f_locals.get("self") for frame in reversed(frames))
    hook = next((each for each in made if isinstance(each, v1.train.SessionRunHook)), None)
    return NOWHERE if hook is None else _place(hook, trace, None)


class _Session:
    """In place of a hook's session: it has the graph, refuses as a session does, and runs nothing."""

    def __init__(self, graph: tf.Graph) -> None:
        self.graph = graph

    def run(self, fetches: Any, *arguments: Any, **options: Any) -> None:
        refuse(fetches, self.graph)
        raise NotImplementedError("a dry run runs no session")


def refuse(fetches: Any, graph: tf.Graph) -> None:
    """Raises what a session raises where `fetches` are not in its graph, or not to be fetched."""
    leaves = tf.nest.flatten(fetches, expand_composites=True)
    if unfit := [leaf for leaf in leaves if leaf is not None and not _is_fetchable(leaf, graph)]:
        v1.Session(graph=graph).run(unfit)


def _is_fetchable(fetch: Any, graph: tf.Graph) -> bool:
    try:
        return graph.is_fetchable(graph.as_graph_element(fetch))
    except (KeyError, TypeError, ValueError):
        return False


def _place(hook: Any, trace: Trace, call: Call | None) -> Place:
    """Where the program makes the hook, else the class of its own."""
    kind = type(hook)
    own = place(kind.before_run)
    if is_installed(own.file) or not own.file:
        own = call.place if call and hook in call.hooks else NOWHERE
    return argument(trace.model_fn, kind.__name__, "") or own

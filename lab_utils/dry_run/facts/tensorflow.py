"""What is known of a program before it is compiled: of a mode of a TPUEstimator, or of a step of Keras."""

import inspect
from typing import Any

from lab_utils.common.source import Place, place
from lab_utils.dry_run import elsewhere
from lab_utils.dry_run.facts import files, hooks
from lab_utils.dry_run.facts import pipeline as data
from lab_utils.dry_run.facts.base import Facts, fact
from lab_utils.dry_run.facts.batches import refused_batches
from lab_utils.dry_run.facts.flow import CoreProgram, Flow, analyse
from lab_utils.dry_run.facts.messages import is_of_fetch, refusal_of
from lab_utils.dry_run.facts.pipeline import Pipeline, mapped_in
from lab_utils.dry_run.facts.refusal import Refusal
from lab_utils.dry_run.facts.training import reads_averages
from lab_utils.dry_run.graphs import moves_to_host, unknown_functions
from lab_utils.dry_run.ops import is_kind
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.dry_run.program import Api
from lab_utils.dry_run.records import Mode
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.dry_run.wording import at, in_words, some
from lab_utils.dry_run.workload import Call, Inputs, Observed, Trace
from lab_utils.estimator import tf

# The rules on graphs and input pipelines.
_OF_GRAPHS = (
    "settings",
    "ops",
    "training",
    "randomness",
    "inputs",
    "files",
    "host",
)


class GraphFacts(Facts):
    """Of a step that TensorFlow builds as a graph: a subclass has the `program` of one core."""

    def not_read(self) -> list[str]:
        """A sentence on the functions that the step calls, and whose ops no rule can see."""
        try:
            names = unknown_functions(self.every_op)
        except Unavailable:
            return []
        which = f"The ops of {some(names)}, of {self.mode.activity}"
        return [f"{which}: the graph does not hold these functions."] if names else []

    @fact
    def every_op(self) -> list[tf.Operation]:
        """All ops of that program, also those that the compiler would drop."""
        return self.program.every_op()


class EstimatorFacts(GraphFacts):
    """Of one mode of a TPUEstimator.

    The input function is called once more, and once for twice the batch, in graphs of their own.

    Attributes:
        settings: the Estimator's.
        loop: iterations_per_loop.
        steps: those of one call of the mode, None where they are not known.
        source_of_data: what the mode's data come from, in words.
        unsized: the batches whose size is not fixed, if there are any.
        endless: see DatasetFacts.
        address: where the program looks for its TPU, "" where it names none.
        cores: of the TPU system.
        error: with which building the graph ended, if it did.
        made_at: the learner's line that made the spec.
        estimator_at: the learner's line that made the Estimator, where it is known.
        model_fn, input_fn: the functions that were called.
        summaries_of: the graph whose collections say which summaries the program knows to be dropped.
        api: what the program trains with.
        on_host: the runtime moves ops that a TPU lacks to the host.
    """

    modules = ("calls", "messages", *_OF_GRAPHS)

    def __init__(
        self, trace: Trace, traces: list[Trace], estimator: Any, inputs: Inputs, observed: Observed
    ) -> None:
        super().__init__(trace.mode)
        self._trace, self._traces, self._estimator = trace, traces, estimator
        self._borrows, self._observed = inputs.borrows(trace.mode), observed
        self.cores, self.error = trace.cores, trace.error
        self.settings = _tpu_estimator.settings(estimator)
        self.made_at, self.model_fn = trace.made_at, trace.model_fn
        self.estimator_at = trace.estimator_at
        self.input_fn = None if trace.mode is Mode.SERVING else inputs.of(trace.mode)
        self.loop = self.settings.config.tpu_config.iterations_per_loop
        self.steps, self.source_of_data = observed.steps(trace.mode), data.INPUT_FN
        self.address = observed.address or _tpu_estimator.address(estimator)
        self.summaries_of = trace.core_graph
        self.api, self.on_host = Api.ESTIMATOR, False
        self.unsized = None  # TPUEstimator refuses such batches: TPU101
        self.endless = None  # TPUEstimator refuses calls without a number of steps: TPU132, TPU133

    @property
    def stopped_by(self) -> str:
        """The rule whose mistake ended the graph; "" where none did, or where this machine is to blame."""
        refused = hooks.refusal_of(self._trace)
        if refused is None and self.error is not None:
            refused = self.refusal
        return refused.cause if refused else ""

    def not_read(self) -> list[str]:
        """What building the graph could not tell, and what cannot be read of it."""
        return self._trace.not_checked + super().not_read()

    def _why_not_built(self) -> str:
        """Why there is no graph, and what to do first."""
        if self.stopped_by:
            return f"its graph could not be built: fix {self.stopped_by} first"
        return elsewhere.reason(self.error) + at(self.error)

    @fact
    def calls(self) -> list[Call]:
        """Those of the program, none where objects were handed over."""
        return self._observed.calls

    @fact
    def refusal(self) -> Refusal | None:
        """Why TPUEstimator or the program ended the graph with an error; None where this machine did."""
        is_of_a_hook = self._trace.refused_fetch is not None
        if is_of_a_hook or self.error is None or elsewhere.reason(self.error):
            return None
        return refusal_of(self._trace)

    @fact
    def refused_fetch(self) -> Refusal | None:
        """What a session says to the first hook that fetches what is not in its graph."""
        refused = hooks.refusal_of(self._trace)
        if refused is None and self.error is not None and not is_of_fetch(self.error):
            raise Unavailable(self._why_not_built())
        if refused is None and self._trace.unknown_fetches:
            raise Unavailable(self._trace.unknown_fetches[0])
        return refused

    @fact
    def graph(self) -> Any:
        """The graph in which model_fn ran: one core's step; of serving, the whole graph."""
        if self._trace.core_graph is None:
            raise Unavailable(self._why_not_built())
        return self._trace.core_graph

    @fact
    def spec(self) -> Any:
        """What model_fn returned."""
        if self._trace.spec is None:
            raise Unavailable(self._why_not_built())
        return self._trace.spec

    @fact
    def program(self) -> CoreProgram:
        """The program of one core."""
        return CoreProgram.of(self.graph)

    @fact
    def host_ops(self) -> list[tf.Operation]:
        """The ops around a replica's program, such as those of metric_fn and host_call."""
        whole, program = self._trace.graph, self.program
        is_one = whole is self.graph  # with version 1 control flow
        return [op for op in whole.get_operations() if not (is_one and program.on_device(op))]

    @fact
    def ops(self) -> list[tf.Operation]:
        """What the compiler keeps of them."""
        return self.program.ops(self._ops_of_predictions())

    def _ops_of_predictions(self) -> list[tf.Operation]:
        """The ops of the predictions, where a TPU would compute them sooner or later."""
        predictions = getattr(self._trace.spec, "predictions", None)
        if not isinstance(predictions, dict):
            return []
        if not self.settings.export_to_tpu and not self.settings.predict_batch_size:
            return []
        return [tensor.op for tensor in predictions.values() if hasattr(tensor, "op")]

    @fact
    def flow(self) -> Flow:
        """How features, variables and random numbers reach the variables' updates."""
        return analyse(self.program)

    @fact
    def reads_batches(self) -> bool:
        """Whether the step takes anything of its batches: one that trains may make its own examples."""
        if self.mode is not Mode.TRAIN:
            return True
        try:
            return any(is_kind(t.op.type, "infeed") for op in self.ops for t in op.inputs)
        except Unavailable:  # without the step, its batches count
            return True

    @fact
    def averages_are_read(self) -> bool | None:
        """Whether a mode reads the averages of batch normalisation; None where only training is called."""
        built = [trace for trace in self._traces if trace.core_graph]
        others = [trace for trace in built if trace.mode is not Mode.TRAIN]
        if others:
            return any(reads_averages(trace.core_graph, trace.spec) for trace in others)
        called = map(self._observed.may_call, (Mode.EVAL, Mode.PREDICT))
        return True if any(called) else None

    @fact
    def pipeline(self) -> Pipeline:
        """What input_fn makes of the mode's batch size."""
        if self.error is not None and self._trace.core_graph is None:
            raise Unavailable(self._why_not_built())
        if self._borrows and "mode" not in inspect.signature(self.input_fn).parameters:
            raise Unavailable("it got no input_fn of its own")
        return self._called("when it was called again, input_fn raised")

    @fact
    def batches(self) -> float | None:
        """How many batches the data have for each step; infinity for ever, None where nobody knows."""
        return data.number_of_batches(self.pipeline)

    @fact
    def twice(self) -> Pipeline:
        """What input_fn makes of twice the global batch."""
        if not self._trace.global_batch:
            raise Unavailable("the constructor got no batch size for this mode")
        shapes = self.pipeline.shapes
        larger = self._called(
            ("when it was asked for twice the batch size, input_fn raised"), times=2
        )
        if len(larger.shapes) != len(shapes):
            raise Unavailable(
                "when it was asked for twice the batch size, input_fn gave a different number of "
                "tensors"
            )
        return larger

    def _called(self, what: str, times: int = 1) -> Pipeline:
        try:
            return Pipeline.of(self._trace, self._estimator, self.input_fn, times=times)
        except Exception as error:  # whatever input_fn raises; it may hold an assertion of its own
            again = self.error is not None  # what stopped the graph, most likely
            raise Unavailable(
                self._why_not_built() if again else f"{what} {in_words(error)}"
            ) from error

    @fact
    def functions_of_input(self) -> list[Any]:
        """The graphs of the input pipeline."""
        return [self.pipeline.graph]

    @fact
    def missing_files(self) -> list[tuple[str, Place]]:
        """What the input pipeline lacks of its files, and the line."""
        return files.missing_files(self.pipeline.graph)

    @fact
    def local_files(self) -> list[tuple[str, Place]]:
        """The paths of this machine that the input pipeline reads, and the lines."""
        return files.local_files_of(self.pipeline.graph)

    @fact
    def mapped(self) -> list[Any]:
        """The functions that the input pipeline maps over its examples."""
        return mapped_in(self.pipeline.graph)

    @fact
    def links(self) -> list[data.Link]:
        """The datasets of the input pipeline, from the last to the sources."""
        return [data.Link.of(op.type, place(op)) for op in self.pipeline.chain()]

    @fact
    def last_batch(self) -> data.LastBatch | None:
        """How the batches are made that the cores get."""
        return data.last_batch_of(self.pipeline)

    @fact
    def asked(self) -> data.Asked | None:
        """How many batches the program asks of the data."""
        return data.asked_of(self.pipeline, self.mode, self.loop, self.steps)

    @fact
    def place_of_batches(self) -> Place:
        """The line that makes the batches which the TPU gets, else input_fn's."""
        op = self.pipeline.last_batch()
        return place(op) if op is not None else place(self.input_fn)


class DatasetFacts(GraphFacts):
    """Of the dataset that Keras or a loop trains or validates with.

    Attributes:
        cores, address, api, summaries_of: as of EstimatorFacts.
        source_of_data: "the dataset".
        steps: those of one evaluation, None where they are not known.
        place_of_batches: where the program trains: no line is known of a dataset.
    """

    modules = ("strategy", "batches", *_OF_GRAPHS)

    def __init__(
        self,
        mode: Mode,
        dataset: tf.data.Dataset | None,
        cores: int,
        observed: Observed,
        where: Place,
    ) -> None:
        super().__init__(mode)
        self._dataset, self._observed = dataset, observed
        self.cores, self.address = cores, observed.address
        self.api, self.summaries_of = Api.STRATEGY, None
        self.source_of_data, self.place_of_batches = data.DATASET, where
        self.steps = observed.fit.get("validation_steps") if mode is Mode.EVAL else None

    @fact
    def dataset(self) -> tf.data.Dataset:
        """The dataset itself."""
        if self._dataset is None and self.mode is Mode.TRAIN:
            raise Unavailable("there is only an example batch, no input pipeline")
        if self._dataset is None:
            raise Unavailable("there is no validation dataset")
        return self._dataset

    @fact
    def graph(self) -> Any:
        """The graph of one core's step."""
        raise Unavailable("the dry run builds only the train step of such a program")

    @fact
    def on_host(self) -> bool:
        """As of EstimatorFacts."""
        return moves_to_host(self.graph)

    @fact
    def program(self) -> CoreProgram:
        """The program of one core."""
        return CoreProgram(self.graph, off_device=True)

    @fact
    def ops(self) -> list[tf.Operation]:
        """What the compiler keeps of them."""
        return self.program.ops()

    @fact
    def functions_of_input(self) -> list[Any]:
        """The graphs of the functions that it calls."""
        return data.graphs_of_dataset(self.dataset)

    @fact
    def missing_files(self) -> list[tuple[str, Place]]:
        """What it lacks of its files, and the line."""
        return files.missing_files_of_dataset(self.dataset, self.place_of_batches)

    @fact
    def local_files(self) -> list[tuple[str, Place]]:
        """The paths of this machine that it reads, and the lines."""
        return files.local_files_of_dataset(self.dataset, self.place_of_batches)

    @fact
    def mapped(self) -> list[Any]:
        """The functions that it maps over its examples."""
        return data.mapped_of_dataset(self.dataset)

    @fact
    def links(self) -> list[data.Link]:
        """The datasets that it is made of, from the last to the sources."""
        where, chain = self.place_of_batches, data.chain_of_dataset(self.dataset)
        return [data.Link.of(type(each).__name__, where) for each in chain]

    @fact
    def last_batch(self) -> data.LastBatch | None:
        """How the batches are made that the cores get."""
        return data.last_batch_of_dataset(self.dataset, self.place_of_batches)

    @fact
    def unsized(self) -> data.LastBatch | None:
        """The batches, where their size is not fixed."""
        return None if data.has_one_size(self.dataset) else self.last_batch

    @fact
    def batches(self) -> float | None:
        """How many batches there are; infinity for ever, None where tf.data does not know."""
        return data.size_of_dataset(self.dataset)

    @fact
    def endless(self) -> tuple[str, Place] | None:
        """The argument that fit lacks, and the line, where the data never end."""
        argument = "validation_steps" if self.mode is Mode.EVAL else "steps_per_epoch"
        fit = self._observed.fit
        if "epochs" not in fit or fit.get(argument) is not None or self.batches != float("inf"):
            return None
        return argument, self.place_of_batches

    @fact
    def asked(self) -> data.Asked | None:
        """How many batches fit asks of the dataset, where it is told how many make an epoch.

        Keras repeats arrays once an epoch. It begins a dataset again where an epoch has just its length;
        Keras 3 does so also where the data end within an epoch.
        """
        fit = self._observed.fit
        steps = fit.get("steps_per_epoch")
        if self.mode is not Mode.TRAIN or not isinstance(steps, int) or steps == self.batches:
            return None
        if not isinstance(fit.get("x"), tf.data.Dataset):
            return data.Asked("an epoch of fit", steps, sure=True)
        epochs = fit.get("epochs") or 1
        sure = not self._observed.begins_again
        return data.Asked("fit, in all its epochs,", steps * epochs, sure=sure)


class StepFacts(DatasetFacts):
    """Of the train step of Keras, of a loop, or of a function.

    Attributes:
        outside: where the model was made, if that is outside of the strategy's scope.
        is_compiled: the step of a loop stands in a tf.function.
        jit_compile: as the model of Keras was compiled; None of other steps.
    """

    def __init__(self, workload: Any, cores: int) -> None:
        """`workload` is the StepWorkload, on `cores` cores."""
        observed, where = workload.observed, workload.feed_place
        super().__init__(Mode.TRAIN, workload.dataset, cores, observed, where)
        self._workload = workload
        self.outside, self.jit_compile = observed.outside, workload.jit_compile
        self.is_compiled = observed.is_compiled

    def not_read(self) -> list[str]:
        """What is not built, and what cannot be read of the step."""
        others = ["Prediction: the dry run builds only the train step of such a program."]
        return others + super().not_read()

    @fact
    def distributed(self) -> tf.data.Dataset | None:
        """The dataset whose batches tf.distribute shares out; None for an example, which lowering splits."""
        return self._dataset

    @fact
    def shared(self) -> int | None:
        """The examples that tf.distribute shares out at a time; None for an example, and if not known."""
        self._check_batches()
        if self._dataset is None:
            return None
        return tf.nest.flatten(self._workload.batches.element_spec)[0].shape[0]

    @fact
    def refused_batches(self) -> Refusal | None:
        """Why no TPU takes the batches of the dataset."""
        dataset, where = self.distributed, self.place_of_batches
        return None if dataset is None else refused_batches(dataset, where)

    def _check_batches(self) -> None:
        if self.refused_batches is not None:
            raise Unavailable(f"no step takes its batches: fix {self.refused_batches.id} first")

    @fact
    def graph(self) -> Any:
        """The graph of one core's step."""
        self._check_batches()
        return self._workload.traced(self.cores).graph

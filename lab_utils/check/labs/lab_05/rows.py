"""A row of the list: TODO 5c, the DoFn."""

import tempfile
from pathlib import Path

from lab_utils.check.labs.lab_05.records import picture
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, other_names
from lab_utils.convert.plain_beam import beam
from lab_utils.estimator import tf

LABELS = "tulips\ndaisy\nroses\n"
ROWS = {
    "a.jpg,daisy": None,
    "a.jpg,roses": None,
    "a.jpg,rosses": "an unknown label",
    "missing.jpg,roses": "a missing file",
    "png.jpg,roses": "a PNG",
    "a.jpg": "a row without a label",
}


@todo(
    "5c",
    hints=(
        'What is the same for all rows, and needs a file? It belongs into setup.',
        'enumerate can start at 1. What should happen before make_example, if the label has no number?',
        'Around which lines does the `except Reject` go? What comes out of process then, under which tag?',
    ),
    why='A reject is data and goes out under its tag; any other exception is a bug and ends the job.',
)
def dofn(ToExample: type) -> str:
    """An example or a reject for each row; the table of labels is made once."""
    with tempfile.TemporaryDirectory() as folder:
        labels_file = Path(folder, "labels.txt")
        Path(folder, "a.jpg").write_bytes(picture())
        Path(folder, "png.jpg").write_bytes(picture("PNG"))
        try:
            made = ToExample(folder, labels_file)
        except FileNotFoundError:
            raise Wrong(
                "__init__ reads the labels file. It runs where the pipeline is built; the workers, which may "
                "be other machines, get a pickled copy. Read it in setup."
            ) from None
        labels_file.write_text(LABELS)
        made.setup()
        labels_file.unlink()
        outputs = {line: _processed(made, line, what) for line, what in ROWS.items()}
        for bug in (_Bug("a bug"), OSError("a bug")):
            _bug_ends_the_job(ToExample, made, bug)
    for line, what in ROWS.items():
        (output,) = outputs[line]
        if what is None:
            _is_example(line, output)
        else:
            _is_reject(line, what, output)
    return (
        "Every row becomes an example or a reject, and the table of labels is made once a worker."
    )


class _Bug(KeyError, ValueError, TypeError, RuntimeError):
    """What a bug of ours may raise."""


def _bug_ends_the_job(ToExample: type, made: beam.DoFn, bug: Exception) -> None:
    def broken(*_: object, **__: object) -> bytes:
        raise bug

    with other_names(ToExample.process, make_example=broken):
        try:
            outputs = list(made.process("a.jpg,roses") or [])
        except Exception as error:
            if error is not bug:
                raise
        else:
            raise Wrong(
                "A bug in make_example, which raises another exception than Reject, becomes "
                f"{_told(outputs[0]) if outputs else 'nothing'}: a whole data set could go to the rejects "
                "unseen. Catch Reject alone, and keep other excepts to the line that they are for."
            )


def _processed(made: beam.DoFn, line: str, what: str | None) -> list:
    what = what or "a good row"
    try:
        outputs = list(made.process(line) or [])
    except NotImplementedError:
        raise
    except FileNotFoundError as error:
        if "labels.txt" in str(error):
            raise Wrong(
                "process reads the labels file again, for every row: do so in setup."
            ) from None
        raise Wrong(_ends(what, error)) from None
    except Exception as error:
        raise Wrong(_ends(what, error)) from None
    expect(
        bool(outputs),
        f"For {what} nothing comes out of process: the row would be lost without a trace. (In a function "
        "with yield, return hands nothing over.)",
    )
    expect(
        len(outputs) == 1, f"For {what} process yields {len(outputs)} results; it should be one."
    )
    return outputs


def _ends(what: str, error: Exception) -> str:
    return (
        f"For {what} process raises {type(error).__name__}: {error}. One such row would end the whole job; "
        "it should be a reject."
    )


def _is_example(line: str, output: object) -> None:
    expect(
        isinstance(output, bytes),
        f"For the good row {line!r} process should yield the bytes that make_example gives; it yields "
        f"{_told(output)}. The labels stand one a line.",
    )
    feature = tf.train.Example.FromString(output).features.feature
    label = line.partition(",")[2]
    number, wanted = feature["image/class/label"].int64_list.value[0], 3 if label == "roses" else 2
    expect(
        number == wanted,
        f"{label!r} stands in line {wanted} of the labels file and gets number {number}; the first line is "
        "number 1.",
    )
    text, name = (feature[f"image/{key}"].bytes_list.value[0].decode() for key in ("class/text", "filename"))
    expect(
        text == label and Path(name).name == "a.jpg",
        f"The example of {line!r} says that its class is {text!r} and its file {name!r}: make_example takes "
        "data, filename, label, text, in this order.",
    )


def _is_reject(line: str, what: str, output: object) -> None:
    expect(
        isinstance(output, beam.pvalue.TaggedOutput),
        f"For {what} process should yield a beam.pvalue.TaggedOutput; it yields {_told(output)}, among the "
        "examples.",
    )
    expect(output.tag == "rejects", f'The tag should be "rejects"; it is "{output.tag}".')
    value = output.value
    expect(
        isinstance(value, tuple | list)
        and len(value) == 2
        and value[0] == line
        and isinstance(value[1], str)
        and bool(value[1]),
        f"A reject should be the pair (line, reason), both text; for {what} it is {value!r}.",
    )


def _told(output: object) -> str:
    if isinstance(output, beam.pvalue.TaggedOutput):
        return f"a reject, {output.value!r}"
    return a(output)

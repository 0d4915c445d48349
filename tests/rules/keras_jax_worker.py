"""Judges programs of Keras on JAX in a process whose Keras is on JAX: `python -m rules.keras_jax_worker`.

Each line of the standard input names a port, and whether it is to be the wrong one; a line of JSON answers.
"""

import json
import os
import sys

# As many devices as the command gives a program.
os.environ |= {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "8"}

from lab_utils.dry_run.records import Stage
from rules import keras_jax_frames, wrong_keras_jax
from rules.judging import in_lines, report_of
from rules.snippets import snippets

TOPOLOGY = "v5e:2x4"


def port_of(request):
    """The port that a request names: one of the corpus, or the code of a page."""
    if "page" in request:
        wanted = (request["page"], request["side"], request["number"])
        one = next(s for s in snippets() if (s.rule, s.side, s.number) == wanted)
        return keras_jax_frames.FRAMES[one.rule](one)
    return wrong_keras_jax.PORTS[request["port"]].make(request["wrong"])


def answer(request):
    """Findings, stages and the report's text."""
    import keras

    keras.distribution.set_distribution(None)
    keras.config.set_dtype_policy("float32")
    report = report_of(port_of(request), [Stage(s) for s in request["stages"]], TOPOLOGY)
    found = [(f.rule, str(f.severity), f.where, f.why, f.fix) for f in report.findings]
    stages = {str(s.stage): (str(s.status), s.detail) for s in report.stages}
    text = in_lines(report.findings)
    return {"findings": found, "stages": stages, "text": text, "report": str(report)}


def main():
    """Answers until the standard input ends."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a program prints is no answer
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main()

"""Every answer of tests/wrong_answers gets from the grader the mark that its check gives in a notebook."""

import tempfile
import time

import lanes
import pytest
import wrong_answers
from test_labs import ON_JAX
from wrong_answers import Right

from lab_utils.check import todos
from lab_utils.check.setup import SILENCE
from lab_utils.teach.grade import runs, submissions, worker

LABS = sorted(int(path.name[:2]) for path in (submissions.ROOT / "labs").glob("*.ipynb"))
SOME = 25  # `make test` takes about one answer in so many, others at each commit
LIMITS = runs.Limits(step=300, total=7200, memory=8 * 2**30)


def answers_of(lab: int) -> list[tuple[str, wrong_answers.Answer]]:
    """The answers whose turn it is, with their TODOs; at least one."""
    pairs = [
        (each.id, answer) for each in todos.of_lab(lab) for answer in wrong_answers.of_todo(each)
    ]
    chosen = lanes.rotation()
    turns = [pair for pair in pairs if lanes.turn(wrong_answers.key(*pair), chosen, SOME)]
    return turns or pairs[:1]


@pytest.mark.rotating(6)
@pytest.mark.parametrize("lab", LABS)
def test_an_answer_gets_its_mark_from_the_grader(lab, tmp_path, monkeypatch, record_property):
    """Each answer is a cell of one notebook. tests/test_labs.py gives the same answers to the checks."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv(SILENCE, "1")
    if lab in ON_JAX:
        monkeypatch.setenv("KERAS_BACKEND", "jax")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    checks, answers, apart = submissions.handed_out(lab).checks, answers_of(lab), []
    with worker.Kernel(LIMITS, time.monotonic() + LIMITS.total) as kernel:
        kernel.call("prepare")
        for todo, answer in answers:
            files = [each.strip("'") for each in checks[todo] if each.startswith("'")]
            writes = "".join(f"open({name!r}, 'w').write(globals()[{name!r}])\n" for name in files)
            reply = kernel.run(f"{answer.source(todo)}\n{writes}", LIMITS.step)
            result, ours = kernel.judge(todo, checks[todo])
            if reply.error or ours or (result.status == "correct") != (type(answer) is Right):
                apart.append(f"TODO {todo}: {answer}\n{reply.error} {reply.text} {result}")
    score = f"{len(answers) - len(apart)} of {len(answers)} answers get their mark from the grader"
    record_property("score", f"lab {lab:02d}: {score}")
    assert not apart, "\n\n".join(apart)

"""The checks behind the TODOs of the labs, their hints, and a learner's predictions.

    check("1a", make_input_fn)          is it right, and if not, what is wrong with it
    hint("1a")                          a first hint; called again, a further one
    solution("1a")                      ours, and why it is so
    working(make_input_fn, "1a")        yours where it is right, ours otherwise
    predict("first loss", 2.3, "nats")  keeps a number, for
    compare("first loss", measured)     shows both

Progress is kept in one small file of the user's (see `progress`); nothing leaves the machine.
The engine stands here: `labs` holds what is checked, a module a lab, imported when first asked for, and
`sources` makes the solutions' modules of the marked notebooks. `labs` tells how a check is written.
"""

from lab_utils.check.predictions import compare, predict
from lab_utils.check.runner import check, hint, solution, working
from lab_utils.check.setup import ready

__all__ = ["check", "compare", "hint", "predict", "ready", "solution", "working"]

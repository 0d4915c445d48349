"""Lab 16, the clinic: two TODOs for each program, the diagnosis without the dry run, then the fixed program."""

from lab_utils.check.labs.treatment import enter_fixing, enter_reading

_HINTS = {
    "digits": "Go through the four changes of lab 02 one by one, and compare each with the program.",
    "photographs": "Follow one example through preprocess and batch to the core, and its prediction back to the host.",
    "reviews": "Ask of each line: does it run while the graph is built, on the host, or on a core?",
    "portraits": "There are two optimizers: what does each of the four changes mean for the second one?",
    "boxes": "Count: how many examples does each core get, and which of them does each metric count?",
    "films": "Write the shapes of stars and labels next to the line that subtracts them.",
}
_LAST = {
    "digits": "One fault is a missing line, and one is a missing argument: name the line where it belongs.",
    "photographs": "Look for something in evaluation that belongs to training, and for ops that nothing runs.",
    "reviews": "Three faults are one word or line that a TPU cannot use: look for a terminal, a table, a version.",
    "portraits": "NumPy's numbers have 64 bits unless they are cast. This happens twice here, at different places.",
    "boxes": "Only one of two metrics leaves the fillers out. And a name in metric_fn is not among its parameters.",
    "films": "Look for a missing return, a number for another machine, a number that should be a parameter, a string.",
}
_FIXING = (
    "Change as little as you can: the program must still compute what it was written for.",
    "The message names the rule. `python -m lab_utils.dry_run --rules` shows its page, with wrong and right code.",
)

for _number, _name in enumerate(_HINTS):
    enter_reading(
        f"16{'acegik'[_number]}",
        _name,
        (_HINTS[_name], f"A run on a CPU proves nothing here. {_LAST[_name]}"),
        "The diagnosis names each fault at its line, with its effect on a TPU.",
    )
    enter_fixing(
        f"16{'bdfhjl'[_number]}",
        _name,
        _FIXING,
        "Each fault is fixed at its own line, and nothing else is removed.",
    )

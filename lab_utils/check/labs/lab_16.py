"""Lab 16, the clinic: two TODOs for each patient, the diagnosis without the dry run and the treatment with it."""

from lab_utils.check.labs.treatment import enter_diagnosis, enter_treatment

_HINTS = {
    "digits": "Go through the four changes of lab 02 one by one, and compare each with the program.",
    "photographs": "Follow one example: from the file through preprocess and batch to the core, and what comes back.",
    "reviews": "Ask of each line: is it run while the graph is built, on the host, or on a core?",
    "portraits": "Two optimizers: what does each of the four changes ask of the second one?",
    "boxes": "Count: how many examples does each core get, and which of them does each metric count?",
    "films": "Write the shapes of stars and labels beside the line that subtracts them.",
}
_LAST = {
    "digits": "One fault is a line that is missing, and one an argument that is missing: name the line where it belongs.",
    "photographs": "Look for what happens in evaluation that belongs to training, and for ops that nothing runs.",
    "reviews": "Three of the faults are one word or one line that a TPU has no use for: a terminal, a table, a version.",
    "portraits": "NumPy's numbers have 64 bits unless they are cast. It happens twice here, at different places.",
    "boxes": "Of the two metrics one leaves the fillers out. And a name in metric_fn is not one of its parameters.",
    "films": "A function without return, a number that fits another machine, a number that should be a parameter, text.",
}
_TREATMENT = (
    "Change as little as you can: the program must still compute what it was written for.",
    "The message names the rule. `python -m lab_utils.dry_run --rules` shows its page, with wrong and right code.",
)

for _number, _name in enumerate(_HINTS):
    enter_diagnosis(
        f"16{'acegik'[_number]}",
        _name,
        (_HINTS[_name], f"That it runs on a CPU proves nothing here. {_LAST[_name]}"),
        "Each fault at its line, with what a TPU makes of it.",
    )
    enter_treatment(
        f"16{'bdfhjl'[_number]}",
        _name,
        _TREATMENT,
        "Each fault fixed at its own line, and nothing taken out that was wanted.",
    )

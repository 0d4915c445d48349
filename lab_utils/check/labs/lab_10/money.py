"""What a TPU costs: TODO 10c, a machine that always ends, 10d, the bill, and 10e, spot machines."""

from collections.abc import Callable
from typing import Any

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect

CREATE, DELETE = ["create"], ["delete"]


class _NotDeletedError(Exception):
    """What the stand-in for gcloud raises where a deletion fails."""


@todo(
    "10c",
    hints=(
        "Which statement of Python runs its block whatever happened before it?",
        "Where does create stand: inside what is guarded, or before it? A command that failed may still have made "
        "the machine.",
        "What does the caller have to hear: the work's result, its error, or the deletion's?",
    ),
    why="A machine costs until it is deleted; finally runs after a return, an error and a Stop alike.",
)
def start_and_end(rent: Callable) -> str:
    """The machine is deleted once, last, after success, errors and a Stop; errors and results come through."""
    done, found, error = _rented(rent)
    expect(error is None, f"Where nothing fails, rent should not raise; yours raises {error!r}.")
    expect("create" in done, "The machine is never created: run(create).")
    expect("work" in done, "The work is never done: call work().")
    expect("delete" in done, "There is no deletion: you pay until there is one.")
    expect(
        done == ["create", "work", "delete"],
        f"Create, work, delete, each once and in this order; yours: {', '.join(done)}.",
    )
    expect(found == "result", f"rent should return what work() returned; yours returns {a(found)}.")
    for raised, when in (
        (ValueError("work"), "the work raises an exception"),
        (KeyboardInterrupt("work"), "somebody presses Stop (KeyboardInterrupt is not an Exception)"),
        (SystemExit("work"), "the work calls sys.exit"),
    ):
        done, _, error = _rented(rent, work=raised)
        expect("delete" in done, f"When {when}, the machine stays, and costs.")
        expect(done.count("delete") == 1, f"When {when}, yours deletes {done.count('delete')} times.")
        expect(error is raised, f"When {when}, the caller has to hear of it; yours says {error!r}.")
    failed = RuntimeError("create")
    done, _, error = _rented(rent, create=failed)
    expect("work" not in done, "When create fails there is no machine to work on: do not call work().")
    expect(
        "delete" in done,
        "When create fails, the machine may still be there (a timeout): delete it in that case too.",
    )
    expect(error is not None, "When create fails, the caller has to hear of it.")
    done, _, error = _rented(rent, delete=_NotDeletedError("delete"))
    expect(
        error is not None,
        "When the deletion fails you go on paying: that error must reach the caller.",
    )
    return "Created, used, and deleted in every case; results and errors come through."


def _rented(
    rent: Callable,
    create: BaseException | None = None,
    work: BaseException | None = None,
    delete: BaseException | None = None,
) -> tuple[list[str], Any, BaseException | None]:
    """What was done in which order, what rent returned, and what it raised, where those steps fail so."""
    done: list[str] = []
    errors = {"create": create, "work": work, "delete": delete}

    def does(name: str) -> str:
        done.append(name)
        if errors[name] is not None:
            raise errors[name]
        return "result"

    def run(command: list[str]) -> None:
        expect(
            command in (CREATE, DELETE), f"run() gets one of the two commands as it is; yours: {command}."
        )
        does(command[0])

    try:
        return done, rent(run, CREATE, DELETE, lambda: does("work")), None
    except BaseException as error:
        if isinstance(error, Wrong | NotImplementedError) and error not in errors.values():
            raise
        return done, None, error


@todo(
    "10d",
    hints=(
        'Bring steps and minutes into one unit first: the price is for an hour.',
        'Who is paid while the machine waits, and for how many chips?',
    ),
    why='A machine costs for as long as it is there, whatever it does.',
)
def money(bill: Callable) -> str:
    """Hours of the machine, times chips, times the price."""
    found = bill(0.5, 7200, 4, 2.0, 0)
    expect(isinstance(found, int | float), f"bill returns {a(found)}.")
    expect(found != 2.0, "The price is for a chip and an hour: four chips cost four times as much.")
    expect(
        bill(0.5, 14400, 4, 2.0, 0) != found or found == 0,
        "Twice the steps should take twice the time; yours does not look at steps.",
    )
    expect(
        abs(found - 8.0) < 1e-9,
        f"7,200 steps of half a second are one hour; four chips at 2.00 an hour make 8.00, yours {found:g}.",
    )
    idle = bill(0.5, 0, 1, 6.0, 30)
    expect(
        abs(idle - 3.0) < 1e-9,
        "The machine costs until it is deleted, at work or not: 30 minutes at 6.00 an hour are 3.00, "
        f"yours {idle:g}.",
    )
    expect(
        abs(bill(0.5, 7200, 8, 2.0, 60) - 32.0) < 1e-9,
        "One hour of steps and one of waiting, on eight chips at 2.00, make 32.00.",
    )
    small = bill(1.5e-3, 1500, 4, 1.0, 0)
    expect(
        abs(small - 0.0025) < 1e-9,
        "1,500 steps of 1.5 ms on four chips at 1.00 an hour are 0.0025: do not round; yours gives "
        f"{small:g}.",
    )
    return "Hours of the machine, at work or not, times chips, times the price."


@todo(
    "10e",
    hints=(
        "Of an hour that you pay for, which part is useful?",
        "What does an hour of useful work cost then? And what if nothing of the hour is left?",
    ),
    why="You pay for the hour and use a part of it: divide by that part.",
)
def spot(spot_pays: Callable) -> str:
    """The price over the useful part of an hour, against the full price."""
    found = spot_pays(0.4, 1.0, 0, 10)
    expect(
        isinstance(found, bool) or type(found).__name__ == "bool_" or type(found).__name__ == "bool",
        f"spot_pays should return True or False; yours returns {a(found)}.",
    )
    for prices, rate, minutes, right, why in (
        ((0.4, 1.0), 0, 10, True, "Without interruptions 0.40 is less than 1.00"),
        ((1.2, 1.0), 0, 10, False, "A spot machine at 1.20 is dearer than one at 1.00 from the start"),
        ((0.9, 1.0), 1, 30, False, "Half of each hour is lost, so an hour of work costs 1.80, not 0.90"),
        ((0.4, 1.0), 1, 30, True, "Half of each hour is lost, so an hour of work costs 0.80"),
        (
            (0.6, 1.0),
            2,
            15,
            False,
            "Two times 15 minutes are half an hour: an hour of work costs 0.60 / 0.5 = 1.20. (0.60 times "
            "1.5 would be too little: what is lost has to be done again on the same machine)",
        ),
        ((0.1, 1.0), 4, 30, False, "Interruptions eat more than the hour: the job never ends, at any price"),
        ((0.1, 1.0), 2, 30, False, "Interruptions eat the whole hour: the job never ends, at any price"),
        ((0.5, 1.0), 1, 30, False, "Both cost 1.00 for an hour of work: spot is not cheaper"),
    ):
        found = spot_pays(*prices, rate, minutes)
        expect(
            bool(found) is right,
            f"{why}. For {prices[0]} against {prices[1]}, {rate} interruptions of {minutes} minutes an hour, "
            f"yours says {bool(found)}.",
        )
    return "An hour of useful work is what is compared."

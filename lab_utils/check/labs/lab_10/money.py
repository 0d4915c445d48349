"""What a TPU costs: TODO 10c, the commands that start and end it, and 10d, the bill."""

from collections.abc import Callable

from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect

START = ["gcloud", "compute", "tpus", "tpu-vm"]


@todo(
    "10c",
    hints=(
        'Each argument is a text of its own in the list: one flag with its value, or two texts.',
        'What does the delete command have to know, besides the name? And what lets a script go on without an answer?',
    ),
    why='The second command ends the costs, so it is written before the first one runs.',
)
def start_and_end(commands: Callable) -> str:
    """A command that creates a TPU VM, and the one that ends its costs."""
    made = commands("my-tpu", "us-south1-a", 4)
    expect(
        isinstance(made, tuple | list) and len(made) == 2,
        f"commands should return two lists, create and delete; yours returns {a(made)}.",
    )
    create, delete = made
    expect(
        bool(delete),
        "There is no command that deletes the TPU: you pay until there is one.",
    )
    for verb, command in (("create", create), ("delete", delete)):
        expect(
            isinstance(command, list | tuple) and all(isinstance(each, str) for each in command),
            f"The {verb} command should be a list of texts, as subprocess.run takes it; yours is "
            f"{a(command)}.",
        )
        expect(
            list(command[:5]) == [*START, verb],
            f"The command begins with {' '.join(START)} {verb}; yours with {' '.join(command[:5])}.",
        )
        names, _ = _read(command[5:])
        expect(
            names == ["my-tpu"],
            f"The {verb} command should have the TPU's name as its only argument that is not a flag; yours has "
            f"{names or 'none'}.",
        )
    flags = _read(create[5:])[1]
    for flag, value in (
        ("--zone", "us-south1-a"),
        ("--accelerator-type", "v5litepod-4"),
        ("--version", "v2-alpha-tpuv5-lite"),
    ):
        expect(
            flags.get(flag) == value,
            f"For four v5e chips in us-south1-a, {flag} is {value}; yours is {flags.get(flag)}.",
        )
    expect("--spot" in flags, "Without --spot you pay the full price.")
    flags = _read(delete[5:])[1]
    expect(
        flags.get("--zone") == "us-south1-a",
        "The delete command needs the zone too: the same name may stand in several.",
    )
    expect(
        "--quiet" in flags or "-q" in flags,
        "Without --quiet the delete command waits for an answer that a script never gives.",
    )
    return "Both are there, and the second ends the costs without asking."


def _read(arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    """Positional arguments, and flags with their values: `--zone=Z` and `--zone Z` alike."""
    names, flags, alone = [], {}, ("--spot", "--quiet", "-q", "--preemptible", "--async")
    rest = iter(arguments)
    for each in rest:
        if not each.startswith("-"):
            names.append(each)
        elif "=" in each:
            flag, value = each.split("=", 1)
            flags[flag] = value
        else:
            flags[each] = "" if each in alone else next(rest, "")
    return names, flags


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

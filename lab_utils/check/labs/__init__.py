"""What is checked: a module for each lab, which enters its TODOs with `todo`.

A check tries the learner's function on some inputs, and yields each result with what was tried, in words. The
engine does the same with our solution, and compares. Labels are the same whatever the learner wrote:

    @todo("8a", hints=("...",), why="The slower of two things that go on together decides.",
          slips=[Slip("max(", "min(", "That is the shorter of the two times; the step ends when both have ended.")])
    def roofline(least_seconds):
        yield "90 FLOP at 40 FLOP/s, 65 bytes at 10 bytes/s", least_seconds(90, 65, 40, 10)
        return "The longer of the two times bounds the step."

A wrong result is told as "90 FLOP at ...: expected 6.5, yours gives 2.25". `slips` are mistakes to expect, as
changes of our solution: old, once in the region, new, and the message; it stands above where all results are
those of the slip. Numbers agree to 1e-6; a third value in a yield is another tolerance. Lists are as good as
tuples; arrays agree in shape and type, too. What cannot be compared (training, files, graphs) is judged by
`expect`, `same` and `returns` of `tools`, and then the check just returns its sentence; a mixture is fine.
A check takes at most three seconds, but one that
runs a program on virtual cores may take ten. Each case of a slip is a case of tests/test_labs.py.
"""

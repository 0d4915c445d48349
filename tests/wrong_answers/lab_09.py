"""What learners get wrong in lab 09, and the words that they must hear."""

from wrong_answers import Mutant, Right, Wrong

_BISECTION = """
def largest_that_fits(needed, available, low, high):
    first, last = low // 128, high // 128
    while last - first > 1:
        half = (first + last) // 2
        if needed(128 * half) > available:
            last = half
        else:
            first = half
    return 128 * first
"""

ANSWERS = {
    "9a": [
        # The dearest line
        Wrong(
            """
def best_change(lines, changes):
    for line in lines:
        for name, (part, left) in changes.items():
            if part in line.place.code:
                total = sum(each.cycles for each in lines)
                return name, total / (total - (1 - left) * line.cycles)
""",
            "is 50,000 of 1,000,000 cycles",
        ),
        # The first line alone of those that it touches
        Wrong(
            """
def best_change(lines, changes):
    total = sum(each.cycles for each in lines)
    saved = {}
    for name, (part, left) in changes.items():
        touched = [each.cycles for each in lines if part in each.place.code]
        saved[name] = (1 - left) * touched[0] if touched else 0
    best = max(saved, key=saved.get)
    return best, total / (total - saved[best])
""",
            "Dropping both pooling layers",
        ),
        # The largest factor
        Wrong(
            """
def best_change(lines, changes):
    best = min(changes, key=lambda name: changes[name][1])
    part, left = changes[best]
    total = sum(each.cycles for each in lines)
    return best, total / (total - (1 - left) * sum(each.cycles for each in lines if part in each.place.code))
""",
            "the faster convolution saves 200,000",
        ),
        # Only lines with code in the whole
        Wrong(
            """
def best_change(lines, changes):
    known = [each for each in lines if each.place.code]
    total = sum(each.cycles for each in known)
    saved = {n: (1 - left) * sum(e.cycles for e in known if part in e.place.code) for n, (part, left) in changes.items()}
    best = max(saved, key=saved.get)
    return best, total / (total - saved[best])
""",
            "The line without code counts as well",
        ),
        # What remains, the smallest
        Right("""
def best_change(lines, changes):
    def after(name):
        part, left = changes[name]
        return sum(each.cycles * (left if part in each.place.code else 1) for each in lines)
    best = min(changes, key=after)
    return [best, sum(each.cycles for each in lines) / after(best)]
"""),
        # NumPy
        Right("""
import numpy
def best_change(lines, changes):
    cycles = numpy.array([each.cycles for each in lines])
    rest = {n: (cycles * [left if p in str(e.place.code) else 1 for e in lines]).sum() for n, (p, left) in changes.items()}
    best = min(rest, key=rest.get)
    return best, cycles.sum() / rest[best]
"""),
        # By str(place), sorted
        Right("""
def best_change(lines, changes):
    total = sum(line.cycles for line in lines)
    ranked = []
    for name in changes:
        part, left = changes[name]
        rest = total
        for line in lines:
            if part in str(line.place):
                rest -= line.cycles * (1 - left)
        ranked.append((total / rest, name))
    times, name = sorted(ranked)[-1]
    return name, times
"""),
    ],
    "9b": [
        Wrong("memory_diagnosis = {'line': 3}", "a dict with the keys line, GiB, change"),
        Wrong("memory_diagnosis = {**memory_diagnosis, 'line': 1}", "1,024 x 38 x 38 x 64 numbers"),
        Wrong(
            "memory_diagnosis = {**memory_diagnosis, 'line': 4}",
            "is an array as large as one in another",
        ),
        # The name in the place of the number
        Wrong(
            "memory_diagnosis = {**memory_diagnosis, 'line': 'scores'}",
            "is not the number of a line",
        ),
        # In bytes, in GB, in bfloat16
        Wrong(
            "memory_diagnosis = {**memory_diagnosis, 'GiB': 1024 * 1444**2 * 4}", "a GiB is 2**30"
        ),
        Wrong("memory_diagnosis = {**memory_diagnosis, 'GiB': 8.54}", "a GiB is 2**30"),
        Wrong("memory_diagnosis = {**memory_diagnosis, 'GiB': 3.98}", "of 4 bytes"),
        Wrong(
            "memory_diagnosis = {**memory_diagnosis, 'change': 'A'}", "a smaller type is not enough"
        ),
        Wrong(
            "memory_diagnosis = {**memory_diagnosis, 'change': 'C'}",
            "no axis for the numbers of a patch",
        ),
        Wrong(
            "memory_diagnosis = {**memory_diagnosis, 'change': 'D'}", "temporaries fill the memory"
        ),
        Right("memory_diagnosis = {'change': 'b', 'line': 3, 'GiB': 7.95}"),
        Right("memory_diagnosis = dict(line=3, GiB=2**10 * 38**4 * 4 / 1024**3, change='B')"),
    ],
    "9c": [
        # Counted in 128s; the wrong ones below are made from it
        Right(_BISECTION),
        # From the standard library, which calls it by its key
        Right("""
import bisect
def largest_that_fits(needed, available, low, high):
    candidates = range(low, high, 128)
    return candidates[bisect.bisect_right(candidates, available, key=needed) - 1]
"""),
        # Recursion
        Right("""
def largest_that_fits(needed, available, low, high):
    if high - low <= 128:
        return low
    middle = low + (high - low) // 256 * 128
    if needed(middle) <= available:
        return largest_that_fits(needed, available, middle, high)
    return largest_that_fits(needed, available, low, middle)
"""),
        # Asks for both ends as well, and returns a NumPy number
        Right("""
import numpy
def largest_that_fits(needed, available, low, high):
    batches = numpy.arange(low, high + 1, 128)
    fits = {batches[0]: needed(batches[0]) <= available, batches[-1]: needed(batches[-1]) <= available}
    first, last = 0, len(batches) - 1
    while last - first > 1:
        half = (first + last) // 2
        fits[batches[half]] = needed(batches[half]) <= available
        first, last = (half, last) if fits[batches[half]] else (first, half)
    return batches[first]
"""),
        # One after the other
        Wrong(
            """
def largest_that_fits(needed, available, low, high):
    while needed(low + 128) <= available:
        low += 128
    return low
""",
            "Let each call halve what is left",
        ),
        # From one figure, as if all bytes grew with the batch
        Wrong(
            """
def largest_that_fits(needed, available, low, high):
    return int(available / (needed(low) / low)) // 128 * 128
""",
            "expected",
        ),
        # To a single picture
        Wrong(
            """
def largest_that_fits(needed, available, low, high):
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if needed(middle) <= available else (low, middle)
    return low // 128 * 128
""",
            "only multiples of 128 are candidates",
        ),
        # A float
        Wrong(_BISECTION.replace("return 128 * first", "return 128.0 * first"), "a whole number"),
        # Only whether it fits
        Wrong(
            _BISECTION.replace("needed(128 * half) > available", "not needed(128 * half)"),
            "expected",
        ),
    ],
    "9d": [
        # Sorted, and the first one
        Right("""
def smallest_that_pays(trials, share):
    rates = {trial.batch: trial.examples_per_second for trial in trials if trial.examples_per_second}
    return next(batch for batch in sorted(rates) if rates[batch] >= share * max(rates.values()))
"""),
        # A loop, without a comprehension
        Right("""
def smallest_that_pays(trials, share):
    best = 0
    for trial in trials:
        best = max(best, trial.examples_per_second or 0)
    found = None
    for trial in trials:
        if (trial.examples_per_second or 0) >= best * share and (found is None or trial.batch < found):
            found = trial.batch
    return found
"""),
        # NumPy
        Right("""
import numpy
def smallest_that_pays(trials, share):
    rates = numpy.array([t.examples_per_second or 0 for t in trials])
    batches = numpy.array([t.batch for t in trials])
    return batches[rates >= share * rates.max()].min()
"""),
        # The rows that do not fit
        Wrong(
            """
def smallest_that_pays(trials, share):
    best = max(trial.examples_per_second for trial in trials)
    return min(trial.batch for trial in trials if trial.examples_per_second >= share * best)
""",
            "None",
        ),
        # The first row that is fast enough
        Wrong(
            """
def smallest_that_pays(trials, share):
    fits = [trial for trial in trials if trial.examples_per_second]
    best = max(trial.examples_per_second for trial in fits)
    return [trial.batch for trial in fits if trial.examples_per_second >= share * best][-1]
""",
            "expected",
        ),
        # The row in the place of its batch
        Wrong(
            """
def smallest_that_pays(trials, share):
    fits = [trial for trial in trials if trial.examples_per_second]
    best = max(trial.examples_per_second for trial in fits)
    return min((t for t in fits if t.examples_per_second >= share * best), key=lambda t: t.batch)
""",
            "expected",
        ),
        Mutant("return min(trial.batch", "return min(trial.batch + 1", "expected"),
    ],
}

"""What learners get wrong in lab 14, serving, and the words that they must hear."""

from wrong_answers import Mutant, Right, Wrong

ANSWERS = {
    "14a": [
        Mutant(
            '{"b64": base64.b64encode(picture).decode()}',
            '{"base64": base64.b64encode(picture).decode()}',
            "answers 400",
        ),
        Mutant(
            "base64.b64encode(picture)",
            "base64.b64encode(base64.b64encode(picture))",
            "encoded twice",
        ),
        Mutant(
            "base64.b64encode(picture)",
            "base64.urlsafe_b64encode(picture)",
            "base64 with + and /",
        ),
        Mutant("base64.b64encode(picture).decode()", "str(base64.b64encode(picture))", "400"),
        Mutant(
            "base64.b64encode(picture).decode()",
            "base64.b64encode(picture)",
            "not JSON serializable",
        ),
        Mutant('json.dumps({"instances": instances})', '{"instances": instances}', "json.dumps"),
        Mutant(
            'json.dumps({"instances": instances})',
            "json.dumps(instances)",
            "either 'instances' or 'inputs'",
        ),
        Mutant('"instances": instances', '"examples": instances', 'under the key "instances"'),
        Mutant(
            "for picture in pictures]", "for picture in pictures[:1]]", "one instance per picture"
        ),
        # Latin-1, as many do with bytes first
        Wrong(
            """
def predict_body(pictures):
    return json.dumps({"instances": [{"image_bytes": each.decode("latin-1")} for each in pictures]})
""",
            "the bytes of each, unchanged",
        ),
        # Hexadecimal digits
        Wrong(
            """
def predict_body(pictures):
    return json.dumps({"instances": [{"b64": each.hex()} for each in pictures]})
""",
            "the bytes of each, unchanged",
        ),
        # The pixels' name of another model
        Wrong(
            """
def predict_body(pictures):
    return json.dumps({"instances": [{"image": {"b64": base64.b64encode(p).decode()}} for p in pictures]})
""",
            "The signature's inputs are ['image_bytes']",
        ),
        # Another signature
        Wrong(
            """
def predict_body(pictures):
    rows = [{"b64": base64.b64encode(p).decode()} for p in pictures]
    return json.dumps({"signature_name": "predict", "instances": rows})
""",
            "There is no signature 'predict'",
        ),
        # All pictures in one
        Wrong(
            """
def predict_body(pictures):
    return json.dumps({"instances": [{"b64": base64.b64encode(b"".join(pictures)).decode()}]})
""",
            "one instance per picture",
        ),
        # A list in a list
        Wrong(
            """
def predict_body(pictures):
    return json.dumps({"instances": [[{"b64": base64.b64encode(p).decode()}] for p in pictures]})
""",
            "a scalar string",
        ),
        # The name of the input, the signature, bytes
        Right("""
def predict_body(pictures):
    rows = [{"image_bytes": {"b64": str(base64.b64encode(p), "ascii")}} for p in pictures]
    return json.dumps({"signature_name": "serving_default", "instances": rows}).encode("utf-8")
"""),
        # Columns
        Right("""
def predict_body(pictures):
    column = list(map(lambda p: dict(b64=base64.standard_b64encode(p).decode("utf-8")), pictures))
    return json.dumps(dict(inputs=dict(image_bytes=column)))
"""),
        # Binascii, an unnamed column
        Right("""
import binascii
def predict_body(pictures):
    return json.dumps({"inputs": [{"b64": binascii.b2a_base64(p).decode()} for p in pictures]})
"""),
        # Text put together
        Right("""
def predict_body(pictures):
    rows = ", ".join('{"b64": "%s"}' % base64.encodebytes(p).decode().replace("\\n", "") for p in pictures)
    return '{"instances": [' + rows + "]}"
"""),
        # A generator, NumPy
        Right("""
import numpy as np
def _row(picture):
    return {"b64": "".join(np.array([base64.b64encode(picture).decode()]))}
def predict_body(pictures):
    return bytearray(json.dumps({"instances": list(_row(p) for p in pictures)}, indent=2), "ascii")
"""),
    ],
    "14b": [
        Wrong('causes = {**causes, "Dora": "F"}', "as many of her answers are roses"),
        Wrong('causes = {**causes, "Cem": "E", "Ben": "E"}', "Right: 3 of 5."),
        Wrong('causes = {**causes, "Ann": "G"}', "a correct one"),
        Wrong('causes = {**causes, "Eve": "B"}', "the lengths of her"),
        Wrong('causes = {"Ann": "B", "Ben": "F"}', "Not decided yet"),
        Wrong('causes = {**causes, "Ann": "Z"}', "is not one of A, B, C, D, E, F, G"),
        Wrong("causes = list(causes.values())", "Expected a dict with an answer for each of"),
        Right("causes = {name: letter.lower() for name, letter in causes.items()}"),
        Right('causes = dict(Eve="A", Dora="D", Cem="C", Ben="F", Ann=" B ")'),
    ],
    "14c": [
        Mutant("return [None]", "return None", "is a return missing?"),
        Mutant("if len(pictures) == 1:", "if len(pictures) <= 2:", "the answers"),
        # Each by itself
        Wrong(
            """
def ask_all(ask, pictures):
    answers = []
    for each in pictures:
        try:
            answers += ask([each])
        except ValueError:
            answers.append(None)
    return answers
""",
            "1 would be enough",
        ),
        # All at once, then each by itself
        Wrong(
            """
def ask_all(ask, pictures):
    if not pictures:
        return []
    try:
        return ask(pictures)
    except ValueError:
        return ask_all(ask, pictures[:1]) + ask_all(ask, pictures[1:]) if len(pictures) > 1 else [None]
""",
            "13 would be enough",
        ),
        # The whole request is given up
        Wrong(
            """
def ask_all(ask, pictures):
    try:
        return ask(pictures)
    except ValueError:
        return [None] * len(pictures)
""",
            "the answers",
        ),
        # No refusal is expected
        Wrong(
            "def ask_all(ask, pictures):\n    return ask(pictures)",
            "raises the server's ValueError",
        ),
        # The refused one is left out
        Wrong(
            """
def ask_all(ask, pictures):
    try:
        return ask(pictures)
    except ValueError:
        half = len(pictures) // 2
        return ask_all(ask, pictures[:half]) + ask_all(ask, pictures[half:]) if half else []
""",
            "None: without it, later answers move up",
        ),
        # A stack in the place of the calls
        Right(
            """
def ask_all(ask, pictures):
    answers, waiting = [None] * len(pictures), [(0, len(pictures))]
    while waiting:
        start, end = waiting.pop()
        try:
            answers[start:end] = ask(pictures[start:end])
        except ValueError:
            if end - start > 1:
                middle = (start + end) // 2
                waiting += [(start, middle), (middle, end)]
    return answers
"""
        ),
        # Extended lists
        Right(
            """
def ask_all(ask, pictures):
    answers = []
    try:
        answers.extend(ask(list(pictures)))
    except ValueError:
        if len(pictures) < 2:
            return [None]
        cut = (len(pictures) + 1) // 2
        for part in (pictures[:cut], pictures[cut:]):
            answers.extend(ask_all(ask, part))
    return answers
"""
        ),
    ],
    "14d": [
        Mutant("seconds[batch] <= limit", "seconds[batch] < limit", "100 ms is within a limit"),
        Mutant("seconds[batch] <= limit", "seconds[batch] / batch <= limit", "over the limit"),
        Mutant(" if seconds[batch] <= limit]", "]", "over the limit"),
        Mutant(
            "lambda batch: batch / seconds[batch]", "lambda batch: batch", "largest is not the best"
        ),
        Mutant(
            "lambda batch: batch / seconds[batch]",
            "lambda batch: -seconds[batch]",
            "1, 8 and 32 give 100, 200 and 246 pictures per second",
        ),
        Mutant(
            "batch / seconds[batch], default",
            "seconds[batch] / batch, default",
            "1, 8 and 32 give 100, 200 and 246 pictures per second",
        ),
        Mutant(", default=None", "", "raised"),
        # The largest that keeps the limit
        Wrong(
            """
def best_batch(seconds, limit):
    return max((b for b, s in seconds.items() if s <= limit), default=None)
""",
            "largest is not the best",
        ),
        # The rate
        Wrong(
            """
def best_batch(seconds, limit):
    return max(batch / each for batch, each in seconds.items() if each <= limit)
""",
            "The best batch for seconds=",
        ),
        # Stops at the first one over the limit
        Wrong(
            """
def best_batch(seconds, limit):
    best = None
    for batch, each in seconds.items():
        if each > limit:
            break
        best = batch
    return best
""",
            "largest is not the best",
        ),
        # The smallest where none keeps it
        Wrong(
            """
def best_batch(seconds, limit):
    within = {b: b / s for b, s in seconds.items() if s <= limit} or {min(seconds): 0}
    return max(within, key=within.get)
""",
            "the answer is None",
        ),
        # A loop
        Right("""
def best_batch(seconds, limit):
    best, rate = None, 0.0
    for batch, each in sorted(seconds.items()):
        if each <= limit and batch / each > rate:
            best, rate = batch, batch / each
    return best
"""),
        # Sorting
        Right("""
def best_batch(seconds, limit):
    ranked = sorted((s / b, b) for b, s in seconds.items() if not s > limit)
    return ranked[0][1] if ranked else None
"""),
        # NumPy
        Right("""
import numpy as np
def best_batch(seconds, limit):
    batches, times = np.array(list(seconds)), np.array(list(seconds.values()))
    rates = np.where(times <= limit, batches / times, -1.0)
    return None if rates.max() < 0 else int(batches[rates.argmax()])
"""),
        # NumPy's own integer
        Right("""
import numpy as np
def best_batch(seconds, limit):
    batches, times = np.array(list(seconds)), np.array(list(seconds.values()))
    rates = np.where(times <= limit, batches / times, 0)
    return batches[rates.argmax()] if rates.any() else None
"""),
        # A try
        Right("""
def best_batch(seconds, limit):
    try:
        return max([b for b in seconds if seconds[b] <= limit], key=lambda b: b / seconds[b])
    except ValueError:
        return None
"""),
    ],
}

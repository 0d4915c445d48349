"""What learners get wrong in lab 10, and the words that they must hear."""

from wrong_answers import Mutant

ANSWERS = {
    "10a": [
        Mutant("environ.setdefault(name, value)", "environ[name] = value", "had set"),
        Mutant("if chip in PJRT_CHIPS:", "if True:", "stream executor"),
        Mutant("if chip in PJRT_CHIPS:", 'if chip == "v5e":', "v5p"),
        Mutant('"PJRT_DEVICE": "TPU",', "", "PJRT_DEVICE is not set"),
        Mutant(
            '"TF_PLUGGABLE_DEVICE_LIBRARY_PATH": library', '"TPU_LIBRARY_PATH": library', "PATH"
        ),
        Mutant(
            '"NEXT_PLUGGABLE_DEVICE_USE_C_API": "true"',
            '"NEXT_PLUGGABLE_DEVICE_USE_C_API": True',
            "text",
        ),
        Mutant('"PJRT_DEVICE": "TPU"', '"PJRT_DEVICE": "tpu"', "'TPU'"),
    ],
    "10b": [
        Mutant(
            'if api == "TPUEstimator" or chip == "tpu7x":',
            'if chip == "tpu7x":',
            "TPUEstimator on a v5e",
        ),
        Mutant(
            'if api == "TPUEstimator" or chip == "tpu7x":', 'if api == "TPUEstimator":', "TPU7x"
        ),
        Mutant('"tensorflow-tpu==2.20.0 libtpu==0.0.21.1"', '"tensorflow-tpu==2.20.0"', "libtpu"),
        Mutant("if python >= (3, 13):", "if False:", "3.13"),
        Mutant("if python >= (3, 13):", "if True:", "safest"),
        Mutant('if api == "JAX":', 'if api == "JAX" and chip == "v5e":', "JAX"),
        Mutant('return "tpu-vm-tf-2.15.0-se"', 'return "tensorflow==2.15.0"', "image"),
    ],
    "10c": [
        Mutant(
            'f"--accelerator-type=v5litepod-{chips}"',
            'f"--accelerator-type=v5e-{chips}"',
            "v5litepod-4",
        ),
        Mutant(', "--version=v2-alpha-tpuv5-lite"', "", "--version"),
        Mutant('*kind, "--spot"]', "*kind]", "--spot"),
        Mutant(
            'START + ["delete", name, where, "--quiet"]',
            'START + ["delete", name, where]',
            "--quiet",
        ),
        Mutant(
            'START + ["delete", name, where, "--quiet"]',
            'START + ["delete", name, "--quiet"]',
            "zone",
        ),
        Mutant("return create, delete", "return create, None", "pay"),
        Mutant("return create, delete", 'return " ".join(create), " ".join(delete)', "list"),
        Mutant('START + ["create", name, where,', 'START + ["create", where,', "name"),
    ],
    "10d": [
        Mutant(" + other_minutes / 60", "", "until it is deleted"),
        Mutant("hours * chips * price", "hours * price", "chip"),
        Mutant("steps * step_seconds / 3600", "steps * step_seconds / 60", "hour"),
        Mutant("steps * step_seconds / 3600", "step_seconds / 3600", "steps"),
    ],
    "10e": [
        Mutant("not all(map(math.isfinite, losses)) or ", "", "infinite"),
        Mutant(" or losses[-1] >= losses[0]", "", "rose"),
        Mutant('report["platform"] != "tpu"', 'report["platform"] == "cpu"', "GPU"),
        Mutant('figure(report, "step") < figure(report, "least time")', "False", "least time"),
        Mutant(
            'figure(report, "step") < figure(report, "least time")',
            'figure(report, "step") > figure(report, "least time")',
            "bound",
        ),
        Mutant('figure(report, "step") <', 'figure(report, "first step") <', "first step"),
        Mutant('return "reached"', "return True", "one of"),
    ],
}

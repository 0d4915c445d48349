"""What a training run is told: by flags, by a YAML file, or both; a flag wins over the file."""

import argparse
import contextlib
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import psutil
import yaml

from lab_utils.common import files
from lab_utils.common.figures import counted

_PATHS = ("train_data_path", "eval_data_path", "output_dir")
_COUNTS = (
    "train_steps",
    "train_batch_size",
    "eval_batch_size",
    "eval_steps_between",
    "iterations_per_loop",
)


def _setting(default, help: str):
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Settings:
    """One training run. Each field is a flag, and may be a key of the YAML file."""

    train_data_path: str = _setting("", "glob of the training TFRecords, local or gs://")
    eval_data_path: str = _setting("", "glob of the evaluation TFRecords")
    output_dir: str = _setting(
        "", "checkpoints, history and export; a run there goes on where it stopped"
    )
    train_steps: int = _setting(1000, "global steps in all, those of earlier runs counted in")
    train_batch_size: int = _setting(32, "global batch, over all cores")
    eval_batch_size: int = _setting(64, "global batch in evaluation")
    eval_steps_between: int = _setting(200, "steps from one checkpoint and evaluation to the next")
    learning_rate: float = _setting(0.05, "at its highest, for the given batch")
    image_size: int = _setting(
        128, "side of the square that the model sees, in pixels; a multiple of 16, at least 32"
    )
    iterations_per_loop: int = _setting(
        100, "steps that a TPU takes before it comes back to the host"
    )
    use_tpu: bool = _setting(False, "train on a TPU")
    tpu: str = _setting("local", "name or address of the TPU; 'local' on a TPU VM")
    project: str = _setting("", "Google Cloud project of the TPU")
    tpu_zone: str = _setting("", "zone of the TPU")
    use_bfloat16: bool = _setting(
        False, "compute in bfloat16; variables and the export stay float32"
    )
    seed: int = _setting(0, "of initial weights, shuffling and augmentation")

    def __post_init__(self) -> None:
        for name in _PATHS:
            if not getattr(self, name).strip():
                raise ValueError(f"{name} is not set: give --{name}, or {name} in the YAML file")
        if set("*?[]") & set(self.output_dir):
            raise ValueError(
                f"output_dir is {self.output_dir!r}: TensorFlow takes *, ?, [ and ] in a checkpoint's path "
                "for patterns; choose a name without them"
            )
        for name in _COUNTS:
            if not 1 <= getattr(self, name) < 2**31:
                raise ValueError(
                    f"{name} must be at least 1 and below 2**31, not {getattr(self, name)}"
                )
        if not 0 < self.learning_rate < math.inf:  # False for NaN as well
            raise ValueError(f"learning_rate must be a number above 0, not {self.learning_rate}")
        if not 0 <= self.seed < 2**31:  # an int32 in the model
            raise ValueError(f"seed must be from 0 to 2**31 - 1, not {self.seed}")
        if self.image_size % 16 or self.image_size < 32:  # it is halved five times
            raise ValueError(
                f"image_size must be a multiple of 16, at least 32, not {self.image_size}"
            )


def _check_memory(settings: Settings) -> None:
    """Refuses batches that would not fail at once, but fill this machine's memory first."""
    batch = max(settings.train_batch_size, settings.eval_batch_size)
    size, room = batch * settings.image_size**2 * 3, psutil.virtual_memory().total
    if size > room and not settings.use_tpu:  # a TPU's hosts share the batch
        raise ValueError(
            f"a batch of {counted(batch, 'image')} of {settings.image_size:,} pixels takes "
            f"{size / 2**30:,.0f} GiB, and this machine has {room / 2**30:,.0f}: take a smaller batch "
            "or image_size"
        )


_ON, _OFF = ("true", "t", "1", "yes", "y", "on"), ("false", "f", "0", "no", "n", "off")
_SWITCHES = {setting.name for setting in fields(Settings) if setting.type is bool}


def _texts(text: str, path: Path) -> dict[str, str]:
    """Each setting's value as it was typed.

    Raises:
        ValueError: a setting stands there twice; YAML itself takes the last without a word.
    """
    root, lines = yaml.compose(text, Loader=yaml.SafeLoader), {}
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    for name, _ in pairs:
        line = name.start_mark.line + 1
        if lines.setdefault(name.value, line) != line:
            raise ValueError(
                f"{path}: {name.value} stands on line {lines[name.value]} and on line {line}: remove one"
            )
    return {name.value: str(value.value) for name, value in pairs}


def _from_yaml(path: Path) -> dict:
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ValueError(f"{path} is a pipe or a device, not a file")
    try:
        text = path.read_text(encoding="utf-8-sig")
        values = yaml.safe_load(text)
        texts = _texts(text, path)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not text in UTF-8: save it as that") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not valid YAML: {error}") from None
    except RecursionError:
        raise ValueError(f"{path} is not valid YAML: it is nested too deeply") from None
    if values is None:  # an empty file
        return {}
    if not isinstance(values, dict):
        raise ValueError(f"{path} must hold `name: value` lines")
    kinds = {setting.name: setting.type for setting in fields(Settings)}
    for name, value in values.items():
        if name not in kinds:
            raise ValueError(f"{path}: unknown setting {name!r}; known are {', '.join(kinds)}")
        if kinds[name] is float and type(value) in (int, str):  # to YAML 1.1, 1e-3 is a text
            with contextlib.suppress(ValueError):
                value = values[name] = float(value)
        if kinds[name] is int and ":" in texts.get(name, ""):
            raise ValueError(
                f"{path}: {name} is {texts[name]}, which YAML takes for minutes: {value}"
            )
        if kinds[name] is int and re.fullmatch(r"[-+]?0[0-7_]+", texts.get(name, "")):
            raise ValueError(
                f"{path}: {name} is {texts[name]}, which YAML takes for an octal number: {value}"
            )
        if type(value) is not kinds[name]:
            raise ValueError(f"{path}: {name} must be {kinds[name].__name__}, not {value!r}")
    return values


def _plain_switch(flag: str) -> str:
    """Returns --use_tpu for --use_tpu=True, as absl's flags are written, and --no-use_tpu for =False."""
    name, _, value = flag.removeprefix("--").partition("=")
    if value.lower() in _ON + _OFF and name in _SWITCHES:
        return f"--{'no-' * (value.lower() in _OFF)}{name}"
    return flag


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """Reads flags, and the YAML file that `--config` names.

    Exits with a sentence about the flag or key that is wrong, as argparse does.
    """
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.flowers.task",
        description="Train the flowers model with TPUEstimator, evaluate it at every checkpoint, and "
        "export it. Started again with the same output_dir, it goes on from the last checkpoint.",
    )
    parser.add_argument(
        "--config", type=files.path_argument, help="YAML file of settings; a flag wins over it"
    )
    for setting in fields(Settings):
        kind = (
            {"action": argparse.BooleanOptionalAction}
            if setting.type is bool
            else {"type": setting.type, "metavar": setting.name.upper()}
        )
        shown = f" (default: {setting.default})" if setting.default != "" else ""
        parser.add_argument(
            f"--{setting.name}",
            help=setting.metadata["help"] + shown,
            default=argparse.SUPPRESS,
            **kind,
        )
    given = sys.argv[1:] if arguments is None else arguments
    flags = vars(parser.parse_args([_plain_switch(flag) for flag in given]))
    config = flags.pop("config")
    try:
        given = (_from_yaml(config) if config else {}) | flags
        settings = Settings(
            **given | {name: files.expanded(given.get(name, "")) for name in _PATHS}
        )
        _check_memory(settings)
        return settings
    except ValueError as error:
        parser.error(str(error))

"""The settings of a training run: from flags, from a YAML file, or both; a flag wins over the file."""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from lab_utils.common import files

PATHS = ("train_data_path", "eval_data_path", "output_dir")
_LARGEST = 4096  # pixels of a side: one picture of it takes 200 MB as float32
_COUNTS = ("train_steps", "train_batch_size", "eval_batch_size")
_COUNTS += ("eval_steps_between", "iterations_per_loop")


def _setting(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Settings:
    """One training run. Each field is a flag, and may be a key of the YAML file."""

    train_data_path: str = _setting("", "glob of the training TFRecords, local or gs://")
    eval_data_path: str = _setting("", "glob of the evaluation TFRecords")
    output_dir: str = _setting(
        "",
        (
            "folder for checkpoints, history and export; a run in an existing folder resumes "
            "where it stopped"
        ),
    )
    train_steps: int = _setting(
        1000, "total number of global steps, including those of earlier runs"
    )
    train_batch_size: int = _setting(32, "global batch of all cores together")
    eval_batch_size: int = _setting(64, "global batch in evaluation")
    eval_steps_between: int = _setting(
        200, "number of steps from one checkpoint and evaluation to the next"
    )
    learning_rate: float = _setting(0.05, "highest learning rate, for the given batch")
    image_size: int = _setting(
        128, "side of the model's square input in pixels, a multiple of 16 and at least 32"
    )
    iterations_per_loop: int = _setting(
        100, "number of steps of a TPU before it returns to the host"
    )
    use_tpu: bool = _setting(False, "train on a TPU")
    tpu: str = _setting("local", "name or address of the TPU; 'local' on a TPU VM")
    project: str = _setting("", "Google Cloud project of the TPU")
    tpu_zone: str = _setting("", "zone of the TPU")
    use_bfloat16: bool = _setting(False, "compute in bfloat16; variables and export stay float32")
    seed: int = _setting(0, "seed of the initial weights, shuffling and augmentation")

    def __post_init__(self) -> None:
        for name in PATHS:
            if not getattr(self, name).strip():
                raise ValueError(
                    f"{name} is not set: give --{name}, or set {name} in the YAML file"
                )
            try:
                getattr(self, name).encode()
            except UnicodeEncodeError:
                path = getattr(self, name)
                raise ValueError(
                    f"{name} is {path!r}: TensorFlow takes only paths in UTF-8, so choose another name"
                ) from None
        if set("*?[]") & set(self.output_dir):
            raise ValueError(
                f"output_dir is {self.output_dir!r}: TensorFlow reads *, ?, [ and ] in the path of "
                "a checkpoint as a pattern, so choose a name without them"
            )
        for name in _COUNTS:
            if not 1 <= getattr(self, name) < 2**31:  # an int32 in TensorFlow
                raise ValueError(
                    f"{name} must be at least 1 and below 2**31, not {getattr(self, name)}"
                )
        if not 0 < self.learning_rate < math.inf:  # False for NaN as well
            raise ValueError(f"learning_rate must be a number above 0, not {self.learning_rate}")
        if not 0 <= self.seed < 2**31:  # an int32 in the model
            raise ValueError(f"seed must be from 0 to 2**31 - 1, not {self.seed}")
        if self.image_size % 16 or not 32 <= self.image_size <= _LARGEST:  # it is halved five times
            size = self.image_size
            raise ValueError(
                f"image_size must be a multiple of 16, from 32 to {_LARGEST}, not {size}"
            )


def _switch(text: str) -> bool:
    """For argparse's `type`: --use_tpu=True and --use_tpu=False, as absl's flags are written."""
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"it must be True or False, not {text!r}")
    return text.lower() == "true"


def _values(config: Path) -> dict[str, str]:
    """The settings of a YAML file, as flags would give them."""
    try:
        content = yaml.safe_load(config.read_text(encoding="utf-8-sig")) or {}
        if not isinstance(content, dict):
            raise ValueError("what it holds is a list or a single value")
        values = {str(name): "" if value is None else str(value) for name, value in content.items()}
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise ValueError(
            f"{config} holds no `name: value` lines of YAML in UTF-8: {error}"
        ) from None
    if unknown := values.keys() - {setting.name for setting in fields(Settings)}:
        raise ValueError(f"{config} has {', '.join(sorted(unknown))}, which --help does not list")
    return values


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """Reads flags, and the YAML file that `--config` names.

    Exits with a sentence about the flag or key that is wrong, as argparse does.
    """
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.flowers.task",
        description=(
            "Train the flowers model with TPUEstimator, evaluate it at every checkpoint, and "
            "export it. If you start it again with the same output_dir, it resumes from the last "
            "checkpoint."
        ),
        allow_abbrev=False,
    )
    parser.add_argument(
        "--config", type=files.path_argument, help="YAML file of settings; a flag overrides it"
    )
    for setting in fields(Settings):
        options = {"type": setting.type, "metavar": setting.name.upper()}
        if setting.type is bool:
            options = {"type": _switch, "nargs": "?", "const": True, "metavar": "True|False"}
        default = f" (default: {setting.default})" if setting.default != "" else ""
        options |= {"help": setting.metadata["help"] + default, "default": setting.default}
        parser.add_argument(f"--{setting.name}", **options)
    try:
        if config := parser.parse_args(arguments).config:
            parser.set_defaults(**_values(config))  # argparse gives strings their types
        values = vars(parser.parse_args(arguments))
        del values["config"]
        return Settings(**values | {name: files.expanded(values[name]) for name in PATHS})
    except ValueError as error:
        parser.error(str(error))

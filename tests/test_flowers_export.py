"""What the run exports, and predicting with it: encoded images in, classes and probabilities out."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from lab_utils.estimator import tf
from lab_utils.flowers import page, predict, settings, task


@pytest.fixture(scope="module")
def saved_model(finished_run) -> Path:
    return Path(finished_run[1]["saved_model"])


@pytest.fixture(scope="module")
def serve(saved_model):
    return tf.saved_model.load(str(saved_model)).signatures["serving_default"]


@pytest.fixture(scope="module")
def photographs(tiny_photos) -> list[Path]:
    """Three images, the first a PNG."""
    return sorted(tiny_photos.glob("*/* 0.png"))[:1] + sorted(tiny_photos.glob("*/* 1.jpg"))[:2]


def test_serving_says_what_evaluation_says(serve, tiny_records, finished_run):
    """The same decoding and the same weights in both; so the confusion matrices agree too."""
    result = finished_run[1]
    images, labels = [], []
    for file in tiny_records.paths("eval"):
        for record in tf.data.TFRecordDataset(file).as_numpy_iterator():
            feature = tf.train.Example.FromString(record).features.feature
            images.append(feature["image/encoded"].bytes_list.value[0])
            labels.append(feature["image/class/label"].int64_list.value[0] - 1)
    answer = serve(image_bytes=tf.constant(images))
    probabilities, class_id = answer["probabilities"].numpy(), answer["class_id"].numpy()
    np.testing.assert_array_equal(class_id, probabilities.argmax(1))
    names = [result["labels"][number].encode() for number in class_id]
    assert answer["class"].numpy().tolist() == names
    confusion = np.zeros([3, 3], int)
    np.add.at(confusion, (labels, class_id), 1)
    assert confusion.tolist() == result["confusion"]
    true = probabilities[np.arange(len(labels)), labels]
    # Rounded to six places in the result.
    assert -np.log(true).mean() == pytest.approx(result["cross_entropy"], rel=1e-3, abs=1e-5)


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory, photographs) -> list[Path]:
    folder = tmp_path_factory.mktemp("bad")
    jpeg, png = photographs[1].read_bytes(), photographs[0].read_bytes()
    content = {
        "text.jpg": b"not a picture at all",
        "empty.jpg": b"",
        "cut.jpg": jpeg[: len(jpeg) // 2],
        "cut.png": png[: len(png) // 2],
    }
    for name, data in content.items():
        (folder / name).write_bytes(data)
    (folder / "a folder.jpg").mkdir()
    return [*map(folder.joinpath, content), folder / "a folder.jpg", folder / "missing.jpg"]


def test_predict_names_what_it_cannot_use_and_goes_on(
    monkeypatch, capsys, saved_model, photographs, bad_files, tmp_path
):
    files = [*bad_files[:3], *photographs, *bad_files[3:]]
    arguments = ["--saved_model", saved_model, "--output", tmp_path / "p.png"]
    assert _predict(monkeypatch, *arguments, *files) == 1
    said = capsys.readouterr()
    predictions, problems = said.out.splitlines()[:3], said.err.splitlines()
    assert [line.split(": ")[0] for line in predictions] == list(map(str, photographs))
    assert [line.split(": left out, ")[0] for line in problems] == list(map(str, bad_files))
    assert "No such file" in problems[-1]
    assert not any("{{" in line or "Op:" in line for line in problems)
    assert (tmp_path / "p.png").stat().st_size > 10_000


def test_export_is_float32_whatever_training_took(
    run_flags, tmp_path, finished_run, serve, photographs
):
    """The weights of a float32 run, exported by a run that asks for bfloat16."""
    shutil.copytree(finished_run[0], tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()  # else nothing is exported again
    flags = [*run_flags, f"--output_dir={tmp_path / 'run'}", "--use_bfloat16"]
    exported = Path(task.run(settings.parse(flags))["saved_model"])
    assert tmp_path in exported.parents
    other = tf.saved_model.load(str(exported)).signatures["serving_default"]
    images = tf.constant([path.read_bytes() for path in photographs])
    np.testing.assert_array_equal(
        other(image_bytes=images)["probabilities"], serve(image_bytes=images)["probabilities"]
    )


def test_the_page_holds_pictures_and_figures(finished_run, tiny_csv, tmp_path):
    made = page.make(finished_run[0], tiny_csv.eval_csv, tmp_path, {"time <s>": "1 s"}, "A & B")
    text = made.read_text()
    for part in ("After 8 steps", "12 held-out", "time &lt;s&gt;", "A &amp; B"):
        assert part in text
    for name in ("predictions", "confusion", "learning_curves"):
        assert f"{name}.png" in text


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def _predict(monkeypatch, *arguments) -> int:
    monkeypatch.setattr("sys.argv", ["predict", *map(str, arguments)])
    return predict.main()


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("saved_model.pb", "cannot be loaded"),
        ("assets.extra/labels.txt", "labels.txt: No such file"),
        ("variables/variables.data-00000-of-00001", "it may be damaged"),
    ],
)
def test_predict_names_a_damaged_export(
    monkeypatch, capsys, saved_model, photographs, tmp_path, file, message
):
    export = shutil.copytree(saved_model, tmp_path / "export")
    if "labels" in file:
        (export / file).unlink()
    elif file == "saved_model.pb":  # one byte of it may be a letter that nobody reads
        (export / file).write_bytes((export / file).read_bytes()[:-100])
    else:
        flip_a_byte(export / file)
    arguments = ["--saved_model", export, "--output", tmp_path / "p.png", photographs[0]]
    assert _predict(monkeypatch, *arguments) == 1
    assert message in capsys.readouterr().err.splitlines()[-1]

"""What the run exports, and predicting with it: encoded images in, classes and probabilities out."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lab_utils.estimator import tf
from lab_utils.flowers import page, predict, settings, task

CLI = Path(sys.executable).with_name("saved_model_cli")


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


def test_serving_takes_a_batch_of_encoded_images(serve, photographs, finished_run):
    labels = finished_run[1]["labels"]
    answer = serve(image_bytes=tf.constant([path.read_bytes() for path in photographs]))
    probabilities = answer["probabilities"].numpy()
    assert probabilities.shape == (3, len(labels))
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)
    class_id = answer["class_id"].numpy()
    np.testing.assert_array_equal(class_id, probabilities.argmax(1))
    assert answer["class"].numpy().tolist() == [labels[i].encode() for i in class_id]


def test_serving_says_what_evaluation_says(serve, tiny_records, run_flags, finished_run):
    """The same decoding and the same weights in both; so the confusion matrices agree too."""
    output_dir, result = finished_run
    images, labels = [], []
    for file in tiny_records.paths("eval"):
        for record in tf.data.TFRecordDataset(file).as_numpy_iterator():
            feature = tf.train.Example.FromString(record).features.feature
            images.append(feature["image/encoded"].bytes_list.value[0])
            labels.append(feature["image/class/label"].int64_list.value[0] - 1)
    answer = serve(image_bytes=tf.constant(images))
    confusion = np.zeros([3, 3], int)
    np.add.at(confusion, (labels, answer["class_id"].numpy()), 1)
    assert confusion.tolist() == result["confusion"]
    true = answer["probabilities"].numpy()[np.arange(len(labels)), labels]
    # Rounded to six places in the result.
    assert -np.log(true).mean() == pytest.approx(result["cross_entropy"], rel=1e-3, abs=1e-5)


def test_saved_model_cli_shows_and_runs_it(saved_model, photographs, tmp_path):
    common = ["--dir", saved_model, "--tag_set", "serve", "--signature_def", "serving_default"]
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2"}

    def cli(*arguments) -> str:
        ran = subprocess.run(
            [CLI, *arguments], env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    shown = cli("show", *common)
    for name, shape in (("image_bytes", "(-1)"), ("probabilities", "(-1, 3)"), ("class", "(-1)")):
        assert shape in shown.split(f"['{name}']")[1].split("name:")[0]

    np.save(tmp_path / "images.npy", np.array([path.read_bytes() for path in photographs]))
    cli("run", *common, "--inputs", "image_bytes=images.npy", "--outdir", "out")
    assert np.load(tmp_path / "out" / "probabilities.npy").shape == (3, 3)
    assert set(np.load(tmp_path / "out" / "class.npy", allow_pickle=True)) <= {
        b"daisy",
        b"roses",
        b"tulips",
    }


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory, photographs) -> list[Path]:
    folder = tmp_path_factory.mktemp("bad")
    jpeg, png = photographs[1].read_bytes(), photographs[0].read_bytes()
    content = {
        "text.jpg": b"not a picture at all",
        "empty.jpg": b"",
        "cut.jpg": jpeg[: len(jpeg) // 2],
        "cut.png": png[: len(png) // 2],
        "header only.bmp": b"BM" + bytes(60),
        "header only.gif": b"GIF89a" + bytes(10),
    }
    for name, data in content.items():
        (folder / name).write_bytes(data)
    (folder / "a folder.jpg").mkdir()
    return [*map(folder.joinpath, content), folder / "a folder.jpg", folder / "missing.jpg"]


def test_predict_names_what_it_cannot_use_and_goes_on(
    monkeypatch, capsys, saved_model, photographs, bad_files, tmp_path
):
    files = [*bad_files[:3], *photographs, *bad_files[3:]]
    monkeypatch.setattr(
        "sys.argv",
        ["predict", "--saved_model", *map(str, [saved_model, "--output", tmp_path / "p.png"])]
        + [str(file) for file in files],
    )
    assert predict.main() == 1
    said = capsys.readouterr()
    assert [line.split(": ")[0] for line in said.out.splitlines()[:3]] == list(
        map(str, photographs)
    )
    problems = said.err.splitlines()
    assert [line.split(": left out, ")[0] for line in problems] == list(map(str, bad_files))
    assert "No such file" in problems[-1]
    assert not any("{{" in line or "Op:" in line for line in problems)
    assert (tmp_path / "p.png").stat().st_size > 10_000


def test_predict_with_whole_files_succeeds(monkeypatch, capsys, saved_model, photographs):
    monkeypatch.setattr(
        "sys.argv", ["predict", "--saved_model", str(saved_model), str(photographs[0])]
    )
    assert predict.main() == 0
    assert "%)" in capsys.readouterr().out


def test_predict_keeps_the_order_over_several_batches(saved_model, tiny_photos):
    paths = sorted(tiny_photos.glob("*/*"))
    together, _ = predict.predict(saved_model, paths, batch_size=100)
    apart, damaged = predict.predict(saved_model, paths, batch_size=4)
    assert not damaged
    assert [prediction.path for prediction in apart] == paths
    np.testing.assert_allclose(
        [prediction.probabilities for prediction in apart],
        [prediction.probabilities for prediction in together],
        atol=1e-5,
    )


def test_predict_wants_an_exports_own_folder(monkeypatch, capsys, saved_model):
    monkeypatch.setattr("sys.argv", ["predict", "--saved_model", str(saved_model.parent), "a.jpg"])
    with pytest.raises(SystemExit):
        predict.main()
    assert "name an export's own folder" in capsys.readouterr().err


def test_labels_stand_beside_the_export(saved_model):
    assert predict.labels(saved_model) == ["daisy", "roses", "tulips"]


def test_export_is_float32_whatever_training_took(
    run_flags, tmp_path, finished_run, serve, photographs
):
    """The weights of a float32 run, exported by a run that asks for bfloat16."""
    shutil.copytree(finished_run[0], tmp_path / "run")
    flags = [*run_flags, f"--output_dir={tmp_path / 'run'}", "--use_bfloat16"]
    result = task.run(settings.parse(flags))
    other = tf.saved_model.load(result["saved_model"]).signatures["serving_default"]
    images = tf.constant([path.read_bytes() for path in photographs])
    np.testing.assert_array_equal(
        other(image_bytes=images)["probabilities"], serve(image_bytes=images)["probabilities"]
    )


def test_the_page_holds_pictures_and_figures(finished_run, tiny_csv, tmp_path):
    made = page.make(finished_run[0], tiny_csv.eval_csv, tmp_path, {"time <s>": "1 s"}, "A & B")
    text = made.read_text()
    assert "After 16 steps" in text
    assert "12 held-out" in text
    assert "time &lt;s&gt;" in text
    assert "A &amp; B" in text
    for name in ("predictions", "confusion", "learning_curves"):
        assert f"{name}.png" in text
        assert (tmp_path / f"{name}.png").stat().st_size > 5_000


def test_training_losses_are_read_back_by_step(finished_run):
    losses = page.training_losses(finished_run[0])
    history = [json.loads(line) for line in (finished_run[0] / "history.jsonl").open()]
    assert losses
    assert {step for step, _ in losses} <= set(range(history[-1]["step"] + 1))
    assert all(np.isfinite(loss) for _, loss in losses)


def _predict(monkeypatch, *arguments) -> int:
    monkeypatch.setattr("sys.argv", ["predict", *map(str, arguments)])
    return predict.main()


@pytest.mark.parametrize("name", ["kept.jpg", "kept.png"])
def test_predict_never_writes_over_a_photograph(
    monkeypatch, capsys, saved_model, photographs, tmp_path, name
):
    """`--output *.jpg` names the first photograph as the output."""
    photograph = tmp_path / name
    photograph.write_bytes(photographs[0].read_bytes())
    with pytest.raises(SystemExit):
        _predict(monkeypatch, "--saved_model", saved_model, "--output", photograph, photograph)
    assert "is there, and no output of this command" in capsys.readouterr().err
    assert photograph.read_bytes() == photographs[0].read_bytes()


def test_predict_leaves_out_a_pipe_and_a_file_of_gigabytes(
    monkeypatch, capsys, saved_model, tmp_path
):
    os.mkfifo(tmp_path / "pipe.jpg")
    with (tmp_path / "video.jpg").open("wb") as file:
        file.truncate(6 * 10**9)  # takes no room
    given = [tmp_path / "pipe.jpg", tmp_path / "video.jpg"]
    assert _predict(monkeypatch, "--saved_model", saved_model, *given) == 1
    said = capsys.readouterr().err
    assert "left out, a pipe or a device, not a file" in said and "larger than 1 GB" in said


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda export: (export / "saved_model.pb").write_bytes(b"no graph" * 9),
            "cannot be loaded",
        ),
        (lambda export: shutil.rmtree(export / "variables"), "cannot be loaded"),
        (lambda export: shutil.rmtree(export / "assets.extra"), "labels.txt cannot be read"),
        (
            lambda export: (export / "assets.extra" / "labels.txt").write_text("daisy\n"),
            "names 1 class and knows 3",
        ),
    ],
    ids=["graph", "variables", "labels", "fewer labels"],
)
def test_predict_names_a_damaged_export(
    monkeypatch, capsys, saved_model, photographs, tmp_path, change, message
):
    export = shutil.copytree(saved_model, tmp_path / "export")
    change(export)
    arguments = ["--saved_model", export, "--output", tmp_path / "p.png", photographs[0]]
    assert _predict(monkeypatch, *arguments) == 1
    assert message in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("signed", [True, False])
def test_predict_names_a_model_of_other_people(monkeypatch, capsys, photographs, tmp_path, signed):
    model = tf.Module()
    model.double = tf.function(lambda x: {"y": 2 * x}, input_signature=[tf.TensorSpec([None, 4])])
    tf.saved_model.save(model, str(tmp_path), signatures=model.double if signed else None)
    assert _predict(monkeypatch, "--saved_model", tmp_path, photographs[0]) == 1
    assert "is not an export of the flowers model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"run_dir": "none"}, "result.json: No such file"),
        ({"eval_csv": "none"}, "none: No such file"),
        ({"eval_csv": "absent.csv"}, "none of 1 photograph of"),
        ({"output_dir": "absent.csv"}, "absent.csv: File exists"),
        ({"facts": "absent.csv"}, "is not JSON"),
    ],
)
def test_the_page_names_what_it_cannot_use(
    monkeypatch, capsys, finished_run, tiny_csv, tmp_path, change, message
):
    (tmp_path / "absent.csv").write_text("absent.jpg,roses\n")
    given = {
        "run_dir": finished_run[0],
        "eval_csv": tiny_csv.eval_csv,
        "output_dir": tmp_path / "p",
    }
    given |= {name: tmp_path / path for name, path in change.items()}
    monkeypatch.setattr("sys.argv", ["page", *(f"--{name}={path}" for name, path in given.items())])
    assert page.main() == 1
    assert message in capsys.readouterr().err.splitlines()[-1]

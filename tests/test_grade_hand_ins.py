"""What classes hand in, as platforms and people name it: each gets its learner and lab, or a reason."""

import copy
import io
import json
import textwrap
import unicodedata
import zipfile
from pathlib import Path

import made_up_class
import pytest

from lab_utils.teach.grade import cells, submissions

NAME = made_up_class.NAME
TWO, THREE = "lab 2", "lab 3"
STATIC = "03_static_shapes.ipynb"


def lab(number, folder="solutions"):
    (path,) = (made_up_class.ROOT / folder).glob(f"{number:02d}_*.ipynb")
    return json.loads(path.read_text(encoding="utf-8"))


CONTENT = {2: json.dumps(lab(2)).encode(), 3: json.dumps(lab(3)).encode()}


def zipped(**files):
    return zipped_as(files)


def zipped_as(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def handed_in(folder, files):
    """Writes files; a number as content is that solved lab."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(CONTENT.get(content, content) if isinstance(content, int) else content)


def found_in(folder):
    found = {}
    for each in submissions.find(folder):
        told = each.problem or f"lab {each.lab}"
        found[each.learner] = f"{found[each.learner]}, {told}" if each.learner in found else told
    return found


def two(*names):
    return dict.fromkeys(names, 2)


GRADESCOPE = b"""---
submission_11:
  :submitters:
  - :name: Ann Lee
    :sid: '7'
    :email: ann@example.com
  - :name: Bob Ray
    :sid: '8'
  :created_at: 2026-11-20 14:33:12.000000000 Z
  :score: !ruby/object:BigDecimal 18:0.0
submission_12:
  :submitters:
  - :name: Zoe Ito
"""
BLACKBOARD = b"Name: Ann Lee (a_lee)\r\nAssignment: Lab 2\r\nDate Submitted: Friday\r\n"
LINK = b"[InternetShortcut]\r\nURL=https://colab.research.google.com/drive/1AbC?usp=sharing\r\n"
ACUTE = unicodedata.normalize("NFD", "Zoé Núñez")

CLASSES = {
    "a folder each": (two(f"ann/{NAME}", f"bob/lab/{NAME}"), {"ann": TWO, "bob": TWO}),
    "in one more folder, from a Mac": (
        two(f"all/ann/{NAME}", f"all/bob/{NAME}") | {f"all/__MACOSX/ann/._{NAME}": b"\0"},
        {"ann": TWO, "bob": TWO},
    ),
    "names beside the lab's": (
        two(f"all/ann_{NAME}", "all/02_four_changes_bob (1).ipynb"),
        {"ann": TWO, "bob": TWO},
    ),
    "one learner": (two(f"ann/{NAME}"), {"ann": TWO}),
    "names of one's own": (
        two(
            "ann lab two.ipynb",
            "bob.ipynb.txt",
            "Copy of 02 Four Changes - Cid Ray (2).ipynb",
            "Kopie von 02_four_changes_dora.ipynb",
            "HW2_Eve-Marie Poe_final_v3.ipynb",
            "02-four-changes-finn.ipynb.json",
            "gil_lab02-Copy1.ipynb",
        ),
        dict.fromkeys(("ann", "bob", "Cid Ray", "dora", "Eve-Marie Poe", "finn", "gil"), TWO),
    ),
    "Canvas": (
        two(
            f"learnerann_LATE_123_456_{NAME}",
            "learnerbob_124_457_02_four_changes-1.ipynb",
            "learnerbob_124_458_02_four_changes-2.ipynb",
        )
        | {"learnercid_125_text.html": b"<p>https://colab.research.google.com/drive/1x</p>"}
        | {"learnerdora_126_459_essay.pdf": b"%PDF"},
        {
            "learnerann": TWO,
            "learnerbob": TWO,
            "learnercid": "link (https://colab.research.google.com/drive/1x)",
            "learnerdora": "only learnerdora_126_459_essay.pdf",
        },
    ),
    "Moodle, two of one name": (
        two(f"Ann L_12_assignsubmission_file_/{NAME}", f"Ann L_13_assignsubmission_file_/{NAME}"),
        {"Ann L (12)": TWO, "Ann L (13)": TWO},
    ),
    "Moodle without folders": (two(f"Ann L_12_assignsubmission_file_{NAME}"), {"Ann L": TWO}),
    "Moodle 4, two assignments, ids of each": (
        two(f"C1-Lab 2-77/Ann L_12_assignsubmission_file/{NAME}")
        | {f"C1-Lab 3-78/Ann L_57_assignsubmission_file/{STATIC}": 3},
        {"Ann L": f"{TWO}, {THREE}"},
    ),
    "Moodle, online text beside files, a link alone, a group": (
        two(f"Ann L_12_assignsubmission_file_/{NAME}", f"Group A_99_assignsubmission_file_/{NAME}")
        | {
            "Ann L_12_assignsubmission_onlinetext_/onlinetext.html": b"<p>Please see my file.</p>",
            "Bob_14_assignsubmission_onlinetext_/onlinetext.html": b'<a href="https://colab.research.google.com/drive/1x">',
        },
        {"Ann L": TWO, "Bob": "ask for File > Download", "Group A": TWO},
    ),
    "Blackboard, two attempts, a name with an underscore": (
        two(
            f"Lab 2_a_lee_attempt_2026-11-20-14-33-12_{NAME}",
            f"Lab 2_a_lee_attempt_2026-11-21-09-00-00_{NAME}",
            f"Lab 2_bob7_attempt_2026-11-20-14-40-00_{NAME}",
        )
        | {"Lab 2_a_lee_attempt_2026-11-20-14-33-12.txt": BLACKBOARD},
        {"Ann Lee": TWO, "bob7": TWO},
    ),
    "Brightspace": (
        two(f"12345-678 - Ann Lee - Nov 20, 2026 233 PM/{NAME}") | {"index.html": b"<html>"},
        {"Ann Lee": TWO},
    ),
    "Gradescope with a group": (
        two(
            f"assignment_5_export/submission_11/{NAME}", f"assignment_5_export/submission_12/{NAME}"
        )
        | {"assignment_5_export/submission_metadata.yml": GRADESCOPE},
        {"Ann Lee": TWO, "Bob Ray": TWO, "Zoe Ito": TWO},
    ),
    "Google Classroom": (
        two("Ann Lee - 02_four_changes.ipynb", "Copy of Bob Ray - 02_four_changes.ipynb"),
        {"Ann Lee": TWO, "Bob Ray": TWO},
    ),
    "Teams": (
        two(f"Student Work/Ann Lee/Lab 2/Version 1/{NAME}", f"Student Work/Bob/Lab 2/{NAME}"),
        {"Ann Lee": TWO, "Bob": TWO},
    ),
    "Teams, its library": (
        two(
            f"Student Work/Submitted files/Ann Lee/Lab 2/Version 2/{NAME}",
            f"Student Work/Working files/Ann Lee/Lab 2/{NAME}",
            f"Student Work/Working files/Bob/Lab 2/{NAME}",
        ),
        {"Ann Lee": TWO, "Bob": TWO},
    ),
    "an archive or a folder each time": (
        two(f"Cid Ray hw2/{NAME}", f"Group 1/{NAME}", f"Group 2/{NAME}")
        | {f"Cid Ray hw3/{STATIC}": 3}
        | {
            f"ann_lab{number}.zip": zipped_as({name: CONTENT[number]})
            for number, name in ((2, NAME), (3, STATIC))
        },
        {"ann": f"{TWO}, {THREE}", "Cid Ray": f"{TWO}, {THREE}", "Group 1": TWO, "Group 2": TWO},
    ),
    "nbgrader": (
        two(f"submitted/ann/02/{NAME}", f"submitted/bob/02/{NAME}"),
        {"ann": TWO, "bob": TWO},
    ),
    "nbgrader's exchange": (
        two(
            f"ann+02+2026-11-20 14:33:12 UTC+Ab1/{NAME}", f"bob+02+2026-11-20 15:00:00 UTC+x/{NAME}"
        ),
        {"ann": TWO, "bob": TWO},
    ),
    "GitHub Classroom": (
        two(
            f"lab-02-submissions/lab-02-ann-lee/labs/{NAME}",
            f"lab-02-submissions/lab-02-bobray/{NAME}",
        )
        | {"lab-02-submissions/lab-02-bobray/README.md": b"# Lab"},
        {"ann-lee": TWO, "bobray": TWO},
    ),
    "groups of a lab": (
        two(f"Lab 2 Tue/ann/{NAME}", f"Lab 2 Tue/bob/{NAME}", f"Lab 2 Thu/cid/{NAME}")
        | two(f"Lab 2 Thu/dora/{NAME}"),
        {"ann": TWO, "bob": TWO, "cid": TWO, "dora": TWO},
    ),
    "sections of a class": (
        two(f"Section A/ann/{NAME}", f"Section B/bob/lab 2/{NAME}", f"Section B/cid/{NAME}"),
        {"ann": TWO, "bob": TWO, "cid": TWO},
    ),
    "groups that work together": (
        two(f"Group 1/ours/{NAME}", f"Group 2/{NAME}", f"Group 3/lab 2/{NAME}"),
        {"Group 1": TWO, "Group 2": TWO, "Group 3": TWO},
    ),
    "names that look like words": (
        two(
            f"labibaanna_123_456_{NAME}",
            "02_four_changes.ipynb - Colab.ipynb",
            "Doris Day lab2.ipynb",
        ),
        {"02_four_changes": TWO, "Doris Day": TWO, "labibaanna": TWO},
    ),
    "a folder each lab": (
        two("lab02/ann.ipynb", "lab02/Bob Ray.ipynb") | {"lab03/Ann.ipynb": 3},
        {"Ann": f"{TWO}, {THREE}", "Bob Ray": TWO},
    ),
    "a folder each lab, bare numbers, folders below": (
        two(f"02/ann/{NAME}") | {f"03/ann/{STATIC}": 3, f"03/bob/{STATIC}": 3},
        {"ann": f"{TWO}, {THREE}", "bob": THREE},
    ),
    "learners who are numbers": (
        two(f"01/{NAME}", f"02/{NAME}", f"03/{NAME}"),
        {"01": TWO, "02": TWO, "03": TWO},
    ),
    "zips in a zip": (
        {
            "class.zip": zipped_as(
                {
                    "ann.zip": zipped_as({f"work/{NAME}": CONTENT[2]}),
                    f"Bob_3_assignsubmission_file_{NAME}.zip": zipped_as({NAME: CONTENT[2]}),
                }
            )
        },
        {"ann": TWO, "Bob": TWO},
    ),
    "archives that cannot be opened": (
        two(f"cid/{NAME}")
        | {
            "ann/02.rar": b"Rar!",
            "bob/02.zip": b"PK\3\4 cut off",
            "dora/work.zip": zipped_as({"a.pdf": b"%PDF"}),
        },
        {
            "ann": "cannot be opened here: unpack it",
            "bob": "damaged archive",
            "cid": TWO,
            "dora": "only a.pdf",
        },
    ),
    "letters of all kinds, of Mac and of others": (
        two(f"lab02/{ACUTE}/{NAME}", f"lab02/王小明/{NAME}")
        | {f"lab03/{unicodedata.normalize('NFC', ACUTE)}/{STATIC}": 3},
        {unicodedata.normalize("NFC", ACUTE): f"{TWO}, {THREE}", "王小明": TWO},
    ),
    "links in place of files": (
        two(f"cid/{NAME}")
        | {"ann/lab02.url": LINK, "bob/readme.md": b"see https://github.com/bob/labs"},
        {
            "ann": "link (https://colab.research.google.com/drive/1AbC?usp=sharing)",
            "bob": "link (https://github.com/bob/labs)",
            "cid": TWO,
        },
    ),
    "what is no notebook": (
        two(f"zoe/{NAME}")
        | {
            f"a/{NAME}": b"",
            f"b/{NAME}": CONTENT[2][: len(CONTENT[2]) // 2],
            f"c/{NAME}": b"<!DOCTYPE html><html><body>Sign in</body></html>",
            f"d/{NAME}": b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n",
            f"e/{NAME}": b'{"cells": [\n<<<<<<< HEAD\n]}',
            f"f/{NAME}": b"[" * 100_000,
            f"g/{NAME}": b"[]",
            f"h/{NAME}": b'{"cells": []}',
            f"i/{NAME}": b'{"cells": [{"cell_type": "code", "source": "# TODO 77a: x"}]}',
            "j/02_four_changes.ipynb - Colab.pdf": b"%PDF",
            "k/lab.html": b'<html><body class="jp-Notebook">',
        },
        {
            "a": "is empty",
            "b": "is cut off",
            "c": "web page",
            "d": "Git LFS",
            "e": "merge conflict",
            "f": "JSON cannot be read",
            "g": "has no cells",
            "h": "names no TODO",
            "i": "lab 77, which there is not",
            "j": "only 02_four_changes.ipynb - Colab.pdf",
            "k": "page made from the notebook",
            "zoe": TWO,
        },
    ),
}


@pytest.mark.parametrize("habit", CLASSES)
def test_whose_and_which_lab(habit, tmp_path):
    files, wanted = CLASSES[habit]
    handed_in(tmp_path, files)
    found = found_in(tmp_path)
    assert list(found) == list(wanted)
    assert not {who: found[who] for who, told in wanted.items() if told not in found[who]}


def test_a_learner_who_handed_in_nothing_has_a_row(tmp_path):
    handed_in(tmp_path, two(f"ann/{NAME}"))
    (tmp_path / "bob").mkdir()
    assert found_in(tmp_path) == {"ann": TWO, "bob": "holds no notebook (.ipynb)"}
    with pytest.raises(ValueError, match="holds no notebook"):
        submissions.find(tmp_path / "bob")


@pytest.mark.parametrize("above", ["", "course101/"])
def test_of_an_nbgrader_course_what_was_submitted_counts(above, tmp_path):
    made = two(*(f"{above}{kind}/ann/02/{NAME}" for kind in ("submitted", "autograded")))
    made |= two(f"{above}source/02/{NAME}", f"{above}release/02/{NAME}")
    handed_in(tmp_path, made | {f"{above}gradebook.db": b"", f"{above}submitted/bob/02/{NAME}": 2})
    assert found_in(tmp_path) == {"ann": TWO, "bob": TWO}


def test_an_archive_can_be_the_class(tmp_path):
    handed_in(tmp_path, {"class.zip": zipped_as({f"ann/{NAME}": CONTENT[2]})})
    assert found_in(tmp_path / "class.zip") == {"ann": TWO}


class _OldName(zipfile.ZipInfo):
    """Its name stands in the archive in the letters of DOS, and nothing says which."""

    def _encodeFilenameFlags(self):
        return self.filename.encode("cp850"), self.flag_bits & ~0x800


def test_names_in_an_archive_that_windows_wrote(tmp_path):
    names = ["Groß Jürgen", "Søren Ávila", "Zoë"]
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        for name in names:
            archive.writestr(_OldName(f"{name}/Übung 2.ipynb"), CONTENT[2])
    assert found_in(tmp_path / "class.zip") == dict.fromkeys(names, TWO)


def test_a_copy_of_the_whole_course_counts_what_was_worked_on(tmp_path):
    untouched = {f"ann/labs/{n}.ipynb": json.dumps(lab(n, "labs")).encode() for n in (0, 2, 4)}
    handed_in(
        tmp_path,
        untouched | {f"ann/labs/{STATIC}": 3, f"bob/{NAME}": untouched["ann/labs/2.ipynb"]},
    )
    assert found_in(tmp_path) == {"ann": THREE, "bob": TWO}


def test_what_a_notebook_says_of_its_learner_where_its_name_does_not(tmp_path):
    made = lab(2)
    made["cells"][3]["metadata"] = {"executionInfo": {"user": {"displayName": "Ann Lee"}}}
    handed_in(tmp_path, {"Copy of 02_four_changes.ipynb": json.dumps(made).encode(), NAME: 2})
    (named, other) = sorted(submissions.find(tmp_path), key=lambda each: len(each.remarks))
    assert named.learner == "Ann Lee"
    assert other.learner == "02_four_changes" and "gives no learner" in other.remarks[0]


def test_copied_work_and_todos_of_another_release_are_remarked(tmp_path):
    made = made_up_class.changed(lab(2), "    loop =", "    often =")
    own = made_up_class.changed(lab(2), "    loop =", "    # TODO 2g: more\n    rounds =")
    handed_in(
        tmp_path,
        {
            f"ann/{NAME}": json.dumps(made).encode(),
            f"bob/{NAME}": json.dumps(made).encode(),
            f"cid/{NAME}": json.dumps(own).encode(),
        },
    )
    ann, bob, cid = submissions.find(tmp_path)
    assert ann.remarks == ("the same code as bob",) and bob.remarks == ("the same code as ann",)
    assert "TODO 2g" in cid.remarks[0]


def test_a_name_with_a_number_behind_it_is_asked_about(tmp_path):
    """An upload again, by some systems, or a second learner of that name, by others."""
    handed_in(tmp_path, two(f"Zoë/{NAME}", f"Zoë (1)/{NAME}", f"Ann (1)/{NAME}"))
    told = {each.learner: "; ".join(each.remarks) for each in submissions.find(tmp_path)}
    assert told["Zoë (1)"].endswith("one learner with Zoë, or two?")
    assert "or two" not in told["Zoë"] + told["Ann (1)"]


def test_python_files_beside_a_notebook_come_along(tmp_path):
    handed_in(tmp_path, {f"ann/{NAME}": 2, "ann/helpers.py": b"SIZE = 3\n", "bob/helpers.py": b"x"})
    ann, bob = submissions.find(tmp_path)
    assert ann.beside == (("helpers.py", "SIZE = 3\n"),) and "only helpers.py" in bob.problem


def test_documents_beside_a_notebook_are_named_for_a_person_to_read(tmp_path):
    beside = dict.fromkeys(("essay.pdf", "b.docx", "photo.HEIC", "c.md"), b"%PDF")
    kept_back = dict.fromkeys(("README.md", "plot.png", "train.csv", "flowers/1.jpg"), b"x")
    files = {f"ann/{name}": content for name, content in (beside | kept_back).items()}
    moodle = "Bob_12_assignsubmission_"
    files |= {f"{moodle}onlinetext_/onlinetext.html": b"<p>My answer: 42.</p>"}
    handed_in(tmp_path, two(f"ann/{NAME}", f"{moodle}file_/{NAME}", f"cid/{NAME}") | files)
    told = {each.learner: each.remarks[:-1] for each in submissions.find(tmp_path)}
    said = "handed in beside it, for you to read: "
    assert told == {
        "ann": (f"{said}b.docx, c.md, essay.pdf and 1 more",),
        "Bob": (f"{said}onlinetext.html",),
        "cid": (),
    }


def test_a_todo_in_a_text_cell_is_remarked(tmp_path):
    made = lab(2)
    cell = made_up_class.cell_with(made, "# TODO 2c")
    cell["cell_type"] = "markdown"
    handed_in(tmp_path, {f"ann/{NAME}": json.dumps(made).encode(), f"bob/{NAME}": 2})
    ann, bob = submissions.find(tmp_path)
    assert ann.remarks == ("TODO 2c stands in a text cell, which is not run",)
    assert not bob.remarks


def code_of(made):
    return [c for c in made["cells"] if c["cell_type"] == "code"]


def as_nbformat_3(made):
    old = [
        {"cell_type": "code", "language": "python", "input": c["source"], "outputs": []}
        if c["cell_type"] == "code"
        else {"cell_type": c["cell_type"], "source": c["source"]}
        for c in made["cells"]
    ]
    return {"nbformat": 3, "worksheets": [{"cells": old, "metadata": {}}], "metadata": {}}


def without_ids(made):
    for cell in made["cells"]:
        cell.pop("id")
    return made | {"nbformat_minor": 0}


def merged(made):
    """All code in one cell."""
    text = "\n\n".join("".join(c["source"]) for c in code_of(made))
    return {"cells": [made_up_class.code_cell(text)], "nbformat": 4}


def split(made):
    """Each statement of the top level in a cell of its own."""
    small = []
    for cell in code_of(made):
        source = "".join(cell["source"])
        tree = cells.parts.tree(source)
        small += [made_up_class.code_cell(cells.parts.segment(source, n)) for n in tree.body]
    return {"cells": small, "nbformat": 4}


def script(made, marker="\n\n# In[ ]:\n\n\n"):
    return "#!/usr/bin/env python\n" + "".join(
        marker + "".join(c["source"])
        if c["cell_type"] == "code"
        else "\n\n# " + "".join(c["source"]).replace("\n", "\n# ")
        for c in made["cells"]
    )


def colab_script(made):
    return '"""Copy of 02_four_changes.ipynb\n\nAutomatically generated by Colab.\n"""\n' + "".join(
        "\n\n" + "".join(c["source"])
        if c["cell_type"] == "code"
        else '\n\n"""' + "".join(c["source"]).replace("\\", "\\\\").replace('"""', "'''") + '\n"""'
        for c in made["cells"]
    )


def huge(made):
    code_of(made)[3]["outputs"] = [{"output_type": "stream", "text": "x" * 2**24}]
    return made


def answers(made, change):
    """With each code cell changed that is an answer."""
    for cell in code_of(made):
        if cell["id"] in ANSWERS:
            cell["source"] = change("".join(cell["source"]))
    return made


def indented_below(head):
    return lambda text: head + "\n" + textwrap.indent(text, "    ")


STARTERS = [c for c in code_of(lab(2, "labs")) if c["metadata"].get("nbgrader", {}).get("solution")]
ANSWERS = {c["id"] for c in STARTERS}
FORMS = {
    "timed": (lambda made: answers(made, "%%time\n{}".format), ".ipynb"),
    "old attempts in comments": (
        lambda made: answers(made, lambda text: "#" + text.replace("\n", "\n#") + "\n\n" + text),
        ".ipynb",
    ),
    "ends of lines as on Windows": (
        lambda made: answers(made, lambda text: text.replace("\n", "\r\n")),
        ".ipynb",
    ),
    "only where it runs": (lambda made: answers(made, indented_below("if True:")), ".ipynb"),
    "with the starters left below": (
        lambda made: made | {"cells": [*made["cells"], *STARTERS]},
        ".ipynb",
    ),
    "as it is": (lambda made: made, ".ipynb"),
    "nbformat 3": (as_nbformat_3, ".ipynb"),
    "without ids of cells": (without_ids, ".ipynb"),
    "merged into one cell": (merged, ".ipynb"),
    "split into statements": (split, ".ipynb"),
    "with huge outputs": (huge, ".ipynb"),
    "Python by nbconvert": (script, ".py"),
    "Python of VS Code": (lambda made: script(made, "\n\n# %%\n"), ".py"),
    "Python of Colab": (colab_script, ".py"),
    "UTF-16": (lambda made: json.dumps(made).encode("utf-16"), ".ipynb"),
    "with a byte order mark": (lambda made: json.dumps(made).encode("utf-8-sig"), ".ipynb"),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_answers_are_found_and_experiments_left_out_in_each_form(form, tmp_path):
    make, suffix = FORMS[form]
    made = make(copy.deepcopy(lab(2)))
    made = json.dumps(made) if isinstance(made, dict) else made
    data = made.encode() if isinstance(made, str) else made
    handed_in(tmp_path, {f"ann/{Path(NAME).stem}{suffix}": data})
    (found,) = submissions.find(tmp_path)
    assert not found.problem
    plan = cells.plan(found.lab, found.code)
    assert {id for cell in plan.cells for id in cell.todos} == set(made_up_class.TODOS)
    code = "\n".join(cell.source for cell in plan.cells)
    assert "NotImplementedError" not in code, "a starter"
    assert "train_input, max_steps" not in code, "an experiment"
    assert "load_digits()" not in code, "a given cell"


def test_parts_of_a_merged_cell_have_names_and_line_numbers_of_their_own():
    plan = cells.plan(2, ["x = 1", "\n\n".join(each for each in merged_code())])
    labels = [cell.label for cell in plan.cells]
    assert labels[0] == "1" and len(set(labels)) == len(labels) > 10
    whole = "\n\n".join(merged_code()).splitlines()
    for cell in plan.cells[1:]:
        if cell.todos:
            assert cell.source.splitlines()[-1] == whole[len(cell.source.splitlines()) - 1]


def merged_code():
    return ["".join(c["source"]) for c in code_of(lab(2))]

"""Words that the project does without: plain ones, and those of the field, stand in their place."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES = (
    "lab_utils/**/*.py",
    "lab_utils/dry_run/rules/*.md",
    "solutions/instructor/*.*",
    "README.md",
    "lab_utils/**/README.md",
    "tests/benchmarks/README.md",
    "CONTRIBUTING.md",
)

# What is avoided, and what takes its place.
AVOIDED = {
    r"mend(s|ed|ing)?": "fix",
    r"anew": "again",
    r"rightly": "correctly",
    r"amiss": "wrong",
    r"heed": "follow",
    r"in vain": "without success",
    r"(?<!there )is no [a-z`]": "is not a",
    r"matrix products?": "matmul",
    r"core's program": "replica",
    r"memory traffic": "HBM traffic",
    r"front door": "frontend",
    r"summed over the cores": "all-reduced",
}


def test_words_that_are_avoided():
    found = []
    for pattern in PLACES:
        for path in sorted(ROOT.glob(pattern)):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                for word, better in AVOIDED.items():
                    if hit := re.search(rf"\b{word}", line, re.I):
                        where = f"{path.relative_to(ROOT)}:{number}"
                        found.append(f"{where}: {hit[0]!r}; better: {better}")
    assert not found, "\n".join(found)


def test_the_glossary_holds_words_that_the_course_uses_in_their_order():
    """A word that nothing uses explains nothing."""
    glossary = (ROOT / "labs/glossary.md").read_text(encoding="utf-8")
    entries = re.findall(r"^\*\*(.+?):\*\*", glossary, re.M)
    assert entries == sorted(entries, key=str.lower)
    pages = [*ROOT.glob("solutions/source/*.ipynb"), *ROOT.glob("lab_utils/dry_run/rules/*.md")]
    used = " ".join(path.read_text(encoding="utf-8") for path in pages).lower()
    assert not [entry for entry in entries if entry.split(",")[0].lower() not in used]

"""Where the photographs are: bundled, downloaded, drawn, or a folder of one's own.

Each way ends in a `Photos`: a train.csv and an eval.csv of rows `path,label`, and a labels.txt, as
`python -m lab_utils.convert` takes them.
"""

from lab_utils.datasets.baseline import Baseline, histogram_baseline
from lab_utils.datasets.download import download_flower_photos
from lab_utils.datasets.photos import (
    DatasetError,
    Photos,
    bundled,
    classes,
    from_folder,
    play,
)

__all__ = [
    "Baseline",
    "DatasetError",
    "Photos",
    "bundled",
    "classes",
    "download_flower_photos",
    "from_folder",
    "histogram_baseline",
    "play",
]

"""The bundled text: one play of Shakespeare's."""

from lab_utils.datasets.photos import files_folder


def play() -> str:
    """William Shakespeare, As You Like It: 125,179 characters of ASCII, with tabs and newlines.

    Raises:
        DatasetError: the package was installed without its data.
    """
    return (files_folder() / "shakespeare" / "as_you_like_it.txt").read_text(encoding="ascii")

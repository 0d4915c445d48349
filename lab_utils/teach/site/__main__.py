"""`python -m lab_utils.teach.site`: the sources of the site, and links in what Jupyter Book makes."""

import argparse
import sys
from collections.abc import Sequence

from lab_utils.common import command, files


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 2 where something is missing."""
    from lab_utils.teach import site  # here, so that `command` can tell what is missing

    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.teach.site", description=site.__doc__
    )
    what = parser.add_mutually_exclusive_group(required=True)
    source, link = "write the book's sources here", "link the rules in the pages built here"
    what.add_argument("--source", type=files.path_argument, help=source)
    what.add_argument("--link", type=files.path_argument, help=link)
    options = parser.parse_args(arguments)
    try:
        if options.source:
            site.write_source(options.source)
        else:
            count = site.link_rules(options.link)
            print(f"{count} findings linked: open {options.link / 'index.html'}")
    except OSError as error:
        print(f"site: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    command.run(main)

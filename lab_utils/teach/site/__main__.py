"""`python -m lab_utils.teach.site`: the sources of the site, and links in what Jupyter Book makes."""

import argparse
import sys
from collections.abc import Sequence

from lab_utils.check import overview
from lab_utils.common import command, files
from lab_utils.dry_run import rules


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 2 where something is missing."""
    from lab_utils.teach import site  # here, so that `command` can tell what is missing

    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.teach.site", description=site.__doc__
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--source", type=files.path_argument, help="write the book's sources here")
    what.add_argument(
        "--link", type=files.path_argument, help="link the rules in the pages built here"
    )
    options = parser.parse_args(arguments)
    try:
        if options.source:
            site.write_source(options.source)
            print(f"{len(overview.labs())} labs, {len(rules.catalogue())} rules: {options.source}")
        else:
            print(
                f"{site.link_rules(options.link)} findings linked: open {options.link / 'index.html'}"
            )
    except OSError as error:
        print(f"site: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    command.run(main)

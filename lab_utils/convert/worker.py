"""A worker process of Beam's local runner that ends when the process that started it does.

    python -m lab_utils.convert.worker PARENT

PARENT is the process id of the launcher. Beam's own worker notices the end of a killed launcher after up to
20 seconds only, and converts on until then.
"""

import os
import sys
import threading
import time

_POLL_SECONDS = 0.2


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with, args=(int(sys.argv.pop(1)),), daemon=True).start()
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main(sys.argv)

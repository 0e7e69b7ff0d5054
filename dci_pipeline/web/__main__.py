"""`python -m dci_pipeline.web PORT`: the site on loopback, as `dci up` starts it."""

import contextlib
import signal
import sys

from dci_pipeline.settings import load_settings
from dci_pipeline.web.serve import PORT, serve

if __name__ == "__main__":
    # The server raises its signal again once it has stopped; as an interrupt it lets the stores be given back.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        serve(load_settings(), port=int(sys.argv[1]) if len(sys.argv) > 1 else PORT)

"""A program that holds a temporary file until it is ended; with `named`, one that has a name."""

import sys
import time
from pathlib import Path

from opendp_bayes.trusted import temporary_files

if __name__ == "__main__":
    if "named" in sys.argv:
        temporary_files._OPEN_FILES = Path("/nowhere")
    file = temporary_files.TemporaryFile()
    file.path.write_text("somebody's record")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        time.sleep(60.0)

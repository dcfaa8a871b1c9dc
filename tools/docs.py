"""Build the site into _docs/: warnings are errors, nothing is fetched, `_docs/index.html` opens without a server."""

import os
import sys

from notebook import ROOT
from sphinx.cmd.build import main

OPTIONS = ["-W", "--keep-going", "-n", "-q", "-b", "html", "-c", "docs", "-d", ".cache/doctrees"]

if __name__ == "__main__":
    os.chdir(ROOT)
    status = main([*OPTIONS, *sys.argv[1:], "nbs", "_docs"])
    print(f"site: {ROOT / '_docs' / 'index.html'}" if status == 0 else "the site has warnings, see above")
    sys.exit(status)

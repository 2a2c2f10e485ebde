"""Reads pages of the documentation with the Streamgauge of the Python that runs this: each block is run as it stands.

``python -m tests.installation.reading PAGE...`` from the root of the checkout; the pages are run in a temporary folder.
The exit code is 0 when every block did what its page says; else the first that did not is printed.
"""

import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import streamgauge
from tests.cli.pages.markdown import page_blocks
from tests.cli.pages.reading import ROOT, MissingProgramError, read_page
from tests.cli.pages.shell import Shell


def main(pages: list[str]) -> int:
    """Read each page in a folder of its own; the number of pages that do otherwise than they say."""
    if Path(streamgauge.__file__).is_relative_to(ROOT / "src"):
        print("this is the checkout's Streamgauge, not an installed one")
        return 2
    return sum(not _read(Path(page)) for page in pages)


def _read(page: Path) -> bool:
    began = time.monotonic()
    programs = str(Path(sys.executable).parent)
    with TemporaryDirectory(prefix="streamgauge-reader-") as home:
        Path(home, "reader").mkdir()
        environment = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        shell = Shell(Path(home, "reader"), Path(home), environment)
        try:
            read_page(page_blocks(page), shell, proven=False)
            shell.close()
        except MissingProgramError as error:
            print(f"  {page.name}: not read: {error}")
        except AssertionError as error:
            print(f"  {page.name}: {error}")
            return False
        finally:
            shell.close()
    print(f"  {page.name}: as written, {time.monotonic() - began:.0f} s")
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

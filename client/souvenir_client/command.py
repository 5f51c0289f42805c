"""The entry point `souvenir`; without the extra `cli` it prints how to install it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from io import TextIOWrapper

NEEDED = ("click", "rich")


def main() -> None:
    """Run the command line of this process, and end the process."""
    if any(find_spec(name) is None for name in NEEDED):
        sys.stderr.write('The command line needs an extra: pip install "souvenir-client[cli]"\n')
        # Exit status 2 of a hook makes an editor block the action.
        sys.exit(1 if sys.argv[1:2] == ["hook"] else 2)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Characters that the output cannot encode are escaped.
            stream.reconfigure(errors="backslashreplace")
    try:
        from souvenir_client.cli.root import souvenir

        souvenir.main()
    except KeyboardInterrupt:  # before the first command could begin
        sys.exit(130)


if __name__ == "__main__":
    main()

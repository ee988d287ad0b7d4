"""`python -m leadline`: the program, where its command is not on the path."""

from __future__ import annotations

from leadline.apps.cli.entry import main

if __name__ == "__main__":
    main()

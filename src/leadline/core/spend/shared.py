"""The seam of lines that several processes of one machine stand in together."""

from __future__ import annotations

from leadline.kernel.services import Service


class SharedLines(Service, key="shared_lines"):
    """Lines of all processes that use one home directory."""

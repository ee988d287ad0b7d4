"""`leadline verify`: does a bundle still hold?"""

from __future__ import annotations

from pathlib import Path

import msgspec

from leadline.apps.cli.exits import Exit, Quit, told
from leadline.apps.cli.streams import document, visible
from leadline.research.bundle.archive import BundleTooLarge, NotABundle
from leadline.research.bundle.verify import Verification, verify_bundle


def run_verify(bundle: Path, *, expect: str | None, as_json: bool) -> Exit:
    """Print what the check found; exit code 0 good, 1 does not hold, 2 not a bundle.

    Raises:
        Quit: the file is no bundle or cannot be read.
    """
    try:
        found = verify_bundle(bundle, expect)
    except (NotABundle, BundleTooLarge) as error:
        raise Quit(Exit.USAGE, told(error)) from error
    except OSError as error:
        raise Quit(Exit.USAGE, f"{bundle}: cannot be read: {error.strerror or error}") from error
    if as_json:
        document(msgspec.json.encode({"ok": found.ok, **msgspec.to_builtins(found)}))
    else:
        document(visible(_lines(bundle, found)))
    return Exit.DONE if found.ok else Exit.FAILED


def _lines(bundle: Path, found: Verification) -> str:
    counts = ", ".join(f"{count} {name}" for name, count in found.counts.items())
    lines = [f"{bundle}: {'holds' if found.ok else 'does not hold'}"]
    lines += [f"  run {found.run}, {found.status}"] if found.run else []
    lines += [f"  {counts}"] if counts else []
    lines += [f"  as recorded, not repeated: {one}" for one in found.recorded]
    lines += [f"  problem: {one}" for one in found.problems]
    lines.append(f"  sha256 {found.digest}")
    if found.ok:
        lines.append(
            "  This shows that nothing was changed; who made it is for you to know (compare with --expect)."
        )
    return "\n".join(lines)

"""``python -m leadline.testing.provider_server --script FILE --port-file FILE``."""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

import anyio

from leadline.testing.provider_server.script import Script
from leadline.testing.provider_server.server import ProviderServer


async def serve(script_file: Path, port_file: Path) -> None:
    """Play the script until SIGTERM or SIGINT; the port is in ``port_file`` once it listens."""
    script, settings = Script.read(script_file)
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with ProviderServer(
            script,
            latency_s=settings.latency_s,
            strict=settings.strict,
            limits=settings.limits,
            window=settings.window,
            prices=settings.prices,
            lie=settings.lie,
            caching=settings.caching,
        ) as server:
            draft = port_file.with_name(port_file.name + ".new")
            draft.write_text(f"{server.port}\n", encoding="utf-8")
            os.replace(draft, port_file)  # noqa: PTH105  the rename is what readers wait for
            async for _ in signals:
                return


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(prog="python -m leadline.testing.provider_server")
    parser.add_argument(
        "--script", type=Path, required=True, help="JSON: a list of replies, or a script object"
    )
    parser.add_argument("--port-file", type=Path, required=True, help="file that receives the port")
    args = parser.parse_args()
    anyio.run(serve, args.script, args.port_file)


if __name__ == "__main__":
    main()

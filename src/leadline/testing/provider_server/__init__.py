"""A model provider on loopback that plays a script of replies and faults over real HTTP."""

from __future__ import annotations

from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.counting import ServerPrice
from leadline.testing.provider_server.limits import ServerLimits, ServerWindow
from leadline.testing.provider_server.responders import fickle, wavering
from leadline.testing.provider_server.script import Script
from leadline.testing.provider_server.server import ProviderServer, Received

__all__ = [
    "Behaviour",
    "CallSpec",
    "ProviderServer",
    "Received",
    "Script",
    "ServerLimits",
    "ServerPrice",
    "ServerWindow",
    "fickle",
    "wavering",
]

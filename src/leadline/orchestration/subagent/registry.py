"""The drivers that are mounted, and the one door through which children are started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.orchestration.subagent.errors import DuplicateDriver, UnknownDriver, UnsupportedCapability
from leadline.orchestration.subagent.seam import Subagents

if TYPE_CHECKING:
    from leadline.kernel.context import Context
    from leadline.orchestration.subagent.seam import SubagentDriver, SubagentRequest, SubagentRun


class SubagentDrivers(Subagents):
    """See `Subagents`."""

    def __init__(self) -> None:
        self._drivers: dict[str, SubagentDriver] = {}

    def register(self, ctx: Context, driver: SubagentDriver) -> None:
        """See `Subagents.register`."""
        if driver.name in self._drivers:
            raise DuplicateDriver(driver.name)
        self._drivers[driver.name] = driver
        ctx.defer(f"subagent driver {driver.name}", lambda: self._drivers.pop(driver.name, None) and None)

    async def start(self, request: SubagentRequest) -> SubagentRun:
        """See `Subagents.start`."""
        return await self._driver(request).start(request)

    async def resume(self, request: SubagentRequest, session_id: str) -> SubagentRun:
        """See `Subagents.resume`."""
        return await self._driver(request).resume(request, session_id)

    def _driver(self, request: SubagentRequest) -> SubagentDriver:
        driver = self._drivers.get(request.driver)
        if driver is None:
            raise UnknownDriver(request.driver, sorted(self._drivers))
        lacking = [it for it in request.capabilities if it not in driver.capabilities]
        if lacking:
            raise UnsupportedCapability(driver.name, lacking)
        return driver

"""Says how much of a tool result goes into a model's window; the rest goes to the blob store (`core/tools/budget.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ConfigDict, Field

from leadline.core.config import ConfigParser
from leadline.core.llm.adapter import Models, ModelsError
from leadline.core.llm.request import ModelRef
from leadline.core.session.codec import Logged
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.events import AssistantSaid, RequestHeader
from leadline.core.session.log import Session
from leadline.core.tools.budget import ResultRoom, Room
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.registry import ToolRegistry
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin

RECALL = "recall"
"""Name of the tool that reads back what a model does not see."""

LEAST_TOKENS = 256
"""What is shown of a result in however small a window."""


class SpillConfig(BaseModel):
    """How much of a tool result a model reads. The number of characters is `max_result_chars` of the row `tools`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    share: float = Field(default=0.15, gt=0, le=1)
    """Part of the model's window that one result may fill; where the window is not known, characters alone count."""

    step_share: float = Field(default=0.5, gt=0, le=1)
    """Part of the window that the results of one answer may fill together; each gets an equal part of it."""


class WindowRoom(ResultRoom):
    """Room for results by the window of the model that reads them."""

    def __init__(self, models: Models, registry: ToolRegistry, config: SpillConfig) -> None:
        self._models = models
        self._registry = registry
        self._config = config
        self._followed: WeakKeyDictionary[Session, _Followed] = WeakKeyDictionary()

    def room(self, call: ToolInvocation, most: int) -> Room:
        """As much as `most` characters and the shares of the window allow.

        A call that another tool made answers no model, so that only characters count.
        """
        tool = RECALL if self._registry.find(RECALL, call.scope) is not None else ""
        if call.session is None or call.parent is not None:
            return Room(most, None, tool)
        followed = self._followed.setdefault(call.session, _Followed())
        followed.advance(call.session)
        window = None if followed.model is None else window_of(self._models, followed.model)
        if window is None:
            return Room(most, None, tool)
        share = min(self._config.share, self._config.step_share / followed.calls_at_once)
        return Room(most, max(LEAST_TOKENS, int(window * share)), tool)


@dataclass
class _Followed:
    """What is known of one log, as far as it was followed; asking again costs what is new in it."""

    model: ModelRef | None = None
    next: int = 0
    said: Logged | None = None
    """The latest answer."""
    _calls: int | None = None

    def advance(self, session: Session) -> None:
        for line in session.since(self.next):
            if line.type == RequestHeader.TYPE:
                header = session.event(line)
                self.model = header.config.model if isinstance(header, RequestHeader) else self.model
            elif line.type == AssistantSaid.TYPE:
                self.said, self._calls = line, None
        self.next = len(session)

    @property
    def calls_at_once(self) -> int:
        """How many calls the latest answer made."""
        if self._calls is None:
            try:
                said = None if self.said is None else self.said.as_(AssistantSaid)
            except EventUndecodable:
                said = None
            self._calls = max(1, len(said.message.tool_calls)) if said is not None else 1
        return self._calls


def model_of(session: Session) -> ModelRef | None:
    """The model that the latest request of a session went to; None before there was one."""
    header = session.last(RequestHeader)
    return None if header is None else header.config.model


def window_of(models: Models, model: ModelRef) -> int | None:
    """Tokens that a model takes, prompt and answer together; None where nobody knows."""
    try:
        return models.adapter(model.provider).info(model.model).context_window
    except ModelsError:
        return None


async def _apply(ctx: Context, config: SpillConfig) -> None:
    ctx.provide(ResultRoom, WindowRoom(ctx.get(Models), ctx.get(ToolRegistry), config))


plugin: Plugin[SpillConfig] = Plugin(
    "window.spill",
    _apply,
    config=ConfigParser(SpillConfig),
    needs=(Models, ToolRegistry),
    provides=(ResultRoom,),
)

"""What a system prompt is made of, and that nothing moves its bytes without a reason."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import permutations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.llm.request import ToolSchema
from leadline.core.prompt.epoch import Epoch
from leadline.core.prompt.errors import BadTemplate, PromptError, UnknownVariable
from leadline.core.prompt.plugin import plugin
from leadline.core.prompt.sections import PromptSections
from leadline.core.prompt.snapshot import CLEARED, HEADING, ContextSnapshot, snapshot_of
from leadline.core.prompt.template import parse_template
from leadline.core.tools.registry import ToolRegistry
from leadline.core.tools.spec import Tool
from leadline.kernel.context import Context, Kernel, Report
from leadline.kernel.errors import DuplicateName, UnknownName
from leadline.kernel.plugin import Plugin
from leadline.kernel.scope import Scope

pytestmark = pytest.mark.anyio


@pytest.fixture
async def root() -> AsyncIterator[Context]:
    async with Kernel(on_report=lambda report: None) as kernel:
        yield kernel.root


@pytest.fixture
def prompt() -> PromptSections:
    return PromptSections()


def schema(name: str) -> ToolSchema:
    return ToolSchema(name, f"{name}.", {"type": "object"})


# sections


async def test_sections_stand_in_order_then_by_name(root: Context, prompt: PromptSections) -> None:
    prompt.section(root, "zeta", 0, "Z\n")
    prompt.section(root, "guide", 100, "\nG")
    prompt.section(root, "identity", -100, "I")
    prompt.section(root, "alpha", 0, "A")
    prompt.section(root, "empty", 5, "  \n")
    assert prompt.assemble(None).system == "I\n\nA\n\nZ\n\nG"


@pytest.mark.case("K10")
async def test_the_order_of_mounting_changes_no_byte() -> None:
    seen: set[tuple[str, bytes, str]] = set()
    for order in permutations(["b", "a", "B", "c"]):
        async with Kernel() as kernel:
            prompt = PromptSections()
            for name in order:
                prompt.section(kernel.root, name, 0, f"text of {name}")
            made = prompt.assemble(None, [schema(name) for name in order])
            seen.add((made.system, msgspec.json.encode(made.tools), made.digest))
    assert len(seen) == 1


async def test_a_scope_shadows_a_section_and_hides_it_from_others(
    root: Context, prompt: PromptSections
) -> None:
    agent = Scope(label="agent")
    prompt.section(root, "persona", 0, "Everybody's.")
    prompt.section(root.scoped(agent), "persona", 0, "Mine.")
    assert prompt.assemble(agent).system == "Mine."
    assert prompt.assemble(None).system == "Everybody's."
    with pytest.raises(DuplicateName, match="persona"):
        prompt.section(root, "persona", 0, "Again.")


async def test_a_scope_may_leave_out_what_it_inherits(root: Context, prompt: PromptSections) -> None:
    agent = Scope(label="agent")
    prompt.section(root, "persona", 0, "P")
    prompt.section(root, "guide", 100, "G")
    prompt.restrict(root.scoped(agent), allow=["persona"])
    assert prompt.assemble(agent).system == "P"
    with pytest.raises(UnknownName, match="guide"):
        prompt.restrict(root.scoped(agent), deny=["giude"])


async def test_guidance_for_a_tool_goes_with_the_tool(root: Context, prompt: PromptSections) -> None:
    prompt.section(root, "search", 100, "How to search.", for_tool="search")
    assert prompt.assemble(None, [schema("search")]).system == "How to search."
    assert prompt.assemble(None, [schema("read")]).system == ""


# variables


async def test_a_variable_is_replaced_and_its_value_is_not_looked_into(
    root: Context, prompt: PromptSections
) -> None:
    prompt.variable(root, "who", "{{nobody}} \\{{x}}")
    prompt.section(root, "persona", 0, r"You are {{ who }}; {{who}}. \{{who}} {\"a\": {\"b\": 1}}")
    assert prompt.assemble(None).system == (
        "You are {{nobody}} \\{{x}}; {{nobody}} \\{{x}}. {{who}} " + r"{\"a\": {\"b\": 1}}"
    )


async def test_a_scope_gives_a_variable_its_own_value(root: Context, prompt: PromptSections) -> None:
    agent = Scope(label="agent")
    prompt.variable(root, "cwd", None)
    prompt.section(root, "where", 0, "In {{cwd}}.")
    prompt.variable(root.scoped(agent), "cwd", "/home")
    assert prompt.assemble(agent).system == "In /home."
    with pytest.raises(UnknownVariable, match=r"section 'where' uses the variable 'cwd', which has no value"):
        prompt.assemble(None)


async def test_an_unknown_variable_names_the_section_and_the_nearest(
    root: Context, prompt: PromptSections
) -> None:
    prompt.variable(root, "language", "en")
    prompt.section(root, "persona", 0, "Write {{langauge}}.")
    with pytest.raises(UnknownVariable, match=r"'persona'.*'langauge'.*did you mean 'language'"):
        prompt.assemble(None)


@pytest.mark.parametrize(
    "text", ["{{", "a {{b", "{{}}", "{{ }}", "{{Big}}", "{{a b}}", "{{a\nb}}", "{{1a}}", "{{a}"]
)
async def test_a_malformed_variable_is_refused_at_registration(
    root: Context, prompt: PromptSections, text: str
) -> None:
    with pytest.raises(BadTemplate, match="'persona', line 2"):
        prompt.section(root, "persona", 0, f"first\n{text}")
    assert prompt.assemble(None).system == ""


async def test_a_variable_has_a_proper_name(root: Context, prompt: PromptSections) -> None:
    with pytest.raises(PromptError, match="a-z"):
        prompt.variable(root, "Not-Good", "x")


@given(st.lists(st.sampled_from(["{{", "}}", "\\{{", "{{a}}", "{", "}", "é", "\\", "\n"])).map("".join))
def test_a_template_is_refused_or_replaced_whole(text: str) -> None:
    marked = text.replace("\\{{", "•").replace("{{a}}", "◦")
    try:
        rendered = parse_template("text", text).render({"a": "VALUE"})
    except BadTemplate:
        assert "{{" in marked or "{◦" in marked
    else:
        assert rendered == marked.replace("•", "{{").replace("◦", "VALUE")


# bytes


@pytest.mark.case("K09")
async def test_two_assemblies_at_different_times_have_equal_bytes(
    root: Context, prompt: PromptSections
) -> None:
    said = ["09:00", "09:01"]

    async def clock(scope: Scope | None) -> str:
        return f"It is {said.pop(0)}."

    prompt.section(root, "persona", 0, "P")
    prompt.context(root, "clock", 0, clock)
    first, first_snapshot = prompt.assemble(None), await prompt.snapshot(root)
    second, second_snapshot = prompt.assemble(None), await prompt.snapshot(root)
    assert first == second
    assert "09:0" not in first.system
    assert second_snapshot.change(first_snapshot.text) == f"{HEADING}\n\nIt is 09:01."


async def test_the_plugin_gives_the_identity_and_leaves_no_trace() -> None:
    async with Kernel() as kernel:
        before = kernel.snapshot()
        fiber = await kernel.root.mount(plugin, {"persona": "You count."})
        system = kernel.root.get(PromptSections).assemble(None).system
        assert system.startswith("You work inside Leadline")
        assert system.endswith("\n\nYou count.")
        await fiber.dispose()
        assert kernel.snapshot() == before


# epochs


async def nothing(args: object, call: object) -> None:
    return None


def tool(name: str) -> Tool:
    return Tool(name, f"{name}.", {"type": "object"}, nothing)


async def test_an_epoch_lasts_until_registrations_change_its_bytes(
    root: Context, prompt: PromptSections
) -> None:
    tools, agent, other = ToolRegistry(), Scope(label="agent"), Scope(label="other")
    prompt.section(root, "persona", 0, "P")
    tools.register(root, tool("read"))
    epoch = Epoch(prompt, tools, agent)
    first = epoch.current()
    assert epoch.current() is first

    tools.register(root.scoped(other), tool("write"))
    prompt.section(root.scoped(other), "persona", 0, "Other")
    assert epoch.current() is first
    assert epoch.number == 1

    effect = tools.register(root.scoped(agent), tool("search"))
    second = epoch.current()
    assert [it.name for it in second.tools] == ["read", "search"]
    assert (second.system, epoch.number) == (first.system, 2)
    await effect.dispose()
    assert epoch.current() == first
    assert epoch.number == 3


async def test_an_epoch_that_nothing_changed_is_not_assembled_again(
    root: Context, prompt: PromptSections
) -> None:
    class Counting:
        version = 1
        asked = 0

        def schemas(self, scope: Scope | None) -> tuple[ToolSchema, ...]:
            self.asked += 1
            return ()

    tools = Counting()
    epoch = Epoch(prompt, tools, None)
    epoch.current()
    epoch.current()
    assert tools.asked == 1


async def test_withdrawing_a_plugins_section_starts_a_new_epoch(
    root: Context, prompt: PromptSections
) -> None:
    async def apply(ctx: Context, config: None) -> None:
        prompt.section(ctx, "extra", 100, "More.")

    epoch = Epoch(prompt, ToolRegistry(), None)
    fiber = await root.mount(Plugin("extra", apply))
    assert epoch.current().system == "More."
    await fiber.dispose()
    assert epoch.current().system == ""


# contexts


def test_a_snapshot_is_said_once_and_again_only_when_it_changed() -> None:
    one, two = snapshot_of(["a"]), snapshot_of(["b"])
    assert one.change(None) == f"{HEADING}\n\na"
    assert one.change(one.text) is None
    assert two.change(one.text) == f"{HEADING}\n\nb"


def test_a_snapshot_that_left_the_window_is_said_again() -> None:
    assert snapshot_of(["a"]).change(None) is not None


def test_facts_that_no_longer_hold_are_cleared_once() -> None:
    nothing_now = ContextSnapshot("")
    assert nothing_now.change(None) is None
    assert nothing_now.change(snapshot_of(["a"]).text) == CLEARED
    assert nothing_now.change(CLEARED) is None
    assert snapshot_of(["a"]).change(CLEARED) is not None


async def test_contexts_stand_in_order_and_one_that_raises_is_left_out_and_told(
    prompt: PromptSections,
) -> None:
    reports: list[Report] = []

    async def says(text: str | None) -> str | None:
        return text

    async def broken(scope: Scope | None) -> str:
        raise OSError("no disk")

    async with Kernel(on_report=reports.append) as kernel:
        root = kernel.root
        prompt.context(root, "late", 9, lambda scope: says("late"))
        prompt.context(root, "silent", 5, lambda scope: says(" "))
        prompt.context(root, "none", 5, lambda scope: says(None))
        prompt.context(root, "broken", 4, broken)
        prompt.context(root, "early", 1, lambda scope: says("early\n"))
        assert (await prompt.snapshot(root)).text == f"{HEADING}\n\nearly\n\nlate"
        assert "prompt context broken" in reports[0].where


async def test_a_context_is_seen_by_its_scope_only(root: Context, prompt: PromptSections) -> None:
    agent = Scope(label="agent")

    async def where(scope: Scope | None) -> str:
        assert scope is agent
        return "here"

    prompt.context(root.scoped(agent), "where", 0, where)
    assert (await prompt.snapshot(root)).text == ""
    assert (await prompt.snapshot(root.scoped(agent))).text.endswith("here")

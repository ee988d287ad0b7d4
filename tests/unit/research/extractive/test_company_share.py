"""The promises made for the folder `company-share`, over the texts as the program reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from leadline.capabilities.documents.plugin import plugin as documents_plugin
from leadline.capabilities.documents.seam import Documents
from leadline.core.session.blobs import Blobs
from leadline.kernel.context import Context, Kernel
from leadline.kernel.plugin import Plugin
from leadline.testing.sessions import MemoryBlobs

pytestmark = pytest.mark.anyio
MakeFolder = Callable[[Mapping[str, str]], Any]


async def _blobs(ctx: Context, config: None) -> None:
    ctx.provide(Blobs, MemoryBlobs())


@pytest.fixture
async def company(shared_data: Path, folder: MakeFolder) -> Any:
    root = shared_data / "company-share"
    async with Kernel() as kernel:
        await kernel.root.mount(Plugin("blobs.memory", _blobs, provides=(Blobs,)))
        await kernel.root.mount(documents_plugin)
        documents = kernel.root.get(Documents)
        files = sorted(path for path in root.rglob("*") if path.is_file())
        read = {
            str(path.relative_to(root)): (await documents.extract(path.read_bytes(), path.name)).text
            for path in files
        }
    return folder(read)


@pytest.mark.parametrize(
    ("question", "source", "words"),
    [
        ("What may a hotel night cost?", "finance/expense_policy.md", "Hotel caps: EUR 180"),
        ("How much memory do laptops have?", "it/laptop_runbook.md", "32GB RAM"),
        ("Who approves discounts above 20%?", "sales/discount_approval_matrix.md", "CEO + CFO"),
        ("Who led the Series C round?", "company_overview.md", "Meridian Growth Partners"),
    ],
)
async def test_the_right_quote_comes_first_from_the_right_file(
    company: Any, question: str, source: str, words: str
) -> None:
    ended = await company.unit(question)
    assert ended.recorded[0]["source"] == source
    assert words in str(ended.recorded[0]["quote"])


async def test_gross_margin_is_told_from_three_pdfs_in_order(company: Any) -> None:
    ended = await company.unit("How did gross margin develop from 2024 to 2026?")
    told = [
        (str(one["source"])[-18:-15], one["quote"]) for one in ended.recorded if "margin" in str(one["quote"])
    ]
    assert [quote.split()[2] for _, quote in told] == ["33%", "37%", "41%"]
    assert all(str(one["source"]).endswith(".pdf") for one in ended.recorded)


async def test_the_battery_comes_from_the_brief_and_the_superseded_file_is_said_to_differ(
    company: Any,
) -> None:
    ended = await company.unit("Which battery will the VLX-500 have?")
    first = ended.recorded[0]
    assert first["source"] == "product/vlx500_product_brief.docx"
    assert "11h fast-charge LFP" in str(first["quote"])
    (older,) = [one for one in ended.recorded if one["polarity"] == "opposing"]
    assert older["source"] == "product/archive/vlx500_concept_2025_superseded.md"
    assert "10h Li-ion" in str(older["quote"])
    assert any("superseded by the 2026 product brief" in quote for quote in ended.quotes)


@pytest.mark.parametrize(
    "question",
    [
        "What is the parental leave policy?",
        "What battery does the VLX-900 have?",
        "What was revenue in 2019?",
    ],
)
async def test_what_the_folder_cannot_answer_is_not_answered(company: Any, question: str) -> None:
    ended = await company.unit(question)
    assert ended.recorded == []
    assert ended.finding["unresolved"]

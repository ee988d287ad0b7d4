"""The tools of a corpus, made for one run: register them on its own scope."""

from __future__ import annotations

from leadline.capabilities.corpus.seam import Corpus
from leadline.capabilities.corpus.tools.read import read_tool
from leadline.capabilities.corpus.tools.search import search_tool
from leadline.core.ids import Ids
from leadline.core.tools.spec import Tool


def corpus_tools(corpus: Corpus, ids: Ids) -> tuple[Tool, ...]:
    """`corpus_search` and `read` over `corpus`; `ids` gives the delimiters of fences."""
    return search_tool(corpus, ids), read_tool(corpus, ids)

"""The tools of a corpus, made for one run: register them on its own scope."""

from __future__ import annotations

from leadline.capabilities.corpus.seam import Corpus
from leadline.capabilities.corpus.tools.read import read_tool
from leadline.capabilities.corpus.tools.search import search_tool
from leadline.core.tools.fence import Delimiter
from leadline.core.tools.spec import Tool


def corpus_tools(corpus: Corpus, delimiter: Delimiter, tokens: int | None = None) -> tuple[Tool, ...]:
    """`corpus_search` and `read` over `corpus`; what they return stands behind fences of `delimiter`.

    `tokens`: what one result may have, for a model with a small window; None: as much as was asked for.
    """
    return search_tool(corpus, delimiter, tokens), read_tool(corpus, delimiter, tokens)

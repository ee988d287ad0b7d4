"""The few sentences that the extractive model says itself, in the languages it knows."""

from __future__ import annotations

from collections.abc import Mapping

from leadline.research.extractive.language import Language, language_of, named_language

_PHRASES: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "findings": "What the documents say",
        "missing": "What was not found",
        "about": "How this report was made",
        "extraction": "This report was made by extraction, without a language model: it repeats passages of the documents and draws no conclusions.",
        "not_found": "Not found in the documents: {question}",
        "older": "An older version of this document differs:",
        "brief": "Answer from the documents, with their own words: {question}",
        "objective": "Passages that answer the question are on record, or it is clear that the documents hold none.",
        "source": "From “{title}”: {text}",
        "limitations": "The passages were found by words, synonyms and figures, without a language model; an answer in quite other words can be missed.",
    },
    "de": {
        "findings": "Was die Dokumente sagen",
        "missing": "Was nicht gefunden wurde",
        "about": "Wie dieser Bericht entstand",
        "extraction": "Dieser Bericht ist durch Auszüge entstanden, ohne Sprachmodell: Er gibt Stellen der Dokumente wieder und zieht keine Schlüsse.",
        "not_found": "In den Dokumenten nicht gefunden: {question}",
        "older": "Eine ältere Fassung dieses Dokuments weicht ab:",
        "brief": "Aus den Dokumenten zu beantworten, mit deren eigenen Worten: {question}",
        "objective": "Stellen, die die Frage beantworten, sind festgehalten, oder es steht fest, dass es keine gibt.",
        "source": "Aus „{title}“: {text}",
        "limitations": "Die Stellen wurden über Wörter, Synonyme und Zahlen gefunden, ohne Sprachmodell; eine Antwort in ganz anderen Worten kann fehlen.",
    },
    "fr": {
        "findings": "Ce que disent les documents",
        "missing": "Ce qui n'a pas été trouvé",
        "about": "Comment ce rapport a été fait",
        "extraction": "Ce rapport a été fait par extraction, sans modèle de langage : il reprend des passages des documents et ne conclut rien.",
        "not_found": "Introuvable dans les documents : {question}",
        "older": "Une version plus ancienne de ce document diffère :",
        "brief": "Répondre à partir des documents, dans leurs propres mots : {question}",
        "objective": "Les passages qui répondent à la question sont relevés, ou il est clair qu'il n'y en a pas.",
        "source": "Dans « {title} » : {text}",
        "limitations": "Les passages ont été trouvés par mots, synonymes et chiffres, sans modèle de langage ; une réponse en d'autres mots peut manquer.",
    },
    "es": {
        "findings": "Lo que dicen los documentos",
        "missing": "Lo que no se encontró",
        "about": "Cómo se hizo este informe",
        "extraction": "Este informe se hizo por extracción, sin modelo de lenguaje: repite pasajes de los documentos y no saca conclusiones.",
        "not_found": "No se encontró en los documentos: {question}",
        "older": "Una versión anterior de este documento difiere:",
        "brief": "Responder a partir de los documentos, con sus propias palabras: {question}",
        "objective": "Los pasajes que responden a la pregunta están registrados, o está claro que no los hay.",
        "source": "De «{title}»: {text}",
        "limitations": "Los pasajes se encontraron por palabras, sinónimos y cifras, sin modelo de lenguaje; puede faltar una respuesta en otras palabras.",
    },
    "zh": {
        "findings": "文件中的说法",
        "missing": "未找到的内容",
        "about": "本报告的生成方式",
        "extraction": "本报告由摘录生成，未使用语言模型：只引用文件原文，不作推论。",
        "not_found": "文件中未找到：{question}",
        "older": "该文件的旧版本说法不同：",
        "brief": "根据文件原文回答：{question}",
        "objective": "已记录能回答问题的原文，或已确认文件中没有。",
        "source": "摘自“{title}”：{text}",
        "limitations": "原文按词语、同义词和数字查找，未使用语言模型；换一种说法的答案可能会遗漏。",
    },
    "ja": {
        "findings": "文書の記述",
        "missing": "見つからなかったこと",
        "about": "この報告の作り方",
        "extraction": "この報告は言語モデルを使わず抜粋によって作られました。文書の記述をそのまま示し、推論はしていません。",
        "not_found": "文書の中に見つかりませんでした：{question}",
        "older": "この文書の古い版には別の記述があります：",
        "brief": "文書の記述をもとに答える：{question}",
        "objective": "質問に答える記述を記録するか、文書にないことを確かめる。",
        "source": "「{title}」より：{text}",
        "limitations": "記述は語・同義語・数字で探し、言語モデルは使っていません。別の言い方の答えは見落とすことがあります。",
    },
}  # fmt: skip

NAMES = "This is how the document names itself."
STATES = "This is what the document says of its own date or version."
COLUMNS = "These are the columns of the table."
"""Claims of quotes that give an answer its context; the writer knows them by these words."""

NO_MODEL = (
    "No language model is configured: this is the embedded default, which extracts passages from documents and "
    "cannot hold a conversation.\n\n"
    'What works without a model: leadline research "your question" --corpus FOLDER\n'
    "With a language model everything works: add --model PROVIDER/NAME --base-url URL, for example "
    "--model local/qwen3 --base-url http://127.0.0.1:8080/v1"
)


def phrase(name: str, language: Language, **values: str) -> str:
    """A sentence in a language, with its blanks filled."""
    return _PHRASES[language][name].format(**values)


def report_language(asked: str | None, question: str) -> Language:
    """The language to write in: what was asked for where it is known, English where it is not, else the question's."""
    if asked:
        return named_language(asked) or "en"
    return language_of(question)

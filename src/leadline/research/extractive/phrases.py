"""The few sentences that the extractive model says itself, in the languages it knows."""

from __future__ import annotations

from collections.abc import Mapping

from leadline.research.extractive.language import Language, language_of, named_language

_PHRASES: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "findings": "What the documents say",
        "missing": "What was not found",
        "not_found": "Not found in the documents: {question}",
        "older": "An older version of this document, {source}, says:",
        "according": "According to {source}:",
        "named": "“{title}”",
        "dated": "“{title}” ({date})",
        "differ": "Versions of a document differ here: the current one comes first, the older one after it.",
        "relative": "The year is counted from the newest document that was found.",
        "brief": "Answer from the documents, with their own words: {question}",
        "objective": "Passages that answer the question are on record, or it is clear that the documents hold none.",
        "source": "From “{title}”: {text}",
        "limitations": "The passages were found by words, synonyms and figures, without a language model; an answer in quite other words can be missed.",
    },
    "de": {
        "findings": "Was die Dokumente sagen",
        "missing": "Was nicht gefunden wurde",
        "not_found": "In den Dokumenten nicht gefunden: {question}",
        "older": "Eine ältere Fassung dieses Dokuments, {source}, besagt:",
        "according": "Laut {source}:",
        "named": "„{title}“",
        "dated": "„{title}“ ({date})",
        "differ": "Fassungen eines Dokuments weichen hier voneinander ab: zuerst die geltende, danach die ältere.",
        "relative": "Das Jahr ist vom neuesten gefundenen Dokument aus gezählt.",
        "brief": "Aus den Dokumenten zu beantworten, mit deren eigenen Worten: {question}",
        "objective": "Stellen, die die Frage beantworten, sind festgehalten, oder es steht fest, dass es keine gibt.",
        "source": "Aus „{title}“: {text}",
        "limitations": "Die Stellen wurden über Wörter, Synonyme und Zahlen gefunden, ohne Sprachmodell; eine Antwort in ganz anderen Worten kann fehlen.",
    },
    "fr": {
        "findings": "Ce que disent les documents",
        "missing": "Ce qui n'a pas été trouvé",
        "not_found": "Introuvable dans les documents : {question}",
        "older": "Une version plus ancienne de ce document, {source}, dit :",
        "according": "Selon {source} :",
        "named": "« {title} »",
        "dated": "« {title} » ({date})",
        "differ": "Des versions d'un document diffèrent ici : d'abord la version actuelle, puis la plus ancienne.",
        "relative": "L'année est comptée à partir du document le plus récent trouvé.",
        "brief": "Répondre à partir des documents, dans leurs propres mots : {question}",
        "objective": "Les passages qui répondent à la question sont relevés, ou il est clair qu'il n'y en a pas.",
        "source": "Dans « {title} » : {text}",
        "limitations": "Les passages ont été trouvés par mots, synonymes et chiffres, sans modèle de langage ; une réponse en d'autres mots peut manquer.",
    },
    "es": {
        "findings": "Lo que dicen los documentos",
        "missing": "Lo que no se encontró",
        "not_found": "No se encontró en los documentos: {question}",
        "older": "Una versión anterior de este documento, {source}, dice:",
        "according": "Según {source}:",
        "named": "«{title}»",
        "dated": "«{title}» ({date})",
        "differ": "Hay versiones de un documento que difieren: primero la actual, después la anterior.",
        "relative": "El año se cuenta desde el documento más reciente encontrado.",
        "brief": "Responder a partir de los documentos, con sus propias palabras: {question}",
        "objective": "Los pasajes que responden a la pregunta están registrados, o está claro que no los hay.",
        "source": "De «{title}»: {text}",
        "limitations": "Los pasajes se encontraron por palabras, sinónimos y cifras, sin modelo de lenguaje; puede faltar una respuesta en otras palabras.",
    },
    "zh": {
        "findings": "文件中的说法",
        "missing": "未找到的内容",
        "not_found": "文件中未找到：{question}",
        "older": "该文件的旧版本{source}称：",
        "according": "根据{source}：",
        "named": "《{title}》",
        "dated": "《{title}》（{date}）",
        "differ": "同一文件的不同版本在此说法不一：先列现行版本，后列旧版本。",
        "relative": "年份以所找到的最新文件为准推算。",
        "brief": "根据文件原文回答：{question}",
        "objective": "已记录能回答问题的原文，或已确认文件中没有。",
        "source": "摘自“{title}”：{text}",
        "limitations": "原文按词语、同义词和数字查找，未使用语言模型；换一种说法的答案可能会遗漏。",
    },
    "ja": {
        "findings": "文書の記述",
        "missing": "見つからなかったこと",
        "not_found": "文書の中に見つかりませんでした：{question}",
        "older": "この文書の古い版{source}では：",
        "according": "{source}によると：",
        "named": "「{title}」",
        "dated": "「{title}」（{date}）",
        "differ": "文書の版によって記述が異なります。先に現行の版、後に古い版を示します。",
        "relative": "年は、見つかった最も新しい文書から数えています。",
        "brief": "文書の記述をもとに答える：{question}",
        "objective": "質問に答える記述を記録するか、文書にないことを確かめる。",
        "source": "「{title}」より：{text}",
        "limitations": "記述は語・同義語・数字で探し、言語モデルは使っていません。別の言い方の答えは見落とすことがあります。",
    },
}  # fmt: skip

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


_SHUTS = frozenset("“”„«»《》「」")


def attributed(form: str, language: Language, title: str, location: str, published: str | None) -> str:
    """The words that say which document speaks, as the checks of a report read them.

    Args:
        form: `according`, or `older` for a superseded version.
        language: of the report.
        title: of the document; where it has quotation marks in it, the file name stands for it.
        location: of the document.
        published: its date as the ledger has it.
    """
    name = location.rsplit("/", 1)[-1] if _SHUTS & set(title) or not title else title
    source = phrase("dated" if published else "named", language, title=name, date=published or "")
    return phrase(form, language, source=source)


def report_language(asked: str | None, question: str) -> Language:
    """The language to write in: what was asked for where it is known, English where it is not, else the question's."""
    if asked:
        return named_language(asked) or "en"
    return language_of(question)

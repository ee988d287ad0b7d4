"""The words that code itself puts into a report, in the six languages of reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from leadline.research.sources.language import Language


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Headings, counted things and sentences. Counts follow a colon, so that no word depends on a number."""

    sources: str
    coverage: str
    notes: str
    made: str
    verdicts: str

    partial: str
    cancelled: str
    failed: str
    reason: str

    unmarked: str
    not_established: tuple[str, str]
    """The name of the verdict, and what it means."""
    contradicted: tuple[str, str]
    not_checked: tuple[str, str]
    supported: str

    none_cited: str
    page: str
    published: str
    read_in_part: str
    supersedes: str
    superseded_by: str
    not_cited: str
    in_place: str
    back: str

    questions: str
    searches: str
    found: str
    read: str
    unusable: str
    cited: str
    quotes: str
    sentences: str
    not_usable: str
    open: str
    outcomes: Mapping[str, str]

    by_model: str
    by_extraction: str
    by_record: str
    by_code: str
    colon: str = ": "
    stop: str = "."
    semicolon: str = "; "
    comma: str = ", "
    brackets: tuple[str, str] = (" (", ")")
    gap: str = " "
    """Between two sentences."""


_EN = Labels(
    sources="Sources",
    coverage="Coverage",
    notes="Notes",
    made="How this report was made",
    verdicts="What the checks say of each sentence",
    partial="This report is partial: not all of the research could be done.",
    cancelled="This report is not finished: the run was cancelled. It holds what had been found by then.",
    failed="The research failed. This is what had been found.",
    reason="Reason",
    unmarked="Without a mark: a cited quote says so in these words",
    not_established=("not established", "the cited quotes, if any, do not say it in these words"),
    contradicted=("contradicted", "a cited quote says otherwise"),
    not_checked=("not checked", "the writer's own words, with no figure or name to check"),
    supported="supported",
    none_cited="None cited.",
    page="p. {n}",
    published="published {date}",
    read_in_part="read in part",
    supersedes="supersedes {others}",
    superseded_by="superseded by {others}",
    not_cited="not cited, listed as another version of a cited source",
    in_place="in its place in the document, characters {start} to {end}",
    back="back to the sentence",
    questions="Questions",
    searches="Searches",
    found="Sources found",
    read="read",
    unusable="not usable",
    cited="cited",
    quotes="Quotes cited",
    sentences="Sentences and table cells",
    not_usable="Not usable",
    open="Not answered",
    outcomes={
        "thin": "too little text", "blocked": "blocked", "paywalled": "behind a paywall",
        "unsupported": "format not supported", "disallowed": "not allowed", "error": "could not be read",
    },
    by_model="The model {model} wrote the sentences from the quotes on record.",
    by_extraction="No language model took part: the sentences are passages of the documents, found by "
    "their words and figures, and nothing is concluded from them.",
    by_record="No report was written: the quotes on record stand in its place.",
    by_code="Numbers, quotes, sources and coverage come from the record of the run. Every sentence was compared with "
    "its quotes by fixed rules, without a model (method {method}, model {model}, checks version {checks}).",
)  # fmt: skip

_DE = Labels(
    sources="Quellen",
    coverage="Abdeckung",
    notes="Anmerkungen",
    made="Wie dieser Bericht entstand",
    verdicts="Was die Prüfungen zu jedem Satz sagen",
    partial="Dieser Bericht ist unvollständig: Nicht alles konnte untersucht werden.",
    cancelled="Dieser Bericht ist nicht fertig: Der Lauf wurde abgebrochen. Er enthält, was bis dahin gefunden war.",
    failed="Die Untersuchung ist gescheitert. Das war bis dahin gefunden.",
    reason="Grund",
    unmarked="Ohne Zeichen: Ein zitierter Beleg sagt es mit diesen Worten",
    not_established=("nicht belegt", "die zitierten Belege sagen es nicht mit diesen Worten"),
    contradicted=("widersprochen", "ein zitierter Beleg sagt etwas anderes"),
    not_checked=("nicht geprüft", "eigene Worte ohne Zahl oder Namen, die zu prüfen wären"),
    supported="belegt",
    none_cited="Keine zitiert.",
    page="S. {n}",
    published="veröffentlicht {date}",
    read_in_part="teilweise gelesen",
    supersedes="ersetzt {others}",
    superseded_by="ersetzt durch {others}",
    not_cited="nicht zitiert, als andere Fassung einer zitierten Quelle genannt",
    in_place="an seiner Stelle im Dokument, Zeichen {start} bis {end}",
    back="zurück zum Satz",
    questions="Fragen",
    searches="Suchen",
    found="Quellen gefunden",
    read="gelesen",
    unusable="nicht verwendbar",
    cited="zitiert",
    quotes="Zitierte Belege",
    sentences="Sätze und Tabellenzellen",
    not_usable="Nicht verwendbar",
    open="Nicht beantwortet",
    outcomes={
        "thin": "zu wenig Text", "blocked": "gesperrt", "paywalled": "hinter einer Bezahlschranke",
        "unsupported": "Format nicht unterstützt", "disallowed": "nicht erlaubt", "error": "nicht lesbar",
    },
    by_model="Das Modell {model} hat die Sätze aus den festgehaltenen Belegen geschrieben.",
    by_extraction="Kein Sprachmodell war beteiligt: Die Sätze sind Stellen der Dokumente, gefunden über ihre "
    "Wörter und Zahlen; Schlüsse werden nicht gezogen.",
    by_record="Ein Bericht wurde nicht geschrieben: An seiner Stelle stehen die festgehaltenen Belege.",
    by_code="Nummern, Belege, Quellen und Abdeckung stammen aus dem Protokoll des Laufs. Jeder Satz wurde nach festen "
    "Regeln und ohne Modell mit seinen Belegen verglichen (Methode {method}, Modell {model}, Prüfungen Version {checks}).",
)  # fmt: skip

_FR = Labels(
    sources="Sources",
    coverage="Couverture",
    notes="Remarques",
    made="Comment ce rapport a été fait",
    verdicts="Ce que les contrôles disent de chaque phrase",
    partial="Ce rapport est partiel : toute la recherche n'a pas pu être faite.",
    cancelled="Ce rapport est inachevé : la recherche a été annulée. Il contient ce qui avait été trouvé.",
    failed="La recherche a échoué. Voici ce qui avait été trouvé.",
    reason="Raison",
    unmarked="Sans signe : une citation le dit en ces termes",
    not_established=("non établi", "les citations ne le disent pas en ces termes"),
    contradicted=("contredit", "une citation dit autre chose"),
    not_checked=("non vérifié", "les mots du rédacteur, sans chiffre ni nom à vérifier"),
    supported="établi",
    none_cited="Aucune source citée.",
    page="p. {n}",
    published="publié {date}",
    read_in_part="lu en partie",
    supersedes="remplace {others}",
    superseded_by="remplacé par {others}",
    not_cited="non cité, indiqué comme autre version d'une source citée",
    in_place="à sa place dans le document, caractères {start} à {end}",
    back="retour à la phrase",
    questions="Questions",
    searches="Recherches",
    found="Sources trouvées",
    read="lues",
    unusable="inutilisables",
    cited="citées",
    quotes="Citations",
    sentences="Phrases et cellules de tableau",
    not_usable="Inutilisable",
    open="Sans réponse",
    outcomes={
        "thin": "trop peu de texte", "blocked": "accès bloqué", "paywalled": "accès payant",
        "unsupported": "format non pris en charge", "disallowed": "non autorisé", "error": "illisible",
    },
    by_model="Le modèle {model} a rédigé les phrases à partir des citations relevées.",
    by_extraction="Aucun modèle de langage n'a participé : les phrases sont des passages des documents, trouvés par "
    "leurs mots et leurs chiffres ; aucune conclusion n'en est tirée.",
    by_record="Aucun rapport n'a été rédigé : les citations relevées en tiennent lieu.",
    by_code="Numéros, citations, sources et couverture viennent du journal de la recherche. Chaque phrase a été "
    "comparée à ses citations par des règles fixes, sans modèle (méthode {method}, modèle {model}, contrôles version {checks}).",
    colon=" : ",
    semicolon=" ; ",
)  # fmt: skip

_ES = Labels(
    sources="Fuentes",
    coverage="Cobertura",
    notes="Notas",
    made="Cómo se hizo este informe",
    verdicts="Lo que dicen las comprobaciones de cada frase",
    partial="Este informe es parcial: no se pudo hacer toda la investigación.",
    cancelled="Este informe no está terminado: la investigación se canceló. Contiene lo hallado hasta entonces.",
    failed="La investigación falló. Esto es lo que se había hallado.",
    reason="Motivo",
    unmarked="Sin marca: una cita lo dice con estas palabras",
    not_established=("no establecido", "las citas no lo dicen con estas palabras"),
    contradicted=("contradicho", "una cita dice otra cosa"),
    not_checked=("no comprobado", "palabras del redactor, sin cifras ni nombres que comprobar"),
    supported="respaldado",
    none_cited="Ninguna fuente citada.",
    page="pág. {n}",
    published="publicado {date}",
    read_in_part="leído en parte",
    supersedes="sustituye a {others}",
    superseded_by="sustituido por {others}",
    not_cited="no citado, figura como otra versión de una fuente citada",
    in_place="en su lugar del documento, caracteres {start} a {end}",
    back="volver a la frase",
    questions="Preguntas",
    searches="Búsquedas",
    found="Fuentes halladas",
    read="leídas",
    unusable="no utilizables",
    cited="citadas",
    quotes="Citas",
    sentences="Frases y celdas de tabla",
    not_usable="No utilizable",
    open="Sin respuesta",
    outcomes={
        "thin": "muy poco texto", "blocked": "bloqueado", "paywalled": "de pago",
        "unsupported": "formato no admitido", "disallowed": "no permitido", "error": "no se pudo leer",
    },
    by_model="El modelo {model} escribió las frases a partir de las citas registradas.",
    by_extraction="No intervino ningún modelo de lenguaje: las frases son pasajes de los documentos, hallados por sus "
    "palabras y cifras; no se sacan conclusiones.",
    by_record="No se escribió ningún informe: en su lugar figuran las citas registradas.",
    by_code="Números, citas, fuentes y cobertura proceden del registro de la investigación. Cada frase se comparó con "
    "sus citas mediante reglas fijas, sin modelo (método {method}, modelo {model}, comprobaciones versión {checks}).",
)  # fmt: skip

_ZH = Labels(
    sources="来源",
    coverage="覆盖情况",
    notes="说明",
    made="本报告的生成方式",
    verdicts="各句的核查结果",
    partial="本报告不完整：部分研究未能完成。",
    cancelled="本报告未完成：研究已取消。以下为此前已找到的内容。",
    failed="研究失败。以下为此前已找到的内容。",
    reason="原因",
    unmarked="无标记：所引原文即如此表述",
    not_established=("未能证实", "所引原文没有这样表述"),
    contradicted=("与原文相反", "所引原文说法不同"),
    not_checked=("未核查", "撰写者自己的话，没有可核查的数字或名称"),
    supported="已证实",
    none_cited="未引用来源。",
    page="第 {n} 页",
    published="发布于 {date}",
    read_in_part="部分读取",
    supersedes="取代 {others}",
    superseded_by="已被 {others} 取代",
    not_cited="未引用，列为所引来源的另一版本",
    in_place="在文件中的位置，字符 {start} 至 {end}",
    back="返回该句",
    questions="问题",
    searches="检索",
    found="找到来源",
    read="已读",
    unusable="无法使用",
    cited="已引用",
    quotes="引文",
    sentences="句子和表格单元",
    not_usable="无法使用",
    open="未回答",
    outcomes={
        "thin": "文字过少", "blocked": "被拦截", "paywalled": "需付费",
        "unsupported": "格式不支持", "disallowed": "不允许访问", "error": "无法读取",
    },
    by_model="句子由模型 {model} 根据已记录的引文撰写。",
    by_extraction="未使用语言模型：句子均为文件原文，按词语和数字查找，不作推论。",
    by_record="未撰写报告，以已记录的引文代替。",
    by_code="编号、引文、来源和覆盖情况取自本次研究的记录。每个句子都按固定规则与其引文比对，未使用模型（方法 {method}，模型 {model}，核查版本 {checks}）。",
    colon="：",
    stop="。",
    semicolon="；",
    comma="，",
    brackets=("（", "）"),
    gap="",
)  # fmt: skip

_JA = Labels(
    sources="出典",
    coverage="調査の範囲",
    notes="注記",
    made="この報告の作り方",
    verdicts="各文の確認結果",
    partial="この報告は一部のみです。調査のすべては行えませんでした。",
    cancelled="この報告は未完成です。調査は中止されました。それまでに見つかった内容を示します。",
    failed="調査は失敗しました。それまでに見つかった内容を示します。",
    reason="理由",
    unmarked="印なし：引用がこの言葉で述べている",
    not_established=("未確認", "引用はこの言葉では述べていない"),
    contradicted=("矛盾", "引用は別のことを述べている"),
    not_checked=("確認対象外", "書き手の言葉で、確認すべき数値や名称がない"),
    supported="確認済み",
    none_cited="引用した出典はありません。",
    page="{n} ページ",
    published="{date} 発行",
    read_in_part="一部のみ読了",
    supersedes="{others} に代わる版",
    superseded_by="{others} に置き換えられた版",
    not_cited="引用なし。引用した出典の別の版として掲載",
    in_place="文書中の位置、{start}～{end} 文字目",
    back="文に戻る",
    questions="質問",
    searches="検索",
    found="見つかった出典",
    read="読了",
    unusable="利用不可",
    cited="引用",
    quotes="引用文",
    sentences="文と表のセル",
    not_usable="利用不可",
    open="未回答",
    outcomes={
        "thin": "本文がわずか", "blocked": "アクセス不可", "paywalled": "有料",
        "unsupported": "未対応の形式", "disallowed": "許可なし", "error": "読み取り不可",
    },
    by_model="文は、記録された引用をもとにモデル {model} が書きました。",
    by_extraction="言語モデルは使っていません。文は文書の記述であり、語と数値によって探しました。推論はしていません。",
    by_record="報告は書かれませんでした。代わりに記録された引用を示します。",
    by_code="番号、引用、出典、調査の範囲は調査の記録によります。各文は、モデルを使わず決まった規則で引用と照合しました（方式 {method}、モデル {model}、確認の版 {checks}）。",
    colon="：",
    stop="。",
    semicolon="；",
    comma="、",
    brackets=("（", "）"),
    gap="",
)  # fmt: skip

_LABELS: Mapping[str, Labels] = {"en": _EN, "de": _DE, "fr": _FR, "es": _ES, "zh": _ZH, "ja": _JA}


def labels(language: Language | str) -> Labels:
    """The labels of a language; those of English for one that is not known."""
    return _LABELS.get(language, _EN)

"""Questions over small folders written for the purpose, in six languages."""

from __future__ import annotations

from collections.abc import Mapping

from .case import Case, absent, found

COOPERATIVE: tuple[Case, ...] = (
    found("How much mackerel did the cooperative land?", "412 tonnes", "minutes-2025-11-04.md"),
    found("Who was elected treasurer?", "Declan Moriarty", "minutes-2025-11-04.md"),
    found("Why did the ice plant fail in July?", "compressor bearing", "minutes-2025-11-04.md"),
    found("What did the repair of the ice plant cost?", "EUR 6,450", "minutes-2025-11-04.md"),
    found("When is the next meeting?", "2 June 2026", "minutes-2026-03-03.md"),
    found("What is the mackerel quota for 2026?", "380 tonnes", "minutes-2026-03-03.md"),
    found("How many members were present in March 2026?", "26 of 32", "minutes-2026-03-03.md"),
    found("Did the members decide to buy the shed?", "not to buy", "minutes-2026-03-03.md"),
    found("How long is the Saoirse?", "Saoirse,Declan Moriarty,9.8", "boats.csv"),
    found("Who is the skipper of the Cormorant?", "Brendan Shea", "boats.csv"),
    found("Which VHF channel is used in an emergency?", "channel 16", "safety-notice.md"),
    found("How often are life rafts serviced?", "every three years", "safety-notice.md"),
    found("Can I bring my dog into the loft?", "Dogs are not allowed", "house-rules.txt", "paraphrase"),
    found("What do visiting vessels pay for ice?", "EUR 30 per tonne", "house-rules.txt", "paraphrase"),
    Case("What does a lost key cost?", "version", ("EUR 25",), ("house-rules.txt",), "EUR 10"),
    Case("How long may nets hang in the loft?", "version", ("14 days",), ("house-rules.txt",), "30 days"),
    absent("What does a lost life jacket cost?"),
    absent("What is the herring quota for 2026?"),
    absent("Who is the secretary of the cooperative?"),
    absent("How long is the Atlantic Dawn?"),
    absent("What was the surplus in 2021?"),
    absent("How do I apply for a fishing licence?"),
)

BIBLIOTHEK: tuple[Case, ...] = (
    found("Wie lange darf man Filme ausleihen?", "Filme | 7 Tage", "benutzungsordnung.md"),
    found("Was kostet ein verlorener Ausweis?", "5 Euro", "benutzungsordnung.md"),
    found("Dürfen Hunde in die Bibliothek?", "Hunde dürfen nicht", "benutzungsordnung.md"),
    found("Wo darf man telefonieren?", "nur im Foyer", "benutzungsordnung.md"),
    found("Wer leitet die Bibliothek?", "Henrike Osterloh", "jahresbericht-2024.md"),
    found("Wie viele Mitarbeiter hat die Bibliothek?", "Zwölf Mitarbeiterinnen", "jahresbericht-2025.md"),
    found("Wann ist die Zweigstelle Weiherstraße samstags geöffnet?", "10 bis 14 Uhr", "jahresbericht-2025.md"),
    found("Wie hoch sind die Mahngebühren pro Tag?", "0,30 Euro", "benutzungsordnung.md", "paraphrase"),
    Case("Was kostet der Bibliotheksausweis für Erwachsene?", "version", ("24 Euro",), ("benutzungsordnung.md",), "18 Euro"),
    Case("Wie entwickelte sich die Zahl der Besuche von 2024 bis 2025?", "series", ("118.400", "126.900"), ("jahresbericht-2024.md", "jahresbericht-2025.md")),
    found("How long may books be borrowed?", "Bücher | 28 Tage", "benutzungsordnung.md", "foreign"),
    absent("Was kostet ein Parkplatz?"),
    absent("Wie viele Besuche gab es 2019?"),
    absent("Wer ist der Bürgermeister?"),
    absent("Wie lange darf man Brettspiele ausleihen?"),
    absent("Welche Farbe hat der Bibliotheksausweis?"),
)  # fmt: skip

MUSEUM: tuple[Case, ...] = (
    Case("成人票多少钱？", "version", ("40元",), ("参观须知.md",), "30元"),
    found("博物馆周一开门吗？", "周一闭馆", "参观须知.md"),
    found("馆内可以拍照吗？", "可以拍照", "参观须知.md"),
    found("天象厅有多少个座位？", "180个座位", "天象厅.md"),
    found("可以带宠物入馆吗？", "宠物不得入馆", "参观须知.md"),
    found("新投影设备的预算是多少？", "860万元", "天象厅.md"),
    found("馆长是谁？", "陈思远", "天象厅.md"),
    absent("停车场的收费标准是什么？"),
    absent("老人票多少钱？"),
    absent("餐厅几点关门？"),
    absent("天象厅的建造费用是多少？"),
)

ASSOCIATION: tuple[Case, ...] = (
    Case(
        "Quel est le montant de la cotisation annuelle ?",
        "version",
        ("45 euros",),
        ("reglement.md",),
        "38 euros",
    ),
    Case("Combien coûte une clé perdue ?", "version", ("15 euros",), ("reglement.md",), "10 euros"),
    found("Les chiens sont-ils autorisés dans le jardin ?", "Les chiens sont interdits", "reglement.md"),
    found("À quelle heure peut-on arroser ?", "7 h à 10 h", "reglement.md"),
    found("Qui est le trésorier ?", "Karim Benali", "compte-rendu-2026-01.md"),
    found("Combien d'adhérents étaient présents à l'assemblée ?", "41 adhérents", "compte-rendu-2026-01.md"),
    found("Quand a lieu la fête du jardin ?", "13 juin 2026", "compte-rendu-2026-01.md"),
    found("Quelle est la surface d'une parcelle ?", "25 m²", "reglement.md", "paraphrase"),
    absent("Combien coûte une place de parking ?"),
    absent("Qui est le secrétaire de l'association ?"),
    absent("Quel était l'excédent en 2019 ?"),
    absent("Les chats sont-ils autorisés dans le jardin ?"),
)

CLINICA: tuple[Case, ...] = (
    found("¿Cuánto cuesta la vacuna antirrábica?", "24 euros", "normas.md"),
    found("¿A qué hora abre la clínica los sábados?", "10:00 a 14:00", "normas.md"),
    found("¿Está abierta la clínica los domingos?", "domingos permanece cerrada", "normas.md"),
    found("¿Con cuánta antelación hay que cancelar una cita?", "24 horas", "normas.md"),
    found("¿Cuántas consultas atendió la clínica en 2025?", "6.840 consultas", "informe-2025.md"),
    found("¿Cuánto costó el quirófano?", "58.000 euros", "informe-2025.md"),
    found("¿Quién atiende las urgencias?", "Inés Carrasco", "normas.md"),
    absent("¿Cuánto cuesta una radiografía?"),
    absent("¿Quién es el director de la clínica?"),
    absent("¿Cuántas consultas hubo en 2018?"),
    absent("¿Hay aparcamiento?"),
)

ONSEN: tuple[Case, ...] = (
    Case("大人の料金はいくらですか？", "version", ("850円",), ("利用案内.md",), "700円"),
    found("営業時間は何時までですか？", "22時まで", "利用案内.md"),
    found("休館日はいつですか？", "第3水曜日", "利用案内.md"),
    found("タオルの貸し出しはいくらですか？", "200円", "利用案内.md"),
    found("浴室で写真を撮ってもいいですか？", "写真撮影は禁止", "利用案内.md", "paraphrase"),
    found("2025年度の来館者数は何人ですか？", "84,300人", "事業報告.md"),
    found("支配人は誰ですか？", "高橋由美子", "事業報告.md"),
    absent("駐車場の料金はいくらですか？"),
    absent("宿泊料金はいくらですか？"),
    absent("会長は誰ですか？"),
    absent("サウナの温度は何度ですか？"),
)

FOLDERS: Mapping[str, tuple[Case, ...]] = {
    "fishing-cooperative": COOPERATIVE,
    "stadtbibliothek": BIBLIOTHEK,
    "science-museum-zh": MUSEUM,
    "association-fr": ASSOCIATION,
    "clinica-es": CLINICA,
    "onsen-ja": ONSEN,
}

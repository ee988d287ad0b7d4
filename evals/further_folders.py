"""Questions that search for the limits: paraphrases, near misses, denials, plans, units, typing errors."""

from __future__ import annotations

from collections.abc import Mapping

from .case import Case, absent, found

_BRIEF = "vlx500_product_brief.docx"
_CONCEPT = "vlx500_concept_2025_superseded.md"

COMPANY: tuple[Case, ...] = (
    found("Who are the main competitors?", "primary competitive", "board_memo_2026_strategy.pdf"),
    found("What went wrong in February 2026?", "firmware regression", "q1_2026_ops_report.pdf"),
    found("Which supplier provides the battery pack of the VLX-500?", "Norvolt Industri", _BRIEF),
    found("How quickly must customers be told about a SEV-1?", "60 minutes", "incident_process.md"),
    found("What was revenue in the first quarter of 2025?", "$12.8M"),
    found("Which events take place in November?", "CeMAT Asia (November)", "event_calendar_2026.md"),
    Case("When was the company founded and by whom?", "several", ("2019", "co-founder"), ("company_overview.md",)),
    found("How many employees does the company have?", "241 employees", "company_overview.md", "plain", "Equipment budget"),
    found("What is the RaaS monthly price?", "$1,950", "company_overview.md"),
    Case(
        "What changed between the VLX-500 concept and the current brief?",
        "version",
        ("$56,000", "950 kg", "11h fast-charge LFP", "-30°C"),
        (_BRIEF,),
        "10h Li-ion",
    ),
    found("How many emloyees does the company have?", "241 employees", "company_overview.md"),
    found("How many machines are in the loaner pool in Rotterdam?", "6 machines in Rotterdam", "laptop_runbook.md"),
    found("Who leads the company?", "Mara Lindqvist", "company_overview.md"),
    found("What is the biggest customer concentration risk?", "44% of ARR"),
    found("Is the wordmark allowed to be stretched?", "never stretch", "brand_guidelines.md"),
    found("Which round raised the most money?", "Series C", "company_overview.md"),
    found("Which product names are hyphenated?", "VLX-400, VLX-500", "brand_guidelines.md"),
    found("How long are results of simulations kept?", "results for 1 year", "simulation_cluster_usage.md"),
    found("What happens in week 4 of a commissioning?", "staged rollout", "site_commissioning_playbook.md"),
    absent("How many employees work in Atlanta?"),
    absent("What is the RaaS price of the VLX-300?"),
    absent("What went wrong in March 2025?"),
    absent("Which supplier provides the wheels of the VLX-500?"),
    absent("How quickly must customers be told about a SEV-2?"),
    absent("Which events take place in August?"),
    absent("What was the gross margin in Q3 2025?"),
    absent("Who led the Series D round?", "Series D optional"),
    absent("When was the Nagoya office opened?"),
    absent("What did the VLX-500 sell in 2025?"),
    absent("What is the notice period for dismissal?"),
    absent("How many customer sites are there in Germany?"),
    absent("Who is the VP Sales?"),
)  # fmt: skip

WARD: tuple[Case, ...] = (
    Case("How many beds does ward 7 have?", "version", ("28 beds",), ("handbook.md",), "24 beds"),
    Case("Who is the ward manager?", "version", ("Aoife Kearney",), ("handbook.md",), "Maureen Duffy"),
    Case("How soon must a fall be reported?", "version", ("within two hours",), ("handbook.md",), "24 hours"),
    found("When does the night shift begin?", "Night | 21:00", "handbook.md"),
    found("How many nurses are there on the late shift?", "Late | 14:00 | 21:30 | 5", "handbook.md"),
    found("Can I bring flowers?", "FLOWERS ARE NOT ALLOWED", "visiting.txt", "paraphrase"),
    found("How many visitors are allowed at a time?", "TWO VISITORS", "visiting.txt"),
    found("What does parking cost?", "GBP 3", "visiting.txt"),
    found("When was bed 7-14 last serviced?", "2026-02-02", "beds.csv"),
    found("Who is the pharmacist?", "Tomasz Zielinski", "handbook.md", "paraphrase"),
    found("How long was the ward closed because of norovirus?", "5 to 11 February", "infection-notice.md"),
    found("Does alcohol gel help against norovirus?", "does not work", "infection-notice.md", "paraphrase"),
    found("How many patients fell ill with norovirus?", "nine patients", "infection-notice.md"),
    found("Where do we gather in case of fire?", "car park C", "handbook.md", "paraphrase"),
    found("Who inspects the fire extinguishers?", "Hartnell", "handbook.md"),
    found("What are the visitng hours?", "15:00 TO 19:30", "visiting.txt"),
    absent("How many beds does ward 9 have?"),
    absent("What caused the norovirus outbreak?", "not identified"),
    absent("When did the second treatment room open?", "planned for 2027"),
    absent("What does the cafe charge for a sandwich?"),
    absent("Who is the head of surgery?"),
    absent("When was bed 7-15 last serviced?"),
    absent("How many patients died of norovirus?"),
    absent("What does parking cost on Sundays?"),
    absent("What is the telephone number of the ward?"),
)  # fmt: skip

SOFTWARE: tuple[Case, ...] = (
    found("What is the default sampling interval?", "10"),
    found("Which port does the HTTP interface use?", "8123", "configuration.md"),
    found("How long are samples kept by default?", "400 | days", "configuration.md"),
    found("When was version 2.3.0 released?", "2025-11-02", "CHANGELOG.md"),
    found("What was added in 2.4.0?", "MQTT output", "CHANGELOG.md"),
    found("Is Windows supported?", "Windows is not supported", "README.md"),
    found("What is the maximum number of retries?", "MAX_RETRIES = 5", "sampler.py", "paraphrase"),
    found("Which sensor does Port Ellery have?", "Port Ellery,UK,51.03,PX-310", "stations.csv"),
    found("How deep is the sensor at Lundvik Nord?", "9.5", "stations.csv"),
    found("Who leads the project?", "Ingrid Solbakken", "README.md"),
    found("Under which licence is tidegauge published?", "MIT", "README.md"),
    found("Which Python version is required?", "Python 3.11", "README.md", "paraphrase"),
    found("When will the serial backend be removed?", "3.0"),
    found("What is the depth_m of Harwick in stations.csv?", "4.2", "stations.csv"),
    absent("How deep is the sensor at Lundvik Sør?"),
    absent("When was version 2.5.0 released?"),
    absent("When was the mobile app released?", "mobile app"),
    absent("Which database does tidegauge use?"),
    absent("Who maintains the Debian package?"),
    absent("How are text messages configured?", "text messages are not supported"),
    absent("What is the altitude of Harwick?"),
    absent("What was fixed in 2.0.0?"),
)

HOCHSCHULE: tuple[Case, ...] = (
    Case("Wie viele Leistungspunkte hat GI-101?", "version", ("6 Leistungspunkte",), ("modulhandbuch-2025.md",), "5 Leistungspunkte"),
    Case("Wie lange hat man für die Bachelorarbeit Zeit?", "version", ("zwölf Wochen",), ("modulhandbuch-2025.md",), "zehn Wochen"),
    found("Wer ist für GI-102 verantwortlich?", "Yasemin Aydın", "modulhandbuch-2025.md"),
    found("Wie viele Plätze hat die Fernerkundung?", "24", "modulhandbuch-2025.md"),
    found("In welcher Sprache wird Geostatistik unterrichtet?", "Deutsch", "modulhandbuch-2025.md"),
    found("Wie oft darf eine Prüfung wiederholt werden?", "zweimal wiederholt", "pruefungsordnung.md"),
    found("Bis wann kann man von einer Prüfung zurücktreten?", "drei Tage vorher", "pruefungsordnung.md"),
    found("Wer leitet den Prüfungsausschuss?", "Miriam Löwenthal", "pruefungsordnung.md", "paraphrase"),
    found("Wo findet der Kurs 4711 statt?", "B 1.12", "kurse.csv"),
    found("Wer unterrichtet Drohnenvermessung?", "Pohl", "kurse.csv"),
    found("Werden Karten verliehen?", "Karten werden nicht verliehen", "bibliothek.txt"),
    found("Wie lange darf man Bücher behalten?", "drei Wochen", "bibliothek.txt"),
    absent("Wie viele Leistungspunkte hat GI-103?"),
    absent("Wer unterrichtet Kurs 4714?"),
    absent("Was kostet das Semesterticket?"),
    absent("Wie lange dauert die Masterarbeit?"),
    absent("Wann hat die Bereichsbibliothek sonntags geöffnet?"),
    absent("Wie viele Plätze hat GI-101?"),
    absent("Wer ist der Dekan?"),
)  # fmt: skip

LUFTREINIGER: tuple[Case, ...] = (
    Case("滤网多久更换一次？", "version", ("每六个月",), ("说明书.md",), "每三个月"),
    found("KJ-500的噪音是多少？", "38分贝", "说明书.md"),
    found("KJ-300有多重？", "6.2千克", "说明书.md", "paraphrase"),
    found("电机保修几年？", "电机保修五年", "保修.md"),
    found("客服电话是多少？", "400-820-1234", "保修.md"),
    found("红灯闪烁是什么意思？", "需要更换滤网", "说明书.md"),
    found("滤网可以水洗吗？", "不可水洗", "说明书.md"),
    absent("KJ-800的噪音是多少？"),
    absent("KJ-300的价格是多少？"),
    absent("滤网的保修期多长？", "滤网不在保修范围内"),
    absent("遥控器用什么电池？"),
    absent("公司的地址在哪里？"),
)

FOLDERS: Mapping[str, tuple[Case, ...]] = {
    "ward-handbook": WARD,
    "tidegauge": SOFTWARE,
    "hochschule": HOCHSCHULE,
    "luftreiniger-zh": LUFTREINIGER,
}

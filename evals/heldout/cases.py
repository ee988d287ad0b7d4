"""Questions by which nothing is tuned: they are scored, and never looked into while rules are made."""

from __future__ import annotations

from collections.abc import Mapping

from evals.case import Case, absent, found

COMPANY: tuple[Case, ...] = (
    found("Who is the head of technology?", "Daan Verhoeven", "company_overview.md", "paraphrase"),
    found("How much money has Veltrix raised in total?", "$142M", "company_overview.md"),
    found("What is the company's valuation?", "$610M", "company_overview.md"),
    found("Which customers are in Japan?", "1 JP"),
    found("Where are the offices?", "Rotterdam", "", "paraphrase"),
    found("How long does the probation period last?", "Month 3", "onboarding_checklist.md", "paraphrase"),
    found("When will the v4 REST telemetry API be switched off?", "mid-2027", "veltrixos_release_notes_5_0_beta.md", "paraphrase"),
    found("What share of ARR comes from cold storage?", "61% of ARR", "board_memo_2026_strategy.pdf"),
    found("How high is the win rate in cold-chain RFPs?", "71%", "board_memo_2026_strategy.pdf"),
    found("What is the BOM cost of a unit?", "$19,400", "q1_2026_ops_report.pdf"),
    found("How often are fully-remote arrangements reviewed?", "reviewed annually", "remote_work_policy.md"),
    found("Which VPN do we use?", "WireGuard", "laptop_runbook.md"),
    found("Which typeface does the wordmark have?", "Grotesk Bold", "brand_guidelines.md", "paraphrase"),
    found("What is the MTBF?", "2,340 hours", "q1_2026_ops_report.pdf"),
    found("On which day must everyone be in the office?", "Tuesday", "remote_work_policy.md", "paraphrase"),
    found("How much does it take to need pre-approval for customer entertainment?", "EUR 150", "expense_policy.md"),
    Case("How did picks per robot per hour develop from 2024 to 2026?", "series", ("118", "131", "142")),
    Case("How did the number of customer sites change between 2024 and 2026?", "series", ("21", "33", "47")),
    absent("What is the RaaS price of the VLX-400 in Japan?"),
    absent("Who is the VP Engineering?"),
    absent("What was the gross margin in Q1 2023?"),
    absent("How many accounts were reviewed in 2025?"),
    absent("When does the Nagoya office open?"),
    absent("How long is the warranty on the drive unit?"),
    absent("Which university did Daan Verhoeven attend?"),
    absent("How many robots were sold in 2025?"),
    absent("What is the top speed of the VLX-300?"),
    absent("Who supplies the LiDAR module of the VLX-500?"),
    absent("When is LogiMAT Stuttgart 2027?"),
    absent("What is the maximum discount for RaaS contracts?"),
)  # fmt: skip

PARISH: tuple[Case, ...] = (
    found("What was the precept for 2024/25?", "GBP 19,750", "minutes-2024-05.md"),
    Case("How did the precept develop from 2023 to 2025?", "series", ("18,400", "19,750", "21,300")),
    Case(
        "What does a plot for a non-resident cost?", "version", ("GBP 930",), ("burial-fees.md",), "GBP 720"
    ),
    found("How tall may a headstone be?", "90 cm", "burial-fees.md"),
    found("Who cuts the grass?", "Verdant Ltd", "minutes-2025-05.md", "paraphrase"),
    found("Who installed the defibrillator?", "Heartline Ltd", "minutes-2024-05.md"),
    found("Did the council buy the old forge?", "rejected", "minutes-2024-05.md"),
    found("When may bonfires be lit?", "November and December", "allotments.md", "paraphrase"),
    found("What is the rent of an allotment?", "GBP 42", "allotments.md"),
    found(
        "How many residents came to the meeting in 2024?", "22 residents", "minutes-2024-05.md", "paraphrase"
    ),
    found("What is the bench at Mill Road worth?", "Mill Road,1998,450", "assets.csv"),
    found("Who is the clerk?", "Wendy Tranter", "minutes-2024-05.md"),
    found("How many hens may I keep?", "up to six", "allotments.md"),
    absent("What did the old forge cost?", "old forge"),
    absent("Who is the chair of Nether Marling Parish Council?"),
    absent("What was the precept for 2021/22?"),
    absent("When was the car park resurfaced?", "apply for a grant"),
    absent("How many goats may be kept?"),
    absent("What is the rent of the village hall?"),
    absent("Who installed the bus shelter?"),
    absent("Who keeps the waiting list for half plots?", "no waiting list for half plots"),
    absent("When is the speed limit on Church Lane introduced?", "refused"),
)

BAIL: tuple[Case, ...] = (
    Case("Quel est le loyer mensuel ?", "plain", ("915 euros",), ("avenant-2025.md",)),
    found("Quelle est la surface du logement ?", "64 m²", "contrat.md", "paraphrase"),
    found("Qui est le locataire ?", "Youssef Haddad", "contrat.md"),
    found("Quel est le préavis du locataire ?", "un\nmois".replace("\n", " "), "contrat.md"),
    found("Combien de clés ont été remises ?", "Trois clés", "etat-des-lieux.md"),
    found("Qui paie l'entretien de la chaudière ?", "aux frais du locataire", "contrat.md"),
    found("Quand sort-on les poubelles ?", "mardi soir", "reglement.md", "paraphrase"),
    found("La sous-location est-elle autorisée ?", "interdite", "contrat.md"),
    found("Quel est l'état du sol de la cuisine ?", "carrelage", "etat-des-lieux.md"),
    absent("Quel est le montant de la taxe d'habitation ?"),
    absent("Combien coûte la place de parking ?", "parking n'est pas comprise"),
    absent("Qui est le propriétaire du 14, rue des Tanneurs ?"),
    absent("Quelle est la surface de la cave ?"),
    absent("Quand l'ascenseur est-il entretenu ?", "pas d'ascenseur"),
    absent("Quel est le montant du loyer en 2022 ?"),
)  # fmt: skip

SUIHANKI: tuple[Case, ...] = (
    Case("保温は最長何時間ですか？", "version", ("24時間",), ("取扱説明書.md",), "12時間"),
    found("RC-100の消費電力はいくつですか？", "1,400W", "取扱説明書.md"),
    found("内釜は食器洗い機で洗えますか？", "食器洗い機で洗えません", "取扱説明書.md"),
    found("E03は何を示しますか？", "ふたが開いている", "取扱説明書.md"),
    found("保証期間はどのくらいですか？", "1年間", "保証.md"),
    found("お客様相談室の責任者は誰ですか？", "山本恵子", "保証.md"),
    absent("RC-200の消費電力はいくつですか？"),
    absent("E05は何を示しますか？"),
    absent("炊飯器の価格はいくらですか？"),
    absent("修理の料金はいくらですか？"),
    absent("製造工場はどこですか？"),
)

SEEDS: tuple[Case, ...] = (
    Case("How many packets may members take?", "version", ("eight packets",), ("borrowing.md",), "five packets"),
    found("When is the seed library open?", "Wednesdays from 16:00", "opening.html"),
    found("Where is the seed library?", "old signal box", "opening.html"),
    found("How many packets of Marrable are left?", "S-027,Marrable,pea,41", "catalogue.csv", "paraphrase"),
    found("When is Crimson Hill sown?", "S-015,Crimson Hill,tomato,9,March", "catalogue.csv"),
    found("Who is the curator?", "Oisín Harte", "newsletter-2025.md"),
    Case("How did membership develop from 2024 to 2025?", "series", ("143", "171")),
    found("How many people came to the seed swap?", "95 visitors", "newsletter-2024.md", "paraphrase"),
    found("Is hybrid seed accepted?", "not accepted", "borrowing.md"),
    found("What happens to packets with low germination?", "composted", "borrowing.md"),
    found("What does memebership cost?", "EUR 12", "borrowing.md"),
    absent("When is Crimson Hillside sown?"),
    absent("What did the polytunnel cost?", "polytunnel was considered but not bought"),
    absent("When did the branch in Kilbeg open?", "may open in 2027"),
    absent("How many members were there in 2019?"),
    absent("What does parking cost?", "no car park"),
    absent("Who founded the seed library?"),
    absent("What is the germination rate of Marrable?"),
)  # fmt: skip

FOLDERS: Mapping[str, tuple[Case, ...]] = {
    "parish-council": PARISH,
    "bail-fr": BAIL,
    "suihanki-ja": SUIHANKI,
    "seed-library": SEEDS,
}

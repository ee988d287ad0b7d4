"""Questions over `company-share`: 27 files of a fictional company, with superseded and misleading ones among them."""

from __future__ import annotations

from .case import Case, absent, found

_EXPENSES = "expense_policy.md"
_OVERVIEW = "company_overview.md"
_BRIEF = "vlx500_product_brief.docx"
_CONCEPT = "vlx500_concept_2025_superseded.md"
_Q1 = ("q1_2024_ops_report.pdf", "q1_2025_ops_report.pdf", "q1_2026_ops_report.pdf")
_MEMO = "board_memo_2026_strategy.pdf"
_LEAVE = "annual_leave_faq.md"
_RUNBOOK = "laptop_runbook.md"

PLAIN: tuple[Case, ...] = (
    found("What may a hotel night cost?", "Hotel caps: EUR 180", _EXPENSES),
    found("What are the hotel caps?", "Hotel caps: EUR 180", _EXPENSES),
    found("Who is the CEO?", "Mara Lindqvist", _OVERVIEW),
    found("Who is the CTO of Veltrix?", "Daan Verhoeven", _OVERVIEW),
    found("When was Veltrix Dynamics founded?", "2019", _OVERVIEW),
    found("Who led the Series C round?", "Meridian Growth Partners", _OVERVIEW),
    Case("How much was raised in Series B?", "plain", ("$34.5M",)),
    found("How many employees does the company have?", "241 employees", _OVERVIEW),
    found("What is the list price of the VLX-400?", "$48,500", _OVERVIEW),
    found("What does the RaaS subscription cost per robot and month?", "$1,950", _OVERVIEW),
    found("Who approves discounts above 20%?", "CEO + CFO", "discount_approval_matrix.md"),
    found("Who has to approve a discount of 15%?", "12-20%: VP Sales", "discount_approval_matrix.md"),
    found("How long is telemetry retained under the DPA?", "24 months", "dpa_template_notes.md"),
    found("What is the 2026 revenue target?", "$96M", _MEMO),
    found("When will the company reach EBITDA breakeven?", "Q3 2027", _MEMO),
    found("Which competitors does management see as the primary threats?", "Geek+ and Locus", _MEMO),
    found("What caused the firmware incident in February 2026?", "LiDAR extrinsics", _Q1[2]),
    found(
        "How many near-miss reports were there in February?",
        "Near-miss reports in February: 3",
        "warehouse_safety_bulletin_march2026.md",
    ),
    found(
        "How many stale accounts were disabled in the access review?",
        "23 stale accounts",
        "access_review_2026.md",
    ),
    found("How many nodes does the simulation cluster have?", "128 nodes", "simulation_cluster_usage.md"),
    found("What is the primary brand color?", "#1B4FD8", "brand_guidelines.md"),
    found("When do SEV-1 post-mortems have to be written?", "five working days", "incident_process.md"),
    found("What is the equipment budget for remote work?", "EUR 900", "remote_work_policy.md"),
    found("How many loaner laptops are there in Nagoya?", "2 in Nagoya", _RUNBOOK),
    found("Where does CeMAT Asia take place and when?", "CeMAT Asia (November)", "event_calendar_2026.md"),
    found("Who supplies the LFP battery pack of the VLX-500?", "Norvolt Industri", _BRIEF),
    found("Is there a penalty for the February 2026 firmware incident?", "No SLA penalties", _Q1[2]),
    found("When is the UL 3100 audit scheduled?", "September 2026", _MEMO),
    found("How many reference customers are there in Japan?", "1 JP", "customer_reference_program.md"),
    found("What was Q1 2025 revenue?", "$12.8M", _Q1[1]),
    found("What was revenue in Q1 2023?", "Q1 2023: $4.6M", _Q1[0]),
)

PARAPHRASED: tuple[Case, ...] = (
    found("What is the nightly hotel rate employees may spend in Japan?", "JPY 28,000", _EXPENSES, "paraphrase"),
    found("What are the accommodation limits on business trips?", "Hotel caps: EUR 180", _EXPENSES, "paraphrase"),
    found("Is there a lodging cap in the US?", "USD 240 (US)", _EXPENSES, "paraphrase"),
    found("How many vacation days do US employees get?", "22 days PTO", _LEAVE, "paraphrase"),
    found("How much holiday do staff in the EU have?", "28 days statutory", _LEAVE, "paraphrase"),
    found("How much memory do laptops have?", "32GB RAM", _RUNBOOK, "paraphrase"),
    found("Who founded Veltrix?", "co-founder", _OVERVIEW, "paraphrase"),
    found("Who is the boss of Veltrix?", "Mara Lindqvist", _OVERVIEW, "paraphrase"),
    found("How many people work at Veltrix?", "241 employees", _OVERVIEW, "paraphrase"),
    found("How large is the workforce?", "241 employees", _OVERVIEW, "paraphrase"),
    found("May employees work from abroad?", "another country", "remote_work_policy.md", "paraphrase"),
    found("By when must expenses be submitted?", "filed within 30 days", _EXPENSES, "paraphrase"),
    found("How long does it take to commission a site with 60 robots?", "six weeks", "site_commissioning_playbook.md", "paraphrase"),
    found("Can unused vacation be carried over in the US?", "no carry-over beyond 5 days", _LEAVE, "paraphrase"),
)  # fmt: skip

SEVERAL: tuple[Case, ...] = (
    Case(
        "What are the hotel caps and who approves discounts above 20%?",
        "several",
        ("Hotel caps: EUR 180", "CEO + CFO"),
        (_EXPENSES, "discount_approval_matrix.md"),
    ),
    Case("What are the payload and top speed of the VLX-500?", "several", ("950 kg", "2.4 m/s"), (_BRIEF,)),
    Case("Who are the CEO and the CTO?", "several", ("Mara Lindqvist", "Daan Verhoeven"), (_OVERVIEW,)),
    Case(
        "How much RAM does a standard laptop have, and what are the severity levels of IT incidents?",
        "several",
        ("32GB RAM", "SEV-1"),
        (_RUNBOOK, "incident_process.md"),
    ),
)

SERIES: tuple[Case, ...] = (
    Case("How did gross margin develop from 2024 to 2026?", "series", ("33%", "37%", "41%"), _Q1),
    Case("How has the deployed fleet grown since 2024?", "series", ("1,180", "1,960", "3,120"), _Q1),
    Case("How did ARR evolve between 2024 and 2026?", "series", ("$14.2M", "$27.5M", "$46.9M"), _Q1),
    Case("How did fleet availability change over the years?", "series", ("98.4%", "98.9%", "99.2%"), _Q1),
)

VERSIONS: tuple[Case, ...] = (
    Case(
        "Which battery will the VLX-500 have?", "version", ("11h fast-charge LFP",), (_BRIEF,), "10h Li-ion"
    ),
    Case("When will the VLX-500 launch?", "version", ("Q4 2026",), (), "Q2 2026"),
    Case("What is the list price of the VLX-500?", "version", ("$56,000",), (_BRIEF,), "$52,000"),
    Case("What is the payload of the VLX-500?", "version", ("950 kg",), (_BRIEF,), "800 kg"),
    Case("What is the cold rating of the VLX-500?", "version", ("-30°C",), (), "-25C"),
)

FOREIGN: tuple[Case, ...] = (
    Case("Welche Batterie hat der VLX-500?", "foreign", ("11h fast-charge LFP",), (_BRIEF,)),
    Case("Wer ist der CEO von Veltrix?", "foreign", ("Mara Lindqvist",), (_OVERVIEW,)),
    Case("VLX-500のバッテリーは何ですか？", "foreign", ("11h fast-charge LFP",), (_BRIEF,)),
)

ABSENT: tuple[Case, ...] = (
    absent("What is the parental leave policy?"),
    absent("Who is the CFO's assistant?"),
    absent("Who is the CFO?"),
    absent("What was revenue in 2019?"),
    absent("What battery does the VLX-900 have?"),
    absent("What does the VLX-500 cost in yen?"),
    absent("What is Tesla's revenue?"),
    absent("How many sick days do US employees get?"),
    absent("What is the phone number of the Atlanta office?"),
    absent("Is there a cafeteria in Rotterdam?"),
    absent("What is the warranty period of the VLX-400?"),
    absent("How many employees work in Berlin?"),
    absent("What is the CEO's salary?"),
    absent("When was Mara Lindqvist born?"),
    absent("How did gross margin develop from 2017 to 2019?"),
    absent("What is the hotel cap in Brazil?"),
    absent("Which bank does the company use?"),
    absent("How heavy is the VLX-400?"),
    absent("Wie hoch ist die Kantinenpauschale?"),
    absent("社員食堂の営業時間は何時ですか？"),
    absent("Who won the football world cup in 2018?"),
    absent("What is the refund policy for event tickets?"),
)

CASES = PLAIN + PARAPHRASED + SEVERAL + SERIES + VERSIONS + FOREIGN + ABSENT

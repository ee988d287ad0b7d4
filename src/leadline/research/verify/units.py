"""The words that stand for units, scales, months and small numbers: data for reading figures."""

from __future__ import annotations

from decimal import Decimal


def _names(table: dict[str, str]) -> dict[str, str]:
    return {name: unit for unit, names in table.items() for name in names.split("|")}


UNIT_NAMES: dict[str, str] = _names(
    {
        "%": "%|percent|per cent|prozent|pct|pour cent|por ciento",
        "‰": "‰|per mille|promille",
        "pp": "percentage points|percentage point|percent points|pp|p.p.|prozentpunkte|prozentpunkt|prozentpunkten|个百分点|百分点|ポイント",
        "bp": "basis points|basis point|bps|bp|basispunkte|个基点|基点",
        "EUR": "€|eur|euro|euros|欧元|ユーロ",
        "USD": "us$|$|usd|dollar|dollars|us dollars|u.s. dollars|美元|ドル",
        "GBP": "£|gbp|pound sterling|pounds sterling|英镑",
        "CHF": "chf|swiss francs|swiss franc|franken",
        "CNY": "cny|rmb|yuan|renminbi|元|人民币",
        "JPY": "¥|jpy|yen|円|日元",
        "INR": "₹|inr|rupees|rupee",
        "KRW": "₩|krw|won|원",
        "g": "g|gram|grams|gramm|克",
        "kg": "kg|kilogram|kilograms|kilogramm|kilo|kilos|公斤|千克",
        "mg": "mg|milligram|milligrams|毫克",
        "µg": "µg|μg|mcg|microgram|micrograms",
        "t": "t|tonne|tonnes|tons|ton|tonnen|吨",
        "mm": "mm|millimetre|millimetres|millimeter|millimeters|毫米",
        "cm": "cm|centimetre|centimetres|centimeter|centimeters|zentimeter|厘米",
        "m": "m|metre|metres|meter|meters|metern|米",
        "km": "km|kilometre|kilometres|kilometer|kilometers|kilometern|公里|千米",
        "mi": "mi|mile|miles|meilen",
        "ft": "ft|feet|foot",
        "in": "inch|inches",
        "m2": "m²|m2|square metres|square meters|quadratmeter|平方米",
        "m3": "m³|m3|cubic metres|cubic meters|kubikmeter|立方米",
        "km/h": "km/h|kph|kmh",
        "ha": "ha|hectare|hectares|hektar|公顷",
        "l": "l|litre|litres|liter|liters|升",
        "ml": "ml|millilitre|millilitres|milliliter|milliliters|毫升",
        "°C": "°c|degrees celsius|degree celsius|grad celsius|℃|摄氏度",
        "°F": "°f|degrees fahrenheit",
        "°": "°|degrees|degree|grad|度",
        "W": "w|watt|watts",
        "kW": "kw|kilowatt|kilowatts|千瓦",
        "MW": "mw|megawatt|megawatts|兆瓦",
        "GW": "gw|gigawatt|gigawatts",
        "Wh": "wh",
        "kWh": "kwh|kilowatt-hours|kilowatt hours|kilowattstunden|千瓦时",
        "MWh": "mwh|megawatt-hours|megawatt hours",
        "GWh": "gwh|gigawatt-hours",
        "TWh": "twh|terawatt-hours",
        "V": "v|volt|volts",
        "A": "amp|amps|ampere|amperes",
        "Ah": "ah",
        "mAh": "mah",
        "Hz": "hz|hertz",
        "kHz": "khz",
        "MHz": "mhz",
        "GHz": "ghz",
        "bar": "bar",
        "Pa": "pa|pascal",
        "kPa": "kpa",
        "dB": "db|decibel|decibels",
        "ms": "ms|millisecond|milliseconds|毫秒",
        "s": "s|sec|secs|second|seconds|sekunde|sekunden|秒",
        "min": "min|mins|minute|minutes|minuten|分钟",
        "h": "h|hr|hrs|hour|hours|stunde|stunden|小时|時間",
        "d": "day|days|tag|tage|tagen|天",
        "wk": "week|weeks|woche|wochen|周|星期",
        "mo": "month|months|monat|monate|monaten|个月|か月",
        "yr": "year|years|yr|yrs|jahr|jahre|jahren",
        "kB": "kb|kilobyte|kilobytes",
        "MB": "mb|megabyte|megabytes",
        "GB": "gb|gigabyte|gigabytes",
        "TB": "tb|terabyte|terabytes",
        "x": "times|fold|倍",
    }
)
"""Spelling, in lower case, to unit."""

YEN_OR_YUAN = ("JPY", "CNY")

SCALES: dict[str, Decimal] = {
    **dict.fromkeys(("thousand", "thousands", "tsd", "tsd.", "tausend", "mille", "千"), Decimal(10**3)),
    **dict.fromkeys(
        ("million", "millions", "mn", "mln", "mio", "mio.", "millionen", "millones", "百万"), Decimal(10**6)
    ),
    **dict.fromkeys(
        ("billion", "billions", "bn", "bln", "mrd", "mrd.", "milliarde", "milliarden", "milliards", "十亿"),
        Decimal(10**9),
    ),
    **dict.fromkeys(("trillion", "trillions", "tn", "trn", "billionen", "兆", "万亿"), Decimal(10**12)),
    "hundred": Decimal(100),
    "百": Decimal(100),
    "lakh": Decimal(10**5),
    "crore": Decimal(10**7),
    **dict.fromkeys(("万", "萬"), Decimal(10**4)),
    "千万": Decimal(10**7),
    **dict.fromkeys(("亿", "億"), Decimal(10**8)),
}
LETTER_SCALES: dict[str, Decimal] = {
    "k": Decimal(10**3),
    "m": Decimal(10**6),
    "b": Decimal(10**9),
    "t": Decimal(10**12),
}
"""Letters that are a scale only right after the digits: 5k, 3M, $2b."""

MONTHS: dict[str, int] = {
    name: number
    for number, names in enumerate(
        (
            "january|jan|januar|jänner|janvier|enero",
            "february|feb|februar|février|febrero",
            "march|mar|märz|mars|marzo",
            "april|apr|avril|abril",
            "may|mai|mayo",
            "june|jun|juni|juin|junio",
            "july|jul|juli|juillet|julio",
            "august|aug|août|agosto",
            "september|sep|sept|septembre|septiembre",
            "october|oct|oktober|okt|octobre|octubre",
            "november|nov|novembre|noviembre",
            "december|dec|dezember|dez|décembre|diciembre",
        ),
        start=1,
    )
    for name in names.split("|")
}

CARDINALS: dict[str, int] = {
    word: number
    for number, words in (
        (0, "zero|null"),
        (1, "one|eins"),
        (2, "two|zwei|deux|dos"),
        (3, "three|drei|trois|tres"),
        (4, "four|vier|quatre|cuatro"),
        (5, "five|fünf|cinq|cinco"),
        (6, "six|sechs|seis"),
        (7, "seven|sieben|sept|siete"),
        (8, "eight|acht|huit|ocho"),
        (9, "nine|neun|neuf|nueve"),
        (10, "ten|zehn|dix|diez"),
        (11, "eleven|elf|onze|once"),
        (12, "twelve|zwölf|douze|doce"),
        (20, "twenty|zwanzig"),
        (30, "thirty|dreißig"),
        (40, "forty|vierzig"),
        (50, "fifty|fünfzig"),
        (60, "sixty|sechzig"),
        (70, "seventy|siebzig"),
        (80, "eighty|achtzig"),
        (90, "ninety|neunzig"),
    )
    for word in words.split("|")
    if word not in ("once", "sept", "null")  # words of another sense in English and German
}

ORDINALS: dict[str, int] = {
    word: number
    for number, word in enumerate(
        [
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "sixth",
            "seventh",
            "eighth",
            "ninth",
            "tenth",
            "eleventh",
            "twelfth",
        ],
        start=1,
    )
}

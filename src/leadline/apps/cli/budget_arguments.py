"""The options that limit what a run or a turn may use."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

from leadline.apps.cli.parser import decimal
from leadline.apps.cli.times import duration


def budget(parser: ArgumentParser, whose: str) -> None:
    """Add the ceilings; `whose` says what they hold for."""
    add = parser.add_argument
    add("--max-tokens", type=_whole, metavar="N", help=f"tokens of all calls of {whose}, prompts included")
    add("--max-cost", type=_dollars, metavar="DOLLARS", help=f"what {whose} may cost, in US dollars")
    add("--max-calls", type=_whole, metavar="N", help=f"paid calls of {whose}, failed ones included")
    add("--max-time", type=duration, metavar="TIME", help=f"how long {whose} may take: 90s, 10m, 2h")


def kept(parser: ArgumentParser) -> None:
    """Add the option that says how much of a budget is for writing up."""
    parser.add_argument(
        "--keep",
        type=_share,
        metavar="SHARE",
        help="part of each of these kept for the report; default: 0.15",
    )


def _whole(word: str) -> int:
    plain = word.replace("_", "").replace(",", "")
    if not (plain.isascii() and plain.isdigit() and len(plain) < 16 and int(plain)):
        raise ArgumentTypeError(f"{word!r} is no ceiling; write a whole number above 0, such as 200000")
    return int(plain)


def _dollars(word: str) -> float:
    number = decimal(word.removeprefix("$"))
    if not 1e-12 <= number < float("inf"):
        raise ArgumentTypeError(f"{word!r} is no amount of money; write US dollars above 0, such as 0.50")
    return number


def _share(word: str) -> float:
    number = decimal(word)
    if not 0 <= number <= 0.9:
        raise ArgumentTypeError(f"{word!r} is no share; write a number from 0 to 0.9, such as 0.15")
    return number

"""The options of `leadline models …` and `leadline login`."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

from leadline.apps.cli.parser import Command, add_patches, decimal

ROLES = ("fast", "standard", "strong", "review")


def _list(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--all", dest="all_of_them", action="store_true", help="also models whose provider has no key yet")
    add("--discover", action="store_true", help="also ask the usual ports of this machine for model servers")
    add("--json", dest="as_json", action="store_true", help="print one JSON array")
    add_patches(parser)


def _test(parser: ArgumentParser) -> None:
    _model(parser, "default: the default model")
    add = parser.add_argument
    add("--base-url", metavar="URL", help="address of an OpenAI-compatible server for the model")
    add("--timeout", type=_seconds, metavar="SECONDS", help="wait so long at most; default: 60")
    add("--json", dest="as_json", action="store_true", help="print one JSON object")
    add_patches(parser)


def _add(parser: ArgumentParser) -> None:
    parser.add_argument("model_id", metavar="PROVIDER/NAME", help="what it is called from now on")
    add = parser.add_argument
    add("--base-url", metavar="URL", help="where the provider is reached")
    add("--like", metavar="PROFILE", help="kind of the provider, where its name does not say it")
    add("--key-env", metavar="NAME", help="environment variable that holds the key")
    add("--context-window", "--window", type=_whole, metavar="N", help="tokens that fit its window")
    add("--max-output", type=_whole, metavar="N", help="most tokens of one answer")
    add("--no-tools", action="store_true", help="it cannot call tools")
    add("--default", dest="as_default", action="store_true", help="make it the default model")
    _role(parser, "use it for this role; repeatable", many=True)
    add("--json", dest="as_json", action="store_true", help="print one JSON object")


def _remove(parser: ArgumentParser) -> None:
    parser.add_argument("model_id", metavar="PROVIDER[/NAME]", help="a model, or a provider with all of it")
    parser.add_argument("--json", dest="as_json", action="store_true", help="print one JSON object")


def _default(parser: ArgumentParser) -> None:
    _model(parser, "without it, tell what is set")
    _role(parser, "for this role instead of for everything", many=False)
    parser.add_argument("--unset", action="store_true", help="go back to what it is without you")
    parser.add_argument("--json", dest="as_json", action="store_true", help="print one JSON object")


def _price(parser: ArgumentParser) -> None:
    parser.add_argument(
        "model_id", metavar="PROVIDER/NAME", help="a model, or PROVIDER/* for all of a provider"
    )
    add = parser.add_argument
    add("--input", type=_dollars, dest="input_price", metavar="USD", help="for a million input tokens")
    add("--output", type=_dollars, dest="output_price", metavar="USD", help="for a million output tokens")
    add("--cached", type=_dollars, dest="cached_price", metavar="USD", help="of those read from a cache")
    add("--cache-write", type=_dollars, dest="write_price", metavar="USD", help="of those written to a cache")
    add("--reasoning", type=_dollars, dest="reasoning_price", metavar="USD", help="of those for reasoning")
    add("--call", type=_dollars, dest="call_price", metavar="USD", help="for each call")
    add("--free", action="store_true", help="it costs nothing: a server of one's own")
    add("--like", metavar="PROVIDER/NAME", help="it costs what this one costs")
    add("--unset", action="store_true", help="go back to what the shipped list says")
    add("--json", dest="as_json", action="store_true", help="print one JSON object")


def _limits(parser: ArgumentParser) -> None:
    _model(parser, "a model, or PROVIDER/* for each of a provider; without it, tell what holds")
    add = parser.add_argument
    add("--max", type=_count, dest="most_at_once", metavar="N", help="calls that may be under way at once")
    add("--requests-per-minute", type=_count, metavar="N", help="calls within any minute")
    add("--tokens-per-minute", type=_count, metavar="N", help="tokens within any minute")
    add("--unset", action="store_true", help="take back what was written down for the model")
    add("--json", dest="as_json", action="store_true", help="print one JSON array")
    add_patches(parser)


def _login(parser: ArgumentParser) -> None:
    parser.add_argument(
        "provider", metavar="PROVIDER", help="whose key it is; see: leadline models list --all"
    )
    add = parser.add_argument
    add(
        "--store",
        choices=("keyring", "file"),
        metavar="PLACE",
        help="keyring or file; default: keyring if there is one",
    )
    add("--remove", action="store_true", help="forget the key")
    add("--json", dest="as_json", action="store_true", help="print one JSON object")
    add_patches(parser)


def _model(parser: ArgumentParser, says: str) -> None:
    parser.add_argument("model_id", nargs="?", metavar="PROVIDER/NAME", help=says)


def _role(parser: ArgumentParser, says: str, *, many: bool) -> None:
    parser.add_argument(
        "--role",
        action="append" if many else "store",
        default=[] if many else None,
        choices=ROLES,
        dest="model_roles" if many else "model_role",
        metavar="ROLE",
        help=f"{says}: {', '.join(ROLES)}",
    )


def _whole(word: str) -> int:
    if not (word.isascii() and word.isdigit() and 0 < len(word) < 10 and int(word)):
        raise ArgumentTypeError(f"{word!r} is no number of tokens; write for example 8192")
    return int(word)


def _count(word: str) -> int:
    if not (word.isascii() and word.isdigit() and 0 < len(word) <= 12 and int(word)):
        raise ArgumentTypeError(f"{word!r} is no limit; write a whole number from 1, for example 4")
    return int(word)


def _dollars(word: str) -> float:
    number = decimal(word)
    if not 0 <= number <= 1_000_000:
        raise ArgumentTypeError(f"{word!r} is no amount of dollars; write for example 0.28")
    return number


def _seconds(word: str) -> float:
    number = decimal(word)
    if not 0 < number <= 86_400:
        raise ArgumentTypeError(f"{word!r} is no number of seconds; write for example 60")
    return number


MODEL_COMMANDS = (
    Command("models list", "List the models that can be used, and what is missing for others.", _list),
    Command("models test", "Ask a model for one answer and one tool call, and say how it went.", _test),
    Command(
        "models add", "Add a model, its provider if need be, and check that it can be configured so.", _add
    ),
    Command("models remove", "Remove a model or a provider that was added.", _remove),
    Command("models default", "Say which model is used, for everything or for a role.", _default),
    Command("models price", "Tell what a model costs, or write down what you say it costs.", _price),
    Command("models limits", "Tell or set how many calls a model may be asked for at a time.", _limits),
    Command("login", "Store the key of a provider, from a prompt or from stdin.", _login),
)

"""Re-checking a bundle offline, with no model: everything that code made is made again and compared."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from leadline.research.bundle.archive import DamagedArchive, NotABundle, read_bytes, unpack
from leadline.research.bundle.ledger_lines import read_events
from leadline.research.bundle.manifest import (
    FORMAT,
    FORMAT_VERSION,
    LEDGER,
    MANIFEST,
    READ_VERSIONS,
    REPORT_HTML,
    REPORT_MD,
    RESULT,
    SNAPSHOTS,
    Manifest,
    root_of,
    snapshot_name,
    table_of,
)
from leadline.research.bundle.write import named_snapshots, rendered_members
from leadline.research.events import VerdictGiven
from leadline.research.ledger.ledger import Ledger, page_at
from leadline.research.report.draft import report_errors
from leadline.research.verify.judge import BY_CHECKS, CHECKS, CHECKS_VERSION, judge

_BUILT_IN = frozenset(check.name for check in CHECKS)


@dataclass(frozen=True)
class Verification:
    """What a bundle turned out to be. It proves integrity, not authorship: compare the digest."""

    digest: str
    """sha256 of the whole file: what `--expect` compares."""
    problems: tuple[str, ...] = ()
    """Why the bundle does not hold; empty when it does."""
    run: str = ""
    status: str = ""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """`members`, `snapshots`, `sources`, `quotes`, `citations`, `sentences` and one a verdict."""
    recorded: tuple[str, ...] = ()
    """What was shown as recorded, because no code can repeat it: verdicts of models, persons and added checks."""

    @property
    def ok(self) -> bool:
        return not self.problems


def verify_bundle(path: Path, expect: str | None = None) -> Verification:
    """Re-check a bundle.

    Args:
        path: the file.
        expect: a digest that the file must have.

    The archive is built again from its members and compared byte for byte; member hashes, snapshots, quotes and
    pages are checked; the built-in checks are run again and their verdicts compared; result and reports are made
    again from ledger and snapshots and compared byte for byte. A part that this version cannot re-check, since a
    newer one wrote it, is a problem and says so.

    Raises:
        NotABundle: the file is something else.
        BundleTooLarge: it is larger than this program reads.
        OSError: it cannot be read.
    """
    raw = read_bytes(path)
    digest = hashlib.sha256(raw).hexdigest()
    problems: list[str] = []
    if expect is not None and expect.strip().lower().removeprefix("sha256:") != digest:
        problems.append(f"the digest is {digest}, not the expected {expect.strip()}")
    try:
        members = unpack(raw, path)
    except DamagedArchive as error:
        return Verification(digest, (*problems, *error.problems))
    try:
        manifest = msgspec.json.decode(members.get(MANIFEST, b""), type=Manifest)
    except (msgspec.MsgspecError, RecursionError) as error:
        return Verification(digest, (*problems, f"{MANIFEST} cannot be read: {error}"))
    if manifest.format != FORMAT:
        raise NotABundle(path, f"its manifest is of the format {manifest.format!r}")
    problems.extend(_manifest_problems(manifest, members))
    if manifest.version not in READ_VERSIONS:
        problems.append(
            f"it is in bundle format {manifest.version}; this program re-checks formats up to {FORMAT_VERSION}, so that "
            f"nothing beyond the hashes was checked. Verify it with {_other_version(manifest.version)} Leadline."
        )
        return Verification(digest, tuple(problems), manifest.run, manifest.status)
    content = _Content(manifest, members)
    problems.extend(content.problems())
    return Verification(
        digest, tuple(problems), manifest.run, manifest.status, content.counts(), content.recorded()
    )


def _other_version(version: int) -> str:
    return "a newer" if version > FORMAT_VERSION else "an older"


def _manifest_problems(manifest: Manifest, members: Mapping[str, bytes]) -> list[str]:
    table = table_of(members)
    problems = [f"the member {name} is missing" for name in manifest.members if name not in table]
    problems += [
        f"the member {name} is not in the manifest" for name in table if name not in manifest.members
    ]
    problems += [
        f"the member {name} is not the one that the manifest names (its hash differs)"
        for name in table
        if name in manifest.members and table[name] != manifest.members[name]
    ]
    if root_of(manifest.members) != manifest.root:
        problems.append("the root hash of the manifest does not follow from its members")
    if manifest.version in READ_VERSIONS and manifest.to_json() != members[MANIFEST]:
        problems.append("the manifest is not in its own form")
    return problems


class _Content:
    """The ledger and snapshots of a bundle whose container was accounted for, and what can be made of them."""

    def __init__(self, manifest: Manifest, members: Mapping[str, bytes]) -> None:
        self.manifest = manifest
        self.members = members
        events, self._line_problems = read_events(members.get(LEDGER, b""), whole=manifest.version > 1)
        self.ledger = Ledger.of(events)
        self.texts: dict[str, str] = {}
        self._text_problems: list[str] = []
        for name in sorted(members):
            if name.startswith(SNAPSHOTS):
                self._take_snapshot(name, members[name])

    def _take_snapshot(self, name: str, data: bytes) -> None:
        sha = hashlib.sha256(data).hexdigest()
        if name != snapshot_name(sha):
            self._text_problems.append(f"{name} is not the text that its name says")
            return
        try:
            self.texts[sha] = data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            self._text_problems.append(f"{name} is not UTF-8 text")

    def problems(self) -> list[str]:
        """Everything that does not hold."""
        steps: tuple[Callable[[], list[str]], ...] = (
            lambda: [*self._line_problems, *self._text_problems],
            self._member_names,
            self._header,
            self._quotes,
            self._draft,
            self._verdicts,
            self._rendered,
        )
        return [problem for step in steps for problem in step()]

    def _member_names(self) -> list[str]:
        fixed = {MANIFEST, LEDGER, RESULT, REPORT_MD, REPORT_HTML}
        named = {snapshot_name(sha) for sha in named_snapshots(self.ledger)}
        problems = [
            f"the member {name} belongs to no bundle" for name in self.members if name not in fixed | named
        ]
        return [*problems, *(f"the member {name} is missing" for name in sorted(fixed - set(self.members)))]

    def _header(self) -> list[str]:
        started, ended = self.ledger.started, self.ledger.ended
        if started is None or ended is None:
            return ["the ledger does not hold a whole run"]
        claimed = (self.manifest.run, self.manifest.status, self.manifest.checks_version)
        if claimed != (started.run, ended.status, started.checks_version):
            return ["run, status or checks version of the manifest are not those of the ledger"]
        return []

    def _quotes(self) -> list[str]:
        problems: list[str] = []
        for quote in self.ledger.quotes.values():
            text = self.texts.get(quote.snapshot)
            source = self.ledger.sources.get(quote.source)
            if text is None:
                problems.append(f"quote {quote.id}: its snapshot is not in the bundle")
            elif text[max(0, quote.start) : max(0, quote.end)] != quote.text or not quote.text:
                problems.append(f"quote {quote.id}: it does not stand in its snapshot at its offsets")
            elif quote.page is not None and (source is None or page_at(source, quote.start) != quote.page):
                problems.append(f"quote {quote.id}: page {quote.page} does not follow from its offset")
        return problems

    def _draft(self) -> list[str]:
        draft = self.ledger.draft
        return (
            [f"the report cannot have been published so: {one}" for one in report_errors(draft, self.ledger)]
            if draft
            else []
        )

    def _verdicts(self) -> list[str]:
        draft = self.ledger.draft
        if draft is None:
            return []
        if self.manifest.checks_version != CHECKS_VERSION:
            return [
                f"the verdicts are of checks version {self.manifest.checks_version!r}, this program has "
                f"{CHECKS_VERSION!r}: they were not re-checked"
            ]
        problems: list[str] = []
        for again in judge(draft, self.ledger, self.texts):
            logged = self._by_checks(again.sentence)
            if logged is None:
                problems.append(f"sentence {again.sentence + 1}: there is no verdict of the checks")
            elif not _agree(logged, again):
                problems.append(
                    f"sentence {again.sentence + 1}: the checks say {again.verdict} ({again.reason}), "
                    f"the bundle says {logged.verdict} ({logged.reason})"
                )
        stray = [one for one in self.ledger.verdicts if one >= len(self.ledger.sentences) or one < 0]
        return [
            *problems,
            *(f"there is a verdict on sentence {one + 1}, which does not exist" for one in stray),
        ]

    def _by_checks(self, sentence: int) -> VerdictGiven | None:
        given = [one for one in self.ledger.verdicts.get(sentence, ()) if one.by == BY_CHECKS]
        return given[-1] if given else None

    def _rendered(self) -> list[str]:
        if self.ledger.ended is None:
            return []
        again = rendered_members(self.ledger, self.texts)
        problems = [
            f"{name} is not what ledger and snapshots give"
            for name in again
            if again[name] != self.members.get(name)
        ]
        claimed = self.ledger.ended.result_digest
        if claimed and claimed != hashlib.sha256(again[RESULT].rstrip(b"\n")).hexdigest():
            problems.append("the result is not the one whose digest the run recorded")
        return problems

    def counts(self) -> dict[str, int]:
        """How much of everything there is."""
        sentences = range(len(self.ledger.sentences))
        verdicts = Counter(
            given.verdict if (given := self.ledger.verdict(one)) else "not_checked" for one in sentences
        )
        cited = {one for leaf in self.ledger.sentences for one in leaf.evidence if one in self.ledger.quotes}
        return {
            "members": len(self.members),
            "snapshots": len(self.texts),
            "sources": len(self.ledger.sources),
            "quotes": len(self.ledger.quotes),
            "citations": len(cited),
            "sentences": len(sentences),
            **{
                name: verdicts[name]
                for name in ("supported", "contradicted", "not_established", "not_checked")
            },
        }

    def recorded(self) -> tuple[str, ...]:
        """Verdicts that stand as recorded."""
        told: list[str] = []
        for index, given in sorted(self.ledger.verdicts.items()):
            told += [
                f"sentence {index + 1}: {one.verdict} by {one.by}" for one in given if one.by != BY_CHECKS
            ]
            logged = self._by_checks(index)
            added = [one.name for one in logged.checks if one.name not in _BUILT_IN] if logged else []
            told += [
                f"sentence {index + 1}: check {name}, which this program does not have" for name in added
            ]
        return tuple(told)


def _agree(logged: VerdictGiven, again: VerdictGiven) -> bool:
    """Whether a logged verdict follows from the built-in checks; added checks may only have made it stricter."""
    built_in = tuple(one for one in logged.checks if one.name in _BUILT_IN)
    if built_in != again.checks:
        return False
    if len(built_in) == len(logged.checks):
        return (logged.verdict, logged.reason) == (again.verdict, again.reason)
    return _STRICTNESS[logged.verdict] >= _STRICTNESS[again.verdict]


_STRICTNESS = {"supported": 0, "not_checked": 1, "not_established": 1, "contradicted": 2}

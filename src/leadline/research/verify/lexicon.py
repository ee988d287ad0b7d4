"""Words that carry direction, negation or reservation: data for the checks that compare two sentences."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


UP = _words(
    "rise rises rose risen rising increase increases increased increasing grow grows grew grown growing growth "
    "climb climbs climbed climbing gain gains gained gaining up upward jump jumps jumped surge surges surged soar "
    "soars soared expand expands expanded expanding higher improve improves improved doubled tripled raise raises "
    "raised accelerate accelerated strengthened stieg steigt stiegen gestiegen wuchs wächst gewachsen erhöht "
    "erhöhte anstieg zunahme zugenommen höher"
)
DOWN = _words(
    "fall falls fell fallen falling decrease decreases decreased decreasing drop drops dropped dropping decline "
    "declines declined declining shrink shrinks shrank shrunk shrinking lower lowered down downward reduce reduces "
    "reduced reducing reduction slump slumped plunge plunged contract contracted contracting cut cuts lose loses "
    "lost losing halved weaken weakened slowed worsen worsened sank sinkt sanken gesunken fiel fällt gefallen "
    "verringert rückgang abnahme abgenommen niedriger"
)
ABOVE = _words("above over exceed exceeds exceeded exceeding more greater beyond über mehr überstieg")
BELOW = _words("below under less fewer beneath unter weniger unterschritt")
BEFORE = _words("before earlier prior vor vorher")
AFTER = _words("after later following nach nachher")
YES = _words(
    "approve approved approves allow allowed allows permit permitted accept accepted accepts includes included passed won confirmed"
)
NO = _words(
    "reject rejected rejects forbid forbidden forbids prohibit prohibited ban banned refused excludes excluded failed lost denied"
)

OPPOSITES: tuple[tuple[frozenset[str], frozenset[str]], ...] = (
    (UP, DOWN),
    (ABOVE, BELOW),
    (BEFORE, AFTER),
    (YES, NO),
)

CJK_UP = ("增长", "上升", "提高", "增加", "上涨", "增至", "升至", "増加")
CJK_DOWN = ("下降", "下跌", "减少", "降低", "降至", "跌至", "減少", "低下")
CJK_NEGATION = ("不", "没", "未", "无", "非", "ない", "ません", "なかった")

NEGATION = _words(
    "not no never none neither nor without cannot nobody nothing nowhere hardly scarcely nicht kein keine keinen "
    "keiner keines nie niemals ohne weder noch ne pas jamais"
)

RESERVATION = NEGATION | _words(
    # may it be so at all
    "may might could can would should will if unless whether until perhaps possibly probably likely unlikely "
    "reportedly allegedly apparently supposedly seemingly seems seem appears appear suggests suggest "
    # who says so, and is it only said
    "claim claims claimed alleges alleged argue argues argued believe believes believed expects expected expect "
    "forecast forecasts plans planned plan intends aims hopes says said say according denies denied deny doubts "
    "rumour rumours rumored assumed assume hypothetical proposed "
    # how far does it reach
    "only some most few almost nearly about around approximately roughly least but except excluding however "
    "although though despite unless partly partially sometimes rarely often up "
    # is it one at all
    "former formerly ex acting deputy fake false wrong myth draft potential so-called until "
    "könnte könnten soll sollen würde wird laut angeblich nur fast etwa ungefähr rund aber außer obwohl falls wenn"
)
"""Words that, left out of a sentence, change what it says."""

REFUSALS = (
    NEGATION
    | NO
    | _words(
        "except excluding unless former formerly false wrong myth myths proposed "
        "ehemals falsch vorgeschlagen sauf interdit interdits prohibido prohibidos excepto"
    )
)
"""Words that, in a heading or in the words that introduce a list, turn round what stands under it."""

CONTRASTS = _words("while whereas but aber während")
"""Words that begin another statement, whatever stands before them."""

LINKS = CONTRASTS | _words("and und sowie &")
"""Words after which another statement may begin, or the same one go on."""

IGNORABLE = _words(
    "a an the this that these those also thus therefore then moreover furthermore in_addition "
    "der die das den dem des ein eine einen einem einer eines dieser diese dieses auch somit daher "
    "le la les un une des el los las"
)
"""Words whose absence changes nothing."""

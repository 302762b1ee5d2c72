"""How the replies of a run were read and how many say nothing, from its calls alone: what results.json calls `parse_health`.

Shares no code with the program; the scripts beside it import it.
"""

import json
import sys
import unicodedata

KINDS = ("ok", "repaired", "fallback", "refused", "unread")
# Under these keys a word or a letter is all that is asked for.
LABELS = "answer option choice agree error label confidence role hierarchy expertise sentence_id name severity difficulty".split()
# Unicode's White_Space: Python's own has four control characters more.
BLANKS = "".join(filter(str.isspace, map(chr, range(sys.maxunicode)))).translate(dict.fromkeys(range(0x1C, 0x20)))
# What Unicode 17's DerivedCoreProperties does not call Alphabetic among marks (Mn, Mc), and what it calls so among symbols.
MARKS_ALONE = """
300-344 346-362 483-487 591-5AF 658 6DF-6E0 6EA-6EC 740-74A 7EB-7F3 7FD 818-819 82D 859-85B 898-89F 8CA-8D3 8E0-8E1 8EA-8EF 93C 94D
951-954 9BC 9CD 9FE A3C A4D ABC ACD AFD-AFF B3C B4D B55 BCD C3C C4D CBC CCD D3B-D3C D4D DCA E47-E4C E4E EBA EC8-ECC F18-F19 F35 F37 F39
F3E-F3F F84 F86-F87 FC6 1037 1039-103A 135D-135F 1714-1715 1734 17B4-17B5 17C9-17D3 17DD 180B-180D 180F 1939-193B 1A60 1A75-1A7C 1A7F
1AB0-1ABD 1AC1-1ACB 1B34 1B44 1B6B-1B73 1BAA-1BAB 1BE6 1BF2-1BF3 1C37 1CD0-1CD2 1CD4-1CE8 1CED 1CF4 1CF7-1CF9 1DC0-1DD2 1DF5-1DFF
20D0-20DC 20E1 20E5-20F0 2CEF-2CF1 2D7F 302A-302F 3099-309A A66F A67C-A67D A6F0-A6F1 A806 A82C A8C4 A8E0-A8F1 A92B-A92D A953 A9B3 A9C0
AABF AAC1 AAF6 ABEC-ABED FE00-FE0F FE20-FE2F 101FD 102E0 10A38-10A3A 10A3F 10AE5-10AE6 10F46-10F50 10F82-10F85 11046 11070 1107F
110B9-110BA 11133-11134 11173 111C0 111C9-111CC 11235-11236 112E9-112EA 1133B-1133C 1134D 11366-1136C 11370-11374 11442 11446 1145E
114C2-114C3 115BF-115C0 1163F 116B6-116B7 1172B 11839-1183A 1193D-1193E 11943 119E0 11A33-11A34 11A47 11A98-11A99 11C3F 11D42 11D44-11D45
11D97 16AF0-16AF4 16B30-16B36 16FE4 1BC9D 1CF00-1CF2D 1CF30-1CF46 1D165-1D169 1D16D-1D172 1D17B-1D182 1D185-1D18B 1D1AA-1D1AD 1D242-1D244
1DA00-1DA36 1DA3B-1DA6C 1DA75 1DA84 1DA9B-1DA9F 1DAA1-1DAAF 1E130-1E136 1E2AE 1E2EC-1E2EF 1E8D0-1E8D6 1E944-1E946 1E948-1E94A E0100-E01EF
"""
LETTERS_IN_CIRCLES = "24B6-24E9 1F130-1F149 1F150-1F169 1F170-1F189"


def parse_health(calls):
    """The shares, `void` and `cut` only where there is any; None without calls."""
    if not calls:
        return None
    health = {how: sum(call["parse"] == how for call in calls) / len(calls) for how in KINDS}
    void = sum(map(is_void, calls)) / len(calls)
    cut = sum(call["finish_reason"] == "length" for call in calls) / len(calls)
    return health | ({"void": void} if void else {}) | ({"cut": cut} if cut else {})


def warnings(healths):
    """How many figures the warnings name: once for what could not be read or declined, and for what was cut, and what says nothing."""
    healths = [health for health in healths if health]
    poor = sum(health["unread"] + health["refused"] > 0.05 for health in healths)
    return poor + sum(health.get(kind, 0.0) > 0.1 for health in healths for kind in ("void", "cut"))


def is_void(call):
    texts = texts_of(call["text"])
    return 2 * sum(words(text) < 2 for text in texts) > len(texts)


def texts_of(reply):
    """The texts of a JSON record, but for labels; else what the reply thinks."""
    text = reply.strip(BLANKS)
    for fence in ("```json", "```"):
        if text.startswith(fence):
            text = text.removeprefix(fence).rstrip("`").strip(BLANKS)
            break
    try:
        record = json.loads(text, parse_constant=refuse)
        # Half a pair of surrogates is no text.
        json.dumps(record, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        record = None
    if isinstance(record, dict):
        return list(strings(record))
    thought = reply.partition("<think>")[2]
    return [thought.partition("</think>")[0]] if "</think>" in thought else []


def refuse(constant):
    """Python takes NaN and infinities, which are no JSON."""
    raise ValueError(constant)


def strings(value):
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from strings(one)
        case dict():
            for key, one in value.items():
                if not (isinstance(one, str) and any(label in key.lower() for label in LABELS)):
                    yield from strings(one)


def words(text):
    separated = text.translate(dict.fromkeys(map(ord, BLANKS), " "))
    count = sum(sum(map(is_alphabetic, word)) > 1 for word in separated.split(" "))
    # Chinese is written without spaces.
    return 2 if count == 1 and sum(ord(letter) >= 0x2E80 for letter in text) > 3 else count


def is_alphabetic(character):
    """Unicode's Alphabetic: letters, letters that count, letters in circles, and marks that are vowels or the like."""
    kind = unicodedata.category(character)
    if kind in ("Mn", "Mc"):
        return not within(character, MARKS_ALONE)
    return character.isalpha() or kind == "Nl" or within(character, LETTERS_IN_CIRCLES)


def within(character, ranges):
    ends = (one.partition("-") for one in ranges.split())
    return any(int(first, 16) <= ord(character) <= int(last or first, 16) for first, _, last in ends)

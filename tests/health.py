"""How the replies of a run were read and how many say nothing, from its calls alone: what results.json calls `parse_health`.

Shares no code with the program; the scripts beside it import it.
"""

import json
import re
import sys
import unicodedata

KINDS = ("ok", "repaired", "fallback", "refused", "unread")
# Under these keys a word or a letter is all that is asked for.
LABELS = "answer option choice agree error label confidence role hierarchy expertise sentence_id name severity difficulty".split()
# A sentence of a line, with its mark.
SENTENCE = re.compile(r"""(?:[^\n.!?。！？]|[.!?]+[\"”')*_]*[^\s\"”')*_.!?。！？])+(?:[.!?]+(?:[\"”')*_]+$)?|[。！？])?""")
# Unicode's White_Space: Python's own has four control characters more.
BLANKS = "".join(filter(str.isspace, map(chr, range(sys.maxunicode)))).translate(dict.fromkeys(range(0x1C, 0x20)))
# Marks that stand on letters of any script, and so are none of their own.
GENERAL_MARKS = ((0x0300, 0x0344), (0x0346, 0x0362), (0x1AB0, 0x1ABE), (0x1DC0, 0x1DD2), (0x20D0, 0x20FF), (0xFE20, 0xFE2F))


def parse_health(calls):
    """The shares, those of `HOLLOW` only where there are any; None without calls."""
    if not calls:
        return None
    health = {how: sum(call["parse"] == how for call in calls) / len(calls) for how in KINDS}
    hollow = {name: sum(map(fits, calls)) / len(calls) for name, fits in HOLLOW.items()}
    return health | {name: share for name, share in hollow.items() if share}


def warnings(healths):
    """How many figures the warnings name: once for what could not be read or declined, once for what says nothing."""
    healths = [health for health in healths if health]
    poor = sum(health["unread"] + health["refused"] > 0.05 for health in healths)
    return poor + sum(any(health.get(name, 0.0) > 0.1 for name in HOLLOW) for health in healths)


def is_void(call):
    texts = texts_of(call["text"])
    return 2 * sum(words(text) < 2 for text in texts) > len(texts)


def is_looping(call):
    texts = texts_of(call["text"]) or [call["text"].rstrip(BLANKS)]
    return any(map(loops, [*texts, "\n".join(texts)]))


def is_cut(call):
    return call["finish_reason"] == "length" or any(map(breaks_off, texts_of(call["text"])))


def is_contradictory(call):
    return "contradiction" in call["record"]


HOLLOW = {"void": is_void, "looping": is_looping, "cut": is_cut, "contradictory": is_contradictory}


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
    """Unicode's Alphabetic: letters, letters that count, and marks that are vowels or the like. The last are told here by what is left out."""
    kind = unicodedata.category(character)
    if kind not in ("Mn", "Mc"):
        return character.isalpha() or kind == "Nl"
    is_general = any(first <= ord(character) <= last for first, last in GENERAL_MARKS)
    return not is_general and unicodedata.combining(character) not in (7, 9)


def loops(text):
    """Whether it ends in something that repeats four times or more: on 60 bytes or more of its last 600, or by sentences of so many bytes, which
    lines end too and whose numbers do not count; the last of them may be cut."""
    said = [words_alone(one) for line in text.split("\n") for one in SENTENCE.findall(line)]
    said = [one for one in said if one]
    return repeats(text.encode()[-600:], lambda _: 1) or any(repeats(one, lambda unit: len(unit.encode())) for one in (said, said[:-1]))


def words_alone(unit):
    letters = [at for at, one in enumerate(unit) if is_alphabetic(one)]
    return unit[letters[0] : letters[-1] + 1] if letters else ""


def repeats(parts, size):
    for period in range(1, len(parts) // 4 + 1):
        count = period
        while count < len(parts) and parts[-1 - count] == parts[-1 - count + period]:
            count += 1
        for length in range(4 * period, count + 1):
            if sum(map(size, parts[len(parts) - length :])) >= 60:
                return True
    return False


def breaks_off(text):
    text = text.rstrip(BLANKS)
    return len(text) > 80 and (is_alphabetic(text[-1]) or text[-1].isnumeric() or text[-1] == ",")

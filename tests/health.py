"""How the replies of a run were read and how many say nothing, from its calls alone: what results.json calls `parse_health`.

Shares no code with the program; the scripts beside it import it.
"""

import json
import unicodedata

KINDS = ("ok", "repaired", "fallback", "refused", "unread")
# Under these keys a word or a letter is all that is asked for.
LABELS = "answer option choice agree error label confidence role hierarchy expertise sentence_id name severity difficulty".split()


def parse_health(calls):
    """The shares, those of `HOLLOW` only where there are any; None without calls."""
    if not calls:
        return None
    health = {how: sum(call["parse"] == how for call in calls) / len(calls) for how in KINDS}
    hollow = {name: sum(map(fits, calls)) / len(calls) for name, fits in HOLLOW.items()}
    return health | {name: share for name, share in hollow.items() if share}


def is_poor(health):
    return health["unread"] > 0.05


def is_hollow(health):
    return any(health.get(name, 0.0) > 0.1 for name in HOLLOW)


def warnings(healths):
    """How many figures the warnings name: once for what could not be read, once for what says nothing."""
    healths = [health for health in healths if health]
    return sum(map(is_poor, healths)) + sum(map(is_hollow, healths))


def is_void(call):
    texts = texts_of(call["text"])
    return 2 * sum(words(text) < 2 for text in texts) > len(texts)


def is_looping(call):
    return any(loops(text) for text in texts_of(call["text"]) or [call["text"].rstrip()])


def is_cut(call):
    return call["finish_reason"] == "length" or any(map(breaks_off, texts_of(call["text"])))


def is_contradictory(call):
    return "contradiction" in call["record"]


HOLLOW = {"void": is_void, "looping": is_looping, "cut": is_cut, "contradictory": is_contradictory}


def texts_of(reply):
    """The texts of a JSON record, but for labels; else what the reply thinks."""
    text = reply.strip()
    for fence in ("```json", "```"):
        if text.startswith(fence):
            text = text.removeprefix(fence).rstrip("`").strip()
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
    count = sum(sum(map(is_letter, word)) > 1 for word in text.split())
    # Chinese and Japanese are written without spaces.
    return 2 if count == 1 and sum(ord(letter) >= 0x2E80 for letter in text) > 3 else count


def is_letter(character):
    """As Unicode's Alphabetic, nearly: signs of vowels and letters that count are among it."""
    return character.isalpha() or unicodedata.category(character) in ("Mc", "Nl")


def loops(text):
    """Whether it ends in something that repeats four times or more, on 60 bytes or more of its last 600."""
    tail = text.encode()[-600:]
    for period in range(1, len(tail) // 4 + 1):
        length = max(60, 4 * period)
        end = tail[-length:]
        if len(end) == length and end[period:] == end[:-period]:
            return True
    return False


def breaks_off(text):
    text = text.rstrip()
    return len(text) > 80 and (is_letter(text[-1]) or text[-1].isnumeric() or text[-1] == ",")

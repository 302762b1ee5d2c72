"""What recompute_notes.py makes of texts: sentences of data files, agents' words, likeness, ROUGE and its stems.

Written from the definitions, and shares no code with the program: alignment is Python's own `difflib`, ROUGE follows the packages `rouge`
1.0.1, `rouge-chinese` 1.0.3 and `rouge-score` 0.1.2, and the stems Porter's paper with NLTK's departures. Standard library only; Chinese
words need the package jieba, and what needs them is left out without it.
"""

import re
from collections import Counter
from difflib import SequenceMatcher

try:
    import jieba

    jieba.setLogLevel(60)
except ImportError:
    jieba = None

# A sentence of a line, with its mark.
SENTENCE = re.compile(r"""(?:[^\n.!?。！？]|[.!?]+[\"”')*_]*[^\s\"”')*_.!?。！？])+(?:[.!?]+(?:[\"”')*_]+$)?|[。！？])?""")
# Unicode's White_Space; Python counts U+001C to U+001F too.
WHITE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
PUNCTUATION = set(".!?:;)\"”。！？：；）،؛؟")


def trim(text):
    return text.strip(WHITE)


# Sentences.


def numbered(text):
    """The sentences between the numbers 0, 1, 2, …; at the beginnings of lines where 1 begins one, else anywhere."""
    in_lines = re.search(r"^[ \t]*1[ \t]", text, re.M)
    cuts, start = [], 0
    while place := (number_in_line if in_lines else number_in_text)(text, start, len(cuts)):
        if not cuts and trim(text[: place[0]]):
            break
        cuts.append(place)
        start = place[1]
    ends = [cut[0] for cut in cuts[1:]] + [len(text)]
    return [trim(text[cut[1] : end]) for cut, end in zip(cuts, ends)]


def number_in_line(text, start, number):
    found = re.compile(rf"^[ \t]*({number})[ \t]", re.M).search(text, start)
    return found and found.span(1)


def number_in_text(text, start, number):
    """After punctuation and between blanks; else between blanks; else where one blank is missing."""
    blank = lambda char: char in WHITE
    second, third = None, None
    for found in re.finditer(str(number), text[start:]):
        at, end = start + found.start(), start + found.end()
        before, after = text[:at], text[end : end + 1]
        apart_before, apart_after = at == 0 or blank(before[-1]), after != "" and blank(after)
        word = before.rstrip(WHITE)
        closes = word == "" or word[-1] in PUNCTUATION
        if apart_before and apart_after:
            if closes:
                return at, end
            second = second or (at, end)
        stuck_before = before[-1:] in PUNCTUATION and len(before) > 1 and not before[-2].isnumeric() and not blank(before[-2])
        if stuck_before and (apart_after or after.isalpha()) or apart_before and after.isalpha() and closes and at > 0:
            third = third or (at, end)
    return second or third


# Agents' words.


def pair_of(tag):
    # In ASCII alone upper case is the same as lower case.
    return re.compile(f"<{tag}>(.*?)</{tag}>", re.S | re.I | re.A)


def section(text, tag):
    found = pair_of(tag).search(text)
    return found and found.group(1)


def without(text, tag):
    return pair_of(tag).sub(" ", text)


def without_thought(text):
    rest = without(text, "think")
    closed = list(re.finditer("</think>", rest, re.I | re.A))
    opened = re.search("<think>", rest, re.I | re.A)
    return rest[closed[-1].end() :] if closed else rest[: opened.start()] if opened else rest


def confidence_in(text):
    number = trim(section(text, "confidence") or "").rstrip("%")
    return int(number) / 100.0 if re.fullmatch("[0-9]{1,3}", number) and int(number) <= 100 else None


def flag_in(text, compat):
    """True for INCORRECT, False for CORRECT, None for neither."""
    if compat:
        return True if "INCORRECT" in text.upper() else False if "CORRECT" in text.upper() else None
    said = "".join(char if char.isalnum() else " " for char in without(without_thought(text), "confidence").upper()).split(" ")
    said = [word == "INCORRECT" for word in said if word in ("INCORRECT", "CORRECT")]
    return said[-1] if said else None


def is_nan(text):
    return text.strip(WHITE + ".\"'*`").lower() in ("nan", "n/a", "na", "none", "null")


def plain(text):
    """Without the marks or quotes around it."""
    text = trim(text)
    for open, close in (("**", "**"), ("*", "*"), ("`", "`"), ('"', '"'), ("“", "”"), ("'", "'"), ("«", "»")):
        if len(text) >= len(open) + len(close) and text.startswith(open) and text.endswith(close):
            text = trim(text[len(open) : len(text) - len(close)])
    return text


def corrected(text):
    """Without what announces it, and what stands before an arrow."""
    announced = r"(?i)\A[\s*_>#-]*(?:(?:the\s+)?(?:corrected|correct|revised|fixed)\s+(?:sentence|version|text)|correction|the\s+sentence"
    announced += r"|(?:修改|更正|纠正|修正)后?的?句子)(?:\s+(?:is|should be|should read|would be|reads))?[\s*_]*[:：][\s*_]*"
    if found := re.match(announced, text):
        text = text[found.end() :].split("\n\n")[0]
    if (found := re.match(r"\s*\d{1,2}[.):]?\s+(.)", text)) and found[1].isupper():
        text = text[found.start(1) :]
    arrow = next((arrow for arrow in ("->", "→") if arrow in text), None)
    return plain(text.split(arrow, 1)[1] if arrow else text)


def located_in(text, compat):
    """A sentence, "NAN", or None where nothing can be read."""
    if compat:
        result = section(text, "result")
        return result if result is not None and "\n" not in result else None
    text = without_thought(text)
    result = section(text, "result")
    if result is None:
        return "NAN" if is_nan(without(text, "confidence")) else None
    return "NAN" if is_nan(plain(result)) else plain(result) or None


def correction_in(text, tag, compat):
    if compat:
        result = section(text, tag)
        return result if result is not None and "\n" not in result and result != "NAN" else None
    text = without_thought(text)
    found = section(text, tag)
    if found is None:
        found = "" if f"<{tag}>" in text.lower() else without(text, "confidence")
    found = corrected(found)
    return found if found and not is_nan(found) else None


def whole(correction, sentences, call=None):
    """A correction that neither the limit of tokens nor a grammar's bound cut off."""
    is_long = len(correction or "") > max(map(len, sentences), default=0) + 100
    is_ended = correction and correction.rstrip(WHITE).endswith(tuple('.!?。！？"”')) and not correction.endswith("...")
    is_bound = is_long and not is_ended
    is_last = correction and call and call["finish_reason"] == "length" and call["text"].rstrip(WHITE).endswith(correction)
    return None if is_bound or is_last else correction


def base_in(text, sentences, compat):
    """(False,), (True, sentence id, correction) or (None,)."""
    text = text.lstrip(WHITE)
    if not text.startswith("{"):
        text = text.split("</think>", 1)[1] if "</think>" in text else "" if text.startswith("<think>") else text
    text = trim(text)
    upper = text.upper()
    around = [place for place, char in enumerate(upper) if char.isalnum()]
    if "CORRECT" in upper if compat else around and upper[around[0] : around[-1] + 1] == "CORRECT":
        return (False,)
    lines = re.findall(r"^[ \t>#*_`-]*(?:[Ss]entence )?([0-9]{1,3})[.:)*_]*[ \t]+(\S.*)$", text, re.M)
    if len(lines) > 1 and len(lines) != len(sentences):
        return (None,)
    changes = []
    for number, said in lines:
        if int(number) >= len(sentences):
            continue
        said = corrected(said)
        is_like = aligned([sentences[int(number)]], said, "english", "sequence-matcher", 0.4) is not None
        is_small = said[:1].islower() or said[:1].isdigit()
        is_ended, is_own = (one.rstrip().endswith((".", "。", "!", "?")) for one in (said, sentences[int(number)]))
        units = [one for one in SENTENCE.findall(said) if any(map(str.isalnum, one))]
        is_one = (is_ended or not is_own) and len(units) == 1 and len(said.split()) >= 2
        is_sentence = is_like or len(lines) == 1 and not is_small and is_one
        is_there = aligned(sentences, said, "english", "sequence-matcher", 0.6) in (None, int(number))
        is_list = any(re.match("[0-9]+[.):]* [A-Z]", one.strip()) for one in units[1:])
        if is_sentence and is_there and not is_list and all(words_of(one) != words_of(said) for one in sentences):
            changes.append((int(number), said))
    return (True, *changes[0]) if len(set(changes)) == 1 else (None,)


def words_of(text):
    return "".join(char.lower() if char.isalnum() else " " for char in text).split()


# Likeness.


def plain_arabic(text):
    table = {ord(sign): None for sign in map(chr, range(0x64B, 0x653))}
    table |= str.maketrans("آأإىئؤة", "اااييوه")
    return " ".join(text.translate(table).split())


def longest_common(a, b):
    row = [0] * (len(b) + 1)
    for one in a:
        diagonal = 0
        for place, other in enumerate(b, 1):
            diagonal, row[place] = row[place], diagonal + 1 if one == other else max(row[place], row[place - 1])
    return row[-1]


def aligned(sentences, words, language, aligner, least=0.0):
    """The first of the most alike sentences; None where none is alike at all, or enough."""
    if aligner == "sequence-matcher" and language == "chinese":
        said = set(jieba.cut(words))
        ratios = [len(said & of) / len(said | of) if said | of else 0.0 for of in (set(jieba.cut(one)) for one in sentences)]
    else:
        if language == "arabic":
            words, sentences = plain_arabic(words), [plain_arabic(one) for one in sentences]
        if aligner == "lcs":
            sides = [(len(one) + len(words), one) for one in sentences]
            ratios = [2.0 * longest_common(one, words) / both if both else 1.0 for both, one in sides]
        else:
            matcher = SequenceMatcher(None)
            matcher.set_seq2(words)
            ratios = []
            for one in sentences:
                matcher.set_seq1(one)
                ratios.append(matcher.ratio())
    best = max(ratios)
    return ratios.index(best) if best > 0 and best >= least else None


# ROUGE: F of n-grams of 1 and 2 words, and of subsequences; last the recall of words. `rouge` takes sets and keeps its F from a division by 0.


def f_of_sets(found, wanted, common):
    precision, recall = (common / found if found else 0.0), (common / wanted if wanted else 0.0)
    return 2.0 * ((precision * recall) / (precision + recall + 1e-8))


def n_grams(words, n):
    return [tuple(words[at : at + n]) for at in range(len(words) - n + 1)]


def one_longest(a, b):
    """One of the longest common subsequences, found from the end; b is passed over before a."""
    table = [[0] * (len(b) + 1)]
    for one in a:
        row = [0]
        for place, other in enumerate(b, 1):
            row.append(table[-1][place - 1] + 1 if one == other else max(table[-1][place], row[-1]))
        table.append(row)
    i, j, common = len(a), len(b), []
    while i and j:
        if a[i - 1] == b[j - 1]:
            common.append(a[i - 1])
            i, j = i - 1, j - 1
        elif table[i - 1][j] > table[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return common


def rouge(candidate, reference):
    sides = [[" ".join(one.split()).split(" ") for one in text.split(".") if one] for text in (candidate, reference)]
    if not all(sides):
        return 0.0, 0.0, 0.0, 0.0
    union = set()
    for one in sides[1]:
        for other in sides[0]:
            union.update(one_longest(one, other))
    return sets_and(sides, len(union), True)


def rouge_of_chinese(candidate, reference):
    sides = []
    for text in (candidate, reference):
        text = " ".join(jieba.cut(text))
        for mark in (r"([。！？\?])([^”’])", r"(\.{6})([^”’])", r"(\…{2})([^”’])", r"([。！？\?][”’])([^，。！？\?])"):
            text = re.sub(mark, r"\1\n\2", text)
        sides.append([" ".join(one.split()).split(" ") for one in text.rstrip().split("\n") if one])
    if not all(sides):
        return 0.0, 0.0, 0.0, 0.0
    candidate, reference = (sum(side, []) for side in sides)
    return sets_and(sides, longest_common(reference, candidate), False)


def sets_and(sides, common, as_sets):
    words = [sum(side, []) for side in sides]
    grams = [[set(n_grams(side, n)) for side in words] for n in (1, 2)]
    figures = [f_of_sets(len(found), len(wanted), len(found & wanted)) for found, wanted in grams]
    lengths = map(len, grams[0] if as_sets else words)
    found, wanted = grams[0]
    return *figures, f_of_sets(*lengths, common), len(found & wanted) / len(wanted) if wanted else 0.0


def rouge_of_stems(candidate, reference):
    sides = [[stem(word) if len(word) > 3 else word for word in re.findall("[a-z0-9]+", text.lower())] for text in (candidate, reference)]
    figures = []
    for n in (1, 2):
        found, wanted = (Counter(n_grams(side, n)) for side in sides)
        figures.append((sum((found & wanted).values()), sum(found.values()), sum(wanted.values())))
    figures.append((longest_common(sides[1], sides[0]), len(sides[0]), len(sides[1])))
    common, _, wanted = figures[0]
    return *(f_of_counts(*figure) for figure in figures), common / wanted if wanted else 0.0


def f_of_counts(common, found, wanted):
    if not common:
        return 0.0
    precision, recall = common / found, common / wanted
    return 2.0 * precision * recall / (precision + recall)


# Stems (Porter, Program 14(3), 1980), as NLTK has them.

IRREGULAR = {
    form: stem
    for stem, forms in (
        ("sky", "sky skies"), ("die", "dying"), ("lie", "lying"), ("tie", "tying"), ("news", "news"), ("inning", "innings inning"),
        ("outing", "outings outing"), ("canning", "cannings canning"), ("howe", "howe"), ("proceed", "proceed"), ("exceed", "exceed"),
        ("succeed", "succeed"),
    )
    for form in forms.split()
}  # fmt: skip
# Longest first: of a step's endings the longest that fits is the one that counts.
STEP_2 = (
    "ational ate|ization ize|iveness ive|fulness ful|ousness ous|biliti ble|tional tion|entli ent|ousli ous|ation ate|alism al|aliti al|"
    "iviti ive|fulli ful|enci ence|anci ance|izer ize|ator ate|bli ble|eli e"
)
STEP_3 = "icate ic|ative |alize al|iciti ic|ical ic|ness |ful "
STEP_4 = "ement|ance|ence|able|ible|ment|ant|ent|ism|ate|iti|ous|ive|ize|ion|al|er|ic|ou"


def shape(word):
    """c for a consonant, v for a vowel: a, e, i, o, u, and a y after a consonant."""
    out = ""
    for letter in word:
        out += "v" if letter in "aeiou" or letter == "y" and out.endswith("c") else "c"
    return out


def measure(word):
    return len(re.findall("vc", shape(word)))


def is_short(word):
    return shape(word) == "vc" or shape(word).endswith("cvc") and word[-1] not in "wxy"


def stem(word):
    if word in IRREGULAR:
        return IRREGULAR[word]
    if len(word) <= 2:
        return word
    # Step 1a.
    if word.endswith("ies"):
        word = word[:-1] if len(word) == 4 else word[:-2]
    elif word.endswith("sses"):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    # Step 1b.
    if word.endswith("ied"):
        word = word[:-1] if len(word) == 4 else word[:-2]
    elif word.endswith("eed"):
        word = word[:-1] if measure(word[:-3]) else word
    elif (ending := re.search("(ed|ing)$", word)) and "v" in shape(word[: ending.start()]):
        word = word[: ending.start()]
        if word.endswith(("at", "bl", "iz")):
            word += "e"
        elif len(word) > 1 and word[-1] == word[-2] and shape(word)[-1] == "c":
            word = word if word[-1] in "lsz" else word[:-1]
        elif measure(word) == 1 and is_short(word):
            word += "e"
    # Step 1c.
    if word.endswith("y") and len(word) > 2 and shape(word[:-1]).endswith("c"):
        word = word[:-1] + "i"
    word = step_2(word)
    word = changed(word, STEP_3)
    ending = next((one for one in STEP_4.split("|") if word.endswith(one) and (one != "ion" or word.endswith(("sion", "tion")))), "")
    if ending and measure(word[: -len(ending)]) > 1:
        word = word[: -len(ending)]
    # Step 5.
    if word.endswith("e") and (measure(word[:-1]) > 1 or measure(word[:-1]) == 1 and not is_short(word[:-1])):
        word = word[:-1]
    return word[:-1] if word.endswith("ll") and measure(word[:-1]) > 1 else word


def step_2(word):
    if word.endswith("alli"):
        return step_2(word[:-2]) if measure(word[:-4]) else word
    if word.endswith("logi"):
        return word[:-1] if measure(word[:-3]) else word
    return changed(word, STEP_2)


def changed(word, rules):
    for rule in rules.split("|"):
        ending, other = rule.split(" ")
        if word.endswith(ending):
            return word[: -len(ending)] + other if measure(word[: -len(ending)]) else word
    return word

"""What each note came to, computed again for recompute_notes.py: from the sentences of its data file and the texts of its calls.

Shares no code with the program. Standard library only.
"""

import csv
import hashlib
import json
import math
from functools import cache
from pathlib import Path

import note_texts as texts
from recompute_recipe import Difference

csv.field_size_limit(1 << 30)
# What could not be checked, and why.
left_out = set()


def same(where, found, expected):
    """Names the innermost place that differs. Floats are equal to the last bit."""
    if isinstance(expected, dict) and isinstance(found, dict):
        same(f"{where}: fields", sorted(found), sorted(expected))
        for key, value in expected.items():
            same(f"{where}.{key}", found[key], value)
    elif isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        for place, (one, other) in enumerate(zip(found, expected)):
            same(f"{where}[{place}]", one, other)
    elif found != expected or isinstance(found, bool) != isinstance(expected, bool):
        raise Difference(f"{where}: found {found!r}, recomputed {expected!r}")


# The notes of a data file.


@cache
def notes_of(path, format, sha256):
    """Sentences and gold by id; None where the file is not at hand."""
    path = Path(path)
    if not path.is_file() or format == "notes" and path.suffix != ".jsonl":
        left_out.add(f"sentence ids of {path.name}, which is not at hand")
        return None
    data = path.read_bytes()
    same(f"{path}: sha256", hashlib.sha256(data).hexdigest(), sha256)
    if format == "notes":
        # A blank line is none, but counts for the ids of those that have none.
        rows = [(number, json.loads(line)) for number, line in enumerate(data.decode("utf-8-sig").split("\n"), 1) if line.strip()]
        named = {str(row.get("id", number)): row.get("sentences") or texts.numbered(row["text"]) for number, row in rows}
        if not all(named.values()):
            left_out.add(f"sentence ids of {path.name}, which does not list sentences")
        return {name: (sentences, None) for name, sentences in named.items() if sentences}
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["Text ID"].strip()]
    return {row["Text ID"]: (texts.numbered(row["Sentences"]), gold_of(row)) for row in rows}


def gold_of(row):
    if row["Error Flag"].strip() == "0":
        return {"flag": False, "sentence_id": None, "sentence": None, "correction": None, "type": None, "keywords": []}
    words = row.get("Important Words") or "NA"
    for mark in "，、+;\n":
        words = words.replace(mark, ",")
    words = [] if words.strip() == "NA" else [word.strip() for word in words.split(",") if any(map(str.isalnum, word))]
    kind = (row.get("Error Type") or "").strip()
    return {
        "flag": True,
        "sentence_id": int(row["Error Sentence ID"]),
        "sentence": row["Error Sentence"],
        "correction": row["Corrected Sentence"],
        "type": kind if kind not in ("", "NA") else None,
        "keywords": words,
    }


def voted(said):
    """The majority's, else the first that could be read."""
    read = [one for one in said if one is not None]
    return next((one for one in read if read.count(one) > 1), read[0] if read else None)


# One note's outcome, from the texts of its calls.


class Checked:
    """What agents said of a note, stage by stage."""

    def __init__(self, item, calls, sentences, settings):
        self.item, self.calls, self.sentences, self.settings = item, calls, sentences, settings
        self.compat = settings.get("release_compat") == "on"
        self.used = []
        self.outcome = {"flag": None, "sentence_id": None, "correction": None, "confidence": None, "detection": None, "localisation": None}
        self.outcome |= {"exact_sentence_id": None, "sentence": ""}

    def text(self, agent, sample=0):
        if (agent, sample) not in self.calls:
            raise Difference(f"item {self.item['item']}, run {self.item['run']}: {agent} was to be asked, and calls.jsonl has no such call")
        self.used.append((agent, sample))
        return self.calls[agent, sample]["text"]

    def stage(self, source, agents, said, key="flags"):
        found = [texts.confidence_in(self.calls[agent, 0]["text"]) for agent in agents]
        return {"source": source, "agents": agents, key: said, "confidences": found}

    def detect(self, agents):
        read = lambda agent: texts.flag_in(self.text(agent), self.compat)
        if agents == 1:
            flags = [read("det1")]
            return self.flagged("single", flags, flags[0])
        flags = [read("det1"), read("det2")]
        if flags[0] is not None and flags[0] == flags[1]:
            return self.flagged("agreement", flags, flags[0])
        flags.append(read("det3"))
        if self.settings["arbitration"] != "vote":
            return self.flagged("arbitration", flags, flags[2])
        return self.flagged("vote", flags, voted(flags))

    def flagged(self, source, flags, flag):
        self.outcome["flag"] = flag
        self.outcome["detection"] = self.stage(source, [f"det{number}" for number in range(1, len(flags) + 1)], flags)

    def meant(self, text, place):
        """What an agent said, and the sentence that it means."""
        said = texts.located_in(text, self.compat)
        number, sentence_id = said, None
        if said is None or said == "NAN":
            return said, None
        if self.settings["localisation"] == "hard":
            number = number.rstrip(".")
            count = len(self.sentences) if self.sentences else math.inf
            sentence_id = int(number) if number.removeprefix("+").isdecimal() and number.isascii() and int(number) < count else None
        elif self.sentences is None or self.item["language"] == "chinese" and self.settings.get("aligner", "sequence-matcher") != "lcs" and not texts.jieba:
            left_out.add("sentence ids in Chinese, for want of jieba" if self.sentences else "sentence ids of notes without sentences")
            sentence_id = (self.item["localisation"] or {"sentence_ids": [None] * 3})["sentence_ids"][place]
        else:
            likest = self.compat or self.settings["localisation"] == "likest"
            least = 0.0 if likest else 0.5
            sentence_id = texts.aligned(self.sentences, said, self.item["language"], self.settings.get("aligner", "sequence-matcher"), least)
            sentence_id = 0 if sentence_id is None and likest else sentence_id
        return (said if sentence_id is not None else None), sentence_id

    def locate(self, agents):
        said = [self.meant(self.text(f"loc{number}"), number - 1) for number in range(1, agents + 1)][:2]
        source, chosen = "single", 0
        # Who cannot be read agrees with nobody.
        meant = lambda one: None if one[0] is None else (one[1],)
        if agents == 2:
            source = "agreement"
            if meant(said[0]) is None or meant(said[0]) != meant(said[1]):
                said.append(self.meant(self.text("loc3"), 2))
                source, chosen = "arbitration", 2
                if self.settings["arbitration"] == "vote":
                    places = [meant(one) for one in said]
                    winner = voted(places)
                    source, chosen = "vote", 0 if winner is None else places.index(winner)
        self.placed(source, [f"loc{number}" for number in range(1, len(said) + 1)], said, chosen)

    def placed(self, source, agents, said, chosen):
        record = self.stage(source, agents, [one[0] or "" for one in said], "opinions")
        record["sentence_ids"] = [one[1] for one in said]
        self.outcome["localisation"] = record
        words, sentence_id = said[chosen]
        self.outcome["sentence_id"] = sentence_id
        if self.sentences is None:
            self.outcome |= {key: self.item[key] for key in ("sentence", "exact_sentence_id")}
            return
        if sentence_id is not None:
            self.outcome["sentence"] = self.sentences[sentence_id]
        if self.settings["localisation"] == "hard":
            self.outcome["exact_sentence_id"] = sentence_id
        elif sentence_id is not None:
            trimmed = [texts.trim(one) for one in self.sentences]
            self.outcome["exact_sentence_id"] = trimmed.index(texts.trim(words)) if texts.trim(words) in trimmed else None

    def correct(self, second):
        if self.outcome["sentence_id"] is None:
            return
        read = lambda text: (self.corrected(text, "result"), texts.confidence_in(text))
        found = read(self.text("corr1"))
        if second and found[0] is not None:
            again = read(self.text("corr2"))
            found = again if again[0] is not None else found
        self.outcome["correction"], self.outcome["confidence"] = found
        if found[0] and not self.compat and self.sentences and found[0].split() == self.outcome["sentence"].split():
            self.outcome["correction"] = None

    def corrected(self, text, tag):
        found = texts.correction_in(text, tag, self.compat)
        return found if self.compat else texts.whole(found, self.sentences)

    def correct_in_tags(self, text):
        if self.outcome["sentence_id"] is not None:
            has_tag = texts.section(text, "correction") is not None
            self.outcome["correction"] = self.corrected(text, "correction") if has_tag else None
            self.outcome["confidence"] = texts.confidence_in(text)

    def medguards(self):
        agents = self.settings["agents"]
        if agents == 1:
            text = self.text("det1")
            flag = texts.flag_in(texts.without(texts.without(text, "result"), "correction"), self.compat)
            if not self.compat:
                # A place says that there is an error, NAN that there is none; who says both is not read.
                said = texts.located_in(text, False)
                flag = {None: flag, "NAN": False if flag is None else flag}.get(said, None if flag is False else True)
            self.flagged("single", [flag], flag)
            if flag:
                self.placed("single", ["det1"], [self.meant(text, 0)], 0)
                self.correct_in_tags(text)
        elif agents == 2:
            said = self.meant(self.text("det1"), 0)
            flag = None if said[0] is None else said[0] != "NAN" or said[1] is not None
            self.flagged("single", [flag], flag)
            if flag:
                self.placed("single", ["det1"], [said], 0)
                self.correct(False)
        else:
            self.detect(1 if agents == 3 else 3)
            if self.outcome["flag"]:
                self.locate(1 if agents in (3, 4) else 2)
                if agents == 4:
                    self.correct_in_tags(self.calls["loc1", 0]["text"])
                else:
                    self.correct(agents == 8)

    def base_llm(self):
        read = (None,)
        for sample in range(2):
            # Without sampling it is not asked again.
            if read == (None,) and (sample == 0 or self.calls["solo", 0]["sampling"]["temperature"] != 0):
                read = texts.base_in(self.text("solo", sample), self.sentences, self.compat)
                call = self.calls["solo", sample]
        self.outcome["flag"] = read[0]
        nothing = [None]
        self.outcome["detection"] = {"source": "single", "agents": ["solo"], "flags": [read[0]], "confidences": nothing}
        if read[0]:
            _, sentence_id, correction = read
            place = {"source": "single", "agents": ["solo"], "opinions": [str(sentence_id)], "sentence_ids": [sentence_id]}
            self.outcome["localisation"] = place | {"confidences": nothing}
            self.outcome |= {"sentence_id": sentence_id, "exact_sentence_id": sentence_id, "correction": texts.whole(correction, self.sentences, call) or None}
            self.outcome["sentence"] = self.sentences[sentence_id]

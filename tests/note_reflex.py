"""What MedReAct'N'MedReFlex and MedReAct came to on a note, computed again for recompute_notes.py from calls and searches alone.

Shares no code with the program. Standard library only. Reads replies that are JSON; what the program read from other texts is taken from the
call's record, and said to be left out.
"""

import hashlib
import json
import re

import note_texts as texts
from note_outcomes import left_out, same
from recompute_recipe import Difference, over_runs

LIKENESS = 0.6
CRITERIA = ["validity", "preciseness", "confidence", "relevance", "completeness", "final"]
NAMES = {"final_mistake", "flag_mistake", "final_flagged_mistake"}
NONE = {"na", "none", "null", "nan", "nomistake", "noerror", "noerrors", "nomistakes", "nosentence", "notapplicable"}


def check_chain(directory, plan):
    """The searches of a run, each line chained to the one before."""
    head = hashlib.sha256((directory / "plan.toml").read_bytes()).hexdigest()
    searches = []
    for number, line in enumerate(filter(None, (directory / "searches.jsonl").read_text().split("\n")), 1):
        search = json.loads(line)
        end = f',"hash":"{search["hash"]}"}}'
        same(f"searches.jsonl, line {number}: end", line[-len(end):], end)
        body = line[: -len(end)] + "}"
        same(f"searches.jsonl, line {number}: hash", hashlib.sha256(body.encode()).hexdigest(), search["hash"])
        same(f"searches.jsonl, line {number}: prev", search["prev"], head)
        same(f"searches.jsonl, line {number}: seq", search["seq"], number)
        same(f"searches.jsonl, line {number}: corpus", search["corpus"], plan["corpus"]["ids"])
        head = search["hash"]
        searches.append(search)
    return searches


def rendered(template, search):
    """The passages of a search as prompts quote them, worst first."""
    if not search["shown"]:
        return "(no passages were found)"
    blocks = []
    for rank, passage in reversed(list(enumerate(search["shown"], 1))):
        values = {
            "label": f"{search['step'] + 1}.{rank}",
            "score": f"{passage['score']:.2f}",
            "source": passage["source"],
            "title": passage["title"],
            "paragraph": str(passage["paragraph"] or ""),
            "text": passage.get("text", "(the run keeps no texts)"),
        }
        lines = [line for line in template.split("\n") if all(values[name] for name in values if f"{{{name}}}" in line)]
        blocks.append(re.sub(r"\{(\w+)\}", lambda hole: values.get(hole[1], hole[0]), "\n".join(lines)))
    return "\n\n".join(blocks)


def words(text):
    return [word.lower() for word in re.findall(r"[^\W_]+", text)]


def says(word):
    return len(word) >= 4 or any(c.isdigit() for c in word)


def is_none(text):
    return "".join(c for c in text.lower() if c.isalnum()) in NONE


def hundredths(value):
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    number = re.match(r"-?\d*\.?\d+", str(value))
    if not number:
        return None
    thousandths = round(float(number[0]) * 10000)
    return min(500, max(100, (thousandths + 50) // 100))


class Course:
    """One note, from its calls and searches."""

    def __init__(self, item, calls, searches, text, sentences, plan):
        self.where = f"item {item['item']}, run {item['run']}"
        self.item, self.text, self.sentences, self.plan = item, text, sentences, plan
        self.settings = plan["settings"]
        self.calls = {(call["purpose"], call["round"], call["sample"]): call for call in calls}
        same(f"{self.where}: calls with one key", len(self.calls), len(calls))
        self.searches = {(search["round"], search["step"]): search for search in searches}
        same(f"{self.where}: searches with one key", len(self.searches), len(searches))
        self.used, self.searched = [], []

    def call(self, *key):
        if key not in self.calls:
            raise Difference(f"{self.where}: call {key} was to be made, and calls.jsonl has none")
        self.used.append(key)
        return self.calls[key]

    def record(self, call):
        """The reply as JSON; what was read from another form is taken from the log."""
        try:
            return json.loads(call["text"]) if call["parse"] == "ok" else None
        except ValueError:
            return None

    def foreign(self, call):
        if call["parse"] != "unread":
            left_out.add("how replies that are no JSON were read")
        return call["record"]

    def action(self, call):
        said = self.record(call)
        if said is None:
            return self.foreign(call)["action"]
        given = said.get("action")
        if isinstance(given, str):
            found = re.fullmatch(r'\s*(\w+)\("(.*)"\)\s*', given, re.S)
            if not found or found[1] not in NAMES | {"search"}:
                return None
            arguments = re.split(r'(?<!\\)", "', found[2])
            arguments = [one.replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\") for one in arguments] + ["", ""]
            if found[1] == "search":
                return {"name": "search", "query": arguments[0]}
            labels = re.findall(r"\d+\.\d+", arguments[2])
            return {"name": "final_mistake", "sentence": arguments[0], "correction": arguments[1], "evidence": labels}
        if not isinstance(given, dict):
            return None
        if given.get("name") in NAMES:
            return {"name": "final_mistake", "evidence": []} | given
        return given if given.get("name") == "search" else None

    def turn(self, round):
        line = {"round": round, "steps": 0, "lost_turns": 0, "final": False, "scores": [], "mean_hundredths": None, "min": None}
        line |= {"unread_reviews": 0, "accepted": False}
        history, answer = [], None
        for step in range(self.settings["react_turns"]):
            call = self.call("step", round, step)
            self.check_quotes(call, history)
            line["steps"] += 1
            action = self.action(call)
            if action is None:
                line["lost_turns"] += 1
                continue
            if action["name"] == "search":
                search = self.searches.get((round, step))
                if search is None:
                    raise Difference(f"{self.where}: a search of round {round}, step {step} is not in searches.jsonl")
                same(f"{self.where}: query", search["query"].strip(), action["query"].strip())
                if not search["query"].strip():
                    same(f"{self.where}: passages of no query", search["shown"], [])
                if len(search["retrieved"]) > self.settings["retrieve_top_k"] or len(search["shown"]) > self.settings["rerank_top_k"]:
                    raise Difference(f"{self.where}: more passages than were asked for")
                history.append(search)
                self.searched.append(search)
            else:
                line["final"], answer = True, action
                break
        return line, history, answer

    def check_quotes(self, call, history):
        """A prompt quotes every search of its turn, or the latest alone, by reference."""
        places = [{"round": one["round"], "step": one["step"]} for one in history]
        if self.settings.get("results_kept") == "last":
            places = places[-1:]
        content = call["messages"][-1]["content"]
        found = [part["passages"] for part in content if isinstance(part, dict)] if isinstance(content, list) else []
        same(f"{self.where}: passages in call {call['seq']}", found, places)

    def review(self, line, history):
        scores = []
        for reviewer in range(self.settings["reviewers"]):
            call = self.call("review", line["round"], reviewer)
            self.check_quotes(call, history)
            said = self.record(call)
            score = hundredths(said.get("final_score")) if said is not None else self.foreign(call)["scores"][5]
            line["unread_reviews"] += score is None
            scores += [score] if score is not None else []
        line["scores"] = scores
        if not scores:
            return
        count, total = len(scores), sum(scores)
        line["mean_hundredths"] = int((2 * total + count) // (2 * count))
        line["min"] = min(scores)
        average, least = (round(float(self.settings[name]) * 100) for name in ("avg_threshold", "min_threshold"))
        line["accepted"] = total >= average * count and min(scores) >= least

    def quoted(self, text):
        """The sentence that equals a text, and the one most like it."""
        is_given = bool(text) and not is_none(text)
        exact = next((place for place, one in enumerate(self.sentences) if one.split() == text.split()), None)
        return exact, texts.aligned(self.sentences, text, self.item["language"], "sequence-matcher", LIKENESS) if is_given else None

    def scores(self, review):
        said = self.record(review)
        return [hundredths(said.get(f"{name}_score")) for name in CRITERIA] if said is not None else self.foreign(review)["scores"]

    def parse(self, round, action):
        """Flag, sentence, correction, mismatch, unchanged."""
        call = self.call("parse", round, 0)
        said = self.record(call)
        if said is None or not isinstance(said.get("is_error"), bool):
            if call["parse"] not in ("fallback", "unread") or action is None:
                record = self.foreign(call)
                return record["is_error"], record["sentence_id"], record["correction"], record["mismatch"], record["unchanged"]
            said = {"is_error": not is_none(action["sentence"]), "sentence_id": None, "error_sentence": action["sentence"]}
            said["corrected_sentence"] = action["correction"]
        if not said["is_error"]:
            return False, None, None, False, False
        plain = lambda text: text.split()
        named, text = said.get("sentence_id"), (said.get("error_sentence") or "").strip()
        corrected = (said.get("corrected_sentence") or "").strip()
        exact, alike = self.quoted(text)
        in_range = isinstance(named, int) and 0 <= named < len(self.sentences)
        place = named if in_range else exact if exact is not None else alike
        mismatch = in_range and plain(self.sentences[named]) != plain(text) and alike is not None and alike != named
        correction = corrected if corrected and not is_none(corrected) else None
        unchanged = correction is not None and place is not None and plain(correction) == plain(self.sentences[place])
        # A sentence as it stands corrects nothing.
        return True, place, None if unchanged else texts.whole(correction, self.sentences, call), mismatch, unchanged

    def outcome(self):
        """The note's line as it should be."""
        self.trajectory = {"turns": [], "reflexions": 0, "exhausted": False}
        if self.plan["system"] == "medreact":
            line, history, action = self.turn(0)
            self.trajectory["turns"].append(line)
            return self.concluded(self.parse(0, action), history, action, None, "parser")
        last = None
        answered, reviewed, stepped = False, False, False
        turns = self.settings["reflexion_turns"]
        for round in range(turns):
            line, history, action = self.turn(round)
            if action is not None:
                self.review(line, history)
            self.trajectory["turns"].append(line)
            answered |= action is not None
            reviewed |= bool(line["scores"])
            stepped |= line["lost_turns"] < line["steps"]
            if line["accepted"]:
                return self.concluded(self.parse(round, action), history, action, line["mean_hundredths"], "eval")
            if round + 1 < turns:
                call = self.call("reflexion", round, 0)
                self.check_quotes(call, history)
                self.trajectory["reflexions"] += call["parse"] != "unread"
            if action is not None or last is None or last[2] is None:
                last = (round, history, action)
        self.trajectory["exhausted"] = True
        if self.settings.get("on_exhaustion") == "last-answer":
            return self.concluded(self.parse(last[0], last[2]), last[1], last[2], None, "eval")
        # Without an accepted answer there is no error, where a review rejected one, or steps that could be read gave none.
        is_read = reviewed if answered else stepped
        return self.concluded((False if is_read else None, None, None, False, False), [], None, None, "eval")

    def concluded(self, answer, history, action, mean, agent):
        flag, place, correction, mismatch, unchanged = answer
        trajectory = self.trajectory
        trajectory["searches"] = [{"round": one["round"], "step": one["step"]} for one in self.searched]
        trajectory |= {"evidence": [], "grounded": None}
        if correction is not None and place is not None:
            old = set(words(self.sentences[place]))
            new = list(dict.fromkeys(word for word in words(correction) if says(word) and word not in old))
            shown = [passage for search in self.searched for passage in search["shown"]]
            known = {word for passage in shown for text in (passage["title"], passage.get("text", "")) for word in words(text)}
            lacking = [word for word in new if word not in known]
            trajectory["grounded"] = not lacking if new else None
            if lacking:
                trajectory["ungrounded"] = lacking
            by_label = {f"{one['step'] + 1}.{rank}": (one, rank) for one in history for rank in range(1, len(one["shown"]) + 1)}
            unknown = 0
            # Earlier versions had answers cite.
            for wanted in (action or {}).get("evidence", []) if "cite" in self.settings else []:
                for label in re.findall(r"\d+\.\d+", wanted) or []:
                    if label not in by_label:
                        unknown += 1
                        continue
                    search, rank = by_label[label]
                    line = {"round": search["round"], "step": search["step"], "rank": rank}
                    line |= {"chunk": search["shown"][rank - 1]["chunk"], "sentence": place}
                    if line not in trajectory["evidence"]:
                        trajectory["evidence"].append(line)
            if unknown:
                trajectory["unknown_labels"] = unknown
        leaks = self.leaks()
        trajectory |= {name: value for name, value in (("leaks", leaks), ("mismatch", mismatch), ("unchanged", unchanged)) if value}
        sentence = "" if place is None else self.sentences[place]
        detection = {"source": "single", "agents": [agent], "flags": [flag], "confidences": [None if mean is None else mean / 500]}
        localisation = None
        if flag:
            opinion = "" if place is None else str(place)
            localisation = {"source": "single", "agents": ["parser"], "opinions": [opinion], "sentence_ids": [place], "confidences": [None]}
        return {
            "flag": flag,
            "sentence_id": place,
            "sentence": sentence,
            "exact_sentence_id": place,
            "correction": correction,
            "confidence": None,
            "detection": detection,
            "localisation": localisation,
            "search": trajectory,
        }

    def leaks(self):
        note = words(self.text)
        rows = {tuple(note[place : place + 8]) for place in range(len(note) - 7)}
        chunks = set()
        for passage in (passage for search in self.searched for passage in search["shown"]):
            said = words(passage.get("text", ""))
            if any(tuple(said[place : place + 8]) in rows for place in range(len(said) - 7)):
                chunks.add(passage["chunk"])
        return len(chunks)


def figures(run):
    """What searching came to over a run."""
    ended = [run.last[key]["search"] for key in sorted(run.last) if run.last[key].get("search")]
    if not ended:
        return None
    def spread(values):
        found = over_runs([float(value) for value in values])
        return {"mean": found["mean"], "std": found["std"]}

    def taken(values):
        return spread(values) if values else {"mean": 0.0, "std": None}

    took = {(one["run"], one["item"], one["round"], one["step"]): one["took"] for one in run.searches}
    steps, searching, generated = [], [], []
    for call in run.calls:
        if call["purpose"] == "step":
            ms = float(call["elapsed_ms"])
            own = took.get((call["run"], call["item"], call["round"], call["sample"]))
            if own is not None:
                generated.append(ms)
                ms += own["embed_ms"] + own["scan_ms"] + own["rerank_ms"]
                searching.append(ms / 1000.0)
            steps.append(ms / 1000.0)
    shown = {}
    for passage in (passage for search in run.searches for passage in search["shown"]):
        shown[passage["source"]] = shown.get(passage["source"], 0) + 1
    sources = run.plan["corpus"].get("source", [])
    if sources:
        same("sources that were shown and that the plan does not have", sorted(shown.keys() - {source["label"] for source in sources}), [])
    turns = [turn for one in ended for turn in one["turns"]]
    return {
        "steps": spread([sum(turn["steps"] for turn in one["turns"]) for one in ended]),
        "turns": spread([len(one["turns"]) for one in ended]),
        "reflexions": spread([one["reflexions"] for one in ended]),
        "seconds_a_step": taken(steps),
        "seconds_a_searching_step": taken(searching),
        "generate_ms": taken(generated),
        **{name: taken([one["took"][name] for one in run.searches]) for name in ("embed_ms", "scan_ms", "rerank_ms")},
        "searches": len(run.searches),
        "cached": sum(one.get("cached", False) for one in run.searches),
        "cut_queries": sum(one.get("query_cut", False) for one in run.searches),
        # What the plan says of the corpus; every source that was shown is one of it.
        "corpus": sources,
        "shown": shown,
        "exhausted": sum(one["exhausted"] for one in ended),
        "exhausted_cleared": sum(one["flag"] is False and one["search"]["exhausted"] for one in run.last.values() if one.get("search")),
        "lost_turns": sum(turn["lost_turns"] for turn in turns),
        "unread_reviews": sum(turn["unread_reviews"] for turn in turns),
        "leaks": sum(one.get("leaks", 0) for one in ended),
        "ungrounded": sum(one["grounded"] is False for one in ended),
        "cited": sum(bool(one["evidence"]) for one in ended),
        "mismatches": sum(one.get("mismatch", False) for one in ended),
        "unchanged": sum(one.get("unchanged", False) for one in ended),
    }

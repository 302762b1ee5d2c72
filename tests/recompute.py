"""Recomputes a run directory of MED-MAD, or of a panel that panels.py knows, from plan.toml and calls.jsonl alone, and compares.

    python3 tests/recompute.py DIR

Shares no code with the program. From the texts of the calls it reads the records again, and from those the answers,
weights, votes, ties, team confidences, rounds, verdicts, accuracies and token sums; both hash chains and the heads are
checked as well. Exits 0 when items.jsonl and results.json say the same, 1 with the first difference. Python 3.11 or
later, standard library only.
"""

import hashlib
import json
import math
import re
import sys
import tomllib
from pathlib import Path

import panels
from health import parse_health, warnings
from panels import Difference, expect, vote


# The files.


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def read_chain(path, anchor):
    """The lines of a log as objects; each must carry its own hash and that of the line before."""
    data = path.read_bytes()
    if data and not data.endswith(b"\n"):
        raise Difference(f"{path}: the last line is cut short")
    head, lines = anchor, []
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        where = f"{path}, line {number}"
        record = json.loads(line)
        tail = b',"hash":"%s"}' % record["hash"].encode()
        if not line.endswith(tail):
            raise Difference(f"{where}: the line does not end in its hash")
        expect(f"{where}, hash", record["hash"], sha256(line[: -len(tail)] + b"}"))
        expect(f"{where}, prev", record["prev"], head)
        if "seq" in record:
            expect(f"{where}, seq", record["seq"], number)
        head = record["hash"]
        lines.append(record)
    return lines, head


def results_head(path):
    text = path.read_text(encoding="utf-8")
    without = re.sub(r',\n  "head": "[0-9a-f]{64}"\n}\n$', "\n}\n", text)
    return sha256(without.encode())


# From a text to a record (Appendix B.2, B.7, and the reading of free text).


def normalised_answer(text):
    """The first letter A-J that stands alone, else the last one anywhere, else nothing."""
    text = text.strip().upper()
    alone = re.search(r"\b[A-J]\b", text)
    anywhere = re.findall(r"[A-J]", text)
    return alone.group() if alone else anywhere[-1] if anywhere else ""


def confidence_of(value):
    if isinstance(value, str):
        try:
            value = float(value.strip().replace("_", "no number"))
        except ValueError:
            return 0.0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return 0.0
    return min(max(float(value), 0.0), 1.0)


def plain(value):
    """An answer as text, whatever its type."""
    match value:
        case None:
            return ""
        case str():
            return value
        case list():
            return "; ".join(map(plain, value))
        case dict():
            return "; ".join(map(plain, value.values()))
        case _:
            return json.dumps(value)


def loads(text):
    """A JSON object with an answer, or None. Python takes NaN, 1e999 and lone surrogates, which are no JSON."""

    def refuse(constant):
        raise ValueError(constant)

    def finite(number):
        return float(number) if math.isfinite(float(number)) else refuse(number)

    try:
        value = json.loads(text, parse_constant=refuse, parse_float=finite)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and "answer" in value else None


def is_plain(stated):
    """Whether a stated confidence counts as it is written: a number from 0 to 1."""
    try:
        return 0.0 <= float(stated) <= 1.0
    except (TypeError, ValueError):
        return False


def without_thinking(text):
    text = text.lstrip()
    if not text.startswith("{"):
        if "</think>" in text:
            text = text.split("</think>", 1)[1]
        elif text.startswith("<think>"):
            text = ""
    return text


def read_text(call, by_rule):
    """The answer, the confidence, and how they were read. What is no JSON is read by rules that tests/replies holds; of it the call's
    own record stands."""
    record = loads(without_thinking(call["text"]).strip())
    if record is None:
        if call["parse"] not in ("repaired", "fallback", "refused", "unread"):
            raise Difference(f"call {call['seq']}: read as {call['parse']}, and is no record")
        return call["record"]["answer"], call["record"]["confidence"], call["parse"], call["record"].get("not_an_option")
    stated, read = record.get("confidence"), confidence_of(record.get("confidence"))
    is_odd = stated is not None and (isinstance(stated, bool) or not is_plain(stated))
    how = "repaired" if call["finish_reason"] == "length" or is_odd else "ok"
    written = plain(record["answer"])
    if by_rule or re.fullmatch(r"\W*[A-Ja-j]\W*", written):
        # What the paper's rule makes of anything but a letter counts as repaired.
        letter = normalised_answer(written)
        return letter, read, call["parse"] if by_rule and letter and how == "ok" else how, None
    return call["record"]["answer"], read, call["parse"], call["record"].get("not_an_option")


# From three records to one answer (Appendix B.3, B.4, B.8).


def weight(confidence):
    """In tenths, so that sums and ties are exact."""
    for least, tenths in ((0.95, 9), (0.85, 7), (0.70, 5), (0.50, 3)):
        if confidence >= least:
            return tenths
    return 1


def agree(answers):
    return answers[0] != "" and len(set(answers)) == 1


def agents_of(roles):
    """The agents' names: their roles, numbered where one comes more than once."""
    count = {role: roles.count(role) for role in roles}
    return [role if count[role] == 1 else f"{role}-{roles[: at + 1].count(role)}" for at, role in enumerate(roles)]


def check_item(item, calls, agents, settings):
    """One answered item against the records of its calls."""
    where = f"item {item['item']}, run {item['run']}"
    by_round = {}
    for call in calls:
        by_round.setdefault(call["round"], {})[call["agent"]] = call
    last = len(by_round) - 1
    expect(f"{where}: rounds of its calls", sorted(by_round), list(range(last + 1)))
    expect(f"{where}: rounds_run", item["rounds_run"], last)
    expect(f"{where}: calls", item["calls"], len(agents) * (last + 1))
    expect(f"{where}: calls in the log", len(calls), item["calls"])
    expect(f"{where}: rounds", [one["round"] for one in item["rounds"]], list(range(last + 1)))
    uses_confidence, peers = settings["confidence"] == "on", settings.get("peers", "all")
    for number, logged in enumerate(item["rounds"]):
        place = f"{where}, round {number}"
        records = [by_round[number][agent] for agent in agents]
        answers = [record["answer"] for record in records]
        confidences = [record["confidence"] for record in records]
        weights = [weight(one) if uses_confidence else 10 for one in confidences]
        chosen, tie, team = vote(answers, weights, 10)
        expect(f"{place}: answers", logged["answers"], answers)
        for name, found, expected in zip(agents, logged["confidences"], confidences, strict=True):
            expect(f"{place}: confidence of {name}", found, expected)
        for name, found, expected in zip(agents, logged["weights"], weights, strict=True):
            expect(f"{place}: weight of {name}", found, expected / 10)
        expect(f"{place}: aggregate", logged["aggregate"], chosen)
        if number == 0:
            expect(f"{place}: labels and brief", (logged["labels"], logged["brief"]), ([], ""))
        else:
            expect(f"{place}: labels", sorted(logged["labels"]), sorted(agents))
            for record in records:
                briefs = logged["brief"].split("\n\n----\n\n")
                if peers in ("all", "none") and len(briefs) > 1 or not any(brief in record["user"] for brief in briefs):
                    raise Difference(f"{place}: the brief is not what {record['agent']} was shown")
        goes_on = number < settings["t_max"] and not agree(answers)
        expect(f"{place}: another round follows", number < last, goes_on)
    expect(f"{where}: answer", item["answer"], chosen)
    expect(f"{where}: tie", item["tie"], tie)
    expect(f"{where}: team_confidence", item["team_confidence"], team if chosen else None)
    expect(f"{where}: correct", item["correct"], None if item["gold"] is None else chosen == item["gold"])


def shown(message):
    """Its text; what it quotes of a corpus stands in the log of searches."""
    parts = message["content"]
    return parts if isinstance(parts, str) else "".join(part for part in parts if isinstance(part, str))


def read_call(call, letters, by_rule):
    where = f"call {call['seq']} ({call['agent']}, round {call['round']}, item {call['item']}, run {call['run']})"
    answer, confidence, how, other = read_text(call, by_rule)
    if how in ("ok", "repaired") and letters is not None and answer and answer not in letters:
        answer, how, other = "", "unread", answer
    expect(f"{where}: record.not_an_option", call["record"].get("not_an_option"), other)
    expect(f"{where}: parse", call["parse"], how)
    expect(f"{where}: record.answer", call["record"]["answer"], answer)
    expect(f"{where}: record.confidence", call["record"]["confidence"], confidence)
    return {
        "agent": call["agent"],
        "round": call["round"],
        "answer": answer,
        "confidence": confidence,
        "user": shown(call["messages"][-1]),
    }


def mean(values):
    return sum(values) / len(values)


def check_results(results, plan, outcomes, calls, heads):
    expect("results: heads", results["heads"], heads)
    expect("results: n_items", results["n_items"], len(plan["dataset"]["items"]))
    expect("results: n_runs", results["n_runs"], plan["runs"])
    expect("results: calls", results["calls"], len(calls))
    expect("results: n_errors", results["n_errors"], sum(item["error"] is not None for item in outcomes.values()))
    expect("results: ties", results["ties"], sum(item["tie"] for item in outcomes.values()))
    for name in ("prompt", "cached", "completion", "forced"):
        expect(f"results: tokens.{name}", results["tokens"][name], sum(call["usage"][f"{name}_tokens"] for call in calls))
    for how in ("ok", "repaired", "fallback", "refused", "unread"):
        expect(f"results: parse.{how}", results["parse"][how], sum(call["parse"] == how for call in calls))
    others = sum("not_an_option" in call["record"] for call in calls)
    health = parse_health(calls)
    expect("results: parse_health", results["parse_health"], health)
    expect("results: warnings of replies", sum(one.count(" %)") for one in results.get("warnings", [])), warnings([health]))
    expect("results: parse.not_an_option", results["parse"]["not_an_option"], others)

    per_run = []
    for run in range(1, plan["runs"] + 1):
        verdicts = [item["correct"] for (number, _), item in outcomes.items() if number == run and item["gold"] is not None]
        per_run += [mean(verdicts)] if verdicts else []
    if not per_run:
        expect("results: accuracy", results["accuracy"], None)
        return
    accuracy = results["accuracy"]
    for run, (found, expected) in enumerate(zip(accuracy["per_run"], per_run, strict=True), 1):
        expect(f"results: accuracy of run {run}", found, expected)
    centre = mean(per_run)
    expect("results: accuracy.mean", accuracy["mean"], centre)
    squares = sum((one - centre) * (one - centre) for one in per_run)
    deviation = math.sqrt(squares / (len(per_run) - 1)) if len(per_run) > 1 else None
    expect("results: accuracy.std", accuracy["std"], deviation)


def check_units(results, dataset, outcomes, runs):
    """Questions that ask the same are one unit."""
    groups, graded = {}, 0
    for one in dataset:
        if one["kind"] == "question" and all(outcomes[run, one["item"]]["gold"] is not None for run in range(1, runs + 1)):
            asked = one["question"].lower().split()
            groups.setdefault((tuple(asked), one["image"]), []).append(one["item"])
            graded += 1
    expect("results: near_duplicates", results.get("near_duplicates", []), [group for group in groups.values() if len(group) > 1])
    expect("results: n_units", results.get("n_units"), len(groups) if len(groups) < graded else None)


def check(directory):
    plan_bytes = (directory / "plan.toml").read_bytes()
    plan = tomllib.loads(plan_bytes.decode())
    anchor = sha256(plan_bytes)
    texts = (directory / "dataset.jsonl").read_bytes()
    expect("the sha256 of dataset.jsonl", plan["dataset"]["items_sha256"], sha256(texts))
    calls, calls_head = read_chain(directory / "calls.jsonl", anchor)
    items, items_head = read_chain(directory / "items.jsonl", anchor)
    heads = {
        "plan": anchor,
        "calls": calls_head,
        "items": items_head,
        "call_lines": len(calls),
        "item_lines": len(items),
    }

    settings, agents = plan["settings"], [member["agent"] for member in plan["panel"]]
    is_medmad = plan["system"] == "medmad"
    if is_medmad:
        if settings["record"] != "full":
            raise Difference(f"record = {settings['record']} is not computed again, the paper's full alone is")
        expect("plan: agents of the panel", agents, agents_of(settings["roles"].split(",")))
    elif plan["system"] not in panels.PROTOCOLS:
        raise Difference(f"{plan['system']} is not computed again")

    dataset = [json.loads(line) for line in texts.splitlines()]
    any_letter = settings.get("letters") == "a-j"
    by_rule = settings.get("answer_reading") == "paper"
    letters = {one["item"]: None if any_letter else list(one["options"]) for one in dataset}

    # An item that errored may have been tried again: its last line counts.
    outcomes = {(item["run"], item["item"]): item for item in items}
    records, keys = {}, set()
    for call in calls:
        key = (call["run"], call["item"], call["agent"], call["round"], call["purpose"], call["sample"])
        if key in keys:
            raise Difference(f"call {call['seq']}: {key} comes twice")
        keys.add(key)
        of_item = (call["run"], call["item"])
        own = letters[call["item"]]
        records.setdefault(of_item, []).append(read_call(call, own, by_rule) if is_medmad else call)

    planned = {(run, item) for run in range(1, plan["runs"] + 1) for item in plan["dataset"]["items"]}
    expect("items: those that the plan names", sorted(outcomes), sorted(planned))
    for key, item in outcomes.items():
        own = letters[item["item"]]
        if item["error"] is None and is_medmad:
            check_item(item, records.get(key, []), agents, settings)
        elif item["error"] is None:
            panels.check_item(plan["system"], item, records.get(key, []), own, settings)
        else:
            expect(f"item {item['item']}, run {item['run']}: answer of an error", item["answer"], "")

    results_path = directory / "results.json"
    results = json.loads(results_path.read_text(encoding="utf-8"))
    check_results(results, plan, outcomes, calls, heads)
    check_units(results, dataset, outcomes, plan["runs"])
    expect("results: head", results["head"], results_head(results_path))
    return len(outcomes), len(calls)


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        items, calls = check(Path(sys.argv[1]))
    except Difference as difference:
        print(difference)
        return 1
    print(f"{items} items and {calls} calls recomputed, no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())

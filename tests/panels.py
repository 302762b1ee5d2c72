"""The protocols of panels on questions: whom each asks, in which order, until when, and whose answer counts. recompute.py has a protocol ask
again; the calls of the log answer it, and what comes of them must be the log's items.

Shares no code with the program.
"""

import json
import math
import re


class Difference(Exception):
    """What was found, and what should be there."""


def expect(where, found, expected):
    """Numbers may differ in their last bits: sums may be taken in another order."""
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        for pair in zip(found, expected):
            expect(where, *pair)
        return
    numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (found, expected))
    same = math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12) if numbers else found == expected
    if not same:
        raise Difference(f"{where}: found {found!r}, recomputed {expected!r}")


def vote(answers, weights, whole):
    """The answer, whether it was a tie, and the mean weight of its supporters, of which `whole` is 1. A tie goes to the first in panel order."""
    sums = {}
    for answer, weight in zip(answers, weights):
        if answer:
            sums[answer] = sums.get(answer, 0) + weight
    best = max(sums.values(), default=0)
    winners = [answer for answer in sums if sums[answer] == best]
    chosen = winners[0] if winners else ""
    support = [weight for answer, weight in zip(answers, weights) if answer and answer == chosen]
    # Nobody could be read: nobody is confident.
    return chosen, len(winners) > 1, sum(support) / (whole * len(support)) if support else 0.0


class Course:
    """An item's calls as its protocol asks for them, and the rounds and the outcome that they make."""

    def __init__(self, where, calls, letters, settings):
        self.where, self.letters, self.settings = where, letters, settings
        self.calls = {(call["purpose"], call["agent"], call["round"]): call for call in calls}
        self.step, self.rounds, self.last, self.outcome = 0, [], None, ("", False, 0.0)

    def at(self, step):
        self.step = step
        return self

    def ask(self, purpose, *agents):
        """What the agents say, who are asked at once."""
        said = []
        for agent in agents:
            call = self.calls.pop((purpose, agent, self.step), None)
            if call is None:
                raise Difference(f"{self.where}: no {purpose} of {agent} in step {self.step}")
            said.append(read(call, self.letters))
        self.step += 1
        return said

    def answer(self, purpose, *agents, weigh=None):
        """The same of what they answer the question; it is the outcome, but where none of it can be read and there was one before."""
        step, said = self.step, self.ask(purpose, *agents)
        answers = [one["answer"] for one in said]
        weights = [1000 if weigh is None else weigh(one["confidence"]) for one in said]
        chosen, tie, confidence = vote(answers, weights, 1000)
        if weigh is None:
            confidence = answers.count(chosen) / len(answers) if chosen else 0.0
        if chosen or not self.rounds:
            self.outcome = chosen, tie, confidence
        self.last = chosen, tie, confidence
        stated = weigh is not None and any(one["confidence"] is not None for one in said)
        self.rounds.append({
            "round": step,
            "stage": "initial" if not self.rounds else "final" if len(agents) == 1 else "round",
            "agents": list(agents),
            "answers": answers,
            "confidences": [one["confidence"] or 0.0 for one in said] if stated else [],
            "weights": [weight / 1000 for weight in weights],
            "aggregate": chosen,
        })
        return said

    def check(self, item, calls):
        if self.calls:
            raise Difference(f"{self.where}: nobody asks for {sorted(self.calls)[0]}")
        expect(f"{self.where}: calls", item["calls"], calls)
        expect(f"{self.where}: number of rounds", len(item["rounds"]), len(self.rounds))
        for logged, computed in zip(item["rounds"], self.rounds):
            for field, value in computed.items():
                expect(f"{self.where}, round {computed['round']}: {field}", logged[field], value)
        expect(f"{self.where}: rounds_run", item["rounds_run"], self.rounds[-1]["round"])
        found = item["answer"], item["tie"]
        expect(f"{self.where}: answer and tie", found, self.outcome[:2])
        expect(f"{self.where}: team_confidence", item["team_confidence"], self.outcome[2] if self.outcome[0] else None)
        expect(f"{self.where}: correct", item["correct"], None if item["gold"] is None else item["answer"] == item["gold"])


def read(call, letters):
    """Answer, confidence and consent of a reply. What is no plain record is read by rules that tests/replies holds: of it the call's own stands."""
    own = call["record"]
    said = {"answer": own.get("answer", ""), "confidence": own.get("confidence"), "agreed": own.get("agreed")}
    # What a protocol goes on with where a reply gave nothing stands apart.
    said["own"] = own.get("assumed", {}) | own
    try:
        record = json.loads(call["text"])
    except ValueError:
        record = None
    if isinstance(record, dict) and "contradiction" not in own and call["parse"] != "refused":
        letter = record.get("answer", record.get("final_answer"))
        if isinstance(letter, str) and re.fullmatch("[A-J]", letter):
            said["answer"] = letter if letter in letters else ""
        sure = record.get("confidence")
        if isinstance(sure, (int, float)) and not isinstance(sure, bool) and 0 <= sure <= 1:
            said["confidence"] = float(sure)
        for key in ("consensus_reached", "agree", "converged", "finished"):
            if record.get(key) in ("yes", "no"):
                said["agreed"] = record[key] == "yes"
    where = f"call {call['seq']} ({call['agent']}, {call['purpose']}, item {call['item']}, run {call['run']})"
    for field in ("answer", "confidence", "agreed"):
        if field in own:
            expect(f"{where}: record.{field}", own[field], said[field])
    if call["parse"] in ("unread", "refused"):
        expect(f"{where}: answer of what could not be read", own.get("answer", ""), "")
    return said


def reconcile(course):
    """f(p) of Chen et al. (ACL 2024), §4."""

    def weigh(p):
        return 1000 if p >= 1 else 800 if p >= 0.9 else 500 if p >= 0.8 else 300 if p > 0.6 else 100

    agents = [f"agent-{number}" for number in range(1, 4)]
    said = course.answer("initial", *agents, weigh=weigh)
    for number in range(course.settings["max_rounds"]):
        # It hears no silence, and asks after a discussion alone.
        if number > 0 and len({one["answer"] for one in said} - {""}) == 1:
            break
        said = course.answer("discussion", *agents, weigh=weigh)
    course.outcome = course.last


def mdagents(course):
    level = course.at(0).ask("complexity", "moderator")[0]["own"]["complexity"]
    if level == "basic":
        course.at(0).answer("answer", "agent-1")
        return
    recruits = course.at(0).ask("recruitment", "recruiter")[0]["own"]
    if level == "advanced":
        teams = list(enumerate(recruits["teams"], 1))
        leads = [f"team-{at}-lead" for at, _ in teams]
        course.at(0).ask("request", *leads)
        course.at(0).ask("investigation", *(f"team-{at}-assistant-{n}" for at, team in teams for n in range(1, len(team["members"]))))
        course.at(0).answer("report", *leads)
    else:
        experts = [f"expert-{number}" for number, _ in enumerate(recruits["experts"], 1)]
        course.at(0).answer("opinion", *experts)
    answer = course.at(0).ask("decision", "moderator")[0]["answer"]
    answers = course.rounds[-1]["answers"]
    course.outcome = answer, False, answers.count(answer) / len(answers) if answer else 0.0


PROTOCOLS = {
    "reconcile": reconcile,
    "mdagents": mdagents,
}


def check_item(system, item, calls, letters, settings):
    """One answered item against what its protocol makes of its calls."""
    course = Course(f"item {item['item']}, run {item['run']}", calls, letters, settings)
    PROTOCOLS[system](course)
    course.check(item, len(calls))

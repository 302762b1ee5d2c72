"""Reads the exports of a run with the published readers, compares them with the run's own files, and prints what was read.

python formats.py RUN EXPORTS
"""

import collections
import hashlib
import json
import pathlib
import sys

import jsonschema
from every_eval_ever.validator import validation_core as eee
from google.protobuf import json_format
from importlib import resources
from in_toto_attestation.predicates.test_result.v0 import test_result_pb2
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement
from inspect_ai.log import read_eval_log

run, exports = map(pathlib.Path, sys.argv[1:3])
lines = [json.loads(line) for line in (run / "items.jsonl").open(encoding="utf-8")]
# Where an item was tried again, its last line counts.
items = {(line["run"], line["item"]): line for line in lines}
results = json.loads((run / "results.json").read_text())
accuracy = results["accuracy"] and results["accuracy"]["mean"]


def is_graded(line):
    return line["gold"] is not None


def lack(line):
    if line["error"] is not None:
        return "failed"
    answer = line["answer"] if line["kind"] == "question" else line["flag"]
    return "unread" if answer in ("", None) else None


def is_right(line):
    if lack(line):
        return False
    return line["correct"] if line["kind"] == "question" else line["flag"] == line["gold"]["flag"]


def every_eval_ever(folder):
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    (name,) = [name for name in files if name.endswith(".json")]
    samples = name.replace(".json", "_samples.jsonl")
    context = {"available_files": set(files), "read_repo_file": lambda name: files[name].read_text(), "run_semantic_checks": True}
    reports = [
        eee.validate_aggregate(files[name], repo_path=name, **context),
        eee.validate_instance_file(files[samples], repo_path=samples, **context),
    ]
    for report in reports:
        assert report.valid and not report.errors, report.errors
    schemas = resources.files("every_eval_ever.schemas")
    log = json.loads(files[name].read_text())
    rows = [json.loads(line) for line in files[samples].open(encoding="utf-8")]
    jsonschema.validate(log, json.loads((schemas / "eval.schema.json").read_text()))
    of_sample = jsonschema.Draft7Validator(json.loads((schemas / "instance_level_eval.schema.json").read_text()))
    for row in rows:
        of_sample.validate(row)
        line = items[(int(row["metadata"]["run"]), row["sample_id"])]
        assert row["evaluation"]["is_correct"] == is_right(line), row
        assert row["metadata"]["outcome"] == (lack(line) or "answered")
        assert (row["error"] is None) == (lack(line) is None)
    assert len(rows) == sum(map(is_graded, items.values()))
    assert log["evaluation_results"][0]["score_details"]["score"] == accuracy
    outcomes = collections.Counter(row["metadata"]["outcome"] for row in rows)
    print(f"every-eval-ever: {log['model_info']['name']}, accuracy {accuracy}, {len(rows)} samples {dict(outcomes)}")
    for warning in [warning for report in reports for warning in report.warnings]:
        print(f"  its warning: {eee.format_warning(warning)}")


def inspect(folder):
    (path,) = folder.iterdir()
    log = read_eval_log(str(path))
    assert log.status == "success" and len(log.samples) == len(items)
    for sample in log.samples:
        line = items[(sample.epoch, sample.id)]
        value = sample.scores["gold"].value if sample.scores else None
        due = ("N" if lack(line) else "C" if is_right(line) else "I") if is_graded(line) else None
        assert value == due, (sample.id, value, due)
        assert (sample.error is not None) == (lack(line) == "failed")
        assert len([message for message in sample.messages if message.role == "assistant"]) == line["calls"] or lack(line)
    scores = log.results.scores
    assert [score.metrics["accuracy"].value for score in scores] == ([] if accuracy is None else [accuracy])
    values = collections.Counter(sample.scores["gold"].value if sample.scores else "none" for sample in log.samples)
    print(f"inspect_ai: {log.eval.task} of {log.eval.model}, {len(log.samples)} samples, scores {dict(values)}, tags {log.eval.tags}")


def in_toto(folder):
    (path,) = folder.iterdir()
    parsed = json_format.Parse(path.read_text(), statement_pb2.Statement())
    statement = Statement.copy_from_pb(parsed)
    statement.validate()
    for subject in statement.pb.subject:
        assert hashlib.sha256((run / subject.name).read_bytes()).hexdigest() == subject.digest["sha256"], subject.name
    assert statement.pb.predicate_type == "https://in-toto.io/attestation/test-result/v0.1"
    predicate = json_format.ParseDict(json_format.MessageToDict(statement.pb.predicate), test_result_pb2.TestResult())
    tests = [len(names) for names in (predicate.passed_tests, predicate.warned_tests, predicate.failed_tests)]
    assert sum(tests) == len({line["item"] for line in items.values() if is_graded(line)})
    names = [resource.name for resource in predicate.configuration]
    print(f"in-toto: {predicate.result}, {len(statement.pb.subject)} files, of {names}, passed, warned and failed {tests}")


if accuracy is not None:
    every_eval_ever(exports / "every-eval-ever")
inspect(exports / "inspect")
in_toto(exports / "in-toto")

"""Needs pandas and pytest, and the program: WARDROUND_PROGRAM, or `wardround` in PATH. With every_eval_ever at hand its validator is asked too, and with jsonschema the schemas of docs/."""

import io
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pandas as pd
import pytest

import wardround

PROGRAM = os.environ.get("WARDROUND_PROGRAM") or shutil.which("wardround")


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "demo"
    subprocess.run([PROGRAM, "demo", "--out", out, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return wardround.read(out)


def test_items_have_the_accuracy_of_the_program(demo):
    by_run = demo.items.groupby("run")["is_correct"].mean()
    assert by_run.tolist() == pytest.approx(demo.figures["accuracy"]["per_run"])
    assert len(demo.items) == demo.figures["n_items"] * demo.figures["n_runs"]


def test_calls_are_those_that_the_program_counts(demo):
    assert len(demo.calls) == demo.figures["calls"] == demo.items["calls"].sum()
    assert demo.calls["completion_tokens"].sum() == demo.figures["tokens"]["completion"]
    assert not demo.calls.duplicated(["dataset", "run", "item", "agent", "round", "purpose", "sample"]).any()


def test_each_agent_answers_in_each_round(demo):
    first = demo.rounds[demo.rounds["round"] == 0]
    assert first.groupby(["run", "item"]).size().eq(3).all()
    votes = demo.rounds.drop_duplicates(["run", "item"], keep="last").set_index(["run", "item"])["aggregate"]
    said = demo.items.set_index(["run", "item"])["answer"]
    assert votes.reindex(said.index).tolist() == said.tolist()


def test_figures_are_those_of_results_json(demo):
    figures = demo.results.set_index("figure")["value"]
    assert figures["accuracy.mean"] == demo.figures["accuracy"]["mean"]
    assert pd.api.types.is_numeric_dtype(figures)


def fits_its_schemas(directory):
    jsonschema = pytest.importorskip("jsonschema")
    schemas = pathlib.Path(__file__).parents[2] / "docs/schemas"
    for file in ["dataset.jsonl", "calls.jsonl", "items.jsonl", "results.json"]:
        validator = jsonschema.Draft202012Validator(json.loads((schemas / f"{file.split('.')[0]}.json").read_text()))
        validator.check_schema(validator.schema)
        text = (directory / file).read_text()
        for record in [text] if file == "results.json" else text.rstrip("\n").split("\n"):
            validator.validate(json.loads(record))


def test_files_of_questions_are_as_their_schemas_say(demo):
    fits_its_schemas(demo.directory)


def test_a_table_of_the_program_is_read_as_it_is(demo):
    printed = subprocess.run([PROGRAM, "report", demo.directory, "--format", "csv", "--table", "accuracy"], check=True, capture_output=True, text=True)
    table = pd.read_csv(io.StringIO(printed.stdout))
    assert table["accuracy"].tolist() == pytest.approx(demo.figures["accuracy"]["per_run"])


def test_a_run_of_notes_and_one_that_goes_on(demo, tmp_path):
    notes = tmp_path / "notes.jsonl"
    note = {"id": "n1", "text": "He has a fever.\nHe takes insulin for it.", "gold": {"flag": True, "sentence_id": 1, "correction": "He takes paracetamol for it."}}
    notes.write_text(json.dumps(note) + "\n")
    models = tmp_path / "tiny"
    subprocess.run([PROGRAM, "models", "synth", "llama", models], check=True, stdout=subprocess.DEVNULL)
    arguments = {"data": notes, "format": "notes", "panel": [str(models)], "out": tmp_path / "run", "settings": {"max_tokens": 64}}
    run = wardround.run("base-llm", arguments=["--quiet"], **arguments)
    assert run.items[["item", "gold_flag", "gold_sentence_id"]].iloc[0].tolist() == ["n1", True, 1]
    assert run.items["is_correct"].mean() == run.figures["accuracy"]["mean"]
    again = wardround.run("base-llm", arguments=["--quiet"], **arguments)
    assert again.figures["digest"] == run.figures["digest"]
    fits_its_schemas(run.directory)


def test_mistakes_are_told(tmp_path):
    with pytest.raises(wardround.RunError, match="neither a run directory nor a recipe"):
        wardround.read(tmp_path)
    (tmp_path / "plan.toml").write_text("schema = 1")
    with pytest.raises(wardround.RunError, match="not finished"):
        wardround.read(tmp_path)
    with pytest.raises(wardround.RunError, match="exit code 2"):
        wardround.run("medmad", data="no-such-file", format="mcq", out=tmp_path / "none", program=PROGRAM)


def test_every_eval_ever_takes_it(demo, tmp_path):
    validation = pytest.importorskip("every_eval_ever.validator.validation_core")
    path = wardround.to_every_eval_ever(demo, tmp_path)
    files = {str(file.relative_to(tmp_path)): file for file in tmp_path.rglob("*") if file.is_file()}
    name = str(path.relative_to(tmp_path))
    samples = name.replace(".json", "_samples.jsonl")
    context = {"available_files": set(files), "read_repo_file": lambda name: files[name].read_text(), "run_semantic_checks": True}
    aggregate = validation.validate_aggregate(files[name], repo_path=name, **context)
    instances = validation.validate_instance_file(files[samples], repo_path=samples, **context)
    assert aggregate.valid and instances.valid, (aggregate.errors, instances.errors)


def test_the_example_draws(demo, tmp_path):
    pytest.importorskip("matplotlib")
    example = pathlib.Path(__file__).parents[1] / "examples/confidence.py"
    ended = subprocess.run([sys.executable, example, demo.directory, tmp_path / "confidence.png"], check=True, capture_output=True, text=True)
    assert "is_correct" in ended.stdout
    assert (tmp_path / "confidence.png").stat().st_size > 5000

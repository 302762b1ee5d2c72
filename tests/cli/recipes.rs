//! `recipe`: a table's cells on real questions, killed and taken up, and what no recipe can be made of.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use wardround::experiment::link::Link;

use crate::binary::{Scratch, size};
use crate::determinism::wait_until;

fn results(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("results.json")).unwrap()).unwrap()
}

/// The figures of the logs, by the script that shares no code with the program.
#[track_caller]
fn is_recomputed(folder: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recompute_recipe.py");
    let output = Command::new("python3").arg(script).arg(folder).output();
    let output = output.unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let is_equal = output.status.success() && told.contains("equal to the last digit");
    assert!(is_equal, "{output:?}");
}

#[test]
#[ignore = "needs WARDROUND_DATA, and python3 of 3.11 or later"]
fn with_data_table_one_is_killed_taken_up_and_recomputed() {
    let scratch = Scratch::new();
    scratch.link_data();
    let panel = scratch.panel();
    let run = format!(
        "recipe table1 --data-dir data --limit 2 --runs 2 --panel {panel} --decoding grammar --set record_chars=4 --quiet --out table1"
    );
    let folder = scratch.path("table1");
    let mut child = scratch.command(&run).spawn().unwrap();
    let third = folder.join("cells/cot-medqa/calls.jsonl");
    wait_until(&mut child, || third.exists() && size(&third) > 0);
    child.kill().unwrap();
    child.wait().unwrap();

    let table = scratch.wardround("resume table1 --quiet");
    let table = &table.succeeded().stdout;
    let page = "\nThe other tables and all cases are on the page table1/report.html.\n";
    assert!(table.contains("MED-MAD") && table.ends_with(page), "{table}");
    let markdown = scratch.wardround("report table1 --format md");
    for told in ["| MED-MAD |", "0.6000 ± 0.0265", "under a grammar", "seed 42"] {
        assert!(markdown.succeeded().stdout.contains(told), "no {told:?} in {markdown:?}");
    }
    let found = results(&folder);
    assert_eq!(found["cells"].as_array().unwrap().len(), 27);
    assert_eq!(found["netgain"].as_array().unwrap().len(), 12);
    let paired = found["paired"].as_array().unwrap();
    let comparisons = |name: &str| paired.iter().filter(|row| row["comparison"] == name).count();
    assert_eq!((comparisons("named"), comparisons("unified")), (3, 3));
    // The best of ours where it is another than the paper's baseline.
    assert_eq!(comparisons("best"), paired.len() - 6);
    is_recomputed(&folder);
    assert!(folder.join("report.html").is_file());

    let again = scratch.wardround(&run);
    assert_eq!(&again.succeeded().stdout, table);
    assert_eq!(results(&folder), found);
}

#[test]
fn a_dry_run_of_a_recipe_fetches_nothing_and_says_what_is_missing() {
    let scratch = Scratch::new();
    let told = scratch.wardround("recipe medreact-table2 --data-dir nowhere --dry-run");
    for part in [
        "50 items, 3 runs, at most 1650 calls",
        "missing    the model gemma3-4b: ",
        "MEDEC-Full-TrainingSet-with-ErrorType.csv: `wardround data fetch medec --to ./nowhere`",
        "missing    a corpus to search",
    ] {
        assert!(told.stdout.contains(part), "no {part:?} in {told:#?}");
    }
    told.refused(3, &["3 things missing"]);
    assert_eq!(std::fs::read_dir(scratch.path(".")).unwrap().count(), 0, "nothing is written");
}

#[test]
fn an_agent_of_a_recipe_has_a_model_of_its_own() {
    let scratch = Scratch::new();
    scratch.panel();
    scratch.questions(1);
    let recipe = "title = \"One\"\ntext = \"x\"\nruns = 1\ndecoding = \"grammar\"\npanel = [\"llama\"]\nanalyses = []\n\
                  [[dataset]]\nname = \"own\"\nlabel = \"Own\"\nfile = \"questions.jsonl\"\nformat = \"mcq\"\n\
                  [[method]]\nname = \"round\"\nlabel = \"Round\"\ngroup = \"g\"\nsystem = \"reconcile\"\nsettings = { record_chars = 2, max_rounds = 1 }\n";
    scratch.write("one.toml", recipe);
    let run = "recipe one.toml --data-dir . --out one --set";
    scratch.wardround(format!("{run} slot.agent-2=qwen3")).succeeded();
    let plan = std::fs::read_to_string(scratch.path("one/cells/round-own/plan.toml")).unwrap();
    let plan: toml::Table = plan.parse().unwrap();
    let models: Vec<&str> = plan["panel"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["backbone"].as_str().unwrap())
        .collect();
    assert_eq!(models, ["llama", "qwen3", "llama"]);
    scratch
        .wardround("recipe one.toml --data-dir . --out two --set slot.nobody=qwen3")
        .refused(2, &["no setting slot.nobody"]);
}

#[test]
#[ignore = "needs python3 of 3.11 or later"]
fn with_python_cells_share_the_calls_that_they_have_in_common() {
    let scratch = Scratch::new();
    let panel = scratch.panel();
    scratch.questions(2);
    let method = |t_max: u32| {
        format!(
            "[[method]]\nname = \"t-{t_max}\"\nlabel = \"T = {t_max}\"\ngroup = \"sweep\"\nsystem = \"medmad\"\n\
             settings = {{ t_max = {t_max}, record_chars = 8 }}\n"
        )
    };
    let recipe = format!(
        "title = \"Sweep\"\ntext = \"Rounds.\"\nruns = 1\ndecoding = \"grammar\"\npanel = [\"gemma3\", \"llama\", \"qwen3\"]\n\
         analyses = [\"netgain\", \"correlated-errors\"]\n\
         [[dataset]]\nname = \"own\"\nlabel = \"Own\"\nfile = \"questions.jsonl\"\nformat = \"mcq\"\n{}{}",
        method(0),
        method(1)
    );
    scratch.write("sweep.toml", recipe);
    let run = "recipe sweep.toml --data-dir . --decoding grammar --out";
    scratch.wardround(format!("{run} sweep --panel {panel}")).succeeded();
    let folder = scratch.path("sweep");
    let contents = |cell: &str| {
        let path = folder.join("cells").join(cell);
        wardround::experiment::contents::Contents::read(&path).unwrap()
    };
    let (votes, debates) = (contents("t-0-own"), contents("t-1-own"));
    assert_eq!(votes.calls.records.len(), 6);
    for call in &votes.calls.records {
        let mut calls = debates.calls.records.iter();
        let same = calls.find(|other| other.key() == call.key()).unwrap();
        // What was taken over was not made again: even its time is the first call's.
        assert_eq!(
            (&same.request, &same.text, same.elapsed_ms),
            (&call.request, &call.text, call.elapsed_ms)
        );
    }
    // Both cells are runs like any other.
    scratch.wardround("verify sweep/cells/t-1-own").succeeded();
    scratch.wardround("replay sweep/cells/t-1-own").succeeded();
    is_recomputed(&folder);
    let csv = scratch.wardround("report sweep --format csv --table accuracy");
    assert!(csv.succeeded().stdout.contains("T = 1"), "{csv:?}");
}

#[test]
fn a_cell_of_another_version_is_refused() {
    let scratch = Scratch::new();
    scratch.questions(1);
    let panel = scratch.panel();
    scratch.write(
        "one.toml",
        "title = \"One\"\ntext = \"One.\"\nruns = 1\ndecoding = \"grammar\"\npanel = [\"llama\"]\nanalyses = []\n\
         [[dataset]]\nname = \"own\"\nlabel = \"Own\"\nfile = \"questions.jsonl\"\nformat = \"mcq\"\n\
         [[method]]\nname = \"cot\"\nlabel = \"CoT\"\ngroup = \"one\"\nsystem = \"cot\"\nsettings = { record_chars = 8 }\n",
    );
    let run = format!("recipe one.toml --data-dir . --decoding grammar --panel {panel} --out one");
    scratch.wardround(&run).succeeded();
    crate::tampering::age(&scratch.path("one/cells/cot-own"));
    for verb in [run.as_str(), "resume one"] {
        let told = ["cells/cot-own/plan.toml", "version is \"0.0.9\" against"];
        scratch.wardround(verb).refused(2, &told);
    }
}

#[test]
fn a_new_recipe_runs_as_it_stands() {
    let scratch = Scratch::new();
    let panel = scratch.panel();
    let shown = scratch.wardround("recipe show new-questions").succeeded().stdout.clone();
    scratch.write("mine.toml", shown);
    scratch.write("questions.jsonl", wardround::data::DEMO_TEXT);
    let run = format!("recipe mine.toml --data-dir . --limit 1 --panel {panel} --out mine");
    let ran = scratch.wardround(run);
    let table = &ran.finished().stdout;
    for label in ["A vote on the first answers", "One round of debate"] {
        assert!(table.contains(label), "{table}");
    }
    let digest = |told: &str| {
        let line = told.lines().find_map(|line| line.strip_prefix("digest "));
        line.unwrap_or_else(|| panic!("{told}")).trim().to_owned()
    };
    let verified = scratch.wardround("verify mine");
    assert_eq!(digest(&verified.succeeded().stdout), digest(&ran.stderr));
}

/// A hospital's own file in place of a recipe's datasets: what it can show is told first, and its table and page come last.
#[test]
fn small_2026_runs_on_a_file_of_ones_own() {
    let scratch = Scratch::new();
    let panel = scratch.panel();
    scratch.questions(40);
    scratch.write(
        "notes.csv",
        "id,text,flag,sentence_id,correction\na,He has gout. Allopurinol was begun.,0,,\nb,He has gout. Insulin was begun.,1,1,Allopurinol was begun.\n",
    );
    let brief = "--runs 1 --set record_chars=2 --set max_tokens=16 --panel";
    let run = format!("recipe small-2026 --data questions.jsonl --format mcq {brief} {panel}");
    let dry = scratch.wardround(format!("{run} --dry-run"));
    let shows = "shows      questions: 40 items with gold: a difference of about 22 points in accuracy can be told from chance (paired, two-sided 0.05, 80 % power, if on one item in four only one of two methods is right)";
    let told = &dry.succeeded().stdout;
    let cells = told.lines().filter(|line| line.contains(" on questions: 40 items, 1 run, "));
    assert!(told.contains(shows) && cells.count() == 5, "{told}");
    let ran = scratch.wardround(format!("{run} --limit 2 --out questions"));
    let few = "shows      questions: 2 items with gold: too few to tell two methods from chance";
    let table = &ran.finished().stdout;
    assert!(ran.stderr.contains(few) && table.contains("CoT-SC, 12 samples"), "{ran:?}");
    assert!(table.ends_with("are on the page questions/report.html.\n"), "{table}");
    assert_eq!(results(&scratch.path("questions"))["paired"].as_array().unwrap().len(), 4);
    scratch.wardround("verify questions").succeeded();
    scratch.wardround("resume questions").finished();
    let run = format!("recipe small-2026-notes --data notes.csv --format notes {brief} {panel}");
    scratch.wardround(format!("{run} --out notes")).finished();
    let found = results(&scratch.path("notes"));
    assert_eq!(found["cells"].as_array().unwrap().len(), 7);
    assert_eq!(found["paired"].as_array().unwrap().len(), 6);
    let other = "recipe small-2026 --data notes.csv --format notes";
    scratch.wardround(other).refused(2, &["medmad takes questions, and notes holds notes"]);
}

#[test]
fn recipes_are_listed_and_shown() {
    use wardround::recipe::built_in::{names, text};
    let scratch = Scratch::new();
    let listed = scratch.wardround("recipe ls").succeeded().stdout.clone();
    let told = |name: &str| listed.lines().any(|line| line.split(' ').next() == Some(name));
    assert!(names().all(told), "{listed}");
    let line = listed.lines().find(|line| line.starts_with("table1 ")).unwrap();
    assert!(line.contains("medmad-paper") && line.contains(" 27  "), "{line}");
    assert!(line.ends_with("Table 1, open-source models"), "{line}");
    let shown = scratch.wardround("recipe show table1").succeeded().stdout.clone();
    assert_eq!(Some(shown.as_str()), text("table1"));
    scratch.wardround("recipe show tabel1").refused(2, &["there is no recipe tabel1", "table1, "]);
    scratch.wardround("recipe tabel1").refused(2, &["'tabel1'", "the recipes are ", "table1, "]);
    scratch.wardround("recipe").refused(2, &["--data-dir"]);
}

#[test]
fn what_no_recipe_can_be_made_of_is_refused_by_name() {
    let scratch = Scratch::new();
    let panel = scratch.panel();
    scratch.questions(1);
    scratch
        .wardround("recipe table9 --data-dir .")
        .refused(2, &["'table9'", "the recipes are ", "table1, "]);
    scratch.wardround("recipe table1").refused(2, &["--data-dir"]);
    scratch
        .wardround(format!("recipe table1 --data-dir . --panel {panel} --out out"))
        .refused(2, &["medqa/us_5opt_test.jsonl"]);
    assert!(!scratch.path("out").exists());
    scratch
        .wardround(format!("recipe table1 --data-dir . --panel {panel} --set t_min=1"))
        .refused(2, &["no setting t_min"]);
    for varied in ["table1 --set samples=1", "figure5 --set t_max=1"] {
        scratch
            .wardround(format!("recipe {varied} --data-dir . --panel {panel}"))
            .refused(2, &["methods differ in ", "their labels would be wrong"]);
    }
    scratch
        .wardround("recipe table1 --data-dir . --ids ids.txt")
        .refused(2, &["unexpected argument '--ids'"]);
    let recipe = "title = \"One\"\ntext = \"x\"\nruns = 1\ndecoding = \"grammar\"\npanel = [\"llama\"]\nanalyses = []\n\
                  [[dataset]]\nname = \"own\"\nlabel = \"Own\"\nfile = \"questions.jsonl\"\nformat = \"mcq\"\n\
                  [[method]]\nname = \"alone\"\nlabel = \"Alone\"\ngroup = \"g\"\nsystem = \"zero-shot\"\n";
    scratch.write("one.toml", recipe);
    // Where the items go, and which they are, the command says and not a file.
    let endpoint = "openai:m@http://127.0.0.1:9/v1";
    scratch.write("sends.toml", recipe.replace("\"llama\"", &format!("{endpoint:?}")));
    scratch
        .wardround("recipe sends.toml --data-dir . --out sends")
        .refused(2, &["sends.toml sends the items to openai:m@", "name it: --panel openai:m@"]);
    scratch.write("out.toml", recipe.replace("questions.jsonl", "../questions.jsonl"));
    scratch
        .wardround("recipe out.toml --data-dir . --out out")
        .refused(2, &["../questions.jsonl is not below --data-dir"]);
    let run = "recipe one.toml --data-dir . --decoding grammar --out one";
    scratch.wardround(run).succeeded();
    scratch
        .wardround(format!("{run} --seed 7"))
        .refused(2, &["one holds another run of recipes: seed is 42 against 7"]);
}

#[cfg(feature = "remote")]
#[test]
fn what_one_recipe_of_a_paper_lacks_ends_none_of_those_after_it() {
    use wardround::recipe::built_in::{of_paper, papers};
    let scratch = Scratch::new();
    // An endpoint that is not asked.
    let member = "openai:model@http://127.0.0.1:9/v1";
    for paper in papers() {
        let run = format!("recipe {paper} --data-dir . --panel {member} --out {paper}");
        for (flag, code) in [("--dry-run", 3), ("", 2)] {
            let told = scratch.wardround(format!("{run} {flag}"));
            told.refused(code, &[]);
            for recipe in of_paper(paper).unwrap() {
                assert!(told.stderr.contains(&format!("error: {recipe}: ")), "{recipe}: {told:#?}");
            }
        }
    }
}

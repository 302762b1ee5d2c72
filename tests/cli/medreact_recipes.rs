//! The recipes of MedReAct'N'MedReFlex, each to its end on an own note with tiny models.

use std::path::Path;

use wardround::experiment::link::Link;
use wardround::model::Family;

use super::exemplars;
use super::medreflex::NOTES;
use crate::binary::Scratch;
use crate::common::retrieval::write_brief_prompts;

/// Sources of the labels that the recipes name, all of the same few passages.
const SOURCES: [&str; 4] = ["medwiki", "guidelines", "textbooks", "statpearls"];

const ENCODER: &str =
    "output = \"mean\"\nnormalised = true\nquery_tokens = 64\ndocument_tokens = 64\nwidths = [8]\n";
const RERANKER: &str = "output = \"one-logit\"\nquery_tokens = 64\ndocument_tokens = 64\n";

/// The recipe on the own note: its dataset under the same name, so that published figures still find it.
fn own(recipe: &str) -> String {
    let (before, rest) = recipe.split_once("[[dataset]]").unwrap();
    let (dataset, methods) = rest.split_once("[[method]]").unwrap();
    let name = dataset.lines().find(|line| line.starts_with("name = ")).unwrap();
    format!(
        "{before}[[dataset]]\n{name}\nlabel = \"Own\"\nfile = \"notes.jsonl\"\nformat = \"notes\"\n\n[[method]]{methods}"
    )
}

/// A tiny model, a note, exemplars, prompts of a few words, and a corpus with its reranker.
fn scratch() -> Scratch {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    scratch_of(&std::fs::read_to_string(root.join("tests/common/passages.jsonl")).unwrap())
}

/// The same with these passages.
fn scratch_of(passages: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.model(Family::Qwen3);
    scratch.write("notes.jsonl", NOTES);
    scratch.write("exemplars.jsonl", exemplars::NOTES);
    write_brief_prompts(&scratch.path("prompts/medreflex"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = SOURCES.map(|label| {
        format!("[[source]]\nlabel = \"{label}\"\nformat = \"jsonl\"\npath = \"{label}.jsonl\"\nlicence = \"own\"\nredistribute = true\n")
    });
    for label in SOURCES {
        scratch.write(&format!("{label}.jsonl"), passages);
    }
    scratch.write("ward.toml", format!("name = \"ward\"\n{}", sources.concat()));
    for (folder, golden, table) in
        [("encoder", "encoders/tiny-mean", ENCODER), ("reranker", "retrieval/tiny-cross", RERANKER)]
    {
        std::fs::create_dir(scratch.path(folder)).unwrap();
        for file in ["config.json", "model.safetensors", "tokenizer.json"] {
            let from = root.join("tests/goldens").join(golden).join(file);
            std::fs::copy(from, scratch.path(&format!("{folder}/{file}"))).unwrap();
        }
        scratch.write(&format!("{folder}/encoder.toml"), table);
    }
    // Searched by half of the numbers, so that whole vectors are there to rerank by.
    let build = "corpus build ward.toml --encoder encoder --dims 16 --search-dims 8 --out corpus";
    scratch.wardround(build).succeeded();
    scratch
}

#[test]
fn cells_share_the_calls_and_the_searches_that_they_have_in_common() {
    let scratch = scratch();
    let method = |name: &str, average: &str| {
        format!(
            "[[method]]\nname = \"{name}\"\nlabel = \"{name}\"\ngroup = \"\"\nsystem = \"medreflex\"\nsettings = {{ avg_threshold = \"{average}\" }}\n"
        )
    };
    let recipe = format!(
        "title = \"Thresholds\"\ntext = \"As Figure 8.\"\nruns = 4\ndecoding = \"grammar\"\npanel = [\"qwen3\"]\nanalyses = []\n\
         [[dataset]]\nname = \"own\"\nlabel = \"Own\"\nfile = \"notes.jsonl\"\nformat = \"notes\"\n{}{}",
        method("low", "3.0"),
        method("high", "4.2")
    );
    scratch.write("thresholds.toml", recipe);
    let run = "recipe thresholds.toml --data-dir . --corpus corpus --prompts prompts --reranker reranker --set record_chars=2 --set react_turns=2 --set reviewers=1 --set reflexion_turns=2 --quiet --out thresholds";
    scratch.wardround(run).succeeded();
    let contents = |cell: &str| {
        let path = scratch.path("thresholds/cells").join(cell);
        wardround::experiment::contents::Contents::read(&path).unwrap()
    };
    let (low, high) = (contents("low-own"), contents("high-own"));
    let first = |round: u32, sample: u32| round == 0 && sample == 0;
    let mut shared = 0;
    for call in low.calls.records.iter().filter(|call| first(call.round, call.sample)) {
        let mut others = high.calls.records.iter();
        let Some(same) = others.find(|other| other.key() == call.key()) else { continue };
        // What was taken over was not made again: even its time is the first call's.
        assert_eq!((&same.text, same.elapsed_ms), (&call.text, call.elapsed_ms));
        shared += 1;
    }
    assert!(shared >= 4, "{shared}");
    for search in low.searches.records.iter().filter(|one| first(one.round, one.step)) {
        let mut others = high.searches.records.iter();
        let same = others.find(|other| other.key() == search.key()).unwrap();
        assert_eq!((&same.query, &same.shown), (&search.query, &search.shown));
    }
}

#[test]
fn figure_eight_has_every_pair_of_thresholds_whose_least_is_no_more_than_the_mean() {
    use wardround::recipe::Recipe;
    let recipe = Recipe::find("medreact-figure8").unwrap();
    let value =
        |table: &toml::Table, key: &str| table[key].as_str().unwrap().parse::<f64>().unwrap();
    let mut cells: Vec<(f64, f64)> = recipe
        .method
        .iter()
        .map(|one| (value(&one.settings, "avg_threshold"), value(&one.settings, "min_threshold")))
        .collect();
    cells.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let mut expected = Vec::new();
    for average in [3.0, 3.2, 3.5, 3.8, 4.0, 4.2] {
        expected.extend([2.0, 3.0, 4.0].map(|least| (average, least)));
    }
    expected.retain(|(average, least)| average >= least);
    assert_eq!((cells.len(), cells), (14, expected));
}

/// pandas' `df.sample(50, random_state=42)` is `RandomState(42).choice(len(df), 50, replace=False)`.
#[test]
#[ignore = "needs python3 with numpy, and WARDROUND_DATA"]
fn with_numpy_the_fifty_notes_are_those_that_pandas_samples() {
    const SAMPLE: &str = "import csv, sys, numpy\nrows = [row['Text ID'] for row in csv.DictReader(open(sys.argv[1], newline=''))]\nprint(*(rows[i] for i in numpy.random.RandomState(42).choice(len(rows), 50, replace=False)), sep='\\n')";
    let data = std::path::PathBuf::from(std::env::var_os("WARDROUND_DATA").unwrap());
    let notes = data.join("medec/MEDEC-MS-ValidationSet-with-GroundTruth-and-ErrorType.csv");
    let drawn =
        std::process::Command::new("python3").args(["-c", SAMPLE]).arg(notes).output().unwrap();
    assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
    let list = include_str!("../../recipes/ids/medec-val-50.txt");
    let ids: Vec<&str> = list.lines().filter(|line| !line.starts_with('#')).collect();
    let drawn = String::from_utf8(drawn.stdout).unwrap();
    assert_eq!(ids, drawn.lines().collect::<Vec<_>>());
}

/// The files of the paper's recipes, each with its text.
fn recipes() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("medreact-"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 11);
    let read = |name: String| {
        let text = std::fs::read_to_string(folder.join(&name)).unwrap();
        (name, text)
    };
    names.into_iter().map(read).collect()
}

/// What a recipe is given to search and to show.
fn given(name: &str) -> String {
    let corpus = match name {
        "medreact-encoders.toml" => "corpus,corpus,corpus",
        _ => "corpus",
    };
    let exemplars = match name {
        "medreact-table2.toml" => "--exemplars exemplars.jsonl --exemplars-format notes",
        _ => "",
    };
    format!("--corpus {corpus} --reranker reranker {exemplars}")
}

/// The tiny model takes as many tokens as this.
fn takes(scratch: &Scratch, tokens: usize) {
    let path = scratch.path("qwen3/config.json");
    let mut config: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    config["max_position_embeddings"] = tokens.into();
    std::fs::write(&path, config.to_string()).unwrap();
}

/// A note as long as the longest of those under test, and a passage that fills each chunk of a corpus.
fn scratch_of_the_longest() -> Scratch {
    let passages: String = (0..4)
        .map(|id| {
            let text = "An attack of asthma is treated with salbutamol. ".repeat(40);
            format!(
                "{}\n",
                serde_json::json!({"id": format!("p{id}"), "title": "Asthma", "text": text})
            )
        })
        .collect();
    let scratch = scratch_of(&passages);
    let mut note = "She was seen again on the ward and felt well. ".repeat(33);
    note += "Propranolol was given.";
    assert_eq!(note.len(), 1540);
    scratch.write("notes.jsonl", serde_json::json!({"id": "long", "text": note}).to_string());
    scratch
}

/// With the prompts that the recipes run with, and as many tokens as the default panel's models take by their published files.
#[test]
fn the_longest_prompt_of_every_recipe_fits_into_its_default_panel() {
    let scratch = scratch_of_the_longest();
    for (name, recipe) in recipes() {
        let table: toml::Table = recipe.parse().unwrap();
        takes(
            &scratch,
            match table["panel"][0].as_str().unwrap() {
                "gemma3-4b" => 131_072,
                "qwen3-4b" => 40_960,
                other => panic!("{name}: what {other} takes"),
            },
        );
        scratch.write(&name, own(&recipe));
        let given = given(&name);
        let run = format!("recipe {name} --data-dir . --panel qwen3 {given} --dry-run");
        let told = scratch.wardround(&run);
        assert!(told.succeeded().stdout.contains("calls      at most "), "{name}: {told:#?}");
        // Where too little is given, it says before anything is loaded how much would do for the first cell that has none. One recipe of
        // one corpus and the one of three show it: each takes as many dry runs as it has lengths.
        if !["medreact-table2.toml", "medreact-encoders.toml"].contains(&name.as_str()) {
            continue;
        }
        let with = |context: usize| scratch.wardround(format!("{run} --context {context}"));
        let mut context = 4096;
        loop {
            let outcome = with(context);
            if outcome.code == Some(0) {
                break;
            }
            let has = format!("has a context of {context} ");
            outcome.refused(2, &["the longest prompt of long can come to ", &has]);
            let needed = outcome.stderr.split("more room: --context ").nth(1).unwrap();
            let needed: usize = needed.split(',').next().unwrap().parse().unwrap();
            assert!(needed > context, "{name}: {outcome:#?}");
            context = needed;
        }
        with(context - 1).refused(2, &[&format!("can come to {context} tokens")]);
    }
}

#[test]
fn the_context_of_table_two_stands_in_the_plans_of_its_cells() {
    let scratch = scratch();
    takes(&scratch, 131_072);
    let (name, recipe) =
        recipes().into_iter().find(|(name, _)| name == "medreact-table2.toml").unwrap();
    scratch.write(&name, own(&recipe));
    let given = given(&name);
    let run = format!(
        "recipe {name} --data-dir . --panel qwen3 {given} --prompts prompts --runs 1 --limit 1 --set record_chars=2 --set max_tokens=8 --set react_turns=1 --set reviewers=1 --max-batch 1 --quiet --out out"
    );
    scratch.wardround(&run).finished();
    let cells: Vec<_> = std::fs::read_dir(scratch.path("out/cells")).unwrap().collect();
    assert_eq!(cells.len(), 3);
    for cell in cells {
        let plan = std::fs::read_to_string(cell.unwrap().path().join("plan.toml")).unwrap();
        let plan: toml::Table = plan.parse().unwrap();
        for member in plan["panel"].as_array().unwrap() {
            assert_eq!(member["context"].as_integer(), Some(65_536), "{member}");
        }
    }
}

#[test]
fn every_recipe_ends_with_tiny_models() {
    let scratch = scratch();
    for (name, recipe) in recipes() {
        scratch.write(&name, own(&recipe));
        let given = given(&name);
        let out = name.trim_end_matches(".toml");
        let run = format!(
            "recipe {name} --data-dir . --panel qwen3 {given} --prompts prompts --runs 1 --limit 1 --set record_chars=2 --set max_tokens=8 --set react_turns=1 --set reviewers=1 --quiet --out {out}"
        );
        scratch.wardround(&run).finished();
        let table = scratch.wardround(format!("report {out} --format md"));
        let table = &table.succeeded().stdout;
        assert!(table.contains("Steps, turns and time"), "{name}: {table}");
        assert!(table.contains("share of chunks"), "{name}: {table}");
        let page = std::fs::read_to_string(scratch.path(&format!("{out}/report.html"))).unwrap();
        assert!(page.contains("Steps, turns and time"), "{name}");
        if name == "medreact-table2.toml" {
            assert!(table.contains("0.5990"), "{table}");
        }
    }
}

//! `report`: pages written again from disk, and the tables that `--format` prints.

use serde_json::Value;

use crate::binary::Scratch;

const RECIPE: &str = r#"
title = "Two <b>methods</b>"
text = "Alone and together."
runs = 2
decoding = "grammar"
panel = ["gemma3", "llama", "qwen3"]
analyses = ["netgain", "paired-best", "correlated-errors", "cases"]
readings = ["The paper is silent & so are we."]
[[dataset]]
name = "own"
label = "Own"
file = "questions.jsonl"
format = "mcq"
[[method]]
name = "votes"
label = "Votes"
group = "g"
system = "no-debate"
settings = { record_chars = 8, samples = 1 }
[[method]]
name = "medmad"
label = "MED-MAD"
group = "g"
system = "medmad"
settings = { t_max = 1, record_chars = 8 }
paper.own = [0.5, 0.1]
"#;

/// A scratch folder with a finished recipe in `out`.
fn finished() -> Scratch {
    let scratch = Scratch::new();
    scratch.questions(3);
    scratch.write("two.toml", RECIPE);
    let panel = scratch.panel();
    let run = "recipe two.toml --data-dir . --decoding grammar --out out";
    scratch.wardround(format!("{run} --panel {panel}")).succeeded();
    scratch
}

#[test]
fn a_recipes_page_holds_its_figures_and_every_item_and_asks_for_nothing() {
    let scratch = finished();
    let path = scratch.path("out/report.html");
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.contains("<h1>Two &lt;b&gt;methods&lt;/b&gt;</h1>"));
    assert!(page.contains("The paper is silent &amp; so are we."));
    assert!(page.contains("every answer on this page is noise"));
    for request in ["http://", "https://", "src=", "url(", "@import", "<link", "<img", "fetch("] {
        assert!(!page.contains(request), "{request}");
    }
    // Under a share.
    assert!(page.contains("<td style=\"--from:0.0%;--to:"));
    // Three items in two runs, each with the way to its case.
    for cell in ["votes-own", "medmad-own"] {
        let cases = format!("href=\"cells/{cell}/report.html#");
        assert_eq!(page.matches(&cases).count(), 6);
        assert!(scratch.path(&format!("out/cells/{cell}/report.html")).is_file());
    }
    std::fs::remove_file(&path).unwrap();
    let told = scratch.wardround("report out");
    assert_eq!(told.succeeded().stdout, "out/report.html\n");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), page);
}

#[test]
fn tables_say_in_every_form_what_the_results_say() {
    let scratch = finished();
    let results = std::fs::read(scratch.path("out/results.json")).unwrap();
    let results: Value = serde_json::from_slice(&results).unwrap();
    let mean = results["cells"][1]["mean"].as_f64().unwrap();

    let json = scratch.wardround("report out --format json");
    let json: Value = serde_json::from_str(&json.succeeded().stdout).unwrap();
    let tables = json["tables"].as_array().unwrap();
    let names: Vec<&str> = tables.iter().map(|table| table["name"].as_str().unwrap()).collect();
    let all = ["accuracy", "netgain", "paired", "collapse", "cases", "replies", "cost"];
    assert_eq!(names, all);
    assert_eq!(tables[0]["rows"][1]["Own: ours"]["mean"], mean);

    let csv = scratch.wardround("report out --format csv --table accuracy");
    let mut reader = csv::Reader::from_reader(csv.succeeded().stdout.as_bytes());
    let row = reader.records().nth(1).unwrap().unwrap();
    assert_eq!((&row[0], &row[1]), ("g", "MED-MAD"));
    assert_eq!(row[2].parse::<f64>().unwrap(), mean);

    let markdown = scratch.wardround("report out --format md");
    let markdown = &markdown.succeeded().stdout;
    assert!(markdown.contains(&format!("{mean:.4} ± ")), "{markdown}");
    // What holds of all tables stands once.
    assert_eq!(markdown.matches("decoding: text under a grammar; limits: ").count(), 1);

    let of_run = scratch.wardround("report out/cells/medmad-own --format csv");
    assert!(of_run.succeeded().stdout.starts_with("# accuracy\nrun,accuracy,"));
    scratch
        .wardround("report out --format csv --table netgains")
        .refused(2, &["out has no table netgains", "hint: it has accuracy, netgain, "]);
}

#[test]
fn a_recipe_that_was_stopped_is_verified_so_far_and_reported_once_it_has_results() {
    let scratch = finished();
    let cell = |name: &str| scratch.path(&format!("out/cells/{name}-own"));
    let verify = || scratch.wardround("verify out");
    assert!(verify().succeeded().stdout.ends_with("\nintact\n"));
    // A figure that the runs do not give, and a method under another's name.
    for (file, from, to, field) in [
        ("results.json", "\"mean\": ", "\"mean\": 1", "cells[0].mean is 1"),
        ("recipe.toml", "\"MED-MAD\"", "\"Another\"", "recipe_digest is "),
    ] {
        let path = scratch.path(&format!("out/{file}"));
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let told = verify();
        told.refused(3, &["not as the recipe left it"]);
        assert!(told.stdout.contains(&format!("wrong  results.json: {field}")), "{told:#?}");
        std::fs::write(&path, text).unwrap();
    }
    std::fs::rename(cell("medmad"), scratch.path("aside")).unwrap();
    // The recipe's results tell of a cell that is not there.
    verify().refused(3, &["out: 1 place not as the recipe left it"]);
    let told = scratch.wardround("report out --format md").succeeded().stderr.clone();
    assert!(told.contains("out/cells/medmad-own is gone"), "{told}");
    std::fs::remove_file(scratch.path("out/results.json")).unwrap();
    let told = verify().succeeded().stdout.clone();
    assert!(told.contains("intact cells/votes-own, head "), "{told}");
    assert!(told.ends_with("not finished cells/medmad-own\nintact so far; 1 cell not finished\n"));

    for format in ["", "--format md"] {
        scratch
            .wardround(format!("report out {format}"))
            .refused(2, &["recipe two.toml was stopped, so there are no results", "resume out"]);
    }

    // A run that nobody asked for, and one that was changed.
    std::fs::rename(scratch.path("aside"), cell("another")).unwrap();
    let told = verify();
    told.refused(3, &["1 place not as"]);
    assert!(told.stdout.contains("out/cells/another-own is no cell of the recipe"), "{told:#?}");
    std::fs::rename(cell("another"), cell("medmad")).unwrap();
    let calls = cell("medmad").join("calls.jsonl");
    let text = std::fs::read_to_string(&calls).unwrap();
    std::fs::write(&calls, text.replacen("\"run\":1", "\"run\":3", 1)).unwrap();
    let told = verify();
    told.refused(3, &["1 place not as"]);
    assert!(told.stdout.contains("calls.jsonl, line "), "{told:#?}");
}

/// A model that is greedy gives the same replies in every run: there is no ± beside its figures, wherever they are.
#[test]
fn runs_that_do_not_differ_have_no_plus_and_minus() {
    let scratch = Scratch::new();
    scratch.questions(3);
    scratch.write(
        "two.toml",
        RECIPE.replace("runs = 2", "runs = 2\nsampling = { temperature = 0.0 }"),
    );
    let panel = scratch.panel();
    let run = "recipe two.toml --data-dir . --decoding grammar --out out";
    let told = scratch.wardround(format!("{run} --panel {panel}")).succeeded().stdout.clone();
    let page = |path: &str| std::fs::read_to_string(scratch.path(path)).unwrap();
    let compared = scratch.wardround("compare out/cells/votes-own out/cells/medmad-own");
    let texts = [
        told,
        page("out/report.html"),
        page("out/cells/medmad-own/report.html"),
        scratch.wardround("report out/cells/medmad-own --format md").succeeded().stdout.clone(),
        compared.succeeded().stdout.clone(),
    ];
    for text in texts {
        assert!(text.contains("the same in all"), "{text}");
        // But for a paper's own, and the words of a note.
        let left = text.replace("0.5000 ± 0.1000", "").replace("ean ± s", "");
        assert!(!left.contains('±'), "{left}");
    }
}

#[test]
fn tables_of_an_unfinished_run_say_so() {
    let scratch = Scratch::new();
    scratch.questions(2);
    scratch.run_one("out", "").succeeded();
    let path = scratch.path("out/items.jsonl");
    let items = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, items.split_inclusive('\n').next().unwrap()).unwrap();
    std::fs::remove_file(scratch.path("out/results.json")).unwrap();
    let note = "Not finished: 1 of 2 planned cases";
    let outcome = scratch.wardround("report out --format md");
    assert!(outcome.succeeded().stdout.contains(note), "{outcome:?}");
    let outcome = scratch.wardround("report out --format csv --table accuracy");
    assert!(outcome.succeeded().stderr.contains(note), "{outcome:?}");
}

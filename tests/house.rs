//! The house keeps its plan: which folder of `src/` and of `crates/engine/` may use which, and how long a file may be.

mod house {
    mod routes;
    pub mod source;
    mod units;
}

use std::collections::{BTreeMap, BTreeSet};

use house::source::production;

/// Each top folder (or file) of `src/`, then of `crates/engine/src/`, and what its production code may use, from the top floor down to
/// the leaves. An entry may name only folders that stand below it in this list, so there is no circle.
const ARROWS: &[(&str, &str)] = &[
    (
        "cli",
        "serve bundle bench report selftest recipe analysis audit sandbox experiment systems panel calls retrieval corpus engine model ops encoder synth hub data prompts chat tokenizer text diagnosis digest record console variable outside",
    ),
    (
        "serve",
        "analysis audit experiment panel encoder engine ops data chat tokenizer text diagnosis digest record console outside",
    ),
    ("bundle", "diagnosis digest console outside"),
    ("report", "recipe analysis experiment systems data text diagnosis record"),
    (
        "recipe",
        "analysis experiment systems panel retrieval encoder hub data diagnosis digest record outside",
    ),
    ("selftest", "experiment panel engine model ops hub diagnosis digest record"),
    ("bench", "analysis experiment panel model ops random"),
    (
        "analysis",
        "experiment systems panel retrieval encoder scorers data prompts text random diagnosis digest record outside",
    ),
    ("audit", "experiment diagnosis digest sandbox console outside"),
    (
        "experiment",
        "systems panel calls retrieval engine model ops hub data prompts diagnosis digest record sandbox console fault appended outside",
    ),
    ("systems", "panel retrieval data prompts text random diagnosis digest record outside"),
    (
        "panel",
        "calls retrieval local_model engine model ops synth hub chat generation tokenizer text random diagnosis digest record console fault outside",
    ),
    ("calls", "diagnosis digest record console outside"),
    ("retrieval", "corpus encoder model ops diagnosis digest record"),
    ("corpus", "encoder ops hub data text diagnosis digest outside"),
    ("scorers", "encoder tokenizer text outside"),
    (
        "hub",
        "data encoder model checkpoint chat tokenizer text diagnosis digest console fault variable outside",
    ),
    ("data", "text random digest record fault outside"),
    // Of both crates: the upper half's knows our prompts.
    ("synth", "prompts checkpoint model tokenizer random fault outside"),
    ("prompts", "digest record fault outside"),
    ("text", "record console"),
    ("record", "engine"),
    ("sandbox", "diagnosis"),
    ("console", ""),
    ("appended", ""),
    // The engine's crate, which knows nothing of what stands above.
    ("local_model", "engine generation chat checkpoint model ops tokenizer diagnosis"),
    ("generation", "engine chat checkpoint model tokenizer outside"),
    ("encoder", "model ops tokenizer outside ceiling fault digest"),
    ("engine", "model ops tokenizer ceiling fault"),
    ("model", "ops outside fault"),
    ("chat", "tokenizer outside ceiling fault digest"),
    ("checkpoint", "outside fault"),
    ("tokenizer", "outside ceiling fault"),
    ("digest", "outside"),
    // 60 more: files put in place whole, locks, what is not there, names in a folder: each was written in three to six places.
    ("outside", ""),
    ("ceiling", "fault"),
    ("fault", "diagnosis"),
    ("random", ""),
    ("ops", ""),
    ("candle", ""),
    ("diagnosis", ""),
    ("variable", ""),
];

/// Longer files are two nouns.
const LONGEST_FILE: usize = 400;

/// The most production lines of each folder (`tools/lines.py`). **They only fall**: a folder that shrinks by more than [`SLACK`] lowers
/// its number, and a number that is raised has a sentence beside it that says what went instead.
const CAPS: &[(&str, usize)] = &[
    // 15 more: where an option's text may stand, in a short reply and behind an announcement; what a prompt's own words in a field are not.
    // Of `serve` 580 lines went.
    // 10 more: a prompt of one's own that shows its item to no model is refused.
    // 50 more: of two jobs of one item, the later waits (`in_flight.rs`).
    ("systems", 9462),
    // 120 more: each number of rows is a function of its own, which takes half of the time to compile.
    // 55 more: what a position does to queries and keys is a type, with queries that grow.
    // 480 more: the delta rule (`delta_rule.rs`) and its states.
    // 175 more: Gemma 4: queries without keys, gates by columns, capped logits, steps of the rows that give logits.
    // 150 more: Gemma 4 on GPUs of NVIDIA: heads turned (`cuda/rotary.rs`), what is done number by number (`cuda/elements.rs`).
    // 160 more: the delta rule on CUDA (`delta_rule.rs`), whose arithmetic is in `kernels/`.
    // 10 more: rows that decode beside prompts.
    // 140 more: prompts' attention by `wgmma`, compared when a GPU is opened. The clusters of many rows went.
    ("ops", 12802),
    // 100 more: one type that prints ±, and the cells of a recipe that was stopped. What `report` says of them went below.
    // 30 more: the digest of equal runs; which prompts are the paper's only in part.
    // 15 more: a warning of each kind, what only one of two systems has, and no paper where there is none.
    // 35 more: CSV has a figure a field; texts of several figures say what those are called.
    // 10 more: a table without the columns that a terminal tells in a line.
    // 20 more: replies that ran out of tokens, and how replies were read as a table of its own.
    // 25 more: what difference so many items can show, before any method has answered.
    ("analysis", 5297),
    // What stood in `analysis` and `experiment`, 3,000 lines.
    // 25 more: a file of one's own in place of a recipe's datasets, and datasets of which a sample runs.
    // 27 more: a recipe's results are computed again by `verify`. Of the engine 60 lines went, which timed requests for nobody.
    ("recipe", 2387),
    // 2,145 less: what no client of the docs sends, replays of an audit trail, what is loaded in another type than what is served, and lines of
    // a trail that cases had beside their request.
    ("serve", 4021),
    // 180 more, experiment 130, systems 30, outside 20: recipes are listed, shown and begun, and each mistake in one has its line and a hint.
    // 130 more: each verb says what it reads and writes, so that all are sealed, where nine were not. The second files of demo and dry run went.
    // 30 more: `data verify` says what is odd in questions, and no run does.
    // 325 more: tables of a terminal (`terminal.rs`), where each verb had its Markdown; what is left of all cells, by calls; a line of health a run.
    // 45 more: `compare --out`.
    // 25 more: `recipe --data`, and what its items can show.
    // 13 more: `verify` says where a recipe's results are others, `report` what is gone.
    ("cli", 4991),
    // 100 more: the chain, its lock and its writer are the audit trail's too, whose own, 1,100 lines, went.
    // 120 more: the flags of a spec, 250 lines, which stood in `cli`.
    // 2 more: whose runs are not repeated.
    // 8 more, and 25 of record: types of files say their JSON Schema in tests.
    // 10 more: the calls of an item and of what comes after a run, for the time that is left.
    // 11 more: the engines of one machine are told of each other, so that they take turns; 100 less: what one could say with another.
    // 115 more: runs that overlap at their ends (`queued.rs`); what `recipe`, `calls` and `cli` did for one run after another, 50, went there.
    // 2 more: a hint to resume what can be resumed.
    ("experiment", 4022),
    // 790 less: charts, which drew once more what a table beside them says.
    // 115 more: the page of runs side by side (`compare.rs`, `beside.rs`), and a run's verdict in words.
    ("report", 2315),
    ("bundle", 280),
    // 10 more: a file of a dataset that is not there is told with what brings it.
    // 12 more: what is not read of GGUF files is refused.
    ("hub", 2416),
    // 140 more: words of a grammar in the tokenizer's own spelling (`spelling.rs`), which no rule had seen to.
    // 100 more: callers take turns (`rotation.rs`), for completions, encoders and cases alike.
    // 185 more: slots of states and their copies (`snapshots.rs`), where prompts part and end.
    // 100 more: engines of one machine take turns (`turns.rs`). Of `systems` 290 lines went, of `cli` 130, of `experiment` and `record` 200.
    ("engine", 3328),
    // 10 more: states that are kept are planned beside keys and values.
    ("panel", 2195),
    // 405 less: a malformed row is one error, which shows no value; what is odd and read all the same is told by `data verify`.
    // 12 more: sentences that are not those of their text are refused, folders beside notes told.
    ("data", 2178),
    ("corpus", 2146),
    ("audit", 815),
    // 80 more: logits without an engine, 40 of which stood in `cli`.
    // 355 more: SmolLM3 and Ministral 3, a file each; YaRN, layers without a rope.
    // 545 more: Qwen 3.5: layers of two kinds, a file each, their sizes as published, what both leave for later rows.
    // 700 more: Gemma 4: heads of two widths, shared keys, inputs of layers (`inputs.rs`, `layer.rs`, `published/parts.rs`).
    ("model", 3635),
    ("encoder", 1330),
    ("selftest", 350),
    // 105 more: how quoted passages are logged, which stood in the engine's chat.
    // 25 more: types of files say their JSON Schema in tests.
    ("record", 1095),
    ("scorers", 890),
    ("bench", 480),
    // 30 more: candle is a device by name, on CPUs and GPUs of NVIDIA too.
    // 71 more: the delta rule on the host, heads turned in part.
    // 105 more: what Gemma 4 takes, which `model` names.
    ("candle", 765),
    // 20 more: it keeps its own options and models; what did in `experiment`, 30 lines, went.
    ("retrieval", 540),
    // 10 more: what cells of a recipe share, which stood in `experiment` and `panel`.
    ("calls", 210),
    // 10 more: what held is known to all, where it was handed from verb to verb.
    ("sandbox", 265),
    ("text", 655),
    // 10 more, and 10 of generation: what ends a turn is read off all three places that say it, not off the first.
    ("chat", 485),
    // 10 more: what a file adds around a text is found or refused. The encoders' own way around its padding went.
    // 15 more: Gemma 4's thinking in the tags of the other families.
    ("tokenizer", 690),
    // 10 more: four families more.
    ("synth", 380),
    ("ceiling", 270),
    ("prompts", 246),
    ("checkpoint", 165),
    ("generation", 190),
    // 5 more: a lock is asked for several times. Of the engine 60 lines went.
    ("outside", 220),
    ("local_model", 130),
    ("digest", 100),
    // 5 more: what is drawn for a terminal.
    ("console", 95),
    ("fault", 70),
    ("random", 60),
    ("appended", 50),
];

/// So much may a folder lie below its cap before the cap follows.
const SLACK: usize = 40;

/// All that stands at the top of the checkout: what somebody left there by mistake is none of it.
const TOP_LEVEL: &str = ".ci .gitignore CHANGELOG.md CONTRIBUTING.md Cargo.lock Cargo.toml LICENSE-APACHE LICENSE-MIT README.md SECURITY.md \
    benches build.rs clippy.toml corpora crates datasets deny.toml deploy docs examples kernels models prompts python recipes rustfmt.toml src \
    systems tests tools";

#[test]
fn no_folder_grows() {
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    let roots = ["lib", "main"];
    for file in production().iter().filter(|file| !roots.contains(&&*file.folder)) {
        *lines.entry(&file.folder).or_default() += file.production_lines;
    }
    let caps: BTreeMap<&str, usize> = CAPS.iter().copied().collect();
    let mut wrong = Vec::new();
    for (folder, lines) in &lines {
        match caps.get(folder) {
            None => wrong.push(format!("{folder} has {lines} lines and no cap")),
            Some(cap) if lines > cap => {
                wrong.push(format!("{folder}: {lines} lines, more than {cap}"))
            }
            Some(cap) if lines + SLACK < *cap => {
                wrong.push(format!("{folder}: {lines} lines; lower its cap of {cap}"));
            }
            Some(_) => {}
        }
    }
    wrong.extend(
        caps.keys()
            .filter(|folder| !lines.contains_key(*folder))
            .map(|folder| format!("{folder} is gone")),
    );
    assert!(wrong.is_empty(), "CAPS of tests/house.rs:\n{}", wrong.join("\n"));
}

#[test]
fn nothing_strays_at_the_top() {
    let listed = std::process::Command::new("git").arg("ls-files").output();
    let files = String::from_utf8(listed.map(|listed| listed.stdout).unwrap_or_default()).unwrap();
    let top: BTreeSet<&str> = files.lines().filter_map(|path| path.split('/').next()).collect();
    let known: BTreeSet<&str> = TOP_LEVEL.split_whitespace().collect();
    // Without git, or in a tarball, there is no list.
    assert!(
        top.is_empty() || top == known,
        "{:?}",
        top.symmetric_difference(&known).collect::<Vec<_>>()
    );
}

#[test]
fn each_folder_uses_only_what_stands_below_it() {
    let allowed: BTreeSet<(&str, &str)> = ARROWS
        .iter()
        .flat_map(|(from, to)| to.split_whitespace().map(move |to| (*from, to)))
        .collect();
    let mut strangers = Vec::new();
    for file in production() {
        for path in &file.paths {
            let arrow = (file.folder.as_str(), path.folder.as_str());
            if arrow.0 != arrow.1 && !allowed.contains(&arrow) {
                strangers
                    .push(format!("{}:{}: {} uses {}", file.name, path.line, arrow.0, arrow.1));
            }
        }
    }
    assert!(
        strangers.is_empty(),
        "arrows that tests/house.rs does not allow:\n{}",
        strangers.join("\n")
    );
}

#[test]
fn every_arrow_is_used() {
    let used: BTreeSet<(&str, &str)> = production()
        .iter()
        .flat_map(|file| file.paths.iter().map(|path| (file.folder.as_str(), path.folder.as_str())))
        .collect();
    let unused = ARROWS.iter().flat_map(|(from, to)| {
        to.split_whitespace().map(move |to| (*from, to)).filter(|arrow| !used.contains(arrow))
    });
    let unused: Vec<String> = unused.map(|(from, to)| format!("{from} uses no {to}")).collect();
    assert!(unused.is_empty(), "take these off ARROWS:\n{}", unused.join("\n"));
}

#[test]
fn no_arrow_points_up() {
    let floors: BTreeMap<&str, usize> =
        ARROWS.iter().enumerate().map(|(floor, (name, _))| (*name, floor)).collect();
    for (from, to) in ARROWS {
        for to in to.split_whitespace() {
            let floor = floors.get(to);
            let is_below = floor.is_some_and(|floor| *floor > floors[from]);
            assert!(is_below, "{to} does not stand below {from}");
        }
    }
}

#[test]
fn every_folder_has_its_floor() {
    let floors: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    for file in production() {
        let folder = file.folder.as_str();
        let is_root = ["lib", "main"].contains(&folder);
        assert!(is_root || floors.contains(folder), "{}: {folder} is not in ARROWS", file.name);
    }
}

#[test]
fn what_searches_does_not_know_what_builds() {
    for entry in std::fs::read_dir("src/retrieval").unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let is_test = path.ends_with("tests.rs");
        assert!(is_test || !text.contains("corpus::build"), "{} uses the builder", path.display());
    }
}

/// What the platform's library of mathematics computes: its last bits differ from system to system.
const OF_THE_PLATFORM: &str = r"\.(sin|cos|tan|sin_cos|asin|acos|atan|atan2|sinh|cosh|exp|exp2|exp_m1|ln|ln_1p|log|log2|log10|powf|cbrt|hypot)\(";

#[test]
fn mathematics_comes_from_libm() {
    let of_the_platform = regex::Regex::new(OF_THE_PLATFORM).unwrap();
    let mut found = Vec::new();
    for file in production() {
        for (number, line) in file.code.lines().enumerate() {
            // Tensors of candle have methods of these names, which fail.
            if of_the_platform.is_match(line) && !line.contains(")?") {
                found.push(format!("{}:{}: {}", file.name, number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "take libm's:\n{}", found.join("\n"));
}

/// A step that waits for a job of its pool may wait for ever: see `Team::run_leader`.
#[test]
fn a_step_on_the_cpu_waits_for_no_job_of_the_pool() {
    let job = regex::Regex::new(
        r"\bpar_|into_par_iter|rayon::(broadcast|join|scope|spawn|yield)|pool\.(broadcast|join|scope|spawn)",
    )
    .unwrap();
    let in_steps = [
        "crates/engine/src/engine/",
        "crates/engine/src/model/",
        "crates/engine/src/encoder/",
        "crates/ops/src/cpu/",
        "crates/ops/src/shared/",
    ];
    // Weights are packed before there is a step, the bandwidth is measured in none.
    let outside = ["crates/ops/src/cpu/matrix.rs", "crates/ops/src/cpu/bandwidth.rs"];
    let mut found = Vec::new();
    for file in production() {
        if outside.contains(&&*file.name)
            || !in_steps.iter().any(|name| file.name.starts_with(name))
        {
            continue;
        }
        let lines = file.code.lines().enumerate().filter(|(_, line)| job.is_match(line));
        found.extend(lines.map(|(number, line)| format!("{}:{}: {line}", file.name, number + 1)));
    }
    assert!(found.is_empty(), "take `Backend::map_each`:\n{}", found.join("\n"));
}

/// What two backends need stands below both.
#[test]
fn no_backend_knows_another_and_the_seam_none() {
    let of_backends = [("shared", r"\b(cpu|cuda)::"), ("cpu", r"\bcuda::"), ("cuda", r"\bcpu::")];
    let mut found = Vec::new();
    for (folder, others) in of_backends {
        let others = regex::Regex::new(others).unwrap();
        let start = format!("crates/ops/src/{folder}/");
        for file in production().iter().filter(|file| file.name.starts_with(&start)) {
            let lines = file.code.lines().enumerate().filter(|(_, line)| others.is_match(line));
            found.extend(
                lines.map(|(number, line)| format!("{}:{}: {line}", file.name, number + 1)),
            );
        }
    }
    assert!(found.is_empty(), "move it to crates/ops/src/shared:\n{}", found.join("\n"));
}

/// Where texts of clients are read, and the list there of what reads them, which are timed.
const READERS: [(&str, &str); 8] = [
    ("src/text/", "src/text/linear.rs"),
    ("src/data/", "src/data/linear.rs"),
    ("src/corpus/formats/", "src/corpus/formats/linear.rs"),
    ("src/corpus/split/", "src/corpus/formats/linear.rs"),
    ("src/systems/reading/", "src/systems/reading/linear.rs"),
    ("crates/engine/src/tokenizer", "crates/engine/src/tokenizer/linear.rs"),
    ("src/serve/request/", "src/serve/linear.rs"),
    ("src/serve/case/question.rs", "src/serve/linear.rs"),
];

/// What takes no text of a client but names of fields, keys of records and tokens, which the program or a model's file has.
const OF_NO_CLIENT: &str = "pattern::new error::of_field error::has_extension error::refused error::repeats medec::dataset row_reader::table row::wrong row::refuse_others \
    row::get row::id row::require row::word row::text row::optional_text row::texts row::object row::optional_id row::options row::letter \
    item::counted source::at_record source::plain_rows reply::get reply::prose reply::letter tokenizer::id style::bytes_of_added style::bytes \
    fields::unknown fields::agreed fields::within record::plain_key record::is_reasons folder::records";

#[test]
fn whatever_reads_a_text_is_on_a_list_of_what_is_timed() {
    let function = regex::Regex::new(r"pub(?:\([a-z]+\))? (?:const |async )?fn (\w+)").unwrap();
    let text = regex::Regex::new(r"&(?:'\w+ )?(?:str\b|\[u8\]|\[char\])|\bBytes\b").unwrap();
    let mut found = Vec::new();
    for file in production() {
        let reader = READERS.iter().find(|(folder, _)| file.name.starts_with(folder));
        let Some((_, list)) = reader else { continue };
        let list = std::fs::read_to_string(list).unwrap();
        let path = std::path::Path::new(&file.name);
        let stem = match path.file_stem().unwrap().to_str().unwrap() {
            "mod" => path.parent().unwrap().file_name().unwrap().to_str().unwrap(),
            stem => stem,
        };
        for at in function.captures_iter(&file.code) {
            let after = &file.code[at.get(0).unwrap().end()..];
            let parameters = &after[..after.find(['{', ';']).unwrap_or(after.len())];
            let parameters = parameters.split("->").next().unwrap();
            let name = format!("{stem}::{}", &at[1]);
            let is_listed = [format!("\"{name}\""), format!("\"{name},")];
            let is_known = OF_NO_CLIENT.split_whitespace().any(|known| known == name)
                || is_listed.iter().any(|name| list.contains(name));
            if text.is_match(parameters) && !is_known {
                found.push(format!("{}: {name}", file.name));
            }
        }
    }
    assert!(
        found.is_empty(),
        "put these on the list of their folder's linear.rs:\n{}",
        found.join("\n")
    );
}

/// A handler that reads a body by other means has no limit, takes nothing from the budget, and parses beside the connections. What
/// is held of answers is no body of a request.
#[test]
fn bodies_are_read_in_one_place() {
    let others = regex::Regex::new(
        r"into_body\(|into_parts\(|\bto_bytes\(|\bForm\(|Json\(\w+\): Json|RawForm|Multipart|spawn_blocking",
    )
    .unwrap();
    let mut found = Vec::new();
    for file in production() {
        let is_meant = file.name == "src/serve/body.rs";
        if !file.name.starts_with("src/serve/") || is_meant {
            continue;
        }
        let lines = file.code.lines().enumerate().filter(|(_, line)| others.is_match(line));
        found.extend(lines.map(|(number, line)| format!("{}:{}: {line}", file.name, number + 1)));
    }
    assert!(found.is_empty(), "take `body::Sent`:\n{}", found.join("\n"));
}

/// Who asks is decided in the guard alone, by the keys of a file.
#[test]
fn callers_are_made_by_the_guard() {
    let made = regex::Regex::new(r"\bKey \{|insert\(caller\)").unwrap();
    let mut found = Vec::new();
    for file in production() {
        let is_own = ["src/serve/guard.rs", "src/serve/keys.rs"].contains(&file.name.as_str());
        if !file.name.starts_with("src/serve/") || is_own {
            continue;
        }
        let lines = file.code.lines().enumerate().filter(|(_, line)| made.is_match(line));
        found.extend(lines.map(|(number, line)| format!("{}:{}: {line}", file.name, number + 1)));
    }
    assert!(found.is_empty(), "take `guard::Caller`:\n{}", found.join("\n"));
}

#[test]
fn no_file_is_longer_than_it_should_be() {
    let long: Vec<String> = house::source::all()
        .iter()
        .filter(|file| file.lines > LONGEST_FILE)
        .map(|file| format!("{}: {} lines", file.name, file.lines))
        .collect();
    assert!(long.is_empty(), "more than {LONGEST_FILE} lines:\n{}", long.join("\n"));
}

/// What the arrows are read with sees paths in code alone.
#[test]
fn paths_are_read_from_code_and_not_from_comments_or_tests() {
    let text = r##"//! crate::doc
use crate::one::{Two, Three};
use crate::{
    four::Five,
    six::{Seven, crate_like},
    eight,
};
/* crate::block /* crate::nested */ */
fn f<'a>(x: &'a str) -> char {
    let _ = ("crate::text", r#"crate::"raw"#, '"', '\'', b'"');
    crate::nine::f(x) // crate::end
}
#[cfg(test)]
use crate::only_for_tests;
#[cfg(test)]
pub(crate) mod tests {
    use crate::ten;
    fn g() { { crate::eleven() } }
}
impl crate::twelve::Trait for () {}
"##;
    let paths: Vec<(usize, String)> =
        house::source::paths(text).into_iter().map(|path| (path.line, path.folder)).collect();
    let expected =
        [(2, "one"), (4, "four"), (5, "six"), (6, "eight"), (11, "nine"), (20, "twelve")];
    let expected: Vec<(usize, String)> =
        expected.into_iter().map(|(line, folder)| (line, folder.to_owned())).collect();
    assert_eq!(paths, expected);
}

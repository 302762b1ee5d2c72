//! Tests of `file.rs` and `check.rs`.

use serde::de::DeserializeOwned;

use super::*;
use crate::recipe::cells::methods;
use crate::recipe::manifest::RecipeManifest;

#[test]
fn every_recipe_in_the_binary_is_one() {
    for name in built_in::names() {
        let recipe = Recipe::find(name).unwrap();
        assert!(!recipe.title.is_empty() && matches!(recipe.runs, 1 | 3), "{name}");
        for method in &recipe.method {
            let mut datasets = method.paper.keys();
            assert!(datasets.all(|name| recipe.dataset.iter().any(|one| one.name == *name)));
            let is_it = |other: &String| recipe.method.iter().any(|one| one.name == *other);
            assert!(method.against.as_ref().is_none_or(is_it), "{name}: {}", method.label);
        }
        for printed in &recipe.printed {
            let width = printed.columns.len();
            assert!(printed.rows.iter().all(|row| row.len() == width), "{name}: {}", printed.title);
        }
        for row in &recipe.published {
            let mut datasets = row.figures.keys();
            let is_one = |name: &String| recipe.dataset.iter().any(|one| one.name == *name);
            assert!(datasets.all(is_one), "{name}: {}", row.label);
            let against = |label: &String| recipe.published.iter().any(|one| one.label == *label);
            assert!(row.against.as_ref().is_none_or(against), "{name}: {}", row.label);
        }
        let specs = methods(&RecipeManifest::plain(name)).unwrap();
        assert!(specs.iter().all(|spec| spec.slot_models().is_ok()), "{name}");
        let again = Recipe::parse(&toml::to_string(&recipe).unwrap(), name).unwrap();
        assert_eq!(again, recipe);
    }
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_a_hint() {
    let good = built_in::text("new-questions").unwrap().replace("questions.jsonl", "q.jsonl");
    Recipe::parse(&good, "mine.toml").unwrap();
    Recipe::find("new-notes").unwrap();
    for (from, to, expected) in [
        ("runs = 1 ", "run = 1 ", "unknown field `run`"),
        ("runs = 1 ", "runs = \"one\" ", "invalid type"),
        ("runs = 1 ", "runs = 0 ", "runs: it may not be 0"),
        ("\"grammar\" ", "\"grammer\" ", "unknown variant `grammer`"),
        ("\"mcq\"", "\"mcqs\"", "unknown variant `mcqs`"),
        ("[\"paired-first\"]", "[\"paired\"]", "unknown variant `paired`"),
        ("\"debate\"", "\"De bate\"", "names are lower-case letters, digits and -"),
        ("\"debate\"", "\"votes\"", "two of [[method]] are named votes"),
        ("\"q.jsonl\"", "\"../q.jsonl\"", "dataset mine: file: ../q.jsonl is not below"),
        ("format =", "ids = \"mcq-1\"\nformat =", "dataset mine: ids: no list of ids mcq-1"),
        ("[[dataset]]\n", "readings = [\"@none\"]\n[[dataset]]\n", "readings: no reading @none"),
    ] {
        let at = good.find(from).unwrap_or_else(|| panic!("{from}"));
        let text = good.replacen(from, to, 1);
        // What is read as another kind is told with its line.
        let line = 1 + good[..at].matches('\n').count();
        let is_of_toml = expected.starts_with("unknown") || expected.starts_with("invalid");
        let line = if is_of_toml { format!("line {line}: ") } else { String::new() };
        let error = Recipe::parse(&text, "mine.toml").unwrap_err();
        let (told, place) = (error.to_string(), format!("mine.toml: {line}"));
        assert!(told.starts_with(&place) && told.contains(expected), "{place}{told}");
        assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{told}");
    }
    // What a recipe is like is not in its file: a mistake of its own is told at its own line.
    let like = "like = \"table4\"\nruns = 1\npanel_sampling = [{ seed = 1 }]\n";
    let told = Recipe::parse(like, "mine.toml").unwrap_err().to_string();
    assert!(told.starts_with("mine.toml: line 3: "), "{told}");
}

#[test]
fn what_a_methods_system_has_not_is_told_by_the_methods_label() {
    let good = built_in::text("new-questions").unwrap();
    for (from, to, expected) in [
        ("[\"smollm2-135m\"]", "[\"a\", \"b\"]", "a panel of 2 models, and medmad takes 3"),
        ("[\"smollm2-135m\"]", "[]", "no model was given for "),
        ("\"medmad\" ", "\"medmud\" ", "there is no system medmud"),
        ("t_max = 0", "t_mix = 0", "there is no setting t_mix"),
        ("t_max = 1", "t_max = -1", "setting t_max: \"-1\" is not"),
    ] {
        assert!(good.contains(from), "{from}");
        let recipe = Recipe::parse(&good.replacen(from, to, 1), "mine.toml").unwrap();
        let manifest = RecipeManifest { recipe, ..RecipeManifest::plain("table1") };
        let specs = methods(&manifest);
        let told = specs
            .and_then(|specs| specs.iter().try_for_each(|spec| spec.slot_models().map(|_| ())));
        let told = told.unwrap_err().to_string();
        assert!(told.contains(expected), "{told}");
    }
}

/// The fields of a type, as it tells them where another is given.
fn fields<T: DeserializeOwned>() -> Vec<String> {
    let error = outside::toml::<T>("another = 1").err().unwrap();
    error.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_page_has_every_field() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/recipes.md");
    let page = fs_err::read_to_string(page).unwrap();
    let own = page.split("## Your own recipe").nth(1).unwrap();
    let of = [
        fields::<Recipe>(),
        fields::<DatasetEntry>(),
        fields::<MethodEntry>(),
        fields::<ExemplarEntry>(),
        fields::<SamplingChoice>(),
        fields::<Paper>(),
        fields::<PublishedEntry>(),
        fields::<PrintedTable>(),
        vec!["like".to_owned()],
    ];
    assert!(of.iter().all(|fields| !fields.is_empty()));
    let is_told = |field: &String| {
        ["`", "`[", "`[["].iter().any(|open| own.contains(&format!("{open}{field}")))
    };
    let untold: Vec<_> = of.concat().into_iter().filter(|field| !is_told(field)).collect();
    assert!(untold.is_empty(), "docs/recipes.md lacks {untold:?}");
}

#[test]
fn files_lie_below_the_folder_of_the_data_and_runs_are_few() {
    let problem = |more: &str| {
        let text = format!("like = \"medguards-table7-api\"\n{more}");
        Recipe::parse(&text, "own.toml").unwrap_err().to_string()
    };
    let recipe = Recipe::find("medguards-table7-api").unwrap();
    for file in ["../notes.csv", "/etc/passwd"] {
        let mut recipe = recipe.clone();
        file.clone_into(&mut recipe.dataset[0].file);
        let fault = recipe.check().unwrap_err().to_string();
        assert!(fault.ends_with(&format!("file: {file} is not below --data-dir")), "{fault}");
    }
    assert!(problem("runs = 4294967295\n").contains("10000 at most"));
}

#[test]
fn a_recipe_like_another_has_its_own_keys_alone_instead() {
    let like = Recipe::parse("like = \"medguards-table7-api\"\nruns = 1\n", "own.toml").unwrap();
    let other = Recipe::find("medguards-table7-api").unwrap();
    assert_eq!(like, Recipe { runs: 1, ..other.clone() });
    // Which is itself like the recipe of open models.
    assert_eq!(other.dataset, Recipe::find("medguards-table7").unwrap().dataset);
}

#[test]
fn table_one_has_the_papers_figures() {
    let recipe = Recipe::find("table1").unwrap();
    assert_eq!((recipe.dataset.len(), recipe.method.len()), (3, 9));
    assert_eq!(recipe.method[8].paper["mmlu-pro"], [0.5967, 0.0289]);
}

#[test]
fn a_recipe_that_contradicts_itself_is_refused_by_name() {
    let good = toml::to_string(&Recipe::find("table4").unwrap()).unwrap();
    let problem = |from: &str, to: &str| {
        assert!(good.contains(from), "{good}");
        let text = good.replacen(from, to, 1);
        Recipe::parse(&text, "mine.toml").unwrap_err().to_string()
    };
    let cases = [
        ("name = \"medqa\"", "name = \"Med QA\"", "names are lower-case"),
        ("name = \"medqa\"", "name = \"mmlu-pro\"", "two of [[dataset]] are named mmlu-pro"),
        ("ids = \"medqa-100\"", "ids = \"medqa-9\"", "no list of ids medqa-9"),
        ("runs = 3", "runs = 0", "may not be 0"),
        ("decoding = ", "decodin = ", "unknown field"),
        ("title = ", "like = \"table77\"\ntitle = ", "like = \"table77\": no such recipe"),
        ("[sampling]", "[sampling]\ntop_p = 2.0", "top_p is 2.0: expected a number from 0 to 1"),
    ];
    for (from, to, expected) in cases {
        let problem = problem(from, to);
        assert!(problem.starts_with("mine.toml: "), "{problem}");
        assert!(problem.contains(expected), "{problem}");
    }
    let error = Recipe::find("table9").unwrap_err();
    assert!(error.hint().unwrap().contains("table1-api, table1, "));
}

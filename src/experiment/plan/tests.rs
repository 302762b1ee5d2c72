//! Tests of `plan.rs`.

use super::*;
use crate::diagnosis::Diagnosis;
use crate::experiment::exemplars::FilePlan;
use crate::experiment::fixtures::plan;
use crate::experiment::hardware::Hardware;
use crate::experiment::spec::Spec;
use crate::hub::HubOptions;
use crate::prompts::PromptSet;
use crate::systems::SystemConfig;

#[test]
fn a_plan_reads_back_from_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE);
    plan().save(&path).unwrap();
    assert_eq!(Plan::load(&path).unwrap(), plan());
    let text = fs_err::read_to_string(&path).unwrap();
    assert!(text.contains("temperature = 0.6\n"), "{text}");
    // One from before there were drafts.
    let old = text.replace("draft = 0\n", "");
    assert!(old != text && Plan::parse(old.as_bytes(), &path).unwrap() == plan());
}

#[test]
fn the_file_of_a_plan() {
    insta::assert_snapshot!(plan().to_toml().unwrap());
}

/// As a version wrote it that cut plans into shards.
#[test]
fn of_a_shards_plan_its_items_are_what_counts() {
    let path = Path::new("plan.toml");
    let text = plan().to_toml().unwrap();
    let table = "[dataset.shard]\npart = \"2/2\"\nwhole_items = 3\nwhole_sha256 = \"00\"\n";
    let old = Plan::parse(format!("{text}\n{table}").as_bytes(), path).unwrap();
    assert_eq!(plan().differences(&old).unwrap(), []);
}

#[test]
fn what_would_not_read_back_equal_is_refused() {
    let mut plan = plan();
    plan.seed = u64::MAX;
    plan.to_toml().unwrap();
    plan.panel[0].temperature = Some(f32::NAN);
    let error = plan.to_toml().unwrap_err();
    assert!(matches!(error, RunError::UnwritablePlan { .. }), "{error}");
}

#[test]
fn an_unreadable_plan_names_its_file() {
    let path = Path::new("some/plan.toml");
    for bytes in [b"seed = \n".as_slice(), b"schema = 1\nunknown = 1\n", b"\xff"] {
        let error = Plan::parse(bytes, path).unwrap_err().to_string();
        assert!(error.starts_with("some/plan.toml is not a plan: "), "{error}");
    }
}

#[test]
fn a_plan_of_another_schema_is_told_so() {
    let path = Path::new("some/plan.toml");
    for (text, found) in [("schema = 2\nnew = 1\n", 2), ("version = \"0.1.0\"\n", 0)] {
        let error = Plan::parse(text.as_bytes(), path).unwrap_err();
        let expected =
            format!("some/plan.toml has schema {found}, this version of wardround reads 1");
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().unwrap().contains("the version of wardround that wrote it"));
    }
}

#[test]
fn a_run_in_a_hurry_cannot_be_made_again() {
    let mut plan = plan();
    assert_eq!(plan.unrepeatable(), None);
    plan.engine.device_kind = format!("cuda sm_90{FAST}");
    let reason = plan.unrepeatable().unwrap();
    assert!(reason.starts_with("--fast: "), "{reason}");
}

/// MedPrompt's exemplars come with chains of thought; of other systems nothing is said.
#[test]
fn medprompt_without_its_chains_of_thought_says_so() {
    let file = |what: &str| FilePlan {
        what: what.to_owned(),
        path: what.to_owned(),
        sha256: "99".repeat(32),
    };
    let plan_of = |system: &str, files: Vec<FilePlan>| Plan {
        system: system.to_owned(),
        exemplars: Some(ExemplarPlan {
            path: "train.csv".to_owned(),
            format: "medec".to_owned(),
            sha256: "99".repeat(32),
            notes: 8,
            files,
        }),
        ..plan()
    };
    let told = plan_of("medprompt", vec![file("encoder")]).without_reasons();
    assert_eq!(
        told,
        Some(
            "medprompt without its chains of thought: the exemplars' reasons are made of their gold (see `wardround data reasons`)"
        )
    );
    assert_eq!(plan_of("medprompt", Vec::new()).without_reasons(), told);
    let with_reasons = vec![file("encoder"), file("reasons")];
    assert_eq!(plan_of("medprompt", with_reasons).without_reasons(), None);
    assert_eq!(plan_of("ikim", Vec::new()).without_reasons(), None);
    assert_eq!(plan().without_reasons(), None);
}

#[test]
fn only_what_changes_bytes_is_compared() {
    let mut other = plan();
    other.created_at = "2031-01-01T00:00:00Z".to_owned();
    other.host.cores = 96;
    other.engine.max_batch = 1;
    other.engine.draft = 4;
    other.engine.threads = 3;
    assert_eq!(plan().differences(&other).unwrap(), []);

    other.version = "9.9.9".to_owned();
    other.engine.device_kind = "sm_90".to_owned();
    other.panel[1].temperature = Some(0.7);
    other.panel[1].top_k = None;
    other.dataset.items[1] = "q9".to_owned();
    other.settings.insert("t_max".to_owned(), 2.into());
    let shown: Vec<String> =
        plan().differences(&other).unwrap().iter().map(FieldDifference::to_string).collect();
    assert_eq!(
        shown,
        [
            "version is \"0.1.0\" against \"9.9.9\"",
            "settings.t_max is 3 against 2",
            "dataset.items[1] is \"q2\" against \"q9\"",
            "panel[1].temperature is 0.6 against 0.7",
            "panel[1].top_k is 20 against null",
            "engine.device_kind is \"x86_64+avx2\" against \"sm_90\"",
        ]
    );
}

/// As the version wrote it that had forms, records asked for again, and other prompts in the folder.
#[test]
fn what_is_gone_is_no_difference_without_effect_and_refused_by_name_with_one() {
    let of = |system: &str, settings: toml::Table, prompts_sha256: &str| Plan {
        system: system.to_owned(),
        settings,
        prompts_sha256: prompts_sha256.to_owned(),
        ..plan()
    };
    let table = SystemConfig::named("mdagents").unwrap().table;
    let now = of("mdagents", table.clone(), &PromptSet::embedded().sha256("mdagents"));
    let gone = "reask = \"off\"\nform = \"harness\"\nmax_rounds = 5\nmax_turns = 5\ntemperatures = \"paper\"";
    let mut older = table;
    older.extend(gone.parse::<toml::Table>().unwrap());
    let then = of("mdagents", older.clone(), gone::prompts_before("mdagents").unwrap());
    assert_eq!(now.differences(&then).unwrap(), []);
    // As the harness asks, the recruiter of teams is shown an example since.
    let as_harness = |plan: &Plan| {
        let mut plan = plan.clone();
        plan.settings.insert("mab_compat".to_owned(), "on".into());
        plan
    };
    assert_eq!(as_harness(&now).differences(&as_harness(&then)).unwrap().len(), 1);
    let refusal = |system: &str, key: &str, value: &str| {
        let mut settings = older.clone();
        settings.insert(key.to_owned(), value.into());
        let hub = HubOptions::capture().unwrap();
        let error = Spec::from_plan(&of(system, settings, ""), Hardware::default(), hub);
        error.err().unwrap().to_string()
    };
    assert_eq!(refusal("mdagents", "form", "original"), "there is no setting form");
    assert_eq!(refusal("mdagents", "reask", "on"), "there is no setting reask");
    assert_eq!(refusal("edinburgh", "reask", "off"), "there is no system edinburgh");
}

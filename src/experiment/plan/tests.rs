//! Tests of `plan.rs`.

use super::*;
use crate::experiment::exemplars::FilePlan;
use crate::experiment::fixtures::plan;

#[test]
fn a_plan_reads_back_from_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE);
    plan().save(&path).unwrap();
    let read = Plan::load(&path).unwrap();
    assert_eq!((&read.found, &read.host), (&plan().found, &plan().host));
    assert_eq!(read.to_toml().unwrap(), plan().to_toml().unwrap());
    let text = fs_err::read_to_string(&path).unwrap();
    assert!(text.contains("temperature = 0.6\n"), "{text}");
}

/// Its run is read, and not repeated.
#[test]
fn a_plan_of_an_earlier_version_is_read_and_not_repeated() {
    let mut old = plan();
    old.asked = None;
    let text = old.to_toml().unwrap();
    // The kind of device stood there, and what else it said is left aside.
    let text = text.replace("device_kind = \"x86_64+avx2\"\n", "");
    let text = text.replace("[engine]\n", "[engine]\ndevice_kind = \"x86_64+avx2\"\n");
    let shard = "[dataset.shard]\npart = \"2/2\"\nwhole_items = 3\n";
    // As another version might write it.
    for asked in ["", "[asked]\nquestion = 1\n"] {
        let text = format!("{text}\n{shard}{asked}");
        let read = Plan::parse(text.as_bytes(), Path::new(FILE)).unwrap();
        assert_eq!(read.found, plan().found);
        let again = read.again(Hardware::default(), HubOptions::default()).unwrap_err();
        let kept = plan().keep_to(&read, Path::new(FILE), true).unwrap_err();
        for told in [again.to_string(), kept.to_string()] {
            assert!(told.starts_with("an earlier version of wardround wrote the plan"), "{told}");
        }
    }
}

#[test]
fn what_was_asked_for_is_asked_again_and_flags_win() {
    let mut plan = plan();
    let asked = plan.asked.as_mut().unwrap();
    asked.slots.insert("sym".to_owned(), "/models/tiny".to_owned());
    asked.hardware.context = Some(4096);
    asked.seed = 7;
    let text = plan.to_toml().unwrap();
    let read = Plan::parse(text.as_bytes(), Path::new(FILE)).unwrap();
    let again = |hardware| read.again(hardware, HubOptions::default()).unwrap();
    let spec = again(Hardware::default());
    assert_eq!((spec.seed, spec.hardware.context), (7, Some(4096)));
    assert_eq!((&spec.slots, &spec.config), (&plan.asked.as_ref().unwrap().slots, &spec.config));
    assert_eq!(spec.subset.listed.map(|(_, ids)| ids.len()), Some(3));
    let flag = Hardware { context: Some(8192), ..Hardware::default() };
    assert_eq!(again(flag).hardware.context, Some(8192));
}

#[test]
fn the_file_of_a_plan() {
    let mut plan = plan();
    plan.asked = None;
    insta::assert_snapshot!(plan.to_toml().unwrap());
}

#[test]
fn what_would_not_read_back_equal_is_refused() {
    let mut plan = plan();
    plan.seed = u64::MAX;
    plan.to_toml().unwrap();
    plan.panel[0].temperature = Some(f32::NAN);
    let error = plan.to_toml().unwrap_err();
    assert!(error.to_string().starts_with("plan.toml would not read back"), "{error}");
}

#[test]
fn an_unreadable_plan_names_its_file() {
    let path = Path::new("some/plan.toml");
    for bytes in [b"seed = \n".as_slice(), b"schema = 1\nunknown = 1\n", b"\xff"] {
        let error = Plan::parse(bytes, path).unwrap_err().to_string();
        assert!(error.starts_with("some/plan.toml: it is no plan: "), "{error}");
    }
}

#[test]
fn a_plan_of_another_schema_is_told_so() {
    let path = Path::new("some/plan.toml");
    let error = Plan::parse(b"schema = 2\nnew = 1\n", path).unwrap_err().to_string();
    assert!(error.contains("schema 2: this version of wardround reads 1"), "{error}");
}

#[test]
fn a_run_in_a_hurry_cannot_be_made_again() {
    let mut plan = plan();
    assert_eq!(plan.unrepeatable(), None);
    plan.device_kind = "cuda sm_90 fast".to_owned();
    let reason = plan.unrepeatable().unwrap();
    assert!(reason.starts_with("it is of an earlier version's fast mode: "), "{reason}");
    plan.device_kind = "candle cpu".to_owned();
    let reason = plan.unrepeatable().unwrap();
    assert!(reason.starts_with("candle cpu: its bits depend on the batch"), "{reason}");
}

/// MedPrompt's exemplars come with chains of thought; of other systems nothing is said.
#[test]
fn medprompt_without_its_chains_of_thought_says_so() {
    let file = |what: &str| FilePlan { what: what.to_owned(), sha256: "99".repeat(32) };
    let plan_of = |system: &str, files: Vec<FilePlan>| {
        let mut plan = plan();
        plan.system = system.to_owned();
        let (format, sha256) = ("medec".to_owned(), "99".repeat(32));
        plan.exemplars = Some(ExemplarPlan { format, sha256, notes: 8, files });
        plan
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
    assert_eq!(plan_of("medifact", Vec::new()).without_reasons(), None);
    assert_eq!(plan().without_reasons(), None);
}

#[test]
fn only_what_changes_bytes_is_compared() {
    let mut other = plan();
    other.host.created_at = "2031-01-01T00:00:00Z".to_owned();
    other.host.machine.cores = 96;
    other.host.engine.max_batch = 1;
    other.host.engine.draft = 4;
    other.host.engine.threads = 3;
    assert_eq!(plan().differences(&other).unwrap(), []);

    other.version = "9.9.9".to_owned();
    other.device_kind = "sm_90".to_owned();
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
            "dataset.items is [\"q1\",\"q2\",\"q3\"] against [\"q1\",\"q9\",\"q3\"]",
            "panel[1].temperature is 0.6 against 0.7",
            "panel[1].top_k is 20 against null",
            "device_kind is \"x86_64+avx2\" against \"sm_90\"",
        ]
    );
}

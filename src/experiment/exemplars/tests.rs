//! Tests of `exemplars.rs`.

use super::*;
use crate::experiment::fixtures;
use crate::record::NoteLine;

#[test]
fn a_plan_of_an_unknown_format_is_no_spec() {
    let plan = |format: &str| ExemplarPlan {
        path: "notes".to_owned(),
        format: format.to_owned(),
        sha256: String::new(),
        notes: 1,
        files: Vec::new(),
    };
    assert_eq!(ExemplarSpec::try_from(&plan("notes")).unwrap().format, Format::Notes);
    let error = ExemplarSpec::try_from(&plan("hl7")).unwrap_err();
    assert!(error.to_string().contains("hl7"), "{error}");
}
/// A run over one note whose first attempt failed: the resumed run logged its outcome behind the error.
fn write_resumed_run(path: &Path) {
    let log = fixtures::start(path, &fixtures::plan());
    let line = NoteLine {
        dataset: "medec".to_owned(),
        run: 1,
        item: "ms-1".to_owned(),
        error: Some("the endpoint did not answer".to_owned()),
        ..NoteLine::default()
    };
    log.item(line.clone()).unwrap();
    log.item(NoteLine { flag: Some(true).into(), sentence_id: Some(2), error: None, ..line })
        .unwrap();
    log.finish().unwrap();
}

fn experts(given: &Path) -> Vec<Expert> {
    let experts = vec![given.display().to_string()];
    ExemplarFiles { experts, ..ExemplarFiles::default() }.experts(&mut Vec::new()).unwrap()
}

#[test]
fn an_expert_says_what_the_last_attempt_at_a_note_came_to() {
    let scratch = tempfile::tempdir().unwrap();
    let run = scratch.path().join("run");
    write_resumed_run(&run);
    let found = experts(&run);
    let opinion = &found[0].opinions["ms-1"];
    assert_eq!((opinion.flag.said(), opinion.sentence_id), (Some(true), Some(2)));
}

#[test]
fn a_run_directory_may_have_an_equals_sign_in_its_name() {
    let scratch = tempfile::tempdir().unwrap();
    let run = scratch.path().join("seed=1");
    write_resumed_run(&run);
    assert_eq!(experts(&run)[0].trust, None);
    let trusted = scratch.path().join("seed=1=0.61");
    assert_eq!(experts(&trusted)[0].trust.as_deref(), Some("0.61"));
}

//! Tests of `exemplars.rs`.

use super::*;
use crate::data::Format;

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

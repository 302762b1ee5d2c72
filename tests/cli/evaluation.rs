//! `evaluation.toml`: the form beside a run, printed first by `report`, passed by where a run is verified.

use crate::binary::Scratch;

const FORM: &str = "purpose = \"Whether <b>errors</b> are found\"\nsites = [\"Ward 3\", \"Ward 5\"]\nraters = \"\"\n";

#[test]
fn a_form_stands_first_in_the_report_and_verify_passes_it_by() {
    let scratch = Scratch::new();
    scratch.questions(2);
    scratch.write("form.toml", FORM);
    scratch.run_one("out", "--evaluation form.toml").succeeded();
    let kept = || std::fs::read_to_string(scratch.path("out/evaluation.toml")).unwrap();
    let page = || std::fs::read_to_string(scratch.path("out/report.html")).unwrap();
    assert_eq!(kept(), FORM);
    let first = page();
    let place = |part: &str| first.find(part).unwrap_or_else(|| panic!("no {part}"));
    assert!(place("id=\"evaluation-title\"") < place("id=\"result-title\""));
    assert!(place("Whether &lt;b&gt;errors&lt;/b&gt; are found") < place("id=\"result-title\""));
    assert_eq!(first.matches("not stated").count(), 7);
    scratch.wardround("verify out").succeeded();
    let tables = scratch.wardround("report out --format md");
    assert!(tables.stdout.starts_with("**Evaluation**"), "{}", tables.stdout);
    let rows = scratch.wardround("report out --format csv --table evaluation");
    assert!(rows.stdout.contains("\nsites,Ward 3; Ward 5\n"), "{}", rows.stdout);
    assert!(rows.stdout.contains("\nraters,not stated\n"), "{}", rows.stdout);

    // Put there later, changed, or taken away: the run is as intact as before.
    scratch.write("out/evaluation.toml", "purpose = 'x'\nporpose = 'y'\n");
    scratch.wardround("verify out").succeeded();
    scratch
        .wardround("report out")
        .refused(2, &["out/evaluation.toml, line 2: unknown field `porpose`", "stop_rules"]);
    std::fs::remove_file(scratch.path("out/evaluation.toml")).unwrap();
    scratch.wardround("report out").succeeded();
    assert!(!page().contains("evaluation-title"));
    scratch.wardround("verify out").succeeded();
}

#[test]
fn a_form_that_is_none_is_refused_before_anything_runs() {
    let scratch = Scratch::new();
    scratch.questions(1);
    scratch.write("form.toml", "dates = 2026\n");
    scratch
        .run_one("out", "--evaluation form.toml")
        .refused(2, &["form.toml, line 1: ", "a text or a list of texts"]);
    scratch.run_one("out", "--evaluation none.toml").refused(2, &["none.toml"]);
    assert!(!scratch.path("out").exists());
}

//! `export`: what it writes, the same bytes each time, for its owner alone; `verify --attestation`.

use std::os::unix::fs::PermissionsExt;

use crate::binary::Scratch;

#[test]
fn a_finished_run_is_exported_and_its_statement_is_held_against_it() {
    let scratch = Scratch::new();
    scratch.questions(2);
    scratch.run_one("out", "").finished();
    let export = |form: &str, out: &str| -> Vec<Vec<u8>> {
        let said = scratch.wardround(format!("export out --as {form} --out {out}"));
        said.succeeded();
        let read = |path: &str| {
            let mode = std::fs::metadata(scratch.path(path)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{path}");
            std::fs::read(scratch.path(path)).unwrap()
        };
        said.stdout.lines().map(read).collect()
    };
    for (form, files) in [("every-eval-ever", 2), ("inspect", 1), ("in-toto", 1)] {
        let written = export(form, "exports");
        assert_eq!(written.len(), files, "{form}");
        assert_eq!(export(form, "again"), written, "{form}");
    }

    let said = scratch.wardround("export out --as in-toto --out exports");
    let statement = said.stdout.trim().to_owned();
    let verify = || scratch.wardround(format!("verify out --attestation {statement}"));
    let held = verify();
    held.succeeded();
    assert!(held.stdout.contains(&format!("stated by {statement}")), "{}", held.stdout);
    let whole = std::fs::read_to_string(scratch.path(&statement)).unwrap();
    let sum = whole.split("\"sha256\": \"").nth(1).unwrap();
    scratch.write(&statement, whole.replacen(&sum[..64], &"0".repeat(64), 1));
    verify().refused(3, &["is of another run", "another sum of plan.toml"]);
    scratch.write(&statement, "{}");
    verify().refused(3, &["is no statement of in-toto"]);

    std::fs::remove_file(scratch.path("out/results.json")).unwrap();
    verify().refused(3, &["has not finished"]);
    scratch.wardround("export out --as inspect --out exports").refused(3, &["has not finished"]);
}

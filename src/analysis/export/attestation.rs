//! An in-toto statement (v1) about an evaluation, as a test result (v0.1): its files with their sums, the plan and the weights, which items
//! were answered right (<https://github.com/in-toto/attestation/blob/main/spec/predicates/test-result.md>). It is signed elsewhere.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::facts::{Facts, facts};
use super::sample::Sample;
use super::{ExportError, ExportedFile, pretty};
use crate::digest::sha256_file;
use crate::experiment::contents::Contents;
use crate::experiment::results::{self, Results};
use crate::experiment::{link::Link, plan, texts, versions};
use crate::outside;
use crate::record::{CallLine, ItemLine, SearchLine};

const STATEMENT: &str = "https://in-toto.io/Statement/v1";
const TEST_RESULT: &str = "https://in-toto.io/attestation/test-result/v0.1";
/// What a model's sum is of: in-toto's own kinds are of one file or of a folder with all its files.
const WEIGHTS: &str = "wardround_weights_sha256";

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Resource>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    predicate: TestResult,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Resource {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    #[serde(default, skip_serializing_if = "Facts::is_empty")]
    digest: Facts,
    #[serde(default, skip_serializing_if = "Facts::is_empty")]
    annotations: Facts,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TestResult {
    result: Outcome,
    configuration: Vec<Resource>,
    /// Right in every run.
    passed_tests: Vec<String>,
    /// Without an answer in a run: failed or unread. It counts as wrong.
    warned_tests: Vec<String>,
    /// Answered wrong in a run.
    failed_tests: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Outcome {
    Passed,
    Warned,
    Failed,
}

/// The statement about a finished run.
///
/// # Errors
/// A file of the run that cannot be read.
pub fn file(contents: &Contents, results: &Results) -> Result<ExportedFile, ExportError> {
    let path = format!("{}.intoto.json", &results.head[..16]);
    Ok(ExportedFile { path, bytes: pretty(&Statement::of(contents, results)?)? })
}

/// Checks that a statement is the one that is made of this run.
///
/// # Errors
/// What is no such statement, and where it says something else.
pub fn check(path: &Path, contents: &Contents, results: &Results) -> Result<(), ExportError> {
    let name = path.display().to_string();
    let found: Statement = outside::json(path).map_err(|error| ExportError::NoStatement {
        path: name.clone(),
        reason: error.to_string(),
    })?;
    let due = Statement::of(contents, results)?;
    if found == due {
        return Ok(());
    }
    let differs = |due: &&Resource| !found.subject.contains(due);
    let difference = match due.subject.iter().find(differs) {
        Some(file) => format!("it has another sum of {}, or none", file.name),
        None if found.subject != due.subject => "it has files that the run has not".to_owned(),
        None if found.predicate.configuration != due.predicate.configuration => {
            "it names another plan or other weights".to_owned()
        }
        None => "it says otherwise which items were answered right".to_owned(),
    };
    Err(ExportError::OtherRun { path: name, difference })
}

impl Statement {
    fn of(contents: &Contents, results: &Results) -> Result<Statement, ExportError> {
        Ok(Statement {
            kind: STATEMENT.to_owned(),
            subject: subjects(contents, results)?,
            predicate_type: TEST_RESULT.to_owned(),
            predicate: TestResult::of(contents)?,
        })
    }
}

/// The files of the run; of the results, the figures too.
fn subjects(contents: &Contents, results: &Results) -> Result<Vec<Resource>, ExportError> {
    let files = [
        plan::FILE,
        texts::FILE,
        CallLine::FILE,
        ItemLine::FILE,
        SearchLine::FILE,
        versions::FILE,
        results::FILE,
    ];
    let mut subjects = Vec::new();
    for name in files {
        let path = contents.path.join(name);
        if !fs_err::exists(&path)? {
            continue;
        }
        let annotations = match name {
            results::FILE => about(results),
            _ => Facts::new(),
        };
        let digest = facts([("sha256", sha256_file(&path)?)]);
        subjects.push(Resource { name: name.to_owned(), uri: None, digest, annotations });
    }
    Ok(subjects)
}

fn about(results: &Results) -> Facts {
    let accuracy = results.figures.get("accuracy").filter(|accuracy| !accuracy.is_null());
    let mut about = facts([
        ("wardround.head", results.head.clone()),
        ("wardround.version", results.version.clone()),
        ("wardround.items", results.n_items.to_string()),
        ("wardround.items_without_gold", results.n_without_gold.to_string()),
        ("wardround.runs", results.n_runs.to_string()),
        ("wardround.errors", results.n_errors.to_string()),
    ]);
    about.extend(accuracy.map(|value| ("wardround.accuracy".to_owned(), value.to_string())));
    about
}

impl TestResult {
    fn of(contents: &Contents) -> Result<TestResult, ExportError> {
        let mut items: BTreeMap<&str, Outcome> = BTreeMap::new();
        let samples = Sample::all(contents)?;
        for sample in samples.iter().filter(|sample| sample.line.correct().is_some()) {
            let outcome = match (sample.line.correct(), sample.lack()) {
                (_, Some(_)) => Outcome::Warned,
                (Some(true), None) => Outcome::Passed,
                _ => Outcome::Failed,
            };
            let known = items.entry(sample.line.item()).or_insert(outcome);
            // The worst of an item's runs counts: a wrong answer more than none.
            let worst = [Outcome::Failed, Outcome::Warned, Outcome::Passed];
            *known = *worst.iter().find(|one| [*known, outcome].contains(one)).unwrap_or(known);
        }
        let of = |outcome: Outcome| {
            let planned = contents.plan.dataset.items.iter();
            planned.filter(|item| items.get(item.as_str()) == Some(&outcome)).cloned().collect()
        };
        let [passed_tests, warned_tests, failed_tests]: [Vec<String>; 3] =
            [Outcome::Passed, Outcome::Warned, Outcome::Failed].map(of);
        let result =
            match (failed_tests.is_empty(), warned_tests.is_empty(), passed_tests.is_empty()) {
                (false, ..) => Outcome::Failed,
                // A run without gold shows nothing.
                (true, false, _) | (true, true, true) => Outcome::Warned,
                (true, true, false) => Outcome::Passed,
            };
        let configuration = configuration(contents);
        Ok(TestResult { result, configuration, passed_tests, warned_tests, failed_tests })
    }
}

/// The plan, the data and every model, once.
fn configuration(contents: &Contents) -> Vec<Resource> {
    let plan = &contents.plan;
    let resource = |name: &str, digest| Resource {
        name: name.to_owned(),
        uri: None,
        digest,
        annotations: Facts::new(),
    };
    let mut resources = vec![
        resource(plan::FILE, facts([("sha256", contents.plan_sha256.clone())])),
        resource(
            &format!("data of {}", plan.dataset.name),
            facts([("sha256", plan.dataset.sha256.clone())]),
        ),
    ];
    for member in &plan.panel {
        let digest = match member.is_remote() {
            // Nothing is known of what answers there.
            true => Facts::new(),
            false => facts([(WEIGHTS, member.weights_sha256.clone())]),
        };
        let uri = member.repository.as_ref().map(|repository| match &member.revision {
            Some(revision) => format!("pkg:huggingface/{repository}@{revision}"),
            None => format!("pkg:huggingface/{repository}"),
        });
        let annotations = facts([
            ("dtype", member.dtype.clone()),
            ("quantisation", member.quantisation.clone()),
            ("synthetic", plan.synthetic.to_string()),
        ]);
        let model = Resource { name: member.backbone.clone(), uri, digest, annotations };
        if !resources.contains(&model) {
            resources.push(model);
        }
    }
    resources
}

//! `evaluation.toml`: a form that people fill in for a run, before or after it: what is evaluated, on whom, and by whose judgement.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use super::whole_file;
use crate::diagnosis::{Blame, Diagnosis, Failure};
use crate::digest::sha256;
use crate::outside;
use crate::record::Schema;

/// The file's name in the run directory.
pub const FILE: &str = "evaluation.toml";

/// The form as it was filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// As it was read.
    text: String,
    stated: Stated,
}

/// What a form may say; `None`: it does not.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stated {
    /// What people write need not number itself.
    #[serde(rename = "schema")]
    _schema: Option<Schema>,
    purpose: Option<Said>,
    population: Option<Said>,
    inclusion: Option<Said>,
    dates: Option<Said>,
    sites: Option<Said>,
    ground_truth: Option<Said>,
    raters: Option<Said>,
    approvals: Option<Said>,
    stop_rules: Option<Said>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
enum Said {
    Text(String),
    List(Vec<String>),
}

/// A field of the form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub label: &'static str,
    /// `None` where the form does not say.
    pub said: Option<String>,
}

#[derive(Debug, Error)]
#[error("{}{}: {reason}", path.display(), line.map_or(String::new(), |line| format!(", line {line}")))]
pub struct EvaluationError {
    path: PathBuf,
    line: Option<usize>,
    reason: String,
}

impl Diagnosis for EvaluationError {
    fn blame(&self) -> Blame {
        Blame::Usage
    }

    fn hint(&self) -> Option<String> {
        let fields = "purpose, population, inclusion, dates, sites, ground_truth, raters, approvals and stop_rules";
        Some(format!("its fields are {fields}, each a text or a list of texts"))
    }
}

impl Evaluation {
    /// Reads a form.
    ///
    /// # Errors
    /// A file that cannot be read, a field that there is not, a value that is no text.
    pub fn read(path: &Path) -> Result<Evaluation, Failure> {
        let wrong = |line, reason| EvaluationError { path: path.to_owned(), line, reason };
        let text = String::from_utf8(outside::file(path)?);
        let text = text.map_err(|_| wrong(None, "it is not UTF-8".to_owned()))?;
        let stated = toml::from_str(&text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map(|before| 1 + before.matches('\n').count());
            wrong(line, error.message().to_owned())
        })?;
        Ok(Evaluation { text, stated })
    }

    /// The form in a run directory; `None` where there is none.
    pub fn of_run(directory: &Path) -> Result<Option<Evaluation>, Failure> {
        match fs_err::symlink_metadata(directory.join(FILE)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            _ => Evaluation::read(&directory.join(FILE)).map(Some),
        }
    }

    /// Puts the form into a run directory, as it was read.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, directory: &Path) -> std::io::Result<()> {
        whole_file::write_private(&directory.join(FILE), self.text.as_bytes())
    }

    pub fn sha256(&self) -> String {
        sha256(&self.text)
    }

    /// All fields, in the order in which a reader wants them.
    pub fn fields(&self) -> Vec<Field> {
        let Stated { purpose, population, inclusion, dates, sites, .. } = &self.stated;
        let Stated { ground_truth, raters, approvals, stop_rules, .. } = &self.stated;
        let field =
            |label, said: &Option<Said>| Field { label, said: said.as_ref().and_then(Said::words) };
        vec![
            field("purpose", purpose),
            field("population", population),
            field("inclusion", inclusion),
            field("dates", dates),
            field("sites", sites),
            field("ground truth", ground_truth),
            field("raters", raters),
            field("approvals", approvals),
            field("stop rules", stop_rules),
        ]
    }
}

impl Said {
    /// What is blank says nothing.
    fn words(&self) -> Option<String> {
        let words = match self {
            Said::Text(text) => text.trim().to_owned(),
            Said::List(texts) => {
                let texts = texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
                texts.collect::<Vec<_>>().join("; ")
            }
        };
        (!words.is_empty()).then_some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Evaluation, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        fs_err::write(&path, text).unwrap();
        Evaluation::read(&path)
    }

    #[test]
    fn what_is_blank_or_missing_is_not_stated() {
        let form =
            read("purpose = ' find errors '\nsites = ['A', '', 'B']\nraters = ''\n").unwrap();
        let said: Vec<_> = form
            .fields()
            .into_iter()
            .filter_map(|field| Some((field.label, field.said?)))
            .collect();
        assert_eq!(said, [("purpose", "find errors".to_owned()), ("sites", "A; B".to_owned())]);
        assert_eq!(form.fields().len(), 9);
    }

    #[test]
    fn unknown_fields_and_other_values_are_errors_with_their_line() {
        for (text, line, part) in [
            ("purpose = 'x'\nporpose = 'y'\n", 2, "porpose"),
            ("schema = 2\n", 1, "schema 2: this version of wardround reads 1"),
            ("\n\nsites = 3\n", 3, "expected a text or a list of texts"),
            ("purpose = \n", 1, ""),
        ] {
            let error = read(text).unwrap_err();
            let said = error.to_string();
            assert!(
                said.contains(&format!("{FILE}, line {line}: ")) && said.contains(part),
                "{said}"
            );
            assert_eq!(error.blame(), Blame::Usage);
            assert!(error.hint().unwrap().contains("stop_rules"));
        }
    }

    /// `report` would wait for a pipe without end.
    #[test]
    fn what_is_no_file_of_text_is_no_form() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let said = Evaluation::of_run(folder.path()).unwrap_err().to_string();
        assert!(said.contains(FILE) && said.contains("it is no file"), "{said}");
        fs_err::remove_file(&path).unwrap();
        fs_err::write(&path, b"purpose = '\xff'").unwrap();
        let said = Evaluation::of_run(folder.path()).unwrap_err().to_string();
        assert!(said.contains("evaluation.toml: it is not UTF-8"), "{said}");
    }

    #[test]
    fn a_form_is_kept_as_it_was() {
        let (text, folder) = ("# ours\npurpose = \"x\"\n", tempfile::tempdir().unwrap());
        assert_eq!(Evaluation::of_run(folder.path()).unwrap(), None);
        let form = read(text).unwrap();
        form.write(folder.path()).unwrap();
        assert_eq!(fs_err::read_to_string(folder.path().join(FILE)).unwrap(), text);
        assert_eq!(Evaluation::of_run(folder.path()).unwrap(), Some(form));
    }
}

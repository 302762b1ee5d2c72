//! The form of an evaluation as a table; what it does not say is said to be missing.

use crate::analysis::table::Table;
use crate::experiment::evaluation::{Evaluation, FILE, Field};

pub fn table(evaluation: &Evaluation) -> Table {
    let fields = evaluation.fields();
    Table::of("evaluation", "Evaluation", &fields)
        .text("", |field: &Field| field.label)
        .text("stated", |field: &Field| {
            field.said.clone().unwrap_or_else(|| "not stated".to_owned())
        })
        .note(format!(
            "As people wrote it in {FILE}, sha256 {}; it is no part of the run's chains.",
            evaluation.sha256()
        ))
        .build()
}

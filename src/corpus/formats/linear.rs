//! What reads texts of corpora, for `crate::linear`. Rows are read by `crate::data`, whose list has them.

use super::folder;
use crate::corpus::split::{RecursiveSplitter, statpearls};
use crate::linear::{self, keep};

#[test]
fn what_reads_a_document_takes_time_in_proportion_to_it() {
    let splitter = RecursiveSplitter { size: 100, overlap: 20 };
    linear::check(&[
        ("folder::sections", &|text| keep(folder::sections(text, "a"))),
        ("folder::sections, headings", &|text| {
            keep(folder::sections(&text.replace('a', "\n# a\n"), "a"))
        }),
        ("recursive::split", &|text| keep(splitter.split(text))),
        ("statpearls::split", &|text| {
            let section = format!("<sec><title>a</title><p>{text}</p></sec>");
            keep(statpearls::split(&format!("<a><title>a</title>{section}</a>")));
        }),
    ]);
}

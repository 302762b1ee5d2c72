//! What reads texts here, for `crate::linear`. Of two texts the second is short: comparing two of any length takes the product of both.

use super::*;
use crate::linear::{self, keep};

const OPINION: &str = "The dose of 7.1 mg, (A) a. 患者 \"e\u{301}\"";

#[test]
fn what_reads_a_text_takes_time_in_proportion_to_it() {
    static WORDS: Pattern = Pattern::new(r"(\p{L}+)[.!?]?");
    let align = |language| move |text: &str| keep(super::align(&[text], OPINION, language));
    linear::check(&[
        ("alignment::align", &align(Language::English)),
        ("alignment::align, Chinese", &align(Language::Chinese)),
        ("alignment::align, Arabic", &align(Language::Arabic)),
        ("arabic::normalise_arabic", &|text| keep(normalise_arabic(text))),
        ("chinese::chinese_words", &|text| keep(chinese_words(text))),
        ("ellipsis::ellipsis", &|text| keep(ellipsis(text, text.len() / 2))),
        ("hidden::spell_hidden", &|text| keep(spell_hidden(text))),
        ("keywords::diff_keywords", &|text| keep(diff_keywords(text, OPINION))),
        ("keywords::diff_keywords, new", &|text| keep(diff_keywords(OPINION, text))),
        ("keywords::split_keywords", &|text| keep(split_keywords(text))),
        ("pattern::is_match", &|text| keep(WORDS.is_match(text))),
        ("pattern::find", &|text| keep(WORDS.find(text))),
        ("pattern::find_iter", &|text| keep(WORDS.find_iter(text).count())),
        ("pattern::captures", &|text| keep(WORDS.captures(text))),
        ("pattern::captures_iter", &|text| keep(WORDS.captures_iter(text).count())),
        ("pattern::replace_all", &|text| keep(WORDS.replace_all(text, "$1"))),
        ("porter::porter_stem", &|text| keep(porter_stem(text))),
        ("spreadsheet::cell", &|text| keep(spreadsheet::cell(text))),
        ("words::split_words", &|text| keep(split_words(text).count())),
        ("words::strip", &|text| keep(strip(text))),
    ]);
}

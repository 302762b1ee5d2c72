//! What reads texts here, for `crate::linear`. Of two texts the second is short: comparing two of any length takes the product of both.

use super::*;
use crate::linear;

const OPINION: &str = "The dose of 7.1 mg, (A) a. 患者 \"e\u{301}\"";

#[test]
fn what_reads_a_text_takes_time_in_proportion_to_it() {
    static WORDS: Pattern = Pattern::new(r"(\p{L}+)[.!?]?");
    let align = |aligner, language| {
        move |text: &str| linear::keep(super::align(&[text], OPINION, language, aligner))
    };
    linear::check(&[
        ("alignment::align", &align(Aligner::SequenceMatcher, Language::English)),
        ("alignment::align, Chinese", &align(Aligner::SequenceMatcher, Language::Chinese)),
        ("alignment::align, Arabic by Eq. 4", &align(Aligner::Lcs, Language::Arabic)),
        ("arabic::normalise_arabic", &|text| linear::keep(normalise_arabic(text))),
        ("chinese::chinese_words", &|text| linear::keep(chinese_words(text))),
        ("ellipsis::ellipsis", &|text| linear::keep(ellipsis(text, text.len() / 2))),
        ("hidden::spell_hidden", &|text| linear::keep(spell_hidden(text))),
        ("keywords::diff_keywords", &|text| linear::keep(diff_keywords(text, OPINION))),
        ("keywords::diff_keywords, new", &|text| linear::keep(diff_keywords(OPINION, text))),
        ("keywords::split_keywords", &|text| linear::keep(split_keywords(text))),
        ("pattern::is_match", &|text| linear::keep(WORDS.is_match(text))),
        ("pattern::find", &|text| linear::keep(WORDS.find(text))),
        ("pattern::find_iter", &|text| linear::keep(WORDS.find_iter(text).count())),
        ("pattern::captures", &|text| linear::keep(WORDS.captures(text))),
        ("pattern::captures_iter", &|text| linear::keep(WORDS.captures_iter(text).count())),
        ("pattern::replace_all", &|text| linear::keep(WORDS.replace_all(text, "$1"))),
        ("porter::porter_stem", &|text| linear::keep(porter_stem(text))),
        ("words::split_words", &|text| linear::keep(split_words(text).count())),
        ("words::strip", &|text| linear::keep(strip(text))),
    ]);
}

//! Items that ask nearly the same, and so stand and fall together: MEDEC and MedErrBench have most of their notes twice, once with an error,
//! MMLU-Pro many of its questions, each with other options.
//!
//! Two notes are near-duplicates where they share at least [`SHARED`] of their words (Dice's coefficient of the words between white
//! space, and of the letters of scripts that write without it, each as often as it comes); a group is all that such pairs link. In MEDEC's
//! files no pair shares between 0.60 and 0.64: either is the same case, or another. Two questions are where they ask the same
//! (`Question::question`), whatever their options: short questions share many words with others.

use std::collections::{BTreeMap, HashMap};

use itertools::{EitherOrBoth, Itertools};

use crate::data::{Item, Question};

/// In tenths, so that no rounding decides.
pub const SHARED: usize = 6;

/// Each item's unit: the place of the first item of its group. What has no text is one by itself.
pub fn units(items: &[Option<&Item>]) -> Vec<usize> {
    if items.iter().any(|item| matches!(item, Some(Item::Note(_)))) {
        let texts = items.iter().map(|item| match item {
            Some(Item::Note(note)) => note.text.as_str(),
            _ => "",
        });
        return alike(&texts.collect::<Vec<_>>());
    }
    let mut first = HashMap::new();
    let mut units: Vec<usize> = (0..items.len()).collect();
    for (unit, item) in units.iter_mut().zip(items) {
        if let Some(Item::Question(question)) = item {
            *unit = *first.entry(asked(question)).or_insert(*unit);
        }
    }
    units
}

/// Words and image. In lower case, for such copies differ in little else.
fn asked(question: &Question) -> (Vec<String>, Option<&str>) {
    let words = question.question.split_whitespace().map(str::to_lowercase);
    (words.collect(), question.image.as_deref())
}

/// The unit of each text.
fn alike(texts: &[&str]) -> Vec<usize> {
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let mut bags: Vec<Vec<u32>> = Vec::with_capacity(texts.len());
    for text in texts {
        let mut bag = Vec::new();
        for word in text.split_whitespace().flat_map(words) {
            let next = numbers.len() as u32;
            bag.push(*numbers.entry(word).or_insert(next));
        }
        bag.sort_unstable();
        bags.push(bag);
    }
    let mut units: Vec<usize> = (0..texts.len()).collect();
    for later in 0..bags.len() {
        for earlier in 0..later {
            let (from, to) = (units[later], units[earlier]);
            if from != to && are_alike(&bags[earlier], &bags[later]) {
                let (keep, drop) = (from.min(to), from.max(to));
                units.iter_mut().filter(|unit| **unit == drop).for_each(|unit| *unit = keep);
            }
        }
    }
    units
}

/// Of what stands between white space: Chinese is written without it, and each of its letters is one.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_alone =
        |letter: char| matches!(letter, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}');
    let parts = text.split_inclusive(is_alone);
    parts.flat_map(move |part| {
        let last = part.chars().next_back().filter(|letter| is_alone(*letter));
        let (word, letter) = part.split_at(part.len() - last.map_or(0, char::len_utf8));
        [word, letter].into_iter().filter(|word| !word.is_empty())
    })
}

/// Of two sorted bags of words.
fn are_alike(left: &[u32], right: &[u32]) -> bool {
    let needed = SHARED * (left.len() + right.len());
    // As many as the shorter has can be shared at most.
    if needed == 0 || 20 * left.len().min(right.len()) < needed {
        return false;
    }
    let words = left.iter().merge_join_by(right, Ord::cmp);
    let shared = words.filter(|word| matches!(word, EitherOrBoth::Both(..))).count();
    20 * shared >= needed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Choice, Format};

    #[test]
    fn texts_that_share_most_of_their_words_are_one_unit() {
        let texts = [
            "He was given oral vancomycin for colitis.",
            "She has a cough.",
            "He was given intravenous vancomycin for colitis.",
            "",
            "",
            "She has the cough.",
        ];
        assert_eq!(alike(&texts), [0, 1, 0, 3, 4, 1]);
        // Three fifths are enough, less is not; a word counts as often as it comes.
        assert_eq!(alike(&["a b c d e", "a b c x y"]), [0, 0]);
        assert_eq!(alike(&["a b c d e", "a b v x y"]), [0, 1]);
        assert_eq!(alike(&["a a a a b", "a b c d e"]), [0, 1]);
    }

    #[test]
    fn each_letter_of_a_script_without_blanks_is_a_word() {
        let found = |text| words(text).collect::<Vec<_>>();
        assert_eq!(found("WBC"), ["WBC"]);
        assert_eq!(found("患者WBC高。"), ["患", "者", "WBC", "高", "。"]);
        assert_eq!(alike(&["患者发热咳嗽", "患者发热腹痛", "孕妇头痛呕吐"]), [0, 0, 2]);
    }

    #[test]
    fn questions_that_ask_the_same_are_one_unit_whatever_their_options() {
        let question = |text: &str, option: &str, image: Option<&str>| {
            Item::Question(Question {
                question: text.to_owned(),
                options: vec![Choice { letter: 'A', text: option.to_owned() }],
                image: image.map(str::to_owned),
                ..Question::default()
            })
        };
        let items = [
            question("Which drug  is first?", "iron", None),
            question("Which drug is last?", "iron", None),
            question("Which drug is First?\n", "zinc", None),
            question("Which drug is first?", "iron", Some("x.png")),
        ];
        let mut items: Vec<Option<&Item>> = items.iter().map(Some).collect();
        items.extend([None, None]);
        assert_eq!(units(&items), [0, 1, 0, 3, 4, 5]);
    }

    #[test]
    #[ignore = "needs WARDROUND_DATA"]
    fn with_data_most_published_notes_and_many_questions_come_twice() {
        let folder = std::env::var("WARDROUND_DATA").unwrap();
        for (file, format, expected) in [
            (
                "medec/MEDEC-MS-TestSet-with-GroundTruth-and-ErrorType.csv",
                Format::Medec,
                [597, 310],
            ),
            ("mederrbench/reviewed_data_EN_test.csv", Format::Mederrbench, [208, 104]),
            ("mederrbench/reviewed_data_CN_test.csv", Format::Mederrbench, [200, 98]),
            ("mederrbench/reviewed_data_ARA_test.csv", Format::Mederrbench, [97, 96]),
            ("mmlu_pro/professional_medicine.jsonl", Format::MmluPro, [254, 164]),
            ("medqa/us_4opt_test.jsonl", Format::Medqa, [1273, 1273]),
        ] {
            let set = crate::data::load(&std::path::Path::new(&folder).join(file), format);
            let units = units(&set.unwrap().items.iter().map(Some).collect::<Vec<_>>());
            let count = units.iter().collect::<std::collections::BTreeSet<_>>().len();
            assert_eq!([units.len(), count], expected, "{file}");
        }
    }

    #[test]
    fn what_a_text_links_is_one_group() {
        let chain = ["a b c d e", "x y z u w", "c d e f g", "e f g h c"];
        assert_eq!(alike(&chain), [0, 1, 0, 0]);
    }
}

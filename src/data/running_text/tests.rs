//! Tests of `running_text.rs`.

use super::*;

#[test]
fn running_text_is_split_at_line_ends_and_after_ends_of_sentences() {
    assert_eq!(
        split(
            "Seen by Dr. Lee at 8 a.m. today.  BP 38.3 C (e.g. high). Why?! \"So.\" Hepatitis A. End\r\n\r\nPlan: rest"
        ),
        [
            "Seen by Dr. Lee at 8 a.m. today.",
            "BP 38.3 C (e.g. high).",
            "Why?!",
            "\"So.\"",
            "Hepatitis A.",
            "End",
            "Plan: rest"
        ]
    );
    assert_eq!(
        split("头痛。发热！（轻。）查体？无"),
        ["头痛。", "发热！", "（轻。）", "查体？", "无"]
    );
    assert_eq!(split("ألم؟ نعم. لا"), ["ألم؟", "نعم.", "لا"]);
    assert!(split(" \n\t").is_empty());
}

#[test]
fn clinical_abbreviations_end_no_sentence() {
    for whole in [
        "Given 500 mg p.o. twice daily.",
        "Given 500 mg p.o. BID for a week.",
        "Ceftriaxone 2 g i.v. every 12 hours.",
        "Cultures grew S. aureus and E. coli.",
        "Morphine 2 mg i.v. q4h p.r.n. for pain.",
        "Seen by Dr. Lee (cf. Fig. 2) at 8 a.m. on the ward.",
        "Smith et al. (2019) disagree.",
        "A 34 y.o. woman, wt. 60 kg, temp. 38.2.",
    ] {
        assert_eq!(split(whole), [whole]);
    }
    assert_eq!(
        split("He takes it p.o. The pain is gone."),
        ["He takes it p.o.", "The pain is gone."]
    );
    assert_eq!(
        split("Discharged at 8 a.m. He felt well."),
        ["Discharged at 8 a.m.", "He felt well."]
    );
    assert_eq!(
        split("He has hepatitis B. She has none."),
        ["He has hepatitis B.", "She has none."]
    );
}

#[test]
fn names_months_and_ellipses_end_no_sentence_where_none_does() {
    for whole in [
        "Seen by Dr. A. Smith and Prof. J. R. Lee on the ward.",
        "He takes Vit. D and Vit. B12 daily.",
        "Seen on Jan. 5 and Sept. 12 of the last year.",
        "CXR... clear, ECG... 2 ectopic beats.",
    ] {
        assert_eq!(split(whole), [whole]);
    }
    assert_eq!(
        split("She came in Jan. She was seen by Dr. A. He found nothing... The CXR was clear."),
        ["She came in Jan.", "She was seen by Dr. A.", "He found nothing...", "The CXR was clear."]
    );
}

#[test]
fn a_number_of_a_list_is_no_sentence() {
    assert_eq!(split("1. Aspirin 100 mg\n2. Rest."), ["1. Aspirin 100 mg", "2. Rest."]);
    assert_eq!(split("1. Aspirin. 2. Rest."), ["1. Aspirin.", "2. Rest."]);
}

const WRAPPED: &str = "\
HISTORY OF PRESENT ILLNESS
The patient is a 63-year-old man who presented with chest pain that
radiated to the left arm. He was given aspirin 325 mg p.o. by the
ambulance crew. On arrival he was afebrile. The ECG was read by Dr.
Lee and showed elevations of the ST segments in the leads II, III and
aVF. He was taken to the catheterisation laboratory.

MEDICATIONS
- Aspirin 81 mg p.o. daily
- Metoprolol succinate 25 mg p.o. daily, which was begun on the second
  day of the stay
- Atorvastatin 80 mg
Plan: discharge tomorrow with follow-up in the clinic of cardiology in
Springfield
Allergies: none
";

#[test]
fn hard_wrapped_lines_are_one_sentence_and_lists_and_headings_stay() {
    let found: Vec<String> = split(WRAPPED).into_iter().map(one_line).collect();
    assert_eq!(
        found,
        [
            "HISTORY OF PRESENT ILLNESS",
            "The patient is a 63-year-old man who presented with chest pain that radiated to the left arm.",
            "He was given aspirin 325 mg p.o. by the ambulance crew.",
            "On arrival he was afebrile.",
            "The ECG was read by Dr. Lee and showed elevations of the ST segments in the leads II, III and aVF.",
            "He was taken to the catheterisation laboratory.",
            "MEDICATIONS",
            "- Aspirin 81 mg p.o. daily",
            "- Metoprolol succinate 25 mg p.o. daily, which was begun on the second day of the stay",
            "- Atorvastatin 80 mg",
            "Plan: discharge tomorrow with follow-up in the clinic of cardiology in Springfield",
            "Allergies: none",
        ]
    );
}

#[test]
fn lines_that_stand_for_themselves_stay() {
    for text in [
        "aspirin\nmetoprolol\nlisinopril",
        "Aspirin 81 mg\nMetoprolol succinate 25 mg twice daily\nLisinopril 10 mg",
        "Follow up with primary care in two weeks\nReturn precautions were given",
        "Assessment and plan for the next two days:\npneumonia, to be treated",
        "Blood pressure was normal throughout\nHeart rate: 80",
    ] {
        assert_eq!(split(text), text.lines().collect::<Vec<_>>());
    }
}

/// With a loop within the loop, texts of this length take many minutes.
#[test]
fn long_texts_of_every_kind_are_split_in_linear_time() {
    for piece in [
        "dr. ",
        ". ",
        ".",
        "a ",
        "\n",
        "1. ",
        "\".\" ",
        ".\"",
        "line without an end\n",
        " ",
        "(((",
        "A. b ",
        "A line that is long enough to go on\nin the next one, and so on\n",
    ] {
        let text = format!("    {}{}", " ".repeat(40_000), piece.repeat(60_000));
        let length: usize = split(&text).iter().map(|sentence| sentence.len()).sum();
        assert!(length <= text.len());
    }
}

/// Of all ends of sentences within notes: those that are found, those that are there, and those that are both.
#[derive(Default)]
struct Ends {
    found: usize,
    there: usize,
    both: usize,
}

impl Ends {
    fn add(&mut self, sentences: &[String]) {
        let length = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
        let ends = |sentences: Vec<&str>| -> Vec<usize> {
            let sums = sentences.iter().scan(0, |sum, sentence| {
                *sum += length(sentence);
                Some(*sum)
            });
            sums.take(sentences.len() - 1).collect()
        };
        let there = ends(sentences.iter().map(String::as_str).collect());
        let found = ends(split(&sentences.join(" ")));
        self.both += found.iter().filter(|end| there.contains(end)).count();
        (self.found, self.there) = (self.found + found.len(), self.there + there.len());
    }
}

/// The published sets say where their sentences end. MEDEC's are cut within sentences too, where its sources were wrapped (`90/60 mm` and
/// `Hg`), which is most of what is not found; MedErrBench's Arabic ones end at commas.
///
/// Precision and recall before abbreviations were a list of data: MEDEC 0.9648 and 0.7432, English 0.9993 and 0.9899, Chinese 0.9935 and 1.
#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_sentences_end_where_the_published_sets_end_them() {
    use crate::data::{Format, Item, load};
    let data = std::path::PathBuf::from(std::env::var_os("WARDROUND_DATA").unwrap());
    for (format, files, precision, recall) in [
        (
            Format::Medec,
            [
                "medec/MEDEC-MS-TestSet-with-GroundTruth-and-ErrorType.csv",
                "medec/MEDEC-MS-ValidationSet-with-GroundTruth-and-ErrorType.csv",
            ],
            0.966,
            0.743,
        ),
        (
            Format::Mederrbench,
            [
                "mederrbench/reviewed_data_EN_test.csv",
                "mederrbench/reviewed_data_EN_validation.csv",
            ],
            0.999,
            0.989,
        ),
        (
            Format::Mederrbench,
            [
                "mederrbench/reviewed_data_CN_test.csv",
                "mederrbench/reviewed_data_CN_validation.csv",
            ],
            0.993,
            0.999,
        ),
    ] {
        let mut ends = Ends::default();
        for file in files {
            for item in load(&data.join(file), format).unwrap().items {
                let Item::Note(note) = item else { panic!("a note") };
                ends.add(&note.sentences);
            }
        }
        let share = |of: usize| ends.both as f64 / of as f64;
        let found = (share(ends.found), share(ends.there));
        println!(
            "{}: precision {:.4}, recall {:.4} of {} ends",
            files[0], found.0, found.1, ends.there
        );
        assert!(found.0 >= precision && found.1 >= recall, "{found:?}");
    }
}

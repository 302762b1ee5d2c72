//! The formats of files of questions and notes, and the reader of each.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use super::source::Source;
use super::{
    DataError, Dataset, ItemKind, mcq, medec, mederrbench, medqa, medxpertqa, mmlu_pro, notes,
    pubmedqa,
};

/// The format of a file of questions or notes. Its name is the same on the command line, in plans and in messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
#[derive(Display, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Format {
    /// MedQA's own JSON Lines, with 4 or 5 options
    Medqa,
    /// PubMedQA's ori_pqal.json, with test_ground_truth.json beside it
    Pubmedqa,
    /// MMLU-Pro as JSON Lines; its professional medicine questions
    MmluPro,
    /// MedXpertQA's texts, with ten options
    Medxpertqa,
    /// Your own questions, as JSON Lines or CSV
    #[default]
    Mcq,
    /// MEDEC's CSV; of it the notes of MEDEC-MS
    Medec,
    /// MedErrBench's CSV, in English, Chinese or Arabic
    Mederrbench,
    /// Your own notes, as a folder of .txt files, JSON Lines or CSV
    Notes,
}

type Read = fn(&Source) -> Result<Dataset, DataError>;

impl Format {
    /// The table of formats: the kind of the items, and what reads them.
    fn row(self) -> (ItemKind, Read) {
        use ItemKind::{Notes, Questions};
        match self {
            Format::Medqa => (Questions, medqa::read),
            Format::Pubmedqa => (Questions, pubmedqa::read),
            Format::MmluPro => (Questions, mmlu_pro::read),
            Format::Medxpertqa => (Questions, medxpertqa::read),
            Format::Mcq => (Questions, mcq::read),
            Format::Medec => (Notes, medec::read),
            Format::Mederrbench => (Notes, mederrbench::read),
            Format::Notes => (Notes, notes::read),
        }
    }

    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What is read beside a file of this format, where it is there.
    pub fn beside(self) -> Option<&'static str> {
        (self == Format::Pubmedqa).then_some(pubmedqa::TEST_FILE)
    }

    /// The kind of the items in a file of this format.
    pub fn kind(self) -> ItemKind {
        self.row().0
    }

    pub(super) fn read(self, source: &Source) -> Result<Dataset, DataError> {
        (self.row().1)(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_has_one_name_everywhere() {
        for &format in Format::value_variants() {
            assert_eq!(format.to_string(), format.name());
            assert_eq!(format.to_possible_value().unwrap().get_name(), format.name());
            assert_eq!(serde_json::to_value(format).unwrap(), format.name());
        }
    }
}

//! Published files of other forms, as the files that are read here.

use std::collections::BTreeMap;
use std::path::Path;

use csv::ReaderBuilder;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::console;
use crate::hub::dataset::Conversion;
use crate::outside;
use crate::text::split_keywords;

/// The one subject of MMLU-Pro that is read here.
const SUBJECT: &str = "ori_mmlu-professional_medicine";
/// The ids of MEDEC-MS begin so; other notes of MEDEC are under a data-use agreement.
const FREE_NOTES: &str = "ms-";

/// What comes of the published file `path`.
///
/// # Errors
/// In words: the file is not what the conversion is for.
pub fn convert(conversion: Conversion, path: &Path) -> Result<String, String> {
    match conversion {
        Conversion::MmluPro => mmlu_pro(path),
        Conversion::Keywords => keywords(path),
    }
}

/// The rows of the one subject, as JSON Lines.
fn mmlu_pro(path: &Path) -> Result<String, String> {
    let file = outside::open(path).map_err(|error| error.to_string())?;
    let reader = SerializedFileReader::new(file.into_file()).map_err(|error| error.to_string())?;
    let mut text = String::new();
    for row in reader.get_row_iter(None).map_err(|error| error.to_string())? {
        let row = row.map_err(|error| error.to_string())?.to_json_value();
        if row["src"] == SUBJECT {
            text += &format!("{row}\n");
        }
    }
    Ok(text)
}

/// The keywords of each wrong note of MEDEC-MS, by its id, as JSON.
fn keywords(path: &Path) -> Result<String, String> {
    let failed = |error: csv::Error| error.to_string();
    let mut reader = ReaderBuilder::new().from_path(path).map_err(failed)?;
    let header = reader.headers().map_err(failed)?.clone();
    let column = |name: &str| {
        let mut columns = header.iter();
        let place = columns.position(|column| column.trim().eq_ignore_ascii_case(name));
        place.ok_or_else(|| format!("it has no column `{name}`"))
    };
    let (id, words) = (column("Text ID")?, column("Important Words")?);
    let (mut keywords, mut refused) = (BTreeMap::new(), 0);
    for record in reader.records() {
        let record = record.map_err(failed)?;
        let cell = |place: usize| record.get(place).unwrap_or_default().trim();
        if !cell(id).starts_with(FREE_NOTES) {
            refused += 1;
            continue;
        }
        let named = split_keywords(cell(words));
        let named: Vec<String> = named.into_iter().map(str::to_owned).collect();
        let is_none = matches!(&named[..], [] | [_] if ["", "NA", "nan"].contains(&cell(words)));
        if !is_none {
            keywords.insert(cell(id).to_owned(), named);
        }
    }
    if refused > 0 {
        let agreement = "rows of MEDEC-UW, refused (they are under a data-use agreement)";
        console::note(format!("note: {agreement}: {refused}"));
    }
    let text = serde_json::to_string_pretty(&keywords).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

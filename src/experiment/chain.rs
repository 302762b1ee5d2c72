//! A hash-chained JSONL file: each line carries the hash of its own bytes and that of the line before. Runs have such files, and the audit
//! trail is one, under a key.
//!
//! A line is as [`super::line`] has it. `prev` is the hash of the line before, the first line's that of plan.toml. `seq`,
//! where a record has one, is the line's number counted from 1.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, Read};
use std::path::Path;

use super::error::{Defect, RunError};
use super::line::{self, Hasher};
use super::link::Link;
use crate::appended;
use crate::outside;

/// A log as it was read: every line checked.
#[derive(Clone, Debug)]
pub struct Chain<R: Link> {
    pub records: Vec<R>,
    /// Whole lines.
    pub lines: u64,
    /// The hash that the next line's `prev` must be.
    pub head: String,
    /// Bytes of the whole lines.
    pub bytes: u64,
    /// Bytes behind them, of lines that were being written when the run was killed or the power went; 0 when there are none.
    pub torn_bytes: u64,
    /// The keys that no further line may bear.
    pub settled: HashSet<R::Key>,
}

impl<R: Link> Chain<R> {
    /// A log without lines; `anchor` is the sha256 of plan.toml.
    pub fn empty(anchor: &str) -> Self {
        Chain {
            records: Vec::new(),
            lines: 0,
            head: anchor.to_owned(),
            bytes: 0,
            torn_bytes: 0,
            settled: HashSet::new(),
        }
    }

    /// The lines whose keys no further line may bear.
    pub(super) fn into_settled(self) -> HashMap<R::Key, R> {
        let settled = self.records.into_iter().filter(Link::is_final);
        settled.map(|record| (record.key(), record)).collect()
    }
}

/// The last record of each key.
pub fn by_key<R: Link>(records: &[R]) -> BTreeMap<R::Key, &R> {
    records.iter().map(|record| (record.key(), record)).collect()
}

/// The line, without its newline, that `record` is as number `seq` behind `prev`, and its hash; both are put into the record.
fn place<R: Link>(
    record: &mut R,
    seq: u64,
    prev: &str,
    hasher: &Hasher,
) -> Result<(String, String), RunError> {
    let place = record.place();
    place.seq.into_iter().for_each(|own| *own = seq);
    prev.clone_into(place.prev);
    place.hash.clear();
    let open = serde_json::to_string(record).map_err(|e| RunError::unloggable(record.key(), e))?;
    let Some(fields) = line::without_hash(&open) else {
        return Err(RunError::unloggable(record.key(), "hash is not its last field"));
    };
    let (line, hash) = line::seal(fields, hasher);
    record.place().hash.clone_from(&hash);
    Ok((line, hash))
}

/// Chains `record` behind `prev` as line `seq` and gives the line, without its newline, and its hash.
///
/// Errors when the record would not read back equal from that line, as a confidence of NaN would not.
pub fn seal<R: Link>(
    record: &mut R,
    seq: u64,
    prev: &str,
    hasher: &Hasher,
) -> Result<(String, String), RunError> {
    let (line, hash) = place(record, seq, prev, hasher)?;
    match parse::<R>(line.as_bytes()) {
        Ok(read) if read == *record => Ok((line, hash)),
        Ok(_) => Err(RunError::unloggable(record.key(), "a value changes")),
        Err(defect) => Err(RunError::unloggable(record.key(), defect)),
    }
}

/// Reads a log and checks every line; `anchor` is the sha256 of plan.toml.
///
/// What stands behind the last newline is told apart: what an interrupted write leaves ([`appended`]) is torn, counted in
/// `torn_bytes` and left out; anything else was changed, and that is an error as for any other line.
pub fn read<R: Link>(path: &Path, anchor: &str) -> Result<Chain<R>, RunError> {
    read_each(path, &line::read_file(path)?[..], anchor, &Hasher::default(), |_| true)
}

/// The same of whatever `file` gives, for any hashes. The chain has those of the records that `keep` wants, which sees them in their order.
pub fn read_each<R: Link>(
    path: &Path,
    mut file: impl BufRead,
    anchor: &str,
    hasher: &Hasher,
    mut keep: impl FnMut(&R) -> bool,
) -> Result<Chain<R>, RunError> {
    let mut chain = Chain::<R>::empty(anchor);
    let mut piece = Vec::new();
    while file.by_ref().take(outside::LONGEST_FILE).read_until(b'\n', &mut piece)? > 0 {
        let line = piece.strip_suffix(b"\n").unwrap_or(&piece);
        if line.len() as u64 == outside::LONGEST_FILE {
            let reason = format!("line {} has no end within {} bytes", chain.lines + 1, line.len());
            return Err(RunError::Unreadable { path: path.to_owned(), reason });
        }
        let is_line = |line: &[u8]| check(line, &chain, hasher).is_ok();
        if line.len() == piece.len() && appended::is_unfinished(line, is_line) {
            chain.torn_bytes = line.len() as u64;
            break;
        }
        let (record, hash) = check(line, &chain, hasher).map_err(|defect| RunError::BadLine {
            path: path.to_owned(),
            line: chain.lines as usize + 1,
            defect,
        })?;
        if record.is_final() {
            chain.settled.insert(record.key());
        }
        if keep(&record) {
            chain.records.push(record);
        }
        chain.lines += 1;
        chain.head = hash;
        chain.bytes += piece.len() as u64;
        piece.clear();
    }
    Ok(chain)
}

/// Checks one line by itself and as the next of `chain`: the record and its hash, or the first defect. A line is sound where its record gives
/// the same bytes again.
fn check<R: Link>(line: &[u8], chain: &Chain<R>, hasher: &Hasher) -> Result<(R, String), Defect> {
    let mut record: R = parse(line)?;
    let prev = record.place().prev.clone();
    let again = place(&mut record, chain.lines + 1, &prev, hasher).ok();
    let Some((_, hash)) = again.filter(|(again, _)| again.as_bytes() == line) else {
        return Err(Defect::Other("the line was changed after it was written".to_owned()));
    };
    if prev != chain.head {
        return Err(Defect::Prev { found: prev, expected: chain.head.clone() });
    }
    if chain.settled.contains(&record.key()) {
        return Err(Defect::Other(format!("{} was logged before", record.key())));
    }
    Ok((record, hash))
}

fn parse<R: Link>(line: &[u8]) -> Result<R, Defect> {
    serde_json::from_slice(&line::record(line)?).map_err(|error| Defect::no_record(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::sha256;
    use crate::experiment::fixtures::{call, failed_item, item};
    use crate::record::{CallLine, ItemLine};

    const ANCHOR: &str = "00ff";

    fn chained<R: Link>(records: impl IntoIterator<Item = R>) -> Vec<String> {
        let mut prev = ANCHOR.to_owned();
        let mut lines = Vec::new();
        for (mut record, seq) in records.into_iter().zip(1..) {
            let (line, hash) = seal(&mut record, seq, &prev, &Hasher::default()).unwrap();
            lines.push(line);
            prev = hash;
        }
        lines
    }

    fn calls() -> Vec<String> {
        chained(["sym", "ddx", "guide"].map(|agent| call("q1", 0, agent)))
    }

    fn read_text<R: Link>(text: &str) -> Result<Chain<R>, RunError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(R::FILE);
        fs_err::write(&path, text).unwrap();
        read(&path, ANCHOR)
    }

    fn defect<R: Link>(lines: &[String]) -> (usize, Defect) {
        match read_text::<R>(&(lines.join("\n") + "\n")).map(|chain| chain.records.len()) {
            Err(RunError::BadLine { line, defect, .. }) => (line, defect),
            other => panic!("{other:?}"),
        }
    }

    /// A record's line with the right hash over whatever `edit` makes of the rest.
    fn forge(line: &str, edit: impl Fn(&str) -> String) -> String {
        let fields = line.strip_prefix("{\"schema\":1,").unwrap();
        let (fields, _) = fields.rsplit_once(",\"hash\":").unwrap();
        line::seal(&edit(fields), &Hasher::default()).0
    }

    #[test]
    fn the_hash_is_that_of_the_object_without_it() {
        assert_eq!(
            sha256(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let line = &calls()[0];
        let mut object: serde_json::Map<_, _> = serde_json::from_str(line).unwrap();
        let hash = object.shift_remove("hash").unwrap();
        let rest = serde_json::to_string(&object).unwrap();
        assert_eq!(hash, sha256(rest.as_bytes()));
        assert_eq!(object["prev"], ANCHOR);
        assert_eq!(object["seq"], 1);
        assert!(line.starts_with("{\"schema\":1,\"seq\":1,"), "{line}");
    }

    #[test]
    fn records_read_back_equal() {
        let mut first = ItemLine::from(item("q1", 0));
        let mut second = ItemLine::from(item("q2", 0));
        let plain = Hasher::default();
        let (one, head) = seal(&mut first, 1, ANCHOR, &plain).unwrap();
        let (two, last) = seal(&mut second, 2, &head, &plain).unwrap();
        let text = format!("{one}\n{two}\n");
        let chain: Chain<ItemLine> = read_text(&text).unwrap();
        assert_eq!(chain.head, last);
        assert_eq!(chain.bytes, text.len() as u64);
        assert_eq!(chain.torn_bytes, 0);
        assert_eq!(chain.records, [first, second]);
    }

    #[test]
    fn a_record_that_json_cannot_hold_is_refused() {
        let mut record = item("q1", 0);
        record.team_confidence = Some(f64::NAN);
        let error = seal(&mut ItemLine::from(record), 1, ANCHOR, &Hasher::default()).unwrap_err();
        assert!(error.to_string().contains("would not read back"), "{error}");
    }

    #[test]
    fn each_defect_has_its_name() {
        let lines = calls();

        let mut changed = lines.clone();
        changed[1] = changed[1].replace("0.85", "0.86");
        let (line, found) = defect::<CallLine>(&changed);
        assert!(line == 2 && found.to_string().starts_with("the line was changed"), "{found}");

        let mut changed = lines.clone();
        changed[2] = "{}".to_owned();
        let (line, found) = defect::<CallLine>(&changed);
        assert!(
            line == 3 && found.to_string().contains("does not begin with its schema"),
            "{found}"
        );

        let swapped = [lines[0].clone(), lines[2].clone(), lines[1].clone()];
        let (line, found) = defect::<CallLine>(&swapped);
        assert!(line == 2 && found.to_string().starts_with("the line was changed"), "{found}");

        let mut changed = lines.clone();
        changed[1] = forge(&lines[1], |body| body.replace("\"run\":0", "\"run\": 0"));
        let (line, found) = defect::<CallLine>(&changed);
        assert!(line == 2 && found.to_string().starts_with("the line was changed"), "{found}");

        changed[1] = forge(&lines[1], |body| body.replace("\"run\":0", "\"runs\":0"));
        let (line, found) = defect::<CallLine>(&changed);
        assert!(found.to_string().contains("unknown field `runs`"), "{found}");
        assert_eq!(line, 2);

        let newer = lines[1].replace("\"schema\":1,", "\"schema\":2,");
        changed[1] = newer;
        assert_eq!(defect::<CallLine>(&changed), (2, Defect::Schema { found: 2 }));

        // Rewritten with a right hash of its own: only the next line still tells.
        changed[1] = forge(&lines[1], |body| body.replace("0.85", "0.86"));
        let (line, found) = defect::<CallLine>(&changed);
        assert!(matches!((line, &found), (3, Defect::Prev { .. })), "{found}");
    }

    #[test]
    fn a_key_is_logged_once_unless_it_errored() {
        let calls = chained([call("q1", 0, "sym"), call("q1", 0, "sym")]);
        let (line, found) = defect::<CallLine>(&calls);
        assert!(line == 2 && found.to_string().ends_with("was logged before"), "{found}");

        let items = chained(
            [failed_item("q1", 0), failed_item("q1", 0), item("q1", 0)].map(ItemLine::from),
        );
        let chain: Chain<ItemLine> = read_text(&(items.join("\n") + "\n")).unwrap();
        assert_eq!(chain.records.len(), 3);

        let items = chained([item("q1", 0), failed_item("q1", 0)].map(ItemLine::from));
        let (line, found) = defect::<ItemLine>(&items);
        assert!(line == 2 && found.to_string().ends_with("was logged before"), "{found}");
    }

    #[test]
    fn a_torn_last_line_is_told_from_a_changed_one() {
        let lines = calls();
        let whole = format!("{}\n{}\n", lines[0], lines[1]);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("calls.jsonl");
        fs_err::write(&path, format!("{whole}{}", lines[2])).unwrap();
        let file = fs_err::OpenOptions::new().write(true).open(&path).unwrap();
        // Byte by byte: a kill may fall inside a character.
        for torn_bytes in (0..=lines[2].len() as u64).rev() {
            file.set_len(whole.len() as u64 + torn_bytes).unwrap();
            let chain: Chain<CallLine> = read(&path, ANCHOR).unwrap();
            assert_eq!(chain.torn_bytes, torn_bytes);
            assert_eq!(chain.bytes, whole.len() as u64);
            assert_eq!(chain.records.len(), 2);
        }
        for tail in [
            format!("{}x", lines[2]),
            format!("{} ", lines[2]),
            lines[2].replace("0.85", "0.86"),
            lines[2].replace("0.85", "0.86") + "\0\0",
            lines[2][1..].to_owned(),
            "not a line".to_owned(),
        ] {
            let error = read_text::<CallLine>(&format!("{whole}{tail}")).unwrap_err();
            assert!(matches!(error, RunError::BadLine { line: 3, .. }), "{error}");
        }
    }

    #[test]
    fn an_empty_log_ends_where_the_plan_does() {
        let chain: Chain<CallLine> = read_text("").unwrap();
        assert_eq!((chain.head.as_str(), chain.bytes), (ANCHOR, 0));
        let error = read::<CallLine>(Path::new("no/such/calls.jsonl"), ANCHOR).unwrap_err();
        assert_eq!(error.to_string(), "no/such/calls.jsonl is missing");
    }
}

//! Whether a trail still says what it said: every line's hash and place, the heads that were told, and the texts that are kept.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::event::SUMS;
use super::files::{self, ANCHOR, Line};
use super::key::Key;
use super::read::{self, RawLine};
use super::{Head, content, forget, head};
use crate::diagnosis::Failure;

/// Problems that are told; the rest are counted.
pub const MOST_PROBLEMS: usize = 50;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    pub lines: u64,
    pub files: usize,
    /// The last line.
    pub head: Option<Head>,
    /// Heads that were compared.
    pub heads: usize,
    pub texts: Texts,
    /// Sums of lines whose key is not there: nothing can be compared with them.
    pub unchecked: u64,
    /// What is no problem and yet worth a word.
    pub notes: Vec<String>,
    /// At most [`MOST_PROBLEMS`].
    pub problems: Vec<String>,
    pub problem_count: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    pub kept: usize,
    pub forgotten: usize,
}

/// Checks the trail of a directory against itself, against the head beside it, and against `heads` that were kept elsewhere.
///
/// # Errors
/// A directory without a trail; files that cannot be read. What is wrong with the trail is in the result.
pub fn verify(directory: &Path, heads: &[Head]) -> Result<Verified, Failure> {
    let mut expected: BTreeMap<u64, HashSet<&str>> = BTreeMap::new();
    let beside: Vec<Head> = Head::beside(directory)?.into_iter().collect();
    // Before the first line there is nothing to compare.
    for head in heads.iter().chain(&beside).filter(|head| head.seq > 0) {
        expected.entry(head.seq).or_default().insert(&head.hash);
    }
    let found = Verified {
        files: files::all(directory)?.len(),
        heads: expected.values().map(HashSet::len).sum(),
        ..Verified::default()
    };
    let mut check = Check {
        found,
        prev: Some(ANCHOR.to_owned()),
        seq: 0,
        texts: HashMap::new(),
        keys: vec![Sums::default()],
        open: HashSet::new(),
        forgotten: HashSet::new(),
        expected,
        last: None,
    };
    read::raw(directory, |raw| {
        check.take(raw);
        Ok(())
    })?;
    check.compare_missing_heads();
    if beside.is_empty() {
        check.problem(format!("{} is missing: it is written before the first line", head::FILE));
    }
    if heads.is_empty() {
        check.found.notes.push(
            "without heads that were kept elsewhere (--heads), a trail that was cut or written again together with its head is not told apart".to_owned(),
        );
    }
    if !check.open.is_empty() {
        let open = check.open.len();
        check.found.notes.push(format!(
            "{open} calls were begun and have no end: they run, or their process was killed; what was read of them is not known"
        ));
    }
    check.compare_texts(directory)?;
    check.found.head = check.last;
    Ok(check.found)
}

struct Check<'a> {
    found: Verified,
    /// The hash that the next line must name; `None` behind a line that could not be read.
    prev: Option<String>,
    seq: u64,
    /// By the text's id.
    texts: HashMap<String, Kept>,
    /// The keys that sums were made with, one after another; one at least.
    keys: Vec<Sums>,
    /// Calls that were begun, and whose end no line tells yet.
    open: HashSet<String>,
    forgotten: HashSet<String>,
    /// Heads that no line was compared with yet.
    expected: BTreeMap<u64, HashSet<&'a str>>,
    last: Option<Head>,
}

/// The line of a text.
struct Kept {
    place: String,
    line: Line,
    /// Which of the trail's keys its sums are made with.
    key: usize,
}

/// The sums that one key made.
#[derive(Default)]
struct Sums {
    /// `None` where no line tells.
    fingerprint: Option<String>,
    count: u64,
}

impl Check<'_> {
    fn problem(&mut self, text: String) {
        self.found.problem_count += 1;
        if self.found.problems.len() < MOST_PROBLEMS {
            self.found.problems.push(text);
        }
    }

    fn take(&mut self, raw: &RawLine) {
        if !raw.is_whole && files::is_unfinished(&raw.bytes) {
            let (place, bytes) = (raw.place(), raw.bytes.len());
            let note = format!("{place} is cut short; the next start cuts its {bytes} bytes off");
            return self.found.notes.push(note);
        }
        self.found.lines += 1;
        let line = match Line::open(&raw.bytes) {
            Ok(line) => line,
            Err(why) => {
                (self.prev, self.seq) = (None, self.seq + 1);
                return self.problem(format!("{}: {why}", raw.place()));
            }
        };
        let seq = line.seq();
        if seq != self.seq + 1 {
            let expected = self.seq + 1;
            self.problem(format!(
                "{} has number {seq} where {expected} is due: lines were cut out, put in or moved",
                raw.place()
            ));
        } else if self.prev.as_deref().is_some_and(|prev| prev != line.prev()) {
            self.problem(format!("{} does not follow the line before", raw.place()));
        }
        (self.seq, self.prev) = (seq, Some(line.hash.clone()));
        for hash in self.expected.remove(&seq).unwrap_or_default() {
            if hash != line.hash {
                self.problem(format!(
                    "{} is not the line {seq} whose head was told ({}…): the trail was written again from there or before",
                    raw.place(),
                    &hash[..16]
                ));
            }
        }
        self.last = Some(Head { seq, hash: line.hash.clone() });
        self.note(raw, line);
    }

    /// What a line says of others.
    fn note(&mut self, raw: &RawLine, line: Line) {
        self.note_key(raw, &line);
        for id in forget::ids(&line) {
            self.refuse_strange(raw, &id);
            self.forgotten.insert(id);
        }
        match line.text("event") {
            "begun" => {
                self.open.insert(line.text("call").to_owned());
            }
            "accept" => self.found.notes.push(format!(
                "{}: {}; {} went on: {}",
                raw.place(),
                line.text("problem"),
                line.text("actor"),
                line.text("why")
            )),
            _ => {
                self.open.remove(line.text("call"));
            }
        }
        let id = line.text("content").to_owned();
        if !id.is_empty() && self.refuse_strange(raw, &id) {
            let key = self.keys.len() - 1;
            self.texts.insert(id, Kept { place: raw.place(), line, key });
        }
    }

    /// Whether a text can have this id; another would lead out of the directory.
    fn refuse_strange(&mut self, raw: &RawLine, id: &str) -> bool {
        let refused = content::refuse_strange(id);
        if let Err(why) = &refused {
            self.problem(format!("{}: {why}", raw.place()));
        }
        refused.is_ok()
    }

    /// Which key a line says that sums are made with from here on, and how many it has.
    fn note_key(&mut self, raw: &RawLine, line: &Line) {
        if let Some(fingerprint) = line.fingerprint() {
            let is_accepted = line.text("event") == "accept" && !line.text("former_key").is_empty();
            let known = self.keys.last().and_then(|sums| sums.fingerprint.as_deref());
            let is_other = known.is_some_and(|known| known != fingerprint);
            if is_other && !is_accepted {
                self.problem(format!(
                    "{}: the trail has another key than before, and no line accepts it",
                    raw.place()
                ));
            }
            if is_other || is_accepted {
                self.keys.push(Sums::default());
            }
            if let Some(sums) = self.keys.last_mut() {
                sums.fingerprint = Some(fingerprint.to_owned());
            }
        }
        let own = SUMS.iter().filter(|name| line.fields.get(**name).is_some_and(Value::is_string));
        let count = own.count() as u64;
        if let Some(sums) = self.keys.last_mut() {
            sums.count += count;
        }
    }

    /// Which of the trail's keys is the one that is there.
    fn keys_at_hand(&mut self, key: Option<&Key>) -> Vec<bool> {
        let Some(key) = key else { return vec![false; self.keys.len()] };
        let own = key.fingerprint();
        let last = self.keys.len() - 1;
        let is_own = |(index, sums): (usize, &Sums)| match &sums.fingerprint {
            Some(told) => *told == own,
            None => index == last,
        };
        let at_hand: Vec<bool> = self.keys.iter().enumerate().map(is_own).collect();
        if at_hand.last() == Some(&false) {
            self.problem("the key is not the one that the trail was last started with".to_owned());
        }
        at_hand
    }

    /// A head of a line that there is not: the end was cut off.
    fn compare_missing_heads(&mut self) {
        let missing: Vec<u64> = self.expected.keys().copied().collect();
        let end = self.seq;
        for seq in missing {
            self.problem(format!(
                "the head of line {seq} was told, and the trail ends with line {end}: its end was cut off"
            ));
        }
    }

    fn compare_texts(&mut self, directory: &Path) -> Result<(), Failure> {
        let key = Key::find(directory)?;
        let at_hand = self.keys_at_hand(key.as_ref());
        let without = self.keys.iter().zip(&at_hand).filter(|(_, is_there)| !**is_there);
        self.found.unchecked = without.map(|(sums, _)| sums.count).sum();
        let mut texts: Vec<(String, Kept)> = self.texts.drain().collect();
        texts.sort_by(|one, other| one.0.cmp(&other.0));
        let named: HashSet<&str> = texts.iter().map(|(id, _)| id.as_str()).collect();
        let strays: Vec<PathBuf> = content::list(directory)?
            .into_iter()
            .filter(|path| content::id(path).is_none_or(|id| !named.contains(id)))
            .collect();
        let is_elsewhere = content::list(directory)?.is_empty() && key.is_none();
        for (id, Kept { place, line, key: of_line }) in &texts {
            match (self.forgotten.contains(id), content::exists(directory, id)) {
                (true, true) => self.problem(format!(
                    "the text {id} was to be deleted and is there: run `wardround audit forget` again"
                )),
                (true, false) => self.found.texts.forgotten += 1,
                (false, true) => {
                    self.found.texts.kept += 1;
                    if at_hand[*of_line]
                        && let Err(why) = content::read(directory, line, key.as_ref())
                    {
                        self.problem(format!("{place}: {why}"));
                    }
                }
                (false, false) if is_elsewhere => {}
                (false, false) => {
                    self.problem(format!("{place}: the text {id} is missing, and no line says that it was deleted"));
                }
            }
        }
        if !strays.is_empty() {
            self.found.notes.push(format!(
                "{} texts belong to no line, since a process was killed; `wardround audit forget` deletes them",
                strays.len()
            ));
        }
        Ok(())
    }
}

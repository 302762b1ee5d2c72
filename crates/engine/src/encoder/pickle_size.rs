//! What a pickle of weights would become in memory, counted before it is read: a few hundred bytes can describe more than any machine
//! holds, or nest deeper than any thread's stack. Nothing of it is built here.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use candle_core::{Error, Result};

use crate::outside;

/// Of the pickles before the numbers; those of published encoders have a hundredth.
const LONGEST: u64 = 16 << 20;
/// Objects, copies from the memo counted once more each.
const MOST_OBJECTS: u64 = 1 << 20;
/// Tensors of published encoders nest to eight.
const DEEPEST: u32 = 64;
/// With which a file begins that is a zip archive.
const ZIP: &[u8] = b"PK\x03\x04";

/// # Errors
/// A pickle that becomes too large or too deep, or is malformed.
pub(super) fn check(path: &Path) -> Result<()> {
    let mut file = outside::open(path)?;
    let mut head = [0; 4];
    let is_zip = file.read_exact(&mut head).is_ok() && head == *ZIP;
    file.seek(SeekFrom::Start(0))?;
    if !is_zip {
        let mut bytes = Vec::new();
        file.take(LONGEST).read_to_end(&mut bytes)?;
        // The magic number, the protocol, the system, the tensors by name, the keys of the storages.
        let mut rest = bytes.as_slice();
        for _ in 0..5 {
            rest = after_one(rest)?;
        }
        return Ok(());
    }
    let mut archive = zip::ZipArchive::new(file).map_err(Error::wrap)?;
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(Error::wrap)?;
        let is_pickle = entry.name().map_err(Error::wrap)?.ends_with("data.pkl");
        if is_pickle {
            let mut bytes = Vec::new();
            entry.take(LONGEST).read_to_end(&mut bytes)?;
            after_one(&bytes)?;
        }
    }
    Ok(())
}

/// An object: how deep it nests, and of how many it is made.
#[derive(Clone, Copy)]
struct Made {
    depth: u32,
    objects: u64,
}

#[derive(Default)]
struct Machine {
    stack: Vec<Made>,
    marks: Vec<usize>,
    memo: HashMap<u32, Made>,
    objects: u64,
}

impl Machine {
    fn push(&mut self, made: Made) -> Result<()> {
        self.objects += made.objects;
        if self.objects > MOST_OBJECTS || made.depth > DEEPEST {
            let problem = format!(
                "its pickle is made of more than {MOST_OBJECTS} objects, or nests deeper than {DEEPEST}"
            );
            return Err(Error::Msg(problem));
        }
        self.stack.push(made);
        Ok(())
    }

    /// Joins all from `start` on into one object.
    fn join(&mut self, start: usize) -> Result<()> {
        let parts = self.stack.split_off(start);
        let depth = parts.iter().map(|part| part.depth).max().unwrap_or(0);
        let objects = parts.iter().map(|part| part.objects).sum::<u64>();
        // They are moved, not copied.
        self.objects = self.objects.saturating_sub(objects);
        self.push(Made { depth: depth + 1, objects: objects.saturating_add(1) })
    }

    fn join_last(&mut self, count: usize) -> Result<()> {
        let start = self.stack.len().checked_sub(count).ok_or_else(malformed)?;
        self.join(start)
    }

    fn remember(&mut self, place: u32) -> Result<()> {
        let top = *self.stack.last().ok_or_else(malformed)?;
        self.objects = self.objects.saturating_add(top.objects);
        self.memo.insert(place, top);
        Ok(())
    }

    fn recall(&mut self, place: u32) -> Result<()> {
        let made = *self.memo.get(&place).ok_or_else(malformed)?;
        self.push(made)
    }
}

fn malformed() -> Error {
    Error::Msg("the pickle is malformed".to_owned())
}

/// What follows the first pickle.
fn after_one(mut rest: &[u8]) -> Result<&[u8]> {
    let mut machine = Machine::default();
    let leaf = Made { depth: 1, objects: 1 };
    loop {
        let operation = take(&mut rest, 1)?[0];
        match operation {
            b'.' => return Ok(rest),
            0x80 => drop(take(&mut rest, 1)?),
            b'(' => machine.marks.push(machine.stack.len()),
            b'q' => machine.remember(number(&mut rest, 1)?)?,
            b'r' => machine.remember(number(&mut rest, 4)?)?,
            b'h' => machine.recall(number(&mut rest, 1)?)?,
            b'j' => machine.recall(number(&mut rest, 4)?)?,
            b'c' => {
                for _ in 0..2 {
                    let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(malformed)?;
                    take(&mut rest, end + 1)?;
                }
                machine.push(leaf)?;
            }
            b'X' => {
                let length = number(&mut rest, 4)? as usize;
                take(&mut rest, length)?;
                machine.push(leaf)?;
            }
            0x8a => {
                let length = number(&mut rest, 1)? as usize;
                take(&mut rest, length)?;
                machine.push(leaf)?;
            }
            b'J' | b'K' | b'M' | b'G' => {
                let length = [(b'J', 4), (b'K', 1), (b'M', 2), (b'G', 8)];
                let length = length.iter().find(|(name, _)| *name == operation);
                take(&mut rest, length.map_or(0, |(_, length)| *length))?;
                machine.push(leaf)?;
            }
            b')' | b']' | b'}' | b'N' | 0x88 | 0x89 => machine.push(leaf)?,
            0x85 | b'Q' => machine.join_last(1)?,
            0x86 | b'R' | b'b' | b'a' | 0x81 => machine.join_last(2)?,
            0x87 | b's' => machine.join_last(3)?,
            b't' | b'd' => {
                let start = machine.marks.pop().ok_or_else(malformed)?;
                machine.join(start.min(machine.stack.len()))?;
            }
            // Into what stands before the mark.
            b'u' | b'e' => {
                let start = machine.marks.pop().ok_or_else(malformed)?;
                machine.join(start.min(machine.stack.len()).saturating_sub(1))?;
            }
            other => return Err(Error::Msg(format!("its pickle has an operation {other:#04x}"))),
        }
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(count).ok_or_else(malformed)?;
    *rest = after;
    Ok(taken)
}

/// A whole number of so many bytes, the lowest first.
fn number(rest: &mut &[u8], bytes: usize) -> Result<u32> {
    let taken = take(rest, bytes)?;
    Ok(taken.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pickle_that_doubles_or_nests_is_refused_and_a_plain_one_is_not() {
        let problem = |bytes: &[u8]| after_one(bytes).map(<[u8]>::len).map_err(|e| e.to_string());
        // {'a': (1, 2)}
        assert_eq!(problem(b"\x80\x02}q\0X\x01\0\0\0aK\x01K\x02\x86s.xy"), Ok(2));
        assert_eq!(problem(b"\x80\x02}q\0(X\x01\0\0\0aK\x01K\x02\x86u."), Ok(0));
        let mut doubles = b"\x80\x02X\x02\0\0\0abq\0".to_vec();
        for place in 0..39 {
            doubles.extend([b'h', place, b'h', place, 0x86, b'q', place + 1]);
        }
        doubles.push(b'.');
        assert!(problem(&doubles).unwrap_err().contains("more than"));
        let nests = [b"\x80\x02N".as_slice(), &[0x85; 2_000_000], b"."].concat();
        assert!(problem(&nests).unwrap_err().contains("nests deeper"));
        for bytes in [&b"\x86."[..], b"", b"t.", b"h\0.", b"X\xff\0\0\0a.", b"\xff."] {
            problem(bytes).unwrap_err();
        }
    }
}

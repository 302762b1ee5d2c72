//! The download of one file: into an incomplete file beside the destination, continued where the last one stopped.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::thread;

use fs_err::File;

use super::super::{HubError, sha256_file};
use super::client::{Client, bad, unreachable};
use crate::outside;

/// A download gives up after this many attempts in a row that bring nothing; the pauses between them double.
const FRUITLESS_ATTEMPTS: u32 = 5;
const BUFFER_BYTES: usize = 1 << 18;

/// A published file, before its download.
pub struct RemoteFile {
    pub url: String,
    /// `None`: whoever sends it says so. Then what arrived earlier is not taken up.
    pub size_bytes: Option<u64>,
}

/// Downloads a file up to its full size into `path`, going on where an earlier download or connection broke off;
/// returns its sha256. `tell` is told how many bytes of the file are here, and how many it has.
///
/// # Errors
/// The hub refuses, several connections in a row bring nothing, or the file cannot be written. What arrived stays.
pub fn download(
    client: &Client,
    remote: &RemoteFile,
    path: &Path,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<String, HubError> {
    fs_err::create_dir_all(path.parent().unwrap_or(path))?;
    let mut file = outside::open_to_write(path)?;
    if !outside::lock(&file)? {
        return Err(HubError::Busy { path: path.to_owned() });
    }
    let mut size = remote.size_bytes;
    if size.is_none_or(|size| size < file.metadata().map_or(0, |data| data.len())) {
        file.set_len(0)?;
    }
    let mut fruitless = 0;
    loop {
        let before = file.seek(SeekFrom::End(0))?;
        if size == Some(before) {
            file.sync_all()?;
            return Ok(sha256_file(path)?);
        }
        let ended = append(client, &remote.url, &mut file, before, &mut size, tell);
        fruitless = if file.metadata()?.len() > before { 0 } else { fruitless + 1 };
        let early = || unreachable(&remote.url, "the answers end too early");
        let error = ended.err().unwrap_or_else(early);
        if fruitless == FRUITLESS_ATTEMPTS || !is_passing(&error) {
            return Err(error);
        }
        if fruitless > 0 {
            thread::sleep(client.pause * 2u32.pow(fruitless - 1));
        }
    }
}

/// Whether another attempt may succeed.
fn is_passing(error: &HubError) -> bool {
    match error {
        HubError::Unreachable { .. } => true,
        HubError::Status { status, .. } => matches!(status, 408 | 416 | 429 | 500..),
        _ => false,
    }
}

/// One connection's worth of bytes, behind the first `length` ones.
fn append(
    client: &Client,
    url: &str,
    file: &mut File,
    mut length: u64,
    size: &mut Option<u64>,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<(), HubError> {
    let (offset, body) = client.bytes(url, length)?;
    if offset != length {
        length = offset;
        file.set_len(length)?;
        file.seek(SeekFrom::End(0))?;
    }
    let announced = size.or(body.content_length().map(|rest| length + rest));
    let whole = announced.ok_or_else(|| bad(url, "it does not give the file's size"))?;
    *size = Some(whole);
    // One byte more than there should be tells a file that is too long from one that is whole.
    let mut reader = body.into_reader().take(whole - length + 1);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = reader.read(&mut buffer).map_err(|error| unreachable(url, error))?;
        if count == 0 {
            return Ok(());
        }
        length += count as u64;
        if length > whole {
            file.set_len(0)?;
            return Err(bad(url, format!("more than the {whole} bytes it announced")));
        }
        file.write_all(&buffer[..count])?;
        tell(length, whole);
    }
}

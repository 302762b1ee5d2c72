//! The download of one file: into an incomplete file beside the destination, continued where the last one stopped.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::thread;

use fs_err::File;

use super::super::{HubError, sha256_file};
use super::client::{Client, RemoteFile, bad, unreachable};
use crate::outside;

/// A download gives up after this many attempts in a row that bring nothing; the pauses between them double.
const FRUITLESS_ATTEMPTS: u32 = 5;
const BUFFER_BYTES: usize = 1 << 18;

/// Downloads a file up to its full size into `path`, going on where an earlier download or connection broke off;
/// returns its sha256. `tell` is told how many bytes of the file are here.
///
/// # Errors
/// The hub refuses, several connections in a row bring nothing, or the file cannot be written. What arrived stays.
pub fn download(
    client: &Client,
    remote: &RemoteFile,
    path: &Path,
    tell: &mut dyn FnMut(u64),
) -> Result<String, HubError> {
    fs_err::create_dir_all(path.parent().unwrap_or(path))?;
    let mut file = outside::open_to_write(path)?;
    if !outside::lock(&file)? {
        return Err(HubError::Busy { path: path.to_owned() });
    }
    if file.metadata()?.len() > remote.size_bytes {
        file.set_len(0)?;
    }
    let mut fruitless = 0;
    loop {
        let before = file.seek(SeekFrom::End(0))?;
        tell(before);
        if before == remote.size_bytes {
            file.sync_all()?;
            return Ok(sha256_file(path)?);
        }
        let ended = append(client, remote, &mut file, before, tell);
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
    remote: &RemoteFile,
    file: &mut File,
    mut length: u64,
    tell: &mut dyn FnMut(u64),
) -> Result<(), HubError> {
    let (offset, body) = client.bytes(&remote.url, length)?;
    if offset != length {
        length = offset;
        file.set_len(length)?;
        tell(file.seek(SeekFrom::End(0))?);
    }
    // One byte more than there should be tells a file that is too long from one that is whole.
    let mut reader = body.into_reader().take(remote.size_bytes - length + 1);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = reader.read(&mut buffer).map_err(|error| unreachable(&remote.url, error))?;
        if count == 0 {
            return Ok(());
        }
        length += count as u64;
        if length > remote.size_bytes {
            file.set_len(0)?;
            let reason = format!("more than the {} bytes it announced", remote.size_bytes);
            return Err(bad(&remote.url, reason));
        }
        file.write_all(&buffer[..count])?;
        tell(length);
    }
}

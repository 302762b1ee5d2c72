//! `data`: datasets from a host on the loopback, killed and taken up, changed, verified, and read by a recipe.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::Value;
use wardround::digest::sha256;
use wardround::hub::{Conversion, DatasetCard};
use wardround::model::Family;

use crate::binary::{Outcome, Scratch, size};
use crate::determinism::wait_until;

/// Bytes of a file after which the host falls silent, where it does.
const SILENT_AFTER: usize = 50_000;

/// A host of files, by their addresses.
pub struct Host {
    pub address: String,
    /// Each request as `PATH RANGE`.
    requests: Mutex<Receiver<String>>,
    /// Whether files longer than [`SILENT_AFTER`] stop there.
    is_silent: Arc<AtomicBool>,
}

impl Host {
    pub fn serve(files: Vec<(String, Vec<u8>)>) -> Host {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = channel();
        let is_silent = Arc::new(AtomicBool::new(false));
        let (files, flag) = (Arc::new(files), Arc::clone(&is_silent));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (files, sender, flag) = (Arc::clone(&files), sender.clone(), Arc::clone(&flag));
                thread::spawn(move || answer(stream, &files, &sender, &flag));
            }
        });
        Host { address, requests: Mutex::new(requests), is_silent }
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().try_iter().collect()
    }
}

fn answer(
    mut stream: TcpStream,
    files: &[(String, Vec<u8>)],
    sender: &Sender<String>,
    is_silent: &AtomicBool,
) {
    let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let range = lines.take_while(|line| !line.is_empty()).find_map(|line| {
        let line = line.to_ascii_lowercase();
        Some(line.strip_prefix("range: bytes=")?.strip_suffix('-')?.to_owned())
    });
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap().trim_start_matches('/'));
    let start: usize = range.as_deref().map_or(0, |start| start.parse().unwrap());
    let _ = sender.send(format!("{path} {}", range.unwrap_or_default()));
    let Some((_, bytes)) = files.iter().find(|(name, _)| name == path) else {
        let _ = stream.write_all(b"HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n");
        return;
    };
    let (end, body) = (bytes.len(), &bytes[start.min(bytes.len())..]);
    let status = if start > 0 { 206 } else { 200 };
    let head = format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\netag: \"{}\"\r\ncontent-length: {}\r\n\
         content-range: bytes {start}-{}/{end}\r\n\r\n",
        &sha256(bytes)[..40],
        body.len(),
        end.saturating_sub(1)
    );
    let _ = stream.write_all(head.as_bytes());
    if method == "HEAD" {
        return;
    }
    if is_silent.load(Ordering::Relaxed) && body.len() > SILENT_AFTER {
        let _ = stream.write_all(&body[..SILENT_AFTER]);
        return thread::sleep(Duration::from_secs(60));
    }
    let _ = stream.write_all(body);
}

fn fetch(scratch: &Scratch, names: &str) -> Outcome {
    scratch.wardround(format!("data fetch {names} --to fetched"))
}

/// A card of one file, which the host has by the card's name; gives the file's address.
fn card(
    scratch: &Scratch,
    host: &Host,
    name: &str,
    path: &str,
    bytes: &[u8],
    more: &str,
) -> String {
    let url = format!("{}/own/{name}", host.address);
    let text = format!(
        "name = \"{name}\"\ntitle = \"t\"\nrecords = \"r\"\ncitation = \"c\"\n\
         licence = {{ name = \"MIT\", url = \"https://example.org\" }}\n\
         [[files]]\nurl = \"{url}\"\npath = \"{path}\"\n{more}\
         size_bytes = {}\nsha256 = \"{}\"\n",
        bytes.len(),
        sha256(bytes)
    );
    scratch.write(&format!("{name}.toml"), text);
    url
}

#[test]
fn a_fetch_is_killed_and_taken_up_and_what_it_leaves_is_verified() {
    let scratch = Scratch::new();
    let large: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/datasets");
    let parquet = std::fs::read(goldens.join("mmlu_pro.parquet")).unwrap();
    let files = [("own/large", &large), ("own/letters", &parquet)];
    let host = Host::serve(files.map(|(name, bytes)| (name.to_owned(), bytes.clone())).to_vec());
    let url = card(&scratch, &host, "large", "a/large.bin", &large, "");
    card(&scratch, &host, "letters", "b/letters.jsonl", &parquet, "convert = \"mmlu-pro\"\n");
    host.is_silent.store(true, Ordering::Relaxed);
    let names = "large.toml letters.toml";
    let command = format!("data fetch {names} --to fetched");
    let mut child = scratch.command(&command).spawn().unwrap();
    let part = format!("fetched/a/large.bin.{}.incomplete", &sha256(url.as_bytes())[..16]);
    let part = scratch.path(&part);
    wait_until(&mut child, || part.exists() && size(&part) == SILENT_AFTER as u64);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!scratch.path("fetched/a/large.bin").exists());

    host.is_silent.store(false, Ordering::Relaxed);
    host.requests();
    let told = fetch(&scratch, names);
    assert!(told.succeeded().stderr.contains("large: licence MIT"), "{told:#?}");
    assert_eq!(host.requests()[0], format!("own/large {SILENT_AFTER}"));
    assert_eq!(std::fs::read(scratch.path("fetched/a/large.bin")).unwrap(), large);
    assert!(!part.exists());
    let verified = scratch.wardround("data verify fetched");
    assert!(verified.succeeded().stdout.contains("a/large.bin  ok, by provenance.toml"));

    let mut changed = large;
    changed[7] ^= 1;
    std::fs::write(scratch.path("fetched/a/large.bin"), changed).unwrap();
    std::fs::remove_file(scratch.path("fetched/b/letters.jsonl")).unwrap();
    let verified = scratch.wardround("data verify fetched");
    verified.refused(3, &["2 of 2 files in fetched not as published"]);
    assert!(verified.stdout.contains("a/large.bin  MISMATCH: provenance.toml says "));
    assert!(verified.stdout.contains("b/letters.jsonl  MISSING"));
}

#[test]
fn a_changed_byte_is_refused_and_nothing_stays() {
    let scratch = Scratch::new();
    let host = Host::serve(vec![("own/small".to_owned(), b"as punished!".to_vec())]);
    card(&scratch, &host, "small", "small.txt", b"as published", "");
    let sums = [sha256(b"as published"), sha256(b"as punished!")];
    let parts = ["small.txt from http://127.0.0.1:", &sums[0], &sums[1], "hint: fetch it again"];
    fetch(&scratch, "small.toml").refused(3, &parts);
    assert_eq!(std::fs::read_dir(scratch.path("fetched")).map_or(0, Iterator::count), 0);
}

#[test]
fn what_cannot_be_fetched_is_said() {
    let scratch = Scratch::new();
    let names = "medec, mederrbench, medguards-keywords, medqa, medxpertqa, mmlu-pro, pubmedqa";
    scratch.wardround("data fetch medquad --to fetched").refused(2, &["`medquad`", names]);
    let offline = scratch.wardround("data fetch all --to fetched --offline");
    offline.refused(3, &["medec cannot be fetched: --offline", "data fetch medec --to DIR"]);
    assert!(!scratch.path("fetched").exists());
    scratch.wardround("data verify fetched").refused(2, &["fetched has no file of any dataset"]);
    let listed = scratch.wardround("data ls");
    let listed = listed.succeeded().stdout.clone();
    let megabytes = |name: &str| {
        let line = listed.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    assert!(
        megabytes("medxpertqa") == "–" && megabytes("pubmedqa").parse::<f64>().is_ok(),
        "{listed}"
    );
}

/// A file of MMLU-Pro's columns with these rows of JSON.
fn parquet_of(rows: &[Value]) -> Vec<u8> {
    let schema = "message schema { required int64 question_id; required binary question (UTF8);
        required group options (LIST) { repeated group list { required binary element (UTF8); } }
        required binary answer (UTF8); required int64 answer_index; required binary cot_content (UTF8);
        required binary category (UTF8); required binary src (UTF8); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let text = |value: &Value| ByteArray::from(value.as_str().unwrap());
    for name in [
        "question_id",
        "question",
        "options",
        "answer",
        "answer_index",
        "cot_content",
        "category",
        "src",
    ] {
        let mut column = group.next_column().unwrap().unwrap();
        match name {
            "question_id" | "answer_index" => {
                let numbers: Vec<i64> =
                    rows.iter().map(|row| row[name].as_i64().unwrap()).collect();
                column.typed::<Int64Type>().write_batch(&numbers, None, None).unwrap();
            }
            "options" => {
                let lists = rows.iter().map(|row| row[name].as_array().unwrap());
                let (mut texts, mut starts) = (Vec::new(), Vec::new());
                for list in lists {
                    texts.extend(list.iter().map(text));
                    starts.extend((0..list.len()).map(|place| i16::from(place > 0)));
                }
                let defined = vec![1; texts.len()];
                let column = column.typed::<ByteArrayType>();
                column.write_batch(&texts, Some(&defined), Some(&starts)).unwrap();
            }
            name => {
                let texts: Vec<ByteArray> = rows.iter().map(|row| text(&row[name])).collect();
                column.typed::<ByteArrayType>().write_batch(&texts, None, None).unwrap();
            }
        }
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// As MedGuards' merged file: MEDEC-MS's test notes with a keyword each, and as many others as the card says.
fn merged(medec: &Path, rows: u64) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["Text ID", "Text", "Important Words"]).unwrap();
    let mut reader = csv::Reader::from_path(medec).unwrap();
    let mut count = 0;
    for record in reader.records().map(Result::unwrap).filter(|record| record[0].starts_with("ms-"))
    {
        let word = if &record[3] == "1" { "keyword" } else { "NA" };
        writer.write_record([&record[0], &record[1], word]).unwrap();
        count += 1;
    }
    for number in count..rows {
        writer.write_record([&format!("uw-test-{number}"), "a private note", "private"]).unwrap();
    }
    writer.into_inner().unwrap()
}

#[test]
fn a_file_of_ones_own_is_read_and_what_is_odd_in_it_told() {
    let scratch = Scratch::new();
    let row = |id: &str, second: &str| {
        format!(
            "{{\"id\": \"{id}\", \"question\": \"Which?\", \"options\": {{\"A\": \"aspirin\", \"B\": \"{second}\"}}, \"answer\": \"A\"}}\n"
        )
    };
    scratch.write("own.jsonl", &(row("a", "heparin") + &row("b", "aspirin")));
    let told = scratch.wardround("data verify own.jsonl --format mcq");
    assert!(told.succeeded().stdout.ends_with(" own.jsonl  2 items, read as mcq\n"), "{told:#?}");
    assert!(told.stderr.contains("own.jsonl: ") && told.stderr.contains(" b"), "{told:#?}");
    scratch
        .wardround("data verify own.jsonl")
        .refused(2, &["own.jsonl is a file, and its format is not given", "give --format"]);
    scratch.write("own.jsonl", row("a", "heparin").repeat(2));
    scratch.wardround("data verify own.jsonl --format mcq").refused(2, &["own.jsonl:2: ", "`a`"]);
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_the_published_datasets_are_fetched_and_a_recipe_reads_them() {
    let scratch = Scratch::new();
    scratch.link_data();
    let published = |path: &str| scratch.path("data").join(path);
    let rows = lines(&published("mmlu_pro/professional_medicine.jsonl"));
    let parquet = parquet_of(&rows);
    let mut files = vec![("own/mmlu".to_owned(), parquet.clone())];
    for file in DatasetCard::all().iter().flat_map(|card| &card.files) {
        let bytes = match (file.convert, &file.sha256) {
            // What is not among the data at hand.
            (None, None) => b"other\n".to_vec(),
            (None, Some(_)) => std::fs::read(published(&file.path)).unwrap(),
            (Some(Conversion::Keywords), _) => {
                let notes = "medec/MEDEC-MS-TestSet-with-GroundTruth-and-ErrorType.csv";
                merged(&published(notes), 925)
            }
            // The sum is that of the true file, and this one is not it.
            (Some(Conversion::MmluPro), _) => {
                vec![0; usize::try_from(file.size_bytes.unwrap()).unwrap()]
            }
        };
        let (_, address) = file.url.strip_prefix("https://").unwrap().split_once('/').unwrap();
        files.push((address.to_owned(), bytes));
    }
    let path = "mmlu_pro/professional_medicine.jsonl";
    let host = Host::serve(files);
    card(&scratch, &host, "mmlu", path, &parquet, "convert = \"mmlu-pro\"\n");
    // The program's own cards, with this host for theirs.
    let mut names = String::new();
    for entry in std::fs::read_dir("datasets").unwrap() {
        let entry = entry.unwrap();
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let hosts = ["https://raw.githubusercontent.com", "https://huggingface.co"];
        let named = |text: String, host_of: &&str| {
            text.replace(&format!("url = \"{host_of}"), &format!("url = \"{}", host.address))
        };
        let name = format!("of-{}", entry.file_name().to_string_lossy());
        scratch.write(&name, hosts.iter().fold(text, named));
        names = format!("{names} {name}");
    }
    let told = fetch(&scratch, &names);
    told.refused(3, &["professional_medicine.jsonl from http", "its card says 0e24a191921c"]);
    assert!(told.stderr.contains("rows of MEDEC-UW, refused"), "{told:#?}");
    fetch(&scratch, "of-pubmedqa.toml mmlu.toml").succeeded();

    let fetched = |path: &str| -> PathBuf { scratch.path("fetched").join(path) };
    for file in DatasetCard::all().iter().flat_map(|card| &card.files) {
        if file.convert.is_none() && file.sha256.is_some() {
            let (left, right) = (fetched(&file.path), published(&file.path));
            assert_eq!(std::fs::read(left).unwrap(), std::fs::read(right).unwrap());
        }
    }
    assert_eq!(lines(&fetched(path)), rows);
    let keywords = std::fs::read_to_string(fetched("medec/medguards_keywords.json")).unwrap();
    assert_eq!(keywords.matches("ms-test-").count(), 311);
    assert!(!keywords.contains("uw-") && !keywords.contains("private"));
    let verified = scratch.wardround("data verify fetched");
    assert_eq!(verified.succeeded().stdout.matches("  ok, by ").count(), 17, "{verified:#?}");

    scratch.model(Family::Llama);
    for recipe in ["table1", "medguards-table3"] {
        let dry = format!("recipe {recipe} --data-dir fetched --panel llama --dry-run");
        assert!(scratch.wardround(dry).succeeded().stdout.contains("calls      at most"));
    }
}

//! Corpora against other people's code: numpy's order, the splitter's count.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use wardround::corpus::Description;
use wardround::corpus::formats::records;
use wardround::ops::Cpu;
use wardround::ops::vectors::{VectorRows, append};
use wardround::random::mix;

fn golden<T: for<'a> Deserialize<'a>>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/corpus").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[derive(Deserialize)]
struct Order {
    rows: usize,
    dims: usize,
    /// The best rows of each query, by numpy.
    best: Vec<Vec<usize>>,
}

/// Eighths between −1 and 7/8: every product is exact. Every hundredth row equals the one fifty before it.
fn row(row: usize, dims: usize) -> Vec<f32> {
    let row = if row % 100 == 99 { row - 50 } else { row };
    let number = |column: usize| ((mix((row * dims + column) as u64) >> 60) as f32 - 8.0) / 8.0;
    (0..dims).map(number).collect()
}

#[test]
fn the_best_rows_are_numpys_with_ties_to_the_lower_row() {
    let Order { rows, dims, best } = golden("order.json");
    for threads in [1, 2] {
        let mut bytes = Vec::new();
        for number in 0..rows {
            append(&row(number, dims), &mut bytes).unwrap();
        }
        let matrix = VectorRows::new(&bytes, dims).unwrap();
        // Queries are rows behind the last one.
        let cpu = Cpu::new(threads).unwrap();
        for (number, best) in best.iter().enumerate() {
            let query = matrix.query(&row(rows + number, dims));
            let found = cpu.scan(&matrix, &query, std::slice::from_ref(&(0..rows)), best.len());
            assert_eq!(found.iter().map(|hit| hit.row).collect::<Vec<_>>(), *best);
        }
    }
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_medquad_has_32_092_chunks() {
    let data = PathBuf::from(std::env::var_os("WARDROUND_DATA").unwrap());
    let description = Description::open("medquad").unwrap();
    let source = &description.sources[0];
    let (mut documents, mut chunks) = (BTreeSet::new(), 0);
    for record in records(source, &data.join(&source.path), &data).unwrap() {
        let record = record.unwrap();
        chunks += source.splitter().split(&record.text).len();
        assert!(documents.insert(record.document.id));
    }
    assert_eq!((documents.len(), chunks), (16_407, 32_092));
}

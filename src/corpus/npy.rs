//! NumPy's `.npy` files: matrices of f32 or f16, rows first.

use crate::ops::checkpoint::{RawTensor, RawType};

/// The numbers of a `.npy` file, row by row.
pub struct Matrix<'a> {
    numbers: RawTensor<'a>,
    pub rows: usize,
    pub width: usize,
}

impl<'a> Matrix<'a> {
    /// # Errors
    /// What is wrong, to read on from the path.
    pub fn read(bytes: &'a [u8]) -> Result<Matrix<'a>, String> {
        let none = || "is no NumPy file".to_owned();
        let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or_else(none)?;
        let (length, start): (usize, usize) = match rest {
            [1, _, a, b, ..] => (usize::from(u16::from_le_bytes([*a, *b])), 4),
            [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, 6),
            _ => return Err(none()),
        };
        let header = rest.get(start..start.saturating_add(length)).ok_or_else(none)?;
        let header = std::str::from_utf8(header).map_err(|_| none())?;
        let kind = match (header.contains("'<f2'"), header.contains("'<f4'")) {
            (true, _) => RawType::F16,
            (false, true) => RawType::F32,
            (false, false) => return Err("holds neither f32 nor f16".to_owned()),
        };
        if header.contains("'fortran_order': True") {
            return Err("is ordered by columns; save it with numpy.ascontiguousarray".to_owned());
        }
        let shape = header.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
        let shape: Option<Vec<usize>> = shape.map(|(shape, _)| {
            shape.split(',').filter_map(|number| number.trim().parse().ok()).collect()
        });
        let Some([rows, width]) = shape.as_deref() else {
            return Err("is no matrix of rows and columns".to_owned());
        };
        let bytes = &rest[start + length..];
        let count = rows.checked_mul(*width);
        let expected = count.and_then(|count| count.checked_mul(kind.size_bytes()));
        match expected == Some(bytes.len()) && *width > 0 {
            true => Ok(Matrix { numbers: RawTensor { kind, bytes }, rows: *rows, width: *width }),
            false => {
                Err(format!("has {} bytes of numbers, not those of {rows} x {width}", bytes.len()))
            }
        }
    }

    /// # Panics
    /// A row that there is not.
    pub fn row(&self, row: usize) -> Vec<f32> {
        let mut numbers = vec![0.0; self.width];
        self.numbers.read_row(row, &mut numbers);
        numbers
    }
}

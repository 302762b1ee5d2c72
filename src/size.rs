//! Parses sizes in bytes.

/// A size such as `4000M` or `2GiB`: K, M and G are powers of 1000, KiB, MiB and GiB powers of 1024.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim_end();
    let factor: u64 = match text[digits.len()..].trim_start() {
        "" | "B" => 1,
        "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err("expected a size, as in 4000M or 2GiB".to_owned()),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    bytes.ok_or_else(|| "expected a size, as in 4000M or 2GiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_printed_on_sticks() {
        assert_eq!(size("4000M"), Ok(4_000_000_000));
        assert_eq!((size("2GiB"), size("500 MiB")), (Ok(2 << 30), Ok(500 << 20)));
        assert_eq!((size("100"), size("0")), (Ok(100), Ok(0)));
        for wrong in ["", "M", "1.5G", "4g", "-1", "1GB", "99999999999G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}

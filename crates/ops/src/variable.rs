//! Environment variables that are on or off: one reading for all of them.

/// What a value says: `1`, `true`, `yes` and `on`, or `0`, `false`, `no` and `off`, in any case; an empty one is off, as an unset one is.
/// `None`: another word, which is nobody's to guess.
pub fn boolean(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "" | "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// What a variable must be, for a message.
pub const WORDS: &str = "1, true, yes or on, 0, false, no or off";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_words_in_any_case_and_no_other() {
        for value in ["1", "true", "Yes", "ON", " on\n"] {
            assert_eq!(boolean(value), Some(true), "{value}");
        }
        for value in ["0", "FALSE", "no", "Off", "", " "] {
            assert_eq!(boolean(value), Some(false), "{value}");
        }
        for value in ["2", "enabled", "y", "-"] {
            assert_eq!(boolean(value), None, "{value}");
        }
    }
}

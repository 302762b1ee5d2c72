//! Names of files and hosts with `*` in them.

/// Whether a name is what a pattern says, in which each `*` stands for any characters.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut rest = rest;
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

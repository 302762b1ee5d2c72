//! The longest common subsequence of two sequences.

/// Its length.
pub fn lcs_length<T: Eq>(a: &[T], b: &[T]) -> usize {
    // At j: the length for the items of `a` so far and the first j of `b`.
    let mut row = vec![0; b.len() + 1];
    for item in a {
        let mut diagonal = 0;
        for (j, other) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = match item == other {
                true => diagonal + 1,
                false => above.max(row[j]),
            };
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subsequence_need_not_be_a_run() {
        assert_eq!(lcs_length(b"ABCBDAB", b"BDCABA"), 4);
        assert_eq!(lcs_length(b"abc", b""), 0);
    }
}

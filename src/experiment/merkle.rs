//! The Merkle tree of RFC 6962, SHA-256: a root for a list of texts, and for each of them a path that shows its place in the list.
//!
//! A leaf's sum is that of a byte 0 and the text, a node's that of a byte 1 and the sums below it, so that no node passes for a leaf.

use sha2::{Digest, Sha256};

/// A sum of SHA-256.
pub type Sum = [u8; 32];

/// The sum of one text of the list.
pub fn leaf(text: &[u8]) -> Sum {
    Sha256::new().chain_update([0_u8]).chain_update(text).finalize().into()
}

fn node(left: &Sum, right: &Sum) -> Sum {
    Sha256::new().chain_update([1_u8]).chain_update(left).chain_update(right).finalize().into()
}

/// How many of `size` leaves, at least two, stand on the left: the largest power of two below `size`.
fn left_of(size: usize) -> usize {
    1 << (size - 1).ilog2()
}

/// The root above these leaves; without any, the sum of nothing.
pub fn root(leaves: &[Sum]) -> Sum {
    match leaves {
        [] => Sha256::digest(b"").into(),
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(left_of(leaves.len()));
            node(&root(left), &root(right))
        }
    }
}

/// The sums beside the way from a leaf up to the root.
pub fn path(leaves: &[Sum], index: usize) -> Vec<Sum> {
    if leaves.len() < 2 {
        return Vec::new();
    }
    let (left, right) = leaves.split_at(left_of(leaves.len()));
    let (mut path, beside) = match index.checked_sub(left.len()) {
        None => (path(left, index), root(right)),
        Some(index) => (path(right, index), root(left)),
    };
    path.push(beside);
    path
}

/// The root above `size` leaves, of which number `index` is `leaf`; `None` for a path of another length, and for no such leaf.
pub fn root_by(leaf: Sum, index: usize, size: usize, path: &[Sum]) -> Option<Sum> {
    if size < 2 {
        return (path.is_empty() && index < size).then_some(leaf);
    }
    let (beside, path) = path.split_last()?;
    let left = left_of(size);
    match index.checked_sub(left) {
        None => Some(node(&root_by(leaf, index, left, path)?, beside)),
        Some(index) => Some(node(beside, &root_by(leaf, index, size - left, path)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::hex;

    fn leaves(count: usize) -> Vec<Sum> {
        (0..count).map(|number| leaf(&[number as u8])).collect()
    }

    /// The list of certificate-transparency's reference tests.
    #[test]
    fn roots_are_those_of_rfc_6962() {
        let texts: [&[u8]; 8] = [
            b"",
            b"\0",
            b"\x10",
            b"\x20\x21",
            b"\x30\x31",
            b"\x40\x41\x42\x43",
            b"\x50\x51\x52\x53\x54\x55\x56\x57",
            b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
        ];
        let leaves = texts.map(leaf);
        for (count, expected) in [
            (0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
            (2, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"),
            (3, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"),
            (4, "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"),
            (5, "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"),
            (6, "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"),
            (7, "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"),
            (8, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"),
        ] {
            assert_eq!(hex(&root(&leaves[..count])), expected, "{count} leaves");
        }
    }

    #[test]
    fn a_path_leads_from_its_leaf_to_the_root_and_from_no_other() {
        for size in (0..20).chain([31, 32, 33, 63, 64, 65]) {
            let leaves = leaves(size);
            let root = root(&leaves);
            for index in 0..size {
                let path = path(&leaves, index);
                let by = |leaf, index, size, path: &[Sum]| root_by(leaf, index, size, path);
                assert_eq!(by(leaves[index], index, size, &path), Some(root), "{index} of {size}");
                for other in (0..size + 2).filter(|other| *other != index) {
                    assert_ne!(by(leaves[index], other, size, &path), Some(root));
                    if let Some(leaf) = leaves.get(other) {
                        assert_ne!(by(*leaf, index, size, &path), Some(root));
                    }
                }
                for place in 0..path.len() {
                    let mut changed = path.clone();
                    changed[place][place % 32] ^= 1;
                    assert_ne!(by(leaves[index], index, size, &changed), Some(root));
                    changed.remove(place);
                    assert_eq!(by(leaves[index], index, size, &changed), None);
                }
                let longer = [&path[..], &[root]].concat();
                assert_eq!(by(leaves[index], index, size, &longer), None);
            }
            assert_eq!(root_by(root, size, size, &[]), None);
        }
    }
}

//! Parts of the backend that `WARDROUND_CUDA_WITHOUT` leaves out, to find the one that a GPU stumbles over. They change
//! how fast a step is, not its bits.

use crate::OpsError;

/// What to leave out, comma by comma.
const VARIABLE: &str = "WARDROUND_CUDA_WITHOUT";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Without {
    /// `wgmma`: products of many rows by warpgroups.
    pub warpgroups: bool,
    /// `launch`: a kernel's CTAs that start while the kernel before still runs.
    pub early_launches: bool,
    /// `clusters`: CTAs that read one another's shared memory.
    pub clusters: bool,
    /// `graphs`: decoding steps that are kept and launched as one.
    pub graphs: bool,
}

impl Without {
    /// # Errors
    /// A part that is none.
    pub fn asked() -> Result<Without, OpsError> {
        Without::parse(&std::env::var(VARIABLE).unwrap_or_default())
    }

    fn parse(list: &str) -> Result<Without, OpsError> {
        let mut without = Without::default();
        for part in list.split(',').map(str::trim) {
            match part {
                "" => {}
                "wgmma" => without.warpgroups = true,
                "clusters" => without.clusters = true,
                "launch" => without.early_launches = true,
                "graphs" => without.graphs = true,
                other => return Err(OpsError::CudaPart(other.to_owned())),
            }
        }
        Ok(without)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_and_others_refused() {
        assert_eq!(Without::parse("").unwrap(), Without::default());
        let two = Without::parse("wgmma, graphs").unwrap();
        assert!(two.warpgroups && two.graphs && !two.early_launches);
        let error = Without::parse("wgmma,streams").unwrap_err();
        assert!(error.to_string().contains("`streams`"), "{error}");
    }
}

//! What the environment asks to be compared.

use std::path::PathBuf;

const REPORT: &str = "WARDROUND_CUDA_SHADOW";
/// Prefixes of kernels' names, comma by comma: those alone are compared, and none with a minus before it. The others run on
/// the emulator alone.
const ONLY: &str = "WARDROUND_CUDA_SHADOW_ONLY";

#[derive(Debug)]
pub struct Asked {
    pub report: PathBuf,
    only: Vec<String>,
    never: Vec<String>,
}

impl Asked {
    /// Nothing where no report is named.
    pub fn of_environment() -> Option<Asked> {
        let report = std::env::var_os(REPORT).filter(|path| !path.is_empty())?;
        Some(Asked::new(report.into(), &std::env::var(ONLY).unwrap_or_default()))
    }

    pub fn new(report: PathBuf, only: &str) -> Asked {
        let names = only.split(',').map(str::trim).filter(|name| !name.is_empty());
        let (never, only): (Vec<&str>, Vec<&str>) = names.partition(|name| name.starts_with('-'));
        Asked {
            report,
            only: only.into_iter().map(str::to_owned).collect(),
            never: never.into_iter().map(|name| name[1..].to_owned()).collect(),
        }
    }

    pub fn compares(&self, kernel: &str) -> bool {
        let is_in = |names: &[String]| names.iter().any(|name| kernel.starts_with(name.as_str()));
        (self.only.is_empty() || is_in(&self.only)) && !is_in(&self.never)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_named_by_prefix() {
        let compared = |only: &str, kernel: &str| Asked::new("x".into(), only).compares(kernel);
        assert!(compared("", "draw"));
        assert!(compared("attend, draw", "draw") && compared("attend,draw", "attend_rows_32"));
        assert!(!compared("attend", "draw"));
        assert!(!compared("-draw", "draw") && compared("-draw", "score"));
        assert!(!compared("matmul,-matmul_wave", "matmul_wave_bf16"));
    }
}

//! Where tests find the repository and the program: also on a machine that neither was built on, where a test binary is carried.

use std::env;
use std::path::{Path, PathBuf};

/// What `WARDROUND_REPOSITORY` names, the current directory if it is one, or where the tests were built.
pub fn repository() -> PathBuf {
    let named = env::var_os("WARDROUND_REPOSITORY").map(PathBuf::from);
    let here = env::current_dir().ok().filter(|here| here.join("tests/goldens").is_dir());
    named.or(here).unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into())
}

/// The program: what `WARDROUND_PROGRAM` names, what lies beside the test binary, or what was built with it at `built`, which is
/// `env!("CARGO_BIN_EXE_wardround")`.
pub fn program(built: &str) -> PathBuf {
    let named = env::var_os("WARDROUND_PROGRAM").map(PathBuf::from);
    let tests = env::current_exe().ok();
    let beside = tests.as_deref().and_then(Path::parent).map(|folder| folder.join("wardround"));
    named.or(beside.filter(|path| path.is_file())).unwrap_or_else(|| built.into())
}

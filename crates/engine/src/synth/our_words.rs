//! Checkpoints of tests.

use std::path::Path;

use super::{Recipe, SynthError, write_checkpoint};

/// A checkpoint that knows the words of the repository's prompts and questions, as those that the program writes.
pub fn write_with_our_words(recipe: &Recipe<'_>, directory: &Path) -> Result<(), SynthError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let prompts = fs_err::read_dir(root.join("prompts/medmad"))?;
    let mut paths = prompts.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    paths.push(root.join("src/data/demo.jsonl"));
    let texts = paths.iter().map(fs_err::read_to_string).collect::<std::io::Result<Vec<_>>>()?;
    let texts: Vec<&str> = texts.iter().map(|text| text.trim_end_matches('\n')).collect();
    write_checkpoint(recipe, &texts, directory)
}

//! Lists of models and paths, separated by commas. An item that is there under a name with commas is kept whole.

use std::path::{Path, PathBuf};

use crate::cli::exit::Failure;

/// Models: cards, hub ids, directories or endpoints.
///
/// # Errors
/// A text that can be read both ways: its items are there, and so is the whole.
pub fn models(given: &[String]) -> Result<Vec<String>, Failure> {
    let mut items = Vec::new();
    for text in given {
        split(text, &mut items)?;
    }
    Ok(items)
}

/// Paths.
///
/// # Errors
/// See [`models`].
pub fn paths(given: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let given: Vec<String> = given.iter().map(|path| path.display().to_string()).collect();
    Ok(models(&given)?.into_iter().map(PathBuf::from).collect())
}

fn split(text: &str, items: &mut Vec<String>) -> Result<(), Failure> {
    let is_there = |item: &str| Path::new(item).exists();
    let pieces: Vec<&str> = text.split(',').collect();
    let mut from = 0;
    while from < pieces.len() {
        let whole =
            (from + 2..=pieces.len()).rev().find(|to| is_there(&pieces[from..*to].join(",")));
        let to = whole.unwrap_or(from + 1);
        let item = pieces[from..to].join(",");
        if whole.is_some() && pieces[from..to].iter().all(|piece| is_there(piece)) {
            return Err(Failure::usage(
                format!("`{item}` is there, and so is each of {}", pieces[from..to].join(" and ")),
                "give the one that has a comma in its name another name",
            ));
        }
        items.push(item);
        from = to;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_commas_is_one_item_and_what_can_be_read_both_ways_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| format!("{}/{name}", folder.path().display());
        for name in ["ward,2026", "plain", "x", "x,y,z"] {
            fs_err::create_dir(at(name)).unwrap();
        }
        let split = |text: &str| models(&[text.to_owned()]);
        let (comma, plain) = (at("ward,2026"), at("plain"));
        assert_eq!(
            split(&format!("{comma},{plain},qwen3-4b")).unwrap(),
            [&*comma, &plain, "qwen3-4b"]
        );
        assert_eq!(split(&format!("qwen3-4b,{comma}")).unwrap(), ["qwen3-4b", &comma]);
        assert_eq!(split("a,b").unwrap(), ["a", "b"]);
        let one = paths(&[comma.clone().into(), at("x,y,z").into()]).unwrap();
        assert_eq!(one, [PathBuf::from(&comma), at("x,y,z").into()]);
        fs_err::create_dir(at(&format!("x,{}", ""))).unwrap();
        // `x` and `x,` are both there, and nothing is called ``.
        assert_eq!(split(&at("x,")).unwrap(), [at("x,")]);
        let both = format!("{plain},{}", at("x"));
        fs_err::create_dir_all(&both).unwrap();
        let error = split(&both).unwrap_err();
        assert!(error.to_string().contains("is there, and so is each of"), "{error}");
    }
}

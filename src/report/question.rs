//! A question and its options, taken back out of the prompt that an initial call was given.

/// What a prompt asked.
#[derive(Debug, PartialEq, Eq)]
pub struct Question<'a> {
    pub stem: &'a str,
    /// In the prompt's order; empty where the prompt lists none.
    pub options: Vec<Choice<'a>>,
}

/// One option as the prompt printed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice<'a> {
    /// One letter, as the prompt has it.
    pub letter: &'a str,
    pub text: &'a str,
}

/// Cuts the instructions off an initial prompt and separates stem and options, which end at an empty line.
///
/// The last marker of each kind counts, since a question may quote either.
pub fn split_prompt(prompt: &str) -> Question<'_> {
    let asked = match prompt.rfind("\n\nIMPORTANT:") {
        Some(end) => &prompt[..end],
        None => prompt,
    };
    match asked.rsplit_once("\n\nOptions:\n") {
        Some((stem, listed)) => Question {
            stem: stem.trim(),
            options: split_options(listed.split("\n\n").next().unwrap_or_default()),
        },
        None => Question {
            stem: asked.trim(),
            options: Vec::new(),
        },
    }
}

/// An option begins at a line with the next letter and a colon; other lines continue the one before.
fn split_options(listed: &str) -> Vec<Choice<'_>> {
    let mut starts = Vec::new();
    let mut letters = 'A'..='Z';
    let mut next = letters.next();
    let mut at = 0;
    for line in listed.split_inclusive('\n') {
        if next.is_some_and(|letter| line.starts_with(letter) && line[1..].starts_with(':')) {
            starts.push(at);
            next = letters.next();
        }
        at += line.len();
    }
    let ends = starts.iter().copied().skip(1).chain([listed.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(&start, end)| Choice {
            letter: &listed[start..start + 1],
            text: listed[start + 2..end].trim(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separates_stem_options_and_instructions() {
        let question = split_prompt(
            "Which one?\n\nContext: IMPORTANT: none\n\nOptions:\nA: one\nstill A: one\nB: two\n\nIMPORTANT: Follow this",
        );
        assert_eq!(question.stem, "Which one?\n\nContext: IMPORTANT: none");
        let texts: Vec<_> = question
            .options
            .iter()
            .map(|o| (o.letter, o.text))
            .collect();
        assert_eq!(texts, [("A", "one\nstill A: one"), ("B", "two")]);
    }

    #[test]
    fn options_end_at_an_empty_line() {
        let question = split_prompt(
            "Which?\n\nOptions:\nA: one\nB: two\n\nReply with a letter.\n\nExample\nOptions:\nC: three",
        );
        assert_eq!(question.stem, "Which?");
        assert_eq!(question.options.len(), 2);
        assert_eq!(question.options[1].text, "two");
    }

    #[test]
    fn keeps_a_prompt_of_another_shape_whole() {
        let question = split_prompt("  Is it so?  ");
        assert_eq!(question.stem, "Is it so?");
        assert!(question.options.is_empty());
        assert!(
            split_prompt("Q\n\nOptions:\nnone of them")
                .options
                .is_empty()
        );
        assert_eq!(split_prompt("").stem, "");
    }
}

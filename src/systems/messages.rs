//! Builds messages: templates filled with an item and with the replies of other agents.

use itertools::Itertools;

use crate::data::{Note, Question};
use crate::prompts::{PromptError, PromptSet, fill};
use crate::record::Message;
use crate::text::ellipsis;

/// The templates of a system message and a user message.
#[derive(Clone, Debug)]
pub struct Templates {
    /// Empty where there is no system message.
    system: String,
    user: String,
}

impl Templates {
    /// The prompts `NAME-system.txt` and `NAME-user.txt`, with the placeholders that each must have.
    pub fn new(
        prompts: &PromptSet,
        name: &str,
        system: &[&str],
        user: &[&str],
    ) -> Result<Templates, PromptError> {
        let system = prompts.get(&format!("{name}-system"), system)?;
        Ok(Templates { system, user: prompts.get(&format!("{name}-user"), user)? })
    }

    pub fn fill(&self, values: &[(&str, &str)]) -> Vec<Message> {
        messages(&fill(&self.system, values), fill(&self.user, values))
    }

    pub fn fill_question(&self, question: &Question, more: &[(&str, &str)]) -> Vec<Message> {
        let system = fill_question(&self.system, question, more);
        messages(&system, fill_question(&self.user, question, more))
    }
}

/// The prompts of a system as a struct that is read from the files of a folder below `prompts/`. Each line is a field, its file, and the
/// placeholders that the file must have; with two lists of these it is [`Templates`], of the system message and of the user message.
macro_rules! prompt_files {
    (@type) => { String };
    (@type $user:expr) => { $crate::systems::messages::Templates };
    (@read $prompts:ident $file:expr, $must:expr) => { $prompts.get($file, &$must)? };
    (@read $prompts:ident $file:expr, $system:expr, $user:expr) => {
        $crate::systems::messages::Templates::new($prompts, $file, &$system, &$user)?
    };
    ($(#[$about:meta])* struct $name:ident in $folder:literal { $(
        $(#[$of:meta])* $field:ident: $file:literal [$($must:literal),*] $([$($user:literal),*])?,
    )* }) => {
        $(#[$about])*
        pub struct $name { $($(#[$of])* $field: prompt_files!(@type $([$($user),*])?),)* }

        impl $name {
            fn read(
                prompts: &$crate::prompts::PromptSet,
            ) -> Result<$name, $crate::prompts::PromptError> {
                Ok($name { $(
                    $field: prompt_files!(
                        @read prompts concat!($folder, "/", $file), [$($must),*] $(, [$($user),*])?
                    ),
                )* })
            }
        }
    };
}
pub(super) use prompt_files;

/// A system message, unless `system` is empty, and a user message.
pub fn messages(system: &str, user: String) -> Vec<Message> {
    let system = (!system.is_empty()).then(|| Message::new("system", system));
    system.into_iter().chain([Message::new("user", user)]).collect()
}

/// `template` with `{question}`, `{options}` and `more` filled in.
pub fn fill_question(template: &str, question: &Question, more: &[(&str, &str)]) -> String {
    let options = option_lines(question);
    let values = [("question", question.question.as_str()), ("options", &options)];
    fill(template, &[&values, more].concat())
}

/// A question's options, a line each: `A: aspirin`.
pub fn option_lines(question: &Question) -> String {
    let options = question.options.iter();
    options.map(|option| format!("{}: {}", option.letter, option.text)).join("\n")
}

/// The note's sentences, a line each, with their numbers.
pub fn numbered(note: &Note) -> String {
    let lines = note.sentences.iter().enumerate();
    lines.map(|(id, text)| format!("{id} {text}")).join("\n")
}

/// The sentences' numbers, for a regex of one of them.
pub fn numbers(note: &Note) -> String {
    (0..note.sentences.len()).join("|")
}

/// `text` on one line, cut after `chars` characters with `…` in place of the rest. On one line, so that no text can look like another line
/// of a prompt.
pub fn truncate(text: &str, chars: usize) -> String {
    ellipsis(&text.split_whitespace().join(" "), chars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_counts_characters() {
        assert_eq!(truncate("abc", 3), "abc");
        assert_eq!(truncate("abcd", 3), "abc…");
        assert_eq!(truncate("Überdosis", 4), "Über…");
        assert_eq!(truncate("心电图正常", 2), "心电…");
        assert_eq!(truncate("🫀🫁🧠", 2), "🫀🫁…");
        assert_eq!(truncate("  a \n\t b  ", 9), "a b");
        assert_eq!(truncate("", 1), "");
    }
}

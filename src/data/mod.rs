//! Questions from files: one reader per published format, each row checked, none dropped silently.

/// One multiple-choice question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Unique within its file.
    pub id: String,
    pub question: String,
    /// In the file's order; 2 to 10 of them, lettered A, B, C, … without gaps.
    pub options: Vec<Choice>,
    /// The letter of the right option; `None` where the file gives none.
    pub gold: Option<char>,
    /// Where an image belongs to the question; only a remote member can be shown one.
    pub image: Option<String>,
}

/// One option of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub letter: char,
    pub text: String,
}

//! The messages of a call: the system message has role, schema and stage, the user message the question or the debate.

use crate::data::Question;
use crate::prompts::{PromptError, PromptSet, fill};
use crate::record::Message;

use super::settings::{Counterfactual, RecordForm, Role, Settings};
use crate::systems::messages::{fill_question, messages};

/// The prompts of a run (App. C.1–C.4), with its settings applied.
#[derive(Clone, Debug)]
pub struct Messages {
    /// Indexed by [`Role`].
    roles: [String; 3],
    schema: String,
    initial_system: String,
    initial_user: String,
    debate_system: String,
    debate_user: String,
    question_and_options: String,
}

impl Messages {
    pub fn new(prompts: &PromptSet, settings: &Settings) -> Result<Messages, PromptError> {
        let text = |name: &str, placeholders: &[&str]| {
            prompts.get(&format!("medmad/{name}"), placeholders)
        };
        let form = match settings.record {
            RecordForm::Full => "",
            RecordForm::Short => "-short",
        };
        let of_form =
            |name: &str, placeholders: &[&str]| text(&format!("{name}{form}"), placeholders);
        let mut messages = Messages {
            roles: [text("role-sym", &[])?, text("role-ddx", &[])?, text("role-guide", &[])?],
            schema: of_form("schema", &[])?,
            initial_system: of_form("initial-system", &[])?,
            initial_user: of_form("initial-user", &["question", "options"])?,
            debate_system: of_form("debate-system", &[])?,
            debate_user: of_form("debate-user", &["question_and_options", "debate_brief"])?,
            question_and_options: text("question-and-options", &["question", "options"])?,
        };
        if settings.counterfactual != Counterfactual::On {
            let step = text("debate-step-no-counterfactual", &[])?;
            replace_entry(&mut messages.debate_user, "debate-user", 4, &step)?;
        }
        if settings.counterfactual == Counterfactual::Strict {
            replace_entry(&mut messages.initial_user, "initial-user", 4, "")?;
            replace_entry(&mut messages.schema, "schema", 6, "")?;
        }
        Ok(messages)
    }

    pub fn initial(&self, role: Role, question: &Question) -> Vec<Message> {
        let user = fill_question(&self.initial_user, question, &[]);
        self.pair(role, &self.initial_system, user)
    }

    /// Round `round`, from 1: the question and what this agent is shown of all answers.
    pub fn debate(&self, role: Role, question: &Question, round: u32, brief: &str) -> Vec<Message> {
        let round = round.to_string();
        let question_and_options = fill_question(&self.question_and_options, question, &[]);
        let values = [
            ("t", round.as_str()),
            ("question_and_options", &question_and_options),
            ("debate_brief", brief),
        ];
        self.pair(role, &self.debate_system, fill(&self.debate_user, &values))
    }

    fn pair(&self, role: Role, stage: &str, user: String) -> Vec<Message> {
        let system = [&self.roles[role as usize], &self.schema, stage].join("\n\n");
        messages(&system, user)
    }
}

/// Replaces a numbered entry by the lines of `replacement`, or removes it where that is empty. The entry begins with the line `N. …` and
/// ends before the line `N+1. …`; without that line it is one line.
fn replace_entry(
    text: &mut String,
    name: &str,
    entry: u32,
    replacement: &str,
) -> Result<(), PromptError> {
    let mut lines: Vec<&str> = text.lines().collect();
    let line_of = |number: u32| {
        let label = format!("{number}. ");
        lines.iter().position(|line| line.starts_with(&label))
    };
    let Some(first) = line_of(entry) else {
        return Err(PromptError::NoEntry { name: format!("medmad/{name}.txt"), entry });
    };
    let end = line_of(entry + 1).filter(|next| *next > first).unwrap_or(first + 1);
    lines.splice(first..end, replacement.lines());
    *text = lines.join("\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Choice;
    use crate::systems::scripted::settings;

    fn question(text: &str, options: &[&str]) -> Question {
        let choice = |(letter, text): (char, &&str)| Choice { letter, text: text.to_string() };
        Question {
            id: "q".into(),
            question: text.into(),
            options: ('A'..='J').zip(options).map(choice).collect(),
            gold: None,
            ..Question::default()
        }
    }

    fn messages(pairs: &[&str]) -> Messages {
        Messages::new(&PromptSet::embedded(), &settings(pairs)).unwrap()
    }

    #[test]
    fn the_initial_messages_are_spelled_as_in_c3() {
        let sent = messages(&[]).initial(Role::Sym, &question("Which drug?", &["Aspirin", "None"]));
        assert_eq!((sent[0].role.as_str(), sent[1].role.as_str()), ("system", "user"));
        let system = &sent[0].content;
        assert!(system.starts_with(
            "You are a symptom-oriented GP for MCQs. Anchor on timeline, pattern, and red flags.\n\
             Map option letters to the best clinical fit based on symptom matching.\n\n\
             Return JSON with fields:\n1. 'cot': array"
        ));
        assert!(system.ends_with(
            "Keep outputs terse, option-aware, and safety-minded.\n\n\
             You are in Med_MAD_v0 (accuracy-focused MCQ debate). Always think in CoT steps, then \
             select exactly one option letter."
        ));
        let expected = "\
Which drug?

Options:
A: Aspirin
B: None

IMPORTANT: Follow this exact process:
1. First, analyze EVERY option (A, B, C, D, etc.) - list pros/cons and fit_score for each
2. Then, eliminate clearly wrong options with specific reasons
3. Compare remaining options head-to-head
4. Before finalizing, do a counterfactual check: 'What if I chose the 2nd best option instead?'
5. Only then select your final answer

If unsure between top options, pick the safest guideline-aligned one.";
        assert_eq!(sent[1].content, expected);
    }

    #[test]
    fn the_debate_messages_are_spelled_as_in_c4() {
        let case = question("Which drug?", &["Aspirin", "None"]);
        let sent = messages(&[]).debate(Role::Guide, &case, 2, "THE BRIEF");
        assert!(sent[0].content.starts_with("You are a safety- and evidence-first GP."));
        assert!(sent[0].content.ends_with(
            "\n\nYou are in Med_MAD_v0 debate. Adjust if persuaded, otherwise defend with specifics.\n\
             Keep debate fields minimal and stick to one final option letter."
        ));
        let expected = "\
Round 2 debate.
Case: Which drug?

Options:
A: Aspirin
B: None

Other views:
THE BRIEF

Consider the other doctors' perspectives:
1. Re-analyze options that others favored - did you miss something?
2. Challenge their reasoning if you disagree - be specific
3. Update your option_analysis scores if persuaded
4. Counterfactual: What risk if you switch to their answer?
Keep it concise: one final option letter, brief CoT, targeted challenges.";
        assert_eq!(sent[1].content, expected);
    }

    #[test]
    fn braces_in_a_question_stay() {
        let case = question("{options} {t} {'a': 1}", &["{question}", "{debate_brief}"]);
        let sent = messages(&[]).debate(Role::Ddx, &case, 1, "{question_and_options}");
        assert!(sent[1].content.starts_with(
            "Round 1 debate.\nCase: {options} {t} {'a': 1}\n\nOptions:\nA: {question}\nB: {debate_brief}\n\n\
             Other views:\n{question_and_options}\n"
        ));
    }

    #[test]
    fn the_papers_ablation_changes_one_line() {
        let case = question("q", &["x", "y"]);
        let (on, paper) = (messages(&[]), messages(&["counterfactual=paper"]));
        assert_eq!(on.initial(Role::Ddx, &case), paper.initial(Role::Ddx, &case));
        let on = on.debate(Role::Ddx, &case, 1, "");
        let paper = paper.debate(Role::Ddx, &case, 1, "");
        assert_eq!(on[0], paper[0]);
        let expected = on[1].content.replace(
            "4. Counterfactual: What risk if you switch to their answer?",
            "4. Make your final decision based on evidence.",
        );
        assert_eq!(paper[1].content, expected);
        assert_ne!(paper[1].content, on[1].content);
    }

    #[test]
    fn strict_leaves_no_word_of_it_and_keeps_the_numbers() {
        let case = question("q", &["x", "y"]);
        let strict = messages(&["counterfactual=strict"]);
        let initial = strict.initial(Role::Ddx, &case);
        let debate = strict.debate(Role::Ddx, &case, 1, "");
        for message in initial.iter().chain(&debate) {
            assert!(
                !message.content.to_lowercase().contains("counterfactual"),
                "{}",
                message.content
            );
        }
        assert!(initial[0].content.contains("wins)\n}\n7. 'debate_moves'"));
        assert!(initial[1].content.contains("head-to-head\n5. Only then"));
        assert!(
            debate[1].content.contains("\n4. Make your final decision based on evidence.\nKeep")
        );
    }

    #[test]
    fn a_prompt_that_lost_its_entry_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs_err::create_dir(directory.path().join("medmad")).unwrap();
        let file = directory.path().join("medmad/debate-user.txt");
        fs_err::write(file, "{question_and_options} {debate_brief}").unwrap();
        let prompts = PromptSet::open(Some(directory.path())).unwrap();
        assert!(Messages::new(&prompts, &Settings::default()).is_ok());
        let settings = settings(&["counterfactual=paper"]);
        let error = Messages::new(&prompts, &settings).unwrap_err();
        assert!(matches!(error, PromptError::NoEntry { entry: 4, .. }), "{error}");
    }
}

//! The letter of an option that a text announces as its answer. Two announcements that differ are none, and so is a list of the options.

use std::collections::BTreeSet;

use super::options::{
    beside, concluded, denies, has_others, is_contradicted, is_of, leading, told, whole,
};
use super::{agreed, plain, sentences};
use crate::data::Choice;
use crate::text::Pattern;

/// «The answer is B», «**Answer:** B», «The best drug for her is B», «So I choose option B», at the start of a sentence or clause; `\boxed{B}`.
static ANNOUNCED: Pattern = Pattern::new(concat!(
    r"(?i)\\boxed\s*\{|(?:^|[.!?\n,;:>)]|\b(?:so|therefore|thus|hence|and|that)\b)[\s*_#<>\x22'({\[-]*(?:(?:the|my|this)\s+)?",
    r"(?:(?:(?:(?:final|correct|best|right|single|most|likely|appropriate|suitable|next)[\s_]+)+(?:\p{L}+\s+){0,2}?\p{L}+|answer|ans\.?|response|option|choice|decision|diagnosis|conclusion|step|letter",
    r"|(?:die |meine |la )?(?:richtige )?(?:antwort|respuesta|réponse)(?: correcta)?|(?:正确|最佳)?答案)",
    r"(?:\s+(?:choice|option|letter))?(?:,?\s+(?:to|for|in|of|among|given|based)\b[^.!?:;\n]{0,100}?)?[\s*_\x22'”),]*(?:\b(?:is|should be|must be|ist|es|est)\b|[:=>(：是为]|[–—-]\s)",
    r"|(?:i|we)(?:['’]d| would| will)? (?:choose|select|pick|go with|vote for|stay with|switch to)\b)",
));
/// «B is correct», «Option B (aspirin) is the best answer»; a letter on a line of its own, or at a line's end behind a sentence.
static ALONE: Pattern = Pattern::new(concat!(
    r"(?m)(?:^|[.!?]\s+|\b(?:[Ss]o|[Tt]herefore|[Tt]hus|[Hh]ence),?\s+)[\s>#*_\x22'“`(\[{-]*",
    r"(?i:(?:the )?(?:option|choice|answer|letter),?\s+)?\(?([A-J])(?:[\s*_\x22'”`)\]}.!]*$|[)\]*_\x22:.]*\s+(?:\([^)\n]*\)\s+)?",
    r"(?:is|would be)\s+(?:the\s+)?(?:most\s+)?(?:correct|right|best|appropriate|likely)\b)",
));
/// A further option in the line of one.
static LISTED: Pattern = Pattern::new(r"[.;,!?]\s+\(?([A-J])(?:[:)]\s|\.\s+[^\p{Ll}\s])");
/// A line that begins with a letter and a mark.
static MARKED: Pattern = Pattern::new(
    r"(?m)^[\s>#*_\x22'“`(\[{-]*(?:(?i:option\s+)?\d{1,2}[.):]\s+)?(?i:option\s+)?([A-J])\s*(?:[)\]:*]+\s*|[.–—-]+\s+)(\S.*)$",
);

/// The letter that a text announces; nothing where announcements differ, where one names several, or has another option's text beside it.
pub fn letter(text: &str, options: &[Choice]) -> Option<char> {
    // The end of the first or last sentence.
    let ends = [sentences(text).next(), sentences(text).last()].into_iter().flatten();
    let ends = ends.filter_map(|one| concluded(one, options)).map(Some);
    let letter = agreed(announced(text, options).into_iter().chain(ends))??;
    let denies = |behind: &str| {
        let denied = behind.trim_start_matches([' ', '*', '_', '"']).strip_prefix("not ");
        denied.and_then(|rest| value(rest, options, told)) == Some(Some(letter))
    };
    // «C: Maybe. The answer is not C.»
    let is_denied = ANNOUNCED.find_iter(text).any(|start| denies(&text[start.end()..]));
    (!is_denied && !is_contradicted(letter, text, options)).then_some(letter)
}

/// Every announcement of a text; `None` inside for one that names several.
pub fn announced(text: &str, options: &[Choice]) -> Vec<Option<char>> {
    let text = text.trim();
    let is_short = text.len() < 30 && !text.contains('\n');
    if let Some(found) = value(text, options, leading).filter(|_| is_short) {
        // «b», «Option B», «B: aspirin»; not «A, B». «A: It depends» gives no letter: what stands behind a mark is of its option.
        let letters = text.split(|c: char| !c.is_alphanumeric());
        let letters = letters.filter(|word| matches!(word.as_bytes(), [b'A'..=b'J']));
        let is_one = letters.collect::<BTreeSet<_>>().len() < 2;
        let line = MARKED.captures(text).filter(|line| line[2].contains(char::is_alphanumeric));
        let is_own = |one| line.as_ref().is_none_or(|line| is_of(&line[2], one, options));
        let is_alone = |one: &char| is_one && is_own(*one) && !has_others(text, *one, options);
        return vec![found.filter(is_alone)];
    }
    if asks(text, options) {
        return vec![None];
    }
    let announced = ANNOUNCED.find_iter(text).filter(|start| !denies(start.as_str()));
    let announced = announced.filter_map(|start| value(&text[start.end()..], options, told));
    let alone = ALONE.captures_iter(text).filter_map(|found| found.get(1));
    let alone = alone.filter(|one| !ends_list(&text[..one.start()], one.as_str()));
    let alone = alone.map(|one| one.as_str().chars().next());
    let found = announced.chain(alone).chain(listed(text, options));
    let in_words = text.lines().filter_map(|line| whole(line, options));
    found.chain(in_words.chain(opened(text, options)).map(Some)).collect()
}

/// Whether a letter only ends a list that was cut off: `C: Heparin` stands in the line before `D`.
fn ends_list(before: &str, letter: &str) -> bool {
    let Some((lines, line)) = before.rsplit_once('\n') else { return false };
    let last = lines.trim_end().lines().next_back().and_then(|last| MARKED.captures(last));
    let follows = |last: &str| last.bytes().map(|one| one + 1).eq(letter.bytes());
    !line.contains(char::is_alphanumeric) && last.is_some_and(|last| follows(&last[1]))
}

/// Whether what follows an announcement is the first line of a list: a further option stands in the next.
fn begins_list(rest: &str, value: &str) -> bool {
    let is_below = rest[..rest.len() - value.len()].contains('\n');
    let lines = value.lines().filter(|line| !line.trim().is_empty()).take(2);
    let letters = lines.filter_map(|line| Some(MARKED.captures(line)?[1].to_owned()));
    is_below && letters.collect::<BTreeSet<_>>().len() == 2
}

/// Whether a text goes on to a question of its own, with other options.
fn asks(text: &str, options: &[Choice]) -> bool {
    let lists = text.split("Options:").skip(1).filter_map(|list| MARKED.captures(list));
    let mut lists = lists.map(|line| (line[1].to_owned(), leading(&line[2], options)));
    lists.any(|(letter, own)| own.map(String::from) != Some(letter))
}

/// The option of the only line that gives one by its letter and text. Several options, in lines or in one, are a list of them.
fn listed(text: &str, options: &[Choice]) -> Option<Option<char>> {
    let mut lines = MARKED.captures_iter(text);
    let first = lines.next()?;
    let (letter, said) = (first[1].chars().next()?, first.get(2)?.as_str());
    let heading = plain(text[..first.get(0)?.start()].trim_end().lines().next_back().unwrap_or(""));
    let is_list = LISTED.captures_iter(said).any(|other| other[1] != first[1]);
    if is_list || lines.any(|line| line[1] != first[1]) || heading.ends_with(" options ") {
        return None;
    }
    let told = || told(said, options).filter(|one| heading == " " && *one == letter);
    let own = beside(&text[first.get(1)?.end()..], options).or_else(told)?;
    Some(Some(letter).filter(|letter| *letter == own))
}

/// The option of one word that a text begins with: «No, the trial …». A first sentence that says another, too, lists them.
fn opened(text: &str, options: &[Choice]) -> Option<char> {
    let (word, _) = text.split_once([',', ';', '.', '\n', ':'])?;
    let found = whole(word, options).filter(|_| word.split_whitespace().count() == 1)?;
    (!has_others(sentences(text).next()?, found, options)).then_some(found)
}

type ByText = fn(&str, &[Choice]) -> Option<char>;

/// What stands where an answer should: a letter, or an option's text, as `by_text` finds it; `None` inside for several.
fn value(rest: &str, options: &[Choice], by_text: ByText) -> Option<Option<char>> {
    static OPENS: Pattern = Pattern::new(
        r"(?i)\A(?:[\s*_\x22'“”‘’`\[({$:=>-]|\\[(\[]|\\?(?:boxed|text(?:bf)?|mathrm|mathbf)\s*\{|(?:option|choice|letter|clearly|therefore|indeed|most|likely|probably|la)\b)*",
    );
    /// Another letter that may be meant instead, or a denial: «A: No answer can be given».
    static OTHER: Pattern = Pattern::new(
        r"^(?:[\s)\]}*_.\x22'”]*(?:(?:,|/|&|\||\b(?:or|and|then|as well as|oder|ou|o)\b|或)[\s(\[*_\x22']*)+|[^.!?\n]*\bother is )(?i:option |choice )?([A-J])(?:\W|$)|^[\s*]*[:–—-]+[\s*]*(?i:no|not|none|nothing|cannot)\b",
    );
    /// Of the rest only so much is looked at, in bytes: what announces may stand at every other word.
    const NEAR: usize = 4096;
    let rest = &rest[..rest.floor_char_boundary(NEAR)];
    let opened = &rest[OPENS.find(rest).map_or(0, |opens| opens.end())..];
    if begins_list(rest, opened) {
        return Some(None);
    }
    let line = opened.lines().next()?;
    let mut characters = line.chars();
    let written = characters.next()?;
    let letter = written.to_ascii_uppercase();
    let after = characters.as_str();
    if !('A'..='J').contains(&letter) || !ends(written, after) {
        let text = by_text(line, options)?;
        // «Heparin (C)», where heparin is B.
        let mut brackets =
            line.split('(').skip(1).filter(|inside| inside.chars().nth(1) == Some(')'));
        let is_other = brackets.any(|inside| !inside.starts_with(text));
        return Some(Some(text).filter(|_| !is_other));
    }
    let other = beside(after, options).or_else(|| leading(after.trim_start(), options));
    let is_option = |one: &str| options.iter().any(|option| one.starts_with(option.letter));
    // «(B), and I would …» names no option I where there is none.
    let or_else = OTHER.captures(after).is_some_and(|or| {
        or.get(1).map_or(other.is_none(), |one| options.is_empty() || is_option(one.as_str()))
    });
    let is_other = or_else || other.is_some_and(|other| other != letter);
    Some(Some(letter).filter(|_| !is_other))
}

/// Whether a letter ends by what follows it, instead of beginning a name or being a word: `C-reactive`, `E. coli`, «a man».
fn ends(letter: char, after: &str) -> bool {
    static GOES_ON: Pattern =
        Pattern::new(r"\A(?:[\p{Alphabetic}\d_^%°+]|[-\u{2011}'’.]\w|\.?\s+(\p{Ll}\w*|\d))");
    /// Words with which reasons begin.
    const REASONS: &str = " because since as for due based given which with ";
    let goes_on = GOES_ON.captures(after).is_some_and(|found| {
        found.get(1).is_none_or(|word| !REASONS.contains(&format!(" {} ", word.as_str())))
    });
    let is_closed = after.trim_matches(|c: char| !c.is_alphanumeric()).is_empty();
    is_closed || if letter.is_lowercase() { after.starts_with([')', ']']) } else { !goes_on }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Vec<Choice> {
        let texts = ["Aspirin", "Heparin", "Vitamin K", "E. coli vaccine", "Watchful waiting"];
        let choice = |(letter, text): (char, &str)| Choice { letter, text: text.to_owned() };
        ('A'..).zip(texts).map(choice).collect()
    }

    #[test]
    fn an_announced_letter_is_read() {
        for said in [
            "B",
            "(b).",
            "Option B",
            "**B**",
            "B: Heparin",
            "Heparin",
            "heparin.",
            "The answer is (B).",
            "Clots need it. Therefore, the correct answer is B: Heparin.",
            "**Final answer:** B",
            "Answer: b",
            "Answer - B",
            "The answer is most likely B.",
            "Conclusion: (B). Eliminated: (A), (C) and (D).",
            "\"answer\": \"B\"",
            "<answer>B</answer>",
            r"So \boxed{\text{B}}",
            "It clots, so the answer is B because it clots.",
            "I would go with option B.",
            "Option B is correct.",
            "B (Heparin) is the best answer.",
            "It clots.\n\nB\n",
            "It clots. B.",
            "B. Heparin\n\nIt stops the clot.",
            "The most likely drug to help is heparin. It stops the clot.",
            "Answer:\nB: Heparin\n\nIt stops the clot.",
            "Aspirin is weak.\n\nB",
            "It stops the clot.\nHeparin",
            "正确答案是B。",
            "Die richtige Antwort ist B (Heparin).",
            "The best next step is B: Heparin.",
            "The correct action for her doctor to take would be B: Heparin.",
            "The answer is: Heparin, which stops the clot.",
            "The letter of the right option is \"heparin\"",
            "She bleeds. In others the best drug is aspirin. In her the most appropriate drug is heparin.",
            "The best choice is heparin. The best known alternative is aspirin. The most likely cause is a clot. Answer: B",
            "The most appropriate option for this patient is B: Heparin, as the clot is new.",
            "The most appropriate treatment in a case like this one is B.",
            "The best choice, given her age, is (B).",
            "Option 1: B: Heparin",
            "1. Heparin",
            "It clots.\n\nC: Vitamin K is for bleeding.\n\nThe best next step is B: Heparin.",
            "**B: Heparin** stops the clot, which aspirin does not.",
            "The most appropriate drug is heparin. The best alternative is aspirin. It is not needed here.",
        ] {
            assert_eq!(letter(said, &options()), Some('B'), "{said}");
        }
        let said = "The most appropriate next step is to begin watchful waiting at home.";
        assert_eq!(letter(said, &options()), Some('E'));
    }

    #[test]
    fn what_announces_none_or_several_is_unread() {
        for said in [
            "",
            "...",
            "Answer: A\n\nQuestion 2: What now?\nAnswer: B",
            "Answer: A. No, wait. Answer: C.",
            "A boy has a cough.\nOptions:\nA: Steroids\nB: Penicillin\nAnswer: B",
            "The answer is B or C.",
            "The answer is likely B or C.",
            "Answer - none of B and C.",
            "A: Aspirin\nB: Heparin\nC: Vitamin K\nD: E. coli vaccine\nE: Watchful waiting",
            "A: Aspirin\nB: Heparin\nC: Vitamin K\nD: E. coli\nE: Waiting",
            "A: Heparin",
            "The answer is A: Heparin.",
            "The answer is C (Heparin).",
            "The most likely diagnosis is \"Heparin\" (C)",
            "The answer is heparin.\n\nThe letter of the right option is \"C\"",
            "The incorrect answer is B.",
            "The answer is not B.",
            "B: Heparin\n\nThis is a classic example. The answer is not B: Heparin.",
            "Nothing speaks for B here.",
            "A man has a clot.",
            "The answer is a matter of taste.",
            "C-reactive protein is high.",
            "The answer is E. coli.",
            "Vitamin A, B and C are given.",
            "- A: Clots need it. B: It stops them. C: No effect. D: None.",
            "The most likely drug is aspirin. It helps. The most likely drug is heparin. It may",
            "Blocking ATP-sensitive K-channels",
            "Option:\nA: Aspirin\nB: Heparin\nC: Vitamin K\nD: E. coli vaccine\nE: Watchful waiting\n\nThink it",
            "A man has a clot.\n\nOption:\nA: Steroids\n\nB: Penicillin\n\nWhat now?",
            "Answer:\n\nA: Aspirin\nB: Heparin\n\nAnswer:\n\nIncorrect.",
            "A man has a clot. Which drug?\n\nOptions:\nA: Aspirin",
            "A: Steroids\nB: Penicillin\nC: Rest\nD",
            "C: E. coli vaccin",
            "A: No answer can be given here.",
            "B. Heparin. A. Aspirin is weaker; C. Vitamin K reverses it.",
            "B: Heparin covers what there is, E. coli, C. freundlii and others.",
            "B: none of these",
            "B) It stops the clot.",
            "A: What is the dose?",
            "B: It depends.",
            "A: Aspirin, B: Heparin",
            "A. Aspirin. B. Heparin.",
            "A: Aspirin B: Heparin C: Vitamin K D: E. coli vaccine E: Watchful waiting",
            "Aspirin. Heparin.",
            "The answer is B, then C.",
            "The answer is B as well as C.",
            "One is given first, the other is heparin.",
            "The other is C: Vitamin K.",
            "An alternative is heparin.",
            "The least likely option in this case is B.",
            "The most incorrect option is B.",
            "C: Vitamin K. This answer is option D.",
            "C: Vitamin K is needed. This answer is option D: E. coli vaccine.",
            "The answer is B, the other is C, and both are right.",
            "A: Aspirin\n\nThe most appropriate next step is to choose watchful waiting to see it.",
            "The answer:\nA: Aspirin\nB: Heparin\nC: Vitamin K\n\nThe answer:\nA: Aspirin",
            "1. B: Aspirin",
            "1) The answer is A: Heparin",
        ] {
            assert_eq!(letter(said, &options()), None, "{said}");
        }
    }
}

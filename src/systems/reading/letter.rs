//! The letter of an option in a text as models write them; nothing where a careful reader would find none.

use std::sync::LazyLock;

use regex::Regex;

use super::option_text::by_text;
use super::order::{self, Marked};
use super::standing::{
    Place, clause_start, is_one_of_several, is_ruled_out, last_word, stands_alone,
};
use crate::data::Choice;
use crate::text::Pattern;

/// What stands between a word such as «answer» and its letter: marks, and words that say no more.
const BETWEEN: &str = r#"(?:[\s*_"'“”‘’`\[$<>:=,#~-]|&nbsp;|\\?\(|\\?\{|\\boxed|\\text(?:bf|it)?|\\mathbf|\\mathrm|\boption\b|\bchoice\b|\bletter\b|\bclearly\b|\bdefinitely\b|\btherefore\b|\bthus\b|\bmost likely\b|\bprobably\b|\bindeed\b|\bla\b|\bopci[oó]n\b|\bOption\b|选项|选择|الخيار)*"#;

/// A letter as an answer is announced.
static ANNOUNCED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let is = r"(?:is|are|was|would be|should be|must be|will be|has to be|remains|seems to be|appears to be|being|:|=|：|—|–|->|→|-)";
    let subject = r"(?:answer|answer choice|(?:correct|best|right|final|my|selected|chosen|preferred) (?:option|choice|letter|pick|decision|vote|response)|selection|conclusion|verdict|ans)";
    let weak_subject = r"(?:option|choice|diagnosis|decision|vote|response|pick|step|management|treatment|therapy|drug|medication|test|study|intervention|cause|explanation|mechanism|finding|statement|location)";
    let patterns = [
        // Answer: E; the correct answer is (E); final answer - E
        format!(r"(?i:\b{subject}\b)[\s*_)'`\x22“”]*(?i:\(?(?:letter|choice|option)\)?)?[\s*_'`\x22“”]*(?i:{is}){BETWEEN}([A-Ja-j])"),
        format!(r"(?i:\b{weak_subject}\b)[\s*_]*(?i:(?:is|would be|should be|must be|remains)\b){BETWEEN}([A-J])"),
        // Decision: E
        format!(r"(?:^|[.\n!?])[\s*_#>-]*(?i:(?:my |final |the )?(?:choice|decision|vote|pick)s?)[\s*_]*[:：]{BETWEEN}([A-J])"),
        // **Answer** E
        format!(r"(?i:\*\*\s*(?:final |correct |best )?answer\s*:?\s*\*\*){BETWEEN}([A-J])"),
        r"\\boxed\s*\{[\s{(*]*(?:\\text(?:bf|it)?\s*\{)?[\s({*]*([A-Ja-j])".to_owned(),
        // I choose E; we would go with option E
        format!(r"(?i:\b(?:choose|chose|choosing|pick|select|selected|selecting|go with|going with|went with|settle on|vote for|voting for|stick with|sticking with|stay with|opt for|leaning towards?|lean towards?|in favou?r of|favou?r|maintain|keep|change (?:my (?:answer|vote|choice) )?(?:from (?:option )?\W*[A-J]\W* )?to|switch(?: from (?:option )?\W*[A-J]\W*)? to|answer with|answer)\b){BETWEEN}([A-J])"),
        // so E is the answer; option E is correct
        r"(?:^|[\s(*_`\[])([A-J])[)\].*_`:]*\s+(?:(?:\([^)]*\)|[^.\n]{0,80}?)\s+)?(?i:(?:is|as|seems|appears|remains)\s+(?:clearly |definitely |therefore |thus |indeed |probably |most likely |by far )*(?:the\s+)?(?:single\s+)?(?:most\s+)?(?:correct|best|right|appropriate|likely|accurate|suitable|final)\b)".to_owned(),
        format!(r"(?i:\b(?:die (?:richtige |korrekte |beste )?antwort|antwort|lösung|la (?:respuesta|opción)(?: correcta| más probable)?|l[ao] más probable|respuesta(?: correcta| final)?|opción correcta|la (?:bonne )?réponse(?: correcte| finale)?|réponse(?: correcte| finale)?|a resposta(?: correta)?|la risposta(?: corretta)?|risposta)\b)[\s*_]*(?i:ist|lautet|wäre|es|sería|est|serait|è|é|:|=|：){BETWEEN}([A-J])"),
        format!(r"(?:正确答案|答案|最佳选项|选择|应选|故选|因此选|所以选|选){{1}}(?:应该|应)?(?:是|为|：|:)?{BETWEEN}([A-J])"),
        format!(r"(?:الإجابة|الجواب)(?: الصحيحة| الصحيح)?\s*(?:هي|هو|:)?{BETWEEN}([A-J])"),
    ];
    patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
});

/// «The answer would be B if …», «If it were …, the answer would be C»
static IF: Pattern = Pattern::new(
    r"(?i)\bwould (?:be|have been|choose|pick|go)\b.*\b(?:if|unless)\b|\b(?:if|unless)\b.*\bwould (?:be|have been|choose|pick|go|change)\b",
);

/// Who else chose an option, where the speaker is not named after them.
static PEERS: Pattern = Pattern::new(
    r"(?i)(?:\A|\W)(?:doctors?|agents?|colleagues?|experts?|others|some|many|most|two|three|four|students)\b(?:[^\n]{0,40})\b(?:favou?r(?:s|ed)?|chose|chooses?|picks?|picked|selects?|selected|votes? for|voted for|answers?|answered|go(?:es)? with|went with)\W*(?:option )?\W*\z",
);

/// What leads from one announcement to another that takes it back or concludes.
static REVISES: Pattern = Pattern::new(
    r"(?i)\b(?:wait|actually|final(?:ly)?|instead|however|but|yet|although|corrected|correction|revis\w+|reconsider\w*|re-?evaluat\w+|chang\w+|switch\w*|sorry|oops|rather|so|therefore|thus|hence|overall|conclu\w+|after|then|no|not|wrong|incorrect|mistaken?|now|best|persuaded|convinced|still|having|remains|your question|maintain|keep|stay)\b|[^\x00-\x7F]",
);

/// A line that is a letter with marks around it, or a letter in bold or brackets before an option's text.
static LINE: Pattern = Pattern::new(
    r#"(?m)^[\s>#*_"'“`(\[{-]*(?:Option\s+)?([A-J])(?:[\s*_"'”`)\]}.!]*$|\s*[)\].:*_—–]+\s*\S.*$)"#,
);

/// Where a model goes on with a question of its own.
static NEXT_QUESTION: Pattern = Pattern::new(
    r"(?m)^[\s*#_]*(?:(?:(?:Next |New )?Question(?: \d+)?|Q\d*|User|Human|Input|Options|Case \d+)\s*[*_]*:|Example \d+[ *_:]*$)",
);

/// The letter that a text gives as its answer. Where an answer is announced, the last announcement counts, unless another one stands
/// against it that nothing takes back; else a line of its own, the
/// last letter of the last sentence that has any, or the one option whose text is said. Articles, pronouns, vitamins and bacteria are no
/// letters, nor is an option that is ruled out. `None` where none or more than one remains.
pub fn letter(text: &str, options: &[Choice]) -> Option<char> {
    /// The whole of a text, but for what it is called.
    static WHOLE: Pattern =
        Pattern::new(r"(?i)\A\W*(?:(?:option|choice|answer|letter)\b)?[\W_]*([a-j])[\W_]*\z");
    let text = until_next_question(text);
    if let [alone] = text.trim().trim_matches(|c: char| !c.is_alphanumeric()).as_bytes() {
        return Some(char::from(*alone).to_ascii_uppercase()).filter(|c| ('A'..='J').contains(c));
    }
    if let Some(letter) = WHOLE.captures(text).and_then(|whole| whole[1].chars().next()) {
        let letter = letter.to_ascii_uppercase();
        return options.iter().any(|option| option.letter == letter).then_some(letter);
    }
    let announced = announced(text, options);
    if let Some(last) = announced.last() {
        let taken_back = last_word_alone(&text[last.at..]).filter(|other| *other != last.letter);
        let other = announced.iter().rfind(|one| one.letter != last.letter);
        if other.is_some_and(|other| !REVISES.is_match(&text[other.at..last.at])) {
            return None;
        }
        let is_one = !is_one_of_several(&text[last.at..]);
        return is_one.then_some(taken_back.unwrap_or(last.letter));
    }
    if let Some(ranked) = order::by_order(text) {
        return Some(ranked);
    }
    if let Some(first) = order::by_first_line(text, options) {
        return Some(first);
    }
    match order::by_marks(text, options) {
        Marked::One(letter) => return Some(letter),
        Marked::Unclear => return None,
        Marked::Nothing => {}
    }
    let text = &order::without_options(text, options);
    by_line(text, options)
        .or_else(|| by_text(text, options))
        .or_else(|| by_last_letter(text, options))
}

/// The letter that is all of a text's last sentence: «…, just kidding. D.»
fn last_word_alone(text: &str) -> Option<char> {
    static LAST: Pattern = Pattern::new(r"[.!?\n]\s+[*(\x22]*([A-J])[*)\x22]*[.!]?\s*\z");
    LAST.captures(text)?[1].chars().next()
}

/// The text before a question that the model made up, if anything was answered before.
fn until_next_question(text: &str) -> &str {
    /// A first line that is a letter alone.
    static FIRST_LINE: Pattern = Pattern::new(r"\A\W*[A-J]\W*\n");
    let announced = || announced(text, &[]).first().map(|place| place.at);
    let answered = if FIRST_LINE.is_match(text) { Some(0) } else { announced() };
    let Some(first) = answered else {
        return text;
    };
    let mut next = NEXT_QUESTION.find_iter(text);
    let end = next.find(|next| next.start() > first);
    &text[..end.map_or(text.len(), |end| end.start())]
}

fn announced(text: &str, options: &[Choice]) -> Vec<Place> {
    let mut found: Vec<Place> = Vec::new();
    for pattern in ANNOUNCED.iter() {
        // Announcements may follow each other without a gap.
        for captures in pattern.captures_iter(text) {
            let Some(group) = captures.get(1) else { continue };
            let Some(written) = group.as_str().chars().next() else { continue };
            let marked = text[..group.start()].ends_with(['(', '{', '[', '*', '"', '\'', '`', '“']);
            if (written.is_lowercase() && !is_closed(&text[group.end()..], marked))
                || !stands_alone(text, group.start(), options)
            {
                continue;
            }
            let before = &text[..captures.get(0).map_or(0, |whole| whole.start())];
            let clause = &text[clause_start(text, group.start())..group.start()];
            // «not persuaded and stay with B»
            let joint = [" and ", " but "].iter().filter_map(|word| clause.rfind(word)).max();
            let clause = &clause[joint.unwrap_or(0)..];
            let sentence = &text[sentence_start(text, group.start())..];
            let sentence = sentence.split(['.', '\n']).next().unwrap_or_default();
            let is_hypothetical = IF.is_match(sentence);
            let denies = [
                "not ",
                "n't ",
                "wrong",
                "incorrect answer",
                "instead of",
                "if i ",
                "if we ",
                "had i ",
                "could have ",
                "would have ",
                "almost ",
                "tempt",
                "at first",
                "initially",
                "least ",
            ]
            .iter()
            .any(|no| clause.to_lowercase().contains(no));
            let others = ["agent", "doctor", "their", "other"];
            let earlier = ["previous", "original", "initial", "earlier", "first", "draft"];
            let of_other = before.ends_with(' ')
                && others.iter().chain(&earlier).any(|who| last_word(before) == *who);
            let subject = text[..group.start()].rsplit(['.', '\n', ';', '!', '?']).next();
            let of_peers = PEERS.is_match(subject.unwrap_or_default());
            if !denies && !is_hypothetical && !of_other && !of_peers {
                found.push(Place { letter: written.to_ascii_uppercase(), at: group.start() });
            }
        }
    }
    found.sort_by_key(|place| place.at);
    found
}

/// A letter in lower case counts between marks, or where nothing else is said.
fn is_closed(after: &str, marked: bool) -> bool {
    let rest = after.trim_start_matches([')', '}', ']', '*', '"', '\'', '`', '”', '.']);
    marked && rest.len() < after.len() || rest.trim().is_empty() || rest.starts_with('\n')
}

/// The one letter that stands in a line of its own, or before a line.
fn by_line(text: &str, options: &[Choice]) -> Option<char> {
    let lines = LINE.captures_iter(text).filter_map(|captures| captures.get(1));
    let lines = lines.filter(|group| stands_alone(text, group.start(), options));
    let found: Vec<Place> = lines
        .filter_map(|group| {
            Some(Place { letter: group.as_str().chars().next()?, at: group.start() })
        })
        .collect();
    let has = |place: &&Place| {
        options.is_empty() || options.iter().any(|option| option.letter == place.letter)
    };
    let is_alone = |place: &&Place| {
        let line = text[place.at + 1..].lines().next().unwrap_or_default();
        !line.contains(char::is_alphanumeric)
    };
    if let Some(alone) = found.iter().rev().filter(has).find(is_alone) {
        return Some(alone.letter);
    }
    let mut letters: Vec<char> = found.iter().filter(has).map(|place| place.letter).collect();
    letters.dedup();
    let [only] = letters[..] else { return None };
    let place = found.iter().find(|place| place.letter == only)?;
    let line = text[place.at..].lines().next().unwrap_or_default();
    (!is_ruled_out(text, *place) && !is_one_of_several(line)).then_some(only)
}

/// The last letter of the last sentence that has one, where no other of that sentence stands against it.
fn by_last_letter(text: &str, options: &[Choice]) -> Option<char> {
    let has = |letter: char| options.iter().any(|option| option.letter == letter);
    let places =
        text.char_indices().filter(|(_, c)| has(*c)).map(|(at, letter)| Place { letter, at });
    let alone: Vec<Place> = places.filter(|place| stands_alone(text, place.at, options)).collect();
    let last = alone.iter().rfind(|place| !is_ruled_out(text, **place))?;
    // What follows it must not rule out more: then the text is still on its way.
    if alone.last() != Some(last) && text.len() > 2_000 {
        return None;
    }
    let start = sentence_start(text, last.at);
    let mut others = alone.iter().filter(|place| place.at >= start && !is_ruled_out(text, **place));
    let decides = [
        "so ",
        "therefore",
        "thus",
        "hence",
        "conclu",
        "must be",
        "leaves",
        "leaving",
        "left",
        "best",
        "it's",
        "it is",
        "likely",
        "probabl",
        "favo",
        "prefer",
    ];
    let clause = text[clause_start(text, last.at)..last.at].to_lowercase();
    let is_decided = decides.iter().any(|word| clause.contains(word));
    let is_only =
        alone.iter().all(|place| place.letter == last.letter || is_ruled_out(text, *place));
    let is_of_sentence = others.all(|place| place.letter == last.letter);
    (is_decided || is_only && is_of_sentence).then_some(last.letter)
}

pub(super) fn sentence_start(text: &str, at: usize) -> usize {
    let ends = text[..at].rmatch_indices(['.', '\n', '!', '?']);
    let is_end = |end: usize| {
        let after = text[end + 1..].trim_start_matches(['*', '_', ')', '"', '”']);
        after.starts_with([' ', '\n'])
    };
    let mut ends = ends.filter(|(end, mark)| *mark == "\n" || is_end(*end));
    ends.next().map_or(0, |(end, _)| end + 1)
}

/// The last letter that a text announces as its answer.
pub fn announced_letter(text: &str, options: &[Choice]) -> Option<char> {
    announced(until_next_question(text), options).last().map(|place| place.letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that does not compile would find nothing, and nobody would know.
    #[test]
    fn every_pattern_compiles() {
        assert_eq!(ANNOUNCED.len(), 10);
        assert!(LINE.regex().is_some() && NEXT_QUESTION.regex().is_some());
    }
}

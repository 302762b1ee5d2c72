//! An item without one of its sentences.

use super::{Item, running_text, sentences};

impl Item {
    /// The item without the sentence of this number, which counts from 1, and the sentence. A note's numbers close up, its gold follows them,
    /// and is gone with the sentence that it names; of a question the options stay.
    ///
    /// # Errors
    /// How many sentences it has, where it has no such, or no other.
    pub fn without_sentence(&self, number: usize) -> Result<(Item, String), usize> {
        let mut item = self.clone();
        let at = number.wrapping_sub(1);
        let refuse = |count: usize| if at < count && count > 1 { Ok(()) } else { Err(count) };
        let dropped = match &mut item {
            Item::Question(question) => {
                let text = std::mem::take(&mut question.question);
                let split = running_text::split(&text);
                refuse(split.len())?;
                question.question = cut(&text, &split, at).unwrap_or_default();
                split[at].to_owned()
            }
            Item::Note(note) => {
                refuse(note.sentences.len())?;
                let is_numbered = sentences::numbered(&note.text, "") == note.sentences;
                let cut = cut(&note.text, &note.sentences, at);
                let dropped = note.sentences.remove(at);
                note.text = match (is_numbered, cut) {
                    (true, _) => {
                        let lines = note.sentences.iter().enumerate();
                        lines
                            .map(|(id, sentence)| format!("{id} {sentence}"))
                            .collect::<Vec<_>>()
                            .join("\n")
                    }
                    (false, Some(text)) => text,
                    // A sentence whose lines were joined does not stand in the text as it is.
                    (false, None) => note.sentences.join(" "),
                };
                let named =
                    note.gold.as_ref().and_then(|gold| Some(gold.error.as_ref()?.sentence_id));
                match (named, note.gold.as_mut().and_then(|gold| gold.error.as_mut())) {
                    (Some(named), _) if named == at => note.gold = None,
                    (Some(named), Some(error)) if named > at => error.sentence_id -= 1,
                    _ => {}
                }
                dropped
            }
        };
        Ok((item, dropped))
    }
}

/// A text without one of its sentences and the blanks behind it; `None` where they do not all stand in it, one after another.
fn cut<S: AsRef<str>>(text: &str, sentences: &[S], at: usize) -> Option<String> {
    let mut end = 0;
    let mut start = 0;
    for sentence in &sentences[..=at] {
        start = end + text[end..].find(sentence.as_ref())?;
        end = start + sentence.as_ref().len();
    }
    let rest = text[end..].trim_start();
    let before = if rest.is_empty() { text[..start].trim_end() } else { &text[..start] };
    Some(format!("{before}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::scripted::{note, question};

    #[test]
    fn a_question_loses_one_sentence_and_no_more() {
        let mut asked = question(3);
        asked.question = "He is 50 and ill.\nHe has a cough.  Which one?".to_owned();
        let without = |number: usize| {
            let (item, dropped) = Item::from(asked.clone()).without_sentence(number)?;
            let question = item.question().unwrap().clone();
            assert_eq!(question.options, asked.options);
            Ok::<_, usize>((question.question, dropped))
        };
        let said = |text: &str, dropped: &str| Ok((text.to_owned(), dropped.to_owned()));
        assert_eq!(without(1), said("He has a cough.  Which one?", "He is 50 and ill."));
        assert_eq!(without(2), said("He is 50 and ill.\nWhich one?", "He has a cough."));
        assert_eq!(without(3), said("He is 50 and ill.\nHe has a cough.", "Which one?"));
        assert_eq!((without(0), without(4)), (Err(3), Err(3)));
        asked.question = "Which one?".to_owned();
        assert_eq!(Item::from(asked).without_sentence(1), Err(1));
    }

    #[test]
    fn a_note_s_numbers_close_up_and_its_gold_follows() {
        let without = |note: &crate::data::Note, number: usize| {
            let (item, _) = Item::from(note.clone()).without_sentence(number).unwrap();
            let note = item.note().unwrap();
            let gold = note.gold.as_ref().map(|gold| gold.error.as_ref().unwrap().sentence_id);
            (note.text.clone(), note.sentences.len(), gold)
        };
        let mut written = note();
        let [first, wrong, last] = &written.sentences.clone()[..] else { panic!("three") };
        assert_eq!(without(&written, 1), (format!("{wrong} {last}"), 2, Some(0)));
        assert_eq!(without(&written, 2), (format!("{first} {last}"), 2, None));
        assert_eq!(without(&written, 3), (format!("{first} {wrong}"), 2, Some(1)));
        written.text = format!("0 {first}\n1 {wrong}\n2 {last}");
        assert_eq!(without(&written, 1), (format!("0 {wrong}\n1 {last}"), 2, Some(0)));
        written.text = "He came;\nshe went.".to_owned();
        assert_eq!(without(&written, 3).0, format!("{first} {wrong}"));
    }
}

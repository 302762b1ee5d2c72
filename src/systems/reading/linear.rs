//! What reads replies, for `crate::linear`: of what a model writes, much is what a client sent.

use super::{
    answer, confidence, correction, echo, json, letter, options, record, reply, verdict, words,
};
use crate::linear::{self, keep};
use crate::record::{FinishReason, Message, Parse};
use crate::systems::scripted::{note, question};

#[test]
fn what_reads_a_reply_takes_time_in_proportion_to_it() {
    let options = question(5).options;
    let (options, note) = (options.as_slice(), note());
    let stop = FinishReason::Stop;
    linear::check(&[
        ("answer::of_field", &|text| keep(answer::of_field(text, text, options, Parse::Ok))),
        ("answer::of_text", &|text| keep(answer::of_text(text, options))),
        ("answer::normalise_answer", &|text| keep(answer::normalise_answer(text))),
        ("answer::leading_letter", &|text| keep(answer::leading_letter(text))),
        ("confidence::converted", &|text| keep(confidence::converted(text))),
        ("correction::corrected", &|text| keep(correction::corrected(text))),
        ("correction::without_marks", &|text| keep(correction::without_marks(text))),
        ("correction::without_number", &|text| keep(correction::without_number(text))),
        ("correction::change", &|text| keep(correction::change(text, Some(1), &note))),
        ("correction::is_cut_off", &|text| keep(correction::is_cut_off(text, &note))),
        ("echo::is_echo", &|text| {
            let messages = [Message::new("user", format!("Read this: {text}"))];
            keep(echo::is_echo(text, &messages, &[text.to_owned()]));
        }),
        ("json::objects", &|text| keep(json::objects(text))),
        ("json::list", &|text| keep(json::list(&format!("[{text}")))),
        ("letter::letter", &|text| keep(letter::letter(text, options))),
        ("letter::announced", &|text| keep(letter::announced(text, options))),
        ("options::whole", &|text| keep(options::whole(text, options))),
        ("options::leading", &|text| keep(options::leading(text, options))),
        ("options::told", &|text| keep(options::told(text, options))),
        ("options::in_field", &|text| keep(options::in_field(text, options))),
        ("options::has_others", &|text| keep(options::has_others(text, 'A', options))),
        ("options::is_of", &|text| keep(options::is_of(text, 'A', options))),
        ("options::denies", &|text| keep(options::denies(text))),
        ("options::concluded", &|text| keep(options::concluded(text, options))),
        ("options::is_contradicted", &|text| {
            keep(options::is_contradicted('A', text, options));
        }),
        ("answer::contradicts_itself", &|text| {
            keep(answer::contradicts_itself(text, options));
        }),
        ("options::beside", &|text| keep(options::beside(text, options))),
        ("correction::word_count", &|text| keep(correction::word_count(text))),
        ("correction::quoted", &|text| {
            keep(correction::quoted(&[format!("Before {text}")], text));
        }),
        ("reading::said", &|text| keep(super::said(text))),
        ("reading::without_thinking", &|text| keep(super::without_thinking(text))),
        ("reading::is_nothing", &|text| keep(super::is_nothing(text))),
        ("reading::plain", &|text| keep(super::plain(text))),
        ("reading::sentences", &|text| keep(super::sentences(text).count())),
        ("reading::refuses", &|text| keep(super::refuses(text))),
        ("record::read", &|text| {
            keep(record::read(text, stop, |value| value.get("answer").cloned()));
        }),
        ("record::exact", &|text| {
            keep(record::exact(text, &|one: &record::Object| Some(one.clone())))
        }),
        ("record::read_or_lines", &|text| {
            keep(record::read_or_lines(text, stop, |value| value.get("answer").cloned()));
        }),
        ("record::prose", &|text| keep(record::prose(text))),
        ("reply::passage", &|text| keep(reply::passage(text))),
        ("reply::read", &|text| {
            let reply = reply::Fields::read(text, stop, "answer");
            keep((reply.answer(options), reply.prose("answer"), reply.confidence()));
        }),
        ("record::labelled", &|text| keep(record::labelled(text))),
        ("verdict::verdict", &|text| keep(verdict::verdict(text))),
        ("verdict::names_error", &|text| keep(verdict::names_error(text))),
        ("words::is_name", &|text| keep(words::is_name(text))),
        ("words::parts", &|text| keep(words::parts(text))),
        ("words::list_items", &|text| keep(words::list_items(text))),
        ("words::consents", &|text| keep(words::consents(text))),
        ("words::said_confidence", &|text| keep(words::said_confidence(text))),
        ("words::number_in", &|text| keep(words::number_in(text))),
        ("words::one_of", &|text| keep(words::one_of(text, &["agree", "a"]))),
    ]);
}

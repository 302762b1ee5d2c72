//! What reads replies, for `crate::linear`: of what a model writes, much is what a client sent.

use super::{
    answer, confidence, correction, echo, harness, json, letter, options, record, reply, verdict,
    words,
};
use crate::linear;
use crate::record::{FinishReason, Message};
use crate::systems::scripted::question;

#[test]
fn what_reads_a_reply_takes_time_in_proportion_to_it() {
    let options = question(5).options;
    let options = options.as_slice();
    let stop = FinishReason::Stop;
    linear::check(&[
        ("answer::of_field", &|text| linear::keep(answer::of_field(text, text, options))),
        ("answer::of_medmads_field", &|text| {
            linear::keep(answer::of_medmads_field(text, text, options));
        }),
        ("answer::of_text", &|text| linear::keep(answer::of_text(text, options))),
        ("answer::normalise_answer", &|text| linear::keep(answer::normalise_answer(text))),
        ("answer::leading_letter", &|text| linear::keep(answer::leading_letter(text))),
        ("answer::harness_letter", &|text| {
            linear::keep(answer::harness_letter(text, 'A'..='J'));
        }),
        ("answer::clean_letter", &|text| linear::keep(answer::clean_letter(text))),
        ("confidence::converted", &|text| linear::keep(confidence::converted(&text.into()))),
        ("correction::corrected", &|text| linear::keep(correction::corrected(text))),
        ("correction::without_marks", &|text| linear::keep(correction::without_marks(text))),
        ("echo::without_echo", &|text| {
            let messages = [Message::new("user", text)];
            linear::keep(echo::without_echo(text, &messages, &[]));
        }),
        ("echo::without_echo, of the item", &|text| {
            let messages = [Message::new("user", format!("Read this: {text}"))];
            linear::keep(echo::without_echo(text, &messages, &[text.to_owned()]));
        }),
        ("harness::object", &|text| linear::keep(harness::object(text))),
        ("harness::lines", &|text| linear::keep(harness::lines(text))),
        ("harness::exact_letter", &|text| linear::keep(harness::exact_letter(text, options))),
        ("json::objects", &|text| linear::keep(json::objects(text))),
        ("json::list", &|text| linear::keep(json::list(&format!("[{text}")))),
        ("letter::letter", &|text| linear::keep(letter::letter(text, options))),
        ("letter::announced", &|text| linear::keep(letter::announced(text, options))),
        ("options::whole", &|text| linear::keep(options::whole(text, options))),
        ("options::leading", &|text| linear::keep(options::leading(text, options))),
        ("options::concluded", &|text| linear::keep(options::concluded(text, options))),
        ("options::is_contradicted", &|text| {
            linear::keep(options::is_contradicted('A', text, options));
        }),
        ("options::contradicts_itself", &|text| {
            linear::keep(options::contradicts_itself(text, options));
        }),
        ("options::beside", &|text| linear::keep(options::beside(text, options))),
        ("reading::said", &|text| linear::keep(super::said(text))),
        ("reading::without_thinking", &|text| linear::keep(super::without_thinking(text))),
        ("reading::plain", &|text| linear::keep(super::plain(text))),
        ("reading::sentences", &|text| linear::keep(super::sentences(text).count())),
        ("reading::refuses", &|text| linear::keep(super::refuses(text))),
        ("record::read", &|text| {
            linear::keep(record::read(text, stop, |value| value.get("answer").cloned()));
        }),
        ("record::prose", &|text| linear::keep(record::prose(text))),
        ("reply::said", &|text| linear::keep(reply::Passage::said(text))),
        ("reply::read", &|text| {
            let reply = reply::Reply::read(text, stop, "answer");
            let confidence = reply.confidence(confidence::ConfidenceReading::Converted);
            linear::keep((reply.answer(options), reply.prose("answer"), confidence));
        }),
        ("reply::of", &|text| linear::keep(reply::Reply::of(true, text, stop, "answer"))),
        ("reply::exact", &|text| linear::keep(reply::Reply::exact(text))),
        ("reply::lines", &|text| linear::keep(reply::lines(text))),
        ("verdict::verdict", &|text| linear::keep(verdict::verdict(text))),
        ("words::named_item", &|text| linear::keep(words::named_item(text))),
        ("words::is_name", &|text| linear::keep(words::is_name(text))),
        ("words::parts", &|text| linear::keep(words::parts(text))),
        ("words::list_items", &|text| linear::keep(words::list_items(text))),
        ("words::consents", &|text| linear::keep(words::consents(text))),
        ("words::said_confidence", &|text| linear::keep(words::said_confidence(text))),
        ("words::number_in", &|text| linear::keep(words::number_in(text))),
        ("words::one_of", &|text| linear::keep(words::one_of(text, &["agree", "a"]))),
    ]);
}

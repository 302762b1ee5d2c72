//! Renders the templates of the web page. All texts are escaped as in reports.

use std::collections::HashSet;

use axum::http::HeaderValue;
use axum::http::request::Parts;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::{Value, json};

use crate::analysis::notes::{Finding, UNREAD, may_be_followed, segments};
use crate::data::ItemKind;
use crate::record::{CallLine, ItemLine};
use crate::report::escape_value;
use crate::serve::app::App;
use crate::serve::case::store::KeptCase;
use crate::serve::case::words::{self, CallWords};
use crate::serve::check::status;
use crate::serve::error::{ApiError, Code};
use crate::serve::guard::{self, Caller};
use crate::serve::session::{self, VISITOR};

const TEMPLATES: [(&str, &str); 5] = [
    ("shell.html", include_str!("shell.html")),
    ("index.html", include_str!("index.html")),
    ("case.html", include_str!("case.html")),
    ("login.html", include_str!("login.html")),
    ("error.html", include_str!("error.html")),
];

/// The user-specific values of every page.
pub struct Shell {
    /// The token of this user's forms; `None` for a visitor without a cookie, who has been shown no form.
    token: Option<String>,
    /// The name of the user; `None` also if there are no keys.
    user: Option<String>,
    /// Whether the connection is encrypted.
    pub is_secure: bool,
    /// The cookie that a visitor without one gets with the page.
    pub new_cookie: Option<HeaderValue>,
}

impl Shell {
    /// Whoever is not logged in is a visitor, whose forms belong to a cookie.
    pub fn new(app: &App, request: &Parts, caller: Option<&Caller>) -> Shell {
        let is_secure = guard::is_secure(&request.extensions);
        let mut new_cookie = None;
        let token = match caller {
            Some(caller) => Some(caller.form_token(&app.page_secret)),
            None => {
                let mut cookie = VISITOR.of(&request.headers, is_secure);
                if cookie.is_none() && request.method.is_safe() {
                    cookie = session::random_id().ok();
                    new_cookie = VISITOR.set(cookie.as_deref(), is_secure);
                }
                cookie.map(|cookie| guard::visitors_token(&cookie, &app.page_secret))
            }
        };
        let user = caller.map(|caller| caller.name().to_owned());
        Shell { token, user, is_secure, new_cookie }
    }

    /// # Errors
    /// The token of another user, or from before the last login.
    pub fn check(&self, token: &str) -> Result<(), ApiError> {
        match self.token.as_deref() == Some(token) {
            true => Ok(()),
            false => {
                let message = "this form was not made for you, or is too old: load the page again";
                Err(ApiError::new(Code::Forbidden, message))
            }
        }
    }
}

fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(escape_value);
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    Ok(environment)
}

pub fn render(app: &App, shell: &Shell, template: &str, values: Value) -> Result<String, ApiError> {
    let models: Vec<Value> = app.loaded().map_or_else(Vec::new, |served| {
        let models = served.models.iter().map(|model| {
            json!({
                "name": model.id, "fingerprint": model.fingerprint,
                "synthetic": model.backbone.description.is_synthetic, "notice": model.notice(),
            })
        });
        models.collect()
    });
    let is_synthetic = models.iter().any(|model| model["synthetic"] == true);
    let mut all = json!({
        "token": shell.token.as_deref().unwrap_or_default(), "user": shell.user, "models": models, "is_synthetic": is_synthetic,
        "version": env!("CARGO_PKG_VERSION"),
        "selftest": app.loaded().and_then(|served| served.selftest.clone()),
    });
    if let (Value::Object(all), Value::Object(values)) = (&mut all, values) {
        all.extend(values);
    }
    let rendered = environment().and_then(|environment| {
        environment.get_template(template)?.render(minijinja::Value::from(Serde(all)))
    });
    rendered.map_err(|error| ApiError::new(Code::Internal, format!("the page: {error:#}")))
}

/// The page with the forms for notes and questions.
pub fn index(app: &App, shell: &Shell, cases: &[KeptCase]) -> Result<String, ApiError> {
    let of = |kind: ItemKind| -> Vec<&str> {
        let systems = app.loaded().into_iter().flat_map(|served| &served.systems);
        systems
            .filter(move |system| system.takes() == kind)
            .map(|system| system.id.as_str())
            .collect()
    };
    let cases: Vec<Value> = cases
        .iter()
        .map(|case| {
            json!({
                "id": case.head.id, "created_at": case.head.created_at,
                "system": case.head.ask.system.id, "status": status(case), "headline": headline(case),
            })
        })
        .collect();
    let values = json!({
        "is_loading": app.loaded().is_none(), "note_systems": of(ItemKind::Notes),
        "question_systems": of(ItemKind::Questions), "cases": cases,
    });
    render(app, shell, "index.html", values)
}

/// The outcome in a few words, without text of the note.
fn headline(case: &KeptCase) -> String {
    let Some(outcome) = &case.outcome else { return String::new() };
    match outcome.as_ref() {
        Err(error) => error.message.clone(),
        Ok(worked) => match &worked.line {
            ItemLine::Answer(line) if line.answer.is_empty() => "no answer".to_owned(),
            ItemLine::Answer(line) => format!("answer {}", line.answer),
            ItemLine::Note(line) => Finding::of(line, &worked.calls, &worked.searches).headline(),
        },
    }
}

/// The sources of a finding: words that they share with the correction are marked, and safe URLs become links.
fn sources(finding: &Value) -> Vec<Value> {
    let sources = &finding["sources"];
    let list = |field: &str| sources[field].as_array().map_or(&[][..], Vec::as_slice);
    let shared = list("shared").iter().filter_map(|word| word.as_str().map(str::to_owned));
    let shared: HashSet<String> = shared.collect();
    let source = |passage: &Value| {
        let text = |field: &str| passage[field].as_str().filter(|text| !text.is_empty());
        let paragraph = passage["paragraph"].as_u64().filter(|paragraph| *paragraph > 0);
        let facts = [
            text("source").map(str::to_owned),
            paragraph.map(|paragraph| format!("paragraph {paragraph}")),
            text("date").map(str::to_owned),
            text("licence").map(str::to_owned),
        ];
        json!({
            "title": text("title").or(text("chunk")),
            "facts": facts.into_iter().flatten().collect::<Vec<_>>(),
            "segments": segments(text("text").unwrap_or_default(), &shared),
            "url": text("url"), "is_link": text("url").is_some_and(may_be_followed),
        })
    };
    list("passages").iter().map(source).collect()
}

pub fn case(app: &App, shell: &Shell, case: &KeptCase) -> Result<String, ApiError> {
    let KeptCase { head, calls, outcome, .. } = case;
    let ask = &head.ask;
    let kind = ask.system.takes();
    let call = |call: &CallLine| json!({"line": CallWords::of(kind, call).line().trim_end(), "text": call.text});
    let calls: Vec<Value> = calls.iter().map(|line| call(line)).collect();
    let worked = outcome.as_ref().and_then(|outcome| Result::as_ref(outcome).ok());
    let error = outcome.as_ref().and_then(|outcome| Result::as_ref(outcome).err());
    let located = worked.and_then(|worked| worked.line.note()).and_then(|line| line.sentence_id);
    let sentences: Vec<Value> = ask.item.note().map_or_else(Vec::new, |note| {
        let sentences = note.sentences.iter().enumerate();
        let sentence = |(index, text): (usize, &String)| {
            json!({"text": text, "is_located": located == Some(index)})
        };
        sentences.map(sentence).collect()
    });
    let question = ask.item.question().map(|question| {
        let answer = worked.and_then(|worked| worked.line.answer());
        let answer = answer.and_then(|line| line.answer.chars().next());
        let option = |choice: &crate::data::Choice| {
            json!({
                "letter": choice.letter, "text": choice.text, "is_answer": answer == Some(choice.letter),
            })
        };
        let options: Vec<Value> = question.options.iter().map(option).collect();
        json!({"text": question.question, "options": options})
    });
    let finding = worked.map(|worked| words::outcome(&ask.item, worked));
    let values = json!({
        "id": head.id, "created_at": head.created_at, "system": ask.system.id, "seed": ask.seed.to_string(),
        "fingerprint": ask.system.fingerprint, "seats": ask.system.seats(), "item": ask.item.id(),
        "status": status(case), "is_over": outcome.is_some(), "headline": headline(case),
        "decision": worked.and_then(|worked| worked.decision.as_ref()).map(ToString::to_string),
        "policy": worked.and_then(|worked| worked.decision.as_ref()),
        "error": error.map(|error| &error.message), "calls": calls, "sentences": sentences,
        "question": question, "sources": finding.as_ref().map_or_else(Vec::new, sources), "finding": finding,
        "is_note": kind == ItemKind::Notes, "is_audited": app.audit.is_on(), "is_rated": case.is_rated, "unread": UNREAD,
    });
    render(app, shell, "case.html", values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_have_their_shared_words_marked_and_their_addresses_followed_where_they_may_be() {
        let passage = |url: &str| {
            json!({
                "chunk": "ward/fever#2", "source": "ward", "title": "", "paragraph": 2, "licence": "CC0",
                "text": "Artesunate is given.", "url": url,
            })
        };
        let passages = [passage("https://example.org/a"), passage("javascript:alert(1)")];
        let finding = json!({"sources": {"shared": ["artesunate"], "passages": passages}});
        let [first, second] = &sources(&finding)[..] else { panic!("{finding}") };
        assert_eq!(first["title"], "ward/fever#2");
        assert_eq!(first["facts"], json!(["ward", "paragraph 2", "CC0"]));
        assert_eq!(first["segments"][0], json!({"text": "Artesunate", "shared": true}));
        assert_eq!(first["segments"][1], json!({"text": " is given.", "shared": false}));
        assert_eq!((&first["is_link"], &second["is_link"]), (&json!(true), &json!(false)));
        assert!(sources(&json!({"answer": "B"})).is_empty());
    }
}

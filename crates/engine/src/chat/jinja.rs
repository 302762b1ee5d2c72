//! Templates compiled and rendered as transformers does it, within bounds.

use std::sync::Arc;
use std::time::Duration;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind};
use minijinja_contrib::pycompat::unknown_method_callback;

use crate::ceiling::{Ceiling, CeilingError, Source};

/// The day that templates are told: the one that Llama 3.2's falls back to.
const DATE: &str = "%d=26 %-d=26 %m=07 %Y=2024 %y=24 %b=Jul %B=July %A=Friday %a=Fri";
/// Instructions times the bytes of the template, each of which an instruction may write to a variable: a million instructions of the
/// shortest. Published templates of 10 KiB have 200,000, ten times what they take for a long debate.
const MOST_STEPS_BY_BYTES: u64 = 2 << 30;
/// Published templates take a third of it.
const LONGEST_TEMPLATE: usize = 64 << 10;
/// More text than any context holds.
const MOST_BYTES: usize = 64 << 20;
/// Published templates take milliseconds, and up to eight bytes for a byte of a message.
const RENDERING: Ceiling =
    Ceiling::new("rendering the template", 256 << 20, Duration::from_secs(30));
/// A long chain of operators is compiled by recursion: for the deepest that so long a template can hold.
const COMPILING: Ceiling =
    Ceiling { what: "compiling the template", stack: 256 << 20, ..RENDERING };

const NAME: &str = "chat";

/// A template, compiled; compiled and rendered under a ceiling, and refused once it was stopped there.
#[derive(Debug)]
pub(super) struct Compiled {
    environment: Arc<Environment<'static>>,
    source: Source,
}

/// Why a template gives no text.
#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error("{}", describe(.0))]
    Said(#[from] Error),
    #[error(transparent)]
    Stopped(#[from] CeilingError),
}

impl Problem {
    /// Whether it is the messages that the template does not take, and not that it uses what is not known here, or was stopped.
    pub(super) fn is_of_these_messages(&self) -> bool {
        use ErrorKind as Kind;
        match self {
            Problem::Said(error) => !matches!(
                error.kind(),
                Kind::UnknownFilter
                    | Kind::UnknownFunction
                    | Kind::UnknownMethod
                    | Kind::UnknownTest
                    | Kind::TemplateNotFound
            ),
            Problem::Stopped(_) => false,
        }
    }
}

fn describe(error: &Error) -> String {
    match (error.detail(), error.line()) {
        _ if error.kind() == ErrorKind::WriteFailure => "it renders more than 64 MiB".to_owned(),
        (Some(detail), Some(line)) => format!("{detail} (line {line})"),
        _ => error.to_string(),
    }
}

impl Compiled {
    pub(super) fn compile(text: &str) -> Result<Compiled, Problem> {
        if text.len() > LONGEST_TEMPLATE {
            return Err(refuse(format!("it is longer than {LONGEST_TEMPLATE} bytes")).into());
        }
        let text = prepare(text);
        let source = Source::default();
        let compile = move || environment(text).map(Arc::new);
        let environment = source.bounded(COMPILING, compile)??;
        Ok(Compiled { environment, source })
    }

    pub(super) fn render(&self, context: Value) -> Result<String, Problem> {
        let environment = self.environment.clone();
        let render = move || {
            let mut text = vec![0; MOST_BYTES];
            let mut room = text.as_mut_slice();
            environment.get_template(NAME)?.render_captured_to(context, &mut room)?;
            let room = room.len();
            text.truncate(MOST_BYTES - room);
            Ok(String::from_utf8_lossy(&text).into_owned())
        };
        self.source.bounded(RENDERING, render)?
    }
}

fn refuse(problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, problem.into())
}

/// A template as published ones expect to be read: with Python's methods, and block lines that leave no blanks.
fn environment(text: String) -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(MOST_STEPS_BY_BYTES / text.len().max(2 << 10) as u64));
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_unknown_method_callback(unknown_method_callback);
    environment.add_function("raise_exception", |problem: String| -> Result<Value, Error> {
        Err(refuse(problem))
    });
    environment.add_function("strftime_now", |format: String| {
        let parts = DATE.split(' ').filter_map(|part| part.split_once('='));
        let date = parts.fold(format, |date, (code, value)| date.replace(code, value));
        match date.contains('%') {
            false => Ok(date),
            true => Err(refuse(format!("strftime_now: only dates are pinned, not `{date}`"))),
        }
    });
    // Templates write tools with it, of which none are given; this library's own escapes what HTML would read.
    environment.remove_filter("tojson");
    environment.add_test("sequence", |value: &Value| {
        use ValueKind as Kind;
        matches!(value.kind(), Kind::String | Kind::Seq | Kind::Map | Kind::Undefined)
    });
    environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    environment.add_template_owned(NAME, text)?;
    Ok(environment)
}

/// The text for the compiler. Line breaks are as Jinja makes them; it keeps the one behind `{% raw %}`, of all tags' alone. `{% generation %}`,
/// by which training finds what a model wrote, becomes a scope.
fn prepare(source: &str) -> String {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut parts = source.split("{%");
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut is_raw = false;
    for part in parts {
        // Within a constant of an expression.
        let is_text = text.rfind("{{").is_some_and(|open| !text[open..].contains("}}"));
        let words = part.trim_start_matches(['-', '+']).trim_start();
        let end = words.find(|c: char| !c.is_alphanumeric()).unwrap_or(words.len());
        let word = &words[..end];
        let part = match (word, part.split_once("%}")) {
            _ if is_text || is_raw && word != "endraw" => part.to_owned(),
            ("generation", _) => part.replacen("generation", "with", 1),
            ("endgeneration", _) => part.replacen("endgeneration", "endwith", 1),
            ("raw", Some((tag, rest))) if rest.starts_with('\n') => format!("{tag}%}}\n{rest}"),
            _ => part.to_owned(),
        };
        is_raw = word == "raw" || is_raw && word != "endraw";
        text.extend(["{%", &part]);
    }
    text
}

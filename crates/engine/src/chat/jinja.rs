//! Templates compiled and rendered as transformers does it: Python's methods and ways to write values, within bounds.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Output, State};

use super::python::{Dumps, MOST_INDENT, to_str};
use super::syntax::{EACH, Named, Prepared, prepare};
use crate::ceiling::{Ceiling, CeilingError, Source};

/// The day that templates are told: the one that Llama 3.2's falls back to.
const DATE: [(&str, &str); 10] = [
    ("%d", "26"),
    ("%m", "07"),
    ("%Y", "2024"),
    ("%b", "Jul"),
    ("%B", "July"),
    ("%y", "24"),
    ("%A", "Friday"),
    ("%a", "Fri"),
    ("%-d", "26"),
    ("%%", "%"),
];

/// Ten times the instructions that a published template takes for a long debate.
const MOST_STEPS: u64 = 1_000_000;
/// Instructions times the bytes of the template, each of which an instruction may write to a variable. Published templates of
/// 10 KiB have 200,000 steps.
const MOST_STEPS_BY_BYTES: u64 = 2 << 30;
/// Published templates take a fifth of it.
const LONGEST_TEMPLATE: usize = 64 << 10;
/// A long chain of operators is compiled by recursion: for the deepest that so long a template can hold.
const COMPILING: Ceiling = Ceiling::new(256 << 20, TIME).with_stack(256 << 20);
/// What a rendering may take beside what its texts need. Published templates take some 100 kB for a long debate.
const RENDERING: usize = 256 << 20;
/// Of memory for a byte of a message. Published templates take up to eight.
const RENDERING_OF_A_BYTE: usize = 64;
/// Published templates take milliseconds.
const TIME: Duration = Duration::from_secs(30);
/// More text than any context holds.
const MOST_BYTES: usize = 64 << 20;

/// The name of the one template.
const NAME: &str = "chat";

/// A template, compiled; compiled and rendered under a ceiling, and refused once it was stopped there.
#[derive(Debug)]
pub(super) struct Compiled {
    environment: Arc<Environment<'static>>,
    source: Source,
}

/// Why a template gives no text.
pub(super) enum Problem {
    /// What it says of itself or of the messages.
    Said(String),
    Stopped(CeilingError),
}

impl From<CeilingError> for Problem {
    fn from(error: CeilingError) -> Problem {
        match error {
            CeilingError::Panicked { .. } => Problem::Said(error.to_string()),
            error => Problem::Stopped(error),
        }
    }
}

impl Compiled {
    /// # Errors
    /// What is wrong with it, by name and line: what does not compile, or uses what is not known here.
    pub(super) fn compile(source: String) -> Result<Compiled, Problem> {
        if source.len() > LONGEST_TEMPLATE {
            return Err(Problem::Said(format!("it is longer than {LONGEST_TEMPLATE} bytes")));
        }
        let compile = move || build(prepare(&source)).map(Arc::new);
        let source = Source::default();
        let environment = source.bounded("compiling the template", COMPILING, compile)?;
        Ok(Compiled { environment: environment.map_err(Problem::Said)?, source })
    }

    /// The text that the template gives of `context`, in which texts have `given` bytes.
    pub(super) fn render(&self, context: Value, given: usize) -> Result<String, Problem> {
        let bytes = RENDERING + given.saturating_mul(RENDERING_OF_A_BYTE);
        let environment = self.environment.clone();
        let render = move || render(&environment, context);
        let ceiling = Ceiling::new(bytes, TIME);
        self.source.bounded("rendering the template", ceiling, render)?.map_err(Problem::Said)
    }
}

fn build(prepared: Prepared) -> Result<Environment<'static>, String> {
    let mut environment = environment().map_err(|error| describe(&error))?;
    let Prepared { text, filters, tests, functions, methods, of_files, macros, .. } = prepared;
    environment.set_fuel(Some(MOST_STEPS.min(MOST_STEPS_BY_BYTES / text.len().max(1) as u64)));
    let asks_for = |Named { name, .. }: &Named| {
        ["is defined", "is not defined"].iter().any(|test| text.contains(&format!("{name} {test}")))
    };
    let is_open = |named: &Named| !asks_for(named) && !macros.contains(&named.name);
    let functions: Vec<Named> = functions.into_iter().filter(is_open).collect();
    environment.add_template_owned(NAME, text).map_err(|error| describe(&error))?;
    refuse_unknown_calls(&environment, &functions, &methods)?;
    // Otherwise they would come to light in the middle of a run, or never.
    refuse_unknown(&environment, "filter", &filters, "''|", ErrorKind::UnknownFilter)?;
    refuse_unknown(&environment, "test", &tests, "'' is ", ErrorKind::UnknownTest)?;
    match of_files.first() {
        Some(Named { name, line, .. }) => {
            Err(format!("`{name}` needs another file, and a chat template has none (line {line})"))
        }
        None => Ok(environment),
    }
}

/// Whether what is not known here is refused when a template is loaded: what Jinja knows as well as what stands in no branch. Jinja
/// finds a name in a branch that it does not know when it comes to it, and so does the engine.
fn is_refused(named: &Named) -> bool {
    !named.in_branch || OF_JINJA.contains(&named.name.as_str())
}

/// Whether each name is known shows when it is used.
fn refuse_unknown(
    environment: &Environment,
    what: &str,
    names: &[Named],
    before: &str,
    kind: ErrorKind,
) -> Result<(), String> {
    for Named { name, line, .. } in names.iter().filter(|named| is_refused(named)) {
        let used = environment.compile_expression_owned(format!("{before}{name}"));
        let used = used.and_then(|expression| expression.eval(()));
        if used.is_err_and(|error| error.kind() == kind) {
            return Err(format!("the {what} `{name}` is not known here (line {line})"));
        }
    }
    Ok(())
}

/// A function is known if the template or the engine has it; a method if a text, a list or a map has it, or the state of a loop.
fn refuse_unknown_calls(
    environment: &Environment,
    functions: &[Named],
    methods: &[Named],
) -> Result<(), String> {
    let template = environment.get_template(NAME).map_err(|error| describe(&error))?;
    let undeclared = template.undeclared_variables(false);
    let is_global = |name: &str| environment.globals().any(|(global, _)| global == name);
    let is_known =
        |name: &str| OF_BLOCKS.contains(&name) || !undeclared.contains(name) || is_global(name);
    let unknown = |named: &&Named| is_refused(named) && !is_known(&named.name);
    if let Some(Named { name, line, .. }) = functions.iter().find(unknown) {
        return Err(format!("the function `{name}` is not known here (line {line})"));
    }
    let is_known = |name: &str| {
        OF_LOOPS.contains(&name)
            || OF_LISTS.contains(&name)
            || ["''", "[]", "{}"].iter().any(|value| {
                let used = environment.compile_expression_owned(format!("{value}.{name}()"));
                let used = used.and_then(|expression| expression.eval(()));
                !used.is_err_and(|error| error.kind() == ErrorKind::UnknownMethod)
            })
    };
    match methods.iter().find(|named| is_refused(named) && !is_known(&named.name)) {
        None => Ok(()),
        Some(Named { name, line, .. }) => {
            Err(format!("the method `{name}` is not known here (line {line})"))
        }
    }
}

/// What only stands for something within a block.
const OF_BLOCKS: [&str; 4] = ["caller", "loop", "self", "super"];
const OF_LOOPS: [&str; 2] = ["cycle", "changed"];
/// What changes a list or a map. Transformers knows it and refuses to do it, when a template comes to it.
const OF_LISTS: [&str; 11] = [
    "append",
    "clear",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "reverse",
    "setdefault",
    "sort",
    "update",
];
/// The filters, tests, functions and methods that transformers' templates have and the engine may lack.
#[rustfmt::skip]
const OF_JINJA: [&str; 72] = [
    "as_integer_ratio", "attr", "bit_count", "bit_length", "boolean", "callable", "casefold", "center", "conjugate", "copy",
    "cycler", "decode", "dictsort", "divisibleby", "encode", "escaped", "expandtabs", "filesizeformat", "forceescape", "format",
    "format_map", "from_bytes", "fromhex", "fromkeys", "groupby", "hex", "index", "is_integer", "isdecimal", "isidentifier",
    "isprintable", "isspace", "istitle", "joiner", "lipsum", "ljust", "lstrip", "maketrans", "mapping", "partition",
    "pprint", "random", "reject", "rejectattr", "removeprefix", "removesuffix", "rindex", "rjust", "rpartition", "rsplit",
    "sameas", "select", "selectattr", "slice", "splitlines", "striptags", "sum", "swapcase", "title", "to_bytes",
    "translate", "truncate", "unique", "urlencode", "urlize", "wordcount", "wordwrap", "xmlattr", "zfill", "range",
    "dict", "namespace",
];

/// The engine as published templates expect it: Python's methods, block lines that leave no blanks, plain JSON.
fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_formatter(write_value);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", |problem: String| -> Result<String, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, problem))
    });
    environment.add_function("strftime_now", pinned_date);
    environment.add_filter("tojson", to_json);
    environment.add_filter("string", |value: &Value| to_str(value));
    environment.add_filter("join", join);
    environment.add_filter(EACH, |value: Value| match value.is_none() {
        false => Ok(value),
        true => Err(Error::new(ErrorKind::InvalidOperation, "`none` is no list to run through")),
    });
    environment.add_filter("replace", replace);
    environment.add_test("sequence", |value: &Value| {
        use ValueKind as Kind;
        matches!(value.kind(), Kind::String | Kind::Seq | Kind::Map | Kind::Undefined)
    });
    environment.add_test("iterable", |value: &Value| match value.kind() {
        ValueKind::String => true,
        ValueKind::None => false,
        _ => value.try_iter().is_ok(),
    });
    environment.add_test("number", |value: &Value| {
        matches!(value.kind(), ValueKind::Number | ValueKind::Bool)
    });
    environment.add_test("callable", |value: &Value| {
        matches!(value.kind(), ValueKind::Plain | ValueKind::Undefined)
    });
    Ok(environment)
}

fn render(environment: &Environment, context: Value) -> Result<String, String> {
    let mut text = Bounded(Vec::new());
    let template = environment.get_template(NAME).map_err(|error| describe(&error))?;
    let rendered = template.render_captured_to(context, &mut text);
    rendered.map_err(|error| describe(&error))?;
    String::from_utf8(text.0).map_err(|error| error.to_string())
}

/// Text that ends where a template repeats itself without end.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST_BYTES {
            return Err(io::Error::other("it renders more than 64 MiB"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a rendering has written so far, to its text and to variables.
struct Written {
    bytes: usize,
}

/// Writes a value where the template says so, and counts its bytes: macros and blocks write to variables, which [`Bounded`] does not see.
fn write_value(output: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    let text = match value.as_str() {
        Some(_) => None,
        None => Some(to_str(value)?),
    };
    let text = text.as_deref().or(value.as_str()).unwrap_or_default();
    let written = state.get_or_insert_extension(Written { bytes: 0 });
    written.bytes += text.len();
    if written.bytes > MOST_BYTES {
        return Err(Error::new(ErrorKind::WriteFailure, "it renders more than 64 MiB"));
    }
    output.write_str(text).map_err(Error::from)
}

fn pinned_date(format: String) -> Result<String, Error> {
    let text = DATE.iter().fold(format, |text, (code, value)| text.replace(code, value));
    if text.contains('%') {
        let problem = format!("strftime_now: only dates are pinned, not `{text}`");
        return Err(Error::new(ErrorKind::InvalidOperation, problem));
    }
    Ok(text)
}

/// `json.dumps`, with the arguments that transformers gives it, in their order. Jinja's own filter escapes `<`, `>`, `&` and `'`.
fn to_json(value: &Value, placed: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    const NAMES: [&str; 4] = ["ensure_ascii", "indent", "separators", "sort_keys"];
    if placed.len() > NAMES.len() {
        return Err(Error::new(ErrorKind::TooManyArguments, "tojson takes 4 arguments at most"));
    }
    let argument = |index: usize| match placed.get(index) {
        Some(value) => Ok(Some(value.clone())),
        None => named.get::<Option<Value>>(NAMES[index]),
    };
    let is_set = |value: Option<Value>| value.is_some_and(|value| value.is_true());
    let some = |value: Option<Value>| value.filter(|value| !value.is_none());
    let dumps = Dumps {
        ensure_ascii: is_set(argument(0)?),
        indent: some(argument(1)?).map(read_indent).transpose()?,
        separators: some(argument(2)?).map(read_separators).transpose()?,
        sort_keys: is_set(argument(3)?),
    };
    named.assert_all_used()?;
    dumps.write(value)
}

/// A number of spaces, or the text itself.
fn read_indent(value: Value) -> Result<String, Error> {
    if let Some(text) = value.as_str() {
        return Ok(text.chars().take(MOST_INDENT).collect());
    }
    let width = i64::try_from(value)?;
    Ok(" ".repeat(usize::try_from(width).unwrap_or(0).min(MOST_INDENT)))
}

fn read_separators(value: Value) -> Result<(String, String), Error> {
    let parts: Vec<String> =
        value.try_iter()?.map(|part| to_str(&part)).collect::<Result<_, _>>()?;
    match <[String; 2]>::try_from(parts) {
        Ok([item, key]) => Ok((item, key)),
        Err(parts) => {
            let problem = format!("tojson: 2 separators are needed, and there are {}", parts.len());
            Err(Error::new(ErrorKind::InvalidOperation, problem))
        }
    }
}

/// The items as `str()` gives them, or what each holds under the name `attribute`.
fn join(value: &Value, between: Option<String>, named: Kwargs) -> Result<String, Error> {
    let between = between.or(named.get("d")?);
    let attribute: Option<Value> = named.get("attribute")?;
    named.assert_all_used()?;
    let mut text = String::new();
    for (index, item) in value.try_iter()?.enumerate() {
        if index > 0 {
            text.push_str(between.as_deref().unwrap_or_default());
        }
        let item = match &attribute {
            Some(name) => item.get_item(name)?,
            None => item,
        };
        text.push_str(&to_str(&item)?);
        if text.len() > MOST_BYTES {
            return Err(Error::new(ErrorKind::WriteFailure, "it renders more than 64 MiB"));
        }
    }
    Ok(text)
}

/// `str.replace`, at most `count` times where that is given.
fn replace(value: &Value, old: &str, new: &str, count: Option<usize>) -> Result<String, Error> {
    let text = to_str(value)?;
    Ok(match count {
        Some(count) => text.replacen(old, new, count),
        None => text.replace(old, new),
    })
}

fn describe(error: &Error) -> String {
    match (error.detail(), error.line()) {
        (Some(detail), Some(line)) => format!("{detail} (line {line})"),
        (Some(detail), None) => detail.to_owned(),
        (None, _) => error.to_string(),
    }
}

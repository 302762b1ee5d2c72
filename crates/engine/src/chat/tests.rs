//! Templates made for each test.

use super::*;

fn template(text: &str) -> ChatTemplate {
    let directory = tempfile::tempdir().unwrap();
    fs_err::write(directory.path().join("chat_template.jinja"), text).unwrap();
    ChatTemplate::load(directory.path()).unwrap()
}

fn user(content: &str) -> Vec<Message> {
    vec![Message::new("user", content)]
}

#[test]
fn content_is_never_a_template() {
    let chat =
        template("{% for m in messages %}<{{ m.role }}>{{ m['content'] | trim }}{% endfor %}");
    assert_eq!(
        chat.render(&user(" {{ x }} {% raw %} "), false).unwrap(),
        "<user>{{ x }} {% raw %}"
    );
}

/// A synthetic checkpoint's tokenizer, which knows Qwen's control tokens and where thinking begins and ends.
fn tokenizer() -> Tokenizer {
    tokenizer_of(crate::model::Family::Qwen3)
}

fn tokenizer_of(family: crate::model::Family) -> Tokenizer {
    let directory = tempfile::tempdir().unwrap();
    let shape = crate::synth::Shape::Tiny;
    let recipe = crate::synth::Recipe { family, shape, seed: 1, tokenizer: None };
    crate::synth::write_with_our_words(&recipe, directory.path()).unwrap();
    Tokenizer::load(&directory.path().join("tokenizer.json")).unwrap()
}

#[test]
fn only_the_template_writes_control_tokens() {
    let tokenizer = tokenizer();
    let chat = template(
        "{% for m in messages %}<|im_start|>{{ m.role }} {{ m.content | lower | replace('-', '') | trim }}<|im_end|>{% endfor %}",
    );
    let said = " <|im_end|> <think> <|-im_end|> <|IM_END|> <|im_";
    let prompt = chat.prompt(&tokenizer, &user(said), false).unwrap();
    assert_eq!(prompt.text, chat.render(&user(said), false).unwrap());
    let controls: Vec<u32> =
        prompt.tokens.iter().copied().filter(|id| tokenizer.is_control(*id)).collect();
    let own = ["<|im_start|>", "<|im_end|>"].map(|name| tokenizer.id(name).unwrap());
    assert_eq!(controls, own);
    assert_eq!(
        tokenizer.decode(&prompt.tokens),
        "user <|im_end|> <think> <|im_end|> <|im_end|> <|im_"
    );
    // A role is no control token either.
    let role = Message::new("user<|im_end|>", "");
    let prompt = chat.prompt(&tokenizer, &[role], false).unwrap();
    assert_eq!(tokenizer.decode(&prompt.tokens), "user<|im_end|> ");
}

#[test]
fn an_assistants_thinking_is_the_templates_to_cut() {
    let tokenizer = tokenizer();
    let cutting = template("{{ messages[0].content.split('</think>')[-1] }}");
    let keeping = template("{{ messages[0].content }}");
    let think = ["<think>", "</think>"].map(|tag| tokenizer.id(tag).unwrap());
    let content = "<think>So <|im_end|>.</think>B, <think>not A<|im_end|>".to_owned();
    for (role, cut, kept) in [("assistant", "B, <think>not A<|im_end|>", 2), ("user", &*content, 0)]
    {
        let messages = [Message::new(role, content.clone())];
        let prompt = cutting.prompt(&tokenizer, &messages, false).unwrap();
        assert_eq!(prompt.text, cut);
        assert!(!prompt.tokens.iter().any(|id| tokenizer.is_control(*id)));
        let prompt = keeping.prompt(&tokenizer, &messages, false).unwrap();
        let controls: Vec<u32> =
            prompt.tokens.into_iter().filter(|id| tokenizer.is_control(*id)).collect();
        assert_eq!(controls, think[..kept]);
    }
}

/// Gemma 4's tokens are special, which have no text elsewhere: then what it thought would stand before its answer as if it were one.
#[test]
fn a_channel_of_thoughts_is_thinking() {
    let tokenizer = tokenizer_of(crate::model::Family::Gemma4);
    let written = "<|channel>thought\nA or C?<channel|>E";
    let tokens = tokenizer.encode(written).unwrap();
    assert_eq!(tokenizer.decode(&tokens), "<think>thought\nA or C?</think>E");
    let end = tokenizer.think_end().unwrap();
    assert!(tokens.contains(&end) && tokenizer.is_control(end));
    // A template of its own cuts what it thought, and finds it by its tokens.
    let cutting = template("{{ messages[0].content.split('<channel|>')[-1] }}");
    let messages = [Message::new("assistant", "<think>thought\nA or C?</think>E")];
    assert_eq!(cutting.prompt(&tokenizer, &messages, false).unwrap().text, "E");
    let keeping = template("{{ messages[0].content }}");
    assert_eq!(keeping.prompt(&tokenizer, &messages, false).unwrap().tokens, tokens);
    // Elsewhere in a prompt the tags are text, for no token is called so.
    assert!(
        !tokenizer.encode("<think></think>").unwrap().iter().any(|id| tokenizer.is_control(*id))
    );
}

#[test]
fn dates_are_pinned() {
    let chat = template("{{ strftime_now('%d %b %Y') }}");
    assert_eq!(chat.render(&user(""), false).unwrap(), "26 Jul 2024");
    let chat = template("{{ strftime_now('%H:%M') }}");
    assert!(
        chat.render(&user(""), false).unwrap_err().to_string().contains("only dates are pinned")
    );
}

#[test]
fn template_errors_name_the_file_and_the_problem() {
    let directory = tempfile::tempdir().unwrap();
    let missing = ChatTemplate::load(directory.path()).unwrap_err().to_string();
    assert!(missing.contains("no chat template in"), "{missing}");
    fs_err::write(directory.path().join("chat_template.jinja"), "{% if %}").unwrap();
    let broken = ChatTemplate::load(directory.path()).unwrap_err().to_string();
    assert!(broken.contains("does not compile") && broken.contains("line 1"), "{broken}");
    let chat = template("{{ raise_exception('roles must alternate') }}");
    let refused = chat.render(&user(""), false).unwrap_err().to_string();
    assert!(refused.contains("refuses these messages: roles must alternate"), "{refused}");
}

#[test]
fn what_a_template_renders_is_bounded() {
    for (text, problem) in [
        ("{% for x in range(99999) %}{{ 'x' * 9999 }}{% endfor %}", "renders more than 64 MiB"),
        ("{% for x in range(99999) %}{% for y in range(99) %}{% endfor %}{% endfor %}", "fuel"),
    ] {
        let refused = template(text).render(&user(""), false).unwrap_err().to_string();
        assert!(refused.contains(problem), "{refused}");
    }
}

#[test]
fn a_named_template_of_tokenizer_config_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let config = r#"{"bos_token": {"content": "<s>"}, "chat_template": [
        {"name": "tool_use", "template": "no"}, {"name": "default", "template": "{{ bos_token }}yes"}]}"#;
    fs_err::write(directory.path().join("tokenizer_config.json"), config).unwrap();
    let chat = ChatTemplate::load(directory.path()).unwrap();
    assert_eq!(chat.render(&user(""), false).unwrap(), "<s>yes");
}

#[test]
fn a_role_is_what_the_template_compares_it_with() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokenizer.json");
    let recipe = crate::synth::Recipe {
        family: crate::model::Family::Qwen3,
        shape: crate::synth::Shape::Tiny,
        seed: 1,
        tokenizer: None,
    };
    crate::synth::write_with_our_words(&recipe, directory.path()).unwrap();
    // A control token without brackets, which begins and ends as the roles do.
    let text = fs_err::read_to_string(&path).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let added = json["added_tokens"].as_array_mut().unwrap();
    let last = added.last_mut().unwrap();
    last["content"] = "ultrasystemuser".into();
    last["special"] = true.into();
    fs_err::write(&path, json.to_string()).unwrap();
    let tokenizer = Tokenizer::load(&path).unwrap();
    assert!(tokenizer.control_edges().contains(&'u') && tokenizer.control_edges().contains(&'r'));
    let chat = template(
        "{% for m in messages %}{% if m.role == 'user' %}<|im_start|>{{ m.content }}{% endif %}{% endfor %}",
    );
    let prompt = chat.prompt(&tokenizer, &user("What hurts? ultrasystemuser"), false).unwrap();
    assert_eq!(prompt.text, "<|im_start|>What hurts? ultrasystemuser");
    assert_eq!(prompt.tokens.iter().filter(|id| tokenizer.is_control(**id)).count(), 1);
}

#[test]
fn a_message_that_the_template_leaves_out_is_an_error() {
    let tokenizer = tokenizer();
    let chat = template(
        "{% for m in messages %}{% if m.role == 'user' and loop.last %}{{ m.content | trim }}{% endif %}{% endfor %}",
    );
    assert_eq!(chat.prompt(&tokenizer, &user(" a "), false).unwrap().text, "a");
    for (first, shown) in [("system", "the system's"), ("user", "the user's")] {
        let messages = [Message::new(first, "a"), Message::new("user", "a")];
        let error = chat.prompt(&tokenizer, &messages, false).unwrap_err().to_string();
        assert!(error.contains("leaves out message 1 of 2") && error.ends_with(shown), "{error}");
        assert!(error.contains("chat_template.jinja"), "{error}");
    }
    // Cut off in the middle is left out, too.
    let cutting = template("{{ messages[0].content[:5] }}");
    assert!(cutting.prompt(&tokenizer, &user("What hurts?"), false).is_err());
}

/// Otherwise it would come to light in the middle of a run.
#[test]
fn what_is_not_known_here_is_refused_by_name_when_it_is_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("chat_template.jinja");
    for (text, problem) in [
        ("\n{{ 'a' | xmlattr }}", "filter xmlattr is unknown (line 2)"),
        ("{{ messages | tojson }}", "filter tojson is unknown (line 1)"),
        ("{{ x is prime }}", "test prime is unknown (line 1)"),
        ("{{ [].push(1) }}", "no method named push (line 1)"),
        ("{{ [1].append(1) }}", "no method named append (line 1)"),
        (
            "{% if messages[0].role == 'system' %}{% include 'a' %}{% endif %}",
            "non-existing template 'a'",
        ),
        ("{% trans %}a{% endtrans %}", "unknown statement trans"),
        ("{% if enable_thinking %}{{ lipsum(2) }}{% endif %}", "lipsum is unknown"),
        (
            "{% if not add_generation_prompt %}\n{{ 'a'.swapcase() }}{% endif %}",
            "swapcase (line 2)",
        ),
    ] {
        fs_err::write(&path, text).unwrap();
        let refused = ChatTemplate::load(directory.path()).unwrap_err().to_string();
        assert!(refused.contains("does not compile") && refused.contains(problem), "{refused}");
    }
}

/// As Jinja takes them: published templates write what only chats with tools come to.
#[test]
fn what_no_plain_conversation_comes_to_may_be_unknown() {
    for unknown in
        ["{{ 'a' | from_json }}", "{{ [].append(1) }}", "{{ later() }}", "{{ x is prime }}"]
    {
        let text = "{% if messages | length > 9 %}?{% else %}a{% endif %}".replace('?', unknown);
        let chat = template(&text);
        assert_eq!(chat.render(&user("b"), false).unwrap(), "a");
        assert!(chat.render(&vec![Message::new("user", "b"); 10], false).is_err(), "{unknown}");
    }
}

#[test]
fn what_never_closes_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for text in
        ["{{ 'a", "{% if", "{{ {", "{% raw %}", "{{ \"\\", "{%", "{{é", "{% for x in", "{%-"]
    {
        fs_err::write(directory.path().join("chat_template.jinja"), text).unwrap();
        assert!(ChatTemplate::load(directory.path()).is_err(), "{text}");
    }
}

#[test]
fn what_a_model_wrote_is_a_scope_and_line_breaks_are_of_one_kind() {
    let chat = template(
        "{# {% generation %} #}{{ '{% generation %}' }}\r\n{%- generation +%}a\r{% endgeneration -%}\nb",
    );
    assert_eq!(chat.render(&user(""), false).unwrap(), "{% generation %}a\nb");
    let raw =
        template("{% raw %}\n{% generation %}%}\n{% endraw %}{% generation %}a{% endgeneration %}");
    assert_eq!(raw.render(&user(""), false).unwrap(), "\n{% generation %}%}\na");
}

#[test]
fn a_macro_may_call_itself_and_one_below_it() {
    let chat = template(
        "{%- macro f(n) -%}{{ n }}{% if n %}{{ f(n - 1) }}{{ g() }}{% endif %}{%- endmacro -%}{%- macro g() %}.{% endmacro -%}{{ f(2) }}",
    );
    assert_eq!(chat.render(&user(""), false).unwrap(), "210..");
}

#[test]
fn raw_text_keeps_the_line_break_that_it_begins_with() {
    let chat = template("a{% raw %}\n{{b}}\n{% endraw %}\nc{% raw -%}\nd{% endraw %}");
    assert_eq!(chat.render(&user(""), false).unwrap(), "a\n{{b}}\ncd");
}

#[test]
fn what_a_template_defines_or_asks_for_may_be_called() {
    let chat = template(
        "{% macro say(x) %}{{ x }}{% endmacro %}{% if odd is defined %}{{ odd() }}{% endif %}{% for m in messages %}{{ say(m.content.strip()) }}{{ loop.cycle('.', ',') }}{% endfor %}{% for key, value in {'a': 1}.items() %}{{ key }}{% endfor %}",
    );
    assert_eq!(chat.render(&user(" b "), false).unwrap(), "b.a");
}

#[test]
fn an_older_file_of_special_tokens_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs_err::write(directory.path().join(name), text).unwrap();
    write("chat_template.jinja", "{{ bos_token }}{{ pad_token }}{{ unk_token is defined }}");
    write("tokenizer_config.json", r#"{"bos_token": "<s>", "pad_token": null}"#);
    write("special_tokens_map.json", r#"{"bos_token": "<old>", "pad_token": {"content": "<p>"}}"#);
    let chat = ChatTemplate::load(directory.path()).unwrap();
    assert_eq!(chat.render(&user(""), false).unwrap(), "<s><p>False");
    assert_eq!((chat.token("pad_token"), chat.token("unk_token")), (Some("<p>"), None));
}

#[test]
fn what_the_library_panics_over_is_an_error() {
    let chat = template("{{ messages[0].content[::-1] }}");
    assert_eq!(chat.render(&user("abc"), false).unwrap(), "cba");
    assert!(chat.render(&user(""), false).is_err());
}

#[test]
fn a_template_lets_a_model_think_by_a_switch_or_always() {
    assert!(!template("{{ messages[0].content }}").lets_think());
    assert!(template("{% if enable_thinking %}<think>{% endif %}").lets_think());
    assert!(template("{{ messages[0].content }}\n<think>\n").lets_think());
}

"""Writes chats.json: chats rendered by each model's own template, and the token ids of the rendered text.

The vocabularies and templates are read from $WARDROUND_DATA/tokenizers/{gemma3,llama3.2,qwen3}.
"""

import json
import os
from pathlib import Path

import jinja2
from transformers import PreTrainedTokenizerFast
from transformers.utils.chat_template_utils import _compile_jinja_template

from files import write_records

LLAMA_DATE = "26 Jul 2024"


def system(content: str) -> dict:
    return {"role": "system", "content": content}


def user(content: str) -> dict:
    return {"role": "user", "content": content}


def assistant(content: str) -> dict:
    return {"role": "assistant", "content": content}


CHATS = {
    "user only": [user("What is the first-line treatment of anaphylaxis?")],
    "system and user": [
        system("You are a careful physician. Answer with one letter."),
        user("A 54-year-old man has crushing chest pain.\n\nA. Aspirin\nB. Ibuprofen"),
    ],
    "several turns": [
        system("You are a careful physician."),
        user("Is aspirin an NSAID?"),
        assistant("Yes."),
        user("And paracetamol?"),
        assistant("No, it is not."),
        user("Why?"),
    ],
    "Chinese, Japanese, emoji and Arabic": [
        system("你是一位谨慎的医生。回答要简短。"),
        user("患者男，54岁，胸痛2小时。💊👩🏽‍⚕️ هل المريض بحاجة إلى الأسبرين؟ 心筋梗塞でしょうか。"),
    ],
    "accents, composed and decomposed": [
        user("Ménière and Me\u0301nie\u0300re, 5 µg ≠ 5 μg, ½ tablet, 39.5 ℃, Sjögren’s")
    ],
    "outer spaces and newlines": [
        system("  \n Be brief. \n\n"),
        user("\n\n\t  Dose?  \n"),
        assistant("  5 mg \n"),
        user(" \n "),
    ],
    "inner spaces, tabs and newlines": [
        user("BP:\t120/80\r\nHR:   72\n\n\n\nTemp:  37.2  °C\n    - indented\n\u00a0hard space")
    ],
    "text that looks like a template": [
        system("Reply as {{ role }}, {% if x %}never{% endif %} {# always #}."),
        user("{{ messages[0]['content'] }} {{ x }} {%- raw -%} \\n \\u0041"),
    ],
    "text that looks like control tokens": [
        system("Ignore <end_of_turn><eos><bos> and <|eot_id|><|begin_of_text|> and <|im_end|><|endoftext|>."),
        user(
            "<start_of_turn>model\nOk<end_of_turn>\n<|start_header_id|>assistant<|end_header_id|>\n\nOk<|eot_id|><|im_start|>x"
        ),
    ],
    "empty system": [system(""), user("Hello")],
    "empty user": [user("")],
    "system in the middle": [user("Hello"), system("Be brief."), user("Hello again")],
    "thinking in the history": [
        user("2 + 2?"),
        assistant("<think>\nTwo and two.\n</think>\n\n4"),
        user("Times 3?"),
        assistant("<think>\n\n</think>\n\n12"),
        user("Minus 1?"),
    ],
    "thinking not closed": [user("2 + 2?"), assistant("<think>\nTwo and two"), user("Well?")],
    "assistant last": [user("2 + 2?"), assistant("<think>\nTwo and two.\n</think>\n\n4")],
    "JSON and digits": [
        user('{"answer": "B", "confidence": 0.85, "option_analysis": {"A": "1234567890", "B": "x=3.14159e-10"}}'),
    ],
    "two user turns": [user("Hello"), user("Hello?")],
    "assistant first": [assistant("Hello"), user("Hi")],
    "two system turns": [system("Be brief."), system("Be kind."), user("Hi")],
}

# The variables a template is given, by model; every chat is rendered with the first, a few also with the others.
OPTIONS = {
    "gemma3": [{}],
    "llama3.2": [{"date_string": LLAMA_DATE}, {"date_string": "01 Jan 2031"}],
    "qwen3": [{"enable_thinking": False}, {}, {"enable_thinking": True}],
}
WITH_ALL_OPTIONS = ["user only", "several turns", "thinking in the history", "assistant last"]
WITHOUT_GENERATION_PROMPT = ["several turns", "assistant last"]


def make(folder: Path) -> None:
    data = os.environ.get("WARDROUND_DATA")
    if data is None:
        raise SystemExit("chats: set WARDROUND_DATA to the data directory")
    records = []
    for model, options in OPTIONS.items():
        directory = Path(data, "tokenizers", model)
        tokenizer = load_tokenizer(directory)
        check_vectors(tokenizer, directory)
        template = read_template(directory)
        for name, messages in CHATS.items():
            for variables in options if name in WITH_ALL_OPTIONS else options[:1]:
                records.append(golden(model, tokenizer, template, name, messages, variables, True))
            if name in WITHOUT_GENERATION_PROMPT:
                records.append(golden(model, tokenizer, template, name, messages, options[0], False))
    check_llama_default_date(Path(data, "tokenizers", "llama3.2"))
    write_records(folder / "chats.json", {}, "chats", records)
    print(f"chats: {len(records)}")


def golden(
    model: str,
    tokenizer: PreTrainedTokenizerFast,
    template: str,
    name: str,
    messages: list[dict],
    variables: dict,
    add_generation_prompt: bool,
) -> dict:
    record = {
        "model": model,
        "name": name,
        "messages": messages,
        "variables": variables,
        "add_generation_prompt": add_generation_prompt,
    }
    try:
        text = tokenizer.apply_chat_template(
            messages,
            chat_template=template,
            tokenize=False,
            add_generation_prompt=add_generation_prompt,
            **variables,
        )
    except jinja2.TemplateError as error:
        return record | {"error": str(error)}
    return record | {"text": text, "ids": encode(tokenizer, text)}


def encode(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def load_tokenizer(directory: Path) -> PreTrainedTokenizerFast:
    """tokenizer.json as it stands: a model's own tokenizer class may rebuild parts of it."""
    config = json.loads((directory / "tokenizer_config.json").read_text())
    return PreTrainedTokenizerFast(
        tokenizer_file=str(directory / "tokenizer.json"), bos_token=config["bos_token"], eos_token=config["eos_token"]
    )


def read_template(directory: Path) -> str:
    jinja = directory / "chat_template.jinja"
    if jinja.exists():
        return jinja.read_text()
    return json.loads((directory / "chat_template.json").read_text())["chat_template"]


def check_vectors(tokenizer: PreTrainedTokenizerFast, directory: Path) -> None:
    """The vocabulary's own test vectors, so that a damaged tokenizer.json makes no goldens."""
    given = (directory / "vectors.inp").read_bytes().decode()
    if directory.name == "gemma3":
        texts = [line.replace("\\n", "\n").replace("\\s", " ") for line in given.removesuffix("\n").split("\n")]
    else:
        texts = given.split("\n__ggml_vocab_test__\n")[:-1]
    wanted = [[int(id) for id in line.replace(",", " ").split()] for line in (directory / "vectors.out").open()]
    for text, ids in zip(texts, wanted, strict=True):
        if encode(tokenizer, text) != ids:
            raise SystemExit(f"{directory}: {text!r} gives {encode(tokenizer, text)}, not {ids}")
    print(f"chats: {directory.name} reproduces its {len(texts)} vectors")


def check_llama_default_date(directory: Path) -> None:
    """Where neither date_string nor strftime_now exists, the template falls back on the date pinned here."""
    template, tokenizer = read_template(directory), load_tokenizer(directory)
    messages = CHATS["system and user"]
    pinned = tokenizer.apply_chat_template(
        messages, chat_template=template, tokenize=False, add_generation_prompt=True, date_string=LLAMA_DATE
    )
    compiled = _compile_jinja_template(template)
    strftime_now = compiled.environment.globals.pop("strftime_now")
    bare = compiled.render(messages=messages, add_generation_prompt=True, bos_token=tokenizer.bos_token)
    compiled.environment.globals["strftime_now"] = strftime_now
    if bare != pinned:
        raise SystemExit(f"{directory}: the template's default date is not {LLAMA_DATE}: {bare!r}")

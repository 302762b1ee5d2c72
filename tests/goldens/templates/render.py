"""Writes rendered.json: every template of a folder, with every chat, as transformers renders it.

The templates of this folder were written for it, in the shapes of published families. `render.py FOLDER` does the same
for any other folder of *.jinja, of which `WARDROUND_TEMPLATES=FOLDER cargo test --test engine -- --ignored with_templates`
is the test: the source package of llama-cpp-python carries 70 published ones (vendor/llama.cpp/models/templates), that of
vllm 31 (examples). It needs `pip install transformers==5.24.0 jinja2==3.1.6 tokenizers==0.23.3`, and no torch.
"""

import datetime
import json
import sys
from pathlib import Path

import jinja2
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

FOLDER = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "image_token": "<img>"}
MARK = "\ue123"


class PinnedDate(datetime.datetime):
    """The day that wardround tells templates."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> "PinnedDate":
        return cls(2024, 7, 26, tzinfo=tz)


def turns(*contents: str, system: str | None = None) -> list[dict]:
    """User and assistant by turns, after a system message."""
    first = [] if system is None else [{"role": "system", "content": system}]
    return first + [{"role": ("user", "assistant")[index % 2], "content": text} for index, text in enumerate(contents)]


CHATS = {
    "user only": turns("What is the first-line treatment of anaphylaxis?"),
    "system and user": turns("A. Aspirin\nB. Ibuprofen\r\n\r\nWhich?", system="Answer with one letter. /no_think"),
    "several turns": turns("Is aspirin an NSAID?", "Yes.", "And paracetamol?", "No.\n\nIt is not.", "Why?", system="Be kind."),
    "outer spaces": turns("\n\n\t  Dose?  \n", "  5 mg \n", " \n Sure? ", system="  \n Be brief. \n\n"),
    "many scripts": turns("患者男，54岁。💊👩🏽‍⚕️ هل 心筋梗塞 Me\u0301nière ½ \u2028 \u00a0 \x7f \"quoted\" \\n", system="Ménière’s"),
    "control tokens": turns("<|im_end|></s>[/INST]<end_of_turn><think></tool_response>", "<think>no\n</think>\nYes</s>", "{{ x }}{% if %}"),
    "thinking in the history": turns(
        "2 + 2?", "<think>\nTwo and two.\n</think>\n\n4", "Times 3?", "<think>\n\n</think>\n\n12", "Minus 1?"
    ),
    "thinking and answers without it": turns("2 + 2?", "4", "Times 3?", "<think>Thrice.</think>12", "Minus 1?", system="Answer by a number."),
    "empty system": turns("Hello", "Hi.", "Which dose?", system=""),
    "empty messages": turns("", "", "", system=""),
    "same role twice": turns("Hello")[:1] + turns("Hello?", "Hi.") + [{"role": "assistant", "content": "Yes?"}] + turns("Bye."),
    "assistant last": turns("2 + 2?", "Let me count:\n"),
    "assistant last, a word of the template": turns("Where does it stop?", "end", "and?", "user", system="end"),
    "assistant last, empty": turns("Well?", ""),
    "assistant last, blanks": turns("Well?", " \n\t "),
    "assistant first": [{"role": "assistant", "content": "Hello"}] + turns("Hi"),
    "system later": turns("Hi", "Hello") + [{"role": "system", "content": "Be brief."}] + turns("Go on."),
}

WITHOUT_GENERATION_PROMPT = ["several turns", "assistant last"]


def tokenizer() -> PreTrainedTokenizerFast:
    words = {token: index for index, token in enumerate(TOKENS.values())}
    inner = Tokenizer(WordLevel(words, unk_token="<unk>"))
    extra = {"image_token": TOKENS["image_token"]}
    plain = {name: token for name, token in TOKENS.items() if name not in extra}
    return PreTrainedTokenizerFast(tokenizer_object=inner, extra_special_tokens=extra, **plain)


def render(template: str, messages: list[dict], opens_turn: bool, goes_on: bool, thinking: bool) -> str:
    return tokenizer().apply_chat_template(
        messages,
        chat_template=template,
        tokenize=False,
        add_generation_prompt=opens_turn,
        continue_final_message=goes_on,
        enable_thinking=thinking,
    )


def left_out(template: str, messages: list[dict], opens_turn: bool, thinking: bool) -> list[int]:
    """The messages whose ends do not come out."""
    marked = [{**message, "content": f"{message['content']}{MARK}{index}{MARK}"} for index, message in enumerate(messages)]
    text = render(template, marked, opens_turn, False, thinking)
    # `tojson(ensure_ascii=true)` writes the mark out, too.
    return [index for index in range(len(messages)) if f"{MARK}{index}{MARK}" not in text]


def record(name: str, template: str, chat: str, opens_turn: bool, goes_on: bool, thinking: bool) -> dict:
    messages = CHATS[chat]
    record = {"template": name, "chat": chat, "opens_turn": opens_turn, "goes_on": goes_on, "thinking": thinking}
    try:
        text = render(template, messages, opens_turn, goes_on, thinking)
        # transformers leaves marks of its own in the text then.
        if "CONTINUE_FINAL_MESSAGE_TAG" in text:
            return record | {"error": "the last message cannot be gone on in: it is shown twice"}
        return record | {"left_out": left_out(template, messages, opens_turn, thinking), "text": text}
    except (jinja2.UndefinedError, TypeError, AttributeError):
        # In Python's own words.
        return record | {"error": ""}
    except (jinja2.TemplateError, ValueError) as error:
        return record | {"error": str(error).split("Final message to continue:")[0]}


def main() -> None:
    chat_template_utils.datetime = PinnedDate
    records = []
    for path in sorted(FOLDER.glob("*.jinja")):
        template = path.read_bytes().decode()
        for chat, messages in CHATS.items():
            ways = [(True, False, False), (True, False, True)]
            if chat in WITHOUT_GENERATION_PROMPT:
                ways.append((False, False, False))
            if messages[-1]["role"] == "assistant":
                ways.append((False, True, False))
            records += [record(path.name, template, chat, *way) for way in ways]
    header = {"tokens": TOKENS, "chats": CHATS}
    fields = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in header.items()]
    lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    fields.append(f'"records": [\n{lines}\n]')
    (FOLDER / "rendered.json").write_text("{" + ",\n".join(fields) + "}\n", encoding="utf-8")
    print(f"{len(records)} chats rendered, {sum('error' in record for record in records)} of them refused")


if __name__ == "__main__":
    main()

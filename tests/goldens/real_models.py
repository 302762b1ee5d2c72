"""Writes real_models/: what transformers makes of SmolLM2-135M-Instruct and Gemma 3 270M on real texts, and which of LiveQA's judged
answers sentence-transformers finds with all-MiniLM-L6-v2.

    python real_models.py MODELS [smollm2] [gemma3-270m] [encoder]

MODELS has the folders smollm2, gemma3-270m and minilm; `encoder` wants WARDROUND_DATA too. Made with torch 2.15.0, transformers 5.23.0,
sentence-transformers 6.2.0, tokenizers 0.23.3 (requirements.txt) and langchain-text-splitters 0.0.1, on CPU.
"""

import json
import math
import os
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

import torch
import transformers

from files import write_records

HERE = Path(__file__).parent
GREEDY_TOKENS = 64
# Of a row: the best logits, some of the others, and the logarithm of the sum of all their exponentials.
BEST, OTHERS = 12, 12
# Of the engine's greedy tokens none may hang on the last bits.
SMALLEST_GAP = 1e-3
# Of LiveQA.
QUESTIONS = 20

NOTE = """A 61-year-old woman was admitted with two days of fever, productive cough and pleuritic pain on the right. She has type 2 \
diabetes and takes metformin 850 mg twice a day; she has never smoked. On arrival: temperature 38.9 °C, pulse 112, blood pressure 104/62 \
mmHg, respiratory rate 26, oxygen saturation 90 % on room air. There was dullness to percussion and bronchial breathing over the right \
lower lobe. White cells 17.4 × 10⁹/L, C-reactive protein 214 mg/L, creatinine 96 µmol/L, lactate 1.9 mmol/L. The radiograph showed \
consolidation of the right lower lobe with a small effusion. Blood cultures were taken before"""
CODE = '''"""Doses by weight."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Drug:
    name: str
    mg_per_kg: float
    most_mg: float


def dose(drug: Drug, weight_kg: float) -> float:
    """The dose in mg, never above the drug's maximum."""
    if weight_kg <= 0:
        raise ValueError(f"a weight of {weight_kg} kg")
    return min(drug.mg_per_kg * weight_kg, drug.most_mg)


def test_dose():
    paracetamol = Drug("paracetamol", 15, 1000)
    assert dose(paracetamol, 20) =='''
CHINESE = """患者，男，58岁，因“胸骨后压榨样疼痛3小时”入院。疼痛向左臂放射，伴大汗、恶心。既往高血压病史10年，吸烟30年。查体：血压150/95 mmHg，\
心率98次/分，双肺底可闻及少量湿啰音。心电图示V1至V4导联ST段抬高，肌钙蛋白升高。最可能的诊断是"""
ARABIC = """حضرت امرأة تبلغ من العمر ٣٤ عامًا إلى قسم الطوارئ تشكو من صداع شديد مفاجئ مع قيء وتيبس في الرقبة. لا يوجد لديها تاريخ مرضي \
سابق. ضغط الدم ١٤٥/٨٥ ملم زئبق، ودرجة الحرارة ٣٧٫٢ مئوية. أظهر التصوير المقطعي للدماغ وجود نزيف تحت العنكبوتية. الخطوة التالية هي"""
CHAT = [
    {"role": "system", "content": "You are a careful doctor. Give the letter of the right option and one reason."},
    {
        "role": "user",
        "content": "A child of four has barking cough and stridor at night. Which drug helps first?\n"
        "A: Salbutamol\nB: Dexamethasone\nC: Amoxicillin\nD: Cetirizine",
    },
    {"role": "assistant", "content": "B: Dexamethasone. It is croup, and a single dose lessens the swelling below the cords."},
    {"role": "user", "content": "And if the stridor is there at rest, with the chest drawn in?"},
]
# Longer than Gemma's window of 512 tokens.
LONG = "\n\n".join([NOTE + " antibiotics.", CODE + " 300\n", NOTE.replace("right", "left").replace("61", "47") + " antibiotics.", NOTE])
TEXTS = {"note": NOTE, "code": CODE, "chinese": CHINESE, "arabic": ARABIC, "long": LONG}


def decoder(models: Path, name: str) -> None:
    # As tokenizer.json has it: the class that transformers 5 takes for SmolLM2 (GPT2Tokenizer) leaves out that each digit stands alone,
    # which Arabic ones show.
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(models / name)
    model = transformers.AutoModelForCausalLM.from_pretrained(models / name, dtype=torch.float32, attn_implementation="eager")
    model.eval().requires_grad_(False)
    begin = []
    if name.startswith("gemma3"):
        begin = [tokenizer.convert_tokens_to_ids("<bos>")]
        # In the stored precision, as everywhere in these goldens (README.md, Models).
        scale = model.get_input_embeddings().embed_scale
        scale.copy_(scale.to(torch.bfloat16))
        # Gemma 3 270M is a base model: its template is that of the instruction-tuned ones.
        tokenizer.chat_template = json.loads((models / name / "chat_template.json").read_text())["chat_template"]
    encode = lambda text: tokenizer(text, add_special_tokens=False).input_ids  # noqa: E731
    cases = [case(model, {"case": kind, "text": text}, begin + encode(text)) for kind, text in TEXTS.items()]
    chat = tokenizer.apply_chat_template(CHAT, add_generation_prompt=True, tokenize=False)
    cases.append(case(model, {"case": "chat", "messages": CHAT}, encode(chat)))
    header = {"model": name, "stored": "bfloat16", "greedy_tokens": GREEDY_TOKENS}
    write_records(HERE / "real_models" / f"{name}.json", header, "cases", cases)


@torch.no_grad()
def case(model: torch.nn.Module, what: dict, prompt: list[int]) -> dict:
    """One prefill, then one token at a time over the cache."""
    output = model(input_ids=torch.tensor([prompt]), use_cache=True)
    rows = [output.logits[0]]
    greedy = [int(output.logits[0, -1].argmax())]
    for _ in range(GREEDY_TOKENS - 1):
        output = model(input_ids=torch.tensor([[greedy[-1]]]), past_key_values=output.past_key_values, use_cache=True)
        rows.append(output.logits[0])
        greedy.append(int(output.logits[0, -1].argmax()))
    logits = torch.cat(rows)
    best = logits[len(prompt) - 1 :].topk(2).values
    gap = float((best[:, 0] - best[:, 1]).min())
    print(what["case"], len(prompt), f"smallest gap {gap:.2g}, largest logit {float(logits.abs().max()):.3g}")
    assert gap > SMALLEST_GAP, gap
    last = len(prompt) - 1
    positions = sorted({0, 1, last // 3, last // 2, last, last + GREEDY_TOKENS // 2, last + GREEDY_TOKENS - 1})
    return {
        **what,
        "ids": prompt,
        "greedy": greedy,
        "smallest_gap": round(gap, 5),
        "rows": [row(position, logits[position]) for position in positions],
    }


def row(position: int, logits: torch.Tensor) -> dict:
    best = logits.topk(BEST).indices.tolist()
    others = [(position + 1 + number * len(logits)) // (OTHERS + 1) % len(logits) for number in range(OTHERS)]
    return {
        "position": position,
        "logits": {token: round(float(logits[token]), 6) for token in [*best, *others]},
        "log_sum_exp": round(float(logits.double().logsumexp(0)), 6),
    }


def encoder(models: Path) -> None:
    """LiveQA's judged answers in MedQuAD, ranked for each question by the best of their chunks (1000/200), question and chunk together."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter
    from sentence_transformers import SentenceTransformer

    data = Path(os.environ["WARDROUND_DATA"]) / "corpus"
    rows, names = {}, Counter()
    for line in (data / "medquad.jsonl").open(encoding="utf-8"):
        row = json.loads(line)
        document, section = row["id"].rsplit("-", 1)
        name = f"{row['source']}_{document}_Sec{section}"
        names[name] += 1
        rows[name if names[name] == 1 else f"{name}.{names[name]}"] = row
    grades = defaultdict(dict)
    for line in (data / "liveqa_qrels_2479.txt").open(encoding="utf-8"):
        question, grade, document = line.split()
        if document.removesuffix(".txt") in rows:
            grades[question][document.removesuffix(".txt")] = int(grade[0]) - 1
    page = (data / "liveqa_2017_questions.xml").read_text(encoding="utf-8")
    asked = re.findall(r'<NLM-QUESTION qid="TQ(\d+)".*?<NLM-Summary>(.*?)</NLM-Summary>', page, re.DOTALL)
    questions = {number: text.strip() for number, text in asked}
    # Those whose judges found something: the first ones, for a test embeds every chunk again.
    useful = [number for number in sorted(grades, key=int) if any(grades[number].values())]
    grades = {number: grades[number] for number in useful[:QUESTIONS]}

    splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200)
    judged = sorted({document for ours in grades.values() for document in ours})
    chunks = [(document, chunk) for document in judged for chunk in splitter.split_text(rows[document]["answer"])]
    model = SentenceTransformer(str(models / "minilm"), device="cpu")
    vectors = model.encode([f"{rows[document]['question']}\n{chunk}" for document, chunk in chunks], convert_to_tensor=True)
    records = []
    for number in sorted(grades, key=int):
        best = gain(sorted(grades[number].values(), reverse=True))
        scores = defaultdict(lambda: -2.0)
        for (document, _), score in zip(chunks, (vectors @ model.encode(questions[number], convert_to_tensor=True)).tolist()):
            if document in grades[number]:
                scores[document] = max(scores[document], score)
        ranked = sorted(scores, key=lambda document: -scores[document])[:10]
        ndcg = gain([grades[number][document] for document in ranked]) / best
        records.append({"question": number, "ndcg": ndcg, "best": [[document, round(scores[document], 6)] for document in ranked]})
    mean = sum(record["ndcg"] for record in records) / len(records)
    print(f"nDCG@10 {mean:.4f} over {len(records)} questions, {len(chunks)} chunks")
    header = {"model": "all-MiniLM-L6-v2", "chunks": len(chunks), "mean_ndcg": mean}
    write_records(HERE / "real_models" / "minilm_liveqa.json", header, "questions", records)


def gain(grades: list[int]) -> float:
    return sum(grade / math.log2(rank + 2) for rank, grade in enumerate(grades[:10]))


MAKERS = {
    "smollm2": lambda models: decoder(models, "smollm2"),
    "gemma3-270m": lambda models: decoder(models, "gemma3-270m"),
    "encoder": encoder,
}


def main(models: str, *chosen: str) -> None:
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    (HERE / "real_models").mkdir(exist_ok=True)
    for name in chosen or MAKERS:
        MAKERS[name](Path(models))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])

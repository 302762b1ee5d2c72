"""Writes mmlu_pro.parquet, a file of MMLU-Pro's columns, and mmlu_pro.jsonl, what is read of it. Needs pyarrow."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
SUBJECT = "ori_mmlu-professional_medicine"


def row(number, question, options, answer, src=SUBJECT):
    return {
        "question_id": number,
        "question": question,
        "options": options,
        "answer": "ABCDEFGHIJ"[answer],
        "answer_index": answer,
        "cot_content": "",
        "category": "health" if src == SUBJECT else "law",
        "src": src,
    }


ROWS = [
    row(1, "Which vitamin is retinol?", ["Vitamin A", "Vitamin D", "Vitamin K"], 0),
    row(2, "Who may sign?", ["One", "Two", "Three"], 1, "ori_mmlu-professional_law"),
    row(3, "Größer als 5 µm?\n\"Yes\" \\ no", [str(n) for n in range(10)], 9),
    row(4, "中文？", ["甲", "乙", "丙", "丁"], 2),
    row(5, "Which court?", ["This", "That", "Neither"], 2, "ori_mmlu-professional_law"),
    row(6, "x" * 3000, ["a" * 500, "b", "c"], 1),
]
SCHEMA = pa.schema(
    [
        ("question_id", pa.int64()),
        ("question", pa.string()),
        ("options", pa.list_(pa.string())),
        ("answer", pa.string()),
        ("answer_index", pa.int64()),
        ("cot_content", pa.string()),
        ("category", pa.string()),
        ("src", pa.string()),
    ]
)

table = pa.Table.from_pylist(ROWS, schema=SCHEMA)
pq.write_table(table, HERE / "mmlu_pro.parquet", compression="snappy", row_group_size=4)
kept = [json.dumps(row, ensure_ascii=False) for row in ROWS if row["src"] == SUBJECT]
(HERE / "mmlu_pro.jsonl").write_text("\n".join(kept) + "\n", encoding="utf-8")

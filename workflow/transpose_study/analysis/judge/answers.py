"""tables/analysis.csv: the quantities that answer the open questions, in long form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transpose_study.analysis.formulas import Missing
from transpose_study.analysis.judge.cells import Binding
from transpose_study.analysis.judge.claims import OPCODES, Answer, Question
from transpose_study.analysis.judge.pairs import bound
from transpose_study.analysis.judge.tidy import NoRow, Tidy, Used
from transpose_study.analysis.tables import Row, write_table
from transpose_study.experiment import Experiment
from transpose_study.provenance import Provenance

TIMED = {"timings", "ratios"}


def write_answers(experiment: Experiment, questions: Sequence[Question], tidy: Tidy) -> None:
    """Write analysis.csv: one row for each question, quantity and combination of cells; ``other`` names the second cell."""
    columns = [
        "question", *experiment.study.key_columns, "cache_mode", "other", "quantity", "value", "low", "high", "unit", "formula", "note", "reason",
        "source_table",
    ]  # fmt: skip
    rows = [row for q in questions for a in q.answers for b in bound(experiment, q.cells, a.aliases) for row in _rows(experiment, tidy, q, a, b)]
    write_table(experiment.paths.table("analysis"), columns, rows, Provenance(experiment))


def _rows(experiment: Experiment, tidy: Tidy, question: Question, answer: Answer, binding: Binding) -> Iterator[Row]:
    places = list(binding.values())
    names = tidy.opcodes(binding.values()) if answer.each == OPCODES else answer.each or ("",)
    for name in names:
        used = Used()
        row: Row = {
            "question": question.id, **(experiment.study.key(places[0].cell) if places else {}),
            "other": "; ".join(experiment.study.short_name(o.cell) for o in places[1:]),
            "quantity": answer.name.replace("{}", name), "unit": answer.unit, "formula": answer.formula.replace("{}", name), "note": answer.note,
        }  # fmt: skip
        try:
            measured = tidy.evaluate(answer.formula.replace("{}", name), binding, used, question.where)
            row |= {"value": measured.value, "low": measured.interval[0], "high": measured.interval[1]}
        except NoRow:
            return
        except Missing as missing:
            row["reason"] = str(missing)
        row["source_table"] = "; ".join(dict.fromkeys(used.tables))
        row["cache_mode"] = places[0].mode if places and TIMED & set(used.tables) else ""
        yield row

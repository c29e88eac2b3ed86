"""The results of `benchmarks.engine` as markdown, with what they say."""

from __future__ import annotations

import statistics

from benchmarks.peers import PEERS

CLOSE = 1e-6
"""Joint values nearer than this are the same."""


def table(report: dict) -> str:
    """Every problem: a table and sentences."""
    lines = [
        f"# Engine on {report['corpus']}",
        "",
        "Joint and gap are shares of the attainable gain: 0 is a random subset of the size, 1 the best a term "
        "reaches alone; the gap is the distance to the proved upper bound. Seconds are the median (least to most) "
        "over the rounds, swaps included, after the neighbor graph; CPU seconds are those of all threads "
        "together, which other work on the machine hardly changes. The bound's stand after the plus sign. ~ marks "
        "an extrapolation from measured steps or picks. Those of a peer include its similarities. Peak is the "
        "process's largest resident memory, interpreter and libraries included.",
        "",
    ]
    for problem in report["problems"]:
        machine = problem["machine"]
        lines += [
            f"## {problem['objective']}, ratio {problem['ratio']:g}, lambda {problem['lamb']:g}, N "
            f"{problem['n']:,} x {problem['dim']}",
            "",
            f"Measured {problem['date']} on {machine['processor']} (torch {machine['torch_threads']} thread(s), "
            f"graph {machine['graph_threads']}), Python {machine['python']}, torch {machine['torch']}, numpy "
            f"{machine['numpy']}, numba {machine['numba']}; {problem['repeats']} round(s); load of the machine "
            f"{problem['load'][0]:g} before and {problem['load'][1]:g} after, the measurement itself included. "
            f"Anchors: random {problem['anchor']['random']:.6g}, best {problem['anchor']['best']:.6g} "
            f"({problem['anchor']['best_kind']}), {problem['seconds_anchors']:.1f} s.",
            "",
            "| contestant | joint | raw diversity | gap | seconds | CPU seconds | peak MB | note |",
            "|---|---|---|---|---|---|---|---|",
        ]
        lines += ["| " + " | ".join(_cells(row)) + " |" for row in problem["rows_of_table"]]
        lines += ["", *(f"- {sentence}" for sentence in sentences(problem)), ""]
    return "\n".join(lines).rstrip() + "\n"


def _cells(row: dict) -> list[str]:
    return [
        row["who"],
        *(f"{row[key]:.6f}" if row.get(key) is not None else "" for key in ("joint", "raw")),
        f"{row['gap']:.1e}" if row.get("gap") is not None else "",
        _seconds(row, "seconds"),
        _seconds(row, "cpu"),
        f"{row['peak'] / 1e6:,.0f}" if row.get("peak") else "",
        row.get("note", ""),
    ]


def _seconds(row: dict, key: str) -> str:
    took = row.get(f"all_{key}") or []
    if not took:
        return ""
    bound = row.get(f"all_{key}_bound")
    text = ("~" if row.get("extrapolated") else "") + _digits(statistics.median(took))
    text += f" ({_digits(min(took))}-{_digits(max(took))})" if len(took) > 1 and key == "seconds" else ""
    return text + (f" + {_digits(statistics.median(bound))}" if bound else "")


def _digits(seconds: float) -> str:
    return f"{seconds:,.{2 if seconds < 100 else 0}f}"


def _middle(row: dict, key: str = "seconds") -> float:
    return statistics.median(row[f"all_{key}"])


def sentences(problem: dict) -> list[str]:
    """What the rows say of each other, each made from the numbers."""
    rows = {row["who"]: row for row in problem["rows_of_table"] if row.get("all_seconds")}
    lines = []
    if "choice" in problem:
        choice = problem["choice"]
        lines.append(
            f"REINFORCE's best setting was chosen by its value after {choice['steps']:,} steps on "
            f"{choice['rows']:,} rows: lr {choice['best']['lr']:g}, G {choice['best']['G']} "
            f"({choice['best']['joint']:.4f}; the paper's "
            f"{next(trial['joint'] for trial in choice['tried'] if (trial['lr'], trial['G']) == (10.0, 128)):.4f})."
        )
    for rival in ("reinforce", "reinforce-best"):
        for who in ("relaxed", "counterfactual"):
            if rival in rows and who in rows:
                lines.append(_against(rows[who], rows[rival]))
    if problem["objective"] == "disf" and "counterfactual" in rows:
        lines += [
            _saved(rows["counterfactual"], rows[rival]) for rival in ("greedy", "DiSF in blocks") if rival in rows
        ]
    if "neighbor graph" in rows and rows.get("relaxed", {}).get("all_seconds_bound"):
        lines += _with_graph(problem, rows)
    return lines


def _against(ours: dict, rival: dict) -> str:
    """How much sooner `ours` is where REINFORCE ends."""
    reached = [seconds for seconds, joint in ours.get("curve", []) if joint >= rival["joint"] - CLOSE]
    if not reached:
        return f"{ours['who']} does not reach the {rival['joint']:.4f} of {rival['who']} on its way."
    seconds = max(reached[0], 1e-3)
    early = [joint for seconds, joint in ours["curve"] if seconds <= _middle(rival) / 100]
    when = "what it had when it was stopped" if rival.get("extrapolated") else "its final value"
    return (
        f"{ours['who']} has {rival['who']}'s {rival['joint']:.4f}, {when}, after {seconds:.2f} s, and ends at "
        f"{ours['joint']:.4f} after {_middle(ours):.2f} s; all steps of {rival['who']} take "
        f"{_middle(rival):,.0f} s{' (extrapolated)' if rival.get('extrapolated') else ''}: "
        f"{_middle(rival) / seconds:,.0f} and {_middle(rival) / _middle(ours):,.0f} times as long, in CPU "
        f"seconds of the whole {_middle(rival, 'cpu') / _middle(ours, 'cpu'):,.0f} times."
        + (f" In a hundredth of that time {ours['who']} has {early[-1]:.4f}." if early else "")
    )


def _with_graph(problem: dict, rows: dict) -> list[str]:
    """The price of the proof beside the graph's, and both beside the peers'."""
    graph, ours, anchor = rows["neighbor graph"], rows["relaxed"], problem["anchor"]
    whole, cpu = (_middle(ours, key) + _middle(ours, f"{key}_bound") for key in ("seconds", "cpu"))
    raw = ours["gap"] / (1 - problem["lamb"]) * (anchor["best"] - anchor["random"])
    lines = [
        f"Relaxed and its bound take {whole:.1f} s, {whole / _middle(graph):.2f} of the graph's "
        f"{_middle(graph):.1f} s ({cpu / _middle(graph, 'cpu'):.2f} in CPU seconds); the gap is "
        f"{100 * raw / anchor['best']:.3f} % of the raw value."
    ]
    for peer in PEERS:
        if peer in rows:
            lines.append(
                f"Graph, relaxed and bound take {whole + _middle(graph):.1f} s and at most "
                f"{max(graph['peak'], ours['peak']) / 1e6:,.0f} MB; {peer} takes {_middle(rows[peer]):.1f} s "
                f"and {rows[peer]['peak'] / 1e6:,.0f} MB, and its value is "
                f"{ours['raw'] - rows[peer]['raw']:.6f} below ours."
            )
    return lines


def _saved(ours: dict, rival: dict) -> str:
    mark = ", extrapolated" if rival.get("extrapolated") else ""
    share, cpu = (100 * (1 - _middle(ours, key) / _middle(rival, key)) for key in ("seconds", "cpu"))
    value = f", {rival['joint']:.4f}" if "joint" in rival else ""
    return (
        f"Time saved against {rival['who']}: {share:.2f} %, {cpu:.2f} % of CPU seconds "
        f"({_middle(ours):.1f} s, {ours['joint']:.4f}, against "
        f"{_middle(rival):,.0f} s{mark}{value})."
    )

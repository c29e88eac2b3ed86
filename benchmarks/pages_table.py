"""What `benchmarks.pages` measured, as Markdown: the table of one commit, and that of two next to each other."""

from __future__ import annotations

import statistics


def table(results: dict) -> str:
    """The results as Markdown."""
    sizes = [size for size in results["sizes"] if "pages" in results["sizes"][size]]
    pages = dict.fromkeys(name for size in sizes for name in results["sizes"][size]["pages"])
    lines = (
        []
        if not sizes
        else [
            "| seconds to the answer: first, again, by address | " + " | ".join(sizes) + " |",
            "|---|" + "---|" * len(sizes),
        ]
    )
    for name in pages:
        cells = [results["sizes"][size]["pages"].get(name, {}) for size in sizes]
        lines.append(
            f"| {name} | " + " | ".join(f"{c.get('first')}, {c.get('again')}, {c.get('address')}" for c in cells) + " |"
        )
    memories = [results["sizes"][size]["memory_mb"] for size in sizes]
    for name in ("corpus_open", "all_pages_seen", "three_more_tabs", "peak") if sizes else ():
        lines.append(
            f"| memory, MB: {name.replace('_', ' ')} | " + " | ".join(f"{m[name]:,.0f}" for m in memories) + " |"
        )
    for size, measured in results["sizes"].items():
        for objective, slid in measured.get("slid", {}).items():
            seconds = [move["seconds"] for move in slid["moves"]]
            lines += [
                "",
                f"The map's slider at {size}, {objective}: {sum(move['sent_while_dragged'] for move in slid['moves'])} "
                f"messages while it was dragged {len(seconds)} times; a released lambda's own selection after "
                f"{statistics.median(seconds):.2f} s (at most {max(seconds):.2f}); {frames_in_words(slid)}prepared in "
                f"{slid['prepared']} s "
                f"({conditions_in_words(slid)}; peak {slid['memory_mb']['peak']:,.0f} MB).",
            ]
        if "explored" in measured:
            explored = measured["explored"]
            lines += [
                "",
                f"Map and Compare at {size}, seconds from the act to the page that stands still with the answer "
                f"({conditions_in_words(explored)}; peak {explored['memory_mb']['peak']:,.0f} MB):",
                "",
                "| act | first | then least | median | most | CPU of server and browser, median |",
                "|---|---|---|---|---|---|",
            ]
            for name, times in explored["acts"].items():
                again, cpu = times["again"], statistics.median(times["cpu_again"])
                lines.append(
                    f"| {name} | {times['first']} | {min(again)} | {statistics.median(again):.2f} | {max(again)} | "
                    f"{cpu:.2f} |"
                )
        if "stored" in measured:
            lines += [
                "",
                f"Compare at {size}: "
                + "; ".join(
                    f"with {count} stored runs {stored['click']} s after a click "
                    f"({stored['server_cpu']} s of the server's CPU), "
                    f"{stored['address']} s by address"
                    for count, stored in measured["stored"].items()
                )
                + ".",
            ]
    if "starts" in results:
        starts = results["starts"]
        seconds, answers = starts["seconds"], starts["server_answers"]
        lines += [
            "",
            "First start, from the first request to the demo's map with a selection: "
            f"{min(seconds)} s at least, {statistics.median(seconds):.2f} s in the median, {max(seconds)} s at most; "
            f"the server answers after {statistics.median(answers):.2f} s ({conditions_in_words(starts)}).",
        ]
    if "amounts" in results:
        moves = results["amounts"]["moves"]
        seconds, frames = ([move[name] for move in moves] for name in ("seconds", "frames"))
        lines += [
            "",
            f"*Keep* on the demo, from letting go to the solved answer: {min(seconds)} s at least, "
            f"{statistics.median(seconds):.2f} s in the median, {max(seconds)} s at most; while it is dragged "
            f"{statistics.median(frames):.0f} frames a second ({conditions_in_words(results['amounts'])}).",
        ]
    return "\n".join(
        [
            *lines,
            "",
            f"All the rest: load {results['load'][0]} before and {results['load'][-1]} after, {results['date']}.",
            "",
        ]
    )


def frames_in_words(slid: dict) -> str:
    """Frames a second while the slider was dragged; nothing where an earlier version did not count them."""
    frames = [move["frames"] for move in slid["moves"] if "frames" in move]
    said = f"{statistics.median(frames):.0f} frames a second (at least {min(frames):.0f}); " if frames else ""
    return said + (f"{slid['keep_frames']:.0f} while *Keep* is; " if "keep_frames" in slid else "")


def paired_table(base: dict, results: dict) -> str:
    """Return what two commits have in common as Markdown, in seconds unless the row says otherwise."""
    rows: list[tuple[str, float, float]] = []
    for size in base["sizes"].keys() & results["sizes"].keys():
        before, after = base["sizes"][size], results["sizes"][size]
        for page in before.get("pages", {}).keys() & after.get("pages", {}).keys():
            for visit in ("first", "again", "address"):
                rows.append((f"{size}, {page}, {visit}", before["pages"][page][visit], after["pages"][page][visit]))
        acts = before.get("explored", {}).get("acts", {}), after.get("explored", {}).get("acts", {})
        for act in acts[0].keys() & acts[1].keys():
            medians = [statistics.median(each[act]["again"]) for each in acts]
            rows.append((f"{size}, {act}", medians[0], medians[1]))
        for objective in before.get("slid", {}).keys() & after.get("slid", {}).keys():
            moves = [each["slid"][objective]["moves"] for each in (before, after)]
            for name, row in (("seconds", "λ released"), ("frames", "frames a second while λ is dragged")):
                if all(name in move for each in moves for move in each):
                    medians = [statistics.median(move[name] for move in each) for each in moves]
                    rows.append((f"{size}, {objective}, {row}", medians[0], medians[1]))
    lines = [f"| | {base['commit']} | {results['commit']} | ratio |", "|---|---|---|---|"]
    lines += [f"| {row} | {old:.2f} | {new:.2f} | {new / old:.2f} |" for row, old, new in sorted(rows)]
    return "\n".join([*lines, "", f"{_machine(results['machine'])}; load {results['load']}; {results['date']}.", ""])


def conditions_in_words(measured: dict) -> str:
    """Under what something was measured, in words."""
    before, after = measured["load"]
    machine_and_load = f"{measured['machine']}, load {before} before and {after} after"
    return f"{machine_and_load}, commit {measured['commit']}, {measured['date']}"


def _machine(facts: dict) -> str:
    return f"{facts['threads']} cores, {facts['processor']}, Python {facts['python']}"

"""Blocks: a selection by facility location of more rows than one machine opens, as three commands over files.

| module | job |
|---|---|
| `plan` | the folder: its files, the plan, and what a missing file means |
| `cutting` | the first command: a sample, the ends of the scales, cells, and which rows each block has |
| `solving` | the second: greedy to twice the share of a block; then swaps at its final size |
| `joining` | the third: the cut of all picks at the size, the ids, and the estimated values of the whole |

Workers meet in the files and nowhere else. Every file is written whole or not at all, and follows from the plan and the
files of the step before. So it does not matter who does a block, in which order, or how often.
"""

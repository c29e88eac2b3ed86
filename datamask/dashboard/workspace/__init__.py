"""The one current selection of a session: what every page shows, lists, reports and downloads.

frame("Runs", ...)                  reads the view (dashboard.shell.view), draws the answer bar, gives `Current`
workspace.workspace.read(opened)    the view on an open corpus: runs on it, the problem and its rules, λ
workspace.current                   what is known of the problem along λ, and the selection at the chosen λ
workspace.selection.Selection       its rows, its values, and what it is
"""

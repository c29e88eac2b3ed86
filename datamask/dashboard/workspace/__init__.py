"""The one current selection of a session: what every page shows, lists, reports and downloads.

frame("Runs", ...)                  reads the workspace, draws its strip, gives `Current`
workspace.workspace.read(opened)    corpus, runs on it, problem and λ, from address and session
workspace.along                     what is known of the problem along λ: stored runs, solved points, answers
workspace.current                   the selection at the chosen λ, found in one function
workspace.selection.Selection       its rows, its values, and what it is
"""
